"""`discreet design --from`: a design that is learned from private samples of earlier clients.

Files of samples and stores of collections are read with their agreements. If the samples are too few for a design that is surely better, the
agreement is on the better of the samplers that need none, and the report says so.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from discreet._base.files import check_apart
from discreet._base.showing import json_number, pluralise
from discreet.agreement import Agreement, ContinuousTerms, learned_purpose
from discreet.cli._options import agreement_of, spending_text
from discreet.cli._printing import empty_table, format_number, note_lines, print_blocks, safe_text, write_json
from discreet.collect import is_store, open_store
from discreet.design import Learned, learn
from discreet.domain import Coding
from discreet.errors import DiscreetError, visible
from discreet.estimation import check_clients_apart, coding_and_sampler, tally
from discreet.families import Simplex
from discreet.mechanisms import Sampler
from discreet.tables import file_source

_LISTED = 10  # outcomes of the mean to show
_NARROWED = (
    "samples under this agreement narrow the population's shares down to intervals that do not shrink to nothing: they serve each client, "
    "and no estimate from them is unbiased. To estimate shares, keep collecting under a linear agreement or one on reports (discreet agree "
    "--for population); the stages are estimated together: discreet estimate FIRST SECOND"
)


@dataclass(frozen=True)
class SampleFiles:
    """Files of samples or stores of collections, with their agreements. A file of `discreet sample` may carry its own."""

    samples: tuple[str, ...]
    agreements: tuple[Path, ...]
    spread: str | None = None
    spread_agreement: Path | None = None

    def check(self, output: Path) -> None:
        """Raise an error for options that contradict each other, and for an output that would replace an input."""
        if self.agreements and len(self.agreements) != len(self.samples):
            raise DiscreetError(
                f"--from was given {len(self.samples)} times and --agreement {len(self.agreements)} times; give one agreement for each file "
                "of samples, in the same order, or none where the files carry theirs"
            )
        if self.spread_agreement is not None and self.spread is None:
            raise DiscreetError("--spread-agreement is that of --spread FILE; give both")
        for read in (*self.samples, *map(str, self.agreements), self.spread):
            check_apart(output, {"samples": read}, what="agreement")


@dataclass(frozen=True, eq=False)
class LearnedAgreement:
    """A learned design, with the agreements it was learned from and their outcomes."""

    learned: Learned
    rounds: tuple[tuple[Agreement, int], ...]
    agreement: Agreement
    names: Sequence[Any]
    doubts: tuple[str, ...]

    @property
    def is_identifiable(self) -> bool:
        """Whether samples under the agreement determine the average client."""
        return self.learned.sampler.mixing is not None


def learn_agreement(
    released: SampleFiles,
    *,
    epsilon: float,
    divergence: str,
    keep: float,
    confidence: float,
    rounds: int,
    purpose: str,
    begin_stage: Callable[[str], None],
) -> LearnedAgreement:
    """Read every file, learn a design, and return its agreement."""
    begin_stage("reading the samples")
    agreements = [*released.agreements, *[None] * (len(released.samples) - len(released.agreements))]
    given = [_read_samples(name, path) for name, path in zip(released.samples, agreements, strict=True)]
    read = [each for one in given for each in one.rounds]
    domain = read[0][1].family.domain
    for agreed, sampler, _ in read[1:]:
        if sampler.family.domain.digest != domain.digest:
            raise DiscreetError(
                f"agreement {agreed.id[:12]} is on other outcomes than {read[0][0].id[:12]}; learn from samples on one domain"
            )
    about = None
    if released.spread is not None:
        given.append(_read_samples(released.spread, released.spread_agreement))
        about, *others = given[-1].rounds
        if others:
            raise DiscreetError(
                "--spread names a collection of several agreements; give samples on two outcomes, under one"
            )
    sources = [one.source for one in given if one.source is not None]
    distinct = check_clients_apart(sources) and (len(given) == 1 or len(sources) == len(given))
    family = Simplex(domain)
    begin_stage(
        f"learning from {sum(int(counts.sum()) for _, _, counts in read):,} samples on {family.size:,} outcomes"
    )
    found = learn(
        family,
        epsilon=epsilon,
        rounds=[(sampler, counts) for _, sampler, counts in read],
        spread=None if about is None else (about[1], about[2]),
        divergence=divergence,
        keep=keep,
        confidence=confidence,
    )
    ids = [agreed.id for one in given for agreed, *_ in one.rounds]
    kept = purpose or read[0][0].stated_purpose
    agreement = Agreement.of(found.sampler, rounds=rounds, purpose=learned_purpose(kept, ids))
    doubts = [] if distinct else ["not all files name their clients; it is not checked that each sent one sample"]
    if any(one.source is None and agreed.rounds > 1 for one in given for agreed, *_ in one.rounds):
        doubts.append("only the first of several rounds is used: each client has a sample in every round")
    rounds_read = tuple((agreed, int(counts.sum())) for agreed, _, counts in read)
    return LearnedAgreement(found, rounds_read, agreement, domain.names, tuple(doubts))


@dataclass(frozen=True, eq=False)
class _SampleSource:
    """The samples behind one name: (agreement, sampler, counts) for each agreement, and the table they were read from, if any."""

    rounds: list[tuple[Agreement, Sampler[Any], Any]]
    source: Any = None


def _read_samples(name: str, path: Path | None) -> _SampleSource:
    """The samples of a file, under the agreement that it carries or that is named; or those of a collection in a store."""
    if is_store(name):
        return _SampleSource(_read_store(name, path))
    source = file_source(name)
    agreed = agreement_of(source, path)
    coding, sampler = _learnable_coding_and_sampler(agreed)
    return _SampleSource([(agreed, sampler, tally(source, agreed, coding).counts)], source)


def _read_store(name: str, path: Path | None) -> list[tuple[Agreement, Sampler[Any], Any]]:
    """The counts under every agreement of a collection: the only one of a store, or that of the named agreement."""
    wanted = None if path is None else Agreement.read(path).id
    with closing(open_store(name, create=False)) as store:
        kept = store.agreements()
        found = {one.collection for one in kept if wanted is None or one.agreement.id == wanted}
        if wanted is not None and not found:
            raise DiscreetError(f"the store holds no samples under agreement {wanted}, which --agreement {path} is")
        if len(found) > 1:
            raise DiscreetError(
                f"the store holds {len(found)} collections, of other clients each; say which one: --agreement FILE, any of its agreements"
            )
        counted = [(one.agreement, store.counts(one.agreement.id, 1)) for one in kept if one.collection in found]
    rounds = [(agreed, _learnable_coding_and_sampler(agreed)[1], counts) for agreed, counts in counted if counts.any()]
    if not rounds:
        raise DiscreetError("the store holds no samples yet; there is nothing to learn from")
    return rounds


def _learnable_coding_and_sampler(agreed: Agreement) -> tuple[Coding, Sampler[Any]]:
    """The coding of the samples, and the sampler."""
    if isinstance(agreed.family, ContinuousTerms):
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is on {agreed.family.description}; a design is learned from samples on a list of outcomes, or on "
            "the equal cells of an interval (--bounds LO HI --cells N)"
        )
    if agreed.blocks is not None:
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is on reports, and a design is learned from samples; collect under --mechanism linear or optimal"
        )
    return coding_and_sampler(agreed)


def write_learned(found: LearnedAgreement, output: Path, *, json: bool, quiet: bool) -> None:
    """Write the agreement, and print what it rests on."""
    if not found.is_identifiable and not quiet:
        typer.echo(visible(f"discreet: {_NARROWED}"), err=True)
    found.agreement.write(output)
    if json:
        write_json(_learned_record(found))
    else:
        print_blocks(*_learned_blocks(found), written_text(found.agreement, output))


def written_text(agreement: Agreement, output: Path) -> str:
    """Which agreement was written where, with the total budget of its rounds if there are several."""
    spent = f" ({spending_text(agreement)})" if agreement.rounds > 1 else ""
    return f"Agreement {agreement.id[:12]}{spent}: {safe_text(output)}"


def _learned_blocks(found: LearnedAgreement) -> list[Any]:
    """The report as text."""
    learned = found.learned
    shares = empty_table("outcome", "mean, %")
    for place in (-learned.mean).argsort()[:_LISTED].tolist():
        shares.add_row(safe_text(found.names[place], most=200), f"{100 * learned.mean[place]:.1f}")
    made = "a designed sampler" if learned.published else "no design"
    earlier = ", ".join(one[:12] for one in found.agreement.learned_from)
    under, samples = pluralise(len(found.rounds), "agreement"), pluralise(learned.samples, "private sample")
    return [
        f"[bold]Learned from {samples}[/bold] under {under}: {made}, epsilon = {learned.design.epsilon:g}.",
        *note_lines(found.doubts),
        f"Why: {safe_text(learned.reason)} (expected gain {learned.gain:.0%}). The gain assumes a model of the clients: "
        f"spread around a mean, in clusters, or with one value each. Private samples cannot confirm the model.",
        f"[bold red]Note[/bold red]: serve other clients. A client with a sample under {earlier} would "
        f"spend a second budget. The agreement names these in its purpose; `discreet collect --follows` takes no "
        f"client twice.",
        shares,
        f"The likeliest mean of the clients; concentration {format_number(learned.concentration)} (small: each client has "
        f"few outcomes; large: all are like the mean).",
    ]


def _learned_record(found: LearnedAgreement) -> dict[str, Any]:
    """The report as JSON."""
    learned = found.learned
    return {
        "agreement": found.agreement.id,
        "mechanism": found.agreement.mechanism,
        "epsilon": learned.design.epsilon,
        "divergence": learned.design.divergence.name,
        "keep": learned.design.keep,
        "published": learned.published,
        "identifiable": found.is_identifiable,
        "better_under": learned.better,
        "confidence": learned.confidence,
        "expected_gain": json_number(learned.gain),
        "reason": learned.reason,
        "samples": learned.samples,
        "learned_from": [{"agreement": agreed.id, "samples": samples} for agreed, samples in found.rounds],
        "concentration": learned.concentration,
        "kinds": learned.kinds,
        "expected_gain_by_kind": learned.gain_by_kind,
        "better_by_kind": learned.better_by_kind,
        "held_out": {
            "samples": learned.held_out.samples,
            "log_likelihood": learned.held_out.log_likelihood,
            "rejected": list(learned.held_out.rejected),
        },
        "mean": [
            {"outcome": name, "share": float(share)} for name, share in zip(found.names, learned.mean, strict=True)
        ],
        "worst": json_number(float(learned.sampler.risk(learned.design.divergence))),
        "notes": list(found.doubts),
    }
