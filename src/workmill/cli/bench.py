"""`workmill bench`: what this machine can do, on a store of its own."""

from __future__ import annotations

import shlex
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from click.core import ParameterSource
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from workmill.cli.screen import Cell, Column, console, fact, say, say_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.bench.result import Judged, Result
    from workmill.bench.stand import Benchmark

GOALS: Final = (Column("ASKED", least=20), Column("BOUND", right=True), Column("MEASURED", right=True), Column(""))
SAMPLES: Final = ("seconds", "queued", "running", "succeeded", "total", "heads")
"""Curves that are moments of one course."""
UNTYPED: Final = {"as_json", "store"}
"""Options that change nothing about what is measured."""
COMMON: Final = (
    click.option("--json", "as_json", is_flag=True, help="One JSON object, with every round and where it ran."),
    click.option("--store", metavar="URL", help="Where to work.  [default: a new SQLite file]"),
    click.option("--rounds", type=click.IntRange(1, 100), default=3, help="How often to run it."),
)


@click.group(short_help="Measure what this machine can do.")
def bench() -> None:
    """Measure real workers on a store of their own: a new SQLite file in the temporary folder, removed afterwards.

    `--store` names a PostgreSQL database, where each run has a schema of its own, which is dropped afterwards, or an SQLite file, which
    must hold no jobs. WORKMILL_DISPATCH names a dispatcher beside PostgreSQL, which must hold none either. Each benchmark runs several
    times and gives medians; leave the machine alone meanwhile. `make bench` runs all of them and writes docs/performance.md.
    """


def benchmark(command: Callable[..., Benchmark]) -> click.Command:
    """A subcommand from a function that turns its options into a benchmark."""

    @click.pass_context
    def wrapped(ctx: click.Context, /, rounds: int, store: str | None, as_json: bool, **options: Any) -> None:
        from workmill.bench.stand import run  # noqa: PLC0415 - what only measures is loaded when it measures

        with progress() as shown:
            result = run(ctx.invoke(command, **options), command=typed(ctx), progress=shown, rounds=rounds, url=store)
        if as_json:
            click.echo(msgspec.json.encode(result))
        else:
            show(result)

    update_wrapper(wrapped, command)
    for option in COMMON:
        option(wrapped)
    return bench.command(short_help=(command.__doc__ or "").splitlines()[0])(wrapped)


def progress() -> Progress:
    """Bars on a terminal, nothing in a pipe."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


def typed(ctx: click.Context) -> str:
    """The command line that makes the same run."""
    parts = ctx.command_path.split()
    for param in ctx.command.params:
        name, value = param.name or "", ctx.params.get(param.name or "")
        if name not in UNTYPED and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            parts += [param.opts[0]] if value is True else [param.opts[0], f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(parts)


def show(result: Result) -> None:
    """The result for people: the figures, the goals, where."""
    say(Text(result.command, "bold"))
    figures = {name: getattr(result, name) for name in ("jobs_per_second", "p50_ms", "p95_ms", "p99_ms", "max_ms")} | result.figures
    columns = (Column("FIGURE", least=10), Column("MEDIAN", right=True), Column("EACH ROUND", least=10, rank=1))
    say_table(columns, [(name, number(value), "  ".join(number(one[name]) for one in result.rounds)) for name, value in figures.items()])
    say(Text(f"p50, p95, p99, max: {result.durations}", "dim"))
    if samples := [result.curves[name] for name in SAMPLES if name in result.curves]:
        titles = [name for name in SAMPLES if name in result.curves]
        say_table([Column(name.upper(), right=True) for name in titles], [tuple(map(number, row)) for row in zip(*samples, strict=True)])
    if result.goals:
        say_table(GOALS, [_goal(goal) for goal in result.goals])
    there = result.environment
    durability = ", ".join(f"{name} {value}" for name, value in result.durability.items())
    fact("store", f"{result.database}, {durability}, dispatch {result.dispatch}")
    fact("machine", f"{there.machine}, {there.cpus} cores, Python {there.python}, SQLite {there.sqlite}")


def _goal(goal: Judged) -> tuple[Cell, ...]:
    verdict = Text("met", "green") if goal.met else Text("short", "red")
    return goal.what, f"{goal.sense} {goal.bound:g}", number(goal.measured), verdict


def number(value: float) -> str:
    """A figure with as many digits as it is worth."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


