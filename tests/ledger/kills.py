"""Kill writers of one ledger at random moments: `python -m tests.ledger.kills --kills 1000`.

Two writers at a time ask for random rounds of a few agreements, and publish each answer on a pipe. Both are
killed (SIGKILL) after a random time. Then, and this is all that a ledger promises: every published answer is in the ledger
with the same sample; every charge ever seen is still there, unchanged; the total is within the budget; the file is sound.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import BudgetError
from discreet.ledger import Budget, Ledger
from discreet.ledger._book import using_sqlite_connection
from tests.ledger.charging import ONE, OTHER, PROFILE

AFFORDED = 30  # so few that a ledger is exhausted before its last kills, and then asked on
KILLS_OF_ONE_LEDGER = 50
LONGEST_LIFE = 0.08
AGREEMENTS = (ONE, OTHER)


def write_until_killed(path: Path, pipe: int, seed: int, careless: bool) -> None:
    """Ask for samples and publish them, for ever. A careless writer publishes as soon as it has drawn."""
    choices = random.Random(seed)
    ledger = Ledger(path)
    while True:
        agreement, number = choices.choice(AGREEMENTS), choices.randrange(1, 200)

        def draw(agreement: str = agreement, number: int = number) -> int:
            drawn = choices.randrange(10**9)
            if careless:
                os.write(pipe, f"{agreement} {number} {drawn}\n".encode())
            return drawn

        try:
            sample = ledger.charged_sample(agreement, round=number, profile=PROFILE, draw=draw)
        except BudgetError:
            continue
        os.write(pipe, f"{agreement} {number} {sample}\n".encode())


def forked_writer(path: Path, seed: int, careless: bool) -> tuple[int, int]:
    """The process id of a new writer, and the end of the pipe from which its answers are read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        write_until_killed(path, writing, seed, careless)
    finally:
        os._exit(1)


def answers(pipe: int) -> list[tuple[str, int, int]]:
    """All that a dead writer published."""
    with os.fdopen(pipe, "rb") as file:
        lines = file.read().decode().splitlines()
    return [(agreement, int(number), int(sample)) for agreement, number, sample in map(str.split, lines)]


def charges(ledger: Ledger) -> dict[tuple[str, int], int]:
    """(agreement, round) -> sample, after SQLite's own check of the file and that of the marks."""
    with using_sqlite_connection(ledger.path, 10.0) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    entries = ledger.entries()
    found = {(entry.agreement, entry.round): entry.sample for entry in entries}
    assert len(found) == len(entries), "charged twice"
    return found


@dataclass
class Seen:
    """What happened: answers published, charges made, ledgers exhausted, and kills that fell into a transaction (a journal is there)."""

    published: int = 0
    charged: int = 0
    cut_short: int = 0
    exhausted: int = 0


def run(kills: int, seed: int, careless: bool = False) -> Seen:
    """Kill so many writers. Raises on any violation."""
    chosen = random.Random(seed)
    seen, killed = Seen(), 0
    while killed < kills:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger"
            ledger = Ledger.create(path, Budget(epsilon=PROFILE.epsilon * AFFORDED))
            known: dict[tuple[str, int], int] = {}
            for _ in range(0, min(KILLS_OF_ONE_LEDGER, kills - killed), 2):
                writers = [forked_writer(path, chosen.randrange(2**32), careless) for _ in range(2)]
                for child, _ in writers:  # the other one goes on meanwhile, and has to clear up
                    time.sleep(chosen.uniform(0.0, LONGEST_LIFE))
                    os.kill(child, signal.SIGKILL)
                    _, status = os.waitpid(child, 0)
                    assert os.WTERMSIG(status) == signal.SIGKILL, f"a writer failed by itself: {status}"
                    killed += 1
                    seen.cut_short += Path(f"{path}-journal").exists()
                found = charges(ledger)
                assert all(found.get(key) == sample for key, sample in known.items()), "a charge was lost or changed"
                known = found
                for _, pipe in writers:
                    for agreement, number, sample in answers(pipe):
                        seen.published += 1
                        assert found.get((agreement, number)) == sample, "a sample left without its charge"
                assert len(found) <= AFFORDED, "overspent"
                assert ledger.spent().basic <= PROFILE.epsilon * AFFORDED
            seen.charged += len(known)
            seen.exhausted += len(known) == AFFORDED
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--careless", action="store_true", help="a wrong writer, which must be found")
    options = parser.parse_args()
    seen = run(options.kills, options.seed, options.careless)
    print(  # noqa: T201
        f"{options.kills} kills, {seen.cut_short} of them within a transaction, {seen.published} samples published, "
        f"{seen.charged} charges, {seen.exhausted} ledgers exhausted: nothing lost, nothing overspent"
    )


if __name__ == "__main__":
    main()
