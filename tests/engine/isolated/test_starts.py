"""Children that cannot start: it is said, jobs are not charged, and nothing spins."""

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.outcome import Released, ReleaseReason
from workmill.engine.executors import nursery

Make = Callable[[str], Any]
Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A module with this text, as a target."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str) -> str:
        (tmp_path / "short_lived.py").write_text(text)
        return "short_lived:mill"

    return write


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("import nothing_of_that_name", "importing short_lived raised ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("mill = 3", "must be a Workmill"),
        ("import os; os._exit(5)", "exit code 5"),
        ("import os; os.abort()", "killed by signal SIGABRT"),
        ("raise SystemExit('no')", "SystemExit: no"),
    ],
)
def test_a_target_that_cannot_be_imported_gives_the_run_back_and_says_why(
    make_isolation: Make, target: Callable[[str], str], text: str, cause: str
) -> None:
    isolation = make_isolation(target(text))
    isolation.open()

    outcome = isolation.outcome("pid")

    assert isinstance(outcome, Released)
    assert (outcome.reason, outcome.delay) == (ReleaseReason.SNOOZE, 1.0)
    assert outcome.detail.startswith("no child process could be started: ")
    assert cause in outcome.detail
    assert cause in isolation.told("child.not_started")[0].fields["cause"]


def test_a_command_that_does_not_exist_gives_the_run_back(make_isolation: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    isolation = make_isolation("isolated_target:mill")
    isolation.open()

    assert "No such file" in isolation.outcome("pid").detail


def test_a_child_that_is_not_ready_in_time_is_killed(
    make_isolation: Make, target: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nursery, "START_SECONDS", 0.5)
    isolation = make_isolation(target("import time; time.sleep(1000)"))
    isolation.open()

    assert "was not ready within 0.5 s" in isolation.outcome("pid").detail


def test_starts_that_fail_are_tried_again_with_growing_pauses_and_only_for_a_run(
    make_isolation: Make, target: Callable[[str], str], until: Until
) -> None:
    isolation = make_isolation(target("raise RuntimeError"))
    isolation.open()

    for _ in range(3):
        isolation.outcome("pid")

    failures = isolation.told("child.not_started")
    assert [event.fields["pause"] for event in failures] == [0.5, 1.0, 2.0]
    assert failures[2].at - failures[0].at >= 1_500_000


def test_a_start_that_succeeds_later_ends_the_pauses(make_isolation: Make, target: Callable[[str], str], tmp_path: Path) -> None:
    isolation = make_isolation(
        target(f"import pathlib; assert pathlib.Path({str(tmp_path / 'mended')!r}).exists()\nfrom isolated_target import mill")
    )
    isolation.open()
    isolation.outcome("pid")

    (tmp_path / "mended").touch()

    assert json.loads(isolation.outcome("pid").result)


def test_a_type_that_only_the_worker_knows_is_a_failed_attempt(make_isolation: Make, target: Callable[[str], str]) -> None:
    isolation = make_isolation(target("from workmill import Workmill\nmill = Workmill()"))
    isolation.open()

    outcome = isolation.outcome("pid")

    assert outcome.error.type == "NotFound"
    assert "imports the target anew" in outcome.error.message


def test_the_modules_of_the_worker_are_those_of_the_child(make_isolation: Make, target: Callable[[str], str]) -> None:
    text = """
        import sys
        from workmill import Workmill
        mill = Workmill()
        @mill.job(name="pid", isolate=True)
        def path(): return sys.path
    """
    isolation = make_isolation(target(textwrap.dedent(text)))
    isolation.open()

    assert isolation.result("pid") == sys.path


def test_a_guard_that_was_killed_is_replaced(isolation: Any, until: Until, tmp_path: Path) -> None:
    isolation.start("progress", path=str(tmp_path / "go"))
    until(lambda: isolation.told("job.started"))
    [guard] = isolation.guards()

    guard.kill()

    until(lambda: len(isolation.guards()) == 1 and isolation.guards() != [guard])
    (tmp_path / "go").touch()
    isolation.ending()
