"""What the records of designs say: who has the smallest mean on clients nobody looked at, how far above the floor; when it stops paying."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.plots._labels import divergence_label
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._design_keeps import KeptAtBudget
from discreet.research.experiments._design_shifts import SAFE, ShiftedDesign
from discreet.research.experiments._designs import DESIGN_RIVALS, DesignedSplit

Table = tuple[list[str], list[list[str]]]
Finding = tuple[str, str]

SAMPLER_LABELS = {
    "optimal": "Q*",
    "linear": "linear",
    "mollifier": "mollifier",
    "uniform": "best uniform",
    "designed": "designed",
    "elsewhere": "designed elsewhere",
    "home": "designed at home",
}


@dataclass(frozen=True)
class DesignCase:
    """One set at one budget: means over the splits."""

    splits: tuple[DesignedSplit, ...]

    @property
    def title(self) -> str:
        return self.splits[0].title

    @property
    def epsilon(self) -> float:
        return self.splits[0].epsilon

    @property
    def floor(self) -> float:
        """The certified floor, averaged over the splits."""
        return statistics.fmean(row.floor for row in self.splits)

    @property
    def above_floor(self) -> float:
        """The design's mean KL as a multiple of the floor."""
        return self.mean("designed", "kl") / self.floor

    @property
    def undesigned_splits(self) -> int:
        """In how many splits the examples did not speak for a design."""
        return sum(row.parts is None for row in self.splits)

    def mean(self, sampler: str, divergence: str) -> float:
        return statistics.fmean(row.means[sampler][divergence] for row in self.splits)

    def won(self, divergence: str) -> bool:
        """Whether the design's mean is smaller than that of every other sampler."""
        return all(self.mean("designed", divergence) < self.mean(rival, divergence) for rival in DESIGN_RIVALS)


def cases(rows: Sequence[DesignedSplit]) -> list[DesignCase]:
    """Sets in their recorded order, budgets in theirs."""
    found: dict[tuple[str, float], list[DesignedSplit]] = {}
    for row in rows:
        found.setdefault((row.set, row.epsilon), []).append(row)
    return [DesignCase(tuple(those)) for those in found.values()]


def design_findings(rows: Sequence[DesignedSplit]) -> list[Finding]:
    """What the comparison says, in sentences."""
    found = cases(rows)
    wins = ", ".join(f"{divergence_label(f)} {sum(case.won(f) for case in found)}" for f in PAPER_DIVERGENCES)
    lost = [case for case in found if not all(case.won(f) for f in PAPER_DIVERGENCES)]
    above = [case.above_floor - 1.0 for case in found]
    far = [case for case in found if case.above_floor > 1.1]
    exact = [row.exact_gap for row in rows if row.exact_gap is not None]
    said = [
        (
            "Who has the smallest mean.",
            f"Of {len(found)} cases the design has a smaller mean than Q*, the linear mechanism, the mollifier and the best uniform floor "
            f"in: {wins}." + (f" It does not on {_where(lost)}." if lost else ""),
        ),
        (
            "How far from what is possible.",
            f"Its mean KL is {statistics.median(above):.1%} above the certified floor in the median, and {max(above):.0%} at worst"
            + (f"; more than 10% on {_where(far)}." if far else "."),
        ),
        (
            "Certificates.",
            f"The floors are within {max(row.gap for row in rows):.1e} of what a design for the served clients themselves reaches, "
            f"relatively, in all {len(rows)} splits"
            + (
                f"; in rationals, from the integers that are drawn with, within {max(exact):.1e} in the {len(exact)} that were checked so."
                if exact
                else "."
            ),
        ),
        (
            "The worst case.",
            f"The least share of the best worst case that is left is {min(row.kept for row in rows):.3g}.",
        ),
    ]
    stayed = [case for case in found if case.undesigned_splits]
    if stayed:
        told = ", ".join(f"{case.title} at ε = {case.epsilon:g}: {case.undesigned_splits}" for case in stayed)
        said.append(
            (
                "Where the examples did not speak for a design.",
                f"Splits in which Q* or the best uniform floor stayed ({told}).",
            )
        )
    return said


def _where(found: Sequence[DesignCase]) -> str:
    budgets: dict[str, list[str]] = {}
    for case in found:
        budgets.setdefault(case.title, []).append(f"{case.epsilon:g}")
    return "; ".join(f"{title} at ε = {', '.join(those)}" for title, those in budgets.items())


