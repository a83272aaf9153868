"""Each client speaks once: clients who occur in several files of samples are refused.

A client who released under two agreements has spent twice, and counts twice in whatever is learned from both. Names are told apart by 128
bits of hash. Files that do not name their clients are taken on trust, and the caller is told.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from discreet._tables._clients import client_name_texts
from discreet._tables._sources import Source
from discreet.errors import DiscreetError
from discreet.estimation._tallies import client_column_name


def check_clients_apart(sources: Sequence[Source]) -> bool:
    """Refuse clients that several sources name; whether all of them name their clients."""
    columns = [(source, client_column_name(source)) for source in sources]
    named = [(source, column) for source, column in columns if column in source.schema]
    words = [f"word {seed}" for seed in (1, 2)]
    seen: pl.DataFrame | None = None
    for source, column in named:
        name = client_name_texts(source, column)
        parts = list(source.frames(partial(_hash_names, name=name, words=words), [column], client=column))
        if not parts:
            continue
        who = pl.concat(parts).unique()
        again = 0 if seen is None else who.join(seen, on=words, how="semi").height
        if again:
            raise DiscreetError(
                f"{again:,} of the {who.height:,} clients in {source.name} occur in another file too: each client speaks once, or "
                "its budget is spent twice; leave one of its samples out"
            )
        seen = who if seen is None else pl.concat([seen, who])
    return len(named) == len(sources)


def _hash_names(frame: Any, name: pl.Expr, words: Sequence[str]) -> Any:
    return frame.select(name.hash(seed=seed).alias(word) for seed, word in enumerate(words, start=1))
