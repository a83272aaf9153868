"""What a collector says, believed as far as it can be checked: ids are those of the documents, lists are lists, and no longer than can be.

Nothing that protects a person rests on it. What a server may choose is which agreement it offers, and the agreement says what a sample
reveals; a device that pins one, or whose ledger's budget is spent, releases nothing whatever it is told. A signature is believed where it
is one of this very agreement, in this collection, at the address that was connected to; anything else that is shown as one is refused.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from discreet.agreement import MOST_LISTED_WEIGHTS, Agreement, FamilyTerms
from discreet.client import _protocol as protocol
from discreet.client._http import Answer, Patience, ask_server
from discreet.client._protocol import Address, CollectionStatement, has_valid_signature, read_signature
from discreet.errors import CollectorError, DiscreetError

_ID = re.compile("[0-9a-f]{64}")
_MOST_SAID = 1 << 20  # bytes of JSON
_MOST_AGREED = 1 << 26  # of an agreement that lists its labels
_MOST_OUTCOMES = 10**7  # as many as can be estimated: what is held of each would fill a device's memory
_SENTENCE = 300  # characters of a server's words that are shown


@dataclass(frozen=True)
class Offer:
    """A collection as it says what it is. `follows`: of each of its agreements the one it follows, None for the first.

    `agreement`: the one that was asked for, or the newest. `rounds`: those in which samples are taken under it. `key`: the one that has
    signed it for this address, among `addresses`; None where nothing is signed.
    """

    collection: str
    agreement: str
    rounds: tuple[int, ...]
    enrolment: bool
    follows: dict[str, str | None]
    key: str | None = None
    addresses: tuple[str, ...] = ()

    def round(self, wanted: int | None) -> int:
        """The round that is wanted, if it is open; by default the newest that is."""
        if not self.rounds:
            raise CollectorError(f"no samples are taken now under agreement {self.agreement}; try again later")
        if wanted is not None and wanted not in self.rounds:
            told = ", ".join(map(str, self.rounds))
            raise CollectorError(f"round = {wanted} is not open: samples are taken in {told}; leave it out (--round)")
        return self.rounds[-1] if wanted is None else wanted


@dataclass(frozen=True)
class RequestVerdict:
    """What became of the samples of one request."""

    counted: int
    again: int
    refused: tuple[int, ...]


@dataclass(frozen=True)
class Collector:
    """A service, and how long to bear with it. `token`: of a gateway."""

    address: Address
    patience: Patience
    token: str | None = None

    def offer(self, agreement: str | None) -> Offer:
        """The collection that an agreement belongs to; by default that of the newest."""
        said = self._json(self._get(protocol.COLLECTION, agreement, most=_MOST_SAID), protocol.COLLECTION)
        collection, newest, enrolment = (said.get(name) for name in ("collection", "agreement", "enrolment"))
        listed = _read_agreements(said.get("agreements"))
        if (
            not (is_id(collection) and is_id(newest) and isinstance(enrolment, bool))
            or listed is None
            or newest not in listed
        ):
            raise self._not_a_collector(protocol.COLLECTION)
        wanted = newest if agreement is None else agreement
        if wanted not in listed:
            raise CollectorError(f"{self.address} does not collect under agreement {wanted}; check the address")
        follows = {each: row.follows for each, row in listed.items()}
        if _first_agreement(wanted, follows) != collection:
            raise self._not_a_collector(protocol.COLLECTION)
        statement = CollectionStatement(agreement=wanted, collection=collection, follows=follows[wanted], addresses=())
        key, addresses = self._signed_by(statement, listed[wanted].signed)
        return Offer(collection, wanted, listed[wanted].open, enrolment, follows, key, addresses)

    def _signed_by(self, statement: CollectionStatement, shown: Any) -> tuple[str | None, tuple[str, ...]]:
        """The key that has signed the statement for this address, and for which others; None where nothing is shown as a signature."""
        if shown is None:
            return None, ()
        signed = read_signature(shown)
        if signed is None or not has_valid_signature(replace(statement, addresses=signed.addresses), signed):
            raise CollectorError(
                f"{self.address} shows a signature of agreement {statement.agreement} that is none: nothing was sent. Ask whoever runs it"
            )
        if str(self.address) not in signed.addresses:
            raise CollectorError(
                f"agreement {statement.agreement} is signed for {', '.join(map(repr, signed.addresses))}, not for {self.address}: somebody "
                "offers another collector's agreement as their own, or it has moved. Nothing was sent; use an address that it is signed for"
            )
        return signed.key, signed.addresses

    def agreement(self, wanted: str) -> Agreement:
        """The agreement with this id: the id is a digest of what it says, so it does not matter who says it."""
        answer = self._get(protocol.AGREEMENT, wanted, most=_MOST_AGREED)
        try:
            found = Agreement.from_json(answer.body.decode())
        except UnicodeDecodeError:
            raise self._not_a_collector(protocol.AGREEMENT) from None
        except DiscreetError as error:
            raise CollectorError(f"{self.address} offers what is no agreement: {error}") from None
        if found.id != wanted:
            raise CollectorError(
                f"{self.address} offers agreement {wanted} and gives {found.id}: it is not what it says"
            )
        terms = found.family
        if not isinstance(terms, FamilyTerms):
            return found
        if terms.size > _MOST_OUTCOMES:
            raise CollectorError(
                f"{self.address} offers an agreement on {terms.size:,} outcomes; no more than {_MOST_OUTCOMES:,} can be collected"
            )
        if not terms.lacks_weights or terms.size <= MOST_LISTED_WEIGHTS:
            return found
        weights = self._get(protocol.WEIGHTS, wanted, most=8 * terms.size)
        return replace(found, family=terms.with_weights(weights.body, f"{self.address}{protocol.WEIGHTS}"))

    def verdict(self, body: bytes, kind: str, samples: int) -> RequestVerdict:
        """What becomes of so many samples that are sent, however often it takes."""
        headers = {"Content-Type": kind}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        answer = self.patience.answer(
            self.address,
            lambda timeout: ask_server(
                self.address, "POST", protocol.SAMPLES, body=body, headers=headers, timeout=timeout, most=_MOST_SAID
            ),
        )
        if answer.status == 409 and samples == 1:
            return RequestVerdict(0, 0, (0,))
        said = self._json(self._check_answer(answer, protocol.SAMPLES), protocol.SAMPLES)
        counted, again, refused = said.get("counted"), said.get("again"), said.get("refused", [])
        if not (is_count(counted, least=0) and is_count(again, least=0) and isinstance(refused, list)):
            raise self._not_a_collector(protocol.SAMPLES)
        places = tuple(place for place in refused if is_count(place, least=0) and place < samples)
        if len(set(places)) != len(refused) or counted + again + len(places) != samples:
            raise self._not_a_collector(protocol.SAMPLES)
        return RequestVerdict(counted, again, places)

    def _get(self, path: str, agreement: str | None, *, most: int) -> Answer:
        where = path if agreement is None else f"{path}?agreement={agreement}"
        answer = self.patience.answer(
            self.address, lambda timeout: ask_server(self.address, "GET", where, timeout=timeout, most=most)
        )
        return self._check_answer(answer, path)

    def _check_answer(self, answer: Answer, path: str) -> Answer:
        """An answer that is no refusal."""
        if answer.status == 200:
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise self._not_a_collector(path)
            return answer
        if 300 <= answer.status < 400:
            there = answer.headers.get("location", "elsewhere")[:_SENTENCE]
            raise CollectorError(
                f"{self.address} sends us on to {there!r}, where we do not go. If you trust it, give that address: a sample there is another "
                "one, which costs epsilon again, unless the collector has signed for both"
            )
        if answer.status in (401, 403):
            raise CollectorError(
                f"{self.address} takes samples of those it has enrolled alone{self._server_sentence(answer)}"
            )
        raise CollectorError(
            f"{self.address}{path} answers {answer.status}{self._server_sentence(answer)}; check the address and what is sent"
        )

    def _server_sentence(self, answer: Answer) -> str:
        """A server's own sentence."""
        try:
            said = _parse_object(answer.body).get("error")
        except CollectorError:
            return ""
        return f": {said[:_SENTENCE]!r}" if isinstance(said, str) else ""

    def _json(self, answer: Answer, path: str) -> dict[str, Any]:
        try:
            return _parse_object(answer.body)
        except CollectorError:
            raise self._not_a_collector(path) from None

    def _not_a_collector(self, path: str) -> CollectorError:
        return CollectorError(f"{self.address}{path} does not answer as a collector does; check the address")


