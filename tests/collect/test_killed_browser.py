"""A browser that is killed at once after a draw: a real Chromium, killed by SIGKILL and opened again on the same profile."""

import json
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from discreet.collect._pages import TAKE_PART
from tests.collect.running import agreed, running
from tests.collect.test_element import HOST, Site
from tests.javascript.browser import CLIENT, SITE, chromium_to_kill, loading_anew, playwright_error, served, until
from tests.soaking import wide

READY = "document.documentElement.dataset.ready"
SAMPLE_SHOWN = "#sample-card:not([hidden])"
LABELS = [f"town {number}" for number in range(400)]
NO_DATABASE = "Object.defineProperty(globalThis, 'indexedDB', { value: undefined })"
SILENT_DATABASE = "IDBFactory.prototype.open = () => ({})"


@contextmanager
def _collector_address_and_profile(tmp_path: Path) -> Iterator[tuple[Any, str, Path]]:
    """A running collector, the address of /take-part, and the folder of a browser's profile."""
    agreed(tmp_path, LABELS)
    with running(tmp_path, "agreement.json") as collector:
        yield collector, f"{collector.address}{TAKE_PART}", tmp_path / "profile"


def _open(context: Any, address: str) -> Any:
    page = context.new_page()
    page.goto(address)
    until(page, READY)
    return page


def _draw(page: Any) -> dict[str, Any]:
    """The whole request of a draw at /take-part."""
    page.locator("#entry").fill(LABELS[0])
    page.locator("#entry").press("Enter")
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    return _shown(page)


def _shown(page: Any) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(page.locator("#request").inner_text())
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("seconds", wide([0.0, 1.0, 3.0, 8.0], [0.0]))
def test_the_sample_the_name_and_the_budget_outlive_the_browser(tmp_path: Path, seconds: float) -> None:
    with _collector_address_and_profile(tmp_path) as (collector, address, profile):
        with chromium_to_kill(profile) as (context, kill):
            page = _open(context, address)
            drawn = _draw(page)
            told = page.locator("#device-told").inner_text()
            page.wait_for_timeout(1000 * seconds)
            kill()
        with chromium_to_kill(profile) as (context, kill):
            page = _open(context, address)
            page.wait_for_selector(SAMPLE_SHOWN)
            assert _shown(page) == drawn
            assert page.locator("#device-told").inner_text() == told
            page.locator("#send").click()
            page.wait_for_selector("#receipt-card:not([hidden])")
            kill()
        with chromium_to_kill(profile) as (context, kill):
            page = _open(context, address)
            assert "taken part already" in page.locator("#thanks").inner_text()
            assert _shown(page) == drawn
        assert collector.get("/estimate").json["samples"] == 1


@pytest.mark.slow
def test_what_was_forgotten_on_purpose_stays_forgotten_and_everybody_else_comes_back(tmp_path: Path) -> None:
    """The storage of the killed browser still has the record, with a request that waits: what the disk had before it was forgotten."""
    with _collector_address_and_profile(tmp_path) as (_, address, profile):
        with chromium_to_kill(profile) as (context, kill):
            page = _open(context, address)
            page.route("**/samples", lambda route: route.abort())
            first = _draw(page)
            page.locator("#send").click()
            until(page, "localStorage.getItem('discreet outbox') !== null")
            page.wait_for_timeout(8000)  # until Chromium has written it to the disk
            page.locator("#else-part summary").click()
            page.locator("#somebody-else").click()
            until(page, f"{READY} && location.hash.startsWith('#person=2-')")
            second, hash_ = _draw(page), page.evaluate("location.hash")
            page.goto("about:blank")
            page.goto(f"{address}#person=1")
            until(page, READY)
            page.locator("#forget-part summary").click()
            with loading_anew(page):
                page.locator("#forget").click()
            until(page, READY)
            again = _draw(page)
            kill()
        with chromium_to_kill(profile) as (context, kill):
            page = context.new_page()
            posts: list[str] = []
            page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
            page.goto(f"{address}#person=1")
            until(page, READY)
            page.wait_for_selector(SAMPLE_SHOWN)
            assert _shown(page) == again
            assert again["client"] != first["client"]
            assert first["client"] not in page.content()
            assert page.evaluate("localStorage.getItem('discreet outbox')") is None
            page.goto("about:blank")
            page.goto(f"{address}{hash_}")
            until(page, READY)
            page.wait_for_selector(SAMPLE_SHOWN)
            assert _shown(page) == second
            page.locator("#forget-part summary").click()
            with page.expect_navigation():
                page.locator("#forget").click()
            kill()
        with chromium_to_kill(profile) as (context, kill):
            page = _open(context, f"{address}{hash_}")
            assert page.locator("#held-card").is_visible()
            assert second["client"] not in page.content()
            assert posts == []


@pytest.mark.slow
def test_the_element_of_another_site_shows_the_same_request(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, LABELS[:9])
    site = Site()
    profile = tmp_path / "profile"
    found = []
    with running(tmp_path, "agreement.json", "--allow-origin", site.origin) as collector:
        host = HOST.format(lang="en", collector=collector.address, agreement=agreement.id, questions="")
        site.files["/"] = ("text/html", host.encode())
        for draws in (True, False):
            with chromium_to_kill(profile) as (context, kill):
                page = context.new_page()
                page.goto(f"{site.origin}/")
                if draws:
                    page.get_by_label(LABELS[0], exact=True).check()
                    page.get_by_role("button", name="Randomise my answer").click()
                found.append(json.loads(page.locator("discreet-survey pre").inner_text()))
                kill()
    assert found[0] == found[1]
    site.server.shutdown()
    site.server.server_close()


BUDGET = """<!doctype html><meta charset="utf-8"><title>budget</title><button>raise</button><script type="module">
import { Agreement, Budget } from "/js/discreet.min.js";
const family = { kind: "simplex", size: 100000 };
const agreement = Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism: "optimal", epsilon: 1, family, rounds: 9 }));
window.ask = async (limit, round) => (await new Budget({ limit }).release(agreement, agreement.law({ records: [7] }), { round })).sample;
window.recovered = () => Budget.recover().then(() => Budget.limitOf() ?? null);
window.said = (call) => Promise.resolve().then(call).catch(({ name, message }) => `${name}: ${message}`);
document.querySelector("button").addEventListener("click", (event) => (window.raised = new Budget({ limit: 2 }).raise(4, event)));
window.ready = true;
</script>"""


def _budget_page(context: Any, script: str | None = None) -> Any:
    page = context.new_page()
    if script:
        page.add_init_script(script)
    served(page, {"/": BUDGET, "/js/": CLIENT})
    page.goto(SITE + "/")
    page.wait_for_function("window.ready")
    return page


@pytest.mark.slow
def test_a_budget_is_on_the_disk_when_its_sample_is_returned(tmp_path: Path) -> None:
    drawn: dict[int, int] = {}
    for round_ in (1, 2, 3):
        with chromium_to_kill(tmp_path / "profile") as (context, kill):
            page = _budget_page(context)
            if round_ == 2:  # without `recover`: a draw looks for the copy by itself
                assert page.evaluate("ask(2, 1)") == drawn[1]
            if round_ == 3:
                assert page.evaluate("recovered()") == 4
                assert [page.evaluate(f"ask(4, {before})") for before in (1, 2)] == [drawn[1], drawn[2]]
            else:
                drawn[round_] = page.evaluate(f"ask(2, {round_})")
            if round_ == 2:
                page.locator("button").click()
                page.evaluate("raised")
            kill()


@pytest.mark.slow
@pytest.mark.parametrize("script", wide([NO_DATABASE, SILENT_DATABASE], [NO_DATABASE]))
def test_a_browser_that_can_make_no_copy_draws_nothing(tmp_path: Path, script: str) -> None:
    agreed(tmp_path, LABELS)
    with running(tmp_path, "agreement.json") as collector, chromium_to_kill(tmp_path / "profile") as (context, _):
        page = _budget_page(context, script)
        assert page.evaluate("said(() => ask(2, 1))").startswith(
            "DiscreetError: storage is full or blocked, or IndexedDB"
        )
        assert page.evaluate("localStorage.length") == 0
        page = context.new_page()
        page.add_init_script(script)
        page.goto(f"{collector.address}{TAKE_PART}")
        until(page, READY)
        assert "cannot store safely" in page.locator("#problem").inner_text()
        assert page.locator("#held-card").is_hidden()
        page.goto(f"{collector.address}{TAKE_PART}?field")  # keeps nothing of a person anyway
        until(page, READY)
        assert _draw(page)["sample"] in LABELS


@pytest.mark.slow
@pytest.mark.soak
def test_a_browser_that_is_killed_at_a_random_moment_loses_no_sample_that_it_returned(tmp_path: Path) -> None:
    drawn: dict[int, int] = {}
    choice = random.Random(7)
    limit = 9  # of as many rounds
    for visit in range(wide(60, 20)):
        with chromium_to_kill(tmp_path / "profile") as (context, kill):
            page = _budget_page(context)
            assert page.evaluate("recovered()") in ({limit} if drawn else {limit, None})
            for round_ in drawn:
                assert page.evaluate(f"ask({limit}, {round_})") == drawn[round_]
            timer = threading.Timer(choice.uniform(0.0, 0.15), kill)
            timer.start()
            with suppress(playwright_error()):
                for round_ in range(1, limit + 1):
                    drawn[round_] = page.evaluate(f"ask({limit}, {round_})")
            timer.join()
        if len(drawn) == limit and visit % 2:
            drawn.clear()
            shutil.rmtree(tmp_path / "profile")
