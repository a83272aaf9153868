"""A lost network loses no answer: requests wait in the browser and are counted once, on a phone and on a tablet of many people."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.collect._pages import TAKE_PART, write_fresh_token_file
from tests.collect.running import agreed, running
from tests.javascript.browser import chromium, new_context, until
from tests.soaking import wide

READY = "document.documentElement.dataset.ready"
OFFLINE = "document.documentElement.dataset.offline === 'true'"
SAMPLE_SHOWN = "#sample-card:not([hidden])"
RECEIPT_SHOWN = "#receipt-card:not([hidden])"
WAITING = "JSON.parse(localStorage.getItem('discreet outbox') ?? '[]')"
WIDTHS = (390, 1440)
PEOPLE = wide(5, 2)  # of one tablet
PICTURES = os.environ.get("DISCREET_PICTURES")  # a folder for pictures to look at
LABELS = ["vermilion", "chartreuse", "ultramarine"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    found = new_context(browser, viewport={"width": 390, "height": 844})
    yield found
    found.close()


def _draw(page: Any) -> None:
    page.get_by_role("button", name=f"One more of {LABELS[0]}").click()
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)


@pytest.mark.slow
@pytest.mark.parametrize("enrolled", wide([False, True], [True]))
def test_what_was_sent_without_a_network_leaves_when_the_page_is_opened_again(
    context: Any, tmp_path: Path, enrolled: bool
) -> None:
    """The budget is charged before; the same text goes out; a token is kept no longer than that."""
    agreement = agreed(tmp_path, LABELS)
    more: tuple[str, ...] = ()
    if enrolled:
        write_fresh_token_file(tmp_path / "tokens.txt", 1)
        more = ("--tokens", "tokens.txt")
    page = context.new_page()
    with running(tmp_path, "agreement.json", *more) as collector:
        port = collector.port
        page.goto(f"{collector.address}{TAKE_PART}")
        until(page, READY)
        collector.stop()
    _draw(page)
    if enrolled:
        page.locator("#token").fill((tmp_path / "tokens.txt").read_text().strip())
    shown = json.loads(page.locator("#request").inner_text())
    assert page.evaluate(WAITING) == []  # nothing waits before the person has decided
    page.locator("#send").click()
    until(page, "document.getElementById('sending').textContent.includes('is kept in this browser')")
    (waits,) = page.evaluate(WAITING)
    assert json.loads(waits["text"]) == shown
    assert len(json.loads(page.evaluate("localStorage.getItem('discreet budget')"))["answers"]) == 1
    page.close()
    with running(tmp_path, port=port, log="second.txt") as collector:
        page = context.new_page()
        bodies: list[Any] = []
        page.on("request", lambda request: bodies.append(request.post_data) if request.method == "POST" else None)
        page.goto(f"{collector.address}{TAKE_PART}")
        page.wait_for_selector(RECEIPT_SHOWN)
        assert bodies == [waits["text"]]
        assert collector.get(f"/estimate?agreement={agreement.id}").json["samples"] == 1
        until(page, f"{WAITING}.length === 0")
        if enrolled:
            assert shown["client"] not in page.evaluate("JSON.stringify(localStorage)")
        page.reload()
        page.wait_for_selector(RECEIPT_SHOWN)
        assert len(bodies) == 1


@pytest.mark.slow
def test_whoever_stops_has_sent_nothing_later(context: Any, tmp_path: Path) -> None:
    agreement = agreed(tmp_path, LABELS)
    page = context.new_page()
    with running(tmp_path, "agreement.json") as collector:
        port = collector.port
        page.goto(f"{collector.address}{TAKE_PART}")
        until(page, READY)
        collector.stop()
    _draw(page)
    page.locator("#send").click()
    until(page, f"{WAITING}.length === 1")
    page.locator("#stop").click()
    until(page, "document.getElementById('send-problem').textContent.includes('can be sent later')")
    assert page.evaluate(WAITING) == []
    with running(tmp_path, port=port, log="second.txt") as collector:
        page.reload()
        page.wait_for_selector(SAMPLE_SHOWN)
        page.wait_for_timeout(300)
        assert collector.get(f"/estimate?agreement={agreement.id}").json["samples"] == 0


@pytest.mark.slow
@pytest.mark.soak
def test_five_people_on_one_tablet_two_questions_a_lost_network_and_a_second_stage(
    context: Any, tmp_path: Path
) -> None:
    """The tablet opens its pages without a network, keeps requests and nothing else, and sends them once there is one.
    Two people here, five in a soak.

    A second stage of the first question is then designed from their samples, and answered by two more.
    """
    made = [agreed(tmp_path, LABELS, name=f"{name}.json", purpose=name) for name in ("first", "second")]
    page = context.new_page()
    with running(tmp_path, "first.json", "second.json") as collector:
        port = collector.port
        addresses = [f"{collector.address}{TAKE_PART}?agreement={each.id}&field&offline" for each in made]
        for address in addresses:
            page.goto(address)
            until(page, f"{READY} && {OFFLINE}")
        assert "waits on this device until there is one" in page.locator("#field-told").inner_text()
        assert page.locator("#outbox-told").inner_text() == "This page can now be used without a network."
        collector.stop()
    sent: list[dict[str, Any]] = []
    for place in range(PEOPLE):
        width = WIDTHS[place % 2]
        page.set_viewport_size({"width": width, "height": 900})
        for address in addresses:
            page.goto(address)
            until(page, READY)
            assert page.locator("#held-card").is_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if sent:
                until(page, f"document.getElementById('outbox-told').textContent.startsWith('{len(sent)} ')")
            _draw(page)
            body = json.loads(page.locator("#request").inner_text())
            page.locator("#send").click()
            page.wait_for_selector(RECEIPT_SHOWN)
            assert "waits on this device" in page.locator("#thanks").inner_text()
            assert body["client"] not in page.content()
            sent.append(body)
        assert len(page.evaluate(WAITING)) == 2 * (place + 1)
    assert page.evaluate("Object.keys(localStorage)") == ["discreet outbox"]
    kept = [json.loads(each["text"]) for each in page.evaluate(WAITING)]
    assert kept == sent
    assert all("record" not in each for each in page.evaluate(WAITING))
    with running(tmp_path, port=port, log="second.txt") as collector:
        page.goto(addresses[0])
        until(page, f"{READY} && localStorage.length === 0")
        for each in made:
            assert collector.get(f"/estimate?agreement={each.id}").json["samples"] == PEOPLE
    assert len({body["client"] for body in sent}) == 2 * PEOPLE
    stage = tmp_path / "stage.json"
    designed = CliRunner().invoke(
        app,
        [
            "design",
            "--epsilon",
            "1",
            "--from",
            str(tmp_path / "samples.db"),
            "--agreement",
            str(tmp_path / "first.json"),
            "-o",
            str(stage),
        ],
    )
    assert designed.exit_code == 0, designed.output
    assert "narrow the population's shares down" in designed.stderr  # before it is written
    second = Agreement.read(stage)
    assert second.stated_purpose == "first"
    with running(tmp_path, "stage.json", "--follows", made[0].id, port=port, log="third.txt") as collector:
        for width, people in ((390, 1), (1440, 2)):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{collector.address}{TAKE_PART}?agreement={second.id}&field")
            until(page, READY)
            _draw(page)
            page.locator("#send").click()
            page.wait_for_selector(RECEIPT_SHOWN)
            assert collector.get(f"/estimate?agreement={second.id}").json["samples"] == people
            page.goto(f"{collector.address}/?agreement={second.id}")
            until(page, "!document.getElementById('stages-card').hidden")
            until(page, f"document.getElementById('stages').textContent.includes('{PEOPLE + people} people')")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if PICTURES:
                page.screenshot(path=f"{PICTURES}/stages-{width}.png", full_page=True)
        pooled = collector.get(f"/pooled?agreement={second.id}").json
        assert [(each["agreement"], each["clients"]) for each in pooled["stages"]] == [
            (made[0].id, PEOPLE),
            (second.id, 2),
        ]


@pytest.mark.slow
def test_what_waits_with_a_token_is_said_and_shown(context: Any, tmp_path: Path) -> None:
    """With tokens, "nothing else of you" would not be true: the request holds the person's."""
    agreed(tmp_path, LABELS)
    write_fresh_token_file(tmp_path / "tokens.txt", 1)
    token = (tmp_path / "tokens.txt").read_text().strip()
    page = context.new_page()
    with running(tmp_path, "agreement.json", "--tokens", "tokens.txt") as collector:
        port = collector.port
        page.goto(f"{collector.address}{TAKE_PART}?field&offline")
        until(page, f"{READY} && {OFFLINE}")
        told = page.locator("#field-told").inner_text()
        collector.stop()
    _draw(page)
    page.locator("#token").fill(token)
    page.locator("#send").click()
    page.wait_for_selector(RECEIPT_SHOWN)
    for text in (told, page.locator("#thanks").inner_text()):
        assert "together with your token" in text
        assert "nothing else of you" not in text
    (waits,) = page.evaluate(WAITING)
    assert json.loads(waits["text"])["client"] == token
    with running(tmp_path, port=port, log="second.txt") as collector:
        page.goto(f"{collector.address}{TAKE_PART}?field&offline")
        until(page, f"{READY} && localStorage.length === 0")
        assert collector.get("/estimate").json["samples"] == 1


@pytest.mark.slow
def test_what_is_refused_while_it_waits_is_told_until_it_was_read(context: Any, tmp_path: Path) -> None:
    """A proxy's failure refuses nothing; requests of another collector of the site stay where they are."""
    agreement = agreed(tmp_path, LABELS)
    request = {"agreement": agreement.id, "round": 1, "client": "somebody", "key": "k", "sample": "no such colour"}
    page = context.new_page()
    with running(tmp_path, "agreement.json") as collector:
        page.goto(f"{collector.address}{TAKE_PART}?offline")
        until(page, READY)
        assert page.locator("#refused-card").is_hidden()
        posts: list[str] = []
        page.on("request", lambda each: posts.append(each.url) if each.method == "POST" else None)
        more = {"text": json.dumps(request), "collection": agreement.id, "round": 1}
        here = [{"key": f"k{number}", "address": f"{collector.address}/samples", **more} for number in range(2)]
        elsewhere = {"key": "k0", "address": f"{collector.address}/elsewhere/samples", **more}
        page.route("**/samples", lambda route: route.fulfill(status=500, body="<h1>a proxy</h1>"))
        page.evaluate(
            "(all) => localStorage.setItem('discreet outbox', JSON.stringify(all))", [here[0], elsewhere, here[1]]
        )
        page.reload()
        until(page, READY)
        until(page, "performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/samples'))")
        page.wait_for_timeout(300)
        assert len(page.evaluate(WAITING)) == 3
        assert page.locator("#refused-card").is_hidden()
        page.unroute("**/samples")
        page.reload()
        until(page, f"{WAITING}.length === 1")
        page.wait_for_selector("#refused-card:not([hidden])")
        assert page.evaluate(WAITING) == [elsewhere]
        page.reload()
        until(page, READY)
        told = page.locator("#refused-told")
        page.wait_for_selector("#refused-card:not([hidden])")
        assert told.inner_text().startswith("2 samples that waited on this device were refused, and do not count.")
        assert set(posts) == {f"{collector.address}/samples"}
        page.locator("#dismiss-refused").click()
        until(page, "document.getElementById('refused-card').hidden")
        assert page.evaluate("Object.keys(localStorage)") == ["discreet outbox"]
        page.reload()
        until(page, READY)
        page.wait_for_timeout(200)
        assert page.locator("#refused-card").is_hidden()


