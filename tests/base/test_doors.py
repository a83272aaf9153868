"""Doors of rooms: names load on first use, in any thread and after a fork; nothing else is affected while a door notes its imports."""

import builtins
import importlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import discreet
from discreet._base import imports_on_first_use
from discreet.errors import MissingExtraError

DOOR = """
from discreet._base import imports_on_first_use, getattr_for_old_names

with imports_on_first_use(globals(), extra="cli"):
    from {room}._heavy import VALUE, slow_function as slow_function
    from {room}._broken import broken
    from {room}._needy import needed
    from {room}._shapes import Shape as Shape

__all__ = ["VALUE"]
__getattr__ = getattr_for_old_names(__name__, {{"OLD": "VALUE"}})
"""

SHAPES = """
class Shape:
    SIDES = 4

def count_sides(shape):
    return shape.SIDES
"""
SORTING = """
from discreet._base import placeholders_until_used

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
    (folder / "_broken.py").write_text("import math\n\nbroken = math.nothing_of_this_name\n")
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
    for missing in ("nothing", "_hidden", "public.LETTER", "nothing.at.all", ""):
        with pytest.raises(AttributeError, match=f"no attribute '{missing}'"):
            getattr(room, missing)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(room: ModuleType) -> None:
    with pytest.raises(MissingExtraError, match="a_package_that_nobody_has"):
        _ = room.needed


def test_an_error_inside_a_module_is_not_hidden(room: ModuleType) -> None:
    """An AttributeError would mean that the door has no such name, and `hasattr` would hide it."""
    with pytest.raises(ImportError, match=r"room_of_a_test.broken cannot be imported: .*nothing_of_this_name") as found:
        hasattr(room, "broken")
    assert not isinstance(found.value, MissingExtraError)


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


def test_design_is_the_function_beside_a_room_of_that_name_and_can_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    room, function = importlib.import_module("discreet.design"), discreet.design
    assert function is room.design
    with monkeypatch.context() as patched:
        patched.setattr(discreet, "design", "another")
        assert vars(discreet)["design"] == "another"
    assert discreet.design is function


THREADS = """
import importlib, sys, threading

sys.setswitchinterval(1e-4)
uses = ["OptimalSampler", "Simplex", "divergence", "Pure", "BudgetError", "design", "errors", "audit", "domain",
        "@errors", "@families", "@privacy", "@design", "@tables", "@audit", "@projection._box", "@research.data"]
together, problems = threading.Barrier(len(uses)), []

def use(name):
    together.wait()
    try:
        if name.startswith("@"):
            importlib.import_module("discreet." + name[1:])
        else:
            import discreet
            getattr(discreet, name)
    except BaseException as problem:
        problems.append(f"{name}: {problem!r}")

threads = [threading.Thread(target=use, args=(name,), daemon=True) for name in uses]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(*problems, *[thread.is_alive() for thread in threads if thread.is_alive()])
"""


def test_threads_may_import_different_parts_at_once() -> None:
    for _ in range(3):
        assert said_by(THREADS) == []


FORK = """
import os, sys, threading, time
import discreet
from discreet._base import imports_on_first_use

def hold_door(begun):
    with imports_on_first_use({"__name__": "a_door", "__all__": []}):
        begun.set()
        time.sleep(3600)

def use_slow_name(begun):
    begun.set()
    import slow_room
    slow_room.name

def import_for_ever(begun):
    begun.set()
    import discreet.endless

discreet.__path__.append(sys.path[-1])
os.environ["PARENT"] = str(os.getpid())
begun = threading.Event()
threading.Thread(target=WHAT, args=(begun,), daemon=True).start()
begun.wait()
time.sleep(0.2)
child = os.fork()
if child == 0:
    import signal
    signal.alarm(30)
    import discreet.families
    import discreet.endless
    import slow_room
    print(slow_room.name, discreet.Simplex(3).size, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


ENDLESS = "import os, time\n\ntime.sleep(0 if os.environ['PARENT'] != str(os.getpid()) else 3600)\n"


@pytest.mark.parametrize("other_thread", ["hold_door", "use_slow_name", "import_for_ever"])
def test_a_child_imports_what_another_thread_was_importing(other_thread: str, tmp_path: Path) -> None:
    room = tmp_path / "slow_room"
    room.mkdir()
    (room / "__init__.py").write_text(
        DOOR.split("    from")[0] + "    from slow_room._slow import name\n\n__all__ = []\n"
    )
    (room / "_slow.py").write_text("import time\n\ntime.sleep(1)\nname = 7\n")
    (tmp_path / "endless.py").write_text(ENDLESS)
    program = f"import sys; sys.path.append({str(tmp_path)!r})\n" + FORK.replace("WHAT", other_thread)
    assert said_by(program) == ["7", "3", "0"]


def said_by(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()
