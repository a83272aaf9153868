"""What clients and curator agree on before anything is released, as a small JSON document that names itself by its digest.

"The client and curator agree a private sampling mechanism" [paper, Section 1]: which laws (family), which mechanism, which
epsilon, how many rounds, drawn with integers of how many bits, and for what purpose. The id is the SHA-256 of the canonical
form: UTF-8 JSON with sorted keys and no spaces, where every number is the shortest that reads back as itself and lists as
long as the domain stand as digests. A field at its default is not written, so fields can be added later without changing
the id of any agreement made before.
"""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, Range, check_count
from discreet.families import Band, FiniteFamily, Simplex
from discreet.mechanisms import LinearSampler, MollifierSampler, OptimalSampler
from discreet.mechanisms.sampler import FiniteSampler
from discreet.release.randomness import BITS
from discreet.tradeoff import check_epsilon

VERSION = 1

MECHANISMS: dict[str, type[FiniteSampler]] = {
    "optimal": OptimalSampler,
    "linear": LinearSampler,
    "mollifier": MollifierSampler,
}
_FINITE = Range(-math.inf, math.inf, low_open=True, high_open=True)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_FIELDS = {"discreet", "family", "mechanism", "epsilon", "bits", "rounds", "purpose"}
_FAMILY_FIELDS = {"kind", "size", "labels", "interval", "lower", "upper", "weights"}


@dataclass(frozen=True)
class FamilyTerms:
    """A family in an agreement. `labels` and `weights` are digests; `interval` (low, high) is cut into `size` equal cells."""

    kind: str
    size: int
    labels: str | None = None
    interval: tuple[float, float] | None = None
    lower: float | None = None
    upper: float | None = None
    weights: str | None = None

    @classmethod
    def of(cls, family: FiniteFamily, interval: tuple[float, float] | None = None) -> "FamilyTerms":
        """The terms of a finite family; `interval` where its outcomes are the cells of one."""
        labels = None if family.labels is None else labels_digest(family.labels)
        match family:
            case Simplex():
                return cls("simplex", family.size, labels, interval)
            case Band():
                weights = np.broadcast_to(family.reference, family.size).astype("<f8").tobytes()
                bounds = family.bounds
                return cls("band", family.size, labels, interval, bounds.lower, bounds.upper, _digest(weights))
        raise DiscreetError(f"family = {family!r} has no terms yet; agree on a Simplex or a Band")

    @property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values, without those that are not set."""
        terms = {
            "kind": self.kind,
            "size": self.size,
            "labels": self.labels,
            "interval": None if self.interval is None else list(self.interval),
            "lower": self.lower,
            "upper": self.upper,
            "weights": self.weights,
        }
        return {name: value for name, value in terms.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The terms under which samples are released. Every record carries its `id`."""

    family: FamilyTerms
    mechanism: str
    epsilon: float
    rounds: int = 1
    purpose: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, str) or self.mechanism not in MECHANISMS:
            raise DiscreetError(f"mechanism = {self.mechanism!r} is not one of {', '.join(MECHANISMS)}")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        check_count("rounds", self.rounds, fix="it is how many samples each client releases")
        if not isinstance(self.purpose, str):
            raise DiscreetError(f"purpose = {self.purpose!r} is not a text")

    @classmethod
    def of(
        cls,
        sampler: FiniteSampler,
        *,
        interval: tuple[float, float] | None = None,
        rounds: int = 1,
        purpose: str = "",
    ) -> "Agreement":
        """The agreement to release by this sampler."""
        names = [name for name, kind in MECHANISMS.items() if type(sampler) is kind]
        if not names or getattr(sampler, "_own_reference", None) is not None:
            raise DiscreetError(f"{sampler!r} cannot be agreed on yet; use one of {', '.join(MECHANISMS)} as it comes")
        family = FamilyTerms.of(sampler.family, interval)
        return cls(family=family, mechanism=names[0], epsilon=sampler.epsilon, rounds=rounds, purpose=purpose)

    @property
    def document(self) -> dict[str, Any]:
        """The agreement as JSON values: the fields that are not at their defaults."""
        terms: dict[str, Any] = {
            "discreet": VERSION,
            "family": self.family.document,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "bits": BITS,
        }
        if self.rounds != 1:
            terms["rounds"] = self.rounds
        if self.purpose:
            terms["purpose"] = self.purpose
        return terms

    @cached_property
    def canonical(self) -> str:
        """The one JSON text that the id is taken of."""
        return _canonical(self.document)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical form, 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def check_round(self, number: Any) -> int:
        """The number of a round that was agreed on: 1 to `rounds`."""
        round_number = check_count("round", number)
        if round_number > self.rounds:
            raise DiscreetError(
                f"round = {round_number} is more than the {self.rounds} agreed on; agree on more rounds (each spends epsilon)"
            )
        return round_number

    def check_record(self, agreement_id: Any) -> None:
        """Refuse a record that was made under another agreement, and name both."""
        if agreement_id != self.id:
            raise DiscreetError(
                f"the record was made under agreement {agreement_id}, not under {self.id}; its epsilon, outcomes or purpose may "
                "differ: read it with the agreement it names"
            )

    def sampler(self, family: FiniteFamily | None = None) -> FiniteSampler:
        """The sampler agreed on. `family`: needed where the agreement holds digests of labels or weights; checked against them."""
        if family is None:
            if self.family.kind != "simplex" or self.family.labels is not None:
                raise DiscreetError(
                    "the agreement holds digests of labels or weights; pass the family it was made with, to be checked against them"
                )
            family = Simplex(self.family.size)
        found = FamilyTerms.of(family, self.family.interval)
        for field in fields(FamilyTerms):
            given, agreed = getattr(found, field.name), getattr(self.family, field.name)
            if given != agreed:
                raise DiscreetError(f"family.{field.name} = {given!r} is not the {agreed!r} that was agreed on")
        return MECHANISMS[self.mechanism](family, epsilon=self.epsilon)

    def check_sampler(self, sampler: FiniteSampler) -> None:
        """Refuse a sampler that is not the one agreed on, and name both agreements."""
        own = Agreement.of(sampler, interval=self.family.interval, rounds=self.rounds, purpose=self.purpose)
        if own.id != self.id:
            raise DiscreetError(
                f"{sampler!r} belongs to agreement {own.id}, not to {self.id}; use agreement.sampler(family)"
            )

    def write(self, path: str | Path) -> None:
        """Write the canonical form, and a line end, to a new file. An existing file is never replaced."""
        try:
            with open(path, "x", encoding="utf-8", newline="\n") as file:
                file.write(self.canonical + "\n")
        except FileExistsError:
            raise DiscreetError(f"{path} exists already, and records may name it; choose another name") from None

    @classmethod
    def read(cls, path: str | Path) -> "Agreement":
        """The agreement in a file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise DiscreetError(f"{path} is not a text in UTF-8, so not an agreement") from None

    @classmethod
    def from_json(cls, text: str) -> "Agreement":
        """The agreement that a JSON document states; an error names the first field that is wrong."""
        try:
            document = json.loads(text, object_pairs_hook=_once)
        except DiscreetError:
            raise
        except (ValueError, RecursionError) as error:  # ValueError: also a whole number of thousands of digits
            raise DiscreetError(f"the agreement is not JSON: {error}") from None
        terms = _object("the agreement", document, _FIELDS, {"discreet", "family", "mechanism", "epsilon", "bits"})
        if terms["discreet"] != VERSION:
            raise DiscreetError(
                f"discreet = {terms['discreet']!r} is not version {VERSION}; upgrade discreet to read it"
            )
        if terms["bits"] != BITS:
            raise DiscreetError(f"bits = {terms['bits']!r} is not {BITS}, the integers this version draws with")
        return cls(
            family=_family_terms(_object("family", terms["family"], _FAMILY_FIELDS, {"kind", "size"})),
            mechanism=terms["mechanism"],
            epsilon=terms["epsilon"],
            rounds=terms.get("rounds", 1),
            purpose=terms.get("purpose", ""),
        )


def labels_digest(labels: Sequence[Any]) -> str:
    """The digest of a list of labels (texts, numbers), in order; 1 and "1" differ."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    for label in plain:
        if not isinstance(label, (str, int, float)):
            raise DiscreetError(f"label {label!r} cannot stand in an agreement; use texts or numbers")
    return _digest(_canonical(plain).encode())


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _canonical(value: Any) -> str:
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise DiscreetError("an agreement holds texts that can be written in UTF-8 only") from None
    except ValueError:
        raise DiscreetError("an agreement holds finite numbers only") from None
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a field that is given twice is refused, since readers would differ on which one counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise DiscreetError(f"the agreement gives {repeated!r} twice")
    return found


def _object(name: str, value: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DiscreetError(f"{name} = {value!r} is not a JSON object")
    for field in sorted(needed - value.keys()):
        raise DiscreetError(f"{name} has no field {field!r}")
    for field in sorted(value.keys() - known):
        raise DiscreetError(
            f"{name} has a field {field!r} that this version does not know; upgrade discreet to read it"
        )
    return value


def _family_terms(fields: dict[str, Any]) -> FamilyTerms:
    if fields["kind"] not in ("simplex", "band"):
        raise DiscreetError(f"family.kind = {fields['kind']!r} is not one of simplex, band")
    interval = fields.get("interval")
    if interval is not None:
        if not (isinstance(interval, list) and len(interval) == 2):
            raise DiscreetError(f"family.interval = {interval!r} is not [low, high] with low < high")
        interval = (_FINITE.check("family.interval[0]", interval[0]), _FINITE.check("family.interval[1]", interval[1]))
        if not interval[0] < interval[1]:
            raise DiscreetError(f"family.interval = {list(interval)!r} is not [low, high] with low < high")
    for field in ("labels", "weights"):
        digest = fields.get(field)
        if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise DiscreetError(f"family.{field} = {digest!r} is not 'sha256:' and 64 hexadecimal digits")
    lower, upper = fields.get("lower"), fields.get("upper")
    if fields["kind"] == "band":
        lower = NON_NEGATIVE.check("family.lower", lower)
        upper = POSITIVE.check("family.upper", upper)
        if not lower < 1.0 < upper:
            raise DiscreetError(f"family.lower = {lower:g}, family.upper = {upper:g}; a band needs lower < 1 < upper")
        if fields.get("weights") is None:
            raise DiscreetError("family.weights is missing; a band needs the digest of its reference")
    else:
        for field in ("lower", "upper", "weights"):
            if fields.get(field) is not None:
                raise DiscreetError(f"family.{field} = {fields[field]!r} has no meaning for a simplex; leave it out")
    return FamilyTerms(
        fields["kind"],
        check_count("family.size", fields["size"]),
        fields.get("labels"),
        interval,
        lower,
        upper,
        fields.get("weights"),
    )
