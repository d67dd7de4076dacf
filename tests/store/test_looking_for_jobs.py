"""Which path finds jobs, and that looking ends: by the clock, not by the size of the store."""

import itertools
import sqlite3
from collections.abc import Callable

import pytest

from workmill import clock as clocks
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.operations import selection as selecting
from workmill.testing.steps import ACTOR, settle

Plant = Callable[..., str]


@pytest.fixture
def a_needle(sql: sqlite3.Connection, plant: Plant) -> str:
    """One job with a tag below 3,000 newer ones without."""
    sql.execute("BEGIN")
    needle = plant(State.SUCCEEDED, tags='["rare"]')
    for _ in range(3_000):
        plant(State.SUCCEEDED)
    sql.execute("COMMIT")
    return needle


@pytest.fixture
def slow_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the time finds it 0.15 s later."""
    ticks = itertools.count()
    monkeypatch.setattr(clocks, "monotonic", lambda: next(ticks) * 0.15)


@pytest.mark.usefixtures("slow_looks")
def test_a_page_of_a_rare_filter_ends_in_time_with_a_cursor_that_leads_to_the_end(file_store: Store, a_needle: str) -> None:
    pages = [file_store.jobs(Selection(tag="rare"))]
    while pages[-1].next:
        pages.append(file_store.jobs(Selection(tag="rare"), cursor=pages[-1].next))

    assert len(pages) > 1
    assert [len(page.jobs) for page in pages] == [0] * (len(pages) - 1) + [1]
    assert pages[-1].jobs[0].id == a_needle


@pytest.mark.usefixtures("slow_looks")
def test_a_bulk_action_with_a_rare_filter_ends_in_time_and_goes_on(file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    sql.execute("BEGIN")
    for number in range(3_000):
        plant(State.QUEUED, tags='["rare"]' if number % 1_500 == 0 else None)
    sql.execute("COMMIT")
    answers = [file_store.cancel(Selection(tag="rare"), actor=ACTOR)]
    while answers[-1].next:
        answers.append(file_store.cancel(Selection(tag="rare"), actor=ACTOR, cursor=answers[-1].next))

    assert len(answers) > 1
    assert sum(answer.done for answer in answers) == 2
    settle(file_store)


@pytest.mark.usefixtures("slow_looks")
@pytest.mark.parametrize("state", [State.DEAD, State.CANCELLED, State.RUNNING, State.SCHEDULED, State.QUEUED])
def test_a_state_with_few_jobs_is_found_at_once_below_any_number_of_others(
    state: State, file_store: Store, a_needle: str, sql: sqlite3.Connection
) -> None:
    finished = "finished_at = NULL," if state in {State.RUNNING, State.SCHEDULED, State.QUEUED} else ""
    sql.execute(f"UPDATE workmill_jobs SET {finished} state = ?, error_class = 'E' WHERE id = ?", (state, a_needle))  # noqa: S608
    sql.execute("INSERT INTO workmill_count_deltas (queue, state, jobs) VALUES ('default', ?, 1), ('default', 'succeeded', -1)", (state,))

    page = file_store.jobs(Selection(states=(state,)))

    assert [job.id for job in page.jobs] == [a_needle]
    assert page.next is None


@pytest.mark.parametrize("few", [0, 10**9])
def test_both_ways_of_looking_find_the_same(few: int, file_store: Store, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selecting, "FEW", few)
    planted = {state: [plant(state) for _ in range(3)] for state in State}

    found = {state: [job.id for job in file_store.jobs(Selection(states=(state,))).jobs] for state in State}

    assert found == {state: ids[::-1] for state, ids in planted.items()}
    assert file_store.count(Selection(states=(State.DEAD, State.QUEUED), type="noop")) == 6


def test_jobs_of_our_own_queues_are_met_only_by_name(file_store: Store, plant: Plant) -> None:
    ours, theirs = plant(State.QUEUED, queue="workmill.webhooks"), plant(State.QUEUED, queue="Workmill.webhooks")

    assert [job.id for job in file_store.jobs(Selection()).jobs] == [theirs]
    assert file_store.count(Selection()) == file_store.count(Selection(type="noop")) == 1
    assert file_store.cancel(Selection(), actor=ACTOR).done == 1
    assert file_store.job(ours).state is State.QUEUED
    assert file_store.cancel(Selection(queue="workmill.webhooks"), actor=ACTOR).done == 1
    settle(file_store)
