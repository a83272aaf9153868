"""A dry run: every value outside the domain, counted; the release of what it calls clean is made, of anything else refused."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from discreet.domain import Interval
from discreet.errors import DiscreetError
from discreet.tables import DryRun, dry_run, sample
from tests.soaking import examples

TERMS: dict[str, Any] = {"client": "who", "value": "what", "epsilon": 1.0}


@settings(max_examples=examples(60), deadline=None)
@given(values=st.lists(st.sampled_from(["a", "b", "c", "A", "", None]), min_size=1, max_size=40))
def test_what_it_counts_is_what_stops_a_release(values: list[str | None]) -> None:
    table = pl.DataFrame({"who": [1] * len(values), "what": values}, schema={"who": pl.Int64, "what": pl.String})
    found = dry_run(table, domain=["a", "b", "c"], **TERMS)
    strange = [value for value in values if value is not None and value not in ("a", "b", "c")]
    assert found.outside == {value: strange.count(value) for value in strange}
    assert list(found.outside.values()) == sorted(found.outside.values(), reverse=True)
    assert (found.rows, found.nulls) == (len(values), values.count(None))
    if found.outside or found.nulls:
        with pytest.raises(DiscreetError, match=r"holds nulls|outside the domain"):
            sample(table, domain=["a", "b", "c"], **TERMS)
    else:
        assert sample(table, domain=["a", "b", "c"], **TERMS).num_rows == 1


def test_values_are_told_as_they_stand_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("who,what\na,1\na,1.0\nb,x\nb,x\nc,7\nc,\n")
    assert dry_run(path, domain=5, **TERMS) == DryRun(
        rows=6, nameless=0, nulls=1, not_numbers=0, outside={"x": 2, "1.0": 1, "7": 1}
    )


def test_numbers_past_an_end_and_nan(tmp_path: Path) -> None:
    table = pa.table({"who": [1, 1, 1, 1], "what": [0.5, -1.0, 2.0, float("nan")]})
    for other in (None, "nearest"):
        found = dry_run(table, domain=Interval(0.0, 1.0, cells=4), other=other, **TERMS)
        assert found == DryRun(rows=4, nameless=0, nulls=0, not_numbers=1, outside={-1.0: 1, 2.0: 1})


def test_rows_that_name_no_client_are_told_of_since_they_stop_a_release() -> None:
    for clients in ([1, None, 2, None], ["a", None, "b", None]):
        table = pl.DataFrame({"who": clients, "what": ["a", "a", "z", None]})
        found = dry_run(table, domain=["a"], other="a", nulls="drop", **TERMS)
        assert (found.nameless, found.nulls, found.outside) == (clients.count(None), 1, {"z": 1})
        with pytest.raises(DiscreetError, match=f"{found.nameless} in 4 rows"):
            sample(table, domain=["a"], other="a", nulls="drop", **TERMS)
    lists = pl.DataFrame({"who": [None, 1], "what": [["a", "a"], ["a"]]})
    assert dry_run(lists, domain=["a"], **TERMS).nameless == 2


def test_lists_and_streams() -> None:
    table = pa.table({"who": [1, 2, 3], "what": [["a", "z"], [], ["z"]]})
    for form in (table, table.to_reader(), pl.DataFrame(table).lazy()):
        assert dry_run(form, domain=["a"], **TERMS) == DryRun(
            rows=4, nameless=0, nulls=1, not_numbers=0, outside={"z": 2}
        )


def test_a_table_without_rows() -> None:
    empty = pa.table({"who": pa.array([], pa.string()), "what": pa.array([], pa.string())})
    assert dry_run(empty, domain=["a"], **TERMS) == DryRun(rows=0, nameless=0, nulls=0, not_numbers=0, outside={})
