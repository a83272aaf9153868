import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli._app import app
from discreet.cli._estimate._report import _influence_of_liars_text, _mechanism_advice_text
from discreet.estimation import liars, population
from discreet.research.data import destinations, flights
from tests.pictures import assert_picture

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def released_flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw flights, the public airports, and a release by each mechanism with its agreement."""
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("flights")
    pq.write_table(flights(), folder / "flights.parquet")
    (folder / "airports.txt").write_text("\n".join(destinations()) + "\n")
    for mechanism in ("linear", "optimal"):
        arguments = [
            "sample", str(folder / "flights.parquet"), "--client", "tailnum", "--value", "dest",
            "--domain", str(folder / "airports.txt"), "--epsilon", "4", "--mechanism", mechanism, "--quiet",
            "-o", str(folder / f"{mechanism}.parquet"), "--write-agreement", str(folder / f"{mechanism}.json"),
        ]  # fmt: skip
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def files(released_flights: Path, tmp_path: Path) -> Path:
    """A copy of these files, which a test may change."""
    return shutil.copytree(released_flights, tmp_path, dirs_exist_ok=True)


def arguments(files: Path, mechanism: str, *more: str) -> list[str]:
    return ["estimate", str(files / f"{mechanism}.parquet"), "--agreement", str(files / f"{mechanism}.json"), *more]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["linear", "optimal"])
def test_json_holds_every_share_and_intervals_hold_the_truth(run: Run, files: Path, mechanism: str) -> None:
    more = (
        "--truth",
        str(files / "flights.parquet"),
        "--value",
        "dest",
        "--client",
        "tailnum",
        "--confidence",
        "0.999999",
        "--json",
    )
    result = run(*arguments(files, mechanism, *more))
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert (record["samples"], record["identifiable"], len(record["shares"])) == (4043, mechanism == "linear", 104)
    assert sum(row["samples"] for row in record["shares"]) == 4043
    assert sum(row["law"]["estimate"] for row in record["shares"]) == pytest.approx(1.0)
    assert all(row["law"]["all_low"] <= row["truth"] <= row["law"]["all_high"] for row in record["shares"])
    assert record["fidelity"]["the samples"]["tv"] > 0.2
    if mechanism == "linear":
        debiased = record["fidelity"]["the nearest law"]["tv"]
        assert debiased < record["fidelity"]["the samples"]["tv"]


@pytest.mark.slow
def test_people_see_a_table_the_choice_of_mechanism_and_a_picture(run: Run, files: Path) -> None:
    result = run(*arguments(files, "linear", "--top", "3", "--plot", str(files / "new" / "p.png")))
    assert result.exit_code == 0, result.output
    for word in ("4,043 samples", "95 % interval", "all 104 at once", "ATL", "101 more outcomes", "Which mechanism"):
        assert word in result.stdout
    assert_picture(files / "new" / "p.png")
    result = run(*arguments(files, "optimal", "--plot", str(files / "o.svg")))
    assert "do not determine the average client" in " ".join(result.stdout.split())
    assert_picture(files / "o.svg")


@pytest.mark.slow
def test_the_picture_says_what_the_samples_are_for(run: Run, tmp_path: Path) -> None:
    table, samples, picture = (str(tmp_path / name) for name in ("in.csv", "s.parquet", "p.svg"))
    pl.DataFrame({"who": range(30), "what": ["a", "b", "a"] * 10}).write_csv(table)
    (tmp_path / "labels").write_text("a\nb\n")
    chosen = ("--client", "who", "--value", "what", "--domain", str(tmp_path / "labels"), "--epsilon", "1")
    for purpose, title in (("lunch $4 or $5", "lunch $4 or $5: 30 private"), ("", "The population behind 30 private")):
        done = run("sample", table, *chosen, "--purpose", purpose, "-o", samples, "--force")
        assert done.exit_code == 0, done.output
        assert run("estimate", samples, "--plot", picture).exit_code == 0
        assert title in (tmp_path / "p.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_continuous_column_gives_a_histogram_and_moments(run: Run, files: Path) -> None:
    agreement, samples = str(files / "delay.json"), str(files / "delay.parquet")
    run("agree", agreement, "--bounds", "-60", "180", "--cells", "24", "--epsilon", "4", "--mechanism", "linear")
    done = run(
        "sample", str(files / "flights.parquet"), "--client", "tailnum", "--value", "arr_delay", "--agreement", agreement,
        "--other", "nearest", "--nulls", "drop", "-o", samples, "--quiet",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    names = ("mean", "variance", "median", "quantile:0.9", "at-most:0")
    chosen = [word for name in names for word in ("--statistic", name)]
    result = run(
        "estimate",
        samples,
        "--agreement",
        agreement,
        *chosen,
        "--confidence",
        "0.999999",
        "--json",
        "--plot",
        str(files / "d.png"),
    )
    assert result.exit_code == 0, result.output
    found = {each["name"]: each for each in json.loads(result.stdout)["statistics"]}
    assert tuple(found) == names
    truth = (
        pl.DataFrame(flights())
        .drop_nulls("arr_delay")
        .with_columns(pl.col("arr_delay").clip(-60, 180))
        .group_by("tailnum")
        .agg(pl.col("arr_delay").mean().alias("mean"), (pl.col("arr_delay") <= 0).mean().alias("early"))
    )
    mean = found["mean"]
    assert mean["low"] <= truth["mean"].mean() <= mean["high"]
    assert found["at-most:0"]["low"] <= truth["early"].mean() <= found["at-most:0"]["high"]
    assert mean["low"] < mean["estimate"] < mean["high"]
    assert found["at-most:0"]["blur"] == 0.0
    assert_picture(files / "d.png")


def test_what_is_listed_by_its_estimate_has_intervals_that_hold_after_ranking(run: Run, tmp_path: Path) -> None:
    """2,000 outcomes that all have the same share: of the 20 that luck puts first hardly one is in its own interval."""
    import re

    sampler = dc.LinearSampler(dc.Simplex(2000), epsilon=2.0)
    dc.Agreement.of(sampler).write(tmp_path / "a.json")
    pl.DataFrame({"sample": np.random.default_rng(0).integers(0, 2000, 3000)}).write_parquet(tmp_path / "s.parquet")
    asked = ("estimate", str(tmp_path / "s.parquet"), "--agreement", str(tmp_path / "a.json"))
    said = " ".join(run(*asked, "--top", "20").stdout.split())
    assert "the table lists the largest estimates" in said
    listed = [(float(low), float(high)) for low, high in re.findall(r"(-?[\d.e-]+) to (-?[\d.e-]+)", said)]
    assert len(listed) == 20
    assert all(low <= 0.05 <= high for low, high in listed)  # 1/2000, in per cent
    record = json.loads(run(*asked, "--json").stdout)["shares"]
    first = sorted(record, key=lambda row: -row["law"]["estimate"])[:20]
    assert sum(row["law"]["low"] <= 1 / 2000 <= row["law"]["high"] for row in first) <= 10
    whole = " ".join(run(*asked, "--top", "2000").stdout.split())
    assert "the table lists the largest estimates" not in whole


@pytest.mark.parametrize(("kind", "debiased"), [(dc.LinearSampler, True), (dc.OptimalSampler, False)])
def test_only_linear_samples_are_debiased_and_others_say_so(
    run: Run, tmp_path: Path, kind: type[Any], debiased: bool
) -> None:
    dc.Agreement.of(kind(dc.Simplex(3), epsilon=1.0)).write(tmp_path / "a.json")
    pl.DataFrame({"sample": [0] * 500 + [1] * 300 + [2] * 250}).write_parquet(tmp_path / "s.parquet")
    asked = ("estimate", str(tmp_path / "s.parquet"), "--agreement", str(tmp_path / "a.json"))
    said = " ".join(run(*asked, "--synthetic", str(tmp_path / "w.csv")).stdout.split())
    weights = pl.read_csv(tmp_path / "w.csv")["weight"].unique().to_list()
    assert (weights == [1.0]) is not debiased
    assert ("the synthetic table is not debiased" in said) is not debiased
    assert "not debiased" not in " ".join(run(*asked).stdout.split())


@pytest.mark.slow
def test_standard_input_and_synthetic_tables(run: Run, files: Path) -> None:
    weighted, rows = files / "weighted.parquet", files / "rows.csv"
    assert run(*arguments(files, "linear", "--synthetic", str(weighted))).exit_code == 0
    assert pl.read_parquet(weighted).columns == ["sample", "weight"]
    assert pl.read_parquet(weighted)["weight"].sum() == pytest.approx(4043)
    assert run(*arguments(files, "linear", "--synthetic", str(rows), "--rows", "500")).exit_code == 0
    assert pl.read_csv(rows).height == 500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rows", "5"), "--rows says how many rows --synthetic"),
        (("--truth", "x.parquet"), "--truth FILE and --value COLUMN go together"),
        (("--statistic", "mean"), "mean needs numbers"),
        (("--statistic", "mode"), "statistic = 'mode' is not one of"),
        (("--confidence", "1.5"), "confidence = 1.5"),
        (("--top", "0"), "top = 0"),
        (("--plot", "p.xyz"), "does not end in"),
        (("--synthetic", "s.xyz"), "ends in none of"),
        (("--sample", "who"), "column 'who' is not in"),
        (("--client", "tailnum"), "--client, --other and --nulls are about rows of --truth"),
        (("--other", "ATL"), "are about rows of --truth FILE or --examples FILE; give that too"),
        (("--synthetic", "-"), "name a file"),
    ],
)
def test_bad_options_are_refused_by_name(
    refusal: Callable[..., str], files: Path, more: tuple[str, ...], message: str
) -> None:
    assert message in refusal(*arguments(files, "linear", *more))


@pytest.mark.slow
def test_records_of_another_agreement_and_broken_ones_are_refused(refusal: Callable[..., str], files: Path) -> None:
    mixed = refusal("estimate", str(files / "linear.parquet"), "--agreement", str(files / "optimal.json"))
    assert "was made under agreement" in mixed
    assert "does not exist" in refusal("estimate", str(files / "no.parquet"), "--agreement", str(files / "linear.json"))
    assert refusal("estimate", str(files / "linear.parquet"), "--agreement", str(files / "no.json"))


def test_true_records_without_a_client_are_named_without_an_option_that_there_is_not(
    run: Run, refusal: Callable[..., str], tmp_path: Path
) -> None:
    rows = pl.DataFrame({"who": ["a", "b", "c"], "what": [0, 1, 2]})
    rows.write_csv(tmp_path / "rows.csv")
    terms = ("--client", "who", "--value", "what")
    samples = str(tmp_path / "samples.parquet")
    drawn = run(
        "sample", str(tmp_path / "rows.csv"), *terms, "--domain-size", "3", "--epsilon", "1", "-q", "-o", samples
    )
    assert drawn.exit_code == 0, drawn.output
    pl.concat([rows, pl.DataFrame({"who": [None], "what": [1]}, rows.schema)]).write_csv(tmp_path / "true.csv")
    said = refusal("estimate", samples, "--truth", str(tmp_path / "true.csv"), *terms)
    assert said.strip().endswith(
        "holds nulls (1 in 4 rows): a record without a client is nobody's; leave those rows out"
    )


@pytest.mark.slow
def test_what_is_read_is_never_replaced(refusal: Callable[..., str], files: Path) -> None:
    samples, raw = files / "linear.parquet", files / "flights.parquet"
    (files / "link.parquet").symlink_to(samples)
    before = samples.read_bytes(), raw.read_bytes()
    truth = ("--truth", str(raw), "--value", "dest")
    for target, more in ((samples, ()), (files / "link.parquet", ()), (raw, truth)):
        said = refusal(*arguments(files, "linear", *more, "--synthetic", str(target)))
        assert "would replace what" in said
    folder = refusal(
        "estimate", str(files / "lin*.parquet"), "--agreement", str(files / "linear.json"), "--synthetic", str(samples)
    )
    assert "would replace what" in folder
    assert (samples.read_bytes(), raw.read_bytes()) == before


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--rows", "10")])
def test_another_file_is_replaced_on_request_alone(
    run: Run, refusal: Callable[..., str], files: Path, more: tuple[str, ...]
) -> None:
    table = files / "raw.csv"
    table.write_text("who,what\nann,tea\n")
    asked = arguments(files, "linear", "--synthetic", str(table), *more)
    assert "exists already; name another file, or replace it: --force" in refusal(*asked)
    assert table.read_text() == "who,what\nann,tea\n"
    assert run(*asked, "--force").exit_code == 0
    assert table.read_text().startswith('"sample"')
    assert "--force replaces the file of --synthetic OUT" in refusal(*arguments(files, "linear", "--force"))


@pytest.mark.slow
def test_nothing_is_written_if_anything_cannot_be(refusal: Callable[..., str], files: Path) -> None:
    picture, table = files / "p.png", files / "s.parquet"
    (files / "no folder").write_text("")
    nowhere = str(files / "no folder" / "s.parquet")
    assert "cannot be written: Not a directory" in refusal(
        *arguments(files, "linear", "--plot", str(picture), "--synthetic", nowhere)
    )
    assert "does not end in" in refusal(*arguments(files, "linear", "--plot", "p.xyz", "--synthetic", str(table)))
    assert "is a folder" in refusal(
        *arguments(files, "linear", "--plot", str(_folder(files)), "--synthetic", str(table))
    )
    assert not picture.exists()
    assert not table.exists()


def _folder(files: Path) -> Path:
    (files / "folder.png").mkdir()
    return files / "folder.png"


@pytest.mark.slow
def test_labels_may_hold_anything_a_picture_would_stumble_over(run: Run, tmp_path: Path) -> None:
    import discreet as dc

    labels = ["$5 a_{", "$\\frac$", "東京", "[bold]", "x" * 200, "1 %"]
    dc.Agreement.of(dc.LinearSampler(dc.Simplex(labels), epsilon=2.0)).write(tmp_path / "a.json")
    pl.DataFrame({"sample": labels * 50}).write_parquet(tmp_path / "s.parquet")
    picture = tmp_path / "p.png"
    result = run(
        "estimate", str(tmp_path / "s.parquet"), "--agreement", str(tmp_path / "a.json"), "--plot", str(picture)
    )
    assert result.exit_code == 0, result.output
    assert "[bold]" in result.stdout
    assert_picture(picture)


def test_one_sample_and_several_rounds_are_told(run: Run, tmp_path: Path) -> None:
    import discreet as dc

    agreed = dc.Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=2.0), rounds=2)
    agreed.write(tmp_path / "a.json")
    pl.DataFrame({"sample": [1]}).write_parquet(tmp_path / "s.parquet")
    result = run("estimate", str(tmp_path / "s.parquet"), "--agreement", str(tmp_path / "a.json"))
    text = " ".join(result.stdout.split())
    for words in (
        "1 sample, linear on 3 outcomes",
        "with one client the margin of a share",
        "has 2 rounds",
        "taken on trust",
    ):
        assert words in text


def test_parquet_samples_carry_their_agreement_with_its_labels(
    run: Run, refusal: Callable[..., str], files: Path
) -> None:
    with_file = run(*arguments(files, "linear", "--json"))
    alone = run("estimate", str(files / "linear.parquet"), "--json")
    assert alone.exit_code == 0, alone.output
    assert alone.stdout == with_file.stdout
    pl.read_parquet(files / "linear.parquet").with_columns(pl.col("agreement").cast(pl.String)).write_csv(
        files / "s.csv"
    )
    assert "give --agreement FILE" in refusal("estimate", str(files / "s.csv"))


def test_raw_values_taken_for_samples_are_noticed_first(run: Run, files: Path) -> None:
    result = run(
        "estimate", str(files / "flights.parquet"), "--agreement", str(files / "linear.json"), "--sample", "dest"
    )
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "raw values instead of samples" in told
    assert told.index("raw values") < told.index("95 % interval")


def test_two_releases_of_the_same_clients_are_not_twice_as_many(
    run: Run, refusal: Callable[..., str], tmp_path: Path
) -> None:
    agreement = str(tmp_path / "a.json")
    assert (
        run("agree", agreement, "--epsilon", "2", "--outcomes", "3", "--mechanism", "linear", "--rounds", "2").exit_code
        == 0
    )
    first = pl.DataFrame({"client": range(100), "sample": [0, 1] * 50})
    first.write_parquet(tmp_path / "round1.parquet")
    first.with_columns(sample=pl.lit(2, pl.Int64)).write_parquet(tmp_path / "round2.parquet")
    said = refusal("estimate", str(tmp_path / "round*.parquet"), "--agreement", agreement)
    assert "again in 100 of 200 records: samples of several rounds" in said
    alone = json.loads(run("estimate", str(tmp_path / "round1.parquet"), "--agreement", agreement, "--json").stdout)
    assert alone["samples"] == 100
    assert not any("rounds" in note or "name their clients" in note for note in alone["notes"])
    first.drop("client").write_parquet(tmp_path / "unnamed.parquet")
    unnamed = json.loads(run("estimate", str(tmp_path / "unnamed.parquet"), "--agreement", agreement, "--json").stdout)
    assert any("do not name their clients" in note and "2 rounds" in note for note in unnamed["notes"])
    both = ("estimate", str(tmp_path / "round*.parquet"), "--agreement", agreement, "--rounds")
    found = json.loads(run(*both, "2", "--json").stdout)
    assert found["samples"] == 200
    assert [row["samples"] for row in sorted(found["shares"], key=lambda row: row["outcome"])] == [50, 50, 100]
    assert "200 samples of 100 clients" in " ".join(run(*both, "2").stdout.split())
    for name in ("key", "number", "name of the client"):  # columns of ours have such names
        renamed = pl.concat([first, first]).rename({"client": name})
        renamed.with_columns(agreement=pl.lit(dc.Agreement.read(agreement).id)).write_parquet(
            tmp_path / "named.parquet"
        )
        named = ("estimate", str(tmp_path / "named.parquet"), "--agreement", agreement, "--rounds", "2", "--json")
        assert json.loads(run(*named).stdout)["samples"] == 200
    assert "--rounds is more than 2; the agreement has 2" in refusal(*both, "3")
    assert "names clients 1 to 1 times" in refusal(
        "estimate", str(tmp_path / "round1.parquet"), "--agreement", agreement, "--rounds", "2"
    )
    assert "needs records that name their clients" in refusal(
        "estimate", str(tmp_path / "unnamed.parquet"), "--agreement", agreement, "--rounds", "2"
    )


@pytest.mark.slow
def test_examples_are_reweighted_beside_the_intervals(run: Run, files: Path) -> None:
    """Every other aircraft is public; the population by examples is near the truth, and labelled."""
    raw = pl.read_parquet(files / "flights.parquet")
    raw.filter(pl.col("tailnum").hash() % 2 == 0).write_parquet(files / "examples.parquet")
    more = ("--examples", str(files / "examples.parquet"), "--client", "tailnum", "--value", "dest")
    known = ("--truth", str(files / "flights.parquet"))
    result = run(*arguments(files, "optimal", *more, *known, "--json"))
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert sum(row["reweighted"] for row in record["shares"]) == pytest.approx(1.0)
    assert 1500 < record["reweighted"]["examples"] < 2500
    assert 0.0 < record["reweighted"]["gap"] < 1e-6
    assert record["reweighted"]["strain"] < 6.0
    assert record["fidelity"]["the weighted examples"]["tv"] < 0.1 < record["fidelity"]["the samples"]["tv"]
    told = run(*arguments(files, "optimal", *more)).stdout
    assert "by examples" in told
    assert "It depends on the examples" in " ".join(told.split())


def test_examples_need_their_columns(refusal: Callable[..., str], files: Path) -> None:
    source = ("--examples", str(files / "flights.parquet"))
    assert "--examples FILE needs --client" in refusal(*arguments(files, "linear", *source, "--value", "dest"))
    assert "column 'nobody' is not in" in refusal(
        *arguments(files, "linear", *source, "--value", "dest", "--client", "nobody")
    )
    assert "give that too" in refusal(*arguments(files, "linear", "--client", "tailnum"))
    assert "would replace" in refusal(
        *arguments(
            files,
            "linear",
            *source,
            "--value",
            "dest",
            "--client",
            "tailnum",
            "--synthetic",
            str(files / "flights.parquet"),
        )
    )


LINE = dc.GaussianMixtures(1, box=(-4.0, 4.0))


def released_on_a_line(folder: Path, sampler: dc.Sampler[Any], clients: int = 300) -> tuple[str, dc.Agreement]:
    """A CSV of what members of a family released by themselves, the agreement beside it, and what they hold as a table."""
    agreement = dc.Agreement.of(sampler, purpose="heights")
    agreement.write(folder / "line.json")
    rng = np.random.default_rng(1)
    centres = rng.uniform(-1.0, 1.0, clients)
    samples = np.asarray(sampler.release([LINE.mixture([1.0], [centre]) for centre in centres]))
    frame = pl.DataFrame({"client": np.arange(clients), "sample": samples, "agreement": [agreement.id] * clients})
    frame.write_csv(folder / "line.csv")
    values = (np.repeat(centres, 40) + rng.normal(0.0, 1.0, 40 * clients)).clip(-4.0, 4.0)
    pl.DataFrame({"who": np.repeat(np.arange(clients), 40), "x": values}).write_csv(folder / "raw.csv")
    return str(folder / "line.csv"), agreement


@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler])
@pytest.mark.parametrize("discretisation", [dc.Cells(), dc.Points(3000, seed=2)])
def test_samples_of_a_continuous_family(run: Run, tmp_path: Path, kind: Any, discretisation: Any) -> None:
    """The same record, picture and tables as for outcomes, on bins; the numbers are those of the Python call."""
    source, agreement = released_on_a_line(tmp_path, kind(LINE, epsilon=3.0, discretisation=discretisation))
    terms = ("estimate", source, "--agreement", str(tmp_path / "line.json"))
    truth = ("--truth", str(tmp_path / "raw.csv"), "--value", "x", "--client", "who")
    written = ("--plot", str(tmp_path / "p.png"), "--synthetic", str(tmp_path / "weighted.csv"))
    result = run(*terms, "--json", "--statistic", "mean", "--statistic", "median", *truth, *written)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    samples = pl.read_csv(source)["sample"]
    found = population(agreement, samples=samples)
    assert [row["outcome"] for row in record["shares"]] == found.domain.names
    assert [row["law"]["low"] for row in record["shares"]] == found.law.low.tolist()
    assert [each["low"] for each in record["statistics"]] == [found.statistic(n).low for n in ("mean", "median")]
    assert record["identifiable"] == (kind is dc.LinearSampler)
    assert sum(row["truth"] for row in record["shares"]) == pytest.approx(1.0)
    raw = pl.read_csv(tmp_path / "raw.csv")["x"].to_numpy()
    held = np.bincount(found.domain.numbers(raw), minlength=found.domain.size) / len(raw)
    assert [row["truth"] for row in record["shares"]] == pytest.approx(held.tolist())
    assert ("surely outside" in "".join(record["notes"])) == (kind is dc.OptimalSampler)
    assert ("3,000 points" in "".join(record["notes"])) == isinstance(discretisation, dc.Points)
    assert_picture(tmp_path / "p.png")
    weighted = pl.read_csv(tmp_path / "weighted.csv")
    assert weighted["sample"].to_list() == pytest.approx(samples.to_list())
    shares = np.bincount(found.domain.numbers(weighted["sample"]), weighted["weight"], minlength=found.domain.size)
    assert shares / shares.sum() == pytest.approx(found.nearest, abs=1e-6)
    drawn = run(*terms, "--bins", "5", "--synthetic", str(tmp_path / "rows.csv"), "--rows", "1000")
    assert drawn.exit_code == 0, drawn.output
    assert "all 5 at once" in drawn.stdout
    five = population(agreement, samples=samples, bins=5)
    made = np.bincount(five.domain.numbers(pl.read_csv(tmp_path / "rows.csv")["sample"]), minlength=5) / 1000
    assert np.abs(made - five.nearest).max() < 1e-3


def test_a_table_is_released_and_estimated_under_a_continuous_agreement(run: Run, tmp_path: Path) -> None:
    """From the agreement alone: the samples carry it, and clients with many values on few cells are told of as they are."""
    released_on_a_line(tmp_path, dc.OptimalSampler(LINE, epsilon=4.0, discretisation=dc.Cells(8)))
    output = str(tmp_path / "out.parquet")
    terms = ("--client", "who", "--value", "x", "--agreement", str(tmp_path / "line.json"), "-o", output)
    assert run("sample", str(tmp_path / "raw.csv"), *terms).exit_code == 0
    truth = ("--truth", str(tmp_path / "raw.csv"), "--value", "x", "--client", "who")
    record = json.loads(run("estimate", output, "--json", *truth).stdout)
    assert record["samples"] == 300
    assert record["fidelity"]["the samples"]["tv"] < 0.15
    assert all(row["law"]["all_low"] <= row["truth"] <= row["law"]["all_high"] for row in record["shares"])


@pytest.mark.filterwarnings("always::discreet.errors.OutsideFamilyWarning")
def test_lists_of_values_on_narrow_cells_are_told_of_in_one_line(run: Run, tmp_path: Path) -> None:
    released_on_a_line(tmp_path, dc.OptimalSampler(LINE, epsilon=4.0), clients=5)
    terms = ("--client", "who", "--value", "x", "--agreement", str(tmp_path / "line.json"), "--quiet")
    done = run("sample", str(tmp_path / "raw.csv"), *terms, "-o", str(tmp_path / "out.csv"))
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("discreet: 100 different values of a client move")
    assert done.stderr.count("\n") == 1


def test_bins_are_listed_by_value_and_what_sample_refuses_is_not_advised(
    run: Run, refusal: Callable[..., str], tmp_path: Path
) -> None:
    sampler = dc.OptimalSampler(LINE, epsilon=4.0, discretisation=dc.Cells(40))
    source, agreement = released_on_a_line(tmp_path, sampler)
    terms = ("estimate", source, "--agreement", str(tmp_path / "line.json"))
    told = run(*terms, "--bins", "20").stdout
    places = [
        told.index(name) for name in population(agreement, samples=pl.read_csv(source)["sample"], bins=20).domain.names
    ]
    assert places == sorted(places)
    assert "at least 40 cells" in told
    assert "more bins" not in told
    assert "17 more bins" in run(*terms, "--bins", "20", "--top", "3").stdout
    assert "equal cells of an interval" in " ".join(told.split())
    dc.Agreement.of(dc.LinearSampler(LINE, epsilon=4.0, discretisation=dc.Cells(40))).write(tmp_path / "linear.json")
    raw = ("sample", str(tmp_path / "raw.csv"), "--client", "who", "--value", "x", "-o", str(tmp_path / "out.csv"))
    refused = refusal(*raw, "--agreement", str(tmp_path / "linear.json"))
    assert "agree on optimal" in refused
    assert "--for clients" not in refused
    pl.DataFrame({"who": ["a", "a"], "x": [0.0, 9.0]}).write_csv(tmp_path / "raw.csv")
    assert "--other nearest" in refusal(*raw, "--agreement", str(tmp_path / "line.json"))


def test_what_is_refused_of_a_continuous_agreement(refusal: Callable[..., str], tmp_path: Path) -> None:
    source, _ = released_on_a_line(tmp_path, dc.OptimalSampler(LINE, epsilon=4.0, discretisation=dc.Cells(8)))
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\n")
    terms = ("estimate", source, "--agreement", str(tmp_path / "line.json"))
    assert "leave it out" in refusal(*terms, "--domain", str(labels))
    assert "bins" in refusal(*terms, "--bins", "1000")
    dc.Agreement.of(dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=1.0)).write(tmp_path / "plane.json")
    assert "does not release on a line" in refusal("estimate", source, "--agreement", str(tmp_path / "plane.json"))
    dc.Agreement.of(dc.OptimalSampler(dc.Simplex(dc.Interval(-4, 4, cells=4)), epsilon=1.0)).write(tmp_path / "f.json")
    records = pl.read_csv(source).drop("agreement", "client")
    records.write_csv(tmp_path / "bare.csv")
    finite = ("estimate", str(tmp_path / "bare.csv"), "--agreement", str(tmp_path / "f.json"))
    assert "bins for a continuous family" in refusal(*finite, "--bins", "4")
    far = pl.read_csv(source).with_columns(sample=pl.lit(5.0))
    far.write_csv(tmp_path / "far.csv")
    assert "it is on [-4, 4]" in refusal("estimate", str(tmp_path / "far.csv"), *terms[2:])
    learned = ("--from", source, "--agreement", str(tmp_path / "line.json"), "-o", str(tmp_path / "d.json"))
    assert "on a list of outcomes" in refusal("design", *learned, "--epsilon", "1")


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["linear", "optimal"])
def test_what_liars_can_do_stands_beside_the_intervals(run: Run, files: Path, mechanism: str) -> None:
    said = " ".join(run(*arguments(files, mechanism, "--top", "3")).stdout.split())
    assert "intervals allow for chance, not for lies" in said
    told = run(*arguments(files, mechanism, "--liars", "20", "--top", "3"))
    assert "despite 20" in " ".join(told.stdout.split())
    record = json.loads(run(*arguments(files, mechanism, "--liars", "20", "--json")).stdout)
    one = record["liars"]["one"]
    gamma = dc.Agreement.read(files / f"{mechanism}.json").sampler().constants.gamma
    assert one == pytest.approx(1.0 / 4043 if mechanism == "optimal" else 1.0 / (gamma * 4043))
    assert record["liars"]["shift"] == pytest.approx(20 * one)
    for row in record["shares"]:
        assert row["despite_liars"]["low"] <= row["law"]["low"] <= row["law"]["high"] <= row["despite_liars"]["high"]
    refused = run(*arguments(files, mechanism, "--liars", "5000"))
    assert (refused.exit_code, "--liars" in refused.stderr) == (2, True)


@pytest.fixture
def joint(tmp_path: Path) -> tuple[dc.Agreement, Any]:
    """An agreement on three samples of each client drawn together, and the labels that 400 clients released under it."""
    sampler = dc.JointSampler(dc.Simplex(["red", "green", "blue"]), samples=3, epsilon=4.0)
    agreed = dc.Agreement.of(sampler, purpose="several")
    agreed.write(tmp_path / "joint.json")
    laws = np.random.default_rng(1).dirichlet([4.0, 2.0, 1.0], 400)
    return agreed, np.asarray(sampler.release(laws))


def _wide(agreed: dc.Agreement, labels: Any) -> pl.DataFrame:
    columns = {f"sample_{place + 1}": labels[:, place] for place in range(3)}
    return pl.DataFrame({"who": range(len(labels)), **columns, "agreement": agreed.id})


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("layout", ["columns", "records"])
def test_samples_drawn_at_once_are_estimated_as_in_python(
    run: Run, joint: tuple[dc.Agreement, Any], tmp_path: Path, ending: str, layout: str
) -> None:
    agreed, labels = joint
    frame = _wide(agreed, labels)
    if layout == "records":
        frame = frame.unpivot([f"sample_{place}" for place in (1, 2, 3)], index=["who", "agreement"])
        frame = frame.select("who", pl.col("value").alias("sample"), "agreement")
    path = tmp_path / f"samples.{ending}"
    (frame.write_parquet if ending == "parquet" else frame.write_csv)(path)
    asked = ("estimate", str(path), "--agreement", str(tmp_path / "joint.json"))
    done = run(*asked, "--json")
    assert done.exit_code == 0, done.output
    found, expected = json.loads(done.stdout), population(agreed, samples=labels)
    assert found["samples"] == 1200
    assert not any("trust" in note for note in found["notes"])
    for field in ("estimate", "low", "high", "all_low", "all_high"):
        assert [row["law"][field] for row in found["shares"]] == pytest.approx(getattr(expected.law, field).tolist())
    said = " ".join(run(*asked, "--plot", str(tmp_path / "a.png"), "--liars", "3").stdout.split())
    assert "1,200 samples of 400 clients" in said
    assert "all samples of a client together should look like it" in said


def test_what_is_refused_of_samples_drawn_at_once(
    refusal: Callable[..., str], joint: tuple[dc.Agreement, Any], tmp_path: Path
) -> None:
    agreed, labels = joint
    frame, path = _wide(agreed, labels), tmp_path / "samples.parquet"

    def said(table: pl.DataFrame, *more: str) -> str:
        table.write_parquet(path)
        return refusal("estimate", str(path), "--agreement", str(tmp_path / "joint.json"), *more)

    assert "no column 'sample_3'; the agreement is on 3 samples" in said(frame.drop("sample_3"))
    assert "has a column sample_4" in said(frame.with_columns(sample_4=pl.lit("red")))
    assert "does not know: 'pink'" in said(frame.with_columns(sample_2=pl.lit("pink")))
    assert "does not know" in said(frame.with_columns(sample_2=pl.lit(None, pl.String)))
    assert "was made under agreement" in said(frame.with_columns(agreement=pl.lit("0" * 64)))
    assert "names the same clients again" in said(frame.with_columns(who=pl.lit(1)))
    assert "--rounds is for samples that were released one at a time" in said(frame, "--rounds", "3")
    assert "without --rows N, are for one sample" in said(frame, "--synthetic", str(tmp_path / "s.csv"))
    single = frame.select("who", pl.col("sample_1").alias("sample"), "agreement")
    assert "names clients 1 to 1 times, not 3 times" in said(single)
    assert "needs records that name their clients" in said(single.drop("who"))


def test_commands_for_one_sample_refuse_samples_drawn_at_once_and_say_what_to_use(
    refusal: Callable[..., str], joint: tuple[dc.Agreement, Any], tmp_path: Path
) -> None:
    agreed, labels = joint
    path, terms = str(tmp_path / "samples.parquet"), str(tmp_path / "joint.json")
    _wide(agreed, labels).write_parquet(path)
    for command in (
        ("plan", "--agreement", terms, "--clients", "100"),
        ("design", "--from", path, "--agreement", terms, "--epsilon", "1", "-o", str(tmp_path / "d.json")),
        ("collect", terms),
    ):
        said = refusal(*command)
        assert "is on 3 samples of each client drawn together" in said, command
        assert "agreement.joint_sampler()" in said
        assert "or agree on one sample" in said


def test_a_table_never_prints_lower_ends_that_add_up_to_more_than_all(run: Run, tmp_path: Path) -> None:
    """Raw values of two labels, half of the clients each: each interval by itself says nearly 100 % of three outcomes."""
    agreed = dc.Agreement.of(dc.LinearSampler(dc.Simplex(["a", "b", "c"]), epsilon=0.5))
    agreed.write(tmp_path / "agreement.json")
    pl.DataFrame({"client": np.arange(20_000), "sample": ["a", "b"] * 10_000}).write_csv(tmp_path / "raw.csv")
    result = run("estimate", str(tmp_path / "raw.csv"), "--agreement", str(tmp_path / "agreement.json"))
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith(("a ", "b ", "c "))]
    assert [len(row) for row in rows] == [6, 6, 6]  # label, share, low, to, high, nearest
    assert sum(float(row[2]) for row in rows) <= 100.0
    assert "Ranks" in result.stdout


def test_a_picture_of_labels_without_a_font_says_which_one_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """As on a server with matplotlib's own font alone."""
    from discreet.plots import _style

    monkeypatch.chdir(tmp_path)
    sampler = dc.LinearSampler(dc.Simplex(["東京", "大阪"]), epsilon=1.0)
    table = pl.DataFrame({"client": range(200), "value": ["東京", "大阪"] * 100})
    released = dc.tables.sample(table, client="client", value="value", sampler=sampler)
    pl.DataFrame(released).write_csv("samples.csv")
    dc.Agreement.of(sampler).write("agreement.json")
    for fonts in (False, True):
        monkeypatch.setattr(_style, "_installed_fonts", list)
        _style._drawable_characters.cache_clear()
        if fonts:
            monkeypatch.setattr(_style, "_drawable_characters", lambda: frozenset(range(0x110000)))
        found = run("estimate", "samples.csv", "--agreement", "agreement.json", "--plot", f"{fonts}.png")
        assert found.exit_code == 0, found.output
        assert Path(f"{fonts}.png").stat().st_size > 1000
        assert ("apt install fonts-noto-cjk" in found.stderr) is not fonts
    monkeypatch.undo()
    _style._drawable_characters.cache_clear()


