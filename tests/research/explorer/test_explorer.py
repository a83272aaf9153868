"""The explorer in a real Chromium: its numbers are Python's, it complains of nothing, and everybody can use it."""

import json
import math
import shutil
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet._base.numerics import exp_nearest
from discreet.cli._app import app
from discreet.estimation._planning import exact_variance, outlook
from discreet.research._explorer import Explorer, explorer_page
from discreet.survey import Survey, SurveySampler, shares
from tests.javascript.browser import ROOT, SITE, chromium, new_context, node, node_modules, served, until, watched
from tests.soaking import wide

STATES = wide(500, 8)
MEASURES = ("tv", "kl", "hellinger", "chi2")
SAMPLERS = ("optimal", "linear", "mollifier", "designed")
SHOW = """(hash) => new Promise((done) => {
  addEventListener("hashchange", () => setTimeout(done), { once: true });
  location.hash = hash;
})"""
PASTE = """() => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", "yes\\nno\\nno\\nno\\n".repeat(250000));
  document.getElementById("pasted").dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true }));
}"""
OBJECTIONS = """axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))"""
REFUSED_ROWS = [
    ("", "nothing to read"),
    ("red, 1\nblue, -2", "count -2: counts are whole"),
    ("red, 1\nblue, 0.5", "count 0.5"),
    ("a\na", "only one label"),
    ("a, 0\nb, 0", "All counts are 0"),
    ("\n".join(f"{place}, 1" for place in range(200)), "more than 120 different"),
    ("a, 1\nb, 2\nc", "Row 3 has no count"),
    ("a, 1e99\nb, 1", "whole numbers"),
]
GOLDEN = ROOT / "tests" / "agreement" / "agreements" / "2"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def visits(browser: Any) -> Iterator[Any]:
    """The context of all pages: they keep nothing, and a page costs a fifth of a context."""
    context = new_context(browser, viewport={"width": 1280, "height": 900})
    yield context
    assert context.storage_state() == {"cookies": [], "origins": []}
    context.close()


@pytest.fixture
def opened(visits: Any) -> Iterator[Any]:
    """The page at its usual state; whatever it complains of fails the test."""
    found = visits.new_page()
    complaints = watched(found)
    served(found, {"/": explorer_page()})
    _go(found, "")
    yield found
    assert complaints() == []
    found.close()


def _go(found: Any, address: str) -> None:
    found.goto(f"{SITE}/{address}")
    until(found, "document.documentElement.dataset.ready")


def _numbers(found: Any) -> dict[str, float]:
    told = found.evaluate(
        "Object.fromEntries([...document.querySelectorAll('[data-number]')].map((e) => [e.id, e.dataset.number]))"
    )
    return {name: float(value) for name, value in told.items()}


def _expected(state: dict[str, Any]) -> dict[str, float]:
    """The same numbers from the library."""
    size, epsilon, measure = len(state["counts"]), state["epsilon"], state["measure"]
    simplex, f = dc.Simplex(size), dc.divergence(measure)
    spread = min(max(state["spread"], 1.0), size - 0.01)
    samplers: dict[str, Any] = {
        "optimal": dc.OptimalSampler(simplex, epsilon=epsilon),
        "linear": dc.LinearSampler(simplex, epsilon=epsilon),
        "mollifier": dc.MollifierSampler(simplex, epsilon=epsilon),
        "designed": dc.OptimalSampler(simplex.spread(spread), epsilon=epsilon),
    }
    p = simplex.law(counts=state["counts"])
    factor = exp_nearest(epsilon)
    found = {
        "factor": factor,
        "sure": factor / (1.0 + factor),
        "floor": float(samplers[state["shown"]].box.lower),
        "ceiling": float(samplers[state["shown"]].box.upper),
        "epsilon-for": dc.epsilon_for(simplex, divergence=measure, risk=state["target"]),
    }
    for name, sampler in samplers.items():
        q = sampler.output(p)
        found[f"{name}-own"] = float(f(p, q))
        found[f"{name}-worst"] = float(sampler.risk(measure))
        found[f"{name}-kept"] = 1.0 - float(dc.divergence("tv")(p, q))
    plan = outlook(samplers["linear"], mechanism="linear", clients=state["clients"])
    assert plan.total is not None
    return found | {"population-total": plan.total, "population-share": _share(samplers["linear"], state["clients"])}


