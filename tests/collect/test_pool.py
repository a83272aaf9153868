"""What a store leaves behind does not tell who said what: the attacks, and what is promised against each."""

import json
import os
import random
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.collect import _counting as pool, _sqlite as sqlite, open_store
from discreet.collect._counting import (
    KEPT,
    MOST_GROUPS,
    Pool,
    Seal,
    add_to_pool_and_take_surplus,
    create_seal_file,
    read_seal_file,
)
from discreet.collect._store import Store
from discreet.errors import DiscreetError, StoreError
from tests.cli.conftest import Run, refusal, run
from tests.collect.behaviour import DAY, agreed, arrival
from tests.collect.looking import (
    Version,
    dead_versions,
    learnt,
    logged_versions,
    postgres_version,
    smallest_change,
    sqlite_version,
)
from tests.collect.postgres import Server, until
from tests.collect.running import agreed as agreed_file, one, running

__all__ = ["refusal", "run"]
OUTCOMES = 5
AGREED = agreed(OUTCOMES)
CLIENTS = 150


@pytest.fixture
def seal(tmp_path: Path) -> Path:
    create_seal_file(tmp_path / "seal.key")
    return tmp_path / "seal.key"


def test_outcomes_are_counted_in_batches_and_none_is_lost() -> None:
    waiting: Pool = {}
    counted: Counter[int] = Counter()
    for number in range(1000):
        for _, batch in add_to_pool_and_take_surplus(waiting, (1, 1), [number % 7] * (number % 3)).items():
            added = Counter(dict(batch))
            assert added.total() >= KEPT
            counted += added
        held = Counter(outcome for outcomes in waiting.values() for outcome in outcomes)
        assert counted + held == Counter(n % 7 for n in range(number + 1) for _ in range(n % 3))
        assert held.total() < 2 * KEPT
        assert held.total() >= KEPT or not counted


def test_which_of_those_that_wait_are_counted_is_chance() -> None:
    """The newest of 2 KEPT outcomes is counted as often as any other: in half of the batches, within seven standard deviations."""
    newest = 0
    for _ in range(2000):
        waiting: Pool = {(1, 1): [0] * (2 * KEPT - 1)}
        newest += (1, 1) in add_to_pool_and_take_surplus(waiting, (1, 1), [1])[1, 1]
    assert abs(newest - 1000) < 7 * 22.4


def test_a_pool_is_bounded_however_many_rounds_there_are() -> None:
    waiting: Pool = {}
    counted = 0
    for number in range(100):
        counted += sum(
            many for batch in add_to_pool_and_take_surplus(waiting, (1, number), [3, 3]).values() for _, many in batch
        )
    assert len(waiting) == MOST_GROUPS
    assert counted == 200 - 2 * MOST_GROUPS


def test_a_pool_is_read_as_it_was_written_and_only_with_its_key(tmp_path: Path, seal: Path) -> None:
    waiting: Pool = {(1, 1): [0, 3, 3], (7, 10**12): [2**40], (2, 1): []}
    create_seal_file(tmp_path / "other.key")
    assert Seal().decode_pool(Seal().encode_pool(waiting)) == waiting
    sealed = read_seal_file(seal).encode_pool(waiting)
    assert read_seal_file(seal).decode_pool(sealed) == waiting
    assert len({read_seal_file(seal).encode_pool(waiting) for _ in range(100)}) == 100
    for wrong, says in (
        (Seal(), "its key was not given"),
        (read_seal_file(tmp_path / "other.key"), "under another key"),
    ):
        with pytest.raises(StoreError, match=says):
            wrong.decode_pool(sealed)
    for place in range(1, len(sealed)):
        with pytest.raises(StoreError):
            read_seal_file(seal).decode_pool(sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :])
    for damaged in (b"", b"\x02", b"\x00abc", Seal().encode_pool(waiting)[:-1], b"\x00" + b"\xff" * 24):
        with pytest.raises(StoreError, match="damaged"):
            Seal().decode_pool(damaged)


def test_files_that_hold_no_seal_are_refused(tmp_path: Path, seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DiscreetError, match="exists already"):
        create_seal_file(seal)
    os.chmod(seal, 0o644)
    with pytest.raises(DiscreetError, match="chmod 600"):
        read_seal_file(seal)
    (tmp_path / "nonsense").write_text("discreet-seal-1 abc")
    os.chmod(tmp_path / "nonsense", 0o600)
    with pytest.raises(DiscreetError, match="does not hold the key"):
        read_seal_file(tmp_path / "nonsense")
    monkeypatch.setenv(pool.SEAL_VARIABLE, str(tmp_path / "nonsense"))
    with pytest.raises(DiscreetError, match="does not hold the key"):
        read_seal_file(None)


def speak(store: Store, number: int, said: dict[bytes, int]) -> None:
    """One more client speaks alone."""
    outcome = random.randrange(OUTCOMES)
    sample = arrival(number, outcome)
    store.count_arrivals(AGREED.id, 1, [sample], DAY)
    said[sample.client] = outcome


