"""Events as lines of a log, by the logger `workmill`; the root logger is never touched.

One line an event: `key=value` for people, or JSON. The fields ts, level, event, job_id, trace_id, queue, type, attempt, lease,
worker_id, thread and ms come first, in that order, where they have a value.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, TextIO

from workmill import clock
from workmill.telemetry.events import Event, Telemetry, job_fields

ORDER: Final = ("ts", "level", "event", "job_id", "trace_id", "queue", "type", "attempt", "lease", "worker_id", "thread", "ms")
_PLAIN: Final = re.compile(r"[\w.:/+@%,-]+", re.ASCII)


class LogSubscriber:
    """Hands events to a logger of the standard library, whose formatter may be one of those below or any other."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger("workmill")

    def __call__(self, event: Event) -> None:
        if self.logger.isEnabledFor(event.level):
            self.logger.log(event.level, event.name, extra={"workmill": event})


class KeyValueFormatter(logging.Formatter):
    """Fields as `event=job.succeeded job_id=… ms=12.3`."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{name}={_value(value)}" for name, value in line_of(record).items())


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = json.dumps(line_of(record), ensure_ascii=False, default=str)
        return line.encode("utf-8", "backslashreplace").decode()


class _Lines(logging.StreamHandler[TextIO]):
    """Lines on a stream; one that somebody has closed loses them and hurts nobody."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it so
        with suppress(Exception):
            super().handleError(record)


def log_to(stream: TextIO, telemetry: Telemetry, level: int, form: Literal["text", "json"] = "text") -> Callable[[], None]:
    """Write what the logger `workmill` and everything below it says to `stream`; returns how to undo it."""
    logger, handler = logging.getLogger("workmill"), _Lines(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else KeyValueFormatter())
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    unsubscribe = telemetry.subscribe(LogSubscriber(logger), level)

    def undo() -> None:
        unsubscribe()
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]

    return undo


def log_form() -> tuple[int, Literal["text", "json"]] | None:
    """The level and form that `log_to` writes in at present, for child processes to do likewise; None: it does not."""
    logger = logging.getLogger("workmill")
    for handler in logger.handlers:
        if isinstance(handler.formatter, (KeyValueFormatter, JsonFormatter)):
            return logger.level, "json" if isinstance(handler.formatter, JsonFormatter) else "text"
    return None


def line_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a line, in order: of an event, or of what a handler said through `current_job().logger`."""
    event = getattr(record, "workmill", None)
    fields = _of_event(event) if isinstance(event, Event) else _of_record(record)
    fields = {"level": record.levelname.lower(), **fields}
    return {name: fields.pop(name) for name in ORDER if fields.get(name) is not None} | {
        name: value for name, value in fields.items() if value is not None
    }


def _of_event(event: Event) -> dict[str, Any]:
    return {"ts": _time(event.at), "event": event.name, "thread": event.thread, **event.all_fields()}


def _of_record(record: logging.LogRecord) -> dict[str, Any]:
    job = getattr(record, "job", None)
    return {
        "ts": _time(int(record.created * 1_000_000)),
        "event": "log",
        "thread": record.threadName,
        **(job_fields(job) if job is not None else {}),
        "logger": record.name,
        "message": record.getMessage(),
        "exception": logging.Formatter().formatException(record.exc_info) if record.exc_info and record.exc_info[0] else None,
    }


def _time(at: int) -> str:
    return clock.to_datetime(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: object) -> str:
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=not text.isprintable())
