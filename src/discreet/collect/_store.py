"""`Store`: the data of a collection, in any engine that speaks SQL.

    spoken      (collection, round, digest of the client's name) -> digest of the key its sample came with
    counted     (agreement, round, outcome) -> how many; of reports: (agreement, round, place in the table of `ReportCounts`) -> how many;
                of a survey: (agreement, round, report) -> how many
    pool        outcomes and reports that are not counted there yet: they wait for others (`discreet.collect._counting`)
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

The engine decides by its constraints (a primary key on collection, round and client) what becomes of each arrival.

A store that holds a token is enrolled for good: rows are never removed, and a revoked token stays revoked, even if a file that holds it is
added again. A gateway has an id of its own, drawn at random when its first token is added. It keeps the id when its token is replaced, so
its clients stay the same clients.

A collection that is closed stays closed: nothing is counted in it any more, and a sample that was counted before is acknowledged as ever.
"""

import json
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.audit import MOST_DRAWS
from discreet.client import StatementSignature, signature_from_json_or_none
from discreet.collect._counting import (
    AgreementRow,
    AgreementRows,
    Arrival,
    Group,
    Seal,
    Verdict,
    add_pooled_outcomes_to_counts,
    add_to_pool_and_take_surplus,
    number_of_stored_counts,
    outcomes_of_counted_arrivals,
    text_digest,
)
from discreet.errors import DiscreetError, StoreError, check_choice, check_count

ALWAYS, AFTER, NEVER = SHOWN = "always", "after", "never"  # when estimates are shown: after one's own sample
LEAST_PREFIX = 12  # least digits of a prefix of an id
# locks: of tables, agreements, tokens and when estimates are shown; of counting, which closing needs alone
ADDING, COUNTING = (0x64637374, 0x64637375)


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

    def has_enough_samples_to_show(self, samples: int) -> bool:
        """Whether so many samples are estimated from, rather than hidden."""
        return samples >= max(1, self.least)


@dataclass(frozen=True)
class Enrolment:
    """The enrolled clients. `is_needed`: whether only holders of a token may send. `gateways`: digests of their tokens, with their ids."""

    is_needed: bool = False
    gateways: Mapping[bytes, str] = field(default_factory=dict)


def today_in_utc() -> str:
    """Today in UTC: all that is kept of the time of a sample."""
    return datetime.now(UTC).date().isoformat()


def require_store_object(store: Any) -> None:
    """Refuse what is not an open store."""
    if isinstance(store, type) or not hasattr(store, "agreements"):
        raise DiscreetError(f"store = {store!r} is not an open store; pass open_store(...)")


