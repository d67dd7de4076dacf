"""How a process notices what others wrote: the kernel or a glance at the log gives a sign, and a look tells whether there is news."""

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from workmill import clock
from workmill.store.changes import Changes
from workmill.store.sqlite.signs import Glances, Signs, Told, signs_of
from workmill.store.sqlite.watcher import DEAF_AFTER, FIRST_LOOK, LAST_LOOK, LOOK_SECONDS, Watcher

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


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
        with self.log.open("a") as log:
            log.write("x")

    def commit(self) -> None:
        self.version += 1


def open_files() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def file(path: Path) -> File:
    return File(path)


@pytest.fixture(params=[pytest.param(Told, marks=on_linux), Glances])
def signs(request: pytest.FixtureRequest, file: File) -> Iterator[Signs]:
    """Signs of writes to the log, all that has been written so far having been seen."""
    signs = request.param(str(file.log))
    assert signs.wait(10)
    yield signs
    signs.close()


@pytest.fixture
def watcher(file: File) -> Iterator[Watcher]:
    """A watcher that has seen everything."""
    watcher = Watcher(str(file.path), file.look, file.tell)
    watcher.run_once()
    watcher.rest(10)
    watcher.run_once()
    file.looks = file.told = 0
    yield watcher
    watcher.signs.close()


def pauses(watcher: Watcher) -> Iterator[float]:
    """The pauses between the looks of a watcher that hears nothing meanwhile."""
    while True:
        watcher.rest(0)
        yield watcher.run_once()


def rest_until_looking_seldom(watcher: Watcher) -> None:
    next(pause for pause in pauses(watcher) if pause == LOOK_SECONDS)


def test_a_write_is_a_sign(signs: Signs, file: File) -> None:
    file.write()

    assert signs.wait(10)


def test_a_write_while_somebody_waits_ends_the_wait(signs: Signs, file: File) -> None:
    writer = threading.Timer(0.05, file.write)
    writer.start()

    heard = signs.wait(60)

    writer.join()
    assert heard


def test_without_a_write_there_is_no_sign(signs: Signs) -> None:
    assert not signs.wait(0.1)


def test_a_wait_can_be_interrupted_before_it_begins(signs: Signs) -> None:
    signs.interrupt()

    assert not signs.wait(60)


def test_a_log_that_was_removed_and_made_anew_is_followed(signs: Signs, file: File) -> None:
    file.log.unlink()
    signs.wait(10)
    file.log.write_text("new")
    signs.wait(10)
    file.write()

    assert signs.wait(10)


def test_a_log_that_is_not_there_yet_gives_a_sign_when_it_comes(file: File) -> None:
    file.log.unlink()
    signs = signs_of(str(file.log))
    signs.wait(0)
    file.log.write_text("")

    assert signs.wait(10)
    signs.close()


@on_linux
def test_signs_that_nobody_holds_any_more_give_their_files_back(file: File) -> None:
    before = open_files()

    signs = signs_of(str(file.log))
    assert open_files() == before + 2
    del signs
    gc.collect()

    assert open_files() == before


def test_where_the_kernel_refuses_to_tell_there_are_glances(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> Signs:
        raise OSError(24, "too many open files", path)

    monkeypatch.setattr("workmill.store.sqlite.signs.Told", refuse)

    assert isinstance(signs_of(str(file.log)), Glances)


def test_while_nothing_happens_it_looks_less_and_less(watcher: Watcher) -> None:
    seen = [pause for pause, _ in zip(pauses(watcher), range(20), strict=False)]

    assert seen == sorted(seen)
    assert len([pause for pause in seen if pause <= LAST_LOOK]) <= 6
    assert seen[-1] == LOOK_SECONDS


def test_a_sign_is_followed_by_a_look_that_tells_a_commit(watcher: Watcher, file: File) -> None:
    rest_until_looking_seldom(watcher)
    file.write()
    file.commit()
    watcher.rest(10)

    assert watcher.run_once() == FIRST_LOOK
    assert file.told == 1


def test_after_a_sign_it_looks_again_until_the_commit_can_be_seen(watcher: Watcher, file: File) -> None:
    rest_until_looking_seldom(watcher)
    file.write()
    watcher.rest(10)
    assert (watcher.run_once(), file.told) == (FIRST_LOOK, 0)

    file.commit()
    watcher.rest(0)
    watcher.run_once()

    assert file.told == 1


def test_a_commit_without_any_sign_is_told_at_the_next_look(watcher: Watcher, file: File) -> None:
    rest_until_looking_seldom(watcher)
    file.commit()
    watcher.rest(0)
    watcher.run_once()

    assert file.told == 1


def test_two_looks_are_never_closer_than_the_first_pause_however_hot_the_writer(watcher: Watcher, file: File) -> None:
    file.write()
    before = clock.monotonic()
    watcher.rest(10)

    assert clock.monotonic() - before >= FIRST_LOOK


@on_linux
def test_where_the_kernel_keeps_silent_about_commits_it_glances_from_then_on(watcher: Watcher, file: File) -> None:
    rest_until_looking_seldom(watcher)
    for _ in range(DEAF_AFTER):
        assert isinstance(watcher.signs, Told)
        file.commit()
        watcher.rest(0)
        watcher.run_once()

    assert isinstance(watcher.signs, Glances)


@on_linux
def test_a_sign_in_between_restores_the_trust(watcher: Watcher, file: File) -> None:
    for _ in range(2 * DEAF_AFTER):
        rest_until_looking_seldom(watcher)
        file.commit()
        watcher.rest(0)
        watcher.run_once()
        file.write()
        watcher.rest(10)
        watcher.run_once()

    assert isinstance(watcher.signs, Told)


@on_linux
def test_listening_again_and_again_costs_no_files(file: File) -> None:
    listening = Changes(lambda tell: Watcher(str(file.path), file.look, tell))
    before = open_files()

    for _ in range(20):
        listening.subscribe(lambda: None)()

    listening.close()
    gc.collect()
    assert open_files() == before


def test_the_thread_lives_while_somebody_listens(file: File) -> None:
    listening = Changes(lambda tell: Watcher(str(file.path), file.look, tell))
    stops = [listening.subscribe(lambda: None), listening.subscribe(lambda: None)]
    (watcher,) = listening._watchers

    stops[0]()
    assert not watcher.stopping

    stops[1]()
    assert watcher.join(10)
    listening.close()


def test_who_listens_may_stop_in_the_thread_that_calls(file: File) -> None:
    listening = Changes()
    calls: list[int] = []

    def once() -> None:
        calls.append(1)
        stop()

    stop = listening.subscribe(once)
    listening.tell()
    listening.tell()

    assert calls == [1]
