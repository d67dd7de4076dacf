"""What a store does, in domain verbs. The docstrings are the contract; `workmill.testing.conformance` holds every store to it.

All operations are synchronous and thread-safe. Every write operation is one transaction (upkeep steps: one each batch) and
is durable when it returns. "Now" is the store's clock. Durations are microseconds where a name does not say seconds.

Any operation may raise `StoreUnavailable` (nothing is known of its effect; reads may be repeated; a repeated submission
of the same ids makes nothing twice) or `StoreFailure` (nothing took effect).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from workmill.domain.states import State

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from workmill.domain.job import Bulk, History, Job, NewJob, Page, Receipt, Selection
    from workmill.domain.outcome import Fence, Outcome
    from workmill.domain.queue import AuditEntry, Queue, QueueStats
    from workmill.domain.worker import Exchange, Held, Hello, Orders, Wants, Worker
    from workmill.store.heads import Ready


class Work(Protocol):
    """All that the engine needs; implemented by the stores, and over HTTP by `remote`."""

    def join(self, hello: Hello) -> str:
        """Register a worker process and return its new id; its lease begins now."""

    def exchange(
        self, worker_id: str, outcomes: Sequence[Outcome], wants: Wants, held: Sequence[Fence] | None = None, seq: int = 0
    ) -> Exchange:
        """Record outcomes and claim jobs in one transaction.

        Each outcome is applied only while its (id, lease, worker_id) still runs; otherwise its verdict is `LeaseLost` and
        nothing else of it takes effect. The repeat of an outcome that is on record is `Accepted` and changes nothing. Every
        verdict belongs to its own outcome, also when an id is unknown or named twice (the second is a repeat).
        A failed run leads where `transitions.after_failure` says, a released one where `after_release` says.

        Claims at most `wants` of each queue, each under a new, higher lease, never more than the queue's limit, none from a
        paused queue, none before its time, none past its deadline; returned queue by queue in the order priority (high
        first), run_at, id. A job set aside is claimed only as its reason allows: `suspect` by a worker that holds no
        suspect, `unknown_type` by one whose hello named the type. A draining worker claims nothing. Claims never wait for
        rows that others hold.

        `held` (everything the worker holds, with a rising `seq`) renews its lease as a heartbeat does; None does not.
        A worker that is gone gets `known=False`.
        """

    def heartbeat(self, worker_id: str, held: Sequence[Held], seq: int) -> Orders:
        """Renew the worker's lease by the list of everything it holds, and return its orders.

        A `seq` that is not higher than the last one renews nothing and takes nothing back, but is answered. A running job of this worker
        that is not in the list and was claimed longer than a lease ago is given back uncharged (its claim's answer never arrived).
        Progress in the list is stored with the fence. `lost` names runs in the list that are no longer this worker's;
        `cancel` those whose cancellation was requested.

        Raises:
            NotFound: the worker is gone.

        """

    def leave(self, worker_id: str) -> int:
        """Give everything this worker still holds back, uncharged, and end its lease; returns how many. Unknown workers: 0."""


class OnLoop(NamedTuple):
    """A caller's connection that belongs to an event loop, for a thread to use while that loop runs."""

    connection: Any
    loop: AbstractEventLoop


class Submission(Protocol):
    """How jobs come in."""

    def submit(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Insert all jobs in one transaction and return one receipt each, in order.

        A job is queued when it is due, otherwise scheduled; one whose deadline has passed is expired by the next upkeep turn.
        A taken unique key (type, key) inserts nothing: its receipt names the live job. Two jobs of one call with the same
        key: the second gets the first. A repeated id is answered with the job that has it and changes nothing.

        Raises:
            Conflict: `key_busy`: another open transaction has held a unique key for a second, and nobody can say whether it will be taken.

        """

    def submit_soon(self, jobs: Sequence[NewJob]) -> Future[list[Receipt]]:
        """`submit` without waiting, for event loops: the future has its answer or its error. It must not be cancelled."""

    def submit_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        """`submit` inside the caller's open transaction: rolled back means never existed. A connection of an event loop comes `OnLoop`.

        Its locks (of rows and unique keys) last until the caller's transaction ends; nothing of the caller's session is changed.

        Raises:
            TransactionTooOld: (SQLite) the transaction has read and another process has written since.

        """


class Turn(NamedTuple):
    """What one turn of upkeep did; `won` False: another process had the turn and nothing was done."""

    won: bool
    promoted: int = 0
    rescued: int = 0
    expired: int = 0
    buried: int = 0
    pruned: int = 0
    folded: int = 0

    @property
    def busy(self) -> bool:
        """Whether a step filled its batch, so that there is likely more to do at once."""
        return max(self.promoted, self.rescued, self.expired, self.buried, self.pruned, self.folded) >= UPKEEP_BATCH


UPKEEP_BATCH = 1_000


class Upkeep(Protocol):
    """What keeps a store in order. Any process may try at any time; one conditional write wins the turn for all steps."""

    def win_turn(self, interval: float) -> bool:
        """Take the turn when none was taken for `interval` seconds, and move the lease clock.

        The observed clock advances by the time since the last turn, at least 0 and at most 2 s, so that an outage or a clock step
        hardly ends a lease.
        """

    def promote(self, limit: int = UPKEEP_BATCH) -> int:
        """Queue up to `limit` scheduled or retrying jobs whose time has come (aside, when they are suspects)."""

    def rescue(self, limit: int = UPKEEP_BATCH) -> int:
        """Take back up to `limit` running jobs of workers whose lease ended by the observed clock.

        All of them become suspects. `losses` rise as `transitions.is_charged` says: for the suspect the worker held or, when it held
        none, for all; the attempt is not charged. They lead where `transitions.after_loss` says, waiting `retry.loss_delay`.
        """

    def expire(self, limit: int = UPKEEP_BATCH) -> int:
        """End up to `limit` jobs that did not start before their deadline."""

    def bury(self, limit: int = UPKEEP_BATCH) -> int:
        """End up to `limit` jobs that have been aside as `unknown_type` for 24 h, as dead with that reason."""

    def prune(self, retain: float | None, retain_dead: float | None, limit: int = UPKEEP_BATCH) -> int:
        """Remove up to `limit` jobs that ended longer than `retain` seconds ago (dead ones: `retain_dead`); None keeps them."""

    def fold(self, limit: int = 10 * UPKEEP_BATCH) -> int:
        """Merge up to `limit` rows of count and stat deltas into the maintained tables, roll old minutes up to hours."""


class Operating(Protocol):
    """The operators' verbs. `actor` and what was done go into the audit in the same transaction.

    The first four look at up to `limit` jobs of a selection (or look for them for 200 ms), newest first, in one transaction; while
    `next` of the answer is set it is the `cursor` to go on with. A selection that names neither ids nor states means the states its
    verb is for. Ids that no job has are skipped as `not_found`, jobs that another transaction holds for long as `busy`.

    Raises:
        InvalidInput: names the argument or field, and the rule; before anything is written.

    """

    def cancel(self, selection: Selection, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        """Cancel waiting jobs at once, ask running ones to stop; `done` counts both.

        Skips those that have ended (`ended`) or have been asked before (`cancel_requested`).
        """

    def revive(self, selection: Selection, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        """Queue dead, cancelled, expired and skipped jobs again: lease + 1, counters anew, history kept, cancel and deadline cleared.

        Skips live and succeeded jobs (`not_revivable`) and those whose unique key has been taken (`key_taken`).
        """

    def discard(self, selection: Selection, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        """Remove dead, cancelled, expired and skipped jobs; skips others (`not_discardable`)."""

    def reschedule(self, selection: Selection, run_at: int | None, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        """Move scheduled, retrying and queued jobs to another time (microseconds; None: now); skips others (`not_waiting`)."""

    def count(self, selection: Selection, *, limit: int = 100_000) -> int:
        """How many jobs a selection matches now, for a dry run; stops at `limit`."""

    def pause(self, queue: str, *, actor: str) -> None:
        """No claim that begins after this returns takes from the queue. The queue need not exist yet."""

    def resume(self, queue: str, *, actor: str) -> None:
        """Undo `pause`."""

    def limit(self, queue: str, limit: int | None, *, actor: str) -> None:
        """At most `limit` jobs of the queue run at once across all workers (None: no limit), exactly, for every claim that begins later."""

    def drain(self, worker_id: str, *, actor: str) -> None:
        """Tell a worker to claim nothing, give back what has not started and stay.

        Raises:
            NotFound: no such live worker.

        """

    def undrain(self, worker_id: str, *, actor: str) -> None:
        """Undo `drain`."""

    def set_concurrency(self, worker_id: str, concurrency: int | None, *, actor: str) -> None:
        """Tell a worker how many jobs to run at once in its pool for all queues (None: what it was started with)."""


class Reading(Protocol):
    """Reads on their own connections; each call sees one snapshot."""

    def job(self, job_id: str) -> Job:
        """The whole job.

        Raises:
            NotFound: no such job.

        """

    def jobs(self, selection: Selection, *, limit: int = 50, cursor: str | None = None) -> Page:
        """A page of jobs, newest first, without payloads and results. After 200 ms of looking it returns what it has and a cursor."""

    def endings(self, ids: Sequence[str]) -> dict[str, State]:
        """The states of those of the jobs that have ended."""

    def history(self, job_id: str) -> History:
        """The attempts of a job, oldest first; the current or successful one is made from the job's row and comes last."""

    def counts(self) -> dict[tuple[str, State], int]:
        """Jobs by queue and state, from the maintained counts."""

    def queues(self) -> list[Queue]:
        """Every queue that ever had a job or a setting, by name."""

    def stats(self, window_seconds: float) -> list[QueueStats]:
        """What each queue did within the last whole minutes of the window and the current one."""

    def heads(self, queues: Sequence[str], *, room: int, past: int = 0) -> list[Ready]:
        """What could be claimed next of these queues, in order, up to `room` of each behind its first `past`; nothing set aside."""

    def aside(self, queue: str, *, limit: int) -> int:
        """How many of a queue's queued jobs are set aside: suspects, and those of a type that their worker did not know; up to `limit`."""

    def workers(self, *, gone: bool = False) -> list[Worker]:
        """The live workers (and, when asked, those that are gone but still named by running jobs), by name."""

    def audit(self, *, limit: int = 100) -> list[AuditEntry]:
        """The latest lines of the audit, newest first."""

    def invariants(self) -> list[str]:
        """The violations of RELIABILITY's invariants that one snapshot can show; empty when all hold."""

    def describe(self) -> Mapping[str, Any]:
        """What this store is: kind, version of the database, durability settings, schema version, size in bytes."""


class Waking(Protocol):
    """Hints that there may be something to claim. Never the truth: polling always covers."""

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` soon after any transaction, of this process or another, that may have queued jobs or ended some; returns how to stop.

        `wake` must be quick and may be called from any thread, too often, or for nothing.
        """


class Store(Work, Submission, Upkeep, Operating, Reading, Waking, Protocol):
    """A store: all of it, and its life. Constructing one opens nothing; the first use does, once in each process (also after a fork)."""

    url: str

    def migrate(self) -> list[str]:
        """Bring the schema up to date and return the names of the migrations that ran."""

    def pending_migrations(self) -> list[str]:
        """The migrations that `migrate` would run, without running them."""

    def migration_sql(self) -> str:
        """The statements that `migrate` would run, as text."""

    def close(self) -> None:
        """Close every connection of this process; a later use opens them again."""


__all__ = [
    "UPKEEP_BATCH",
    "OnLoop",
    "Operating",
    "Reading",
    "State",
    "Store",
    "Submission",
    "Turn",
    "Upkeep",
    "Waking",
    "Work",
]
