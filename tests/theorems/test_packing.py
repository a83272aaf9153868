"""Lemma C.9: of t laws within e^eps of each other and t sets that cover no point more than u times, some law gives its own set little.

    min Q_i(A_i)  <=  (u/t) e^eps / ((u/t) e^eps + 1 - u/t)

It is what makes the minimax value a lower bound for every mechanism; the optimal sampler attains it with equality but for its integers.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from discreet import Band, OptimalSampler, Simplex
from discreet._base.numerics import exp_upper
from discreet.release import TOTAL


def bound(t: int, u: int, ratio: Fraction) -> Fraction:
    return Fraction(u, t) * ratio / (Fraction(u, t) * ratio + 1 - Fraction(u, t))


@pytest.mark.slow
@given(st.data())
def test_no_laws_within_a_ratio_give_every_set_of_a_packing_more(data: st.DataObject) -> None:
    """Any laws whatever, in exact arithmetic; the ratio is the one they really have."""
    t, k = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 6))
    rows = [data.draw(st.lists(st.integers(1, 50), min_size=k, max_size=k)) for _ in range(t)]
    laws = [[Fraction(w, sum(row)) for w in row] for row in rows]
    sets = [data.draw(st.sets(st.integers(0, k - 1))) for _ in range(t)]
    u = max(sum(x in chosen for chosen in sets) for x in range(k))
    assume(0 < u < t)
    ratio = max(first[x] / second[x] for first in laws for second in laws for x in range(k))
    assert min(sum(law[x] for x in chosen) for law, chosen in zip(laws, sets, strict=True)) <= bound(t, u, ratio)


@pytest.mark.parametrize(("k", "u"), [(2, 1), (5, 1), (6, 2), (6, 3), (7, 5)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_optimal_sampler_attains_it(k: int, u: int, epsilon: float) -> None:
    """Clients uniform on u of k outcomes, one for each place to start; each outcome is in u of the k sets."""
    family = Simplex(k) if u == 1 else Band(np.ones(k), lower=0.0, upper=k / u)
    sampler = OptimalSampler(family, epsilon=epsilon)
    sets = [[(start + step) % k for step in range(u)] for start in range(k)]
    clients = np.array([[float(x in chosen) / u for x in range(k)] for chosen in sets])
    weights = sampler.weights(clients).tolist()
    given_own = min(Fraction(sum(row[x] for x in chosen), TOTAL) for row, chosen in zip(weights, sets, strict=True))
    limit = bound(k, u, exp_upper(epsilon))
    assert limit - Fraction(1, 10**12) < given_own <= limit
