"""Whatever a run does to its child, and whatever is done to the child: that run alone fails, and says why."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.outcome import Failed, FailureKind, Released, ReleaseReason, Succeeded
from workmill.engine.context import Stop
from workmill.engine.executors import memory

Until = Callable[[Callable[[], object]], None]
Gone = Callable[[int], bool]
needs_proc = pytest.mark.skipif(not memory.HAS_PROC, reason="needs /proc")


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("exit", "exit code 3"),
        ("segfault", "killed by signal SIGSEGV"),
        ("abort", "killed by signal SIGABRT"),
        ("kill", "killed by signal SIGKILL"),
        ("close", "closed its channel to the worker"),
        ("scribble", "wrote into its channel to the worker"),
    ],
)
def test_a_child_that_ends_in_a_run_is_a_failed_attempt_that_says_how(isolation: Any, how: str, cause: str) -> None:
    outcome = isolation.outcome("end", how=how)

    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.error.type, outcome.final) == (FailureKind.ERROR, "ProcessDied", False)
    assert outcome.error.message.startswith(cause)
    assert isolation.result("pid")


def test_a_crash_tells_where_the_handler_was(isolation: Any) -> None:
    outcome = isolation.outcome("end", how="segfault")

    assert "isolated_target.py" in outcome.error.traceback
    assert "in end" in outcome.error.traceback


def test_a_child_killed_from_outside_costs_its_run_only(isolation: Any, until: Until, tmp_path: Path) -> None:
    other = isolation.start("progress", path=str(tmp_path / "go"))
    victim = isolation.start("parent", path=str(tmp_path / "pids"))
    until(lambda: pids(tmp_path / "pids"))

    os.kill(pids(tmp_path / "pids")[0], signal.SIGKILL)

    assert isolation.ending() is victim
    assert victim.outcome.error.message == "killed by signal SIGKILL"
    (tmp_path / "go").touch()
    assert isolation.ending() is other
    assert isinstance(other.outcome, Succeeded)


def test_the_next_child_is_started_at_once(isolation: Any, until: Until) -> None:
    isolation.outcome("end", how="exit")

    until(lambda: len(isolation.told("child.ready")) == 2)


def test_a_crash_is_noticed_though_something_holds_every_descriptor_open(isolation: Any, tmp_path: Path) -> None:
    outcome = isolation.outcome("behind", path=str(tmp_path / "pid"))

    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert outcome.error.message == "exit code 4"


@pytest.mark.parametrize("type", ["spin", "deaf", "backtrack"])
def test_a_timeout_ends_what_listens_to_nothing(isolation: Any, until: Until, gone: Gone, type: str) -> None:
    run = isolation.start(type, timeout=0.2)
    until(lambda: isolation.told("job.started"))
    [child] = isolation.children()

    assert isolation.ending() is run
    assert (run.outcome.kind, run.outcome.error.type) == (FailureKind.TIMEOUT, "TimeoutError")
    assert run.outcome.error.message == "ran longer than its timeout of 0.2 s"
    until(lambda: gone(child.pid))
    assert isolation.result("pid") != child.pid


def test_a_timeout_tells_where_the_handler_was(isolation: Any) -> None:
    assert "in spin" in isolation.outcome("spin", timeout=0.1).error.traceback
    assert "in backtrack" in isolation.outcome("backtrack", timeout=0.1).error.traceback


@pytest.mark.parametrize("type", ["tidy", "tidy_async"])
def test_a_handler_that_sleeps_is_woken_and_cleans_up(isolation: Any, type: str, tmp_path: Path) -> None:
    outcome = isolation.outcome(type, timeout=0.3, path=str(tmp_path / "file"))

    assert outcome.kind is FailureKind.TIMEOUT
    assert (tmp_path / "file").read_text() == "tidied"
    assert "in tidy" in outcome.error.traceback


@pytest.mark.parametrize("options", [{}, pytest.param({"detached": True}, marks=needs_proc)])
def test_what_a_handler_has_started_ends_with_it(
    isolation: Any, until: Until, gone: Gone, tmp_path: Path, options: dict[str, bool]
) -> None:
    isolation.outcome("parent", timeout=0.3, path=str(tmp_path / "pids"), **options)

    until(lambda: all(map(gone, pids(tmp_path / "pids"))))
    assert len(pids(tmp_path / "pids")) == 2


def test_what_a_handler_has_started_ends_when_its_child_crashes(isolation: Any, until: Until, gone: Gone, tmp_path: Path) -> None:
    isolation.start("parent", path=str(tmp_path / "pids"))
    until(lambda: pids(tmp_path / "pids"))

    os.kill(pids(tmp_path / "pids")[0], signal.SIGSEGV)

    until(lambda: all(map(gone, pids(tmp_path / "pids"))))


@pytest.mark.parametrize("type", ["polite", "tidy", "tidy_async", "shell", "sulky", "parent"])
def test_a_run_that_is_stopped_is_given_back_whatever_it_makes_of_that(isolation: Any, until: Until, tmp_path: Path, type: str) -> None:
    run = isolation.start(type, path=str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)

    isolation.stop(run, Stop.SHUTDOWN)

    assert isolation.ending() is run
    assert isinstance(run.outcome, Released)
    assert run.outcome.reason is ReleaseReason.SHUTDOWN


@pytest.mark.parametrize(("stop", "reason"), [(Stop.CANCELLED, ReleaseReason.CANCELLED), (Stop.LOST, ReleaseReason.SHUTDOWN)])
def test_a_run_that_is_cancelled_or_lost_is_stopped_likewise(
    isolation: Any, until: Until, tmp_path: Path, stop: Stop, reason: ReleaseReason
) -> None:
    run = isolation.start("tidy", path=str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)

    isolation.stop(run, stop)

    assert isolation.ending().outcome.reason is reason
    assert (tmp_path / "begun").read_text() == "tidied"


def test_a_run_that_is_stopped_takes_its_child_along(isolation: Any, until: Until, gone: Gone, tmp_path: Path) -> None:
    run = isolation.start("polite", path=str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    [child] = isolation.children()

    isolation.stop(run, Stop.CANCELLED)

    isolation.ending()
    until(lambda: gone(child.pid))
    assert isolation.told("child.died") == []


def test_a_stop_that_comes_after_the_end_does_nothing(isolation: Any) -> None:
    run = isolation.start("pid")
    isolation.ending()

    isolation.stop(run, Stop.CANCELLED)

    assert str(isolation.result("pid")) == run.outcome.result


def test_a_sigterm_from_elsewhere_disturbs_no_run(isolation: Any, until: Until, tmp_path: Path) -> None:
    run = isolation.start("progress", path=str(tmp_path / "go"))
    until(lambda: run.said is not None)

    [child] = isolation.children()
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()

    assert isolation.ending() is run
    assert isinstance(run.outcome, Succeeded)
    assert isolation.result("pid") == child.pid


@pytest.mark.parametrize("options", [{}, pytest.param({"in_child": True}, marks=needs_proc)])
def test_a_run_over_its_memory_limit_fails_and_says_so(isolation: Any, options: dict[str, bool]) -> None:
    outcome = isolation.outcome("hog", megabytes=300, **options)

    assert (outcome.kind, outcome.error.type) == (FailureKind.ERROR, "MemoryLimitExceeded")
    assert outcome.error.message.endswith("its limit is 128 MB")
    assert isolation.result("pid")


def test_a_run_below_its_memory_limit_is_left_alone(isolation: Any) -> None:
    assert isolation.result("hog", megabytes=32) == "32"


@needs_proc
def test_shared_and_untouched_memory_does_not_count_against_the_limit(isolation: Any) -> None:
    assert isolation.result("sharing") == str(64 << 20)


@needs_proc
def test_the_kernel_would_kill_a_child_rather_than_its_worker(isolation: Any) -> None:
    pid = isolation.result("pid")

    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"


def pids(path: Path) -> list[int]:
    """The two numbers in the file, once they are there."""
    numbers = path.read_text().split() if path.exists() else []
    return [int(number) for number in numbers] if len(numbers) == 2 else []
