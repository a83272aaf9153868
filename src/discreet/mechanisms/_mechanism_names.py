"""The mechanisms by name: ours, those that installed packages offer, and `Mechanism`, what others need to know of any.

To estimate the population, take linear: its samples estimate every share without bias. Where only the population matters, reports give the
same shares from fewer clients (`population_mechanism`). To have each sample look like its own client, take optimal, which is at least as
close to every client. Its samples determine a share of the population only up to a range (`discreet.estimation._inference`). Most tables are
sampled to learn about all of their clients, so the population is the default goal.

A package offers a class of `OwnSampler` under the entry points `discreet.mechanisms`. An agreement names the package and its version.
Whether these are installed is decided by metadata alone: code of another package or version is never loaded for an agreement.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from discreet._base import placeholders_until_used
from discreet.errors import DiscreetError
from discreet.families import Simplex, refuse_non_family
from discreet.mechanisms._atoms import Discretisation
from discreet.mechanisms._optimal_linear_mollifier import LinearSampler, MollifierSampler, OptimalSampler
from discreet.mechanisms._sampler import AnyFamily, Sampler
from discreet.privacy import Privacy, Pure

with placeholders_until_used(globals()):
    from discreet.mechanisms._own import OwnSampler
    from discreet.mechanisms._reports import ReportSampler

F = TypeVar("F", bound=AnyFamily)
ENTRY_POINTS = "discreet.mechanisms"

MECHANISMS: dict[str, type[Sampler[Any]]] = {
    kind.name: kind for kind in (OptimalSampler, LinearSampler, MollifierSampler)
}

REPORTS_MECHANISM = "reports"  # the name of `ReportSampler`, which is no `Sampler`: reports are no samples
MECHANISM_NAMES = (*MECHANISMS, REPORTS_MECHANISM)

SERVED = {"population": LinearSampler.name, "clients": OptimalSampler.name}
SERVING: dict[str, type[Sampler[Any]]] = {name: MECHANISMS[name] for name in SERVED.values()}


def mechanism_for(goal: str | None, mechanism: str | None) -> str:
    """The mechanism for a goal, or the one named; that for the population if neither is given.

    Args:
        goal: "population", "clients" or None.
        mechanism: the name of a mechanism, or None.

    Returns:
        The name of a mechanism.

    Raises:
        DiscreetError: for an unknown word, or for two that contradict each other.
    """
    if mechanism is not None:
        check_mechanism(mechanism)
    if goal is None:
        return mechanism or SERVED["population"]
    if not isinstance(goal, str) or goal not in SERVED:
        raise DiscreetError(
            f"goal = {goal!r} (--for) is not one of {', '.join(SERVED)}: to estimate a population, or to serve each client"
        )
    if goal == "population" and mechanism == REPORTS_MECHANISM:
        return mechanism
    if mechanism not in (None, SERVED[goal]):
        raise DiscreetError(
            f"goal = {goal!r} (--for) takes the mechanism {SERVED[goal]!r}, not {mechanism!r}; leave one of the two out"
        )
    return SERVED[goal]


def population_mechanism(family: AnyFamily, privacy: Privacy) -> str:
    """Reports or linear samples, whichever estimates a population's shares with fewer clients: "reports" where their variance is smaller.

    Values stay where k-ary randomised response is as good, on families other than `Simplex`, under notions other than pure epsilon, and
    where the blocks have more points than can be counted in memory.

    Args:
        family: who the clients may be.
        privacy: what one release promises.

    Returns:
        "reports" or "linear".

    Raises:
        DiscreetError: for an argument that is not a family, or not a notion of privacy.
    """
    refuse_non_family(family)
    if not isinstance(privacy, Privacy):
        raise DiscreetError(f"privacy = {privacy!r} is not a notion of privacy; pass Pure(epsilon)")
    if not isinstance(family, Simplex) or not isinstance(privacy, Pure):
        return LinearSampler.name
    try:
        reports = ReportSampler(family, privacy=privacy)
    except DiscreetError:  # of an epsilon at which no report says anything
        return LinearSampler.name
    from discreet.mechanisms._reports import LARGEST_TABLE  # loaded with reports

    smaller = reports.variance() < reports.by_values().variance()
    return REPORTS_MECHANISM if smaller and reports.blocks.point_count <= LARGEST_TABLE else LinearSampler.name


def check_mechanism(name: Any, argument: str = "mechanism") -> str:
    """The name of a mechanism; anything else is an error that lists the names.

    Args:
        name: "linear", "optimal", "mollifier" or "reports".
        argument: what the error calls it.

    Returns:
        The name.

    Raises:
        DiscreetError: for any other name.
    """
    if not isinstance(name, str) or name not in MECHANISM_NAMES:
        raise DiscreetError(f"{argument} = {name!r} is not one of {', '.join(MECHANISM_NAMES)}")
    return name


def sampler_named(
    name: str,
    family: F,
    *,
    epsilon: float | None = None,
    discretisation: Discretisation | None = None,
    privacy: Privacy | None = None,
    reference: Any = None,
) -> Sampler[F]:
    """The sampler of that name.

    Args:
        name: "linear", "optimal" or "mollifier".
        family: who the clients may be.
        epsilon: the budget of one release.
        discretisation: how a continuous family is cut into cells or points.
        privacy: another notion in place of epsilon.
        reference: that of a mollifier, where it is not the family's own.

    Returns:
        The sampler.

    Raises:
        DiscreetError: for another name, and for what the sampler refuses.
    """
    if check_mechanism(name) == REPORTS_MECHANISM:
        raise DiscreetError(f"mechanism = {name!r} releases no samples; use ReportSampler(family, epsilon=...)")
    kind = MECHANISMS[name]
    if reference is None:
        return kind(family, epsilon=epsilon, discretisation=discretisation, privacy=privacy)
    if kind is not MollifierSampler:
        raise DiscreetError(f"mechanism = {name!r} has no reference of its own, only {MollifierSampler.name} has")
    return MollifierSampler(
        family, epsilon=epsilon, discretisation=discretisation, privacy=privacy, reference=reference
    )


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


def refuse_non_mechanism(mechanism: object, argument: str = "mechanism") -> None:
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
        _refuse_other_package_version(name, BUILT_IN[name][1:], agreed)
        return BUILT_IN[name]
    entries = [entry for entry in entry_points(group=ENTRY_POINTS) if entry.name == name]
    if len({(entry.value, entry.dist and entry.dist.name) for entry in entries}) != 1 or entries[0].dist is None:
        packages = ", ".join(sorted({entry.dist.name for entry in entries if entry.dist is not None}))
        if entries:
            raise DiscreetError(f"several packages offer the mechanism {name!r} ({packages}); keep one of them")
        fix = (
            f'one does by [project.entry-points."{ENTRY_POINTS}"] in its pyproject.toml: {name} = "module:Class"'
            if agreed is None
            else f"install {agreed[0]}=={agreed[1]}"
        )
        raise DiscreetError(f"no installed package offers the mechanism {name!r}; {fix}")
    point = entries[0]
    assert point.dist is not None
    _refuse_other_package_version(name, (point.dist.name, point.dist.version), agreed)
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


def _refuse_other_package_version(name: str, package_version: tuple[str, ...], agreed: tuple[str, str] | None) -> None:
    if agreed is not None and package_version != agreed:
        raise DiscreetError(
            f"mechanism {name!r} was agreed on as that of {' '.join(agreed)}, and {' '.join(package_version)} is installed; install "
            f"{'=='.join(agreed)}"
        )
