"""Events reach those who listen to their level, as values, and cost nothing when nobody does."""

from typing import Any

import pytest

from workmill.domain.job import Claimed
from workmill.telemetry import DEBUG, INFO, WARNING, Event, Telemetry

JOB = Claimed("id", 3, "mail", "send", "{}", 2, 5, None, None, f"00-{'a' * 32}-{'b' * 16}-01", 0)


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def test_a_subscriber_hears_events_of_its_level_and_above(telemetry: Telemetry) -> None:
    heard: list[Event] = []
    telemetry.subscribe(heard.append, INFO)

    telemetry.emit("quiet", DEBUG)
    telemetry.emit("usual")
    telemetry.emit("loud", WARNING, JOB, ms=1.5)

    assert [event.name for event in heard] == ["usual", "loud"]
    assert heard[1].all_fields() == {
        "job_id": "id",
        "trace_id": "a" * 32,
        "queue": "mail",
        "type": "send",
        "attempt": 2,
        "lease": 3,
        "ms": 1.5,
    }


def test_nobody_listening_means_nobody_is_told_and_nothing_is_made(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any) -> None:
        raise AssertionError("an event was made for nobody")

    monkeypatch.setattr("workmill.telemetry.events.Event", made)

    telemetry.emit("anything", WARNING, JOB)

    assert not telemetry.hears(WARNING)


def test_a_level_is_heard_while_somebody_listens_to_it(telemetry: Telemetry) -> None:
    stop_debug = telemetry.subscribe(lambda _event: None, DEBUG)
    telemetry.subscribe(lambda _event: None, WARNING)
    before = telemetry.hears(DEBUG)

    stop_debug()

    assert (before, telemetry.hears(DEBUG), telemetry.hears(WARNING)) == (True, False, True)


def test_a_scope_adds_its_fields_and_shares_the_audience(telemetry: Telemetry) -> None:
    heard: list[Event] = []
    scope = telemetry.scope(worker_id="w1")
    telemetry.subscribe(heard.append)

    scope.emit("one")
    scope.bind(worker_id="w2")
    scope.emit("two", INFO, None, name="x")
    telemetry.emit("three")

    assert [event.fields for event in heard] == [{"worker_id": "w1"}, {"worker_id": "w2", "name": "x"}, {}]


def test_a_subscriber_that_fails_hurts_neither_the_others_nor_the_teller(telemetry: Telemetry, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[Event] = []
    telemetry.subscribe(lambda event: event.fields["missing"])
    telemetry.subscribe(heard.append)

    telemetry.emit("event")

    assert [event.name for event in heard] == ["event"]
    assert "a subscriber failed on event" in capsys.readouterr().err
