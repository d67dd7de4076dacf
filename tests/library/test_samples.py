"""`workmill.samples`: what the contract says of each."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workmill import RawPayload, Retry, State, Workmill, samples
from workmill.testing import MemoryMill

NAMES = ("cpu_hash", "crash", "echo", "fail", "flaky", "noop", "sleep", "spin")


@pytest.fixture
def workmill_app() -> Workmill:
    return samples.mill


def test_the_samples_have_their_names(mill: MemoryMill) -> None:
    assert mill.registry.types == NAMES


def test_echo_returns_the_payload_byte_for_byte(mill: MemoryMill) -> None:
    job = mill.enqueue("echo", RawPayload('{"a": 1E2, "a": -0}'))
    mill.run_pending()

    assert job.wait().record.result == '{"a": 1E2, "a": -0}'


@pytest.mark.parametrize("payload", ["{}", "[1]", "null", '"text"', '{"any": "thing"}'])
def test_noop_takes_any_payload(mill: MemoryMill, payload: str) -> None:
    job = mill.enqueue("noop", RawPayload(payload))
    mill.run_pending()

    assert (job.wait().state, job.result) == (State.SUCCEEDED, None)


def test_sleep_and_cpu_hash_take_their_arguments(mill: MemoryMill) -> None:
    sleep, cpu_hash = mill.enqueue("sleep", {"ms": 1}), mill.enqueue("cpu_hash", {"iterations": 3})
    mill.run_pending()

    assert sleep.wait().state is State.SUCCEEDED
    assert len(cpu_hash.wait().result) == 64


def test_fail_fails_with_its_message(mill: MemoryMill) -> None:
    job = mill.enqueue("fail", {"message": "on purpose"}, retry=Retry(max_attempts=1))
    mill.run_pending()

    assert job.refresh().state is State.DEAD
    assert job.error is not None
    assert job.error.message == "on purpose"


def test_flaky_fails_so_many_times(mill: MemoryMill) -> None:
    job = mill.enqueue("flaky", {"failures": 2}, retry=Retry(backoff=[0]))
    mill.run_pending()

    assert job.wait().result == 3


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_crash_kills_its_process() -> None:
    ran = subprocess.run([sys.executable, "-c", "from workmill.samples import crash; crash()"], check=False)

    assert ran.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="isolated jobs need POSIX")
def test_spin_is_ended_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKMILL_STORE", f"sqlite:///{tmp_path}/jobs.db")
    app = Workmill(f"sqlite:///{tmp_path}/jobs.db")

    with samples.mill, samples.mill.run_worker():
        job = app.enqueue("spin", timeout=0.3, retry=Retry(max_attempts=1)).wait(20)

    assert job.error is not None
    assert (job.state, job.error.type) == (State.DEAD, "TimeoutError")
    app.close()
