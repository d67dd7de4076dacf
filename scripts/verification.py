"""Write docs/verification.md from docs/verification.toml, with PASS only where a run of the tests or the command passed.

Runs the tests itself, or reads the report of a run with `--junit FILE`. Exits 1 when a row is not shown.
"""

import os
import platform
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

import msgspec

from pages import NOTICE, ROOT, publish

SOURCE: Final = ROOT / "docs" / "verification.toml"
PAGE: Final = ROOT / "docs" / "verification.md"
HEAD: Final = "| capability | code | test | command | result |\n|---|---|---|---|---|\n"

INTRODUCTION: Final = """\
# What is shown to work

Each line is a promise or a feature, where its code is, the tests that show it, and a command to try it with. The last column is
written by a run of those tests, never by hand: PASS means that all of them ran and passed.

Run on {day}: Python {python}, SQLite {sqlite}, {system}.
"""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A capability. One without tests is shown by its command, which must exit 0."""

    capability: str
    code: tuple[str, ...]
    tests: tuple[str, ...] = ()
    command: str = ""

    def line(self, result: str) -> str:
        """The row as a line of the table, its result last."""
        code = "<br>".join(f"[{path.removeprefix('src/workmill/')}](../{path})" for path in self.code)
        tests = "<br>".join(f"[{test.rpartition('::')[2]}](../{test.partition('::')[0]})" for test in self.tests)
        return f"| {self.capability} | {code} | {tests or 'the command'} | `{self.command or self.try_tests()}` | {result} |\n"

    def try_tests(self) -> str:
        files = dict.fromkeys(test.partition("::")[0] for test in self.tests)
        return f"make test TESTS={shlex.quote(' '.join(files))}"


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows under one heading."""

    heading: str
    row: tuple[Row, ...]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of docs/verification.toml."""

    section: tuple[Section, ...]


class Case(NamedTuple):
    """One test of a run, and how it ended: `passed`, `failure`, `error` or `skipped`."""

    node: str
    outcome: str


def sections() -> tuple[Section, ...]:
    return msgspec.toml.decode(SOURCE.read_bytes(), type=Source).section


def rows() -> list[Row]:
    return [row for section in sections() for row in section.row]


def node(classname: str, name: str) -> str:
    """The test's id from what a report calls it: the longest beginning of the class name that is a file, then the rest."""
    parts = classname.split(".")
    files = (f"{'/'.join(parts[:length])}.py" for length in range(len(parts), 0, -1))
    file = next((file for file in files if (ROOT / file).exists()), "")
    return "::".join((file, *parts[file.count("/") + 1 :], name))


def case(element: ET.Element) -> Case:
    endings = {child.tag for child in element} & {"failure", "error", "skipped"}
    return Case(node(element.attrib["classname"], element.attrib["name"]), min(endings, default="passed"))


def read_report(path: Path) -> list[Case]:
    return [case(element) for element in ET.parse(path).iter("testcase")]  # noqa: S314 - our own test runner wrote it


def run_tests(tests: list[str]) -> list[Case]:
    """How each test ended in a run of the files that hold them; one that is not there is not among them."""
    files = sorted({file for file, _, _ in (test.partition("::") for test in tests) if (ROOT / file).exists()})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["--quiet", "--continue-on-collection-errors", f"--junitxml={report}"]
        subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-m", "pytest", *options, *files], cwd=ROOT, check=False)
        return read_report(report) if report.exists() else []


def belongs(node: str, test: str) -> bool:
    return node == test or node.startswith((f"{test}::", f"{test}[", f"{test}/"))


def shown_by_tests(row: Row, cases: list[Case]) -> str:
    outcomes = {test: [case.outcome for case in cases if belongs(case.node, test)] for test in row.tests}
    endings = {outcome for found in outcomes.values() for outcome in found or ["not run"]}
    if endings == {"passed"}:
        return f"PASS ({sum(map(len, outcomes.values()))})"
    return f"NOT SHOWN: {', '.join(sorted(endings - {'passed'}))}"


def shown_by_command(row: Row) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    code = subprocess.run(shlex.split(row.command), cwd=ROOT, env={**os.environ, "PATH": path}, check=False).returncode
    return f"NOT SHOWN: exit {code}" if code else "PASS"


def render(cases: list[Case]) -> str:
    facts = {
        "day": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
    }
    parts = [NOTICE.format(script="scripts/verification.py"), INTRODUCTION.format(**facts)]
    for section in sections():
        parts.append(f"\n## {section.heading}\n\n{HEAD}")
        parts += [row.line(shown_by_tests(row, cases) if row.tests else shown_by_command(row)) for row in section.row]
    return "".join(parts)


def main() -> None:
    named = [test for row in rows() for test in row.tests]
    cases = read_report(Path(sys.argv[2])) if sys.argv[1:2] == ["--junit"] else run_tests(named)
    page = render(cases)
    publish({PAGE: page})
    sys.exit("\n".join(line for line in page.splitlines() if "NOT SHOWN" in line) or 0)


if __name__ == "__main__":
    main()
