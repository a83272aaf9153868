"""What the records of `discreet reproduce follow-up` say: tables, findings and the page that holds them."""

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.plots._labels import divergence_label
from discreet.research import _published as published
from discreet.research._reports._pages import STYLE, html_table
from discreet.research.experiments._costs import PAPER_DIVERGENCES as SHOWN
from discreet.research.experiments._follow_up._finite import FiniteClasses
from discreet.research.experiments._follow_up._mixtures import MixtureClasses
from discreet.research.experiments._follow_up._notions import ClassAtBudget
from discreet.research.experiments._follow_up._plane import PlaneLaw
from discreet.research.experiments._ordered import ORDERED_MECHANISMS, OrderedSet
from discreet.research.experiments._records import RecordedRun

Table = tuple[list[str], list[list[str]]]
ORDERED_LABELS = {"transport": "transport", "optimal": "Q*", "mollifier": "mollifier", "laplace": "Laplace, clamped"}


def minimax_table(rows: Sequence[FiniteClasses], outcomes: int) -> Table:
    """Minimax values on so many outcomes, by the published calibration (none where its weight is 1 or more) and by ours."""
    head = ["notion", "class", *(f"{divergence_label(f)}, {whose}" for f in SHOWN for whose in ("theirs", "ours"))]
    body = []
    for row in rows:
        if row.outcomes == outcomes:
            for name, found in row.classes.items():
                values = [value for f in SHOWN for value in (found.published_minimax.get(f), found.minimax.get(f))]
                body.append([_notion(row), name, *map(_value_text, values)])
    return head, body


def mixture_table(rows: Sequence[MixtureClasses], divergence: str = "kl") -> Table:
    """The largest and the mean divergence of random mixtures: the published linear mechanism, the projection, and who is worse off."""
    head = ["clients", "notion", "class", "linear, largest", "projection, largest", "linear, mean", "projection, mean"]
    body = []
    for row in rows:
        for name, found in row.classes.items():
            one = found.pointwise[divergence]
            told = (one.linear, one.projection, one.linear_mean, one.projection_mean)
            body.append([row.title, _notion(row), name, *map(_value_text, told), _worse(found)])
    return [*head, "worse off, by any f"], body


def published_table(finite: Sequence[FiniteClasses], mixtures: Sequence[MixtureClasses]) -> Table:
    """Every published number beside ours; the Hellinger distance halved, as published."""
    body = []
    for row in finite:
        for name, found in row.classes.items() if row.outcomes == 10 else ():
            cited = published.FOLLOW_UP_FINITE.get((row.kind, row.budget, name), {})
            body += _beside(["10 outcomes, minimax", _notion(row), name], cited, found.minimax)
    for place in mixtures:
        for name, found in place.classes.items() if place.shape == "laplace" else ():
            for mechanism in ("projection", "linear"):
                cited = published.FOLLOW_UP_LAPLACE.get((place.kind, place.budget, name, mechanism), {})
                ours = {f: getattr(one, mechanism) for f, one in found.pointwise.items()}
                what = f"largest of {found.clients} mixtures, {mechanism}"
                body += _beside([what, _notion(place), name], cited, ours)
    return ["what", "notion", "class", "divergence", "published", "ours"], body


def _beside(what: list[str], cited: Mapping[str, float], ours: Mapping[str, float]) -> list[list[str]]:
    lines = []
    for f, value in cited.items():
        halved = published.text_hellinger(1.0) if f == "hellinger" else 1.0
        label = f"half {divergence_label(f)}" if f == "hellinger" else divergence_label(f)
        lines.append([*what, label, f"{value / halved:.6g}", _value_text(ours[f] / halved)])
    return lines


