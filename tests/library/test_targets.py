"""`module:object` on a command line."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from workmill import ConfigurationError, Workmill
from workmill.targets import load_target

MillSource = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> MillSource:
    """Write a module into the current directory and return its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != ""])
    name = re.sub(r"\W", "_", request.node.name)[:60].strip("_")

    def write(source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source)
        request.addfinalizer(lambda: sys.modules.pop(name, None))
        return name

    return write


MILL = "from workmill import Workmill\n"


def refused(target: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_target(target)
    return str(caught.value)


def test_a_target_is_imported_from_the_current_directory(module: MillSource) -> None:
    name = module(MILL + "app = Workmill()")

    assert isinstance(load_target(f"{name}:app"), Workmill)


def test_a_target_may_lie_deeper(module: MillSource) -> None:
    name = module(MILL + "class Config:\n    app = Workmill()")

    assert isinstance(load_target(f"{name}:Config.app"), Workmill)


def test_without_an_object_it_is_the_mill_of_the_module(module: MillSource) -> None:
    name = module(MILL + "mill = Workmill()\nother = Workmill()")

    assert load_target(name) is sys.modules[name].mill


def test_without_an_object_it_is_the_only_one_there_is(module: MillSource) -> None:
    name = module(MILL + "app = Workmill()\nsame = app")

    assert load_target(name) is sys.modules[name].app


def test_several_are_offered(module: MillSource) -> None:
    name = module(MILL + "one = Workmill()\ntwo = Workmill()")

    assert refused(name) == f"target '{name}': must be module:object; try {name}:one or {name}:two"


def test_a_module_that_is_not_there_is_said_with_where_it_was_looked_for(module: MillSource) -> None:
    assert refused("nowhere_at_all.tasks:mill") == (
        f"target 'nowhere_at_all.tasks:mill': there is no module nowhere_at_all (looked in {Path.cwd()} first, then on the path of Python)"
    )


def test_a_module_that_misses_another_is_not_called_missing(module: MillSource) -> None:
    name = module("import nowhere_at_all")

    assert refused(name) == f"target '{name}': importing {name} raised ModuleNotFoundError: No module named 'nowhere_at_all'"


def test_an_error_in_the_module_is_the_cause(module: MillSource) -> None:
    name = module("1 / 0")

    with pytest.raises(ConfigurationError, match=r"raised ZeroDivisionError: division by zero") as caught:
        load_target(name)

    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_wrong_name_is_answered_with_the_right_one(module: MillSource) -> None:
    name = module(MILL + "app = Workmill()")

    assert refused(f"{name}:mill") == f"target '{name}:mill': {name} has no mill; try {name}:app"


def test_something_else_is_said_what_it_is(module: MillSource) -> None:
    name = module("app = 5")

    assert refused(f"{name}:app") == f"target '{name}:app': must be a Workmill (it is a int); {name} has no Workmill at all"


@pytest.mark.parametrize("target", ["app/tasks.py", "./app/tasks.py", "app/tasks"])
def test_a_path_is_answered_with_the_module(target: str) -> None:
    assert refused(target).endswith("must be module:object, not a path; try app.tasks:mill")


@pytest.mark.parametrize("target", ["", ":", ":mill", "a b:mill", "..x:mill", "1:mill"])
def test_what_names_no_module_is_refused(target: str) -> None:
    assert refused(target).startswith(f"target {target!r}: ")
