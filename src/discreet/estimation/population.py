"""The population behind one private sample of each client, with intervals that hold.

Counts of samples estimate Q, the average of the laws drawn from; an `Inversion` turns what is known of Q into what is known of P, the
average client. For the linear mechanism that is the unbiased estimate (Q - (1 - gamma) mu)/gamma of variance
(1/(n gamma)^2) sum_i Var_{Q_i}(phi); what the samples alone show is that it is at most Var_Q(phi)/(n gamma^2), with equality for clients
drawn from a population. For a projection P is not determined by Q: an interval then consists of a band that no number of clients
narrows, and of the noise around its ends.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.audit.bounds import MOST_DRAWS
from discreet.errors import OPEN_UNIT, DiscreetError, ImpossibleError
from discreet.estimation import planning, statistics
from discreet.estimation.intervals import Interval, clopper_pearson, largest_average
from discreet.estimation.inversion import Inversion, held, inversion_of, limits
from discreet.estimation.nearest import nearest_law
from discreet.estimation.outcomes import Outcomes
from discreet.estimation.reweighting import Reweighted, example_laws, reweighted
from discreet.estimation.statistics import Phi
from discreet.families import ContinuousFamily
from discreet.families.band import Bounds
from discreet.families.laws import as_floats
from discreet.labelled import LawLike, unboxed
from discreet.mechanisms.sampler import AnyFamily, Sampler
from discreet.quadrature import Panels
from discreet.showing import shown_shortly

Floats = NDArray[np.float64]

LARGEST = 10**7  # outcomes whose intervals are held in memory
_WIDE = 0.1  # the half-width of a share's interval from which on a reader is told how many clients would do better
_IMPOSSIBLE = 1e-9  # how unlikely samples have to be before their agreement is doubted
_PANELS_IN_A_BIN = 8
_ORDER = 8


@shown_shortly
@dataclass(frozen=True)
class Shares:
    """For every outcome: an estimate, the ends of its own interval, and those of intervals that hold all at once."""

    estimate: Floats
    low: Floats
    high: Floats
    all_low: Floats
    all_high: Floats


@dataclass(frozen=True)
class Estimate:
    """A statistic of the population. `estimate` is None where it is not identifiable; `released` is its value under Q.

    `blur`: how much of the interval, on each side, is owed to values that are known up to their cell only. `bias_by_risk`: by how much P
    and Q can differ by the worst-case TV alone, its oscillation times that; the interval uses the sharper lines, and None means
    that the statistic is no average.
    """

    name: str
    estimate: float | None
    low: float
    high: float
    released: float
    blur: float = 0.0
    bias_by_risk: float | None = None


@dataclass(frozen=True, eq=False)
class Population:
    """What the samples of one agreement tell. Made by `population`.

    `reweighted`: the population that public examples have when they are weighted so as to explain the samples. It rests on the examples;
    everything else here does not.
    """

    outcomes: Outcomes
    counts: NDArray[np.int64]
    reference: Floats
    inversion: Inversion
    bounds: Bounds
    sampler: Sampler[AnyFamily]
    confidence: float
    reweighted: Reweighted | None = None

    def __repr__(self) -> str:
        return f"<Population behind {self.clients:,} samples of {self.sampler!r}>"

    @property
    def clients(self) -> int:
        """How many samples there are, one of each client."""
        return int(self.counts.sum())

    @property
    def exact(self) -> bool:
        """Whether the average client is identifiable: estimates are then unbiased, and intervals hold noise alone."""
        return self.inversion.exact

    @cached_property
    def largest_bias(self) -> float:
        """The worst-case TV: no event has a share under P further from its share under Q, whoever the clients are."""
        return float(self.sampler.risk("tv"))

    @cached_property
    def released(self) -> Shares:
        """The average of the laws that samples were drawn from."""
        return Shares(self._frequencies, *self._each(self.counts), *self._all(self.counts))

    @cached_property
    def law(self) -> Shares:
        """The average client's law. Its estimate is unbiased (and may be negative) if `exact`, else the released shares."""
        estimate = self.inversion.low(self.reference, self._frequencies) if self.exact else self._frequencies
        return Shares(estimate, *self._held(self._each(self.counts)), *self._held(self._all(self.counts)))

    @cached_property
    def nearest(self) -> Floats:
        """The estimate as a law: the member of the family that is nearest to it. Smaller error, but biased."""
        return nearest_law(self.law.estimate, *limits(self.bounds, self.reference))

    def statistic(self, wanted: str | Callable[[Any], float]) -> Estimate:
        """The average of a function of the outcome, or one named "mean", "variance", "median", "quantile:0.9", "at-most:30"."""
        if callable(wanted):
            return self._average(
                getattr(wanted, "__name__", "statistic"), statistics.callable_phi(self.outcomes, wanted)
            )
        name, _, parameter = str(wanted).partition(":")
        match name:
            case "mean" if not parameter:
                return self._average(name, statistics.first_moment(self.outcomes))
            case "variance" if not parameter:
                return self._variance()
            case "median" if not parameter:
                return self._quantile(wanted, 0.5)
            case "quantile":
                return self._quantile(wanted, OPEN_UNIT.check("quantile", _parsed(wanted, parameter)))
            case "at-most":
                return self._average(wanted, statistics.at_most(self.outcomes, _parsed(wanted, parameter)))
        raise DiscreetError(
            f"statistic = {wanted!r} is not one of mean, variance, median, quantile:P, at-most:X, nor a function of an outcome"
        )

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What a reader should know before trusting the numbers; empty if there is nothing."""
        said = []
        surely_more, surely_less = clopper_pearson(
            self.counts, self.clients, 1.0 - 2.0 * _IMPOSSIBLE, among=len(self.counts)
        )
        constants = self.sampler.constants
        for strange, limit, word in (
            (surely_more > constants.B * self.reference * (1.0 + 1e-9), constants.B * self.reference, "more than"),
            (surely_less < constants.b * self.reference * (1.0 - 1e-9), constants.b * self.reference, "less than"),
        ):
            if strange.any():
                place = int(np.argmax(strange))
                said.append(
                    f"{self.outcomes.names[place]!r} makes up {self._frequencies[place]:.3g} of the samples, {word} the "
                    f"{limit[place]:.3g} that this agreement allows whoever the clients are; are these "
                    "raw values instead of samples, or samples of another agreement"
                )
        noise = planning.Noise(self.clients, self.confidence)
        width = planning.half_width(self.inversion, self.sampler, self.reference, noise)
        if width > _WIDE:
            try:
                more = planning.clients_within(self.sampler, self.reference, _WIDE, self.confidence)
                fix = f"about {more:,} clients would tell it to +-{_WIDE:g}"
            except ImpossibleError:
                fix = f"to tell it to +-{_WIDE:g} takes a larger epsilon" + (
                    "" if self.exact else " or the linear mechanism"
                )
            who = "one client tells" if self.clients == 1 else f"{self.clients:,} clients tell"
            said.append(f"{who} a share to +-{width:.2g} at worst; {fix}")
        if self.reweighted is not None and not self.reweighted.explains:
            said.append(
                f"no weights of the examples explain the samples ({self.reweighted.strain:.0f} standard deviations off): these clients are "
                "unlike the examples, and so is the reweighted population"
            )
        return tuple(said)

    # shares

    @cached_property
    def _frequencies(self) -> Floats:
        return self.counts / self.clients

    def _each(self, counts: NDArray[np.int64]) -> Interval:
        return clopper_pearson(counts, self.clients, self.confidence)

    def _all(self, counts: NDArray[np.int64]) -> Interval:
        return clopper_pearson(counts, self.clients, self.confidence, among=len(self.counts))

    def _held(self, released: Interval, mu: Floats | None = None) -> Interval:
        """Intervals of Q's shares as intervals of P's; `mu`: of which events, by default of the outcomes."""
        return held(self.inversion, self.bounds, self.reference if mu is None else mu, released)

    # statistics

    def _average(self, name: str, phi: Phi, *, among: int = 1) -> Estimate:
        least, most = float(phi.low.min()), float(phi.high.max())
        low = min(max(-self._largest(-phi.low, among), least), most)
        high = min(max(self._largest(phi.high, among), least), most)
        estimate = float(self.law.estimate @ phi.values) if self.exact else None
        blur = 0.5 * float(self.nearest @ (phi.high - phi.low))
        bias = float(phi.values.max() - phi.values.min()) * self.largest_bias
        released = float(self._frequencies @ phi.values)
        return Estimate(name, estimate, min(low, high), max(low, high), released, blur, bias)

    def _largest(self, phi: Floats, among: int) -> float:
        """The largest average of phi that P can have given the counts, with the noise of that end.

        max {P(phi) : low <= P <= high} = min over c of c + high((phi - c)+) - low((c - phi)+), which is affine in Q for each
        c; the best c changes the value to second order only, so the noise is that of an average of n samples.
        """
        low, high = self.inversion.low, self.inversion.high
        order = np.argsort(-phi)
        least = low(self.reference, self._frequencies)
        room = np.cumsum(np.maximum(high(self.reference, self._frequencies) - least, 0.0)[order])
        place = min(int(np.searchsorted(room, 1.0 - least.sum())), len(phi) - 1)
        c = float(phi[order[place]])
        above, below = np.maximum(phi - c, 0.0), np.maximum(c - phi, 0.0)
        sampled = high.released * above - low.released * below
        fixed = c + float(self.reference @ (high.reference * above - low.reference * below))
        return fixed + largest_average(sampled, self.counts, self.confidence, among=among)

    def _variance(self) -> Estimate:
        """E (x - c)^2 - (E x - c)^2, each with half of what the confidence leaves; c near the mean keeps both small."""
        first = self._average("mean", statistics.first_moment(self.outcomes), among=2)
        centre = 0.5 * (first.low + first.high)
        second = self._average("squares", statistics.squares_around(self.outcomes, centre), among=2)
        estimate = None
        if first.estimate is not None and second.estimate is not None:
            estimate = second.estimate - (first.estimate - centre) ** 2
        return Estimate(
            "variance",
            estimate,
            max(0.0, second.low - (0.5 * (first.high - first.low)) ** 2),
            second.high,
            second.released - (first.released - centre) ** 2,
            second.blur,
        )

    def _quantile(self, name: str, level: float) -> Estimate:
        """All thresholds at which the interval of the share at most there holds the level; outcomes have to be in order."""
        values = self.outcomes.numeric(name)
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.counts[order])
        mu = np.minimum(np.cumsum(self.reference[order]), 1.0)
        low, high = self._held(self._each(below), mu)
        low[-1] = high[-1] = 1.0
        first = int(np.argmax(high >= level))
        last = int(len(low) - np.argmax((low < level)[::-1])) if (low < level).any() else 0
        starts, stops = (
            (values[order],) * 2 if self.outcomes.edges is None else (self.outcomes.edges[:-1], self.outcomes.edges[1:])
        )
        released = int(np.argmax(below / self.clients >= level))
        estimate = None
        if self.exact:
            reached = np.flatnonzero(np.cumsum(self.nearest[order]) >= level - 1e-12)
            estimate = float(values[order][reached[0] if reached.size else -1])
        blur = 0.0 if self.outcomes.edges is None else float(0.5 * np.diff(self.outcomes.edges).max())
        return Estimate(name, estimate, float(starts[first]), float(stops[last]), float(values[order][released]), blur)


def population(
    sampler: Sampler[AnyFamily],
    *,
    samples: ArrayLike | None = None,
    counts: LawLike | None = None,
    clients: ArrayLike | None = None,
    edges: ArrayLike | None = None,
    examples: Any = None,
    confidence: float = 0.95,
) -> Population:
    """The population behind samples that this sampler released, one of each client, or behind how often it released each outcome.

    `clients`: whose samples they are, in the same order. A client that comes twice is refused: its samples, of several rounds or of one
    release twice, are not those of two clients. Without it that they are all different is taken on trust.
    `edges`: where the outcomes of a finite family are cells, their ends; on a continuous family in one dimension, public bins.
    `examples`: laws (N, k) of public examples, or a scipy.sparse matrix of their counts. `reweighted` is then the population that they
    have when they are weighted so as to explain the samples.
    """
    OPEN_UNIT.check("confidence", confidence)
    if (samples is None) == (counts is None):
        raise DiscreetError("pass either samples= (what was released) or counts= (how often each outcome was)")
    if clients is not None:
        _check_distinct(clients, samples)
    inversion, laws = inversion_of(sampler), None
    if isinstance(sampler.family, ContinuousFamily):
        if examples is not None:
            raise DiscreetError("examples are laws on the outcomes of a finite family; a continuous one has none")
        if edges is None:
            raise DiscreetError("edges is missing: give public bins for the samples of a continuous family")
        outcomes = Outcomes.of_cells(edges)
        reference = _reference_masses(sampler.family, np.asarray(outcomes.edges))
    else:
        family = sampler.family
        if family.size > LARGEST:
            raise DiscreetError(
                f"the domain has {family.size:,} outcomes, more than {LARGEST:,}: estimate shares of groups of them instead"
            )
        outcomes = (
            Outcomes.of_cells(edges)
            if edges is not None
            else Outcomes.of_numbers(family.size)
            if family.labels is None
            else Outcomes.of_labels(family.labels)
        )
        if len(outcomes) != family.size:
            raise DiscreetError(f"edges bound {len(outcomes)} cells, but the family has {family.size} outcomes")
        reference = np.array(np.broadcast_to(sampler.reference, family.size), dtype=np.float64)
        laws = None if examples is None else example_laws(family, examples)
    if samples is None:
        by_label = counts if isinstance(sampler.family, ContinuousFamily) else sampler.family.in_order(counts, "counts")
        counted = _checked_counts(by_label, len(outcomes))
    else:
        counted = _counted(samples, sampler, outcomes)
    resting = None if laws is None else reweighted([(sampler, counted)], laws)
    return Population(outcomes, counted, reference, inversion, sampler.bounds, sampler, float(confidence), resting)


def _listed(column: Any) -> Any:
    """A column of pyarrow, of polars and pandas or of numpy as a plain list; others as they are."""
    column = unboxed(column)
    for plain in ("to_list", "tolist"):
        if hasattr(column, plain):
            return getattr(column, plain)()
    return column


def _check_distinct(clients: Any, samples: Any) -> None:
    if samples is None:
        raise DiscreetError("clients= says whose samples= these are; counts= are of nobody in particular")
    try:
        names, number = list(_listed(clients)), len(_listed(samples))
        different = len(set(names))
    except TypeError:
        raise DiscreetError("clients is not a list of names or numbers, one for each of the samples") from None
    if len(names) != number:
        raise DiscreetError(f"clients names {len(names):,} clients for {number:,} samples; name one for each")
    if None in names:
        raise DiscreetError("clients holds None: a sample of nobody; leave it out")
    if different < number:
        raise DiscreetError(
            f"clients names the same clients again in {number - different:,} of {number:,} places: samples of several rounds, or one "
            "release twice. An estimate is from one sample of each client; give those of one round"
        )


def _counted(samples: Any, sampler: Sampler[AnyFamily], outcomes: Outcomes) -> NDArray[np.int64]:
    samples = _listed(samples)
    if outcomes.edges is None and not isinstance(sampler.family, ContinuousFamily):
        numbers = sampler.family.numbers(samples)
    else:
        assert outcomes.edges is not None, "the samples of a continuous family are counted in bins"
        points = as_floats(samples, "samples").ravel()
        inside = (points >= outcomes.edges[0]) & (points <= outcomes.edges[-1])
        if not inside.all():
            raise DiscreetError(
                f"samples hold {points[~inside][0]:g}, which lies in no cell: they reach from {outcomes.edges[0]:g} "
                f"to {outcomes.edges[-1]:g}"
            )
        numbers = np.minimum(np.searchsorted(outcomes.edges, points, side="right") - 1, len(outcomes) - 1)
    return _checked_counts(np.bincount(numbers, minlength=len(outcomes)), len(outcomes))


def _checked_counts(counts: Any, size: int) -> NDArray[np.int64]:
    wrong = f"counts is not a list of {size} whole numbers of at least 0, one for each outcome"
    try:
        given = np.asarray(counts)
    except ValueError:  # rows of different lengths
        raise DiscreetError(wrong) from None
    if given.shape != (size,) or given.dtype.kind not in "iu" or bool((given < 0).any()):
        raise DiscreetError(wrong)
    if not given.any():
        raise DiscreetError(
            "there are no samples; an estimate needs at least one, and a useful one hundreds: see discreet plan"
        )
    if float(given.sum(dtype=np.float64)) > MOST_DRAWS:
        raise DiscreetError(f"counts sums to more than {MOST_DRAWS:,}, past which counts are no longer exact")
    return given.astype(np.int64)


def _reference_masses(family: ContinuousFamily, edges: Floats) -> Floats:
    """mu of each bin, by Gauss's rule on a few panels; the bins have to cover the space but for a negligible part."""
    if family.dim != 1:
        raise DiscreetError(
            f"bins are for one dimension, not {family.dim}; estimate from numbers of shared cells or points"
        )
    fine = np.concatenate(
        [
            np.linspace(0.0, 1.0, _PANELS_IN_A_BIN, endpoint=False) * w + e
            for e, w in zip(edges[:-1], np.diff(edges), strict=True)
        ]
    )
    t = family.chart.coordinates(np.append(fine, edges[-1])[:, None])[:, 0]
    masses = family.nodes_of(Panels.between([t]), _ORDER).masses.sum(axis=1)
    found = masses.reshape(len(edges) - 1, _PANELS_IN_A_BIN).sum(axis=1)
    if abs(found.sum() - 1.0) > 1e-3:
        raise DiscreetError(f"edges cover {found.sum():.3f} of the family's reference; extend them to the whole space")
    return np.asarray(found / found.sum())


def _parsed(wanted: str, parameter: str) -> float:
    try:
        number = float(parameter)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise DiscreetError(f"statistic = {wanted!r} needs a number after the colon")
    return number
