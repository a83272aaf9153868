"""J samples drawn jointly: private as integers, nearer to every client than J draws with a share each, and how near the best there is."""

import decimal
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.mechanisms import ComposedSampler
from discreet.mechanisms._multisets import AROUND, envelope_of_multisets
from discreet.projection import Box
from discreet.release import TOTAL
from tests.soaking import examples
from tests.strategies import laws

FAMILIES: list[Any] = [
    dc.Simplex(3),
    dc.Simplex(2),
    dc.Band([4, 3, 2, 1], lower=0.0, upper=2.0),
    dc.Near([1] * 3, factor=2.0),
]
NAMES = ("kl", "tv", "hellinger", "chi2")


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.sampled_from(FAMILIES), st.integers(2, 4), st.floats(0.05, 8.0), st.sampled_from(AROUND), st.data())
@settings(deadline=None, max_examples=examples(40))
def test_any_two_clients_keep_epsilon_as_integers(
    family: Any, samples: int, epsilon: float, around: Any, data: st.DataObject
) -> None:
    joint = dc.JointSampler(family, samples=samples, epsilon=epsilon, around=around)
    first, second = (joint.weights(data.draw(laws(family.size))).tolist() for _ in range(2))
    bound = exp_lower(epsilon)
    assert sum(first) == sum(second) == TOTAL
    assert all(a <= bound * b for a, b in zip(first, second, strict=True))
    assert joint.lattice.largest_ratio <= bound


@given(st.sampled_from(FAMILIES), st.integers(2, 4), st.floats(0.05, 8.0), st.data())
@settings(deadline=None, max_examples=examples(40))
def test_nobody_fares_worse_than_with_a_share_of_the_budget_for_each_draw(
    family: Any, samples: int, epsilon: float, data: st.DataObject
) -> None:
    """For every client and every f: the theorem of `joint`."""
    law = dc.mechanisms.nearest_member(family, data.draw(laws(family.size)))
    joint = dc.JointSampler(family, samples=samples, epsilon=epsilon, around="product")
    one = dc.OptimalSampler(family, epsilon=epsilon / samples).output(law)
    held, ours = joint.laws(law), joint.output(law)
    theirs = joint.multisets.laws(one[None, :])[0]
    for name in NAMES:
        f = dc.divergence(name)
        assert f(held, ours) <= float(f(held, theirs)) * (1 + 1e-9) + 1e-10
        assert f(held, ours) <= float(joint.risk(name)) * (1 + 1e-9) + 1e-10


@pytest.mark.parametrize(("k", "samples", "epsilon"), [(2, 3, 1.0), (3, 2, 2.0), (4, 3, 4.0)])
def test_multisets_and_sequences_are_clipped_alike(k: int, samples: int, epsilon: float) -> None:
    joint = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, around="product")
    floor = dc.OptimalSampler(dc.Simplex(k), epsilon=epsilon / samples).constants.b ** samples / k**samples
    sequences = np.array(list(itertools.product(range(k), repeat=samples)))
    box = Box(len(sequences), floor, min(1.0, math.exp(epsilon) * floor))
    place = {tuple(row): number for number, row in enumerate(joint.multisets.members.tolist())}
    where = np.array([place[tuple(sorted(row))] for row in sequences.tolist()])
    sure = joint.output(np.eye(k)[0])
    held = joint.laws(np.eye(k)[0]) > 0
    assert sure[held] == pytest.approx(
        np.bincount(where, weights=box.project((sequences == 0).all(axis=1) * 1.0))[held], abs=1e-12
    )
    for law in np.random.default_rng(k).dirichlet(np.full(k, 2.0), 20):
        clipped = box.project(law[sequences].prod(axis=1))
        assert joint.output(law) == pytest.approx(np.bincount(where, weights=clipped), abs=1e-12)
        each = [(clipped * (sequences == x).mean(axis=1)).sum() for x in range(k)]
        assert joint.output_of_each(law) == pytest.approx(each, abs=1e-12)


