"""`DeviceData`: a device's data as the distribution of its sample, by the agreement's public rule and without errors.

A collector sees whether a sample comes. If a value outside the domain were an error, a collector could offer one domain after another and
learn the data without any sample. Errors in the data alone are therefore raised before the collector is contacted. Afterwards every input
has a distribution:

* a value without an outcome counts as the agreement's `other` outcome; if it names none, the value is left out;
* a number beyond the end of an interval, or of a continuous family's box, becomes that end;
* a device without remaining values is treated as the reference, by the same integers as every client;
* of a survey, a row with a value outside in any column is left out; a device without remaining rows sends a uniform report.

The device's owner sees the result (`DeviceDraw.outside`, `DeviceDraw.problem`); the collector does not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import LabelledValues, iterates_over_column_names, split_labels_from_numbers
from discreet.agreement import Agreement
from discreet.domain import (
    CellDomain,
    Domain,
    Numbers,
    records_as_floats_or_nan,
    records_as_list,
    whole_floats_as_integers,
)
from discreet.errors import DiscreetError
from discreet.families import SUM_TOLERANCE, ContinuousFamily, as_floats, refuse_bad_entries, renormalise_rounded_laws
from discreet.mechanisms import AnyFamily, OwnSampler, ReportSampler, Sampler
from discreet.survey import SurveySampler

Floats = NDArray[np.float64]
OutcomeSampler = Sampler[AnyFamily] | ReportSampler
AnySampler = OutcomeSampler | SurveySampler
Result = TypeVar("Result")
_SLACK = 1e-9  # tolerance for rounding at the edges of a band


@dataclass(frozen=True, eq=False)
class DeviceDraw:
    """The draw of a sample. `outside`: the share of the device's data without an outcome in the agreement's domain.

    `problem` is one sentence for the device's owner, or empty.
    """

    draw: Callable[[], int]
    outside: float = 0.0
    problem: str = ""


@dataclass(frozen=True, eq=False)
class DeviceData:
    """The data of a device, checked as far as possible without an agreement: amounts by outcome, records, a density, or rows."""

    amounts: LabelledValues | Floats | None = None
    records: list[Any] | None = None
    density: Any = None
    rows: list[Mapping[str, Any]] | None = None

    @classmethod
    def from_arguments(cls, p: Any, records: Any, counts: Any, rows: Any = None) -> "DeviceData":
        """The one of the four that is given; an error if it is invalid by itself."""
        if sum(argument is not None for argument in (p, records, counts, rows)) != 1:
            raise DiscreetError(
                "pass one of p (a distribution), records= (outcomes), counts= (how often each) and rows= (of a survey)"
            )
        if rows is not None:
            return cls(rows=_rows_as_mappings(rows))
        if records is not None:
            return cls(records=records_as_list(records))
        if counts is not None:
            return cls(amounts=_parse_outcome_amounts(counts, "counts"))
        if isinstance(p, str) or (isinstance(p, list | tuple) and any(isinstance(entry, str) for entry in p)):
            raise DiscreetError("p holds texts, not a distribution; pass records as records=")
        if callable(p) or any(hasattr(p, name) for name in ("pdf", "logpdf", "log_density")):
            return cls(density=p)
        amounts = _parse_outcome_amounts(p, "p")
        values = amounts.values if isinstance(amounts, LabelledValues) else amounts
        if abs(float(values.sum()) - 1.0) > SUM_TOLERANCE:
            raise DiscreetError(f"p sums to {values.sum():.12g}, not to 1; normalise it, or pass counts=")
        return cls(amounts=amounts)

    def prepare_draw(self, sampler: AnySampler, agreement: Agreement) -> DeviceDraw:
        """How a sample or a report of this device is drawn under the agreement. No input is refused."""

        def prepare_draw_by_family() -> DeviceDraw:
            if isinstance(sampler, SurveySampler):
                return self._prepare_survey_draw(sampler)
            family = sampler.family
            if isinstance(family, ContinuousFamily):
                assert not isinstance(sampler, ReportSampler)  # whose family is a simplex
                return self._prepare_density_draw(sampler, family)
            return self._prepare_outcome_draw(sampler, family.domain, agreement.other)

        return _result_or_fallback(prepare_draw_by_family, lambda error: _prepare_reference_draw(sampler, str(error)))

    def _prepare_survey_draw(self, sampler: SurveySampler) -> DeviceDraw:
        if self.rows is None:
            return _prepare_reference_draw(sampler, "the device holds no rows, and the agreement is on a survey")
        numbers = sampler.survey.columns.find_row_numbers_of_records(self.rows)
        inside = numbers[numbers >= 0]
        if not len(inside):
            return _prepare_reference_draw(sampler, "nothing that the device holds is a row of the survey")
        outside = 1.0 - len(inside) / len(numbers)
        problem = f"{100 * outside:.3g} % of the device's rows are outside the survey's columns, and were left out"
        return _prepare_draw_with_reference_fallback(
            sampler, lambda: sampler.release_number(inside), outside, problem if outside else ""
        )

    def _prepare_outcome_draw(self, sampler: OutcomeSampler, domain: Domain, other: int | None) -> DeviceDraw:
        amounts = np.zeros(domain.size)
        if self.records is not None:
            numbers = _outcome_numbers_of_records(domain, self.records)
            values = np.ones(len(numbers))
        elif isinstance(self.amounts, LabelledValues):
            label_domain = Numbers(domain.size) if isinstance(domain, CellDomain) else domain
            numbers, values = label_domain.find_numbers(list(self.amounts.labels)), self.amounts.values
        elif self.amounts is not None and len(self.amounts) == domain.size:
            numbers, values = np.arange(domain.size), self.amounts
        else:
            holding = "rows or a density" if self.amounts is None else f"{len(self.amounts)} numbers"
            return _prepare_reference_draw(
                sampler, f"the device holds {holding}, and the agreement is on {domain.size} outcomes"
            )
        values = values / max(float(values.max(initial=0.0)), 1e-300)  # so that no sum overflows
        inside = numbers >= 0
        np.add.at(amounts, numbers[inside], values[inside])
        total, outside = float(values.sum()), float(values[~inside].sum())
        if other is not None:
            amounts[other] += outside
        if not amounts.sum() > 0.0:
            return _prepare_reference_draw(sampler, "nothing that the device holds is an outcome of the agreement")
        device_law = amounts / amounts.sum()
        law = _move_law_into_band(device_law, sampler)
        share = outside / total
        treatment = "was left out" if other is None else "counts as the agreement's other outcome"
        problems = []
        if outside:
            problems.append(
                f"{100 * share:.3g} % of what the device holds is outside the agreement's domain, and {treatment}"
            )
        if law is not device_law:
            problems.append("the device's distribution is outside the agreement's family, and was moved to its edge")
        problem = "; ".join(problems)
        return _prepare_draw_with_reference_fallback(
            sampler, lambda: _draw_in_constant_time(sampler, law), share, problem
        )

    def _prepare_density_draw(self, sampler: Sampler[AnyFamily], family: ContinuousFamily) -> DeviceDraw:
        if self.amounts is not None or self.rows is not None:
            return _prepare_reference_draw(
                sampler, "the device holds numbers by outcome or rows, and the agreement is on densities"
            )
        if self.records is None:
            return _prepare_draw_with_reference_fallback(
                sampler, lambda: int(sampler.release_number(self.density)), 0.0, ""
            )
        points = _records_as_points(self.records, family.dim)
        low, high = family.space
        nearest = np.clip(points, low, high)
        usable = np.asarray(np.isfinite(nearest).all(axis=1))
        usable[usable] = np.isfinite(family.log_reference(nearest[usable]))
        outside = 1.0 - float((usable & (nearest == points).all(axis=1)).mean()) if len(points) else 0.0
        if not usable.any():
            return _prepare_reference_draw(
                sampler, "nothing that the device holds is a point of the agreement's family"
            )
        law = family.law(records=nearest[usable])
        problem = f"{100 * outside:.3g} % of the records are outside the agreement's family" if outside else ""
        return _prepare_draw_with_reference_fallback(
            sampler, lambda: int(sampler.release_number(law)), outside, problem
        )


def _rows_as_mappings(rows: Any) -> list[Mapping[str, Any]]:
    """The rows of a device: a list of mappings, or a table as a dict of columns or a frame."""
    if iterates_over_column_names(rows):
        columns = {
            str(name): records_as_list(rows[name]) for name in (rows if isinstance(rows, Mapping) else rows.columns)
        }
        if len({len(values) for values in columns.values()}) > 1:
            raise DiscreetError("the columns of rows differ in length; pass one value of each column for each row")
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    mappings = records_as_list(rows)
    for index, row in enumerate(mappings):
        if not isinstance(row, Mapping):
            raise DiscreetError(
                f"rows[{index}] is not a dict of columns and values; pass rows=[{{'column': value}}, ...]"
            )
    return mappings


def _records_as_points(records: list[Any], dim: int) -> Floats:
    """Records as points (n, dim), NaN for invalid ones."""
    if dim == 1:
        return records_as_floats_or_nan([record[0] if np.shape(record) == (1,) else record for record in records])[
            :, None
        ]
    rows = [
        records_as_floats_or_nan(record) if np.shape(record) == (dim,) else np.full(dim, np.nan) for record in records
    ]
    return np.array(rows).reshape(-1, dim)


def _draw_in_constant_time(sampler: OutcomeSampler, law: Floats) -> int:
    """A draw that takes as long whatever the law is, and whatever comes out."""
    if isinstance(sampler, ReportSampler):
        return sampler.release_number(law)
    return int(sampler.release_number(law, constant_time=sampler.can_draw_in_constant_time))


def _move_law_into_band(law: Floats, sampler: OutcomeSampler) -> Floats:
    """The law; under the linear mechanism one outside its band is moved straight towards the reference, to the band's edge.

    That mechanism accepts only members of the band.
    """
    if isinstance(sampler, ReportSampler) or sampler.mixing is None:
        return law
    reference = np.broadcast_to(np.asarray(sampler.reference), law.shape)
    offset, bounds = law - reference, sampler.family.bounds
    room = np.where(offset > 0.0, (bounds.upper - 1.0) * reference, (1.0 - bounds.lower) * reference)
    outside = np.abs(offset) > room * (1.0 + _SLACK)
    factor = float(np.divide(room, np.abs(offset), out=np.ones_like(law), where=outside).min())
    return law if factor >= 1.0 else reference + factor * offset


def _parse_outcome_amounts(amounts: Any, name: str) -> LabelledValues | Floats:
    """One number for each outcome, by label or in the order of outcomes; finite and at least 0."""
    if not (isinstance(amounts, Mapping) or hasattr(amounts, "__array__")):
        amounts = records_as_list(amounts)
    labelled_values = split_labels_from_numbers(amounts, name)
    values = as_floats(amounts if labelled_values is None else labelled_values.values, name)
    if values.ndim != 1:
        raise DiscreetError(
            f"{name} has shape {values.shape}; a device is one client, with one number for each outcome"
        )
    refuse_bad_entries(values, name)
    dtype = np.asarray(amounts if labelled_values is None else labelled_values.values).dtype
    if name == "p" and dtype.kind == "f" and dtype.itemsize < 8 and values.size:
        values = renormalise_rounded_laws(values, float(np.finfo(dtype).eps))
    return values if labelled_values is None else LabelledValues(labelled_values.labels, values)


def _outcome_numbers_of_records(domain: Domain, records: list[Any]) -> NDArray[np.int64]:
    """The outcome of every record, -1 for none; a number past the end of an interval has the outcome at that end."""
    if not isinstance(domain, CellDomain):
        return domain.find_numbers(whole_floats_as_integers(records) if isinstance(domain, Numbers) else records)
    return domain.find_cells(np.clip(records_as_floats_or_nan(records), domain.edges[0], domain.edges[-1]))


def _prepare_draw_with_reference_fallback(
    sampler: AnySampler, draw: Callable[[], int], outside: float, problem: str
) -> DeviceDraw:
    """The draw; should it fail on what the device holds, the reference's."""
    return DeviceDraw(lambda: _result_or_fallback(draw, lambda _: _draw_from_reference(sampler)), outside, problem)


