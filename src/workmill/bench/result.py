"""What a benchmark hands in: its figures, every round of them, what was asked of it, and where it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from workmill.bench.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workmill.bench.samples import Spread


class Round(NamedTuple):
    """One run of a benchmark: its figures by name (`jobs_per_second` and a `Spread` among them), and durations for a plot."""

    figures: dict[str, float]
    curves: dict[str, list[float]] = {}  # noqa: RUF012 - never written to


class Place(NamedTuple):
    """On what a benchmark runs, as far as what is asked of it depends on that."""

    store: Literal["sqlite", "postgresql"] = "sqlite"
    dispatch: Literal["direct", "redis"] = "direct"


class Goal(NamedTuple):
    """What is asked of a figure, in words and as a bound."""

    what: str
    figure: str
    sense: Literal["≥", "≤"]
    bound: float


def floor_and_goal(what: str, figure: str, sense: Literal["≥", "≤"], floor: float, goal: float | None = None) -> list[Goal]:
    """What must be reached, and what is aimed at."""
    asked = Goal(what, figure, sense, floor)
    return [asked] if goal is None else [asked, asked._replace(what=f"{what} (goal)", bound=goal)]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A goal beside what was measured."""

    what: str
    figure: str
    sense: Literal["≥", "≤"]
    bound: float
    measured: float
    met: bool


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints and `results/` keeps. Figures are medians of the rounds, but for the maximum: it is the highest of all."""

    bench: str
    command: str
    jobs_per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    durations: str
    """What the quantiles are quantiles of."""
    store: str
    database: str = ""
    """Its kind and version."""
    dispatch: str = "direct"
    version: str
    durability: dict[str, Any]
    goals: list[Judged]
    figures: dict[str, float]
    rounds: list[dict[str, float]]
    curves: dict[str, list[float]]
    environment: Environment


def judge(goals: Sequence[Goal], figures: Mapping[str, float]) -> list[Judged]:
    """Each goal beside its figure."""
    return [Judged(**goal._asdict(), measured=(measured := figures[goal.figure]), met=_meets(measured, goal)) for goal in goals]


def _meets(measured: float, goal: Goal) -> bool:
    return measured >= goal.bound if goal.sense == "≥" else measured <= goal.bound


def figures_of(jobs_per_second: float, durations: Spread, **others: float) -> dict[str, float]:
    """The figures that every round has, and those that only this benchmark has."""
    return {"jobs_per_second": round(jobs_per_second, 1), **durations._asdict(), **others}
