"""`discreet design --from`: an agreement on a design learned from earlier private samples, or on the sampler that is safe without one."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet._files import check_apart as check_files_apart
from discreet._showing import json_number, pluralise
from discreet._tables._coding import Coding
from discreet._tables._sources import file_source
from discreet.agreement import Agreement, ContinuousTerms, learned_purpose
from discreet.cli._agreed import agreement_of
from discreet.cli._printing import number, plain, table
from discreet.collect._opening import is_store, open_store
from discreet.design import Learned, learn
from discreet.errors import DiscreetError
from discreet.estimation._speakers import check_clients_apart
from discreet.estimation._tallies import coding_and_sampler, tally
from discreet.families import Simplex
from discreet.mechanisms._sampler import Sampler

LISTED = 10  # outcomes of the mean that are shown


@dataclass(frozen=True)
class SampleFiles:
    """Files of samples or stores of collections, and the agreements they were made under; a file of `discreet sample` may carry its own."""

    samples: tuple[str, ...]
    agreements: tuple[Path, ...]
    spread: str | None = None
    spread_agreement: Path | None = None

    def check(self, output: Path) -> None:
        """Refuse what does not go together, and an output that would replace what is read."""
        if self.agreements and len(self.agreements) != len(self.samples):
            raise DiscreetError(
                f"--from was given {len(self.samples)} times and --agreement {len(self.agreements)} times; give one agreement for each file "
                "of samples, in the same order, or none where the files carry theirs"
            )
        if self.spread_agreement is not None and self.spread is None:
            raise DiscreetError("--spread-agreement is that of --spread FILE; give both")
        for read in (*self.samples, *map(str, self.agreements), self.spread):
            check_files_apart(output, {"samples": read}, what="agreement")


@dataclass(frozen=True, eq=False)
class LearnedAgreement:
    """What was learned, from which agreements, on which outcomes."""

    learned: Learned
    rounds: tuple[tuple[Agreement, int], ...]
    agreement: Agreement
    names: Sequence[Any]
    doubts: tuple[str, ...]


def learn_agreement(
    released: SampleFiles,
    *,
    epsilon: float,
    divergence: str,
    keep: float,
    confidence: float,
    rounds: int,
    purpose: str,
    told: Callable[[str], None],
) -> LearnedAgreement:
    """Read every file, learn, and state the agreement."""

    told("reading the samples")
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
    told(f"learning from {sum(int(counts.sum()) for _, _, counts in read):,} samples on {family.size:,} outcomes")
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
    agreement = Agreement.of(found.sampler, rounds=rounds, purpose=learned_purpose(purpose, ids))
    doubts = [] if distinct else ["not all files name their clients; that nobody spoke twice is taken on trust"]
    if any(one.source is None and agreed.rounds > 1 for one in given for agreed, *_ in one.rounds):
        doubts.append("of a collection in several rounds the first is learned from: a client speaks in each of them")
    rounds_read = tuple((agreed, int(counts.sum())) for agreed, _, counts in read)
    return LearnedAgreement(found, rounds_read, agreement, domain.names, tuple(doubts))


@dataclass(frozen=True, eq=False)
class _SampleSource:
    """What one name stands for: (agreement, sampler, counts) of each agreement; the table they were read from, if it is one."""

    rounds: list[tuple[Agreement, Sampler[Any], Any]]
    source: Any = None


def _read_samples(name: str, path: Path | None) -> _SampleSource:
    """The samples of a file, under the agreement that it carries or that is named; or those of a collection in a store."""
    if is_store(name):
        return _SampleSource(_read_store(name, path))
    source = file_source(name)
    agreed = agreement_of(source, path)
    coding, sampler = _outcomes(agreed)
    return _SampleSource([(agreed, sampler, tally(source, agreed, coding).counts)], source)


def _read_store(name: str, path: Path | None) -> list[tuple[Agreement, Sampler[Any], Any]]:
    """What was counted under every agreement of a collection: the only one of a store, or that of the agreement that is named."""
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
    rounds = [(agreed, _outcomes(agreed)[1], counts) for agreed, counts in counted if counts.any()]
    if not rounds:
        raise DiscreetError("the store holds no samples yet; there is nothing to learn from")
    return rounds


def _outcomes(agreed: Agreement) -> tuple[Coding, Sampler[Any]]:
    """How samples are read, and the sampler."""
    if isinstance(agreed.family, ContinuousTerms):
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is on {agreed.family.description}; a design is learned from samples on a list of outcomes, or on the "
            "equal cells of an interval (--bounds LO HI --cells N)"
        )
    return coding_and_sampler(agreed)


def learned_report(found: LearnedAgreement) -> list[Any]:
    """What people read."""
    learned = found.learned
    shares = table("outcome", "mean, %")
    for place in (-learned.mean).argsort()[:LISTED].tolist():
        shares.add_row(plain(found.names[place], most=200), f"{100 * learned.mean[place]:.1f}")
    made = "a designed sampler" if learned.published else "no design"
    under, samples = pluralise(len(found.rounds), "agreement"), pluralise(learned.samples, "private sample")
    return [
        f"[bold]Learned from {samples}[/bold] under {under}: {made}, epsilon = {learned.design.epsilon:g}.",
        *(f"[bold red]Note[/bold red]: {plain(doubt)}." for doubt in found.doubts),
        f"Why: {plain(learned.reason)} (expected gain {learned.gain:.0%}). That is judged within a model of the clients: spread around a "
        "mean, in clusters, or of one value each; private samples cannot tell whether they are such.",
        f"[bold red]Note[/bold red]: serve other clients. Who spoke under {_short_ids(found)} would spend a second budget. The agreement "
        "names these in its purpose; `discreet collect --follows` sees to it that nobody speaks in both.",
        shares,
        f"The likeliest mean of the clients; concentration {number(learned.concentration)} (small: each client holds few outcomes; large: "
        "all are like the mean).",
    ]


def _short_ids(found: LearnedAgreement) -> str:
    return ", ".join(one[:12] for one in found.agreement.learned_from)


def learned_record(found: LearnedAgreement) -> dict[str, Any]:
    """The same as JSON."""
    learned = found.learned
    return {
        "agreement": found.agreement.id,
        "mechanism": found.agreement.mechanism,
        "epsilon": learned.design.epsilon,
        "divergence": learned.design.divergence.name,
        "keep": learned.design.keep,
        "published": learned.published,
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
