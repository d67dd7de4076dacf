"""How much memory a process and its descendants use.

Resident memory is watched, not address space limited: RLIMIT_AS counts what is reserved and never touched (thread stacks, allocators'
arenas, mapped models), so that honest programs fail at a fraction of the limit; it holds for each process apart; and macOS does
not enforce it. What a watch lets through is what can be written between two looks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from workmill.engine.executors.guard import family

HAS_PROC: Final = sys.platform.startswith("linux")
LOOK_EVERY: Final = 0.05 if HAS_PROC else 0.5
"""Seconds between two looks at a run with a limit; without /proc a look costs a process."""


def used(pid: int, limit: int) -> int:
    """Bytes that a process and its descendants hold; pages that they share count once when it matters, that is, beyond `limit`."""
    members = family(pid)
    total = sum(map(resident, members))
    return total if total <= limit or not HAS_PROC else sum(map(_share, members))


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 when it is gone."""
    if not HAS_PROC:
        listed = subprocess.run(["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S603 - no input of anybody's
        return int(listed.stdout.strip() or 0) << 10
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _share(pid: int) -> int:
    """Bytes of a process, each page divided by how many processes have it."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return resident(pid)


def die_first() -> None:
    """When the machine runs out of memory, let the kernel take this process rather than its worker."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
