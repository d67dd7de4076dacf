"""Results: what is stored of what a handler returned, and what a caller gets back."""

import dataclasses
import datetime as dt
import logging
import math
from typing import Any

import pytest

from workmill import RawPayload, UnstorableResult
from workmill.results import read_plain, result_decoder, storable


@dataclasses.dataclass
class Report:
    title: str
    at: dt.datetime


class Mute:
    def __repr__(self) -> str:
        raise ZeroDivisionError


NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def reports() -> Report: ...  # type: ignore[empty-body]
def counts() -> int: ...  # type: ignore[empty-body]
def echoes() -> RawPayload: ...  # type: ignore[empty-body]
def undeclared(): ...  # type: ignore[no-untyped-def]
def late() -> "NotDefinedAnywhere": ...  # type: ignore[name-defined]  # noqa: F821
def generic() -> Mute: ...  # type: ignore[empty-body]


def test_none_is_stored_as_no_result() -> None:
    assert storable(None) is None
    assert result_decoder(counts)(None) is None


def test_a_result_comes_back_as_its_declared_type() -> None:
    report = Report("sales", NOON)

    assert result_decoder(reports)(storable(report)) == report


@pytest.mark.parametrize("function", [undeclared, late, generic])
def test_a_result_without_a_usable_annotation_comes_back_as_plain_json(function: Any) -> None:
    assert result_decoder(function)(storable(Report("sales", NOON))) == {"title": "sales", "at": "2026-03-01T12:00:00Z"}


def test_a_result_that_is_not_of_its_declared_type_comes_back_as_plain_json() -> None:
    assert result_decoder(counts)('{"not": "a count"}') == {"not": "a count"}


def test_a_raw_result_is_stored_and_read_as_the_exact_text() -> None:
    text = '{"a": 1E2, "b": -0, "b": 1}'

    assert storable(RawPayload(text)) == text
    assert result_decoder(echoes)(text) == text


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({"loss": [0.1, math.nan]}, "result.loss[1]: must not hold NaN or Infinity"),
        ({"text": "\ud800"}, "result.text: must not hold a lone surrogate"),
        ("x" * (1 << 20), "result: must be at most 1048576 bytes"),
        ([object()], "result[0]: must have a JSON form (object has none)"),
        (RawPayload("{"), "result: must be JSON"),
        (Mute(), "result: must have a JSON form (Mute has none)"),
    ],
)
def test_a_result_that_cannot_be_stored_is_stood_in_for_and_reading_it_says_why(value: Any, rule: str) -> None:
    text = storable(value)

    with pytest.raises(UnstorableResult) as caught:
        read_plain(text)

    assert caught.value.rule.startswith(rule)


def test_the_stand_in_shows_how_the_result_looked_and_stays_small() -> None:
    text = storable("\ud800" + "x" * (1 << 20)) or ""

    with pytest.raises(UnstorableResult, match=r"surrogate") as caught:
        result_decoder(counts)(text)

    assert caught.value.text.startswith("'\\ud800xxx")
    assert len(text) < 10_000


def test_a_result_that_cannot_be_stored_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        storable(math.inf)

    assert "a result could not be stored: result: must not hold NaN or Infinity" in caplog.text


def test_a_handler_that_returns_a_coroutine_has_failed_and_is_told_why() -> None:
    async def work() -> None: ...

    with pytest.raises(TypeError, match=r"returned a coroutine: declare it with async def"):
        storable(work())
