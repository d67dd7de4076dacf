"""From a call to a payload and back: what fits, and what is refused with which words."""

import dataclasses
import datetime as dt
import enum
import math
import pathlib
import random
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from workmill import ConfigurationError, InvalidInput, PayloadTooLarge, RawPayload
from workmill.arguments import Arguments


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


class Options(TypedDict, total=False):
    depth: int


class Box(msgspec.Struct):
    side: int


@dataclasses.dataclass
class Person:
    name: str
    age: int = 0
    friends: list["Person"] = dataclasses.field(default_factory=list)


class User(BaseModel):
    email: str
    born: dt.date
    score: float = 0.0
    nick: str = Field(default="", alias="nickname")


class Stranger:
    pass


def send(to: str, count: int = 3, *, urgent: bool = False) -> None:
    """Nothing."""


def anything(value: Any) -> None:
    """Nothing."""


def bare(value, other=5):  # type: ignore[no-untyped-def]
    """Nothing."""


def raw(payload: RawPayload) -> None:
    """Nothing."""


def open_ended(first: int, /, second: int, **others: int) -> None:
    """Nothing."""


def there_and_back(annotation: Any, value: Any) -> Any:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    arguments = Arguments(function)
    args, _ = arguments.call(arguments.payload((value,), {}))
    return args[0]


def refusal(function: Any, *args: Any, **kwargs: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        Arguments(function).payload(args, kwargs)
    return caught.value


NOON = dt.datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 2**70),
        (int, -(2**63)),
        (float, 0.1),
        (bool, True),
        (str, "naïve \x00 “text”"),
        (str | None, None),
        (int | str, "5"),
        (bytes, b"\x00\xff"),
        (Decimal, Decimal("1.10")),
        (uuid.UUID, uuid.UUID(int=7)),
        (dt.datetime, NOON),
        (dt.date, NOON.date()),
        (dt.timedelta, dt.timedelta(days=1, microseconds=5)),
        (Colour, Colour.RED),
        (Literal["a", 5], 5),
        (Person, Person("Ann", 30, [Person("Bob")])),
        (list[Person] | None, [Person("Ann")]),
        (Box, Box(3)),
        (Point, Point(1, 2)),
        (Options, {"depth": 3}),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (dict[int, list[uuid.UUID]], {5: [uuid.UUID(int=1)]}),
        (User, User(email="a@example.com", born=dt.date(1990, 1, 1), nickname="a")),
        (User | None, None),
        (list[User], [User(email="b@example.com", born=dt.date(1990, 1, 1))]),
        (pathlib.PurePosixPath, pathlib.PurePosixPath("/a/b")),
        (Annotated[int, msgspec.Meta(ge=1)], 1),
        (object, {"any": [1, None]}),
        (Any, [1, 2.5, {"a": None}]),
    ],
)
def test_a_value_of_the_declared_type_arrives_as_it_was_sent(annotation: Any, value: Any) -> None:
    assert there_and_back(annotation, value) == value


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "message"),
    [
        (send, (), {}, "to: is missing; it takes to, count, urgent"),
        (send, ("a",), {"to": "b"}, "to: must be given once, by position or by name"),
        (send, ("a", 1, True), {}, "arguments: must be at most 2 by position (got 3); it takes to, count, urgent"),
        (send, ("a",), {"cc": 1}, "cc: is no parameter; it takes to, count, urgent"),
        (send, (5,), {}, "to: must be str (got int)"),
        (send, ("a", True), {}, "count: must be int (got bool)"),
        (send, ("a", 1.0), {}, "count: must be int (got float)"),
        (send, ("a", "1"), {}, "count: must be int (got str)"),
        (send, ("a",), {"urgent": 1}, "urgent: must be bool (got int)"),
        (send, ("\ud800",), {}, "to: must not hold a lone surrogate"),
        (anything, ({"k": [1, math.nan]},), {}, "value.k[1]: must not hold NaN or Infinity"),
        (anything, (-math.inf,), {}, "value: must not hold NaN or Infinity"),
        (anything, ([{"a": Stranger()}],), {}, "value[0].a: must have a JSON form (Stranger has none)"),
        (anything, (Person("\udfff"),), {}, "value.name: must not hold a lone surrogate"),
        (anything, (Box("\udfff"),), {}, "value.side: must not hold a lone surrogate"),  # type: ignore[arg-type]
        (anything, ({(1, 2): 3},), {}, "value: must have a JSON form (dict has none)"),
        (anything, (10**1_000,), {}, "payload: must not hold a number of more than 1000 digits"),
        (anything, (10**5_000,), {}, "value: must have a JSON form (int has none"),
        (open_ended, (1, 2), {"third": "x"}, "third: must be int (got str)"),
        (raw, ("{",), {}, "payload: must be JSON"),
        (raw, ("NaN",), {}, "payload: must not hold NaN"),
        (raw, (b"{}",), {}, "payload: must be one JSON text"),
        (raw, (), {}, "payload: must be one JSON text"),
    ],
)
def test_an_argument_that_does_not_fit_is_named_with_its_rule(function: Any, args: Any, kwargs: Any, message: str) -> None:
    assert str(refusal(function, *args, **kwargs)).startswith(message)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (list[Person], [{"name": "Ann"}, {"name": 5}], "value[1].name: must be str (got int)"),
        (Person, {"age": 5}, "value: must have name"),
        (User, {"email": "a", "born": "yesterday"}, "value.born: input should be a valid date"),
        (list[User], [{"born": "1990-01-01"}], "value[0].email: field required"),
        (Annotated[int, msgspec.Meta(ge=1)], 0, "value: expected `int` >= 1"),
        (Colour, "blue", "value: invalid enum value 'blue'"),
        (float, "5", "value: must be float (got str)"),
        (float | None, math.nan, "value: must not hold NaN or Infinity"),
        (dt.datetime, "tomorrow", "value: invalid RFC3339"),
        (pathlib.PurePath, 5, "value: must be str (got int)"),
    ],
)
def test_a_refusal_names_the_path_inside_the_argument(annotation: Any, value: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        there_and_back(annotation, value)

    assert str(caught.value).startswith(message)


def test_a_number_that_is_not_one_is_found_inside_models_and_structs() -> None:
    endless = User(email="a", born=dt.date(1990, 1, 1), score=math.inf)

    assert str(refusal(anything, {"users": [endless]})) == "value.users[0]: must not hold NaN or Infinity"


def test_a_value_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)

    assert "must not be nested deeper than 64, or in itself" in str(refusal(anything, ring))


