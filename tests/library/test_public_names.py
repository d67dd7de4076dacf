"""`from workmill import …`: the public names, loaded when they are asked for."""

import subprocess
import sys

import pytest

import workmill


@pytest.mark.parametrize("name", workmill.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(workmill, name).__name__ == name
    assert name in dir(workmill)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'workmill' has no attribute 'nonsense'"):
        _ = workmill.nonsense  # type: ignore[attr-defined]


def test_the_package_alone_loads_nothing_of_the_library() -> None:
    code = "import sys, workmill; print(*(name for name in sys.modules if name.startswith(('workmill.', 'asyncio', 'msgspec'))))"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == []
