"""`discreet plan`: before anything is collected, which epsilon, which mechanism, how many clients, and what error to expect."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from discreet import plots
from discreet._showing import json_number, pluralise
from discreet.cli._options import (
    Bounds,
    CellCount,
    DomainFile,
    DomainSize,
    Nulls,
    Other,
    ServedGoal,
    choose_mechanism,
    client_option,
    require_domain,
    value_option,
)
from discreet.cli._plan_agreement import agreed_sampler, print_agreed_plan
from discreet.cli._plan_several import several_blocks, several_record, several_ways
from discreet.cli._printing import number, plain, say, table, write_json
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, ImpossibleError, check_count
from discreet.estimation import Outlook, clients_for, epsilon_for_accuracy, outlook
from discreet.estimation._planning import LEAST_EPSILON, MOST_CLIENTS
from discreet.estimation._simulation import Rehearsal, rehearsal
from discreet.families import Simplex
from discreet.mechanisms import LinearSampler, OptimalSampler
from discreet.mechanisms._sampler import Sampler
from discreet.plots._formats import check_picture

USUAL_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
KINDS: dict[str, type[Sampler[Any]]] = {kind.name: kind for kind in (LinearSampler, OptimalSampler)}


@dataclass(frozen=True)
class PlanRow:
    """What to expect at one epsilon."""

    epsilon: float
    tv: float
    kl: float
    linear: Outlook
    optimal: Outlook
    clients: int | None  # that the linear mechanism needs for the accuracy asked for, of each share
    together: int | None  # and of all of them at once


def plan(
    clients: Annotated[int, typer.Option(metavar="N", help="How many clients will release a sample.")],
    serve: ServedGoal = None,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    agreement: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead: outcomes, epsilon and sampler as agreed, such as a designed one."),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            metavar="E", help="Privacy budget; may be repeated. [default: 0.5, 1, 2, 4, 8]", show_default=False
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="J", help="Also compare J samples of each client under one budget with one sample at all of it."
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Bins of an agreed continuous family. [default: as an estimate takes]", show_default=False
        ),
    ] = None,
    accuracy: Annotated[float, typer.Option(metavar="A", help="How near every share should be to the truth.")] = 0.05,
    confidence: Annotated[float, typer.Option(metavar="C", help="Of every interval.")] = 0.95,
    example: Annotated[
        str | None,
        typer.Option(metavar="IN", help="Public or example records to rehearse with (never those to protect)."),
    ] = None,
    client: Annotated[str | None, client_option(", in the example")] = None,
    value: Annotated[str | None, value_option(", in the example")] = None,
    other: Other = None,
    nulls: Nulls = "error",
    seed: Annotated[int, typer.Option(metavar="S", help="Of the rehearsal.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a picture: .png, .svg or .pdf.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose epsilon and mechanism before anything is collected.

    What one sample costs a client (the least worst case there is), how well the population's shares will be known, and how many
    clients an accuracy takes. With example records, a rehearsal of it all.
    """
    check_count("clients", clients, most=MOST_CLIENTS)
    if agreement is not None:
        if any(x is not None for x in (serve, domain, domain_size, bounds, cells, epsilon, samples, plot)):
            raise DiscreetError(
                "--agreement says it all; leave out --for, --epsilon, --samples, --plot and whatever states the outcomes"
            )
        outcomes, sampler, rounds = agreed_sampler(agreement)
        laws = _example(example, client, value, other, nulls, outcomes)
        print_agreed_plan(sampler, rounds, clients, confidence, bins, laws, seed, json=json)
        return
    if bins is not None:
        raise DiscreetError("--bins is for an --agreement on a continuous family; say --cells with --bounds")
    mechanism, taken = choose_mechanism(serve, None, may_ask=not json)
    OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
    if plot is not None:
        check_picture(plot)
    family = Simplex(require_domain(domain, domain_size, bounds, cells))
    budgets = sorted(set(epsilon or USUAL_EPSILONS))
    rows = [_row(family, budget, clients, accuracy, confidence) for budget in budgets]
    smallest = {
        (name, together): _smallest(kind, family, clients, accuracy, confidence, together=together)
        for name, kind in KINDS.items()
        for together in (False, True)
    }
    laws = _example(example, client, value, other, nulls, family.domain)
    compared = [] if samples is None else several_ways(family, budgets, samples, clients, laws)
    rehearsals = {} if laws is None else _rehearsals(family, laws, budgets, clients, seed, confidence)
    if plot is not None:
        drawn = plots.plan(family, clients=clients, epsilons=budgets, accuracy=accuracy, confidence=confidence)
        plots.save(drawn, plot)
    if json:
        several = {"several": several_record(compared)} if compared else {}
        write_json({"mechanism": mechanism, **_record(rows, smallest, rehearsals, accuracy, confidence), **several})
        return
    blocks: list[Any] = [
        f"[bold]{pluralise(clients, 'client')}, {pluralise(family.size, 'outcome')}[/bold]: one sample each.",
        _promises(rows, accuracy),
        "TV and KL: divergence of what a client holds from what its sample is drawn from, in the worst case; nobody can do better. "
        f"+-: how far the {100 * confidence:g} % interval of a share reaches, whatever the population; rare: of an outcome that nobody "
        f"holds; whole law: expected TV distance; clients: so many bring a share within +-{accuracy:g} with linear. That is for each "
        f"share alone; of many some will be further off. [bold]All {family.size:,} at once[/bold], together with {100 * confidence:g} %:",
        _together(rows, accuracy),
        _answer(mechanism, smallest, clients, accuracy),
        *([] if taken is None else [taken]),
        *(several_blocks(compared) if compared else []),
    ]
    if rehearsals:
        blocks += [
            f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times.",
            _rehearsal_table(rehearsals),
        ]
    if plot is not None:
        blocks.append(f"Written: {plain(plot)}")
    say(*blocks)


