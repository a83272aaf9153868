"""Questions in people's own words: what a file may say, that it stays, and what a person reads and sends in a real Chromium."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.collect import close_collection, open_store, publish
from discreet.collect._counting import Arrival, text_digest
from discreet.collect._pages import LIVE, TAKE_PART, Questions
from discreet.errors import DiscreetError
from tests.collect.running import Collector, agreed, one, running
from tests.javascript.browser import ROOT, chromium, new_context, node_modules, until, watched
from tests.soaking import wide

READY = "document.documentElement.dataset.ready"
SAMPLE_SHOWN = "#sample-card:not([hidden])"
RECEIPT_SHOWN = "#receipt-card:not([hidden])"
OBJECTIONS = (
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"
)
MARKUP = "<img src=x onerror=document.title=1>"
LABELS = ["car", "train", "bike", "foot", MARKUP]
GERMAN = {
    "title": "Wie kamen Sie zur Arbeit?",
    "text": "In der letzten Woche.",
    "options": {"car": "Mit dem Auto", "train": "Mit der Bahn"},
}
ASKED: dict[str, Any] = {
    "title": f"How did you come to work? {MARKUP}",
    "text": "Last week.",
    "options": {"car": "By car", "train": "By train"},
    "translations": {"de": GERMAN},
}
AGREEMENT = dc.Agreement.of(dc.LinearSampler(dc.Simplex(LABELS), epsilon=1.0))


def test_a_file_is_toml_or_json_and_has_one_digest(tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text(json.dumps(ASKED))
    (tmp_path / "asked.toml").write_text(
        f"""
