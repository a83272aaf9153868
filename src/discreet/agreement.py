"""What clients and curator agree on before anything is released, as a small JSON document that names itself by its digest.

"The client and curator agree a private sampling mechanism" [paper, Section 1]: which laws (family), which mechanism, which
epsilon, how many rounds, drawn with integers of how many bits, and for what purpose. The id is the SHA-256 of the canonical
form: UTF-8 JSON with sorted keys and no spaces, where every number is the shortest that reads back as itself and lists as
long as the domain stand as digests. A field at its default is not written, so fields can be added later without changing
the id of any agreement made before. A file may list the labels in place of their digest: the id is the same.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, Range, check_count
from discreet.families import Band, FiniteFamily, Simplex
from discreet.files import reason, written
from discreet.mechanisms import LinearSampler, MollifierSampler, OptimalSampler
from discreet.mechanisms.sampler import Sampler
from discreet.release.randomness import BITS
from discreet.showing import shown_shortly
from discreet.tradeoff import check_epsilon

VERSION = 1

MECHANISMS: dict[str, type[Sampler]] = {
    "optimal": OptimalSampler,
    "linear": LinearSampler,
    "mollifier": MollifierSampler,
}
_LARGEST_TRIED = 2**24  # outcomes of a band whose reference may turn out to be uniform
_FINITE = Range(-math.inf, math.inf, low_open=True, high_open=True)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_FIELDS = {"discreet", "family", "mechanism", "epsilon", "bits", "rounds", "purpose"}
_FAMILY_FIELDS = ("kind", "size", "labels", "interval", "lower", "upper", "weights", "everybody")


@shown_shortly
@dataclass(frozen=True)
class FamilyTerms:
    """A family in an agreement. `labels` and `weights` are digests; `interval` (low, high) is cut into `size` equal cells.

    `everybody` is set where a band claims nothing about clients: a designed one.
    `names` are the labels themselves where they are known. The digest stands for them: they are not part of the id.
    """

    kind: str
    size: int
    labels: str | None = None
    interval: tuple[float, float] | None = None
    lower: float | None = None
    upper: float | None = None
    weights: str | None = None
    everybody: bool | None = None
    names: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.names is not None and labels_digest(self.names) != self.labels:
            raise DiscreetError(f"names are not the labels whose digest is {self.labels}; leave out one of the two")

    @classmethod
    def of(cls, family: FiniteFamily, interval: tuple[float, float] | None = None) -> "FamilyTerms":
        """The terms of a finite family; `interval` where its outcomes are the cells of one."""
        interval = _interval(interval)
        names = None if family.labels is None else _plain(family.labels)
        labels = None if names is None else labels_digest(names)
        match family:
            case Simplex():
                return cls("simplex", family.size, labels, interval, names=names)
            case Band():
                weights = np.broadcast_to(family.reference, family.size).astype("<f8").tobytes()
                bounds = family.bounds
                everybody = True if family.everybody else None
                return cls(
                    "band",
                    family.size,
                    labels,
                    interval,
                    bounds.lower,
                    bounds.upper,
                    _digest(weights),
                    everybody,
                    names,
                )
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
            "everybody": self.everybody,
        }
        return {name: value for name, value in terms.items() if value is not None}

    def difference(self, other: "FamilyTerms") -> tuple[str, Any, Any] | None:
        """(field, here, in the other) of the first term that differs; None where none does."""
        here, there = self.document, other.document
        for name in _FAMILY_FIELDS:
            if here.get(name) != there.get(name):
                return f"family.{name}", here.get(name), there.get(name)
        return None

    def family(self) -> FiniteFamily:
        """The family itself, where the terms hold all of it: labels that are listed or none, and a uniform reference."""
        if self.labels is not None and self.names is None:
            raise DiscreetError("the agreement holds a digest of its labels; pass the family it was made with")
        if self.kind == "simplex":
            return Simplex(self.size if self.names is None else self.names)
        assert self.lower is not None
        assert self.upper is not None
        if self.size <= _LARGEST_TRIED:
            uniform = Band(
                np.ones(self.size),
                lower=self.lower,
                upper=self.upper,
                labels=self.names,
                everybody=bool(self.everybody),
            )
            terms = FamilyTerms.of(uniform)
            if terms.weights == self.weights:
                if (terms.lower, terms.upper) != (self.lower, self.upper):
                    raise DiscreetError(
                        f"the agreement has bounds {self.lower:g} and {self.upper:g}, of which no law attains both: those of the "
                        f"same laws are {terms.lower:g} and {terms.upper:g}, with another box; make a new agreement"
                    )
                return uniform
        raise DiscreetError("the agreement holds a digest of its weights; pass the family it was made with")


@shown_shortly
@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The terms under which samples are released. Every record carries its `id`.

    Made by `Agreement.of(sampler, ...)`, or read by `Agreement.read(path)` and `Agreement.from_json(text)`.

    Args:
        family: the outcomes and the bounds, as an agreement states them.
        mechanism: "optimal", "linear" or "mollifier".
        epsilon: the budget of one release.
        rounds: how many samples each client releases.
        purpose: what for, in words.

    Raises:
        DiscreetError: for terms out of range.
    """

    family: FamilyTerms
    mechanism: str
    epsilon: float
    rounds: int = 1
    purpose: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, str) or self.mechanism not in MECHANISMS:
            raise DiscreetError(f"mechanism = {self.mechanism!r} is not one of {', '.join(MECHANISMS)}")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        rounds = check_count("rounds", self.rounds, fix="it is how many samples each client releases")
        object.__setattr__(self, "rounds", rounds)
        if not isinstance(self.purpose, str):
            raise DiscreetError(f"purpose = {self.purpose!r} is not a text")

    @classmethod
    def of(
        cls,
        sampler: Sampler,
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

    @property
    def text(self) -> str:
        """What a file holds: the canonical form, but with the labels themselves where they are known."""
        if self.family.names is None:
            return self.canonical
        return _canonical({**self.document, "family": {**self.family.document, "labels": list(self.family.names)}})

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

    def sampler(self, family: FiniteFamily | None = None) -> Sampler:
        """The sampler agreed on. `family`: needed where the agreement does not hold all of it; checked against what it holds."""
        if family is None:
            family = self.family.family()
        different = FamilyTerms.of(family, self.family.interval).difference(self.family)
        if different is not None:
            name, given, agreed = different
            raise DiscreetError(f"{name} = {given!r} is not the {agreed!r} that was agreed on")
        return MECHANISMS[self.mechanism](family, epsilon=self.epsilon)

    def check_sampler(self, sampler: Sampler) -> None:
        """Refuse a sampler that is not the one agreed on, and name both agreements."""
        own = Agreement.of(sampler, interval=self.family.interval, rounds=self.rounds, purpose=self.purpose)
        if own.id != self.id:
            raise DiscreetError(
                f"{sampler!r} belongs to agreement {own.id}, not to {self.id}; use agreement.sampler(family)"
            )

    def write(self, path: str | Path) -> None:
        """Write the agreement, with its labels where they are known, to a new file.

        An existing file is never replaced; one that holds this agreement already is left as it is.
        """
        if os.path.lexists(path):
            self.check_file(path)
            return
        with written(path, what="agreement") as file:
            file.write(self.text.encode() + b"\n")

    def check_file(self, path: str | Path) -> None:
        """Refuse a file that is there and holds anything but this agreement, and name both."""
        if not os.path.lexists(path):
            return
        try:
            found = Agreement.read(path).id
        except DiscreetError:
            raise DiscreetError(f"{path} exists already and holds no agreement; choose another name") from None
        if found != self.id:
            raise DiscreetError(
                f"{path} exists already and holds agreement {found}, not {self.id}; records may name it: choose another name"
            )

    @classmethod
    def read(cls, path: str | Path) -> "Agreement":
        """The agreement in a file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise DiscreetError(f"{path} is not a text in UTF-8, so not an agreement") from None
        except DiscreetError:
            raise
        except (OSError, ValueError) as error:
            raise DiscreetError(f"agreement {path} cannot be read: {reason(error)}") from None

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
            family=_family_terms(_object("family", terms["family"], set(_FAMILY_FIELDS), {"kind", "size"})),
            mechanism=terms["mechanism"],
            epsilon=terms["epsilon"],
            rounds=terms.get("rounds", 1),
            purpose=terms.get("purpose", ""),
        )


def labels_digest(labels: Sequence[Any]) -> str:
    """The digest of a list of labels (texts, numbers), in order; 1 and "1" differ."""
    return _digest(_canonical(list(_plain(labels))).encode())


def _plain(labels: Sequence[Any]) -> tuple[Any, ...]:
    """Labels as JSON can hold them."""
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    for label in plain:
        if not isinstance(label, (str, int, float)):
            raise DiscreetError(f"label {label!r} cannot stand in an agreement; use texts or numbers")
    return plain


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
        (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise DiscreetError(f"the agreement gives {repeated!r} twice")
    return found


def _object(name: str, value: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DiscreetError(f"{name} = {value!r} is not a JSON object")
    for absent in sorted(needed - value.keys()):
        raise DiscreetError(f"{name} has no field {absent!r}")
    for unknown in sorted(value.keys() - known):
        raise DiscreetError(
            f"{name} has a field {unknown!r} that this version does not know; upgrade discreet to read it"
        )
    return value


def _family_terms(fields: dict[str, Any]) -> FamilyTerms:
    if fields["kind"] not in ("simplex", "band"):
        raise DiscreetError(f"family.kind = {fields['kind']!r} is not one of simplex, band")
    interval = _interval(fields.get("interval"))
    size = check_count("family.size", fields["size"])
    labels, names = fields.get("labels"), None
    if isinstance(labels, list):
        names = _names(labels, size)
        labels = labels_digest(names)
    for name, digest in (("labels", labels), ("weights", fields.get("weights"))):
        if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise DiscreetError(f"family.{name} = {digest!r} is not 'sha256:' and 64 hexadecimal digits")
    lower, upper = fields.get("lower"), fields.get("upper")
    if fields["kind"] == "band":
        lower = NON_NEGATIVE.check("family.lower", lower)
        upper = POSITIVE.check("family.upper", upper)
        if not lower < 1.0 < upper:
            raise DiscreetError(f"family.lower = {lower:g}, family.upper = {upper:g}; a band needs lower < 1 < upper")
        if fields.get("weights") is None:
            raise DiscreetError("family.weights is missing; a band needs the digest of its reference")
        if fields.get("everybody") not in (None, True) or (fields.get("everybody") and lower > 0.0):
            raise DiscreetError(
                f"family.everybody = {fields['everybody']!r} is true, where family.lower is 0, or left out"
            )
    else:
        for name in ("lower", "upper", "weights", "everybody"):
            if fields.get(name) is not None:
                raise DiscreetError(f"family.{name} = {fields[name]!r} has no meaning for a simplex; leave it out")
    return FamilyTerms(
        fields["kind"], size, labels, interval, lower, upper, fields.get("weights"), fields.get("everybody"), names
    )


def _interval(interval: Any) -> tuple[float, float] | None:
    """(low, high), checked."""
    if interval is None:
        return None
    if not (isinstance(interval, (list, tuple)) and len(interval) == 2):
        raise DiscreetError(f"family.interval = {interval!r} is not [low, high] with low < high")
    low, high = (_FINITE.check(f"family.interval[{place}]", end) for place, end in enumerate(interval))
    if not low < high:
        raise DiscreetError(f"family.interval = [{low:g}, {high:g}] is not [low, high] with low < high")
    return low, high


def _names(labels: list[Any], size: int) -> tuple[Any, ...]:
    """The labels that a file lists."""
    for place, label in enumerate(labels):
        if not isinstance(label, (str, int, float)) or label != label:
            raise DiscreetError(f"family.labels[{place}] = {label!r} is neither a text nor a number")
    if len(labels) != size:
        raise DiscreetError(
            f"family.labels lists {len(labels)} labels for family.size = {size}; list each outcome once"
        )
    seen: set[Any] = set()
    for label in labels:
        if label in seen:
            raise DiscreetError(f"family.labels lists {label!r} twice; list each outcome once")
        seen.add(label)
    return tuple(labels)
