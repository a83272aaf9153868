"""What a design is made for when all there is are some examples of the clients: rules that see the examples alone.

Examples leave things out. So a part of the weight goes to **redrawn** examples: each keeps how its mass is divided, and gives the
shares to outcomes drawn anew, as popular as they are among the examples; and a part to the k point masses. How large these parts are is
decided by cross-validation on the examples alone; and where those that were held back do not say, by more than one standard error, that
the design serves them better than the better of Q* and the best uniform floor, that one stays.

**Fewer examples than e^eps** cannot judge each other. An outcome deserves the largest floor there is, e^-eps, as soon as one client in
e^eps / P(a client does not hold it) is sure of it, and what one client in e^eps does is not seen among fewer. (A client who is sure of x
pays -log(e^eps m_x); a smaller m_x saves those who do not hold x as much as it is smaller, so the best e^eps m_x is the least of 1 and
e^eps P(sure of x)/P(x is not held).) There a model speaks instead of the examples: nearly all of the weight goes to redrawn ones,
of whom those that are sure of one outcome are not drawn but counted, each outcome by its popularity, a twelfth of which is spread
evenly; every point mass weighs a sixteenth of what would give its outcome the largest floor. And since no example could tell
whether the model is right, an outcome's floor is halfway between the model's and four times what the largest share seen would need, up
to the largest there is, where that is more: the mean is convex in the floor, so half the way has at least half of the gain, or at most
half of the loss. A design by parts takes its place where examples that were held back say so after all: by two standard errors of
mean KL, TV and squared Hellinger alike, ten of them or more paying 0.1 in KL for it, since a mean to which nobody rare has contributed
has too small a standard error.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.design import Design, design
from discreet.design._floors import band_of
from discreet.divergences import divergence
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import OptimalSampler
from discreet.mechanisms._sampler import Sampler
from discreet.research.experiments._costs import DIVERGENCES

Floats = NDArray[np.float64]

PARTS = (
    (0.01, 0.0),
    (0.1, 0.0),
    (0.3, 0.0),
    (0.1, 0.001),
    (0.1, 0.003),
)  # of the weight: redrawn examples, point masses
FOLDS = 3
ENOUGH = 1000  # redrawn examples, or as many as there are examples
SPREADS = 25
KEEP = 0.001
MODEL = 0.95  # of the weight: redrawn examples, where examples are too few to judge
STRAY = 0.08  # of their popularity is spread evenly
ANYBODY = 1.0 / 16.0  # a point mass's weight, as a share of the largest weight that matters
MARGIN = 4.0  # times the largest share of an outcome that an example has
HALF = 0.5
SURELY = 2.0  # standard errors
SURE = 1.0 - 1e-9
SEEN, PAYING = 10, 0.1  # examples that pay so much more, past which a standard error is to be believed


def redrawn(examples: Floats, rng: np.random.Generator) -> Floats:
    """Clients with the masses of the examples, on outcomes drawn without replacement by their popularity (and half a client more)."""
    return _moved(examples, examples.sum(axis=0) + 0.5, rng)


def _moved(examples: Floats, popularity: Floats, rng: np.random.Generator) -> Floats:
    n, k = examples.shape
    masses = -np.sort(-examples, axis=1)
    found = np.zeros((-(-ENOUGH // n), n, k))
    for copy in found:
        order = np.argsort(rng.exponential(size=(n, k)) / popularity, axis=1)
        np.put_along_axis(copy, order, masses, axis=1)
    return found.reshape(-1, k)


def designed(examples: Floats, epsilon: float, keep: float, parts: tuple[float, float]) -> Design:
    """The KL design for examples among which redrawn ones and the k point masses have those parts of the weight."""
    k = examples.shape[1]
    groups = (examples, redrawn(examples, np.random.default_rng(0)), np.eye(k))
    shares = np.array([1.0 - sum(parts), *parts])
    weights = np.concatenate(
        [np.full(len(group), share / len(group)) for group, share in zip(groups, shares, strict=True)]
    )
    return design(Simplex(k), epsilon=epsilon, clients=np.vstack(groups), weights=weights, keep=keep)


def modelled(examples: Floats, epsilon: float, keep: float) -> Design:
    """The KL design for the model that speaks instead of examples which are too few."""
    n, k = examples.shape
    popularity = (1.0 - STRAY) * examples.mean(axis=0) + STRAY / k
    sure = examples.max(axis=1) >= SURE
    others = examples[~sure]
    drawn = _moved(others, popularity, np.random.default_rng(0)) if len(others) else others
    point = ANYBODY * math.exp(-epsilon)
    groups = (examples, drawn, np.eye(k))
    weights = (
        np.full(n, (1.0 - MODEL) / n),
        np.full(len(drawn), MODEL * len(others) / n / max(len(drawn), 1)),
        MODEL * sure.mean() * popularity + point,
    )
    return design(Simplex(k), epsilon=epsilon, clients=np.vstack(groups), weights=np.concatenate(weights), keep=keep)


def best_uniform(examples: Floats, epsilon: float) -> Sampler[FiniteFamily]:
    """The uniform floor with the smallest mean KL over the examples."""
    family = Simplex(examples.shape[1])
    spreads = np.exp(np.linspace(0.0, math.log(0.999 * family.size), SPREADS))
    samplers = [OptimalSampler(family.spread(float(s)), epsilon=epsilon) for s in spreads]
    return min(samplers, key=lambda sampler: float(costs(examples, sampler, ["kl"])["kl"].mean()))


def costs(clients: Floats, sampler: Sampler[FiniteFamily], names: Sequence[str] = DIVERGENCES) -> dict[str, Floats]:
    """The divergences of every client."""
    q = sampler.output(clients)
    return {name: np.asarray(divergence(name)(clients, q)) for name in names}


def chosen(
    examples: Floats, epsilon: float, keep: float = KEEP
) -> tuple[tuple[float, ...] | None, Sampler[FiniteFamily]]:
    """The sampler that the examples speak for, and how its weight was divided; None where Q* or a uniform floor stays.

    The parts are (redrawn examples, point masses); with fewer examples than e^eps also the share of the safe floor.
    """
    return _cautious(examples, epsilon, keep) if len(examples) < math.exp(epsilon) else _judged(examples, epsilon, keep)


def _judged(examples: Floats, epsilon: float, keep: float) -> tuple[tuple[float, ...] | None, Sampler[FiniteFamily]]:
    optimal = OptimalSampler(Simplex(examples.shape[1]), epsilon=epsilon)
    safe: tuple[Callable[[Floats], Sampler[FiniteFamily]], ...] = (
        lambda clients: optimal,
        lambda clients: best_uniform(clients, epsilon),
    )
    cautious = [_held_back(examples, made)["kl"] for made in safe]
    bold = {
        parts: _held_back(examples, partial(_sampler, epsilon=epsilon, keep=keep, parts=parts))["kl"] for parts in PARTS
    }
    best = min(bold, key=lambda one: float(bold[one].mean()))
    stay = min(range(len(safe)), key=lambda one: float(cautious[one].mean()))
    gain = cautious[stay] - bold[best]
    if gain.mean() <= gain.std() / math.sqrt(len(examples)):
        return None, safe[stay](examples)
    return best, designed(examples, epsilon, keep, best).sampler


def _cautious(examples: Floats, epsilon: float, keep: float) -> tuple[tuple[float, ...] | None, Sampler[FiniteFamily]]:
    stands, trusted = _held_back(examples, partial(halfway, epsilon=epsilon, keep=keep)), {}
    for parts in PARTS:
        found = _held_back(examples, partial(_sampler, epsilon=epsilon, keep=keep, parts=parts))
        gains = [stands[f] - found[f] for f in DIVERGENCES]
        better = all(gain.mean() > SURELY * gain.std() / math.sqrt(len(examples)) for gain in gains)
        if better and np.count_nonzero(gains[0] < -PAYING) >= SEEN:
            trusted[parts] = float(found["kl"].mean())
    if trusted:
        best = min(trusted, key=lambda parts: trusted[parts])
        return best, designed(examples, epsilon, keep, best).sampler
    return (MODEL, examples.shape[1] * ANYBODY * math.exp(-epsilon), HALF), halfway(examples, epsilon, keep)


def halfway(examples: Floats, epsilon: float, keep: float) -> Sampler[FiniteFamily]:
    """The sampler of the floor halfway between the model's and `MARGIN` times the largest shares seen, where that is more."""
    outcomes, model = Simplex(examples.shape[1]), _floor(modelled(examples, epsilon, keep).sampler, epsilon)
    seen = np.minimum(1.0, MARGIN * examples.max(axis=0)) * _floor(OptimalSampler(outcomes, epsilon=epsilon), epsilon)
    floor = (1.0 - HALF) * model + HALF * np.maximum(model, seen)
    return OptimalSampler(band_of(floor, epsilon, outcomes), epsilon=epsilon)


def _sampler(clients: Floats, epsilon: float, keep: float, parts: tuple[float, float]) -> Sampler[FiniteFamily]:
    return designed(clients, epsilon, keep, parts).sampler


def _held_back(examples: Floats, made: Callable[[Floats], Sampler[FiniteFamily]]) -> dict[str, Floats]:
    """What every example would have cost under the sampler that the other folds make."""
    found = {name: np.zeros(len(examples)) for name in DIVERGENCES}
    for held in _folds(len(examples)):
        for name, score in costs(examples[held], made(np.delete(examples, held, axis=0))).items():
            found[name][held] = score
    return found


def _folds(number: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.random.default_rng(0).permutation(number), FOLDS)


def _floor(sampler: Sampler[FiniteFamily], epsilon: float) -> Floats:
    """m of a sampler whose family is a Simplex or a band with lower = 0 (`discreet.design._floors`)."""
    family = sampler.family
    total = 1.0 / (1.0 + math.expm1(epsilon) / family.bounds.upper)
    return np.asarray(total * np.broadcast_to(family.reference, family.size))
