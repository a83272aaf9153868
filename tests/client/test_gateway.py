"""A gateway sends one sample of each client of a table, the same however often, and each is counted once."""

import io
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import _protocol as protocol
from discreet.agreement import Agreement
from discreet.client import Sent, send_table
from discreet.client import _gateway as gateway
from discreet.engines import read_secret, sample, write_secret
from discreet.errors import CollectorError
from discreet.ledger import PopulationLedger
from tests.client.hostile import hung_up, replies, said, serving
from tests.collect.running import agreed, running

COLOURS = ["red", "green", "blue"]
AGREED = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0))


def table(clients: int = 100, first: str = "red") -> pl.DataFrame:
    return pl.DataFrame({"who": [*range(clients)] * 2, "what": [first, "green"] * clients})


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    write_secret(tmp_path / "secret")
    return tmp_path / "secret"


def sent(address: str, secret: Path, rows: Any = None, **how: Any) -> Sent:
    given = {"client": "who", "value": "what", "secret": secret, "patience": 0.0, "timeout": 120.0, **how}
    return send_table(address, table() if rows is None else rows, **given)


@pytest.mark.slow
def test_every_client_is_counted_once_with_the_sample_of_the_engine(tmp_path: Path, secret: Path) -> None:
    agreement = agreed(tmp_path, COLOURS)
    progress: list[tuple[int, int]] = []
    with running(tmp_path, "agreement.json") as collector:
        first = sent(collector.address, secret, progress=lambda *told: progress.append(told))
        assert first == Sent(agreement.id, agreement.id, 1, 100, 0, 0)
        assert progress == [(100, 100)]
        assert sent(collector.address, secret).again == 100
        assert sent(collector.address, secret, table(100).sample(fraction=1.0, shuffle=True, seed=1)).again == 100
        told = collector.get("/estimate").json
        with pytest.raises(dc.DiscreetError, match="was released on other data"):
            sent(collector.address, secret, table(first="blue"))
        write_secret(tmp_path / "another")
        assert sent(collector.address, tmp_path / "another").counted == 100  # names are made of the secret
    drawn = sample(table(), client="who", value="what", agreement=agreement, secret=read_secret(secret))
    counts = pl.DataFrame(drawn.select(["sample"]))["sample"].value_counts()
    assert dict(counts.iter_rows()) == {row["outcome"]: row["samples"] for row in told["shares"] if row["samples"]}


@pytest.mark.slow
def test_a_collection_that_goes_on_is_for_other_clients(tmp_path: Path, secret: Path) -> None:
    first = agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret).counted == 100
        assert collector.stop() == 0
    second = agreed(tmp_path, COLOURS, name="second.json", purpose="the second")
    with running(tmp_path, "second.json", "--follows", first.id) as collector:
        with pytest.raises(dc.DiscreetError, match=f"agreement={first.id}"):
            sent(collector.address, secret)
        assert sent(collector.address, secret, agreement=first.id).again == 100
        write_secret(tmp_path / "another")
        assert sent(collector.address, tmp_path / "another", agreement=tmp_path / "second.json").agreement == second.id


@pytest.mark.slow
def test_a_ledger_pays_and_answers_whatever_the_data(tmp_path: Path, secret: Path) -> None:
    agreed(tmp_path, COLOURS)
    books = PopulationLedger.create(tmp_path / "books", budget=1.0, secret=secret)
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret, ledger=books).counted == 100
        assert sent(collector.address, secret, table(first="blue"), ledger=books).again == 100
        with pytest.raises(dc.LedgerError, match="serves a ledger"):
            sent(collector.address, secret)
        assert collector.stop() == 0
    first = Agreement.read(tmp_path / "agreement.json")
    agreed(tmp_path, COLOURS, name="second.json", purpose="the second")
    with running(tmp_path, "second.json", "--follows", first.id) as collector:
        with pytest.raises(dc.DiscreetError, match="a client speaks once"):
            sent(collector.address, secret, ledger=books)
        agreed(tmp_path, COLOURS, name="apart.json", purpose="apart")
    with (
        running(tmp_path, "apart.json", "--store", "apart.db") as collector,
        pytest.raises(dc.BudgetError, match="would spend more"),
    ):
        sent(collector.address, secret, ledger=books)


