"""Tables under agreements on reports: one report of each client, the one that its key and data give, and estimates that read them back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet._base.kernels import Code, force_implementation
from discreet.cli._app import app
from discreet.errors import DiscreetError
from discreet.estimation import reported_average, reported_population
from discreet.ledger import PopulationLedger
from discreet.ledger._book import forget_rounds_in_memory
from discreet.mechanisms import AffineBlocks, ReportSampler
from discreet.mechanisms._reports._blocks import is_prime
from discreet.release import Question, Secret, write_secret
from discreet.release._randomness import integer_law_of_weighted_records
from discreet.tables import read_secret, sample
from tests.soaking import wide

SECRET = Secret(bytes(range(32)))
MANY = next(q for q in range(1_797_000_000, 1_798_000_000) if is_prime(q))
SAMPLERS = {
    "masks": ReportSampler(dc.Simplex(64), epsilon=0.5),  # reports of 64 bits
    "ranks": ReportSampler(dc.Simplex(104), epsilon=4.0),
    "affine": ReportSampler(dc.Simplex(104), epsilon=1.0),
    "several digits": ReportSampler(dc.Simplex(20_000), epsilon=1.0),
    "values": ReportSampler(dc.Simplex(20), epsilon=6.0),
    "words drawn anew": ReportSampler(dc.Simplex(30), epsilon=1.0, blocks=AffineBlocks(30, MANY, 1, MANY // 4)),
}


def _rows(size: int, clients: int = 300, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(clients), rng.integers(1, 6, clients))
    return pl.DataFrame(
        {"who": who, "what": rng.integers(0, size, len(who)), "often": rng.integers(0, 50, len(who)) + 1}
    )


def _held(rows: pl.DataFrame, who: Any) -> pl.DataFrame:
    return rows.filter(pl.col("who") == who)


@pytest.mark.parametrize("code", list(Code))
@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_table_gives_every_client_the_report_of_its_key_and_data(name: str, code: Code) -> None:
    """Against one client at a time, in Python's integers; a third of the words are drawn anew in one of the families."""
    sampler = SAMPLERS[name]
    rows = _rows(sampler.family.size)
    agreed = dc.Agreement.of(sampler)
    for count in wide((None, "often"), ("often",)):
        with force_implementation(code):
            made = sample(rows, client="who", value="what", count=count, sampler=sampler, secret=SECRET)
        assert made.column_names == ["who", "report", "agreement"]
        assert str(made.schema.field("report").type) == "uint64"
        key = SECRET.run_key(agreed.id, 1, Question(value="what", count=count))
        for who, report in zip(made["who"].to_pylist(), made["report"].to_pylist(), strict=True):
            held = _held(rows, who)
            often = held["often"].to_list() if count else [1] * held.height
            assert report == sampler.release_keyed(key, who, held["what"].to_list(), often)
        assert set(made["agreement"].to_pylist()) == {agreed.id}
        forget_rounds_in_memory()


def test_clients_are_called_by_texts_too() -> None:
    sampler = SAMPLERS["affine"]
    rows = _rows(104, 100).with_columns(who=pl.format("aircraft {}", "who"))
    made = sample(rows, client="who", value="what", sampler=sampler, secret=SECRET)
    key = SECRET.run_key(dc.Agreement.of(sampler).id, 1, Question(value="what"))
    for who, report in zip(made["who"].to_pylist(), made["report"].to_pylist(), strict=True):
        held = _held(rows, who)["what"].to_list()
        assert report == sampler.release_keyed(key, who, held, [1] * len(held))
    forget_rounds_in_memory()


