"""The static types are part of the library: mypy --strict accepts what must be accepted, and refuses every line that must be refused."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["accepted.py", "refused.py"])
def test_mypy_agrees(name: str) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(HERE / name)]

    checked = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent.parent, timeout=240, check=False)

    assert checked.stdout.startswith("Success"), checked.stdout + checked.stderr
