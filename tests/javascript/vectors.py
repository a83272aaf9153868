"""What Python draws, for other implementations to repeat: agreements, counts, integers, weights and outcomes, and documents that are refused.

    python -m tests.javascript.vectors FILE [--vectors 4000] [--reports 1500] [--surveys 120] [--seed 1]

One JSON object a line. An agreement comes with cases: counts by outcome number, integers below 2^62 as texts, and for each of them the
outcome and the sample (where the agreement names an outcome for values outside, they come out the same if such values take its place);
the weights as texts, or a checksum where they are many (the polynomial of these coefficients at 2^61 - 1, modulo
2^127 - 1). Integers are chosen where implementations would part: first and last, around the shared part, and on both sides of the edges
between outcomes. A vector is one integer.

An agreement on reports comes with reports: counts, words below 2^62 as texts, and the report that they give, as a text, with its outcomes
where these are few. Words are those of a secret, or chosen: on both sides of N, past the last multiple of a bound, first and last.

Agreements on surveys are in `tests.javascript.survey_vectors`, and documents that are nearly such in `tests.javascript.survey_documents`.
"""

import argparse
import base64
import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dc
from discreet import release
from discreet.agreement import Agreement
from discreet.mechanisms import MECHANISMS, AffineBlocks, BlockFamily, ReportSampler
from discreet.mechanisms._reports._blocks import MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.release import RunKey, client_message, keyed_word_stream, next_integer_below
from discreet.release._client_draws import _outcomes_beyond_shared_part, make_draw_plan_of_lattice
from discreet.release._lattice import TOTAL
from discreet.release._randomness import rejection_limit
from tests.javascript.survey_documents import changed_documents, edge_documents, verdict
from tests.javascript.survey_vectors import survey_lines
from tests.soaking import wide

VECTORS = wide(10_000, 4_000)
REPORTS = wide(10_000, 1_500)
SURVEYS = wide(3_000, 120)
CHANGED = wide(10, 3)  # documents that were changed, of each survey
_POINT, _PRIME = 2**61 - 1, 2**127 - 1
WRITTEN_OUT = 1 << 17  # outcomes of a law that is drawn from as a row
LISTED = 64  # weights that a vector lists
INTEGERS = 5  # of one client
CLIENTS = 2  # of one agreement
_WORDS = [
    "red",
    "grün",
    "蓝",
    "أحمر",
    "<script>alert(1)</script>",
    "",
    " ",
    "🙂",
    'a"b\\c',
    "e\u0301",
    "é",
    "\u202e",
    "1",
    "true",
]
_EPSILONS = [
    0.1,
    0.5,
    1.0,
    2.0,
    4.0,
    math.log(2),
    math.log(3),
    1e-9,
    3e-5,
    10.0,
    64.0,
    65.0,
    554.0,
    700.5,
    1500.0,
    1e300,
]