def test_weights_count_by_their_law_in_whole_numbers() -> None:
    sampler = SAMPLERS["affine"]
    rows = _rows(104, 50).with_columns(pl.col("often") / 7.0)
    made = sample(rows, client="who", value="what", weight="often", sampler=sampler, secret=SECRET)
    key = SECRET.run_key(dc.Agreement.of(sampler).id, 1, Question(value="what", weight="often"))
    for who, report in zip(made["who"].to_pylist(), made["report"].to_pylist(), strict=True):
        held = _held(rows, who)
        law = integer_law_of_weighted_records(held["what"].to_list(), held["often"].to_list())
        assert report == sampler.release_keyed(key, who, list(law), list(law.values()))
    forget_rounds_in_memory()


def test_counts_that_a_word_cannot_choose_among_are_refused_by_row() -> None:
    rows = pl.DataFrame({"who": [1, 2, 2], "what": [3, 3, 4], "often": [5, 1 << 62, 1]})
    for code in Code:
        with force_implementation(code), pytest.raises(DiscreetError, match=r"row \d of the batch: .* more than 2\^62"):
            sample(rows, client="who", value="what", count="often", sampler=SAMPLERS["affine"])


def test_clients_without_records_report_uniform_blocks() -> None:
    """As likely to hold any outcome; no words of theirs say that they had nothing."""
    sampler = SAMPLERS["affine"]
    rows = _rows(104, 20)
    made = sample(rows, client="who", value="what", sampler=sampler, clients=list(range(4000)))
    assert made.num_rows == 4000
    silent = [r for who, r in zip(made["who"].to_pylist(), made["report"].to_pylist(), strict=True) if who >= 20]
    held = reported_population(sampler, reports=np.array(silent, dtype=np.uint64)).counts / len(silent)
    assert abs(held.mean() - 28 / 107) < 0.005
    assert held.std() < 0.012  # 0.007 is expected


def test_a_round_is_repeated_and_never_released_on_other_data(tmp_path: Path) -> None:
    sampler = SAMPLERS["masks"]
    rows, other = _rows(64), _rows(64, seed=2)
    write_secret(tmp_path / "a.secret")
    asked: dict[str, Any] = {"client": "who", "value": "what", "sampler": sampler, "secret": tmp_path / "a.secret"}
    first = sample(rows, **asked)
    assert sample(rows.sample(fraction=1.0, shuffle=True), **asked).sort_by("who") == first.sort_by("who")
    with pytest.raises(DiscreetError, match="other data"):
        sample(other, **asked)
    assert (first["report"].to_numpy() >= np.uint64(1 << 32)).mean() > 0.9


def test_a_ledger_charges_reports_and_answers_again_with_all_their_bits(tmp_path: Path) -> None:
    sampler = SAMPLERS["masks"]
    write_secret(tmp_path / "a.secret")
    ledger = PopulationLedger.create(tmp_path / "book", budget=0.6, secret=read_secret(tmp_path / "a.secret"))
    asked: dict[str, Any] = {"client": "who", "value": "what", "sampler": sampler, "ledger": ledger}
    first = sample(_rows(64), **asked)
    again = sample(_rows(64, seed=2), **asked)
    assert again["report"].to_pylist() == first["report"].to_pylist()
    assert sampler.check_reports(first["report"].to_numpy()).size == 300
    with pytest.raises(DiscreetError, match=r"cannot pay|budget"):
        sample(_rows(64), client="who", value="what", sampler=SAMPLERS["masks"], ledger=ledger, purpose="another")


