"""The parts of a survey: what clients are asked and how often, by the public coin with the smallest weighted sum of variances.

`choose_best_parts` finds them, `part_as_terms` states them in an agreement, and `survey_parts_from_terms` reads them there.

**Questions without columns in common.** A question that alone has variance v_i/n has v_i/(n pi_i) if a share pi_i of the clients is
asked. The sum with weights w_i is smallest for pi_i proportional to sqrt(v_i w_i) (Cauchy and Schwarz).

**Tables of shares with columns in common** tell each other's marginals. A table over columns C splits orthogonally into effects, one for
each non-empty subset T of C: contrasts in the columns of T, summed over the others. Effect T has dimension D_T, the product of k - 1 over
the sizes k of its columns. Blocks on table i have one variance v_i/(n pi_i) in every direction but the constant one. So they see effect T
of their columns C_i with that variance times r(C_i without T), the product of the sizes of the other columns. All tables together see it
with the precision n lambda_T, and the least-squares table over C has the mean variance V_C of a cell, where

    lambda_T = sum over i with T in C_i of pi_i/(v_i r(C_i without T)),     V_C = sum over T in C of D_T/(n lambda_T r(C without T) K_C)

and K_C is the number of its cells. The weighted sum of all variances is convex in pi. Its least value is found by the multiplicative
algorithm for A-optimal designs [Silvey, Titterington and Torsney 1978].

**Wider tables.** At large epsilon a report on more columns together tells all of their marginals at once. So the coin may also ask for
tables of up to three columns of the questions that no question names; those that it would seldom ask are left out.

**In an agreement** a part states what it sees of a row, its blocks, and how often it is asked. Parts are
written down, not chosen again, so that an agreement keeps them when the choice changes. Privacy holds for all parts that are read
here (`discreet.survey._sampler`): it rests on the numbers of blocks alone. Poor parts cost accuracy.

A part that no question names is a wider table, which tells the marginals of several questions; its question is -1.

A share is stated as a whole number of units, so that every machine draws the same coin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.domain import CellDomain
from discreet.errors import DiscreetError, check_choice, check_count, check_kind
from discreet.mechanisms import BLOCK_KINDS, BlockFamily, RankedSubsets, make_blocks_of_kind
from discreet.survey._columns import JointColumns, NumberCell, NumberPoint, Projection, SurveyColumns
from discreet.survey._questions import (
    LARGEST_TOGETHER,
    MOST_CELLS,
    HistogramQuestion,
    LinearQuestion,
    MeanQuestion,
    QuantileQuestion,
    ShareQuestion,
    SurveyQuestion,
)
from discreet.survey._strategies import (
    LARGEST_TREE,
    MOST_POINTS,
    SHARE_UNITS,
    Blocks,
    Part,
    Strategy,
    Windows,
    best_blocks_for_size,
    choose_strategy,
    variance_per_contrast,
)
from discreet.survey._weighted_blocks import MOST_OUTCOMES, WeightedBlocks

Floats = NDArray[np.float64]
Columns = tuple[str, ...]
LARGEST_REPORT = 1 << 64  # numbers of all reports
NO_QUESTION = -1  # the question of a part that no question names
_SELDOM = 1 / 128  # of the largest share of a table, below which a table is left out
_STEPS = 1000  # of the multiplicative algorithm
_MOST_TABLES = 1500  # that are considered: all of three columns out of 20
_LARGEST_WIDER = 1 << 48  # numbers of reports on a wider table
_ROUNDING = 1 << 20  # steps of the shares among tables
_LARGEST_PARAMETER = 1 << 31
_MOST_PARTS = 4096
_MOST_RANKED = 1 << 22  # binomial coefficients of all parts, times the width of their subsets
_COPIES = re.compile("[1-9a-f][0-9a-f]{0,15}")
_SEEN = {frozenset({"columns"}), frozenset({"column", "cells"}), frozenset({"column", "points"})}


def columns_in_survey_order(columns: SurveyColumns, names: Sequence[str]) -> Columns:
    """Names in the order of the survey's columns."""
    name_set = set(names)
    return tuple(name for name in columns if name in name_set)


