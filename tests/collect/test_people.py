"""Several collections and several people at one browser: limits, records and field mode of `/take-part`, in a real Chromium."""

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.collect._pages import TAKE_PART
from tests.collect.running import Collector, agreed, running
from tests.javascript.browser import chromium, loading_anew, node_modules, until, watched
from tests.soaking import wide

READY = "document.documentElement.dataset.ready"
SAMPLE_SHOWN = "#sample-card:not([hidden])"
RECEIPT_SHOWN = "#receipt-card:not([hidden])"
OBJECTIONS = (
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"
)
LABELS = ["vermilion", "chartreuse", "ultramarine"]
STORED = "Object.fromEntries(Object.entries(localStorage))"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collector, dict[str, dc.Agreement]]]:
    """Three collections side by side; the third has two rounds."""
    folder = tmp_path_factory.mktemp("people")
    made = {
        "first": agreed(folder, LABELS, name="first.json", purpose="the first question"),
        "second": agreed(folder, LABELS, name="second.json", purpose="the second question"),
        "twice": agreed(folder, LABELS, name="twice.json", purpose="asked twice", rounds=2),
    }
    with running(folder, *(f"{name}.json" for name in made), "--round", "1", "--round", "2") as collector:
        yield collector, made
        assert collector.said == ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The one page of a new browser; it must not complain."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    found = context.new_page()
    complaints = watched(found)
    yield found
    assert complaints() == []
    context.close()


def _visit(page: Any, service: Any, kind: str, *, more: str = "") -> None:
    collector, made = service
    page.goto("about:blank")  # an address that differs after its # alone is not loaded anew
    page.goto(f"{collector.address}{TAKE_PART}?agreement={made[kind].id}{more}")
    until(page, READY)


def _draw(page: Any) -> None:
    page.get_by_role("button", name=f"One more of {LABELS[0]}").click()
    page.locator("#draw").click()


def _take_part(page: Any) -> dict[str, Any]:
    """Draw and send; what was sent."""
    _draw(page)
    page.wait_for_selector(SAMPLE_SHOWN)
    body: dict[str, Any] = json.loads(page.locator("#request").inner_text())
    page.locator("#send").click()
    page.wait_for_selector(RECEIPT_SHOWN)
    return body


def _samples(service: Any, kind: str) -> int:
    collector, made = service
    return sum(
        int(collector.get(f"/estimate?agreement={made[kind].id}&round={number}").json["samples"])
        for number in range(1, made[kind].rounds + 1)
    )


@pytest.mark.slow
def test_a_second_collection_takes_a_total_that_the_person_raises(page: Any, service: Any) -> None:
    before = _samples(service, "second")
    _visit(page, service, "first")
    assert page.locator("#limit").input_value() == "1"
    assert page.locator("#total-field").is_hidden()
    assert page.locator("#device-card").is_hidden()  # nothing is kept yet
    sent = [_take_part(page)]
    _visit(page, service, "second")
    assert page.locator("#limit").input_value() == "1"  # a limit of its own
    told = page.locator("#total-told").inner_text()
    assert "You have spent 1 of your total of 1, in one collection at this site. With this sample it is 2." in told
    assert "does not allow it, unless you raise it" in told
    assert "at most 7.39 to 1: from 50\u00a0% sure to 88.1\u00a0% sure" in told  # e^2, rounded up
    _draw(page)
    until(page, "document.getElementById('draw-problem').textContent.includes('budget of 1 does not allow')")
    page.evaluate("document.getElementById('raise').click()")  # fills the field, and no more
    page.evaluate("document.getElementById('draw').click()")  # a script, not the person
    until(page, "document.getElementById('draw-problem').textContent.includes('Only the person raises')")
    assert json.loads(page.evaluate("localStorage.getItem('discreet budget')"))["limit"] == 1
    assert len(page.evaluate("Object.keys(JSON.parse(localStorage.getItem('discreet collector')).spoken)")) == 1
    page.locator("#total").fill("1")
    assert page.locator("#raise").inner_text() == "Raise my total to 2"
    page.locator("#raise").click()
    assert page.locator("#raise").is_hidden()
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    sent.append(json.loads(page.locator("#request").inner_text()))
    page.locator("#send").click()
    page.wait_for_selector(RECEIPT_SHOWN)
    assert _samples(service, "second") == before + 1
    assert sent[0]["client"] != sent[1]["client"]
    kept = json.loads(page.evaluate("localStorage.getItem('discreet budget')"))
    assert (kept["limit"], len(kept["answers"])) == (2, 2)
    _visit(page, service, "second")
    assert "spent 2 of a total of 2, in 2 collections" in page.locator("#device-told").inner_text()


