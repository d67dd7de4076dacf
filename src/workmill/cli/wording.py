"""Words for people and machines: escaped text, spans of time, moments, counts. Nothing a job holds is ever interpreted."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from typing import Final

import click

from workmill import clock

_UNSAFE: Final = re.compile("[\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What JSON allows in a string as it is, and a terminal or an editor may act on."""
COMMANDS_OF_ACTIONS: Final = {"revive": "retry", "undrain": "resume"}
"""The actions that the audit stores under another name than that of their command."""
_NOT_ASCII: Final = re.compile("[^\\x00-\\x7e]")


def visible(text: str) -> str:
    """`text` on one line, with everything that a terminal might act on (controls, newlines, bidi marks) as an escape."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def visible_lines(text: str) -> list[str]:
    """`text` line by line, each as `visible` shows it; tabs are four blanks."""
    return [visible(line) for line in text.expandtabs(4).split("\n")]


def visible_json(text: str) -> str:
    """JSON text that means the same and holds nothing that a terminal might act on: such stands in strings only, and can be escaped."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(mark: re.Match[str]) -> str:
    return json.dumps(mark.group())[1:-1]


def span(seconds: float) -> str:
    """A duration in the form the options take: 0.4ms, 12ms, 1.9s, 42s, 2m 5s, 3h 4m, 2d 3h."""
    if seconds < 0:
        return "-" + span(-seconds)
    milliseconds = seconds * 1_000
    if milliseconds < 999.5:
        return f"{milliseconds:.1f}ms" if 0 < milliseconds < 9.95 else f"{milliseconds:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    return _long_span(round(seconds))


def _long_span(seconds: int) -> str:
    for unit, size, part, smaller in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size}{unit} {rest}{part}" if rest else f"{seconds // size}{unit}"
    return f"{seconds}s"


def now() -> datetime:
    """This machine's time, for showing how long ago something was."""
    return clock.to_datetime(clock.wall())


def ago(moment: datetime, at: datetime) -> str:
    """How far `moment` is from `at`: "12s ago", "in 5m", "now"."""
    seconds = (at - moment).total_seconds()
    if abs(seconds) < 0.0005:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"


def moment(value: datetime) -> str:
    """A time as people read it, in this machine's zone: 2026-03-01 10:31:02.114."""
    return value.astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def iso(value: datetime) -> str:
    """A time for machines: ISO 8601 in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def command_of(action: str) -> str:
    """The command that an action of the audit is called by."""
    return COMMANDS_OF_ACTIONS.get(action, action)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 job`, `1,234 jobs`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def say_stored(text: str) -> None:
    """Print JSON text as it is stored, but for what a terminal might act on and what the output cannot encode."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    click.echo(visible_json(text) if unicode else _NOT_ASCII.sub(_escaped, text))


def waiting(count: int) -> str:
    """`1 job waits`, `3 jobs wait`."""
    return f"{plural(count, 'job')} {'waits' if count == 1 else 'wait'}"


def rate(per_second: float) -> str:
    """`0.02`, `3.5`, `1,240`."""
    return f"{per_second:,.0f}" if per_second >= 99.5 else f"{per_second:.1f}" if per_second >= 0.95 else f"{per_second:.2f}"