language = "en"
title = {json.dumps(ASKED["title"])}
text = "Last week."
[options]
train = "By train"
car = "By car"
[translations.de]
title = "Wie kamen Sie zur Arbeit?"
text = "In der letzten Woche."
options = {{ car = "Mit dem Auto", train = "Mit der Bahn" }}
"""
    )
    found = [Questions.read(tmp_path / name, AGREEMENT) for name in ("asked.json", "asked.toml")]
    assert found[0].text == found[1].text
    assert found[0].digest == hashlib.sha256(found[0].text.encode()).hexdigest()
    assert found[0].document["choice"] == "single"
    assert found[0].document["prefer_not_to_say"] is True
    other = Questions.from_document(
        {**ASKED, "translations": {"de": {**GERMAN, "text": "In dieser Woche."}}}, AGREEMENT
    )
    assert other.digest != found[0].digest  # a translation is a part of it


def test_the_file_on_the_documentation_s_page_can_be_read() -> None:
    page = (ROOT / "docs" / "how-to" / "collect.md").read_text(encoding="utf-8")
    block, _ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert Questions.from_document(tomllib.loads(block), AGREEMENT).document["choice"] == "multiple"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"title": ""}, "title is not a text of 1 to 300"),
        ({"title": None}, "title is not a text"),
        ({"text": 3}, "text is not a text"),
        ({"epsilon": 0.1}, "'epsilon' is not one of the fields"),
        ({"choice": "any"}, "choice = 'any' is not one of single, multiple, records"),
        ({"options": {"boat": "By boat"}}, "'boat' is not an outcome"),
        ({"options": ["car"]}, "options is not a table"),
        ({"prefer_not_to_say": "nothing"}, "prefer_not_to_say = 'nothing' is not true, false or an outcome"),
        ({"prefer_not_to_say": 1}, "prefer_not_to_say = 1 is not"),
        ({"language": "English"}, "language = 'English'"),
        ({"translations": {"en": GERMAN}}, "'en' is not the code of another language"),
        ({"translations": {"de": {"title": "Wie?"}}}, "translations.de has not the fields options, text, title"),
        ({"translations": {"de": {**GERMAN, "options": {"car": "Auto"}}}}, "options are not those"),
        ({"translations": {"de": {**GERMAN, "choice": "multiple"}}}, "'choice' is not one of the fields"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DiscreetError, match=says):
        Questions.from_document({**ASKED, **change}, AGREEMENT)


def test_files_that_cannot_be_read_and_agreements_without_options_are_refused(tmp_path: Path) -> None:
    for name, content in (
        ("a.toml", "title ="),
        ("a.json", "{"),
        ("b.json", '{"title": "a", "title": "b"}'),
        ("c.toml", "x" * 300_000),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(DiscreetError):
            Questions.read(tmp_path / name, AGREEMENT)
    with pytest.raises(DiscreetError, match="cannot be read"):
        Questions.read(tmp_path / "none.toml", AGREEMENT)
    numbers = dc.Agreement.of(dc.LinearSampler(dc.Simplex(dc.Interval(0.0, 9.0, cells=9)), epsilon=1.0))
    with pytest.raises(DiscreetError, match="'multiple' is for outcomes with labels"):
        Questions.from_document({"title": "How many?", "choice": "multiple"}, numbers)
    assert Questions.from_document({"title": "How many?"}, numbers).document["choice"] == "single"


def test_questions_stay_what_they_are_once_somebody_has_answered(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, LABELS)
    (tmp_path / "first.json").write_text(json.dumps({**ASKED, "title": "With a typo"}))
    (tmp_path / "second.json").write_text(json.dumps(ASKED))
    with running(tmp_path, "agreement.json", "--questions", "first.json") as collector:
        assert collector.get("/questions").json["title"] == "With a typo"
    with running(tmp_path, "agreement.json", "--questions", "second.json") as collector:
        found = collector.get("/questions")
        assert found.json["title"] == ASKED["title"]
        (listed,) = collector.get("/collection").json["agreements"]
        assert listed["questions"] == hashlib.sha256(found.body).hexdigest()
        assert collector.send(one(agreement, "ann", "car")).status == 200
    with running(tmp_path) as collector:  # it stays in the store
        assert collector.get("/questions").body == found.body
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.save_questions(agreement.id, found.body.decode())  # the same again changes nothing
        with pytest.raises(DiscreetError, match="people who read other words"):
            store.save_questions(agreement.id, Questions.from_document({**ASKED, "title": "Another"}, agreement).text)
        assert [kept.questions for kept in store.agreements()] == [found.body.decode()]


def test_a_published_result_says_what_was_asked_and_what_silence_counts_as(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, LABELS)
    asked = Questions.from_document({**ASKED, "choice": "multiple"}, agreement)
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(agreement)
        store.save_questions(agreement.id, asked.text)
        arrivals = [Arrival(text_digest(str(place)), text_digest("key"), place % 5) for place in range(50)]
        store.count_arrivals(agreement.id, 1, arrivals, "2026-01-01")
        close_collection(store)
        publish(store, tmp_path / "result")
    page = (tmp_path / "result" / "index.html").read_text()
    assert "How did you come to work? &lt;img" in page
    assert "counts for each of them in equal parts" in page
    assert "Nobody knows how many did" in page
    assert (tmp_path / "result" / "questions.json").read_text() == asked.text


def test_a_service_without_questions_says_so(tmp_path: Path) -> None:
    agreed(tmp_path, LABELS)
    with running(tmp_path, "agreement.json") as collector:
        assert collector.get("/questions").status == 404
        assert [each["questions"] for each in collector.get("/collection").json["agreements"]] == [None]


@pytest.mark.parametrize(
    ("asked", "address", "language"),
    [
        ("", "", "en"),
        ("de", "", "de"),
        ("fr;q=0.9, de-AT;q=0.8, en;q=0.7", "", "de"),
        ("en;q=0.2, de", "", "de"),
        ("de; q=0.9", "", "de"),
        ("de;q=0", "", "en"),
        ("de", "?lang=en", "en"),
        ("en", "?lang=de", "de"),
        ("de", "?lang=xx", "de"),
        ("*;q=x, " + "a" * 5000, "?lang=" + "z" * 500, "en"),
    ],
)
def test_a_page_is_read_in_the_language_of_the_address_or_the_browser(
    languages: Collector, asked: str, address: str, language: str
) -> None:
    for page, words in (
        (TAKE_PART, {"en": "Thank you", "de": "Danke"}),
        (LIVE, {"en": "All numbers", "de": "Alle Zahlen"}),
    ):
        found = languages.ask("GET", page + address, headers={"Accept-Language": asked})
        assert found.headers["Content-Language"] == language
        assert f'<html lang="{language}">' in found.body.decode()
        assert f">{words[language]}<" in found.body.decode()


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("languages")
    agreed(folder, LABELS)
    with running(folder, "agreement.json") as collector:
        yield collector


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_page_with_all_that_it_loads_takes_less_than_100_kilobytes(
    browser: Any, languages: Collector, language: str
) -> None:
    context = new_context(browser, locale=language)
    for path in (TAKE_PART, LIVE):
        page = context.new_page()
        sizes: list[int] = []
        page.on("requestfinished", lambda request, to=sizes: to.append(request.sizes()["responseBodySize"]))
        page.goto(f"{languages.address}{path}")
        until(page, "document.readyState === 'complete' && document.documentElement.lang")
        page.wait_for_timeout(300)
        assert 20_000 < sum(sizes) < 100_000, path
        page.close()
    context.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "single": (LABELS, ASKED),
    "multiple": (LABELS, {**ASKED, "choice": "multiple"}),
    "answer": ([*LABELS, "no answer"], {**ASKED, "choice": "multiple", "prefer_not_to_say": "no answer"}),
    "number": (dc.Interval(0.0, 50.0, cells=10), {"title": "How far is it?"}),
    "many": ([f"town {number}" for number in range(400)], {"title": "Where do you live?"}),
    "records": (LABELS, {"title": "Every way that you took", "choice": "records", "prefer_not_to_say": False}),
    "reports": (LABELS, ASKED),
}


@pytest.fixture(scope="module")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collector, dict[str, dc.Agreement]]]:
    """A service that asks a question of every kind."""
    folder = tmp_path_factory.mktemp("surveys")
    made: dict[str, dc.Agreement] = {}
    with closing(open_store(folder / "samples.db")) as store:
        for kind, (outcomes, asked) in KINDS.items():
            sampler: Any = dc.LinearSampler(dc.Simplex(outcomes), epsilon=1.0)
            if kind == "reports":
                sampler = dc.ReportSampler(dc.Simplex(outcomes), epsilon=1.0)
            made[kind] = dc.Agreement.of(sampler, purpose=f"{kind} for the test")
            store.add(made[kind])
            store.save_questions(made[kind].id, Questions.from_document(asked, made[kind]).text)
    with running(folder) as collector:
        yield collector, made
        assert collector.said == ""


@pytest.fixture
def visit(browser: Any, surveys: Any) -> Iterator[Any]:
    """Open a page as somebody who comes new; whatever it complains of fails the test."""
    contexts: list[Any] = []
    complaints = []
    collector, made = surveys

    def open_page(kind: str, *, path: str = TAKE_PART, more: str = "", **options: Any) -> Any:
        contexts.append(new_context(browser, **{"viewport": {"width": 390, "height": 844}, **options}))
        page = contexts[-1].new_page()
        complaints.append(watched(page))
        page.goto(f"{collector.address}{path}?agreement={made[kind].id}{more}")
        if path == TAKE_PART:
            until(page, READY)
        return page

    yield open_page
    assert [each for found in complaints for each in found()] == []
    for context in contexts:
        context.close()


def _shares(page: Any) -> list[str]:
    """What counts for the person, of each outcome that is shown."""
    page.evaluate("document.getElementById('drawn-part').open = true")
    return [text.split("\u00a0")[0] for text in page.locator("#drawn .told").all_inner_texts()]


@pytest.mark.slow
def test_what_leaves_does_not_depend_on_the_answer_and_not_on_preferring_not_to_say(visit: Any) -> None:
    """One request of one length; whoever prefers not to say is drawn for from the reference, as a client without records is."""
    seen = set()
    for choice in (0, 2, 5):
        page = visit("single")
        assert page.locator("#draw").is_disabled()
        assert page.locator("#held-card").is_hidden()
        requests: list[Any] = []
        page.on("request", lambda request, to=requests: to.append(request))
        boxes = page.locator("#question input[type=radio]")
        assert boxes.count() == 6
        boxes.nth(1).check()
        boxes.nth(choice).check()
        assert page.locator("#question input:checked").count() == 1
        shares = _shares(page)
        assert sorted(shares) == (["20"] * 5 if choice == 5 else ["0"] * 4 + ["100"])
        page.locator("#draw").click()
        page.wait_for_selector(SAMPLE_SHOWN)
        page.wait_for_timeout(200)
        assert requests == []
        assert page.locator("#question input:checked").count() == 0  # nothing of it stays on the page
        page.locator("#send").click()
        page.wait_for_selector(RECEIPT_SHOWN)
        (sent,) = requests
        assert json.loads(sent.post_data)["sample"] in LABELS
        assert json.loads(sent.post_data).keys() == {"agreement", "round", "client", "key", "sample"}
        seen.add((sent.url, len(sent.post_data_buffer)))
    assert len(seen) == 1


@pytest.mark.slow
def test_several_options_count_in_equal_parts_and_an_answer_of_its_own_stands_alone(visit: Any) -> None:
    page = visit("multiple")
    assert "in equal parts" in page.locator("#question").inner_text()
    boxes = page.locator("#question input[type=checkbox]")
    boxes.nth(0).check()
    boxes.nth(3).check()
    assert sorted(_shares(page)) == ["0", "0", "0", "50", "50"]
    boxes.nth(5).check()  # prefer not to say
    assert page.locator("#question input:checked").count() == 1
    assert _shares(page) == ["20"] * 5
    boxes.nth(1).check()
    assert sorted(_shares(page)) == ["0"] * 4 + ["100"]
    boxes.nth(1).uncheck()
    assert page.locator("#draw").is_disabled()
    page = visit("answer")
    boxes = page.locator("#question input[type=checkbox]")
    assert boxes.count() == 6  # an outcome of its own, and no second way to say nothing
    boxes.nth(0).check()
    boxes.nth(5).check()
    assert page.locator("#question input:checked").count() == 1
    assert sorted(_shares(page)) == ["0"] * 5 + ["100"]
    boxes.nth(2).check()
    assert page.locator("#question label:has(:checked)").inner_text().strip() == "bike"


@pytest.mark.slow
def test_numbers_are_typed_long_lists_searched_and_records_counted(visit: Any) -> None:
    page = visit("number")
    page.get_by_label("Your answer, a number from 0 to 50").fill("12")
    assert _shares(page)[0] == "100"
    page.get_by_role("spinbutton", name="Your answer").fill("77")  # outside: it counts by the rule, and is not refused
    assert "it counts as the nearest end" in page.locator("#outside").inner_text()
    assert page.locator("#drawn .name").first.inner_text() == "45 to 50"
    page.get_by_label("I prefer not to say").check()
    assert page.get_by_role("spinbutton", name="Your answer").input_value() == ""
    assert set(_shares(page)) == {"10"}
    page = visit("many")
    page.get_by_label("Find an option").fill("TOWN 37")
    assert page.locator("#question label.option, #question .options label").count() == 12
    page.get_by_label("town 377", exact=True).check()
    page.get_by_label("Find an option").fill("town 12")
    assert (
        page.locator("#question .options label").first.inner_text().strip() == "town 377"
    )  # what is chosen stays in sight
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    page = visit("records")
    assert page.locator("#held-heading").inner_text() == "Every way that you took"
    page.get_by_role("button", name="One more of car").click()
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    page = visit("reports")
    page.get_by_label("By car").check()
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    assert "This is your randomised answer." in page.locator("#sample-told").inner_text()
    page.locator("#send").click()
    page.wait_for_selector(RECEIPT_SHOWN)


@pytest.mark.slow
def test_words_are_texts_and_the_agreement_speaks_for_itself(visit: Any, surveys: Any) -> None:
    """Whatever the questions say, the page shows what is agreed on, the labels that are sent, and the digest of the words."""
    collector, made = surveys
    page = visit("single")
    assert page.locator("img").count() == 0
    assert page.locator("#question legend").inner_text() == ASKED["title"]
    assert page.locator("#question .options label").all_inner_texts()[0].split() == ["By", "car", "car"]
    facts = page.locator("#asked").inner_text()
    for words in ("single for the test", "Strong", "by a factor of at most 2.72"):
        assert words in facts
    page.locator("#asked-more summary").click()
    listed = {
        each["agreement"]: each["questions"]
        for each in collector.get(f"/collection?agreement={made['single'].id}").json["agreements"]
    }
    more = page.locator("#asked-rest").inner_text()
    assert listed[made["single"].id] in more
    assert made["single"].id in more
    assert "Their words are not part of the agreement" in more
    assert collector.send(one(made["single"], "ann", "car")).status == 200
    live = visit("single", path=LIVE)
    until(live, "document.querySelectorAll('#rows li').length === 5")
    assert live.locator("h1").inner_text() == ASKED["title"]
    assert {"By car (car)", "By train (train)", "bike"} <= set(live.locator("#rows .name").all_inner_texts())
    assert "A person who preferred not to say counts for every option" in live.locator("#meaning").inner_text()


@pytest.mark.slow
def test_a_link_that_names_the_questions_opens_no_others(visit: Any, surveys: Any) -> None:
    """A service that shows somebody other words is found out by a link that names the digest; what a person read is remembered."""
    collector, made = surveys
    digest = hashlib.sha256(collector.get(f"/questions?agreement={made['single'].id}").body).hexdigest()
    page = visit("single", more=f"#questions={digest[:16]}")
    assert page.locator("#question-card").is_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    other = Questions.from_document({**ASKED, "text": "Your employer reads this."}, made["single"])

    def lie(route: Any) -> None:
        if "/questions" in route.request.url:
            route.fulfill(body=other.text, content_type="application/json")
            return
        answer = route.fetch()
        told = answer.json()
        told["agreements"][0]["questions"] = other.digest
        route.fulfill(response=answer, json=told)

    page.route("**/collection*", lie)
    page.route("**/questions*", lie)
    page.reload()
    until(page, READY)
    assert "not the questions that your link names" in page.locator("#problem").inner_text()
    assert page.locator("#question-card, #held-card, #draw-card").locator("visible=true").count() == 0
    assert not [url for url in asked if digest[:16] in url]  # what a link names is sent to nobody
    page = visit("single")
    page.get_by_label("By car").check()
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    assert page.locator("#problem").inner_text() == ""
    page.route("**/collection*", lie)
    page.route("**/questions*", lie)
    page.reload()
    until(page, READY)
    assert "have changed since you answered" in page.locator("#problem").inner_text()
    page = visit("single")
    page.route("**/questions*", lambda route: route.fulfill(body=other.text, content_type="application/json"))
    page.reload()
    until(page, READY)
    assert "changed on the way" in page.locator("#problem").inner_text()  # not what the collection says that they are


@pytest.mark.slow
def test_all_of_it_can_be_read_in_german(visit: Any) -> None:
    page = visit("single", locale="de-AT")
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.locator("#question legend").inner_text() == GERMAN["title"]
    page.get_by_label("Mit der Bahn").check()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    read = [page.locator("body").inner_text()]
    assert "2,72" in read[0]
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    read.append(page.locator("body").inner_text())
    page.locator("#send").click()
    page.wait_for_selector(RECEIPT_SHOWN)
    read.append(page.locator("body").inner_text())
    page.locator("#see").click()
    until(page, "document.querySelectorAll('#rows li').length === 5")
    page.evaluate("document.querySelectorAll('#trust dd[lang=en]').forEach((each) => each.remove())")
    read.append(page.locator("body").inner_text())
    english = r"\b(the|your|sample|samples|of|and|is|from|answer|with)\b"
    for text in read:
        plain = text.replace(MARKUP, "")
        lines = [
            line
            for line in plain.splitlines()
            if not line.endswith("/samples") and '"sample":' not in line and "for the test" not in line
        ]
        assert not [line for line in lines if re.search(english, line)]
    page = visit("single", more="&lang=de", locale="en")
    page.locator("#live").click()
    page.wait_for_url("**lang=de*")  # a choice of language goes along


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "locale", "scheme"),
    wide([(390, "de", "dark"), (1440, "en", "light"), (320, "en", "light")], [(320, "de", "dark")]),
)
def test_everybody_can_answer(visit: Any, width: int, locale: str, scheme: str) -> None:
    """axe finds nothing to object to in any state, nothing is wider than the screen (320 is 200 % of a phone), and keys suffice."""
    checks = (node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    more: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "locale": locale, "color_scheme": scheme}
    kinds = ("single", "multiple", "number", "many")
    for kind in wide(kinds, {390: kinds[::2], 1440: kinds[1::2]}.get(width, kinds)):
        page = visit(kind, bypass_csp=True, **more)
        page.evaluate(checks)
        for _ in range(60):
            if page.evaluate("document.activeElement.matches('#question input')"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown") if kind == "single" else page.keyboard.type(
            "7"
        ) if kind == "number" else page.keyboard.press("Space")
        if kind == "many":
            page.keyboard.press("Tab")
            page.keyboard.press("Space")
        assert page.evaluate(OBJECTIONS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for _ in range(60):
            if page.evaluate("document.activeElement.id") == "draw":
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector(SAMPLE_SHOWN)
        assert page.evaluate(OBJECTIONS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
