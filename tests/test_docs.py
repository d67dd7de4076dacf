"""Documents are held to the code: examples run, commands and variables exist, links resolve, generated pages are current."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest

import verification
from workmill.cli.program import program
from workmill.cli.reference import SILENT

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
GENERATORS: Final = ["states_diagram.py", "cli_reference.py"]

FENCE: Final = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING: Final = re.compile(r"^(?P<level>#{1,6}) (?P<title>.+)$", re.MULTILINE)
VARIABLE: Final = re.compile(r"(?<![A-Z_])WORKMILL_[A-Z]+(?:_[A-Z]+)*")
TOP_LEVEL_AWAIT: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Block(NamedTuple):
    """A fenced block of code in a document."""

    place: str
    info: str
    code: str


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks_of(path: Path) -> list[Block]:
    found = list(FENCE.finditer(text(path)))
    lines = [text(path)[: match.start()].count("\n") + 1 for match in found]
    return [
        Block(f"{path.relative_to(ROOT)}:{line}", match["info"].strip(), match["code"]) for line, match in zip(lines, found, strict=True)
    ]


BLOCKS: Final = list(chain.from_iterable(blocks_of(path) for path in DOCUMENTS))
PYTHON: Final = [block for block in BLOCKS if block.info.split()[:1] == ["python"]]
RUNNABLE: Final = [block for block in PYTHON if block.info == "python run"]
SESSIONS: Final = [path for path in DOCUMENTS if any(block.info == "sh run" for block in blocks_of(path))]


def command_lines(program: str) -> list[list[str]]:
    """What documents tell people to type: the lines of shell blocks that start `program`, without what is piped or appended."""
    shells = chain.from_iterable(
        block.code.replace("\\\n", " ").splitlines() for block in BLOCKS if block.info in {"sh", "bash", "console"}
    )
    lines = (line.strip().removeprefix("$ ") for line in shells)
    return [shlex.split(re.split(r"\s[|&;>]", line)[0], comments=True) for line in lines if line.startswith(f"{program} ")]


def unknown(words: list[str]) -> list[str]:
    """The words of a command line that are no command or option of `workmill`."""
    command: click.Command = program
    context = click.Context(command, info_name="workmill")
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            return [" ".join(words)]
        command, rest = found, rest[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    known = {name for param in command.get_params(context) for name in (*param.opts, *param.secondary_opts)}
    return [f"{' '.join(words)}: {word}" for word in rest if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, made as code hosts make them."""
    titles = (match["title"] for match in HEADING.finditer(FENCE.sub("", text(path))))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(path: Path) -> Iterator[str]:
    targets = (match["target"] for match in LINK.finditer(FENCE.sub("", text(path))))
    for target in (target for target in targets if "://" not in target and not target.startswith("mailto:")):
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield f"{path.relative_to(ROOT)}: {target}"


