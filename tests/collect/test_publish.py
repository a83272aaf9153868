"""The end of a collection: it is closed, published as a folder that does not change, and hides what too few samples would say."""

import csv
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.client import Client
from discreet.collect import close_collection, open_store, publish
from discreet.collect._counting import Arrival, create_seal_file, reports_as_signed_integers, text_digest
from discreet.collect._pages import LIVE, TAKE_PART
from discreet.collect._published_page import _height_and_svg_of_bar_columns, _height_and_svg_of_bar_rows
from discreet.errors import CollectorError, DiscreetError
from tests.client.flights import command
from tests.collect.frozen import check_published
from tests.collect.running import Collector, agreed, one, running
from tests.javascript.browser import chromium, node_modules, until, watched
from tests.soaking import wide

MARKUP = "<img src=x onerror=document.title=1>"
DAY = "2026-07-01"
SAMPLERS: dict[str, Any] = {
    "labels": dc.LinearSampler(dc.Simplex([MARKUP, "أحمر", "$title", "a\u202eb", "x" * 300, 'a"b&c', ""]), epsilon=1.0),
    "many": dc.OptimalSampler(dc.Simplex([f"town {number}" for number in range(500)]), epsilon=2.0),
    "numbers": dc.LinearSampler(dc.Simplex(12), epsilon=0.5),
    "cells": dc.LinearSampler(dc.Simplex(dc.Interval(0.0, 50.0, cells=20)), epsilon=1.0),
    "one": dc.LinearSampler(dc.Simplex(["alone"]), epsilon=1.0),
    "line": dc.OptimalSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=1.0),
    "reports": dc.ReportSampler(dc.Simplex([f"town {number}" for number in range(104)]), epsilon=1.0),
}
ORDERED = ("numbers", "cells", "line")
OBJECTIONS = (
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"
)


def _filled(path: Path, kind: str, many: int = 300) -> dc.Agreement:
    """A store with so many samples of an agreement."""
    agreement = dc.Agreement.of(SAMPLERS[kind], purpose=f"{kind} {MARKUP}")
    rng = np.random.default_rng(7)
    with closing(open_store(path)) as store:
        store.add(agreement)
        if kind == "reports":
            towns = [f"town {number % 9}" for number in range(many)]
            said = reports_as_signed_integers(agreement.report_sampler().release_records(towns)).tolist()
        else:
            size = len(store.outcome_counts(agreement.id, 1))
            said = np.minimum(rng.geometric(0.2, many) - 1, size - 1).tolist()
        rows = [Arrival(text_digest(str(n)), text_digest("key", str(n)), sample) for n, sample in enumerate(said)]
        store.count_arrivals(agreement.id, 1, rows, DAY)
    return agreement


def _estimated(folder: Path, store: Path, confidence: float, statistics: tuple[str, ...]) -> Any:
    """What `discreet estimate` says of the export of a store."""
    output = folder / f"{secrets.token_hex(4)}.parquet"
    command("export", str(store), "-o", str(output))
    words = [word for name in statistics for word in ("--statistic", name)]
    return json.loads(command("estimate", str(output), "--json", "--confidence", str(confidence), *words))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLERS)
def test_the_published_numbers_are_those_of_estimate_to_the_last_digit(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "samples.db"
    _filled(path, kind)
    with pytest.raises(AssertionError, match="is still collected, and a result that is published must not change"):
        command("publish", str(path), "-o", str(tmp_path / "result"))
    assert not (tmp_path / "result").exists()
    command("close", str(path))
    for confidence in (0.95, 0.8):
        folder = tmp_path / f"result {confidence}"
        command("publish", str(path), "-o", str(folder), "--confidence", str(confidence))
        statistics = ("mean", "median") if kind in ("numbers", "cells") else ()
        check_published(folder, _estimated(tmp_path, path, confidence, statistics), ordered=kind in ORDERED)
    command("publish", str(path), "-o", str(tmp_path / "again"))
    files = sorted(each.name for each in (tmp_path / "again").iterdir())
    assert {"agreement.json", "estimate.csv", "estimate.json", "index.html", "picture.svg"} <= set(files)
    for name in files:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "result 0.95" / name).read_bytes()
    page = (tmp_path / "again" / "index.html").read_text(encoding="utf-8")
    assert MARKUP not in page
    assert "$" not in page.replace("$title", "")
    assert dc.Agreement.read(tmp_path / "again" / "agreement.json").purpose == f"{kind} {MARKUP}"


