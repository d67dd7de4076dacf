"""Handlers that run in child processes, the hostile ones among them. Imported by the tests and, anew, by the children."""

import asyncio
import contextlib
import ctypes
import mmap
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from workmill import Fail, JobCancelled, RetryIn, Snooze, Workmill, current_job

mill = Workmill()
around: list[str] = []
MEGABYTE = 1 << 20


def note(file: Path) -> None:
    file.write_text("tidied")


@mill.middleware
@contextlib.contextmanager
def noted(job: object) -> Iterator[None]:
    around.append("in")
    yield
    around.append("out")


@mill.job(name="pid", isolate=True)
def pid() -> int:
    return os.getpid()


@mill.job(name="echo", isolate=True)
def echo(text: str) -> str:
    return text


@mill.job(name="about", isolate=True)
def about() -> dict[str, object]:
    job = current_job()
    return {"id": job.id, "attempt": job.attempt, "timed": job.deadline is not None, "cancelled": job.cancelled, "around": around}


@mill.job(name="log", isolate=True)
def log() -> None:
    current_job().logger.info("said from within")


@mill.job(name="loop", isolate=True)
async def loop() -> tuple[int, str]:
    await asyncio.sleep(0)
    return id(asyncio.get_running_loop()), current_job().id


@mill.job(name="raise", isolate=True)
def fail(kind: str) -> None:
    errors = {"value": ValueError("no"), "exit": SystemExit(3), "fail": Fail("final"), "retry": RetryIn(7), "snooze": Snooze(8, "later")}
    raise errors[kind]


@mill.job(name="progress", isolate=True)
def progress(path: str) -> None:
    current_job().progress(0.25, "a quarter")
    while not Path(path).exists():
        time.sleep(0.005)


@mill.job(name="flood", isolate=True)
def flood() -> str:
    for _ in range(200):
        sys.stdout.write("out" * 5_000)
        sys.stderr.write("err" * 5_000)
        os.write(1, b"raw" * 5_000)
    return "done"


@mill.job(name="fork", isolate=True)
def fork() -> str:
    return "parent" if os.fork() else "child"


@mill.job(name="leak", isolate=True)
def leak(megabytes: int) -> int:
    around.append("x" * (megabytes * MEGABYTE))
    return os.getpid()


@mill.job(name="end", isolate=True)
def end(how: str) -> None:
    match how:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "close":
            os.closerange(3, 256)
            time.sleep(60)
        case "scribble":
            for descriptor in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(descriptor, b"\xff" * 100)
            time.sleep(60)


@mill.job(name="spin", isolate=True)
def spin() -> None:
    while True:
        pass


@mill.job(name="deaf", isolate=True)
def deaf() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(0.01)


@mill.job(name="backtrack", isolate=True)
def backtrack() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


@mill.job(name="tidy", isolate=True)
def tidy(path: str) -> None:
    Path(path).touch()
    try:
        time.sleep(1_000)
    finally:
        note(Path(path))


@mill.job(name="tidy_async", isolate=True)
async def tidy_async(path: str) -> None:
    file = Path(path)
    await asyncio.to_thread(file.touch)
    try:
        await asyncio.sleep(1_000)
    finally:
        note(file)


@mill.job(name="polite", isolate=True)
def polite(path: str) -> None:
    Path(path).touch()
    while True:
        current_job().check()
        time.sleep(0.005)


@mill.job(name="parent", isolate=True)
def parent(path: str, *, detached: bool = False) -> None:
    child = subprocess.Popen(["sleep", "1000"], start_new_session=detached)
    Path(path).write_text(f"{os.getpid()} {child.pid} ")
    while True:
        pass


@mill.job(name="shell", isolate=True)
def shell(path: str) -> None:
    Path(path).touch()
    subprocess.run(["sleep", "1000"], check=True)


@mill.job(name="sulky", isolate=True)
def sulky(path: str) -> None:
    Path(path).touch()
    try:
        time.sleep(1_000)
    except JobCancelled:
        raise RuntimeError("I was not done") from None


@mill.job(name="behind", isolate=True)
def behind(path: str) -> None:
    """Fork something that keeps every descriptor open, and crash."""
    if os.fork() == 0:
        os.setsid()
        Path(path).write_text(str(os.getpid()))
        time.sleep(60)
        os._exit(0)
    while not Path(path).exists() or not Path(path).read_text():
        time.sleep(0.005)
    os._exit(4)


@mill.job(name="hog", isolate=True, memory_limit="128MB")
def hog(megabytes: int, *, in_child: bool = False) -> str:
    if in_child:
        subprocess.run([sys.executable, "-c", f"import time; x = 'x' * ({megabytes} << 20); time.sleep(1000)"], check=True)
    hoard = ["x" * MEGABYTE for _ in range(megabytes)]
    time.sleep(0.3 if megabytes < 128 else 1_000)
    return str(len(hoard))


@mill.job(name="sharing", isolate=True, memory_limit="128MB")
def sharing() -> str:
    """64 MiB that four processes share are 64 MiB; so are some that are reserved and never touched."""
    reserved = mmap.mmap(-1, 4 << 30)
    hoard = "x" * (64 * MEGABYTE)
    pids = [os.fork() for _ in range(3)]
    time.sleep(0.4)
    if 0 in pids:
        os._exit(0)
    for number in pids:
        os.waitpid(number, 0)
    reserved.close()
    return str(len(hoard))
