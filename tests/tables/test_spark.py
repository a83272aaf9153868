"""The Spark engine, on a real Spark: the same samples as on one machine, whatever is retried, repeated or run twice.

One test runs all checks: starting a Java machine takes longer than they do, and tests are shared among processes.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.errors import ClientNameWarning, DiscreetError
from discreet.families import Tabulated
from discreet.ledger._book import forget_rounds_in_memory
from discreet.tables import Request, Secret, read_secret, sample
from discreet.tables._sources._opening import file_source
from tests.mechanism_packages import Install, write_package
from tests.soaking import wide
from tests.tables.small_tables import SECRET, by_client, rows
from tests.tables.test_survey_tables import survey, table as survey_table

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark's own sockets, closed when its process ends
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": 40, "epsilon": 3.0, "secret": SECRET}


@pytest.fixture
def spark() -> Iterator[Any]:
    """A session of two cores that tries a failed task a second time, and no more: each try of a refusal starts Python anew."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2, 2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # it does not live long
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def collected(frame: Any) -> dict[Any, Any]:
    found = [(row["client"], row["sample"]) for row in frame.collect()]
    assert len(dict(found)) == len(found)
    return dict(found)


def frame_of(spark: Any, table: dict[str, list[Any]], partitions: int = 5) -> Any:
    names = list(table)
    return spark.createDataFrame(list(zip(*table.values(), strict=True)), names).repartition(partitions)


def check_two_actions_a_failure_and_two_copies_at_once_agree(spark: Any, tmp_path: Path) -> None:
    """1,000 clients, twice at the same time; then with every partition failing once.

    (Spark runs speculative copies on another host only, so they are tried on a cluster of two, in `benchmarks.engines`.)
    """
    from discreet.tables import spark as engine

    table = rows(clients=1000, number=12_000)
    local = by_client(sample(pl.DataFrame(table), **TERMS))
    data = frame_of(spark, table)
    released = engine.sample(data, **TERMS)
    for _ in range(wide(2, 0)):
        assert collected(released) == local
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(collected, [released, released])) == [local, local]

    failing = _failing_once(tmp_path / "failed")
    again = engine.sample(data.mapInArrow(failing, data.schema), **TERMS)
    assert collected(again) == local
    assert len(list((tmp_path / "failed").iterdir())) >= 4, "tasks did fail"


