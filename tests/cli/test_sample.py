"""`discreet sample` and `discreet secret`, end to end."""

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from discreet.cli._app import app
from discreet.release._randomness import read_secret
from tests.soaking import SOAKING
from tests.tables.small_tables import rows

Run = Callable[..., Any]

ANIMALS = ["ant", "bee", "cow", "dog"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, its labels, and a secret."""
    monkeypatch.chdir(tmp_path)
    table = rows(outcomes=4)
    pl.DataFrame(
        {"who": [f"c{c}" for c in table["client"]], "what": [ANIMALS[v] for v in table["value"]], "n": [1] * 4000}
    ).write_parquet("in.parquet")
    Path("animals.txt").write_text("\n".join(ANIMALS) + "\n")
    return tmp_path


BASE = ("sample", "in.parquet", "--client", "who", "--value", "what", "--epsilon", "2")


def test_the_main_job(folder: Path, run: Run) -> None:
    result = run(*BASE, "--domain", "animals.txt", "-o", "out.parquet")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    out = pl.read_parquet("out.parquet")
    assert out.columns == ["who", "sample", "agreement"]
    assert out["who"].n_unique() == out.height == 300
    assert set(out["sample"]) <= set(ANIMALS)
    said = result.stderr.splitlines()
    assert said[0] == "300 samples to out.parquet, 2-LDP each"
    assert said[1].startswith("read 4,000 rows of 300 clients in ")
    assert said[2] == f"agreement {out['agreement'][0]}"
    assert "with a secret or without, is a new release and spends epsilon again" in said[3]
    two = run(*BASE, "--client", "n", "--domain", "animals.txt", "-o", "two.parquet")
    assert "columns 'who', 'n' name a client together: whoever has rows in several" in two.stderr


def test_rows_without_a_client_are_left_out_where_it_is_said(folder: Path, run: Run) -> None:
    pl.DataFrame({"who": ["a", None, "b"], "what": ["ant", "bee", "cow"]}).write_csv("in.csv")
    command = ("sample", "in.csv", *BASE[2:], "--domain", "animals.txt", "-o", "out.csv")
    refused = run(*command)
    assert refused.exit_code == 2
    assert "(1 in 3 rows)" in refused.stderr
    assert "--null-clients drop" in refused.stderr
    made = run(*command, "--null-clients", "drop")
    assert made.exit_code == 0, made.output
    assert "1 row without a client left out" in made.stderr
    assert json.loads(run(*command, "--null-clients", "drop", "--force", "--json").stdout)["nameless"] == 1


def test_several_columns_name_a_client(folder: Path, run: Run) -> None:
    pl.DataFrame({"who": ["a", "a", "ab"], "day": ["bc", "b", "c"], "what": ["ant", "bee", "cow"]}).write_csv("in.csv")
    command = ("sample", "in.csv", "--client", "who", "--client", "day", *BASE[4:], "--domain", "animals.txt")
    made = run(*command, "-o", "out.parquet")
    assert made.exit_code == 0, made.output
    out = pl.read_parquet("out.parquet")
    assert out.columns == ["client", "sample", "agreement"]
    assert set(out["client"]) == {'["a","bc"]', '["a","b"]', '["ab","c"]'}


def test_a_secret_makes_it_repeatable_and_stays_one(folder: Path, run: Run) -> None:
    made = run("secret", "my.secret")
    assert made.exit_code == 0
    hidden = read_secret("my.secret").value.hex()
    assert hidden not in made.output
    outputs = []
    for name, extra in (("a", ()), ("b", ()), ("c", ("--round", "2"))):
        arguments = (
            *BASE,
            "--domain",
            "animals.txt",
            "--secret",
            "my.secret",
            "--rounds",
            "2",
            *extra,
            "-o",
            f"{name}.parquet",
        )
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        assert hidden not in result.output
        outputs.append(pl.read_parquet(f"{name}.parquet"))
    assert outputs[0].equals(outputs[1])
    assert not outputs[0].equals(outputs[2])
    assert outputs[0]["agreement"].equals(outputs[2]["agreement"])
    assert "round 2 of 2: 4-LDP for all 2 together" in result.stderr
    assert "gives the same samples again" in result.stderr


def test_options_reach_the_release(folder: Path, run: Run) -> None:
    table = pl.read_parquet("in.parquet")
    table = pl.concat([table, pl.DataFrame({"who": ["c1", "c2"], "what": ["yeti", None], "n": [2, 1]})])
    table.with_columns(pl.col("n").cast(pl.Float64).alias("w")).write_parquet("odd.parquet")
    Path("more.txt").write_text("\n".join([*ANIMALS, "rest"]) + "\n")
    Path("everybody.txt").write_text("\n".join(f"c{c}" for c in range(400)) + "\n")
    result = run(
        "sample", "odd.parquet", "--client", "who", "--value", "what", "--epsilon", "1", "--domain", "more.txt", "--other",
        "rest", "--nulls", "other", "--weight", "w", "--clients", "everybody.txt", "--mechanism", "linear", "--purpose",
        "a test", "--memory", "1MB", "--scratch", ".", "-o", "out.csv",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "400 samples to out.csv, 1-LDP each" in result.stderr
    assert "1 null value taken as other" in result.stderr
    assert "1 value outside the domain taken as rest" in result.stderr
    assert "100 clients without records, or with counts of 0 alone, drew from the reference" in result.stderr
    assert set(pl.read_csv("out.csv")["sample"]) == {*ANIMALS, "rest"}
    dropped = run(*BASE, "--domain", "animals.txt", "--count", "n", "--drop-client", "-o", "out.arrow", "-q")
    assert dropped.exit_code == 0
    assert dropped.output == ""
    assert pl.read_ipc("out.arrow").columns == ["sample", "agreement"]


def test_numbers_and_intervals(folder: Path, run: Run) -> None:
    table = rows()
    frame = pl.DataFrame(table).with_columns((pl.col("value") / 10.0).alias("level"))
    frame.write_parquet("numbers.parquet")
    base = ("sample", "numbers.parquet", "--client", "client", "--epsilon", "1", "-q", "--force", "-o", "out.parquet")
    assert run(*base, "--value", "value", "--domain-size", "40").exit_code == 0
    assert pl.read_parquet("out.parquet")["sample"].is_between(0, 39).all()
    assert run(*base, "--value", "value", "--domain-size", "20", "--other", "0").exit_code == 0
    assert run(*base, "--value", "level", "--bounds", "-1", "4", "--cells", "10").exit_code == 0
    samples = pl.read_parquet("out.parquet")["sample"]
    assert samples.is_between(-1.0, 4.0).all()
    assert samples.n_unique() > 250
    assert run(*base, "--value", "level", "--bounds", "1", "2", "--cells", "10", "--other", "nearest").exit_code == 0


@pytest.mark.slow
def test_pipes(folder: Path) -> None:
    """Arrow in and Arrow out, CSV in and CSV out, through real pipes."""
    frame = pl.read_parquet("in.parquet")
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, frame.to_arrow().schema) as writer:
        writer.write_table(frame.to_arrow())
    command = [
        sys.executable, "-c", "from discreet.cli import main; main()", "sample", "-", "--client", "who", "--value", "what",
        "--epsilon", "2", "--domain", "animals.txt", "-o", "-",
    ]  # fmt: skip
    arrow = subprocess.run(command, input=stream.getvalue(), capture_output=True, check=True)
    assert pa.ipc.open_stream(arrow.stdout).read_all().num_rows == 300
    assert arrow.stderr.decode().startswith("300 samples to standard output")
    text = subprocess.run(
        [*command, "--format", "csv"], input=frame.write_csv().encode(), capture_output=True, check=True
    )
    assert pl.read_csv(io.BytesIO(text.stdout)).height == 300
    carrying = [arrow.stdout]  # its agreement, through the next pipe
    if SOAKING:
        parquet = subprocess.run(
            [*command, "--format", "parquet"], input=stream.getvalue(), capture_output=True, check=True
        )
        carrying.append(parquet.stdout)
    for samples in carrying:
        estimate = [sys.executable, "-c", "from discreet.cli import main; main()", "estimate", "-", "--json"]
        told = subprocess.run(estimate, input=samples, capture_output=True, check=True)
        assert json.loads(told.stdout)["samples"] == 300
    carried = CliRunner().invoke(app, ["estimate", "-", "--json"], input=text.stdout)  # CSV cannot
    assert "standard input does not carry the agreement" in carried.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "give the public domain once"),
        (("--domain", "animals.txt", "--domain-size", "4"), "give the public domain once"),
        (("--bounds", "0", "1"), "go together"),
        (("--domain-size", "4", "--cells", "2"), "go together"),
        (("--domain", "nowhere.txt"), "nowhere.txt cannot be read"),
        (("--domain", "gap.txt"), "gap.txt, line 2 is empty"),
        (("--domain", "binary.txt"), "not UTF-8"),
        (("--domain", "few.txt"), "column 'what' holds values outside the domain (3,246 in 4,000 rows)"),
        (("--domain-size", "4"), "cast the column to integers"),
        (("--domain-size", "4", "--other", "x"), "other = 'x' is not one of"),
        (("--domain", "animals.txt", "--other", "rest"), "other = 'rest' is not one of the 4 labels"),
        (("--bounds", "1", "0", "--cells", "3"), "do not enclose an interval"),
        (("--bounds", "0", "1", "--cells", "3", "--other", "ant"), "'nearest'"),
        (("--domain", "animals.txt", "--nulls", "maybe"), "nulls = 'maybe'"),
        (("--domain", "animals.txt", "--mechanism", "magic"), "mechanism = 'magic'"),
        (("--domain", "animals.txt", "--round", "2"), "round = 2"),
        (("--domain", "animals.txt", "--memory", "lots"), "--memory lots"),
        (("--domain", "animals.txt", "--memory", "1K"), "memory = 1000 is less than"),
        (("--domain", "animals.txt", "--memory", "9" * 400), "memory is more than"),
        (("--domain", "animals.txt", "--engine", "abacus"), "engine = 'abacus'"),
        (("--domain", "animals.txt", "--over-budget", "drop"), "--over-budget is about the budgets in a --ledger"),
        (("--domain", "animals.txt", "--state", "rounds"), "--state notes the rounds released under --secret"),
        (("--domain", "animals.txt", "--secret", "open.secret"), "chmod 600"),
        (("--domain", "animals.txt", "--secret", "nowhere"), "nowhere cannot be read"),
        (("--domain", "animals.txt", "--clients", "few.txt"), "not on the list"),
        (("--domain", "animals.txt", "--clients", "nowhere.txt"), "nowhere.txt cannot be read"),
        (("--domain", "animals.txt", "--epsilon", "0"), "epsilon = 0 is not in (0, inf)"),
        (("--domain", "animals.txt", "--value", "why"), "column 'why' is not in in.parquet; it has 'who', 'what', 'n'"),
        (("--domain", "animals.txt", "--format", "xml"), "format = 'xml'"),
        (("--domain", "animals.txt", "--engine", "spark", "--memory", "1G"), "for the local engine"),
        (("--domain", "animals.txt", "--engine", "spark", "--budget", "4"), "--budget is for the local engine"),
        (("--domain", "animals.txt", "--engine", "spark", "--over-budget", "drop"), "--over-budget is for the local"),
        (("--domain", "animals.txt", "--engine", "spark", "--force"), "--force is for the local engine"),
    ],
)
def test_mistakes_are_one_line(
    folder: Path, refusal: Callable[..., str], arguments: tuple[str, ...], named: str
) -> None:
    Path("gap.txt").write_text("a\n\nb\n")
    Path("binary.txt").write_bytes(b"\xff\xfe\x00")
    Path("few.txt").write_text("ant\nbee\n")
    Path("open.secret").write_text("discreet-secret-1 " + "0" * 64)
    Path("open.secret").chmod(0o644)
    assert named in refusal(*BASE, *arguments, "-o", "out.parquet")
    assert not Path("out.parquet").exists()


def test_a_secret_is_not_replaced(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    assert run("secret", "s").exit_code == 0
    before = Path("s").read_bytes()
    assert "exists already" in refusal("secret", "s")
    assert Path("s").read_bytes() == before


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal(folder: Path) -> None:
    """On a pseudo-terminal the bars name rows and clients and their speed."""
    import os
    import pty

    leader, follower = pty.openpty()
    command = [
        sys.executable, "-c", "from discreet.cli import main; main()", *BASE, "--domain", "animals.txt", "-o", "out.parquet",
    ]  # fmt: skip
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
        except OSError:  # how a terminal says that the other side is gone
            pass
    os.close(leader)
    assert process.returncode == 0
    assert b"4,000 rows" in shown
    assert b"clients" in shown
    assert b"/s" in shown


SAMPLING = (*BASE, "--domain", "animals.txt", "--secret", "my.secret", "--rounds", "2")


def changed() -> None:
    """Another animal in every row of the table."""
    table = pl.read_parquet("in.parquet")
    later = {animal: ANIMALS[(place + 1) % 4] for place, animal in enumerate(ANIMALS)}
    table.with_columns(pl.col("what").replace_strict(later)).write_parquet("in.parquet")


@pytest.mark.slow
def test_a_round_is_released_once(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    """The same data again: the same samples. Other data: refused before any output appears, and the next round is named."""
    run("secret", "my.secret")
    first = run(*SAMPLING, "-o", "1.csv")
    assert "new data are a new round" in first.stderr
    assert stat.S_IMODE(Path("my.secret.rounds").stat().st_mode) == 0o600
    assert run(*SAMPLING, "-o", "2.csv").exit_code == 0
    assert Path("1.csv").read_bytes() == Path("2.csv").read_bytes()
    changed()
    for output in ("3.csv", "-"):
        said = refusal(*SAMPLING, "-o", output)
        assert "round 1 of agreement" in said
        assert "was released on other data in column 'what'" in said
        assert "--round 2" in said
    assert not Path("3.csv").exists()
    os.symlink("my.secret", "link.secret")
    linked = [word.replace("my.secret", "link.secret") for word in SAMPLING]
    assert "was released on other data" in refusal(*linked, "-o", "3.csv")
    assert run(*SAMPLING, "--round", "2", "-o", "3.csv").exit_code == 0
    changed()
    assert "all 2 rounds agreed on are released" in refusal(*SAMPLING, "--round", "2", "-o", "4.csv")
    another = run(*SAMPLING, "--purpose", "another", "-o", "4.csv")
    assert another.exit_code == 0
    assert "1 other release under this secret, by agreement and column: a client there has spent that" in another.stderr
    assert "other release" not in first.stderr
    Path("my.secret.rounds").chmod(0o644)
    assert "chmod 600" in refusal(*SAMPLING, "--round", "2", "-o", "5.csv")


@pytest.mark.slow
def test_rounds_are_noted_where_one_says(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    run("secret", "my.secret")
    elsewhere = (*SAMPLING, "--state", "elsewhere")
    assert run(*elsewhere, "-o", "1.csv").exit_code == 0
    assert not Path("my.secret.rounds").exists()
    changed()
    assert "was released on other data" in refusal(*elsewhere, "-o", "2.csv")
    assert "record of rounds nowhere/state cannot be made" in refusal(
        *SAMPLING, "--state", "nowhere/state", "-o", "2.csv"
    )
    assert not Path("2.csv").exists()


@pytest.mark.slow
def test_a_ledger_counts_what_clients_spend(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    run("secret", "my.secret")
    with_ledger = (*SAMPLING, "--ledger", "books", "--rounds", "5")
    assert "there is no ledger books; make one by giving its budget too" in refusal(*with_ledger, "-o", "1.csv")
    assert "a client's whole budget is 1" in refusal(*with_ledger, "--budget", "1", "-o", "1.csv")  # makes no ledger
    (folder / "books").mkdir()  # as a run leaves it that is cut short while it makes the ledger
    (folder / "books").chmod(0o700)
    first = run(*with_ledger, "--budget", "4", "-o", "1.csv")
    assert first.exit_code == 0, first.output
    assert "made ledger books: epsilon = 4 for each client" in first.stderr
    assert "0 samples were in ledger books already, 300 were charged to it" in first.stderr
    changed()
    again = run(*with_ledger, "--budget", "4", "-o", "2.csv")
    assert "300 samples were in ledger books already, 0 were charged to it" in again.stderr
    assert Path("1.csv").read_bytes() == Path("2.csv").read_bytes()
    assert "--budget 5 is not the epsilon = 4 of ledger books" in refusal(*with_ledger, "--budget", "5", "-o", "3.csv")
    pl.read_parquet("in.parquet").filter(pl.col("who") < "c2").write_parquet("few.parquet")
    few = [word.replace("in.parquet", "few.parquet") for word in with_ledger]
    assert run(*few, "--round", "2", "-o", "3.csv").exit_code == 0
    spent = pl.read_csv("3.csv").height
    assert 0 < spent < 300
    said = refusal(*with_ledger, "--round", "3", "-o", "4.csv")
    assert f"{spent} of 300 clients would spend more than epsilon = 4 in ledger books; nothing was charged" in said
    assert not Path("4.csv").exists()
    dropped = run(*with_ledger, "--round", "3", "--over-budget", "drop", "-o", "4.csv")
    assert f"{spent} clients left out: they cannot pay epsilon = 2 any more" in dropped.stderr
    assert pl.read_csv("4.csv").height == 300 - spent
    shown = run("ledger", "show", "books").stdout
    assert "Budget epsilon = 4 for each client. 300 clients have spent 4.0000 at most." in shown
    record = json.loads(run("ledger", "show", "books", "--json").stdout)
    assert (record["budget"], record["clients"], record["spent"]["most"]) == ({"epsilon": 4.0}, 300, 4.0)
    assert [(each["round"], each["clients"]) for each in record["runs"]] == [(1, 300), (2, spent), (3, 300 - spent)]
    assert "this secret serves a ledger" in refusal(*SAMPLING, "-o", "5.csv")
    assert "would lie in the ledger" in refusal(*with_ledger, "--force", "--format", "csv", "-o", "books/book")
    assert "--ledger needs --secret" in refusal(*BASE, "--domain", "animals.txt", "--ledger", "books", "-o", "5.csv")
    assert "give --ledger FOLDER too" in refusal(*SAMPLING, "--budget", "1", "-o", "5.csv")
    assert "--ledger is for the local engine" in refusal(*with_ledger, "--engine", "spark", "-o", "5.csv")


def test_json_says_what_the_summary_says(folder: Path, run: Run, refusal: Run) -> None:
    result = run(*BASE, "--domain", "animals.txt", "--json", "-o", "new/folder/out.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    record = json.loads(result.stdout)
    out = pl.read_csv("new/folder/out.csv")
    assert record["agreement"]["id"] == out["agreement"][0]
    assert (record["rows"], record["clients"], record["round"]) == (4000, 300, 1)
    assert record["output"] == "new/folder/out.csv"
    assert "name a file" in refusal(*BASE, "--domain", "animals.txt", "--json", "-o", "-")


def test_a_dry_run_lists_what_is_outside_and_releases_nothing(folder: Path, run: Run, refusal: Run) -> None:
    table = pl.read_parquet("in.parquet")
    strange = pl.DataFrame({"who": ["c1"] * 4, "what": ["Ant", "owl\n", "owl\n", None], "n": [1] * 4})
    strange = strange.with_columns(who=pl.Series([None, "c1", "c1", "c1"]))
    pl.concat([table, strange]).write_parquet("in.parquet")
    before = sorted(path.name for path in folder.iterdir())
    asked = (*BASE, "--domain", "animals.txt", "--dry-run")
    result = run(*asked)
    assert result.exit_code == 0, result.output
    assert result.stdout == "2\towl\\n\n1\tAnt\n"
    assert result.stderr.startswith("PRIVATE: ")
    assert "4,004 rows, 3 of them with 2 different values outside the domain, 1 without a value" in result.stderr
    assert ", 1 without a client" in result.stderr
    assert json.loads(run(*asked, "--json").stdout) == {
        "rows": 4004, "nameless": 1, "nulls": 1, "not_numbers": 0, "names_in_several_forms": 0,
        "labels_in_other_forms": 1, "outside": [{"value": "owl\n", "rows": 2}, {"value": "Ant", "rows": 1}],
    }  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == before
    assert "1 row with a value that differs from a label only in case, spaces or width: correct" in result.stderr
    assert "give --output OUT" in refusal(*BASE, "--domain", "animals.txt")
    Path("spaces.csv").write_text("who,what\nc1,ant \n")
    arguments = ("--client", "who", "--value", "what", "--domain", "animals.txt", "--epsilon", "1", "--dry-run")
    assert run("sample", "spaces.csv", *arguments).stdout == "1\t'ant '\n"


def test_messages_are_about_options_and_what_is_there(folder: Path, refusal: Callable[..., str], run: Run) -> None:
    terms = ("--client", "who", "--value", "what", "--epsilon", "1", "--domain-size", "3", "-o", "out.csv")
    Path("one.csv").write_text("who,what\na,7\n")
    assert "say --other which one" in refusal("sample", "one.csv", *terms, "--nulls", "other")
    told = run("sample", "one.csv", *terms, "--other", "2").stderr
    for said in (
        "1 sample to out.csv", "read 1 row of 1 client in", "1 value outside the domain taken as 2",
        "CSV does not carry the agreement: for discreet estimate, `discreet agree` writes it",
    ):  # fmt: skip
        assert said in told
    listed = run("sample", "one.csv", *terms[:-2], "--dry-run").stderr
    assert "released: 1 row, 1 of them with 1 different value outside the domain" in listed
    Path("forms.csv").write_text("who,what\n1,1\n1.0,2\n")
    assert (
        "2 names of clients differ from another only in case"
        in run("sample", "forms.csv", *terms[:-2], "--dry-run").stderr
    )
    Path("texts.csv").write_text("who,what\na,1\n,2\n")
    said = refusal("sample", "texts.csv", *terms, "--force")
    assert "column 'who' holds nulls (1 in 2 rows)" in said
    assert "64 bits" not in said
    pl.DataFrame({"who": [4, None], "what": [1, 2]}).write_parquet("numbers.parquet")
    said = refusal("sample", "numbers.parquet", *terms, "--force")
    assert "column 'who' holds nulls (1 in 2 rows)" in said
    assert "64 bits" not in said  # which these cannot be past
    large = pl.DataFrame({"who": [4, 1 << 63], "what": [1, 2]}, schema={"who": pl.UInt64, "what": pl.Int64})
    large.write_parquet("large.parquet")
    assert "holds nulls, or integers past 64 bits (1 in 2 rows)" in refusal(
        "sample", "large.parquet", *terms, "--force"
    )


def test_an_agreement_that_cannot_be_read_is_named(folder: Path, refusal: Callable[..., str]) -> None:
    Path("short.json").write_text('{"discreet": 2, "family": {}, "mechanism": "linear", "epsilon": 1}')
    said = refusal(
        "sample", "in.parquet", "--client", "who", "--value", "what", "--agreement", "short.json", "-o", "o.csv"
    )
    assert "short.json: the agreement has no field 'bits'" in said


@pytest.mark.filterwarnings("default::discreet.errors.ClientNameWarning")
def test_names_that_may_be_new_are_told_in_a_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"who": [1.0, 2.0], "what": [0, 1]}).write_parquet("floats.parquet")
    terms = ("--client", "who", "--value", "what", "--domain-size", "2", "--epsilon", "1")
    said = run("sample", "floats.parquet", *terms, "-o", "out.csv", "-q").stderr
    assert said.startswith("discreet: column 'who' holds floats: whole ones are read as the integers")
    assert said.count("\n") == 1
    assert sorted(line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]) == ["1", "2"]


def test_a_replaced_release_stays_spent(folder: Path, run: Run) -> None:
    command = (*BASE, "--domain", "animals.txt", "-o", "out.parquet", "--force")
    assert "stays spent" not in run(*command).stderr
    assert "replaced the earlier out.parquet; if it was a release, what it spent stays spent" in run(*command).stderr


def test_a_table_without_rows_is_told(folder: Path, run: Run) -> None:
    Path("header.csv").write_text("who,what\n")
    command = (
        "sample",
        "header.csv",
        "--client",
        "who",
        "--value",
        "what",
        "--epsilon",
        "1",
        "--domain",
        "animals.txt",
    )
    done = run(*command, "-o", "empty.parquet")
    assert done.exit_code == 0
    assert "the table has no rows" in done.stderr
