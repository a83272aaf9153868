"""The public centre Q0 of a mollifier's ball as an agreement states it, if it is not the family's own reference.

Probabilities of outcomes and the table of a density are represented by a digest. A file may list them beside it exactly as they were given,
so that every reader computes the same box to the last bit. The id is the same. `lower` and `upper` are set if a `DensityBand` bounds p/Q0;
a reference for all clients sets neither.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.showing import with_short_repr
from discreet.agreement._continuous_terms import read_table, table_fields
from discreet.agreement._family_terms import MOST_LISTED, AgreementTerms, Fields, check_listed
from discreet.domain import check_digest, digest
from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError
from discreet.families import ContinuousFamily, DensityBand, Tabulated
from discreet.mechanisms import AnyFamily, MollifierSampler, normalised_law

REFERENCE = Fields.of("digest", "lower upper weights table")

Floats = NDArray[np.float64]


@with_short_repr
@dataclass(frozen=True, eq=False)
class ReferenceTerms(AgreementTerms):
    """A reference of a mollifier's own in an agreement. `given` is it as it was given, where that is known.

    Two references are equal if their documents are.
    """

    FIELDS = ("digest", "lower", "upper")

    digest: str
    lower: float | None = None
    upper: float | None = None
    given: Floats | Tabulated | None = field(default=None, repr=False)

    @classmethod
    def of(cls, sampler: MollifierSampler[AnyFamily]) -> "ReferenceTerms | None":
        """The terms of a sampler's own reference; None if it is the family's."""
        given = sampler.given_reference
        if given is None:
            return None
        if isinstance(given, np.ndarray):
            return cls(_law_digest(given), given=given)
        lower = upper = None
        if isinstance(given, DensityBand):
            nothing_said = given.any_client
            given, lower, upper = given.given_as
            if nothing_said:
                lower = upper = None
        if not isinstance(given, Tabulated):
            raise DiscreetError(
                f"the reference of {sampler!r} is a {type(given).__name__}, which no document can state; agree on a table of it, as "
                "reference=Tabulated(axes, values)"
            )
        return cls(
            given.digest, None if lower is None else float(lower), None if upper is None else float(upper), given
        )

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms as a file lists them: with the probabilities or the table, where they are known and not too many."""
        if isinstance(self.given, np.ndarray) and self.given.size <= MOST_LISTED:
            return {**self.document, "weights": self.given.tolist()}
        if isinstance(self.given, Tabulated):
            return {**self.document, **table_fields(self.given)}
        return self.document

    def reference(self, family: AnyFamily) -> Any:
        """The reference in the form that the mollifier of that family takes."""
        if self.given is None:
            raise DiscreetError(
                "the agreement holds a digest of its reference; pass reference=, the one it was made with"
            )
        if self.upper is None or not isinstance(family, ContinuousFamily):
            return self.given
        return DensityBand(self.given, family.whole_box, lower=self.lower or 0.0, upper=self.upper)


def read_reference_terms(fields: dict[str, Any]) -> ReferenceTerms:
    """The terms that a document states; an error names the first field that is wrong."""
    weights, table = fields.get("weights"), read_table(fields.get("table"), "reference.table")
    stated = check_digest("reference.digest", fields["digest"])
    if weights is not None and table is not None:
        raise DiscreetError("reference.weights and reference.table are both listed; a reference is one of them")
    lower, upper = fields.get("lower"), fields.get("upper")
    if upper is not None or lower is not None:
        lower, upper = NON_NEGATIVE.check("reference.lower", lower), POSITIVE.check("reference.upper", upper)
    given = table if weights is None else _read_probabilities(weights)
    if given is not None:
        listed = _law_digest(given) if isinstance(given, np.ndarray) else given.digest
        check_listed("the reference listed is not the one", listed, stated)
    return ReferenceTerms(stated, lower, upper, given)


def _law_digest(law: Floats) -> str:
    """The digest of the probabilities that define the box."""
    return digest(normalised_law(law).astype("<f8").tobytes())


def _read_probabilities(listed: Any) -> Floats:
    if not isinstance(listed, list) or not listed:
        raise DiscreetError("reference.weights is not a list of probabilities, one for each outcome")
    for place, weight in enumerate(listed):
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0.0 < weight <= 1.0:
            raise DiscreetError(f"reference.weights[{place}] = {weight!r} is not a probability above 0")
    return np.array(listed, dtype=np.float64)
