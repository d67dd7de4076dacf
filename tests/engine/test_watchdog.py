"""Deadlines: when a handler is told, when it is given up, and what is forgotten."""

from math import inf
from typing import Any

import pytest

from workmill.domain.job import Claimed
from workmill.engine.context import RunningJob, Stop
from workmill.engine.watchdog import STUCK_AFTER, Watchdog
from workmill.loops import FOREVER
from workmill.telemetry import Telemetry


class Told:
    """A lane that notes which runs it was to interrupt."""

    def __init__(self) -> None:
        self.runs: list[RunningJob] = []

    def interrupt(self, run: RunningJob) -> None:
        self.runs.append(run)


class Case:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.given_up: list[RunningJob] = []
        self.lane = Told()
        self.dog = Watchdog(self.given_up.append, Telemetry())
        monkeypatch.setattr(self.dog, "start", lambda: None)
        monkeypatch.setattr("workmill.engine.watchdog.monotonic", lambda: self.now)

    def run(self, timeout: float, kind: str = "thread") -> RunningJob:
        handler: Any = type("Handler", (), {"kind": kind})()
        run = RunningJob(Claimed("id", 1, "default", "task", "{}", 1, 5, timeout, None, None, 0), handler, self.now, inf)
        lane: Any = self.lane
        run.lane = lane
        run.begin(self.now)
        self.dog.watch(run, self.now + timeout)
        return run


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(monkeypatch)


def test_it_sleeps_until_the_next_deadline(case: Case) -> None:
    case.run(5.0)
    case.run(2.0)

    assert case.dog.run_once() == 2.0
    assert case.lane.runs == []


def test_at_the_deadline_the_executor_is_told_and_the_handler_has_a_moment(case: Case) -> None:
    run = case.run(2.0)

    case.now += 2.0
    wait = case.dog.run_once()

    assert case.lane.runs == [run]
    assert run.stopping is Stop.TIMEOUT
    assert (wait, case.given_up) == (STUCK_AFTER["thread"], [])


@pytest.mark.parametrize("kind", ["thread", "loop", "isolated"])
def test_a_handler_that_has_not_ended_by_then_is_given_up_once(case: Case, kind: str) -> None:
    run = case.run(2.0, kind)

    case.now += 2.0
    case.now += case.dog.run_once()
    waits = [case.dog.run_once(), case.dog.run_once()]

    assert case.given_up == [run]
    assert waits == [pytest.approx(FOREVER)] * 2


def test_a_run_that_ended_or_was_forgotten_is_left_alone(case: Case) -> None:
    ended, forgotten = case.run(1.0), case.run(1.0)
    outcome: Any = ("an", "outcome")
    ended.outcome = outcome
    case.dog.forget(forgotten)

    case.now += 10.0
    case.dog.run_once()

    assert (case.lane.runs, case.given_up) == ([], [])


def test_a_cancelled_run_that_ignores_its_deadline_is_stuck_too(case: Case) -> None:
    run = case.run(1.0)
    run.stop(Stop.CANCELLED)

    case.now += 1.0
    case.now += case.dog.run_once()
    case.dog.run_once()

    assert run.stopping is Stop.CANCELLED
    assert case.given_up == [run]


def test_an_earlier_deadline_wakes_it(case: Case) -> None:
    case.run(60.0)
    case.dog.run_once()

    case.run(0.5)

    assert case.dog.bell.wait(0)
    assert case.dog.run_once() == 0.5
