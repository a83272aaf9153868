"""`discreet estimate --by` and `--compare`, from tables of samples and of clients."""

import json
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli._app import app
from discreet.cli._estimate._groups import _notes_on_groups
from discreet.cli._printing import percent_text
from discreet.estimation import ClientGroups, change, estimate_groups, population, reported_population
from discreet.estimation._client_tables import group_sort_key
from discreet.mechanisms import ReportCounts
from tests.pictures import assert_picture

Run = Callable[..., Any]
DRINKS = ["tea", "coffee", "juice", "water"]
CLIENTS = 4000


@pytest.fixture(scope="module")
def drinks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months of samples and of reports, a table of clients with regions, and the true drinks."""
    folder = tmp_path_factory.mktemp("drinks")
    rng = np.random.default_rng(8)
    region = rng.choice(["north", "south", "west"], CLIENTS, p=[0.5, 0.4, 0.1])
    region[:3] = "isle"
    tea = np.where(region == "north", 0.7, 0.2)
    drink = np.where(rng.random(CLIENTS) < tea, "tea", rng.choice(DRINKS[1:], CLIENTS))
    later = np.where(rng.random(CLIENTS) < 0.3, "water", drink)
    (folder / "drinks.txt").write_text("\n".join(DRINKS) + "\n")
    pl.DataFrame({"id": np.arange(CLIENTS), "region": region}).write_csv(folder / "clients.csv")
    pl.DataFrame({"person": np.arange(CLIENTS), "drink": drink}).write_parquet(folder / "january.raw.parquet")
    pl.DataFrame({"person": np.arange(CLIENTS), "drink": later})[1000:].write_parquet(folder / "february.raw.parquet")
    for kind in ("linear", "reports"):
        terms = folder / f"{kind}.json"
        start = ["agree", str(terms), "--domain", str(folder / "drinks.txt"), "--epsilon", "3", "--mechanism", kind]
        assert CliRunner().invoke(app, start).exit_code == 0
        for month in ("january", "february"):
            done = CliRunner().invoke(
                app,
                ["sample", str(folder / f"{month}.raw.parquet"), "--client", "person", "--value", "drink", "--agreement", str(terms),
                 "-o", str(folder / f"{month}.{kind}.parquet"), "-q"],
            )  # fmt: skip
            assert done.exit_code == 0, done.output
    return folder


def by_region(folder: Path, kind: str, *more: str) -> list[str]:
    return [
        "estimate", str(folder / f"january.{kind}.parquet"), "--by", "region", "--clients-table", str(folder / "clients.csv"), "--client",
        "id", *more,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["linear", "reports"])
def test_groups_of_a_table_of_clients(run: Run, drinks: Path, kind: str) -> None:
    result = run(*by_region(drinks, kind, "--json", "--confidence", "0.999999"))
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    groups = {each["group"]: each for each in record["groups"]}
    assert list(groups) == ["isle", "north", "south", "west"]
    raw = pl.read_parquet(drinks / "january.raw.parquet").join(
        pl.read_csv(drinks / "clients.csv"), left_on="person", right_on="id"
    )
    for name, each in groups.items():
        mine = raw.filter(pl.col("region") == name)
        assert each["clients"] == each["listed"] == mine.height
        for row in each["shares"]:
            truth = (mine["drink"] == row["outcome"]).mean()
            assert row["law"]["all_low"] <= truth <= row["law"]["all_high"]
    assert [name for name, each in groups.items() if each["tells_nothing"]] == ["isle"]
    assert record["all_at_once"] == 16
    assert any("'isle' (3)" in note for note in record["notes"])


@pytest.mark.parametrize("kind", ["linear", "reports"])
def test_groups_of_a_column_of_the_samples_are_the_same(run: Run, drinks: Path, tmp_path: Path, kind: str) -> None:
    joined = pl.read_parquet(drinks / f"january.{kind}.parquet").join(
        pl.read_csv(drinks / "clients.csv"), left_on="person", right_on="id"
    )
    agreed = ("--agreement", str(drinks / f"{kind}.json"), "--json")
    there = json.loads(run(*by_region(drinks, kind, "--json")).stdout)["groups"]
    for name in ("joined.csv", "joined.parquet", "joined.jsonl"):
        path = tmp_path / name
        write: Any = {".csv": joined.write_csv, ".parquet": joined.write_parquet, ".jsonl": joined.write_ndjson}[
            path.suffix
        ]
        write(path)
        found = json.loads(run("estimate", str(path), "--by", "region", *agreed).stdout)["groups"]
        assert [each["shares"] for each in found] == [each["shares"] for each in there]


def test_the_names_of_columns_are_no_patterns(run: Run, drinks: Path, tmp_path: Path) -> None:
    joined = pl.read_parquet(drinks / "january.linear.parquet").join(
        pl.read_csv(drinks / "clients.csv"), left_on="person", right_on="id"
    )
    joined.rename({"region": "*", "sample": "^.*$"}).write_parquet(tmp_path / "joined.parquet")
    agreed = ("--agreement", str(drinks / "linear.json"), "--sample", "^.*$", "--by", "*", "--json")
    found = json.loads(run("estimate", str(tmp_path / "joined.parquet"), *agreed).stdout)["groups"]
    there = json.loads(run(*by_region(drinks, "linear", "--json")).stdout)["groups"]
    assert [each["shares"] for each in found] == [each["shares"] for each in there]


def test_people_see_every_group_and_a_picture(run: Run, drinks: Path, tmp_path: Path) -> None:
    result = run(*by_region(drinks, "linear", "--plot", str(tmp_path / "groups.png"), "--top", "2"))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for words in (
        "4,000 samples in 4 groups by region", "3 of 3", "2 more outcomes", "all 4 groups and 4 outcomes at once",
        "Groups are public", "or more: 'isle' (3)",
    ):  # fmt: skip
        assert words in said
    assert_picture(tmp_path / "groups.png")


def test_clients_without_a_group(run: Run, refusal: Callable[..., str], drinks: Path, tmp_path: Path) -> None:
    pl.read_csv(drinks / "clients.csv")[500:].with_columns(
        pl.when(pl.col("id") < 600).then(None).otherwise(pl.col("region")).alias("region")
    ).write_csv(tmp_path / "some.csv")
    start = ["estimate", str(drinks / "january.linear.parquet"), "--by", "region"]
    asked = [*start, "--clients-table", str(tmp_path / "some.csv"), "--client", "id"]
    assert "600 of 4,000 clients have no group" in refusal(*asked)
    dropped = json.loads(run(*asked, "--null-groups", "drop", "--json").stdout)
    assert sum(each["clients"] for each in dropped["groups"]) == 3400
    assert any("600 clients without a group were left out" in note for note in dropped["notes"])
    own = json.loads(run(*asked, "--null-groups", "group", "--json").stdout)
    assert (own["groups"][-1]["group"], own["groups"][-1]["clients"]) == ("(no group)", 600)
    assert own["groups"][-1]["listed"] == 100


def test_numbers_are_groups_in_their_order(run: Run, tmp_path: Path) -> None:
    sampler = dc.LinearSampler(dc.Simplex(5), epsilon=3.0)
    dc.Agreement.of(sampler).write(tmp_path / "a.json")
    rng = np.random.default_rng(9)
    pl.DataFrame(
        {"client": np.arange(900), "sample": rng.integers(0, 5, 900), "year": rng.choice([2, 10, 100], 900)}
    ).write_parquet(tmp_path / "s.parquet")
    result = run(
        "estimate", str(tmp_path / "s.parquet"), "--agreement", str(tmp_path / "a.json"), "--by", "year", "--statistic", "mean", "--json"
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    groups = json.loads(result.stdout)["groups"]
    assert [each["group"] for each in groups] == ["2", "10", "100"]
    assert all(each["statistics"][0]["low"] < 2.0 < each["statistics"][0]["high"] for each in groups)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--by", "planet"), "'planet' is not in"),
        (("--by", "region"), "--clients-table"),
        (("--by", "region", "--clients-table", "CLIENTS"), "--client COLUMN"),
        (("--by", "region", "--clients-table", "CLIENTS", "--client", "nobody"), "'nobody' is not in"),
        (("--by", "region", "--client", "id"), "--clients-table FILE"),
        (("--clients-table", "CLIENTS"), "--by COLUMN"),
        (("--by", "region", "--clients-table", "CLIENTS", "--client", "id", "--null-groups", "keep"), "--null-groups keep"),
        (("--by", "region", "--liars", "3"), "--liars does not go with --by"),
        (("--by", "region", "--compare", "x.parquet"), "--compare does not go with --by"),
        (("--compare", "IN"), "the same file"),
        (("--compare", "-"), "instead of -"),
        (("--compare", "CLIENTS", "--truth", "x"), "--truth does not go with --compare"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(
    refusal: Callable[..., str], drinks: Path, more: tuple[str, ...], said: str
) -> None:
    samples = str(drinks / "january.linear.parquet")
    known = {"CLIENTS": str(drinks / "clients.csv"), "IN": samples}
    assert said in refusal("estimate", samples, *(known.get(word, word) for word in more))


def test_a_file_is_not_compared_with_itself_under_any_name(
    refusal: Callable[..., str], drinks: Path, tmp_path: Path
) -> None:
    folder, file = tmp_path / "one", tmp_path / "one" / "x.parquet"
    folder.mkdir()
    shutil.copy(drinks / "january.linear.parquet", file)
    (tmp_path / "link").symlink_to(folder)
    shutil.copy(drinks / "february.linear.parquet", tmp_path / "other.parquet")
    names = (str(folder), str(file), f"{folder}/*.parquet", f"{tmp_path}/link/x*")
    for first, second in [*permutations(names, 2), (str(folder), f"{tmp_path}/**/*.parquet")]:
        assert "reads the same file as" in refusal("estimate", first, "--compare", second)


def test_a_client_has_one_group(refusal: Callable[..., str], drinks: Path, tmp_path: Path) -> None:
    table = pl.read_csv(drinks / "clients.csv")
    pl.concat([table, table[:7]]).write_csv(tmp_path / "twice.csv")
    start = ["estimate", str(drinks / "january.linear.parquet"), "--by", "region", "--client", "id"]
    assert "names clients again in 7 of 4,007 rows" in refusal(*start, "--clients-table", str(tmp_path / "twice.csv"))


def test_a_column_that_names_the_clients_is_no_group(refusal: Callable[..., str], tmp_path: Path) -> None:
    """Neither ten thousand groups, nor a thousand with as many outcomes as fill the memory."""
    for size, clients, most in ((3, 11_000, "10,000"), (20_000, 600, "500")):
        dc.Agreement.of(dc.LinearSampler(dc.Simplex(size), epsilon=3.0)).write(tmp_path / f"{size}.json")
        samples = pl.DataFrame({"client": np.arange(clients), "sample": np.arange(clients) % 3})
        samples.write_parquet(tmp_path / "s.parquet")
        asked = ("--agreement", str(tmp_path / f"{size}.json"), "--by", "client")
        assert f"more than {most} groups" in refusal("estimate", str(tmp_path / "s.parquet"), *asked)


@pytest.mark.parametrize("kind", ["linear", "reports"])
def test_the_change_between_two_months(run: Run, drinks: Path, tmp_path: Path, kind: str) -> None:
    files = [str(drinks / f"{month}.{kind}.parquet") for month in ("january", "february")]
    record = json.loads(run("estimate", "--compare", *files, "--json", "--confidence", "0.999999").stdout)
    assert (record["before"]["clients"], record["after"]["clients"]) == (4000, 3000)
    assert record["clients"] == {"only_before": 1000, "both": 3000, "only_after": 0}
    raw = [pl.read_parquet(drinks / f"{month}.raw.parquet")["drink"] for month in ("january", "february")]
    for row in record["changes"]:
        truth = (raw[1] == row["outcome"]).mean() - (raw[0] == row["outcome"]).mean()
        assert row["change"]["all_low"] <= truth <= row["change"]["all_high"]
        assert row["change"]["estimate"] == pytest.approx(row["after"] - row["before"])
    result = run("estimate", "--compare", *files, "--plot", str(tmp_path / "change.png"))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for words in (
        "3,000 clients are in both files, 1,000 only before, 0 only after",
        "rose",
        "all 4 at once",
        "who took part",
    ):
        assert words in said
    assert_picture(tmp_path / "change.png")


def test_the_same_clients_others_and_unknown_ones(run: Run, drinks: Path, tmp_path: Path) -> None:
    samples = pl.read_parquet(drinks / "january.linear.parquet")
    agreed = ("--agreement", str(drinks / "linear.json"), "--json")
    parts = {
        "first": samples[:2000],
        "second": samples[2000:],
        "again": samples[:2000].reverse(),
        "bare": samples[["sample"]],
    }
    for name, part in parts.items():
        part.write_parquet(tmp_path / f"{name}.parquet")

    def notes(before: str, after: str) -> str:
        files = [str(tmp_path / f"{name}.parquet") for name in (before, after)]
        return " ".join(json.loads(run("estimate", "--compare", *files, *agreed).stdout)["notes"])

    assert "no client is in both files" in notes("first", "second")
    assert "the same 2,000 clients are in both files" in notes("first", "again")
    assert "does not name its clients" in notes("first", "bare")


def test_samples_before_and_reports_after(run: Run, drinks: Path) -> None:
    """A mechanism may change between the two; the outcomes may not."""
    files = [str(drinks / f"january.{kind}.parquet") for kind in ("linear", "reports")]
    result = run("estimate", "--compare", *files, "--json", "--confidence", "0.999999")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert [record[side]["mechanism"] for side in ("before", "after")] == ["linear", "reports"]
    assert all(row["change"]["all_low"] <= 0.0 <= row["change"]["all_high"] for row in record["changes"])


def test_the_command_gives_what_the_library_does(run: Run, drinks: Path) -> None:
    tables = [pl.read_parquet(drinks / f"{month}.reports.parquet") for month in ("january", "february")]
    agreed = dc.Agreement.read(drinks / "reports.json")
    found = change(*(reported_population(agreed, reports=table["report"].to_numpy()) for table in tables))
    files = [str(drinks / f"{month}.reports.parquet") for month in ("january", "february")]
    record = json.loads(run("estimate", "--compare", *files, "--json").stdout)
    np.testing.assert_allclose([row["change"]["all_low"] for row in record["changes"]], found.law.all_low)
    whole = json.loads(run("estimate", files[0], "--json").stdout)["shares"]
    linear = population(dc.Agreement.read(drinks / "linear.json"), counts=[1, 2, 3, 4])
    assert [row["outcome"] for row in whole] == list(linear.domain.names)


def test_the_change_of_a_mean(run: Run, tmp_path: Path) -> None:
    for kind, column in (("linear", "sample"), ("reports", "report")):
        sampler: Any = {"linear": dc.LinearSampler, "reports": dc.ReportSampler}[kind](dc.Simplex(5), epsilon=3.0)
        dc.Agreement.of(sampler).write(tmp_path / f"{kind}.json")
        for name, top in (("before", 3), ("after", 5)):
            records = np.random.default_rng(top).integers(0, top, 3000)
            sent = sampler.randomised_response(records) if kind == "linear" else sampler.release_records(records)
            pl.DataFrame({"client": np.arange(3000), column: sent}).write_parquet(tmp_path / f"{name}.parquet")
        files = [str(tmp_path / f"{name}.parquet") for name in ("before", "after")]
        result = run(
            "estimate", "--compare", *files, "--agreement", str(tmp_path / f"{kind}.json"), "--statistic", "mean", "--json", "--confidence",
            "0.9999",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        mean = json.loads(result.stdout)["statistics"][0]
        assert mean["low"] < 1.0 < mean["high"]
        assert mean["high"] - mean["low"] < 0.8


@pytest.mark.parametrize(("kind", "column"), [("linear", "sample"), ("reports", "report")])
def test_what_clients_released_is_no_group(refusal: Callable[..., str], drinks: Path, kind: str, column: str) -> None:
    """Within equal samples there is nothing to estimate, and an interval would exclude nearly every population."""
    line = refusal("estimate", str(drinks / f"january.{kind}.parquet"), "--by", column)
    assert f"column '{column}'" in line
    assert "a public column" in line


@pytest.mark.parametrize("column", ["agreement", "place", "region"])
def test_what_reports_add_up_to_has_no_groups(
    refusal: Callable[..., str], drinks: Path, tmp_path: Path, column: str
) -> None:
    agreement = dc.Agreement.read(drinks / "reports.json")
    sampler = agreement.report_sampler()
    table = ReportCounts(sampler).add(sampler.release_records(["tea"] * 300)).table
    exported = pl.DataFrame({"place": np.arange(len(table)), "counted": table})
    exported.with_columns(agreement=pl.lit(agreement.id)).write_csv(tmp_path / "counts.csv")
    asked = ["estimate", str(tmp_path / "counts.csv"), "--agreement", str(drinks / "reports.json")]
    assert "discreet collect --groups" in refusal(*asked, "--by", column)


def test_a_group_called_like_clients_without_one_is_not_joined_with_them(
    run: Run, refusal: Callable[..., str], drinks: Path, tmp_path: Path
) -> None:
    groups = [None] * 10 + ["(no group)"] * 20 + ["north"] * (CLIENTS - 30)
    pl.DataFrame({"person": np.arange(CLIENTS), "region": groups}).write_csv(tmp_path / "clients.csv")
    asked = ["estimate", str(drinks / "january.linear.parquet"), "--by", "region", "--clients-table"]
    assert "'(no group)'" in refusal(*asked, str(tmp_path / "clients.csv"), "--null-groups", "group")
    dropped = json.loads(run(*asked, str(tmp_path / "clients.csv"), "--null-groups", "drop", "--json").stdout)
    assert {each["group"]: each["clients"] for each in dropped["groups"]} == {"(no group)": 20, "north": CLIENTS - 30}


@pytest.mark.parametrize("nulls", ["error", "drop", "group"])
def test_clients_whose_names_are_written_otherwise_are_not_called_clients_without_a_group(
    refusal: Callable[..., str], drinks: Path, tmp_path: Path, nulls: str
) -> None:
    names = [f"{number}.0" for number in range(CLIENTS)]
    pl.DataFrame({"person": names, "region": ["north"] * CLIENTS}).write_csv(tmp_path / "clients.csv")
    asked = ["estimate", str(drinks / "january.linear.parquet"), "--by", "region", "--null-groups", nulls]
    assert "(1, not 1.0)" in refusal(*asked, "--clients-table", str(tmp_path / "clients.csv"))


def test_an_empty_table_of_clients_leaves_everybody_without_a_group(
    refusal: Callable[..., str], drinks: Path, tmp_path: Path
) -> None:
    pl.read_csv(drinks / "clients.csv")[:0].write_parquet(tmp_path / "nobody.parquet")
    asked = ["estimate", str(drinks / "january.linear.parquet"), "--by", "region"]
    said = refusal(*asked, "--clients-table", str(tmp_path / "nobody.parquet"), "--client", "id")
    assert "4,000 of 4,000 clients have no group" in said


def test_small_shares_are_not_said_to_be_0() -> None:
    assert [percent_text(share) for share in (0.0, 4.2e-5, -4.2e-5, 0.0123)] == ["0.00", "4.2e-03", "-4.2e-03", "1.23"]
    assert [percent_text(share, "+") for share in (4.2e-5, 0.0123)] == ["+4.2e-03", "+1.23"]


def test_groups_that_tell_little_are_counted_without_those_that_tell_nothing() -> None:
    sampler = dc.LinearSampler(dc.Simplex(2), epsilon=1.0)
    found = estimate_groups(sampler, counts={name: [5, 5] for name in ("none", "little", "much")})
    found.__dict__.update(margins={"none": 0.09, "little": 0.14, "much": 0.02}, silent=("none",))
    notes = _notes_on_groups(found, 0, ClientGroups("region"))
    assert any(note.startswith("1 of 3 groups tell some share to no better than") for note in notes)


def test_a_group_called_nan_has_one_place_among_the_others() -> None:
    names = ["nan", "b", "10", "NaN", "9", "a"]
    ordered = ["9", "10", "NaN", "a", "b", "nan", "(no group)"]
    for start in range(len(names)):
        assert sorted([*names[start:], "(no group)", *names[:start]], key=group_sort_key) == ordered
