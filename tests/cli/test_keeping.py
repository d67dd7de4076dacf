"""`workmill migrate`, `upkeep` and `doctor`: the store in order."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from workmill.domain.states import State
from workmill.store.base import Store

Workmill = Callable[..., Result]
Process = Callable[..., "subprocess.Popen[str]"]
Submit = Callable[..., str]


def test_migrate_brings_a_new_store_up_to_date(workmill: Workmill) -> None:
    before, sql, done, after = (workmill("migrate", *args) for args in (["--check"], ["--sql"], [], ["--check"]))

    assert (before.exit_code, before.stdout) == (1, "pending 0001_initial\n")
    assert before.stderr == "1 migration to run: workmill migrate\n"
    assert "CREATE TABLE workmill_jobs" in sql.stdout
    assert (done.exit_code, done.stdout) == (0, "applied 0001_initial\n")
    assert (after.exit_code, after.stdout) == (0, "The schema is up to date.\n")


def test_upkeep_once_says_what_it_did(workmill: Workmill, submit: Submit, store: Store) -> None:
    job_id = submit(delay=0.05)
    time.sleep(0.1)

    done = workmill("upkeep", "--once")

    assert done.exit_code == 0
    assert "1 promoted" in done.stdout
    assert store.job(job_id).state is State.QUEUED


def test_upkeep_goes_on_until_it_is_told_to_stop(process: Process, submit: Submit, store: Store) -> None:
    job_id = submit(delay=0.5)
    child = process("upkeep")
    deadline = time.monotonic() + 20
    while store.job(job_id).state is not State.QUEUED and time.monotonic() < deadline:
        time.sleep(0.05)

    child.send_signal(signal.SIGTERM)

    assert child.wait(20) == 0
    assert store.job(job_id).state is State.QUEUED


def test_doctor_says_what_is_wrong_and_exits_with_one(workmill: Workmill, submit: Submit) -> None:
    submit(queue="mail")

    done = workmill("doctor")

    assert done.exit_code == 1
    assert "✗ worked     no worker is running, and 1 job waits for one" in done.stdout
    assert "→ workmill worker" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 error")


def test_doctor_is_one_json_object(workmill: Workmill, submit: Submit, store: Store) -> None:
    submit(queue="mail")

    done = workmill("doctor", "--json", "--invariants")

    report = json.loads(done.stdout)
    assert done.exit_code == 1
    assert set(report) == {"store", "healthy", "description", "findings"}
    assert (report["store"], report["healthy"]) == (store.url, False)
    assert {"severity", "check", "what", "todo"} == set(report["findings"][0])
    assert {"severity": "ok", "check": "sound", "what": "all invariants hold", "todo": ""} in report["findings"]


def test_doctor_on_a_store_at_rest_has_nothing_to_object_unless_it_is_strict(workmill: Workmill, store: Store) -> None:
    calm, strict = workmill("doctor"), workmill("doctor", "--strict")

    assert (calm.exit_code, strict.exit_code) == (0, 1)
    assert "no worker is running" in calm.stdout


def test_doctor_wonders_about_variables_that_nothing_reads(workmill: Workmill, store: Store) -> None:
    done = workmill("doctor", env={"WORKMILL_STOER": "x", "WORKMILL_JOBS_LIST_STATE": "dead"})

    assert "WORKMILL_STOER is set, and nothing reads it" in done.stdout
    assert "did you mean WORKMILL_STORE?" in done.stdout
    assert "WORKMILL_JOBS_LIST_STATE" not in done.stdout


def test_doctor_names_the_types_that_no_worker_knows(process: Process, workmill: Workmill, submit: Submit) -> None:
    submit("from_the_next_release", queue="mail")
    process("worker", "--burst").communicate(timeout=30)

    assert "jobs in mail are set aside, since no worker knows from_the_next_release" in workmill("doctor").stdout


def test_doctor_finds_a_store_that_everybody_may_write_to(workmill: Workmill, store: Store, tmp_path: Path) -> None:
    (tmp_path / "jobs.db").chmod(0o666)

    assert f"chmod o-w {tmp_path}/jobs.db" in workmill("doctor").stdout


@pytest.mark.parametrize("args", [["--invariants"], []])
def test_doctor_on_a_store_that_is_not_there_is_exit_code_three(args: list[str], workmill: Workmill) -> None:
    assert workmill("doctor", *args).exit_code == 3
