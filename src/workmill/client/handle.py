"""A job in the hands of an application."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from workmill.client.link import Link
from workmill.domain.errors import Conflict, JobFailed
from workmill.domain.job import Job as JobRecord
from workmill.domain.job import Progress, Receipt
from workmill.domain.outcome import ErrorReport
from workmill.domain.states import FINAL, State
from workmill.results import read_plain

T = TypeVar("T")


class Job(Generic[T]):
    """A job that was submitted. `T` is what its function returns.

    `id`, `queue`, `type`, `state` and `created` are known from the submission; everything else is read from the store when it is first
    asked for. What has been read stays as it was until `refresh` or `wait`.
    """

    __slots__ = ("_link", "_record", "_whole", "created", "id", "queue", "state", "type")

    def __init__(self, link: Link, receipt: Receipt) -> None:
        self._link = link
        self._record: JobRecord | None = None
        self._whole = False
        self.id, self.state, self.queue, self.type, self.created = receipt

    id: str
    state: State
    """As last seen; `refresh()` looks again."""
    queue: str
    type: str
    created: bool
    """False when the unique key was taken: this is the job that has it."""

    @classmethod
    def of(cls, link: Link, record: JobRecord, *, whole: bool = True) -> Self:
        """A handle for what was read; `whole` False: without payload and result, as lists have it."""
        job = cls(link, Receipt(record.id, record.state, record.queue, record.type, created=False))
        job._record, job._whole = record, whole
        return job

    def __repr__(self) -> str:
        return f"<Job {self.type} {self.id} {self.state}>"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Job) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def refresh(self) -> Self:
        """Read everything anew.

        Raises:
            NotFound: the job is gone.

        """
        self._record, self._whole = self._link.store.job(self.id), True
        self.state = self._record.state
        return self

    async def refresh_async(self) -> Self:
        """`refresh` without blocking the event loop."""
        return await self._link.run(self.refresh)

    def wait(self, timeout: float | None = None) -> Self:
        """Block until the job has ended in whatever state, for at most `timeout` seconds, and read it.

        Raises:
            WaitTimeout: it had not ended by then. It goes on.

        """
        self._link.wait(self.id, timeout)
        return self.refresh()

    async def wait_async(self, timeout: float | None = None) -> Self:  # noqa: ASYNC109 - the same as for `wait`, with its own error
        """`wait` without blocking the event loop."""
        await self._link.wait_async(self.id, timeout)
        return await self.refresh_async()

    @property
    def result(self) -> T:
        """What the function returned.

        Raises:
            JobFailed: the job ended without success.
            Conflict: it has not ended.
            UnstorableResult: it succeeded, and what it returned could not be kept.

        """
        record = self._ended()
        if record.state is not State.SUCCEEDED:
            raise JobFailed(self.id, record.state, record.error and record.error.type, record.error and record.error.message)
        handler = self._link.registry.get(self.type)
        read = read_plain if handler is None else handler.read_result
        return read(record.result)  # type: ignore[no-any-return]

    @property
    def payload(self) -> Any:
        """The payload, decoded from JSON."""
        return json.loads(self.payload_text)

    @property
    def payload_text(self) -> str:
        """The payload as the exact text that was submitted."""
        return self._full().payload or "null"

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata of the submission."""
        return json.loads(self.record.meta or "{}")  # type: ignore[no-any-return]

    @property
    def record(self) -> JobRecord:
        """All there is, as last read."""
        return self._record or self._full()

    @property
    def error(self) -> ErrorReport | None:
        """The error of the latest failed attempt: `type`, `message`, `traceback`."""
        return self.record.error

    @property
    def progress(self) -> Progress | None:
        """How far it has come, as its function said."""
        return self.record.progress

    @property
    def attempt(self) -> int:
        """How many attempts have begun."""
        return self.record.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts there may be."""
        return self.record.max_attempts

    @property
    def priority(self) -> int:
        """-100 to 100, higher runs first."""
        return self.record.priority

    @property
    def tags(self) -> tuple[str, ...]:
        """The names to find it by."""
        return self.record.tags

    @property
    def unique_key(self) -> str | None:
        """The key that only one live job of its type can have."""
        return self.record.unique_key

    @property
    def created_at(self) -> datetime:
        """When it was submitted."""
        return self.record.created_at

    @property
    def run_at(self) -> datetime:
        """When it is, or was, due."""
        return self.record.run_at

    @property
    def started_at(self) -> datetime | None:
        """When its function was last called."""
        return self.record.started_at

    @property
    def finished_at(self) -> datetime | None:
        """When it ended."""
        return self.record.finished_at

    def _full(self) -> JobRecord:
        """The record with payload and result."""
        if self._record is None or not self._whole:
            self.refresh()
        assert self._record is not None  # noqa: S101 - refresh has set it
        return self._record

    def _ended(self) -> JobRecord:
        if self._record is None or not self._whole or self._record.state not in FINAL:
            self.refresh()
        record = self._full()
        if record.state not in FINAL:
            raise Conflict("not_ended", f"job {self.id} is {record.state} and has no result yet; wait() for it")
        return record
