"""How the parts of an agreement are written and read, by their fields; and the terms of a finite family and of rows.

`AgreementTerms` writes the fields that are set and reads them back; two terms are the same where their documents are. `Fields` says which
fields an object needs and which it may have; `require_object_with_fields` and `require_fields_that_kind_needs` check it. What is long stands
in a document as a digest, and a file may list it beside (`refuse_other_digest`), up to `MOST_LISTED` numbers.

`FamilyTerms` is a finite family as an agreement states it, with digests in place of lists as long as the domain. The digests of labels and of
a reference's weights are part of the id, the lists themselves are not. A file may therefore list them or leave them out. Up to 65,536 weights
are listed in the document; more are in a file beside it, as 64-bit floats in little-endian order.

`RowTerms` is the family of a survey: public columns, of whose rows a client may hold any distribution. Columns and labels are listed in full,
so an agreement on a survey is complete, and its id speaks for every label.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName, placeholders_until_used
from discreet._base.showing import with_short_repr
from discreet.domain import (
    DOMAIN_FIELDS,
    VERSION,
    CellDomain,
    Digested,
    Domain,
    Labels,
    canonical_json,
    check_digest_format,
    domain_from_terms,
    sha256_digest,
)
from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, check_count
from discreet.families import Band, FiniteFamily, Simplex, read_agreed_any_client_flag

with placeholders_until_used(globals()):
    from discreet.survey import SurveyColumns, survey_columns_from_terms

MOST_LISTED = 1 << 16  # weights of a reference, or values of a table, that a document lists


class Fields(NamedTuple):
    """The fields that an object of a document needs, and those that it may have beside them."""

    needed: frozenset[str]
    optional: frozenset[str] = frozenset()

    @classmethod
    def from_names(cls, needed: str, optional: str = "") -> "Fields":
        """The fields named in two texts, with spaces between the names."""
        return cls(frozenset(needed.split()), frozenset(optional.split()))


class AgreementTerms:
    """A part of an agreement, as a dataclass. Its document is the fields that are not None, or those of them in `STATED`."""

    STATED: ClassVar[tuple[str, ...]] = ()
    version: int = VERSION

    @classmethod
    def _whether_each_field_is_needed(cls) -> dict[str, bool]:
        """The names of the dataclass's fields, and whether each is needed."""
        terms_class: Any = cls
        return {spec.name: spec.default is MISSING for spec in fields(terms_class)}

    @classmethod
    def read(cls, where: str, value: Any) -> Self:
        """The terms in a JSON object, whose fields are those of the dataclass; an error calls it `where`."""
        needed_fields = frozenset(name for name, is_needed in cls._whether_each_field_is_needed().items() if is_needed)
        return cls(
            **require_object_with_fields(
                where, value, Fields(needed_fields, frozenset(cls._whether_each_field_is_needed()))
            )
        )

    @property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values, without those that are not set."""
        return {
            name: value
            for name in self.STATED or self._whether_each_field_is_needed()
            if (value := getattr(self, name)) is not None
        }

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AgreementTerms)
            and type(other) is type(self)
            and (self.version, self.document) == (other.version, other.document)
        )

    def __hash__(self) -> int:
        return hash(canonical_json(self.document, self.version))


class AnyFamilyTerms(AgreementTerms, ABC):
    """The family of an agreement. By default it lists all of itself, releases outcomes one by one, and has no outcome by a label."""

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms as a file lists them."""
        return self.document

    @property
    def discretisation(self) -> Any:
        """The kind of the released atoms of a continuous family; None for outcomes."""
        return None

    @property
    def weights_file_content(self) -> bytes | None:
        """What a file beside the agreement holds, if there is one."""
        return None

    def with_weights_file(self, path: Path) -> Self:
        """The terms with what the file beside the agreement holds, if they need it."""
        return self

    @abstractmethod
    def require_other_outcome_number(self, number: Any) -> int:
        """The number of the outcome that values outside count as; an error if there is no such outcome."""

    def outcome_number(self, label: Any) -> int:
        """The number of the outcome with this label; an error where outcomes have none."""
        return self.require_other_outcome_number(0)