def _share(sampler: Any, clients: int) -> float:
    """95 % of the time one share is this near, for the client whose released share is nearest to 1/2."""
    size = sampler.family.size
    point = np.zeros((1, size))
    point[0, 0] = 1.0
    least, most = (float(sampler.output(p)[0]) for p in (np.roll(point[0], 1), point[0]))
    weight = 1.0 if most <= 0.5 else (0.5 - least) / (most - least)
    law = point * weight
    law[0, 1] += 1.0 - weight
    variance = exact_variance(sampler, law, point[0]) / clients
    return min(1.0, 1.959963984540054 * math.sqrt(variance))


def _random_state(rng: np.random.Generator) -> dict[str, Any]:
    size = int(rng.choice([2, 3, 5, 6, 7, 20, 104]))
    counts = rng.integers(0, int(rng.choice([2, 10, 1000, 10**6])), size)
    counts[rng.integers(size)] += 1
    measure = str(rng.choice(MEASURES))
    return {
        "counts": counts.tolist(),
        "labels": [f"{place}é<b>蓝" for place in range(size)],
        "epsilon": round(float(10.0 ** rng.uniform(-2, 1.3)), 6),
        "spread": round(float(rng.uniform(1, size)), 6),
        "measure": measure,
        "target": round(float(rng.uniform(0.01, 0.95)) * float(rng.choice([1.0, 1.0, 3.0, 100.0])), 6),
        "clients": int(10.0 ** rng.uniform(0, 9)),
        "shown": str(rng.choice(SAMPLERS)),
    }


def _address(state: dict[str, Any]) -> str:
    fields = [("o", label) for label in state["labels"]] + [("c", ",".join(map(str, state["counts"])))]
    fields += [(name, str(value)) for name, value in state.items() if name not in ("labels", "counts")]
    return "#" + urllib.parse.urlencode(fields)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of large budgets
def test_every_number_is_that_of_python(opened: Any) -> None:
    """Random states by their addresses, each number to 1e-12: of 1, and of itself where it is more."""
    rng = np.random.default_rng(20)
    for _ in range(STATES):
        state = _random_state(rng)
        opened.evaluate(SHOW, _address(state))
        told, expected = _numbers(opened), _expected(state)
        assert told.keys() == expected.keys()
        for name, value in expected.items():
            assert abs(told[name] - value) <= 1e-12 * max(1.0, abs(value)), (name, told[name], value, state)


@pytest.mark.slow
@pytest.mark.soak
def test_bars_follow_the_pointer_and_the_keys_and_the_address_follows_them(opened: Any) -> None:
    before = opened.locator(".told").all_text_contents()
    track = opened.locator(".track").nth(4).bounding_box()
    opened.mouse.move(track["x"] + 2, track["y"] + 10)
    opened.mouse.down()
    opened.mouse.move(track["x"] + track["width"] / 2, track["y"] + 10, steps=4)
    held = opened.locator(".track .held").nth(4).bounding_box()
    assert abs(held["width"] - track["width"] / 2) < 2
    opened.mouse.up()
    assert opened.locator(".told").all_text_contents()[4] != before[4]
    opened.locator("#bar-0").focus()
    count = int(opened.locator("#bar-0").input_value())
    opened.keyboard.press("ArrowLeft")
    assert int(opened.locator("#bar-0").input_value()) == count - 1
    opened.locator("#epsilon").focus()
    opened.keyboard.press("ArrowRight")
    until(opened, "location.hash.includes('epsilon=1.01')")
    shared, numbers = opened.evaluate("location.hash"), _numbers(opened)
    _go(opened, "#")
    _go(opened, shared)
    opened.reload()
    until(opened, "document.documentElement.dataset.ready")
    assert _numbers(opened) == numbers
    opened.locator("#show-mollifier").check()
    assert opened.locator("#shown-name").text_content() == "Mollifier"
    opened.locator("#again").click()
    drawn = [int(text.split()[0]) for text in opened.locator(".count").all_text_contents()]
    assert sum(drawn) == 1000
    opened.locator("#reset").click()
    assert opened.locator(".told").all_text_contents() == before


@pytest.mark.slow
def test_an_address_that_makes_no_sense_is_the_usual_state(opened: Any) -> None:
    usual = _numbers(opened)
    for address in (
        "#o=a&o=b&c=0,0", "#o=a&o=b&c=1,", "#o=a&o=b&c=1,-2", "#o=a&o=b&c=1,0.5", "#o=a&o=b&c=1,1e3", "#o=a&o=b&c=1", "#o=a&o=a&c=1,2",
        "#o=a&c=1", "#c=1,2", "#epsilon=0", "#epsilon=-1", "#epsilon=nan", "#epsilon=1e9", "#spread=x", "#clients=0", "#measure=w1",
        "#shown=best", "#tab=__proto__", "#%ff%00", "#step=6", "#step=-1", "#step=nan", "#" + "o=x&" * 5000,
    ):  # fmt: skip
        opened.evaluate(SHOW, address)
        assert _numbers(opened) == usual, address
        assert opened.locator("#guide-step").is_hidden()


