"""The rows of a table as those of a survey: several columns of values become one number of up to 62 bits.

Each column is read by a `Reading` of its own. A row in which all columns have an outcome is the number that `SurveyColumns` gives it. A row
without one carries a mark: its reason, and the first column that has it. So messages count rows and name columns.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.tables import _coding as marks
from discreet.tables._coding import Columns, MisfitCounts, RowCoding
from discreet.tables._records import Reading

_MARKED = np.uint64(1 << 63)
_MOVED = "moved"  # how many columns of a row had a number outside that went to the nearest end


@dataclass(frozen=True, kw_only=True)
class RowReading:
    """How the columns of one table are read as the rows of a survey.

    Attributes:
        columns: their names.
        coding: the columns of the survey, and the rule for rows without an outcome.
        parts: how each column is read.
    """

    columns: Columns
    coding: RowCoding
    parts: tuple[Reading, ...]

    @classmethod
    def of(
        cls,
        columns: Columns,
        coding: RowCoding,
        schema: pl.Schema,
        *,
        untyped: bool | Collection[str] = False,
        where: str = "the table",
        show_values: bool = False,
        null_clients: str = "error",
    ) -> "RowReading":
        """The reading of a table with these columns; messages call it `where`."""
        for name in columns.values:
            if isinstance(schema.get(name), (pl.List, pl.Array)):
                raise DiscreetError(f"column {name!r} holds lists; a survey reads one value of each column in a row")
        parts = [
            Reading.of(
                replace(columns, value=name), each, schema,
                untyped=untyped, where=where, agreed=True, show_values=show_values, null_clients=null_clients,
            )
            for name, each in coding.codings.items()
        ]  # fmt: skip
        return cls(columns=columns, coding=coding, parts=tuple(replace(part, of_survey=True) for part in parts))

    @property
    def client_kind(self) -> Any:
        """The kind of clients' names."""
        return self.parts[0].client_kind

    @property
    def integer_clients(self) -> bool:
        """Whether clients are named by integers; otherwise by texts."""
        return self.parts[0].integer_clients

    @property
    def mixed_numbers(self) -> tuple[str, ...]:
        """The columns in which integers and floats mean the same, so that files may differ in this."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.mixed_numbers))

    def without_client_message(self, number: int, rows: int, *, of: str = "") -> str:
        """The error for rows without a client."""
        return self.parts[0].without_client_message(number, rows, of=of)

    def warn_of_float_names(self) -> None:
        """Warn of columns whose floats are read as integers."""
        self.parts[0].warn_of_float_names()

    def prepare_rows(self, frame: Any) -> Any:
        """A frame (lazy or not) as columns client, outcome, moved and perhaps count: one row for each record."""
        for part in self.parts:
            frame = part.with_types(frame)
        codes = [part.outcome_expression() for part in self.parts]
        names = [f"\0code {place}" for place in range(len(codes))]
        frame = frame.with_columns(code.alias(name) for code, name in zip(codes, names, strict=True))
        found: Any = None
        row, moved = pl.lit(0, pl.UInt64), pl.lit(0, pl.UInt32)
        for place, (name, part) in enumerate(zip(names, self.parts, strict=True)):
            code, stride = pl.col(name), self.coding.columns.strides[part.value]
            if part.coding.has_cells:
                beyond = code.is_in([int(marks.MARK_BELOW), int(marks.MARK_ABOVE)])
                moved = moved + beyond.cast(pl.UInt32)
                last = pl.lit(part.coding.size - 1, pl.UInt32)
                nearest = pl.when(code == int(marks.MARK_BELOW)).then(pl.lit(0, pl.UInt32))
                code = nearest.when(code == int(marks.MARK_ABOVE)).then(last).otherwise(code)
            wide = code.cast(pl.UInt64)
            mark = wide + pl.lit(int(_MARKED) + (place << 32), pl.UInt64)
            is_mark = code >= int(marks.FIRST_MARK)
            found = pl.when(is_mark).then(mark) if found is None else found.when(is_mark).then(mark)
            row = row + wide * pl.lit(stride, pl.UInt64)
        return frame.select([*self.parts[0].prepared_columns(found.otherwise(row)), moved.alias(_MOVED)])

    def resolve(self, frame: pl.DataFrame) -> tuple[NDArray[Any], list[MisfitCounts]]:
        """The rows of a prepared frame with their marks resolved, and the numbers of marks of each column."""
        rows = frame["outcome"].to_numpy()
        tallies = [MisfitCounts() for _ in self.parts]
        moved = int(frame[_MOVED].sum())
        numbers = next((place for place, part in enumerate(self.parts) if part.coding.has_cells), 0)
        tallies[numbers] += MisfitCounts(outside=moved)
        marked = np.flatnonzero(rows >= _MARKED)
        if not marked.size:
            return rows, tallies
        found, bad = rows.copy(), rows[marked]
        reasons, places = bad.astype(np.uint32), (bad - _MARKED) >> np.uint64(32)
        for place in range(len(self.parts)):
            here = reasons[places == place]

            def many(mark: np.uint32, here: NDArray[np.uint32] = here) -> int:
                return int(np.count_nonzero(here == mark))

            tallies[place] += MisfitCounts(
                many(marks.MARK_MISSING), many(marks.MARK_NAN), many(marks.MARK_UNREADABLE), many(marks.MARK_OUTSIDE)
            )
        found[marked] = marks.mark_among(marks.MARK_LISTED if self.coding.lenient else marks.MARK_MISSING, rows)
        return found, tallies

    def refuse_misfits(self, tallies: Sequence[MisfitCounts], rows: int, shown_values: Sequence[Any] | None) -> None:
        """Raise the error of the first column with values that are not allowed."""
        for part, tally in zip(self.parts, tallies, strict=True):
            part.refuse(tally, rows, shown_values if part.shows_examples(tally) else None)
            shown_values = (
                None if part.shows_examples(tally) else shown_values
            )  # they are those of the first such column
