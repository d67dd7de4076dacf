"""`workmill demo`: the demonstration, as a live view on a terminal and as plain lines in a pipe."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from workmill import clock
from workmill.cli.exits import DONE, FAILED, WORK_LEFT
from workmill.cli.screen import Cell, Column, console, say, say_table, state_text, table
from workmill.cli.wording import now, span, visible
from workmill.demo.play import Play
from workmill.demo.stage import Stage
from workmill.domain.states import FINAL, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from rich.console import RenderableType

    from workmill.demo.chapters import Chapter
    from workmill.domain.job import Job
    from workmill.domain.queue import Queue

TURN: Final = 0.1
"""Seconds between two looks at the store."""
PATIENCE: Final = 90.0
"""Seconds after which a job that has not ended counts as stuck."""
BAR: Final = 20
QUEUES: Final = (
    Column("QUEUE"),
    Column("QUEUED", right=True),
    Column("LATER", right=True),
    Column("RUNNING", right=True),
    Column("SUCCEEDED", right=True),
    Column("DEAD", right=True),
    Column("CANCELLED", right=True, rank=1),
)
CHAPTERS: Final = (Column("JOB"), Column("STATE"), Column("WHAT HAPPENS", least=20))
VERDICTS: Final = (Column(""), Column("JOB"), Column("WHAT HAPPENED", least=20))


@click.command(short_help="Watch real jobs run, fail, retry, wait, die and be revived.")
@click.option("--once", is_flag=True, help="End when all has ended: with 0 as expected, else with 1.")
def demo(once: bool) -> int:
    """Play a story with real jobs on a new SQLite file and two real worker processes.

    Jobs run, wait for their time, fail and are tried again, die and are revived by hand, are cancelled, crash, overtake each other,
    and survive a worker that is killed. Without --once the workers go on with a trickle of jobs until Ctrl-C.
    """
    with _terminated_as_interrupted(), Stage() as stage:
        show = Show(stage)
        try:
            return show.run(once=once)
        except KeyboardInterrupt:
            return show.leave()


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that no worker is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Show:
    """A performance before an audience: the play, its clock, and what is seen of it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.play = Play(stage.store, stage.partner, self.tell, stage.kill)
        self.console = console()
        self.began = clock.monotonic()
        self.told: dict[str, str] = {}
        self.result: int | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return clock.monotonic() - self.began

    def tell(self, line: str) -> None:
        """Say a line of the story, with its time."""
        title, colon, rest = line.partition(": ")
        text = (title, "bold") if colon else (title, "")
        self.console.print(Text.assemble((f"{self.elapsed:5.1f}s  ", "dim"), text, colon, visible(rest)))

    def run(self, *, once: bool) -> int:
        """Play, and judge; then, unless `once`, keep the workers busy until somebody leaves."""
        say("Two worker processes are starting, on a store of their own:")
        say(Text(f"  {self.stage.url}", "bold"))
        with self._screen() as live:
            self.play.begin()
            while not self.play.over and self.elapsed < PATIENCE:
                self._turn(live)
        self.result = self._judge()
        if once:
            self._offer()
            return self.result
        self._invite()
        with self._screen() as live:
            while True:
                self.play.keep_busy(self.elapsed)
                self._turn(live, chapters=False)

    def leave(self) -> int:
        """What is left to say when somebody leaves."""
        if self.result is None:
            say("Left before the end.", stderr=True)
            return WORK_LEFT
        self._offer()
        return self.result

    @contextmanager
    def _screen(self) -> Iterator[Live | None]:
        """The live view on a terminal; None in a pipe."""
        if not self.console.is_terminal:
            yield None
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            yield live

    def _turn(self, live: Live | None, *, chapters: bool = True) -> None:
        self.stage.check()
        self.play.turn(self.elapsed)
        if live is None:
            self._tell_changes()
        else:
            live.update(Group(*self._view(chapters=chapters)), refresh=True)
        clock.sleep(TURN)

    def _view(self, *, chapters: bool) -> list[RenderableType]:
        room, at = self.console.width, now()
        store, killed = self.stage.store, self.stage.killed
        names = {worker.id: worker.name + (" (killed)" if worker.name in killed else "") for worker in store.workers(gone=True)}
        head = Text.assemble(("workmill demo", "bold"), f"  {self.elapsed:.1f}s  ", (", ".join(sorted(set(names.values()))), "dim"))
        lines: list[RenderableType] = [Text(), head, Text(), *table(QUEUES, [_queue_row(queue) for queue in store.queues()], room)]
        if chapters:
            lines += [Text(), *table(CHAPTERS, [_chapter_row(chapter, names, at) for chapter in self.play.chapters], room)]
        return lines

    def _tell_changes(self) -> None:
        for chapter in self.play.chapters:
            state = _state_of(chapter)
            if state and self.told.get(chapter.title) != state:
                self.told[chapter.title] = state
                say(Text.assemble((f"{self.elapsed:5.1f}s    ", "dim"), (f"{chapter.title} {state}", "dim")))

    def _judge(self) -> int:
        verdicts = self.play.verdicts()
        passed = all(verdict.passed for verdict in verdicts.values())
        say()
        say_table(VERDICTS, [_verdict_row(title, verdict.how, passed=verdict.passed) for title, verdict in verdicts.items()])
        say()
        if passed:
            say(Text(f"All of it ended as expected, in {span(self.elapsed)}.", "green"))
        else:
            say(Text(f"Not all of it ended as expected; the workers' logs are in {self.stage.directory}.", "red"))
        return DONE if passed else FAILED

    def _invite(self) -> None:
        say()
        say("The workers go on, with a job now and then. Look at them from another terminal:")
        self._commands(("jobs list", "queues list", "workers list", "enqueue charge_card --payload '{\"amount\": 7}' --wait"))
        say("Ctrl-C ends it.")

    def _offer(self) -> None:
        say()
        say("The store is still there. What to try next:")
        card = next(chapter for chapter in self.play.chapters if chapter.title == "card")
        self._commands(("jobs list", f"jobs show {card.ids[0]}", "queues list", "audit", "doctor", "worker workmill.demo.jobs:mill"))
        say(Text(f"  rm -r {self.stage.directory}", "cyan"))

    def _commands(self, commands: Sequence[str]) -> None:
        say(Text(f"  export WORKMILL_STORE={self.stage.url}", "cyan"))
        for command in commands:
            say(Text(f"  {this_program()} {command}", "cyan"))