@pytest.mark.slow
def test_a_service_that_calls_everything_a_new_collection_gets_no_more_than_the_total(page: Any, service: Any) -> None:
    """It may lie about collections and rounds; the limit of one bounds its rounds, the total bounds all."""
    _visit(page, service, "twice")
    page.locator("#limit").fill("1.5")
    _take_part(page)  # in round 2, the newest that is open
    lies: dict[str, Any] = {}

    def lie(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), **lies})

    page.route("**/collection*", lie)
    lies["round"] = 1
    _visit(page, service, "twice")
    assert page.locator("#limit").input_value() == "1.5"  # shown, since it does not allow another one
    page.locator("#total").fill("9")
    _draw(page)
    until(page, "document.getElementById('draw-problem').textContent.includes('limit of 1.5 does not allow')")
    lies["collection"] = secrets.token_hex(32)
    _visit(page, service, "twice")
    page.locator("#total").fill("1")
    _draw(page)
    until(page, "document.getElementById('draw-problem').textContent.includes('is less than the 9')")
    kept = json.loads(page.evaluate("localStorage.getItem('discreet budget')"))
    assert (kept["limit"], len(kept["answers"])) == (9, 1)  # what the person raised, and nothing drawn


@pytest.mark.slow
def test_a_record_of_an_earlier_version_is_carried_on(page: Any, service: Any) -> None:
    """It had one limit for the whole site, in both of its books: the sample is found again, and the limit is the total."""
    _visit(page, service, "first")
    sent = _take_part(page)
    page.evaluate(
        """() => {
          const book = JSON.parse(localStorage.getItem("discreet collector"));
          delete book.limits;
          localStorage.setItem("discreet collector", JSON.stringify({ ...book, limit: 1 }));
        }"""
    )
    page.reload()
    page.wait_for_selector(RECEIPT_SHOWN)
    assert json.loads(page.locator("#request").inner_text()) == sent
    _visit(page, service, "second")
    assert page.locator("#limit").input_value() == "1"
    assert page.locator("#total").input_value() == "1"
    assert page.locator("#raise").inner_text() == "Raise my total to 2"


@pytest.mark.slow
def test_somebody_else_has_a_record_of_their_own_and_sees_nothing_of_the_first(page: Any, service: Any) -> None:
    before = _samples(service, "first")
    _visit(page, service, "first")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sent = [_take_part(page)]
    kept = page.evaluate(STORED)
    page.locator("#else-part summary").click()
    assert "no second budget" in page.locator("#else-part").inner_text()
    page.locator("#somebody-else").click()
    until(page, f"{READY} && location.hash.startsWith('#person=2-')")
    assert page.locator("#sample-card").is_hidden()
    assert page.locator("#receipt-card").is_hidden()
    assert sent[0]["key"] not in page.content()
    assert "a budget of your own" in page.locator("#device-told").inner_text()
    assert page.locator("#total-field").is_hidden()
    sent.append(_take_part(page))
    assert _samples(service, "first") == before + 2
    assert len({body["client"] for body in sent}) == len({body["key"] for body in sent}) == 2
    assert {key: value for key, value in page.evaluate(STORED).items() if key in kept} == kept
    page.reload()
    page.wait_for_selector(RECEIPT_SHOWN)  # the address says whose record it is
    assert sent[1]["key"] in page.locator("#receipt").inner_text()
    _visit(page, service, "first")  # an address that names nobody
    assert page.locator("#people button").all_inner_texts() == ["Person 1 of this browser", "Person 2 of this browser"]
    for body in sent:
        assert body["key"] not in page.content()
    assert page.locator("#held-card, #sample-card, #receipt-card, #device-card").locator("visible=true").count() == 0
    page.get_by_role("button", name="Person 1").click()
    page.wait_for_selector(RECEIPT_SHOWN)
    assert sent[0]["key"] in page.locator("#receipt").inner_text()
    _visit(page, service, "first")
    page.locator("#nobody-of-these").click()
    until(page, f"{READY} && location.hash.startsWith('#person=3-')")
    assert page.locator("#held-card").is_visible()
    assert not [url for url in asked if "person" in url]  # how many share a browser is nobody's business


@pytest.mark.slow
def test_forgetting_deletes_one_record_and_says_what_it_does_not_do(page: Any, service: Any) -> None:
    _visit(page, service, "first")
    first = _take_part(page)
    page.locator("#else-part summary").click()
    page.locator("#somebody-else").click()
    until(page, f"{READY} && location.hash.startsWith('#person=2-')")
    second = _take_part(page)
    _visit(page, service, "first", more="#person=1")
    page.wait_for_selector(RECEIPT_SHOWN)
    page.locator("#forget-part summary").click()
    said = page.locator("#forget-part").inner_text()
    for words in ("stays counted", "gives no privacy back", "adds up", "the promise no longer holds", "your decision"):
        assert words in said
    kept = page.evaluate(STORED)
    page.evaluate("document.getElementById('forget').dispatchEvent(new Event('click'))")
    assert page.locator("#device-problem").inner_text().startswith("Only the person can delete a record")
    assert page.evaluate(STORED) == kept
    with loading_anew(page):
        page.locator("#forget").click()
    until(page, READY)
    assert page.locator("#held-card").is_visible()  # as whoever comes new, not as the second
    assert first["key"] not in page.content()
    assert second["key"] not in page.content()
    left = page.evaluate(STORED)
    assert len(left) == 2
    assert all(kept[key] == value and " 2-" in key for key, value in left.items())
    again = _take_part(page)
    assert again["client"] != first["client"]
    assert json.loads(page.evaluate("localStorage.getItem('discreet budget')"))["limit"] == 1


