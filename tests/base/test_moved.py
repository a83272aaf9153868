"""Modules that have moved are found by their old names, with a warning, and are the same modules."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.stats

import discreet as dc
from discreet import (
    Band,
    Cells,
    DensityBand,
    LaplaceMixtures,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    estimation,
)
from discreet._base import MOVED, OldName, moved_module_name
from discreet.accounting import BoxProfile, Odometer
from discreet.audit import certificate
from discreet.mechanisms import Multisets
from discreet.tables import Request, Secret
from tests.soaking import wide

PROGRAM = """
import importlib, os, sys, warnings
import numpy, polars, pyarrow, scipy.stats  # once for all
for old, new in zip(sys.argv[1::2], sys.argv[2::2]):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, old
        continue
    import discreet as dc
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = importlib.import_module(old)
    assert found is importlib.import_module(new)
    assert found.__name__ == found.__spec__.name == new
    assert {w.category for w in caught if old in str(w.message)} == {FutureWarning}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert getattr(dc, old.split(".")[1]) is not None
    break
"""


@pytest.mark.slow
def test_an_old_name_gives_the_module_itself() -> None:
    """Each in a process of its own, in which nothing of ours is imported yet."""
    moved = (*MOVED, "discreet.engines.spark", "discreet.engines.warm_up")
    names = [[old, moved_module_name(old)] for old in wide(moved, moved[::3])]
    assert all(new is not None for _, new in names)
    command = [sys.executable, "-W", "ignore::FutureWarning", "-c", PROGRAM]
    subprocess.run([*command, *(str(name) for pair in names for name in pair)], check=True)


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
    assert moved_module_name("discreet.families") is None


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


TWO = dc.OptimalSampler(dc.Simplex(2), epsilon=1.0)
AGREED = dc.Agreement.of(TWO, rounds=3)
REQUEST = Request(client="who", value="what", domain=3, epsilon=1.0)
RENAMED: dict[str, tuple[Any, str, str, tuple[Any, ...]]] = {
    "sampler": (TWO, "several", "with_samples", (3,)),
    "joint": (TWO.with_samples(3), "each", "output_of_each", ([0.5, 0.5],)),
    "composed": (dc.LinearSampler(dc.Simplex(2), epsilon=1.0).with_samples(2), "each", "output_of_each", ([0.5, 0.5],)),
    "multisets": (Multisets(2, 2), "each", "marginals", (np.array([[0.25, 0.5, 0.25]]),)),
    "lattice": (TWO.lattice, "keeps", "keeps_privacy", (dc.Pure(1.0),)),
    "lattice of": (type(TWO.lattice), "keeping", "for_privacy", (TWO.box, dc.Pure(1.0))),
    "certificate": (certificate(TWO), "possible", "largest_epsilon", ()),
    "agreement": (AGREED, "together", "privacy_of_all_rounds", ()),
    "odometer": (Odometer(delta=1e-6), "after", "with_releases", (BoxProfile(epsilon=0.5, alpha=0.1),)),
    "request": (REQUEST, "under", "with_secret", (Secret(bytes(32)),)),
    "ways": (estimation, "ways", "ways_to_spend", ()),
}


@pytest.mark.parametrize("which", RENAMED)
def test_a_former_name_works_and_warns(which: str) -> None:
    owner, old, new, given = RENAMED[which]
    with pytest.warns(FutureWarning, match=f"{old} is now {new}"):
        former = getattr(owner, old)
    present = getattr(owner, new)
    if callable(present) and given:
        former, present = former(*given), present(*given)
    assert repr(former) == repr(present)