def this_program() -> str:
    """How this program is called in this shell."""
    called, python = Path(sys.argv[0]), Path(sys.executable)
    if called.name != "workmill":
        return f"{python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python} -m workmill"
    found = shutil.which("workmill")
    return "workmill" if found and Path(found).resolve() == called.resolve() else str(called)


def _queue_row(queue: Queue) -> tuple[Cell, ...]:
    counts = queue.counts
    later = sum(counts.get(state, 0) for state in (State.SCHEDULED, State.RETRYING))
    numbers = (
        counts.get(State.QUEUED, 0),
        later,
        *(counts.get(state, 0) for state in (State.RUNNING, State.SUCCEEDED, State.DEAD, State.CANCELLED)),
    )
    return (queue.name, *(str(number) if number else "–" for number in numbers))


def _chapter_row(chapter: Chapter, workers: Mapping[str, str], at: datetime) -> tuple[Cell, ...]:
    if len(chapter.new) > 1:
        done = sum(job.state in FINAL for job in chapter.seen.values())
        full = BAR * done // len(chapter.new)
        return chapter.title, f"{done}/{len(chapter.new)}", Text.assemble(("━" * full, "green"), ("━" * (BAR - full), "dim"))
    job = chapter.seen.get(chapter.ids[0])
    return (chapter.title, "", "") if job is None else (chapter.title, state_text(job.state), _doing(job, workers, at))


def _state_of(chapter: Chapter) -> str:
    """The state of a chapter as a line that does not change with the clock."""
    if len(chapter.new) > 1:
        done = sum(job.state in FINAL for job in chapter.seen.values())
        return f"{done} of {len(chapter.new)} done" if done == len(chapter.new) else ""
    job = chapter.seen.get(chapter.ids[0])
    return "" if job is None else f"{job.state}{_failure(job)}"


def _doing(job: Job, workers: Mapping[str, str], at: datetime) -> str:
    due = max(0.0, (job.run_at - at).total_seconds())
    match job.state:
        case State.SCHEDULED:
            return f"due in {due:.1f}s"
        case State.RETRYING:
            return f"again in {due:.1f}s{_failure(job)}"
        case State.RUNNING:
            progress = f", {job.progress.message}" if job.progress and job.progress.message else ""
            return f"attempt {job.attempt} of {job.max_attempts} on {workers.get(job.worker_id or '', '?')}{progress}"
        case State.QUEUED:
            return "waits for a worker"
        case State.DEAD:
            return f"waits for a person{_failure(job)}"
    return f"after {span(((job.finished_at or at) - job.created_at).total_seconds())}" + (
        f", at attempt {job.attempt}" if job.attempt else ""
    )


def _failure(job: Job) -> str:
    """How its last attempt failed, while that is why it is in its state."""
    if job.error is None or job.state not in {State.RETRYING, State.DEAD}:
        return ""
    return f", attempt {job.attempt} of {job.max_attempts}: {job.error.type}"


def _verdict_row(title: str, how: str, *, passed: bool) -> tuple[Cell, ...]:
    return Text("✓", "green") if passed else Text("✗", "red"), title, how
