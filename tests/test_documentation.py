"""The documentation runs: Python blocks are executed, `# ->` values compared, commands replayed, names and files looked up."""

import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from benchmarks import field
from tools.update_notebooks import code_cells, notebook_paths, read_notebook, run_cells, store_outputs
from typer.main import get_command
from typer.testing import CliRunner

import discreet
from discreet.cli._app import COMMANDS, app
from tests.collect.running import Collector, running
from tests.javascript.browser import SITE, chromium, new_context, served, watched
from tests.needed import needed_module
from tests.soaking import SOAKING, wide

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
USUAL = "http://127.0.0.1:8000"  # where pages say that a service is
SHOWN = re.compile(r"^(?P<indent>\s*)(?P<expression>\S.*?)\s+# -> (?P<shown>.+)$")


def found_blocks(page: Path, languages: str) -> list[tuple[str, str]]:
    """(language, content) of a page's fenced blocks, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```({languages})\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def pages_with(languages: str) -> list[Any]:
    return [pytest.param(page, id=page.name) for page in PAGES if found_blocks(page, languages)]


def checked(line: str) -> str:
    """A line `expression  # -> text` as the statement that the expression prints as that text."""
    found = SHOWN.match(line)
    if found is None:
        return line
    return f"{found['indent']}same(({found['expression']}), {found['shown']!r})"


def same(value: object, shown: str) -> None:
    assert str(value) == shown


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each `$ command` of a console block with the lines it is shown to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        yield command.replace("make demo", "discreet demo"), [line for line in lines if line.strip()]


NOTEBOOKS = [pytest.param(path, id=path.name) for path in notebook_paths()]
REFRESH = "run: make notebooks"
NUMBER = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?")


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    """Whole, in order and without an error, small enough for a repository, with a picture."""
    cells = code_cells(read_notebook(path))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), REFRESH
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}, REFRESH
    assert all(output.get("name", "stdout") == "stdout" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs), REFRESH
    assert path.stat().st_size < 300_000


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_runs_and_gives_the_outputs_that_are_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are compared, numbers to five digits; of random cells and of pictures, what kind of output there is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = read_notebook(path)
    for cell, outputs in zip(code_cells(notebook), run_cells(notebook), strict=True):
        assert [_kinds_of(output) for output in cell["outputs"]] == [_kinds_of(output) for output in outputs], REFRESH
        if "random" in cell["metadata"].get("tags", []):
            continue
        for stored, made in zip(cell["outputs"], outputs, strict=True):
            texts = [_text_of(output) for output in (stored, made)]
            assert NUMBER.sub("#", texts[0]) == NUMBER.sub("#", texts[1]), REFRESH
            numbers = [[float(number) for number in NUMBER.findall(text)] for text in texts]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-5, abs=1e-12), REFRESH


def _kinds_of(output: dict[str, Any]) -> tuple[str, list[str]]:
    return output["output_type"], sorted(output.get("data", {}))


def _text_of(output: dict[str, Any]) -> str:
    return "".join(output["text"] if "text" in output else output["data"]["text/plain"])


def test_an_error_in_a_notebook_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "wrong.ipynb"
    cells: list[Any] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in ("1 + 1", "1 / 0")
    ]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        store_outputs(path)
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.long
def test_the_site_builds_and_is_found_through_without_a_network(tmp_path: Path) -> None:
    """Strictly: every link leads somewhere. Nothing is loaded from elsewhere, and search finds, also on pages opened from files.

    In a soak also on pages that are served, and with those of the API, on which every public name has its entry.
    """
    needed_module("mkdocs", "pip install --group dev")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SITE_API": wide("true", "false")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    entries = (tmp_path / "api" / "discreet.html").read_text(encoding="utf-8")
    public = [name for name in discreet.__all__ if not name.startswith("_")]
    assert [name for name in public if f'id="discreet.{name}"' not in entries] == wide([], public)
    assert list(_dead_links(tmp_path)) == []
    texts = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    assert [name for name, text in texts.items() if re.search(r">[\w-]+\.(md|ipynb)</a>", text)] == []
    with chromium() as browser:
        if SOAKING:
            page = new_context(browser).new_page()
            complaints, asked = watched(page), []
            page.on("request", lambda request: asked.append(request.url))
            served(page, {"/": tmp_path})
            _search_and_explore(page, SITE)
            assert [url for url in asked if not url.startswith((SITE, "data:", "blob:"))] == []
            assert complaints() == []
        page = new_context(browser, viewport={"width": 390, "height": 800}).new_page()
        complaints, asked = watched(page), []
        page.on("request", lambda request: asked.append(request.url))
        _search_and_explore(page, tmp_path.as_uri())
        for name in ("index", "tutorials/research", "explorer"):
            page.goto(f"{tmp_path.as_uri()}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        assert complaints() == []


def _dead_links(site: Path) -> Iterator[tuple[str, str]]:
    """Links and pictures of the site's pages, as files, that lead to no file; MkDocs checks only some kinds."""
    for page in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            parts = urlsplit(link)
            local = (
                parts.path and not parts.scheme and not parts.netloc and page.name not in ("404.html", "explore.html")
            )
            if local and not (page.parent / unquote(parts.path)).exists():
                yield page.name, link


