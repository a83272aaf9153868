"""Pictures, findings and pages of the experiments. They read records and compute nothing that a record could hold.

Here is what all reports share: a self-contained page with findings and tables, titles and marks of pictures, and the summary of clients'
costs by mean, median and quantiles beside the maximum. `write_report` draws the pictures of a report and writes its page.
"""

import base64
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._base import imports_on_first_use
from discreet.plots import Axes, Figure, save
from discreet.research.experiments import MixtureClient, RecordedRun

with imports_on_first_use(globals()):
    from discreet.research._reports._designs import (
        design_findings as design_findings,
        learned_design_findings as learned_design_findings,
        reweighted_estimate_findings as reweighted_estimate_findings,
        shifted_clients_findings as shifted_clients_findings,
    )
    from discreet.research._reports._follow_up import follow_up_findings as follow_up_findings
    from discreet.research._reports._population import population_findings as population_findings

__all__: list[str] = []

Runs = Mapping[str, RecordedRun[Any]]  # by experiment
Pictures = Mapping[str, bytes]  # PNG by name
Table = tuple[list[str], list[list[str]]]  # the head, and the body row by row

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.7em } h2 { margin-top: 2.2em; border-bottom: 1px solid #ddd } img { max-width: 100% }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0 } th, td { padding: .22em .8em; text-align: right }
th { border-bottom: 1px solid #999 } td.text, th.text { text-align: left } tr.rule td { border-top: 1px solid #ddd }
.quick { background: #fdecea; color: #b00020; padding: .6em 1em; font-weight: 600 } .quiet { color: #777 } li { margin: .5em 0 }
"""


def html_table(head: Sequence[str], body: Sequence[Sequence[object]], texts: int = 1, rule_on: int | None = 0) -> str:
    """A table, the first `texts` columns flush left, a rule above each new value in column `rule_on`."""

    def html_cell(column: int, tag: str, value: object) -> str:
        text = f"{value:.6f}" if isinstance(value, float) else html.escape(str(value))
        return f"<{tag} class='text'>{text}</{tag}>" if column < texts else f"<{tag}>{text}</{tag}>"

    rows, last = [], None
    for line in body:
        is_new = rule_on is not None and line[rule_on] != last
        last = line[rule_on] if rule_on is not None else None
        rows.append(
            f"<tr{' class=rule' if is_new else ''}>"
            + "".join(html_cell(i, "td", v) for i, v in enumerate(line))
            + "</tr>"
        )
    return f"<table><tr>{''.join(html_cell(i, 'th', v) for i, v in enumerate(head))}</tr>{''.join(rows)}</table>"


Finding = tuple[str, str]  # the headline, and what follows it


def findings_as_html_items(findings: Iterable[Finding]) -> list[str]:
    """Findings as the items of a list."""
    return [f"<b>{html.escape(headline)}</b> {html.escape(text)}" for headline, text in findings]


def html_page(
    title: str, heading: str, intro: str, *, quick: str | None, findings: Sequence[str], parts: Iterable[str]
) -> str:
    """A self-contained page: what it is, what a quick run leaves out (None: it is a full one), the findings, and the rest."""
    return "\n".join([
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>discreet: {title}</title>",
        f"<style>{STYLE}</style><h1>{heading}</h1>",
        f"<p>{intro}</p>",
        *([] if quick is None else [f"<p class='quick'>QUICK RUN: {quick}</p>"]),
        "<h2>Findings</h2><ol>",
        *(f"<li>{finding}</li>" for finding in findings),
        "</ol>",
        *parts,
        "</html>\n",
    ])  # fmt: skip


def picture_html(pictures: Pictures, name: str) -> str:
    """A picture of PNG bytes, held by the page itself."""
    return f"<img alt='{name}' src='data:image/png;base64,{base64.b64encode(pictures[name]).decode()}'>"


def set_figure_title(figure: Figure, title: str, size: float = 13) -> None:
    """Write the title of a picture at its upper left."""
    figure.suptitle(title, x=0.012, ha="left", fontsize=size, fontweight="bold")


def write_quick_run_mark(figure: Figure, mark: str = "QUICK RUN") -> None:
    """Mark a picture of a quick run."""
    figure.text(0.995, 0.985, mark, ha="right", va="top", fontsize=9, color="#B00020", fontweight="bold")


def add_common_legend(figure: Figure, axes: Axes, names: Sequence[str] | None = None) -> None:
    """Add one legend below all panels, of the labels in one of them: those wanted, or all."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    labels = list(handles) if names is None else list(names)
    shown_handles = [handles[label] for label in labels]
    figure.legend(shown_handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)


def draw_density_image(
    axes: Axes, density: Sequence[float], half_width: float, *, colours: str, brightest: float
) -> Any:
    """Draw a density on a square grid around the origin, recorded row by row from below, and return the image."""
    side = round(len(density) ** 0.5)
    image = axes.imshow(
        np.reshape(density, (side, side)), origin="lower", extent=(-half_width, half_width, -half_width, half_width),
        cmap=colours, vmin=0.0, vmax=brightest, interpolation="bilinear",
    )  # fmt: skip
    axes.grid(visible=False)
    axes.set_xticks([-2, 0, 2])
    axes.set_yticks([-2, 0, 2])
    return image


_GAP = 0.062  # between two names, as a share of the panel's height


def draw_named_curves(axes: Axes, budgets: Sequence[float], lines: Mapping[str, tuple[list[float], str, Any]]) -> None:
    """Draw curves on two logarithmic axes, each named beside its right end; names that would collide are moved apart.

    `lines` gives the values, colour and dashes of each curve by name.
    """
    for values, colour, dashes in lines.values():
        axes.plot(
            budgets, values, color=colour, linestyle=dashes, marker="o", markersize=3.2, linewidth=1.8, clip_on=False
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(budgets[0], budgets[-1])
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("privacy budget ε")
    lowest, highest = (pick(v for values, *_ in lines.values() for v in values) for pick in (min, max))
    axes.set_ylim(0.8 * lowest, 1.25 * highest)
    ticks = [d * 10.0**e for e in range(-12, 3) for d in (1, 2, 5) if 0.8 * lowest <= d * 10.0**e <= 1.25 * highest]
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if np.isclose(np.log10(tick) % 1.0, 0.0) or np.isclose(np.log10(tick) % 1.0, 1)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    low, high = np.log(axes.get_ylim())
    ends = {name: float((np.log(values[-1]) - low) / (high - low)) for name, (values, *_) in lines.items()}
    for name, height in move_heights_apart(ends, _GAP).items():
        axes.annotate(
            name,
            (1.0, ends[name]), (1.09, height), xycoords="axes fraction", textcoords="axes fraction",
            color=lines[name][1], fontsize=8.5, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#CCCCCC", "linewidth": 0.7, "shrinkA": 2, "shrinkB": 4, "relpos": (0, 0.5)},
        )  # fmt: skip


def move_heights_apart(ends: Mapping[str, float], gap: float) -> dict[str, float]:
    """The heights moved as little as possible (in squares) so that neighbours are at least `gap` apart, in the same order, none below 0."""
    order = sorted(ends, key=lambda name: ends[name])
    groups: list[tuple[float, int]] = []  # mean of (height - index * gap), members: pooled while they would overlap
    for index, name in enumerate(order):
        level, size = ends[name] - index * gap, 1
        while groups and groups[-1][0] >= level:
            neighbour, members = groups.pop()
            level, size = (neighbour * members + level * size) / (members + size), members + size
        groups.append((level, size))
    levels = [level for level, size in groups for _ in range(size)]
    return {name: max(level, 0.0) + index * gap for index, (name, level) in enumerate(zip(order, levels, strict=True))}


STATISTICS = ("mean", "median", "90 %", "maximum")


@dataclass(frozen=True)
class CostQuantiles:
    """The four numbers, in the order of `STATISTICS`."""

    mean: float
    median: float
    ninety_percent: float
    maximum: float

    @classmethod
    def from_values(cls, values: NDArray[np.float64]) -> "CostQuantiles":
        """The quantiles of these values."""
        return cls(float(values.mean()), float(np.median(values)), float(np.quantile(values, 0.9)), float(values.max()))

    @property
    def as_tuple(self) -> tuple[float, ...]:
        """The quantiles in the order of `STATISTICS`."""
        return astuple(self)


def recorded_client_costs(
    rows: Sequence[MixtureClient], epsilon: float, mechanism: str, divergence: str
) -> NDArray[np.float64]:
    """One mechanism's realised divergences at one epsilon, client by client."""
    return np.array([row.laws[mechanism].costs[divergence] for row in rows if row.epsilon == epsilon])


def recorded_mechanisms(rows: Sequence[MixtureClient]) -> list[str]:
    """The mechanisms in the records, in the order to show them."""
    order = ("proposed", "boosted", "boosted_corrected", "mollifier")
    return [name for name in order if name in rows[0].laws]


class RecordAtBudget(Protocol):
    """A record of one budget."""

    @property
    def epsilon(self) -> float: ...


class TitledRecordAtBudget(RecordAtBudget, Protocol):
    """A record of one set of clients at one budget."""

    @property
    def title(self) -> str: ...


def titles_with_budgets_text(rows: Iterable[TitledRecordAtBudget]) -> str:
    """Cases in words: film genres at ε = 0.5, 1; lecture ratings at ε = 2."""
    budgets: dict[str, list[str]] = {}
    for row in rows:
        budgets.setdefault(row.title, []).append(f"{row.epsilon:g}")
    return "; ".join(f"{title} at ε = {', '.join(texts)}" for title, texts in budgets.items())


def recorded_epsilons(rows: Sequence[RecordAtBudget]) -> list[float]:
    """The budgets in the records, smallest first."""
    return sorted({row.epsilon for row in rows})


def realised_epsilon_of_recorded_clients(rows: Sequence[MixtureClient], epsilon: float, mechanism: str) -> float:
    """The largest log-ratio between any two of these clients' output distributions, on the recorded grid."""
    logs = np.array([row.laws[mechanism].log_density for row in rows if row.epsilon == epsilon])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def hellinger_from_published_half(half: float) -> float:
    """The text's squared Hellinger distance from the published one, f = 1 - sqrt x, which is half of it."""
    return 2.0 * half


def published_divergences_by_name(kl: float, tv: float, half_hellinger: float | None = None) -> dict[str, float]:
    """Published divergences by name, with the text's Hellinger distance."""
    values = {"kl": kl, "tv": tv}
    return values if half_hellinger is None else {**values, "hellinger": hellinger_from_published_half(half_hellinger)}


def write_report(report: str, runs: Runs, folder: Path) -> Path:
    """Draw the pictures of one of `REPORTS` as .png and .pdf, write its page, and return the path of the page."""
    from discreet.research._reports import (
        _designs as designs,
        _follow_up as follow_up,
        _paper,
        _population as population,
    )

    figures: dict[str, Figure] = {}
    page: Callable[[Pictures], str]
    file, prefix = report, ""
    match report:
        case "paper":
            figures = {name: _paper.paper_figure(run) for name, run in runs.items()}
            file, page = "report", partial(_paper.paper_page, runs)
        case "follow-up":
            figures, prefix = follow_up.follow_up_figures(runs), "follow-up-"
            page = partial(follow_up.follow_up_page, runs)
        case "population":
            figures = population.population_figures(runs["population"])
            page = partial(population.population_page, runs["population"])
        case "designs":
            figures, page = {"designs": designs.design_figure(runs["designs"])}, partial(designs.design_page, runs)
        case _:
            page = partial(designs.learned_designs_page, runs)
    mark = ".quick" if any(run.header.quick for run in runs.values()) else ""
    pictures = {
        name: _save_picture_as_png_and_pdf(figure, folder / f"{prefix}{name}{mark}.png")
        for name, figure in figures.items()
    }
    path = folder / f"{file}.html"
    path.write_text(page(pictures), encoding="utf-8")
    return path


def _save_picture_as_png_and_pdf(figure: Figure, path: Path) -> bytes:
    """The picture as PNG bytes, after writing it as .png and .pdf."""
    save(figure, path.with_suffix(".pdf"))
    save(figure, path)
    return path.read_bytes()