def test_those_who_hold_little_get_samples_that_look_like_it() -> None:
    """No divergence says where mass goes that a client does not hold; a single sample is nearer for it than with a share of the budget."""
    for k, samples, epsilon in [(4, 3, 2.0), (20, 3, 4.0), (2, 2, 1.0), (10, 2, 0.5)]:
        joint = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, around="product")
        share = dc.OptimalSampler(dc.Simplex(k), epsilon=epsilon / samples)
        assert joint.output_of_each(np.eye(k)[0])[0] >= share.output(np.eye(k)[0])[0] - 1e-12
        inside = joint.output(np.eye(k)[0])
        often = (joint.multisets.members == 0).sum(axis=1)
        per_order = inside / joint.multisets.orders
        assert all(
            per_order[often == j].min() >= per_order[often == j - 1].max() - 1e-15 for j in range(1, samples + 1)
        )


def test_the_worst_client_is_the_one_that_is_sure() -> None:
    """The stated worst case is attained by a point mass, and by no client of a fine grid exceeded."""
    for (k, samples, epsilon), around in itertools.product([(2, 2, 1.0), (3, 2, 2.0), (2, 5, 3.0)], AROUND):
        joint = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, around=around)
        grid = np.random.default_rng(0).dirichlet(np.full(k, 0.3), 400)
        for name in NAMES:
            f = dc.divergence(name)
            risk = joint.risk(name)
            assert risk.attained
            assert not risk.tight
            assert f(joint.laws(np.eye(k)[0]), joint.output(np.eye(k)[0])) == pytest.approx(risk.value, rel=1e-9)
            assert np.max(f(joint.laws(grid), joint.output(grid))) <= risk.value * (1 + 1e-12)


def test_a_multiset_that_is_never_released_costs_all_there_is() -> None:
    band = dc.Band([1.0, 1e-200], lower=0.0, upper=1.5)
    joint = dc.JointSampler(band, samples=3, epsilon=1.0, around="product")
    assert float(joint.risk("tv")) == 1.0
    assert int(joint.weights([1.0, 0.0]).sum()) == TOTAL
    around = dc.JointSampler(band, samples=3, epsilon=1.0)  # whose clients all but surely never hold it
    assert 0.0 < float(around.risk("tv")) < 1e-11
    assert not around.risk("tv").tight
    assert int(around.weights([1.0, 0.0]).sum()) == TOTAL


@pytest.mark.parametrize(
    ("k", "samples", "epsilon", "reached"), [(2, 4, 2.0, 0.263), (3, 2, 2.0, 0.388), (10, 3, 4.0, 0.870)]
)
def test_the_default_serves_the_worst_client_several_times_better(
    k: int, samples: int, epsilon: float, reached: float
) -> None:
    joint = dc.OptimalSampler(dc.Simplex(k), epsilon=epsilon).with_samples(samples)
    assert isinstance(joint, dc.JointSampler)
    product = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, around="product")
    assert float(joint.risk("kl")) == pytest.approx(reached, abs=6e-4)
    assert float(joint.risk("kl")) < 0.4 * float(product.risk("kl"))
    sure = np.eye(k)[0]
    drawn = joint.weights(sure) / TOTAL  # the law that is really drawn
    assert float(dc.divergence("kl")(joint.laws(sure), drawn)) == pytest.approx(reached, abs=6e-4)
    assert joint.around == "envelope"
    assert joint != product


@given(st.integers(2, 5), st.integers(2, 6), st.floats(0.01, 20.0))
@settings(deadline=None, max_examples=examples(60))
def test_around_the_envelope_the_worst_case_is_at_most_that_around_the_product(
    k: int, samples: int, epsilon: float
) -> None:
    one, other = (dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, around=name) for name in AROUND)
    for name in NAMES:
        assert float(one.risk(name)) <= float(other.risk(name)) * (1 + 1e-12)


@given(st.sampled_from(FAMILIES), st.integers(2, 5), st.data())
@settings(deadline=None, max_examples=examples(40))
def test_no_client_gives_a_multiset_more_than_the_envelope(family: Any, samples: int, data: st.DataObject) -> None:
    """And some client gives it as much: the one whose own law is nearest to the multiset's frequencies."""
    joint = dc.JointSampler(family, samples=samples, epsilon=1.0)
    found = envelope_of_multisets(family, joint.multisets)
    law = dc.mechanisms.nearest_member(family, data.draw(laws(family.size)))
    assert np.all(joint.laws(law) <= found.bounds.upper * found.reference * (1 + 1e-9))
    assert np.all(joint.laws(law) >= found.bounds.lower * found.reference * (1 - 1e-9))
    frequencies = np.stack([np.bincount(row, minlength=family.size) for row in joint.multisets.members]) / samples
    nearest = dc.mechanisms.nearest_member(family, frequencies)
    attained = np.diagonal(joint.multisets.laws(nearest))
    assert attained == pytest.approx(found.bounds.upper * found.reference, rel=1e-9)


