"""The tutorial, part 2: when a job runs, before which others, how often it is tried, and how to make sure that there is only one.

The fixture `mill` comes with Workmill's pytest plug-in. Its store is in memory, its clock stands still until it is moved, and its jobs
run in this thread when `run_pending()` is called. Your own tests can use it just so; part 4 shows how it takes over your application.
"""

from datetime import timedelta

import pytest

from workmill import Fail, JobFailed, Retry, RetryIn, Snooze, State, current_job
from workmill.testing import MemoryMill


def test_a_job_can_wait_for_its_time(mill: MemoryMill) -> None:
    @mill.job
    def remind(text: str) -> str:
        return text

    # `using` takes the options, so that they never get in the way of the arguments. A number is seconds.
    job = remind.using(delay=timedelta(hours=1)).enqueue("tea")
    assert job.state is State.SCHEDULED

    assert mill.run_pending() == []

    mill.clock.advance(3_600)
    mill.run_pending()
    assert job.wait().result == "tea"


def test_a_job_can_come_too_late(mill: MemoryMill) -> None:
    @mill.job(expires_in=60)
    def announce(text: str) -> None: ...

    job = announce.enqueue("doors close in a minute")
    mill.clock.advance(61)
    mill.run_pending()

    assert job.refresh().state is State.EXPIRED


def test_higher_priority_first_then_first_in_first_out(mill: MemoryMill) -> None:
    @mill.job
    def note(text: str) -> str:
        return text

    note.enqueue("one")
    note.enqueue("two")
    note.using(priority=10).enqueue("urgent")

    assert [ran.job.result for ran in mill.run_pending()] == ["urgent", "one", "two"]


def test_a_unique_key_makes_sure_that_there_is_one(mill: MemoryMill) -> None:
    # While a job with this key is live, enqueueing gives that job. The key can be made from the arguments.
    @mill.job(unique_key=lambda user: f"welcome:{user}")
    def welcome(user: int) -> None: ...

    first = welcome.enqueue(42)
    second = welcome.enqueue(42)

    assert second == first
    assert (first.created, second.created) == (True, False)


def test_what_fails_is_tried_again(mill: MemoryMill) -> None:
    # Five attempts by default, with growing pauses. Here: three, with pauses of one minute and then ten.
    @mill.job(retry=Retry(max_attempts=3, backoff=[60, 600]))
    def fetch() -> str:
        if current_job().attempt < 3:
            raise ConnectionError("the network is down")
        return "the page"

    job = fetch.enqueue()

    mill.run_pending()
    assert job.refresh().state is State.RETRYING
    assert job.error is not None
    assert job.error.message == "the network is down"

    mill.clock.advance(60)
    mill.run_pending()
    mill.clock.advance(600)
    mill.run_pending()
    assert job.wait().result == "the page"


def test_what_fails_too_often_is_dead_until_somebody_retries_it(mill: MemoryMill) -> None:
    broken = True

    @mill.job(retry=Retry(max_attempts=2, backoff=[0]))
    def charge() -> str:
        if broken:
            raise ConnectionError("the bank is closed")
        return "paid"

    job = charge.enqueue()
    mill.run_pending()

    # Dead jobs are kept. They are the list of what somebody has to look at.
    assert mill.jobs.find(state="dead") == [job]
    with pytest.raises(JobFailed, match="ConnectionError: the bank is closed"):
        _ = job.wait().result

    broken = False
    mill.jobs.retry(job)
    mill.run_pending()
    assert job.wait().result == "paid"

    # Its history stays.
    assert [attempt.kind for attempt in mill.jobs.history(job)] == ["error", "error", "succeeded"]


def test_a_function_can_say_how_its_run_ends(mill: MemoryMill) -> None:
    @mill.job
    def poll(order: int) -> str:
        if order == 404:
            raise Fail("there is no such order")  # no use to try again: dead at once
        if current_job().attempt == 1:
            raise RetryIn(30, "the shop asked us to come back in 30 s")  # a failed attempt with a time of its own
        return "shipped"

    unknown, known = poll.enqueue(404), poll.enqueue(1)
    mill.run_pending()
    mill.clock.advance(30)
    mill.run_pending()

    assert unknown.refresh().state is State.DEAD
    assert known.wait().result == "shipped"


def test_a_function_can_put_its_job_off(mill: MemoryMill) -> None:
    open_for_business = False

    @mill.job(retry=Retry(max_attempts=1))
    def settle() -> str:
        if not open_for_business:
            raise Snooze(3_600)  # not now; this is no failure and uses up no attempt
        return "settled"

    job = settle.enqueue()
    mill.run_pending()
    assert job.refresh().state is State.SCHEDULED

    open_for_business = True
    mill.clock.advance(3_600)
    mill.run_pending()
    assert job.wait().result == "settled"
