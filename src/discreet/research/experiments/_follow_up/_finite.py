"""Figures 3 and 5 to 9 of the follow-up: worst cases on k outcomes, of everybody and of the clients near a public uniform law.

The local class is 1/gamma <= k P(x) <= gamma with gamma = k/2 - 1. A third class is ours: 1/2 <= k P(x) <= 9/8, whose extreme clients hold
four fifths of the space, where the published t = 1/alpha is larger than need be. Clients are drawn at random and moved into the class,
so that both mechanisms can be compared one client at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.divergences import divergence
from discreet.families import Band, FiniteFamily, Simplex
from discreet.mechanisms import nearest_member
from discreet.research.experiments._follow_up._comparing import compare_class
from discreet.research.experiments._follow_up._notions import (
    FOLLOW_UP_BUDGETS,
    FOLLOW_UP_DIVERGENCES,
    NOTION_KINDS,
    ClassAtBudget,
    privacy_notion,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FiniteClasses:
    """Everybody on k outcomes ("global"), the clients near the uniform law ("local") and those spread widely ("wide"), under one notion."""

    unit: str
    kind: str
    budget: float
    notion: str
    outcomes: int
    classes: dict[str, ClassAtBudget]


@final
@dataclass(frozen=True)
class LocalFinite:
    """Minimax values of both classes by both calibrations, and the projection against the linear mechanism on random clients."""

    name: str = "local_finite"
    outcomes: tuple[int, ...] = (10, 20, 100)
    kinds: tuple[str, ...] = NOTION_KINDS
    budgets: tuple[float, ...] = FOLLOW_UP_BUDGETS
    clients: int = 400
    seed: int | None = 11
    quick: bool = False
    computes: str = "minimax values of three classes of clients under four notions of privacy, and clients one by one"
    record: type[FiniteClasses] = FiniteClasses

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("outcomes", "kinds", "budgets", "clients")}

    @property
    def units(self) -> Sequence[str]:
        return [f"{k}/{kind}/{budget:g}" for k in self.outcomes for kind in self.kinds for budget in self.budgets]

    def results(self, units: Sequence[str]) -> Iterator[list[FiniteClasses]]:
        for unit in units:
            size, kind, budget = unit.split("/")
            k, privacy = int(size), privacy_notion(kind, float(budget))
            families: dict[str, FiniteFamily] = {
                "global": Simplex(k),
                "local": Band([1] * k, lower=2 / (k - 2), upper=k / 2 - 1),
                "wide": Band([1] * k, lower=0.5, upper=1.125),
            }
            classes = {name: self._class(family, privacy) for name, family in families.items()}
            yield [FiniteClasses(unit, kind, float(budget), str(privacy), k, classes)]

    def _class(self, family: FiniteFamily, privacy: Any) -> ClassAtBudget:
        laws = self._clients(family)

        def costs(sampler: Any) -> dict[str, Floats]:
            q = sampler.output(laws)
            return {f: np.asarray(divergence(f)(laws, q)) for f in FOLLOW_UP_DIVERGENCES}

        return compare_class(family, privacy, len(laws), costs)

    def _clients(self, family: FiniteFamily) -> Floats:
        """Of all shapes: from nearly even to nearly one outcome."""
        rng = np.random.default_rng([self.seed or 0, family.size])
        shapes = (0.1, 0.5, 1.0, 5.0)
        drawn = [rng.dirichlet(np.full(family.size, each), self.clients // len(shapes)) for each in shapes]
        return nearest_member(family, np.maximum(np.vstack(drawn), 1e-12))
