"""The chapters of the demonstration: what each submits, what it shows, and what must have become of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from workmill.demo import jobs
from workmill.domain.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from workmill.domain.job import Attempt, History, Job, NewJob

THUMBNAILS: Final = 12
READERS: Final = 40


class Tale(NamedTuple):
    """A job and its history."""

    job: Job
    history: History

    @property
    def failures(self) -> list[Attempt]:
        """The attempts that were charged."""
        return [attempt for attempt in self.history.attempts if attempt.kind in {"error", "timeout"}]

    @property
    def losses(self) -> list[Attempt]:
        """The attempts that ended with their worker."""
        return [attempt for attempt in self.history.attempts if attempt.kind == "worker_lost"]

    @property
    def succeeded(self) -> bool:
        """Whether it did."""
        return self.job.state is State.SUCCEEDED


class Verdict(NamedTuple):
    """Whether a chapter ended as expected, and how it ended."""

    passed: bool
    how: str


@dataclass(slots=True)
class Chapter:
    """Jobs that show one thing. `judge` is asked when all of them have ended; it gets their tales, then those of the jobs `beside` them."""

    title: str
    shows: str
    judge: Callable[[Sequence[Tale]], Verdict]
    new: list[NewJob]
    beside: Sequence[str] = ()
    seen: dict[str, Job] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The ids of its jobs."""
        return [job.id for job in self.new]


def opening(partner: Path) -> list[Chapter]:
    """What is submitted at the beginning. `partner` is the file whose absence makes a job fail until somebody makes it."""
    return [
        Chapter(
            "thumbnails",
            f"{THUMBNAILS} plain jobs, shared by two worker processes",
            all_succeeded,
            [jobs.make_thumbnail.job(picture=number).new for number in range(THUMBNAILS)],
        ),
        Chapter(
            "newsletter",
            f"{READERS} jobs in a queue that runs at most 2 at once",
            all_succeeded,
            [jobs.newsletter.using(queue="mail").job(reader=number).new for number in range(READERS)],
        ),
        Chapter(
            "reminder",
            "submitted with a delay of 4 s",
            not_before_its_time,
            [jobs.send_reminder.using(delay=4).job(to="ann@example.com").new],
        ),
        Chapter(
            "card",
            "its gateway fails twice; it is tried again after 1 s, then 2 s",
            failed_then_succeeded,
            [jobs.charge_card.job(amount=42).new],
        ),
        Chapter(
            "video",
            "crashes, in a process of its own, so that its worker lives",
            survived_a_crash,
            [jobs.transcode_video.job(name="holiday").new],
        ),
        Chapter(
            "contacts",
            "its partner is away; out of attempts it is dead, and kept",
            revived,
            [jobs.sync_contacts.job(partner=str(partner)).new],
        ),
        Chapter(
            "archive",
            "takes a minute, until somebody changes their mind",
            stopped,
            [jobs.export_archive.job(pages=600).new],
        ),
    ]


def urgent(crowd: Sequence[str]) -> Chapter:
    """What is submitted when the queue is full of a crowd."""
    return Chapter(
        "password",
        "priority 50, the last to come into the newsletter's queue",
        overtook,
        [jobs.reset_password.using(queue="mail", priority=50).job(user="ann").new],
        crowd,
    )


def long_one() -> Chapter:
    """What runs when its worker is killed."""
    return Chapter(
        "report",
        "takes 3 s, and its worker is killed meanwhile",
        ran_elsewhere,
        [jobs.yearly_report.job(year=2026, seconds=3.0).new],
    )


def all_succeeded(tales: Sequence[Tale]) -> Verdict:
    """Every job succeeded."""
    succeeded = sum(tale.succeeded for tale in tales)
    return Verdict(succeeded == len(tales), f"{succeeded} of {len(tales)} succeeded")


def overtook(tales: Sequence[Tale]) -> Verdict:
    """The first job started before some of the others, which had been waiting longer."""
    urgent, *crowd = tales
    start = urgent.job.started_at
    passed_by = 0 if start is None else sum(tale.job.started_at is not None and tale.job.started_at > start for tale in crowd)
    return Verdict(urgent.succeeded and passed_by > 0, f"{urgent.job.state}, before {passed_by} jobs that had waited longer")


def not_before_its_time(tales: Sequence[Tale]) -> Verdict:
    """It started when it was due, and not before."""
    job = tales[0].job
    if job.started_at is None:
        return Verdict(passed=False, how=f"{job.state}, never started")
    waited = (job.started_at - job.created_at).total_seconds()
    return Verdict(tales[0].succeeded and job.started_at >= job.run_at, f"{job.state}, started {waited:.2f} s after it was submitted")


def failed_then_succeeded(tales: Sequence[Tale]) -> Verdict:
    """Failures, each on record, and then the attempt that succeeded."""
    tale = tales[0]
    how = f"{tale.job.state} at attempt {tale.job.attempt}, {len(tale.failures)} failures on record"
    return Verdict(tale.succeeded and len(tale.failures) == tale.job.attempt - 1 > 0, how)


def revived(tales: Sequence[Tale]) -> Verdict:
    """Dead when it had no attempts left, then retried by hand: the first attempt again, the failures on record."""
    tale = tales[0]
    how = f"dead after {len(tale.failures)} failures, retried by hand, then {tale.job.state}"
    return Verdict(tale.succeeded and len(tale.failures) == tale.job.max_attempts and tale.job.attempt == 1, how)


def stopped(tales: Sequence[Tale]) -> Verdict:
    """Cancelled while it ran."""
    job = tales[0].job
    return Verdict(job.state is State.CANCELLED and job.started_at is not None, f"{job.state} while it ran")


def survived_a_crash(tales: Sequence[Tale]) -> Verdict:
    """Its own process died and was charged as an attempt; its worker lived."""
    tale = tales[0]
    crash = f"crashed ({tale.failures[0].error_class}), then " if tale.failures else ""
    return Verdict(tale.succeeded and bool(tale.failures), f"{crash}{tale.job.state} at attempt {tale.job.attempt}")


def ran_elsewhere(tales: Sequence[Tale]) -> Verdict:
    """Its worker was killed, and another ran it; no attempt was charged."""
    tale = tales[0]
    if not tale.losses or tale.job.started_at is None or tale.losses[0].started_at is None:
        return Verdict(passed=False, how=f"{tale.job.state}, and it was not lost")
    again = (tale.job.started_at - tale.losses[0].started_at).total_seconds()
    return Verdict(tale.succeeded and tale.job.attempt == 1, f"lost with its worker, began elsewhere {again:.1f} s later, {tale.job.state}")
