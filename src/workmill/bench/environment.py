"""Where a figure was measured: a number without its machine, versions and commit says nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from workmill import clock

CHECKOUT: Final = Path(__file__).parents[3]
"""The root of the project, when this file is part of a checkout of it."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and the software of a run. `commit` is None outside a checkout; `dirty`: the checkout had changes."""

    machine: str
    system: str
    cpus: int
    memory_gib: float | None
    python: str
    sqlite: str
    commit: str | None
    dirty: bool
    date: datetime


def environment() -> Environment:
    """What this process runs on, now."""
    return Environment(
        machine=_processor(),
        system=f"{platform.system()} {platform.release()}",
        cpus=os.cpu_count() or 1,
        memory_gib=_memory(),
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        commit=_git("rev-parse", "HEAD"),
        dirty=bool(_git("status", "--porcelain", "--", ".", ":(exclude)results", ":(exclude)docs")),
        date=clock.to_datetime(clock.wall()).replace(microsecond=0),
    )


def _processor() -> str:
    """The model of the processor, where the system tells; otherwise its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return " ".join(models[0].split()) if models else platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _git(*arguments: str) -> str | None:
    """What git says of the checkout that this file is in; None when it is installed elsewhere, or there is no git."""
    if not (CHECKOUT / "pyproject.toml").exists():
        return None
    command = ["git", "-C", os.fspath(CHECKOUT), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603 - fixed arguments
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None
