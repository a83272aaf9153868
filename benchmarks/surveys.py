"""Surveys: variances of means and of own sums beside other mechanisms and a lower bound, errors of quantiles and of several columns."""

import math
import subprocess
import sys
import tempfile
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import lil_matrix

from discreet.errors import NotPrivateWarning
from discreet.estimation import answer_survey
from discreet.privacy import largest_ratio_for_epsilon
from discreet.survey import (
    Dates,
    Number,
    Survey,
    SurveyQuestion,
    SurveySampler,
    Tree,
    linear,
    mean,
    quantiles,
    shares,
    variance_per_contrast,
)
from discreet.survey._strategies import best_blocks_for_size, choose_windows_and_share_for_mean
from discreet.survey._weighted_blocks import optimise_blocks

EPSILONS = (0.1, 0.5, 1.0, 1.3, 2.0, 3.0, 4.0, 6.0, 8.0)
PEOPLE = 149_000
CELLS = 200
CATEGORIES = [f"category {number}" for number in range(104)]
REPETITIONS = 3
SIZES = (10, 24, 7, 40, 3)


def means(console: Console) -> None:
    """Worst-case variances on [0, 1], over that of the survey's report; and the survey's over a bound from below."""
    table = shown(
        "1. A mean: worst-case variances", "epsilon", "survey", "Duchi", "piecewise", "hybrid", "over the bound"
    )
    for epsilon in EPSILONS:
        _, _, own = choose_windows_and_share_for_mean(math.exp(epsilon))
        growth, half, x = math.exp(epsilon), math.exp(epsilon / 2), np.linspace(-1, 1, 401)
        duchi = (((growth + 1) / (growth - 1)) ** 2 - x * x) / 4
        piecewise = (x * x / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)) / 4
        mixed = 1 - 1 / half if epsilon > 0.61 else 0.0
        hybrid = mixed * piecewise + (1 - mixed) * duchi
        ratios = (f"{each.max() / own:.2f}" for each in (duchi, piecewise, hybrid))
        bound = f"{own / least_variance(epsilon):.2f}" if epsilon <= 4.0 else "-"
        table.add_row(f"{epsilon:g}", f"{own:.4g}", *ratios, bound)
    console.print(table)


def least_variance(epsilon: float, inputs: int = 9, outputs: int = 81) -> float:
    """The least worst-case variance over nine inputs of any unbiased epsilon-LDP report with values on a fine grid: a linear programme.

    The mechanism that a continuum of inputs needs has at least as much, but for the grid of values.
    """
    growth = math.exp(epsilon)
    reach = 0.65 * (growth + 1) / (growth - 1) + 0.65
    values, places = np.linspace(0.5 - reach, 0.5 + reach, outputs), np.linspace(0.0, 1.0, inputs)
    many = inputs * outputs
    rows, least = lil_matrix((2 * many + inputs, many + outputs + 1)), np.zeros(2 * many + inputs)
    sums, exact = lil_matrix((2 * inputs, many + outputs + 1)), np.zeros(2 * inputs)
    for i in range(inputs):
        for j in range(outputs):
            place = i * outputs + j
            rows[2 * place, many + j], rows[2 * place, place] = 1.0, -1.0
            rows[2 * place + 1, place], rows[2 * place + 1, many + j] = 1.0, -growth
        own = slice(i * outputs, (i + 1) * outputs)
        rows[2 * many + i, own], rows[2 * many + i, many + outputs] = values**2, -1.0
        least[2 * many + i] = places[i] ** 2
        sums[2 * i, own], exact[2 * i] = 1.0, 1.0
        sums[2 * i + 1, own], exact[2 * i + 1] = values, places[i]
    cost = np.zeros(many + outputs + 1)
    cost[-1] = 1.0
    found = linprog(cost, A_ub=rows.tocsr(), b_ub=least, A_eq=sums.tocsr(), b_eq=exact, method="highs")
    return float(found.fun)


