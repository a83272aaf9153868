"""Tables of numbers under agreements on continuous families: the empirical law on the cells, released with the sampler's own integers."""

import itertools
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet import release
from discreet._base.numerics import exp_lower
from discreet.domain import Coding
from discreet.domain._coding import outcome_codes_expression, resolve_and_count_misfit_marks
from discreet.families import LineCells, Tabulated
from discreet.release._randomness import Question, pseudo_random_words_of_client, uniform_62_bit_integer_of_word
from discreet.tables import Request, sample, sample_file
from tests.tables.small_tables import SECRET

pytestmark = pytest.mark.usefixtures("either_code")

INTERVAL = dc.GaussianMixtures(1, box=(-4.0, 4.0))
FAMILIES: dict[str, Any] = {
    "interval": INTERVAL,
    "line": dc.LaplaceMixtures(1, scale=0.5),
    "half line": dc.DensityBand(lambda x: np.exp(-x), [(0.0, np.inf)], lower=0.0, upper=3.0),
}


def table(clients: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = clients * 5
    return pl.DataFrame({"who": rng.integers(0, clients, rows), "x": rng.normal(0.3, 0.4, rows).clip(-3.9, 3.9)})


@pytest.mark.parametrize("name", FAMILIES)
def test_the_cells_of_a_line_hold_their_values_and_their_points(name: str) -> None:
    sampler = dc.OptimalSampler(FAMILIES[name], epsilon=1.0, discretisation=dc.Cells(64))
    line = LineCells.of_sampler(sampler)
    x = np.clip(FAMILIES[name].draw(2000, np.random.default_rng(1))[:, 0], line.edges[0], line.edges[-1])
    numbers = line.numbers(x)
    cells = FAMILIES[name].cells(64)
    t = FAMILIES[name].chart.coordinates_of_points(x[:, None])[:, 0]
    assert (cells.panels.lower[numbers, 0] <= t + 1e-9).all()
    assert (t <= cells.panels.upper[numbers, 0] + 1e-9).all()
    for place in (0.0, 0.3, 1.0 - 2**-53):
        points = line.points_at_positions_in_cells(numbers, np.full(len(numbers), place))
        assert np.isfinite(points).all()
        assert (line.numbers(points) == numbers).all()
    assert len(line.names) == len(line.values) == line.size
    assert (
        line
        == LineCells.of_sampler(sampler)
        != LineCells.of_sampler(dc.OptimalSampler(FAMILIES[name], epsilon=1.0, discretisation=dc.Cells(500)))
    )
    assert repr(line).startswith(f"LineCells(<{line.size} cells of ")
    assert (line.numbers(line.values[np.isfinite(line.values)]) == np.flatnonzero(np.isfinite(line.values))).all()


def test_every_client_gets_what_its_empirical_law_and_its_key_say() -> None:
    """The outcome is that of the dense core, for the integer that client, question and data give."""
    sampler = dc.OptimalSampler(INTERVAL, epsilon=2.0, discretisation=dc.Cells(50))
    agreement, given = dc.Agreement.of(sampler), table(300)
    found = sample(given, client="who", value="x", sampler=sampler, secret=SECRET)
    assert found.column("agreement").unique().to_pylist() == [agreement.id]
    again = sample(
        given.sample(fraction=1.0, shuffle=True, seed=3), client="who", value="x", agreement=agreement, secret=SECRET
    )
    assert dict(zip(*found.select([0, 1]).to_pydict().values(), strict=True)) == dict(
        zip(*again.select([0, 1]).to_pydict().values(), strict=True)
    )
    line, key = LineCells.of_sampler(sampler), SECRET.run_key(agreement.id, 1, Question(value="x"))
    held: dict[int, Counter[int]] = {}
    for who, x in given.iter_rows():
        held.setdefault(who, Counter())[int(line.numbers([x])[0])] += 1
    expected = {}
    for who, counts in held.items():
        cells = sorted(counts)
        u = uniform_62_bit_integer_of_word(
            pseudo_random_words_of_client(key, who, cells, [counts[cell] for cell in cells])[0]
        )
        law = np.bincount(cells, [counts[cell] for cell in cells], minlength=line.size) / counts.total()
        expected[who] = int(release.outcomes(sampler.lattice, law[None], None, np.array([u]))[0])
    numbers = line.numbers(found.column("sample").to_pylist()).tolist()
    assert dict(zip(found.column(0).to_pylist(), numbers, strict=True)) == expected
    drawn = np.array(found.column("sample").to_pylist())
    assert ((drawn >= -4.0) & (drawn <= 4.0)).all()


def test_many_clients_that_hold_the_same_follow_the_law_of_the_sampler() -> None:
    sampler = dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(20))
    line, values = LineCells.of_sampler(sampler), [-1.2, -1.2, 0.4, 2.0]
    given = pl.DataFrame({"who": np.repeat(np.arange(40_000), 4), "x": values * 40_000})
    found = sample(given, client="who", value="x", sampler=sampler, secret=SECRET)
    drawn = np.bincount(line.numbers(found.column("sample").to_pylist()), minlength=line.size)
    law = np.bincount(line.numbers(values), minlength=line.size) / 4
    expected = sampler.weights_on_atoms(law) / release.TOTAL * 40_000
    assert float(((drawn - expected) ** 2 / expected).sum()) < 20 + 6.5 * np.sqrt(2 * 20)  # chi-square, 6.5 deviations


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"sampler": dc.LinearSampler(INTERVAL, epsilon=1.0)}, "for its members alone"),
        (
            {"sampler": dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Points(64, seed=1))},
            "by the cells of a line",
        ),
        ({"sampler": dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=1.0)}, "by the cells of a line"),
        ({"agreement": dc.Agreement.of(dc.OptimalSampler(INTERVAL, epsilon=1.0)), "domain": 3}, "leave it out"),
        ({"sampler": dc.OptimalSampler(INTERVAL, epsilon=1.0), "other": 3}, "nearest"),
        ({"sampler": dc.OptimalSampler(INTERVAL, epsilon=1.0), "value": "text"}, "cast the column"),
    ],
)
def test_refusals(terms: dict[str, Any], message: str) -> None:
    given = table(5).with_columns(text=pl.lit("a"))
    with pytest.raises(dc.DiscreetError, match=message):
        sample(given, **{"client": "who", "value": "x", **terms})


