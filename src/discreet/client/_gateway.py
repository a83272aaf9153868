"""`send_table`: a gateway releases a table for many clients under its secret, and sends the samples in batches.

A gateway always keeps a ledger of its population. Its owner's budget bounds what every client spends, whatever a collector offers and
however it names its collections. The ledger stores the samples, so after any failure a second run sends the same ones, and every client is
counted once. Data that changed meanwhile change nothing, and no error reveals the change.

What the collector can see (whether samples come, how many, how long a request is) does not depend on what clients hold, except through
the samples. The table is read once before the collector is asked anything: a row without a client, or a count that is none, is an error
then. Values that the agreement's domain does not have follow its public rule (`discreet.client._device_data`). A sample travels as the
number of its outcome, a report as a number of 64 bits. (How many clients there are does show.)

A collector's question is answered once: under one agreement, on one column or survey, in one round. The ledger checks this as it
charges the clients, so two simultaneous runs cannot both pass.
"""

import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.agreement import Agreement, RowTerms
from discreet.client import _protocol as protocol
from discreet.client._client import NO_KEY, pinned_agreement_or_id, require_public_key_or_no_key, require_sendable_token
from discreet.client._collector import Collector, Patience
from discreet.client._protocol import parse_address
from discreet.domain import as_domain
from discreet.errors import (
    POSITIVE,
    CollectorError,
    DiscreetError,
    LedgerError,
    check_callable,
    check_choice,
    check_kind,
    raise_missing_extra,
)
from discreet.ledger import (
    Budget,
    Destination,
    PopulationLedger,
    Round,
    new_ledger_message,
    population_ledger_exists,
    refuse_budget_below_one_sample,
)
from discreet.privacy.tradeoff import LARGE_EPSILON
from discreet.release import Question, Secret, as_secret

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables import Source

_BATCH = 5_000  # samples of one request
_LEDGER, _ROUNDS = ".ledger", ".rounds"
_NUMBERS = "\0numbers"  # a column of ours: no header has this name


@dataclass(frozen=True)
class Sent:
    """What became of the samples of a table.

    Attributes:
        collection: the id of the collection.
        agreement: the id of the agreement.
        round: in which round.
        counted: how many samples are new to the collection.
        again: how many it had already.
        refused: how many are of clients that had spoken before with another key, as under another agreement; nothing was changed for them.
            (Under another secret clients have other names: the collection cannot know that they have spoken, and counts them again.)
        outside: how many values of the table are outside the agreement's domain, or missing. They followed its public rule. The collector
            cannot tell.
        without_records: how many clients had no other values. Their samples are of the reference. The collector cannot tell.
    """

    collection: str
    agreement: str
    round: int
    counted: int
    again: int
    refused: int
    outside: int = 0
    without_records: int = 0

    @property
    def samples(self) -> int:
        """The number of samples that were sent."""
        return self.counted + self.again + self.refused


def send_table(
    url: str,
    table: Any,
    *,
    client: str,
    value: str | Sequence[str],
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
    notify: Callable[[str], None] | None = None,
) -> Sent:
    """Send one private sample for each client of a table to a collection.

    A repeated call for the same round sends the same samples. Another round is another release, which costs epsilon again: after an error
    pass the round that it names.

    Args:
        url: the collector's address.
        table: (client, value) rows, as `discreet.tables.sample` takes them.
        client: the column of clients.
        value: the column of values; for a survey all of its columns, in any order. A collector cannot ask for others.
        secret: fixes samples and names: a file that `discreet secret` made, or `read_secret(path)`.
        count: the column with the count of each row, if any.
        weight: or the column with the weight of each row.
        domain: the labels, if the agreement contains only a digest of them.
        other: the outcome that values outside the domain become, if the agreement names none; another one than the agreement's is an error.
        nulls: "error" raises an error for missing values before the collector is contacted; "drop" and "other" take them as values outside.
        round: the round; by default the open one.
        agreement: the only one to accept: an `Agreement`, its id, or the path of its file.
        epsilon: the largest epsilon of a sample to accept.
        ledger: counts what each client spends; by default the ledger beside the secret, SECRET.ledger.
        budget: the budget of each client, in a ledger that is created if missing.
        over_budget: whether clients that cannot pay stop the release ("refuse"), or are left out ("drop").
        token: of the gateway, for a collection with enrolment.
        key: the collector's public key; an agreement without its signature is an error. By default the first key is remembered.
        timeout: seconds to wait for an answer.
        patience: seconds to keep trying, for each batch.
        plain_http: whether to allow unencrypted http to other machines.
        tls: the trusted authorities.
        progress: called with the numbers of acknowledged samples and of all samples.
        notify: called with a sentence when a ledger was made in an empty folder, and before each pause of a busy collector.

    Returns:
        How many samples were counted, were there already, and were refused; and how many values were outside the agreement's domain.

    Raises:
        CollectorError: if the collector cannot be reached; run it again, with the round that the error names.
        LedgerError: if clients may have answered this question, or another collector has these samples.
        BudgetError: if clients cannot pay.
        DiscreetError: for a table that cannot be read, before the collector is contacted.
    """
    if progress is not None:
        check_callable(
            "progress", progress, "pass a function of the numbers of acknowledged samples and of all samples"
        )
    if notify is not None:
        check_callable("notify", notify, "pass a function of a sentence")
    gateway_secret = as_secret(secret)
    if gateway_secret is None:
        raise DiscreetError("a gateway needs a secret; make one with: discreet secret FILE")
    if ledger is not None:
        check_kind("ledger", ledger, PopulationLedger, "open one with PopulationLedger(folder, secret)")
    address = parse_address(url, plain_http=plain_http, tls=tls)
    advice = ""  # for whoever stops the run

    def notify_with_advice(sentence: str) -> None:
        if notify is not None:
            notify(sentence + advice)

    request_patience = Patience(timeout=timeout, total=patience, notify=notify_with_advice)
    service = Collector(address, request_patience, require_sendable_token(token))
    agreement_or_id, trusted_key = pinned_agreement_or_id(agreement), require_public_key_or_no_key(key)
    POSITIVE.check("epsilon", epsilon)
    least_epsilon = agreement_or_id.epsilon if isinstance(agreement_or_id, Agreement) else 0.0
    population_ledger = (
        _open_or_create_gateway_ledger(gateway_secret, budget, least_epsilon, notify_with_advice)
        if ledger is None
        else ledger
    )
    if population_ledger.secret != gateway_secret:  # whose clients would have other names, and be counted again
        raise LedgerError(
            f"secret is not the one that ledger {population_ledger.folder} was created with; give that one, from which names and samples "
            "are derived"
        )
    names = _value_column_names(value)
    make_table_source = _make_table_reader(table, client, names, count, weight, nulls)

    offer = service.read_offer(agreement_or_id.id if isinstance(agreement_or_id, Agreement) else agreement_or_id)
    number = offer.choose_open_round(round)
    if offer.enrolment and token is None:
        raise CollectorError(
            f"{address} takes samples only from enrolled clients; give the gateway's token: token= "
            f"(--gateway-token-file)"
        )
    if trusted_key is not None and (offer.key or NO_KEY) != trusted_key:
        raise CollectorError(
            f"{address} is to sign with key {trusted_key}, and agreement {offer.agreement} is not signed by it"
        )
    chosen_agreement = (
        agreement_or_id if isinstance(agreement_or_id, Agreement) else service.read_agreement(offer.agreement)
    )
    service.refuse_own_mechanism_unless_pinned(chosen_agreement, named=agreement_or_id is not None)
    chosen_agreement.check_round(number)
    if chosen_agreement.epsilon > epsilon:
        raise DiscreetError(
            f"{address} offers an agreement at epsilon = {chosen_agreement.epsilon:g}, more than the {epsilon:g} allowed: "
            "epsilon= (--epsilon)"
        )
    from discreet.tables import Columns, Release, Request  # installed: the table was read with it

    columns = Columns(
        client=client,
        value=_value_columns_of_agreement(chosen_agreement, names, str(address)),
        count=count,
        weight=weight,
    )
    question = Question(value=columns.value_columns_text, count=count, weight=weight)
    agreements = frozenset(offer.follows)
    to = Destination(str(address), offer.key, offer.collection, agreements, trusted=trusted_key is not None)
    population_ledger = population_ledger.for_destination(to)
    question_round = Round(
        agreement=chosen_agreement.id, question=question, number=number, epsilon=chosen_agreement.epsilon
    )
    population_ledger.refuse_wrong_destination(question_round)
    terms: Any = {} if chosen_agreement.survey is not None else {"value": columns.value}
    rerun = f"run the same again with round={number} (--round {number})"
    advice = f" (round {number} may be paid for: after an interruption {rerun})"
    counted_samples = again = refused_samples = 0
    try:
        request = Request(
            client=client, **terms, count=count, weight=weight, domain=domain, other=other, outside="agreed", agreement=chosen_agreement,
            round=number,
        )  # fmt: skip
        release = Release(make_table_source(), request, ledger=population_ledger, over_budget=over_budget)
        drawn_table = release.table()
        advice = f" (round {number} is paid for: after an interruption {rerun})"
        destination = population_ledger.destination_of_round(question_round) or to
        for samples, body in _iterate_sample_counts_and_bodies(
            _append_outcome_number_column(drawn_table, chosen_agreement, domain),
            destination,
            chosen_agreement,
            number,
            gateway_secret,
        ):
            try:
                verdict = service.send_samples(body, protocol.ARROW, samples)
            except CollectorError as error:
                raise CollectorError(
                    f"{error} ({counted_samples + again + refused_samples:,} of {drawn_table.num_rows:,} samples of round {number} are "
                    f"acknowledged; {rerun}: it sends the same, and spends nothing more)"
                ) from None
            counted_samples, again, refused_samples = (
                counted_samples + verdict.counted,
                again + verdict.again,
                refused_samples + len(verdict.refused),
            )
            if progress is not None:
                progress(counted_samples + again + refused_samples, drawn_table.num_rows)
    except KeyboardInterrupt:  # wherever it comes: without its round, the next run could pay for another
        raise KeyboardInterrupt(f"interrupted{advice}") from None
    summary = release.summary
    return Sent(
        destination.collection, chosen_agreement.id, number, counted_samples, again, refused_samples,
        outside=summary.outside + summary.nulls + summary.not_numbers, without_records=summary.without_records,
    )  # fmt: skip


def _open_or_create_gateway_ledger(
    secret: Secret, budget: float | None, epsilon: float, notify: Callable[[str], None]
) -> PopulationLedger:
    """The gateway's ledger beside its secret; created if its budget is given, which pays for one sample at epsilon at least."""
    if secret.state is None:
        raise DiscreetError("a gateway keeps a ledger beside its secret, and this secret is in no file: pass ledger=")
    client_budget = None if budget is None else Budget(epsilon=budget)
    folder = Path(f"{str(secret.state).removesuffix(_ROUNDS)}{_LEDGER}")
    if not population_ledger_exists(folder):
        if budget is None:
            raise LedgerError(
                f"a gateway counts what each client spends, and there is no ledger {folder} yet: say what all samples of a client together "
                "may cost: budget= (--budget)"
            )
        refuse_budget_below_one_sample(budget, epsilon, folder)
        folder_existed = folder.exists()
        try:
            new_ledger = PopulationLedger.create(folder, budget=budget, secret=secret)
            if folder_existed:
                notify(new_ledger_message(new_ledger, empty_folder=True))
            return new_ledger
        except LedgerError:
            if not population_ledger_exists(folder):  # else another run created it
                raise
    ledger = PopulationLedger(folder, secret)
    if client_budget is not None and client_budget != ledger.budget:
        raise LedgerError(
            f"budget = {client_budget.epsilon:g} is not the {ledger.budget} of ledger {folder}; leave it out"
        )
    return ledger


