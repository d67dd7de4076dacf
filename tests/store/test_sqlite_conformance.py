"""The SQLite store is held to the rules of submitting, claiming, ending, exchanging and beating, in memory and in a file."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.conformance import beating, claiming, ending, exchanging, submitting


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, clock: MovableClock, path: Path) -> Iterator[Store]:
    with closing(open_store("sqlite://" if request.param == "memory" else f"sqlite:///{path}", clock)) as store:
        yield store


class TestSubmitting(submitting.Submitting): ...


class TestRepeatedIds(submitting.RepeatedIds): ...


class TestUniqueKeys(submitting.UniqueKeys): ...


class TestWaking(submitting.Waking): ...


class TestSucceeding(ending.Succeeding): ...


class TestFailing(ending.Failing): ...


class TestReleasing(ending.Releasing): ...


class TestCancelling(ending.Cancelling): ...


class TestJudging(exchanging.Judging): ...


class TestSpoiled(exchanging.Spoiled): ...


class TestOrdering(claiming.Ordering): ...


class TestClaiming(claiming.Claiming): ...


class TestRestricting(claiming.Restricting): ...


class TestJoining(beating.Joining): ...


class TestBeating(beating.Beating): ...


class TestTakingBack(beating.TakingBack): ...


class TestLeaving(beating.Leaving): ...
