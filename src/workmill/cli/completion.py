"""`workmill completion`: the script that teaches a shell to complete."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

SHELLS: Final = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and values in SHELL.

    \b
      eval "$(workmill completion bash)"     # in ~/.bashrc
      eval "$(workmill completion zsh)"      # in ~/.zshrc
      workmill completion fish > ~/.config/fish/completions/workmill.fish
    """  # noqa: D301 - click reads the character, not its escape
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choice above names only shells that click knows
    click.echo(kind(ctx.find_root().command, {}, "workmill", "_WORKMILL_COMPLETE").source())
