"""The story of a job is told from the times that it and its attempts have kept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workmill.cli.jobs import note, when
from workmill.cli.story import happenings, tell
from workmill.domain.job import Attempt, History, Job, Progress
from workmill.domain.outcome import ErrorReport
from workmill.domain.states import State

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def a_job(**fields: Any) -> Job:
    usual: dict[str, Any] = {
        "id": "j",
        "queue": "mail",
        "type": "send",
        "state": State.QUEUED,
        "priority": 0,
        "attempt": 0,
        "max_attempts": 5,
        "losses": 0,
        "max_losses": 3,
        "lease": 0,
        "created_at": NOON,
        "run_at": NOON,
    }
    return Job(**{**usual, **fields})


def an_attempt(number: int, kind: str, began: float | None, ended: float | None, **fields: Any) -> Attempt:
    times = {"started_at": None if began is None else at(began), "ended_at": None if ended is None else at(ended)}
    return Attempt(number=number, lease=number, kind=kind, worker="ada", **times, **fields)


def story(job: Job, *attempts: Attempt, now: float = 100.0) -> list[tuple[float, float | None, str]]:
    told = happenings(job, History(attempts), at(now))
    return [((event.at - NOON).total_seconds(), event.seconds, event.what.plain) for event in told]


def test_a_job_that_succeeded_was_submitted_waited_ran_and_ended() -> None:
    job = a_job(state=State.SUCCEEDED, attempt=1, started_at=at(1), finished_at=at(3))

    assert story(job, an_attempt(1, "succeeded", 1, 3)) == [
        (0, None, "submitted"),
        (0, 1, "waited for a worker"),
        (1, 2, "attempt 1: succeeded"),
        (3, None, "succeeded 3.0s after it was submitted"),
    ]


def test_a_delayed_job_waits_for_its_time_first() -> None:
    job = a_job(state=State.SCHEDULED, run_at=at(60))

    assert story(job, now=20) == [(0, None, "submitted"), (0, 20, "waits for its time, due in 40s")]


def test_a_failure_is_told_with_its_error_and_the_backoff_after_it() -> None:
    job = a_job(state=State.RETRYING, attempt=1, run_at=at(10))
    failed = an_attempt(1, "error", 1, 2, error_class="ValueError", message="no\n\x1b[31m", next_run_at=at(10))

    assert story(job, failed, now=5) == [
        (0, None, "submitted"),
        (0, 1, "waited for a worker"),
        (1, 1, "attempt 1: failed: ValueError: no\\n\\x1b[31m"),
        (2, 3, "backs off, due in 5.0s"),
    ]


def test_a_revival_stands_between_the_last_failure_and_the_next_attempt() -> None:
    job = a_job(state=State.SUCCEEDED, attempt=1, finished_at=at(50))
    dead = an_attempt(5, "error", 1, 2, error_class="ValueError", message="no")

    told = [what for _, _, what in story(job, dead, an_attempt(1, "succeeded", 49, 50))]

    assert told[2:5] == ["attempt 5: failed: ValueError: no", "retried by hand, its counters anew", "attempt 1: succeeded"]


def test_what_still_waits_is_told_until_now() -> None:
    assert story(a_job(), now=7)[-1] == (0, 7, "waits for a worker")


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (a_job(), "for 9.0s"),
        (a_job(state=State.SCHEDULED, run_at=at(69)), "in 1m"),
        (a_job(state=State.RETRYING, run_at=at(3)), "due"),
        (a_job(state=State.RUNNING, started_at=at(4)), "for 5.0s"),
        (a_job(state=State.SUCCEEDED, finished_at=at(8)), "1.0s ago"),
    ],
)
def test_a_list_says_the_time_that_matters_in_each_state(job: Job, words: str) -> None:
    assert when(job, at(9)) == words


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (a_job(), ""),
        (a_job(aside="unknown_type"), "set aside: unknown type"),
        (a_job(state=State.RUNNING, cancel_requested_at=NOON), "asked to stop"),
        (a_job(state=State.RUNNING, progress=Progress(fraction=0.5, message="half")), "50% half"),
        (a_job(state=State.DEAD, error=ErrorReport("ValueError", "no")), "ValueError: no"),
        (a_job(state=State.SUCCEEDED, error=ErrorReport("ValueError", "no")), ""),
    ],
)
def test_a_list_says_what_else_is_worth_a_word(job: Job, words: str) -> None:
    assert note(job) == words


def test_the_story_shows_texts_and_tracebacks_line_by_line_with_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    job = a_job(state=State.DEAD, attempt=1, payload='{"n": 1E2,\n "s": "\x9b2J"}', finished_at=at(2), tags=("a", "b"))
    failed = an_attempt(1, "error", 1, 2, error_class="ValueError", message="[red]no[/red]", traceback="Traceback\n  \x1b[2J\n")

    tell(job, History((failed,)), at(3), tracebacks=True)

    out = capsys.readouterr().out
    assert '{"n": 1E2,\n "s": "\\u009b2J"}' in out
    assert "Traceback\n  \\x1b[2J\n" in out
    assert "ValueError: [red]no[/red]" in out
    assert "\x1b" not in out
