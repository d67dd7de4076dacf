"""An application whose jobs leave marks in a file, in the order in which they began and ended, whichever process they ran in."""

import os
import signal
import time
from pathlib import Path

from workmill import Workmill, current_job

mill = Workmill()


def mark(what: str) -> None:
    job = current_job()
    line = f"{what} {job.id} {job.claimed.lease} {os.getpid()}\n"
    with Path(os.environ["MARKS"]).open("ab", buffering=0) as file:
        file.write(line.encode())


@mill.job(name="work")
def work(ms: float = 0) -> None:
    mark("begin")
    time.sleep(ms / 1_000)
    mark("end")


@mill.job(name="heed")
def heed(ms: float = 0) -> None:
    """Work until told to stop."""
    mark("begin")
    while True:
        time.sleep(0.02)
        current_job().check()


@mill.job(name="ignore")
def ignore(ms: float = 0) -> None:
    """Work on whatever anybody says."""
    mark("begin")
    time.sleep(ms / 1_000)


@mill.job(name="fall")
def fall(ms: float = 0) -> None:
    """Kill the worker, but only the first."""
    mark("begin")
    if current_job().claimed.lease == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(ms / 1_000)
    mark("end")


@mill.job(name="kill")
def kill(ms: float = 0) -> None:
    """Kill every worker."""
    mark("begin")
    os.kill(os.getpid(), signal.SIGKILL)
