"""`design`: the best epsilon-LDP sampler for example clients, on outcomes (`Design`) or on a line (`LineDesign`), with a lower bound.

The examples must be public, or have spent a budget of their own. A floor fitted on the clients that it then serves depends on them, and that
is a release that nobody accounted for. The privacy of the clients served does not rest on the examples: for every floor m, all output
distributions lie between m and e^eps m.

**On cells.** A design on a line gives a reference for `DensityBand`. Cut the interval into cells. Every epsilon-LDP sampler on the line is
one on the cells, and D_f can only be smaller there (data processing). So the certified bound of T1 (`discreet.design._floors`) for the
examples on cells holds for every sampler on the line, and for the examples themselves. Conversely let m be a floor on the cells, h the
density that is uniform inside each cell with the masses m/|m|, and alpha = (1/|m| - 1)/(e^eps - 1). Q* of the band 0 <= p/h <= 1/alpha has
the floor |m| h, whose cells have the masses m. A client that is uniform inside cells has constant p/h on each cell, hence clip(p/h) is
constant there too. So its output on the line is that on the cells, with the same divergence. The design's `value` is therefore the cost of
its own sampler for the examples' histograms, and `value` and `bound` are as close as on outcomes.

The band makes no claim about clients (`any_client=True`): a client outside it is projected too, and its release is epsilon-LDP. `output`
describes a density by its own shape. `sampler` releases by the design's own cells, so a client that is a list of values is served by the
design on cells itself, and `worst` bounds its loss. That worst case is over all distributions that are uniform inside cells. Over all
distributions on a line every sampler has the largest possible worst case (`discreet.projection._worst_case`), which `sampler.risk` reports.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike

from discreet import divergences
from discreet._base import OldName
from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet._base.showing import pluralise
from discreet.design._floors import (
    DesignCertificate,
    ExampleClients,
    Floats,
    as_example_clients,
    band_of_floor,
    client_laws_on_cells,
    equal_mass_cell_edges,
)
from discreet.design._smoothing import (
    KEEP_SMOOTHED,
    LARGEST_SMOOTHED,
    Smoother,
    Smoothing,
)
from discreet.design._solving import (
    NEGLIGIBLE_GAP,
    FloorBracket,
    Progress,
    best_floor_for_mean,
    mean_divergence,
    minimax_floor,
    worst_divergence,
)
from discreet.divergences import FDivergence, RenyiDivergence
from discreet.errors import (
    POSITIVE,
    PROBABILITY,
    DiscreetError,
    ImpossibleError,
    LargeEpsilonWarning,
    WideBracketWarning,
    check_callable,
    check_count,
    warn_caller,
)
from discreet.families import (
    LARGEST_ENUMERATED,
    Band,
    ContinuousFamily,
    DensityBand,
    FiniteFamily,
    Simplex,
    Tabulated,
    band_vertices,
)
from discreet.mechanisms import Cells, OptimalSampler
from discreet.privacy import check_epsilon
from discreet.privacy.tradeoff import Risk
from discreet.projection import NEGLIGIBLE

DESIGN_CELLS = 128
LARGEST_CELLS = 4096
_NEAR_ZERO = 1e-100  # where a line that begins a little below f(0) touches f
_UNTOLD = 1e-250  # more than the total of all masses that count as zero


@final
@dataclass(frozen=True, eq=False)
class LineDesign:
    """A designed sampler on a line: `sampler` is Q* of `family` at `epsilon`.

    Attributes:
        family: the band around the designed reference, which serves everybody.
        sampler: its optimal sampler, which releases by the design's cells.
        edges: the increasing edges of the cells on which the examples were seen.
        on_cells: the design on the cells as outcomes.
        estimated: the numbers of the examples that are bare functions, or other densities without a distribution function; if there are any,
            `bound` is an estimate.
    """

    family: DensityBand
    sampler: OptimalSampler[DensityBand]
    edges: Floats
    on_cells: Design
    estimated: tuple[int, ...] = ()

    @property
    def epsilon(self) -> float:
        """The budget of one release."""
        return self.on_cells.epsilon

    @property
    def divergence(self) -> FDivergence:
        """The divergence that was minimised."""
        return self.on_cells.divergence

    @property
    def keep(self) -> float:
        """The share of the best worst case on the cells that was kept."""
        return self.on_cells.keep

    @property
    def examples(self) -> int:
        """How many clients it was fitted on."""
        return self.on_cells.examples

    @property
    def value(self) -> float:
        """The divergence of the examples under the design, each uniform inside the cells."""
        return self.on_cells.value

    @property
    def is_certified(self) -> bool:
        """Whether `bound` is proved: the masses of every example on the cells are enclosed, and the proof accounts for the width."""
        return not self.estimated

    @property
    def bound(self) -> float:
        """A lower bound on the examples' divergence under any epsilon-LDP sampler on the line; an ESTIMATE unless `is_certified`."""
        return self.on_cells.bound

    @property
    def certificate(self) -> DesignCertificate:
        """The proof of the bound; an error if the bound is an estimate."""
        if not self.is_certified:
            raise DiscreetError(
                f"there is no certificate: clients[{self.estimated[0]}] has no distribution function, so its masses on the cells "
                "and the bound are estimates. Give a scipy.stats distribution, a Mixture or a Tabulated. Or state an error bound: "
                "BoundedDensity(density, cdf=..., error=...) or BoundedDensity(density, lipschitz=...)"
            )
        return self.on_cells.certificate

    def worst(self, divergence: str | FDivergence) -> Risk:
        """The exact worst case over all distributions that are uniform inside cells, members of the band or not."""
        return self.on_cells.worst(divergence)

    def __repr__(self) -> str:
        low, high = self.edges[[0, -1]]
        on_cells = repr(self.on_cells)
        if not self.is_certified:
            on_cells = on_cells.replace("no sampler below", "estimated lower bound (not certified)")
        return f"LineDesign(<{self.edges.size - 1} cells of {low:g} to {high:g}>, {on_cells})"

    certified = OldName("is_certified")