def _draw_from_reference(sampler: AnySampler) -> int:
    """A draw that does not look at the device."""
    if isinstance(sampler, SurveySampler):
        return sampler.release_number([])
    if isinstance(sampler, ReportSampler):
        return sampler.release_number(np.full(sampler.family.size, 1.0 / sampler.family.size))
    return sampler.release_reference_number()


def _result_or_fallback(action: Callable[[], Result], fallback: Callable[[BaseException], Result]) -> Result:
    """The result of `action`, or of `fallback` if it fails: a density is the device's own code, which may raise anything."""
    try:
        return action()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return fallback(error)


def _prepare_reference_draw(sampler: AnySampler, problem: str) -> DeviceDraw:
    """A draw of the reference; on outcomes by the same steps as any other, so that the time it takes tells nothing."""
    sentence = f"{problem}; its sample is one of the reference"
    if isinstance(sampler, (ReportSampler, SurveySampler)):
        return _prepare_draw_with_reference_fallback(sampler, lambda: _draw_from_reference(sampler), 1.0, sentence)
    if isinstance(sampler.family, ContinuousFamily):
        return DeviceDraw(sampler.release_reference_number, 1.0, sentence)
    reference = np.broadcast_to(np.asarray(sampler.reference, dtype=np.float64), (sampler.carrier.size,))
    law = _move_law_into_band(reference / reference.sum(), sampler)
    if isinstance(sampler, OwnSampler):
        # its law is asked for all the same: the time that it takes would tell that there is nothing
        return _prepare_draw_with_reference_fallback(
            sampler, lambda: (sampler.weights_on_atoms(law), _draw_from_reference(sampler))[1], 1.0, sentence
        )
    return _prepare_draw_with_reference_fallback(sampler, lambda: _draw_in_constant_time(sampler, law), 1.0, sentence)
