"""discreet.js draws what Python draws: 4,000 vectors, 1,500 reports and 120 surveys, in Node and Chromium; in a soak more.

The built file is that of the sources.
"""

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import release
from discreet.agreement import Agreement
from discreet.survey import Number, Survey, SurveySampler, mean, quantiles, shares
from tests.javascript.browser import (
    CLIENT,
    ROOT,
    SITE,
    chromium,
    new_context,
    node,
    node_modules,
    served,
    until,
    watched,
)
from tests.javascript.survey_vectors import CLIENTS, survey_report_of
from tests.javascript.vectors import REPORTS, SURVEYS, VECTORS, WRITTEN_OUT, read, refusals, spellings, written

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


def same(found: Any, path: Path) -> None:
    assert found["problems"] == []
    agreements, refused = read(path)
    assert (found["vectors"], found["reports"], found["surveys"]) == (VECTORS, REPORTS, SURVEYS * CLIENTS)
    assert (found["agreements"], found["refused"]) == (len(agreements), len(refused))
    assert len(refused) > len(refusals()) + SURVEYS


@pytest.mark.slow
def test_node_draws_what_python_draws(vectors: Path) -> None:
    same(json.loads(node("conformance/node.mjs", vectors)), vectors)


def parts_of_lines(path: Path, largest: int = 20_000_000) -> Iterator[str]:
    """The lines of a file, in texts of about that many characters: a browser does not take a hundred megabytes at once."""
    part: list[str] = []
    length = 0
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            part.append(line)
            length += len(line)
            if length > largest:
                yield "".join(part)
                part, length = [], 0
    if part:
        yield "".join(part)


@pytest.mark.slow
def test_chromium_draws_what_python_draws(vectors: Path) -> None:
    found: dict[str, Any] = {}
    with chromium() as browser:
        for part in parts_of_lines(vectors):
            page = new_context(browser).new_page()
            complaints = watched(page)
            served(page, {"/": PAGE, "/js/": CLIENT, "/vectors": part})
            page.goto(SITE + "/")
            page.wait_for_function("window.found", timeout=300_000)
            for name, value in page.evaluate("window.found").items():
                found[name] = found[name] + value if name in found else value
            assert complaints() == []
            page.context.close()
    same(found, vectors)


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
def test_the_example_of_a_survey_runs_in_chromium() -> None:
    """The block of the page on browsers, under the agreement on the survey of the page on surveys."""
    page_text = (ROOT / "docs" / "how-to" / "browser.md").read_text(encoding="utf-8")
    block = page_text.split("## Surveys")[1].split("```js\n")[1].split("```")[0]
    columns = {"region": ["north", "south", "west"], "hour": 24, "amount": Number(0, 500, "euro")}
    asked = [shares("region"), shares("region", "hour"), mean("amount"), quantiles("amount", at=(0.5, 0.9))]
    sampler = SurveySampler(Survey(columns, asked), epsilon=2.0)
    script = (
        block + "window.found = { sample, question, share, asked, rows: law.rows.map(String), outside: law.outside };"
    )
    html = f'<!doctype html><meta charset="utf-8"><title>survey</title><script type="module">{script}</script>'
    with chromium() as browser:
        page = new_context(browser).new_page()
        complaints = watched(page)
        agreement = Agreement.of(sampler).text
        served(page, {"/": html, "/discreet.min.js": CLIENT / "discreet.min.js", "/visits.json": agreement})
        page.goto(SITE + "/")
        page.wait_for_function("window.found")
        found = page.evaluate("window.found")
        assert complaints() == []
    table = {"region": ["north", "south"], "hour": [9, 14], "amount": [20.0, 31.5]}
    assert sorted(map(int, found["rows"])) == sorted(sampler.survey.columns.encode(table).tolist())
    part = sampler.part_of(int(found["sample"]))
    assert (found["question"], found["share"]) == (sampler.parts[part].question, float(sampler.exact_shares[part]))
    if found["question"] >= 0:
        assert found["asked"] == sampler.survey.questions[found["question"]].terms
    assert found["outside"] == 0


@pytest.mark.slow
def test_python_reads_the_same_file(vectors: Path) -> None:
    """Each agreement comes back from its text, and draws these outcomes; and what the others refuse Python refuses too."""
    agreements, refused = read(vectors)
    for line in agreements:
        agreement = Agreement.from_json(line["agreement"])
        assert (agreement.id, agreement.canonical) == (line["id"], line["canonical"])
        if agreement.survey is not None:
            for client in line.get("surveys", ()):
                held, words = list(map(int, client["rows"])), list(map(int, client["words"]))
                report = survey_report_of(agreement.survey_sampler(), held, client["counts"], words)
                assert str(report) == client["report"]
            continue
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
            _read_and_name(document)


def _read_and_name(document: str) -> None:
    agreement = Agreement.from_json(document)
    _ = agreement.id
    agreement.sampler()


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
    assert len(gzip.compress(built, 9)) < 20_500  # about 5,000 of them read surveys and draw for them


@pytest.mark.slow
def test_the_client_by_itself() -> None:
    node("--test", "test/")


@pytest.mark.slow
@pytest.mark.soak
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
        "Budget.recover({ name: '2' }).then(() => Budget.limitOf({ name: '2' }));\n"
        "new Budget({ limit: 1 }).release(agreement, law, { round: 1 }).then(({ sample }) => sample);\n"
        "const rows: readonly bigint[] | undefined = agreement.law({ records: [{ region: 'north' }] }).rows;\n"
        "const chances = agreement.survey?.parts.map(({ question, share }) => [question, share]);\n"
        "const fields = agreement.survey?.columns.map(({ name, domain }) => [name, domain.labels, domain.first]);\n"
        "export { chances, fields, held, outcome, rows, weights, DiscreetError };\n"
    )
    bad.write_text(f"import {{ Agreement }} from {module};\nAgreement.read('').law({{ records: [1], counts: [1] }});\n")
    flags = ("--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler")
    with pytest.raises(AssertionError, match=r"bad\.ts.*TS2") as refused:
        node(compiler, *flags, good, bad)  # at once: the compiler takes longer to start than to check
    assert "good.ts" not in str(refused.value)
