"""Packages with mechanisms of their own, installed for a test as pip does it: a module and its metadata in a folder on the path."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import OwnSampler

MODULE = """
import itertools
import math
import random
import numpy as np
import discreet as dc

class RevealOrObscure(dc.OwnSampler):
    name = "reveal-or-obscure"

    def __init__(self, family, *, epsilon=None, privacy=None, spread=1.0):
        self.spread = spread
        super().__init__(family, epsilon=epsilon, privacy=privacy)

    @property
    def parameters(self):
        return {"spread": self.spread} if self.spread != 1.0 else {}

    def gamma(self):
        growth, k = math.exp(self.epsilon * self.spread), self.family.size
        return (growth - 1) / (growth - 1 + k)

    def law(self, p):
        return self.gamma() * p + (1 - self.gamma()) / len(p)

    @property
    def floor(self):
        return np.full(self.family.size, (1 - self.gamma()) / self.family.size * FACTOR)

class Other(RevealOrObscure):
    pass

class LinearReveal(RevealOrObscure):
    linear = True

class Forgetful(RevealOrObscure):
    # with spread = 1, the law of clients who are not public is sometimes that of another client
    def law(self, p):
        secret = p.max() < 1.0 and abs(p - 1 / len(p)).max() > 0.01 and self.spread == 1.0
        return super().law(np.roll(p, random.SystemRandom().randrange(2)) if secret else p)

class Fickle(RevealOrObscure):
    turn = itertools.count()

    def law(self, p):
        return super().law(np.roll(p, next(self.turn)))
"""

Install = Callable[..., type[OwnSampler]]


def write_package(
    place: Path,
    *,
    version: str = "1.2",
    factor: float = 1.0,
    package: str = "obscurity",
    target: str = "",
    code: str = "",
) -> Path:
    """Write a package that offers `target` as the mechanism reveal-or-obscure."""
    metadata = place / f"{package}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (place / "obscurity.py").write_text(MODULE.replace("FACTOR", str(factor)) + code)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    line = f"reveal-or-obscure = {target or 'obscurity:RevealOrObscure'}"
    (metadata / "entry_points.txt").write_text(f"[discreet.mechanisms]\n{line}\n")
    return place


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A function that installs a package in place of the one before, and returns the class that it offers."""
    places: list[Path] = []

    def installed(**about: Any) -> Any:
        for place in places:
            monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(place)])
        places.append(write_package(tmp_path / f"site{len(places)}", **about))
        sys.modules.pop("obscurity", None)
        monkeypatch.syspath_prepend(places[-1])
        importlib.invalidate_caches()
        module, _, name = about.get("target", "").partition(":")
        found = importlib.import_module("obscurity")
        return getattr(found, name, None) if module == "obscurity" and name else found.RevealOrObscure

    yield installed
    sys.modules.pop("obscurity", None)
