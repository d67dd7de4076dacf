"""What every command shares: the store it works on, opened when asked for and closed at the end, and who acts."""

from __future__ import annotations

import getpass
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from workmill.config import DEFAULT_STORE
from workmill.dispatch.open import open_heads
from workmill.domain.errors import InvalidInput, StoreUnavailable
from workmill.store.open import exists, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workmill.dispatch.heads import DispatchedHeads
    from workmill.store.base import Store


@dataclass(frozen=True, slots=True)
class Settings:
    """The global options."""

    store: str | None
    actor: str | None
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """An open store, the name under which its audit will remember this command, and its queues' heads in a dispatcher, if any."""

    store: Store
    actor: str
    heads: DispatchedHeads | None


def takes_store(*, made: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command `--store` of its own and, as first argument, a `Session`.

    Unless `made` says that the command may make a store, one that is not there is an error, not an empty list.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.pass_context
        def opened(ctx: click.Context, /, store: str | None, **options: Any) -> Any:
            with refusals_by_option(ctx):
                return ctx.invoke(command, open_session(ctx, store, made=made), **options)

        return store_option(update_wrapper(opened, command))

    return decorate


@contextmanager
def refusals_by_option(ctx: click.Context) -> Iterator[None]:
    """Show the refusal of a field as that of the option or argument that sets it."""
    try:
        yield
    except InvalidInput as error:
        field = error.field.split(".")[0].split("[")[0]
        param = next((param for param in ctx.command.params if param.name == field), None)
        if param is None:
            raise
        raise click.BadParameter(error.rule, ctx, param) from error


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store` behind the command as well as before it."""
    option = click.option("--store", metavar="URL", allow_from_autoenv=False, show_default=False, help="As before the command.")
    return option(command)


def open_session(ctx: click.Context, store: str | None, *, made: bool) -> Session:
    """Open the store that the command line or the environment names, until the command has ended."""
    settings: Settings = ctx.obj
    url = store_url(ctx, store)
    if not made and not exists(url):
        raise StoreUnavailable(f"{url}: there is no such store; `workmill enqueue` and `workmill worker` make one, --store names another")
    heads = open_heads()
    opened = open_store(url, heads=heads)
    ctx.call_on_close(opened.close)
    return Session(opened, settings.actor or user(), heads)


def store_url(ctx: click.Context, store: str | None) -> str:
    """The URL behind the command, else before it, else of the environment, else the default."""
    settings: Settings = ctx.obj
    return store or settings.store or DEFAULT_STORE


def store_from_environment(ctx: click.Context) -> bool:
    """Whether the store before the command is that of the variable."""
    return ctx.find_root().get_parameter_source("store") is ParameterSource.ENVIRONMENT


def user() -> str:
    """Who types: the name for the audit."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError, ImportError):
        return f"cli:{os.getuid()}" if hasattr(os, "getuid") else "cli"
