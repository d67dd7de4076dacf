"""Lines of a log: the fields in their order, one line an event, whatever is in them, and never the root logger's."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from workmill.domain.job import Claimed
from workmill.engine.context import RunningJob
from workmill.telemetry import INFO, WARNING, Telemetry, log_to

JOB = Claimed("id", 3, "mail", "send", "{}", 2, 5, None, None, f"00-{'a' * 32}-{'b' * 16}-01", 0)
ORDER = ["ts", "level", "event", "job_id", "trace_id", "queue", "type", "attempt", "lease", "worker_id", "thread", "ms"]
Form = Literal["text", "json"]


class Log:
    def __init__(self, form: Form, level: int) -> None:
        self.stream = io.StringIO()
        self.telemetry = Telemetry()
        self.undo = log_to(self.stream, self.telemetry, level, form)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def log() -> Iterator[Callable[..., Log]]:
    logs: list[Log] = []

    def make(form: Form = "text", level: int = INFO) -> Log:
        logs.append(Log(form, level))
        return logs[-1]

    yield make
    for made in logs:
        made.undo()


def test_a_line_of_text_has_the_fields_in_their_order(log: Callable[..., Log]) -> None:
    made = log()

    made.telemetry.scope(worker_id="w1").emit("job.succeeded", INFO, JOB, ms=12.3456)

    (line,) = made.lines
    assert [field.split("=")[0] for field in line.split(" ")] == ORDER
    assert " level=info event=job.succeeded job_id=id " in line
    assert line.endswith(" worker_id=w1 thread=MainThread ms=12.346")


def test_a_line_of_json_is_one_object_with_the_same_fields(log: Callable[..., Log]) -> None:
    made = log("json")

    made.telemetry.scope(worker_id="w1").emit("job.failed", WARNING, JOB, ms=12.3, error="ValueError")

    (line,) = made.lines
    told = json.loads(line)
    assert list(told) == [*ORDER, "error"]
    assert (told["level"], told["attempt"], told["ms"], told["error"]) == ("warning", 2, 12.3, "ValueError")
    assert told["ts"].endswith("Z")


@pytest.mark.parametrize("nasty", ["two\nlines", 'a "quoted" = b', "\x1b[31mred", "", "naïve 🙂", "a\u2028b", "\udc80"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_whatever_a_field_holds_an_event_is_one_line(log: Callable[..., Log], form: Form, nasty: str) -> None:
    made = log(form)

    made.telemetry.emit("job.failed", WARNING, None, message=nasty)

    (line,) = made.stream.getvalue().rstrip("\n").split("\n")
    assert "\x1b" not in line
    assert line.encode()
    assert line.endswith("}" if form == "json" else '"')


def test_below_its_level_nothing_is_written_or_heard(log: Callable[..., Log]) -> None:
    made = log(level=WARNING)

    made.telemetry.emit("job.succeeded", INFO, JOB)

    assert made.lines == []
    assert not made.telemetry.hears(INFO)


def test_what_a_handler_logs_carries_its_job(log: Callable[..., Log]) -> None:
    made, handler = log("json"), Any

    RunningJob(JOB, handler, 0.0, 0.0).logger.warning("half way: %d %%", 50)

    told = json.loads(made.lines[0])
    assert (told["event"], told["message"], told["job_id"], told["trace_id"]) == ("log", "half way: 50 %", "id", "a" * 32)


def test_what_the_package_logs_with_an_exception_is_one_line(log: Callable[..., Log]) -> None:
    made = log("text")

    try:
        raise ValueError("x")
    except ValueError:
        logging.getLogger("workmill.anything").exception("it broke")

    (line,) = made.lines
    assert 'message="it broke"' in line
    assert "ValueError: x" in line


def test_the_root_logger_is_not_touched(log: Callable[..., Log], caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))

    made = log()
    made.telemetry.emit("event")

    assert (root.level, list(root.handlers)) == before
    assert caplog.records == []


def test_undone_it_leaves_the_logger_as_it_was(log: Callable[..., Log]) -> None:
    logger = logging.getLogger("workmill")
    before = (logger.level, logger.propagate, list(logger.handlers))

    log().undo()

    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_a_stream_that_somebody_has_closed_hurts_nobody(log: Callable[..., Log], monkeypatch: pytest.MonkeyPatch) -> None:
    made = log()
    made.stream.close()
    monkeypatch.setattr("sys.stderr", made.stream)  # where logging tells of its own failures
    made.telemetry.subscribe(lambda _event: 1 / 0)

    made.telemetry.emit("job.succeeded", INFO, JOB)
    logging.getLogger("workmill.job").warning("of a handler")
