"""Measure this machine: run every benchmark and keep what it prints in results/. Name some to run only those.

python scripts/measure.py                       all, some minutes; leave the machine alone meanwhile
python scripts/measure.py drain-sync scale      these two
"""

import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Final

from pages import ROOT
from workmill.testing.servers import PostgresServer, RedisServer

RESULTS: Final = ROOT / "results"
RUNS: Final = {
    "drain-sync": "drain --jobs 50000",
    "drain-async": "drain --jobs 50000 --handler async",
    "drain-two-processes": "drain --jobs 50000 --processes 2",
    "drain-large-payloads": "drain --jobs 50000 --payload-bytes 4096",
    "drain-with-a-line-of-log-each": "drain --jobs 50000 --log-level info",
    "enqueue": "enqueue",
    "enqueue-without-group-commit": "enqueue --group-commit off",
    "enqueue-delayed": "enqueue --delay 5",
    "latency-200": "latency --rate 200",
    "latency-1000": "latency --rate 1000",
    "latency-200-same-process": "latency --rate 200 --same-process",
    "latency-1000-same-process": "latency --rate 1000 --same-process",
    "priority": "priority",
    "workloads": "workloads",
    "scale": "scale",
    "idle": "idle",
    "postgres-drain": "drain --jobs 50000",
    "postgres-drain-two-processes": "drain --jobs 50000 --processes 2",
    "postgres-enqueue-4-threads": "enqueue --calls 500 --threads 4",
    "postgres-enqueue-16-threads": "enqueue --calls 500 --threads 16",
    "postgres-enqueue-64-threads": "enqueue --calls 500 --threads 64",
    "postgres-latency-200": "latency --rate 200",
    "postgres-burst": "burst --rounds 1 --jobs 500000 --workers 10",
    "postgres-burst-beside-two": "burst --jobs 100000 --workers 10 --beside 2",
    "postgres-cost-60-bytes": "cost --payload-bytes 60",
    "postgres-cost-1-kilobyte": "cost --payload-bytes 1024",
    "postgres-rest": "rest",
    "postgres-scale": "scale --finished 3000000",
    "redis-drain": "drain --jobs 50000",
    "redis-latency-200": "latency --rate 200",
    "redis-burst": "burst --rounds 1 --jobs 500000 --workers 10",
    "redis-burst-beside-two": "burst --jobs 100000 --workers 10 --beside 2",
}
"""The name of each result, and the arguments of `workmill bench` that make it.

Those that begin with `postgres` are made on a durable server of their own, those with `redis` with a dispatcher beside it, too.
"""
COUNTING: Final = ("shared_preload_libraries=pg_stat_statements",)
"""For the benchmarks that count statements; the others go without."""


def measure(name: str) -> None:
    """Run one benchmark and keep its result."""
    with ExitStack() as servers:
        where, environment = [], quiet_environment()
        if name.startswith(("postgres", "redis")):
            server = PostgresServer(settings=COUNTING if RUNS[name].split()[0] in {"cost", "rest"} else ())
            servers.callback(server.remove)
            where = ["--store", server.url]
        if name.startswith("redis"):
            dispatcher = RedisServer()
            servers.callback(dispatcher.remove)
            environment["WORKMILL_DISPATCH"] = dispatcher.url
        command = [sys.executable, "-m", "workmill", "bench", *shlex.split(RUNS[name]), *where, "--json"]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment)
    (RESULTS / f"{name}.json").write_text(readable(json.loads(run.stdout)), encoding="utf-8")


def quiet_environment() -> dict[str, str]:
    """The environment without settings of Workmill: what is measured are the defaults."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WORKMILL_")}


def readable(result: dict[str, object]) -> str:
    """JSON with a line for each key."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items()) + "\n}\n"


def main(names: list[str]) -> None:
    if unknown := set(names) - RUNS.keys():
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(RUNS)}")
    RESULTS.mkdir(exist_ok=True)
    begin = time.monotonic()
    for place, name in enumerate(chosen := names or list(RUNS), 1):
        print(f"{place}/{len(chosen)}  workmill bench {RUNS[name]}", flush=True)
        measure(name)
    print(f"measured {len(chosen)} in {time.monotonic() - begin:.0f} s; next: python scripts/performance.py")


if __name__ == "__main__":
    main(sys.argv[1:])
