"""The commands that look: tables for people, one JSON object for programs, nothing obeyed that a job says."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from click.testing import Result

from workmill.domain.worker import Hello
from workmill.store.base import Store

Workmill = Callable[..., Result]
Submit = Callable[..., str]
JOB_FIELDS = {
    "id", "queue", "type", "state", "priority", "attempt", "max_attempts", "losses", "max_losses", "lease", "snoozes", "aside", "suspect",
    "worker_id", "created_at", "run_at", "expires_at", "claimed_at", "started_at", "finished_at", "cancel_requested_at", "timeout",
    "backoff", "unique_key", "tags", "meta", "traceparent", "progress", "error",
}  # fmt: skip


def answer(workmill: Workmill, *args: str) -> Any:
    done = workmill(*args, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def ids(page: Any) -> list[str]:
    return [job["id"] for job in page["jobs"]]


def test_jobs_are_listed_newest_first_as_one_object_with_stable_names(workmill: Workmill, submit: Submit) -> None:
    first, second = submit(), submit("noop", queue="mail", delay=60, tags=["a"], meta='{"x": 1}', timeout=1.5)

    page = answer(workmill, "jobs", "list")

    assert ids(page) == [second, first]
    assert page["next"] is None
    assert set(page["jobs"][0]) == JOB_FIELDS
    assert page["jobs"][0]["state"] == "scheduled"
    assert page["jobs"][0]["timeout"] == 1.5
    assert page["jobs"][0]["tags"] == ["a"]
    assert page["jobs"][0]["meta"] == {"x": 1}
    assert datetime.fromisoformat(page["jobs"][0]["run_at"]).utcoffset() is not None


def test_a_list_goes_on_where_its_cursor_says(workmill: Workmill, submit: Submit) -> None:
    submitted = [submit() for _ in range(5)]

    first = answer(workmill, "jobs", "list", "--limit", "3")
    second = answer(workmill, "jobs", "list", "--limit", "3", "--cursor", first["next"])

    assert ids(first) + ids(second) == submitted[::-1]
    assert second["next"] is None


def test_a_table_says_on_stderr_that_there_are_more(workmill: Workmill, submit: Submit) -> None:
    submit()
    submit()

    done = workmill("jobs", "list", "--limit", "1")

    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.startswith("There are more: add --cursor ")


def test_each_filter_narrows_the_list(workmill: Workmill, submit: Submit, dead: Submit) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    mail = submit(queue="mail", unique_key="k", tags=["blue"], traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    lost = dead()
    later = submit("noop", delay=60)

    assert ids(answer(workmill, "jobs", "list", "--state", "dead")) == [lost]
    assert ids(answer(workmill, "jobs", "list", "--state", "dead,scheduled")) == [later, lost]
    assert ids(answer(workmill, "jobs", "list", "--state", "dead", "--state", "scheduled")) == [later, lost]
    assert ids(answer(workmill, "jobs", "list", "--queue", "mail")) == [mail]
    assert ids(answer(workmill, "jobs", "list", "--type", "noop")) == [later]
    assert ids(answer(workmill, "jobs", "list", "--tag", "blue")) == [mail]
    assert ids(answer(workmill, "jobs", "list", "--error-class", "ValueError")) == [lost]
    assert ids(answer(workmill, "jobs", "list", "--key", "k")) == [mail]
    assert ids(answer(workmill, "jobs", "list", "--trace", trace)) == [mail]
    assert ids(answer(workmill, "jobs", "list", "--created-after", "1h")) == [later, lost, mail]
    assert ids(answer(workmill, "jobs", "list", "--created-before", "1h")) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--state", "deceased"),
        ("--queue", "a/b"),
        ("--type", "../x"),
        ("--tag", "a b"),
        ("--key", ""),
        ("--created-after", "2026-01-01T00:00:00"),
        ("--created-before", "soon"),
        ("--limit", "0"),
        ("--cursor", "nonsense!"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_by_its_name(option: str, value: str, workmill: Workmill, store: Store) -> None:
    done = workmill("jobs", "list", option, value)

    assert done.exit_code == 2, done.stdout
    assert done.stderr.startswith(f"workmill jobs list: {option}: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_table_in_a_pipe_is_plain_and_whole(workmill: Workmill, submit: Submit) -> None:
    job_id = submit("a_type_with_a_very_long_name_" * 3, queue="q" * 100)

    header, row = workmill("jobs", "list").stdout.splitlines()

    assert header.split() == ["ID", "STATE", "WHEN", "TYPE", "QUEUE", "TRY", "PRIORITY", "NOTE"]
    assert row.split()[0] == job_id
    assert "q" * 100 in row


def test_a_job_is_shown_with_its_attempts_and_its_exact_texts(workmill: Workmill, submit: Submit, dead: Submit) -> None:
    job_id = dead("no way", payload='{"big": 12345678901234567890123, "e": 1E2, "e": -0}')

    done = workmill("jobs", "show", job_id, "--json")
    plain = workmill("jobs", "show", job_id, "--traceback").stdout

    job = json.loads(done.stdout)
    assert '"big": 12345678901234567890123,' in done.stdout
    assert '"e": 1E2,' in done.stdout
    assert '"e": -0' in done.stdout
    assert set(job) == JOB_FIELDS | {"payload", "result", "attempts", "omitted"}
    assert [(attempt["number"], attempt["kind"], attempt["class"], attempt["message"]) for attempt in job["attempts"]] == [
        (1, "error", "ValueError", "no way")
    ]
    assert job["error"] == {"class": "ValueError", "message": "no way", "traceback": "Traceback\n  …"}
    assert '{"big": 12345678901234567890123, "e": 1E2, "e": -0}' in plain
    assert "attempt 1: failed: ValueError: no way" in plain
    assert "Traceback\n  …\n" in plain


def test_a_job_that_is_not_there_is_exit_code_one(workmill: Workmill, store: Store) -> None:
    done = workmill("jobs", "show", "nobody")

    assert (done.exit_code, done.stderr) == (1, "workmill jobs show: no job nobody\n")


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b]0;title\x07", "a\nb\r\nc", "\x9b31m", "[bold red]x[/]", "\u202eabc"])
def test_nothing_a_job_says_reaches_the_terminal_as_a_command(hostile: str, workmill: Workmill, dead: Submit) -> None:
    job_id = dead(hostile, hostile, payload=json.dumps(hostile, ensure_ascii=False), unique_key=hostile)
    commands = [["jobs", "list"], ["jobs", "show", job_id, "--traceback"], ["jobs", "list", "--json"], ["jobs", "show", job_id, "--json"]]

    outputs = [workmill(*command).output for command in commands]

    assert [mark for out in outputs for mark in out if not mark.isprintable() and mark != "\n"] == []
    assert json.loads(outputs[3])["unique_key"] == hostile
    assert json.loads(outputs[3])["payload"] == hostile


def test_queues_are_listed_with_counts_and_figures(workmill: Workmill, submit: Submit, dead: Submit) -> None:
    dead(queue="mail")
    submit(queue="mail")
    submit(queue="mail", delay=60)
    workmill("queues", "limit", "mail", "3")
    workmill("queues", "pause", "video")

    mail, video = answer(workmill, "queues", "list")["queues"]
    table = workmill("queues", "list").stdout.splitlines()

    assert (mail["name"], mail["paused"], mail["concurrency_limit"]) == ("mail", False, 3)
    assert mail["counts"] == {"dead": 1, "queued": 1, "scheduled": 1}
    assert (mail["stats"]["failed"], mail["stats"]["dead"], mail["stats"]["window"]) == (1, 1, 300)
    assert (video["name"], video["paused"], video["stats"]) == ("video", True, None)
    assert table[1].split()[:5] == ["mail", "1", "1", "–", "1"]
    assert table[1].endswith("at most 3 at once")
    assert table[2].endswith("paused")


def test_workers_are_listed_with_what_they_serve(workmill: Workmill, store: Store) -> None:
    worker = store.join(Hello(name="ada", host="here", pid=7, version="1", lease_seconds=15.0, queues={"mail": 3}, concurrency=3))

    (found,) = answer(workmill, "workers", "list")["workers"]
    row = workmill("workers", "list").stdout.splitlines()[1]

    assert set(found) == {
        "id", "name", "host", "pid", "version", "state", "queues", "concurrency", "running", "lease_seconds", "joined_at", "seen_at"
    }  # fmt: skip
    assert (found["id"], found["queues"], found["state"]) == (worker, {"mail": 3}, "running")
    assert row.split()[:5] == [worker, "ada", "running", "mail=3", "0/3"]


def test_the_audit_tells_who_did_what(workmill: Workmill, submit: Submit) -> None:
    workmill("--actor", "ann", "jobs", "cancel", submit())

    (line,) = answer(workmill, "audit")["audit"]

    assert (line["actor"], line["action"], line["count"]) == ("ann", "cancel", 1)
    assert "ann" in workmill("audit").stdout


def test_a_store_without_anything_says_so_in_words(workmill: Workmill, store: Store) -> None:
    assert workmill("jobs", "list").stdout == "No job matches.\n"
    assert workmill("queues", "list").stdout == "There are no queues yet: one appears with its first job.\n"
    assert workmill("workers", "list").stdout == "No worker is running. Start one: workmill worker TARGET\n"
    assert workmill("audit").stdout == "Nobody has done anything yet.\n"
    assert answer(workmill, "jobs", "list") == {"jobs": [], "next": None}


@pytest.fixture
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workmill.cli.screen.width", lambda: 80)


def lines_of(text: str) -> list[str]:
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    return lines


def test_the_audit_speaks_the_words_of_the_commands(workmill: Workmill, submit: Submit, dead: Submit) -> None:
    first, second = dead(), dead()
    for verb, job_id in (("retry", first), ("discard", second), ("reschedule", first), ("cancel", first)):
        workmill("jobs", verb, job_id)
    workmill("queues", "limit", "mail", "3")

    entries = answer(workmill, "audit")["audit"]
    table = workmill("audit").stdout

    assert [entry["action"] for entry in entries] == ["limit", "cancel", "reschedule", "discard", "retry"]
    assert [entry["detail"] for entry in entries] == [{"limit": 3}, {}, {}, {"ids": [second]}, {}]
    assert "revive" not in table
    assert "{" not in table
    assert "limit 3" in table


@pytest.mark.parametrize("verb", ["retry", "reschedule"])
def test_the_audit_cuts_no_id(verb: str, workmill: Workmill, submit: Submit, dead: Submit, eighty_columns: None) -> None:
    job_id = dead()
    workmill("jobs", "retry", job_id)
    workmill("--actor", "somebody with a long name", "jobs", "reschedule", job_id)

    found = [line for line in lines_of(workmill("audit").stdout) if f" {verb} " in line]

    assert job_id in found[0]


def test_the_story_of_a_job_cuts_no_error(workmill: Workmill, dead: Submit, eighty_columns: None) -> None:
    message = " ".join(f"word{number}" for number in range(30))
    job_id = dead(message)

    said = " ".join(" ".join(lines_of(workmill("jobs", "show", job_id).stdout)).split())

    assert f"attempt 1: failed: ValueError: {message}" in said


def test_the_limit_of_a_queue_is_said_whole(workmill: Workmill, submit: Submit, eighty_columns: None) -> None:
    submit(queue="a_queue_with_quite_a_long_name")
    workmill("queues", "limit", "a_queue_with_quite_a_long_name", "2")

    assert "at most 2 at once" in "\n".join(lines_of(workmill("queues", "list").stdout))