@pytest.mark.slow
def test_the_guided_path_has_five_questions_that_the_page_answers(opened: Any) -> None:
    """No question is answered when its step starts. The change that "Show me" makes answers it, by Python's numbers too."""
    simplex, seen = dc.Simplex(6), []
    for step, changed in enumerate(("epsilon=4.56", "epsilon=2.46", "c=100", "shown=designed", "clients="), start=1):
        opened.locator("#guide-next").click()
        assert f"step {step} of 5" in opened.locator("#guide-heading").text_content()
        seen.append(opened.locator("#guide-question").text_content())
        assert "?" in seen[-1]
        assert opened.locator("#guide-answer.solved").count() == 0
        opened.locator("#guide-where").click()
        assert opened.evaluate("document.activeElement.matches('input')")
        opened.locator("#guide-solve").click()
        answer = opened.locator("#guide-answer.solved").text_content()
        until(opened, f"location.hash.includes('step={step}') && location.hash.includes('{changed}')")
        if step in wide((1, 2, 3, 4, 5), (1, 5)):
            opened.reload()
            until(opened, "document.documentElement.dataset.ready")
            assert opened.locator("#guide-answer.solved").text_content() == answer
        told = _numbers(opened)
        if step == 1:
            assert dc.OptimalSampler(simplex, epsilon=4.56).box.lower == pytest.approx(told["floor"], rel=1e-12)
            assert told["floor"] <= 0.01
        elif step == 2:
            least = dc.epsilon_for(simplex, divergence="tv", risk=0.3)
            assert f"Epsilon = {least:.2f}," in answer
            assert float(opened.locator("#epsilon").input_value()) == math.ceil(100 * least) / 100
        elif step == 3:
            assert told["optimal-own"] == pytest.approx(dc.minimax_risk(simplex, epsilon=1.0, divergence="tv").value)
        elif step == 4:
            p = np.array([25, 25, 20, 20, 10, 0]) / 100
            paid = [
                float(dc.divergence("tv")(p, dc.OptimalSampler(family, epsilon=1.0).output(p)))
                for family in (simplex, simplex.spread(4.0))
            ]
            assert paid[1] <= paid[0] / 2
            assert f"pays {paid[1]:.3g} instead of {paid[0]:.3g}" in answer
        else:
            clients = int(opened.locator("#clients").input_value())
            linear = dc.LinearSampler(simplex, epsilon=1.0)
            assert _share(linear, clients) <= 0.05 < _share(linear, clients - 1)
    assert len(set(seen)) == 5
    assert opened.locator("#guide-next").text_content() == "Finish"
    opened.locator("#guide-next").click()
    assert opened.locator("#guide-step").is_hidden()
    assert opened.locator("#guide-next").text_content() == "Start"


@pytest.mark.slow
@pytest.mark.soak
def test_a_step_of_the_guided_path_is_answered_by_hand_and_says_what_must_stay(opened: Any) -> None:
    _go(opened, "#step=2")
    opened.locator("#epsilon").focus()
    opened.keyboard.press("End")
    assert "more than is needed" in opened.locator("#guide-answer").text_content()
    opened.keyboard.press("Home")
    assert "Try a larger epsilon" in opened.locator("#guide-answer").text_content()
    opened.locator("#epsilon").fill("2.46")
    assert opened.locator("#guide-answer.solved").count() == 1
    opened.locator("#measure").select_option("kl")
    assert "Begin the step again" in opened.locator("#guide-answer").text_content()
    opened.locator("#guide-again").click()
    assert opened.locator("#measure").input_value() == "tv"
    opened.locator("#guide-back").click()
    assert "step 1 of 5" in opened.locator("#guide-heading").text_content()
    opened.locator("#guide-back").click()
    assert opened.locator("#guide-step").is_hidden()


@pytest.mark.slow
def test_an_aircraft_and_pasted_rows_become_a_client(opened: Any) -> None:
    opened.locator("#aircraft").fill("N725MQ")
    opened.locator("#aircraft").press("Enter")
    assert opened.locator(".bar label").all_text_contents() == list(dc.research.data.TIME_ZONES)
    assert opened.locator(".told").nth(1).text_content().startswith("83")
    opened.locator("#aircraft").fill("nonsense")
    opened.locator("#aircraft").press("Enter")
    assert "none of the 4,043 aircraft" in opened.locator("#problem").text_content()
    markup = "<img src=x onerror=document.title=1>"
    for text, says in REFUSED_ROWS:
        opened.locator("#pasted").fill(text)
        opened.locator("#read-pasted").click()
        assert says in opened.locator("#problem").text_content()
    opened.locator("#pasted").fill(f"{markup}, 3\nأحمر; 2\n蓝\t1")
    opened.locator("#read-pasted").click()
    assert opened.locator(".bar label").all_text_contents() == [markup, "أحمر", "蓝"]
    assert (opened.locator(".bar img").count(), opened.title()) == (0, "discreet: what privacy costs")
    opened.evaluate(PASTE)  # a million rows
    assert opened.locator(".told").first.text_content().startswith("25")


