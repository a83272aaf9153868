"""The layout of the tests mirrors the source: a room of the package has its tests in a folder of its name, a module in a file of its name."""

from pathlib import Path

import discreet

TESTS = Path(__file__).parent
PACKAGE = Path(discreet.__file__).parent

ABOUT_EVERYTHING = {
    "docstrings",  # of every public name
    "documentation",
    "imports",
    "large_epsilon",  # refused or warned about, whoever is given one
    "layout",
    "wrong_kinds",  # of arguments, to every public function
}
NOT_A_ROOM = {
    "agreements/1",  # files whose ids are fixed for ever, by their version
    "agreements/2",
    "javascript",  # the client for browsers, beside Python
    "fuzz",  # attacks on every entry point
    "theorems",  # of the paper, each through every layer
}


def rooms(folder: Path) -> set[str]:
    """Folders of Python modules, by their path from here, however deep, without their underscores."""
    found = (path.parent.relative_to(folder).parts for path in folder.rglob("__init__.py"))
    return {"/".join(part.lstrip("_") for part in parts) for parts in found if parts}


def test_every_folder_of_tests_is_a_room_of_the_package() -> None:
    files = (path for path in TESTS.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    found = {str(path.parent.relative_to(TESTS)) for path in files} - {"."}
    assert found - rooms(PACKAGE) == NOT_A_ROOM


def test_every_room_of_the_package_has_tests() -> None:
    for room in (name for name in rooms(PACKAGE) if "/" not in name):
        assert list((TESTS / room).rglob("test_*.py")), room


def test_every_other_file_of_tests_is_named_after_a_module() -> None:
    modules = {path.stem.lstrip("_") for path in (*PACKAGE.glob("*.py"), *TESTS.glob("*.py"))} | ABOUT_EVERYTHING
    for path in TESTS.glob("test_*.py"):
        subject = path.stem.removeprefix("test_")
        assert any(subject == module or subject.startswith(f"{module}_") for module in modules), path.name


def test_no_text_holds_two_sides_of_a_merge() -> None:
    files = [path for kind in ("*.md", "*.py", "*.js", "*.toml") for path in TESTS.parent.rglob(kind)]
    ours = [path for path in files if not {"node_modules", ".venv", "out"} & set(path.relative_to(TESTS.parent).parts)]
    assert len(ours) > 500
    sides = ("<" * 7 + " ", ">" * 7 + " ")
    for path in ours:
        assert not any(line.startswith(sides) for line in path.read_text().splitlines()), path
