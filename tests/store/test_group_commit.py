"""Many callers, one transaction: what gathers while one runs is the next; each caller has an answer, or an error, of its own."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from pathlib import Path

import pytest

from workmill.domain.errors import StoreFailure, StoreUnavailable
from workmill.store.group_commit import HEAVY, GroupCommit
from workmill.store.session import BadData
from workmill.store.sqlite.store import SQLiteStore
from workmill.testing.factories import submit


class Disk:
    """A flush that notes its groups, and can be held up."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.busy = threading.Event()
        self.free = threading.Event()
        self.free.set()
        self.trouble: dict[int, BaseException] = {}

    def flush(self, items: Sequence[int]) -> list[int]:
        self.groups.append(list(items))
        self.busy.set()
        assert self.free.wait(30)
        for item in items:
            if item in self.trouble:
                raise self.trouble[item]
        return [10 * item for item in items]

    def hold_up(self, group: GroupCommit[int, int]) -> Future[int]:
        """Occupy it with item 0, so that what comes now gathers."""
        self.free.clear()
        first = group.put(0)
        assert self.busy.wait(30)
        return first


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def group(disk: Disk) -> Iterator[GroupCommit[int, int]]:
    with closing(GroupCommit(disk.flush, lambda _: 1)) as group:
        yield group
        disk.free.set()


def test_a_lone_item_is_written_at_once(disk: Disk, group: GroupCommit[int, int]) -> None:
    assert group.put(7).result(30) == 70
    assert disk.groups == [[7]]


def test_what_gathers_while_one_group_is_written_is_the_next(disk: Disk, group: GroupCommit[int, int]) -> None:
    first = disk.hold_up(group)
    others = [group.put(number) for number in range(1, 6)]
    assert not first.done()

    disk.free.set()

    assert [future.result(30) for future in (first, *others)] == [0, 10, 20, 30, 40, 50]
    assert disk.groups == [[0], [1, 2, 3, 4, 5]]


def test_only_the_item_with_bad_data_gets_its_error(disk: Disk, group: GroupCommit[int, int]) -> None:
    disk.trouble = {3: BadData("three"), 4: BadData("four")}
    disk.hold_up(group)
    futures = [group.put(number) for number in range(1, 8)]

    disk.free.set()

    wait(futures, 30)
    assert [str(future.exception()) if future.exception() else future.result() for future in futures] == [
        10, 20, "three", "four", 50, 60, 70,
    ]  # fmt: skip


@pytest.mark.parametrize("error", [StoreFailure("full"), StoreUnavailable("locked"), MemoryError()], ids=repr)
def test_any_other_error_is_everybodys_and_nothing_is_tried_again(disk: Disk, group: GroupCommit[int, int], error: BaseException) -> None:
    disk.trouble = {2: error}
    disk.hold_up(group)
    futures = [group.put(number) for number in range(1, 4)]

    disk.free.set()

    assert [future.exception(30) for future in futures] == [error] * 3
    assert disk.groups == [[0], [1, 2, 3]]
    assert group.put(5).result(30) == 50


def test_a_group_stops_growing_at_its_weight(disk: Disk) -> None:
    with closing(GroupCommit(disk.flush, lambda item: item)) as group:
        disk.hold_up(group)
        futures = [group.put(item) for item in (HEAVY - 1, 1, 1, HEAVY, 1)]
        disk.free.set()
        wait(futures, 30)

    assert disk.groups == [[0], [HEAVY - 1, 1], [1, HEAVY], [1]]


def test_switched_off_each_item_is_alone(disk: Disk) -> None:
    with closing(GroupCommit(disk.flush, lambda _: 1, together=False)) as group:
        disk.hold_up(group)
        futures = [group.put(number) for number in range(1, 4)]
        disk.free.set()
        wait(futures, 30)

    assert disk.groups == [[0], [1], [2], [3]]


def test_a_close_writes_what_has_gathered_and_ends_the_thread(disk: Disk, group: GroupCommit[int, int]) -> None:
    threads = threading.active_count()
    disk.hold_up(group)
    futures = [group.put(number) for number in range(1, 4)]
    closing_ = threading.Thread(target=group.close)
    closing_.start()
    disk.free.set()
    closing_.join()

    assert [future.result(0) for future in futures] == [10, 20, 30]
    assert threading.active_count() == threads
    assert group.put(9).result(30) == 90


def test_items_of_many_threads_all_get_their_own_answers(disk: Disk, group: GroupCommit[int, int]) -> None:
    answers: dict[int, int] = {}

    def put(first: int) -> None:
        for item in range(first, first + 50):
            answers[item] = group.put(item).result(30)

    threads = [threading.Thread(target=put, args=(1_000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {item: 10 * item for item in answers}
    assert len(answers) == 400


@pytest.mark.parametrize("together", [True, False])
def test_a_store_takes_submissions_either_way(path: Path, *, together: bool) -> None:
    with closing(SQLiteStore(f"sqlite:///{path}", group_commit=together, group_delay=0.001)) as store:
        assert submit(store).created


def test_a_thread_that_could_not_be_started_is_started_by_the_next_item(
    group: GroupCommit[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="thread"):
            group.put(1)

    assert group.put(2).result(30) == 20
