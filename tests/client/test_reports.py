"""A device sends one report: charged before it leaves, the same again whatever is asked, in bodies of one length, of the law agreed on."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import discreet as dc
from discreet.accounting import profile_of
from discreet.agreement import Agreement
from discreet.client import Client, Receipt, _gateway as gateway, send_table
from discreet.client._client import longest_sample_length
from discreet.client._collector import sample_request_body
from discreet.client._device_data import DeviceData
from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget, Destination, Ledger, PopulationLedger
from discreet.mechanisms import AffineBlocks, BlockFamily, ReportCounts, ReportSampler
from discreet.mechanisms._reports._blocks import MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.tables import read_secret, sample, write_secret
from tests.collect.running import running
from tests.soaking import wide

TOWNS = [f"town {number}" for number in range(64)]
FAMILIES: list[BlockFamily] = [
    SingleOutcomes(5),
    MaskedSubsets(6, 2),
    MaskedSubsets(64, 17),
    RankedSubsets(9, 3),
    AffineBlocks(8, 11, 1, 3),
    AffineBlocks(20, 5, 2, 2),
]


def sampler_of(blocks: BlockFamily, epsilon: float = 1.0) -> ReportSampler:
    return ReportSampler(dc.Simplex(blocks.size), epsilon=epsilon, blocks=blocks)


@pytest.mark.slow
def test_a_report_is_counted_once_and_charged_once_however_often_it_is_sent(tmp_path: Path) -> None:
    sampler = ReportSampler(dc.Simplex(TOWNS), epsilon=1.0)
    agreement = Agreement.of(sampler)
    agreement.write(tmp_path / "agreement.json")
    with running(tmp_path, "agreement.json") as collector:
        client = Client(collector.address, ledger=tmp_path / "ledger", budget=1.0)
        first = client.send(records=["town 3", "town 3", "town 60"])
        assert first == Receipt(True, agreement.id, agreement.id, 1, first.sample)
        assert sampler.check_reports([int(first.sample)]).tolist() == [int(first.sample)]
        again = Receipt(False, agreement.id, agreement.id, 1, first.sample)
        assert client.send(counts={"town 5": 7}) == again
        assert Client(collector.address, ledger=tmp_path / "ledger", agreement=agreement).send(records=[]) == again
        assert float(client.ledger.spent().basic) == 1.0
        told = collector.get("/estimate").json
        held = {str(each) for each in sampler.outcomes_of(int(first.sample))}
        assert told["reports"] == 1
        assert {row["outcome"] for row in told["shares"] if row["reports"]} == held
        poor = Client(collector.address, ledger=tmp_path / "poor", budget=0.5)
        with pytest.raises(BudgetError):
            poor.send(records=["town 3"])
        strange = Client(collector.address, ledger=tmp_path / "strange", budget=1.0).send(records=["nowhere"])
        assert (strange.counted, strange.outside) == (True, 1.0)
        assert "reference" in strange.problem
        assert collector.get("/estimate").json["reports"] == 2
        assert collector.said == ""


@pytest.mark.parametrize("blocks", FAMILIES, ids=lambda blocks: f"{blocks.name}-{blocks.size}")
def test_bodies_of_all_reports_have_one_length(blocks: BlockFamily) -> None:
    sampler = sampler_of(blocks)
    ranks = np.unique(np.linspace(0, blocks.block_count - 1, 200).astype(np.int64).clip(0, blocks.block_count - 1))
    reports = [str(each) for each in blocks.reports_of_ranks(ranks).tolist()]
    bodies = [sample_request_body("a" * 64, 1, "c", each, longest_sample_length(sampler)) for each in reports]
    assert len({len(body) for body in bodies}) == 1
    assert [json.loads(body)["sample"] for body in bodies] == reports


@pytest.mark.parametrize("blocks", FAMILIES, ids=lambda blocks: f"{blocks.name}-{blocks.size}")
def test_a_device_draws_from_the_law_of_reports(blocks: BlockFamily) -> None:
    """Both blocks are drawn and one is forgotten: how often each outcome is named has the law of `release`."""
    sampler, law = sampler_of(blocks, 1.5), np.zeros(blocks.size)
    law[[0, blocks.size - 1]] = 0.75, 0.25
    draws = wide(3000, 800)
    held = np.zeros(blocks.size)
    for _ in range(draws):
        held[blocks.outcomes_of(sampler.release_number(law))] += 1
    expected = sampler.chances.outside + sampler.chances.gap * law
    z = (held - draws * expected) / np.sqrt(draws * expected * (1.0 - expected))
    assert np.abs(z).max() < stats.norm.isf(1e-6 / blocks.size)


def test_a_device_takes_as_many_words_whichever_block_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time tells neither what is held nor which of the two blocks was taken: the same draws are made either way."""
    import discreet.mechanisms._reports._sampler as module

    sampler = sampler_of(AffineBlocks(20, 5, 2, 2))

    class Scripted:
        """Words of which the second decides."""

        def __init__(self, second: int) -> None:
            self.words, self.asked = iter([5, second, 7, 9]), 0

        def integers(self, count: int) -> Any:
            self.asked += count
            return np.array([next(self.words) for _ in range(count)], dtype=np.int64)

    reports, asked = set(), set()
    for second in (0, sampler.uniform_weight - 1, sampler.uniform_weight, (1 << 62) - 1):
        script = Scripted(second)
        monkeypatch.setattr(module, "entropy_or_seeded_randomness", lambda _, script=script: script)
        reports.add(sampler.release_number(np.eye(20)[3]))
        asked.add(script.asked)
    assert asked == {4}
    assert reports == {7, int(sampler.blocks.reports_of_ranks_holding_outcomes(np.array([3]), np.array([9]))[0])}


