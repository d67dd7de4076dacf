"""docs/performance.md says what results/ holds, all of it, and nothing that somebody typed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import measure
import performance

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = re.compile(r"^```.*?^```$|`[^`]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    """What people wrote: the page without generated parts, code and addresses."""
    return CODE.sub("", performance.PART.sub("", page))


def test_the_page_and_its_plots_are_what_the_results_say() -> None:
    command = [sys.executable, ROOT / "scripts" / "performance.py", "--check"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_changed_result_makes_the_page_out_of_date() -> None:
    page, results = performance.PAGE.read_text(encoding="utf-8"), performance.load()
    name, result = next((name, result) for name, result in results.items() if result.bench == "drain")
    faster = performance.msgspec.structs.replace(result, jobs_per_second=result.jobs_per_second * 2)

    changed = performance.fill(page, performance.parts({**results, name: faster}))

    assert changed != page


def test_no_figure_on_the_page_was_typed() -> None:
    assert re.findall(r".*\d.*", prose(performance.PAGE.read_text(encoding="utf-8"))) == []


def test_the_page_has_a_place_for_every_part() -> None:
    named = {found["name"] for found in performance.PART.finditer(performance.PAGE.read_text(encoding="utf-8"))}

    assert named == performance.parts({}).keys()


def test_every_benchmark_that_is_run_has_its_result_and_no_other_is_kept() -> None:
    assert performance.load().keys() == measure.RUNS.keys()


@pytest.mark.parametrize("name", measure.RUNS)
def test_a_result_was_made_by_the_command_that_is_said_to_make_it(name: str) -> None:
    assert performance.load()[name].command == f"workmill bench {measure.RUNS[name]}"


def test_a_page_without_results_says_so() -> None:
    parts = performance.parts({})

    assert {parts[name] for name in (*performance.SECTIONS, *performance.ON_POSTGRES)} == {"Not measured.\n"}
