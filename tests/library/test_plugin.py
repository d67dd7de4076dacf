"""The pytest plug-in, as the tests of an application see it: run within pytest, on small test files."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from workmill import Fail, Retry, RunningJob, State, WorkerOptions, Workmill, current_job
from workmill.domain.outcome import ErrorReport
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.testing import MemoryMill, assert_enqueued, assert_not_enqueued, memory_mill

pytest_plugins = ["pytester"]

APP = """
from workmill import Workmill, Fail
mill = Workmill("sqlite:////nowhere/at/all.db")

@mill.job(name="send")
def send(to: str, subject: str = "hi") -> str:
    if to == "nobody":
        raise Fail("nobody is there")
    return to
"""
CONFTEST = """
import pytest

@pytest.fixture
def workmill_app():
    import app
    return app.mill
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with an application and a conftest."""
    pytester.makepyfile(app=APP)
    pytester.makeconftest(CONFTEST)
    monkeypatch.syspath_prepend(pytester.path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    return pytester


def failure(project: pytest.Pytester, body: str) -> str:
    """What pytest says of a test with this body that must fail."""
    lines = "\n    ".join(body.splitlines())
    project.makepyfile(f"from app import mill as app, send\ndef test_it(mill, run_pending, assert_enqueued, clock):\n    {lines}\n")
    result = project.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    return result.stdout.str()


def test_the_fixtures_take_over_the_application(project: pytest.Pytester) -> None:
    project.makepyfile("""
        from app import mill as app, send

        def test_one(mill, run_pending, assert_enqueued, clock):
            job = send.using(delay=60).enqueue("ann")
            assert_enqueued(send, to="ann")
            assert run_pending() == []
            clock.advance(60)
            run_pending()
            assert job.wait().result == "ann"

        def test_two(mill):
            assert mill.jobs.find() == app.jobs.find() == []
    """)

    project.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_afterwards_the_application_has_its_own_store_again(tmp_path: Path) -> None:
    app = Workmill(f"sqlite:///{tmp_path}/own.db")
    with memory_mill(app):
        app.enqueue("x")

    assert app.jobs.find() == []
    assert (tmp_path / "own.db").exists()
    app.close()


def test_the_plugin_alone_changes_nothing(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it():\n    import sys\n    assert 'workmill.client' not in sys.modules or True")

    project.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_nothing_enqueued_is_said_with_where_to_look(project: pytest.Pytester) -> None:
    said = failure(project, "assert_enqueued(send, to='ann')")

    assert "send(to='ann') was not enqueued. Nothing was. Does the code under test use this test's store?" in said


def test_other_jobs_are_said(project: pytest.Pytester) -> None:
    said = failure(project, "mill.enqueue('other'); mill.enqueue('other')\nassert_enqueued(send)")

    assert "a send was not enqueued. No send was, only 2 × other." in said


def test_other_arguments_are_shown_with_what_differs(project: pytest.Pytester) -> None:
    said = failure(project, "send.enqueue('ann'); send.enqueue('bob', 'ho')\nassert_enqueued(send, to='bob', subject='hi')")

    assert "send(to='bob', subject='hi') was not enqueued. These were:" in said
    assert "send(to='bob', subject='ho') is queued; differs in subject" in said
    assert "send(to='ann') is queued; differs in to" in said


def test_a_misspelt_argument_is_answered_with_the_right_ones(project: pytest.Pytester) -> None:
    assert "send has no parameter too; it takes to, subject" in failure(project, "assert_enqueued(send, too='ann')")


def test_waiting_where_nothing_runs_jobs_is_answered_at_once(project: pytest.Pytester) -> None:
    said = failure(project, "send.enqueue('ann').wait(timeout=60)")

    assert "nothing runs jobs here: call mill.run_pending() before you wait for it" in said


def test_what_a_job_raised_is_in_the_report_of_a_test_that_fails(project: pytest.Pytester) -> None:
    said = failure(project, "send.enqueue('nobody')\nrun_pending()\nassert False")

    assert 'raise Fail("nobody is there")' in said


def test_waiting_where_a_real_worker_runs_jobs_is_waiting(mill: MemoryMill) -> None:
    @mill.job
    def double(value: int) -> int:
        return 2 * value

    with mill.run_worker(WorkerOptions(concurrency=1)):
        assert double.enqueue(21).wait(20).result == 42
    with pytest.raises(AssertionError, match=r"nothing runs jobs here"):
        double.enqueue(21).wait(20)


def test_a_job_that_enqueues_itself_for_ever_is_stopped(mill: MemoryMill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workmill.testing.memory.MANY", 50)

    @mill.job(name="again")
    def again() -> None:
        again.enqueue()

    again.enqueue()

    with pytest.raises(AssertionError, match=r"50 jobs have run and more are due: does again enqueue itself without a delay\?"):
        mill.run_pending()


def test_jobs_run_in_the_thread_of_the_test_and_on_one_event_loop(mill: MemoryMill) -> None:
    seen: list[object] = []

    @mill.job
    def plain() -> None:
        seen.append(threading.current_thread())

    @mill.job
    async def coroutine() -> None:
        seen.append(asyncio.get_running_loop())

    mill.enqueue_many([plain.job(), coroutine.job(), coroutine.job()])
    mill.run_pending()

    assert seen[0] is threading.current_thread()
    assert seen[1] is seen[2]


def test_jobs_run_within_a_test_that_is_a_coroutine(mill: MemoryMill) -> None:
    @mill.job
    async def double(value: int) -> int:
        await asyncio.sleep(0)
        return current_job().attempt * 2 * value

    async def test() -> int:
        job = await double.enqueue_async(21)
        mill.run_pending()
        return (await job.wait_async()).result

    assert asyncio.run(test()) == 42


def test_jobs_enqueued_by_jobs_run_in_the_same_call(mill: MemoryMill) -> None:
    @mill.job
    def child(number: int) -> None: ...

    @mill.job
    def parent() -> None:
        mill.enqueue_many([child.job(1), child.job(2)])

    parent.enqueue()

    assert [ran.job.payload for ran in mill.run_pending()] == [{}, {"number": 1}, {"number": 2}]


def test_a_type_that_nobody_declared_is_set_aside_as_in_a_worker(mill: MemoryMill) -> None:
    job = mill.enqueue("unknown")

    (ran,) = mill.run_pending()

    assert (ran.succeeded, ran.error, repr(ran)) == (False, None, "<unknown released, queued now>")
    assert job.refresh().record.aside == "unknown_type"


def test_startup_shutdown_middleware_and_on_dead_are_called_as_in_a_worker() -> None:
    told: list[str] = []
    app = Workmill("sqlite://")
    app.on_startup(lambda: told.append("up"))
    app.on_shutdown(lambda: told.append("down"))

    @app.on_dead
    def mourn(job: RunningJob, error: ErrorReport) -> None:
        told.append(f"{job.type} died: {error.message}")

    @app.job(name="die", retry=Retry(max_attempts=1))
    def die() -> None:
        raise ValueError("of old age")

    with memory_mill(app) as mill:
        die.enqueue()
        mill.run_pending()
        mill.run_pending()

    assert told == ["up", "die died: of old age", "down"]


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit(), TimeoutError(), BaseException("x")])
def test_whatever_escapes_a_function_is_a_failed_attempt(mill: MemoryMill, error: BaseException) -> None:
    @mill.job
    def escape() -> None:
        raise error

    job = escape.enqueue()
    (ran,) = mill.run_pending()

    assert not ran.succeeded
    assert job.refresh().state is State.RETRYING


def test_with_raises_the_error_comes_out_and_is_on_record_all_the_same(mill: MemoryMill) -> None:
    @mill.job
    def fail() -> None:
        raise Fail("no use")

    job = fail.enqueue()

    with pytest.raises(Fail, match=r"no use"):
        mill.run_pending(raises=True)
    assert job.refresh().state is State.DEAD


def test_two_mills_share_nothing() -> None:
    with memory_mill() as one, memory_mill() as two:
        one.enqueue("x")
        one.clock.advance(60)

        assert two.jobs.find() == []
        assert two.clock() != one.clock()


def test_defaults_count_as_arguments(mill: MemoryMill) -> None:
    @mill.job
    def send(to: str, copies: int = 1) -> None: ...

    send.enqueue("ann")

    assert assert_enqueued(send, copies=1).payload == {"to": "ann"}
    assert_not_enqueued(send, copies=2)
    with pytest.raises(AssertionError, match=r"was enqueued:\n  .*\(to='ann'\) is queued"):
        assert_not_enqueued(send, "ann")


def test_without_workmill_app_nothing_gets_into_the_applications_own_store(tmp_path: Path) -> None:
    app = Workmill(f"sqlite:///{tmp_path}/own.db")

    @app.job
    def send(to: str) -> None: ...

    with memory_mill():
        for enqueue in (lambda: send.enqueue("ann"), lambda: app.enqueue("x"), lambda: asyncio.run(send.enqueue_async("ann"))):
            with pytest.raises(AssertionError, match=r"own\.db, which the fixture `mill` has not taken over.* `workmill_app`"):
                enqueue()

    assert list(tmp_path.iterdir()) == []


def test_without_workmill_app_an_assertion_on_the_applications_jobs_says_what_is_missing(mill: MemoryMill) -> None:
    app = Workmill("sqlite://")

    @app.job
    def send(to: str) -> None: ...

    with pytest.raises(AssertionError, match=r"Define in conftest\.py a fixture `workmill_app`"):
        assert_enqueued(send)
    with pytest.raises(AssertionError, match=r"Define in conftest\.py a fixture `workmill_app`"):
        assert_not_enqueued(send)


def test_beside_a_mill_that_took_over_its_application_other_workmills_are_free() -> None:
    app, other = Workmill("sqlite://"), Workmill("sqlite://")

    with memory_mill(app), other:
        job = other.enqueue("x")

        assert other.jobs.find() == [job]
    with memory_mill(), memory_mill(app):
        app.enqueue("x")


def test_after_a_mill_everybody_is_free_again() -> None:
    with memory_mill():
        pass

    with Workmill("sqlite://") as other:
        assert other.enqueue("x").created


def test_a_payload_that_is_no_object_holds_no_arguments(mill: MemoryMill) -> None:
    @mill.job(name="send")
    def send(to: str, copies: int = 1) -> None: ...

    mill.store.submit([new_job(new_id(), "send", '["ann"]')])

    assert assert_enqueued(send).payload == ["ann"]
    assert_not_enqueued(send, copies=1)
    with pytest.raises(AssertionError, match=r"send\(\['ann'\], which are no arguments\) is queued; differs in to"):
        assert_enqueued(send, to="ann")
