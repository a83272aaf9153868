"""The columns of a table: their names, and how each is read, in polars expressions.

`Columns` names them. `ValueColumn` states how a column of values becomes outcomes of its public domain, and raises the error for values that
have none. Messages count rows; they show values, which are private, only on request.

**Names of clients** are 64-bit integers or texts. A name that is read differently than before is a new client, with a new budget. Whole
floats are therefore read as integers (a missing id turns a column of integers into floats in pandas), as long as no two integers could have
become one float. Truth values, dates and other numbers are errors. Nulls and NaN are rows without a client.

Several columns name a client together by a JSON list of their texts, `["7","north"]`: the list can be read in one way, so that no two
clients share a name. 7 and "7" are one text, as they are one client in a column of its own; dates are written 2026-11-17. A row with a null
in one of the columns has no client.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from discreet._base.files import read_lines
from discreet.domain import (
    MARK_OUTSIDE,
    MARK_UNREADABLE,
    NEAREST,
    Coding,
    Labels,
    MisfitCounts,
    codes_or_misfit_marks_expression,
    column_expression,
    fit_coding_to_column,
    is_whole_number_text,
    outcome_codes_expression,
    spelling_hint,
)
from discreet.errors import ClientNameWarning, DiscreetError, check_kind, warn_caller
from discreet.tables._sources import (
    TEXT_KINDS,
    TEXTS,
    arrow_column_as_polars_series,
    cast_column,
    check_batch,
    column_without_dictionaries,
    detect_file_format,
    examples_as_text,
    file_source,
    is_text_type,
    polars_schema_of_arrow,
    refuse_missing_columns,
    table_ending_without_gz,
)

_WHOLE_BELOW = {pl.Float32(): 2**24, pl.Float64(): 2**53}  # below this, different integers are different floats
_AS_FLOATS = r"^(-?[0-9]+)\.0+$"
_NAME, _FORM = "hash of the name", "hash of its form"
_NAMES_TO_MERGE, MOST_NAMES = 1 << 20, 1 << 24  # of 16 bytes each
# texts that libraries write for missing values
_AS_MISSING = ("nan", "NaN", "NAN", "None", "null", "NULL", "<NA>", "NaT")
_DROP = ": null_clients='drop' (--null-clients drop)"
_LOOKED_AT = 1000  # names to inspect
_ESCAPED = {chr(code): json.dumps(chr(code))[1:-1] for code in (*range(32), *map(ord, '"\\'))}  # as JSON writes them
_UNREAD = "\0unread "  # a column of ours: no header has such a name
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # which no UTF-8 text holds
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of a table's columns: client, value, and optionally `count` or `weight`.

    Several columns may name a client together. A survey has several columns of values, in a tuple.
    """

    client: str | Sequence[str]
    value: str | tuple[str, ...]
    count: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.weight is not None:
            raise DiscreetError("give a count column (whole numbers) or a weight column (any numbers), not both")
        if not isinstance(self.client, str):
            check_kind("client", self.client, Sequence, "name a column, or several in a list")
            columns = tuple(self.client)
            for name in columns:
                check_kind("client", name, str, "name a column, or several in a list")
            object.__setattr__(self, "client", columns[0] if len(columns) == 1 else columns)
        names = self.all_column_names
        if not self.client_columns:
            raise DiscreetError("client is an empty list; name the column of clients")
        for name in names:
            if not isinstance(name, str) or not name:
                raise DiscreetError(f"{name!r} is not the name of a column")
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise DiscreetError(
                f"column {repeated!r} is named twice; clients, values and counts are different columns, and each is named once"
            )

    @property
    def client_columns(self) -> tuple[str, ...]:
        """The columns that name a client, in order."""
        return (self.client,) if isinstance(self.client, str) else tuple(self.client)

    @property
    def client_columns_text(self) -> str:
        """These columns in messages."""
        return (
            f"column {self.client!r}"
            if isinstance(self.client, str)
            else f"the key of columns {', '.join(map(repr, self.client))}"
        )

    @property
    def all_column_names(self) -> list[str]:
        """The names of all columns that are read: of clients, values, and counts or weights."""
        return [
            *self.client_columns,
            *self.value_columns,
            *([] if self.count_or_weight_column is None else [self.count_or_weight_column]),
        ]

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns of values."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def value_columns_text(self) -> str:
        """The column of values; of a survey the JSON list of its columns."""
        return json.dumps(self.value, ensure_ascii=False) if isinstance(self.value, tuple) else self.value

    @property
    def count_or_weight_column(self) -> str | None:
        """The count or weight column, if any."""
        return self.count if self.weight is None else self.weight

    @property
    def count_or_weight_numpy_dtype(self) -> Any:
        """The numpy type of counts (integers) or weights (floats)."""
        return np.int64 if self.weight is None else np.float64


def is_integer_client_type(kind: Any) -> bool:
    """Whether a column of that type names clients by integers."""
    return bool(kind.is_integer() or kind in _WHOLE_BELOW)


def bound_of_exact_integers_in_float_type(kind: Any) -> int:
    """The bound below which different integers are different floats of that type."""
    return _WHOLE_BELOW[kind]


def refuse_unusable_client_type(where: str, kind: Any, *, shown: Any = None) -> None:
    """Raise an error for a column whose type cannot name clients. `shown`: the type's name in messages."""
    if not (is_integer_client_type(kind) or kind in TEXT_KINDS):
        type_text = kind if shown is None else shown
        raise DiscreetError(
            f"{where} holds {type_text} values; clients are texts or integers: {_advice_for_client_type(kind)}"
        )


def warn_if_client_column_holds_floats(where: str, kind: Any) -> None:
    """Warn if a column of that type holds floats, which are read as integers."""
    if kind in _WHOLE_BELOW:
        warn_caller(
            f"{where} holds floats: whole ones are read as the integers that they stand for, 1.0 as client 1. If an earlier release cast "
            "them to text, its clients were called '1.0', and these are others to a ledger",
            ClientNameWarning,
        )


def _advice_for_client_type(kind: Any) -> str:
    """The fix for a column of another type, such that the next release has the same clients."""
    if kind == pl.Boolean:
        return "name each of them by one of its own"
    if kind.is_decimal():
        return "cast it to integers of 64 bits"
    if kind == pl.Null:
        return "leave out rows without a client"
    return "write them as texts, in the same form in every release, since another form is another client"


def refuse_unusable_composite_client_type(where: str, kind: Any) -> None:
    """Raise an error for a column that cannot be one of several that name clients."""
    if kind != pl.Date:
        refuse_unusable_client_type(where, kind)


def composite_client_name(texts: Iterable[str]) -> str:
    """The name of a client that several columns name together, from the text of each."""
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":"))


def _part_of_client_name_as_text(part: Any) -> str | None:
    """A text, a 64-bit integer or a date as `composite_client_names_expression` writes it; None for a value that no such column holds."""
    if isinstance(part, np.datetime64) and np.datetime_data(part.dtype)[0] == "D":
        part = part.item()  # a date; None or an integer if it has none
        return part.isoformat() if isinstance(part, date) else None
    if isinstance(part, date) and not isinstance(part, datetime):
        return part.isoformat()
    if isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.timedelta64)):
        return str(int(part)) if -(2**63) <= int(part) < 2**63 else None
    return str.__str__(part) if isinstance(part, str) and _LONE_SURROGATE.search(part) is None else None


def composite_client_names_expression(columns: Sequence[str], kinds: Sequence[Any]) -> pl.Expr:
    """The names of clients by several columns; null where one of them has none."""
    texts: list[pl.Expr] = []
    for column, kind in zip(columns, kinds, strict=True):
        part = (column_expression(column) if kind == pl.Date else client_names_expression(column, kind)).cast(pl.String)
        if kind in TEXT_KINDS:
            part = part.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))
        texts += [pl.lit('["' if not texts else '","'), part]
    return pl.concat_str(*texts, pl.lit('"]'))


def client_names_expression(column: str, kind: Any) -> pl.Expr:
    """The clients as integers or texts; null for a missing name or a number that is not a 64-bit integer."""
    name = column_expression(column)
    if kind in _WHOLE_BELOW:
        is_whole = (
            name.is_finite() & (name == name.floor()) & (name.abs() < bound_of_exact_integers_in_float_type(kind))
        )
        return pl.when(is_whole).then(name.cast(pl.Int64, strict=False))
    return name.cast(pl.Int64 if kind.is_integer() else pl.String, strict=False)


