"""Enqueueing: what becomes of options, who refuses what, and that nothing is written before everything has been checked."""

import asyncio
import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workmill import InvalidInput, PayloadTooLarge, RawPayload, Retry, State, Workmill, current_job
from workmill.testing import MemoryMill

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Workmill]:
    """A Workmill on a file."""
    with Workmill(f"sqlite:///{tmp_path}/jobs.db") as mill:
        yield mill


def test_a_job_carries_the_options_of_its_decorator(mill: MemoryMill) -> None:
    @mill.job(
        name="send",
        queue="mail",
        priority=7,
        retry=Retry(max_attempts=8, backoff=[1, 5]),
        timeout=dt.timedelta(seconds=30),
        expires_in=60,
        max_losses=1,
        unique_key="only-one",
        tags=["a", "b", "a"],
    )
    def send() -> None: ...

    record = send.enqueue().record

    assert (record.type, record.queue, record.priority, record.max_attempts, record.backoff) == ("send", "mail", 7, 8, "[1, 5]")
    assert (record.timeout, record.max_losses, record.unique_key, record.tags) == (30.0, 1, "only-one", ("a", "b"))
    assert record.expires_at == record.created_at + dt.timedelta(seconds=60)


def test_using_replaces_options_and_leaves_the_function_as_it_was(mill: MemoryMill) -> None:
    @mill.job(queue="mail", priority=7, timeout=30, tags=["a"])
    def send() -> None: ...

    other = send.using(queue="slow", timeout=None, tags=["b"], meta={"by": "test"}, delay=dt.timedelta(minutes=1)).enqueue()
    plain = send.enqueue()

    assert (other.queue, other.state, other.priority, other.tags, other.meta) == ("slow", State.SCHEDULED, 7, ("b",), {"by": "test"})
    assert other.record.timeout is None
    assert other.run_at == other.created_at + dt.timedelta(minutes=1)
    assert (plain.queue, plain.state, plain.tags, plain.meta, plain.record.timeout) == ("mail", State.QUEUED, ("a",), {}, 30.0)


def test_using_can_be_continued(mill: MemoryMill) -> None:
    @mill.job
    def send() -> None: ...

    job = send.using(queue="mail", priority=1).using(priority=2).enqueue()

    assert (job.queue, job.priority) == ("mail", 2)


def test_a_time_and_a_duration_for_the_same_replace_each_other(mill: MemoryMill) -> None:
    noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))

    @mill.job(expires_in=60)
    def send() -> None: ...

    job = send.using(delay=5).using(run_at=noon, expires_at=noon + dt.timedelta(hours=1)).enqueue()

    assert (job.run_at, job.record.expires_at) == (noon, noon + dt.timedelta(hours=1))


def test_zero_is_not_none(mill: MemoryMill) -> None:
    @mill.job(priority=5, retry=Retry(max_attempts=1), timeout=0.001)
    def send() -> None: ...

    job = send.using(delay=0, priority=0).enqueue()

    assert (job.state, job.priority, job.max_attempts, job.record.timeout) == (State.QUEUED, 0, 1, 0.001)


@pytest.mark.parametrize(
    ("option", "value"),
    [(name, value) for name in ("delay", "expires_in", "timeout") for value in (-1, math.nan, math.inf, 1e300, True, "5", -1e-9)]
    + [("timeout", 0), ("timeout", dt.timedelta(days=-1)), ("delay", dt.timedelta.max)]
    + [("priority", value) for value in (101, -101, 1.0, True, "5", math.nan, 10**400)]
    + [("max_losses", value) for value in (0, -1, 1.5, True, 10**9)]
    + [("run_at", value) for value in (dt.datetime(2026, 1, 1), "2026-01-01T00:00:00Z", 5)]  # noqa: DTZ001 - naive on purpose
    + [("expires_at", dt.datetime(2026, 1, 1))]  # noqa: DTZ001 - the same
    + [("queue", value) for value in ("a/b", "..", "", "x" * 300, "✉", "workmill.webhooks", 5, "a\n")]
    + [("tags", value) for value in ("abc", ["a b"], [5], ["x"] * 21, 5)]
    + [("unique_key", value) for value in ("", "x" * 201, "a\x00b", "\ud800", 5)]
    + [("meta", value) for value in ("[]", [1], {"x": math.nan}, {"x": "\ud800"}, {"x": "y" * 20_000}, {"x": object()})]
    + [("traceparent", value) for value in ("", "00-0-0-0", TRACE.upper(), TRACE + "\n")]
    + [("retry", 5), ("no_such_option", 1)],
)
def test_an_option_that_breaks_its_rule_is_named_before_any_row(mill: MemoryMill, option: str, value: Any) -> None:
    @mill.job
    def send() -> None: ...

    with pytest.raises(InvalidInput) as caught:
        send.using(**{option: value})

    assert caught.value.field.split(".", maxsplit=1)[0] == option
    assert mill.jobs.find() == []


