"""`Client`: a device that sends one sample in each round of a collection, and repeats the same sample after any failure.

    check the data  |  ask for the collection  |  does the ledger have a sample for this collector in this round? -> that one again
      |  else: is the agreement the expected one? -> draw, then under one lock: look again, charge, durable
      |  send until it is answered, in a body whose length does not depend on the sample

A sample leaves once it is in the ledger, exactly as stored there. A crash, a lost answer or a second process at any step therefore leads to
the same sample, under the same name and key, which the collector counts once. Agreements that follow one another are one collection: a
client with a sample under the first sends it again under the second, and spends nothing.

The collector is not trusted. What it can see (whether and when a sample comes, the length of the body) depends on the data only through the
sample. Errors about the data come before it is contacted; afterwards every input has a distribution (`discreet.client._device_data`). What it
states about the past is ignored: the ledger knows which samples this collector has, and samples for another one never go to it
(`discreet.ledger._client_ledger`).

The client's name is a keyed digest of the collection's id and the collector's address, under a secret that stays on the device. Names
therefore link neither two collections, nor two collectors that use one id.

**Identity.** `read_or_create_identity` gives the device's own secret, created once, from which its name in each collection is derived.
Identity and ledger belong together: the ledger notes a digest of the identity when the two first meet. A device that finds one without the
other raises an error and never starts anew by itself. Otherwise, deleting a ledger would make the device release fresh samples again and
again.

    neither there            the secret is written under a temporary name, its digest is noted in the ledger, then the file gets its name
    interrupted in between   the secret under the temporary name is the one in the ledger, and is used
    identity without ledger  an error (`discreet.ledger`)
    ledger without identity  an error, once the ledger has noted one
"""

import hashlib
import hmac
import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet._base.files import NEW_FILE, error_reason, read_private_file, sync_folder
from discreet._base.labelled import LawLike
from discreet.agreement import Agreement
from discreet.client import _collector as collector, _protocol as protocol
from discreet.client._collector import Collector, Offer, Patience
from discreet.client._device_data import AnySampler, DeviceData, DeviceDraw
from discreet.client._protocol import parse_address
from discreet.domain import CellDomain, Numbers
from discreet.errors import CollectorError, DiscreetError, LedgerError, check_count, check_path
from discreet.families import ContinuousFamily
from discreet.ledger import (
    IDENTITY,
    PASSING,
    Budget,
    Destination,
    Entry,
    Ledger,
    client_ledger_exists,
    refuse_new_ledger_of_used_identity,
)
from discreet.mechanisms import AnyFamily, OptimalSampler, ReportSampler
from discreet.release import fresh_secret, parse_secret, secret_file_content
from discreet.survey import SurveySampler

_LARGEST_FILE = 1024


def read_or_create_identity(path: str | Path, ledger: Ledger) -> bytes:
    """The secret of a device, in a file that only its owner may read (0600); created with the ledger's first use.

    Args:
        path: of the file.
        ledger: the device's ledger.

    Returns:
        The secret.

    Raises:
        LedgerError: if the two do not belong together, or one of them is lost.
        DiscreetError: for a file that is a link, belongs to another user or is readable by others.
    """
    identity_path, temporary_path = Path(path), Path(f"{path}{PASSING}")
    with ledger.locked_identity_binding() as binding:
        if os.path.lexists(identity_path):
            secret = _read_identity_secret(identity_path)
            if binding.identity is None and not binding.used:
                raise LedgerError(
                    f"ledger {ledger.path} has met no identity, but identity {identity_path} is there: this device has spent "
                    "from another ledger. "
                    f"Restore that one. To start anew on purpose remove {identity_path}: collectors will then count this "
                    "device as another one"
                )
        elif binding.identity is None:
            secret = _create_secret_under_temporary_name(temporary_path)
        else:
            secret = _find_secret_that_ledger_names(identity_path, temporary_path, binding.identity, ledger)
        if binding.identity is None:
            binding.bind_identity(_identity_digest(secret))
        elif binding.identity != _identity_digest(secret):
            raise LedgerError(
                f"identity {identity_path} does not belong to ledger {ledger.path}, which was used with another one; give "
                "the two that belong together"
            )
    if not os.path.lexists(identity_path):
        try:
            os.rename(temporary_path, identity_path)
        except FileNotFoundError:  # another process of this device has renamed it
            pass
        except OSError as error:  # the next use finds the secret under its temporary name
            raise _cannot_be_made_error(identity_path, error) from None
        sync_folder(identity_path.parent)
    return secret


