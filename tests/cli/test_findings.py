"""What `doctor` thinks: rules from facts to findings."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from workmill.cli.disk import examine_disk, filesystem_of
from workmill.cli.findings import Disk, Facts, Finding, Severity, examine
from workmill.domain.queue import Distribution, Queue, QueueStats
from workmill.domain.states import State
from workmill.domain.worker import Worker, WorkerState

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTHING = Distribution(count=0, p50=None, p95=None, p99=None, max=None)
WORKER = Worker(
    id="w1",
    name="ada",
    host="here",
    pid=7,
    version="1",
    state=WorkerState.RUNNING,
    queues={},
    concurrency=4,
    running=0,
    lease_seconds=15.0,
    joined_at=NOON - timedelta(hours=1),
    seen_at=NOON - timedelta(seconds=1),
)
MAIL = Queue(name="mail", paused=False, limit=None, counts={}, aside=0, oldest_waiting=None, workers=1)
DISK = Disk(path="/data/jobs.db", filesystem="ext4", free=1 << 40, log=0, sync=0.002, world_writable=False)
HEALTHY = Facts(
    at=NOON,
    url="sqlite:///jobs.db",
    reached_in=0.002,
    description={"kind": "sqlite", "version": "3.51.3"},
    pending=(),
    queues=(MAIL,),
    workers=(WORKER,),
    upkeep_at=NOON - timedelta(seconds=1),
    disk=DISK,
    violations=(),
)


def bad(facts: Facts) -> list[Finding]:
    return [finding for finding in examine(facts) if finding.severity is not Severity.OK]


def waiting(queue: Queue, count: int, seconds: float = 5.0) -> Queue:
    return replace(queue, counts={State.QUEUED: count}, oldest_waiting=NOON - timedelta(seconds=seconds))


def test_a_healthy_store_has_nothing_but_good_findings() -> None:
    assert bad(HEALTHY) == []
    assert {finding.check for finding in examine(HEALTHY)} == {"configured", "reachable", "migrated", "fast", "worked", "sound"}


@pytest.mark.parametrize(
    ("facts", "severity", "check", "words"),
    [
        (replace(HEALTHY, pending=("0002_more",)), "error", "migrated", "1 migration to run"),
        (replace(HEALTHY, reached_in=2.0), "warning", "reachable", "answers in 2.0s"),
        (replace(HEALTHY, strange_variables={"WORKMILL_STOR": "WORKMILL_STORE"}), "warning", "configured", "nothing reads it"),
        (replace(HEALTHY, disk=replace(DISK, sync=0.2)), "warning", "fast", "at most 5 commits a second"),
        (replace(HEALTHY, disk=replace(DISK, filesystem="nfs4")), "error", "safe", "network file system"),
        (replace(HEALTHY, disk=replace(DISK, world_writable=True)), "warning", "safe", "everybody may write"),
        (replace(HEALTHY, disk=replace(DISK, free=1 << 20)), "warning", "safe", "1 MiB are free"),
        (replace(HEALTHY, disk=replace(DISK, log=1 << 30)), "warning", "safe", "holds an old snapshot open"),
        (replace(HEALTHY, workers=()), "warning", "worked", "no worker is running"),
        (replace(HEALTHY, workers=(), queues=(waiting(MAIL, 3),)), "error", "worked", "no worker is running, and 3 jobs wait"),
        (replace(HEALTHY, workers=(replace(WORKER, state=WorkerState.DRAINING),)), "warning", "worked", "the only worker drains"),
        (
            replace(HEALTHY, queues=(replace(waiting(MAIL, 3), workers=0),)),
            "error",
            "worked",
            "3 jobs wait in mail, which no worker serves",
        ),
        (replace(HEALTHY, queues=(replace(waiting(MAIL, 3), paused=True),)), "warning", "moving", "mail is paused, and 3 jobs wait"),
        (replace(HEALTHY, queues=(waiting(MAIL, 3, 600),)), "warning", "moving", "ready for 10m"),
        (replace(HEALTHY, upkeep_at=NOON - timedelta(minutes=2)), "error", "moving", "upkeep last turned 2m ago"),
        (replace(HEALTHY, unknown_types={"mail": ["send"]}), "warning", "whole", "no worker knows send"),
        (replace(HEALTHY, violations=("I3: two leases",)), "error", "sound", "I3: two leases"),
    ],
)
def test_what_is_wrong_is_found_with_what_to_do(facts: Facts, severity: str, check: str, words: str) -> None:
    (finding,) = bad(facts)

    assert (finding.severity, finding.check) == (severity, check)
    assert words in finding.what
    assert finding.todo


def test_jobs_that_died_lately_are_a_warning_and_those_of_old_a_note() -> None:
    died = QueueStats(
        queue="mail", window_seconds=3_600, succeeded=1, failed=5, dead=2, per_second=0, error_rate=0.8, wait=NOTHING, run=NOTHING
    )
    queue = replace(MAIL, counts={State.DEAD: 7})

    found = bad(replace(HEALTHY, stats=(died,), queues=(queue,)))

    assert [(finding.severity, finding.what[:14]) for finding in found] == [("warning", "2 jobs died in"), ("note", "7 jobs dead in")]


def test_jobs_that_died_lately_and_are_dead_no_more_are_no_finding() -> None:
    died = QueueStats(
        queue="mail", window_seconds=3_600, succeeded=1, failed=5, dead=2, per_second=0, error_rate=0.8, wait=NOTHING, run=NOTHING
    )
    left = replace(MAIL, counts={State.DEAD: 1})

    assert bad(replace(HEALTHY, stats=(died,))) == []
    assert (
        "2 jobs died in mail within 1h, 1 of them or of older ones is dead still"
        in bad(replace(HEALTHY, stats=(died,), queues=(left,)))[0].what
    )


@pytest.mark.parametrize(
    ("version", "mended"),
    [("3.40.1", False), ("3.44.5", False), ("3.44.6", True), ("3.45.9", False), ("3.50.7", True), ("3.51.2", False), ("3.52.1", True)],
)
def test_an_sqlite_that_has_the_mend_is_not_complained_of(*, version: str, mended: bool) -> None:
    found = bad(replace(HEALTHY, description={"kind": "sqlite", "version": version}))

    assert (found == []) is mended
    assert all("run one process" not in finding.todo and "docs/operations.md" in finding.todo for finding in found)


def test_an_old_sqlite_is_a_note_for_one_worker_and_a_warning_for_two() -> None:
    old = replace(HEALTHY, description={"kind": "sqlite", "version": "3.40.1"})

    assert [finding.severity for finding in bad(old)] == [Severity.NOTE]
    assert [finding.severity for finding in bad(replace(old, workers=(WORKER, replace(WORKER, id="w2"))))] == [Severity.WARNING]


def test_jobs_that_a_dead_worker_still_holds_are_an_error_when_nobody_takes_them_back() -> None:
    gone = replace(WORKER, id="w2", state=WorkerState.GONE, running=2, seen_at=NOON - timedelta(minutes=5))

    (finding,) = bad(replace(HEALTHY, workers=(WORKER, gone)))

    assert finding.severity is Severity.ERROR
    assert "2 jobs of it still count as running" in finding.what


def test_the_file_system_is_that_of_the_longest_mount_point_above(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"a / ext4 rw 0 0\nb {tmp_path} nfs4 rw 0 0\nc /elsewhere tmpfs rw 0 0\n", encoding="utf-8")

    assert filesystem_of(tmp_path / "jobs.db", mounts) == "nfs4"
    assert filesystem_of(Path("/jobs.db"), mounts) == "ext4"
    assert filesystem_of(Path("/jobs.db"), tmp_path / "nowhere") is None


def test_a_disk_is_looked_at_and_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.write_bytes(b"")
    file.chmod(0o666)

    disk = examine_disk(file)

    assert disk.world_writable
    assert disk.free > 0
    assert disk.sync is not None
    assert list(tmp_path.iterdir()) == [file]
