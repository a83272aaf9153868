"""Whatever liars do: every way to change or to add a few of a few samples, against what is said of them."""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.estimation import Population, inversion_of, liars, population
from discreet.estimation._inference._intervals import clopper_pearson_interval_ends
from discreet.estimation._inference._inversion import invert_released_intervals
from discreet.estimation._shifts import count_liars_that_shift_half_interval
from discreet.families import Band
from tests.soaking import wide

ROUNDING = 1e-12
REFERENCE = [0.5, 0.3, 0.2]
LINE = dc.GaussianMixtures(1, box=(-4.0, 4.0))
SAMPLERS: dict[str, Any] = {
    "linear": dc.LinearSampler(dc.Simplex(3), epsilon=1.0),
    "linear, hardly anything of a client": dc.LinearSampler(dc.Simplex(3), epsilon=0.01),
    "linear on a band": dc.LinearSampler(Band(REFERENCE, lower=0.5, upper=1.5), epsilon=0.5),
    "optimal": dc.OptimalSampler(dc.Simplex(3), epsilon=1.0),
    "optimal, past whose box samples fall": dc.OptimalSampler(dc.Simplex(3), epsilon=0.1),
    "optimal on a band": dc.OptimalSampler(Band(REFERENCE, lower=0.5, upper=1.5), epsilon=0.2),
    "the identity": dc.OptimalSampler(Band(REFERENCE, lower=0.8, upper=1.2), epsilon=2.0),
    "designed": dc.OptimalSampler(Band(REFERENCE, lower=0.0, upper=5.0, any_client=True), epsilon=1.0),
    "mollifier": dc.MollifierSampler(dc.Simplex(3), epsilon=1.0),
    "on a line": dc.LinearSampler(LINE, epsilon=1.0),
}  # fmt: skip


def count_samples(samples: int) -> list[tuple[int, ...]]:
    """Every way in which so many samples can fall on three outcomes."""
    return [
        tuple(np.bincount(chosen, minlength=3).tolist()) for chosen in combinations_with_replacement(range(3), samples)
    ]


def honest(counts: tuple[int, ...], lies: int) -> Iterator[tuple[int, ...]]:
    """What honest clients can have sent if so many of these samples are lies: some added, the others in place of honest ones."""
    given = np.array(counts)
    for left in count_samples(int(given.sum()) - lies):
        if (np.array(left) <= given).all():
            for replaced in range(lies + 1):
                for sent in count_samples(replaced):
                    yield tuple((np.array(left) + sent).tolist())


def estimated(sampler: Any, counts: tuple[int, ...]) -> Population:
    if sampler.family is LINE:
        return population(sampler, counts=counts, edges=[-4.0, -1.0, 0.5, 4.0])
    return population(sampler, counts=counts)


def clopper_pearson_held(found: Population) -> tuple[Any, Any]:
    """Intervals that the reported ones lie inside, and that what is said of liars is about."""
    released = clopper_pearson_interval_ends(found.counts, found.clients, found.confidence)
    return invert_released_intervals(found.inversion, found.bounds, found.reference, released)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("lies", wide([1, 2], [1]))
