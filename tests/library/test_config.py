"""Settings: what the environment may say, and the one error when it says something else."""

import pytest

from workmill.config import Settings, from_environment, parse_duration, parse_retention, parse_size, shown_url
from workmill.domain.errors import ConfigurationError


def test_without_variables_the_documented_defaults_hold() -> None:
    assert from_environment({}) == Settings(store="sqlite:///workmill.db", retain=7 * 86_400, retain_dead=None)


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert from_environment({"WORKMILL_STORE": "", "WORKMILL_RETAIN": "", "WORKMILL_RETAIN_DEAD": ""}) == Settings()


def test_the_environment_says_where_the_store_is_and_how_long_jobs_stay() -> None:
    said = {"WORKMILL_STORE": "sqlite:////srv/jobs.db", "WORKMILL_RETAIN": "never", "WORKMILL_RETAIN_DEAD": "30d"}

    assert from_environment(said) == Settings(store="sqlite:////srv/jobs.db", retain=None, retain_dead=30 * 86_400)


DURATIONS = [("0", 0), ("90", 90), ("1.5", 1.5), ("500ms", 0.5), ("30s", 30), ("5m", 300), ("12h", 43_200), ("7d", 604_800)]
SUMS = [("1h30m", 5_400), (" 1H 30M ", 5_400), ("1.5h", 5_400), ("2w", 1_209_600)]


@pytest.mark.parametrize(("text", "seconds"), [*DURATIONS, *SUMS])
def test_a_duration_is_a_number_of_seconds_or_has_units(text: str, seconds: float) -> None:
    assert parse_duration("X", text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 fortnights", "-5s", "1e3", "inf", "nan", "5m!", "٣s", "1h30", "never"])
def test_anything_else_is_refused_with_the_name_and_the_rule(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^WORKMILL_X: must be a duration such as 500ms"):
        parse_duration("WORKMILL_X", text)


def test_a_duration_is_at_most_a_year() -> None:
    with pytest.raises(ConfigurationError, match=r"at most 366 days"):
        parse_duration("WORKMILL_X", "9" * 400)


def test_a_retention_may_be_never() -> None:
    assert parse_retention("X", " Never ") is None
    assert parse_retention("X", "3650d") == 3_650 * 86_400


@pytest.mark.parametrize("name", ["WORKMILL_RETAIN", "WORKMILL_RETAIN_DEAD"])
def test_a_wrong_retention_names_its_variable(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: must be never, or a duration"):
        from_environment({name: "forever"})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        (4_096, 4_096),
        ("512MB", 512_000_000),
        ("512M", 512_000_000),
        ("1.5 gb", 1_500_000_000),
        ("256MiB", 256 << 20),
        ("2KiB", 2_048),
    ],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(text: str | int, size: int) -> None:
    assert parse_size("memory_limit", text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "much", "512IB", "5XB", "1e9", True, float("nan"), 0.5, "9" * 30])
def test_another_size_is_refused_with_the_name_and_the_rule(text: str | float) -> None:
    with pytest.raises(ConfigurationError, match=r"^memory_limit: must be a size in bytes, or such as 512MB"):
        parse_size("memory_limit", text)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://app:s3cret@host/db", "postgresql://app:***@host/db"),
        ("postgresql://app:a%40b@host:5433/db?sslmode=require", "postgresql://app:***@host:5433/db?sslmode=require"),
        ("postgresql:///db?user=app&password=s3cret&host=h", "postgresql:///db?user=app&password=***&host=h"),
        ("postgresql:///db?password=s3cret", "postgresql:///db?password=***"),
        ("postgresql://app@host:5433/db", "postgresql://app@host:5433/db"),
        ("sqlite:///work@home:mill.db", "sqlite:///work@home:mill.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown
