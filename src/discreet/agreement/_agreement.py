"""`Agreement`: the terms of a release as a small JSON document, named by its digest.

"The client and curator agree a private sampling mechanism" [paper, Section 1]. An agreement states the family of distributions, the
mechanism, epsilon, the number of rounds, the bits of the integers that samples are drawn with, and a purpose.

The id is the SHA-256 of the canonical form: UTF-8 JSON with sorted keys and no spaces. Numbers are written as in RFC 8785, so any language
can compute the id. Lists as long as the domain are replaced by their digests. The field `discreet` is the version of that form
(`discreet.domain._domain`). Documents of version 1 are still read and keep their id. Fields at their defaults are not written, so a new
field changes no existing id.

A file may list the labels in place of their digest, and the weights of a reference beside their digest. Many weights go to a separate file,
FILE.weights. The id is the same in all cases.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from discreet._base import OldName, placeholders_until_used
from discreet._base.files import atomic_write, check_output_path, error_reason
from discreet._base.showing import with_short_repr
from discreet.agreement._family_terms import (
    BESIDE,
    CONTINUOUS_KINDS,
    KINDS,
    ROW_KINDS,
    AgreementTerms,
    FamilyTerms,
    Fields,
    RowTerms,
    read_family_terms,
    read_row_terms,
    require_fields_that_kind_needs,
    require_number_of_outside_outcome,
    require_object_with_fields,
)
from discreet.domain import (
    VERSION,
    Domain,
    canonical_json,
    check_document_version,
    json_hook_refusing_repeated_fields,
    read_date,
    read_json_number,
)
from discreet.errors import (
    DiscreetError,
    LargeEpsilonWarning,
    check_count,
    check_kind,
    check_path,
    is_called_by_user,
    warn_caller,
)
from discreet.families import FiniteFamily
from discreet.mechanisms import (
    MECHANISM_NAMES,
    MECHANISMS,
    REPORTS_MECHANISM,
    AnyFamily,
    MollifierSampler,
    Sampler,
    check_mechanism,
    sampler_named,
)
from discreet.privacy import Privacy, Pure, check_epsilon
from discreet.release import BITS

with placeholders_until_used(globals()):
    from discreet.agreement._continuous_terms import ContinuousTerms, ReferenceTerms, read_continuous_terms
    from discreet.agreement._mechanism_terms import BlockTerms, JointTerms, OwnTerms, Schedule, SurveyTerms
    from discreet.families import ContinuousFamily
    from discreet.mechanisms import ComposedSampler, JointSampler, OwnSampler, ReportSampler
    from discreet.privacy import Gaussian, privacy_document, read_privacy
    from discreet.privacy.tradeoff import weak_composition_warning_text
    from discreet.survey import SurveySampler

AgreedSampler = TypeVar("AgreedSampler", bound=Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler)
_HINTS = {
    "atoms": ": on this machine numbers would mean other cells or points; release where they are those agreed on",
    "normaliser": ": leave the family out",
}

OWN_MECHANISM = "own"  # what `mechanism` says where the field `own` names the mechanism

# the fields that an agreement may have beside those it needs, by how they are read; the first two stand as they are
_PLAIN = {"rounds": 1, "purpose": ""}
_TERMS: dict[str, type[AgreementTerms]] = {
    "joint": JointTerms,
    "blocks": BlockTerms,
    "schedule": Schedule,
    "survey": SurveyTerms,
    "own": OwnTerms,
}


def _read_terms_of_field(name: str, terms: Any) -> AgreementTerms:
    return _TERMS[name].read(name, terms)


_READERS: dict[str, Callable[[Any], Any]] = {
    "privacy": read_privacy,
    "reference": lambda terms: ReferenceTerms.read_with_optional_reference(terms),
    "other": require_number_of_outside_outcome,
    **{name: partial(_read_terms_of_field, name) for name in _TERMS},
}
_AGREEMENT = Fields(
    frozenset({"discreet", "family", "mechanism", "epsilon", "bits"}), frozenset(_PLAIN) | frozenset(_READERS)
)
_ONLY_FOR: dict[str, Any] = {"joint": JointSampler, "blocks": ReportSampler, "reference": MollifierSampler}
_LEARNED = re.compile(r"learned from samples under ([0-9a-f]{64}(?:, [0-9a-f]{64})*)")


def purpose_with_sources(purpose: str, ids: Sequence[str]) -> str:
    """The purpose of an agreement whose sampler was learned from samples under the agreements with these ids."""
    return f"{purpose} (learned from samples under {', '.join(dict.fromkeys(ids))})".strip()


@with_short_repr
@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The terms under which samples are released. Every record carries its `id`.

    Made by `Agreement.of(sampler, ...)`, or read by `Agreement.read(path)` and `Agreement.from_json(text)`.

    Args:
        family: the outcomes and the bounds, as an agreement states them.
        mechanism: "optimal", "linear", "mollifier", or "reports", whose releases are blocks of outcomes in place of samples; of a survey
            "survey".
        epsilon: the pure budget of one release, also where another notion is promised: log(B/b) of its box.
        rounds: how many samples each client releases.
        purpose: what for, in words.
        privacy: the promised notion of privacy if it is not pure epsilon: `Approximate(...)` or `Gaussian(...)`.
        reference: the public centre of a mollifier's ball, if it is not the family's own reference.
        other: the number of the outcome that values outside the domain count as. None: they are left out, or moved to the nearest end
            of an interval. A client without remaining values is treated as the reference. Devices and gateways follow this rule.
        joint: the terms of several samples drawn together, if each round releases several.
        blocks: the blocks that reports name; only for the mechanism "reports".
        schedule: the dates of the rounds, if they are named by dates.
        survey: the questions and parts of a survey; only for the mechanism "survey".
        own: the package, version, parameters and box of a mechanism of somebody's own; only for the mechanism "own".

    Raises:
        DiscreetError: for terms out of range.
    """

    family: FamilyTerms | ContinuousTerms | RowTerms
    mechanism: str
    epsilon: float
    rounds: int = 1
    purpose: str = ""
    privacy: Privacy | None = None
    reference: ReferenceTerms | None = None
    other: int | None = None
    joint: JointTerms | None = None
    blocks: BlockTerms | None = None
    schedule: Schedule | None = None
    survey: SurveyTerms | None = None
    own: OwnTerms | None = None

    def __post_init__(self) -> None:
        self._refuse_inconsistent_survey()
        self._refuse_inconsistent_own_mechanism()
        if self.survey is None and self.own is None:
            check_mechanism(self.mechanism)
        if self.other is not None:
            object.__setattr__(self, "other", self.family.require_other_outcome_number(self.other))
        for name, sampler in _ONLY_FOR.items():
            if getattr(self, name) is not None and self.mechanism != sampler.name:
                raise DiscreetError(f"{name} has no meaning for the mechanism {self.mechanism}; leave it out")
        if self.joint is not None and (self.privacy is not None or isinstance(self.family, ContinuousTerms)):
            raise DiscreetError("joint is for pure epsilon on a list of outcomes; leave it out")
        if self.mechanism == REPORTS_MECHANISM:
            self._refuse_inconsistent_reports()
        if self.privacy is not None:
            privacy_document(self.privacy)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        rounds = check_count("rounds", self.rounds, fix="it is how many samples each client releases")
        object.__setattr__(self, "rounds", rounds)
        if self.schedule is not None:
            check_kind("schedule", self.schedule, Schedule, 'pass Schedule("2026-01-01", every="day")')
        if not isinstance(self.purpose, str):
            raise DiscreetError(f"purpose = {self.purpose!r} is not a text")
        if self.survey is not None:
            self.survey_sampler()  # refuses parts that do not answer the questions

    def _has_any_field_set(self, *names: str) -> bool:
        """Whether any of these fields is set."""
        return any(getattr(self, name) is not None for name in names)

    def _refuse_inconsistent_survey(self) -> None:
        """Reject rows without a survey, a survey without rows, and terms that no survey has."""
        is_survey = self.survey is not None
        if isinstance(self.family, RowTerms) != is_survey or (is_survey and self.mechanism != SurveySampler.name):
            raise DiscreetError(
                "a survey is agreed on by family.kind = 'rows', mechanism = 'survey' and the field survey together; use "
                "Agreement.of(SurveySampler(...))"
            )
        if is_survey and self._has_any_field_set("privacy", "reference", "other", "joint", "blocks"):
            raise DiscreetError("a survey is for pure epsilon, and has no privacy, reference, other, joint or blocks")

    def _refuse_inconsistent_own_mechanism(self) -> None:
        """Reject the terms of an own mechanism beside another mechanism, and terms that none has."""
        is_own = self.own is not None
        if (isinstance(self.mechanism, str) and self.mechanism == OWN_MECHANISM) != is_own:
            raise DiscreetError(
                f"mechanism = {OWN_MECHANISM!r} and the field own, which names it, belong together; use Agreement.of(sampler)"
            )
        if is_own and (
            not isinstance(self.family, FamilyTerms)
            or self._has_any_field_set("reference", "joint", "blocks", "survey")
        ):
            raise DiscreetError(
                "a mechanism of one's own is agreed on for a list of outcomes, without reference, joint, blocks or survey"
            )

    def _refuse_inconsistent_reports(self) -> None:
        """Reject reports without blocks, under another notion of privacy, or on another family than a simplex."""
        if not isinstance(self.family, FamilyTerms) or self.family.kind != "simplex":
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
        sampler: Sampler[AnyFamily] | JointSampler | ComposedSampler | ReportSampler | SurveySampler,
        *,
        rounds: int = 1,
        purpose: str = "",
        version: int = VERSION,
        other: Any = None,
        schedule: Schedule | None = None,
    ) -> "Agreement":
        """The agreement to release by `sampler`.

        Args:
            sampler: the mechanism with its family and budget.
            rounds: how many samples each client releases.
            purpose: what for, in words.
            version: of the document; give an older one for agreements made under it.
            other: the outcome, by its label, that values outside the domain count as.
            schedule: the dates of the rounds: `Schedule("2026-01-01", every="day")`.

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
        other_kinds = (JointSampler, ReportSampler, SurveySampler, OwnSampler)
        if not isinstance(sampler, other_kinds) and type(sampler) not in MECHANISMS.values():
            raise DiscreetError(f"{sampler!r} cannot be agreed on yet; use one of {', '.join(MECHANISM_NAMES)}")
        family = _family_terms_of_sampler(sampler, check_document_version(version))
        agreement = cls(
            family=family,
            mechanism=OWN_MECHANISM if isinstance(sampler, OwnSampler) else sampler.name,
            epsilon=sampler.epsilon,
            rounds=rounds,
            purpose=purpose,
            privacy=None if isinstance(sampler.privacy, Pure) else sampler.privacy,
            reference=ReferenceTerms.of(sampler) if isinstance(sampler, MollifierSampler) else None,
            other=None if other is None else family.outcome_number(other),
            joint=JointTerms(sampler.samples, str(sampler.around)) if isinstance(sampler, JointSampler) else None,
            blocks=BlockTerms.of(sampler) if isinstance(sampler, ReportSampler) else None,
            schedule=schedule,
            survey=SurveyTerms.of(sampler) if isinstance(sampler, SurveySampler) else None,
            own=OwnTerms.of(sampler) if isinstance(sampler, OwnSampler) else None,
        )
        doubt = agreement.doubt_of_rounds
        if doubt is not None and is_called_by_user("agreement"):
            warn_caller(doubt, LargeEpsilonWarning)
        return agreement

    @property
    def domain(self) -> Domain:
        """The public outcomes agreed on."""
        return self.on_outcomes.domain

    @property
    def on_outcomes(self) -> FamilyTerms:
        """The terms of a family on finitely many outcomes; an error for a continuous family and a survey."""
        if isinstance(self.family, RowTerms):
            raise DiscreetError(
                f"agreement {self.id} is on a survey of {', '.join(self.family.columns)}, not on a list of outcomes; use "
                "agreement.survey_sampler(), and for estimates answer_survey(sampler, reports)"
            )
        if isinstance(self.family, ContinuousTerms):
            raise DiscreetError(
                f"agreement {self.id} is on {self.family.description}, which are no list of outcomes; use agreement.sampler(), and for "
                "estimates population(agreement, samples=...)"
            )
        return self.family

    @property
    def learned_from(self) -> tuple[str, ...]:
        """The ids of the agreements that the sampler was learned from, as the purpose names them; empty for other samplers.

        A client who releases under one of those and under this one spends two budgets.
        """
        match = _LEARNED.search(self.purpose)
        return () if match is None else tuple(match[1].split(", "))

    @property
    def release_kind(self) -> str:
        """What one client sends, in a word: a sample, or a report."""
        return "sample" if self.blocks is None and self.survey is None else "report"

    @property
    def stated_purpose(self) -> str:
        """The purpose without the words that name what the sampler was learned from."""
        match = _LEARNED.search(self.purpose)
        return self.purpose if match is None else self.purpose[: match.start()].rstrip("( ")

    @property
    def version(self) -> int:
        """The version of the document, which fixes its canonical form."""
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
        terms |= {name: getattr(self, name) for name, default in _PLAIN.items() if getattr(self, name) != default}
        parts = ((name, getattr(self, name)) for name in _READERS)
        return terms | {name: _field_as_json_value(part) for name, part in parts if part is not None}

    @property
    def promise(self) -> Privacy:
        """The privacy of one release."""
        return Pure(self.epsilon) if self.privacy is None else self.privacy

    @property
    def privacy_of_all_rounds(self) -> Privacy:
        """The privacy of all rounds of a client together.

        Epsilons add up, and so do squares of nu. Other notions are counted by the epsilon of their box.
        """
        return self._privacy_after_rounds(self.rounds)

    together = OldName("privacy_of_all_rounds")

    @property
    def rounds_in_a_year(self) -> int:
        """The largest number of rounds in a calendar year; all of them without a schedule."""
        return self.rounds if self.schedule is None else min(self.rounds, self.schedule.most_in_a_year)

    @property
    def in_a_year(self) -> Privacy:
        """The privacy of a client's rounds of one calendar year together."""
        return self._privacy_after_rounds(self.rounds_in_a_year)

    def _privacy_after_rounds(self, rounds: int) -> Privacy:
        if rounds == 1:
            return self.promise
        if isinstance(self.promise, Gaussian):
            return Gaussian(math.sqrt(rounds) * self.promise.nu)
        return Pure(rounds * self.epsilon)

    @property
    def doubt_of_rounds(self) -> str | None:
        """A warning for rounds that are private one by one and weak together; otherwise None."""
        return weak_composition_warning_text(self.promise, self.privacy_of_all_rounds, self.rounds)

    @cached_property
    def canonical(self) -> str:
        """The canonical JSON text, from which the id is computed."""
        return canonical_json(self.document, self.version)

    @cached_property
    def text(self) -> str:
        """The text of a file: the canonical form with labels and weights listed, if they are known and few enough."""
        reference_field = {} if self.reference is None else {"reference": self.reference.full_terms}
        return canonical_json({**self.document, "family": self.family.full_terms, **reference_field}, self.version)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical form, 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def check_round(self, number: Any) -> int:
        """`number` as an integer; an error unless it is in 1 to `rounds`."""
        round_number = check_count("round", number)
        if round_number > self.rounds:
            raise DiscreetError(
                f"round = {round_number} is more than the {self.rounds} agreed on; agree on more rounds (each spends epsilon)"
            )
        return round_number

    def round_number(self, given: Any) -> int:
        """The round of that number, or in which a date lies.

        Args:
            given: a number from 1 to `rounds`; or a date, or a text such as 2026-11-17, under an agreement with a schedule.

        Returns:
            The number.

        Raises:
            DiscreetError: for a round that was not agreed on.
        """
        if not isinstance(given, (str, date)):
            return self.check_round(given)
        if self.schedule is None:
            raise DiscreetError(
                f"round = {str(given)!r} is not a number, and the agreement has no schedule of dates. Give the number of the round, or make "
                "an agreement with a schedule: schedule= (discreet agree --start DATE --every day)"
            )
        day = read_date("round", given)
        number = self.schedule.number(day)
        if not 1 <= number <= self.rounds:
            raise DiscreetError(
                f"round = {day} is in none of the {self.rounds:,} rounds agreed on, from {self.schedule.start} to "
                f"{self.schedule.last_day(self.rounds)}; make an agreement on later ones (each round spends epsilon)"
            )
        return number

    def check_record(self, agreement_id: Any) -> None:
        """Reject a record made under another agreement; the error names both."""
        if agreement_id != self.id:
            raise DiscreetError(
                f"the record was made under agreement {agreement_id}, not under {self.id}; its epsilon, outcomes or purpose may "
                "differ: read it with the agreement it names"
            )

    def sampler(self, family: AnyFamily | None = None, *, reference: Any = None) -> Any:
        """The agreed sampler.

        Args:
            family: needed if the agreement does not contain all of it; checked against the agreement's terms.
            reference: the same for a mollifier's own reference.

        Returns:
            A `Sampler` of the mechanism agreed on; for reports a `ReportSampler`, for a survey a `SurveySampler`.

        Raises:
            DiscreetError: for a missing or different family or reference, and for an agreement on several samples drawn together.
        """
        if self.survey is not None:
            if family is not None or reference is not None:
                raise DiscreetError("family and reference have no meaning for a survey; leave them out")
            return self.survey_sampler()
        if self.blocks is not None:
            if reference is not None:
                raise DiscreetError("reference has no meaning for reports; leave it out")
            return self.report_sampler(family)
        if self.joint is not None:
            raise DiscreetError(
                f"agreement {self.id} is on {self.joint.samples} samples of each client drawn together, not on one; use "
                "agreement.joint_sampler(), or agree on one sample of each client. Release with Ledger.release(...) or `discreet sample`. "
                "Estimate with population(agreement, samples=rows) or `discreet estimate`"
            )
        whole_family = self._agreed_or_given_family(family)
        if self.own is not None:
            if reference is not None:
                raise DiscreetError("reference has no meaning for a mechanism of one's own; leave it out")
            return self._require_agreed_sampler(self.own.sampler(whole_family, self.promise))
        if reference is None and self.reference is not None:
            reference = self.reference.reference(whole_family)
        sampler = sampler_named(
            self.mechanism,
            whole_family,
            privacy=self.promise,
            discretisation=self.family.discretisation,
            reference=reference,
        )
        if sampler.epsilon != self.epsilon:
            raise DiscreetError(
                f"epsilon = {self.epsilon!r} is not the pure budget of {self.promise}, which is {sampler.epsilon!r} here"
            )
        document, agreed_document = _family_terms_of_sampler(sampler, self.version).document, self.family.document
        for name in (
            name for name in {**agreed_document, **document} if document.get(name) != agreed_document.get(name)
        ):
            raise DiscreetError(
                f"family.{name} = {document.get(name)!r} is not the {agreed_document.get(name)!r} that was agreed on{_HINTS.get(name, '')}"
            )
        terms = ReferenceTerms.of(sampler) if isinstance(sampler, MollifierSampler) else None
        if terms != self.reference:
            raise DiscreetError(
                f"reference = {terms and terms.document!r} is not the {self.reference and self.reference.document!r} that was agreed on"
            )
        return sampler

    def _agreed_or_given_family(self, family: Any) -> Any:
        """The family agreed on, or the one that is given because the agreement does not contain all of it."""
        return self.family.family() if family is None else family

    def _require_agreed_sampler(self, sampler: AgreedSampler) -> AgreedSampler:
        """The sampler, if it is the one agreed on."""
        self.check_sampler(sampler)
        return sampler

    def joint_sampler(self, family: FiniteFamily | None = None) -> JointSampler:
        """The agreed sampler of several samples drawn together.

        Args:
            family: needed if the agreement does not contain all of it; checked against the agreement's terms.

        Returns:
            The sampler.

        Raises:
            DiscreetError: for an agreement on one sample at a time, and for a missing or different family.
        """
        if self.joint is None:
            raise DiscreetError(
                f"agreement {self.id} is on one sample of each client at a time; use agreement.sampler()"
            )
        return self._require_agreed_sampler(self.joint.sampler(self._agreed_or_given_family(family), self.epsilon))

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
            contents = "samples" if self.survey is None else "a survey"
            raise DiscreetError(
                f"agreement {self.id} is on {contents}, not on reports of one column; use agreement.sampler()"
            )
        return self._require_agreed_sampler(self.blocks.sampler(self._agreed_or_given_family(family), self.epsilon))

    def survey_sampler(self) -> SurveySampler:
        """The sampler agreed on, of an agreement on a survey.

        Returns:
            The sampler, with the parts that were agreed on.

        Raises:
            DiscreetError: for another agreement.
        """
        if self.survey is None:
            raise DiscreetError(f"agreement {self.id} is on no survey; use agreement.sampler()")
        return self._cached_survey_sampler

    @cached_property
    def _cached_survey_sampler(self) -> SurveySampler:
        assert self.survey is not None
        assert isinstance(self.family, RowTerms)
        return self.survey.sampler(self.family.columns, self.epsilon)

    def check_sampler(self, sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler) -> None:
        """Reject a sampler other than the agreed one; the error names both agreements."""
        agreement = replace(
            Agreement.of(
                sampler, rounds=self.rounds, purpose=self.purpose, version=self.version, schedule=self.schedule
            ),
            other=self.other,
        )
        if agreement.id != self.id:
            raise DiscreetError(
                f"{sampler!r} belongs to agreement {agreement.id}, not to {self.id}; use agreement.sampler(family)"
            )

    def write(self, path: str | Path) -> None:
        """Write the agreement to a new file, with its labels and weights if they are known.

        An existing file is never replaced; a file that already contains this agreement is left unchanged. The weights of more than 65,536
        outcomes go to a separate file, PATH.weights. Missing folders are created.
        """
        if os.path.lexists(path):
            self.check_file(path)
            return
        weights = self.family.weights_file_content
        if weights is not None:
            check_output_path(path, what="agreement")
            with atomic_write(weights_path(path), what="file of weights", folders=True) as file:
                file.write(weights)
        with atomic_write(path, what="agreement", folders=True) as file:
            file.write(self.text.encode() + b"\n")

    def check_file(self, path: str | Path) -> None:
        """Reject an existing file unless it contains this agreement; the error names both."""
        check_path("path", path)
        if not os.path.lexists(path):
            return
        try:
            if not os.path.isfile(path):  # reading a pipe or a device may never end
                raise DiscreetError("not a plain file")
            agreement_id = Agreement.read(path).id
        except DiscreetError:
            raise DiscreetError(f"{path} exists already and holds no agreement; choose another name") from None
        if agreement_id != self.id:
            raise DiscreetError(
                f"{path} exists already and holds agreement {agreement_id}, not {self.id}; records may name it: choose another name"
            )

    @classmethod
    def read(cls, path: str | Path) -> "Agreement":
        """The agreement in a file, with the weights from the file beside it if there is one."""
        try:
            agreement = cls.from_json(Path(path).read_text(encoding="utf-8"))
            return replace(agreement, family=agreement.family.with_weights_file(weights_path(path)))
        except UnicodeDecodeError:
            raise DiscreetError(f"{path} is not a text in UTF-8, so not an agreement") from None
        except DiscreetError as error:
            raise DiscreetError(f"{path}: {error}") from None
        except (OSError, ValueError) as error:
            raise DiscreetError(f"agreement {path} cannot be read: {error_reason(error)}") from None

    def with_weights(self, content: bytes, where: Any = "weights") -> "Agreement":
        """The agreement with the weights of its reference, read from the content of a weights file."""
        check_kind("content", content, bytes, "pass what the weights file holds")
        if not isinstance(self.family, FamilyTerms):
            raise DiscreetError(
                f"agreement {self.id} is on {self.family.description}, which has no weights; leave them out"
            )
        return replace(self, family=self.family.with_weights(content, where))

    @classmethod
    def from_json(cls, text: str) -> "Agreement":
        """The agreement in a JSON document; an error names the first wrong field."""
        check_kind("text", text, str, "pass the JSON text itself, not what a reader of JSON made of it")
        try:
            document = json.loads(text, object_pairs_hook=json_hook_refusing_repeated_fields("the agreement"))
            if isinstance(document, dict) and document.get("discreet") != 1:
                document = json.loads(text, parse_int=read_json_number, parse_float=read_json_number)
        except DiscreetError:
            raise
        except (ValueError, RecursionError) as error:  # ValueError: also a whole number of thousands of digits
            raise DiscreetError(
                f"the agreement is not JSON: {error}; give the file that `discreet agree` or Agreement.write made, unchanged"
            ) from None
        terms = require_object_with_fields("the agreement", document, _AGREEMENT)
        version = check_document_version(terms["discreet"])
        if terms["bits"] != BITS:
            raise DiscreetError(f"bits = {terms['bits']!r} is not {BITS}, the integers this version draws with")
        return cls(
            family=_read_any_family_terms(terms["family"], version),
            mechanism=terms["mechanism"],
            epsilon=terms["epsilon"],
            **{name: terms[name] for name in _PLAIN if name in terms},
            **{name: read(terms[name]) for name, read in _READERS.items() if name in terms},
        )


def _field_as_json_value(part: Privacy | AgreementTerms | int) -> Any:
    """A part of an agreement as a JSON value."""
    if isinstance(part, Privacy):
        return privacy_document(part)
    return part.document if isinstance(part, AgreementTerms) else part


def _family_terms_of_sampler(
    sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler, version: int
) -> FamilyTerms | ContinuousTerms | RowTerms:
    if isinstance(sampler, SurveySampler):
        return RowTerms(sampler.survey.columns, version)
    if isinstance(sampler, (JointSampler, ReportSampler)):
        return FamilyTerms.of(sampler.family, version)
    family = sampler.family
    if isinstance(family, ContinuousFamily):
        return ContinuousTerms.of(sampler, family, version)
    return FamilyTerms.of(family, version)


def _read_any_family_terms(fields: Any, version: int) -> FamilyTerms | ContinuousTerms | RowTerms:
    """The terms of a family, which its kind says how to read."""
    terms = require_fields_that_kind_needs("family", fields, {**KINDS, **CONTINUOUS_KINDS, **ROW_KINDS})
    if terms["kind"] in ROW_KINDS:
        return read_row_terms(terms, version)
    return read_family_terms(terms, version) if terms["kind"] in KINDS else read_continuous_terms(terms, version)


def weights_path(path: str | Path) -> Path:
    """The path of the file with the weights that are too many for the agreement's own file."""
    return Path(f"{path}{BESIDE}")
