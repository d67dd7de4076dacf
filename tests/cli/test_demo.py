"""The demonstration is played for real: as a process, with real workers, one of which is killed."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from workmill.store.open import open_store

Process = Callable[..., "subprocess.Popen[str]"]


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def demo(process: Process, tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    return lambda *args: process("demo", *args, env={**os.environ, "TMPDIR": str(tmp_path)})


def test_all_of_it_ends_as_expected(demo: Process) -> None:
    out, err = (child := demo("--once")).communicate(timeout=110)

    assert (child.returncode, err) == (0, ""), out
    assert re.findall(r"^(.)  (\w+)", out.partition("WHAT HAPPENED")[2], re.MULTILINE) == [
        ("✓", "thumbnails"),
        ("✓", "newsletter"),
        ("✓", "reminder"),
        ("✓", "card"),
        ("✓", "video"),
        ("✓", "contacts"),
        ("✓", "archive"),
        ("✓", "password"),
        ("✓", "report"),
    ]
    assert "All of it ended as expected" in out


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 4), (signal.SIGINT, 4), (signal.SIGKILL, -signal.SIGKILL)])
def test_however_it_ends_it_leaves_no_worker_behind(how: signal.Signals, code: int, demo: Process) -> None:
    child = demo()
    assert child.stdout is not None
    child.stdout.readline()
    with closing(open_store(child.stdout.readline().strip())) as store:
        until(lambda: len(store.workers()) == 2)
        pids = [worker.pid for worker in store.workers()]

    child.send_signal(how)

    assert child.wait(120) == code
    until(lambda: not any(runs(pid) for pid in pids))