def design_table(rows: Sequence[DesignedSplit], divergence: str) -> Table:
    """Mean divergence by sampler, set and budget."""
    found = cases(rows)
    epsilons = sorted({case.epsilon for case in found})
    body = []
    for title in dict.fromkeys(case.title for case in found):
        those = {case.epsilon: case for case in found if case.title == title}
        for place, name in enumerate((*DESIGN_RIVALS, "designed")):
            cells = [_number(those[epsilon].mean(name, divergence)) for epsilon in epsilons]
            body.append(["" if place else title, SAMPLER_LABELS[name], *cells])
        if divergence == "kl":
            body.append(
                ["", "no sampler is below", *(_number(those[epsilon].floor, down=True) for epsilon in epsilons)]
            )
    return ["set", "sampler", *(f"ε = {epsilon:g}" for epsilon in epsilons)], body


def keep_table(rows: Sequence[KeptAtBudget]) -> Table:
    """What each `keep` gains over Q* in mean KL, and the most that any sampler could gain."""
    keeps = [one.keep for one in rows[0].kept]
    body = []
    for row in rows:
        cells = [f"{row.gain(keep):.1%} of at most {row.most(keep) + 5e-4:.1%}" for keep in keeps]
        body.append([row.title, f"{row.epsilon:g}", _number(row.mean), *cells])
    return ["set", "ε", "mean KL of Q*", *(f"keep = {keep:g}" for keep in keeps)], body


def shift_table(rows: Sequence[ShiftedDesign]) -> Table:
    """Mean KL on clients of another kind than the examples."""
    names = (*SAFE, "elsewhere", "home")
    body = []
    for row in rows:
        first = row.epsilon == min(one.epsilon for one in rows if one.shift == row.shift)
        told = [f"{row.title}: {row.made_on} ({row.examples:,}), serving {row.kind} ({row.served:,})" if first else ""]
        cells = [_number(row.means[name]) for name in names]
        body.append([*told, f"{row.epsilon:g}", *cells, _number(row.floor, down=True), "yes" if row.pays else "no"])
    return ["made on, serving", "ε", *(SAMPLER_LABELS[name] for name in names), "no sampler is below", "pays"], body


def shift_findings(rows: Sequence[ShiftedDesign]) -> list[Finding]:
    """Where a design made elsewhere is worth having, and where it is not."""
    kinds = {row.shift: [one for one in rows if one.shift == row.shift] for row in rows}
    named = {name: f"{those[0].title} ({those[0].made_on}, serving {those[0].kind})" for name, those in kinds.items()}
    pays = [name for name, those in kinds.items() if all(one.pays for one in those)]
    fails = [name for name, those in kinds.items() if not any(one.pays for one in those)]
    mixed = [name for name in kinds if name not in (*pays, *fails)]
    said = []
    if pays:
        told = "; ".join(f"{named[name]} {_range(kinds[name])}" for name in pays)
        said.append(
            (
                "Where a design made elsewhere pays.",
                f"Share of the way from the best of Q*, mollifier and best uniform to the floor: {told}.",
            )
        )
    if mixed:
        told = "; ".join(
            f"{named[name]}, at ε = {', '.join(f'{one.epsilon:g}' for one in kinds[name] if one.pays)} only"
            for name in mixed
        )
        said.append(("Where it depends.", f"{told}."))
    if fails:
        told = "; ".join(
            f"{named[name]}: mean KL {min(one.means['elsewhere'] / min(one.means[safe] for safe in SAFE) for one in kinds[name]):.1f} to "
            f"{max(one.means['elsewhere'] / min(one.means[safe] for safe in SAFE) for one in kinds[name]):.1f} times that of the best of them"
            for name in fails
        )
        said.append(("Where it stops paying.", f"{told}. Privacy is the same; it is the mean that is lost."))
    return said


def _range(rows: Sequence[ShiftedDesign]) -> str:
    closed = [row.gap_share for row in rows]
    return f"{min(closed):.0%} to {max(closed):.0%}"


def _number(value: float, *, down: bool = False) -> str:
    """Four digits; a floor is rounded down."""
    if value < 0.1:
        text = f"{value:.3g}"
        return f"{value * (1 - 5e-3):.3g}" if down and float(text) > value else text
    return f"{value - (5e-4 if down else 0.0):.3f}"
