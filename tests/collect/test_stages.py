"""A collection that improves itself: a second stage under a design learned from the store, in which nobody of the first speaks again."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.collect import open_store
from discreet.collect._counting import Verdict
from discreet.collect._results import json_document_of_stages_estimate
from discreet.collect._store import StoredAgreement
from discreet.design import learn
from discreet.estimation import pooled_population, population
from tests.collect.behaviour import DAY, agreed, arrival
from tests.collect.postgres import Server
from tests.collect.running import one, running

LABELS = [f"place {number}" for number in range(8)]
SIMPLEX = dc.Simplex(LABELS)
FIRST = dc.MollifierSampler(SIMPLEX, epsilon=2.0)
AGREED = Agreement.of(FIRST, purpose="Where people were")


def released(clients: int) -> Any:
    """Samples of so many clients, most of whom hold the first few places."""
    rng = np.random.default_rng(5)
    mean = np.geomspace(1.0, 0.02, 8)
    return np.asarray(FIRST.release(rng.dirichlet(6 * mean / mean.sum(), clients))).tolist()


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.slow
def test_a_second_stage_is_designed_from_the_first_and_refuses_its_clients(tmp_path: Path) -> None:
    AGREED.write(tmp_path / "first.json")
    sent = released(2_000)
    rows = [{"client": f"client-{n}", "key": f"key-{n}", "sample": sample} for n, sample in enumerate(sent)]
    with running(tmp_path, "first.json", "--store", "store.db") as collector:
        answer = collector.send({"agreement": AGREED.id, "round": 1, "samples": rows})
        assert answer.json == {"counted": 2_000, "again": 0, "refused": []}

    store, second = str(tmp_path / "store.db"), tmp_path / "second.json"
    found = run("design", "--epsilon", "2", "-q", "--from", store, "-o", str(second), "--json")
    assert found.exit_code == 0, found.output
    counts = np.array([sent.count(label) for label in LABELS])
    expected = learn(SIMPLEX, epsilon=2.0, rounds=[(FIRST, counts)])
    made = json.loads(found.stdout)
    designed = Agreement.read(second)
    assert made["agreement"] == designed.id
    assert designed.sampler() == expected.sampler
    assert designed.learned_from == (AGREED.id,)
    assert designed.stated_purpose == AGREED.purpose == "Where people were"
    assert not made["identifiable"]
    assert made["published"]  # so many say enough for a design
    assert made["learned_from"] == [{"agreement": AGREED.id, "samples": 2_000}]
    assert made["notes"] == []

    with running(tmp_path, "second.json", "--store", "store.db", "--follows", AGREED.id) as collector:
        known = collector.get("/collection").json
        assert (known["collection"], known["agreement"]) == (AGREED.id, designed.id)
        label = LABELS[0]
        spoken = collector.send(one(designed, "client-7", label))
        assert spoken.status == 409
        fresh = collector.send(one(designed, "somebody-else", label))
        assert (fresh.status, fresh.json["counted"]) == (200, 1)
        again = collector.send(one(AGREED, "somebody-else", label, key="another"))
        assert again.status == 409  # nor the other way round
        told = [collector.get(f"/estimate?agreement={each.id}").json["samples"] for each in (AGREED, designed)]
        assert told == [2_000, 1]
        known = collector.get("/collection").json
        assert known["stages"] == [AGREED.id, designed.id]
        pooled = collector.get("/pooled").json
        together = pooled_population(
            [
                population(FIRST, counts=counts),
                population(designed.sampler(), counts=[int(each == label) for each in LABELS]),
            ]
        )
        assert [(stage["agreement"], stage["clients"]) for stage in pooled["stages"]] == [
            (AGREED.id, 2_000),
            (designed.id, 1),
        ]
        for name in ("estimate", "low", "high", "all_low", "all_high"):
            assert [share["law"][name] for share in pooled["shares"]] == getattr(together.law, name).tolist()
        assert pooled["notes"] == list(together.doubts) != []
    for number, each in enumerate((AGREED, designed)):
        assert run("export", store, "-o", f"{tmp_path}/{number}.parquet", "--agreement", each.id).exit_code == 0
    files = [f"{tmp_path}/0.parquet", f"{tmp_path}/1.parquet"]
    asked = json.loads(run("estimate", *files, "--json").stdout)
    assert asked["shares"] == pooled["shares"]
    assert asked["notes"][0].startswith("that no client is in two of the files is assumed")  # exports number their rows
    assert json.loads(run("estimate", *files, "--numbered", "--json").stdout) == asked


@pytest.mark.slow
def test_stages_are_pooled_round_by_round(tmp_path: Path) -> None:
    first, second = (
        Agreement.of(dc.LinearSampler(SIMPLEX, epsilon=epsilon), rounds=rounds)
        for epsilon, rounds in ((1.0, 2), (2.0, 1))
    )
    first.write(tmp_path / "first.json")
    second.write(tmp_path / "second.json")
    with running(tmp_path, "first.json", "--store", "store.db") as collector:
        collector.send(one(first, "a", LABELS[0]))
    with running(
        tmp_path, "second.json", "--store", "store.db", "--follows", first.id, "--round", "1", "--round", "2"
    ) as collector:
        collector.send(one(second, "b", LABELS[1]))
        collector.send(one(first, "a", LABELS[2], key="again", round=2))
        assert [stage["clients"] for stage in collector.get("/pooled?round=1").json["stages"]] == [1, 1]
        later = collector.get(f"/pooled?round=2&agreement={first.id}").json
        assert ([stage["agreement"] for stage in later["stages"]], later["round"]) == ([first.id], 2)
        assert later["stages"][0]["number"] == 1
        assert later["notes"][0] == "stage 2 of 2 with too few samples left out"  # it has no second round


def test_notes_on_stages_number_the_hidden_ones_too() -> None:
    stages = [StoredAgreement(AGREED, AGREED.id, least=100) for _ in range(3)]
    likely = [9, 0, 0, 0, 0, 0, 0, 0], [125] * 8, [1000, 0, 0, 0, 0, 0, 0, 0]
    counts = [np.array(each) for each in likely]
    found = json_document_of_stages_estimate(stages, [FIRST] * 3, counts, 0.95)
    assert [(stage["number"], stage["clients"]) for stage in found["stages"]] == [(2, 1000), (3, 1000)]
    assert found["notes"][0] == "stage 1 of 3 with too few samples left out"
    assert found["notes"][1].startswith("stage 3: 'place 0' makes up 1 of the samples")
    few = json_document_of_stages_estimate(stages, [FIRST] * 3, [counts[0]] * 3, 0.95)
    assert few["notes"] == ["stages 1, 2, 3 of 3 with too few samples left out"]


class Learning:
    """What is learned from a store, by the name that a fixture gives it."""

    def test_all_agreements_of_a_collection_are_learned_from(self, where: str, tmp_path: Path) -> None:
        second = Agreement.of(dc.OptimalSampler(SIMPLEX, epsilon=2.0))
        unused = Agreement.of(dc.LinearSampler(SIMPLEX, epsilon=2.0))
        sent = [LABELS.index(label) for label in released(600)]
        with closing(open_store(where)) as store:
            store.add(AGREED)
            store.add(second, follows=AGREED.id)
            store.add(unused, follows=second.id)
            store.count_arrivals(AGREED.id, 1, [arrival(n, outcome) for n, outcome in enumerate(sent[:400])], DAY)
            store.count_arrivals(second.id, 1, [arrival(400 + n, outcome) for n, outcome in enumerate(sent[400:])], DAY)
        asked = ("design", "--epsilon", "2", "-q", "--from", where, "--json")
        found = run(*asked, "-o", str(tmp_path / "next.json"))
        assert found.exit_code == 0, found.output
        made = json.loads(found.stdout)
        assert made["learned_from"] == [
            {"agreement": AGREED.id, "samples": 400},
            {"agreement": second.id, "samples": 200},
        ]
        assert made["notes"] == []

        apart = agreed(8)
        with closing(open_store(where)) as store:
            store.add(apart)
            assert store.count_arrivals(apart.id, 1, [arrival("ann")], DAY) == [Verdict.COUNTED]
        said = run(*asked, "-o", str(tmp_path / "other.json"))
        assert said.exit_code == 2
        assert "the store holds 2 collections" in said.stderr
        second.write(tmp_path / "second.json")
        again = run(*asked, "--agreement", str(tmp_path / "second.json"), "-o", str(tmp_path / "again.json"))
        assert json.loads(again.stdout)["learned_from"] == made["learned_from"]
        agreed(9).write(tmp_path / "nine.json")
        said = run(*asked, "--agreement", str(tmp_path / "nine.json"), "-o", str(tmp_path / "other.json"))
        assert "holds no samples under agreement" in said.stderr
        assert not (tmp_path / "other.json").exists()

    def test_a_store_beside_a_file_of_samples_leaves_a_doubt(self, where: str, tmp_path: Path) -> None:
        with closing(open_store(where)) as store:
            store.add(AGREED)
            store.count_arrivals(AGREED.id, 1, [arrival(n, n % 8) for n in range(40)], DAY)
        out = str(tmp_path / "out.parquet")
        assert run("export", where, "-o", out).exit_code == 0
        found = run(
            "design", "--epsilon", "2", "-q", "--from", where, "--from", out, "-o", str(tmp_path / "d.json"), "--json"
        )
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["notes"] == [
            "not all files name their clients; it is not checked that each sent one sample"
        ]

    def test_rounds_after_the_first_are_not_learned_from(self, where: str, tmp_path: Path) -> None:
        twice = Agreement.of(FIRST, rounds=2)
        with closing(open_store(where)) as store:
            store.add(twice)
            for number in (1, 2):
                store.count_arrivals(twice.id, number, [arrival(n, n % 8) for n in range(40)], DAY)
        found = run("design", "--epsilon", "2", "-q", "--from", where, "-o", str(tmp_path / "d.json"), "--json")
        made = json.loads(found.stdout)
        assert made["samples"] == 40
        assert made["notes"] == ["only the first of several rounds is used: each client has a sample in every round"]

    def test_nothing_is_learned_from_nothing(self, where: str, tmp_path: Path) -> None:
        with closing(open_store(where)) as store:
            asked = ("design", "--epsilon", "2", "-q", "--from", where, "-o", str(tmp_path / "d.json"))
            assert "holds no samples yet" in run(*asked).stderr
            store.add(AGREED)
            assert "holds no samples yet" in run(*asked).stderr
        assert not (tmp_path / "d.json").exists()


@pytest.mark.slow
class TestFile(Learning):
    @pytest.fixture
    def where(self, tmp_path: Path) -> str:
        return str(tmp_path / "store.db")


@pytest.mark.slow
class TestDatabase(Learning):
    @pytest.fixture
    def where(self, postgres: Server) -> str:
        return postgres.database()