def test_values_outside_and_missing_are_refused_or_sent_where_they_are_to_go() -> None:
    sampler = dc.OptimalSampler(INTERVAL, epsilon=30.0, discretisation=dc.Cells(10))
    line = LineCells.of_sampler(sampler)
    for bad in (4.1, -5.0, None, float("nan")):
        given = pl.DataFrame({"who": [1, 2], "x": [0.5, bad]})
        with pytest.raises(dc.DiscreetError):
            sample(given, client="who", value="x", sampler=sampler)
    far = pl.DataFrame({"x": [-100.0, 100.0, -4.0, 4.0]})
    coding = Coding(line, "nearest")
    found, tally = resolve_and_count_misfit_marks(
        coding, far.select(outcome_codes_expression(coding, "x")).to_series().to_numpy()
    )
    assert found.tolist() == [*line.numbers([-4.0, 4.0]), *line.numbers([-4.0, 4.0])]
    assert tally.outside == 2
    sample(
        pl.DataFrame({"who": [1, 2], "x": [-100.0, 100.0]}), client="who", value="x", sampler=sampler, other="nearest"
    )


def test_a_file_is_released_under_an_agreement_in_a_file(tmp_path: Path) -> None:
    table(50).write_csv(tmp_path / "t.csv")
    dc.Agreement.of(dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(30))).write(tmp_path / "a.json")
    agreement = dc.Agreement.read(tmp_path / "a.json")
    sample_file(
        str(tmp_path / "t.csv"), str(tmp_path / "out.csv"), Request(client="who", value="x", agreement=agreement)
    )
    found = pl.read_csv(tmp_path / "out.csv")
    assert found["agreement"].unique().to_list() == [agreement.id]
    assert found["sample"].is_between(-4.0, 4.0).all()


