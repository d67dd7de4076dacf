"""`workmill worker`: run jobs, in one process or several."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from workmill.cli.parameters import DURATION, POOLS, Duration, Name
from workmill.cli.session import Settings, refusals_by_option, store_from_environment, store_option
from workmill.cli.wording import plural, span, visible
from workmill.config import STORE, from_environment, shown_url
from workmill.domain.limits import DEFAULT_LEASE_SECONDS, MAX_LEASE_SECONDS, MIN_LEASE_SECONDS
from workmill.engine.worker import WorkerOptions
from workmill.runtime import run_worker_process, use_store
from workmill.targets import load_target
from workmill.telemetry import Telemetry, log_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.cli.parameters import Pools

SAMPLES: Final = "workmill.samples:mill"
LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
OPTIONS: Final = ("concurrency", "grace", "lease_seconds", "burst", "max_jobs", "name")
"""The options that are those of the engine by name."""
TYPES_SHOWN: Final = 12


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--log-level` and `--log-format`."""
    form = click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="key=value lines, or JSON lines.")
    level = click.option("--log-level", type=click.Choice([*LEVELS]), default="info", help="What is worth a line on stderr.")
    return level(form(command))


@click.command(short_help="Run jobs.")
@store_option
@click.argument("target", default=SAMPLES, envvar="WORKMILL_WORKER_TARGET")
@click.option(
    "-q", "-Q", "--queues", type=POOLS, multiple=True, help="Serve these queues only, each with N slots (or with -c).  [default: all]"
)
@click.option("-c", "--concurrency", type=int, metavar="N", default=10, help="How many jobs run at once in one process.")
@click.option(
    "-p", "--processes", type=click.IntRange(1, 256), metavar="N", default=1, help="How many processes; one that dies is started again."
)
@click.option("--grace", type=DURATION, default="30s", help="How long a stop waits for the jobs that run.")
@click.option(
    "--lease",
    "lease_seconds",
    type=Duration(MIN_LEASE_SECONDS, MAX_LEASE_SECONDS),
    default=f"{DEFAULT_LEASE_SECONDS:g}s",
    help="After how long a silence its jobs run elsewhere.",
)
@click.option("--burst", is_flag=True, help="End when nothing is left to do.")
@click.option("--max-jobs", type=int, metavar="N", help="End after so many jobs (in each process).")
@click.option("--name", type=Name("name"), help="How it is called where workers are listed.  [default: host and process id]")
@click.option("--silent-start", is_flag=True, hidden=True, help="Without the banner.")
@log_options
@click.pass_context
def worker(ctx: click.Context, /, *, target: str, store: str | None, queues: Sequence[Pools], processes: int, **given: Any) -> int:
    """Run the jobs that TARGET has handlers for. TARGET is module:object, a Workmill; without one: the samples.

    SIGTERM, SIGINT or SIGHUP stops it: it takes nothing new, waits for what runs as long as --grace, gives the rest back and exits, with 4
    when it had to interrupt something; a second signal stops it at once. SIGTSTP drains it, SIGCONT undoes that.
    """
    settings: Settings = ctx.obj
    pools = slots(queues, given["concurrency"], ctx)
    with refusals_by_option(ctx):
        options = WorkerOptions(queues=pools, **{name: given[name] for name in OPTIONS})
    plan = Plan(
        target=target,
        url=store or settings.store,
        url_given_by=STORE if store is None and store_from_environment(ctx) else "--store",
        options=options,
        level=given["log_level"],
        form=given["log_format"],
        silent=given["silent_start"] or given["log_format"] != "text" or not sys.stderr.isatty(),
    )
    return plan.work() if processes == 1 else plan.supervise(processes)


class Plan(NamedTuple):
    """How a worker is to work, however many processes it has."""

    target: str
    url: str | None
    url_given_by: str
    options: WorkerOptions
    level: str
    form: Literal["text", "json"]
    silent: bool

    def work(self) -> int:
        """Be the worker."""
        mill = load_target(self.target)
        if self.url is not None:
            use_store(mill, self.url, self.url_given_by)
        if not self.silent:
            _banner(mill.url, _described(self.target, mill.registry.types), self.options)
        return run_worker_process(
            self.target, self.options, store=self.url, settings=from_environment(), log_level=LEVELS[self.level], log_format=self.form
        )

    def supervise(self, processes: int) -> int:
        """Run this command again, once for each process, and look after them."""
        if sys.platform == "win32":
            raise click.UsageError("--processes needs POSIX: start several workers instead", click.get_current_context())
        from workmill.supervisor import supervise  # noqa: PLC0415 - a module of POSIX

        if not self.silent:
            _banner(self.url or from_environment().store, self.target, self.options, processes)
        undo = log_to(sys.stderr, Telemetry(), LEVELS[self.level], self.form)
        try:
            return supervise(self._command(), processes, self.options.grace)
        finally:
            undo()

    def _command(self) -> list[str]:
        store = [f"--store={self.url}"] if self.url and self.url_given_by != STORE else []
        logs = [f"--log-level={self.level}", f"--log-format={self.form}"]
        return [sys.executable, "-m", "workmill", *store, "worker", self.target, *_flags(self.options), *logs, "-p1", "--silent-start"]


def slots(queues: Sequence[Pools], concurrency: int, ctx: click.Context) -> dict[str, int]:
    """The slots of each queue that was named; without a number of its own it has as many as --concurrency says."""
    pools: dict[str, int] = {}
    for name, number in (pool for group in queues for pool in group):
        if name in pools:
            raise click.BadParameter(f"names {name} twice", ctx, param_hint="--queues")
        pools[name] = concurrency if number is None else number
    return pools


def _described(target: str, types: Sequence[str]) -> str:
    if not types:
        return f"{target}, which has no jobs"
    more = f" and {len(types) - TYPES_SHOWN} more" if len(types) > TYPES_SHOWN else ""
    return f"{target}, {plural(len(types), 'type')}: {', '.join(types[:TYPES_SHOWN])}{more}"


def _banner(url: str, target: str, options: WorkerOptions, processes: int = 1) -> None:
    queues = (
        ", ".join(f"{name}={number}" for name, number in options.queues.items()) or f"all, {plural(options.concurrency, 'job')} at once"
    )
    lines = {
        "store": shown_url(url),
        "target": target,
        "queues": queues + (" in each process" if processes > 1 else ""),
        "lease": f"{span(options.lease_seconds)}, grace {span(options.grace)}",
        "process": f"{os.getpid()}" + (f" and {processes} workers of its own" if processes > 1 else ""),
    }
    from rich.text import Text  # noqa: PLC0415 - for those who see it

    from workmill.cli.screen import say  # noqa: PLC0415 - the same

    say(Text("workmill worker", "bold"), stderr=True)
    for name, value in lines.items():
        say(Text.assemble((f"  {name:<9}", "dim"), visible(value)), stderr=True)
    say(Text("  Ctrl-C stops it, a second one at once.", "dim"), stderr=True)


def _flags(options: WorkerOptions) -> list[str]:
    """The flags of one of several processes: they win over the variables that it inherits."""
    flags = [f"--queues={name}={number}" for name, number in options.queues.items()]
    flags += [f"--concurrency={options.concurrency}", f"--grace={options.grace:f}s", f"--lease={options.lease_seconds:f}s"]
    flags += ["--burst"] if options.burst else []
    flags += [f"--max-jobs={options.max_jobs}"] if options.max_jobs is not None else []
    return flags + ([f"--name={options.name}-{{n}}"] if options.name else [])
