"""A device speaks once and says the same, whatever the service does, and spends nothing that its person has not allowed."""

import errno
import json
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.agreement import Agreement
from discreet.client import Client, Receipt, _protocol as protocol
from discreet.errors import CollectorError
from discreet.ledger import Budget, Ledger
from discreet.ledger._client_ledger import Destination
from tests.client import kills
from tests.client.hostile import (
    COUNTED,
    cut_short,
    dripping,
    endless,
    hung_up,
    offering,
    raw,
    replies,
    said,
    serving,
)
from tests.collect.running import agreed, running
from tests.needed import cannot_run
from tests.soaking import wide

COLOURS = ["red", "green", "blue"]
AGREED = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0))
OTHER = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=0.5))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
ELSEWHERE = "f" * 64


def device(address: str, folder: Path, **how: Any) -> Client:
    """A client with a ledger of its own, that gives up soon."""
    return Client(address, **{"ledger": folder / "ledger", "budget": 1.0, "patience": 0.0, "timeout": 120.0, **how})


# a real service


@pytest.mark.slow
def test_a_sample_is_counted_once_however_often_and_whatever_is_sent(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        client = device(collector.address, tmp_path)
        assert client.agreement.id == agreement.id
        first = client.send(records=["red", "red", "green"])
        assert first == Receipt(True, agreement.id, agreement.id, 1, first.sample)
        assert first.sample in COLOURS
        again = Receipt(False, agreement.id, agreement.id, 1, first.sample)
        assert client.send([0.0, 0.0, 1.0]) == again
        assert client.send(counts={"blue": 7}) == again
        assert device(collector.address, tmp_path, agreement=agreement).send([1, 0, 0]) == again
        assert device(collector.address, tmp_path, agreement=tmp_path / "agreement.json").send([1, 0, 0]) == again
        assert float(client.ledger.spent().basic) == 1.0
        told = collector.get("/estimate").json
        assert {row["outcome"]: row["samples"] for row in told["shares"]} == {
            colour: int(colour == first.sample) for colour in COLOURS
        }
        assert collector.said == ""
    assert stat.S_IMODE(os.stat(tmp_path / "ledger.identity").st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "given"),
    [
        (dc.Simplex(4), {"p": [0.1, 0.2, 0.3, 0.4]}),
        (dc.Simplex(dc.Interval(0.0, 60.0, cells=6)), {"records": [3.0, 59.5]}),
        (dc.Simplex([1, 2, 5]), {"records": [5, 5, 1]}),
        (dc.GaussianMixtures(1, box=(-4.0, 4.0)), {"records": [0.5, 0.25]}),
    ],
)
def test_every_kind_of_outcome_is_sent_as_it_is_released(tmp_path: Path, family: Any, given: dict[str, Any]) -> None:
    made = Agreement.of(dc.LinearSampler(family, epsilon=1.0))
    made.write(tmp_path / "agreement.json")
    with running(tmp_path, "agreement.json") as collector:
        client = device(collector.address, tmp_path)
        assert client.send(**given).counted
        assert not client.send(**given).counted
        assert collector.get("/estimate").json["samples"] == 1


@pytest.mark.slow
def test_who_has_spoken_under_the_first_agreement_spends_nothing_under_the_second(tmp_path: Path) -> None:
    first = agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        told = device(collector.address, tmp_path, budget=2.0).send([1, 0, 0])
        assert collector.stop() == 0
    cut_off = device(collector.address, tmp_path, ledger=tmp_path / "cut off", budget=2.0, agreement=first)
    here = Destination(collector.address, None, first.id)
    cut_off.ledger.release_to(here, first.sampler(), lambda: 1, agreement=first, round=1)  # drawn, and never sent
    second = agreed(tmp_path, COLOURS, name="second.json", purpose="the second")
    with running(tmp_path, "second.json", "--follows", first.id, port=collector.port) as collector:
        client = device(collector.address, tmp_path, budget=2.0)
        assert client.send([0, 0, 1]) == Receipt(False, first.id, first.id, 1, told.sample)
        assert float(client.ledger.spent().basic) == 1.0
        pinned = device(collector.address, tmp_path, budget=2.0, agreement=second)
        assert pinned.send([0, 0, 1]).agreement == first.id
        late = device(collector.address, tmp_path, ledger=tmp_path / "cut off", budget=2.0).send([0, 0, 1])
        assert (late.counted, late.agreement) == (True, first.id)
        new = device(collector.address, tmp_path, ledger=tmp_path / "new").send([0, 0, 1])
        assert new == Receipt(True, first.id, second.id, 1, new.sample)
        counts = [collector.get(f"/estimate?agreement={each.id}").json["samples"] for each in (first, second)]
        assert counts == [2, 1]
        with pytest.raises(dc.LedgerError, match="this device has spent from that ledger"):
            device(collector.address, tmp_path, ledger=tmp_path / "forgetful", identity=tmp_path / "ledger.identity")


