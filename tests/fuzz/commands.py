"""Hostile command lines: one line on standard error and a small exit status, or what was asked for; never a traceback."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import discreet as dc
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.collect import open_store
from discreet.collect._counting import Arrival, text_digest
from discreet.tables import write_secret
from tests.fuzz.chooser import Chooser

OPTIONS = [
    "--epsilon", "--outcomes", "--alpha", "--samples", "--delta", "--total", "--clients", "--risk", "--divergence", "--lower",
    "--upper", "--rounds", "--mechanism", "--purpose", "--input", "--draws", "--json", "--check", "--help", "--confidence", "--cells",
    "--version",
]  # fmt: skip
SAMPLING = [
    "--epsilon", "--domain", "--domain-size", "--cells", "--other", "--nulls", "--count", "--weight", "--clients", "--mechanism",
    "--drop-client", "--secret", "--round", "--rounds", "--purpose", "--agreement", "--write-agreement", "--memory", "--scratch",
    "--format", "--engine", "--quiet", "--client", "--value", "--force", "--state", "--ledger", "--budget", "--over-budget",
]  # fmt: skip
NEEDED = {
    "tradeoff": ["--outcomes", "--epsilon"], "account": ["--epsilon", "--outcomes"], "certify": ["--outcomes", "--epsilon"],
    "agree": ["--epsilon", "--outcomes"], "ledger create": ["--epsilon"], "audit": ["--epsilon", "--input", "--input"],
    "plan": ["--outcomes", "--clients"],
}  # fmt: skip
ESTIMATING = [
    "--domain", "--statistic", "--statistic", "--confidence", "--top", "--plot", "--synthetic", "--rows", "--truth", "--value", "--client",
    "--sample", "--liars", "--json",
]  # fmt: skip
PLANNING = [
    "--epsilon",
    "--accuracy",
    "--confidence",
    "--domain",
    "--example",
    "--client",
    "--value",
    "--seed",
    "--json",
]
DESIGNING = [
    "--epsilon", "--keep", "--divergence", "--other", "--nulls", "--cells", "--count", "--weight", "--rounds", "--purpose", "--json",
]  # fmt: skip
SENDING = [
    "--epsilon", "--round", "--agreement", "--domain", "--other", "--nulls", "--count", "--weight", "--ledger", "--budget", "--over-budget",
    "--gateway-token-file", "--ca-file", "--timeout", "--plain-http", "--json", "--quiet",
]  # fmt: skip
FLAGS = ("--plain-http", "--json", "--check", "--help", "--version", "--drop-client", "--quiet", "--force")
MADE = ("--ledger", "--state")  # names under which something may be made
QUICK = [
    "tradeoff", "account", "certify", "agree", "ledger show", "ledger create", "audit", "ledger", "secret", "sample", "sample", "sample",
    "estimate", "estimate", "plan", "design", "explore", "tokens", "collect", "enrol", "export", "send", "nonsense",
    "",
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
    options = {"sample": SAMPLING, "send": SENDING, "estimate": ESTIMATING, "plan": PLANNING, "design": DESIGNING}.get(
        command, OPTIONS
    )
    match command:
        case "agree" | "ledger show" | "ledger create" | "secret":
            arguments.append(str(folder / c.among(["file", "nowhere/file", "\x00"])))
        case "audit":
            arguments.append(
                c.among(["os:listdir", "nowhere:f", "x", "json:loads", ":", "random:choices", "numpy.random:binomial"])
            )
        case "certify":
            arguments += ["-o", str(folder / "out.json")]
        case "explore":
            arguments += ["-o", str(folder / c.among(["page.html", "nowhere/page.html", "\x00"]))]
        case "tokens":
            arguments += _writing(c, folder)
        case "collect":
            return _collecting(c, folder)
        case "enrol":
            arguments += [c.among(["3", "0", "-1", "x", "99999999999999999999"])]
            arguments += ["-o", str(folder / c.among(["file", "nowhere/file", "\x00"]))]
        case "export":
            return [*arguments, *_exporting(c, folder)]
        case "demo":
            arguments += ["--out", str(folder)]
        case "reproduce":
            arguments += [c.among(["fig2", "fig3", "fig9", "", "all fig"]), "--quick", "--out", str(folder)]
        case "sample" | "design":
            arguments += _sampling(c, folder)
        case "send":
            arguments += _sending(c, folder)
        case "estimate":
            arguments += _estimating(c, folder)
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
        if option in MADE:
            arguments += [option, str(folder / c.among(["made", "labels.txt", "nowhere/made", "\x00"]))]
        else:
            arguments += [option] if option in FLAGS else [option, str(folder / "labels.txt") if named else c.text()]
    return arguments


def _writing(c: Chooser, folder: Path) -> list[str]:
    """Two prompts and a folder that holds no model, or pieces of one."""
    model, prompt = folder / "model", folder / "prompt.txt"
    prompt.write_bytes(c.among([b"once upon a time", b"", b"\xff\xfe", b"a\x00b"]))
    model.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        if c.below(2):
            (model / name).write_text(
                c.among(["", "{}", "[]", '{"model_type": "gpt2"}', '{"model_type": "none"}', "\x00"])
            )
    places = [model, prompt, folder / "nowhere"]
    found = [c.among(places) if c.below(4) == 0 else model]
    for option in ("--public", "--private"):
        found += [option, c.among(places) if c.below(4) == 0 else prompt]
    if c.below(4) == 0:
        found += ["--reference-temperature", c.among(["1.1", "0", "nan", "-2"])]
    return [*map(str, found), "--epsilon", c.among(["1", "0", "nan", "8"]), "--tokens", c.among(["3", "0", "-1", "x"])]


def _collecting(c: Chooser, folder: Path) -> list[str]:
    """What a service is started with; something is always wrong with it, or it would stay."""
    (folder / "agreement.json").write_text(c.among(["", "{}", "[]", "\x00", "[" * 5000]))
    (folder / "tokens.txt").write_text(c.among(["", "short\n", "\x00"]))
    found = [
        "collect",
        str(folder / c.among(["agreement.json", "nowhere.json"])),
        "--store",
        str(folder / "samples.db"),
    ]
    options = [
        "--follows",
        "--host",
        "--allow-origin",
        "--allow-host",
        "--domain",
        "--round",
        "--workers",
        "--tokens",
        "--patience",
    ]
    for _ in range(c.below(4)):
        option = c.among(options)
        found += [option, str(folder / "tokens.txt") if option == "--tokens" else c.text()]
    return [*found, "--port", c.among(["70000", "-1", "x", ""])] if c.below(2) else found


def _exporting(c: Chooser, folder: Path) -> list[str]:
    """A store, whole, damaged or none, and what is asked of it."""
    path = folder / "samples.db"
    with contextlib.closing(open_store(path)) as store:
        agreement = Agreement.of(dc.LinearSampler(dc.Simplex(c.among([1, 3, ["a", "b"]])), epsilon=1.0))
        store.add(agreement)
        store.count_arrivals(
            agreement.id,
            1,
            [Arrival(text_digest(str(n)), text_digest("key"), 0) for n in range(c.below(4))],
            "2026-01-01",
        )
    if c.below(2):
        content = bytearray(path.read_bytes())
        for _ in range(c.below(40)):
            content[c.below(len(content))] = c.below(256)
        path.write_bytes(content[: c.below(len(content)) if c.below(3) == 0 else len(content)])
    (folder / "text").write_text("no store")
    found = [str(folder / c.among(["samples.db", "samples.db", "samples.db", "text", "nowhere", "\x00"]))]
    if c.below(8) == 0:
        found = [c.among(["postgresql://127.0.0.1:1/x", "postgresql://[", "mysql://x/y", "", "://"])]
    found += [
        "-o",
        str(folder / c.among(["out.parquet", "out.csv", "out.x", "samples.db", "text", "nowhere/out.arrow", "\x00"])),
    ]
    for _ in range(c.below(3)):
        option = c.among(["--agreement", "--round", "--write-agreement", "--force", "--json"])
        value = c.among([agreement.id[:12], agreement.id, "1", "0", "2", str(folder / "made"), c.text()])
        found += [option] if option in FLAGS else [option, value]
    return found


def _sending(c: Chooser, folder: Path) -> list[str]:
    """A table, a secret, and a collector that is not there."""
    (folder / "in.csv").write_text("client,value\na,1\nb,0\n")
    (folder / "labels.txt").write_text("0\n1\n")
    write_secret(folder / "secret")
    to = c.text() if c.below(4) == 0 else c.among(["http://127.0.0.1:9", "https://127.0.0.1:9", "http://localhost:0"])
    found = [
        str(folder / c.among(["in.csv", "in.csv", "nowhere.csv"])),
        "--to",
        to,
        "--client",
        "client",
        "--value",
        "value",
    ]
    return [*found, "--secret", str(folder / c.among(["secret", "secret", "labels.txt"])), "--patience", "0"]


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


def _estimating(c: Chooser, folder: Path) -> list[str]:
    """Samples, their agreement, and some of what may be asked of them."""
    rows = "".join(f"{c.among(['0', '1', '2', '1', 'x', '', '9', '0.5'])}\n" for _ in range(c.below(6)))
    (folder / "in.csv").write_text(c.among(["sample\n", "sample\n", "sample\n", "x\n", ""]) + rows)
    (folder / "labels.txt").write_text("0\n1\n")
    kind: Any = c.among([dc.LinearSampler, dc.OptimalSampler, dc.MollifierSampler])
    family = c.among(
        [
            dc.Simplex(3),
            dc.Simplex(["0", "1", "x"]),
            dc.Simplex(1),
            dc.Band([1, 1, 1], lower=0.5, upper=2.0),
            dc.Simplex(dc.Interval(0.0, 1.0, cells=3)),
        ]
    )
    sampler = kind(family, epsilon=c.among([1e-200, 1e-9, 1.0, 8.0, 1000.0]))
    Agreement.of(sampler, rounds=c.among([1, 1, 3])).write(folder / "agreement.json")
    asked: list[list[Any]] = [
        [], ["--statistic", c.among(["mean", "variance", "median", "quantile:0.5", "at-most:1", "x"])],
        ["--synthetic", folder / c.among(["out.csv", "in.csv", "out.parquet", "out.x", "nowhere/out.csv"])],
        ["--truth", folder / "in.csv", "--value", "sample"],
    ]  # fmt: skip
    found: list[Any] = [folder / c.among(["in.csv", "in.csv", "in.csv", "labels.txt", "nowhere.csv"])]
    found += ["--agreement", folder / c.among(["agreement.json", "agreement.json", "agreement.json", "in.csv"])]
    return [str(part) for part in [*found, *c.among(asked), *c.among(asked)]]