def _failing_once(folder: Path) -> Callable[[Any], Any]:
    """Passes batches on, but fails each partition after its first batch, the first time."""
    folder.mkdir()

    def failing(batches: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        mark = folder / str(context.partitionId())
        for batch in batches:
            yield batch
            if not mark.exists():
                mark.touch()
                raise RuntimeError("injected")

    return failing


def check_a_source_that_changes_is_not_drawn_again(spark: Any, tmp_path: Path) -> None:
    """Under a secret, what is done with a released frame later reads the samples that were kept; and changed data are refused."""
    from discreet.tables import spark as engine

    path = str(tmp_path / "in.parquet")
    terms = {**TERMS, "rounds": 2}
    frame = pl.DataFrame(rows(clients=200, number=2000))
    for folder in wide((None, str(tmp_path / "checkpoints")), (str(tmp_path / "checkpoints"),)):
        forget_rounds_in_memory()
        frame.write_parquet(path)
        if folder is not None:
            spark.sparkContext.setCheckpointDir(folder)
        released = engine.sample(spark.read.parquet(path), **terms)
        before = collected(released)
        assert before == by_client(sample(frame, **terms))
        frame.with_columns(value=pl.lit(0)).write_parquet(path)
        spark.catalog.clearCache()
        assert collected(released) == before
        with pytest.raises(DiscreetError, match=r"was released on other data in column 'value'.*round=2 \(--round 2\)"):
            engine.sample(spark.read.parquet(path), **terms)
        assert collected(engine.sample(spark.read.parquet(path), **terms, round=2)).keys() == before.keys()


def check_the_layout_depends_on_clients_alone(spark: Any) -> None:
    """Partitions are drawn by the amount of data; those of the output are by client, however many records each has."""
    from pyspark.sql import functions as F

    from discreet.tables import spark as engine

    few = rows(clients=300, number=400)
    many = {name: values + values[:1] * 20_000 for name, values in few.items()}
    terms = {name: value for name, value in TERMS.items() if name != "secret"}
    layouts, before = [], spark.conf.get("spark.sql.shuffle.partitions")
    for table in (few, many):
        placed = engine.sample(frame_of(spark, table), **terms).select("client", F.spark_partition_id().alias("place"))
        layouts.append([(row["place"], row["client"]) for row in placed.collect()])
    assert layouts[0] == layouts[1]
    assert {place for place, _ in layouts[0]} == {0, 1}  # of a session with two cores
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def check_a_fresh_draw_each_time_would_be_noticed(spark: Any) -> None:
    """The check above can fail: without a secret, two calls are two releases."""
    from discreet.tables import spark as engine

    data = frame_of(spark, rows(clients=200, number=1000))
    terms = {**TERMS, "secret": None}
    once = engine.sample(data, **terms)
    assert collected(once) == collected(once)  # one call draws one key
    assert collected(once) != collected(engine.sample(data, **terms))


def check_sums_over_other_partitions_are_the_same_law(spark: Any) -> None:
    """Spark's sum(double) depends on its partitions in the last bits; no sample does, nor on whether Spark or the engine adds."""
    from pyspark.sql import functions as F

    from discreet.tables import spark as engine

    rng = np.random.default_rng(4)
    table = rows(clients=1000, number=24_000, outcomes=5)
    data = frame_of(spark, {**table, "w": rng.gamma(2.0, 0.1, 24_000).tolist()}, partitions=1)
    terms = {**TERMS, "weight": "w"}
    expected = collected(engine.sample(data, **terms))
    sums = []
    for partitions in (2, 7):
        mixed = data.repartition(partitions, F.rand(partitions))
        totals = mixed.groupBy("client", "value").agg(F.sum("w").alias("w")).localCheckpoint()
        sums.append({(row["client"], row["value"]): row["w"] for row in totals.collect()})
        assert collected(engine.sample(totals, **terms)) == expected
    assert sums[0] != sums[1], "the noise is there"
    assert collected(engine.sample(data.withColumn("w", F.col("w") * 3), **terms)) == expected


def check_every_option_gives_what_one_machine_gives(spark: Any) -> None:
    from discreet.tables import spark as engine

    table = rows(clients=120, number=2000)
    names = [f"c{client}" for client in table["client"]]
    levels = [value / 10 for value in table["value"]]
    counts = [1 + place % 3 for place in range(2000)]
    whole = pl.DataFrame({"client": names, "value": table["value"], "level": levels, "n": counts})
    data = spark.createDataFrame(list(whole.iter_rows()), whole.columns).repartition(3)
    listed = [f"c{client}" for client in range(150)]
    list_frame = spark.createDataFrame([(name,) for name in listed], ["client"])
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"count": "n", "mechanism": "linear"}, {}),
        ({"domain": 20, "other": 7, "weight": "n"}, {}),
        ({"value": "level", "domain": dc.Interval(0.0, 4.0, cells=16)}, {}),
        ({"purpose": "with a list"}, {"clients": True}),
        ({"count": "n", "rounds": 2, "round": 2}, {"clients": True}),
    ]
    for terms, extra in wide(cases, cases[1::3]):
        local = sample(whole, **{**TERMS, **terms}, clients=listed if extra else None)
        far = engine.sample(data, **{**TERMS, **terms}, clients=list_frame if extra else None)
        assert collected(far) == by_client(local)
    reference = dc.Band(1.0 + np.arange(40) ** 3, lower=0.0, upper=4.0, any_client=True)
    designed: dict[str, Any] = {
        "agreement": dc.Agreement.of(dc.OptimalSampler(reference, epsilon=2.0)),
        "secret": SECRET,
    }
    far = engine.sample(data, client="client", value="value", clients=list_frame, **designed)
    assert collected(far) == by_client(sample(whole, client="client", value="value", clients=listed, **designed))
    lists = data.groupBy("client").agg({"value": "collect_list"}).withColumnRenamed("collect_list(value)", "value")
    assert collected(engine.sample(lists, **TERMS)) == by_client(sample(whole, **TERMS))
    dropped = engine.sample(data, **TERMS, drop_client=True)
    assert dropped.columns == ["sample", "agreement"]
    local_order = sample(whole, **TERMS, drop_client=True).column("sample").to_pylist()
    assert sorted(row["sample"] for row in dropped.collect()) == sorted(local_order)