def missing_client_name_expression(column: str, kind: Any) -> pl.Expr:
    """Whether a row has no client: null or NaN, and not a number that cannot be a name."""
    name = column_expression(column)
    return name.is_null() | name.is_nan() if kind.is_float() else name.is_null()


def message_for_rows_without_client(where: str, kind: Any, number: int, rows: int, *, droppable: bool = True) -> str:
    """The error for rows without a client, with the fix. `droppable`: whoever reads the table can say that they are to be left out."""
    option = _DROP if droppable else ""
    if kind in _WHOLE_BELOW:
        limit = bound_of_exact_integers_in_float_type(kind).bit_length() - 1
        return (
            f"{where} holds floats that name no client ({number:,} in {rows:,} rows): clients are texts or integers, and these are NaN, "
            f"null, not whole, or past 2^{limit}, where two integers become one float. Leave out rows without a client{option}; where others "
            "are left, read the ids as integers or texts from the start, since these floats have lost digits"
        )
    if kind in (pl.UInt64, pl.Int128):
        return (
            f"{where} holds nulls, or integers past 64 bits ({number:,} in {rows:,} rows). Leave out rows without a client "
            f"first{option}, then cast the column to text: 7 and '7' are one client"
        )
    return f"{where} holds nulls ({number:,} in {rows:,} rows): a record without a client is nobody's; leave those rows out{option}"


def warn_of_suspicious_client_names(column: str, names: pl.Series, *, first: bool) -> None:
    """Warn of texts that look like missing values or floats cast to text (the latter if these are the first names of a table)."""
    missing = names.filter(names.is_in(pl.Series(_AS_MISSING).implode()))
    if len(missing):
        warn_caller(
            f"column {column!r} names a client {missing[0]!r}, which is how a missing value looks once it was cast to text: if these "
            "rows have no client, leave them out before you cast",
            ClientNameWarning,
        )
    first_names = names.head(_LOOKED_AT if first else 0)
    floats = first_names.filter(first_names.str.contains(_AS_FLOATS))
    integers = floats.str.replace(_AS_FLOATS, "$1")
    if names.is_in(integers.implode()).any():
        warn_caller(
            f"column {column!r} names clients both as integers and as floats are written, as '1' and '1.0': these are two clients, each "
            "with a sample and a budget. If they are one, give the names one form before the first release",
            ClientNameWarning,
        )
    elif len(floats) and len(floats) == len(first_names):
        warn_caller(
            f"column {column!r} names clients as floats are written ('1.0'). To a ledger or a secret '1.0' and '1' are two clients, each "
            "with a budget: go on with the names that were released first. Only before the first release write '1' where they are integers",
            ClientNameWarning,
        )
    if first_names.n_unique() > pl.select(_name_in_one_form(pl.lit(first_names), floats=False)).to_series().n_unique():
        warn_caller(
            f"column {column!r} names clients that differ only in case or spaces: these are several clients, each with a sample and a "
            "budget. If they are one, give the names one form before the first release; dry_run (--dry-run) counts them",
            ClientNameWarning,
        )


def name_hash_expressions(name: pl.Expr) -> list[pl.Expr]:
    """Expressions for texts that name clients as two numbers: one of the text, and one of its form without case, spaces and '.0'."""
    return [name.hash(seed=1).alias(_NAME), _name_in_one_form(name, floats=True).hash(seed=1).alias(_FORM)]


def _name_in_one_form(name: pl.Expr, *, floats: bool) -> pl.Expr:
    """A name without differences of case and spaces; with `floats` also '1.0' as '1'."""
    form = name.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    integer_form = form.str.strip_chars_end("0").str.strip_chars_end(".")  # faster than the group of the pattern
    return pl.when(form.str.contains(_AS_FLOATS)).then(integer_form).otherwise(form) if floats else form


