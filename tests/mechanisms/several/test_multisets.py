"""Multisets stand for all sequences: none is lost, and laws on them are laws on sequences added up."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

import discreet as dc
from discreet.mechanisms import Multisets


@pytest.mark.parametrize(("size", "samples"), [(1, 4), (2, 5), (3, 3), (4, 2), (6, 1)])
def test_laws_are_those_of_sequences(size: int, samples: int) -> None:
    multisets = Multisets(size, samples)
    law = np.random.default_rng(size).dirichlet(np.ones(size))
    law[0] = 0.0 if size > 1 else 1.0
    law /= law.sum()
    sequences: dict[tuple[int, ...], float] = defaultdict(float)
    for places in itertools.product(range(size), repeat=samples):
        sequences[tuple(sorted(places))] += math.prod(law[list(places)])
    found = multisets.laws(law[None, :])[0]
    assert [tuple(row) for row in multisets.members.tolist()] == sorted(sequences)
    assert found == pytest.approx([sequences[tuple(row)] for row in multisets.members.tolist()], abs=1e-15)
    assert multisets.orders.sum() == pytest.approx(size**samples)
    assert multisets.marginals(found[None, :])[0] == pytest.approx(law, abs=1e-14)


def test_every_order_of_a_multiset_is_as_likely() -> None:
    multisets = Multisets(3, 3)
    place = multisets.members.tolist().index([0, 1, 2])
    drawn = multisets.members_in_random_order(np.full(60_000, place), np.random.default_rng(1))
    seen = Counter(map(tuple, drawn.tolist()))
    assert len(seen) == 6
    assert max(abs(count - 10_000) for count in seen.values()) < 450  # five standard deviations


def test_too_many_are_refused_before_they_are_listed() -> None:
    for size, samples in [(10**9, 2), (104, 5), (2, 65), (3, 10**15)]:
        with pytest.raises(dc.DiscreetError, match=f"samples = {samples} of {size:,} outcomes are"):
            Multisets(size, samples)
    assert len(Multisets(2, 64)) == 65
