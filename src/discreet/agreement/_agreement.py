"""What clients and curator agree on before anything is released, as a small JSON document that names itself by its digest.

"The client and curator agree a private sampling mechanism" [paper, Section 1]: which laws (family), which mechanism, which
epsilon, how many rounds, drawn with integers of how many bits, and for what purpose. The id is the SHA-256 of the canonical
form: UTF-8 JSON with sorted keys and no spaces, numbers as RFC 8785 writes them so that any language can compute it, and lists as
long as the domain as digests. The field `discreet` is the version of that form (`discreet.domain._canonical`): documents of version 1
are still read, and keep their id. A field at its default is not written, so fields can be added later without changing
the id of any agreement made before. A file may list the labels in place of their digest, and the weights of a reference
beside theirs (or in a file of its own, FILE.weights, where they are many): the id is the same.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet._base.files import atomic_write, check_target, reason
from discreet._base.showing import with_short_repr
from discreet.agreement import _continuous_terms as continuous, _reference_terms as own_reference
from discreet.agreement._continuous_terms import ContinuousTerms
from discreet.agreement._family_terms import BESIDE, KINDS, READ_FIELDS, FamilyTerms, read_family_terms
from discreet.agreement._mechanism_terms import BLOCK_FIELDS, JOINT_FIELDS, BlockTerms, JointTerms
from discreet.agreement._reference_terms import ReferenceTerms
from discreet.domain import VERSION, Domain, canonical, check_version, read_number
from discreet.errors import (
    DiscreetError,
    LargeEpsilonWarning,
    check_count,
    check_kind,
    is_called_by_user,
    warn_caller,
)
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.mechanisms import (
    MECHANISM_NAMES,
    MECHANISMS,
    AnyFamily,
    ComposedSampler,
    JointSampler,
    MollifierSampler,
    ReportSampler,
    Sampler,
    check_mechanism,
    sampler_named,
)
from discreet.privacy import Gaussian, Privacy, Pure, check_epsilon, privacy_document, read_privacy
from discreet.privacy.tradeoff import weak_rounds_warning
from discreet.release import BITS

__all__ = ["VERSION", "Agreement", "BlockTerms", "ContinuousTerms", "FamilyTerms", "JointTerms"]

_HINTS = {"atoms": ": on this machine numbers would mean other cells or points; release where they are those agreed on"}

_FIELDS = {
    "discreet",
    "family",
    "mechanism",
    "epsilon",
    "privacy",
    "reference",
    "bits",
    "rounds",
    "purpose",
    "other",
    "joint",
    "blocks",
}

_LEARNED = re.compile(r"learned from samples under ([0-9a-f]{64}(?:, [0-9a-f]{64})*)")


def learned_purpose(purpose: str, ids: Sequence[str]) -> str:
    """The purpose of an agreement on a sampler that was learned from samples under agreements with these ids."""
    return f"{purpose} (learned from samples under {', '.join(dict.fromkeys(ids))})".strip()


@with_short_repr
@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The terms under which samples are released. Every record carries its `id`.

    Made by `Agreement.of(sampler, ...)`, or read by `Agreement.read(path)` and `Agreement.from_json(text)`.

    Args:
        family: the outcomes and the bounds, as an agreement states them.
        mechanism: "optimal", "linear", "mollifier", or "reports", whose releases are blocks of outcomes in place of samples.
        epsilon: the pure budget of one release, also where another notion is promised: log(B/b) of its box.
        rounds: how many samples each client releases.
        purpose: what for, in words.
        privacy: the notion that is promised, where it is not pure epsilon: `Approximate(...)` or `Gaussian(...)`.
        reference: the public law that a mollifier's ball is around, where it is not the family's own.
        other: the number of the outcome that values outside the domain count as. None: they are left out, or on an interval become its
            nearest end, and a client with nothing left is served as the reference. Devices and gateways of a collection follow this rule.
        joint: how several samples of each client are drawn at once, where each round releases several.
        blocks: which blocks reports name; of the mechanism "reports" alone.

    Raises:
        DiscreetError: for terms out of range.
    """

    family: FamilyTerms | ContinuousTerms
    mechanism: str
    epsilon: float
    rounds: int = 1
    purpose: str = ""
    privacy: Privacy | None = None
    reference: ReferenceTerms | None = None
    other: int | None = None
    joint: JointTerms | None = None
    blocks: BlockTerms | None = None

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        if self.other is not None:
            object.__setattr__(self, "other", _check_other(self.other, self.family))
        if self.joint is not None:
            self._check_joint()
        self._check_blocks()
        if self.reference is not None and self.mechanism != MollifierSampler.name:
            raise DiscreetError(f"reference has no meaning for the mechanism {self.mechanism}; leave it out")
        if self.privacy is not None:
            privacy_document(self.privacy)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        rounds = check_count("rounds", self.rounds, fix="it is how many samples each client releases")
        object.__setattr__(self, "rounds", rounds)
        if not isinstance(self.purpose, str):
            raise DiscreetError(f"purpose = {self.purpose!r} is not a text")

    def _check_joint(self) -> None:
        """Refuse terms that samples cannot be drawn at once under."""
        if self.mechanism != JointSampler.name:
            raise DiscreetError(f"joint has no meaning for the mechanism {self.mechanism}; leave it out")
        if self.privacy is not None or isinstance(self.family, ContinuousTerms):
            raise DiscreetError("joint is for pure epsilon on a list of outcomes; leave it out")

    def _check_blocks(self) -> None:
        """Refuse blocks of another mechanism than reports, and reports without blocks or on what has none."""
        if self.mechanism != ReportSampler.name:
            if self.blocks is not None:
                raise DiscreetError(f"blocks has no meaning for the mechanism {self.mechanism}; leave it out")
            return
        if isinstance(self.family, ContinuousTerms) or self.family.kind != "simplex":
            raise DiscreetError(
                "mechanism = 'reports' is for every distribution on a list of outcomes, a Simplex; on a band or a continuous family agree "
                "on 'optimal', or cut an interval into cells: Simplex(Interval(low, high, cells=n))"
            )
        if self.privacy is not None:
            raise DiscreetError(
                f"mechanism = 'reports' is for pure epsilon, not for {self.privacy}; agree on 'linear', or leave privacy out"
            )
        if self.blocks is None:
            raise DiscreetError("mechanism = 'reports' needs blocks; use Agreement.of(ReportSampler(...))")
        self.blocks.on(self.family.size)

    @classmethod
    def of(
        cls,
        sampler: Sampler[AnyFamily] | JointSampler | ComposedSampler | ReportSampler,
        *,
        rounds: int = 1,
        purpose: str = "",
        version: int = VERSION,
        other: Any = None,
    ) -> "Agreement":
        """The agreement to release by this sampler.

        Args:
            sampler: the mechanism with its family and budget.
            rounds: how many samples each client releases.
            purpose: what for, in words.
            version: of the document; an older one for what was agreed on before.
            other: the outcome, by its label, that values outside the domain count as.

        Returns:
            The agreement.

        Raises:
            DiscreetError: for terms out of range, and for a sampler that cannot be agreed on.
        """
        if isinstance(sampler, ComposedSampler):
            raise DiscreetError(
                f"{sampler!r} draws samples one by one; agree on Agreement.of(sampler.share, rounds={sampler.samples}), a round for each"
            )
        if isinstance(sampler, JointSampler) and (sampler.around is None or sampler.samples == 1):
            raise DiscreetError(
                f"{sampler!r} cannot be agreed on: one sample is agreed on as OptimalSampler(...), several without a band= of their own"
            )
        if not isinstance(sampler, (JointSampler, ReportSampler)) and type(sampler) not in MECHANISMS.values():
            raise DiscreetError(f"{sampler!r} cannot be agreed on yet; use one of {', '.join(MECHANISM_NAMES)}")
        made = cls(
            family=_terms_of(sampler, check_version(version)),
            mechanism=sampler.name,
            epsilon=sampler.epsilon,
            rounds=rounds,
            purpose=purpose,
            privacy=None if isinstance(sampler.privacy, Pure) else sampler.privacy,
            reference=ReferenceTerms.of(sampler) if isinstance(sampler, MollifierSampler) else None,
            other=None if other is None else _outcome_number(other, sampler),
            joint=JointTerms(sampler.samples, str(sampler.around)) if isinstance(sampler, JointSampler) else None,
            blocks=BlockTerms.of(sampler) if isinstance(sampler, ReportSampler) else None,
        )
        doubt = made.doubt_of_rounds
        if doubt is not None and is_called_by_user("agreement"):
            warn_caller(doubt, LargeEpsilonWarning)
        return made

    @property
    def domain(self) -> Domain:
        """The public outcomes agreed on."""
        return self.on_outcomes.domain

    @property
    def on_outcomes(self) -> FamilyTerms:
        """The terms of a family on finitely many outcomes; a continuous one has none, and is refused."""
        if isinstance(self.family, ContinuousTerms):
            raise DiscreetError(
                f"agreement {self.id} is on {self.family.description}, which are no list of outcomes; use agreement.sampler(), and for "
                "estimates population(agreement, samples=...)"
            )
        return self.family

    @property
    def learned_from(self) -> tuple[str, ...]:
        """The ids of the agreements whose samples the sampler was learned from, as the purpose names them; none for any other sampler.

        Clients who spoke under one of those spend a second budget if they speak under this one too.
        """
        named = _LEARNED.search(self.purpose)
        return () if named is None else tuple(named[1].split(", "))

    @property
    def version(self) -> int:
        """Of the document: in which canonical form it has its id."""
        return self.family.version

    @property
    def document(self) -> dict[str, Any]:
        """The agreement as JSON values: the fields that are not at their defaults."""
        terms: dict[str, Any] = {
            "discreet": self.version,
            "family": self.family.document,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "bits": BITS,
        }
        if self.rounds != 1:
            terms["rounds"] = self.rounds
        if self.purpose:
            terms["purpose"] = self.purpose
        if self.privacy is not None:
            terms["privacy"] = privacy_document(self.privacy)
        if self.reference is not None:
            terms["reference"] = self.reference.document
        if self.other is not None:
            terms["other"] = self.other
        if self.joint is not None:
            terms["joint"] = self.joint.document
        if self.blocks is not None:
            terms["blocks"] = self.blocks.document
        return terms

    @property
    def promise(self) -> Privacy:
        """What one release promises."""
        return Pure(self.epsilon) if self.privacy is None else self.privacy

    @property
    def together(self) -> Privacy:
        """What all rounds of a client promise together: epsilons add up, as squares of nu do; of other notions the epsilon of their box."""
        if self.rounds == 1:
            return self.promise
        if isinstance(self.promise, Gaussian):
            return Gaussian(math.sqrt(self.rounds) * self.promise.nu)
        return Pure(self.rounds * self.epsilon)

    @property
    def doubt_of_rounds(self) -> str | None:
        """What to say where each round promises enough and all of them together promise little; None elsewhere."""
        return weak_rounds_warning(self.promise, self.together, self.rounds)

    @cached_property
    def canonical(self) -> str:
        """The one JSON text that the id is taken of."""
        return canonical(self.document, self.version)

    @cached_property
    def text(self) -> str:
        """What a file holds: the canonical form, but with labels and weights themselves where they are known and not too many."""
        own = {} if self.reference is None else {"reference": self.reference.full_terms}
        return canonical({**self.document, "family": self.family.full_terms, **own}, self.version)

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

    def sampler(self, family: AnyFamily | None = None, *, reference: Any = None) -> Any:
        """The sampler agreed on.

        Args:
            family: needed where the agreement does not hold all of it; checked against what it holds.
            reference: the same of a mollifier's own reference.

        Returns:
            A `Sampler` of the mechanism agreed on; for reports a `ReportSampler`.

        Raises:
            DiscreetError: for what is missing, for what is not what was agreed on, and for an agreement on several samples drawn at once.
        """
        if self.blocks is not None:
            if reference is not None:
                raise DiscreetError("reference has no meaning for reports; leave it out")
            return self.report_sampler(family)
        if self.joint is not None:
            raise DiscreetError(
                f"agreement {self.id} is on {self.joint.samples} samples of each client drawn at once, not on one; use "
                "agreement.joint_sampler(), with Ledger.release(...) to release and population(agreement, samples=rows) or "
                "`discreet estimate` to estimate, or agree on one sample of each client"
            )
        whole_family = self.family.family() if family is None else family
        if reference is None and self.reference is not None:
            reference = self.reference.reference(whole_family)
        found = sampler_named(
            self.mechanism, whole_family, privacy=self.promise, how=self.family.how, reference=reference
        )
        if found.epsilon != self.epsilon:
            raise DiscreetError(
                f"epsilon = {self.epsilon!r} is not the pure budget of {self.promise}, which is {found.epsilon!r} here"
            )
        here, agreed = _terms_of(found, self.version).document, self.family.document
        for name in (name for name in {**agreed, **here} if here.get(name) != agreed.get(name)):
            raise DiscreetError(
                f"family.{name} = {here.get(name)!r} is not the {agreed.get(name)!r} that was agreed on{_HINTS.get(name, '')}"
            )
        own = ReferenceTerms.of(found) if isinstance(found, MollifierSampler) else None
        if own != self.reference:
            raise DiscreetError(
                f"reference = {own and own.document!r} is not the {self.reference and self.reference.document!r} that was agreed on"
            )
        return found

    def joint_sampler(self, family: FiniteFamily | None = None) -> JointSampler:
        """The sampler agreed on, of an agreement on several samples drawn at once.

        Args:
            family: needed where the agreement does not hold all of it; checked against what it holds.

        Returns:
            The sampler.

        Raises:
            DiscreetError: for an agreement on one sample at a time, for what is missing, and for what is not what was agreed on.
        """
        if self.joint is None:
            raise DiscreetError(
                f"agreement {self.id} is on one sample of each client at a time; use agreement.sampler()"
            )
        whole: Any = self.family.family() if family is None else family
        around: Any = self.joint.around
        found = JointSampler(whole, samples=self.joint.samples, epsilon=self.epsilon, around=around)
        self.check_sampler(found)
        return found

    def report_sampler(self, family: Any = None) -> ReportSampler:
        """The sampler agreed on, of an agreement on reports.

        Args:
            family: needed where the agreement does not hold all of it; checked against what it holds.

        Returns:
            The sampler, with the blocks that were agreed on.

        Raises:
            DiscreetError: for an agreement on samples, for what is missing, and for what is not what was agreed on.
        """
        if self.blocks is None:
            raise DiscreetError(f"agreement {self.id} is on samples, not on reports; use agreement.sampler()")
        whole: Any = self.family.family() if family is None else family
        found = ReportSampler(whole, epsilon=self.epsilon, blocks=self.blocks.on(whole.size))
        self.check_sampler(found)
        return found

    def check_sampler(self, sampler: Sampler[AnyFamily] | JointSampler | ReportSampler) -> None:
        """Refuse a sampler that is not the one agreed on, and name both agreements."""
        own = replace(
            Agreement.of(sampler, rounds=self.rounds, purpose=self.purpose, version=self.version), other=self.other
        )
        if own.id != self.id:
            raise DiscreetError(
                f"{sampler!r} belongs to agreement {own.id}, not to {self.id}; use agreement.sampler(family)"
            )

    def write(self, path: str | Path) -> None:
        """Write the agreement, with its labels and weights where they are known, to a new file.

        An existing file is never replaced; one that holds this agreement already is left as it is. The weights of more than 65,536
        outcomes go to a file of their own, PATH.weights. Folders on the way are made.
        """
        if os.path.lexists(path):
            self.check_file(path)
            return
        weights = self.family.beside
        if weights is not None:
            check_target(path, what="agreement")
            with atomic_write(weights_path(path), what="file of weights", folders=True) as file:
                file.write(weights)
        with atomic_write(path, what="agreement", folders=True) as file:
            file.write(self.text.encode() + b"\n")

    def check_file(self, path: str | Path) -> None:
        """Refuse a file that is there and holds anything but this agreement, and name both."""
        if not os.path.lexists(path):
            return
        try:
            if not os.path.isfile(path):  # a pipe would be waited for, and a device may never end
                raise DiscreetError("not a plain file")
            found = Agreement.read(path).id
        except DiscreetError:
            raise DiscreetError(f"{path} exists already and holds no agreement; choose another name") from None
        if found != self.id:
            raise DiscreetError(
                f"{path} exists already and holds agreement {found}, not {self.id}; records may name it: choose another name"
            )

    @classmethod
    def read(cls, path: str | Path) -> "Agreement":
        """The agreement in a file, with the weights in the file beside it where there is one."""
        try:
            found = cls.from_json(Path(path).read_text(encoding="utf-8"))
            return replace(found, family=found.family.with_beside(weights_path(path)))
        except UnicodeDecodeError:
            raise DiscreetError(f"{path} is not a text in UTF-8, so not an agreement") from None
        except DiscreetError as error:
            raise DiscreetError(f"{path}: {error}") from None
        except (OSError, ValueError) as error:
            raise DiscreetError(f"agreement {path} cannot be read: {reason(error)}") from None

    def with_weights(self, content: bytes, where: Any = "weights") -> "Agreement":
        """The agreement with the weights of its reference where these are too many to list, as the file beside it holds them."""
        if isinstance(self.family, ContinuousTerms):
            raise DiscreetError(
                f"agreement {self.id} is on {self.family.description}, which has no weights; leave them out"
            )
        return replace(self, family=self.family.with_weights(content, where))

    @classmethod
    def from_json(cls, text: str) -> "Agreement":
        """The agreement that a JSON document states; an error names the first field that is wrong."""
        check_kind("text", text, str, "pass the JSON text itself, not what a reader of JSON made of it")
        try:
            document = json.loads(text, object_pairs_hook=_refuse_repeats)
            if isinstance(document, dict) and document.get("discreet") != 1:
                document = json.loads(text, parse_int=read_number, parse_float=read_number)
        except DiscreetError:
            raise
        except (ValueError, RecursionError) as error:  # ValueError: also a whole number of thousands of digits
            raise DiscreetError(f"the agreement is not JSON: {error}") from None
        terms = _check_object(
            "the agreement", document, _FIELDS, {"discreet", "family", "mechanism", "epsilon", "bits"}
        )
        version = check_version(terms["discreet"])
        if terms["bits"] != BITS:
            raise DiscreetError(f"bits = {terms['bits']!r} is not {BITS}, the integers this version draws with")
        return cls(
            family=_read_terms(terms["family"], version),
            mechanism=terms["mechanism"],
            epsilon=terms["epsilon"],
            rounds=terms.get("rounds", 1),
            purpose=terms.get("purpose", ""),
            privacy=read_privacy(terms["privacy"]) if "privacy" in terms else None,
            reference=_read_reference(terms["reference"]) if "reference" in terms else None,
            other=_check_other(terms["other"], None) if "other" in terms else None,
            joint=JointTerms(**_check_object("joint", terms["joint"], JOINT_FIELDS, JOINT_FIELDS))
            if "joint" in terms
            else None,
            blocks=BlockTerms(**_check_object("blocks", terms["blocks"], BLOCK_FIELDS, {"kind"}))
            if "blocks" in terms
            else None,
        )


def _check_other(number: Any, family: FamilyTerms | ContinuousTerms | None) -> int:
    """The number of the outcome that values outside the domain count as; only labels and whole numbers have one."""
    found = check_count("other", number, least=0, fix="it is the number of an outcome, from 0 on")
    if family is None:
        return found
    if isinstance(family, ContinuousTerms) or family.domain.edges is not None:
        raise DiscreetError(
            "other has no meaning on an interval or a continuous family, where a value outside becomes the nearest end; leave it out"
        )
    if found >= family.size:
        raise DiscreetError(f"other = {found} is not one of the outcomes 0 to {family.size - 1}")
    return found


def _outcome_number(label: Any, sampler: Sampler[AnyFamily] | JointSampler | ReportSampler) -> int:
    family = sampler.family
    if isinstance(family, ContinuousFamily) or family.domain.edges is not None:
        return _check_other(0, _terms_of(sampler, VERSION))  # which explains why there is none
    return int(family.domain.numbers([label])[0])


def _terms_of(
    sampler: Sampler[AnyFamily] | JointSampler | ReportSampler, version: int
) -> FamilyTerms | ContinuousTerms:
    if isinstance(sampler, (JointSampler, ReportSampler)):
        return FamilyTerms.of(sampler.family, version)
    family = sampler.family
    if isinstance(family, ContinuousFamily):
        return ContinuousTerms.of(sampler, family, version)
    return FamilyTerms.of(family, version)


def _read_terms(fields: Any, version: int) -> FamilyTerms | ContinuousTerms:
    """The terms of a family, which its kind says how to read."""
    if isinstance(fields, dict) and fields.get("kind") not in (None, *KINDS, *continuous.KINDS):
        raise DiscreetError(f"family.kind = {fields['kind']!r} is not one of {', '.join((*KINDS, *continuous.KINDS))}")
    if isinstance(fields, dict) and fields.get("kind") in continuous.KINDS:
        return continuous.read_continuous_terms(
            _check_object("family", fields, continuous.READ_FIELDS, continuous.NEEDED), version
        )
    return read_family_terms(_check_object("family", fields, READ_FIELDS, {"kind", "size"}), version)


def _read_reference(fields: Any) -> ReferenceTerms:
    return own_reference.read_reference_terms(
        _check_object("reference", fields, own_reference.READ_FIELDS, own_reference.NEEDED)
    )


def weights_path(path: str | Path) -> Path:
    """Where the weights lie that are too many for an agreement's own file."""
    return Path(f"{path}{BESIDE}")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a field that is given twice is refused, since readers would differ on which one counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise DiscreetError(f"the agreement gives {repeated!r} twice")
    return found


def _check_object(name: str, value: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DiscreetError(f"{name} = {value!r} is not a JSON object")
    for absent in sorted(needed - value.keys()):
        raise DiscreetError(f"{name} has no field {absent!r}")
    for unknown in sorted(value.keys() - known):
        raise DiscreetError(
            f"{name} has a field {unknown!r} that this version does not know; upgrade discreet to read it"
        )
    return value
