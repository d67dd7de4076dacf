"""Fill docs/performance.md and draw its plots from results/: no figure of that page is typed. `--check` only compares."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from pages import ROOT, publish
from plots import Bar, bars, curves, number
from workmill.bench.result import Judged, Result

RESULTS: Final = ROOT / "results"
PAGE: Final = ROOT / "docs" / "performance.md"
PLOTS: Final = ROOT / "docs" / "performance"
PART: Final = re.compile(r"(<!-- (?P<name>\w+):begin -->\n).*?(<!-- (?P=name):end -->)", re.DOTALL)

NOTHING: Final = "Not measured.\n"

Results = Mapping[str, Result]


def load(folder: Path = RESULTS) -> dict[str, Result]:
    """Every result that is kept, by name."""
    return {file.stem: msgspec.json.decode(file.read_bytes(), type=Result) for file in sorted(folder.glob("*.json"))}


def of(results: Results, bench: str, store: str = "sqlite") -> dict[str, Result]:
    return {name: result for name, result in results.items() if result.bench == bench and result.store == store}


def table(columns: str, rows: Iterable[Iterable[str]]) -> str:
    """A table whose columns are named in one text, separated by bars; those that end in a colon are figures."""
    titles = [title.strip() for title in columns.split("|")]
    rule = ["---:" if title.endswith(":") else "---" for title in titles]
    lines = [[title.rstrip(":") for title in titles], rule, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def quantiles(result: Result) -> list[str]:
    return [number(value) for value in (result.p50_ms, result.p95_ms, result.p99_ms, result.max_ms)]


def figures(result: Result, *names: str) -> list[str]:
    return [number(result.figures[name]) for name in names]


def command(result: Result) -> str:
    return f"`{result.command}`"


def machine(results: Results) -> str:
    """Where and with what the figures were made; one line when all results agree."""
    places: dict[tuple[str, ...], list[str]] = {}
    for name, result in results.items():
        places.setdefault(place(result), []).append(name)
    named = {facts: "all" if len(names) == len(results) else ", ".join(names) for facts, names in places.items()}
    columns = "machine | system | Python | store | durability | Workmill | commit | measured | results"
    return table(columns, [[*facts, names] for facts, names in named.items()])


def place(result: Result) -> tuple[str, ...]:
    there = result.environment
    memory = "" if there.memory_gib is None else f", {there.memory_gib:g} GiB"
    commit = f"`{there.commit[:12]}`" if there.commit else "unknown"
    return (
        f"{there.machine}, {there.cpus} cores{memory}",
        there.system,
        there.python,
        f"{result.database or f'SQLite {there.sqlite}'}{WITH[result.dispatch]}",
        ", ".join(f"{name} {value}" for name, value in result.durability.items()),
        result.version,
        f"{commit} with changes" if there.dirty else commit,
        f"{there.date:%Y-%m-%d}",
    )


def goals(results: Results) -> str:
    """Everything that is asked, beside what was measured."""
    judged = [(name, goal) for name, result in results.items() for goal in result.goals]
    columns = "what is asked | measured: | bound: | | result"
    return table(columns, [[goal.what, number(goal.measured), bound(goal), verdict(goal), link(name)] for name, goal in judged])


def bound(goal: Judged) -> str:
    return f"{goal.sense} {goal.bound:g}"


def verdict(goal: Judged) -> str:
    return "met" if goal.met else "**short**"


def link(name: str) -> str:
    return f"[{name}](../results/{name}.json)"


def drain(results: Results) -> str:
    rows = [
        [command(result), number(result.jobs_per_second), *figures(result, "ceiling_exchange", "of_ceiling"), *quantiles(result)]
        for result in results.values()
    ]
    return table("command | jobs/s: | ceiling: | of it: | held p50 ms: | p95: | p99: | max:", rows)


def enqueue(results: Results) -> str:
    names = ("many_of_ceiling", "one_thread_per_second", "threads_per_second", "threads_gain")
    rows = [[command(result), number(result.jobs_per_second), *figures(result, *names), *quantiles(result)] for result in results.values()]
    columns = "command | `enqueue_many`/s: | of the ceiling: | one thread/s: | eight threads/s: | gain: | call p50 ms: | p95: | p99: | max:"
    return table(columns, rows)


def latency(results: Results) -> str:
    rows = [[command(result), number(result.jobs_per_second), *quantiles(result)] for result in results.values()]
    return table("command | jobs/s: | p50 ms: | p95: | p99: | max:", rows)


def priority(results: Results) -> str:
    rows = [
        [command(result), *quantiles(result), *figures(result, "low_p50_ms", "high_of_low", "out_of_order")] for result in results.values()
    ]
    return table("command | urgent p50 ms: | p95: | p99: | max: | others p50 ms: | ratio: | out of order:", rows)


def workloads(results: Results) -> str:
    shapes = ("1x1", "1x4", "1x8", "2x1")
    rows = [[kind, *figures(result, *(f"{kind}_{shape}" for shape in shapes))] for result in results.values() for kind in KINDS]
    return table("jobs/s of | one thread: | four threads: | eight threads: | two processes of one thread:", rows)


KINDS: Final = ("noop", "sleep", "cpu_hash")


def scale(results: Results) -> str:
    rows = [
        [store, *shown]
        for result in results.values()
        for store, shown in (
            ("empty", [*figures(result, "empty_p50_ms", "empty_p99_ms")]),
            ("full", [number(result.p50_ms), number(result.p99_ms)]),
        )
    ]
    return table("store | claim p50 ms: | p99:", rows)


def idle(results: Results) -> str:
    names = ("idle_mib", "idle_cpu_percent", "growth_mib")
    rows = [[command(result), *figures(result, *names), *quantiles(result)] for result in results.values()]
    return table("command | memory MiB: | % of a core: | growth MiB: | wake-up p50 ms: | p95: | p99: | max:", rows)


def postgres_drain(results: Results) -> str:
    rows = [
        [*ran(result), number(result.jobs_per_second), *figures(result, "ceiling_exchange", "of_ceiling"), *quantiles(result)]
        for result in results.values()
    ]
    return table("command | dispatch | jobs/s: | ceiling: | of it: | held p50 ms: | p95: | p99: | max:", rows)


def postgres_latency(results: Results) -> str:
    rows = [[*ran(result), number(result.jobs_per_second), *quantiles(result)] for result in results.values()]
    return table("command | dispatch | jobs/s: | p50 ms: | p95: | p99: | max:", rows)


def postgres_enqueue(results: Results) -> str:
    names = ("many_of_ceiling", "one_thread_per_second", "threads_per_second", "threads_gain")
    rows = [[command(result), number(result.jobs_per_second), *figures(result, *names), *quantiles(result)] for result in results.values()]
    columns = "command | `enqueue_many`/s: | of the ceiling: | one thread/s: | all threads/s: | gain: | call p50 ms: | p95: | p99: | max:"
    return table(columns, rows)


def burst(results: Results) -> str:
    names = ("mean_wait_ms", "submitted_per_second", "of_beside", "wrong_jobs", "wrong_samples", "heads_apart", "heads_left")
    rows = [[*ran(result), number(result.jobs_per_second), *where_measured(result, *names)] for result in results.values()]
    columns = (
        "command | dispatch | jobs/s: | mean wait ms: | submitted/s: | of fewer processes: | wrong jobs: | wrong samples: | apart: | left:"
    )
    return table(columns, rows)


def samples(results: Results) -> str:
    """How the largest bursts went, moment by moment."""
    names = ("seconds", "queued", "running", "succeeded", "total", "heads")
    largest = max(result.curves["total"][0] for result in results.values())
    rows = [
        [result.dispatch, *(number(column[moment]) if column else "" for column in map(result.curves.get, names))]
        for result in results.values()
        if result.curves["total"][0] == largest
        for moment in range(0, len(result.curves["seconds"]), 3)
    ]
    return table("dispatch | seconds: | queued: | running: | succeeded: | in all: | ids in the dispatcher:", rows)


def cost(results: Results) -> str:
    names = ("statements", "commits", "wal_bytes", "dead_tuples")
    rows = [
        [command(result), what, *where_measured(result, *(f"{part}_{name}" for name in names))]
        for result in results.values()
        for part, what in (("submit", "submission"), ("run", "run"), ("job", "both"))
    ]
    return table("command | of a job | statements: | commits: | bytes of log: | dead row versions:", rows)


def rest(results: Results) -> str:
    names = ("statements_per_second", "commits_per_second")
    rows = [[*ran(result), *figures(result, *names), *quantiles(result)] for result in results.values()]
    return table("command | dispatch | statements/s: | commits/s: | wake-up p50 ms: | p95: | p99: | max:", rows)


def ran(result: Result) -> list[str]:
    return [command(result), result.dispatch]


def where_measured(result: Result, *names: str) -> list[str]:
    return [number(result.figures[name]) if name in result.figures else "" for name in names]


def rounds(results: Results) -> str:
    """Every run of every benchmark, so that a median hides nothing."""
    rows = [[link(name), *shown] for name, result in results.items() for shown in [spread_of(result)]]
    return table("result | jobs/s of each run: | p95 ms of each run:", rows)


def spread_of(result: Result) -> list[str]:
    return [" · ".join(number(one[name]) for one in result.rounds) for name in ("jobs_per_second", "p95_ms")]


SECTIONS: Final[Mapping[str, Callable[[Results], str]]] = {
    "drain": drain,
    "enqueue": enqueue,
    "latency": latency,
    "priority": priority,
    "workloads": workloads,
    "scale": scale,
    "idle": idle,
}
"""The parts of the page that show the results of one benchmark on SQLite, by its name."""
ON_POSTGRES: Final[Mapping[str, tuple[str, Callable[[Results], str]]]] = {
    "postgres_drain": ("drain", postgres_drain),
    "postgres_burst": ("burst", burst),
    "postgres_samples": ("burst", samples),
    "postgres_enqueue": ("enqueue", postgres_enqueue),
    "postgres_latency": ("latency", postgres_latency),
    "postgres_rest": ("rest", rest),
    "postgres_cost": ("cost", cost),
    "postgres_scale": ("scale", scale),
}
"""The parts that show those of one on PostgreSQL, and which one."""
WITH: Final = {"direct": "", "redis": ", with Redis"}


def parts(results: Results) -> dict[str, str]:
    """The generated parts of the page, by name. A benchmark without results says so."""
    made = {name: render(found) if (found := of(results, name)) else NOTHING for name, render in SECTIONS.items()}
    for name, (bench, render) in ON_POSTGRES.items():
        made[name] = render(found) if (found := of(results, bench, "postgresql")) else NOTHING
    return {"machine": machine(results), "goals": goals(results), "rounds": rounds(results), **made}


def fill(page: str, made: Mapping[str, str]) -> str:
    """The page with every part between its markers `<!-- name:begin -->` and `<!-- name:end -->` made anew."""
    return PART.sub(lambda found: f"{found[1]}\n{made[found['name']]}\n{found[3]}", page)


def plots(results: Results) -> dict[str, str]:
    """The plots, by file name."""
    drains, latencies = of(results, "drain"), of(results, "latency")
    scales = {f"{store} store": result.curves[f"{store}_ms"] for result in of(results, "scale").values() for store in ("empty", "full")}
    urgent = {
        label: result.curves[key]
        for result in of(results, "priority").values()
        for label, key in (("urgent jobs", "high_ms"), ("the others", "low_ms"))
    }
    made = {
        "drain.svg": drains and bars("Jobs that do nothing", "jobs a second", drain_bars(drains)),
        "latency.svg": latencies and curves("From the intended send time to the start of the handler", late(latencies)),
        "priority.svg": urgent and curves("Wait under saturation", urgent),
        "scale.svg": scales and curves("One transaction that finishes a batch and claims the next", scales),
    }
    return {name: text for name, text in made.items() if text}


def drain_bars(drains: Results) -> list[Bar]:
    """Each drain under its own ceiling."""
    pairs = [
        (
            Bar(f"{name}: bare table", result.figures["ceiling_exchange"], group=4),
            Bar(name, result.jobs_per_second, note=f"{result.figures['of_ceiling']:.0%} of it"),
        )
        for name, result in drains.items()
    ]
    return [bar for pair in pairs for bar in pair]


def late(latencies: Results) -> dict[str, list[float]]:
    return {name: result.curves["late_ms"] for name, result in latencies.items()}


def main() -> None:
    results = load()
    if not results:
        raise SystemExit("results/ is empty: run make bench")
    pages = {PLOTS / name: text for name, text in plots(results).items()}
    pages[PAGE] = fill(PAGE.read_text(encoding="utf-8"), parts(results))
    PLOTS.mkdir(exist_ok=True)
    publish(pages)


if __name__ == "__main__":
    main()
