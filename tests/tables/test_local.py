"""Tables of rows on one machine: every form of table gives the same release, and nothing about it depends on their order."""

import itertools
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet.errors import DiscreetError
from discreet.ledger import PopulationLedger
from discreet.ledger._book import forget_rounds_in_memory
from discreet.release import ClientColumns
from discreet.tables import _local as local, _parts as parts_module, read_secret, sample, sample_file, write_secret
from discreet.tables._local import Release
from discreet.tables._parts import ClientParts
from discreet.tables._request import Request
from discreet.tables._sources._opening import source_of_table
from discreet.tables._sources._source import METADATA
from tests.needed import needed_module
from tests.soaking import wide
from tests.tables.small_tables import SECRET, by_client, expected, rows

pytestmark = pytest.mark.usefixtures("either_code")

TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": 40, "epsilon": 3.0, "goal": "clients"}


def released(table: Any, **changes: Any) -> pa.Table:
    return sample(table, **{**TERMS, "secret": SECRET, **changes})


def test_the_release_is_the_dense_core_s() -> None:
    table = rows()
    found = released(pa.table(table))
    assert by_client(found) == expected(table, outcomes=40, epsilon=3.0)
    agreement = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(40), epsilon=3.0))
    assert found.column("agreement").unique().to_pylist() == [agreement.id]
    assert dc.Agreement.from_json(found.schema.metadata[METADATA].decode()) == agreement


