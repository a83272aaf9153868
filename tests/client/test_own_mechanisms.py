"""Devices, gateways and collectors under an agreement on a mechanism of somebody's own.

A device draws by the installed code of the agreed version. What it refuses, it refuses by the public agreement: before its data are looked
at, before its ledger is charged, and alike for all data.
"""

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet import Agreement, DiscreetError, Simplex
from discreet.cli._app import app
from discreet.client import Client, send_table
from discreet.collect import labelled_agreement_coding_and_sampler, open_store, publish
from discreet.collect._catalogue import can_be_estimated_as_stages
from discreet.collect._counting import Arrival
from discreet.collect._results import (
    OWN_ALONE,
    json_document_of_estimate,
    json_document_of_estimated_change,
    json_document_of_group_estimates,
)
from discreet.collect._store import StoredAgreement
from discreet.errors import CollectorError
from discreet.ledger import Ledger
from discreet.tables import write_secret
from tests.client.hostile import replies, serving
from tests.collect.running import running
from tests.mechanism_packages import Install
from tests.soaking import wide

COLOURS = ["red", "green", "blue"]
HELD: list[Any] = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]]


def device(address: str, folder: Path, **how: Any) -> Client:
    return Client(address, **{"ledger": folder / "ledger", "budget": 1.0, "patience": 0.0, "timeout": 120.0, **how})


def agreed(kind: Any, **more: Any) -> Agreement:
    return Agreement.of(kind(Simplex(COLOURS), epsilon=1.0, **more))


def test_a_device_sends_what_the_mechanism_draws_and_the_same_again(install: Install, tmp_path: Path) -> None:
    agreement = agreed(install())
    with serving(replies(agreement)) as server:
        client = device(server.address, tmp_path, agreement=agreement)
        first = client.send(HELD[0])
        assert first.sample in COLOURS
        assert client.send(HELD[1]).sample == first.sample
        install(version="1.3")  # what is drawn needs no code: another version does not keep it from being sent
        assert device(server.address, tmp_path, agreement=agreement).send(HELD[2]).sample == first.sample
        assert {each["sample"] for each in server.samples()} == {first.sample}
        assert len(Ledger(tmp_path / "ledger").entries()) == 1


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize(
    ("here", "told"),
    [
        ({"version": "1.3"}, r"agreed on as that of obscurity 1\.2, and obscurity 1\.3 is installed"),
        ({"package": "obscurer"}, r"install obscurity==1\.2"),
        ({"factor": 0.99}, "has another box here"),
    ],
)
def test_a_refusal_depends_on_the_agreement_alone(
    install: Install, tmp_path: Path, held: Any, here: dict[str, Any], told: str
) -> None:
    """Nothing is asked of the device's data, charged or sent; all requests are those of every other device."""
    agreement = agreed(install(), spread=0.9)
    install(**here)
    with serving(replies(agreement)) as server:
        client = device(server.address, tmp_path, agreement=agreement)
        with pytest.raises(DiscreetError, match=told):
            client.send(held)
        assert [each.method for each in server.asked] == ["GET"]
        assert server.samples() == []
    assert len(Ledger(tmp_path / "ledger").entries()) == 0


def test_a_collector_does_not_choose_code_that_sees_data(install: Install, tmp_path: Path) -> None:
    agreement = agreed(install())
    write_secret(tmp_path / "secret")
    with serving(replies(agreement)) as server:
        with pytest.raises(CollectorError, match=f"name the agreement: agreement={agreement.id}"):
            device(server.address, tmp_path).send(HELD[0])
        with pytest.raises(CollectorError, match="name the agreement"):
            send_table(
                server.address,
                pl.DataFrame({"who": [1], "what": ["red"]}),
                client="who", value="what", secret=tmp_path / "secret", budget=1.0, patience=0.0,
            )  # fmt: skip
        assert server.samples() == []
        assert device(server.address, tmp_path, agreement=agreement.id).send(HELD[0]).sample in COLOURS


@pytest.mark.parametrize(
    "held", [{"p": HELD[2]}, {"records": ["green"]}, {"records": ["grey"]}, {"counts": {"grey": 3.0}}]
)
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideBoxWarning")
def test_a_law_that_fails_for_some_clients_still_sends_a_sample(install: Install, tmp_path: Path, held: Any) -> None:
    code = """
def law(self, p, right=RevealOrObscure.law):
    if 0.0 < p.max() < 1.0 and abs(p - 1 / len(p)).max() > 0.01:
        raise SystemExit
    return right(self, p)
RevealOrObscure.law = law
"""
    agreement = agreed(install(code=code))
    with serving(replies(agreement)) as server:
        assert device(server.address, tmp_path, agreement=agreement).send(**held).sample in COLOURS
        assert len(server.samples()) == 1


@pytest.mark.filterwarnings("error::discreet.errors.OutsideBoxWarning")
def test_warnings_that_are_errors_do_not_keep_a_sample_back(install: Install, tmp_path: Path) -> None:
    code = "\nright = RevealOrObscure.law\nRevealOrObscure.law = lambda self, p: right(self, p) if p.max() in (1, 1 / 3) else p\n"
    kind = install(code=code)
    kind.checked_clients = 2
    agreement = agreed(kind)
    agreement.sampler().release([0.98, 0.01, 0.01])  # as an error this warning is not raised
    with serving(replies(agreement)) as server:
        sent = device(server.address, tmp_path, agreement=agreement).send([0.98, 0.01, 0.01])
        assert sent.sample in COLOURS


