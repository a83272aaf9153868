"""Outputs as JAX functions: the checks of `jax_checks.py`, in a process of their own."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import discreet as dc
from discreet.projection.jax import output_function
from tests.needed import cannot_run
from tests.soaking import wide

CHECKS = Path(__file__).parent / "jax_checks.py"
COMPILER = wide({}, {"XLA_FLAGS": "--xla_backend_optimization_level=0"})  # most of the time goes into optimising code


@pytest.mark.slow
@pytest.mark.long
def test_outputs_and_derivatives_in_jax() -> None:
    if find_spec("jax") is None:
        cannot_run("jax cannot be imported: pip install '.[jax]'")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(CHECKS)],
        env={**os.environ, **COMPILER},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-4000:]
    assert " passed" in found.stdout
    assert "skipped" not in found.stdout


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        (dc.TransportSampler([0, 1, 5], epsilon=1.0), "does not project onto a box"),
        (dc.Simplex(3), "does not project onto a box"),
        (None, "does not project onto a box"),
        (
            dc.OptimalSampler(dc.GaussianMixtures(), epsilon=1.0, discretisation=dc.Cells(8)),
            "is on a continuous family",
        ),
    ],
)
def test_other_mechanisms_are_refused_without_jax(sampler: object, said: str) -> None:
    with pytest.raises(dc.DiscreetError, match=said):
        output_function(sampler)  # type: ignore[arg-type]
