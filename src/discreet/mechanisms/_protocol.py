"""`Mechanism`, what pictures, comparisons and audits need to know of any mechanism; and the mechanisms that installed packages offer.

A package offers a class of `OwnSampler` under the entry points `discreet.mechanisms`. An agreement names the package and its version.
Whether these are installed is decided by metadata alone: code of another package or version is never loaded for an agreement.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from discreet.errors import DiscreetError
from discreet.mechanisms._own import OwnSampler
from discreet.privacy import Privacy

ENTRY_POINTS = "discreet.mechanisms"


@runtime_checkable
class Mechanism(Protocol):
    """What pictures, comparisons and the black-box audit need to know of a mechanism. Every sampler here is one.

    A class of your own needs these five names and no base class. Nothing is claimed about its privacy: `privacy` is the claim, and
    `black_box_audit` tries to refute it.
    """

    @property
    def name(self) -> str:
        """A short name for legends and tables."""

    @property
    def family(self) -> Any:
        """The family of client distributions."""

    @property
    def privacy(self) -> Privacy:
        """The privacy that one release claims."""

    def output(self, p: Any, /) -> Any:
        """The output distributions (..., k) of clients with distributions (..., k)."""

    def release(self, p: Any, /, *, rng: np.random.Generator | None = None) -> Any:
        """One sample for each client."""


def check_protocol(mechanism: object, argument: str = "mechanism") -> None:
    """Reject an object without one of the five names of a `Mechanism`."""
    if isinstance(mechanism, type):
        raise DiscreetError(f"{argument} = {mechanism!r} is a class; pass an instance")
    missing = [name for name in ("name", "family", "privacy", "output", "release") if not hasattr(mechanism, name)]
    if missing:
        raise DiscreetError(
            f"{argument} = {mechanism!r} has no {' and no '.join(missing)}; a mechanism has name, family, privacy, output(p) and "
            "release(p, rng=...)"
        )


class InstalledMechanism(NamedTuple):
    """A mechanism that an installed package offers: the class, and where it comes from."""

    kind: type[OwnSampler]
    package: str
    version: str


BUILT_IN: dict[str, InstalledMechanism] = {}  # of this package; the versions are those of the mechanisms


def installed_mechanism(name: str, agreed: tuple[str, str] | None = None) -> InstalledMechanism:
    """The mechanism of that name that an installed package offers under the entry points `discreet.mechanisms`.

    Args:
        name: of the entry point, and of the class.
        agreed: the package and the version that were agreed on, if any. Another one is refused, and its code is not loaded.

    Returns:
        The class, and the package with its version.

    Raises:
        DiscreetError: if there is none, or several, or another package or version, or if it is not an `OwnSampler` of that name.
    """
    if name in BUILT_IN:
        _check_agreed(name, BUILT_IN[name][1:], agreed)
        return BUILT_IN[name]
    found: list[EntryPoint] = [each for each in entry_points(group=ENTRY_POINTS) if each.name == name]
    if len({(each.value, each.dist and each.dist.name) for each in found}) != 1 or found[0].dist is None:
        packages = ", ".join(sorted({each.dist.name for each in found if each.dist is not None}))
        if found:
            raise DiscreetError(f"several packages offer the mechanism {name!r} ({packages}); keep one of them")
        fix = (
            f'one does by [project.entry-points."{ENTRY_POINTS}"] in its pyproject.toml: {name} = "module:Class"'
            if agreed is None
            else f"install {agreed[0]}=={agreed[1]}"
        )
        raise DiscreetError(f"no installed package offers the mechanism {name!r}; {fix}")
    point = found[0]
    assert point.dist is not None
    _check_agreed(name, (point.dist.name, point.dist.version), agreed)
    try:
        kind = point.load()
    except Exception as error:  # somebody's module may raise anything while it is imported
        raise DiscreetError(
            f"mechanism {name!r} of the package {point.dist.name} cannot be loaded: {type(error).__name__}: {error}"
        ) from None
    if not isinstance(kind, type) or not issubclass(kind, OwnSampler) or kind.name != name:
        raise DiscreetError(
            f"entry point {name!r} of the package {point.dist.name} is {kind!r}, not a class of OwnSampler with name = {name!r}; name the "
            "class itself: its `parameters` are stated by agreements"
        )
    return InstalledMechanism(kind, point.dist.name, point.dist.version)


def _check_agreed(name: str, here: tuple[str, ...], agreed: tuple[str, str] | None) -> None:
    if agreed is not None and here != agreed:
        raise DiscreetError(
            f"mechanism {name!r} was agreed on as that of {' '.join(agreed)}, and {' '.join(here)} is installed; install {'=='.join(agreed)}"
        )