@pytest.mark.slow
def test_rounds_are_released_one_by_one(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, COLOURS, rounds=4)
    client = None
    for rounds in ((2,), (1, 3)):
        with running(
            tmp_path, "agreement.json", *(word for number in rounds for word in ("--round", str(number)))
        ) as collector:
            client = device(collector.address, tmp_path, budget=3.0)
            assert client.send([1, 0, 0]).round == rounds[-1]
            assert client.send([1, 0, 0], round=rounds[0]).counted == (len(rounds) > 1)
            others: list[Any] = [4, 5, 0, "1"]
            for wrong in others:
                with pytest.raises(dc.DiscreetError, match="round"):
                    client.send([1, 0, 0], round=wrong)
    assert client is not None
    assert [(entry.agreement, entry.round) for entry in client.ledger.entries()] == [
        (agreement.id, r) for r in (2, 3, 1)
    ]
    with running(tmp_path, "--round", "5") as collector:
        client = device(collector.address, tmp_path, ledger=tmp_path / "late")
        with pytest.raises(CollectorError, match="no samples are taken now"):
            client.send([1, 0, 0])
        assert client.ledger.entries() == []


@pytest.mark.slow
def test_an_enrolled_client_is_called_by_its_token(tmp_path: Path) -> None:
    agreed(tmp_path, COLOURS)
    (tmp_path / "tokens").write_text("token-of-ann-1234\ntoken-of-bob-1234\n")
    (tmp_path / "tokens").chmod(0o600)
    with running(tmp_path, "agreement.json", "--tokens", "tokens") as collector:
        stranger = device(collector.address, tmp_path)
        with pytest.raises(CollectorError, match="token="):
            stranger.send([1, 0, 0])
        assert stranger.ledger.entries() == []
        with pytest.raises(CollectorError, match="only from enrolled clients: 'client is not one of the tokens"):
            device(collector.address, tmp_path, token="guessed-guessed-1234").send([1, 0, 0])
        assert device(collector.address, tmp_path, token="token-of-ann-1234").send([1, 0, 0]).counted
        twice = device(collector.address, tmp_path, ledger=tmp_path / "other", token="token-of-ann-1234")
        assert not twice.send(
            [1, 0, 0]
        ).counted  # one key of one name under one agreement: the collector cannot tell, and counts once
        assert collector.get("/estimate").json["samples"] == 1


