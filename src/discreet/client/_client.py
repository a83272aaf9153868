"""A device that takes part: it speaks once in each round of a collection, and says the same however often it has to say it.

    ask what is collected  |  has this ledger paid for a sample in this round of it? -> that one, nothing is drawn
                           |  else: is the agreement the one meant? -> charge and draw, durable  |  send until it is answered

A sample leaves once it is in the ledger, and what leaves is what the ledger holds: so a crash, a kill, a lost answer or a second process
at any step leads to the same sample, under the same name and key, which the collector counts once. An agreement that follows another
one is of the same collection: who has spoken under the first has spoken, and spends nothing under the second.

The name is a keyed digest of the collection's id under a secret that never leaves the device, so that collections cannot be joined by
it. (The collector says which collection it is. Two that work together and call theirs by one id see one name, and so does one that offers
another's agreement as its own; they are told apart by nothing that a device could check but their address.)
"""

import os
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _protocol as protocol
from discreet._labelled import LawLike
from discreet.agreement import Agreement
from discreet.client import _collector as collector
from discreet.client._address import address_of
from discreet.client._collector import Collector, Offer
from discreet.client._identity import identity_in
from discreet.client._patience import Patience
from discreet.errors import CollectorError, DiscreetError, LedgerError
from discreet.families import ContinuousFamily
from discreet.ledger import Budget, Ledger
from discreet.ledger._file import is_made
from discreet.mechanisms._sampler import AnyFamily, Sampler


@dataclass(frozen=True)
class Receipt:
    """What a collection has been told: acknowledged, and on its disk.

    `counted`: whether it was new; else it had been told before, and was not counted again. `agreement` and `round`: what the sample was
    released under.
    """

    counted: bool
    collection: str
    agreement: str
    round: int
    sample: Any


