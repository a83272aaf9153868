"""Kill services and databases while clients send: `python -m tests.collect.kills --kills 500 --database-kills 100`.

Two services at a time serve one store, and clients send to them: each sends its sample, under one key, until it is acknowledged; some
send it once more, or come with another key. Services are killed (SIGKILL) after a random time, while they start or while they serve, and
others take their place; so is PostgreSQL, all of it or its first process alone. Meanwhile and at the end, and this is all that a
collector promises: every acknowledged sample is counted once, and none is counted that was not sent.
"""

import argparse
import contextlib
import http.client
import json
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet import LinearSampler, Simplex
from discreet.agreement import Agreement
from discreet.client._protocol import JSON, SAMPLES
from discreet.collect import open_store
from discreet.collect._counting import Arrival, Verdict, text_digest
from discreet.collect._store import Store
from discreet.errors import StoreError
from tests.collect.mortal import serve_until_killed
from tests.collect.postgres import Server, server, until
from tests.collect.running import forking

OUTCOMES = 20
SERVICES = 2
CLIENTS = 4  # at a time
LONGEST_LIFE = 0.8  # seconds, of a service that is to be killed
PATIENCE = 120.0
AGREED = Agreement.of(LinearSampler(Simplex(OUTCOMES), epsilon=1.0), purpose="kills")


class Services:
    """Some services of one store: when one is killed another one is begun."""

    def __init__(self, where: str, careless: bool) -> None:
        self._where, self._careless = where, careless
        self._context = forking()
        self._running: list[tuple[ForkServerProcess, Connection, list[str]]] = [self._begun() for _ in range(SERVICES)]

    def _begun(self) -> tuple[ForkServerProcess, Connection, list[str]]:
        hearing, telling = self._context.Pipe(duplex=False)
        process = self._context.Process(target=serve_until_killed, args=(self._where, telling, self._careless))
        process.start()
        telling.close()
        return process, hearing, []

    def kill_one(self, place: int) -> bool:
        """Kill one, and begin another. Whether it had begun to serve."""
        process, hearing, addresses = self._running[place]
        self.addresses()
        alive = process.is_alive()
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL or not alive or process.exitcode == 0, process.exitcode
        hearing.close()
        self._running[place] = self._begun()
        return bool(addresses)

    def serves(self, place: int) -> bool:
        """Whether one of them has begun to serve."""
        self.addresses()
        return bool(self._running[place][2])

    def addresses(self) -> list[str]:
        """Of those that serve by now."""
        for number, (process, hearing, addresses) in enumerate(self._running):
            with contextlib.suppress(EOFError, OSError):
                while not addresses and hearing.poll():
                    addresses.append(hearing.recv())
            if not process.is_alive():  # the database was gone when it began
                hearing.close()
                self._running[number] = self._begun()
        return [address for _, _, addresses in self._running for address in addresses]

    def end(self) -> None:
        """Kill all of them."""
        for process, hearing, _ in self._running:
            process.kill()
            process.join()
            hearing.close()


@dataclass
class Seen:
    """What happened to requests; and what was sent and acknowledged, by client: the key and the outcome."""

    answers: Counter[str] = field(default_factory=Counter)
    sent: dict[str, tuple[str, int]] = field(default_factory=dict)
    acknowledged: dict[str, tuple[str, int]] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    failures: list[BaseException] = field(default_factory=list)

    def outcomes(self, which: dict[str, tuple[str, int]]) -> Counter[int]:
        return Counter(outcome for _, outcome in list(which.values()))

    def check(self, store: Store, known: Counter[int]) -> None:
        """Whether what is counted lies between what was acknowledged before (`known`) and what has been sent by now."""
        counts = store.outcome_counts(AGREED.id, 1).tolist()
        sent = self.outcomes(self.sent)
        for outcome, count in enumerate(counts):
            assert known[outcome] <= count, f"{known[outcome] - count} acknowledged samples were lost"
            assert count <= sent[outcome], f"{count - sent[outcome]} samples were counted that were not sent, or twice"

    def check_end(self, store: Store) -> None:
        """Whether exactly what was sent is counted, now that all of it is acknowledged; asked again it is all known by its keys."""
        assert self.acknowledged == self.sent
        expected = self.outcomes(self.sent)
        assert store.outcome_counts(AGREED.id, 1).tolist() == [expected[outcome] for outcome in range(OUTCOMES)]
        place = ("discreet speaker", AGREED.id, "1")
        for key_of, verdict in ((lambda key: key, Verdict.AGAIN), (lambda key: f"{key}-other", Verdict.SPOKEN)):
            arrivals = [
                Arrival(text_digest(*place, name), text_digest("discreet sent", key_of(key)), outcome)
                for name, (key, outcome) in self.sent.items()
            ]
            assert set(store.count_arrivals(AGREED.id, 1, arrivals, "2026-01-01")) <= {verdict}
        assert store.outcome_counts(AGREED.id, 1).sum() == len(self.sent)


