"""A release before it meets an engine: which columns, which domain, which mechanism, under which agreement, with which key."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet.agreement import MECHANISMS, Agreement
from discreet.engines.domains import OUTSIDE, Cells, Domain, Labels, Numbers, as_domain
from discreet.engines.terms import agreed, agreed_domain
from discreet.errors import DiscreetError
from discreet.mechanisms.sampler import Sampler
from discreet.release.keyed import Question, RunKey, Secret, fresh_secret

NULLS = ("error", "drop", "other")
ENGINE_MECHANISMS = ("optimal", "linear")
FEW = 3  # examples in a message


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table: who, what, and optionally how often (`count`) or how much (`weight`)."""

    client: str
    value: str
    count: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.weight is not None:
            raise DiscreetError("give a count column (whole numbers) or a weight column (any numbers), not both")
        names = [self.client, self.value, *([] if self.counts is None else [self.counts])]
        for name in names:
            if not isinstance(name, str) or not name:
                raise DiscreetError(f"{name!r} is not the name of a column")
        if len(set(names)) < len(names):
            raise DiscreetError(f"columns {', '.join(names)} are not all different")

    @property
    def counts(self) -> str | None:
        """The column that says how often or how much, if there is one."""
        return self.count if self.weight is None else self.weight

    @property
    def amounts(self) -> Any:
        """The numpy type of the numbers in that column: whole numbers if they count, floats if they weigh, whatever they came as."""
        return np.int64 if self.weight is None else np.float64

    @property
    def question(self) -> Question:
        """What is asked of each client, as it enters the key: two columns of one domain are two questions."""
        return Question(value=self.value, count=self.count, weight=self.weight)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for. `Request.job` checks it against the columns there are, and the agreement where there is one."""

    columns: Columns
    domain: Domain
    epsilon: float
    mechanism: str = "optimal"
    nulls: str = "error"
    rounds: int = 1
    round_number: int = 1
    purpose: str = ""
    secret: Secret | None = field(default=None, repr=False)
    agreement: Agreement | None = None

    def __post_init__(self) -> None:
        if self.mechanism not in ENGINE_MECHANISMS:
            raise DiscreetError(f"mechanism = {self.mechanism!r} is not one of {', '.join(ENGINE_MECHANISMS)}")
        if self.nulls not in NULLS:
            raise DiscreetError(f"nulls = {self.nulls!r} is not one of {', '.join(NULLS)}")
        if self.nulls == "other" and (self.domain.other is None or isinstance(self.domain, Cells)):
            raise DiscreetError(
                "nulls = 'other' needs an outcome for them: "
                + ("an interval has none, use 'drop'" if isinstance(self.domain, Cells) else "give other=")
            )

    @classmethod
    def of(
        cls,
        *,
        client: str,
        value: str,
        domain: Any = None,
        epsilon: float | None = None,
        count: str | None = None,
        weight: str | None = None,
        other: Any = None,
        mechanism: str | None = None,
        nulls: str = "error",
        rounds: int | None = None,
        round: int = 1,
        purpose: str | None = None,
        secret: Secret | None = None,
        agreement: Agreement | None = None,
    ) -> "Request":
        """The request in the words of the public functions. Terms that are None come from the agreement, if there is one."""
        columns = Columns(client=client, value=value, count=count, weight=weight)
        if agreement is None:
            for name, needed in (("domain", domain), ("epsilon", epsilon)):
                if needed is None:
                    raise DiscreetError(f"{name} is not given; say {name}= (--{name}), or agreement= (--agreement)")
            assert epsilon is not None
            return cls(
                columns=columns,
                domain=as_domain(domain, other),
                epsilon=epsilon,
                mechanism="optimal" if mechanism is None else mechanism,
                nulls=nulls,
                rounds=1 if rounds is None else rounds,
                round_number=round,
                purpose="" if purpose is None else purpose,
                secret=secret,
            )
        if not isinstance(agreement, Agreement):
            raise DiscreetError(f"agreement = {agreement!r} is not an Agreement; read one with Agreement.read(path)")
        return cls(
            columns=columns,
            domain=agreed_domain(agreement, domain, other),
            epsilon=agreed("epsilon", epsilon, agreement),
            mechanism=agreed("mechanism", mechanism, agreement),
            nulls=nulls,
            rounds=agreed("rounds", rounds, agreement),
            round_number=round,
            purpose=agreed("purpose", purpose, agreement),
            secret=secret,
            agreement=agreement,
        )

    def job(self, schema: pl.Schema, *, untyped: bool, where: str) -> "Job":
        """The job on a table with these columns. `untyped`: they are all texts (CSV) and get their types from the request."""
        columns = self.columns
        for name in (columns.client, columns.value, columns.counts):
            if name is not None and name not in schema:
                raise DiscreetError(f"column {name!r} is not in {where}; it has {', '.join(map(repr, schema))}")
        kinds = {
            "client": pl.String() if untyped else schema[columns.client],
            "value": self._text_kind() if untyped else schema[columns.value],
        }
        listed = isinstance(kinds["value"], (pl.List, pl.Array))
        value_kind: Any = kinds["value"].inner if listed else kinds["value"]  # type: ignore[attr-defined]
        if columns.counts is not None:
            self._check_counts(schema[columns.counts], untyped=untyped, listed=listed)
        if not (kinds["client"].is_integer() or kinds["client"] in (pl.String, pl.Categorical, pl.Enum)):
            raise DiscreetError(
                f"column {columns.client!r} holds {kinds['client']} values; clients are texts or integers, cast it to text"
            )
        domain = self.domain.fitted(columns.value, value_kind, agreed=self.agreement is not None)
        sampler = MECHANISMS[self.mechanism](domain.family, epsilon=self.epsilon)
        agreement = Agreement.of(sampler, interval=domain.interval, rounds=self.rounds, purpose=self.purpose)
        if self.agreement is not None and agreement.id != self.agreement.id:
            raise DiscreetError(
                f"the release would be made under agreement {agreement.id}, not under {self.agreement.id}; take its terms from "
                "the agreement"
            )
        secret = fresh_secret() if self.secret is None else self.secret
        return Job(
            columns=columns,
            domain=domain,
            sampler=sampler,
            agreement=agreement,
            key=secret.run_key(agreement.id, agreement.check_round(self.round_number), columns.question),
            nulls=self.nulls,
            integer_clients=kinds["client"].is_integer(),
            listed=listed,
            casts=tuple(self._casts()) if untyped else (),
        )

    def _text_kind(self) -> pl.DataType:
        match self.domain:
            case Labels():
                return pl.Int64() if isinstance(self.domain.labels[0], int) else pl.String()
            case Numbers():
                return pl.Int64()
            case Cells():
                return pl.Float64()

    def _casts(self) -> Iterator[tuple[str, pl.DataType]]:
        yield self.columns.value, self._text_kind()
        if self.columns.count is not None:
            yield self.columns.count, pl.Int64()
        if self.columns.weight is not None:
            yield self.columns.weight, pl.Float64()

    def _check_counts(self, kind: Any, *, untyped: bool, listed: bool) -> None:
        name = self.columns.counts
        if untyped:
            return
        if isinstance(kind, (pl.List, pl.Array)) != listed:
            raise DiscreetError(f"columns {self.columns.value!r} and {name!r} are not both lists or both single values")
        inner: Any = kind.inner if listed else kind
        if self.columns.count is not None and not inner.is_integer():
            raise DiscreetError(f"count column {name!r} holds {inner} values, not whole numbers; pass it as weight")
        if not inner.is_numeric():
            raise DiscreetError(f"weight column {name!r} holds {inner} values, not numbers")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A request fitted to a table: what every engine carries out."""

    columns: Columns
    domain: Domain
    sampler: Sampler
    agreement: Agreement
    key: RunKey
    nulls: str
    integer_clients: bool
    listed: bool
    casts: tuple[tuple[str, pl.DataType], ...] = ()

    def prepared(self, frame: Any) -> Any:
        """A frame (lazy or not) as columns client, outcome and perhaps count: one row for each record."""
        columns = self.columns
        client = pl.col(columns.client)
        prepared = [
            client.cast(pl.Int64 if self.integer_clients else pl.String).alias("client"),
            self.domain.outcomes(columns.value).alias("outcome"),
        ]
        if columns.counts is not None:
            kind = pl.Int64 if columns.weight is None else pl.Float64
            prepared.append(pl.col(columns.counts).cast(kind).alias("count"))
        return self.with_types(frame).select(prepared)

    def with_types(self, frame: Any) -> Any:
        """A frame with the types the job expects, one row for each record."""
        wanted = [name for name in (self.columns.value, self.columns.counts) if name is not None]
        if self.casts:
            frame = frame.with_columns(pl.col(name).cast(kind) for name, kind in self.casts)
        if self.listed:
            frame = frame.filter(pl.col(wanted[0]).list.len() > 0).explode(wanted)
        return frame

    @property
    def missing_outcome(self) -> int | None:
        """The outcome that nulls become, or None."""
        return self.domain.other_outcome if self.nulls == "other" else None

    def refuse(self, tally: Any, examples: Callable[[Callable[[Any], Any], str, int], list[Any]]) -> None:
        """Raise if values were missing or outside (`tally`) that may not be; `examples` finds a few of the latter."""
        column = self.columns.value
        if tally[0] and self.nulls == "error":
            raise DiscreetError(
                f"column {column!r} holds nulls; filter them out, or say nulls='drop' or 'other' (--nulls)"
            )
        if tally[1] and self.domain.other is None:
            mark = int(OUTSIDE)
            found = examples(
                lambda rows: self.with_types(rows).filter(self.domain.outcomes(column) == mark), column, FEW + 1
            )
            raise DiscreetError(
                f"column {column!r} holds values outside the domain: {few(found)}{self._meant(found)}; the domain is public and "
                "fixed: correct the records, or say other= (--other) which of its outcomes they become"
            )

    def _meant(self, found: list[Any]) -> str:
        """A label that the first value outside may be a slip of."""
        if not (isinstance(self.domain, Labels) and found and isinstance(found[0], str)):
            return ""
        near = difflib.get_close_matches(found[0], [str(label) for label in self.domain.labels], n=1, cutoff=0.75)
        return f" (did you mean {near[0]!r}?)" if near else ""


def few(items: Sequence[Any]) -> str:
    """The first few items, for a message."""
    return ", ".join(map(repr, items[:FEW])) + (" and more" if len(items) > FEW else "")
