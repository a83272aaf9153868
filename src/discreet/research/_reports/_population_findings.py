"""What the records of the population experiment say, in sentences and small tables; every number is computed from them."""

from collections import Counter
from collections.abc import Sequence

from discreet.plots._labels import divergence_label
from discreet.research._reports._contests import (
    ORACLES,
    REPORT_LABELS,
    SAMPLES,
    SHORT_LABELS,
    Contest,
    by_set,
    mean_error,
)
from discreet.research._reports._summaries import recorded_epsilons
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._population import SetAtBudget

Finding = tuple[str, str]  # the headline, and what follows it
_ALIKE = 1e-9


def population_findings(rows: Sequence[SetAtBudget]) -> list[Finding]:
    """Wins on both sides, and why; each with its numbers."""
    contests = [Contest(row) for row in rows]
    found = [
        *_oracle_wins(contests),
        *_sample_wins(contests),
        *_same_mechanism(rows),
        *_nothing_learnt(contests),
        _bias(rows),
        *_half_a_coin(rows),
        _average_clients(rows),
        _worst_clients(rows),
    ]
    return [*found, *_own_records(rows)]


def contest_table(rows: Sequence[SetAtBudget]) -> tuple[list[str], list[list[str]]]:
    """Best sample and best oracle with their TV errors: a line for each set, a column for each budget."""
    head = ["set", *(f"ε = {epsilon:g}" for epsilon in recorded_epsilons(rows))]
    body = []
    for those in by_set(rows).values():
        cells = []
        for contest in map(Contest, those):
            mark = {"sample": "sample", "oracle": "oracle", None: "either"}[contest.winner]
            numbers = f"{mean_error(contest.row, contest.sample):.3f} / {mean_error(contest.row, contest.oracle):.3f}"
            cells.append(f"{mark}: {numbers}" + ("" if contest.informative else " †"))
        body.append([_set_label(those[0]), *cells])
    return head, body


def fidelity_table(rows: Sequence[SetAtBudget], divergence: str = "tv") -> tuple[list[str], list[list[str]]]:
    """Mean (worst) divergence of a client under each mechanism: a line for each set and mechanism, a column for each budget."""
    head = ["set", "mechanism", *(f"ε = {epsilon:g}" for epsilon in recorded_epsilons(rows))]
    body = []
    for those in by_set(rows).values():
        for name in SAMPLES:
            told = [
                f"{row.realised[name][divergence].mean:.3f} ({row.realised[name][divergence].worst:.3f})"
                for row in those
            ]
            body.append([_set_label(those[0]) if name == SAMPLES[0] else "", SHORT_LABELS[name], *told])
    return head, body


def _set_label(row: SetAtBudget) -> str:
    return f"{row.title} (k = {row.outcomes}, n = {row.clients:,})"


def _at(row: SetAtBudget) -> str:
    return f"{row.title} at ε = {row.epsilon:g}"


def _against(contest: Contest) -> str:
    return (
        f"{REPORT_LABELS[contest.sample]} {mean_error(contest.row, contest.sample):.3f}, {REPORT_LABELS[contest.oracle]} "
        f"{mean_error(contest.row, contest.oracle):.3f}"
    )


def _where(rows: Sequence[SetAtBudget]) -> str:
    """The places in words: film genres at ε = 0.5, 1; lecture ratings at ε = 2."""
    budgets = {those[0].title: ", ".join(f"{row.epsilon:g}" for row in those) for those in by_set(rows).values()}
    return "; ".join(f"{title} at ε = {listed}" for title, listed in budgets.items())


def _oracle_wins(contests: Sequence[Contest]) -> list[Finding]:
    won = [contest for contest in contests if contest.winner == "oracle"]
    if not won:
        return []
    most = max(won, key=lambda contest: contest.ratio)
    return [
        (
            "Where an oracle wins.",
            f"For the histogram alone an oracle is closer than any sample in {len(won)} of {len(contests)} cases "
            f"({_where([contest.row for contest in won])}). By most on {_at(most.row)}: {_against(most)}.",
        )
    ]


def _sample_wins(contests: Sequence[Contest]) -> list[Finding]:
    won = [contest for contest in contests if contest.winner == "sample"]
    worth = [contest for contest in won if contest.informative]
    if not won:
        return []
    said = f"A sample is closer in {len(won)} of {len(contests)} cases."
    if worth:
        least = min(worth, key=lambda contest: contest.ratio)
        kinds = Counter(SHORT_LABELS[contest.sample] for contest in worth)
        said += (
            f" In {len(worth)} of them it also beats the uniform law by a tenth or more ({_where([contest.row for contest in worth])}); "
            f"the best kind is {', '.join(f'{name} in {count}' for name, count in kinds.most_common())}. "
            f"By most on {_at(least.row)}: {_against(least)}."
        )
    optimal = [Contest(contest.row, ("optimal",)) for contest in contests]
    alone = [contest.row for contest in optimal if contest.winner == "sample" and contest.sample_informs]
    if alone:
        said += f" Q* samples alone do both on {_where(alone)}."
    return [("Where a sample wins.", said)]


