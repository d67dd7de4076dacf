"""What may be stored as JSON: text that both stores keep byte for byte. Pure checks, no parsing of values into objects."""

import json
import re
from typing import Any, Final, NoReturn

from workmill.domain.errors import InvalidInput, PayloadTooLarge, shown
from workmill.domain.limits import META_BYTES, PAYLOAD_BYTES, PAYLOAD_DEPTH

_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string or a bracket. The end of a string is optional: one that never ends is passed over once, not once a quote."""
_ESCAPED_SURROGATE: Final = re.compile(r"\\(?:\\|u([0-9a-fA-F]{4})|.)")
MAX_NUMBER_DIGITS: Final = 1_000
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)


def check_json(field: str, text: str, limit: int = PAYLOAD_BYTES) -> str:
    """Return `text` unchanged when it is JSON that can be stored and given back byte for byte.

    Raises:
        InvalidInput: it is no text, not JSON, deeper than 64, has NaN, Infinity, a number out of a double's range, one of more
            than 1,000 digits, or a lone surrogate; the rule is named. (An escaped NUL is fine; JSON knows no other.)
        PayloadTooLarge: it is over `limit` bytes of UTF-8.

    """
    check_storable(field, text, limit)
    check_depth(field, text)
    try:
        json.loads(
            text,
            parse_constant=lambda name: _refuse(field, name),
            parse_float=lambda text: _finite(field, text),
            parse_int=lambda text: _digits(field, text),
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(field, f"must be JSON ({error})") from None
    _check_escapes(field, text)
    return text


def check_storable(field: str, text: str, limit: int = PAYLOAD_BYTES) -> None:
    """Refuse what is no text, or no UTF-8 (lone surrogates), or over `limit` bytes."""
    if not isinstance(text, str):
        raise InvalidInput(field, f"must be text (got {shown(text)})")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(field, "must not hold a lone surrogate") from None
    if size > limit:
        raise PayloadTooLarge(field, f"must be at most {limit} bytes (got {size})")


def check_depth(field: str, text: str) -> None:
    """Refuse JSON nested deeper than 64, without recursion."""
    if text.count("[") + text.count("{") <= PAYLOAD_DEPTH:
        return
    depth = 0
    for token in _BRACKET.finditer(text):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth > PAYLOAD_DEPTH:
                raise InvalidInput(field, f"must not be nested deeper than {PAYLOAD_DEPTH}")
        elif mark in "]}":
            depth -= 1


def check_meta(field: str, text: str) -> str:
    """Return `text` when it is a JSON object of at most 16 KiB."""
    check_json(field, text, META_BYTES)
    if not text.lstrip().startswith("{"):
        raise InvalidInput(field, "must be a JSON object")
    return text


def _refuse(field: str, name: str) -> NoReturn:
    raise InvalidInput(field, f"must not hold {name}")


def _finite(field: str, text: str) -> Any:
    if abs(float(text)) == float("inf"):
        raise InvalidInput(field, f"must not hold a number out of range ({text:.40})")
    return 0


def _digits(field: str, text: str) -> Any:
    if len(text) > MAX_NUMBER_DIGITS:
        raise InvalidInput(field, f"must not hold a number of more than {MAX_NUMBER_DIGITS} digits")
    return 0


def _check_escapes(field: str, text: str) -> None:
    r"""Refuse an escaped lone surrogate such as `\ud800`: PostgreSQL could not read it back as text."""
    if "\\u" not in text:
        return
    high_ends_at = -1
    for escape in _ESCAPED_SURROGATE.finditer(text):
        code = int(escape.group(1) or "0", 16)
        if code in _LOW and high_ends_at == escape.start():
            high_ends_at = -1
            continue
        if high_ends_at >= 0 or code in _LOW:
            raise InvalidInput(field, "must not hold a lone surrogate")
        if code in _HIGH:
            high_ends_at = escape.end()
    if high_ends_at >= 0:
        raise InvalidInput(field, "must not hold a lone surrogate")