@pytest.mark.slow
def test_a_gateway_is_known_by_its_token(tmp_path: Path, secret: Path) -> None:
    agreed(tmp_path, COLOURS)
    (tmp_path / "gateways").write_text("token-of-a-gateway\n")
    (tmp_path / "gateways").chmod(0o600)
    with running(tmp_path, "agreement.json", "--gateways", "gateways") as collector:
        with pytest.raises(CollectorError, match="--gateway-token-file"):
            sent(collector.address, secret)
        with pytest.raises(CollectorError, match="enrolled alone: 'the Authorization header"):
            sent(collector.address, secret, token="token-of-nobody-x")
        assert sent(collector.address, secret, token="token-of-a-gateway").counted == 100


def test_batches_are_sent_until_they_are_answered_and_always_alike(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_BATCH", 40)
    busy = [said(200, {"counted": 40, "again": 0, "refused": []}), hung_up, said(503)]
    with serving(replies(AGREED, samples=busy)) as server:
        with pytest.raises(CollectorError, match="40 of 100 samples are acknowledged; run the same again"):
            sent(server.address, secret, patience=1.0)
        before = [read(each.body) for each in server.asked if each.path == protocol.SAMPLES]
    answers = [(40, 0, []), (30, 5, [0, 7, 8, 9, 39]), (20, 0, [])]
    said_now = [said(200, {"counted": new, "again": again, "refused": refused}) for new, again, refused in answers]
    with serving(replies(AGREED, samples=said_now)) as server:
        assert sent(server.address, secret) == Sent(AGREED.id, AGREED.id, 1, 90, 5, 5)
        after = [read(each.body) for each in server.asked if each.path == protocol.SAMPLES]
        headers = [each.headers for each in server.asked if each.path == protocol.SAMPLES]
    assert before[0].equals(after[0])
    assert all(each.equals(after[1]) for each in before[1:])
    assert [each.num_rows for each in after] == [40, 40, 20]
    assert all("authorization" not in each and each["content-type"] == protocol.ARROW for each in headers)
    whole = pa.concat_tables(after).to_pydict()
    held = read_secret(secret).value
    assert set(whole["client"]) == {protocol.name_in(AGREED.id, held, str(number)) for number in range(100)}
    assert whole["key"] == [protocol.key_of(name, AGREED.id, 1) for name in whole["client"]]


@pytest.mark.slow
def test_long_labels_go_in_smaller_batches(tmp_path: Path, secret: Path) -> None:
    long = ["\u00e4" * 50_000, "\u00f6" * 50_000]
    agreed(tmp_path, long)
    rows = pl.DataFrame({"who": range(400), "what": [long[number % 2] for number in range(400)]})
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret, rows).counted == 400


def read(body: bytes) -> pa.Table:
    found = pa.ipc.open_stream(io.BytesIO(body)).read_all()
    assert found.schema.metadata == {b"agreement": AGREED.id.encode(), b"round": b"1"}
    return found


def test_nothing_is_released_before_all_is_known_to_be_right(tmp_path: Path, secret: Path) -> None:
    missing: Any = None
    dear = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=11.0))
    with serving(replies(dear)) as server:
        with pytest.raises(dc.DiscreetError, match="epsilon = 11, more than the 10 allowed"):
            sent(server.address, secret)
        with pytest.raises(CollectorError, match="round = 2 is not open"):
            sent(server.address, secret, round=2)
        with pytest.raises(CollectorError, match="does not collect under"):
            sent(server.address, secret, agreement=AGREED)
        with pytest.raises(dc.DiscreetError, match="secret"):
            send_table(server.address, table(), client="who", value="what", secret=missing)
        assert [each for each in server.asked if each.method == "POST"] == []
    assert not (tmp_path / "secret.rounds").exists()
    with serving(replies(AGREED)) as server:
        for wrong in (
            {"value": "colour"},
            {"client": "name"},
            {"nulls": "x"},
            {"rows": pl.DataFrame({"who": [1], "what": ["pink"]})},
        ):
            with pytest.raises(dc.DiscreetError):
                sent(server.address, secret, **wrong)
        assert [each for each in server.asked if each.method == "POST"] == []