@pytest.mark.parametrize(("kind", "picked"), [("many", True), ("labels", False), ("cells", False)])
def test_a_page_says_that_the_largest_of_many_shares_were_picked(tmp_path: Path, kind: str, picked: bool) -> None:
    _filled(tmp_path / "samples.db", kind)
    with closing(open_store(tmp_path / "samples.db")) as store:
        close_collection(store)
        publish(store, tmp_path / "result")
    page = (tmp_path / "result" / "index.html").read_text(encoding="utf-8")
    assert ("the largest of many shares, which are large partly by chance" in page) == picked


@pytest.mark.filterwarnings("ignore::discreet.errors.LargeEpsilonWarning")
@pytest.mark.parametrize(
    ("sampler", "says"),
    [
        (
            dc.LinearSampler(dc.Simplex(3), epsilon=1.0),
            "epsilon = 1: it moves odds about its person by a factor of at most 2.72.",
        ),
        (dc.LinearSampler(dc.Simplex(3), privacy=dc.Gaussian(1.0)), "1-Gaussian LDP (pure epsilon = {epsilon:g})."),
        (800.0, "epsilon = 800, which is hardly any privacy."),
    ],
)
def test_a_sealed_store_of_any_promise_is_published_and_the_page_names_the_promise(
    tmp_path: Path, sampler: Any, says: str
) -> None:
    path, seal = tmp_path / "samples.db", tmp_path / "seal"
    agreement = dc.Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=sampler) if sampler == 800.0 else sampler)
    create_seal_file(seal)
    with closing(open_store(path, seal=seal)) as store:
        store.add(agreement)
        store.seal_pool_if_key_given()
        store.count_arrivals(
            agreement.id, 1, [Arrival(text_digest(str(n)), text_digest("k", str(n)), n % 3) for n in range(50)], DAY
        )
    command("close", str(path))
    with pytest.raises(AssertionError, match="seal"):
        command("publish", str(path), "-o", str(tmp_path / "result"))
    command("publish", str(path), "-o", str(tmp_path / "result"), "--seal", str(seal))
    assert says.format(epsilon=agreement.epsilon) in (tmp_path / "result" / "index.html").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "result" / "estimate.json").read_text(encoding="utf-8"))
    assert [share["samples"] for share in found["shares"]] == [17, 17, 16]


def test_what_cannot_be_published_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "samples.db"
    agreement = _filled(path, "numbers", 20)
    with closing(open_store(path)) as store:
        other = agreed(tmp_path, 3, purpose="another collection")
        store.add(other)
        with pytest.raises(DiscreetError, match="keeps 2 collections, and closing is for good"):
            close_collection(store)
        closed, day = close_collection(store, agreement=agreement.id[:12])
        assert closed.closed == day == close_collection(store, agreement=agreement.id)[1]
        close_collection(store, agreement=other.id)
        refused: list[tuple[Path, dict[str, Any], str]] = [
            (tmp_path, {}, "exists; name a new one"),
            (path, {}, "store|exists"),
            (tmp_path / "missing" / "result", {}, "cannot be made"),
            (tmp_path / "result", {"agreement": other.id}, "no samples in round 1; there is nothing to publish"),
            (tmp_path / "result", {"confidence": 1.0}, "confidence"),
            (tmp_path / "result", {"round": 2}, "round"),
        ]
        for folder, wrong, says in refused:
            with pytest.raises(DiscreetError, match=says):
                publish(store, folder, **{"agreement": agreement.id, **wrong})
        store.hide_estimates_below(21)
        with pytest.raises(DiscreetError, match="20 samples in round 1, and estimates of fewer than 21 are hidden"):
            publish(store, tmp_path / "result", agreement=agreement.id)
        store.hide_estimates_below(20)
        publish(store, tmp_path / "result", agreement=agreement.id)
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith("samples.db")) == [
        "agreement.json",
        "result",
    ]


def _equal_shares(count: int, share: float) -> list[dict[str, Any]]:
    law = dict.fromkeys(("estimate", "low", "high", "all_low", "all_high"), share)
    return [{"outcome": str(number), "reports": 0, "law": law} for number in range(count)]


@pytest.mark.parametrize(("has_order", "says"), [(True, "10 later ones are"), (False, "10 smaller ones are")])
def test_a_picture_says_which_rows_it_omits(has_order: bool, says: str) -> None:
    _, parts = _height_and_svg_of_bar_rows(_equal_shares(40, 1 / 40), "reports", has_order=has_order)
    assert says in parts[-1]


