"""The SQLite store is held to the rules of upkeep, of the operators' verbs and of reading; where connections matter, in a file too."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pytest

from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.operations import stats
from workmill.store.session import Session
from workmill.testing.clock import MovableClock
from workmill.testing.conformance import operating, reading, rescuing, retaining, selecting, upkeeping


@pytest.fixture
def store(clock: MovableClock) -> Iterator[Store]:
    with closing(open_store("sqlite://", clock)) as store:
        yield store


class InAFile:
    """Reads have connections of their own there."""

    @pytest.fixture
    def store(self, file_store: Store) -> Store:
        return file_store


class TestTurning(upkeeping.Turning): ...


class TestPromoting(upkeeping.Promoting): ...


class TestExpiring(upkeeping.Expiring): ...


class TestBurying(upkeeping.Burying): ...


class TestRescuing(rescuing.Rescuing): ...


class TestPruning(retaining.Pruning): ...


class TestFolding(retaining.Folding): ...


class TestCancelling(operating.Cancelling): ...


class TestReviving(operating.Reviving): ...


class TestDiscarding(operating.Discarding): ...


class TestRescheduling(operating.Rescheduling): ...


class TestSelecting(selecting.Selecting): ...


class TestSetting(selecting.Setting): ...


class TestShowing(reading.Showing): ...


class TestListing(reading.Listing): ...


class TestCounting(reading.Counting): ...


class TestFoldingInAFile(InAFile, retaining.Folding): ...


class TestCancellingInAFile(InAFile, operating.Cancelling): ...


class TestRevivingInAFile(InAFile, operating.Reviving): ...


class TestListingInAFile(InAFile, reading.Listing): ...


def test_folding_lets_others_write_in_between(file_store: Store, sql: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sql.executemany("INSERT INTO workmill_count_deltas (queue, state, jobs) VALUES (?, 'queued', 0)", [("default",)] * 1_000)
    looks = stats.anything_to_fold
    left: list[int] = []

    def between(session: Session) -> bool:
        left.append(sql.execute("SELECT count(*) FROM workmill_count_deltas").fetchone()[0])
        if len(left) <= 3:
            sql.execute("INSERT INTO workmill_count_deltas (queue, state, jobs) VALUES ('another', 'queued', 0)")
        return looks(session)

    monkeypatch.setattr(stats, "anything_to_fold", between)

    assert file_store.fold() == 1_003

    assert max(before - after for before, after in pairwise(left)) <= 200
