"""Other people's libraries, one call for each client: run by the interpreter of a throw-away environment.

`python peers.py CLIENTS RECORDS OUTCOMES EPSILON SECONDS` prints a JSON object for each, as it is done. A raw draw of the client
comes first where the library randomises a value; the exponential mechanism takes the client's frequencies as its utility.
"""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def main(clients: int, records: int, outcomes: int, epsilon: float, seconds: float) -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    edges = np.cumsum(1.0 / np.arange(1, outcomes + 1))
    values = np.searchsorted(edges, rng.random((clients, records)) * edges[-1])
    keep = math.exp(epsilon) / (math.exp(epsilon) + outcomes - 1)

    def raw(client: int) -> int:
        return int(values[client, rng.integers(records)])

    def opendp() -> Callable[[int], Any]:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        response = dp.m.make_randomized_response(categories=list(range(outcomes)), prob=keep)
        return lambda client: response(raw(client))

    def diffprivlib() -> Callable[[int], Any]:
        from diffprivlib.mechanisms import Exponential

        def draw(client: int) -> Any:
            utility = np.bincount(values[client], minlength=outcomes) / records
            return Exponential(epsilon=epsilon, sensitivity=1.0, utility=utility.tolist()).randomise()

        return draw

    def pure_ldp() -> Callable[[int], Any]:
        from pure_ldp.frequency_oracles.direct_encoding import DEClient

        encoder = DEClient(epsilon=epsilon, d=outcomes, index_mapper=lambda value: value)
        return lambda client: encoder.privatise(raw(client))

    def multi_freq() -> Callable[[int], Any]:
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

        GRR_Client(0, outcomes, epsilon)  # compiles
        return lambda client: GRR_Client(raw(client), outcomes, epsilon)

    for name, make in (
        ("opendp", opendp),
        ("diffprivlib", diffprivlib),
        ("pure-ldp", pure_ldp),
        ("multi-freq-ldpy", multi_freq),
    ):
        try:
            draw = make()
            done, start = 0, time.perf_counter()
            while done < clients and time.perf_counter() - start < seconds:
                draw(done)
                done += 1
            found: dict[str, Any] = {"name": name, "speed": done / (time.perf_counter() - start)}
        except (
            Exception
        ) as problem:  # whatever goes wrong in a peer, the others are still measured, and the reason is shown
            found = {"name": name, "problem": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