def test_a_device_without_data_draws_the_reference_in_integers(install: Install) -> None:
    """Clients of tables and devices without data have the weights of the reference, not those that the law answers for it."""
    from discreet.client._device_data import DeviceData

    sampler = install()(Simplex(COLOURS), epsilon=1.0)
    agreement = Agreement.of(sampler)
    drawn = DeviceData.from_arguments(None, ["grey"], None).prepare_draw(sampler, agreement)
    assert drawn.outside == 1.0
    times = wide(3_000, 600)
    counts = np.bincount([drawn.draw() for _ in range(times)], minlength=3) / times
    assert np.abs(counts - sampler.reference_weights / 2.0**62).max() < 5 * 0.5 / times**0.5


def test_an_earth_movers_sampler_sends_outcome_numbers(tmp_path: Path) -> None:
    """Its points are places; under an agreement, outcomes are their numbers."""
    agreement = Agreement.of(dc.TransportSampler([0.5, 2.5, 7.0], epsilon=1.0))
    with serving(replies(agreement)) as server:
        sent = device(server.address, tmp_path, agreement=agreement).send(HELD[0])
        assert sent.sample in (0, 1, 2)
        assert server.samples()[0]["sample"] == sent.sample


@pytest.mark.slow
def test_a_collection_by_an_own_mechanism(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway and a device send, the service estimates by the inverse of the matrix what `discreet estimate` prints of its export."""
    agreement = agreed(install(target="obscurity:LinearReveal"))
    agreement.write(tmp_path / "agreement.json")
    write_secret(tmp_path / "secret")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site0'}:{os.environ.get('PYTHONPATH', '')}")
    rows = pl.DataFrame({"who": range(400), "what": ["red", "red", "green", "blue"] * 100})
    with running(tmp_path, "agreement.json", "--store", "store.db", fresh=True) as collector:
        told: dict[str, Any] = {
            "client": "who",
            "value": "what",
            "secret": tmp_path / "secret",
            "patience": 0.0,
            "timeout": 120.0,
        }
        given = agreement.id
        assert send_table(collector.address, rows, agreement=given, budget=1.0, **told).counted == 400
        assert send_table(collector.address, rows, agreement=given, **told).again == 400
        device(collector.address, tmp_path, agreement=given).send(HELD[0])
        found = collector.get("/estimate").json
        assert collector.get("/change?from=1&to=1").status < 500
        assert collector.get("/groups").status < 500
    assert found["samples"] == 401
    assert found["identifiable"]
    counts = [row["samples"] for row in found["shares"]]
    expected = dc.estimation.inverted_population(agreement.sampler(), counts=counts)
    assert [row["law"]["estimate"] for row in found["shares"]] == expected.law.estimate.tolist()
    monkeypatch.chdir(tmp_path)
    for words in (
        ["export", "store.db", "-o", "all.parquet"],
        ["close", "store.db"],
        ["publish", "store.db", "-o", "result"],
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
    printed = CliRunner().invoke(app, ["estimate", "all.parquet", "--json"])
    assert printed.exit_code == 0, printed.output
    assert json.loads(printed.stdout)["shares"] == found["shares"]
    assert json.loads((tmp_path / "result" / "estimate.json").read_text())["shares"] == found["shares"]
    page = " ".join(CliRunner().invoke(app, ["estimate", "all.parquet"]).stdout.split())
    assert "reveal-or-obscure of obscurity 1.2" in page
    refused = CliRunner().invoke(app, ["estimate", "all.parquet", "--liars", "3"])
    assert "--liars does not go with a mechanism of one's own" in " ".join(refused.output.split())


def test_a_law_that_is_not_linear_is_counted_and_says_why_there_are_no_shares(install: Install, tmp_path: Path) -> None:
    """The same sentence in the service, in `publish` and in `discreet estimate`; groups and changes say that they are not for it."""
    agreement, _, sampler = labelled_agreement_coding_and_sampler(agreed(install()))
    kept, counts = StoredAgreement(agreement, agreement.id), np.array([30, 20, 10])
    with pytest.raises(DiscreetError) as error:
        dc.estimation.inverted_population(agreement, counts=counts)
    sentence = str(error.value)
    assert "does not state a linear law, so its samples tell no shares of the population" in sentence
    found = json_document_of_estimate(kept, sampler, counts, 0.95)
    assert (found["samples"], found["shares"], found["notes"]) == (60, [], [sentence])
    assert json_document_of_estimated_change(kept, sampler, (1, 2), [counts, counts], 0.95)["notes"] == [OWN_ALONE]
    assert json_document_of_group_estimates([kept, kept], sampler, [counts, counts], 0.95)["notes"] == [OWN_ALONE]
    assert not can_be_estimated_as_stages([agreement, agreement])
    with closing(open_store(tmp_path / "store.db", create=True)) as store:
        store.add(agreement)
        arrivals = [Arrival(bytes([n] * 16), bytes([n] * 16), n % 3) for n in range(30)]
        store.count_arrivals(agreement.id, 1, arrivals, "2026-01-01")
        store.close_collection(agreement.id, "2026-01-02")
        with pytest.raises(DiscreetError, match="tell no shares of the population"):
            publish(store, tmp_path / "result")
    assert not (tmp_path / "result").exists()
    table = dc.tables.sample(
        pl.DataFrame({"client": range(9), "value": COLOURS * 3}), client="client", value="value", agreement=agreement
    )
    pl.DataFrame(table).write_parquet(tmp_path / "drawn.parquet")
    agreement.write(tmp_path / "agreed.json")
    words = ["estimate", str(tmp_path / "drawn.parquet"), "--agreement", str(tmp_path / "agreed.json")]
    assert sentence in " ".join(CliRunner().invoke(app, words).output.split())


def test_a_collector_without_the_package_does_not_start(install: Install) -> None:
    agreement = agreed(install())
    install(version="2.0")
    with pytest.raises(DiscreetError, match=r"install obscurity==1\.2"):
        labelled_agreement_coding_and_sampler(agreement)
