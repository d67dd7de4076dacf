"""`workmill worker` as a process: what it runs, how it stops, what its exit code says."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from workmill.cli.worker import slots
from workmill.domain.states import State
from workmill.store.base import Store

Workmill = Callable[..., Result]
Process = Callable[..., "subprocess.Popen[str]"]
Submit = Callable[..., str]
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def ended(child: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = child.communicate(timeout=30)
    return child.returncode, out, err


def test_a_burst_runs_what_is_there_and_ends_with_zero(process: Process, submit: Submit, store: Store) -> None:
    plain, failing = submit("echo", payload='{"a": 1E2}'), submit("fail", max_attempts=1)

    code, out, err = ended(process("worker", "--burst"))

    assert (code, out) == (0, "")
    assert store.job(plain).result == '{"a": 1E2}'
    assert store.job(failing).state is State.DEAD
    assert f"event=job.succeeded job_id={plain}" in err


def test_logs_can_be_json_and_fewer(process: Process, submit: Submit) -> None:
    job_id = submit("fail", max_attempts=1)

    _, _, err = ended(process("worker", "--burst", "--log-format", "json", "--log-level", "warning"))

    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["job_id"] for line in lines if line["event"] == "job.dead"] == [job_id]
    assert {line["level"] for line in lines} <= {"warning", "error"}


SLOW = """
from pathlib import Path
from workmill import Workmill, clock, current_job

mill = Workmill()

@mill.job(name="slow")
def slow():
    Path("begun").touch()
    while True:
        clock.sleep(0.01)
        current_job().check()
