"""`examples/web` does what its README says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "web"


def test_both_pages_are_measured_and_every_mail_is_sent() -> None:
    command = [sys.executable, "measure.py", "--orders", "8", "--clients", "4"]

    ran = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=120, check=False)
    rows = {line.split()[0]: line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("/")}

    assert ran.returncode == 0, ran.stderr
    assert {page: row[3] for page, row in rows.items()} == {"/order-slow": "8", "/order": "8"}
    assert float(rows["/order-slow"][0]) >= 300
    assert "The page with Workmill is there" in ran.stdout
