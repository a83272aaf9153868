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
from discreet.agreement import MOST_LISTED, Agreement, ContinuousTerms, FamilyTerms
from discreet.client import _protocol as protocol
from discreet.client._protocol import Address, CollectionStatement, has_valid_signature, signature_from_json_or_none
from discreet.errors import POSITIVE, CollectorError, DiscreetError, Range, check_count

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
    all_headers = {
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Host": address.host_and_port,
        **(headers or {}),
    }
    try:
        connection = _open_connection(address, deadline)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"it cannot be reached: {error_reason(error)}") from None
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            connection.settimeout(_require_seconds_left(deadline))
            connection = address.tls.wrap_socket(connection, server_hostname=address.host)
        exchange = http.client.HTTPConnection(address.host, address.port)
        exchange.sock = _TimedSocket(connection, deadline)
        # a server that rejects a long body answers before its end
        with suppress(BrokenPipeError, ConnectionResetError):
            exchange.request(method, address.folder + path, body=body, headers=all_headers)
        answer = exchange.getresponse()
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
        connection.close()


def _open_connection(address: Address, deadline: float) -> socket.socket:
    """A connection to the first address of the host that takes one. All of them share one deadline, since a host may state thousands.

    Each but the last may take half of the time that is left, so that one that never answers leaves time for the others.
    """
    endpoints = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    problem = OSError("its host has no address")
    for index, (family, kind, number, _, endpoint) in enumerate(endpoints, start=1):
        seconds = _require_seconds_left(deadline) / (1 if index == len(endpoints) else 2)
        try:
            connection = socket.socket(family, kind, number)
        except OSError as error:  # a family that this system does not have
            problem = error
            continue
        try:
            connection.settimeout(seconds)
            connection.connect(endpoint)
        except OSError as error:
            connection.close()
            problem = error
        else:
            return connection
    raise problem


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


def _require_seconds_left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0.0:
        raise TimeoutError("timed out")
    return seconds


class _TimedSocket:
    """A socket for `http.client` with one deadline for all operations; its opener closes it."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._line, self._deadline = connection, deadline

    def sendall(self, data: bytes) -> None:
        self._line.settimeout(_require_seconds_left(self._deadline))
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
    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._line, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._line.settimeout(_require_seconds_left(self._deadline))
        return self._line.recv_into(buffer)


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

    def retry_until_answered(self, server: object, ask: Callable[[float], Answer]) -> Answer:
        """The first answer that is no reason to retry. `ask` is called with the seconds it may take."""
        start, pause, tries = time.monotonic(), _FIRST, 0
        while True:
            tries += 1
            requested_pause = None
            try:
                answer = ask(self.timeout)
            except NoAnswer as problem:
                reason = str(problem)
            else:
                if answer.status not in _AGAIN:
                    return answer
                reason, requested_pause = f"it answers {answer.status}", retry_seconds_from_headers(answer.headers)
            wait = _CHANCE.uniform(0.0, pause) + (requested_pause or 0.0)
            if time.monotonic() - start + wait > self.total:
                pause_text = "" if requested_pause is None else f", and asks to wait {requested_pause:.0f} s"
                raise CollectorError(
                    f"{server} does not take it: {reason}{pause_text} (asked {pluralise(tries, 'time')}, for up to "
                    f"{self.total:g} s: patience= (--patience)); try again later"
                )
            if self.notify is not None:
                self.notify(
                    f"{server} does not take it yet: {reason}; asking again in {math.ceil(wait)} s, for up to {self.total:g} s"
                )
            time.sleep(wait)
            pause = min(2.0 * pause, _LONGEST)


def retry_seconds_from_headers(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, as a number or a date; None if there is no readable value."""
    header = headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit():
        return float(header[:12])
    try:
        retry_time = parsedate_to_datetime(header)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if retry_time.tzinfo is None:
        retry_time = retry_time.replace(tzinfo=UTC)
    return max(0.0, (retry_time - datetime.now(UTC)).total_seconds())


