"""The play: submits the chapters, does what people do (change their mind, mend, retry, pull the plug), and judges how all ended."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Final, NamedTuple

from workmill.demo import jobs
from workmill.demo.chapters import Chapter, Tale, Verdict, long_one, opening, urgent
from workmill.domain.job import Selection
from workmill.domain.states import FINAL, State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from workmill.domain.job import Job
    from workmill.domain.worker import Worker
    from workmill.store.base import Store

ACTOR: Final = "demo"
TRICKLE: Final = 1.5
"""Seconds between the jobs that keep the workers busy when the play is over."""


class Cue(NamedTuple):
    """What somebody does, and when: at the earliest after `seconds`, as soon as `ready`."""

    seconds: float
    ready: Callable[[], bool]
    act: Callable[[], None]


class Play:
    """One performance. `turn` is called some times a second; `tell` is told what happens, `kill` ends a worker process at once."""

    def __init__(self, store: Store, partner: Path, tell: Callable[[str], None], kill: Callable[[Worker], None]) -> None:
        self._store = store
        self._partner = partner
        self._tell = tell
        self._kill = kill
        self._trickle = cycle(("thumbnail", "newsletter", "card"))
        self._next_trickle = 0.0
        self.chapters = opening(partner)
        self.cues = [
            Cue(1.0, lambda: True, self._hurry),
            Cue(4.0, lambda: self._state("archive") is State.RUNNING, self._change_mind),
            Cue(5.5, lambda: self._state("contacts") is State.DEAD, self._mend),
            Cue(7.0, lambda: True, self._order_report),
            Cue(7.6, lambda: self._state("report") is State.RUNNING, self._pull_the_plug),
        ]

    def begin(self) -> None:
        """Submit the opening chapters, in one transaction."""
        self._store.limit("mail", 2, actor=ACTOR)
        self._store.submit([new for chapter in self.chapters for new in chapter.new])
        for chapter in self.chapters:
            self._tell(f"{chapter.title}: {chapter.shows}")

    def turn(self, elapsed: float) -> None:
        """Look at the jobs, and act on the cues that have come."""
        for chapter in self.chapters:
            self._look(chapter)
        for cue in [cue for cue in self.cues if elapsed >= cue.seconds and cue.ready()]:
            self.cues.remove(cue)
            cue.act()

    @property
    def over(self) -> bool:
        """Whether everything was done and has ended."""
        return not self.cues and all(_ended(chapter) for chapter in self.chapters)

    def keep_busy(self, elapsed: float) -> None:
        """Submit a job now and then."""
        if elapsed < self._next_trickle:
            return
        self._next_trickle = elapsed + TRICKLE
        kind = next(self._trickle)
        new = {
            "thumbnail": lambda: jobs.make_thumbnail.job(picture=int(elapsed)),
            "newsletter": lambda: jobs.newsletter.using(queue="mail").job(reader=int(elapsed)),
            "card": lambda: jobs.charge_card.job(amount=int(elapsed), works_at=2),
        }[kind]()
        self._store.submit([new.new])

    def verdicts(self) -> dict[str, Verdict]:
        """How each chapter ended; one that has not ended has not passed."""
        return {chapter.title: self._judge(chapter) for chapter in self.chapters}

    def _judge(self, chapter: Chapter) -> Verdict:
        if not _ended(chapter):
            return Verdict(passed=False, how="has not ended")
        return chapter.judge([Tale(self._store.job(job_id), self._store.history(job_id)) for job_id in (*chapter.ids, *chapter.beside)])

    def _look(self, chapter: Chapter) -> None:
        waiting = [job_id for job_id in chapter.ids if job_id not in chapter.seen or chapter.seen[job_id].state not in FINAL]
        for job_id in waiting if len(chapter.new) == 1 else self._store.endings(waiting):
            chapter.seen[job_id] = self._store.job(job_id)

    def _chapter(self, title: str) -> Chapter:
        return next(chapter for chapter in self.chapters if chapter.title == title)

    def _job(self, title: str) -> Job | None:
        chapter = next((chapter for chapter in self.chapters if chapter.title == title), None)
        return None if chapter is None else chapter.seen.get(chapter.ids[0])

    def _state(self, title: str) -> State | None:
        job = self._job(title)
        return None if job is None else job.state

    def _add(self, chapter: Chapter) -> None:
        self._store.submit(chapter.new)
        self.chapters.append(chapter)
        self._tell(f"{chapter.title}: {chapter.shows}")

    def _hurry(self) -> None:
        self._add(urgent(self._chapter("newsletter").ids))

    def _change_mind(self) -> None:
        self._store.cancel(Selection(ids=(self._chapter("archive").ids[0],)), actor=ACTOR)
        self._tell("archive: cancelled by hand; it hears of it with the next heartbeat")

    def _mend(self) -> None:
        self._partner.write_text("here again\n", encoding="utf-8")
        self._chapter("contacts").seen.clear()
        self._store.revive(Selection(ids=(self._chapter("contacts").ids[0],)), actor=ACTOR)
        self._tell("contacts: the partner is back; the dead job is retried by hand")

    def _order_report(self) -> None:
        self._add(long_one())

    def _pull_the_plug(self) -> None:
        job = self._job("report")
        holder = next((worker for worker in self._store.workers() if job is not None and worker.id == job.worker_id), None)
        if holder is not None:
            self._kill(holder)
            self._tell(f"report: SIGKILL for its worker {holder.name}, process {holder.pid}, whose lease is {holder.lease_seconds:g} s")


def _ended(chapter: Chapter) -> bool:
    return len(chapter.seen) == len(chapter.new) and all(job.state in FINAL for job in chapter.seen.values())
