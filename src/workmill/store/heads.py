"""What a store has to do with a dispatcher, which holds the heads of its queues for workers: the contract between the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.domain.worker import Exchange, Wants
    from workmill.store.changes import Watcher


class Ready(NamedTuple):
    """A job that may be claimed, and what its place in the queue depends on; `run_at` in microseconds."""

    queue: str
    id: str
    priority: int
    run_at: int


class Moves:
    """What a transaction does to the heads of queues, for a dispatcher to hear of once it has committed."""

    __slots__ = ("left", "look", "ready")

    def __init__(self) -> None:
        self.ready: list[Ready] = []
        self.left: list[tuple[str, str]] = []
        """Queues and ids of jobs that can no longer be claimed and were not taken from the dispatcher."""
        self.look = False
        """Whether something may be claimed now that a dispatcher does not hold: what is set aside, or what a setting had held up."""


class Heads(Protocol):
    """The heads of the queues in a dispatcher outside the store, so that workers need not look for them here. Never the truth.

    It may be emptied, or go away, at any time. No method raises, but for what the exchange that was given to it raises.
    """

    def lend(self, worker_id: str, wants: Wants, exchange: Callable[[Sequence[Ready] | None], Exchange], *, needed: bool) -> Exchange:
        """Do the exchange with jobs to try to claim (None: claim from the store); what it refuses goes back.

        When there is nothing to try and the exchange is not `needed` for anything else, it is not done.
        """

    def tell(self, moves: Moves, *, announced: bool) -> bool:
        """A transaction has committed; whether other processes hear of it, which they must when something was `announced`."""

    def look(self) -> None:
        """Claim from the store next: there is something that the dispatcher does not know of."""

    def watch(self, tell: Callable[[], None]) -> Watcher:
        """A thread that calls `tell` when another process has told."""

    def close(self) -> None:
        """Let go of connections and threads; a later use makes new ones."""

    def forget(self) -> None:
        """Begin anew in the child of a fork."""
