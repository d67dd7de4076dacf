"""What people read: escaped text, spans of time, and tables that fit."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.text import Text

from workmill.cli.progress import bar
from workmill.cli.screen import Column, table
from workmill.cli.wording import ago, span, visible, visible_lines

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COLUMNS = (Column("ID"), Column("TYPE", least=6), Column("N", right=True, rank=1), Column("NOTE", least=8, rank=2))
ROW = ("0" * 36, "send_a_very_long_mail", "12", "an explanation that takes some room")


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("straße 日本", "straße 日本"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_hostile_text_is_shown_and_not_obeyed(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_traceback_keeps_its_lines_and_nothing_else() -> None:
    assert visible_lines("a\n\tb\x07\nc") == ["a", "    b\\x07", "c"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0004, "0.4ms"),
        (0.0123, "12ms"),
        (0.9996, "1.0s"),
        (1.94, "1.9s"),
        (42.4, "42s"),
        (59.7, "1m"),
        (125, "2m 5s"),
        (3_600, "1h"),
        (11_040, "3h 4m"),
        (183_600, "2d 3h"),
        (-5, "-5.0s"),
    ],
)
def test_a_span_is_short_and_in_the_units_that_options_take(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_moment_is_told_from_now() -> None:
    assert ago(NOON - timedelta(seconds=12), NOON) == "12s ago"
    assert ago(NOON + timedelta(minutes=5), NOON) == "in 5m"
    assert ago(NOON, NOON) == "now"


def test_a_table_without_a_terminal_cuts_nothing_and_ends_no_line_in_blanks() -> None:
    header, row = plain(table(COLUMNS, [ROW], None))

    assert row == f"{'0' * 36}  send_a_very_long_mail  12  an explanation that takes some room"
    assert header == f"{'ID':36}  {'TYPE':21}   N  NOTE"


@pytest.mark.parametrize("room", [60, 80, 100, 120])
def test_a_table_keeps_to_the_terminal_and_its_ids_whole(room: int) -> None:
    lines = plain(table(COLUMNS, [ROW], room))

    assert max(len(line) for line in lines) <= room
    assert lines[1].startswith("0" * 36)


def test_what_does_not_fit_is_cut_with_an_ellipsis_and_then_left_out() -> None:
    assert plain(table(COLUMNS, [ROW], 80))[1] == f"{'0' * 36}  send_a_very_long_…  12  an explanation th…"
    assert plain(table(COLUMNS, [ROW], 50))[1] == f"{'0' * 36}  send_a_…  12"
    assert plain(table(COLUMNS, [ROW], 46))[1] == f"{'0' * 36}  send_a_…"


def test_a_table_measures_wide_characters_as_the_terminal_does() -> None:
    lines = plain(table((Column("A"), Column("B")), [("日本", "x"), ("ab", "y")], None))

    assert lines == ["A     B", "日本  x", "ab    y"]


def test_a_cell_with_escapes_cannot_break_its_line() -> None:
    lines = plain(table((Column("A"),), [("x\n\x1b[2J",)], None))

    assert lines == ["A", "x\\n\\x1b[2J"]


def test_a_wrapped_cell_goes_on_below_and_loses_nothing() -> None:
    columns = (Column("ID"), Column("ERROR", least=10, wrapped=True))

    lines = plain(table(columns, [("1", "ValueError: no such file or directory"), ("2", "x" * 25)], 20))

    assert lines == ["ID  ERROR", "1   ValueError: no", "    such file or", "    directory", "2   " + "x" * 16, "    " + "x" * 9]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("total", "drawn"), [(0, False), (3, True)])
def test_a_bar_is_drawn_only_when_there_is_something_to_do(*, total: int, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")

    with bar("cancel jobs", total) as advance:
        advance(1)

    assert (terminal.getvalue() != "") is drawn
