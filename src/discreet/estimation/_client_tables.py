"""The clients of tables of samples or reports: told apart, counted in two files, and found in public groups.

If records name their clients, a repeated client is an error, because samples of one client are not those of several (`RepeatedClientCheck`).
Names are compared as everywhere else: integers and texts alike, texts by 128 bits of hash. Beyond `MOST_TOLD_APART` records a part of the
clients is checked, which detects a release that came twice, though not every single repeated client.

`refuse_clients_in_several_sources` raises an error for clients in several files: a client who released under two agreements has spent
twice, and counts twice in what is learned from both. Files without client names cannot be checked, and the caller is told so.
`count_shared_and_unshared_clients` counts the clients that two files have in common.

A group is a public value of the client: a column of the table itself, or of a table of clients, joined by the names of clients
(`ClientGroups`). `GroupReader` reads a table by groups.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from discreet.domain import column_expression
from discreet.errors import DiscreetError
from discreet.tables import (
    Source,
    client_names_expression,
    is_integer_client_type,
    refuse_missing_columns,
    samples_without_spreadsheet_guard,
)

REPORT, AGREEMENT = "report", "agreement"  # columns of a release
KEY, NUMBER = "key", "number"  # columns of what is counted
NULL_GROUPS = ("error", "drop", "group")
NO_GROUP = "(no group)"  # the name of the clients without one
MOST_TOLD_APART = 2**25  # records, of 8 or 16 bytes each
_CLIENT, _NOBODY, _GROUP, _WORDS = "name of the client", "of nobody", "group of the client", ("word 1", "word 2")


def client_column_of_source(source: Source, sample: str = "sample") -> str:
    """The column of clients: the first one of a release, under any name; elsewhere the one called client."""
    first, *others = source.schema
    if "client" in others:
        return "client"
    return first if others[:2] in ([name, AGREEMENT] for name in (sample, "sample", REPORT)) else "client"


def client_names_as_texts_expression(source: Source, column: str) -> pl.Expr:
    """The clients in a column of samples as texts, one text for each client, in any file format."""
    kind = source.schema[column]
    name = (
        client_names_expression(column, kind)
        if is_integer_client_type(kind)
        else samples_without_spreadsheet_guard(source, column)
    )
    return name.cast(pl.String)


def client_hash_expressions(name: pl.Expr) -> list[pl.Expr]:
    """Expressions of polars for the names of clients as 128 bits of hash, in two columns."""
    return [name.hash(seed=seed).alias(word) for seed, word in enumerate(_WORDS, start=1)]


def _read_distinct_client_hashes(source: Source, sample: str) -> pl.DataFrame | None:
    """The different clients of a source, by the hashes of their names; None where it does not name them, or numbers them."""
    column = client_column_of_source(source, sample)
    if source.numbered or column not in source.schema:
        return None
    words = client_hash_expressions(client_names_as_texts_expression(source, column))
    parts = list(source.read_prepared_frames(lambda frame: frame.select(words), [column], client=column))
    return pl.concat(parts).unique() if parts else pl.DataFrame(schema=dict.fromkeys(_WORDS, pl.UInt64))


def read_samples_by_client(source: Source, column: str, sample: pl.Expr, client: str, rounds: int) -> NDArray[Any]:
    """The samples of each client, (n, rounds), in memory. `sample`: how their column is read."""
    if client not in source.schema:
        raise DiscreetError(
            f"to tell {rounds} samples of each client apart needs records that name their clients, and {source.name} has no column {client!r}"
        )
    parts = list(
        source.read_prepared_frames(
            lambda frame: frame.select(column_expression(client).alias(_CLIENT), sample.alias(KEY)),
            list(dict.fromkeys([client, column])),
            client=client,
        )
    )
    samples = pl.concat(parts).group_by(_CLIENT).agg(pl.col(KEY))
    counts = samples[KEY].list.len().to_numpy()
    if (counts != rounds).any():
        raise DiscreetError(
            f"column {client!r} of {source.name} names clients {int(counts.min())} to {int(counts.max())} times, not "
            f"{rounds} times each; give the samples of as many rounds, and leave out clients that missed one"
        )
    return np.array(samples[KEY].to_list(), dtype=object)


class RepeatedClientCheck:
    """A check that each client occurs once."""

    def __init__(self, source: Source, column: str) -> None:
        self._where = f"column {column!r} of {source.name}"
        is_integer = source.schema[column].is_integer()
        name = column_expression(column) if is_integer else client_names_as_texts_expression(source, column)
        words = [name.alias(_WORDS[0])] if is_integer else client_hash_expressions(name)
        self._called = _WORDS[: len(words)]
        self.told = [name.is_null().alias(_NOBODY), *words]
        self._parts = 1  # one in so many clients is remembered
        self._seed = int.from_bytes(os.urandom(4))  # so nobody knows which
        self._seen: list[pl.DataFrame] = []
        self._remembered = 0

    def remember_clients(self, frame: pl.DataFrame) -> None:
        """Remember the clients of a frame; where there is room for a part of them, those of some hashes."""
        if frame[_NOBODY].any():
            raise DiscreetError(f"{self._where} holds nulls: samples without a client; filter them out")
        self._seen.append(self._select_hashes_to_remember(frame.select(self._called)))
        self._remembered += self._seen[-1].height
        while self._remembered > MOST_TOLD_APART:
            self.refuse_repeated_clients()  # clients that are forgotten now came once so far
            self._parts *= 2
            self._seen = [self._select_hashes_to_remember(hashes) for hashes in self._seen]
            self._remembered = sum(hashes.height for hashes in self._seen)

    def _select_hashes_to_remember(self, words: pl.DataFrame) -> pl.DataFrame:
        return (
            words if self._parts < 2 else words.filter(pl.col(self._called[0]).hash(seed=self._seed) % self._parts == 0)
        )

    def refuse_repeated_clients(self) -> None:
        """Raise an error for repeated clients, with the number of records."""
        if not self._seen:
            return
        clients = pl.concat(self._seen)
        words = np.sort(clients[self._called[0]].to_numpy())
        repeated_words = words[1:][words[1:] == words[:-1]]
        if not len(repeated_words):
            return
        candidates = clients.filter(pl.col(self._called[0]).is_in(pl.Series(repeated_words).unique().implode()))
        repeats = candidates.height - candidates.unique().height
        if repeats:
            raise DiscreetError(
                f"{self._where} names the same clients again in {repeats:,} of {clients.height:,} records: samples of several rounds, or "
                "one release twice. Give those of one round, or say how many samples of each client there are: --rounds"
            )


def refuse_clients_in_several_sources(sources: Sequence[Source], sample: str = "sample") -> bool:
    """Raise an error for clients in several sources; return whether all sources name their clients. Numbered rows are no names.

    `sample`: the column of samples or reports, beside which releases have that of clients.
    """
    earlier, are_named = pl.DataFrame(schema=dict.fromkeys(_WORDS, pl.UInt64)), True
    for source in sources:
        clients = _read_distinct_client_hashes(source, sample)
        if clients is None:
            are_named = False
            continue
        shared_count = clients.join(earlier, on=_WORDS, how="semi").height
        if shared_count:
            raise DiscreetError(
                f"{shared_count:,} of the {clients.height:,} clients in {source.name} occur in another file too: a client with "
                f"two samples has spent two budgets; leave one of them out"
            )
        earlier = pl.concat([earlier, clients])
    return are_named


def refuse_names_that_are_no_row_numbers(source: Source, sample: str = "sample") -> None:
    """Raise an error for a source whose clients are not different whole numbers, as the rows of an export are."""
    column = client_column_of_source(source, sample)
    if source.numbered or column not in source.schema:
        return
    number = client_names_as_texts_expression(source, column).cast(pl.Int64, strict=False).alias(_CLIENT)
    parts = source.read_prepared_frames(lambda frame: frame.select(number), [column], client=column)
    numbers = pl.concat([*parts, pl.DataFrame(schema={_CLIENT: pl.Int64})])[_CLIENT]
    if numbers.null_count() or numbers.n_unique() < len(numbers) or (numbers < 0).any():
        raise DiscreetError(
            f"column {column!r} of {source.name} does not number rows: it holds other texts, or a number twice. So it can be checked that no "
            "client is in two files; leave out --numbered"
        )


@dataclass(frozen=True)
class SharedClients:
    """How many clients two files have: those of the first alone, of both, and of the second alone."""

    before: int
    both: int
    after: int


def count_shared_and_unshared_clients(before: Source, after: Source, sample: str = "sample") -> SharedClients | None:
    """How many clients two files share, and how many are in one alone.

    None where one of them has no clients, does not name them, or numbers them.
    """
    earlier, later = _read_distinct_client_hashes(before, sample), _read_distinct_client_hashes(after, sample)
    if earlier is None or later is None or not (earlier.height and later.height):
        return None
    both = earlier.join(later, on=_WORDS, how="semi").height
    return SharedClients(earlier.height - both, both, later.height - both)


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
        assert client is not None
        refuse_missing_columns([column, client], clients)
        name, group = client_names_as_texts_expression(clients, client), group_text_expression(clients, column)

        def select_hashes_and_groups(frame: Any) -> Any:
            return frame.filter(name.is_not_null()).select(*client_hash_expressions(name), group)

        parts = list(
            clients.read_prepared_frames(select_hashes_and_groups, list(dict.fromkeys([client, column])), client=client)
        )
        table = (
            pl.concat(parts) if parts else pl.DataFrame(schema={**dict.fromkeys(_WORDS, pl.UInt64), _GROUP: pl.String})
        )
        repeats = table.height - table.unique(_WORDS).height
        if repeats:
            raise DiscreetError(
                f"column {client!r} of {clients.name} names clients again in {repeats:,} of {table.height:,} rows; a client has one row, and "
                "one group"
            )
        sizes = table.group_by(_GROUP).len().rows()
        return cls(column, nulls, table, {NO_GROUP if name is None else name: size for name, size in sizes})


def group_text_expression(source: Source, column: str) -> pl.Expr:
    """The groups of a column as texts; null where there is none."""
    kind = source.schema[column]
    if kind.is_nested() or kind == pl.Binary:
        raise DiscreetError(f"column {column!r} of {source.name} holds {kind}; a group is a text, a number or a date")
    group = column_expression(column)
    if kind.is_float():
        group = pl.when(group.is_not_nan()).then(group)
    text = group.cast(pl.String)
    return pl.when(text != "").then(text).alias(_GROUP)


class GroupReader:
    """Reads a source by groups of clients.

    Attributes:
        total: how many clients were read.
        missing: how many of them have no group.
    """

    def __init__(self, source: Source, key: pl.Expr, groups: ClientGroups, column: str, most: int) -> None:
        if groups.table is None and groups.column == column:
            raise DiscreetError(
                f"column {column!r} of {source.name} holds what clients released, which is alike in each of its groups and tells nothing "
                "there; name a public column of the clients"
            )
        self._source, self._key, self._groups, self._column, self._most = source, key, groups, column, most
        self._names: set[str] = set()
        self.total = self.missing = 0

    def read_frames_by_group(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Groups with frames of their keys and numbers; a group may come several times."""
        for frame in _count_keys_by_group_in_batches(self._source, self._key, self._groups, self._column):
            self.total += int(frame[NUMBER].sum())
            self.missing += int(frame.filter(pl.col(_GROUP).is_null())[NUMBER].sum())
            if self._groups.nulls == "group":
                self._refuse_group_called_like_no_group(frame)
                frame = frame.with_columns(pl.col(_GROUP).fill_null(NO_GROUP))
            for (name,), part in frame.drop_nulls(_GROUP).group_by(_GROUP):
                self._names.add(str(name))
                if len(self._names) > self._most:
                    raise DiscreetError(
                        f"column {self._groups.column!r} has more than {self._most:,} groups, too many for what is estimated in each; is it "
                        "one that names the clients themselves"
                    )
                yield str(name), part

    def _refuse_group_called_like_no_group(self, frame: pl.DataFrame) -> None:
        """Refuse a group whose name is that of the clients without one, with which it would be joined."""
        if (frame[_GROUP] == NO_GROUP).any():
            raise DiscreetError(
                f"column {self._groups.column!r} has a group called {NO_GROUP!r}, as --null-groups group calls the clients without one; "
                "rename it, or say --null-groups drop"
            )

    def refuse_clients_without_group(self) -> None:
        """Refuse clients without a group, where they are an error, and a source without any group."""
        groups = self._groups
        if groups.table is not None and self.missing == self.total and groups.table[_GROUP].count():
            raise DiscreetError(
                f"none of the {self.total:,} clients in {self._source.name} has a group in column {groups.column!r} of the table of clients; "
                "write the names of clients alike in both (1, not 1.0), or say which column has them: --client COLUMN"
            )
        if self.missing and groups.nulls == "error":
            where = f"column {groups.column!r}" + ("" if groups.table is None else " of the table of clients")
            raise DiscreetError(
                f"{self.missing:,} of {self.total:,} clients have no group in {where}; say --null-groups drop to leave them out, or "
                "--null-groups group to make them a group of their own"
            )
        if not self._names:
            raise DiscreetError(f"no client has a group in column {groups.column!r}; there is nothing to estimate")


