"""Statements as PostgreSQL takes them: numbered parameters, the relation `:given` as arrays, and the schema's own name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workmill.store.migrate import Migration, migrations
from workmill.store.postgres.arrays import ENCODERS
from workmill.store.statements import texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE: Final = "workmill.store.postgres"
DEFAULT_SCHEMA: Final = "workmill"
_TOKEN: Final = re.compile(
    r"--[^\n]*|'(?:[^']|'')*'|\b(?P<schema>workmill)(?=\.)|(?<!:):given \((?P<columns>[^)]*)\)|(?<!:):(?P<parameter>[a-z_]+)"
)


class Statement(NamedTuple):
    """A statement whose first marks are the columns of its relation, if it has one, and whose others are its parameters."""

    text: bytes
    encoders: tuple[Callable[[Sequence[Any]], bytes], ...]
    parameters: tuple[str, ...]

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the marks, without a relation."""
        return [values[name] for name in self.parameters]

    def bind_over(self, rows: Sequence[tuple[Any, ...]], values: Mapping[str, Any]) -> list[Any]:
        """The columns of the relation as arrays, then the values."""
        columns = zip(self.encoders, zip(*rows, strict=True), strict=True)
        return [*(encode(column) for encode, column in columns), *self.bind(values)]


def parse(text: str, schema: str = DEFAULT_SCHEMA) -> Statement:
    """A statement from the text of its file; comments are dropped, literals are left alone."""
    columns: list[tuple[str, str]] = []
    for token in _TOKEN.finditer(text):
        if token["columns"]:
            columns = [_column(column) for column in token["columns"].split(",")]
    names: list[str] = []

    def replace(token: re.Match[str]) -> str:
        if token["schema"]:
            return f'"{schema}"'
        if token["columns"]:
            return _relation(columns)
        if token["parameter"]:
            if token["parameter"] not in names:
                names.append(token["parameter"])
            return f"${len(columns) + names.index(token['parameter']) + 1}"
        return token.group() if token.group().startswith("'") else ""

    whole = _TOKEN.sub(replace, text).strip()
    return Statement(whole.encode(), tuple(ENCODERS[type_] for _, type_ in columns), tuple(names))


def _column(text: str) -> tuple[str, str]:
    name, type_ = text.split()
    return name, type_


def _relation(columns: Sequence[tuple[str, str]]) -> str:
    arrays = ", ".join(f"${number}::{type_}[]" for number, (_, type_) in enumerate(columns, 1))
    return f"unnest({arrays}) AS given ({', '.join(name for name, _ in columns)})"


@cache
def load(schema: str) -> Mapping[str, Statement]:
    """All statements for a schema, by the names of their files."""
    return {name: parse(text, schema) for name, text in texts(PACKAGE)}


@cache
def steps(schema: str) -> tuple[Migration, ...]:
    """The migrations for a schema."""
    return tuple(step._replace(text=_in_schema(step.text, schema)) for step in migrations(PACKAGE))


def _in_schema(text: str, schema: str) -> str:
    return _TOKEN.sub(lambda token: f'"{schema}"' if token["schema"] else token.group(), text)
