"""A gateway that speaks for many clients: releases a whole table under its secret, and sends the samples in batches.

A gateway always keeps a ledger of its population: what every client has spent is bounded by a budget that its owner has named, whatever a
collector offers and however it names its collections. The ledger holds the samples, so whatever fails, running it again sends the same, and
ends with every client counted once; data that have changed meanwhile change nothing, and no refusal tells that they have.

What the collector can see (whether samples come, how many, how long a request is) does not depend on what clients hold, except through
the samples. The table is read once before the collector is asked anything: a row without a client, or a count that is none, is an error
then. Values that the agreement's domain does not have follow its public rule (`discreet.client._holding`). A sample travels as the number of
its outcome, a report as a number of 64 bits. (How many clients there are does show.)

One question of a collector is answered once: under one agreement, on one column, in one round. The ledger checks that in the same
transaction that charges the clients, so two runs at a time cannot both pass.
"""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.agreement import Agreement
from discreet.client import _protocol as protocol
from discreet.client._client import NO_KEY, check_key, check_token, pinned_agreement
from discreet.client._collector import Collector
from discreet.client._http import Patience
from discreet.client._protocol import address_of
from discreet.domain import as_domain
from discreet.errors import POSITIVE, CollectorError, DiscreetError, LedgerError, need_extra
from discreet.ledger import Destination, PopulationLedger, Round, population_ledger_exists
from discreet.privacy.tradeoff import LARGE_EPSILON
from discreet.release import Question, Secret, as_secret

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables import Source

_BATCH = 5_000  # samples of one request
_LEDGER, _ROUNDS = ".ledger", ".rounds"
_NUMBERS = "\0numbers"  # a column of ours: no header can hold it


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
    budget: float | None = None,
    over_budget: str = "refuse",
    token: str | None = None,
    key: str | None = None,
    timeout: float = 60.0,
    patience: float = 600.0,
    plain_http: bool = False,
    tls: ssl.SSLContext | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sent:
    """One private sample for each client of a table, sent to a collection. The same again sends the same.

    Args:
        url: the collector's address.
        table: of (client, value) rows, as `discreet.tables.sample` takes it.
        client: the column that says who.
        value: the column that says what.
        secret: under which samples and names are made: a file that `discreet secret` made, or `read_secret(path)`.
        count: the column that says how often each row counts, if there is one.
        weight: or how much.
        domain: the labels, where the agreement holds but a digest of them.
        other: must be the outcome that the agreement names for values outside its domain; leave it out.
        nulls: "error" refuses a table with missing values before the collector is asked; "drop" and "other" take them as values outside.
        round: in which round; by default the one that is open.
        agreement: the only one to release under: an `Agreement`, its id, or the path of its file.
        epsilon: the most that a sample may spend, whatever is offered.
        ledger: what each client spends is counted in it; by default the one beside the secret, SECRET.ledger.
        budget: what each client may spend in all, in a ledger that is made if it is not there.
        over_budget: clients that cannot pay stop the release ("refuse"), or are left out ("drop").
        token: of the gateway, for a collection with enrolment.
        key: the public key of the collector: what is not signed by it is refused. Without it the key at the first release is remembered.
        timeout: seconds to wait for an answer.
        patience: seconds to keep trying, for each batch.
        plain_http: whether to talk unencrypted to other machines.
        tls: whom to believe.
        progress: hears how many of how many samples are acknowledged.

    Returns:
        How many were counted, were there already, and were refused.

    Raises:
        CollectorError: where it cannot be told; run it again.
        LedgerError: where clients may have answered this question, or another collector was given these samples.
        BudgetError: where clients cannot pay.
        DiscreetError: for a table that cannot be read, before the collector is asked anything.
    """
    held = as_secret(secret)
    if held is None:
        raise DiscreetError("a gateway needs a secret; make one with: discreet secret FILE")
    address = address_of(url, plain_http=plain_http, tls=tls)
    service = Collector(address, Patience(timeout=timeout, total=patience), check_token(token))
    only, trusted = pinned_agreement(agreement), check_key(key)
    POSITIVE.check("epsilon", epsilon)
    books = _ledger(held, budget) if ledger is None else ledger
    question = Question(value=value, count=count, weight=weight)
    rows = _checked_rows(table, client, question, nulls)

    offer = service.offer(only.id if isinstance(only, Agreement) else only)
    number = offer.round(round)
    if offer.enrolment and token is None:
        raise CollectorError(
            f"{address} takes samples of those it has enrolled alone; give the gateway's token: token= (--gateway-token-file)"
        )
    if trusted is not None and (offer.key or NO_KEY) != trusted:
        raise CollectorError(
            f"{address} is to sign with key {trusted}, and agreement {offer.agreement} is not signed by it"
        )
    agreed = only if isinstance(only, Agreement) else service.agreement(offer.agreement)
    agreed.check_round(number)
    if agreed.epsilon > epsilon:
        raise DiscreetError(
            f"{address} offers an agreement at epsilon = {agreed.epsilon:g}, more than the {epsilon:g} allowed: epsilon= (--epsilon)"
        )
    agreements = frozenset(offer.follows)
    to = Destination(
        str(address), offer.key, offer.collection, agreements, offer.addresses, trusted=trusted is not None
    )
    books = books.for_destination(to)
    asked = Round(agreement=agreed.id, question=question, number=number, epsilon=agreed.epsilon)
    books.check_destination(asked)
    from discreet.tables import sample  # which is there: the table was read with it

    drawn = sample(
        rows(), client=client, value=value, count=count, weight=weight, domain=domain, other=other, outside="agreed",
        agreement=agreed, round=number, ledger=books, over_budget=over_budget,
    )  # fmt: skip
    given = books.destination(asked) or to
    counted = again = refused = 0
    for samples, body in _bodies(_with_outcome_numbers(drawn, agreed, domain), given, agreed, number, held):
        try:
            verdict = service.verdict(body, protocol.ARROW, samples)
        except CollectorError as error:
            raise CollectorError(
                f"{error} ({counted + again + refused:,} of {drawn.num_rows:,} samples are acknowledged; run the same again: it sends the "
                "same, and spends nothing more)"
            ) from None
        counted, again, refused = counted + verdict.counted, again + verdict.again, refused + len(verdict.refused)
        if progress is not None:
            progress(counted + again + refused, drawn.num_rows)
    return Sent(given.collection, agreed.id, number, counted, again, refused)