def _value_column_names(value: Any) -> tuple[str, ...]:
    """The columns of values."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise DiscreetError(f"value = {value!r} is not the name of a column, nor a list of those of a survey")
    return tuple(names)


def _value_columns_of_agreement(agreement: Agreement, names: tuple[str, ...], address: str) -> str | tuple[str, ...]:
    """The column that the agreement is on, or those of its survey in their order; an error if the table is to give others."""
    if not isinstance(agreement.family, RowTerms):
        if len(names) > 1:
            raise DiscreetError(
                f"{address} offers an agreement on one column, and value (--value) names {len(names)}; name the one to release"
            )
        return names[0]
    survey_columns = tuple(agreement.family.columns)
    if set(survey_columns) != set(names):
        raise DiscreetError(
            f"{address} offers a survey of {', '.join(map(repr, survey_columns))}, and the table is to give "
            f"{', '.join(map(repr, names))}: name all columns of the survey, and no others, with value= (--value)"
        )
    return survey_columns


def _make_table_reader(
    table: Any, client: str, names: tuple[str, ...], count: str | None, weight: str | None, nulls: str
) -> "Callable[[], Source]":
    """A function that returns the table, after all checks that need no agreement.

    The table is kept in memory: a file that changes between two readings could raise an error after the collector was contacted.
    """
    try:
        import polars as pl

        from discreet.domain import NULLS
        from discreet.tables import (
            Columns,
            ScannedSource,
            refuse_missing_columns,
            refuse_unreadable_table,
            source_of_table,
        )
    except ImportError as missing:  # Arrow, which devices do not need
        raise_missing_extra("cli", missing)
    check_choice("nulls", nulls, NULLS)
    columns = Columns(client=client, value=names[0] if len(names) == 1 else names, count=count, weight=weight)
    source = source_of_table(table)
    refuse_missing_columns(columns.all_column_names, source)
    frames = list(
        source.read_prepared_frames(
            lambda frame: frame.select(columns.all_column_names), columns.all_column_names, client=columns.client
        )
    )
    table_frame = pl.concat(frames) if frames else pl.DataFrame(schema=source.schema).select(columns.all_column_names)

    def make_table_source() -> "Source":
        return ScannedSource(source.name, table_frame.lazy(), untyped=source.untyped_columns, rows=table_frame.height)

    for name in names:
        refuse_unreadable_table(make_table_source(), replace(columns, value=name), nulls=nulls)
    return make_table_source


def _append_outcome_number_column(table: "pa.Table", agreement: Agreement, domain: Any) -> "pa.Table":
    """Samples with the numbers of their outcomes beside them, where they are texts, which differ in length. Reports are numbers already."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if agreement.release_kind == "report":
        return table
    samples = table.column("sample")
    if not (pa.types.is_string(samples.type) or pa.types.is_large_string(samples.type)):
        return table
    labels = agreement.domain.labels if domain is None else as_domain(domain).labels
    return table.append_column(_NUMBERS, pc.index_in(samples, pa.array(labels, samples.type)))


def _iterate_sample_counts_and_bodies(
    table: "pa.Table", to: Destination, agreement: Agreement, number: int, secret: Secret
) -> Iterator[tuple[int, bytes]]:
    """The requests: the number of samples of each, and an Arrow stream whose length does not depend on them."""
    import pyarrow as pa

    metadata = {"agreement": agreement.id, "round": str(number)}
    if _NUMBERS in table.schema.names:
        metadata["samples"] = "numbers"
    samples = table.column(_NUMBERS if _NUMBERS in table.schema.names else agreement.release_kind)
    for start in range(0, table.num_rows, _BATCH):
        part = table.slice(start, _BATCH)
        names = [
            protocol.client_name_in_collection(to.collection, secret.value, str(client), address=to.address)
            for client in part.column(0).to_pylist()  # the client, whose column has another name where its own is taken
        ]
        keys = [protocol.sample_idempotency_key(name, agreement.id, number) for name in names]
        columns = {
            "client": pa.array(names),
            "key": pa.array(keys),
            "sample": samples.slice(start, _BATCH).combine_chunks(),
        }
        rows = pa.table(columns).replace_schema_metadata(metadata)
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, rows.schema) as stream:
            stream.write_table(rows)
        yield rows.num_rows, buffer.getvalue().to_pybytes()
