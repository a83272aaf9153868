"""The kernel alone: RecordBatch in, RecordBatch out."""

import itertools
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DiscreetError
from discreet.release._randomness import InputDigest
from discreet.tables import Kernel, Request
from discreet.tables._parts import clients_and_records_from_arrow
from discreet.tables._request import Job
from tests.tables.small_tables import SECRET, expected, rows

pytestmark = pytest.mark.usefixtures("either_code")


def job(domain: Any = 40, epsilon: float | None = 3.0, **terms: Any) -> Job:
    import polars as pl

    kind = pl.Float64() if hasattr(domain, "low") else pl.Int64()
    schema = pl.Schema({"client": pl.Int64(), "value": kind, "other": kind, "n": pl.Int64(), "m": pl.Int64()})
    request = Request(client="client", domain=domain, epsilon=epsilon, secret=SECRET, **{"value": "value", **terms})
    return request.job(schema, where="a test")


def lists(table: dict[str, list[Any]]) -> tuple[list[Any], list[list[int]]]:
    held: dict[Any, list[int]] = {}
    for client, value in zip(table["client"], table["value"], strict=True):
        held.setdefault(client, []).append(value)
    return list(held), list(held.values())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["optimal", "linear", "mollifier"])
@pytest.mark.parametrize("named", [False, True])
def test_every_sample_is_the_dense_core_s(mechanism: str, named: bool) -> None:
    table = rows()
    if named:
        table["client"] = [f"client-{client}" for client in table["client"]]
    clients, held = lists(table)
    batch = pa.RecordBatch.from_pydict({"client": clients, "outcomes": held})
    released = Kernel(job(mechanism=mechanism))(batch)
    assert released.schema.names == ["client", "sample", "agreement"]
    samplers = {"optimal": dc.OptimalSampler, "linear": dc.LinearSampler, "mollifier": dc.MollifierSampler}
    by_hand = expected(table, outcomes=40, epsilon=3.0, mechanism=samplers[mechanism])
    assert dict(zip(clients, released.column("sample").to_pylist(), strict=True)) == by_hand
    assert set(released.column("agreement").to_pylist()) == {job(mechanism=mechanism).agreement.id}