def sample_body(agreement: str, round: int, client: str, sample: Any, longest: int = 0) -> bytes:
    """The body that sends one sample, with spaces up to the length that it has for the longest: no length tells which sample it is."""
    key = protocol.key_of(client, agreement, round)
    said = {"agreement": agreement, "round": round, "client": client, "key": key, "sample": sample}
    return json.dumps(said, allow_nan=False).encode() + b" " * max(0, longest - written_length(sample))


def written_length(sample: Any) -> int:
    """The bytes that a sample takes in a body."""
    return len(json.dumps(sample, allow_nan=False))  # ASCII: other characters are escaped


@dataclass(frozen=True)
class _OfferedAgreement:
    """What a collection says of one of its agreements: `signed` as it is shown, not checked yet."""

    follows: str | None
    open: tuple[int, ...]
    signed: Any


def _read_agreements(rows: Any) -> dict[str, _OfferedAgreement] | None:
    """What is said of each agreement of a list; None for what is no such list."""
    if not isinstance(rows, list):
        return None
    found = {}
    for row in rows:
        if not isinstance(row, dict) or not is_id(row.get("agreement")):
            return None
        before, rounds = row.get("follows"), row.get("open")
        if not (before is None or is_id(before)) or not isinstance(rounds, list) or not all(map(is_count, rounds)):
            return None
        found[row["agreement"]] = _OfferedAgreement(before, tuple(sorted(set(rounds))), row.get("signed"))
    return found if len(found) == len(rows) else None


def _first_agreement(agreement: str, follows: dict[str, str | None]) -> str | None:
    """The agreement that those before this one lead to; None where they lead nowhere, or round and round."""
    here, seen = agreement, set()
    while here not in seen and here in follows:
        seen.add(here)
        before = follows[here]
        if before is None:
            return here
        here = before
    return None


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body.decode())
    except (ValueError, RecursionError):  # ValueError: no UTF-8, no JSON, a number of thousands of digits
        raise CollectorError("not JSON") from None
    if not isinstance(said, dict):
        raise CollectorError("not an object")
    return said


def is_id(said: Any) -> TypeGuard[str]:
    """Whether that is the id of an agreement."""
    return isinstance(said, str) and _ID.fullmatch(said) is not None


def is_count(said: Any, least: int = 1) -> TypeGuard[int]:
    """Whether that is a whole number, and not too small or large to count something."""
    return isinstance(said, int) and not isinstance(said, bool) and least <= said <= 10**9
