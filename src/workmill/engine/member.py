"""This process as a member of the fleet: its id, its lease, and what happens when the store no longer knows it."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from workmill.clock import monotonic
from workmill.engine.gate import SHUT, Gate
from workmill.telemetry import INFO, WARNING, Telemetry

if TYPE_CHECKING:
    from workmill.domain.worker import Hello
    from workmill.store.base import Work


class Member:
    """The membership of a worker process; the exchange thread renews it under a new id when it was lost."""

    def __init__(self, work: Work, hello: Hello, gate: Gate, telemetry: Telemetry) -> None:
        self.hello = hello
        self.lease_seconds = hello.lease_seconds
        self.id = ""
        self.gone = True
        self._work = work
        self._gate = gate
        self._telemetry = telemetry
        self._seq = count(1)

    def next_seq(self) -> int:
        """A number that rises with every list of what is held, whichever thread sends it."""
        return next(self._seq)

    def join(self) -> None:
        """Become a member under a new id; the lease counts from before the request was sent."""
        sent = monotonic()
        self.id = self._work.join(self.hello)
        self._telemetry.bind(worker_id=self.id)
        self.gone = False
        self.renewed(sent)
        self._telemetry.emit("worker.joined", INFO, name=self.hello.name)

    def renewed(self, sent: float, lease_seconds: float | None = None) -> None:
        """A renewal that was sent at `sent` has been answered."""
        self.lease_seconds = lease_seconds or self.lease_seconds
        self._gate.renew(sent + self.lease_seconds)

    def lost(self, worker_id: str) -> None:
        """The store does not know this worker: it starts nothing until it has joined again."""
        if worker_id == self.id and not self.gone:
            self._gate.renew(SHUT)
            self.gone = True
            self._telemetry.emit("worker.lost", WARNING)

    def leave(self) -> int:
        """Give back what is still held; how many runs that were."""
        return 0 if self.gone else self._work.leave(self.id)