_ID = re.compile("[0-9a-f]{64}")
_MOST_SAID = 1 << 20  # bytes of JSON
_MOST_AGREED = 1 << 26  # bytes of an agreement that lists its labels
_MOST_OUTCOMES = 10**7  # more would fill a device's memory
_MOST_CELLS, _MOST_REFINED_CELLS = 1 << 17, 1 << 12  # more would take a device's memory, or minutes
_MOST_DIMENSIONS, _MOST_COORDINATES = 10**5, 10**8  # and so would more of these
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SENTENCE = 300  # characters of a server's message to show
_ANOTHER_ADDRESS = (
    "A sample that is sent to another address is another one, which costs epsilon again, unless the collector had already signed for both "
    "addresses when the first one was sent"
)


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

    def choose_open_round(self, number: int | None) -> int:
        """The wanted round if it is open; by default the newest open one."""
        if self.closed is not None:
            raise CollectorError(
                f"collection {self.collection[:12]} was closed on {self.closed}: nothing was drawn or sent now, and nothing is counted any "
                "more"
            )
        if not self.rounds:
            raise CollectorError(f"no samples are taken now under agreement {self.agreement}; try again later")
        if number is None:
            return self.rounds[-1]
        number = check_count("round", number)
        if number not in self.rounds:
            open_rounds = ", ".join(map(str, self.rounds))
            raise CollectorError(
                f"round = {number} is not open: samples are taken in {open_rounds}; leave it out (--round). Another round "
                "than that of an earlier run is another release, which costs epsilon again"
            )
        return number


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
        document = self._parse_answer_object(
            self._get_successful_answer(protocol.COLLECTION, agreement, most=_MOST_SAID), protocol.COLLECTION
        )
        collection, newest_id, enrolment = (document.get(name) for name in ("collection", "agreement", "enrolment"))
        agreements = _offered_agreements_or_none(document.get("agreements"))
        closing_day, last_round = document.get("closed"), document.get("round", 1)
        if (
            not (closing_day is None or (isinstance(closing_day, str) and _DAY.fullmatch(closing_day)))
            or not is_valid_count(last_round)
            or not (is_agreement_id(collection) and is_agreement_id(newest_id) and isinstance(enrolment, bool))
            or agreements is None
            or newest_id not in agreements
        ):
            raise self._not_a_collector_error(protocol.COLLECTION)
        agreement_id = newest_id if agreement is None else agreement
        if agreement_id not in agreements:
            raise CollectorError(f"{self.address} does not collect under agreement {agreement_id}; check the address")
        follows = {identity: row.follows for identity, row in agreements.items()}
        if _first_id_of_agreement_chain(agreement_id, follows) != collection:
            raise self._not_a_collector_error(protocol.COLLECTION)
        statement = CollectionStatement(
            agreement=agreement_id, collection=collection, follows=follows[agreement_id], addresses=()
        )
        key = self._verified_signer(statement, agreements[agreement_id].signature)
        return Offer(
            collection, agreement_id, agreements[agreement_id].open, enrolment, follows, key, closing_day, last_round
        )

    def _verified_signer(self, statement: CollectionStatement, document: Any) -> str | None:
        """The key that signed the statement for this address; None without a signature."""
        if document is None:
            return None
        signature = signature_from_json_or_none(document)
        if signature is None or not has_valid_signature(replace(statement, addresses=signature.addresses), signature):
            raise CollectorError(
                f"{self.address} shows an invalid signature of agreement {statement.agreement}: nothing was sent. "
                f"Ask its operator"
            )
        if str(self.address) not in signature.addresses:
            raise CollectorError(
                f"agreement {statement.agreement} is signed for {', '.join(map(repr, signature.addresses))}, not for "
                f"{self.address}: it offers another collector's agreement, or has moved. Nothing was sent; use an "
                f"address that it is signed for. {_ANOTHER_ADDRESS}"
            )
        return signature.key

    def read_agreement(self, agreement_id: str) -> Agreement:
        """The agreement with this id. The id is a digest of its text, so its source does not matter."""
        answer = self._get_successful_answer(protocol.AGREEMENT, agreement_id, most=_MOST_AGREED)
        try:
            agreement = Agreement.from_json(answer.body.decode())
        except UnicodeDecodeError:
            raise self._not_a_collector_error(protocol.AGREEMENT) from None
        except DiscreetError as error:
            raise CollectorError(f"{self.address} offers an invalid agreement: {str(error)[:_SENTENCE]}") from None
        if agreement.id != agreement_id:
            raise CollectorError(f"{self.address} offers agreement {agreement_id} but sends {agreement.id}")
        terms = agreement.family
        if isinstance(terms, ContinuousTerms):
            self._refuse_costly_atoms(terms)
        if not isinstance(terms, FamilyTerms):
            return agreement
        if terms.size > _MOST_OUTCOMES:
            raise CollectorError(
                f"{self.address} offers an agreement on {terms.size:,} outcomes; no more than {_MOST_OUTCOMES:,} can be collected"
            )
        if not terms.lacks_weights or terms.size <= MOST_LISTED:
            return agreement
        weights = self._get_successful_answer(protocol.WEIGHTS, agreement_id, most=8 * terms.size)
        return replace(agreement, family=terms.with_weights(weights.body, f"{self.address}{protocol.WEIGHTS}"))

    def _refuse_costly_atoms(self, terms: ContinuousTerms) -> None:
        """Reject an agreement whose cells or points would take a device's memory, or minutes."""
        by, count = terms.atoms["by"], terms.atoms["count"]
        limits = [(terms.dim, _MOST_DIMENSIONS, "dimensions"), (count * terms.dim, _MOST_COORDINATES, "coordinates")]
        if by == "cells":
            limits.append((count, _MOST_CELLS, "cells"))
        if "masses" in terms.atoms:
            limits.append((count, _MOST_REFINED_CELLS, "cells with refined masses"))
        for size, most, what in limits:
            if size > most:
                raise CollectorError(
                    f"{self.address} offers an agreement on {count:,} {by} in {pluralise(terms.dim, 'dimension')}; no more than "
                    f"{most:,} {what} can be collected"
                )

    def refuse_own_mechanism_unless_pinned(self, agreement: Agreement, *, named: bool) -> None:
        """Reject an agreement on a mechanism of somebody's own, unless this side named it: a collector must not choose code that sees data.

        The answer depends on the agreement alone. The mechanism is safe whatever its parameters are, but the time that it takes is not.
        """
        if agreement.own is None or named:
            return
        mechanism = agreement.own
        raise CollectorError(
            f"{self.address} offers an agreement on the mechanism {mechanism.name!r} of {mechanism.package} "
            f"{mechanism.package_version}, code that sees what "
            f"clients hold. Nothing was drawn or sent; if you trust it, name the agreement: agreement={agreement.id} (--agreement)"
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
        document = self._parse_answer_object(
            self._require_successful_answer(answer, protocol.SAMPLES), protocol.SAMPLES
        )
        counted_samples, again, refused_positions = (
            document.get("counted"),
            document.get("again"),
            document.get("refused", []),
        )
        if not (
            is_valid_count(counted_samples, least=0)
            and is_valid_count(again, least=0)
            and isinstance(refused_positions, list)
        ):
            raise self._not_a_collector_error(protocol.SAMPLES)
        positions = tuple(
            position for position in refused_positions if is_valid_count(position, least=0) and position < samples
        )
        if len(set(positions)) != len(refused_positions) or counted_samples + again + len(positions) != samples:
            raise self._not_a_collector_error(protocol.SAMPLES)
        return RequestVerdict(counted_samples, again, positions)

    def _get_successful_answer(self, path: str, agreement: str | None, *, most: int) -> Answer:
        target = path if agreement is None else f"{path}?agreement={agreement}"
        answer = self.patience.retry_until_answered(
            self.address, lambda timeout: send_http_request(self.address, "GET", target, timeout=timeout, most=most)
        )
        return self._require_successful_answer(answer, path)

    def _require_successful_answer(self, answer: Answer, path: str) -> Answer:
        """The answer itself; an error unless its status is 200 and its body is not compressed."""
        if answer.status == 200:
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise self._not_a_collector_error(path)
            return answer
        if 300 <= answer.status < 400:
            location = answer.headers.get("location", "elsewhere")[:_SENTENCE]
            raise CollectorError(f"{self.address} redirects to {location!r}, which is not followed. {_ANOTHER_ADDRESS}")
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
            message = _require_json_object(answer.body).get("error")
        except CollectorError:
            return ""
        return f": {message[:_SENTENCE]!r}" if isinstance(message, str) else ""

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
    document = {"agreement": agreement, "round": round, "client": client, "key": key, "sample": sample}
    return json.dumps(document, allow_nan=False).encode() + b" " * max(0, longest - json_length_of_sample(sample))


def json_length_of_sample(sample: Any) -> int:
    """The number of bytes of a sample in a body."""
    return len(json.dumps(sample, allow_nan=False))  # ASCII: other characters are escaped


@dataclass(frozen=True)
class _OfferedAgreement:
    """An agreement as a collection describes it; `signature` is not checked yet."""

    follows: str | None
    open: tuple[int, ...]
    signature: Any


def _offered_agreements_or_none(rows: Any) -> dict[str, _OfferedAgreement] | None:
    """The agreements of a list; None if it is not such a list."""
    if not isinstance(rows, list):
        return None
    agreements = {}
    for row in rows:
        if not isinstance(row, dict) or not is_agreement_id(row.get("agreement")):
            return None
        predecessor, rounds = row.get("follows"), row.get("open")
        if (
            not (predecessor is None or is_agreement_id(predecessor))
            or not isinstance(rounds, list)
            or not all(map(is_valid_count, rounds))
        ):
            return None
        agreements[row["agreement"]] = _OfferedAgreement(predecessor, tuple(sorted(set(rounds))), row.get("signed"))
    return agreements if len(agreements) == len(rows) else None


def _first_id_of_agreement_chain(agreement: str, follows: dict[str, str | None]) -> str | None:
    """The first agreement in the chain before this one; None if the chain is broken or circular."""
    current, visited_ids = agreement, set()
    while current not in visited_ids and current in follows:
        visited_ids.add(current)
        predecessor = follows[current]
        if predecessor is None:
            return current
        current = predecessor
    return None


def _require_json_object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body.decode())
    except (ValueError, RecursionError):  # ValueError: no UTF-8, no JSON, a number of thousands of digits
        raise CollectorError("not JSON") from None
    if not isinstance(document, dict):
        raise CollectorError("not an object")
    return document


def is_agreement_id(candidate: Any) -> TypeGuard[str]:
    """Whether `candidate` is the id of an agreement."""
    return isinstance(candidate, str) and _ID.fullmatch(candidate) is not None


def is_valid_count(candidate: Any, least: int = 1) -> TypeGuard[int]:
    """Whether `candidate` is a whole number in the range of counts."""
    return isinstance(candidate, int) and not isinstance(candidate, bool) and least <= candidate <= 10**9
