"""Events and who hears them."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workmill import clock

if TYPE_CHECKING:
    from workmill.domain.job import Claimed

DEBUG: Final = logging.DEBUG
INFO: Final = logging.INFO
WARNING: Final = logging.WARNING
ERROR: Final = logging.ERROR
_NOBODY: Final = logging.CRITICAL + 1


class Event(NamedTuple):
    """Something that happened: `at` in microseconds since the epoch, `job` when it happened to one, the rest in `fields`."""

    name: str
    level: int
    at: int
    thread: str
    job: Claimed | None
    fields: Mapping[str, Any]

    def all_fields(self) -> dict[str, Any]:
        """The job's fields and the event's own, as one mapping."""
        return {**job_fields(self.job), **self.fields} if self.job is not None else dict(self.fields)


Subscriber = Callable[[Event], object]


def job_fields(job: Claimed) -> dict[str, Any]:
    """What an event or a line of a log says of a job's run."""
    return {
        "job_id": job.id,
        "trace_id": job.traceparent[3:35] if job.traceparent else None,
        "queue": job.queue,
        "type": job.type,
        "attempt": job.attempt,
        "lease": job.lease,
    }


class _Audience:
    """Who listens, and to how much."""

    def __init__(self) -> None:
        self.members: tuple[tuple[Subscriber, int], ...] = ()
        self.level = _NOBODY

    def seat(self, members: tuple[tuple[Subscriber, int], ...]) -> None:
        self.members = members
        self.level = min((level for _, level in members), default=_NOBODY)


class Telemetry:
    """Where events are emitted and subscribed to. With nobody listening an emission is one comparison."""

    def __init__(self, audience: _Audience | None = None, fields: Mapping[str, Any] | None = None) -> None:
        self._audience = audience or _Audience()
        self._fields = dict(fields or {})

    def subscribe(self, subscriber: Subscriber, level: int = INFO) -> Callable[[], None]:
        """Call `subscriber` with every event of that level or above, in the thread where it happens; returns how to stop.

        It must be quick; what it raises is shown on stderr and hurts nobody.
        """
        audience, member = self._audience, (subscriber, level)
        audience.seat((*audience.members, member))
        return lambda: audience.seat(tuple(other for other in audience.members if other is not member))

    def scope(self, **fields: object) -> Telemetry:
        """The same audience; every event emitted through it carries these fields."""
        return Telemetry(self._audience, {**self._fields, **fields})

    def bind(self, **fields: object) -> None:
        """Add fields to every event emitted through this scope from now on."""
        self._fields = {**self._fields, **fields}

    def hears(self, level: int) -> bool:
        """Whether anybody listens to events of that level: ask before making what only they need."""
        return level >= self._audience.level

    def emit(self, name: str, level: int = INFO, job: Claimed | None = None, /, **fields: object) -> None:
        """Tell everybody who listens to that level."""
        if level < self._audience.level:
            return
        event = Event(name, level, clock.wall(), threading.current_thread().name, job, {**self._fields, **fields})
        for subscriber, wanted in self._audience.members:
            if level >= wanted:
                _tell(subscriber, event)


def _tell(subscriber: Subscriber, event: Event) -> None:
    try:
        subscriber(event)
    except Exception:  # noqa: BLE001 - a subscriber may raise anything, and what it listens to must go on
        with suppress(Exception):  # a handler may have closed stderr
            print(f"workmill: a subscriber failed on {event.name}", file=sys.stderr)  # noqa: T201 - logging may be what failed
            traceback.print_exc()
