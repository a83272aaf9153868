"""The wheel and the source archive: they build, install into an empty environment and work; version and date are stated once."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import discreet
from discreet import _base
from tests.needed import needed_module

ROOT = Path(__file__).parents[1]
DATA = (
    "py.typed",
    "collect/pages/take-part.html",
    "collect/pages/take-part.js",
    "collect/pages/live.html",
    "collect/pages/live.js",
    "collect/pages/collector.css",
    "research/_explorer/page.html",
    "research/_explorer/explorer.js",
    "research/_explorer/explorer.css",
    "research/data/flights.parquet",
    "research/data/destinations.txt",
    "research/data/time_zones.csv",
)
SMOKE = """
from importlib import metadata
from pathlib import Path
import discreet as dc
from discreet.research import data
home = Path(dc.__file__).parent
print(home)
print(metadata.version("discreet") == dc.__version__)
print(dc.OptimalSampler(dc.Simplex(["a", "b"]), epsilon=1.0).release([0.5, 0.5]) in ("a", "b"))
print(data.flights().num_rows > 300_000)
"""


def test_citation_repeats_version_and_date() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [discreet.__version__]
    assert re.findall(r"^date-released: (.*)$", citation, re.MULTILINE) == [_base.__date__]
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", _base.__date__)


def test_bibtex_entries_repeat_the_citation_file() -> None:
    """Of the software with the fields that `cffconvert --format bibtex` writes, and of both papers: names, title, address, year."""
    citation = needed_module("yaml", "pip install --group dev").safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    page = (ROOT / "docs" / "reference" / "citing.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bibtex\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    entries = [dict(re.findall(r"^(\w+) = \{(.*)\}", block, re.MULTILINE)) for block in blocks]
    papers = [citation["preferred-citation"], *citation["references"]]
    for entry, paper in zip(entries[:-1], papers, strict=True):
        names = " and ".join(f"{author['family-names']}, {author['given-names']}" for author in paper["authors"])
        expected = {"author": names, "booktitle": paper["collection-title"], "year": str(paper["year"])}
        assert entry == {**expected, "title": paper["title"], "url": paper["url"]}
    released = citation["date-released"]
    assert entries[-1] == {
        "author": " and ".join(author["name"] for author in citation["authors"]),
        "month": str(released.month),
        "note": f"Version {discreet.__version__}",
        "title": citation["title"],
        "year": str(released.year),
    }


def test_the_newest_changes_are_of_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \((.*)\)$", changes, re.MULTILINE)
    assert newest is not None
    assert newest[1] == discreet.__version__
    assert newest[2] in ("unreleased", _base.__date__)


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints; nothing of this checkout is on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=folder, env=environment, timeout=300
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout


def build(target: str, source: Path, output: Path) -> Path:
    """Build by the backend that pyproject.toml names."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=source, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return next(output.glob("*.whl" if target == "wheel" else "*.tar.gz"))


@pytest.mark.slow
def test_what_is_built_installs_and_works(tmp_path: Path) -> None:
    """The wheel is built from the source archive, which so is known to be whole, and installed beside its dependencies alone."""
    needed_module("hatchling", "pip install --group dev")
    archive = build("sdist", ROOT, tmp_path / "archive")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / f"discreet-{discreet.__version__}"
    assert {"CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "src", "tests"} <= {
        one.name for one in source.iterdir()
    }

    wheel = build("wheel", source, tmp_path / "wheel")
    assert wheel.name == f"discreet-{discreet.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed_wheel:
        names = set(packed_wheel.namelist())
    assert {f"discreet/{name}" for name in DATA} <= names
    kept = {
        f"discreet/{path.relative_to(ROOT / 'src' / 'discreet')}" for path in (ROOT / "src" / "discreet").rglob("*.py")
    }
    assert {name for name in names if name.startswith("discreet/") and name.endswith(".py")} == kept

    home = tmp_path / "environment"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        folder=tmp_path,
    )
    packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip()
    )
    # other packages come from here; files ending in .pth, by which this checkout is installed, are not read there
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    shutil.rmtree(source)
    place, *rest = run(python, "-W", "error", "-c", SMOKE, folder=tmp_path).split()
    assert place == str(packages / "discreet")
    assert rest == ["True", "True", "True"]
    assert all((packages / "discreet" / name).is_file() for name in DATA)
    assert run(home / "bin" / "discreet", "--version", folder=tmp_path) == f"discreet {discreet.__version__}\n"
    assert "optimal" in run(home / "bin" / "discreet", "tradeoff", "--outcomes", "4", "--epsilon", "1", folder=tmp_path)
