"""The supervisor of `worker -p N` with real processes. The workers are stand-ins that tell by files what happened to them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from workmill.supervisor import DONE, FAILED, UNREACHABLE, USAGE, WORK_LEFT, combine

WORKER = textwrap.dedent(
    """
    import os, pathlib, signal, subprocess, sys, time
    from workmill.supervisor import follow_supervisor

    kind, number, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    heard = []

    def tell(what):
        (folder / f"{what}-{number}-{os.getpid()}").touch()

    def hear(signum, frame):
        heard.append(signum)
        tell(f"{signal.Signals(signum).name}-{heard.count(signum)}")

    for name in ("SIGTERM", "SIGTSTP", "SIGCONT", "SIGINT"):
        signal.signal(getattr(signal, name), hear)
    follow_supervisor()
    tell("up")
    if kind.startswith("exit"):
        sys.exit(int(kind[4:]))
    if kind == "parent":
        subprocess.Popen(["sleep", "1000"])
        kind = "deaf"
    ends = {"obey": lambda: signal.SIGTERM in heard, "busy": lambda: signal.SIGINT in heard, "deaf": lambda: False}[kind]
    while not ends():
        time.sleep(0.01)
    sys.exit(0 if kind == "obey" else 4)
    """
)
PROGRAM = textwrap.dedent(
    """
    import logging, sys
    from workmill import supervisor
    logging.basicConfig(level="INFO")
    supervisor.CLEAN_UP = supervisor.LAST_WORDS = 0.3
    supervisor.FIRST_PAUSE = 0.1
    sys.exit(supervisor.supervise(sys.argv[3:], int(sys.argv[1]), float(sys.argv[2])))
    """
)


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.01)


def children(pid: int, *, recursive: bool = False) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@dataclass
class Fleet:
    folder: Path
    supervisors: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, kind: str, processes: int = 2, grace: float = 20.0) -> subprocess.Popen[str]:
        (self.folder / "worker.py").write_text(WORKER)
        worker = [sys.executable, str(self.folder / "worker.py"), kind, "{n}", str(self.folder)]
        program = [sys.executable, "-c", PROGRAM, str(processes), str(grace), *worker]
        self.supervisors.append(subprocess.Popen(program, stderr=subprocess.PIPE, text=True))
        return self.supervisors[-1]

    def said(self, what: str) -> list[int]:
        """The pids of the workers that said so, by their numbers."""
        files = sorted(self.folder.glob(f"{what}-*"), key=lambda path: path.name)
        return [int(path.name.rsplit("-", 1)[1]) for path in files]

    def await_said(self, what: str, workers: int = 2) -> list[int]:
        wait_until(lambda: len(self.said(what)) >= workers)
        return self.said(what)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    yield fleet
    for process in fleet.supervisors:
        process.kill()
        process.wait()
        process.stderr.close()
    for pid in fleet.said("up"):
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)


def test_each_worker_is_a_process_with_a_number_of_its_own(fleet: Fleet) -> None:
    supervisor = fleet.start("obey", processes=3)

    pids = fleet.await_said("up", 3)

    assert {child.pid for child in children(supervisor.pid)} == set(pids)
    assert {path.name.split("-")[1] for path in fleet.folder.glob("up-*")} == {"1", "2", "3"}


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_lets_every_worker_stop_by_itself(fleet: Fleet, first: signal.Signals) -> None:
    supervisor = fleet.start("obey")
    pids = fleet.await_said("up")

    supervisor.send_signal(first)

    assert supervisor.wait(20) == DONE
    assert fleet.said("SIGTERM-1") == pids
    assert all(map(gone, pids))


def test_a_second_signal_is_passed_on_as_an_order_to_go_now(fleet: Fleet) -> None:
    supervisor = fleet.start("busy")
    pids = fleet.await_said("up")
    supervisor.send_signal(signal.SIGTERM)
    fleet.await_said("SIGTERM-1")

    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(20) == WORK_LEFT
    assert fleet.said("SIGINT-1") == pids


def test_workers_that_outlive_the_grace_are_told_to_go_now(fleet: Fleet) -> None:
    supervisor = fleet.start("busy", grace=0.1)
    pids = fleet.await_said("up")

    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(20) == WORK_LEFT
    assert fleet.said("SIGINT-1") == pids


def test_workers_that_do_not_go_at_all_are_killed_with_what_they_started(fleet: Fleet) -> None:
    supervisor = fleet.start("parent", grace=0.1)
    fleet.await_said("up")
    wait_until(lambda: len(children(supervisor.pid, recursive=True)) == 4)
    family = children(supervisor.pid, recursive=True)

    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(20) == WORK_LEFT
    wait_until(lambda: all(gone(process.pid) for process in family))


def test_drain_and_resume_are_passed_on(fleet: Fleet) -> None:
    supervisor = fleet.start("obey")
    pids = fleet.await_said("up")

    supervisor.send_signal(signal.SIGTSTP)
    fleet.await_said("SIGTSTP-1")
    supervisor.send_signal(signal.SIGCONT)

    assert fleet.await_said("SIGCONT-1") == pids
    assert psutil.Process(supervisor.pid).status() != psutil.STATUS_STOPPED


def test_a_killed_worker_is_started_again_at_once_and_the_others_are_left_alone(fleet: Fleet) -> None:
    supervisor = fleet.start("obey")
    first, second = fleet.await_said("up")

    os.kill(first, signal.SIGKILL)

    assert second in fleet.await_said("up", 3)
    wait_until(lambda: {child.pid for child in children(supervisor.pid)} == set(fleet.said("up")) - {first})


def test_nothing_is_started_again_while_stopping(fleet: Fleet) -> None:
    supervisor = fleet.start("busy")
    first, second = fleet.await_said("up")
    supervisor.send_signal(signal.SIGTERM)
    fleet.await_said("SIGTERM-1")

    os.kill(first, signal.SIGKILL)
    wait_until(lambda: [child.pid for child in children(supervisor.pid)] == [second])
    os.kill(second, signal.SIGINT)

    assert supervisor.wait(20) == WORK_LEFT
    assert fleet.said("up") == [first, second]


def test_workers_that_finish_are_not_started_again(fleet: Fleet) -> None:
    supervisor = fleet.start("exit0")

    assert supervisor.wait(20) == DONE
    assert len(fleet.said("up")) == 2


def test_a_usage_error_ends_it_at_the_first_try(fleet: Fleet) -> None:
    supervisor = fleet.start("exit2", processes=1)

    assert supervisor.wait(20) == USAGE
    assert len(fleet.said("up")) == 1
    assert "cannot start (exit code 2)" in supervisor.stderr.read()


@pytest.mark.parametrize(("kind", "code"), [("exit1", FAILED), ("exit3", UNREACHABLE)])
def test_workers_that_die_early_three_times_each_cannot_start(fleet: Fleet, kind: str, code: int) -> None:
    supervisor = fleet.start(kind)

    assert supervisor.wait(30) == code
    assert len(fleet.said("up")) >= 6


def test_a_command_that_does_not_exist_cannot_start(fleet: Fleet) -> None:
    program = [sys.executable, "-c", PROGRAM, "2", "1", str(fleet.folder / "nothing")]

    ended = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)

    assert ended.returncode == FAILED
    assert "cannot be started" in ended.stderr


@pytest.mark.parametrize("kind", ["obey", "deaf"])
def test_workers_go_when_their_supervisor_is_killed(fleet: Fleet, kind: str) -> None:
    supervisor = fleet.start(kind, grace=0.1)
    pids = fleet.await_said("up")

    supervisor.kill()

    wait_until(lambda: all(map(gone, pids)))
    assert fleet.said("SIGTERM-1") == pids


def test_the_gravest_exit_code_speaks_for_all() -> None:
    assert combine([0, 0]) == DONE
    assert combine([0, 4]) == WORK_LEFT
    assert combine([4, 1, 3]) == UNREACHABLE
    assert combine([0, -9]) == WORK_LEFT
    assert combine([-15, 0]) == DONE
    assert combine([77, 4]) == FAILED
