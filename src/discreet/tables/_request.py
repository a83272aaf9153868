"""`Request`, the terms of a release: columns, domain, mechanism, agreement and key; with its progress and summary.

`RequestTerms` lists all keywords once; every function that takes a request takes these. `Request` checks them, and `Request.job` fits them
to the columns of a table. `Progress` follows a release. `Summary` says what was read, left out and written.
"""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Protocol, Required, TypedDict, Unpack, cast

import numpy as np
import polars as pl

from discreet._base import OldName, accept_renamed_keywords, placeholders_until_used
from discreet.agreement import VERSION, Agreement, RowTerms
from discreet.domain import Coding, Digested, Domain, Labels, as_domain, is_whole_number_text
from discreet.errors import (
    DiscreetError,
    LargeEpsilonWarning,
    OutsideFamilyWarning,
    check_choice,
    check_count,
    check_kind,
    warn_caller,
)
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import (
    MEMBERS_ONLY_MESSAGE,
    REPORTS_MECHANISM,
    AnyFamily,
    LinearSampler,
    Sampler,
    mechanism_for,
    sampler_named,
)
from discreet.privacy import Pure
from discreet.privacy.tradeoff import large_epsilon_warning_text, weak_total_of_rounds_warning_text
from discreet.release import Question, RunKey, Secret, as_secret, fresh_secret
from discreet.tables._columns import Columns
from discreet.tables._reading import Reading, RowCoding

with placeholders_until_used(globals()):
    from discreet.agreement import ContinuousTerms
    from discreet.families import ContinuousFamily
    from discreet.mechanisms import JointSampler, LineCells, OwnSampler, ReportSampler
    from discreet.survey import Survey, SurveySampler

TableSampler = Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler
_OUTSIDE = ("error", "agreed")
_NULL_CLIENTS = ("error", "drop")
_USUAL = {"rounds": 1, "purpose": ""}
# different values of a client, and the share of its distribution below which a warning is due
_VALUES, _LITTLE = 100, 0.1


class RequestTerms(TypedDict, total=False):
    """The keywords of a release; `Request` explains each."""

    client: Required[str | Sequence[str]]
    value: str
    survey: Survey | None
    count: str | None
    weight: str | None
    domain: Any
    other: Any
    nulls: str
    null_clients: str
    outside: str
    epsilon: float | None
    goal: str | None
    mechanism: str | None
    rounds: int | None
    round: int | str | date
    purpose: str | None
    family: AnyFamily | None
    sampler: TableSampler | None
    agreement: Agreement | None
    secret: Secret | str | Path | None
    show_values: bool


