"""Comparisons of mechanisms: the numbers are those of outputs and risks; tables and pictures show them."""

import csv
import math
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreetError, OwnSampler, Simplex, plots
from discreet.research import Comparison, compare, reproduce
from tests.needed import cannot_run
from tests.pictures import assert_picture

CLIENTS = np.random.default_rng(0).dirichlet(np.full(5, 0.4), size=40)


class Shrink(OwnSampler):
    name = "shrink_&_mix"
    linear = True

    def law(self, p: Any) -> Any:
        kept = math.tanh(self.epsilon / 4) / 2
        return kept * p + (1 - kept) / len(p)


class Tilt(OwnSampler):
    name = "tilt"

    def law(self, p: Any) -> Any:
        q = np.exp(self.epsilon * p / 2)
        return q / q.sum()

    @property
    def floor(self) -> Any:
        k = self.family.size
        return np.full(k, 1 / (math.exp(self.epsilon / 2) + k - 1))


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(
        Simplex(5),
        CLIENTS,
        mechanisms=["optimal", "mollifier", Shrink, Tilt],
        epsilons=[1.0, 2.0],
        divergences=["kl", dc.FDivergence(lambda x: (x - 1) ** 2, name="mine")],
    )


def test_records_are_the_divergences_of_clients_from_their_outputs(found: Comparison) -> None:
    assert len(found.records) == 2 * 2 * 4
    for record in found.records:
        kind: Any = {"optimal": dc.OptimalSampler, "mollifier": dc.MollifierSampler, "tilt": Tilt}.get(
            record.mechanism, Shrink
        )
        sampler = kind(Simplex(5), epsilon=record.epsilon)
        f = dc.divergence("kl") if record.divergence == "kl" else dc.divergence("chi2")
        costs = np.asarray(f(CLIENTS, sampler.output(CLIENTS)))
        assert record.mean == pytest.approx(costs.mean(), rel=1e-9)
        assert record.median == pytest.approx(np.median(costs), rel=1e-9)
        assert record.largest == pytest.approx(costs.max(), rel=1e-9)
        assert record.worst_case == pytest.approx(float(sampler.risk(f)), rel=1e-9)
        assert record.exact == (record.mechanism != "tilt")
        assert record.largest <= record.worst_case
        assert record.smallest <= record.worst_case * (1 + 1e-9)
        assert record.clients == 40


def test_a_frame_and_a_csv_hold_every_digit(found: Comparison, tmp_path: Path) -> None:
    frame = found.frame()
    assert frame.height == len(found.records)
    text = found.to_csv(tmp_path / "records.csv")
    assert (tmp_path / "records.csv").read_text() == text
    rows = list(csv.DictReader(text.splitlines()))
    assert [float(row["mean"]) for row in rows] == [record.mean for record in found.records]
    assert rows[2]["mechanism"] == "shrink_&_mix"


def test_what_is_printed_is_a_table(found: Comparison) -> None:
    assert repr(found) == "Comparison(16 records: optimal, mollifier, shrink_&_mix, tilt; 1-LDP, 2-LDP; kl, mine)"
    title, head, *rows = str(found).splitlines()
    assert title == "mean divergence of 40 clients"
    assert head.split() == ["privacy", "divergence", *found.mechanisms]
    assert [row.split()[:2] for row in rows] == [["1-LDP", "kl"], ["1-LDP", "mine"], ["2-LDP", "kl"], ["2-LDP", "mine"]]
    assert float(rows[0].split()[2]) == pytest.approx(found.records[0].mean, rel=1e-3)


def test_a_latex_table_marks_the_least_and_bounds(found: Comparison) -> None:
    lines = found.to_latex(value="worst_case").splitlines()
    assert lines[:2] == ["% \\usepackage{booktabs}", "\\begin{tabular}{llrrrr}"]
    assert lines[3] == "privacy & divergence & optimal & mollifier & shrink\\_\\&\\_mix & tilt \\\\"
    assert len(lines) == 5 + 4 + 2
    assert [line.split(" & ")[1] for line in lines[5:9]] == ["KL", "mine", "KL", "mine"]
    for line in lines[5:9]:
        assert line.count("\\textbf{") == 1
        assert line.split(" & ")[2].startswith(
            "\\textbf{"
        )  # no mechanism has a smaller worst case than the optimal one
        assert line.split(" & ")[5].startswith("$\\leq$ ")


