"""The box in floats, where floats end."""

import numpy as np
import pytest

from discreet import Band, OptimalSampler
from discreet._base.kernels import Code, force_implementation
from discreet.release import _lattice as constant_time


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
@pytest.mark.parametrize("epsilon", [100.0, 554.0, 700.0, 740.0, 1000.0])
@pytest.mark.parametrize("law", [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]])
def test_a_client_on_a_small_set_has_a_law_however_large_epsilon_is(epsilon: float, law: list[float]) -> None:
    """Floors that stop at the smallest float would not have the shape of the ceilings, and no multiple of them would fill up to one."""
    sampler = OptimalSampler(Band([1e-5, 1e-10, 1e-16], lower=0, upper=2.0), epsilon=epsilon)
    with force_implementation(Code.NUMPY):
        assert float(sampler.output(law).sum()) == pytest.approx(1.0, abs=1e-12)
    drawn = sampler.weights(law)
    alike = np.asarray(sampler.lattice.lower) + sum(
        constant_time.weight_parts_in_constant_time(sampler.lattice, np.array(law), None)
    )
    assert np.abs(drawn - alike).sum() < 2.0**62 * 1e-12
