"""A release before it is made: every value of a table that is not in its domain, counted, and rows that name no client. Nothing is
drawn, charged or written.

What it finds are clients' own values. It is for whoever may read the table anyway, to correct the records or the domain's spelling; a
domain that is made of them is inferred from the data, and tells what they hold.
"""

from dataclasses import dataclass
from typing import Any, Unpack

import polars as pl

from discreet._tables._marks import MARK_MISSING, MARK_NAN
from discreet._tables._sources import Source, source_of
from discreet.engines._request import Request, RequestTerms


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """What a table holds that its domain does not. THIS IS PRIVATE: the values are clients' own.

    Attributes:
        rows: how many there are.
        nameless: rows without a client (null, or an integer past 64 bits); a release refuses them.
        nulls: rows without a value (null, or an empty list).
        not_numbers: rows whose value is NaN.
        outside: {value: how many rows hold it} for every value outside the domain, most frequent first.
    """

    rows: int
    nameless: int
    nulls: int
    not_numbers: int
    outside: dict[Any, int]


def dry_run(table: Any, **terms: Unpack[RequestTerms]) -> DryRun:
    """Every value of a table that is outside the domain, with how many rows hold it. The answer is private.

    Args:
        table: as `sample` takes it.
        terms: the keywords of `Request`.

    Returns:
        The counts, as a `DryRun`.

    Raises:
        DiscreetError: for what cannot be read, or asked for.
    """
    return find_misfits(source_of(table), Request(**terms))


def find_misfits(source: Source, request: Request) -> DryRun:
    """What a source holds that the domain of a request does not."""
    reading = request.reading(source.schema, untyped=source.is_untyped, where=source.name)
    parts = list(source.frames(reading.count_misfits, reading.columns.names, client=reading.columns.client))
    found = (
        pl.concat(parts).group_by("mark", "value").agg(pl.col("rows", "nameless").sum()) if parts else pl.DataFrame()
    )
    if not found.height:
        return DryRun(rows=0, nameless=0, nulls=0, not_numbers=0, outside={})

    def many(mark: Any) -> int:
        return int(found.filter(pl.col("mark") == int(mark))["rows"].sum())

    absent = pl.col("mark").is_null() | pl.col("mark").is_in([int(MARK_MISSING), int(MARK_NAN)])
    outside = found.filter(~absent).group_by("value").agg(pl.col("rows").sum())
    outside = outside.sort(["rows", "value"], descending=[True, False])
    return DryRun(
        rows=int(found["rows"].sum()),
        nameless=int(found["nameless"].sum()),
        nulls=many(MARK_MISSING),
        not_numbers=many(MARK_NAN),
        outside=dict(zip(outside["value"].to_list(), outside["rows"].to_list(), strict=True)),
    )
