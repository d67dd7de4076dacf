"""Ids order jobs that were submitted within one millisecond, and must never be made twice."""

import subprocess
import sys
from itertools import pairwise
from uuid import UUID

import pytest

from workmill.ids import new_id

PARENT_AND_CHILD = """
import os
from workmill.ids import new_id
new_id()
child = os.fork()
os.write(1, f"{new_id()}\\n".encode())
if child:
    os.wait()
"""


def test_an_id_is_a_uuid_of_version_7_in_canonical_text() -> None:
    made = new_id()

    assert (str(UUID(made)), UUID(made).version) == (made, 7)


def test_ids_of_one_process_rise() -> None:
    ids = [new_id() for _ in range(100_000)]

    assert all(earlier < later for earlier, later in pairwise(ids))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_makes_ids_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT_AND_CHILD], capture_output=True, text=True, check=True)

    first, second = done.stdout.split()

    assert UUID(first).int % 2**32 != UUID(second).int % 2**32