def _search_and_explore(page: Any, site: str) -> None:
    """Type a word into the search, follow what it finds to the word; then open the explorer."""
    page.goto(f"{site}/index.html")
    if page.viewport_size["width"] < 960:  # where the search hides behind an icon
        page.locator("label.md-header__button[for=__search]").click()
    page.locator(".md-search__input").press_sequentially("mollifier")
    page.locator(".md-search-result__link[href*='?h=mollifier']:visible").first.click()
    page.wait_for_selector("mark:has-text('Mollifier')", state="attached")
    page.goto(f"{site}/explorer.html")
    assert page.frame_locator("iframe[title='The explorer']").locator("#optimal-worst").text_content() == "0.648"


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("python|console"))
def test_a_page_runs_from_top_to_bottom_and_gives_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python blocks and commands in the order they stand, in one folder: files that one makes the next can read.

    A command with & at its end is a service, which stays until the end of the page, at another address than the page says.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    namespace: dict[str, Any] = {"same": same}
    address = USUAL
    with ExitStack() as services:
        for language, block in found_blocks(page, "python|console"):
            if language == "python":
                statements = "\n".join(checked(line) for line in block.replace(USUAL, address).splitlines())
                exec(compile(statements, page.name, "exec"), namespace)
                continue
            for command, lines in commands(block.replace(USUAL, address)):
                if command.endswith(" &"):
                    address = services.enter_context(started(command.removesuffix(" &"), tmp_path)).address
                else:
                    prints_what_is_shown(command, lines)


def started(command: str, folder: Path) -> AbstractContextManager[Collector]:
    """A service in a process of its own."""
    name, kind, *arguments = shlex.split(command)
    assert (name, kind) == ("discreet", "collect")
    return running(folder, *arguments, fresh=True)


def prints_what_is_shown(command: str, lines: list[str]) -> None:
    """Lines appear in order; `...` stands for anything, alone for any lines; help is shown whole."""
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
    page = found_blocks(ROOT / "docs" / "reference" / "cli.md", "console")
    shown = {command for _, block in page for command, _ in commands(block) if command.endswith("--help")}
    names = _registered()
    assert shown == {"discreet --help", *(f"discreet {name} --help" for name in names)}


def _registered() -> list[str]:
    """The names of all commands, those of groups included."""
    group: Any = get_command(app)
    found: list[str] = []
    for name in COMMANDS:
        command = group.get_command(None, name)
        found += [name, *(f"{name} {part}" for part in getattr(command, "commands", {}))]
    return found


