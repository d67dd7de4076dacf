"""What `doctor` thinks of what it sees: rules from facts to findings, each with what is so and what to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workmill.cli.wording import plural, span, waiting
from workmill.domain.states import WAITING, State
from workmill.domain.worker import Worker, WorkerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from workmill.domain.queue import Queue, QueueStats

SLOW_REACH: Final = 0.5
SLOW_SYNC: Final = 0.05
"""Seconds from which an answer, or a durable write, is worth a word."""
SLOW_START: Final = 60.0
"""Seconds that a job may be ready without anybody wondering."""
LATE: Final = 10.0
"""Seconds after which work that upkeep should have moved says that nobody does upkeep."""
LOW_DISK: Final = 1 << 30
BIG_LOG: Final = 256 << 20
SAFE_SQLITE: Final = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""The releases that mended the reset of the log, each for its own series; the last for all later ones."""
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "fuse.sshfs", "fuse.s3fs", "9p", "glusterfs", "ceph"}
)


class Severity(StrEnum):
    """How bad a finding is. Only `error` makes `doctor` fail, with --strict `warning` too."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Finding(NamedTuple):
    """One thing that `doctor` has to say."""

    severity: Severity
    check: str
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file of an SQLite store and what it lies on; sizes in bytes, `sync` the seconds of one durable write."""

    path: str
    filesystem: str | None
    free: int
    log: int
    sync: float | None
    world_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What `doctor` has seen of a store. `strange_variables` are set and mean nothing; `unknown_types` wait aside in a queue."""

    at: datetime
    url: str
    reached_in: float
    description: Mapping[str, Any]
    pending: Sequence[str]
    queues: Sequence[Queue] = ()
    stats: Sequence[QueueStats] = ()
    workers: Sequence[Worker] = ()
    unknown_types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    upkeep_at: datetime | None = None
    disk: Disk | None = None
    strange_variables: Mapping[str, str | None] = field(default_factory=dict)
    violations: Sequence[str] | None = None

    @property
    def live_workers(self) -> list[Worker]:
        """The workers whose lease has not ended."""
        return [worker for worker in self.workers if worker.state is not WorkerState.GONE]


def examine(facts: Facts) -> list[Finding]:
    """All findings, in the order of the rules."""
    return [finding for rule in RULES for finding in rule(facts)]


def configured(facts: Facts) -> Iterator[Finding]:
    """The settings are ones that somebody reads."""
    yield Finding(Severity.OK, "configured", facts.url)
    for name, near in facts.strange_variables.items():
        todo = f"did you mean {near}?" if near else "unset it, or look for its right name in docs/cli.md"
        yield Finding(Severity.WARNING, "configured", f"{name} is set, and nothing reads it", todo)


def reachable(facts: Facts) -> Iterator[Finding]:
    """The store answers, and soon."""
    kind = " ".join(str(facts.description[name]) for name in ("kind", "version") if name in facts.description)
    what = f"{kind} answers in {span(facts.reached_in)}"
    if facts.reached_in > SLOW_REACH:
        yield Finding(Severity.WARNING, "reachable", what, "look at the load of the machine and of its disk")
    else:
        yield Finding(Severity.OK, "reachable", what)


def migrated(facts: Facts) -> Iterator[Finding]:
    """The schema is the one that this version needs."""
    if facts.pending:
        yield Finding(Severity.ERROR, "migrated", f"{plural(len(facts.pending), 'migration')} to run", "workmill migrate")
    else:
        yield Finding(Severity.OK, "migrated", "the schema is up to date")


def fast(facts: Facts) -> Iterator[Finding]:
    """A commit is not held up by the disk."""
    if facts.disk is None or facts.disk.sync is None:
        return
    sync = facts.disk.sync
    what = f"a durable write takes {span(sync)}, so at most {plural(round(1 / max(sync, 1e-6)), 'commit')} a second"
    if sync > SLOW_SYNC:
        yield Finding(Severity.WARNING, "fast", what, "put the store on a local SSD; submit in batches with enqueue_many")
    else:
        yield Finding(Severity.OK, "fast", what)


def safe(facts: Facts) -> Iterator[Finding]:
    """The database may be written as it is written here."""
    yield from _sqlite_version(facts)
    disk = facts.disk
    if disk is None:
        return
    if disk.filesystem in NETWORK:
        what = f"{disk.path} is on {disk.filesystem}, a network file system: locks and shared memory do not hold there"
        yield Finding(Severity.ERROR, "safe", what, "move the store to a local disk")
    if disk.world_writable:
        yield Finding(Severity.WARNING, "safe", f"everybody may write to {disk.path}", f"chmod o-w {disk.path}")
    if disk.free < LOW_DISK:
        what = f"{disk.free >> 20:,} MiB are free beside the store; when none are, nothing can be submitted or finished"
        yield Finding(Severity.WARNING, "safe", what, "make room, or shorten WORKMILL_RETAIN")
    if disk.log > BIG_LOG:
        what = f"the write-ahead log has {disk.log >> 20:,} MiB: some process holds an old snapshot open"
        yield Finding(Severity.WARNING, "safe", what, "look for a long read transaction in your application")


def _sqlite_version(facts: Facts) -> Iterator[Finding]:
    version = str(facts.description.get("version", ""))
    if facts.description.get("kind") != "sqlite" or _mended(_numbers(version)):
        return
    several = len(facts.live_workers) > 1
    what = f"SQLite {version} can, very rarely, spoil a file that two connections write at the same moment (mended in 3.51.3)"
    what += f"; {len(facts.live_workers)} workers write here" if several else ""
    todo = "keep other programs from writing to this file, which Workmill's own processes do in turn, or use a Python with a newer SQLite:"
    yield Finding(Severity.WARNING if several else Severity.NOTE, "safe", what, f"{todo} docs/operations.md, An old SQLite")


def _mended(version: tuple[int, ...]) -> bool:
    return version >= SAFE_SQLITE[-1] or any(version[:2] == safe[:2] and version >= safe for safe in SAFE_SQLITE)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def worked(facts: Facts) -> Iterator[Finding]:
    """Somebody works, and on every queue that has work."""
    live = facts.live_workers
    draining = sum(worker.state is WorkerState.DRAINING for worker in live)
    if not live:
        left = sum(queue.counts.get(state, 0) for queue in facts.queues for state in WAITING)
        severity = Severity.ERROR if left else Severity.WARNING
        what = f"no worker is running, and {waiting(left)} for one" if left else "no worker is running"
        yield Finding(severity, "worked", what, "workmill worker TARGET")
    elif draining == len(live):
        yield Finding(
            Severity.WARNING,
            "worked",
            "the only worker drains" if draining == 1 else f"all {draining} workers drain",
            "workmill workers resume NAME",
        )
    else:
        yield Finding(Severity.OK, "worked", plural(len(live), "worker") + (f", {draining} of them draining" if draining else ""))
    for queue in facts.queues:
        if live and _ready(queue) and not queue.paused and not queue.workers:
            what = f"{waiting(_ready(queue))} in {queue.name}, which no worker serves"
            yield Finding(Severity.ERROR, "worked", what, f"workmill worker -q {queue.name}")


def moving(facts: Facts) -> Iterator[Finding]:
    """What is ready starts, what is due is moved, what was held by the dead is taken back."""
    yield from _late_queues(facts)
    for worker in facts.workers:
        silent = (facts.at - worker.seen_at).total_seconds()
        if worker.state is WorkerState.GONE and worker.running and silent > worker.lease_seconds + LATE:
            what = f"{worker.name} was last heard of {span(silent)} ago and {plural(worker.running, 'job')} of it still count as running"
            yield Finding(Severity.ERROR, "moving", what, "let upkeep run: workmill upkeep, or any worker")
    idle = 0.0 if facts.upkeep_at is None else (facts.at - facts.upkeep_at).total_seconds()
    if idle > LATE and facts.live_workers:
        what = f"upkeep last turned {span(idle)} ago, although workers live"
        yield Finding(Severity.ERROR, "moving", what, "look into the workers' logs, or run workmill upkeep")


def _late_queues(facts: Facts) -> Iterator[Finding]:
    for queue in facts.queues:
        waited = 0.0 if queue.oldest_waiting is None else (facts.at - queue.oldest_waiting).total_seconds()
        if queue.paused and _ready(queue):
            what = f"{queue.name} is paused, and {waiting(_ready(queue))} in it"
            yield Finding(Severity.WARNING, "moving", what, f"workmill queues resume {queue.name}")
        elif waited > SLOW_START and queue.workers:
            what = f"the oldest job in {queue.name} has been ready for {span(waited)}"
            yield Finding(Severity.WARNING, "moving", what, "more workers or a higher -c; a limit may hold it (workmill queues list)")


def whole(facts: Facts) -> Iterator[Finding]:
    """Nothing is dead that was not dead before, nothing waits aside for a worker that never comes."""
    dead_now = {queue.name: queue.counts.get(State.DEAD, 0) for queue in facts.queues}
    for figures in facts.stats:
        left = dead_now.get(figures.queue, 0)
        if figures.dead and left:
            what = f"{plural(figures.dead, 'job')} died in {figures.queue} within {span(figures.window_seconds)}"
            what += f", {left:,} of them or of older ones {'is' if left == 1 else 'are'} dead still" if left < figures.dead else ""
            todo = (
                f"workmill jobs list --state dead --queue {figures.queue}, mend the cause, then workmill jobs retry --queue {figures.queue}"
            )
            yield Finding(Severity.WARNING, "whole", what, todo)
    dead = sum(dead_now.values())
    if dead:
        what = f"{plural(dead, 'job')} dead in all, kept until somebody retries or discards them"
        yield Finding(Severity.NOTE, "whole", what, "workmill jobs list --state dead")
    for queue, types in facts.unknown_types.items():
        what = f"jobs in {queue} are set aside, since no worker knows {', '.join(types)}"
        todo = "start a worker that has these types; after a day without one the jobs are buried"
        yield Finding(Severity.WARNING, "whole", what, todo)


def sound(facts: Facts) -> Iterator[Finding]:
    """The invariants hold, when that was asked for."""
    if facts.violations is None:
        return
    for violation in facts.violations:
        yield Finding(Severity.ERROR, "sound", violation, "keep a copy of the store, and report this: it must not be")
    if not facts.violations:
        yield Finding(Severity.OK, "sound", "all invariants hold")


def _ready(queue: Queue) -> int:
    return queue.counts.get(State.QUEUED, 0)


RULES: Final[tuple[Callable[[Facts], Iterator[Finding]], ...]] = (
    configured,
    reachable,
    migrated,
    fast,
    safe,
    worked,
    moving,
    whole,
    sound,
)
