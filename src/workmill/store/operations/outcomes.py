"""How runs end: decided in Python by the domain's rules, applied by one statement a kind, counted, remembered."""

from __future__ import annotations

from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple

from workmill.domain.limits import MAX_SECONDS, MAX_SNOOZES, microseconds
from workmill.domain.outcome import Accepted, ErrorReport, Failed, FailureKind, LeaseLost, Released, ReleaseReason, Succeeded
from workmill.domain.retry import decode_backoff, retry_delay
from workmill.domain.states import FINAL, State
from workmill.domain.transitions import after_failure, after_release
from workmill.store.heads import Ready
from workmill.store.operations import history

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.domain.outcome import AttemptKind, Outcome, Verdict
    from workmill.store.operations.deltas import Deltas
    from workmill.store.session import Session

UNKNOWN_TYPE: Final = ReleaseReason.UNKNOWN_TYPE.value
UNREADABLE_BACKOFF: Final = "unreadable_backoff"
TOO_MANY_SNOOZES: Final = ErrorReport("too_many_snoozes", f"snoozed more than {MAX_SNOOZES} times")

_accepted = partial(tuple.__new__, Accepted)
"""`Accepted` from the tuple of its fields, in a quarter of the time: it is made for every job."""


class Run(NamedTuple):
    """What an end is decided on: the columns of `read_runs`."""

    id: str
    lease: int
    queue: str
    type: str
    attempt: int
    max_attempts: int
    snoozes: int
    backoff: str | None
    cancelling: int
    run_at: int
    claimed_at: int
    priority: int


class End(NamedTuple):
    """What becomes of the job: the columns that `end_runs` is given."""

    id: str
    lease: int
    state: State
    run_at: int
    attempt: int
    snoozes: int
    aside: str | None
    started_at: int | None
    finished_at: int | None
    error_class: str | None = None
    error: str | None = None


class Recorder:
    """Records the outcomes that one worker hands in within one transaction. `spread` picks the jitter of backoffs, in [-1, 1]."""

    def __init__(self, session: Session, worker_id: str, deltas: Deltas, spread: Callable[[], float]) -> None:
        self._session = session
        self._worker_id = worker_id
        self._deltas = deltas
        self._spread = spread

    def record(self, outcomes: Sequence[Outcome]) -> list[Verdict]:
        """Apply each outcome whose run is still this worker's, and give a verdict on each, in order."""
        if len({outcome[0][0] for outcome in outcomes}) < len(outcomes):
            return self._record_twice(outcomes)
        succeeded = [outcome for outcome in outcomes if type(outcome) is Succeeded]
        if 0 < len(succeeded) < len(outcomes):
            self._hold(outcomes)
        ended = dict.fromkeys(self._finish(succeeded), State.SUCCEEDED)
        if len(ended) == len(outcomes):
            return [_accepted((outcome[0], State.SUCCEEDED)) for outcome in outcomes]
        ended |= self._end([outcome for outcome in outcomes if not isinstance(outcome, Succeeded)])
        ended |= self._on_record([outcome for outcome in outcomes if outcome.fence.id not in ended])
        return [
            Accepted(outcome.fence, ended[outcome.fence.id]) if outcome.fence.id in ended else LeaseLost(outcome.fence)
            for outcome in outcomes
        ]

    def _hold(self, outcomes: Sequence[Outcome]) -> None:
        """Take all the rows in one order, before they are written in two groups."""
        self._session.each("read_runs", sorted(outcome.fence for outcome in outcomes), worker=self._worker_id)

    def _record_twice(self, outcomes: Sequence[Outcome]) -> list[Verdict]:
        """A job is named more than once: the first of each, then what follows, which finds the first on record."""
        seen: set[str] = set()
        first = []
        for outcome in outcomes:
            first.append(outcome.fence.id not in seen)
            seen.add(outcome.fence.id)
        before = iter(self.record(list(compress(outcomes, first))))
        after = iter(self.record(list(compress(outcomes, [not each for each in first]))))
        return [next(before) if each else next(after) for each in first]

    def _finish(self, outcomes: Sequence[Succeeded]) -> list[str]:
        """The ids of the jobs that have succeeded now."""
        given = sorted((*fence, result, waited) for fence, result, waited, _ in outcomes)
        rows = self._session.each("finish_jobs", given, worker=self._worker_id)
        durations = {fence[0]: (waited, ran) for fence, _, waited, ran in outcomes}
        groups: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        for job_id, queue, job_type, lag in rows:
            waited, ran = durations[job_id]
            waits, runs = groups.get((queue, job_type)) or groups.setdefault((queue, job_type), ([], []))
            waits.append(lag + waited)
            runs.append(ran)
        for (queue, job_type), (waits, runs) in groups.items():
            self._deltas.move(queue, State.RUNNING, State.SUCCEEDED, len(runs))
            figures = self._deltas.figures(queue, job_type)
            figures.succeeded += len(runs)
            figures.time(waits, runs)
        return [row[0] for row in rows]

    def _end(self, outcomes: Sequence[Failed | Released]) -> dict[str, State]:
        """The states that failed and released runs have led to, by id."""
        given = {outcome.fence.id: outcome for outcome in outcomes}
        rows = self._session.each("read_runs", [outcome.fence for outcome in outcomes], worker=self._worker_id)
        runs = [Run._make(row) for row in rows]
        charged = [charge(run, given[run.id]) for run in runs]
        ends = [decide(run, outcome, self._session.now, self._spread()) for run, outcome in zip(runs, charged, strict=True)]
        self._session.each("end_runs", ends, worker=self._worker_id)
        ended = list(zip(runs, charged, ends, strict=True))
        history.record(self._session, [self._entry(*each) for each in ended])
        for each in ended:
            self._count(*each)
        if self._session.moves is not None:
            queued = [(run, end) for run, _, end in ended if end.state is State.QUEUED]
            self._session.moves.ready += [Ready(run.queue, run.id, run.priority, end.run_at) for run, end in queued if end.aside is None]
            self._session.moves.look |= any(end.aside is not None for _, end in queued)
        return {end.id: end.state for end in ends}

    def _entry(self, run: Run, outcome: Failed | Released, end: End) -> history.Entry:
        following = None if end.state in FINAL else end.run_at
        started, ended = end.started_at, self._session.now
        told = _told(outcome)
        return history.Entry(run.id, run.lease, run.attempt, kinds(outcome)[0], self._worker_id, started, ended, *told, following)

    def _count(self, run: Run, outcome: Failed | Released, end: End) -> None:
        self._deltas.move(run.queue, State.RUNNING, end.state)
        if isinstance(outcome, Failed):
            waited = run.claimed_at - run.run_at + outcome.waited
            figures = self._deltas.figures(run.queue, run.type)
            figures.failed += 1
            figures.dead += end.state is State.DEAD
            figures.time([waited], [outcome.ran])

    def _on_record(self, outcomes: Sequence[Outcome]) -> dict[str, State]:
        """The states of those jobs for which this worker has reported the same outcome before."""
        given = {outcome.fence.id: outcome for outcome in outcomes}
        rows = self._session.each("read_repeats", [outcome.fence for outcome in outcomes], worker=self._worker_id)
        return {job_id: State(state) for job_id, state, kind in rows if kind in kinds(given[job_id])}


