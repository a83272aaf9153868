"""Spark, in a process of its own: fresh actions on two local cores; and retries, on a cluster of two hosts on this machine.

`python -m benchmarks.engine_parts.on_spark speed PARQUET` and `... retries`, each printing a JSON object.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.engine_parts.data import OUTCOMES
from benchmarks.engine_parts.processes import tree_seconds
from discreet.tables import Request, Secret, sample

TERMS: dict[str, Any] = {
    "client": "client",
    "value": "value",
    "domain": OUTCOMES,
    "epsilon": 2.0,
    "secret": Secret(bytes(32)),
}
FEW, TIMES = 1000, 8
OWN_QUERY, OWN_QUERY_OF_FEW = "own query, not private", f"own query on {FEW:,} rows"
_BYTE_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
MASTER = "spark://127.0.0.1:17077"


def session(master: str, **settings: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("benchmark").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "3g")
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def speed(source: str) -> dict[str, Any]:
    """Seconds and processor seconds of actions on two cores, in turns. Each is new: a second action on a frame is served from shuffle files.

    Spark has its usual number of shuffle partitions.
    """
    from discreet.tables import spark

    made = session("local[2]")
    terms = {name: value for name, value in TERMS.items() if name != "secret"}
    rows = made.read.parquet(source)
    few = made.createDataFrame([(n % 200, n * n % 37) for n in range(FEW)], "client long, value long")
    with tempfile.TemporaryDirectory() as folder:
        actions: dict[str, Callable[[], object]] = {
            OWN_QUERY: lambda: _not_private(rows).write.mode("overwrite").parquet(f"{folder}/plain"),
            "one private row per client": lambda: (
                spark.sample(rows, **terms).write.mode("overwrite").parquet(f"{folder}/out")
            ),
            "the same, batches without a limit in bytes": lambda: _without_byte_limit(
                made, lambda: spark.sample(rows, **terms).write.mode("overwrite").parquet(f"{folder}/out")
            ),
            "the command's job, from files to files": lambda: spark.sample_files(
                source, f"{folder}/{secrets.token_hex(4)}.parquet", Request(**terms)
            ),
            "passing the rows to Python": lambda: rows.mapInArrow(_counted, "n long").collect(),
            OWN_QUERY_OF_FEW: lambda: _not_private(few).write.mode("overwrite").parquet(f"{folder}/plain few"),
            f"one private row per client of {FEW:,} rows": lambda: (
                spark.sample(few, **terms).write.mode("overwrite").parquet(f"{folder}/few")
            ),
        }
        first = _timed(actions["one private row per client"])
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in actions}
        for _ in range(TIMES):
            for name, action in actions.items():
                runs[name].append(_timed(action))
        spark.sample(rows, **TERMS).write.mode("overwrite").parquet(f"{folder}/out")
        found = pl.read_parquet(f"{folder}/out/*.parquet").select("client", "sample").sort("client")
    made.stop()
    runs["the first release of the session"] = [first]
    runs["local engine"] = [_timed(lambda: sample(source, **TERMS)) for _ in range(TIMES)]
    same = pl.DataFrame(sample(source, **TERMS)).select("client", "sample").sort("client").equals(found)
    least = {name: tuple(min(run[part] for run in each) for part in (0, 1)) for name, each in runs.items()}
    return {**least, "same": same}


def _not_private(rows: Any) -> Any:
    """One random value for each client that is NOT private, by Spark alone."""
    from pyspark.sql import functions as F

    return rows.withColumn("u", F.rand()).groupBy("client").agg(F.max_by("value", "u").alias("sample"))


def _without_byte_limit(made: Any, action: Callable[[], object]) -> None:
    """An action in a session in which Spark does not compute the size of a batch after every row that it adds."""
    made.conf.set(_BYTE_LIMIT, str(2**31 - 1))
    action()
    made.conf.unset(_BYTE_LIMIT)


def _counted(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and those of all processors in this process and those below it: Spark's own, and its Python workers."""
    start, busy = time.perf_counter(), tree_seconds(os.getpid())
    work()
    return time.perf_counter() - start, tree_seconds(os.getpid()) - busy


def retries() -> dict[str, Any]:
    """1,000 clients: two actions, every task failing once, and a straggler of which Spark starts a second copy elsewhere."""
    from discreet.tables import spark

    with cluster(), tempfile.TemporaryDirectory() as folder:
        made = session(
            MASTER,
            spark_driver_host="127.0.0.1",
            spark_executor_memory="512m",
            spark_sql_shuffle_partitions="4",
            spark_speculation="true",
            spark_speculation_quantile="0.1",
            spark_speculation_multiplier="1.01",
            spark_speculation_minTaskRuntime="10ms",
            spark_speculation_interval="50ms",
        )
        rows = pl.DataFrame({"client": [n % 1000 for n in range(20_000)], "value": [n * n % 37 for n in range(20_000)]})
        data = made.createDataFrame(list(rows.iter_rows()), rows.columns).repartition(4)
        local = _sorted(sample(rows, **TERMS).to_pylist())
        plain = spark.sample(data, **TERMS)
        checks = {"first action": _sorted(plain.collect()) == local, "second action": _sorted(plain.collect()) == local}
        failing = spark.sample(data.mapInArrow(_disturbed(folder, "fail"), data.schema), **TERMS)
        checks["every task failing once"] = _sorted(failing.collect()) == local
        slow = spark.sample(data.mapInArrow(_disturbed(folder, "slow"), data.schema), **TERMS)
        checks["a straggler and its copy"] = _sorted(slow.collect()) == local
        made.stop()
        attempts = sorted(path.name for path in Path(folder).iterdir())
    copies = sum(name.startswith("slow-") and not name.endswith("-0") for name in attempts)
    failures = sum(name.startswith("fail-") and not name.endswith("-0") for name in attempts)
    return {"checks": checks, "failures": failures, "copies": copies}


def _sorted(records: list[Any]) -> list[tuple[int, int]]:
    return sorted((int(record["client"]), int(record["sample"])) for record in records)


def _disturbed(folder: str, how: str) -> Callable[[Any], Any]:
    """Passes batches on. `fail`: the first attempt at each partition fails halfway; `slow`: that at partition 0 takes long."""

    def passed(batches: Any) -> Any:
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition, attempt = context.partitionId(), context.attemptNumber()
        Path(folder, f"{how}-{partition}-{attempt}").touch()
        if how == "slow" and partition == 0 and attempt == 0:
            time.sleep(15)
        for batch in batches:
            yield batch
            if how == "fail" and attempt == 0:
                raise RuntimeError("injected")

    return passed


@contextmanager
def cluster() -> Iterator[None]:
    """A master and two workers on two loopback addresses: Spark starts the copy of a task on another host only."""
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    environment = {**os.environ, "SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable}

    def start(role: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{role}", *arguments, "--webui-port", "0"]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        running = [start("master.Master", "--host", "127.0.0.1", "--port", MASTER.rpartition(":")[2])]
        for host in ("127.0.0.1", "127.0.0.2"):
            resources = ("--cores", "1", "--memory", "600m", "--work-dir", f"{folder}/{host}")
            running.append(start("worker.Worker", "--host", host, *resources, MASTER))
        try:
            yield
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()


if __name__ == "__main__":
    print(json.dumps(speed(sys.argv[2]) if sys.argv[1] == "speed" else retries()))
