"""discreet.js draws what Python draws: 10,000 vectors and 3,000 reports, in Node and Chromium; the built file is that of the sources."""

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import release
from discreet.agreement import Agreement
from tests.javascript.browser import CLIENT, SITE, chromium, new_context, node, node_modules, served, until, watched
from tests.javascript.vectors import REPORTS, VECTORS, WRITTEN_OUT, read, refusals, spellings, written

PAGE = """<!doctype html><meta charset="utf-8"><title>conformance</title><script type="module">
import * as client from "/js/discreet.min.js";
import { check } from "/js/conformance/check.js";
window.found = check(await (await fetch("/vectors")).text(), client);
</script>"""


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "vectors.jsonl"
    with warnings.catch_warnings():  # of clients outside their band, and budgets that hide nothing
        warnings.simplefilter("ignore")
        written(path)
    return path


def same(found: Any) -> None:
    assert found["problems"] == []
    assert (found["vectors"], found["reports"], found["refused"]) == (VECTORS, REPORTS, len(refusals()))


@pytest.mark.slow
def test_node_draws_what_python_draws(vectors: Path) -> None:
    same(json.loads(node("conformance/node.mjs", vectors)))


@pytest.mark.slow
def test_chromium_draws_what_python_draws(vectors: Path) -> None:
    with chromium() as browser:
        page = new_context(browser).new_page()
        complaints = watched(page)
        served(page, {"/": PAGE, "/js/": CLIENT, "/vectors": vectors})
        page.goto(SITE + "/")
        page.wait_for_function("window.found", timeout=300_000)
        same(page.evaluate("window.found"))
        assert complaints() == []


BUDGET = """<!doctype html><meta charset="utf-8"><title>budget</title><button>forget</button><script type="module">
import { Agreement, Budget } from "/js/discreet.min.js";
const family = { kind: "simplex", size: 100000 };
const agreement = Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism: "optimal", epsilon: 1, family }));
window.ask = (record) => new Budget({ limit: 1 }).release(agreement, agreement.law({ records: [record] })).then(({ sample }) => sample);
window.spent = () => new Budget({ limit: 1 }).spent;
window.said = (call) => Promise.resolve().then(call).catch(({ name, message }) => `${name}: ${message}`);
const button = document.querySelector("button");
button.addEventListener("click", (event) => (window.cleared = window.said(() => new Budget({ limit: 1 }).clear(event))));
window.ready = true;
</script>"""
NO_STORAGE = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError'); } })"
)


@pytest.mark.slow
def test_a_budget_in_the_storage_of_chromium() -> None:
    """Tabs share it and never draw twice, a script cannot clear it, a click does, and without storage nothing is drawn."""
    with chromium() as browser:
        context = new_context(browser)
        tabs = [context.new_page(), context.new_page()]
        for tab in tabs:
            served(tab, {"/": BUDGET, "/js/": CLIENT})
            tab.goto(SITE + "/")
            tab.wait_for_function("window.ready")
        drawn = tabs[0].evaluate("Promise.all([1, 2, 3].map(ask))") + [tabs[1].evaluate("ask(4)")]
        tabs[1].reload()
        tabs[1].wait_for_function("window.ready")
        assert len({*drawn, tabs[1].evaluate("ask(5)")}) == 1
        assert [tab.evaluate("spent()") for tab in tabs] == [1, 1]
        tabs[0].evaluate("document.querySelector('button').click()")
        assert "only the person clears a budget" in tabs[0].evaluate("cleared")
        assert tabs[0].evaluate("spent()") == 1
        tabs[0].locator("button").click()
        assert tabs[0].evaluate("cleared") is None
        until(tabs[1], "spent() === 0")  # another tab hears of it a moment later
        denied = context.new_page()
        denied.add_init_script(NO_STORAGE)
        served(denied, {"/": BUDGET, "/js/": CLIENT})
        denied.goto(SITE + "/")
        denied.wait_for_function("window.ready")
        assert denied.evaluate("said(() => ask(1))").startswith("DiscreetError: this browser keeps nothing")


@pytest.mark.slow
def test_python_reads_the_same_file(vectors: Path) -> None:
    """Each agreement comes back from its text, and draws these outcomes; and what the others refuse Python refuses too."""
    agreements, refused = read(vectors)
    for line in agreements:
        agreement = Agreement.from_json(line["agreement"])
        assert (agreement.id, agreement.canonical) == (line["id"], line["canonical"])
        if "beside" in line or agreement.domain.size > WRITTEN_OUT:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = agreement.sampler()
            for case in line["cases"]:
                counts = np.zeros(agreement.domain.size)
                for outcome, count in case["counts"]:
                    counts[outcome] = count
                rows = np.repeat(sampler.family.law(counts=counts)[None, :], len(case["integers"]), axis=0)
                drawn = release.outcomes(
                    sampler.lattice, rows, sampler.mixing, np.array(case["integers"], dtype=np.int64)
                )
                assert drawn.tolist() == case["outcomes"]
    for document in refused:
        with pytest.raises(dc.DiscreetError):
            Agreement.from_json(document).sampler()


def test_how_a_number_is_spelled_does_not_change_an_agreement() -> None:
    for text in spellings():
        found = Agreement.from_json(text)
        assert Agreement.from_json(found.text) == found
        assert Agreement.from_json(found.text).id == found.id


@pytest.mark.slow
def test_the_built_client_is_that_of_its_sources_and_small(tmp_path: Path) -> None:
    node_modules()
    node("build.mjs", tmp_path)
    built = (tmp_path / "discreet.min.js").read_bytes()
    assert built == (CLIENT / "discreet.min.js").read_bytes(), "run npm run build in clients/js"
    assert len(gzip.compress(built, 9)) < 15_000


@pytest.mark.slow
def test_the_client_by_itself() -> None:
    node("--test", "test/")


@pytest.mark.slow
def test_the_types_are_those_of_the_client(tmp_path: Path) -> None:
    """What a page in TypeScript would write compiles, and what it must not write does not."""
    compiler = node_modules() / "typescript" / "bin" / "tsc"
    good, bad = tmp_path / "good.ts", tmp_path / "bad.ts"
    module = json.dumps(str(CLIENT / "discreet.js"))
    good.write_text(
        f"import {{ Agreement, Budget, DiscreetError, randomInteger }} from {module};\n"
        'const agreement = Agreement.read("{}", { id: "x" });\n'
        "const law = agreement.law({ counts: [1, 2] });\n"
        'agreement.law({ records: ["a", 1] }).masses.length;\n'
        "const outcome: number = agreement.outcome(law, randomInteger());\n"
        "const weights: bigint[] = agreement.weights(law);\n"
        "const held: number[] = agreement.outcomesOf(agreement.report(law, randomInteger));\n"
        "new Budget({ limit: 1 }).release(agreement, law, { round: 1 }).then(({ sample }) => sample);\n"
        "export { held, outcome, weights, DiscreetError };\n"
    )
    bad.write_text(f"import {{ Agreement }} from {module};\nAgreement.read('').law({{ records: [1], counts: [1] }});\n")
    flags = ("--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler")
    with pytest.raises(AssertionError, match=r"bad\.ts.*TS2") as refused:
        node(compiler, *flags, good, bad)  # at once: the compiler takes longer to start than to check
    assert "good.ts" not in str(refused.value)