def _same_mechanism(rows: Sequence[SetAtBudget]) -> list[Finding]:
    alike = [row for row in rows if row.subset_size == 1]
    if not alike:
        return []
    starts = "; ".join(f"{those[0].title} ε ≥ {those[0].epsilon:g}" for those in by_set(alike).values())
    return [
        (
            "Where they are the same.",
            f"Once subset selection reports a single outcome it is k-ary randomised response, and so the linear sampler ({starts}). From "
            "there on the best oracle's report is a sample.",
        )
    ]


def _nothing_learnt(contests: Sequence[Contest]) -> list[Finding]:
    idle = [contest.row for contest in contests if not contest.informative]
    if not idle:
        return []
    return [
        (
            "Where asking is hardly worth it.",
            f"In {len(idle)} cases nothing private is a tenth closer than the uniform distribution, which takes no data at all "
            f"({_where(idle)}). "
            "A biased sample that falls back on uniform then looks good beside a noisy oracle; neither has learnt much.",
        )
    ]


def _nearest_to(rows: Sequence[SetAtBudget], epsilon: float) -> list[SetAtBudget]:
    """Each set at the recorded budget nearest to the one asked for."""
    return [min(those, key=lambda row: abs(row.epsilon - epsilon)) for those in by_set(rows).values()]


def _bias(rows: Sequence[SetAtBudget]) -> Finding:
    shown = _nearest_to(rows, 1.0)
    told = [
        f"{row.title} {row.bias['optimal']:.3f} of {mean_error(row, 'optimal', projected=False):.3f}" for row in shown
    ]
    return (
        "Samples of Q* taken as they are carry a bias that no number of clients removes.",
        f"At ε = {shown[0].epsilon:g}, bias of total error: {', '.join(told)}. "
        "With ever more clients every unbiased estimate overtakes them.",
    )


def _half_a_coin(rows: Sequence[SetAtBudget]) -> list[Finding]:
    last = [row for row in rows if row.epsilon == max(recorded_epsilons(rows))]
    ratios = [mean_error(row, name) / mean_error(row, "raw") for row in last for name in ("unary", "hashing")]
    best = [min(mean_error(row, name) for name in SAMPLES) / mean_error(row, "raw") for row in last]
    return [
        (
            "Unary encoding and local hashing do not use a large budget.",
            f"Their own-outcome chance stays near one half, so at ε = {last[0].epsilon:g} their error is {min(ratios):.2f} to "
            f"{max(ratios):.2f} times that of the raw draws; the best sample's is {min(best):.2f} to {max(best):.2f} times.",
        )
    ]


def _average_clients(rows: Sequence[SetAtBudget]) -> Finding:
    parts = []
    for f in ("tv", "kl", "hellinger"):
        best = Counter(min(SAMPLES, key=lambda name: row.realised[name][f].mean) for row in rows)
        parts.append(f"{divergence_label(f)}: " + ", ".join(f"{SHORT_LABELS[name]} {best[name]}" for name in SAMPLES))
    gain = max(rows, key=lambda row: row.realised["optimal"]["tv"].mean - row.realised["mollifier"]["tv"].mean)
    means = [gain.realised[name]["tv"].mean for name in ("mollifier", "optimal")]
    return (
        "The average client.",
        f"Smallest mean divergence, by number of cases of {len(rows)}: {'; '.join(parts)}. By most on {_at(gain)}: mean TV {means[0]:.3f} "
        f"(mollifier) against {means[1]:.3f} (Q*). Both boxes have the same ratio e^ε. That of Q* is placed for a client that holds a single "
        "outcome, which makes its worst case the best there is; a client that holds several is served better with a lower floor.",
    )


def _worst_clients(rows: Sequence[SetAtBudget]) -> Finding:
    lead = {row.unit: row.realised["mollifier"]["tv"].worst - row.realised["optimal"]["tv"].worst for row in rows}
    behind = [row for row in rows if lead[row.unit] <= 0.0]
    most = max(rows, key=lambda row: lead[row.unit])
    pairs = [(row.realised["optimal"][f], row.realised["linear"][f]) for row in rows for f in PAPER_DIVERGENCES]
    above = sum(
        more > less + _ALIKE
        for ours, theirs in pairs
        for more, less in ((ours.mean, theirs.mean), (ours.median, theirs.median), (ours.worst, theirs.worst))
    )
    said = f"The largest TV of a client is smaller under Q* than under the mollifier in {len(rows) - len(behind)} of {len(rows)} cases"
    said += f" (not on {_where(behind)}, whose worst client is not the worst there could be)" if behind else ""
    worst = [most.realised[name]["tv"].worst for name in ("optimal", "mollifier")]
    return (
        "The worst client.",
        f"{said}; by most on {_at(most)}: {worst[0]:.3f} against {worst[1]:.3f}. Against the linear mechanism, mean, median or worst of any "
        f"of the three divergences is larger in {above} cases.",
    )


def _own_records(rows: Sequence[SetAtBudget]) -> list[Finding]:
    shown = _nearest_to(rows, 4.0)
    told = [
        f"{row.title} " + ", ".join(f"{SHORT_LABELS[name]} {row.own[name]:.0%}" for name in SAMPLES) for row in shown
    ]
    return [
        (
            "A sample is a record; a support is not.",
            f"At ε = {shown[0].epsilon:g} the released outcome is one that the client really holds for: {'; '.join(told)}. The reports of "
            f"{', '.join(REPORT_LABELS[name] for name in ORACLES)} become data only after the curator has added them up.",
        )
    ]