@dataclass(frozen=True, init=False)
class Request:
    """The checked terms of a release. `Request.job` fits them to the columns of a table.

    Args:
        client: the column of clients: texts or integers; or a list of columns, which name a client together.
        value: the column of values: labels, integers or numbers, or lists of them. A survey names its own columns.
        survey: in place of `value` and `domain`, a `Survey` of several columns, whose report answers all of its questions.
        count: the column with the count of each row (whole numbers), if any.
        weight: or the column with the weight of each row (numbers of at least 0).
        domain: a `Domain` (`Interval(low, high, cells=n)`), a list of labels or a number of outcomes; it is public, never inferred.
        other: the outcome of the domain that values outside become (with an interval: "nearest"). Without it they are an error.
        nulls: "error", "drop" (a client without other values then has no sample, which reveals it) or "other".
        null_clients: rows without a client: "error", or "drop", which leaves them out and counts them.
        outside: "error" raises an error for values without an outcome and without `other`; "agreed" follows the agreement's rule, as a
            device does: they become its `other` outcome or are left out, and a client without remaining values draws from the reference.
        epsilon: the privacy budget of each sample.
        goal: whom the samples are to serve, which picks the mechanism: "population" (linear: its shares can be estimated without
            bias; the default) or "clients" (optimal: each sample is as close to its own client as can be).
        mechanism: or the mechanism itself: "linear", "optimal", "mollifier", or "reports", which name blocks of outcomes in place of samples.
        rounds: how many samples each client releases in all (1 unless said); together they spend rounds * epsilon.
        round: which of them this is, from 1 (the usual one). An agreement with a schedule needs it, and takes a date in it.
        purpose: what the samples are for; part of the agreement.
        family: in place of `domain`, a `Simplex` or `Band` on the outcomes, or a continuous family on a line, whose cells are the outcomes.
        sampler: in place of `domain`, `epsilon` and `mechanism`, the sampler to release by.
        agreement: in place of all these terms, the rounds and the purpose; terms that are also given must be the same.
        secret: the path of a file that `discreet secret` made (or `read_secret(path)`). A repeated release of the same data then gives
            the same samples, and a round that was released on other data is an error. (A `Secret` without a file is remembered by this
            process alone.) Without a secret every run is a new release, and spends epsilon again.
        show_values: whether errors show some of the values outside the domain, which are private; otherwise they count them.

    Raises:
        DiscreetError: for terms that are missing, out of range or contradict each other.
    """

    columns: Columns
    coding: Coding | RowCoding
    epsilon: float
    mechanism: str
    rounds: int
    round: int
    purpose: str
    agreement: Agreement | None
    secret: Secret | None = field(repr=False)
    show_values: bool
    null_clients: str

    @accept_renamed_keywords(serve="goal")
    def __init__(self, **terms: Unpack[RequestTerms]) -> None:
        _refuse_wrong_keywords(terms)
        check_choice("null_clients", terms.get("null_clients", "error"), _NULL_CLIENTS)
        agreement = _requested_agreement(terms)
        coding = _requested_coding(terms, agreement)
        mechanism = _requested_mechanism_name(terms, agreement)
        self.__dict__.update(  # so that it is immutable
            columns=Columns(
                client=terms["client"],
                value=_requested_value_columns(terms, agreement),
                count=terms.get("count"),
                weight=terms.get("weight"),
            ),
            coding=coding,
            epsilon=_requested_or_agreed_term("epsilon", terms, agreement),
            mechanism=mechanism,
            rounds=_requested_or_agreed_term("rounds", terms, agreement),
            round=_requested_round_number(terms, agreement),
            purpose=_requested_or_agreed_term("purpose", terms, agreement),
            agreement=agreement,
            secret=as_secret(terms.get("secret")),
            show_values=terms.get("show_values", False),
            null_clients=terms.get("null_clients", "error"),
        )

    @property
    def doubt_of_rounds(self) -> str | None:
        """A warning for rounds that are private one by one and weak together; otherwise None."""
        if self.agreement is not None:
            return self.agreement.doubt_of_rounds
        return weak_total_of_rounds_warning_text(self.epsilon, self.rounds)

    def with_secret(self, secret: Secret) -> "Request":
        """The same request under that secret."""
        request = object.__new__(Request)
        request.__dict__.update(self.__dict__, secret=secret)
        return request

    under = OldName("with_secret")

    def make_reading(
        self, schema: pl.Schema, *, untyped: bool | Collection[str] = False, where: str = "the table"
    ) -> Reading:
        """The reading of a table with these columns. `untyped`: all (CSV), or those named, are texts and get their types from the request."""
        return Reading.for_table_columns(
            self.columns, self.coding, schema,
            untyped=untyped, where=where, agreed=self.agreement is not None, show_values=self.show_values,
            null_clients=self.null_clients,
        )  # fmt: skip

    def _make_table_sampler(self, coding: Coding | RowCoding) -> TableSampler:
        """What releases, for who the clients may be."""
        agreement, privacy = self.agreement, Pure(self.epsilon)
        if isinstance(coding, RowCoding):
            assert agreement is not None  # made of the survey, if it was not given
            return agreement.survey_sampler()
        if self.mechanism == REPORTS_MECHANISM:
            if agreement is None:
                return ReportSampler(coding.domain, privacy=privacy)
            return agreement.report_sampler(agreed_finite_or_continuous_family(agreement, coding))
        if agreement is None:
            return sampler_named(self.mechanism, Simplex(coding.domain), privacy=privacy)
        if agreement.joint is not None:
            return agreement.joint_sampler(agreed_finite_family(agreement, coding))
        family = agreed_finite_or_continuous_family(agreement, coding)
        if agreement.own is not None:
            return self._make_and_check_own_sampler(agreement, family)
        return sampler_named(
            self.mechanism,
            family,
            privacy=privacy if agreement.privacy is None else agreement.privacy,
            discretisation=agreement.family.discretisation,
            reference=None if agreement.reference is None else agreement.reference.reference(family),
        )

    def _make_and_check_own_sampler(self, agreement: Agreement, family: AnyFamily) -> OwnSampler:
        """The sampler of a user's own mechanism. Under a secret, public clients check that its law stays the same when asked again."""
        sampler: OwnSampler = agreement.sampler(family)
        if self.secret is not None:
            sampler.check_repeatable()
        return sampler

    def job(self, schema: pl.Schema, *, untyped: bool | Collection[str] = False, where: str = "the table") -> "Job":
        """The job on a table with these columns, which messages call `where`."""
        reading = self.make_reading(schema, untyped=untyped, where=where)
        sampler = self._make_table_sampler(reading.coding)
        if isinstance(sampler, LinearSampler) and not isinstance(sampler.family, Simplex):
            raise DiscreetError(MEMBERS_ONLY_MESSAGE)
        if (doubt := large_epsilon_warning_text(self.epsilon) or self.doubt_of_rounds) is not None:
            warn_caller(doubt, LargeEpsilonWarning)
        _warn_of_narrow_cells(sampler)
        version = VERSION if self.agreement is None else self.agreement.version
        agreement = replace(
            Agreement.of(sampler, rounds=self.rounds, purpose=self.purpose, version=version),
            other=None if self.agreement is None else self.agreement.other,
            schedule=None if self.agreement is None else self.agreement.schedule,
        )
        if self.agreement is not None and agreement.id != self.agreement.id:
            raise DiscreetError(
                f"the release would be made under agreement {agreement.id}, not under {self.agreement.id}; take its terms from "
                "the agreement"
            )
        secret = fresh_secret() if self.secret is None else self.secret
        columns = reading.columns
        question = Question(value=columns.value_columns_text, count=columns.count, weight=columns.weight)
        key = secret.run_key(agreement.id, agreement.check_round(self.round), question)
        return Job(reading=reading, sampler=sampler, agreement=agreement, question=question, key=key)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A request fitted to a table, which every engine carries out.

    `question` is the question to each client, which enters the key: two columns of one domain are two questions.
    """

    reading: Reading
    sampler: TableSampler
    agreement: Agreement
    question: Question
    key: RunKey

    def __reduce__(self) -> Any:
        """Code of somebody's own does not travel: where a copy is made, the agreed version of it has to be installed."""
        parts = {term.name: getattr(self, term.name) for term in fields(self)}
        if isinstance(self.sampler, OwnSampler):
            return _unpickle_job_with_installed_sampler, ({**parts, "sampler": self.sampler.family},)
        return _unpickle_job, (parts,)

    @property
    def output_columns(self) -> tuple[str, ...]:
        """The columns of what is released: clients keep the name of theirs, unless it is that of another."""
        name, sample_columns = self.reading.columns.client, self.sample_columns
        client_column = "client" if not isinstance(name, str) or name in (*sample_columns, "agreement") else name
        return client_column, *sample_columns, "agreement"

    @property
    def sample_columns(self) -> tuple[str, ...]:
        """What the release of a client is called: `sample`, `report`, or `sample_1` to `sample_J` for samples drawn together."""
        if isinstance(self.sampler, JointSampler):
            return joint_sample_columns(self.sampler.samples)
        return ("report",) if isinstance(self.sampler, (ReportSampler, SurveySampler)) else ("sample",)


