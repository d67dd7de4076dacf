"""The life of a loop: it turns, waits, is woken, outlives bad turns, and ends."""

import threading
import time

import pytest

from workmill.loops import FOREVER, Bell, Loop
from workmill.telemetry import Event, Telemetry

PATIENCE = 20.0


class Counter(Loop):
    """Counts its turns."""

    name = "counter"

    def __init__(self, telemetry: Telemetry, wait: float = FOREVER) -> None:
        super().__init__(telemetry)
        self.turns = 0
        self.wait = wait
        self.turned = threading.Semaphore(0)
        self.failing = False

    def run_once(self) -> float:
        self.turns += 1
        self.turned.release()
        if self.failing:
            self.failing = False
            raise ValueError("a bad turn")
        return self.wait

    def await_turns(self, count: int) -> None:
        for _ in range(count):
            assert self.turned.acquire(timeout=PATIENCE)


def test_a_loop_takes_turn_after_turn_until_it_is_stopped() -> None:
    loop = Counter(Telemetry(), wait=0.0)

    loop.start()
    loop.await_turns(5)
    loop.stop()

    assert loop.join(PATIENCE)


def test_a_loop_that_waits_is_woken() -> None:
    loop = Counter(Telemetry())
    loop.start()
    loop.await_turns(1)

    loop.wake()
    loop.await_turns(1)
    loop.stop()

    assert loop.join(PATIENCE)
    assert loop.turns == 2


def test_being_woken_during_a_turn_is_not_forgotten() -> None:
    bell = Bell()

    bell.ring()
    bell.ring()

    assert bell.wait(0)
    assert not bell.wait(0)


def test_a_turn_that_raises_is_told_and_the_next_comes() -> None:
    events: list[Event] = []
    telemetry = Telemetry()
    telemetry.subscribe(events.append)
    loop = Counter(telemetry, wait=0.0)
    loop.failing = True

    loop.start()
    loop.await_turns(1)
    loop.wake()
    loop.await_turns(1)
    loop.stop()

    assert loop.join(PATIENCE)
    assert [(event.name, event.fields) for event in events] == [("loop.failed", {"loop": "counter", "error": "ValueError('a bad turn')"})]


def test_a_loop_that_never_started_is_stopped_and_joined_like_any_other() -> None:
    loop = Counter(Telemetry())

    loop.stop()

    assert loop.join(0)


def test_a_waiting_loop_uses_no_processor() -> None:
    loop = Counter(Telemetry())
    loop.start()
    loop.await_turns(1)
    before = time.process_time()

    time.sleep(0.2)
    loop.stop()

    assert loop.join(PATIENCE)
    assert time.process_time() - before < 0.05


def test_a_loop_whose_thread_cannot_be_started_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Counter(Telemetry())

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        loop.start()
    loop.stop()

    assert loop.join()
