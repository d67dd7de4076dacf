"""The exchange: one thread hands in all outcomes that have gathered and claims for what is free, in one transaction, again and again.

It alone counts slots and decides about runs that have not begun; others hand it runs through its outbox, or wake it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from workmill.clock import monotonic, sleep
from workmill.domain.limits import SECOND
from workmill.domain.outcome import Released, ReleaseReason
from workmill.domain.worker import Exchange, Wants
from workmill.engine.context import RunningJob, Stop
from workmill.engine.gate import Closed, Gate
from workmill.loops import Loop
from workmill.telemetry import DEBUG, WARNING, Telemetry

if TYPE_CHECKING:
    from workmill.engine.handlers import Registry
    from workmill.engine.ledger import Ledger
    from workmill.engine.member import Member
    from workmill.engine.pools import Pools
    from workmill.store.base import Work

SHORTEST_POLL: Final = 0.1
LONGEST_POLL: Final = 1.0
"""Seconds between two looks for work that nobody hinted at."""
FIRST_RETRY: Final = 0.05
LONGEST_RETRY: Final = 2.0
"""Seconds between two tries of an exchange that fails."""
LINGER: Final = (5, 0.001)
"""So often, and so many seconds each time, an exchange waits for handlers that have work at hand."""
HOARD: Final = 1.0
"""Seconds after which a run that has found no slot goes back."""


class Exchanger(Loop):
    """The loop that feeds a worker.

    `finished` when `burst` finds nothing left to claim, or `max_jobs` have been claimed, and nothing is in hand; `idle` is
    called then, and whenever nothing is in hand while the gate is closed.
    """

    name = "exchange"

    def __init__(
        self,
        work: Work,
        member: Member,
        registry: Registry,
        ledger: Ledger,
        pools: Pools,
        *,
        gate: Gate,
        outbox: SimpleQueue[RunningJob | None],
        telemetry: Telemetry,
        burst: bool = False,
        max_jobs: int | None = None,
        idle: Callable[[], object] = bool,
    ) -> None:
        super().__init__(telemetry)
        self._work = work
        self._member = member
        self._registry = registry
        self._ledger = ledger
        self._pools = pools
        self._gate = gate
        self._outbox = outbox
        self._burst = burst
        self._idle = idle
        self.finished = False
        self._claims_left = inf if max_jobs is None else max_jobs
        self._arrived: list[RunningJob | None] = []
        self._paused: frozenset[str] = frozenset()
        self._rung = False
        self._reconsider = False
        self._ambiguous = False
        self._retry_at = -inf
        self._retry_in = FIRST_RETRY
        self._poll = SHORTEST_POLL
        self._took = 0.0
        self._claimed = 0
        self._looked = True
        self._hoard_check = 0.0

    # For other threads.

    def wake(self) -> None:
        if not self._rung:
            self._rung = True
            self._outbox.put(None)

    def reconsider(self) -> None:
        """Decide anew about everything that has not begun: it may have been cancelled, lost or paused, or the gate was closed."""
        self._reconsider = True
        self.wake()

    def set_paused(self, queues: frozenset[str]) -> None:
        """These queues are paused now."""
        news, self._paused = queues - self._paused, queues
        if news:
            self.reconsider()

    def interrupt(self, run: RunningJob) -> None:
        """`run.stop` has been called: end it when it runs, decide anew when it has not begun."""
        if run.started:
            run.lane.interrupt(run)
        else:
            self.reconsider()

    # A turn.

    def run_once(self) -> float:
        """Gather, exchange, let out; returns how long to wait when nothing happens meanwhile."""
        self._linger()
        self._gather()
        now = monotonic()
        if now < self._retry_at:
            return self._retry_at - now
        if self._member.gone and not self._attempt(self._join_again):
            return self._retry_at - now
        self._sort_out(now)
        wants = Wants() if self._gate.shut(now) else self._pools.wants(self._ledger.freeing(), self._took, now, self._claims_left)
        if (wants or self._ledger.outcomes or self._ledger.strays) and not self._attempt(lambda: self._exchange(wants)):
            return self._retry_at - now
        if not self._gate.shut(now):
            self._pools.let_out()
        return self._next_turn(wants)

    def rest(self, seconds: float) -> None:
        try:
            self._arrived.append(self._outbox.get(timeout=seconds))
        except Empty:
            self._poll = min(LONGEST_POLL, self._poll * 2)

    def _linger(self) -> None:
        """Let handlers work off what waits for them: an exchange beside them would contend for the interpreter at every row."""
        times, seconds = LINGER
        for _ in range(times):
            ended = self._outbox.qsize() + len(self._arrived) + len(self._ledger.ending)
            if self._pools.behind() <= ended:
                return
            sleep(seconds)

    def _gather(self) -> None:
        arrived, self._arrived = self._arrived, []
        take = self._outbox.get_nowait
        arrived += [take() for _ in range(self._outbox.qsize())]
        runs = [run for run in arrived if run is not None]
        if len(runs) < len(arrived):
            self._rung = False
        self._ledger.take(runs)

    def _attempt(self, step: Callable[[], object]) -> bool:
        """Take a step with the store. After one that fails nothing has been let go of, and it is taken again later, as things are then."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the outcomes are kept and the next try comes
            self._ambiguous = True
            self._retry_at = monotonic() + self._retry_in
            self.telemetry.emit("worker.store_failed", WARNING, error=repr(error), retry_in=self._retry_in)
            self._retry_in = min(LONGEST_RETRY, self._retry_in * 2)
            return False
        self._retry_in = FIRST_RETRY
        return True

    def _join_again(self) -> None:
        """The store has given this worker up, and everything it held: that stops, and a new member begins."""
        self._ledger.forsake()
        self._reconsider = True
        self._member.join()

    def _exchange(self, wants: Wants) -> None:
        """One transaction with the store. After one whose answer is not known the next brings the list of all that is held."""
        worker_id, outcomes = self._member.id, [*self._ledger.outcomes, *self._ledger.strays]
        held = self._ledger.fences() if self._ambiguous else None
        sent = monotonic()
        answer = self._work.exchange(worker_id, outcomes, wants, held, self._member.next_seq() if self._ambiguous else 0)
        now = monotonic()
        self._ambiguous, self._took = False, now - sent
        if not answer.known:
            self._member.lost(worker_id)
            return
        verdicts = answer.verdicts[: len(answer.verdicts) - len(self._ledger.strays)]
        self._ledger.strays = []
        for pool, freed in self._ledger.settle(verdicts).items():
            pool.pace.note(freed, now)
        self._looked = answer.looked
        if answer.draining:
            self._gate.close(Closed.BY_ORDER)
        self.set_paused(answer.paused)
        self._accept(answer, sent, now)

    def _accept(self, answer: Exchange, sent: float, now: float) -> None:
        """Take in what was claimed. A type without a handler goes back at once, and is set aside."""
        claimed = answer.claimed
        self._claimed = len(claimed)
        self._claims_left -= len(claimed)
        runs: list[RunningJob] = []
        for job in claimed:
            handler = self._registry.get(job.type)
            if handler is None:
                self._ledger.strays.append(Released(job.fence, ReleaseReason.UNKNOWN_TYPE))
                self.telemetry.emit("job.unknown", WARNING, job)
            else:
                start_by = inf if job.expires_in is None else sent + job.expires_in / SECOND
                runs.append(RunningJob(job, handler, sent, start_by))
        self._pools.accept(runs, answer.limited, now)
        self._ledger.held.update(runs)
        if self.telemetry.hears(DEBUG):
            for job in claimed:
                self.telemetry.emit("job.claimed", DEBUG, job)

    def _sort_out(self, now: float) -> None:
        """Decide about runs that have not begun: those that came back, and all others when something has changed."""
        ledger, hoarding = self._ledger, self._hoarding(now)
        runs, ledger.unstarted = ledger.unstarted, []
        if self._gate.closed or self._reconsider or hoarding:
            self._reconsider = False
            runs += self._pools.recall()
        kept = []
        for run in runs:
            if run.stopping is Stop.LOST:
                ledger.drop(run)
            elif reason := self._why_not(run, now, hoarding=hoarding):
                ledger.release(run, reason, now)
            else:
                kept.append(run)
        self._pools.put_back(kept)

    def _why_not(self, run: RunningJob, now: float, *, hoarding: bool) -> ReleaseReason | None:
        """Why a run must not begin here; None: it may, now or when there is room."""
        if run.stopping is Stop.CANCELLED:
            return ReleaseReason.CANCELLED
        if self._gate.closed:
            return ReleaseReason.SHUTDOWN
        if run.queue in self._paused:
            return ReleaseReason.PAUSED
        if now > run.start_by:
            return ReleaseReason.EXPIRED
        return ReleaseReason.UNSTARTED if hoarding and now - run.claimed_at > HOARD else None

    def _hoarding(self, now: float) -> bool:
        """Whether something has waited for a slot so long that another worker should have it; looked at once in a while."""
        if now < self._hoard_check or self._gate.shut(now) or not self._pools.crowded():
            return False
        self._hoard_check = now + HOARD / 2
        return any(run.outcome is None and not run.started and now - run.claimed_at > HOARD for run in self._ledger.held)

    def _next_turn(self, wants: Wants) -> float:
        """When to look again without being asked to: at once after a claim that was filled, after a while when there was nothing."""
        claimed, self._claimed = self._claimed, 0
        if claimed:
            self._poll = SHORTEST_POLL
        elif not self._ledger.held and not self._ledger.strays:
            self.finished = self._claims_left <= 0 or (self._burst and self._looked and bool(wants))
            if self.finished or self._gate.closed:
                self._idle()
        if self._ledger.strays or (claimed and claimed >= wants.total):
            return 0.0
        return self._poll if wants else LONGEST_POLL
