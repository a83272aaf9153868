"""What Python draws under agreements on random surveys, for other implementations to repeat.

One JSON object a line, as in `tests.javascript.vectors`. An agreement comes with its exact law: how many of 2^62 words ask each part, how
many of them give a uniform report, and the largest report. It comes with clients: rows as objects, how often each was seen, the numbers of
the rows, words below 2^62 as texts, and the report that they give, with its part and the outcomes that it names. Words are those of a secret,
or chosen: on both sides of the coin and of N, past the last multiple of a bound, first and last.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from itertools import accumulate, islice
from typing import Any

import numpy as np

import discreet as dc
from discreet.agreement import Agreement, Schedule
from discreet.mechanisms import AffineBlocks, BlockFamily, choose_blocks
from discreet.mechanisms._reports._blocks import MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.release import RunKey, client_message, keyed_word_stream, next_integer_below
from discreet.release._lattice import TOTAL
from discreet.release._randomness import rejection_limit
from discreet.survey import (
    Dates,
    HistogramQuestion,
    MeanQuestion,
    Number,
    QuantileQuestion,
    Survey,
    SurveySampler,
    histogram,
    linear,
    mean,
    quantiles,
    shares,
)
from discreet.survey._columns import JointColumns, NumberCell, NumberPoint
from discreet.survey._strategies import Part, Windows
from discreet.survey._weighted_blocks import WeightedBlocks

CLIENTS = 5  # of one survey
_NAMES = [
    "region",
    "amount",
    "day",
    "n",
    "蓝",
    "a b",
    "",
    "__proto__",
    "constructor",
    "🙂",
    "name",
    '"',
    "<b>",
    "columns",
]
_WORDS = ["north", "south", "", " ", "é", "e\u0301", "🙂", "1", "true", "蓝", "\u202e", "null", "<script>", "x\\y"]
_EPSILONS = [1e-9, 0.05, 0.1, 0.5, 1.0, 2.0, 4.0, 10.0, 64.0, 1e3]


def survey_lines(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Agreements on random surveys, without end."""
    while True:
        try:
            sampler = _sampler(rng)
        except dc.DiscreetError:  # too many rows or reports
            continue
        schedule = Schedule("2026-01-01", every="month") if rng.random() < 0.1 else None
        agreement = Agreement.of(sampler, rounds=int(rng.choice([1, 1, 12])), schedule=schedule)
        yield {
            "agreement": agreement.text,
            "id": agreement.id,
            "canonical": agreement.canonical,
            "cases": [],
            "law": {
                "words": [str(int(share * TOTAL)) for share in sampler.exact_shares],
                "uniform": [str(weight) for weight in sampler.uniform_weights],
                "largest": str(sampler.largest),
            },
            "surveys": [_client(sampler, rng) for _ in range(CLIENTS)],
        }


def _sampler(rng: np.random.Generator) -> SurveySampler:
    columns = {str(name): _column(rng) for name in rng.choice(_NAMES, rng.integers(1, 6), replace=False)}
    survey = Survey(columns, [_question(columns, rng) for _ in range(rng.integers(1, 5))])
    epsilon = float(rng.choice(_EPSILONS)) if rng.random() < 0.5 else float(10.0 ** rng.uniform(-2, 1))
    if rng.random() < 0.2 and not any(question.kind == "linear" for question in survey.questions):
        return SurveySampler(survey, epsilon=epsilon)
    return SurveySampler(survey, epsilon=epsilon, parts=_parts(survey, rng))


def _column(rng: np.random.Generator) -> Any:
    match rng.integers(7):
        case 0 | 1:
            return [str(word) for word in rng.permutation(np.array(_WORDS))[: rng.integers(1, 14)]]
        case 2:
            return [int(each) for each in rng.permutation(np.array([-3, 0, 1, 7, 2**53, 10**15]))[: rng.integers(1, 6)]]
        case 3:
            return int(rng.choice([1, 2, 3, 10, 40, 65, 1000, 10**6]))
        case 4:
            first = date(2026, 1, 1) + timedelta(days=int(rng.integers(-(10**5), 10**5)))
            return Dates(first, first + timedelta(days=int(rng.integers(0, 400))))
        case _:
            low = float(rng.choice([0.0, -1.0, 0.1, -1e6, 1e-300]))
            high = low + float(rng.choice([1.0, 0.3, 500.0, 1e6]))
            return Number(low, high, str(rng.choice(["", "€"]))) if rng.random() < 0.7 else _interval(low, high, rng)


def _interval(low: float, high: float, rng: np.random.Generator) -> dc.Interval:
    return dc.Interval(low, high, cells=int(rng.choice([1, 2, 7, 100, 10**5, 2**31])))