@pytest.mark.parametrize("texts", [False, True])
def test_the_release_does_not_depend_on_how_many_parts_are_grouped_at_once(
    texts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and their order: each part alone, some together, all at once."""
    table = rows()
    if texts:
        table["client"] = [f"client {number}" for number in table["client"]]
    found = []
    for together in (1, 150, 1 << 17):
        monkeypatch.setattr(parts_module, "_TOGETHER", together)
        found.append(released(pa.table(table)))
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


def test_whom_samples_serve_picks_the_mechanism_and_the_population_is_meant_unless_said() -> None:
    def mechanism(**terms: Any) -> str:
        return Request(client="client", value="value", domain=3, epsilon=1.0, **terms).mechanism

    assert mechanism() == mechanism(goal="population") == mechanism(mechanism="linear") == "linear"
    assert mechanism(goal="clients") == mechanism(mechanism="optimal", goal="clients") == "optimal"
    assert mechanism(mechanism="mollifier") == "mollifier"
    table = pa.table({"client": [1, 2], "value": [0, 1]})
    found = sample(table, client="client", value="value", domain=3, epsilon=1.0)
    assert dc.Agreement.from_json(found.schema.metadata[METADATA].decode()).mechanism == "linear"


def test_whom_samples_serve_and_what_is_named_or_agreed_must_not_differ() -> None:
    agreed = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(3), epsilon=1.0))
    assert Request(client="client", value="value", goal="clients", agreement=agreed).mechanism == "optimal"
    refused: list[tuple[dict[str, Any], str]] = [
        (
            {"goal": "population", "mechanism": "optimal"},
            "'population' .* takes the mechanism 'linear', not 'optimal'",
        ),
        ({"goal": "clients", "mechanism": "mollifier"}, "'clients' .* takes the mechanism 'optimal', not 'mollifier'"),
        ({"goal": "everybody"}, "goal = 'everybody' .* is not one of population, clients"),
        ({"goal": 3}, "goal = 3 .* is not one of"),
        ({"goal": "population", "agreement": agreed}, "mechanism = 'linear' is not the mechanism = 'optimal'"),
    ]
    for terms, message in refused:
        with pytest.raises(DiscreetError, match=message):
            Request(client="client", value="value", domain=3, epsilon=1.0, **terms)


@pytest.mark.slow
def test_every_form_of_table_gives_the_same_release() -> None:
    table = pa.table(rows())
    forms: list[Any] = [
        pa.Table.from_batches(table.to_batches(max_chunksize=100)),
        table.combine_chunks().to_batches()[0],
        table.to_reader(max_chunksize=333),
        pl.DataFrame(table),
        pl.LazyFrame(table),
        table.cast(pa.schema([("client", pa.int32()), ("value", pa.uint8())])),
    ]
    whole = by_client(released(table))
    for form in forms:
        assert by_client(released(form)) == whole


@pytest.mark.slow
def test_texts_in_every_guise_are_the_same_clients() -> None:
    table = rows()
    names = [f"c{client}" for client in table["client"]]
    plain = pa.table({"client": names, "value": table["value"]})
    whole = by_client(released(plain))
    assert whole == expected({"client": names, "value": table["value"]}, outcomes=40, epsilon=3.0)
    frame = pl.DataFrame({"client": names, "value": table["value"]})
    for kind in (pl.Categorical, pl.Enum(sorted(set(names)))):
        assert by_client(released(frame.with_columns(pl.col("client").cast(kind)))) == whole


@pytest.mark.slow
def test_an_integer_and_its_digits_are_one_client(tmp_path: Path) -> None:
    """1 in Parquet and "1" in CSV: the same samples, the same input, and one account in a ledger; "01" is somebody else."""
    frame = pl.DataFrame(rows())
    frame.write_parquet(tmp_path / "in.parquet")
    frame.write_csv(tmp_path / "in.csv")
    integers = by_client(released(tmp_path / "in.parquet"))
    texts = by_client(released(tmp_path / "in.csv"))  # the same input: it would be refused were it another
    assert texts == {str(client): value for client, value in integers.items()}
    padded = frame.with_columns(pl.format("0{}", "client").alias("client"))
    others = by_client(released(padded, rounds=2))
    assert any(sample != integers[int(client)] for client, sample in others.items())
    write_secret(tmp_path / "secret")
    ledger = PopulationLedger.create(tmp_path / "ledger", budget=3.0, secret=read_secret(tmp_path / "secret"))
    first = by_client(sample(tmp_path / "in.parquet", ledger=ledger, **TERMS))
    assert by_client(sample(tmp_path / "in.csv", ledger=ledger, **TERMS)) == {str(c): s for c, s in first.items()}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 6)), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_order_of_rows_does_not_matter(pairs: list[tuple[int, int]], random: Any) -> None:
    forget_rounds_in_memory()  # of the example before
    mixed = random.sample(pairs, len(pairs))
    one, two = (
        released(pa.table({"client": [c for c, _ in side], "value": [v for _, v in side]}), domain=7)
        for side in (pairs, mixed)
    )
    assert one.equals(two)  # the order of the output included


@pytest.mark.slow
def test_what_repeats_and_what_does_not() -> None:
    """Same secret, data and round: the same samples. Another round, agreement or secret: fresh ones, and changed data are refused."""
    table = pa.table(rows())
    first = by_client(released(table, rounds=2))
    assert by_client(released(table, rounds=2)) == first
    with pytest.raises(DiscreetError, match=r"was released on other data in column 'value'.*round=2 \(--round 2\)"):
        released(table.slice(1), rounds=2)
    fresh = [
        released(table, rounds=2, round=2),
        released(table, rounds=2, purpose="another"),
        released(table, rounds=2, secret=dc.tables.Secret(bytes(32))),
        released(table, rounds=2, secret=None),
    ]
    for other in map(by_client, fresh):
        agree = np.mean([other[client] == sample for client, sample in first.items()])
        assert agree < 0.5  # two independent draws over 40 outcomes seldom agree, at epsilon 3
    changed = table.append_column("x", table.column("client")).select(["client", "value"])
    assert by_client(released(changed, rounds=2)) == first
    assert by_client(released(pa.concat_tables([table, table]), rounds=2)) == first  # the same law of every client


@pytest.mark.slow
def test_one_changed_record_redraws_that_client_alone() -> None:
    table = rows()
    before = by_client(released(pa.table(table)))
    moved = {"client": [*table["client"], 7], "value": [*table["value"], 3]}
    secrets = [dc.tables.Secret(bytes([number]) * 32) for number in range(wide(30, 4))]
    results = [by_client(released(pa.table(moved), secret=secret)) for secret in secrets]
    forget_rounds_in_memory()  # as if in another process
    origins = [by_client(released(pa.table(table), secret=secret)) for secret in secrets]
    for one, two in zip(results, origins, strict=True):
        assert {c: s for c, s in one.items() if c != 7} == {c: s for c, s in two.items() if c != 7}
    assert any(one[7] != two[7] for one, two in zip(results, origins, strict=True))
    assert set(before) == set(results[0])


def weighed(seed: int = 3) -> pl.DataFrame:
    """500 clients with 24 rows each on 6 outcomes, and weights such as sums of prices are."""
    rng = np.random.default_rng(seed)
    table = rows(clients=500, number=12_000, outcomes=6)
    return pl.DataFrame({**table, "w": rng.gamma(2.0, 0.1, 12_000)})


@pytest.mark.slow
def test_the_order_in_which_weights_were_added_up_redraws_nobody() -> None:
    """A lazy aggregation, whose sums differ in the last bits from run to run: here by the order of its rows, to be certain."""
    table = weighed()
    raw = by_client(released(table, weight="w"))
    sums = []
    for seed in range(3):
        mixed = table.sample(fraction=1.0, shuffle=True, seed=seed).lazy()
        totals = mixed.group_by("client", "value").agg(pl.col("w").sum()).collect()
        sums.append(totals.sort("client", "value")["w"])
        assert by_client(released(totals, weight="w")) == raw
        assert by_client(released(mixed.group_by("client", "value").agg(pl.col("w").sum()), weight="w")) == raw
    assert (sums[0] != sums[1]).sum() > 100, "the noise is there"


@pytest.mark.slow
def test_one_law_in_weights_is_one_sample() -> None:
    """Times 2, times 3, in another order, with rows split into thirds, and with 0.3 for 0.1 + 0.2."""
    table = weighed()
    whole = by_client(released(table, weight="w"))
    third = pl.col("w") / 3
    same = [
        table.with_columns(pl.col("w") * 2),
        table.with_columns(pl.col("w") * 3),
        table.reverse(),
        pl.concat([table.with_columns(third), table.with_columns(third), table.with_columns(third).reverse()]),
        pl.concat([table, table.with_columns(w=0.0)]),
    ]
    for other in same:
        assert by_client(released(other, weight="w")) == whole
    forget_rounds_in_memory()
    clients = list(range(400))
    once = pl.DataFrame({"client": clients * 2, "value": [0] * 400 + [1] * 400, "w": [0.3] * 400 + [0.7] * 400})
    added = once.with_columns(pl.when(pl.col("w") == 0.3).then(0.1 + 0.2).otherwise("w").alias("w"))
    assert by_client(released(once, weight="w")) == by_client(released(added, weight="w"))
    with pytest.raises(DiscreetError, match="was released on other data"):
        released(once.with_columns(w=0.5), weight="w")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "weight"),
    wide([*itertools.product([False, True], [None, "weight"])], [(False, "weight"), (True, None)]),
)
def test_records_larger_than_memory_give_the_same_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool, weight: str | None
) -> None:
    """Forced through the disk, and through splits of parts that are themselves too large."""
    monkeypatch.setattr(parts_module, "_BITS", 2)
    table = rows(clients=500, number=20_000)
    columns: dict[str, Any] = {**table, "weight": np.random.default_rng(1).random(20_000)}
    if named:
        columns["client"] = [f"client {c}" for c in table["client"]]
    frame = pl.DataFrame(columns)
    request = Request(**TERMS, secret=SECRET, weight=weight)
    whole = Release(source_of_table(frame), request)
    in_memory = pa.Table.from_batches(whole.batches())
    assert whole.summary.spilled_bytes == 0
    reader = frame.to_arrow().to_reader(max_chunksize=2000)
    spilling = Release(source_of_table(reader), request, folder=tmp_path)
    spilling._budget = 20_000  # below what may be asked for: so that each of the four parts is split again
    on_disk = pa.Table.from_batches(spilling.batches())
    assert on_disk.column("client").equals(in_memory.column("client"))  # in the same order: nobody's rows show in it
    assert by_client(on_disk) == by_client(in_memory)
    assert spilling.summary.spilled_bytes >= 2 * 20_000 * 12
    assert list(tmp_path.iterdir()) == []


def counted(clients: ClientColumns) -> list[list[tuple[int, int]]]:
    """The number of each outcome of each client; equal records may have been counted together, in any order."""
    counts = clients.counts if clients.counts.size else np.ones(clients.outcomes.size, dtype=np.int64)
    totals = []
    for start, stop in itertools.pairwise(clients.ends):
        sums = np.bincount(clients.outcomes[start:stop], weights=counts[start:stop], minlength=9)
        totals.append([(outcome, int(total)) for outcome, total in enumerate(sums) if total])
    return totals


@pytest.mark.parametrize("budget", [1 << 30, 200_000])
def test_batches_are_put_into_parts_beside_the_reading_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    rng = np.random.default_rng(2)
    clients, outcomes = rng.integers(0, 500, 30_000), rng.integers(0, 9, 30_000).astype(np.uint32)
    groups = []
    for worth in (1, 1 << 30):
        monkeypatch.setattr(parts_module, "_WORTH_A_THREAD", worth)
        with ClientParts(seed=1, budget=budget, folder=tmp_path) as parts:
            for start in range(0, 30_000, 1000):
                span = slice(start, start + 1000 if start % 3000 else start + 10)  # small batches wait for those before
                parts.add_records(pa.array(clients[span]), outcomes[span])
                assert len(parts._waiting) <= parts_module._AHEAD
            read = [group() for readers in parts.iterate_readers_of_client_groups() for group in readers]
        groups.append([dict(zip(group.names.to_pylist(), counted(group.clients), strict=True)) for group in read])
    assert groups[0] == groups[1]


def test_an_error_beside_the_reading_is_raised_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(parts_module, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(parts_module, "choose_grouping_functions", lambda _: SimpleNamespace(records_by_part=fail))
    threads = threading.active_count()
    with ClientParts(seed=1, budget=1000) as parts:
        parts.add_records(pa.array([1, 2]), np.zeros(2, dtype=np.uint32))
        with pytest.raises(MemoryError, match="no room"):
            list(parts.iterate_readers_of_client_groups())
    assert threading.active_count() == threads


def test_what_is_spilled_has_no_name_and_never_more_than_the_budget_stays(tmp_path: Path) -> None:
    clients = np.arange(50_000)
    with ClientParts(seed=1, budget=100_000, folder=tmp_path) as parts:
        for start in range(0, 50_000, 1000):
            parts.add_records(pa.array(clients[start : start + 1000]), np.zeros(1000, dtype=np.uint32))
            assert parts._held <= 100_000
        assert parts.spilled_bytes > 0
        assert list(tmp_path.iterdir()) == []
        seen = [
            client
            for groups in parts.iterate_readers_of_client_groups()
            for group in groups
            for client in group().names.to_pylist()
        ]
    assert sorted(seen) == clients.tolist()


def test_a_full_disk_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the folder for records that is full, not the one for the output."""
    (tmp_path / "scratch").mkdir()
    pl.DataFrame(rows()).write_parquet(tmp_path / "in.parquet")
    write = os.pwrite

    def full(handle: int, data: Any, offset: int) -> int:
        if offset > 10_000:
            raise OSError(28, "No space left on device")
        return write(handle, data[:4096], offset)  # and a disk may take less than it is given

    monkeypatch.setattr(os, "pwrite", full)
    monkeypatch.setattr(local, "_LEAST_MEMORY", 1)
    with pytest.raises(DiscreetError, match="scratch: No space left on device; give a larger memory budget"):
        sample_file(
            str(tmp_path / "in.parquet"),
            str(tmp_path / "out.parquet"),
            Request(**TERMS, secret=SECRET),
            memory=20_000,
            folder=tmp_path / "scratch",
        )
    assert {path.name for path in tmp_path.rglob("*")} == {"in.parquet", "scratch"}


def test_listed_clients_without_records_draw_from_the_reference() -> None:
    table = {"client": [1, 2, 2], "value": [0, 1, 1]}
    listed = list(range(4000))
    found = by_client(released(pa.table(table), domain=4, clients=listed, epsilon=8.0))
    assert sorted(found) == listed
    forget_rounds_in_memory()
    alone = by_client(released(pa.table(table), domain=4, epsilon=8.0))
    assert {client: found[client] for client in alone} == alone
    counts = np.bincount([sample for client, sample in found.items() if client not in alone], minlength=4)
    assert ((counts - 3998 / 4) ** 2 / (3998 / 4)).sum() < 30.7  # chi-squared, 3 degrees of freedom, 1e-6
    with pytest.raises(DiscreetError, match=r"not on the list \(1 of [12] looked at\)"):
        released(pa.table(table), domain=4, clients=[1, 3])
    with pytest.raises(DiscreetError, match="clients of the table are integers"):
        released(pa.table(table), domain=4, clients=["1", "2"])


@pytest.mark.parametrize("clients", [None, [1, 2, 3, 4]])
@pytest.mark.parametrize("column", ["count", "weight"])
def test_clients_with_counts_of_zero_alone_are_counted(column: str, clients: list[int] | None) -> None:
    """They draw from the reference, as listed clients without rows do."""
    table = pl.DataFrame({"client": [1, 1, 2, 2, 3], "value": [0, 1, 0, 1, 1], "n": [0, 0, 0, 5, 0]})
    terms: dict[str, Any] = {"client": "client", "value": "value", "domain": 4, "epsilon": 1.0, column: "n"}
    release = Release(table, Request(**terms), clients=clients)
    assert release.table().num_rows == (3 if clients is None else 4)
    assert release.summary.without_records == (2 if clients is None else 3)
    if clients is not None:
        with pytest.raises(DiscreetError, match=r"not on the list \(2 of 3 looked at\)"):
            Release(table, Request(**terms), clients=[2]).table()


@pytest.mark.slow
def test_a_column_of_counts_stands_for_rows() -> None:
    table = pl.DataFrame(rows())
    counted = table.group_by("client", "value").len("n")
    one_by_one = by_client(released(table.with_columns(n=1), count="n"))
    assert by_client(released(counted, count="n")) == one_by_one
    lists = counted.group_by("client").agg("value", "n")
    assert by_client(released(lists, count="n")) == one_by_one
    weights = counted.with_columns(pl.col("n").cast(pl.Float64))
    assert by_client(released(weights, weight="n")) == by_client(released(table.with_columns(n=1.0), weight="n"))
    whole = by_client(released(table))
    assert by_client(released(table.group_by("client").agg("value"))) == whole
    split = pl.concat(
        [table.head(1000).group_by("client").agg("value"), table.tail(3000).group_by("client").agg("value")]
    )
    assert by_client(released(split)) == whole


@pytest.mark.parametrize("kind", [pl.List(pl.Int64), pl.Array(pl.Int64, 2)])
def test_a_list_that_is_null_or_empty_is_a_null(kind: pl.DataType) -> None:
    """It was left out in silence, whatever was said about nulls, and its client with it."""
    empty: list[Any] = [] if isinstance(kind, pl.List) else [None, None]
    table = pl.DataFrame(
        {"client": [1, 2, 3], "value": [[0, 1], empty, None]}, schema={"client": pl.Int64, "value": kind}
    )
    with pytest.raises(DiscreetError, match="holds nulls or empty lists"):
        released(table)
    assert set(by_client(released(table, nulls="drop", rounds=2))) == {1}
    assert set(by_client(released(table, clients=[1, 2, 3], nulls="drop", rounds=2, round=2))) == {1, 2, 3}
    as_other = by_client(released(table, nulls="other", other=39, epsilon=30.0))
    assert (as_other[2], as_other[3]) == (39, 39)


def test_empty_lists_of_values_have_empty_lists_of_counts() -> None:
    lists = {"value": pl.List(pl.Int64), "n": pl.List(pl.Int64)}
    table = pl.DataFrame({"client": [1, 2], "value": [[0], []], "n": [[2], None]}, schema={"client": pl.Int64, **lists})
    with pytest.raises(DiscreetError, match="holds nulls or empty lists"):
        released(table, count="n")
    assert by_client(released(table, count="n", nulls="other", other=39, epsilon=30.0))[2] == 39
    uneven = pl.DataFrame({"client": [1], "value": [[]], "n": [[5]]}, schema={"client": pl.Int64, **lists})
    with pytest.raises(DiscreetError, match="differ in length"):
        released(uneven, count="n", nulls="drop")


@pytest.mark.slow
def test_labels_of_any_kind() -> None:
    table = rows(outcomes=5)
    names = ["ant", "bee", "cow", "dog", "eel"]
    texts = pa.table({"client": table["client"], "value": [names[v] for v in table["value"]]})
    found = by_client(released(texts, domain=names))
    assert set(found.values()) <= set(names)
    integers = pa.table({"client": table["client"], "value": [100 * v for v in table["value"]]})
    numbers = by_client(released(integers, domain=[0, 100, 200, 300, 400]))
    assert set(numbers.values()) <= {0, 100, 200, 300, 400}
    assert released(integers, domain=["0", "100", "200", "300", "400"]).equals(
        released(integers, domain=[0, 100, 200, 300, 400])
    )


def test_values_outside_and_missing_go_where_they_are_sent() -> None:
    table = pa.table({"client": [1, 1, 2, 3, 3], "value": ["a", "zebra", "yak", None, "b"]})
    with pytest.raises(DiscreetError, match="holds nulls"):
        released(table, domain=["a", "b", "rest"], other="rest")
    with pytest.raises(DiscreetError, match=r"outside the domain \(2 in 5 rows, such as .*'(zebra|yak)'"):
        released(table, domain=["a", "b"], nulls="drop", show_values=True)
    source = source_of_table(table)
    request = Request(
        client="client",
        value="value",
        domain=["a", "b", "rest"],
        epsilon=3.0,
        goal="clients",
        other="rest",
        nulls="other",
        secret=SECRET,
    )
    release = Release(source, request)
    found = by_client(pa.Table.from_batches(release.batches()))
    by_hand = pa.table({"client": [1, 1, 2, 3, 3], "value": ["a", "rest", "rest", "rest", "b"]})
    assert found == by_client(released(by_hand, domain=["a", "b", "rest"]))
    assert (release.summary.nulls, release.summary.outside, release.summary.rows) == (1, 2, 5)
    dropped = released(table, domain=["a", "b", "zebra", "yak"], nulls="drop")
    by_hand = pa.table({"client": [1, 1, 2, 3], "value": ["a", "zebra", "yak", "b"]})
    assert dropped.equals(released(by_hand, domain=["a", "b", "zebra", "yak"]))


def test_numbers_outside_a_domain_size() -> None:
    table = pa.table({"client": [1, 1, 2], "value": [0, -1, 2**40]})
    with pytest.raises(DiscreetError, match=r"outside the domain \(2 in 3 rows\)"):
        released(table, domain=3)
    with pytest.raises(DiscreetError, match=r"such as (-1, 1099511627776|1099511627776, -1)"):
        released(table, domain=3, show_values=True)
    assert by_client(released(table, domain=3, other=2)) == by_client(
        released(pa.table({"client": [1, 1, 2], "value": [0, 2, 2]}), domain=3)
    )


def test_cells_take_numbers() -> None:
    values = [-1.0, -0.75, 0.0, 0.999, 1.0, 0.5]
    table = pa.table({"client": list(range(6)), "value": values})
    points = by_client(released(table, domain=dc.Interval(-1.0, 1.0, cells=8), epsilon=20.0))
    for client, value in enumerate(values):
        cell = min(int((value + 1.0) / 0.25), 7)
        assert -1.0 + 0.25 * cell <= points[client] <= -1.0 + 0.25 * (cell + 1)
    outside = pa.table({"client": [1, 2, 3], "value": [5.0, float("-inf"), float("nan")]})
    with pytest.raises(DiscreetError, match=r"holds NaN \(1 in 3 rows\)"):
        released(outside, domain=dc.Interval(-1.0, 1.0, cells=8))
    with pytest.raises(DiscreetError, match="outside the domain"):
        released(outside, domain=dc.Interval(-1.0, 1.0, cells=8), nulls="drop")
    forget_rounds_in_memory()
    near = by_client(
        released(outside, domain=dc.Interval(-1.0, 1.0, cells=8), nulls="drop", other="nearest", epsilon=20.0)
    )
    assert near[1] >= 0.75
    assert near[2] <= -0.75
    assert set(near) == {1, 2}


@pytest.mark.slow
def test_dropping_clients_leaves_samples_in_random_order() -> None:
    table = pa.table(rows(clients=2000, number=4000))
    kept, dropped = released(table), released(table, drop_client=True)
    assert dropped.schema.names == ["sample", "agreement"]
    assert sorted(dropped.column("sample").to_pylist()) == sorted(kept.column("sample").to_pylist())
    assert dropped.equals(released(table, drop_client=True))
    everybody_alike = pa.table({"client": list(range(2000)), "value": [c // 1000 for c in range(2000)]})
    split = released(everybody_alike, domain=2, epsilon=20.0, drop_client=True).column("sample").to_numpy()
    halves = split[:1000].mean()  # in order of client this would be 0; at random it is 1/2, give or take 0.011
    assert abs(halves - 0.5) < 0.06


def test_the_order_of_the_output_does_not_show_that_of_the_rows() -> None:
    table = rows()
    backwards = {name: column[::-1] for name, column in table.items()}
    assert released(pa.table(table)).column("client").equals(released(pa.table(backwards)).column("client"))


def test_a_huge_domain() -> None:
    table = pa.table({"client": [1, 1, 2], "value": [0, 10**8 - 1, 12_345_678]})
    found = by_client(released(table, domain=10**8, epsilon=30.0))
    assert found[1] in (0, 10**8 - 1)
    assert found[2] == 12_345_678


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"client": "who"}, "column 'who' is not in the table; it has 'client', 'value'"),
        ({"value": "what"}, "column 'what' is not in"),
        ({"count": "n"}, "column 'n' is not in"),
        ({"value": "client"}, "column 'client' is named twice"),
        ({"count": "a", "weight": "b"}, "not both"),
        ({"epsilon": 0.0}, "epsilon = 0"),
        ({"epsilon": float("nan")}, "epsilon = nan"),
        ({"domain": 0}, "domain = 0 is less than 1"),
        ({"domain": 2**32}, "more than"),
        ({"domain": []}, "labels are neither|empty"),
        ({"domain": ["a", "a"]}, "duplicate labels: 'a'"),
        ({"domain": ["a", 1]}, "neither all texts nor all integers"),
        ({"domain": "abc"}, "is a text; pass a number of outcomes or a list of labels"),
        ({"domain": True}, "domain = True is not a whole number"),
        ({"domain": 2.5}, "domain = 2.5 is not a whole number"),
        ({"domain": dc.Simplex(40)}, "is more than a domain; pass its .domain, or say family="),
        ({"domain": ["a", "b"]}, "holds integers but label 'a' is none"),
        ({"domain": dc.Interval(0, 1, cells=4), "other": "x"}, "'nearest'"),
        ({"domain": 40, "other": 40}, "other = 40 is not one of the outcomes"),
        ({"nulls": "keep"}, "nulls = 'keep'"),
        ({"nulls": "other"}, r"say other= \(--other\) which one"),
        ({"mechanism": "boosted"}, "mechanism = 'boosted'"),
        ({"round": 2}, "round = 2 is more than the 1 agreed on"),
        ({"rounds": 0}, "rounds = 0"),
        ({"memory": 10}, "memory = 10 is less than"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(DiscreetError, match=named):
        released(pa.table(rows()), **changes)


@pytest.mark.parametrize(
    ("columns", "changes", "named"),
    [
        ({"client": [1.5], "value": [1]}, {}, "clients are texts or integers"),
        ({"client": [None, 1], "value": [1, 1]}, {}, "column 'client' holds nulls"),
        ({"client": [1], "value": ["x"]}, {}, "holds String values"),
        ({"client": [1], "value": [1.5]}, {}, "cast the column to integers"),
        ({"client": [1], "value": [True]}, {"domain": ["a"]}, r"outside the domain \(1 in 1 rows"),
        (
            {"client": [1], "value": [True]},
            {"domain": dc.Interval(0.0, 1.0, cells=2)},
            "holds Boolean values, but bounds need numbers",
        ),
        ({"client": [1], "value": ["x"]}, {"domain": [1, 2]}, "labels are integers"),
        ({"client": [1], "value": ["x"]}, {"domain": dc.Interval(0, 1, cells=2)}, "bounds need numbers"),
        ({"client": [1], "value": [1], "n": [1.5]}, {"count": "n"}, "weight= takes any numbers"),
        ({"client": [1], "value": [1], "n": ["x"]}, {"weight": "n"}, "not numbers"),
        ({"client": [1, 2], "value": [1, 2], "n": [1, None]}, {"count": "n"}, "column 'n' holds nulls"),
        ({"client": [1], "value": [[1]], "n": [1]}, {"count": "n"}, "not both lists"),
        (
            {"client": [1, 2], "value": [1, 2], "n": [1, -3]},
            {"count": "n"},
            r"column 'n' holds what are no whole numbers .*\(1 in 2 rows\)",
        ),
        ({"client": [1], "value": [1], "n": [float("inf")]}, {"weight": "n"}, "'n' holds what are no finite numbers"),
    ],
)
def test_bad_columns_are_named(columns: dict[str, list[Any]], changes: dict[str, Any], named: str) -> None:
    with pytest.raises(DiscreetError, match=named):
        released(pa.table(columns), **changes)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DiscreetError, match="table is a list"):
        released([1, 2, 3])
    with pytest.raises(DiscreetError, match="does not exist"):
        released("/nowhere/at/all.parquet")


def test_no_rows_give_no_samples() -> None:
    empty = pa.table({"client": pa.array([], pa.int64()), "value": pa.array([], pa.int64())})
    assert released(empty).num_rows == 0
    assert released(empty, drop_client=True).num_rows == 0
    forget_rounds_in_memory()
    assert released(empty, clients=[4]).num_rows == 1


def test_nothing_private_is_printed_or_kept(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.environ.pop("POLARS_VERBOSE", None)
    released(pa.table(rows()))
    assert capfd.readouterr() == ("", "")


def test_an_agreement_stands_for_its_terms() -> None:
    """`agreement=` gives the same release as its terms one by one; a contradiction and a stranger are refused."""
    table = pa.table(rows())
    agreed = dc.Agreement.of(dc.LinearSampler(dc.Simplex(40), epsilon=3.0), rounds=3, purpose="why")
    columns: dict[str, Any] = {"client": "client", "value": "value", "secret": SECRET}
    by_terms = sample(table, domain=40, epsilon=3.0, mechanism="linear", rounds=3, purpose="why", **columns)
    by_agreement = sample(table, agreement=agreed, **columns)
    assert by_agreement.equals(by_terms)
    for wrong, says in (
        ({"epsilon": 1.0}, "epsilon = 1.0 is not the epsilon = 3.0"),
        ({"domain": 41}, "family.size = 41, not 40"),
        ({"domain": [*range(40)]}, "family.labels"),
        ({"agreement": agreed.id}, "read one with Agreement.read"),
    ):
        with pytest.raises(dc.DiscreetError) as caught:
            sample(table, **{"agreement": agreed, **columns, **wrong})
        assert says in str(caught.value)
    with pytest.raises(dc.DiscreetError, match="epsilon is not given"):
        sample(table, domain=40, **columns)
    with pytest.raises(dc.DiscreetError, match="domain is not given"):
        sample(table, epsilon=1.0, **columns)


def test_a_table_is_released_under_an_agreement_of_an_older_version() -> None:
    """Its samples name it, and are those that its id gives under a secret."""
    table = pa.table({"c": [1, 1, 2, 3], "v": [1, 2**53 + 1, 1, 1]})
    agreed = dc.Agreement.of(dc.OptimalSampler(dc.Simplex([1, 2**53 + 1]), epsilon=1.0), version=1)
    found = sample(table, client="c", value="v", agreement=agreed)
    assert set(found.column("agreement").to_pylist()) == {agreed.id}
    assert dc.Agreement.from_json(found.schema.metadata[METADATA].decode()).id == agreed.id


def test_a_request_that_does_not_fit_its_agreement_is_refused_with_both_ids() -> None:
    agreed, other = (dc.Agreement.of(dc.OptimalSampler(dc.Simplex(4), epsilon=e)) for e in (1.0, 2.0))
    request = Request(client="c", value="v", agreement=agreed)
    vars(request).update(agreement=other)  # as nobody can by asking
    with pytest.raises(dc.DiscreetError) as caught:
        request.job(pl.Schema({"c": pl.Int64(), "v": pl.Int64()}), where="the table")
    assert agreed.id in str(caught.value)
    assert other.id in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "whole", "odd"])
def test_a_heavy_client_is_counted_together_and_releases_the_same(
    monkeypatch: pytest.MonkeyPatch, weight: str | None
) -> None:
    """However its records went through memory and disk, they add up to the same to the last bit, and stand in the same place."""
    rng = np.random.default_rng(5)
    number = wide(60_000, 30_000)
    heavy = rng.random(number) < 0.9
    columns = {
        "client": np.where(heavy, 7, rng.integers(0, 200, number)),
        "value": rng.integers(0, 40, number),
        "whole": rng.integers(0, 5, number).astype(float),
        "odd": rng.random(number) * 2.0 ** rng.integers(-40, 40, number),
    }
    frame = pl.DataFrame(columns)
    request = Request(**TERMS, secret=SECRET, weight=weight)
    whole = pa.Table.from_batches(Release(source_of_table(frame), request).batches())
    combined: list[int] = []
    combine = ClientParts._combine_equal_records

    def noted(parts: ClientParts) -> None:
        combined.append(parts._held)
        combine(parts)

    monkeypatch.setattr(ClientParts, "_combine_equal_records", noted)
    spilling = Release(source_of_table(frame.to_arrow().to_reader(max_chunksize=2000)), request)
    spilling._budget = 300_000
    assert pa.Table.from_batches(spilling.batches()).equals(whole)
    assert combined


@pytest.mark.slow
def test_the_place_in_the_output_tells_nobody_who_has_many_rows() -> None:
    """A part that is too large is split; its clients still come in the order that they have when nothing is."""
    many = 30_000
    table = {"client": [*range(300), *[17] * many], "value": [*(client % 40 for client in range(300 + many))]}
    orders = []
    for budget in (10**9, 2_000):
        release = Release(source_of_table(pa.table(table)), Request(**TERMS, secret=SECRET))
        release._budget = budget
        orders.append(pa.Table.from_batches(release.batches()).column("client").to_pylist())
    assert orders[0] == orders[1]


def test_values_past_the_ends_are_counted_when_they_go_to_the_nearest_cell() -> None:
    table = pa.table({"client": [1, 2, 3, 4], "value": [-5.0, 0.5, 9.0, float("inf")]})
    request = Request(
        client="client",
        value="value",
        domain=dc.Interval(0.0, 1.0, cells=4),
        epsilon=30.0,
        other="nearest",
        secret=SECRET,
    )
    release = Release(source_of_table(table), request)
    points = by_client(pa.Table.from_batches(release.batches()))
    assert release.summary.outside == 3
    assert points[1] <= 0.25
    assert min(points[3], points[4]) >= 0.75


def test_nan_is_called_so() -> None:
    table = pa.table({"client": [1, 2, 3], "value": [0.5, float("nan"), None]})
    terms: dict[str, Any] = {
        "client": "client",
        "value": "value",
        "domain": dc.Interval(0.0, 1.0, cells=4),
        "epsilon": 1.0,
    }
    with pytest.raises(DiscreetError, match=r"holds NaN \(1 in 2 rows\)"):
        sample(table.slice(0, 2), **terms)
    release = Release(source_of_table(table), Request(**terms, nulls="drop"))
    assert pa.Table.from_batches(release.batches()).num_rows == 1
    assert (release.summary.nulls, release.summary.not_numbers) == (1, 1)


@pytest.mark.parametrize("clients", [["a", None], pl.Series(["a", None]), pa.array(["a", None])])
def test_nobody_on_the_list_of_clients_is_called_null(clients: Any) -> None:
    """A phantom was released for it."""
    with pytest.raises(DiscreetError, match="clients holds 1 nulls"):
        released(pa.table({"client": ["a"], "value": [1]}), clients=clients)


SECRETS = ["Anna Rosenberg", "4711"]


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        ("client,value\n4711,Anna Rosenberg\n", {}),  # swapped columns
        ("client,value\nAnna Rosenberg,4711\n", {}),
        ("client,value\nAnna Rosenberg,4711\n", {"domain": ["red", "green"]}),
        ("client,value\nAnna Rosenberg,4711\n", {"domain": dc.Interval(0.0, 1.0, cells=4)}),
        ("client,value,n\nb,1,Anna Rosenberg\n", {"count": "n"}),
        ("client,value,n\nb,1,-4711\n", {"weight": "n"}),
        ('client,value\n"Anna Rosenberg,4711\n', {}),
        ("client,value\nAnna Rosenberg,1,4711\n", {}),
        ("client,value\nAnna Rosenberg,1\n", {"clients": ["b"]}),
        ("Anna Rosenberg,1\nb,2\n", {}),  # without a header
        ("4711,4711\nb,2\n", {}),
        ("client,value\rAnna Rosenberg,4711\r", {}),
    ],
)
def test_no_error_shows_a_client_or_what_it_holds(tmp_path: Path, content: str, changes: dict[str, Any]) -> None:
    (tmp_path / "in.csv").write_text(content, newline="")
    with pytest.raises(DiscreetError) as told:
        released(str(tmp_path / "in.csv"), **changes)
    assert not any(secret in str(told.value) for secret in SECRETS)
    assert "\n" not in str(told.value)


