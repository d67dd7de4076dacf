"""Python values as JSON text and back: msgspec, and beyond it pydantic models (when installed) and paths.

What cannot be carried is refused with a path and a rule; nothing is ever changed in silence, as NaN into null.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any, Final

import msgspec

from workmill.domain.errors import InvalidInput
from workmill.domain.limits import PAYLOAD_DEPTH
from workmill.domain.payload import MAX_NUMBER_DIGITS, check_depth, check_json, check_storable

PATH_CHARACTERS: Final = 120
_AT: Final = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_EXPECTED: Final = re.compile(r"Expected `(.+?)`, got `(.+?)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.+)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.+)`", re.DOTALL)


class RawPayload(str):
    """JSON text, exactly as it was submitted: the only parameter of a handler that wants its payload undecoded.

    Returned from a handler it becomes the result as it stands.
    """

    __slots__ = ()


class Misfit(ValueError):
    """A value that does not fit a type, said by a decoder of ours; `path` is where within the value."""

    def __init__(self, path: str, rule: str) -> None:
        super().__init__(rule)
        self.path = path


def to_json(value: object, field: str = "") -> str:
    """JSON text that a store can keep.

    Raises:
        InvalidInput: naming the path inside the value, after `field`, and the rule.

    """
    if isinstance(value, RawPayload):
        return check_json(field or "payload", str(value))
    try:
        text = _encode(value).decode()
    except Exception:  # noqa: BLE001 - whatever a value's own encoding raises, it is this value that cannot be carried
        raise _refusal(value, field) from None
    if "null" in text and _not_a_number(value):
        raise _refusal(value, field)
    return _check_limits(text, field or "payload")


def decoder(type: Any) -> Callable[[str], Any]:
    """A function from JSON text to a value of `type`; it raises what `misfit` explains."""
    return msgspec.json.Decoder(type, dec_hook=_build).decode


def misfit(error: Exception, field: str = "") -> InvalidInput:
    """What a decoder raised, as the field (`field` and the path inside the value, "" for the value itself) and the rule."""
    if not isinstance(error, msgspec.MsgspecError):
        return InvalidInput(field, f"must be JSON of the declared type ({error})")
    found = _AT.fullmatch(str(error))
    message, path = found.groups(default="") if found else (str(error), "")
    if isinstance(error.__cause__, Misfit):
        path += error.__cause__.path
    return InvalidInput((field + path).lstrip("."), _rule(message))


def unsupported(type: Any) -> str | None:
    """Why values of `type` cannot be carried; None when they can."""
    try:
        seen = msgspec.inspect.type_info(type)
        decoder(type)
    except TypeError as error:
        return str(error)
    strangers = (node.cls for node in _nodes(seen) if isinstance(node, msgspec.inspect.CustomType))
    stranger = next((cls for cls in strangers if not _known(cls)), None)
    return None if stranger is None else f"{stranger!r} has no JSON form"


def _encode_other(value: object) -> object:
    if _is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)  # type: ignore[attr-defined]
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError


_encode: Final = msgspec.json.Encoder(enc_hook=_encode_other).encode


def _build(type: Any, value: Any) -> Any:
    """A value of a type that msgspec does not know, from decoded JSON."""
    if _is_model(type):
        return _build_model(type, value)
    if type is object:
        return value
    if isinstance(value, str):
        return type(value)
    raise Misfit("", f"Expected `str`, got `{value.__class__.__name__}`")


def _build_model(model: Any, value: Any) -> Any:
    try:
        return model.model_validate_json(_encode(value))
    except ValueError as error:
        first = error.errors(include_url=False)[0] if hasattr(error, "errors") else {"loc": (), "msg": str(error)}
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise Misfit(path, str(first["msg"])) from error


def _is_model(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def _known(cls: Any) -> bool:
    return cls is object or (isinstance(cls, type) and (_is_model(cls) or issubclass(cls, PurePath)))


def _nodes(node: object, seen: set[int] | None = None) -> Iterator[object]:
    """A type as msgspec sees it, and every type in it."""
    seen = set() if seen is None else seen
    if id(node) in seen or not isinstance(node, (msgspec.inspect.Type, msgspec.inspect.Field, tuple)):
        return
    seen.add(id(node))
    yield node
    parts = node if isinstance(node, tuple) else (getattr(node, name) for name in node.__struct_fields__)
    for part in parts:
        yield from _nodes(part, seen)


def _rule(message: str) -> str:
    if found := _EXPECTED.fullmatch(message):
        return f"must be {found[1]} (got {found[2]})"
    if found := _MISSING.fullmatch(message):
        return f"must have {found[1]}"
    if found := _UNKNOWN.fullmatch(message):
        return f"must not have {found[1]!r:.120}"
    return message[:1].lower() + message[1:]


def _check_limits(text: str, field: str) -> str:
    """The checks that text of our own making still needs: `check_json` without the parsing."""
    check_storable(field, text)
    check_depth(field, text)
    if len(text) > MAX_NUMBER_DIGITS and re.search(rf"\d{{{MAX_NUMBER_DIGITS + 1}}}", text):
        check_json(field, text)
    return text


def _not_a_number(value: object) -> bool:
    """Whether NaN or an infinity is in there, which the encoder writes as null."""
    left = [msgspec.to_builtins(value, enc_hook=_encode_other)]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            left += part
        elif isinstance(part, float) and not math.isfinite(part):
            return True
    return False


def _refusal(value: object, field: str) -> InvalidInput:
    """The smallest part of `value` that cannot be carried, and why."""
    path = ""
    for _ in range(PAYLOAD_DEPTH):
        culprit = next(((name, part) for name, part in _parts(value) if _obstacle(part)), None)
        if culprit is None:
            break
        path, value = path + culprit[0], culprit[1]
    return InvalidInput(f"{field}{path}".lstrip(".")[:PATH_CHARACTERS], _obstacle(value) or "must have a JSON form")


def _obstacle(value: object) -> str | None:
    try:
        _encode(value).decode()
        return "must not hold NaN or Infinity" if _not_a_number(value) else None
    except UnicodeError:
        return "must not hold a lone surrogate"
    except RecursionError:
        return f"must not be nested deeper than {PAYLOAD_DEPTH}, or in itself"
    except Exception as error:  # noqa: BLE001 - see to_json
        return f"must have a JSON form ({type(value).__qualname__} has none{f': {error}' if str(error) else ''})"


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((f".{key}" if isinstance(key, str) else f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, msgspec.Struct):
        yield from ((f".{name}", getattr(value, name)) for name in value.__struct_fields__)
    elif is_dataclass(value):
        yield from ((f".{field.name}", getattr(value, field.name, None)) for field in fields(value))