def check_cells_of_a_line_are_what_one_machine_gives(spark: Any, tmp_path: Path) -> None:
    """Continuous families: the same cell and the same point of it, to the last bit, and the agreement travels along."""
    from discreet.tables import spark as engine

    rng = np.random.default_rng(5)
    values = rng.normal(0.3, 1.0, 2000).clip(-3.9, 3.9)
    whole = pl.DataFrame({"client": rng.integers(0, 90, 2000), "value": values, "n": rng.integers(1, 4, 2000)})
    data = spark.createDataFrame(whole.rows(), whole.columns).repartition(3)
    listed = list(range(100))
    list_frame = spark.createDataFrame([(number,) for number in listed], ["client"])
    table = Tabulated(np.linspace(-4.0, 4.0, 33), 1.0 + np.arange(32.0) % 5)
    samplers: list[dc.Sampler[Any]] = [
        dc.OptimalSampler(dc.GaussianMixtures(1, box=(-4.0, 4.0)), epsilon=2.0, discretisation=dc.Cells(30)),
        dc.OptimalSampler(dc.LaplaceMixtures(1), epsilon=1.0, discretisation=dc.Cells(64)),
        dc.MollifierSampler(dc.DensityBand(table, lower=0.0, upper=3.0), epsilon=3.0, discretisation=dc.Cells(20)),
        dc.MollifierSampler(
            dc.GaussianMixtures(1, box=(-4.0, 4.0)), epsilon=3.0, discretisation=dc.Cells(20), reference=table
        ),
    ]
    for sampler in wide(samplers, samplers[::3]):
        terms: dict[str, Any] = {"client": "client", "value": "value", "count": "n", "secret": SECRET}
        agreement = dc.Agreement.from_json(dc.Agreement.of(sampler).text)
        local = sample(whole, **terms, agreement=agreement, clients=listed)
        far = engine.sample(data, **terms, agreement=agreement, clients=list_frame)
        found = collected(far)
        assert found == by_client(local)
        assert len(found) == 100
    path = str(tmp_path / "samples.parquet")
    far.write.parquet(path)
    carried = file_source(path).agreement
    assert carried is not None
    assert dc.Agreement.from_json(carried).sampler() == samplers[-1]


def check_reports_on_a_survey_are_those_of_one_machine(spark: Any) -> None:
    """Several columns, with more than 2^32 different rows; clients of a list without rows too."""
    from discreet.tables import spark as engine

    whole = survey_table(600, 120)
    data = spark.createDataFrame(whole.rows(), whole.columns).repartition(3)
    listed = [f"c{number}" for number in range(140)]
    list_frame = spark.createDataFrame([(name,) for name in listed], ["client"])
    for more in wide(({}, {"count": "n"}), ({"count": "n"},)):
        terms: dict[str, Any] = {"client": "client", "survey": survey(), "epsilon": 1.0, "secret": SECRET, **more}
        local = sample(whole, **terms, clients=listed)
        forget_rounds_in_memory()
        far = engine.sample(data, **terms, clients=list_frame)
        reports = {row["client"]: int(row["report"]) for row in far.collect()}
        assert reports == dict(zip(local["client"].to_pylist(), local["report"].to_pylist(), strict=True))
        forget_rounds_in_memory()


