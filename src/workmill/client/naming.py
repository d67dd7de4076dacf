"""Names that are the same in every process: of jobs, and of modules to import."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from workmill.domain.errors import ConfigurationError

NAME_CHARACTERS: Final = 100
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._:-]+")


def default_name(function: Callable[..., Any]) -> str:
    """`module.function`, made to fit the rule for names."""
    qualified = getattr(function, "__qualname__", "<lambda>")
    if "<lambda>" in qualified:
        raise ConfigurationError(f"a function without a name cannot name a job: give it one with name= (got {function!r:.120})")
    name = f"{importable_name(function.__module__)}.{qualified.replace('<locals>.', '')}"
    return _NOT_IN_NAMES.sub("-", name)[-NAME_CHARACTERS:].lstrip("._:-")


def importable_name(module: str) -> str:
    """The name under which another process can import a module: for a script, that of its file."""
    if module != "__main__":
        return module
    main = sys.modules[module]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec is not None else Path(getattr(main, "__file__", None) or module).stem
