"""A continuous family as an agreement states it, with the digest of its atoms; and the reference of a mollifier's own.

Parameters are written as they are. A reference density is written as the digest of its table, which a file may list beside it. A density
given as a function cannot be written.

Released numbers are numbers of atoms (cells or points). Atoms come from floating-point computations that two machines may round
differently. The digest of the atoms, in single precision, is therefore a term too, and a machine with other atoms raises an error before it
draws. Privacy does not depend on this check: each client's integers stay in one box, wherever it lies.

Gaussian mixtures on a box have the field `normaliser` where theirs is the proved one, and not the one that a search over centres finds. An
agreement without the field keeps the searched one, so its samples stay the same. In the same way the atoms have the field `masses` where the
masses of cells are refined, and not those of one rule on each cell.

`ReferenceTerms` is the public centre Q0 of a mollifier's ball, if it is not the family's own reference. A digest stands for the
probabilities of outcomes, or for the table of a density. A file may list them beside it exactly as they were given, so that every reader
computes the same box to the last bit. The id is the same. `lower` and `upper` are set if a `DensityBand` bounds p/Q0; a reference for all
clients sets neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.showing import with_short_repr
from discreet.agreement._family_terms import (
    MOST_LISTED,
    OTHER_ON_INTERVAL_MESSAGE,
    AgreementTerms,
    AnyFamilyTerms,
    Fields,
    refuse_other_digest,
    require_number_of_outside_outcome,
    require_object_with_fields,
)
from discreet.domain import VERSION, check_digest_format, sha256_digest
from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, check_count
from discreet.families import (
    ONE_RULE,
    PROVED,
    REFINED,
    SEARCHED,
    ContinuousFamily,
    DensityBand,
    GaussianMixtures,
    LaplaceMixtures,
    Tabulated,
    read_agreed_any_client_flag,
)
from discreet.mechanisms import (
    AnyFamily,
    CellAtoms,
    Cells,
    DensityAtoms,
    Discretisation,
    MollifierSampler,
    Points,
    Sampler,
    normalised_law,
)

MIXTURES: dict[str, type[GaussianMixtures | LaplaceMixtures]] = {
    "gaussian mixtures": GaussianMixtures,
    "laplace mixtures": LaplaceMixtures,
}
DENSITY_BAND = "density band"
_ATOMS = {
    "cells": Fields.from_names("by count digest", "masses"),
    "points": Fields.from_names("by count digest seed"),
}

Box = tuple[tuple[float | None, float | None], ...]
Floats = NDArray[np.float64]


@with_short_repr
@dataclass(frozen=True, eq=False)
class ContinuousTerms(AnyFamilyTerms):
    """A continuous family in an agreement. Two families are the same where their documents are.

    Attributes:
        kind: the name of the family.
        dim: the dimension of the space.
        atoms: by what it is released, and the digest of these atoms.
        radius: of the means of mixtures.
        scale: of the components of mixtures.
        box: the ends of each axis, with None for an infinite end; None for all of R^dim.
        lower: the lower bound of a band.
        upper: the upper bound of a band.
        density: the digest of a band's table.
        everybody: set where a band claims nothing about clients: a designed one.
        table: the table, where it is known.
        version: of the document.
        normaliser: "proved" where Gaussian mixtures on a box do not have the normaliser that a search finds.
    """

    STATED = ("kind", "dim", "radius", "scale", "box", "lower", "upper", "density", "everybody", "normaliser", "atoms")

    kind: str
    dim: int
    atoms: dict[str, Any]
    radius: float | None = None
    scale: float | None = None
    box: Box | None = None
    lower: float | None = None
    upper: float | None = None
    density: str | None = None
    everybody: bool | None = None
    table: Tabulated | None = field(default=None, repr=False)
    version: int = VERSION
    normaliser: str | None = None

    @classmethod
    def of(cls, sampler: Sampler[AnyFamily], family: ContinuousFamily, version: int = VERSION) -> ContinuousTerms:
        """The terms of a sampler's family and of its atoms."""
        atoms = _atoms_as_json_object(sampler)
        match family:
            case GaussianMixtures() | LaplaceMixtures():
                kind = next(name for name, mixture_class in MIXTURES.items() if type(family) is mixture_class)
                return cls(
                    kind,
                    family.dim,
                    atoms,
                    family.radius,
                    family.scale,
                    _box_with_none_for_infinities(family.box),
                    version=version,
                    normaliser=PROVED if family.normaliser == PROVED else None,
                )
            case DensityBand():
                density, lower, upper = family.density_and_bounds_as_given
                if not isinstance(density, Tabulated):
                    raise DiscreetError(
                        f"the density of {family!r} is a {type(density).__name__}, which no document can state; agree on a table of it, as "
                        "DensityBand(Tabulated(axes, values), ...)"
                    )
                return cls(
                    DENSITY_BAND,
                    family.dim,
                    atoms,
                    box=_box_with_none_for_infinities(family.box),
                    lower=float(lower),
                    upper=float(upper),
                    density=density.digest,
                    everybody=True if family.any_client else None,
                    table=density,
                    version=version,
                )
        raise DiscreetError(
            f"family = {family!r} has no terms yet; agree on mixtures, or on a DensityBand around a table"
        )

    @property
    def description(self) -> str:
        """The family in words."""
        prefix = "at least " if self.atoms["by"] == "cells" else ""  # a partition may have a few more than requested
        count = self.atoms["count"]
        if prefix and self.everybody and self.table is not None:  # every cell lies within one cell of the table
            count = max(count, math.prod(axis.size - 1 for axis in self.table.axes))
        return f"{self.kind} in dimension {self.dim} by {prefix}{count:,} {self.atoms['by']}"

    @property
    def discretisation(self) -> Discretisation:
        """The kind of the released atoms."""
        if self.atoms["by"] == "cells":
            return Cells(self.atoms["count"], self.atoms.get("masses", ONE_RULE))
        return Points(self.atoms["count"], seed=self.atoms["seed"])

    @property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values, without those that are not set."""
        return super().document | ({} if self.box is None else {"box": [list(ends) for ends in self.box]})

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms as a file lists them, with the table if it is known and small enough."""
        return self.document if self.table is None else {**self.document, **density_table_fields(self.table)}

    def require_other_outcome_number(self, number: Any) -> int:
        """Raise an error: values outside become the nearest end."""
        require_number_of_outside_outcome(number)
        raise DiscreetError(OTHER_ON_INTERVAL_MESSAGE)

    def family(self) -> ContinuousFamily:
        """The family, if the terms contain all of it."""
        if self.kind in MIXTURES:
            assert self.radius is not None
            assert self.scale is not None
            box = self._box_with_infinities_restored()
            if MIXTURES[self.kind] is LaplaceMixtures:
                return LaplaceMixtures(self.dim, radius=self.radius, scale=self.scale, box=box)
            normaliser = self.normaliser or SEARCHED
            return GaussianMixtures(self.dim, radius=self.radius, scale=self.scale, box=box, normaliser=normaliser)
        if self.table is None:
            raise DiscreetError("the agreement holds a digest of its density's table; pass the family it was made with")
        assert self.lower is not None
        assert self.upper is not None
        return DensityBand(
            self.table,
            self._box_with_infinities_restored(),
            lower=self.lower,
            upper=self.upper,
            any_client=bool(self.everybody),
        )

    def _box_with_infinities_restored(self) -> list[tuple[float, float]] | None:
        if self.box is None:
            return None
        return [(-math.inf if low is None else low, math.inf if high is None else high) for low, high in self.box]

    described = OldName("description")
    listed = OldName("full_terms")


