"""A dry run: every value outside the domain, counted; the release of what it calls clean is made, of anything else refused."""

from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from discreet.domain import MARK_MISSING, MARK_UNREADABLE, Coding, Interval, Labels
from discreet.errors import DiscreetError
from discreet.tables import (
    Columns,
    DryRun,
    Reading,
    Release,
    Request,
    _columns,
    dry_run,
    outcome_counts_by_client,
    sample,
    source_of_table,
)
from discreet.tables._columns import ValueColumn
from tests.soaking import examples, wide
from tests.tables.small_tables import SECRET, by_client

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


def test_labels_in_other_forms_are_counted() -> None:
    """They were listed among the others, and `other` took them for another outcome."""
    values = ["Tea", "tea", " Tea", "T\u00adea", "Mate", "rest", None]
    table = pl.DataFrame({"who": range(len(values)), "what": values})
    found = dry_run(table, domain=["Tea", "Rest"], other="Rest", **TERMS)
    assert (sum(found.outside.values()), found.labels_in_other_forms) == (5, 4)
    assert dry_run(pl.DataFrame({"who": [1], "what": [7]}), domain=3, **TERMS).labels_in_other_forms == 0


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


def test_names_of_one_person_in_several_forms_are_counted(tmp_path: Path) -> None:
    """Every row is looked at, also one whose value is outside."""
    path = tmp_path / "in.csv"
    path.write_text("who,what\nAnn,a\nann,z\nAnn ,a\nBob,a\n,a\n1,a\n1.0,z\n2,a\nNULL,a\nBob,z\n")
    assert dry_run(path, domain=["a"], **TERMS).names_in_several_forms == 5
    for names in ([1, 1], ["Ann", "Ben"], [1.0, 2.0]):
        assert not dry_run(pl.DataFrame({"who": names, "what": "a"}), domain=["a"], **TERMS).names_in_several_forms
    several = pl.DataFrame({"who": ["Ann", "ann"], "day": [1, 2], "what": "a"})
    assert not dry_run(several, **{**TERMS, "client": ["who", "day"]}, domain=["a"]).names_in_several_forms


@pytest.mark.parametrize("merged", [1, 30, 1 << 20])
def test_names_in_several_forms_are_counted_by_what_is_remembered_of_them(
    monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    monkeypatch.setattr(_columns, "_NAMES_TO_MERGE", merged)
    names = ["".join(letters) for letters in product("aA 1.0", repeat=4)] * 2
    forms = pl.Series(sorted(set(names))).str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    expected = int(forms.str.replace(r"^(-?[0-9]+)\.0+$", "$1").is_duplicated().sum())
    table = pl.DataFrame({"who": [*names, None], "what": "a"}).to_arrow()
    for batches in (table, table.to_reader(max_chunksize=100)):
        assert dry_run(batches, domain=["a"], **TERMS).names_in_several_forms == expected > 100
    monkeypatch.setattr(_columns, "MOST_NAMES", 200)
    assert 0 < dry_run(table, domain=["a"], **TERMS).names_in_several_forms < 200


def test_a_weight_with_a_comma_is_answered_with_how_to_write_it(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("who;what;n\na;a;1,5\n")
    with pytest.raises(
        DiscreetError, match=r"no finite numbers of at least 0 \(1 in 1 rows\); .*: write 1234\.5, without units"
    ):
        sample(path, domain=["a"], weight="n", **TERMS)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, None])
def test_public_examples_have_the_weights_of_a_release(wrong: float | None) -> None:
    """NaN, which is more than 0 in polars, was told as a sum past every float, to be scaled."""
    table = pl.DataFrame({"who": ["a", "b"], "what": ["x", "y"], "n": [1.0, wrong]})
    with pytest.raises(DiscreetError) as release:
        sample(table, domain=["x", "y"], weight="n", **TERMS)
    source, columns = source_of_table(table), Columns(client="who", value="what", weight="n")
    reading = Reading.for_table_columns(columns, Coding(Labels(["x", "y"])), source.schema)
    with pytest.raises(DiscreetError) as counted:
        outcome_counts_by_client(source, reading)
    assert str(counted.value).replace(" of the frame", "") == str(release.value)


def test_truth_values_are_no_numbers_in_a_table_as_on_a_device() -> None:
    """They were 0 and 1 in a gateway's table, and left out on a device and in every file of texts."""
    interval = Interval(0, 60, cells=4)
    table = pl.DataFrame({"x": [True, False, None]})
    value = ValueColumn.for_column_type(
        "x", Coding(interval).as_lenient_coding(), pl.Boolean(),
        untyped=False, agreed=True, show_values=False, of_survey=False,
    )  # fmt: skip
    marks = value.cast_frame_to_domain_type(table).select(value.outcome_expression()).to_series().to_list()
    assert marks == [MARK_UNREADABLE, MARK_UNREADABLE, MARK_MISSING]
    assert interval.find_numbers([True, False, None]).tolist() == [-1] * 3


def test_lists_and_streams() -> None:
    table = pa.table({"who": [1, 2, 3], "what": [["a", "z"], [], ["z"]]})
    for form in (table, table.to_reader(), pl.DataFrame(table).lazy()):
        assert dry_run(form, domain=["a"], **TERMS) == DryRun(
            rows=4, nameless=0, nulls=1, not_numbers=0, outside={"z": 2}
        )


def test_a_table_without_rows() -> None:
    empty = pa.table({"who": pa.array([], pa.string()), "what": pa.array([], pa.string())})
    assert dry_run(empty, domain=["a"], **TERMS) == DryRun(rows=0, nameless=0, nulls=0, not_numbers=0, outside={})


QUARTER = wide(2500, 80)  # rows
FEW, HALF = f"({QUARTER:,} in {4 * QUARTER:,} rows)", f"({2 * QUARTER:,} in {4 * QUARTER:,} rows"
BROKEN: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str]] = {
    "client": ({"who": [1, 2, None, 4]}, {}, f"column 'who' holds nulls {FEW}"),
    "value": ({"what": ["a", None, "b", "b"]}, {}, f"column 'what' holds nulls {FEW}"),
    "outside": ({"what": ["a", "z", "z", "b"]}, {}, f"outside the domain {HALF}"),
    "count": ({"n": [1, 2, None, 1]}, {"count": "n"}, f"column 'n' holds nulls {FEW}"),
    "no count": ({"n": [1, 2, -3, 1]}, {"count": "n"}, FEW),
    "two of them": (
        {"who": [1, None, 3, 4], "what": ["a", "b", "z", "z"]},
        {},
        f"'who' holds nulls {FEW}",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_numbers_in_an_error_do_not_depend_on_how_the_table_is_read(broken: str, tmp_path: Path) -> None:
    """Batches come in any order and size, from several threads: an error counts the rows of the whole table."""
    columns, terms, told = BROKEN[broken]
    quarter: dict[str, list[Any]] = {"who": [1, 2, 3, 4], "what": ["a", "b", "a", "b"], "n": [1, 1, 1, 1], **columns}
    frame = pl.DataFrame({name: values * QUARTER for name, values in quarter.items()})
    frame.write_parquet(tmp_path / "in.parquet", row_group_size=QUARTER // 4)
    frame.write_csv(tmp_path / "in.csv")
    table = frame.to_arrow()
    readings = [
        frame,
        tmp_path / "in.parquet",
        tmp_path / "in.csv",
        *(table.to_reader(rows) for rows in (1, QUARTER // 8, 3 * QUARTER + 1)),
    ]
    for each in readings:
        with pytest.raises(DiscreetError) as error:
            sample(each, domain=["a", "b"], **TERMS, **terms)
        assert told in str(error.value)


def test_clients_off_the_list_are_counted_in_the_whole_table() -> None:
    table = pl.DataFrame({"who": list(range(3000)), "what": ["a"] * 3000})
    for _ in range(2):
        with pytest.raises(DiscreetError, match=r"not on the list \(1,000 of 3,000 looked at\)"):
            sample(table, domain=["a", "b"], clients=list(range(1000, 5000)), **TERMS)


def test_a_shown_value_is_found_although_the_table_goes_on() -> None:
    reader = pa.table({"who": [1, 2, 3], "what": ["a", "z", "a"]}).to_reader(1)
    with pytest.raises(DiscreetError, match=r"\(1 in 3 rows, such as 'z'\)"):
        sample(reader, domain=["a"], show_values=True, **TERMS)


@pytest.mark.parametrize(
    "clients", [[1, None, 2, None, 1], ["x", None, "y", None, "x"], [1.0, float("nan"), 2.0, None, 1.0]]
)
@pytest.mark.filterwarnings("ignore::discreet.errors.ClientNameWarning")
def test_rows_without_a_client_are_left_out_on_request(clients: list[Any]) -> None:
    """The samples are those of the other rows alone, and the summary says how many were left out."""
    table = pl.DataFrame({"client": clients, "value": ["a", "b", "b", "z", "a"]}, strict=False)
    terms: dict[str, Any] = {
        "client": "client",
        "value": "value",
        "domain": ["a", "b"],
        "epsilon": 1.0,
        "secret": SECRET,
    }
    with pytest.raises(DiscreetError, match=r"2 in 5 rows.*null_clients='drop' \(--null-clients drop\)"):
        sample(table, **terms)
    release = Release(table, Request(**terms, null_clients="drop"))
    named = table.filter(pl.col("value").is_in(["a", "b"]) & pl.Series([True, False, True, False, True]))
    assert by_client(release.table()) == by_client(sample(named, **terms))
    assert (release.summary.rows, release.summary.nameless, release.summary.clients) == (5, 2, 2)


def test_a_number_that_cannot_be_a_name_is_no_missing_client() -> None:
    """Leaving it out would lose a client that is there: 1.5, and floats and integers past what is read."""
    for client in (1.5, 2.0**53, 2**64 - 1):
        kind = pl.UInt64 if isinstance(client, int) else pl.Float64
        table = pl.DataFrame({"who": pl.Series([client, 1, None], dtype=kind), "what": ["a"] * 3})
        with pytest.raises(DiscreetError, match="1 in 3 rows"):
            sample(table, domain=["a"], null_clients="drop", **TERMS)
    with pytest.raises(DiscreetError, match="null_clients = 'skip' is not one of error, drop"):
        sample(table, domain=["a"], null_clients="skip", **TERMS)
