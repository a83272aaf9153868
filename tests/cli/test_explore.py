"""`discreet explore` says where its page is, to people and to programs; the page itself is looked at in `tests/research/explorer`."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from discreet.research._explorer import Explorer, explorer_page
from tests.cli.conftest import Run


def test_a_page_that_was_written_is_told_with_its_size(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    result = run("explore", "-o", str(path), "--json")
    assert json.loads(result.stdout) == {"file": str(path), "bytes": path.stat().st_size}


def test_an_address_is_told_before_it_is_served(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the first line finds the page there."""
    serve = Explorer.serve
    found: list[tuple[str, bytes]] = []

    def asked_once(explorer: Explorer) -> None:
        thread = Thread(target=serve, args=(explorer,))
        thread.start()
        with urllib.request.urlopen(explorer.address) as answer:
            found.append((explorer.address, answer.read()))
        explorer.close()
        thread.join()

    monkeypatch.setattr(Explorer, "serve", asked_once)
    told = json.loads(run("explore", "--no-browser", "--json").stdout)
    shown = run("explore", "--no-browser").stdout
    ((address, content), (second, _)) = found
    assert told == {"address": address, "bytes": len(content)}
    assert content == explorer_page().encode()
    assert shown == f"{second} (this machine alone; Ctrl-C ends it)\n"


def test_markup_in_a_name_is_a_text(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("explore", "-o", "[red]a.html").stdout == "wrote [red]a.html; open it in a browser\n"


def test_a_file_that_exists_is_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    path.write_text("mine")
    refusal("explore", "-o", str(path), "--json")
    assert path.read_text() == "mine"


def test_a_port_is_for_serving(refusal: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    assert "--port is where the page is served" in refusal("explore", "-o", str(path), "--port", "8080")
    assert not path.exists()
