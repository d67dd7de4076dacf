"""How a process notices what others wrote: it looks often while something happens, and hardly while nothing does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from workmill.store.sqlite import changes
from workmill.store.sqlite.changes import ACTIVE_FOR, ACTIVE_SECONDS, IDLE_SECONDS, LOOK_SECONDS, Changes, Watcher


class File:
    """A database file as a watcher sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = 1
        self.looks = 0
        self.told = 0
        self.log = Path(f"{path}-wal")
        self.log.write_text("")

    def look(self) -> int:
        self.looks += 1
        return self.version

    def tell(self) -> None:
        self.told += 1

    def write(self) -> None:
        """Somebody writes to the log; nothing is visible yet."""
        self.log.write_text(self.log.read_text() + "x")

    def commit(self) -> None:
        self.version += 1


@pytest.fixture
def file(path: Path) -> File:
    return File(path)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`moment(t)`: it is t seconds now."""
    return lambda now: monkeypatch.setattr(changes.clock, "monotonic", lambda: now)


@pytest.fixture
def quiet(file: File, moment: Callable[[float], None]) -> Watcher:
    """A watcher that has seen everything, at second 10; it has looked last at second 10."""
    watcher = Watcher(str(file.path), file.look, file.tell)
    for now in (0.0, 10.0):
        moment(now)
        watcher.run_once()
    file.looks = file.told = 0
    return watcher


def test_while_nothing_happens_it_only_glances(quiet: Watcher, file: File, moment: Callable[[float], None]) -> None:
    moment(10.5)

    assert quiet.run_once() == IDLE_SECONDS
    assert (file.looks, file.told) == (0, 0)


def test_a_commit_is_told_at_the_next_turn(quiet: Watcher, file: File, moment: Callable[[float], None]) -> None:
    moment(10.5)
    file.write()
    file.commit()

    assert quiet.run_once() == ACTIVE_SECONDS
    assert file.told == 1


def test_after_a_sign_it_looks_often_until_the_commit_can_be_seen(quiet: Watcher, file: File, moment: Callable[[float], None]) -> None:
    moment(10.5)
    file.write()
    assert (quiet.run_once(), file.told) == (ACTIVE_SECONDS, 0)

    moment(10.5 + ACTIVE_FOR / 2)
    file.commit()
    assert (quiet.run_once(), file.told) == (ACTIVE_SECONDS, 1)

    moment(10.5 + 2 * ACTIVE_FOR)
    assert (quiet.run_once(), file.told) == (IDLE_SECONDS, 1)


def test_a_commit_that_takes_long_after_its_sign_is_told_at_the_next_turn(
    quiet: Watcher, file: File, moment: Callable[[float], None]
) -> None:
    moment(10.2)
    file.write()
    quiet.run_once()

    moment(10.2 + 2 * ACTIVE_FOR)
    file.commit()
    quiet.run_once()

    assert file.told == 1


def test_a_commit_without_any_sign_is_told_within_a_second(quiet: Watcher, file: File, moment: Callable[[float], None]) -> None:
    file.commit()

    moment(10 + LOOK_SECONDS)
    quiet.run_once()

    assert file.told == 1


def test_a_log_that_comes_or_goes_is_a_sign(quiet: Watcher, file: File, moment: Callable[[float], None]) -> None:
    file.log.unlink()
    moment(10.5)

    quiet.run_once()

    assert file.looks == 1


def test_the_thread_lives_while_somebody_listens(file: File) -> None:
    listening = Changes(str(file.path), file.look)
    stops = [listening.subscribe(lambda: None), listening.subscribe(lambda: None)]
    (watcher,) = listening._watchers

    stops[0]()
    assert not watcher.stopping

    stops[1]()
    assert watcher.join(10)
    listening.close()


def test_who_listens_may_stop_in_the_thread_that_calls(file: File) -> None:
    listening = Changes(None, file.look)
    calls: list[int] = []

    def once() -> None:
        calls.append(1)
        stop()

    stop = listening.subscribe(once)
    listening.tell()
    listening.tell()

    assert calls == [1]
