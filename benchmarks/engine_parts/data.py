"""Tables of (client, value) rows to release, made once and kept under out/bench."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path("out/bench")
OUTCOMES = 1000
ROWS_EACH = 50
_PIECE = 5_000_000


def labels() -> list[str]:
    """Names of the outcomes."""
    return [f"item-{number:04d}" for number in range(OUTCOMES)]


def table(rows: int, *, named: bool = False) -> Path:
    """Rows of random clients, 50 each on average, with Zipf values out of 1,000; `named`: clients and values are texts."""
    path = FOLDER / f"{'named' if named else 'numbers'}-{rows}.parquet"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rows)
    edges = np.cumsum(1.0 / np.arange(1, OUTCOMES + 1))
    clients, names = max(1, rows // ROWS_EACH), pa.array(labels())
    kind = pa.string() if named else pa.int64()
    partial = path.with_suffix(".partial")
    with pq.ParquetWriter(partial, pa.schema([("client", kind), ("value", kind)])) as writer:
        for start in range(0, rows, _PIECE):
            number = min(_PIECE, rows - start)
            who = pa.array(rng.integers(0, clients, number))
            what = pa.array(np.searchsorted(edges, rng.random(number) * edges[-1]))
            if named:
                who, what = who.cast(pa.string()), names.take(what)
            writer.write_table(pa.table({"client": who, "value": what}))
    partial.rename(path)
    return path