def test_a_picture_for_pgfplots_has_every_point(found: Comparison) -> None:
    text = found.to_pgf(divergence="kl", value="largest")
    assert text.count("\\addplot") == 4
    for record in found.records:
        assert (f"({record.epsilon!r}, {record.largest!r})" in text) == (record.divergence == "kl")
    with pytest.raises(DiscreetError, match="divergence = None is not one of kl, mine"):
        found.to_pgf()
    assert found.to_pgf(divergence=dc.divergence("kl"), value="largest") == text
    worst = found.to_pgf(divergence="kl", value="worst_case")
    assert worst.count("\\addplot+[dashed]") == worst.count("tilt (upper bound)") == 1
    assert "\\addlegendentry{smallest possible}" in worst


ODD = "".join(map(chr, range(33, 127))) + "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ≤≥≠∞→√‖−é"


def odd_names() -> Comparison:
    """Every printable character in the names of a mechanism and of a divergence, at the start of one, and two lines in another."""

    def made(name: str) -> Any:
        def kind(family: Any, *, epsilon: float) -> Any:
            return OwnSampler.of(family, np.full((5, 5), 0.2), epsilon=epsilon, name=name)

        return kind

    names = [ODD, "[x] $1 $2", "two\nlines, 100 %"]
    f = dc.FDivergence(lambda x: (x - 1) ** 2, name=ODD)
    return compare(Simplex(5), CLIENTS, mechanisms=[made(name) for name in names], divergences=[f], epsilons=[1.0, 2.0])


def test_names_are_escaped_for_latex() -> None:
    """Without TeX: no character of a name that LaTeX would act on is left bare, and each is printed."""
    found = odd_names()
    for text in (found.to_latex(), found.to_pgf()):
        label = next(line for line in text.splitlines() if "abcdef" in line)
        for bare in "#%&_":
            assert all(
                label[place - 1] == "\\"
                for place, each in enumerate(label)
                if each == bare and label[place - 1 : place + 2] != " & "
            )
        assert "\\textbackslash{}" in label
        assert "{[}\\textbackslash{}{]}\\textasciicircum{}\\_\\textasciigrave{}" in label
        assert "\\textless{}=\\textgreater{}" in label
        assert "$\\alpha$$\\beta$" in label
        assert "$\\lambda$" in label
        assert "$\\leq$" in label
        assert "\n\n" not in text
    assert "{[}x{]} \\$1 \\$2 & two lines, 100 \\% \\\\" in found.to_latex()


@pytest.mark.soak
def test_tables_and_pictures_compile(found: Comparison, tmp_path: Path) -> None:
    """pdflatex sets the table and the pictures, without an error and with every name in the text of the page."""
    program = shutil.which("pdflatex")
    if program is None:
        cannot_run("pdflatex is not here: apt-get install texlive-latex-recommended texlive-pictures")
    parts = [found.to_latex(value="worst_case"), odd_names().to_latex(), odd_names().to_pgf()]
    parts += [found.to_pgf(divergence="kl", value=value) for value in ("mean", "worst_case")]
    preamble = "\\documentclass{article}\\usepackage{booktabs}\\usepackage{pgfplots}\\pgfplotsset{compat=newest}"
    body = "\n\n".join(parts)
    (tmp_path / "page.tex").write_text(
        f"{preamble}\\begin{{document}}\\small\n{body}\n\\end{{document}}\n", encoding="utf-8"
    )
    done = subprocess.run(
        [program, "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2_000:]
    log = (tmp_path / "page.log").read_text(encoding="utf-8", errors="replace")
    assert "Missing character" not in log
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_pictures_are_the_callers_to_style(found: Comparison, tmp_path: Path) -> None:
    drawn = found.plot(colours={"tilt": "#123456"}, labels={"tilt": "my mechanism"}, style={"lines.linewidth": 7.0})
    lines = {line.get_label(): line for line in drawn.axes[0].get_lines()}
    assert lines["my mechanism"].get_color() == "#123456"
    assert lines["optimal"].get_linewidth() == 7.0
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["KL", "mine"]
    y = [record.mean for record in found.records if record.mechanism == "optimal" and record.divergence == "kl"]
    assert np.asarray(lines["optimal"].get_ydata()).tolist() == y
    worst = plots.comparison(found.records, value="worst_case", title="Worst cases")
    shown = [line.get_label() for line in worst.axes[0].get_lines()]
    assert "tilt (upper bound)" in shown
    assert "smallest possible" in shown
    plots.save(worst, tmp_path / "worst.png")
    assert_picture(tmp_path / "worst.png")
    one = compare(Simplex(5), CLIENTS, divergences=["tv"])
    assert len(one.plot().axes[0].patches) == 3
    plots.save(odd_names().plot(), tmp_path / "odd.png")  # a dollar sign is no formula


def test_any_mechanism_is_compared() -> None:
    class Described:
        name = "described"
        family: Any = Simplex(5)
        privacy = dc.Pure(1.0)

        def output(self, p: Any) -> Any:
            return 0.2 * np.asarray(p) + 0.16

        def release(self, p: Any, *, rng: Any = None) -> Any:
            raise NotImplementedError

    records = compare(Simplex(5), CLIENTS, mechanisms=["optimal", Described()], divergences=["tv"]).records
    assert [record.mechanism for record in records] == ["optimal", "described"]
    assert records[1].mean == pytest.approx(float(np.mean(dc.divergence("tv")(CLIENTS, 0.2 * CLIENTS + 0.16))))
    assert math.isnan(records[1].worst_case)
    gaussian = dc.OptimalSampler(Simplex(5), privacy=dc.Gaussian(1.0))
    mixed = compare(Simplex(5), CLIENTS, mechanisms=["linear", gaussian], divergences=["tv"])
    assert [record.privacy for record in mixed.records] == ["1-LDP", "1-Gaussian LDP"]
    assert "--" in mixed.to_latex()


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"mechanisms": "optimal"}, "mechanisms = 'optimal' is not a list"),
        ({"mechanisms": []}, "is not a list of at least one"),
        ({"epsilons": np.array(1.0)}, "is not a list of at least one"),
        (
            {"mechanisms": ["nothing"]},
            "'nothing' is not one of optimal, linear, mollifier, and no installed package .*; or pass a class of your own itself",
        ),
        ({"mechanisms": [Simplex(5)]}, "has no name"),
        ({"mechanisms": [Tilt, Tilt]}, "two mechanisms are called 'tilt'"),
        ({"divergences": ["kl", "kl"]}, "two divergences are called 'kl'"),
        ({"mechanisms": [dc.OptimalSampler(Simplex(3), epsilon=1.0)]}, "is on 3 outcomes, and the clients on 5"),
        ({"mechanisms": [lambda family: None]}, r"cannot be called as kind\(family, epsilon=...\)"),
        ({"epsilons": [math.nan]}, "epsilon = nan"),
        ({"divergences": ["nothing"]}, "divergence = 'nothing'"),
        ({"divergences": "kl"}, "divergences = 'kl' is not a list"),
    ],
)
def test_what_cannot_be_compared(terms: dict[str, Any], said: str) -> None:
    with pytest.raises(DiscreetError, match=said):
        compare(Simplex(5), CLIENTS, **terms)


