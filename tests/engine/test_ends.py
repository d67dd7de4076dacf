"""Every way a handler can end, in threads and on the event loop, becomes an outcome, and the executor goes on."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from workmill.domain.errors import ArgumentsMismatch, Fail, JobCancelled, RetryIn, Snooze
from workmill.domain.outcome import Failed, FailureKind, Released, ReleaseReason, Succeeded
from workmill.engine.context import Stop, current_job

PATIENCE = 20.0


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising(error: BaseException) -> Callable[[str], Any]:
    def handler(_payload: str) -> Any:
        raise error

    return handler


def circular() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        TimeoutError(),
        JobCancelled("on its own"),
        Mute(),
        OSError("x" * 1_000_000),
        circular(),
        RecursionError(),
        MemoryError(),
        BaseExceptionGroup("many", [SystemExit(), ValueError()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_handler_raises_is_a_failed_attempt_and_the_next_job_runs(site: Any, error: BaseException) -> None:
    failed = site.run(raising(error))
    after = site.run(lambda _payload: "null")

    assert isinstance(failed, Failed)
    assert (failed.kind, failed.final) == (FailureKind.ERROR, False)
    assert isinstance(after, Succeeded)


def test_a_task_that_exits_the_loop_does_not_end_it(site_of: Any) -> None:
    async def leave() -> None:
        raise SystemExit(1)

    async def handler() -> str:
        task = asyncio.ensure_future(leave())
        await asyncio.sleep(0.01)
        return repr(type(task.exception()).__name__)

    with site_of("loop") as site:
        assert site.run(lambda _payload: handler()).result == "'SystemExit'"
        assert isinstance(site.run(lambda _payload: "null"), Succeeded)


def test_fail_is_final_and_gives_its_reason(site: Any) -> None:
    outcome = site.run(raising(Fail("no such customer")))

    assert (outcome.final, outcome.error.type, outcome.error.message) == (True, "Fail", "no such customer")


def test_an_error_of_a_class_to_give_up_on_is_final(site: Any) -> None:
    outcome = site.run(raising(KeyError("x")), give_up_on=(LookupError,))

    assert outcome.final


def test_retry_in_sets_the_delay_of_the_next_attempt(site: Any) -> None:
    outcome = site.run(raising(RetryIn(0)))

    assert (outcome.retry_in, outcome.final) == (0, False)


def test_snooze_gives_the_job_back_with_its_delay_and_reason(site: Any) -> None:
    outcome = site.run(raising(Snooze(60, "the shop is closed")))

    assert isinstance(outcome, Released)
    assert (outcome.reason, outcome.delay, outcome.detail) == (ReleaseReason.SNOOZE, 60, "the shop is closed")


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e12, True])
@pytest.mark.parametrize("signal", [Snooze, RetryIn])
def test_a_signal_with_a_delay_that_cannot_be_is_a_failed_attempt(site: Any, signal: type[Snooze | RetryIn], seconds: float) -> None:
    outcome = site.run(raising(signal(seconds)))

    assert isinstance(outcome, Failed)
    assert outcome.retry_in is None


@pytest.mark.parametrize("final", [True, False])
def test_arguments_that_do_not_fit_fail_the_attempt_and_end_the_job_when_no_retry_can_help(site: Any, *, final: bool) -> None:
    outcome = site.run(raising(ArgumentsMismatch("to: is missing", final=final)))

    assert (outcome.error.type, outcome.final) == ("ArgumentsMismatch", final)


def test_a_handler_that_returns_after_its_deadline_has_timed_out(site: Any) -> None:
    outcome = site.run(lambda _payload: time.sleep(0.03), timeout=0.01)

    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.error.type) == (FailureKind.TIMEOUT, "TimeoutError")


def test_check_raises_once_the_deadline_has_passed(site: Any) -> None:
    def handler(_payload: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            current_job().check()

    outcome = site.run(handler, timeout=0.02)

    assert (outcome.kind, outcome.error.message) == (FailureKind.TIMEOUT, "ran longer than its timeout of 0.02 s")
    assert "current_job().check()" in outcome.error.traceback


@pytest.mark.parametrize(("stop", "reason"), [(Stop.CANCELLED, ReleaseReason.CANCELLED), (Stop.SHUTDOWN, ReleaseReason.SHUTDOWN)], ids=str)
def test_a_handler_that_heeds_the_order_to_stop_is_given_back(site: Any, stop: Stop, reason: ReleaseReason) -> None:
    def handler(_payload: str) -> None:
        current_job().stop(stop)
        current_job().check()

    outcome = site.run(handler)

    assert isinstance(outcome, Released)
    assert outcome.reason is reason


def test_a_handler_that_succeeds_in_spite_of_the_order_has_succeeded(site: Any) -> None:
    def handler(_payload: str) -> str:
        current_job().stop(Stop.CANCELLED)
        return "null"

    assert isinstance(site.run(handler), Succeeded)


def test_an_interrupted_task_is_cancelled_where_it_waits(site_of: Any) -> None:
    waiting = threading.Event()

    async def handler() -> None:
        waiting.set()
        await asyncio.sleep(PATIENCE)

    with site_of("loop") as site:
        run = site.job(lambda _payload: handler())
        site.executor.start([run])
        waiting.wait(PATIENCE)
        run.stop(Stop.CANCELLED)
        site.executor.interrupt(run)
        outcome = site.back.get(timeout=PATIENCE).outcome

    assert isinstance(outcome, Released)


@pytest.mark.parametrize(("give_up_on", "final"), [((TimeoutError,), True), ((ValueError,), False), ((), False)])
def test_a_timeout_is_an_error_that_can_be_given_up_on(site: Any, give_up_on: Any, *, final: bool) -> None:
    outcome = site.run(lambda _payload: time.sleep(0.03), timeout=0.01, give_up_on=give_up_on)

    assert (outcome.kind, outcome.final) == (FailureKind.TIMEOUT, final)