def _row(family: Simplex, epsilon: float, clients: int, accuracy: float, confidence: float) -> PlanRow:
    samplers = {name: kind(family, epsilon=epsilon) for name, kind in KINDS.items()}
    looks = {
        name: outlook(sampler, mechanism=name, clients=clients, confidence=confidence)
        for name, sampler in samplers.items()
    }
    needed: dict[bool, int | None] = {}
    for together in (False, True):
        try:
            needed[together] = clients_for(
                samplers["linear"], accuracy=accuracy, confidence=confidence, together=together
            )
        except ImpossibleError:
            needed[together] = None
    optimal = samplers["optimal"]
    risks = float(optimal.risk("tv")), float(optimal.risk("kl"))
    return PlanRow(optimal.epsilon, *risks, looks["linear"], looks["optimal"], needed[False], needed[True])


def _smallest(
    kind: type[Sampler[Any]],
    family: Simplex,
    clients: int,
    accuracy: float,
    confidence: float,
    *,
    together: bool,
) -> float | None:
    try:
        return epsilon_for_accuracy(
            kind, family, clients=clients, accuracy=accuracy, confidence=confidence, together=together
        )
    except ImpossibleError:
        return None


def _example(
    example: str | None, client: str | None, value: str | None, other: str | None, nulls: str, domain: Domain
) -> Any:
    if example is None:
        if (client, value, other, nulls) != (None, None, None, "error"):
            raise DiscreetError("--client, --value, --other and --nulls are about the rows of --example; give that too")
        return None
    if client is None or value is None:
        raise DiscreetError("--example needs --client COLUMN and --value COLUMN")
    from discreet._tables._coding import Coding
    from discreet._tables._sources import file_source
    from discreet.estimation._tallies import (
        client_laws,  # these load polars, which a plan without examples has no use for
    )

    return client_laws(file_source(example), Coding(domain, other, nulls), value=value, client=client)


def _rehearsals(
    family: Simplex, laws: Any, budgets: list[float], clients: int, seed: int, confidence: float
) -> dict[tuple[float, str], Rehearsal]:
    return {
        (budget, name): rehearsal(kind(family, epsilon=budget), laws, clients=clients, seed=seed, confidence=confidence)
        for budget in budgets
        for name, kind in KINDS.items()
    }


