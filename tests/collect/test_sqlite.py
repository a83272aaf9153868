"""The store in a file: what every store does, and what a file can be besides a store."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from discreet.collect import open_store
from discreet.collect._counting import KEPT, Verdict
from discreet.collect._sqlite import APPLICATION, SqliteStore
from discreet.errors import DiscreetError, StoreError
from tests.collect.behaviour import DAY, Behaviour, agreed, arrival

FIRST = agreed(3)


class TestSqlite(Behaviour):
    @pytest.fixture
    def where(self, tmp_path: Path) -> str:
        return str(tmp_path / "store.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one sample."""
    store = open_store(tmp_path / "store.db")
    store.add(FIRST)
    store.count_arrivals(FIRST.id, 1, [arrival("ann")], DAY)
    store.close()
    return tmp_path / "store.db"


def counts(path: Path) -> list[int]:
    """What the file counts, as somebody finds it who comes now."""
    with closing(open_store(path, create=False)) as store:
        return [int(count) for count in store.outcome_counts(FIRST.id, 1)]


def test_it_is_flushed_all_the_way_and_its_owner_s_alone(path: Path) -> None:
    """What a power cut needs, which no kill can test: a write-ahead log with synchronous = FULL (2)."""
    store = SqliteStore(path)
    with store._writer.transaction(writes=True) as database:
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY)
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        assert (path.parent / name).stat().st_mode & 0o777 == 0o600, name
    store.close()
    assert os.listdir(path.parent) == ["store.db"]


def test_foreign_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "other.db")
    database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    (tmp_path / "text").write_text("no store at all, " * 1000)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    before = {name: (tmp_path / name).read_bytes() for name in ("other.db", "text", "empty")}
    for name, says in {
        "other.db": "an SQLite file, but not a store",
        "text": "it is not a store",
        "empty": "is empty, and so not a store",
        "folder": "is not a plain file",
        "pipe": "is not a plain file",
        "dangling": "cannot be opened: No such file",
        "missing/store": "cannot be written: No such file",
        "text/store": "Not a directory",
        "nul\0": "embedded null",
    }.items():
        with pytest.raises(StoreError, match=says):
            open_store(tmp_path / name)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_newer_format_and_damage_are_said(path: Path) -> None:
    content = path.read_bytes()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 5")
    database.close()
    with pytest.raises(StoreError, match="of format 5, not 4; upgrade discreet"):
        open_store(path)
    for damaged in (content[: len(content) // 2], content[:100], content[:4096] + b"\xa5" * (len(content) - 4096)):
        path.write_bytes(damaged)
        with pytest.raises(DiscreetError, match=r"damaged|not a store"):
            counts(path)
        assert path.read_bytes() == damaged
    path.write_bytes(content)
    assert counts(path) == [1, 0, 0]


def test_the_log_of_a_store_that_is_gone_is_not_given_to_a_new_one(path: Path) -> None:
    store = open_store(path)
    store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY)
    path.rename(path.parent / "away.db")
    with pytest.raises(StoreError, match="the log of a store that is gone"):
        open_store(path)
    (path.parent / "away.db").rename(path)
    store.close()
    assert counts(path) == [2, 0, 0]


def test_nothing_is_acknowledged_in_a_file_that_is_gone_and_it_goes_on_when_it_is_back(path: Path) -> None:
    store = open_store(path)
    away = path.parent / "away.db"
    path.rename(away)
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be opened: No such file"):
            store.count_arrivals(FIRST.id, 1, [arrival("bob", 1)], DAY)
    away.rename(path)
    assert store.count_arrivals(FIRST.id, 1, [arrival("bob", 1)], DAY) == [Verdict.COUNTED]
    path.rename(away)
    path.write_bytes(away.read_bytes())
    with pytest.raises(StoreError, match="another file has taken its place"):
        store.count_arrivals(FIRST.id, 1, [arrival("eve", 1)], DAY)
    store.close()


def test_a_writer_that_takes_too_long_is_waited_for_and_then_said(path: Path) -> None:
    store = SqliteStore(path, wait=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process has been writing for too long"):
        store.count_arrivals(FIRST.id, 1, [arrival("bob", 1)], DAY)
    assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 0]  # readers do not wait
    other.execute("ROLLBACK")
    assert store.count_arrivals(FIRST.id, 1, [arrival("bob", 1)], DAY) == [Verdict.COUNTED]
    other.close()
    store.close()


def test_a_full_disk_is_said_and_recovered_from(path: Path) -> None:
    """A limit on the file's pages is what SQLite calls a full disk."""
    store = SqliteStore(path)
    with store._writer.transaction(writes=True) as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages + 5}")
    many = [arrival(number) for number in range(2000)]
    with pytest.raises(StoreError, match="the disk is full; free some space"):
        store.count_arrivals(FIRST.id, 1, many, DAY)
    assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 0]
    assert set(store.count_arrivals(FIRST.id, 1, many, DAY)) == {
        Verdict.COUNTED
    }  # there is room again: the file was opened anew
    assert store.outcome_counts(FIRST.id, 1).tolist() == [2001, 0, 0]
    store.close()


