"""`workmill doctor`: what is configured, reachable, migrated, slow, stuck, newly dead, unsafe, and what to do about it."""

from __future__ import annotations

import difflib
import os
import textwrap
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

from workmill import clock
from workmill.cli.disk import examine_disk
from workmill.cli.exits import DONE, FAILED
from workmill.cli.findings import Facts, Severity, examine
from workmill.cli.progress import spinner
from workmill.cli.reference import known_variables
from workmill.cli.screen import say, width
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import say_json
from workmill.cli.wording import now, plural, visible
from workmill.config import shown_url
from workmill.domain.job import Selection
from workmill.domain.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workmill.cli.findings import Finding
    from workmill.domain.queue import Queue
    from workmill.store.base import Store

MARKS: Final = {
    Severity.OK: ("✓", "green"),
    Severity.NOTE: ("·", "dim"),
    Severity.WARNING: ("!", "yellow"),
    Severity.ERROR: ("✗", "red"),
}
RECENTLY: Final = 3_600.0
"""Seconds within which a dead job is newly dead."""
LOOKED_AT: Final = 200
"""So many of the jobs that are set aside are asked for their type."""


@click.command(short_help="What is wrong, and what to do about it.")
@takes_store()
@click.option("--invariants", is_flag=True, help="Also check the whole store against the rules that always hold; reads every job.")
@click.option("--strict", is_flag=True, help="Exit 1 for warnings too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def doctor(session: Session, invariants: bool, strict: bool, as_json: bool) -> int:
    """Look the store over: each finding with how bad it is, what is so, and what to do. Exit 1 when something is wrong."""
    with spinner("reading every job") if invariants else nullcontext():
        facts = gather(session.store, invariants=invariants)
    findings = examine(facts)
    bad = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    healthy = not any(finding.severity in bad for finding in findings)
    if as_json:
        say_json(_shape(facts, findings, healthy=healthy))
    else:
        _show(findings)
    return DONE if healthy else FAILED


def gather(store: Store, *, invariants: bool) -> Facts:
    """Look at everything once."""
    began = clock.monotonic()
    pending = store.pending_migrations()
    reached_in = clock.monotonic() - began
    if pending:
        return Facts(at=now(), url=shown_url(store.url), reached_in=reached_in, description={}, pending=pending)
    description, queues = store.describe(), store.queues()
    path, age = description.get("path"), description.get("upkeep_age")
    return Facts(
        at=now(),
        url=shown_url(store.url),
        reached_in=reached_in,
        description=description,
        pending=pending,
        queues=queues,
        stats=store.stats(RECENTLY),
        workers=store.workers(gone=True),
        unknown_types=unknown_types(store, queues),
        upkeep_at=None if age is None else now() - timedelta(seconds=age),
        disk=examine_disk(Path(path)) if path else None,
        strange_variables=strange_variables(os.environ),
        violations=store.invariants() if invariants else None,
    )


def unknown_types(store: Store, queues: Sequence[Queue]) -> dict[str, list[str]]:
    """The types that wait aside for a worker that knows them, by queue, as far as a look at the newest tells."""
    found: dict[str, list[str]] = {}
    for queue in queues:
        if queue.aside:
            jobs = store.jobs(Selection(states=(State.QUEUED,), queue=queue.name), limit=LOOKED_AT).jobs
            types = sorted({job.type for job in jobs if job.aside == "unknown_type"})
            found |= {queue.name: types} if types else {}
    return found


def strange_variables(environment: Mapping[str, str]) -> dict[str, str | None]:
    """The variables that look like ours and mean nothing, each with the nearest that does."""
    known = known_variables(_root())
    strange = [name for name in sorted(environment) if name.startswith("WORKMILL_") and name not in known]
    return {name: next(iter(difflib.get_close_matches(name, known, 1)), None) for name in strange}


def _root() -> click.Group:
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 - every command of this program is below its group
    return root


def _show(findings: Sequence[Finding]) -> None:
    room = width()
    for finding in findings:
        mark, style = MARKS[finding.severity]
        first, *rest = _lines(finding.what, room, 13)
        say(Text.assemble((mark, style), f" {finding.check:<11}", first))
        for line in rest:
            say(" " * 13 + line)
        for number, line in enumerate(_lines(finding.todo, room, 15)):
            say(Text.assemble(" " * 13, ("  " if number else "→ ", "dim"), (line, "cyan")))
    errors, warnings = (sum(finding.severity is severity for finding in findings) for severity in (Severity.ERROR, Severity.WARNING))
    say()
    if errors or warnings:
        say(f"{plural(errors, 'error')}, {plural(warnings, 'warning')}")
    else:
        say(Text("Nothing is wrong.", "green"))


def _lines(text: str, room: int | None, indent: int) -> list[str]:
    """The text in lines that fit beside an indent; words, and so commands' names, paths and URLs, stay whole."""
    shown = visible(text)
    if room is None or not shown:
        return [shown] if shown else []
    return textwrap.wrap(shown, max(20, room - indent), break_long_words=False, break_on_hyphens=False)


def _shape(facts: Facts, findings: Sequence[Finding], *, healthy: bool) -> dict[str, object]:
    return {
        "store": facts.url,
        "healthy": healthy,
        "description": dict(facts.description),
        "findings": [finding._asdict() for finding in findings],
    }
