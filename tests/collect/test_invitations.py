"""Links and QR codes to take part by: what they hold, that a token goes to no log, and that each opens the page for its person."""

import csv
import json
import re
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from discreet.cli._app import app
from discreet.collect import _pages, invitation_links, open_store, write_invitation_folder
from discreet.collect._counting import token_digest
from discreet.collect._pages import Questions, add_tokens_to_store, read_tokens, write_fresh_token_file
from discreet.errors import DiscreetError
from tests.collect.running import agreed, running
from tests.javascript.browser import FORGET_COPIES, chromium, loading_anew, new_context, until, watched
from tests.needed import needed_module

LABELS = ["red", "green", "blue"]
READY = "document.documentElement.dataset.ready"
TOKENS = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with questions and enrolled people, and their tokens."""
    agreement = agreed(tmp_path, LABELS)
    write_fresh_token_file(tmp_path / "tokens.txt", TOKENS)
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(agreement)
        store.save_questions(agreement.id, Questions.from_document({"title": "Which colour?"}, agreement).text)
        add_tokens_to_store(store, read_tokens(tmp_path / "tokens.txt"))
    return tmp_path


def test_each_token_has_a_link_in_an_order_by_chance(folder: Path) -> None:
    tokens = read_tokens(folder / "tokens.txt")
    with closing(open_store(folder / "samples.db")) as store:
        (kept,) = store.agreements()
        links = invitation_links(store, "https://Example.org/", tokens, more="lang=de")
        fragments = [parse_qs(urlsplit(link).fragment) for link in links]
        found = [fragment["token"][0] for fragment in fragments]
        assert sorted(found) == sorted(tokens)
        assert found != tokens  # one chance in 479 million
        assert all(kept.questions is not None and len(fragment["questions"][0]) == 16 for fragment in fragments)
        pages = {link.partition("#")[0] for link in links}
        assert pages == {f"https://example.org/take-part?agreement={kept.agreement.id}&lang=de"}
        with pytest.raises(DiscreetError, match="enrolled clients only"):
            invitation_links(store, "https://example.org")
        with pytest.raises(DiscreetError, match="not enrolled in the store"):
            invitation_links(store, "https://example.org", ["x" * 20])
        store.revoke_token_digests([token_digest(tokens[0])])
        with pytest.raises(DiscreetError, match="or were revoked"):
            invitation_links(store, "https://example.org", tokens)
        with pytest.raises(DiscreetError, match="address"):
            invitation_links(store, "example", tokens)


def test_a_command_writes_a_table_and_a_sheet_that_nobody_else_may_read(folder: Path) -> None:
    segno = needed_module("segno", "pip install '.[collect]'")
    store, address = str(folder / "samples.db"), "https://example.org"
    command = [
        "invite",
        store,
        "--address",
        address,
        "--tokens",
        str(folder / "tokens.txt"),
        "-o",
        str(folder / "letters"),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "12 links" in done.output
    assert not any(token in done.output for token in read_tokens(folder / "tokens.txt"))
    assert stat.S_IMODE((folder / "letters").stat().st_mode) == 0o700
    with (folder / "letters" / "links.csv").open() as file:
        links = [row["link"] for row in csv.DictReader(file)]
    sheet = (folder / "letters" / "invitations.html").read_text()
    assert len(links) == sheet.count("<svg") == TOKENS
    for link in links:
        drawn = segno.make(link, error="m", micro=False).svg_inline(scale=1, omitsize=True, border=4)
        assert f"{drawn}<small>" in sheet
    assert not re.search(r"<script|\son\w+=|src=", sheet)
    again = CliRunner().invoke(app, command)
    assert again.exit_code != 0  # nothing is overwritten
    both = CliRunner().invoke(app, [*command[:-1], str(folder / "other"), "--field"])
    assert both.exit_code != 0
    tablet = CliRunner().invoke(
        app, [*command[:4], "-o", str(folder / "tablet"), "--field"]
    )  # people type their tokens
    assert tablet.exit_code == 0, tablet.output
    assert "&field#" in (folder / "tablet" / "links.csv").read_text()


def test_a_sheet_says_how_many_links_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed_module("segno", "pip install '.[collect]'")
    monkeypatch.setattr(_pages, "_MOST_PRINTED", 2)
    for many, said in ((2, []), (3, ["1 more link"]), (5, ["3 more links"])):
        write_invitation_folder(tmp_path / str(many), ["https://example.org/take-part"] * many, "colours")
        sheet = (tmp_path / str(many) / "invitations.html").read_text()
        assert re.findall(r"<p>(.*) without a picture: see links\.csv\.</p>", sheet) == said
        assert sheet.count("<svg") == 2


def test_an_open_collection_has_one_link(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, LABELS)
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(agreement)
        assert invitation_links(store, "http://localhost:8000") == [
            f"http://localhost:8000/take-part?agreement={agreement.id}"
        ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.slow
def test_a_link_opens_the_page_for_its_person_and_its_token_goes_to_no_log(browser: Any, folder: Path) -> None:
    tokens = read_tokens(folder / "tokens.txt")
    context = new_context(browser, viewport={"width": 390, "height": 844})
    page = context.new_page()
    complaints = watched(page)
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request))
    with running(folder) as collector:
        with closing(open_store(folder / "samples.db")) as store:
            link = invitation_links(store, collector.address, tokens)[0]
        token = parse_qs(urlsplit(link).fragment)["token"][0]
        page.goto(link)
        until(page, READY)
        assert token not in page.url  # and not in the list of pages to go back to
        assert "questions=" in page.url
        page.get_by_label("green").check()
        page.locator("#draw").click()
        page.wait_for_selector("#sample-card:not([hidden])")
        assert page.locator("#token").input_value() == token
        page.locator("#send").click()
        page.wait_for_selector("#receipt-card:not([hidden])")
        (sent,) = [request for request in asked if request.method == "POST"]
        assert json.loads(sent.post_data)["client"] == token
        assert not [request for request in asked if token in request.url or token in str(request.headers)]
        assert token not in page.evaluate("JSON.stringify(localStorage)")
        assert collector.said == ""
    assert complaints() == []
    context.close()


@pytest.mark.slow
def test_a_link_that_is_opened_in_the_tab_of_another_is_read_too(browser: Any, folder: Path) -> None:
    """Only the part after the # differs, so that browsers load nothing: the token would stay in the address."""
    first, second = read_tokens(folder / "tokens.txt")[:2]
    with running(folder) as collector, closing(new_context(browser)) as context:
        page = context.new_page()
        page.goto(f"{collector.address}/take-part#token={first}")
        until(page, READY)
        page.goto(f"{collector.address}/take-part#questions={'0' * 16}&token={second}")
        until(page, "document.getElementById('problem').textContent.includes('that your link names')")
        assert second not in page.url


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [False, True])
def test_a_token_is_put_beside_no_answer_that_was_drawn_for_another(browser: Any, folder: Path, earlier: bool) -> None:
    """The first person has not sent their answer. The token of the second was sent with it."""
    first, second = read_tokens(folder / "tokens.txt")[:2]
    with running(folder) as collector, closing(new_context(browser)) as context:

        def token_of_page(token: str) -> str:
            page.goto("about:blank")
            page.goto(f"{collector.address}/take-part#token={token}")
            until(page, READY)
            return str(page.locator("#token").input_value())

        page = context.new_page()
        token_of_page(first)
        page.get_by_label("green").check()
        page.locator("#draw").click()
        page.wait_for_selector("#sample-card:not([hidden])")
        record = json.loads(page.evaluate("localStorage.getItem('discreet collector')"))
        if earlier:  # such a version did not note whose link was open
            for entry in record["spoken"].values():
                del entry["linkKey"]
            page.evaluate(FORGET_COPIES)
            page.evaluate("(text) => localStorage.setItem('discreet collector', text)", json.dumps(record))
        assert token_of_page(second) == ""
        assert page.locator("#send").is_disabled()
        assert token_of_page(first) == ("" if earlier else first)
        assert first not in page.evaluate("JSON.stringify(localStorage)")


@pytest.mark.slow
def test_a_link_opens_for_the_second_and_the_third_person_at_a_browser(browser: Any, folder: Path) -> None:
    """Their token is neither sent with the answer of the first nor lost when the page asks who takes part."""
    first, second, third = read_tokens(folder / "tokens.txt")[:3]
    with running(folder) as collector, closing(new_context(browser)) as context:

        def page_of_link(token: str) -> Any:
            page = context.new_page()
            page.goto(f"{collector.address}/take-part#token={token}")
            until(page, READY)
            return page

        def answer_and_send(page: Any, token: str) -> None:
            page.get_by_label("green").check()
            page.locator("#draw").click()
            page.wait_for_selector("#sample-card:not([hidden])")
            assert page.locator("#token").input_value() == token
            page.locator("#send").click()
            page.wait_for_selector("#receipt-card:not([hidden])")
            assert "has arrived" in page.locator("#thanks").inner_text()

        def click_and_wait(page: Any, button: str) -> None:
            if button == "#somebody-else":
                page.locator("#else-part > summary").click()
            with loading_anew(page):
                page.locator(button).click()
            until(page, READY)

        page = page_of_link(first)
        answer_and_send(page, first)
        click_and_wait(page, "#somebody-else")
        assert page.locator("#token").input_value() == ""  # it was the first person's
        assert first not in page.url
        for token, button in ((second, "#somebody-else"), (third, "#nobody-of-these")):
            page = page_of_link(token)
            assert page.locator("#token").input_value() == ""  # what is shown, if anything, is the answer of another
            click_and_wait(page, button)
            assert token not in page.url
            answer_and_send(page, token)
        assert collector.get("/estimate").json["samples"] == 3