def _box_with_none_for_infinities(box: list[tuple[float, float]] | None) -> Box | None:
    """A box with None in place of infinities, which JSON lacks."""
    if box is None:
        return None
    return tuple(
        (float(low) if math.isfinite(low) else None, float(high) if math.isfinite(high) else None) for low, high in box
    )


def _atoms_as_json_object(sampler: Sampler[AnyFamily]) -> dict[str, Any]:
    discretisation, carrier = sampler.discretisation, sampler.carrier
    if not isinstance(discretisation, (Cells, Points)) or not isinstance(carrier, DensityAtoms):
        raise DiscreetError(
            f"discretisation = {discretisation!r} releases nothing, so nobody can agree on it; take Cells(...) or Points(seed=...)"
        )
    carrier.refuse_unshared_atoms()
    atoms: dict[str, Any] = {
        "by": type(discretisation).__name__.lower(),
        "count": discretisation.count,
        "digest": carrier.digest,
    }
    if isinstance(discretisation, Points):
        return {**atoms, "seed": discretisation.seed}
    return {**atoms, "masses": REFINED} if isinstance(carrier, CellAtoms) and carrier.partition.is_refined else atoms


def read_continuous_terms(fields: dict[str, Any], version: int = VERSION) -> ContinuousTerms:
    """The terms in a document of that version; an error names the first wrong field."""
    kind, dim = fields["kind"], check_count("family.dim", fields["dim"])
    atoms, box = _parse_released_atoms(fields["atoms"]), _parse_density_box(fields.get("box"), dim)
    if kind in MIXTURES:
        radius = POSITIVE.check("family.radius", fields.get("radius"))
        scale = POSITIVE.check("family.scale", fields.get("scale"))
        normaliser = fields.get("normaliser")
        if normaliser is not None and (normaliser != PROVED or box is None or dim == 1):
            raise DiscreetError(
                f"family.normaliser = {normaliser!r}: it is {PROVED!r}, and only on a box in 2 or 3 dimensions; leave it out elsewhere"
            )
        return ContinuousTerms(kind, dim, atoms, radius, scale, box, version=version, normaliser=normaliser)
    lower = NON_NEGATIVE.check("family.lower", fields.get("lower"))
    upper = POSITIVE.check("family.upper", fields.get("upper"))
    any_client = read_agreed_any_client_flag(fields.get("everybody"), lower)
    digest = check_digest_format("family.density", fields.get("density"))
    table = read_density_table(fields.get("table"), "family.table")
    if table is not None:
        refuse_other_digest("the table listed is not the one", table.digest, digest)
    return ContinuousTerms(
        kind,
        dim,
        atoms,
        box=box,
        lower=lower,
        upper=upper,
        density=digest,
        everybody=any_client,
        table=table,
        version=version,
    )


