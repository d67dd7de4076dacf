"""What handlers saw, told to the benchmark through a file: a record is one short append, whichever process writes it."""

from __future__ import annotations

import os
import struct
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from workmill import clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VARIABLE: Final = "WORKMILL_BENCH_PROBE"
RECORD: Final = struct.Struct("<qqq")


class Note(NamedTuple):
    """Two numbers of the job's own, and the machine's wall clock when its handler started, in microseconds."""

    group: int
    number: int
    started: int


class Probe:
    """The file, read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __len__(self) -> int:
        return self._path.stat().st_size // RECORD.size

    def notes(self) -> list[Note]:
        """Every note, in the order they were made."""
        return [Note(*record) for record in RECORD.iter_unpack(self._path.read_bytes())]


@contextmanager
def probing(path: Path) -> Iterator[Probe]:
    """Let the handlers of this process, and of those it starts meanwhile, write to `path`."""
    path.touch()
    os.environ[VARIABLE] = os.fspath(path)
    try:
        yield Probe(path)
    finally:
        del os.environ[VARIABLE]


def note(group: int, number: int) -> None:
    """Say that the handler of this job has started, now."""
    os.write(_file(os.environ[VARIABLE]), RECORD.pack(group, number, clock.wall()))


@cache
def _file(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND)
