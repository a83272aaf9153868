"""`discreet plan --agreement`: what to expect of samples under an agreement that is there already, designed or not."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from discreet._showing import json_number, pluralise
from discreet._worst_case import risk_on_atoms
from discreet.agreement import Agreement
from discreet.cli import _terms_told as terms_told
from discreet.cli._printing import number, say, table, write_json
from discreet.domain import Domain
from discreet.errors import DiscreetError
from discreet.estimation._binning import bin_cells, line_of
from discreet.estimation._planning import outlook
from discreet.estimation._several import RoundsCost, rounds_cost
from discreet.estimation._simulation import rehearsal
from discreet.families import ContinuousFamily
from discreet.families._kinds import serves_everybody
from discreet.mechanisms._sampler import AnyFamily, Sampler

_DIVERGENCES = ("tv", "kl")


def agreed_sampler(path: Path) -> tuple[Domain, Sampler[AnyFamily], RoundsCost | None]:
    """The outcomes that samples of an agreement are counted as, on a continuous family its cells; its sampler; and what rounds cost."""
    agreement = Agreement.read(path)
    sampler = agreement.sampler()
    family = sampler.family
    domain = line_of(sampler) if isinstance(family, ContinuousFamily) else family.domain
    return domain, sampler, rounds_cost(agreement)


def print_agreed_plan(
    sampler: Sampler[AnyFamily],
    rounds: RoundsCost | None,
    clients: int,
    confidence: float,
    bins: int | None,
    laws: Any,
    seed: int,
    *,
    json: bool,
) -> None:
    """Print what one sample costs a client, how far intervals reach, and a rehearsal with the laws of examples, if there are any."""
    risks = {name: float(sampler.risk(name)) for name in _DIVERGENCES}
    on_atoms = _on_atoms(sampler)
    outcomes = _outcomes(sampler, clients, bins)
    look = outlook(sampler, mechanism=sampler.name, clients=clients, confidence=confidence, bins=bins)
    rehearsed = None
    if laws is not None:
        rehearsed = rehearsal(sampler, laws, clients=clients, seed=seed, confidence=confidence, bins=bins)
    if json:
        write_json({
            "epsilon": sampler.epsilon, "confidence": confidence, "outcomes": outcomes,
            "worst": {name: json_number(value) for name, value in risks.items()},
            "outlook": _numbers(look), "rehearsal": None if rehearsed is None else _numbers(rehearsed),
            **({} if on_atoms is None else {"worst_on_atoms": on_atoms}),
            **({} if rounds is None else {"rounds": {"rounds": rounds.rounds, "factor": rounds.factor}}),
        })  # fmt: skip
        return
    made = table("TV", "KL", "a share +-", "rare +-", "all at once +-", texts=0)
    made.add_row(*(number(x, 3) for x in (risks["tv"], risks["kl"], look.at_worst, look.if_rare, look.together)))
    what = "bin" if isinstance(sampler.family, ContinuousFamily) else "outcome"
    kind = terms_told.mechanism_text(sampler.name, everybody=serves_everybody(sampler.family))
    said: list[Any] = [
        f"[bold]{pluralise(clients, 'client')}, {pluralise(outcomes, what)}, "
        f"{terms_told.promise_text(sampler.privacy, sampler.epsilon)}[/bold], the agreed sampler, {kind}: one sample each.",
        made,
        "TV and KL: divergence of what a client holds from what its sample is drawn from, in the worst case. "
        f"+-: how far the {100 * confidence:g} % interval of a share reaches, whatever the population.",
        *([] if on_atoms is None else [_everybody(sampler, on_atoms)]),
        *([] if rounds is None else [f"[bold]Rounds[/bold]: {rounds}."]),
    ]
    if rehearsed is not None:
        practice = table("TV of a client", "share off by", "whole law off by", "intervals +-", "covered", texts=0)
        numbers = (rehearsed.client_tv, rehearsed.largest, rehearsed.total, rehearsed.width)
        practice.add_row(*(number(x, 3) for x in numbers), f"{100 * rehearsed.covered:.1f} %")
        said += [
            f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times; samples as they are.",
            practice,
        ]
    say(*said)


def _outcomes(sampler: Sampler[AnyFamily], clients: int, bins: int | None) -> int:
    """How many shares there are to know."""
    if isinstance(sampler.family, ContinuousFamily):
        return bin_cells(sampler, clients=clients, count=bins).bins.size
    if bins is not None:
        raise DiscreetError("--bins is for an agreement on a continuous family; the outcomes of this one are listed")
    return sampler.family.size


def _on_atoms(sampler: Sampler[AnyFamily]) -> dict[str, float] | None:
    """The worst cases over every law on the cells or points that a designed sampler on a line releases by; None for any other sampler."""
    if not isinstance(sampler.family, ContinuousFamily) or not sampler.family.everybody:
        return None
    least = float(np.min(sampler.reference))
    return {name: float(risk_on_atoms(sampler.constants, least, name)) for name in _DIVERGENCES}


def _everybody(sampler: Sampler[AnyFamily], worst: dict[str, float]) -> str:
    """What can be promised to everybody on a line."""
    atoms = f"{sampler.carrier.size:,} {type(sampler.how).__name__.lower()}"
    return (
        "A designed reference claims nothing about clients, and over all densities no private sampler has a worst case below the largest "
        f"there is. On the {atoms} that samples are drawn by, which are all that a list of values is seen on, it is TV "
        f"{number(worst['tv'], 3)}, KL {number(worst['kl'], 3)}, whoever the client is."
    )


def _numbers(found: Any) -> dict[str, Any]:
    return {name: json_number(value) if isinstance(value, float) else value for name, value in asdict(found).items()}