def joint_sample_columns(samples: int) -> tuple[str, ...]:
    """The columns of several samples of each client that were drawn together."""
    return tuple(f"sample_{number}" for number in range(1, samples + 1))


def _unpickle_job(parts: dict[str, Any]) -> Job:
    return Job(**parts)


_INSTALLED: dict[str, OwnSampler] = {}  # of the last job here, by agreement: tasks of one process check it once


def _unpickle_job_with_installed_sampler(parts: dict[str, Any]) -> Job:
    """A copy of a job, by the mechanism that is installed here; in place of the sampler stands its family."""
    agreement: Agreement = parts["agreement"]
    if agreement.id not in _INSTALLED:
        try:
            sampler = agreement.sampler(parts["sampler"])
        except DiscreetError as error:
            raise DiscreetError(
                f"a worker cannot draw for agreement {agreement.id[:12]}: {error} (on every worker; nothing was released)"
            ) from None
        _INSTALLED.clear()
        _INSTALLED[agreement.id] = sampler
    return Job(**{**parts, "sampler": _INSTALLED[agreement.id]})


def _warn_of_narrow_cells(sampler: TableSampler) -> None:
    """A list of values fills few of many narrow cells, and no cell is ever drawn more than B times as often as under the reference."""
    if isinstance(sampler, (JointSampler, ReportSampler, SurveySampler)) or not isinstance(
        sampler.family, ContinuousFamily
    ):
        return
    shift = _VALUES * (sampler.constants.B - 1.0) * float(np.max(sampler.reference))
    if shift < _LITTLE:
        warn_caller(
            f"{_VALUES} different values of a client move its output distribution by at most {100 * shift:.2g} %: a "
            f"list of values fills few of the {sampler.carrier.size:,} cells. Samples are private all the same, and hardly depend on "
            "their clients; agree on fewer cells, discretisation=Cells(count), about as many as a client has values",
            OutsideFamilyWarning,
        )