@pytest.mark.slow
def test_two_processes_of_one_device_say_the_same(tmp_path: Path) -> None:
    agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        program = (
            "import sys; from discreet.client import Client; "
            "print(Client(sys.argv[1], ledger=sys.argv[2], budget=1.0).send([0.2, 0.3, 0.5]))"
        )
        command = [sys.executable, "-c", program, collector.address, str(tmp_path / "ledger")]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        receipts = [process.communicate(timeout=kills.PATIENCE)[0].strip() for process in started]
        assert sum("counted=True" in each for each in receipts) == 1
        assert len({each.partition("sample=")[2] for each in receipts}) == 1
        assert collector.get("/estimate").json["samples"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("careless", wide([False, True], [False]))
def test_a_device_that_is_killed_anywhere_speaks_once(careless: bool) -> None:
    """30 kills, at moments all over what it does; and a client that draws anew is found out."""
    done = subprocess.run(
        [sys.executable, "-m", kills.__name__, "--kills", "30", *(["--careless"] if careless else [])],
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * kills.PATIENCE,
    )
    assert (done.returncode != 0) == careless, done.stdout + done.stderr
    assert ("said another" in done.stderr) == careless, done.stderr


# servers that misbehave


FAILURES = [
    [hung_up, said(503, Retry_After="0"), cut_short],
    [said(429), said(408), said(502, b"<html>")],
    [said(504), raw(b"\xff\xfe no HTTP"), raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{")],
]


@pytest.mark.slow
@pytest.mark.parametrize("failures", FAILURES)
def test_it_tries_again_and_sends_the_same(tmp_path: Path, failures: list[Any]) -> None:
    collection = [hung_up, said(503), said(200, offering(AGREED))]
    with serving(replies(AGREED, samples=[*failures, said(200, COUNTED)], collection=collection)) as server:
        receipt = device(server.address, tmp_path, patience=300.0).send([0.2, 0.3, 0.5])
        told = server.samples()
    assert receipt.counted
    assert len(told) == len(failures) + 1
    assert all(each == told[0] for each in told)
    assert told[0]["sample"] == receipt.sample
    assert set(told[0]) == {"agreement", "round", "client", "key", "sample"}
    assert told[0]["key"] == protocol.sample_idempotency_key(told[0]["client"], AGREED.id, 1)


@pytest.mark.slow
def test_a_pause_that_is_asked_for_is_made_or_refused(tmp_path: Path) -> None:
    busy = [said(503, Retry_After="1"), said(200, COUNTED)]
    with serving(replies(AGREED, samples=busy)) as server:
        began = time.monotonic()
        assert device(server.address, tmp_path, budget=20.0, patience=300.0).send([1, 0, 0]).counted
        assert time.monotonic() - began >= 1.0
    for long in ("86400", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"):
        with serving(replies(AGREED, samples=said(503, Retry_After=long))) as server:
            with pytest.raises(
                CollectorError, match=r"asks to wait .* sending again with round=1 \(--round 1\) sends the same"
            ):
                device(server.address, tmp_path, budget=20.0, patience=60.0).send([1, 0, 0])
            assert len(server.samples()) == 1
    for nonsense in ("-5", "soon", "Fri, 99 Zzz 9999", "", "1e9", "\u0663"):
        with serving(replies(AGREED, samples=[said(503, Retry_After=nonsense), said(200, COUNTED)])) as server:
            assert device(server.address, tmp_path, budget=20.0, patience=60.0).send([1, 0, 0]).counted


@pytest.mark.slow
def test_patience_ends_and_the_sample_stays(tmp_path: Path) -> None:
    with serving(replies(AGREED, samples=[hung_up, said(503), said(503, Retry_After="86400")])) as server:
        client = device(server.address, tmp_path, patience=300.0)
        with pytest.raises(CollectorError, match=r"asked 3 times.*drawn and paid for"):
            client.send([0.2, 0.3, 0.5])
        told = server.samples()
        assert told == told[:1] * 3
        server.replies |= replies(AGREED)
        assert device(server.address, tmp_path).send([0, 0, 1]).sample == told[0]["sample"]
        assert server.samples() == told[:1] * 4
    gone = device(server.address, tmp_path, ledger=tmp_path / "another")
    with pytest.raises(CollectorError, match="cannot be reached"):
        gone.send([0, 0, 1])
    assert gone.ledger.entries() == []


NO_ROUNDS: list[Any] = [1, "1", None, {}, [0], [True], ["1"], [1.0], [10**30], [None], [[1]]]
CHANGES: list[dict[str, Any]] = [
    {"collection": None}, {"collection": "0" * 63}, {"collection": ELSEWHERE}, {"collection": AGREED.id.upper()},
    {"agreement": 1}, {"agreement": ELSEWHERE}, {"agreement": [AGREED.id]}, {"agreement": AGREED.id + "\n"},
    {"enrolment": 0}, {"enrolment": None}, {"agreements": None}, {"agreements": {}}, {"agreements": []}, {"agreements": [1]},
    {"agreements": [{"agreement": AGREED.id, "follows": 3, "open": [1]}]}, {"agreements": [{"agreement": AGREED.id, "follows": None}]},
    {"agreements": [{"agreement": AGREED.id, "follows": AGREED.id, "open": [1]}]}, {"agreements": [{"follows": None, "open": [1]}]},
    {"agreements": [{"agreement": AGREED.id, "follows": ELSEWHERE, "open": [1]}]},
    {"agreements": 2 * [{"agreement": AGREED.id, "follows": None, "open": [1]}]},
    *({"agreements": [{"agreement": AGREED.id, "follows": None, "open": rounds}]} for rounds in NO_ROUNDS),
]  # fmt: skip
WRONG_OFFERS: list[Any] = [
    b"", b"null", b"[]", b"{", b"{}", b"\xff", b"[" * 200_000, b'{"a":' * 100_000, b"9" * 10_000, b'{"round": NaN}',
    *(offering(AGREED, **change) for change in CHANGES),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_OFFERS, ids=range(len(WRONG_OFFERS)))
def test_a_collection_that_cannot_be_is_refused_and_nothing_is_released(tmp_path: Path, wrong: Any) -> None:
    with serving(replies(AGREED, collection=said(200, wrong))) as server:
        client = device(server.address, tmp_path)
        with pytest.raises(CollectorError, match="does not answer as a collector does"):
            client.send([1, 0, 0])
        assert client.ledger.entries() == []
        assert server.samples() == []


def test_an_agreement_is_what_its_id_says_or_nothing_is_released(tmp_path: Path) -> None:
    deep = b'{"discreet":' * 50_000
    for wrong, why in (
        (OTHER.text.encode(), "but sends"),
        (b"{}", "offers an invalid agreement"),
        (deep, "offers an invalid agreement"),
        (b"\xff\xff", "does not answer as a collector"),
        (json.dumps({**json.loads(AGREED.text), "epsilon": 900.0}).encode(), "but sends"),
        (json.dumps({**json.loads(AGREED.text), "epsilon": "1"}).encode(), "offers an invalid agreement"),
        (json.dumps({**json.loads(AGREED.text), "purpose": [0] * 10_000}).encode(), "offers an invalid agreement"),
        (_agreement_text(_mixtures(by=[])), r"invalid agreement: family\.atoms = .* cells or points"),
        (_agreement_text({"kind": "simplex", "size": 10**12, "interval": [0, 1]}, other=0), "other has no meaning"),
        (
            _agreement_text({**TABLE, "table": {"axes": [[0, ["a"], 2]], "values": [0.1, 0.2]}}),
            r"axes\[0\] is not a list",
        ),
    ):
        with serving(replies(AGREED, agreement=said(200, wrong))) as server:
            client = device(server.address, tmp_path)
            with pytest.raises(CollectorError, match=why) as refused:
                client.send([1, 0, 0])
            assert len(str(refused.value)) < 500
            assert (client.ledger.entries(), server.samples()) == ([], [])


DIGEST = f"sha256:{'0' * 64}"
TABLE = {
    "kind": "density band", "dim": 1, "box": [[0, 3]], "lower": 0.5, "upper": 2, "density": DIGEST,
    "atoms": {"by": "cells", "count": 8, "digest": DIGEST},
}  # fmt: skip


def _mixtures(by: Any = "points", dim: int = 1, count: int = 8, **more: Any) -> dict[str, Any]:
    seed = {"seed": 1} if by == "points" else {}
    atoms = {"by": by, "count": count, "digest": DIGEST, **seed, **more}
    return {"kind": "laplace mixtures", "dim": dim, "radius": 1, "scale": 1, "atoms": atoms}


def _agreement_text(family: dict[str, Any], **terms: Any) -> bytes:
    return json.dumps({**json.loads(AGREED.text), "family": family, **terms}).encode()


@pytest.mark.parametrize(
    ("family", "why"),
    [
        ({"kind": "simplex", "size": 10**10}, "10,000,000,000 outcomes"),
        ({"kind": "simplex", "size": 10**12, "interval": [0, 1]}, "1,000,000,000,000 outcomes"),
        (_mixtures(count=10**9), "1,000,000,000 points in 1 dimension; no more than 100,000,000 coordinates"),
        (_mixtures(dim=10**5, count=10**4), "10,000 points in 100,000 dimensions"),
        (_mixtures(dim=10**6), "8 points in 1,000,000 dimensions; no more than 100,000 dimensions"),
        (_mixtures("cells", dim=10**9), "8 cells in 1,000,000,000 dimensions; no more than 100,000 dimensions"),
        (_mixtures("cells", count=10**6), "1,000,000 cells in 1 dimension; no more than 131,072 cells"),
        (
            _mixtures("cells", 3, 1 << 17, masses="refined"),
            "no more than 4,096 cells with refined masses can be collected",
        ),
    ],
)
def test_an_agreement_too_large_to_be_held_is_refused(tmp_path: Path, family: dict[str, Any], why: str) -> None:
    """130 bytes of an offer took a device's memory, or did not end."""
    vast = Agreement.from_json(_agreement_text(family).decode())
    with serving(replies(vast)) as server:
        client = device(server.address, tmp_path)
        with pytest.raises(CollectorError, match=why):
            client.send(records=[0])
        assert (client.ledger.entries(), server.samples()) == ([], [])


def test_the_round_may_be_an_integer_of_numpy(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as server:
        client = device(server.address, tmp_path)
        number: Any = np.int64(1)
        first = client.send([1, 0, 0], round=number)
        assert client.send([0, 1, 0], round=number).sample == first.sample
        assert [entry.round for entry in client.ledger.entries()] == [1]


def test_whatever_is_offered_no_more_is_spent_than_was_allowed(tmp_path: Path) -> None:
    dear = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=5.0))
    with serving(replies(dear)) as server:
        client = device(server.address, tmp_path)
        with pytest.raises(dc.BudgetError):
            client.send([1, 0, 0])
        for pin in (AGREED, AGREED.id):
            pinned = device(server.address, tmp_path, agreement=pin, ledger=tmp_path / "rich", budget=10.0)
            with pytest.raises(CollectorError, match=f"does not collect under agreement {AGREED.id}"):
                pinned.send([1, 0, 0])
            assert pinned.ledger.entries() == []
        assert (client.ledger.entries(), server.samples()) == ([], [])


def test_an_agreement_that_changes_under_way_is_refused(tmp_path: Path) -> None:
    both = [
        {"agreement": AGREED.id, "follows": None, "rounds": 1, "open": [1], "purpose": ""},
        {"agreement": OTHER.id, "follows": AGREED.id, "rounds": 1, "open": [1], "purpose": ""},
    ]
    changed = said(200, offering(AGREED, agreement=OTHER.id, agreements=both))
    with serving(replies(AGREED, collection=[said(200, offering(AGREED)), changed])) as server:
        client = device(server.address, tmp_path)
        assert client.agreement.id == AGREED.id
        with pytest.raises(
            CollectorError, match=f"offered agreement {AGREED.id}, and now {OTHER.id}: nothing was released"
        ):
            client.send([1, 0, 0])
        assert (client.ledger.entries(), server.samples()) == ([], [])


@pytest.mark.parametrize("path", ["collection", "agreement", "samples", "weights"])
def test_no_more_is_read_than_there_is_to_say(tmp_path: Path, path: str) -> None:
    weights = 1.0 + np.arange(70_000) / 70_000
    many = Agreement.of(dc.OptimalSampler(dc.Band(weights, lower=0.0, upper=3.0, any_client=True), epsilon=1.0))
    answers = replies(many, weights=raw(HEAD + (many.family.weights_file_content or b"")))
    answers |= {
        key: value for key, value in replies(many, **{path: endless(HEAD, b" " * 65536)}).items() if key.endswith(path)
    }
    with serving(answers) as server:
        with pytest.raises(CollectorError, match="more than any valid answer"):
            device(server.address, tmp_path).send(weights / weights.sum())
        assert server.sent < 1 << 28


def test_weights_too_many_to_list_are_asked_for_and_checked(tmp_path: Path) -> None:
    weights = 1.0 + np.arange(70_000) / 70_000
    many = Agreement.of(dc.OptimalSampler(dc.Band(weights, lower=0.0, upper=3.0, any_client=True), epsilon=1.0))
    right = many.family.weights_file_content
    assert right is not None
    wrong = right[:800] + np.float64(0.5).tobytes() + right[808:]
    for content in (wrong, right[:-8], b""):
        with serving(replies(many, weights=raw(HEAD + content))) as server:
            with pytest.raises(dc.DiscreetError, match="weights"):
                device(server.address, tmp_path).send(weights / weights.sum())
            assert server.samples() == []
    with serving(replies(many, weights=raw(HEAD + right))) as server:
        assert device(server.address, tmp_path).send(weights / weights.sum()).counted


@pytest.mark.slow
@pytest.mark.parametrize(
    "slow",
    [
        dripping(b"", 0.05),
        dripping(b"HTTP/1.1 200 OK\r\nX: ", 0.05),
        dripping(HEAD + b"{", 0.05),
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_an_answer_is_whole_in_time_or_none(tmp_path: Path, slow: Any) -> None:
    with serving(replies(AGREED, collection=slow)) as server:
        client = device(server.address, tmp_path, timeout=1.0)
        with pytest.raises(CollectorError, match="no whole answer came within 1 s"):
            client.send([1, 0, 0])
        assert client.ledger.entries() == []


def test_a_host_of_many_addresses_has_one_deadline_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them had the whole time: a collector whose name leads to a thousand places that never answer kept a device for hours."""
    with serving(replies(AGREED)) as server, socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
        port = int(server.address.rsplit(":", 1)[1])
        full = [socket.socket() for _ in range(4)]  # more than wait in its line: the next one gets no answer
        for line in full:
            line.setblocking(False)
            line.connect_ex(silent.getsockname())
        places = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", silent.getsockname())] * 20
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        start = time.monotonic()
        with pytest.raises(CollectorError, match="cannot be reached: timed out"):
            device(server.address, tmp_path, timeout=1.0).send([1, 0, 0])
        assert time.monotonic() - start < 10.0
        places[1:] = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        assert device(server.address, tmp_path, timeout=10.0).send([1, 0, 0]).counted  # the second has time left
        for line in full:
            line.close()


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X%d: y\r\n" % number for number in range(200)) + b"\r\n{}"),
        raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n{}"),
        raw(b"SSH-2.0-OpenSSH_9.9\r\n"),
        raw(b"HTTP/1.1 99999 Nonsense\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n"),
        endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", b" " * 65536),
    ],
)
def test_what_is_not_http_is_no_answer(tmp_path: Path, answer: Any) -> None:
    with (
        serving(replies(AGREED, collection=answer)) as server,
        pytest.raises(CollectorError, match="is not HTTP"),
    ):
        device(server.address, tmp_path).send([1, 0, 0])


@pytest.mark.slow
def test_nobody_is_followed_elsewhere(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as other:
        for path in ("collection", "agreement", "samples"):
            for status in (301, 302, 303, 307, 308):
                away = said(status, Location=f"{other.address}/{path}")
                with (
                    serving(replies(AGREED, **{path: away})) as server,
                    pytest.raises(CollectorError, match="which is not followed"),
                ):
                    device(server.address, tmp_path, ledger=tmp_path / f"{path} {status}").send([1, 0, 0])
        assert other.asked == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (said(200, {"counted": 2, "again": 0, "refused": []}), "does not answer as a collector"),
        (said(200, {"counted": 0, "again": 0, "refused": []}), "does not answer as a collector"),
        (said(200, {"counted": True, "again": 0, "refused": []}), "does not answer as a collector"),
        (said(200, {"counted": 1, "again": -1, "refused": [0]}), "does not answer as a collector"),
        (said(200, {"counted": 0, "again": 0, "refused": [1]}), "does not answer as a collector"),
        (said(200, {"counted": 0, "again": 0, "refused": [0, 0]}), "does not answer as a collector"),
        (said(200, b"[]"), "does not answer as a collector"),
        (said(200, COUNTED, Content_Encoding="gzip"), "does not answer as a collector"),
        (said(204), "answers 204"),
        (said(500, b"oh"), "answers 500"),
        (said(413, {"error": "too large\x1b[2K\u202e"}), r"answers 413: 'too large\\x1b\[2K\\u202e'"),
        (said(422, {"error": "x" * 10_000}), "answers 422: 'x{300}'"),
        (said(401, {"error": ["no text"]}), "only from enrolled clients "),
        (said(409, {"error": "spoken"}), "has a sample in round 1"),
        (said(200, {"counted": 0, "again": 0, "refused": [0]}), "has a sample in round 1"),
    ],
)
def test_an_answer_that_is_none_is_a_sentence_and_the_sample_stays(tmp_path: Path, answer: Any, why: str) -> None:
    with serving(replies(AGREED, samples=answer)) as server:
        client = device(server.address, tmp_path)
        with pytest.raises(CollectorError, match=why) as error:
            client.send([1, 0, 0])
        assert str(error.value).isprintable()
        assert len(client.ledger.entries()) == len(server.samples()) == 1


def test_bad_input_is_refused_before_anything_is_asked_or_charged(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as server:
        client = device(server.address, tmp_path)
        with pytest.raises(dc.DiscreetError, match="pass one of p"):
            client.send()
        with pytest.raises(dc.DiscreetError, match="pass one of p"):
            client.send([1, 0, 0], records=["red"])
        for records in ("red", ["red", "blue"], ("red",)):
            with pytest.raises(dc.DiscreetError, match="records="):
                client.send(records)
        assert server.asked == []
        wrong: list[dict[str, Any]] = [
            {"p": [[1, 0, 0]] * 2},
            {"counts": [-1, 0, 1]},
            {"p": [0.5, 0.1, 0.1]},
            {"p": [1, float("nan"), 0]},
        ]
        for given in (*wrong, {"records": "red"}, {"counts": {"red": float("inf")}}, {"p": ["a", 1]}):
            with pytest.raises(dc.DiscreetError):
                client.send(**given)
        assert (client.ledger.entries(), server.asked) == ([], [])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.org", "not encrypted"),
        ("http://localhost.example.org", "not encrypted"),
        ("http://127.0.0.1.example.org:8000", "not encrypted"),
        ("http://0.0.0.0", "not encrypted"),
        ("ftp://localhost", "not an address"),
        ("localhost:8000", "http://127.0.0.1:8000 on this machine"),
        ("https://", "not an address"),
        ("https://user:word@example.org", "a name or a password"),
        ("https://example.org/?a=b", "a query or a fragment"),
        ("https://example.org/#x", "a query or a fragment"),
        ("https://example.org:99999", "not an address"),
        ("https://example.org:0", "has port 0"),
        ("https://example.org/a b", "spaces"),
        ("https://exa\nmple.org/\r\nX: y", "invisible characters"),
        ("https://example.org/\u00e4", "outside ASCII"),
        ("https://" + "a" * 70 + ".org", "not an address"),
        (8000, "not a text"),
    ],
)
def test_an_address_is_encrypted_or_here(tmp_path: Path, url: Any, why: str) -> None:
    with pytest.raises(dc.DiscreetError, match=why):
        Client(url, ledger=tmp_path / "ledger", budget=1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_name_in_other_letters_is_asked_as_it_travels(tmp_path: Path) -> None:
    """Letters that names of machines do not have are written in ASCII, here and in what is asked."""
    with serving(replies(AGREED)) as server:
        port = server.address.rpartition(":")[2]
        client = device(f"http://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54:{port}", tmp_path)
        assert client.agreement.id == AGREED.id
        assert {asked.headers["host"] for asked in server.asked} == {f"localhost:{port}"}


def test_who_speaks_plain_http_is_said_to(tmp_path: Path) -> None:
    """At once: it will not learn TLS while it is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            line, _ = listening.accept()
            with line:
                line.recv(1 << 16)
                line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        client = device(f"https://127.0.0.1:{listening.getsockname()[1]}", tmp_path, patience=1e6)
        with pytest.raises(CollectorError, match="does not use TLS"):
            client.send([1, 0, 0])


def test_plain_http_goes_elsewhere_where_somebody_insists(tmp_path: Path) -> None:
    for url in ("http://localhost:1", "http://127.0.0.9", "http://[::1]:8000/folder/"):
        Client(url, ledger=tmp_path / "ledger", budget=1.0)
    client = Client("http://[2001:db8::1]:8000/folder/", ledger=tmp_path / "ledger", plain_http=True)
    assert repr(client) == f"<Client of http://[2001:db8::1]:8000/folder with {tmp_path / 'ledger'}>"


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"ledger": 3}, "is not a Ledger"),
        ({"budget": None}, "there is no ledger .*; if it was there before, restore .* budget="),
        ({"budget": float("nan")}, "epsilon = nan"),
        ({"agreement": 7}, "agreement = 7"),
        ({"agreement": "no such file"}, "cannot be read"),
        ({"token": "two words"}, "token"),
        ({"token": "x" * 201}, "token"),
        ({"token": ""}, "token"),
        ({"timeout": 0.0}, "timeout = 0"),
        ({"patience": float("nan")}, "patience = nan"),
    ],
)
def test_what_a_client_is_made_of_is_checked(tmp_path: Path, terms: dict[str, Any], why: str) -> None:
    with pytest.raises(dc.DiscreetError, match=why):
        device("http://localhost:1", tmp_path, **terms)


def test_a_ledger_that_is_there_keeps_its_budget(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger", Budget(epsilon=0.5))
    with pytest.raises(dc.DiscreetError, match=r"budget is epsilon = 1, not the epsilon = 0\.5"):
        device("http://localhost:1", tmp_path)
    assert device("http://localhost:1", tmp_path, budget=None).ledger.budget.epsilon == 0.5
    given = Ledger(tmp_path / "ledger")
    assert device("http://localhost:1", tmp_path, ledger=given, budget=None).ledger is given


@pytest.mark.parametrize("call", ["unlink", "rename"])
def test_a_disk_that_fails_while_an_identity_is_made_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0))
    with serving(replies(AGREED)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            with pytest.raises(dc.LedgerError, match=r"identity .* cannot be made: Input/output error; .*try again"):
                device(server.address, tmp_path)
        assert device(server.address, tmp_path).send([1, 0, 0]).counted


def test_names_of_one_device_in_two_collections_have_nothing_in_common(tmp_path: Path) -> None:
    names = []
    for each in (AGREED, OTHER):
        with serving(replies(each)) as server:
            device(server.address, tmp_path, budget=2.0).send([1, 0, 0])
            names.append(server.samples()[0]["client"])
    assert len(set(names)) == 2
    identity = (tmp_path / "ledger.identity").read_text()
    assert all(len(name) == 64 and name not in identity for name in names)


@pytest.mark.slow
def test_devices_at_once_in_threads_each_speak_once(tmp_path: Path) -> None:
    agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        receipts: list[Receipt] = []

        def speak(number: int) -> None:
            for _ in range(2):
                receipts.append(
                    device(collector.address, tmp_path, ledger=tmp_path / f"{number}").send([0.1, 0.2, 0.7])
                )

        threads = [threading.Thread(target=speak, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(kills.PATIENCE)
        assert sorted(each.counted for each in receipts) == [False] * 8 + [True] * 8
        assert collector.get("/estimate").json["samples"] == 8


@pytest.mark.slow
def test_a_server_shows_that_it_is_the_one_meant(tmp_path: Path) -> None:
    """A real handshake: with a certificate of nobody's, with one of another machine, and with one that is believed."""
    if shutil.which("openssl") is None:
        cannot_run("openssl is not installed: apt-get install openssl")
    for name, machine in (("here", "IP:127.0.0.1"), ("elsewhere", "DNS:example.org")):
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        about = ["-subj", "/CN=test", "-addext", f"subjectAltName={machine}"]
        into = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        subprocess.run(["openssl", "req", *kind, *about, *into], check=True, capture_output=True)
    refused = "has no valid certificate"
    for name, believed, why in (("here", None, refused), ("elsewhere", "elsewhere", refused), ("here", "here", None)):
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        trusted = None if believed is None else ssl.create_default_context(cafile=str(tmp_path / f"{believed}.pem"))
        with serving(replies(AGREED), wrap=partial(own.wrap_socket, server_side=True)) as server:
            client = device(server.address.replace("http:", "https:"), tmp_path, tls=trusted)
            if why is None:
                assert client.send([1, 0, 0]).counted
            else:
                with pytest.raises(CollectorError, match=why):
                    client.send([1, 0, 0])
                assert (client.ledger.entries(), server.asked) == ([], [])