def workmill_imports(code: str) -> str:
    """The imports from workmill that an example makes, as code of their own."""
    nodes = ast.walk(compile(code, "example", "exec", ast.PyCF_ONLY_AST | TOP_LEVEL_AWAIT))
    imports = (ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return "\n".join(line for line in imports if re.match(r"(from|import) workmill\b", line))


def variables_in_code() -> set[str]:
    return set(chain.from_iterable(VARIABLE.findall(text(path)) for path in (ROOT / "src").rglob("*.py")))


def defined_in(*files: Path) -> set[str]:
    nodes = chain.from_iterable(ast.walk(ast.parse(text(file))) for file in files if file.suffix == ".py")
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


CONFORMANCE: Final = defined_in(*(ROOT / "src" / "workmill" / "testing").rglob("*.py"))
"""Tests that are written once for every store, and collected where one store runs them."""


def skeleton(path: Path) -> list[int]:
    return [len(match["level"]) for match in HEADING.finditer(FENCE.sub("", text(path)))]


def code_without_comments(path: Path) -> list[tuple[str, str]]:
    blocks = ((block.info, re.sub(r"(^|\s)#.*$", "", block.code, flags=re.MULTILINE)) for block in blocks_of(path))
    return [(info, re.sub(r"[ \t]+$", "", code, flags=re.MULTILINE)) for info, code in blocks]


def environment() -> dict[str, str]:
    """This process's environment without settings of Workmill, and with its own `python` and `workmill` first."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WORKMILL_")}
    return {**clean, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"}


def save_files(document: Path, folder: Path) -> None:
    """Write the blocks that are named after a file, such as `python app.py`."""
    named = ((block.info.split()[1], block.code) for block in blocks_of(document) if re.search(r" \S+\.\w+$", block.info))
    for name, code in named:
        (folder / name).write_text(code, encoding="utf-8")


@contextmanager
def beside(line: str, folder: Path) -> Iterator[None]:
    """Run a worker as one would in a second terminal, and stop it as one would, expecting a clean end."""
    process = subprocess.Popen(shlex.split(line), cwd=folder, env=environment())
    try:
        yield
    finally:
        process.terminate()
        code = process.wait(timeout=30)
    assert code == 0, line


def type_in(document: Path, folder: Path) -> None:
    """Run the lines of a document's `sh run` blocks in order; a worker goes on beside the lines that follow it."""
    lines = (line for block in blocks_of(document) if block.info == "sh run" for line in block.code.splitlines() if line)
    with ExitStack() as workers:
        for line in lines:
            if line.startswith("workmill worker"):
                workers.enter_context(beside(line, folder))
            else:
                subprocess.run(line, shell=True, cwd=folder, env=environment(), check=True, timeout=60)  # noqa: S602 - our documents


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_a_python_block_compiles_and_imports_what_exists(block: Block) -> None:
    compile(block.code, block.place, "exec", TOP_LEVEL_AWAIT)

    exec(workmill_imports(block.code), {})  # noqa: S102 - our own documents


@pytest.mark.parametrize("block", RUNNABLE, ids=lambda block: block.place)
def test_a_block_marked_run_runs(block: Block, tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(block.code, encoding="utf-8")

    python = [sys.executable, "-X", "dev", "-W", "error"]
    done = subprocess.run([*python, example], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("document", SESSIONS, ids=lambda path: path.name)
def test_what_a_document_says_to_type_works_as_it_stands(document: Path, tmp_path: Path) -> None:
    save_files(document, tmp_path)

    type_in(document, tmp_path)


def test_the_readme_has_an_example_that_runs() -> None:
    assert ROOT / "README.md" in SESSIONS


def test_every_command_line_in_a_document_exists() -> None:
    assert list(chain.from_iterable(unknown(words) for words in command_lines("workmill"))) == []


def test_every_make_target_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", text(ROOT / "Makefile"), re.MULTILINE))
    named = {word for words in command_lines("make") for word in words[1:] if "=" not in word}

    assert sorted(named - targets) == []


def test_every_environment_variable_in_the_code_is_documented() -> None:
    documented = set(chain.from_iterable(VARIABLE.findall(text(path)) for path in DOCUMENTS))

    assert sorted(variables_in_code() - documented - set(SILENT)) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_resolve(path: Path) -> None:
    assert list(broken_links(path)) == []


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_generated_page_is_current(generator: str) -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / generator, "--check"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("row", verification.rows(), ids=lambda row: row.capability)
def test_a_row_of_the_verification_names_code_and_tests_that_exist(row: verification.Row) -> None:
    files = [*row.code, *(test.partition("::")[0] for test in row.tests)]
    gone = [file for file in files if not (ROOT / file).exists()]
    named = [(file, name.partition("[")[0]) for file, *names in (test.split("::") for test in row.tests) for name in names]
    undefined = [name for file, name in named if file not in gone and name not in CONFORMANCE | defined_in(ROOT / file)]

    assert (gone, undefined) == ([], [])
    assert row.tests or row.command


@pytest.mark.parametrize("row", verification.rows(), ids=lambda row: row.capability)
def test_a_row_of_the_verification_page_was_shown_by_a_run(row: verification.Row) -> None:
    shown = re.escape(row.line("RESULT").rstrip()).replace("RESULT", r"PASS( \(\d+\))?")

    assert re.search(f"^{shown}$", text(verification.PAGE), re.MULTILINE)


def test_the_russian_readme_follows_the_english_one() -> None:
    english, russian = ROOT / "README.md", ROOT / "README.ru.md"

    assert skeleton(russian) == skeleton(english)
    assert code_without_comments(russian) == code_without_comments(english)


def test_every_decision_is_in_the_index() -> None:
    index = text(ROOT / "docs" / "adr" / "README.md")
    pages = sorted(path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))

    assert [page for page in pages if page not in index] == []
    assert len({page[:4] for page in pages}) == len(pages)


def test_every_decision_has_the_same_parts() -> None:
    parts = ["Context", "Decision", "Consequences", "Alternatives"]
    pages = (ROOT / "docs" / "adr").glob("[0-9]*.md")

    odd = [page.name for page in pages if re.findall(r"^## (.+)$", text(page), re.MULTILINE) != parts or "**Status:**" not in text(page)]

    assert odd == []
