"""`discreet sample` under an agreement: the document is all it takes, and nobody can say otherwise."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.agreement import Agreement

Run = Callable[..., Any]

ANIMALS = ["ant", "bee", "cow", "dog"]
BASE = (
    "sample",
    "in.parquet",
    "--client",
    "who",
    "--value",
    "what",
    "--secret",
    "s",
    "-q",
    "--force",
    "-o",
    "out.parquet",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Rows with texts, integers and numbers; an agreement with labels, and one with their digest."""
    monkeypatch.chdir(tmp_path)
    numbers = [(7 * row) % 4 for row in range(60)]
    pl.DataFrame(
        {
            "who": [f"c{row % 20}" for row in range(60)],
            "what": [ANIMALS[number] for number in numbers],
            "number": numbers,
            "level": [number / 4 for number in numbers],
        }
    ).write_parquet("in.parquet")
    Path("animals.txt").write_text("\n".join(ANIMALS) + "\n")
    Path("numbers.txt").write_text("0\n1\n2\n3\n")
    assert run("secret", "s").exit_code == 0
    made = run(
        "agree", "a.json", "--epsilon", "2", "--domain", "animals.txt", "--mechanism", "linear", "--rounds", "2",
        "--purpose", "zoo",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    Path("digest.json").write_text(Agreement.read("a.json").canonical)
    return tmp_path


def test_the_agreement_says_it_all(folder: Path, run: Run) -> None:
    by_file = run(*BASE, "--agreement", "a.json")
    assert by_file.exit_code == 0, by_file.output
    found = pl.read_parquet("out.parquet")
    assert found["agreement"].unique().to_list() == [Agreement.read("a.json").id]
    options = (
        "--epsilon",
        "2",
        "--domain",
        "animals.txt",
        "--mechanism",
        "linear",
        "--rounds",
        "2",
        "--purpose",
        "zoo",
    )
    assert run(*BASE, *options).exit_code == 0
    assert pl.read_parquet("out.parquet").equals(found)  # same id, same key, same samples
    assert run(*BASE, *options, "--agreement", "a.json").exit_code == 0  # saying the same twice is no contradiction
    assert pl.read_parquet("out.parquet").equals(found)
    assert run(*BASE, "--agreement", "digest.json", "--domain", "animals.txt").exit_code == 0
    assert pl.read_parquet("out.parquet").equals(found)
    assert run(*BASE, "--agreement", "a.json", "--round", "2", "--other", "cow").exit_code == 0
    assert not pl.read_parquet("out.parquet").equals(found)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--epsilon", "3"), ("epsilon = 3.0", "epsilon = 2.0", "ID")),
        (("--mechanism", "optimal"), ("mechanism = 'optimal'", "mechanism = 'linear'", "ID")),
        (("--rounds", "1"), ("rounds = 1", "rounds = 2", "ID")),
        (("--purpose", "circus"), ("purpose = 'circus'", "purpose = 'zoo'", "ID")),
        (("--round", "3"), ("round = 3 is more than the 2 agreed on",)),
        (("--domain-size", "4"), ("family.labels = None", "sha256:", "ID")),
        (("--domain-size", "5"), ("family.size = 5", "not 4", "ID")),
        (("--bounds", "0", "1", "--cells", "4"), ("family.labels = None", "ID")),
        (("--domain", "turned.txt"), ("family.labels = 'sha256:", "ID")),
        (("--other", "yeti"), ("other = 'yeti' is not one of the 4 labels", "ID")),
        (("--domain", "animals.txt", "--domain-size", "4"), ("give the public domain once",)),
        (("--cells", "4"), ("go together",)),
    ],
)
def test_whoever_contradicts_it_is_refused_with_both_named(
    folder: Path, refusal: Callable[..., str], arguments: tuple[str, ...], says: tuple[str, ...]
) -> None:
    Path("turned.txt").write_text("\n".join(ANIMALS[::-1]) + "\n")
    line = refusal(*BASE, "--agreement", "a.json", *arguments)
    for part in says:
        assert part.replace("ID", Agreement.read("a.json").id) in line
    assert not Path("out.parquet").exists()


