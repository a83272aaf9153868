"""What an agreement states for one mechanism alone, and when its rounds are.

Several samples drawn at once (`JointTerms`), blocks of reports (`BlockTerms`), mechanisms of others (`OwnTerms`), the questions and parts of
a survey (`SurveyTerms`), and the dates of rounds (`Schedule`), so that a nightly job names its round by a date.

Blocks are written down, not only chosen again, so that an agreement keeps its blocks when the choice of them changes. Privacy holds for all
blocks that are read here (`discreet.mechanisms._reports._sampler`); poor ones cost accuracy alone.

A mechanism of somebody else's is named by its package and version, and by the digest of its integer box. Privacy is a statement about the
box, so that code which was changed without a new version cannot change what was agreed on.

Round 1 of a schedule is the day, week or month that begins at the start, and every later one begins where the one before ends. A date lies in
one round at most, so a job that runs again for the same date asks for the same round, and a job for another day for another one.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from discreet.agreement._family_terms import AgreementTerms
from discreet.domain import Domain, canonical_json, check_digest_format, read_date, sha256_digest
from discreet.errors import DiscreetError, check_choice, check_count
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import (
    AROUND,
    BLOCK_KINDS,
    MOST_JOINT_SAMPLES,
    BlockFamily,
    JointSampler,
    OwnSampler,
    ReportSampler,
    installed_mechanism,
    make_blocks_of_kind,
)
from discreet.privacy import Privacy
from discreet.survey import Survey, SurveyColumns, SurveySampler, survey_parts_from_terms, survey_questions_from_terms


@dataclass(frozen=True, eq=False)
class JointTerms(AgreementTerms):
    """How several samples of each client are drawn at once: how many, and from a box around what.

    Args:
        samples: how many samples of each client, at least 2.
        around: "envelope" or "product".

    Raises:
        DiscreetError: for terms out of range.
    """

    samples: int
    around: str

    def __post_init__(self) -> None:
        fix = "one sample of each client is agreed on without joint"
        object.__setattr__(
            self, "samples", check_count("joint.samples", self.samples, least=2, most=MOST_JOINT_SAMPLES, fix=fix)
        )
        check_choice("joint.around", self.around, AROUND)

    def sampler(self, family: Any, epsilon: float) -> JointSampler:
        """The sampler of these terms, on a family."""
        around: Any = self.around
        return JointSampler(family, samples=self.samples, epsilon=epsilon, around=around)


_LARGEST_PARAMETER = 1 << 31  # what q, t, c and w may be at most; JSON numbers hold it


@dataclass(frozen=True, eq=False)
class BlockTerms(AgreementTerms):
    """The blocks of outcomes that reports name, as an agreement states them.

    Args:
        kind: "values", "masks", "ranks" or "affine".
        w: outcomes of a block, of masks and ranks.
        q: a prime, of affine blocks {x : (<a, x> + s) mod q < c}.
        t: the digits of an outcome in base q.
        c: the width of the window.

    Raises:
        DiscreetError: for a kind that there is not, and parameters that are missing, out of range or another kind's.
    """

    kind: str
    w: int | None = None
    q: int | None = None
    t: int | None = None
    c: int | None = None

    def __post_init__(self) -> None:
        check_choice("blocks.kind", self.kind, BLOCK_KINDS)
        needed_parameters = BLOCK_KINDS[self.kind]
        for name in ("w", "q", "t", "c"):
            value = getattr(self, name)
            if name in needed_parameters:
                number = check_count(f"blocks.{name}", value, most=_LARGEST_PARAMETER, fix=f"{self.kind} need it")
                object.__setattr__(self, name, number)
            elif value is not None:
                raise DiscreetError(f"blocks.{name} = {value!r} has no meaning for {self.kind}; leave it out")

    @classmethod
    def of(cls, sampler: ReportSampler) -> "BlockTerms":
        """The terms of a sampler's blocks."""
        return cls(sampler.blocks.name, **sampler.blocks.parameters)

    def on(self, size: int) -> BlockFamily:
        """The blocks themselves, on so many outcomes."""
        return make_blocks_of_kind(self.kind, size, {name: getattr(self, name) for name in BLOCK_KINDS[self.kind]})

    def sampler(self, family: Any, epsilon: float) -> ReportSampler:
        """The sampler of reports on these blocks."""
        if not isinstance(family, (Simplex, Domain)):
            raise DiscreetError(f"family = {family!r} is not a Simplex; reports are for every distribution on outcomes")
        return ReportSampler(family, epsilon=epsilon, blocks=self.on(family.size))


_LONGEST_TEXT = 200