def ordered_table(rows: Sequence[OrderedSet]) -> Table:
    """Mean distances in the unit of each set; in brackets the worst client that holds one outcome only."""
    head = ["set", "ε", *(ORDERED_LABELS[name] for name in ORDERED_MECHANISMS), "no sampler below"]
    body = []
    for row in rows:
        cells = [
            f"{row.distances[name].mean:.4g} ({row.distances[name].single_outcome:.4g})" for name in ORDERED_MECHANISMS
        ]
        body.append([f"{row.title}, {row.measure}", f"{row.epsilon:g}", *cells, f"({row.certified:.4g})"])
    return head, body


def follow_up_findings(runs: Mapping[str, RecordedRun[Any]]) -> list[tuple[str, str]]:
    """What these records say, each with its number: a headline and a sentence."""
    finite, mixtures = runs["local_finite"].rows, runs["local_mixtures"].rows
    classes = [each for row in (*finite, *mixtures) for each in row.classes.values()]
    compared = sum(each.clients * len(each.pointwise) for each in classes)
    worse = sum(one.worse for each in classes for one in each.pointwise.values())
    excess = max(one.excess for each in classes for one in each.pointwise.values())
    said = [
        (
            "The projection is never worse than the published linear mechanism."
            if not worse
            else "The projection is worse somewhere.",
            f"In {compared:,} comparisons (client, divergence, class, notion) it is worse in {worse}; the most that it is farther by is "
            f"{max(excess, 0.0):.1e}, which is rounding.",
        )
    ]
    ratios = [one.projection / one.linear for each in _classes(mixtures) if (one := each.pointwise["kl"]).linear > 1e-6]
    said.append(
        (
            "How much it gains.",
            f"The largest KL of the random mixtures is {min(ratios):.2f} to {max(ratios):.2f} times the linear mechanism's, in the middle "
            f"{sorted(ratios)[len(ratios) // 2]:.2f}.",
        )
    )
    gaps = [
        _gap(each) for row in finite for name, each in row.classes.items() if name != "wide" and each.published_minimax
    ]
    wide = [(row, row.classes["wide"]) for row in finite if row.kind == "gaussian"]
    row, most = max(wide, key=lambda one: one[1].weight / one[1].published_weight)
    said.append(
        (
            "Both calibrations give one minimax value.",
            f"By the published infimum over beta and by the two corners of the trade-off function: they differ by {max(gaps):.1e} at "
            "most, relatively, on outcomes.",
        )
    )
    said.append(
        (
            "But for clients that are spread over more than half of the space.",
            f"There the published weight is less than the notion allows: on {row.outcomes} outcomes under {row.notion} it is "
            f"{most.published_weight:.4f} where {most.weight:.4f} is allowed, and the worst KL {most.published_minimax['kl']:.5f} where "
            f"{most.minimax['kl']:.5f} is reached.",
        )
    )
    past = [row for row in runs["local_plane"].rows if row.published_weight is not None and row.published_weight > 1.0]
    if past:
        said.append(
            (
                "A weight past 1.",
                f"In the picture of the plane the published calibration gives the local class under {past[0].notion} the weight "
                f"{past[0].published_weight:.4f}: not a mixture. At 1, where it is capped, a raw draw is allowed and nothing is lost.",
            )
        )
    said += _ordered_findings(runs["ordered"].rows)
    return said


