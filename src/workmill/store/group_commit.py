"""Many callers, one transaction: what has gathered while the last transaction ran is written by the next, at once."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakSet

from workmill import clock
from workmill.store.session import BadData

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Pending = tuple[Item, "Future[Answer]"]
Queue = SimpleQueue["Pending[Item, Answer] | None"]

HEAVY: Final = 1_000
"""A group stops growing at this weight, so that no transaction holds the others up for long."""


class GroupCommit(Generic[Item, Answer]):
    """Callers hand in an item and get a future; one thread flushes all that has gathered, and goes on with what gathered meanwhile.

    There is no delay: waiting for bigger groups makes everything slower (`delay` and `together=False` are there to measure that).
    An error that some item's own data caused (`BadData`) is found by halving the group, and only that item's caller gets it;
    any other error is everybody's.
    """

    def __init__(
        self,
        flush: Callable[[Sequence[Item]], Sequence[Answer]],
        weigh: Callable[[Item], int],
        *,
        together: bool = True,
        delay: float = 0.0,
    ) -> None:
        self._flush = flush
        self._weigh = weigh
        self._heavy = HEAVY if together else 0
        self._delay = delay
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._queue: Queue[Item, Answer] = SimpleQueue()
        _GROUPS.add(self)

    def put(self, item: Item) -> Future[Answer]:
        """Have the item written with others; the future has its answer once that is durable."""
        answer: Future[Answer] = Future()
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, args=(self._queue,), name="workmill-group-commit", daemon=True)
                thread.start()  # it may fail; whoever comes next must not wait for it
                self._thread = thread
            self._queue.put((item, answer))
        return answer

    def close(self) -> None:
        """Write what has gathered and end the thread; a later item starts it again."""
        with self._starting:
            thread, self._thread = self._thread, None
            queue, self._queue = self._queue, SimpleQueue()
        if thread is not None:
            queue.put(None)
            thread.join()

    def forget(self) -> None:
        """Begin anew, as a forked child must: the thread, and what had gathered, are its parent's."""
        self._starting = threading.Lock()
        self._thread, self._queue = None, SimpleQueue()

    def _run(self, queue: Queue[Item, Answer]) -> None:
        """Until the end mark: wait for one, take all that is there, write."""
        while (first := queue.get()) is not None:
            clock.sleep(self._delay)  # even without a delay it lets those come who are about to: they were woken with the last group
            group, weight = [first], self._weigh(first[0])
            while weight < self._heavy and not queue.empty():
                following = queue.get()
                if following is None:
                    queue.put(None)
                    break
                group.append(following)
                weight += self._weigh(following[0])
            self._write(group)

    def _write(self, group: list[Pending[Item, Answer]]) -> None:
        try:
            answers = self._flush([item for item, _ in group])
        except BadData as error:
            if len(group) == 1:
                group[0][1].set_exception(error)
            else:
                middle = len(group) // 2
                self._write(group[:middle])
                self._write(group[middle:])
        except BaseException as error:  # noqa: BLE001 - whatever it was, each caller must hear of it
            for _, answer in group:
                answer.set_exception(error)
        else:
            for (_, answer), value in zip(group, answers, strict=True):
                answer.set_result(value)


_GROUPS: Final[WeakSet[GroupCommit[Any, Any]]] = WeakSet()


def _forget_all() -> None:
    for group in list(_GROUPS):
        group.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