def _parse_released_atoms(atoms: Any) -> dict[str, Any]:
    by = atoms.get("by") if isinstance(atoms, dict) else None
    if not isinstance(by, str) or by not in _ATOMS:
        raise DiscreetError(f"family.atoms = {atoms!r} does not say by what it is released: cells or points")
    if not _ATOMS[by].needed <= atoms.keys() <= _ATOMS[by].needed | _ATOMS[by].optional:
        raise DiscreetError(
            f"family.atoms has the fields {sorted(atoms)}; released by {by} it has {sorted(_ATOMS[by].needed)}"
        )
    count = check_count("family.atoms.count", atoms["count"], 2)
    terms = {"by": by, "count": count, "digest": check_digest_format("family.atoms.digest", atoms["digest"])}
    if by == "points":
        return {**terms, "seed": check_count("family.atoms.seed", atoms["seed"], 0)}
    if "masses" not in atoms:
        return terms
    if atoms["masses"] != REFINED:
        raise DiscreetError(f"family.atoms.masses = {atoms['masses']!r} is not {REFINED!r}; leave it out elsewhere")
    return {**terms, "masses": REFINED}


def _parse_density_box(box: Any, dim: int) -> Box | None:
    if box is None:
        return None
    has_pairs = (
        isinstance(box, list) and len(box) == dim and all(isinstance(ends, list) and len(ends) == 2 for ends in box)
    )
    if not has_pairs or not all(_is_interval_end(end) for ends in box for end in ends):
        raise DiscreetError(
            f"family.box = {box!r} is not a [low, high] for each of the {dim} axes, null where infinite"
        )
    return tuple((None if low is None else float(low), None if high is None else float(high)) for low, high in box)


def _is_interval_end(end: Any) -> bool:
    return end is None or (isinstance(end, (int, float)) and not isinstance(end, bool) and abs(end) < 1e300)


def density_table_fields(table: Tabulated) -> dict[str, Any]:
    """A table as a file lists it beside its digest; nothing where it is too large."""
    if table.values.size > MOST_LISTED:
        return {}
    return {"table": {"axes": [axis.tolist() for axis in table.axes], "values": table.values.tolist()}}


