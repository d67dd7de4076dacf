"""What the engine sees of a handler, of the registry that knows handlers, and of an application's hooks.

The registry implements these Protocols structurally: it stands below the engine and imports nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from workmill.domain.outcome import ErrorReport
    from workmill.engine.context import RunningJob

Kind = Literal["thread", "loop", "isolated"]
"""Which executor runs a handler: `def` a thread, `async def` the event loop, `isolate=True` (either) a child process."""


class Handler(Protocol):
    """What runs jobs of one type. A job's timeout and attempts come with the job: options are fixed at submission."""

    @property
    def name(self) -> str:
        """The type of job it runs."""

    @property
    def kind(self) -> Kind:
        """Which executor runs it."""

    @property
    def call(self) -> Callable[[str], Any]:
        """Run one job: from the exact payload text to the result as JSON text, or None for no result.

        `thread`: returns it. `loop`: returns a coroutine that does. `isolated`: either, by the function. Called once for each run, with
        `current_job()` set; decodes and validates the arguments, calls the function, encodes what it returned.
        Whatever escapes, `BaseException` of every kind, is a failed attempt (or what a `JobSignal` says).

        Raises:
            ArgumentsMismatch: the payload does not fit the function; the function was not called.

        """

    @property
    def give_up_on(self) -> tuple[type[BaseException], ...]:
        """Classes of exceptions after which the job is dead at once."""

    @property
    def memory_limit(self) -> int | None:
        """Bytes an isolated run may use; None: no limit. Means nothing for the other kinds."""


class Registry(Protocol):
    """The handlers of a worker."""

    @property
    def types(self) -> tuple[str, ...]:
        """The types it has handlers for, as the worker names them to the store."""

    def get(self, type: str) -> Handler | None:
        """The handler for a type of job (asked for each job: quick); None: unknown here, the job is set aside for another worker."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """An application's own code around the engine's. What one raises is reported and stops nothing, save in a middleware.

    `on_startup` runs in `Worker.start` before the first claim (an exception there stops the start), `on_shutdown` when the
    last job has ended. A middleware is called with the job and gives a context manager in which the run happens (in the thread, task or
    child of the run; plain `with`, also around coroutines); what it raises is the run's failure. `on_dead` hears, in a thread of its own,
    of each job that an outcome of this worker ended as dead.
    """

    on_startup: tuple[Callable[[], object], ...] = ()
    on_shutdown: tuple[Callable[[], object], ...] = ()
    middleware: tuple[Callable[[RunningJob], AbstractContextManager[object]], ...] = ()
    on_dead: tuple[Callable[[RunningJob, ErrorReport], object], ...] = ()