@dataclass(frozen=True, eq=False)
class OwnTerms(AgreementTerms):
    """A mechanism that another package offers under the entry points `discreet.mechanisms`.

    Args:
        name: of the mechanism, and of the entry point.
        package: that offers it.
        package_version: the version of the package.
        box: the digest of the integer box, lower bounds first, as 64-bit integers in little-endian order.
        parameters: the further arguments of the mechanism, as JSON values.

    Raises:
        DiscreetError: for fields that are no such texts, or parameters that JSON cannot state.
    """

    name: str
    package: str
    package_version: str
    box: str
    parameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for field in ("name", "package", "package_version"):
            value = getattr(self, field)
            if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST_TEXT:
                raise DiscreetError(f"own.{field} = {value!r} is not a text of 1 to {_LONGEST_TEXT} characters")
        check_digest_format("own.box", self.box)
        if self.parameters is not None:
            if not isinstance(self.parameters, Mapping) or not self.parameters:
                raise DiscreetError(f"own.parameters = {self.parameters!r} is not an object with fields; leave it out")
            object.__setattr__(self, "parameters", _parameters_as_json(dict(self.parameters)))

    @classmethod
    def of(cls, sampler: OwnSampler) -> "OwnTerms":
        """The terms of a sampler whose class an installed package offers."""
        kind, package, version = installed_mechanism(sampler.name)
        if type(sampler) is not kind:
            raise DiscreetError(
                f"{sampler!r} cannot be agreed on: the package {package} offers another class as {sampler.name!r}"
            )
        return cls(sampler.name, package, version, digest_of_weight_bounds(sampler), dict(sampler.parameters) or None)

    def sampler(self, family: FiniteFamily, privacy: Privacy) -> OwnSampler:
        """The mechanism itself, of the package and the version that were agreed on."""
        kind, package, version = installed_mechanism(self.name, (self.package, self.package_version))
        try:
            sampler = kind.from_parameters(family, privacy, deepcopy(dict(self.parameters or {})))
        except (TypeError, ValueError, ArithmeticError) as error:  # of parameters that the class does not take
            raise DiscreetError(f"mechanism {self.name!r} does not take the parameters agreed on: {error}") from None
        if digest_of_weight_bounds(sampler) != self.box:
            raise DiscreetError(
                f"mechanism {self.name!r} of {package} {version} has another box here than the one agreed on ({self.box}); its code or "
                "its arithmetic has changed: nothing is released"
            )
        return sampler


def digest_of_weight_bounds(sampler: OwnSampler) -> str:
    """The digest of the integers that bound every weight."""
    bounds = (np.broadcast_to(bound, sampler.box.size) for bound in (sampler.lattice.lower, sampler.lattice.upper))
    return sha256_digest(np.stack(list(bounds)).astype("<i8").tobytes())


def _parameters_as_json(parameters: dict[str, Any]) -> Any:
    """The parameters as every reader of the agreement gets them."""
    try:
        return json.loads(canonical_json(parameters))
    except (TypeError, AttributeError):
        raise DiscreetError(
            f"own.parameters = {parameters!r} are not JSON values; return numbers, texts, lists and dicts from `parameters`"
        ) from None


@dataclass(frozen=True, eq=False)
class SurveyTerms(AgreementTerms):
    """The questions of a survey, and the parts by which they are answered, as JSON values that were checked.

    Args:
        questions: as a survey file lists them.
        parts: what clients are asked, and how often (`discreet.survey._parts`).
    """

    questions: list[Any]
    parts: list[Any]

    @classmethod
    def of(cls, sampler: SurveySampler) -> "SurveyTerms":
        """The terms of a sampler."""
        return cls([question.terms for question in sampler.survey.questions], sampler.part_terms)

    def sampler(self, columns: SurveyColumns, epsilon: float) -> SurveySampler:
        """What releases the reports; an error names the first wrong field."""
        questions = survey_questions_from_terms(self.questions, "survey.questions")
        survey = Survey(columns, questions)
        parts = survey_parts_from_terms(self.parts, questions, columns, "survey.parts")
        return SurveySampler(survey, epsilon=epsilon, parts=parts)


_IN_A_YEAR = {"day": 366, "week": 53, "month": 12}  # rounds that begin in one calendar year, at most
_DAYS = {"day": 1, "week": 7}
_LAST = date.max.toordinal()


@dataclass(frozen=True, eq=False)
class Schedule(AgreementTerms):
    """When the rounds of an agreement are: each a day, a week or a month, from a start on.

    Args:
        start: the first day of round 1, a date or a text such as 2026-11-17; of months the first of one.
        every: "day", "week" or "month".

    Raises:
        DiscreetError: for what is no date, and months that do not start on the first.
    """

    start: str
    every: str

    def __post_init__(self) -> None:
        check_choice("schedule.every", self.every, _IN_A_YEAR)
        first = read_date("schedule.start", self.start)
        if self.every == "month" and first.day != 1:
            raise DiscreetError(f"schedule.start = {first} is not the first of a month; months start there")
        object.__setattr__(self, "start", first.isoformat())

    @property
    def most_in_a_year(self) -> int:
        """The largest number of rounds that begin in a calendar year."""
        return _IN_A_YEAR[self.every]

    def number(self, day: str | date) -> int:
        """The number of the round in which a day lies; less than 1 before the start.

        Args:
            day: a date, or a text such as 2026-11-17.

        Returns:
            The number.

        Raises:
            DiscreetError: for what is no date.
        """
        parsed_day, first = read_date("day", day), date.fromisoformat(self.start)
        if self.every == "month":
            return 12 * (parsed_day.year - first.year) + parsed_day.month - first.month + 1
        return (parsed_day - first).days // _DAYS[self.every] + 1

    def first_day(self, number: int) -> date:
        """The first day of a round; the last day that there is for rounds beyond it.

        Args:
            number: of the round, from 1.

        Returns:
            The date.

        Raises:
            DiscreetError: for a number that is none.
        """
        number, first = check_count("number", number), date.fromisoformat(self.start)
        if self.every == "month":
            months = first.month - 1 + number - 1
            year = first.year + months // 12
            return date(year, months % 12 + 1, 1) if year <= date.max.year else date.max
        return date.fromordinal(min(first.toordinal() + _DAYS[self.every] * (number - 1), _LAST))

    def last_day(self, number: int) -> date:
        """The last day of a round.

        Args:
            number: of the round, from 1.

        Returns:
            The date.

        Raises:
            DiscreetError: for a number that is none.
        """
        next_first_day = self.first_day(check_count("number", number) + 1)
        return next_first_day if next_first_day == date.max else date.fromordinal(next_first_day.toordinal() - 1)