def test_options_that_exclude_each_other_are_refused_together(mill: MemoryMill) -> None:
    @mill.job
    def send() -> None: ...

    with pytest.raises(InvalidInput, match=r"delay: cannot be set together with run_at"):
        send.using(delay=1, run_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize("attempts", [0, -1, 1.0, True, 10_001, math.inf])
def test_a_retry_is_refused_where_it_is_made(attempts: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^max_attempts: "):
        Retry(max_attempts=attempts)


def test_classes_to_give_up_on_belong_to_the_declaration(mill: MemoryMill) -> None:
    declared = Retry(max_attempts=8, give_up_on=(KeyError,))

    @mill.job(retry=declared)
    def send() -> None:
        raise KeyError("x")

    with pytest.raises(InvalidInput, match=r"^retry.give_up_on: belongs to the declaration of the function"):
        send.using(retry=Retry(give_up_on=(ValueError,)))
    with pytest.raises(InvalidInput, match=r"^retry.give_up_on: "):
        mill.enqueue("elsewhere", retry=declared)
    job = send.using(retry=declared).enqueue()
    mill.run_pending()

    assert job.refresh().state is State.DEAD


def test_an_argument_that_does_not_fit_writes_nothing(mill: MemoryMill) -> None:
    @mill.job
    def send(to: str, body: str = "") -> None: ...

    with pytest.raises(InvalidInput, match=r"^to: must be str \(got int\)"):
        send.enqueue(to=5)  # type: ignore[arg-type]
    with pytest.raises(PayloadTooLarge):
        mill.enqueue_many([send.job("a"), send.job("b", body="x" * (1 << 20))])

    assert mill.jobs.find() == []


@pytest.mark.parametrize("text", ["[9007199254740993, 123456789012345678901234567890, 1E2, -0]", '{"a": 1, "a": 2, "\\u0000": "\\u0000"}'])
def test_a_raw_payload_comes_back_byte_for_byte(mill: MemoryMill, text: str) -> None:
    @mill.job
    def echo(payload: RawPayload) -> RawPayload:
        return payload

    job = echo.enqueue(RawPayload(text))
    mill.run_pending()

    assert job.payload_text == text
    assert job.wait().result == text
    assert job.record.result == text


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', "1e400", "[" * 20_000 + "]" * 20_000, '"\\ud800"', "{", ""])
def test_a_raw_payload_that_cannot_be_stored_is_refused(mill: MemoryMill, text: str) -> None:
    @mill.job
    def echo(payload: RawPayload) -> None: ...

    with pytest.raises(InvalidInput):
        echo.enqueue(RawPayload(text))

    assert mill.jobs.find() == []


def test_many_jobs_are_one_transaction_and_keep_their_order(mill: MemoryMill) -> None:
    @mill.job
    def send(to: int) -> None: ...

    @mill.job(queue="other")
    def check() -> None: ...

    jobs = mill.enqueue_many([send.job(1), check.job(), send.using(priority=3).job(2)])

    assert [(job.type.rsplit(".", 1)[-1], job.queue, job.payload, job.priority) for job in jobs] == [
        ("send", "default", {"to": 1}, 0),
        ("check", "other", {}, 0),
        ("send", "default", {"to": 2}, 3),
    ]


def test_no_jobs_are_no_transaction(mill: MemoryMill) -> None:
    assert mill.enqueue_many([]) == []


def test_a_prepared_job_is_one_job_however_often_it_is_enqueued(mill: MemoryMill) -> None:
    @mill.job
    def send() -> None: ...

    prepared = send.job()
    first, second = mill.enqueue_many([prepared]), mill.enqueue_many([prepared])

    assert first == second == mill.jobs.find()
    assert first[0].id == prepared.id


def test_a_taken_unique_key_gives_the_job_that_has_it(mill: MemoryMill) -> None:
    @mill.job
    def send(to: str) -> None: ...

    welcome = send.using(unique_key="welcome:42")

    first, second = welcome.enqueue("a"), welcome.enqueue("b")
    mill.run_pending()
    third = welcome.enqueue("c")

    assert (first.created, second.created, third.created) == (True, False, True)
    assert first == second != third
    assert second.payload == {"to": "a"}


def test_a_unique_key_holds_while_its_job_runs(mill: MemoryMill) -> None:
    @mill.job
    def send() -> bool:
        return send.using(unique_key="k").enqueue().created

    job = send.using(unique_key="k").enqueue()
    mill.run_pending()

    assert job.wait().result is False
    assert mill.jobs.find() == [job]


def test_a_unique_key_can_be_made_from_the_arguments(mill: MemoryMill) -> None:
    @mill.job(unique_key=lambda user, **_: None if user == 0 else f"user:{user}")
    def greet(user: int, greeting: str = "hi") -> None: ...

    jobs = mill.enqueue_many([greet.job(1), greet.job(user=1, greeting="ho"), greet.job(2), greet.job(0), greet.job(0)])

    assert [job.created for job in jobs] == [True, False, True, True, True]
    assert [job.unique_key for job in jobs] == ["user:1", "user:1", "user:2", None, None]


def test_a_made_unique_key_is_checked_and_can_be_replaced(mill: MemoryMill) -> None:
    @mill.job(unique_key=lambda user: "x" * user)
    def greet(user: int) -> None: ...

    with pytest.raises(InvalidInput, match=r"^unique_key: "):
        greet.enqueue(201)

    assert greet.using(unique_key="mine").enqueue(201).unique_key == "mine"
    assert greet.using(priority=1).enqueue(3).unique_key == "xxx"


def test_a_job_can_be_enqueued_by_the_name_of_its_type(mill: MemoryMill) -> None:
    job = mill.enqueue("elsewhere", {"a": [1, None]}, queue="other", priority=3)

    assert (job.type, job.queue, job.priority, job.payload) == ("elsewhere", "other", 3, {"a": [1, None]})
    assert mill.enqueue("elsewhere").payload_text == "{}"
    assert mill.enqueue("elsewhere", RawPayload("[1E2]")).payload_text == "[1E2]"


def test_a_payload_for_a_type_that_is_known_here_must_fit(mill: MemoryMill) -> None:
    @mill.job(name="send")
    def send(to: str) -> None: ...

    with pytest.raises(InvalidInput, match=r"to: must be str"):
        mill.enqueue("send", {"to": 1})
    with pytest.raises(InvalidInput, match=r"payload: must be an object"):
        mill.enqueue("send", [1])

    assert mill.enqueue("send", {"to": "a"}).payload == {"to": "a"}


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 101, "workmill.webhook", "naïve"])
def test_a_type_with_an_impossible_name_is_refused(mill: MemoryMill, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^type: "):
        mill.enqueue(name)
    with pytest.raises(InvalidInput, match=r"^type: "):
        mill.job(name=name or "_")(lambda: None)


def test_enqueueing_does_not_block_the_event_loop(mill: MemoryMill) -> None:
    @mill.job
    def send(to: int) -> None: ...

    async def many() -> list[int]:
        jobs = await asyncio.gather(*(send.enqueue_async(to) for to in range(20)))
        more = await mill.enqueue_many_async([send.job(20), send.job(21)])
        return [job.payload["to"] for job in [*jobs, *more]]

    assert asyncio.run(many()) == list(range(22))


def test_a_coroutine_that_is_cancelled_while_it_enqueues_hurts_nobody(filed: Workmill) -> None:
    @filed.job
    def send(to: int) -> None: ...

    async def cancel_one_and_go_on() -> int:
        task = asyncio.ensure_future(send.enqueue_async(1))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await send.enqueue_async(2)).payload["to"]  # type: ignore[no-any-return]

    assert asyncio.run(cancel_one_and_go_on()) == 2
    assert send.enqueue(3).payload == {"to": 3}


def test_a_job_enqueued_by_a_job_inherits_its_trace(mill: MemoryMill) -> None:
    @mill.job
    def child() -> None: ...

    @mill.job
    async def parent() -> None:
        assert current_job().traceparent == TRACE
        await child.enqueue_async()
        child.enqueue()
        mill.enqueue_many([child.job()])
        mill.enqueue("elsewhere")

    parent.using(traceparent=TRACE).enqueue()
    mill.run_pending()

    assert [job.record.traceparent for job in mill.jobs.find(trace_id=TRACE[3:35])] == [TRACE] * 5
