"""`OutputLaw`, the output distribution on a continuous space, and `OutputProblem`, the finite problem that determines it.

The output density is q = clip(slope p + lift b h, b h, B h). On nodes with reference masses mu_i and client masses p_i, the scale r = 1/slope
is the finite weighted problem of `discreet.projection`, solved exactly. Only the nodes are approximate: they see a bare function only at
their own places. `OneClient`, `ManyClients` and `PublicPoints` choose them (`discreet.mechanisms._output_solver`).

An `OutputLaw` is for inspection. Releases are drawn from integer weights (`discreet.mechanisms._discretisation`), whose guarantee does not
depend on this module.
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
    """The output distribution of a client, or of many clients; then every result has a leading client axis.

    Made by `sampler.output(p)`. Use `.pdf(x)`, `.scale`, `.divergence(name)` and `.mass_error`.

    Attributes:
        family: the family of client distributions.
        constants: those of the sampler.
        mixing: None for samplers that project.
        clients: the densities it was made from.
        many: whether they came as a list.
        node_masses: reference masses of the nodes.
        client_masses: the mass of each client at each node.
        log_mass: logarithm of each client's mass before normalisation.
        slope: 1/r_P of each client, or gamma.
        lift: the added term, in multiples of the floor.
        errors: estimated errors of the masses.
        mass_known: which clients know their own mass.
    """

    family: ContinuousFamily
    constants: Constants
    mixing: Affine | None
    clients: tuple[LogDensity, ...]
    many: bool
    node_masses: Floats  # (m,) of the reference, or (n, m) where every client has nodes of its own
    client_masses: Floats  # (n, m)
    log_mass: Floats  # (n,)
    slope: Floats
    lift: Floats
    errors: Floats  # (n,)
    mass_known: NDArray[np.bool_] | None = (
        None  # (n,); the error of such a client includes the mass that the nodes missed
    )

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.family.dim

    @property
    def scale(self) -> float | Floats:
        """The paper's r_P: q = clip(p/r_P, b h, B h). It is 0 if p sits on too small a set for any scale."""
        if self.mixing is not None:
            raise DiscreetError("the linear mechanism has no scale: its law is gamma p + (1 - gamma) h")
        with np.errstate(divide="ignore"):  # inf where the reference has none of p's mass that a float can hold
            return self._each(1.0 / self.slope)

    @property
    def mass(self) -> float | Floats:
        """The integral of the density before normalisation, as the nodes see it; the output is that of p divided by it."""
        with np.errstate(over="ignore"):  # inf where it is more than a float can hold; the law does not depend on it
            return self._each(np.exp(self.log_mass))

    @property
    def mass_error(self) -> float | Floats:
        """An ESTIMATE of the error of the masses of p and q over the space (one standard error above three dimensions).

        A `Mixture`, a `Tabulated`, a fit and a scipy distribution know their mass (see `mass_checked`); the estimate is then at least the
        mass that the nodes missed. Of a bare function only the values at the nodes are known. A feature between them escapes the estimate,
        and affects `scale` and `divergence` too. Privacy does not depend on it.
        """
        return self._each(self.errors)

    @property
    def mass_checked(self) -> bool:
        """Whether `mass` was compared with the mass that the clients know; if not, a spike between the nodes may be missed."""
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
        """log q of a single client's output, so that the output can be a client in its turn."""
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

        It is for experiments, and warns so. A draw by rejection follows q divided by its true mass, and the box alone guarantees only 2
        epsilon for that. `release` is the private draw.
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
        """Whether its box lies in that family's band, so that the output is a member for every client."""
        bounds = family.bounds
        return self.family == family and bounds.lower <= self.constants.b and bounds.upper >= self.constants.B

    def narrow_places(self) -> Features:
        """The narrow places of the clients."""
        return features_of(self.clients, self.dim)

    def __repr__(self) -> str:
        who = f"{len(self.clients)} clients" if self.many else "1 client"
        checked = "checked against the mass that p knows" if self.mass_checked else "estimated: nodes can miss a spike"
        return f"OutputLaw(<{who} of {self.family!r}>, mass_error={float(np.max(self.errors)):.1g} ({checked}))"

    def _need_one(self) -> None:
        if self.many:
            raise DiscreetError(f"these are the output laws of {len(self.clients)} clients; ask for the output of one")

    def _each(self, values: Floats) -> float | Floats:
        return values if self.many else float(values[0])


def affine_clip(ratio: Floats, slope: float, lift: float, constants: Constants) -> Floats:
    """clip(slope p/h + lift b, b, B), with inf * 0 = 0 as in the projection."""
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(ratio > _zero_threshold(slope), slope * ratio, 0.0) + lift * constants.b
    return np.clip(value, constants.b, constants.B)


def _zero_threshold(slope: Any) -> Any:
    """The value up to which p counts as zero, as in the projection: positive where the slope is infinite."""
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
    members: ContinuousFamily | None = None  # the clients' family, if the box is around another reference

    def box(self, masses: Floats) -> Box:
        """The box on nodes of these reference masses (m,)."""
        return Box.around(masses, masses.size, self.constants, self.epsilon)

    def tell_outside(self, clients: Sequence[LogDensity], seen: NodeSummary) -> None:
        """Warn about clients outside the band; reject them if the mechanism is linear."""
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
        """Solve for every client on the same nodes (m,), from its log p/h there (n, m); `slack`: the uncertainty of its mass."""
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
        """The law with errors corrected for clients that know their mass."""
        errors, known = warn_of_unresolved_masses(self.family, law.clients, law.log_mass, law.errors)
        return replace(law, errors=errors, mass_known=known)