def check_counts(store: Store, said: dict[bytes, int]) -> None:
    """However they wait, all are counted in what is estimated."""
    assert Counter({k: n for k, n in enumerate(store.outcome_counts(AGREED.id, 1).tolist()) if n}) == Counter(
        said.values()
    )


@pytest.mark.slow
def test_the_log_of_a_file_does_not_tell_who_said_what(tmp_path: Path) -> None:
    """One look at file and log, after clients that spoke one by one. Before, the log told of each what it had said."""
    path, said = tmp_path / "samples.db", dict[bytes, int]()
    with closing(open_store(path)) as store:
        store.add(AGREED)
        for number in range(50):
            speak(store, number, said)
            if number % 10 == 9:
                assert learnt(logged_versions(path)).items() <= said.items()  # the attack reads what is there
                assert store.erase_overwritten_data()
                assert Path(f"{path}-wal").stat().st_size == 0
                assert learnt(logged_versions(path)) == {}
        check_counts(store, said)


def test_the_attack_on_a_log_that_is_not_emptied_finds_what_was_said(tmp_path: Path) -> None:
    """A log that was left, as by a kill, tells it where nothing is sealed: this is what `erase_overwritten_data` and a seal are for."""
    path, said = tmp_path / "samples.db", dict[bytes, int]()
    with closing(open_store(path)) as store:
        store.add(AGREED)
        for number in range(20):
            speak(store, number, said)
        found = learnt(logged_versions(path))
        assert len(found) >= 19
        assert found.items() <= said.items()


@pytest.mark.slow
def test_a_service_empties_its_log_as_soon_as_nothing_waits(tmp_path: Path) -> None:
    agreement = agreed_file(tmp_path, OUTCOMES)
    path = tmp_path / "samples.db"
    with running(tmp_path, "agreement.json") as collector:
        for number in range(30):
            assert collector.send(one(agreement, f"c{number}", number % OUTCOMES)).status == 200
        until(lambda: Path(f"{path}-wal").stat().st_size == 0, "the log is not emptied")
        assert learnt(logged_versions(path)) == {}
        assert collector.get("/estimate").json["samples"] == 30
        collector.process.kill()
    assert sqlite_version(path).said == Counter(dict.fromkeys(range(OUTCOMES), 6))


@pytest.mark.slow
def test_whoever_looks_at_a_sealed_file_after_every_sample_sees_batches(tmp_path: Path, seal: Path) -> None:
    path, said = tmp_path / "samples.db", dict[bytes, int]()
    versions: list[Version] = []
    with closing(open_store(path, seal=seal)) as store:
        store.add(AGREED)
        store.seal_pool_if_key_given()
        for number in range(CLIENTS):
            speak(store, number, said)
            versions.append(sqlite_version(path))
        logged = logged_versions(path)
        check_counts(store, said)
    assert len(logged) > CLIENTS
    for seen in (versions, logged):
        assert learnt(seen) == {}
        assert smallest_change(seen) >= KEPT
    with pytest.raises(StoreError, match="sealed, and its key was not given"), closing(open_store(path)) as store:
        store.outcome_counts(AGREED.id, 1)


def test_whoever_looks_at_a_file_that_is_not_sealed_twice_sees_what_was_said_between(tmp_path: Path) -> None:
    """What is not promised, and the documents say so."""
    path, said = tmp_path / "samples.db", dict[bytes, int]()
    with closing(open_store(path)) as store:
        store.add(AGREED)
        before = sqlite_version(path)
        speak(store, 1, said)
        assert learnt([before, sqlite_version(path)]) == said


def test_a_store_is_sealed_later_and_stays_so(tmp_path: Path, seal: Path) -> None:
    path = tmp_path / "samples.db"
    with closing(open_store(path)) as store:
        store.add(AGREED)
        store.count_arrivals(AGREED.id, 1, [arrival(number, 2) for number in range(10)], DAY)
        with closing(open_store(path, seal=seal)) as other:
            other.seal_pool_if_key_given()
            assert sqlite_version(path).said == Counter()
            assert other.outcome_counts(AGREED.id, 1).tolist() == [0, 0, 10, 0, 0]
        for ask in (lambda: store.count_arrivals(AGREED.id, 1, [arrival("late")], DAY), store.seal_pool_if_key_given):
            with pytest.raises(StoreError, match="--seal FILE"):
                ask()
    with closing(open_store(path, seal=seal)) as other:
        assert other.outcome_counts(AGREED.id, 1).sum() == 10


