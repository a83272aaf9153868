"""`discreet estimate` of samples under an agreement on a mechanism of somebody's own: by its matrix, if its law is linear."""

from typing import Any

from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.cli._options import promise_text
from discreet.cli._printing import empty_table, print_blocks, safe_text, write_json
from discreet.estimation import InvertedPopulation, SampleTally, inverted_population, inverted_record, trust_notes
from discreet.mechanisms import OwnSampler


def estimate_own(
    sampler: OwnSampler, tallied: SampleTally, agreed: Agreement, *, confidence: float, top: int, json: bool
) -> None:
    """Print shares of the population, or raise the error of a law that tells none."""
    found = inverted_population(sampler, counts=tallied.counts, confidence=confidence)
    doubts = trust_notes(agreed, named=tallied.named, distinct=tallied.distinct)
    if json:
        write_json(inverted_record(found, agreed, doubts))
        return
    print_blocks(*_blocks(found, agreed, doubts, top))


def _blocks(found: InvertedPopulation, agreed: Agreement, doubts: list[str], top: int) -> list[Any]:
    """The report: shares by the inverse of the matrix, largest first."""
    assert agreed.own is not None
    own, law, size = agreed.own, found.law, len(found.counts)
    shown = sorted(range(size), key=lambda place: (-law.estimate[place], place))[:top]
    percent = f"{100 * found.confidence:g} % interval"
    made = empty_table("outcome", "share, %", f"{percent}, all {size:,} at once", "nearest", "samples")
    for place in shown:
        made.add_row(
            safe_text(found.domain.names[place]),
            f"{100 * law.estimate[place]:.2f}",
            f"{100 * law.all_low[place]:.2f} to {100 * law.all_high[place]:.2f}",
            f"{100 * found.nearest[place]:.2f}",
            f"{found.counts[place]:,}",
        )
    named = f"{safe_text(own.name)} of {safe_text(own.package)} {safe_text(own.package_version)}"
    blocks: list[Any] = [
        f"[bold]{pluralise(found.samples, 'sample')}[/bold], {named} on {safe_text(agreed.family.description, most=300)}, "
        f"{promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]}).",
        *(f"[bold red]Note[/bold red]: {safe_text(doubt)}." for doubt in doubts),
        made,
    ]
    if size > len(shown):
        blocks.append(f"{size - len(shown):,} more outcomes: --top, --json.")
    blocks.append(
        "[bold]Shares[/bold] are unbiased, by the inverse of the mechanism's matrix, and may fall below 0 by chance. [bold]nearest[/bold] is "
        "the nearest distribution, which is biased."
    )
    blocks.append(f"[bold]Liars[/bold]: one false sample can shift a share by {100 * found.liar_shift:.2g} %.")
    return blocks
