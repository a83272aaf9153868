"""`OutputLaw`, the output distribution on a continuous space, and `OutputProblem`, the finite problem on nodes from which it is solved.

Q(.|P) on a continuous space: q = clip(slope p + lift b h, b h, B h), known everywhere once slope and lift are.

On nodes with reference masses mu_i and client masses p_i, the scale r = 1/slope is the finite weighted problem of
`discreet.projection`, solved exactly; only the nodes are approximate (`discreet.mechanisms._output_solver`): of a function that tells
nothing of itself they see no more than its values there.

An `OutputLaw` is for looking at. What is released is drawn from integer weights (`discreet.mechanisms._discretisation`), whose guarantee
does not depend on anything here.

The finite problem behind an output law: a family, the box around its reference, and clients known on nodes.

On nodes with reference masses mu_i and client masses p_i, slope and lift are what `discreet.projection` finds exactly. How good the
nodes are is the business of whoever chose them: `OneClient`, `ManyClients` or `PublicPoints`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import divergences
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, NotPrivateWarning, check_count, warn_caller
from discreet.families import (
    BAND_SLACK,
    ContinuousFamily,
    Features,
    LogDensity,
    NodeSummary,
    as_points,
    features_of,
    largest_log_ratios,
    outsiders_of,
    report_outsiders,
    shape_of_points,
    warn_of_unresolved_masses,
)
from discreet.privacy.tradeoff import Constants
from discreet.projection import NEGLIGIBLE, Affine, Box
from discreet.release import generator

Floats = NDArray[np.float64]

_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class OutputLaw:
    """The law that a client's sample is drawn from, or those of many clients (then every result has a leading client axis).

    Made by `sampler.output(p)`; `.pdf(x)`, `.scale`, `.divergence(name)` and `.mass_error` are what it is asked for.

    Attributes:
        family: who the clients may be.
        constants: those of the sampler.
        mixing: None for samplers that project.
        clients: the densities it was made from.
        many: whether they came as a list.
        node_masses: reference masses of the nodes.
        client_masses: what each client has there.
        log_mass: logarithm of each client's mass as it was given.
        slope: 1/r_P of each client, or gamma.
        lift: what is added, in multiples of the floor.
        errors: estimated errors of the masses.
        mass_known: whose mass was known from elsewhere.
    """

    family: ContinuousFamily
    constants: Constants
    mixing: Affine | None
    clients: tuple[LogDensity, ...]
    many: bool
    node_masses: Floats  # (m,) of the reference, or (n, m) where every client has nodes of its own
    client_masses: Floats  # (n, m)
    log_mass: Floats  # (n,) log of each client's mass as it was given
    slope: Floats
    lift: Floats
    errors: Floats  # (n,)
    mass_known: NDArray[np.bool_] | None = (
        None  # (n,) whether a client told its mass, so that what nodes missed is in its error
    )

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.family.dim

    @property
    def scale(self) -> float | Floats:
        """The paper's r_P: q = clip(p/r_P, b h, B h). 0 where p sits on too small a set for any to serve."""
        if self.mixing is not None:
            raise DiscreetError("the linear mechanism has no scale: its law is gamma p + (1 - gamma) h")
        with np.errstate(divide="ignore"):  # inf where the reference has none of p's mass that a float can hold
            return self._each(1.0 / self.slope)

    @property
    def mass(self) -> float | Floats:
        """The integral of the density as it was given, as the nodes saw it; the law is of p divided by it."""
        with np.errstate(over="ignore"):  # inf where it is more than a float can hold; the law does not depend on it
            return self._each(np.exp(self.log_mass))

    @property
    def mass_error(self) -> float | Floats:
        """An ESTIMATE of the error of the masses of p and q over the space (one standard error above three dimensions).

        Where a client tells its mass (a `Mixture`, a `Tabulated`, a fit, a scipy distribution; see `mass_checked`), it is at least what the
        nodes missed of that. Of a bare function only the values at the nodes are known: a feature between them escapes the estimate,
        and `scale` and `divergence` with it. No privacy rests on it.
        """
        return self._each(self.errors)

    @property
    def mass_checked(self) -> bool:
        """Whether `mass` was compared with what the clients say of themselves; else a spike between the nodes may be missed."""
        return self.mass_known is not None and bool(self.mass_known.all())

    def pdf(self, x: ArrayLike) -> Floats:
        """The density q at points (n,) in one dimension or (n, dim)."""
        points = as_points(x, self.dim)
        log_reference = self.family.log_reference(points)
        values = np.stack([self._relative(i, points, log_reference) for i in range(len(self.clients))])
        values *= np.exp(log_reference)
        shape = shape_of_points(x, self.dim)
        return values.reshape((len(self.clients), *shape)) if self.many else values.reshape(shape)

    def log_density(self, x: Floats) -> Floats:
        """log q of a single client's law, so that it can be a client in its turn."""
        self._need_one()
        points = as_points(x, self.dim)
        log_reference = self.family.log_reference(points)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._relative(0, points, log_reference)) + log_reference)

    def divergence(self, name: str | FDivergence) -> float | Floats:
        """D_f(P||Q) on the same nodes."""
        f = divergences.divergence(name)
        found = np.empty(len(self.client_masses))
        for rows in row_blocks(*self.client_masses.shape):
            found[rows] = f(self.client_masses[rows], self.output_masses_of(rows))
        return self._each(found)

    def sample(self, count: int, *, rng: np.random.Generator | None = None) -> Floats:
        """Points drawn from q by rejection from h: (count,) in one dimension, else (count, dim).

        For experiments, and it warns so: a draw by rejection follows q divided by whatever the mass of q really is, and the box alone
        promises only 2 epsilon for that. `release` is the private draw.
        """
        count = check_count("count", count)
        self._need_one()
        rng = generator(rng)
        warn_caller("output(p).sample(n) is for experiments and NOT private; release(p) is", NotPrivateWarning)
        kept: list[Floats] = []
        missing = count
        while missing:
            x = self.family.draw(max(64, math.ceil(1.2 * missing * self.constants.B)), rng)
            accepted = rng.random(len(x)) * self.constants.B < self._relative(0, x, self.family.log_reference(x))
            kept.append(x[accepted][:missing])
            missing -= len(kept[-1])
        drawn = np.concatenate(kept)
        return drawn[:, 0] if self.dim == 1 else drawn

    def relative(self, x: Floats) -> Floats:
        """q/h at points (m, dim) for a single client: in [b, B]."""
        self._need_one()
        points = as_points(x, self.dim)
        return self._relative(0, points, self.family.log_reference(points))

    def _relative(self, client: int, x: Floats, log_reference: Floats) -> Floats:
        ratio = ratio_of(self.clients[client].log_density(x), log_reference + self.log_mass[client])
        return affine_clip(ratio, float(self.slope[client]), float(self.lift[client]), self.constants)

    def output_masses_of(self, rows: slice) -> Floats:
        """Masses of q on the nodes for some of the clients."""
        masses = self.node_masses if self.node_masses.ndim == 1 else self.node_masses[rows]
        lower, upper = self.constants.b * masses, self.constants.B * masses
        p, slope = self.client_masses[rows], self.slope[rows, None]
        with np.errstate(invalid="ignore", over="ignore"):
            value = np.where(p > _zero_threshold(slope), p * slope, 0.0) + self.lift[rows, None] * lower
        return np.clip(value, lower, upper)

    @property
    def output_masses(self) -> Floats:
        """(n, m) masses of q on the nodes, or (m,) for a single client."""
        found = self.output_masses_of(slice(None))
        return found if self.many else found[0]

    def certainly_in(self, family: ContinuousFamily) -> bool:
        """Whether its box lies in that family's band, so that the law does whatever it is the law of."""
        bounds = family.bounds
        return self.family == family and bounds.lower <= self.constants.b and bounds.upper >= self.constants.B

    def narrow_places(self) -> Features:
        """Those of the clients that it is the law of."""
        return features_of(self.clients, self.dim)

    def __repr__(self) -> str:
        who = f"{len(self.clients)} clients" if self.many else "1 client"
        checked = "checked against what p says of itself" if self.mass_checked else "estimated: nodes can miss a spike"
        return f"OutputLaw(<{who} of {self.family!r}>, mass_error={float(np.max(self.errors)):.1g} ({checked}))"

    def _need_one(self) -> None:
        if self.many:
            raise DiscreetError(f"these are the output laws of {len(self.clients)} clients; ask for the output of one")

    def _each(self, values: Floats) -> float | Floats:
        return values if self.many else float(values[0])


