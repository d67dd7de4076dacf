"""Which jobs a worker gets, in which order. The usual claim is one statement a queue; the careful one chooses row by row."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workmill.domain.job import Claimed
from workmill.domain.names import RESERVED
from workmill.domain.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from workmill.domain.worker import Wants
    from workmill.store.heads import Ready
    from workmill.store.operations.deltas import Deltas
    from workmill.store.session import Session

SUSPECT: Final = ""
"""The key under which suspects are set aside; the others' key is their type."""
PAGE: Final = 64
FEW: Final = 1
"""So few queues are claimed from without a look whether they have anything: most of the time they do."""
Row = tuple[Any, ...]
"""A claimed row: minus its priority, its run_at, then the fields of `Claimed`."""
_claimed = partial(tuple.__new__, Claimed)
"""`Claimed` from the tuple of its fields, in a quarter of the time: it is made for every job."""


class Candidate(NamedTuple):
    """A job that could be claimed. Candidates sort in the order of claims."""

    rank: int
    run_at: int
    id: str
    queue: str
    apart: bool = False


class Rules(NamedTuple):
    """What operators have set for queues, as of this transaction."""

    paused: frozenset[str]
    limits: Mapping[str, int]


def read_rules(session: Session) -> Rules:
    """The paused and the limited queues."""
    rows = session.rows("restricted_queues")
    return Rules(frozenset(name for name, paused, _ in rows if paused), {name: limit for name, _, limit in rows if limit is not None})


