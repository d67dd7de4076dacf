"""The root of the command line: help, version, errors in one line, exit codes, pipes, variables."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import Result

from workmill.cli.program import COMMANDS, main, program
from workmill.cli.reference import commands, known_variables
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.store.base import Store

Workmill = Callable[..., Result]
Process = Callable[..., "subprocess.Popen[str]"]
ALL = [context.command_path for context in commands(program, "workmill")]


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_help_that_fits_eighty_columns(path: str, workmill: Workmill) -> None:
    done = workmill(*path.split()[1:], "--help")

    assert done.exit_code == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "Usage: workmill" in done.stdout


def test_help_lists_every_command_of_this_version_and_none_of_a_later_one(workmill: Workmill) -> None:
    out = workmill("--help").stdout

    assert [line.split()[0] for line in out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()] == list(COMMANDS)


def test_the_version_is_shown(workmill: Workmill) -> None:
    assert workmill("--version").stdout.startswith("workmill ")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["no-such"], "workmill: No such command 'no-such' (see workmill --help)"),
        (["jobs", "no-such"], "workmill jobs: No such command 'no-such' (see workmill jobs --help)"),
        (["audit", "--no-such-option"], "workmill audit: No such option '--no-such-option' (see workmill audit --help)"),
        (["jobs", "show"], "workmill jobs show: ID: is missing"),
        (["audit", "--limit", "x"], "workmill audit: --limit: 'x' is not a valid integer range."),
        (["--store", "nonsense", "audit"], "workmill audit: WORKMILL_STORE: must be sqlite:///path or postgresql://… (got 'nonsense')"),
        (["migrate", "--check", "--sql"], "workmill migrate: --check and --sql cannot be used together (see workmill migrate --help)"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_two(args: list[str], line: str, workmill: Workmill) -> None:
    done = workmill(*args)

    assert (done.exit_code, done.stdout, done.stderr) == (2, "", line + "\n")


def test_a_bad_value_from_the_environment_is_reported_by_its_variable(workmill: Workmill) -> None:
    done = workmill("audit", env={"WORKMILL_AUDIT_LIMIT": "many"})

    assert done.exit_code == 2
    assert done.stderr.startswith("workmill audit: WORKMILL_AUDIT_LIMIT: 'many'")


@pytest.mark.parametrize(
    "args", [["audit"], ["jobs", "list"], ["jobs", "show", "x"], ["jobs", "retry", "x"], ["queues", "list"], ["doctor"]]
)
def test_a_store_that_is_not_there_is_exit_code_three_and_is_not_made(args: list[str], workmill: Workmill, tmp_path: Path) -> None:
    done = workmill(*args)

    assert done.exit_code == 3
    assert "there is no such store" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_a_directory_that_is_not_there_is_exit_code_three(workmill: Workmill) -> None:
    done = workmill("--store", "sqlite:////nowhere/at/all/jobs.db", "enqueue", "echo")

    assert (done.exit_code, len(done.stderr.splitlines())) == (3, 1)


def test_a_file_that_is_no_database_is_exit_code_one_and_says_so(workmill: Workmill, tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_bytes(b"no database at all, but long enough to be read as one" * 100)

    done = workmill("jobs", "list")

    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert "not a database" in done.stderr


def test_the_flag_wins_over_the_variable_and_the_store_may_stand_behind_the_command(workmill: Workmill, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.db"

    workmill("--store", other, "enqueue", "echo")
    behind = workmill("jobs", "list", "--store", other, "--json")
    usual = workmill("jobs", "list")

    assert behind.exit_code == 0
    assert '"type": "echo"' in behind.stdout
    assert usual.exit_code == 3


def test_a_defect_is_one_line_and_its_traceback_is_for_debug(workmill: Workmill, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr("workmill.cli.session.exists", broken)
    plain, debug, variable = workmill("audit"), workmill("--debug", "audit"), workmill("audit", env={"WORKMILL_DEBUG": "1"})

    assert plain.stderr.startswith("workmill audit: RuntimeError: a\\nb (a defect of Workmill")
    assert len(plain.stderr.splitlines()) == 1
    assert "Traceback (most recent call last)" in debug.stderr
    assert "Traceback (most recent call last)" in variable.stderr
    assert {plain.exit_code, debug.exit_code, variable.exit_code} == {1}


def test_ctrl_c_is_one_line_and_exit_code_130(workmill: Workmill, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workmill.cli.session.exists", interrupted)
    done = workmill("audit")

    assert (done.exit_code, done.stderr.strip()) == (130, "workmill audit: nothing was done")


def test_main_returns_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["no-such"]) == 2


@pytest.mark.parametrize("form", [["--json"], []])
@pytest.mark.parametrize(("jobs", "lines_read"), [(1_000, 1), (1_000, 0), (1, 0)])
def test_a_reader_who_has_had_enough_is_no_failure(jobs: int, lines_read: int, form: list[str], process: Process, store: Store) -> None:
    store.submit([new_job(new_id(), "echo", "{}") for _ in range(jobs)])
    child = process("jobs", "list", "--limit", "1000", *form)

    assert child.stdout is not None
    for _ in range(lines_read):
        child.stdout.readline()
    child.stdout.close()

    assert child.wait(20) == 0
    assert child.stderr is not None
    assert child.stderr.read() == ""


def test_output_that_cannot_be_encoded_is_escaped(process: Process, submit: Callable[..., str]) -> None:
    job_id = submit("echo", payload='"日本 😀"', tags=["a"], meta='{"x": "ü"}')
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    out, err = process("jobs", "show", job_id, "--json", env=ascii_only).communicate(timeout=20)
    plain, _ = process("jobs", "show", job_id, env=ascii_only).communicate(timeout=20)

    assert err == ""
    assert '"\\u65e5\\u672c \\ud83d\\ude00"' in out
    assert '"\\u65e5\\u672c \\ud83d\\ude00"' in plain


TALKATIVE = """
import logging, sys
from workmill.cli import main
from workmill.store.sqlite.store import SQLiteStore

