"""What a service knows of its store: `Catalogue`, the agreements; `EnrolmentCache`, who may send; `Estimates`, the estimates so far.

The catalogue contains the agreements of this process and those that another process adds meanwhile, and says how to read their samples.

**Estimates** are computed from counts, so their cost grows with the outcomes, not with the samples. Each is computed once for all
requests, in a thread, and kept until counts change. Its tag tells a client that nothing has changed. After a computation, the next one waits
a few times as long as it took. Polling, however frequent, therefore uses only part of one core. A request meanwhile waits, and gets the
counts of that time.

**Signatures.** A signature states that an agreement, in its collection and after the one it follows, is collected at certain addresses
(`discreet.client._protocol.CollectionStatement`). Devices that have pinned the key accept it. The store keeps it beside the agreement, so
every service of the store shows it, with or without the key. The key itself stays in its file. A store has one key. Another one is taken
only if the operator says so, since devices that have pinned the first reject the second.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.agreement import Agreement, ContinuousTerms, RowTerms
from discreet.client import (
    SAMPLES,
    CollectionStatement,
    CollectorKey,
    has_valid_signature,
    normalise_addresses,
    short_key_text,
)
from discreet.collect._counting import Arrival, text_digest, token_digest
from discreet.collect._requests import RequestProblem, bad_request_problem, unavailable_problem, unprocessable_problem
from discreet.collect._results import (
    AnySampler,
    json_document_of_estimate,
    json_document_of_estimated_change,
    json_document_of_group_estimates,
    json_document_of_shares_within_groups,
    json_document_of_stages_estimate,
)
from discreet.collect._samples import OutcomeReader, ReportReader
from discreet.collect._store import (
    LEAST_PREFIX,
    Enrolment,
    Store,
    StoredAgreement,
    unique_id_with_prefix_or_none,
)
from discreet.domain import Coding, Interval
from discreet.errors import DiscreetError, StoreError, check_count, check_list
from discreet.estimation import LARGEST, coding_and_sampler, one_bin_per_cell, outcome_reference_masses
from discreet.mechanisms import ReportSampler
from discreet.survey import SurveySampler
from discreet.tables import agreed_coding, agreed_finite_family

_REST = 50.0  # pause until the next look, in units of its duration: agreements can be large
FRESH_SECONDS = 2.0  # for which the list of agreements counts as current
GATEWAYS_SECONDS = 1.0  # the same of the list of gateways
_BEARER = "bearer "


@dataclass(frozen=True)
class CollectedAgreement:
    """An agreement of a store. `rounds`: its open rounds."""

    stored_agreement: StoredAgreement
    coding: Coding | None
    sampler: AnySampler
    rounds: tuple[int, ...]

    @property
    def agreement(self) -> Agreement:
        """The agreement itself."""
        return self.stored_agreement.agreement

    @property
    def id(self) -> str:
        """The agreement's id."""
        return self.stored_agreement.agreement.id

    @cached_property
    def file_bytes(self) -> bytes:
        """The agreement as in its file, made once."""
        return self.agreement.text.encode() + b"\n"

    @cached_property
    def questions_digest(self) -> str | None:
        """The digest of what people are asked in words."""
        words = self.stored_agreement.questions
        return None if words is None else hashlib.sha256(words.encode()).hexdigest()

    @cached_property
    def weights_file_bytes(self) -> bytes | None:
        """The weights beside the agreement, if they are too many for it."""
        return self.agreement.family.weights_file_content

    @cached_property
    def sample_reader(self) -> OutcomeReader | ReportReader:
        """What samples or reports have to be."""
        if isinstance(self.sampler, (ReportSampler, SurveySampler)):
            return ReportReader(self.sampler)
        assert self.coding is not None
        return OutcomeReader(self.coding)

    @property
    def newest_round(self) -> int:
        """The newest round that is open, or that was agreed on."""
        return self.rounds[-1] if self.rounds else self.agreement.rounds

    def refuse_closed_round(self, round_number: int) -> None:
        """Raise an error for a round that is not open."""
        if round_number not in self.rounds:
            open_rounds = ", ".join(map(str, self.rounds)) or "none"
            raise unprocessable_problem(f"round is not one that is open: of this agreement they are {open_rounds}")

    def make_arrivals_with_digests(
        self, round_number: int, clients: Sequence[str], keys: Sequence[str], outcomes: Any, gateway: str | None = None
    ) -> list[Arrival]:
        """Arrivals for a store: digests in place of names and keys. `gateway`: the id of the gateway that gave the names."""
        context: tuple[str, ...] = ("discreet speaker", self.stored_agreement.collection, str(round_number))
        if gateway is not None and self.stored_agreement.apart:
            context = ("discreet speaker of a gateway", self.stored_agreement.collection, str(round_number), gateway)
        return [
            Arrival(text_digest(*context, client), text_digest("discreet sent", key), outcome)
            for client, key, outcome in zip(clients, keys, outcomes.tolist(), strict=True)
        ]


