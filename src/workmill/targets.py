"""From `module:object` on a command line to a `Workmill`, with errors that say what was looked for and where."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Final

from workmill.client import Workmill
from workmill.domain.errors import ConfigurationError

DEFAULT_NAME: Final = "mill"


def load_target(target: str) -> Workmill:
    """Import the module with the current directory first on the path, and return the `Workmill` it names.

    Without `:object` it is the module's `mill`, or the only `Workmill` the module has.

    Raises:
        ConfigurationError: no such module or object, or it is something else; an error inside the module is its cause.

    """
    module_name, _, path = target.partition(":")
    module = _module(target, module_name)
    return _named(target, module, path) if path else _only(target, module)


def _module(target: str, name: str) -> ModuleType:
    if "/" in name or name.endswith(".py"):
        dotted = name.removesuffix(".py").replace("/", ".").strip(".")
        raise ConfigurationError(f"target {target!r}: must be module:object, not a path; try {dotted}:{DEFAULT_NAME}")
    here = str(Path.cwd())
    if not {here, ""} & set(sys.path):
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ConfigurationError(f"target {target!r}: {_cause(name, here, error)}") from error


def _cause(name: str, here: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        return f"there is no module {error.name} (looked in {here} first, then on the path of Python)"
    if isinstance(error, (ValueError, TypeError)) and not all(part.isidentifier() for part in name.split(".")):
        return f"must be module:object such as app.tasks:{DEFAULT_NAME}"
    return f"importing {name} raised {type(error).__name__}: {error}"


def _named(target: str, module: ModuleType, path: str) -> Workmill:
    try:
        found = reduce(getattr, path.split("."), module)
    except AttributeError:
        raise ConfigurationError(f"target {target!r}: {module.__name__} has no {path}; {_offer(module)}") from None
    if not isinstance(found, Workmill):
        raise ConfigurationError(f"target {target!r}: must be a Workmill (it is a {type(found).__qualname__}); {_offer(module)}")
    return found


def _only(target: str, module: ModuleType) -> Workmill:
    mills = _mills(module)
    if DEFAULT_NAME in mills:
        return mills[DEFAULT_NAME]
    if len(set(map(id, mills.values()))) == 1:
        return next(iter(mills.values()))
    raise ConfigurationError(f"target {target!r}: must be module:object; {_offer(module)}")


def _offer(module: ModuleType) -> str:
    names = " or ".join(f"{module.__name__}:{name}" for name in _mills(module))
    return f"try {names}" if names else f"{module.__name__} has no Workmill at all"


def _mills(module: ModuleType) -> dict[str, Workmill]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Workmill)}