def design_on_interval_cells(
    family: ContinuousFamily, clients: Any, cells: int | None, request: DesignRequest
) -> LineDesign:
    """The design on the cells of a family on an interval."""
    edges = equal_mass_cell_edges(
        family, DESIGN_CELLS if cells is None else check_count("cells", cells, least=2, most=LARGEST_CELLS)
    )
    cell_laws = client_laws_on_cells(clients, edges)
    cell_design = request.design_on_outcomes(Simplex(edges.size - 1), cell_laws.laws, on_cells=True)
    if cell_laws.mass_bounds is not None and not cell_laws.estimated:
        cell_design = _certify_design_by_enclosures(cell_design, cell_laws.laws, cell_laws.mass_bounds, request.weights)
    mu = np.broadcast_to(cell_design.family.reference, edges.size - 1)
    table = Tabulated(edges, mu / np.diff(edges))
    band = DensityBand(table, lower=0.0, upper=cell_design.family.bounds.upper, any_client=True)
    sampler = OptimalSampler(band, epsilon=cell_design.epsilon, discretisation=cells_keeping_given_masses(mu))
    return LineDesign(band, sampler, edges, cell_design, cell_laws.estimated)


def _certify_design_by_enclosures(base: Design, laws: Floats, bounds: tuple[Floats, Floats], weights: Any) -> Design:
    """The design with a bound that holds for every distribution within the enclosures, and its certificate."""
    examples, least, most = base.certificate.examples, *bounds
    if base.over == "worst":  # the worst case is at least any mean of the clients, so any subset gives a bound
        rows = np.array([int(np.argmin(np.abs(laws - law).max(axis=1))) for law in examples.dense_laws()])
    else:
        rows = np.arange(len(laws)) if weights is None else np.flatnonzero(np.asarray(weights, dtype=np.float64) > 0.0)
    entry = rows[examples.client_of_entry], examples.seen_outcomes[examples.outcome]
    unseen_most = most[rows]  # a copy
    unseen_most[examples.client_of_entry, entry[1]] = 0.0
    f, growth = (base.divergence, float(examples.size) + math.exp(min(base.epsilon, LARGEST_FLOAT_EXPONENT)))
    fall = max(f.at_zero - float(f.f(np.array(_NEAR_ZERO))), 0.0)
    penalty = 2.0 * growth * fall + _UNTOLD if unseen_most.any() else 0.0
    certificate = base.certificate.extend_to_enclosures(least[entry], most[entry], penalty)
    bound = min(base.bound, max(certificate.lower_bound(), 0.0))
    return replace(base, bound=bound, certificate=certificate)