class NamesInSeveralForms:
    """How many different names differ from another only in case, in spaces, or as '1' and '1.0' do.

    Names are remembered as `name_hash_expressions`, by 8 bytes if they are in their form already, else by 16. Beyond `MOST_NAMES` a part of
    them is remembered, so that fewer may be counted.
    """

    def __init__(self) -> None:
        self._new, self._new_count = list[pl.DataFrame](), 0
        self._plain = pl.Series(_FORM, dtype=pl.UInt64)  # names that are their own form
        self._others = pl.DataFrame(schema=dict.fromkeys((_NAME, _FORM), pl.UInt64))
        self._parts = 1  # the names of one form in so many are remembered

    def add(self, names: pl.DataFrame) -> None:
        """Add hashed names, which may repeat."""
        self._new.append(names.select(_NAME, _FORM))
        self._new_count += names.height
        if self._new_count > max(_NAMES_TO_MERGE, len(self._plain) + self._others.height):
            self._remember_new_names()

    def _remember_new_names(self) -> None:
        names = self._keep_sampled_names(pl.concat([self._others, *self._new]))
        self._new, self._new_count = [], 0
        is_plain = names[_NAME] == names[_FORM]
        self._plain = self._plain.append(names.filter(is_plain)[_FORM]).unique()
        self._others = names.filter(~is_plain).unique()
        while len(self._plain) + self._others.height > MOST_NAMES:
            self._parts *= 2
            self._plain = self._plain.filter(self._plain % self._parts == 0)
            self._others = self._keep_sampled_names(self._others)

    def _keep_sampled_names(self, names: pl.DataFrame) -> pl.DataFrame:
        return names if self._parts == 1 else names.filter(pl.col(_FORM) % self._parts == 0)

    def count(self) -> int:
        """The number of names that have another form."""
        self._remember_new_names()
        is_plain_too = pl.col(_FORM).is_in(self._plain.implode()).any().cast(pl.UInt32)
        numbers = self._others.group_by(_FORM).agg((pl.len() + is_plain_too).alias("names"))["names"]
        return int(numbers.filter(numbers > 1).sum())


def normalise_client_names(clients: pa.Array) -> pa.Array:
    """A checked column of clients as 64-bit integers or as texts."""
    if pa.types.is_dictionary(clients.type) and is_text_type(clients.type.value_type):
        clients = column_without_dictionaries(clients)
        if clients.null_count:  # a null word of the dictionary, not visible in the indices
            raise DiscreetError(f"column 'client' holds {clients.null_count} nulls; leave those rows out")
    return _client_names_as_integers_or_texts("column 'client'", clients)


def _client_names_as_integers_or_texts(where: str, clients: pa.Array) -> pa.Array:
    """A column without dictionaries and nulls as 64-bit integers or as texts."""
    if is_text_type(clients.type):
        return cast_column(clients, pa.large_string())
    if pa.types.is_integer(clients.type):
        try:
            return cast_column(clients, pa.int64())
        except pa.ArrowInvalid:
            raise DiscreetError(
                f"{where} holds integers past 2^63 - 1; cast it to text: 7 and '7' are one client"
            ) from None
    kind = polars_schema_of_arrow(pa.schema([("client", clients.type)]), where)["client"]
    refuse_unusable_client_type(where, kind, shown=clients.type)
    names = (
        pl.DataFrame({"client": arrow_column_as_polars_series(column_without_dictionaries(clients))})
        .select(client_names_expression("client", kind))
        .to_series()
    )
    if names.null_count():
        raise DiscreetError(
            message_for_rows_without_client(where, kind, names.null_count(), len(names), droppable=False)
        )
    warn_if_client_column_holds_floats(where, kind)
    return names.to_arrow()


