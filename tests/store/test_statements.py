"""Statements by name: parameters become marks in order, comments go, literals stay, and a relation is as long as its rows."""

import pytest

from workmill.domain.errors import StoreNotReady
from workmill.store.migrate import Migration, migrations, pending
from workmill.store.sqlite.schema import statements
from workmill.store.statements import load, parse

KNOWN = [Migration(1, "0001_one", ""), Migration(2, "0002_two", "")]


def test_parameters_become_marks_in_the_order_of_the_text() -> None:
    statement = parse("-- A comment: with :no parameter.\nSELECT :b, :a, :b -- and :none\n")

    assert statement.before == "SELECT ?, ?, ?"
    assert statement.bind({"a": 1, "b": 2}) == [2, 1, 2]


def test_literals_and_casts_are_left_alone() -> None:
    assert parse("SELECT ':a', 'it''s :b', x::text, :c").before == "SELECT ':a', 'it''s :b', x::text, ?"


def test_a_relation_is_as_long_as_its_rows() -> None:
    statement = parse("WITH given (a, b) AS (VALUES :given) SELECT :x, a FROM given WHERE b > :y")

    assert statement.over(2, 3) == "WITH given (a, b) AS (VALUES (?, ?, ?), (?, ?, ?)) SELECT ?, a FROM given WHERE b > ?"
    assert (statement.parameters, statement.parameters_after) == ((), ("x", "y"))


def test_each_file_is_a_statement_under_its_name() -> None:
    named = load("workmill.store.sqlite")

    assert "claim_first" in named
    assert all(statement.before and "--" not in statement.before for statement in named.values())


def test_migrations_are_numbered_in_order_without_gaps() -> None:
    versions = [migration.version for migration in migrations("workmill.store.sqlite")]

    assert versions == list(range(1, len(versions) + 1))


def test_what_was_not_applied_is_pending() -> None:
    assert pending(KNOWN, []) == KNOWN
    assert pending(KNOWN, [1]) == KNOWN[1:]
    assert pending(KNOWN, [2, 1]) == []


def test_an_unknown_migration_is_refused() -> None:
    with pytest.raises(StoreNotReady, match="newer"):
        pending(KNOWN, [1, 2, 3])


def test_a_script_is_split_at_the_ends_of_its_statements() -> None:
    script = "CREATE TABLE a (b TEXT DEFAULT ';');\n-- a ; in a comment\nINSERT INTO a\nVALUES ('x;y');\n"

    assert [statement.strip().split()[0] for statement in statements(script)] == ["CREATE", "--"]