def test_a_secret_may_be_named_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "release.secret"
    dc.tables.write_secret(path)
    table = pa.table({"client": ["a", "b", "c"] * 20, "value": [n % 7 for n in range(60)]})
    first = by_client(released(table, secret=str(path)))
    assert by_client(released(table, secret=path)) == first
    assert by_client(released(table, secret=dc.tables.read_secret(path))) == first
    assert (tmp_path / "release.secret.rounds").exists()
    with pytest.raises(DiscreetError, match=r"secret is a bytes; pass the path of a file"):
        released(table, secret=bytes(32))
    with pytest.raises(DiscreetError, match="cannot be read"):
        released(table, secret=str(tmp_path / "none"))


def test_labels_in_a_damaged_column_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 4_000_000, 2], dtype=np.int32).tobytes())
    damaged = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(DiscreetError, match="damaged"):
        released(rows(), domain=damaged)


def test_a_family_a_sampler_and_their_agreement_ask_for_the_same() -> None:
    family = dc.Simplex(list("abc"))
    sampler = dc.LinearSampler(family, epsilon=2.0)
    agreement = dc.Agreement.of(sampler, rounds=2, purpose="counting")
    table = pa.table({"client": [1, 1, 2, 3], "value": list("abca")})
    extent: dict[str, Any] = {"rounds": 2, "purpose": "counting"}
    asked: list[dict[str, Any]] = [
        {"agreement": agreement},
        {"sampler": sampler, **extent},
        {"family": family, "mechanism": "linear", "epsilon": 2.0, **extent},
        {"domain": list("abc"), "mechanism": "linear", "epsilon": 2.0, **extent},
    ]
    columns: dict[str, Any] = {"client": "client", "value": "value", "secret": SECRET}
    found = [sample(table, **columns, **terms) for terms in asked]
    assert all(one.equals(found[0]) for one in found)