def client_names_from_list_or_file(clients: Any, columns: Columns, *, integers: bool) -> pa.Array:
    """All clients as 64-bit integers or as texts: from a list, an Arrow column or the Path of a file. Arrow data are checked in full first.

    `integers`: whether those of the table are integers.
    """
    if isinstance(clients, Path):
        clients = read_client_list_file(clients, columns.client, integers=integers)
    elif not isinstance(columns.client, str):
        clients = _composite_clients_as_texts(clients, len(columns.client), "clients")
    if isinstance(clients, (str, bytes, Mapping)):  # else each letter would be a client
        raise DiscreetError(
            f"clients is a {type(clients).__name__}; pass a list of texts or of integers, or the Path of a file that lists them"
        )
    try:
        column = clients.to_arrow() if isinstance(clients, pl.Series) else clients
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = pa.array(column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        batches = [pa.RecordBatch.from_arrays([chunk], names=["client"]) for chunk in chunks]
        arrays = [column_without_dictionaries(check_batch(batch, "clients").column(0)) for batch in batches] or [
            pa.array([], column.type)
        ]
        return pa.concat_arrays([_require_client_names_without_nulls(part) for part in arrays])
    except DiscreetError:
        raise
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise DiscreetError(
            "clients is not a list of texts or of integers of 64 bits; list every client once"
        ) from None


def _require_client_names_without_nulls(part: pa.Array) -> pa.Array:
    """A part of a list of clients; an error if it contains nulls."""
    if part.null_count:
        raise DiscreetError(f"clients holds {part.null_count} nulls; nobody is called null, leave them out")
    return part if part.type == pa.null() else _client_names_as_integers_or_texts("the list", part)


def read_client_list_file(path: Path, column: str | Sequence[str], *, integers: bool) -> pa.Array:
    """All clients in a file: a table with that column, or a text file (without a table's ending) with one client on each line.

    Several columns name clients together; a line is then a JSON list of texts.
    """
    columns = [column] if isinstance(column, str) else list(column)
    if detect_file_format(str(path)) == "csv" and table_ending_without_gz(path) not in TEXTS:
        lines = read_lines(path, "client list", each="a client")
        if isinstance(column, str):
            return _parse_client_names(lines, path, integers=integers)
        return _composite_clients_as_texts(lines, len(columns), str(path))
    source = file_source(str(path))
    refuse_missing_columns(columns, source)
    kinds = [pl.String() if source.is_untyped else source.schema[name] for name in columns]
    if isinstance(column, str):
        name = column_expression(column)
    else:
        for part, kind in zip(columns, kinds, strict=True):
            refuse_unusable_composite_client_type(f"column {part!r} of {path}", kind)
        name = composite_client_names_expression(columns, kinds)
    frames = list(
        source.read_prepared_frames(lambda frame: frame.select(name.alias("client")).unique(), columns, client=column)
    )
    clients = pl.concat(frames).to_series() if frames else pl.Series("client", [], dtype=kinds[0])
    if clients.null_count():
        subject = (
            f"column {column!r} of {path} holds"
            if isinstance(column, str)
            else f"columns {', '.join(map(repr, columns))} of {path} hold"
        )
        raise DiscreetError(f"{subject} nulls; filter them out")
    if isinstance(column, str) and source.is_untyped:
        return _parse_client_names(clients.to_list(), path, integers=integers)
    return clients.to_arrow()


def _parse_client_names(texts: list[str], path: Path, *, integers: bool) -> pa.Array:
    """Texts as clients, or the integers that they spell."""
    if not integers:
        return pa.array(texts, pa.large_string())
    for number, text in enumerate(texts, start=1):
        if not is_whole_number_text(text):
            raise DiscreetError(
                f"{path}, client {number} is no integer, but the clients of the table are; write it as the table does (1, not 1.0 or 01)"
            )
    return pa.array(map(int, texts), pa.int64())


def _composite_clients_as_texts(clients: Iterable[Any], parts: int, where: str) -> pa.Array:
    """Clients that so many columns name: tuples of texts, integers or dates, or JSON lists of texts as a release writes them."""
    names = []
    for number, client in enumerate(clients, start=1):
        entries = client
        if isinstance(client, str):
            try:
                entries = json.loads(client)
            except ValueError:
                entries = None
        if not isinstance(entries, (list, tuple)):
            entries = ()
        texts = [text for text in map(_part_of_client_name_as_text, entries) if text is not None]
        if not len(texts) == len(entries) == parts:
            raise DiscreetError(
                f"{where}, client {number} is not a name by {parts} columns, whose parts are texts, integers of 64 bits or dates; write a "
                f"JSON list of {parts} texts, such as {composite_client_name('ab'[:1] * parts)}"
            )
        names.append(composite_client_name(texts))
    return pa.array(names, pa.large_string())


@dataclass(frozen=True, kw_only=True)
class ValueColumn:
    """How a column of values is read: its content, and its type.

    Attributes:
        name: of the column.
        coding: its domain, and the rule for values without an outcome.
        has_lists: whether it holds lists of values.
        read_as: the type that texts, truth values or dates are read as, if another.
        from_floats: whether it holds floats.
        from_dates: the type of dates or times, which are read as texts.
        from_texts: whether its values are read as texts first: categories, and truth values where numbers are expected, which are none.
        show_values: whether messages show values.
        of_survey: whether it is one of several columns.
    """

    name: str
    coding: Coding
    has_lists: bool
    read_as: pl.DataType | None
    from_floats: bool
    from_dates: pl.DataType | None
    from_texts: bool
    show_values: bool
    of_survey: bool

    @classmethod
    def for_column_type(
        cls, name: str, coding: Coding, kind: Any, *, untyped: bool, agreed: bool, show_values: bool, of_survey: bool
    ) -> "ValueColumn":
        """The reading of a column of that type. `untyped`: it holds texts that get their type from the domain."""
        value_type: Any = type_of_column_values(kind)
        are_truths = value_type == pl.Boolean and not coding.has_cells
        are_dates = _is_date_column_refusing_time_zones(name, value_type) and isinstance(
            coding.polars_type_to_read_texts_as, pl.String
        )
        read_as = coding.polars_type_to_read_texts_as if untyped or are_truths or are_dates else value_type
        if coding.lenient and not untyped:
            read_as = _type_to_read_values_as(coding, name, value_type)
        return cls(
            name=name,
            coding=fit_coding_to_column(coding, name, read_as, agreed=agreed),
            has_lists=is_column_of_lists(kind),
            read_as=None if read_as == value_type else read_as,
            from_floats=value_type.is_float(),
            from_dates=value_type if are_dates else None,
            from_texts=value_type in (pl.Categorical, pl.Enum) or (value_type == pl.Boolean and coding.has_cells),
            show_values=show_values,
            of_survey=of_survey,
        )

    def cast_frame_to_domain_type(self, frame: Any) -> Any:
        """A frame with the type that the domain expects."""
        if self.read_as is None or self._first_day_of_domain is not None:
            return frame
        value = column_expression(self.name)
        if self.from_dates is not None:
            cast_value = self.dates_as_texts_expression()
        else:
            cast_value = (value.cast(pl.String) if self.from_texts else value).cast(self.read_as, strict=False)
        if self.from_floats and self.read_as.is_integer():  # a cast would truncate
            cast_value = pl.when(value == value.floor()).then(cast_value)
        return frame.with_columns(cast_value, (value.is_not_null() & cast_value.is_null()).alias(_UNREAD + self.name))

    def outcome_expression(self) -> pl.Expr:
        """The outcome of each row of a frame with types, or a mark."""
        if self._first_day_of_domain is not None:
            value = column_expression(self.name)
            day = value.to_physical() - (self._first_day_of_domain.toordinal() - _EPOCH)
            return codes_or_misfit_marks_expression(
                value, pl.when(day.is_between(0, self.coding.size - 1)).then(day.cast(pl.UInt32, strict=False))
            )
        outcome = outcome_codes_expression(self.coding, self.name)
        if self.read_as is None:
            return outcome
        return pl.when(_UNREAD + self.name).then(pl.lit(int(MARK_UNREADABLE), pl.UInt32)).otherwise(outcome)

    def select_rows_outside_domain(self, frame: Any) -> Any:
        """The rows of a frame, one for each value, whose value is outside the domain."""
        rows = self.cast_frame_to_domain_type(frame).filter(self.outcome_expression() == int(MARK_OUTSIDE))
        return rows if self._first_day_of_domain is None else rows.with_columns(self.dates_as_texts_expression())

    def dates_as_texts_expression(self) -> pl.Expr:
        """Dates as ISO 8601 writes them, 2026-11-17; times that are not midnight with the time, 2026-11-17T08:30:00. Others unchanged."""
        value, kind = column_expression(self.name), self.from_dates
        if kind is None:
            return value
        if kind == pl.Date:
            return value.cast(pl.String)
        day = value.dt.date()
        midnight = pl.when(day.cast(kind) == value)
        return midnight.then(day.cast(pl.String)).otherwise(value.dt.strftime("%Y-%m-%dT%H:%M:%S%.f"))

    def should_show_values_outside_domain(self, misfits: MisfitCounts) -> bool:
        """Whether a message would show some values: they are outside, which is not allowed, and `show_values` asks for them."""
        return self.show_values and bool(misfits.outside) and self.coding.other is None and not self.coding.lenient

    def refuse_missing_or_outside_values(
        self, misfits: MisfitCounts, rows: int, shown_values: Sequence[Any] | None = None
    ) -> None:
        """Raise an error for missing values or values outside that are not allowed. `shown_values`: a few of these."""
        if self.coding.lenient:
            return
        where = f"in {rows:,} rows"
        if misfits.unreadable:
            what, fix = ("numbers", "1234.5") if self.coding.has_cells else ("whole numbers of 64 bits", "1234")
            raise DiscreetError(
                f"column {self.name!r} holds texts that are no {what} ({misfits.unreadable:,} {where}); correct them: write {fix}, without "
                "units, spaces or commas"
            )
        ways = "nulls='drop'" if self.of_survey else "nulls='drop' or 'other'"
        nulls = "nulls or empty lists" if self.has_lists else "nulls"
        for number, what in ((misfits.nulls, nulls), (misfits.not_numbers, "NaN")):
            if number and self.coding.nulls == "error":
                raise DiscreetError(
                    f"column {self.name!r} holds {what} ({number:,} {where}); filter them out, or say {ways} (--nulls)"
                )
        if misfits.outside and self.coding.other is None:
            examples = ""
            if shown_values is not None:
                examples = f", such as {examples_as_text(shown_values)}{self._spelling_hint(shown_values)}"
            raise DiscreetError(
                f"column {self.name!r} holds values outside the domain ({misfits.outside:,} {where}{examples}); the domain is public and "
                f"fixed: correct the records, or say {self._advice_on_values_outside_domain}"
                + ("" if examples else "; show_values=True (--show-values) shows some of them")
            )

    @property
    def _advice_on_values_outside_domain(self) -> str:
        """The option that allows values outside."""
        if self.coding.has_cells:
            return f"other={NEAREST!r} (--other {NEAREST}): each goes to the cell at its own end"
        if self.of_survey:
            return "which outcomes there are in a new survey"
        return "other= (--other) which of its outcomes they become"

    @cached_property
    def _first_day_of_domain(self) -> date | None:
        """The first of consecutive days, where the column holds dates: their numbers are then found without texts."""
        domain = self.coding.domain
        return domain.first_day if self.from_dates == pl.Date and isinstance(domain, Labels) else None

    def _spelling_hint(self, values: Sequence[Any]) -> str:
        """A label that the first value outside may be a misspelling of."""
        return spelling_hint(values[0], self.coding.domain.labels) if values else ""


def is_column_of_lists(kind: Any) -> bool:
    """Whether a column of that type holds lists."""
    return isinstance(kind, (pl.List, pl.Array))


def type_of_column_values(kind: Any) -> Any:
    """The type of the values of a column, or of those in its lists."""
    return kind.inner if is_column_of_lists(kind) else kind


def _is_date_column_refusing_time_zones(column: str, kind: Any) -> bool:
    """Whether values are dates or times; times of a time zone are an error, since their date depends on where one is."""
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        raise DiscreetError(
            f"column {column!r} holds times of the time zone {kind.time_zone}, and their date depends on the place; cast it to dates first"
        )
    return bool(kind in (pl.Date, pl.Datetime))


def _type_to_read_values_as(coding: Coding, column: str, kind: Any) -> Any:
    """The type that values of another type are read as. Unreadable values have no outcome; no column is an error for its domain."""
    target = coding.polars_type_to_read_texts_as
    takes_texts = isinstance(target, pl.String)
    if _is_date_column_refusing_time_zones(column, kind) and takes_texts:
        return target
    if not (kind.is_numeric() or kind in (*TEXT_KINDS, pl.Boolean, pl.Null)):
        raise DiscreetError(f"column {column!r} holds {kind} values; cast it to texts or numbers")
    fits = (
        (isinstance(target, pl.Float64) and kind.is_numeric())
        or (isinstance(target, pl.Int64) and kind.is_integer())
        or (takes_texts and (kind.is_integer() or kind in TEXT_KINDS))
    )
    return kind if fits else target