def labelled_agreement_coding_and_sampler(
    agreement: Agreement, domain: Any = None
) -> tuple[Agreement, Coding | None, AnySampler]:
    """The agreement with its labels, how samples are read, and the sampler; refused if samples of it cannot be counted or estimated.

    Reports on a survey are read by the sampler alone.
    """
    if agreement.schedule is not None:
        raise DiscreetError(
            "the agreement has a schedule, which is for releases of tables (discreet sample --round DATE); a collection opens its rounds "
            "by number: agree without --start"
        )
    if agreement.survey is not None:
        return agreement, None, _require_countable_survey_sampler(agreement)
    if agreement.blocks is not None:
        return _labelled_agreement_coding_and_report_sampler(agreement, agreed_coding(agreement, domain))
    if isinstance(agreement.family, ContinuousTerms):
        cells, sampler = coding_and_sampler(agreement, domain)
        _refuse_too_many_outcomes(cells)
        one_bin_per_cell(sampler)
        return agreement, cells, sampler
    coding = agreed_coding(agreement, domain)
    sampler = agreement.sampler(agreed_finite_family(agreement, coding))
    _refuse_too_many_outcomes(coding)
    if isinstance(coding.domain, Interval):
        outcome_reference_masses(coding.domain, sampler.reference)  # or an error for values whose squares overflow
    return replace(agreement, family=agreement.on_outcomes.on(coding.domain)), coding, sampler


def _refuse_too_many_outcomes(coding: Coding) -> None:
    """Raise an error for more outcomes than can be estimated."""
    if coding.size > LARGEST:
        raise DiscreetError(f"the agreement has {coding.size:,} outcomes; at most {LARGEST:,} can be estimated")


def _labelled_agreement_coding_and_report_sampler(
    agreement: Agreement, coding: Coding
) -> tuple[Agreement, Coding, ReportSampler]:
    """The agreement on reports with its labels, its coding and its sampler.

    A store cannot give reports back: what is not estimated here would not be estimated at all.
    """
    if coding.size > MOST_ANSWERED:
        raise DiscreetError(
            f"the agreement is on reports of {coding.size:,} outcomes, and a service estimates {MOST_ANSWERED:,} at most; gather reports in "
            "files, and estimate from them: discreet estimate"
        )
    labelled_agreement = replace(agreement, family=agreement.on_outcomes.on(coding.domain))
    return labelled_agreement, coding, labelled_agreement.report_sampler()


def _require_countable_survey_sampler(agreement: Agreement) -> SurveySampler:
    sampler = agreement.survey_sampler()
    last = np.array([np.iinfo(np.uint64).max], dtype=np.uint64)
    if sampler.are_reports(last)[0]:  # which a store keeps as -1, its mark for what is none
        raise DiscreetError(
            "the survey has the report 2^64 - 1, which a service does not count; ask fewer outcomes together"
        )
    return sampler


