"""From a caller's options to a checked `NewJob`: one clear error names the field and the rule, before anything is written."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from workmill.domain.errors import InvalidInput, shown
from workmill.domain.job import NewJob
from workmill.domain.limits import (
    MAX_ATTEMPTS,
    MAX_LOSSES,
    MAX_PRIORITY,
    MAX_TAGS,
    UNIQUE_KEY_CHARACTERS,
    check_integer,
    check_seconds,
    microseconds,
)
from workmill.domain.names import check_free_name, check_name
from workmill.domain.payload import check_json, check_meta, check_storable
from workmill.domain.retry import encode_backoff, parse_backoff

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_TIMEOUT: Final = 0.001
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def new_job(job_id: str, type: str, payload: str, options: Mapping[str, Any] | None = None) -> NewJob:
    """Check a submission.

    `options`: queue, priority, delay or run_at, expires_in or expires_at, timeout, max_attempts, max_losses, backoff, unique_key,
    tags, meta (JSON text), traceparent. Unset and None mean the default; 0 means 0. Delays are seconds, times aware datetimes.

    Raises:
        InvalidInput: a field breaks its rule, or an option does not exist.

    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    unknown = given.keys() - CHECKS.keys()
    if unknown:
        raise InvalidInput(min(unknown), f"no such option; there are {', '.join(sorted(CHECKS))}")
    _exclusive(given, "delay", "run_at")
    _exclusive(given, "expires_in", "expires_at")
    checked = {name: CHECKS[name](value) for name, value in given.items()}
    checked.setdefault("queue", "default")
    return NewJob(id=job_id, type=check_free_name("type", type), payload=check_json("payload", payload), **checked)


def check_key(value: object) -> str:
    """A unique key: 1 to 200 characters, no NUL, no lone surrogate."""
    if not isinstance(value, str) or not 1 <= len(value) <= UNIQUE_KEY_CHARACTERS or "\x00" in value:
        raise InvalidInput("unique_key", f"must be text of 1 to {UNIQUE_KEY_CHARACTERS} characters without NUL (got {shown(value)})")
    check_storable("unique_key", value)
    return value


def check_tags(value: object) -> tuple[str, ...]:
    """Tags: at most 20 different names."""
    if not isinstance(value, (list, tuple, set, frozenset)) or len(value) > MAX_TAGS:
        raise InvalidInput("tags", f"must be a list of at most {MAX_TAGS} names")
    return tuple(dict.fromkeys(check_name("tags", tag) for tag in value))


def check_time(field: str, value: object) -> int:
    """An aware datetime of 1970 to 9999 (in UTC) as microseconds since the epoch; naive times are refused."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"must be a time (got {shown(value)})")
    if value.utcoffset() is None:
        raise InvalidInput(field, "must have an offset (a naive time is nobody's time)")
    return check_moment(field, (value - _EPOCH) // timedelta(microseconds=1))


def check_moment(field: str, value: int) -> int:
    """Microseconds since the epoch that can be shown as a time: 1970 to 9999 in UTC."""
    if not 0 <= value <= LATEST:
        raise InvalidInput(field, "must be a time from 1970 to 9999 (UTC)")
    return value


def check_meta_text(value: object) -> str:
    """Metadata: a JSON object as text, or a mapping."""
    if isinstance(value, dict):
        try:
            value = json.dumps(value, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput("meta", f"must be JSON ({error})") from None
    if not isinstance(value, str):
        raise InvalidInput("meta", "must be a JSON object")
    return check_meta("meta", value)


def check_traceparent(value: object) -> str:
    """A W3C traceparent, version 00."""
    if not isinstance(value, str) or not _TRACEPARENT.fullmatch(value):
        raise InvalidInput("traceparent", "must be a W3C traceparent (00-<32 hex>-<16 hex>-<2 hex>)")
    return value


def _exclusive(given: Mapping[str, Any], one: str, other: str) -> None:
    if one in given and other in given:
        raise InvalidInput(one, f"cannot be set together with {other}")


CHECKS: Final[dict[str, Any]] = {
    "queue": lambda value: check_free_name("queue", value),
    "priority": lambda value: check_integer("priority", value, -MAX_PRIORITY, MAX_PRIORITY),
    "delay": lambda value: microseconds(check_seconds("delay", value)),
    "run_at": lambda value: check_time("run_at", value),
    "expires_in": lambda value: microseconds(check_seconds("expires_in", value)),
    "expires_at": lambda value: check_time("expires_at", value),
    "timeout": lambda value: check_seconds("timeout", value, MIN_TIMEOUT),
    "max_attempts": lambda value: check_integer("max_attempts", value, 1, MAX_ATTEMPTS),
    "max_losses": lambda value: check_integer("max_losses", value, 1, MAX_LOSSES),
    "backoff": lambda value: encode_backoff(parse_backoff(value)),
    "unique_key": check_key,
    "tags": check_tags,
    "meta": check_meta_text,
    "traceparent": check_traceparent,
}
"""Every option of a submission, and its check."""
