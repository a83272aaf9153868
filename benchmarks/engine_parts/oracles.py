"""Other people's frequency oracles: run by the interpreter of a throw-away environment.

`python oracles.py OUTCOMES EPSILON SECONDS` prints a JSON object for each oracle, as it is done: clients a second of a processor, one call
for each, and reports a second from the first to estimates of every share. Nothing of theirs is changed. What pure-ldp's fast local
hashing prepares for a domain once (its table of hashes) is not counted.
"""

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Draw = Callable[[int], Any]
Decode = Callable[[list[Any]], Any]
MOST, FIRST, HASHES = 200_000, 20, 500


def pure_local_hashing(outcomes: int, epsilon: float) -> tuple[Draw, Decode]:
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    client, server = (
        each(epsilon=epsilon, d=outcomes, use_olh=True, index_mapper=_same) for each in (LHClient, LHServer)
    )
    return client.privatise, lambda reports: _aggregate(server, reports, outcomes)


def pure_fast_local_hashing(outcomes: int, epsilon: float) -> tuple[Draw, Decode]:
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient, FastLHServer

    client, server = (
        each(epsilon=epsilon, d=outcomes, k=HASHES, use_olh=True, index_mapper=_same)
        for each in (FastLHClient, FastLHServer)
    )
    return client.privatise, lambda reports: _aggregate(server, reports, outcomes)


def pure_hadamard_response(outcomes: int, epsilon: float) -> tuple[Draw, Decode]:
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer

    server = HadamardResponseServer(epsilon, outcomes, index_mapper=_same)
    client = HadamardResponseClient(epsilon, outcomes, server.get_hash_funcs(), index_mapper=_same)
    return client.privatise, lambda reports: _aggregate(server, reports, outcomes)


def multi_local_hashing(outcomes: int, epsilon: float) -> tuple[Draw, Decode]:
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client

    LH_Client(0, outcomes, epsilon)  # compiles
    return (lambda value: LH_Client(value, outcomes, epsilon)), lambda reports: LH_Aggregator_MI(
        reports, outcomes, epsilon
    )


def multi_subset_selection(outcomes: int, epsilon: float) -> tuple[Draw, Decode]:
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client

    SS_Client(0, outcomes, epsilon)  # compiles
    return (lambda value: SS_Client(value, outcomes, epsilon)), lambda reports: SS_Aggregator_MI(
        reports, outcomes, epsilon
    )


ORACLES: dict[str, Callable[[int, float], tuple[Draw, Decode]]] = {
    "pure-ldp, local hashing": pure_local_hashing,
    f"pure-ldp, fast local hashing ({HASHES} hashes)": pure_fast_local_hashing,
    "pure-ldp, Hadamard response": pure_hadamard_response,
    "multi-freq-ldpy, local hashing": multi_local_hashing,
    "multi-freq-ldpy, subset selection": multi_subset_selection,
}


def _same(value: int) -> int:
    return value


def _aggregate(server: Any, reports: list[Any], outcomes: int) -> Any:
    server.reset()
    for report in reports:
        server.aggregate(report)
    return server.estimate_all(range(outcomes), suppress_warnings=True)


def batches(seconds: float) -> Iterator[int]:
    """Growing numbers of calls, until the last took so many seconds."""
    number, start = FIRST, time.process_time()
    while True:
        yield number
        taken = time.process_time() - start
        if taken > seconds / 2 or number >= MOST:
            return
        number, start = min(MOST, number * (8 if taken < seconds / 16 else 2)), time.process_time()


def measure(draw: Draw, decode: Decode, outcomes: int, seconds: float) -> dict[str, float]:
    """Clients and reports a second; where decoding is slow, of as many reports as fit into the time."""
    values = [int(value) for value in np.random.default_rng(0).integers(0, outcomes, MOST)]
    reports: list[Any] = []
    speed = decoded = 0.0
    for number in batches(seconds):
        start = time.process_time()
        reports = [draw(value) for value in values[:number]]
        speed = number / (time.process_time() - start)
    for number in batches(seconds):
        start = time.process_time()
        decode(reports[:number])
        decoded = min(number, len(reports)) / (time.process_time() - start)
        if number >= len(reports):
            break
    return {"draws": speed, "decoded": decoded}


def main(outcomes: int, epsilon: float, seconds: float) -> None:
    warnings.simplefilter("ignore")
    for name, make in ORACLES.items():
        found: dict[str, Any] = {"name": name}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found |= measure(*make(outcomes, epsilon), outcomes, seconds)
        except (
            Exception
        ) as problem:  # whatever goes wrong in a peer, the others are still measured, and the reason is shown
            found["problem"] = f"{type(problem).__name__}: {problem}"
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
