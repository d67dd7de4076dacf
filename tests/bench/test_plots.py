"""Plots are well-formed SVG that the same figures always give."""

from xml.etree import ElementTree as ET

from plots import Bar, bars, curves, number

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_values() -> None:
    drawn = ET.fromstring(bars("Speed", "jobs/s", [Bar("a & b", 100), Bar("c", 50, group=1)]))  # noqa: S314 - drawn above

    first, second = (float(rect.attrib["width"]) for rect in drawn.iter(f"{SVG}rect"))
    assert first == 2 * second


def test_a_curve_has_a_point_for_each_value_and_falls_never() -> None:
    drawn = ET.fromstring(curves("Wait", {"here": [0.5, 1, 10], "there": [2, 3, 4]}))  # noqa: S314 - drawn above

    lines = [line.attrib["points"].split() for line in drawn.iter(f"{SVG}polyline")]
    heights = [[float(point.split(",")[1]) for point in line] for line in lines]
    assert [len(line) for line in lines] == [3, 3]
    assert heights == [sorted(line, reverse=True) for line in heights]


def test_names_are_text_and_never_markup() -> None:
    assert "<script>" not in bars("<script>", "<script>", [Bar("<script>", 1, note="<script>")])
    assert "<script>" not in curves("<script>", {"<script>": [1.0]})


def test_a_figure_has_as_many_digits_as_it_is_worth() -> None:
    assert [number(value) for value in (48_312.4, 97.14, 0.634, 0)] == ["48,312", "97.1", "0.63", "0.00"]
