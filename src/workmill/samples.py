"""Sample jobs, for the first steps, for demonstrations and for trying out what goes wrong."""

from __future__ import annotations

import hashlib
import os
import signal
import sys

from workmill import clock
from workmill.client import Workmill
from workmill.codec import RawPayload
from workmill.engine.context import current_job

mill = Workmill()
NAP = 0.05
"""Seconds that a sleeper sleeps before it looks whether it should stop."""


class SampleFailure(Exception):
    """What the samples fail with on purpose."""


@mill.job(name="echo")
def echo(payload: RawPayload) -> RawPayload:
    """Return the payload as it stands."""
    return payload


@mill.job(name="noop")
def noop(payload: RawPayload) -> None:
    """Do nothing, with any payload."""
    del payload


@mill.job(name="sleep")
def sleep(ms: float) -> None:
    """Sleep so many milliseconds, and stop early when told to."""
    job, end = current_job(), clock.monotonic() + ms / 1_000
    while (left := end - clock.monotonic()) > 0:
        clock.sleep(min(left, NAP))
        job.check()


@mill.job(name="cpu_hash")
def cpu_hash(iterations: int) -> str:
    """Keep a processor busy: hash a hash so many times."""
    digest = b""
    for _ in range(iterations):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


@mill.job(name="fail")
def fail(message: str = "this job always fails") -> None:
    """Fail at every attempt."""
    raise SampleFailure(message)


@mill.job(name="flaky")
def flaky(failures: int = 1) -> int:
    """Fail so many times, then succeed; returns the attempt that did."""
    attempt = current_job().attempt
    if attempt <= failures:
        raise SampleFailure(f"attempt {attempt} of {failures} that fail")
    return attempt


@mill.job(name="crash")
def crash() -> None:
    """Kill the worker's process, as a fault in its memory would."""
    if sys.platform != "win32":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


@mill.job(name="spin", isolate=True)
def spin() -> None:
    """Loop for ever and ask nobody: isolated, since only the end of its process can end it."""
    while True:
        pass