@pytest.mark.parametrize("picture", [_height_and_svg_of_bar_rows, _height_and_svg_of_bar_columns])
def test_shares_that_are_all_0_have_an_axis(picture: Any) -> None:
    assert "0.0001 %" in "".join(picture(_equal_shares(3, 0.0), "reports")[1])


def test_the_table_can_be_read_whatever_the_labels_are(tmp_path: Path) -> None:
    labels = ["plain", "a\r=1+1", "b\r\nc", 'd"e,\n', "=2+2", ""]
    agreement = agreed(tmp_path, labels)
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(agreement)
        store.count_arrivals(agreement.id, 1, [Arrival(text_digest("a"), text_digest("k"), 0)], "2026-01-01")
        close_collection(store)
        publish(store, tmp_path / "result")
    with (tmp_path / "result" / "estimate.csv").open(newline="", encoding="utf-8") as file:
        heads, *rows = csv.reader(file)
    assert [row[0] for row in rows] == labels
    assert {len(row) for row in rows} == {len(heads)}


def _until_closed(collector: Collector) -> Any:
    """What the service says of the collection, once it has looked at its store again."""
    for _ in range(200):
        found = collector.get("/collection").json
        if found["closed"] is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("the service never says that the collection is closed")


def test_a_closed_collection_answers_clearly_and_counts_nothing(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, 5)
    path = tmp_path / "samples.db"
    with running(tmp_path, "agreement.json") as collector:
        sent = [one(agreement, secrets.token_hex(8), 2) for _ in range(3)]
        before = [collector.send(each) for each in sent]
        device = Client(collector.address, ledger=tmp_path / "device.ledger", budget=1.0)
        receipt = device.send(records=[1])
        command("close", str(path))
        late = collector.send(one(agreement, secrets.token_hex(8), 2))
        assert (late.status, late.json["error"]) == (410, "this collection is closed; nothing was counted")
        again = collector.send(sent[0])
        assert (again.status, again.json) == (200, {"counted": 0, "again": 1, "refused": []})
        other = collector.send({**sent[0], "key": "another"})
        assert other.status == 409
        lengths = {_length(each) for each in (*before, late, again, other)}
        assert len(lengths) == 1  # whoever watches does not see who had sent
        rows = [{name: each[name] for name in ("client", "key", "sample")} for each in (sent[0], sent[1])]
        rows += [{"client": "new", "key": "k", "sample": 0}, {**rows[0], "key": "another"}]
        batch = collector.send({"agreement": agreement.id, "round": 1, "samples": rows})
        told = {"counted": 0, "again": 2, "refused": [3], "closed": [2]}
        assert (batch.status, {name: batch.json[name] for name in told}) == (410, told)
        said = _until_closed(collector)
        assert said["agreements"][0]["open"] == []
        estimate = collector.get("/estimate").json
        assert (estimate["samples"], estimate["closed"]) == (4, said["closed"])
        same = device.send(records=[3])
        assert (same.counted, same.sample) == (False, receipt.sample)
        newcomer = Client(collector.address, ledger=tmp_path / "new.ledger", budget=1.0)
        for number in (None, 1):
            with pytest.raises(CollectorError, match=r"was closed on .*: nothing was drawn or sent"):
                newcomer.send(records=[1], round=number)
        assert newcomer.ledger.entries() == []
        assert collector.stop() == 0
        assert collector.said == ""
    second = agreed(tmp_path, 5, name="second.json", purpose="the second")
    with pytest.raises(AssertionError, match=r"was closed on .*: nothing would be counted"):
        command(
            "collect", str(tmp_path / "second.json"), "--store", str(path), "--follows", agreement.id, "--port", "0"
        )
    with closing(open_store(path)) as store:
        assert second.id not in [each.agreement.id for each in store.agreements()]
        assert store.outcome_counts(agreement.id, 1).sum() == 4


def _length(answer: Any) -> int:
    """The bytes of an answer, with its status line and headers, but for names in them that are always there."""
    phrase = {200: "OK", 409: "Conflict", 410: "Gone"}[answer.status]
    return len(phrase) + sum(len(name) + len(value) for name, value in answer.headers.items()) + len(answer.body)


