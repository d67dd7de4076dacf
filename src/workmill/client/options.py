"""The options of a submission: checked once, when they are given, so that each job costs no more than its payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

from workmill.codec import to_json
from workmill.domain.errors import InvalidInput
from workmill.domain.job import NewJob
from workmill.domain.retry import Retry
from workmill.domain.submission import new_job
from workmill.ids import new_id


class Options(TypedDict, total=False):
    """How a job is queued and run. What is not given comes from the decorator, then from the documented defaults; None means the default.

    Durations are seconds or a timedelta; times must have an offset.
    """

    queue: str | None
    """The queue; "default" by default."""
    priority: int | None
    """-100 to 100, higher runs first; 0 by default."""
    delay: float | timedelta | None
    """How long from now the job becomes due."""
    run_at: datetime | None
    """When the job becomes due; instead of `delay`."""
    expires_in: float | timedelta | None
    """How long from now the job may *start*; then it is expired."""
    expires_at: datetime | None
    """Until when the job may start; instead of `expires_in`."""
    timeout: float | timedelta | None
    """How long one run may take; no limit by default."""
    retry: Retry | None
    """How often and when a failed job is tried again; 5 attempts by default."""
    max_losses: int | None
    """After how many deaths of its workers the job is dead; 3 by default, 1 for work that must not be run twice after a crash."""
    unique_key: str | None
    """While a job of this type and key is live, a submission gets that job instead of a new one."""
    tags: Sequence[str] | None
    """Up to 20 names to find the job by."""
    meta: Mapping[str, Any] | None
    """A JSON object that is kept with the job and not shown to its function."""
    traceparent: str | None
    """The W3C trace context; inside a job it is inherited."""


_DURATIONS: Final = ("delay", "expires_in", "timeout")
_PAYLOAD: Final = NewJob._fields.index("payload")
_RIVALS: Final = (("delay", "run_at"), ("expires_in", "expires_at"))


class Template:
    """A submission without id and payload. `new` makes one job of it."""

    def __init__(self, type: str, options: Mapping[str, Any]) -> None:
        self.type = type
        self.options = options
        like = new_job("", type, "{}", _named_as_submission(options))
        self._before, self._after = like[1:_PAYLOAD], like[_PAYLOAD + 1 : -1]
        self._traceparent = like.traceparent

    def merged(self, options: Mapping[str, Any]) -> Template:
        """The same with other options: each replaces its own kind (`run_at` a `delay`, too); None takes one away."""
        base = dict(self.options)
        for pair in _RIVALS:
            if set(pair) & options.keys():
                for name in pair:
                    base.pop(name, None)
        return Template(self.type, {**base, **options})

    def new(self, payload: str, traceparent: str | None = None) -> NewJob:
        """A submission under a new id. `payload` has been checked; `traceparent` is inherited: the option goes before it."""
        return NewJob._make((new_id(), *self._before, payload, *self._after, self._traceparent or traceparent))


def check_give_up_on(options: Mapping[str, Any], declared: tuple[type[BaseException], ...]) -> None:
    """Refuse a retry whose `give_up_on` would be forgotten: classes are not stored with a job, its function's declaration has them."""
    retry = options.get("retry")
    if isinstance(retry, Retry) and retry.give_up_on not in {(), declared}:
        raise InvalidInput("retry.give_up_on", "belongs to the declaration of the function, @mill.job(retry=…)")


def _named_as_submission(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options under the names and in the units of `new_job`."""
    given = {name: value for name, value in options.items() if value is not None}
    retry = given.pop("retry", None)
    if retry is not None:
        if not isinstance(retry, Retry):
            raise InvalidInput("retry", f"must be a Retry (got {retry!r:.120})")
        given |= {"max_attempts": retry.max_attempts, "backoff": retry.backoff}
    for name in _DURATIONS:
        if isinstance(given.get(name), timedelta):
            given[name] = given[name].total_seconds()
    if isinstance(given.get("meta"), Mapping):
        given["meta"] = to_json(given["meta"], "meta")
    return given
