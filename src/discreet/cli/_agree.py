"""`discreet agree`: write an agreement between clients and curator, or check an existing one."""

from pathlib import Path
from typing import Annotated, Any

from discreet.agreement import Agreement, FamilyTerms, Schedule
from discreet.cli._options import (
    AgreedGoal,
    AllowLarge,
    Bounds,
    CellCount,
    Delta,
    DomainFile,
    DomainSize,
    EachEpsilon,
    JsonOutput,
    Lower,
    MechanismName,
    Nu,
    Purpose,
    Rounds,
    SurveyFile,
    Upper,
    band_from_options,
    budget_spending_text,
    choose_mechanism_and_note,
    family_from_options,
    flag_option,
    mechanism_text,
    positional_argument,
    privacy_from_options,
    prompt_for_missing_goal,
    refuse_given_options,
    refuse_large_epsilon,
    refuse_large_total_epsilon,
    required_domain_from_options,
    round_schedule_lines,
    survey_sampler_from_options,
    value_option,
)
from discreet.cli._printing import print_json, print_text_blocks, safe_text
from discreet.domain import Coding, Domain, Labels
from discreet.errors import DiscreetError
from discreet.families import Band, Simplex
from discreet.mechanisms import (
    MEMBERS_ONLY_MESSAGE,
    AnyFamily,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    ReportSampler,
    Sampler,
    population_mechanism,
    sampler_named,
)
from discreet.privacy import Privacy, Pure
from discreet.privacy.tradeoff import large_epsilon_warning_text


def write_or_check_agreement(
    file: Annotated[Path, positional_argument("FILE", "The agreement: a new file, or with --check an existing one.")],
    epsilon: EachEpsilon = None,
    delta: Delta = None,
    nu: Nu = None,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    survey: SurveyFile = None,
    lower: Lower = None,
    upper: Upper = None,
    goal: AgreedGoal = None,
    mechanism: MechanismName = None,
    rounds: Rounds = 1,
    start: Annotated[
        str | None, value_option("DATE", "First day of round 1, such as 2026-01-01: rounds are then named by dates.")
    ] = None,
    every: Annotated[
        str | None, value_option("day|week|month", "How long a round is, with --start. [default: day]")
    ] = None,
    purpose: Purpose = "",
    other: Annotated[
        str | None,
        value_option(
            "LABEL",
            "The outcome that values outside the domain count as. [default: they are left out, and a client "
            "without other values draws from the reference]",
        ),
    ] = None,
    check: Annotated[bool, flag_option("--check", "Read FILE and print its terms.")] = False,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
) -> None:
    """Write an agreement between clients and curator. Every record carries its id, a digest.

    `discreet sample --agreement FILE` releases under it.
    """
    note = None
    if check:
        options = {
            "--epsilon": epsilon, "--delta": delta, "--nu": nu,
            "--domain": domain, "--domain-size": domain_size, "--bounds": bounds, "--cells": cells, "--survey": survey, "--lower": lower,
            "--upper": upper, "--for": goal, "--mechanism": mechanism, "--rounds": None if rounds == 1 else rounds, "--start": start,
            "--every": every, "--purpose": purpose or None, "--other": other, "--allow-large-epsilon": allow_large_epsilon or None,
        }  # fmt: skip
        refuse_given_options(options, f"is for a new agreement; --check only reads {file}")
        agreement = Agreement.read(file)
    elif survey is not None:
        survey_sampler = survey_sampler_from_options(
            survey, epsilon, goal, delta=delta, nu=nu, domain=domain, domain_size=domain_size, bounds=bounds, cells=cells, lower=lower,
            upper=upper, mechanism=mechanism, other=other,
        )  # fmt: skip
        for domain_of_column in survey_sampler.survey.columns.values():
            _refuse_look_alike_labels(domain_of_column)
        refuse_large_epsilon(survey_sampler.epsilon, allowed=allow_large_epsilon)
        agreement = Agreement.of(
            survey_sampler, rounds=rounds, purpose=purpose, schedule=_schedule_from_options(start, every)
        )
        refuse_large_total_epsilon(agreement.doubt_of_rounds, allowed=allow_large_epsilon)
        agreement.write(file)
    else:
        privacy = privacy_from_options(
            epsilon,
            delta,
            nu,
            missing="agree needs --epsilon, the budget of each sample (or --check, to read an agreement)",
        )
        goal = prompt_for_missing_goal(goal, mechanism, may_ask=not json)
        name, note = choose_mechanism_and_note(goal, mechanism, may_ask=False)
        if name == MollifierSampler.name and not isinstance(privacy, Pure):
            raise DiscreetError(
                f"{'--delta' if nu is None else '--nu'} with --mechanism mollifier: the mollifier is a ball of pure epsilon; give --epsilon "
                "alone, or say --mechanism optimal"
            )
        simplex = Simplex(required_domain_from_options(domain, domain_size, bounds, cells))
        _refuse_look_alike_labels(simplex.domain)
        family = family_from_options(simplex.domain, lower, upper)
        if goal == "population" and mechanism is None:
            name = population_mechanism(family, privacy)
        if name == LinearSampler.name and isinstance(family, Band):
            raise DiscreetError(f"{MEMBERS_ONLY_MESSAGE} (leave out --lower and --upper)")
        if lower is not None and name in (OptimalSampler.name, MollifierSampler.name):
            family = band_from_options(simplex.domain, lower, upper)  # also with --lower 0 alone: these keep their ids
        sampler: Sampler[AnyFamily] | ReportSampler
        if name == ReportSampler.name:
            sampler = _build_report_sampler(family, privacy)
            note = _reason_for_reports_text(sampler) if mechanism is None else None
        else:
            sampler = sampler_named(name, family, privacy=privacy)
        refuse_large_epsilon(sampler.epsilon, allowed=allow_large_epsilon)
        if isinstance(sampler, Sampler):
            _ = sampler.lattice  # the error for a budget that nobody can draw with
        label = None if other is None else Coding(simplex.domain, other).other
        schedule = _schedule_from_options(start, every)
        agreement = Agreement.of(sampler, rounds=rounds, purpose=purpose, other=label, schedule=schedule)
        refuse_large_total_epsilon(agreement.doubt_of_rounds, allowed=allow_large_epsilon)
        agreement.write(file)
    if json:
        totals: dict[str, Any] = {"together": str(agreement.privacy_of_all_rounds)} if agreement.rounds > 1 else {}
        if agreement.schedule is not None:
            totals |= {"rounds_in_a_year": agreement.rounds_in_a_year, "in_a_year": str(agreement.in_a_year)}
        print_json({"id": agreement.id, "agreement": agreement.document, **totals})
        return
    # the cost comes first, before any text that the agreement's author chose
    kind = mechanism_text(agreement.mechanism, any_client=agreement.family.document.get("everybody", False))
    if agreement.own is not None:
        origin = (agreement.own.name, agreement.own.package, agreement.own.package_version)
        kind += " ({} of {} {})".format(*(safe_text(part, most=60) for part in origin))
    if agreement.joint is not None:
        kind += (
            f" ({agreement.joint.samples} samples of each client drawn together, around the {agreement.joint.around})"
        )
    lines = [
        f"{budget_spending_text(agreement)}, {kind} on "
        f"{safe_text(agreement.family.description, most=300)}{_first_and_last_outcomes_text(agreement)}"
    ]
    lines += round_schedule_lines(agreement)
    labels = agreement.domain.labels if isinstance(agreement.family, FamilyTerms) else None
    padded_label = next((label for label in labels or () if str(label) != str(label).strip()), None)
    if padded_label is not None:
        shown = safe_text(repr(padded_label), most=60)
        lines.append(
            f"[bold red]Note[/bold red]: label {shown} begins or ends with a space; a value without it is outside the domain"
        )
    if agreement.survey is not None:
        survey_sampler = agreement.survey_sampler()
        lines += [f"asks: {safe_text(question.title, most=100)}" for question in survey_sampler.survey.questions]
        wider_tables = [
            " x ".join(names)
            for number, names in survey_sampler.tables.items()
            if survey_sampler.parts[number].question < 0
        ]
        if wider_tables:
            lines.append(f"may also ask, to tell these: shares of {safe_text('; '.join(wider_tables), most=400)}")
    if agreement.rounds > 1:
        from discreet.estimation import rounds_cost  # loaded only if there are rounds

        cost = rounds_cost(agreement)
        lines += [] if cost is None else [f"[bold red]Note[/bold red]: {cost}"]
    doubt = large_epsilon_warning_text(agreement.epsilon) or agreement.doubt_of_rounds
    if doubt is not None:
        lines.append(f"[bold red]Note[/bold red]: {doubt}")
    if agreement.other is not None and agreement.domain.labels is not None:
        lines.append(
            f"values outside the domain count as {safe_text(agreement.domain.labels[agreement.other], most=60)}"
        )
    if agreement.purpose:
        lines.append(f"for: {safe_text(agreement.purpose, most=500)}")
    lines.append(f"id {agreement.id}")
    if not check:
        lines.append(f"written to {safe_text(file)}; it names the outcomes, which must be public")
        if note is not None:
            lines.append(note)
    print_text_blocks("\n".join(lines))