def written(path: Path, vectors: int = VECTORS, seed: int = 1, reports: int = REPORTS, surveys: int = SURVEYS) -> None:
    """The file: as many vectors, reports and surveys, and the documents that every reader refuses."""
    rng = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8") as file:
        left = vectors
        while left > 0:
            line = _line(rng, left)
            if line is not None:
                left -= sum(len(case["integers"]) for case in line["cases"])
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        for line in islice(_report_lines(rng), -(-reports // REPORTS_OF_ONE)):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        for line in islice(survey_lines(rng), surveys):
            changed = islice(changed_documents(line["agreement"], rng), CHANGED)
            for each in (line, *map(verdict, changed)):
                file.write(json.dumps(each, ensure_ascii=False) + "\n")
        for document in edge_documents(rng):
            file.write(json.dumps(verdict(document), ensure_ascii=False) + "\n")
        for text in spellings():
            found = Agreement.from_json(text)
            line = {"agreement": text, "id": found.id, "canonical": found.canonical, "cases": []}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        for refused in refusals():
            file.write(json.dumps({"refused": refused}, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """(agreements with their cases, documents that are refused)."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "cases" in line], [line["refused"] for line in lines if "refused" in line]


def _line(rng: np.random.Generator, left: int) -> dict[str, Any] | None:
    try:
        family = _family(rng)
        epsilon = float(rng.choice(_EPSILONS)) if rng.random() < 0.5 else float(10.0 ** rng.uniform(-3, 1.3))
        kind = list(MECHANISMS.values())[rng.integers(3)]
        sampler = kind(family, epsilon=epsilon)
        agreement = Agreement.of(
            sampler,
            rounds=int(rng.choice([1, 1, 1, 2, 10**15])),
            purpose=str(rng.choice(["", "", *_WORDS])),
            other=_other(family, rng),
        )
        _ = sampler.lattice
    except dc.DiscreetError:  # a budget too small for so many outcomes, bounds that only the reference satisfies
        return None
    cases = list(islice(_cases(agreement, sampler, rng), -(-left // INTEGERS)))
    if not cases:
        return None
    beside = agreement.family.weights_file_content
    return {
        "agreement": agreement.text,
        "id": agreement.id,
        "canonical": agreement.canonical,
        **({} if beside is None else {"beside": base64.b64encode(beside).decode()}),
        "cases": cases,
    }


def _other(family: Any, rng: np.random.Generator) -> Any:
    """The outcome that values outside count as, in a third of the agreements; an interval has none."""
    if family.domain.edges is not None or rng.random() < 2 / 3:
        return None
    return family.domain.to_samples(np.asarray(int(rng.integers(0, family.domain.size))))


def _family(rng: np.random.Generator) -> Any:
    size = int(rng.choice([2, 3, 7, 8, 9, 10, 50, 129, 1000]) if rng.random() < 0.9 else rng.integers(2, 3000))
    match rng.integers(12):
        case 0:
            return dc.Simplex(int(rng.choice([1, 2, 2**20, 10**9, 2**40])))
        case 1:
            return dc.Simplex(list(rng.permutation(np.array(_WORDS))[: max(2, size % 14)]))
        case 2:
            return dc.Simplex([1.0, 0.5, "1", 1e-7, 1e21, -3, 2**53][: max(2, size % 8)])
        case 3:
            low = float(rng.choice([0.0, -1.0, 1e-300, 0.1, -1e6]))
            return dc.Simplex(dc.Interval(low, low + float(rng.choice([1.0, 0.3, 1e6, 60.0])), cells=size))
        case 4:
            return dc.Simplex(size).spread(1.0 + (size - 1.0) * rng.random())
        case 5 if rng.random() < 0.1:
            return dc.Band(rng.random(66_000) + 0.01, lower=0.0, upper=3.0, any_client=True)
        case 5 | 6 | 7:
            weights = rng.dirichlet(np.full(size, rng.choice([0.05, 0.5, 5.0]))) + 10.0 ** rng.uniform(-12, -3)
            return dc.Band(weights, lower=0.0, upper=1.0 + float(10.0 ** rng.uniform(-2, 3)), any_client=True)
        case 8:
            weights = 10.0 ** -rng.uniform(0, 290, size)
            return dc.Band(weights, lower=0.0, upper=float(1.0 + rng.exponential(5.0)), any_client=True)
        case 9:
            return dc.Band(rng.integers(1, 5, size), lower=float(rng.uniform(0, 0.9)), upper=float(rng.uniform(1.1, 9)))
        case 10:
            return dc.Band(np.ones(size), lower=float(rng.uniform(0, 0.9)), upper=float(rng.uniform(1.1, 9)))
        case _:
            return dc.Simplex(size)


def _cases(agreement: Agreement, sampler: Any, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    domain = agreement.domain
    for _ in range(CLIENTS):
        outcomes, counts = (
            _member(sampler, rng) if sampler.mixing and sampler.bounds.lower else _client(domain.size, rng)
        )
        if domain.size > WRITTEN_OUT:  # too many to be written out: drawn from the few that are held
            integers = _integers(sampler.lattice.shared_total, [], rng)
            plan, held = make_draw_plan_of_lattice(sampler.lattice, sampler.mixing), np.array(outcomes, dtype=np.uint64)
            laws = [(held, np.array(counts, dtype=np.uint64))] * len(integers)
            own = [place for place, integer in enumerate(integers) if integer >= sampler.lattice.shared_total]
            drawn = [integer // int(sampler.lattice.lower) for integer in integers]
            for place, found in zip(
                own, _outcomes_beyond_shared_part(plan, [laws[i] for i in own], [integers[i] for i in own]), strict=True
            ):
                drawn[place] = found
            yield _case(domain, outcomes, counts, integers, drawn, None)
            continue
        dense = np.zeros(domain.size)
        dense[outcomes] = counts
        try:
            law = sampler._client_laws_on_atoms(sampler.family.law(counts=dense)[None, :]).rows
        except dc.DiscreetError:  # the linear mechanism serves members alone
            return
        weights = release.weights(sampler.lattice, law, sampler.mixing)[0]
        integers = _integers(sampler.lattice.shared_total, _edges(sampler, law), rng)
        rows = np.repeat(law, len(integers), axis=0)
        drawn = release.outcomes(sampler.lattice, rows, sampler.mixing, np.array(integers, dtype=np.int64)).tolist()
        yield _case(domain, outcomes, counts, integers, drawn, weights)


def _case(
    domain: dc.Domain,
    outcomes: list[int],
    counts: list[int],
    integers: list[int],
    drawn: list[int],
    weights: NDArray[np.int64] | None,
) -> dict[str, Any]:
    samples = [domain.to_samples(np.asarray(number)) for number in drawn]
    case: dict[str, Any] = {
        "counts": [list(pair) for pair in zip(outcomes, counts, strict=True)],
        "integers": list(map(str, integers)),
        "outcomes": drawn,
        "samples": samples,
    }
    if weights is not None:
        whole = weights.tolist()
        case.update({"weights": list(map(str, whole))} if len(whole) <= LISTED else {"checksum": str(_checksum(whole))})
    return case


def _checksum(weights: list[int]) -> int:
    total = 0
    for weight in weights:
        total = (total * _POINT + weight) % _PRIME
    return total


def _client(size: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Outcomes in order, and how often each was seen: points, few, all, of every size up to 2^53."""
    held = int(rng.choice([1, 2, 3, size // 2, size]))
    held = min(max(held, 1), size, 5000)
    outcomes = sorted({int(x) for x in rng.integers(0, size, held)} if held < size else range(size))
    most = float(rng.choice([1.0, 10.0, 1e3, 1e9, 2.0**52 / len(outcomes)]))
    counts = np.maximum(1, np.floor(most ** rng.random(len(outcomes)))).astype(np.int64)
    if rng.random() < 0.2:
        counts[:] = counts[0]
    return outcomes, counts.tolist()


def _member(sampler: Any, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """A client of a band: near its reference, mostly within its bounds."""
    bounds, size = sampler.bounds, sampler.carrier.size
    factor = rng.uniform(max(bounds.lower, 0.9), min(bounds.upper, 1.1), size)
    counts = np.floor(np.broadcast_to(sampler.reference, size) * factor * 2.0**40) + 1
    return list(range(size)), counts.astype(np.int64).tolist()


def _edges(sampler: Any, law: NDArray[np.float64]) -> list[int]:
    """Where one outcome ends and the next begins, above the shared part."""
    past = np.array([min(sampler.lattice.shared_total, TOTAL - 1)], dtype=np.int64)
    _, slope, lift = release._lattice._draw_outcomes_with_slopes_and_lifts(sampler.lattice, law, sampler.mixing, past)
    ends, edges = sampler.lattice.shared_total, []
    for part in sampler.lattice.weight_parts(law, slope, lift):
        for length in part[0].tolist():
            ends += length
            if length:
                edges.append(ends)
    return edges


def _integers(shared: int, edges: list[int], rng: np.random.Generator) -> list[int]:
    chosen = [0, TOTAL - 1, shared - 1, shared, *(int(rng.integers(0, TOTAL)) for _ in range(2))]
    if shared < TOTAL:
        chosen += [int(rng.integers(shared, TOTAL)) for _ in range(4)]
    if edges:
        chosen += [edge + side for edge in map(edges.__getitem__, rng.integers(0, len(edges), 8)) for side in (-1, 0)]
        chosen += [edge + side for edge in edges[-3:] for side in (-1, 0)]
    good = [integer for integer in chosen if 0 <= integer < TOTAL]
    return [good[place] for place in rng.permutation(len(good))[:INTEGERS]]


REPORTS_OF_ONE = 10  # agreement
_HELD = 2_000  # outcomes of an agreement whose reports are decoded
_REPORT_SIZES = [1, 2, 3, 7, 40, 63, 64, 65, 104, 257, 1000, 1009, 5000, 10**5, 10**6, 3 * 10**7, 2**31 - 1, 10**9]
_REPORT_EPSILONS = [1e-9, 0.05, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0, 64.0, 1e3]
_BLOCKS: list[BlockFamily] = [
    AffineBlocks(2**31 - 1, 2**31 - 1, 1, 2**30),  # products of digits up to 2^62
    AffineBlocks(2**31 - 1, 2**31 - 1, 1, 2**31 - 2),
    AffineBlocks(10**9, 2**31 - 1, 1, 1),
    AffineBlocks(1000, 67_108_879, 1, 12_345_678),  # just above 2^26
    AffineBlocks(1000, 67_108_859, 1, 12_345_678),  # just below it
    AffineBlocks(2**32, 3, 38, 1),
    AffineBlocks(1000, 2, 61, 1),
    AffineBlocks(2, 2, 1, 1),
    AffineBlocks(8, 3, 2, 2),
    AffineBlocks(1331, 11, 3, 3),
    MaskedSubsets(64, 63),
    MaskedSubsets(64, 1),
    MaskedSubsets(2, 1),
    RankedSubsets(3, 2),
    RankedSubsets(65, 32),
    RankedSubsets(2_000_000, 2),
    SingleOutcomes(1),
    SingleOutcomes(2**32),
]


def _report_lines(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Agreements on reports, without end: every kind of blocks, chosen and others."""
    while True:
        for blocks in (*_BLOCKS, *[None] * len(_BLOCKS)):
            domain = _report_domain(rng) if blocks is None else blocks.size
            epsilon = float(rng.choice(_REPORT_EPSILONS))
            sampler = ReportSampler(dc.Simplex(domain), epsilon=epsilon, blocks=blocks)
            agreement = Agreement.of(sampler, other=_other(sampler.family, rng))
            yield {
                "agreement": agreement.text,
                "id": agreement.id,
                "canonical": agreement.canonical,
                "cases": [],
                "reports": [_report_case(sampler, rng) for _ in range(REPORTS_OF_ONE)],
            }


def _report_domain(rng: np.random.Generator) -> Any:
    match rng.integers(6):
        case 0:
            return list(rng.permutation(np.array(_WORDS)))
        case 1:
            return dc.Interval(0.0, 60.0, cells=int(rng.integers(2, 300)))
        case _:
            return int(rng.choice(_REPORT_SIZES))


def _report_case(sampler: ReportSampler, rng: np.random.Generator) -> dict[str, Any]:
    blocks, size = sampler.blocks, sampler.family.size
    outcomes = sorted(
        {int(each) for each in rng.integers(0, size, rng.integers(1, 5))} | {int(rng.choice([0, size - 1]))}
    )
    counts = [int(each) for each in rng.integers(1, 10 ** rng.integers(1, 15), len(outcomes))]
    if rng.random() < 0.5:
        key, client = RunKey(rng.bytes(32)), int(rng.integers(0, 1000))
        words = list(islice(keyed_word_stream(key, client_message(client, outcomes, counts)), 100))
        report = sampler.release_keyed(key, client, outcomes, counts)
        assert report == report_of(sampler, outcomes, counts, words)
    else:
        weight, total = sampler.uniform_weight, sum(counts) // math.gcd(*counts)
        edges = [rejection_limit(bound) for bound in (blocks.block_count, total, blocks.blocks_per_point)]
        near = [0, TOTAL - 1, weight, *edges, *(edge - 1 for edge in (weight, *edges))]
        chosen = [each for each in near if 0 <= each < TOTAL]
        words = [int(rng.choice(chosen)) if rng.random() < 0.7 else int(rng.integers(0, TOTAL)) for _ in range(100)]
        words = [min(weight, TOTAL - 1) if rng.random() < 0.5 else words[0], *words[1:]]
        report = report_of(sampler, outcomes, counts, words)
    held = {"held": blocks.outcomes_of(report).tolist()} if size <= _HELD else {}
    return {
        "counts": [list(each) for each in zip(outcomes, counts, strict=True)],
        "words": [str(word) for word in words],
        "report": str(report),
        **held,
    }


def report_of(sampler: ReportSampler, outcomes: list[int], counts: list[int], words: list[int]) -> int:
    """The report that given words give, as `ReportSampler.release_keyed` takes them."""
    blocks, left, common = sampler.blocks, iter(words), math.gcd(*counts)
    if next(left) < sampler.uniform_weight:
        return int(blocks.reports_of_ranks(np.array([next_integer_below(left, blocks.block_count)]))[0])
    place = next_integer_below(left, sum(counts) // common)
    outcome = outcomes[int(np.searchsorted(np.cumsum(counts) // common, place, side="right"))]
    rank = next_integer_below(left, blocks.blocks_per_point)
    return int(blocks.reports_of_ranks_holding_outcomes(np.array([outcome]), np.array([rank]))[0])


def spellings() -> list[str]:
    """Documents whose numbers are not in their canonical form: each is the float that its digits stand for, a whole number too."""
    form = '{{"discreet":{},"bits":{},"mechanism":"optimal","epsilon":{},"rounds":{},"family":{{"kind":"simplex","size":{}{}}}{}}}'
    usual = ["2", "62", "1", "2", "3", "", ""]
    others = [
        ["2.0", "2e0", "0.2E1"], ["62.0", "6.2e1"], ["1.0", "1e0", "100e-2", "9007199254740993"],
        ["1.0", "2.0", "1e18", "9007199254740993", "9007199254740993.0"], ["3.0", "30e-1"],
        [',"labels":[1.0,2e0,"1"]', ',"labels":[-0.0,1e21,1e20]', ',"interval":[-0.0,6e1]'],
        [',"other":0', ',"other":2.0', ',"other":-0.0', ',"other":1e0'],
    ]  # fmt: skip
    return [
        form.format(*usual[:place], spelled, *usual[place + 1 :])
        for place, each in enumerate(others)
        for spelled in each
    ]


def refusals() -> list[str]:
    """Documents that are no agreement, or one that nobody here knows how to draw for."""
    simplex = json.loads(Agreement.of(dc.OptimalSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0)).text)
    band = json.loads(
        Agreement.of(dc.OptimalSampler(dc.Band([4, 2, 1], lower=0.0, upper=1.5, any_client=True), epsilon=1.0)).text
    )
    cells = json.loads(Agreement.of(dc.OptimalSampler(dc.Simplex(dc.Interval(0, 1, cells=4)), epsilon=1.0)).text)
    narrow = json.loads(Agreement.of(dc.OptimalSampler(dc.Band([4, 2, 1], lower=0.2, upper=1.5), epsilon=1.0)).text)
    top: dict[str, list[Any]] = {
        "discreet": [0, 3, 3.0, True, "2", None, 2.5], "bits": [53, "62", None], "mechanism": ["best", None, 1, "Optimal"],
        "epsilon": [0, -1, "1", None, True, []], "rounds": [0, -1, 1.5, 1e19, "1", None, True], "purpose": [1, None, []],
        "family": [None, [], "simplex", {}, 3], "more": [1], "privacy": [{"kind": "renyi"}, None],
        "other": [3, -1, 0.5, 1e300, None, "0", "a", True, False, [], [0], {}],
    }  # fmt: skip
    within: dict[str, list[Any]] = {
        "size": [0, -1, 1.5, 4.0, "3", None, True, 2**41], "kind": ["renyi", None, [], "Simplex"], "labels": [[], ["a", "b"], ["a", "b", "b"],
        ["a", "b", None], ["a", "b", []], "sha256:0", {}], "interval": [[0, 1]], "lower": [0.5], "reference": [[1, 1, 1]], "more": [1],
    }  # fmt: skip
    of_band: dict[str, list[Any]] = {
        "lower": [-0.1, 1, 0.5, None, "0"], "upper": [1, 0.5, None, "2"], "everybody": [False, 1, "yes"], "weights": [None, "sha256:", "x"],
        "reference": [[1, 0.5], [1, 0.5, 0.2500001], [1, 0.5, 0], [1, 0.5, -0.25], [1, 0.5, "0.25"], [2, 1, 0.5], {}, "x", [1, 0.5, True]],
    }  # fmt: skip
    of_cells: dict[str, list[Any]] = {
        "interval": [[1, 0], [0], [0, 1, 2], [0, 0], ["0", 1], 1, [1e16, 1e16 + 2], [-1e308, 1e308]]
    }
    of_narrow: dict[str, list[Any]] = {"upper": [60.0]}
    found = [json.dumps({**simplex, name: value}) for name, values in top.items() for value in values]
    for base, fields in ((simplex, within), (band, of_band), (cells, of_cells), (narrow, of_narrow)):
        found += [
            json.dumps({**base, "family": {**base["family"], name: value}})
            for name, values in fields.items()
            for value in values
        ]
    for base in (simplex, band):
        found += [json.dumps({key: each for key, each in base.items() if key != name}) for name in base]
    found += _refused_reports()
    text = json.dumps(simplex)
    found.append(json.dumps({**cells, "other": 0}))
    return [
        *found, "", "[]", "1", "nonsense", text[:-1], text + "}", text[:-1] + ', "epsilon": 2}', text.replace(': 1,', ": 1e999,"),
        text.replace(": 1,", ": NaN,"), text.replace(": 1,", ": 01,"), text.replace('"a"', '"\\ud800"'), "[" * 100_000,
        json.dumps({**band, "mechanism": "linear"}), "{}",
    ]  # fmt: skip


def _refused_reports() -> list[str]:
    """Agreements on reports whose blocks are none, missing, of another kind or of another mechanism."""
    reports = json.loads(Agreement.of(ReportSampler(dc.Simplex(104), epsilon=1.0)).text)
    band = json.loads(
        Agreement.of(dc.OptimalSampler(dc.Band([4, 2, 1], lower=0.0, upper=1.5, any_client=True), epsilon=1.0)).text
    )
    affine = {"kind": "affine", "q": 107, "t": 1, "c": 29}
    changed: dict[str, list[Any]] = {
        "q": [0, 1, 103, 121, 2**31 + 11, "107", None, 1e300], "t": [0, -1, 10, 64, 1.5, 2**31], "c": [0, 107, 108, -1, 0.5],
        "w": [1], "more": [1],
    }  # fmt: skip
    blocks: list[Any] = [
        None, [], "affine", {}, 1, {"kind": "affine"}, {"kind": None}, {"kind": ["values"]}, {"kind": "toString"}, {"kind": "Values"},
        {"kind": "values", "w": 1}, {"kind": "masks", "w": 3}, {"kind": "ranks"}, {"kind": "ranks", "w": 0}, {"kind": "ranks", "w": 104},
        {"kind": "ranks", "w": 52}, {"kind": "ranks", "w": 2.5}, {"kind": "ranks", "w": "2"}, {"kind": "ranks", "w": True},
        *({**affine, name: value} for name, values in changed.items() for value in values),
    ]  # fmt: skip
    found = [{**reports, "blocks": each} for each in blocks]
    found += [{**reports, "mechanism": "optimal"}, {**reports, "epsilon": 1e-13}, {**reports, "privacy": None}]
    found += [{**band, "mechanism": "reports", "blocks": {"kind": "values"}}]
    found += [{name: each for name, each in reports.items() if name != "blocks"}]
    return [json.dumps(each) for each in found]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--vectors", type=int, default=VECTORS)
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--surveys", type=int, default=SURVEYS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    written(given.file, given.vectors, given.seed, given.reports, given.surveys)
