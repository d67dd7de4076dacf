"""What people see: lines, and tables that fit the terminal. Nothing is read as markup."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from workmill.cli.wording import visible
from workmill.domain.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP: Final = "  "
STYLES: Final = {
    State.BLOCKED: "dim",
    State.SCHEDULED: "cyan",
    State.QUEUED: "cyan",
    State.RUNNING: "blue",
    State.RETRYING: "yellow",
    State.SUCCEEDED: "green",
    State.DEAD: "red",
    State.CANCELLED: "magenta",
    State.EXPIRED: "magenta",
    State.SKIPPED: "dim",
}

Cell = Text | str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `least`: it may be cut down to this width; None: never. `rank`: the highest is left out first, 0 never. `wrapped`: what does not fit
    goes on in the next lines instead of being cut.
    """

    title: str
    right: bool = False
    least: int | None = None
    rank: int = 0
    wrapped: bool = False


def state_text(state: State) -> Text:
    """A state in its colour."""
    return Text(state, STYLES[state])


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # what that means is decided in one place


def console(*, stderr: bool = False) -> Console:
    """The terminal, or the pipe: colour only on a terminal that wants it, lines never wrapped, nothing read as markup."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def width() -> int | None:
    """The columns of the terminal; None when nobody is looking, so that nothing is cut."""
    out = console()
    return out.width if out.is_terminal else None


def say(line: Cell = "", *, stderr: bool = False) -> None:
    """Print one line."""
    target = console(stderr=stderr)
    encodable = target.encoding or "utf-8"
    if isinstance(line, Text):
        line.plain = line.plain.encode(encodable, "backslashreplace").decode(encodable)
        target.print(line)
    else:
        target.print(Text(line.encode(encodable, "backslashreplace").decode(encodable)))


def say_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table that fits the terminal."""
    say(Text("\n").join(table(columns, rows, width())))


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], room: int | None) -> list[Text]:
    """The lines of a table: aligned, within `room` columns (None: as wide as it likes), without trailing blanks.

    What does not fit is first cut (columns with a `least`, the widest first, with an ellipsis) or wrapped, then left out (by `rank`).
    """
    cells = [[cell if isinstance(cell, Text) else visible(cell) for cell in row] for row in rows]
    shown = list(range(len(columns)))
    natural = [max([cell_len(column.title), *(_size(row[index]) for row in cells)]) for index, column in enumerate(columns)]
    widths = [*natural]
    while room is not None and not _shrink(columns, widths, shown, room):
        droppable = [index for index in shown if columns[index].rank]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda index: columns[index].rank))
        widths = [*natural]
    header = [Text(column.title, "bold") for column in columns]
    lines = [line for row in cells for line in _wrapped(columns, widths, row)]
    return [_line(columns, widths, shown, header), *(_line(columns, widths, shown, line) for line in lines)]


def _size(cell: Cell) -> int:
    return cell.cell_len if isinstance(cell, Text) else cell_len(cell)


def _shrink(columns: Sequence[Column], widths: list[int], shown: Sequence[int], room: int) -> bool:
    """Cut the widest of the columns that may be cut until the line fits; whether it does."""
    excess = sum(widths[index] for index in shown) + len(GAP) * (len(shown) - 1) - room
    while excess > 0:
        spare = {index: widths[index] for index in shown if widths[index] > (columns[index].least or widths[index])}
        if not spare:
            return False
        widths[max(spare, key=spare.__getitem__)] -= 1
        excess -= 1
    return True


def _wrapped(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Cell]) -> list[list[Cell]]:
    """The row in as many lines as its wrapped cells need; below the first they stand alone."""
    parts = [_parts(cell, room) if column.wrapped else [cell] for column, room, cell in zip(columns, widths, row, strict=True)]
    return [list(line) for line in zip_longest(*parts, fillvalue="")]


def _parts(cell: Cell, room: int) -> list[Cell]:
    if _size(cell) <= room:
        return [cell]
    lines = (cell if isinstance(cell, Text) else Text(cell)).wrap(console(), room)
    for line in lines:
        line.rstrip()
    return [*lines]


def _line(columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int], row: Sequence[Cell]) -> Text:
    line, pending = Text(), ""
    for index in shown:
        cell = row[index] if _size(row[index]) <= widths[index] else _cut(row[index], widths[index])
        padding = " " * (widths[index] - _size(cell))
        before, after = (padding, "") if columns[index].right else ("", padding)
        if cell:
            line.append(pending + before).append(cell)
            pending = after + GAP
        else:
            pending += before + after + GAP
    return line


def _cut(cell: Cell, room: int) -> Cell:
    text = cell.copy() if isinstance(cell, Text) else Text(cell)
    text.plain = set_cell_size(text.plain, room - 1).rstrip() + "…"
    return text


def fact(name: str, value: Cell, indent: int = 12) -> None:
    """Print one named value: the name dimmed, the values one under the other."""
    say(Text.assemble((f"{name:<{indent}}", "dim"), value if isinstance(value, Text) else visible(value)))


def interactive() -> bool:
    """Whether somebody sits at this terminal and can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
