"""`discreet audit` refutes a claim of privacy from samples; `discreet certify` proves one in integers."""

import importlib
import importlib.util
import json as json_format
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from discreet import plots
from discreet._base.showing import json_number_or_null
from discreet.agreement import Agreement
from discreet.audit import BlackBoxAudit, black_box_audit, certificate
from discreet.cli._options import (
    Delta,
    JsonOutput,
    Lower,
    Nu,
    Upper,
    family_from_options,
    positional_argument,
    privacy_from_options,
    value_option,
)
from discreet.cli._printing import dataclass_fields_as_json, empty_table, format_number, print_json_or_text, safe_text
from discreet.errors import DiscreetError
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import (
    MECHANISMS,
    JointSampler,
    OptimalSampler,
    ReportSampler,
    Sampler,
    check_mechanism,
    installed_mechanism,
    sampler_named,
)
from discreet.privacy import Privacy, privacy_document
from discreet.survey import SurveySampler

REFUTED = 1
_BAR = 40


def audit_mechanism(
    mechanism: Annotated[
        str | None,
        positional_argument(
            "[MODULE:CALLABLE | NAME]",
            "A Python callable f(input, n) that returns n samples; or a mechanism: an object, a class with --outcomes, or a name.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, value_option("E", "The claim to be tested. [default: the mechanism's own]")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        value_option(
            "JSON",
            "An input to be kept private; give two or more. [default: extreme clients of a mechanism]",
            "--input",
        ),
    ] = None,
    outcomes: Annotated[int | None, value_option("K", "Make the mechanism as CALLABLE(Simplex(K), epsilon=E).")] = None,
    agreement: Annotated[Path | None, value_option("FILE", "Instead of a mechanism: the one agreed on.")] = None,
    delta: Annotated[float, value_option("D", "The delta of the claim.")] = 0.0,
    draws: Annotated[int, value_option("N", "Draws of each input: half choose events, half test.")] = 100_000,
    confidence: Annotated[float, value_option("C", "Confidence of the bound.")] = 0.99,
    json: JsonOutput = False,
    plot: Annotated[Path | None, value_option("FILE", "Draw the result to a .png, .svg or .pdf file.")] = None,
) -> None:
    """Try to refute a claim of epsilon-LDP from samples; exit status 1 if it is refuted.

    MODULE is a module or a .py file. If the claim is not refuted, it is not proved: an untested event may refute it.
    """
    name, target = _load_audited_name_and_mechanism(mechanism, epsilon, outcomes, agreement)
    parsed_inputs = [_parse_audited_input(text) for text in inputs or ()]
    tested_inputs = parsed_inputs if inputs or not hasattr(target, "release") else None
    audit = black_box_audit(target, tested_inputs, epsilon=epsilon, delta=delta, draws=draws, confidence=confidence)
    if plot is not None:
        verdict = "refuted" if audit.is_refuted else "not refuted"
        plots.save(plots.audit(audit, title=f"{name}: claim {verdict}"), plot)
    pictures = [f"Picture: {safe_text(plot)}"] if plot else []
    print_json_or_text(_audit_json_record(audit), *_audit_text_blocks(audit, name), *pictures, json=json)
    if audit.is_refuted:
        raise typer.Exit(REFUTED)


def _load_audited_name_and_mechanism(
    name: str | None, epsilon: float | None, outcomes: int | None, agreement_file: Path | None
) -> tuple[str, Any]:
    """What is audited, and what it is called: a function f(input, n), or a mechanism, which knows its clients and its claim."""
    if (name is None) == (agreement_file is None):
        raise DiscreetError("audit takes a mechanism, MODULE:CALLABLE or its name, or --agreement FILE")
    if agreement_file is not None:
        if outcomes is not None:
            raise DiscreetError("--agreement states the mechanism and its outcomes; leave out --outcomes")
        agreement = Agreement.read(agreement_file)
        if agreement.survey is not None or agreement.blocks is not None:
            raise DiscreetError(
                f"agreement {agreement.id[:12]} is on reports, which audit does not draw; their integers are proved by discreet certify"
            )
        return str(agreement_file), agreement.sampler() if agreement.joint is None else agreement.joint_sampler()
    assert name is not None
    target = import_callable_named(name) if ":" in name else _mechanism_class_named(name)
    function_or_class = target.func if isinstance(target, partial) else target  # parameters of a class
    if outcomes is None and not isinstance(function_or_class, type):
        if epsilon is None and not hasattr(target, "release"):
            raise DiscreetError(f"epsilon is not given; {name} is a function, whose claim is --epsilon E")
        return name, target
    if outcomes is None or epsilon is None:
        raise DiscreetError(f"{name} is a class of mechanisms; say --outcomes K and --epsilon E to make one")
    try:
        return name, target(Simplex(outcomes), epsilon=epsilon)
    except TypeError as error:
        raise DiscreetError(
            f"{name} cannot be called as CALLABLE(Simplex({outcomes}), epsilon={epsilon:g}): {error}"
        ) from error


def _mechanism_class_named(name: str) -> Any:
    """The class of a mechanism of ours, or of one that an installed package offers."""
    if name in MECHANISMS:
        return MECHANISMS[name]
    try:
        return installed_mechanism(name).kind
    except DiscreetError as error:
        raise DiscreetError(f"{name!r} is not MODULE:CALLABLE, as in mechanisms:respond, and {error}") from None


def write_privacy_certificate(
    out: Annotated[
        Path, value_option("FILE", "The certificate, a JSON file; it replaces only another certificate.", "--out", "-o")
    ],
    outcomes: Annotated[int | None, value_option("K", "Number of outcomes.")] = None,
    epsilon: Annotated[float | None, value_option("E", "Privacy budget.")] = None,
    delta: Delta = None,
    nu: Nu = None,
    agreement: Annotated[
        Path | None, value_option("FILE", "Instead of --outcomes, --epsilon and the rest: an agreement.")
    ] = None,
    mechanism: Annotated[
        str | None, value_option("NAME", "optimal (the default), linear, mollifier or reports.")
    ] = None,
    lower: Lower = None,
    upper: Upper = None,
    json: JsonOutput = False,
) -> None:
    """Write the exact privacy of a sampler as integers. The short script discreet/audit/verify.py verifies them."""
    privacy = None
    if agreement is None:
        missing = "certify needs --outcomes K and --epsilon E (or --nu NU), or --agreement FILE"
        if outcomes is None:
            raise DiscreetError(missing)
        privacy = privacy_from_options(epsilon, delta, nu, missing=missing)
    elif any(option is not None for option in (epsilon, delta, nu)):
        raise DiscreetError("--agreement states the sampler; leave out --epsilon, --delta and --nu")
    terms = None if agreement is None else Agreement.read(agreement)
    proof = certificate(
        _sampler_from_options_or_agreement(outcomes, privacy, terms, mechanism, lower, upper), agreement=terms
    )
    proof.write(out)
    low, high = proof.realised_epsilon
    assert proof.largest_epsilon is not None
    claim = f"{proof.epsilon:g}" if proof.privacy is None else f"{proof.epsilon:g}, and {proof.privacy}"
    record = {
        "certificate": str(out), "epsilon": proof.epsilon, "holds": proof.holds, "inputs": len(proof.inputs),
        "realised": {"low": float(low), "high": float(high)}, "possible": float(proof.largest_epsilon[1]),
        **({} if proof.privacy is None else {"privacy": privacy_document(proof.privacy)}),
        **({} if terms is None else {"agreement": terms.id}),
    }  # fmt: skip
    print_json_or_text(
        record,
        f"Realised epsilon of {len(proof.inputs)} extreme clients: {float(low):.15g} to {float(high):.15g}\n"
        f"Upper bound over all clients:    {float(proof.largest_epsilon[1]):.15g}\n"
        f"Claimed:                              {claim} ({'holds' if proof.holds else 'DOES NOT HOLD: THIS IS A BUG'})",
        *([] if terms is None else [f"Agreement: {terms.id}"]),
        f"Certificate: {safe_text(out)}",
        json=json,
    )
    if not proof.holds:
        raise typer.Exit(REFUTED)


def _sampler_from_options_or_agreement(
    outcomes: int | None,
    privacy: Privacy | None,
    agreement: Agreement | None,
    mechanism: str | None,
    lower: float | None,
    upper: float | None,
) -> Sampler[FiniteFamily] | JointSampler | ReportSampler | SurveySampler:
    """The sampler that options state, or an agreement."""
    if agreement is not None:
        if any(option is not None for option in (outcomes, mechanism, lower, upper)):
            raise DiscreetError("--agreement says it all; leave out --outcomes, --mechanism, --lower and --upper")
        if agreement.blocks is not None:
            return agreement.report_sampler()
        return agreement.sampler() if agreement.joint is None else agreement.joint_sampler()
    assert outcomes is not None
    name = check_mechanism(OptimalSampler.name if mechanism is None else mechanism, "--mechanism")
    family = family_from_options(outcomes, lower, upper)
    if name == ReportSampler.name:
        if not isinstance(family, Simplex):
            raise DiscreetError(
                "--mechanism reports is for every distribution on outcomes; leave out --lower and --upper"
            )
        return ReportSampler(family, privacy=privacy)
    return sampler_named(name, family, privacy=privacy)


def import_callable_named(name: str) -> Any:
    """The callable, or the mechanism, named MODULE:CALLABLE; the current folder may contain the module."""
    module_name, colon, attribute = name.rpartition(":")
    if not colon or not module_name or not attribute:
        raise DiscreetError(f"{name!r} does not name a callable; write MODULE:CALLABLE, as in mechanisms:respond")
    try:
        if module_name.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(module_name).stem, module_name)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            try:
                module = importlib.import_module(module_name)
            finally:
                sys.path.remove("")
    except (Exception, SystemExit) as error:  # a user's module may raise anything while it is imported
        raise DiscreetError(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    target = module
    for part in attribute.split("."):
        target = getattr(target, part, None)  # type: ignore[assignment]
    if not callable(target) and not hasattr(target, "release"):
        raise DiscreetError(f"{module_name} has no callable {attribute!r}")
    return target


def _parse_audited_input(text: str) -> Any:
    """An input in JSON; any other text is the input itself."""
    try:
        return json_format.loads(text)
    except (ValueError, RecursionError):
        return text


def _audit_text_blocks(audit: BlackBoxAudit, mechanism: str) -> list[Any]:
    claim = f"{audit.epsilon:g}" if not audit.delta else f"({audit.epsilon:g}, {audit.delta:g})"
    table = empty_table("event", "inputs", "counts", "at least", texts=3)
    for event in audit.events:
        counts = f"{event.first_count:,} / {event.second_count:,}"
        table.add_row(
            safe_text(event.description), f"{event.first_input} / {event.second_input}", counts,
            format_number(event.empirical_epsilon_lower_bound),
        )  # fmt: skip
    verdict = "REFUTED" if audit.is_refuted else "not refuted (which proves nothing)"
    return [
        f"{safe_text(mechanism)}: claimed epsilon {claim}",
        _leading_event_bars_text(audit),
        table,
        f"empirical_epsilon_lower_bound {format_number(audit.empirical_epsilon_lower_bound)} at {audit.confidence:.4g} confidence: "
        f"[bold]{verdict}[/bold]",
    ]


def _leading_event_bars_text(audit: BlackBoxAudit) -> str:
    event = audit.events[0]
    lines = [f"Leading event: {safe_text(event.description)}"]
    for input_number, count in ((event.first_input, event.first_count), (event.second_input, event.second_count)):
        share = count / event.draws
        lines.append(f"  input {input_number:<4} {'█' * round(_BAR * share):<{_BAR}} {share:.5f}")
    return "\n".join(lines)


def _finite_json_value(value: Any) -> Any:
    """A value of JSON in which null stands for numbers that are not finite."""
    if isinstance(value, float):
        return json_number_or_null(value)
    if isinstance(value, list):
        return [_finite_json_value(entry) for entry in value]
    return {name: _finite_json_value(entry) for name, entry in value.items()} if isinstance(value, dict) else value


def _audit_json_record(audit: BlackBoxAudit) -> dict[str, Any]:
    return {
        "epsilon": audit.epsilon,
        "delta": audit.delta,
        "confidence": audit.confidence,
        "empirical_epsilon_lower_bound": json_number_or_null(audit.empirical_epsilon_lower_bound),
        "refuted": audit.is_refuted,
        "inputs": [
            _finite_json_value(value.tolist() if isinstance(value, np.ndarray) else value) for value in audit.inputs
        ],
        "events": [
            {
                "event" if name == "description" else name: value
                for name, value in dataclass_fields_as_json(event).items()
            }
            for event in audit.events
        ],
    }
