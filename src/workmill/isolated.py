"""The composition root of a child process for isolated jobs: `python -m workmill.isolated TARGET CHANNEL NOTES`, started by a worker."""

from __future__ import annotations

import os
import sys

from workmill.engine.executors.inside import serve
from workmill.engine.handlers import Hooks, Registry
from workmill.targets import load_target


def main(target: str, channel: str, notes: str) -> int:
    """Serve a worker; the two numbers are descriptors that it has handed down, and that go no further."""
    for descriptor in (int(channel), int(notes)):
        os.set_inheritable(descriptor, False)
    return serve(int(channel), int(notes), lambda: _load(target))


def _load(target: str) -> tuple[Registry, Hooks]:
    mill = load_target(target)
    mill.prepare()
    return mill.registry, mill.hooks


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
