"""What every sampler on finitely many outcomes shares: a box, its integer lattice, and how a law is put into it.

A sampler is a frozen value, validated once. Its guarantee rests on the lattice alone (`discreet.release.lattice`).
"""

import abc
import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import release
from discreet.divergences import FDivergence
from discreet.errors import OPEN_UNIT, check_count
from discreet.families import FiniteFamily
from discreet.families.laws import as_floats
from discreet.projection import Affine, Box
from discreet.release import Lattice, Randomness, SystemEntropy
from discreet.tradeoff import Constants, Risk, check_epsilon


class FiniteSampler(abc.ABC):
    """An epsilon-LDP sampler on a finite family. Final classes say which box, and whether they project or mix."""

    def __init__(self, family: FiniteFamily, *, epsilon: float) -> None:
        self.family = family
        self.epsilon = check_epsilon(epsilon)

    @property
    @abc.abstractmethod
    def constants(self) -> Constants:
        """alpha, b, B, r1, r2, gamma under the paper's names."""

    @abc.abstractmethod
    def risk(self, divergence: str | FDivergence) -> Risk:
        """Worst-case divergence from a client's law to what is released for it, over the whole family."""

    @property
    def _reference(self) -> float | NDArray[np.float64]:
        return self.family.reference

    @property
    def _mixing(self) -> Affine | None:
        """None for the samplers that project."""
        return None

    @cached_property
    def box(self) -> Box:
        """{Q : b mu <= Q <= B mu}, in floating point."""
        return Box.around(self._reference, self.family.size, self.constants, self.epsilon)

    @cached_property
    def lattice(self) -> Lattice:
        """The same box in integers: what the guarantee rests on."""
        return Lattice.of(self.box, self.epsilon)

    def output(self, p: ArrayLike) -> NDArray[np.float64]:
        """The law Q(.|P) that a sample is drawn from: (k,) -> (k,), or (..., k) -> (..., k) for many clients."""
        return self.box.project(p)

    def weights(self, p: ArrayLike) -> NDArray[np.int64]:
        """The law in the integers it is really drawn with: each row sums to 2^62, and for any two clients whatever
        every entry is at most e^epsilon times the other's. Anybody can check that with whole numbers alone."""
        laws = self._laws(p)
        rows = release.weights(self.lattice, laws.reshape(-1, self.family.size), self._mixing)
        return rows.reshape(laws.shape)

    def release(self, p: ArrayLike, *, rng: np.random.Generator | None = None) -> Any:
        """One private sample for each client: an outcome number, or its label where the family has labels.

        Drawn from the operating system's entropy with `weights(p)`. `rng` makes it reproducible and therefore NOT private.
        Each call spends epsilon anew: two samples of one client are 2 epsilon-LDP together.
        """
        randomness: Randomness = SystemEntropy() if rng is None else release.seeded(rng)
        laws = self._laws(p)
        rows = laws.reshape(-1, self.family.size)
        drawn = release.outcomes(self.lattice, rows, self._mixing, randomness.integers(len(rows)))
        return self.family.named(drawn.reshape(laws.shape[:-1]))

    def _laws(self, p: ArrayLike) -> NDArray[np.float64]:
        return as_floats(p, "p", self.family.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.family!r}, epsilon={self.epsilon:g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteSampler) and type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), *self._identity()))

    def _identity(self) -> tuple[Any, ...]:
        return (self.family, self.epsilon)


class ProjectingSampler(FiniteSampler):
    """A sampler that projects onto its box: it has a scale r_P, and is continuous in P."""

    def scale(self, p: ArrayLike) -> float | NDArray[np.float64]:
        """The paper's r_P, exactly: Q = clip(P/r_P, b mu, B mu). Where several serve (they give the same law) it is one
        of them; 0 where P sits on so small a set that none does, which never happens to a member of an optimal sampler's family."""
        found = self.box.scale(p)
        return found if found.ndim else float(found)

    def sensitivity(self, p: ArrayLike) -> float | NDArray[np.float64]:
        """How far the output can move when P does: TV(Q(P), Q(P')) <= sensitivity(P) TV(P, P') [paper, Prop. 4.1].

        It is 2/r_P, so it can be computed from the estimate a client has instead of the truth.
        """
        with np.errstate(divide="ignore"):
            found = 2.0 / np.asarray(self.scale(p))
        return found if found.ndim else float(found)

    def estimation_cost(self, p: ArrayLike, *, records: int, confidence: float = 0.95) -> float | NDArray[np.float64]:
        """A bound on TV(Q(P), Q(P_hat)) when p is the empirical law of that many independent records of P.

        E TV(P, P_hat) <= sqrt((k - 1)/n)/2 (Cauchy-Schwarz), and one record moves it by at most 1/n (McDiarmid), so with the
        given confidence TV(P, P_hat) <= sqrt((k - 1)/n)/2 + sqrt(log(1/(1 - confidence))/(2 n)); times `sensitivity(p)`, and
        never more than min(1 - b, B - 1), the diameter of the box. It is a loss of utility: privacy has no part in it.
        """
        n = min(check_count("records", records), 10**300)  # what a float can hold
        OPEN_UNIT.check("confidence", confidence)
        moved = 0.5 * math.sqrt((self.family.size - 1) / n) + math.sqrt(-math.log1p(-confidence) / (2 * n))
        diameter = min(1.0 - self.constants.b, self.constants.B - 1.0)
        bound = np.minimum(np.asarray(self.sensitivity(p)) * min(moved, 1.0), diameter)
        return bound if bound.ndim else float(bound)
