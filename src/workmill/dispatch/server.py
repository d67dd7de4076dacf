"""A Redis or Valkey server that may be away: it is asked, and while it cannot be used nobody asks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis import Redis, ResponseError
from redis.backoff import NoBackoff
from redis.retry import Retry

from workmill.clock import monotonic
from workmill.config import DISPATCH, shown_url
from workmill.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis.client import Pipeline

T = TypeVar("T")
ANSWER_SECONDS: Final = 0.5
"""How long it has for an answer, and for a connection once its name is an address."""
AWAY_SECONDS: Final = 1.0
"""How long nobody asks a server that has failed."""
SAY_SECONDS: Final = 60.0
"""How often the log hears of it at most."""
OURS: Final = ("decode_responses", "encoding", "encoding_errors", "socket_timeout", "socket_connect_timeout", "retry")
log = logging.getLogger(__name__)


class Server:
    """Constructing it opens nothing. Any thread.

    Raises:
        ConfigurationError: the URL is none of Redis's, or has an option that is none.

    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._away_until = 0.0
        self._say_at = 0.0
        self._said = False
        try:
            options = Redis.from_url(url).connection_pool.connection_kwargs
            self.connect(ANSWER_SECONDS).connection_pool.make_connection()
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"{DISPATCH}: is no URL of Redis's: {error}") from None
        if taken := sorted(options.keys() & set(OURS)):
            raise ConfigurationError(f"{DISPATCH}: the option {taken[0]} is not for a URL to set")
        self.redis = self.connect(ANSWER_SECONDS)

    def connect(self, answer_seconds: float) -> Redis:
        """A client of its own, which opens its connections when they are used."""
        redis = Redis.from_url(self.url)
        redis.connection_pool.connection_kwargs.update(
            decode_responses=True,
            encoding="utf-8",
            encoding_errors="replace",
            socket_timeout=answer_seconds,
            socket_connect_timeout=ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        return redis

    @property
    def away(self) -> bool:
        """Whether it has just failed."""
        return monotonic() < self._away_until

    def ask(self, question: Callable[[Redis], T]) -> T | None:
        """The answer. None: the server cannot be used, which costs one wait a second at most, or a key is somebody else's."""
        if self.away:
            return None
        try:
            answer = question(self.redis)
        except Exception as error:  # noqa: BLE001 - whatever it is, what has been committed stays so, and the store knows it all
            if not is_of_another(error):
                self._away_until = monotonic() + AWAY_SECONDS
            self._say(error)
            return None
        if self._away_until:
            self._away_until = 0.0
            if self._said:
                self._said = False
                log.warning("%s can be used again", shown_url(self.url))
        return answer

    def _say(self, error: Exception) -> None:
        now = monotonic()
        if now >= self._say_at:
            self._say_at, self._said = now + SAY_SECONDS, True
            log.warning("%s cannot be used, workers claim from the store: %s", shown_url(self.url), error)


def is_of_another(error: object) -> bool:
    """Whether a key is not what Workmill has put there; other queues can be used."""
    return isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE")


def answers_of(pipeline: Pipeline) -> list[Any]:
    """What came of the commands of a pipeline, None for a key that is somebody else's.

    Raises:
        RedisError: the first other error.

    """
    found = [None if is_of_another(answer) else answer for answer in pipeline.execute(raise_on_error=False)]
    for answer in found:
        if isinstance(answer, Exception):
            raise answer
    return found
