"""`examples/thumbnails` does what its README says."""

import subprocess
import sys
from pathlib import Path

from PIL import Image

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "thumbnails"


def side(path: Path) -> int:
    """The longer side of a picture."""
    with Image.open(path) as picture:
        return max(picture.size)


def test_every_good_picture_gets_its_thumbnails_and_the_bad_ones_say_why(tmp_path: Path) -> None:
    command = [sys.executable, "run.py", "--pictures", "6", "--processes", "2", "--folder", str(tmp_path)]

    ran = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=120, check=False)

    assert ran.returncode == 0, ran.stderr
    assert "8/8" in ran.stdout
    assert "18 thumbnails of 6 pictures" in ran.stdout
    assert "bomb.png: dead after 2 attempts: MemoryLimitExceeded: used" in ran.stdout
    assert "broken.jpg: dead after 2 attempts: OSError" in ran.stdout
    assert {path.name: side(path) for path in (tmp_path / "thumbnails").iterdir()} == {
        f"picture-{number:03}-{size}.jpg": min(size, 640) if number in {0, 5} else size for number in range(6) for size in (1024, 256, 64)
    }