def test_what_no_engine_can_carry_out_is_refused(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    assert "give the labels too: --domain" in refusal(*BASE, "--agreement", "digest.json")
    assert "nowhere.json" in refusal(*BASE, "--agreement", "nowhere.json")
    Path("broken.json").write_text("{}")
    assert "no field" in refusal(*BASE, "--agreement", "broken.json")
    band = dc.Band(np.ones(4), lower=0.5, upper=2.0, labels=ANIMALS)
    dc.Agreement.of(dc.LinearSampler(band, epsilon=1.0)).write("band.json")
    assert "agree on optimal, which takes anybody" in refusal(*BASE, "--agreement", "band.json")
    assert "epsilon is not given" in refusal(*BASE, "--domain", "animals.txt")


@pytest.mark.parametrize(
    "terms",
    [("--lower", "0.5", "--for", "clients"), ("--upper", "2.5", "--for", "clients"), ("--mechanism", "mollifier")],
)
def test_bands_and_the_mollifier_are_released_by_too(folder: Path, run: Run, terms: tuple[str, ...]) -> None:
    assert run("agree", "b.json", "--epsilon", "1", "--domain", "animals.txt", *terms).exit_code == 0
    released = run(*BASE, "--agreement", "b.json")
    assert released.exit_code == 0, released.output
    assert set(pl.read_parquet("out.parquet")["agreement"]) == {Agreement.read("b.json").id}
    estimated = run("estimate", "out.parquet", "--json")
    assert sum(row["samples"] for row in json.loads(estimated.stdout)["shares"]) == 20


@pytest.mark.slow
def test_numbers_cells_and_labels_that_are_numbers(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    def sampled(value: str, agreement: str, *more: str) -> pl.Series:
        arguments = [
            "--client",
            "who",
            "--value",
            value,
            "--agreement",
            agreement,
            *more,
            "-q",
            "--force",
            "-o",
            "out.parquet",
        ]
        done = run("sample", "in.parquet", *arguments)
        assert done.exit_code == 0, done.output
        return pl.read_parquet("out.parquet")["sample"]

    for name, options in {
        "numbers": ("--outcomes", "4"),
        "texts": ("--domain", "numbers.txt"),
        "cells": ("--bounds", "0", "1", "--cells", "8"),
    }.items():
        assert run("agree", f"{name}.json", "--epsilon", "9", *options).exit_code == 0
    assert sampled("number", "numbers.json").is_in(range(4)).all()
    assert sampled("number", "numbers.json", "--other", "2").is_in(range(4)).all()
    assert sampled("level", "cells.json", "--other", "nearest").is_between(0, 1).all()
    assert sampled("number", "texts.json").is_in(["0", "1", "2", "3"]).all()  # texts were agreed on, texts are released
    assert "family.interval" in refusal(
        "sample", "in.parquet", "--client", "who", "--value", "level", "--agreement", "cells.json", "--bounds", "0", "2",
        "--cells", "8", "-o", "new.parquet",
    )  # fmt: skip
    # Labels read for a column of integers are integers, and the agreement made of them says so.
    integers = ("--client", "who", "--value", "number", "--domain", "numbers.txt", "-q")
    arguments = (*integers, "--epsilon", "9", "--write-agreement", "integers.json", "--force", "-o", "out.parquet")
    assert run("sample", "in.parquet", *arguments).exit_code == 0
    assert Agreement.read("integers.json").domain.labels == (0, 1, 2, 3)
    assert sampled("number", "integers.json", "--other", "3").is_in(range(4)).all()
    assert sampled("number", "integers.json", "--domain", "numbers.txt", "--other", "3").is_in(range(4)).all()
    pl.read_parquet("in.parquet").write_csv("in.csv")
    for agreement in ("integers.json", "texts.json"):
        assert run("sample", "in.csv", *integers, "--agreement", agreement, "--force", "-o", "out.csv").exit_code == 0
        assert pl.read_csv("out.csv")["agreement"].unique().to_list() == [Agreement.read(agreement).id]


def test_the_agreement_of_a_release_is_written_beside_it(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    options = (*BASE, "--epsilon", "1", "--domain", "animals.txt")
    assert run(*options, "--write-agreement", "used.json").exit_code == 0
    used = Agreement.read("used.json")
    assert used.domain.labels == tuple(ANIMALS)
    released = pl.read_parquet("out.parquet")
    assert released["agreement"].unique().to_list() == [used.id]
    before = Path("used.json").read_bytes()
    assert run(*options, "--write-agreement", "used.json").exit_code == 0
    Path("out.parquet").unlink()
    line = refusal(*options, "--purpose", "another", "--write-agreement", "used.json")
    assert f"used.json exists already and holds agreement {used.id}" in line
    assert "holds no agreement" in refusal(*options, "--write-agreement", "animals.txt")
    assert "used.json" in refusal(*options, "--write-agreement", "animals.txt/used.json")  # which is no folder
    assert not Path("out.parquet").exists()
    assert Path("used.json").read_bytes() == before
    assert run(*BASE, "--agreement", "used.json").exit_code == 0
    assert pl.read_parquet("out.parquet").equals(released)
    assert json.loads(run("agree", "used.json", "--check", "--json").stdout)["id"] == used.id


def test_a_release_that_fails_leaves_no_agreement(folder: Path, refusal: Callable[..., str]) -> None:
    Path("few.txt").write_text("ant\nbee\n")
    line = refusal(*BASE, "--epsilon", "1", "--domain", "few.txt", "--write-agreement", "used.json")
    assert "outside the domain" in line
    assert not Path("used.json").exists()


def test_the_input_is_never_replaced(refusal: Callable[..., str], tmp_path: Path) -> None:
    raw = tmp_path / "in" / "raw.csv"
    raw.parent.mkdir()
    raw.write_text("client,value\na,0\nb,1\n")
    before = raw.read_bytes()
    for source, output in (
        (raw, raw),
        (raw.parent, raw.parent / "out.csv"),
        (raw.parent / "*.csv", raw.parent / "new.csv"),
    ):
        told = refusal(
            "sample",
            str(source),
            "--client",
            "client",
            "--value",
            "value",
            "--domain-size",
            "2",
            "--epsilon",
            "1",
            "-o",
            str(output),
        )
        assert "would replace" in told
    assert raw.read_bytes() == before
    assert sorted(path.name for path in raw.parent.iterdir()) == ["raw.csv"]


def test_a_table_is_no_domain_and_a_slip_is_noticed(refusal: Callable[..., str], tmp_path: Path) -> None:
    raw, names = tmp_path / "raw.csv", tmp_path / "names.txt"
    raw.write_text("client,value\na,Amsterdm\n")
    names.write_text("Amsterdam\nBerlin\n")
    told = refusal("agree", str(tmp_path / "a.json"), "--domain", str(raw), "--epsilon", "1")
    assert "one label on each line" in told
    assert not (tmp_path / "a.json").exists()
    sample = (
        "sample", str(raw), "--client", "client", "--value", "value", "--domain", str(names), "--epsilon", "1",
        "-o", str(tmp_path / "out.csv"),
    )  # fmt: skip
    assert "did you mean 'Amsterdam'?" in refusal(*sample, "--show-values")
    told = refusal(*sample)
    assert "outside the domain (1 in 1 rows)" in told
    assert "Amsterd" not in told


@pytest.mark.slow
def test_an_output_is_new_unless_forced_and_never_takes_the_place_of_what_is_read(
    folder: Path, run: Run, refusal: Callable[..., str]
) -> None:
    """By whatever path or link it is named, with --force and without; and a replaced file keeps its mode."""
    Path("clients.txt").write_text("\n".join(f"c{row}" for row in range(20)) + "\n")
    command = [*BASE[:-2], "--agreement", "a.json", "--domain", "animals.txt", "--clients", "clients.txt"]
    command += ["--write-agreement", "new.json", "-o"]
    plain = [word for word in command if word != "--force"]
    read = {
        "s": "the secret",
        "animals.txt": "the list of outcomes",
        "a.json": "the agreement",
        "clients.txt": "the list of",
    }
    read |= {"in.parquet": "what in.parquet holds", "new.json": "the agreement", "s.rounds": "the secret's rounds"}
    assert run(*plain, "first.parquet").exit_code == 0
    before = {name: Path(name).read_bytes() for name in read if Path(name).exists()}
    Path("sub").mkdir()
    for name, says in read.items():
        Path("hard").unlink(missing_ok=True)
        Path("soft").unlink(missing_ok=True)
        os.symlink(name, "soft")
        names = [name, f"sub/../{name}", str(folder / name), "soft"]
        if Path(name).exists():
            os.link(name, "hard")
            names.append("hard")
        for output in names:
            told = refusal(*command, output, "--format", "parquet")
            if name == "s" and Path("hard").exists():
                assert "has 2 names (hard links)" in told  # such a secret is refused before anything else
                continue
            assert "would replace" in told or ("is a link" in told and output == "soft"), told
            assert says in told or "is a link" in told, told
        if name == "s":
            Path("hard").unlink()
            for output in names[:-1]:
                assert (
                    "would replace the secret" in refusal(*command, output, "--format", "parquet") or output == "soft"
                )
    assert {name: Path(name).read_bytes() for name in before} == before
    assert "has a second name" in refusal(*command, "first.parquet")  # the record of rounds, as the last of the names
    Path("hard").unlink()
    os.symlink("first.parquet", "link.parquet")
    assert "is a link, which is never replaced" in refusal(*command, "link.parquet")
    assert "is a device, which is never replaced" in refusal(*command, "/dev/null", "--format", "parquet")
    assert "exists already; name another file, or replace it" in refusal(*plain, "first.parquet")
    Path("first.parquet").chmod(0o640)
    assert run(*command, "first.parquet").exit_code == 0
    assert stat.S_IMODE(Path("first.parquet").stat().st_mode) == 0o640


def test_the_weights_beside_an_agreement_are_never_replaced(folder: Path, refusal: Callable[..., str]) -> None:
    Path("a.json.weights").write_bytes(b"weights")
    onto = [*BASE[:-1], "a.json.weights", "--format", "csv"]
    assert "would replace the weights of the agreement" in refusal(*onto, "--agreement", "a.json")
    assert Path("a.json.weights").read_bytes() == b"weights"