@pytest.fixture
def refused() -> Callable[..., str]:
    def line(*arguments: str) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 2, result.output
        return str(result.stderr)

    return line


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_files_of_reports_are_estimated(tmp_path: Path, ending: str) -> None:
    """Masks reach past 2^63 and come back whole from every format."""
    sampler = ReportSampler(dc.Simplex([f"c{n}" for n in range(64)]), epsilon=0.5)
    agreed = dc.Agreement.of(sampler, purpose="colours")
    agreed.write(tmp_path / "a.json")
    rows = _rows(10, 2000).with_columns(what=pl.format("c{}", "what"))
    rows.write_parquet(tmp_path / "rows.parquet")
    out, agreement = str(tmp_path / f"r.{ending}"), str(tmp_path / "a.json")
    _run(
        "sample",
        str(tmp_path / "rows.parquet"),
        "--client",
        "who",
        "--value",
        "what",
        "--agreement",
        agreement,
        "-o",
        out,
    )
    readers: dict[str, Callable[[], pl.DataFrame]] = {
        "csv": lambda: pl.read_csv(out, schema_overrides={"report": pl.UInt64}),
        "parquet": lambda: pl.read_parquet(out),
        "arrow": lambda: pl.read_ipc(out),
    }
    table = readers[ending]()
    expected = reported_population(agreed, reports=table["report"].to_numpy())
    synthetic = tmp_path / "rows.csv"
    said = json.loads(
        _run(
            "estimate",
            out,
            "--agreement",
            agreement,
            "--json",
            "--liars",
            "7",
            "--synthetic",
            str(synthetic),
            "--rows",
            "500",
        )
    )
    assert said["reports"] == expected.clients == 2000
    assert [each["reports"] for each in said["shares"]] == expected.counts.tolist()
    assert [each["law"]["low"] for each in said["shares"]] == expected.law.low.tolist()
    assert said["liars"]["number"] == 7
    wide, narrow = ([each[name]["high"] for each in said["shares"]] for name in ("despite_liars", "law"))
    assert all(np.array(wide) >= np.array(narrow))
    assert pl.read_csv(synthetic).height == 500
    shown = " ".join(_run("estimate", out, "--agreement", agreement, "--top", "3").split())
    assert "2,000 reports, reports on 64 outcomes, epsilon = 0.5" in shown
    assert "61 more outcomes" in shown


def test_means_and_shares_up_to_a_number_are_estimated(tmp_path: Path, refused: Callable[..., str]) -> None:
    sampler = SAMPLERS["affine"]
    made = sample(_rows(104, 3000), client="who", value="what", sampler=sampler)
    pl.DataFrame(made).write_parquet(tmp_path / "r.parquet")
    dc.Agreement.of(sampler).write(tmp_path / "a.json")
    asked = ("estimate", str(tmp_path / "r.parquet"), "--agreement", str(tmp_path / "a.json"))
    said = json.loads(_run(*asked, "--json", "--statistic", "mean", "--statistic", "at-most:51"))["statistics"]
    reports = made["report"].to_numpy()
    mean = reported_average(sampler, reports=reports, values=np.arange(104), name="mean")
    share = reported_average(sampler, reports=reports, values=np.arange(104) <= 51, name="at-most:51")
    assert [each["estimate"] for each in said] == pytest.approx([mean.estimate, share.estimate])
    assert [each["low"] for each in said] == pytest.approx([mean.low, share.low])
    named = ("median", "quantile:0.9", "variance")
    said = json.loads(_run(*asked, "--json", *(part for name in named for part in ("--statistic", name))))["statistics"]
    found = reported_population(sampler, reports=reports)
    assert [each["high"] for each in said] == [found.statistic(name).high for name in named]
    assert "is not one of mean, variance, median" in refused(*asked, "--statistic", "mode")
    assert "say --rows N" in refused(*asked, "--synthetic", str(tmp_path / "s.csv"))
    public = _rows(104, 40, seed=9)
    public.write_csv(tmp_path / "public.csv")
    examples = ("--examples", str(tmp_path / "public.csv"), "--client", "who", "--value", "what")
    weighted = json.loads(_run(*asked, "--json", *examples))
    assert weighted["reweighted"]["examples"] == 40
    assert sum(each["reweighted"] for each in weighted["shares"]) == pytest.approx(1.0)
    assert [each["law"] for each in weighted["shares"]] == [
        each["law"] for each in json.loads(_run(*asked, "--json"))["shares"]
    ]
    assert "--rounds is more than 1; the agreement has 1" in refused(*asked, "--rounds", "2")


