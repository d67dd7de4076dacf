"""A store that polls only works behind a pooler in transaction mode, where each transaction may find itself on another connection."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest

from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.conformance import beating, claiming, ending, exchanging, operating, rescuing, retaining, submitting, upkeeping
from workmill.testing.servers import PgBouncer, PostgresServer

NUMBERS = count(1)


@pytest.fixture(scope="module")
def bouncer(postgres: PostgresServer) -> Iterator[PgBouncer]:
    if shutil.which("pgbouncer") is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no PgBouncer")
        pytest.skip("there is no PgBouncer here (Debian: apt install pgbouncer)")
    bouncer = PgBouncer(postgres)
    yield bouncer
    bouncer.remove()


@pytest.fixture
def store(bouncer: PgBouncer, clock: MovableClock) -> Iterator[Store]:
    with closing(open_store(bouncer.url, clock, schema=f"bounced_{next(NUMBERS)}")) as store:
        store.migrate()
        yield store


class TestSubmitting(submitting.Submitting): ...


class TestUniqueKeys(submitting.UniqueKeys): ...


class TestFailing(ending.Failing): ...


class TestJudging(exchanging.Judging): ...


class TestClaiming(claiming.Claiming): ...


class TestRestricting(claiming.Restricting): ...


class TestBeating(beating.Beating): ...


class TestRescuing(rescuing.Rescuing): ...


class TestFolding(retaining.Folding): ...


class TestPromoting(upkeeping.Promoting): ...


class TestReviving(operating.Reviving): ...
