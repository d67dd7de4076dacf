"""Signs of life for long work, on a terminal only, and on stderr so that the output stays what it is."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for `total` steps, gone when the block ends; what it gives takes the steps that were done. None for nothing to do."""
    if not total or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - for those who see it

    from workmill.cli.screen import console  # noqa: PLC0415 - the same

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda steps: progress.advance(task, steps)


@contextmanager
def spinner(label: str) -> Iterator[None]:
    """Something that turns while the block lasts."""
    if not sys.stderr.isatty():
        yield
        return
    from workmill.cli.screen import console  # noqa: PLC0415 - for those who see it

    with console(stderr=True).status(label):
        yield
