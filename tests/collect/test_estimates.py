"""Estimates of a running collection: as fresh as what was counted, computed once for all who ask, and told by a tag if nothing changed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.collect import _catalogue as estimates
from discreet.collect._catalogue import CONFIDENCES, Catalogue, EstimateRequest, Estimates, TaggedEstimate
from discreet.collect._counting import Arrival, text_digest
from discreet.collect._requests import RequestProblem
from discreet.collect._sqlite import SqliteStore
from tests.collect.running import agreed, one, running
from tests.soaking import wide


class Counting(SqliteStore):
    """A store that notes how often counts were read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads, self._noting = 0, threading.Lock()

    def outcome_counts(self, agreement: str, round: int) -> Any:
        with self._noting:
            self.reads += 1
        return super().outcome_counts(agreement, round)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Counting]:
    opened = Counting(tmp_path / "samples.db")
    opened.add(agreed(tmp_path))
    yield opened
    opened.close()


def test_many_who_ask_at_once_are_told_what_is_computed_once(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "OTHERS_SECONDS", 1e9)
    version, took = [0], list[float]()
    (collected,) = Catalogue(store, (1,)).all_agreements
    made = Estimates(store, lambda: version[0], took.append)

    async def main() -> None:
        told = await asyncio.gather(
            *(made.current_estimate(EstimateRequest("estimate", ((collected, 1),), "0.95")) for _ in range(50))
        )
        assert len({each.tag for each in told}) == 1
        assert (store.reads, len(took)) == (1, 1)
        store.count_arrivals(collected.id, 1, [Arrival(text_digest("a"), text_digest("k"), 3)], "2026-01-01")
        version[0] += 1
        told = await asyncio.gather(
            *(made.current_estimate(EstimateRequest("estimate", ((collected, 1),), "0.95")) for _ in range(50))
        )
        assert {json.loads(each.body)["samples"] for each in told} == {1}
        assert (store.reads, len(took)) == (2, 2)
        version[0] += 1  # something was written, but not here
        assert (await made.current_estimate(EstimateRequest("estimate", ((collected, 1),), "0.95"))).tag == told[0].tag
        assert (store.reads, len(took)) == (3, 2)

    asyncio.run(main())


def test_what_other_processes_write_is_seen_soon(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "OTHERS_SECONDS", 0.0)
    (collected,) = Catalogue(store, (1,)).all_agreements
    made = Estimates(store, lambda: 0, lambda took: None)

    async def main() -> None:
        assert (
            json.loads((await made.current_estimate(EstimateRequest("estimate", ((collected, 1),), "0.95"))).body)[
                "samples"
            ]
            == 0
        )
        store.count_arrivals(collected.id, 1, [Arrival(text_digest("a"), text_digest("k"), 3)], "2026-01-01")
        assert (
            json.loads((await made.current_estimate(EstimateRequest("estimate", ((collected, 1),), "0.95"))).body)[
                "samples"
            ]
            == 1
        )

    asyncio.run(main())


def test_answers_are_kept_for_a_few_questions_alone(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "MOST_KEPT", 3)
    (collected,) = Catalogue(store, (1,)).all_agreements
    made = Estimates(store, lambda: 0, lambda took: None)

    async def main() -> None:
        for confidence in CONFIDENCES:
            told = await made.current_estimate(EstimateRequest("estimate", ((collected, 1),), confidence))
            assert json.loads(told.body)["confidence"] == float(confidence)
        with pytest.raises(RequestProblem):
            await made.current_estimate(EstimateRequest("estimate", ((collected, 1),), "0.123"))

    asyncio.run(main())
    assert len(made._last) == 3


def test_the_tag_of_an_estimate_that_is_hidden_does_not_tell_its_counts(tmp_path: Path) -> None:
    """Few samples have few possible counts: a digest of the counts could be compared with those of all."""

    def answer_to_samples(*outcomes: int) -> TaggedEstimate:
        with closing(SqliteStore(tmp_path / f"{outcomes}.db")) as store:
            store.add(agreement)
            store.hide_estimates_below(5)
            arrivals = [Arrival(text_digest(str(place)), text_digest("k"), each) for place, each in enumerate(outcomes)]
            store.count_arrivals(agreement.id, 1, arrivals, "2026-01-01")
            (collected,) = Catalogue(store, (1,)).all_agreements
            asked = EstimateRequest("estimate", ((collected, 1),), "0.95")
            return asyncio.run(Estimates(store, lambda: 0, lambda took: None).current_estimate(asked))

    agreement = agreed(tmp_path)
    assert answer_to_samples(0, 1, 2) == answer_to_samples(3, 3, 3)
    assert answer_to_samples(0, 1, 2).tag != answer_to_samples(0, 1).tag


def test_an_estimate_counts_what_was_acknowledged_before_it_was_asked_for(tmp_path: Path) -> None:
    agreement = agreed(tmp_path)
    with running(tmp_path, "agreement.json") as collector:
        for number in range(1, wide(30, 10)):
            assert collector.send(one(agreement, f"c{number}", number % 5)).json["counted"] == 1
            answer = collector.get("/estimate")
            assert answer.json["samples"] == number
        tag = answer.headers["ETag"]
        again = collector.ask("GET", "/estimate", headers={"If-None-Match": f'"other", {tag}'})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        narrow, broad = (
            collector.get(f"/estimate?confidence={level}").json["shares"][0]["law"] for level in ("0.5", "0.99")
        )
        assert narrow["high"] - narrow["low"] < broad["high"] - broad["low"]
