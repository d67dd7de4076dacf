"""The functions an application has declared as jobs, as the engine runs them: by type, from payload text to result text."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import cached_property
from types import CodeType
from typing import Any, Final, Literal

from workmill.arguments import Arguments, NotJson
from workmill.domain.errors import ArgumentsMismatch, ConfigurationError, InvalidInput
from workmill.results import result_decoder, storable

Kind = Literal["thread", "loop", "isolated"]
_LATE_NAME: Final = "an annotation names what is not there (is it imported under TYPE_CHECKING only, or defined in a function?)"


class LateName(ConfigurationError):
    """An annotation names what does not exist yet; it may, when the whole module has run."""


class Handler:
    """One type of job and the function that runs it. Its annotations are read when it is declared, or when their names exist."""

    def __init__(
        self,
        name: str,
        function: Any,
        *,
        isolate: bool = False,
        memory_limit: int | None = None,
        give_up_on: tuple[type[BaseException], ...] = (),
    ) -> None:
        self.name = name
        self.function = function
        self.kind: Kind = "isolated" if isolate else "loop" if inspect.iscoroutinefunction(function) else "thread"
        self.memory_limit = memory_limit
        self.give_up_on = give_up_on
        self._check_function()
        with suppress(LateName):
            _ = self.arguments

    @cached_property
    def arguments(self) -> Arguments:
        """The parameters of the function."""
        try:
            return Arguments(self.function)
        except NameError as error:
            raise LateName(f"job {self.name}: {_LATE_NAME}: {error}") from None
        except ConfigurationError as error:
            raise ConfigurationError(f"job {self.name}: {error}") from None

    @cached_property
    def call(self) -> Callable[[str], Any]:
        """Run one job, as the engine's `Handler` says."""
        return _awaited(self) if inspect.iscoroutinefunction(self.function) else _plain(self)

    @cached_property
    def read_result(self) -> Callable[[str | None], Any]:
        """From result text to what the function returned."""
        return result_decoder(self.function)

    def prepare(self) -> None:
        """Read what has not been read yet.

        Raises:
            ConfigurationError: an annotation cannot be resolved or carried.

        """
        _ = self.call, self.read_result

    def _check_function(self) -> None:
        if not callable(self.function) or isinstance(self.function, (type, classmethod, staticmethod)):
            raise ConfigurationError(f"job {self.name}: must be a function (got {self.function!r:.120})")
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise ConfigurationError(f"job {self.name}: a generator does nothing when it is called; return instead of yielding")
        if self.memory_limit is not None and self.kind != "isolated":
            raise ConfigurationError(f"job {self.name}: memory_limit needs isolate=True; a thread's memory is its worker's")


class Registry:
    """Handlers by type. Declaring and looking up may happen in any thread."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._lock = threading.Lock()
        self.get = self._handlers.get

    def add(self, handler: Handler) -> None:
        """Declare a type of job; the same function again (a module that is reloaded) takes its own place.

        Raises:
            ConfigurationError: another function has the name.

        """
        with self._lock:
            taken = self._handlers.get(handler.name)
            if taken is not None and _place(taken.function) != _place(handler.function):
                raise ConfigurationError(f"job {handler.name}: declared twice, {_where(taken)} and {_where(handler)}; name one of them")
            self._handlers[handler.name] = handler

    @property
    def types(self) -> tuple[str, ...]:
        """Every type there is a handler for, by name."""
        return tuple(sorted(self._handlers))

    def __iter__(self) -> Iterator[Handler]:
        return iter(tuple(self._handlers.values()))

    def prepare(self) -> None:
        """Read every handler's annotations now, so that a worker does not start with one that cannot run."""
        for handler in self:
            handler.prepare()


def _plain(handler: Handler) -> Callable[[str], str | None]:
    function, arguments = handler.function, handler.arguments.call

    def call(payload: str) -> str | None:
        try:
            args, kwargs = arguments(payload)
        except InvalidInput as error:
            raise _mismatch(error) from None
        return storable(function(*args, **kwargs))

    return call


def _awaited(handler: Handler) -> Callable[[str], Coroutine[Any, Any, str | None]]:
    function, arguments = handler.function, handler.arguments.call

    async def call(payload: str) -> str | None:
        try:
            args, kwargs = arguments(payload)
        except InvalidInput as error:
            raise _mismatch(error) from None
        return storable(await function(*args, **kwargs))

    return call


def _mismatch(error: InvalidInput) -> ArgumentsMismatch:
    return ArgumentsMismatch(str(error), final=isinstance(error, NotJson))


def _place(function: Callable[..., Any]) -> tuple[str, int] | int:
    code = _code(function)
    return (code.co_filename, code.co_firstlineno) if code else id(function)


def _where(handler: Handler) -> str:
    code = _code(handler.function)
    return f"in {code.co_filename}:{code.co_firstlineno}" if code else f"by {handler.function!r:.120}"


def _code(function: Callable[..., Any]) -> CodeType | None:
    return getattr(inspect.unwrap(function), "__code__", None)
