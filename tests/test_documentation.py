"""The documentation runs: Python blocks are executed, `# ->` values compared, commands replayed, names and files looked up."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = re.compile(r"^(?P<indent>\s*)(?P<expression>\S.*?)\s+# -> (?P<shown>.+)$")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def pages_with(language: str) -> list[Any]:
    return [pytest.param(page, id=page.name) for page in PAGES if blocks(page, language)]


def checked(line: str) -> str:
    """A line `expression  # -> text` as the statement that the expression prints as that text."""
    found = SHOWN.match(line)
    if found is None:
        return line
    return f"{found['indent']}same(({found['expression']}), {found['shown']!r})"


def same(value: object, shown: str) -> None:
    assert str(value) == shown


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run_and_give_what_they_say(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"same": same}
    for block in blocks(page, "python"):
        statements = "\n".join(checked(line) for line in block.splitlines())
        exec(compile(statements, page.name, "exec"), namespace)


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each `$ command` of the page's console blocks with the lines it is shown to print."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command.replace("make demo", "discreet demo"), [line for line in lines if line.strip()]


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines appear in order; `...` stands for anything, alone for any lines; help is shown whole."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for command, lines in commands(page):
        name, *arguments = shlex.split(command)
        assert name == "discreet"
        result = CliRunner().invoke(app, arguments, prog_name="discreet")
        assert result.exit_code == 0, (command, result.output)
        printed = [line.rstrip() for line in result.stdout.splitlines() if line.strip()]
        if "--help" in arguments:
            assert lines == printed, "run: python tools/update_help.py"
        remaining = iter(printed)
        for line in lines:
            pattern = ".*".join(map(re.escape, line.rstrip().split("...")))
            if line != "...":
                assert any(re.fullmatch(pattern, candidate) for candidate in remaining), (command, line, printed)


def test_every_command_shows_its_help() -> None:
    shown = {command for command, _ in commands(ROOT / "docs" / "cli.md") if command.endswith("--help")}
    names = [name for name, *_ in _registered()]
    assert shown == {"discreet --help", *(f"discreet {name} --help" for name in names)}


def _registered() -> list[tuple[str]]:
    """The names of all commands, those of groups included."""
    found = [(info.name or info.callback.__name__,) for info in app.registered_commands if info.callback]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        parts = [
            info.name or info.callback.__name__ for info in group.typer_instance.registered_commands if info.callback
        ]
        found += [(str(group.name),), *((f"{group.name} {part}",) for part in parts)]
    return found


def test_the_api_page_documents_exactly_the_public_names() -> None:
    documented = re.findall(r"^### `(\w+)`$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(documented) == set(discreet.__all__)


def test_the_theorem_table_names_things_that_exist() -> None:
    page = (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    for item, _, lives_in, held_by in rows:
        objects = re.findall(r"`(discreet[\w.]*)`", lives_in)
        assert objects, item
        for path in objects:
            _resolve(path)
        for test in re.findall(r"`(.*?)`", held_by):
            assert (ROOT / test.partition("::")[0]).is_file(), (item, test)


def _resolve(path: str) -> object:
    """The object a dotted path leads to: the longest importable part, then attributes."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(path)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_threat_model_cites_tests_that_exist() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    for threat, _, cited in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cited)
        assert tests, threat
        for path, name in tests:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (threat, path, name)