@pytest.mark.parametrize(
    ("terms", "named"),
    [
        ({"family": dc.Simplex(3)}, "epsilon is not given"),
        ({"family": dc.Simplex(3), "epsilon": 1.0, "mechanism": "best"}, "mechanism = 'best'"),
        ({"family": dc.Simplex(3), "epsilon": 1.0, "domain": 4}, "use the agreed one"),
        ({"family": 3, "epsilon": 1.0}, "family = 3"),
        ({"sampler": "optimal"}, "is not a sampler"),
        ({"sampler": dc.OptimalSampler(dc.Simplex(3), epsilon=1.0), "epsilon": 2.0}, "epsilon = 2.0 is not the epsilon"),
        ({"sampler": dc.OptimalSampler(dc.GaussianMixtures(dim=2), epsilon=1.0)}, "by the cells of a line"),
        ({"family": dc.Simplex(3), "sampler": dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)}, "give one of them"),
    ],
)  # fmt: skip
def test_what_is_no_family_or_sampler_is_refused(terms: dict[str, Any], named: str) -> None:
    with pytest.raises(DiscreetError, match=named):
        Request(client="c", value="v", **terms)


def test_a_request_is_in_words_that_there_are() -> None:
    with pytest.raises(TypeError, match="no term 'epsilom'; did you mean 'epsilon'"):
        sample(pa.table(rows()), client="client", value="value", epsilom=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="needs value"):
        Request(client="client", domain=3, epsilon=1.0)