def test_no_lie_moves_a_share_or_an_end_further_than_is_said_and_some_move_it_as_far(name: str, lies: int) -> None:
    sampler, samples = SAMPLERS[name], 5
    inversion = inversion_of(sampler)
    estimates = {
        counts: estimated(sampler, counts)
        for honest_samples in range(samples - lies, samples + 1)
        for counts in count_samples(honest_samples)
    }
    moved = band_moved = 0.0
    for counts in count_samples(samples):
        found = estimates[counts]
        told = liars(found, lies)
        assert told.number == lies
        assert (told.law.estimate == found.law.estimate).all()
        ends = [np.full(3, worst) for worst in (np.inf, -np.inf, np.inf, -np.inf)]
        for other in {tuple(each) for each in honest(counts, lies) if any(each)}:
            true = estimates[other]
            moved = max(moved, float(np.abs(true.law.estimate - found.law.estimate).max()))
            for end in (inversion.least, inversion.most):
                here, there = (end(each.reference, each.released_shares.estimate) for each in (found, true))
                if not found.exact:
                    here, there = np.clip(here, 0.0, 1.0), np.clip(there, 0.0, 1.0)
                band_moved = max(band_moved, float(np.abs(here - there).max()))
            for place, (end_name, furthest) in enumerate(
                (("low", np.minimum), ("high", np.maximum), ("all_low", np.minimum), ("all_high", np.maximum))
            ):
                ends[place] = furthest(ends[place], getattr(true.law, end_name))
        said = (told.law.low, told.law.high, told.law.all_low, told.law.all_high)
        for low, reached in zip(said[::2], ends[::2], strict=True):
            assert (low <= reached + ROUNDING).all()
        for high, reached in zip(said[1::2], ends[1::2], strict=True):
            assert (high >= reached - ROUNDING).all()
        others = {tuple(each) for each in honest(counts, lies) if any(each)}
        widest = [clopper_pearson_held(estimates[other]) for other in others]
        room = (
            np.array(counts) + lies <= samples
        )  # where as many can have been replaced, Clopper and Pearson's attain what is said
        np.testing.assert_allclose(told.law.high[room], np.max([high for _, high in widest], axis=0)[room], atol=1e-9)
        room = np.array(counts) >= lies
        np.testing.assert_allclose(told.law.low[room], np.min([low for low, _ in widest], axis=0)[room], atol=1e-9)
    assert told.shift * (1.0 - 1e-9) <= moved <= told.shift * (1.0 + ROUNDING)
    assert band_moved <= told.band_shift * (1.0 + ROUNDING)
    if found.exact or (name == "optimal" and lies == 1):  # with two, samples fall past the box
        assert band_moved >= told.band_shift * (1.0 - 1e-9)


def test_with_the_linear_mechanism_one_liar_shifts_a_share_by_one_over_gamma_n() -> None:
    sampler = dc.LinearSampler(dc.Simplex(4), epsilon=1.0)
    found = population(sampler, counts=[250, 250, 300, 200])
    gamma, one = sampler.constants.gamma, liars(found).shift
    assert one == pytest.approx(1.0 / (gamma * 1000))
    assert liars(found, 7).shift == pytest.approx(7.0 / (gamma * 1000))
    half = float((found.law.high - found.law.low).max()) / 2.0
    many = count_liars_that_shift_half_interval(found)
    assert (many - 1) * one < half <= many * one * (1.0 + 1e-9)


def test_nobody_lying_changes_nothing_and_everybody_lying_leaves_what_the_family_says() -> None:
    found = population(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), counts=[20, 10, 5])
    for name, ends in vars(liars(found, 0).law).items():
        assert (ends == getattr(found.law, name)).all()
    assert liars(found, 0).shift == 0.0
    law = liars(found, 35).law
    assert (law.low == 0.0).all()
    assert (law.high == 1.0).all()


def test_a_liar_among_clients_of_several_samples_lies_in_all_of_them() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 3, (9, 2))
    found = population(sampler, samples=rows, rounds=2)
    told = liars(found, 2)
    assert told.shift == pytest.approx(2.0 / (sampler.constants.gamma * 9))
    for _ in range(100):
        who = rng.choice(9, 2, replace=False)
        changed = rows.copy()
        changed[who] = rng.integers(0, 3, (2, 2))
        for other in (changed, np.delete(rows, who, axis=0)):
            true = population(sampler, samples=other, rounds=2).law
            assert np.abs(true.estimate - told.law.estimate).max() <= told.shift * (1.0 + ROUNDING)
            assert (told.law.low <= true.low + 1e-9).all()
            assert (true.high <= told.law.high + 1e-9).all()


@pytest.mark.parametrize("number", [-1, 36, 1.0, True, None])
def test_liars_are_some_of_the_clients(number: Any) -> None:
    found = population(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), counts=[20, 10, 5])
    with pytest.raises(dc.DiscreetError, match="number"):
        liars(found, number)


def test_liars_are_found_in_an_estimate() -> None:
    wrong: Any = [1, 2, 3]
    with pytest.raises(dc.DiscreetError, match="not an estimate"):
        liars(wrong)


def test_no_liar_shifts_the_share_of_one_outcome_alone() -> None:
    single = dc.LinearSampler(dc.Simplex(1), epsilon=1.0)
    estimate = population(single, samples=[0, 0, 0])
    assert count_liars_that_shift_half_interval(estimate) == 0
