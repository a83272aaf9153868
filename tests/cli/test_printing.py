"""Nobody else's text moves the cursor, changes a colour, turns the direction of writing or passes for a line of ours."""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, strategies as st

import discreet.cli
from discreet import DiscreetError
from discreet.cli._printing import empty_table, print_text_blocks, safe_text
from discreet.errors import spell_out_invisible

Run = Callable[..., Any]
HIDING = [
    "\x1b[2K\x1b[1A epsilon = 0.1",  # erases the line before
    "\x1b]0;title\x07",
    "\x9b31m",  # the same as ESC [ in one character
    "\rid 0000",
    "\b" * 40,
    "a\nepsilon = 0.1, optimal on 3 outcomes",
    "a\u2028b",
    "\u202e1.0 = nolispe\u202c",  # right to left
    "\u2066\u2067\u2068\u2069\u200b\ufeff\u00ad",
    "\U000e0041\ue000\uffff",
    "[bold red]:lock:[/bold red]",
]  # fmt: skip


def shown(text: str) -> None:
    """That nothing but visible characters and line breaks is there."""
    assert all(character.isprintable() or character == "\n" for character in text), ascii(text)


@given(st.text(st.characters(codec=None)))
def test_what_is_printed_is_visible(text: str) -> None:
    for spelled in (spell_out_invisible(text), safe_text(text), str(DiscreetError(text))):
        assert spelled.isprintable()
        spelled.encode()
    assert spell_out_invisible(text.replace("\n", ""), keep="\n").isprintable()
    if text.isprintable():
        assert spell_out_invisible(text) == text


@pytest.mark.parametrize("text", HIDING)
def test_blocks_and_tables_print_no_control_character(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = empty_table("outcome", text)
    made.add_row(text, text)
    print_text_blocks(f"for: {safe_text(text)}", made, safe_text(text))
    said = capsys.readouterr().out
    shown(said)
    if text.startswith("[bold"):
        assert said.count("for: [bold red]:lock:[/bold red]") == 1
    assert safe_text("x" * 1000, most=10) == "x" * 10 + "... (1,000 characters)"


@pytest.mark.parametrize("text", HIDING)
def test_a_purpose_or_a_label_hides_nothing_in_an_agreement(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    family = {"kind": "simplex", "size": 2, "labels": [text, "b"]}
    agreed = {"discreet": 1, "family": family, "mechanism": "optimal", "epsilon": 9.0, "bits": 62, "purpose": text}
    path.write_text(json.dumps(agreed))
    checked = run("agree", str(path), "--check")
    assert checked.exit_code == 0, checked.output
    shown(checked.stdout)
    first, *rest = checked.stdout.splitlines()
    assert first.startswith("epsilon = 9, optimal on 2 outcomes")
    assert not any(line.startswith(("epsilon", "optimal", "id 0000")) for line in rest)
    shown(run("agree", str(path), "--check", "--json").stdout)


@pytest.mark.parametrize("text", HIDING)
def test_a_label_hides_nothing_in_an_estimate(run: Run, tmp_path: Path, text: str) -> None:
    path, samples = tmp_path / "a.json", tmp_path / "samples.parquet"
    family = {"kind": "simplex", "size": 2, "labels": [text, "b"]}
    path.write_text(json.dumps({"discreet": 1, "family": family, "mechanism": "linear", "epsilon": 9.0, "bits": 62}))
    pl.DataFrame({"client": range(100), "sample": [text] * 99 + ["b"]}).write_parquet(samples)
    found = run("estimate", str(samples), "--agreement", str(path))
    assert found.exit_code == 0, found.output
    shown(found.stdout)
    pl.DataFrame({"client": range(3), "sample": [text + "!", "b", "b"], text: 1}).write_parquet(samples)
    for arguments in ((), ("--sample", "absent")):
        refused = run("estimate", str(samples), "--agreement", str(path), *arguments)
        assert refused.exit_code == 2
        shown(refused.stderr)


@pytest.mark.parametrize("text", [text for text in HIDING if "/" not in text and not text.startswith("\U000e0041")])
@pytest.mark.parametrize("command", ["secret", "ledger"])
def test_a_file_name_hides_nothing(run: Run, tmp_path: Path, command: str, text: str) -> None:
    path = tmp_path / text
    made = run("secret", str(path)) if command == "secret" else run("ledger", "create", str(path), "--epsilon", "1")
    assert made.exit_code == 0, made.output
    shown(made.stdout)
    again = run("secret", str(path)) if command == "secret" else run("ledger", "create", str(path), "--epsilon", "1")
    assert again.exit_code == 2
    shown(again.stderr)
    assert again.stderr.count("\n") == 1


def test_there_is_no_other_way_to_a_terminal() -> None:
    """Commands print through `discreet.cli._printing`: none makes a console, prints or unescapes markup for itself."""
    for path in Path(discreet.cli.__file__).parent.glob("*.py"):
        if path.name == "_printing.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in ("rich", "rich.markup", "rich.console"):
                names = {alias.name for alias in node.names}
                assert not names & {"escape", "Console", "print"}, f"{path.name} imports {names} from {node.module}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{path.name} prints"