def test_a_release_tells_what_it_did_once_it_is_done() -> None:
    table = pl.DataFrame({"who": [1, 1, 2, 3], "what": ["a", None, "z", "b"]})
    request = Request(
        client="who", value="what", domain=["a", "b"], other="b", nulls="drop", epsilon=1.0, purpose="why"
    )
    release = Release(table, request, clients=[1, 2, 3, 4])
    with pytest.raises(DiscreetError, match=r"take the table\(\) first"):
        _ = release.summary
    samples = release.table()
    assert release.table() is samples
    assert samples.column_names == ["who", "sample", "agreement"]
    record = release.summary.record
    assert record["agreement"] == {
        "id": release.job.agreement.id, "epsilon": 1.0, "mechanism": "linear", "rounds": 1, "purpose": "why",
    }  # fmt: skip
    counts = {"rows": 4, "clients": 4, "nulls": 1, "not_numbers": 0, "outside": 1, "without_records": 1}
    assert counts.items() <= record.items()
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(("name", "kept"), [("who", "who"), ("sample", "client"), ("agreement", "client")])
def test_clients_keep_the_name_of_their_column_unless_another_has_it(name: str, kept: str) -> None:
    table = pa.table({name: [1, 2], "what": [0, 1]})
    found = sample(table, client=name, value="what", domain=2, epsilon=1.0)
    assert found.column_names == [kept, "sample", "agreement"]
    assert found.column(kept).to_pylist() in ([1, 2], [2, 1])


