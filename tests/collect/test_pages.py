"""The pages of a collection, in a real Chromium, of a real service: their numbers are its own, and a visitor is counted once."""

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import discreet as dc
from discreet.client._protocol import client_name_in_collection, sample_idempotency_key, short_key_text
from discreet.collect._pages import LIVE, TAKE_PART, write_fresh_token_file
from tests.collect.running import Collector, agreed, one, running
from tests.javascript.browser import (
    CLIENT,
    ROOT,
    chromium,
    new_context,
    node,
    node_modules,
    until,
    watched,
)
from tests.soaking import wide

PAGES = ROOT / "src" / "discreet" / "collect" / "pages"
MARKUP = "<img src=x onerror=document.title=1>"
LABELS = [MARKUP, "أحمر", "蓝色", "🦊", "a\u202eb", "x" * 300, "two words", ""]
KINDS: dict[str, Any] = {
    "labels": LABELS,
    "numbers": 12,
    "cells": dc.Interval(0.0, 50.0, cells=20),
    "fine": dc.Interval(0.0, 1.0, cells=300),
    "many": [f"town {number}" for number in range(1000)],
    "visited": ["red", "green", "blue"],
    "typed": ["red", "green", "blue"],
    "others": ["red", "grün", "蓝色", 'a"b\\c', "something else", "x" * 130 + "1", "x" * 130 + "2"],
    "quiet": ["red", "green", "blue"],
}
OTHERS = {"others": "something else", "quiet": None}
OBJECTIONS = (
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"
)
WIDE = "document.documentElement.scrollWidth"
READY = "document.documentElement.dataset.ready"
SHOWN = """[...document.querySelectorAll('[data-estimate]')].map(({ dataset: { samples, estimate, low, high } }) =>
  [samples, estimate, low, high].map(Number))"""