def column_subsets(names: Columns) -> list[Columns]:
    """The non-empty subsets of columns."""
    return list(chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)))


class Marginals:
    """What tables with columns in common tell of each other.

    Args:
        columns: of the survey.
        tables: the columns of each table, in the order of the survey.
        noises: n times the variance of each in every direction but the constant one, if all clients are asked.
    """

    def __init__(self, columns: SurveyColumns, tables: Sequence[Columns], noises: Sequence[float]) -> None:
        self._columns = columns
        self.effects = sorted(set(chain.from_iterable(map(column_subsets, tables))))
        self.places = indices = {effect: index for index, effect in enumerate(self.effects)}
        self._seen = np.zeros((len(tables), len(self.effects)))
        for table, (names, noise) in enumerate(zip(tables, noises, strict=True)):
            for effect in column_subsets(names):
                self._seen[table, indices[effect]] = 1.0 / (
                    noise * self._number_of_outcomes_outside_effect(names, effect)
                )

    def _number_of_outcomes_outside_effect(self, names: Columns, effect: Columns) -> int:
        """r: how many outcomes the columns outside an effect have."""
        return math.prod(self._columns.column_sizes(name for name in names if name not in effect))

    def effect_precisions(self, amounts: ArrayLike) -> Floats:
        """The precision of each effect, for so many clients (or such shares) on each table."""
        return np.asarray(np.asarray(amounts, dtype=np.float64) @ self._seen)

    def table_weights_in_effects(self, amounts: ArrayLike) -> Floats:
        """How much each table counts in each effect, (tables, effects); 0 where nobody was asked."""
        information = np.asarray(amounts, dtype=np.float64)[:, None] * self._seen
        total = information.sum(axis=0)
        return np.asarray(information / np.where(total > 0.0, total, 1.0))

    def cell_variance_per_effect(self, names: Columns) -> Floats:
        """The mean variance of a cell of a table for a unit variance of each effect that is seen."""
        cells, variances = math.prod(self._columns.column_sizes(names)), np.zeros(len(self.effects))
        for effect in column_subsets(names):
            if effect in self.places:
                dimension = math.prod(size - 1 for size in self._columns.column_sizes(effect))
                variances[self.places[effect]] = dimension / (
                    self._number_of_outcomes_outside_effect(names, effect) * cells
                )
        return variances

    def cell_variance(self, names: Columns, amounts: ArrayLike) -> float:
        """The mean variance of a cell of the least-squares table; infinite where an effect is not seen."""
        costs, precisions = self.cell_variance_per_effect(names), self.effect_precisions(amounts)
        is_needed = costs > 0.0
        if not self.places.keys() >= set(column_subsets(names)) or (precisions[is_needed] <= 0.0).any():
            return math.inf
        return float((costs[is_needed] / precisions[is_needed]).sum())

    def best_table_shares_and_variance(self, start: Floats, demands: Floats) -> tuple[Floats, float]:
        """The shares of the tables with the smallest sum of demands over precisions, and this sum."""
        shares, is_needed = start / start.sum(), demands > 0.0
        information, weights = self._seen[:, is_needed].copy(), demands[is_needed]
        transposed_information = information.T.copy()
        # Sums along the first axis have one order on every machine, unlike matrix products.
        for _ in range(_STEPS):
            precisions = (information * shares[:, None]).sum(axis=0)
            shares = shares * np.sqrt((transposed_information * (weights / np.square(precisions))[:, None]).sum(axis=0))
            shares /= shares.sum()
        return shares, float((weights / (information * shares[:, None]).sum(axis=0)).sum())

    def which_tables_are_needed(self, shares: Floats, demands: Floats) -> NDArray[np.bool_]:
        """Which tables are asked of many clients, or needed to see an effect that is in demand."""
        large = np.asarray(shares >= _SELDOM * shares.max())
        for effect in np.flatnonzero(demands > 0.0):
            informative = self._seen[:, effect] > 0.0
            if not (large & informative).any():
                large[np.where(informative, shares, -1.0).argmax()] = True
        return large


def asks_for_table(question: SurveyQuestion) -> bool:
    """Whether a question asks for a table of shares."""
    return type(question) is ShareQuestion


def choose_best_parts(questions: Sequence[SurveyQuestion], columns: SurveyColumns, bound: Fraction) -> tuple[Part, ...]:
    """What clients are asked, and how often: the reports with the smallest variance for each question, by the best coin."""
    strategies = [choose_strategy(question, index, columns, bound) for index, question in enumerate(questions)]
    capacity = LARGEST_REPORT - sum(
        part.reserved_report_number_count for strategy in strategies for part in strategy.parts
    )
    chances, wider_parts = choose_question_shares_and_wider_tables(questions, strategies, columns, bound, capacity)
    question_parts = [
        replace(part, share=part.share * chance)
        for strategy, chance in zip(strategies, chances, strict=True)
        for part in strategy.parts
    ]
    return tuple(
        replace(part, share=part.share_in_whole_units / SHARE_UNITS) for part in (*question_parts, *wider_parts)
    )


def choose_question_shares_and_wider_tables(
    questions: Sequence[SurveyQuestion],
    strategies: Sequence[Strategy],
    columns: SurveyColumns,
    bound: Fraction,
    capacity: int,
) -> tuple[list[float], list[Part]]:
    """The share of clients for each question, and parts for wider tables; `capacity`: how many report numbers they may take."""
    roots = [
        math.sqrt(max(strategy.variance * question.weight, 1e-12))
        for question, strategy in zip(questions, strategies, strict=True)
    ]
    separate_shares = [root / sum(roots) for root in roots]  # the best shares if no answer helps another
    table_questions = [index for index, question in enumerate(questions) if asks_for_table(question)]
    question_tables = [columns_in_survey_order(columns, questions[index].columns) for index in table_questions]
    blocks = [part.blocks for index in table_questions for part in strategies[index].parts]
    wider_tables = (
        _blocks_of_tables_no_question_names(columns, question_tables, bound)
        if capacity >= _MOST_TABLES * _LARGEST_WIDER
        else {}
    )
    if len(set(chain.from_iterable(question_tables))) == sum(map(len, question_tables)) and not wider_tables:
        return separate_shares, []
    tables, families = [*question_tables, *wider_tables], [*blocks, *wider_tables.values()]
    start = np.append(
        [separate_shares[index] for index in table_questions],
        np.full(len(wider_tables), 1.0 / max(len(wider_tables), 1)),
    )
    start[: len(table_questions)] /= start[: len(table_questions)].sum()
    weighted_tables = [
        (names, questions[index].weight) for index, names in zip(table_questions, question_tables, strict=True)
    ]
    remaining, shares, loss = list(range(len(tables))), start / start.sum(), 0.0
    for _ in range(2):  # again on the tables that are left
        noises = [variance_per_contrast(families[number], float(bound)) for number in remaining]
        marginals = Marginals(columns, [tables[number] for number in remaining], noises)
        demands = np.sum(
            [weight * marginals.cell_variance_per_effect(names) for names, weight in weighted_tables], axis=0
        )
        shares, loss = marginals.best_table_shares_and_variance(shares, demands)
        are_needed = marginals.which_tables_are_needed(shares, demands)
        remaining, shares = (
            [number for number, is_needed in zip(remaining, are_needed, strict=True) if is_needed],
            shares[are_needed],
        )
    shares = np.round(shares / shares.sum() * _ROUNDING) / _ROUNDING
    share_by_table = dict(zip(remaining, shares.tolist(), strict=True))
    others = [index for index in range(len(questions)) if index not in table_questions]
    root_losses = [math.sqrt(loss), *(roots[index] for index in others)]
    chances = [0.0] * len(questions)
    for index, root in zip(others, root_losses[1:], strict=True):
        chances[index] = root / sum(root_losses)
    for number, index in enumerate(table_questions):
        chances[index] = share_by_table.get(number, 0.0) * root_losses[0] / sum(root_losses)
    parts = [
        Part(NO_QUESTION, JointColumns(tables[number]), families[number], share * root_losses[0] / sum(root_losses))
        for number, share in share_by_table.items()
        if number >= len(table_questions)
    ]
    return chances, parts