class Senders:
    """Clients that send, one after the other in each of a few threads, until they are told to stop and all are acknowledged.

    `once`: they do not come again once they are.
    """

    def __init__(self, services: Services, seen: Seen, seed: int, *, once: bool = False) -> None:
        self._services, self._seen, self._once = services, seen, once
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(seed, number)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def serves(self, place: int) -> bool:
        """Whether the service at that place has begun to serve."""
        with self._lock:
            return self._services.serves(place)

    def kill(self, place: int) -> bool:
        """Kill the service at that place, and whether it had begun to serve."""
        with self._lock:
            return self._services.kill_one(place)

    def stop(self) -> None:
        """No more clients; those who have begun are acknowledged."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _work(self, seed: int, thread: int) -> None:
        chosen, number = random.Random(f"{seed} {thread}"), 0
        try:
            while not self._stopped.is_set():
                size = chosen.choice((1, 1, 1, 30))
                rows = {f"{seed}-{thread}-{number + n}": chosen.randrange(OUTCOMES) for n in range(size)}
                number += size
                self._speak(rows, chosen)
        except BaseException as error:
            self._seen.failures.append(error)

    def _speak(self, rows: dict[str, int], chosen: random.Random) -> None:
        """Send the samples of some clients until they are acknowledged; perhaps again; perhaps under other keys, which is refused."""
        said = {name: (f"key-{name}", outcome) for name, outcome in rows.items()}
        with self._lock:
            self._seen.sent.update(said)
        answer = self._until_answered(said, chosen)
        assert answer["counted"] + answer["again"] == len(rows), answer
        with self._lock:
            self._seen.acknowledged.update(said)
            self._seen.answers["counted"] += answer["counted"]
            self._seen.answers["lost"] += answer["again"]  # the first answer was, and is now given again
        if self._once:
            return
        if chosen.random() < 0.1:
            assert self._until_answered(said, chosen)["again"] == len(rows)
        if chosen.random() < 0.1:
            other = {name: (f"{key}-other", (outcome + 1) % OUTCOMES) for name, (key, outcome) in said.items()}
            assert len(self._until_answered(other, chosen)["refused"]) == len(rows)

    def _until_answered(self, said: dict[str, tuple[str, int]], chosen: random.Random) -> Any:
        """The answer of whichever service gives one at last."""
        rows = [{"client": name, "key": key, "sample": outcome} for name, (key, outcome) in said.items()]
        body = json.dumps({"agreement": AGREED.id, "round": 1, "samples": rows}).encode()
        end = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < end, "nobody answers"
            with self._lock:
                addresses = self._services.addresses()
            if not addresses:
                time.sleep(0.01)
                continue
            try:
                status, answer = _posted(chosen.choice(addresses), body)
            except (OSError, http.client.HTTPException, ValueError):
                self._seen.answers["cut off"] += 1
                continue
            if status == 200:
                return answer
            assert status == 503, (status, answer)
            self._seen.answers["not now"] += 1
            time.sleep(0.02)


def _posted(address: str, body: bytes) -> tuple[int, Any]:
    where = urlsplit(address)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30.0)
    with contextlib.closing(connection):
        connection.request("POST", SAMPLES, body, {"Content-Type": JSON})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def run(
    where: str,
    kills: int,
    seed: int,
    *,
    database: Server | None = None,
    database_kills: int = 0,
    careless: bool = False,
) -> Seen:
    """Kill so many services, and so often their database. Raises on any violation."""
    chosen, seen = random.Random(seed), Seen()
    with contextlib.closing(open_store(where)) as store:
        store.add(AGREED)
        services = Services(where, careless)
        senders = Senders(services, seen, seed, once=careless)
        victims = ["service"] * kills + ["database"] * database_kills
        chosen.shuffle(victims)
        try:
            for number, victim in enumerate(victims):
                time.sleep(chosen.uniform(0.0, LONGEST_LIFE / SERVICES))
                known = seen.outcomes(seen.acknowledged)
                if victim == "service":
                    place = chosen.randrange(SERVICES)
                    if chosen.random() < 0.75:
                        until(partial(senders.serves, place), "a service does not begin to serve", PATIENCE)
                        time.sleep(chosen.uniform(0.0, LONGEST_LIFE / SERVICES))
                    seen.killed["serving" if senders.kill(place) else "starting"] += 1
                else:
                    assert database is not None
                    (database.kill if chosen.random() < 0.5 else lambda: _behead(database))()
                    time.sleep(chosen.uniform(0.0, 0.3))  # in which nothing can be written
                    database.start()
                    seen.killed["database"] += 1
                if number % 10 == 9 or victim == "database":
                    _tried(partial(seen.check, store, known))
                if seen.failures:
                    break
        finally:
            senders.stop()
            services.end()
        if seen.failures:
            raise seen.failures[0]
        _tried(partial(seen.check_end, store))
    return seen


def _behead(database: Server) -> None:
    """End the first process of a server without a word; the others notice, and end by themselves."""
    database.tell(signal.SIGKILL)
    database.wait()


def _tried(check: Callable[[], None]) -> None:
    """Until the database is there to be asked."""

    def done() -> bool:
        try:
            check()
        except StoreError:
            return False
        return True

    until(done, "the store does not come back")


@contextlib.contextmanager
def stores(kind: str) -> Iterator[tuple[str, Server | None]]:
    """An empty store of that kind, and its server if it has one."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "store.db"), None
    else:
        with server() as running:
            yield running.database(), running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500, help="of services, half of them on each kind of store")
    parser.add_argument("--database-kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--careless", action="store_true", help="a wrong store, which must be found out")
    options = parser.parse_args()
    for kind, kills, ends in (
        ("sqlite", options.kills - options.kills // 2, 0),
        ("postgresql", options.kills // 2, options.database_kills),
    ):
        with stores(kind) as (where, database):
            began = time.monotonic()
            seen = run(where, kills, options.seed, database=database, database_kills=ends, careless=options.careless)
        print(  # noqa: T201
            f"{kind}: {kills} services killed ({seen.killed['starting']} of them while they started), {ends} times the database, in "
            f"{time.monotonic() - began:.0f} s; {len(seen.acknowledged):,} samples acknowledged, {seen.answers['lost']:,} of them once more "
            f"since the first answer was lost, {seen.answers['cut off']:,} requests cut off, {seen.answers['not now']:,} told to come again: "
            "nothing lost, nothing twice, nothing that was not sent",
            flush=True,
        )


if __name__ == "__main__":
    main()
