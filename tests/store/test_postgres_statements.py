"""How a statement's file becomes what PostgreSQL is sent, and how its errors become Workmill's."""

import psycopg
import pytest
from psycopg import errors

from workmill.domain.errors import ConfigurationError, StoreError, StoreFailure, StoreNotReady, StoreUnavailable
from workmill.store.migrate import migrations
from workmill.store.open import open_store
from workmill.store.postgres.arrays import float_array, integer_array, text_array
from workmill.store.postgres.dialect import PACKAGE, load, parse
from workmill.store.postgres.session import translate
from workmill.store.postgres.store import split_url
from workmill.store.session import BadData, Conflicted
from workmill.testing.servers import PostgresServer


def test_a_parameter_has_one_number_however_often_it_is_named() -> None:
    statement = parse("SELECT :now, x -- :not this\nFROM t WHERE a = ':nor this' AND b = :now AND c = :limit::bigint")

    assert statement.text == b"SELECT $1, x \nFROM t WHERE a = ':nor this' AND b = $1 AND c = $2::bigint"
    assert statement.bind({"now": 5, "limit": 7}) == [5, 7]


def test_a_relation_comes_as_arrays_before_all_parameters() -> None:
    statement = parse("SELECT :now FROM :given (id text, lease bigint)")

    assert statement.text == b"SELECT $3 FROM unnest($1::text[], $2::bigint[]) AS given (id, lease)"
    assert statement.bind_over([("a", 1), (None, 2)], {"now": 5}) == [text_array(("a", None)), integer_array((1, 2)), 5]


def test_another_schema_takes_the_place_of_the_usual_one_outside_of_literals() -> None:
    statement = parse("SELECT 'workmill.' FROM workmill.jobs WHERE type = 'workmill.webhook'", "other")

    assert statement.text == b"""SELECT 'workmill.' FROM "other".jobs WHERE type = 'workmill.webhook'"""


def test_every_statement_names_its_schema() -> None:
    assert all(b"workmill_" not in statement.text for statement in load("workmill").values())
    assert "workmill_" not in "".join(step.text for step in migrations(PACKAGE))


def test_arrays_arrive_as_they_were_sent(postgres: PostgresServer) -> None:
    texts, numbers, floats = ("", "ä\n", None, '{"a": 1}'), (0, -(2**63), 2**63 - 1, None), (0.001, None, -1.5e300, 3)

    with psycopg.connect(postgres.url) as connection:
        arrived = [
            connection.cursor().execute(f"SELECT %b::{kind}[]".encode(), [_Binary(array)]).fetchall()[0][0]
            for kind, array in (("text", text_array(texts)), ("int8", integer_array(numbers)), ("float8", float_array(floats)))
        ]

    assert [tuple(each) for each in arrived] == [texts, numbers, floats]


class _Binary(bytes):
    """Bytes that are sent as they are."""


class _Sent(psycopg.adapt.Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


@pytest.fixture(autouse=True, scope="module")
def sent_as_it_is() -> None:
    psycopg.adapters.register_dumper(_Binary, _Sent)


@pytest.mark.parametrize("value", [5, b"x", "\ud800"])
def test_what_is_no_text_is_refused_before_it_is_sent(value: str) -> None:
    with pytest.raises((AttributeError, UnicodeEncodeError)):
        text_array([value])


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("22021", BadData),
        ("23505", BadData),
        ("54000", BadData),
        ("40001", Conflicted),
        ("40P01", Conflicted),
        ("08006", StoreUnavailable),
        ("57P01", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("55P03", StoreUnavailable),
        ("25006", StoreUnavailable),
        ("25P03", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("53100", StoreFailure),
        ("42501", StoreFailure),
        ("42P01", StoreNotReady),
        ("3F000", StoreNotReady),
    ],
)
def test_an_error_of_the_server_has_a_meaning_by_its_class(state: str, expected: type[StoreError]) -> None:
    assert type(translate(errors.lookup(state)("said the server"))) is expected


def test_a_lost_connection_is_no_fault_of_the_data() -> None:
    assert type(translate(psycopg.OperationalError("the connection is lost"))) is StoreUnavailable


@pytest.mark.parametrize("schema", ["", "a b", 'x"; DROP SCHEMA public', "Upper", "1st", "x" * 64])
def test_a_schema_that_is_no_plain_name_is_refused(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKMILL_SCHEMA", schema or " ")

    with pytest.raises(ConfigurationError, match="WORKMILL_SCHEMA: must match"):
        open_store("postgresql://nowhere/db")


def test_a_url_with_a_strange_parameter_of_our_own_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="notify must be on or off"):
        open_store("postgresql://nowhere/db?notify=maybe")


@pytest.mark.parametrize(
    "url", ["postgresql://host/db?no_such_parameter=1", "postgresql://[broken/db", "postgresql://h/db?notify=off&nothing=1"]
)
def test_a_url_that_the_driver_cannot_read_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="WORKMILL_STORE: is no URL of PostgreSQL's"):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "for_driver", "notify"),
    [
        ("postgresql:///jobs", "postgresql:///jobs", True),
        ("postgresql:///jobs?host=/var/run&notify=off", "postgresql:///jobs?host=/var/run", False),
        ("postgresql://h/d?notify=on&options=-c%20jit%3Doff", "postgresql://h/d?options=-c%20jit%3Doff", True),
        ("postgresql://h/d?notify=off", "postgresql://h/d", False),
    ],
)
def test_of_a_url_only_our_own_parameter_is_taken(url: str, for_driver: str, *, notify: bool) -> None:
    assert split_url(url) == (for_driver, notify)
