"""Hostile command lines: one line on standard error and a small exit status, or what was asked for; never a traceback."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from discreet.cli.app import app
from tests.fuzz.chooser import Chooser

OPTIONS = [
    "--epsilon", "--outcomes", "--alpha", "--samples", "--delta", "--total", "--clients", "--risk", "--divergence", "--lower",
    "--upper", "--rounds", "--mechanism", "--purpose", "--input", "--draws", "--json", "--check", "--help", "--confidence", "--cells",
    "--version",
]  # fmt: skip
SAMPLING = [
    "--epsilon", "--domain", "--domain-size", "--cells", "--other", "--nulls", "--count", "--weight", "--clients", "--mechanism",
    "--drop-client", "--secret", "--round", "--rounds", "--purpose", "--agreement", "--write-agreement", "--memory", "--scratch",
    "--format", "--engine", "--quiet", "--client", "--value",
]  # fmt: skip
NEEDED = {
    "tradeoff": ["--outcomes", "--epsilon"], "account": ["--epsilon", "--outcomes"], "certify": ["--outcomes", "--epsilon"],
    "agree": ["--epsilon", "--outcomes"], "ledger create": ["--epsilon"], "audit": ["--epsilon", "--input", "--input"],
}  # fmt: skip
FLAGS = ("--json", "--check", "--help", "--version", "--drop-client", "--quiet")
QUICK = [
    "tradeoff", "account", "certify", "agree", "ledger show", "ledger create", "audit", "ledger", "secret", "sample", "sample", "sample",
    "nonsense", "",
]  # fmt: skip


def commands(c: Chooser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        arguments = _arguments(c, Path(folder))
        with contextlib.chdir(folder):
            result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 1, 2), (arguments, result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exception)
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert result.stderr.startswith("discreet: "), (arguments, result.stderr)
        assert result.stderr.count("\n") == 1, (arguments, result.stderr)


def _arguments(c: Chooser, folder: Path) -> list[str]:
    command: str = c.among(QUICK)
    if c.below(64) == 63:  # these take seconds where they succeed
        command = c.among(["demo", "reproduce"])
    arguments = command.split()
    options = SAMPLING if command == "sample" else OPTIONS
    match command:
        case "agree" | "ledger show" | "ledger create" | "secret":
            arguments.append(str(folder / c.among(["file", "nowhere/file", "\x00"])))
        case "audit":
            arguments.append(
                c.among(["os:listdir", "nowhere:f", "x", "json:loads", ":", "random:choices", "numpy.random:binomial"])
            )
        case "certify":
            arguments += ["-o", str(folder / "out.json")]
        case "demo":
            arguments += ["--out", str(folder)]
        case "reproduce":
            arguments += [c.among(["fig2", "fig3", "fig9", "", "all fig"]), "--quick", "--out", str(folder)]
        case "sample":
            arguments += _sampling(c, folder)
    for option in NEEDED.get(command, ()) if c.below(8) else ():
        arguments += [option, c.among(["1", "2", "3", "0.5", "8"]) if c.below(4) else c.text()]
    for _ in range(c.below(4)):
        option = c.among(options)
        named = c.below(3) == 0 and option in (
            "--domain",
            "--clients",
            "--secret",
            "--agreement",
            "--write-agreement",
            "--scratch",
        )
        arguments += [option] if option in FLAGS else [option, str(folder / "labels.txt") if named else c.text()]
    return arguments


def _sampling(c: Chooser, folder: Path) -> list[str]:
    """A table and the arguments that a release needs, mostly."""
    rows = "".join(f"{c.among(['a', 'b', '1'])},{c.among(['0', '1', 'x', '', '9'])}\n" for _ in range(c.below(5)))
    (folder / "in.csv").write_text("client,value\n" + rows)
    (folder / "labels.txt").write_text(c.among(["0\n1\n", "x\n", "", "\n", "x\nx\n"]))
    found: list[Any] = [folder / c.among(["in.csv", "in.csv", "in.csv", "labels.txt", "nowhere.csv"])]
    found += [
        "-o",
        folder / c.among(["out.csv", "out.parquet", "out.arrow", "out.x"]),
        "--client",
        "client",
        "--value",
        "value",
    ]
    if c.below(4):
        found += ["--epsilon", c.among(["1", "0.1", "8", "nan"])]
        found += c.among(
            [["--domain", folder / "labels.txt"], ["--domain-size", "3"], ["--bounds", "0", "1", "--cells", "4"]]
        )
    return [str(part) for part in found]
