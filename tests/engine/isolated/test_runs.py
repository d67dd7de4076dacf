"""A run in a child process is a run like any other, in a process for itself."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from workmill.domain.outcome import Failed, FailureKind, ReleaseReason, Succeeded
from workmill.engine.executors import nursery
from workmill.engine.gate import Closed
from workmill.telemetry import INFO, Telemetry, log_to

Until = Callable[[Callable[[], object]], None]


def test_no_child_exists_before_the_first_run(isolation: Any) -> None:
    assert isolation.children() == []


def test_runs_happen_in_one_child_after_another_in_the_same(isolation: Any) -> None:
    pids = {isolation.result("pid") for _ in range(5)}

    assert [child.pid for child in isolation.children()] == list(pids)
    assert os.getpid() not in pids


def test_there_are_as_many_children_as_runs_at_once_and_no_more_than_slots(isolation: Any, until: Until, tmp_path: Path) -> None:
    for _ in range(5):
        isolation.start("progress", path=str(tmp_path / "go"))
    until(lambda: len(isolation.told("job.started")) == 2)

    assert len(isolation.children()) == 2
    assert len(isolation.executor.recall()) == 3
    (tmp_path / "go").touch()
    isolation.ending()
    isolation.ending()


def test_the_handler_sees_its_job_and_the_middleware(isolation: Any) -> None:
    run = isolation.start("about", timeout=20)

    assert isolation.ending() is run
    assert isolation.result("about") == {
        "id": "job-1",
        "attempt": 1,
        "timed": False,
        "cancelled": False,
        "around": ["in", "out", "in"],
    }
    assert '"timed":true' in run.outcome.result


def test_async_handlers_share_the_event_loop_of_their_child_and_see_each_its_own_job(isolation: Any) -> None:
    first, second = isolation.result("loop"), isolation.result("loop")

    assert first[0] == second[0]
    assert (first[1], second[1]) == ("job-0", "job-1")


def test_a_payload_and_a_result_of_a_mebibyte_pass(isolation: Any) -> None:
    text = "ä" * ((1 << 19) - 20)

    assert isolation.result("echo", text=text) == text


def test_an_exception_is_a_failed_attempt_that_tells_the_place(isolation: Any) -> None:
    outcome = isolation.outcome("raise", kind="value")

    assert (outcome.kind, outcome.error.type, outcome.error.message) == (FailureKind.ERROR, "ValueError", "no")
    assert "isolated_target.py" in outcome.error.traceback
    assert "inside.py" not in outcome.error.traceback


def test_system_exit_is_a_failed_attempt_and_the_child_goes_on(isolation: Any) -> None:
    before = isolation.result("pid")

    assert isolation.outcome("raise", kind="exit").error.type == "SystemExit"
    assert isolation.result("pid") == before


def test_what_a_handler_says_by_raising_is_heard(isolation: Any) -> None:
    final, retry, snooze = (isolation.outcome("raise", kind=kind) for kind in ("fail", "retry", "snooze"))

    assert isinstance(final, Failed)
    assert final.final
    assert retry.retry_in == 7
    assert (snooze.reason, snooze.delay, snooze.detail) == (ReleaseReason.SNOOZE, 8, "later")


def test_arguments_that_do_not_fit_are_a_failed_attempt(isolation: Any) -> None:
    assert isolation.outcome("echo", number=1).error.type == "ArgumentsMismatch"


def test_progress_arrives_while_the_handler_runs(isolation: Any, until: Until, tmp_path: Path) -> None:
    run = isolation.start("progress", path=str(tmp_path / "go"))

    until(lambda: run.said is not None)
    (tmp_path / "go").touch()

    assert (run.said.fraction, run.said.message) == (0.25, "a quarter")
    assert isinstance(isolation.ending().outcome, Succeeded)


def test_output_without_end_on_the_standard_streams_does_no_harm(isolation: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert isolation.result("flood") == "done"

    printed = capfd.readouterr()
    assert printed.out.count("out") == 1_000_000
    assert printed.err.count("err") == 1_000_000


def test_the_logger_of_a_job_writes_as_the_worker_logs(isolation: Any, capfd: pytest.CaptureFixture[str]) -> None:
    undo = log_to(sys.stderr, Telemetry(), INFO, "json")
    try:
        isolation.outcome("log")
    finally:
        undo()

    line = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert (line["event"], line["message"], line["job_id"], line["type"]) == ("log", "said from within", "job-0", "log")


def test_a_handler_that_forks_and_returns_twice_has_one_outcome(isolation: Any) -> None:
    assert isolation.result("fork") == "parent"
    assert isolation.result("fork") == "parent"
    assert isolation.ended.empty()


def test_nothing_starts_through_a_closed_gate(isolation: Any) -> None:
    isolation.result("pid")
    isolation.gate.close(Closed.BY_HAND)
    run = isolation.start("pid")

    assert isolation.ending() is run
    assert run.outcome is None


def test_what_waits_for_a_child_that_is_starting_is_handed_back_when_the_gate_has_closed(isolation: Any, until: Until) -> None:
    run = isolation.start("pid")
    until(isolation.children)
    isolation.gate.close(Closed.STOPPING)

    assert isolation.ending() is run
    assert run.outcome is None


def test_fewer_slots_mean_fewer_children_and_more_mean_more(isolation: Any, until: Until, tmp_path: Path) -> None:
    for _ in range(2):
        isolation.start("progress", path=str(tmp_path / "go"))
    until(lambda: len(isolation.told("job.started")) == 2)
    (tmp_path / "go").touch()
    isolation.ending()
    isolation.ending()

    isolation.executor.resize(1)
    until(lambda: len(isolation.children()) == 1)
    (tmp_path / "go").unlink()
    isolation.executor.resize(3)
    for _ in range(3):
        isolation.start("progress", path=str(tmp_path / "go"))
    until(lambda: len(isolation.told("job.started")) == 5)

    assert len(isolation.children()) == 3
    (tmp_path / "go").touch()
    for _ in range(3):
        isolation.ending()


def test_a_child_is_replaced_after_many_runs(isolation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "MOST_JOBS", 3)

    pids = [isolation.result("pid") for _ in range(7)]

    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]


def test_a_child_that_has_grown_is_replaced(isolation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "MOST_GROWTH", 32 << 20)
    monkeypatch.setattr(nursery, "SIZE_CHECK", 2)
    first, second = isolation.result("pid"), isolation.result("pid")

    grown = isolation.result("leak", megabytes=64)

    assert first == second == grown
    assert isolation.result("pid") != grown


def test_a_child_that_is_idle_for_long_leaves(isolation: Any, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "IDLE_SECONDS", 0.05)
    isolation.result("pid")

    until(lambda: not isolation.children())

    assert isolation.told("child.died") == []
    assert isolation.result("pid")


def test_an_idle_child_that_dies_is_replaced(isolation: Any, until: Until) -> None:
    pid = isolation.result("pid")

    psutil.Process(pid).kill()
    until(lambda: isolation.told("child.died"))

    until(lambda: [child.pid for child in isolation.children()] not in ([], [pid]))
    assert isolation.result("pid") != pid


def test_two_hundred_runs_leave_descriptors_threads_and_processes_as_they_were(isolation: Any, until: Until) -> None:
    def count() -> tuple[int, int, int, list[tuple[int, int]]]:
        family = [(child.num_fds(), child.num_threads()) for child in isolation.children()]
        process = psutil.Process()
        return process.num_fds(), process.num_threads(), len(process.children(recursive=True)), sorted(family)

    kinds = ["pid", "log", "about", "raise"]
    for _ in range(20):
        isolation.executor.start([isolation.run(kind, kind="value") if kind == "raise" else isolation.run(kind) for kind in kinds])
    for _ in range(80):
        isolation.ending()
    until(lambda: len(isolation.told("child.ready")) == 2)
    before = count()

    for _ in range(30):
        isolation.executor.start([isolation.run(kind, kind="value") if kind == "raise" else isolation.run(kind) for kind in kinds])
    ended = [isolation.ending() for _ in range(120)]

    assert sum(isinstance(run.outcome, Succeeded) for run in ended) == 90
    assert count() == before


def children() -> list[psutil.Process]:
    """All that this process has started, without the servers that other tests share."""
    return [child for child in psutil.Process().children(recursive=True) if child.name() not in {"postgres", "valkey-server"}]


def test_closing_does_not_wait_for_a_guard_that_hangs(make_isolation: Callable[[str], Any]) -> None:
    isolation = make_isolation("isolated_target:mill")
    isolation.open()
    isolation.result("pid")
    isolation.guards()[0].suspend()

    isolation.close()

    assert children() == []


def test_closing_ends_the_children_soon_whatever_they_do(make_isolation: Callable[[str], Any], until: Until) -> None:
    isolation = make_isolation("isolated_target:mill")
    isolation.open(3)
    for kind in ("deaf", "backtrack", "pid"):
        isolation.start(kind)
    until(lambda: len(isolation.told("job.started")) == 3)
    began = time.monotonic()

    isolation.close()

    assert time.monotonic() - began < 60
    assert children() == []
