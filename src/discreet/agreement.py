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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
        if self.mechanism not in MECHANISMS:
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
        fields: dict[str, Any] = {
            "discreet": VERSION,
            "family": self.family.document,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "bits": BITS,
        }
        if self.rounds != 1:
            fields["rounds"] = self.rounds
        if self.purpose:
            fields["purpose"] = self.purpose
        return fields

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

    @classmethod
    def from_json(cls, text: str) -> "Agreement":
        """The agreement that a JSON document states; an error names the first field that is wrong."""
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise DiscreetError(f"the agreement is not JSON: {error}") from None
        fields = _object("the agreement", document, _FIELDS, {"discreet", "family", "mechanism", "epsilon", "bits"})
        if fields["discreet"] != VERSION:
            raise DiscreetError(
                f"discreet = {fields['discreet']!r} is not version {VERSION}; upgrade discreet to read it"
            )
        if fields["bits"] != BITS:
            raise DiscreetError(f"bits = {fields['bits']!r} is not {BITS}, the integers this version draws with")
        return cls(
            family=_family_terms(_object("family", fields["family"], _FAMILY_FIELDS, {"kind", "size"})),
            mechanism=fields["mechanism"],
            epsilon=fields["epsilon"],
            rounds=fields.get("rounds", 1),
            purpose=fields.get("purpose", ""),
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
        raise DiscreetError("a text in the agreement is not valid Unicode") from None
    except ValueError:
        raise DiscreetError("an agreement holds finite numbers only") from None
    return text


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
            raise DiscreetError(f"family.interval = {interval!r} is not [low, high]")
        low, high = (_FINITE.check("family.interval", end) for end in interval)
        if not low < high:
            raise DiscreetError(f"family.interval = {interval!r} is not [low, high] with low < high")
        interval = (low, high)
    for field in ("labels", "weights"):
        digest = fields.get(field)
        if digest is not None and not (isinstance(digest, str) and digest.startswith("sha256:") and len(digest) == 71):
            raise DiscreetError(f"family.{field} = {digest!r} is not 'sha256:' and 64 hexadecimal digits")
    lower, upper = fields.get("lower"), fields.get("upper")
    if fields["kind"] == "band":
        lower = NON_NEGATIVE.check("family.lower", lower)
        upper = POSITIVE.check("family.upper", upper)
    return FamilyTerms(
        fields["kind"],
        check_count("family.size", fields["size"]),
        fields.get("labels"),
        interval,
        lower,
        upper,
        fields.get("weights"),
    )
