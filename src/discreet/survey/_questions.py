"""`Survey`: public columns and questions about them. The answer to a question is linear in the average client's distribution of rows.

`shares`, `histogram` and `linear` ask for probabilities of outcomes or sums of them, `mean` for the average of a number, and `quantiles`
for points of its distribution function. A client that holds several rows counts as one: its rows share its weight.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import error_reason
from discreet.domain import CellDomain, Interval, json_hook_refusing_repeated_fields, sha256_digest
from discreet.errors import OPEN_UNIT, DiscreetError, Range, check_count, check_kind, check_path
from discreet.survey._columns import SurveyColumns, survey_columns_from_terms

LARGEST_TOGETHER = 3  # columns of one question
QUARTILES = (0.25, 0.5, 0.75)
MOST_CELLS = 10_000_000
_LARGEST_ENTRY = 1e100
_WEIGHTS = Range(1e-6, 1e6)


@dataclass(frozen=True)
class SurveyQuestion:
    """One question of a survey; `shares`, `histogram`, `mean`, `quantiles` and `linear` make them.

    Attributes:
        columns: which columns it is about.
        weight: how much its error counts beside that of the others.
    """

    columns: tuple[str, ...]
    weight: float

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _WEIGHTS.check("weight", self.weight, "it says how much the error counts"))

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"{self.kind} of {' x '.join(self.columns)}"

    def refuse_unfit_columns(self, columns: SurveyColumns) -> None:
        """Raise an error where these columns cannot answer the question."""
        columns.require_known_distinct_columns(self.columns, self.kind)

    @property
    def terms(self) -> dict[str, Any]:
        """The question in a survey file."""
        terms: dict[str, Any] = {self.kind: list(self.columns) if len(self.columns) > 1 else self.columns[0]}
        return terms if self.weight == 1.0 else {**terms, "weight": self.weight}


@dataclass(frozen=True)
class ShareQuestion(SurveyQuestion):
    """The share of each outcome of one column, or of two or three together."""

    kind: ClassVar[str] = "shares"

    def refuse_unfit_columns(self, columns: SurveyColumns) -> None:
        super().refuse_unfit_columns(columns)
        if len(self.columns) > LARGEST_TOGETHER:
            raise DiscreetError(f"shares of {len(self.columns)} columns together; ask at most {LARGEST_TOGETHER}")
        for name in self.columns:
            if isinstance(columns[name], CellDomain):
                raise DiscreetError(
                    f"shares: column {name!r} holds numbers; ask a histogram, a mean or quantiles of it"
                )
        outcomes = int(np.prod(columns.column_sizes(self.columns), dtype=object))
        if outcomes == 1:
            raise DiscreetError(f"shares: {' x '.join(self.columns)} has one outcome, whose share is 1; leave it out")
        if outcomes > MOST_CELLS:
            raise DiscreetError(f"shares of {' x '.join(self.columns)} are {outcomes:,}; ask at most {MOST_CELLS:,}")


@dataclass(frozen=True)
class NumberQuestion(SurveyQuestion):
    """A question about one column of numbers."""

    def refuse_unfit_columns(self, columns: SurveyColumns) -> None:
        super().refuse_unfit_columns(columns)
        if len(self.columns) != 1 or not isinstance(columns[self.columns[0]], Interval):
            raise DiscreetError(
                f"{self.kind}: column {self.columns[0]!r} holds no numbers between bounds; declare it as Number(low, high)"
            )


@dataclass(frozen=True)
class HistogramQuestion(NumberQuestion):
    """The shares of equal cells of a number."""

    cells: int
    kind: ClassVar[str] = "histogram"

    def refuse_unfit_columns(self, columns: SurveyColumns) -> None:
        super().refuse_unfit_columns(columns)
        resolution = columns[self.columns[0]].size
        if self.cells > resolution:
            raise DiscreetError(
                f"histogram: cells = {self.cells:,}, but {self.columns[0]!r} is read to {resolution:,} cells"
            )

    @property
    def terms(self) -> dict[str, Any]:
        return {**super().terms, "cells": self.cells}


@dataclass(frozen=True)
class MeanQuestion(NumberQuestion):
    """The mean of a number; the total is the mean times the number of clients."""

    kind: ClassVar[str] = "mean"


@dataclass(frozen=True)
class QuantileQuestion(NumberQuestion):
    """The values below which given shares of the distribution lie."""

    at: tuple[float, ...]
    kind: ClassVar[str] = "quantiles"

    def refuse_unfit_columns(self, columns: SurveyColumns) -> None:
        super().refuse_unfit_columns(columns)
        if columns[self.columns[0]].size < 2:
            raise DiscreetError(f"quantiles: column {self.columns[0]!r} has one cell; declare it as Number(low, high)")

    @property
    def terms(self) -> dict[str, Any]:
        return {**super().terms, "at": list(self.at)}


@dataclass(frozen=True, eq=False)
class LinearQuestion(ShareQuestion):
    """Own sums of shares: one row of a matrix for each sum, one column for each outcome."""

    matrix: NDArray[np.float64]
    kind: ClassVar[str] = "linear"

    def refuse_unfit_columns(self, columns: SurveyColumns) -> None:
        super().refuse_unfit_columns(columns)
        outcomes = int(np.prod(columns.column_sizes(self.columns)))
        fits = self.matrix.ndim == 2 and len(self.matrix) and self.matrix.shape[1] == outcomes
        if not fits or not (np.abs(self.matrix) <= _LARGEST_ENTRY).all():
            raise DiscreetError(
                f"linear: matrix has shape {self.matrix.shape}; it has one number of at most 1e100 for each of {outcomes:,} "
                f"outcomes of {' x '.join(self.columns)} in every row"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearQuestion) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.columns, self.weight, (self.matrix + 0.0).tobytes()))  # -0.0 + 0.0 = 0.0

    @property
    def terms(self) -> dict[str, Any]:
        return {**super().terms, "matrix": self.matrix.tolist()}


def shares(*columns: str, weight: float = 1.0) -> ShareQuestion:
    """Ask for the share of each outcome of a column, or of two or three columns together.

    Args:
        columns: one to three names.
        weight: how much the squared error of a share counts beside other questions.

    Returns:
        The question.

    Raises:
        DiscreetError: for names that are no texts, or a weight that is not from 1e-6 to 1e6.
    """
    return ShareQuestion(_require_column_names(columns), weight)


def histogram(column: str, *, cells: int = 20, weight: float = 1.0) -> HistogramQuestion:
    """Ask for the shares of equal cells of a number.

    Args:
        column: a column of numbers.
        cells: how many cells, at most 4,096.
        weight: how much the squared error of a share counts beside other questions.

    Returns:
        The question.

    Raises:
        DiscreetError: for a name that is no text, a number of cells below 2, or a weight that is not from 1e-6 to 1e6.
    """
    return HistogramQuestion(_require_column_names((column,)), weight, check_count("cells", cells, least=2, most=4096))


def mean(column: str, *, weight: float = 1.0) -> MeanQuestion:
    """Ask for the mean of a number, and its total.

    Args:
        column: a column of numbers.
        weight: how much its squared error, in parts of the range, counts beside other questions.

    Returns:
        The question.

    Raises:
        DiscreetError: for a name that is no text, or a weight that is not from 1e-6 to 1e6.
    """
    return MeanQuestion(_require_column_names((column,)), weight)


def quantiles(column: str, *, at: Sequence[float] = QUARTILES, weight: float = 1.0) -> QuantileQuestion:
    """Ask for quantiles of a number.

    Args:
        column: a column of numbers.
        at: which ones, between 0 and 1.
        weight: how much the squared error of the distribution function counts beside other questions.

    Returns:
        The question.

    Raises:
        DiscreetError: for levels that are not between 0 and 1, a name that is no text, or a weight that is not from 1e-6 to 1e6.
    """
    check_kind("at", at, Sequence, "pass shares between 0 and 1, such as (0.5, 0.9)")
    levels = tuple(OPEN_UNIT.check("at", level) for level in at)
    if not levels:
        raise DiscreetError("at is empty; pass shares between 0 and 1, such as (0.5, 0.9)")
    return QuantileQuestion(_require_column_names((column,)), weight, levels)


def linear(matrix: Any, *columns: str, weight: float = 1.0) -> LinearQuestion:
    """Ask for own sums of shares.

    Args:
        matrix: one row for each sum, one number for each outcome of the columns together.
        columns: one to three names; of several, the outcomes of the last one count fastest.
        weight: how much the squared error of a sum counts beside other questions.

    Returns:
        The question.

    Raises:
        DiscreetError: for a matrix that is no table of numbers, names that are no texts, or a weight that is not from 1e-6 to 1e6.
    """
    try:
        if getattr(matrix, "dtype", None) is None or matrix.dtype.kind not in "biuf":
            entries = np.array(matrix, dtype=object)
            if any(
                isinstance(entry, (str, bytes, bool, np.bool_, complex, np.complexfloating)) for entry in entries.flat
            ):
                raise ValueError
        rows = np.atleast_2d(np.array(matrix, dtype=np.float64))  # a copy, which nobody changes
        rows.flags.writeable = False
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(
            "matrix is not a table of numbers; pass a list of rows of numbers, or an array of numbers or truth values"
        ) from None
    return LinearQuestion(_require_column_names(columns), weight, rows)


def _require_column_names(columns: Sequence[str]) -> tuple[str, ...]:
    for name in columns:
        check_kind("column", name, str, "pass the name of a column")
    if not columns:
        raise DiscreetError("columns is empty; name at least one")
    return tuple(columns)


def survey_questions_from_terms(terms: Any, where: str = "questions") -> list[SurveyQuestion]:
    """The questions of a survey file or an agreement."""
    if not isinstance(terms, list):
        raise DiscreetError(f"{where} is not a list of questions")
    return [_question_from_terms(question, f"{where}[{index}]") for index, question in enumerate(terms)]


def _matrix_rows_from_terms(terms: Any) -> list[Any]:
    """A list of rows of numbers, or one row; numpy alone would take texts and booleans for numbers."""
    rows = terms if isinstance(terms, list) and all(isinstance(row, list) for row in terms) else [terms]
    for row in rows:
        if not isinstance(row, list) or not all(type(entry) in (int, float) for entry in row):
            raise DiscreetError("matrix is not a list of rows of numbers, one number for each outcome")
    return rows


def _question_from_terms(terms: Any, where: str) -> SurveyQuestion:
    """A question of a survey file; errors name its place."""
    fields_by_kind = {"shares": (), "histogram": ("cells",), "mean": (), "quantiles": ("at",), "linear": ("matrix",)}
    if not isinstance(terms, dict):
        raise DiscreetError(f'{where} is not a question; write {{"shares": "column"}}')
    kinds = [name for name in terms if name in fields_by_kind]
    if len(kinds) != 1:
        raise DiscreetError(f"{where} names {len(kinds)} of {', '.join(fields_by_kind)}; name one of them")
    (kind,) = kinds
    names, options = terms[kind], {name: value for name, value in terms.items() if name != kind}
    for name in options:
        if name not in (*fields_by_kind[kind], "weight"):
            raise DiscreetError(f"{where} has a field {name!r} that {kind} does not know")
    columns = list(names) if isinstance(names, (list, tuple)) else [names]
    try:
        match kind:
            case "shares":
                return shares(*columns, **options)
            case "linear":
                return linear(_matrix_rows_from_terms(options.pop("matrix", None)), *columns, **options)
        if len(columns) != 1:
            raise DiscreetError(f"{kind} is about one column")
        number_questions: dict[str, Callable[..., SurveyQuestion]] = {
            "histogram": histogram,
            "mean": mean,
            "quantiles": quantiles,
        }
        return number_questions[kind](columns[0], **options)
    except DiscreetError as error:
        raise DiscreetError(f"{where}: {error}") from None


@final
class Survey:
    """What is asked of a population: public columns, and questions about them.

    Args:
        columns: for each name a list of labels, a number of outcomes, `Number(low, high)`, `Dates(first, last)` or a `Domain`.
        questions: what `shares`, `histogram`, `mean`, `quantiles` and `linear` make.

    Raises:
        DiscreetError: for columns that are none, and questions that they cannot answer.

    Example:
        >>> survey = Survey({"region": ["north", "south"], "amount": Number(0, 500)}, [shares("region"), mean("amount")])
        >>> sampler = SurveySampler(survey, epsilon=1.0)
        >>> reports = sampler.release_table({"region": ["north", "south"], "amount": [20.0, 31.5]})
    """

    def __init__(self, columns: Mapping[str, Any] | SurveyColumns, questions: Sequence[SurveyQuestion]) -> None:
        self.columns = columns if isinstance(columns, SurveyColumns) else SurveyColumns(columns)
        if isinstance(questions, (str, SurveyQuestion)) or not isinstance(questions, Sequence) or not questions:
            raise DiscreetError("questions is not a list of questions; pass [shares('column'), ...]")
        for question in questions:
            check_kind("a question", question, SurveyQuestion, "shares(...), mean(...) and others make them")
            question.refuse_unfit_columns(self.columns)
        self.questions = tuple(questions)

    def __repr__(self) -> str:
        return f"<Survey of {', '.join(self.columns)}: {'; '.join(question.title for question in self.questions)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self._content_as_json == other._content_as_json

    def __hash__(self) -> int:
        return hash(self._content_as_json)

    @cached_property
    def _content_as_json(self) -> str:
        """Columns in order, with their units, and questions."""
        try:
            columns: Any = list(self.columns.terms.items())
        except DiscreetError:  # of a domain that no file states
            columns = repr(self.columns)
        return json.dumps([columns, [question.terms for question in self.questions]], sort_keys=True, default=repr)

    @property
    def terms(self) -> dict[str, Any]:
        """The survey as a file states it."""
        return {"columns": self.columns.terms, "questions": [question.terms for question in self.questions]}

    @property
    def digest(self) -> str:
        """The SHA-256 of its terms."""
        return sha256_digest(self._content_as_json.encode())

    def write(self, path: str | Path) -> None:
        """Write the survey file.

        Args:
            path: where to.

        Raises:
            DiscreetError: for a file that cannot be written, and a column that no file can state.
        """
        terms, file = json.dumps(self.terms, indent=1, ensure_ascii=False), check_path("path", path)
        try:
            file.write_text(terms + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DiscreetError(f"the survey {str(path)!r} cannot be written: {error_reason(error)}") from None

    @classmethod
    def read(cls, path: str | Path) -> Survey:
        """Read a survey file.

        Args:
            path: of a JSON file with `columns` and `questions`.

        Returns:
            The survey.

        Raises:
            DiscreetError: for a file that cannot be read or is no survey; the message names the field.
        """
        file = check_path("path", path)
        try:
            terms = json.loads(
                file.read_text(encoding="utf-8"),
                object_pairs_hook=json_hook_refusing_repeated_fields("the survey file"),
            )
        except (OSError, DiscreetError) as error:
            raise DiscreetError(f"the survey {str(path)!r} cannot be read: {error_reason(error)}") from None
        except (ValueError, RecursionError) as error:
            raise DiscreetError(
                f"the survey {str(path)!r} cannot be read: it is not JSON ({error}); give a file with the fields columns and questions"
            ) from None
        return cls.from_terms(terms)

    @classmethod
    def from_terms(cls, terms: Any) -> Survey:
        """The survey of `terms`.

        Args:
            terms: what a survey file holds.

        Returns:
            The survey.

        Raises:
            DiscreetError: for terms that are none; the message names the field.
        """
        if not isinstance(terms, dict) or set(terms) != {"columns", "questions"}:
            raise DiscreetError("a survey has the fields columns and questions, and no others")
        return cls(survey_columns_from_terms(terms["columns"]), survey_questions_from_terms(terms["questions"]))