def affine_clip(ratio: Floats, slope: float, lift: float, constants: Constants) -> Floats:
    """clip(slope p/h + lift b, b, B), with inf * 0 = 0 as the projection has it."""
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(ratio > _zero_threshold(slope), slope * ratio, 0.0) + lift * constants.b
    return np.clip(value, constants.b, constants.B)


def _zero_threshold(slope: Any) -> Any:
    """Up to where p counts as none, as the projection has it that found the slope: where that is infinite, less than floats can divide by."""
    return np.where(np.isinf(slope), NEGLIGIBLE, 0.0)


def ratio_of(log_density: Floats, log_reference: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.exp(np.minimum(log_density - log_reference, 700.0))
    return np.where(np.isneginf(log_density) | np.isneginf(log_reference), 0.0, found)


def row_blocks(rows: int, columns: int) -> list[slice]:
    step = max(1, _BLOCK // max(1, columns))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@dataclass(frozen=True, eq=False)
class OutputProblem:
    """A family, the constants of a box around its reference, the epsilon it is calibrated to, and how it mixes (None: it projects)."""

    family: ContinuousFamily
    constants: Constants
    epsilon: float
    mixing: Affine | None
    members: ContinuousFamily | None = None  # who the clients may be, where the box is around another reference

    def box(self, masses: Floats) -> Box:
        """The box on nodes of these reference masses (m,)."""
        return Box.around(masses, masses.size, self.constants, self.epsilon)

    def tell_outside(self, clients: Sequence[LogDensity], seen: NodeSummary) -> None:
        """Warn about clients outside the band; refuse them where the law is linear."""
        outsiders = outsiders_of(self.family, clients, seen, self.members)
        if outsiders is not None:
            whose = self.family if self.members is None else self.members
            report_outsiders(whose, whose.bounds, outsiders, refuse=self.mixing is not None)

    def solve(
        self,
        clients: Sequence[LogDensity],
        many: bool,
        masses: Floats,
        log_ratio: Floats,
        slack: float | Floats = BAND_SLACK,
    ) -> OutputLaw:
        """Every client on the same nodes (m,), from its log p/h there (n, m); `slack`: how well those know its mass."""
        shift = largest_log_ratios(log_ratio)
        client = np.exp(log_ratio - shift[:, None])
        smallest = log_ratio.min(axis=1, where=masses > 0, initial=np.inf)
        client *= masses
        mass = client.sum(axis=1)
        client /= mass[:, None]
        seen = NodeSummary(shift + np.log(mass), smallest, shift, slack)
        self.tell_outside(clients, seen)
        if self.mixing is not None:
            slope, lift = np.full(len(clients), self.mixing.slope), np.full(len(clients), self.mixing.lift)
        else:
            box = self.box(masses)
            with np.errstate(divide="ignore"):
                slope, lift = np.asarray(1.0 / box.scale(client)), np.zeros(len(clients))
            for row in np.flatnonzero(np.isinf(slope)):
                slope[row], lift[row] = box.slope_and_lift(client[row])
        return OutputLaw(
            self.family, self.constants, self.mixing, tuple(clients), many, masses, client, shift + np.log(mass),
            slope, lift, np.zeros(len(clients)),
        )  # fmt: skip

    def with_known_masses(self, law: OutputLaw) -> OutputLaw:
        """The law with its errors as the clients themselves would have them, where they know their mass."""
        errors, known = warn_of_unresolved_masses(self.family, law.clients, law.log_mass, law.errors)
        return replace(law, errors=errors, mass_known=known)