SQLiteStore.pause = lambda self, *_, **__: logging.getLogger("workmill.store").warning("several processes write")
sys.exit(main(["queues", "pause", "mail"]))
"""


def test_what_the_library_logs_stays_off_stderr() -> None:
    done = subprocess.run([sys.executable, "-c", TALKATIVE], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "mail is paused\n", "")


def test_a_command_closes_its_store(workmill: Workmill, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(type(store), "close", lambda self: closed.append(self.url))

    workmill("audit")
    monkeypatch.undo()

    assert closed == [store.url]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, workmill: Workmill) -> None:
    done = workmill("completion", shell)

    assert done.exit_code == 0
    assert "_WORKMILL_COMPLETE" in done.stdout


def test_the_shell_is_told_the_commands(process: Process) -> None:
    env = {**os.environ, "_WORKMILL_COMPLETE": "bash_complete", "COMP_WORDS": "workmill jo", "COMP_CWORD": "1"}
    out, _ = process(env=env).communicate(timeout=20)

    assert out == "plain,jobs\n"


def test_python_m_workmill_is_workmill() -> None:
    done = subprocess.run([sys.executable, "-m", "workmill", "--version"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("workmill ")


def test_every_option_has_a_variable_that_spells_its_flag() -> None:
    wrong = [
        f"{context.command_path} {option.opts}: {option.envvar}"
        for context in commands(program, "workmill")
        for option in context.command.params
        if isinstance(option, click.Option) and option.allow_from_autoenv and option.envvar != "TRACEPARENT"
        if context.parent is not None
        and option.envvar != f"{context.command_path} {max(option.opts, key=len).lstrip('-')}".upper().replace(" ", "_").replace("-", "_")
    ]

    assert wrong == []
    assert {"WORKMILL_STORE", "WORKMILL_WORKER_QUEUES", "WORKMILL_JOBS_LIST_STATE"} <= known_variables(program)


@pytest.mark.parametrize(("args", "command"), [([], "demo"), (["jobs"], "reschedule"), (["queues"], "limit")])
def test_a_group_without_a_command_shows_its_help_and_is_exit_code_two(args: list[str], command: str, workmill: Workmill) -> None:
    done = workmill(*args)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == workmill(*args, "--help").stdout
    assert f"\n  {command} " in done.stderr


@pytest.mark.parametrize(
    ("begun", "states"), [("de", ["dead"]), ("dead,re", ["dead,retrying"]), ("s", ["scheduled", "succeeded", "skipped"]), ("x", [])]
)
def test_states_are_completed_one_after_the_other(begun: str, states: list[str]) -> None:
    found = ShellComplete(program, {}, "workmill", "_WORKMILL_COMPLETE").get_completions(["jobs", "list", "--state"], begun)

    assert sorted(item.value for item in found) == sorted(states)
