"""One bad row never stops the others: a pass of upkeep goes around it, and it gets an ending with a reason."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from workmill.clock import to_datetime
from workmill.domain.errors import StoreFailure
from workmill.domain.job import Selection
from workmill.domain.limits import SECOND
from workmill.domain.outcome import Fence
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim_one, failed, join, report, submit

Plant = Callable[..., str]
DUE = {"run_at": 0}
STEPS: dict[str, tuple[State, dict[str, Any], Callable[[Store], int], State]] = {
    "promote": (State.SCHEDULED, DUE, lambda store: store.promote(), State.QUEUED),
    "expire": (State.QUEUED, {"expires_at": 1}, lambda store: store.expire(), State.EXPIRED),
    "rescue": (State.RUNNING, {"worker_id": "nobody"}, lambda store: store.rescue(), State.RETRYING),
}


def spoil(sql: sqlite3.Connection, job: str, state: State) -> None:
    """From now on the row of the job refuses to enter a state, as a constraint of the application's own might."""
    sql.execute(
        f"CREATE TRIGGER spoiled BEFORE UPDATE ON workmill_jobs WHEN NEW.id = '{job}' AND NEW.state = '{state}' "
        "BEGIN SELECT RAISE(ABORT, 'this row cannot be moved'); END"
    )


@pytest.mark.parametrize("step", STEPS)
def test_one_row_among_many_that_cannot_be_moved_is_buried_and_the_others_move(
    step: str, file_store: Store, sql: sqlite3.Connection, plant: Plant
) -> None:
    state, columns, run, target = STEPS[step]
    jobs = [plant(state, **columns) for _ in range(1_000)]
    spoil(sql, jobs[617], target)

    assert run(file_store) == 999

    assert file_store.counts() == {("default", target): 999, ("default", State.DEAD): 1}
    spoiled = file_store.job(jobs[617])
    assert spoiled.state is State.DEAD
    assert spoiled.error is not None
    assert (spoiled.error.type, "this row cannot be moved" in spoiled.error.message) == ("unmovable", True)
    assert run(file_store) == 0


def test_several_rows_that_cannot_be_moved_are_each_found(file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    jobs = [plant(State.SCHEDULED, run_at=0, max_losses=1 + number % 7) for number in range(100)]
    sql.execute(
        "CREATE TRIGGER spoiled BEFORE UPDATE ON workmill_jobs WHEN NEW.max_losses = 3 AND NEW.state = 'queued' "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )

    moved = file_store.promote()

    assert len(jobs) - moved == file_store.counts()["default", State.DEAD] == 14
    assert file_store.invariants() == []


@pytest.mark.parametrize("column", ["losses", "max_losses"])
def test_a_number_that_is_none_costs_its_own_row_only(column: str, file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    jobs = [plant(State.RUNNING, worker_id="nobody") for _ in range(10)]
    sql.execute(f"UPDATE workmill_jobs SET {column} = 'many' WHERE id = ?", (jobs[3],))  # noqa: S608

    assert file_store.rescue() == 9
    assert file_store.job(jobs[3]).state is State.DEAD


def test_a_row_that_cannot_even_be_buried_stops_nobody(file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    jobs = [plant(State.SCHEDULED, run_at=0) for _ in range(10)]
    spoil(sql, jobs[0], State.QUEUED)
    sql.execute(
        f"CREATE TRIGGER immovable BEFORE UPDATE ON workmill_jobs WHEN NEW.id = '{jobs[0]}' BEGIN SELECT RAISE(ABORT, 'never'); END"
    )

    assert [file_store.promote(), file_store.promote()] == [9, 0]
    assert file_store.job(jobs[0]).state is State.SCHEDULED


def test_a_failure_that_is_no_rows_fault_ends_nothing(file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    for _ in range(10):
        plant(State.SCHEDULED, run_at=0)
    sql.execute("ALTER TABLE workmill_count_deltas RENAME TO elsewhere")

    with pytest.raises(StoreFailure):
        file_store.promote()
    sql.execute("ALTER TABLE elsewhere RENAME TO workmill_count_deltas")

    assert file_store.counts() == {("default", State.SCHEDULED): 10}
    assert file_store.promote() == 10


def test_a_running_job_whose_worker_nobody_knows_is_taken_back(file_store: Store, clock: MovableClock, plant: Plant) -> None:
    job = plant(State.RUNNING, worker_id="vanished")
    join(file_store)
    assert file_store.invariants() == [f"I7 running for a worker that nobody knows: {job}"]

    assert file_store.rescue() == 1

    assert file_store.invariants() == []


@pytest.mark.parametrize(
    "spoiled",
    [
        "tags = 'not json'", "tags = '5'", "progress = '[1]'", "progress = '{\"speed\": 1}'", "run_at = 'soon'", f"run_at = {2**62}",
        "created_at = -9000000000000000000", "finished_at = 'late'", "error_class = 5",
    ],
)  # fmt: skip
def test_an_odd_row_is_shown_marked_and_breaks_no_page(spoiled: str, file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    fine, odd = plant(State.SUCCEEDED), plant(State.SUCCEEDED)
    sql.execute(f"UPDATE workmill_jobs SET {spoiled} WHERE id = ?", (odd,))  # noqa: S608

    page = file_store.jobs(Selection())

    assert [job.id for job in page.jobs] == [odd, fine]
    assert file_store.jobs(Selection(tag="rare")).jobs == ()
    assert file_store.job(odd).error is not None
    assert file_store.job(fine).error is None


@pytest.mark.parametrize("backoff", ["not json", "{}x", '{"base": "fast"}', "[]", "null", "17"])
def test_a_backoff_that_is_none_buries_its_job_with_the_reason(
    backoff: str, file_store: Store, sql: sqlite3.Connection, clock: MovableClock
) -> None:
    receipt = submit(file_store)
    sql.execute("UPDATE workmill_jobs SET backoff = ?", (backoff,))
    worker = join(file_store)

    report(file_store, worker, failed(claim_one(file_store, worker), "the real reason"))

    job = file_store.job(receipt.id)
    assert job.state is State.DEAD
    assert job.error is not None
    assert "the real reason" in job.error.message


def test_the_ten_thousandth_failure_waits_no_longer_than_the_cap(file_store: Store, clock: MovableClock, plant: Plant) -> None:
    worker = join(file_store)
    job = plant(State.RUNNING, worker_id=worker, attempt=9_999, max_attempts=10_000)

    report(file_store, worker, failed(Fence(job, 1)))

    assert file_store.job(job).state is State.RETRYING
    assert file_store.job(job).run_at <= to_datetime(clock() + 3_600 * SECOND)
