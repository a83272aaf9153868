"""Rewrite the numbers and pictures of docs/explanation/comparison.md from the records of a full run.

discreet reproduce population --out out/paper && python tools/update_comparison.py out/paper
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from discreet.plots.style import save
from discreet.research.experiments.population import SetAtBudget
from discreet.research.experiments.records import read
from discreet.research.figures.population import population_figures
from discreet.research.reports.contests import by_set
from discreet.research.reports.population_findings import contest_table, fidelity_table, findings

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "explanation" / "comparison.md"
SHOWN = ("population", "population-destinations", "population-lectures")
BLOCK = re.compile(r"(<!-- records: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sets_table(rows: Sequence[SetAtBudget]) -> str:
    body = [
        [row.title, f"{row.clients:,} {row.who}", str(row.outcomes), row.domain, row.source]
        for row in (those[0] for those in by_set(rows).values())
    ]
    return markdown(["set", "clients", "k", "public domain", "source"], body)


def main() -> None:
    run = read(Path(sys.argv[1]) / "records" / "population.jsonl", SetAtBudget)
    rows = run.rows
    blocks = {
        "sets": sets_table(rows),
        "findings": "".join(f"* **{headline}** {text}\n" for headline, text in findings(rows)),
        "contests": markdown(*contest_table(rows)),
        "fidelity": markdown(*fidelity_table(rows)),
    }
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda found: found[1] + blocks[found[2]] + found[3], text), encoding="utf-8")
    drawn = population_figures(run)
    for name in SHOWN:
        save(drawn[name], DOCS / "images" / f"{name}.png")


if __name__ == "__main__":
    main()
