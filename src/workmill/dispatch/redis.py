"""The heads of the queues in Redis or Valkey: a sorted set of ids a queue, whose size is the depth of the queue.

Higher priority, then the earlier time, is the lower score; what is due in the same millisecond stands in the order of ids. Redis may be
flushed, restarted or away at any time: workers then claim from the store, and `refill` puts back what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis import RedisError

from workmill.dispatch.hints import CHANNEL, Hints, Subscriber
from workmill.dispatch.server import Server, answers_of
from workmill.domain.names import NAME, RESERVED
from workmill.ids import new_id
from workmill.store.heads import Ready

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from redis import Redis
    from redis.client import Pipeline

    from workmill.domain.worker import Wants

T = TypeVar("T")
QUEUE: Final = "workmill:queue:"
NAMES: Final = "workmill:queues"
TURN: Final = "workmill:refill"
LISTEN_SECONDS: Final = 10.0
PAIRS: Final = 5_000
"""Ids in one command; a longer one would hold up everybody else's."""
MILLISECOND: Final = 1_000
BAND: Final = 1 << 42
"""The scores of one priority: milliseconds until the year 2109."""
TOP: Final = 100
SCORES: Final = (2 * TOP + 1) * BAND

TAKE_ANYWHERE: Final = """
local room, without, heads = tonumber(ARGV[1]), {}, {}
for i = 4, #ARGV do without[ARGV[i]] = true end
for _, queue in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if not without[queue] and string.sub(queue, 1, #ARGV[2]) ~= ARGV[2] then
    local head = redis.pcall('ZRANGE', ARGV[3] .. queue, 0, room - 1, 'WITHSCORES')
    if head.err and not string.find(head.err, 'WRONGTYPE') then return head end
    for i = 1, #head, 2 do heads[#heads + 1] = {queue, head[i], head[i + 1]} end
  end
end
table.sort(heads, function(one, other)
  local left, right = tonumber(one[3]), tonumber(other[3])
  if left ~= right then return left < right end
  return one[2] < other[2]
end)
local taken = {}
for i = 1, math.min(room, #heads) do
  taken[i] = heads[i]
  redis.call('ZREM', ARGV[3] .. heads[i][1], heads[i][2])
end
return taken
"""
DROP_EMPTY: Final = """
for i = 2, #ARGV do
  if redis.call('EXISTS', ARGV[1] .. ARGV[i]) == 0 then redis.call('SREM', KEYS[1], ARGV[i]) end
end
"""


