"""Small work needs no compiler; large work gets it; and the choice changes nothing but time."""

import subprocess
import sys

import numpy as np
import pytest

from discreet import OptimalSampler, Simplex
from discreet._base import kernels as choice
from discreet._base.kernels import Code, force_implementation, should_use_compiled_code


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_seconds_spent", 0.0)


def test_compiled_code_comes_after_a_second_of_work() -> None:
    assert not should_use_compiled_code(0.4 * choice.PATIENCE)
    assert not should_use_compiled_code(0.5 * choice.PATIENCE)
    assert should_use_compiled_code(0.2 * choice.PATIENCE)
    assert should_use_compiled_code(0.0)


def test_work_that_is_large_at_once_is_compiled_at_once() -> None:
    assert should_use_compiled_code(2 * choice.PATIENCE)


def test_it_can_be_settled() -> None:
    with force_implementation(Code.NUMPY):
        assert not should_use_compiled_code(10.0)
        with force_implementation(Code.COMPILED):
            assert should_use_compiled_code(0.0)
        assert not should_use_compiled_code(10.0)


def test_a_law_is_drawn_as_it_is_inspected_whichever_does_it() -> None:
    laws = np.random.default_rng(1).dirichlet(np.ones(50), 20)
    sampler = OptimalSampler(Simplex(50), epsilon=2.0)
    found = []
    for code in Code:
        with force_implementation(code):
            found.append((sampler.output(laws).tobytes(), sampler.weights(laws).tobytes()))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_few_clients_are_released_without_numba() -> None:
    program = """
import sys
import discreet as dc
sampler = dc.OptimalSampler(dc.Simplex(100), epsilon=1.0)
sampler.release([[0.01] * 100] * 1000)
sampler.output([0.01] * 100)
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
