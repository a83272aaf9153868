"""A release before it meets an engine: which columns, which domain, which mechanism, under which agreement, with which key."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.agreement import Agreement
from discreet.errors import DiscreetError, LargeEpsilonWarning, warn_caller
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import check_mechanism, sampler_named
from discreet.mechanisms.sampler import Sampler
from discreet.release.keyed import Question, RunKey, Secret, as_secret, fresh_secret
from discreet.tables.domains import Cells, Domain, Labels, Numbers, as_domain
from discreet.tables.marks import OUTSIDE, UNREADABLE, Tally
from discreet.tables.sources import FEW, few
from discreet.tables.terms import agreed, agreed_domain, agreed_family
from discreet.tradeoff import large_epsilon

NULLS = ("error", "drop", "other")
_UNREAD = "\0unread"  # a column of ours: no header can hold it


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
        names = self.names
        for name in names:
            if not isinstance(name, str) or not name:
                raise DiscreetError(f"{name!r} is not the name of a column")
        if len(set(names)) < len(names):
            raise DiscreetError(f"columns {', '.join(names)} are not all different")

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [self.client, self.value, *([] if self.counts is None else [self.counts])]

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
    show_values: bool = False

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
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
        secret: Secret | str | Path | None = None,
        agreement: Agreement | None = None,
        show_values: bool = False,
    ) -> "Request":
        """The request in the words of the public functions. Terms that are None come from the agreement, if there is one."""
        columns = Columns(client=client, value=value, count=count, weight=weight)
        secret = as_secret(secret)
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
                show_values=show_values,
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
            show_values=show_values,
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
        family = domain.family if self.agreement is None else agreed_family(self.agreement, domain)
        sampler = sampler_named(self.mechanism, family, epsilon=self.epsilon)
        if self.mechanism == "linear" and not isinstance(family, Simplex):
            raise DiscreetError(
                "mechanism = 'linear' on a band is for its members alone, and a table may hold others; agree on 'optimal', or on all laws"
            )
        if (doubt := large_epsilon(self.epsilon)) is not None:
            warn_caller(doubt, LargeEpsilonWarning)
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
            arrays=tuple(name for name in columns.names if isinstance(schema[name], pl.Array)),
            show_values=self.show_values,
            read_as=self._text_kind() if untyped and self._text_kind() != pl.String() else None,
        )

    def _text_kind(self) -> pl.DataType:
        match self.domain:
            case Labels():
                return pl.Int64() if isinstance(self.domain.labels[0], int) else pl.String()
            case Numbers():
                return pl.Int64()
            case Cells():
                return pl.Float64()

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
    sampler: Sampler[FiniteFamily]
    agreement: Agreement
    key: RunKey
    nulls: str
    integer_clients: bool
    listed: bool
    read_as: pl.DataType | None = None  # what texts stand for, if the values are to be numbers
    arrays: tuple[str, ...] = ()
    show_values: bool = False

    def prepared(self, frame: Any) -> Any:
        """A frame (lazy or not) as columns client, outcome and perhaps count: one row for each record.

        What cannot be read becomes a mark, a null client or a negative count: casts that fail would show what they failed on.
        """
        columns = self.columns
        client = pl.col(columns.client)
        outcome = self.domain.outcomes(columns.value)
        if self.read_as is not None:
            outcome = pl.when(_UNREAD).then(pl.lit(int(UNREADABLE), pl.UInt32)).otherwise(outcome)
        prepared = [
            client.cast(pl.Int64 if self.integer_clients else pl.String, strict=False).alias("client"),
            outcome.alias("outcome"),
        ]
        if columns.counts is not None:
            count = pl.col(columns.counts)
            number = count.cast(pl.Int64 if columns.weight is None else pl.Float64, strict=False)
            prepared.append(pl.when(count.is_not_null() & number.is_null()).then(-1).otherwise(number).alias("count"))
        return self.with_types(frame).select(prepared)

    def with_types(self, frame: Any) -> Any:
        """A frame with the types the job expects, one row for each record."""
        for name in self.arrays:
            frame = frame.with_columns(pl.col(name).arr.to_list())
        if self.listed:
            frame = self._each_of_the_lists(frame)
        if self.read_as is not None:
            text = pl.col(self.columns.value)
            number = text.cast(self.read_as, strict=False)
            frame = frame.with_columns(number, (text.is_not_null() & number.is_null()).alias(_UNREAD))
        return frame

    def _each_of_the_lists(self, frame: Any) -> Any:
        """One row for each value of a list; a list that is null or empty is a null, once: else its client would be gone unseen."""
        lists = [name for name in (self.columns.value, self.columns.counts) if name is not None]
        empty = pl.all_horizontal(pl.col(name).list.len().fill_null(0) == 0 for name in lists)
        stand_ins = zip(lists, (pl.Series([[None]]), pl.Series([[1]])), strict=False)
        filled = [pl.when(empty).then(pl.lit(one)).otherwise(pl.col(name)).alias(name) for name, one in stand_ins]
        return frame.with_columns(filled).explode(lists)

    @property
    def missing_outcome(self) -> int | None:
        """The outcome that nulls become, or None."""
        return self.domain.other_outcome if self.nulls == "other" else None

    def refuse(self, tally: Tally, rows: int, examples: Callable[[Callable[[Any], Any], str, int], list[Any]]) -> None:
        """Raise if values among the rows so far were missing or outside (`tally`) that may not be.

        Messages count; they show values, which are a client's own, only if that was asked for. `examples` then finds a few.
        """
        column = self.columns.value
        where = f"in {rows:,} rows"
        if tally.unreadable:
            what = "numbers" if isinstance(self.domain, Cells) else "whole numbers of 64 bits"
            raise DiscreetError(
                f"column {column!r} holds texts that are no {what} ({tally.unreadable:,} {where}); correct them"
            )
        for number, what in (
            (tally.nulls, "nulls or empty lists" if self.listed else "nulls"),
            (tally.not_numbers, "NaN"),
        ):
            if number and self.nulls == "error":
                raise DiscreetError(
                    f"column {column!r} holds {what} ({number:,} {where}); filter them out, or say nulls='drop' or 'other' (--nulls)"
                )
        if tally.outside and self.domain.other is None:
            mark, shown = int(OUTSIDE), ""
            if self.show_values:
                found = examples(
                    lambda rows: self.with_types(rows).filter(self.domain.outcomes(column) == mark), column, FEW + 1
                )
                shown = f", such as {few(found)}{self._meant(found)}"
            raise DiscreetError(
                f"column {column!r} holds values outside the domain ({tally.outside:,} {where}{shown}); the domain is public and "
                "fixed: correct the records, or say other= (--other) which of its outcomes they become"
                + ("" if shown else "; show_values=True (--show-values) shows some of them")
            )

    def _meant(self, found: list[Any]) -> str:
        """A label that the first value outside may be a slip of."""
        if not (isinstance(self.domain, Labels) and found and isinstance(found[0], str)):
            return ""
        near = difflib.get_close_matches(found[0], [str(label) for label in self.domain.labels], n=1, cutoff=0.75)
        return f" (did you mean {near[0]!r}?)" if near else ""
