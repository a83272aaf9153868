import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet import Band, Interval, LinearSampler, OptimalSampler, Simplex
from discreet.agreement import Agreement
from discreet.mechanisms import ReportSampler
from discreet.privacy import Approximate, Gaussian, Pure

Run = Callable[..., Any]


def test_write_and_check(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    path, labels = str(tmp_path / "a.json"), tmp_path / "labels.txt"
    labels.write_text("red\ngreen\nblue\n")
    terms = ("--epsilon", "0.5", "--domain", str(labels), "--rounds", "3", "--purpose", "colours", "--for", "clients")
    made = run("agree", path, *terms)
    assert made.exit_code == 0, made.output
    expected = Agreement.of(OptimalSampler(Simplex(["red", "green", "blue"]), epsilon=0.5), rounds=3, purpose="colours")
    assert expected.id in made.stdout.replace("\n", "")
    assert Agreement.read(path) == expected
    assert Agreement.read(path).domain.labels == ("red", "green", "blue")
    assert run("agree", path, *terms).exit_code == 0
    record = json.loads(run("agree", path, "--check", "--json").stdout)
    assert record == {"id": expected.id, "agreement": expected.document, "together": "1.5-LDP"}
    assert "exists already" in refusal("agree", path, "--epsilon", "0.5", "--outcomes", "3")
    assert "begins or ends with a space" not in made.stdout
    labels.write_text("red\ngreen \nblue\n")
    padded = run("agree", str(tmp_path / "padded.json"), *terms)
    assert "label 'green ' begins or ends with a space; a value without it is outside" in " ".join(
        padded.stdout.split()
    )
    banded = run(
        "agree",
        str(tmp_path / "b.json"),
        "--epsilon",
        "1",
        "--outcomes",
        "4",
        "--lower",
        "0.5",
        "--upper",
        "2",
        "--for",
        "clients",
        "--json",
    )
    assert json.loads(banded.stdout)["agreement"]["family"]["lower"] == 0.5


def test_what_is_written_with_a_band_can_be_released_under(run: Run, tmp_path: Path) -> None:
    path, records = str(tmp_path / "a.json"), tmp_path / "in.csv"
    terms = ("--epsilon", "1", "--outcomes", "3", "--lower", "0.5", "--for", "clients")
    assert run("agree", path, *terms).exit_code == 0
    records.write_text("who,what\na,0\nb,2\nb,1\n")
    output = str(tmp_path / "out.csv")
    made = run("sample", str(records), "--client", "who", "--value", "what", "--agreement", path, "-o", output)
    assert made.exit_code == 0, made.output


def test_the_default_of_lower_may_be_said(run: Run, tmp_path: Path) -> None:
    terms = ("--epsilon", "1", "--outcomes", "3", "--lower", "0")
    for name, options, sampler in (
        ("linear", (), LinearSampler(Simplex(3), epsilon=1.0)),
        ("optimal", (), OptimalSampler(Band([1.0] * 3, lower=0.0, upper=3.0), epsilon=1.0)),
        ("optimal", ("--upper", "2"), OptimalSampler(Band([1.0] * 3, lower=0.0, upper=2.0), epsilon=1.0)),
    ):
        path = tmp_path / f"{name}{len(options)}.json"
        made = run("agree", path, *terms, *options, "--mechanism", name)
        assert made.exit_code == 0, made.output
        assert Agreement.read(path) == Agreement.of(sampler)
    assert Agreement.read(tmp_path / "optimal0.json").id.startswith("1a603801855bb50b")  # as it has always been


def test_a_check_refuses_every_option_of_a_new_agreement(refusal: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0)).write(path)
    for options in (
        ("--epsilon", "2"), ("--lower", "0.5"), ("--upper", "2"), ("--cells", "3"), ("--rounds", "3"), ("--purpose", "x"),
        ("--allow-large-epsilon",),
    ):  # fmt: skip
        assert f"{options[0]} is for a new agreement" in refusal("agree", str(path), "--check", *options)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "needs --epsilon"),
        (("--epsilon", "1"), "give the public domain once"),
        (("--epsilon", "nan", "--outcomes", "3"), "epsilon = nan"),
        (("--epsilon", "1", "--outcomes", "3", "--mechanism", "best"), "'best'"),
        (("--epsilon", "1", "--outcomes", "3", "--rounds", "0"), "rounds = 0"),
        (("--epsilon", "1", "--domain", "nowhere.txt"), "nowhere.txt"),
        (("--epsilon", "1", "--outcomes", "3", "--lower", "0.5"), "agree on optimal"),
        (("--epsilon", "1", "--outcomes", "3", "--upper", "2", "--mechanism", "linear"), "agree on optimal"),
        (("--check",), "new.json"),
        (
            ("--epsilon", "1e-300", "--outcomes", "3", "--for", "clients"),
            "too small for an exact release over 3 outcomes",
        ),
    ],
)
def test_mistakes_get_one_line(
    refusal: Callable[..., str], arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refusal("agree", "new.json", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_cells_of_an_interval(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    path = str(tmp_path / "cells.json")
    made = run("agree", path, "--epsilon", "1", "--bounds", "-1", "4", "--cells", "10", "--mechanism", "optimal")
    assert made.exit_code == 0, made.output
    assert Agreement.read(path) == Agreement.of(OptimalSampler(Simplex(Interval(-1.0, 4.0, cells=10)), epsilon=1.0))
    for arguments, says in (
        (("--bounds", "0", "1"), "go together"),
        (("--outcomes", "3", "--cells", "3"), "go together"),
        (("--outcomes", "3", "--bounds", "0", "1", "--cells", "3"), "give the public domain once"),
        (("--bounds", "1", "0", "--cells", "3"), "do not enclose an interval"),
        (("--bounds", "0", "1", "--cells", "0"), "cells = 0"),
    ):
        assert says in refusal("agree", str(tmp_path / "new.json"), "--epsilon", "1", *arguments)


def test_other_promises_than_epsilon(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    terms = ("--outcomes", "10", "--for", "clients")
    for options, promise in (
        (("--nu", "1"), Gaussian(1.0)),
        (("--epsilon", "1", "--delta", "0.001"), Approximate(1.0, delta=0.001)),
        (("--epsilon", "1", "--delta", "0"), Pure(1.0)),
    ):
        path = str(tmp_path / f"{len(options)}{options[-1]}.json")
        made = run("agree", path, *options, *terms)
        assert made.exit_code == 0, made.output
        assert Agreement.read(path) == Agreement.of(OptimalSampler(Simplex(10), privacy=promise))
        assert Agreement.read(path).promise == promise
        assert ("LDP (pure epsilon =" in made.stdout) == (not isinstance(promise, Pure))
    path = str(tmp_path / "none.json")
    assert "--nu is a promise of its own" in refusal("agree", path, "--nu", "1", "--epsilon", "1", *terms)
    assert "agree needs --epsilon" in refusal("agree", path, "--delta", "0.1", *terms)
    assert "nu = 0 is not in" in refusal("agree", path, "--nu", "0", *terms)
    for option, stated in (("--nu", ("--nu", "1")), ("--delta", ("--epsilon", "1", "--delta", "0.01"))):
        said = refusal("agree", path, *stated, "--outcomes", "3", "--mechanism", "mollifier")
        assert (
            f"{option} with --mechanism mollifier: the mollifier is a ball of pure epsilon; give --epsilon alone"
            in said
        )
        assert "Sampler" not in said
    assert not Path(path).exists()


def test_labels_that_cannot_be_told_apart_are_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    for listed, says in (
        ("yes\nno\nYes\n", "labels 'yes' and 'Yes' cannot be told apart"),
        ("caf\u00e9\ncafe\u0301\n", "labels 'caf\\xe9' and 'cafe\\u0301' cannot be told apart"),
    ):
        labels.write_text(listed, encoding="utf-8")
        assert says in refusal("agree", str(tmp_path / "new.json"), "--epsilon", "1", "--domain", str(labels))
        assert not (tmp_path / "new.json").exists()


def test_what_is_agreed_on_as_drawn_at_once_is_shown_and_released_from_tables(
    run: Run, refusal: Callable[..., str], tmp_path: Path
) -> None:
    path, table = str(tmp_path / "j.json"), tmp_path / "in.csv"
    Agreement.of(OptimalSampler(Simplex(["a", "b"]), epsilon=2.0).with_samples(3), rounds=2).write(path)
    table.write_text("who,what\np,a\nq,b\n")
    said = " ".join(run("agree", path, "--check").stdout.split())
    assert (
        "epsilon = 2 for each of 2 rounds (4-LDP for all 2 together), optimal (3 samples of each client drawn together"
        in said
    )
    columns = ("--client", "who", "--value", "what", "--agreement", path)
    shown = run("sample", str(table), *columns, "-o", str(tmp_path / "o.csv")).stderr
    assert "2 draws of 3 samples to" in shown
    assert "2-LDP for all 3 of a client together" in shown
    assert (tmp_path / "o.csv").read_text().startswith('"who","sample_1","sample_2","sample_3","agreement"')
    assert "is on 3 samples of each client drawn together" in refusal("plan", "--agreement", path, "--clients", "10")


def _agreed(run: Run, path: Path, *terms: str) -> tuple[Agreement, str]:
    made = run("agree", str(path), *terms)
    assert made.exit_code == 0, made.output
    return Agreement.read(path), " ".join(made.stdout.split())


def test_the_population_is_learnt_by_reports_where_values_need_more_clients(run: Run, tmp_path: Path) -> None:
    """104 outcomes at epsilon 1 by reports, 7 at epsilon 2 by values; a mechanism that is named stands."""
    many, said = _agreed(run, tmp_path / "1", "--outcomes", "104", "--epsilon", "1", "--for", "population")
    assert many == Agreement.of(ReportSampler(Simplex(104), epsilon=1.0))
    assert "reports on 104 outcomes" in said
    assert "values (--mechanism linear) need 9.97 times the clients" in said
    few, said = _agreed(run, tmp_path / "2", "--outcomes", "7", "--epsilon", "2", "--for", "population")
    assert few == Agreement.of(LinearSampler(Simplex(7), epsilon=2.0))
    assert "reports" not in said
    values, _ = _agreed(
        run, tmp_path / "3", "--outcomes", "104", "--epsilon", "1", "--for", "population", "--mechanism", "linear"
    )
    assert values == Agreement.of(LinearSampler(Simplex(104), epsilon=1.0))
    named, said = _agreed(
        run, tmp_path / "4", "--outcomes", "7", "--epsilon", "2", "--mechanism", "reports", "--rounds", "2"
    )
    assert named == Agreement.of(ReportSampler(Simplex(7), epsilon=2.0), rounds=2)
    assert "2 rounds spend 4-LDP together" in said
    unsaid, _ = _agreed(run, tmp_path / "5", "--outcomes", "104", "--epsilon", "1")
    assert unsaid == values  # as before there were reports


def test_reports_are_refused_where_there_are_none(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    base = ("agree", str(tmp_path / "a.json"), "--outcomes", "104", "--epsilon", "1")
    assert "say --mechanism linear" in refusal(*base, "--mechanism", "reports", "--delta", "1e-6")
    assert "leave out --lower and --upper" in refusal(*base, "--mechanism", "reports", "--lower", "0.5")
    assert "takes the mechanism 'optimal', not 'reports'" in refusal(
        *base, "--mechanism", "reports", "--for", "clients"
    )
    assert not (tmp_path / "a.json").exists()
    gaussian, _ = _agreed(run, tmp_path / "b", "--outcomes", "104", "--nu", "1", "--for", "population")
    interval = ("--bounds", "0", "1", "--cells", "50", "--epsilon", "1")
    cells, _ = _agreed(run, tmp_path / "c", *interval, "--for", "population")
    assert gaussian.mechanism == "linear"
    assert cells.mechanism == "reports"  # means and quantiles are told by the counts of reports too
    assert _agreed(run, tmp_path / "d", *interval, "--mechanism", "linear")[0].mechanism == "linear"