def _refuse_wrong_keywords(terms: Any) -> None:
    """Raise TypeError for unknown or missing keywords, as Python does."""
    keywords = RequestTerms.__annotations__
    for name in terms:
        if name not in keywords:
            similar = difflib.get_close_matches(name, keywords, n=1)
            raise TypeError(f"a request has no term {name!r}" + (f"; did you mean {similar[0]!r}?" if similar else ""))
    missing = [name for name in keywords if name in RequestTerms.__required_keys__ and name not in terms]
    agreement = terms.get("agreement")
    asks_survey = terms.get("survey") is not None or isinstance(terms.get("sampler"), SurveySampler)
    asks_survey = asks_survey or (isinstance(agreement, Agreement) and agreement.survey is not None)
    if not asks_survey and "value" not in terms:
        missing.append("value")
    if missing:
        raise TypeError(f"a request needs {' and '.join(missing)}: the columns of clients and values")


def _requested_agreement(terms: RequestTerms) -> Agreement | None:
    """The given agreement, or the one that a given sampler or family makes."""
    family, sampler, agreement = terms.get("family"), terms.get("sampler"), terms.get("agreement")
    survey = terms.get("survey")
    if sum(term is not None for term in (family, sampler, agreement, survey)) > 1:
        raise DiscreetError("family, sampler, agreement and survey each say who the clients may be; give one of them")
    if survey is not None:
        sampler = _make_survey_sampler(survey, terms)
    if agreement is not None and not isinstance(agreement, Agreement):
        raise DiscreetError(f"agreement = {agreement!r} is not an Agreement; read one with Agreement.read(path)")
    if family is not None:
        epsilon = terms.get("epsilon")
        if epsilon is None:
            raise DiscreetError("epsilon is not given; say epsilon= beside family=")
        name = _requested_mechanism_name(terms, None)
        if name == REPORTS_MECHANISM:
            sampler = ReportSampler(cast("Simplex", family), epsilon=epsilon)  # which refuses any other
        else:
            sampler = sampler_named(name, family, epsilon=epsilon)
    if sampler is None:
        return agreement
    if not isinstance(sampler, (Sampler, JointSampler, ReportSampler, SurveySampler)):
        raise DiscreetError(f"sampler = {sampler!r} is not a sampler, such as OptimalSampler(family, epsilon=...)")
    return Agreement.of(
        sampler,
        rounds=_requested_or_agreed_term("rounds", terms, None),
        purpose=_requested_or_agreed_term("purpose", terms, None),
    )