def follow_up_page(runs: Mapping[str, RecordedRun[Any]], pictures: Mapping[str, bytes]) -> str:
    """The page, self-contained; pictures are PNG bytes by experiment."""
    finite, mixtures, ordered = (runs[name].rows for name in ("local_finite", "local_mixtures", "ordered"))
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>discreet: the follow-up reproduced</title>",
        f"<style>{STYLE}</style><h1>The follow-up's figures, theirs and ours</h1>",
        "<p><em>Locally Optimal Private Sampling: Beyond the Global Minimax</em> (Ghoukasian, Lee, Asoodeh; NeurIPS 2025), "
        f"by discreet {html.escape(runs['ordered'].header.version)}. Squared Hellinger is the text's (1 − √x)²; the published code "
        "prints half.</p>",
    ]
    quick = runs["ordered"].header.quick  # published maxima are over a hundred mixtures: fewer have smaller ones
    if quick:
        parts.append("<p class='quick'>QUICK RUN: fewer clients, budgets and shapes.</p>")
    parts.append("<h2>Findings</h2><ol>")
    parts += [
        f"<li><b>{html.escape(headline)}</b> {html.escape(text)}</li>" for headline, text in follow_up_findings(runs)
    ]
    parts += [
        "</ol><h2>Published numbers</h2>",
        html_table(*published_table(finite, [] if quick else mixtures), texts=4),
    ]
    parts += ["<h2>Finite spaces</h2>", _image(pictures, "local_finite")]
    for outcomes in sorted({row.outcomes for row in finite}):
        parts += [
            f"<h3>{outcomes} outcomes, minimax values</h3>",
            html_table(*minimax_table(finite, outcomes), texts=2),
        ]
    parts += ["<h2>Random mixtures</h2>", _image(pictures, "local_mixtures")]
    for f in SHOWN:
        parts += [f"<h3>{divergence_label(f)}</h3>", html_table(*mixture_table(mixtures, f), texts=3)]
    parts += [
        "<h2>Four Laplace laws in the plane</h2>",
        _image(pictures, "local_plane"),
        _plane_table(runs["local_plane"].rows),
    ]
    parts += [
        "<h2>Ordered outcomes of real clients</h2>",
        _image(pictures, "ordered"),
        html_table(*ordered_table(ordered)),
    ]
    return "\n".join(parts) + "</html>\n"


def _plane_table(rows: Sequence[PlaneLaw]) -> str:
    body = [
        [row.notion, row.family, row.mechanism, *(_value_text(row.costs[f]) for f in SHOWN)]
        for row in rows
        if row.costs
    ]
    return html_table(["notion", "class", "mechanism", *map(divergence_label, SHOWN)], body, texts=3)


def _image(pictures: Mapping[str, bytes], name: str) -> str:
    return f"<img alt='{name}' src='data:image/png;base64,{base64.b64encode(pictures[name]).decode()}'>"


def _classes(rows: Iterable[FiniteClasses | MixtureClasses]) -> list[ClassAtBudget]:
    return [each for row in rows for each in row.classes.values()]


def _gap(found: ClassAtBudget) -> float:
    """The largest relative difference between minimax values by the two calibrations."""
    return max(abs(value - found.minimax[f]) / found.minimax[f] for f, value in found.published_minimax.items())


def _worse(found: ClassAtBudget) -> str:
    """Of all clients and divergences, how many the projection serves worse."""
    return f"{sum(one.worse for one in found.pointwise.values())} of {found.clients * len(found.pointwise)}"


def _notion(row: FiniteClasses | MixtureClasses) -> str:
    return row.notion if row.kind != "functional" else f"Laplace trade-off, μ = {row.budget:g}"


def _value_text(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def _ordered_findings(rows: Sequence[OrderedSet]) -> list[tuple[str, str]]:
    """Who is nearest in the mean, budget by budget, and in the worst case."""
    said = []
    for epsilon in sorted({row.epsilon for row in rows}):
        nearest = [_nearest(row, "mean") for row in rows if row.epsilon == epsilon]
        counts = ", ".join(
            f"{ORDERED_LABELS[name]} on {nearest.count(name)}" for name in ORDERED_MECHANISMS if name in nearest
        )
        said.append(f"ε = {epsilon:g}: {counts} of {len(nearest)} sets")
    worst = sum(_nearest(row, "single_outcome") == "transport" for row in rows)
    return [
        (
            f"Ordered data: the transport sampler has the smallest worst case in {worst} of {len(rows)}; the mean depends on the budget.",
            f"Nearest in the mean, {'; '.join(said)}.",
        )
    ]


def _nearest(row: OrderedSet, which: str) -> str:
    return min(ORDERED_MECHANISMS, key=lambda name: float(getattr(row.distances[name], which)))
