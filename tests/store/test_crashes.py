"""An operation that is cut off anywhere has done all or nothing, and can be done again."""

import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from workmill.domain.errors import StoreUnavailable
from workmill.domain.job import Progress
from workmill.domain.outcome import Accepted, ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import Held, Wants
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.sqlite import database
from workmill.store.sqlite.session import SQLiteSession
from workmill.testing.clock import MovableClock
from workmill.testing.factories import LEASE, a_job, claim, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, a_cancelled_job, a_dead_job, only, settle

Rows = dict[str, list[tuple[Any, ...]]]
Action = Callable[[Store, MovableClock], Callable[[], object]]


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """`crash_at(k)`: of the statements and commits from now on, the k-th does not happen; None: no crash."""
    whole = database.transaction
    left: list[Iterator[int] | None] = [None]

    def step() -> None:
        if left[0] is not None and next(left[0], None) is None:
            raise Crash

    @contextmanager
    def mortal(connection: sqlite3.Connection, begin: str, now: Callable[[], int]) -> Iterator[SQLiteSession]:
        with whole(connection, begin, now) as session:
            execute = session._execute

            def run(text: str, values: Sequence[Any]) -> sqlite3.Cursor:
                step()
                return execute(text, values)

            session._execute = run
            yield session
            step()

    def arm(at: int | None) -> None:
        left[0] = None if at is None else iter(range(at))

    monkeypatch.setattr(database, "transaction", mortal)
    return arm


def submitting(store: Store, clock: MovableClock) -> Callable[[], object]:
    jobs = [a_job(queue="a", unique_key="k"), a_job(queue="b", delay=5), a_job(unique_key="k")]
    return lambda: store.submit(jobs)


def exchanging(store: Store, clock: MovableClock) -> Callable[[], object]:
    submit_many(store, 8, backoff=[0])
    store.limit("default", 100, actor=ACTOR)
    worker = join(store)
    one, two, three, four, _ = claim(store, worker, 5)
    ends = [succeeded(one), failed(two), released(three, ReleaseReason.UNKNOWN_TYPE), released(four, ReleaseReason.SNOOZE, 5.0)]
    return lambda: store.exchange(worker, ends, Wants(anywhere=2), [], clock())


def leaving(store: Store, clock: MovableClock) -> Callable[[], object]:
    submit_many(store, 3)
    worker = join(store)
    claim(store, worker, 3)
    return lambda: store.leave(worker)


def joining(store: Store, clock: MovableClock) -> Callable[[], object]:
    return lambda: join(store)


def cancelling(store: Store, clock: MovableClock) -> Callable[[], object]:
    ids = [receipt.id for receipt in submit_many(store, 3)]
    claim(store, join(store), 1)
    return lambda: store.cancel(only(*ids), actor=ACTOR)


def reviving(store: Store, clock: MovableClock) -> Callable[[], object]:
    dead = a_dead_job(store)
    return lambda: store.revive(only(dead.id), actor=ACTOR)


def discarding(store: Store, clock: MovableClock) -> Callable[[], object]:
    dead = a_dead_job(store)
    return lambda: store.discard(only(dead.id), actor=ACTOR)


def rescheduling(store: Store, clock: MovableClock) -> Callable[[], object]:
    receipt = submit(store)
    return lambda: store.reschedule(only(receipt.id), clock() + 5, actor=ACTOR)


def promoting(store: Store, clock: MovableClock) -> Callable[[], object]:
    submit_many(store, 3, delay=5)
    clock.advance(5)
    return store.promote


def expiring(store: Store, clock: MovableClock) -> Callable[[], object]:
    submit_many(store, 3, expires_in=5)
    clock.advance(5)
    return store.expire


def pruning(store: Store, clock: MovableClock) -> Callable[[], object]:
    a_cancelled_job(store)
    a_dead_job(store)
    clock.advance(1)
    return lambda: store.prune(0, 0)


def folding(store: Store, clock: MovableClock) -> Callable[[], object]:
    a_dead_job(store)
    return store.fold


def pausing(store: Store, clock: MovableClock) -> Callable[[], object]:
    return lambda: store.pause("default", actor=ACTOR)


ONE_TRANSACTION: list[Action] = [
    submitting, exchanging, leaving, joining, cancelling, reviving, discarding, rescheduling, promoting, expiring, pruning, pausing,
]  # fmt: skip


@pytest.mark.parametrize("action", ONE_TRANSACTION, ids=lambda action: action.__name__)
def test_a_crash_at_any_statement_leaves_every_row_as_it_was(
    action: Action, file_store: Store, clock: MovableClock, crash_at: Callable[[int | None], None], everything: Callable[[], Rows]
) -> None:
    act = action(file_store, clock)
    before = everything()

    crashes = list(crashing(act, crash_at, lambda: everything() == before))

    assert crashes
    assert all(crashes)
    assert everything() != before or action is joining
    settle(file_store)


def rescuing(store: Store, clock: MovableClock) -> Callable[[], object]:
    submit_many(store, 3)
    claim(store, join(store), 3)
    for _ in range(int(LEASE) + 2):
        clock.advance(1)
        store.win_turn(1)
    return store.rescue