def test_a_value_nested_deeper_than_64_is_refused() -> None:
    deep: Any = 1
    for _ in range(64):
        deep = [deep]

    assert "nested deeper than 64" in str(refusal(anything, deep))


def test_a_payload_over_the_limit_is_refused() -> None:
    with pytest.raises(PayloadTooLarge):
        Arguments(anything).payload(("x" * (1 << 20),), {})


def test_the_text_null_in_a_string_is_no_obstacle() -> None:
    assert there_and_back(Any, "null and nullable") == "null and nullable"


def test_positions_are_bound_to_names() -> None:
    assert Arguments(send).payload(("a", 1), {"urgent": True}) == '{"to":"a","count":1,"urgent":true}'


def test_defaults_are_not_stored_and_come_from_the_function_that_runs() -> None:
    arguments = Arguments(send)

    assert arguments.payload(("a",), {}) == '{"to":"a"}'
    assert arguments.call('{"to":"a"}') == (("a", 3), {"urgent": False})


def test_a_default_is_the_very_object_of_the_function() -> None:
    shared: list[int] = [1]

    def function(items: list[int] = shared) -> None: ...

    (items,), _ = Arguments(function).call("{}")

    assert items is shared


def test_a_parameter_without_annotation_takes_any_json() -> None:
    assert Arguments(bare).call('{"value":[1,{"a":null}]}') == (([1, {"a": None}], 5), {})


def test_a_raw_payload_is_the_exact_text() -> None:
    text = '{"a": 1E2, "a": -0, "big": 123456789012345678901234567890}'
    arguments = Arguments(raw)

    assert arguments.payload((text,), {}) == text
    assert arguments.call(text) == ((text,), {})
    assert isinstance(arguments.call(text)[0][0], RawPayload)


def test_positional_only_parameters_and_open_keywords_have_names_in_the_payload() -> None:
    arguments = Arguments(open_ended)

    payload = arguments.payload((1,), {"second": 2, "third": 3})

    assert payload == '{"first":1,"second":2,"third":3}'
    assert arguments.call(payload) == ((1, 2), {"third": 3})


@pytest.mark.parametrize("payload", ["[]", "null", "5", '"text"'])
def test_a_payload_that_is_no_object_does_not_fit_a_function(payload: str) -> None:
    with pytest.raises(InvalidInput, match=r"payload: must be an object \(got \w+\); it takes to, count, urgent"):
        Arguments(send).call(payload)


@pytest.mark.parametrize("payload", ["", "{", '{"to": "a"} x', '{"to": "a", "count": NaN}', "[" * 100_000])
def test_a_corrupted_payload_is_refused_and_nothing_else_breaks(payload: str) -> None:
    with pytest.raises(InvalidInput):
        Arguments(send).call(payload)


def test_a_payload_of_100_000_brackets_is_refused_and_nothing_else_breaks() -> None:
    with pytest.raises(InvalidInput):
        Arguments(anything).call('{"value":' + "[" * 100_000)


def test_the_last_of_duplicate_keys_counts() -> None:
    assert Arguments(send).call('{"to":"a","to":"b"}')[0] == ("b", 3)


def takes_a_list(*items: int) -> None: ...
def takes_a_stranger(value: Stranger) -> None: ...
def takes_a_mixed_union(value: User | int) -> None: ...
def takes_raw_and_more(payload: RawPayload, other: int) -> None: ...
def takes_self(self: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (takes_a_list, "parameter *items: a payload has names, not positions; take a list instead"),
        (takes_a_stranger, "parameter value: <class '.*Stranger'> has no JSON form"),
        (takes_a_mixed_union, "parameter value: Type unions"),
        (takes_raw_and_more, "parameter payload: a RawPayload must be the only parameter"),
        (takes_self, "parameter self: a job is a function, not a method"),
    ],
)
def test_a_parameter_that_no_payload_can_carry_is_refused_when_it_is_declared(function: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Arguments(function)

    assert str(caught.value).startswith(message.split("<", maxsplit=1)[0])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_any_json_value_arrives_as_it_was_sent(value: Any) -> None:
    assert there_and_back(Any, value) == value


@given(st.text(alphabet=st.characters(categories=("Cs",)), min_size=1))
def test_a_lone_surrogate_is_refused_in_keys_and_in_values(text: str) -> None:
    assert "lone surrogate" in str(refusal(anything, {text: 1}))
    assert "lone surrogate" in str(refusal(anything, [text]))


def test_random_bytes_are_no_payload(rng: random.Random) -> None:
    call = Arguments(send).call
    texts = [rng.randbytes(rng.randrange(40)).decode("latin-1") for _ in range(500)]

    refused = [text for text in texts if _refuses(call, text)]

    assert refused == texts


def _refuses(call: Any, text: str) -> bool:
    try:
        call(text)
    except InvalidInput:
        return True
    return False
