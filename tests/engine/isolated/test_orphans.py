"""When a worker is killed, its children and what they have started go too."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent
WORKER = textwrap.dedent(
    """
    import math, sys, threading
    from workmill.clock import monotonic
    from workmill.domain.job import Claimed
    from workmill.engine.context import RunningJob
    from workmill.engine.executors.base import Floor
    from workmill.engine.executors.process import isolated_executors
    from workmill.engine.gate import Gate
    from workmill.engine.handlers import Hooks
    from workmill.engine.watchdog import Watchdog
    from workmill.telemetry import DEBUG, Telemetry

    sys.path.insert(0, sys.argv[1])
    from isolated_target import mill

    telemetry = Telemetry()
    gate = Gate(telemetry)
    gate.renew(math.inf)
    floor = Floor(lambda run: None, gate, Watchdog(lambda run: None, telemetry), Hooks(), telemetry)
    executor = isolated_executors("isolated_target:mill")(floor, 2)
    registry = mill.registry
    runs = [("parent", '{"path": "%s"}' % sys.argv[2]), ("backtrack", "{}")]
    telemetry.subscribe(lambda event: event.name == "job.started" and print(event.job.type, flush=True), DEBUG)
    executor.start(
        [
            RunningJob(Claimed(type, 1, "q", type, payload, 1, 5, None, None, None, 0), registry.get(type), monotonic(), math.inf)
            for type, payload in runs
        ]
    )
    threading.Event().wait()
    """
)
Until = Callable[[Callable[[], object]], None]
Gone = Callable[[int], bool]


@pytest.fixture
def worker(tmp_path: Path, until: Until) -> Iterator[psutil.Process]:
    """A worker with two children that work, one of them with a child of its own."""
    process = subprocess.Popen([sys.executable, "-c", WORKER, str(HERE), str(tmp_path / "pids")], stdout=subprocess.PIPE)
    worker = psutil.Process(process.pid)
    until(lambda: len(worker.children(recursive=True)) == 4 and (tmp_path / "pids").exists())
    assert process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {b"parent\n", b"backtrack\n"}
    family = worker.children(recursive=True)
    yield worker
    for member in (worker, *family):
        if member.is_running():
            member.kill()
    process.wait()
    process.stdout.close()


def test_nothing_outlives_a_worker_that_is_killed(worker: psutil.Process, until: Until, gone: Gone) -> None:
    family = worker.children(recursive=True)

    worker.kill()

    until(lambda: all(gone(member.pid) for member in family))


def test_a_child_ends_with_its_worker_and_takes_its_own_along_though_the_guard_is_dead(
    worker: psutil.Process, until: Until, gone: Gone, tmp_path: Path
) -> None:
    [guard] = [child for child in worker.children() if "guard.py" in child.cmdline()[-1]]
    child, grandchild = map(int, (tmp_path / "pids").read_text().split())

    guard.kill()
    worker.kill()

    until(lambda: gone(child) and gone(grandchild))


def test_a_signal_to_everybody_does_not_end_the_guard(worker: psutil.Process, until: Until, gone: Gone) -> None:
    family = worker.children(recursive=True)
    [guard] = [child for child in worker.children() if "guard.py" in child.cmdline()[-1]]

    guard.terminate()
    guard.send_signal(2)
    worker.kill()

    until(lambda: all(gone(member.pid) for member in family))
