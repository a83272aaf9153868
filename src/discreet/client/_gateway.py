"""A gateway that speaks for many clients: releases a whole table under its secret, and sends the samples in batches.

Under a secret the samples of a round are a function of the data, the names of clients one of the collection and the secret, and keys one of
both: so whatever fails, running it again sends the same, and ends with every client counted once. One secret speaks in a round of a
collection under one agreement alone: clients that spoke under the first one would be asked a second time under another that follows it.
"""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import _protocol as protocol
from discreet.agreement import Agreement
from discreet.client._address import address_of
from discreet.client._client import check_token, pinned
from discreet.client._collector import Collector, Offer, names
from discreet.client._patience import Patience
from discreet.errors import POSITIVE, CollectorError, DiscreetError, need_extra
from discreet.ledger import PopulationLedger
from discreet.ledger._population import runs_in
from discreet.ledger._rounds import Rounds
from discreet.release._keyed import Secret, as_secret
from discreet.tradeoff import LARGE_EPSILON

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 5_000  # samples of one request
_BYTES = 1 << 22  # of their labels: a service takes no bodies of any length


@dataclass(frozen=True)
class Sent:
    """What became of a table: how many samples are new to the collection, were there already, and were refused.

    `refused`: of clients that had spoken before with another key, as under another agreement; nothing was changed for them. (Under another
    secret they have other names: the collection cannot know that they have spoken, and counts them again.)
    """

    collection: str
    agreement: str
    round: int
    counted: int
    again: int
    refused: int

    @property
    def samples(self) -> int:
        """How many were sent."""
        return self.counted + self.again + self.refused


def send_table(
    url: str,
    table: Any,
    *,
    client: str,
    value: str,
    secret: Secret | str | Path,
    count: str | None = None,
    weight: str | None = None,
    domain: Any = None,
    other: Any = None,
    nulls: str = "error",
    round: int | None = None,
    agreement: Agreement | str | Path | None = None,
    epsilon: float = LARGE_EPSILON,
    ledger: PopulationLedger | None = None,
    over_budget: str = "refuse",
    token: str | None = None,
    timeout: float = 60.0,
    patience: float = 600.0,
    plain_http: bool = False,
    tls: ssl.SSLContext | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sent:
    """One private sample for each client of a table, sent to a collection. The same again sends the same.

    Args:
        url: the collector's address.
        table: of (client, value) rows, as `discreet.engines.sample` takes it.
        client: the column that says who.
        value: the column that says what.
        secret: under which samples and names are made: a file that `discreet secret` made, or `read_secret(path)`.
        count: the column that says how often each row counts, if there is one.
        weight: or how much.
        domain: the labels, where the agreement holds but a digest of them.
        other: the outcome that values outside the domain become.
        nulls: "error", "drop" or "other".
        round: in which round; by default the one that is open.
        agreement: the only one to release under: an `Agreement`, its id, or the path of its file.
        epsilon: the most that a sample may spend, whatever is offered.
        ledger: what each client spends is counted in it.
        over_budget: clients that cannot pay stop the release ("refuse"), or are left out ("drop").
        token: of the gateway, for a collection with enrolment.
        timeout: seconds to wait for an answer.
        patience: seconds to keep trying, for each batch.
        plain_http: whether to talk unencrypted to other machines.
        tls: whom to believe.
        progress: hears how many of how many samples are acknowledged.

    Returns:
        How many were counted, were there already, and were refused.

    Raises:
        CollectorError: where it cannot be told; run it again.
        DiscreetError: for what cannot be released, before anything is sent.
    """
    held = as_secret(secret)
    if held is None:
        raise DiscreetError("a gateway needs a secret; make one with: discreet secret FILE")
    address = address_of(url, plain_http=plain_http, tls=tls)
    service = Collector(address, Patience(timeout=timeout, total=patience), check_token(token))
    only = pinned(agreement)
    offer = service.offer(only.id if isinstance(only, Agreement) else only)
    number = offer.round(round)
    if offer.enrolment and token is None:
        raise CollectorError(
            f"{address} takes samples of those it has enrolled alone; give the gateway's token: token= (--gateway-token-file)"
        )
    agreed = only if isinstance(only, Agreement) else service.agreement(offer.agreement)
    agreed.check_round(number)
    if agreed.epsilon > POSITIVE.check("epsilon", epsilon):
        raise DiscreetError(
            f"{address} offers an agreement at epsilon = {agreed.epsilon:g}, more than the {epsilon:g} allowed: epsilon= (--epsilon)"
        )
    _refuse_second(held, ledger, offer, agreed, number)
    try:
        from discreet.engines import sample  # needs Arrow, which devices have not
    except ImportError as missing:
        need_extra("cli", missing)
    drawn = sample(
        table, client=client, value=value, count=count, weight=weight, domain=domain, other=other, nulls=nulls, agreement=agreed,
        round=number, secret=held, ledger=ledger, over_budget=over_budget,
    )  # fmt: skip
    counted = again = refused = 0
    for rows, body in _bodies(drawn, client, offer, agreed, number, held):
        try:
            verdict = service.verdict(body, protocol.ARROW, rows)
        except CollectorError as error:
            raise CollectorError(
                f"{error} ({counted + again + refused:,} of {drawn.num_rows:,} samples are acknowledged; run the same again: it sends the "
                "same, and spends nothing more)"
            ) from None
        counted, again, refused = counted + verdict.counted, again + verdict.again, refused + len(verdict.refused)
        if progress is not None:
            progress(counted + again + refused, drawn.num_rows)
    return Sent(offer.collection, agreed.id, number, counted, again, refused)


def _refuse_second(
    secret: Secret, ledger: PopulationLedger | None, offer: Offer, agreed: Agreement, number: int
) -> None:
    """Refuse clients that may have spoken in this round, under another agreement of the collection."""
    released = Rounds(secret).released()
    if ledger is not None:
        released |= {(run.round.agreement, run.round.number) for run in runs_in(ledger.folder)[1]}
    for before in offer.follows.keys() - {agreed.id}:
        if (before, number) in released:
            raise DiscreetError(
                f"under this secret round {number} of the collection is released under agreement {before[:12]}..., and a client speaks once: "
                f"send that again with agreement={before} (--agreement). Other clients than those are for another secret"
            )


def _bodies(
    drawn: "pa.Table", client: str, offer: Offer, agreed: Agreement, number: int, secret: Secret
) -> Iterator[tuple[int, bytes]]:
    """Requests: how many samples are in each, and the Arrow stream."""
    import pyarrow as pa

    about = {"agreement": agreed.id, "round": str(number)}
    batch = max(1, min(_BATCH, _BYTES // (1 + _longest(drawn.column("sample")))))
    for start in range(0, drawn.num_rows, batch):
        part = drawn.slice(start, batch)
        called = names(offer.collection, secret.value, part.column(client).to_pylist())
        keys = [protocol.key_of(name, agreed.id, number) for name in called]
        samples = part.column("sample").combine_chunks()
        rows = pa.table({"client": pa.array(called), "key": pa.array(keys), "sample": samples}).replace_schema_metadata(
            about
        )
        into = pa.BufferOutputStream()
        with pa.ipc.new_stream(into, rows.schema) as stream:
            stream.write_table(rows)
        yield rows.num_rows, into.getvalue().to_pybytes()


def _longest(samples: "pa.ChunkedArray") -> int:
    """The bytes of the longest sample."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(samples.type) or pa.types.is_large_string(samples.type)):
        return 8
    return int(pc.max(pc.binary_length(samples)).as_py() or 0)
