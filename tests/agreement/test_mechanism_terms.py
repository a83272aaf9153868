"""Agreements on reports: the blocks are part of the document, old ids stay, and what has no blocks is refused by name."""

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from discreet import Approximate, Band, DiscreetError, Interval, LinearSampler, OptimalSampler, Simplex
from discreet.agreement import Agreement, BlockTerms
from discreet.mechanisms import AffineBlocks, ReportSampler
from discreet.mechanisms._reports._blocks import MaskedSubsets
from discreet.release import Question, Secret

GOLDEN = Path(__file__).parent / "agreements" / "2"
COLOURS = Simplex(["red", "grün", "蓝", *(f"colour {n}" for n in range(17))])
MADE: dict[str, tuple[ReportSampler, dict[str, Any]]] = {
    "affine": (ReportSampler(Simplex(104), epsilon=1.0), {}),
    "affine-many": (ReportSampler(Simplex(20_000), epsilon=1.0), {}),
    "masks": (ReportSampler(COLOURS, epsilon=0.5), {"rounds": 3, "purpose": "Colours of 2013"}),
    "ranks": (ReportSampler(Simplex(104), epsilon=4.0), {}),
    "values": (ReportSampler(Simplex(7), epsilon=2.0), {}),
}
IDS = {
    "affine": "4ff0979a70ca6e308a428dc29dd55303b75cdd4f8a779922a44c4f091f1a8c71",
    "affine-many": "c49ef71b73e935eb03d0a902f5efec2aa792f3161204680923979ab62c2eb6fc",
    "masks": "fc99a46d94142107cefd610fc6ba5d973c24c9f6322e61341141e6eff308c148",
    "ranks": "44f0595e73d1bf52471735f54a0e661ded202e7094735ab64f713a7fcdcdc966",
    "values": "5a55313c50e9f4ca702f67caeae7847274835cf1cbb3a5e492df85e135f23c89",
}
REPORTS = {"bits": 62, "discreet": 2, "epsilon": 1, "family": {"kind": "simplex", "size": 20}, "mechanism": "reports"}


@pytest.mark.parametrize("name", sorted(MADE))
def test_agreements_on_reports_made_before_read_the_same_for_ever(name: str) -> None:
    """The files are records of what was once agreed: never regenerate them."""
    sampler, options = MADE[name]
    read, made = Agreement.read(GOLDEN / f"reports-{name}.json"), Agreement.of(sampler, **options)
    assert read == made
    assert read.id == made.id == IDS[name]
    text = (GOLDEN / f"reports-{name}.json").read_bytes()
    assert text == made.canonical.encode() + b"\n"
    assert hashlib.sha256(text[:-1]).hexdigest() == IDS[name]
    found = read.sampler(sampler.family)
    assert found == read.report_sampler(sampler.family) == sampler
    assert (found.blocks, found.uniform_weight) == (sampler.blocks, sampler.uniform_weight)
    read.check_sampler(sampler)
    assert pickle.loads(pickle.dumps(read)) == made


def test_an_agreement_keeps_its_blocks_where_another_choice_would_be_made_today() -> None:
    """Blocks are read and not chosen again: reports under old agreements stay readable."""
    blocks = AffineBlocks(20, 23, 1, 7)
    agreed = Agreement.from_json(json.dumps({**REPORTS, "blocks": {"kind": "affine", "q": 23, "t": 1, "c": 7}}))
    found = agreed.sampler()
    assert found.blocks == blocks != ReportSampler(Simplex(20), epsilon=1.0).blocks
    assert found != ReportSampler(Simplex(20), epsilon=1.0)
    assert Agreement.of(found).id == agreed.id
    key = Secret(bytes(range(32))).run_key(agreed.id, 1, Question(value="v"))
    assert found.check_reports([found.release_keyed(key, "x", [3], [1])]) < blocks.block_count
    with pytest.raises(DiscreetError, match="belongs to agreement"):
        agreed.check_sampler(ReportSampler(Simplex(20), epsilon=1.0))


def test_every_parameter_of_blocks_changes_the_id() -> None:
    blocks = [
        {"kind": "values"}, {"kind": "masks", "w": 5}, {"kind": "masks", "w": 6}, {"kind": "ranks", "w": 5},
        {"kind": "affine", "q": 23, "t": 1, "c": 7}, {"kind": "affine", "q": 23, "t": 1, "c": 8},
        {"kind": "affine", "q": 23, "t": 2, "c": 7}, {"kind": "affine", "q": 29, "t": 1, "c": 7},
    ]  # fmt: skip
    ids = [Agreement.from_json(json.dumps({**REPORTS, "blocks": each})).id for each in blocks]
    assert len(set(ids)) == len(blocks)