def _schedule_from_options(start: str | None, every: str | None) -> Schedule | None:
    """The schedule by --start and --every; None if rounds are not named by dates."""
    if every is not None and start is None:
        raise DiscreetError("--every says how long a round is; give the first day too: --start DATE")
    return None if start is None else Schedule(start, every="day" if every is None else every)


def _build_report_sampler(family: Simplex | Band, privacy: Privacy) -> ReportSampler:
    """The sampler of reports; an error for families and notions of privacy without one."""
    if not isinstance(family, Simplex):
        raise DiscreetError(
            "--mechanism reports is for every distribution on outcomes; leave out --lower and --upper, or say --mechanism optimal"
        )
    if not isinstance(privacy, Pure):
        raise DiscreetError(
            "--mechanism reports promises pure epsilon; give --epsilon alone, or say --mechanism linear"
        )
    return ReportSampler(family, privacy=privacy)


def _reason_for_reports_text(sampler: ReportSampler) -> str:
    """Why reports were chosen, and what to say for samples."""
    ratio = sampler.by_values().variance() / sampler.variance()
    return (
        f"reports were taken: for the same accuracy of a share, values (--mechanism linear) need {ratio:.3g} times the clients; a report "
        "is no sample of a client's records"
    )


def _first_and_last_outcomes_text(agreement: Agreement) -> str:
    """The first and the last outcomes, so that a wrong list is noticed."""
    names = agreement.domain.labels if isinstance(agreement.family, FamilyTerms) else None
    if names is None:
        return ""
    ends = names if len(names) <= 4 else (names[0], names[1], "...", names[-1])
    return f" ({', '.join(safe_text(name, most=60) for name in ends)})"


def _refuse_look_alike_labels(domain: Domain) -> None:
    """Raise an error for two labels that look alike: people choose outcomes by what they see."""
    pair = domain.look_alikes if isinstance(domain, Labels) else None
    if pair is not None:
        first, second = map(ascii, pair)
        raise DiscreetError(
            f"labels {first} and {second} cannot be told apart: they differ in case, width, spaces or invisible characters alone; rename one"
        )
