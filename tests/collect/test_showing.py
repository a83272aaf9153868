"""Results after one's own sample, or never: what the service says to whom, and what pages show."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.agreement import Agreement
from discreet.collect import open_store
from discreet.collect._pages import LIVE, TAKE_PART
from discreet.errors import DiscreetError
from discreet.survey import Survey, SurveySampler, shares
from tests.collect.behaviour import agreed as stored_agreement
from tests.collect.running import agreed, one, running
from tests.javascript.browser import chromium, new_context, until, watched

READY = "document.documentElement.dataset.ready"
LABELS = ["red", "green", "blue"]


def test_estimates_are_for_holders_of_the_ticket_that_everybody_is_given_who_has_a_sample(tmp_path: Path) -> None:
    """It is the same for all, so that nobody can be followed by it; a refused sender gets none, in an answer of the same length."""
    agreement = agreed(tmp_path, LABELS, rounds=2)
    other = agreed(tmp_path, LABELS, name="other.json", purpose="another collection")
    with running(
        tmp_path, "agreement.json", "other.json", "--show", "after", "--round", "1", "--round", "2"
    ) as collector:

        def estimate(**headers: str) -> Any:
            return collector.get(f"/estimate?agreement={agreement.id}&round=1", **headers).json

        assert collector.get("/collection").json["shown"] == "after"
        sent = [collector.send(one(agreement, name, "red")) for name in ("ann", "ben")]
        again = collector.send(one(agreement, "ann", "red"))
        refused = collector.send(one(agreement, "ann", "green", key="other"))
        answers = [*sent, again, refused]
        assert [answer.status for answer in answers] == [200, 200, 200, 409]
        whole = {
            len(answer.body) + len(str(answer.headers)) + len({200: "OK", 409: "Conflict"}[answer.status])
            for answer in answers
        }
        assert len(whole) == 1
        tickets = {answer.json.get("ticket") for answer in answers}
        assert len(tickets) == 2  # one for all, and none
        assert None in tickets
        (ticket,) = tickets - {None}
        for headers in (
            {},
            {"Authorization": "Bearer "},
            {"Authorization": f"Bearer {ticket[:-1]}"},
            {"Authorization": str(ticket)},
        ):
            hidden = estimate(**headers)
            assert (hidden["hidden"], hidden["samples"], hidden["shares"]) == ("after", 2, [])
            assert sum(number for _, number in hidden["days"]) == 2
            assert collector.get(f"/change?agreement={agreement.id}&round=2", **headers).status == 403
        shown = estimate(Authorization=f"Bearer {ticket}")
        assert (shown["samples"], len(shown["shares"]), "hidden" in shown) == (2, 3, False)
        theirs = collector.get(f"/estimate?agreement={other.id}", Authorization=f"Bearer {ticket}").json
        assert theirs["shares"] == []  # a ticket is for its collection
        rows = [{"client": "cid", "key": "k", "sample": "red"}]
        many = collector.send({"agreement": agreement.id, "round": 1, "samples": rows})
        assert "ticket" not in many.json  # a batch is a gateway's, not a person's
    with running(tmp_path) as collector:  # it stays in the store, and so does the ticket
        assert (
            len(collector.get(f"/estimate?agreement={agreement.id}", Authorization=f"Bearer {ticket}").json["shares"])
            == 3
        )
    with running(tmp_path, "--show", "never") as collector:
        assert estimate_of(collector, agreement, ticket)["hidden"] == "never"
        assert "ticket" not in collector.send(one(agreement, "dan", "red")).json
    with running(tmp_path, "--show", "always") as collector:
        assert len(estimate_of(collector, agreement, "")["shares"]) == 3
    with running(tmp_path, "--show", "after") as collector:
        assert len(estimate_of(collector, agreement, ticket)["shares"]) == 3


def estimate_of(collector: Any, agreement: Agreement, ticket: str) -> Any:
    return collector.get(f"/estimate?agreement={agreement.id}", Authorization=f"Bearer {ticket}").json


def test_a_survey_s_answers_are_hidden_likewise(tmp_path: Path) -> None:
    sampler = SurveySampler(Survey({"a": ["x", "y"], "b": ["u", "v"]}, [shares("a"), shares("a", "b")]), epsilon=1.0)
    agreement = Agreement.of(sampler, purpose="a survey")
    agreement.write(tmp_path / "agreement.json")
    report = str(sampler.release_table({"a": ["x"], "b": ["u"]})[0])
    with running(tmp_path, "agreement.json", "--show", "after") as collector:
        ticket = collector.send(one(agreement, "ann", report)).json["ticket"]
        hidden, shown = (estimate_of(collector, agreement, given) for given in ("", ticket))
        assert (hidden["clients"], hidden["questions"], hidden["hidden"]) == (1, [], "after")
        assert (shown["clients"], len(shown["questions"])) == (1, 2)
        assert collector.get("/groups?by=b").status == 403


def test_another_word_is_refused(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(stored_agreement(3))
        with pytest.raises(DiscreetError, match="shown = 'sometimes' is not one of always, after, never"):
            store.set_estimate_visibility("sometimes")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.slow
def test_a_person_sees_what_others_said_after_their_own_answer_or_never(browser: Any, tmp_path: Path) -> None:
    agreement = agreed(tmp_path, LABELS)
    context = new_context(browser, viewport={"width": 390, "height": 844})
    page = context.new_page()
    complaints = watched(page)
    with running(tmp_path, "agreement.json", "--show", "after") as collector:
        for name in ("ann", "ben"):
            collector.send(one(agreement, name, "red"))
        page.goto(f"{collector.address}{LIVE}")
        until(page, "document.getElementById('nothing').textContent.includes('have taken part')")
        assert "2 samples have come so far." in page.locator("#nothing").inner_text()
        assert page.locator("#population, #width-figure, #liars-figure").locator("visible=true").count() == 0
        page.goto(f"{collector.address}{TAKE_PART}")
        until(page, READY)
        assert page.locator("#live").is_hidden()  # not before their own
        page.get_by_role("button", name="One more of green").click()
        page.locator("#draw").click()
        page.wait_for_selector("#sample-card:not([hidden])")
        page.locator("#send").click()
        page.wait_for_selector("#receipt-card:not([hidden])")
        seen: list[dict[str, str]] = []
        page.on("request", lambda request: seen.append(request.headers) if "/estimate" in request.url else None)
        page.locator("#see").click()
        until(page, "document.querySelectorAll('#rows li').length === 3")
        book = json.loads(page.evaluate("localStorage.getItem('discreet collector')"))
        assert seen[0]["authorization"] == f"Bearer {next(iter(book['tickets'].values()))}"
        assert all(book["secret"] not in str(headers) for headers in seen)
        stranger = new_context(browser).new_page()
        stranger.goto(f"{collector.address}{LIVE}")
        until(stranger, "document.getElementById('nothing').textContent.includes('have taken part')")
        stranger.close()
        port = collector.port
        collector.stop()
    with running(tmp_path, "--show", "never", port=port, log="second.txt") as collector:
        page.goto(f"{collector.address}{LIVE}")
        until(page, "document.getElementById('nothing').textContent.includes('show no results here')")
        page.goto(f"{collector.address}{TAKE_PART}")
        page.wait_for_selector("#receipt-card:not([hidden])")
        assert page.locator("#live, #see").locator("visible=true").count() == 0
    assert [each for each in complaints() if "ERR_CONNECTION_REFUSED" not in each] == []
    context.close()


@pytest.mark.slow
def test_groups_and_stages_are_shown_to_holders_of_the_ticket_alone(browser: Any, tmp_path: Path) -> None:
    made = [agreed(tmp_path, LABELS, name=f"{name}.json", purpose=name) for name in ("north", "south")]
    context = new_context(browser)
    page = context.new_page()
    complaints = watched(page)
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request))
    cards = page.locator("#groups-card, #stages-card, #change-card").locator("visible=true")
    with running(tmp_path, "north.json", "south.json", "--groups", "--show", "after") as collector:
        for number, each in enumerate(made):
            ticket = collector.send(one(each, f"client-{number}", "red")).json["ticket"]
        page.goto(f"{collector.address}{LIVE}")
        until(page, "document.getElementById('nothing').textContent.includes('have taken part')")
        page.wait_for_timeout(200)
        assert cards.count() == 0
        assert not any(each.url.split("?")[0].endswith(("/groups", "/pooled")) for each in asked)
        of = collector.get("/collection").json["collection"]
        spoken = {"discreet": 1, "secret": "0" * 64, "spoken": {}, "tickets": {of: ticket}}
        page.evaluate("(book) => localStorage.setItem('discreet collector', JSON.stringify(book))", spoken)
        page.reload()
        for id_ in ("groups-card", "stages-card"):
            page.wait_for_selector(f"#{id_}:not([hidden])")
        for path in ("/estimate", "/groups", "/pooled"):
            last = [each for each in asked if each.url.split("?")[0].endswith(path)][-1]
            assert last.headers["authorization"] == f"Bearer {ticket}"
        page.evaluate("localStorage.clear()")  # the record is forgotten in another tab
        until(page, "document.getElementById('nothing').textContent.includes('have taken part')")
        until(page, "['groups-card', 'stages-card'].every((id) => document.getElementById(id).hidden)")
        page.evaluate("(book) => localStorage.setItem('discreet collector', JSON.stringify(book))", spoken)
        for id_ in ("groups-card", "stages-card"):
            page.wait_for_selector(f"#{id_}:not([hidden])")
        assert complaints() == []
    context.close()


@pytest.mark.slow
def test_groups_and_stages_follow_samples_of_other_agreements_and_a_failure(browser: Any, tmp_path: Path) -> None:
    """The estimate that is looked at stays the same, and its answer is 304; what stands beside it changes."""
    north, south = (agreed(tmp_path, LABELS, name=f"{name}.json", purpose=name) for name in ("north", "south"))
    context = new_context(browser)
    page = context.new_page()
    answers: list[tuple[str, int]] = []
    page.on("response", lambda each: answers.append((each.url.split("?")[0].rsplit("/", 1)[1], each.status)))
    with running(tmp_path, "north.json", "south.json", "--groups") as collector:
        collector.send(one(south, "s", "red"))
        page.goto(f"{collector.address}{LIVE}?agreement={south.id}")
        page.wait_for_selector("#stages-card:not([hidden])")
        assert page.locator("#stages-told").inner_text() == "south: 1 sample, epsilon 1"
        for name in ("estimate", "groups", "pooled"):
            with page.expect_response(lambda each, name=name: f"/{name}" in each.url and each.status == 304):
                pass  # nothing has changed, and nothing is sent again
        before = answers.count(("estimate", 200))
        collector.send(one(north, "n", "green"))
        until(page, "document.getElementById('stages-told').textContent.includes('north: 1 ')")
        until(page, "document.getElementById('groups').textContent.includes('north')")
        page.route("**/pooled*", lambda route: route.abort())
        collector.send(one(north, "m", "green"))
        until(page, "document.documentElement.dataset.state === 'unreachable'")
        page.unroute("**/pooled*")
        until(page, "document.documentElement.dataset.state === 'live'")
        until(page, "document.getElementById('stages-told').textContent.includes('north: 2 ')")
        assert answers.count(("estimate", 200)) == before
    context.close()