def _make_survey_sampler(survey: Any, terms: RequestTerms) -> SurveySampler:
    """What releases the reports of a survey."""
    check_kind("survey", survey, Survey, "pass Survey(columns, questions), or Survey.read(path)")
    epsilon = terms.get("epsilon")
    if epsilon is None:
        raise DiscreetError("epsilon is not given; say epsilon= (--epsilon) beside survey=")
    return SurveySampler(survey, epsilon=epsilon)


def _requested_value_columns(terms: RequestTerms, agreement: Agreement | None) -> Any:
    """The column of values, or those of a survey."""
    if agreement is None or not isinstance(agreement.family, RowTerms):
        return terms.get("value")
    for name in ("value", "domain"):
        if terms.get(name) is not None:
            raise DiscreetError(f"{name} (--{name}) has no meaning for a survey, which names its columns; leave it out")
    return tuple(agreement.family.columns)


def _requested_coding(terms: RequestTerms, agreement: Agreement | None) -> Coding | RowCoding:
    domain, other, nulls = terms.get("domain"), terms.get("other"), terms.get("nulls", "error")
    outside = terms.get("outside", "error")
    if not isinstance(outside, str) or outside not in _OUTSIDE or (outside == "agreed" and agreement is None):
        raise DiscreetError(f"outside = {outside!r} is not 'error', nor 'agreed' with an agreement")
    if agreement is not None and isinstance(agreement.family, RowTerms):
        rows = RowCoding(agreement.family.columns, other, nulls)
        return rows.as_lenient_coding() if outside == "agreed" else rows
    if agreement is not None:
        coding = agreed_coding(agreement, domain, other)
        if outside == "agreed":
            return coding.as_lenient_coding()
        return coding if nulls == coding.nulls else replace(coding, nulls=nulls)
    for name in ("domain", "epsilon"):
        if terms.get(name) is None:
            raise DiscreetError(f"{name} is not given; say {name}= (--{name}), or agreement= (--agreement)")
    return Coding(as_domain(domain), other, nulls)


def _requested_mechanism_name(terms: RequestTerms, agreement: Agreement | None) -> str:
    """The requested mechanism; an error if it contradicts the agreement."""
    goal, mechanism = terms.get("goal"), terms.get("mechanism")
    if agreement is not None and agreement.survey is not None:
        if goal not in (None, "population") or mechanism not in (None, SurveySampler.name):
            raise DiscreetError(
                "a survey serves the population, by reports of its own; leave goal (--for) and mechanism out"
            )
        return SurveySampler.name
    name = mechanism_for(goal, mechanism)
    if agreement is None:
        return name
    return str(agreed_term_or_error("mechanism", None if goal is None and mechanism is None else name, agreement))


def _requested_or_agreed_term(name: str, terms: RequestTerms, agreement: Agreement | None) -> Any:
    """A term: given, agreed on, or the default; an error if it contradicts the agreement."""
    term = terms.get(name)
    if agreement is not None:
        return agreed_term_or_error(name, term, agreement)
    return _USUAL.get(name) if term is None else term


def _requested_round_number(terms: RequestTerms, agreement: Agreement | None) -> int:
    """The number of the round; that of a date by the schedule of the agreement."""
    number = terms.get("round", 1)
    if "round" not in terms and agreement is not None and agreement.schedule is not None:
        first = agreement.schedule.start
        raise DiscreetError(
            f"agreement {agreement.id[:12]}... has a round every {agreement.schedule.every}; say which one this is by a date: "
            f"round='{first}' (--round {first}) is the first"
        )
    if not isinstance(number, (str, date)):
        return check_count("round", number)
    if agreement is None:
        raise DiscreetError(
            f"round = {str(number)!r} is not a number, and a date is a round only under an agreement that says when its rounds are: "
            "agreement= (--agreement), made by discreet agree --start DATE --every day"
        )
    return agreement.round_number(number)


def agreed_term_or_error(name: str, request: Any, agreement: Agreement) -> Any:
    """The term of that name in the agreement. `request`, unless None, must be the same."""
    term = getattr(agreement, name)
    if request is not None and request != term:
        raise DiscreetError(
            f"{name} = {request!r} is not the {name} = {term!r} of agreement {agreement.id}; leave it out, or make an agreement "
            "that says so"
        )
    return term


