"""What can be stored as JSON comes back byte for byte; all else is refused at once, whatever its size or shape."""

import json
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmill.domain.errors import InvalidInput, PayloadTooLarge
from workmill.domain.limits import META_BYTES, PAYLOAD_BYTES, PAYLOAD_DEPTH
from workmill.domain.payload import check_json, check_meta

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children),
    max_leaves=20,
)


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "-0",
        "1E2",
        "1.0",
        "9007199254740993",
        "9223372036854775808",
        "1" * 1_000,
        "-" + "1" * 999,
        '{"a":1,"a":2}',
        '{"b":1,"a":2}',
        ' { "spaces" : [ 1 , 2 ] }\n',
        r'"\u0000"',
        r'"\u00e9 \/ \\ \" \b"',
        r'"\ud83e\udd8a"',
        r'"\\ud800"',
        r'"\\\\ud800 \\u"',
        '"🦊 é"',
        '""',
        "1.7976931348623157e308",
        "1e-400",
        '"[[[[{{{{"',
    ],
)
def test_text_that_is_json_is_kept_as_it_came(text: str) -> None:
    assert check_json("payload", text) is text


@given(value=json_values, ascii_only=st.booleans())
def test_whatever_python_can_say_in_json_is_kept(value: object, *, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)

    assert check_json("payload", text) == text


@pytest.mark.parametrize(
    "text", ["", " ", "{", "[1,]", "{'a':1}", "nul", "1 2", "01", '"\n"', '"\x00"', "\ufeff1", "[]" * 65, '"\\x"', "\x00"]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="payload: must be JSON"):
        check_json("payload", text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e400", "-1e400", "[1e999999]", "1" * 400 + ".0"])
def test_a_number_that_no_double_can_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="must not hold"):
        check_json("payload", text)


def test_an_integer_of_more_than_a_thousand_digits_is_refused() -> None:
    with pytest.raises(InvalidInput, match="digits"):
        check_json("payload", "1" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        r'"\ud800"',
        r'"\udc00"',
        r'"\ud800\ud800"',
        r'"\udc00\ud800"',
        r'"\ud800 \udc00"',
        r'"\ud800\n\udc00"',
        r'{"\ud800":1}',
        r'"\\\ud800"',
        '"\ud800"',
    ],
)
def test_a_lone_surrogate_is_refused_raw_or_escaped(text: str) -> None:
    with pytest.raises(InvalidInput, match="lone surrogate"):
        check_json("payload", text)


@pytest.mark.parametrize("text", [nested(PAYLOAD_DEPTH), nested(10) + "", '"' + "[" * 1_000 + '"', "[" + "[]," * 1_000 + "[]]"])
def test_nesting_up_to_the_limit_is_kept(text: str) -> None:
    assert check_json("payload", text) == text


@pytest.mark.parametrize("text", [nested(PAYLOAD_DEPTH + 1), nested(20_000), '{"a":' * 20_000 + "1" + "}" * 20_000, "[" * 500_000])
def test_deeper_nesting_is_refused_without_recursion(text: str) -> None:
    with pytest.raises(InvalidInput, match="nested deeper"):
        check_json("payload", text)


@pytest.mark.parametrize(
    "text",
    ["[]" * 65 + '"' + '\\"' * 500_000, "[]" * 65 + '"' * 900_001, "[]" * 65 + "\\" * 900_000],
    ids=["escapes", "quotes", "backslashes"],
)
def test_hostile_text_is_refused_in_time_that_grows_with_its_length_only(text: str) -> None:
    begun = perf_counter()

    with pytest.raises(InvalidInput):
        check_json("payload", text)

    assert perf_counter() - begun < 5  # it takes milliseconds, or hours


def test_the_limit_counts_bytes_and_is_inclusive() -> None:
    largest = '"' + "é" * ((PAYLOAD_BYTES - 2) // 2) + '"'

    assert check_json("payload", largest) == largest
    with pytest.raises(PayloadTooLarge, match="1048576 bytes"):
        check_json("payload", largest[:-1] + 'é"')


@pytest.mark.parametrize("value", [None, b"{}", 1, {}])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        check_json("payload", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"', ""])
def test_metadata_is_an_object(text: str) -> None:
    with pytest.raises(InvalidInput, match="meta"):
        check_meta("meta", text)


def test_metadata_has_a_limit_of_its_own() -> None:
    with pytest.raises(PayloadTooLarge):
        check_meta("meta", '{"a":"' + "x" * META_BYTES + '"}')
