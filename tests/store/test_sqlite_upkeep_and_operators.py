"""The SQLite store is held to the rules of upkeep, of the operators' verbs and of reading, in memory and in a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.conformance import operating, reading, rescuing, retaining, selecting, upkeeping


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, clock: MovableClock, tmp_path: Path) -> Iterator[Store]:
    store = open_store("sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db", clock)
    yield store
    store.close()


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
