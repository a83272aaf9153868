"""Tests lie where a reader looks for them: those of a room of the package in the folder of its name."""

from pathlib import Path

import discreet

TESTS = Path(__file__).parent
PACKAGE = Path(discreet.__file__).parent
NOT_A_ROOM = {
    "javascript",  # the client for browsers, beside Python
    "fuzz",  # attacks on every entry point
    "theorems",  # of the paper, each through every storey
}


def rooms() -> set[str]:
    """The folders of the package, without their underscores."""
    return {path.parent.name.lstrip("_") for path in PACKAGE.glob("*/__init__.py")}


def test_every_folder_of_tests_is_a_room_of_the_package() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")}
    assert folders - rooms() == NOT_A_ROOM


def test_every_room_of_the_package_has_tests() -> None:
    for room in rooms():
        assert list((TESTS / room).rglob("test_*.py")), room


def test_at_most_a_dozen_modules_lie_behind_a_door() -> None:
    for door in PACKAGE.rglob("__init__.py"):
        if door.parent != PACKAGE:
            behind = [path.name for path in door.parent.glob("*.py") if path != door]
            assert len(behind) <= 12, (
                f"{door.parent.name} has {len(behind)}: put those of one concept into a folder with a door"
            )


def test_no_text_holds_two_sides_of_a_merge() -> None:
    files = [path for kind in ("*.md", "*.py", "*.js", "*.toml") for path in TESTS.parent.rglob(kind)]
    ours = [path for path in files if not {"node_modules", ".venv", "out"} & set(path.relative_to(TESTS.parent).parts)]
    assert len(ours) > 300
    sides = ("<" * 7 + " ", ">" * 7 + " ")
    for path in ours:
        assert not any(line.startswith(sides) for line in path.read_text(encoding="utf-8").splitlines()), path
