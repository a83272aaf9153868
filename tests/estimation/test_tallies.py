"""Counting released samples: every format, one pass, and records that do not belong are named."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.domain import Coding
from discreet.estimation import _client_tables, population
from discreet.estimation._sample_tables import (
    coding_and_sampler,
    tally_samples,
    write_synthetic_rows,
    write_weighted_samples,
)
from discreet.tables import sample
from discreet.tables._raw_counts import average_law_of_clients, client_laws
from discreet.tables._sources._opening import file_source, source_of_table

LABELS = ("a", "b", "c", "d")
RAW = pl.DataFrame({"client": [n % 500 for n in range(5000)], "value": [LABELS[n * n % 3] for n in range(5000)]})


def released(tmp_path: Path, name: str = "out.parquet", **terms: Any) -> tuple[Path, dc.Agreement]:
    terms = {"domain": LABELS, "epsilon": 2.0, "mechanism": "linear", **terms}
    table = sample(RAW, client="client", value="value", **terms)
    path = tmp_path / name
    frame = pl.DataFrame(table)
    match path.suffix:
        case ".parquet":
            frame.write_parquet(path)
        case ".csv":
            frame.with_columns(pl.col("agreement").cast(pl.String)).write_csv(path)
        case ".arrow":
            frame.write_ipc(path)
    kind = dc.LinearSampler if terms["mechanism"] == "linear" else dc.OptimalSampler
    return path, dc.Agreement.of(kind(dc.Simplex(terms["domain"]), epsilon=terms["epsilon"]))


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow"])
def test_counts_are_those_of_the_table_in_every_format(tmp_path: Path, name: str) -> None:
    path, agreement = released(tmp_path, name)
    domain, sampler = coding_and_sampler(agreement)
    found = tally_samples(file_source(str(path)), agreement, domain)
    assert found.named
    assert sampler == dc.LinearSampler(dc.Simplex(LABELS), epsilon=2.0)
    plain = (
        pl.read_csv(path)
        if path.suffix == ".csv"
        else pl.read_ipc(path)
        if path.suffix == ".arrow"
        else pl.read_parquet(path)
    )
    assert found.counts.tolist() == [int((plain["sample"] == label).sum()) for label in LABELS]


def test_streams_are_counted_batch_by_batch(tmp_path: Path) -> None:
    path, agreement = released(tmp_path)
    table = pl.read_parquet(path).to_arrow()
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=37))
    whole = tally_samples(file_source(str(path)), agreement, coding_and_sampler(agreement)[0])
    parts = tally_samples(source_of_table(reader), agreement, coding_and_sampler(agreement)[0])
    assert parts.counts.tolist() == whole.counts.tolist()


def test_cells_are_found_again() -> None:
    values = pl.DataFrame({"client": range(2000), "value": np.linspace(-1.0, 3.0, 2000)})
    cells = dc.Interval(-1.0, 3.0, cells=8)
    table = sample(values, client="client", value="value", domain=cells, epsilon=3.0, mechanism="linear")
    agreement = dc.Agreement.of(dc.LinearSampler(dc.Simplex(cells), epsilon=3.0))
    domain, _ = coding_and_sampler(agreement)
    assert domain == Coding(cells)
    found = tally_samples(source_of_table(table), agreement, domain)
    points = pl.DataFrame(table)["sample"].to_numpy()
    assert found.counts.tolist() == np.histogram(points, np.linspace(-1.0, 3.0, 9))[0].tolist()
    moved = pl.DataFrame(table).with_columns(pl.col("sample") + 1.0)
    with pytest.raises(dc.DiscreetError, match=r"does not know: 3\.\d+.*it is on \[-1, 3\]"):
        tally_samples(source_of_table(moved), agreement, domain)


def test_records_of_another_agreement_are_refused_with_both_ids(tmp_path: Path) -> None:
    path, agreement = released(tmp_path)
    other = dc.Agreement.of(dc.LinearSampler(dc.Simplex(LABELS), epsilon=1.0))
    with pytest.raises(dc.DiscreetError, match=f"{agreement.id}.*{other.id}"):
        tally_samples(file_source(str(path)), other, coding_and_sampler(other)[0])
    mixed = pl.read_parquet(path).with_columns(pl.col("agreement").cast(pl.String))
    mixed = pl.concat([mixed, mixed.head(1).with_columns(pl.lit(None, pl.String).alias("agreement"))])
    with pytest.raises(dc.DiscreetError, match=f"made under agreement None, not under {agreement.id}"):
        tally_samples(source_of_table(mixed), agreement, coding_and_sampler(agreement)[0])


def test_samples_outside_the_domain_and_nulls_are_named(tmp_path: Path) -> None:
    _, agreement = released(tmp_path)
    domain, _ = coding_and_sampler(agreement)
    for strange in (["a", "z"], ["a", None]):
        with pytest.raises(dc.DiscreetError, match=f"does not know: {strange[1]!r}"):
            tally_samples(source_of_table(pl.DataFrame({"sample": strange})), agreement, domain)
    with pytest.raises(dc.DiscreetError, match="column 'sample' is not in the frame; it has 'x'"):
        tally_samples(source_of_table(pl.DataFrame({"x": [1]})), agreement, domain)
    unnamed = tally_samples(source_of_table(pl.DataFrame({"sample": ["a", "b"]})), agreement, domain)
    assert not unnamed.named
    assert unnamed.counts.tolist() == [1, 1, 0, 0]
    huge = dc.Agreement.of(dc.LinearSampler(dc.Simplex(10**8), epsilon=1.0))
    with pytest.raises(dc.DiscreetError, match="at most 10,000,000"):
        tally_samples(source_of_table(pl.DataFrame({"sample": [1]})), huge, coding_and_sampler(huge)[0])


def test_labels_known_by_their_digest_are_given_and_checked(tmp_path: Path) -> None:
    _, agreement = released(tmp_path)
    digest = dc.Agreement.from_json(agreement.canonical)
    with pytest.raises(dc.DiscreetError, match="digest"):
        coding_and_sampler(digest)
    assert coding_and_sampler(digest, LABELS)[0] == Coding(dc.Labels(LABELS))
    with pytest.raises(dc.DiscreetError, match="labels"):
        coding_and_sampler(digest, ("a", "b", "c", "e"))


def test_a_band_is_estimated_too() -> None:
    sampler = dc.LinearSampler(dc.Band(np.ones(3), lower=0.5, upper=2.0), epsilon=1.0)
    domain, found = coding_and_sampler(dc.Agreement.of(sampler))
    assert found == sampler
    assert domain == Coding(dc.Numbers(3))


def test_the_truth_of_raw_records_counts_every_client_the_same() -> None:
    records = pl.DataFrame({"who": ["x"] * 9 + ["y"], "what": ["a"] * 8 + ["b", "b"]})
    domain = Coding(dc.Labels(("a", "b")))
    by_client = average_law_of_clients(source_of_table(records), domain, value="what", client="who")
    assert by_client == pytest.approx([4 / 9, 5 / 9])
    assert average_law_of_clients(source_of_table(records), domain, value="what") == pytest.approx([0.8, 0.2])
    laws = client_laws(source_of_table(records), domain, value="what", client="who")
    assert sorted(laws.tolist()) == [[0.0, 1.0], pytest.approx([8 / 9, 1 / 9])]
    with pytest.raises(dc.DiscreetError, match="outside the domain"):
        average_law_of_clients(source_of_table(records), Coding(dc.Labels(("a", "c"))), value="what")
    nobody = pl.DataFrame({"who": ["x", None], "what": ["a", "b"]})
    for law in (average_law_of_clients, client_laws):
        with pytest.raises(dc.DiscreetError, match="column 'who' of the frame holds nulls"):
            law(source_of_table(nobody), domain, value="what", client="who")
    with pytest.raises(dc.DiscreetError, match="holds no records"):
        average_law_of_clients(source_of_table(records.head(0)), domain, value="what")


def test_weighted_samples_and_drawn_rows_have_the_estimated_shares(tmp_path: Path) -> None:
    path, agreement = released(tmp_path)
    domain, sampler = coding_and_sampler(agreement)
    found = population(sampler, counts=tally_samples(file_source(str(path)), agreement, domain).counts)
    weighted, drawn = tmp_path / "weighted.parquet", tmp_path / "rows.csv"
    assert write_weighted_samples(found, file_source(str(path)), domain, str(weighted)) == 500
    table = pl.read_parquet(weighted)
    assert table["weight"].sum() == pytest.approx(500.0)
    shares = {
        row["sample"]: row["weight"] / 500 for row in table.group_by("sample").agg(pl.col("weight").sum()).to_dicts()
    }
    assert [shares[label] for label in LABELS] == pytest.approx(found.nearest.tolist(), abs=1e-12)
    assert write_synthetic_rows(found, domain, str(drawn), 1000) == 1000
    counts = pl.read_csv(drawn)["sample"].value_counts()
    share = {row["sample"]: row["count"] / 1000 for row in counts.to_dicts()}
    assert [share.get(label, 0.0) for label in LABELS] == pytest.approx(found.nearest.tolist(), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow"])
def test_a_client_that_comes_twice_is_refused(tmp_path: Path, name: str) -> None:
    """Two rounds of the same clients, one release read twice, or a single client again: none is taken for more clients."""
    path, agreement = released(tmp_path, name)
    domain, _ = coding_and_sampler(agreement)
    once = tally_samples(file_source(str(path)), agreement, domain)
    assert (once.distinct, once.counts.sum()) == (True, 500)
    (tmp_path / f"again{path.suffix}").write_bytes(path.read_bytes())
    with pytest.raises(dc.DiscreetError, match=r"again in 500 of 1,000 records: samples of several rounds"):
        tally_samples(file_source(str(tmp_path / f"*{path.suffix}")), agreement, domain)


def test_clients_are_told_apart_by_what_they_are_called(tmp_path: Path) -> None:
    path, agreement = released(tmp_path)
    domain, _ = coding_and_sampler(agreement)
    frame = pl.read_parquet(path)
    one_again = pl.concat([frame, frame.tail(1)])
    for kind in (pl.Int64, pl.String, pl.Categorical):
        typed = one_again.with_columns(pl.col("client").cast(pl.String).cast(kind))
        with pytest.raises(dc.DiscreetError, match="again in 1 of 501 records") as caught:
            tally_samples(source_of_table(typed), agreement, domain)
        assert "'0'" not in str(caught.value)
        assert tally_samples(source_of_table(typed.head(500)), agreement, domain).distinct
    batches = pa.RecordBatchReader.from_batches(one_again.to_arrow().schema, one_again.to_arrow().to_batches(37))
    with pytest.raises(dc.DiscreetError, match="again in 1 of 501 records"):
        tally_samples(source_of_table(batches), agreement, domain)
    nobody = frame.with_columns(client=pl.when(pl.col("client") > 0).then("client"))
    with pytest.raises(dc.DiscreetError, match="samples without a client"):
        tally_samples(source_of_table(nobody), agreement, domain)
    unnamed = tally_samples(source_of_table(one_again.drop("client")), agreement, domain)
    assert (unnamed.distinct, unnamed.counts.sum()) == (False, 501)


def test_past_what_can_be_told_apart_a_second_release_is_noticed_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, agreement = released(tmp_path)
    domain, _ = coding_and_sampler(agreement)
    monkeypatch.setattr(_client_tables, "MOST_TOLD_APART", 100)
    assert tally_samples(file_source(str(path)), agreement, domain).counts.sum() == 500
    (tmp_path / "again.parquet").write_bytes(path.read_bytes())
    with pytest.raises(dc.DiscreetError, match="names the same clients again"):
        tally_samples(file_source(str(tmp_path / "*.parquet")), agreement, domain)


def test_a_stream_of_unknown_length_is_told_apart_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rows is not known before: clients are forgotten as they come, and a second release is noticed still."""
    path, agreement = released(tmp_path)
    domain, _ = coding_and_sampler(agreement)
    samples = pl.read_parquet(path)

    def stream(frame: pl.DataFrame) -> pa.RecordBatchReader:
        batches = frame.to_arrow().to_batches(max_chunksize=50)
        return pa.RecordBatchReader.from_batches(batches[0].schema, batches)

    monkeypatch.setattr(_client_tables, "MOST_TOLD_APART", 100)
    remembered = []
    note = _client_tables.RepeatedClientCheck.remember_clients

    def noted(self: _client_tables.RepeatedClientCheck, frame: pl.DataFrame) -> None:
        note(self, frame)
        remembered.append(sum(each.height for each in self._seen))

    monkeypatch.setattr(_client_tables.RepeatedClientCheck, "remember_clients", noted)
    assert tally_samples(source_of_table(stream(samples)), agreement, domain).counts.sum() == 500
    assert len(remembered) >= 10
    assert max(remembered) <= 100
    with pytest.raises(dc.DiscreetError, match="names the same clients again"):
        tally_samples(source_of_table(stream(pl.concat([samples, samples]))), agreement, domain)
    with pytest.raises(dc.DiscreetError, match="names the same clients again"):
        tally_samples(source_of_table(stream(pl.concat([samples.head(1)] * 300))), agreement, domain)


