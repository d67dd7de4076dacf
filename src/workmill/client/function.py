"""What `@mill.job` makes of a function: still the function, and the way to have it run elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from workmill.arguments import Arguments
from workmill.client.handle import Job
from workmill.client.link import Link, inherited_traceparent
from workmill.client.operators import Jobs
from workmill.client.options import Options, Template, check_give_up_on
from workmill.client.plain import call
from workmill.domain.job import NewJob
from workmill.domain.submission import check_key
from workmill.registry import Handler

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Key = Callable[..., str | None]


class PreparedJob(Generic[T]):
    """A job that has everything but its row: for `mill.enqueue_many`. Enqueueing it again changes nothing, since it has its id."""

    __slots__ = ("new",)

    def __init__(self, new: NewJob) -> None:
        self.new = new

    @property
    def id(self) -> str:
        """The id that the job will have."""
        return self.new.id


class Submittable(Generic[P, T]):
    """A function with options. Its methods take what the function takes, and refuse what does not fit before anything is written."""

    def __init__(self, link: Link, handler: Handler, template: Template, key: Key | None = None, connection: Any = None) -> None:
        self._link = link
        self._handler = handler
        self._template = template
        self._key = key
        self._connection = connection

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> PreparedJob[T]:
        """Prepare a job for `mill.enqueue_many`.

        Raises:
            InvalidInput: an argument does not fit; names it and the rule.

        """
        return PreparedJob(self._new(args, kwargs))

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        """Have the function called by a worker. The job is durable when this returns.

        Raises:
            InvalidInput: an argument does not fit; names it and the rule.

        """
        (receipt,) = self._link.submit([self._new(args, kwargs)], self._connection)
        return Job(self._link, receipt)

    async def enqueue_async(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        """`enqueue` without blocking the event loop. Cancelled, it may have submitted or not."""
        (receipt,) = await self._link.submit_async([self._new(args, kwargs)], self._connection)
        return Job(self._link, receipt)

    def using(self, *, connection: Any = None, **options: Unpack[Options]) -> Submittable[P, T]:
        """The same function with other options for the jobs that are enqueued through what this returns.

        `connection`: the caller's own connection, in whose open transaction the job is inserted: rolled back means never existed.
        """
        check_give_up_on(options, self._handler.give_up_on)
        template = self._template.merged(options)
        key = None if "unique_key" in options else self._key
        return Submittable(self._link, self._handler, template, key, self._connection if connection is None else connection)

    def _new(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        payload = self._handler.arguments.payload(args, kwargs)
        new = self._template.new(payload, inherited_traceparent())
        key = self._key and self._key(*args, **kwargs)
        return new if key is None else new._replace(unique_key=check_key(key))


class JobFunction(Submittable[P, T], Generic[P, R, T]):
    """A function that was declared as a job. Called, it is the plain function, in which `current_job()` is a stand-in."""

    def __init__(self, link: Link, handler: Handler, template: Template, key: Key | None = None) -> None:
        super().__init__(link, handler, template, key)
        update_wrapper(self, handler.function)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return call(self._handler, *args, **kwargs)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<job {self.type}>"

    @property
    def type(self) -> str:
        """The type of its jobs."""
        return self._handler.name

    def check_may_enqueue(self) -> None:
        """Raise what a test's store in memory has against the store that its jobs go to."""
        self._link.check_may_submit()

    @property
    def arguments(self) -> Arguments:
        """Its parameters, as payloads carry them."""
        return self._handler.arguments

    @property
    def jobs(self) -> Jobs:
        """`mill.jobs` of the Workmill that it belongs to."""
        return Jobs(self._link)