def require_object_with_fields(where: str, value: Any, fields: Fields) -> dict[str, Any]:
    """A JSON object with the fields it needs and no unknown one."""
    if not isinstance(value, dict):
        raise DiscreetError(f"{where} = {value!r} is not a JSON object")
    for absent in sorted(fields.needed - value.keys()):
        raise DiscreetError(f"{where} has no field {absent!r}")
    for unknown_field in sorted(value.keys() - fields.needed - fields.optional):
        raise DiscreetError(
            f"{where} has a field {unknown_field!r} that this version does not know; upgrade discreet to read it"
        )
    return value


def require_fields_that_kind_needs(where: str, value: Any, kinds: dict[str, Fields]) -> dict[str, Any]:
    """A JSON object with the fields that its kind needs, and none that has no meaning for it."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if isinstance(value, dict) and "kind" in value and kind not in tuple(kinds):
        raise DiscreetError(f"{where}.kind = {kind!r} is not one of {', '.join(kinds)}")
    kind_fields = kinds[kind] if isinstance(kind, str) else Fields.from_names("kind")
    all_fields = frozenset().union(*(fields.needed | fields.optional for fields in kinds.values()))
    document = require_object_with_fields(where, value, Fields(kind_fields.needed, all_fields))
    for name in document.keys() - kind_fields.needed - kind_fields.optional:
        if document[name] is not None:
            kind_text = kind if str(kind).endswith("s") else f"a {kind}"
            raise DiscreetError(f"{where}.{name} has no meaning for {kind_text}; leave it out")
    return document


def refuse_other_digest(problem: str, digest: str, stated_digest: str | None) -> None:
    """Refuse what a file lists beside a digest that is not its own: the id would speak for something else."""
    if digest != stated_digest:
        raise DiscreetError(f"{problem} whose digest is {stated_digest}; get the file anew")


def require_number_of_outside_outcome(number: Any) -> int:
    """The number of the outcome that values outside the domain count as, as an integer of at least 0."""
    return check_count("other", number, least=0, fix="it is the number of an outcome, from 0 on")


OTHER_ON_INTERVAL_MESSAGE = (
    "other has no meaning on an interval or a continuous family, where a value outside becomes the nearest end; "
    "leave it out"
)
BESIDE = ".weights"
KINDS = {
    "simplex": Fields.from_names("kind size", "labels interval"),
    "band": Fields.from_names("kind size", "labels interval lower upper weights everybody reference"),
}
_MIXTURE = Fields.from_names("kind dim atoms", "box radius scale")
CONTINUOUS_KINDS = {  # read in `_continuous_terms`
    "gaussian mixtures": Fields.from_names("kind dim atoms", "box radius scale normaliser"),
    "laplace mixtures": _MIXTURE,
    "density band": Fields.from_names("kind dim atoms", "box lower upper density everybody table"),
}
_LARGEST_TRIED = 2**24  # outcomes of a band whose reference may turn out to be uniform


@with_short_repr
@dataclass(frozen=True, eq=False)
class FamilyTerms(AnyFamilyTerms):
    """A finite family in an agreement, on its domain. Two families are the same where their documents are.

    Attributes:
        kind: the name of the family.
        domain: the outcomes.
        lower: the lower bound of a band.
        upper: the upper bound of a band.
        weights: the digest of a band's reference.
        everybody: set where a band claims nothing about clients: a designed one.
        reference: the weights of a reference that is not uniform, relative to the largest.
        version: of the document, on which digests of labels depend.
    """

    STATED = ("kind", "lower", "upper", "weights", "everybody")

    kind: str
    domain: Domain
    lower: float | None = None
    upper: float | None = None
    weights: str | None = None
    everybody: bool | None = None
    reference: NDArray[np.float64] | None = field(default=None, repr=False)
    version: int = VERSION

    @classmethod
    def of(cls, family: FiniteFamily, version: int = VERSION) -> "FamilyTerms":
        """The terms of a finite family."""
        match family:
            case Simplex():
                return cls("simplex", family.domain, version=version)
            case Band():
                bounds = family.bounds
                return cls(
                    "band",
                    family.domain,
                    bounds.lower,
                    bounds.upper,
                    _reference_weights_digest(family),
                    True if family.any_client else None,
                    None if isinstance(family.reference, float) else family.weights,
                    version,
                )
        raise DiscreetError(f"family = {family!r} has no terms yet; agree on a Simplex or a Band")

    @property
    def description(self) -> str:
        """The family in words."""
        return f"{self.size:,} outcomes"

    @property
    def size(self) -> int:
        """The number of outcomes."""
        return self.domain.size

    @property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values, without those that are not set."""
        return {**super().document, **self.domain.terms_in_version(self.version)}

    def difference(self, other: "FamilyTerms") -> tuple[str, Any, Any] | None:
        """(field, value here, value in the other) of the first term that differs, or None."""
        document, other_document = self.document, other.document
        for name in ("kind", *DOMAIN_FIELDS, *self.STATED[1:]):
            if document.get(name) != other_document.get(name):
                return f"family.{name}", document.get(name), other_document.get(name)
        return None

    def on(self, domain: Domain) -> "FamilyTerms":
        """The terms on a domain that lists the labels whose digest they contain; another domain is an error."""
        difference = replace(self, domain=domain).difference(self)
        if difference is not None:
            name, domain_value, agreed_value = difference
            raise DiscreetError(
                f"the domain has {name} = {domain_value!r}, not {agreed_value!r} as was agreed on; use the agreed one"
            )
        return replace(self, domain=domain)

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms as a file lists them: labels and weights themselves, where they are known and not too many."""
        terms = {**self.document, **self.domain.full_terms}
        if self.reference is not None and self.size <= MOST_LISTED:
            terms["reference"] = self.reference.tolist()
        return terms

    @property
    def weights_file_content(self) -> bytes | None:
        """The weights as a file beside the agreement holds them, where they are too many for the document."""
        if self.reference is None or self.size <= MOST_LISTED:
            return None
        return self.reference.astype("<f8").tobytes()

    def with_weights_file(self, path: Path) -> Self:
        """The terms with the weights from the file beside the agreement, if it exists and they are not listed."""
        if not self.lacks_weights or not path.is_file():
            return self
        return self.with_weights(path.read_bytes(), str(path))

    @property
    def lacks_weights(self) -> bool:
        """Whether only the digest of the weights is known."""
        return self.weights is not None and self.reference is None

    def with_weights(self, content: bytes, where: str) -> Self:
        """The terms with the weights in `content`; errors call it `where`."""
        if len(content) != 8 * self.size:
            raise DiscreetError(f"{where} holds {len(content):,} bytes, not the {self.size:,} weights of the agreement")
        weights = _require_each_weight_up_to_one(np.frombuffer(content, dtype="<f8").astype(np.float64), where)
        return replace(self, reference=weights)._require_weights_with_stated_digest()

    def require_other_outcome_number(self, number: Any) -> int:
        """The number of the outcome that values outside the domain count as; an error if there is no such outcome."""
        outcome = require_number_of_outside_outcome(number)
        if isinstance(self.domain, CellDomain):
            raise DiscreetError(OTHER_ON_INTERVAL_MESSAGE)
        if outcome >= self.size:
            raise DiscreetError(f"other = {outcome} is not one of the outcomes 0 to {self.size - 1}")
        return outcome

    def outcome_number(self, label: Any) -> int:
        """The number of the outcome with this label; an error on an interval, whose cells have none."""
        return (
            super().outcome_number(label)
            if isinstance(self.domain, CellDomain)
            else int(self.domain.numbers([label])[0])
        )

    def family(self) -> FiniteFamily:
        """The family, if the terms contain all of it: weights that are listed, or a uniform reference."""
        if isinstance(self.domain, Digested):
            self.domain.refuse_unknown_labels()
        if self.kind == "simplex":
            return Simplex(self.domain)
        if self.reference is not None:
            return self._make_band_with_weights(self.reference)
        if self.size <= _LARGEST_TRIED and _digest_of_uniform_weights(self.size) == self.weights:
            return self._make_band_with_weights(np.ones(self.size))
        raise DiscreetError(
            "the agreement holds a digest of its weights; pass the family that it was made with. Or put the file of weights that was "
            f"written with it beside it, under the agreement's name with {BESIDE} at the end"
        )

    def _require_weights_with_stated_digest(self) -> Self:
        """The terms; an error if the listed weights do not have the stated digest."""
        if self.reference is not None:
            self._make_band_with_weights(self.reference)
        return self

    def _make_band_with_weights(self, weights: NDArray[np.float64]) -> Band:
        assert self.lower is not None
        assert self.upper is not None
        band = Band(weights, lower=self.lower, upper=self.upper, domain=self.domain, any_client=bool(self.everybody))
        refuse_other_digest("the weights listed are not those", _reference_weights_digest(band), self.weights)
        bounds = band.bounds
        if (bounds.lower, bounds.upper) != (self.lower, self.upper):
            raise DiscreetError(
                f"the agreement has bounds {self.lower:g} and {self.upper:g}, of which no distribution attains "
                f"both: those of the same distributions are {bounds.lower:g} and {bounds.upper:g}, with another "
                f"box; make a new agreement"
            )
        return band

    described = OldName("description")
    listed = OldName("full_terms")


def _reference_weights_digest(band: Band) -> str:
    return sha256_digest(np.broadcast_to(band.reference, band.size).astype("<f8").tobytes())


def _digest_of_uniform_weights(size: int) -> str:
    return sha256_digest(np.full(size, 1.0 / size).astype("<f8").tobytes())


def _require_each_weight_up_to_one(weights: NDArray[np.float64], where: Any) -> NDArray[np.float64]:
    if not ((weights > 0.0) & (weights <= 1.0)).all():
        bad = int(np.argmin((weights > 0.0) & (weights <= 1.0)))
        raise DiscreetError(
            f"{where}, entry {bad}: {weights[bad]:g} is not in (0, 1]; weights are relative to the largest"
        )
    weights.setflags(write=False)
    return weights


def read_family_terms(fields: dict[str, Any], version: int = VERSION) -> FamilyTerms:
    """The terms that a document of that version states, with the fields of its kind; an error names the first one that is wrong."""
    domain = domain_from_terms(fields, "family", version)
    if fields["kind"] == "simplex":
        return FamilyTerms("simplex", domain, version=version)
    weights = fields.get("weights")
    if weights is not None:
        check_digest_format("family.weights", weights)
    lower = NON_NEGATIVE.check("family.lower", fields.get("lower"))
    upper = POSITIVE.check("family.upper", fields.get("upper"))
    if not lower < 1.0 < upper:
        raise DiscreetError(f"family.lower = {lower:g}, family.upper = {upper:g}; a band needs lower < 1 < upper")
    if weights is None:
        raise DiscreetError("family.weights is missing; a band needs the digest of its reference")
    any_client = read_agreed_any_client_flag(fields.get("everybody"), lower)
    listed_weights = _read_listed_weights(fields.get("reference"), domain.size)
    return FamilyTerms(
        "band", domain, lower, upper, weights, any_client, listed_weights, version
    )._require_weights_with_stated_digest()


def _read_listed_weights(weights: Any, size: int) -> NDArray[np.float64] | None:
    """The weights that a file lists."""
    if weights is None:
        return None
    if not isinstance(weights, list) or len(weights) != size:
        raise DiscreetError(f"family.reference is not a list of {size} weights, one for each outcome")
    for index, weight in enumerate(weights):
        if not isinstance(weight, (int, float)) or isinstance(weight, bool):
            raise DiscreetError(f"family.reference[{index}] = {weight!r} is not a number")
    try:
        return _require_each_weight_up_to_one(np.array(weights, dtype=np.float64), "family.reference")
    except OverflowError:
        raise DiscreetError("family.reference holds a whole number that no float can; weights are in (0, 1]") from None


ROW_KINDS = {"rows": Fields.from_names("kind columns")}
LARGEST_COLUMN = 0xFFFFFFF9  # outcomes that tables can code: the next numbers are marks


@dataclass(frozen=True, eq=False)
class RowTerms(AnyFamilyTerms):
    """The rows that clients hold: public columns, and every distribution on them.

    Args:
        columns: of the survey.
        version: of the document.

    Raises:
        DiscreetError: for columns with more labels than a document lists.
    """

    columns: SurveyColumns
    version: int = VERSION

    kind = "rows"

    def __post_init__(self) -> None:
        for name, domain in self.columns.items():
            kinds = {type(label) for label in domain.labels or ()}
            if kinds not in ({str}, {int}, set()):
                raise DiscreetError(
                    f"column {name!r}: labels are neither all texts nor all whole numbers; write them one way"
                )
            if domain.size > LARGEST_COLUMN:
                raise DiscreetError(f"column {name!r} has {domain.size:,} outcomes, more than {LARGEST_COLUMN:,}")
        label_count = sum(len(domain.labels or ()) for domain in self.columns.values())
        if label_count > MOST_LISTED:
            raise DiscreetError(_too_many_labels_message(label_count))

    @cached_property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values."""
        # a list, since its order counts
        columns = [{"name": name, **terms} for name, terms in self.columns.terms.items()]
        return {"kind": self.kind, "columns": columns}

    @property
    def size(self) -> int:
        """The number of different rows."""
        return self.columns.size

    @property
    def description(self) -> str:
        """The family in words."""
        return f"rows of {', '.join(self.columns)}"

    def require_other_outcome_number(self, number: Any) -> int:
        """Raise an error: rows with a value outside are left out."""
        require_number_of_outside_outcome(number)
        raise DiscreetError("other has no meaning for a survey; leave it out")

    def family(self) -> Any:
        """No family has so many outcomes; a survey is sampled by `agreement.sampler()`."""
        raise DiscreetError(
            f"the agreement is on {self.description}, not on a list of outcomes; use agreement.sampler()"
        )


