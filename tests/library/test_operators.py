"""What operators do from Python, for one job or for many; every refusal says why, and every change is in the audit."""

import datetime as dt
from typing import Any

import pytest

from workmill import Conflict, Fail, InvalidInput, NotFound, State
from workmill.domain.errors import WorkmillError
from workmill.domain.job import NewJob
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.testing import MemoryMill


@pytest.fixture
def dead(mill: MemoryMill) -> list[str]:
    """The ids of three dead jobs in the queue `mail`, the newest first."""

    @mill.job(name="die", queue="mail")
    def die(number: int) -> None:
        raise Fail(f"number {number}")

    for number in range(3):
        die.enqueue(number)
    mill.run_pending()
    return [job.id for job in mill.jobs.find(state="dead")]


def test_jobs_are_found_by_what_is_known_of_them(mill: MemoryMill, dead: list[str]) -> None:
    live = mill.enqueue("other", queue="mail", tags=["red"], unique_key="k")

    assert [job.id for job in mill.jobs.find(state="dead", queue="mail")] == dead
    assert [job.id for job in mill.jobs.find(state=[State.DEAD, "queued"])] == [live.id, *dead]
    assert [job.id for job in mill.jobs.find(error_class="Fail", type="die")] == dead
    assert mill.jobs.find(tag="red") == mill.jobs.find(unique_key="k") == [live]
    assert mill.jobs.find(queue="empty") == []


def test_jobs_are_found_by_time(mill: MemoryMill) -> None:
    early = mill.enqueue("x")
    mill.clock.advance(60)
    late = mill.enqueue("x")

    assert mill.jobs.find(created_after=early.created_at + dt.timedelta(seconds=1)) == [late]
    assert mill.jobs.find(created_before=late.created_at) == [early]


def test_a_long_list_comes_in_pages(mill: MemoryMill, dead: list[str]) -> None:
    first = mill.jobs.find(limit=2)
    second = mill.jobs.find(limit=2, cursor=first.next)

    assert [job.id for job in [*first, *second]] == dead
    assert second.next is None


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"state": "done"}, "state: must be of blocked, scheduled"),
        ({"state": ["dead", "done"]}, "state: must be of blocked, scheduled"),
        ({"state": []}, "state: must name a state"),
        ({"sate": "dead"}, "sate: no such filter"),
        ({"limit": 0}, "limit: must be a whole number from 1 to 1000"),
        ({"created_after": dt.datetime(2026, 1, 1)}, "created_after: must have an offset"),  # noqa: DTZ001 - naive on purpose
    ],
)
def test_a_filter_that_means_nothing_is_refused(mill: MemoryMill, filters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mill.jobs.find(**filters)

    assert str(caught.value).startswith(message)


def test_a_dead_job_is_queued_again(mill: MemoryMill, dead: list[str]) -> None:
    job = mill.jobs.retry(dead[0])

    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert [attempt.message for attempt in mill.jobs.history(job)] == ["number 2"]


def test_a_waiting_job_is_cancelled(mill: MemoryMill) -> None:
    job = mill.enqueue("x", delay=60)

    assert mill.jobs.cancel(job) is job
    assert job.state is State.CANCELLED


def test_a_dead_job_is_discarded(mill: MemoryMill, dead: list[str]) -> None:
    mill.jobs.discard(dead[0])

    assert [job.id for job in mill.jobs.find()] == dead[1:]


def test_a_waiting_job_is_moved_to_another_time(mill: MemoryMill) -> None:
    job = mill.enqueue("x", delay=60)
    noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)

    assert mill.jobs.reschedule(job.id, noon).run_at == noon
    assert mill.jobs.reschedule(job).state is State.QUEUED


@pytest.mark.parametrize(
    ("verb", "code", "message"),
    [
        ("retry", "not_revivable", "is queued: it has not ended, or has succeeded"),
        ("discard", "not_discardable", "is queued: it has not ended, or has succeeded"),
    ],
)
def test_a_verb_that_does_not_fit_the_state_is_a_conflict(mill: MemoryMill, verb: str, code: str, message: str) -> None:
    job = mill.enqueue("x")

    with pytest.raises(Conflict, match=message) as caught:
        getattr(mill.jobs, verb)(job)

    assert caught.value.code == code


def test_what_has_ended_is_neither_cancelled_nor_moved(mill: MemoryMill, dead: list[str]) -> None:
    with pytest.raises(Conflict, match=r"is dead: it has ended"):
        mill.jobs.cancel(dead[0])
    with pytest.raises(Conflict, match=r"is dead: it is not waiting for its time"):
        mill.jobs.reschedule(dead[0])


