"""`Collector`: requests to a collector, which is not trusted, and its answers, checked before they are used.

**Requests.** `send_http_request` asks once: an answer that is complete, in time and short enough, or an error that says why not. One
deadline covers everything, however slowly bytes arrive. It reads at most the given number of bytes, decompresses nothing and follows no
redirect. `NoAnswer` may be retried: it is not known whether the request arrived. `Patience` retries after a random pause in [0, 2^k), or
after the pause that the server requests, until its time is over. Random pauses keep a thousand devices that failed together from returning
together.

**Answers.** Ids must be digests of the documents, and lists must be lists of a possible length. A person's protection does not depend on
these checks. A server can choose only which agreement it offers, and the agreement states what a sample reveals. A device with a pinned
agreement or a spent budget releases nothing, whatever the server answers. A signature is accepted only for this agreement, in this
collection, at the address that was connected to. Anything else shown as a signature is an error.
"""

import http.client
import io
import json
import math
import random
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeGuard

from discreet._base.files import error_reason
from discreet._base.showing import pluralise
from discreet.agreement import MOST_LISTED, Agreement, FamilyTerms
from discreet.client import _protocol as protocol
from discreet.client._protocol import Address, CollectionStatement, has_valid_signature, signature_from_json_or_none
from discreet.errors import POSITIVE, CollectorError, DiscreetError, Range

_PART = 1 << 16


class NoAnswer(Exception):
    """There was no complete answer."""


@dataclass(frozen=True)
class Answer:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send_http_request(
    address: Address,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float,
    most: int,
) -> Answer:
    """The answer to one request.

    Args:
        address: of the server.
        method: GET or POST.
        path: after the address's own folder.
        body: of the request.
        headers: in addition to those that are always sent.
        timeout: seconds until the answer must be complete.
        most: the largest number of bytes of the answer's body.

    Returns:
        The answer.

    Raises:
        NoAnswer: if no complete answer arrives in time.
        CollectorError: for a server whose certificate is invalid, and for an answer that is too long.
    """
    deadline = time.monotonic() + timeout
    sent = {"Accept-Encoding": "identity", "Connection": "close", "Host": address.host_and_port, **(headers or {})}
    try:
        line = socket.create_connection((address.host, address.port), timeout=timeout)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"it cannot be reached: {error_reason(error)}") from None
    try:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            line.settimeout(_seconds_left(deadline))
            line = address.tls.wrap_socket(line, server_hostname=address.host)
        talk = http.client.HTTPConnection(address.host, address.port)
        talk.sock = _TimedSocket(line, deadline)
        # a server that rejects a long body answers before its end
        with suppress(BrokenPipeError, ConnectionResetError):
            talk.request(method, address.folder + path, body=body, headers=sent)
        answer = talk.getresponse()
        content = _read_answer_body(answer, most, address)
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)
    except ssl.SSLCertVerificationError as error:
        raise CollectorError(f"{address} has no valid certificate: {error.verify_message}") from None
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":  # OpenSSL's error for an answer in plain text
            raise CollectorError(
                f"{address} does not use TLS; on this machine use http://, elsewhere put a TLS proxy in front of it"
            ) from None
        raise NoAnswer(f"TLS failed: {error_reason(error)}") from None
    except TimeoutError:
        raise NoAnswer(f"no whole answer came within {timeout:g} s") from None
    except OSError as error:
        raise NoAnswer(f"the connection broke: {error_reason(error)}") from None
    except http.client.HTTPException as error:
        raise NoAnswer(f"its answer was cut short, or is not HTTP: {type(error).__name__}") from None
    finally:
        line.close()


def _read_answer_body(answer: http.client.HTTPResponse, most: int, address: Address) -> bytes:
    parts, length = [], 0
    while part := answer.read(min(_PART, most + 1 - length)):
        parts.append(part)
        length += len(part)
        if length > most:
            raise CollectorError(f"{address} answers with more than {most:,} bytes, more than any valid answer has")
    if answer.length:  # missing bytes of a body whose length was stated
        raise NoAnswer(f"its answer was cut short, {answer.length:,} bytes before its end")
    return b"".join(parts)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise TimeoutError
    return left


class _TimedSocket:
    """A socket for `http.client` with one deadline for all operations; its opener closes it."""

    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line, self._deadline = line, deadline

    def sendall(self, data: bytes) -> None:
        self._line.settimeout(_seconds_left(self._deadline))
        self._line.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return _BoundedReader(_TimedReader(self._line, self._deadline))

    def close(self) -> None:
        """Do nothing: `http.client` closes it after the headers and continues to read."""


class _BoundedReader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:  # `http.client` asks for it where a chunk states a negative length
            raise http.client.HTTPException("a read without a bound")
        return super().read(size)