@given(st.sampled_from(FAMILIES), st.integers(2, 4), st.floats(0.05, 8.0), st.data())
@settings(deadline=None, max_examples=examples(40))
def test_no_client_of_the_family_is_worse_off_than_the_risk_says(
    family: Any, samples: int, epsilon: float, data: st.DataObject
) -> None:
    joint = dc.JointSampler(family, samples=samples, epsilon=epsilon)
    law = dc.mechanisms.nearest_member(family, data.draw(laws(family.size)))
    for name in NAMES:
        assert dc.divergence(name)(joint.laws(law), joint.output(law)) <= float(joint.risk(name)) * (1 + 1e-9) + 1e-10


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
@pytest.mark.parametrize(("k", "samples"), [(5, 1), (5, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("epsilon", [1.0, 40.0, 300.0])
def test_a_small_risk_has_its_digits(k: int, samples: int, around: Any, epsilon: float) -> None:
    """t in 400 digits: 1 - t is far below the rounding of t at a large epsilon."""
    joint = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, around=around)
    with decimal.localcontext(prec=400):
        if around == "envelope":
            counts = [np.bincount(row, minlength=k).tolist() for row in joint.multisets.members]
            total = sum(Fraction(math.factorial(samples), samples**samples) * math.prod(
                Fraction(c**c, math.factorial(c)) for c in row) for row in counts)  # fmt: skip
            whole = decimal.Decimal(epsilon).exp()
            kept = whole / (whole + decimal.Decimal(total.numerator) / total.denominator - 1)
        else:
            part = (decimal.Decimal(epsilon) / samples).exp()
            kept = (part / (part + k - 1)) ** samples
        expected = {"tv": 1 - kept, "kl": -kept.ln(), "hellinger": 2 - 2 * kept.sqrt(), "chi2": 1 / kept - 1}
    for name, value in expected.items():
        assert float(joint.risk(name)) == pytest.approx(float(value), rel=1e-9)
        assert float(joint.risk(name)) > 0.0


def test_raw_draws_that_are_private_cost_nothing() -> None:
    family: Any = dc.Near([1, 2, 3], factor=1.1)
    joint = dc.JointSampler(family, samples=2, epsilon=2.0)
    assert joint.risk("kl").tight
    assert float(joint.risk("kl")) == 0.0
    law: Any = dc.mechanisms.nearest_member(family, [1.0, 0.0, 0.0])
    assert joint.output(law) == pytest.approx(joint.laws(law), abs=1e-12)


def test_a_design_that_serves_everybody_keeps_its_own_reference() -> None:
    band = dc.Band([4, 3, 2, 1], lower=0.0, upper=2.0, any_client=True)
    assert dc.JointSampler(band, samples=2, epsilon=1.0).around == "product"
    with pytest.raises(dc.DiscreetError, match="serves everybody"):
        dc.JointSampler(band, samples=2, epsilon=1.0, around="envelope")


def least_worst_tv(points: Any, epsilon: float) -> float:
    """min over all epsilon-LDP mechanisms on sequences of the largest TV over clients with these laws: a linear programme of its own."""
    n, size = points.shape
    last = size + 2 * n * size
    rows, right = [], []
    for i, law in enumerate(points):
        for x in range(size):
            q, apart = size + i * size + x, size + (n + i) * size + x
            for terms, bound in (
                ({x: 1.0, q: -1.0}, 0.0), ({x: -math.exp(epsilon), q: 1.0}, 0.0), ({q: -1.0, apart: -1.0}, -law[x]),
            ):  # fmt: skip
                row = np.zeros(last + 1)
                row[list(terms)] = list(terms.values())
                rows.append(row)
                right.append(bound)
        row = np.zeros(last + 1)
        row[size + (n + i) * size : size + (n + i + 1) * size] = 1.0
        row[last] = -1.0
        rows.append(row)
        right.append(0.0)
    sums = np.zeros((n, last + 1))
    for i in range(n):
        sums[i, size + i * size : size + (i + 1) * size] = 1.0
    found = linprog(
        np.eye(1, last + 1, last)[0],
        A_ub=np.array(rows),
        b_ub=right,
        A_eq=sums,
        b_eq=np.ones(n),
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "samples", "epsilon"), [(2, 2, 1.0), (2, 3, 2.0), (3, 2, 1.0)])
def test_against_all_mechanisms_on_sequences(k: int, samples: int, epsilon: float) -> None:
    """Clients that hold 1, ..., k outcomes alike and some others, as laws on k^J sequences.

    No mechanism, ours among them, is better than the programme's; a design on multisets is as good: nothing is lost with the order.
    """
    clients = [
        np.eye(k)[list(held)].mean(axis=0) for s in range(1, k + 1) for held in itertools.combinations(range(k), s)
    ]
    clients += [law for p in (0.7, 0.9) for law in np.eye(k) * p + (1 - np.eye(k)) * (1 - p) / (k - 1)]
    sequences = np.array(list(itertools.product(range(k), repeat=samples)))
    best = least_worst_tv(np.array([law[sequences].prod(axis=1) for law in clients]), epsilon)
    joint = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon)
    tv = dc.divergence("tv")
    held = joint.laws(clients)
    assert np.max(tv(held, joint.output(clients))) >= best - 1e-7
    found = dc.design(dc.Simplex(len(joint.multisets)), epsilon=epsilon, clients=held, divergence="tv", over="worst")
    assert found.value == pytest.approx(best, abs=1e-5)
    designed = dc.JointSampler(dc.Simplex(k), samples=samples, epsilon=epsilon, band=found.family)
    assert np.max(tv(held, designed.output(clients))) == pytest.approx(best, abs=1e-5)
    assert designed.lattice.largest_ratio <= exp_lower(epsilon)


