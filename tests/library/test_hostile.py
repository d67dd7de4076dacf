"""What functions may return and raise, and what payloads may hold: nothing of it stops a worker, and all of it can be read afterwards."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from workmill import JobFailed, RawPayload, Retry, State, Workmill
from workmill.testing import MemoryMill

SECONDS = 20.0
ONCE = Retry(max_attempts=1)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def cyclic() -> Exception:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return one


ERRORS: dict[str, Callable[[], BaseException]] = {
    "exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "cancelled": asyncio.CancelledError,
    "timeout": TimeoutError,
    "generator": GeneratorExit,
    "base": lambda: BaseException("x"),
    "stop": StopIteration,
    "unspeakable": Unspeakable,
    "huge": lambda: ValueError("x" * 50_000_000),
    "cyclic": cyclic,
    "nul": lambda: ValueError("a\x00b\ud800"),
    "group": lambda: ExceptionGroup("many", [ValueError("a"), TypeError("b")]),
}


def make_error(kind: str) -> BaseException:
    return ERRORS[kind]()


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Workmill]:
    with Workmill(f"sqlite:///{tmp_path}/jobs.db") as mill:
        yield mill


def test_whatever_escapes_a_function_fails_its_attempt_and_the_worker_goes_on(filed: Workmill) -> None:
    @filed.job(retry=ONCE)
    def escape(kind: str) -> None:
        raise make_error(kind)

    @filed.job(retry=ONCE)
    async def escape_loop(kind: str) -> None:
        raise make_error(kind)

    jobs = filed.enqueue_many([function.job(kind) for kind in ERRORS for function in (escape, escape_loop)])
    with filed.run_worker():
        ended = [job.wait(SECONDS) for job in jobs]

    assert {job.state for job in ended} == {State.DEAD}
    assert all(len(job.error.message) < 10_000 for job in ended if job.error)
    assert len(filed.jobs.find(state="dead", limit=100)) == len(jobs)


def test_an_error_text_that_no_store_could_keep_is_kept_in_visible_form(filed: Workmill) -> None:
    @filed.job(retry=ONCE)
    def fail() -> None:
        raise ValueError("a\x00b\ud800")

    with filed.run_worker(), pytest.raises(JobFailed) as caught:
        _ = fail.enqueue().wait(SECONDS).result

    assert caught.value.message == "a\\x00b\\ud800"


@pytest.mark.parametrize("text", ["\x00", "naïve “text”", "\U0001f600", "</script>", "\u2028", "'; DROP TABLE workmill_jobs; --"])
def test_text_of_every_kind_arrives_and_returns(mill: MemoryMill, text: str) -> None:
    @mill.job
    def echo(text: str) -> str:
        return text

    job = echo.enqueue(text)
    mill.run_pending()

    assert job.wait().result == text
    assert job.payload == {"text": text}


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, -(2**64), 10**300, 1e-320, -0.0, 1.7976931348623157e308])
def test_numbers_of_every_size_arrive_and_return(mill: MemoryMill, number: float) -> None:
    @mill.job
    def echo(number):  # type: ignore[no-untyped-def]
        return number

    job = echo.enqueue(number)
    mill.run_pending()

    assert repr(job.wait().result) == repr(number)


def test_a_payload_that_was_corrupted_by_hand_kills_that_job_only(filed: Workmill, tmp_path: Path) -> None:
    @filed.job
    def double(value: int) -> int:
        return 2 * value

    bad, good = double.enqueue(1), double.enqueue(2)
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("UPDATE workmill_jobs SET payload = '{\"value\": ' WHERE id = ?", [bad.id])

    with filed.run_worker():
        assert good.wait(SECONDS).result == 4
        assert bad.wait(SECONDS).state is State.DEAD

    assert [attempt.error_class for attempt in filed.jobs.history(bad)] == ["ArgumentsMismatch"]


def test_arguments_of_another_version_of_the_code_are_tried_again(mill: MemoryMill) -> None:
    @mill.job(name="send")
    def send(to: str) -> str:
        return to

    job = mill.enqueue_many([_foreign("send", '{"to":"ann","cc":"bob"}')])[0]
    mill.run_pending()

    assert job.refresh().state is State.RETRYING
    assert job.error is not None
    assert job.error.message == "cc: is no parameter; it takes to"


def _foreign(type: str, payload: str):  # type: ignore[no-untyped-def]
    """A job as another version of the application would submit it."""
    return Workmill("sqlite://").job(name=type)(_takes_raw).job(RawPayload(payload))


def _takes_raw(payload: RawPayload) -> None: ...


def test_a_key_whose_first_holder_was_rolled_back_is_free(filed: Workmill, tmp_path: Path) -> None:
    @filed.job(unique_key="only-one")
    def work() -> None: ...

    filed.store.migrate()
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        first = work.using(connection=connection).enqueue()
        connection.execute("ROLLBACK")

    second = work.enqueue()

    assert (first.created, second.created) == (True, True)
    assert filed.jobs.find() == [second]
