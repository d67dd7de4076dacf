"""A store without a store: what the rules say must happen, in plain Python over a dictionary. The oracle of the random tests.

It knows no batches, indexes, transactions or jitter, and shares nothing with the operations but the names of states and values. Times are
microseconds. Where a rule leaves room (the jitter of a wait), the model says within which bounds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from workmill.domain.outcome import Accepted, Failed, LeaseLost, Outcome, Released, ReleaseReason, Succeeded, Verdict
from workmill.domain.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from workmill.domain.job import NewJob
    from workmill.domain.outcome import Fence

SECOND = 1_000_000
DAY = 86_400 * SECOND
WAITING = {State.BLOCKED, State.SCHEDULED, State.QUEUED, State.RETRYING}
LIVE = WAITING | {State.RUNNING}
FAILED_ENDS = {State.DEAD, State.CANCELLED, State.EXPIRED, State.SKIPPED}


class Between(NamedTuple):
    """A time within bounds."""

    low: int
    high: int


@dataclass(eq=False)
class ModelJob:
    """A job as the rules see it."""

    new: NewJob
    state: State
    run_at: Between
    expires_at: int | None
    lease: int = 0
    attempt: int = 0
    losses: int = 0
    suspect: bool = False
    aside: str | None = None
    aside_since: int = 0
    worker: str | None = None
    claimed_at: int = 0
    finished_at: int = 0
    cancelling: bool = False
    record: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    """How each run ended: by lease, its worker and the kind of its end."""

    @property
    def order(self) -> tuple[int, int, str]:
        """Priority, then time, then id."""
        return (-self.new.priority, self.run_at.low, self.new.id)

    @property
    def live(self) -> bool:
        return self.state in LIVE

    def ready(self, now: int) -> bool:
        """Queued, and not past its deadline."""
        return self.state is State.QUEUED and (self.expires_at is None or self.expires_at > now)

    def move(self, state: State) -> None:
        """Enter a state that is not queued-and-aside."""
        self.state, self.aside = state, None

    def end(self, state: State, now: int) -> None:
        """Enter a final state."""
        self.move(state)
        self.finished_at = now

    def wait(self, now: int, delay: int, state: State) -> None:
        """Wait in a state for so long; not at all when it is zero."""
        self.run_at = Between(now + delay, now + delay)
        self.move(state if delay else State.QUEUED)


@dataclass
class ModelWorker:
    """A worker as the rules see it."""

    lease: int
    types: frozenset[str]
    lease_until: int
    seen_at: int
    seq: int = 0
    draining: bool = False


@dataclass
class Model:
    """All that a store holds."""

    now: Callable[[], int]
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    workers: dict[str, ModelWorker] = field(default_factory=dict)
    known_until: dict[str, int] = field(default_factory=dict)
    """When a type was last known to a worker that is gone now."""
    paused: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    observed: int = 0
    turned_at: int = 0

    # Submissions

    def submit(self, jobs: Sequence[NewJob]) -> list[tuple[str, State, bool]]:
        """The id, state and novelty that each receipt must show."""
        return [self._submit(job) for job in jobs]

    def _submit(self, new: NewJob) -> tuple[str, State, bool]:
        holder = self.jobs.get(new.id) or self._holder(new.type, new.unique_key)
        if holder:
            return (holder.new.id, holder.state, False)
        now = self.now()
        run_at = now + (new.delay or 0) if new.run_at is None else new.run_at
        deadline = new.expires_at if new.expires_in is None else now + new.expires_in
        state = State.QUEUED if run_at <= now else State.SCHEDULED
        self.jobs[new.id] = ModelJob(new, state, Between(run_at, run_at), deadline)
        return (new.id, state, True)

    def _holder(self, type: str, key: str | None) -> ModelJob | None:
        held = (job for job in self.jobs.values() if job.live and job.new.type == type and job.new.unique_key == key)
        return None if key is None else next(held, None)

    # Workers

    def join(self, worker: str, lease: int, types: Iterable[str]) -> None:
        """A worker joins; its lease begins now."""
        self.workers[worker] = ModelWorker(lease, frozenset(types), self._lease_clock() + lease, self.now())

    def _lease_clock(self) -> int:
        """The observed clock as the next turn would move it."""
        return self.observed + self._tick()

    def _tick(self) -> int:
        return min(max(self.now() - self.turned_at, 0), 2 * SECOND)

    def running(self, worker: str) -> list[ModelJob]:
        """What runs under a worker's name."""
        return [job for job in self.jobs.values() if job.state is State.RUNNING and job.worker == worker]

    def beat(self, worker: str, held: Iterable[Fence], seq: int) -> tuple[set[Fence], set[Fence]] | None:
        """What a beat must be told to cancel and what is lost; None: the worker is gone."""
        known = self.workers.get(worker)
        if known is None:
            return None
        listed = set(held)
        mine = {job.new.id: job for job in self.running(worker)}
        holding = {fence for fence in listed if fence.id in mine and mine[fence.id].lease == fence.lease}
        cancel = {fence for fence in holding if mine[fence.id].cancelling}
        if seq > known.seq:
            known.seq, known.lease_until, known.seen_at = seq, self._lease_clock() + known.lease, self.now()
            for job in mine.values():
                if job.claimed_at < self.now() - known.lease and job.new.id not in {fence.id for fence in holding}:
                    self._release(job, None, 0)
        return cancel, listed - holding

    def leave(self, worker: str) -> int:
        """A worker leaves and gives everything back."""
        held = self.running(worker) if worker in self.workers else []
        for job in held:
            self._release(job, None, 0)
        self._gone(worker, self.now())
        return len(held)

    def _gone(self, worker: str, seen_at: int | None = None) -> None:
        known = self.workers.pop(worker, None)
        if known:
            until = known.seen_at if seen_at is None else seen_at
            self.known_until.update({type: max(until, self.known_until.get(type, 0)) for type in known.types})

    # Claims

    def claim(self, worker: str, queues: Mapping[str, int], anywhere: int = 0) -> list[str]:
        """The ids that a claim must return, in order."""
        known = self.workers.get(worker)
        if known is None or known.draining:
            return []
        asked = dict(queues) or {job.new.queue: anywhere for job in self.jobs.values()}
        room = {queue: self._room(queue, wanted) for queue, wanted in asked.items()}
        candidates = sorted(self._candidates(worker, known, room), key=lambda job: job.order)
        chosen: list[ModelJob] = []
        for job in candidates:
            if room[job.new.queue] > 0 and (queues or len(chosen) < anywhere):
                room[job.new.queue] -= 1
                chosen.append(job)
        for job in chosen:
            self._start(job, worker)
        if queues:
            chosen.sort(key=lambda job: list(queues).index(job.new.queue))
        return [job.new.id for job in chosen]

    def _room(self, queue: str, wanted: int) -> int:
        occupied = sum(job.state is State.RUNNING and job.new.queue == queue for job in self.jobs.values())
        return 0 if queue in self.paused else min(wanted, self.limits.get(queue, wanted + occupied) - occupied)

    def _candidates(self, worker: str, known: ModelWorker, room: Mapping[str, int]) -> list[ModelJob]:
        ready = [job for job in self.jobs.values() if job.ready(self.now()) and room.get(job.new.queue, 0) > 0]
        found = [job for job in ready if job.aside is None or (job.aside == "unknown_type" and job.new.type in known.types)]
        suspects = [job for job in ready if job.aside == "suspect"]
        if suspects and not any(job.suspect for job in self.running(worker)):
            found.append(min(suspects, key=lambda job: job.order))
        return found

    def _start(self, job: ModelJob, worker: str) -> None:
        job.move(State.RUNNING)
        job.lease, job.attempt = job.lease + 1, job.attempt + 1
        job.worker, job.claimed_at = worker, self.now()

    # Outcomes

    def report(self, worker: str, outcome: Outcome) -> Verdict:
        """The verdict on an outcome, and its effect."""
        job = self.jobs.get(outcome.fence.id)
        if job is None or worker not in self.workers:
            return LeaseLost(outcome.fence)
        if (job.state, job.lease, job.worker) == (State.RUNNING, outcome.fence.lease, worker):
            self._apply(job, outcome)
        elif job.record.get(outcome.fence.lease) not in {(worker, kind) for kind in kinds_of(outcome)}:
            return LeaseLost(outcome.fence)
        return Accepted(outcome.fence, job.state)

    def _apply(self, job: ModelJob, outcome: Outcome) -> None:
        match outcome:
            case Succeeded():
                job.suspect = False
                job.record[job.lease] = (job.worker, "succeeded")
                job.end(State.SUCCEEDED, self.now())
            case Failed():
                self._fail(job, outcome)
            case Released():
                self._release(job, outcome.reason, round(outcome.delay * SECOND))

    def _fail(self, job: ModelJob, outcome: Failed) -> None:
        now = self.now()
        job.suspect = False
        job.record[job.lease] = (job.worker, outcome.kind.value)
        delays = backoff_of(job.new)
        seconds = delays[min(job.attempt, len(delays)) - 1] if outcome.retry_in is None else outcome.retry_in
        if job.cancelling:
            job.end(State.CANCELLED, now)
        elif outcome.final or job.attempt >= job.new.max_attempts:
            job.end(State.DEAD, now)
        else:
            job.wait(now, round(seconds * SECOND), State.RETRYING)

    def _release(self, job: ModelJob, reason: ReleaseReason | None, delay: int) -> None:
        now = self.now()
        job.suspect = False
        job.attempt -= 1
        job.record[job.lease] = (job.worker, "released")
        if job.cancelling:
            job.end(State.CANCELLED, now)
        elif reason is ReleaseReason.UNKNOWN_TYPE:
            job.move(State.QUEUED)
            job.aside, job.aside_since = "unknown_type", now
        elif delay or reason is ReleaseReason.SNOOZE:
            job.wait(now, delay, State.SCHEDULED)
        else:
            job.move(State.QUEUED)

    # Upkeep

    def turn(self, interval: int) -> bool:
        """Whether a turn is won; then the lease clock moves."""
        if self.turned_at <= self.now() < self.turned_at + interval:
            return False
        self.observed, self.turned_at = self._lease_clock(), self.now()
        return True

    def promote(self) -> int:
        due = [job for job in self.jobs.values() if job.state in {State.SCHEDULED, State.RETRYING} and job.run_at.low <= self.now()]
        for job in due:
            self._queue(job)
        return len(due)

    def _queue(self, job: ModelJob) -> None:
        since = job.aside_since if job.aside else self.now()
        aside = "suspect" if job.suspect else job.aside
        job.state, job.aside, job.aside_since = State.QUEUED, aside, since

    def rescue(self) -> int:
        """The loss of every worker that has been silent for its lease."""
        silent = [name for name, worker in self.workers.items() if worker.lease_until < self.observed]
        held = {name: self.running(name) for name in silent}
        for name, jobs in held.items():
            suspected = any(job.suspect for job in jobs)
            for job in jobs:
                self._lose(job, charged=job.suspect or not suspected or job.new.max_losses == 1)
            self._gone(name)
        return sum(map(len, held.values()))

    def _lose(self, job: ModelJob, *, charged: bool) -> None:
        now = self.now()
        job.attempt, job.losses, job.suspect = job.attempt - 1, job.losses + charged, True
        job.record[job.lease] = (job.worker, "worker_lost")
        if job.cancelling or job.losses >= job.new.max_losses:
            job.suspect = False
            job.end(State.CANCELLED if job.cancelling else State.DEAD, now)
        else:
            wait = 0 if job.losses <= 1 else min(3_600, 5 * 2 ** (job.losses - 2)) * SECOND
            job.move(State.RETRYING)
            job.run_at = Between(now + round(wait * 0.8) - bool(wait), now + round(wait * 1.2) + bool(wait))

    def expire(self) -> int:
        late = [job for job in self.jobs.values() if job.state in WAITING and job.expires_at is not None and job.expires_at <= self.now()]
        for job in late:
            job.end(State.EXPIRED, self.now())
        return len(late)

    def bury(self) -> int:
        known = {type for worker in self.workers.values() for type in worker.types}
        known |= {type for type, until in self.known_until.items() if until > self.now() - DAY}
        forgotten = [
            job
            for job in self.jobs.values()
            if job.aside == "unknown_type" and job.aside_since <= self.now() - DAY and job.new.type not in known
        ]
        for job in forgotten:
            job.end(State.DEAD, self.now())
        return len(forgotten)

    def prune(self, retain: int, retain_dead: int) -> int:
        kept = {job: retain_dead if job.state is State.DEAD else retain for job in self.jobs.values() if not job.live}
        old = [job.new.id for job, kept_for in kept.items() if job.finished_at < self.now() - kept_for]
        for job_id in old:
            del self.jobs[job_id]
        return len(old)

    # Operators

    def cancel(self, job_id: str) -> str | None:
        """Why a cancel does nothing, or None when it does."""
        job = self.jobs[job_id]
        if not job.live:
            return "ended"
        if job.state is State.RUNNING:
            already, job.cancelling = job.cancelling, True
            return "cancel_requested" if already else None
        job.end(State.CANCELLED, self.now())
        job.cancelling = True
        return None

    def revive(self, job_id: str) -> str | None:
        """Why a revival does nothing, or None when it does."""
        job = self.jobs[job_id]
        if job.state not in FAILED_ENDS:
            return "not_revivable"
        if self._holder(job.new.type, job.new.unique_key):
            return "key_taken"
        again = ModelJob(job.new, State.QUEUED, Between(self.now(), self.now()), None, lease=job.lease + 1)
        again.record = job.record
        self.jobs[job_id] = again
        return None

    def discard(self, job_id: str) -> str | None:
        """Why a discard does nothing, or None when it does."""
        if self.jobs[job_id].state not in FAILED_ENDS:
            return "not_discardable"
        del self.jobs[job_id]
        return None

    def reschedule(self, job_id: str, run_at: int) -> str | None:
        """Why a job is not moved to another time, or None when it is."""
        job = self.jobs[job_id]
        if job.state not in {State.SCHEDULED, State.RETRYING, State.QUEUED}:
            return "not_waiting"
        job.run_at = Between(run_at, run_at)
        if run_at <= self.now():
            self._queue(job)
        else:
            job.move(State.SCHEDULED)
        return None

    def counts(self) -> dict[tuple[str, State], int]:
        """Jobs by queue and state."""
        return dict(Counter((job.new.queue, job.state) for job in self.jobs.values()))


def kinds_of(outcome: Outcome) -> set[str]:
    """How an outcome may stand on record; one snooze too many stands there as an error."""
    match outcome:
        case Succeeded():
            return {"succeeded"}
        case Failed():
            return {outcome.kind.value}
        case Released():
            return {"released", "error"} if outcome.reason is ReleaseReason.SNOOZE else {"released"}


def backoff_of(new: NewJob) -> list[float]:
    """The delays of a job that was submitted with a list of them."""
    return [float(seconds) for seconds in (new.backoff or "[]").strip("[]").split(",")]
