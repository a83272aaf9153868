"""Synthetic tables on disk: released samples with weights, batch by batch, or rows drawn from the estimated law."""

import numpy as np
import pyarrow as pa

from discreet._tables._coding import Coding
from discreet._tables._outputs import format_of, samples_of, writer_to
from discreet._tables._records import outcome_codes
from discreet._tables._sources import Source, sample_texts
from discreet.errors import DiscreetError
from discreet.estimation._population import Population
from discreet.estimation._synthesis import outcome_weights, points_within, synthetic_counts

_ROWS = 1 << 20


def write_weighted(found: Population, source: Source, coding: Coding, output: str, *, sample: str = "sample") -> int:
    """Every sample of the source with its weight; how many there are."""
    weights = outcome_weights(found)
    schema = pa.schema([("sample", coding.sample_type), ("weight", pa.float64())])
    written = 0
    with writer_to(output, schema, format_of(output)) as writer:
        for frame in source.frames(
            lambda rows: rows.select(sample_texts(source, sample).cast(coding.text_kind, strict=False).alias("sample")),
            [sample],
        ):
            numbers = frame.select(outcome_codes(coding, "sample")).to_series().to_numpy()
            if (numbers >= len(weights)).any():
                raise DiscreetError(f"{source.name} has changed since it was counted; start again")
            columns = [frame["sample"].to_arrow().cast(coding.sample_type), pa.array(weights[numbers])]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
            written += frame.height
    return written


def write_rows(found: Population, coding: Coding, output: str, rows: int) -> int:
    """So many rows with the shares of the estimated law, in random order, a part of them at a time."""
    rng = np.random.default_rng()
    left = synthetic_counts(found, rows)
    schema = pa.schema([("sample", coding.sample_type)])
    with writer_to(output, schema, format_of(output)) as writer:
        for start in range(0, rows, _ROWS):
            taken = rng.multivariate_hypergeometric(left, min(_ROWS, rows - start), method="marginals")
            left -= taken
            numbers = rng.permutation(np.repeat(np.arange(len(taken)), taken))
            place = rng.random(len(numbers))
            binned = found.finest is not None
            column = pa.array(points_within(found, numbers, place)) if binned else samples_of(coding, numbers, place)
            writer.write(pa.RecordBatch.from_arrays([column], schema=schema))
    return rows
