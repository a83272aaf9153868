"""Kill devices while they take part: `python -m tests.client.kills --kills 300`.

A device makes its ledger and its identity, asks, charges, draws, sends and reads the answer; it is killed (SIGKILL) at a moment that is
drawn from all of them, by how many calls it has made, and started again with other data, until it gets its receipt. Then, and this is all
that is promised: the service has counted each device once; what it has counted are the samples in the ledgers; each ledger was charged
once; every receipt says what the ledger says.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.client import Client
from discreet.errors import LedgerError
from discreet.ledger import Ledger
from tests.collect.running import PATIENCE, Collector, agreed, running

__all__ = ["PATIENCE"]
OUTCOMES = 50  # so many that two draws are seldom the same
LATE = 0.5  # of the kills fall into the last part of what a device does, in which its sample leaves


def take_part(address: str, path: Path, data: int, fatal: int | None, careless: bool) -> tuple[int, str]:
    """One device, until it is killed at its so manieth call; how many calls it made, and its sample. A careless one forgets its ledger."""
    calls = 0

    def note(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(note)
    try:
        identity = Path(f"{path}.identity")
        if careless:
            path.unlink(missing_ok=True)
        client = Client(address, ledger=path, budget=1.0, identity=identity, timeout=PATIENCE)
        receipt = client.send(records=[data])
    finally:
        sys.setprofile(None)
    return calls, str(receipt.sample)


def forked(address: str, path: Path, data: int, fatal: int | None, careless: bool) -> tuple[int, str] | None:
    """The same in a process of its own; None if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            os.write(writing, " ".join(map(str, take_part(address, path, data, fatal, careless))).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    assert status == 0, f"a device failed by itself: {status}"
    calls, sample = said.split()
    return int(calls), sample


@dataclass
class Seen:
    """How many devices there were, and where kills fell: after the charge, and once the service had counted the sample."""

    devices: int = 0
    between: int = 0
    after_count: int = 0


def run(kills: int, seed: int, careless: bool = False) -> Seen:
    """Kill so many times. Raises on any violation."""
    chosen, seen, killed = random.Random(seed), Seen(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        agreed(folder, OUTCOMES)
        with running(folder, "agreement.json") as collector:
            calls, first = forked(collector.address, folder / "0", 0, None, careless) or (0, "")
            said: Counter[str] = Counter([first])
            while killed < kills:
                seen.devices += 1
                path = folder / str(seen.devices)
                told = None
                for attempt in range(3):
                    late = chosen.random() < LATE
                    fatal = (
                        chosen.randrange(int(0.8 * calls) if late else 1, calls)
                        if attempt < 2 and killed < kills
                        else None
                    )
                    before = counted(collector)
                    told = forked(collector.address, path, chosen.randrange(OUTCOMES), fatal, careless)
                    if told is not None:
                        break
                    killed += 1
                    arrived = counted(collector) > before
                    seen.after_count += arrived
                    seen.between += not arrived and charged(path)
                assert told is not None
                (entry,) = Ledger(path).entries()
                assert str(entry.sample) == told[1], "a receipt and its ledger differ"
                said[told[1]] += 1
            found = collector.get("/estimate").json
            counts = {str(row["outcome"]): row["samples"] for row in found["shares"] if row["samples"]}
            assert found["samples"] == seen.devices + 1, "a device was lost, or counted twice"
            assert counts == dict(said), "a device said another sample than its ledger holds"
    return seen


def charged(path: Path) -> bool:
    """Whether a ledger was charged, if there is one."""
    try:
        return bool(Ledger(path).entries())
    except LedgerError:
        return False


def counted(collector: Collector) -> int:
    return int(collector.get("/estimate").json["samples"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--careless", action="store_true", help="a wrong device, which must be found")
    options = parser.parse_args()
    seen = run(options.kills, options.seed, options.careless)
    print(  # noqa: T201
        f"{options.kills} kills of {seen.devices} devices, {seen.between} of them between charge and count, {seen.after_count} between count and "
        "receipt: each is counted once, with the sample of its ledger"
    )


if __name__ == "__main__":
    main()
