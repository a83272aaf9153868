"""Damaged and hostile Arrow, Parquet, CSV and JSON inputs, in processes of their own: none crashes, panics or shows what is not its own.

Each process holds a canary all over its memory, and every client in what it releases must occur in the input it was given. A signal
that ends a process, an exception that is not ours, a canary or a foreign byte breaks the contract and is told with the number of the
input, which makes it again: `python -m tests.fuzz.mutants --inputs 100000`.
"""

import argparse
import contextlib
import io
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from discreet import tables as engines
from discreet.agreement import Agreement
from discreet.errors import DiscreetError
from discreet.estimation._sample_tables import coding_and_sampler, tally_samples
from discreet.tables._columns import read_client_list_file
from discreet.tables._sources._opening import file_source

CANARY = "canary-" + "0123456789abcdef" * 2
LEAST_MEMORY, MOST_RESIDENT = 10**6, 2 << 20  # bytes to hold, kB to take
NUMBERS = (0, 1, -1, 7, 255, 4_000_000, 2**31 - 1, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
TERMS: dict[str, Any] = {
    "client": "client", "value": "value", "domain": 8, "other": 7, "nulls": "drop", "epsilon": 1.0,
    "memory": LEAST_MEMORY,
}  # fmt: skip


@dataclass(frozen=True)
class Seed:
    """A healthy input. `plain`: the bytes of its clients lie in it as they are."""

    suffix: str
    content: bytes
    plain: bool


def seeds() -> list[Seed]:
    """Every format and layout, small."""
    rows = 60
    texts = [f"client number {row % 13}" for row in range(rows)]
    base = {"client": pa.array(texts), "value": pa.array([row % 8 for row in range(rows)], pa.int64())}
    tables = {
        "text": pa.table(base),
        "integers": pa.table({**base, "client": pa.array([7**15 + row % 13 for row in range(rows)])}),
        "views": pa.table({**base, "client": pa.array(texts, pa.string_view())}),
        "dictionary": pa.table({**base, "client": pa.array(texts).dictionary_encode()}),
        "lists": pa.table({**base, "value": pa.array([[row % 8] * (row % 3) for row in range(rows)])}),
        "nested": pa.table({**base, "x": pa.array([{"a": [row, None], "b": "b"} for row in range(rows)])}),
    }
    found = [
        Seed(".csv", _written(pl.DataFrame(tables["text"]).write_csv), True),
        Seed(".csv", b'client,value\n"a ""quoted"" name",1\n b ,2\n' * 3, True),
        Seed(".csv", b'client;value\n"a;b";1\nb;2\n' + b"c;3\n" * 9, True),
        Seed(".txt", b"client|value\na|1\n" + b"b|2\n" * 9, True),
        Seed(".tsv", b'client\tvalue\na\t1\n" b"\t2\n' + b"c\t3\n" * 9, True),
        Seed(
            ".jsonl", b"".join(b'{"client": "number %d", "value": %d}\n' % (row, row % 8) for row in range(20)), False
        ),
        Seed(".ndjson", b'{"x": [{"y": 1e3}, null], "client": 12, "value": 1, "z": "\\ud83d\\ude00"}\n' * 9, False),
        Seed("", b'{"value": true, "client": "a"}\n' * 9, False),
    ]
    for name, table in tables.items():
        found.append(Seed(".arrows", _arrow(table, pa.ipc.new_stream), True))
        found.append(Seed(".arrow", _arrow(table, pa.ipc.new_file), True))
        if name != "views":
            found += [Seed(".parquet", _parquet(table, **layout), plain) for layout, plain in LAYOUTS]
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    found.append(Seed(".arrows", _arrow(tables["text"], pa.ipc.new_stream, packed), False))
    found.append(Seed(".arrow", _arrow(tables["text"], pa.ipc.new_file, packed), False))
    found.append(Seed(".parquet", _written(pl.DataFrame(tables["text"]).write_parquet), False))
    return found


LAYOUTS: list[tuple[dict[str, Any], bool]] = [
    ({"compression": "none"}, True),
    ({"compression": "none", "use_dictionary": False, "data_page_version": "2.0"}, True),
    ({"compression": "none", "row_group_size": 20, "data_page_size": 64}, True),
    ({"compression": "zstd"}, False),
]


def batches() -> bytes:
    """A healthy batch for the kernel."""
    table = pa.table({
        "client": [f"client number {row}" for row in range(20)],
        "outcomes": pa.array([[row % 8] * (row % 4) for row in range(20)], pa.list_(pa.uint32())),
        "counts": pa.array([[1.0] * (row % 4) for row in range(20)]),
    })  # fmt: skip
    return _arrow(table, pa.ipc.new_stream)


def mutated(chance: random.Random, content: bytes) -> bytes:
    """A few bytes changed, moved, cut off or put in; often a number, since numbers say where to look."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        place = chance.randrange(len(data)) if data else 0
        what = chance.randrange(8)
        if what == 0:
            data[place : place + 1] = bytes([chance.randrange(256)])
        elif what == 1 and data:
            data[place] ^= 1 << chance.randrange(8)
        elif what in (2, 3):
            width = chance.choice((4, 8))
            number = chance.choice((*NUMBERS, len(data), len(data) + 1)) % (1 << 8 * width)
            place -= place % 4
            data[place : place + width] = number.to_bytes(width, "little")
        elif what == 4:
            del data[place : place + chance.choice((1, 4, 8, len(data)))]
        elif what == 5:
            data[place:place] = bytes(chance.choice((0, 255)) for _ in range(chance.choice((1, 4, 8))))
        elif what == 6:
            other = chance.randrange(len(data)) if data else 0
            data[place : place + 16] = data[other : other + 16]
        else:
            data[place : place + 1] = b"\xff\xff\xff\xff\x0f"  # a large number in Thrift
    return bytes(data)


def released(path: Path) -> pa.Table:
    return engines.sample(str(path), **TERMS)


def streamed(path: Path) -> pa.Table:
    """As a stream or a table that somebody else has read."""
    with _their_errors():
        reader = pa.ipc.open_stream(path.read_bytes())
        given = reader if len(path.read_bytes()) % 2 else reader.read_all()
    return engines.sample(given, **TERMS)


def listed(path: Path) -> pa.Table:
    return pa.table({"client": read_client_list_file(path, "client", integers=False)})


def counted(path: Path) -> pa.Table:
    agreed = Agreement.of(_job().sampler)
    domain, _ = coding_and_sampler(agreed)
    tally_samples(file_source(str(path)), agreed, domain, sample="value")
    return pa.table({"client": []})


def drawn(path: Path) -> pa.Table:
    """By the kernel, from an engine of somebody's own."""
    with _their_errors():
        found = list(pa.ipc.open_stream(path.read_bytes()))
    kernel = engines.Kernel(_job())
    return pa.Table.from_batches([kernel(batch) for batch in found]) if found else pa.table({"client": []})


def broken(number: int, seed: int, folder: Path, healthy: list[Seed], batch: bytes) -> str | None:
    """What input `number` did that it may not; None if it kept the contract."""
    chance = random.Random(f"{seed} {number}")
    chosen = chance.choice(healthy)
    act: Callable[[Path], pa.Table] = chance.choice((released, released, released, listed, counted))
    if chance.randrange(6) == 0:
        chosen, act = Seed(".arrows", batch, True), drawn
    elif chosen.suffix == ".arrows" and chance.randrange(2):
        act = streamed
    content = mutated(chance, chosen.content)
    path = folder / f"in{chosen.suffix}"
    path.write_bytes(content)
    try:
        found = act(path)
    except DiscreetError as error:
        return f"an error shows the canary: {error}" if CANARY in str(error) else None
    except BaseException as error:  # a panic of polars is no Exception
        return f"{act.__name__}: {type(error).__name__}: {error}"
    clients = found.column("client").to_pylist()
    return foreign(clients, content, plain=(chosen.plain and act is not drawn) or chosen.content == batch)


def foreign(clients: list[Any], content: bytes, *, plain: bool) -> str | None:
    """A client that the input does not hold, if there is one."""
    for client in clients:
        held = client.to_bytes(8, "little", signed=True) if isinstance(client, int) else str(client).encode()
        if CANARY.encode()[:16] in held:
            return "a client is the canary"
        if plain and held.replace(b'"', b"") not in content.replace(b'"', b""):  # quotes in CSV come and go
            return f"client {client!r} is not in the input"
    return None


def most_resident() -> int:
    """The most memory that this process has taken, in kB. (`getrusage` would count that of the one it was started from.)"""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.first is not None:
        _run(options.first, options.inputs, options.seed)
        return
    found = hunted(options.inputs, options.seed)
    for line in found:
        print(line)  # noqa: T201
    if found:
        raise SystemExit(f"{len(found):,} of {options.inputs:,} inputs broke the contract")
    print(f"{options.inputs:,} inputs: no crash, no panic, no byte of anybody else's")  # noqa: T201


def hunted(inputs: int, seed: int) -> list[str]:
    """What so many inputs did that they may not. A process that is killed by one is started again behind it."""
    told, first = [], 0
    while first < inputs:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.mutants",
            "--first",
            str(first),
            "--inputs",
            str(inputs),
            "--seed",
            str(seed),
        ]
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        lines = process.stdout.splitlines()
        told += [line for line in lines if line.startswith("broken")]
        reached = [int(line.split()[1]) for line in lines if line.startswith("at")]
        if process.returncode == 0 and "done" in lines:
            break
        last = reached[-1] if reached else first
        told.append(f"broken {last}: the process ended with {process.returncode}: {process.stderr.strip()[-300:]}")
        first = last + 1
    return told