def agreements_differ_in_purpose_alone(first: Agreement, second: Agreement) -> bool:
    """Whether two agreements differ in their purpose at most, so that they may be those of two groups."""
    return replace(first, purpose="").id == replace(second, purpose="").id


def can_be_estimated_as_stages(agreements: Sequence[Agreement]) -> bool:
    """Whether agreements are stages that can be estimated together: several, on the same outcomes, one sample of each client."""
    if len(agreements) < 2 or any(
        isinstance(agreement.family, (ContinuousTerms, RowTerms)) for agreement in agreements
    ):
        return False
    if any(agreement.own is not None for agreement in agreements):
        return False
    return len({agreement.domain.digest for agreement in agreements}) == 1


def survey_columns_to_group_by(agreement: Agreement) -> list[str]:
    """The columns of a survey within whose outcomes shares can be told: a question asks for them and another column."""
    if agreement.survey is None or not isinstance(agreement.family, RowTerms):
        return []
    questions = agreement.survey_sampler().survey.questions
    grouping_columns = {
        name
        for question in questions
        if question.kind == "shares" and len(question.columns) > 1
        for name in question.columns
    }
    return [name for name in agreement.family.columns if name in grouping_columns]


def _changeable_field_values(stored_agreement: StoredAgreement) -> tuple[Any, ...]:
    """The values that a store may change of an agreement, such as whether it is closed."""
    return (
        stored_agreement.signed,
        stored_agreement.closed,
        stored_agreement.least,
        stored_agreement.shown,
        stored_agreement.questions,
    )


class Catalogue:
    """The agreements that are collected in a store.

    Args:
        store: the store.
        rounds: the open rounds, of agreements that have so many.
    """

    def __init__(self, store: Store, rounds: Iterable[int]) -> None:
        self._store = store
        numbers = check_list("rounds", rounds, "pass the numbers of rounds")
        self._rounds = tuple(sorted({check_count("round", number) for number in numbers}))
        self._all: dict[str, CollectedAgreement] = {}
        self._stale = 0.0  # when to look at the store again
        self.refresh_agreements_from_store(strict=True)

    @property
    def all_agreements(self) -> list[CollectedAgreement]:
        """Every agreement, in the order of arrival."""
        return list(self._all.values())

    def refresh_agreements_from_store(self, *, strict: bool = False) -> None:
        """Read the agreements of the store. `strict`: raise an error for one that cannot be collected, else leave it out."""
        start = time.monotonic()
        agreements = {}
        for stored_agreement in self._store.agreements():
            entry = self._all.get(stored_agreement.agreement.id)
            if entry is None:
                try:
                    _, coding, sampler = labelled_agreement_coding_and_sampler(stored_agreement.agreement)
                except DiscreetError:
                    if strict:
                        raise
                    continue
                rounds = tuple(number for number in self._rounds if number <= stored_agreement.agreement.rounds)
                entry = CollectedAgreement(stored_agreement, coding, sampler, rounds)
            elif _changeable_field_values(entry.stored_agreement) != _changeable_field_values(stored_agreement):
                entry = replace(entry, stored_agreement=stored_agreement)
            agreements[entry.id] = entry
        now = time.monotonic()
        self._all, self._stale = agreements, now + max(FRESH_SECONDS, _REST * (now - start))

    async def _refresh_agreements_if_stale(self) -> None:
        if time.monotonic() > self._stale:
            self._stale = time.monotonic() + FRESH_SECONDS
            with suppress(StoreError):  # keep the known agreements
                await asyncio.get_running_loop().run_in_executor(None, self.refresh_agreements_from_store)

    async def find_agreement_by_prefix(self, prefix: str | None) -> CollectedAgreement:
        """The agreement with that id or unique prefix of it; by default the newest."""
        await self._refresh_agreements_if_stale()
        if prefix is None:
            if not self._all:
                raise RequestProblem(404, "no agreement is collected here yet")
            return self.all_agreements[-1]
        agreement_id = unique_id_with_prefix_or_none(self._all, prefix)
        if agreement_id is not None:
            return self._all[agreement_id]
        raise RequestProblem(
            404,
            f"agreement is not the id of one that is collected here, nor {LEAST_PREFIX} or more of its first digits",
        )

    async def find_agreement_by_id(self, agreement: str) -> CollectedAgreement:
        """The agreement with the id that a request of samples names."""
        if agreement not in self._all:
            await self._refresh_agreements_if_stale()
        entry = self._all.get(agreement)
        if entry is None:
            raise unprocessable_problem(
                f"agreement is not one that is collected here; {SAMPLES} takes those that /collection lists"
            )
        return entry

    def agreements_of_public_groups(self, entry: CollectedAgreement) -> tuple[CollectedAgreement, ...]:
        """The agreements of a collection that differ in their purpose alone: one of each public group."""
        entries = self.agreements_of_collection(entry.stored_agreement.collection)
        return tuple(
            member for member in entries if agreements_differ_in_purpose_alone(member.agreement, entry.agreement)
        )

    def agreements_estimable_as_stages(self, entry: CollectedAgreement) -> tuple[CollectedAgreement, ...]:
        """The agreements of a collection, if they are stages that can be estimated together; else none."""
        entries = self.agreements_of_collection(entry.stored_agreement.collection)
        return tuple(entries) if can_be_estimated_as_stages([member.agreement for member in entries]) else ()

    def agreements_of_collection(self, collection: str) -> list[CollectedAgreement]:
        """The agreements of a collection, in the order of arrival."""
        return [entry for entry in self._all.values() if entry.stored_agreement.collection == collection]


def gateway_id_from_authorization(enrolment: Enrolment, authorization: list[str]) -> str | None:
    """The id of the gateway named by these Authorization headers, or None; an error for a token of no gateway."""
    tokens = [header[len(_BEARER) :].strip() for header in authorization if header.lower().startswith(_BEARER)]
    if not enrolment.gateways or not tokens:  # other schemes are for a proxy
        return None
    gateway = enrolment.gateways.get(token_digest(tokens[0])) if len(tokens) == 1 and tokens[0].isascii() else None
    if gateway is None:
        raise RequestProblem(
            401,
            "the Authorization header does not hold a token of a gateway of this collection",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return gateway


class EnrolmentCache:
    """The enrolment of the store, read again after a second.

    Args:
        store: the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found, self._stale = store.read_enrolment(), time.monotonic() + GATEWAYS_SECONDS

    async def current_enrolment(self) -> Enrolment:
        """The current enrolment."""
        if time.monotonic() > self._stale:
            self._stale = time.monotonic() + GATEWAYS_SECONDS
            with suppress(StoreError):  # then samples cannot be written either
                self._found = await asyncio.get_running_loop().run_in_executor(None, self._store.read_enrolment)
        return self._found


def sign_agreements(store: Store, key: CollectorKey, addresses: Sequence[str], *, replace_key: bool = False) -> None:
    """Sign every agreement of a store that this key has not yet signed for these addresses.

    Args:
        store: contains the agreements and keeps the signatures.
        key: the collector's.
        addresses: where devices reach the collector.
        replace_key: whether signatures by another key may be replaced.

    Raises:
        DiscreetError: for invalid addresses, and for a store signed by another key that may not be replaced.
    """
    normal_addresses = normalise_addresses(addresses)
    refuse_other_signing_key(store, key, replace_key=replace_key)
    for stored_agreement in store.agreements():
        statement = CollectionStatement(
            agreement=stored_agreement.agreement.id,
            collection=stored_agreement.collection,
            follows=stored_agreement.follows,
            addresses=normal_addresses,
        )
        if (
            stored_agreement.signed is None
            or stored_agreement.signed.key != key.public
            or not has_valid_signature(statement, stored_agreement.signed)
        ):
            store.save_signature(stored_agreement.agreement.id, key.sign(statement))


def refuse_other_signing_key(store: Store, key: CollectorKey | None, *, replace_key: bool) -> None:
    """Raise an error if the store is signed by another key that may not be replaced. None: a key that will be created."""
    public_key = None if key is None else key.public
    other_keys = sorted(
        {stored_agreement.signed.key for stored_agreement in store.agreements() if stored_agreement.signed is not None}
        - {public_key}
    )
    if other_keys and not replace_key:
        key_text = "a new one" if public_key is None else short_key_text(public_key)
        raise DiscreetError(
            f"the store is signed by another key, {short_key_text(other_keys[0])}, not by {key_text}, and devices that have pinned it "
            "would refuse this one; give the file of that key, or replace it with --replace-key"
        )


CONFIDENCES = ("0.5", "0.8", "0.9", "0.95", "0.98", "0.99", "0.995", "0.999")
USUAL_CONFIDENCE = "0.95"
MOST_ANSWERED = 20_000  # outcomes of an answer
MOST_KEPT = 64  # answers kept, one for each request
OTHERS_SECONDS = 1.0  # for which counts count as current if this process has written nothing
_ESTIMATE_REST, _MOST_REST = 4.0, 1.0  # pause in units of the duration, and its largest value in seconds


@dataclass(frozen=True)
class EstimateRequest:
    """What is asked of the counts: an estimate of each of some agreements in a round, or of one in two rounds.

    `kind`: "estimate" of one side, "within" the private groups of its column `by`, the "groups" of several agreements, all of them "pooled",
    or the "change" from the first side to the second.
    """

    kind: str
    sides: tuple[tuple[CollectedAgreement, int], ...]
    confidence: str
    by: str = ""

    @property
    def cache_key(self) -> tuple[Any, ...]:
        """What tells it from other requests."""
        return self.kind, tuple((entry.id, number) for entry, number in self.sides), self.confidence, self.by

    @property
    def first_agreement(self) -> CollectedAgreement:
        """The first agreement."""
        return self.sides[0][0]

    @property
    def changeable_field_values(self) -> tuple[Any, ...]:
        """The values that a store may change of the agreements."""
        return tuple(_changeable_field_values(entry.stored_agreement) for entry, _ in self.sides)

    def estimate_as_json_document(self, counts: Sequence[NDArray[np.int64]]) -> dict[str, Any]:
        """The estimate as a JSON object, from the counts of each side."""
        confidence, stored_agreement, sampler = (
            float(self.confidence),
            self.first_agreement.stored_agreement,
            self.first_agreement.sampler,
        )
        rounds = tuple(number for _, number in self.sides)
        if self.kind == "groups":
            stored_agreements = [entry.stored_agreement for entry, _ in self.sides]
            return {
                **json_document_of_group_estimates(stored_agreements, sampler, counts, confidence),
                "round": rounds[0],
            }
        if self.kind == "pooled":
            samplers = [entry.sampler for entry, _ in self.sides]
            stored_agreements = [entry.stored_agreement for entry, _ in self.sides]
            return {
                **json_document_of_stages_estimate(stored_agreements, samplers, counts, confidence),
                "round": rounds[0],
            }
        if self.kind == "change":
            return json_document_of_estimated_change(
                stored_agreement, sampler, (rounds[0], rounds[1]), counts, confidence
            )
        if self.kind == "within":
            return {
                **json_document_of_shares_within_groups(stored_agreement, sampler, counts[0], confidence, self.by),
                "round": rounds[0],
            }
        return {**json_document_of_estimate(stored_agreement, sampler, counts[0], confidence), "round": rounds[0]}


@dataclass(frozen=True)
class TaggedEstimate:
    """An estimate as it is sent, with its tag."""

    tag: str
    body: bytes


@dataclass
class _CachedEstimate:
    """The last answer for an agreement, a round and a confidence."""

    estimate: TaggedEstimate | None = None
    counts_digest: bytes = b""  # of what it was computed from
    version: int = -1
    read: float = -1e9
    field_values: tuple[Any, ...] = ()
    rests_until: float = -1e9


class Estimates:
    """The estimates of a store.

    Args:
        store: with the counts.
        version: returns a number that changes when this process has written.
        record_seconds: called with the duration of each computation.
    """

    def __init__(self, store: Store, version: Callable[[], int], record_seconds: Callable[[float], None]) -> None:
        self._store, self._version, self._took = store, version, record_seconds
        self._last: dict[tuple[Any, ...], _CachedEstimate] = {}
        self._one = asyncio.Lock()

    async def current_estimate(self, request: EstimateRequest) -> TaggedEstimate:
        """The estimate that a request asks for: the last one while it is current, else a new one."""
        if request.confidence not in CONFIDENCES:
            raise bad_request_problem(f"confidence is not one of {', '.join(CONFIDENCES)}")
        if any(entry.coding is not None and entry.coding.size > MOST_ANSWERED for entry, _ in request.sides):
            raise RequestProblem(
                422,
                f"the agreement has more than {MOST_ANSWERED:,} outcomes, too many to list here; estimate from an export: discreet export",
            )
        cached_estimate = self._last.pop(request.cache_key, None) or _CachedEstimate()
        self._last[request.cache_key] = cached_estimate
        if len(self._last) > MOST_KEPT:
            del self._last[next(iter(self._last))]  # the least recently requested one
        if cached_estimate.field_values != request.changeable_field_values:
            cached_estimate.field_values, cached_estimate.read = request.changeable_field_values, -1e9
        if self._is_estimate_current(cached_estimate):
            assert cached_estimate.estimate is not None
            return cached_estimate.estimate
        async with self._one:
            wait = cached_estimate.rests_until - time.monotonic()
            if wait > 0.0 and not self._is_estimate_current(cached_estimate):
                await asyncio.sleep(wait)
            if not self._is_estimate_current(cached_estimate):
                await asyncio.get_running_loop().run_in_executor(
                    None, self._refresh_cached_estimate, cached_estimate, request
                )
        assert cached_estimate.estimate is not None
        return cached_estimate.estimate

    def _is_estimate_current(self, cached_estimate: _CachedEstimate) -> bool:
        is_fresh = time.monotonic() - cached_estimate.read < OTHERS_SECONDS
        return cached_estimate.estimate is not None and cached_estimate.version == self._version() and is_fresh

    def _refresh_cached_estimate(self, cached_estimate: _CachedEstimate, request: EstimateRequest) -> None:
        version, start = self._version(), time.monotonic()
        try:
            counts = [self._store.outcome_counts(entry.id, number) for entry, number in request.sides]
            days = self._store.sample_counts_by_day(request.first_agreement.id, request.sides[0][1])
        except StoreError:
            raise unavailable_problem("the store cannot be read now") from None
        stored_agreement = request.first_agreement.stored_agreement
        digest = _digest_of_parts(*request.cache_key, *counts, days, request.changeable_field_values)
        if cached_estimate.estimate is None or cached_estimate.counts_digest != digest:
            document = request.estimate_as_json_document(counts)
            document |= {"days": days} if request.kind == "estimate" else {}
            document |= {} if stored_agreement.closed is None else {"closed": stored_agreement.closed}
            body = json.dumps(document, allow_nan=False).encode()
            # the tag is of what is sent: one of the counts would tell those of an estimate that is hidden
            cached_estimate.estimate, cached_estimate.counts_digest = (
                TaggedEstimate(f'"{hashlib.sha256(body).hexdigest()[:32]}"', body),
                digest,
            )
            seconds = time.monotonic() - start
            self._took(seconds)
            cached_estimate.rests_until = time.monotonic() + min(_ESTIMATE_REST * seconds, _MOST_REST)
        cached_estimate.version, cached_estimate.read = version, start


def _digest_of_parts(*parts: Any) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode() + b"\0")
    return digest.digest()