class Client:
    """One device, or one person's program, in the collections of one service.

    Args:
        url: the collector's address: https://, or http:// on this machine.
        ledger: what this client may spend and has spent: a `Ledger`, or the path of its file.
        budget: epsilon of a ledger that is made if it is not there. Whatever agreement is offered, no more is ever spent.
        agreement: the only one to release under: an `Agreement`, its id, or the path of its file. Without it the one that the service offers
            first, as long as the budget allows it.
        identity: the path of the file with the secret that names are made of, made if it is not there; by default LEDGER.identity.
        token: for a collection with enrolment, where it is the client's name.
        family: what the agreement is about, where it holds but a digest of it.
        timeout: seconds to wait for an answer.
        patience: seconds to keep trying.
        plain_http: whether to talk unencrypted to other machines.
        tls: whom to believe, as an `ssl.SSLContext`; by default those whom the system does.

    Raises:
        DiscreetError: for an address, an agreement or a token that is none.
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
        family: AnyFamily | None = None,
        timeout: float = 10.0,
        patience: float = 60.0,
        plain_http: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._collector = Collector(
            address_of(url, plain_http=plain_http, tls=tls), Patience(timeout=timeout, total=patience)
        )
        only = pinned(agreement)
        self._pinned = only.id if isinstance(only, Agreement) else only
        self._token = check_token(token)
        self._family = family
        self.ledger = _ledger(ledger, budget)
        self._secret = identity_in(f"{self.ledger.path}.identity" if identity is None else identity)
        self._read = {only.id: only} if isinstance(only, Agreement) else {}

    def __repr__(self) -> str:
        return f"<Client of {self._collector.address} with {self.ledger.path}>"

    @cached_property
    def agreement(self) -> Agreement:
        """What is agreed on by sending: read it before. Should the service offer another one later, nothing is sent."""
        return self._document(self._pinned or self._collector.offer(None).agreement)

    def send(
        self,
        p: LawLike | Any = None,
        *,
        records: Any = None,
        counts: LawLike | None = None,
        round: int | None = None,
    ) -> Receipt:
        """Release one sample, paid for in the ledger, and send it until it is acknowledged. The same again sends the same.

        Args:
            p: what this client holds: a law, as `sampler.release` takes it.
            records: or what it saw: labels, outcome numbers or points.
            counts: or how often it saw each outcome.
            round: in which round; by default the one that is open.

        Returns:
            What the collection has been told.

        Raises:
            CollectorError: where it cannot be told, or says what cannot be; a sample that is drawn by then is in the ledger.
            BudgetError: where the ledger does not allow it. Nothing was sent.
            DiscreetError: for what is no law under the agreement, before anything is charged or sent.
        """
        if sum(given is not None for given in (p, records, counts)) != 1:
            raise DiscreetError("pass one of p (a law), records= (what was seen) and counts= (how often)")
        if _holds_texts(p):
            raise DiscreetError("p holds texts, and is to be a law; pass what was seen as records=")
        offer = self._collector.offer(self._pinned)
        spoken = self._spoken(offer, round)
        agreed, number = (self._agreed(offer), offer.round(round)) if spoken is None else spoken
        agreed.check_round(number)
        name = self._name(offer)
        sampler = agreed.sampler(self._family)
        sample = self.ledger.known(sampler, agreement=agreed, round=number)
        if sample is None:
            law = p if p is not None else _law(sampler, records, counts)
            sample = self.ledger.release(sampler, law, agreement=agreed, round=number)
        said = plain(sample)
        try:
            verdict = self._collector.verdict(collector.one(agreed.id, number, name, said), protocol.JSON, 1)
        except CollectorError as error:
            raise CollectorError(
                f"{error} (the sample is drawn and paid for in {self.ledger.path}: sending again sends the same, and spends nothing)"
            ) from None
        if verdict.refused:
            raise CollectorError(
                f"this client has spoken in round {number} of collection {offer.collection[:12]} before, with another sample than that of "
                f"{self.ledger.path}; nothing was counted: use the ledger and the identity that it spoke with"
            )
        return Receipt(bool(verdict.counted), offer.collection, agreed.id, number, said)

    def _spoken(self, offer: Offer, round: int | None) -> tuple[Agreement, int] | None:
        """The agreement under which this ledger has paid for a sample in this round of the collection, whichever is open by now."""
        number = offer.round(None) if round is None else round
        for entry in self.ledger.entries():
            if entry.agreement in offer.follows and entry.round == number:
                return self._document(entry.agreement), number
        return None

    def _agreed(self, offer: Offer) -> Agreement:
        """The agreement to release under: the pinned one, or the one that was offered first."""
        agreed = self.agreement
        if self._pinned is None and offer.agreement != agreed.id:
            raise CollectorError(
                f"{self._collector.address} offered agreement {agreed.id}, and now {offer.agreement}: nothing was released. Read the new "
                "one, and make a new Client for it"
            )
        return agreed

    def _document(self, wanted: str) -> Agreement:
        if wanted not in self._read:
            self._read[wanted] = self._collector.agreement(wanted)
        return self._read[wanted]

    def _name(self, offer: Offer) -> str:
        if not offer.enrolment:
            return protocol.name_in(offer.collection, self._secret)
        if self._token is None:
            raise CollectorError(
                f"{self._collector.address} takes samples of those it has enrolled alone; give the token that you were handed: token="
            )
        return self._token


def plain(sample: Any) -> Any:
    """A sample as JSON holds it."""
    if isinstance(sample, np.ndarray):
        return sample.tolist()
    return sample.item() if isinstance(sample, np.generic) else sample


def check_token(token: Any) -> str | None:
    """A token that can be sent; it is not shown where it cannot."""
    if token is None:
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token or not token:
        raise DiscreetError("token is not a text without spaces; give it as it was handed out")
    if len(token) > protocol.MOST_NAME:
        raise DiscreetError(f"token has more than {protocol.MOST_NAME} characters; give it as it was handed out")
    return token


def pinned(agreement: Agreement | str | Path | None) -> Agreement | str | None:
    """The only agreement to release under, or its id if that is what is given."""
    if agreement is None or isinstance(agreement, Agreement):
        return agreement
    if isinstance(agreement, str) and collector.is_id(agreement):
        return agreement
    if not isinstance(agreement, (str, os.PathLike)):
        raise DiscreetError(f"agreement = {agreement!r} is not an Agreement, its id, nor the path of its file")
    return Agreement.read(agreement)


def _ledger(ledger: Any, budget: float | None) -> Ledger:
    """The ledger, made where it is not there and its budget is given."""
    wanted = None if budget is None else Budget(epsilon=budget)
    if isinstance(ledger, Ledger):
        found = ledger
    elif isinstance(ledger, (str, os.PathLike)):
        found = _opened(Path(ledger), wanted)
    else:
        raise DiscreetError(f"ledger = {ledger!r} is not a Ledger, nor the path of one; make one with Ledger.create")
    if wanted is not None and found.budget != wanted:
        raise DiscreetError(f"budget is {wanted}, not the {found.budget} of ledger {found.path}; leave it out")
    return found


def _opened(path: Path, budget: Budget | None) -> Ledger:
    if budget is not None and not is_made(path):
        try:
            return Ledger.create(path, budget)
        except LedgerError:
            if not is_made(path):  # else another process was quicker
                raise
    if budget is None and not is_made(path):
        raise LedgerError(f"there is no ledger {path}; to make it say what it may spend: budget=")
    return Ledger(path)


def _holds_texts(p: Any) -> bool:
    """Whether these are records, given in place of a law."""
    return isinstance(p, str) or (isinstance(p, list | tuple) and any(isinstance(each, str) for each in p))


def _law(sampler: Sampler[AnyFamily], records: Any, counts: Any) -> Any:
    family = sampler.family
    if isinstance(family, ContinuousFamily):
        if counts is not None:
            raise DiscreetError("counts= are of outcomes, and the agreement is on a continuous family; pass records=")
        return family.law(records=records)
    made: Any = family  # every finite family makes laws of either
    return made.law(records=records, counts=counts)
