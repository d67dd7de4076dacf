"""What the benchmarks need of a PostgreSQL server beside its stores: schemas of their own, and what the server has done."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier

from workmill import clock
from workmill.config import SCHEMA
from workmill.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTENSION: Final = "SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'"
PRELOADED: Final = "SELECT 1 WHERE current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%'"
STATEMENTS: Final = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
AND query !~* '^\\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|LISTEN|SELECT \\(extract\\()'
"""
"""Of our own statements those that are sent with BEGIN, in one message, are left out: the bounds of the transaction, and the clock."""
WORK: Final = """
SELECT pg_current_wal_lsn() - '0/0', (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()),
       coalesce(sum(n_tup_upd), 0)::bigint, coalesce(sum(n_tup_hot_upd), 0)::bigint, coalesce(sum(n_tup_del), 0)::bigint
FROM pg_stat_user_tables WHERE schemaname = %s
"""
SETTLE: Final = 1.0
"""Seconds after which the server has heard what connections that have been closed did."""


@contextmanager
def own_schema(url: str) -> Iterator[str]:
    """A name of a schema that nobody uses; the stores that this process and its children open meanwhile are there. It is dropped."""
    name = f"workmill_bench_{new_id()[-12:]}"
    before = os.environ.get(SCHEMA)
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(SQL("CREATE SCHEMA {}").format(Identifier(name)))
    os.environ[SCHEMA] = name
    try:
        yield name
    finally:
        if before is None:
            del os.environ[SCHEMA]
        else:
            os.environ[SCHEMA] = before
        with psycopg.connect(url, autocommit=True) as database:
            database.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


class Work(NamedTuple):
    """What a server has done in all: bytes of its log, commits, row versions replaced (`hot`: without a word to the indexes) and removed.

    And statements, without those that begin and end transactions; -1: it does not count them.
    """

    wal: int
    commits: int
    updated: int
    hot: int
    deleted: int
    statements: int = -1

    def since(self, before: Work) -> Work:
        """What has been done since then."""
        done = Work(*(now - then for now, then in zip(self, before, strict=True)))
        return done._replace(statements=-1) if self.statements < 0 else done


def work(url: str, schema: str) -> Work:
    """What the server has done so far, in `schema` as far as rows are concerned. Connections that are open have not yet told all."""
    clock.sleep(SETTLE)
    with psycopg.connect(url, autocommit=True) as database:
        ((wal, commits, updated, hot, deleted),) = database.execute(WORK, [schema]).fetchall()
        return Work(int(wal), commits, updated, hot, deleted, _statements(database, schema))


def _statements(database: psycopg.Connection[tuple[int, ...]], schema: str) -> int:
    """How many statements it has run; the extension that counts is made where it is to be had, and goes with the schema."""
    if not database.execute(PRELOADED).fetchall():
        return -1
    if not database.execute(EXTENSION).fetchall():
        database.execute(SQL("CREATE EXTENSION pg_stat_statements SCHEMA {}").format(Identifier(schema)))
    database.execute(SQL("SET search_path = {}, public").format(Identifier(schema)))
    ((statements,),) = database.execute(STATEMENTS).fetchall()
    return statements