@pytest.mark.slow
def test_a_real_disk_that_has_no_room_is_said_and_recovered_from(path: Path) -> None:
    """The same by the system itself, which lets no file grow past a limit: the log cannot be written."""
    program = f"""
import resource, signal, sys
from discreet.collect import open_store
from discreet.errors import StoreError
from tests.collect.behaviour import DAY, agreed, arrival
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python would leave parts of modules behind
store, first = open_store({str(path)!r}), agreed(3)
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
limit(1 << 16)
counted = refused = 0
for number in range(200):
    batch = [arrival(f"{{number}} {{each}}") for each in range(20)]
    try:
        store.count_arrivals(first.id, 1, batch, DAY)
        counted += 20
    except StoreError as error:
        refused += 1
        assert "full" in str(error), error
        if refused == 3:
            limit(resource.RLIM_INFINITY)
        assert store.outcome_counts(first.id, 1).sum() == 1 + counted
assert refused == 3, refused
assert store.outcome_counts(first.id, 1).sum() == 1 + counted
print(counted)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sum(counts(path)) == 1 + int(done.stdout)


def test_processes_that_make_one_store_at_the_same_time_share_it(tmp_path: Path) -> None:
    program = f"""
from discreet.collect import open_store
from tests.collect.behaviour import DAY, agreed, arrival
store, first = open_store({str(tmp_path / "store.db")!r}), agreed(3)
store.add(first)
verdicts = [one for number in range(30) for one in store.count_arrivals(first.id, 1, [arrival(number, number % 3)], DAY)]
print(sum(one.value == "counted" for one in verdicts))
"""
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    counted = [int(one.communicate()[0]) for one in started]
    assert sum(counted) == 30
    store = open_store(tmp_path / "store.db")
    assert store.outcome_counts(FIRST.id, 1).tolist() == [10, 10, 10]
    assert [kept.agreement.id for kept in store.agreements()] == [FIRST.id]
    store.close()


def test_a_forked_child_opens_the_file_anew(path: Path) -> None:
    store = open_store(path)
    store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY)
    child = os.fork()
    if not child:
        os._exit(0 if store.count_arrivals(FIRST.id, 1, [arrival("eve")], DAY) == [Verdict.COUNTED] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.count_arrivals(FIRST.id, 1, [arrival("fay")], DAY) == [Verdict.COUNTED]
    assert store.outcome_counts(FIRST.id, 1).tolist() == [4, 0, 0]
    store.close()


def test_marks_say_what_the_file_is(path: Path) -> None:
    with path.open("rb") as file:
        assert file.read(72)[68:] == APPLICATION.to_bytes(4) == b"dcst"


@pytest.mark.parametrize("change", ["outcome = 7", "outcome = -1", "n = -3", "n = 9223372036854775807"])
def test_counts_that_cannot_be_are_damage(path: Path, change: str) -> None:
    with closing(open_store(path)) as store:
        store.count_arrivals(FIRST.id, 1, [arrival(number) for number in range(2 * KEPT)], DAY)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"UPDATE counted SET {change}")
    with pytest.raises(StoreError, match="it counts what cannot be"):
        counts(path)
