"""Hostile tables, batches and files through the engines."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import discreet as dc
from discreet import tables as engines
from discreet.agreement import Agreement
from discreet.domain import Coding
from discreet.ledger import PopulationLedger
from tests.fuzz.chooser import WORDS, Chooser

CLIENTS: list[Any] = [1, 2, -1, 2**62, "a", "b", "", "é", "\x00", None, 1.5, True, [1]]
VALUES: list[Any] = [0, 1, 2, 99, -1, 2**62, "x", "y", "", None, 0.5, np.nan, np.inf, True, [0, 1], ["x"], [], [None]]
COLUMNS: list[Any] = ["client", "value", "count", "weight", "", None, 1, "nowhere"]


def _column(c: Chooser, values: list[Any], rows: int) -> pa.Array:
    """A column of one type, or of whatever Arrow makes of a mixture."""
    first = c.among(values)
    same = [value for value in values if type(value) is type(first) or value is None]
    chosen = values if c.below(8) == 0 else same[: 1 + c.below(len(same))]
    try:
        return pa.array([c.among(chosen) for _ in range(rows)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([0] * rows)


def _table(c: Chooser) -> pa.Table:
    rows = c.below(6)
    return pa.table({
        "client": _column(c, CLIENTS, rows), "value": _column(c, VALUES, rows), "count": _column(c, VALUES, rows),
        "weight": _column(c, VALUES, rows),
    })  # fmt: skip


def _domain(c: Chooser) -> Any:
    what = c.below(7)
    if what == 0:
        return c.number()
    if what == 1:
        return [c.among(VALUES) for _ in range(c.below(4))]
    if what == 2:
        return dc.Labels(c.among([["x", "y"], [0, 1, 2], ["0", "1"], [], ["x", "x"], VALUES]))
    if what == 3:
        return c.among([dc.Numbers, dc.Simplex])(c.among([3, c.number()]))
    if what == 4:
        return dc.Interval(c.among([0.0, c.number()]), c.among([1.0, c.number()]), cells=c.among([4, c.number()]))
    return c.among([3, 100, ["x", "y"]])


def _terms(c: Chooser) -> dict[str, Any]:
    """Arguments of a release: mostly right ones."""
    terms: dict[str, Any] = {
        "client": "client" if c.below(16) else c.among(COLUMNS), "value": "value" if c.below(16) else c.among(COLUMNS),
        "secret": engines.Secret(os.urandom(32)),
    }  # fmt: skip
    if c.below(3) == 0:
        terms["agreement"] = c.among([_agreement(c), c.number()])
    if "agreement" not in terms or c.below(4) == 0:
        terms |= {"domain": _domain(c), "epsilon": c.number()}
    odd: dict[str, Callable[[], Any]] = {
        "count": lambda: c.among(COLUMNS), "weight": lambda: c.among(COLUMNS), "other": lambda: c.among(VALUES),
        "nulls": lambda: c.among(["drop", "other", "x", None]), "mechanism": lambda: c.among(["linear", "mollifier", *WORDS]),
        "rounds": c.number, "round": c.number, "purpose": lambda: c.among([*WORDS, c.number()]),
    }  # fmt: skip
    for _ in range(c.below(3)):
        name = c.among(sorted(odd))
        terms[name] = odd[name]()
    return terms


def _agreement(c: Chooser) -> Agreement:
    family = c.among([3, ["x", "y"], [0, 1, 2], ["0", "1"], ["x", 1.5], dc.Interval(0.0, 1.0, cells=3)])
    sampler = c.among([dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])(dc.Simplex(family), epsilon=1.0)
    made = Agreement.of(sampler)
    return made if c.below(2) else Agreement.from_json(made.canonical)


def tables(c: Chooser) -> Any:
    table, terms = _table(c), _terms(c)
    listed = c.among([None, None, [1, 2], ["a", "b", "c"], [None], c.number()])
    form = c.below(4)
    given = [table, table.to_reader(), table, c.number()][form] if form != 2 else pl.DataFrame(table)
    if c.below(4) == 0:
        told = engines.dry_run(given, **terms)
        assert sum(told.outside.values()) + told.nulls + told.not_numbers <= told.rows
        return told
    found = engines.sample(given, **terms, clients=listed, drop_client=bool(c.below(2)))
    samples = found.column("sample")
    assert samples.null_count == 0
    return samples.to_pylist()


def population_ledgers(c: Chooser) -> Any:
    """Releases through a ledger; what is paid for once comes again, whatever the data."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / c.among(["ledger", "ledger", "ledger", "nowhere/ledger", "\x00", "."])
        ledger = PopulationLedger.create(path, budget=c.number(), secret=engines.Secret(os.urandom(32)))
        for _ in range(1 + c.below(3)):
            terms = {**_terms(c), "secret": c.among([None, None, ledger.secret, engines.Secret(bytes(32))])}
            over = c.among(["refuse", "drop", "drop", "x", c.number()])
            found = engines.sample(_table(c), **terms, ledger=ledger, over_budget=over)
            again = engines.sample(_table(c), **terms, ledger=PopulationLedger(path, ledger.secret), over_budget="drop")
            stored = dict(zip(found["client"].to_pylist(), found["sample"].to_pylist(), strict=True))
            for client, sample in zip(again["client"].to_pylist(), again["sample"].to_pylist(), strict=True):
                assert stored.get(client, sample) == sample
        return ledger.budget.epsilon


