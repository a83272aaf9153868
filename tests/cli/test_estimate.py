import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from discreet.data import destinations, flights
from tests.pictures import assert_picture

Run = Callable[..., Any]


@pytest.fixture
def files(run: Run, tmp_path: Path) -> Path:
    """Raw flights, the public airports, and a release by each mechanism with its agreement."""
    import pyarrow.parquet as pq

    pq.write_table(flights(), tmp_path / "flights.parquet")
    (tmp_path / "airports.txt").write_text("\n".join(destinations()) + "\n")
    for mechanism in ("linear", "optimal"):
        done = run(
            "sample", str(tmp_path / "flights.parquet"), "--client", "tailnum", "--value", "dest",
            "--domain", str(tmp_path / "airports.txt"), "--epsilon", "4", "--mechanism", mechanism, "--quiet",
            "-o", str(tmp_path / f"{mechanism}.parquet"), "--write-agreement", str(tmp_path / f"{mechanism}.json"),
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    return tmp_path


def arguments(files: Path, mechanism: str, *more: str) -> list[str]:
    return ["estimate", str(files / f"{mechanism}.parquet"), "--agreement", str(files / f"{mechanism}.json"), *more]


@pytest.mark.parametrize("mechanism", ["linear", "optimal"])
def test_json_holds_every_share_and_intervals_hold_the_truth(run: Run, files: Path, mechanism: str) -> None:
    more = ("--truth", str(files / "flights.parquet"), "--value", "dest", "--client", "tailnum", "--json")
    result = run(*arguments(files, mechanism, *more))
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert (record["samples"], record["identifiable"], len(record["shares"])) == (4043, mechanism == "linear", 104)
    assert sum(row["samples"] for row in record["shares"]) == 4043
    assert sum(row["law"]["estimate"] for row in record["shares"]) == pytest.approx(1.0)
    covered = [row["law"]["all_low"] <= row["truth"] <= row["law"]["all_high"] for row in record["shares"]]
    assert sum(covered) >= 103  # all at once with probability 0.95, and then all but one
    assert record["fidelity"]["the samples as they are"]["tv"] > 0.2
    if mechanism == "linear":
        debiased = record["fidelity"]["the nearest law (debiased)"]["tv"]
        assert debiased < record["fidelity"]["the samples as they are"]["tv"]


def test_people_see_a_table_the_choice_of_mechanism_and_a_picture(run: Run, files: Path) -> None:
    result = run(*arguments(files, "linear", "--top", "3", "--plot", str(files / "new" / "p.png")))
    assert result.exit_code == 0, result.output
    for word in ("4,043 samples", "95 % interval", "all 104 at once", "ATL", "101 more outcomes", "Which mechanism"):
        assert word in result.stdout
    assert_picture(files / "new" / "p.png")
    result = run(*arguments(files, "optimal", "--plot", str(files / "o.svg")))
    assert "cannot be told exactly" in " ".join(result.stdout.split())
    assert_picture(files / "o.svg")


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
    result = run("estimate", samples, "--agreement", agreement, *chosen, "--json", "--plot", str(files / "d.png"))
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
    assert mean["low"] - 5 <= truth["mean"].mean() <= mean["high"] + 5
    assert mean["low"] < mean["estimate"] < mean["high"]
    assert found["at-most:0"]["blur"] == 0.0
    assert_picture(files / "d.png")


def test_standard_input_and_synthetic_tables(run: Run, files: Path) -> None:
    weighted, rows = files / "weighted.parquet", files / "rows.csv"
    assert run(*arguments(files, "linear", "--synthetic", str(weighted))).exit_code == 0
    assert pl.read_parquet(weighted).columns == ["sample", "weight"]
    assert pl.read_parquet(weighted)["weight"].sum() == pytest.approx(4043)
    assert run(*arguments(files, "linear", "--synthetic", str(rows), "--rows", "500")).exit_code == 0
    assert pl.read_csv(rows).height == 500


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
    ],
)
def test_bad_options_are_refused_by_name(
    refusal: Callable[..., str], files: Path, more: tuple[str, ...], message: str
) -> None:
    assert message in refusal(*arguments(files, "linear", *more))


def test_records_of_another_agreement_and_broken_ones_are_refused(refusal: Callable[..., str], files: Path) -> None:
    mixed = refusal("estimate", str(files / "linear.parquet"), "--agreement", str(files / "optimal.json"))
    assert "was made under agreement" in mixed
    assert "does not exist" in refusal("estimate", str(files / "no.parquet"), "--agreement", str(files / "linear.json"))
    assert refusal("estimate", str(files / "linear.parquet"), "--agreement", str(files / "no.json"))
