"""The loop that keeps a store in order. Every process runs one; there is no leader, whoever wins the turn takes all its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workmill.domain.errors import StoreUnavailable
from workmill.loops import Loop
from workmill.store.base import UPKEEP_BATCH, Turn, Upkeep
from workmill.telemetry import DEBUG, INFO, WARNING, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

WINNER_WAITS: Final = 1.0
LOSER_WAITS: Final = 2.0
SMALLEST_BATCH: Final = 10


class Keeper(Loop):
    """Takes turns at promote, rescue, expire, bury, prune and fold; `retain` and `retain_dead` in seconds, None keeps for ever."""

    name = "upkeep"

    def __init__(self, store: Upkeep, telemetry: Telemetry, *, retain: float | None = None, retain_dead: float | None = None) -> None:
        super().__init__(telemetry)
        self._store = store
        self._busy = False
        self._steps = {
            "rescued": Step("rescue", store.rescue, telemetry),
            # after the rescue, so that what it took back and need not wait is queued in the same turn
            "promoted": Step("promote", store.promote, telemetry),
            "expired": Step("expire", store.expire, telemetry),
            "buried": Step("bury", store.bury, telemetry),
            "pruned": Step("prune", lambda limit: store.prune(retain, retain_dead, limit), telemetry),
            "folded": Step("fold", lambda limit: store.fold(10 * limit), telemetry, unit=10),
        }

    def run_once(self) -> float:
        """Try for a turn; 0 when there is more to do, otherwise when to try again."""
        turn = self.take_turn()
        if not turn.won:
            return LOSER_WAITS
        return 0.0 if self._busy else WINNER_WAITS

    def take_turn(self) -> Turn:
        """Win the turn and take every step of it, or do nothing."""
        try:
            won = self._store.win_turn(0.0 if self._busy else WINNER_WAITS)
        except Exception as error:  # noqa: BLE001 - a store that is away is tried again like a turn that was lost
            self.telemetry.emit("upkeep.failed", WARNING, step="win_turn", error=repr(error))
            won = False
        if not won:
            self._busy = False
            return Turn(won=False)
        done = {name: step.take() for name, step in self._steps.items()}
        self._busy = any(step.filled for step in self._steps.values())
        self._tell(done)
        return Turn(won=True, **done)

    def _tell(self, done: dict[str, int]) -> None:
        if moved := {name: count for name, count in done.items() if count}:
            self.telemetry.emit("upkeep.turn", INFO if moved.keys() - {"folded"} else DEBUG, **moved)


class Step:
    """One step of a turn, and the size of its batch: halved when the store does not answer in time, doubled again when it does."""

    def __init__(self, name: str, take: Callable[[int], int], telemetry: Telemetry, unit: int = 1) -> None:
        self.name = name
        self.limit = UPKEEP_BATCH
        self.filled = False
        self._take = take
        self._unit = unit
        self._telemetry = telemetry

    def take(self) -> int:
        """Take one batch; how many rows it moved. Never raises: a step that fails must not stop the others."""
        self.filled = False
        try:
            moved = self._take(self.limit)
        except Exception as error:  # noqa: BLE001 - see above
            if isinstance(error, StoreUnavailable):
                self.limit = max(SMALLEST_BATCH, self.limit // 2)
            self._telemetry.emit("upkeep.failed", WARNING, step=self.name, error=repr(error), limit=self.limit)
            return 0
        self.filled = moved >= self.limit * self._unit
        self.limit = min(UPKEEP_BATCH, self.limit * 2)
        return moved
