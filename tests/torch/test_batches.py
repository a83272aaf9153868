"""A row has the same integers whoever comes with it: alone or in a batch, over one reference for all or one for each row.

Exact: every integer is compared, and clients that were served in different ways are held to e^epsilon in rationals. `python -m
tests.torch.test_batches` goes through many more settings.
"""

import itertools
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from discreet._base.kernels import Code, force_implementation
from discreet._base.numerics import exp_lower
from discreet.release._randomness import FixedIntegers
from discreet.torch import _host as host, weights
from discreet.torch._host import make_terms, read_tensor_rows
from discreet.torch._sampling import draw_outcomes

ROWS = 5
SIZES, SCALES, EPSILONS = (2, 7, 100, 1_000), (0.1, 3.0, 20.0), (0.1, 2.0, 8.0)
DTYPES = (torch.float32, torch.bfloat16, torch.float64)


def made(size: int, scale: float, dtype: torch.dtype, masked: bool, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of logits and a reference, some of both -inf if they are to be masked."""
    generator = torch.Generator().manual_seed(seed)
    reference = scale * torch.randn(size, generator=generator)
    rows = reference + scale * torch.randn((ROWS, size), generator=generator)
    if masked and size > 2:
        reference[torch.rand(size, generator=generator) < 0.4] = -math.inf
        rows[torch.rand((ROWS, size), generator=generator) < 0.2] = -math.inf
        reference[0], rows[:, 0] = 0.0, 0.0
    return rows.to(dtype), reference.to(dtype)


def ways(rows: torch.Tensor, reference: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, list[int]]]:
    """Ways to serve rows that must not matter: a name, the rows, their reference, and which of the first ones they are."""
    each = reference.expand(rows.shape).contiguous()
    for count in (1, 2, len(rows)):
        first = list(range(count))
        yield f"{count} over one reference", rows[:count], reference, first
        yield f"{count} over one each", rows[:count], each[:count], first
    yield "backwards", rows.flip(0), reference, list(range(len(rows)))[::-1]
    yield "column by column", rows.T.contiguous().T, reference, list(range(len(rows)))
    yield "with leading axes", rows[:4].reshape(2, 2, -1), reference, list(range(4))
    mixed = torch.stack([rows.flip(0), each.flip(1)], 1).reshape(
        -1, rows.shape[1]
    )  # between rows over other references
    others = torch.stack([each, rows.flip(1).nan_to_num(neginf=0.0)], 1).reshape(-1, rows.shape[1])
    yield "among others", mixed, others, [row for one in range(len(rows)) for row in (len(rows) - 1 - one, -1)]


def differing(rows: torch.Tensor, reference: torch.Tensor, epsilon: float, **given: Any) -> list[str]:
    """The ways in which rows have other integers than they have alone, or break the promise with those that are served otherwise."""
    kind = given.pop("kind", "logits")

    def integers(p: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        found = weights(**{kind: p}, reference=m, epsilon=epsilon, **given)
        return found.reshape(-1, rows.shape[1])

    alone = [integers(row, reference)[0] for row in rows]
    wrong, seen = [], list(alone)
    for name, p, m, which in ways(rows, reference):
        found = integers(p, m)
        if any(row >= 0 and not torch.equal(found[place], alone[row]) for place, row in enumerate(which)):
            wrong.append(name)
        seen += [found[place] for place, row in enumerate(which) if row >= 0]
    table = torch.stack(seen)
    most, least = table.max(0).values.tolist(), table.min(0).values.tolist()
    bound = exp_lower(epsilon)
    if any(high > bound * low for high, low in zip(map(Fraction, most), least, strict=True)):
        wrong.append("e^epsilon")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scale", "epsilon"), [(7, 3.0, 0.5), (100, 0.1, 2.0), (1_000, 20.0, 6.0)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_row_has_the_same_integers_whoever_comes_with_it(
    size: int, scale: float, epsilon: float, masked: bool
) -> None:
    rows, reference = made(size, scale, torch.float32, masked, size)
    assert differing(rows, reference, epsilon) == []
    laws, law = torch.softmax(rows, -1), torch.softmax(reference, -1)
    assert differing(laws, law, epsilon, kind="probabilities", upper=3.0) == []


@pytest.mark.parametrize("masked", [False, True])
def test_a_row_has_the_same_box_and_outcome_whoever_comes_with_it(masked: bool) -> None:
    """L and U themselves, which come from the reference; and the outcome of an integer."""
    rows, reference = made(50, 3.0, torch.float32, masked, 5)
    terms, uniform = make_terms(epsilon=1.0), np.random.default_rng(1).integers(0, 1 << 62, ROWS)
    each = reference.expand(rows.shape).contiguous()

    def boxes(given: Any) -> list[Any]:
        return [
            part.sampler.lattice
            for part in host._iterate_row_groups_by_reference(given, terms)
            if part.sampler is not None
        ]

    (one,) = boxes(read_tensor_rows(rows, None, reference, 1.0))
    for lattice in (
        *boxes(read_tensor_rows(rows, None, each, 1.0)),
        *boxes(read_tensor_rows(rows[:1], None, reference, 1.0)),
    ):
        assert np.array_equal(lattice.lower, one.lower)
        assert np.array_equal(lattice.upper, one.upper)
    together = draw_outcomes(read_tensor_rows(rows, None, reference, 1.0), terms, FixedIntegers(uniform))
    assert torch.equal(together, draw_outcomes(read_tensor_rows(rows, None, each, 1.0), terms, FixedIntegers(uniform)))
    for row in range(ROWS):
        alone = draw_outcomes(
            read_tensor_rows(rows[row : row + 1], None, reference, 1.0), terms, FixedIntegers(uniform[row : row + 1])
        )
        assert int(alone) == int(together[row])


@pytest.mark.slow
def test_small_batches_without_compiled_code_have_the_integers_of_large_ones_with_it() -> None:
    """How much there is to do decides which code does it."""
    rows, reference = made(300, 3.0, torch.float32, True, 6)
    found = []
    for code in Code:
        with force_implementation(code):
            found.append(weights(logits=rows, reference=reference, epsilon=1.0))
            found.append(torch.stack([weights(logits=row, reference=reference, epsilon=1.0) for row in rows]))
    assert all(torch.equal(each, found[0]) for each in found)


def main() -> int:
    """Every setting; how many of them differ in some way."""
    settings = list(itertools.product(SIZES, SCALES, EPSILONS, DTYPES, (False, True)))
    failed = 0
    for seed, (size, scale, epsilon, dtype, masked) in enumerate(settings):
        rows, reference = made(size, scale, dtype, masked, seed)
        wrong = differing(rows, reference, epsilon)
        laws = torch.softmax(rows.double(), -1), torch.softmax(reference.double(), -1)
        wrong += differing(laws[0].to(dtype), laws[1].to(dtype), epsilon, kind="probabilities")
        if wrong:
            failed += 1
            sys.stdout.write(f"{size} outcomes, scale {scale}, epsilon {epsilon}, {dtype}, masked {masked}: {wrong}\n")
    sys.stdout.write(f"{failed} of {len(settings)} settings differ\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
