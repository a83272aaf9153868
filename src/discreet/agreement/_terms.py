"""One codec for the parts of an agreement: fields are written, compared and read by tables.

`AgreementTerms` writes the fields that are set; two terms are the same where their documents are. `Fields` says which fields an object
needs and which it may have; `check_object` and `check_kind_fields` read by it. What is long stands in a document as a digest, and a file
may list it beside (`check_listed`), up to `MOST_LISTED` numbers.
"""

from typing import Any, ClassVar, NamedTuple

from discreet.domain import VERSION, canonical
from discreet.errors import DiscreetError

MOST_LISTED = 1 << 16  # weights of a reference, or values of a table, that a document lists


class Fields(NamedTuple):
    """The fields that an object of a document needs, and those that it may have beside them."""

    needed: frozenset[str]
    optional: frozenset[str] = frozenset()

    @classmethod
    def of(cls, needed: str, optional: str = "") -> "Fields":
        """From two lists of names with spaces between them."""
        return cls(frozenset(needed.split()), frozenset(optional.split()))


class AgreementTerms:
    """A part of an agreement: the attributes in `FIELDS` are its document, without those that are None."""

    FIELDS: ClassVar[tuple[str, ...]]
    version: int = VERSION

    @property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values, without those that are not set."""
        return {name: value for name in self.FIELDS if (value := getattr(self, name)) is not None}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AgreementTerms)
            and type(other) is type(self)
            and (self.version, self.document) == (other.version, other.document)
        )

    def __hash__(self) -> int:
        return hash(canonical(self.document, self.version))


def check_object(where: str, value: Any, fields: Fields) -> dict[str, Any]:
    """A JSON object with the fields it needs and no unknown one."""
    if not isinstance(value, dict):
        raise DiscreetError(f"{where} = {value!r} is not a JSON object")
    for absent in sorted(fields.needed - value.keys()):
        raise DiscreetError(f"{where} has no field {absent!r}")
    for unknown in sorted(value.keys() - fields.needed - fields.optional):
        raise DiscreetError(
            f"{where} has a field {unknown!r} that this version does not know; upgrade discreet to read it"
        )
    return value


def check_kind_fields(where: str, value: Any, kinds: dict[str, Fields]) -> dict[str, Any]:
    """A JSON object with the fields that its kind needs, and none that has no meaning for it."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if isinstance(value, dict) and "kind" in value and kind not in tuple(kinds):
        raise DiscreetError(f"{where}.kind = {kind!r} is not one of {', '.join(kinds)}")
    own = kinds[kind] if isinstance(kind, str) else Fields.of("kind")
    known = frozenset().union(*(fields.needed | fields.optional for fields in kinds.values()))
    found = check_object(where, value, Fields(own.needed, known))
    for name in found.keys() - own.needed - own.optional:
        if found[name] is not None:
            named = kind if str(kind).endswith("s") else f"a {kind}"
            raise DiscreetError(f"{where}.{name} has no meaning for {named}; leave it out")
    return found


def check_listed(what: str, found: str, stated: str | None) -> None:
    """Refuse what a file lists beside a digest that is not its own: the id would speak for something else."""
    if found != stated:
        raise DiscreetError(f"{what} whose digest is {stated}; get the file anew")