def _find_secret_that_ledger_names(identity_path: Path, temporary_path: Path, identity: str, ledger: Ledger) -> bytes:
    """The secret in the ledger's note, of a device that was interrupted before its file had its name, or is about to rename it."""
    for path in (temporary_path, identity_path):  # in the order of the renaming
        if os.path.lexists(path):
            with suppress(FileNotFoundError):
                secret = _read_identity_secret(path)
                if _identity_digest(secret) == identity:
                    return secret
    raise LedgerError(
        f"identity {identity_path} is missing, and ledger {ledger.path} belongs to it: without it this device would be "
        f"somebody else to every collector, and would be counted twice. Restore {identity_path} from a copy"
    )


def _create_secret_under_temporary_name(path: Path) -> bytes:
    """Write a fresh secret durably under the temporary name, in place of an incomplete one."""
    secret = fresh_secret().value
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        handle = os.open(path, os.O_WRONLY | NEW_FILE, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o600)  # regardless of the umask
            file.write(secret_file_content(secret))
            file.flush()
            os.fsync(handle)
    except (OSError, ValueError) as error:
        raise _cannot_be_made_error(path, error) from None
    sync_folder(path.parent)
    return secret


def _cannot_be_made_error(path: Path, error: Exception) -> LedgerError:
    return LedgerError(
        f"identity {path} cannot be made: {error_reason(error)}; check that its folder is writable, and try again"
    )


def _read_identity_secret(path: Path) -> bytes:
    fix = "give the path of the device's own file, or restore it from a copy: identity="
    content = read_private_file(path, what="identity", most=_LARGEST_FILE, fix=fix, own=True)
    try:
        return parse_secret(content, path)
    except DiscreetError:
        raise LedgerError(f"identity {path} is damaged or not an identity; restore it from a copy") from None


def _identity_digest(secret: bytes) -> str:
    return hmac.new(secret, b"discreet identity of a ledger", hashlib.sha256).hexdigest()[:32]


NO_KEY = "none"
_POINT = 32  # largest number of bytes of a coordinate in JSON


@dataclass(frozen=True)
class Receipt:
    """The acknowledgement of a sample that is on the collection's disk.

    `outside` and `problem` are for the device alone, and about a sample that was drawn now. The collector cannot tell them.

    Attributes:
        counted: whether the sample was new; otherwise it had been sent before, and was not counted again.
        collection: the id of the collection.
        agreement: the id of the agreement that the sample was released under.
        round: in which round.
        sample: what was sent; under an agreement on reports or a survey, the digits of the report.
        outside: the share of the device's data that is outside the agreement's domain.
        problem: one sentence on what became of that share; empty where there is none.
    """

    counted: bool
    collection: str
    agreement: str
    round: int
    sample: Any
    outside: float = 0.0
    problem: str = ""


