"""Aircraft of the flights as devices of a collection: `python -m tests.client.flights --devices 4043`.

Each has a ledger and an identity of its own, holds where it flew, and sends one sample by the Python client to a service in a process of
its own. Then the service's estimate is that of `discreet estimate` on its export, to the last digit, each device is counted once, and
what was counted is what the receipts say. At last the collection is closed and published: devices that come late draw nothing, those that
sent are acknowledged, and the page, the table and the picture hold the numbers of `discreet estimate`.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.client import Client
from discreet.errors import CollectorError
from discreet.research.data import destinations, flights
from tests.collect.frozen import check_published
from tests.collect.running import PATIENCE, Collector, running

EPSILON = 4.0
THREADS = 4  # devices at once in each process


def aircraft(count: int) -> list[list[str]]:
    """Where each of so many aircraft flew."""
    table = flights().select(["tailnum", "dest"]).to_pydict()
    held: dict[str, list[str]] = {}
    for tail, destination in zip(table["tailnum"], table["dest"], strict=True):
        held.setdefault(tail, []).append(destination)
    return [held[tail] for tail in sorted(held)[:count]]


def receipts(address: str, folder: str, devices: list[tuple[int, list[str]]]) -> list[str]:
    """The samples that these devices have sent; one in ten is not sure, and sends again."""

    def send(device: tuple[int, list[str]]) -> str:
        number, records = device
        client = Client(
            address, ledger=Path(folder) / f"{number}.ledger", budget=EPSILON, patience=PATIENCE, timeout=PATIENCE
        )
        receipt = client.send(records=records)
        assert receipt.counted
        if number % 10 == 0:
            again = client.send(records=records[:1])
            assert (again.counted, again.sample) == (False, receipt.sample)
        return str(receipt.sample)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(send, devices))


def agreed(folder: Path) -> Agreement:
    """What all of them agree on."""
    sampler = dc.LinearSampler(dc.Simplex(destinations()), epsilon=EPSILON)
    made = Agreement.of(sampler, purpose="where aircraft fly")
    made.write(folder / "agreement.json")
    return made


def exported(folder: Path) -> Any:
    """What `discreet estimate` says of the store's export."""
    output = folder / f"export-{random.randrange(10**9)}.parquet"
    command("export", str(folder / "samples.db"), "-o", str(output))
    return json.loads(command("estimate", str(output), "--json"))


def command(*words: str) -> str:
    """What a command of `discreet` prints."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def check(collector: Collector, folder: Path, said: list[str]) -> Any:
    """What the service says so far; refused if it is not what was sent, or not what its export says."""
    found = collector.get("/estimate").json
    assert found["samples"] == len(said)
    counts = {row["outcome"]: row["samples"] for row in found["shares"] if row["samples"]}
    assert counts == dict(Counter(said))
    days = found.pop("days")
    assert (sum(many for _, many in days), found.pop("round")) == (len(said), 1)
    assert found == exported(folder)
    return found


def closed_and_published(collector: Collector, folder: Path, held: list[tuple[int, list[str]]], found: Any) -> None:
    """Close the collection under its service, try to send late, and publish it."""
    command("close", str(folder / "samples.db"))
    number, records = held[0]
    settings: dict[str, Any] = {"budget": EPSILON, "patience": PATIENCE, "timeout": PATIENCE}
    again = Client(collector.address, ledger=folder / f"{number}.ledger", **settings).send(records=records)
    assert not again.counted  # acknowledged as before
    late = Client(collector.address, ledger=folder / "late.ledger", **settings)
    for _ in range(100):  # services look at their agreements every two seconds
        if collector.get("/collection").json["closed"] is not None:
            break
        time.sleep(0.1)
    with pytest.raises(CollectorError, match=r"was closed on \d{4}-\d\d-\d\d: nothing was drawn or sent"):
        late.send(records=records)
    assert not late.ledger.entries()
    command("publish", str(folder / "samples.db"), "-o", str(folder / "result"))
    check_published(folder / "result", found)
    assert exported(folder) == found


def run(devices: int, processes: int) -> float:
    """So many devices; how many seconds they took."""
    held = list(enumerate(aircraft(devices)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        agreed(folder)
        with running(folder, "agreement.json") as collector:
            began = time.monotonic()
            if processes == 1:
                said = receipts(collector.address, name, held)
            else:
                with get_context("spawn").Pool(processes) as pool:
                    shares = [(collector.address, name, held[start::processes]) for start in range(processes)]
                    said = [sample for part in pool.starmap(receipts, shares) for sample in part]
            took = time.monotonic() - began
            found = check(collector, folder, said)
            closed_and_published(collector, folder, held, found)
            assert collector.stop() == 0
            assert collector.said == ""
            assert exported(folder)["samples"] == len(held)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=4043)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    took = run(options.devices, options.processes)
    print(  # noqa: T201
        f"{options.devices:,} devices in {took:.0f} s: each is counted once, and the estimate is that of the export and of what was published"
    )


if __name__ == "__main__":
    main()
