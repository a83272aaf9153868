"""Every sentence of the pages stands in a catalogue, and every catalogue says the same."""

import json
import re
from typing import Any

import pytest

from discreet.collect._pages import LANGUAGES, page_routes
from tests.javascript.browser import CLIENT, ROOT, node, node_modules

PAGES = ROOT / "src" / "discreet" / "collect" / "pages"
SECTIONS = ("words", "collector", "take", "live")
NOUNS = {"sample", "samples", "Sample", "Samples"}
SCRIPTS = [
    *sorted((CLIENT / "collector").glob("*.js")),
    *(CLIENT / "page" / f"{name}.js" for name in ("catalogue", "words", "element", "search", "long-paste")),
]
# What is no sentence: names of what is stored and hashed, and markup.
UNSAID = {
    "discreet key\0",
    "discreet client\0",
    "discreet collector",
    "day between",
    "panel head",
    "discreet outbox",
    "discreet refused",
    "discreet take-part",
    "Bearer ",
    "Content-Type",
    "If-None-Match",
}

COLLECT = """
import ts from "typescript";
import { readFileSync } from "node:fs";
const found = { texts: [], keys: [] };
for (const path of process.argv.slice(2)) {
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const visit = (part) => {
    if (ts.isStringLiteralLike(part) || ts.isTemplateHead(part) || ts.isTemplateMiddle(part) || ts.isTemplateTail(part)) {
      if (!ts.isImportDeclaration(part.parent)) found.texts.push(part.text);
    }
    ts.forEachChild(part, visit);
  };
  visit(file);
}
process.stdout.write(JSON.stringify(found));
"""


def catalogue(language: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PAGES / f"{language}.json").read_text(encoding="utf-8"))
    return found


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def forms(text: Any) -> dict[str, str]:
    """The plural forms of a text; one that has none is its own."""
    return text if isinstance(text, dict) else {"other": text}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_has_the_keys_and_placeholders_of_the_others(language: str) -> None:
    english, found = catalogue("en"), catalogue(language)
    assert found["language"] == language
    assert found.keys() == {"language", "nouns", *SECTIONS}
    assert found["nouns"].keys() == english["nouns"].keys() == {"sample", "report", "answer"}
    assert all(noun.keys() == NOUNS and all(noun.values()) for noun in found["nouns"].values())
    keys = [key for section in SECTIONS for key in found[section]]
    assert len(keys) == len(set(keys))
    for section in SECTIONS:
        assert found[section].keys() == english[section].keys()
        for key, text in found[section].items():
            assert isinstance(text, dict) == isinstance(english[section][key], dict), key
            own, others = forms(text), forms(english[section][key])
            assert own.keys() == others.keys()
            assert all(each.strip() for each in own.values()), key
            asked = set().union(*map(placeholders, others.values())) - NOUNS
            assert set().union(*map(placeholders, own.values())) - NOUNS == asked, key
            assert not re.search(r"[{}]", re.sub(r"\{\w+\}", "", "".join(own.values()))), key


def test_no_text_of_another_language_is_left() -> None:
    """A text that was not translated reads the same in both: short ones may, sentences may not."""
    english, german = catalogue("en"), catalogue("de")
    for section in SECTIONS:
        same = [key for key, text in english[section].items() if german[section][key] == text]
        assert not [
            key for key in same if len(re.findall(r"[^\W\d_]{3,}", "".join(forms(english[section][key]).values()))) > 2
        ]


@pytest.mark.slow
def test_no_sentence_stands_outside_the_catalogue_and_every_key_is_there() -> None:
    node_modules()
    script = CLIENT / "node_modules" / ".wording.mjs"  # beside what it imports
    script.write_text(COLLECT)
    texts = json.loads(node(script, *SCRIPTS))["texts"]
    script.unlink()
    said = {text for text in texts if re.search(r"[A-Za-z]{2,} +[a-z]{2,}|^[A-Z][a-z]{2,}|[a-z]: ", text)} - UNSAID
    said = {text for text in said if not text.startswith("\n:host {")}  # a style
    assert said == set()
    keys = {key for section in SECTIONS for key in catalogue("en")[section]}
    source = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    literal = set(re.findall(r'phrase\("([\w-]+)"', source)) | set(
        re.findall(r'sayPhrase\("[\w-]+", "([\w-]+)"', source)
    )
    assert literal <= keys
    html = "\n".join((PAGES / name).read_text(encoding="utf-8") for name in ("live.html", "take-part.html"))
    marked = set(re.findall(r'data-t(?:-label)?="([^"]+)"', html))
    assert marked <= keys
    parts = [re.escape(text) for text in texts if text]
    unused = {key for key in keys - literal - marked if not _composed(key, parts)}
    assert unused == set()


def _composed(key: str, parts: list[str]) -> bool:
    """Whether a key is a literal, or a literal beginning with something computed after it."""
    return any(re.fullmatch(part, key) or (part.endswith(r"\-") and re.match(part, key)) for part in parts) or any(
        key.endswith(end) for end in ("-outside", "-outside-interval", "-came", "-came-so-far")
    )


def test_templates_hold_no_text_of_their_own_and_fill_without_what_only_a_script_knows() -> None:
    for name, section in (("live.html", "live"), ("take-part.html", "take")):
        page = (PAGES / name).read_text(encoding="utf-8")
        assert set(re.findall(r">([^<>]*[A-Za-z][^<>]*)<", page)) <= {"/estimate"}
        assert not re.search(r'\s(aria-label|title|placeholder|alt)="[^"]*[a-z]{2}', page)
        for language in LANGUAGES:
            texts = {
                key: text for part in ("words", "collector", section) for key, text in catalogue(language)[part].items()
            }
            for key in re.findall(r'data-t(?:-label)?="([^"]+)"', page):
                assert placeholders(texts[key]) <= NOUNS, key
    assert len(page_routes()) == 6
