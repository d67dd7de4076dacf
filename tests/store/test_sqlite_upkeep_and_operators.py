"""The SQLite store is held to the rules of upkeep, of the operators' verbs and of reading; where connections matter, in a file too."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from workmill.store.base import Store
from workmill.store.open import open_store
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