def beating(store: Store, clock: MovableClock) -> Callable[[], object]:
    submit_many(store, 2)
    worker = join(store)
    known, _ = claim(store, worker, 2)
    clock.advance(LEASE + 1)
    return lambda: store.heartbeat(worker, [Held(known.fence, Progress(fraction=0.5))], clock.advance(0.001))


@pytest.mark.parametrize("action", [rescuing, beating, folding], ids=lambda action: action.__name__)
def test_a_crash_between_transactions_leaves_whole_ones_and_the_next_try_does_the_rest(
    action: Action, file_store: Store, clock: MovableClock, crash_at: Callable[[int | None], None]
) -> None:
    act = action(file_store, clock)

    crashes = list(crashing(act, crash_at, lambda: file_store.invariants() == []))

    assert crashes
    assert all(crashes)
    settle(file_store)


def crashing(act: Callable[[], object], crash_at: Callable[[int | None], None], check: Callable[[], bool]) -> Iterator[bool]:
    """Crash at the first, second, … statement, until it goes through; what each check found."""
    for at in range(1_000):
        crash_at(at)
        try:
            act()
        except Crash:
            crash_at(None)
            yield check()
        else:
            crash_at(None)
            return
    raise AssertionError("it never went through")


@contextmanager
def answers_lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every transaction commits, and its answer does not arrive."""
    whole = database.transaction

    @contextmanager
    def mute(connection: sqlite3.Connection, begin: str, now: Callable[[], int]) -> Iterator[SQLiteSession]:
        with whole(connection, begin, now) as session:
            yield session
        if begin == "BEGIN IMMEDIATE":
            raise StoreUnavailable("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(database, "transaction", mute)
        yield


def test_a_submission_whose_answer_was_lost_is_repeated_and_makes_nothing_twice(file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [a_job(), a_job(unique_key="k")]
    with answers_lost(monkeypatch), pytest.raises(StoreUnavailable):
        file_store.submit(jobs)

    receipts = file_store.submit(jobs)

    assert [(receipt.id, receipt.created) for receipt in receipts] == [(job.id, False) for job in jobs]
    assert file_store.counts() == {("default", State.QUEUED): 2}


def test_outcomes_whose_answer_was_lost_are_repeated_and_count_once(file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit_many(file_store, 3, backoff=[60])
    worker = join(file_store)
    one, two, three = claim(file_store, worker, 3)
    outcomes = [succeeded(one), failed(two), released(three)]
    with answers_lost(monkeypatch), pytest.raises(StoreUnavailable):
        file_store.exchange(worker, outcomes, Wants())

    verdicts = report(file_store, worker, *outcomes)

    assert [verdict.state for verdict in verdicts if isinstance(verdict, Accepted)] == [State.SUCCEEDED, State.RETRYING, State.QUEUED]
    (stats,) = file_store.stats(60)
    assert (stats.succeeded, stats.failed) == (1, 1)
    settle(file_store)


def test_a_claim_whose_answer_was_lost_is_found_by_the_list_and_runs_elsewhere(
    file_store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = submit(file_store, max_attempts=1)
    worker = join(file_store)
    with answers_lost(monkeypatch), pytest.raises(StoreUnavailable):
        claim(file_store, worker)
    clock.advance(LEASE + 1)

    file_store.heartbeat(worker, [], 1)

    (run,) = claim(file_store, join(file_store, "other"))
    assert (run.id, run.lease, run.attempt) == (receipt.id, 2, 1)


def test_a_file_cut_anywhere_in_its_last_transactions_has_whole_ones_and_all_before(
    path: Path, clock: MovableClock, tmp_path: Path, rng: Random, rounds: Callable[..., int]
) -> None:
    with closing(open_store(f"sqlite:///{path}", clock)) as store:
        ids = [submit(store).id for _ in range(12)]
        log = Path(f"{path}-wal").read_bytes()
        pages = path.read_bytes()
    frame = 24 + struct.unpack(">I", log[8:12])[0]
    cuts = [rng.randrange(32, len(log)) for _ in range(rounds(25, soak=4_000))] + [32, len(log) - 1, len(log) - frame, len(log)]

    survived = {cut: jobs_in(tmp_path / f"cut{cut}.db", pages, log[:cut]) for cut in sorted(set(cuts))}

    assert all(found == ids[: len(found)] for found in survived.values())
    assert [len(found) for found in survived.values()] == sorted(len(found) for found in survived.values())
    assert survived[len(log)] == ids
    assert len(survived[len(log) - 1]) == len(ids) - 1


def jobs_in(path: Path, pages: bytes, log: bytes) -> list[str]:
    """The ids that a store finds in a file and its cut log; it must be whole and go on."""
    path.write_bytes(pages)
    Path(f"{path}-wal").write_bytes(log)
    with closing(open_store(f"sqlite:///{path}")) as store:
        assert store.invariants() == []
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            found = [row[0] for row in connection.execute("SELECT id FROM workmill_jobs ORDER BY id")]
        assert submit(store).created
    return found
