"""What the options take: durations, times, states, queues, payloads. Each refusal says the rule."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from workmill import clock
from workmill.config import parse_duration
from workmill.domain.errors import ConfigurationError, InvalidInput
from workmill.domain.limits import MAX_SECONDS, microseconds
from workmill.domain.names import check_name
from workmill.domain.states import State

MAX_POOL: Final = 1_000


class Duration(click.ParamType[float]):
    """Seconds within bounds."""

    name = "duration"

    def __init__(self, low: float = 0.0, high: float = MAX_SECONDS) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """`5m` as 300.0."""
        try:
            seconds = value if isinstance(value, (int, float)) else parse_duration(self.name, value)
        except ConfigurationError as error:
            self.fail(str(error).removeprefix(f"{self.name}: "), param, ctx)
        if not self.low <= seconds <= self.high:
            self.fail(f"must be from {self.low:g} to {self.high:g} seconds (got {value!r:.120})", param, ctx)
        return float(seconds)


class Moment(click.ParamType[datetime]):
    """A time with an offset."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """An ISO 8601 time as an aware datetime."""
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{self.rule} (got {value!r:.120})", param, ctx)
        if moment.utcoffset() is None:
            self.fail(f"must have an offset: a naive time is nobody's time (got {value!r:.120})", param, ctx)
        return moment

    rule = "must be a time with an offset such as 2026-03-01T09:00:00+01:00"


class Past(Moment):
    """A time with an offset, or a duration before now."""

    name = "time|duration"
    rule = "must be a time with an offset such as 2026-03-01T09:00:00+01:00, or a duration before now such as 2h"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """`2h` as the time two hours ago."""
        if isinstance(value, datetime):
            return value
        try:
            seconds = parse_duration(self.name, value)
        except ConfigurationError:
            return super().convert(value, param, ctx)
        return clock.to_datetime(clock.wall() - microseconds(seconds))


class States(click.ParamType[tuple[State, ...]]):
    """One state or several with commas between them."""

    name = "state[,state…]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[State, ...]:
        """`dead,retrying` as states."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(State(name.strip()) for name in value.split(","))
        except ValueError:
            self.fail(f"must be of {', '.join(State)} (got {value!r:.120})", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The states that begin so, behind those that are there already."""
        before, comma, begun = incomplete.rpartition(",")
        found = click.Choice([state.value for state in State]).shell_complete(ctx, param, begun)
        return [CompletionItem(f"{before}{comma}{item.value}") for item in found]


class Name(click.ParamType[str]):
    """A name by the rule for all names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The same name."""
        try:
            return check_name(self.name, value)
        except InvalidInput as error:
            self.fail(error.rule, param, ctx)


Pools = tuple[tuple[str, int | None], ...]


class QueuePools(click.ParamType[Pools]):
    """Queues and how many jobs of each run at once."""

    name = "name[=n]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Pools:
        """`mail=10,video` as (("mail", 10), ("video", None))."""
        if isinstance(value, tuple):
            return value
        return tuple(self._pool(item.strip(), param, ctx) for item in value.split(","))

    def _pool(self, item: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int | None]:
        name, equals, number = item.partition("=")
        try:
            check_name("queue", name)
        except InvalidInput as error:
            self.fail(error.rule, param, ctx)
        if not equals:
            return name, None
        if not number.isascii() or not number.isdecimal() or not 1 <= int(number[:6]) <= MAX_POOL:
            self.fail(f"must be NAME or NAME=N with N from 1 to {MAX_POOL} (got {item!r:.120})", param, ctx)
        return name, int(number)


class Payload(click.ParamType[str]):
    """JSON text, `@file`, or `-` for the standard input."""

    name = "json|@file|-"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The exact text; whether it is JSON is for the submission to say."""
        try:
            if value == "-":
                return sys.stdin.buffer.read().decode()
            return Path(value[1:]).read_bytes().decode() if value.startswith("@") else str(value)
        except UnicodeDecodeError as error:
            self.fail(f"must be UTF-8 ({error.reason} at byte {error.start})", param, ctx)
        except OSError as error:
            self.fail(f"{value[1:]}: {error.strerror}", param, ctx)


class JsonList(click.ParamType[list[float]]):
    """Delays with commas between them."""

    name = "duration[,duration…]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        """`1s,5s,1m` as seconds."""
        return value if isinstance(value, list) else [Duration().convert(item, param, ctx) for item in value.split(",")]


STATES: Final = States()
MOMENT: Final = Moment()
PAST: Final = Past()
DURATION: Final = Duration()
PAYLOAD: Final = Payload()
DELAYS: Final = JsonList()
POOLS: Final = QueuePools()
QUEUE: Final = Name("queue")
"""The parameter types in common use."""
