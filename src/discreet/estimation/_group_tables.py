"""Tables of samples or reports by groups of clients: which group each client is in, counts of each group, and clients in two files.

A group is a public value of the client: a column of the table itself, or of a table of clients, joined by the names of clients. Names are
compared as everywhere else: integers and texts alike, texts by 128 bits of hash.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.estimation._counting import LARGEST
from discreet.estimation._sample_tables import (
    REPORT,
    ReportTally,
    SampleTally,
    client_column_name,
    hash_names,
    typed_column,
)
from discreet.mechanisms import ReportCounts
from discreet.tables import Source, client_name_texts, outcome_codes

NULL_GROUPS = ("error", "drop", "group")
NO_GROUP = "(no group)"  # the name of the clients without one
MOST_GROUPS = 10_000
MOST_SURVEYED_GROUPS = 200
_KEY, _GROUP, _WORDS = "key", "group of the client", ("word 1", "word 2")


@dataclass(frozen=True)
class ClientGroups:
    """Where the group of a client is found: a column of the samples, or of a table of clients.

    Attributes:
        column: of the groups.
        nulls: what clients without a group are: an error, left out ("drop"), or a group of their own ("group").
        table: the groups by the hashed names of clients; None: the column is one of the samples.
        listed: how many clients of the table are in each group.
    """

    column: str
    nulls: str = "error"
    table: pl.DataFrame | None = None
    listed: dict[str, int] | None = None

    @classmethod
    def read(cls, column: str, nulls: str, clients: Source | None, client: str | None) -> "ClientGroups":
        """The groups in a table of `clients`, whose column `client` names them; without a table, those of the samples.

        A client that the table names twice is an error.
        """
        if nulls not in NULL_GROUPS:
            raise DiscreetError(f"--null-groups {nulls}: say {', '.join(NULL_GROUPS[:-1])} or {NULL_GROUPS[-1]}")
        if clients is None:
            return cls(column, nulls)
        for needed in (column, client):
            if needed not in clients.schema:
                raise DiscreetError(
                    f"column {needed!r} is not in {clients.name}; it has {', '.join(map(repr, clients.schema))}"
                )
        assert client is not None
        parts = list(
            clients.frames(
                partial(_named_groups, name=client_name_texts(clients, client), group=group_texts(clients, column)),
                list(dict.fromkeys([client, column])),
                client=client,
            )
        )
        found = pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys([*_WORDS, _GROUP], pl.String))
        twice = found.height - found.unique(_WORDS).height
        if twice:
            raise DiscreetError(
                f"column {client!r} of {clients.name} names clients again in {twice:,} of {found.height:,} rows; a client has one row, and "
                "one group"
            )
        sizes = found.group_by(_GROUP).len().rows()
        return cls(column, nulls, found, {NO_GROUP if name is None else name: size for name, size in sizes})


def _named_groups(frame: Any, name: pl.Expr, group: pl.Expr) -> Any:
    named = frame.filter(name.is_not_null())
    return named.select(*(name.hash(seed=seed).alias(word) for seed, word in enumerate(_WORDS, start=1)), group)


def group_texts(source: Source, column: str) -> pl.Expr:
    """The groups of a column as texts; null where there is none."""
    kind = source.schema[column]
    if kind.is_nested() or kind == pl.Binary:
        raise DiscreetError(f"column {column!r} of {source.name} holds {kind}; a group is a text, a number or a date")
    group = pl.col(column)
    if kind.is_float():
        group = pl.when(group.is_not_nan()).then(group)
    text = group.cast(pl.String)
    return pl.when(text != "").then(text).alias(_GROUP)


def group_counts(
    source: Source, tallied: SampleTally | ReportTally, groups: ClientGroups, *, column: str, keep: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[np.uint64]], int]:
    """The counts of each group of a tallied source, its reports where they are to be kept, and how many clients were left out."""
    whole = pl.col(column).cast(pl.UInt64, strict=False)
    typed, codes = (whole, None) if isinstance(tallied, ReportTally) else typed_column(source, column, tallied.coding)
    counts: dict[str, Any] = {}
    kept: dict[str, list[NDArray[np.uint64]]] = {}
    most = max(1, min(MOST_GROUPS, LARGEST // tallied.coding.size))
    reader = _GroupReader(source, typed, groups, column, most)
    for called, part in reader.parts():
        keys = part[_KEY] if codes is None else part.select(outcome_codes(codes, _KEY)).to_series()
        numbers, often = keys.to_numpy(), part["number"].to_numpy()
        if isinstance(tallied, ReportTally):
            reports = np.repeat(numbers, often)
            counts.setdefault(called, ReportCounts(tallied.counts.sampler)).add(reports)
            if keep:
                kept.setdefault(called, []).append(reports)
        else:
            found = counts.setdefault(called, np.zeros(len(tallied.counts), dtype=np.int64))
            np.add.at(found, numbers.astype(np.int64), often.astype(np.int64))
    _check_total(source, tallied, reader.total)
    reader.check()
    ordered = {name: counts[name] for name in sorted(counts, key=_group_order)}
    return ordered, {name: np.concatenate(parts) for name, parts in kept.items()}, reader.missing


def survey_reports_by_group(
    source: Source, groups: ClientGroups, *, column: str = REPORT
) -> tuple[dict[str, NDArray[np.uint64]], int]:
    """The reports of each group on a survey, and how many clients were left out."""
    kept: dict[str, list[NDArray[np.uint64]]] = {}
    key = pl.col(column).cast(pl.UInt64, strict=False)
    reader = _GroupReader(source, key, groups, column, MOST_SURVEYED_GROUPS)
    for called, part in reader.parts():
        kept.setdefault(called, []).append(np.repeat(part[_KEY].to_numpy(), part["number"].to_numpy()))
    reader.check()
    return {name: np.concatenate(kept[name]) for name in sorted(kept, key=_group_order)}, reader.missing


class _GroupReader:
    """Reads a source by groups of clients.

    Attributes:
        total: how many clients were read.
        missing: how many of them have no group.
    """

    def __init__(self, source: Source, key: pl.Expr, groups: ClientGroups, column: str, most: int) -> None:
        self._source, self._key, self._groups, self._column, self._most = source, key, groups, column, most
        self._names: set[str] = set()
        self.total = self.missing = 0

    def parts(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Groups with frames of their keys and numbers; a group may come several times."""
        for frame in _frames_by_group(self._source, self._key, self._groups, self._column):
            self.total += int(frame["number"].sum())
            self.missing += int(frame.filter(pl.col(_GROUP).is_null())["number"].sum())
            if self._groups.nulls == "group":
                frame = frame.with_columns(pl.col(_GROUP).fill_null(NO_GROUP))
            for (name,), part in frame.drop_nulls(_GROUP).group_by(_GROUP):
                self._names.add(str(name))
                if len(self._names) > self._most:
                    raise DiscreetError(
                        f"column {self._groups.column!r} has more than {self._most:,} groups, too many for what is estimated in each; is it "
                        "one that names the clients themselves"
                    )
                yield str(name), part

    def check(self) -> None:
        """Refuse clients without a group, where they are an error, and a source without any group."""
        groups = self._groups
        if self.missing and groups.nulls == "error":
            where = f"column {groups.column!r}" + ("" if groups.table is None else " of the table of clients")
            raise DiscreetError(
                f"{self.missing:,} of {self.total:,} clients have no group in {where}; say --null-groups drop to leave them out, or "
                "--null-groups group to make them a group of their own"
            )
        if not self._names:
            raise DiscreetError(f"no client has a group in column {groups.column!r}; there is nothing to estimate")


