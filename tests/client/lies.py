"""A device against collectors that say well-formed things that are not true: `python -m tests.client.lies --runs 1000`.

Two collectors that work together answer at random from a grammar: agreements of several domains, budgets and rules, chains of agreements
with links that are made up, left out or borrowed from the other one, rounds that open and close, enrolment that comes and goes, signatures
by several keys for several addresses, old answers again, answers to samples of every kind. The answers do not look at what is sent.

Two devices that hold different data of one size meet the same answers. What has to hold, whatever is said:

* neither spends more than its budget;
* under one name, in one round, a collector is given one sample, and a name that one collector has seen is never used with the other;
* the two devices cannot be told apart by their requests: how many, of which kind, for what, and how many bytes each has.
"""

import argparse
import contextlib
import json
import random
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import discreet as dc
from discreet.agreement import Agreement
from discreet.client import Client
from discreet.client._protocol import CollectionStatement, CollectorKey
from discreet.errors import DiscreetError
from tests.client.hostile import Reply, Server, hung_up, said, serving

BUDGET = 2.0
SENDS = 5
TOKEN = "token-of-a-device-1234"
WORDS = ["red", "green", "blue", "a long answer \u00e9", 'quoted "\u4e2d" \U0001f600', "other"]
FAMILIES: list[Any] = [
    dc.Simplex(WORDS),
    dc.Simplex(WORDS[:3]),
    dc.Simplex(WORDS[3:]),
    dc.Simplex([*WORDS[:1], "violet"]),
    dc.Simplex(3),
    dc.Simplex(100),
    dc.Simplex(dc.Interval(0.0, 1.0, cells=4)),
    dc.Band([5, 1, 1, 1, 1, 1], lower=0.0, upper=3.0, labels=WORDS, any_client=True),
]
KEYS = [
    CollectorKey(bytes([number]) * 32) for number in range(4)
]  # two of each collector: who shares a key is one collector
DATA: list[dict[str, Any]] = [  # each of two records or amounts: one class of size
    {"records": ["red", "red"]},
    {"records": ["violet", "nowhere"]},
    {"records": [0.25, 7.5]},
    {"records": [float("nan"), 3]},
    {"records": [None, True]},
    {"counts": {"blue": 3, "other": 0}},
    {"counts": {"unknown": 1, "red": 0}},
    {"counts": [0, 7]},
    {"p": [0.5, 0.5]},
]


def agreements() -> list[Agreement]:
    """What may be offered: every family at two budgets, some with an outcome for values outside, one of them at a great many rounds."""
    made = []
    for number, family in enumerate(FAMILIES):
        for epsilon in (0.01, 0.7):
            named = family.domain.edges is None and number % 2 == 0
            other = family.domain.names[-1] if named else None
            sampler = dc.OptimalSampler(family, epsilon=epsilon)
            made.append(Agreement.of(sampler, rounds=3, purpose=f"{number}", other=other))
    return made


POOL = agreements()


@dataclass
class Liar:
    """What one collector says, drawn from the grammar by a generator of its own. `addresses`: its own, then the other's."""

    chance: random.Random
    keys: list[CollectorKey]
    addresses: list[str] = field(default_factory=list)
    before: list[dict[str, Any]] = field(default_factory=list)

    def collection(self, wanted: str) -> dict[str, Any]:
        """What it says that it collects, usually with what is asked for; sometimes what it said before."""
        if self.before and self.chance.random() < 0.3:
            return self.chance.choice(self.before)
        chain = self.chance.sample(POOL, self.chance.randint(1, 3))
        asked = [each for each in POOL if each.id == wanted and each not in chain]
        if asked and self.chance.random() < 0.9:
            chain[self.chance.randrange(len(chain))] = asked[0]
        rows: list[dict[str, Any]] = []
        for place, each in enumerate(chain):
            follows = chain[place - 1].id if place else None
            rounds = self.chance.sample([1, 2, 3], self.chance.choice([1, 1, 2]))
            row = {"agreement": each.id, "follows": follows, "rounds": 3, "open": rounds, "purpose": ""}
            rows.append({**row, "signed": self.signed(each.id, chain[0].id, follows)})
        self.chance.shuffle(rows)
        newest = self.chance.choice(rows)["agreement"] if self.chance.random() < 0.3 else chain[-1].id
        enrolment = self.chance.random() < 0.1
        found = {"collection": chain[0].id, "agreement": newest, "round": 1, "enrolment": enrolment, "agreements": rows}
        self.before.append(found)
        return found

    def signed(self, agreement: str, collection: str, follows: str | None) -> Any:
        """A signature of its own, of another key, for another address, of something else; or none."""
        kinds, often = ["none", "own", "other key", "other address", "forged"], [8, 8, 1, 1, 1]
        (kind,) = self.chance.choices(kinds, often)
        if kind == "none":
            return None
        key = self.keys[kind == "other key"]
        addresses = tuple(self.addresses[1:] if kind == "other address" else self.addresses)
        of = POOL[0].id if kind == "forged" else agreement
        return key.sign(
            CollectionStatement(agreement=of, collection=collection, follows=follows, addresses=addresses)
        ).document

    def answer(self, server: Server, line: socket.socket) -> None:
        """Answer the last request that came."""
        path = server.asked[-1].path
        name, _, query = path.partition("?agreement=")
        wanted = next((each for each in POOL if each.id == query), POOL[0])
        if name == "/collection":
            reply = said(200, self.collection(query))
        elif name == "/agreement":
            lie = self.chance.random() < 0.05
            reply = said(200, (self.chance.choice(POOL) if lie else wanted).text.encode())
        else:
            verdicts: list[Any] = [
                said(200, {"counted": 1, "again": 0, "refused": []}),
                said(200, {"counted": 0, "again": 1, "refused": []}),
                said(409, {"error": "spoken"}),
                said(503),
                said(422, {"error": "it is not an outcome"}),
                said(200, {"counted": 1, "again": 1, "refused": [0]}),
                hung_up,
            ]
            reply = self.chance.choice(verdicts)
        reply(server, line)


