"""Hostile command lines: one line on standard error and a small exit status, or what was asked for; never a traceback."""

import contextlib
import functools
import tempfile
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

import discreet as dc
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.collect import close_collection, open_store
from discreet.collect._counting import Arrival, text_digest
from discreet.survey import Survey, SurveySampler, shares
from discreet.tables import write_secret
from tests.fuzz.chooser import Chooser

NEEDED = {
    "tradeoff": ["--outcomes", "--epsilon"], "account": ["--epsilon", "--outcomes"], "certify": ["--outcomes", "--epsilon"],
    "agree": ["--epsilon", "--outcomes"], "ledger create": ["--epsilon"], "audit": ["--epsilon", "--input", "--input"],
    "plan": ["--outcomes", "--clients"],
}  # fmt: skip
FOREIGN = ["--epsilon", "--alpha", "--total", "--risk", "--help", "--version", "--nonsense"]
TESTED_APART = {  # options that would serve, wait, open a browser or start Java
    "send": {"--patience", "--to"}, "explore": {"--browser", "--port"}, "collect": {"--port", "--store", "--workers"},
}  # fmt: skip
WORDS = {
    "--mechanism": ["linear", "optimal", "mollifier", "reports"], "--nulls": ["drop", "error", "other"], "--for": ["population", "clients"],
    "--divergence": ["kl", "tv"], "--over-budget": ["drop", "refuse"], "--null-clients": ["drop"], "--null-groups": ["drop"],
    "--every": ["day", "month"], "--start": ["2026-01-01"], "--show": ["always", "after", "never"], "--lang": ["de"], "--by": ["client"],
    "--statistic": ["mean", "median", "quantile:0.9", "at-most:1"], "--smoothing": ["none", "2"], "--format": ["csv", "parquet"],
    "--client": ["client"], "--value": ["value"], "--sample": ["sample"], "--count": ["value"], "--weight": ["value"],
}  # fmt: skip
FILES = ["labels.txt", "in.csv", "agreement.json", "survey.json", "secret", "made", "nowhere/made", "\x00"]
QUICK = [
    "tradeoff", "account", "certify", "agree", "ledger show", "ledger create", "audit", "ledger", "secret", "sample", "sample", "sample",
    "estimate", "estimate", "plan", "design", "explore", "tokens", "collect", "enrol", "invite", "export", "close", "publish", "send",
    "nonsense", "",
]  # fmt: skip


@functools.cache
def _agreement_texts() -> tuple[str, ...]:
    """Agreements on samples, on reports and on a survey."""
    survey = Survey({"value": 3}, [shares("value")])
    samplers = (
        dc.LinearSampler(dc.Simplex(3), epsilon=1.0),
        dc.ReportSampler(dc.Simplex(12), epsilon=1.0),
        SurveySampler(survey, epsilon=1.0),
    )
    return tuple(Agreement.of(sampler, rounds=2).text for sampler in samplers)


@functools.cache
def _options_of(command: str) -> list[Any]:
    """The options that a command has."""
    found: Any = get_command(app)
    for name in command.split():
        found = found.get_command(None, name) if hasattr(found, "get_command") else None
    if found is None:
        return []
    return [
        each
        for each in found.params
        if each.opts[0] not in TESTED_APART.get(command, ()) and each.opts[0].startswith("-")
    ]


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
    (folder / "agreement.json").write_text(c.among(_agreement_texts()))
    (folder / "survey.json").write_text('{"columns": {"value": {"size": 3}}, "questions": [{"shares": "value"}]}')
    (folder / "in.csv").write_text("client,value\na,1\nb,0\n")
    (folder / "labels.txt").write_text("0\n1\n")
    arguments = command.split()
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
            arguments += c.among([
                ["-o", str(folder / c.among(["page.html", "nowhere/page.html", "\x00"]))],
                ["--no-browser", "--port", c.among(["70000", "-1"])],
            ])  # fmt: skip
        case "tokens":
            arguments += _writing(c, folder)
        case "collect":
            arguments += _collecting(c, folder)
        case "enrol":
            arguments += [c.among(["3", "0", "-1", "x", "99999999999999999999"])]
            arguments += ["-o", str(folder / c.among(["file", "nowhere/file", "\x00"]))]
        case "invite":
            arguments += [
                *_stored(c, folder),
                "--address",
                c.among(["https://example.org", "https://example.org/x?y", c.text()]),
            ]
            arguments += [
                "-o",
                str(folder / c.among(["invitations", "invitations", "in.csv", "nowhere/invitations", "\x00"])),
            ]
        case "export":
            arguments += _stored(c, folder)
            names = ["out.parquet", "out.csv", "out.x", "samples.db", "text", "nowhere/out.arrow", "\x00"]
            arguments += ["-o", str(folder / c.among(names))]
        case "close":
            arguments += _stored(c, folder)
        case "publish":
            arguments += [
                *_stored(c, folder),
                "-o",
                str(folder / c.among(["result", "result", "in.csv", "nowhere/result", "\x00"])),
            ]
        case "demo":
            return [*arguments, "--out", str(folder)]
        case "reproduce":
            return [*arguments, c.among(["fig2", "fig3", "fig9", "", "all fig"]), "--quick", "--out", str(folder)]
        case "sample" | "design":
            arguments += _sampling(c, folder)
        case "send":
            arguments += _sending(c, folder)
        case "estimate":
            arguments += _estimating(c, folder)
    for option in NEEDED.get(command, ()) if c.below(8) else ():
        arguments += [option, c.among(["1", "2", "3", "0.5", "8"]) if c.below(4) else c.text()]
    for _ in range(c.below(4)):
        arguments += _option(c, command, folder)
    return arguments