def _run(first: int, inputs: int, seed: int) -> None:
    canaries = [CANARY * (1 + place % 50) for place in range(2000)]
    held = [pa.array(canaries), pl.Series(canaries), [text.encode() for text in canaries]]
    del canaries  # and some in memory that is free again
    healthy, batch = seeds(), batches()
    with tempfile.TemporaryDirectory() as name:
        for number in range(first, inputs):
            os.write(1, f"at {number}\n".encode())
            problem = broken(number, seed, Path(name), healthy, batch)
            if problem is None and most_resident() > MOST_RESIDENT:
                problem = f"{most_resident():,} kB of memory were used"
            if problem is not None:
                os.write(1, f"broken {number}: {problem!r}\n".encode(errors="replace"))
    assert held
    os.write(1, b"done\n")


def _job() -> Any:
    request = engines.Request(client="client", value="value", domain=8, epsilon=1.0)
    return request.job(pl.Schema({"client": pl.String(), "value": pl.Int64()}), where="here")


def _written(write: Callable[[io.BytesIO], Any]) -> bytes:
    content = io.BytesIO()
    write(content)
    return content.getvalue()


def _parquet(table: pa.Table, **layout: Any) -> bytes:
    return _written(lambda content: pq.write_table(table, content, **layout))


def _arrow(table: pa.Table, opened: Any, options: Any = None) -> bytes:
    content = io.BytesIO()
    with opened(content, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=25)
    return content.getvalue()


@contextlib.contextmanager
def _their_errors() -> Iterator[None]:
    """What Arrow says before anything is given to us."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        raise DiscreetError(str(error)) from None


if __name__ == "__main__":
    main()