def designed(size: int = 40) -> dc.Agreement:
    """A band that serves everybody, around a reference of many orders of magnitude."""
    weights = np.random.default_rng(3).exponential(size=size) ** 4 + 1e-6
    return dc.Agreement.of(dc.OptimalSampler(dc.Band(weights, lower=0.0, upper=4.0, any_client=True), epsilon=3.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "agreement", [designed(), dc.Agreement.of(dc.OptimalSampler(dc.Simplex(40).spread(3.0), epsilon=3.0))]
)
def test_every_sample_over_a_reference_is_the_dense_core_s(agreement: dc.Agreement) -> None:
    table = rows()
    clients, held = lists(table)
    batch = pa.RecordBatch.from_pydict({"client": clients, "outcomes": held})
    released = Kernel(job(domain=None, epsilon=None, agreement=agreement))(batch)
    by_hand = expected(table, outcomes=40, epsilon=3.0, family=agreement.family.family())
    assert dict(zip(clients, released.column("sample").to_pylist(), strict=True)) == by_hand
    assert set(released.column("agreement").to_pylist()) == {agreement.id}


def test_the_linear_mechanism_on_a_band_is_refused() -> None:
    band = dc.Agreement.of(dc.LinearSampler(dc.Band(np.ones(40), lower=0.5, upper=2.0), epsilon=3.0))
    with pytest.raises(DiscreetError, match="agree on optimal"):
        job(domain=None, epsilon=None, agreement=band)


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.uint8(), pa.uint32(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("wrap", [pa.list_, pa.large_list])
def test_lists_of_any_integers_will_do(kind: pa.DataType, wrap: Any) -> None:
    kernel = Kernel(job())
    held = [[1, 2, 2], [39], [], [5, 4, 5]]
    plain = kernel(
        pa.RecordBatch.from_pydict({"client": [1, 2, 3, 4], "outcomes": pa.array(held, pa.list_(pa.int64()))})
    )
    other = kernel(pa.RecordBatch.from_pydict({"client": [1, 2, 3, 4], "outcomes": pa.array(held, wrap(kind))}))
    assert other.equals(plain)


def test_slices_large_texts_and_dictionaries_are_read_right() -> None:
    kernel = Kernel(job())
    names = ["", "a", "bc", "déjà vu", "bc "]
    held = [[1], [2, 2], [], [3, 4], [5]]
    whole = pa.RecordBatch.from_pydict({"client": names, "outcomes": pa.array(held, pa.list_(pa.int64()))})
    samples = kernel(whole).column("sample").to_pylist()
    assert kernel(whole.slice(2, 3)).column("sample").to_pylist() == samples[2:]
    for column in (
        pa.array(names, pa.large_string()),
        pa.array(names, pa.string_view()),
        pa.array(names).dictionary_encode(),
    ):
        again = pa.RecordBatch.from_arrays([column, whole.column("outcomes")], names=["client", "outcomes"])
        assert kernel(again).column("sample").to_pylist() == samples


def test_counts_weigh_records() -> None:
    kernel = Kernel(job())
    clients = list(range(400))
    repeated = kernel(pa.RecordBatch.from_pydict({"client": clients, "outcomes": [[3, 8, 3, 3]] * 400}))
    columns = {"client": clients, "outcomes": [[8, 3, 7]] * 400, "counts": [[1, 3, 0]] * 400}
    assert kernel(pa.RecordBatch.from_pydict(columns)).equals(repeated)


def test_the_type_of_a_column_decides_and_not_its_values() -> None:
    """Counts are exact past 2^53, where floats are not; weights are on the grid even where they are whole numbers."""
    clients = list(range(300))

    def released(counts: pa.Array, **terms: Any) -> pa.RecordBatch:
        columns = {"client": pa.array(clients), "outcomes": pa.array([[3, 8]] * 300), "counts": counts}
        return Kernel(job(**terms))(pa.RecordBatch.from_pydict(columns))

    def lists(numbers: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([numbers] * 300, pa.list_(kind))

    large = released(lists([2**53 + 1, 1], pa.int64()))
    assert not large.equals(released(lists([2**53, 1], pa.int64())))
    assert large.equals(released(lists([2**53 + 1, 1], pa.uint64())))
    thirds = released(lists([1, 2], pa.int8()))
    for kind in (pa.float32(), pa.float64()):
        assert not released(lists([1.0, 2.0], kind)).equals(thirds)
    weighed = [
        released(lists([1, 2], kind), weight="n") for kind in (pa.int8(), pa.int64(), pa.float32(), pa.float64())
    ]
    assert all(each.equals(weighed[0]) for each in weighed)
    with pytest.raises(DiscreetError, match="not integers; cast them"):
        released(lists([1.0, 2.0], pa.float64()), count="n")
    with pytest.raises(DiscreetError, match="not lists of whole numbers below 2\\^63"):
        released(lists([2**64 - 1, 1], pa.uint64()))


@pytest.mark.slow
def test_many_clients_are_shared_among_threads() -> None:
    kernel = Kernel(job())
    number = 40_000
    outcomes = pa.LargeListArray.from_arrays(np.arange(number + 1), np.arange(number, dtype=np.uint32) % 40)
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(number)), outcomes], names=["client", "outcomes"])
    whole = kernel(batch)
    pieces = [kernel(batch.slice(start, 1000)) for start in range(0, number, 1000)]
    assert pa.Table.from_batches([whole]).equals(pa.Table.from_batches(pieces).combine_chunks())


@pytest.mark.slow
def test_the_digest_is_that_of_all_clients_and_all_they_hold_however_they_come() -> None:
    """In threads, in batches, in another order: the same. One record more, a client more or fewer, another column: another."""
    kernel, number = Kernel(job()), 20_000
    held = [[place % 40, place % 7] for place in range(number)]

    def digest(clients: Any, lists: Any, kernel: Kernel = kernel, threads: int = 1) -> InputDigest:
        outcomes = pa.array(lists, pa.list_(pa.uint32()))
        return kernel.draw(
            clients_and_records_from_arrow(pa.array(clients, pa.int64()), outcomes, None), threads=threads
        ).digest

    whole = digest(range(number), held)
    assert digest(range(number), held, threads=2) == whole
    assert digest(range(number - 1, -1, -1), [each[::-1] for each in held[::-1]]) == whole
    pieces = [digest(range(start, start + 1000), held[start : start + 1000]) for start in range(0, number, 1000)]
    assert sum(pieces, InputDigest()) == whole
    assert digest([], []) == InputDigest()
    others = [
        digest(range(number), [*held[:-1], [0]]),
        digest(range(number - 1), held[:-1]),
        digest(range(1, number + 1), held),
        digest(range(number), held, Kernel(job(value="other"))),
        digest(range(number), held, Kernel(job(rounds=2, round=2))),
    ]
    assert len({whole, *others}) == 1 + len(others)


def test_two_columns_of_one_domain_are_two_questions() -> None:
    """Equal columns must not give equal samples: else that they differ would tell that the columns do."""
    batch = pa.RecordBatch.from_pydict({"client": list(range(3000)), "outcomes": [[5]] * 3000})
    questions: list[dict[str, Any]] = [{}, {"value": "other"}, {"count": "n"}, {"weight": "n"}, {"weight": "m"}]
    samples = [Kernel(job(epsilon=0.1, **terms))(batch).column("sample").to_numpy() for terms in questions]
    again = Kernel(job(epsilon=0.1))(batch).column("sample").to_numpy()
    assert (again == samples[0]).all()
    q = dc.OptimalSampler(dc.Simplex(40), epsilon=0.1).output(np.eye(40)[5])
    agree = float((q**2).sum())  # of two independent draws
    for one, two in itertools.combinations(samples, 2):
        assert abs((one == two).mean() - agree) < 5 * np.sqrt(agree * (1 - agree) / 3000)