def kinds(outcome: Outcome) -> tuple[AttemptKind, ...]:
    """How an outcome may stand on record."""
    match outcome:
        case Succeeded():
            return ("succeeded",)
        case Failed():
            return ("timeout",) if outcome.kind is FailureKind.TIMEOUT else ("error",)
        case Released():
            return ("released", "error") if outcome.reason is ReleaseReason.SNOOZE else ("released",)


def _told(outcome: Failed | Released) -> tuple[str, str | None, str | None]:
    """The class, message and traceback of the history's entry."""
    if isinstance(outcome, Failed):
        return outcome.error.type, outcome.error.message, outcome.error.traceback or None
    return outcome.reason.value, outcome.detail or None, None


def charge(run: Run, outcome: Failed | Released) -> Failed | Released:
    """The outcome itself, but one snooze too many is a failure."""
    if isinstance(outcome, Released) and outcome.reason is ReleaseReason.SNOOZE and run.snoozes >= MAX_SNOOZES:
        return Failed(outcome.fence, FailureKind.ERROR, TOO_MANY_SNOOZES, outcome.waited, outcome.ran)
    return outcome


def decide(run: Run, outcome: Failed | Released, now: int, spread: float) -> End:
    """What becomes of a job whose run failed or was given back."""
    return _failed(run, outcome, now, spread) if isinstance(outcome, Failed) else _released(run, outcome, now)


def _failed(run: Run, outcome: Failed, now: int, spread: float) -> End:
    error = outcome.error
    try:
        delay, final = retry_delay(decode_backoff(run.backoff), run.attempt, spread, outcome.retry_in), outcome.final
    except (ValueError, TypeError) as problem:  # what stands in the row is no backoff: no retry can be computed, ever
        delay, final = 0, True
        error = ErrorReport(UNREADABLE_BACKOFF, f"{problem} (the failure was {error.type}: {error.message})")
    state = after_failure(attempt=run.attempt, max_attempts=run.max_attempts, final=final, cancelling=bool(run.cancelling), delay=delay)
    ended = state in FINAL
    run_at, finished_at = (run.run_at, now) if ended else (now + delay, None)
    started_at = min(run.claimed_at + outcome.waited, now)
    return End(run.id, run.lease, state, run_at, run.attempt, run.snoozes, None, started_at, finished_at, error.type, error.message)


def _released(run: Run, outcome: Released, now: int) -> End:
    aside = outcome.reason is ReleaseReason.UNKNOWN_TYPE and not run.cancelling
    snoozed = outcome.reason is ReleaseReason.SNOOZE
    delay = 0 if aside else microseconds(min(max(0.0, outcome.delay), MAX_SECONDS))
    state = after_release(cancelling=bool(run.cancelling), delay=delay)
    moved = (delay or snoozed) and not run.cancelling  # what was given back unasked keeps its place, and what has ended its time
    run_at = now + delay if moved else run.run_at
    started_at = min(run.claimed_at + outcome.waited, now) if outcome.waited or outcome.ran else None
    finished_at = now if state in FINAL else None
    return End(
        run.id, run.lease, state, run_at, run.attempt - 1, run.snoozes + snoozed, UNKNOWN_TYPE if aside else None, started_at, finished_at
    )
