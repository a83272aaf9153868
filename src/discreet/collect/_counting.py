"""Counting: samples on their way into a store, the pool in which they wait, and the counts that they are added to.

Outcomes are counted in batches, so that counts do not show who sent which outcome. A store has to contain a sample before it is acknowledged.
If the sample were counted at once, two versions of the counts would differ by one outcome, and the later version would come with one new
client. Engines keep versions: PostgreSQL in dead rows, SQLite in its log. A new outcome therefore goes into the pool of its agreement and
round. Once `2 KEPT` outcomes wait, all but `KEPT` of them, chosen at random, are added to the counts. So the counts change by `KEPT` outcomes
or more at a time, and each may belong to any client that waited. (If samples of more than `MOST_GROUPS` rounds come at a time, the longest
waiting round is counted with what it has.) Estimates and exports use counts and pool together, so nothing is late.

What a reader learns about who sent what:

    a store once              an outcome is one of those in the pool or in a later batch: of at least `KEPT` clients. (While fewer
    (tables, pages)           took part in a round, of those: a store with one client shows that client's sample. In PostgreSQL every
                              process writes to one of a few slots, each with its own pool.)
    its log or dead rows,     SQLite: the same, once the log is emptied; the service does that as soon as no sample waits, and otherwise
    an old snapshot,          tries four times a second; freed bytes are overwritten. PostgreSQL: the pool before and after a
    a replica, a backup       sample, and so the sample. With a seal: only the batches.
    it at several moments     the pool before and after a sample, and so the sample. With a seal: only the batches.

A *seal* is a key in a file outside the store (`discreet collect --seal FILE`). It encrypts the pool (ChaCha20-Poly1305, a fresh nonce each
time). A reader of the store without the file learns only the counts: batches of `KEPT` clients or more. Every service of the store needs
the file, and so does an export. If the file is lost, the outcomes in the pool are lost, fewer than `2 KEPT` of a round (in PostgreSQL: of a
round and a slot); counts stay. A seal hides nothing from the operator of the service.

A batch hides a client among the others in it. An attacker who sent all other samples of a batch learns the last one; enrolment limits that.
A reader of `/estimate` after every sample sees the counts change by one, but not by whom. None of this bounds what a sample reveals: its
epsilon does, against everybody.

**Reports** wait in the pool as they came, and are counted in batches by the table of `discreet.mechanisms.ReportCounts`, which is as long as
the blocks have points, however many reports there are. Single reports are not kept and cannot be had back. Their number is the sum of the
table over what one report adds. Reports on a survey are counted by their numbers: the intervals of its answers need them one by one.
"""

import enum
import hashlib
import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.files import atomic_write, read_private_file
from discreet.agreement import Agreement, ContinuousTerms
from discreet.audit import MOST_DRAWS
from discreet.client import MOST_NAME
from discreet.errors import DiscreetError, StoreError, check_count, raise_missing_extra
from discreet.estimation import line_cells_of_sampler
from discreet.families import Simplex
from discreet.mechanisms import ReportCounts, Reports, ReportSampler
from discreet.survey import SurveySampler

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

DIGEST = 16  # bytes
KEPT = 32  # outcomes that stay when the others are counted
MOST_GROUPS = 16  # agreements and rounds of a pool; beyond that the longest waiting one is counted
SEAL_VARIABLE = "DISCREET_SEAL"  # names the file if no option does

NAME_PATTERN = re.compile(rf"[!-~]{{1,{MOST_NAME}}}")  # of a client, a key or a token
NAME_RULE = f"1 to {MOST_NAME} visible ASCII characters without a space"

Group = tuple[int, int]  # an agreement's number in the store, and a round
Pool = dict[Group, list[int]]

_PLAIN, _SEALED = b"\x00", b"\x01"
_HEAD = struct.Struct("<qqq")
_NONCE = 12  # bytes
_ABOUT = b"discreet pool 1"
_LINE = re.compile(rb"discreet-seal-1 ([0-9a-f]{64})\n?\Z")
_FIX = "give the file that `discreet collect --seal` made"
_DAMAGED = "the pool of the store is damaged; restore the store from a copy"
_ROWS = 1 << 16
DAMAGED = "the store is damaged: it counts what cannot be; restore it from a copy"
MOST_SURVEY_REPORTS = 50_000_000  # of a round, which are held in memory


