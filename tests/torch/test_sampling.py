"""Tensors on the CPU: the law is that of the numpy path, bit for bit; what is no law is refused before anything leaves."""

import inspect
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError, LargeEpsilonWarning
from discreet.privacy import Approximate, Gaussian, Privacy
from discreet.release import TOTAL, outcomes
from discreet.release._randomness import FixedIntegers
from discreet.torch import output, release, weights
from discreet.torch._host import make_terms, read_tensor_rows
from discreet.torch._sampling import draw_outcomes

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def laws(rows: int, size: int, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    found = rng.dirichlet(np.full(size, 0.3), size=rows)
    found[rng.random(found.shape) < 0.2] = 0.0
    found[:, 0] += 1e-3
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def integers(rows: int, seed: int) -> np.ndarray[Any, Any]:
    found = np.random.default_rng(seed).integers(0, TOTAL, size=rows)
    found[:2] = 0, TOTAL - 1
    return found


def on_tensors(p: Any, uniform: Any, epsilon: float, **given: Any) -> Any:
    """The outcomes of rows for given integers."""
    rows = read_tensor_rows(None, torch.from_numpy(p), given.get("reference"), 1.0)
    return draw_outcomes(rows, make_terms(epsilon=epsilon, upper=given.get("upper")), FixedIntegers(uniform)).numpy()


@settings(max_examples=25, deadline=None)
@given(size=st.integers(2, 40), epsilon=st.floats(0.05, 12.0), seed=st.integers(0, 1 << 30))
def test_float64_has_the_outcomes_of_the_numpy_path(size: int, epsilon: float, seed: int) -> None:
    p, uniform = laws(30, size, seed), integers(30, seed)
    simplex = dc.OptimalSampler(dc.Simplex(size), epsilon=epsilon)
    assert np.array_equal(on_tensors(p, uniform, epsilon), outcomes(simplex.lattice, p, None, uniform))
    reference = laws(1, size, seed + 1)[0] + 1e-4
    reference /= reference.sum()
    for upper in (None, 5.0):
        most = math.exp(epsilon / 2) + 1 if upper is None else upper
        band = dc.OptimalSampler(dc.Band(reference, lower=0, upper=most, any_client=True), epsilon=epsilon)
        found = on_tensors(p, uniform, epsilon, reference=torch.from_numpy(reference), upper=upper)
        assert np.array_equal(found, outcomes(band.lattice, p, None, uniform))


def test_each_row_has_its_own_reference() -> None:
    p, reference, uniform = laws(20, 9, 1), laws(20, 9, 2) + 0.01, integers(20, 3)
    reference /= reference.sum(axis=1, keepdims=True)
    found = on_tensors(p, uniform, 2.0, reference=torch.from_numpy(reference))
    for row in range(20):
        band = dc.Band(reference[row], lower=0, upper=math.e + 1, any_client=True)
        lattice = dc.OptimalSampler(band, epsilon=2.0).lattice
        assert found[row] == outcomes(lattice, p[row : row + 1], None, uniform[row : row + 1])[0]


def test_logits_are_the_laws_that_families_make_of_them() -> None:
    logits = np.random.default_rng(4).normal(size=(50, 12)) * 3
    uniform = integers(50, 5)
    rows = read_tensor_rows(torch.from_numpy(logits), None, None, 2.0)
    found = draw_outcomes(rows, make_terms(epsilon=1.5), FixedIntegers(uniform)).numpy()
    simplex = dc.Simplex(12)
    lattice = dc.OptimalSampler(simplex, epsilon=1.5).lattice
    assert np.array_equal(found, outcomes(lattice, simplex.law(logits=logits / 2.0), None, uniform))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("as_logits", [True, False])
def test_integers_of_every_dtype_sum_to_two_to_the_62_within_e_to_the_epsilon(
    dtype: torch.dtype, as_logits: bool
) -> None:
    generator = torch.Generator().manual_seed(6)
    logits = 4 * torch.randn((40, 30), generator=generator, dtype=torch.float32)
    logits[0, 5:] = -math.inf  # a private top-k is as private as anything
    public = torch.randn(30, generator=generator, dtype=torch.float32)
    p = {"logits": logits.to(dtype)} if as_logits else {"probabilities": torch.softmax(logits.double(), -1).to(dtype)}
    for reference in (None, public if as_logits else torch.softmax(public.double(), -1)):
        found = weights(**p, reference=None if reference is None else reference.to(dtype), epsilon=1.3)
        assert found.dtype == torch.int64
        assert (found.sum(1) == TOTAL).all()
        pairs = zip(found.max(0).values.tolist(), found.min(0).values.tolist(), strict=True)
        assert max(Fraction(most, least) for most, least in pairs) <= exp_lower(1.3)
        shown = output(**p, reference=None if reference is None else reference.to(dtype), epsilon=1.3)
        assert shown.dtype == dtype
        assert torch.allclose(shown.double(), found.double() / TOTAL, rtol=0, atol=torch.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7), (0, 7), (2, 0, 7)])
