"""numpy and compiled code are one function: the same slope, law, integers and outcomes, bit for bit; and they are right."""

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import Band, DiscreetError, OptimalSampler, Simplex
from discreet._base.kernels import Code, force_implementation
from discreet.projection import Box, _box as in_numpy, _compiled as compiled
from discreet.projection._box import NEGLIGIBLE
from discreet.release import TOTAL, outcomes, weights
from tests.exact import exact_slope
from tests.projection.boxes import problems
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")  # what is true is true at every epsilon
Floats = NDArray[np.float64]
TOLERANCE = Fraction(1, 10**13)


def affine(module: ModuleType, box: Box, laws: Floats) -> tuple[Floats, Floats, Floats]:
    slope, lift, law = np.ones(len(laws)), np.zeros(len(laws)), np.empty_like(laws)
    assert module.solve_and_fill_affine_laws(laws, box.lower, box.upper, box.ceiling, True, slope, lift, law) == -1
    return slope, lift, law


def assert_same(box: Box, laws: Floats) -> Floats:
    """The law that both return."""
    one, other = affine(compiled, box, laws), affine(in_numpy, box, laws)
    for first, second in zip(one, other, strict=True):
        assert first.tobytes() == second.tobytes()
    slope, _, law = one  # of several slopes that serve, one that gives the law
    with np.errstate(invalid="ignore", over="ignore"):
        again = np.clip(laws * slope[:, None], box.lower, box.upper)
    assert np.abs(again - law)[laws > NEGLIGIBLE].max() <= 1e-14
    return law


def projected(box: Box, p: Floats) -> list[Fraction]:
    """The projection in rational arithmetic, with masses that count as none left out."""
    masses = [Fraction(float(x)) if x > NEGLIGIBLE else Fraction(0) for x in p]
    lower = [Fraction(float(x)) for x in np.broadcast_to(box.lower, p.shape)]
    upper = [Fraction(float(x)) for x in np.broadcast_to(box.upper, p.shape)]
    slope = exact_slope(masses, lower, upper)
    if slope is not None:
        return [min(max(slope * x, low), high) for x, low, high in zip(masses, lower, upper, strict=True)]
    off = sum(low for x, low in zip(masses, lower, strict=True) if not x)
    left = 1 - sum(high for x, high in zip(masses, upper, strict=True) if x)
    lift = left / off if off else Fraction(1)
    return [high if x else min(lift * low, high) for x, low, high in zip(masses, lower, upper, strict=True)]


def total(law: Floats) -> Fraction:
    return sum((Fraction(float(q)) for q in law), Fraction(0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(wide(10, 1)))
def test_they_agree_and_the_law_is_the_projection(seed: int) -> None:
    """10,000 boxes together in a soak, masses down to 1e-300, against each other and against rational arithmetic."""
    for sampler, p in problems(seed, number=1000, largest=12):
        box = sampler.box
        law = assert_same(box, p[None])[0]
        assert (law >= box.lower).all()
        assert (law <= box.upper).all()
        assert abs(total(law) - 1) <= TOLERANCE
        assert (
            max(abs(Fraction(q) - exact) for q, exact in zip(law.tolist(), projected(box, p), strict=True)) <= TOLERANCE
        )


@pytest.mark.slow
@pytest.mark.parametrize(("largest", "number"), [(80, 300), (1500, 60), (9000, 12)])
def test_they_agree_on_long_laws(largest: int, number: int) -> None:
    """Past a lane, a block, and the length from which what is settled is sorted out."""
    for sampler, p in problems(largest, number, largest):
        law = assert_same(sampler.box, p[None])[0]
        assert abs(total(law) - 1) <= TOLERANCE


def test_they_agree_on_many_clients_at_once() -> None:
    """Clients of unlike lengths are padded to one matrix in numpy, and that changes nothing."""
    rng = np.random.default_rng(0)
    for family in (
        Simplex(5000),
        Band(np.ones(300), lower=0.2, upper=1.7),
        Band(rng.random(300) + 0.1, lower=0, upper=3),
    ):
        laws = np.zeros((60, family.size))
        for law in laws:
            held = rng.integers(1, family.size + 1) if rng.random() < 0.5 else rng.integers(1, 20)
            law[rng.choice(family.size, held, replace=False)] = rng.exponential(size=held)
        laws /= laws.sum(axis=1, keepdims=True)
        for epsilon in (0.1, 1.0, 6.0):
            assert_same(OptimalSampler(family, epsilon=epsilon).box, laws)


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
def test_the_corner_that_was_no_law() -> None:
    sampler = OptimalSampler(Band([1.0, 1e-15, 1e-15, 1e-15], lower=0, upper=2), epsilon=1.0)
    for code in Code:
        with force_implementation(code):
            assert sampler.output([0.5, 0.5, 0.0, 0.0]).sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(wide(4, 1)))
def test_the_integers_and_what_is_drawn_from_them_are_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for sampler, p in problems(seed + 100, number=150, largest=40):
        try:
            lattice = sampler.lattice
        except DiscreetError:  # too thin for integers
            continue
        laws = np.tile(p, (20, 1))
        uniform = rng.integers(lattice.shared_total if lattice.shared_total < TOTAL else 0, TOTAL, 20)
        found = []
        for code in Code:
            with force_implementation(code):
                found.append(
                    (weights(lattice, laws[:1], None).tolist(), outcomes(lattice, laws, None, uniform).tolist())
                )
        assert found[0] == found[1]
        assert sum(found[0][0][0]) == TOTAL


@pytest.mark.parametrize("bad", [[0.5, 0.6], [np.nan, 1.0], [-0.5, 1.5], [np.inf, 0.0], [0.0, 0.0]])
def test_they_refuse_alike(bad: list[float]) -> None:
    told = []
    for code in Code:
        with force_implementation(code), pytest.raises(DiscreetError) as refused:
            OptimalSampler(Simplex(2), epsilon=1.0).output([[0.5, 0.5], bad])
        told.append(str(refused.value))
    assert told[0] == told[1]
