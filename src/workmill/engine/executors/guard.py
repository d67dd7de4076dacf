"""The last will of a worker: a process of a few megabytes that kills the worker's children when the worker is gone, however it went.

A child watches for the end of its worker too, but cannot act while a handler holds the interpreter's lock, and the signal that a kernel
can send at a parent's death would end the child alone, not what it had started. The guard runs nobody's code. It reads `+pid` and `-pid`,
a line each, and at the end of its input kills the groups that are left. Run by its path, it imports nothing of Workmill and little else.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def family(pid: int) -> list[int]:
    """A process and its descendants, whatever group or session they are in; the process alone where the system does not tell (macOS)."""
    found = [pid]
    for member in found:
        for tasks in Path(f"/proc/{member}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, tasks.read_text().split())
    return found


def signal_family(pid: int, number: int) -> None:
    """Signal a process that leads a group, its group, and its descendants in other groups."""
    descendants = family(pid)[1:]
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    for member in descendants:
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(member) != pid:
                os.kill(member, number)


def main() -> None:
    """Keep the list, and execute it at the end of the input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pids: set[int] = set()
    for line in sys.stdin:
        (pids.add if line[0] == "+" else pids.discard)(int(line[1:]))
    for pid in pids:
        signal_family(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