_FOLLOWED = "SELECT one.id, other.id FROM agreements one LEFT JOIN agreements other ON one.follows = other.number"
_ADD = """INSERT INTO agreements SELECT latest, ?, coalesce((SELECT collection FROM agreements WHERE id = ?), latest),
(SELECT number FROM agreements WHERE id = ?), ?, ?, ?, ?, 1 FROM (SELECT 1 + coalesce(max(number), 0) AS latest FROM agreements) AS place"""
_AGREEMENTS = """SELECT first.id, other.id, one.text, one.weights, one.id, first.apart, signer, signature, addresses, closed, least, shown,
ticket, words FROM agreements one JOIN agreements first ON one.collection = first.number
LEFT JOIN agreements other ON one.follows = other.number LEFT JOIN signatures ON signatures.agreement = one.number
LEFT JOIN collections ON collections.collection = one.collection LEFT JOIN questions ON questions.agreement = one.number
ORDER BY one.number"""
_CLOSED = "SELECT 1 FROM collections WHERE collection = ? AND closed IS NOT NULL"
_BY_DAY = "SELECT day, CAST(sum(n) AS bigint) FROM arrived WHERE agreement = ? AND round = ? GROUP BY day ORDER BY day"
_SIGN = """INSERT INTO signatures SELECT number, ?, ?, ? FROM agreements WHERE id = ?
ON CONFLICT (agreement) DO UPDATE SET signer = excluded.signer, signature = excluded.signature, addresses = excluded.addresses"""
_CLOSE = """INSERT INTO collections (collection, closed, least) SELECT collection, ?, 0 FROM agreements WHERE id = ?
ON CONFLICT (collection) DO UPDATE SET closed = coalesce(collections.closed, excluded.closed)"""
_CLOSED_ON = "SELECT closed FROM collections WHERE collection = (SELECT collection FROM agreements WHERE id = ?)"
_HIDE = """INSERT INTO collections (collection, least) SELECT DISTINCT collection, CAST(? AS bigint) FROM agreements WHERE number > 0
ON CONFLICT (collection) DO UPDATE SET least = excluded.least"""
_SHOW = """INSERT INTO collections (collection, least, shown, ticket) SELECT DISTINCT collection, 0, ?, ? FROM agreements WHERE number > 0
ON CONFLICT (collection) DO UPDATE SET shown = excluded.shown, ticket = coalesce(collections.ticket, excluded.ticket)"""
_INHERIT = """INSERT INTO collections (collection, least, shown, ticket) SELECT one.collection, max(least), max(shown), max(ticket)
FROM agreements one, collections WHERE id = ? AND number = one.collection GROUP BY one.collection"""
_ASKED = "SELECT words FROM questions WHERE agreement = (SELECT number FROM agreements WHERE id = ?)"
_ANSWERED = "SELECT EXISTS (SELECT 1 FROM spoken WHERE collection = (SELECT collection FROM agreements WHERE id = ?))"
_ASK = """INSERT INTO questions SELECT number, ? FROM agreements WHERE id = ?
ON CONFLICT (agreement) DO UPDATE SET words = excluded.words"""


def refuse_nonzero_shared_tokens(count: int) -> None:
    """Raise an error if any tokens are shared: `count` is how many are both a client's and a gateway's."""
    if count:
        raise DiscreetError(
            f"tokens of clients and of gateways share {pluralise(count, 'token')}, and a gateway may speak for any number of clients; "
            "make others for the gateways with: discreet enrol"
        )


class EngineConnection(ABC):
    """One connection to an engine, for one thread at a time; opened when needed, and anew after a failure or a fork.

    Args:
        shown: the store's name for people.
        wait: seconds to wait for others.
        failures: the engine's own errors, which become `StoreError`.
    """

    def __init__(self, shown: str, wait: float, failures: tuple[type[Exception], ...]) -> None:
        self.shown, self._wait, self._failures = shown, wait, failures
        self._lock = threading.Lock()
        self._database: Any = None
        self._forgotten: list[Any] = []  # of a parent process: closing them here would end them there
        self.places: AgreementRows = {}  # of agreements, in the store that is open

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Any]:
        """One transaction: all of it on the disk at the end, or nothing. `writes`: whether it changes the store."""
        if not self._lock.acquire(timeout=self._wait):
            raise self._store_error("it has been busy for too long; try again")
        try:
            with self._engine_transaction(writes=writes) as database:
                yield database
        except self._failures as error:
            self._drop_connection()
            raise self._store_error(self._failure_reason(error)) from error
        except BaseException:
            self._drop_connection()
            raise
        finally:
            self._lock.release()

    @abstractmethod
    def _engine_transaction(self, *, writes: bool) -> AbstractContextManager[Any]:
        """Begin a transaction, and commit it at the end."""

    @abstractmethod
    def _failure_reason(self, error: Exception) -> str:
        """Why the engine failed, in one line."""

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop_connection()

    def _drop_connection(self) -> None:
        if self._database is not None:
            with suppress(*self._failures):
                self._database.close()  # rolls back what was not committed
            self._database = None

    def _store_error(self, reason: str) -> StoreError:
        return StoreError(f"store {self.shown}: {reason}")