@pytest.mark.parametrize(
    "held",
    [
        {"records": []},
        {"records": [object(), None, "nowhere"]},
        {"p": [0.5, 0.5]},
        {"counts": {"nowhere": 3}},
        {"counts": [0.0] * 64},
        {"p": lambda x: 1.0},
    ],
)
def test_no_input_keeps_a_report_from_being_drawn(held: dict[str, Any]) -> None:
    sampler = ReportSampler(dc.Simplex(TOWNS), epsilon=1.0)
    given = {"p": None, "records": None, "counts": None, **held}
    fitted = DeviceData.from_arguments(**given).prepare_draw(sampler, Agreement.of(sampler))
    assert sampler.check_reports([fitted.draw()]).shape == (1,)
    assert fitted.problem


def test_a_ledger_repeats_a_report_and_charges_it_once(tmp_path: Path) -> None:
    sampler = ReportSampler(dc.Simplex(64), epsilon=1.0)
    agreement = Agreement.of(sampler, rounds=2)
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0))
    law = np.eye(64)[5]
    first = ledger.release(sampler, law, agreement=agreement)
    assert [ledger.release(sampler, np.eye(64)[i], agreement=agreement) for i in range(5)] == [first] * 5
    assert Ledger(tmp_path / "ledger").released_sample(sampler, agreement=agreement) == first
    assert float(ledger.spent().basic) == 1.0
    with pytest.raises(BudgetError):
        ledger.release(sampler, law, agreement=agreement, round=2)
    with pytest.raises(DiscreetError, match="one client"):
        ledger.release(sampler, np.eye(64), agreement=agreement)


@pytest.mark.parametrize("blocks", [each for each in FAMILIES if each.block_count < 10**5], ids=lambda each: each.name)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_profile_of_reports_bounds_every_pair_of_clients(blocks: BlockFamily, epsilon: float) -> None:
    """delta(e) = sum of (P(B) - e^e P'(B))_+ over reports, for two clients that hold one outcome each; alpha is w/K."""
    sampler = sampler_of(blocks, epsilon)
    profile = profile_of(sampler)
    assert math.isclose(profile.alpha, float(blocks.chance_of_holding_point), rel_tol=1e-9)
    assert not profile.attained
    one, other = sampler.output(np.eye(blocks.size)[[0, 1]])
    for at in (0.0, 0.1, 0.5 * epsilon, 0.9 * epsilon, epsilon):
        assert np.maximum(one - math.exp(at) * other, 0.0).sum() <= profile.delta(at) + 1e-12


@pytest.mark.slow
def test_a_gateway_sends_the_reports_of_its_table_once(tmp_path: Path) -> None:
    """Masks up to 2^64 arrive whole; running it again, on other data too, sends the same and spends nothing more."""
    sampler = ReportSampler(dc.Simplex(TOWNS), epsilon=1.0)
    agreement = Agreement.of(sampler)
    agreement.write(tmp_path / "agreement.json")
    write_secret(tmp_path / "secret")
    rows = pl.DataFrame({"who": [*range(300)] * 2, "what": [TOWNS[i % 9] for i in range(300)] + [TOWNS[60]] * 300})
    how: dict[str, Any] = {"client": "who", "value": "what", "secret": tmp_path / "secret", "budget": 1.0}
    with running(tmp_path, "agreement.json") as collector:
        first = send_table(collector.address, rows, **how)
        assert (first.counted, first.again, first.refused) == (300, 0, 0)
        told = collector.get("/estimate").json
        assert send_table(collector.address, rows, **how).again == 300
        changed = rows.with_columns(what=pl.lit(TOWNS[1]))
        assert send_table(collector.address, changed, **how).again == 300
        assert collector.get("/estimate").json == told
        one = Client(collector.address, ledger=tmp_path / "ledger", budget=1.0).send(records=[TOWNS[1]])
        assert one.counted
        assert collector.said == ""
    books = PopulationLedger(f"{tmp_path / 'secret'}.ledger", tmp_path / "secret")
    drawn = sample(rows, client="who", value="what", agreement=agreement, ledger=books)
    reports = drawn.column("report").to_numpy()
    assert int(reports.max()) > 2**63
    assert [row["reports"] for row in told["shares"]] == ReportCounts(sampler).add(reports).supports().tolist()


@pytest.mark.slow
def test_requests_of_a_gateway_are_as_long_whatever_the_reports_are(tmp_path: Path) -> None:
    sampler = ReportSampler(dc.Simplex(TOWNS), epsilon=1.0)
    agreement, lengths = Agreement.of(sampler), set[int]()
    write_secret(tmp_path / "secret")
    secret = read_secret(tmp_path / "secret")
    for reports in ([0x1FFFF] * 50, [0x1FFFF << 47] * 50):
        drawn = pa.table({"who": range(50), "report": pa.array(reports, pa.uint64())})
        to = Destination("http://127.0.0.1:1", None, agreement.id)
        lengths.update(
            len(body) for _, body in gateway._iterate_sample_counts_and_bodies(drawn, to, agreement, 1, secret)
        )
    assert len(lengths) == 1
