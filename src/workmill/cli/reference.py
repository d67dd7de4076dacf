"""All commands with their options and variables, read from the commands themselves: for docs/cli.md, and for `doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from workmill import config
from workmill.cli.exits import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS: Final = {
    config.STORE: ("The store: `sqlite:///path` or `postgresql://…`.", config.DEFAULT_STORE),
    config.SCHEMA: ("The schema of a PostgreSQL store.", config.DEFAULT_SCHEMA),
    config.RETAIN: ("How long finished jobs stay: a duration, or `never`.", f"{config.DEFAULT_RETAIN / 86_400:g}d"),
    config.RETAIN_DEAD: ("How long dead jobs stay: a duration, or `never`.", "never"),
}
"""The variables that no option stands for, or that the library reads too: what they mean, and their defaults."""
SILENT: Final = ("WORKMILL_LIFELINE", "WORKMILL_SEED", "WORKMILL_SOAK", "WORKMILL_TEST_POSTGRES")
"""Variables of the tests, and between a supervisor and its workers."""


def commands(root: click.Command, name: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """The command and every one below it, in the order of the help: each as the context that its help is made in."""
    context = root.make_context(name, [], parent=parent, resilient_parsing=True)
    yield context
    if isinstance(root, click.Group):
        for child_name in root.list_commands(context):
            child = root.get_command(context, child_name)
            if child is not None and not child.hidden:
                yield from commands(child, child_name, context)


def known_variables(root: click.Group) -> set[str]:
    """Every variable of the environment that means something."""
    found = {*SETTINGS, *SILENT}
    for context in commands(root, "workmill"):
        for param in context.command.params:
            found.update(variables(param, context))
    return found
