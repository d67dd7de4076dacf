"""I4: whoever holds an old lease, another's, or none changes nothing: not the row, not the history, not a count, not a figure."""

from collections.abc import Callable
from typing import Any

import pytest

from workmill.domain.errors import NotFound
from workmill.domain.job import Progress
from workmill.domain.outcome import FailureKind, Fence, LeaseLost, Outcome, ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import Held, Wants
from workmill.ids import new_id
from workmill.store.base import Store
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim_one, failed, join, released, report, submit, succeeded
from workmill.testing.steps import ACTOR, crash, only

Snapshot = Callable[[], Any]
WRITES: dict[str, Callable[[Fence], Outcome]] = {
    "succeed": lambda fence: succeeded(fence, '"late"'),
    "fail": failed,
    "fail for good": lambda fence: failed(fence, final=True),
    "release": released,
    "snooze": lambda fence: released(fence, ReleaseReason.SNOOZE, 5),
    "set aside": lambda fence: released(fence, ReleaseReason.UNKNOWN_TYPE),
}


def a_second_run(store: Store, clock: MovableClock) -> tuple[Fence, str]:
    """A job that was lost and runs again: the fence and the worker of its new run."""
    submit(store)
    crash(store, clock, held=1)
    store.promote()
    worker = join(store, "second")
    return claim_one(store, worker).fence, worker


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("lease", [-1, 0, 1, 3, 2**62])
def test_an_outcome_under_any_lease_but_the_newest_changes_nothing(
    write: str, lease: int, file_store: Store, clock: MovableClock, everything: Snapshot
) -> None:
    fence, worker = a_second_run(file_store, clock)
    old = Fence(fence.id, lease)
    before = everything()

    assert fence.lease == 2
    assert report(file_store, worker, WRITES[write](old)) == [LeaseLost(old)]
    assert everything() == before


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("who", ["another", "gone", "nobody"])
def test_an_outcome_of_another_worker_changes_nothing(
    write: str, who: str, file_store: Store, clock: MovableClock, everything: Snapshot
) -> None:
    fence, _ = a_second_run(file_store, clock)
    gone = join(file_store)
    file_store.leave(gone)
    worker = {"another": join(file_store), "gone": gone, "nobody": new_id()}[who]
    before = everything()

    assert report(file_store, worker, WRITES[write](fence)) == [LeaseLost(fence)]
    assert everything() == before


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("end", ["cancelled", "revived", "discarded"])
def test_an_outcome_after_an_end_changes_nothing(
    write: str, end: str, file_store: Store, clock: MovableClock, everything: Snapshot
) -> None:
    submit(file_store, max_losses=1)
    worker = join(file_store)
    run = claim_one(file_store, worker)
    file_store.cancel(only(run.id), actor=ACTOR)
    report(file_store, worker, failed(run, kind=FailureKind.TIMEOUT))
    if end == "revived":
        file_store.revive(only(run.id), actor=ACTOR)
    if end == "discarded":
        file_store.discard(only(run.id), actor=ACTOR)
    before = everything()

    assert report(file_store, worker, WRITES[write](run.fence)) == [LeaseLost(run.fence)]
    assert everything() == before


@pytest.mark.parametrize("lease", [1, 3])
def test_a_beat_with_an_old_lease_stores_no_progress_and_is_told_that_it_is_lost(
    lease: int, file_store: Store, clock: MovableClock, everything: Snapshot
) -> None:
    fence, worker = a_second_run(file_store, clock)
    old = Fence(fence.id, lease)
    before = everything()

    orders = file_store.heartbeat(worker, [Held(old, Progress(fraction=0.5))], 1)

    assert orders.lost == (old,)
    assert everything() == before


def test_a_beat_of_a_worker_that_is_gone_changes_nothing(file_store: Store, clock: MovableClock, everything: Snapshot) -> None:
    submit(file_store)
    worker = join(file_store)
    run = claim_one(file_store, worker)
    file_store.leave(worker)
    before = everything()

    with pytest.raises(NotFound):
        file_store.heartbeat(worker, [Held(run.fence, Progress(fraction=0.5))], 1)
    assert not file_store.exchange(worker, (), Wants(anywhere=5), held=[run.fence], seq=2).known
    assert file_store.leave(worker) == 0
    assert everything() == before


def test_a_worker_stopped_past_its_lease_changes_nothing_when_it_goes_on(
    file_store: Store, clock: MovableClock, everything: Snapshot
) -> None:
    file_store.limit("default", 1, actor=ACTOR)
    submit(file_store)
    stopped = join(file_store, "stopped")
    first = claim_one(file_store, stopped)
    crash(file_store, clock, held=0)
    file_store.promote()
    worker = join(file_store, "second")
    second = claim_one(file_store, worker)
    before = everything()

    for write in WRITES.values():
        assert report(file_store, stopped, write(first.fence)) == [LeaseLost(first.fence)]
    with pytest.raises(NotFound):
        file_store.heartbeat(stopped, [Held(first.fence, Progress(fraction=1.0))], 9)

    assert everything() == before
    report(file_store, worker, succeeded(second))
    assert file_store.counts() == {("default", State.SUCCEEDED): 1}
    assert file_store.invariants() == []
