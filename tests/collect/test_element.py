"""`<discreet-survey>`: a survey in a page of another site, with a script that the collector did not send, in a real Chromium."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.client._protocol import client_name_in_collection
from discreet.collect import open_store
from discreet.collect._pages import Questions
from discreet.survey import Number, Survey, SurveySampler, mean, shares
from tests.collect.running import Collector, agreed, running
from tests.javascript.browser import CLIENT, FORGET_COPIES, chromium, new_context, node, node_modules, until, watched

OBJECTIONS = (
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"
)
SENT = "[...document.querySelectorAll('discreet-survey')].length && globalThis.sent?.length"
HOST = """<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>A site</title><main><h1>A site</h1>
<discreet-survey collector="{collector}" agreement="{agreement}" questions="{questions}"></discreet-survey></main>
<script type="module" src="/survey.js"></script>
<script>
globalThis.sent = [];
document.querySelector("discreet-survey").addEventListener("discreet-sent", ({{ detail }}) => sent.push(detail));
</script>"""
ADD_ELEMENT = """([collector, agreement]) => {
  const made = Object.assign(document.createElement("discreet-survey"), { lang: "en" });
  made.setAttribute("collector", collector);
  made.setAttribute("agreement", agreement);
  document.querySelector("main").append(made);
}"""
LABELS = ["red", "green", "<b>blue</b>"]
ASKED = {
    "title": "Which colour?",
    "choice": "multiple",
    "translations": {"de": {"title": "Welche Farbe?"}},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Site:
    """A site on this machine that embeds the element."""

    def __init__(self) -> None:
        files = self.files = {"/survey.js": ("text/javascript", (CLIENT / "discreet-survey.min.js").read_bytes())}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, body = files.get(self.path, ("text/plain", b""))
                self.send_response(200)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("localhost", 0), Handler)
        self.origin = f"http://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    found = Site()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, site: Site
) -> Iterator[tuple[Collector, dict[str, dc.Agreement]]]:
    folder = tmp_path_factory.mktemp("element")
    survey = Survey({"mode": ["car", "train"], "minutes": Number(0, 90, "min")}, [shares("mode"), mean("minutes")])
    made = {
        "asked": agreed(folder, LABELS),
        "second": agreed(folder, LABELS, name="second.json", purpose="a second question"),
        "shared": agreed(folder, LABELS, name="shared.json", purpose="a question of two collectors"),
        "survey": dc.Agreement.of(SurveySampler(survey, epsilon=1.0), purpose="a survey"),
    }
    with closing(open_store(folder / "samples.db")) as store:
        for agreement in made.values():
            store.add(agreement)
        store.save_questions(made["asked"].id, Questions.from_document(ASKED, made["asked"]).text)
    with running(folder, "--allow-origin", site.origin) as collector:
        yield collector, made
        assert collector.said == ""


@pytest.fixture
def embed(browser: Any, service: Any, site: Site) -> Iterator[Any]:
    """The element in a page of another site; whatever the page complains of fails the test."""
    collector, made = service
    context = new_context(browser, viewport={"width": 390, "height": 844}, bypass_csp=True)
    page = context.new_page()
    complaints = watched(page)

    def open_page(kind: str, *, questions: str = "", lang: str = "en", agreement: str = "") -> Any:
        host = HOST.format(
            lang=lang, collector=collector.address, agreement=agreement or made[kind].id, questions=questions
        )
        site.files["/"] = ("text/html", host.encode())
        page.unroute_all()
        page.goto(f"{site.origin}/")
        return page

    yield open_page
    assert complaints() == []
    context.close()


def _samples(service: Any, kind: str) -> int:
    found = service[0].get(f"/estimate?agreement={service[1][kind].id}").json
    return int(found["clients"] if kind == "survey" else found["samples"])


@pytest.mark.slow
def test_a_person_takes_part_from_another_site_and_is_counted_once(embed: Any, service: Any) -> None:
    collector, made = service
    digest = hashlib.sha256(collector.get(f"/questions?agreement={made['asked'].id}").body).hexdigest()
    page = embed("asked", questions=digest[:12], lang="de")
    page.get_by_text("Welche Farbe?").wait_for()
    assert page.locator("discreet-survey b").count() == 0
    page.evaluate((node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    assert page.evaluate(OBJECTIONS) == []
    page.get_by_text("Was mit Ihrer Antwort geschieht").click()
    facts = page.locator("discreet-survey dl").inner_text()
    assert made["asked"].id in facts
    assert digest in facts
    bodies: list[Any] = []
    page.on("request", lambda request: bodies.append(request.post_data) if request.method == "POST" else None)
    page.get_by_label("green").check()
    page.get_by_role("button", name="Meine Antwort zufällig verändern").click()
    page.get_by_role("button", name="Senden").wait_for()
    assert page.evaluate(OBJECTIONS) == []
    shown = json.loads(page.locator("discreet-survey pre").inner_text())
    assert bodies == []
    page.get_by_role("button", name="Senden").click()
    until(page, SENT)
    assert page.evaluate("sent") == [{"agreement": made["asked"].id, "round": 1, "counted": True}]
    assert [json.loads(body) for body in bodies] == [shown]
    assert _samples(service, "asked") == 1
    page.reload()
    page.get_by_text("Sie haben schon teilgenommen").wait_for()
    assert json.loads(page.locator("discreet-survey pre").inner_text()) == shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page = embed("second")  # another collection needs a total that the person raises
    page.get_by_label("red").check()
    button = page.get_by_role("button", name="Raise my total to 2, and randomise my answer")
    button.evaluate("(found) => found.click()")  # a script, not the person
    page.get_by_text("Only the person raises").wait_for()
    button.click()
    page.get_by_role("button", name="Send it").click()
    until(page, SENT)
    assert json.loads(page.evaluate("localStorage.getItem('discreet budget')"))["limit"] == 2


@pytest.mark.slow
def test_other_words_and_other_agreements_are_refused_by_a_script_that_the_collector_did_not_send(
    embed: Any, service: Any, site: Site
) -> None:
    collector, made = service
    page = embed("asked", questions="0" * 64)
    page.get_by_text("These are not the questions that your link names").wait_for()
    assert page.get_by_role("button").count() == 0
    page = embed("asked")
    page.get_by_text("Which colour?").wait_for()
    text = collector.get(f"/agreement?agreement={made['asked'].id}").json
    lie = json.dumps({**text, "epsilon": 20.0})
    page.route(
        "**/agreement*", lambda route: route.fulfill(body=lie, headers={"Access-Control-Allow-Origin": site.origin})
    )
    page.reload()
    page.get_by_text("you cannot take part").wait_for()
    assert page.get_by_role("button").count() == 0
    page = embed("asked", agreement="12")
    page.get_by_text("needs the attributes").wait_for()


@pytest.mark.slow
def test_two_collectors_on_one_page_get_names_of_their_own_each_what_is_sent_to_it(
    embed: Any, service: Any, site: Site
) -> None:
    """The second states the collection of the first, and loads after it. It was sent what the person sent to the first, under one name."""
    collector, made = service
    page = embed("shared")
    addresses = [collector.address, collector.address.replace("127.0.0.1", "localhost")]
    posts: list[tuple[str, Any]] = []
    page.on(
        "request",
        lambda request: posts.append((request.url, json.loads(request.post_data))) if request.method == "POST" else 0,
    )
    first, second = page.locator("discreet-survey").nth(0), page.locator("discreet-survey").nth(1)
    first.get_by_label("red").wait_for()
    page.evaluate(ADD_ELEMENT, [addresses[1], made["shared"].id])
    second.get_by_label("green").wait_for()
    for place, (element, colour) in enumerate(((first, "red"), (second, "green")), start=1):
        element.get_by_label(colour).check()
        element.get_by_role("button", name="Randomise my answer").click()
        if place == 2:  # the first answer was for the first collector alone, so this one costs again
            element.get_by_role("button", name="Raise my total to").click()
        element.get_by_role("button", name="Send it").click()
        until(
            page,
            f"[...document.querySelectorAll('discreet-survey')][{place - 1}].shadowRoot.querySelector('[role=status]').textContent",
        )
    assert [url for url, _ in posts] == [f"{address}/samples" for address in addresses]
    assert posts[0][1]["client"] != posts[1][1]["client"]
    budget = json.loads(
        page.evaluate("localStorage.getItem('discreet budget')")
    )  # one sample would tell that it is one person
    assert sorted(budget["answers"]) == [f"{made['shared'].id} 1 {address}/" for address in sorted(addresses)]


@pytest.mark.slow
def test_entries_of_an_earlier_version_are_for_one_collector(embed: Any, service: Any) -> None:
    """A later agreement of the same round was asked again, and a second collector with the first agreement was sent the same name."""
    collector, made = service
    collection, secret = made["shared"].id, "5e" * 32
    record: dict[str, Any] = {"discreet": 1, "secret": secret, "spoken": {f"{collection} 1": {"agreement": "1" * 64}}}
    page = embed("shared")
    page.evaluate("(text) => localStorage.setItem('discreet collector', text)", json.dumps(record))
    page.reload()
    page.get_by_label("red").check()
    page.get_by_role("button", name="Randomise my answer").click()
    page.get_by_text("has taken part in this round already").wait_for()
    assert json.loads(page.evaluate("localStorage.getItem('discreet collector')")) == record  # nobody was answered
    record["spoken"] = {f"{collection} 2": {"agreement": "1" * 64}}
    page.evaluate(FORGET_COPIES)
    page.evaluate("(text) => localStorage.setItem('discreet collector', text)", json.dumps(record))
    page.reload()
    page.get_by_label("red").wait_for()
    page.evaluate(ADD_ELEMENT, [collector.address.replace("127.0.0.1", "localhost"), collection])
    names: list[str] = []
    for element, colour in (
        (page.locator("discreet-survey").nth(0), "red"),
        (page.locator("discreet-survey").nth(1), "green"),
    ):
        element.get_by_label(colour).check()
        element.get_by_role("button", name="Randomise my answer").click()
        if names:
            element.get_by_role("button", name="Raise my total to").click()
        names.append(json.loads(element.locator("pre").inner_text())["client"])
    assert names[0] == client_name_in_collection(collection, bytes.fromhex(secret)) != names[1]


@pytest.mark.slow
def test_a_survey_is_answered_by_one_report(embed: Any, service: Any) -> None:
    page = embed("survey")
    page.get_by_label("train").check()
    page.get_by_role("spinbutton").fill("30")
    page.get_by_role("button", name="Randomise my answer").click()
    page.get_by_text("The random choice was").wait_for()
    page.get_by_role("button", name="Send it").click()
    until(page, SENT)
    assert _samples(service, "survey") == 1


@pytest.mark.slow
def test_the_package_has_the_element_with_types(tmp_path: Path) -> None:
    compiler = node_modules() / "typescript" / "bin" / "tsc"
    source = tmp_path / "use.ts"
    source.write_text(
        f"""import type {{ DiscreetSent }} from "{CLIENT / "discreet-survey"}";
const found = document.querySelector("discreet-survey");
const told = (sent: DiscreetSent) => console.log(sent.counted, sent.round + 1);
found?.addEventListener("discreet-sent", ({{ detail }}) => told(detail));
// @ts-expect-error: what a person answered is not told
found?.addEventListener("discreet-sent", ({{ detail }}) => detail.sample);
"""
    )
    node(
        compiler,
        "--strict",
        "--noEmit",
        "--target",
        "es2022",
        "--lib",
        "es2022,dom",
        "--moduleResolution",
        "node",
        source,
    )
    files = json.loads((CLIENT / "package.json").read_text())
    assert {"discreet-survey.min.js", "discreet-survey.d.ts"} <= set(files["files"])
    node("build.mjs", tmp_path)
    assert (tmp_path / "discreet-survey.min.js").read_bytes() == (CLIENT / "discreet-survey.min.js").read_bytes(), (
        "run make client"
    )
