"""A family as an agreement states it: what is as long as the domain stands there as a digest, and may be listed beside it.

Labels and the weights of a band's reference are not part of the id, their digests are: so a file may list them or not. Few enough
weights stand in the document itself; those of a large domain in a file beside it, as 64-bit floats in little-endian order.
"""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, Range, check_count
from discreet.families import Band, FiniteFamily, Simplex
from discreet.showing import shown_shortly

LISTED = 1 << 16  # weights that a document holds; more are in a file beside it
BESIDE = ".weights"
_LARGEST_TRIED = 2**24  # outcomes of a band whose reference may turn out to be uniform
_FINITE = Range(-math.inf, math.inf, low_open=True, high_open=True)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
FIELDS = ("kind", "size", "labels", "interval", "lower", "upper", "weights", "everybody")
READ_FIELDS = {*FIELDS, "reference"}


@shown_shortly
@dataclass(frozen=True)
class FamilyTerms:
    """A family in an agreement. `labels` and `weights` are digests; `interval` (low, high) is cut into `size` equal cells.

    `everybody` is set where a band claims nothing about clients: a designed one.
    `names` are the labels themselves where they are known, `reference` the weights of a reference that is not uniform, relative to the
    largest. Digests stand for them: they are not part of the id.
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
    reference: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)

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
                bounds = family.bounds
                everybody = True if family.everybody else None
                return cls(
                    "band",
                    family.size,
                    labels,
                    interval,
                    bounds.lower,
                    bounds.upper,
                    _weights_digest(family),
                    everybody,
                    names,
                    None if isinstance(family.reference, float) else family.weights,
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

    @property
    def outcomes(self) -> "FamilyTerms":
        """The terms of every law on the same outcomes."""
        return FamilyTerms("simplex", self.size, self.labels, self.interval, names=self.names)

    def difference(self, other: "FamilyTerms") -> tuple[str, Any, Any] | None:
        """(field, here, in the other) of the first term that differs; None where none does."""
        here, there = self.document, other.document
        for name in FIELDS:
            if here.get(name) != there.get(name):
                return f"family.{name}", here.get(name), there.get(name)
        return None

    @property
    def listed(self) -> dict[str, Any]:
        """The terms as a file lists them: labels and weights themselves, where they are known and not too many."""
        listed = self.document
        if self.names is not None:
            listed["labels"] = list(self.names)
        if self.reference is not None and self.size <= LISTED:
            listed["reference"] = self.reference.tolist()
        return listed

    @property
    def beside(self) -> bytes | None:
        """The weights as a file beside the agreement holds them, where they are too many for the document."""
        if self.reference is None or self.size <= LISTED:
            return None
        return self.reference.astype("<f8").tobytes()

    def with_beside(self, path: Path) -> "FamilyTerms":
        """The terms with the weights of the file beside an agreement's, if it is there and they are not listed."""
        if self.weights is None or self.reference is not None or not path.is_file():
            return self
        content = path.read_bytes()
        if len(content) != 8 * self.size:
            raise DiscreetError(f"{path} holds {len(content):,} bytes, not the {self.size:,} weights of the agreement")
        weights = _checked_weights(np.frombuffer(content, dtype="<f8").astype(np.float64), path)
        return replace(self, reference=weights)._with_true_weights()

    def family(self) -> FiniteFamily:
        """The family itself, where the terms hold all of it: labels and weights that are listed, or none and a uniform reference."""
        if self.labels is not None and self.names is None:
            raise DiscreetError("the agreement holds a digest of its labels; pass the family it was made with")
        if self.kind == "simplex":
            return Simplex(self.size if self.names is None else self.names)
        if self.reference is not None:
            return self._band(self.reference)
        if self.size <= _LARGEST_TRIED and _uniform_digest(self.size) == self.weights:
            return self._band(np.ones(self.size))
        raise DiscreetError(
            "the agreement holds a digest of its weights; pass the family it was made with, or keep the file of weights that was "
            f"written with the agreement beside it, called as it is with {BESIDE} at the end"
        )

    def _with_true_weights(self) -> "FamilyTerms":
        """The terms, refused where the weights that they list are not those of the digest: the id would speak for others."""
        if self.reference is not None:
            self._band(self.reference)
        return self

    def _band(self, weights: NDArray[np.float64]) -> Band:
        assert self.lower is not None
        assert self.upper is not None
        band = Band(weights, lower=self.lower, upper=self.upper, labels=self.names, everybody=bool(self.everybody))
        if _weights_digest(band) != self.weights:
            raise DiscreetError(f"the weights listed are not those whose digest is {self.weights}; get the file anew")
        attained = band.bounds
        if (attained.lower, attained.upper) != (self.lower, self.upper):
            raise DiscreetError(
                f"the agreement has bounds {self.lower:g} and {self.upper:g}, of which no law attains both: those of the "
                f"same laws are {attained.lower:g} and {attained.upper:g}, with another box; make a new agreement"
            )
        return band


def labels_digest(labels: Sequence[Any]) -> str:
    """The digest of a list of labels (texts, numbers), in order; 1 and "1" differ."""
    return _digest(canonical(list(_plain(labels))).encode())


def _plain(labels: Sequence[Any]) -> tuple[Any, ...]:
    """Labels as JSON can hold them."""
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    for label in plain:
        if not isinstance(label, (str, int, float)):
            raise DiscreetError(f"label {label!r} cannot stand in an agreement; use texts or numbers")
    return plain


def _weights_digest(band: Band) -> str:
    return _digest(np.broadcast_to(band.reference, band.size).astype("<f8").tobytes())


def _uniform_digest(size: int) -> str:
    return _digest(np.full(size, 1.0 / size).astype("<f8").tobytes())


def _checked_weights(weights: NDArray[np.float64], where: Any) -> NDArray[np.float64]:
    if not ((weights > 0.0) & (weights <= 1.0)).all():
        bad = int(np.argmin((weights > 0.0) & (weights <= 1.0)))
        raise DiscreetError(
            f"{where}, entry {bad}: {weights[bad]:g} is not in (0, 1]; weights are relative to the largest"
        )
    weights.setflags(write=False)
    return weights


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def canonical(value: Any) -> str:
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise DiscreetError("an agreement holds texts that can be written in UTF-8 only") from None
    except ValueError:
        raise DiscreetError("an agreement holds finite numbers only") from None
    return text


def family_terms(fields: dict[str, Any]) -> FamilyTerms:
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
        for name in ("lower", "upper", "weights", "everybody", "reference"):
            if fields.get(name) is not None:
                raise DiscreetError(f"family.{name} = {fields[name]!r} has no meaning for a simplex; leave it out")
    return FamilyTerms(
        fields["kind"],
        size,
        labels,
        interval,
        lower,
        upper,
        fields.get("weights"),
        fields.get("everybody"),
        names,
        _reference(fields.get("reference"), size),
    )._with_true_weights()


def _reference(listed: Any, size: int) -> NDArray[np.float64] | None:
    """The weights that a file lists."""
    if listed is None:
        return None
    if not isinstance(listed, list) or len(listed) != size:
        raise DiscreetError(f"family.reference is not a list of {size} weights, one for each outcome")
    for place, weight in enumerate(listed):
        if not isinstance(weight, (int, float)) or isinstance(weight, bool):
            raise DiscreetError(f"family.reference[{place}] = {weight!r} is not a number")
    try:
        return _checked_weights(np.array(listed, dtype=np.float64), "family.reference")
    except OverflowError:
        raise DiscreetError("family.reference holds a whole number that no float can; weights are in (0, 1]") from None


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
