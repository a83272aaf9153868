"""Agreements that a collector has signed: what `/collection` shows, with the key and without, and which keys are refused."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from discreet.client._protocol import (
    CollectionStatement,
    create_collector_key_file,
    has_valid_signature,
    read_collector_key,
    short_key_text,
    signature_from_json_or_none,
)
from discreet.collect import open_store, service
from discreet.collect._catalogue import sign_agreements
from discreet.collect._counting import create_seal_file
from discreet.errors import DiscreetError, StoreError
from tests.cli.conftest import Run, refusal, run
from tests.collect.behaviour import agreed as terms
from tests.collect.postgres import Server
from tests.collect.running import Collector, agreed, running

__all__ = ["refusal", "run"]
ADDRESS = "https://collect.example.org"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "samples.db")
    server: Server = request.getfixturevalue("postgres")
    return server.database()


def check_shown(collector: Collector, key: str, *addresses: str) -> None:
    """Every agreement of the collection is signed by that key for those addresses."""
    shown = collector.get("/collection").json
    for each in shown["agreements"]:
        signed = signature_from_json_or_none(each["signed"])
        assert signed is not None
        assert (signed.key, signed.addresses) == (key, addresses)
        statement = CollectionStatement(
            agreement=each["agreement"], collection=shown["collection"], follows=each["follows"], addresses=addresses
        )
        assert has_valid_signature(statement, signed)
        assert not has_valid_signature(
            CollectionStatement(agreement=each["agreement"], collection="0" * 64, follows=None, addresses=addresses),
            signed,
        )


@pytest.mark.slow
def test_agreements_are_signed_and_stay_so_without_the_key(tmp_path: Path) -> None:
    first, _ = agreed(tmp_path), agreed(tmp_path, name="second.json", purpose="second")
    with running(tmp_path, "agreement.json") as collector:
        assert [each["signed"] for each in collector.get("/collection").json["agreements"]] == [None]
        assert collector.stop() == 0
    with running(tmp_path, "second.json", "--follows", first.id, "--key", "my.key") as collector:
        path = tmp_path / "my.key"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        public = read_collector_key(path).public
        check_shown(collector, public, collector.address)
        assert collector.stop() == 0
    options = ("--key", "my.key", "--address", f"{ADDRESS}/", "--address", "http://other.example")
    with running(tmp_path, *options, "--workers", "2") as collector:
        check_shown(collector, public, ADDRESS, "http://other.example")
        assert collector.stop() == 0
    secret = path.read_bytes().split()[1]
    path.unlink()
    with running(tmp_path) as collector:
        check_shown(collector, public, ADDRESS, "http://other.example")
        for name in os.listdir(tmp_path):
            content = (tmp_path / name).read_bytes()
            assert secret not in content
            assert bytes.fromhex(secret.decode()) not in content


def test_another_key_is_refused_unless_it_may_take_the_place_of_the_first(where: str, tmp_path: Path) -> None:
    for name in ("first.key", "second.key"):
        create_collector_key_file(tmp_path / name)
    first, second = (read_collector_key(tmp_path / name) for name in ("first.key", "second.key"))
    one, other = terms(3), terms(3, epsilon=0.5)
    with closing(open_store(where)) as store:
        store.add(one)
        sign_agreements(store, first, [ADDRESS])
        before = store.agreements()[0].signed
        sign_agreements(store, first, [ADDRESS])
        assert store.agreements()[0].signed == before
        store.add(other, follows=one.id)
        with pytest.raises(DiscreetError, match="signed by another key") as caught:
            sign_agreements(store, second, [ADDRESS])
        assert short_key_text(first.public) in str(caught.value)
        assert [kept.signed for kept in store.agreements()] == [before, None]
        sign_agreements(store, second, [ADDRESS], replace_key=True)
        signed = [kept.signed for kept in store.agreements()]
        assert [each and each.key for each in signed] == [second.public] * 2
        for kept in store.agreements():
            statement = CollectionStatement(
                agreement=kept.agreement.id, collection=one.id, follows=kept.follows, addresses=(ADDRESS,)
            )
            assert kept.signed is not None
            assert has_valid_signature(statement, kept.signed)
        with pytest.raises(DiscreetError, match="1 to 16 addresses"):
            sign_agreements(store, second, [])
        with pytest.raises(DiscreetError, match="is not in the store"):
            store.save_signature(
                "0" * 64, first.sign(CollectionStatement(agreement="a", collection="b", follows=None, addresses=("c",)))
            )
        assert callable(service(store, key=tmp_path / "second.key", addresses=[ADDRESS]))


def test_what_cannot_be_signed_is_told_before_anything_is_written(
    tmp_path: Path, refusal: Callable[..., str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agreed(tmp_path)
    collect = ("collect", "agreement.json", "--port", "0")
    assert "none was given" in refusal(*collect, "--address", ADDRESS)
    (tmp_path / "wrong.key").write_text("nothing")
    os.chmod(tmp_path / "wrong.key", 0o600)
    assert "does not hold a collector's key" in refusal(*collect, "--key", "wrong.key")
    assert "is not an address" in refusal(*collect, "--key", "my.key", "--address", "example.org")
    assert not (tmp_path / "my.key").exists()
    assert "does not hold the key of a seal" in refusal(*collect, "--seal", "wrong.key")
    assert not (tmp_path / "samples.db").exists()


def test_a_mistyped_name_makes_no_key(tmp_path: Path, refusal: Callable[..., str]) -> None:
    store = tmp_path / "samples.db"
    create_collector_key_file(tmp_path / "my.key")
    create_seal_file(tmp_path / "my.seal")
    with closing(open_store(store, seal=tmp_path / "my.seal")) as opened:
        opened.add(terms(3))
        opened.seal_pool_if_key_given()
        sign_agreements(opened, read_collector_key(tmp_path / "my.key"), [ADDRESS])
    serving = ("collect", "--store", str(store), "--port", "0")
    said = refusal(*serving, "--seal", str(tmp_path / "mine.seal"))
    assert "mine.seal does not exist" in said
    assert "its key was not given" in said
    said = refusal(*serving, "--seal", str(tmp_path / "my.seal"), "--key", str(tmp_path / "mine.key"))
    assert "signed by another key" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.key", "my.seal", "samples.db"]


def test_a_damaged_signature_is_damage(tmp_path: Path) -> None:
    create_collector_key_file(tmp_path / "my.key")
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(terms(3))
        sign_agreements(store, read_collector_key(tmp_path / "my.key"), [ADDRESS])
    whole = (tmp_path / "samples.db").read_bytes()
    for change in ("signature = 'abc'", "addresses = 'abc'", "addresses = '{}'", "signer = substr(signer, 2)"):
        (tmp_path / "samples.db").write_bytes(whole)
        with closing(sqlite3.connect(tmp_path / "samples.db")) as database:
            database.execute(f"UPDATE signatures SET {change}")
            database.commit()
        with pytest.raises(StoreError, match="a signature in the store is damaged"):
            open_store(tmp_path / "samples.db")
