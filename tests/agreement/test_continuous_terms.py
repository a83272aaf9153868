"""Agreements on continuous families: the same promises as on outcomes, from the document to the ledger and the certificate."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dc
from discreet import ledger
from discreet.audit import certificate
from discreet.audit.verify import main as verify
from discreet.estimation import outlook, population
from discreet.families import Tabulated
from discreet.tables import sample

GOLDEN = Path(__file__).parent / "agreements"
TABLE = Tabulated(np.linspace(-3.0, 3.0, 61), np.exp(-0.5 * np.linspace(-2.95, 2.95, 60) ** 2))
INTERVAL = dc.GaussianMixtures(1, radius=1.0, scale=1.0, box=(-4.0, 4.0))

MADE: dict[str, dc.Sampler[Any]] = {
    "interval": dc.OptimalSampler(INTERVAL, epsilon=1.0),
    "plane": dc.LinearSampler(dc.GaussianMixtures(2, radius=0.5), epsilon=2.0, discretisation=dc.Cells(300)),
    "laplace": dc.MollifierSampler(dc.LaplaceMixtures(1, scale=2.0), epsilon=1 / 3),
    "points": dc.OptimalSampler(dc.LaplaceMixtures(6), epsilon=1.0, discretisation=dc.Points(500, seed=7)),
    "table": dc.OptimalSampler(dc.DensityBand(TABLE, lower=0.0, upper=1.0), epsilon=1.0, discretisation=dc.Cells(100)),
    "everybody": dc.OptimalSampler(
        dc.DensityBand(TABLE, lower=0.0, upper=1.0, any_client=True), epsilon=1.0, discretisation=dc.Cells(100)
    ),
    "half line": dc.OptimalSampler(
        dc.DensityBand(TABLE, [(0.0, math.inf)], lower=0.1, upper=2.0),
        epsilon=1.0,
        discretisation=dc.Points(64, seed=0),
    ),
}


def client(sampler: dc.Sampler[Any]) -> Any:
    family = sampler.family
    if isinstance(family, dc.DensityBand):
        return family.law(log_density=lambda x: family.log_reference(np.reshape(x, (-1, 1))))
    return family.mixture([1.0], np.zeros((1, family.dim)))


@pytest.mark.parametrize("name", MADE)
def test_an_agreement_gives_its_sampler_back(name: str, tmp_path: Path) -> None:
    sampler = MADE[name]
    made = dc.Agreement.of(sampler, rounds=3, purpose="tests")
    assert hashlib.sha256(made.canonical.encode()).hexdigest() == made.id
    for read in (
        dc.Agreement.from_json(made.text),
        dc.Agreement.from_json(json.dumps(json.loads(made.text), indent=2)),
    ):
        assert (read, read.id) == (made, made.id)
        assert read.sampler() == sampler
        assert np.array_equal(read.sampler().weights(client(sampler)), sampler.weights(client(sampler)))
        read.check_sampler(sampler)
    made.write(tmp_path / "a.json")
    made.write(tmp_path / "a.json")  # which holds it already
    assert dc.Agreement.read(tmp_path / "a.json").sampler() == sampler
    assert "NaN" not in made.text
    assert "Infinity" not in made.text


def test_everything_that_matters_is_in_the_id() -> None:
    others = [
        dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(1000)),
        dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Points(1024, seed=1)),
        dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Points(1024, seed=2)),
        dc.OptimalSampler(dc.GaussianMixtures(1, box=(-4.0, 5.0)), epsilon=1.0),
        dc.OptimalSampler(dc.GaussianMixtures(1), epsilon=1.0),
        dc.OptimalSampler(dc.GaussianMixtures(1, radius=2.0, box=(-4.0, 4.0)), epsilon=1.0),
        dc.OptimalSampler(dc.GaussianMixtures(1, scale=2.0, box=(-4.0, 4.0)), epsilon=1.0),
        dc.OptimalSampler(dc.LaplaceMixtures(1), epsilon=1.0),
        *MADE.values(),
    ]
    assert len({dc.Agreement.of(one).id for one in others}) == len(others)
    assert dc.Agreement.of(dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells())) == dc.Agreement.of(
        MADE["interval"]
    )


@pytest.mark.parametrize(
    ("version", "known"),
    [
        (1, "7abed3f45c41baeecbbbbee9fe8fc39c671d4a79d70706395d5dc048f14b7cbc"),
        (2, "02aba0410811cfd1d777bedd133e986d5d71d754a14816581c9c7aedf9045702"),
    ],
)
def test_an_agreement_made_before_reads_the_same_for_ever(version: int, known: str) -> None:
    """The files are records of what was once agreed: never regenerate them."""
    path = GOLDEN / str(version) / "mixtures.json"
    read, made = dc.Agreement.read(path), dc.Agreement.of(MADE["interval"], version=version)
    assert read == made
    assert read.id == made.id == known
    assert path.read_text(encoding="utf-8") == made.canonical + "\n"
    assert read.sampler() == MADE["interval"]


def test_mixtures_on_a_box_keep_the_normaliser_that_was_agreed_on() -> None:
    """The file was made when a search over centres found the normaliser, which it missed here: never regenerate it."""
    path = GOLDEN / "2" / "mixtures-searched.json"
    earlier = dc.Agreement.read(path)
    assert earlier.id == "94e5e211738ff040a461888880980ff96e7ba8b7a2020df52d5e5ec2d7d90329"
    searched = earlier.sampler()
    assert searched.family.bounds.upper == pytest.approx(1177.1397669743753, rel=1e-9)
    assert path.read_text(encoding="utf-8") == dc.Agreement.of(searched).canonical + "\n"

    now = dc.OptimalSampler(
        dc.GaussianMixtures(3, radius=4.0, box=(-0.9, 1.1)), epsilon=1.0, discretisation=dc.Cells(16)
    )
    made = dc.Agreement.of(now)
    assert made.document["family"] == {**earlier.document["family"], "normaliser": "proved"}
    again = dc.Agreement.from_json(made.text)
    assert (again.id, again.sampler()) == (made.id, now)
    assert now.family.bounds.upper > 1.001 * searched.family.bounds.upper
    for agreement, other in ((earlier, now), (made, searched)):
        with pytest.raises(dc.DiscreetError, match="belongs to agreement"):
            agreement.check_sampler(other)
        with pytest.raises(dc.DiscreetError, match=r"family\.normaliser = .* agreed on: leave the family out"):
            agreement.sampler(other.family)
    earlier.check_sampler(earlier.sampler(earlier.family.family()))


def test_cells_keep_the_masses_that_were_agreed_on() -> None:
    """The file was made when one rule on each cell gave its mass, here .1 % off: never regenerate it."""
    path = GOLDEN / "2" / "mixtures-coarse-cells.json"
    earlier = dc.Agreement.read(path)
    assert earlier.id == "5fb1b2e4ce961ff66e8455a8f203b490a14d4865e4a36cd67304ebcd21228cbb"
    assert path.read_text(encoding="utf-8") == dc.Agreement.of(earlier.sampler()).canonical + "\n"
    masses = [0.18217818, 0.18217818, 0.08084567, 0.08084567, 0.23697614, 0.23697614]
    assert earlier.sampler().carrier.reference == pytest.approx(masses, abs=1e-8)

    now = dc.OptimalSampler(dc.GaussianMixtures(2, radius=2.0), epsilon=1.0, discretisation=dc.Cells(4))
    made = dc.Agreement.of(now)
    assert made.document["family"]["atoms"] == {**earlier.document["family"]["atoms"], "masses": "refined"}
    again = dc.Agreement.from_json(made.text)
    assert (again.id, again.sampler(), hash(again.sampler())) == (made.id, now, hash(now))
    for agreement, other in ((earlier, now), (made, earlier.sampler())):
        assert agreement.sampler() != other
        with pytest.raises(dc.DiscreetError, match="belongs to agreement"):
            agreement.check_sampler(other)
    wrong = made.document
    wrong["family"] = {**wrong["family"], "atoms": {**wrong["family"]["atoms"], "masses": "one rule"}}
    with pytest.raises(dc.DiscreetError, match=r"family\.atoms\.masses = 'one rule' is not 'refined'"):
        dc.Agreement.from_json(json.dumps(wrong))


def test_an_agreement_in_very_many_dimensions_is_read_again() -> None:
    """A limit for what devices are offered was one for all readers, and `Agreement.of` made agreements that nobody could read."""
    sampler = dc.OptimalSampler(
        dc.LaplaceMixtures(100_001, radius=1e-3), epsilon=1.0, discretisation=dc.Points(2, seed=1)
    )
    made = dc.Agreement.of(sampler)
    assert dc.Agreement.from_json(made.text) == made


def test_points_far_to_the_right_are_those_that_were_agreed_on() -> None:
    """The file was made before points beyond 32 scales were drawn from the left: never regenerate it."""
    earlier = dc.Agreement.read(GOLDEN / "2" / "laplace-far-right.json")
    assert earlier.id == "2054be1b8a59f77f1b771974a50535ae89c23e0d4952599a9c9a0f8c05acf8fb"
    assert dc.Agreement.of(earlier.sampler()).id == earlier.id


def test_a_box_that_is_even_but_for_rounding_keeps_its_id() -> None:
    """Branch and bound alone stops 1e-6 below the least mass of such a box, and the search would count as wrong."""
    family = dc.GaussianMixtures(3, radius=0.43, box=(-0.3, 0.1 + 0.2))
    agreed = dc.Agreement.of(dc.OptimalSampler(family, epsilon=1.0))
    assert (family.normaliser, agreed.id[:12]) == (None, "91445755688b")


@pytest.mark.parametrize(
    ("name", "normaliser", "message"),
    [
        ("interval", "proved", r"family\.normaliser = 'proved': it is 'proved', and only on a box"),
        ("plane", "proved", r"family\.normaliser = 'proved': it is 'proved', and only on a box"),
        ("laplace", "proved", "normaliser"),
    ],
)
def test_a_normaliser_stands_only_where_there_are_two(name: str, normaliser: str, message: str) -> None:
    document = dc.Agreement.of(MADE[name]).document
    document["family"] = {**document["family"], "normaliser": normaliser}
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Agreement.from_json(json.dumps(document))


def test_whom_a_band_serves_is_a_term_where_it_is_everybody_alone() -> None:
    """So no agreement that was made before has another id, and none that says it is read as one that does not."""
    some, all_there_are = dc.Agreement.of(MADE["table"]), dc.Agreement.of(MADE["everybody"])
    assert "everybody" not in some.text
    assert all_there_are.document["family"] == {**some.document["family"], "everybody": True}
    assert all_there_are.sampler().family.any_client
    assert not some.sampler().family.any_client
    with pytest.raises(dc.DiscreetError, match=r"everybody"):
        all_there_are.sampler(MADE["table"].family)


def test_a_table_too_large_to_be_listed_stands_as_its_digest() -> None:
    made = dc.Agreement.of(MADE["table"])
    held = dc.Agreement.from_json(made.canonical)
    assert held == made
    with pytest.raises(dc.DiscreetError, match="pass the family it was made with"):
        held.sampler()
    assert held.sampler(MADE["table"].family) == MADE["table"]
    other = dc.DensityBand(Tabulated(TABLE.axes, TABLE.values[::-1] + 0.01), lower=0.0, upper=1.0)
    with pytest.raises(dc.DiscreetError, match=r"family\.\w+ = .* is not the .* that was agreed on"):
        held.sampler(other)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (dc.OptimalSampler(dc.DensityBand(stats.norm(), lower=0.5, upper=2.0), epsilon=1.0), "Tabulated"),
        (
            dc.OptimalSampler(dc.DensityBand(lambda x: np.exp(-x), (0, 1), lower=0.5, upper=2.0), epsilon=1.0),
            "Tabulated",
        ),
        (dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Points(64)), "only the client knows its points"),
        (dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Density()), "releases nothing"),
    ],
)
def test_what_cannot_be_agreed_on_is_refused_with_the_fix(sampler: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Agreement.of(sampler)


DAMAGE: dict[str, tuple[str, dict[str, Any], str]] = {
    "kind": ("interval", {"kind": "cauchy mixtures"}, "is not one of"),
    "dim": ("interval", {"dim": 0}, r"family\.dim = 0"),
    "radius": ("interval", {"radius": -1.0}, r"family\.radius = -1"),
    "radius missing": ("interval", {"radius": None}, r"family\.radius"),
    "scale as text": ("interval", {"scale": "1"}, r"family\.scale"),
    "box": ("interval", {"box": [[-4.0, 4.0], [0.0, 1.0]]}, r"family\.box"),
    "box of texts": ("interval", {"box": [["a", 4.0]]}, r"family\.box"),
    "a density": ("interval", {"density": "sha256:" + "0" * 64}, "has no meaning"),
    "atoms": ("interval", {"atoms": "cells"}, "cells or points"),
    "atoms by": ("interval", {"atoms": {"by": "hand"}}, "cells or points"),
    "atoms without a digest": ("interval", {"atoms": {"by": "cells", "count": 10}}, "has the fields"),
    "atoms with a bad digest": ("interval", {"atoms": {"by": "cells", "count": 10, "digest": "x"}}, "hexadecimal"),
    "cells with a seed": (
        "interval",
        {"atoms": {"by": "cells", "count": 9, "digest": "x", "seed": 1}},
        "has the fields",
    ),
    "unknown": ("interval", {"colour": 1}, "does not know"),
    "mixtures for everybody": ("interval", {"everybody": True}, r"family\.everybody has no meaning"),
    "everybody as a number": (
        "everybody",
        {"everybody": 1},
        r"family\.everybody = 1 with family\.lower = 0; give true",
    ),
    "everybody denied": (
        "everybody",
        {"everybody": False},
        r"family\.everybody = False with family\.lower = 0; give true",
    ),
    "everybody from below": (
        "everybody",
        {"lower": 0.1},
        r"family\.everybody = True with family\.lower = 0\.\S+; give true with family\.lower = 0",
    ),
    "radius of a band": ("table", {"radius": 1.0}, "has no meaning"),
    "no density": ("table", {"density": 7}, "hexadecimal"),
    "another table": ("table", {"table": {"axes": [[0.0, 1.0]], "values": [1.0]}}, "get the file anew"),
    "no table": ("table", {"table": [1.0]}, "axes and values"),
    "a table of texts": (
        "table",
        {"table": {"axes": [["a"]], "values": [1.0]}},
        r"family\.table\.axes\[0\] is not a list of numbers",
    ),
}


@pytest.mark.parametrize("which", DAMAGE)
def test_a_document_that_is_wrong_is_refused_by_its_field(which: str) -> None:
    name, changed, message = DAMAGE[which]
    document = json.loads(dc.Agreement.of(MADE[name]).text)
    document["family"] |= changed
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Agreement.from_json(json.dumps(document))


def test_other_atoms_than_those_agreed_on_are_refused() -> None:
    """As another machine would find them: a number would mean another cell."""
    document = json.loads(dc.Agreement.of(MADE["interval"]).text)
    document["family"]["atoms"]["digest"] = "sha256:" + "0" * 64
    with pytest.raises(dc.DiscreetError, match=r"family\.atoms = .* numbers would mean other cells or points"):
        dc.Agreement.from_json(json.dumps(document)).sampler()


def test_tables_are_refused_under_such_an_agreement() -> None:
    with pytest.raises(dc.DiscreetError, match="no list of outcomes"):
        _ = dc.Agreement.of(MADE["interval"]).domain


@pytest.mark.parametrize("name", MADE)
def test_a_ledger_charges_and_gives_the_same_sample_again(name: str, tmp_path: Path) -> None:
    sampler = MADE[name]
    agreement = dc.Agreement.of(sampler, rounds=2)
    book = ledger.Ledger.create(tmp_path / "l", ledger.Budget(epsilon=1.5 * sampler.epsilon))
    p = client(sampler)
    first = book.release(sampler, p, agreement=agreement)
    assert np.array_equal(first, ledger.Ledger(tmp_path / "l").release(sampler, p, agreement=agreement))
    assert np.shape(first) == (() if sampler.family.dim == 1 else (sampler.family.dim,))
    assert len(book.entries()) == 1
    with pytest.raises(dc.BudgetError, match="nothing was charged"):
        book.release(sampler, p, agreement=agreement, round=2)
    with pytest.raises(dc.DiscreetError, match="holds 2 distributions"):
        book.release(sampler, [p, p], agreement=agreement)
    if isinstance(sampler.discretisation, dc.Cells):
        number = book.entries()[0].sample
        cells = sampler.family.cells(sampler.discretisation.count)
        assert cells.cell_numbers_of_points(np.reshape(first, (1, -1))).tolist() == [number]


def test_two_clients_in_one_cell_are_at_two_places(tmp_path: Path) -> None:
    sampler = dc.OptimalSampler(INTERVAL, epsilon=0.01, discretisation=dc.Cells(2))
    agreement, points = dc.Agreement.of(sampler), set()
    for who in range(4):
        book = ledger.Ledger.create(tmp_path / str(who), ledger.Budget(epsilon=1.0))
        points.add(book.release(sampler, client(sampler), agreement=agreement))
    assert len(points) == 4


@pytest.mark.parametrize("name", ["interval", "plane", "points", "table"])
def test_certificates_of_agreed_samplers_verify(name: str, tmp_path: Path) -> None:
    found = certificate(dc.Agreement.from_json(dc.Agreement.of(MADE[name]).text).sampler(), most_inputs=8)
    assert found.holds
    found.write(tmp_path / "c.json")
    assert verify([str(tmp_path / "c.json")]) == 0
    refuted = certificate(MADE[name], epsilon=MADE[name].epsilon / 2, most_inputs=8)
    assert not refuted.holds


@pytest.mark.filterwarnings("ignore::discreet.errors.NotPrivateWarning")
def test_a_population_is_estimated_under_the_agreement() -> None:
    sampler = dc.LinearSampler(INTERVAL, epsilon=4.0)
    samples = sampler.release([INTERVAL.mixture([1.0], [0.5])] * 400, rng=np.random.default_rng(1))
    found = population(dc.Agreement.of(sampler), samples=samples, edges=[-4.0, 0.0, 4.0])
    assert found.law.low[1] <= stats.norm.cdf(0.5) <= found.law.high[1]


LINE, PLANE, MANY = INTERVAL, dc.GaussianMixtures(2), dc.LaplaceMixtures(5)
RELEASED: dict[str, tuple[Any, Any]] = {
    "cells of a line": (LINE, dc.Cells(20)),
    "points of a line, with a seed": (LINE, dc.Points(64, seed=1)),
    "cells in 2 or 3 dimensions": (PLANE, dc.Cells(20)),
    "points in 2 dimensions or more, with a seed": (MANY, dc.Points(64, seed=1)),
    "points without a seed": (LINE, dc.Points(64)),
}


def possible(action: Callable[..., Any], *given: Any, **terms: Any) -> bool:
    """Whether it is done; what is not is refused in one sentence that says what to do instead."""
    try:
        action(*given, **terms)
    except dc.DiscreetError as error:
        said = str(error)
    else:
        return True
    assert ";" in said, "what is possible instead"
    assert "\n" not in said
    return False


def test_the_page_says_what_can_be_done_with_which() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "continuous.md").read_text(encoding="utf-8")
    block = page.split("| released by |")[1].split("\n\n")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    assert {line[0] for line in lines} == set(RELEASED)
    kinds: dict[str, list[Any]] = {
        "optimal, mollifier": [dc.OptimalSampler, dc.MollifierSampler],
        "linear": [dc.LinearSampler],
        "any": [dc.OptimalSampler, dc.MollifierSampler, dc.LinearSampler],
    }
    table = pl.DataFrame({"who": [1, 1, 2], "x": [0.1, -0.3, 2.0]})
    for released_by, mechanism, agreed, tables, estimates in lines:
        for kind in kinds[mechanism]:
            family, how = RELEASED[released_by]
            sampler = kind(family, epsilon=1.0, discretisation=how)
            point = np.zeros((1, family.dim))
            samples = sampler.release([family.mixture([1.0], point)] * 3)
            can_agree = possible(dc.Agreement.of, sampler)
            assert can_agree == agreed.startswith("yes")
            assert possible(sample, table, client="who", value="x", sampler=sampler) == tables.startswith("yes")
            known = dc.Agreement.of(sampler) if can_agree else sampler
            assert possible(population, known, samples=samples) == estimates.startswith("yes")
            assert possible(outlook, sampler, mechanism=sampler.name, clients=10) == estimates.startswith("yes")
            assert can_agree != estimates.endswith("without an agreement")
