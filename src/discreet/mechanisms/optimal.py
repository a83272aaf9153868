"""Q*: the minimax-optimal sampler, for every f-divergence at once [paper, Thms 3.1, 3.3 and C.4]."""

from functools import cached_property
from typing import final

from discreet.divergences import FDivergence
from discreet.mechanisms.sampler import ProjectingSampler
from discreet.tradeoff import Constants, Risk, is_identity, minimax_risk, optimal_constants


@final
class OptimalSampler(ProjectingSampler):
    """Q*(P) = clip(P/r_P, b mu, b e^eps mu): the projection of P onto the optimal box.

    On `Simplex(k)` that is max(P(x)/r_P, 1/(e^eps + k - 1)). A client outside the family keeps its privacy (the box does
    not care); only the bound on its utility is lost. Where the identity is already private, the box holds the whole family.
    """

    @cached_property
    def constants(self) -> Constants:
        return optimal_constants(self.family.bounds, self.epsilon)

    @property
    def identity(self) -> bool:
        """Whether the family is so narrow that a raw draw is epsilon-LDP: then output(p) = p for every member."""
        return is_identity(self.family.bounds, self.epsilon)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The minimax risk: no epsilon-LDP sampler has a smaller worst case (exact where `.tight`, else an upper bound)."""
        return minimax_risk(self.family, epsilon=self.epsilon, divergence=divergence)
