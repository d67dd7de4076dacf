"""Settings from the environment. A value that cannot be used is one `ConfigurationError` that names the variable and the rule."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workmill.domain.errors import ConfigurationError
from workmill.domain.limits import MAX_SECONDS

STORE: Final = "WORKMILL_STORE"
SCHEMA: Final = "WORKMILL_SCHEMA"
DISPATCH: Final = "WORKMILL_DISPATCH"
RETAIN: Final = "WORKMILL_RETAIN"
RETAIN_DEAD: Final = "WORKMILL_RETAIN_DEAD"

DEFAULT_STORE: Final = "sqlite:///workmill.db"
DEFAULT_SCHEMA: Final = "workmill"
DEFAULT_DISPATCH: Final = "direct"
DEFAULT_RETAIN: Final = 7 * 86_400.0
MAX_RETAIN: Final = 100 * MAX_SECONDS

_PASSWORD: Final = re.compile(r"(://[^/@:?]*:|[?&]password=)[^@&/?]+(?=@|&|$)")
DURATION_RULE: Final = "a duration such as 500ms, 30s, 5m, 12h, 7d or 1h30m; a bare number means seconds"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)

SIZE_RULE: Final = "a size in bytes, or such as 512MB, 1.5GB, 256MiB"
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(I?))?B?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says. Retention is in seconds; None keeps for ever."""

    store: str = DEFAULT_STORE
    schema: str = DEFAULT_SCHEMA
    dispatch: str = DEFAULT_DISPATCH
    retain: float | None = DEFAULT_RETAIN
    retain_dead: float | None = None


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; an unset or empty variable means its default.

    Raises:
        ConfigurationError: naming the variable and the rule.

    """
    return Settings(
        store=environment.get(STORE) or DEFAULT_STORE,
        schema=environment.get(SCHEMA) or DEFAULT_SCHEMA,
        dispatch=environment.get(DISPATCH) or DEFAULT_DISPATCH,
        retain=_retention(environment, RETAIN, DEFAULT_RETAIN),
        retain_dead=_retention(environment, RETAIN_DEAD, None),
    )


def shown_url(url: str) -> str:
    """A store's URL for people and logs: without its password."""
    return _PASSWORD.sub(r"\1***", url)


def parse_duration(name: str, text: str) -> float:
    """The seconds of `90`, `1.5h` or `1h30m`, up to a year; `name` is the setting that an error names."""
    return _duration(name, text, DURATION_RULE, MAX_SECONDS)


def parse_retention(name: str, text: str) -> float | None:
    """A duration, or None for `never`: nothing is removed."""
    return None if text.strip().lower() == "never" else _duration(name, text, f"never, or {DURATION_RULE}", MAX_RETAIN)


def parse_size(name: str, size: str | float) -> int:
    """The bytes of `512MB` (millions), `256MiB` (powers of two) or a number."""
    found = _SIZE.fullmatch(str(size).strip().upper())
    count = 0.0
    if found is not None and not isinstance(size, bool):
        number, prefix, binary = found.groups()
        count = float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix or " ")
    if not 1 <= count < 1 << 60:
        raise ConfigurationError(f"{name}: must be {SIZE_RULE} (got {size!r:.120})")
    return int(count)


def _retention(environment: Mapping[str, str], name: str, default: float | None) -> float | None:
    text = environment.get(name)
    return parse_retention(name, text) if text else default


def _duration(name: str, text: str, rule: str, longest: float) -> float:
    stripped = text.strip().lower()
    seconds = float(stripped) if _NUMBER.fullmatch(stripped) else _sum_of_parts(stripped)
    if seconds is None:
        raise ConfigurationError(f"{name}: must be {rule} (got {text!r:.120})")
    if seconds > longest:
        raise ConfigurationError(f"{name}: must be at most {longest / 86_400:g} days (got {text!r:.120})")
    return seconds


def _sum_of_parts(text: str) -> float | None:
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
