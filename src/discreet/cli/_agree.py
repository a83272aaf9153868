"""`discreet agree`: write what client and curator agree on, or check what somebody else wrote."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from discreet.agreement import Agreement, FamilyTerms
from discreet.cli import _options as terms_told
from discreet.cli._options import (
    AgreedGoal,
    AllowLarge,
    Bounds,
    CellCount,
    Delta,
    DomainFile,
    DomainSize,
    MechanismName,
    Nu,
    ask_whom_to_serve,
    choose_mechanism,
    promise,
    refuse_large,
    refuse_large_together,
    require_domain,
)
from discreet.cli._printing import plain, say, write_json
from discreet.domain import Labels
from discreet.errors import DiscreetError
from discreet.families import Band, Simplex
from discreet.mechanisms import (
    MEMBERS_ALONE,
    AnyFamily,
    LinearSampler,
    MollifierSampler,
    ReportSampler,
    Sampler,
    population_mechanism,
    sampler_named,
)
from discreet.privacy import Privacy, Pure
from discreet.privacy.tradeoff import large_epsilon_warning
from discreet.tables import Coding


def agree(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The agreement: a new file, or with --check an existing one.")
    ],
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Privacy budget of each sample or report.")] = None,
    delta: Delta = None,
    nu: Nu = None,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    lower: Annotated[
        float | None, typer.Option(metavar="C1", help="Distributions are at least this multiple of uniform.")
    ] = None,
    upper: Annotated[
        float | None, typer.Option(metavar="C2", help="Distributions are at most this multiple of uniform.")
    ] = None,
    serve: AgreedGoal = None,
    mechanism: MechanismName = None,
    rounds: Annotated[int, typer.Option(metavar="N", help="Samples of each client.")] = 1,
    purpose: Annotated[str, typer.Option(metavar="TEXT", help="What the samples are for.")] = "",
    other: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="The outcome that values outside the domain count as. [default: they are left out, and a client with nothing else "
            "sends a sample of the reference]",
            show_default=False,
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Read FILE and show what it says.")] = False,
    allow_large_epsilon: AllowLarge = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write what client and curator agree on. Its id is the digest that every record carries.

    `discreet sample --agreement FILE` releases under it.
    """
    taken = None
    if check:
        given = {
            "--epsilon": epsilon, "--delta": delta, "--nu": nu,
            "--domain": domain, "--domain-size": domain_size, "--bounds": bounds, "--for": serve,
            "--mechanism": mechanism, "--other": other,
        }  # fmt: skip
        for option in (name for name, value in given.items() if value is not None):
            raise DiscreetError(f"{option} is for a new agreement; --check only reads {file}")
        found = Agreement.read(file)
    else:
        promised = promise(
            epsilon,
            delta,
            nu,
            missing="agree needs --epsilon, the budget of each sample (or --check, to read an agreement)",
        )
        serve = ask_whom_to_serve(serve, mechanism, may_ask=not json)
        name, taken = choose_mechanism(serve, mechanism, may_ask=False)
        if name == MollifierSampler.name and not isinstance(promised, Pure):
            raise DiscreetError(
                f"{'--delta' if nu is None else '--nu'} with --mechanism mollifier: the mollifier is a ball of pure epsilon; give --epsilon "
                "alone, or say --mechanism optimal"
            )
        whole = Simplex(require_domain(domain, domain_size, bounds, cells))
        _refuse_look_alikes(whole)
        family = _client_family(whole, lower, upper)
        if serve == "population" and mechanism is None:
            name = population_mechanism(family, promised)
        if name == LinearSampler.name and isinstance(family, Band):
            raise DiscreetError(f"{MEMBERS_ALONE} (leave out --lower and --upper)")
        sampler: Sampler[AnyFamily] | ReportSampler
        if name == ReportSampler.name:
            sampler = _report_sampler(family, promised)
            taken = _what_reports_spare(sampler) if mechanism is None else None
        else:
            sampler = sampler_named(name, family, privacy=promised)
        refuse_large(sampler.epsilon, allowed=allow_large_epsilon)
        label = None if other is None else Coding(whole.domain, other).other
        found = Agreement.of(sampler, rounds=rounds, purpose=purpose, other=label)
        refuse_large_together(found.doubt_of_rounds, allowed=allow_large_epsilon)
        found.write(file)
    if json:
        together = {"together": str(found.together)} if found.rounds > 1 else {}
        write_json({"id": found.id, "agreement": found.document, **together})
        return
    # what is spent comes before the first text that whoever wrote the agreement could choose
    kind = terms_told.mechanism_text(found.mechanism, everybody=found.family.document.get("everybody", False))
    if found.joint is not None:
        kind += f" ({found.joint.samples} samples of each client drawn at once, around the {found.joint.around})"
    lines = [f"{terms_told.spending_text(found)}, {kind} on {found.family.description}{_few(found)}"]
    if found.rounds > 1:
        from discreet.estimation import rounds_cost  # loaded where there are rounds alone

        cost = rounds_cost(found)
        lines += [] if cost is None else [f"[bold red]Note[/bold red]: {cost}"]
    doubt = large_epsilon_warning(found.epsilon) or found.doubt_of_rounds
    if doubt is not None:
        lines.append(f"[bold red]Note[/bold red]: {doubt}")
    if found.other is not None and found.domain.labels is not None:
        lines.append(f"values outside the domain count as {plain(found.domain.labels[found.other], most=60)}")
    if found.purpose:
        lines.append(f"for: {plain(found.purpose, most=500)}")
    lines.append(f"id {found.id}")
    if not check:
        lines.append(f"written to {plain(file)}; it names the outcomes, which must be public")
        if taken is not None:
            lines.append(taken)
    say("\n".join(lines))


