"""Agreements on a mollifier around a public law of its own: the same promises as on any other, from the document to a table's samples."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dc
from discreet import ledger
from discreet._base.numerics import exp_lower
from discreet.agreement._continuous_terms import ReferenceTerms
from discreet.audit import certificate
from discreet.estimation import population
from discreet.estimation._counting import line_cells_of_sampler
from discreet.families import Tabulated
from discreet.release import TOTAL
from discreet.tables import sample
from tests.tables.small_tables import SECRET, by_client, expected, rows

GOLDEN = Path(__file__).parent / "agreements" / "2" / "reference.json"
INTERVAL = dc.GaussianMixtures(1, box=(-4.0, 4.0))
TABLE = Tabulated(np.linspace(-4.0, 4.0, 33), np.exp(-0.3 * np.linspace(-3.875, 3.875, 32) ** 2))
WITHIN = dc.DensityBand.around(TABLE, [(-4.0, 4.0)], factor=6.0)
UNEVEN = np.random.default_rng(2).dirichlet(np.ones(40)) * (
    1.0 + 3e-10
)  # which does not sum to one, and is divided by what it sums to

MADE: dict[str, dc.MollifierSampler[Any]] = {
    "labels": dc.MollifierSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0, reference={"c": 0.5, "a": 0.2, "b": 0.3}),
    "numbers": dc.MollifierSampler(dc.Simplex(40), epsilon=2.0, reference=UNEVEN),
    "band": dc.MollifierSampler(dc.Band([1, 2, 3], lower=0.5, upper=1.5), epsilon=1.0, reference=[0.3, 0.3, 0.4]),
    "table": dc.MollifierSampler(INTERVAL, epsilon=1.0, reference=TABLE, discretisation=dc.Cells(40)),
    "within": dc.MollifierSampler(INTERVAL, epsilon=1.5, reference=WITHIN),
    "points": dc.MollifierSampler(INTERVAL, epsilon=1.0, reference=TABLE, discretisation=dc.Points(300, seed=5)),
}


def client(sampler: dc.Sampler[Any]) -> Any:
    family = sampler.family
    return family.mixture([1.0], [0.2]) if family == INTERVAL else np.full(family.size, 1.0 / family.size)


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.parametrize("name", MADE)
def test_an_agreement_gives_its_sampler_back(name: str, tmp_path: Path) -> None:
    sampler = MADE[name]
    made = dc.Agreement.of(sampler, purpose="tests")
    assert hashlib.sha256(made.canonical.encode()).hexdigest() == made.id
    made.write(tmp_path / "a.json")
    for read in (dc.Agreement.from_json(made.text), dc.Agreement.read(tmp_path / "a.json")):
        assert (read, read.id) == (made, made.id)
        assert read.sampler() == sampler
        assert np.array_equal(read.sampler().lattice.lower, sampler.lattice.lower)
        assert np.array_equal(read.sampler().weights(client(sampler)), sampler.weights(client(sampler)))
        read.check_sampler(sampler)
    short = dc.Agreement.from_json(made.canonical)
    assert short == made
    with pytest.raises(dc.DiscreetError, match="pass "):
        short.sampler()
    assert short.sampler(sampler.family, reference=sampler.given_reference) == sampler
    own = type(sampler)(sampler.family, epsilon=sampler.epsilon, discretisation=sampler.discretisation)
    with pytest.raises(dc.DiscreetError, match=r"belongs to agreement"):
        made.check_sampler(own)


def test_what_was_agreed_on_once_is_so_for_ever() -> None:
    """The file is a record of what was once agreed: never regenerate it."""
    read = dc.Agreement.read(GOLDEN)
    assert read.id == dc.Agreement.of(MADE["labels"]).id
    assert read.id == "893ed9462286b4c35ed9bad2e311c5eacf9bdea4328f61e1e90be311f5869aed"
    assert read.sampler() == MADE["labels"]


def test_everything_that_matters_is_in_the_id() -> None:
    simplex = dc.Simplex(["a", "b", "c"])
    others: list[dc.Sampler[Any]] = [
        dc.MollifierSampler(simplex, epsilon=1.0),
        dc.MollifierSampler(simplex, epsilon=1.0, reference=[0.3, 0.2, 0.5]),
        dc.MollifierSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(40)),
        dc.MollifierSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(40), reference=WITHIN),
        dc.MollifierSampler(
            INTERVAL,
            epsilon=1.0,
            discretisation=dc.Cells(40),
            reference=dc.DensityBand.around(TABLE, [(-4.0, 4.0)], factor=7.0),
        ),
        *MADE.values(),
    ]
    assert len({dc.Agreement.of(one).id for one in others}) == len(others)
    assert "reference" not in dc.Agreement.of(others[0]).document


@pytest.mark.parametrize("reference", [stats.norm(), lambda x: np.exp(-np.abs(x))])
def test_a_function_cannot_be_agreed_on(reference: Any) -> None:
    with pytest.raises(dc.DiscreetError, match="agree on a table of it"):
        dc.Agreement.of(dc.MollifierSampler(INTERVAL, epsilon=1.0, reference=reference))


DAMAGE: dict[str, tuple[str, Any, str]] = {
    "no object": ("labels", 7, "is not a JSON object"),
    "no digest": ("labels", {}, "has no field 'digest'"),
    "bad digest": ("labels", {"digest": "x"}, "hexadecimal"),
    "unknown": ("labels", {"colour": 1}, "does not know"),
    "other weights": ("labels", {"weights": [0.2, 0.5, 0.3]}, "get the file anew"),
    "no weights": ("labels", {"weights": []}, "not a list of probabilities"),
    "a text": ("labels", {"weights": [0.2, "0.3", 0.5]}, r"weights\[1\]"),
    "zero": ("labels", {"weights": [0.2, 0.0, 0.8]}, r"weights\[1\]"),
    "both": ("table", {"weights": [0.5, 0.5]}, "both listed"),
    "another table": ("table", {"table": {"axes": [[0.0, 1.0]], "values": [1.0]}}, "get the file anew"),
    "no table": ("table", {"table": [1.0]}, r"reference\.table does not have axes"),
    "half a band": ("within", {"upper": None}, r"reference\.upper"),
    "a bound": ("within", {"lower": -1.0}, r"reference\.lower"),
}


@pytest.mark.parametrize("which", DAMAGE)
def test_a_document_that_is_wrong_is_refused_by_its_field(which: str) -> None:
    name, changed, message = DAMAGE[which]
    document = json.loads(dc.Agreement.of(MADE[name]).text)
    own = document["reference"]
    document["reference"] = changed if not isinstance(changed, dict) or not changed else own | changed
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Agreement.from_json(json.dumps(document))


def test_only_a_mollifier_has_a_reference() -> None:
    document = json.loads(dc.Agreement.of(MADE["labels"]).text)
    with pytest.raises(dc.DiscreetError, match="no meaning for the mechanism optimal"):
        dc.Agreement.from_json(json.dumps(document | {"mechanism": "optimal"}))
    with pytest.raises(dc.DiscreetError, match="only mollifier has"):
        dc.Agreement.of(dc.OptimalSampler(dc.Simplex(2), epsilon=1.0)).sampler(reference=[0.5, 0.5])
    document["reference"] = dc.Agreement.of(MADE["band"]).document["reference"]
    with pytest.raises(dc.DiscreetError, match="that was agreed on"):
        dc.Agreement.from_json(json.dumps(document)).sampler(reference=[0.2, 0.3, 0.5])


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.parametrize("name", MADE)
def test_ledger_and_certificate(name: str, tmp_path: Path) -> None:
    sampler = dc.Agreement.from_json(dc.Agreement.of(MADE[name]).text).sampler()
    agreement = dc.Agreement.of(sampler)
    book = ledger.Ledger.create(tmp_path / "l", ledger.Budget(epsilon=1.5 * sampler.epsilon))
    first = book.release(sampler, client(sampler), agreement=agreement)
    assert first == ledger.Ledger(tmp_path / "l").release(sampler, client(sampler), agreement=agreement)
    assert certificate(sampler, most_inputs=8).holds
    assert not certificate(sampler, epsilon=sampler.epsilon / 2, most_inputs=8).holds


@pytest.mark.usefixtures("either_code")
def test_tables_are_released_under_it_client_by_client() -> None:
    """On outcomes: what the dense core draws with the sampler's own integers, for the key of this agreement."""
    given = rows(clients=60, number=900)
    made = functools.partial(dc.MollifierSampler, reference=UNEVEN)
    agreement = dc.Agreement.from_json(dc.Agreement.of(MADE["numbers"]).text)
    found = sample(pl.DataFrame(given), client="client", value="value", agreement=agreement, secret=SECRET)
    assert by_client(found) == expected(given, outcomes=40, epsilon=2.0, mechanism=made)
    assert by_client(found) != expected(given, outcomes=40, epsilon=2.0, mechanism=dc.MollifierSampler)


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.parametrize("name", ["table", "within"])
def test_tables_of_numbers_are_drawn_with_integers_that_keep_the_budget(name: str) -> None:
    """Lists of values, however absurd, on the cells of the reference: the integers that the engine draws with are within e^epsilon."""
    sampler = dc.Agreement.from_json(dc.Agreement.of(MADE[name]).text).sampler()
    line, rng = line_cells_of_sampler(sampler), np.random.default_rng(0)
    values: list[Any] = [
        [0.1],
        [-3.9, 3.9],
        rng.normal(0.0, 1.0, 400).clip(-4, 4),
        np.full(50, 2.0),
        np.linspace(-4, 4, 999),
    ]
    laws = [np.bincount(line.numbers(one), minlength=line.size) / len(one) for one in values]
    drawn = sampler.weights_on_atoms(laws).tolist()
    assert all(sum(row) == TOTAL for row in drawn)
    most = exp_lower(sampler.epsilon)
    assert all(a <= most * b for one in drawn for other in drawn for a, b in zip(one, other, strict=True))
    frame = pl.DataFrame({"who": np.repeat(np.arange(5), list(map(len, values))), "x": np.concatenate(values)})
    terms: dict[str, Any] = {"client": "who", "value": "x", "secret": SECRET}
    under = sample(frame, agreement=dc.Agreement.of(sampler), **terms)
    assert under.equals(sample(frame, sampler=MADE[name], **terms))
    assert under.column("agreement").unique().to_pylist() == [dc.Agreement.of(sampler).id]