def test_raw_records_with_nulls_and_others_and_lists() -> None:
    """As a release reads them: nulls left out or taken as other, values outside sent where they are to go, lists taken apart."""
    coding = Coding(dc.Labels(["a", "b", "rest"]), "rest")
    records = pl.DataFrame({"who": ["x", "x", "x", "y"], "what": ["a", "zebra", None, "b"]})
    dropping, taking = (dataclasses.replace(coding, nulls=nulls) for nulls in ("drop", "other"))
    dropped = client_laws(source_of_table(records), dropping, value="what", client="who")
    assert dropped.tolist() == [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    taken = client_laws(source_of_table(records), taking, value="what", client="who")
    assert taken == pytest.approx(np.array([[1 / 3, 0.0, 2 / 3], [0.0, 1.0, 0.0]]))
    assert average_law_of_clients(source_of_table(records), taking, value="what").tolist() == [0.25, 0.25, 0.5]
    lists = pl.DataFrame({"who": ["x", "y"], "what": [["a", "zebra"], ["b"]]})
    assert client_laws(source_of_table(lists), coding, value="what", client="who").tolist() == dropped.tolist()
    cells = Coding(dc.Interval(0.0, 1.0, cells=2), "nearest")
    numbers = pl.DataFrame({"who": [1, 1, 2], "what": [-3.0, 0.7, 9.0]})
    assert client_laws(source_of_table(numbers), cells, value="what", client="who").tolist() == [[0.5, 0.5], [0.0, 1.0]]
    for nulls, bare, says in (
        ("error", coding, r"holds nulls \(1 in 4 rows\); filter them out, or say nulls='drop'"),
        (
            "drop",
            Coding(dc.Labels(["a", "b"])),
            r"values outside the domain \(1 in 4 rows\); .* correct the records, or say other=",
        ),
        ("other", Coding(dc.Labels(["a", "b", "zebra"])), r"say other= \(--other\) which one"),
        ("maybe", coding, "nulls = 'maybe'"),
    ):
        with pytest.raises(dc.DiscreetError, match=says):
            average_law_of_clients(source_of_table(records), dataclasses.replace(bare, nulls=nulls), value="what")


def test_texts_for_numbers_are_never_dropped_as_nulls(tmp_path: Path) -> None:
    (tmp_path / "raw.csv").write_text("who,what\nx,1\nx,one\n")
    with pytest.raises(dc.DiscreetError, match=r"texts that are no whole numbers of 64 bits \(1 in 2 rows\)"):
        average_law_of_clients(
            file_source(str(tmp_path / "raw.csv")), Coding(dc.Numbers(3), nulls="drop"), value="what"
        )


def test_clients_are_told_apart_under_any_name_that_a_release_gives_them() -> None:
    terms: dict[str, Any] = {"client": "who", "value": "what", "domain": 2, "epsilon": 1.0}
    first, second = (sample(pa.table({"who": [1, 2], "what": [0, 1]}), **terms) for _ in range(2))
    agreement = dc.Agreement.from_json(first.schema.metadata[b"discreet.agreement"].decode())
    domain, _ = coding_and_sampler(agreement)
    assert tally_samples(source_of_table(first), agreement, domain).distinct
    with pytest.raises(dc.DiscreetError, match="column 'who' of the table names the same clients again"):
        tally_samples(source_of_table(pa.concat_tables([first, second])), agreement, domain)
    older = first.rename_columns(["client", "sample", "agreement"])
    assert tally_samples(source_of_table(older.select(["sample", "agreement", "client"])), agreement, domain).distinct
    assert not tally_samples(source_of_table(first.select(["sample", "agreement"])), agreement, domain).distinct


def test_clients_of_reports_are_told_apart_across_files_under_any_name(tmp_path: Path) -> None:
    """Reports name their clients in the first column, whatever it is called; the same clients in two files are an error."""
    reports = pl.DataFrame({"user": ["a", "b", "c"], "report": [1, 2, 3], "agreement": ["x"] * 3})
    for name in ("one.parquet", "two.parquet"):
        reports.write_parquet(tmp_path / name)
    with pytest.raises(dc.DiscreetError, match="occur in another file too"):
        _client_tables.refuse_clients_in_several_sources(
            [file_source(str(tmp_path / f"{name}.parquet")) for name in ("one", "two")]
        )


def test_a_column_called_client_names_the_clients_before_the_first_one() -> None:
    """A first column of row numbers is nobody's name where another one is called client."""
    schema = pl.DataFrame(schema={"row": pl.Int64, "sample": pl.Int64, "agreement": pl.String, "client": pl.Int64})
    assert _client_tables.client_column_of_source(source_of_table(schema)) == "client"
