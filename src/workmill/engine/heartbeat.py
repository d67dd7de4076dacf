"""The heartbeat: every third of a lease it tells the store everything that is held, and obeys what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workmill.clock import monotonic
from workmill.domain.errors import NotFound
from workmill.domain.worker import Held, Orders, WorkerState
from workmill.engine.context import RunningJob, Stop
from workmill.engine.gate import Closed, Gate
from workmill.loops import Loop
from workmill.telemetry import INFO, WARNING, Telemetry

if TYPE_CHECKING:
    from workmill.engine.exchange import Exchanger
    from workmill.engine.ledger import Ledger
    from workmill.engine.member import Member
    from workmill.engine.pools import Pools
    from workmill.store.base import Work

BEATS_A_LEASE: Final = 3
MISSED_BEAT: Final = 15
"""After a beat that failed the next comes within a fifteenth of a lease: several tries fit into the third that is lost."""


class Heartbeat(Loop):
    """Beats on its own connection and schedule, so that neither a slow handler nor a slow exchange costs the lease."""

    name = "heartbeat"

    def __init__(
        self, work: Work, member: Member, ledger: Ledger, pools: Pools, *, exchanger: Exchanger, gate: Gate, telemetry: Telemetry
    ) -> None:
        super().__init__(telemetry)
        self._ledger = ledger
        self._pools = pools
        self._work = work
        self._member = member
        self._exchanger = exchanger
        self._gate = gate
        self._cut_off = False

    def run_once(self) -> float:
        """Beat once; returns when the next beat is due."""
        worker_id, sent = self._member.id, monotonic()
        if self._member.gone:
            return self._member.lease_seconds / MISSED_BEAT
        runs = self._ledger.holding()
        said = {run: run.said for run in runs}
        held = [Held(run.fence, None if words is run.heard else words) for run, words in said.items()]
        held += [Held(stray.fence) for stray in self._ledger.strays]
        try:
            orders = self._work.heartbeat(worker_id, held, self._member.next_seq())
        except NotFound:
            return self._gone(worker_id)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the next beat must come
            return self._missed(error)
        self._renewed(sent, orders)
        for run, words in said.items():
            run.heard = words
        self._obey(orders, runs)
        return max(0.0, sent + self._member.lease_seconds / BEATS_A_LEASE - monotonic())

    def _gone(self, worker_id: str) -> float:
        self._member.lost(worker_id)
        self._exchanger.wake()
        return self._member.lease_seconds / MISSED_BEAT

    def _missed(self, error: Exception) -> float:
        self.telemetry.emit("worker.beat_missed", WARNING, error=repr(error))
        if not self._cut_off and self._gate.cut_off(monotonic()):
            self._cut_off = True
            self.telemetry.emit("worker.cut_off", WARNING)
        return self._member.lease_seconds / MISSED_BEAT

    def _renewed(self, sent: float, orders: Orders) -> None:
        self._member.renewed(sent, orders.lease_seconds)
        if self._cut_off:
            self._cut_off = False
            self.telemetry.emit("worker.reconnected", INFO)
            self._exchanger.wake()

    def _obey(self, orders: Orders, runs: list[RunningJob]) -> None:
        mine = {run.fence: run for run in runs}
        for fence in orders.cancel:
            self._end(mine.get(fence), Stop.CANCELLED)
        for fence in orders.lost:
            self._end(mine.get(fence), Stop.LOST)
        if orders.state is WorkerState.DRAINING:
            self._gate.close(Closed.BY_ORDER)
        else:
            self._gate.open(Closed.BY_ORDER)
        self._exchanger.set_paused(orders.paused)
        if self._pools.resize(orders.concurrency):
            self.telemetry.emit("worker.concurrency", concurrency=orders.concurrency)
            self._exchanger.wake()

    def _end(self, run: RunningJob | None, reason: Stop) -> None:
        """Obey an order about a run, unless its outcome has been handed in: that one is for the store to judge."""
        if run is None or run.outcome is not None or not run.stop(reason):
            return
        self.telemetry.emit("job.lost" if reason is Stop.LOST else "job.cancelling", WARNING, run.claimed)
        self._exchanger.interrupt(run)
