"""Compile all kernels once: `python -m discreet.tables.warm_up`.

This covers `discreet.mechanisms.warm_up`, designs and the engines. On a cluster, run it where the workers' image is built.
"""

import numpy as np
import pyarrow as pa

from discreet._base.kernels import Code, force_implementation
from discreet.agreement import Agreement
from discreet.design import design
from discreet.families import Band, Simplex
from discreet.mechanisms import OptimalSampler, ReportSampler, warm_up as mechanisms
from discreet.survey import Survey, shares
from discreet.tables._local import sample
from discreet.tables._parts import clients_and_records_from_arrow, refuse_repeated_clients

__all__ = ["warm_up"]


def warm_up() -> None:
    """Release a few clients in every way with its own code: integers and texts, with and without counts and a list, uniform and other
    references, reports, surveys.
    """
    mechanisms.warm_up()
    with force_implementation(Code.COMPILED):
        for names in ([1, 2], ["a", "b"]):
            _compile_release_kernels(names)
        _compile_design_kernels()


def _compile_release_kernels(names: list[int] | list[str]) -> None:
    table = pa.table({"client": names * 20, "value": [0, 1, 2, 1] * 10, "n": [1, 2] * 20})
    client_list = [*names, names[0]]
    for count, weight in ((None, None), ("n", None), (None, "n")):
        sample(
            table,
            client="client",
            value="value",
            domain=3,
            epsilon=1.0,
            count=count,
            weight=weight,
            clients=client_list,
        )
        band_agreement = Agreement.of(
            OptimalSampler(Band([1.0, 2.0, 3.0], lower=0.0, upper=1.5, any_client=True), epsilon=1.0)
        )
        agreements = band_agreement, Agreement.of(ReportSampler(Simplex(3), epsilon=1.0))
        for agreement in agreements:
            sample(table, client="client", value="value", agreement=agreement, count=count, weight=weight)
        survey = Survey({"value": 3}, [shares("value")])
        sample(table, client="client", survey=survey, epsilon=1.0, count=count, weight=weight, clients=client_list)
    reversed_names = pa.array(names[::-1])
    refuse_repeated_clients(clients_and_records_from_arrow(reversed_names, pa.array([[0], [1]]), None))


def _compile_design_kernels() -> None:
    """Design for clients with one outcome of twenty each, and for clients with all: the sparse and the dense code."""
    for clients in (np.eye(20), np.full((20, 20), 0.05)):
        design(Simplex(20), epsilon=1.0, clients=clients)


if __name__ == "__main__":
    warm_up()
