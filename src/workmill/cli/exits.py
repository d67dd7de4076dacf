"""How the program ends: the exit codes, and the one line on stderr that goes with each error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from workmill.cli.wording import visible
from workmill.domain.errors import ConfigurationError, InvalidInput, StoreUnavailable, WorkmillError

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
WORK_LEFT: Final = 4
INTERRUPTED: Final = 130
"""Ctrl-C in a command that had nothing to leave behind, as shells expect it."""

MEANINGS: Final = {
    DONE: "done",
    FAILED: "failed, or a finding of `doctor` that is wrong",
    USAGE: "usage: an option, argument, variable or value that cannot be used",
    UNREACHABLE: "could not reach the store",
    WORK_LEFT: "stopped with work left",
    INTERRUPTED: "interrupted by Ctrl-C with nothing left to do",
}


def code_of(error: BaseException) -> int:
    """The exit code of an error that ended a command."""
    if isinstance(error, click.Abort) and isinstance(error.__cause__, KeyboardInterrupt):
        return INTERRUPTED
    match error:
        case click.ClickException() | InvalidInput() | ConfigurationError():
            return USAGE
        case StoreUnavailable():
            return UNREACHABLE
        case KeyboardInterrupt():
            return INTERRUPTED
    return FAILED


def line_of(error: BaseException, path: str) -> str:
    """What is said of an error: one line that names the command, the field and the rule; of a group without a command, its help."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            return error.format_message()
        case click.Abort() | KeyboardInterrupt():
            text = "nothing was done"
        case click.UsageError():
            path = error.ctx.command_path if error.ctx is not None else path
            text = _usage(error)
        case click.ClickException():
            text = error.format_message()
        case WorkmillError():
            text = str(error)
        case OSError():
            text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        case _:
            text = f"{type(error).__name__}: {error} (a defect of Workmill: run it again with --debug, and please report it)"
    return f"{path}: {visible(text)}"


def _usage(error: click.UsageError) -> str:
    if isinstance(error, click.MissingParameter):
        return f"{_name(error.param, error.ctx)}: is missing"
    if isinstance(error, click.BadParameter) and (error.param is not None or error.param_hint):
        return f"{_hint(error)}: {error.message}"
    help_at = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
    return f"{error.format_message().rstrip('.')}{help_at}"


def _hint(error: click.BadParameter) -> str:
    if error.param is None:
        hint = error.param_hint or ""
        return hint if isinstance(hint, str) else " or ".join(hint)
    return _name(error.param, error.ctx)


def _name(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """An option by its longest flag, an argument by its name, and either by the variable that its value came from."""
    if param is None:
        return "an argument"
    if ctx is not None and ctx.get_parameter_source(param.name or "") is ParameterSource.ENVIRONMENT:
        return next((name for name in variables(param, ctx) if os.environ.get(name)), param.opts[0])
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name


def variables(param: click.Parameter, ctx: click.Context) -> Sequence[str]:
    """The environment variables that a parameter takes its value from when the command line does not give it."""
    if param.envvar:
        return [param.envvar] if isinstance(param.envvar, str) else param.envvar
    if isinstance(param, click.Option) and param.allow_from_autoenv and ctx.auto_envvar_prefix and param.name:
        return [f"{ctx.auto_envvar_prefix}_{param.name.upper()}"]
    return []
