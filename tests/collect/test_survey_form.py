"""A survey of several columns on `/take-part`: a question for each column, one report about one of them, in a real Chromium."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from discreet.agreement import Agreement
from discreet.collect import open_store
from discreet.collect._pages import LIVE, TAKE_PART, Questions
from discreet.errors import DiscreetError
from discreet.survey import Dates, Number, Survey, SurveySampler, mean, quantiles, shares
from tests.collect.running import Collector, running
from tests.javascript.browser import CLIENT, ROOT, SITE, chromium, new_context, node_modules, served, until, watched
from tests.soaking import wide

READY = "document.documentElement.dataset.ready"
SAMPLE_SHOWN = "#sample-card:not([hidden])"
RECEIPT_SHOWN = "#receipt-card:not([hidden])"
OBJECTIONS = (
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"
)
SURVEY = Survey(
    {
        "mode": ["car", "train", "bike", "<b>foot</b>"],
        "minutes": Number(0, 180, "minutes"),
        "since": Dates("2024-01-01", "2024-12-31"),
        "stops": 6,
        "name": ["never", "asked"],
    },
    [shares("mode"), mean("minutes"), quantiles("minutes"), shares("since"), shares("mode", "stops")],
)
SAMPLER = SurveySampler(SURVEY, epsilon=2.0)
PLAIN = Agreement.of(SAMPLER, purpose="a survey without words")
ASKED_OF = Agreement.of(SAMPLER, purpose="a survey in words")
GERMAN: dict[str, Any] = {
    "title": "Wie wir zur Arbeit kommen",
    "columns": {
        "mode": {"title": "Womit?", "options": {"car": "Mit dem Auto"}},
        "minutes": {"title": "Wie lange?"},
        "since": {"title": "Seit wann?", "text": "Ein Tag."},
        "stops": {"title": "Wie oft?"},
    },
}
ASKED: dict[str, Any] = {
    "title": "How we come to work",
    "columns": {
        "mode": {"title": "How did you come?", "choice": "multiple", "options": {"car": "By car"}},
        "minutes": {"title": "How long did it take?"},
        "since": {"title": "Since when?", "text": "A day."},
        "stops": {"title": "How many stops?", "prefer_not_to_say": False},
    },
    "translations": {"de": GERMAN},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("survey")
    with closing(open_store(folder / "samples.db")) as store:
        for agreement in (PLAIN, ASKED_OF):
            store.add(agreement)
        store.save_questions(ASKED_OF.id, Questions.from_document(ASKED, ASKED_OF).text)
    with running(folder) as collector:
        yield collector
        assert collector.said == ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Any, service: Collector) -> Iterator[Any]:
    contexts, complaints = [], []

    def open_page(agreement: Agreement, *, path: str = TAKE_PART, **options: Any) -> Any:
        contexts.append(new_context(browser, **{"viewport": {"width": 390, "height": 844}, **options}))
        page = contexts[-1].new_page()
        complaints.append(watched(page))
        page.goto(f"{service.address}{path}?agreement={agreement.id}")
        if path == TAKE_PART:
            until(page, READY)
        return page

    yield open_page
    assert [each for found in complaints for each in found()] == []
    for context in contexts:
        context.close()


def _answer(page: Any, *, declined: bool = False) -> None:
    """Answer every question, or prefer not to say where that is offered."""
    parts = page.locator("#question fieldset")
    assert parts.count() == 4  # nobody is asked for what no report is about
    parts.nth(0).locator("input").nth(4 if declined else 0).check()
    if declined:
        for place in (1, 2):
            parts.nth(place).locator("input[type=radio]").check()
    else:
        parts.nth(1).locator("input").first.fill("35")
        parts.nth(2).locator("input").first.fill("2024-05-06")
    parts.nth(3).locator("input").first.fill("2")


@pytest.mark.slow
def test_one_report_leaves_of_one_length_and_the_coin_is_told(visit: Any, service: Collector) -> None:
    before = service.get(f"/estimate?agreement={ASKED_OF.id}").json["clients"]
    lengths, parts = set(), set()
    for declined in (False, True, False):
        page = visit(ASKED_OF)
        assert "Your randomised answer is about one part of the survey" in page.locator("#coin").inner_text()
        assert page.locator("#draw").is_disabled()
        assert page.locator("#draw-first").inner_text() == "Answer every question first; 4 are left."
        requests: list[Any] = []
        page.on("request", lambda request, to=requests: to.append(request))
        _answer(page, declined=declined)
        page.evaluate("document.getElementById('drawn-part').open = true")
        told = page.locator("#drawn .told").all_inner_texts()
        assert abs(sum(float(each.split("\u00a0")[0]) for each in told) - 100) < 1
        page.locator("#draw").click()
        page.wait_for_selector(SAMPLE_SHOWN)
        assert requests == []
        parts.add(page.locator("#sample-told").inner_text().split("”")[0])
        page.locator("#send").click()
        page.wait_for_selector(RECEIPT_SHOWN)
        (sent,) = requests
        report = int(json.loads(sent.post_data)["sample"])
        SAMPLER.check_reports(np.array([report], dtype=np.uint64))  # as Python reads it
        lengths.add((len(sent.post_data_buffer), sent.url))
        page.reload()
        page.wait_for_selector(RECEIPT_SHOWN)
        assert json.loads(page.locator("#request").text_content())["sample"] == str(report)
    assert len(lengths) == 1
    assert all(part.startswith("The random choice was “") for part in parts)
    assert service.get(f"/estimate?agreement={ASKED_OF.id}").json["clients"] == before + 3
    live = visit(ASKED_OF, path=LIVE)
    until(live, "document.querySelectorAll('#answers h3').length === 5")
    titles = live.locator("#answers h3").all_inner_texts()
    assert any("How did you come?" in title for title in titles)  # and not the name of the column
    assert not any("mode" in title for title in titles)


@pytest.mark.slow
def test_what_is_held_is_one_of_the_chosen_options_by_chance_in_every_column(browser: Any) -> None:
    """The row that a report looks at has the law of a person who holds all chosen options in equal parts, independently by column."""
    context = new_context(browser)
    page = context.new_page()
    pages = ROOT / "src" / "discreet" / "collect" / "pages"
    files: dict[str, Any] = {f"/{name}/": CLIENT / name for name in ("src", "page", "collector")}
    served(page, {"/": "<!doctype html><form id=body></form>", "/en.json": pages / "en.json", **files})
    page.goto(f"{SITE}/")
    rows = page.evaluate(
        """async ([text, draws]) => {
          const [{ Agreement }, { Form }, { useCatalogue }, catalogue] = await Promise.all([
            import("/src/agreement.js"), import("/collector/question.js"), import("/page/catalogue.js"), (await fetch("/en.json")).json()]);
          useCatalogue(catalogue);
          const { survey } = Agreement.read(text);
          const mode = { title: "mode", choice: "multiple", prefer_not_to_say: true };
          const form = new Form(survey, { columns: { mode } }, document.getElementById("body"), () => {});
          const parts = document.querySelectorAll("fieldset");
          for (const place of [0, 2]) parts[0].querySelectorAll("input")[place].click();
          for (const place of [1, 2, 3]) parts[place].querySelector("[type=radio]").click();
          return Array.from({ length: draws }, () => form.personData.records[0]);
        }""",
        [PLAIN.text, 6000],
    )
    context.close()
    assert {row["name"] for row in rows} == {"never"}  # which no report is about
    both = Counter((row["mode"], row["stops"]) for row in rows)
    assert both.keys() == {(mode, stops) for mode in ("car", "bike") for stops in range(6)}
    assert chisquare(list(both.values())).pvalue > 1e-9
    cells = Counter(int(row["minutes"] // 18) for row in rows)
    assert chisquare([cells[cell] for cell in range(10)]).pvalue > 1e-9
    assert {row["since"] for row in rows} == set(SURVEY.columns["since"].labels or ())


@pytest.mark.slow
def test_a_survey_without_words_has_a_field_for_each_column_and_says_what_is_agreed(visit: Any) -> None:
    page = visit(PLAIN, locale="de")
    assert page.locator("#question legend").all_inner_texts() == ["mode", "minutes", "since", "stops"]
    assert page.locator("#question b").count() == 0
    facts = page.locator("#asked").inner_text()
    assert "bestimmt, um welchen Teil der Umfrage es in Ihrer Meldung geht" in facts
    assert "mode × stops mit einer Wahrscheinlichkeit von" in facts
    assert "höchstens den Faktor 7,39" in facts
    page.locator("#question fieldset").nth(1).locator("input").first.fill("999")  # counts as the nearest end
    page.locator("#question fieldset").nth(0).locator("input").nth(3).check()
    for place in (2, 3):
        page.locator("#question fieldset").nth(place).locator("input[type=radio]").check()
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    assert page.locator("#question input:checked").count() == 0
    page.locator("#send").click()
    page.wait_for_selector(RECEIPT_SHOWN)
    live = visit(ASKED_OF, path=LIVE)
    until(live, "document.getElementById('meaning').textContent.includes('preferred not to say counts for every')")
    assert live.locator("h1").inner_text() == ASKED["title"]


@pytest.mark.slow
def test_an_answer_that_a_column_does_not_have_is_told_before_the_draw_and_to_nobody_else(visit: Any) -> None:
    """It would leave out the other answers too; the page asks nothing of anybody meanwhile."""
    page = visit(ASKED_OF)
    requests: list[Any] = []
    page.on("request", lambda request: requests.append(request))
    _answer(page)
    assert page.locator("#draw").is_enabled()
    parts = page.locator("#question fieldset")
    for place, good, wrong, allowed in (
        (3, "2", ["7", "6", "-1", "1.5"], "Enter a whole number from 0 to 5"),
        (2, "2024-12-31", ["2025-01-01", "2023-12-31"], "Enter a date from 2024-01-01 to 2024-12-31"),
    ):
        field, told = parts.nth(place).locator("input").first, parts.nth(place).locator("[role=status]")
        for each in wrong:
            field.fill(each)
            assert allowed in told.inner_text(), each
            assert field.get_attribute("aria-invalid") == "true"
            assert page.locator("#draw").is_disabled()
            assert page.locator("#draw-first").inner_text() == "Answer every question first; 1 is left."
        field.fill(good)
        assert told.inner_text() == ""
        assert field.get_attribute("aria-invalid") == "false"
        assert page.locator("#draw").is_enabled()
    field, told = parts.nth(1).locator("input").first, parts.nth(1).locator("[role=status]")
    field.fill("-3")
    assert told.inner_text() == "This lies outside; it counts as 0."
    field.fill("999")
    assert told.inner_text() == "This lies outside; it counts as 180."
    assert page.locator("#draw").is_enabled()
    parts.nth(2).locator("input").first.fill("2025-01-01")
    parts.nth(2).locator("input[type=radio]").check()  # prefer not to say
    assert parts.nth(2).locator("[role=status]").inner_text() == ""
    page.locator("#draw").click()
    page.wait_for_selector(SAMPLE_SHOWN)
    assert requests == []


@pytest.mark.slow
def test_names_that_all_objects_know_are_names_like_others(visit: Any, service: Collector) -> None:
    """In the address, and as options: nothing is found that nobody wrote."""
    page = visit(ASKED_OF)
    for code in ("constructor", "__proto__", "toString-x"):
        page.goto(f"{service.address}{TAKE_PART}?agreement={ASKED_OF.id}&lang={code}")
        until(page, READY)
        assert page.locator("#problem").inner_text() == ""
        assert page.locator("h1").inner_text() == ASKED["title"]
    files: dict[str, Any] = {f"/{name}/": CLIENT / name for name in ("src", "page", "collector")}
    alone = page.context.new_page()
    served(alone, {"/": "<!doctype html>", **files})
    alone.goto(f"{SITE}/")
    told = """async (name) => (await import("/collector/question.js")).optionText({ options: { tea: "Tea" } }, name)"""
    for name in ("constructor", "toString", "__proto__", "hasOwnProperty"):
        assert alone.evaluate(told, name) == name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme", "locale"), wide([(390, "dark", "de"), (1440, "light", "en")], [(390, "dark", "de")])
)
def test_everybody_can_answer_a_survey(visit: Any, width: int, scheme: str, locale: str) -> None:
    checks = (node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    more: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "locale": locale}
    for agreement in wide((PLAIN, ASKED_OF), (ASKED_OF,) if locale == "de" else (PLAIN,)):
        page = visit(agreement, bypass_csp=True, **more)
        page.evaluate(checks)
        _answer(page)
        assert page.evaluate(OBJECTIONS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#draw").click()
        page.wait_for_selector(SAMPLE_SHOWN)
        assert page.evaluate(OBJECTIONS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    if locale == "de":
        assert page.locator("h1").inner_text() == GERMAN["title"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"columns": {"mode": {"title": "How?"}}}, "no question for 'minutes', which the survey asks"),
        ({"columns": {**ASKED["columns"], "name": {"title": "Who?"}}}, "'name' is not one of the fields"),
        ({"choice": "single"}, "'choice' is not one of the fields"),
        ({"columns": {**ASKED["columns"], "stops": {"title": "a", "choice": "records"}}}, "single or multiple"),
        ({"columns": {**ASKED["columns"], "stops": {"title": "a", "choice": "multiple"}}}, "these are numbers"),
        ({"translations": {"de": {"title": "Wie?"}}}, "translations.de has not the fields columns, title"),
        ({"translations": {"de": {**GERMAN, "columns": {"mode": {"title": "Wie?"}}}}}, "translations.de.columns.mode"),
    ],
)
def test_what_is_wrong_with_the_words_of_a_survey_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DiscreetError, match=says):
        Questions.from_document({**ASKED, **change}, ASKED_OF)