class Client:
    """A device, or one person's program, in the collections of one service.

    Args:
        url: the collector's address: https://, or http:// on this machine.
        ledger: the client's budget and charges: a `Ledger`, or the path of its file.
        budget: epsilon of a ledger that is created if missing. No agreement can make the client spend more.
        agreement: the only one to accept: an `Agreement`, its id, or the path of its file. By default the first one that the service
            offers, within the budget.
        identity: the path of the file with the secret that names are derived from, created with the ledger; by default LEDGER.identity.
            The two belong together: one without the other is an error.
        token: for a collection with enrolment, where it is the client's name.
        key: the public key of the collector, 64 hexadecimal digits; an agreement without its signature is an error. "none" accepts a
            collector that no longer signs. By default the collector's last key is remembered, and another one is an error.
        family: the family, if the agreement contains only a digest of it.
        timeout: seconds to wait for an answer.
        patience: seconds to keep trying.
        plain_http: whether to allow unencrypted http to other machines.
        tls: the trusted authorities, as an `ssl.SSLContext`; by default the system's.

    Raises:
        DiscreetError: for an invalid address, agreement or token.
        LedgerError: for a ledger that cannot be read.
    """

    def __init__(
        self,
        url: str,
        *,
        ledger: Ledger | str | Path,
        budget: float | None = None,
        agreement: Agreement | str | Path | None = None,
        identity: str | Path | None = None,
        token: str | None = None,
        key: str | None = None,
        family: AnyFamily | None = None,
        timeout: float = 10.0,
        patience: float = 60.0,
        plain_http: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._collector = Collector(
            parse_address(url, plain_http=plain_http, tls=tls), Patience(timeout=timeout, total=patience)
        )
        if identity is not None:
            check_path("identity", identity)
        agreement_or_id = pinned_agreement_or_id(agreement)
        self._pinned = agreement_or_id.id if isinstance(agreement_or_id, Agreement) else agreement_or_id
        self._token = require_sendable_token(token)
        self._key = require_public_key_or_no_key(key)
        self._family = family
        self.ledger = _ledger_from_argument(ledger, budget, identity)
        self._secret = read_or_create_identity(
            f"{self.ledger.path}{IDENTITY}" if identity is None else identity, self.ledger
        )
        self._read = {agreement_or_id.id: agreement_or_id} if isinstance(agreement_or_id, Agreement) else {}
        self._lengths: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Client of {self._collector.address} with {self.ledger.path}>"

    @cached_property
    def agreement(self) -> Agreement:
        """The agreement that a sample is sent under; read it first. If the service offers another one later, nothing is sent."""
        return self._read_agreement_once(self._pinned or self._collector.read_offer(None).agreement)

    def send(
        self,
        p: LawLike | Any = None,
        *,
        records: Any = None,
        counts: LawLike | None = None,
        rows: Any = None,
        round: int | None = None,
    ) -> Receipt:
        """Release one sample, charged to the ledger, and send it until it is acknowledged.

        A repeated call for the same round sends the same sample. Another round is another sample, which costs epsilon again: after an error
        pass the round that it names.

        Args:
            p: the client's distribution, as `sampler.release` takes it.
            records: or its records: labels, outcome numbers or points.
            counts: or the number of its records of each outcome.
            rows: or, for a survey, its rows: dicts of columns and values, or a table of them.
            round: the round; by default the open one.

        Returns:
            The collection's acknowledgement.

        Raises:
            CollectorError: if the collector cannot be reached or gives an invalid answer; a sample drawn by then is in the ledger.
            BudgetError: if the ledger does not allow it. Nothing was sent.
            DiscreetError: for an invalid distribution, before anything is asked, charged or sent. (Data outside the agreement's domain
                are no error, since the collector would see that no sample comes. `Receipt.problem` describes them.)
        """
        data = DeviceData.from_arguments(p, records, counts, rows)
        if round is not None:
            round = check_count("round", round)
        offer = self._collector.read_offer(self._pinned)
        to = self._destination_of_offer(offer)
        # what was sent before may be sent again, and is acknowledged
        last_round = offer.last if offer.closed is not None else None
        number = round or last_round or offer.choose_open_round(None)
        try:
            return self._send_sample_of_round(data, offer, to, number, asked=round)
        except KeyboardInterrupt:  # wherever it comes: without its round, the next call could pay for another
            raise KeyboardInterrupt(
                f"interrupted: send again with round={number}; if its sample is paid for in {self.ledger.path}, the same one is sent, and "
                "nothing is spent. Another round costs epsilon again"
            ) from None

    def _send_sample_of_round(
        self, data: DeviceData, offer: Offer, to: Destination, number: int, *, asked: int | None
    ) -> Receipt:
        """The sample in the ledger for this round, or a new one, sent until it is acknowledged. `asked`: the round that the caller named."""
        entry, device_draw = self.ledger.answer_to(to, number), None
        if entry is None:
            agreement = self._agreement_for_offer(offer)
            agreement.check_round(offer.choose_open_round(asked))
            self._client_name_or_token(offer, to)
            sampler = agreement.sampler(self._family)
            device_draw = data.prepare_draw(sampler, agreement)
            entry = self.ledger.release_to(to, sampler, device_draw.draw, agreement=agreement, round=number)
        destination = to if entry.to is None else entry.to
        try:
            agreement = self._read_agreement_once(entry.agreement)
            sampler = _sampler_that_formats_samples(agreement, self._family)
            sample = entry_sample_as_json_value(entry, sampler)
            body = collector.sample_request_body(
                agreement.id,
                number,
                self._client_name_or_token(offer, destination),
                sample,
                self._longest_sample_length(agreement.id, sampler),
            )
            verdict = self._collector.send_samples(body, protocol.JSON, 1)
        except CollectorError as error:
            raise CollectorError(
                f"{error} (the sample of round {number} is drawn and paid for in {self.ledger.path}: sending again with round={number} "
                f"(--round {number}) sends the same, and spends nothing; another round costs epsilon again)"
            ) from None
        if verdict.refused:
            raise CollectorError(
                f"this client has a sample in round {number} of collection {offer.collection[:12]} already, another "
                f"one than in {self.ledger.path}; nothing was counted: use the ledger and the identity that sent it"
            )
        draw = device_draw or DeviceDraw(lambda: 0)
        return Receipt(
            bool(verdict.counted), destination.collection, agreement.id, number, sample, draw.outside, draw.problem
        )

    def _destination_of_offer(self, offer: Offer) -> Destination:
        """This collector's collection; an error if it is not signed by the given key."""
        if self._key is not None and (offer.key or NO_KEY) != self._key:
            signing = "is not signed" if offer.key is None else f"is signed with key {offer.key}"
            raise CollectorError(
                f"{self._collector.address} is to sign with key {self._key}, and agreement {offer.agreement} {signing}: nothing was sent"
            )
        return Destination(
            str(self._collector.address),
            offer.key,
            offer.collection,
            frozenset(offer.follows),
            trusted=self._key is not None,
        )

    def _longest_sample_length(self, agreement: str, sampler: AnySampler) -> int:
        """The bytes of the longest sample that there can be under an agreement."""
        if agreement not in self._lengths:
            self._lengths[agreement] = longest_sample_length(sampler)
        return self._lengths[agreement]

    def _agreement_for_offer(self, offer: Offer) -> Agreement:
        """The agreement to release under: the pinned one, or the first offered one."""
        if "agreement" not in self.__dict__:
            self.__dict__["agreement"] = self._read_agreement_once(offer.agreement)
        agreement = self.agreement
        if self._pinned is None and offer.agreement != agreement.id:
            raise CollectorError(
                f"{self._collector.address} offered agreement {agreement.id}, and now {offer.agreement}: nothing was released. Read the new "
                "one, and make a new Client for it. What was sent before stays spent, and a sample under the new one costs epsilon again"
            )
        self._collector.refuse_own_mechanism_unless_pinned(agreement, named=self._pinned is not None)
        return agreement

    def _read_agreement_once(self, agreement_id: str) -> Agreement:
        if agreement_id not in self._read:
            self._read[agreement_id] = self._collector.read_agreement(agreement_id)
        return self._read[agreement_id]

    def _client_name_or_token(self, offer: Offer, to: Destination) -> str:
        if not offer.enrolment:
            return protocol.client_name_in_collection(to.collection, self._secret, address=to.address)
        if self._token is None:
            raise CollectorError(
                f"{self._collector.address} takes samples only from enrolled clients; give the token that you "
                f"received: token="
            )
        return self._token


def _sampler_that_formats_samples(agreement: Agreement, family: AnyFamily | None) -> AnySampler:
    """What says how a charged sample is written: on outcomes the family alone, so that a mechanism of somebody's own is not needed again."""
    if agreement.own is None:
        sampler: AnySampler = agreement.sampler(family)
        return sampler
    return OptimalSampler(agreement.family.family() if family is None else family, epsilon=agreement.epsilon)


def entry_sample_as_json_value(entry: Entry, sampler: AnySampler) -> Any:
    """The released sample of an entry as JSON holds it; of a report its digits, since many readers of JSON round numbers past 2^53."""
    sample = entry.as_released(sampler)
    return str(sample) if isinstance(sampler, (ReportSampler, SurveySampler)) else sample_as_json_value(sample)


def sample_as_json_value(sample: Any) -> Any:
    """A sample as a JSON value."""
    if isinstance(sample, np.ndarray):
        return sample.tolist()
    return sample.item() if isinstance(sample, np.generic) else sample


def longest_sample_length(sampler: AnySampler) -> int:
    """The bytes that the longest of a sampler's samples or reports takes in a body."""
    if isinstance(sampler, ReportSampler):
        return collector.json_length_of_sample(str(sampler.blocks.largest_report))
    if isinstance(sampler, SurveySampler):
        return collector.json_length_of_sample(str(sampler.largest))
    family = sampler.family
    if isinstance(family, ContinuousFamily):
        return (_POINT + 2) * family.dim
    if isinstance(family.domain, CellDomain):
        return _POINT
    if isinstance(family.domain, Numbers):
        return collector.json_length_of_sample(family.domain.size - 1)
    return max(map(collector.json_length_of_sample, family.domain.names))


def require_public_key_or_no_key(key: Any) -> str | None:
    """The public key of a collector, or the word for one that signs nothing."""
    if key is None or (isinstance(key, str) and (key == NO_KEY or protocol.is_public_key(key))):
        return key
    raise DiscreetError(
        f"key = {key!r} is not the public key of a collector, 64 hexadecimal digits, nor {NO_KEY!r} for one that signs nothing"
    )


def require_sendable_token(token: Any) -> str | None:
    """A token that can be sent; the error does not show it."""
    if token is None:
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token or not token:
        raise DiscreetError("token is not a text without spaces; give it as you received it")
    if len(token) > protocol.MOST_NAME:
        raise DiscreetError(f"token has more than {protocol.MOST_NAME} characters; give it as you received it")
    return token


def pinned_agreement_or_id(agreement: Agreement | str | Path | None) -> Agreement | str | None:
    """The only agreement to accept, or its id if that is given."""
    if agreement is None or (isinstance(agreement, str) and collector.is_agreement_id(agreement)):
        return agreement
    if not isinstance(agreement, (Agreement, str, os.PathLike)):
        raise DiscreetError(f"agreement = {agreement!r} is not an Agreement, its id, nor the path of its file")
    return agreement if isinstance(agreement, Agreement) else Agreement.read(agreement)


def _ledger_from_argument(ledger: Any, budget: float | None, identity: Any) -> Ledger:
    """The ledger; created if it is missing and its budget is given."""
    expected_budget = None if budget is None else Budget(epsilon=budget)
    if isinstance(ledger, Ledger):
        device_ledger = ledger
    elif isinstance(ledger, (str, os.PathLike)):
        device_ledger = _open_or_create_ledger(Path(ledger), expected_budget, identity)
    else:
        raise DiscreetError(f"ledger = {ledger!r} is not a Ledger, nor the path of one; make one with Ledger.create")
    if expected_budget is not None and device_ledger.budget != expected_budget:
        raise DiscreetError(
            f"budget is {expected_budget}, not the {device_ledger.budget} of ledger {device_ledger.path}; leave it out"
        )
    return device_ledger


def _open_or_create_ledger(path: Path, budget: Budget | None, identity: Any) -> Ledger:
    if not client_ledger_exists(path):
        try:
            refuse_new_ledger_of_used_identity(path, f"{path}{IDENTITY}" if identity is None else identity)
            if budget is None:
                raise LedgerError(
                    f"there is no ledger {path}; if it was there before, restore the newest copy: what was spent stays spent. For a device "
                    "that has released nothing yet say what it may spend: budget="
                )
            return Ledger.create(path, budget)
        except LedgerError:
            if not client_ledger_exists(path):  # else another process created it
                raise
    return Ledger(path)