def read_row_terms(fields: dict[str, Any], version: int = VERSION) -> RowTerms:
    """The terms that a document states."""
    entries = fields["columns"]
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries
    ):
        raise DiscreetError("family.columns is not a list of columns, each with its name")
    columns = [
        (entry["name"], {field: value for field, value in entry.items() if field != "name"}) for entry in entries
    ]
    if len({str(name) for name, _ in columns}) < len(columns):
        raise DiscreetError("family.columns names a column twice")
    _refuse_too_many_labels(terms for _, terms in columns)
    return RowTerms(survey_columns_from_terms(dict(columns), "family.columns"), version)


def _refuse_too_many_labels(columns: Iterable[Any]) -> None:
    """Raise an error for more labels or days than a document lists, before any of them is made."""
    label_count = 0
    for terms in columns:
        if set(terms) == {"first", "last"}:
            label_count += Labels.count_days(terms["first"], terms["last"])
        elif isinstance(terms.get("labels"), list):
            label_count += len(terms["labels"])
    if label_count > MOST_LISTED:
        raise DiscreetError(_too_many_labels_message(label_count))


def _too_many_labels_message(label_count: int) -> str:
    return (
        f"the columns have {label_count:,} labels, and an agreement on a survey lists at most {MOST_LISTED:,}; number the outcomes of the "
        "largest column, from 0 on"
    )
