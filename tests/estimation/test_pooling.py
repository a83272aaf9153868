"""Stages together: intervals cover the average client of all of them, whatever the stages and mechanisms."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

import discreet as dc
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.errors import DiscreetError
from discreet.estimation import PooledPopulation, pooled_population, population, reported_population
from discreet.mechanisms import ReportCounts, ReportSampler
from discreet.tables import METADATA
from tests.soaking import wide

SIMPLEX = dc.Simplex(["a", "b", "c", "d"])
LINEAR, STRONGER = dc.LinearSampler(SIMPLEX, epsilon=1.0), dc.LinearSampler(SIMPLEX, epsilon=2.5)
OPTIMAL, REPORTS = dc.OptimalSampler(SIMPLEX, epsilon=2.0), ReportSampler(SIMPLEX, epsilon=1.0)
FIRST, SECOND = np.array([0.7, 0.2, 0.1, 0.0]), np.array([0.05, 0.15, 0.3, 0.5])


def stage(sampler: Any, law: Any, clients: int, rng: np.random.Generator) -> Any:
    """The estimate from so many clients, each of whom holds one outcome for certain."""
    held = rng.choice(4, size=clients, p=law)
    if isinstance(sampler, ReportSampler):
        reports = sampler.release_records(np.array(["a", "b", "c", "d"])[held].tolist(), rng=rng)
        return reported_population(sampler, counts=ReportCounts(sampler).add(reports))
    chances, holders = sampler.output(np.eye(4)), np.bincount(held, minlength=4)
    return population(sampler, counts=sum(rng.multinomial(n, law) for n, law in zip(holders, chances, strict=True)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "samplers",
    [
        pytest.param((LINEAR, STRONGER), id="two", marks=pytest.mark.soak),
        pytest.param((LINEAR, LINEAR), id="the same", marks=pytest.mark.soak),
        pytest.param((LINEAR, REPORTS), id="reports", marks=pytest.mark.soak),
        pytest.param((LINEAR, OPTIMAL), id="not identifiable"),
        pytest.param((LINEAR, STRONGER, REPORTS), id="three"),
    ],
)
def test_intervals_cover_the_average_of_all_stages(samplers: tuple[Any, ...]) -> None:
    rng, many = np.random.default_rng(11), wide(2000, 100)
    clients, laws = (150, 350, 100)[: len(samplers)], (FIRST, SECOND, FIRST)[: len(samplers)]
    truth = sum(n * law for n, law in zip(clients, laws, strict=True)) / sum(clients)
    missed, missed_any = np.zeros(4), 0
    for _ in range(many):
        found = pooled_population([stage(s, law, n, rng) for s, law, n in zip(samplers, laws, clients, strict=True)])
        law = found.law
        missed += (truth < law.low) | (truth > law.high)
        missed_any += bool(((truth < law.all_low) | (truth > law.all_high)).any())
    allowed = 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / many)
    assert (missed / many <= allowed).all()
    assert missed_any / many <= allowed


@given(st.lists(st.integers(0, 60), min_size=4, max_size=4), st.lists(st.integers(0, 60), min_size=4, max_size=4))
def test_a_pool_lies_between_its_stages_and_stages_of_one_sampler_are_one(one: list[int], two: list[int]) -> None:
    one[0], two[0] = one[0] + 1, two[0] + 1
    first, second = population(LINEAR, counts=one), population(LINEAR, counts=two)
    pooled, whole = pooled_population([first, second]).law, population(LINEAR, counts=np.add(one, two)).law
    np.testing.assert_allclose(pooled.estimate, whole.estimate, atol=1e-12)
    np.testing.assert_array_equal(pooled.low, whole.low)
    np.testing.assert_array_equal(pooled.high, whole.high)
    other = pooled_population([first, population(STRONGER, counts=two)]).law
    assert (other.low >= 0.0).all()
    assert (other.low <= other.high).all()
    assert (other.high <= 1.0 + 1e-12).all()
    assert (other.all_low <= other.low + 1e-12).all()
    assert (other.all_high >= other.high - 1e-12).all()
    assert other.all_low.sum() <= 1.0 + 1e-9


def test_two_stages_are_told_better_together_than_by_shared_error() -> None:
    """Two samplers: by scores, which are shorter than two intervals that share the error."""
    laws = zip((LINEAR, STRONGER), (FIRST, SECOND), strict=True)
    stages = [population(each, counts=np.rint(2000 * (law @ each.output(np.eye(4)))).astype(int)) for each, law in laws]
    law = pooled_population(stages).law
    halves = [pooled_population([each], confidence=0.975).law for each in stages]
    shared = sum(0.5 * (each.high - each.low) for each in halves)
    assert (law.high - law.low < 0.9 * shared).all()


def test_what_cannot_be_pooled_is_refused() -> None:
    first = population(LINEAR, counts=[1, 2, 3, 4])
    other = population(dc.LinearSampler(dc.Simplex(4), epsilon=1.0), counts=[1, 2, 3, 4])
    line = dc.OptimalSampler(dc.GaussianMixtures(1, radius=1.0, scale=1.0, box=(-3, 3)), epsilon=1.0)
    for wrong, said in (
        ([], "empty"),
        ([first, 3], "no estimate"),
        ([first, other], "other outcomes"),
        ("ab", "no estimate"),
    ):
        with pytest.raises(DiscreetError, match=said):
            pooled_population(wrong)  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="bins"):
        pooled_population([population(line, samples=[0.1, 0.2, 0.3])])
    assert isinstance(pooled_population([first]), PooledPopulation)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_command_estimates_several_files_together(tmp_path: Path) -> None:
    for name, sampler, law, prefix in (("one", LINEAR, FIRST, "x"), ("two", OPTIMAL, SECOND, "y")):
        rng = np.random.default_rng(3)
        drawn = [sampler.release(np.eye(4)[x]) for x in rng.choice(4, size=60, p=law)]
        agreement = Agreement.of(sampler, purpose=name)
        agreement.write(tmp_path / f"{name}.json")
        frame = pl.DataFrame(
            {"client": [f"{prefix}{i}" for i in range(60)], "sample": drawn, "agreement": [agreement.id] * 60}
        )
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
    one, two = str(tmp_path / "one.csv"), str(tmp_path / "two.csv")
    missing = run("estimate", one, two, "--json")
    assert missing.exit_code == 2  # files of CSV carry no agreement, and the two have different ones
    for name in ("one", "two"):
        found = run("estimate", str(tmp_path / f"{name}.csv"), "--agreement", str(tmp_path / f"{name}.json"), "--json")
        assert found.exit_code == 0, found.output
    same = tmp_path / "again.csv"
    pl.read_csv(one).with_columns(client=pl.col("client") + "!").write_csv(same)
    agreed = ("--agreement", str(tmp_path / "one.json"))
    found = run("estimate", one, str(same), *agreed, "--json")
    said = json.loads(found.stdout)
    alone = json.loads(run("estimate", one, *agreed, "--json").stdout)
    assert (said["clients"], said["identifiable"], said["notes"]) == (120, True, [])
    for pooled, single in zip(said["shares"], alone["shares"], strict=True):
        assert pooled["law"]["estimate"] == pytest.approx(single["law"]["estimate"], abs=1e-12)
    spelled = f"{tmp_path}/./{Path(one).name}"
    stem = Path(one).stem
    for first, other in (
        (one, one),
        (one, spelled),
        (one, f"{tmp_path}/{stem}*.csv"),
        (f"{one}*", f"{tmp_path}/*{stem}.csv"),
    ):
        assert "named twice" in " ".join(run("estimate", first, other, *agreed, "--numbered").stderr.split())
    assert "reads the same file as" in " ".join(run("estimate", one, "--compare", spelled, *agreed).stderr.split())
    pl.read_csv(one).write_csv(tmp_path / "copy.csv")
    collided = run("estimate", one, str(tmp_path / "copy.csv"), *agreed)
    assert "occur in another file too" in " ".join(collided.stderr.split())
    assert "--numbered" in collided.stderr
    refused = run("estimate", one, str(tmp_path / "copy.csv"), *agreed, "--numbered")
    assert "does not number rows: it holds other texts, or a number twice" in " ".join(refused.stderr.split())
    rows = [str(tmp_path / f"rows{number}.csv") for number in range(2)]
    for path in rows:
        pl.read_csv(one).with_columns(client=pl.int_range(60)).write_csv(path)
    numbered = run("estimate", *rows, *agreed, "--numbered")
    assert numbered.exit_code == 0, numbered.output
    assert "that no client is in two of the files is assumed" in " ".join(numbered.stdout.split())
    for option in (["--by", "client"], ["--liars", "1"], ["--statistic", "mean"]):
        assert "does not go with several IN" in " ".join(
            run("estimate", one, str(same), *agreed, *option).stderr.split()
        )
    assert "is for several IN" in " ".join(run("estimate", one, *agreed, "--numbered").stderr.split())


def test_clients_of_two_files_are_told_apart_beside_a_column_of_samples_of_any_name(tmp_path: Path) -> None:
    agreement = Agreement.of(LINEAR)
    agreement.write(tmp_path / "agreed.json")
    for name, first in (("one", 0), ("two", 50)):
        rows = {"person": range(first, first + 100), "drawn": ["a", "b"] * 50, "agreement": [agreement.id] * 100}
        pl.DataFrame(rows).write_parquet(tmp_path / f"{name}.parquet")
    one, two = (str(tmp_path / f"{name}.parquet") for name in ("one", "two"))
    options = ("--agreement", str(tmp_path / "agreed.json"), "--sample", "drawn")
    together = CliRunner().invoke(app, ["estimate", one, two, *options])
    assert "50 of the 100 clients in" in " ".join(together.stderr.split())
    changed = CliRunner().invoke(app, ["estimate", two, "--compare", one, *options, "--json"])
    assert json.loads(changed.stdout)["clients"] == {"only_before": 50, "both": 50, "only_after": 50}


def test_the_estimate_takes_the_samples_of_a_stage_as_they_are_where_these_are_biased(tmp_path: Path) -> None:
    files = []
    for sampler in (LINEAR, OPTIMAL):
        agreement = Agreement.of(sampler)
        rows = {
            "client": range(1000),
            "sample": ["a"] * 700 + ["d"] * 300,
            "agreement": [agreement.id] * 1000,
        }  # raw values
        files.append(str(tmp_path / f"{agreement.mechanism}.parquet"))
        table = pl.DataFrame(rows).to_arrow()
        pq.write_table(table.replace_schema_metadata({METADATA: agreement.text.encode()}), files[-1])
    said = json.loads(CliRunner().invoke(app, ["estimate", *files, "--numbered", "--json"]).stdout)
    first = population(LINEAR, counts=[700, 0, 0, 300]).law.estimate[0]
    assert said["shares"][0]["law"]["estimate"] == pytest.approx(0.5 * (first + 0.7))
    assert "the estimate takes the samples of these stages as they are" in said["notes"][-1]
    doubted = [note.partition(":")[0] for note in said["notes"] if "raw values instead of samples" in note]
    assert doubted == ["stage 1", "stage 1", "stage 2"]
