"""The checker sees what it is there for: each invariant broken by hand is reported, and names the job, queue or worker."""

import sqlite3
from collections.abc import Callable

import pytest

from workmill.domain.states import State
from workmill.store.base import Store
from workmill.testing.factories import join

Plant = Callable[..., str]
BROKEN = {
    "I5 attempt 4 of 3": "UPDATE workmill_jobs SET attempt = 4 WHERE state = 'dead'",
    "I5 losses 4 of 3": "UPDATE workmill_jobs SET losses = 4 WHERE state = 'dead'",
    "I7 running without a worker, a claim or a lease": "UPDATE workmill_jobs SET claimed_at = NULL WHERE state = 'running'",
    "I7 running for a worker that nobody knows": "DELETE FROM workmill_workers",
    "I7 aside but scheduled": "UPDATE workmill_jobs SET aside = 'suspect', aside_since = 1 WHERE state = 'scheduled'",
    "I7 a suspect in front of the others": "UPDATE workmill_jobs SET suspect = 1 WHERE state = 'queued'",
    "I7 dead without a reason": "UPDATE workmill_jobs SET error_class = NULL WHERE state = 'dead'",
    "I7 more than one suspect held": "UPDATE workmill_jobs SET suspect = 1 WHERE state = 'running'",
    "I15 waiting, though its cancellation was answered": "UPDATE workmill_jobs SET cancel_requested_at = 1 WHERE state = 'queued'",
    "I16 the count of default/dead is maintained as 1 but counted as 0": "DELETE FROM workmill_jobs WHERE state = 'dead'",
    "I16 the count of default/queued is maintained as 2 but counted as 1": (
        "INSERT INTO workmill_counts (queue, state, jobs) VALUES ('default', 'queued', 1)"
    ),
    "I3 history ahead of the lease": (
        "INSERT INTO workmill_attempts (job_id, lease, number, kind, ended_at) SELECT id, 9, 1, 'error', 1 FROM workmill_jobs LIMIT 1"
    ),
    "history without a job": "INSERT INTO workmill_attempts (job_id, lease, number, kind, ended_at) VALUES ('nobody', 1, 1, 'error', 1)",
    "figures below zero": "INSERT INTO workmill_stat_deltas VALUES (NULL, 0, 'default', 'noop', -1, 0, 0, '{}', 0, '{}', 0)",
}


@pytest.mark.parametrize("violation", BROKEN)
def test_a_broken_invariant_is_reported(violation: str, file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    worker = join(file_store)
    for state in State:
        plant(state, worker_id=worker)
    plant(State.RUNNING, worker_id=worker)
    assert file_store.invariants() == []

    sql.execute(BROKEN[violation])

    assert [found for found in file_store.invariants() if found.startswith(violation)]


def test_two_live_jobs_of_one_key_are_reported(file_store: Store, sql: sqlite3.Connection, plant: Plant) -> None:
    sql.execute("DROP INDEX workmill_jobs_unique")
    for state in (State.QUEUED, State.RETRYING, State.DEAD):
        plant(state, unique_key="k")

    assert file_store.invariants() == ["I14 more than one live job of the key: noop/k"]
