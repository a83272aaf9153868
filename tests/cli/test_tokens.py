"""`discreet tokens` with a model in a folder: text and statement, and every mistake in one line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet import DiscreetError
from discreet.cli._app import app
from discreet.cli._sample import _read_prompt_file, _read_prompt_of_stdin
from discreet.ledger import Budget, Ledger
from tests.needed import needed_module

torch = needed_module("torch", "pip install '.[torch]'")
needed_module("transformers", "pip install '.[transformers]'")
from tests.torch.transformers.models import saved  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("tokens")
    saved(found / "model")
    (found / "public.txt").write_text("Beautiful is\n")
    (found / "private.txt").write_text("Namespaces are one honking great idea\nBeautiful is\n")
    (found / "examples.txt").write_text("Simple is better\n\nErrors should never pass\n")
    return found


def run(folder: Path, *more: str, **given: Any) -> Any:
    said = {
        "--public": str(folder / "public.txt"),
        "--private": str(folder / "private.txt"),
        "--epsilon": "1",
        "--tokens": "5",
    }
    said |= given.pop("said", {})
    options = [part for pair in said.items() for part in pair]
    return CliRunner().invoke(app, ["tokens", str(given.pop("model", folder / "model")), *options, *more], **given)


def test_a_text_and_its_statement(folder: Path) -> None:
    found = run(folder)
    assert found.exit_code == 0, found.output
    assert "each 1-LDP in the private prompt" in found.stdout.replace("\n", " ")


@pytest.mark.slow
def test_json_standard_input_examples_and_a_limit(folder: Path) -> None:
    found = run(
        folder, "--json", "--total", "3", "--delta", "0", "--examples", str(folder / "examples.txt"),
        said={"--private": "-"}, input="something private",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    record = json.loads(found.stdout)
    assert record["upper"] > 1
    assert 1 <= record["reference_temperature"] <= 2
    assert record["statement"]["tokens"] == 3
    assert record["statement"]["pure"] == 3.0
    assert len(record["tokens"]) == record["statement"]["released"] <= 3
    assert len(record["statement"]["agreement"]) == 64


@pytest.mark.slow
def test_a_ledger_is_charged_and_gives_the_same_text_again(folder: Path, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "ledger", Budget(epsilon=5.0))
    first, again = (json.loads(run(folder, "--json", "--ledger", str(book.path)).stdout) for _ in range(2))
    assert first == again
    assert [entry.sample for entry in book.entries()] == first["tokens"]
    other = run(folder, "--ledger", str(book.path), "--number", "2", said={"--epsilon": "5"})
    assert other.exit_code == 2
    assert "nothing was charged" in other.stderr


@pytest.mark.slow
def test_a_text_with_examples_is_paid_for_once(folder: Path, tmp_path: Path) -> None:
    """The box is part of the terms. So examples that gave another box each time would give, and charge, another text."""
    book = Ledger.create(tmp_path / "ledger", Budget(epsilon=5.0))
    more = ("--json", "--ledger", str(book.path), "--examples", str(folder / "examples.txt"))
    first, again = (json.loads(run(folder, *more).stdout) for _ in range(2))
    assert first == again
    assert [entry.sample for entry in book.entries()] == first["tokens"]


def test_a_prompt_that_is_not_utf_8_is_told_without_a_byte_of_it(folder: Path, tmp_path: Path) -> None:
    refused = run(folder, said={"--private": "-"}, input=b"caf\xe9, a secret")
    assert refused.exit_code == 2
    assert refused.stderr == "discreet: standard input is not UTF-8 text\n"
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9, a secret")
    refused = run(folder, said={"--private": str(tmp_path / "latin.txt")})
    assert refused.stderr.replace("\n", "").endswith("latin.txt is not UTF-8 text")
    assert "xe9" not in refused.stderr


@pytest.mark.parametrize("text", [b"one\ntwo\n", b"one\r\ntwo\r\n", b"one\ntwo"])
def test_the_last_line_break_belongs_to_no_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (tmp_path / "prompt.txt").write_bytes(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert _read_prompt_file(tmp_path / "prompt.txt") == _read_prompt_of_stdin() == "one\ntwo"


def test_a_closed_standard_input_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DiscreetError, match="standard input is closed; open it, or name a file"):
        _read_prompt_of_stdin()


@pytest.mark.parametrize(
    ("given", "more", "told"),
    [
        ({"said": {"--epsilon": "95"}}, (), "--allow-large-epsilon"),
        ({"said": {"--private": "nowhere"}}, (), "nowhere cannot be read"),
        ({}, ("--upper", "3", "--examples", "examples.txt"), "one of the two"),
        ({}, ("--reference-temperature", "2", "--examples", "examples.txt"), "one of the two"),
        ({}, ("--reference-temperature", "0"), "reference_temperature = 0"),
        ({"model": "nowhere"}, (), "config.json"),
        ({}, ("--ledger", "nowhere"), "no ledger"),
        ({"said": {"--tokens": "500"}}, (), "past the 128"),
        ({}, ("--device", "abacus"), "cannot be loaded on abacus"),
        ({}, ("--device", "meta"), "holds no numbers"),
    ],
)
def test_mistakes_are_one_line(folder: Path, given: dict[str, Any], more: tuple[str, ...], told: str) -> None:
    found = run(folder, *more, **given)
    assert found.exit_code == 2
    assert told in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_one_line(folder: Path) -> None:
    found = run(folder, "--device", "cuda")
    assert found.exit_code == 2
    assert "cannot be loaded on cuda" in found.stderr