def check_reports_are_those_of_one_machine(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every family of blocks, past 2^63 too; written and estimated as the local engine's."""
    from discreet.cli._app import app
    from discreet.tables import spark as engine

    rng, who = np.random.default_rng(6), np.arange(1500) % 400
    listed = list(range(450))
    list_frame = spark.createDataFrame([(number,) for number in listed], ["client"])
    for size, epsilon in wide(((64, 0.5), (104, 4.0), (20_000, 1.0), (20, 6.0)), ((64, 0.5), (20_000, 1.0))):
        whole = pl.DataFrame({"client": who, "value": rng.integers(0, size, 1500), "n": rng.integers(1, 4, 1500)})
        data = spark.createDataFrame(whole.rows(), whole.columns).repartition(3)
        terms: dict[str, Any] = {"client": "client", "value": "value", "count": "n", "secret": SECRET}
        terms |= {"sampler": dc.ReportSampler(dc.Simplex(size), epsilon=epsilon)}
        local = sample(whole, **terms, clients=listed)
        forget_rounds_in_memory()
        far = engine.sample(data, **terms, clients=list_frame)
        assert far.columns == ["client", "report", "agreement"]
        reports = {row["client"]: int(row["report"]) for row in far.collect()}
        assert reports == dict(zip(local["client"].to_pylist(), local["report"].to_pylist(), strict=True))
        assert size != 64 or max(reports.values()) >= 1 << 63
        if size == 64:
            dropped = engine.sample(data, **terms, clients=list_frame, drop_client=True)
            assert dropped.columns == ["report", "agreement"]
            assert sorted(int(row["report"]) for row in dropped.collect()) == sorted(reports.values())
            monkeypatch.chdir(tmp_path)
            whole.write_parquet("in.parquet")
            dc.Agreement.of(terms["sampler"]).write("a.json")
            told = []
            for where, output in (("local", "l.parquet"), *wide([("spark", "s.csv")], []), ("spark", "s.parquet")):
                assert CliRunner().invoke(app, ["secret", f"secret of {output}"]).exit_code == 0
                Path(f"secret of {output}").write_bytes(Path("secret of l.parquet").read_bytes())
                asked = ["--client", "client", "--value", "value", "--count", "n", "--agreement", "a.json"]
                asked += ["--engine", where, "--secret", f"secret of {output}", "-o", output]
                released = CliRunner().invoke(app, ["sample", "in.parquet", *asked])
                assert released.exit_code == 0, released.output
                assert f"400 reports to {output}" in released.stderr
                found = CliRunner().invoke(app, ["estimate", output, "--agreement", "a.json", "--json"])
                assert found.exit_code == 0, found.output
                told.append({**json.loads(found.stdout), "source": None})
            assert all(each["shares"] == told[0]["shares"] for each in told)
        forget_rounds_in_memory()


def check_samples_drawn_together_are_those_of_one_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By frame and by file, with clients without records; two actions without a secret agree."""
    from discreet.cli._app import app
    from discreet.tables import spark as engine

    rng = np.random.default_rng(8)
    whole = pl.DataFrame({"client": np.arange(1500) % 400, "value": rng.integers(0, 5, 1500)})
    data = spark.createDataFrame(whole.rows(), whole.columns).repartition(3)
    listed = list(range(450))
    list_frame = spark.createDataFrame([(number,) for number in listed], ["client"])
    agreed = dc.Agreement.of(dc.JointSampler(dc.Simplex(5), samples=3, epsilon=4.0))
    terms: dict[str, Any] = {"client": "client", "value": "value", "agreement": agreed}
    local = sample(whole, **terms, secret=SECRET, clients=listed)
    forget_rounds_in_memory()
    far = engine.sample(data, **terms, secret=SECRET, clients=list_frame)
    assert far.columns == local.schema.names == ["client", "sample_1", "sample_2", "sample_3", "agreement"]
    assert sorted(map(tuple, far.collect())) == sorted(pl.DataFrame(local).cast({"agreement": pl.String}).rows())
    fresh = engine.sample(data, **terms, drop_client=True)
    assert fresh.columns == ["sample_1", "sample_2", "sample_3", "agreement"]
    assert fresh.collect() == fresh.collect()
    monkeypatch.chdir(tmp_path)
    whole.write_parquet("in.parquet")
    agreed.write("a.json")
    told = []
    assert CliRunner().invoke(app, ["secret", "secret of local"]).exit_code == 0
    Path("secret of spark").write_bytes(Path("secret of local").read_bytes())
    Path("secret of spark").chmod(0o600)
    for where in ("local", "spark"):
        asked = ["--client", "client", "--value", "value", "--agreement", "a.json", "--engine", where]
        output = ["--secret", f"secret of {where}", "-o", f"{where}.parquet"]
        released = CliRunner().invoke(app, ["sample", "in.parquet", *asked, *output])
        assert released.exit_code == 0, released.output
        found = CliRunner().invoke(app, ["estimate", f"{where}.parquet", "--agreement", "a.json", "--json"])
        assert found.exit_code == 0, found.output
        told.append(json.loads(found.stdout)["shares"])
    assert told[0] == told[1]


def check_names_of_columns_are_no_expressions(spark: Any, folder: Path) -> None:
    """A dot is not a field of a struct, a star is not all columns, and a backtick is a backtick."""
    from discreet.tables import spark as engine

    terms = {**TERMS, "client": "a.b`*", "value": "*", "count": "^.*$"}
    table = pl.DataFrame({"a.b`*": ["x", "y"], "*": [3, 4], "^.*$": [1, 2]})
    frame = spark.createDataFrame(table.rows(), "`a.b``*` string, `*` bigint, `^.*$` bigint")
    listed = spark.createDataFrame([("x",), ("y",), ("z",)], "`a.b``*` string")
    found = {row["a.b`*"]: row["sample"] for row in engine.sample(frame, **terms, clients=listed).collect()}
    local = sample(table, **terms, clients=["x", "y", "z"])
    assert found == dict(zip(local["a.b`*"].to_pylist(), local["sample"].to_pylist(), strict=True))
    table.write_parquet(folder / "in.parquet")
    output = folder / "out.csv"
    engine.sample_files(str(folder / "in.parquet"), str(output), Request(**{**terms, "secret": None}))
    assert pl.read_csv(output / "*.csv").columns == ["a.b`*", "sample", "agreement"]


def check_decimals_are_numbers_of_an_interval(spark: Any) -> None:
    from discreet.tables import spark as engine

    terms = {**TERMS, "domain": dc.Interval(0.0, 2.0, cells=4)}
    table = pl.DataFrame({"client": [1, 2], "value": ["1.50", "0.25"]}).cast({"value": pl.Decimal(10, 2)})
    frame = spark.createDataFrame(table.rows(), "client bigint, value decimal(10, 2)")
    assert collected(engine.sample(frame, **terms)) == by_client(sample(table, **terms))


def check_names_of_clients_are_read_as_on_one_machine(spark: Any) -> None:
    """Whole floats are integers; no cast makes a client of what is none, in the table or in the list."""
    from discreet.tables import spark as engine

    data = {"client": [1, 2, 1], "value": [3, 4, 5]}
    whole = by_client(sample(pl.DataFrame(data), **TERMS, clients=[1, 2, 3]))
    pairs = list(zip(data["client"], data["value"], strict=True))
    frame = spark.createDataFrame(pairs, "client: bigint, value: bigint")
    for kind in wide(("double", "float"), ("float",)):
        floats = spark.createDataFrame([(float(who), what) for who, what in pairs], f"client: {kind}, value: bigint")
        listed = spark.createDataFrame([(1.0,), (2.0,), (3.0,)], f"client: {kind}")
        with pytest.warns(ClientNameWarning, match="floats"):
            assert collected(engine.sample(floats, **TERMS, clients=listed)) == whole
    for astray in wide((1.5, float("nan"), float("inf"), 2.0**53), (1.5, 2.0**53)):
        floats = spark.createDataFrame([(astray, 1)], "client: double, value: bigint")
        with pytest.warns(ClientNameWarning), pytest.raises(DiscreetError, match="floats that name no client"):
            engine.sample(floats, **TERMS)
        listed = spark.createDataFrame([(1.0,), (2.0,), (astray,)], "client: double")
        with pytest.warns(ClientNameWarning), pytest.raises(DiscreetError, match="floats that are no integers"):
            engine.sample(frame, **TERMS, clients=listed)
    for kind, value in (("boolean", True), ("string", "1")):
        listed = spark.createDataFrame([(value,)], f"client: {kind}")
        with pytest.raises(DiscreetError, match=r"clients are texts or integers|holds texts but the clients"):
            engine.sample(frame, **TERMS, clients=listed)


def check_many_small_batches_cut_clients_in_two(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that straddle what is combined or drawn at a time are still one client."""
    from discreet.tables import _spark_tasks as tasks, spark as engine

    table = rows(clients=50, number=3000)
    data = frame_of(spark, table, partitions=1)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        combine, draw = tasks.make_record_combiner, tasks.make_sample_drawer

        def small(make: Any) -> Any:
            def made(*arguments: Any) -> Any:
                inner = make(*arguments)

                def run(batches: Any) -> Any:
                    from discreet.tables import _spark_tasks as there

                    there.READ_AT_ONCE, there._COMBINED, there._DRAWN_AT_ONCE = 5, 100, 20
                    yield from inner(batches)

                return run

            return made

        monkeypatch.setattr(engine, "make_record_combiner", small(combine))
        monkeypatch.setattr(engine, "make_sample_drawer", small(draw))
        assert collected(engine.sample(data, **TERMS)) == by_client(sample(pl.DataFrame(table), **TERMS))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def check_errors_of_tasks_are_told_in_one_line(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.cli._app import app
    from discreet.tables import spark as engine

    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"client": [1, 2], "value": [0, 99]}).write_parquet("bad.parquet")
    pl.DataFrame({"client": [1, 2], "value": [0, 1]}).write_parquet("good.parquet")
    base = ["--client", "client", "--value", "value", "--epsilon", "1", "--domain-size", "3", "--engine", "spark"]

    def told(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["sample", *arguments, *base])
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1
        return result.stderr

    assert "outside the domain (1 in " in told("bad.parquet", "-o", "out.parquet")
    spark.range(0, 1000).selectExpr("id AS client", "id % 50 AS value").repartition(7).write.parquet(
        str(tmp_path / "many.parquet")
    )
    assert "outside the domain (940 in 1,000 rows" in told(
        "many.parquet", "-o", "out.parquet"
    )  # whichever task is first
    shutil.rmtree("many.parquet")
    assert "such as 99" in told("bad.parquet", "-o", "out.parquet", "--show-values")
    Path("bad.csv").write_text("client,value\n1,0\n")
    assert "reads Parquet, not" in told("bad.csv", "-o", "out.parquet")
    assert "PATH_NOT_FOUND" in told("nowhere.parquet", "-o", "out.parquet")
    assert "no Arrow files" in told("good.parquet", "-o", "out.arrow")
    Path("there.parquet").mkdir()
    assert "exists" in told("good.parquet", "-o", "there.parquet")
    assert {path.name for path in tmp_path.iterdir()} <= {"bad.csv", "bad.parquet", "good.parquet", "there.parquet"}
    with pytest.raises(DiscreetError, match="column 'who' is not in the data frame"):
        engine.sample(spark.createDataFrame([(1, 2)], ["client", "value"]), **{**TERMS, "client": "who"})
    pair = spark.createDataFrame([(1, 2)], ["client", "value"])
    phantom = spark.createDataFrame([(1,), (None,)], "client: bigint")
    with pytest.raises(Exception, match="list of clients holds nulls"):
        engine.sample(pair, **TERMS, clients=phantom).collect()
    with pytest.raises(DiscreetError, match="not in the list of clients"):
        engine.sample(
            spark.createDataFrame([(1, 2)], ["client", "value"]), **TERMS, clients=spark.createDataFrame([(1,)], ["c"])
        )