def test_reports_of_several_rounds_are_estimated_together(tmp_path: Path, refused: Callable[..., str]) -> None:
    agreed = dc.Agreement.of(ReportSampler(dc.Simplex(8), epsilon=2.0), rounds=2)
    agreed.write(tmp_path / "a.json")
    sampler = agreed.report_sampler()
    rows = sampler.release_records(np.arange(400) % 8).reshape(200, 2)
    who = pl.Series("who", np.repeat(np.arange(200), 2))
    table = pl.DataFrame({"who": who, "report": rows.ravel(), "agreement": [agreed.id] * 400})
    table.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "r.parquet")
    asked = ("estimate", str(tmp_path / "r.parquet"), "--agreement", str(tmp_path / "a.json"))
    assert "say how many samples of each client there are: --rounds" in refused(*asked)
    said = json.loads(_run(*asked, "--json", "--rounds", "2", "--statistic", "median", "--liars", "3"))
    expected = reported_population(sampler, reports=rows)
    assert (expected.clients, expected.samples, said["reports"]) == (200, 400, 400)
    assert [each["law"]["high"] for each in said["shares"]] == pytest.approx(expected.law.high.tolist())
    assert said["statistics"][0]["high"] == expected.statistic("median").high
    assert "400 reports of 200 clients" in " ".join(_run(*asked, "--rounds", "2").split())


def test_mixtures_and_what_is_no_report_are_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    sampler, linear = SAMPLERS["affine"], dc.LinearSampler(dc.Simplex(104), epsilon=1.0)
    agreements = {"reports": dc.Agreement.of(sampler), "samples": dc.Agreement.of(linear)}
    reports = pl.DataFrame(sample(_rows(104, 50), client="who", value="what", sampler=sampler))
    samples = pl.DataFrame(sample(_rows(104, 50), client="who", value="what", sampler=linear))
    for name, each in agreements.items():
        each.write(tmp_path / f"{name}.json")

    def estimating(table: pl.DataFrame, under: str) -> str:
        table.write_parquet(tmp_path / "t.parquet")
        return refused("estimate", str(tmp_path / "t.parquet"), "--agreement", str(tmp_path / f"{under}.json"))

    assert "is on samples, and these are reports under another" in estimating(reports, "samples")
    assert "is on reports, and these are samples under another" in estimating(samples, "reports")
    mixed = pl.concat([reports, samples.rename({"sample": "report"}).cast(reports.schema)])
    assert "was made under agreement" in estimating(mixed, "reports")
    assert "names the same clients again" in estimating(pl.concat([reports, reports]), "reports")
    assert "which is no report" in estimating(reports.with_columns(report=pl.col("report") + 10**6), "reports")
    assert "what is no whole number" in estimating(reports.with_columns(report=-pl.lit(1)), "reports")
    assert "reports are whole numbers" in estimating(reports.with_columns(report=pl.col("report") + 0.5), "reports")
    with pytest.raises(DiscreetError, match="releases reports, which are no samples; use reported_population"):
        dc.estimation.population(agreements["reports"], samples=[1, 2])


def test_what_else_takes_samples_refuses_reports_by_name(tmp_path: Path, refused: Callable[..., str]) -> None:
    agreed = dc.Agreement.of(SAMPLERS["affine"])
    with pytest.raises(DiscreetError, match="is not a Simplex"):
        sample(
            _rows(4),
            client="who",
            value="what",
            family=dc.Band(np.ones(4), lower=0.5, upper=2.0),
            epsilon=1.0,
            mechanism="reports",
        )
    with pytest.raises(DiscreetError, match="mechanism"):
        sample(_rows(104), client="who", value="what", agreement=agreed, mechanism="linear")
    from discreet.estimation import coding_and_sampler

    with pytest.raises(DiscreetError, match="is on reports, which are no samples"):
        coding_and_sampler(agreed)