@pytest.mark.parametrize("cells", [30, 1024])
def test_whoever_releases_lists_on_narrow_cells_is_told_how_little_they_move(cells: int) -> None:
    """What is said holds for the integers really drawn with: no list of 100 values is further from the reference."""
    sampler = dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(cells))
    line, rng = LineCells.of_sampler(sampler), np.random.default_rng(0)
    lists = [rng.normal(0.0, 0.1, 100), rng.uniform(-4.0, 4.0, 100), np.full(100, 0.5)]
    laws = [np.bincount(line.numbers(one), minlength=line.size) / 100 for one in lists]
    drawn = sampler.weights_on_atoms(laws) / release.TOTAL
    moved = 0.5 * np.abs(drawn - sampler.reference).sum(axis=1)
    given = pl.DataFrame({"who": [1] * 100, "x": lists[0]})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sample(given, client="who", value="x", sampler=sampler)
    if cells == 30:
        assert told == []
        assert moved.max() > 0.1
    else:
        (one,) = told
        assert one.category is dc.OutsideFamilyWarning
        said = re.search(r"by at most ([\d.]+) %", str(one.message))
        assert said is not None
        assert moved.max() <= float(said[1]) / 100 + 1e-3 < 0.1


def test_privacy_of_what_the_engine_draws_on_cells() -> None:
    """Lists of values, however absurd, by every mechanism that releases tables: integers within e^epsilon of each other."""
    lists: list[Any] = [[0.1], [-3.9, 3.9], np.full(50, 2.0), np.linspace(-4.0, 4.0, 999), []]
    for kind in (dc.OptimalSampler, dc.MollifierSampler):
        for cells in (9, 200):
            sampler = kind(INTERVAL, epsilon=0.7, discretisation=dc.Cells(cells))
            line = LineCells.of_sampler(sampler)
            laws = [np.bincount(line.numbers(one), minlength=line.size) / max(len(one), 1) for one in lists]
            laws[-1] = np.asarray(sampler.reference)  # whoever holds nothing draws from it
            drawn = sampler.weights_on_atoms(laws).tolist()
            assert all(sum(row) == release.TOTAL for row in drawn)
            for one, other in itertools.permutations(drawn, 2):
                assert all(a <= exp_lower(0.7) * b for a, b in zip(one, other, strict=True))


def test_a_value_where_the_reference_has_nothing_is_outside() -> None:
    """Two intervals with a gap: no cell is there, and a value is refused as past the ends, or goes to the cell before it."""
    apart = dc.DensityBand(Tabulated([0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 2.0]), lower=0.0, upper=3.0)
    sampler = dc.OptimalSampler(apart, epsilon=1.0, discretisation=dc.Cells(6))
    line = LineCells.of_sampler(sampler)
    assert line.are_in_gaps_between_cells(np.array([0.0, 0.99, 1.01, 1.5, 1.99, 2.01, 3.0])).tolist() == [
        0,
        0,
        1,
        1,
        1,
        0,
        0,
    ]
    with pytest.raises(dc.DiscreetError, match=r"records hold 1\.5, which lies in no cell"):
        line.numbers([0.5, 1.5])
    given = pl.DataFrame({"who": [1, 2], "x": [0.5, 1.5]})
    with pytest.raises(dc.DiscreetError, match="outside"):
        sample(given, client="who", value="x", sampler=sampler)
    found = sample(given, client="who", value="x", sampler=sampler, other="nearest")
    assert not line.are_in_gaps_between_cells(np.array(found.column("sample").to_pylist())).any()
    assert (
        not LineCells.of_sampler(dc.OptimalSampler(INTERVAL, epsilon=1.0))
        .are_in_gaps_between_cells(np.linspace(-4.0, 4.0, 999))
        .any()
    )