def _ledger(secret: Secret, budget: float | None) -> PopulationLedger:
    """The gateway's own ledger, beside its secret; made where its budget is given."""
    if secret.state is None:
        raise DiscreetError("a gateway keeps a ledger beside its secret, and this secret is in no file: pass ledger=")
    folder = Path(f"{str(secret.state).removesuffix(_ROUNDS)}{_LEDGER}")
    if not population_ledger_exists(folder):
        if budget is None:
            raise LedgerError(
                f"a gateway counts what each client spends, and there is no ledger {folder} yet: say what all samples of a client together "
                "may cost: budget= (--budget)"
            )
        try:
            return PopulationLedger.create(folder, budget=budget, secret=secret)
        except LedgerError:
            if not population_ledger_exists(folder):  # else another run was quicker
                raise
    found = PopulationLedger(folder, secret)
    if budget is not None and budget != found.budget.epsilon:
        raise LedgerError(f"budget = {budget:g} is not the {found.budget} of ledger {folder}; leave it out")
    return found


def _checked_rows(table: Any, client: str, question: Question, nulls: str) -> "Callable[[], Source]":
    """The table as often as it is read, once it is known that no agreement is needed to refuse it.

    It is held in memory: a file that changes between two readings could be refused after the collector was asked.
    """
    try:
        import polars as pl

        from discreet.tables import NULLS, Columns, ScannedSource, check_columns, check_rows, source_of
    except ImportError as missing:  # Arrow, which devices have not
        need_extra("cli", missing)
    if nulls not in NULLS:
        raise DiscreetError(f"nulls = {nulls!r} is not one of {', '.join(NULLS)}")
    columns = Columns(client=client, value=question.value, count=question.count, weight=question.weight)
    source = source_of(table)
    check_columns(columns.names, source)
    frames = list(source.frames(lambda frame: frame.select(columns.names), columns.names))
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=source.schema).select(columns.names)

    def rows() -> "Source":
        return ScannedSource(source.name, whole.lazy(), untyped=source.is_untyped, rows=whole.height)

    check_rows(rows(), columns, nulls=nulls)
    return rows


def _with_outcome_numbers(drawn: "pa.Table", agreed: Agreement, domain: Any) -> "pa.Table":
    """Samples with the numbers of their outcomes beside them, where they are texts, which differ in length. Reports are numbers already."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if agreed.blocks is not None:
        return drawn
    samples = drawn.column("sample")
    if not (pa.types.is_string(samples.type) or pa.types.is_large_string(samples.type)):
        return drawn
    labels = agreed.domain.labels if domain is None else as_domain(domain).labels
    return drawn.append_column(_NUMBERS, pc.index_in(samples, pa.array(labels, samples.type)))


def _bodies(
    drawn: "pa.Table", to: Destination, agreed: Agreement, number: int, secret: Secret
) -> Iterator[tuple[int, bytes]]:
    """Requests: how many samples are in each, and the Arrow stream, whose length does not depend on the samples."""
    import pyarrow as pa

    about = {"agreement": agreed.id, "round": str(number)}
    if _NUMBERS in drawn.schema.names:
        about["samples"] = "numbers"
    released = "sample" if agreed.blocks is None else "report"
    samples = drawn.column(_NUMBERS if _NUMBERS in drawn.schema.names else released)
    for start in range(0, drawn.num_rows, _BATCH):
        part = drawn.slice(start, _BATCH)
        called = [
            protocol.name_in(to.collection, secret.value, str(one), address=to.address)
            for one in part.column(0).to_pylist()  # the client, whose column has another name where its own is taken
        ]
        keys = [protocol.key_of(name, agreed.id, number) for name in called]
        columns = {
            "client": pa.array(called),
            "key": pa.array(keys),
            "sample": samples.slice(start, _BATCH).combine_chunks(),
        }
        rows = pa.table(columns).replace_schema_metadata(about)
        into = pa.BufferOutputStream()
        with pa.ipc.new_stream(into, rows.schema) as stream:
            stream.write_table(rows)
        yield rows.num_rows, into.getvalue().to_pybytes()