@pytest.mark.slow
def test_nothing_that_was_overwritten_stays_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One version of the pool is in the bytes of file and log; SQLite left earlier ones there by itself."""
    head = struct.pack("<qq", 3, 1)  # the agreement's number and the round, with which a pool begins
    found = []
    for settings in (sqlite._SETTINGS, (*sqlite._SETTINGS, "secure_delete = OFF")):
        monkeypatch.setattr(sqlite, "_SETTINGS", settings)
        path, said = tmp_path / f"{len(settings)}.db", dict[bytes, int]()
        with closing(open_store(path)) as store:
            for agreement in (agreed(2), agreed(3), AGREED):
                store.add(agreement)
            for number in range(CLIENTS):
                speak(store, number, said)
            store.erase_overwritten_data()
            found.append(sum(Path(f"{path}{end}").read_bytes().count(head) for end in ("", "-wal")))
    assert found[0] == 1
    assert found[1] > 1  # without it: the search finds what is there


@pytest.mark.slow
def test_a_sealed_service_needs_its_key_and_so_does_an_export(
    tmp_path: Path, run: Run, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement, store = agreed_file(tmp_path, OUTCOMES), str(tmp_path / "samples.db")
    with running(tmp_path, "agreement.json", "--seal", "my.seal", "--workers", "2") as collector:
        for number in range(10):
            assert collector.send(one(agreement, f"c{number}", 3)).status == 200
        assert sqlite_version(tmp_path / "samples.db").said == Counter()
        until(lambda: collector.get("/estimate").json["samples"] >= 10, "samples are not counted")
        assert collector.get("/estimate").json["samples"] == 10
        assert collector.stop() == 0
    export = ("export", store, "-o", str(tmp_path / "samples.parquet"), "--json")
    for said in (refusal(*export), refusal("collect", "--store", store, "--port", "0")):
        assert "the store is sealed, and its key was not given" in said
    create_seal_file(tmp_path / "other.seal")
    assert "under another key" in refusal(*export, "--seal", str(tmp_path / "other.seal"))
    assert json.loads(run(*export, "--seal", str(tmp_path / "my.seal")).stdout)["samples"] == 10
    monkeypatch.setenv(pool.SEAL_VARIABLE, str(tmp_path / "my.seal"))
    assert json.loads(run(*export, "--force").stdout)["samples"] == 10
    with running(tmp_path) as collector:
        assert collector.send(one(agreement, "late", 3)).status == 200
        assert collector.get("/estimate").json["samples"] == 11


@pytest.fixture
def admin(postgres: Server) -> Any:
    """A database, and somebody who may read all of it; an old snapshot is open from the beginning, so that no dead row goes."""
    where = postgres.database()
    with psycopg.connect(postgres.address(), autocommit=True) as first:
        first.execute("CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public")
    with psycopg.connect(where, autocommit=True) as old, psycopg.connect(where, autocommit=True) as admin:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT txid_current()")
        yield where, admin
        old.execute("ROLLBACK")


@pytest.mark.slow
def test_dead_rows_of_a_sealed_database_do_not_tell_who_said_what(admin: Any, seal: Path) -> None:
    """With an old snapshot open and every dead row read, and with a look after every sample. Before, all were told."""
    where, database = admin
    said: dict[bytes, int] = {}
    looks: list[Version] = []
    with closing(open_store(where, seal=seal)) as store:
        store.add(AGREED)
        store.seal_pool_if_key_given()
        for number in range(CLIENTS):
            speak(store, number, said)
            looks.append(postgres_version(database))
        check_counts(store, said)
    versions = dead_versions(database)
    assert len(versions) > CLIENTS  # the attack reads what is there
    assert len(versions[-1].spoken) == CLIENTS
    for seen in (versions, looks):
        assert learnt(seen) == {}
        assert smallest_change(seen) >= KEPT


@pytest.mark.slow
def test_dead_rows_of_a_database_that_is_not_sealed_tell_it(admin: Any) -> None:
    """What is not promised, and the documents say so. Whoever may select alone, and looks once, learns nothing even so."""
    where, database = admin
    said: dict[bytes, int] = {}
    with closing(open_store(where)) as store:
        store.add(AGREED)
        for number in range(40):
            speak(store, number, said)
        check_counts(store, said)
    found = learnt(dead_versions(database))
    assert len(found) >= 35
    assert found.items() <= said.items()


@pytest.mark.slow
def test_a_database_is_sealed_later_in_every_slot(postgres: Server, seal: Path) -> None:
    where = postgres.database()
    with closing(open_store(where)) as store, closing(open_store(where, seal=seal)) as other:
        store.add(AGREED)
        store.count_arrivals(AGREED.id, 1, [arrival(number, 2) for number in range(10)], DAY)
        other.seal_pool_if_key_given()
        assert other.outcome_counts(AGREED.id, 1).tolist() == [0, 0, 10, 0, 0]
        with psycopg.connect(where) as admin:
            assert admin.execute("SELECT DISTINCT get_byte(content, 0) FROM discreet_pool").fetchall() == [(1,)]
        for ask in (lambda: store.outcome_counts(AGREED.id, 1), store.seal_pool_if_key_given):
            with pytest.raises(StoreError, match="--seal FILE"):
                ask()