def check_files_that_drift_are_read_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    """Narrow integers first, a dictionary, another order, partition keys; a missing column is named with its file, not read as nulls."""
    from discreet.tables import spark as engine

    first, second = pa.table(rows(seed=1)), pa.table(rows(seed=2))
    narrow = first.set_column(0, "client", first["client"].cast(pa.int32())).append_column("more", first["value"])
    for month, given in (("01", narrow), ("02", second.select(["value", "client"]))):
        path = tmp_path / "in" / f"month={month}" / "0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(given, path)
    source = str(tmp_path / "in")
    asked: list[dict[str, Any]] = [
        {},
        {"value": "month", "domain": ["01", "02", "03"]},
        {"value": "month", "domain": 4},
        {"client": ["client", "month"]},
    ]
    for place, terms in enumerate(wide(asked, asked[::3])):
        forget_rounds_in_memory()
        local = by_client(sample(source, **{**TERMS, **terms}))
        output = tmp_path / f"{place}.parquet"
        summary = engine.sample_files(source, str(output), Request(**{**TERMS, **terms}))
        assert summary.rows == 8000
        found = pl.read_parquet(output / "*.parquet")
        assert dict(zip(found["client"].to_list(), found["sample"].to_list(), strict=True)) == local
    pq.write_table(second.drop_columns("value"), tmp_path / "in" / "month=02" / "1.parquet")
    with pytest.raises(DiscreetError, match=r"1\.parquet has no column 'value'"):
        engine.sample_files(source, str(tmp_path / "no.parquet"), Request(**TERMS, nulls="drop"))
    pq.write_table(second.append_column("month", second["value"]), tmp_path / "in" / "month=02" / "1.parquet")
    with pytest.raises(DiscreetError, match=r"column 'month'"):
        engine.sample_files(source, str(tmp_path / "no.parquet"), Request(**{**TERMS, **asked[1]}))


