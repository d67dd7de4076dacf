"""What the options take, and what each refuses with the rule."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from workmill.cli.parameters import DELAYS, DURATION, MOMENT, PAST, PAYLOAD, POOLS, QUEUE, STATES
from workmill.domain.states import State


def convert(kind: click.ParamType[Any], text: str) -> Any:
    return kind.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0", 0), ("500ms", 0.5), ("1.5s", 1.5), ("5m", 300), ("2h", 7_200), ("7d", 604_800), ("1h30m", 5_400)],
)
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert convert(DURATION, text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "m", "-1", "nan", "inf", "1e3", "5 minutes", "٣s", "400d"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"^must be "):
        convert(DURATION, text)


def test_a_time_has_an_offset() -> None:
    assert convert(MOMENT, "2026-03-01T09:00:00+01:00") == datetime(2026, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-03-01T09:00:00", "yesterday", "", "2026-13-01T00:00:00Z"])
def test_a_naive_or_broken_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"^must "):
        convert(MOMENT, text)


def test_a_past_time_may_be_told_as_a_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workmill.clock.wall", lambda: 10_000_000_000)

    assert convert(PAST, "2h") == datetime(1970, 1, 1, 0, 46, 40, tzinfo=UTC)


def test_states_come_one_by_one_or_with_commas() -> None:
    assert convert(STATES, "dead, retrying") == (State.DEAD, State.RETRYING)


def test_an_unknown_state_is_refused_with_those_there_are() -> None:
    with pytest.raises(click.BadParameter, match="blocked, scheduled, queued"):
        convert(STATES, "dead,deceased")


def test_pools_come_one_by_one_or_with_commas() -> None:
    assert convert(POOLS, "mail=10,video") == (("mail", 10), ("video", None))


@pytest.mark.parametrize("text", ["", "mail=", "mail=0", "mail=x", "mail=1.5", "mail=99999", "a/b", "mail=3,", "=3", "mail=٣"])
def test_a_pool_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"^must be "):
        convert(POOLS, text)


@pytest.mark.parametrize("text", ["a/b", "..", "", "x" * 101, "😀"])
def test_a_queue_has_a_name_by_the_rule(text: str) -> None:
    with pytest.raises(click.BadParameter, match="1 to 100 characters"):
        convert(QUEUE, text)


def test_delays_are_durations_with_commas() -> None:
    assert convert(DELAYS, "1s,5s,1m") == [1.0, 5.0, 60.0]


def test_a_payload_is_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_bytes(b'{"n": 1E2}\n')

    assert convert(PAYLOAD, '{"a":1}') == '{"a":1}'
    assert convert(PAYLOAD, f"@{file}") == '{"n": 1E2}\n'


def test_a_payload_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")

    with pytest.raises(click.BadParameter, match="No such file"):
        convert(PAYLOAD, f"@{tmp_path}/nothing")
    with pytest.raises(click.BadParameter, match="must be UTF-8"):
        convert(PAYLOAD, f"@{tmp_path}/picture")
