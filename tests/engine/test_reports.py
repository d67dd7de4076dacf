"""Whatever is raised becomes text that every store takes, and holds nothing afterwards."""

import gc
import weakref
from typing import Any

import pytest

from workmill.domain.errors import Fail
from workmill.domain.limits import ERROR_MESSAGE_CHARACTERS, TRACEBACK_CHARACTERS
from workmill.domain.outcome import ErrorReport
from workmill.engine.reports import report, storable


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def caught(error: BaseException) -> ErrorReport:
    try:
        raise error
    except BaseException as raised:
        return report(raised)


def circular() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def endless() -> BaseException:
    error: BaseException = ValueError("the first")
    for number in range(5_000):
        following = ValueError(number)
        following.__cause__ = error
        error = following
    return error


def deep() -> BaseException:
    def fall() -> None:
        fall()

    try:
        fall()
    except RecursionError as error:
        return error
    raise AssertionError


def test_a_report_names_class_message_and_the_line() -> None:
    told = caught(ValueError("no such file"))

    assert (told.type, told.message) == ("ValueError", "no such file")
    assert "test_reports.py" in told.traceback
    assert told.traceback.endswith("ValueError: no such file\n")


def test_a_foreign_class_is_named_in_full_and_ours_is_not() -> None:
    assert caught(Mute()).type == f"{__name__}.Mute"
    assert caught(Fail("reason")).type == "Fail"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("a\x00b"), "a\\x00b"),
        (ValueError("a\ud800b"), "a\\ud800b"),
        (ValueError("naïve 🙂"), "naïve 🙂"),
        (ValueError(), ""),
        (Mute(), "<its __str__ raised RuntimeError>"),
        (SystemExit(3), "3"),
        (KeyboardInterrupt(), ""),
        (circular(), "first"),
    ],
)
def test_a_message_is_stored_in_a_visible_form(error: BaseException, message: str) -> None:
    told = caught(error)

    assert told.message == message
    assert "\x00" not in told.traceback
    assert told.traceback.encode()


@pytest.mark.parametrize("make", [circular, endless, deep, lambda: ExceptionGroup("many", [ValueError(n) for n in range(9_999)])])
def test_a_report_is_bounded_whatever_the_chain(make: Any) -> None:
    told = caught(make())

    assert 0 < len(told.traceback) <= TRACEBACK_CHARACTERS


def test_a_message_of_fifty_megabytes_is_cut_and_says_so() -> None:
    told = caught(ValueError("x" * 50_000_000))

    assert len(told.message) < ERROR_MESSAGE_CHARACTERS + 50
    assert "49996000 characters left out" in told.message
    assert len(told.traceback) <= TRACEBACK_CHARACTERS


def test_a_long_traceback_keeps_its_beginning_and_its_end() -> None:
    told = caught(endless())

    assert told.traceback.startswith("ValueError")
    assert "characters left out" in told.traceback
    assert told.traceback.endswith("ValueError: 4999\n")


def test_after_the_report_the_frames_of_the_error_and_of_its_causes_are_free() -> None:
    class Big:
        pass

    seen: list[Any] = []
    kept: list[BaseException] = []

    def inner() -> None:
        big = Big()
        seen.append(weakref.ref(big))
        raise ValueError("inner")

    def outer() -> None:
        big = Big()
        seen.append(weakref.ref(big))
        try:
            inner()
        except ValueError as error:
            raise RuntimeError("outer") from error

    gc.disable()
    try:
        outer()
    except RuntimeError as error:
        kept.append(error)
        report(error)
    gc.enable()

    assert [ref() for ref in seen] == [None, None]
    assert kept[0].__traceback__ is None


def test_an_error_that_is_raised_again_and_again_does_not_grow() -> None:
    the_one = ValueError("a module's own")

    reports = [caught(the_one) for _ in range(50)]

    assert len({told.traceback for told in reports}) == 1


def test_plain_text_passes_unchanged() -> None:
    text = "plain"

    assert storable(text) is text
