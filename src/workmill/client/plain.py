"""A job's function, called as the plain function it is: in a test, a script, or another job."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Final

from workmill.clock import monotonic
from workmill.domain.job import Claimed
from workmill.engine.context import RunningJob, current
from workmill.registry import Handler

NO_ID: Final = ""


def call(handler: Handler, /, *args: Any, **kwargs: Any) -> Any:
    """What the function returns. It may use `current_job()`: inside a run that is the run, elsewhere a stand-in that nobody listens to."""
    if current.get(None) is not None:
        return handler.function(*args, **kwargs)
    if inspect.iscoroutinefunction(handler.function):
        return _awaited(handler, args, kwargs)
    with _stand_in(handler):
        return handler.function(*args, **kwargs)


async def _awaited(handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with _stand_in(handler):
        return await handler.function(*args, **kwargs)


@contextmanager
def _stand_in(handler: Handler) -> Iterator[None]:
    """A run of no job: without an id, a queue or a timeout, the first attempt of one, never asked to stop."""
    claimed = Claimed(
        id=NO_ID,
        lease=0,
        queue="",
        type=handler.name,
        payload="",
        attempt=1,
        max_attempts=1,
        timeout=None,
        expires_in=None,
        traceparent=None,
        suspect=0,
    )
    token = current.set(RunningJob(claimed, handler, monotonic(), inf))
    try:
        yield
    finally:
        current.reset(token)