def _blocks_of_tables_no_question_names(
    columns: SurveyColumns, question_tables: Sequence[Columns], bound: Fraction
) -> dict[Columns, BlockFamily]:
    """Tables of at most three columns of the questions that none of them names, and their blocks."""
    names = columns_in_survey_order(columns, list(chain.from_iterable(question_tables)))
    blocks_by_table: dict[Columns, BlockFamily] = {}
    for size in range(2, LARGEST_TOGETHER + 1):
        if len(question_tables) + len(blocks_by_table) + math.comb(len(names), size) > _MOST_TABLES:
            break
        for table in combinations(names, size):
            cells = math.prod(columns.column_sizes(table))
            if table in question_tables or not 2 <= cells <= _most_cells_of_wider_table(bound):
                continue
            blocks = _best_blocks_cached(cells, bound)
            if blocks.largest_report < _LARGEST_WIDER:
                blocks_by_table[table] = blocks
    return blocks_by_table


def _most_cells_of_wider_table(bound: Fraction) -> int:
    """More outcomes than this are not worth a table that no question names: a report tells little of sums over many of them."""
    return math.ceil(16 * bound)


@lru_cache(maxsize=1024)
def _best_blocks_cached(cells: int, bound: Fraction) -> BlockFamily:
    return best_blocks_for_size(cells, bound)


def part_as_terms(part: Part) -> dict[str, Any]:
    """A part as JSON values."""
    match part.projection:
        case JointColumns(columns):
            sees: dict[str, Any] = {"columns": list(columns)}
        case NumberCell(column, count):
            sees = {"column": column, "cells": count}
        case NumberPoint(column, points):
            sees = {"column": column, "points": points}
    return {
        "question": part.question,
        "share": part.share_in_whole_units,
        "sees": sees,
        "blocks": {"kind": part.blocks.name, **_blocks_as_terms(part.blocks)},
    }


def _blocks_as_terms(blocks: Blocks) -> dict[str, Any]:
    if isinstance(blocks, Windows):
        return {"w": blocks.width}
    if isinstance(blocks, WeightedBlocks):  # numbers of copies as texts: JSON has no whole numbers of 62 bits
        return {**blocks.terms, "copies": [f"{count:x}" for count in blocks.copies]}
    return blocks.parameters


def survey_parts_from_terms(
    terms: Any, questions: Sequence[SurveyQuestion], columns: SurveyColumns, where: str = "parts"
) -> tuple[Part, ...]:
    """The parts of these terms, if they answer the questions; an error names the first wrong field."""
    if not isinstance(terms, list) or not 0 < len(terms) <= _MOST_PARTS:
        raise DiscreetError(f"{where} is not a list of 1 to {_MOST_PARTS:,} parts")
    parts = tuple(
        _part_from_terms(part_terms, len(questions), columns, f"{where}[{index}]")
        for index, part_terms in enumerate(terms)
    )
    return require_parts_that_answer_questions(parts, questions, columns, where)


