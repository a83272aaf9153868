"""Records as they come: a list of values, never one text or a frame; and how messages name those that are in no domain."""

from collections.abc import Iterable
from typing import Any

from discreet._labelled import is_frame, plain_column
from discreet.errors import DiscreetError


def list_records(records: Any) -> list[Any]:
    """A column or another iterable as a plain list."""
    if isinstance(records, (str, bytes)):
        raise DiscreetError(f"records = {records!r} is one text; pass a list of records")
    if is_frame(records):
        raise DiscreetError(
            f"records is a {type(records).__name__}, not a list of records; pass one column of it, or counts= for how often"
        )
    try:
        return list(plain_column(records))
    except TypeError:
        raise DiscreetError("records is not a list of single labels; pass one label for each record") from None


def first_few(items: Iterable[Any]) -> str:
    """The first three different items, and how many more there are."""
    distinct = list(dict.fromkeys(repr(item) for item in items))
    return ", ".join(distinct[:3]) + (f" and {len(distinct) - 3} more" if len(distinct) > 3 else "")