class Store(ABC):
    """The storage of a collection. Each method is one transaction, safe in any thread and beside other processes.

    Failures of the engine (gone, full, locked for too long) are raised as `StoreError`, and the next call tries anew. Nothing was changed
    then. If the engine died before it could answer, all of it may have been changed: the same arrivals again are answered by AGAIN.

    Statements are written once, with SQLite's names of tables and marks of parameters. `_translate_sql_for_engine` spells them for the
    engine.

    Args:
        writer: the connection that changes the store.
        reader: the connection that reads it.
        seal: the encoding of its pool.
    """

    def __init__(self, writer: EngineConnection, reader: EngineConnection, seal: Seal | None) -> None:
        self._writer, self._reader, self._seal = writer, reader, seal or Seal()

    @abstractmethod
    def erase_overwritten_data(self) -> bool:
        """Overwrite earlier versions in the engine, if possible; return whether that is complete."""

    @abstractmethod
    def seal_pool_if_key_given(self) -> None:
        """Seal the pool if the store was opened with a key; an error if it is sealed under another key."""

    @abstractmethod
    def _transaction_without_samples(self) -> AbstractContextManager[Any]:
        """A transaction that changes the store otherwise than by samples."""

    @abstractmethod
    def _translate_sql_for_engine(self, statement: str) -> str:
        """A statement in the engine's spelling."""

    @abstractmethod
    def _lock_until_transaction_ends(self, database: Any, lock: int, *, shared: bool = False) -> None:
        """Hold a lock until the transaction ends, where several transactions write at a time."""

    @abstractmethod
    def _insert_missing_rows(self, database: Any, table: str, columns: Sequence[Sequence[Any]]) -> int:
        """Insert missing rows, given by columns, and return how many were new."""

    @abstractmethod
    def _unrevoked_tokens_among(self, database: Any, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these are tokens that are not revoked."""

    @abstractmethod
    def _insert_arrivals(
        self, database: Any, collection: int, round: int, arrivals: Sequence[Arrival], *, is_closed: bool
    ) -> list[Verdict]:
        """Insert the clients that are new; for the others, compare their key with the stored one. A closed collection takes no new rows."""

    @abstractmethod
    def _read_counts_and_pools(
        self, database: Any, row: AgreementRow, round: int
    ) -> tuple[NDArray[np.int64], Sequence[bytes]]:
        """The counts of an agreement in a round, and all pools in which more may wait."""

    @abstractmethod
    def _read_stored_pool(self, database: Any) -> bytes:
        """The pool that new outcomes go to, locked."""

    @abstractmethod
    def _replace_stored_pool(self, database: Any, content: bytes) -> None:
        """Replace the pool that new outcomes go to."""

    @abstractmethod
    def _add_counts(
        self, database: Any, group: Group, row: AgreementRow, increments: Sequence[tuple[int, int]]
    ) -> None:
        """Add to the counts of an agreement in a round: (place, how many)."""

    @abstractmethod
    def _add_day_count(self, database: Any, group: Group, day: str, count: int) -> None:
        """Add to the number of samples of a day."""

    @abstractmethod
    def _request_erasure_if_few_samples(self, count: int) -> None:
        """After a transaction on disk that counted so many samples: if they are few, have earlier versions erased."""

    def _execute_sql(self, database: Any, statement: str, parameters: Sequence[Any] = ()) -> Any:
        return database.execute(self._translate_sql_for_engine(statement), parameters)

    def _find_agreement_row(self, database: Any, rows: AgreementRows, agreement: str | int) -> AgreementRow:
        """Where an agreement stands, by its id or number; it never moves, so one look is enough."""
        if agreement not in rows:
            column = "id" if isinstance(agreement, str) else "number"
            query = f"SELECT number, collection, outcomes, rounds, text FROM agreements WHERE {column} = ?"
            row = self._execute_sql(database, query, (agreement,)).fetchone()
            if row is None:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")
            rows[agreement] = AgreementRow.from_columns(*row)
        return rows[agreement]

    def add(self, agreement: Agreement, *, follows: str | None = None) -> None:
        """Keep an agreement; one that is there already is left unchanged, and must follow the same one."""
        outcomes = number_of_stored_counts(agreement)  # before the lock, since it may take long
        with self._writer.transaction(writes=True) as database:
            self._lock_until_transaction_ends(database, ADDING)
            predecessors = dict(self._execute_sql(database, _FOLLOWED).fetchall())
            if check_if_agreement_is_new(predecessors, agreement.id, follows):
                terms = (agreement.rounds, outcomes, agreement.text, agreement.family.weights_file_content)
                self._execute_sql(database, _ADD, (agreement.id, follows, follows, *terms))
                # whether estimates are shown holds for the store
                self._execute_sql(database, _INHERIT, (agreement.id,))

    def agreements(self) -> list[StoredAgreement]:
        """All agreements, in the order of arrival."""
        with self._reader.transaction() as database:
            rows = self._execute_sql(database, _AGREEMENTS).fetchall()
        return agreements_from_rows(rows)

    def count_arrivals(self, agreement: str, round: int, arrivals: Sequence[Arrival], day: str) -> list[Verdict]:
        """Count arrivals, and return what became of each, in order; durable on return. A client may occur twice among them."""
        rows = self._writer.places
        with self._writer.transaction(writes=True) as database:
            row = self._find_agreement_row(database, rows, agreement)
            row.refuse_invalid_arrivals(round, arrivals)
            self._lock_until_transaction_ends(database, COUNTING, shared=True)
            is_closed = self._execute_sql(database, _CLOSED, (row.collection,)).fetchone() is not None
            verdicts = self._insert_arrivals(database, row.collection, round, arrivals, is_closed=is_closed)
            new_outcomes = outcomes_of_counted_arrivals(arrivals, verdicts)
            if new_outcomes:
                pool = self._seal.decode_pool(self._read_stored_pool(database))
                surplus = add_to_pool_and_take_surplus(pool, (row.number, round), new_outcomes)
                self._replace_stored_pool(database, self._seal.encode_pool(pool))
                for group, pairs in sorted(surplus.items()):
                    group_row = self._find_agreement_row(database, rows, group[0])
                    self._add_counts(database, group, group_row, group_row.increments_of_stored_counts(pairs))
                self._add_day_count(database, (row.number, round), day, len(new_outcomes))
        self._request_erasure_if_few_samples(len(new_outcomes))
        return verdicts

    def outcome_counts(self, agreement: str, round: int) -> NDArray[np.int64]:
        """How often each outcome came; of reports, the table of `ReportCounts`; of a survey, its reports by `reports_as_signed_integers`."""
        with self._reader.transaction() as database:
            row = self._find_agreement_row(database, self._reader.places, agreement)
            counts, pools = self._read_counts_and_pools(database, row, round)
        return add_pooled_outcomes_to_counts(counts, [self._seal.decode_pool(content) for content in pools], row, round)

    def sample_counts_by_day(self, agreement: str, round: int) -> list[tuple[str, int]]:
        """The number of samples of each day, in order."""
        with self._reader.transaction() as database:
            row = self._find_agreement_row(database, self._reader.places, agreement)
            counts: list[tuple[str, int]] = self._execute_sql(database, _BY_DAY, (row.number, round)).fetchall()
        return counts

    def enrol_token_digests(self, tokens: Iterable[bytes], gateways: Iterable[bytes]) -> int:
        """Add digests of tokens, of clients and of gateways, and return how many are new. From then on the store is enrolled."""
        client_digests, gateway_digests = sorted(set(tokens)), sorted(set(gateways))
        with self._transaction_without_samples() as database:
            self._lock_until_transaction_ends(database, ADDING)
            new_count = self._insert_missing_rows(database, "tokens", [client_digests, [0] * len(client_digests)])
            ids = [secrets.token_hex(16) for _ in gateway_digests]
            new_count += self._insert_missing_rows(
                database, "gateways", [gateway_digests, ids, [0] * len(gateway_digests)]
            )
            self._refuse_client_tokens_shared_with_gateways(database)
        return new_count

    def revoke_token_digests(self, digests: Iterable[bytes]) -> int:
        """Revoke these tokens, and return how many there were."""
        count = 0
        with self._transaction_without_samples() as database:
            for digest in digests:
                for table in ("tokens", "gateways"):
                    statement = f"UPDATE {table} SET revoked = 1 WHERE digest = ? AND revoked = 0"
                    count += self._execute_sql(database, statement, (digest,)).rowcount
        return count

    def replace_gateway_tokens(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace gateways' tokens (old, new); each gateway keeps its id and its clients."""
        with self._transaction_without_samples() as database:
            self._lock_until_transaction_ends(database, ADDING)
            for number, (old_token, new_token) in enumerate(pairs, start=1):
                query = "SELECT id FROM gateways WHERE digest = ? AND revoked = 0"
                row = self._execute_sql(database, query, (old_token,)).fetchone()
                if row is None:
                    raise DiscreetError(f"token {number} is not one of a gateway of this store; nothing was replaced")
                self._execute_sql(database, "UPDATE gateways SET revoked = 1 WHERE digest = ?", (old_token,))
                if not self._insert_missing_rows(database, "gateways", [[new_token], [row[0]], [0]]):
                    raise DiscreetError(f"new token {number} is in the store already; nothing was replaced")
            self._refuse_client_tokens_shared_with_gateways(database)

    def read_enrolment(self) -> Enrolment:
        """The current enrolment."""
        with self._reader.transaction() as database:
            rows = self._execute_sql(database, "SELECT digest, id, revoked FROM gateways").fetchall()
            (has_tokens,) = self._execute_sql(database, "SELECT EXISTS (SELECT 1 FROM tokens)").fetchone()
        return Enrolment(
            bool(has_tokens or rows), {bytes(digest): str(name) for digest, name, is_revoked in rows if not is_revoked}
        )

    def unrevoked_client_tokens_among(self, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these digests belong to clients' tokens that are not revoked."""
        with self._writer.transaction() as database:  # which does not wait for long readers
            return self._unrevoked_tokens_among(database, digests)

    def save_signature(self, agreement: str, signed: StatementSignature) -> None:
        """Keep the signature of an agreement in place of an earlier one."""
        row = (signed.key, signed.signature, json.dumps(list(signed.addresses)), agreement)
        with self._transaction_without_samples() as database:
            if not self._execute_sql(database, _SIGN, row).rowcount:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")

    def close_collection(self, agreement: str, day: str) -> str:
        """Close the collection of an agreement for good, and return the day on which it was closed: this one, or an earlier one."""
        with self._transaction_without_samples() as database:
            self._lock_until_transaction_ends(database, COUNTING)
            self._execute_sql(database, _CLOSE, (day, agreement))
            row = self._execute_sql(database, _CLOSED_ON, (agreement,)).fetchone()
            if row is None:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")
        return str(row[0])

    def hide_estimates_below(self, least: int) -> None:
        """Hide the estimates of fewer samples than these, in every collection of the store."""
        check_count("least", least, least=0, most=MOST_DRAWS)
        with self._transaction_without_samples() as database:
            self._lock_until_transaction_ends(database, ADDING)  # a collection added meanwhile inherits the old number
            self._execute_sql(database, _HIDE, (least,))

    def set_estimate_visibility(self, shown: str) -> None:
        """Show estimates always, after a person's own sample, or never, in every collection of the store."""
        check_choice("shown", shown, SHOWN)
        with self._transaction_without_samples() as database:
            self._lock_until_transaction_ends(database, ADDING)
            self._execute_sql(database, _SHOW, (shown, secrets.token_hex(16)))

    def save_questions(self, agreement: str, questions: str) -> None:
        """Keep what people are asked under an agreement, in words; an error if somebody has answered other words."""
        with self._transaction_without_samples() as database:
            self._lock_until_transaction_ends(database, COUNTING)
            row = self._execute_sql(database, _ASKED, (agreement,)).fetchone()
            if row is not None and row[0] == questions:
                return
            (has_answers,) = self._execute_sql(database, _ANSWERED, (agreement,)).fetchone()
            if has_answers:
                raise DiscreetError(
                    f"agreement {agreement[:12]} has samples of people who read other words, and questions stay what they were; "
                    "collect under a new agreement"
                )
            if not self._execute_sql(database, _ASK, (questions, agreement)).rowcount:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")

    def close(self) -> None:
        """Close the file or the connections."""
        self._reader.close()
        self._writer.close()

    def _refuse_client_tokens_shared_with_gateways(self, database: Any) -> None:
        """Raise an error for a client's token that is also a gateway's: its client could send samples for many."""
        query = "SELECT count(*) FROM gateways JOIN tokens ON gateways.digest = tokens.digest"
        (count,) = self._execute_sql(database, query).fetchone()
        refuse_nonzero_shared_tokens(count)


def agreements_from_rows(rows: Iterable[Sequence[Any]]) -> list[StoredAgreement]:
    """Agreements from rows: collection, follows, text, weights, id, are gateways' names apart, key, signature, addresses, closed, least,
    shown, ticket, questions.

    A text whose id is not that of its row is damaged.
    """
    agreements = []
    for (
        collection, follows, text, weights, identity, apart, *signature_columns, closed, least, shown, ticket, questions,
    ) in rows:  # fmt: skip
        agreement = Agreement.from_json(text)
        if weights is not None:
            agreement = agreement.with_weights(weights)
        if agreement.id != identity:
            raise StoreError(f"agreement {identity} in the store is damaged; restore the store from a copy")
        signature = _signature_from_columns(*signature_columns)
        collection_ticket = "" if ticket is None else text_digest("discreet ticket", ticket, collection).hex()
        settings = (closed, least or 0, shown or ALWAYS, questions, collection_ticket)
        agreements.append(StoredAgreement(agreement, collection, follows, bool(apart), signature, *settings))
    return agreements


def _signature_from_columns(key: str | None, signature: str, addresses: str) -> StatementSignature | None:
    """The signature in a row, or None; devices check whether it is valid."""
    if key is None:
        return None
    try:
        checked_signature = signature_from_json_or_none(
            {"key": key, "signature": signature, "addresses": json.loads(addresses)}
        )
    except ValueError:
        checked_signature = None
    if checked_signature is None:
        raise StoreError("a signature in the store is damaged; restore the store from a copy")
    return checked_signature


def check_if_agreement_is_new(predecessors: Mapping[str, str | None], agreement: str, follows: str | None) -> bool:
    """Whether the agreement is new in a store with these, {id: id it follows}; an error if it contradicts them."""
    if agreement in predecessors:
        if predecessors[agreement] != follows:
            raise DiscreetError(
                f"agreement {agreement} is in the store already, and follows {predecessors[agreement] or 'none'}, not {follows or 'none'}; "
                "whose samples are counted together cannot be changed"
            )
        return False
    if follows is not None and follows not in predecessors:
        raise DiscreetError(
            f"agreement {follows}, which is to be followed, is not in the store; collect under it first"
        )
    return True


def unique_id_with_prefix_or_none(agreements: Iterable[str], prefix: str) -> str | None:
    """The only id with this prefix; None if none or several have it, or if it is too short."""
    matches = [identity for identity in agreements if identity.startswith(prefix)]
    return matches[0] if len(matches) == 1 and len(prefix) >= LEAST_PREFIX else None


def find_agreement_by_prefix(agreements: Sequence[StoredAgreement], prefix: str | None) -> StoredAgreement:
    """The agreement with that id or unique prefix of it; by default the newest."""
    if not agreements:
        raise DiscreetError("the store holds no agreement yet; collect under one first")
    if prefix is None:
        return agreements[-1]
    by_id = {stored_agreement.agreement.id: stored_agreement for stored_agreement in agreements}
    agreement_id = unique_id_with_prefix_or_none(by_id, prefix) if isinstance(prefix, str) else None
    if agreement_id is None:
        prefixes = ", ".join(identity[:LEAST_PREFIX] for identity in by_id)
        fix = (
            ""
            if not isinstance(prefix, str) or not prefix.endswith(".json")
            else " (discreet agree FILE --check prints that of a file)"
        )
        raise DiscreetError(
            f"agreement = {prefix!r} is not the id of one in the store, nor {LEAST_PREFIX} or more of its first digits{fix}; there are "
            f"{prefixes}"
        )
    return by_id[agreement_id]