@pytest.mark.parametrize("name", ["*", "^.*$", "^(a|b) [0-9]\\.$"])
@pytest.mark.parametrize("role", ["client", "value", "count"])
def test_the_name_of_a_column_is_no_pattern(tmp_path: Path, name: str, role: str) -> None:
    """polars takes such names for patterns. Other columns that match were released in place of the one that was named."""
    plain = {"client": "who", "value": "what", "count": "n"}
    columns = {"who": ["x", "y"], "what": ["a", "b"], "n": [1, 2], "a 1.": ["wrong", "columns"]}
    table = pl.DataFrame({name if column == plain[role] else column: values for column, values in columns.items()})
    table.write_parquet(tmp_path / "in.parquet")
    for held in (table, table.to_arrow(), tmp_path / "in.parquet"):
        terms: dict[str, Any] = {**plain, role: name, "epsilon": 1.0}
        assert sorted(sample(held, **terms, domain=["a", "b"])[0].to_pylist()) == ["x", "y"]
        with pytest.raises(DiscreetError, match="such as 'b'"):
            sample(held, **terms, domain=["a", "c"], show_values=True)
    if role != "client":
        lists = table.select(pl.first(), pl.nth(1, 2).reshape((-1, 1)))
        assert sorted(sample(lists, **terms, domain=["a", "b"])[0].to_pylist()) == ["x", "y"]