def test_the_population_behind_it() -> None:
    agreement = dc.Agreement.from_json(dc.Agreement.of(MADE["within"]).text)
    sampler = agreement.sampler()
    samples = sampler.release([INTERVAL.mixture([1.0], [0.4])] * 2000)
    found = population(agreement, samples=samples)
    assert found.reference == pytest.approx(np.full(len(found.reference), 1 / len(found.reference)), rel=0.2)
    norm = stats.norm(0.4)
    truth = np.diff(norm.cdf(found.domain.edges)) / (norm.cdf(4.0) - norm.cdf(-4.0))
    assert ((found.law.all_low <= truth) & (truth <= found.law.all_high)).all()
    with pytest.raises(dc.DiscreetError, match="give a DensityBand as reference="):
        population(dc.Agreement.of(MADE["table"]), samples=[0.0])


def test_more_than_a_file_lists_stands_as_a_digest() -> None:
    size = 70_000
    sampler = dc.MollifierSampler(dc.Simplex(size), epsilon=1.0, reference=np.full(size, 1.0 / size))
    terms = ReferenceTerms.of(sampler)
    assert terms is not None
    assert terms.full_terms == terms.document
    read = dc.Agreement.from_json(dc.Agreement.of(sampler).text)
    with pytest.raises(dc.DiscreetError, match="pass reference="):
        read.sampler()
    assert read.sampler(reference=np.full(size, 1.0 / size)) == sampler


@pytest.mark.parametrize("content", [None, "x", 3])
def test_weights_of_another_kind_are_refused(content: Any) -> None:
    agreement = dc.Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=1.0))
    with pytest.raises(dc.DiscreetError, match=r"content = .* is not a bytes"):
        agreement.with_weights(content)
