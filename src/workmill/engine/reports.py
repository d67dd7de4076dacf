"""Errors made storable: class, message and traceback as bounded text that every store takes, whatever was raised."""

from __future__ import annotations

import traceback
from collections import deque
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workmill.domain.limits import ERROR_MESSAGE_CHARACTERS, TRACEBACK_CHARACTERS
from workmill.domain.outcome import ErrorReport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

MAX_CHAIN: Final = 20
"""So many causes of an error are made to forget; a chain may be circular, or made without end."""
FIRST_LINES: Final = 200
LAST_LINES: Final = 1_000
OUR_FILES: Final = str(Path(__file__).parent.parent)
HEAD: Final = TRACEBACK_CHARACTERS // 4


def report(error: BaseException) -> ErrorReport:
    """Tell an error and let go of what it holds: afterwards the frames of its traceback, and their variables, are free."""
    try:
        return ErrorReport(class_name(type(error)), message(error), _traceback(error))
    finally:
        _forget(error)


def stack(frame: FrameType) -> str:
    """Where a thread is now, as text."""
    return _middle_out(storable("".join(traceback.format_stack(frame, limit=50))))


def storable(text: str, limit: int | None = None) -> str:
    """Text with NUL and lone surrogates in visible form, cut at `limit` characters."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}… ({len(text) - limit} characters left out)"[: limit + 40]
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def class_name(kind: type[BaseException]) -> str:
    """The full name of a class of errors, without the module when it is Python's or ours."""
    module = str(kind.__module__)
    name = kind.__qualname__ if module == "builtins" or module.startswith("workmill.") else f"{module}.{kind.__qualname__}"
    return storable(name, 200)


def message(error: BaseException) -> str:
    """`str(error)`, bounded; a `__str__` that raises is said so."""
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - a __str__ may raise anything, and the attempt has failed already
        text = f"<its __str__ raised {type(second).__name__}>"
    return storable(text, ERROR_MESSAGE_CHARACTERS)


def _traceback(error: BaseException) -> str:
    try:
        told = traceback.TracebackException(type(error), error, _beyond_us(error.__traceback__), limit=-200, compact=True)
        lines = (line[:ERROR_MESSAGE_CHARACTERS] for line in told.format())
        first = list(islice(lines, FIRST_LINES))
        return _middle_out(storable("".join([*first, *deque(lines, LAST_LINES)])))
    except BaseException as second:  # noqa: BLE001 - the same: what cannot be told must not hide that it failed
        return f"<no traceback: telling it raised {type(second).__name__}>"


def _beyond_us(outermost: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is not Workmill's; the whole when all are."""
    own = outermost
    while own is not None and own.tb_frame.f_code.co_filename.startswith(OUR_FILES):
        own = own.tb_next
    return own or outermost


def _middle_out(text: str) -> str:
    if len(text) <= TRACEBACK_CHARACTERS:
        return text
    tail = TRACEBACK_CHARACTERS - HEAD - 60
    return f"{text[:HEAD]}\n… ({len(text) - HEAD - tail} characters left out) …\n{text[-tail:]}"


def _forget(error: BaseException) -> None:
    for told in _chain(error):
        if told.__traceback__ is not None:
            traceback.clear_frames(told.__traceback__)
            told.__traceback__ = None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes, contexts and members, each once."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo and len(seen) < MAX_CHAIN:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        todo += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
