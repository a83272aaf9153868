"""The mechanisms by name, and the mechanism for each goal (population or clients), for agreements, tables and commands.

The mechanisms by their own names, and by whom samples are to serve: the one table of them, for agreements, tables and commands.

To estimate the population take linear: its samples give every share back without bias. Where nothing but the population matters, reports give
the same shares from fewer clients (`population_mechanism`). To have each sample look like its own client
take optimal, which is at least as close to every client; the samples then tell a share of the population only up to a range
(`discreet.estimation._inversion`). Most tables are sampled to learn about all of their clients, so that is what is meant unless said.
"""

from typing import Any, TypeVar

from discreet.errors import DiscreetError
from discreet.families import Simplex, check_family
from discreet.mechanisms._cells_and_points import Discretisation
from discreet.mechanisms._linear import LinearSampler
from discreet.mechanisms._mollifier import MollifierSampler
from discreet.mechanisms._optimal import OptimalSampler
from discreet.mechanisms._report_blocks import LARGEST_TABLE
from discreet.mechanisms._report_sampler import ReportSampler
from discreet.mechanisms._sampler import AnyFamily, Sampler
from discreet.privacy import Privacy, Pure

F = TypeVar("F", bound=AnyFamily)

MECHANISMS: dict[str, type[Sampler[Any]]] = {
    kind.name: kind for kind in (OptimalSampler, LinearSampler, MollifierSampler)
}

MECHANISM_NAMES = (*MECHANISMS, ReportSampler.name)  # reports are no samples, so theirs is no `Sampler`

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
    if goal == "population" and mechanism == ReportSampler.name:
        return mechanism
    if mechanism not in (None, SERVED[goal]):
        raise DiscreetError(
            f"goal = {goal!r} (--for) takes the mechanism {SERVED[goal]!r}, not {mechanism!r}; leave one of the two out"
        )
    return SERVED[goal]


def population_mechanism(family: AnyFamily, privacy: Privacy) -> str:
    """The mechanism from which a population's shares are known with the fewest clients: "reports" where their variance is smaller.

    Values stay where k-ary randomised response is as good, on families that are no `Simplex`, under notions other than pure epsilon, and
    where the blocks have more points than can be counted in memory.

    Args:
        family: who the clients may be.
        privacy: what one release promises.

    Returns:
        "reports" or "linear".

    Raises:
        DiscreetError: for an argument that is not a family, or not a notion of privacy.
    """
    check_family(family)
    if not isinstance(privacy, Privacy):
        raise DiscreetError(f"privacy = {privacy!r} is not a notion of privacy; pass Pure(epsilon)")
    if not isinstance(family, Simplex) or not isinstance(privacy, Pure):
        return LinearSampler.name
    try:
        reports = ReportSampler(family, privacy=privacy)
    except DiscreetError:  # of an epsilon at which no report says anything
        return LinearSampler.name
    smaller = reports.variance() < reports.by_values().variance()
    return ReportSampler.name if smaller and reports.blocks.points <= LARGEST_TABLE else LinearSampler.name


def check_mechanism(name: Any, argument: str = "mechanism") -> str:
    """The name of a mechanism; anything else is refused, with the names there are.

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
    if check_mechanism(name) == ReportSampler.name:
        raise DiscreetError(f"mechanism = {name!r} releases no samples; use ReportSampler(family, epsilon=...)")
    kind = MECHANISMS[name]
    if reference is None:
        return kind(family, epsilon=epsilon, discretisation=discretisation, privacy=privacy)
    if kind is not MollifierSampler:
        raise DiscreetError(f"mechanism = {name!r} has no reference of its own, only {MollifierSampler.name} has")
    return MollifierSampler(
        family, epsilon=epsilon, discretisation=discretisation, privacy=privacy, reference=reference
    )
