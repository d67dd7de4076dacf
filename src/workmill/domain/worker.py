"""A worker process as the store knows it, what it asks for and what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workmill.domain.job import Claimed, Progress
    from workmill.domain.outcome import Fence, Verdict


class WorkerState(StrEnum):
    """What a worker has been told to do, or `gone`: its lease ended or it left."""

    RUNNING = "running"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """How a worker process introduces itself. `queues` empty: it serves all; `types` None: it takes any type."""

    name: str
    host: str
    pid: int
    version: str
    lease_seconds: float
    queues: Mapping[str, int] = field(default_factory=dict)
    concurrency: int = 1
    types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a worker has room for.

    `queues` maps a queue to the number wanted of it. `anywhere` is the number wanted from all queues together, new ones
    included; it is used when `queues` is empty, and leaves out queues named `workmill.*`.
    """

    queues: Mapping[str, int] = field(default_factory=dict)
    anywhere: int = 0

    @property
    def total(self) -> int:
        """How many are wanted in all."""
        return sum(self.queues.values()) if self.queues else self.anywhere

    def __bool__(self) -> bool:
        return self.total > 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """The answer to an exchange: one verdict for each outcome, in order, and the jobs claimed, in queue order.

    `known` is False when the store no longer knows this worker (its lease ended): every verdict is then `LeaseLost`, nothing
    was claimed, and the worker must join again under a new id. `paused` names the queues that are paused now, `limited` those
    with a concurrency limit among the queues claimed from: the worker claims nothing ahead of its slots from them. `draining`: it
    has been told to drain, and nothing was claimed. `looked` is False when only a dispatcher was asked, and had nothing: the store
    may have something. `apart`: there is something set aside that this worker may take, now or when its suspect has ended.
    """

    verdicts: tuple[Verdict, ...]
    claimed: tuple[Claimed, ...]
    known: bool = True
    paused: frozenset[str] = frozenset()
    limited: frozenset[str] = frozenset()
    draining: bool = False
    looked: bool = True
    apart: bool = False


class Held(NamedTuple):
    """A run that a worker holds, and what its handler said of its progress since the last beat."""

    fence: Fence
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The answer to a heartbeat. `cancel` and `lost` name runs, not jobs: an order for an old lease does not touch a new run."""

    lease_seconds: float
    state: WorkerState
    concurrency: int | None = None
    cancel: tuple[Fence, ...] = ()
    lost: tuple[Fence, ...] = ()
    paused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker process as operators see it."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    state: WorkerState
    queues: Mapping[str, int]
    concurrency: int
    running: int
    lease_seconds: float
    joined_at: datetime
    seen_at: datetime