def cells_keeping_given_masses(mu: Floats) -> Cells:
    """The cells of a table with these masses, unchanged; halved only where one of them is heavier than 1/2."""
    return Cells(max(2, math.floor(1.0 / float(mu.max()))))


LARGEST_DOMAIN = 2**24
_KEEP = 0.01
_SMALLEST_EPSILON, _LARGEST_EPSILON = 1e-9, 30.0
LARGEST_SEEN = 8192  # outcomes in the examples' supports: the solver keeps a square matrix of them


@dataclass(frozen=True, eq=False)
class Design:
    """A designed sampler: `sampler` is Q* of `family` at `epsilon`.

    Over the mean, `value` is the mean divergence over the examples, and `bound` a lower bound for every epsilon-LDP sampler that keeps
    `keep`. Over the worst, both are about the largest divergence over the convex hull of the examples.

    Attributes:
        family: the band whose optimal sampler it is.
        sampler: that sampler.
        epsilon: the budget of one release.
        divergence: the divergence that was minimised.
        over: "mean" or "worst".
        keep: the share of the best worst case that was kept.
        examples: how many clients it was fitted on.
        value: their divergence under the design.
        bound: a lower bound on their divergence under any sampler.
        certificate: the proof of the bound.
        smoothing: how the examples were smoothed; None if they were not.
    """

    family: Band
    sampler: OptimalSampler[FiniteFamily]
    epsilon: float
    divergence: FDivergence
    over: str
    keep: float
    examples: int
    value: float
    bound: float
    certificate: DesignCertificate = field(repr=False)
    smoothing: Smoothing | None = None

    def worst(self, divergence: str | FDivergence) -> Risk:
        """The exact worst case over all distributions, members of the band or not."""
        return self.sampler.risk(divergence)

    def __repr__(self) -> str:
        who = pluralise(self.examples, "example")
        over = f"mean {self.divergence.name} {self.value:.5g} over {who}"
        if self.over == "worst":
            over = f"worst {self.divergence.name} {self.value:.5g} over the hull of {who}"
        return (
            f"Design(<{self.family.size} outcomes>, epsilon={self.epsilon:g}, keep={self.keep:g}: {over}, no sampler below "
            f"{self.bound:.5g}; worst case over everybody {float(self.worst(self.divergence)):.5g}"
            + (f"; smoothed: {self.smoothing.description})" if self.smoothing else ")")
        )