def check_clients_without_records_are_counted(spark: Any, folder: Path) -> None:
    """Those whose counts are all 0, and those of the list that have no rows."""
    from discreet.tables import spark as engine

    pl.DataFrame({"client": list("aabbc"), "value": [0, 1, 2, 2, 3], "n": [0, 0, 0, 1, 0]}).write_parquet(
        folder / "in.parquet"
    )
    pl.DataFrame({"client": list("abcd")}).write_csv(folder / "list.csv")
    request = Request(client="client", value="value", domain=4, epsilon=1.0, count="n")
    for name, clients, expected in (("all", None, (2, 3)), ("listed", str(folder / "list.csv"), (3, 4))):
        output = str(folder / f"{name}.parquet")
        summary = engine.sample_files(str(folder / "in.parquet"), output, request, clients=clients)
        assert (summary.without_records, summary.clients) == expected


def check_a_job_on_files_limits_batches_by_rows_alone(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit in bytes is off while a job on files runs. It stays where somebody set it, and where rows do not bound memory."""
    from discreet.tables import spark as engine

    limit, usual = engine._BATCH_BYTES, spark.conf.get(engine._BATCH_BYTES)
    write, seen = engine._write_release_folder, list[str]()

    def write_and_note_limit(*given: Any) -> None:
        seen.append(spark.conf.get(limit))
        write(*given)
        raise DiscreetError("the disk is full")

    monkeypatch.setattr(engine, "_write_release_folder", write_and_note_limit)
    pq.write_table(pa.table(rows(clients=20, number=50)), tmp_path / "in.parquet")
    terms = {name: value for name, value in TERMS.items() if name != "secret"}
    with pytest.raises(DiscreetError, match="the disk is full"):
        engine.sample_files(str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet"), Request(**terms))
    assert seen == [str(2**31 - 1)]
    assert seen != [usual]

    def limit_during_job(columns: str) -> str:
        with engine._without_byte_limit_of_batches(spark.createDataFrame([], columns)):
            return str(spark.conf.get(limit))

    assert limit_during_job("client long, value string") == seen[0]
    assert spark.conf.get(limit) == usual
    assert limit not in spark.conf.getAll
    assert limit_during_job("client long, value array<int>") == usual
    for name, value in ((limit, usual), (engine._BATCH_ROWS, "0"), (engine._PARTITIONS_BY_SIZE[1], "false")):
        spark.conf.set(name, value)
        assert limit_during_job("client long, value long") == usual, name
        spark.conf.unset(name)
    assert limit_during_job("client long, value long") == seen[0]


def check_tasks_read_files_as_spark_does(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose columns both read alike are read in the tasks, by row groups; others go through Spark."""
    from discreet.tables import spark as engine

    number_parts, seen = engine._make_part_numbers_frame_and_reader, list[int]()

    def note_parts(*given: Any) -> Any:
        numbers, reader = number_parts(*given)
        seen.append(numbers.count())
        return numbers, reader

    monkeypatch.setattr(engine, "_make_part_numbers_frame_and_reader", note_parts)
    table = pa.table(rows(clients=90, number=6000))
    days = pa.array(np.datetime64("2026-01-01") + np.arange(6000) % 7)
    cases: list[tuple[pa.Table, dict[str, Any], int]] = [
        (table, {}, 2),
        (table.set_column(1, "value", table["value"].cast(pa.int16())), {}, 2),
        (table.set_column(1, "value", table["value"].cast(pa.float32())), {"domain": dc.Interval(0, 40, cells=8)}, 2),
        (table.set_column(1, "value", table["value"].cast(pa.string())), {"domain": [str(n) for n in range(40)]}, 2),
        (table.set_column(1, "value", days), {"domain": dc.Labels.days("2026-01-01", "2026-01-07")}, 0),
        (table.slice(0, 0), {}, 1),
    ]
    for place, (content, terms, parts) in enumerate(wide(cases, cases[::2])):
        forget_rounds_in_memory()
        folder = tmp_path / f"in{place}"
        folder.mkdir()
        pq.write_table(content.slice(0, 2500), folder / "1.parquet", row_group_size=400)
        pq.write_table(content.slice(2500), folder / "2.parquet", row_group_size=700)
        seen.clear()
        request = {**TERMS, "secret": Secret(bytes([place]) * 32), **terms}
        summary = engine.sample_files(str(folder), str(tmp_path / f"out{place}.parquet"), Request(**request))
        assert (summary.rows, seen) == (content.num_rows, [parts] if parts else [])
        found = pl.read_parquet(tmp_path / f"out{place}.parquet" / "*.parquet")
        if content.num_rows:
            forget_rounds_in_memory()
            assert dict(zip(found["client"].to_list(), found["sample"].to_list(), strict=True)) == by_client(
                sample(str(folder), **request)
            )


def check_the_command_on_spark_writes_what_the_local_one_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.cli._app import app
    from discreet.tables.spark import sample as spark_sample

    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(rows(clients=60, number=500)).with_columns(pl.col("client").cast(pl.String))
    frame.write_parquet("in.parquet")
    Path("all.txt").write_text("\n".join(str(client) for client in range(70)) + "\n")
    assert CliRunner().invoke(app, ["secret", "s"]).exit_code == 0
    base = [
        "--client",
        "client",
        "--value",
        "value",
        "--epsilon",
        "1",
        "--domain-size",
        "40",
        "--secret",
        "s",
        "--clients",
        "all.txt",
    ]
    for engine, source, output in (
        ("local", "in.parquet", "a.parquet"),
        ("spark", "in.parquet", "b.parquet"),
        ("spark", "in.parquet", "c.csv"),
    ):
        written = ["--write-agreement", "agreement.json"]  # the same each time, so all but the first find it there
        result = CliRunner().invoke(app, ["sample", source, "-o", output, "--engine", engine, *base, *written])
        assert result.exit_code == 0, result.output
        assert f"70 samples to {output}, 1-LDP each" in result.stderr
        assert "read 500 rows of 60 clients" in result.stderr
    a = pl.read_parquet("a.parquet").select("client", "sample").sort("client")
    b = pl.read_parquet("b.parquet/*.parquet").select("client", "sample").sort("client")
    c = pl.read_csv("c.csv/*.csv", schema_overrides={"client": pl.String}).select("client", "sample").sort("client")
    assert a.equals(b)
    assert a.equals(c)
    agreed = dc.Agreement.read("agreement.json")
    for folder in ("b.parquet", "c.csv"):
        carried = file_source(folder).agreement
        assert carried is not None, folder
        assert dc.Agreement.from_json(carried).id == agreed.id
    assert pl.read_parquet("b.parquet/*.parquet")["agreement"].unique().to_list() == [agreed.id]
    named: dict[str, Any] = {"client": "client", "value": "value", "secret": read_secret("s"), "agreement": agreed}
    data = spark.read.parquet(str(tmp_path / "in.parquet"))
    everybody = spark.createDataFrame([(str(client),) for client in range(70)], ["client"])
    assert collected(spark_sample(data, **named, clients=everybody)) == dict(a.iter_rows())
    with pytest.raises(DiscreetError, match="was released on other data in column 'value'"):
        spark_sample(data, **named)
    frame.with_columns(value=pl.lit(0)).write_parquet("changed.parquet")
    changed = CliRunner().invoke(app, ["sample", "changed.parquet", "-o", "e.parquet", "--engine", "spark", *base])
    assert "was released on other data" in changed.stderr
    assert not Path("e.parquet").exists()
    other = ["--epsilon", "2", "--write-agreement", "agreement.json", "--engine", "spark"]
    refused = CliRunner().invoke(app, ["sample", "in.parquet", "-o", "d.parquet", *base, *other])
    assert f"holds agreement {agreed.id}" in refused.stderr
    assert not Path("d.parquet").exists()
    assert not list(tmp_path.glob(".*partial"))


def check_own_mechanisms_are_installed_on_workers_and_drawn_once(spark: Any, folder: Path, install: Install) -> None:
    """Without the package on the workers nothing is drawn or noted; with it samples are those of one machine.

    A law that answers otherwise each time is asked once: two actions on a frame agree, although nothing fixes the answer.
    """
    from discreet.tables import spark as engine

    table = rows(clients=300, number=2_000)
    terms: dict[str, Any] = {"client": "client", "value": "value"}
    kind: Any = install(target="obscurity:Forgetful")
    steady, forgetful = (dc.Agreement.of(kind(dc.Simplex(40), epsilon=6.0, spread=spread)) for spread in (0.5, 1.0))
    with pytest.raises(DiscreetError, match=r"a worker cannot draw .* install obscurity==1\.2 \(on every worker"):
        engine.sample(frame_of(spark, table), agreement=steady, secret=SECRET, **terms)
    site = write_package(folder / "site", target="obscurity:Forgetful")
    spark.sparkContext.addPyFile(shutil.make_archive(str(folder / "obscurity"), "zip", site))
    released = engine.sample(frame_of(spark, table), agreement=steady, secret=SECRET, **terms)
    assert collected(released) == by_client(sample(pl.DataFrame(table), agreement=steady, secret=SECRET, **terms))
    released = engine.sample(frame_of(spark, table), agreement=forgetful, **terms)
    assert collected(released) == collected(released)


@pytest.mark.slow
@pytest.mark.long
def test_spark(spark: Any, tmp_path: Path, install: Install) -> None:
    """All of the above."""
    check_own_mechanisms_are_installed_on_workers_and_drawn_once(spark, made(tmp_path / "own"), install)
    forget_rounds_in_memory()
    check_two_actions_a_failure_and_two_copies_at_once_agree(spark, made(tmp_path / "retries"))
    check_a_source_that_changes_is_not_drawn_again(spark, made(tmp_path / "changes"))
    forget_rounds_in_memory()  # each check stands for a process of its own
    check_a_fresh_draw_each_time_would_be_noticed(spark)
    check_the_layout_depends_on_clients_alone(spark)
    check_every_option_gives_what_one_machine_gives(spark)
    forget_rounds_in_memory()
    check_cells_of_a_line_are_what_one_machine_gives(spark, made(tmp_path / "cells"))
    forget_rounds_in_memory()
    check_reports_on_a_survey_are_those_of_one_machine(spark)
    with pytest.MonkeyPatch.context() as patch:
        check_reports_are_those_of_one_machine(spark, made(tmp_path / "reports"), patch)
    forget_rounds_in_memory()
    with pytest.MonkeyPatch.context() as patch:
        check_samples_drawn_together_are_those_of_one_machine(spark, made(tmp_path / "joint"), patch)
    forget_rounds_in_memory()
    check_sums_over_other_partitions_are_the_same_law(spark)
    forget_rounds_in_memory()
    check_names_of_clients_are_read_as_on_one_machine(spark)
    forget_rounds_in_memory()
    check_names_of_columns_are_no_expressions(spark, made(tmp_path / "names"))
    check_decimals_are_numbers_of_an_interval(spark)
    check_clients_without_records_are_counted(spark, made(tmp_path / "without"))
    check_files_that_drift_are_read_as_on_one_machine(spark, made(tmp_path / "drift"))
    forget_rounds_in_memory()
    with pytest.MonkeyPatch.context() as patch:
        check_many_small_batches_cut_clients_in_two(spark, patch)
    with pytest.MonkeyPatch.context() as patch:
        check_a_job_on_files_limits_batches_by_rows_alone(spark, made(tmp_path / "limits"), patch)
    with pytest.MonkeyPatch.context() as patch:
        check_tasks_read_files_as_spark_does(spark, made(tmp_path / "files"), patch)
    with pytest.MonkeyPatch.context() as patch:
        check_errors_of_tasks_are_told_in_one_line(spark, made(tmp_path / "errors"), patch)
    with pytest.MonkeyPatch.context() as patch:
        check_the_command_on_spark_writes_what_the_local_one_does(spark, made(tmp_path / "command"), patch)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