def _promises(rows: list[PlanRow], accuracy: float) -> Table:
    made = table(
        "epsilon",
        "TV",
        "KL",
        "linear\n+-",
        "rare\n+-",
        "whole\nlaw",
        "optimal\n+-",
        f"clients\nfor {accuracy:g}",
        texts=0,
    )
    for row in rows:
        total = row.linear.total
        made.add_row(
            f"{row.epsilon:g}", number(row.tv, 3), number(row.kl, 3), number(row.linear.at_worst, 3), number(row.linear.if_rare, 3),
            "" if total is None else number(total, 3), number(row.optimal.at_worst, 3), _many(row.clients),
        )  # fmt: skip
    return made


def _together(rows: list[PlanRow], accuracy: float) -> Table:
    made = table("epsilon", "linear\n+-", "optimal\n+-", f"clients\nfor {accuracy:g}", texts=0)
    for row in rows:
        reaches = number(row.linear.together, 3), number(row.optimal.together, 3)
        made.add_row(f"{row.epsilon:g}", *reaches, _many(row.together))
    return made


def _many(clients: int | None) -> str:
    """A number of clients that fits its column; nothing where no number is enough."""
    if clients is None:
        return ""
    return f"{clients:,}" if clients < 10**8 else f"{clients:.2g}"


def _answer(mechanism: str, smallest: dict[tuple[str, bool], float | None], clients: int, accuracy: float) -> str:
    """What to take for whom the samples are to serve, and from which epsilon on it is accurate enough."""
    linear, optimal = (_each_and_together(smallest[name, False], smallest[name, True]) for name in KINDS)
    who = pluralise(clients, "client")
    if linear is None:
        few = "is" if clients == 1 else "are"
        return f"[bold]{who} {few} too few[/bold] for +-{accuracy:g}, even without privacy: ask for less, or ask more of them."
    reached = f"+-{accuracy:g} with {who}"
    if mechanism == "linear":
        said = f"[bold]To estimate the population: linear[/bold]. It reaches {reached} {linear}"
        return said + (
            "." if optimal is None else f"; optimal, whose samples only narrow a share down to a range, {optimal}."
        )
    range_of = "at no epsilon" if optimal is None else optimal
    return (
        "[bold]To serve each client: optimal[/bold]. It has the same worst case as linear, and serves every client at least as "
        f"well. Its samples narrow a share of the population down to a range: {reached} {range_of}; linear {linear}."
    )


def _each_and_together(each: float | None, together: float | None) -> str | None:
    """From which epsilon on each share is known, and from which all of them at once."""
    if each is None:
        return None
    if each == together:
        return _from_epsilon(each)
    rest = "at no epsilon" if together is None else _from_epsilon(together)
    return f"{_from_epsilon(each)} for each share, {rest} for all at once"


def _from_epsilon(epsilon: float) -> str:
    return "at any epsilon" if epsilon <= LEAST_EPSILON else f"from epsilon = {epsilon:.3g} on"


def _rehearsal_table(rehearsals: dict[tuple[float, str], Rehearsal]) -> Table:
    made = table(
        "epsilon", "mechanism", "TV of a client", "share off by", "whole law off by", "intervals +-", "covered", texts=2
    )
    for (budget, name), each in rehearsals.items():
        made.add_row(
            f"{budget:g}" if name == "linear" else "", name, number(each.client_tv, 3), number(each.largest, 3),
            number(each.total, 3), number(each.width, 3), f"{100 * each.covered:.1f} %",
            end_section=name == "optimal",
        )  # fmt: skip
    return made


def _record(
    rows: list[PlanRow],
    smallest: dict[tuple[str, bool], float | None],
    rehearsals: dict[tuple[float, str], Rehearsal],
    accuracy: float,
    confidence: float,
) -> dict[str, Any]:
    return {
        "accuracy": accuracy,
        "confidence": confidence,
        "rows": [
            {
                "epsilon": row.epsilon,
                "worst_case": {"tv": row.tv, "kl": json_number(row.kl)},
                "linear": asdict(row.linear),
                "optimal": asdict(row.optimal),
                "clients_for_accuracy": row.clients,
                "clients_for_accuracy_together": row.together,
            }
            for row in rows
        ],
        "smallest_epsilon": {name: smallest[name, False] for name in KINDS},
        "smallest_epsilon_together": {name: smallest[name, True] for name in KINDS},
        "rehearsals": [
            {"epsilon": budget, "mechanism": name, **asdict(each)} for (budget, name), each in rehearsals.items()
        ],
    }
