"""Kill devices while they take part: `python -m tests.client.kills --kills 300`.

A device makes its ledger and its identity, asks, draws and charges; sends; reads the answer. It is killed (SIGKILL) in one of these three
stretches, each as often as the others, at a call that is drawn from all that are made in it, and started again with other data, until it
gets its receipt. Then, and this is all that is promised: the service has counted each device once; what it has counted are the samples in
the ledgers; each ledger was charged once; every receipt says what the ledger says.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from discreet.agreement import Agreement
from discreet.client import Client
from discreet.client._client import _identity_digest
from discreet.collect import open_store
from discreet.errors import LedgerError
from discreet.ledger import Budget, Ledger
from discreet.release._randomness import parse_secret
from tests.collect.running import PATIENCE, agreed, running

__all__ = ["PATIENCE"]
OUTCOMES = 50  # so many that two draws are seldom the same
# a stretch ends when the charge is durable, and when the answer to the last request is waited for
ENDS = {"_find_or_add_charge": "return", "getresponse": "call"}


def take_part(address: str, path: Path, data: int, fatal: int | None, careless: bool) -> tuple[str, list[int]]:
    """One device, until it is killed at its so manieth call: its sample, and the calls at which stretches ended. A careless one forgets."""
    calls, ends = 0, dict.fromkeys(ENDS, 0)

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if ENDS.get(frame.f_code.co_name) == event:
            ends[frame.f_code.co_name] = calls

    sys.setprofile(note)
    try:
        if (
            careless and path.exists() and os.path.exists(f"{path}.identity")
        ):  # a device that starts anew under its old name
            secret = Path(f"{path}.identity").read_bytes()
            path.unlink()
            os.unlink(f"{path}.identity")
            with Ledger.create(path, Budget(epsilon=1.0)).locked_identity_binding() as binding:
                binding.bind_identity(_identity_digest(parse_secret(secret, path)))
            Path(f"{path}.identity").write_bytes(secret)
            Path(f"{path}.identity").chmod(0o600)
        client = Client(address, ledger=path, budget=1.0, identity=f"{path}.identity", timeout=PATIENCE)
        receipt = client.send(records=[data])
    finally:
        sys.setprofile(None)
    return str(receipt.sample), [*ends.values(), calls]


def forked(address: str, path: Path, data: int, fatal: int | None, careless: bool) -> tuple[str, list[int]] | None:
    """The same in a process of its own; None if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            os.write(writing, json.dumps(take_part(address, path, data, fatal, careless)).encode())
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
    sample, ends = json.loads(said)
    return sample, ends


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
        agreement = agreed(folder, OUTCOMES)
        with running(folder, "agreement.json") as collector:
            loaded, _ = take_part(
                collector.address, folder / "here", 0, None, careless
            )  # all that is loaded when it is first used
            first, ends = forked(collector.address, folder / "0", 0, None, careless) or ("", [0])
            stretches = list(pairwise([0, *ends]))
            said: Counter[str] = Counter([loaded, first])
            while killed < kills:
                seen.devices += 1
                path = folder / str(seen.devices)
                told = None
                for attempt in range(3):
                    begins, stops = chosen.choice(stretches)
                    fatal = chosen.randint(begins + 1, stops) if attempt < 2 and killed < kills else None
                    before = counted(folder, agreement)
                    told = forked(collector.address, path, chosen.randrange(OUTCOMES), fatal, careless)
                    if told is not None:
                        break
                    killed += 1
                    arrived = counted(folder, agreement) > before
                    seen.after_count += arrived
                    seen.between += not arrived and charged(path)
                assert told is not None
                (entry,) = Ledger(path).entries()
                assert str(entry.sample) == told[0], "a receipt and its ledger differ"
                said[told[0]] += 1
            found = collector.get("/estimate").json
            counts = {str(row["outcome"]): row["samples"] for row in found["shares"] if row["samples"]}
            assert found["samples"] == seen.devices + 2, "a device was lost, or counted twice"
            assert counts == dict(said), "a device said another sample than its ledger holds"
    return seen


def charged(path: Path) -> bool:
    """Whether a ledger was charged, if there is one."""
    try:
        return bool(Ledger(path).entries())
    except LedgerError:
        return False


def counted(folder: Path, agreement: Agreement) -> int:
    """How many samples the store holds; the service would pause between two estimates."""
    with closing(open_store(folder / "samples.db")) as store:
        return int(store.outcome_counts(agreement.id, 1).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--careless", action="store_true", help="a wrong device, which must be found")
    options = parser.parse_args()
    seen = run(options.kills, options.seed, options.careless)
    print(  # noqa: T201
        f"{options.kills} kills of {seen.devices} devices, {seen.between} of them between charge and count, {seen.after_count} between count "
        "and receipt: each is counted once, with the sample of its ledger"
    )


if __name__ == "__main__":
    main()