def group_sort_key(name: str) -> tuple[bool, float, str]:
    """Numbers by their value, then texts, then clients without a group."""
    try:
        number = float(name)
    except ValueError:
        number = np.inf
    # a text such as "nan" is no number: it has no place among them
    return name == NO_GROUP, np.inf if np.isnan(number) else number, name


def _count_keys_by_group_in_batches(
    source: Source, key: pl.Expr, groups: ClientGroups, column: str
) -> Iterator[pl.DataFrame]:
    """How often each key occurs in each group: frames of groups, keys and numbers."""
    count = pl.len().alias(NUMBER)
    if groups.table is None:
        if groups.column not in source.schema:
            raise DiscreetError(
                f"column {groups.column!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}. Give the table that has "
                "it: --clients-table FILE"
            )
        group, needed_columns = (
            group_text_expression(source, groups.column),
            list(dict.fromkeys([column, groups.column])),
        )
        yield from source.read_prepared_frames(
            lambda frame: frame.select(key.alias(KEY), group).group_by(_GROUP, KEY).agg(count), needed_columns
        )
        return
    client_column = client_column_of_source(source, column)
    if client_column not in source.schema:
        raise DiscreetError(f"{source.name} does not name its clients, so no table of clients can be joined with it")
    words = client_hash_expressions(client_names_as_texts_expression(source, client_column))
    for frame in source.read_prepared_frames(
        lambda rows: rows.select(key.alias(KEY), *words), [column, client_column], client=client_column
    ):
        joined_frame = frame.join(groups.table, on=_WORDS, how="left")
        yield joined_frame.group_by(_GROUP, KEY).agg(count)
