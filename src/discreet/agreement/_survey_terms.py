"""What an agreement on a survey states: the public columns of a client's rows, the questions, and the parts of the one report.

Columns are the family: a client may hold any distribution of rows. Questions and parts are the mechanism. Columns and labels are listed in
full, so an agreement on a survey is complete, and its id speaks for every label.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.agreement._family_terms import MOST_LISTED, AgreementTerms, Fields
from discreet.domain import VERSION, Labels
from discreet.errors import DiscreetError
from discreet.survey import Survey, SurveyColumns, SurveySampler, read_columns, read_parts, read_questions

ROW_KINDS = {"rows": Fields.of("kind columns")}
LARGEST_COLUMN = 0xFFFFFFF9  # outcomes that tables can code: the next numbers are marks
SURVEY = Fields.of("questions parts")


@dataclass(frozen=True, eq=False)
class RowTerms(AgreementTerms):
    """The rows that clients hold: public columns, and every distribution on them.

    Args:
        columns: of the survey.
        version: of the document.

    Raises:
        DiscreetError: for columns with more labels than a document lists.
    """

    columns: SurveyColumns
    version: int = VERSION

    kind = "rows"
    discretisation = None
    beside = None

    def __post_init__(self) -> None:
        for name, domain in self.columns.items():
            kinds = {type(label) for label in domain.labels or ()}
            if kinds not in ({str}, {int}, set()):
                raise DiscreetError(
                    f"column {name!r}: labels are neither all texts nor all whole numbers; write them one way"
                )
            if domain.size > LARGEST_COLUMN:
                raise DiscreetError(f"column {name!r} has {domain.size:,} outcomes, more than {LARGEST_COLUMN:,}")
        listed = sum(len(domain.labels or ()) for domain in self.columns.values())
        if listed > MOST_LISTED:
            raise DiscreetError(_too_many_labels(listed))

    @cached_property
    def document(self) -> dict[str, Any]:
        """The terms as JSON values."""
        listed = [
            {"name": name, **terms} for name, terms in self.columns.terms.items()
        ]  # in order, which objects have not
        return {"kind": self.kind, "columns": listed}

    @property
    def full_terms(self) -> dict[str, Any]:
        """The same: everything is listed."""
        return self.document

    @property
    def size(self) -> int:
        """The number of different rows."""
        return self.columns.size

    @property
    def description(self) -> str:
        """The family in words."""
        return f"rows of {', '.join(self.columns)}"

    def with_beside(self, path: Path) -> "RowTerms":
        """The same: no survey has a file beside its agreement."""
        return self

    def family(self) -> Any:
        """No family has so many outcomes; a survey is sampled by `agreement.sampler()`."""
        raise DiscreetError(
            f"the agreement is on {self.description}, not on a list of outcomes; use agreement.sampler()"
        )


@dataclass(frozen=True, eq=False)
class SurveyTerms(AgreementTerms):
    """The questions of a survey, and the parts by which they are answered, as JSON values that were checked.

    Args:
        questions: as a survey file lists them.
        parts: what clients are asked, and how often (`discreet.survey._parts`).
    """

    FIELDS = ("questions", "parts")

    questions: list[Any]
    parts: list[Any]

    @classmethod
    def of(cls, sampler: SurveySampler) -> "SurveyTerms":
        """The terms of a sampler."""
        return cls([question.terms for question in sampler.survey.questions], sampler.part_terms)

    def sampler(self, columns: SurveyColumns, epsilon: float) -> SurveySampler:
        """What releases the reports; an error names the first wrong field."""
        questions = read_questions(self.questions, "survey.questions")
        survey = Survey(columns, questions)
        parts = read_parts(self.parts, questions, columns, "survey.parts")
        return SurveySampler(survey, epsilon=epsilon, parts=parts)


def read_row_terms(fields: dict[str, Any], version: int = VERSION) -> RowTerms:
    """The terms that a document states."""
    listed = fields["columns"]
    if not isinstance(listed, list) or not all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in listed
    ):
        raise DiscreetError("family.columns is not a list of columns, each with its name")
    columns = [(each["name"], {field: value for field, value in each.items() if field != "name"}) for each in listed]
    if len({str(name) for name, _ in columns}) < len(columns):
        raise DiscreetError("family.columns names a column twice")
    _check_listed(each for _, each in columns)
    return RowTerms(read_columns(dict(columns), "family.columns"), version)


def _check_listed(columns: Iterable[Any]) -> None:
    """Raise an error for more labels or days than a document lists, before any of them is made."""
    listed = 0
    for terms in columns:
        if set(terms) == {"first", "last"}:
            listed += Labels.count_days(terms["first"], terms["last"])
        elif isinstance(terms.get("labels"), list):
            listed += len(terms["labels"])
    if listed > MOST_LISTED:
        raise DiscreetError(_too_many_labels(listed))


def _too_many_labels(listed: int) -> str:
    return (
        f"the columns have {listed:,} labels, and an agreement on a survey lists at most {MOST_LISTED:,}; number the outcomes of the largest "
        "column, from 0 on"
    )
