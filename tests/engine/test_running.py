"""What becomes of jobs in a worker: every way a run can end, on a real store."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from workmill.domain.errors import Fail, RetryIn, Snooze
from workmill.domain.outcome import ErrorReport
from workmill.domain.states import State
from workmill.engine.context import RunningJob, current_job
from workmill.engine.handlers import Hooks
from workmill.upkeep import Keeper

PATIENCE = 20.0


def raising(error: BaseException) -> Callable[[str], Any]:
    def handler(_payload: str) -> Any:
        raise error

    return handler


def test_a_job_runs_and_its_result_is_kept_as_text(shop: Any) -> None:
    shop.handler(lambda payload: payload)
    (job,) = shop.submit(payload='{"b":1,"a":[1E2]}')

    shop.start()
    shop.wait_for([job])

    assert (shop.job(job).state, shop.job(job).result) == (State.SUCCEEDED, '{"b":1,"a":[1E2]}')


def test_async_jobs_run_on_the_loop_at_the_same_time(shop: Any) -> None:
    arrived, together = [], asyncio.Event()

    async def meet(_payload: str) -> None:
        arrived.append(threading.current_thread().name)
        if len(arrived) == 4:
            together.set()
        await asyncio.wait_for(together.wait(), PATIENCE)

    shop.handler(meet, kind="loop")
    jobs = shop.submit(4)

    shop.start()
    shop.wait_for(jobs, State.SUCCEEDED)

    assert set(arrived) == {"workmill-loop"}


def test_a_job_that_fails_waits_for_its_next_attempt_and_its_history_tells_why(shop: Any) -> None:
    shop.handler(raising(ValueError("boom")))
    (job,) = shop.submit(backoff=[3_600])

    shop.start()
    shop.wait_for([job], State.RETRYING)

    (attempt,) = shop.store.history(job).attempts
    assert (attempt.kind, attempt.error_class, attempt.message) == ("error", "ValueError", "boom")
    assert "raise error" in attempt.traceback


def test_a_job_out_of_attempts_is_dead(shop: Any) -> None:
    shop.handler(raising(SystemExit(3)))
    (job,) = shop.submit(max_attempts=3, backoff=[0])

    shop.start()
    shop.wait_for([job], State.DEAD)

    assert [attempt.error_class for attempt in shop.store.history(job).attempts] == ["SystemExit"] * 3


@pytest.mark.parametrize(
    ("handler", "options"),
    [(raising(Fail("no")), {}), (raising(KeyError("x")), {"give_up_on": (LookupError,)})],
    ids=["fail", "give_up_on"],
)
def test_a_final_failure_leaves_attempts_unused(shop: Any, handler: Any, options: Any) -> None:
    shop.handler(handler, **options)
    (job,) = shop.submit(max_attempts=5)

    shop.start()
    shop.wait_for([job], State.DEAD)

    assert shop.job(job).attempt == 1


def test_retry_in_wins_over_the_backoff(shop: Any) -> None:
    shop.handler(lambda _payload: raising(RetryIn(0))(_payload) if current_job().attempt == 1 else "null")
    (job,) = shop.submit(backoff=[3_600])

    shop.start()
    shop.wait_for([job], State.SUCCEEDED)

    assert shop.job(job).attempt == 2


def test_a_snoozed_job_waits_without_being_charged(shop: Any) -> None:
    shop.handler(raising(Snooze(3_600, "closed")))
    (job,) = shop.submit()

    shop.start()
    shop.wait_for([job], State.SCHEDULED)

    assert (shop.job(job).attempt, shop.job(job).snoozes) == (0, 1)


def test_text_that_cannot_be_stored_is_stored_in_visible_form(shop: Any) -> None:
    shop.handler(raising(ValueError("a\x00b\ud800c")))
    (job,) = shop.submit(max_attempts=1)

    shop.start()
    shop.wait_for([job], State.DEAD)

    assert shop.job(job).error.message == "a\\x00b\\ud800c"


def test_a_result_that_cannot_be_stored_ends_its_own_job_alone(shop: Any) -> None:
    shop.handler(lambda payload: '"\ud800"' if payload == '"bad"' else "null")
    bad, good = shop.submit(payload='"bad"', max_attempts=1), shop.submit(20)

    shop.start()
    shop.wait_for([*bad, *good])

    assert shop.states(good) == {State.SUCCEEDED}
    assert shop.states(bad) == {State.DEAD}


def test_a_type_without_a_handler_is_set_aside_and_nothing_else_is_held_up(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    unknown, known = shop.submit(30, type="unknown"), shop.submit(30)

    shop.start()
    shop.wait_for(known, State.SUCCEEDED)
    shop.until(lambda: {shop.job(job).aside for job in unknown} == {"unknown_type"})

    assert shop.states(unknown) == {State.QUEUED}
    assert {shop.job(job).attempt for job in unknown} == {0}


def test_jobs_set_aside_run_as_soon_as_a_worker_comes_that_knows_them(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    unknown = shop.submit(30, type="later")
    first = shop.start()
    shop.until(lambda: {shop.job(job).aside for job in unknown} == {"unknown_type"})
    first.stop(0)

    shop.handler(lambda _payload: "null", name="later")
    shop.start()
    shop.wait_for(unknown, State.SUCCEEDED)


def test_progress_is_stored_with_the_next_beat(shop: Any) -> None:
    lock = shop.lock()

    def handler(_payload: str) -> None:
        current_job().progress(0.25, "a quarter \x00")
        lock.wait(PATIENCE)

    shop.handler(handler)
    (job,) = shop.submit()
    shop.start(lease_seconds=0.5)

    progress = shop.until(lambda: shop.job(job).progress)

    assert (progress.fraction, progress.message) == (0.25, "a quarter \\x00")


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), "half", True])
def test_a_fraction_that_is_none_fails_the_attempt_with_the_rule(shop: Any, fraction: Any) -> None:
    shop.handler(lambda _payload: current_job().progress(fraction))
    (job,) = shop.submit(max_attempts=1)

    shop.start()
    shop.wait_for([job], State.DEAD)

    assert shop.job(job).error.message.startswith("fraction: must be a number from 0 to 1")


def test_jobs_of_one_queue_start_by_priority_then_in_order(shop: Any) -> None:
    started: list[str] = []
    shop.handler(lambda payload: started.append(json.loads(payload)))
    for priority in (0, 10, -5):
        shop.submit(20, payload=json.dumps(priority), priority=priority)

    worker = shop.worker(concurrency=1, burst=True)
    worker.run()

    assert started == [10] * 20 + [0] * 20 + [-5] * 20


def test_on_dead_hears_of_each_job_that_died_and_a_hook_that_fails_stops_nothing(shop: Any) -> None:
    dead: list[tuple[str, str]] = []

    def broken(_job: RunningJob, _error: ErrorReport) -> None:
        raise ValueError("a bad hook")

    def note(job: RunningJob, error: ErrorReport) -> None:
        dead.append((job.id, error.message))

    shop.handler(raising(ValueError("boom")))
    jobs = shop.submit(5, max_attempts=1)

    shop.start(hooks=Hooks(on_dead=(broken, note)))
    shop.until(lambda: len(dead) == 5)

    assert sorted(dead) == sorted((job, "boom") for job in jobs)
    assert len(shop.told("hook.failed")) == 5


def test_hooks_run_at_start_and_end_and_middleware_around_each_run(shop: Any) -> None:
    seen: list[str] = []

    @contextmanager
    def around(_job: RunningJob) -> Iterator[None]:
        seen.append("before")
        yield
        seen.append("after")

    shop.handler(lambda _payload: seen.append("run"))
    shop.submit()
    hooks = Hooks(on_startup=(lambda: seen.append("up"),), on_shutdown=(lambda: seen.append("down"),), middleware=(around,))

    shop.worker(hooks=hooks, burst=True).run()

    assert seen == ["up", "before", "run", "after", "down"]


def test_a_startup_hook_that_fails_stops_the_start_before_the_worker_joins(shop: Any) -> None:
    def broken() -> None:
        raise ConnectionError("no database")

    worker = shop.worker(hooks=Hooks(on_startup=(broken,)))

    with pytest.raises(ConnectionError, match="no database"):
        worker.start()

    assert shop.store.workers() == []


def test_every_event_of_a_job_carries_its_ids(shop: Any) -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    shop.handler(lambda _payload: "null")
    (job,) = shop.submit(traceparent=trace)

    worker = shop.worker(burst=True)
    worker.run()

    told = {event.name: event.all_fields() for event in shop.events if event.job is not None}
    assert list(told) == ["job.claimed", "job.started", "job.succeeded"]
    assert {(fields["job_id"], fields["trace_id"], fields["lease"]) for fields in told.values()} == {(job, "a" * 32, 1)}
    assert {fields["worker_id"] for fields in told.values()} == {worker.stats().worker_id}
    assert told["job.succeeded"]["ms"] >= 0


def test_a_burst_promotes_what_is_due_and_stops_when_nothing_is_left(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    jobs = shop.submit(300)
    (later,) = shop.submit(delay=3_600)

    left = shop.worker(burst=True, beside=(Keeper(shop.store, shop.telemetry),)).run()

    assert not left
    assert shop.states(jobs) == {State.SUCCEEDED}
    assert shop.job(later).state is State.SCHEDULED
    assert shop.store.workers() == []


def test_a_worker_with_a_quota_claims_exactly_that_many(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    jobs = shop.submit(50)

    shop.worker(max_jobs=17).run()

    assert sorted(shop.job(job).state for job in jobs) == sorted([State.SUCCEEDED] * 17 + [State.QUEUED] * 33)


def test_a_worker_for_named_queues_leaves_the_others_alone(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    mail, video = shop.submit(40, queue="mail"), shop.submit(5, queue="video")

    shop.worker(queues={"mail": 3}, burst=True).run()

    assert shop.states(mail) == {State.SUCCEEDED}
    assert shop.states(video) == {State.QUEUED}


def test_each_named_queue_has_its_own_slots(shop: Any) -> None:
    lock, started = shop.lock(), []

    def handler(_payload: str) -> None:
        started.append(current_job().queue)
        lock.wait(PATIENCE)

    shop.handler(handler)
    shop.submit(10, queue="mail")
    shop.submit(10, queue="video")
    shop.start(queues={"mail": 3, "video": 1})

    shop.until(lambda: len(started) >= 4)
    lock.set()

    assert sorted(started[:4]) == ["mail", "mail", "mail", "video"]


def test_threads_and_tasks_of_one_pool_share_its_slots(shop: Any) -> None:
    running, most, lock = [0], [0], threading.Lock()

    def count(step: int) -> None:
        with lock:
            running[0] += step
            most[0] = max(most[0], running[0])

    def sync(_payload: str) -> None:
        count(1)
        threading.Event().wait(0.002)
        count(-1)

    async def on_loop(_payload: str) -> None:
        count(1)
        await asyncio.sleep(0.002)
        count(-1)

    shop.handler(sync, name="sync")
    shop.handler(on_loop, kind="loop", name="on_loop")
    for _ in range(15):
        shop.submit(2, type="sync")
        shop.submit(2, type="on_loop")

    shop.worker(concurrency=3, burst=True).run()

    assert most[0] == 3


def test_a_queue_limit_holds_in_one_worker(shop: Any) -> None:
    running, most, lock = [0], [0], threading.Lock()

    def handler(_payload: str) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.002)
        with lock:
            running[0] -= 1

    shop.handler(handler)
    shop.store.limit("narrow", 2, actor="test")
    jobs = shop.submit(20, queue="narrow")

    shop.start(concurrency=8)
    shop.wait_for(jobs, State.SUCCEEDED)

    assert most[0] <= 2