def test_other_arguments_that_cannot_be_compared() -> None:
    with pytest.raises(DiscreetError, match="sums to"):
        compare(Simplex(5), np.ones((2, 5)))
    with pytest.raises(DiscreetError, match="clients is empty"):
        compare(Simplex(5), np.empty((0, 5)))
    with pytest.raises(DiscreetError, match="is continuous"):
        compare(dc.GaussianMixtures(), CLIENTS)  # type: ignore[arg-type]


def test_a_published_experiment_with_changes_is_a_frame(tmp_path: Path) -> None:
    run = reproduce("fig3", tmp_path, outcomes=7, epsilons=(1.0, 2.0))
    assert set(run.columns) >= {"unit"}
    frame = run.frame()
    assert frame.height == len(run.rows)
    assert reproduce("fig3", tmp_path, outcomes=7, epsilons=(1.0, 2.0)).rows == run.rows
    with pytest.raises(DiscreetError, match="holds another run"):
        reproduce("fig3", tmp_path, outcomes=8)
    with pytest.raises(DiscreetError, match="has no field 'budget'"):
        reproduce("fig3", tmp_path, budget=1)
    with pytest.raises(DiscreetError, match="name = 'fig9'"):
        reproduce("fig9", tmp_path)


class Boosted(Tilt):
    name = "boosted tilt"

    def __init__(self, family: Any, *, strength: float = 1.0, **promise: Any) -> None:
        self.strength = strength
        super().__init__(family, **promise)

    @property
    def parameters(self) -> dict[str, float]:
        return {"strength": self.strength}


def test_parameters_tell_mechanisms_of_one_name_apart() -> None:
    """`functools.partial` sets them; the same parameters twice are refused."""
    half, whole = partial(Boosted, strength=0.5), Boosted
    found = compare(Simplex(5), CLIENTS, mechanisms=[half, whole, "optimal"], epsilons=[1.0, 2.0], divergences=["kl"])
    names = {record.mechanism for record in found.records}
    assert names == {"boosted tilt (strength=0.5)", "boosted tilt (strength=1.0)", "optimal"}
    assert {record.mechanism for record in compare(Simplex(5), CLIENTS, mechanisms=[half]).records} == {"boosted tilt"}
    with pytest.raises(DiscreetError, match=r"two mechanisms are called 'boosted tilt \(strength=0\.5\)'"):
        compare(Simplex(5), CLIENTS, mechanisms=[half, partial(Boosted, strength=0.5)])