def _option(c: Chooser, command: str, folder: Path) -> list[str]:
    """An option of the command, mostly, with a value that is right, mostly."""
    known = _options_of(command)
    if not known or c.below(16) == 0:
        return [c.among(FOREIGN), c.text()][: 1 + c.below(2)]
    option = c.among(known)
    name = c.among([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [name]
    return [name, *(_value(c, option, folder) for _ in range(option.nargs))]


def _value(c: Chooser, option: Any, folder: Path) -> str:
    """What an option takes by its kind."""
    kind = str(option.type_descriptor.annotation)
    if c.below(4) == 0:
        return c.text()
    if "Path" in kind:
        return str(folder / c.among(FILES))
    if "int" in kind or "float" in kind:
        return str(
            c.among(["1", "2", "3", "8", "0", "12"] if "int" in kind else ["1", "0.5", "0.95", "0", "1e-6", "3"])
        )
    return str(c.among(WORDS.get(option.opts[0], ["value", "x", "1"])))


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
    (folder / "tokens.txt").write_text(c.among(["", "short\n", "\x00"]))
    if c.below(2):
        found = [
            str(folder / "agreement.json"),
            "--store",
            str(folder / c.among(["samples.db", "samples.db", "in.csv", "nowhere/x.db"])),
        ]
        return [*found, "--port", c.among(["70000", "-1", "x", ""])]
    (folder / "agreement.json").write_text(c.among(["", "{}", "[]", "\x00", "[" * 5000]))
    found = [str(folder / c.among(["agreement.json", "nowhere.json"])), "--store", str(folder / "samples.db")]
    return [*found, "--tokens", str(folder / "tokens.txt")] if c.below(2) else found


def _stored(c: Chooser, folder: Path) -> list[str]:
    """A store, whole, damaged or none, and which agreement of it is meant."""
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
            close_collection(store)
    if c.below(3) == 0:
        content = bytearray(path.read_bytes())
        for _ in range(c.below(40)):
            content[c.below(len(content))] = c.below(256)
        path.write_bytes(content[: c.below(len(content)) if c.below(3) == 0 else len(content)])
    (folder / "text").write_text("no store")
    found = [str(folder / c.among(["samples.db", "samples.db", "samples.db", "samples.db", "text", "nowhere", "\x00"]))]
    if c.below(8) == 0:
        found = [c.among(["postgresql://127.0.0.1:1/x", "postgresql://[", "mysql://x/y", "", "://"])]
    return [*found, "--agreement", c.among([agreement.id[:12], agreement.id, c.text()])] if c.below(4) == 0 else found


def _sending(c: Chooser, folder: Path) -> list[str]:
    """A table, a secret, and a collector that is not there."""
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
    Agreement.of(sampler, rounds=c.among([1, 1, 3])).write(folder / "agreed.json")
    asked: list[list[Any]] = [
        [], ["--statistic", c.among(["mean", "variance", "median", "quantile:0.5", "at-most:1", "x"])],
        ["--synthetic", folder / c.among(["out.csv", "in.csv", "out.parquet", "out.x", "nowhere/out.csv"])],
        ["--truth", folder / "in.csv", "--value", "sample"],
    ]  # fmt: skip
    found: list[Any] = [folder / c.among(["in.csv", "in.csv", "in.csv", "labels.txt", "nowhere.csv"])]
    found += [
        "--agreement",
        folder / c.among(["agreed.json", "agreed.json", "agreed.json", "agreement.json", "in.csv"]),
    ]
    return [str(part) for part in [*found, *c.among(asked), *c.among(asked)]]