def _group_order(name: str) -> tuple[bool, float, str]:
    """Numbers by their value, then texts, then clients without a group."""
    try:
        return name == NO_GROUP, float(name), name
    except ValueError:
        return name == NO_GROUP, np.inf, name


def _check_total(source: Source, tallied: SampleTally | ReportTally, total: int) -> None:
    counted = tallied.counts.reports if isinstance(tallied, ReportTally) else int(tallied.counts.sum())
    if total != counted:
        raise DiscreetError(f"{source.name} has changed since it was counted; start again")


def _frames_by_group(source: Source, key: pl.Expr, groups: ClientGroups, column: str) -> Iterator[pl.DataFrame]:
    """Frames with a group, a key and their number."""
    counted = pl.len().alias("number")
    if groups.table is None:
        if groups.column not in source.schema:
            raise DiscreetError(
                f"column {groups.column!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}. Give the table that has "
                "it: --clients-table FILE"
            )
        group, needed = group_texts(source, groups.column), list(dict.fromkeys([column, groups.column]))
        yield from source.frames(
            lambda frame: frame.select(key.alias(_KEY), group).group_by(_GROUP, _KEY).agg(counted), needed
        )
        return
    who = client_column_name(source, column)
    if who not in source.schema:
        raise DiscreetError(f"{source.name} does not name its clients, so no table of clients can be joined with it")
    name = client_name_texts(source, who)
    words = [name.hash(seed=seed).alias(word) for seed, word in enumerate(_WORDS, start=1)]
    for frame in source.frames(lambda rows: rows.select(key.alias(_KEY), *words), [column, who], client=who):
        joined = frame.join(groups.table, on=_WORDS, how="left")
        yield joined.group_by(_GROUP, _KEY).agg(counted)


@dataclass(frozen=True)
class SharedClients:
    """How many clients two files have: those of the first alone, of both, and of the second alone."""

    before: int
    both: int
    after: int


def shared_clients(before: Source, after: Source) -> SharedClients | None:
    """The clients of two files; None where one of them does not name its clients, or numbers them."""
    names = []
    for source in (before, after):
        column = client_column_name(source, REPORT if REPORT in source.schema else "sample")
        if source.numbered or column not in source.schema:
            return None
        name = client_name_texts(source, column)
        parts = list(source.frames(partial(hash_names, name=name, words=_WORDS), [column], client=column))
        names.append(pl.concat(parts).unique() if parts else pl.DataFrame())
    if not all(each.height for each in names):
        return None
    both = names[0].join(names[1], on=_WORDS, how="semi").height
    return SharedClients(names[0].height - both, both, names[1].height - both)