@pytest.mark.slow
def test_five_people_in_field_mode_leave_nothing_to_the_next(page: Any, service: Any) -> None:
    before = _samples(service, "first")
    names = set()
    _visit(page, service, "first", more="&field")
    for _ in range(5):
        assert page.locator("#field-card").is_visible()
        assert page.locator("#live, #limit-field, #total-field, #device-card").locator("visible=true").count() == 0
        assert "keeps no budget of yours" in page.locator("#cost").inner_text()
        sent = _take_part(page)
        assert page.locator("#sample-card").is_hidden()
        shown = page.content()
        for part in (sent["client"], sent["key"]):
            assert part not in shown
        emptied = "[...document.querySelectorAll('#sample-card, #receipt-card')].map((part) => part.outerHTML).join()"
        assert not [label for label in LABELS if label in page.evaluate(emptied)]
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        with loading_anew(page):
            page.locator("#next-after").click()
        until(page, READY)
        assert page.locator("#held-card").is_visible()
        assert sent["client"] not in page.content()
        assert set(page.evaluate("[...document.querySelectorAll('#held input')].map(({ value }) => value)")) == {"0"}
        names.add(sent["client"])
    assert _samples(service, "first") == before + 5
    assert len(names) == 5


def _seconds_left(page: Any) -> int:
    told = re.fullmatch(
        r"This page starts again for the next person in (\d+) s\.", page.locator("#turn-told").inner_text()
    )
    assert told is not None
    return int(told[1])


@pytest.mark.slow
def test_whoever_walks_away_in_field_mode_is_forgotten_and_nothing_is_sent(page: Any, service: Any) -> None:
    before = _samples(service, "first")
    page.clock.install()
    _visit(page, service, "first", more="&field")
    page.clock.run_for(600_000)
    assert page.locator("#turn-told").inner_text() == ""  # nobody is there
    _draw(page)
    page.wait_for_selector(SAMPLE_SHOWN)
    page.clock.run_for(125_000)
    assert 5 <= _seconds_left(page) <= 25  # the real clock goes on beside
    page.get_by_role("button", name="I am still here").click()
    assert page.locator("#turn-told").inner_text() == ""
    page.clock.run_for(135_000)
    assert page.locator("#sample-card").is_visible()
    with loading_anew(page):
        page.clock.run_for(16_000)
    until(page, f"{READY} && !document.getElementById('held-card').hidden")
    assert page.locator("#sample").inner_text() == ""
    sending: list[Any] = []
    page.route("**/samples", lambda route: sending.append(route))  # a network that does not answer
    _draw(page)
    page.wait_for_selector(SAMPLE_SHOWN)
    page.locator("#send").click()
    while not sending:
        page.wait_for_timeout(20)
    page.clock.run_for(15_000)
    page.evaluate("globalThis.stays = true")
    assert _samples(service, "first") == before
    sending.pop().continue_()
    page.wait_for_selector(RECEIPT_SHOWN)
    assert page.evaluate("globalThis.stays")
    assert _samples(service, "first") == before + 1
    page.clock.run_for(5_000)
    assert _seconds_left(page) <= 15
    with loading_anew(page):
        page.clock.run_for(16_000)
    until(page, f"{READY} && !document.getElementById('held-card').hidden")


@pytest.mark.slow
@pytest.mark.parametrize("width", wide([390, 1440], [390]))
def test_everybody_can_use_them(browser: Any, service: Any, tmp_path: Path, width: int) -> None:
    """axe-core finds nothing to object to in any state, and nothing is wider than the screen."""
    checks = (node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, bypass_csp=True)
    page = context.new_page()

    def check() -> None:
        page.evaluate(checks)
        assert page.evaluate(OBJECTIONS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    _visit(page, service, "first", more="&field")
    check()
    _take_part(page)
    check()
    _visit(page, service, "first")
    _take_part(page)
    for part in ("else-part", "forget-part"):
        page.locator(f"#{part} summary").click()
    check()
    _visit(page, service, "second")
    check()
    _visit(page, service, "first")
    page.locator("#else-part summary").click()
    page.locator("#somebody-else").click()
    until(page, f"{READY} && location.hash.startsWith('#person=2-')")
    _take_part(page)
    _visit(page, service, "first")
    check()
    context.close()
