"""Named statements: one `.sql` file each, read once; parameters by name, rows by the relation `:given`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

GIVEN: Final = "given"
_TOKEN: Final = re.compile(r"--[^\n]*|'(?:[^']|'')*'|(?<!:):([a-z_]+)")


class Statement(NamedTuple):
    """A statement whose named parameters have become positional marks; `after` is None unless it has the relation `:given`."""

    before: str
    parameters: tuple[str, ...]
    after: str | None = None
    parameters_after: tuple[str, ...] = ()

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the marks, without a relation."""
        return [values[name] for name in self.parameters]

    def bind_over(self, rows: Iterable[Iterable[Any]], values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the marks, with those of the relation's rows in their place."""
        return [*self.bind(values), *chain.from_iterable(rows), *[values[name] for name in self.parameters_after]]

    def over(self, rows: int, width: int) -> str:
        """The text for a relation of so many rows and columns."""
        row = "(" + ", ".join("?" * width) + ")"
        return self.before + ", ".join([row] * rows) + (self.after or "")


def parse(text: str, mark: str = "?") -> Statement:
    """A statement from the text of its file; comments are dropped, literals are left alone."""
    parts: list[str] = [""]
    names: list[list[str]] = [[]]
    at = 0
    for token in _TOKEN.finditer(text):
        parts[-1] += text[at : token.start()]
        at = token.end()
        if token.group().startswith("'"):
            parts[-1] += token.group()
        elif token.group(1) == GIVEN:
            parts.append("")
            names.append([])
        elif token.group(1):
            parts[-1] += mark
            names[-1].append(token.group(1))
    parts[-1] += text[at:]
    if len(parts) > 1:
        return Statement(parts[0].lstrip(), tuple(names[0]), parts[1].rstrip(), tuple(names[1]))
    return Statement(parts[0].strip(), tuple(names[0]))


@cache
def load(package: str) -> Mapping[str, Statement]:
    """All statements of a package's `queries` folder, by the names of their files."""
    return {name: parse(text) for name, text in texts(package)}


def texts(package: str) -> Iterator[tuple[str, str]]:
    """The names and texts of the files in a package's `queries` folder."""
    for file in (files(package) / "queries").iterdir():
        if file.name.endswith(".sql"):
            yield file.name[:-4], file.read_text("utf-8")
