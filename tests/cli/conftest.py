"""The command line in this process (`workmill`) and as a process of its own (`process`), each on a store of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from workmill.cli.program import program
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.store.base import Store
from workmill.store.open import open_store

Workmill = Callable[..., Result]
Process = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the developer's own settings, and a store in the test's directory."""
    for name in [name for name in os.environ if name.startswith("WORKMILL_") or name in {"FORCE_COLOR", "NO_COLOR", "COLUMNS"}]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WORKMILL_STORE", f"sqlite:///{tmp_path}/jobs.db")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def workmill() -> Workmill:
    """`workmill("jobs", "list", input="…")`: the exit code, stdout and stderr."""

    def invoke(*args: str, **extra: Any) -> Result:
        return CliRunner().invoke(program, args, prog_name="workmill", **extra)

    return invoke


@pytest.fixture
def process() -> Iterator[Process]:
    """Start `workmill` as a process; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: str, **extra: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-X", "dev", "-W", "error", "-m", "workmill", *args]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | extra
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def store(_environment: None) -> Iterator[Store]:
    """The store that the commands work on."""
    opened = open_store(os.environ["WORKMILL_STORE"])
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def submit(store: Store) -> Callable[..., str]:
    """`submit("echo", payload='"hi"', queue="mail")`: the id of a new job."""

    def one(type: str = "echo", payload: str = "{}", **options: Any) -> str:
        return store.submit([new_job(new_id(), type, payload, options)])[0].id

    return one


@pytest.fixture
def dead(store: Store, submit: Callable[..., str], workmill: Workmill) -> Callable[..., str]:
    """`dead(queue="mail")`: the id of a job that ran out of attempts."""
    from workmill.domain.outcome import ErrorReport, Failed, FailureKind  # noqa: PLC0415 - used here only
    from workmill.domain.worker import Hello, Wants  # noqa: PLC0415 - the same

    def one(message: str = "no", trace: str = "Traceback\n  …", **options: Any) -> str:
        job_id = submit("fail", max_attempts=1, **options)
        worker = store.join(Hello(name="tester", host="here", pid=1, version="1", lease_seconds=15.0))
        claimed = store.exchange(worker, [], Wants(anywhere=1_000)).claimed
        run = next(run for run in claimed if run.id == job_id)
        store.exchange(worker, [Failed(run.fence, FailureKind.ERROR, ErrorReport("ValueError", message, trace), 1, 1)], Wants())
        store.leave(worker)
        return job_id

    return one