def test_results_have_the_leading_shape(shape: tuple[int, ...]) -> None:
    logits = torch.randn(shape)
    assert release(logits=logits, epsilon=1.0).shape == shape[:-1]
    assert release(logits=logits, reference=torch.randn(7), epsilon=1.0).shape == shape[:-1]
    assert weights(logits=logits, reference=torch.randn(shape), epsilon=1.0).shape == shape
    assert output(logits=logits, epsilon=1.0).shape == shape


@pytest.mark.slow
def test_what_the_reference_rules_out_is_never_drawn_and_the_rest_keeps_its_law() -> None:
    logits, reference = torch.randn(200, 6).double(), torch.randn(6).double()
    reference[[1, 4]] = -math.inf
    kept = [0, 2, 3, 5]
    found = weights(logits=logits, reference=reference, epsilon=1.0)
    assert (found[:, [1, 4]] == 0).all()
    alone = weights(logits=logits[:, kept], reference=reference[kept], epsilon=1.0)
    assert torch.allclose(found[:, kept].double(), alone.double(), rtol=1e-12)
    assert set(release(logits=logits, reference=reference, epsilon=1.0).tolist()) <= set(kept)
    reference[[0, 2, 3]] = -math.inf
    assert (release(logits=logits, reference=reference, epsilon=1.0) == 5).all()


def test_a_client_on_nothing_that_can_occur_draws_from_the_reference() -> None:
    logits, reference = torch.full((1, 5), -math.inf).double(), torch.randn(5).double()
    logits[0, 2], reference[2] = 0.0, -math.inf
    expected = torch.softmax(reference, -1)
    assert torch.allclose(output(logits=logits, reference=reference, epsilon=1.0)[0], expected)


def test_outcomes_are_drawn_from_the_integers() -> None:
    logits, reference = torch.randn(8, generator=torch.Generator().manual_seed(7)) * 2, torch.zeros(8)
    count = 20_000
    law = weights(logits=logits, reference=reference, epsilon=2.0).double().numpy() / TOTAL
    seen = np.bincount(release(logits=logits.expand(count, 8), reference=reference, epsilon=2.0), minlength=8)
    statistic = float(((seen - count * law) ** 2 / (count * law)).sum())
    assert statistic < chi2.isf(1e-9, df=7)


def test_the_frameworks_generator_takes_no_part() -> None:
    logits = torch.zeros(2000, 50)
    before = torch.get_rng_state()
    torch.manual_seed(1)
    first = release(logits=logits, epsilon=1.0)
    torch.manual_seed(1)
    assert not torch.equal(first, release(logits=logits, epsilon=1.0))
    torch.manual_seed(1)
    after_seed = torch.get_rng_state()
    release(logits=logits, epsilon=1.0)
    assert torch.equal(torch.get_rng_state(), after_seed)
    torch.set_rng_state(before)