@dataclass(frozen=True)
class Arrival:
    """A sample on its way into a store, as the number of its outcome; or a report, as `reports_as_signed_integers` writes it."""

    client: bytes  # digests, 16 bytes each: see `text_digest`
    key: bytes
    outcome: int


class Verdict(enum.Enum):
    """What became of a sample."""

    COUNTED = "counted"
    AGAIN = "again"  # counted before, under the same key
    SPOKEN = "spoken"  # the client has a sample under another key: nothing was changed
    CLOSED = "closed"  # the collection is closed, and the client has no sample in it: nothing was changed


def text_digest(*parts: str) -> bytes:
    """16 bytes in place of texts that a store does not keep. Among 10^12 clients two share them with probability below 10^-14.

    (An attacker who finds two names with one digest, in 2^64 tries, can use only one of them.)
    """
    return hashlib.sha256("\0".join(parts).encode()).digest()[:DIGEST]


def token_digest(token: str) -> bytes:
    """The digest of a token, which the store keeps."""
    return text_digest("discreet token", token)


def add_to_pool_and_take_surplus(pool: Pool, group: Group, outcomes: list[int]) -> dict[Group, list[tuple[int, int]]]:
    """Add outcomes to a pool, and remove and return those to count now.

    Args:
        pool: changed in place.
        group: the agreement and the round of the outcomes.
        outcomes: the new ones.

    Returns:
        For every group to count, (outcome, number) in the order of outcomes.
    """
    queue = pool.pop(group, []) + outcomes
    surplus = {}
    if len(queue) >= 2 * KEPT:
        remaining = set(SystemRandom().sample(range(len(queue)), KEPT))
        surplus[group] = sorted(
            Counter(outcome for index, outcome in enumerate(queue) if index not in remaining).items()
        )
        queue = [queue[index] for index in remaining]
    pool[group] = sorted(queue)
    while len(pool) > MOST_GROUPS:
        oldest = next(iter(pool))
        surplus[oldest] = sorted(Counter(pool.pop(oldest)).items())
    return surplus


