"""How a payload becomes the arguments of a function: compiled once when a job is declared, so that a run asks nothing of `inspect`.

An object payload becomes keyword arguments, checked against the annotations; a parameter without one takes any JSON. Defaults are
not stored: the function that runs supplies its own. A function whose only parameter is a `RawPayload` gets the text itself.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Final, get_type_hints

import msgspec

from workmill.codec import RawPayload, decoder, misfit, to_json, unsupported
from workmill.domain.errors import ConfigurationError, InvalidInput
from workmill.domain.payload import check_json

Call = tuple[Sequence[Any], Mapping[str, Any]]
_NONE: Final[Mapping[str, Any]] = {}
_PLAIN: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class NotJson(InvalidInput):
    """A payload that no version of any function could read."""


class Arguments:
    """The parameters of one function. `call` turns a payload into what the function is called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = _parameters(function)
        self.raw = len(parameters) == 1 and _hint(function, parameters[0]) is RawPayload
        self.names = tuple(parameter.name for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD)
        self.defaults = {parameter.name: parameter.default for parameter in parameters if parameter.default is not Parameter.empty}
        self._positional = tuple(parameter.name for parameter in parameters if parameter.kind in _PLAIN)
        self._split = _raw_call if self.raw else _splitter(function, parameters)

    def call(self, payload: str) -> Call:
        """The positional and the keyword arguments that a payload means.

        Raises:
            InvalidInput: it does not fit; names the parameter, the path inside and the rule.

        """
        try:
            return self._split(payload)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._explain(error) from None

    def payload(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The payload that stands for a call, checked as `call` will check it.

        Raises:
            InvalidInput: an argument is missing, unknown, given twice, of another type, or has no JSON form.

        """
        if self.raw:
            return check_json(self.names[0], self._only(args, kwargs))
        text = to_json(self._bind(args, kwargs) if args else kwargs)
        self.call(text)
        return text

    def check(self, payload: str) -> str:
        """Return a payload that came as text when it is storable and fits."""
        self.call(check_json("payload", payload))
        return payload

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._positional):
            raise InvalidInput("arguments", f"must be at most {len(self._positional)} by position (got {len(args)}); {self._takes}")
        bound = dict(zip(self._positional, args, strict=False))
        if twice := bound.keys() & kwargs.keys():
            raise InvalidInput(min(twice), "must be given once, by position or by name")
        return {**bound, **kwargs}

    def _only(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        text = args[0] if len(args) == 1 and not kwargs else kwargs.get(self.names[0])
        if not isinstance(text, str) or len(args) + len(kwargs) != 1:
            raise InvalidInput(self.names[0], "must be one JSON text")
        return text

    @property
    def _takes(self) -> str:
        return f"it takes {', '.join(self.names)}" if self.names else "it takes no arguments"

    def _explain(self, error: Exception) -> InvalidInput:
        found = misfit(error)
        if found.field:
            return found
        if not isinstance(error, msgspec.ValidationError):
            return NotJson("payload", found.rule)
        if found.rule.startswith("must have "):
            return InvalidInput(found.rule.removeprefix("must have "), f"is missing; {self._takes}")
        if found.rule.startswith("must not have "):
            return InvalidInput(found.rule.removeprefix("must not have ").strip("'"), f"is no parameter; {self._takes}")
        return InvalidInput("payload", f"{found.rule.replace('must be object', 'must be an object')}; {self._takes}")


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"a job must be a function with a signature ({error})") from None
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_POSITIONAL:
            raise ConfigurationError(f"parameter *{parameter.name}: a payload has names, not positions; take a list instead")
    if parameters and parameters[0].name in {"self", "cls"}:
        raise ConfigurationError(f"parameter {parameters[0].name}: a job is a function, not a method")
    return parameters


def _hint(function: Callable[..., Any], parameter: Parameter) -> Any:
    """The annotation of a parameter, resolved; a name that cannot be found is a NameError."""
    if parameter.annotation is Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    return get_type_hints(holder, globalns=scope, include_extras=True)[parameter.name]


def _checked_hint(function: Callable[..., Any], parameter: Parameter) -> Any:
    hint = _hint(function, parameter)
    if hint is RawPayload:
        raise ConfigurationError(f"parameter {parameter.name}: a RawPayload must be the only parameter")
    if reason := unsupported(hint):
        raise ConfigurationError(f"parameter {parameter.name}: {reason}")
    return hint


def _field(function: Callable[..., Any], parameter: Parameter) -> tuple[str, Any, Any]:
    hint, default = _checked_hint(function, parameter), parameter.default
    if default is Parameter.empty:
        return parameter.name, hint, msgspec.field()
    return parameter.name, hint, msgspec.field(default_factory=lambda: default)


def _splitter(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[[str], Call]:
    """The fastest way from text to a call that the kinds of the parameters allow."""
    named = [parameter for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD]
    shape = msgspec.defstruct(
        "payload",
        [_field(function, parameter) for parameter in named],
        kw_only=True,
        forbid_unknown_fields=len(named) == len(parameters),
    )
    positional = sum(parameter.kind in _PLAIN for parameter in named)
    if len(named) < len(parameters):
        return _open_call(shape, positional, _checked_hint(function, parameters[-1]))
    return _plain_call(shape) if positional == len(named) else _named_call(shape, positional)


def _raw_call(payload: str) -> Call:
    return (RawPayload(payload),), _NONE


def _plain_call(shape: type[msgspec.Struct]) -> Callable[[str], Call]:
    decode, values = decoder(shape), msgspec.structs.astuple

    def split(payload: str) -> Call:
        return values(decode(payload)), _NONE

    return split


def _named_call(shape: type[msgspec.Struct], positional: int) -> Callable[[str], Call]:
    decode, values = decoder(shape), msgspec.structs.astuple
    keywords = shape.__struct_fields__[positional:]

    def split(payload: str) -> Call:
        found = values(decode(payload))
        return found[:positional], dict(zip(keywords, found[positional:], strict=True))

    return split


def _open_call(shape: type[msgspec.Struct], positional: int, hint: Any) -> Callable[[str], Call]:
    """For a function with `**others`: what no parameter names is checked against its annotation."""
    known, decode_raw, decode = _named_call(shape, positional), decoder(dict[str, msgspec.Raw]), decoder(hint)

    def other(name: str, part: msgspec.Raw) -> Any:
        try:
            return decode(bytes(part).decode())
        except msgspec.MsgspecError as error:
            raise misfit(error, name) from None

    def split(payload: str) -> Call:
        args, kwargs = known(payload)
        others = {name: other(name, part) for name, part in decode_raw(payload).items() if name not in shape.__struct_fields__}
        return args, {**kwargs, **others}

    return split
