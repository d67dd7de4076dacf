"""A worker and an application whose way to PostgreSQL delays, cuts, or swallows answers: no job is lost, and none is run twice at once."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from workmill.domain.errors import StoreUnavailable
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.store.open import open_store
from workmill.testing.factories import LEASE, a_job, join
from workmill.testing.proxy import Proxy

BOUNDS = "from workmill.store.postgres import connections; connections.{} = 1.0"
"""Shortens a bound of the product's, so that a test need not wait for it."""


@pytest.fixture
def network(scene: Any) -> Iterator[Proxy]:
    with Proxy(scene.server) as proxy:
        yield proxy


def test_commits_whose_answers_are_lost_lose_no_job_and_run_none_twice(
    scene: Any, network: Proxy, patiently: Callable[[Callable[[], Any]], Any]
) -> None:
    worker = scene.start("-c", "4", url=network.url)
    jobs = [a_job("work", '{"ms": 5}') for _ in range(60)]
    network.loses_every = 5

    with closing(open_store(network.url, schema=scene.schema)) as application:
        for job in jobs:
            patiently(partial(application.submit, [job]))  # the same job again, until it is answered
    patiently(lambda: network.lost >= 20)
    network.loses_every = 0

    ids = [job.id for job in jobs]
    assert scene.ends(ids) == {State.SUCCEEDED}
    assert scene.begun() == Counter(ids)
    assert {(job.attempt, job.losses) for job in scene.store.jobs(Selection(), limit=100).jobs} == {(1, 0)}
    assert worker.poll() is None
    assert scene.violations() == []


def test_a_commit_whose_answer_never_comes_holds_a_worker_up_for_a_bounded_time(
    scene: Any, network: Proxy, patiently: Callable[[Callable[[], Any]], Any]
) -> None:
    worker = scene.start("-c", "4", url=network.url, before=BOUNDS.format("ANSWER_SECONDS"))
    network.cuts, network.loses_every = False, 4

    ids = scene.submit(40, ms=5)
    patiently(lambda: network.lost >= 5)
    network.loses_every = 0

    assert scene.ends(ids) == {State.SUCCEEDED}
    assert scene.begun() == Counter(ids)
    assert worker.poll() is None
    assert scene.violations() == []


def test_connections_that_hang_without_a_word_cost_a_worker_neither_its_lease_nor_its_jobs(
    scene: Any, network: Proxy, patiently: Callable[[Callable[[], Any]], Any]
) -> None:
    worker = scene.start("-c", "2", url=network.url, lease=6, before=BOUNDS.format("PROMPT_SECONDS"))
    (running,) = scene.submit(1, ms=5_500)
    patiently(lambda: scene.marks("begin"))

    assert network.hang() > 0
    later = scene.submit(5)

    assert scene.ends([running, *later]) == {State.SUCCEEDED}
    assert scene.begun() == Counter([running, *later])
    assert worker.poll() is None
    assert "worker.lost" not in scene.log


def test_a_connection_that_hung_while_it_was_idle_is_replaced_long_before_a_lease_ends(
    scene: Any, network: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workmill.store.postgres.connections.PROMPT_SECONDS", 0.2)
    with closing(open_store(network.url, schema=scene.schema)) as store:
        worker = join(store)
        store.heartbeat(worker, [], 1)

        hanging, asked_at = network.hang(), time.monotonic()
        store.heartbeat(worker, [], 2)

    assert hanging == 2  # one to write, one to read
    assert time.monotonic() - asked_at < LEASE


def test_an_application_whose_connection_hangs_is_told_so_and_its_job_is_there_once(
    scene: Any, network: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workmill.store.postgres.connections.ANSWER_SECONDS", 1.0)
    job = a_job()
    with closing(open_store(network.url, schema=scene.schema)) as application:
        application.counts()
        network.cuts, network.loses_every = False, 1

        with pytest.raises(StoreUnavailable, match="not answered"):
            application.submit([job])
        network.loses_every = 0
        (receipt,) = application.submit([job])

    assert (receipt.id, receipt.created) == (job.id, False)
    assert sum(scene.store.counts().values()) == 1


def test_a_network_that_is_cut_again_and_again_and_slow_in_between_keeps_a_worker_from_nothing(
    scene: Any, network: Proxy, patiently: Callable[[Callable[[], Any]], Any]
) -> None:
    worker = scene.start("-c", "4", url=network.url)
    network.delay = 0.01
    ids: list[str] = []
    for turn in range(1, 6):
        ids += scene.submit(20, ms=5)
        patiently(partial(lambda ended: len(scene.marks("end")) >= ended, 20 * turn - 15))
        network.cut()

    assert scene.ends(ids) == {State.SUCCEEDED}
    assert scene.begun() == Counter(ids)
    assert worker.poll() is None
    assert scene.violations() == []