class Seal:
    """The encoding of a pool: encrypted under a secret, or plain.

    Args:
        secret: 32 bytes, or None.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret

    @property
    def has_secret(self) -> bool:
        """Whether there is a secret."""
        return self._secret is not None

    def encode_pool(self, pool: Pool) -> bytes:
        """The bytes of a pool in the store."""
        parts = []
        for (agreement, round_number), outcomes in pool.items():
            parts.append(_HEAD.pack(agreement, round_number, len(outcomes)))
            parts.append(struct.pack(f"<{len(outcomes)}q", *outcomes))
        content = b"".join(parts)
        if self._secret is None:
            return _PLAIN + content
        nonce = os.urandom(_NONCE)
        return _SEALED + nonce + _make_cipher(self._secret).encrypt(nonce, content, _ABOUT)

    def decode_pool(self, content: bytes) -> Pool:
        """The pool in the store; an error if it is sealed under another secret."""
        kind, rest = content[:1], content[1:]
        if kind == _SEALED:
            rest = self._decrypt_pool(rest)
        elif kind != _PLAIN:
            raise StoreError(_DAMAGED)
        pool: Pool = {}
        try:
            while rest:
                agreement, round_number, length = _HEAD.unpack_from(rest)
                if length < 0:
                    raise StoreError(_DAMAGED)
                end = _HEAD.size + 8 * length
                pool[agreement, round_number] = list(struct.unpack(f"<{length}q", rest[_HEAD.size : end]))
                rest = rest[end:]
        except struct.error:
            raise StoreError(_DAMAGED) from None
        return pool

    def _decrypt_pool(self, content: bytes) -> bytes:
        if self._secret is None:
            raise StoreError(
                f"the store is sealed, and its key was not given; name the file of it: --seal FILE, or {SEAL_VARIABLE}=FILE"
            )
        from cryptography.exceptions import InvalidTag

        try:
            return _make_cipher(self._secret).decrypt(content[:_NONCE], content[_NONCE:], _ABOUT)
        except (InvalidTag, ValueError):
            raise StoreError(
                "the store is sealed under another key, or damaged; name the file of its key: --seal FILE"
            ) from None


def _make_cipher(secret: bytes) -> "ChaCha20Poly1305":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError as missing:
        raise_missing_extra("collect", missing)
    return ChaCha20Poly1305(secret)


def create_seal_file(path: str | Path) -> None:
    """Write a fresh key to a new file that only its owner may read. An existing file is never replaced."""
    fix = "a store may be sealed under its key; choose another name"
    with atomic_write(path, what="seal", private=True, fix=fix) as file:
        file.write(b"discreet-seal-1 " + os.urandom(32).hex().encode() + b"\n")


def read_seal_file(path: str | Path | None) -> Seal:
    """The seal in a file, refused if anybody but its owner may read it; without a file, the one that DISCREET_SEAL names, or none."""
    if path is None or (isinstance(path, str) and not path):
        path = os.environ.get(SEAL_VARIABLE)
    if path is None or (isinstance(path, str) and not path):
        return Seal()
    match = _LINE.match(read_private_file(path, what="seal", most=1024, fix=_FIX))
    if match is None:
        raise DiscreetError(f"{path} does not hold the key of a seal; {_FIX}")
    return Seal(bytes.fromhex(match[1].decode()))


@dataclass(frozen=True)
class AgreementRow:
    """Where an agreement stands in a store: numbers in place of ids, in tables that are long. `outcomes`: how many counts it has."""

    number: int
    collection: int
    outcomes: int
    rounds: int
    reports: ReportSampler | SurveySampler | None = None  # what releases them, of an agreement on reports or a survey

    @classmethod
    def from_columns(cls, number: int, collection: int, outcomes: int, rounds: int, text: str) -> "AgreementRow":
        """The row with these columns; most texts of agreements need no reading."""
        has_reports = any(f'"{name}"' in text for name in (ReportSampler.name, SurveySampler.name))
        reports = report_or_survey_sampler_or_none(Agreement.from_json(text)) if has_reports else None
        return cls(number, collection, outcomes, rounds, reports)

    @property
    def is_survey(self) -> bool:
        """Whether reports are counted by their numbers."""
        return isinstance(self.reports, SurveySampler)

    def refuse_invalid_arrivals(self, round: int, arrivals: Sequence[Arrival]) -> None:
        """Raise an error for outcomes and digests that are out of range."""
        check_count("round", round, most=self.rounds)
        for arrival in arrivals:
            if len(arrival.client) != DIGEST or len(arrival.key) != DIGEST:
                raise DiscreetError(f"client and key are digests of {DIGEST} bytes; make them with text_digest(...)")
        if self.reports is not None:
            self.reports.check_reports(reports_from_signed_integers([arrival.outcome for arrival in arrivals]))
            return
        for arrival in arrivals:
            if not 0 <= arrival.outcome < self.outcomes:
                raise DiscreetError(f"outcome = {arrival.outcome!r} is not one of the {self.outcomes:,} agreed on")

    def increments_of_stored_counts(self, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """What is added to which counts, in their order, by (outcome or report, how often): of reports, the table of them."""
        if not isinstance(self.reports, ReportSampler):
            return sorted(pairs) if self.is_survey else list(pairs)
        numbers, counts = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        table = ReportCounts(self.reports).add(np.repeat(reports_from_signed_integers(numbers), counts)).table
        indices = np.flatnonzero(table)
        return list(zip(indices.tolist(), table[indices].tolist(), strict=True))


def reports_as_signed_integers(reports: Reports) -> NDArray[np.int64]:
    """Reports as whole numbers of 64 bits with a sign, which pools and engines have: those from 2^63 on, which masks can be, are negative."""
    return reports.view(np.int64)


def reports_from_signed_integers(integers: ArrayLike) -> Reports:
    """The reports behind whole numbers with a sign, as `reports_as_signed_integers` wrote them."""
    return np.asarray(integers, dtype=np.int64).view(np.uint64)


def report_or_survey_sampler_or_none(agreement: Agreement) -> ReportSampler | SurveySampler | None:
    """What releases the reports of an agreement on reports, by the numbers of outcomes, or on a survey; None for one on samples."""
    if agreement.survey is not None:
        return agreement.survey_sampler()
    if agreement.blocks is None or isinstance(agreement.family, ContinuousTerms):
        return None
    size = agreement.family.size
    return ReportSampler(Simplex(size), epsilon=agreement.epsilon, blocks=agreement.blocks.on(size))


AgreementRows = dict[str | int, AgreementRow]  # by id and by number


def number_of_stored_counts(agreement: Agreement) -> int:
    """How many counts there are: of outcomes; on a continuous family of the cells that an estimate puts together; of reports their table.

    0 for a survey, whose reports are counted by their numbers.
    """
    if isinstance(agreement.family, ContinuousTerms):
        return line_cells_of_sampler(agreement.sampler()).size
    sampler = report_or_survey_sampler_or_none(agreement)
    if isinstance(sampler, SurveySampler):
        return 0
    return agreement.domain.size if sampler is None else len(ReportCounts(sampler).table)


def outcomes_of_counted_arrivals(arrivals: Sequence[Arrival], verdicts: Sequence[Verdict]) -> list[int]:
    """The outcomes of the counted arrivals."""
    return [arrival.outcome for arrival, verdict in zip(arrivals, verdicts, strict=True) if verdict is Verdict.COUNTED]


def add_pooled_outcomes_to_counts(
    counts: NDArray[np.int64], pools: Iterable[Pool], row: AgreementRow, round: int
) -> NDArray[np.int64]:
    """The counts of an agreement in a round, and what waits in the pools besides."""
    group: Group = (row.number, round)
    pooled_outcomes = Counter(outcome for pool in pools for outcome in pool.get(group, []))
    if not pooled_outcomes:
        return counts
    if row.is_survey:
        return _sort_and_check_survey_reports(
            row, np.concatenate([counts, np.array([*pooled_outcomes.elements()], dtype=np.int64)])
        )
    try:
        increments = np.array(row.increments_of_stored_counts(pooled_outcomes.items()), dtype=np.int64)
    except DiscreetError:  # a number that is no report
        raise StoreError(DAMAGED) from None
    if increments[:, 0].min() < 0 or increments[:, 0].max() >= len(counts):
        raise StoreError(DAMAGED)
    counts[increments[:, 0]] += increments[:, 1]
    return counts


def fetch_outcome_counts_from_rows(cursor: Any, row: AgreementRow) -> NDArray[np.int64]:
    """The counts of all outcomes, from rows (outcome, number), read in parts; of a survey its reports, in order."""
    if row.is_survey:
        return _sort_and_check_survey_reports(row, _fetch_survey_reports(cursor))
    outcomes = row.outcomes
    counts = np.zeros(outcomes, dtype=np.int64)
    while rows := cursor.fetchmany(_ROWS):
        pairs = np.array(rows, dtype=np.int64)
        if pairs[:, 0].min() < 0 or pairs[:, 0].max() >= outcomes:
            raise StoreError(DAMAGED)
        counts[pairs[:, 0]] = pairs[:, 1]
    return require_possible_counts(counts)


def _fetch_survey_reports(cursor: Any) -> NDArray[np.int64]:
    """The reports of a survey, each as often as it came."""
    parts, total = [np.zeros(0, dtype=np.int64)], 0
    while rows := cursor.fetchmany(_ROWS):
        reports, counts = np.array(rows, dtype=np.int64).T
        total += int(require_possible_counts(counts).sum())
        if total > MOST_SURVEY_REPORTS:
            raise StoreError(
                f"a round of this survey has more than {MOST_SURVEY_REPORTS:,} reports, too many to answer from"
            )
        parts.append(np.repeat(reports, counts))
    return np.concatenate(parts)


def _sort_and_check_survey_reports(row: AgreementRow, integers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The reports in order, if they are reports of the survey."""
    assert row.reports is not None
    try:
        row.reports.check_reports(reports_from_signed_integers(integers))
    except DiscreetError:
        raise StoreError(DAMAGED) from None
    return np.sort(integers)


def require_possible_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts; an error if they are impossible."""
    if (counts < 0).any() or counts.sum(dtype=np.float64) > MOST_DRAWS:
        raise StoreError(DAMAGED)
    return counts