class _TimedReader(io.RawIOBase):
    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line, self._deadline = line, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self._line.settimeout(_seconds_left(self._deadline))
        return self._line.recv_into(into)


_AGAIN = {408, 425, 429, 502, 503, 504}  # the server or a proxy is busy or restarting; the request itself is fine
_FIRST, _LONGEST = 0.25, 30.0  # seconds
_CHANCE = random.SystemRandom()  # not shared by forked processes
_PATIENCE = Range(0.0, 1e9)


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for one answer, and for all attempts together with their pauses.

    `notify` is called with a sentence before each pause.
    """

    timeout: float
    total: float
    notify: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        POSITIVE.check("timeout", self.timeout, "seconds to wait for an answer")
        _PATIENCE.check("patience", self.total, "seconds to keep trying, 0 to try once")

    def retry_until_answered(self, who: object, ask: Callable[[float], Answer]) -> Answer:
        """The first answer that is no reason to retry. `ask` is called with the seconds it may take."""
        started, pause, tries = time.monotonic(), _FIRST, 0
        while True:
            tries += 1
            said = None
            try:
                answer = ask(self.timeout)
            except NoAnswer as problem:
                why = str(problem)
            else:
                if answer.status not in _AGAIN:
                    return answer
                why, said = f"it answers {answer.status}", retry_seconds_from_headers(answer.headers)
            wait = _CHANCE.uniform(0.0, pause) + (said or 0.0)
            if time.monotonic() - started + wait > self.total:
                later = "" if said is None else f", and asks to wait {said:.0f} s"
                raise CollectorError(
                    f"{who} does not take it: {why}{later} (asked {pluralise(tries, 'time')}, for up to {self.total:g} s: patience= "
                    "(--patience)); try again later"
                )
            if self.notify is not None:
                self.notify(
                    f"{who} does not take it yet: {why}; asking again in {math.ceil(wait)} s, for up to {self.total:g} s"
                )
            time.sleep(wait)
            pause = min(2.0 * pause, _LONGEST)


def retry_seconds_from_headers(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, as a number or a date; None if there is no readable value."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:12])
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


_ID = re.compile("[0-9a-f]{64}")
_MOST_SAID = 1 << 20  # bytes of JSON
_MOST_AGREED = 1 << 26  # bytes of an agreement that lists its labels
_MOST_OUTCOMES = 10**7  # more would fill a device's memory
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SENTENCE = 300  # characters of a server's message to show


@dataclass(frozen=True)
class Offer:
    """A collection as its service describes it. `follows`: for each agreement the one it follows, None for the first.

    `agreement`: the requested one, or the newest. `rounds`: its open rounds. `key`: the key that signed it for this address; None if it
    is not signed. `closed`: the day on which the collection was closed; `last`: its round then.
    """

    collection: str
    agreement: str
    rounds: tuple[int, ...]
    enrolment: bool
    follows: dict[str, str | None]
    key: str | None = None
    closed: str | None = None
    last: int = 1

    def choose_open_round(self, wanted: int | None) -> int:
        """The wanted round if it is open; by default the newest open one."""
        if self.closed is not None:
            raise CollectorError(
                f"collection {self.collection[:12]} was closed on {self.closed}: nothing was drawn or sent now, and nothing is counted any "
                "more"
            )
        if not self.rounds:
            raise CollectorError(f"no samples are taken now under agreement {self.agreement}; try again later")
        if wanted is not None and wanted not in self.rounds:
            told = ", ".join(map(str, self.rounds))
            raise CollectorError(
                f"round = {wanted} is not open: samples are taken in {told}; leave it out (--round). Another round than that of an earlier "
                "run is another release, which costs epsilon again"
            )
        return self.rounds[-1] if wanted is None else wanted


@dataclass(frozen=True)
class RequestVerdict:
    """What became of the samples of one request."""

    counted: int
    again: int
    refused: tuple[int, ...]


@dataclass(frozen=True)
class Collector:
    """A service, and the patience with it. `token`: of a gateway."""

    address: Address
    patience: Patience
    token: str | None = None

    def read_offer(self, agreement: str | None) -> Offer:
        """The collection of an agreement; by default of the newest."""
        said = self._parse_answer_object(
            self._get_successful_answer(protocol.COLLECTION, agreement, most=_MOST_SAID), protocol.COLLECTION
        )
        collection, newest, enrolment = (said.get(name) for name in ("collection", "agreement", "enrolment"))
        listed = _offered_agreements_or_none(said.get("agreements"))
        closed, last = said.get("closed"), said.get("round", 1)
        if (
            not (closed is None or (isinstance(closed, str) and _DAY.fullmatch(closed)))
            or not is_valid_count(last)
            or not (is_agreement_id(collection) and is_agreement_id(newest) and isinstance(enrolment, bool))
            or listed is None
            or newest not in listed
        ):
            raise self._not_a_collector_error(protocol.COLLECTION)
        wanted = newest if agreement is None else agreement
        if wanted not in listed:
            raise CollectorError(f"{self.address} does not collect under agreement {wanted}; check the address")
        follows = {each: row.follows for each, row in listed.items()}
        if _first_id_of_agreement_chain(wanted, follows) != collection:
            raise self._not_a_collector_error(protocol.COLLECTION)
        statement = CollectionStatement(agreement=wanted, collection=collection, follows=follows[wanted], addresses=())
        key = self._verified_signer(statement, listed[wanted].signed)
        return Offer(collection, wanted, listed[wanted].open, enrolment, follows, key, closed, last)

    def _verified_signer(self, statement: CollectionStatement, shown: Any) -> str | None:
        """The key that signed the statement for this address; None without a signature."""
        if shown is None:
            return None
        signed = signature_from_json_or_none(shown)
        if signed is None or not has_valid_signature(replace(statement, addresses=signed.addresses), signed):
            raise CollectorError(
                f"{self.address} shows an invalid signature of agreement {statement.agreement}: nothing was sent. "
                f"Ask its operator"
            )
        if str(self.address) not in signed.addresses:
            raise CollectorError(
                f"agreement {statement.agreement} is signed for {', '.join(map(repr, signed.addresses))}, not for "
                f"{self.address}: it offers another collector's agreement, or has moved. Nothing was sent; use an "
                f"address that it is signed for"
            )
        return signed.key

    def read_agreement(self, wanted: str) -> Agreement:
        """The agreement with this id. The id is a digest of its text, so its source does not matter."""
        answer = self._get_successful_answer(protocol.AGREEMENT, wanted, most=_MOST_AGREED)
        try:
            found = Agreement.from_json(answer.body.decode())
        except UnicodeDecodeError:
            raise self._not_a_collector_error(protocol.AGREEMENT) from None
        except DiscreetError as error:
            raise CollectorError(f"{self.address} offers an invalid agreement: {str(error)[:_SENTENCE]}") from None
        if found.id != wanted:
            raise CollectorError(f"{self.address} offers agreement {wanted} but sends {found.id}")
        terms = found.family
        if not isinstance(terms, FamilyTerms):
            return found
        if terms.size > _MOST_OUTCOMES:
            raise CollectorError(
                f"{self.address} offers an agreement on {terms.size:,} outcomes; no more than {_MOST_OUTCOMES:,} can be collected"
            )
        if not terms.lacks_weights or terms.size <= MOST_LISTED:
            return found
        weights = self._get_successful_answer(protocol.WEIGHTS, wanted, most=8 * terms.size)
        return replace(found, family=terms.with_weights(weights.body, f"{self.address}{protocol.WEIGHTS}"))

    def refuse_unnamed_own_mechanism(self, agreed: Agreement, *, named: bool) -> None:
        """Reject an agreement on a mechanism of somebody's own, unless this side named it: a collector must not choose code that sees data.

        The answer depends on the agreement alone. The mechanism is safe whatever its parameters are, but the time that it takes is not.
        """
        if agreed.own is None or named:
            return
        own = agreed.own
        raise CollectorError(
            f"{self.address} offers an agreement on the mechanism {own.name!r} of {own.package} {own.package_version}, code that sees what "
            f"clients hold. Nothing was drawn or sent; if you trust it, name the agreement: agreement={agreed.id} (--agreement)"
        )

    def send_samples(self, body: bytes, kind: str, samples: int) -> RequestVerdict:
        """Send samples, as often as it takes, and return what became of them."""
        headers = {"Content-Type": kind}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        answer = self.patience.retry_until_answered(
            self.address,
            lambda timeout: send_http_request(
                self.address, "POST", protocol.SAMPLES, body=body, headers=headers, timeout=timeout, most=_MOST_SAID
            ),
        )
        if answer.status == 409 and samples == 1:
            return RequestVerdict(0, 0, (0,))
        said = self._parse_answer_object(self._require_successful_answer(answer, protocol.SAMPLES), protocol.SAMPLES)
        counted, again, refused = said.get("counted"), said.get("again"), said.get("refused", [])
        if not (is_valid_count(counted, least=0) and is_valid_count(again, least=0) and isinstance(refused, list)):
            raise self._not_a_collector_error(protocol.SAMPLES)
        places = tuple(place for place in refused if is_valid_count(place, least=0) and place < samples)
        if len(set(places)) != len(refused) or counted + again + len(places) != samples:
            raise self._not_a_collector_error(protocol.SAMPLES)
        return RequestVerdict(counted, again, places)

    def _get_successful_answer(self, path: str, agreement: str | None, *, most: int) -> Answer:
        where = path if agreement is None else f"{path}?agreement={agreement}"
        answer = self.patience.retry_until_answered(
            self.address, lambda timeout: send_http_request(self.address, "GET", where, timeout=timeout, most=most)
        )
        return self._require_successful_answer(answer, path)

    def _require_successful_answer(self, answer: Answer, path: str) -> Answer:
        """The answer itself; an error unless its status is 200 and its body is not compressed."""
        if answer.status == 200:
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise self._not_a_collector_error(path)
            return answer
        if 300 <= answer.status < 400:
            there = answer.headers.get("location", "elsewhere")[:_SENTENCE]
            raise CollectorError(
                f"{self.address} redirects to {there!r}, which is not followed. A sample that is sent to another address is another one, "
                "which costs epsilon again, unless the collector had already signed for both addresses when the first one was sent"
            )
        if answer.status == 410:
            raise CollectorError(f"{self.address} has closed the collection: nothing was counted")
        if answer.status in (401, 403):
            raise CollectorError(
                f"{self.address} takes samples only from enrolled clients{self._error_message_of_server(answer)}"
            )
        raise CollectorError(
            f"{self.address}{path} answers {answer.status}{self._error_message_of_server(answer)}; check the address and what is sent"
        )

    def _error_message_of_server(self, answer: Answer) -> str:
        """The server's own message."""
        try:
            said = _require_json_object(answer.body).get("error")
        except CollectorError:
            return ""
        return f": {said[:_SENTENCE]!r}" if isinstance(said, str) else ""

    def _parse_answer_object(self, answer: Answer, path: str) -> dict[str, Any]:
        try:
            return _require_json_object(answer.body)
        except CollectorError:
            raise self._not_a_collector_error(path) from None

    def _not_a_collector_error(self, path: str) -> CollectorError:
        return CollectorError(f"{self.address}{path} does not answer as a collector does; check the address")


