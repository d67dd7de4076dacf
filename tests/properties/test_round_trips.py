"""L0: what goes in comes out, byte for byte and microsecond for microsecond, whatever it is."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workmill.domain.job import Progress, Selection
from workmill.domain.limits import MAX_ATTEMPTS, MAX_LOSSES, MAX_SECONDS, SECOND
from workmill.domain.states import State
from workmill.domain.submission import new_job
from workmill.domain.worker import Held
from workmill.ids import new_id
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim_one, failed, join, report, submit, succeeded
from workmill.testing.steps import ACTOR

NOW = MovableClock()
unicode = st.characters(exclude_categories=["Cs"])
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}", fullmatch=True).filter(lambda name: not name.startswith("workmill."))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(unicode),
    lambda children: st.lists(children) | st.dictionaries(st.text(unicode), children),
    max_leaves=10,
)
json_texts = st.builds(
    lambda value, ascii_only, indent, tail: json.dumps(value, ensure_ascii=ascii_only, indent=indent) + tail,
    json_values,
    st.booleans(),
    st.sampled_from([None, 0, 3]),
    st.sampled_from(["", " ", "\n\t"]),
)
times = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - they get one
options = st.fixed_dictionaries(
    {},
    optional={
        "queue": names,
        "priority": st.integers(-100, 100),
        "run_at": times,
        "expires_at": times,
        "timeout": st.floats(0.001, MAX_SECONDS),
        "max_attempts": st.integers(1, MAX_ATTEMPTS),
        "max_losses": st.integers(1, MAX_LOSSES),
        "unique_key": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=200),
        "tags": st.lists(names, max_size=20, unique=True).map(tuple),
        "meta": st.dictionaries(st.text(unicode), json_values, max_size=3).map(json.dumps),
        "traceparent": st.just("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    },
)
shared_store = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store("sqlite://", NOW)) as store:
        yield store


@shared_store
@given(names, json_texts, options)
def test_every_option_of_a_submission_is_read_as_it_was_given(store: Store, type: str, payload: str, given: dict[str, Any]) -> None:
    receipt = store.submit([new_job(new_id(), type, payload, given)])[0]

    job = store.job(receipt.id)

    assert (job.type, job.payload) == (type, payload)
    assert {name: getattr(job, name) for name in given} == given
    due = "run_at" not in given or given["run_at"] <= job.created_at
    assert job.state is (State.QUEUED if due else State.SCHEDULED)
    store.cancel(Selection(ids=(receipt.id,)), actor=ACTOR)


@shared_store
@given(json_texts)
def test_a_result_is_read_as_it_was_reported(store: Store, result: str) -> None:
    receipt = submit(store)
    worker = join(store)

    report(store, worker, succeeded(claim_one(store, worker), result))

    assert store.job(receipt.id).result == result


@shared_store
@given(st.text(unicode, max_size=500), st.text(unicode, min_size=1, max_size=80), st.text(unicode, max_size=500))
def test_an_error_is_read_as_it_was_reported(store: Store, message: str, error_class: str, traceback: str) -> None:
    receipt = submit(store, max_attempts=1)
    worker = join(store)

    report(store, worker, failed(claim_one(store, worker), message, error_class=error_class, traceback=traceback))

    assert store.job(receipt.id).error == (error_class, message, traceback)
    assert store.count(Selection(error_class=error_class, ids=())) >= 1


@shared_store
@given(st.none() | st.floats(0, 1), st.none() | st.text(unicode, max_size=200))
def test_progress_is_read_as_it_was_said(store: Store, fraction: float | None, message: str | None) -> None:
    submit(store)
    worker = join(store)
    run = claim_one(store, worker)

    store.heartbeat(worker, [Held(run.fence, Progress(fraction=fraction, message=message))], 1)

    assert store.job(run.id).progress == Progress(fraction=fraction, message=message)
    report(store, worker, succeeded(run))


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=30), st.integers(1, 5))
def test_figures_are_the_sum_of_what_was_reported_however_it_is_folded(runs: list[tuple[int, int]], limit: int) -> None:
    with closing(open_store("sqlite://", MovableClock())) as store:
        worker = join(store)
        for waited, ran in runs:
            submit(store)
            report(store, worker, succeeded(claim_one(store, worker), waited=waited, ran=ran))
            store.fold(limit)

        (figures,) = store.stats(60)

    assert (figures.succeeded, figures.wait.count, figures.run.count) == (len(runs), len(runs), len(runs))
    assert figures.wait.max == max(waited for waited, _ in runs) / SECOND
    assert figures.run.max == max(ran for _, ran in runs) / SECOND


@shared_store
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 5), st.integers(0, 3))
def test_pages_of_any_size_are_all_that_matches_newest_first(store: Store, tags: list[int], limit: int, wanted: int) -> None:
    mine = new_id()
    made = [submit(store, queue=mine, tags=[f"t{tag}"], delay=tag or None).id for tag in tags]
    cursor, found = None, []
    while cursor is not None or not found:
        page = store.jobs(Selection(queue=mine, tag=f"t{wanted}"), limit=limit, cursor=cursor)
        found += [job.id for job in page.jobs]
        cursor = page.next
        if cursor is None:
            break

    assert found == [job_id for job_id, tag in zip(made, tags, strict=True) if tag == wanted][::-1]
