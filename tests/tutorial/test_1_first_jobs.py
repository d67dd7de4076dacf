"""The tutorial, part 1: declare functions as jobs, enqueue them, get what they return.

Read from top to bottom. Every test is a lesson that runs; all of it uses what `from workmill import …` gives, and nothing else.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from workmill import InvalidInput, State, Workmill


def test_a_job_is_a_function_that_a_worker_calls(tmp_path: Path) -> None:
    # A Workmill is your application's jobs and the place where they are kept. Without a URL it is `workmill.db` in the current directory,
    # or what WORKMILL_STORE says. Making one opens nothing, so it belongs at the top of a module.
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")

    # A decorator makes a job of a function.
    @mill.job
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    # It is still the function: your other code and your tests can call it.
    assert greet("Ann") == "Hello, Ann!"

    # To have a worker call it, enqueue it, with the same arguments. When this line has returned, the job survives any crash.
    job = greet.enqueue("Bob")
    assert job.state is State.QUEUED

    # Workers are processes of their own, `workmill worker app:mill`. One can also run in threads of this process.
    with mill.run_worker():
        assert job.wait(timeout=20).result == "Hello, Bob!"

    mill.close()


def test_a_coroutine_function_is_a_job_too(tmp_path: Path) -> None:
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")

    # Plain functions run in threads, coroutine functions on an event loop.
    @mill.job
    async def shout(text: str) -> str:
        return text.upper()

    job = shout.enqueue(text="hey")

    with mill.run_worker():
        assert job.wait(timeout=20).result == "HEY"

    mill.close()


@dataclass
class Address:
    street: str
    city: str


@dataclass
class Parcel:
    to: Address
    grams: int
    promised: datetime


def test_arguments_arrive_as_the_types_that_the_function_declares() -> None:
    mill = Workmill("sqlite://")  # in memory, for these lessons

    @mill.job
    def ship(parcel: Parcel, *, insured: bool = False) -> datetime:
        return parcel.promised

    # Dataclasses, msgspec structs, pydantic models, datetimes, UUIDs, decimals, enums, and everything that JSON knows.
    parcel = Parcel(Address("1 Main St", "Riga"), grams=300, promised=datetime(2026, 3, 1, 12, tzinfo=UTC))
    job = ship.enqueue(parcel)

    # A payload is JSON. Defaults are not in it: the function that runs supplies its own.
    assert job.payload == {"parcel": {"to": {"street": "1 Main St", "city": "Riga"}, "grams": 300, "promised": "2026-03-01T12:00:00Z"}}

    with mill.run_worker():
        assert job.wait(timeout=20).result == parcel.promised

    mill.close()


def test_an_argument_that_does_not_fit_is_refused_at_the_call() -> None:
    mill = Workmill("sqlite://")

    @mill.job
    def ship(parcel: Parcel) -> None: ...

    # Not minutes later in a worker's log, but here, with the place and the rule.
    with pytest.raises(InvalidInput, match=r"parcel\.grams: must be int \(got str\)"):
        ship.enqueue({"to": {"street": "1 Main St", "city": "Riga"}, "grams": "300", "promised": "2026-03-01T12:00:00Z"})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="parcel: is missing; it takes parcel"):
        ship.enqueue()  # type: ignore[call-arg]

    # A type checker sees both mistakes before you run anything: `enqueue` has the parameters of the function.
    mill.close()
