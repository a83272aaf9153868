"""The parts of a survey as an agreement states them: what each sees of a row, its blocks, and how often it is asked.

Parts are written down, not chosen again, so that an agreement keeps them when the choice changes. Privacy holds for all parts that are read
here (`discreet.survey._sampler`): it rests on the numbers of blocks alone. Poor parts cost accuracy.

A part that no question names is a wider table, which tells the marginals of several questions; its question is -1.

A share is stated as a whole number of units, so that every machine draws the same coin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from discreet.domain import CellDomain
from discreet.errors import DiscreetError, check_choice, check_count, check_kind
from discreet.mechanisms import BLOCK_KINDS, BlockFamily, RankedSubsets, blocks_named
from discreet.survey._coin import NO_QUESTION
from discreet.survey._columns import SurveyColumns
from discreet.survey._optimised import MOST_OUTCOMES
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
    CellOf,
    Part,
    PointOf,
    Projection,
    Together,
    Windows,
)
from discreet.survey._weighted_blocks import WeightedBlocks

_LARGEST_PARAMETER = 1 << 31
_MOST_PARTS = 4096
_MOST_RANKED = 1 << 22  # binomial coefficients of all parts, times the width of their subsets
_COPIES = re.compile("[1-9a-f][0-9a-f]{0,15}")
_SEEN = {frozenset({"columns"}), frozenset({"column", "cells"}), frozenset({"column", "points"})}


def part_terms(part: Part) -> dict[str, Any]:
    """A part as JSON values."""
    match part.projection:
        case Together(columns):
            sees: dict[str, Any] = {"columns": list(columns)}
        case CellOf(column, count):
            sees = {"column": column, "cells": count}
        case PointOf(column, points):
            sees = {"column": column, "points": points}
    return {
        "question": part.question,
        "share": part.share_units,
        "sees": sees,
        "blocks": {"kind": part.blocks.name, **_block_terms(part.blocks)},
    }


def _block_terms(blocks: BlockFamily | Windows | WeightedBlocks) -> dict[str, Any]:
    if isinstance(blocks, Windows):
        return {"w": blocks.width}
    if isinstance(blocks, WeightedBlocks):  # numbers of copies as texts: JSON has no whole numbers of 62 bits
        return {**blocks.terms, "copies": [f"{often:x}" for often in blocks.copies]}
    return blocks.parameters


def read_parts(
    terms: Any, questions: Sequence[SurveyQuestion], columns: SurveyColumns, where: str = "parts"
) -> tuple[Part, ...]:
    """The parts of these terms, if they answer the questions; an error names the first wrong field."""
    if not isinstance(terms, list) or not 0 < len(terms) <= _MOST_PARTS:
        raise DiscreetError(f"{where} is not a list of 1 to {_MOST_PARTS:,} parts")
    found = tuple(_read_part(each, len(questions), columns, f"{where}[{place}]") for place, each in enumerate(terms))
    return check_parts(found, questions, columns, where)


def check_parts(
    parts: Any, questions: Sequence[SurveyQuestion], columns: SurveyColumns, where: str = "parts"
) -> tuple[Part, ...]:
    """The parts, if their blocks are on what they see, and they answer the questions."""
    if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(part, Part) for part in parts):
        raise DiscreetError(
            f"{where} is not a list of parts; leave it out, and those with the smallest variance are taken"
        )
    found = tuple(parts)
    for place, part in enumerate(found):
        _check_part(part, questions, columns, f"{where}[{place}]")
    if (
        sum(part.blocks.size * (part.blocks.width + 1) for part in found if isinstance(part.blocks, RankedSubsets))
        > _MOST_RANKED
    ):
        raise DiscreetError(
            f"{where}: subsets by their ranks on so many outcomes take too much memory; use affine blocks"
        )
    for place, question in enumerate(questions):
        own = [part for part in found if part.question == place]
        if not own:
            raise DiscreetError(f"{where}: no part answers question {place}, {question.title}")
        if not _is_answered_by(question, own):
            raise DiscreetError(f"{where}: the parts of question {place} do not answer it, {question.title}")
    order = [len(questions) if part.question == NO_QUESTION else part.question for part in found]
    if order != sorted(order):
        raise DiscreetError(
            f"{where} are not in the order of the questions, with those that no question names at the end"
        )
    return found


def _check_part(part: Part, questions: Sequence[SurveyQuestion], columns: SurveyColumns, where: str) -> None:
    """Refuse blocks on another number of outcomes than the part sees: privacy rests on them. Refuse tables that nobody asked for."""
    names = part.projection.columns if isinstance(part.projection, Together) else (part.projection.column,)
    columns.check_names(names, where)
    if part.blocks.size != part.projection.size(columns):
        raise DiscreetError(
            f"{where}: the blocks are on {part.blocks.size:,} outcomes, and the part sees {part.projection.size(columns):,}"
        )
    if part.question != NO_QUESTION:
        return
    asked = {name for question in questions if type(question) is ShareQuestion for name in question.columns}
    table = isinstance(part.projection, Together) and isinstance(part.blocks, BlockFamily)
    if not table or not 2 <= len(names) <= LARGEST_TOGETHER or not asked >= set(names):
        raise DiscreetError(
            f"{where}: a part without a question is a table of two or three columns whose shares are asked"
        )
    if part.blocks.size > MOST_CELLS:
        raise DiscreetError(f"{where}: a table of {part.blocks.size:,} outcomes; {MOST_CELLS:,} at most")


def _read_part(terms: Any, questions: int, columns: SurveyColumns, where: str) -> Part:
    check_kind(where, terms, dict, "a part is a JSON object")
    if set(terms) != {"question", "share", "sees", "blocks"}:
        raise DiscreetError(f"{where} has not the fields question, share, sees and blocks, or others too")
    question = check_count(f"{where}.question", terms["question"], least=NO_QUESTION, most=questions - 1)
    share = check_count(f"{where}.share", terms["share"], most=SHARE_UNITS)
    projection = _read_projection(terms["sees"], columns, f"{where}.sees")
    blocks = _read_blocks(terms["blocks"], projection, columns, f"{where}.blocks")
    return Part(question, projection, blocks, share / SHARE_UNITS)


def _read_projection(terms: Any, columns: SurveyColumns, where: str) -> Projection:
    if not isinstance(terms, dict) or frozenset(terms) not in _SEEN:
        raise DiscreetError(f"{where} has not the field columns, nor column with cells or points")
    if "columns" in terms:
        check_kind(f"{where}.columns", terms["columns"], list, "it lists names of columns")
        names = columns.check_names(terms["columns"], f"{where}.columns")
        if any(isinstance(columns[name], CellDomain) for name in names):
            raise DiscreetError(f"{where}.columns names a column of numbers; a table is one of labels or whole numbers")
        return Together(names)
    (column,) = columns.check_names([terms["column"]], f"{where}.column")
    if "cells" in terms:
        most = min(columns[column].size, _LARGEST_PARAMETER)
        return CellOf(column, check_count(f"{where}.cells", terms["cells"], least=2, most=most))
    return PointOf(column, check_count(f"{where}.points", terms["points"], least=2, most=MOST_POINTS))


def _read_blocks(
    terms: Any, projection: Projection, columns: SurveyColumns, where: str
) -> BlockFamily | Windows | WeightedBlocks:
    check_kind(where, terms, dict, "blocks are a JSON object")
    if terms.get("kind") == WeightedBlocks.name and isinstance(projection, Together):
        return _read_weighted(terms, projection.size(columns), where)
    kinds = {Windows.name: ("w",)} if isinstance(projection, PointOf) else BLOCK_KINDS
    kind = terms.get("kind")
    check_choice(f"{where}.kind", kind, kinds)
    if set(terms) != {"kind", *kinds[kind]}:
        raise DiscreetError(f"{where} has not the fields of {kind}: {', '.join(('kind', *kinds[kind]))}")
    numbers = {name: check_count(f"{where}.{name}", terms[name], most=_LARGEST_PARAMETER) for name in kinds[kind]}
    if isinstance(projection, PointOf):
        return Windows(projection.points, check_count(f"{where}.w", terms["w"], most=MOST_POINTS))
    return blocks_named(kind, projection.size(columns), numbers)


def _read_weighted(terms: dict[str, Any], size: int, where: str) -> WeightedBlocks:
    """Weighted blocks, whose numbers of copies are hexadecimal texts."""
    if size > MOST_OUTCOMES:
        raise DiscreetError(f"{where}: weighted blocks are for {MOST_OUTCOMES} outcomes at most")
    copies = terms.get("copies")
    if not isinstance(copies, list) or not all(isinstance(each, str) and _COPIES.fullmatch(each) for each in copies):
        raise DiscreetError(f"{where}.copies is not a list of hexadecimal texts such as '3f'")
    listed = {name: value for name, value in terms.items() if name != "kind"}
    try:
        return WeightedBlocks.from_terms(size, {**listed, "copies": [int(each, 16) for each in copies]})
    except DiscreetError as error:
        raise DiscreetError(f"{where}: {error}") from None


def _is_answered_by(question: SurveyQuestion, parts: Sequence[Part]) -> bool:
    """Whether estimates can be made from such parts."""
    projections = [part.projection for part in parts]
    match question:
        case MeanQuestion():
            return all(isinstance(each, PointOf) and each.column == question.columns[0] for each in projections)
        case QuantileQuestion():
            counts = [each.count for each in projections if isinstance(each, CellOf)]
            base = next((prime for prime in (2, 3, 5, 7) if counts and counts[-1] % prime == 0), 0)
            levels = {base**level for level in range(1, 64)} if base else set()
            return (
                len(counts) == len(parts)
                and all(each.column == question.columns[0] for each in projections if isinstance(each, CellOf))
                and counts == sorted(set(counts))
                and set(counts) <= levels
                and counts[-1] <= LARGEST_TREE
            )
        case HistogramQuestion():
            return projections == [CellOf(question.columns[0], question.cells)]
        case LinearQuestion(matrix=matrix):
            if projections != [Together(question.columns)]:
                return False
            blocks = parts[0].blocks
            return not isinstance(blocks, WeightedBlocks) or blocks.tells(matrix)
        case ShareQuestion():
            weighted = any(isinstance(part.blocks, WeightedBlocks) for part in parts)
            return projections == [Together(question.columns)] and not weighted
    return False