@pytest.mark.slow
def test_an_agreement_is_told_in_plain_words(opened: Any, tmp_path: Path) -> None:
    opened.locator("#tab-explore").focus()
    opened.keyboard.press("ArrowRight")
    assert opened.locator("#explore").is_hidden()
    opened.locator("#file").set_input_files(GOLDEN / "listed.json")
    opened.wait_for_selector("#agreement-words dd")
    words = opened.locator("#agreement-words").inner_text()
    assert "Colours of 2013" in words
    for said in (
        "12 samples, one each round",
        "\u2068red\u2069, \u2068grün\u2069, \u2068蓝\u2069, \u20684\u2069",
        "a factor of at most 1.11",
        "50\u00a0% sure to",
        "at most 3.33",  # e^1.2 = 3.3201
    ):
        assert said in words
    assert dc.Agreement.read(GOLDEN / "listed.json").id in words
    tampered, hostile = tmp_path / "tampered.json", tmp_path / "hostile.json"
    tampered.write_text((GOLDEN / "simplex.json").read_text().replace("62", "61"))
    hostile.write_text(
        json.dumps(
            {**json.loads((GOLDEN / "simplex.json").read_text()), "purpose": "<script>document.title = 1</script>"}
        )
    )
    turned = tmp_path / "turned.json"
    turned.write_text(dc.Agreement.of(dc.OptimalSampler(dc.Simplex(["a\u202eb", "أحمر"]), epsilon=1.1)).text)
    opened.locator("#file").set_input_files(turned)
    until(opened, "document.getElementById('agreement-words').textContent.includes('3.01 to 1')")  # e^1.1 = 3.0042
    assert "\u2068a\\u{202e}b\u2069, \u2068أحمر\u2069." in opened.locator("#agreement-words").inner_text()
    many = dc.Band(np.arange(1, 66_001), lower=0.0, upper=9.0, any_client=True)
    beside = dc.Agreement.of(dc.OptimalSampler(many, epsilon=1.0))
    beside.write(tmp_path / "many.json")
    opened.locator("#file").set_input_files(tmp_path / "many.json")
    until(opened, "document.getElementById('agreement-problem').textContent.includes('pass the file of weights')")
    opened.locator("#file").set_input_files([tmp_path / "many.json", tmp_path / "many.json.weights"])
    until(opened, f"document.getElementById('agreement-words').textContent.includes('{beside.id}')")
    opened.locator("#file").set_input_files(tampered)
    until(opened, "document.getElementById('agreement-problem').textContent.includes('bits = 61 is not 62')")
    assert opened.locator("#agreement-words dd").count() == 0
    asked = Survey({"region": ["north", "south"], "hour": 24}, [shares("region", "hour")])
    dc.Agreement.of(SurveySampler(asked, epsilon=1.0)).write(tmp_path / "survey.json")
    opened.locator("#file").set_input_files(tmp_path / "survey.json")
    until(opened, "document.getElementById('agreement-problem').textContent.includes('on a survey of several columns')")
    assert opened.locator("#agreement-words dd").count() == 0
    opened.locator("#file").set_input_files(hostile)
    opened.wait_for_selector("#agreement-words dd")
    assert "<script>" in opened.locator("#agreement-words").inner_text()
    assert opened.title() == "discreet: what privacy costs"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), wide(list(product((360, 1280), ("light", "dark"))), [(360, "dark")]))
