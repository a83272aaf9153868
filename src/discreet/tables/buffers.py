"""numpy arrays and Arrow columns of numbers share memory. (pyarrow's own conversions import pandas wherever it is installed, which
takes longer than a small release.)"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray


def as_column(numbers: NDArray[Any]) -> pa.Array:
    """An array of numbers or truth values as a column."""
    if numbers.dtype == np.bool_:
        return as_column(numbers.view(np.uint8)).cast(pa.bool_())
    kind = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def as_array(column: pa.Array) -> NDArray[Any]:
    """A column of numbers without nulls as an array."""
    kind = np.dtype(column.type.to_pandas_dtype())
    _, content = column.buffers()
    if content is None or not len(column):
        return np.empty(0, dtype=kind)
    return np.frombuffer(content, dtype=kind)[column.offset : column.offset + len(column)]


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A list of texts or integers as a column."""
    return pl.Series(values, strict=True).to_arrow().cast(kind)