def test_a_job_does_not_come_back_while_another_has_its_key(mill: MemoryMill) -> None:
    old = mill.enqueue("x", unique_key="k")
    mill.jobs.cancel(old)
    mill.enqueue("x", unique_key="k")

    with pytest.raises(Conflict, match=r"another live job has its unique key"):
        mill.jobs.retry(old)


@pytest.mark.parametrize("verb", ["get", "retry", "cancel", "discard", "reschedule"])
def test_an_unknown_job_is_not_found(mill: MemoryMill, verb: str) -> None:
    with pytest.raises(NotFound):
        getattr(mill.jobs, verb)("no-such-id")


def test_all_that_match_are_retried_and_the_rest_is_counted_with_reasons(mill: MemoryMill, dead: list[str]) -> None:
    live = mill.enqueue("x", queue="mail")

    everything = mill.jobs.retry_all(queue="mail", state=list(State))
    again = mill.jobs.retry_all(queue="mail")

    assert (everything.done, everything.skipped) == (3, {"not_revivable": 1})
    assert (again.done, again.skipped) == (0, {})
    assert {job.state for job in mill.jobs.find()} == {State.QUEUED}
    assert live.refresh().attempt == 0


def test_all_that_match_are_cancelled_or_discarded_page_by_page(mill: MemoryMill) -> None:
    mill.store.submit([_new() for _ in range(1_100)])

    assert mill.jobs.cancel_all(type="x").done == 1_100
    assert mill.jobs.discard_all(type="x").done == 0
    assert mill.jobs.discard_all(type="x", state="cancelled").done == 1_100
    assert mill.jobs.find() == []


def _new() -> NewJob:
    return new_job(new_id(), "x", "{}")


def test_a_paused_queue_is_left_alone_until_it_is_resumed(mill: MemoryMill) -> None:
    @mill.job(queue="mail")
    def send() -> None: ...

    job = send.enqueue()
    mill.queues.pause("mail")
    paused = mill.run_pending()
    mill.queues.resume("mail")
    resumed = mill.run_pending()

    assert (paused, len(resumed)) == ([], 1)
    assert job.wait().state is State.SUCCEEDED


def test_queues_are_listed_with_counts_pause_and_limit(mill: MemoryMill, dead: list[str]) -> None:
    mill.queues.limit("mail", 3)
    mill.queues.pause("later")

    queues = {queue.name: queue for queue in mill.queues.list()}

    assert queues["mail"].counts == {State.DEAD: 3}
    assert (queues["mail"].limit, queues["mail"].paused, queues["later"].paused) == (3, False, True)
    assert mill.queues.stats(600)[0].dead == 3


@pytest.mark.parametrize("name", ["a/b", "", "x" * 101])
def test_a_queue_with_an_impossible_name_is_refused(mill: MemoryMill, name: str) -> None:
    for verb in (mill.queues.pause, mill.queues.resume, lambda queue: mill.queues.limit(queue, 1)):
        with pytest.raises(InvalidInput, match=r"^queue: "):
            verb(name)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "5", 10**9])
def test_a_limit_that_is_none_is_refused(mill: MemoryMill, limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^limit: "):
        mill.queues.limit("mail", limit)


def test_an_unknown_worker_is_not_found(mill: MemoryMill) -> None:
    for verb in (mill.workers.drain, mill.workers.resume, lambda worker: mill.workers.concurrency(worker, 3)):
        with pytest.raises(NotFound):
            verb("no-such-id")

    assert mill.workers.list() == []


def test_every_change_leaves_a_line_in_the_audit_and_a_refused_one_none(mill: MemoryMill, dead: list[str]) -> None:
    mill.queues.pause("mail")
    mill.jobs.retry(dead[0])
    with pytest.raises(WorkmillError):
        mill.jobs.discard(dead[0])

    lines = mill.audit()

    assert [line.count for line in lines] == [1, 0]
    assert dead[0] in lines[0].target
    assert lines[1].target == "mail"
    assert all(line.actor.startswith("python:") for line in lines)


def test_a_list_of_no_states_does_not_mean_every_job(mill: MemoryMill, dead: list[str]) -> None:
    with pytest.raises(InvalidInput, match="must name a state"):
        mill.jobs.discard_all(state=[])

    assert len(mill.jobs.find(state="dead")) == len(dead)