class Claimer:
    """Claims for one worker within one transaction. `types` are those its hello named, as JSON, or None."""

    def __init__(self, session: Session, worker_id: str, types: str | None, rules: Rules) -> None:
        self._session = session
        self._worker_id = worker_id
        self._types: list[str] = json.loads(types) if types else []
        self._rules = rules
        self.overdue = session.row("has_overdue") is not None
        """Whether some job has passed its deadline: then claims look at deadlines, and an expire batch is due."""
        self.apart = False
        """Whether there was something set aside that this worker may take, now or when its suspect has ended."""

    def claim(self, wants: Wants, deltas: Deltas, dispatched: Sequence[Ready] | None) -> list[Claimed]:
        """Up to the wanted number of each queue, queue by queue; or of all queues together, in one order.

        `dispatched`: what a dispatcher gave for these wants. Those are claimed that may be; of limited queues, whatever the store has.
        """
        if dispatched is not None:
            rows = self._from_dispatched(wants, dispatched)
        else:
            rows = self._from_each(wants.queues) if wants.queues else self._from_all(wants.anywhere)
        if (moves := self._session.moves) is not None:
            given = {job.id for job in dispatched or ()}
            moves.left += [(row[4], row[2]) for row in rows if row[2] not in given]
        for queue, count in Counter([row[4] for row in rows]).items():
            deltas.move(queue, State.QUEUED, State.RUNNING, count)
        return [_claimed(row[2:]) for row in rows]

    def _from_each(self, queues: Mapping[str, int]) -> list[Row]:
        waiting, apart = self._waiting(queues, few=len(queues) <= FEW)
        rooms = self._rooms({queue: room for queue, room in queues.items() if queue in waiting or queue in apart})
        apart &= rooms.keys()
        extras = self._set_aside(rooms, apart)
        rows: list[Row] = []
        for queue, room in rooms.items():
            if self.overdue or queue in apart:
                rows += self._take(self._choose({queue: room}, extras, room))
            else:
                rows += self._take_first(queue, room)
        return rows

    def _from_all(self, room: int) -> list[Row]:
        ready = self._session.rows("ready_queues")
        rooms = self._rooms({queue: room for queue, _ in ready if not queue.startswith(RESERVED)})
        apart = {queue for queue, aside in ready if aside and queue in rooms}
        if len(rooms) == 1 and not apart and not self.overdue:
            return self._take_first(*next(iter(rooms.items())))
        return self._take(self._choose(rooms, self._set_aside(rooms, apart), room)) if rooms else []

    def _from_dispatched(self, wants: Wants, dispatched: Sequence[Ready]) -> list[Row]:
        limits, paused = self._rules.limits, self._rules.paused
        streams: dict[str, Iterable[Candidate]] = {}
        for queue, jobs in groupby(dispatched, key=attrgetter("queue")):
            if queue not in limits and queue not in paused:
                streams[queue] = [Candidate(-job.priority, job.run_at, job.id, queue) for job in jobs]
        wanted = {queue: self._wanted(wants, queue) for queue in limits}
        waiting, _ = self._waiting(wanted)
        rooms = self._rooms({queue: wanted[queue] for queue in waiting})
        heads = self._list(list(rooms), max(rooms.values()), 0) if rooms else {}
        for queue, room in rooms.items():
            streams[queue] = islice(self._stream(queue, heads.get(queue, [])), room)
        rows = self._take(islice(merge(*streams.values()), wants.total)) if streams else []
        if wants.queues:
            places = {queue: place for place, queue in enumerate(wants.queues)}
            rows.sort(key=lambda row: places[row[4]])
        return rows

    def _waiting(self, queues: Mapping[str, int], *, few: bool = False) -> tuple[set[str], set[str]]:
        """Those of the queues that have something to claim (or may have it, when they are few), and that have something set aside."""
        wanted = [(queue,) for queue, room in queues.items() if room > 0 and queue not in self._rules.paused]
        found = self._session.each("waiting_queues", wanted, few=int(few))
        return {queue for queue, aside in found if not aside}, {queue for queue, aside in found if aside}

    def _wanted(self, wants: Wants, queue: str) -> int:
        if wants.queues:
            return wants.queues.get(queue, 0)
        return 0 if queue.startswith(RESERVED) else wants.anywhere

    def _rooms(self, queues: Mapping[str, int]) -> dict[str, int]:
        """How many may be claimed of each queue: none of a paused one, of a limited one what its limit leaves."""
        rooms = {queue: room for queue, room in queues.items() if queue not in self._rules.paused and room > 0}
        limited = [(queue,) for queue in rooms if queue in self._rules.limits]
        self._session.each("lock_queues", limited)
        for queue, running in self._session.each("count_running", limited):
            rooms[queue] = min(rooms[queue], self._rules.limits[queue] - int(running))
        return {queue: room for queue, room in rooms.items() if room > 0}

    def _take_first(self, queue: str, room: int) -> list[Row]:
        rows = self._session.rows("claim_first", worker=self._worker_id, queue=queue, room=room)
        rows.sort()
        return rows

    def _take(self, chosen: Iterable[Candidate]) -> list[Row]:
        rows = self._session.each("claim_given", [(job.id, job.queue, job.apart) for job in chosen], worker=self._worker_id)
        rows.sort()
        return rows

    def _choose(self, rooms: Mapping[str, int], extras: Mapping[str, list[Candidate]], total: int) -> Iterator[Candidate]:
        """The first candidates of all these queues in one order, of each queue no more than its room."""
        heads = self._list(list(rooms), room=max(1, 2 * total // len(rooms)), past=0)
        streams = (islice(merge(self._stream(queue, heads.get(queue, [])), extras.get(queue, ())), room) for queue, room in rooms.items())
        return islice(merge(*streams), total)

    def _stream(self, queue: str, page: list[Candidate]) -> Iterator[Candidate]:
        """The candidates of one queue, read on only as far as they are asked for."""
        past = 0
        while page:
            yield from page
            past += len(page)
            page = self._list([queue], room=PAGE, past=past).get(queue, [])

    def _list(self, queues: Sequence[str], room: int, past: int) -> dict[str, list[Candidate]]:
        return _by_queue(self._session.each("list_claimable", [(queue,) for queue in queues], room=room, past=past))

    def _set_aside(self, rooms: Mapping[str, int], apart: Iterable[str]) -> dict[str, list[Candidate]]:
        """What this worker may take of the jobs that are set aside: those of its types, and one suspect when it holds none."""
        queues = sorted(apart)
        if not queues:
            return {}
        known = [(queue, job_type) for queue in queues for job_type in self._types]
        found = _by_queue(self._session.each("list_apart", known, room=max(rooms.values())), apart=True)
        holds = bool(self._session.rows("holds_suspect", worker=self._worker_id))
        if suspects := [] if holds else self._session.each("list_apart", [(queue, SUSPECT) for queue in queues], room=1):
            queue, rank, run_at, job_id = min(suspects, key=lambda row: row[1:])
            found.setdefault(queue, []).append(Candidate(rank, run_at, job_id, queue, apart=True))
        self.apart = holds or bool(found)
        return {queue: sorted(candidates) for queue, candidates in found.items()}


def _by_queue(rows: Iterable[Row], *, apart: bool = False) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for queue, rank, run_at, job_id in rows:
        found.setdefault(queue, []).append(Candidate(rank, run_at, job_id, queue, apart))
    for candidates in found.values():
        candidates.sort()
    return found