def test_everybody_can_use_it(browser: Any, width: int, scheme: str) -> None:
    """axe-core finds nothing to object to, on either tab, and nothing is wider than a phone."""
    checks = (node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    context = new_context(browser, viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    found = context.new_page()
    served(found, {"/": explorer_page()})
    _go(found, "")
    found.evaluate(checks)
    for tab in ("explore", "agreement"):
        found.locator(f"#tab-{tab}").click()
        if tab == "agreement":
            assert found.evaluate(OBJECTIONS) == []
            found.locator("#file").set_input_files(GOLDEN / "listed.json")
            found.wait_for_selector("#agreement-words dd")
        assert found.evaluate(OBJECTIONS) == []
        assert found.evaluate("document.documentElement.scrollWidth") <= width
        if tab == "explore":
            found.locator("#guide-next").click()
            assert found.evaluate(OBJECTIONS) == []
            assert found.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


@pytest.mark.slow
def test_a_page_from_a_file_or_without_a_generator_says_what_is_the_matter(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    done = CliRunner().invoke(app, ["explore", "-o", str(path)])
    assert done.exit_code == 0
    assert path.read_text(encoding="utf-8") == explorer_page()
    with pytest.raises(SystemExit):
        app(["explore", "-o", str(path)])
    found = new_context(browser).new_page()
    complaints = watched(found)
    found.goto(path.as_uri())
    until(found, "document.documentElement.dataset.ready")
    assert "1,000" in found.locator("#draws-told").text_content()
    assert complaints() == []
    bare = new_context(browser).new_page()
    bare.add_init_script("Object.defineProperty(globalThis, 'crypto', { value: undefined })")
    bare.goto(path.as_uri())
    until(bare, "document.documentElement.dataset.ready")
    assert "no crypto.getRandomValues" in bare.locator("#problem").text_content()


def test_the_page_is_served_to_this_machine_alone() -> None:
    explorer = Explorer("<p>here")
    thread = threading.Thread(target=explorer.serve)
    thread.start()
    try:
        assert explorer.address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(explorer.address) as answer:
            assert answer.read() == b"<p>here"
        for path, headers, code in (("else", {}, 404), ("", {"Host": "example.com"}, 403)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(urllib.request.Request(explorer.address + path, headers=headers))
            assert caught.value.code == code
            caught.value.close()
        with pytest.raises(dc.DiscreetError, match="cannot be used"):
            Explorer("", port=int(explorer.address.rsplit(":", 1)[1].strip("/")))
    finally:
        explorer.close()
        thread.join()
    with pytest.raises(dc.DiscreetError, match=r"port = 99999 is not in \[0, 65535\]"):
        Explorer("", port=99999)


REQUESTS = {
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n": 200,
    b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n": 200,
    b"GET /else HTTP/1.1\r\nHost: localhost\r\n\r\n": 404,
    b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n": 403,
    b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n": 501,
    b"GET / HTTP/x\r\n\r\n": 400,
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n": 414,
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n": 431,
}


@pytest.fixture
def explorer() -> Iterator[Explorer]:
    found = Explorer("<p id=here>here")
    thread = threading.Thread(target=found.serve)
    thread.start()
    yield found
    found.close()
    thread.join()


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda asked: str(REQUESTS[asked]))
def test_no_answer_may_be_shown_in_a_frame(explorer: Explorer, asked: bytes) -> None:
    with socket.create_connection(("127.0.0.1", int(explorer.address.rsplit(":", 1)[1].strip("/"))), 10) as line:
        line.sendall(asked)
        answer = line.makefile("rb").read()
    head = answer.partition(b"\r\n\r\n")[0].decode()
    assert head.split()[1] == str(REQUESTS[asked])
    assert "Content-Security-Policy: frame-ancestors 'none'" in head
    assert "X-Frame-Options: DENY" in head


@pytest.mark.slow
def test_a_frame_on_another_page_stays_empty(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    around = tmp_path / "around.html"
    around.write_text(f"<iframe src='{explorer.address}'></iframe>")
    found = new_context(browser).new_page()
    found.goto(explorer.address)
    assert found.locator("#here").count() == 1
    complaints = watched(found)
    found.goto(around.as_uri())
    assert len(found.frames) == 2
    assert found.frames[1].locator("#here").count() == 0
    assert any("frame-ancestors" in line or "X-Frame-Options" in line for line in complaints())
    found.close()


@pytest.mark.slow
def test_the_script_and_style_of_the_page_are_those_of_their_sources(tmp_path: Path) -> None:
    node_modules()
    assert shutil.which("node")
    node("build.mjs", tmp_path)
    for name in ("explorer.js", "explorer.css"):
        kept = ROOT / "src" / "discreet" / "research" / "_explorer" / name
        assert (tmp_path / name).read_bytes() == kept.read_bytes(), "run make client"


def test_the_page_asks_nothing_of_a_network() -> None:
    text = explorer_page()
    assert "default-src 'none'" in text
    assert not [
        line for line in text.splitlines() if "src=" in line and "<img src=x" not in line and "script-src" not in line
    ]
    assert "/*SCRIPT*/" not in text
    assert "/*STYLE*/" not in text
    assert "/*FLIGHTS*/" not in text
