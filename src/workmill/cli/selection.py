"""Which jobs a command means: ids, or filters. The same options for looking and for acting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from workmill import clock
from workmill.cli.parameters import PAST, QUEUE, STATES
from workmill.domain.job import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

_OPTIONS: Final = (
    click.option("--state", "states", type=STATES, multiple=True, help="In one of these states."),
    click.option("--queue", type=QUEUE, help="In this queue."),
    click.option("--type", "type", metavar="TYPE", help="Of this type."),
    click.option("--tag", metavar="TAG", help="With this tag."),
    click.option("--error-class", metavar="CLASS", help="Whose last error was of this class."),
    click.option("--key", "unique_key", metavar="KEY", help="With this unique key."),
    click.option("--trace", "trace_id", metavar="ID", help="Of this trace: 32 hexadecimal digits."),
    click.option("--worker", "worker_id", metavar="ID", help="Held by this worker."),
    click.option("--created-after", type=PAST, help="Submitted after this time, or within this duration."),
    click.option("--created-before", type=PAST, help="Submitted before this time, or longer ago than this duration."),
)
FILTERS: Final = ("states", "queue", "type", "tag", "error_class", "unique_key", "trace_id", "worker_id", "created_after", "created_before")


def filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the filters; they arrive as keyword arguments for `selection`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_given(value: object) -> bool:
    """Whether a filter was given; an empty text was, and is refused as what it is."""
    return value is not None and value != ()


def selection(given: Mapping[str, Any]) -> Selection:
    """The jobs that match all the filters that were given."""
    chosen = {name: given[name] for name in FILTERS if is_given(given[name])}
    chosen["states"] = tuple(dict.fromkeys(state for group in given["states"] for state in group))
    for name in ("created_after", "created_before"):
        if name in chosen:
            chosen[name] = _microseconds(chosen[name])
    return Selection(**chosen)


def _microseconds(moment: datetime) -> int:
    return clock.from_datetime(moment)
