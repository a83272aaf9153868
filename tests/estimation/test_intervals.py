"""Intervals of shares: that looking only where it matters finds what looking everywhere does."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from discreet.estimation._inference._intervals import (
    AT_LIMIT,
    clopper_pearson_interval_ends,
    first_outcome_with_share_beyond_limit,
    one_sided_miss_probability,
)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any),
    st.integers(0, 6),
    st.lists(st.sampled_from([0.0, 1e-6, 0.01, 0.1, 0.2, 0.5, 0.9, 1.0, 3.0]), min_size=6, max_size=6),
    st.sampled_from([0.5, 0.9, 1.0 - 1e-6]),
)
def test_the_first_interval_past_a_limit_is_found_among_all(
    small: list[int], power: int, limits: list[float], confidence: float
) -> None:
    counts = np.array(small, dtype=np.int64) * 10**power
    bounds = np.array(limits[: len(counts)])
    samples = int(counts.sum())
    low, high = clopper_pearson_interval_ends(counts, samples, confidence)
    for above, past in ((True, low > bounds * (1.0 + AT_LIMIT)), (False, high < bounds * (1.0 - AT_LIMIT))):
        expected = int(np.argmax(past)) if past.any() else None
        assert (
            first_outcome_with_share_beyond_limit(
                counts, samples, bounds, one_sided_miss_probability(confidence), above=above
            )
            == expected
        )


@pytest.mark.parametrize("above", [True, False])
def test_a_share_past_its_limit_by_chance_alone_is_not_taken_for_more(above: bool) -> None:
    counts = np.array([501, 499])
    assert (
        first_outcome_with_share_beyond_limit(
            counts, 1000, np.array([0.5, 0.5]), one_sided_miss_probability(0.95), above=above
        )
        is None
    )
    assert first_outcome_with_share_beyond_limit(
        counts * 10**6, 10**9, np.array([0.5, 0.5]), one_sided_miss_probability(0.95), above=above
    ) == (0 if above else 1)
