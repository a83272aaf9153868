"""Random designs on a line against a linear programme whose masses come from 30 digits: no bound is above what some mechanism reaches.

Clients are scipy distributions, mixtures, tables, records and densities with a distribution function of their own, from a twentieth of a cell
wide to wider than the line. The programme knows every client's masses to 30 digits, and nothing of how the design found its own. Its floor
is mended until it is one, and what that floor costs the clients is computed in 30 digits: so the comparison needs no tolerance.

    python -m tests.design.lines --designs 500
"""

import argparse
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.optimize import linprog

import discreet as dc
from discreet.families import BoundedDensity

Floats = NDArray[np.float64]
Real = Any  # a number of mpmath

DIGITS = 30
LOW, HIGH = 0.0, 1.0
LOOSE = 3e-4  # relative, by which a bound may be below the optimum
UNIT = dc.DensityBand(stats.uniform(LOW, HIGH - LOW), lower=0.0, upper=20.0)


@dataclass(frozen=True)
class Client:
    """A client as a design takes it, and its distribution function in any number of digits."""

    given: Any
    below: Callable[[Real], Real]

    def masses(self, edges: Floats) -> list[Real]:
        """On the cells, as shares of what lies between the outermost edges."""
        values = [self.below(mpmath.mpf(float(x))) for x in edges]
        whole = values[-1] - values[0]
        return [(b - a) / whole for a, b in itertools.pairwise(values)]


def gaussian(t: Real) -> Real:
    return mpmath.ncdf(t)


def laplace(t: Real) -> Real:
    return mpmath.exp(t) / 2 if t < 0 else 1 - mpmath.exp(-t) / 2


def logistic(t: Real) -> Real:
    return 1 / (1 + mpmath.exp(-t))


def uniform(t: Real) -> Real:
    return min(max(t, mpmath.mpf(0)), mpmath.mpf(1))


KERNELS = {"norm": gaussian, "laplace": laplace, "logistic": logistic, "uniform": uniform}


def scipy_client(rng: np.random.Generator, centre: float, width: float) -> Client:
    name = str(rng.choice(list(KERNELS)))
    loc = centre - 0.5 * width if name == "uniform" else centre

    def below(x: Real) -> Real:
        return KERNELS[name]((x - mpmath.mpf(loc)) / mpmath.mpf(width))

    return Client(getattr(stats, name)(loc, width), below)


def beta_client(rng: np.random.Generator, centre: float, width: float) -> Client:
    a, b = (float(np.exp(rng.uniform(np.log(0.5), np.log(60.0)))) for _ in range(2))

    def below(x: Real) -> Real:
        return mpmath.betainc(mpmath.mpf(a), mpmath.mpf(b), 0, uniform(x), regularized=True)

    return Client(stats.beta(a, b), below)


def mixture_client(rng: np.random.Generator, centre: float, width: float) -> Client:
    kernel, number = str(rng.choice(["gaussian", "laplace"])), int(rng.integers(1, 5))
    weights = rng.dirichlet(np.ones(number))
    means = np.append(centre, rng.random(number - 1))
    widths = width * np.exp(rng.uniform(-1.0, 1.0, number))
    given = dc.Mixture(weights, means, widths, kernel=kernel)
    shape = gaussian if kernel == "gaussian" else laplace

    def below(x: Real) -> Real:
        parts = zip(given.weights, given.means[:, 0], given.scales, strict=True)
        return mpmath.fsum(
            mpmath.mpf(float(w)) * shape((x - mpmath.mpf(float(c))) / mpmath.mpf(float(s))) for w, c, s in parts
        )

    return Client(given, below)


def table_client(rng: np.random.Generator, centre: float, width: float) -> Client:
    number, constant = int(rng.integers(2, 40)), bool(rng.integers(2))
    axis = np.unique(
        np.concatenate([[centre - width, centre + width], centre + width * rng.uniform(-1.0, 1.0, number)])
    )
    values = rng.random(axis.size - constant) * (rng.random(axis.size - constant) < 0.8) + 1e-3
    at, heights = ([mpmath.mpf(float(x)) for x in array] for array in (axis, values))

    def below(x: Real) -> Real:
        total = mpmath.mpf(0)
        for i, (start, stop) in enumerate(itertools.pairwise(at)):
            end = min(max(x, start), stop)
            if constant:
                total += heights[i] * (end - start)
            else:
                rise = (heights[i + 1] - heights[i]) / (stop - start)
                total += (end - start) * (heights[i] + rise * (end - start) / 2)
        return total

    return Client(dc.families.Tabulated(axis, values), below)


def bounded_client(rng: np.random.Generator, centre: float, width: float) -> Client:
    known = stats.norm(centre, width)
    error = float(10.0 ** rng.uniform(-14.0, -5.0))
    wrong = float(rng.uniform(-0.9, 0.9)) * error

    def below(x: Real) -> Real:
        return gaussian((x - mpmath.mpf(centre)) / mpmath.mpf(width))

    def cdf(x: Floats) -> Floats:
        return np.asarray(known.cdf(x) + wrong * np.sin(1e4 * x))

    return Client(BoundedDensity(lambda x: known.pdf(x), cdf=cdf, error=error), below)


def lipschitz_client(rng: np.random.Generator, centre: float, width: float) -> Client:
    width = max(width, 0.05)
    known = stats.norm(centre, width)

    def below(x: Real) -> Real:
        return gaussian((x - mpmath.mpf(centre)) / mpmath.mpf(width))

    steepest = 0.25 / width**2  # of a Gaussian it is 0.242/width^2
    return Client(BoundedDensity(lambda x: known.pdf(x), lipschitz=steepest), below)