"""


def test_a_stop_that_interrupts_work_is_exit_code_four(process: Process, submit: Submit, store: Store, tmp_path: Path) -> None:
    (tmp_path / "slowly.py").write_text(SLOW, encoding="utf-8")
    job_id = submit("slow")
    child = process("worker", "slowly", "--grace", "100ms")
    until((tmp_path / "begun").exists)

    child.send_signal(signal.SIGTERM)

    assert ended(child)[0] == 4
    assert store.job(job_id).state is State.QUEUED
    assert store.job(job_id).attempt == 0


def test_a_stop_that_leaves_nothing_behind_is_exit_code_zero(process: Process, store: Store) -> None:
    child = process("worker")
    until(store.workers)

    child.send_signal(signal.SIGINT)

    assert ended(child)[0] == 0
    assert store.workers() == []


def test_a_worker_serves_only_the_queues_it_names(process: Process, submit: Submit, store: Store) -> None:
    mail, video, other = submit(queue="mail"), submit(queue="video"), submit(queue="other")

    code, _, _ = ended(process("worker", "-q", "mail=2,video", "--burst"))

    assert code == 0
    assert [store.job(job_id).state for job_id in (mail, video, other)] == [State.SUCCEEDED, State.SUCCEEDED, State.QUEUED]


def test_a_worker_ends_after_so_many_jobs(process: Process, submit: Submit, store: Store) -> None:
    jobs = [submit() for _ in range(5)]

    assert ended(process("worker", "--max-jobs", "2", "-c", "1"))[0] == 0
    assert sum(store.job(job_id).state is State.SUCCEEDED for job_id in jobs) == 2


def test_several_processes_share_the_work(process: Process, submit: Submit, store: Store) -> None:
    jobs = [submit("sleep", payload='{"ms": 50}') for _ in range(20)]

    code, _, err = ended(
        process("worker", "-p", "2", "-c", "2", "--burst", "--name", "team", env={**os.environ, "WORKMILL_WORKER_PROCESSES": "9"})
    )

    assert code == 0, err
    assert {store.job(job_id).state for job_id in jobs} == {State.SUCCEEDED}
    assert {store.history(job_id).attempts[-1].worker for job_id in jobs} <= {"team-1", "team-2"}
    assert err.count("event=worker.joined") == 2


def test_a_job_is_waited_for_and_its_result_printed(process: Process, workmill: Workmill, store: Store) -> None:
    child = process("worker")
    until(store.workers)

    done = workmill("enqueue", "echo", "--payload", '{"hi":  1E2}', "--wait")
    failed = workmill("enqueue", "fail", "--payload", '{"message": "\\u001b[2J"}', "--max-attempts", "1", "--wait")
    as_json = workmill("enqueue", "echo", "--wait", "--json")
    child.terminate()

    assert (done.exit_code, done.stdout) == (0, '{"hi":  1E2}\n')
    assert failed.exit_code == 1
    assert re.fullmatch(r"\S+ is dead: SampleFailure: \\x1b\[2J\n", failed.stderr)
    assert json.loads(as_json.stdout)["state"] == "succeeded"
    assert ended(child)[0] == 0


def test_on_a_terminal_it_says_what_it_is(submit: Submit, store: Store) -> None:
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "workmill", "worker", "-q", "mail=3", "--burst", "--log-level", "error"]
    done = subprocess.run(command, stdin=child, stdout=child, stderr=child, timeout=30, check=False, env={**os.environ, "TERM": "xterm"})
    os.close(child)
    said = ANSI.sub("", os.read(parent, 10_000).decode())
    os.close(parent)

    assert done.returncode == 0
    assert "workmill worker" in said
    assert f"store    {store.url}" in said
    assert "queues   mail=3" in said
    assert "workmill.samples:mill, 8 types: cpu_hash, crash, echo" in said


def test_an_application_is_named_by_module_and_object(process: Process, submit: Submit, store: Store, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from workmill import Workmill\nmill = Workmill()\n@mill.job(name='buy')\ndef buy(n: int) -> int:\n    return n + 1\n",
        encoding="utf-8",
    )
    job_id = submit("buy", payload='{"n": 1}')

    code, _, err = ended(process("worker", "shop:mill", "--burst"))

    assert code == 0, err
    assert store.job(job_id).result == "2"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["no_such_module:mill"], "there is no module no_such_module"),
        (["json:mill"], "json has no mill"),
        (["-q", "a/b"], "--queues: must be 1 to 100 characters"),
        (["-q", "a=0"], "--queues: must be NAME or NAME=N"),
        (["-q", "a", "-q", "a=3"], "--queues: names a twice"),
        (["-c", "0"], "--concurrency: must be a whole number from 1"),
        (["-p", "0"], "--processes: 0 is not in the range"),
        (["--lease", "1ms"], "--lease: must be from 0.5"),
        (["--grace", "x"], "--grace: must be a duration"),
        (["--max-jobs", "0"], "--max-jobs: must be a whole number from 1"),
        (["--name", "a b"], "--name: must be 1 to 100 characters"),
        (["--log-level", "loud"], "--log-level: 'loud' is not one of"),
        (["--log-format", "xml"], "--log-format: 'xml' is not one of"),
    ],
)
def test_what_it_cannot_be_started_with_is_one_line_and_exit_code_two(args: list[str], words: str, workmill: Workmill) -> None:
    done = workmill("worker", *args)

    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_store_that_cannot_be_reached_is_exit_code_three(process: Process) -> None:
    code, _, err = ended(process("--store", "sqlite:////nowhere/at/all/jobs.db", "worker"))

    assert code == 3
    assert err.splitlines()[-1].startswith("workmill worker: ")
    assert "Traceback" not in err


def test_a_queue_without_a_number_has_as_many_slots_as_concurrency_says() -> None:
    context = click.Context(click.Command("worker"))

    assert slots([(("mail", 10),), (("a", None), ("b", 2))], 7, context) == {"mail": 10, "a": 7, "b": 2}


def test_a_worker_loads_nothing_that_draws() -> None:
    code = "import sys, workmill.cli.program as p, workmill.cli.worker; sys.exit('rich' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("flag", "named"), [(["--store", "sqlite:///flag.db"], "--store: is sqlite:///flag.db"), ([], "WORKMILL_STORE: is")]
)
def test_a_store_that_is_not_the_applications_own_is_refused_by_where_it_was_given(
    flag: list[str], named: str, processes: str, process: Process, tmp_path: Path
) -> None:
    (tmp_path / "owner.py").write_text("from workmill import Workmill\nmill = Workmill('sqlite:///own.db')\n", encoding="utf-8")

    code, _, err = ended(process(*flag, "worker", "owner:mill", "--burst", "-p", processes))

    assert code == 2
    assert f"{named}" in err
    assert "names a store of its own, sqlite:///own.db" in err


def test_another_spelling_of_the_applications_own_file_is_its_store(process: Process, tmp_path: Path) -> None:
    (tmp_path / "owner.py").write_text("from workmill import Workmill\nmill = Workmill('sqlite:///jobs.db')\n", encoding="utf-8")

    code, _, err = ended(process("worker", "owner:mill", "--burst"))

    assert code == 0, err
