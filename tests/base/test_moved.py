"""Modules that have moved are found by their old names, with a warning, and are the same modules."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import scipy.stats

from discreet import Band, Cells, DensityBand, LaplaceMixtures, LinearSampler, MollifierSampler, OptimalSampler
from discreet._base.doors import MOVED, OldName, new_name
from discreet.tables import Request

PROGRAM = """
import importlib, sys, warnings
import discreet as dc
old, new = sys.argv[1:]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = importlib.import_module(old)
assert found is importlib.import_module(new)
assert found.__name__ == found.__spec__.name == new
assert {w.category for w in caught if old in str(w.message)} == {FutureWarning}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    assert getattr(dc, old.split(".")[1]) is not None
"""


@pytest.mark.parametrize("old", [*MOVED, "discreet.engines.spark", "discreet.engines.warm_up"])
def test_an_old_name_gives_the_module_itself(old: str) -> None:
    new = new_name(old)
    assert new is not None
    subprocess.run([sys.executable, "-W", "ignore::FutureWarning", "-c", PROGRAM, old, new], check=True)


def test_an_old_module_still_runs_as_a_command() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "discreet.engines.warm_up"], check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert "discreet.engines.warm_up is now discreet.tables.warm_up" in found.stderr


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        __import__("discreet.enginesque")
    with pytest.warns(FutureWarning, match="discreet.tables"), pytest.raises(ModuleNotFoundError):
        __import__("discreet.engines.nothing_here")
    assert new_name("discreet.families") is None


def test_an_old_name_of_a_method_works_and_warns() -> None:
    class Thing:
        def new(self) -> int:
            return 3

        older = OldName("new")

    with pytest.warns(FutureWarning, match="Thing.older is now new"):
        assert Thing().older() == 3
    assert isinstance(Thing.older, OldName)


LINE = LaplaceMixtures(dim=1, scale=1.0, radius=1.0)
OLD_KEYWORDS: dict[str, tuple[Callable[..., Any], dict[str, Any], str, str, Any]] = {
    "sampler": (partial(OptimalSampler, LINE, epsilon=1.0), {}, "how", "discretisation", Cells(50)),
    "linear": (partial(LinearSampler, LINE, epsilon=1.0), {}, "how", "discretisation", Cells(50)),
    "mollifier": (partial(MollifierSampler, LINE, epsilon=1.0), {}, "how", "discretisation", Cells(50)),
    "band": (partial(Band, [2.0, 1.0]), {"lower": 0.0, "upper": 1.4}, "everybody", "any_client", True),
    "density": (
        partial(DensityBand, scipy.stats.uniform()), {"lower": 0.0, "upper": 2.0}, "everybody", "any_client", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", OLD_KEYWORDS)
def test_an_old_keyword_and_its_attribute_work_and_warn(which: str) -> None:
    make, terms, old, new, value = OLD_KEYWORDS[which]
    present = make(**terms, **{new: value})
    with pytest.warns(FutureWarning, match=f"the keyword {old}= is now {new}="):
        former = make(**terms, **{old: value})
    assert repr(former) == repr(present)
    with pytest.warns(FutureWarning, match=f"{old} is now {new}"):
        assert getattr(former, old) == getattr(present, new) == value
    with pytest.raises(TypeError, match=f"{old}= is the old name of {new}="):
        make(**terms, **{old: value, new: value})


def test_a_request_knows_its_goal_by_the_old_name() -> None:
    old_terms: dict[str, Any] = {"serve": "clients"}
    with pytest.warns(FutureWarning, match="serve= is now goal="):
        request = Request(client="who", value="what", domain=3, epsilon=1.0, **old_terms)
    assert request.mechanism == "optimal"