@dataclass
class Collection:
    """A service with an agreement of every kind, side by side."""

    collector: Collector
    agreements: dict[str, dc.Agreement] = field(default_factory=dict)

    def address(self, page: str, kind: str) -> str:
        return f"{self.collector.address}{page}?agreement={self.agreements[kind].id}"

    def estimate(self, kind: str) -> Any:
        return self.collector.get(f"/estimate?agreement={self.agreements[kind].id}").json

    def send(self, kind: str, samples: list[Any]) -> None:
        """Send samples, each of another client."""
        rows = [{"client": secrets.token_hex(16), "key": "k", "sample": sample} for sample in samples]
        found = self.collector.send({"agreement": self.agreements[kind].id, "round": 1, "samples": rows})
        assert found.json["counted"] == len(samples)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    folder = tmp_path_factory.mktemp("pages")
    made = {
        kind: agreed(
            folder,
            of,
            name=f"{kind}.json",
            purpose=f"{kind} {MARKUP}",
            rounds=1 + (kind == "numbers"),
            other=OTHERS.get(kind),
        )
        for kind, of in KINDS.items()
    }
    made["continuous"] = dc.Agreement.of(
        dc.OptimalSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=1.0)
    )
    made["continuous"].write(folder / "continuous.json")
    with running(folder, *(f"{kind}.json" for kind in made)) as collector:
        found = Collection(collector, made)
        found.send("labels", [LABELS[number % 3] for number in range(60)])
        found.send("numbers", [number % 5 for number in range(60)])
        found.send("cells", [number / 2.0 for number in range(60)])
        found.send("fine", [number / 60.0 for number in range(60)])
        found.send("many", [f"town {number % 40}" for number in range(60)])
        found.send("continuous", [number / 30.0 - 1.0 for number in range(60)])
        yield found
        assert collector.said == ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def visits(browser: Any) -> Iterator[Any]:
    """What one person after another opens pages in: a second page costs a fifth of what another browser's memory does."""
    context = new_context(browser, viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture
def person(browser: Any, visits: Any, collection: Collection) -> Iterator[Callable[..., Any]]:
    """Pages of new people; whatever one complains of, or asks of another site, fails the test.

    Whoever comes finds nothing that was kept before. With a screen of its own a page has a memory of its own.
    """
    contexts, opened, complaints, asked = [], [], [], []

    def open_page(address: str, **more: Any) -> Any:
        if more:
            contexts.append(new_context(browser, **{"viewport": {"width": 1280, "height": 900}, **more}))
        page = (contexts[-1] if more else visits).new_page()
        opened.append(page)
        if not more:
            origin = {"origin": collection.collector.address, "storageTypes": "all"}
            visits.new_cdp_session(page).send("Storage.clearDataForOrigin", origin)
        complaints.append(watched(page))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_page
    assert [each for found in complaints for each in found()] == []
    assert [url for url in asked if not url.startswith((f"{collection.collector.address}/", "data:"))] == []
    for each in (*opened, *contexts):
        each.close()


def _counted(page: Any, samples: int) -> None:
    until(page, f"document.getElementById('samples').dataset.number === '{samples}'")


def _expected(share: Any) -> list[float]:
    return [share["samples"], *(share["law"][name] for name in ("estimate", "low", "high"))]


@pytest.mark.slow
def test_the_numbers_are_those_of_the_estimate_and_follow_the_samples(collection: Collection, person: Any) -> None:
    said: dict[str, Any] = {"many": "town 3", "continuous": 0.5}
    said |= wide({"labels": "🦊", "cells": 7.5}, {})
    pages = {kind: person(collection.address(LIVE, kind)) for kind in said}
    for more in (1, 7):
        for kind, sample in said.items():
            collection.send(kind, [sample] * more)
        for kind, page in pages.items():
            _compare(page, kind, collection.estimate(kind))


def _compare(page: Any, kind: str, told: Any) -> None:
    """The page shows what the service says, to the last digit."""
    _counted(page, told["samples"])
    expected = [_expected(share) for share in told["shares"]]
    if kind in ("labels", "many"):  # the largest first
        expected.sort(key=lambda share: -share[1])
    if kind == "many":
        assert page.evaluate(SHOWN) == expected[:15]
        page.locator("#all").click()
    assert page.evaluate(SHOWN) == expected
    if kind == "many":
        page.locator("#all").click()
    assert float(page.locator("#width").get_attribute("data-number")) == told["margin_at_worst"]
    assert float(page.locator("#liars").get_attribute("data-number")) == told["liars"]["one"]
    notes = page.locator("#trust").inner_text()
    for note in told["notes"]:
        assert note[1:] in notes
    assert "Anybody" in notes
    assert "a factor of at most 2.72" in page.locator("#reveal").inner_text()
    if page.locator("#table-part[open]").count() == 0:
        page.locator("#table-part summary").click()
    until(page, f"document.querySelectorAll('#table tr').length === {len(told['shares'])}")


@pytest.mark.slow
def test_cells_too_fine_for_bars_are_a_band_and_rounds_have_a_field(collection: Collection, person: Any) -> None:
    page = person("about:blank", viewport={"width": 360, "height": 800})
    answers: list[tuple[str, int]] = []
    page.on("response", lambda answer: answers.append((urlsplit(answer.url).path, answer.status)))
    page.goto(collection.address(LIVE, "fine"))
    page.wait_for_selector("#histogram .band")
    assert page.locator("#histogram .cell").count() == 0
    assert page.locator("#key.banded").count() == 1
    assert page.locator("#choice-round-field").is_hidden()  # one round was agreed on
    page.wait_for_event("response", lambda answer: answer.status == 304)  # nothing has changed, and nothing is sent
    assert [status for path, status in answers if path == "/estimate"][:2] == [200, 304]


@pytest.mark.slow
def test_markup_in_labels_and_purposes_is_only_ever_a_text(collection: Collection, person: Any) -> None:
    page = person(collection.address(LIVE, "labels"))
    page.wait_for_selector("#rows li")
    names = page.locator("#rows .name").all_text_contents()
    assert {MARKUP, "أحمر", "蓝色", "🦊", "a\\u{202e}b", "(empty)", "x" * 300} < set(names)
    assert page.locator("h1").text_content() == f"labels {MARKUP}"
    taking = person(collection.address(TAKE_PART, "labels"))
    until(taking, READY)
    taking.get_by_role("button", name=f"One more of {MARKUP}").click()
    assert taking.locator("#drawn .name").all_text_contents()[0] == MARKUP
    taking.locator("#entry").fill(MARKUP)
    taking.locator("#entry").press("Enter")
    assert taking.locator("#held input").first.input_value() == "2"
    for each, name in ((page, "live"), (taking, "take part")):
        assert each.locator("img").count() == 0
        assert each.title() == f"labels {MARKUP} – {name}"


@pytest.mark.slow
def test_another_agreement_is_chosen_and_the_address_says_so(collection: Collection, person: Any) -> None:
    page = person(f"{collection.collector.address}/")
    newest = collection.agreements["continuous"]
    until(page, f"document.getElementById('reveal').textContent.includes('{newest.id}')")
    assert "gaussian mixtures" in page.locator("#reveal").inner_text()
    page.locator("#choice-agreement").select_option(collection.agreements["numbers"].id)
    until(page, f"location.search.includes('{collection.agreements['numbers'].id}')")
    page.wait_for_selector("#histogram .cell")
    until(page, "document.querySelectorAll('#histogram .cell').length === 12")
    page.locator("#choice-round").fill("2")
    page.locator("#choice-round").press("Enter")
    _counted(page, 0)
    assert page.url.endswith("&round=2")
    page.locator("#choice-round").fill("7")
    page.locator("#choice-round").press("Enter")
    assert page.url.endswith("&round=2")  # there is no seventh
    page.locator("#take-part").click()
    page.wait_for_url("**/take-part?*")
    until(page, READY)
    assert page.locator("#entry-told").text_content() == "Type a whole number from 0 to 11"
    for _ in range(3):
        page.go_back()
    until(page, f"document.getElementById('reveal').textContent.includes('{newest.id}')")


def _secret(page: Any) -> bytes:
    return bytes.fromhex(json.loads(page.evaluate("localStorage.getItem('discreet collector')"))["secret"])


@pytest.mark.slow
def test_a_visitor_sees_what_is_sent_and_is_counted_once(collection: Collection, person: Any) -> None:
    agreement, names = collection.agreements["visited"], set()
    for visitor in range(2):
        before = collection.estimate("visited")["samples"]
        page = person(collection.address(TAKE_PART, "visited"))
        until(page, READY)
        bodies: list[str] = []
        page.on(
            "request", lambda request, to=bodies: to.append(request.post_data) if request.method == "POST" else None
        )
        page.locator("#held-card details summary").click()
        page.locator("#pasted").fill("red, 3\nmauve, 2")
        page.locator("#read-pasted").click()
        assert page.locator("#outside").text_content().startswith("2 of your 5 entries are not on the list")
        assert page.locator("#strange .name").all_text_contents() == ["mauve"]
        page.locator("#pasted").fill("red, 3\ngreen, 2")
        page.locator("#read-pasted").click()
        assert page.locator("#drawn .told").all_text_contents()[0].startswith("60")
        page.locator("#limit").fill("0.5")
        page.locator("#draw").click()
        until(page, "document.getElementById('draw-problem').textContent.includes('does not allow')")
        page.locator("#limit").fill("1")
        page.locator("#draw").click()
        page.wait_for_selector("#sample-card:not([hidden])")
        shown = json.loads(page.locator("#request").inner_text())
        assert bodies == []  # nothing leaves before it is shown
        name = client_name_in_collection(agreement.id, _secret(page))
        key = sample_idempotency_key(name, agreement.id, 1)
        sample = page.locator("#sample").inner_text()
        assert shown == {"agreement": agreement.id, "round": 1, "client": name, "key": key, "sample": sample}
        page.reload()  # and still the same one
        until(page, "!document.getElementById('sample-card').hidden")
        assert json.loads(page.locator("#request").inner_text()) == shown
        bodies.clear()
        page.locator("#send").click()
        page.wait_for_selector("#receipt-card:not([hidden])")
        assert "counted" in page.locator("#thanks").inner_text()
        assert [json.loads(body) for body in bodies] == [shown]
        after = collection.estimate("visited")
        assert after["samples"] == before + 1
        page.reload()
        page.wait_for_selector("#receipt-card:not([hidden])")
        assert "taken part already" in page.locator("#thanks").inner_text()
        assert key in page.locator("#receipt").inner_text()
        page.locator("#send").click()
        until(page, "document.getElementById('thanks').textContent.includes('arrived before')")
        assert [json.loads(body) for body in bodies] == [shown, shown]
        assert collection.estimate("visited") == after
        names.add(name)
        page.locator("#see").click()
        page.wait_for_url(f"{collection.collector.address}/?*")
        _counted(page, visitor + 1)
    assert len(names) == 2


ENTERED = {
    "on the list": ["red", "red"],
    "a slip": ["rad"],
    "not on the list": ["magenta", "magenta", "", "red, -3", "NaN", "\u202e", "a" * 5000],
    "none of these": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["others", pytest.param("quiet", marks=pytest.mark.soak)])
def test_what_the_service_sees_does_not_depend_on_what_is_entered(
    collection: Collection, person: Any, kind: str
) -> None:
    """Nothing is asked between loading and sending; whatever was entered one request leaves, of one length, to one address."""
    seen, samples = [], set()
    for entered in ENTERED.values():
        page = person(collection.address(TAKE_PART, kind))
        until(page, READY)
        assert page.locator("#draw").is_disabled()
        requests: list[Any] = []
        page.on("request", lambda request, to=requests: to.append(request))
        if entered is None:
            page.get_by_role("button", name="One more of None of these").click()
        else:
            for text in entered:
                page.locator("#entry").fill(text)
                page.locator("#entry").press("Enter")
        page.locator("#draw").click()
        page.wait_for_selector("#sample-card:not([hidden])")
        page.wait_for_timeout(300)
        assert requests == []
        said = page.locator("#padding").inner_text()
        page.locator("#send").click()
        page.wait_for_selector("#receipt-card:not([hidden])")
        assert [request.method for request in requests] == ["POST"]
        body = requests[0].post_data_buffer
        assert f"{len(body):,} bytes" in said
        seen.append((requests[0].url, len(body)))
        samples.add(json.loads(body)["sample"])
    assert len(set(seen)) == 1
    assert samples <= set(KINDS[kind])
    assert seen[0][1] == len(body.rstrip()) - len(_stated(json.loads(body)["sample"])) + max(
        map(len, map(_stated, KINDS[kind]))
    )


def _stated(sample: Any) -> bytes:
    return json.dumps(sample, ensure_ascii=False).encode()


@pytest.mark.slow
def test_entries_outside_the_list_are_shown_and_can_be_corrected(collection: Collection, person: Any) -> None:
    page = person(collection.address(TAKE_PART, "others"))
    until(page, READY)
    page.locator("#held-card details summary").click()
    page.locator("#pasted").fill("red, 3\ngrun, 1\nmauve, 1")
    page.locator("#read-pasted").click()
    told = page.locator("#outside").inner_text()
    assert told.startswith("2 of your 5 entries are not on the list: they count as “\u2068something else\u2069”.")
    assert page.locator("#drawn .name").all_text_contents()[:2] == ["red", "something else"]
    assert page.locator("#drawn .told").all_text_contents()[1].startswith("40")
    page.get_by_role("button", name="grun means grün").click()
    assert page.locator("#outside").inner_text().startswith("1 of your 5 entries is")
    page.get_by_role("button", name="Take out mauve").click()
    assert page.locator("#outside").is_hidden()
    page = person(collection.address(TAKE_PART, "quiet"))
    until(page, READY)
    page.locator("#entry").fill("mauve")
    page.locator("#entry").press("Enter")
    told = page.locator("#outside").inner_text()
    assert told.startswith(
        "Your entry is not on the list: it is left out, and your sample is drawn without using your data."
    )
    assert (
        len({text.partition(" ")[0] for text in page.locator("#drawn .told").all_text_contents()}) == 1
    )  # as everybody's
    page = person(collection.address(TAKE_PART, "cells"))
    until(page, READY)
    for text in ("77", "-3", "soon", "25"):
        page.locator("#entry").fill(text)
        page.locator("#entry").press("Enter")
    assert (
        page.locator("#outside")
        .inner_text()
        .startswith("3 of your 4 entries are not from 0 to 50: they count as the nearest end")
    )
    assert {"0 to 2.5", "25 to 27.5", "47.5 to 50"} <= set(page.locator("#drawn .name").all_text_contents())


@pytest.mark.slow
def test_consent_comes_before_the_button_and_loading_is_said(collection: Collection, person: Any) -> None:
    page = person("about:blank", viewport={"width": 390, "height": 800})
    held: list[Any] = []
    page.route("**/collection*", lambda route: held.append(route))
    page.goto(collection.address(TAKE_PART, "typed"))
    until(page, "document.getElementById('loading').checkVisibility()")
    assert page.locator("#loading").inner_text().startswith("Loading")
    until(page, lambda: held)
    held.pop().continue_()
    until(page, READY)
    assert page.locator("#loading").is_hidden()
    tops = {name: page.locator(f"#{name}").bounding_box()["y"] for name in ("asked-card", "held-card", "draw")}
    assert tops["asked-card"] < tops["held-card"] < tops["draw"]
    order = "document.getElementById('asked').compareDocumentPosition(document.getElementById('draw'))"
    assert page.evaluate(order) & 4  # for whoever listens, too
    page.goto(collection.address(LIVE, "typed"))
    assert page.locator("#nothing").inner_text() == "Loading …"
    until(page, lambda: held)
    held.pop().continue_()
    page.unroute("**/collection*")


@pytest.mark.slow
def test_whether_a_collection_is_signed_is_said_and_nothing_is_claimed(collection: Collection, person: Any) -> None:
    key = secrets.token_hex(32)

    def signed(route: Any) -> None:
        answer = route.fetch()
        told = answer.json()
        for each in told["agreements"]:
            each["signed"] = {"addresses": ["https://example.org"], "key": key, "signature": "0" * 128}
        route.fulfill(response=answer, json=told)

    for path, id_ in ((TAKE_PART, "asked"), (LIVE, "reveal")):
        page = person("about:blank")
        page.goto(collection.address(path, "typed"))
        until(page, f"document.getElementById('{id_}').textContent.includes('Is it signed?')")
        assert "another one could be put in its place" in page.locator(f"#{id_}").inner_text()
        page.route("**/collection*", signed)
        page.reload()
        until(page, f"document.getElementById('{id_}').textContent.includes('{short_key_text(key)}')")
        words = page.locator(f"#{id_}").inner_text()
        assert "cannot check" in words
        assert "another one could be put" not in words


@pytest.mark.slow
def test_few_samples_are_drawn_within_bounds_and_a_long_list_is_searched(collection: Collection, person: Any) -> None:
    """30 of 33 say red: the unbiased estimate is 191 %, drawn as 100 %; the headline says what the note says."""
    collection.send("quiet", ["red"] * 30 + ["green"] * 2 + ["blue"])
    page = person(collection.address(LIVE, "quiet"))
    page.wait_for_selector("#rows li")
    told = collection.estimate("quiet")
    assert told["margin_at_worst"] > 0.1
    margin = f"{told['margin_at_worst']:.2g}"
    assert f"the margin of a share can be +-{margin}" in " ".join(told["notes"])
    assert abs(float(page.locator("#width").inner_text().strip("± %\u00a0")) / 100 - told["margin_at_worst"]) < 0.01
    for share in told["shares"]:
        row = page.locator("#rows li", has=page.get_by_text(share["outcome"], exact=True))
        estimate = share["law"]["estimate"]
        assert 0 <= float(row.locator(".share").inner_text().strip("% \u00a0")) <= 100
        assert ("unbiased:" in row.locator(".told").inner_text()) == (not 0 <= estimate <= 1)
        track, bar, whisker = (row.locator(part).bounding_box() for part in (".track", ".estimate", ".whisker"))
        for part in (bar, whisker):
            assert part["x"] >= track["x"] - 1
            assert part["x"] + part["width"] <= track["x"] + track["width"] + 8  # the cap of a whisker at the end
    page = person(collection.address(LIVE, "many"))
    page.wait_for_selector("#rows li")
    page.locator("#search").fill("TOWN 77")
    assert page.locator("#search-told").inner_text() == "11 of 1,000 outcomes match."
    assert page.locator("#rows .name").all_text_contents() == ["town 77", *(f"town {77}{last}" for last in range(10))]
    page.locator("#search").fill("twon 777")
    assert page.locator("#rows .name").all_text_contents()[0] == "town 777"
    page.locator("#search").fill("")
    assert page.locator("#rows li").count() == 15


def _tabbed(page: Any, wanted: str) -> None:
    """Reach a part of the page by the Tab key alone."""
    for _ in range(80):
        if page.evaluate("document.activeElement.id || document.activeElement.getAttribute('aria-label')") == wanted:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} cannot be reached by Tab")


@pytest.mark.slow
def test_the_keyboard_is_enough(collection: Collection, person: Any) -> None:
    page = person(collection.address(LIVE, "typed"))
    until(page, "document.documentElement.dataset.state === 'live'")
    _tabbed(page, "take-part")
    page.keyboard.press("Enter")
    page.wait_for_url("**/take-part?*")
    until(page, READY)
    _tabbed(page, "One more of green")
    page.keyboard.press("Enter")
    _tabbed(page, "entry")
    page.keyboard.type("blue")
    page.keyboard.press("Enter")
    _tabbed(page, "draw")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sample-card:not([hidden])")
    _tabbed(page, "send")
    page.keyboard.press("Enter")
    page.wait_for_selector("#receipt-card:not([hidden])")
    until(page, "document.activeElement.id === 'receipt-heading'")  # where listening goes on
    assert collection.estimate("typed")["samples"] == 1


@pytest.mark.slow
def test_what_cannot_be_done_here_is_said_in_a_sentence(collection: Collection, person: Any) -> None:
    page = person(collection.address(TAKE_PART, "continuous"))
    until(page, READY)
    said = page.locator("#problem").inner_text()
    assert said.startswith("From this page you cannot take part: family.kind")
    assert page.locator("#held-card").is_hidden()
    for script, says in (
        ("Object.defineProperty(globalThis, 'localStorage', { get() { throw new Error() } })", "keeps nothing"),
        ("Object.defineProperty(navigator, 'locks', { value: undefined })", "no locks"),
        ("Object.defineProperty(globalThis, 'isSecureContext', { value: false })", "plain http"),
        ("localStorage.setItem('discreet collector', '{}')", "not what it wrote"),
    ):
        page = person("about:blank")
        page.add_init_script(script)
        page.goto(collection.address(TAKE_PART, "numbers"))
        until(page, READY)
        assert says in page.locator("#problem").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "Object.defineProperty(globalThis, 'localStorage', { get() { throw new Error() } })",
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }",
    ],
)
def test_a_request_that_cannot_wait_for_a_network_is_said_to_the_person(
    collection: Collection, person: Any, script: str
) -> None:
    page = person("about:blank")
    page.add_init_script(script)
    address = collection.address(TAKE_PART, "numbers")
    page.goto(f"{address}&field&offline")
    until(page, READY)
    page.locator("#entry").fill("1")
    page.locator("#entry").press("Enter")
    page.locator("#draw").click()
    page.wait_for_selector("#sample-card:not([hidden])")
    page.locator("#send").click()
    until(page, "document.getElementById('send-problem').textContent.includes('keeps nothing')")


@pytest.mark.slow
def test_a_great_paste_is_read_at_once_and_nobody_is_drawn_for_without_records(
    collection: Collection, person: Any
) -> None:
    page = person(collection.address(TAKE_PART, "many"))
    until(page, READY)
    page.locator("#held-card details summary").click()
    page.evaluate(
        """() => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", Array.from({ length: 300000 }, (_, row) => `town ${row % 700}\n`).join(""));
          document.getElementById("pasted").dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true }));
        }"""
    )
    assert page.locator("#held-rest").inner_text().startswith("500 more")
    assert page.locator("#drawn .bar").count() == 12
    page.locator("#clear").click()
    assert page.locator("#draw").is_disabled()
    assert page.locator("#pasted").input_value() == ""
    page.locator("#entry").fill("TOWN 999")
    page.locator("#entry").press("Enter")
    assert page.locator("#drawn .told").first.inner_text().startswith("100")
    page.locator("#entry").fill("twon 7000")
    assert page.locator("#offered-told").inner_text() == "None matches. Did you mean one of these?"
    page.locator("#entry").press("Enter")
    assert page.locator("#outside").inner_text().startswith("1 of your 2 entries is not on the list: it is left out.")
    page.locator("#entry").fill("town 99")
    assert page.locator("#offered-told").inner_text().startswith("11 of 1,000 outcomes match")
    assert page.locator("#offered li").count() == 8
    page.locator("#more-offered").click()
    assert page.locator("#offered li").count() == 11
    page.get_by_role("button", name="Add town 995").click()
    assert page.get_by_label("How many of town 995").input_value() == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "width", "kind"), [*wide([("light", 1280, "numbers")], []), ("dark", 360, "labels")]
)
def test_everybody_can_use_it(collection: Collection, person: Any, scheme: str, width: int, kind: str) -> None:
    """axe-core finds nothing to object to, and nothing is wider than a phone."""
    checks = (node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    more = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "bypass_csp": True}
    page = person(collection.address(LIVE, kind), **more)
    page.wait_for_selector("#rows li, #histogram .cell")
    page.locator("#table-part summary").click()
    page.evaluate(checks)
    assert page.evaluate(OBJECTIONS) == []
    assert page.evaluate(WIDE) <= width
    page.goto(collection.address(TAKE_PART, kind))
    until(page, READY)
    page.get_by_role("button", name="One more of").first.click()
    page.evaluate(checks)
    assert page.evaluate(OBJECTIONS) == []
    assert page.evaluate(WIDE) <= width
    page.locator("#draw").click()
    page.wait_for_selector("#sample-card:not([hidden])")
    assert page.evaluate(OBJECTIONS) == []
    assert page.evaluate(WIDE) <= width


@pytest.mark.slow
def test_pages_outlive_the_service_and_a_collection_that_goes_on(browser: Any, tmp_path: Path) -> None:
    """Killed while both pages are open: they say so, try again, and go on by themselves; tokens are asked for where there is a list."""
    write_fresh_token_file(tmp_path / "tokens.txt", 2)
    token, other = (tmp_path / "tokens.txt").read_text().split()
    first = agreed(tmp_path, ["yes", "no"])
    second = agreed(tmp_path, ["yes", "no"], name="second.json", purpose="the second")
    contexts = [new_context(browser) for _ in range(2)]
    live, taking, late = contexts[0].new_page(), contexts[0].new_page(), contexts[1].new_page()
    with running(tmp_path, "agreement.json", "--tokens", "tokens.txt") as collector:
        live.goto(f"{collector.address}/")
        taking.goto(f"{collector.address}{TAKE_PART}")
        _counted(live, 0)
        assert "People with a token" in live.locator("#trust").inner_text()
        taking.get_by_role("button", name="One more of yes").click()
        taking.locator("#draw").click()
        taking.wait_for_selector("#sample-card:not([hidden])")
        assert taking.locator("#send").is_disabled()
        taking.locator("#token").fill("a-token-of-nobody")
        taking.locator("#send").click()
        until(taking, "document.getElementById('send-problem').textContent.includes('not one of the tokens')")
        collector.process.kill()
        collector.process.wait()
    until(live, "document.documentElement.dataset.state === 'unreachable'")
    assert "cannot be reached" in live.locator("#problem").inner_text()
    taking.locator("#token").fill(token)
    taking.locator("#send").click()
    until(taking, "document.getElementById('sending').textContent.includes('attempt 1')")
    follows = ("second.json", "--follows", first.id, "--tokens", "tokens.txt")
    with running(tmp_path, *follows, port=collector.port, log="again.txt") as again:
        taking.wait_for_selector("#receipt-card:not([hidden])")
        sent = json.loads(taking.locator("#request").inner_text())
        assert (sent["client"], sent["agreement"]) == (token, first.id)
        until(live, f"document.getElementById('reveal').textContent.includes('{second.id}')")  # the newest
        until(live, "document.documentElement.dataset.state === 'live'")
        assert live.locator("#problem").inner_text() == ""
        live.locator("#choice-agreement").select_option(first.id)
        _counted(live, 1)
        taking.goto(f"{again.address}{TAKE_PART}?agreement={second.id}")
        until(taking, READY)
        assert "taken part already" in taking.locator("#thanks").inner_text()  # who has spoken draws nothing anew
        assert sent["key"] in taking.locator("#receipt").inner_text()
        assert json.loads(taking.locator("#sample").get_attribute("data-sample")) == sent["sample"]
        assert token not in taking.evaluate("Object.values(localStorage).join()")
        assert again.send(one(first, other, "yes")).status == 200
        late.goto(f"{again.address}{TAKE_PART}")
        late.get_by_role("button", name="One more of no", exact=True).click()
        late.locator("#draw").click()
        late.locator("#token").fill(other)
        late.locator("#send").click()
        until(late, "document.getElementById('send-problem').textContent.includes('has taken part in this round')")
        _counted(live, 2)
        live.goto(f"{again.address}/?round=7")
        until(live, "document.getElementById('problem').textContent === 'Round is not a whole number from 1 to 1.'")
        assert (collector.said, again.said) == ("", "")
    for context in contexts:
        context.close()


@pytest.mark.slow
def test_names_and_keys_are_those_of_the_protocol(tmp_path: Path) -> None:
    vectors: list[dict[str, Any]] = [
        {"collection": os.urandom(32).hex(), "secret": os.urandom(length).hex(), "client": client, "round": number}
        for length in (1, 32, 63, 64, 65, 200)
        for client in ("", "ann", "é\u0000蓝🦊", "x" * 500)
        for number in (1, 12, 10**15)
    ]
    for each in vectors:
        each["name"] = client_name_in_collection(each["collection"], bytes.fromhex(each["secret"]), each["client"])
        each["key"] = sample_idempotency_key(each["name"], each["collection"], each["round"])
    (tmp_path / "vectors.json").write_text(json.dumps(vectors))
    (tmp_path / "check.mjs").write_text(
        f"""import {{ readFileSync }} from "node:fs";
        const {{ keyOf, nameIn }} = await import("{(CLIENT / "collector" / "identity.js").as_uri()}");
        const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
        const found = vectors.map(({{ collection, secret, client, round }}) => {{
          const name = nameIn(collection, secret, client);
          return {{ name, key: keyOf(name, collection, round) }};
        }});
        process.stdout.write(JSON.stringify(found));"""
    )
    found = json.loads(node(tmp_path / "check.mjs", tmp_path / "vectors.json"))
    assert found == [{"name": each["name"], "key": each["key"]} for each in vectors]


@pytest.mark.slow
def test_scripts_and_styles_are_those_of_their_sources(tmp_path: Path) -> None:
    node_modules()
    assert shutil.which("node")
    node("build.mjs", tmp_path)
    for name in ("live.js", "take-part.js", "worker.js", "collector.css"):
        assert (tmp_path / name).read_bytes() == (PAGES / name).read_bytes(), "run make client"


def _tags(page: str) -> list[str]:
    """The parts of a page without their texts, and without names for listeners."""
    return [re.sub(r'\s(data-t-label|aria-label)="[^"]*"', "", tag) for tag in re.findall("<[^>]*>", page)]


@pytest.mark.slow
def test_pages_are_files_of_the_service_and_hold_no_script(collection: Collection) -> None:
    for page, name in ((LIVE, "live.html"), (TAKE_PART, "take-part.html")):
        answer = collection.collector.get(page)
        text = answer.body.decode()
        template = (PAGES / name).read_text(encoding="utf-8")
        assert (answer.status, _tags(text)) == (200, _tags(template))
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        again = collection.collector.ask("GET", page, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")
        data, scripts = (
            re.subn(r'<script type="application/json"[^>]*>.*</script>', "", text),
            r"<style|<script(?![^>]* src=)",
        )
        assert data[1] == 1  # the sentences, which nothing runs
        assert not re.search(scripts + r"|\son\w+=|\sstyle=|://", data[0])
        for part in re.findall(r'(?:src|href)="(pages/[^"]*)"', text):
            found = collection.collector.get(f"/{part}")
            assert (found.status, found.body) == (200, (PAGES / Path(part).name).read_bytes())
            assert found.headers["Content-Type"].startswith("text/css" if part.endswith("css") else "text/javascript")
