"""Write docs/cli.md from the commands themselves, so that it says what the program does."""

import inspect

import click

from pages import NOTICE, ROOT, publish
from workmill.cli.exits import MEANINGS, variables
from workmill.cli.program import program
from workmill.cli.reference import SETTINGS, commands
from workmill.config import STORE

PAGE = """\
# The command line

`workmill` and `python -m workmill` are the same program. `workmill COMMAND --help` says what is written here.

* **Options from the environment.** Each option can be set by the variable beside it; the command line wins. A flag is set by `1`,
  `true`, `yes` or `on`; what may be repeated is separated by blanks.
* **Durations** are `500ms`, `1.5s`, `5m`, `2h`, `7d` or a sum such as `1h30m`; a bare number means seconds. **Times** are
  ISO 8601 with an offset: `2026-03-01T09:00:00+01:00`.
* **`--json`** prints one JSON object. Its names are those of the HTTP API, durations are seconds, times ISO 8601 with an offset.
  Payloads and results stand in it as they are stored: numbers, keys and their order are kept.
* **Output.** Tables are cut to the terminal's width, ids never; a pipe gets everything, without colour. `NO_COLOR=1` takes the
  colour away. What a job holds is shown with control characters as escapes; nothing in it reaches the terminal as a command.
* **`--store URL`** may stand before the command or behind it.
* **Errors** are one line on stderr: the command, the option or field, the rule. `--debug` adds the traceback.

## Exit codes

{codes}

## Variables

{settings}

{commands}"""


def options(context: click.Context) -> list[click.Option]:
    """The options of a command that are for everybody."""
    return [param for param in context.command.params if isinstance(param, click.Option) and not param.hidden]


def variable(context: click.Context, param: click.Parameter) -> str:
    """The variable that a parameter takes its value from, or nothing. `--store` behind a command is the one before it."""
    return STORE if param.name == "store" else ", ".join(variables(param, context))


def table(context: click.Context) -> str:
    """What a command takes, without what all take."""
    arguments = [param for param in context.command.params if isinstance(param, click.Argument)]
    named = [option for option in options(context) if option.name != "store" or context.parent is None]
    rows = [row(param, context) for param in (*arguments, *named)]
    return "\n".join(["| option | variable | default | |", "|---|---|---|---|", *rows]) + "\n\n" if rows else ""


def row(param: click.Parameter, context: click.Context) -> str:
    metavar = param.make_metavar(context).replace("|", "\\|")
    names = ", ".join(f"`{name}`" for name in sorted(param.opts, key=len)) if isinstance(param, click.Option) else f"`{metavar}`"
    takes = f" `{metavar}`" if isinstance(param, click.Option) and not param.is_flag else ""
    named = variable(context, param)
    text, default = description(param, context)
    return f"| {names}{takes} | {f'`{named}`' if named else ''} | {default} | {text} |"


def description(param: click.Parameter, context: click.Context) -> tuple[str, str]:
    """The help of a parameter without its default, and its default."""
    if not isinstance(param, click.Option):
        return "", ""
    text, _, written = (param.help or "").partition("  [default: ")
    extra = param.get_help_extra(context)
    return text, written.rstrip("]") or (f"`{extra['default']}`" if "default" in extra and not param.is_flag else "")


def section(context: click.Context) -> str:
    """One command: its usage, what it does, its options."""
    text = inspect.cleandoc(context.command.help or "")
    paragraphs = [f"```text\n{part.strip(chr(8) + chr(10))}\n```" if part.startswith("\b") else part for part in text.split("\n\n")]
    usage = " ".join(context.command.collect_usage_pieces(context))
    heading = "###" if context.command_path.count(" ") > 1 else "##"
    title = f"{heading} {context.command_path}\n\n```text\n{context.command_path} {usage}\n```\n\n"
    return title + "\n\n".join(paragraphs) + "\n\n" + table(context)


def page() -> str:
    """The whole of docs/cli.md."""
    codes = "\n".join(f"* **{code}** {meaning}" for code, meaning in MEANINGS.items())
    rows = [f"| `{name}` | {meaning} | `{default}` |" for name, (meaning, default) in SETTINGS.items()]
    settings = "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])
    sections = "".join(section(context) for context in commands(program, "workmill")).rstrip("\n") + "\n"
    return NOTICE.format(script="scripts/cli_reference.py") + PAGE.format(codes=codes, settings=settings, commands=sections)


if __name__ == "__main__":
    publish({ROOT / "docs" / "cli.md": page()})