@pytest.mark.slow
def test_the_worker_keeps_no_estimate_and_nothing_that_was_sent(context: Any, tmp_path: Path) -> None:
    agreed(tmp_path, LABELS)
    page = context.new_page()
    with running(tmp_path, "agreement.json") as collector:
        page.goto(f"{collector.address}{TAKE_PART}")
        until(page, READY)
        page.wait_for_timeout(200)
        assert (
            page.evaluate("navigator.serviceWorker.getRegistrations().then(({ length }) => length)") == 0
        )  # unless asked for
        page.goto(f"{collector.address}{TAKE_PART}?offline")
        until(page, f"{READY} && {OFFLINE}")
        _draw(page)
        page.locator("#send").click()
        page.wait_for_selector(RECEIPT_SHOWN)
        page.locator("#see").click()
        until(page, "document.getElementById('samples').dataset.number === '1'")
        names = page.evaluate(
            """async () => {
              const caches_ = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
              return (await Promise.all(caches_.map((cache) => cache.keys()))).flat().map(({ url }) => url);
            }"""
        )
        assert names
        kept = {name.removeprefix(collector.address).split("?")[0] for name in names}
        assert kept <= {
            "/take-part",
            "/collection",
            "/agreement",
            "/pages/take-part.js",
            "/pages/live.js",
            "/pages/collector.css",
        }