@overload
def design(
    family: Simplex | Band,
    *,
    epsilon: float,
    clients: Any = None,
    weights: ArrayLike | None = None,
    divergence: str | FDivergence = "kl",
    keep: float | None = None,
    over: str = "mean",
    smoothing: str | None = None,
    tolerance: float | None = None,
    cells: None = None,
    progress: Progress | None = None,
) -> Design: ...
@overload
def design(
    family: ContinuousFamily,
    *,
    epsilon: float,
    clients: Any = None,
    weights: ArrayLike | None = None,
    divergence: str | FDivergence = "kl",
    keep: float | None = None,
    over: str = "mean",
    smoothing: str | None = None,
    tolerance: float | None = None,
    cells: int | None = None,
    progress: Progress | None = None,
) -> LineDesign: ...
def design(
    family: Simplex | Band | ContinuousFamily,
    *,
    epsilon: float,
    clients: Any = None,
    weights: ArrayLike | None = None,
    divergence: str | FDivergence = "kl",
    keep: float | None = None,
    over: str = "mean",
    smoothing: str | None = None,
    tolerance: float | None = None,
    cells: int | None = None,
    progress: Progress | None = None,
) -> Design | LineDesign:
    """The best epsilon-LDP sampler for the given clients, with a certificate.

    WARNING: fit on public examples, or on clients whose own release this is. A design fitted on the clients that it then serves breaks their
    guarantee.

    Args:
        family: the public outcomes, a `Simplex`; over="worst" also takes a `Band` of at most 12 outcomes, whose vertices are the clients. A
            continuous family on an interval stands for its cells, and the design is a `DensityBand` around a designed reference.
        epsilon: the budget of one release.
        clients: distributions (n, k), one a row; or a scipy.sparse matrix (n, k) of counts or probabilities, each row of which is divided by
            its sum. On an interval also a list, each entry a density (a function, a scipy.stats distribution, ...) or an array of the
            client's points.
        weights: the weight of each example in the mean, (n,); equal by default.
        divergence: "kl", "tv", "hellinger", "chi2", any other name, or an `FDivergence`, with kinks or without.
        keep: in [0, 1], the share of the best worst case over everybody that must remain. For every client, an outcome of probability 1 is
            released with at least `keep` times the probability under Q* of the simplex. 1 is Q* itself; 0.01 by default. Below 2^-30 it
            counts as 2^-30, so that every outcome can be released.
        over: "mean" for the smallest mean over the examples; "worst" for the smallest largest divergence over their convex hull. The latter
            is the minimax where no formula is known, as a certified bracket, and keeps nothing for other clients.
        smoothing: None for a design for the examples themselves, "auto" for one that cross-validation on the examples chooses. Few examples
            miss rare clients, which matters most at an epsilon of 4 and more. "auto" makes about twenty designs. Its `value` and `bound` are
            about the examples themselves, so they differ by the cost of smoothing; `keep` is then 0.001 by default.
        tolerance: the allowed distance of value and bound, relative to the value (below 1e-10 they count as equal). A wider bracket raises an
            error. By default it is returned with a `WideBracketWarning` if it is wider than 1e-4 of the value and 1e-7.
        cells: the least number of cells of an interval, of about equal mass under the family's reference; 128 by default.
        progress: called with the share of the work that is done, from 0 to 1, during a design over the mean.

    Returns:
        A `Design`, on an interval a `LineDesign`: `.family`, `.sampler`, `.value`, `.bound`, `.worst(divergence)`. On an interval
            `.is_certified` says whether the bound is proved; it is an estimate if an example is a bare function.

    Raises:
        DiscreetError: for examples that are not distributions on the outcomes, arguments out of range, examples with more than 8,192
            outcomes, or a bracket wider than `tolerance`.
        ImpossibleError: if f(0) is infinite and an example leaves an outcome out: every epsilon-LDP sampler then has an infinite mean.
    """
    request = DesignRequest(
        check_epsilon(epsilon), divergences.divergence(divergence), weights, keep, over, smoothing, tolerance, progress
    )
    if isinstance(family, ContinuousFamily):
        return design_on_interval_cells(family, clients, cells, request)
    if cells is not None:
        raise DiscreetError(f"cells = {cells!r} is for continuous families; {family!r} has its outcomes")
    return request.design_on_outcomes(family, clients)


