"""What the file of a store lies on, and how long a durable write takes there."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

from workmill import clock
from workmill.cli.findings import Disk

PROBES: Final = 5
PROBE_BYTES: Final = 4_096
MOUNTS: Final = Path("/proc/self/mounts")


def examine_disk(path: Path) -> Disk:
    """Look at the file and its directory."""
    return Disk(
        path=str(path),
        filesystem=filesystem_of(path),
        free=shutil.disk_usage(path.parent).free,
        log=_size(path.with_name(path.name + "-wal")),
        sync=_sync_seconds(path.parent),
        world_writable=os.name == "posix" and bool(path.stat().st_mode & stat.S_IWOTH),
    )


def filesystem_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the file system that `path` is on: of the longest mount point above it; None where that cannot be read."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    fields = [line.split(" ") for line in lines]
    above = [(len(point), kind) for _, point, kind, *_ in fields if path.resolve().is_relative_to(point.replace("\\040", " "))]
    return max(above)[1] if above else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sync_seconds(directory: Path) -> float | None:
    """The median of some small durable writes beside the store; None where nothing can be written."""
    with suppress(OSError), tempfile.TemporaryFile(dir=directory) as file:
        return median(_sync(file.fileno()) for _ in range(PROBES))
    return None


def _sync(descriptor: int) -> float:
    began = clock.monotonic()
    os.write(descriptor, b"\0" * PROBE_BYTES)
    os.fsync(descriptor)
    return clock.monotonic() - began
