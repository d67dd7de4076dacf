"""`workmill migrate`: the schema of the store."""

from __future__ import annotations

import click

from workmill.cli.exits import DONE, FAILED
from workmill.cli.session import Session, takes_store
from workmill.cli.wording import plural


@click.command(short_help="Bring the store's schema up to date.")
@takes_store(made=True)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when there is something to do.")
@click.option("--sql", is_flag=True, help="Change nothing; print the statements that would run.")
def migrate(session: Session, check: bool, sql: bool) -> int:
    """Bring the store's schema up to date.

    An SQLite store is also brought up to date whenever it is opened for work, so that there this is rarely needed.
    """
    if check and sql:
        raise click.UsageError("--check and --sql cannot be used together", click.get_current_context())
    if sql:
        click.echo(session.store.migration_sql(), nl=False)
        return DONE
    names = session.store.pending_migrations() if check else session.store.migrate()
    for name in names:
        click.echo(f"{'pending' if check else 'applied'} {name}")
    if not names:
        click.echo("The schema is up to date.")
    elif check:
        click.echo(f"{plural(len(names), 'migration')} to run: workmill migrate", err=True)
        return FAILED
    return DONE