def _report_sampler(family: Simplex | Band, promised: Privacy) -> ReportSampler:
    """The sampler of reports, where there is one."""
    if not isinstance(family, Simplex):
        raise DiscreetError(
            "--mechanism reports is for every distribution on outcomes; leave out --lower and --upper, or say --mechanism optimal"
        )
    if not isinstance(promised, Pure):
        raise DiscreetError(
            "--mechanism reports promises pure epsilon; give --epsilon alone, or say --mechanism linear"
        )
    return ReportSampler(family, privacy=promised)


def _what_reports_spare(sampler: ReportSampler) -> str:
    """Why reports were chosen, and what to say for samples."""
    ratio = sampler.by_values().variance() / sampler.variance()
    return (
        f"reports were taken: for the same accuracy of a share, values (--mechanism linear) need {ratio:.3g} times the clients; a report "
        "is no sample of a client's records"
    )


def _few(found: Agreement) -> str:
    """The first and the last outcomes, so that a wrong list of them is noticed."""
    names = found.domain.labels if isinstance(found.family, FamilyTerms) else None
    if names is None:
        return ""
    ends = names if len(names) <= 4 else (names[0], names[1], "...", names[-1])
    return f" ({', '.join(plain(name, most=60) for name in ends)})"


def _refuse_look_alikes(whole: Simplex) -> None:
    """People choose outcomes by what they see of a label: two that look alike would be one to them."""
    found = whole.domain.look_alikes if isinstance(whole.domain, Labels) else None
    if found is not None:
        first, second = map(ascii, found)
        raise DiscreetError(
            f"labels {first} and {second} cannot be told apart: they differ in case, width, spaces or invisible characters alone; rename one"
        )


def _client_family(whole: Simplex, lower: float | None, upper: float | None) -> Simplex | Band:
    if lower is None and upper is None:
        return whole
    least, most = (0.0 if lower is None else lower), (float(whole.size) if upper is None else upper)
    return Band(np.ones(whole.size), lower=least, upper=most, domain=whole.domain)
