"""Hostile values made from bytes: numbers, laws, families, densities, texts and JSON that are ordinary, odd or wrong."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import discreet as dc
from discreet import accounting
from discreet.mechanisms._sampler import Sampler

NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 10, 0.5, 1.0, -0.0, 1e-300, 5e-324, 1e-9, 0.999999, 1e9, 1e300, 1e308, math.inf, -math.inf, math.nan,
    10**400, True, None, "1", "", b"1", [], {}, (1,), 1j, Fraction(1, 3), np.float32(0.5), np.int8(3), np.array(1.0),
    np.array([1.0]),
]  # fmt: skip
WORDS = [
    "kl",
    "tv",
    "hellinger",
    "chi2",
    "alpha:0.5",
    "alpha:nan",
    "alpha:",
    "hockey_stick:2",
    "hockey_stick:-1",
    "x",
    "",
    "kl ",
    "\x00",
    "é",
]


class Chooser:
    """Choices read off bytes, one byte each; zeros after the end."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def below(self, count: int) -> int:
        return next(self._bytes, 0) % count

    def among(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def number(self) -> Any:
        """Mostly an ordinary number, otherwise anything."""
        kind = self.below(4)
        if kind == 0:
            return self.among(NUMBERS)
        if kind == 1:
            return self.below(20)
        return self.among([0.01, 0.1, 0.3, 1.0, 2.5, 8.0, 40.0, 700.0]) * (1 + self.below(3))

    def law(self, size: int) -> Any:
        """A law, or something that is nearly one."""
        kind = self.below(6)
        if kind == 0:
            return self.among(NUMBERS)
        if kind == 1:
            return [self.number() for _ in range(self.below(6))]
        masses = np.array([float(self.below(256)) for _ in range(size)]) + (0.0 if kind < 4 else 1e-9)
        if kind == 5:
            masses[self.below(size)] = self.among([math.nan, -1.0, math.inf, 5e-324, 1e308])
            return masses
        law = masses / masses.sum() if masses.sum() > 0 else np.eye(1, size)[0]
        return law if self.below(2) else np.stack([law, law[::-1]])

    def family(self) -> dc.Simplex | dc.Band:
        size = 1 + self.below(12)
        if self.below(2):
            return dc.Simplex(
                self.among([size, [f"label {x}" for x in range(size)], self.number(), ["a", "a"], "ab", [[]]])
            )
        weights = (
            [self.number() for _ in range(size)] if self.below(3) == 0 else [1.0 + self.below(5) for _ in range(size)]
        )
        return dc.Band(
            weights, lower=self.among([0.0, 0.25, 0.9, self.number()]), upper=self.among([1.1, 2.0, self.number()])
        )

    def sampler(self) -> Sampler[Any]:
        kind = self.among([dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
        return kind(self.family(), epsilon=self.number())  # type: ignore[no-any-return]

    def profile(self) -> accounting.BoxProfile:
        return accounting.BoxProfile(epsilon=self.number(), alpha=self.among([0.01, 0.3, 0.5, 0.9, 1.0, self.number()]))

    def text(self) -> str:
        parts = [
            "0",
            "1",
            "-1",
            "nan",
            "inf",
            "1e400",
            "0.5",
            "1:2:3",
            "",
            "x",
            "--json",
            "\x00",
            "é",
            "10",
            "kl",
            "1" * 50,
        ]
        return str(self.among(parts))

    def density(self) -> Any:
        """A client of a continuous family, or something that is not one."""
        return self.among([
            dc.Mixture([1.0, 2.0], [0.1, -0.2]), stats.norm(), stats.uniform(10.0, 1.0), stats.multivariate_normal([0.0, 0.0]),
            lambda x: np.exp(-np.abs(x).reshape(len(x), -1).sum(axis=1)), lambda x: np.full(len(x), np.nan),
            lambda x: np.full(len(x), -1.0), lambda x: np.full(len(x), np.inf), lambda x: np.zeros(len(x)), lambda x: 1.0,
            lambda x: np.ones((len(x), 2)), lambda x: None, lambda x: "x", lambda x: [1] * len(x), lambda: 1.0,
            lambda x: np.full(len(x), 1e308), lambda x: np.full(len(x), 5e-324), self.number(),
        ])  # fmt: skip

    def continuous_family(self) -> Any:
        """A family on the line, the plane or in a few dimensions, or an error."""
        box = self.among(
            [None, None, None, None, None, (-2.0, 2.0), (0.0, self.number()), [(-1.0, 1.0)] * 2, self.number(), "ab"]
        )
        what = self.below(4)
        if what == 3:
            bounds = {
                "lower": self.among([0.0, 0.3, self.number()]),
                "upper": self.among([1.5, 4.0, self.number()]),
                "any_client": self.among([False, False, True, self.number()]),
            }
            return dc.DensityBand(self.density(), box if self.below(2) else (-1.0, 1.5), **bounds)
        kind = dc.LaplaceMixtures if what == 2 else dc.GaussianMixtures
        dim = self.among([1, 1, 1, 1, 1, 2, 5, self.number()])
        return kind(
            dim, radius=self.among([1.0, 1.0, self.number()]), scale=self.among([1.0, 1.0, 0.3, self.number()]), box=box
        )

    def json(self, depth: int = 0) -> Any:
        kind = self.below(5 if depth < 3 else 3)
        if kind == 3:
            return [self.json(depth + 1) for _ in range(self.below(4))]
        if kind == 4:
            return {
                self.among(["kind", "size", "epsilon", "x", "lower"]): self.json(depth + 1)
                for _ in range(self.below(4))
            }
        return self.among(
            [None, True, 0, 1, -1, 1.5, 1e400, "simplex", "band", "sha256:" + "0" * 64, "optimal", "", math.nan]
        )