@dataclass(frozen=True, eq=False)
class DesignRequest:
    """What `design` was asked for, but for the family and its clients; checked when it is made."""

    epsilon: float
    f: FDivergence
    weights: ArrayLike | None
    keep: float | None
    over: str
    smoothing: str | None
    tolerance: float | None
    progress: Progress | None

    def __post_init__(self) -> None:
        f, over, smoothing = self.f, self.over, self.smoothing
        if isinstance(f, RenyiDivergence):
            raise DiscreetError(
                f"divergence = {f.name} is a function of {f.alpha.name}, whose mean and worst case a design makes small; use that one"
            )
        if not isinstance(over, str) or over not in ("mean", "worst"):
            raise DiscreetError(f"over = {over!r} is not one of 'mean', 'worst'")
        if smoothing is not None and not (isinstance(smoothing, str) and smoothing == "auto"):
            raise DiscreetError(f"smoothing = {smoothing!r} is not one of None, 'auto'")
        if smoothing and over == "worst":
            raise DiscreetError("smoothing is for over='mean'; the worst case of given clients needs none")
        if self.tolerance is not None:
            POSITIVE.check("tolerance", self.tolerance)
        if self.progress is not None:
            check_callable("progress", self.progress, "pass a function of the share that is done, from 0 to 1")

    @property
    def solver_epsilon(self) -> float:
        """The budget that the solver works at: where floats distinguish e^epsilon from 1, and 1 from e^-epsilon."""
        return min(max(self.epsilon, _SMALLEST_EPSILON), _LARGEST_EPSILON)

    def design_on_outcomes(self, family: Simplex | Band, clients: Any, *, on_cells: bool = False) -> Design:
        """The design for clients on the outcomes of a finite family; on the cells of a line its bound is still to be lowered."""
        if not isinstance(family, (Simplex, Band)):
            raise DiscreetError(
                f"family = {family!r} is neither a Simplex nor a Band; give the public outcomes, as Simplex(outcomes)"
            )
        if not 2 <= family.size <= LARGEST_DOMAIN:
            raise DiscreetError(f"family has {family.size:,} outcomes; a design is for 2 to {LARGEST_DOMAIN:,}")
        if clients is not None and not hasattr(clients, "tocsr"):
            clients = family.as_rows(clients, "clients")
        if clients is not None and not on_cells:
            self._refuse_masses_taken_for_zero(clients)
        return (
            self._design_for_worst_case(family, clients)
            if self.over == "worst"
            else self._design_for_mean(family, clients)
        )

    def _refuse_masses_taken_for_zero(self, clients: Any) -> None:
        """Reject probabilities so small that they count as 0 if the divergence distinguishes them from 0: the bound would be too high."""
        if self.f.at_zero - float(self.f.f(np.array(NEGLIGIBLE))) <= NEGLIGIBLE_GAP:
            return
        masses = clients
        if hasattr(clients, "tocsr"):
            rows = clients.tocsr()
            total = np.asarray(rows.sum(axis=-1), dtype=np.float64).ravel()
            with np.errstate(all="ignore"):  # invalid rows are refused where they are read
                masses = rows.data / (np.repeat(total, np.diff(rows.indptr)) if rows.ndim == 2 else total)
        if ((masses > 0.0) & (masses <= NEGLIGIBLE)).any():
            raise DiscreetError(
                f"clients holds probabilities of at most {NEGLIGIBLE:g}, which count as 0, but {self.f.name} distinguishes them from 0; "
                "replace them by 0 or by larger ones, or use a divergence such as 'kl'"
            )

    def _design_for_mean(self, family: Simplex | Band, clients: Any) -> Design:
        default_keep = KEEP_SMOOTHED if self.smoothing else _KEEP
        keep = PROBABILITY.check(
            "keep",
            default_keep if self.keep is None else self.keep,
            "give the share of the best worst case that must remain",
        )
        if isinstance(family, Band):
            raise DiscreetError(
                f"family = {family!r} is not a Simplex; a design over the mean serves everybody, so give the outcomes alone, as "
                "Simplex(outcomes)"
            )
        if clients is None:
            raise DiscreetError(
                "clients is missing; give public examples, one law a row, or see Simplex.spread where there are none"
            )
        examples = as_example_clients(clients, self.weights, family.size)
        if examples.seen_outcomes.size > LARGEST_SEEN:
            raise DiscreetError(
                f"clients hold {examples.seen_outcomes.size:,} different outcomes, more than {LARGEST_SEEN:,}; merge rare outcomes into one, "
                "or take fewer examples"
            )
        self._refuse_infinite_divergence(bool(examples.partial_support_indicators.any()))
        bracket = best_floor_for_mean(examples, self.f, self.solver_epsilon, keep, self.progress)
        base = self._design_of_floor(bracket, family, keep, examples, mean_divergence)
        return _design_with_chosen_smoothing(base, examples, self.solver_epsilon) if self.smoothing else base

    def _design_for_worst_case(self, family: Simplex | Band, clients: Any) -> Design:
        if self.keep:
            raise DiscreetError(
                f"keep = {self.keep!r} is for over='mean'; the worst case over the hull keeps nothing for others"
            )
        if self.weights is not None:
            raise DiscreetError("weights are for over='mean'; the worst case finds its own")
        if clients is None:
            if not isinstance(family, Band) or family.any_client or family.size > LARGEST_ENUMERATED:
                raise DiscreetError(
                    f"clients is missing: {family!r} is not a Band of at most {LARGEST_ENUMERATED} outcomes, whose vertices could stand "
                    "for it; give laws (n, k)"
                )
            mu = np.broadcast_to(family.reference, family.size)
            clients = np.unique(band_vertices(mu, family.bounds.lower, family.bounds.upper).laws, axis=0)
            self._refuse_masses_taken_for_zero(clients)
        laws = as_example_clients(clients, None, family.size).dense_laws()
        self._refuse_infinite_divergence(bool((laws == 0.0).any()))
        bracket = minimax_floor(laws, self.f, self.solver_epsilon)
        return self._design_of_floor(
            bracket, family, 0.0, as_example_clients(laws, None, family.size), worst_divergence
        )

    def _refuse_infinite_divergence(self, partial: bool) -> None:
        if np.isinf(self.f.at_zero) and partial:
            raise ImpossibleError(
                f"{self.f.name} is infinite for a client that leaves an outcome out, under every epsilon-LDP sampler; use a divergence with "
                "finite f(0), such as 'kl'"
            )

    def _design_of_floor(
        self,
        bracket: FloorBracket,
        family: Simplex | Band,
        keep: float,
        examples: ExampleClients,
        cost: Callable[[ExampleClients, FDivergence, Floats, float], float],
    ) -> Design:
        """The design of a floor for the solver's budget; its `cost` for the examples is computed anew at another budget."""
        self._warn_of_or_refuse_wide_bracket(bracket)
        if self.epsilon != self.solver_epsilon:
            bracket = self._convert_floor_to_requested_epsilon(
                bracket, lambda floor, ratio: cost(examples, self.f, floor, ratio)
            )
        band = band_of_floor(bracket.floor, min(self.epsilon, LARGEST_FLOAT_EXPONENT), family)
        sampler = OptimalSampler(band, epsilon=self.epsilon)
        terms = (self.over, keep, len(examples), bracket.value, bracket.bound, bracket.certificate)
        return Design(band, sampler, self.epsilon, self.f, *terms)

    def _warn_of_or_refuse_wide_bracket(self, bracket: FloorBracket) -> None:
        """Refuse a bracket wider than the tolerance; without a tolerance, warn of one that is wider than usual."""
        sides = f"the {self.f.name} of the best sampler is at most {bracket.value:.8g} and at least {bracket.bound:.8g}"
        if self.tolerance is None:
            if not bracket.is_settled:
                warn_caller(
                    f"the design's bracket is wide: {sides}; tolerance= makes that an error", WideBracketWarning
                )
        elif bracket.value - bracket.bound > max(self.tolerance * bracket.value, NEGLIGIBLE_GAP):
            raise DiscreetError(
                f"the design's bracket is wider than tolerance = {self.tolerance:g} of its value: {sides}; leave tolerance out to get it "
                "anyway"
            )

    def _convert_floor_to_requested_epsilon(
        self, bracket: FloorBracket, value: Callable[[Floats, float], float]
    ) -> FloorBracket:
        """A floor for the solver's budget, as the floor of the same band at the requested budget.

        A bound for a larger budget bounds all samplers of a smaller one; beyond the largest budget the bound is 0.
        """
        total = float(bracket.floor.sum())
        alpha = (1.0 / total - 1.0) / math.expm1(self.solver_epsilon)
        capped_epsilon = min(self.epsilon, LARGEST_FLOAT_EXPONENT)
        floor = bracket.floor / total / (1.0 + alpha * math.expm1(capped_epsilon))
        new_value = max(0.0, value(floor, math.exp(capped_epsilon)))
        bound = min(bracket.bound, new_value) if self.epsilon < self.solver_epsilon else 0.0
        return FloorBracket(floor, new_value, bound, bracket.certificate)


def _design_with_chosen_smoothing(base: Design, examples: ExampleClients, epsilon: float) -> Design:
    """The sampler that the examples choose, with the bound of the design for the examples themselves."""
    if math.isinf(base.divergence.at_zero):
        raise DiscreetError(
            f"smoothing = 'auto' counts point masses, for which {base.divergence.name} is infinite; use a divergence with finite f(0)"
        )
    if len(examples) * examples.size > LARGEST_SMOOTHED:
        raise DiscreetError(
            f"smoothing = 'auto' is for at most {LARGEST_SMOOTHED:,} entries, not {len(examples):,} examples on {examples.size:,} "
            "outcomes; merge rare outcomes, or take fewer examples: so many need hardly any smoothing"
        )
    laws = examples.dense_laws()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)  # `base` has warned of it
        choice = Smoother(epsilon, base.keep, base.divergence).choose_sampler_and_smoothing(laws, examples.weight)
        band = choice.sampler.family
        sampler = OptimalSampler(band, epsilon=base.epsilon)
    costs = np.asarray(base.divergence(laws, sampler.output(laws)))
    value = max(0.0, float(examples.weight @ costs))
    return replace(base, family=band, sampler=sampler, value=value, smoothing=choice.smoothing)
