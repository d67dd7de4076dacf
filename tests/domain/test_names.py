"""Names never need quoting anywhere, and what is refused is told the rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmill.domain.errors import InvalidInput
from workmill.domain.names import RULE, check_free_name, check_name

REFUSED = [
    "",
    "a/b",
    "..",
    ".a",
    "-a",
    "_a",
    ":a",
    "a b",
    " a",
    "a\n",
    "a\x00",
    "é",
    "🦊",
    "x" * 101,
    "x" * 300,
    "a'b",
    'a"b',
    "a%",
    "a;b",
]


@pytest.mark.parametrize("name", ["a", "0", "mail", "A.b_c:d-e", "x" * 64, "x" * 100, "workmill.webhooks"])
def test_a_name_of_letters_digits_and_four_marks_is_kept(name: str) -> None:
    assert check_name("queue", name) == name


@pytest.mark.parametrize("name", [*REFUSED, None, 1, b"mail", ["mail"], True])
def test_another_name_is_refused_with_the_field_and_the_rule(name: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_name("queue", name)

    assert refusal.value.field == "queue"
    assert RULE in refusal.value.rule


@pytest.mark.parametrize("name", ["workmill.", "workmill.webhook", "workmill.webhooks"])
def test_our_own_names_cannot_be_submitted(name: str) -> None:
    with pytest.raises(InvalidInput, match="reserved"):
        check_free_name("type", name)


@pytest.mark.parametrize("name", ["workmill", "workmillx", "Workmill.a", "a.workmill."])
def test_names_that_only_resemble_ours_are_free(name: str) -> None:
    assert check_free_name("type", name) == name


@given(st.text(max_size=110))
def test_any_text_is_a_name_or_is_refused_and_nothing_else(text: str) -> None:
    allowed = text.isascii() and 1 <= len(text) <= 100 and text[0].isalnum() and all(c.isalnum() or c in "._:-" for c in text)

    try:
        check_name("tag", text)
    except InvalidInput:
        assert not allowed
    else:
        assert allowed