def test_samples_come_from_the_output_law() -> None:
    family = dc.Simplex(["red", "green", "blue"])
    joint = dc.JointSampler(family, samples=2, epsilon=2.0)
    law = [0.7, 0.3, 0.0]
    with pytest.warns(dc.NotPrivateWarning):
        drawn = joint.release([law] * 40_000, rng=np.random.default_rng(3))
    assert drawn.shape == (40_000, 2)
    numbers = np.sort(family.numbers(drawn.ravel()).reshape(-1, 2), axis=1)
    place = {tuple(row): number for number, row in enumerate(joint.multisets.members.tolist())}
    seen = np.bincount([place[tuple(row)] for row in numbers.tolist()], minlength=6) / len(numbers)
    assert seen == pytest.approx(joint.output(law), abs=0.012)
    assert [np.mean(drawn[:, side] == "red") for side in (0, 1)] == pytest.approx(
        [joint.output_of_each(law)[0]] * 2, abs=0.012
    )


def test_release_with_a_size_spends_the_budget_once() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(["red", "green", "blue"]), epsilon=2.0)
    assert sampler.with_samples(3) == dc.JointSampler(sampler.family, samples=3, epsilon=2.0)
    assert set(sampler.release([0.7, 0.3, 0.0], size=3)) <= {"red", "green", "blue"}
    assert sampler.release(np.eye(3), size=4).shape == (3, 4)
    assert sampler.release([0.7, 0.3, 0.0], size=1).shape == (1,)
    assert isinstance(dc.OptimalSampler(dc.Simplex(104), epsilon=2.0).with_samples(5), ComposedSampler)