def _question(columns: dict[str, Any], rng: np.random.Generator) -> Any:
    weight = float(rng.choice([1.0, 1.0, 0.25, 1e-6]))
    names = [str(name) for name in rng.permutation(np.array(list(columns), dtype=object))]
    numbers = [name for name in names if isinstance(columns[name], (Number, dc.Interval))]
    others = [name for name in names if name not in numbers][: rng.integers(1, 4)]
    if numbers and (not others or rng.random() < 0.5):
        match rng.integers(3):
            case 0:
                return mean(numbers[0], weight=weight)
            case 1:
                return quantiles(numbers[0], at=(0.5, 0.9), weight=weight)
            case _:
                return histogram(numbers[0], cells=int(rng.choice([2, 5, 20, 64, 65, 4096])), weight=weight)
    size = math.prod(Survey({name: columns[name] for name in others}, [shares(*others)]).columns.column_sizes(others))
    if size <= rng.choice([12, 12, 12, 40, 200]) and rng.random() < 0.4:
        return linear(rng.integers(-2, 3, (2, size)) / 2, *others, weight=weight)
    return shares(*others, weight=weight)


def _parts(survey: Survey, rng: np.random.Generator) -> list[Part]:
    """Parts that answer the questions, most of them poorly: other blocks than those with the smallest variance."""
    columns, found = survey.columns, []

    def share() -> float:
        return [1, 2**30, int(rng.integers(1, 2**30))][rng.integers(3)] / 2**30

    for place, question in enumerate(survey.questions):
        match question:
            case MeanQuestion():
                for _ in range(rng.integers(1, 3)):
                    points = int(rng.choice([2, 3, 24, 4096]))
                    windows = Windows(points, int(rng.choice([1, 2, 17, 4096])))
                    found.append(Part(place, NumberPoint(question.columns[0], points), windows, share()))
            case QuantileQuestion():
                base = int(rng.choice([2, 3, 5, 7]))
                room = min(4096, columns[question.columns[0]].size)
                levels = [base**level for level in range(1, 13) if base**level <= room]
                if not levels:
                    raise dc.DiscreetError("there are fewer cells than branches")
                for cells in sorted(set(rng.choice(levels, rng.integers(1, len(levels) + 1)).tolist())):
                    found.append(Part(place, NumberCell(question.columns[0], cells), _blocks(cells, rng), share()))
            case HistogramQuestion(cells=cells):
                found.append(Part(place, NumberCell(question.columns[0], cells), _blocks(cells, rng), share()))
            case _:
                size = math.prod(columns.column_sizes(question.columns))
                weighted = question.kind == "linear" and rng.random() < 0.7
                blocks = _weighted(size, rng) if weighted else _blocks(size, rng)
                found.append(Part(place, JointColumns(question.columns), blocks, share()))
    asked = sorted({name for question in survey.questions if question.kind == "shares" for name in question.columns})
    if len(asked) > 1 and rng.random() < 0.5:
        wider = tuple(str(name) for name in rng.choice(asked, 2, replace=False))
        found.append(Part(-1, JointColumns(wider), _blocks(math.prod(columns.column_sizes(wider)), rng), share()))
    return found


def _blocks(size: int, rng: np.random.Generator) -> BlockFamily:
    """Some blocks on so many outcomes."""
    while True:
        try:
            match rng.integers(5):
                case 0:
                    return SingleOutcomes(size)
                case 1:
                    return MaskedSubsets(size, int(rng.integers(1, max(size, 2))))
                case 2:
                    return RankedSubsets(size, int(rng.integers(1, max(min(size, 40), 2))))
                case 3:
                    prime = int(rng.choice([2, 3, 5, 11, 107, 1009, 67_108_879, 2**31 - 1]))
                    digits = max(1, math.ceil(math.log(size, prime)))
                    return AffineBlocks(size, prime, digits, int(rng.integers(1, prime)))
                case _:
                    return choose_blocks(size, Fraction(int(rng.integers(2, 60)), int(rng.integers(1, 2))))
        except dc.DiscreetError:
            continue


def _weighted(size: int, rng: np.random.Generator) -> WeightedBlocks:
    """All rotations of some subsets, each subset with its number of copies: every outcome is in as many copies as any other."""
    often = int(rng.integers(1, 2**40))
    copies = {1 << x: often for x in range(size)}
    for _ in range(rng.integers(0, 3)):
        members = rng.random(size) < 0.5
        members[0] = True
        often = int(rng.integers(1, 2**40))
        rotated = {sum(1 << x for x in np.flatnonzero(np.roll(members, shift)).tolist()) for shift in range(size)}
        if not rotated & copies.keys():
            copies.update(dict.fromkeys(rotated, often))
    masks = sorted(copies)
    return WeightedBlocks(size, tuple(masks), tuple(copies[mask] for mask in masks))


