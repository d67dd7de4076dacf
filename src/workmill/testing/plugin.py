"""The pytest plug-in. It changes nothing by being there: only a test that asks for a fixture gets a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from workmill import Workmill
    from workmill.testing import MemoryMill, MovableClock, Ran


@pytest.fixture
def workmill_app() -> Workmill | None:
    """The Workmill of the application under test. Override it in a conftest.py, so that `mill` takes it over."""
    return None


@pytest.fixture
def mill(workmill_app: Workmill | None) -> Iterator[MemoryMill]:
    """A store in memory of the test's own, for the application's Workmill if there is one; `mill.run_pending()` runs its jobs."""
    from workmill.testing import memory_mill  # noqa: PLC0415 - a test run that uses no fixture of these loads nothing of this

    with memory_mill(workmill_app) as made:
        yield made


@pytest.fixture
def run_pending(mill: MemoryMill) -> Callable[..., list[Ran]]:
    """`mill.run_pending`."""
    return mill.run_pending


@pytest.fixture
def clock(mill: MemoryMill) -> MovableClock:
    """`mill.clock`: `clock.advance(60)` lets a minute pass."""
    return mill.clock


@pytest.fixture
def assert_enqueued(mill: MemoryMill) -> Callable[..., Any]:  # noqa: ARG001 - it looks into the store that `mill` has put in place
    """`workmill.testing.assert_enqueued`."""
    from workmill.testing import assert_enqueued  # noqa: PLC0415 - see above

    return assert_enqueued
