"""A database file, or one in memory: opened at its first use, waited for, closed without a trace."""

import gc
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from workmill.domain.errors import ConfigurationError, StoreFailure, StoreNotReady, StoreUnavailable
from workmill.domain.states import State
from workmill.domain.worker import Held
from workmill.store import migrate
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.sqlite import connections, schema
from workmill.store.sqlite.database import SQLiteDatabase
from workmill.store.sqlite.store import SQLiteStore, path_of
from workmill.testing.clock import MovableClock
from workmill.testing.factories import LEASE, claim, failed, join, report, submit, submit_many, succeeded
from workmill.testing.steps import settle

QUEUED = ("default", State.QUEUED)


def test_construction_opens_nothing(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()

    assert list(path.parent.iterdir()) == []


def test_urls_name_files_as_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert path_of("sqlite:///a/b.db") == str(tmp_path / "a" / "b.db")
    assert path_of("sqlite:////a/b.db") == "/a/b.db"
    assert path_of("sqlite://") is path_of("sqlite:///:memory:") is None


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:/x", "sqlite://host/x.db", "sqlite:///", "mysql://x", "", "x.db"])
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        open_store(url)


def test_a_relative_file_stays_the_same_when_the_process_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store("sqlite:///here.db")) as store:
        monkeypatch.chdir("/")
        submit(store)

    assert (tmp_path / "here.db").exists()


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with (
        closing(open_store(f"sqlite:///{tmp_path}/no/such/folder.db")) as store,
        pytest.raises(StoreUnavailable, match=r"no/such/folder\.db"),
    ):
        store.counts()


def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("no database, but a letter that somebody wants to keep\n" * 100)

    with closing(open_store(f"sqlite:///{path}")) as store, pytest.raises(StoreFailure, match="not a database"):
        store.counts()

    assert path.read_text().startswith("no database")


def test_it_is_durable_and_readers_never_wait(file_store: Store) -> None:
    description = file_store.describe()

    assert (description["journal_mode"], description["synchronous"]) == ("wal", "full")


def test_memory_is_shared_by_threads_and_by_no_other_store() -> None:
    with closing(open_store("sqlite://")) as one, closing(open_store("sqlite://")) as other:
        thread = threading.Thread(target=submit, args=(one,))
        thread.start()
        thread.join()

        assert (one.counts(), other.counts()) == ({QUEUED: 1}, {})


def test_a_closed_store_opens_again_when_it_is_used(file_store: Store) -> None:
    submit(file_store)

    file_store.close()

    assert file_store.counts() == {QUEUED: 1}
    assert submit(file_store).created
    file_store.close()
    file_store.close()


def test_nothing_stays_open_and_no_thread_runs_after_a_close(path: Path) -> None:
    def use() -> None:
        store = open_store(f"sqlite:///{path}")
        store.subscribe(lambda: None)
        submit(store)
        store.counts()
        store.close()

    use()
    threads, files = threading.active_count(), open_files()
    for _ in range(10):
        use()

    assert (threading.active_count(), open_files()) == (threads, files)


def test_a_close_waits_for_those_who_use_the_store(file_store: Store) -> None:
    stopping, errors = threading.Event(), []

    def use() -> None:
        try:
            while not stopping.is_set():
                submit(file_store)
                file_store.counts()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        file_store.close()
    stopping.set()
    for thread in threads:
        thread.join()

    assert errors == []
    settle(file_store)


def test_a_schema_is_applied_when_a_file_is_first_used(path: Path) -> None:
    with closing(open_store(f"sqlite:///{path}")) as store:
        names = store.pending_migrations()
        assert (names[0], path.exists()) == ("0001_initial", False)
        assert "CREATE TABLE workmill_jobs" in store.migration_sql()

        assert store.migrate() == names

        assert (store.migrate(), store.pending_migrations(), store.migration_sql()) == ([], [], "")


