"""multi-freq-ldpy as it comes: run by the interpreter of a throw-away environment.

`python attributes.py FILE EPSILON` reads outcome numbers (clients, columns) from a .npy file and prints a JSON object for each of SPL, SMP
and RS+FD, adaptive: the estimated shares of every column. Nothing of theirs is changed.
"""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def protocols() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_ADP_Aggregator_MI, RSpFD_ADP_Client
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_ADP_Aggregator_MI, SMP_ADP_Client
    from multi_freq_ldpy.mdim_freq_est.SPL_solution import SPL_ADP_Aggregator_MI, SPL_ADP_Client

    return {
        "SPL": (SPL_ADP_Client, SPL_ADP_Aggregator_MI),
        "SMP": (SMP_ADP_Client, SMP_ADP_Aggregator_MI),
        "RS+FD": (RSpFD_ADP_Client, RSpFD_ADP_Aggregator_MI),
    }


def main(path: str, epsilon: float) -> None:
    warnings.simplefilter("ignore")
    rows = np.load(path)
    sizes = [int(each) + 1 for each in rows.max(axis=0)]
    for name, (draw, decode) in protocols().items():
        try:
            reports = [draw(row, sizes, len(sizes), epsilon) for row in rows.tolist()]
            found = [np.asarray(each, dtype=float).tolist() for each in decode(reports, sizes, len(sizes), epsilon)]
            print(json.dumps({"name": name, "shares": found}), flush=True)
        except Exception as problem:  # whatever goes wrong in one protocol, the others are still shown, with the reason
            print(json.dumps({"name": name, "problem": f"{type(problem).__name__}: {problem}"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
