"""What processes tell each other through Redis, without a truth in it: that something has changed."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from redis import RedisError

from workmill.dispatch.server import AWAY_SECONDS
from workmill.loops import Loop, Teller
from workmill.store.changes import CLOSE_SECONDS
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis
    from redis.client import PubSub

CHANNEL: Final = "workmill:changes"
LOOK: Final = " look"


class Hints:
    """Tells other processes what needs no id, by a thread that begins with the first; a process does not hear what it has told."""

    def __init__(self, publish: Callable[[str], object], sender: str) -> None:
        self._publish = publish
        self._sender = sender
        self._lock = threading.Lock()
        self._messenger: Messenger | None = None

    def tell(self, *, look: bool) -> bool:
        """Have it told, soon; `look`: that they shall claim from the store next. Whether it will be."""
        with self._lock:
            if self._messenger is None:
                messenger = Messenger(self._publish, self._sender)
                try:
                    messenger.start()
                except RuntimeError:  # no thread can be started
                    return False
                self._messenger = messenger
            self._messenger.look |= look
            self._messenger.tell()
        return True

    def close(self) -> None:
        """End the thread; what it had not yet told is told."""
        with self._lock:
            messenger, self._messenger = self._messenger, None
        if messenger is not None:
            messenger.stop()
            if messenger.join(CLOSE_SECONDS):
                messenger.run_once()

    def forget(self) -> None:
        """Begin anew, as the child of a fork must."""
        self._lock, self._messenger = threading.Lock(), None


class Messenger(Teller):
    """The thread of `Hints`."""

    name = "redis-hints"

    def __init__(self, publish: Callable[[str], object], sender: str) -> None:
        super().__init__()
        self.look = False
        self._publish = publish
        self._sender = sender

    def send(self) -> None:
        look, self.look = self.look, False
        self._publish(self._sender + LOOK * look)


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
        except Exception:  # noqa: BLE001 - whatever it was, it is made anew, and polling covers until then
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
