"""A rule exists when a tool checks it: these are the rules of the tree that no linter knows."""

import ast
import io
import re
import statistics
import tokenize
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "src" / "workmill"
STORE: Final = PACKAGE / "store"
DIALECTS: Final = sorted(folder.parent for folder in STORE.glob("*/queries"))
STATEMENTS: Final = sorted(STORE.glob("*/queries/**/*.sql"))

EMPTY_NAMES: Final = {"base_utils", "common", "core", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
RUNNERS: Final = {"rows", "run", "each"}
"""The methods of a store's `Session` that take the name of a statement."""

WRITES_JOBS: Final = re.compile(r"\b(?:UPDATE|DELETE\s+FROM)\s+workmill[_.]jobs\b", re.IGNORECASE)
STATE_TEST: Final = re.compile(r"\bstate\s*(?:=|IN)\s*\(?((?:\s*,?\s*'[a-z]+')+)", re.IGNORECASE)


NO_CODE: Final = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def relative(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def code_lines(path: Path) -> int:
    """Lines that hold code: docstrings are contracts and comments are reasons, and neither should be spared."""
    source = text(path)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    held = {line for token in tokens if token.type not in NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    bare = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    strings = {line for node in bare if isinstance(node.value, str) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    return len(held - strings)


def sql_lines(path: Path) -> int:
    return len([line for line in code(path).splitlines() if line.strip()])


def code(path: Path) -> str:
    """The statement without comments, and with strings kept."""
    return re.sub(r"--[^\n]*|/\*.*?\*/", " ", text(path), flags=re.DOTALL).strip()


def statement_name(path: Path) -> str:
    return path.relative_to(next(dialect for dialect in DIALECTS if dialect in path.parents) / "queries").with_suffix("").as_posix()


def names_in_python() -> set[str]:
    """Every string in the store's Python: a statement that none of them names is not used."""
    trees = (ast.parse(text(path)) for path in STORE.rglob("*.py"))
    nodes = chain.from_iterable(ast.walk(tree) for tree in trees)
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def names_run() -> set[str]:
    """The literal first arguments of `session.rows("…")`, `.run("…")` and `.each("…")`."""
    trees = (ast.parse(text(path)) for path in (STORE / "operations").rglob("*.py"))
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
    named = (call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in RUNNERS)
    return {name.value for name in named if isinstance(name, ast.Constant) and isinstance(name.value, str)}


def may_touch_a_running_job(statement: str) -> bool:
    """A write to jobs that does not confine itself by name to states other than running."""
    write = WRITES_JOBS.search(statement)
    if write is None:
        return False
    _, _, condition = statement[write.end() :].partition("WHERE")
    states = set(re.findall(r"'([a-z]+)'", " ".join(STATE_TEST.findall(condition))))
    return not states or "running" in states


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    documented = 0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - documented


def is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A declaration: nothing but a docstring or an ellipsis, as Protocols and overloads have."""
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


def function_lengths() -> list[int]:
    trees = (ast.parse(text(path)) for path in PACKAGE.rglob("*.py"))
    nodes = chain.from_iterable(ast.walk(tree) for tree in trees)
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return sorted(body_length(function) for function in functions if not is_stub(function))


def own_files() -> list[Path]:
    folders = (ROOT / name for name in ("src", "tests", "scripts", "examples"))
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".sql"})


def test_no_file_is_longer_than_400_lines() -> None:
    too_long = [path for path in own_files() if len(text(path).splitlines()) > 400]

    assert relative(too_long) == []


def test_a_module_is_named_for_what_it_does() -> None:
    empty = [path for path in own_files() if path.stem in EMPTY_NAMES or path.parent.name in EMPTY_NAMES]

    assert relative(empty) == []


def test_the_dialects_have_the_same_statements() -> None:
    names = {dialect.name: {statement_name(path) for path in STATEMENTS if dialect in path.parents} for dialect in DIALECTS}

    missing = {f"{dialect}: {name}" for dialect, there in names.items() for name in set.union(*names.values()) - there}

    assert missing == set()


def test_a_statement_file_holds_one_statement() -> None:
    several = [path for path in STATEMENTS if ";" in re.sub(r"'[^']*'", "", code(path)).rstrip("; \n")]
    empty = [path for path in STATEMENTS if not code(path)]

    assert relative([*several, *empty]) == []


def test_every_statement_is_used() -> None:
    used = names_in_python()

    unused = [path for path in STATEMENTS if statement_name(path) not in used]

    assert relative(unused) == []


def test_every_statement_that_is_run_exists() -> None:
    assert sorted(names_run() - {statement_name(path) for path in STATEMENTS}) == []


def test_every_write_to_a_running_job_mentions_its_lease() -> None:
    unfenced = [path for path in STATEMENTS if may_touch_a_running_job(code(path)) and "lease" not in code(path)]

    assert relative(unfenced) == []


@pytest.mark.parametrize(
    ("statement", "touches"),
    [
        ("UPDATE workmill_jobs SET state = 'dead' WHERE id = :id", True),
        ("UPDATE workmill_jobs SET progress = :p WHERE id = :id AND state = 'running'", True),
        ("DELETE FROM workmill_jobs WHERE state IN ('dead', 'cancelled')", False),
        ("DELETE FROM workmill_jobs WHERE state IN ('dead', 'running')", True),
        ("UPDATE workmill_jobs SET state = 'dead' WHERE id IN (SELECT id FROM workmill_jobs WHERE state = 'queued')", False),
        ("UPDATE workmill_jobs SET state = 'queued' WHERE state = 'scheduled' AND run_at <= :now", False),
        ("UPDATE workmill_workers SET state = 'gone' WHERE id = :id", False),
    ],
)
def test_a_write_may_touch_a_running_job_unless_it_names_other_states(statement: str, *, touches: bool) -> None:
    assert may_touch_a_running_job(statement) is touches


@pytest.mark.parametrize(
    ("pattern", "without", "budget"),
    [
        ("domain/**/*.py", "", 1_200),
        ("store/**/*.py", "store/sqlite store/postgres", 2_100),
        ("store/sqlite/**/*.py", "", 800),
        ("store/postgres/**/*.py", "", 800),
        ("engine/**/*.py", "engine/executors", 1_300),
        ("engine/executors/**/*.py", "", 1_100),
    ],
)
def test_a_package_keeps_its_budget_of_code(pattern: str, without: str, budget: int) -> None:
    left_out = {PACKAGE / folder for folder in without.split()}
    counted = [path for path in PACKAGE.glob(pattern) if not left_out & set(path.parents)]

    assert sum(map(code_lines, counted)) <= budget


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_dialect_keeps_its_budget_of_sql(dialect: Path) -> None:
    assert sum(map(sql_lines, dialect.glob("queries/**/*.sql"))) <= 800


def test_functions_are_short() -> None:
    lengths = function_lengths()

    assert statistics.median(lengths) <= 8
    assert statistics.quantiles(lengths, n=10)[-1] <= 30


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_importing_the_store_imports_no_backend() -> None:
    assert text(STORE / "__init__.py") == ""