def with_entry(value: float) -> torch.Tensor:
    found = torch.zeros(3, 4)
    found[1, 2] = value
    return found


BAD: list[tuple[str, Callable[[], dict[str, Any]], str]] = [
    ("nan logits", lambda: {"logits": with_entry(math.nan)}, r"logits\[1\]\[2\] = nan is NaN"),
    ("infinite logits", lambda: {"logits": with_entry(math.inf)}, r"logits\[1\]\[2\] = inf is infinite"),
    ("no finite logit", lambda: {"logits": torch.full((2, 3), -math.inf)}, r"logits\[0\] is -inf everywhere"),
    (
        "nan in the reference",
        lambda: {"logits": torch.zeros(3, 4), "reference": with_entry(math.nan)},
        r"reference\[1\]\[2\] = nan",
    ),
    (
        "empty reference",
        lambda: {"logits": torch.zeros(2, 3), "reference": torch.full((3,), -math.inf)},
        "reference is -inf everywhere",
    ),
    ("no sum of one", lambda: {"probabilities": torch.full((2, 3), 0.5)}, r"probabilities\[0\] sums to 1.5"),
    ("negative", lambda: {"probabilities": torch.tensor([1.5, -0.5])}, r"probabilities\[1\] = -0.5 is negative"),
    (
        "vocabularies",
        lambda: {"logits": torch.zeros(2, 3), "reference": torch.zeros(4)},
        "4 outcomes and logits has 3",
    ),
    ("shapes", lambda: {"logits": torch.zeros(2, 3), "reference": torch.zeros(5, 3)}, r"\(5, 3\).*\(2, 3\)"),
    ("whole numbers", lambda: {"logits": torch.zeros(2, 3, dtype=torch.int64)}, "dtype torch.int64"),
    ("complex", lambda: {"logits": torch.zeros(2, 3, dtype=torch.complex64)}, "dtype torch.complex64"),
    ("an array", lambda: {"logits": np.zeros((2, 3))}, "not a torch.Tensor"),
    ("a list as reference", lambda: {"logits": torch.zeros(3), "reference": [0.0, 0.0, 0.0]}, "reference = list"),
    ("sparse", lambda: {"logits": torch.zeros(2, 3).to_sparse()}, "dense"),
    ("no numbers", lambda: {"logits": torch.zeros(2, 3, device="meta")}, "meta"),
    ("one number", lambda: {"logits": torch.tensor(1.0)}, "single number"),
    ("one outcome", lambda: {"logits": torch.zeros(5, 1)}, "at least 2 outcomes"),
    ("devices", lambda: {"logits": torch.zeros(3), "reference": torch.zeros(3, device="meta")}, "meta"),
    ("both", lambda: {"logits": torch.zeros(3), "probabilities": torch.ones(3) / 3}, "exactly one of them"),
    ("neither", dict, "exactly one of them"),
    ("temperature", lambda: {"logits": torch.zeros(3), "temperature": 0.0}, "temperature = 0"),
    (
        "temperature of probabilities",
        lambda: {"probabilities": torch.ones(3) / 3, "temperature": 2.0},
        "temperature = 2 is for logits",
    ),
]


