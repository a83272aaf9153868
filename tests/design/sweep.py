"""Generated designs against programmes over all mechanisms: is every one answered, and does its bracket hold the optimum?

    python -m tests.design.sweep --designs 2000

Mean and worst case, seven divergences (three of them own ones with kinks), epsilon from 0.01 to 12, point masses and zeros. The optimum
is bracketed by linear programmes over the mechanisms themselves: lines below f with known derivatives give a lower bound, and the
mechanism that is found an upper one. Nothing of the package is used for it. Certificates are computed again in rationals where f allows.
"""

import argparse
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

import discreet as dc
from discreet.design import Design
from discreet.errors import WideBracketWarning
from tests.design.mechanisms import Floats

Integers = NDArray[np.int64]
Function = Callable[[Floats], Floats]

FUNCTIONS: dict[str, tuple[Function, Function]] = {  # f and a slope of it
    "kl": (lambda x: x * np.log(x), lambda x: np.log(x) + 1.0),
    "tv": (lambda x: np.abs(x - 1.0) / 2.0, lambda x: np.sign(x - 1.0) / 2.0),
    "hellinger": (lambda x: np.square(1.0 - np.sqrt(x)), lambda x: 1.0 - 1.0 / np.sqrt(x)),
    "chi2": (lambda x: np.square(x - 1.0), lambda x: 2.0 * (x - 1.0)),
    "cusp": (lambda x: np.abs(x - 1.0) ** 1.5, lambda x: 1.5 * np.sign(x - 1.0) * np.sqrt(np.abs(x - 1.0))),
    "tv + chi2": (
        lambda x: np.abs(x - 1.0) / 2.0 + np.square(x - 1.0),
        lambda x: np.sign(x - 1.0) / 2.0 + 2.0 * (x - 1.0),
    ),
    "three edges": (
        lambda x: np.maximum(x - 2.0, 0.0) + np.maximum(0.5 - x, 0.0) + 0.2 * np.abs(x - 1.0),
        lambda x: np.where(x > 2.0, 1.0, 0.0) - np.where(x < 0.5, 1.0, 0.0) + 0.2 * np.sign(x - 1.0),
    ),
}
AT_ZERO = {"kl": 0.0, "tv": 0.5, "hellinger": 1.0, "chi2": 1.0, "cusp": 1.0, "tv + chi2": 1.5, "three edges": 0.7}
OWN = ("cusp", "tv + chi2", "three edges")
DIVERGENCES: dict[str, dc.FDivergence] = {
    name: dc.FDivergence(f, name=name) if name in OWN else dc.divergence(name) for name, (f, _) in FUNCTIONS.items()
}
ROUGH = np.concatenate([np.linspace(-16.0, -2.2, 24), np.linspace(-2.0, 2.0, 33), np.linspace(2.2, 14.0, 24)])
NEAR = np.concatenate(
    [ROUGH, [-1e-9, 1e-9], math.log(2.0) + np.array([-1e-9, 1e-9]), -math.log(2.0) + np.array([-1e-9, 1e-9])]
)
REFINED = (0.03, 1e-3, 3e-5)  # of log p/q, around each solution
SLACK = 1e-7  # what the programmes here may miss


@dataclass(frozen=True)
class Case:
    """What a design is asked for."""

    laws: Floats
    epsilon: float
    name: str
    over: str
    keep: float


def generated(number: int) -> Case:
    """One to eight clients on two to eight outcomes: a sure one beside a spread one, few-valued, spread out or with many zeros."""
    rng = np.random.default_rng(number)
    k, n = int(rng.integers(2, 9)), int(rng.integers(1, 9))
    match rng.integers(4):
        case 0:
            laws = np.vstack([np.eye(k)[0], rng.dirichlet(np.ones(k))])
        case 1:
            laws = rng.dirichlet(np.full(k, 0.3), n)
        case 2:
            laws = rng.dirichlet(np.full(k, 3.0), n)
        case _:
            laws = rng.dirichlet(np.ones(k), n) * (rng.random((n, k)) < 0.5)
            laws[np.arange(n), rng.integers(k, size=n)] += 0.1
    laws /= laws.sum(axis=1, keepdims=True)
    epsilon = math.exp(rng.uniform(math.log(0.01), math.log(12.0))) if rng.random() < 0.5 else rng.uniform(4.0, 12.0)
    over = ("mean", "worst")[rng.integers(2)]
    name = list(FUNCTIONS)[number % len(FUNCTIONS)]
    return Case(laws, float(epsilon), name, over, float(rng.choice([0.0, 0.01, 0.5])) if over == "mean" else 0.0)


