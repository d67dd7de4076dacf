"""PostgreSQL is stopped, killed, its backends ended: nothing answered is lost, nothing is ended because of it, all goes on at once."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.sql import SQL, Composed, Identifier

from workmill.domain.errors import StoreError, StoreUnavailable
from workmill.domain.outcome import Accepted, LeaseLost
from workmill.domain.states import State
from workmill.domain.worker import Held, Wants
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.postgres.connections import connect
from workmill.store.postgres.listener import PROBE_SECONDS, Listener
from workmill.testing.factories import a_job, claim, claim_one, join, report, submit, submit_many, succeeded
from workmill.testing.servers import PostgresServer
from workmill.testing.steps import ACTOR, only, settle

CHILD = Path(__file__).with_name("postgres_child.py")
PATIENCE = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A durable server of this module's own, to be broken."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    return f"faults_{abs(hash(request.node.nodeid)) % 10**9}"


@pytest.fixture
def store(server: PostgresServer, schema: str) -> Iterator[Store]:
    with closing(open_store(server.url, schema=schema)) as store:
        store.migrate()
        yield store


@pytest.fixture
def sql(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the test's own, in autocommit."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


@contextmanager
def child(verb: str, server: PostgresServer, schema: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that does something, and is killed in the end if it still runs."""
    command = [sys.executable, "-W", "error", str(CHILD), verb, server.url, schema, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(condition: Callable[[], Any]) -> Any:
    """Wait until it holds, and return what it returned; a bound, not a measure. An error of the store is a no."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(StoreError):
            if found := condition():
                return found
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)


def sql_of(text: LiteralString, schema: str) -> Composed:
    """A statement on a table of the store."""
    return SQL(text).format(Identifier(schema))


def end_backends(sql: psycopg.Connection[Any]) -> int:
    """End every other connection to the server."""
    ended = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    return int(sql.execute(ended).fetchall()[0][0])


def test_what_was_acknowledged_survives_immediate_restarts(
    server: PostgresServer, store: Store, schema: str, rounds: Callable[..., int]
) -> None:
    for _ in range(rounds(2, soak=20)):
        with child("submit_forever", server, schema) as process:
            assert process.stdout is not None
            said = [process.stdout.readline().strip() for _ in range(20)]
            server.restart(signal.SIGQUIT)
            said += [process.stdout.readline().strip() for _ in range(20)]
            process.kill()
            said += [line.strip() for line in process.stdout if line.endswith("\n")]
        until(store.counts)
        assert {store.job(job_id).state for job_id in said} == {State.QUEUED}
        settle(store)


def test_a_worker_that_is_killed_leaves_every_job_whole(
    server: PostgresServer, store: Store, schema: str, rounds: Callable[..., int]
) -> None:
    for _ in range(rounds(3, soak=200)):
        with child("work_forever", server, schema) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "go\n"
            time.sleep(0.2)
            process.kill()
        until(lambda: store.invariants() == [])
    settle(store)


def test_jobs_of_a_killed_worker_run_again_within_their_lease(server: PostgresServer, store: Store, schema: str) -> None:
    ids = {receipt.id for receipt in submit_many(store, 5)}
    with child("hold_for_ever", server, schema, 5) as process:
        assert process.stdout is not None
        held = {process.stdout.readline().strip() for _ in range(5)}
        process.kill()
    assert held == ids

    def all_back() -> bool:
        store.win_turn(0.1)
        store.rescue()
        return {store.job(job_id).state for job_id in ids} == {State.RETRYING}

    until(all_back)
    settle(store)


def test_every_connection_may_be_ended_at_any_time(store: Store, sql: psycopg.Connection[Any]) -> None:
    worker = join(store)
    submit_many(store, 10)
    runs = claim(store, worker, 4)

    assert end_backends(sql) > 0
    verdicts = report(store, worker, *map(succeeded, runs))
    end_backends(sql)
    store.heartbeat(worker, [], 1)
    end_backends(sql)
    submit(store)
    end_backends(sql)

    assert [type(verdict) for verdict in verdicts] == [Accepted] * 4
    assert store.counts() == {("default", State.SUCCEEDED): 4, ("default", State.QUEUED): 7}
    settle(store)


def test_a_server_that_is_away_is_unavailable_and_nothing_is_ended_because_of_it(server: PostgresServer, store: Store) -> None:
    worker = join(store)
    submit_many(store, 3)
    runs = claim(store, worker, 3)

    server.stop()
    for attempt in (
        lambda: submit(store),
        lambda: report(store, worker, *map(succeeded, runs)),
        lambda: store.heartbeat(worker, [Held(run.fence) for run in runs], 1),
        store.rescue,
        store.counts,
    ):
        with pytest.raises(StoreUnavailable):
            attempt()
    server.start()

    assert store.counts() == {("default", State.RUNNING): 3}
    assert store.exchange(worker, [succeeded(run) for run in runs], Wants()).known
    settle(store)


def test_a_statement_that_is_cancelled_ends_nothing(store: Store, sql: psycopg.Connection[Any], schema: str) -> None:
    worker = join(store)
    submit(store)
    run = claim_one(store, worker)
    failures: list[BaseException] = []

    def hand_in() -> None:
        try:
            report(store, worker, succeeded(run))
        except StoreUnavailable as error:
            failures.append(error)

    with psycopg.connect(sql.info.dsn) as holder:
        holder.execute(sql_of("SELECT 1 FROM {}.jobs FOR UPDATE", schema))
        thread = threading.Thread(target=hand_in)
        thread.start()
        until(
            lambda: sql.execute(
                "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%succeeded%'"
            ).fetchall()[0][0]
        )
        thread.join()
        holder.rollback()

    assert len(failures) == 1
    assert store.job(run.id).state is State.RUNNING
    assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]
    settle(store)


def test_a_row_that_the_application_holds_stops_no_lease_and_no_other_job(store: Store, sql: psycopg.Connection[Any], schema: str) -> None:
    worker = join(store)
    held, other = submit(store, run_at=None), submit(store)
    runs = claim(store, worker, 2)
    waiting = submit_many(store, 2, delay=0)

    with psycopg.connect(sql.info.dsn) as holder:
        holder.execute(sql_of("SELECT 1 FROM {}.jobs WHERE id = ANY(%s) FOR UPDATE", schema), [[held.id, waiting[0].id]])
        orders = store.heartbeat(worker, [Held(run.fence) for run in runs], 1)
        done = store.cancel(only(*(receipt.id for receipt in waiting)), actor=ACTOR)
        verdicts = report(store, worker, *(succeeded(run) for run in runs if run.id == other.id))
        holder.rollback()

    assert (orders.lost, orders.cancel) == ((), ())
    assert (done.done, done.skipped) == (1, {"busy": 1})
    assert len(verdicts) == 1
    assert store.job(held.id).state is State.RUNNING
    settle(store)


def test_a_late_write_is_refused_also_when_the_server_was_killed_just_after_the_claim(server: PostgresServer, store: Store) -> None:
    first, second = join(store), join(store)
    submit(store)
    run = claim_one(store, first)
    server.restart(signal.SIGQUIT)
    store.leave(first)
    again = claim_one(store, second)

    assert again.fence.lease > run.fence.lease
    assert report(store, first, succeeded(run)) == [LeaseLost(run.fence)]
    assert report(store, second, succeeded(again)) == [Accepted(again.fence, State.SUCCEEDED)]


def test_the_submission_of_another_process_wakes_who_has_subscribed_and_again_after_its_listener_was_ended(
    server: PostgresServer, store: Store, schema: str, sql: psycopg.Connection[Any]
) -> None:
    woken = threading.Semaphore(0)
    stop = store.subscribe(woken.release)
    assert woken.acquire(timeout=PATIENCE)  # it listens
    with child("submit_one", server, schema) as process:
        process.communicate()
    assert woken.acquire(timeout=PATIENCE)

    listeners = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'workmill listener'"
    assert sql.execute(listeners).fetchall() == [(1,)]

    assert woken.acquire(timeout=PATIENCE)  # it listens again, and says so, since it may have missed something
    with child("submit_one", server, schema) as process:
        process.communicate()
    assert woken.acquire(timeout=PATIENCE)
    stop()


def test_a_store_that_polls_only_works_the_same_and_opens_no_connection_to_listen(
    server: PostgresServer, store: Store, schema: str, sql: psycopg.Connection[Any]
) -> None:
    with closing(open_store(f"{server.url}&notify=off", schema=schema)) as quiet:
        quiet.subscribe(lambda: None)
        worker = join(quiet)
        submit_many(quiet, 3)

        assert len(claim(quiet, worker, 5)) == 3
        assert sql.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'workmill listener'").fetchall() == [(0,)]


def test_connections_are_few_and_opened_when_they_are_needed(store: Store, sql: psycopg.Connection[Any]) -> None:
    mine = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'workmill%'"
    store.close()
    assert until(lambda: sql.execute(mine).fetchall() == [(0,)])

    threads = [threading.Thread(target=lambda: [submit(store) for _ in range(5)]) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sql.execute(mine).fetchall()[0][0] <= 2  # one writes, one tells other processes
    assert sum(store.counts().values()) == 320


def in_child(store: Store) -> None:
    submit(store, type="in-child")
    os._exit(0)


def test_a_forked_child_opens_its_own_connections_and_leaves_its_parents_alone(store: Store, sql: psycopg.Connection[Any]) -> None:
    submit(store)
    backends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'workmill' ORDER BY pid"
    before = set(sql.execute(backends).fetchall())

    process = multiprocessing.get_context("fork").Process(target=in_child, args=(store,))
    process.start()
    process.join(PATIENCE)
    submit(store)

    assert process.exitcode == 0
    assert sum(store.counts().values()) == 3
    assert before <= set(sql.execute(backends).fetchall())


def test_a_big_payload_is_no_matter_for_a_notification(store: Store) -> None:
    woken = threading.Semaphore(0)
    stop = store.subscribe(woken.release)
    assert woken.acquire(timeout=PATIENCE)

    receipt = store.submit([a_job(payload='"' + "x" * 1_000_000 + '"')])[0]

    assert woken.acquire(timeout=PATIENCE)
    assert len(store.job(receipt.id).payload or "") == 1_000_002
    stop()


def test_a_server_that_has_become_read_only_is_unavailable_and_left_for_one_that_is_not(store: Store, sql: psycopg.Connection[Any]) -> None:
    worker = join(store)
    submit(store)
    run = claim_one(store, worker)
    sql.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
    store.close()

    try:
        for attempt in (lambda: submit(store), lambda: report(store, worker, succeeded(run)), store.rescue):
            with suppress(StoreUnavailable):
                attempt()
        with pytest.raises(StoreUnavailable, match="read-only"):
            submit(store)
    finally:
        sql.execute("SET transaction_read_only = off")
        sql.execute("ALTER DATABASE postgres RESET default_transaction_read_only")

    assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]
    settle(store)


def test_who_listens_no_more_keeps_no_connection_and_what_was_committed_before_a_close_is_told(
    server: PostgresServer, store: Store, schema: str, sql: psycopg.Connection[Any]
) -> None:
    listeners = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'workmill listener'"
    woken = threading.Semaphore(0)
    stop = store.subscribe(woken.release)
    assert woken.acquire(timeout=PATIENCE)
    for _ in range(10):
        with closing(open_store(server.url, schema=schema)) as other:
            submit(other)
        assert woken.acquire(timeout=PATIENCE)

    stop()

    assert until(lambda: sql.execute(listeners).fetchall() == [(0,)])


def test_a_listener_that_hears_nothing_keeps_its_connection(server: PostgresServer) -> None:
    heard = threading.Event()
    listener = Listener(lambda: connect(server.url, prepare=False), heard.set, "own")
    with closing(listener):
        listener.run_once()
        heard.clear()
        before = listener._connection

        waits = [listener.run_once() for _ in range(3)]

        assert waits == [PROBE_SECONDS] * 3
        assert listener._connection is before
        assert not heard.is_set()
