"""The mechanisms by their own names: the one table of them, for agreements, tables and commands."""

from typing import Any, TypeVar

from discreet.errors import DiscreetError
from discreet.mechanisms.linear import LinearSampler
from discreet.mechanisms.mollifier import MollifierSampler
from discreet.mechanisms.optimal import OptimalSampler
from discreet.mechanisms.sampler import AnyFamily, Sampler

F = TypeVar("F", bound=AnyFamily)

MECHANISMS: dict[str, type[Sampler[Any]]] = {
    kind.name: kind for kind in (OptimalSampler, LinearSampler, MollifierSampler)
}


def check_mechanism(name: Any, argument: str = "mechanism") -> str:
    """The name of a mechanism; anything else is refused, with the names there are."""
    if not isinstance(name, str) or name not in MECHANISMS:
        raise DiscreetError(f"{argument} = {name!r} is not one of {', '.join(MECHANISMS)}")
    return name


def sampler_named(name: str, family: F, *, epsilon: float) -> Sampler[F]:
    """The sampler of that name."""
    return MECHANISMS[check_mechanism(name)](family, epsilon=epsilon)