def test_an_agreement_on_samples_has_no_blocks() -> None:
    plain = Agreement.of(LinearSampler(Simplex(20), epsilon=1.0))
    assert "blocks" not in plain.document
    with pytest.raises(DiscreetError, match=r"is on samples, not on reports of one column; use agreement\.sampler"):
        plain.report_sampler()
    with pytest.raises(DiscreetError, match="blocks has no meaning for the mechanism linear"):
        Agreement.from_json(json.dumps({**plain.document, "blocks": {"kind": "values"}}))


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        ({"kind": "sets", "w": 3}, "blocks.kind = 'sets' is not one of values, masks, ranks, affine"),
        ({"kind": ["masks"], "w": 3}, "blocks.kind"),
        ({"w": 3}, "blocks has no field 'kind'"),
        ({"kind": "masks"}, "blocks.w = None is not a whole number"),
        ({"kind": "masks", "w": 2.5}, "blocks.w = 2.5 is not a whole number"),
        ({"kind": "masks", "w": 0}, "blocks.w = 0 is less than 1"),
        ({"kind": "masks", "w": 20}, "subsets of 20 of 20 outcomes are no masks"),
        ({"kind": "ranks", "w": 20}, "have no rank of 62 bits"),
        ({"kind": "masks", "w": 3, "q": 7}, "blocks.q = 7 has no meaning for masks"),
        ({"kind": "affine", "q": 21, "t": 1, "c": 5}, "q is prime"),
        ({"kind": "affine", "q": 19, "t": 1, "c": 5}, "k <= q\\^t"),
        ({"kind": "affine", "q": 23, "t": 1, "c": 23}, "1 <= c < q"),
        ({"kind": "affine", "q": 2, "t": 2**31, "c": 1}, "q is prime, t >= 1"),
        ({"kind": "affine", "q": 2**61 - 1, "t": 1, "c": 1}, "blocks.q"),
        ({"kind": "values", "more": 1}, "blocks has a field 'more' that this version does not know"),
        (3, "blocks = 3 is not a JSON object"),
    ],
)
def test_blocks_that_are_none_are_refused_by_name(blocks: Any, says: str) -> None:
    with pytest.raises(DiscreetError, match=says):
        Agreement.from_json(json.dumps({**REPORTS, "blocks": blocks}))


def test_reports_are_refused_where_there_are_none() -> None:
    """Another family, another notion, several at once: each refusal names what to agree on instead."""
    masks = {"kind": "masks", "w": 5}
    band = Agreement.of(OptimalSampler(Band([1.0] * 20, lower=0.5, upper=2.0), epsilon=1.0)).document["family"]
    with pytest.raises(DiscreetError, match=r"needs blocks; use Agreement\.of"):
        Agreement.from_json(json.dumps(REPORTS))
    with pytest.raises(DiscreetError, match="a Simplex; on a band or a continuous family agree on 'optimal'"):
        Agreement.from_json(json.dumps({**REPORTS, "blocks": masks, "family": band}))
    with pytest.raises(DiscreetError, match=r"for pure epsilon.*agree on 'linear'"):
        Agreement(
            family=Agreement.of(MADE["affine"][0]).family,
            mechanism="reports",
            epsilon=1.0,
            privacy=Approximate(0.5, delta=1e-6),
            blocks=BlockTerms("values"),
        )
    with pytest.raises(DiscreetError, match="joint has no meaning for the mechanism reports"):
        Agreement.from_json(
            json.dumps({**REPORTS, "blocks": masks, "joint": {"samples": 2, "around": "product"}}),
        )
    with pytest.raises(DiscreetError, match="reference has no meaning for reports"):
        Agreement.of(MADE["affine"][0]).sampler(reference=[1.0] * 104)


def test_labels_cells_and_other_outcomes_go_with_reports(tmp_path: Path) -> None:
    labelled = Agreement.of(ReportSampler(COLOURS, epsilon=0.5), other="red")
    labelled.write(tmp_path / "colours.json")
    read = Agreement.read(tmp_path / "colours.json")
    assert (read.other, read.sampler()) == (0, ReportSampler(COLOURS, epsilon=0.5))
    assert isinstance(read.sampler().blocks, MaskedSubsets)
    cells = Simplex(Interval(0.0, 10.0, cells=40))
    assert Agreement.from_json(Agreement.of(ReportSampler(cells, epsilon=0.5)).text).sampler().family == cells


def test_blocks_on_no_outcomes_are_refused() -> None:
    with pytest.raises(DiscreetError, match="family = None is not a Simplex"):
        BlockTerms("values").sampler(None, 1.0)
