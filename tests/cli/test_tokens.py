"""`discreet tokens` with a model in a folder: text and statement, and every mistake in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli._app import app
from discreet.ledger import Budget, Ledger
from tests.needed import needed_module

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
    ],
)
def test_mistakes_are_one_line(folder: Path, given: dict[str, Any], more: tuple[str, ...], told: str) -> None:
    found = run(folder, *more, **given)
    assert found.exit_code == 2
    assert told in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