class Programme:
    """The linear programme of a case. Columns: q of the clients (and of the k point masses where something is kept for them), the
    least of each column of q, a cost for each entry of the clients, the largest sum of costs.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.n, self.k = case.laws.shape
        self.ratio = math.exp(case.epsilon)
        people = self.n + (self.k if case.keep else 0)
        self.size = people * self.k
        self.least, self.cost = self.size, self.size + self.k
        self.wide = self.cost + self.n * self.k + 1
        each, x = np.arange(self.size), np.arange(self.size) % self.k
        below = self.rows((each, self.least + x, 1.0), (each, each, -1.0))
        above = self.rows((each, self.least + x, -1.0), (each, each, 1.0 / self.ratio))
        costs = np.arange(self.n * self.k)
        worst = self.rows(
            (costs // self.k, self.cost + costs, 1.0), (np.arange(self.n), np.full(self.n, self.wide - 1), -1.0)
        )
        self.fixed = sparse.vstack([below, above, worst] if case.over == "worst" else [below, above])
        self.sums = self.rows((each // self.k, each, 1.0))
        self.bounds = np.tile([0.0, 1.0], (self.wide, 1))
        self.bounds[self.cost :] = [-np.inf, np.inf]
        if case.keep:
            sure = (self.n + np.arange(self.k)) * self.k + np.arange(self.k)
            self.bounds[sure, 0] = case.keep * self.ratio / (self.ratio + self.k - 1)
        self.objective = np.zeros(self.wide)
        if case.over == "worst":
            self.objective[-1] = 1.0
        else:
            self.objective[self.cost : -1] = 1.0 / self.n

    def rows(self, *parts: tuple[Integers, Integers, Floats | float]) -> sparse.csr_array:
        rows, columns = (np.concatenate([np.asarray(part[place]) for part in parts]) for place in (0, 1))
        values = np.concatenate(
            [np.broadcast_to(np.asarray(part[2], dtype=float), np.shape(part[0])) for part in parts]
        )
        return sparse.csr_array((values, (rows, columns)), shape=(int(rows.max()) + 1, self.wide))

    def bracket(self) -> tuple[float, float]:
        """(lower, upper) around the least mean or largest divergence of any epsilon-LDP sampler that keeps what is asked."""
        p = self.case.laws.ravel()
        held, zero = np.flatnonzero(p > 0.0), np.flatnonzero(p == 0.0)
        entries, log_t = np.repeat(held, NEAR.size), np.tile(NEAR, held.size)
        lower, upper = -math.inf, math.inf
        for reach in (*REFINED, 0.0):
            value, q = self._solved(zero, entries, log_t)
            lower, upper = max(lower, value), min(upper, self._reached(q))
            near = np.log(p[held] / np.maximum(q.ravel()[held], 1e-12))
            entries = np.concatenate([entries, *[held] * 3])
            log_t = np.concatenate([log_t, near - reach, near, near + reach])
        return lower, upper

    def _solved(self, zero: Integers, entries: Integers, log_t: Floats) -> tuple[float, Floats]:
        f, slope_of = FUNCTIONS[self.case.name]
        p, t = self.case.laws.ravel()[entries], np.exp(log_t)
        tilt = 1.0 if self.case.name == "kl" else 0.0  # f(x) - (x - 1), which is never negative
        value, slope = f(t) - tilt * (t - 1.0), slope_of(t) - tilt
        intercept = value - slope * t
        scale = 1.0 / np.maximum(1.0, np.abs(intercept))
        lines = self.rows(
            (np.arange(t.size), self.cost + entries, -scale), (np.arange(t.size), entries, scale * intercept)
        )
        parts, right = [self.fixed, lines], [np.zeros(self.fixed.shape[0]), -scale * slope * p]
        if zero.size:
            at_zero = AT_ZERO[self.case.name] + tilt
            parts.append(
                self.rows((np.arange(zero.size), self.cost + zero, -1.0), (np.arange(zero.size), zero, at_zero))
            )
            right.append(np.zeros(zero.size))
        found = linprog(
            self.objective, A_ub=sparse.vstack(parts), b_ub=np.concatenate(right), A_eq=self.sums,
            b_eq=np.ones(self.sums.shape[0]), bounds=self.bounds, method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        assert found.status == 0, found.message
        return float(found.fun), found.x[: self.n * self.k].reshape(self.n, self.k)

    def _reached(self, q: Floats) -> float:
        """What the mechanism costs; where an outcome is missed by rounding, more."""
        q = np.maximum(q, 1e-300)
        found = np.asarray(DIVERGENCES[self.case.name](self.case.laws, q / q.sum(axis=1, keepdims=True)))
        return float(found.max() if self.case.over == "worst" else found.mean())


@dataclass(frozen=True)
class Answer:
    """A design of a case: its bracket, whether that was called wide, and what is wrong with it, if anything is."""

    value: float
    bound: float
    wide: bool
    complaint: str | None


def answer(case: Case, *, compared: bool = True) -> Answer:
    """The design, held against its own sampler, rationals and, if asked, the programme over all mechanisms."""
    f = DIVERGENCES[case.name]
    keep = case.keep if case.over == "mean" else None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = dc.design(
            dc.Simplex(case.laws.shape[1]),
            epsilon=case.epsilon,
            clients=case.laws,
            divergence=f,
            over=case.over,
            keep=keep,
        )
    wide = any(issubclass(each.category, WideBracketWarning) for each in told)
    return Answer(found.value, found.bound, wide, _complaint(case, found, wide, compared))


def _complaint(case: Case, found: Design, wide: bool, compared: bool) -> str | None:
    served = np.asarray(found.divergence(case.laws, found.sampler.output(case.laws)))
    cost = float(served.max() if case.over == "worst" else served.mean())
    if abs(cost - found.value) > 1e-6 * found.value + 1e-9:
        return f"the sampler costs {cost}, the design says {found.value}"
    if not wide and found.value - found.bound > max(1e-4 * found.value, 1e-7):
        return f"[{found.bound}, {found.value}] is wide, and nobody said so"
    if case.name not in OWN and Fraction(found.bound) > max(found.certificate.exact(), Fraction(0)):
        return f"the bound {found.bound} is above what rationals prove"
    if compared:
        lower, upper = Programme(case).bracket()
        if found.bound > upper + SLACK:
            return f"the bound {found.bound} is above a mechanism's {upper}"
        if found.value < lower - SLACK:
            return f"the value {found.value} is below {lower}, which no mechanism is below"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong, wide, slowest, begun = 0, Counter[tuple[str, str]](), 0.0, time.monotonic()
    for number in range(options.seed, options.seed + options.designs):
        case, start = generated(number), time.monotonic()
        try:
            found = answer(case)
            complaint = found.complaint
            wide[case.name, case.over] += found.wide
        except dc.DiscreetError as problem:
            complaint = f"refused: {problem}"
        slowest = max(slowest, time.monotonic() - start)
        if complaint is not None:
            wrong += 1
            sys.stdout.write(f"{number}: {case.name}, {case.over}, epsilon {case.epsilon:.4g}: {complaint}\n")
    for (name, over), times in sorted(wide.items()):
        if times:
            sys.stdout.write(f"{name}, {over}: {times} wide brackets\n")
    spent = time.monotonic() - begun
    sys.stdout.write(
        f"{options.designs} designs in {spent:.0f} s (slowest {slowest:.1f} s), {wide.total()} wide, {wrong} wrong\n"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
