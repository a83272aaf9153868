"""The six storeys: a room imports from its own storey or below, through other rooms' doors; the public surface is what `__all__` says."""

import ast
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import discreet

PACKAGE = Path(discreet.__file__).parent
STOREYS = {
    "the bottom": {"_base", "errors"},
    "problem": {"domain", "divergences", "families", "privacy"},
    "solution": {"projection", "release", "accounting", "mechanisms", "design", "survey"},
    "trust": {"agreement", "audit", "ledger"},
    "data": {"tables", "estimation", "plots"},
    "applications": {"client", "collect", "torch", "research"},
    "surface": {"cli", "__main__"},
}
HEIGHT = {room: height for height, rooms in enumerate(STOREYS.values()) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imported_modules(path: Path) -> frozenset[str]:
    """The modules of discreet that a file imports or imports from, wherever in the file it does so, also by `import_module`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("discreet.")}
        elif isinstance(node, ast.ImportFrom) and (
            node.module == "discreet" or str(node.module).startswith("discreet.")
        ):
            for alias in node.names:
                inside = PACKAGE.joinpath(*str(node.module).split(".")[1:], alias.name)
                is_module = inside.is_dir() or inside.with_suffix(".py").is_file()
                found.add(f"{node.module}.{alias.name}" if is_module else str(node.module))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            named = {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
            found |= {name for name in named if name.startswith("discreet.")}
    return frozenset(found - {"discreet"})


def rooms_imported() -> dict[str, set[str]]:
    """Which other rooms each room imports from."""
    found: dict[str, set[str]] = {room: set() for room in HEIGHT}
    for path in PACKAGE.rglob("*.py"):
        if room_of(path) != "__init__":
            found[room_of(path)] |= {module.split(".")[1] for module in imported_modules(path)} - {room_of(path)}
    return found


def test_every_room_has_a_storey() -> None:
    assert {room_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"} == HEIGHT.keys()


def test_a_room_imports_from_its_own_storey_or_below() -> None:
    for room, others in rooms_imported().items():
        above = {other for other in others if HEIGHT[other] > HEIGHT[room]}
        assert not above, f"{room} imports {above}, which are above it"


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    left = rooms_imported()
    while left:
        free = {room for room, others in left.items() if not others & left.keys()}
        assert free, f"these import each other: {sorted(left)}"
        left = {room: others for room, others in left.items() if room not in free}


def test_rooms_are_entered_through_their_doors() -> None:
    """Modules of one folder import each other. Others import a folder's `__init__` and its public modules, and nothing behind an underscore.

    This holds for a room and for a folder inside it alike. The bottom room has no door: its modules are imported by name.
    """
    for path in PACKAGE.rglob("*.py"):
        here = path.parent.relative_to(PACKAGE).parts
        for module in imported_modules(path):
            folder = module.split(".")[1:]
            while len(folder) > 1 and here[: len(folder) - 1] != tuple(folder[:-1]) and folder[:-1] != ["_base"]:
                assert not folder[-1].startswith("_"), f"{path.relative_to(PACKAGE)} imports {module} past a door"
                folder.pop()


def test_a_door_imports_nothing_of_its_own_room_at_once() -> None:
    """Two threads would wait for each other: one has locked the room and wants a module inside, the other the other way round."""
    for path in PACKAGE.rglob("__init__.py"):
        package = ".".join(("discreet", *path.parent.relative_to(PACKAGE).parts))
        if package.startswith(("discreet._base", "discreet.cli")):
            continue  # nobody imports the first from several threads, and a command has one
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            inside = isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{package}.")
            assert not inside or ast.unparse(node).startswith("from discreet._base import"), (
                f"{path}: {ast.unparse(node)}"
            )


def placeholders_in(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """The names that a module imports as placeholders, with the module and the name that each stands for."""
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for block in tree.body
        if isinstance(block, ast.With) and "placeholders_until_used" in ast.unparse(block.items[0])
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_placeholders_stand_for_classes_and_functions_and_are_used_as_they_can_be() -> None:
    """Not as a base class, in `except`, or compared: a placeholder is not the class itself."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        placeholders = placeholders_in(tree)
        for module, name in placeholders.values():
            assert callable(getattr(import_module(module), name)), f"{path}: {name} is neither a class nor a function"
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(bases=parts) | ast.Compare(comparators=parts):
                    parts = [*parts, *([node.left] if isinstance(node, ast.Compare) else [])]
                case ast.ExceptHandler(type=ast.expr() as kind):
                    parts = [kind]
                case _:
                    continue
            named = {
                each.id for part in parts for each in (part, *getattr(part, "elts", ())) if isinstance(each, ast.Name)
            }
            assert not named & placeholders.keys(), f"{path}:{node.lineno} needs {named & placeholders.keys()} itself"


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
assert {"ledger", "accounting", "audit", "families", "tables", "estimation", "plots", "cli"} <= names
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
print(*sorted((heavy | {f"discreet.cli._{module}" for module, _, _ in COMMANDS.values()}) & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []
