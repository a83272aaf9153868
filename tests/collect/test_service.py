"""What each path of a running service answers. Every problem is a status code and one sentence."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.agreement import Agreement
from discreet.collect import open_store
from discreet.collect._catalogue import labelled_agreement_coding_and_sampler
from discreet.collect._results import json_document_of_estimate
from discreet.collect._store import StoredAgreement
from tests.collect.running import PATIENCE, Collector, agreed, one, running


@pytest.fixture(scope="module")
def agreement(tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    return agreed(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("collector")
    agreed(folder)
    with running(folder, "agreement.json") as found:
        yield found
        assert found.said == ""


def test_the_agreement_is_served_as_its_file_holds_it(collector: Collector, agreement: Agreement) -> None:
    answer = collector.get("/agreement")
    assert Agreement.from_json(answer.body.decode()).id == agreement.id
    assert answer.headers["Content-Type"] == "application/json"
    assert collector.get(f"/agreement?agreement={agreement.id[:12]}").body == answer.body
    again = collector.ask("GET", "/agreement", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


def test_a_sample_is_counted_once_and_its_client_speaks_once(collector: Collector, agreement: Agreement) -> None:
    sent = one(agreement, "ann", 3)
    assert collector.send(sent).json == {"counted": 1, "again": 0, "refused": []}
    assert collector.send(sent).json == {"counted": 0, "again": 1, "refused": []}
    second = collector.send(one(agreement, "ann", 4, key="another"))
    assert second.status == 409
    assert second.json.keys() == {"error", "counted", "again", "refused"}
    found = collector.get("/estimate").json
    assert [share["samples"] for share in found["shares"]] == [0, 0, 0, 1, 0]


def test_before_the_first_sample_an_estimate_says_so(tmp_path: Path) -> None:
    agreed(tmp_path)
    with running(tmp_path, "agreement.json") as collector:
        answer = collector.get("/estimate")
        assert (answer.status, answer.json["samples"], answer.json["shares"]) == (200, 0, [])
        assert answer.json["notes"] == ["there are no samples yet"]


def test_a_batch_is_taken_whole_or_not_at_all(tmp_path: Path) -> None:
    agreement = agreed(tmp_path)
    rows = [{"client": f"c{number}", "key": "k", "sample": number % 5} for number in range(50)]
    with running(tmp_path, "agreement.json") as collector:
        wrong = {"agreement": agreement.id, "round": 1, "samples": [*rows, {"client": "z", "key": "k", "sample": 5}]}
        answer = collector.send(wrong)
        assert (answer.status, answer.json) == (
            422,
            {"error": "samples[50].sample is not a whole number from 0 to 4"},
        )
        assert collector.get("/estimate").json["samples"] == 0
        sent = {"agreement": agreement.id, "round": 1, "samples": rows}
        assert collector.send(sent).json == {"counted": 50, "again": 0, "refused": []}
        mixed = [rows[0], {**rows[1], "key": "other"}, {"client": "new", "key": "k", "sample": 0}]
        found = collector.send({**sent, "samples": mixed}).json
        assert found == {"counted": 1, "again": 1, "refused": [1]}
        said = collector.get("/estimate").json
        assert collector.stop() == 0
    store = open_store(tmp_path / "samples.db")
    counts = store.outcome_counts(agreement.id, 1)
    assert counts.tolist() == [11, 10, 10, 10, 10]
    whole, _, sampler = labelled_agreement_coding_and_sampler(agreement)
    expected = json_document_of_estimate(StoredAgreement(whole, whole.id), sampler, counts, 0.95)
    days = store.sample_counts_by_day(agreement.id, 1)
    assert said == json.loads(json.dumps({**expected, "round": 1, "days": days}))
    store.close()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(tmp_path: Path, sig: int) -> None:
    agreed(tmp_path)
    with running(tmp_path, "agreement.json") as collector:
        assert collector.stop(sig) == 0
        assert collector.said == ""


def test_several_agreements_stand_side_by_side_and_one_follows_another(tmp_path: Path) -> None:
    first, beside = agreed(tmp_path), agreed(tmp_path, ["a", "b"], name="beside.json", purpose="beside")
    with running(tmp_path, "agreement.json", "beside.json") as collector:
        assert collector.send(one(first, "ann", 0)).status == 200
        assert collector.send(one(beside, "ann", "a")).status == 200
        assert collector.stop() == 0
    second = agreed(tmp_path, name="second.json", purpose="the second")
    with running(tmp_path, "second.json", "--follows", first.id[:12]) as collector:
        found = collector.get("/collection").json
        assert (found["collection"], found["agreement"], found["round"]) == (first.id, second.id, 1)
        assert [each["follows"] for each in found["agreements"]] == [None, first.id]
        assert [each["agreement"] for each in found["beside"]] == [beside.id]
        assert collector.send(one(second, "ann", 0, key="new")).status == 409
        assert collector.send(one(second, "bob", 0)).status == 200
        assert collector.send(one(first, "bob", 0, key="new")).status == 409
    with running(tmp_path) as collector:
        assert collector.get("/collection").json == found


def test_problems_are_a_status_and_one_sentence(collector: Collector, agreement: Agreement) -> None:
    good = one(agreement, "zoe", 1)
    for status, answer in (
        (404, collector.get("/nowhere")),
        (404, collector.get("/samples/")),
        (404, collector.get("/weights")),
        (404, collector.get("/agreement?agreement=0123456789ab")),
        (405, collector.get("/samples")),
        (405, collector.ask("DELETE", "/estimate")),
        (400, collector.get("/estimate?confidence=2")),
        (400, collector.get("/estimate?round=2")),
        (400, collector.get("/estimate?aggreement=1")),
        (415, collector.send(good, "text/plain")),
        (415, collector.ask("POST", "/samples", b"{}", {"Content-Type": "application/json", "Content-Encoding": "gzip"})),
        (400, collector.send(b"{")),
        (400, collector.send(b'{"agreement": 1, "agreement": 1}')),
        (400, collector.send({**good, "more": 1})),
        (422, collector.send({**good, "agreement": "0" * 64})),
        (422, collector.send({**good, "round": 2})),
        (422, collector.send({**good, "client": "a\u202eb"})),
        (422, collector.send({**good, "sample": "1"})),
        (422, collector.send({**good, "sample": True})),
        (422, collector.send({**good, "sample": 1.0})),
        (403, collector.ask("GET", "/estimate", headers={"Host": "elsewhere.example"})),
        (403, collector.ask("POST", "/samples", b"", {"Origin": "https://elsewhere.example"})),
    ):  # fmt: skip
        assert answer.status == status, answer
        assert answer.json.keys() == {"error"}
        assert "zoe" not in answer.json["error"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert answer.headers["Access-Control-Allow-Origin"] is None
    assert collector.send(good).json["counted"] == 1


def exchanged(collector: Collector, document: dict[str, object]) -> bytes:
    """All bytes that come back for a request, status line and headers too."""
    body = json.dumps(document).encode()
    head = f"POST /samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", collector.port), timeout=PATIENCE) as line:
        line.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
        return b"".join(iter(lambda: line.recv(1 << 16), b""))


def test_answers_have_as_many_bytes_whatever_became_of_a_sample(collector: Collector, agreement: Agreement) -> None:
    """TLS hides bytes and not how many there are."""
    answers = [
        exchanged(collector, one(agreement, "eve", sample, key=key))
        for sample, key in ((0, "first"), (0, "first"), (3, "first"), (1, "second"))
    ]
    assert [answer.split(b" ", 2)[1] for answer in answers] == [b"200", b"200", b"200", b"409"]
    assert len({len(answer) for answer in answers}) == 1
    rows = [{"client": f"many-{number}", "key": "k", "sample": 1} for number in range(120)]
    batch = {"agreement": agreement.id, "round": 1, "samples": rows}
    other = {**batch, "samples": [{**row, "key": "other" if place % 2 else "k"} for place, row in enumerate(rows)]}
    answers = [exchanged(collector, sent) for sent in (batch, batch, other)]
    assert len({len(answer) for answer in answers}) == 1
    assert json.loads(answers[-1].split(b"\r\n\r\n")[1])["refused"] == list(range(1, 120, 2))