def amounts(console: Console) -> None:
    """Root mean square errors of a lognormal amount on [0, 500] at epsilon 2."""
    rng = np.random.default_rng(1)
    asked: dict[str, list[SurveyQuestion]] = {"mean": [mean("x")], "quantiles": [quantiles("x", at=(0.5, 0.9))]}
    errors: dict[str, list[np.ndarray]] = {name: [] for name in (*asked, "cells")}
    found_blocks = optimise_blocks(prefixes(CELLS), largest_ratio_for_epsilon(2.0)).blocks
    contributions = found_blocks.unbiased_sum_values_of_reports(prefixes(CELLS), math.expm1(2.0))
    by_cells = SurveySampler(Survey({"x": CELLS}, [linear(prefixes(CELLS), "x")]), epsilon=2.0)
    for _ in range(20):
        x = np.minimum(rng.lognormal(2.65, 1.08, PEOPLE), 500.0)
        truth = {"mean": np.array([x.mean()]), "quantiles": np.quantile(x, [0.5, 0.9])}
        for name, questions in asked.items():
            sampler = SurveySampler(Survey({"x": Number(0, 500)}, questions), epsilon=2.0)
            found = answer_survey(sampler, sampler.release_table({"x": x}, rng=rng))
            errors[name].append(found[0].law.estimate - truth[name])
        reports = by_cells.release_rows(np.minimum(x / 500.0 * CELLS, CELLS - 1).astype(np.int64), rng=rng)
        values = (
            np.bincount(reports.astype(np.int64), minlength=found_blocks.distinct_report_count) @ contributions / PEOPLE
        )
        below = isotonic_regression(np.concatenate([[0.0], np.arange(1, CELLS) / CELLS + values, [1.0]])).x
        places = np.interp([0.5, 0.9], np.clip(below, 0.0, 1.0), np.linspace(0.0, 500.0, CELLS + 1))
        errors["cells"].append(places - truth["quantiles"])
    table = shown(f"2. {PEOPLE:,} clients, an amount on [0, 500], epsilon 2", "", "root mean square error")
    table.add_row("mean", f"{np.sqrt(np.mean(np.square(errors['mean']))):.3f}")
    for name, what in (("quantiles", "a tree"), ("cells", f"optimised blocks on {CELLS} cells")):
        for level, error in zip(("median", "90 %"), np.sqrt(np.mean(np.square(errors[name]), axis=0)), strict=True):
            table.add_row(f"{level}, {what}", f"{error:.3f}")
    console.print(table)


def columns(console: Console) -> None:
    """The mean variance of the shares of five columns in the uniform population: a survey, a split budget, and one column a client."""
    table = shown(
        f"3. Shares of {len(SIZES)} columns of {', '.join(map(str, SIZES))} outcomes, {PEOPLE:,} clients: mean variance over "
        "the survey's",
        "epsilon", "survey", "split budget, blocks", "one column a client, k-RR", "split budget, k-RR",
    )  # fmt: skip
    names = [f"c{place}" for place in range(len(SIZES))]
    for epsilon in (1.0, 2.0, 4.0):
        sampler = SurveySampler(
            Survey(dict(zip(names, SIZES, strict=True)), [shares(name) for name in names]), epsilon=epsilon
        )
        own = float(np.mean([sampler.variance(place) for place in range(len(SIZES))])) / PEOPLE
        split = SurveySampler(sampler.survey, epsilon=epsilon / len(SIZES))
        blocks = float(np.mean([strategy.variance for strategy in split.strategies])) / PEOPLE
        one = float(np.mean([randomised_response(size, epsilon) for size in SIZES])) * len(SIZES) / PEOPLE
        both = float(np.mean([randomised_response(size, epsilon / len(SIZES)) for size in SIZES])) / PEOPLE
        table.add_row(f"{epsilon:g}", f"{own:.2e}", *(f"{each / own:.2f}" for each in (blocks, one, both)))
    console.print(table)


def sums(console: Console) -> None:
    """Mean variances of sums in the uniform population: blocks of one width and a tree over the optimised blocks, these over a bound."""
    table = shown(
        "4. Own sums of shares: mean variance over that of optimised blocks",
        "sums", "outcomes", "epsilon", "optimised", "one width", "tree", "largest, one width", "optimised over the bound", "blocks", "s",
    )  # fmt: skip
    for name, workload in (("up to each", prefixes), ("of all ranges", ranges), ("of rows and columns", margins)):
        for size in (16, 32, 64, 128):
            for epsilon in (0.5, 1.0, 2.0, 4.0):
                matrix, bound = workload(size), largest_ratio_for_epsilon(epsilon)
                start = time.process_time()
                found = optimise_blocks(matrix, bound)
                seconds = time.process_time() - start
                widths = np.square(matrix - matrix.mean(axis=1, keepdims=True)).sum(axis=1)
                widths = widths * variance_per_contrast(best_blocks_for_size(size, bound), float(bound))
                tree = f"{tree_variance(size, bound) / found.mean:.2f}" if workload is prefixes else "-"
                ratios = (
                    f"{widths.mean() / found.mean:.2f}",
                    tree,
                    f"{widths.max() / found.largest:.2f}",
                    f"{found.mean / found.least:.2f}",
                )
                row = (
                    name,
                    str(size),
                    f"{epsilon:g}",
                    f"{found.mean:.4g}",
                    *ratios,
                    str(found.blocks.distinct_report_count),
                )
                table.add_row(*row, f"{seconds:.1f}")
    console.print(table)