def read_density_table(table: Any, where: str) -> Tabulated | None:
    """The table that a file lists, or None. Errors call it `where`."""
    if table is None:
        return None
    if not isinstance(table, dict) or table.keys() != {"axes", "values"} or not isinstance(table["axes"], list):
        raise DiscreetError(f"{where} does not have axes and values")
    for index, axis in enumerate(table["axes"]):
        if not isinstance(axis, list) or not all(type(position) in (int, float) for position in axis):
            raise DiscreetError(f"{where}.axes[{index}] is not a list of numbers")
    return Tabulated([np.asarray(axis) for axis in table["axes"]], table["values"])


_REFERENCE = Fields.from_names("digest", "lower upper weights table")


@with_short_repr
@dataclass(frozen=True, eq=False)
class ReferenceTerms(AgreementTerms):
    """A reference of a mollifier's own in an agreement. `given` is it as it was given, where that is known.

    Two references are equal if their documents are.
    """

    STATED = ("digest", "lower", "upper")

    digest: str
    lower: float | None = None
    upper: float | None = None
    given: Floats | Tabulated | None = field(default=None, repr=False)

    @classmethod
    def of(cls, sampler: MollifierSampler[AnyFamily]) -> ReferenceTerms | None:
        """The terms of a sampler's own reference; None if it is the family's."""
        reference = sampler.given_reference
        if reference is None:
            return None
        if isinstance(reference, np.ndarray):
            return cls(_reference_law_digest(reference), given=reference)
        lower = upper = None
        if isinstance(reference, DensityBand):
            any_client = reference.any_client
            reference, lower, upper = reference.density_and_bounds_as_given
            if any_client:
                lower = upper = None
        if not isinstance(reference, Tabulated):
            raise DiscreetError(
                f"the reference of {sampler!r} is a {type(reference).__name__}, which no document can state; agree on a table of it, as "
                "reference=Tabulated(axes, values)"
            )
        return cls(
            reference.digest,
            None if lower is None else float(lower),
            None if upper is None else float(upper),
            reference,
        )

    @classmethod
    def read_with_optional_reference(cls, value: Any) -> ReferenceTerms:
        """The terms in a JSON object, which may list the reference itself; an error names the first wrong field."""
        fields = require_object_with_fields("reference", value, _REFERENCE)
        weights, table = fields.get("weights"), read_density_table(fields.get("table"), "reference.table")
        digest = check_digest_format("reference.digest", fields["digest"])
        if weights is not None and table is not None:
            raise DiscreetError("reference.weights and reference.table are both listed; a reference is one of them")
        lower, upper = fields.get("lower"), fields.get("upper")
        if upper is not None or lower is not None:
            lower, upper = NON_NEGATIVE.check("reference.lower", lower), POSITIVE.check("reference.upper", upper)
        reference = table if weights is None else _parse_reference_probabilities(weights)
        if reference is not None:
            listed_digest = _reference_law_digest(reference) if isinstance(reference, np.ndarray) else reference.digest
            refuse_other_digest("the reference listed is not the one", listed_digest, digest)
        return cls(digest, lower, upper, reference)

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms as a file lists them: with the probabilities or the table, where they are known and not too many."""
        if isinstance(self.given, np.ndarray) and self.given.size <= MOST_LISTED:
            return {**self.document, "weights": self.given.tolist()}
        if isinstance(self.given, Tabulated):
            return {**self.document, **density_table_fields(self.given)}
        return self.document

    def reference(self, family: AnyFamily) -> Any:
        """The reference in the form that the mollifier of that family takes."""
        if self.given is None:
            raise DiscreetError(
                "the agreement holds a digest of its reference; pass reference=, the one it was made with"
            )
        if self.upper is None or not isinstance(family, ContinuousFamily):
            return self.given
        return DensityBand(self.given, family.box_with_infinite_ends, lower=self.lower or 0.0, upper=self.upper)


def _reference_law_digest(law: Floats) -> str:
    """The digest of the probabilities that define the box."""
    return sha256_digest(normalised_law(law).astype("<f8").tobytes())


def _parse_reference_probabilities(weights: Any) -> Floats:
    if not isinstance(weights, list) or not weights:
        raise DiscreetError("reference.weights is not a list of probabilities, one for each outcome")
    for index, weight in enumerate(weights):
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0.0 < weight <= 1.0:
            raise DiscreetError(f"reference.weights[{index}] = {weight!r} is not a probability above 0")
    return np.array(weights, dtype=np.float64)
