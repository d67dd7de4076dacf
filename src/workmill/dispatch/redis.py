"""The heads of the queues in Redis or Valkey: a sorted set of ids a queue, whose size is the depth of the queue.

Higher priority, then the earlier time, is the lower score; what is due in the same millisecond stands in the order of ids. Redis may be
flushed, restarted or away at any time: workers then claim from the store, and `refill` puts back what is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from workmill.clock import monotonic
from workmill.config import DISPATCH, shown_url
from workmill.domain.errors import ConfigurationError
from workmill.domain.names import RESERVED
from workmill.ids import new_id
from workmill.loops import Loop, Teller
from workmill.store.changes import CLOSE_SECONDS
from workmill.store.heads import Ready
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from redis.client import Pipeline, PubSub

    from workmill.domain.worker import Wants

T = TypeVar("T")
QUEUE: Final = "workmill:queue:"
NAMES: Final = "workmill:queues"
CHANNEL: Final = "workmill:changes"
LOOK: Final = " look"
TURN: Final = "workmill:refill"
ANSWER_SECONDS: Final = 0.5
"""How long Redis has for an answer."""
AWAY_SECONDS: Final = 1.0
"""How long nobody asks a Redis that has failed."""
LISTEN_SECONDS: Final = 10.0
PAIRS: Final = 5_000
"""Ids in one command; a longer one would hold up everybody else's."""
MILLISECOND: Final = 1_000
BAND: Final = 1 << 42
"""The scores of one priority: milliseconds until the year 2109."""
TOP: Final = 100
SCORES: Final = (2 * TOP + 1) * BAND
log = logging.getLogger(__name__)

TAKE_ANYWHERE: Final = """
local room, without, heads = tonumber(ARGV[1]), {}, {}
for i = 4, #ARGV do without[ARGV[i]] = true end
for _, queue in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if not without[queue] and string.sub(queue, 1, #ARGV[2]) ~= ARGV[2] then
    local head = redis.call('ZRANGE', ARGV[3] .. queue, 0, room - 1, 'WITHSCORES')
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
    """Where the ids of claimable jobs stand in the order of claims. No method raises: while Redis is away, it does nothing and says so.

    Constructing it opens nothing.

    Raises:
        ConfigurationError: the URL is none of Redis's.

    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._sender = new_id()
        try:
            self._redis = self._connect(ANSWER_SECONDS)
        except ValueError as error:
            raise ConfigurationError(f"{DISPATCH}: is no URL of Redis's: {error}") from None
        self._take_anywhere = self._redis.register_script(TAKE_ANYWHERE)
        self._away_until = 0.0
        self._teller: Messenger | None = None

    def put(self, ready: Sequence[Ready], left: Sequence[tuple[str, str]] = ()) -> bool:
        """Forget jobs that `left`, as (queue, id); take in those that have become claimable (again), and tell other processes."""

        def write() -> bool:
            for gone in _parts(left):
                with self._redis.pipeline(transaction=False) as pipeline:
                    for queue, ids in _by_queue(gone).items():
                        pipeline.zrem(QUEUE + queue, *ids)
                    pipeline.execute()
            for part in _parts(ready):
                with self._redis.pipeline(transaction=False) as pipeline:
                    _add(pipeline, part)
                    pipeline.publish(CHANNEL, self._sender)
                    pipeline.execute()
            return True

        return self._ask(write) or False

    def take(self, wants: Wants, without: AbstractSet[str]) -> list[Ready] | None:
        """Take out the first ids of the wanted queues, but of none in `without`; `run_at` to the millisecond. None: it is away."""
        if not wants.queues:
            return self._ask(lambda: self._from_all(wants.anywhere, without))
        rooms = {queue: room for queue, room in wants.queues.items() if queue not in without}
        return self._ask(lambda: self._from_each(rooms)) if rooms else []

    def hint(self, *, look: bool) -> bool:
        """Tell other processes, soon, that something has changed; `look`: that they shall claim from the store next."""
        if self._is_away():
            return False
        if self._teller is None:
            self._teller = Messenger(self._publish)
            self._teller.start()
        self._teller.look |= look
        self._teller.tell()
        return True

    def watch(self, tell: Callable[[bool], None]) -> Subscriber:
        """A thread that calls `tell` with their `look` when another process has told."""
        return Subscriber(lambda: self._connect(LISTEN_SECONDS), tell, self._sender)

    def close(self) -> None:
        """Let go of connections and threads; a later use makes new ones."""
        teller, self._teller = self._teller, None
        if teller is not None:
            teller.stop()
            if teller.join(CLOSE_SECONDS):
                teller.run_once()  # what it had not yet told
        with suppress(RedisError, OSError):
            self._redis.close()

    def forget(self) -> None:
        """Begin anew in the child of a fork."""
        self._teller = None

    # For the refill.

    def win_turn(self, seconds: float) -> bool:
        """Whether nobody else has refilled for so long."""
        return bool(self._ask(lambda: self._redis.set(TURN, self._sender, nx=True, px=int(seconds * 1_000))))

    def names(self) -> set[str] | None:
        """The queues of which something is or was here; None: it is away."""
        return self._ask(lambda: {str(name) for name in self._redis.smembers(NAMES)})

    def head(self, queue: str, room: int) -> list[Ready]:
        """The first ids of a queue; they stay."""
        found: Any = self._ask(lambda: self._redis.zrange(QUEUE + queue, 0, room - 1, withscores=True))
        return placed((queue, job_id, at) for job_id, at in found or ())

    def depth(self, queue: str) -> int | None:
        """How many ids of a queue are here; None: it is away."""
        return self._ask(lambda: int(self._redis.zcard(QUEUE + queue)))

    def _from_each(self, rooms: dict[str, int]) -> list[Ready]:
        with self._redis.pipeline(transaction=False) as pipeline:
            for queue, room in rooms.items():
                pipeline.zpopmin(QUEUE + queue, room)
            heads = pipeline.execute()
        return placed((queue, job_id, at) for queue, head in zip(rooms, heads, strict=True) for job_id, at in head)

    def _from_all(self, room: int, without: AbstractSet[str]) -> list[Ready]:
        found: Any = self._take_anywhere(keys=[NAMES], args=[room, RESERVED, QUEUE, *without])
        return sorted(placed(found), key=attrgetter("queue"))

    def _publish(self, *, look: bool) -> None:
        self._ask(lambda: self._redis.publish(CHANNEL, self._sender + LOOK * look))

    def _connect(self, answer_seconds: float) -> Redis:
        return Redis.from_url(
            self.url,
            decode_responses=True,
            encoding_errors="replace",
            socket_timeout=answer_seconds,
            socket_connect_timeout=ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )

    def _is_away(self) -> bool:
        return monotonic() < self._away_until

    def _ask(self, question: Callable[[], T]) -> T | None:
        """The answer; None while Redis is away, which costs one wait a second at most."""
        if self._is_away():
            return None
        try:
            answer = question()
        except (RedisError, OSError) as error:
            if not self._away_until:
                log.warning("%s does not answer, workers claim from the store: %s", shown_url(self.url), error)
            self._away_until = monotonic() + AWAY_SECONDS
            return None
        if self._away_until:
            log.warning("%s answers again", shown_url(self.url))
            self._away_until = 0.0
        return answer


