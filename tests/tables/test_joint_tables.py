"""Tables of several samples drawn together: by the integers of `JointSampler`, repeatable, charged once, estimated as in Python."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet import Agreement, DiscreetError, JointSampler, Simplex
from discreet.cli._app import app
from discreet.errors import BudgetError, NotPrivateWarning
from discreet.estimation import population
from discreet.ledger import PopulationLedger
from discreet.release import (
    BITS,
    TOTAL,
    integer_laws_and_messages,
    outcomes,
    pseudo_random_word_rows,
    seeded_randomness,
    weights,
)
from discreet.tables import Request, read_secret, sample, write_secret
from discreet.tables._drawing import Kernel
from discreet.tables._parts import clients_and_records_from_arrow

LABELS = ["red", "green", "blue"]
COLUMNS = ["sample_1", "sample_2", "sample_3"]
JOINT = JointSampler(Simplex(LABELS), samples=3, epsilon=2.0)
AGREEMENT = Agreement.of(JOINT, rounds=2)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    write_secret(tmp_path / "secret")
    return tmp_path / "secret"


def table(clients: int = 200) -> pl.DataFrame:
    return pl.DataFrame({"who": np.repeat(np.arange(clients), 4), "what": ["red", "red", "red", "blue"] * clients})


def drawn(secret: Any = None, rows: Any = None, **more: Any) -> dict[Any, Any]:
    terms = {"agreement": AGREEMENT, "secret": secret, **more}
    found = sample(table() if rows is None else rows, client="who", value="what", **terms)
    assert found.schema.names == ["who", *COLUMNS, "agreement"]
    return {row["who"]: [row[name] for name in COLUMNS] for row in found.to_pylist()}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def kernel_and_lists(secret: Path, held: list[list[int]], sampler: JointSampler) -> tuple[Any, Any, Any]:
    request = Request(client="who", value="what", sampler=sampler, secret=read_secret(secret))
    job = request.job(table().schema)
    kind = {"outcomes": pl.List(pl.UInt32)}
    lists = pl.DataFrame({"client": range(len(held)), "outcomes": held}, schema_overrides=kind)
    return job, lists, clients_and_records_from_arrow(lists["client"].to_arrow(), lists["outcomes"].to_arrow(), None)


@pytest.mark.parametrize("around", ["envelope", "product"])
def test_draws_are_those_of_the_joint_sampler_with_the_keyed_integers(secret: Path, around: Any) -> None:
    """The first word picks the multiset as the integers of a release do; a client without records draws from the reference."""
    joint = JointSampler(Simplex(LABELS), samples=3, epsilon=2.0, around=around)
    held = [[0, 0, 0, 2], [1], [], [2, 0, 1]] * 50
    job, lists, columns = kernel_and_lists(secret, held, joint)
    numbers = Kernel(job).draw(columns).outcomes
    words = pseudo_random_word_rows(job.key, integer_laws_and_messages(3, columns, 0, len(held))[1])
    uniform = (words[:, 0] >> np.uint64(64 - BITS)).astype(np.int64)
    some = np.array([bool(each) for each in held])
    laws = np.array([np.bincount(each, minlength=3) / len(each) for each in held if each])
    assert numbers[some].tolist() == joint.numbers_of_integers(laws, uniform[some]).tolist()
    with pytest.warns(NotPrivateWarning):
        seeded = seeded_randomness(np.random.default_rng(7))
    with pytest.warns(NotPrivateWarning):
        released = joint.release_number(laws, rng=np.random.default_rng(7))
    assert joint.numbers_of_integers(laws, seeded.integers(len(laws))).tolist() == np.asarray(released).tolist()
    reference = np.broadcast_to(np.asarray(joint.reference, dtype=float), len(joint.multisets))
    rows = np.tile(reference / reference.sum(), (50, 1))
    assert numbers[~some].tolist() == outcomes(joint.lattice, rows, None, uniform[~some]).tolist()
    drawn_with = weights(joint.lattice, rows[:1], None)[0].astype(object)
    assert drawn_with.sum() == TOTAL
    assert (drawn_with >= joint.lattice.lower).all()
    assert (drawn_with <= joint.lattice.upper).all()
    with pytest.raises(DiscreetError, match="the kernel does not draw 3 samples of each client together"):
        Kernel(job)(lists.to_arrow().combine_chunks().to_batches()[0])
    records = Kernel(job).publish(lists["client"].to_arrow(), Kernel(job).draw(columns)).to_pylist()
    for row, record in enumerate(records):
        members = [LABELS[place] for place in joint.multisets.members[numbers[row]]]
        assert sorted(record[name] for name in COLUMNS) == sorted(members)


def test_a_client_draws_the_same_alone_and_among_others(secret: Path) -> None:
    held = [np.random.default_rng(row).integers(0, 3, 1 + row % 7).tolist() for row in range(120)]
    job, _, columns = kernel_and_lists(secret, held, JOINT)
    together = Kernel(job).draw(columns)
    uniform = np.random.default_rng(5).integers(0, TOTAL, 120)
    laws = np.array([np.bincount(each, minlength=3) / len(each) for each in held])
    alone = [JOINT.numbers_of_integers(laws[[row]], uniform[[row]])[0] for row in range(120)]
    assert JOINT.numbers_of_integers(laws, uniform).tolist() == alone
    assert (together.outcomes < len(JOINT.multisets)).all()
    for wrong in (uniform[:-1], uniform[:, None], uniform.tolist(), 3):
        with pytest.raises(DiscreetError, match="uniform does not hold one 64-bit integer for each client"):
            JOINT.numbers_of_integers(laws, wrong)  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="uniform does not hold"):
        JOINT.numbers_of_integers(None, 3)  # type: ignore[arg-type]


def test_every_order_of_the_members_is_as_likely(secret: Path) -> None:
    held = [[0, 1, 2]] * 6000
    job, _, columns = kernel_and_lists(secret, held, JOINT)
    kernel = Kernel(job)
    found = kernel.draw(columns)
    batch = kernel.publish(pl.Series(range(6000)).to_arrow(), found)
    rows = [tuple(row[name] for name in COLUMNS) for row in batch.to_pylist()]
    counts = np.array(list(Counter(row for row in rows if len(set(row)) == 3).values()))
    assert len(counts) == 6
    expected = counts.mean()
    assert ((counts - expected) ** 2).sum() / expected < 40  # chi-squared, 5 degrees: exceeded with probability 2e-7


def test_a_secret_gives_the_same_samples_again(secret: Path) -> None:
    rows = table(60)
    first = drawn(secret, rows)
    assert drawn(secret, rows.sample(fraction=1.0, shuffle=True, seed=3)) == first
    assert drawn(secret, rows, memory=1_000_000) == first
    assert drawn(secret, rows, round=2) != first
    with pytest.raises(DiscreetError, match="was released on other data"):
        drawn(secret, table(50))
    assert drawn(rows=rows) != drawn(rows=rows)  # every run is a release of its own
    assert set(drawn(rows=rows, clients=list(range(70)))) == set(range(70))


def test_a_ledger_charges_all_samples_of_a_client_once_and_keeps_their_order(secret: Path, tmp_path: Path) -> None:
    books = PopulationLedger.create(tmp_path / "books", budget=2.0, secret=read_secret(secret))
    first = drawn(ledger=books)
    assert drawn(ledger=books) == first
    assert drawn(ledger=books, rows=table().with_columns(what=pl.lit("green"))) == first
    with pytest.raises(BudgetError, match="200 of 200 clients would spend more"):
        drawn(ledger=books, round=2)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_the_command_writes_what_estimate_reads(secret: Path, tmp_path: Path, ending: str) -> None:
    AGREEMENT.write(tmp_path / "joint.json")
    table(400).write_parquet(tmp_path / "rows.parquet")
    out = tmp_path / f"out.{ending}"
    asked = ("sample", str(tmp_path / "rows.parquet"), "--client", "who", "--value", "what")
    terms = ("--agreement", str(tmp_path / "joint.json"), "--secret", str(secret), "-o", str(out))
    done = run(*asked, *terms)
    assert done.exit_code == 0, done.output
    assert "400 draws of 3 samples" in done.stderr
    assert "for all 3 of a client together" in " ".join(done.stderr.split())
    rows = drawn(secret, table(400))
    told = run("estimate", str(out), "--agreement", str(tmp_path / "joint.json"), "--json")
    assert told.exit_code == 0, told.output
    found, expected = json.loads(told.stdout), population(AGREEMENT, samples=list(rows.values()))
    assert found["samples"] == 1200
    for field in ("estimate", "low", "high"):
        assert [row["law"][field] for row in found["shares"]] == pytest.approx(getattr(expected.law, field).tolist())


def test_samples_without_their_clients_are_the_same_in_another_order(secret: Path) -> None:
    terms: dict[str, Any] = {"client": "who", "value": "what", "agreement": AGREEMENT, "secret": secret}
    alone = sample(table(), drop_client=True, **terms)
    assert alone.schema.names == [*COLUMNS, "agreement"]
    assert sorted(tuple(row[name] for name in COLUMNS) for row in alone.to_pylist()) == sorted(
        map(tuple, drawn(secret).values())
    )


def test_points_lie_in_cells_of_their_own() -> None:
    cells = JointSampler(Simplex(dc.Interval(0.0, 10.0, cells=5)), samples=2, epsilon=9.0)
    rows = pl.DataFrame({"who": np.arange(500), "what": np.full(500, 3.0)})
    found = sample(rows, client="who", value="what", sampler=cells)
    points = np.column_stack([found[name].to_numpy() for name in ("sample_1", "sample_2")])
    assert (points >= 0.0).all()
    assert (points <= 10.0).all()
    assert (points[:, 0] != points[:, 1]).all()
    assert ((points // 2).astype(int) == 1).mean() > 0.9


def unread() -> pa.RecordBatchReader:
    """A table whose rows must not be asked for."""

    def batches() -> Iterator[pa.RecordBatch]:
        raise AssertionError("rows were read")
        yield

    return pa.RecordBatchReader.from_batches(pa.schema({"who": pa.int64(), "what": pa.int64()}), batches())


def test_errors_come_before_anything_is_drawn_noted_or_written(secret: Path, tmp_path: Path) -> None:
    terms = json.loads(Agreement.of(JointSampler(Simplex(500), samples=2, epsilon=1.0)).text)
    large = Agreement.from_json(json.dumps({**terms, "joint": {"samples": 3, "around": "envelope"}}))
    with pytest.raises(DiscreetError, match="20,958,500 multisets; a joint draw allows at most 262,144"):
        sample(unread(), client="who", value="what", agreement=large, secret=secret)
    AGREEMENT.write(tmp_path / "joint.json")
    table().with_columns(what=pl.lit("pink")).write_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out.parquet"
    asked = ("sample", str(tmp_path / "rows.parquet"), "--client", "who", "--value", "what", "--secret", str(secret))
    done = run(*asked, "--agreement", str(tmp_path / "joint.json"), "-o", str(out))
    assert (done.exit_code, out.exists()) == (2, False)
    assert len(drawn(secret)) == 200  # the round was not noted
    larger = tmp_path / "large.json"
    terms = json.loads(AGREEMENT.text)
    larger.write_text(json.dumps({**terms, "joint": {"samples": 65, "around": "envelope"}}))
    assert run(*asked, "--agreement", str(larger), "-o", str(out)).exit_code == 2
    for option in (("--epsilon", "1"), ("--mechanism", "linear")):
        assert run(*asked, "--agreement", str(tmp_path / "joint.json"), "-o", str(out), *option).exit_code == 2
    assert not out.exists()
