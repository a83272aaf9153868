"""Small tables of (client, value) rows to release, and what a release of them must be, computed the slow way."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet import release
from discreet.release._randomness import Question, Secret, pseudo_random_words_of_client, uniform_62_bit_integer_of_word

SECRET = Secret(bytes(range(32)))


def rows(clients: int = 300, number: int = 4000, outcomes: int = 40, seed: int = 0) -> dict[str, list[Any]]:
    """Rows of integer clients and outcomes, in random order; every client has at least one."""
    rng = np.random.default_rng(seed)
    who = np.concatenate([np.arange(clients), rng.integers(0, clients, number - clients)])
    what = np.minimum(rng.geometric(0.1, number), outcomes) - 1
    order = rng.permutation(number)
    return {"client": who[order].tolist(), "value": what[order].tolist()}


def expected(
    table: dict[str, list[Any]],
    *,
    outcomes: int,
    epsilon: float,
    mechanism: Any = dc.OptimalSampler,
    family: Any = None,
) -> dict[Any, int]:
    """By the dense core, with the standard library's BLAKE2b: the sample of each client, as outcome numbers."""
    sampler = mechanism(dc.Simplex(outcomes) if family is None else family, epsilon=epsilon)
    key = SECRET.run_key(dc.Agreement.of(sampler).id, 1, Question(value="value"))
    held: dict[Any, Counter[int]] = {}
    for client, value in zip(table["client"], table["value"], strict=True):
        held.setdefault(client, Counter())[value] += 1
    laws, integers = [], []
    for client, counts in held.items():
        outcome_list = sorted(counts)
        integers.append(
            uniform_62_bit_integer_of_word(
                pseudo_random_words_of_client(key, client, outcome_list, [counts[x] for x in outcome_list])[0]
            )
        )
        laws.append(sampler.family.law(counts=[counts[x] for x in range(outcomes)]))
    drawn = release.outcomes(sampler.lattice, np.array(laws), sampler.mixing, np.array(integers))
    return dict(zip(held, drawn.tolist(), strict=True))


def by_client(table: pa.Table) -> dict[Any, Any]:
    """The samples of a released table, each client once."""
    found = dict(zip(table.column("client").to_pylist(), table.column("sample").to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found
