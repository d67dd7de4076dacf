"""The tutorial, part 4: test an application that uses Workmill.

An application has one Workmill, at the top of one of its modules. Here is a small one.
"""

import pytest

from workmill import Workmill
from workmill.testing import MemoryMill, assert_enqueued, assert_not_enqueued

app = Workmill()
outbox: list[str] = []


@app.job
def send_email(to: str, subject: str, *, urgent: bool = False) -> None:
    outbox.append(f"{subject} → {to}")


@app.job
def clean_up(days: int) -> None:
    raise PermissionError("not ours to delete")


def sign_up(email: str) -> str:
    """What a view of the application does."""
    send_email.enqueue(to=email, subject="Welcome")
    return "Thank you!"


# In your conftest.py this fixture returns your application's Workmill. The fixture `mill` then takes it over for the time of a test: all
# that the application enqueues goes into memory, wherever WORKMILL_STORE points.
@pytest.fixture
def workmill_app() -> Workmill:
    return app


@pytest.fixture(autouse=True)
def empty_outbox() -> None:
    outbox.clear()


def test_that_a_job_was_enqueued(mill: MemoryMill) -> None:
    assert sign_up("ann@example.com") == "Thank you!"

    # The arguments that are named must agree, the others may be anything.
    assert_enqueued(send_email, to="ann@example.com")
    assert_enqueued(send_email, subject="Welcome", urgent=False)
    assert_not_enqueued(send_email, to="bob@example.com")
    assert_not_enqueued(clean_up)
    assert outbox == []


def test_what_a_job_does(mill: MemoryMill) -> None:
    sign_up("ann@example.com")

    mill.run_pending()

    assert outbox == ["Welcome → ann@example.com"]


def test_what_a_function_does_needs_no_workmill_at_all() -> None:
    send_email("ann@example.com", "Hello")

    assert outbox == ["Hello → ann@example.com"]


def test_an_error_stays_with_its_job_unless_it_is_asked_for(mill: MemoryMill) -> None:
    clean_up.enqueue(days=30)
    (ran,) = mill.run_pending()
    assert ran.error == "PermissionError: not ours to delete"

    clean_up.enqueue(days=30)
    with pytest.raises(PermissionError):
        mill.run_pending(raises=True)


def test_a_failed_assertion_says_what_was_enqueued_instead(mill: MemoryMill) -> None:
    sign_up("ann@example.com")

    with pytest.raises(AssertionError) as caught:
        assert_enqueued(send_email, to="bob@example.com")

    name = send_email.type
    assert str(caught.value) == (
        f"{name}(to='bob@example.com') was not enqueued. These were:\n"
        f"  {name}(to='ann@example.com', subject='Welcome') is queued; differs in to"
    )