@pytest.mark.parametrize("kind", wide(["numbers", "reports"], ["reports"]))
def test_estimates_of_few_samples_are_hidden_everywhere_until_there_are_enough(tmp_path: Path, kind: str) -> None:
    agreement = dc.Agreement.of(SAMPLERS[kind], purpose=kind)
    agreement.write(tmp_path / "agreement.json")
    released = "reports" if kind == "reports" else "samples"
    sample: Any = "7" if kind == "reports" else 7
    with running(tmp_path, "agreement.json", "--least", "5") as collector:
        for number in range(6):
            found = collector.get("/estimate").json
            assert (found[released], bool(found["shares"])) == (number, number >= 5)
            if number < 5:
                assert found["least"] == 5
                assert found["notes"] == [f"estimates are shown from 5 {released} on"]
                assert not {"liars", "margin_at_worst", "identifiable"} & found.keys()
                with pytest.raises(AssertionError, match=r"are hidden|nothing to export"):
                    command("export", str(tmp_path / "samples.db"), "-o", str(tmp_path / f"{number}.parquet"))
            else:
                command("export", str(tmp_path / "samples.db"), "-o", str(tmp_path / f"{number}.parquet"))
            assert collector.send(one(agreement, secrets.token_hex(8), sample)).status == 200
    with running(tmp_path, "--store", "samples.db") as collector:  # a restart without the option shows no more
        assert collector.send(one(agreement, secrets.token_hex(8), sample)).status == 200
    with running(tmp_path, "--store", "samples.db", "--least", "100") as collector:
        found = collector.get("/estimate").json
        assert (found[released], found["shares"], found["least"]) == (7, [], 100)
    with running(tmp_path, "--store", "samples.db", "--least", "0") as collector:
        assert collector.get("/estimate").json["shares"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.slow
def test_pages_say_that_few_are_hidden_and_that_a_collection_is_closed(tmp_path: Path, browser: Any) -> None:
    agreement = agreed(tmp_path, ["red", "green", "blue"])
    checks = (node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 844}, bypass_csp=True)
    live, taking, late = context.new_page(), context.new_page(), browser.new_context().new_page()
    complaints = [watched(page) for page in (live, taking, late)]
    with running(tmp_path, "agreement.json", "--least", "3") as collector:
        live.goto(f"{collector.address}{LIVE}")
        until(live, "document.getElementById('nothing').textContent.includes('fewer than 3')")
        taking.goto(f"{collector.address}{TAKE_PART}")
        taking.get_by_role("button", name="One more of red").click()
        taking.locator("#draw").click()
        taking.locator("#send").click()
        taking.wait_for_selector("#receipt-card:not([hidden])")
        until(live, "document.getElementById('samples').dataset.number === '1'")
        told = "Estimates of fewer than 3 samples are not shown. 1 has come so far."
        until(live, f"document.getElementById('nothing').textContent === '{told}'")
        assert live.locator("#population, #width-figure, #liars-figure").locator("visible=true").count() == 0
        for number in range(2):
            assert collector.send(one(agreement, f"{number}", "blue")).status == 200
        live.wait_for_selector("#rows li")
        assert live.locator("#nothing").is_hidden()
        assert live.locator("#closed").is_hidden()
        command("close", str(tmp_path / "samples.db"))
        _until_closed(collector)
        live.reload()
        until(live, "document.getElementById('closed').textContent.includes('was closed on')")
        live.wait_for_selector("#rows li")
        assert live.locator("#take-part").is_hidden()
        live.evaluate(checks)
        assert live.evaluate(OBJECTIONS) == []
        taking.reload()
        taking.wait_for_selector("#receipt-card:not([hidden])")  # who has taken part finds what they said
        taking.locator("#send").click()
        until(taking, "document.getElementById('thanks').textContent.includes('arrived before')")
        late.goto(f"{collector.address}{TAKE_PART}")
        until(late, "document.getElementById('problem').textContent.startsWith('This collection was closed on')")
        assert late.locator("#held-card, #asked-card").locator("visible=true").count() == 0
        assert [found for each in complaints for found in each()] == []
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "width", "scheme"), [("labels", 390, "dark"), ("cells", 1440, "light")])
def test_everybody_can_read_a_published_page_from_a_disk(
    tmp_path: Path, browser: Any, kind: str, width: int, scheme: str
) -> None:
    path = tmp_path / "samples.db"
    _filled(path, kind)
    with closing(open_store(path)) as store:
        close_collection(store)
        publish(store, tmp_path / "result")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints = watched(page)
    page.goto((tmp_path / "result" / "index.html").as_uri())
    page.evaluate((node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    assert page.evaluate(OBJECTIONS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('img').naturalWidth") == 900
    assert page.locator("h1").text_content() == f"{kind} {MARKUP}"
    assert page.title() == f"{kind} {MARKUP}"
    assert complaints() == []
    context.close()
