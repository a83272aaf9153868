"""Domains of every kind, and hostile numbers for an interval."""

import math
from typing import Any

from hypothesis import strategies as st

import discreet as dc

LABELS = st.lists(
    st.one_of(
        st.text(max_size=4),
        st.integers(-(2**53), 2**53),  # and no others, which no two readers of an agreement need read alike
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    min_size=1,
    max_size=12,
    unique=True,
)
ENDS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.0, math.nextafter(1.0, 2.0), 1e16, -1e308, 1e308]),
)


@st.composite
def intervals(draw: st.DrawFn, most: int = 2**40) -> dc.Interval:
    """Intervals that are accepted: bounds of every size and distance, as few or as many cells as floats tell apart."""
    low, high = sorted((draw(ENDS), draw(ENDS)))
    if low == high:
        high = math.nextafter(high, math.inf)
    width = high - low
    room = min(width / math.ulp(max(abs(low), abs(high))) / 4.0, float(most)) if 1e-307 < width < math.inf else 0.0
    room = min(room, draw(st.sampled_from([float(most), 2e3])))
    if room < 1.0:
        low, high, room = 0.0, 1.0, float(most)
    return dc.Interval(low, high, cells=draw(st.one_of(st.integers(1, int(room)), st.just(int(room)))))


def domains() -> st.SearchStrategy[Any]:
    """Domains of every kind."""
    return st.one_of(LABELS.map(dc.Labels), st.integers(1, 2**40).map(dc.Numbers), intervals())


@st.composite
def hostile(draw: st.DrawFn, interval: dc.Interval) -> float:
    """A number near an edge, at an end, or anywhere; not NaN."""
    cell = draw(st.integers(0, interval.cells))
    edge = interval.low + cell / interval.cells * (interval.high - interval.low)
    near = draw(st.sampled_from([edge, interval.low, interval.high, 0.0, -0.0, 5e-324, -5e-324, math.inf, -math.inf]))
    step = draw(st.sampled_from([0, 0, 1, -1, 2, -2]))
    for _ in range(abs(step)):
        near = math.nextafter(near, math.copysign(math.inf, step))
    return draw(st.one_of(st.just(near), st.floats(allow_nan=False), st.floats(interval.low, interval.high)))