@pytest.mark.parametrize(("made", "told"), [pytest.param(made, told, id=name) for name, made, told in BAD])
@pytest.mark.parametrize("function", [release, weights, output])
def test_what_is_no_law_is_named(
    function: Any, made: Callable[[], dict[str, Any]], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DiscreetError, match=told):
        function(**made(), epsilon=1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1"])
def test_an_epsilon_that_is_none_is_named(epsilon: Any) -> None:
    with pytest.raises(DiscreetError, match="epsilon"):
        release(logits=torch.zeros(3), epsilon=epsilon)


@pytest.mark.filterwarnings("default::discreet.errors.LargeEpsilonWarning")
def test_a_percentage_for_an_epsilon_is_doubted() -> None:
    with pytest.warns(LargeEpsilonWarning):
        release(logits=torch.zeros(3), epsilon=95.0)


def test_tensors_that_record_gradients_and_strange_strides_serve() -> None:
    logits = torch.randn(6, 4, requires_grad=True)
    assert not release(logits=logits, epsilon=1.0).requires_grad
    turned = logits.detach().T
    assert torch.equal(weights(logits=turned, epsilon=1.0), weights(logits=turned.contiguous(), epsilon=1.0))


def test_without_torch_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["torch"] = None
import discreet
from discreet.errors import MissingExtraError
try:
    discreet.torch
except MissingExtraError as error:
    assert "[torch]" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("privacy", [Approximate(1.0, delta=0.01), Gaussian(1.5)], ids=str)
def test_other_notions_have_the_outcomes_and_integers_of_the_numpy_path(privacy: Privacy) -> None:
    p, uniform = laws(40, 9, 8), integers(40, 9)
    reference = laws(1, 9, 10)[0] + 0.01
    reference /= reference.sum()
    for public, family in ((None, dc.Simplex(9)), (reference, dc.Band(reference, lower=0, upper=4.0, any_client=True))):
        lattice = dc.OptimalSampler(family, privacy=privacy).lattice
        given = None if public is None else torch.from_numpy(public)
        rows = read_tensor_rows(None, torch.from_numpy(p), given, 1.0)
        terms = make_terms(privacy=privacy, upper=None if public is None else 4.0)
        assert np.array_equal(
            draw_outcomes(rows, terms, FixedIntegers(uniform)).numpy(), outcomes(lattice, p, None, uniform)
        )
        found = weights(probabilities=torch.from_numpy(p), reference=given, privacy=privacy, upper=terms.upper)
        assert (found.sum(1) == TOTAL).all()
        assert lattice.keeps_privacy(privacy)
        assert (found >= torch.tensor(lattice.lower)).all()
        assert (found <= torch.tensor(lattice.upper)).all()


def test_epsilon_and_privacy_are_not_both_given() -> None:
    with pytest.raises(DiscreetError, match="pass one of the two"):
        release(logits=torch.zeros(3), epsilon=1.0, privacy=Gaussian(1.0))
    with pytest.raises(DiscreetError, match="pass one of the two"):
        release(logits=torch.zeros(3))


@pytest.mark.parametrize("function", [release, weights, output], ids=lambda found: found.__name__)
def test_help_names_every_keyword_and_a_wrong_one_is_an_error(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    names = list(inspect.signature(function).parameters)
    common = {"epsilon", "privacy", "logits", "probabilities", "reference", "upper", "temperature"}
    assert set(names) == (common | {"rng"} if function is release else common)
    assert [name for name in names if f"\n    {name}: " not in text.split("Args:")[1].split("Returns:")[0]] == []
    with pytest.raises(TypeError, match=rf"^discreet.torch.{function.__name__} takes no argument 'eps'"):
        function(logits=torch.zeros(3), eps=1.0)


@pytest.mark.parametrize(
    "keywords", [{}, {"rng": np.random.default_rng(1)}, {"logits": torch.zeros(3, requires_grad=True)}]
)
@pytest.mark.parametrize("function", [release, weights, output], ids=lambda found: found.__name__)
def test_rows_without_a_keyword_are_an_error_that_names_the_function(function: Any, keywords: dict[str, Any]) -> None:
    if "rng" in keywords and function is not release:
        return
    with pytest.raises(TypeError, match=rf"^discreet.torch.{function.__name__} takes keywords alone: .*logits="):
        function(torch.zeros(3), epsilon=1.0, **keywords)


@pytest.mark.filterwarnings("error")
def test_a_temperature_that_overflows_is_named() -> None:
    logits = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
    with pytest.raises(DiscreetError, match=r"logits / temperature\[0\] = inf is infinite"):
        release(epsilon=1.0, logits=logits, temperature=1e-320)