def test_the_api_page_documents_exactly_the_public_names() -> None:
    documented = re.findall(
        r"^### `(\w+)`$", (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(documented) == len(set(documented))
    assert set(documented) == set(discreet.__all__)


def test_the_api_page_says_in_one_line_what_each_name_is_for() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \| (.+) \|$", page, re.MULTILINE)
    assert sorted(name for name, _, _ in lines) == sorted(discreet.__all__)
    assert all(anchor == name.lower() and 10 < len(text) <= 100 for name, anchor, text in lines)


def public_modules() -> list[str]:
    """The modules and packages in whose path nothing has an underscore."""
    root = Path(discreet.__file__).parent
    paths = (path.relative_to(root).with_suffix("") for path in root.rglob("*.py"))
    found = {".".join(path.parts[:-1] if path.name == "__init__" else path.parts) for path in paths}
    return sorted(name for name in found if name and not any(part.startswith("_") for part in name.split(".")))


@pytest.mark.parametrize("package", public_modules())
def test_the_api_page_lists_exactly_the_names_of_each_package(package: str) -> None:
    """What has no underscore is public: it says what it offers, and the page lists that."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `discreet.{package}` ")]
    assert set(re.findall(r"`(\w+)`", row)) == set(importlib.import_module(f"discreet.{package}").__all__)


@pytest.mark.parametrize("page", pages_with("python"))
def test_pages_import_public_names_alone(page: Path) -> None:
    """Whatever a page needs from a module is in its `__all__`, or is a module itself."""
    code = "".join(block for _, block in found_blocks(page, "python"))
    for module, names in re.findall(r"^from (discreet[\w.]*) import ([\w, ]+)", code, re.MULTILINE):
        if not module.startswith("discreet.research."):
            for name in names.replace(" ", "").split(","):
                assert name in importlib.import_module(module).__all__ or _is_module(f"{module}.{name}"), (module, name)


def _is_module(path: str) -> bool:
    return importlib.util.find_spec(path) is not None


def test_the_theorem_table_names_things_that_exist() -> None:
    page = (ROOT / "docs" / "reference" / "theorems.md").read_text(encoding="utf-8")
    rows = [
        line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ") and "lives in" not in line
    ]
    assert len(rows) >= 20
    for item, _, lives_in, held_by in rows:
        objects = re.findall(r"`(discreet[\w.]*)`", lives_in)
        assert objects, item
        for path in objects:
            _resolve(path)
        tests = re.findall(r"`(.*?)`", held_by)
        assert tests, item
        for test in tests:
            path, _, function = test.partition("::")
            assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), (item, test)


def test_every_test_that_a_page_names_exists() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    named = 0
    for page in pages:
        for path, function in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", page.read_text(encoding="utf-8")):
            named += 1
            assert (ROOT / path).is_file(), (page.name, path)
            assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), (
                page.name,
                path,
                function,
            )
    assert named > 100


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


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([\w-]+))?\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in _anchors(linked), (target, anchor)


def _anchors(page: Path) -> set[str]:
    """What a page's headings can be linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_holds_two_versions_of_itself(page: Path) -> None:
    """What a merge left undecided."""
    assert not re.search(r"^(<{7}|>{7}) ", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_page_is_of_one_kind_and_the_index_lists_it_by_its_title() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".ipynb")]
    for page in pages:
        kind, *name = page.relative_to(ROOT / "docs").parts
        if kind != "README.md":
            assert kind in ("tutorials", "how-to", "explanation", "reference")
            assert len(name) == 1
            assert f"| [{_title_of(page)}]({kind}/{page.name}) |" in index
    for text, target in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", index):
        assert text == ("README" if target == "../README.md" else _title_of(ROOT / "docs" / target))


def _title_of(page: Path) -> str:
    notebook = page.suffix == ".ipynb"
    text = "".join(read_notebook(page)["cells"][0]["source"]) if notebook else page.read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# ")


def test_what_the_comparison_with_other_libraries_needs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "dp_fusion_lib" else object())
    with pytest.raises(SystemExit, match=r"not installed: dp_fusion_lib\.") as told:
        field.main()
    assert "pip install --no-deps dp-fusion-lib" in str(told.value.code)


def test_every_benchmark_is_on_the_page_of_benchmarks() -> None:
    page = (ROOT / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    names = [
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if "\ndef run(" in path.read_text(encoding="utf-8")
    ]
    assert len(names) >= 8
    for name in names:
        assert f"`python -m benchmarks {name}`" in page, name


def test_the_threat_model_cites_tests_that_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
    cells = (line.strip("|").split("|") for line in page.splitlines() if line.startswith("| "))
    rows = [row for row in cells if row[2].strip() != "test"]
    assert len(rows) >= 15
    for threat, _, cited in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cited)
        assert tests, threat
        for path, name in tests:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (threat, path, name)


def test_the_glossary_explains_our_own_words() -> None:
    page = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    explained = {word for line in page.splitlines() for word in re.findall(r"\*\*([\w ]+)\*\*", line)}
    assert {
        "law", "client", "curator", "box", "floor", "lattice", "held", "released", "how", "agreement", "round", "question", "family",
        "ledger", "secret", "tight", "risk", "reference", "domain",
    } <= explained  # fmt: skip
    for linking in ("README.md", "docs/README.md"):
        assert "glossary.md)" in (ROOT / linking).read_text(encoding="utf-8")


def test_nothing_is_said_to_be_on_an_index() -> None:
    """We are on none: what `pip install discreet` would bring is somebody else's."""
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), ROOT / "CONTRIBUTING.md"]
    named = [path.name for path in texts if re.search(r"pip install ['\"]?discreet", path.read_text(encoding="utf-8"))]
    assert named == []