KINDS = [
    scipy_client,
    scipy_client,
    beta_client,
    mixture_client,
    mixture_client,
    table_client,
    table_client,
    bounded_client,
]


def random_clients(rng: np.random.Generator, cells: int) -> list[Client]:
    """Two to four clients near each other, from a twentieth of a cell to twice the line wide."""
    kinds = [*KINDS, lipschitz_client] if cells <= 32 else KINDS
    width = float(np.exp(rng.uniform(np.log(0.05 / cells), np.log(2.0))))
    middle = float(rng.uniform(0.05, 0.95))
    found = []
    for _ in range(int(rng.integers(2, 5))):
        make = kinds[int(rng.integers(len(kinds)))]
        centre = float(np.clip(middle + width * rng.normal(), 0.01, 0.99))
        found.append(make(rng, centre, width * float(np.exp(rng.uniform(-0.7, 0.7)))))
    return found


def best_floor_for_mean(laws: Floats, weights: Floats, epsilon: float) -> Floats:
    """The floor m whose laws m <= q_j <= e^epsilon m have the least mean of |(p_j - q_j)_+|, by a linear programme in (m, q, excess)."""
    (n, k), growth = laws.shape, math.exp(epsilon)
    size = n * k
    one, floor = sparse.eye_array(size), sparse.vstack([sparse.eye_array(k)] * n)
    none = sparse.csr_array((size, size))
    rows = sparse.vstack([
        sparse.hstack([floor, -one, none]),
        sparse.hstack([-growth * floor, one, none]),
        sparse.hstack([sparse.csr_array((size, k)), -one, -one]),
    ])  # fmt: skip
    sums = sparse.hstack([
        sparse.csr_array((n, k)), sparse.kron(sparse.eye_array(n), np.ones((1, k))), sparse.csr_array((n, size)),
    ])  # fmt: skip
    found = linprog(
        np.concatenate([np.zeros(k + size), np.repeat(weights, k)]),
        A_ub=rows, b_ub=np.concatenate([np.zeros(2 * size), -laws.ravel()]), A_eq=sums, b_eq=np.ones(n), method="highs",
    )  # fmt: skip
    assert found.status == 0, found.message
    return np.asarray(np.maximum(found.x[:k], 0.0))


def cost(floor: Floats, clients: list[list[Real]], weights: Floats, epsilon: float) -> Real:
    """The mean total variation of the sampler with a floor, in so many digits: max(|(P - E m)_+|, |(m - P)_+|)."""
    growth, m = mpmath.exp(mpmath.mpf(epsilon)), [mpmath.mpf(float(x)) for x in floor]
    total = mpmath.fsum(m)
    if total <= 0:
        m, total = [mpmath.mpf(1)] * len(m), mpmath.mpf(len(m))
    least, most = 1 / growth, mpmath.mpf(1)
    scale = min(max(total, least), most) / total
    m = [scale * x for x in m]
    lost = []
    for law in clients:
        over = mpmath.fsum(max(p - growth * x, mpmath.mpf(0)) for p, x in zip(law, m, strict=True))
        under = mpmath.fsum(max(x - p, mpmath.mpf(0)) for p, x in zip(law, m, strict=True))
        lost.append(max(over, under))
    return mpmath.fsum(mpmath.mpf(float(w)) * one for w, one in zip(weights, lost, strict=True))


@dataclass(frozen=True)
class Compared:
    """A design's bound, what a mechanism reaches, and whether the bound should be close to it."""

    bound: float
    reached: float
    above: bool
    sharp: bool


def compared(seed: int, most_cells: int = 512) -> Compared:
    """One random design beside its programme."""
    rng = np.random.default_rng(seed)
    cells = int(np.exp(rng.uniform(np.log(8.0), np.log(most_cells + 0.5))))
    epsilon = float(rng.choice([0.5, 1.0, 2.0, 4.0]))
    clients = random_clients(rng, cells)
    with mpmath.workdps(DIGITS):
        found = dc.design(
            UNIT, epsilon=epsilon, clients=[one.given for one in clients], divergence="tv", keep=0.0, cells=cells
        )
        assert found.is_certified, (seed, found.estimated)
        masses = [one.masses(found.edges) for one in clients]
        weights = np.full(len(clients), 1.0 / len(clients))
        laws = np.array([[float(p) for p in law] for law in masses])
        reached = cost(best_floor_for_mean(laws, weights, epsilon), masses, weights, epsilon)
        sharp = not any(isinstance(one.given, BoundedDensity) for one in clients)
        return Compared(found.bound, float(reached), mpmath.mpf(found.bound) > reached, sharp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    loosest, sharp = 0.0, 0
    for seed in range(options.first, options.first + options.designs):
        one = compared(seed)
        assert not one.above, (seed, one)
        if one.sharp:
            sharp += 1
            assert one.bound >= one.reached * (1.0 - LOOSE) - 1e-7, (seed, one)
            loosest = max(loosest, (one.reached - one.bound) / max(one.reached, 1e-3))
    said = f"{sharp} sharp ones at most {loosest:.1e} below"
    print(f"{options.designs} designs, no bound above what a mechanism reaches; {said}")  # noqa: T201


if __name__ == "__main__":
    main()