def test_truth_values_are_words_or_numbers() -> None:
    table = pa.table({"who": [1, 1, 2], "what": [True, False, True]})
    words, numbers = (
        {"who": [1, 1, 2], "what": ["true", "false", "true"]},
        {"who": [1, 1, 2], "what": [1, 0, 1]},
    )
    terms: dict[str, Any] = {"client": "who", "value": "what", "epsilon": 1.0, "secret": SECRET}
    for domain, other in ((["false", "true"], words), (2, numbers)):
        assert sample(table, domain=domain, **terms).equals(sample(pa.table(other), domain=domain, **terms))
    with pytest.raises(DiscreetError, match="write 'false' and 'true'"):
        sample(table, domain=[False, True], **terms)
    lists = pa.table({"who": [1, 2], "what": [[True, False], [True]]})
    assert sample(lists, domain=2, **terms).equals(sample(table, domain=2, **terms))


@pytest.mark.slow
def test_frames_of_pandas_and_whatever_speaks_arrow() -> None:
    pandas = needed_module("pandas", "pip install pandas")

    class Speaking:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.table(rows()).__arrow_c_stream__(requested_schema)

    wanted = released(pa.table(rows()))
    assert released(pandas.DataFrame(rows())).equals(wanted)
    assert released(Speaking()).equals(wanted)
    for client in ("secret name", 2**70):
        with pytest.raises(DiscreetError, match="the DataFrame cannot be read as Arrow") as told:
            released(pandas.DataFrame({"client": [1, client], "value": [1, 2]}))
        assert str(client) not in str(told.value)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["1", "x"]), pl.List(pl.Categorical)])
