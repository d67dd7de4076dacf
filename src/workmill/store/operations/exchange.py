"""Finish and claim in one transaction: the heart of the engine."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from workmill.domain.errors import StoreError
from workmill.domain.outcome import ErrorReport, Failed, FailureKind, LeaseLost, ReleaseReason
from workmill.domain.worker import Exchange, Wants, WorkerState
from workmill.store.operations import workers
from workmill.store.operations.claims import Claimer, read_rules
from workmill.store.operations.deltas import Deltas
from workmill.store.operations.outcomes import Recorder
from workmill.store.operations.upkeep import Keeping
from workmill.store.session import BadData, Operations, repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.domain.job import Claimed
    from workmill.domain.outcome import Fence, Outcome, Verdict
    from workmill.store.heads import Ready
    from workmill.store.session import Session

UNSTORABLE: Final = "unstorable"
NOTHING: Final = Wants()


class Listed(NamedTuple):
    """Everything a worker holds, and the number of that list."""

    held: Sequence[Fence]
    seq: int


def spread() -> float:
    """The jitter of a backoff, in [-1, 1]."""
    return random.uniform(-1.0, 1.0)


class Exchanging(Operations):
    """Implements `exchange` of `store.base.Work`. What it finds past its deadline it leaves to upkeep's `expire`."""

    def exchange(
        self, worker_id: str, outcomes: Sequence[Outcome], wants: Wants, held: Sequence[Fence] | None = None, seq: int = 0
    ) -> Exchange:
        listed = None if held is None else Listed(held, seq)

        def exchange(dispatched: Sequence[Ready] | None) -> Exchange:
            answer, overdue = self._exchange_all(worker_id, outcomes, wants, listed, dispatched)
            if overdue:
                with suppress(StoreError):  # the answer stands, and upkeep comes by in any case
                    Keeping(self._database).expire()
            return answer

        heads = self._database.heads
        return exchange(None) if heads is None else heads.lend(worker_id, wants, exchange, needed=bool(outcomes) or listed is not None)

    def _exchange_all(
        self, worker_id: str, outcomes: Sequence[Outcome], wants: Wants, listed: Listed | None, dispatched: Sequence[Ready] | None
    ) -> tuple[Exchange, bool]:
        """The exchange, whatever the data of its outcomes."""
        try:
            return self._exchange(worker_id, outcomes, wants, listed, dispatched)
        except BadData as error:
            if not outcomes:
                raise
            verdicts = self._record_halves(worker_id, outcomes, error)
            answer, overdue = self._exchange(worker_id, (), wants, listed, dispatched)
            return replace(answer, verdicts=tuple(verdicts)), overdue

    @repeated
    def _exchange(
        self,
        worker_id: str,
        outcomes: Sequence[Outcome],
        wants: Wants,
        listed: Listed | None = None,
        dispatched: Sequence[Ready] | None = None,
    ) -> tuple[Exchange, bool]:
        """The exchange as one transaction, and whether it met a job that is past its deadline."""
        with self._database.write() as session:
            worker = workers.hold(session, worker_id)
            if worker is None:
                return Exchange(tuple(LeaseLost(outcome.fence) for outcome in outcomes), (), known=False), False
            deltas = Deltas()
            verdicts = Recorder(session, worker_id, deltas, spread).record(outcomes) if outcomes else []
            if listed is not None:
                _renew(session, worker_id, worker, listed)
            claimed: list[Claimed] = []
            rules, overdue, apart = read_rules(session), False, False
            if wants and worker.state == WorkerState.RUNNING:
                claimer = Claimer(session, worker_id, worker.types, rules)
                claimed, overdue, apart = claimer.claim(wants, deltas, dispatched), claimer.overdue, claimer.apart
            deltas.append(session)
            if outcomes:
                session.announce()
        answer = Exchange(
            tuple(verdicts),
            tuple(claimed),
            paused=rules.paused,
            limited=frozenset(rules.limits),
            draining=worker.state == WorkerState.DRAINING,
            apart=apart,
        )
        return answer, overdue

    def _record_halves(self, worker_id: str, outcomes: Sequence[Outcome], error: BadData) -> list[Verdict]:
        """The outcomes of a batch that failed on some outcome's data: that one becomes a failure that says so, the others are recorded."""
        if len(outcomes) == 1:
            return [self._replace(worker_id, outcomes[0], error)]
        middle = len(outcomes) // 2
        return [*self._record_part(worker_id, outcomes[:middle]), *self._record_part(worker_id, outcomes[middle:])]

    def _record_part(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Verdict]:
        try:
            return list(self._exchange(worker_id, outcomes, NOTHING)[0].verdicts)
        except BadData as error:
            return self._record_halves(worker_id, outcomes, error)

    def _replace(self, worker_id: str, outcome: Outcome, error: BadData) -> Verdict:
        """The end of a run whose outcome cannot be stored. Where not even its id can be, there is no such run."""
        report = ErrorReport(UNSTORABLE, str(error).encode(errors="backslashreplace").decode())
        try:
            unstorable = Failed(outcome.fence, FailureKind.ERROR, report, 0, 0, final=True)
            return self._exchange(worker_id, (unstorable,), NOTHING)[0].verdicts[0]
        except BadData:
            return LeaseLost(outcome.fence)


def _renew(session: Session, worker_id: str, worker: workers.Worker, listed: Listed) -> None:
    """Renew the worker's lease, and take back what it does not know of."""
    if workers.renew(session, worker_id, listed.seq):
        runs = workers.never_answered(session, worker, workers.held_runs(session, worker_id), set(listed.held))
        workers.give_back(session, worker_id, runs, ReleaseReason.UNANSWERED)
