"""The schema of a PostgreSQL store: what has been applied to it, and the application of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

from workmill.domain.errors import StoreNotReady
from workmill.store.postgres.dialect import steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.store.migrate import Migration

LOCK: Final = 0x776F726B6D696C6C
"""The advisory lock of migrations: "workmill" in ASCII."""
RECORDS: Final = """DO $$ BEGIN IF to_regnamespace('"{schema}"') IS NULL THEN CREATE SCHEMA "{schema}"; END IF; END $$;
CREATE TABLE IF NOT EXISTS "{schema}".migrations (
    version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
);
"""
APPLIED: Final = 'SELECT version FROM "{schema}".migrations'
RECORD: Final = """INSERT INTO "{schema}".migrations (version, name) VALUES ({step.version}, '{step.name}');
"""


def pending(connection: psycopg.Connection[Any], schema: str) -> list[Migration]:
    """The known migrations that this database lacks. Those that only a newer version knows are no obstacle: they only add."""
    applied = _applied(connection, schema)
    return [step for step in steps(schema) if step.version not in applied]


def check(connection: psycopg.Connection[Any], schema: str) -> None:
    """Raise when there is something to migrate.

    Raises:
        StoreNotReady: says what to run.

    """
    missing = pending(connection, schema)
    if missing:
        what = "has no schema of Workmill" if len(missing) == len(steps(schema)) else f"lacks {', '.join(step.name for step in missing)}"
        raise StoreNotReady(f"the database {what} (in {schema!r}): run `workmill migrate`")


def script(migrations: Sequence[Migration], schema: str) -> str:
    """What `apply` would run for these, as text."""
    if not migrations:
        return ""
    parts = [f"{step.text}\n{RECORD.format(schema=schema, step=step)}" for step in migrations]
    return "\n".join(["BEGIN;", f"SELECT pg_advisory_xact_lock({LOCK});", RECORDS.format(schema=schema), *parts, "COMMIT;\n"])


def apply(connection: psycopg.Connection[Any], schema: str) -> list[str]:
    """Apply what is pending in one transaction and return the names. Safe when several processes do it at once."""
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})".encode())
        missing = pending(connection, schema)
        if missing:
            connection.execute(RECORDS.format(schema=schema).encode(), prepare=False)
        for step in missing:
            connection.execute(f"{step.text}\n{RECORD.format(schema=schema, step=step)}".encode(), prepare=False)
    return [step.name for step in missing]


def _applied(connection: psycopg.Connection[Any], schema: str) -> set[int]:
    (there,) = connection.execute(b"SELECT to_regclass($1) IS NOT NULL", [f'"{schema}".migrations']).fetchone() or (False,)
    if not there:
        return set()
    return {version for (version,) in connection.execute(APPLIED.format(schema=schema).encode()).fetchall()}
