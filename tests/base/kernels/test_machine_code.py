"""Machine code that runs without numba gives what numba gives, bit for bit, and code that is damaged or for others is refused."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet._base.kernels import _machine_code as code
from tests.base.kernels.test_cache import COMPILING, make_package
from tests.soaking import wide

KERNELS = """
from typing import NamedTuple

import numpy as np

from discreet._base.kernels import kernel


class Pair(NamedTuple):
    number: int
    values: np.ndarray


@kernel()
def all_kinds(pair, numbers, factor, flag, word):
    total = np.zeros(numbers.size)
    for place in range(numbers.size):
        total[place] = pair.values[place] * factor + numbers[place] / 3.0 + pair.number
    return total, np.sqrt(total[0]), word >> np.uint64(1), 3 if flag else 4


@kernel(nogil=True)
def fill(numbers):
    for place in range(numbers.size):
        numbers[place] = place


@kernel()
def same(numbers):
    return numbers


@kernel()
def divide(one, other):
    return one // other


@kernel()
def is_large(number):
    return number > 10


@kernel()
def widths(numbers):
    return numbers.shape


@kernel()
def count_and_refuse(numbers):
    numbers[0] += 1
    if numbers[0] < 2:
        raise ValueError("too small", 2)
    return numbers[0]


@kernel()
def twice(size):
    made = np.zeros(size, dtype=np.int64)
    made[0] = size
    return made, made, made[1:]
"""
CALLS = """
import sys
import numpy as np
from discreet.own import *

values = np.random.default_rng(1).random(1000)
numbers = np.arange(1000, dtype=np.uint32)
found = all_kinds(Pair(-5, values), numbers[:500], 0.1, True, np.uint64(2**64 - 1))
print(found[0].tobytes().hex(), found[0].dtype, *found[1:])
print(all_kinds(Pair(7, values[::2]), numbers[::3], -0.0, False, np.uint64(3))[0].tobytes().hex())
print(all_kinds(Pair(7, np.ones(1)), numbers[1:2], 2.0, False, np.uint64(3)))
print(fill(numbers[2:4]), numbers[:6])
kept = same(numbers)
kept[0] = 77
one, two, rest = twice(30)
one[1] = 5
del one
print(two[:3], rest[:3], twice(4)[1], len(twice(1)[2]))
del two
print(rest.sum(), np.zeros(29, dtype=np.int64).sum())
print(numbers[0], len(same(numbers[:0])), divide(-7, 2), is_large(11), is_large(np.int64(3)), widths(numbers))
spent = np.zeros(1)
try:
    count_and_refuse(spent)
except ValueError as error:
    print(error.args, spent)
try:
    divide(1, 0)
except ZeroDivisionError:
    print("it raises")
print("numba" in sys.modules, file=sys.stderr)
"""  # what is returned without a copy is the array itself; what raises has changed its arguments once


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A package with kernels of its own, and what they say by numba."""
    package = make_package(tmp_path_factory.mktemp("compiled"))
    (package / "own.py").write_text(KERNELS)
    said, errors = run(package, CALLS)
    assert COMPILING in errors
    return package, said


def run(package: Path, program: str, **environment: str) -> tuple[str, str]:
    given = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "DISCREET_CACHE": "",
        "NUMBA_CACHE_DIR": "",
        **environment,
    }
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.slow
def test_results_are_those_of_numba(compiled: tuple[Path, str]) -> None:
    package, said = compiled
    assert run(package, CALLS) == (said, "False\n")


@pytest.mark.slow
def test_lost_code_is_made_from_what_numba_stored(compiled: tuple[Path, str], tmp_path: Path) -> None:
    package = Path(shutil.copytree(compiled[0], tmp_path / "copied" / "discreet"))
    for file in (package / "__pycache__" / "kernels").rglob("*.code"):
        file.unlink()
    assert run(package, CALLS) == (compiled[1], "True\n")  # nothing is compiled
    assert run(package, CALLS) == (compiled[1], "False\n")


@pytest.mark.slow
@pytest.mark.soak
def test_machine_code_is_for_one_processor_and_one_setting(compiled: tuple[Path, str]) -> None:
    package, said = compiled
    assert run(package, CALLS, NUMBA_OPT="1")[0] == said
    assert "True" in run(package, CALLS, NUMBA_CPU_NAME="generic")[1]


@pytest.mark.slow
@pytest.mark.parametrize("spoiled", wide(["cut off", "one bit", "of another function", "empty"], ["one bit"]))
def test_spoiled_code_is_compiled_anew(compiled: tuple[Path, str], tmp_path: Path, spoiled: str) -> None:
    package = Path(shutil.copytree(compiled[0], tmp_path / "copied" / "discreet"))
    files = sorted((package / "__pycache__" / "kernels").rglob("*.code"))
    other = files[-1].read_bytes()
    for file in files[:-1]:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        new = {"cut off": content[:-100], "one bit": content, "of another function": other, "empty": b""}
        file.write_bytes(bytes(new[spoiled]))
    said, errors = run(package, CALLS)
    assert said == compiled[1]
    assert COMPILING in errors
    assert run(package, CALLS) == (said, "False\n")


PLACES = """
from typing import NamedTuple

from discreet._base.kernels import kernel
from discreet.fields import Plan

OFFSET = 1


@kernel()
def first_field(plan):
    return plan.lower


@kernel()
def with_offset(number):
    return number + OFFSET
"""
FIELDS = """
from typing import NamedTuple


class Plan(NamedTuple):
    {}: int
    {}: int
"""


@pytest.mark.slow
def test_code_is_made_anew_when_fields_change_places_and_not_kept_with_a_changed_constant(tmp_path: Path) -> None:
    """Kernels know the fields of a plan by their places, and constants by their values."""
    package = make_package(tmp_path)
    (package / "places.py").write_text(PLACES)
    ask = "from discreet.places import *; print(first_field(Plan(lower=1, upper=2)))"
    for order in (("lower", "upper"), ("upper", "lower")):
        (package / "fields.py").write_text(FIELDS.format(*order))
        assert [run(package, ask)[0] for _ in range(2)] == ["1\n", "1\n"]
    changed = "from discreet import places as p; p.first_field(p.Plan(1, 2)); p.OFFSET = 7; print(p.with_offset(1))"
    assert run(package, changed)[0] == "8\n"
    assert run(package, "from discreet.places import *; print(with_offset(1))")[0] == "2\n"


def test_kinds_that_machine_code_does_not_take() -> None:
    records = np.zeros(2, dtype=np.dtype([("a", "i8"), ("b", "i8")], align=True))
    for value in ("text", None, [1], 1j, 1 << 64, -(1 << 63) - 1, records, np.ma.masked_array([1.0], [True])):
        with pytest.raises(code.UnstorableError):
            code.argument_kinds_text((value,))


def test_bytes_that_are_no_code() -> None:
    for stored in (b"", b"x" * 100):
        with pytest.raises(ValueError, match="damaged"):
            code.MachineCode(stored, "int64")
