"""The root command: global options, the commands by name, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
import platform
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from workmill.cli.exits import DONE, FAILED, code_of, line_of
from workmill.cli.session import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS: Final = {
    "demo": "workmill.cli.demo:demo",
    "worker": "workmill.cli.worker:worker",
    "enqueue": "workmill.cli.enqueue:enqueue",
    "jobs": "workmill.cli.jobs:jobs",
    "queues": "workmill.cli.queues:queues",
    "workers": "workmill.cli.workers:workers",
    "doctor": "workmill.cli.doctor:doctor",
    "audit": "workmill.cli.audit:audit",
    "upkeep": "workmill.cli.upkeep:upkeep",
    "migrate": "workmill.cli.migrate:migrate",
    "bench": "workmill.cli.bench:bench",
    "completion": "workmill.cli.completion:completion",
}
"""Each command and where it is defined, in the order of the help; one is imported when it is asked for, so that all start fast."""

EPILOG: Final = """\b
Try it:
  workmill demo                     watch jobs run, fail, die and be revived
  workmill worker                   run the sample jobs, on ./workmill.db
  workmill enqueue echo --payload '"hi"' --wait
                                    submit a job and see its result
  workmill jobs list --state dead   what ran out of attempts
  workmill doctor                   what is wrong, and what to do about it

\b
Exit codes: 0 done, 1 failed, 2 usage, 3 could not reach the store,
            4 stopped with work left.
"""


class Program(click.Group):
    """The root group. Commands return their exit code, or None for 0."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        name_variables(command, f"WORKMILL_{cmd_name}")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A reader that has had enough and closed the pipe is no failure."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            return DONE
        return code

    def main(  # type: ignore[override]  # never standalone: the exit codes are ours
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run the command line and exit with its code."""
        extra["standalone_mode"] = False
        sys.exit(self._run(list(sys.argv[1:] if args is None else args), prog_name or "workmill", extra))

    def _run(self, args: list[str], prog_name: str, extra: dict[str, Any]) -> int:
        try:
            code = super().main(args, prog_name, **extra)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever ends a command ends it in one line
            return _report(error, _path(args, prog_name), debug=_debugging(args))
        return code if isinstance(code, int) else DONE


def name_variables(command: click.Command, prefix: str) -> None:
    """Give each option the variable that its flag spells: `workmill jobs list --state` is WORKMILL_JOBS_LIST_STATE."""
    for param in command.params:
        if isinstance(param, click.Option) and param.allow_from_autoenv and not param.envvar:
            flag = max(param.opts, key=len).lstrip("-")
            param.envvar = f"{prefix}_{flag}".upper().replace("-", "_")
    for name, child in command.commands.items() if isinstance(command, click.Group) else ():
        name_variables(child, f"{prefix}_{name}")


def _report(error: BaseException, path: str, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    click.echo(line_of(error, path), err=True)
    return code_of(error)


def _path(args: Sequence[str], prog_name: str) -> str:
    """The command as far as it was named: for errors that bring no context of their own."""
    path, names = [prog_name], dict.fromkeys(COMMANDS)
    for argument in args:
        if argument in names:
            path.append(argument)
            command = program.get_command(click.Context(program), argument) if len(path) == 2 else None
            names = dict.fromkeys(command.commands) if isinstance(command, click.Group) else {}
    return " ".join(path)


def _debugging(args: Sequence[str]) -> bool:
    return "--debug" in args or os.environ.get("WORKMILL_DEBUG", "") not in {"", "0", "false", "no"}


def version() -> str:
    """The installed version."""
    try:
        return importlib.metadata.version("workmill")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if value and not ctx.resilient_parsing:
        click.echo(f"workmill {version()} (Python {platform.python_version()})")
        ctx.exit()


@click.group(
    cls=Program,
    epilog=EPILOG,
    context_settings={
        "auto_envvar_prefix": "WORKMILL",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.option("--store", metavar="URL", help="The store, such as sqlite:///jobs.db.  [default: sqlite:///workmill.db]")
@click.option("--actor", metavar="NAME", help="Who acts, for the audit.  [default: the user's name]")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    allow_from_autoenv=False,
    help="Show the version and exit.",
)
@click.pass_context
def program(ctx: click.Context, store: str | None, actor: str | None, debug: bool) -> None:
    """Workmill runs background jobs: durable, retried, bounded in time, and visible to everybody.

    Every option can be given by a variable of the environment; the flag wins. `docs/cli.md` has them all.
    """
    ctx.obj = Settings(store, actor, debug=debug)
    ctx.call_on_close(_quiet())


def _quiet() -> Callable[[], None]:
    """Keep what the library logs from stderr, unless a command asks for it: `doctor` says it where it helps. Returns how to undo it."""
    logger, handler = logging.getLogger("workmill"), logging.NullHandler()
    logger.addHandler(handler)
    return lambda: logger.removeHandler(handler)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line with `args` (None: the process's own) and return its exit code."""
    try:
        program.main(args)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED
