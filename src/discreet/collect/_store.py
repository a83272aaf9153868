"""`Store`: the data of a collection, and the parts that stores of every engine share.

    spoken      (collection, round, digest of the client's name) -> digest of the key its sample came with
    counted     (agreement, round, outcome) -> how many; of reports: (agreement, round, place in the table of `ReportCounts`) -> how many;
                of a survey: (agreement, round, report) -> how many
    pool        outcomes and reports that are not counted there yet: they wait for others (`discreet.collect._pool`)
    arrived     (agreement, round, day) -> how many
    tokens      digest of a client's token -> whether it was revoked
    gateways    digest of a gateway's token -> the gateway's id, whether the token was revoked
    signatures  agreement -> key, signature and addresses (`discreet.client._protocol.StatementSignature`)
    collections collection -> the day on which it was closed, the least number of samples whose estimates are shown, and when they are
    questions   agreement -> what people are asked, in words (`discreet.collect._pages`)

No table links a client to its sample. All tables change in one transaction, and an answer leaves once that is on disk. After every failure
an acknowledged sample is therefore counted. A repeated key is acknowledged and not counted again. A client with another key already has a
sample, and is refused. An estimate needs only counts and pool, so its cost grows with the outcomes, not with the samples. Days are UTC days
by the service's clock, kept for people: nothing is decided by them, and the outcomes of a day are not kept.

The engine decides by its constraints (a primary key on collection, round and client) what becomes of each arrival. Rows of agreements and
checks of arrivals and counts are here, and need no engine.

Reports wait in the pool as they came, and are counted in batches by the table of `discreet.mechanisms.ReportCounts`, which is as long as the
blocks have points, however many reports there are. Single reports are not kept and cannot be had back. Their number is the sum of the table
over what one report adds.

Reports on a survey are counted by their numbers: the intervals of its answers need them one by one. What a store knows of them grows with
the reports, not with the columns.

A store that holds a token is enrolled for good: rows are never removed, and a revoked token stays revoked, even if a file that holds it is
added again. A gateway has an id of its own, drawn at random when its first token is added. It keeps the id when its token is replaced, so
its clients stay the same clients.

A collection that is closed stays closed: nothing is counted in it any more, and a sample that was counted before is acknowledged as ever.
"""

import enum
import hashlib
import json
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.showing import pluralise
from discreet.agreement import Agreement, ContinuousTerms
from discreet.audit import MOST_DRAWS
from discreet.client import StatementSignature, read_signature
from discreet.collect._pool import Group, Pool
from discreet.errors import DiscreetError, StoreError, check_choice, check_count
from discreet.estimation import line_of
from discreet.families import Simplex
from discreet.mechanisms import ReportCounts, Reports, ReportSampler
from discreet.survey import SurveySampler

DIGEST = 16  # bytes
ALWAYS, AFTER, NEVER = SHOWN = "always", "after", "never"  # when estimates are shown: after one's own sample


@dataclass(frozen=True)
class StoredAgreement:
    """An agreement of a collection. `collection`: the id of the agreement that it began with, its own if it follows none.

    `apart`: whether names from a gateway differ from the same names from elsewhere. It is false for collections that began before gateways
    had ids, where a known client would become a new one otherwise. `closed`: the day on which the collection was closed. `least`: fewer
    samples than these are not estimated from. `shown`: when the service shows estimates. `questions`: what people are asked, in words.
    `ticket`: what everybody is given who has taken part, to see estimates that are shown after that.
    """

    agreement: Agreement
    collection: str
    follows: str | None = None
    apart: bool = True
    signed: StatementSignature | None = None
    closed: str | None = None
    least: int = 0
    shown: str = ALWAYS
    questions: str | None = None
    ticket: str = ""

    def shows(self, samples: int) -> bool:
        """Whether so many samples are estimated from, rather than hidden."""
        return samples >= max(1, self.least)


@dataclass(frozen=True)
class Enrolment:
    """The enrolled clients. `needed`: whether only holders of a token may send. `gateways`: digests of their tokens, with their ids."""

    needed: bool = False
    gateways: Mapping[bytes, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """A sample on its way into a store, as the number of its outcome; or a report, as `stored_reports` writes it."""

    client: bytes  # digests, 16 bytes each: see `text_digest`
    key: bytes
    outcome: int


class Verdict(enum.Enum):
    """What became of a sample."""

    COUNTED = "counted"
    AGAIN = "again"  # counted before, under the same key
    SPOKEN = "spoken"  # the client has a sample under another key: nothing was changed
    CLOSED = "closed"  # the collection is closed, and the client has no sample in it: nothing was changed


class Store(Protocol):
    """The storage of a collection. Each method is one transaction, safe in any thread and beside other processes.

    Failures of the engine (gone, full, locked for too long) are raised as `StoreError`, and the next call tries anew. Nothing was changed
    then. If the engine died before it could answer, all of it may have been changed: the same arrivals again are answered by AGAIN.
    """

    def add(self, agreement: Agreement, *, follows: str | None = None) -> None:
        """Keep an agreement; one that is there already is left unchanged, and must follow the same one."""

    def agreements(self) -> list[StoredAgreement]:
        """All agreements, in the order of arrival."""

    def count(self, agreement: str, round: int, arrivals: Sequence[Arrival], day: str) -> list[Verdict]:
        """Count arrivals, and return what became of each, in order; durable on return. A client may occur twice among them."""

    def settle(self) -> bool:
        """Overwrite earlier versions in the engine, if possible; return whether that is complete."""

    def counts(self, agreement: str, round: int) -> NDArray[np.int64]:
        """How often each outcome came; of reports, the table of `ReportCounts`; of a survey, its reports as `stored_reports` writes them."""

    def by_day(self, agreement: str, round: int) -> list[tuple[str, int]]:
        """The number of samples of each day, in order."""

    def check_seal(self) -> None:
        """Seal the pool if the store was opened with a key; an error if it is sealed under another key."""

    def enrol(self, tokens: Iterable[bytes] = (), gateways: Iterable[bytes] = ()) -> int:
        """Add digests of tokens, of clients and of gateways, and return how many are new."""

    def revoke(self, digests: Iterable[bytes]) -> int:
        """Revoke these tokens, and return how many there were."""

    def replace_gateways(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace gateways' tokens (old, new); each gateway keeps its id."""

    def enrolment(self) -> Enrolment:
        """The current enrolment."""

    def known_tokens(self, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these digests belong to clients' tokens that are not revoked."""

    def sign(self, agreement: str, signed: StatementSignature) -> None:
        """Keep the signature of an agreement."""

    def close_collection(self, agreement: str, day: str) -> str:
        """Close the collection of an agreement for good, and return the day on which it was closed: this one, or an earlier one."""

    def hide_estimates(self, least: int) -> None:
        """Hide the estimates of fewer samples than these, in every collection of the store."""

    def show_estimates(self, shown: str) -> None:
        """Show estimates always, after a person's own sample, or never, in every collection of the store."""

    def ask(self, agreement: str, questions: str) -> None:
        """Keep what people are asked under an agreement, in words; an error if somebody has answered other words."""

    def close(self) -> None:
        """Close the file or the connections."""


def today() -> str:
    """Today in UTC: all that is kept of the time of a sample."""
    return datetime.now(UTC).date().isoformat()


def check_store(store: Any) -> None:
    """Refuse what is not an open store."""
    if isinstance(store, type) or not hasattr(store, "agreements"):
        raise DiscreetError(f"store = {store!r} is not an open store; pass open_store(...)")


def text_digest(*parts: str) -> bytes:
    """16 bytes in place of texts that a store does not keep. Among 10^12 clients two share them with probability below 10^-14.

    (An attacker who finds two names with one digest, in 2^64 tries, can use only one of them.)
    """
    return hashlib.sha256("\0".join(parts).encode()).digest()[:DIGEST]


_SIGN = """INSERT INTO signatures SELECT number, ?, ?, ? FROM agreements WHERE id = ?
ON CONFLICT (agreement) DO UPDATE SET signer = excluded.signer, signature = excluded.signature, addresses = excluded.addresses"""


_CLOSE = """INSERT INTO collections (collection, closed, least) SELECT collection, ?, 0 FROM agreements WHERE id = ?
ON CONFLICT (collection) DO UPDATE SET closed = coalesce(collections.closed, excluded.closed)"""
_CLOSED_ON = "SELECT closed FROM collections WHERE collection = (SELECT collection FROM agreements WHERE id = ?)"
_HIDE = """INSERT INTO collections (collection, least) SELECT DISTINCT collection, CAST(? AS bigint) FROM agreements WHERE number > 0
ON CONFLICT (collection) DO UPDATE SET least = excluded.least"""
_SHOW = """INSERT INTO collections (collection, least, shown, ticket) SELECT DISTINCT collection, 0, ?, ? FROM agreements WHERE number > 0
ON CONFLICT (collection) DO UPDATE SET shown = excluded.shown, ticket = coalesce(collections.ticket, excluded.ticket)"""
_ASKED = "SELECT words FROM questions WHERE agreement = (SELECT number FROM agreements WHERE id = ?)"
_ANSWERED = "SELECT EXISTS (SELECT 1 FROM spoken WHERE collection = (SELECT collection FROM agreements WHERE id = ?))"
_ASK = """INSERT INTO questions SELECT number, ? FROM agreements WHERE id = ?
ON CONFLICT (agreement) DO UPDATE SET words = excluded.words"""


def refuse_shared_tokens(shared: int) -> None:
    """Raise an error if tokens of clients and of gateways overlap."""
    if shared:
        raise DiscreetError(
            f"tokens of clients and of gateways share {pluralise(shared, 'token')}, and a gateway may speak for any number of clients; "
            "make others for the gateways with: discreet enrol"
        )


class Registers(ABC):
    """The part of a store that both engines share."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Any]:
        """A transaction that changes the store."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """A transaction that reads the store."""

    @abstractmethod
    def _before_writing(self) -> AbstractContextManager[Any]:
        """A transaction that reads on the writing connection, so that it does not wait for long readers."""

    @abstractmethod
    def _sql(self, statement: str) -> str:
        """A statement in the engine's spelling."""

    @abstractmethod
    def _insert(self, database: Any, table: str, columns: Sequence[Sequence[Any]]) -> int:
        """Insert missing rows, given by columns, and return how many were new."""

    @abstractmethod
    def _find_tokens(self, database: Any, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these are tokens that are not revoked."""

    def enrol(self, tokens: Iterable[bytes] = (), gateways: Iterable[bytes] = ()) -> int:
        """Add digests of tokens, of clients and of gateways, and return how many are new. From then on the store is enrolled."""
        clients, speakers = sorted(set(tokens)), sorted(set(gateways))
        with self._writing() as database:
            new = self._insert(database, "tokens", [clients, [0] * len(clients)])
            ids = [secrets.token_hex(16) for _ in speakers]
            new += self._insert(database, "gateways", [speakers, ids, [0] * len(speakers)])
            self._check_apart(database)
        return new

    def revoke(self, digests: Iterable[bytes]) -> int:
        """Revoke these tokens, and return how many there were."""
        found = 0
        with self._writing() as database:
            for digest in digests:
                for table in ("tokens", "gateways"):
                    revoked = self._sql(f"UPDATE {table} SET revoked = 1 WHERE digest = ? AND revoked = 0")
                    found += database.execute(revoked, (digest,)).rowcount
        return found

    def replace_gateways(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace gateways' tokens (old, new); each gateway keeps its id and its clients."""
        with self._writing() as database:
            for number, (old, new) in enumerate(pairs, start=1):
                row = self._sql("SELECT id FROM gateways WHERE digest = ? AND revoked = 0")
                found = database.execute(row, (old,)).fetchone()
                if found is None:
                    raise DiscreetError(f"token {number} is not one of a gateway of this store; nothing was replaced")
                database.execute(self._sql("UPDATE gateways SET revoked = 1 WHERE digest = ?"), (old,))
                if not self._insert(database, "gateways", [[new], [found[0]], [0]]):
                    raise DiscreetError(f"new token {number} is in the store already; nothing was replaced")
            self._check_apart(database)

    def enrolment(self) -> Enrolment:
        """The current enrolment."""
        with self._reading() as database:
            rows = database.execute(self._sql("SELECT digest, id, revoked FROM gateways")).fetchall()
            (some,) = database.execute(self._sql("SELECT EXISTS (SELECT 1 FROM tokens)")).fetchone()
        return Enrolment(
            bool(some or rows), {bytes(digest): str(name) for digest, name, revoked in rows if not revoked}
        )

    def known_tokens(self, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these digests belong to clients' tokens that are not revoked."""
        with self._before_writing() as database:
            return self._find_tokens(database, digests)

    def sign(self, agreement: str, signed: StatementSignature) -> None:
        """Keep the signature of an agreement in place of an earlier one."""
        row = (signed.key, signed.signature, json.dumps(list(signed.addresses)), agreement)
        with self._writing() as database:
            if not database.execute(self._sql(_SIGN), row).rowcount:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")

    def close_collection(self, agreement: str, day: str) -> str:
        """Close the collection of an agreement for good, and return the day on which it was closed: this one, or an earlier one."""
        with self._writing() as database:
            self._wait_for_counts(database)
            database.execute(self._sql(_CLOSE), (day, agreement))
            found = database.execute(self._sql(_CLOSED_ON), (agreement,)).fetchone()
            if found is None:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")
        return str(found[0])

    def hide_estimates(self, least: int) -> None:
        """Hide the estimates of fewer samples than these, in every collection of the store."""
        check_count("least", least, least=0, most=MOST_DRAWS)
        with self._writing() as database:
            database.execute(self._sql(_HIDE), (least,))

    def show_estimates(self, shown: str) -> None:
        """Show estimates always, after a person's own sample, or never, in every collection of the store."""
        check_choice("shown", shown, SHOWN)
        with self._writing() as database:
            database.execute(self._sql(_SHOW), (shown, secrets.token_hex(16)))

    def ask(self, agreement: str, questions: str) -> None:
        """Keep what people are asked under an agreement, in words; an error if somebody has answered other words."""
        with self._writing() as database:
            self._wait_for_counts(database)
            found = database.execute(self._sql(_ASKED), (agreement,)).fetchone()
            if found is not None and found[0] == questions:
                return
            (answered,) = database.execute(self._sql(_ANSWERED), (agreement,)).fetchone()
            if answered:
                raise DiscreetError(
                    f"agreement {agreement[:12]} has samples of people who read other words, and questions stay what they were; "
                    "collect under a new agreement"
                )
            if not database.execute(self._sql(_ASK), (questions, agreement)).rowcount:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")

    @abstractmethod
    def _wait_for_counts(self, database: Any) -> None:
        """Wait for transactions that count, where they can run beside this one."""

    def _check_apart(self, database: Any) -> None:
        """Raise an error for a client's token that is also a gateway's: its client could send samples for many."""
        both = self._sql("SELECT count(*) FROM gateways JOIN tokens ON gateways.digest = tokens.digest")
        (shared,) = database.execute(both).fetchone()
        refuse_shared_tokens(shared)


_ROWS = 1 << 16
DAMAGED = "the store is damaged: it counts what cannot be; restore it from a copy"
LEAST_PREFIX = 12  # least digits of a prefix of an id
MOST_SURVEY_REPORTS = 50_000_000  # of a round, which are held in memory


@dataclass(frozen=True)
class AgreementRow:
    """Where an agreement stands in a store: numbers in place of ids, in tables that are long. `outcomes`: how many counts it has."""

    number: int
    collection: int
    outcomes: int
    rounds: int
    reports: ReportSampler | SurveySampler | None = None  # what releases them, of an agreement on reports or a survey

    @property
    def is_survey(self) -> bool:
        """Whether reports are counted by their numbers."""
        return isinstance(self.reports, SurveySampler)

    def check(self, round: int, arrivals: Sequence[Arrival]) -> None:
        """Raise an error for outcomes and digests that are out of range."""
        check_count("round", round, most=self.rounds)
        for arrival in arrivals:
            if len(arrival.client) != DIGEST or len(arrival.key) != DIGEST:
                raise DiscreetError(f"client and key are digests of {DIGEST} bytes; make them with digest(...)")
        if self.reports is not None:
            self.reports.check_reports(sent_reports([arrival.outcome for arrival in arrivals]))
            return
        for arrival in arrivals:
            if not 0 <= arrival.outcome < self.outcomes:
                raise DiscreetError(f"outcome = {arrival.outcome!r} is not one of the {self.outcomes:,} agreed on")

    def places_counted(self, released: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """What is added to which counts, in their order, by (outcome or report, how often): of reports, the table of them."""
        if not isinstance(self.reports, ReportSampler):
            return sorted(released) if self.is_survey else list(released)
        numbers, often = np.array(list(released), dtype=np.int64).reshape(-1, 2).T
        table = ReportCounts(self.reports).add(np.repeat(sent_reports(numbers), often)).table
        places = np.flatnonzero(table)
        return list(zip(places.tolist(), table[places].tolist(), strict=True))


def stored_reports(reports: Reports) -> NDArray[np.int64]:
    """Reports as whole numbers of 64 bits with a sign, which pools and engines have: those from 2^63 on, which masks can be, are negative."""
    return reports.view(np.int64)


def sent_reports(stored: ArrayLike) -> Reports:
    """The reports that were stored like that."""
    return np.asarray(stored, dtype=np.int64).view(np.uint64)


def report_counter(agreement: Agreement) -> ReportSampler | SurveySampler | None:
    """What releases the reports of an agreement on reports, by the numbers of outcomes, or on a survey; None for one on samples."""
    if agreement.survey is not None:
        return agreement.survey_sampler()
    if agreement.blocks is None or isinstance(agreement.family, ContinuousTerms):
        return None
    size = agreement.family.size
    return ReportSampler(Simplex(size), epsilon=agreement.epsilon, blocks=agreement.blocks.on(size))


AgreementRows = dict[str | int, AgreementRow]  # by id and by number


def find_agreement_row(known: AgreementRows, agreement: str | int, look: Callable[[], Any]) -> AgreementRow:
    """Where an agreement stands, by its id or number; it never moves, so one look (a row, or None) is enough."""
    if agreement not in known:
        found = look()
        if found is None:
            raise DiscreetError(f"agreement {agreement} is not in the store; add it first")
        number, collection, outcomes, rounds, text = found
        named = any(
            f'"{name}"' in text for name in (ReportSampler.name, SurveySampler.name)
        )  # most texts need no reading
        reports = report_counter(Agreement.from_json(text)) if named else None
        known[agreement] = AgreementRow(number, collection, outcomes, rounds, reports)
    return known[agreement]


def outcome_count(agreement: Agreement) -> int:
    """How many counts there are: of outcomes; on a continuous family of the cells that an estimate puts together; of reports their table.

    0 for a survey, whose reports are counted by their numbers.
    """
    if isinstance(agreement.family, ContinuousTerms):
        return line_of(agreement.sampler()).size
    counter = report_counter(agreement)
    if isinstance(counter, SurveySampler):
        return 0
    return agreement.domain.size if counter is None else len(ReportCounts(counter).table)


def agreements_from_rows(rows: Iterable[Sequence[Any]]) -> list[StoredAgreement]:
    """Agreements from rows: collection, follows, text, weights, id, are gateways' names apart, key, signature, addresses, closed, least,
    shown, ticket, questions.

    A text whose id is not that of its row is damaged.
    """
    found = []
    for collection, follows, text, weights, identity, apart, *signed, closed, least, shown, ticket, questions in rows:
        agreement = Agreement.from_json(text)
        if weights is not None:
            agreement = agreement.with_weights(weights)
        if agreement.id != identity:
            raise StoreError(f"agreement {identity} in the store is damaged; restore the store from a copy")
        signature = _read_signature(*signed)
        own = "" if ticket is None else text_digest("discreet ticket", ticket, collection).hex()
        about = (closed, least or 0, shown or ALWAYS, questions, own)
        found.append(StoredAgreement(agreement, collection, follows, bool(apart), signature, *about))
    return found


def _read_signature(key: str | None, signature: str, addresses: str) -> StatementSignature | None:
    """The signature in a row, or None; devices check whether it is valid."""
    if key is None:
        return None
    try:
        found = read_signature({"key": key, "signature": signature, "addresses": json.loads(addresses)})
    except ValueError:
        found = None
    if found is None:
        raise StoreError("a signature in the store is damaged; restore the store from a copy")
    return found


def check_followed_agreement(kept: Mapping[str, str | None], agreement: str, follows: str | None) -> bool:
    """Whether the agreement is new among the kept ones, {id: which it follows}; an error if it contradicts them."""
    if agreement in kept:
        if kept[agreement] != follows:
            raise DiscreetError(
                f"agreement {agreement} is in the store already, and follows {kept[agreement] or 'none'}, not {follows or 'none'}; "
                "whose samples are counted together cannot be changed"
            )
        return False
    if follows is not None and follows not in kept:
        raise DiscreetError(
            f"agreement {follows}, which is to be followed, is not in the store; collect under it first"
        )
    return True


def id_with_prefix(agreements: Iterable[str], prefix: str) -> str | None:
    """The only id with this prefix; None if none or several have it, or if it is too short."""
    found = [each for each in agreements if each.startswith(prefix)]
    return found[0] if len(found) == 1 and len(prefix) >= LEAST_PREFIX else None


def choose_agreement(kept: Sequence[StoredAgreement], prefix: str | None) -> StoredAgreement:
    """The agreement with that id or unique prefix of it; by default the newest."""
    if not kept:
        raise DiscreetError("the store holds no agreement yet; collect under one first")
    if prefix is None:
        return kept[-1]
    by_id = {each.agreement.id: each for each in kept}
    found = id_with_prefix(by_id, prefix) if isinstance(prefix, str) else None
    if found is None:
        shown = ", ".join(each[:LEAST_PREFIX] for each in by_id)
        raise DiscreetError(
            f"agreement = {prefix!r} is not the id of one in the store, nor {LEAST_PREFIX} or more of its first digits; there are {shown}"
        )
    return by_id[found]


def new_outcomes(arrivals: Sequence[Arrival], verdicts: Sequence[Verdict]) -> list[int]:
    """The outcomes of the counted arrivals."""
    return [arrival.outcome for arrival, one in zip(arrivals, verdicts, strict=True) if one is Verdict.COUNTED]


def add_waiting_counts(
    counts: NDArray[np.int64], pools: Iterable[Pool], place: AgreementRow, round: int
) -> NDArray[np.int64]:
    """The counts of an agreement in a round, and what waits in the pools besides."""
    group: Group = (place.number, round)
    waiting = Counter(each for pool in pools for each in pool.get(group, []))
    if not waiting:
        return counts
    if place.is_survey:
        return _check_survey_reports(place, np.concatenate([counts, np.array([*waiting.elements()], dtype=np.int64)]))
    try:
        added = np.array(place.places_counted(waiting.items()), dtype=np.int64)
    except DiscreetError:  # a number that is no report
        raise StoreError(DAMAGED) from None
    if added[:, 0].min() < 0 or added[:, 0].max() >= len(counts):
        raise StoreError(DAMAGED)
    counts[added[:, 0]] += added[:, 1]
    return counts


def read_outcome_counts(cursor: Any, place: AgreementRow) -> NDArray[np.int64]:
    """The counts of all outcomes, from rows (outcome, number), read in parts; of a survey its reports, in order."""
    if place.is_survey:
        return _check_survey_reports(place, _read_survey_counts(cursor))
    outcomes = place.outcomes
    counts = np.zeros(outcomes, dtype=np.int64)
    while rows := cursor.fetchmany(_ROWS):
        read = np.array(rows, dtype=np.int64)
        if read[:, 0].min() < 0 or read[:, 0].max() >= outcomes:
            raise StoreError(DAMAGED)
        counts[read[:, 0]] = read[:, 1]
    return check_stored_counts(counts)


def _read_survey_counts(cursor: Any) -> NDArray[np.int64]:
    """The reports of a survey, each as often as it came."""
    parts, many = [np.zeros(0, dtype=np.int64)], 0
    while rows := cursor.fetchmany(_ROWS):
        reports, often = np.array(rows, dtype=np.int64).T
        many += int(check_stored_counts(often).sum())
        if many > MOST_SURVEY_REPORTS:
            raise StoreError(
                f"a round of this survey has more than {MOST_SURVEY_REPORTS:,} reports, too many to answer from"
            )
        parts.append(np.repeat(reports, often))
    return np.concatenate(parts)


def _check_survey_reports(place: AgreementRow, stored: NDArray[np.int64]) -> NDArray[np.int64]:
    """The reports in order, if they are reports of the survey."""
    assert place.reports is not None
    try:
        place.reports.check_reports(sent_reports(stored))
    except DiscreetError:
        raise StoreError(DAMAGED) from None
    return np.sort(stored)


def check_stored_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts; an error if they are impossible."""
    if (counts < 0).any() or counts.sum(dtype=np.float64) > MOST_DRAWS:
        raise StoreError(DAMAGED)
    return counts