def sample_request_body(agreement: str, round: int, client: str, sample: Any, longest: int) -> bytes:
    """The body that sends one sample, padded with spaces to the length of the longest sample, so that its length reveals nothing."""
    key = protocol.sample_idempotency_key(client, agreement, round)
    said = {"agreement": agreement, "round": round, "client": client, "key": key, "sample": sample}
    return json.dumps(said, allow_nan=False).encode() + b" " * max(0, longest - json_length_of_sample(sample))


def json_length_of_sample(sample: Any) -> int:
    """The number of bytes of a sample in a body."""
    return len(json.dumps(sample, allow_nan=False))  # ASCII: other characters are escaped


@dataclass(frozen=True)
class _OfferedAgreement:
    """An agreement as a collection describes it; `signed` is not checked yet."""

    follows: str | None
    open: tuple[int, ...]
    signed: Any


def _offered_agreements_or_none(rows: Any) -> dict[str, _OfferedAgreement] | None:
    """The agreements of a list; None if it is not such a list."""
    if not isinstance(rows, list):
        return None
    found = {}
    for row in rows:
        if not isinstance(row, dict) or not is_agreement_id(row.get("agreement")):
            return None
        before, rounds = row.get("follows"), row.get("open")
        if (
            not (before is None or is_agreement_id(before))
            or not isinstance(rounds, list)
            or not all(map(is_valid_count, rounds))
        ):
            return None
        found[row["agreement"]] = _OfferedAgreement(before, tuple(sorted(set(rounds))), row.get("signed"))
    return found if len(found) == len(rows) else None


def _first_id_of_agreement_chain(agreement: str, follows: dict[str, str | None]) -> str | None:
    """The first agreement in the chain before this one; None if the chain is broken or circular."""
    here, seen = agreement, set()
    while here not in seen and here in follows:
        seen.add(here)
        before = follows[here]
        if before is None:
            return here
        here = before
    return None


def _require_json_object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body.decode())
    except (ValueError, RecursionError):  # ValueError: no UTF-8, no JSON, a number of thousands of digits
        raise CollectorError("not JSON") from None
    if not isinstance(said, dict):
        raise CollectorError("not an object")
    return said


def is_agreement_id(said: Any) -> TypeGuard[str]:
    """Whether `said` is the id of an agreement."""
    return isinstance(said, str) and _ID.fullmatch(said) is not None


def is_valid_count(said: Any, least: int = 1) -> TypeGuard[int]:
    """Whether `said` is a whole number in the range of counts."""
    return isinstance(said, int) and not isinstance(said, bool) and least <= said <= 10**9