def test_a_later_migration_is_applied_to_an_older_file(path: Path, file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(file_store)
    file_store.close()
    known = migrate.migrations("workmill.store.sqlite")
    later = migrate.Migration(9999, "9999_later", "CREATE TABLE workmill_later (a);\nINSERT INTO workmill_later VALUES (';');")
    monkeypatch.setattr(schema.migrate, "migrations", lambda package: (*known, later))

    with closing(open_store(f"sqlite:///{path}")) as store:
        assert store.pending_migrations() == ["9999_later"]
        assert store.migrate() == ["9999_later"]
        assert store.counts() == {QUEUED: 1}


def test_a_migration_that_fails_leaves_nothing(path: Path, file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    file_store.close()
    known = migrate.migrations("workmill.store.sqlite")
    bad = migrate.Migration(9999, "9999_bad", "CREATE TABLE workmill_half (a);\nCREATE TABLE workmill_half (a);")
    monkeypatch.setattr(schema.migrate, "migrations", lambda package: (*known, bad))

    with closing(open_store(f"sqlite:///{path}")) as store, pytest.raises(StoreFailure, match="already exists"):
        store.counts()

    monkeypatch.undo()
    assert file_store.counts() == {}
    assert file_store.pending_migrations() == []


def test_a_newer_schema_is_not_touched(path: Path, file_store: Store, sql: sqlite3.Connection) -> None:
    sql.execute("INSERT INTO workmill_migrations VALUES (9999, '9999_future', 0)")

    with closing(open_store(f"sqlite:///{path}")) as store, pytest.raises(StoreNotReady, match="upgrade Workmill"):
        submit(store)


def test_an_sqlite_that_is_too_old_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections.sqlite3, "sqlite_version_info", (3, 34, 1))

    with closing(open_store(f"sqlite:///{path}")) as store, pytest.raises(StoreNotReady, match=r"SQLite 3\.35 or newer"):
        store.counts()


def test_a_store_that_is_dropped_leaves_no_descriptor(path: Path) -> None:
    before = open_files()
    for _ in range(5):
        open_store(f"sqlite:///{path}").counts()

    gc.collect()

    assert open_files() <= before


def test_stores_that_open_one_new_file_at_once_agree(path: Path) -> None:
    stores = [open_store(f"sqlite:///{path}") for _ in range(8)]
    barrier = threading.Barrier(8)
    errors: list[BaseException] = []

    def use(store: Store) -> None:
        barrier.wait()
        try:
            submit(store)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=use, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert stores[0].counts() == {QUEUED: 8}
    for store in stores:
        store.close()


def test_it_lives_in_an_applications_database_as_a_guest(path: Path) -> None:
    with closing(sqlite3.connect(path)) as application:
        application.execute("CREATE TABLE orders (id)")
        application.execute("INSERT INTO orders VALUES (1)")
        application.commit()

        with closing(open_store(f"sqlite:///{path}")) as store:
            submit(store)

        tables = {row[0] for row in application.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert {name for name in tables if not name.startswith("workmill_")} == {"orders"}


def test_a_writer_waits_for_another_program_that_holds_the_file(file_store: Store, sql: sqlite3.Connection) -> None:
    sql.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=submit, args=(file_store,))
    waiting.start()

    assert file_store.counts() == {}
    waiting.join(0.3)
    assert waiting.is_alive()

    sql.execute("COMMIT")
    waiting.join()
    assert file_store.counts() == {QUEUED: 1}


def test_a_file_that_is_held_too_long_is_unavailable_and_nothing_is_lost(path: Path, file_store: Store, sql: sqlite3.Connection) -> None:
    with closing(SQLiteStore(f"sqlite:///{path}", busy_seconds=0.2)) as store:
        submit_many(store, 2)
        worker = join(store)
        one, two = claim(store, worker, 2)
        sql.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreUnavailable, match="locked"):
            submit(store)
        with pytest.raises(StoreUnavailable, match="locked"):
            report(store, worker, succeeded(one), succeeded(two, '"\ud800"'))

        sql.execute("ROLLBACK")
        assert {store.job(run.id).state for run in (one, two)} == {State.RUNNING}
        report(store, worker, succeeded(one), succeeded(two))
        assert store.counts() == {("default", State.SUCCEEDED): 2}
        settle(store)


def test_runs_whose_rows_have_lost_a_time_still_end(file_store: Store, sql: sqlite3.Connection) -> None:
    submit_many(file_store, 2)
    worker = join(file_store)
    one, two = claim(file_store, worker, 2)
    sql.execute("UPDATE workmill_jobs SET claimed_at = NULL")

    report(file_store, worker, succeeded(one), failed(two, final=True))

    assert {file_store.job(run.id).state for run in (one, two)} == {State.SUCCEEDED, State.DEAD}


def test_from_its_first_moment_a_write_is_alone(path: Path, file_store: Store) -> None:
    with (
        closing(SQLiteDatabase(str(path))) as database,
        database.write(),
        closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")


def test_no_lease_ends_while_another_program_holds_the_file(
    path: Path, file_store: Store, clock: MovableClock, sql: sqlite3.Connection
) -> None:
    with closing(SQLiteStore(f"sqlite:///{path}", clock, busy_seconds=0.05)) as store:
        submit(store)
        worker = join(store)
        (run,) = claim(store, worker)
        store.win_turn(1)
        sql.execute("BEGIN IMMEDIATE")
        clock.advance(10 * LEASE)
        for attempt in (lambda: store.win_turn(1), lambda: store.heartbeat(worker, [Held(run.fence)], 1)):
            with pytest.raises(StoreUnavailable):
                attempt()

        sql.execute("ROLLBACK")

        assert (store.win_turn(1), store.rescue()) == (True, 0)
        assert store.heartbeat(worker, [Held(run.fence)], 1).lost == ()


def test_a_full_disk_ends_nothing(path: Path, file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 300
    submit_many(file_store, runs)
    file_store.close()
    monkeypatch.setattr(connections, "SETTINGS", (*connections.SETTINGS, f"max_page_count={path.stat().st_size // 4096 + 20}"))
    with closing(SQLiteStore(f"sqlite:///{path}")) as store:
        worker = join(store)
        held = claim(store, worker, runs)
        outcomes = [succeeded(run, '"' + "x" * 1_000 + '"') for run in held]

        with pytest.raises(StoreFailure, match="full"):
            report(store, worker, *outcomes)
        with pytest.raises(StoreFailure, match="full"):
            submit_many(store, 1_000)

        assert store.counts() == {("default", State.RUNNING): runs}
        assert store.invariants() == []
    monkeypatch.undo()

    with closing(SQLiteStore(f"sqlite:///{path}")) as store:
        report(store, worker, *outcomes)
        assert store.counts() == {("default", State.SUCCEEDED): runs}
        settle(store)


def test_the_end_of_a_file_that_is_gone_is_an_error_and_not_a_hang(path: Path) -> None:
    with closing(SQLiteStore(f"sqlite:///{path}", busy_seconds=0.2)) as store:
        submit(store)
        store.close()
        path.write_bytes(path.read_bytes()[:5_000])

        with pytest.raises(StoreFailure):
            store.counts()


def open_files() -> int:
    descriptors = Path("/proc/self/fd")
    return len(list(descriptors.iterdir())) if descriptors.exists() else 0
