"""What a handler returned, as JSON text and back.

By the time a result is encoded its job has done its work, so a result that cannot be kept does not fail the job: a stand-in says why,
and whoever asks for the result gets that as an error.
"""

from __future__ import annotations

import inspect
import json
import logging
import types
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import msgspec

from workmill.codec import RawPayload, decoder, to_json, unsupported
from workmill.domain.errors import InvalidInput, WorkmillError
from workmill.domain.limits import ERROR_MESSAGE_CHARACTERS

STAND_IN: Final = "workmill.unstorable"
log = logging.getLogger(__name__)


class UnstorableResult(WorkmillError):
    """The job succeeded, and what it returned could not be kept: `rule` says why, `text` how it looked."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"the job succeeded, and its result could not be stored: {rule} (it was {text:.200})")
        self.rule = rule
        self.text = text


def storable(value: object) -> str | None:
    """The JSON text of what a handler returned, or of a stand-in; None stands for None."""
    if value is None:
        return None
    try:
        return to_json(value, "result")
    except InvalidInput as error:
        _refuse_coroutine(value)
        log.warning("a result could not be stored: %s", error)
        return _stand_in(value, str(error))


def result_decoder(function: Callable[..., Any]) -> Callable[[str | None], Any]:
    """A function from result text to the declared return type; to plain JSON when it is not declared, or not kept to."""
    hint = _return_hint(function)
    decode = str if hint is RawPayload else decoder(hint)

    def read(text: str | None) -> Any:
        if text is None:
            return None
        _raise_stand_in(text)
        try:
            return decode(text)
        except msgspec.MsgspecError:
            return json.loads(text)

    return read


def read_plain(text: str | None) -> Any:
    """The result of a job whose function is not known here."""
    if text is None:
        return None
    _raise_stand_in(text)
    return json.loads(text)


def _refuse_coroutine(value: object) -> None:
    """The one result that says that the work was not done."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("the function returned a coroutine: declare it with async def, so that it is awaited")


def _stand_in(value: object, rule: str) -> str:
    try:
        shown = repr(value)
    except Exception as error:  # noqa: BLE001 - a __repr__ may raise anything, and the job has succeeded
        shown = f"<{type(value).__qualname__}: no repr ({type(error).__name__})>"
    return json.dumps({STAND_IN: {"rule": rule, "text": shown[:ERROR_MESSAGE_CHARACTERS].encode(errors="backslashreplace").decode()}})


def _raise_stand_in(text: str) -> None:
    if text.startswith(f'{{"{STAND_IN}"'):
        raise UnstorableResult(**json.loads(text)[STAND_IN])


def _return_hint(function: Callable[..., Any]) -> Any:
    unwrapped = inspect.unwrap(function)
    holder = types.SimpleNamespace(__annotations__={"return": getattr(unwrapped, "__annotations__", {}).get("return", Any)})
    try:
        hint = get_type_hints(holder, globalns=getattr(unwrapped, "__globals__", {}), include_extras=True)["return"]
    except (NameError, TypeError):
        return Any
    return Any if unsupported(hint) and hint is not RawPayload else hint
