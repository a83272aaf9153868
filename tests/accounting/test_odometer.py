"""The odometer is right at every moment: exact walks of the loss, also where the next box depends on the walk so far."""

from collections import defaultdict
from collections.abc import Callable

import pytest

from discreet.accounting import BoxProfile, Odometer, compose
from discreet.errors import DiscreetError

CALM = BoxProfile(epsilon=0.5, alpha=0.3)
BOLD = BoxProfile(epsilon=1.5, alpha=0.5)


def chance_of_ever_passing(
    choose: Callable[[float, int], BoxProfile], shown: Callable[[Odometer], float], steps: int, delta: float
) -> float:
    """The exact probability that the loss of the dominating pairs is ever more than what is shown."""
    passed = 0.0
    now: dict[tuple[float, tuple[tuple[BoxProfile, int], ...]], float] = {(0.0, ()): 1.0}
    for step in range(steps):
        later: dict[tuple[float, tuple[tuple[BoxProfile, int], ...]], float] = defaultdict(float)
        for (loss, releases), mass in now.items():
            box = choose(loss, step)
            odometer = Odometer(delta=delta, releases=releases).with_releases(box)
            counts = tuple(sorted(odometer.releases, key=lambda each: each[0].epsilon))
            limit = shown(odometer)
            rest = 1.0 - box.upper_mass - box.lower_mass
            for change, chance in ((box.epsilon, box.upper_mass), (-box.epsilon, box.lower_mass), (0.0, rest)):
                moved = round(loss + change, 9)
                if moved > limit:
                    passed += mass * chance
                else:
                    later[moved, counts] += mass * chance
        now = later
    return passed


@pytest.mark.parametrize(
    "choose",
    [
        lambda loss, step: CALM,
        lambda loss, step: BOLD if loss > 0 else CALM,  # by what was released: bolder when it is going badly
        lambda loss, step: CALM if loss > 2 else BOLD,
    ],
    ids=["constant", "bolder", "calmer"],
)
@pytest.mark.parametrize("delta", [0.3, 0.01])
def test_the_loss_passes_what_is_shown_with_a_chance_of_at_most_delta(
    choose: Callable[[float, int], BoxProfile], delta: float
) -> None:
    assert chance_of_ever_passing(choose, lambda odometer: odometer.epsilon, 16, delta) <= delta


def test_a_bound_for_one_moment_is_passed_at_some_moment_more_often_than_that() -> None:
    """So the test above can fail: exact composition at each step is no odometer."""
    found = chance_of_ever_passing(
        lambda loss, step: CALM,
        lambda odometer: compose(odometer.releases).epsilon(0.3),
        40,
        0.3,
    )
    assert found > 0.3


def test_it_is_never_more_than_the_sum_and_far_less_for_many_releases() -> None:
    odometer = Odometer(delta=1e-6).with_releases(CALM)
    assert odometer.epsilon == odometer.pure == 0.5
    many = odometer.with_releases(CALM, samples=999)
    assert many.pure == 500.0
    assert compose([(CALM, 1000)]).epsilon(1e-6) < many.epsilon < 0.5 * many.pure
    assert Odometer(delta=0.0, releases=many.releases).epsilon == 500.0


@pytest.mark.parametrize("delta", [-0.1, 1.5, float("nan")])
def test_a_delta_that_is_none_is_named(delta: float) -> None:
    with pytest.raises(DiscreetError, match="delta"):
        Odometer(delta=delta)
