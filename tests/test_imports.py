"""Layers: each module imports only from its own layer or from those above it. The public surface is what `__all__` says."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

PACKAGE = Path(discreet.__file__).parent
LAYERS = [
    {"_version"},
    {"errors", "_kernels", "numerics"},
    {"_core_dumps", "_files", "_forks", "_labelled", "_showing"},
    {"domain"},
    {"_quadrature"},
    {"_perspectives"},
    {"divergences"},
    {"families"},
    {"privacy"},
    {"tradeoff"},
    {"projection"},
    {"_worst_case"},
    {"release"},
    {"accounting"},
    {"mechanisms"},
    {"design"},
    {"_family_terms", "_continuous_terms"},
    {"_reference_terms"},
    {"agreement", "data"},
    {"audit", "_explorer", "_protocol", "ledger", "_tables"},
    {"estimation", "engines"},
    {"client", "collect"},
    {"torch"},
    {"transformers"},
    {"plots"},
    {"research"},
    {"cli"},
    {"__main__"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    """Top-level parts of discreet that a file imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("discreet.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "discreet":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet."):
            found.add((node.module or "").split(".")[1])
    return found & (DEPTH.keys() | {p.stem for p in PACKAGE.iterdir()})


def test_every_module_has_a_layer() -> None:
    present = {layer_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert present <= DEPTH.keys(), "give the new module its place in LAYERS"


def test_contributing_lists_the_layers_as_they_are() -> None:
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = page.split("```text\n")[1].split("```")[0]
    assert [set(line.strip().split(", ")) for line in block.strip().splitlines()] == LAYERS


@pytest.mark.slow
def test_imports_point_upwards() -> None:
    for path in PACKAGE.rglob("*.py"):
        layer = layer_of(path)
        if layer == "__init__":
            continue
        for other in imported_layers(path):
            allowed = other == layer or DEPTH[other] < DEPTH[layer]
            assert allowed, f"{path.relative_to(PACKAGE)} imports {other}, which lies below {layer}"


def test_the_public_surface_exists() -> None:
    assert sorted(discreet.__all__) == list(discreet.__all__)
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None


@pytest.mark.slow
def test_every_public_module_resolves_when_it_is_first_used() -> None:
    """In a fresh process: here others have imported them already."""
    program = """
import pkgutil, types
import discreet as dc
names = {found.name for found in pkgutil.iter_modules(dc.__path__) if not found.name.startswith("_")}
assert {"ledger", "accounting", "audit", "data", "families", "engines", "estimation", "plots", "numerics", "cli"} <= names
for name in sorted(names - set(dc.__all__)):
    assert isinstance(getattr(dc, name), types.ModuleType), name
assert names <= set(dir(dc)) and set(dc.__all__) <= set(dir(dc))
assert not hasattr(dc, "nonsense") and not hasattr(dc, "_version_")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_library_needs_numpy_and_scipy_alone() -> None:
    """Importing discreet, and computing with it where numba is missing, loads no optional dependency."""
    program = """
import sys
for name in ("numba", "typer", "rich", "pyarrow", "polars", "matplotlib", "torch", "pyspark", "starlette", "uvicorn"):
    sys.modules[name] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "numba" else real(name, *a)
import numpy as np
import discreet as dc
sampler = dc.OptimalSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0)
assert sampler.weights([0.5, 0.5, 0.0]).sum() == 2**62
assert sampler.release([[0.5, 0.5, 0.0]] * 10).shape == (10,)
assert abs(sampler.output([0.5, 0.5, 0.0]).sum() - 1) < 1e-12
import tempfile
from discreet.client import Client, send_table
with tempfile.TemporaryDirectory() as folder:
    device = Client("http://127.0.0.1:9", ledger=f"{folder}/ledger", budget=1.0, patience=0.0)
    try:
        device.send([0.5, 0.5, 0.0])
    except dc.errors.CollectorError as error:
        assert "cannot be reached" in str(error)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


@pytest.mark.slow
def test_help_imports_no_command() -> None:
    """The list of commands, and the name that resembles a mistyped one, are known without importing any command."""
    program = """
import sys
from typer.testing import CliRunner
from discreet.cli._app import COMMANDS, app
assert "One private sample" in CliRunner().invoke(app, ["--help"]).stdout
assert "Did you mean 'sample'?" in CliRunner().invoke(app, ["smaple"]).stderr
heavy = {"scipy.optimize", "scipy.special", "scipy.stats", "numba", "polars", "pyarrow", "matplotlib", "torch", "pyspark"}
print(*sorted((heavy | {f"discreet.cli.{module}" for module, _ in COMMANDS.values()}) & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []
