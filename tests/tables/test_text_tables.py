"""Text tables: whatever separates them, the same records; whatever is wrong with them, one clear error."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from discreet.errors import DiscreetError
from discreet.ledger._book import forget_rounds_in_memory
from discreet.tables import sample
from discreet.tables._columns import read_client_list_file
from discreet.tables._sources import _files
from discreet.tables._sources._opening import file_source
from discreet.tables._sources._text_files import samples_without_spreadsheet_guard
from tests.soaking import examples
from tests.tables.small_tables import SECRET, by_client, expected, rows

TERMS: dict[str, Any] = {
    "client": "client", "value": "value", "domain": 40, "epsilon": 1.0, "mechanism": "optimal", "secret": SECRET,
}  # fmt: skip


def text_of(records: list[dict[str, Any]], separator: str) -> str:
    names = list(records[0])
    lines = [separator.join(names), *(separator.join(str(row[name]) for name in names) for row in records)]
    return "\n".join(lines) + "\n"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("in.csv", ","),
        ("in.csv", ";"),
        ("in.csv", "\t"),
        ("in.csv", "|"),
        ("in.tsv", "\t"),
        ("in.txt", ";"),
        ("in.jsonl", ""),
    ],
)
def test_every_text_table_gives_the_same_release(tmp_path: Path, name: str, separator: str) -> None:
    records = pl.DataFrame(rows()).to_dicts()
    content = text_of(records, separator) if separator else "".join(json.dumps(row) + "\n" for row in records)
    found = by_client(sample(written(tmp_path, name, content), **TERMS))
    assert found == {str(client): value for client, value in expected(rows(), outcomes=40, epsilon=1.0).items()}


TEXTS = st.text(max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20))
def test_json_lines_give_back_every_text(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("json") / "in.jsonl"
    path.write_bytes(b"".join(json.dumps({"who": who, "what": what}).encode() + b"\n" for who, what in pairs))
    frames = list(file_source(str(path)).read_prepared_frames(lambda frame: frame, ["who", "what"]))
    assert pl.concat(frames).rows() == pairs


def test_what_json_writes_is_what_is_read(tmp_path: Path) -> None:
    """Numbers keep their digits, truth values are words, what is not there is null; byte order marks and empty lines are nothing."""
    lines = [
        '\ufeff{"who": 12345678901234567890123, "what": 1.50}',
        "",
        '{"what": true}\r',
        '{"who": null, "what": "x", "more": {"a": [1]}}',
    ]
    source = file_source(str(written(tmp_path, "in.jsonl", "\n".join(lines))))
    assert list(source.schema) == ["who", "what", "more"]
    assert source.is_untyped
    (frame,) = source.read_prepared_frames(lambda frame: frame, ["who", "what"])
    assert frame.rows() == [("12345678901234567890123", "1.50"), (None, "true"), (None, "x")]


def test_json_lines_come_a_part_at_a_time(tmp_path: Path) -> None:
    path = written(tmp_path, "in.jsonl", "".join(f'{{"who": {row}, "what": "x"}}\n' for row in range(1000)))
    frames = list(file_source(str(path)).read_prepared_frames(lambda frame: frame, ["who"], room=20_000))
    assert len(frames) > 3
    assert pl.concat(frames)["who"].to_list() == [str(row) for row in range(1000)]


def test_files_of_several_separators_are_not_one_table(tmp_path: Path) -> None:
    written(tmp_path, "a.csv", "client;value\n1;2\n")
    written(tmp_path, "b.csv", "client,value\n1,2\n")
    with pytest.raises(DiscreetError, match="are not separated by one character"):
        sample(tmp_path, **TERMS)
    written(tmp_path, "c.jsonl", '{"client": 1, "value": 2}\n')
    with pytest.raises(DiscreetError, match="mixes csv and json lines files"):
        sample(tmp_path, **TERMS)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("in.csv", "client;value|x\n1;2|3\n", "header holds semicolons and bars"),
        ("in.csv", "client;value, EUR\n1;2\n", "column 'client' is not in .*; it has 'client;value', ' EUR'"),
        ("in.csv", 'client;"value"\n1;2,5\n', "texts that are no whole numbers"),  # a decimal comma
        ("in.tsv", "client,value\n1,2\n", "column 'client' is not in .*; it has 'client,value'"),
        ("in.tsv", "client\tclient\n1\t2\n", "columns 1 and 2 of .* have one name"),
        ("in.jsonl", "client,value\n1,2\n", "line 1 is no JSON object"),
        ("in.jsonl", '{"client": 1, "value": 2}\n[1, 2]\n', "line 2 is no JSON object"),
        ("in.jsonl", '{"client": 1, "client": 2, "value": 2}\n', "line 1: a name comes twice"),
        ("in.jsonl", '{"client": 1, "value": [2, 3]}\n', "line 1: 'value' is a list or an object"),
        ("in.jsonl", '{"client": "\\ud800", "value": 2}\n', "line 1 holds half a character"),
        ("in.jsonl", b'{"client": "\xff", "value": 2}\n', "line 1 is not UTF-8"),
        ("in.jsonl", '{"client": ' + "[" * 100_000, "line 1 is no JSON object"),
        ("in.jsonl", '{"client": 1, "value": "' + "x" * (1 << 24), "line 1 is longer than"),
        ("in.jsonl", '{"client": 1, "value": 2.0}\n', "texts that are no whole numbers"),
        ("in.jsonl", '{"value": 2}\n', "column 'client' is not in"),
        ("in.jsonl", '{"client": 1, "value": 2}\n{"value": 3}\n', "column 'client' holds nulls"),
        ("in.jsonl", "\n \n", "holds no JSON object"),
        ("in.json", '[\n{"client": 1, "value": 2}\n]\n', "line 1 is no JSON object; write one on each line"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_text_table_is_named(tmp_path: Path, name: str, content: str | bytes, named: str) -> None:
    with pytest.raises(DiscreetError, match=named) as told:
        sample(written(tmp_path, name, content), **TERMS)
    assert len(str(told.value)) < 500


def test_a_text_without_an_ending_is_what_its_first_line_is(tmp_path: Path) -> None:
    line = '{"client": "1", "value": "2"}\n'
    (frame,) = file_source(str(written(tmp_path, "in", line))).read_prepared_frames(lambda frame: frame)
    assert frame.rows() == [("1", "2")]
    (frame,) = file_source(str(written(tmp_path, "in", "{client},value\n1,2\n"))).read_prepared_frames(
        lambda frame: frame
    )
    assert frame.columns == ["{client}", "value"]


@pytest.mark.parametrize("name", ["all.tsv", "all.jsonl", "all.csv"])
def test_clients_are_listed_by_any_table(tmp_path: Path, name: str) -> None:
    records = [{"client": "7", "other": "x"}, {"client": "8", "other": "y"}]
    content = "".join(json.dumps(row) + "\n" for row in records) if name.endswith("l") else text_of(records, "\t")
    path = written(tmp_path, name, content)
    assert sorted(read_client_list_file(path, "client", integers=True).to_pylist()) == [7, 8]


def test_a_folder_takes_documents_beside_its_tables_for_no_tables(tmp_path: Path) -> None:
    written(tmp_path, "a.csv", "client,value\n1,2\n")
    written(tmp_path, "agreement.json", "{}")
    forget_rounds_in_memory()
    assert sample(tmp_path, **TERMS).num_rows == 1


CSV = "client,value\n" + "".join(f"{row % 50},{row % 7}\n" for row in range(3000))
LINES = "".join(f'{{"client": {row % 50}, "value": {row % 7}}}\n' for row in range(3000))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.csv.gz", CSV),
        ("in.tsv.GZ", CSV.replace(",", "\t")),
        ("in.jsonl.gz", LINES),
        ("in.ndjson.gz", LINES),
        ("in.gz", CSV),
        ("in.gz", LINES),
    ],
)
def test_packed_texts_are_read_as_they_are(tmp_path: Path, name: str, text: str) -> None:
    """In one piece, and in several members one after the other."""
    plain = by_client(sample(written(tmp_path, "plain.csv", CSV), **TERMS))
    half = len(text) // 2
    for pieces in ([text], [text[:half], text[half:]]):
        path = tmp_path / name
        path.write_bytes(b"".join(gzip.compress(piece.encode()) for piece in pieces))
        assert by_client(sample(path, **TERMS)) == plain


def test_a_folder_of_packed_and_plain_texts_is_one_table(tmp_path: Path) -> None:
    """With another order of columns, and samples of it are estimated although they are packed."""
    lines = CSV.splitlines(keepends=True)
    swapped = "value,client\n" + "".join(",".join(reversed(line.strip().split(","))) + "\n" for line in lines[1500:])
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder, "a.csv", "".join(lines[:1500]))
    (folder / "b.csv.gz").write_bytes(gzip.compress(swapped.encode()))
    plain = by_client(sample(written(tmp_path, "plain.csv", CSV), **TERMS))
    assert by_client(sample(folder, **TERMS)) == plain
    written(folder, "b.csv", swapped)
    with pytest.raises(DiscreetError, match=r"b\.csv\.gz lies beside b\.csv"):
        sample(folder, **TERMS)


def test_a_packed_text_with_guarded_names_is_the_table_it_was(tmp_path: Path) -> None:
    """`discreet estimate` takes off the apostrophes that a CSV of samples has for spreadsheets."""
    path = tmp_path / "samples.csv.gz"
    path.write_bytes(gzip.compress(b"client,sample\n'=1,a\n"))
    source = file_source(str(path))
    (frame,) = source.read_prepared_frames(
        lambda rows: rows.select(samples_without_spreadsheet_guard(source, "client")), ["client"]
    )
    assert frame["client"].to_list() == ["=1"]


@pytest.mark.parametrize("name", ["in.csv.gz", "in.jsonl.gz"])
def test_packed_texts_that_are_damaged_or_something_else_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    whole = gzip.compress((CSV if "csv" in name else LINES).encode())
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 255
    for content in (whole[: len(whole) // 2], whole[:12], bytes(spoilt)):
        path.write_bytes(content)
        with pytest.raises(DiscreetError, match=rf"{name} is damaged: it ends early or cannot be unpacked"):
            sample(path, **TERMS)
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(DiscreetError, match="is empty"):
        sample(path, **TERMS)
    path.write_bytes(gzip.compress(gzip.compress(b"client,value\n")))
    with pytest.raises(DiscreetError, match="is packed; unpack it first"):
        sample(path, **TERMS)
    path.write_bytes(gzip.compress(b"PAR1" + bytes(50)))
    with pytest.raises(DiscreetError, match="is a packed parquet file"):
        sample(path, **TERMS)


def test_a_packed_text_that_unpacks_to_far_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_ALWAYS", 1 << 20)
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"client,value\n" + b"1,2\n" * (1 << 20)))
    with pytest.raises(DiscreetError, match="would unpack to more than 1,"):
        sample(path, **TERMS)
