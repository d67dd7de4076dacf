"""Short words for tests: a job, a worker, a claim, an outcome. Over the Protocols only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workmill.domain.job import Claimed
from workmill.domain.outcome import ErrorReport, Failed, FailureKind, Fence, Outcome, Released, ReleaseReason, Succeeded, Verdict
from workmill.domain.submission import new_job
from workmill.domain.worker import Hello, Wants
from workmill.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.domain.job import NewJob, Receipt
    from workmill.store.base import Store, Work

LEASE = 15.0


def a_job(type: str = "noop", payload: str = "{}", *, id: str | None = None, **options: Any) -> NewJob:
    """A checked submission under a new id."""
    return new_job(id or new_id(), type, payload, options)


def submit(store: Store, type: str = "noop", payload: str = "{}", *, id: str | None = None, **options: Any) -> Receipt:
    """Submit one job."""
    return store.submit([a_job(type, payload, id=id, **options)])[0]


def submit_many(store: Store, count: int, **options: Any) -> list[Receipt]:
    """Submit so many jobs of one kind."""
    return store.submit([a_job(**options) for _ in range(count)])


def join(store: Work, name: str = "worker", *, lease: float = LEASE, types: Sequence[str] | None = None, **options: Any) -> str:
    """Register a worker and return its id."""
    given = {"host": "host", "pid": 1, "version": "0", **options}
    return store.join(Hello(name=name, lease_seconds=lease, types=None if types is None else tuple(types), **given))


def claim(store: Work, worker: str, count: int = 1, queue: str | None = "default") -> list[Claimed]:
    """Claim up to so many jobs of a queue (None: of all)."""
    wants = Wants(anywhere=count) if queue is None else Wants(queues={queue: count})
    return list(store.exchange(worker, (), wants).claimed)


def claim_one(store: Work, worker: str, queue: str | None = "default") -> Claimed:
    """Claim one job that must be there."""
    (claimed,) = claim(store, worker, 1, queue)
    return claimed


def report(store: Work, worker: str, *outcomes: Outcome) -> list[Verdict]:
    """Hand in outcomes, claim nothing."""
    return list(store.exchange(worker, outcomes, Wants()).verdicts)


def succeeded(run: Claimed | Fence, result: str | None = "null", *, waited: int = 0, ran: int = 0) -> Succeeded:
    """The outcome of a run that returned."""
    return Succeeded(_fence(run), result, waited, ran)


def failed(run: Claimed | Fence, message: str = "boom", **options: Any) -> Failed:
    """The outcome of a run that raised."""
    kind = options.pop("kind", FailureKind.ERROR)
    error = ErrorReport(options.pop("error_class", "ValueError"), message, options.pop("traceback", "trace"))
    return Failed(_fence(run), kind, error, options.pop("waited", 0), options.pop("ran", 0), **options)


def released(run: Claimed | Fence, reason: ReleaseReason = ReleaseReason.SHUTDOWN, delay: float = 0.0, detail: str = "") -> Released:
    """The outcome of a run that was given back."""
    return Released(_fence(run), reason, delay, detail)


def _fence(run: Claimed | Fence) -> Fence:
    return run.fence if isinstance(run, Claimed) else run
