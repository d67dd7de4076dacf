"""The commands that act: by ids, by filter, in batches, asked for, and told what became of it."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from workmill.domain.job import Bulk
from workmill.domain.states import State
from workmill.domain.worker import Hello, WorkerState
from workmill.store.base import Store

Workmill = Callable[..., Result]
Submit = Callable[..., str]


def state(store: Store, job_id: str) -> State:
    return store.job(job_id).state


def test_a_dead_job_is_retried_by_its_id(workmill: Workmill, store: Store, dead: Submit) -> None:
    job_id = dead()

    done = workmill("jobs", "retry", job_id)

    assert (done.exit_code, done.stdout) == (0, f"{job_id} queued again\n")
    assert state(store, job_id) is State.QUEUED


def test_a_waiting_job_is_cancelled_and_a_running_one_asked_to_stop(workmill: Workmill, store: Store, submit: Submit) -> None:
    from workmill.domain.worker import Wants  # noqa: PLC0415 - used here only

    running = submit()
    worker = store.join(Hello(name="ada", host="here", pid=7, version="1", lease_seconds=15.0))
    store.exchange(worker, [], Wants(anywhere=1))
    waiting = submit()

    assert workmill("jobs", "cancel", waiting).stdout == f"{waiting} cancelled\n"
    assert workmill("jobs", "cancel", running).stdout == f"{running} is running and asked to stop\n"
    again = workmill("jobs", "cancel", running)
    assert (again.exit_code, again.stderr) == (1, f"{running}: asked to stop before\n")


def test_a_dead_job_is_discarded_for_good(workmill: Workmill, store: Store, dead: Submit) -> None:
    job_id = dead()

    assert workmill("jobs", "discard", job_id).stdout == f"{job_id} discarded\n"
    assert workmill("jobs", "show", job_id).exit_code == 1


def test_a_waiting_job_is_rescheduled(workmill: Workmill, store: Store, submit: Submit) -> None:
    job_id = submit()

    assert workmill("jobs", "reschedule", job_id, "--in", "5m").exit_code == 0
    assert state(store, job_id) is State.SCHEDULED
    assert workmill("jobs", "reschedule", job_id, "--at", "2030-01-01T00:00:00Z").exit_code == 0
    assert store.job(job_id).run_at.year == 2030
    assert workmill("jobs", "reschedule", job_id).exit_code == 0
    assert state(store, job_id) is State.QUEUED


def test_what_cannot_be_done_to_a_job_is_exit_code_one_with_the_reason(workmill: Workmill, submit: Submit) -> None:
    job_id = submit()

    retried, unknown = workmill("jobs", "retry", job_id), workmill("jobs", "retry", "nobody")

    assert (retried.exit_code, retried.stderr) == (1, f"{job_id}: live or succeeded, so there is nothing to retry\n")
    assert (unknown.exit_code, unknown.stderr) == (1, "nobody: unknown\n")


def test_several_ids_of_which_one_is_left_are_exit_code_one(workmill: Workmill, store: Store, submit: Submit) -> None:
    first, second = submit(), submit()

    done = workmill("jobs", "cancel", first, second, second, "nobody", "--json")

    assert done.exit_code == 1
    assert json.loads(done.stdout) == {"action": "cancel", "dry_run": False, "done": 2, "skipped": {"not_found": 1}}


def test_a_filter_acts_on_all_that_match_in_batches(
    workmill: Workmill, store: Store, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [submit(queue="mail") for _ in range(7)]
    other = submit(queue="video")
    monkeypatch.setattr("workmill.cli.bulk.BATCH", 3)

    done = workmill("jobs", "cancel", "--queue", "mail", "--yes")

    assert (done.exit_code, done.stdout) == (0, "7 jobs cancelled\n")
    assert {state(store, job_id) for job_id in jobs} == {State.CANCELLED}
    assert state(store, other) is State.QUEUED


def test_a_dry_run_counts_and_changes_nothing(workmill: Workmill, store: Store, submit: Submit) -> None:
    job_id = submit(queue="mail")

    done = workmill("jobs", "cancel", "--queue", "mail", "--dry-run")
    as_json = workmill("jobs", "cancel", "--queue", "mail", "--dry-run", "--json")

    assert done.stdout == "1 job would be looked at; nothing was changed\n"
    assert json.loads(as_json.stdout) == {"action": "cancel", "dry_run": True, "done": 0, "skipped": {}, "matching": 1}
    assert state(store, job_id) is State.QUEUED


def test_by_filter_retry_and_discard_leave_alone_what_was_cancelled_on_purpose(
    workmill: Workmill, store: Store, submit: Submit, dead: Submit
) -> None:
    cancelled, lost = submit(), dead()
    workmill("jobs", "cancel", cancelled)

    workmill("jobs", "retry", "--all", "--yes")

    assert state(store, lost) is State.QUEUED
    assert state(store, cancelled) is State.CANCELLED
    assert workmill("jobs", "retry", "--state", "cancelled", "--yes").stdout == "1 job queued again\n"


@pytest.mark.parametrize("verb", ["retry", "cancel", "discard", "reschedule"])
def test_a_verb_without_ids_and_filters_asks_which_jobs(verb: str, workmill: Workmill, store: Store) -> None:
    done = workmill("jobs", verb)

    assert done.exit_code == 2
    assert "say which jobs: ids, a filter, or --all" in done.stderr


def test_ids_and_filters_together_are_refused(workmill: Workmill, store: Store) -> None:
    assert workmill("jobs", "cancel", "x", "--queue", "mail").exit_code == 2
    assert workmill("jobs", "cancel", "x", "--all").exit_code == 2
    assert workmill("jobs", "reschedule", "x", "--in", "5m", "--at", "2030-01-01T00:00:00Z").exit_code == 2


def test_an_empty_filter_is_refused_and_does_not_widen_the_others(workmill: Workmill, store: Store, submit: Submit) -> None:
    job_id = submit(queue="mail")

    done = workmill("jobs", "cancel", "--queue", "mail", "--key", "", "--yes")

    assert (done.exit_code, done.stderr[:28]) == (2, "workmill jobs cancel: --key:")
    assert state(store, job_id) is State.QUEUED


def test_a_filter_needs_a_yes_where_nobody_can_be_asked(workmill: Workmill, store: Store, submit: Submit) -> None:
    job_id = submit(queue="mail")

    done = workmill("jobs", "cancel", "--queue", "mail")

    assert done.exit_code == 2
    assert "add --yes" in done.stderr
    assert state(store, job_id) is State.QUEUED


@pytest.mark.parametrize(("said", "code", "after"), [("y\n", 0, State.CANCELLED), ("n\n", 1, State.QUEUED)])
def test_who_can_be_asked_is_asked(
    *, said: str, code: int, after: State, workmill: Workmill, store: Store, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(queue="mail")
    monkeypatch.setattr("workmill.cli.bulk.interactive", lambda: True)

    done = workmill("jobs", "cancel", "--queue", "mail", input=said)

    assert done.exit_code == code
    assert "cancel 1 job?" in done.stderr
    assert state(store, job_id) is after


def test_ctrl_c_between_batches_says_how_far_it_came_and_exits_with_four(
    workmill: Workmill, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(queue="mail")
    submit(queue="mail")
    answers = iter([Bulk(1, {}, "more")])

    def once(*_: object, **__: object) -> Bulk:
        try:
            return next(answers)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("workmill.store.sqlite.store.SQLiteStore.cancel", once)
    done = workmill("jobs", "cancel", "--queue", "mail", "--yes")

    assert (done.exit_code, done.stdout) == (4, "1 job cancelled\n")
    assert done.stderr == "interrupted: there may be more\n"


def test_queues_are_paused_resumed_and_limited(workmill: Workmill, store: Store) -> None:
    assert workmill("queues", "pause", "mail", "video").stdout == "mail is paused\nvideo is paused\n"
    assert [queue.paused for queue in store.queues()] == [True, True]
    assert workmill("queues", "resume", "mail").stdout == "mail goes on\n"
    assert workmill("queues", "limit", "mail", "4").stdout == "mail: at most 4 at once, across all workers\n"
    assert store.queues()[0].limit == 4
    assert workmill("queues", "limit", "mail", "none").stdout == "mail: no limit\n"
    assert store.queues()[0].limit is None


@pytest.mark.parametrize(("queue", "limit"), [("a/b", "1"), ("mail", "x"), ("mail", "-1"), ("mail", "1.5"), ("mail", "9" * 30)])
def test_a_limit_or_a_name_that_cannot_be_is_refused(queue: str, limit: str, workmill: Workmill, store: Store) -> None:
    done = workmill("queues", "limit", queue, "--", limit)

    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert store.queues() == []


def test_a_worker_is_drained_and_resumed_by_name_or_id(workmill: Workmill, store: Store) -> None:
    worker = store.join(Hello(name="ada", host="here", pid=7, version="1", lease_seconds=15.0))

    assert workmill("workers", "drain", "ada").stdout == f"ada ({worker}) drains; 0 running\n"
    assert store.workers()[0].state is WorkerState.DRAINING
    assert workmill("workers", "resume", worker).stdout == f"ada ({worker}) works again\n"
    assert store.workers()[0].state is WorkerState.RUNNING


def test_a_worker_that_is_unknown_or_one_of_two_is_not_guessed(workmill: Workmill, store: Store) -> None:
    store.join(Hello(name="ada", host="here", pid=7, version="1", lease_seconds=15.0))
    store.join(Hello(name="ada", host="here", pid=8, version="1", lease_seconds=15.0))

    unknown, ambiguous = workmill("workers", "drain", "bruno"), workmill("workers", "drain", "ada")

    assert (unknown.exit_code, unknown.stderr) == (1, "workmill workers drain: no worker bruno\n")
    assert ambiguous.exit_code == 1
    assert "2 workers are named ada: say which by id" in ambiguous.stderr
    assert {worker.state for worker in store.workers()} == {WorkerState.RUNNING}
