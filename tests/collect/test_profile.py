"""What a browser keeps on disk of what a person enters at `/take-part`: nothing, in a real profile of a real Chromium."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from discreet.collect._pages import LIVE, TAKE_PART
from tests.collect.running import agreed, running
from tests.javascript.browser import loading_anew, playwright_error, profile, until
from tests.soaking import wide

READY = "document.documentElement.dataset.ready"
MARKER, COUNTED = "zanzibarquokka", "81924637"
CONTROL = "kookaburra"  # in an ordinary field of the same page, which browsers do keep
ORDINARY = "document.body.append(Object.assign(document.createElement('textarea'), { id: 'ordinary' }))"


def _holding(folder: Path, *texts: str) -> list[str]:
    """The files of a folder that hold one of these, in UTF-8 or UTF-16; a running browser may delete files meanwhile."""
    wanted = [text.encode(coding) for text in texts for coding in ("utf-8", "utf-16-le", "utf-16-be")]
    holding = []
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink() and any(text in path.read_bytes() for text in wanted):
                    holding.append(str(path.relative_to(folder)))
    return holding


@pytest.mark.slow
@pytest.mark.parametrize("end", wide(["leaves", "stays", "crashes"], ["leaves"]))
def test_a_profile_keeps_nothing_of_what_was_entered(tmp_path: Path, end: str) -> None:
    """A real profile on disk, with the session file that holds an ordinary field; and the way back shows nothing, from memory or not."""
    agreed(tmp_path, ["red", "green", "blue"])
    folder = tmp_path / "profile"
    with running(tmp_path, "agreement.json") as collector, profile(folder) as context:
        page = context.pages[0]
        page.goto(f"{collector.address}{TAKE_PART}")
        until(page, READY)
        page.locator("#held-card details summary").click()
        page.locator("#held input").first.fill(COUNTED)
        page.locator("#entry").fill(f"{MARKER} typed")
        page.locator("#entry").press("Enter")
        page.locator("#entry").fill(f"{MARKER} left there")
        page.locator("#pasted").fill(f"{MARKER} pasted, 3")
        page.evaluate(f"document.getElementById('token').value = '{MARKER} token'")
        page.evaluate(ORDINARY)
        page.locator("#ordinary").fill(CONTROL)
        if end == "leaves":
            page.goto(f"{collector.address}{LIVE}")
        until(page, lambda: any(name.startswith("Default/Sessions/Session_") for name in _holding(folder, CONTROL)))
        assert _holding(folder, MARKER, COUNTED) == []
        if end == "leaves":
            page.go_back(wait_until="commit")
            until(page, "location.pathname === '/take-part' && document.readyState === 'complete'")
            until(page, READY)
            fields = "[...document.querySelectorAll('input:not(#limit), textarea:not(#ordinary)')].map(({ value }) => value).join('')"
            assert set(page.evaluate(fields)) <= {"0"}
            assert MARKER not in page.content()
            assert COUNTED not in page.content()
        if end == "crashes":
            with contextlib.suppress(playwright_error()):
                context.new_cdp_session(page).send("Browser.crash")
    assert _holding(folder, MARKER, COUNTED) == []


@pytest.mark.slow
@pytest.mark.parametrize("end", wide(["sends", "walks away", "crashes"], ["crashes"]))
def test_in_field_mode_a_profile_keeps_nothing_of_a_person_at_all(tmp_path: Path, end: str) -> None:
    """No name, key, secret, entry or sample: the labels, of which a sample is one, are not found in any file of the profile."""
    labels = [f"{MARKER} {colour}" for colour in ("red", "green", "blue")]
    agreed(tmp_path, labels)
    folder = tmp_path / "profile"
    names = []
    with running(tmp_path, "agreement.json") as collector, profile(folder) as context:
        page = context.pages[0]
        page.goto(f"{collector.address}{TAKE_PART}?field")
        for _ in range(2):
            until(page, READY)
            page.locator("#held input").first.fill(COUNTED)
            page.locator("#entry").fill(f"{MARKER} typed")
            page.locator("#entry").press("Enter")
            page.locator("#draw").click()
            page.wait_for_selector("#sample-card:not([hidden])")
            sent = json.loads(page.locator("#request").inner_text())
            names += [sent["client"], sent["key"]]
            if end != "sends":
                break
            page.locator("#send").click()
            page.wait_for_selector("#receipt-card:not([hidden])")
            with loading_anew(page):
                page.locator("#next-after").click()
        until(page, READY)
        page.evaluate(ORDINARY)
        page.locator("#ordinary").fill(CONTROL)
        if end == "walks away":
            page.goto(f"{collector.address}{LIVE}")
        until(page, lambda: any(name.startswith("Default/Sessions/Session_") for name in _holding(folder, CONTROL)))
        assert _holding(folder, MARKER, COUNTED, *names) == []
        if end == "walks away":
            page.go_back(wait_until="commit")
            anew = "performance.getEntriesByType('navigation')[0].type !== 'navigate'"  # a page from memory loads itself anew
            until(page, f"location.pathname === '{TAKE_PART}' && {anew} && {READY}")
            until(page, "!document.getElementById('held-card').hidden")
            shown = page.content()
            assert not [text for text in (COUNTED, f"{MARKER} typed", *names) if text in shown]
            assert page.locator("#sample").inner_text() == ""
        if end == "crashes":
            with contextlib.suppress(playwright_error()):
                context.new_cdp_session(page).send("Browser.crash")
    assert _holding(folder, MARKER, COUNTED, *names) == []
    assert _holding(folder / "Default" / "Local Storage", "discreet collector", "discreet budget") == []