class Messenger(Teller):
    """Tells other processes what needs no id."""

    name = "redis-hints"

    def __init__(self, publish: Callable[..., None]) -> None:
        super().__init__()
        self.look = False
        self._publish = publish

    def send(self) -> None:
        look, self.look = self.look, False
        self._publish(look=look)


class Subscriber(Loop):
    """Hears what other processes tell."""

    name = "redis-listener"

    def __init__(self, connect: Callable[[], Redis], on_change: Callable[[bool], None], own: str) -> None:
        super().__init__(Telemetry())
        self._connect = connect
        self._on_change = on_change
        self._own = own
        self._heard: PubSub | None = None
        self._redis: Redis | None = None

    def run_once(self) -> float:
        """Wait for a message, half a second at most; returns how long to wait before the next."""
        try:
            self._listen()
        except (RedisError, OSError, ValueError):  # it is made anew, and polling covers until then; closed meanwhile: it is none of ours
            self._hang_up()
            return 0.0 if self.stopping else AWAY_SECONDS
        return 0.0

    def rest(self, seconds: float) -> None:
        if seconds:
            super().rest(seconds)

    def close(self) -> None:
        """Let go of the connection."""
        self._hang_up()

    def forget(self) -> None:
        """The connection is the parent's, and is left alone."""
        self._heard = self._redis = None

    def _listen(self) -> None:
        if self._heard is None:
            self._redis = self._connect()
            heard = self._redis.pubsub(ignore_subscribe_messages=True)
            heard.subscribe(CHANNEL)
            self._heard = heard
            self._on_change(True)
        message = self._heard.get_message(timeout=CLOSE_SECONDS / 2)
        if message is None:
            return
        sender, look, _ = str(message["data"]).partition(LOOK)
        if sender != self._own:
            self._on_change(bool(look))

    def _repeat(self) -> None:
        super()._repeat()
        self._hang_up()

    def _hang_up(self) -> None:
        heard, self._heard = self._heard, None
        redis, self._redis = self._redis, None
        with suppress(RedisError, OSError):
            if heard is not None:
                heard.close()
            if redis is not None:
                redis.close()


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