def kernels(c: Chooser) -> Any:
    """The kernel with batches that no engine of ours would make."""
    request = engines.Request(
        client="c", value="v", domain=c.among([3, 100, dc.Interval(0.0, 1.0, cells=4)]), epsilon=c.number(),
        secret=engines.Secret(os.urandom(32)),
        mechanism=c.among(["optimal", "linear"]),
    )  # fmt: skip
    assert isinstance(request.coding, Coding)
    kinds = {"c": c.among([pl.Int64(), pl.String()]), "v": request.coding.polars_type_to_read_texts_as}
    kernel = engines.Kernel(request.job(pl.Schema(kinds), where="here"))
    rows = c.below(4)
    outcomes = [[c.among([0, 1, 2, 2, 3, -1, 2**40, None]) for _ in range(c.below(3))] for _ in range(rows)]
    counts = [[c.among([1.0, 0.0, 2.5, -1.0, np.nan, np.inf, 1e308, None]) for _ in row] for row in outcomes]
    columns = {"client": _column(c, CLIENTS, rows), "outcomes": pa.array(outcomes)}
    if c.below(2):
        columns["counts"] = pa.array(counts)
    if c.below(8) == 0:
        columns.pop(c.among(sorted(columns)))
    if not columns:
        return None
    return kernel(pa.RecordBatch.from_pydict(columns)).column("sample").to_pylist()


def table_files(c: Chooser) -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / c.among(["in.csv", "in.parquet", "in.arrow", "in.txt"])
        what = c.below(4)
        if what == 0:
            source.write_bytes(bytes(c.below(256) for _ in range(c.below(40))))
        elif what == 1:
            source.write_text(
                "client,value\n" + "".join(f"{c.among(CLIENTS)},{c.among(VALUES)}\n" for _ in range(c.below(5)))
            )
        elif what == 2:
            table = _table(c)
            pl.DataFrame(table).write_parquet(source)
        if c.below(4) == 0:
            secret = folder / c.among(["secret", "nowhere/secret", "\x00"])
            if c.below(2):
                engines.write_secret(secret)
            elif secret.name == "secret" and secret.parent == folder:
                secret.write_bytes(bytes(c.below(256) for _ in range(c.below(80))))
            engines.read_secret(secret)
        request = engines.Request(**_terms(c))
        out = folder / c.among(["out.csv", "out.parquet", "out.arrow", "out.txt", "nowhere/out.csv", ".", "\x00.csv"])
        found = engines.sample_file(
            str(c.among([source, folder, folder / "*.csv"])),
            str(out),
            request,
            agreement_file=c.among([None, folder / "a.json"]),
        )
        assert isinstance(found, engines.Summary)
        return [found.rows, found.clients]
