"""`Workmill`: an application's jobs and their store."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from workmill.client.function import JobFunction, Key, PreparedJob
from workmill.client.handle import Job
from workmill.client.link import Link, inherited_traceparent
from workmill.client.naming import default_name
from workmill.client.operators import Jobs, Queues, Workers
from workmill.client.options import Options, Template, check_give_up_on
from workmill.codec import to_json
from workmill.config import parse_size
from workmill.domain.errors import ConfigurationError
from workmill.domain.limits import check_integer
from workmill.domain.outcome import ErrorReport
from workmill.domain.queue import AuditEntry
from workmill.domain.retry import Retry
from workmill.engine.context import RunningJob
from workmill.engine.handlers import Hooks
from workmill.registry import Handler, Registry
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from workmill.config import Settings
    from workmill.engine.worker import Worker, WorkerOptions

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])
D = TypeVar("D", bound=Callable[[RunningJob, ErrorReport], object])


class Declare(Protocol):
    """What `@mill.job(…)` is: from a function to a job that is still the function."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> JobFunction[P, Coroutine[Any, Any, T], T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> JobFunction[P, T, T]: ...


class Workmill:
    """An application's jobs and their store. Constructing one opens nothing; safe to share between threads and across forks.

    `url`: the store; without it `WORKMILL_STORE` decides at the first use. `imports`: modules that declare jobs of this object and that a
    worker must import, since nothing else would.
    """

    def __init__(self, url: str | None = None, *, imports: Sequence[str] = ()) -> None:
        if url is not None:
            open_store(url)  # opens nothing, and refuses a URL that names no store here rather than at the first use
        self.imports = tuple(imports)
        self.telemetry = Telemetry()
        """What its workers tell of themselves, for whoever subscribes."""
        self._hooks = Hooks()
        self._use(Link(url, Registry()))

    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> JobFunction[P, Coroutine[Any, Any, T], T]: ...
    @overload
    def job(self, function: Callable[P, T], /) -> JobFunction[P, T, T]: ...
    @overload
    def job(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | timedelta | None = None,
        expires_in: float | timedelta | None = None,
        max_losses: int | None = None,
        unique_key: str | Key | None = None,
        tags: Sequence[str] = (),
        isolate: bool = False,
        memory_limit: str | int | None = None,
    ) -> Declare: ...
    def job(self, function: Any = None, /, **options: Any) -> Any:
        """Declare a function as a job, as `@mill.job` or `@mill.job(queue=…)`.

        `name`: the type of its jobs, by default module and function, `app.mail.send`. `retry`, `timeout` and the others: see `Options`.
        `unique_key`: a text, or a function that makes it from the arguments. `isolate`: run in a child process that can be
        killed, with at most `memory_limit` ("512MB").

        Raises:
            ConfigurationError: the function cannot be a job, or another job has the name.
            InvalidInput: an option breaks its rule.

        """
        return self._declare(function, **options) if function is not None else lambda later: self._declare(later, **options)

    def enqueue(self, type: str, payload: Any = None, **options: Unpack[Options]) -> Job[Any]:
        """Submit a job by the name of its type, for functions that live elsewhere.

        `payload`: any value with a JSON form (an object for the arguments of a function), or a `RawPayload`. When the type is declared
        here it must fit; the options of its decorator do not apply.

        Raises:
            InvalidInput: the payload or an option breaks a rule.

        """
        handler, text = self.registry.get(type), to_json({} if payload is None else payload)
        check_give_up_on(options, () if handler is None else handler.give_up_on)
        template = Template(type, options)
        checked = text if handler is None else handler.arguments.check(text)
        return self.enqueue_many([PreparedJob(template.new(checked, inherited_traceparent()))])[0]

    def enqueue_many(self, jobs: Iterable[PreparedJob[T]], *, connection: Any = None) -> list[Job[T]]:
        """Submit jobs made by `function.job(…)` in one transaction: all or none. The handles come in the same order."""
        receipts = self._link.submit([job.new for job in jobs], connection)
        return [Job(self._link, receipt) for receipt in receipts]

    async def enqueue_many_async(self, jobs: Iterable[PreparedJob[T]], *, connection: Any = None) -> list[Job[T]]:
        """`enqueue_many` without blocking the event loop. Cancelled, it may have submitted all or nothing."""
        receipts = await self._link.submit_async([job.new for job in jobs], connection)
        return [Job(self._link, receipt) for receipt in receipts]

    def audit(self, limit: int = 100) -> list[AuditEntry]:
        """The latest lines of the audit, newest first: who did what to what."""
        return self.store.audit(limit=check_integer("limit", limit, 1, 10_000))

    def on_startup(self, hook: F) -> F:
        """Call a function in each worker before its first claim; what it raises stops the start."""
        return self._hook("on_startup", hook)  # type: ignore[no-any-return]

    def on_shutdown(self, hook: F) -> F:
        """Call a function in each worker when its last job has ended."""
        return self._hook("on_shutdown", hook)  # type: ignore[no-any-return]

    def on_dead(self, hook: D) -> D:
        """Call a function with each job that a run here has ended as dead, and with its error."""
        return self._hook("on_dead", hook)  # type: ignore[no-any-return]

    def middleware(self, around: F) -> F:
        """Run every job within a context manager that is called with the job; a generator function is made one. The first is outermost."""
        wrapped = contextmanager(around) if inspect.isgeneratorfunction(around) else around
        self._hook("middleware", wrapped)
        return around

    @property
    def hooks(self) -> Hooks:
        """What was registered above, as the engine takes it."""
        return self._hooks

    @property
    def url(self) -> str:
        """Where the store is."""
        return self._link.url

    @property
    def store(self) -> Store:
        """The store; opened by its first operation."""
        return self._link.store

    def worker(self, options: WorkerOptions | None = None, *, target: str | None = None, settings: Settings | None = None) -> Worker:
        """A worker on this store for these jobs: `run()` it, or `start()` and `stop()` it.

        `target`: `module:object` for the child processes of isolated jobs, when they cannot find it by themselves. `settings`: how long
        finished jobs are kept; without them the environment says.

        Raises:
            ConfigurationError: a job cannot be run.

        """
        from workmill.client.worker import build_worker  # noqa: PLC0415 - who only enqueues need not load the engine

        self.prepare()
        return build_worker(self._link, self.hooks, self.telemetry, options, target=target, settings=settings)

    @contextmanager
    def run_worker(self, options: WorkerOptions | None = None) -> Iterator[Worker]:
        """Run a worker in threads of this process for the time of the block; at its end it stops within its grace."""
        worker = self.worker(options)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()

    def prepare(self) -> None:
        """Import what declares jobs, and read all annotations: what a worker does before it starts.

        Raises:
            ConfigurationError: a module cannot be imported, or an annotation not resolved.

        """
        for module in self.imports:
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise ConfigurationError(f"imports: {module}: {error}") from error
        self.registry.prepare()

    def close(self) -> None:
        """End this process's threads and connections. A later use opens them again."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _use(self, link: Link) -> None:
        self._link = link
        self.registry = link.registry
        self.jobs = Jobs(link)
        """Find, read, retry, cancel, discard and reschedule jobs."""
        self.queues = Queues(link)
        """List, pause, resume and limit queues."""
        self.workers = Workers(link)
        """List, drain and resume workers."""

    def _declare(self, function: Callable[..., Any], name: str | None = None, **options: Any) -> JobFunction[..., Any, Any]:
        memory = options.pop("memory_limit", None)
        retry: Retry | None = options.get("retry")
        key = options.pop("unique_key") if callable(options.get("unique_key")) else None
        type_name = name or default_name(function)
        handler = Handler(
            type_name,
            function,
            isolate=options.pop("isolate", False),
            memory_limit=None if memory is None else parse_size("memory_limit", memory),
            give_up_on=() if retry is None else retry.give_up_on,
        )
        template = Template(type_name, options)
        self.registry.add(handler)
        return JobFunction(self._link, handler, template, key)

    def _hook(self, kind: str, hook: Any) -> Any:
        if not callable(hook) or inspect.iscoroutinefunction(hook):
            raise ConfigurationError(f"{kind}: must be a plain function, it is called outside of any event loop (got {hook!r:.120})")
        self._hooks = replace(self._hooks, **{kind: (*getattr(self._hooks, kind), hook)})
        return hook