def require_parts_that_answer_questions(
    parts: Any, questions: Sequence[SurveyQuestion], columns: SurveyColumns, where: str = "parts"
) -> tuple[Part, ...]:
    """The parts, if their blocks are on what they see, and they answer the questions."""
    if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(part, Part) for part in parts):
        raise DiscreetError(
            f"{where} is not a list of parts; leave it out, and those with the smallest variance are taken"
        )
    survey_parts = tuple(parts)
    for index, part in enumerate(survey_parts):
        _refuse_unfit_part(part, questions, columns, f"{where}[{index}]")
    if (
        sum(
            part.blocks.size * (part.blocks.width + 1)
            for part in survey_parts
            if isinstance(part.blocks, RankedSubsets)
        )
        > _MOST_RANKED
    ):
        raise DiscreetError(
            f"{where}: subsets by their ranks on so many outcomes take too much memory; use affine blocks"
        )
    for index, question in enumerate(questions):
        question_parts = [part for part in survey_parts if part.question == index]
        if not question_parts:
            raise DiscreetError(f"{where}: no part answers question {index}, {question.title}")
        if not _do_parts_answer_question(question, question_parts):
            raise DiscreetError(f"{where}: the parts of question {index} do not answer it, {question.title}")
    order = [len(questions) if part.question == NO_QUESTION else part.question for part in survey_parts]
    if order != sorted(order):
        raise DiscreetError(
            f"{where} are not in the order of the questions, with those that no question names at the end"
        )
    return survey_parts


def _refuse_unfit_part(part: Part, questions: Sequence[SurveyQuestion], columns: SurveyColumns, where: str) -> None:
    """Refuse blocks on another number of outcomes than the part sees: privacy rests on them. Refuse tables that nobody asked for."""
    names = part.projection.columns if isinstance(part.projection, JointColumns) else (part.projection.column,)
    columns.require_known_distinct_columns(names, where)
    if part.blocks.size != part.projection.outcome_count(columns):
        raise DiscreetError(
            f"{where}: the blocks are on {part.blocks.size:,} outcomes, and the part sees {part.projection.outcome_count(columns):,}"
        )
    if part.question != NO_QUESTION:
        return
    share_columns = {name for question in questions if asks_for_table(question) for name in question.columns}
    is_table = isinstance(part.projection, JointColumns) and isinstance(part.blocks, BlockFamily)
    if not is_table or not 2 <= len(names) <= LARGEST_TOGETHER or not share_columns >= set(names):
        raise DiscreetError(
            f"{where}: a part without a question is a table of two or three columns whose shares are asked"
        )
    if part.blocks.size > MOST_CELLS:
        raise DiscreetError(f"{where}: a table of {part.blocks.size:,} outcomes; {MOST_CELLS:,} at most")


def _part_from_terms(terms: Any, questions: int, columns: SurveyColumns, where: str) -> Part:
    check_kind(where, terms, dict, "a part is a JSON object")
    if set(terms) != {"question", "share", "sees", "blocks"}:
        raise DiscreetError(f"{where} has not the fields question, share, sees and blocks, or others too")
    question = check_count(f"{where}.question", terms["question"], least=NO_QUESTION, most=questions - 1)
    share = check_count(f"{where}.share", terms["share"], most=SHARE_UNITS)
    projection = _projection_from_terms(terms["sees"], columns, f"{where}.sees")
    blocks = _blocks_from_terms(terms["blocks"], projection, columns, f"{where}.blocks")
    return Part(question, projection, blocks, share / SHARE_UNITS)


def _projection_from_terms(terms: Any, columns: SurveyColumns, where: str) -> Projection:
    if not isinstance(terms, dict) or frozenset(terms) not in _SEEN:
        raise DiscreetError(f"{where} has not the field columns, nor column with cells or points")
    if "columns" in terms:
        check_kind(f"{where}.columns", terms["columns"], list, "it lists names of columns")
        names = columns.require_known_distinct_columns(terms["columns"], f"{where}.columns")
        if any(isinstance(columns[name], CellDomain) for name in names):
            raise DiscreetError(f"{where}.columns names a column of numbers; a table is one of labels or whole numbers")
        return JointColumns(names)
    (column,) = columns.require_known_distinct_columns([terms["column"]], f"{where}.column")
    if "cells" in terms:
        most = min(columns[column].size, _LARGEST_PARAMETER)
        return NumberCell(column, check_count(f"{where}.cells", terms["cells"], least=2, most=most))
    return NumberPoint(column, check_count(f"{where}.points", terms["points"], least=2, most=MOST_POINTS))


