"""`workmill enqueue`: what is submitted, what is refused, and waiting for the ending."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from workmill.domain.states import State
from workmill.store.base import Store

Workmill = Callable[..., Result]


def only_job(store: Store) -> str:
    (job,) = store.jobs(_everything()).jobs
    return job.id


def _everything() -> "object":
    from workmill.domain.job import Selection  # noqa: PLC0415 - used here only

    return Selection()


def test_the_id_of_the_job_is_printed_and_nothing_else(workmill: Workmill, store: Store) -> None:
    done = workmill("enqueue", "echo")

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{only_job(store)}\n"
    assert store.job(done.stdout.strip()).payload == "{}"


def test_the_first_submission_makes_the_store(workmill: Workmill, tmp_path: Path) -> None:
    assert workmill("enqueue", "echo").exit_code == 0
    assert (tmp_path / "jobs.db").exists()


def test_every_option_is_a_field_of_the_job(workmill: Workmill, store: Store) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    done = workmill(
        "enqueue", "echo", "--payload", "[1]", "--queue", "mail", "--delay", "5m", "--priority", "-7", "--key", "k", "--timeout", "1.5s",
        "--expires-in", "1h", "--max-attempts", "2", "--max-losses", "1", "--backoff", "1s,1m", "--tag", "a", "--tag", "b",
        "--meta", '{"x": 1}', "--traceparent", trace,
    )  # fmt: skip

    job = store.job(done.stdout.strip())

    assert (job.type, job.payload, job.queue, job.state, job.priority) == ("echo", "[1]", "mail", State.SCHEDULED, -7)
    assert (job.unique_key, job.timeout, job.max_attempts, job.max_losses, job.tags) == ("k", 1.5, 2, 1, ("a", "b"))
    assert (job.meta, job.traceparent) == ('{"x": 1}', trace)
    assert json.loads(job.backoff or "") == [1, 60]
    assert (job.run_at - job.created_at).total_seconds() == 300
    assert job.expires_at is not None


def test_a_payload_keeps_its_bytes_from_an_argument_a_file_and_the_input(workmill: Workmill, store: Store, tmp_path: Path) -> None:
    text = '{"n": 1E2, "n": 12345678901234567890123,\n "s": "\\u0000ü"}\n'
    (tmp_path / "payload.json").write_text(text, encoding="utf-8")

    answers = [
        workmill("enqueue", "echo", "--payload", text),
        workmill("enqueue", "echo", "--payload", "@payload.json"),
        workmill("enqueue", "echo", "--payload", "-", input=text),
    ]

    assert [store.job(done.stdout.strip()).payload for done in answers] == [text] * 3


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--payload", "{", "must be JSON"),
        ("--payload", "NaN", "must not hold NaN"),
        ("--payload", "@nowhere.json", "No such file"),
        ("--payload", '"' + "x" * (1 << 20) + '"', "must be at most"),
        ("--queue", "a/b", "must be 1 to 100 characters"),
        ("--queue", "workmill.x", "reserved"),
        ("--delay", "-5", "must be"),
        ("--delay", "400d", "must be"),
        ("--at", "2030-01-01T00:00:00", "must have an offset"),
        ("--priority", "101", "must be a whole number from -100 to 100"),
        ("--priority", "high", "is not a valid integer"),
        ("--key", "", "must be text of 1 to 200 characters"),
        ("--timeout", "0", "must be from 0.001"),
        ("--expires-in", "soon", "must be"),
        ("--max-attempts", "0", "must be a whole number from 1"),
        ("--max-losses", "0", "must be a whole number from 1"),
        ("--backoff", "1s,x", "must be"),
        ("--tag", "a b", "must be 1 to 100 characters"),
        ("--meta", "[1]", "must be a JSON object"),
        ("--traceparent", "x", "must be a W3C traceparent"),
        ("--wait-timeout", "x", "must be"),
    ],
)
def test_what_cannot_be_is_refused_by_option_and_rule_before_anything_is_written(
    option: str, value: str, rule: str, workmill: Workmill, tmp_path: Path
) -> None:
    done = workmill("enqueue", "echo", f"{option}={value}")

    assert done.exit_code == 2
    assert done.stderr.startswith(f"workmill enqueue: {option}: ")
    assert rule in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "jobs.db").exists()


def test_a_type_that_cannot_be_is_refused(workmill: Workmill) -> None:
    assert workmill("enqueue", "a b").stderr.startswith("workmill enqueue: TYPE: must be 1 to 100 characters")
    assert workmill("enqueue", "echo", "--delay", "5m", "--at", "2030-01-01T00:00:00Z").exit_code == 2


def test_the_holder_of_a_taken_key_is_the_answer(workmill: Workmill, store: Store) -> None:
    first = workmill("enqueue", "echo", "--key", "k")
    second = workmill("enqueue", "echo", "--key", "k")
    third = workmill("enqueue", "echo", "--key", "k", "--json")

    assert second.stdout == first.stdout
    assert second.stderr == "the key k is held by this job, which is queued\n"
    assert json.loads(third.stdout) == {
        "id": first.stdout.strip(),
        "state": "queued",
        "queue": "default",
        "type": "echo",
        "created": False,
    }


def test_variables_set_options_and_flags_win(workmill: Workmill, store: Store) -> None:
    env = {"WORKMILL_ENQUEUE_QUEUE": "mail", "WORKMILL_ENQUEUE_PRIORITY": "3", "WORKMILL_ENQUEUE_TAG": "a b"}

    by_variable = store.job(workmill("enqueue", "echo", env=env).stdout.strip())
    by_flag = store.job(workmill("enqueue", "echo", "--queue", "video", "--tag", "c", env=env).stdout.strip())

    assert (by_variable.queue, by_variable.priority, by_variable.tags) == ("mail", 3, ("a", "b"))
    assert (by_flag.queue, by_flag.priority, by_flag.tags) == ("video", 3, ("c",))


def test_a_wait_that_is_too_short_is_exit_code_four_and_the_job_goes_on(workmill: Workmill, store: Store) -> None:
    done = workmill("enqueue", "echo", "--wait-timeout", "50ms")

    assert done.exit_code == 4
    assert done.stderr == f"{only_job(store)} has not ended, it is queued and goes on\n"
    assert done.stdout == ""


def test_a_delay_and_a_time_together_are_refused_by_their_flags(workmill: Workmill) -> None:
    done = workmill("enqueue", "echo", "--delay", "5m", "--at", "2030-01-01T00:00:00Z")

    assert done.exit_code == 2
    assert "--delay and --at cannot be used together" in done.stderr
