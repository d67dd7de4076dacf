"""Columns of values as PostgreSQL's binary arrays. The driver's own way looks at each element to find the type; here it is declared."""

from __future__ import annotations

from itertools import chain, repeat
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Final

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# src/include/catalog/pg_type.dat: the numbers of the types of elements
INT8: Final = 20
TEXT: Final = 25
FLOAT8: Final = 701
_HEAD: Final = Struct("!iiIii")
"""One dimension, whether there are nulls, the type of the elements, their number, the first index (src/backend/utils/adt/arrayfuncs.c)."""
_NULL: Final = pack("!i", -1)
_LENGTH: Final = Struct("!i").pack


class TextArray(bytes):
    """A text[] in binary."""

    __slots__ = ()


class IntegerArray(bytes):
    """A bigint[] in binary."""

    __slots__ = ()


class FloatArray(bytes):
    """A double precision[] in binary."""

    __slots__ = ()


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


class TextArrayDumper(_ArrayDumper):
    """Hands a `TextArray` to the driver."""

    oid = 1009


class IntegerArrayDumper(_ArrayDumper):
    """Hands an `IntegerArray` to the driver."""

    oid = 1016


class FloatArrayDumper(_ArrayDumper):
    """Hands a `FloatArray` to the driver."""

    oid = 1022


def _head(values: Sequence[Any], element: int) -> bytes:
    return _HEAD.pack(1, None in values, element, len(values), 1)


def text_array(values: Sequence[str | None]) -> TextArray:
    """An array of texts, as UTF-8."""
    parts = [_head(values, TEXT)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            encoded = value.encode()
            parts += (_LENGTH(len(encoded)), encoded)
    return TextArray(b"".join(parts))


def integer_array(values: Sequence[int | None]) -> IntegerArray:
    """An array of whole numbers of 64 bits."""
    return IntegerArray(_head(values, INT8) + _numbers(values, "q"))


def float_array(values: Sequence[float | None]) -> FloatArray:
    """An array of numbers of double precision."""
    return FloatArray(_head(values, FLOAT8) + _numbers(values, "d"))


def _numbers(values: Sequence[Any], code: str) -> bytes:
    if None not in values:
        return pack("!" + f"i{code}" * len(values), *chain.from_iterable(zip(repeat(8), values, strict=False)))
    return b"".join(_NULL if value is None else pack(f"!i{code}", 8, value) for value in values)


ENCODERS: Final[dict[str, Callable[[Sequence[Any]], bytes]]] = {"text": text_array, "bigint": integer_array, "float": float_array}