@benchmark
@click.option("--jobs", type=click.IntRange(1, 10_000_000), default=50_000, help="How many jobs.")
@click.option("--handler", type=click.Choice(["sync", "async"]), default="sync", help="`def` or `async def` handlers.")
@click.option("--processes", type=click.IntRange(1, 64), default=1, help="Worker processes.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=10, help="Jobs at once in each process.")
@click.option("--payload-bytes", type=click.IntRange(53, 1 << 20), default=53, help="The size of each payload.")
@click.option("--log-level", type=click.Choice(["info", "warning"]), default="warning", help="info: a line of log for each job.")
def drain(**options: Any) -> Benchmark:
    """Empty a queue of jobs that do nothing.

    A bare table of the same database does the same exchanges in the same minute: `of_ceiling` is the part of its speed that is left.
    """
    from workmill.bench.drain import Drain  # noqa: PLC0415 - see above

    return Drain(**options)


@benchmark
@click.option("--jobs", type=click.IntRange(1, 10_000_000), default=50_000, help="How many jobs in calls of a thousand.")
@click.option("--calls", type=click.IntRange(1, 1_000_000), default=2_000, help="How many single submissions from each thread.")
@click.option("--threads", type=click.IntRange(1, 256), default=8, help="How many threads submit at once.")
@click.option("--group-commit", type=click.Choice(["on", "off"]), default="on", help="Whether concurrent calls share a transaction.")
@click.option("--delay", type=click.FloatRange(0, 1_000), default=0.0, metavar="MS", help="Wait for more calls before each transaction.")
def enqueue(group_commit: str, delay: float, **options: Any) -> Benchmark:
    """Submit jobs, many at once and one by one.

    Single submissions come from one thread and then from several, whose calls meet in the group commit. `--delay` lets it wait for more
    company, which only makes it slower.
    """
    from workmill.bench.enqueue import Enqueue  # noqa: PLC0415 - see above

    return Enqueue(group_commit=group_commit == "on", delay=delay / 1_000, **options)


@benchmark
@click.option("--rate", type=click.IntRange(1, 100_000), default=200, help="Jobs a second.")
@click.option("--seconds", type=click.FloatRange(0.1, 3_600), default=10.0, help="For how long.")
@click.option("--same-process", is_flag=True, help="The worker runs in the process that submits.")
@click.option("--senders", type=click.IntRange(1, 256), default=8, help="Threads that submit.")
def latency(**options: Any) -> Benchmark:
    """Send at a steady rate and see when handlers start.

    The time runs from when a job was meant to be sent, so whatever holds up the sender counts too.
    """
    from workmill.bench.latency import Latency  # noqa: PLC0415 - see above

    return Latency(**options)


@benchmark
@click.option("--low", type=click.IntRange(1, 1_000_000), default=3_000, help="Jobs in the backlog.")
@click.option("--high", type=click.IntRange(1, 1_000_000), default=300, help="Urgent jobs that come in meanwhile.")
def priority(**options: Any) -> Benchmark:
    """Submit urgent jobs to a queue that has more than it can do."""
    from workmill.bench.priority import Priority  # noqa: PLC0415 - see above

    return Priority(**options)


@benchmark
@click.option("--size", type=click.FloatRange(0.001, 100), default=1.0, help="How much of each load, as a factor.")
@click.option("--iterations", type=click.IntRange(1, 100_000_000), default=20_000, help="Of each job that computes.")
def workloads(**options: Any) -> Benchmark:
    """Run jobs that do nothing, wait or compute, on more and more threads and processes."""
    from workmill.bench.workloads import Workloads  # noqa: PLC0415 - see above

    return Workloads(**options)


@benchmark
@click.option("--rows", type=click.IntRange(1_000, 100_000_000), default=1_000_000, help="Jobs of each kind on the full store.")
@click.option("--finished", type=click.IntRange(1_000, 100_000_000), help="Finished jobs, if not as many as of the others.")
@click.option("--claims", type=click.IntRange(50, 1_000_000), default=2_000, help="Claims on each store.")
@click.option("--batch", type=click.IntRange(1, 1_000), default=10, help="Jobs in a claim.")
def scale(**options: Any) -> Benchmark:
    """Claim from a store that holds millions of other jobs.

    The full store has finished jobs, jobs in another queue and jobs for tomorrow. On SQLite they are submitted and run as usual, in
    files whatever `--store` says; PostgreSQL is filled by the server. An empty one takes the same claims by turns.
    """
    from workmill.bench.scale import Scale  # noqa: PLC0415 - see above

    return Scale(**options)


@benchmark
@click.option("--seconds", type=click.FloatRange(0.1, 3_600), default=10.0, help="How long to watch it do nothing.")
@click.option("--wakings", type=click.IntRange(1, 10_000), metavar="N", default=50, help="How often to wake it.")
@click.option("--jobs", type=click.IntRange(10, 10_000_000), default=200_000, help="How many jobs to give it then.")
def idle(**options: Any) -> Benchmark:
    """Watch a worker that has nothing to do, wake it, and see whether it grows."""
    try:
        from workmill.bench.idle import Idle  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is missing: pip install 'workmill[bench]'") from error
    return Idle(**options)


@benchmark
@click.option("--jobs", type=click.IntRange(100, 10_000_000), default=20_000, help="How many rows.")
@click.option("--batch", type=click.IntRange(1, 10_000), default=100, help="Rows in a transaction.")
def ceiling(**options: Any) -> Benchmark:
    """Measure SQLite or PostgreSQL alone: a bare table without a job system.

    PostgreSQL when `--store` names it: then the table lies in a schema of its own, which is dropped at the end.
    """
    from workmill.bench.ceiling import Ceiling  # noqa: PLC0415 - see above

    return Ceiling(**options)


@benchmark
@click.option("--jobs", type=click.IntRange(10, 10_000_000), default=100_000, help="How many jobs.")
@click.option("--workers", type=click.IntRange(1, 64), default=10, help="Worker processes.")
@click.option("--beside", type=click.IntRange(0, 64), metavar="N", default=0, help="Let so many processes do the same first, to compare.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=10, help="Jobs at once in each process.")
def burst(**options: Any) -> Benchmark:
    """Submit very many jobs at once, and let several processes work them off.

    Meanwhile the counts are read again and again, and must add up to all jobs each time; with a dispatcher, its depth beside them. In
    the end each job must have succeeded in exactly one run.
    """
    from workmill.bench.burst import Burst  # noqa: PLC0415 - see above

    return Burst(**options)


@benchmark
@click.option("--jobs", type=click.IntRange(10, 10_000_000), default=50_000, help="How many jobs.")
@click.option("--payload-bytes", type=click.IntRange(53, 1 << 20), default=60, help="The size of each payload.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=10, help="Jobs at once.")
def cost(**options: Any) -> Benchmark:
    """Count what a job costs a PostgreSQL server.

    Bytes of its log, commits, row versions to clean up and, when it has loaded pg_stat_statements, statements: for its submission among
    a thousand others, for its run, and for both.
    """
    from workmill.bench.cost import Cost  # noqa: PLC0415 - see above

    return Cost(**options)


@benchmark
@click.option("--workers", type=click.IntRange(1, 64), default=10, help="Worker processes.")
@click.option("--queues", type=click.IntRange(1, 1_000), default=40, help="Queues of each.")
@click.option("--seconds", type=click.FloatRange(0.1, 3_600), default=10.0, help="How long to watch them do nothing.")
@click.option("--wakings", type=click.IntRange(1, 10_000), metavar="N", default=20, help="How often to wake them then.")
def rest(**options: Any) -> Benchmark:
    """Count what idle workers ask of a PostgreSQL server, which must have loaded pg_stat_statements."""
    from workmill.bench.rest import Rest  # noqa: PLC0415 - see above

    return Rest(**options)
