"""Each benchmark runs real work on a store of its own, and says what it did; how fast is no matter here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

from workmill.bench.burst import Burst
from workmill.bench.ceiling import Ceiling
from workmill.bench.drain import Drain
from workmill.bench.enqueue import Enqueue
from workmill.bench.idle import Idle
from workmill.bench.latency import Latency
from workmill.bench.priority import Priority
from workmill.bench.result import Place, Result
from workmill.bench.scale import Scale
from workmill.bench.stand import Benchmark, Stand, Stuck, Timing, cancel_all, empty, rate, run, submit
from workmill.bench.workloads import Workloads
from workmill.domain.errors import ConfigurationError
from workmill.domain.job import Selection
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.store.open import open_store

SMALL: list[Benchmark] = [
    Burst(jobs=300, workers=2, beside=1),
    Ceiling(jobs=300),
    Drain(jobs=300),
    Drain(jobs=300, handler="async", processes=2, payload_bytes=200),
    Enqueue(jobs=1_000, calls=10, threads=3),
    Enqueue(jobs=1_000, calls=10, threads=3, group_commit=False),
    Enqueue(jobs=1_000, calls=10, threads=3, delay=0.001),
    Idle(seconds=0.1, wakings=2, jobs=100, settle=0.1),
    Latency(rate=50, seconds=0.2),
    Latency(rate=50, seconds=0.2, same_process=True),
    Priority(low=50, high=15),
    Scale(rows=1_000, claims=50),
    Workloads(size=0.005, iterations=10),
]
KEYS = {"jobs_per_second", "p50_ms", "p95_ms", "p99_ms", "max_ms", "store", "version", "durability", "rounds", "environment"}


def small(benchmark: Benchmark, *, rounds: int = 1, url: str | None = None) -> Result:
    return run(benchmark, command="a test", progress=Progress(disable=True), rounds=rounds, url=url)


def bench(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WORKMILL_")} | variables
    command = [sys.executable, "-m", "workmill", "bench", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean, timeout=100)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'given.db'}"


@pytest.mark.parametrize("benchmark", SMALL, ids=lambda benchmark: f"{benchmark.name}-{SMALL.index(benchmark)}")
def test_a_benchmark_runs_and_judges_all_its_goals(benchmark: Benchmark) -> None:
    result = small(benchmark)

    assert result.bench == benchmark.name
    assert result.jobs_per_second > 0
    assert 0 <= result.p50_ms <= result.p95_ms <= result.p99_ms <= result.max_ms
    assert [goal.what for goal in result.goals] == [goal.what for goal in benchmark.goals(Place())]


def test_every_round_is_kept_and_the_maximum_is_the_highest_of_all() -> None:
    result = small(Ceiling(jobs=300), rounds=3)

    assert len(result.rounds) == 3
    assert result.max_ms == max(one["max_ms"] for one in result.rounds)
    assert result.jobs_per_second == sorted(one["jobs_per_second"] for one in result.rounds)[1]


def test_the_settings_that_make_it_durable_are_told() -> None:
    assert small(Ceiling(jobs=300)).durability == {"journal_mode": "wal", "synchronous": "full"}


def test_a_store_that_holds_jobs_is_refused_and_left_alone(url: str) -> None:
    store = open_store(url)
    store.submit([new_job(job_id := new_id(), "somebody.s", "{}")])

    with pytest.raises(ConfigurationError, match="holds jobs"):
        small(Drain(jobs=10), url=url)

    assert store.job(job_id).state == "queued"
    store.close()


def test_what_has_ended_in_a_store_that_is_refused_stays(url: str) -> None:
    store = open_store(url)
    store.submit([new_job(ended := new_id(), "somebody.s", "{}", {"queue": "bench"}), new_job(waiting := new_id(), "somebody.s", "{}")])
    store.cancel(Selection(ids=(ended,)), actor="somebody")

    with pytest.raises(ConfigurationError, match="holds jobs"):
        small(Drain(jobs=10), url=url)

    assert [store.job(ended).state, store.job(waiting).state] == ["cancelled", "queued"]
    store.close()


def test_a_store_of_any_size_is_emptied(url: str) -> None:
    store = open_store(url)
    for _ in range(3):
        submit(store, "bench.noop", ["{}"] * 900)

    cancel_all(store)
    empty(store)

    assert store.jobs(Selection()).jobs == ()
    store.close()


def test_a_store_that_is_named_is_used_round_by_round_and_left_without_jobs(url: str) -> None:
    result = small(Drain(jobs=200), rounds=2, url=url)

    store = open_store(url)
    assert len(result.rounds) == 2
    assert store.workers(gone=False) == []
    assert store.jobs(Selection()).jobs == ()
    store.close()


def test_a_worker_that_cannot_start_ends_the_benchmark_with_its_own_words(tmp_path: Path) -> None:
    stand = Stand(tmp_path, Progress(disable=True))

    with stand.store() as store, pytest.raises(Stuck, match="no_such_module"):
        stand.workers(store, "workmill.bench.no_such_module:mill", concurrency=1).__enter__()


def test_json_is_one_object_with_what_the_contract_names() -> None:
    done = bench("drain", "--jobs", "200", "--rounds", "2", "--json")

    result: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0
    assert result.keys() >= KEYS
    assert result["command"] == "workmill bench drain --rounds 2 --jobs 200"


def test_a_table_is_for_people() -> None:
    done = bench("ceiling", "--jobs", "200", "--rounds", "1")

    assert done.returncode == 0
    assert "jobs_per_second" in done.stdout
    assert done.stderr == ""


def test_the_store_of_the_environment_is_not_touched(tmp_path: Path) -> None:
    done = bench("drain", "--jobs", "50", "--rounds", "1", WORKMILL_STORE=f"sqlite:///{tmp_path / 'mine.db'}")

    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_rate_leaves_out_the_last_commit_and_its_time() -> None:
    first = [Timing(0, 0, 0, 1, 500_000)] * 8
    last = [Timing(0, 0, 400_000, 400_001, 1_000_000)] * 100

    assert rate([*first, *last]) == 8