def score(job: Ready) -> int:
    """The place of a job in the order of claims, to the millisecond."""
    return (TOP - job.priority) * BAND + min(max(job.run_at // MILLISECOND, 0), BAND - 1)


def placed(found: Iterable[tuple[str, str, float | str]]) -> list[Ready]:
    """The inverse of `score`, of (queue, id, score); without what nobody of ours can have put there."""
    return [
        Ready(queue, job_id, TOP - int(float(at)) // BAND, int(float(at)) % BAND * MILLISECOND)
        for queue, job_id, at in found
        if 0 <= float(at) < SCORES and "\0" not in queue + job_id
    ]


class RedisDispatch:
    """Where the ids of claimable jobs stand in the order of claims. Constructing it opens nothing.

    Nothing raises once it is constructed: while Redis cannot be used, it does nothing and says so.

    Raises:
        ConfigurationError: the URL is none of Redis's, or has an option that is none.

    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._sender = new_id()
        self._server = Server(url)
        self._hints = Hints(self._publish, self._sender)
        self._take_anywhere = self._server.redis.register_script(TAKE_ANYWHERE)
        self._drop_empty = self._server.redis.register_script(DROP_EMPTY)

    def put(self, ready: Sequence[Ready], left: Sequence[tuple[str, str]] = (), *, hint: bool = True) -> bool:
        """Forget jobs that `left`, as (queue, id); take in those that have become claimable (again), with a `hint` to other processes."""

        def write(redis: Redis) -> bool:
            answers: list[Any] = []
            for gone in _parts(left):
                with redis.pipeline(transaction=False) as pipeline:
                    for queue, ids in _by_queue(gone).items():
                        pipeline.zrem(QUEUE + queue, *ids)
                    answers += answers_of(pipeline)
            for part in _parts(ready):
                with redis.pipeline(transaction=False) as pipeline:
                    _add(pipeline, part)
                    if hint:
                        pipeline.publish(CHANNEL, self._sender)
                    answers += answers_of(pipeline)
            return None not in answers

        return self._server.ask(write) or False

    def take(self, wants: Wants, without: AbstractSet[str]) -> list[Ready] | None:
        """Take out the first ids of the wanted queues, but of none in `without`; `run_at` to the millisecond. None: it is away."""
        if not wants.queues:
            return self._server.ask(lambda _: self._from_all(wants.anywhere, without))
        rooms = {queue: room for queue, room in wants.queues.items() if queue not in without}
        if not rooms:
            return []
        heads = self._each(rooms, lambda pipeline, queue: pipeline.zpopmin(QUEUE + queue, rooms[queue]))
        return None if heads is None else [job for queue, head in heads.items() for job in placed((queue, *pair) for pair in head)]

    def hint(self, *, look: bool) -> bool:
        """Tell other processes, soon, that something has changed; `look`: that they shall claim from the store next."""
        return not self._server.away and self._hints.tell(look=look)

    def watch(self, tell: Callable[[bool], None]) -> Subscriber:
        """A thread that calls `tell` with their `look` when another process has told."""
        return Subscriber(lambda: self._server.connect(LISTEN_SECONDS), tell, self._sender)

    def close(self) -> None:
        """Let go of connections and threads; a later use makes new ones."""
        self._hints.close()
        with suppress(RedisError, OSError):
            self._server.redis.close()

    def forget(self) -> None:
        """Begin anew in the child of a fork."""
        self._hints.forget()

    # For the refill. None: Redis is away.

    def win_turn(self, seconds: float) -> bool:
        """Whether nobody else has refilled for so long."""
        return bool(self._server.ask(lambda redis: redis.set(TURN, self._sender, nx=True, px=int(seconds * 1_000))))

    def names(self) -> set[str] | None:
        """The queues of which something is or was here."""
        return self._server.ask(lambda redis: {str(name) for name in redis.smembers(NAMES) if NAME.fullmatch(str(name))})

    def drop(self, queues: Sequence[str]) -> None:
        """Forget the names of those of the queues that have nothing here."""
        self._server.ask(lambda _: [self._drop_empty(keys=[NAMES], args=[QUEUE, *part]) for part in _parts(queues)])

    def depths(self, queues: Iterable[str]) -> dict[str, int] | None:
        """How many ids of the queues are here; without a queue whose key is somebody else's."""
        return self._each(queues, lambda pipeline, queue: pipeline.zcard(QUEUE + queue))

    def depth(self, queue: str) -> int | None:
        """How many ids of one queue are here; None, too, when its key is somebody else's."""
        return (self.depths([queue]) or {}).get(queue)

    def heads(self, queues: Iterable[str], room: int) -> dict[str, list[Ready]] | None:
        """The first ids of the queues; they stay."""
        found = self._each(queues, lambda pipeline, queue: pipeline.zrange(QUEUE + queue, 0, room - 1, withscores=True))
        return None if found is None else {queue: placed((queue, *pair) for pair in head) for queue, head in found.items()}

    def _each(self, queues: Iterable[str], command: Callable[[Pipeline, str], object]) -> dict[str, Any] | None:
        """One command for each queue, all in one exchange; without a queue whose key is somebody else's."""
        names = list(queues)

        def run(redis: Redis) -> dict[str, Any]:
            with redis.pipeline(transaction=False) as pipeline:
                for queue in names:
                    command(pipeline, queue)
                answers = answers_of(pipeline)
            return {queue: answer for queue, answer in zip(names, answers, strict=True) if answer is not None}

        return self._server.ask(run)

    def _from_all(self, room: int, without: AbstractSet[str]) -> list[Ready]:
        found: Any = self._take_anywhere(keys=[NAMES], args=[room, RESERVED, QUEUE, *without])
        return sorted(placed(found), key=attrgetter("queue"))

    def _publish(self, message: str) -> None:
        self._server.ask(lambda redis: redis.publish(CHANNEL, message))


def _add(pipeline: Pipeline, jobs: Sequence[Ready]) -> None:
    by_queue: dict[str, dict[str, int]] = {}
    for job in jobs:
        by_queue.setdefault(job.queue, {})[job.id] = score(job)
    pipeline.sadd(NAMES, *by_queue)
    for queue, scores in by_queue.items():
        pipeline.zadd(QUEUE + queue, scores)


def _by_queue(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for queue, job_id in pairs:
        found.setdefault(queue, []).append(job_id)
    return found


def _parts(everything: Sequence[T]) -> Iterable[Sequence[T]]:
    return (everything[first : first + PAIRS] for first in range(0, len(everything), PAIRS))