def _client(sampler: SurveySampler, rng: np.random.Generator) -> dict[str, Any]:
    columns = sampler.survey.columns
    held = int(rng.choice([0, 1, 1, 2, 5]))
    table = {name: [_value(columns, name, rng) for _ in range(held)] for name in columns}
    rows = columns.encode(table).tolist() if held else []
    counts = [int(each) for each in rng.integers(1, 10 ** rng.integers(1, 15), held)]
    if rows and rng.random() < 0.4:
        key, client = RunKey(rng.bytes(32)), int(rng.integers(0, 1000))
        message = sampler.context + client_message(client, rows, counts)
        words = list(islice(keyed_word_stream(key, message), 100))
        report = sampler.release_keyed(key, client, rows, counts)
        assert report == survey_report_of(sampler, rows, counts, words)
    else:
        words = _words(sampler, sum(counts), rng)
        report = survey_report_of(sampler, rows, counts, words)
    part = sampler.part_of(report)
    blocks = sampler.parts[part].blocks
    outcomes = np.arange(blocks.size)
    own = np.array([report - sampler._offsets[part]], dtype=np.uint64)
    named = {} if blocks.size > 2000 else {"named": outcomes[blocks.holds(own, outcomes)].tolist()}
    return {
        "records": [{name: table[name][row] for name in columns} for row in range(held)],
        "counts": counts,
        "rows": [str(row) for row in rows],
        "words": [str(word) for word in words],
        "report": str(report),
        "part": part,
        **named,
    }


def _value(columns: Any, name: str, rng: np.random.Generator) -> Any:
    """A value of a column: a label, a whole number, a day, or a number, often on an edge between cells."""
    domain = columns[name]
    number = int(rng.choice([0, domain.size - 1, rng.integers(0, domain.size)]))
    if not isinstance(domain, dc.Interval):
        return domain.to_samples(np.asarray(number))
    edge = min(max(domain.low + number / domain.size * (domain.high - domain.low), domain.low), domain.high)
    near = [
        domain.low,
        domain.high,
        edge,
        math.nextafter(edge, domain.low),
        float(rng.uniform(domain.low, domain.high)),
    ]
    return float(near[rng.integers(5)])


def _words(sampler: SurveySampler, total: int, rng: np.random.Generator) -> list[int]:
    """Words on both sides of every decision: the coin, N, and multiples of bounds; the first chooses any part."""
    place = int(rng.integers(len(sampler.parts)))
    ends, part = sampler._share_ends, sampler.parts[place]
    weight, first = sampler.uniform_weights[place], ends[place - 1] if place else 0
    coin = int(rng.choice(np.array([first, ends[place] - 1, rng.integers(first, ends[place])])))
    whole = 2 * sampler.survey.columns[part.projection.column].size if isinstance(part.projection, NumberPoint) else 1
    bounds = [
        rejection_limit(bound)
        for bound in (part.blocks.block_count, part.blocks.blocks_per_point, max(total, 1), whole)
    ]
    near = [each for edge in (0, TOTAL, *bounds) for each in (edge - 1, edge) if 0 <= each < TOTAL]
    chosen = [int(rng.choice(near)) if rng.random() < 0.5 else int(rng.integers(0, TOTAL)) for _ in range(98)]
    uniform = [max(weight - 1, 0), min(weight, TOTAL - 1), int(rng.integers(0, TOTAL)), TOTAL - 1][rng.integers(4)]
    return [coin, uniform, *chosen]


def survey_report_of(sampler: SurveySampler, rows: list[int], counts: list[int], words: list[int]) -> int:
    """The report that given words give, as `SurveySampler.release_keyed` takes them; without rows a uniform one."""
    left, sums = iter(words), dict.fromkeys(sorted(rows), 0)
    for row, count in zip(rows, counts, strict=True):
        sums[row] += count
    place = bisect_right(sampler._share_ends, next(left))
    part, own = sampler.parts[place], next(left) >= sampler.uniform_weights[place]

    def below(bound: int, count: int) -> Any:
        return np.array([next_integer_below(left, bound) for _ in range(count)])

    if not own or not rows:
        return sampler._offsets[place] + int(part.blocks.reports_of_ranks(below(part.blocks.block_count, 1))[0])
    common = math.gcd(*sums.values())
    numbers = [number // common for number in sums.values()]
    row = list(sums)[bisect_right(list(accumulate(numbers)), int(below(sum(numbers), 1)[0]))]
    outcome = part.projection.draw_outcomes(sampler.survey.columns, np.array([row]), below)
    return sampler._offsets[place] + int(
        part.blocks.reports_of_ranks_holding_outcomes(outcome, below(part.blocks.blocks_per_point, 1))[0]
    )