@contextlib.contextmanager
def two_liars(seed: int) -> Iterator[list[Server]]:
    """Two collectors that know each other's addresses."""
    liars = [Liar(random.Random(2 * seed + which), KEYS[2 * which :]) for which in range(2)]
    paths = ("/collection", "/agreement", "/samples")
    behaviours: list[dict[str, list[Reply]]] = [{path: [liar.answer] for path in paths} for liar in liars]
    with serving(behaviours[0]) as first, serving(behaviours[1]) as second:
        liars[0].addresses = [first.address, second.address]
        liars[1].addresses = [second.address, first.address]
        yield [first, second]


Trace = list[tuple[int, str, str, int]]


def meet(servers: list[Server], seed: int, folder: Path, given: dict[str, Any]) -> Trace:
    """One device and the collectors: what they could see of it, without the samples."""
    chance, trace = random.Random(seed), list[tuple[int, str, str, int]]()
    pins = [None, None, None, *chance.sample(POOL, 2)]
    for _ in range(SENDS):
        which, pin = chance.randrange(2), chance.choice(pins)
        key = KEYS[2 * which].public if chance.random() < 0.2 else None
        round_number = chance.choice([None, None, 1, 2])
        server = servers[which]
        first = len(server.asked)
        client = Client(
            server.address, ledger=folder / "ledger", budget=BUDGET, agreement=pin, key=key, token=TOKEN, patience=0.0
        )
        with contextlib.suppress(DiscreetError):
            client.send(**given, round=round_number)
        trace += [(which, each.method, each.path, len(each.body)) for each in server.asked[first:]]
        assert client.ledger.spent().basic <= 2, "more was spent than allowed"
    return trace


def check_names(servers: list[Server]) -> int:
    """Under one name in one round a collector has one sample, and no name is used with both; how many samples came."""
    names: list[set[str]] = []
    samples = 0
    for server in servers:
        found: dict[tuple[str, str, int], set[str]] = {}
        for each in server.samples():
            samples += 1
            question = (each["client"], each["agreement"] if each["client"] == TOKEN else "", each["round"])
            found.setdefault(question, set()).add(json.dumps([each["agreement"], each["sample"]]))
        assert all(len(said) == 1 for said in found.values()), "two samples under one name for one question"
        names.append({name for name, _, _ in found} - {TOKEN})
    assert not names[0] & names[1], "one name with two collectors"
    return samples


def run(seed: int) -> tuple[int, int]:
    """One meeting, of two devices with different data; how many requests and samples there were. Raises on any violation."""
    chance = random.Random(-1 - seed)
    traces, samples = [], 0
    for given in chance.sample(DATA, 2):
        with tempfile.TemporaryDirectory() as name, two_liars(seed) as servers:
            addresses = [server.address for server in servers]
            trace = meet(servers, seed, Path(name), given)
            samples += check_names(servers)
        traces.append(
            [(which, method, path.replace(addresses[which], ""), length) for which, method, path, length in trace]
        )
    assert traces[0] == traces[1], "requests tell two devices apart"
    return len(traces[0]), samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    requests = samples = 0
    for seed in range(options.seed, options.seed + options.runs):
        try:
            asked, told = run(seed)
        except AssertionError as error:
            raise SystemExit(f"seed {seed}: {error}") from error
        requests, samples = requests + asked, samples + told
    print(f"{options.runs} runs, {requests:,} requests of each device, {samples:,} samples: nothing was found")  # noqa: T201


if __name__ == "__main__":
    main()