@pytest.mark.parametrize("domain", [dc.Numbers(3), dc.Interval(0.0, 4.0, cells=4)])
def test_categories_are_read_as_the_texts_they_are(kind: Any, domain: dc.Domain) -> None:
    """Under the agreement's own rule, a text that is no number is left out."""
    agreed = dc.Agreement.of(dc.LinearSampler(dc.Simplex(domain), epsilon=1.0))
    texts = pl.Series("value", ["1", "x"])
    values = texts.reshape((-1, 1)).arr.to_list() if isinstance(kind, pl.List) else texts
    terms: dict[str, Any] = {"client": "client", "value": "value", "agreement": agreed, "outside": "agreed"}
    release = Release(pl.DataFrame([pl.Series("client", [1, 2]), values.cast(kind)]), Request(**terms))
    assert sorted(release.table()["client"].to_pylist()) == [1, 2]
    assert release.summary.without_records == 1


def test_a_family_on_an_interval_brings_its_cells() -> None:
    """The domain is said once: by itself, as a family's, a sampler's or an agreement's, and the samples are the same."""
    table = pa.table({"client": list(range(50)), "value": [place / 50 for place in range(50)]})
    cells = dc.Interval(0.0, 1.0, cells=5)
    family = dc.Simplex(cells)
    agreement = dc.Agreement.of(dc.OptimalSampler(family, epsilon=2.0))
    asked: dict[str, Any] = {"client": "client", "value": "value", "secret": SECRET}
    found = [
        sample(table, **asked, domain=cells, epsilon=2.0, mechanism="optimal"),
        sample(table, **asked, family=family, epsilon=2.0, mechanism="optimal"),
        sample(table, **asked, sampler=dc.OptimalSampler(family, epsilon=2.0)),
        sample(table, **asked, agreement=dc.Agreement.from_json(agreement.canonical)),
    ]
    assert all(one.equals(found[0]) for one in found)
    assert set(found[0]["agreement"].to_pylist()) == {agreement.id}
    population = dc.estimation.population(agreement, samples=found[0]["sample"])
    assert population.clients == 50
    assert population.domain == cells
    banded = dc.Band([1, 2, 3, 2, 1], lower=0.0, upper=1.5, domain=cells, any_client=True)
    skewed = sample(table, **asked, family=banded, epsilon=2.0, mechanism="optimal")
    assert set(skewed["agreement"].to_pylist()) == {dc.Agreement.of(dc.OptimalSampler(banded, epsilon=2.0)).id}


@pytest.mark.parametrize("secret", [None, SECRET])
@pytest.mark.parametrize("clients", [None, ["a", "b", "c"]])
def test_a_release_is_taken_once(secret: Any, clients: list[str] | None) -> None:
    """A second run found no rows: an empty table, or samples of the reference for all clients listed."""
    table = pl.DataFrame({"client": ["a", "b", "c"], "value": [0, 1, 2]})
    release = Release(table, Request(**TERMS, secret=secret), clients=clients)
    (batch,) = release.batches()
    advice = "is another release, which spends epsilon again" if secret is None else "gives the same samples"
    for again in (release.table, lambda: list(release.batches())):
        with pytest.raises(DiscreetError, match=f"was run already.*{advice}"):
            again()
    assert release.summary.clients == 3
    failing = Release(pl.DataFrame({"client": ["a"], "value": [-1]}), Request(**TERMS, secret=secret), clients=clients)
    for says in ("outside the domain", "did not come to its end"):
        with pytest.raises(DiscreetError, match=says):
            failing.table()
    fresh = Release(table, Request(**TERMS, secret=secret), clients=clients)
    if secret is not None:
        assert fresh.table().to_batches()[0].equals(batch)
    assert fresh.table() is fresh.table()


def test_files_to_keep_do_not_take_the_place_of_those_that_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("client,value\na,1\n")
    output = tmp_path / "out.parquet"
    for file, keep in ((output, tmp_path / "other"), (tmp_path / "agreement", output)):
        with pytest.raises(DiscreetError, match="would replace the agreement"):
            sample_file(
                str(tmp_path / "in.csv"), str(output), Request(**TERMS), agreement_file=file, keep={"agreement": keep}
            )
        assert not output.exists()
