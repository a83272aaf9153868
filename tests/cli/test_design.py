"""`discreet design`: from a table of public records to an agreement that every other command takes."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.agreement import Agreement

Run = Callable[..., Any]

BAR = "\N{BOX DRAWINGS HEAVY HORIZONTAL}"  # of which a bar is made
LABELS = [f"place {number}" for number in range(12)]
BASE = (
    "design",
    "examples.csv",
    "--client",
    "who",
    "--value",
    "where",
    "--domain",
    "places.txt",
    "--epsilon",
    "2",
    "-q",
)


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Records of 60 clients on 12 outcomes, one of which nobody has, in CSV; and how often each client has each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.geomspace(2.0, 0.02, 11), 60)
    counts = np.array([[*rng.multinomial(8, share), 0] for share in shares])
    who, where = np.nonzero(counts)
    frame = pl.DataFrame(
        {
            "who": [f"c{one}" for one in who],
            "where": [LABELS[x] for x in where],
            "n": counts[who, where],
            "w": counts[who, where] / 4,
        }
    )
    frame.write_csv("examples.csv")
    frame.write_parquet("examples.parquet")
    Path("places.txt").write_text("\n".join(LABELS) + "\n")
    return counts


def test_the_agreement_is_on_the_design_of_the_library(counts: Any, run: Run) -> None:
    """From every way to write the same records; and the table holds what the library says."""
    law = dc.Simplex(LABELS).law(counts=counts)
    expected = dc.design(dc.Simplex(LABELS), epsilon=2.0, clients=law, keep=0.3)
    found = run(*BASE, "--count", "n", "--keep", "0.3", "-o", "d.json", "--json")
    assert found.exit_code == 0, found.output
    record = json.loads(found.stdout)
    agreement = Agreement.read("d.json")
    assert record["agreement"] == agreement.id
    assert agreement.on_outcomes.everybody
    assert (record["examples"], record["outcomes"]) == (60, 12)
    assert record["mean"] == pytest.approx(expected.value, rel=1e-3)
    assert record["floor"] <= record["mean"] * (1 + 1e-12)
    rows = {row["name"]: row for row in record["samplers"]}
    assert list(rows) == ["optimal", "linear", "mollifier", "best uniform", "designed"]
    kl = dc.divergence("kl")
    for name, kind in (
        ("optimal", dc.OptimalSampler),
        ("linear", dc.LinearSampler),
        ("mollifier", dc.MollifierSampler),
    ):
        sampler = kind(dc.Simplex(12), epsilon=2.0)
        each = np.asarray(kl(law, sampler.output(law)))
        assert rows[name]["mean"] == pytest.approx(each.mean())
        assert rows[name]["median"] == pytest.approx(np.median(each))
        assert rows[name]["largest"] == pytest.approx(each.max())
        assert rows[name]["worst"] == pytest.approx(float(sampler.risk("kl")))
    spreads = [dc.OptimalSampler(dc.Simplex(12).spread(s), epsilon=2.0) for s in np.linspace(1.0, 11.9, 60)]
    tried = min(float(np.mean(kl(law, sampler.output(law)))) for sampler in spreads)
    assert rows["best uniform"]["mean"] <= tried * (1 + 1e-6)
    assert rows["designed"]["mean"] == pytest.approx(record["mean"], rel=1e-6)
    assert rows["designed"]["mean"] <= rows["best uniform"]["mean"]
    other = run("design", "examples.parquet", *BASE[2:], "--weight", "w", "--keep", "0.3", "-o", "w.json", "--json")
    assert json.loads(other.stdout)["mean"] == pytest.approx(record["mean"], rel=1e-9)


@pytest.mark.slow
def test_the_other_commands_take_it(counts: Any, run: Run) -> None:
    made = run(*BASE, "--count", "n", "-o", "d.json", "--plot", "f.png", "--purpose", "trips")
    assert made.exit_code == 0, made.output
    assert "must be public" in made.stdout
    assert "no sampler is below" in made.stdout
    assert Path("f.png").stat().st_size > 1000
    agreement = Agreement.read("d.json")
    released = run(
        "sample",
        "examples.csv",
        "--client",
        "who",
        "--value",
        "where",
        "--agreement",
        "d.json",
        "-q",
        "-o",
        "out.parquet",
    )
    assert released.exit_code == 0, released.output
    samples = pl.read_parquet("out.parquet")
    assert set(samples["agreement"]) == {agreement.id}
    assert samples.height == 60
    assert set(samples["sample"]) <= set(LABELS)
    estimated = run("estimate", "out.parquet")
    assert estimated.exit_code == 0, estimated.output
    assert "biased towards its reference" in " ".join(estimated.stdout.split())
    certified = run("certify", "--agreement", "d.json", "-o", "c.json")
    assert certified.exit_code == 0, certified.output
    assert "(holds)" in certified.stdout
    checked = run("agree", "--check", "d.json")
    assert "epsilon = 2, optimal (designed reference) on 12 outcomes" in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--keep", "1.5"), "keep = 1.5"),
        (("--keep", "nan"), "keep = nan"),
        (("--epsilon", "0"), "epsilon = 0"),
        (("--epsilon", "95"), "--allow-large-epsilon"),
        (("--divergence", "cosine"), "cosine"),
        (("--count", "nothing"), "column 'nothing' is not in"),
        (("--count", "n", "--weight", "w"), "not both"),
        (("--domain", "few.txt"), "values outside the domain"),
        (("--domain-size", "12"), "give the public domain once"),
        (("--plot", "f.txt"), "does not end in"),
        (("--plot", "d.json"), "does not end in"),
        (("-o", "places.txt"), "exists already"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    counts: Any, refusal: Callable[..., str], arguments: tuple[str, ...], says: str
) -> None:
    Path("few.txt").write_text("\n".join(LABELS[:2]) + "\n")
    assert says in refusal(*BASE, "-o", "d.json", *arguments)
    assert not Path("d.json").exists()


def test_examples_that_are_none_are_refused_by_name(counts: Any, refusal: Callable[..., str]) -> None:
    for rows, says in (
        ({"who": [None, "a"], "where": LABELS[:2]}, "holds nulls"),
        ({"who": ["a"], "where": [None]}, "holds nulls"),
        ({"who": ["a"], "where": LABELS[:1], "n": [-1]}, "correct them, or take them as weights"),
        ({"who": ["a"], "where": LABELS[:1], "n": [0]}, "no records in the domain"),
    ):
        frame = pl.DataFrame(rows, schema_overrides={"who": pl.String, "where": pl.String})
        frame.write_parquet("bad.parquet")
        more = ("--count", "n") if "n" in rows else ()
        assert says in refusal("design", "bad.parquet", *BASE[2:], "-o", "d.json", *more)
    assert not Path("d.json").exists()


@pytest.mark.parametrize("rows", [1, 5])
def test_one_example_and_many_that_are_alike(counts: Any, run: Run, rows: int) -> None:
    pl.DataFrame({"who": range(rows), "where": [LABELS[3]] * rows}).write_parquet("alike.parquet")
    found = run("design", "alike.parquet", *BASE[2:], "-o", "d.json", "--json")
    assert found.exit_code == 0, found.output
    record = json.loads(found.stdout)
    assert record["examples"] == rows
    assert record["mean"] <= record["samplers"][0]["mean"]
    assert Agreement.read("d.json").sampler().lattice.largest_ratio <= dc.privacy.exp_lower(2.0)


@pytest.mark.slow
def test_few_examples_on_many_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    size = 100_000
    pl.DataFrame({"who": [n % 10 for n in range(50)], "where": [(n * 997) % size for n in range(50)]}).write_parquet(
        "e.parquet"
    )
    columns = ("--client", "who", "--value", "where")
    made = run("design", "e.parquet", *columns, "--domain-size", str(size), "--epsilon", "2", "-o", "d.json", "-q")
    assert made.exit_code == 0, made.output
    assert Path("d.json.weights").stat().st_size == 8 * size
    released = run("sample", "e.parquet", *columns, "--agreement", "d.json", "-o", "o.parquet", "-q")
    assert released.exit_code == 0, released.output
    assert pl.read_parquet("o.parquet").height == 10


def test_a_plan_under_the_agreement(counts: Any, run: Run, refusal: Callable[..., str]) -> None:
    """It says what the sampler costs everybody, and rehearses with its own samples."""
    assert run(*BASE, "--count", "n", "--keep", "0.3", "-o", "d.json").exit_code == 0
    sampler = dc.Agreement.read(Path("d.json")).sampler()
    asked = (
        "plan",
        "--agreement",
        "d.json",
        "--clients",
        "500",
        "--example",
        "examples.csv",
        "--client",
        "who",
        "--value",
        "where",
    )
    found = json.loads(run(*asked, "--json").stdout)
    assert found["worst"]["kl"] == pytest.approx(float(sampler.risk("kl")))
    assert found["outlook"]["clients"] == 500
    assert 0.0 < found["rehearsal"]["client_tv"] < found["worst"]["tv"]
    assert "Rehearsal" in run(*asked).stdout
    assert "--agreement states the sampler" in refusal(
        "plan", "--agreement", "d.json", "--clients", "500", "--epsilon", "2"
    )


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True])
def test_the_bar_is_shown_on_a_terminal(counts: Any, quiet: bool) -> None:
    """On a pseudo-terminal every stage has a bar; `-q` shows none."""
    leader, follower = pty.openpty()
    arguments = [*BASE[:-1], "--count", "n", "-o", "d.json", "--json", *(["-q"] if quiet else [])]
    command = [sys.executable, "-c", "from discreet.cli import main; main()", *arguments]
    environment = {**os.environ, "COLUMNS": "120", "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
        except OSError:  # how a terminal says that the other side is gone
            pass
        assert process.stdout is not None
        record = json.loads(process.stdout.read())
    os.close(leader)
    assert process.returncode == 0
    assert record["examples"] == 60
    if quiet:
        assert shown == b""
        return
    for stage in ("reading the examples", "designing for 60 examples on 12 outcomes", "comparing", BAR):
        assert stage.encode() in shown


@pytest.mark.slow
def test_smoothing_is_chosen_and_said(counts: Any, run: Run, refusal: Callable[..., str]) -> None:
    """The design of the library, in JSON and in words; without it, a large epsilon gets the advice."""
    law = dc.Simplex(12).law(counts=counts)
    order = sorted(range(len(law)), key=lambda client: f"c{client}")  # as a table is read; folds go by it
    found = dc.design(dc.Simplex(12), epsilon=5.0, clients=law[order], smoothing="auto")
    base = [*BASE[:9], "5", "-q", "--count", "n"]
    result = run(*base, "--smoothing", "auto", "-o", "smooth.json", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert found.smoothing is not None
    assert told["smoothing"]["rule"] == found.smoothing.rule
    assert told["smoothing"]["held_out"] == pytest.approx(found.smoothing.held_out)
    assert told["keep"] == found.keep == 0.001
    assert told["mean"] == pytest.approx(found.value)
    said = run(*base, "--smoothing", "auto", "-o", "again.json")
    assert "Smoothing, chosen by the examples" in " ".join(said.stdout.split())
    bare = run(*base, "-o", "bare.json")
    assert "`--smoothing auto` holds examples back" in " ".join(bare.stdout.split())
    assert Agreement.read(Path("smooth.json")).id == Agreement.read(Path("again.json")).id
    assert Agreement.read(Path("smooth.json")).id != Agreement.read(Path("bare.json")).id
    assert "--smoothing some is not one of none, auto" in refusal(*base, "--smoothing", "some", "-o", "no.json")


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-16", "709.5", "800"])
def test_budgets_whose_exponential_is_one_or_no_float(counts: Any, run: Run, epsilon: str) -> None:
    options = ("--count", "n", "--epsilon", epsilon, "--allow-large-epsilon", "-o", "d.json", "--json")
    found = run(*BASE, *options)
    assert found.exit_code == 0, found.output
    means = {row["name"]: row["mean"] for row in json.loads(found.stdout)["samplers"]}
    assert means["best uniform"] <= means["mollifier"] + 1e-12


def test_examples_without_a_client_are_told_no_option_that_is_not_there(counts: Any, run: Run) -> None:
    Path("nameless.csv").write_text("client,value\n1,a\n,b\n")
    command = ("design", "nameless.csv", "--client", "client", "--value", "value", "--domain-size", "2")
    refused = run(*command, "--epsilon", "1", "-o", "n.json")
    assert refused.exit_code == 2
    assert refused.stderr.strip().endswith("leave those rows out")