def agreed_coding(agreement: Agreement, request: Any = None, other: Any = None) -> Coding:
    """The coding of an agreement. A given domain must be the agreed one; it may be needed for its labels."""
    if isinstance(agreement.family, ContinuousTerms):
        refuse_domain_beside_continuous_agreement(agreement, request)
        return Coding(LineCells.of_sampler(agreement.sampler()), other)
    domain = agreement.domain if request is None else _require_domain_of_agreement(agreement, as_domain(request))
    if isinstance(domain, Digested):
        raise DiscreetError(
            f"agreement {agreement.id} holds a digest of its {domain.size:,} labels; give the labels too: domain= (--domain)"
        )
    if agreement.other is not None:
        label = domain.to_samples(np.asarray(agreement.other))
        if other is not None and str(other) != str(label):
            raise DiscreetError(f"other = {other!r} is not the {label!r} of agreement {agreement.id}; leave it out")
        other = label
    try:
        return Coding(domain, other)
    except DiscreetError as error:
        raise DiscreetError(f"{error} (agreement {agreement.id})") from None


def refuse_domain_beside_continuous_agreement(agreement: Agreement, domain: Any) -> None:
    """Raise an error for a domain beside an agreement on a continuous family, which states its cells."""
    if domain is not None:
        raise DiscreetError(f"domain = {domain!r}: agreement {agreement.id} states its cells; leave it out")


def agreed_finite_or_continuous_family(agreement: Agreement, coding: Coding) -> AnyFamily:
    """The family of an agreement, on outcomes or continuous."""
    terms = agreement.family
    return terms.family() if isinstance(terms, ContinuousTerms) else agreed_finite_family(agreement, coding)


def agreed_finite_family(agreement: Agreement, coding: Coding) -> FiniteFamily:
    """The family of an agreement on the domain of a table, which lists the labels."""
    return agreement.on_outcomes.on(coding.domain).family()


def _require_domain_of_agreement(agreement: Agreement, domain: Domain) -> Domain:
    """The domain, if it is the agreed one. A list of texts that are whole numbers may represent the numbers."""
    readings = [domain]
    if isinstance(domain, Labels) and all(
        isinstance(label, str) and is_whole_number_text(label) for label in domain.labels
    ):
        readings.append(Labels(tuple(map(int, domain.labels))))
    for reading in readings:
        if replace(agreement.on_outcomes, domain=reading).difference(agreement.on_outcomes) is None:
            return reading
    difference = replace(agreement.on_outcomes, domain=domain).difference(agreement.on_outcomes)
    assert difference is not None
    name, ours, theirs = difference
    raise DiscreetError(
        f"the domain has {name} = {ours!r}, not {theirs!r} as in agreement {agreement.id}; use the agreed one"
    )


class Progress(Protocol):
    """Called with the progress of a release."""

    def rows(self, number: int) -> None: ...
    def clients(self, number: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a release read, left out and wrote. The counts are for its operator: they are not private.

    Attributes:
        agreement: of the samples.
        rows: rows read.
        clients: samples written.
        nulls: values that were null.
        not_numbers: values that were NaN.
        outside: values outside the domain, taken as `other`.
        without_records: listed clients without records, and clients whose counts or weights are all 0, which drew from the reference.
        spilled_bytes: bytes that went through the disk.
        seconds: the duration.
        known: clients whose sample of this round was in the ledger already.
        over_budget: clients that the ledger left out.
        nameless: rows without a client, which were left out.
    """

    agreement: Agreement
    rows: int
    clients: int
    nulls: int
    not_numbers: int
    outside: int
    without_records: int
    spilled_bytes: int
    seconds: float
    known: int = 0
    over_budget: int = 0
    nameless: int = 0

    @property
    def record(self) -> dict[str, Any]:
        """The summary as JSON values."""
        agreement = self.agreement
        terms = {name: getattr(agreement, name) for name in ("id", "epsilon", "mechanism", "rounds", "purpose")}
        counts = {term.name: getattr(self, term.name) for term in fields(self) if term.name != "agreement"}
        return {"agreement": terms, **counts}