def _blocks_from_terms(terms: Any, projection: Projection, columns: SurveyColumns, where: str) -> Blocks:
    check_kind(where, terms, dict, "blocks are a JSON object")
    if terms.get("kind") == WeightedBlocks.name and isinstance(projection, JointColumns):
        return _weighted_blocks_from_terms(terms, projection.outcome_count(columns), where)
    kinds = {Windows.name: ("w",)} if isinstance(projection, NumberPoint) else BLOCK_KINDS
    kind = terms.get("kind")
    check_choice(f"{where}.kind", kind, kinds)
    if set(terms) != {"kind", *kinds[kind]}:
        raise DiscreetError(f"{where} has not the fields of {kind}: {', '.join(('kind', *kinds[kind]))}")
    numbers = {name: check_count(f"{where}.{name}", terms[name], most=_LARGEST_PARAMETER) for name in kinds[kind]}
    if isinstance(projection, NumberPoint):
        return Windows(projection.points, check_count(f"{where}.w", terms["w"], most=MOST_POINTS))
    return make_blocks_of_kind(kind, projection.outcome_count(columns), numbers)


def _weighted_blocks_from_terms(terms: dict[str, Any], size: int, where: str) -> WeightedBlocks:
    """Weighted blocks, whose numbers of copies are hexadecimal texts."""
    if size > MOST_OUTCOMES:
        raise DiscreetError(f"{where}: weighted blocks are for {MOST_OUTCOMES} outcomes at most")
    copies = terms.get("copies")
    if not isinstance(copies, list) or not all(isinstance(count, str) and _COPIES.fullmatch(count) for count in copies):
        raise DiscreetError(f"{where}.copies is not a list of hexadecimal texts such as '3f'")
    fields = {name: value for name, value in terms.items() if name != "kind"}
    try:
        return WeightedBlocks.from_terms(size, {**fields, "copies": [int(count, 16) for count in copies]})
    except DiscreetError as error:
        raise DiscreetError(f"{where}: {error}") from None


def _do_parts_answer_question(question: SurveyQuestion, parts: Sequence[Part]) -> bool:
    """Whether a question can be estimated from such parts."""
    projections = [part.projection for part in parts]
    match question:
        case MeanQuestion():
            return all(
                isinstance(projection, NumberPoint) and projection.column == question.columns[0]
                for projection in projections
            )
        case QuantileQuestion():
            counts = [projection.count for projection in projections if isinstance(projection, NumberCell)]
            base = next((prime for prime in (2, 3, 5, 7) if counts and counts[-1] % prime == 0), 0)
            levels = {base**level for level in range(1, 64)} if base else set()
            return (
                len(counts) == len(parts)
                and all(
                    projection.column == question.columns[0]
                    for projection in projections
                    if isinstance(projection, NumberCell)
                )
                and counts == sorted(set(counts))
                and set(counts) <= levels
                and counts[-1] <= LARGEST_TREE
            )
        case HistogramQuestion():
            return projections == [NumberCell(question.columns[0], question.cells)]
        case LinearQuestion(matrix=matrix):
            if projections != [JointColumns(question.columns)]:
                return False
            blocks = parts[0].blocks
            return not isinstance(blocks, WeightedBlocks) or blocks.determines_sums(matrix)
        case ShareQuestion():
            has_weighted_blocks = any(isinstance(part.blocks, WeightedBlocks) for part in parts)
            return projections == [JointColumns(question.columns)] and not has_weighted_blocks
    return False
