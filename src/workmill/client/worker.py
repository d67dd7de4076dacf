"""The wiring of a worker: which store, handlers, hooks, upkeep and child processes make one."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from workmill.client.link import Link
from workmill.client.naming import importable_name
from workmill.config import Settings, from_environment
from workmill.dispatch.refill import Refiller
from workmill.domain.errors import ConfigurationError
from workmill.engine.executors.base import ExecutorFactory
from workmill.engine.handlers import Hooks, Kind
from workmill.engine.worker import Worker, WorkerOptions
from workmill.telemetry import Telemetry
from workmill.upkeep import Keeper


def build_worker(
    link: Link,
    hooks: Hooks,
    telemetry: Telemetry,
    options: WorkerOptions | None,
    *,
    target: str | None = None,
    settings: Settings | None = None,
) -> Worker:
    """A worker that has not started. `target` is what children of isolated jobs import; None: it is looked for."""
    _refuse_in_child()
    settings, store, registry = settings or from_environment(), link.store, link.registry
    keeper = Keeper(store, telemetry, retain=settings.retain, retain_dead=settings.retain_dead)
    refill = () if link.heads is None else (Refiller(store, link.heads.dispatch, telemetry),)
    return Worker(
        store,
        registry,
        options,
        hooks=hooks,
        telemetry=telemetry,
        waking=store,
        beside=(keeper, *refill),
        executors=_isolation(link, target) if any(handler.kind == "isolated" for handler in registry) else None,
    )


def _isolation(link: Link, target: str | None) -> Mapping[Kind, ExecutorFactory]:
    from workmill.engine.executors.process import isolated_executors  # noqa: PLC0415 - it needs POSIX, and isolated jobs alone need it

    return {"isolated": isolated_executors(target or _target_of(link))}


def _refuse_in_child() -> None:
    """A child process imports the application: a worker that an import starts would start children that import it, without end."""
    if importable_name("__main__") == "workmill.isolated":
        raise ConfigurationError(
            "an import starts a worker: let it stand below `if __name__ == '__main__':`, or in a function that is called there"
        )


def _target_of(link: Link) -> str:
    """`module:object` of the Workmill that has this link, as another process would import it; a script is the last to be asked."""
    modules = sorted(sys.modules.items(), key=lambda item: item[0] == "__main__")
    for name, module in modules:
        for attribute, value in tuple(getattr(module, "__dict__", {}).items()):
            if hasattr(type(value), "run_worker") and getattr(value, "_link", None) is link:
                return f"{importable_name(name)}:{attribute}"
    raise ConfigurationError(
        "isolated jobs run in processes that import their Workmill: it must be a variable of a module, or be named by target="
    )