@pytest.mark.parametrize("family", [dc.Simplex(3), dc.GaussianMixtures(1)])
def test_what_is_said_to_be_at_most_is_no_less_than_the_worst_case_of_either_mechanism(family: Any) -> None:
    linear, optimal = (kind(family, epsilon=1.0) for kind in (dc.LinearSampler, dc.OptimalSampler))
    found = population(linear, samples=[0, 1] * 300, bins=None if isinstance(family, dc.Simplex) else 5)
    said = _mechanism_advice_text(found)
    margin, risk = re.findall(r"at most \+-([0-9.]+) here|TV is at most ([0-9.]+) for", said)
    assert float(margin[0]) >= found.margin_at_worst
    assert float(risk[1]) >= max(float(linear.risk("tv")), float(optimal.risk("tv")))
    shift = liars(found).shift
    assert (
        100 * shift
        <= float(re.findall(r"shift a share by ([0-9.]+) %", _influence_of_liars_text(found))[0])
        <= 101 * shift
    )


def test_files_that_are_no_samples_are_told_what_they_are(
    refusal: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agreement = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(["a", "b"]), epsilon=1.0))
    Path("agreed.json").write_text(agreement.text)
    assert "agreed.json is an agreement; name the file of samples" in refusal("estimate", "agreed.json")
    pl.DataFrame({"client": [1], "value": ["a"]}).write_parquet("records.parquet")
    line = refusal("estimate", "records.parquet")
    assert "it has 'client', 'value'. Records are released with `discreet sample`" in line
    Path("records.csv").write_text("ann,ill\nbob,well\n")  # which has no header
    line = refusal("estimate", "records.csv")
    assert "its first line has 2 other names, or is a record, and is not shown" in line
    assert not re.search(r"\b(ann|ill)\b", line)
    Path("samples.csv").write_text("client,sample\n1,a\n")
    assert "samples.csv does not carry the agreement" in refusal("estimate", "samples.csv")
