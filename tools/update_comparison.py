"""Rewrite the numbers and pictures of the pages on experiments from the records of a full run; those of parts not run stay.

discreet reproduce population --out out/paper && python tools/update_comparison.py out/paper     # docs/explanation/comparison.md
discreet reproduce follow-up --out out/paper && python tools/update_comparison.py out/paper      # docs/explanation/follow-up.md
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.plots._style import save
from discreet.research._reports._designs import (
    closed_gap_table,
    design_divergences_table,
    design_figure,
    design_findings,
    gain_by_kept_worst_case_table,
    learned_design_findings,
    reweighted_estimate_errors_table,
    reweighted_estimate_findings,
    shifted_clients_findings,
    shifted_clients_table,
)
from discreet.research._reports._follow_up import (
    follow_up_figures,
    follow_up_findings as follow_up_findings,
    minimax_values_table,
    mixture_divergences_table,
    ordered_distances_table,
    published_numbers_table,
)
from discreet.research._reports._population import (
    best_sample_against_best_oracle_table,
    client_divergences_table,
    estimate_errors_table,
    population_figures,
    population_findings,
    raw_sample_bias_table,
    recorded_own_outcome_rates_table,
    rows_by_set,
)
from discreet.research.experiments import RecordedRun, read_records
from discreet.research.experiments._designs import DesignedSplit, KeptAtBudget, LearnedRun, ShiftedDesign
from discreet.research.experiments._follow_up import FiniteClasses, MixtureClasses, OrderedSet, PlaneLaw
from discreet.research.experiments._population import REWEIGHTED_BUDGETS, SKEWS, ReweightedSet, SetAtBudget

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (
    DOCS / "explanation" / "comparison.md",
    DOCS / "explanation" / "follow-up.md",
    DOCS / "how-to" / "transport.md",
)
SHOWN = ("population", "population-destinations", "population-lectures")
BLOCK = re.compile(r"(<!-- records: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sets_table(rows: Sequence[SetAtBudget]) -> str:
    body = [
        [row.title, f"{row.clients:,} {row.who}", str(row.outcomes), row.domain, row.source]
        for row in (those[0] for those in rows_by_set(rows).values())
    ]
    return markdown(["set", "clients", "k", "public domain", "source"], body)


def listed(findings: Sequence[tuple[str, str]]) -> str:
    return "".join(f"* **{headline}** {text}\n" for headline, text in findings)


def learned_blocks(records: Path) -> dict[str, str]:
    """Designs learned privately, and the population behind designed samples, where these were run."""
    blocks = {}
    if (records / "learned.jsonl").exists():
        learned = read_records(records / "learned.jsonl", LearnedRun).rows
        blocks["learned"] = listed(learned_design_findings(learned))
        blocks |= {
            f"learned_{times}": markdown(*closed_gap_table(learned, times)) for times in {row.times for row in learned}
        }
    if (records / "reweighted.jsonl").exists():
        reweighted = read_records(records / "reweighted.jsonl", ReweightedSet).rows
        blocks["reweighted"] = listed(reweighted_estimate_findings(reweighted))
        for drawn in SKEWS:
            blocks[f"reweighted_{drawn}"] = markdown(*reweighted_estimate_errors_table(reweighted, drawn))
            blocks[f"squared_{drawn}"] = markdown(*reweighted_estimate_errors_table(reweighted, drawn, squared=True))
    return blocks


def population_blocks(records: Path) -> dict[str, str]:
    path = records / "population.jsonl"
    if not path.exists():
        return {}
    run = read_records(path, SetAtBudget)
    drawn, told = population_figures(run), [row for row in run.rows if row.epsilon in REWEIGHTED_BUDGETS]
    for name in SHOWN:
        save(drawn[name], DOCS / "images" / f"{name}.png")
    return {
        "sets": sets_table(run.rows),
        "findings": listed(population_findings(run.rows)),
        "contests": markdown(*best_sample_against_best_oracle_table(run.rows)),
        "shares": markdown(*estimate_errors_table(told)),
        "shares_squared": markdown(*estimate_errors_table(told, "mse")),
        "fidelity": markdown(*client_divergences_table(run.rows)),
        "bias": markdown(*raw_sample_bias_table(run.rows)),
        "own": markdown(*recorded_own_outcome_rates_table(run.rows)),
    }


def design_blocks(records: Path) -> dict[str, str]:
    paths = {name: records / f"{name}.jsonl" for name in ("designs", "keeps", "shifts")}
    if not all(path.exists() for path in paths.values()):
        return {}
    run, shifts = read_records(paths["designs"], DesignedSplit), read_records(paths["shifts"], ShiftedDesign).rows
    save(design_figure(run), DOCS / "images" / "designs.png")
    return {
        "designs": listed(design_findings(run.rows)),
        **{
            f"designs_{name}": markdown(*design_divergences_table(run.rows, name)) for name in ("kl", "tv", "hellinger")
        },
        "keeps": markdown(*gain_by_kept_worst_case_table(read_records(paths["keeps"], KeptAtBudget).rows)),
        "shifts": listed(shifted_clients_findings(shifts)),
        "shifts_kl": markdown(*shifted_clients_table(shifts)),
    }


def follow_up_blocks(records: Path) -> dict[str, str]:
    kinds = {
        "local_finite": FiniteClasses,
        "local_mixtures": MixtureClasses,
        "local_plane": PlaneLaw,
        "ordered": OrderedSet,
    }
    if not all((records / f"{name}.jsonl").exists() for name in kinds):
        return {}
    runs: dict[str, RecordedRun[Any]] = {
        name: read_records(records / f"{name}.jsonl", kind) for name, kind in kinds.items()
    }
    for name, drawn in follow_up_figures(runs).items():
        save(drawn, DOCS / "images" / f"follow-up-{name.removeprefix('local_')}.png")
    finite, mixtures, ordered = (runs[name].rows for name in ("local_finite", "local_mixtures", "ordered"))
    shown = [row for row in mixtures if row.budget == 1.0]
    return {
        "follow_up": listed(follow_up_findings(runs)),
        "follow_up_published": markdown(*published_numbers_table(finite, mixtures)),
        "follow_up_minimax": markdown(*minimax_values_table([row for row in finite if row.budget == 1.0], 10)),
        "follow_up_mixtures": markdown(*mixture_divergences_table(shown)),
        "ordered": markdown(*ordered_distances_table([row for row in ordered if row.set in ("delays", "cholesterol")])),
        "ordered_all": markdown(*ordered_distances_table(ordered)),
    }


def main() -> None:
    """What has no records in the folder stays as it is."""
    records = Path(sys.argv[1]) / "records"
    blocks = {
        **population_blocks(records),
        **design_blocks(records),
        **learned_blocks(records),
        **follow_up_blocks(records),
    }
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        changed = BLOCK.sub(
            lambda found: found[1] + blocks[found[2]] + found[3] if found[2] in blocks else found[0], text
        )
        page.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