def test_an_empty_batch_gives_an_empty_batch() -> None:
    empty = pa.RecordBatch.from_arrays(
        [pa.array([], pa.int64()), pa.array([], pa.list_(pa.int32()))], names=["client", "outcomes"]
    )
    assert Kernel(job())(empty).num_rows == 0


def test_cells_give_points_within_them() -> None:
    cells = dc.Interval(-2.0, 6.0, cells=16)
    kernel = Kernel(job(domain=cells, epsilon=9.0))
    held = pa.array([[place % 16] for place in range(3000)], pa.list_(pa.int32()))
    points = (
        kernel(pa.RecordBatch.from_pydict({"client": list(range(3000)), "outcomes": held})).column("sample").to_numpy()
    )
    own = np.arange(3000) % 16
    inside = np.floor((points + 2.0) / 0.5).astype(int) == own
    assert points.min() >= -2.0
    assert points.max() <= 6.0
    q = np.exp(9.0) / (np.exp(9.0) + 15)
    assert abs(inside.mean() - q) < 5 * np.sqrt(q * (1 - q) / 3000)
    within = (points[inside] + 2.0) / 0.5 - own[inside]
    assert abs(within.mean() - 0.5) < 5 * np.sqrt(1 / 12 / inside.sum())


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"who": [1], "outcomes": [[1]]}, "no column 'client'"),
        ({"client": [1], "what": [[1]]}, "no column 'outcomes'"),
        ({"client": [1.5], "outcomes": [[1]]}, "texts or integers"),
        ({"client": [None, 1], "outcomes": [[1], [1]]}, "'client' holds 1 nulls"),
        ({"client": [1], "outcomes": [None]}, "'outcomes' holds"),
        ({"client": [1], "outcomes": [[1, None]]}, "lists with nulls"),
        ({"client": [1], "outcomes": [["a"]]}, "not lists of outcome numbers"),
        ({"client": [1], "outcomes": [3]}, "not lists of outcome numbers"),
        ({"client": [1], "outcomes": [[-1]]}, "not lists of outcome numbers"),
        ({"client": [1], "outcomes": [[1, 2]], "counts": [[1]]}, "different lengths"),
        ({"client": [1], "outcomes": [[1]], "counts": [["x"]]}, "not lists of numbers"),
        (
            {"client": [1, 9], "outcomes": [[1], [40]]},
            "row 1 of the batch: an outcome is not in the domain; outcomes are 0 to 39",
        ),
        (
            {"client": ["a", "b"], "outcomes": [[1], [2]], "counts": [[1.0], [-2.0]]},
            "row 1 of the batch: a count is negative",
        ),
        ({"client": ["a"], "outcomes": [[1]], "counts": [[float("nan")]]}, "not a number"),
        (
            {"client": [4], "outcomes": [[1, 2]], "counts": [[1.7e308, 1.7e308]]},
            "row 0 of the batch: its counts add up",
        ),
        (
            {"client": [4], "outcomes": [[1, 2]], "counts": [[2**62, 2**62]]},
            "row 0 of the batch: its counts add up",
        ),
    ],
)
def test_bad_batches_are_refused_by_name(columns: dict[str, list[Any]], named: str) -> None:
    with pytest.raises(DiscreetError, match=named):
        Kernel(job())(pa.RecordBatch.from_pydict(columns))


def test_integers_past_the_signed_ones_are_refused() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([2**64 - 1], pa.uint64()), pa.array([[1]])], names=["client", "outcomes"]
    )
    with pytest.raises(DiscreetError, match="cast it to text"):
        Kernel(job())(batch)


def test_a_kernel_does_not_travel() -> None:
    with pytest.raises(TypeError, match="holds a key"):
        pickle.dumps(Kernel(job()))


@pytest.mark.parametrize("names", [[3, 1, 2], [1, 2, 3], ["b", "a", "", "ab"], ["", "a", "ab", "b"], [5], ["x"]])
def test_a_client_comes_once(names: list[Any]) -> None:
    kernel = Kernel(job())

    def release(clients: list[Any]) -> pa.RecordBatch:
        return kernel(pa.RecordBatch.from_pydict({"client": clients, "outcomes": [[1]] * len(clients)}))

    assert release(names).num_rows == len(names)
    for place in range(len(names) + 1):
        for twice in names:
            with pytest.raises(DiscreetError, match=f"client of row {min(place, names.index(twice))} comes twice"):
                release([*names[:place], twice, *names[place:]])