def test_mistakes_are_named_before_anything_is_drawn() -> None:
    sampler: Any = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
    for size, says in [
        (0, "size = 0 is less than 1"),
        (-2, "size = -2"),
        (1.5, "size = 1.5 is not a whole number"),
        (True, "size = True"),
    ]:
        with pytest.raises(dc.DiscreetError) as caught:
            sampler.release([1.0, 0.0, 0.0], size=size)
        assert says in str(caught.value)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"samples": 0, "epsilon": 1.0}, "samples = 0 is less than 1"),
        ({"samples": 2.5, "epsilon": 1.0}, "samples = 2.5 is not a whole number"),
        ({"samples": 3, "epsilon": 0.0}, "epsilon = 0"),
        ({"samples": 300, "epsilon": 1.0}, "samples = 300 of 3 outcomes"),
        ({"samples": 2, "privacy": dc.Gaussian(1.0)}, "a joint draw is for pure epsilon"),
        ({"samples": 2, "epsilon": 1.0, "band": dc.Simplex(6)}, "is not a Band on the 6 multisets"),
        ({"samples": 2, "epsilon": 1.0, "around": "middle"}, "around = 'middle' is not one of envelope, product"),
        (
            {"samples": 2, "epsilon": 1.0, "around": "product", "band": dc.Band([1] * 6, lower=0, upper=2)},
            "around = 'product' and band are both given",
        ),
    ]
    for arguments, says in wrong:
        with pytest.raises(dc.DiscreetError) as caught:
            dc.JointSampler(dc.Simplex(3), **arguments)
        assert says in str(caught.value)
    with pytest.raises(dc.DiscreetError, match="constant_time is for one sample"):
        sampler.release([1.0, 0.0, 0.0], size=2, constant_time=True)
    with pytest.raises(dc.DiscreetError, match="sums to 2"):
        sampler.release([1.0, 1.0, 0.0], size=2)
    line: Any = dc.GaussianMixtures()
    with pytest.raises(dc.DiscreetError, match="is continuous"):
        dc.JointSampler(line, samples=2, epsilon=1.0)


def test_what_is_for_one_sample_refuses_several_by_name(tmp_path: Path) -> None:
    joint: Any = dc.JointSampler(dc.Simplex(3), samples=2, epsilon=1.0)
    agreed = dc.Agreement.of(joint)
    with pytest.raises(dc.DiscreetError, match="2 samples of each client drawn together"):
        dc.client.Client(tmp_path / "l", agreed.sampler())
    assert not dc.accounting.profile_of(joint).attained
    profile = dc.accounting.profile_of(joint)
    first, second = joint.weights(np.eye(3)[:2]) / TOTAL
    for beta in (0.0, 0.3, 0.8):
        assert np.maximum(first - math.exp(beta) * second, 0.0).sum() <= profile.delta(beta) * (1 + 1e-12)


def test_a_ledger_charges_samples_that_are_drawn_at_once_once(tmp_path: Path) -> None:
    joint = dc.JointSampler(dc.Simplex(["red", "green", "blue"]), samples=3, epsilon=2.0)
    agreed = dc.Agreement.of(joint)
    ledger = dc.ledger.Ledger.create(tmp_path / "l", dc.ledger.Budget(epsilon=2.0))
    first = ledger.release(joint, [1.0, 0.0, 0.0], agreement=agreed)
    assert first.shape == (3,)
    again = dc.ledger.Ledger(tmp_path / "l").release(agreed.joint_sampler(), [0.0, 0.0, 1.0], agreement=agreed)
    assert again.tolist() == first.tolist() == ledger.released_sample(joint, agreement=agreed).tolist()
    assert ledger.spent().epsilon == pytest.approx(2.0)
    (entry,) = ledger.entries()
    assert sorted(joint.family.numbers(first).tolist()) == joint.multisets.members[entry.sample].tolist()
    more = dc.Agreement.of(joint, purpose="another")
    with pytest.raises(dc.BudgetError):
        ledger.release(joint, [1.0, 0.0, 0.0], agreement=more)
    with pytest.raises(dc.DiscreetError, match="belongs to agreement"):
        ledger.release(dc.OptimalSampler(joint.family, epsilon=2.0), [1, 0, 0], agreement=agreed)
    found = dc.estimation.population(agreed, samples=[first.tolist(), first.tolist()])
    assert (found.clients, found.samples) == (2, 6)


def test_numbers_of_multisets_stand_for_samples() -> None:
    joint = dc.JointSampler(dc.Simplex(3), samples=2, epsilon=2.0)
    numbers = joint.release_number(np.eye(3))
    assert np.asarray(numbers).shape == (3,)
    assert np.sort(joint.points(numbers), axis=1).tolist() == joint.multisets.members[numbers].tolist()
    assert joint.points(int(joint.release_number([1.0, 0.0, 0.0]))).shape == (2,)
    for wrong in (-1, 6, 1.5, [0, 9]):
        with pytest.raises(dc.DiscreetError, match="are not whole numbers between 0 and 5"):
            joint.points(wrong)
