"""Doors of rooms: names load on first use, and nothing else is affected while a door notes its imports."""

import builtins
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from discreet._base.doors import imports_on_first_use
from discreet.errors import MissingExtraError

DOOR = """
from discreet._base.doors import imports_on_first_use, old_names

with imports_on_first_use(globals(), extra="cli"):
    from {room}._heavy import VALUE, slow_function as slow_function
    from {room}._needy import needed
    from {room}._shapes import Shape as Shape

__all__ = ["VALUE"]
__getattr__ = old_names(__name__, {{"OLD": "VALUE"}})
"""

SHAPES = """
class Shape:
    SIDES = 4

def count_sides(shape):
    return shape.SIDES
"""
SORTING = """
from discreet._base.doors import placeholders_until_used

with placeholders_until_used(globals()):
    from {room} import Shape
    from {room}._shapes import Shape as SameShape, count_sides

def kind_of(value: Shape | None) -> str:
    match value:
        case Shape():
            assert isinstance(value, SameShape)
            return "shape"
    return "other"

def is_kind_of_shape(kind: type[Shape]) -> bool:
    return issubclass(kind, Shape)
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A room with a module that loads on first use, one whose import fails, and a public one."""
    name = "room_of_a_test"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text(DOOR.format(room=name))
    (folder / "_heavy.py").write_text("VALUE = object()\n\ndef slow_function():\n    return 7\n")
    (folder / "_needy.py").write_text("import a_package_that_nobody_has\n\nneeded = 1\n")
    (folder / "_shapes.py").write_text(SHAPES)
    (folder / "_sorting.py").write_text(SORTING.format(room=name))
    (folder / "public.py").write_text("LETTER = 'a'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    for each in [each for each in sys.modules if each.split(".")[0] == name]:
        del sys.modules[each]


def test_a_name_is_loaded_when_it_is_first_used_and_then_kept(room: ModuleType) -> None:
    assert "room_of_a_test._heavy" not in sys.modules
    assert "VALUE" not in vars(room)
    first = room.VALUE
    assert "room_of_a_test._heavy" in sys.modules
    assert vars(room)["VALUE"] is first is room.VALUE
    assert room.slow_function() == 7


def test_public_modules_and_old_names_resolve_and_others_do_not(room: ModuleType) -> None:
    assert room.public.LETTER == "a"
    assert dir(room) == ["VALUE", "public"]
    with pytest.warns(FutureWarning, match="OLD is now VALUE"):
        assert room.OLD is room.VALUE
    for missing in ("nothing", "_hidden"):
        with pytest.raises(AttributeError, match=f"no attribute '{missing}'"):
            getattr(room, missing)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(room: ModuleType) -> None:
    with pytest.raises(MissingExtraError, match="a_package_that_nobody_has"):
        _ = room.needed


def test_a_placeholder_loads_its_class_when_it_is_called_and_not_for_a_question(room: ModuleType) -> None:
    """Also behind a door, and also where others have loaded the class past the placeholder."""
    module = importlib.import_module("room_of_a_test._sorting")
    assert module.kind_of(7) == "other"
    assert not module.is_kind_of_shape(int)
    assert "room_of_a_test._shapes" not in sys.modules
    square = importlib.import_module("room_of_a_test._shapes").Shape()
    assert module.kind_of(square) == "shape"
    assert module.is_kind_of_shape(type(square))
    assert type(module.Shape()) is type(module.SameShape()) is type(square)
    assert module.Shape.SIDES == module.count_sides(square) == 4
    assert module.Shape.__name__ == "Shape"


def test_imports_of_other_modules_and_threads_pass_through() -> None:
    door = {"__name__": "a_door", "__path__": [], "__all__": []}
    usual, seen = builtins.__import__, []

    def import_elsewhere() -> None:
        import colorsys

        seen.append(colorsys)

    with imports_on_first_use(door):
        assert builtins.__import__ is not usual
        import_elsewhere()
        thread = threading.Thread(target=import_elsewhere)
        thread.start()
        thread.join()
        exec("from a_module_that_is_not_there import name", door)
    assert builtins.__import__ is usual
    assert [each.__name__ for each in seen] == ["colorsys", "colorsys"]
    assert "name" not in door  # it would be imported now


def test_an_error_in_a_door_leaves_imports_as_they_were() -> None:
    usual = builtins.__import__
    with pytest.raises(ZeroDivisionError), imports_on_first_use({"__name__": "a_door", "__all__": []}):
        _ = 1 / 0
    assert builtins.__import__ is usual
