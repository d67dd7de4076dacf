"""Where benchmarks are run: a store of their own for every round, real worker processes, rounds put together to one result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager, nullcontext
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from workmill import clock
from workmill.bench.environment import environment
from workmill.bench.handlers import application
from workmill.bench.result import Place, Result, judge
from workmill.bench.samples import medians
from workmill.config import from_environment, shown_url
from workmill.dispatch.open import open_heads
from workmill.domain.errors import ConfigurationError, WorkmillError
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.store.open import POSTGRES, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from rich.progress import Progress

    from workmill import Workmill
    from workmill.bench.result import Goal, Round
    from workmill.dispatch.heads import DispatchedHeads
    from workmill.domain.job import Job
    from workmill.store.base import Store

QUEUE: Final = "bench"
TARGET: Final = "workmill.bench.handlers:mill"
CHUNK: Final = 1_000
KINDS: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
NOT_DURABILITY: Final = {"kind", "version", "database", "path", "page_size", "bytes", "schema_version", "upkeep_age"}
"""What a store says of itself that is no matter of its durability."""
PATIENCE: Final = 300.0
"""Seconds after which whatever a benchmark waits for counts as stuck."""


class Stuck(WorkmillError):
    """What a benchmark waited for did not come, or a worker of it died."""


class Benchmark(Protocol):
    """A benchmark with its options chosen."""

    @property
    def name(self) -> str: ...

    @property
    def durations(self) -> str:
        """What its quantiles are quantiles of."""

    def goals(self, place: Place) -> Sequence[Goal]:
        """What is asked of it there."""

    def rounds(self, stand: Stand) -> Generator[Round]:
        """Run it as often as asked."""


class Alike:
    """A benchmark whose rounds share nothing."""

    __slots__ = ()
    asked: ClassVar[Sequence[Goal]] = ()

    def goals(self, place: Place) -> Sequence[Goal]:  # noqa: ARG002 - the same everywhere, unless a benchmark says otherwise
        """What is asked of it there."""
        return self.asked

    def rounds(self, stand: Stand) -> Generator[Round]:
        """Run it as often as asked."""
        while True:
            yield self.round(stand)

    def round(self, stand: Stand) -> Round:
        """Run it once."""
        raise NotImplementedError


class Timing(NamedTuple):
    """When a job of some priority was submitted, claimed, started and ended, in microseconds on the store's clock."""

    priority: int
    created: int
    claimed: int
    started: int
    finished: int


class Stand:
    """Hands out empty stores, and workers on them; with the dispatcher that WORKMILL_DISPATCH names.

    Each store is a new SQLite file in a folder that is removed (`url` None), or a schema of its own on the PostgreSQL server that `url`
    names, dropped afterwards; or all are the one SQLite file that it names, emptied each time.
    """

    def __init__(self, folder: Path, progress: Progress, url: str | None = None) -> None:
        self.folder = folder
        self.progress = progress
        self._url = url
        self._numbers = count(1)

    @property
    def server(self) -> str | None:
        """The URL, for its driver, of the PostgreSQL database in which the stores are; None when each is a file."""
        if self._url is None or not self._url.startswith(POSTGRES):
            return None
        address, _, parameters = self._url.partition("?")
        others = "&".join(each for each in parameters.split("&") if each and not each.startswith("notify="))
        return f"{address}?{others}" if others else address

    @property
    def schema(self) -> str:
        """The schema of the store that was handed out last, on a server."""
        return from_environment().schema

    @contextmanager
    def application(self) -> Iterator[Workmill]:
        """The jobs of the benchmarks on an empty store, for use in this process."""
        with self.store() as store, application(store.url) as mill:
            yield mill

    @contextmanager
    def store(self, *, group_commit: bool = True, group_delay: float = 0.0) -> Iterator[Store]:
        """An empty store, migrated."""
        url = self._url or f"sqlite:///{self.new_file('.db')}"
        with self._apart(), open_heads_of_nobody() as heads:
            store = open_store(url, heads=heads, group_commit=group_commit, group_delay=group_delay)
            try:
                store.migrate()
                refuse_jobs(store)
                yield from self._cleared(store, dispatched=heads is not None)
            finally:
                store.close()

    def _apart(self) -> AbstractContextManager[object]:
        if self.server is None:
            return nullcontext()
        from workmill.bench.postgres import own_schema  # noqa: PLC0415 - the driver is loaded when it is needed

        return own_schema(self.server)

    def _cleared(self, store: Store, *, dispatched: bool) -> Iterator[Store]:
        """A store that is left without jobs, where somebody could find them; so is the dispatcher."""
        try:
            yield store
        finally:
            if dispatched or (self._url is not None and self.server is None):
                cancel_all(store)
            if self._url is not None and self.server is None:
                empty(store)

    def new_file(self, suffix: str) -> Path:
        """A path in the stand's folder that nothing has used."""
        return self.folder / f"{next(self._numbers)}{suffix}"

    def fill(self, store: Store, type: str, payloads: Sequence[str], **options: object) -> None:
        """Submit one job for each payload, in thousands."""
        for first in self.progress.track(range(0, len(payloads), CHUNK), description=f"submitting {len(payloads):,} jobs"):
            submit(store, type, payloads[first : first + CHUNK], **options)

    @contextmanager
    def workers(
        self,
        store: Store,
        target: str = TARGET,
        *,
        concurrency: int,
        processes: int = 1,
        log_level: str = "warning",
        queues: Sequence[str] = (),
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A real worker (with its child processes), started, registered, and stopped at the end; its log goes to a file."""
        log = self.new_file(".log")
        pools = [word for queue in queues for word in ("-q", f"{queue}={concurrency}")] or ["-c", str(concurrency)]
        options = [*pools, "-p", str(processes), "--log-level", log_level]
        command = [sys.executable, "-m", "workmill", "worker", target, *options]
        with log.open("wb") as stderr:
            environment = {**os.environ, "WORKMILL_STORE": store.url}
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)  # noqa: S603 - our own
        try:
            alive = _watch(process, log)
            wait_until(lambda: alive() and len(store.workers()) == processes, "the workers to register")
            yield process
            alive()
        finally:
            stop(process)

    def drained(self, store: Store, jobs: int, what: str) -> list[Timing]:
        """Wait until `jobs` jobs have succeeded, and say when each began and ended."""
        task = self.progress.add_task(what, total=jobs)

        def all_done() -> bool:
            done = sum(number for (_, state), number in store.counts().items() if state is State.SUCCEEDED)
            self.progress.update(task, completed=done)
            return done >= jobs

        wait_until(all_done, what, every=0.05)
        self.progress.remove_task(task)
        return timings(store)


def run(benchmark: Benchmark, *, command: str, progress: Progress, rounds: int = 3, url: str | None = None) -> Result:
    """Run a benchmark `rounds` times, each on an empty store.

    Raises:
        ConfigurationError: the store that was named holds jobs.

    """
    with tempfile.TemporaryDirectory(prefix="workmill-bench-") as folder:
        stand = Stand(Path(folder), progress, url)
        with stand.store() as store:
            described = store.describe()
        with closing(benchmark.rounds(stand)) as runs:
            done = [next(runs) for _ in progress.track(range(rounds), description=f"bench {benchmark.name}")]
    return _result(benchmark, command, described, done)


def _result(benchmark: Benchmark, command: str, described: Mapping[str, Any], done: Sequence[Round]) -> Result:
    """The rounds as one: medians, the highest maximum, the goals judged."""
    place = Place("sqlite" if described["kind"] == "sqlite" else "postgresql", "direct" if open_heads() is None else "redis")
    samples = [one.figures for one in done]
    figures = medians(samples) | {"max_ms": max(one["max_ms"] for one in samples)}
    judged = judge(benchmark.goals(place), figures)
    return Result(
        bench=benchmark.name,
        command=command,
        **{name: figures.pop(name) for name in ("jobs_per_second", "p50_ms", "p95_ms", "p99_ms", "max_ms")},
        durations=benchmark.durations,
        store=place.store,
        database=f"{KINDS[place.store]} {described['version']}",
        dispatch=place.dispatch,
        version=version("workmill"),
        durability={name: value for name, value in described.items() if name not in NOT_DURABILITY},
        goals=judged,
        figures=figures,
        rounds=samples,
        curves=done[-1].curves,
        environment=environment(),
    )


def _watch(process: subprocess.Popen[bytes], log: Path) -> Callable[[], bool]:
    """A check that is true while the process lives, and raises with its last words when it does not."""

    def alive() -> bool:
        if process.poll() is not None:
            words = log.read_text(encoding="utf-8", errors="replace").strip()[-2_000:]
            raise Stuck(f"the worker ended with code {process.returncode}: {words or 'it said nothing'}")
        return True

    return alive


def stop(process: subprocess.Popen[bytes], patience: float = 20.0) -> None:
    """End a worker by SIGTERM, and by SIGKILL when that does not help."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], what: str, *, every: float = 0.01, seconds: float = PATIENCE) -> None:
    """Look every few milliseconds until `condition` holds.

    Raises:
        Stuck: it did not within `seconds`.

    """
    limit = clock.monotonic() + seconds
    while not condition():
        if clock.monotonic() > limit:
            raise Stuck(f"waited {seconds:g} s for {what}")
        clock.sleep(every)


def submit(store: Store, type: str, payloads: Sequence[str], **options: object) -> None:
    """One transaction with a job for each payload."""
    chosen = {"queue": QUEUE, **options}
    store.submit([new_job(new_id(), type, payload, chosen) for payload in payloads])


def refuse_jobs(store: Store) -> None:
    """Raise when the store holds a job: measuring among somebody's work would harm both."""
    if store.jobs(Selection(), limit=1).jobs:
        raise ConfigurationError(f"{shown_url(store.url)} holds jobs: bench works in a store of its own")


def on_server(stand: Stand) -> str:
    """The URL of the stand's PostgreSQL server.

    Raises:
        ConfigurationError: its stores are files.

    """
    if stand.server is None:
        raise ConfigurationError("--store: this is measured on PostgreSQL only: --store postgresql://…")
    return stand.server


@contextmanager
def open_heads_of_nobody() -> Iterator[DispatchedHeads | None]:
    """The dispatcher that the environment names, when it holds no job of another store.

    Raises:
        ConfigurationError: it does.

    """
    heads = open_heads()
    if heads is not None and any((heads.dispatch.depths(heads.dispatch.names() or ()) or {}).values()):
        raise ConfigurationError(f"{shown_url(heads.dispatch.url)} holds jobs of another store: bench needs a dispatcher of its own")
    yield heads


def cancel_all(store: Store) -> None:
    """Cancel all that has not ended, however much it is."""
    wait_until(lambda: nothing_runs(store), "the leases of workers that died", every=0.1)
    cursor: str | None = None
    while True:
        done = store.cancel(Selection(queue=QUEUE), actor="bench", limit=CHUNK, cursor=cursor)
        if (cursor := done.next) is None:
            return


def nothing_runs(store: Store) -> bool:
    """Whether no job is running any more; what workers that died were running is taken back as soon as their leases have ended."""
    if not any(jobs for (_, state), jobs in store.counts().items() if state is State.RUNNING):
        return True
    store.win_turn(0.0)
    store.rescue()
    return False


def empty(store: Store) -> None:
    """Remove the jobs of a round, all of which have ended, from a store that was there before."""
    while store.prune(0, 0, 10 * CHUNK):
        pass


def every_job(store: Store, **filters: object) -> Iterator[Job]:
    """All jobs of a round, page by page."""
    cursor: str | None = None
    while True:
        page = store.jobs(Selection(queue=QUEUE, **filters), limit=CHUNK, cursor=cursor)  # type: ignore[arg-type]
        yield from page.jobs
        if (cursor := page.next) is None:
            return


def timings(store: Store) -> list[Timing]:
    """The times of every job that has succeeded."""
    return [timing(job) for job in every_job(store, states=(State.SUCCEEDED,))]


def timing(job: Job) -> Timing:
    """The times of a job that has succeeded."""
    return Timing(job.priority, *map(_exact, (job.created_at, job.claimed_at, job.started_at, job.finished_at)))


def _exact(moment: datetime | None) -> int:
    if moment is None:
        raise Stuck("a job has succeeded without a claim, a start or an end")
    return clock.from_datetime(moment)


def rate(done: Sequence[Timing]) -> float:
    """Jobs a second from the first claim to the beginning of the last commit, counting what had been committed by then.

    A store stamps an ending when its transaction begins: the jobs of the last one are left out together with its time.
    """
    begin, end = min(job.claimed for job in done), max(job.finished for job in done)
    committed = sum(job.finished < end for job in done) or len(done)
    return committed / max(end - begin, 1) * 1_000_000
