"""Kill runs on one population's ledger at random moments: `python -m tests.ledger.population_kills --kills 1000`.

Two runs at a time settle random rounds of random clients and publish each answer on a pipe; both are killed (SIGKILL) after a
random time. Then: every published sample is in the ledger; every charge ever seen is still there, unchanged; no client
has spent more than its budget; and all files are sound.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from discreet.ledger import PopulationLedger
from discreet.ledger._population_ledger import ClientDigests, Round, read_budget_and_runs, read_segment
from discreet.release._randomness import Question, Secret

CLIENTS, ROUNDS, EPSILON, AFFORDED = 60, 30, 0.1, 10
KILLS_OF_ONE_LEDGER = 40
LONGEST_LIFE = 0.15
NO_CELLS = np.empty(0)

Charges = dict[tuple[int, int], int]


def settle_until_killed(folder: Path, secret: Secret, pipe: int, seed: int, careless: bool) -> None:
    """Settle random rounds of random clients and publish the samples, for ever. A careless run publishes what it has drawn."""
    chosen = np.random.default_rng(seed)
    ledger = PopulationLedger(folder, secret)
    while True:
        clients = chosen.choice(CLIENTS, chosen.integers(1, 40), replace=False).astype(np.uint64)
        asked = Round(
            agreement="a" * 64,
            question=Question(value="x"),
            number=int(chosen.integers(1, ROUNDS + 1)),
            epsilon=EPSILON,
        )
        drawn = chosen.integers(0, 2**31, clients.size)
        if careless:
            publish(pipe, clients, asked.number, drawn)
        found = ledger.charge_clients_once(
            asked, ClientDigests(clients * np.uint64(977), clients), drawn, NO_CELLS, over_budget="drop"
        )
        publish(pipe, clients[found.may_leave], asked.number, found.outcomes[found.may_leave])


def publish(pipe: int, clients: "np.ndarray[tuple[int], np.dtype[np.uint64]]", number: int, samples: object) -> None:
    """One line for each sample, each written whole."""
    for client, sample in zip(clients.tolist(), np.asarray(samples).tolist(), strict=True):
        os.write(pipe, f"{client} {number} {sample}\n".encode())


def forked_run(folder: Path, secret: Secret, seed: int, careless: bool) -> tuple[int, int]:
    """The process id of a new run, and the end of the pipe from which its answers are read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        settle_until_killed(folder, secret, writing, seed, careless)
    finally:
        os._exit(1)


def answers(pipe: int) -> list[tuple[int, int, int]]:
    """All that a dead run published; the last line may be cut."""
    with os.fdopen(pipe, "rb") as file:
        lines = file.read().decode().split("\n")[:-1]
    return [(int(client), int(number), int(sample)) for client, number, sample in map(str.split, lines)]


def charges(folder: Path) -> Charges:
    """(client, round) -> sample, read and verified file by file."""
    found: Charges = {}
    for run in read_budget_and_runs(folder)[1]:
        segment = read_segment(folder, run)
        for client, sample in zip(segment.names.second.tolist(), segment.outcomes.tolist(), strict=True):
            assert (client, run.round.number) not in found, "charged twice"
            found[client, run.round.number] = sample
    return found


@dataclass
class Seen:
    """What happened: samples published, charges made, clients that have nothing left, kills that left a file without a line."""

    published: int = 0
    charged: int = 0
    exhausted: int = 0
    cut_short: int = 0


def run(kills: int, seed: int, careless: bool = False) -> Seen:
    """Kill so many runs. Raises on any violation."""
    chosen = random.Random(seed)
    seen, done = Seen(), 0
    while done < kills:
        with tempfile.TemporaryDirectory() as name:
            folder, secret = Path(name) / "ledger", Secret(os.urandom(32), Path(name) / "rounds")
            PopulationLedger.create(folder, budget=EPSILON * AFFORDED, secret=secret)
            known: Charges = {}
            for _ in range(0, min(KILLS_OF_ONE_LEDGER, kills - done), 2):
                runs = [forked_run(folder, secret, chosen.randrange(2**32), careless) for _ in range(2)]
                for child, _ in runs:  # the other one goes on meanwhile, and has to clear up
                    time.sleep(chosen.uniform(0.0, LONGEST_LIFE))
                    os.kill(child, signal.SIGKILL)
                    _, status = os.waitpid(child, 0)
                    assert os.WTERMSIG(status) == signal.SIGKILL, f"a run failed by itself: {status}"
                    done += 1
                found = charges(folder)
                seen.cut_short += len(list(folder.glob("*.charges"))) > len(read_budget_and_runs(folder)[1])
                assert all(found.get(key) == sample for key, sample in known.items()), "a charge was lost or changed"
                known = found
                for _, pipe in runs:
                    for client, number, sample in answers(pipe):
                        seen.published += 1
                        assert found.get((client, number)) == sample, "a sample left without its charge"
                each = np.bincount([client for client, _ in found], minlength=CLIENTS)
                assert each.max() * Fraction(1, 10) <= 1, "overspent"
            seen.charged += len(known)
            seen.exhausted += int((each == AFFORDED).sum())
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--careless", action="store_true", help="a wrong run, which must be found")
    options = parser.parse_args()
    seen = run(options.kills, options.seed, options.careless)
    print(  # noqa: T201
        f"{options.kills} kills, {seen.cut_short} of them between file and line, {seen.published} samples published, "
        f"{seen.charged} charges, {seen.exhausted} clients exhausted: nothing lost, nothing overspent"
    )


if __name__ == "__main__":
    main()
