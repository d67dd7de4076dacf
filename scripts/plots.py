"""Two kinds of plots as SVG text: bars, and quantile curves. Plain text, so that the same figures give the same file everywhere."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 720
COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#66a5c4", "#9a8a1f")
STYLE: Final = """\
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 14px }
  .faint { fill: #59636e; font-size: 12px }
  .grid { stroke: #d1d9e0 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #3d444d } }
</style>
"""


class Bar(NamedTuple):
    """One bar. Bars of one `group` have one colour."""

    label: str
    value: float
    group: int = 0
    note: str = ""


def bars(title: str, unit: str, shown: Sequence[Bar]) -> str:
    """Horizontal bars from zero, each with its value at its end."""
    left, right, top, step = 250, 150, 44, 28
    longest = max(bar.value for bar in shown) or 1.0
    parts = []
    for place, bar in enumerate(shown):
        y, length = top + place * step, (WIDTH - left - right) * bar.value / longest
        note = f'<tspan class="faint" dx="6">{escape(bar.note)}</tspan>'
        parts += [
            f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{escape(bar.label)}</text>',
            f'<rect x="{left}" y="{y}" width="{length:.1f}" height="20" rx="2" fill="{COLOURS[bar.group]}"/>',
            f'<text x="{left + length + 8:.1f}" y="{y + 14}">{number(bar.value)}{note}</text>',
        ]
    return drawing(f"{title} ({unit})", top + len(shown) * step + 10, parts)


def curves(title: str, series: Mapping[str, Sequence[float]]) -> str:
    """Durations in milliseconds by the share of samples that do not exceed them, on a logarithmic scale."""
    left, right, top, height = 60, 20, 44, 240
    low = 10.0 ** math.floor(math.log10(max(1e-3, min(values[0] for values in series.values()))))
    high = 10.0 ** math.ceil(math.log10(max(low * 10, *(values[-1] for values in series.values()))))

    def y(value: float) -> float:
        return top + height * (1 - math.log(max(low, value) / low) / math.log(high / low))

    def x(share: float) -> float:
        return left + (WIDTH - left - right) * share

    parts = []
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        parts += _mark(left, WIDTH - right, y(10.0**power), f"{10.0**power:g} ms")
    for share in (0, 0.25, 0.5, 0.75, 0.95, 1):
        parts.append(f'<text class="faint" x="{x(share):.1f}" y="{top + height + 18}" text-anchor="middle">{share:.0%}</text>')
    for place, (name, values) in enumerate(series.items()):
        points = " ".join(f"{x((step + 1) / len(values)):.1f},{y(value):.1f}" for step, value in enumerate(values))
        colour, legend = COLOURS[place], top + height + 42 + place * 20
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<rect x="{left}" y="{legend - 11}" width="14" height="12" rx="2" fill="{colour}"/>',
            f'<text x="{left + 22}" y="{legend}">{escape(name)}</text>',
        ]
    return drawing(title, top + height + 42 + len(series) * 20, parts)


def drawing(title: str, height: int, parts: Sequence[str]) -> str:
    """The parts under a title."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">\n'
    body = "\n".join([f'<text class="title" x="10" y="24">{escape(title)}</text>', *parts])
    return f"{head}{STYLE}{body}\n</svg>\n"


def number(value: float) -> str:
    """A figure with as many digits as it is worth: 48,312; 97.1; 0.63."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _mark(left: float, right: float, y: float, label: str) -> list[str]:
    return [
        f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
        f'<text class="faint" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>',
    ]