def tree_variance(size: int, bound: Fraction) -> float:
    """The mean variance of the distribution function by a binary tree, at the inner edges of so many cells."""
    tree = Tree(2, round(math.log2(size)))
    levels = [best_blocks_for_size(tree.node_count(level), bound) for level in range(1, tree.depth + 1)]
    _, variance = tree.best_level_shares_and_variance(
        np.array([variance_per_contrast(each, float(bound)) for each in levels])
    )
    return variance * size / (size - 1)


def prefixes(size: int) -> np.ndarray:
    return np.tril(np.ones((size, size)))[:-1]


def ranges(size: int) -> np.ndarray:
    places = np.arange(size)
    return np.array([(first <= places) & (places <= last) for first in places for last in places[first:]], dtype=float)


def margins(size: int) -> np.ndarray:
    rows = 2 ** (round(math.log2(size)) // 2)
    return np.vstack([np.kron(np.eye(rows), np.ones(size // rows)), np.kron(np.ones(rows), np.eye(size // rows))])


def tables(console: Console) -> None:
    """Whole commands on 3,000,000 messy rows, one column beside five columns and five questions: seconds, and over one column by reports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        survey = messy_table(folder)
        survey.write(folder / "survey.json")
        (folder / "categories.txt").write_text("\n".join(CATEGORIES) + "\n")
        one = ("--value", "category", "--domain", "categories.txt")
        ways = {
            "one column, reports": (*one, "--mechanism", "reports"),
            "one column, linear": (*one, "--mechanism", "linear"),
            "five columns, a survey": ("--survey", "survey.json"),
        }
        took: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(REPETITIONS):
            for way, options in ways.items():
                started = time.perf_counter()
                command = ["sample", "rows.parquet", "--client", "who", "--nulls", "drop", "--epsilon", "1", *options]
                subprocess.run(
                    [sys.executable, "-m", "discreet", *command, "-o", "out.parquet", "--force", "-q"],
                    cwd=folder,
                    check=True,
                )
                took[way].append(time.perf_counter() - started)
    table = shown("5. One command on 3,000,000 rows of 400,000 clients", "what", "seconds", "over one column")
    least = min(took["one column, reports"])
    for way, seconds in took.items():
        table.add_row(way, f"{min(seconds):.2f}", f"{min(seconds) / least:.2f}")
    console.print(table)


def messy_table(folder: Path, rows: int = 3_000_000, clients: int = 400_000) -> Survey:
    """Five columns with nulls, dates and texts in the order of the day; and a survey of them."""
    rng = np.random.default_rng(0)
    regions = [f"region {number}" for number in range(12)]
    days = (np.datetime64("2026-01-01") + rng.integers(0, 365, rows)).astype("datetime64[D]")
    frame = pl.DataFrame(
        {
            "who": np.array([f"u{number:06d}" for number in range(clients)])[rng.integers(0, clients, rows)],
            "region": rng.choice(regions, rows),
            "category": rng.choice(CATEGORIES, rows),
            "hour": rng.integers(0, 24, rows),
            "day": days,
            "amount": np.minimum(rng.lognormal(3, 1, rows), 500).round(2),
            "note": rng.integers(0, 1000, rows),
        }
    )
    missing = pl.when(pl.Series(rng.random(rows) < 0.001)).then(None)
    frame.with_columns(missing.otherwise("category").alias("category")).write_parquet(folder / "rows.parquet")
    return Survey(
        {"region": regions, "category": CATEGORIES, "hour": 24, "day": Dates("2026-01-01", "2026-12-31"),
         "amount": Number(0, 500, "euro")},
        [shares("region"), shares("category"), shares("region", "hour"), mean("amount"), quantiles("amount")],
    )  # fmt: skip


def randomised_response(size: int, epsilon: float) -> float:
    """n times the variance of a share in the uniform population, by k-ary randomised response."""
    growth = math.exp(epsilon)
    gap, share = (growth - 1) / (growth + size - 1), 1.0 / size
    return share * (1 - share) / gap**2


def shown(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def run() -> None:
    """Print the tables."""
    console = Console(width=150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        means(console)
        amounts(console)
        columns(console)
        sums(console)
        tables(console)
