"""The pages of a collection: `page_routes`, their texts in several languages, `Questions`, tokens and invitations.

The pages show estimates and let a visitor take part. They are static files and a script built from `clients/js`, the same for everybody who
reads the same language. They contact only the service they come from, contain no inline script or style, and work under the strictest
content security policy. Every sentence stands in a catalogue, `pages/LANGUAGE.json`. The language is `?lang=` or the first one of the
browser's that has a catalogue.

`Questions` is what people are asked in their own words, a small public file beside the agreement: a title, a text, whether people choose one
option or several, what options are called, and whether one may prefer not to say, in any number of languages. It is named by its digest.
It is no part of the agreement: a report is epsilon-private whatever the person was asked, so no text can weaken the promise. A text can
mislead: the pages show the agreement's own facts and labels beside it.

A person who chooses several options holds the uniform distribution on them. One who prefers not to say holds the reference distribution
of the family (uniform, unless the agreement states another), as a client without records does. With a share s of such people and the mean
distribution p of the others, the mean of all is (1 - s) p + s mu. Nobody can tell s from the samples.

A survey has a question for each column. A report looks at one row, drawn from the client's rows, so its law is linear in their
distribution. A device that draws one of the chosen options in each column, and one of all where the person prefers not to say, and then
reports that row, therefore reports by the law of the product of uniform distributions.

**Tokens.** A token is the name of one client. A gateway sends its token in a header and names its clients itself. The store keeps and looks
up digests of tokens, so the time of a look-up reveals nothing about a token. Enrolment belongs to the store: every service of it takes the
same tokens, and a store that was enrolled once stays so, whatever the options of a service. A revoked client token is rejected at once, a
gateway's within a second. Gateways have separate names: the digest of a client's name includes the gateway's id, so "x" of one gateway
differs from "x" of another and from the holder of a token "x".

Tokens reduce anonymity: a person who distributed them, and has the store or watches requests, can tell which clients took part on which
day. No table contains their samples. Without tokens nobody is known, and anybody can send samples under any number of names.

**Invitations.** A link opens the page to take part by. After its # stand a person's token and the first digits of the questions' digest,
which browsers send to nobody: they appear in no log of a server. As a QR code it can be printed.
"""

import csv
import gzip
import hashlib
import html
import json
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet._base.files import atomic_folder, atomic_write, error_reason, read_private_file
from discreet._base.showing import pluralise
from discreet.agreement import Agreement, ContinuousTerms, RowTerms
from discreet.client import normalise_addresses
from discreet.collect._counting import NAME_PATTERN, NAME_RULE, token_digest
from discreet.collect._store import Store, find_agreement_by_prefix, refuse_nonzero_shared_tokens
from discreet.domain import Domain, canonical_json, json_hook_refusing_repeated_fields
from discreet.errors import DiscreetError, check_count, check_texts, raise_missing_extra, spell_out_invisible

LIVE, TAKE_PART = "/", "/take-part"
LANGUAGES = ("en", "de")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_FILES = {f"/pages/{name}": name for name in ("collector.css", "live.js", "take-part.js")} | {"/worker.js": "worker.js"}
_PAGES = {LIVE: ("live.html", "live"), TAKE_PART: ("take-part.html", "take")}
_SHARED = ("language", "nouns", "words", "collector")  # parts of a catalogue that every page has
_WORDED = re.compile(r'(<[^<>]*\sdata-t="([^"]+)"[^<>]*>)')
_LABELLED = re.compile(r'\sdata-t-label="([^"]+)"')
_CATALOGUE = '<script type="application/json" id="catalogue">'


@cache
def page_routes() -> tuple[Route, ...]:
    """The routes of the pages and their files, the same for every service: they are read and compressed once."""
    pages = [_page_route(path, _load_page_in_each_language(name, section)) for path, (name, section) in _PAGES.items()]
    files = [_page_route(path, {"": _TaggedContent(_read_page_file(name), name)}) for path, name in _FILES.items()]
    return (*pages, *files)


def _read_page_file(name: str) -> bytes:
    return (resources.files(__package__) / "pages" / name).read_bytes()


class _TaggedContent:
    """A file as it is sent, with its tag. It is revalidated each time, so that a page and its script have one version.

    It is public and the same for everybody, so that it may be compressed: its length tells nothing.
    """

    def __init__(self, content: bytes, name: str, language: str = "") -> None:
        kind = _TYPES[name[name.rindex(".") :]]
        tag = hashlib.sha256(content).hexdigest()[:32]
        language_header = {"Content-Language": language} if language else {}
        headers = {
            "Content-Type": kind,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding, Accept-Language",
            **language_header,
        }
        self._plain = content, {**headers, "ETag": f'"{tag}"'}
        self._packed = gzip.compress(content, mtime=0), {**headers, "ETag": f'"{tag}-gzip"', "Content-Encoding": "gzip"}

    def response(self, request: Request) -> Response:
        """The file, unless the browser has it."""
        accepted_encodings = request.headers.get("accept-encoding", "").replace(" ", "").lower()
        content, headers = (
            self._packed if re.search(r"(^|,)gzip(,|;q=0?\.[0-9]*[1-9]|;q=1|$)", accepted_encodings) else self._plain
        )
        tags = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if headers["ETag"] in tags:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers)


def _load_page_in_each_language(name: str, section: str) -> dict[str, _TaggedContent]:
    template = _read_page_file(name).decode()
    versions = {}
    for language in LANGUAGES:
        catalogue = json.loads(_read_page_file(f"{language}.json"))
        parts = {part: catalogue[part] for part in (*_SHARED, section)}
        versions[language] = _TaggedContent(_translate_page(template, parts).encode(), name, language)
    return versions


def _translate_page(template: str, catalogue: Mapping[str, Any]) -> str:
    """A page in the language of a catalogue, which it then holds: for its script to speak by."""
    texts = {
        key: text for name, part in catalogue.items() if name not in ("language", "nouns") for key, text in part.items()
    }

    def translated_text(key: str) -> str:
        return html.escape(texts[key].format_map(catalogue["nouns"]["sample"]), quote=True)

    page = _WORDED.sub(lambda match: match[1] + translated_text(match[2]), template)
    page = _LABELLED.sub(lambda match: f'{match[0]} aria-label="{translated_text(match[1])}"', page)
    catalogue_json = json.dumps(catalogue, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = page.replace(_CATALOGUE, _CATALOGUE + catalogue_json)
    return page.replace('<html lang="en">', f'<html lang="{catalogue["language"]}">')


def _page_route(path: str, versions: Mapping[str, _TaggedContent]) -> Route:
    async def answer_request(request: Request) -> Response:
        version = versions[_language_of_request(request)] if len(versions) > 1 else next(iter(versions.values()))
        return version.response(request)

    return Route(path, answer_request, methods=["GET"])


def _language_of_request(request: Request) -> str:
    """The language of `?lang=`, else the browser's first one that has a catalogue, else English."""
    weighted_codes = []
    for position, part in enumerate(request.headers.get("accept-language", "").split(",")[:20]):
        code, _, weight = "".join(part.split()).partition(";q=")
        try:
            if (quality := float(weight or 1)) > 0:  # 0 refuses a language
                weighted_codes.append((-quality, position, code))
        except ValueError:
            continue
    tags = [request.query_params.get("lang", ""), *(code for _, _, code in sorted(weighted_codes))]
    return next((code for tag in tags if (code := tag.lower().split("-")[0]) in LANGUAGES), LANGUAGES[0])


_LONGEST_TITLE, _LONGEST_TEXT, _LARGEST_FILE = 300, 5_000, 200_000
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_CHOICES = ("single", "multiple", "records")
_QUESTION = {"title", "text", "options", "choice", "prefer_not_to_say"}
_SURVEY = {"title", "text", "columns"}
_TRANSLATED = {"title", "text", "options"}


@dataclass(frozen=True)
class Questions:
    """What a survey asks, in people's own words. `document`: as `read` checked it."""

    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: str | Path, agreement: Agreement) -> "Questions":
        """The questions in a TOML or JSON file, for an agreement.

        Args:
            path: the file; one that ends with .json is JSON, every other one TOML.
            agreement: whose outcomes the questions are about, with its labels.

        Raises:
            DiscreetError: for a file that cannot be read, and for the first field that is wrong.
        """
        try:
            content = Path(path).read_bytes()
            text = content.decode("utf-8")
            if len(content) > _LARGEST_FILE:
                raise DiscreetError(f"questions {str(path)!r} has more than {_LARGEST_FILE:,} bytes; shorten it")
            document = _parse_questions_json(text) if str(path).endswith(".json") else tomllib.loads(text)
        except DiscreetError:
            raise
        except OSError as error:
            raise DiscreetError(f"questions {str(path)!r} cannot be read: {error_reason(error)}") from None
        except (ValueError, RecursionError) as error:  # of either format
            raise DiscreetError(f"questions {str(path)!r} is neither TOML nor JSON: {error}") from None
        return cls.from_document(document, agreement)

    @classmethod
    def from_document(cls, document: Any, agreement: Agreement) -> "Questions":
        """The questions that a document states, checked against an agreement."""
        if isinstance(agreement.family, ContinuousTerms):
            raise DiscreetError(
                "questions are asked of an agreement on outcomes, and this one is on a continuous family"
            )
        columns = None if agreement.survey is None else _domains_of_asked_columns(agreement)
        fields = _require_table_of_fields(
            "questions", document, {"language", "translations", *(_QUESTION if columns is None else _SURVEY)}
        )
        language = fields.get("language", "en")
        if not (isinstance(language, str) and _LANGUAGE.fullmatch(language)):
            raise DiscreetError(f"questions: language = {language!r} is not a code such as 'en' or 'de-AT'")
        question = (
            _parse_question_wording("questions", fields, agreement.domain)
            if columns is None
            else _parse_survey_wording(fields, columns)
        )
        translations = _require_table_of_fields("translations", fields.get("translations", {}), None)
        for code, translation in translations.items():
            if not _LANGUAGE.fullmatch(code) or code == language:
                raise DiscreetError(f"translations: {code!r} is not the code of another language, such as 'de'")
            field_names = _TRANSLATED | ({"columns"} if columns else set())
            _refuse_inexact_translation(f"translations.{code}", translation, question, field_names)
            for name, column in question.get("columns", {}).items():
                _refuse_inexact_translation(
                    f"translations.{code}.columns.{name}", translation["columns"].get(name), column, _TRANSLATED
                )
        terms = {"discreet_questions": 1, "language": language, **question}
        return cls({**terms, **({"translations": translations} if translations else {})})

    @cached_property
    def text(self) -> str:
        """The questions as they are stored and sent: fields in order, no spaces."""
        return canonical_json(self.document)

    @cached_property
    def digest(self) -> str:
        """Their id: SHA-256 of the text, 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def _parse_questions_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=json_hook_refusing_repeated_fields("the file of questions"))


def _require_table_of_fields(label: str, table: Any, field_names: set[str] | None) -> dict[str, Any]:
    """A table of fields; an error for another value, and for a field that is not known."""
    if not isinstance(table, dict):
        raise DiscreetError(f"{label} is not a table of fields")
    unknown_fields = [] if field_names is None else sorted(table.keys() - field_names)
    if unknown_fields:
        raise DiscreetError(
            f"{label}: {unknown_fields[0]!r} is not one of the fields {', '.join(sorted(field_names or ()))}"
        )
    return table


def _require_text_within_length(label: str, text: Any, longest: int) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > longest:
        raise DiscreetError(f"{label} is not a text of 1 to {longest:,} characters")
    return text


def _outcome_names(domain: Domain[Any]) -> list[str]:
    """Outcomes as the pages name them."""
    return [name if isinstance(name, str) else json.dumps(name) for name in domain.labels or ()]


def _parse_title_and_text(label: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The title, and the text if there is one."""
    wording = {"title": _require_text_within_length(f"{label}: title", fields.get("title"), _LONGEST_TITLE)}
    if "text" in fields:
        wording["text"] = _require_text_within_length(f"{label}: text", fields["text"], _LONGEST_TEXT)
    return wording


def _parse_question_wording(label: str, fields: Mapping[str, Any], domain: Domain[Any]) -> dict[str, Any]:
    names = _outcome_names(domain)
    wording = _parse_title_and_text(label, fields)
    wording["choice"] = fields.get("choice", "single")
    if wording["choice"] not in _CHOICES:
        raise DiscreetError(f"{label}: choice = {wording['choice']!r} is not one of {', '.join(_CHOICES)}")
    if wording["choice"] == "multiple" and domain.labels is None:
        raise DiscreetError(f"{label}: choice = 'multiple' is for outcomes with labels, and these are numbers")
    if "options" in fields:
        wording["options"] = _parse_option_wordings(f"{label}: options", fields["options"], names)
    refusal = fields.get("prefer_not_to_say", True)
    if not isinstance(refusal, bool) and refusal not in names:
        raise DiscreetError(
            f"{label}: prefer_not_to_say = {refusal!r} is not true, false or an outcome of the agreement"
        )
    return {**wording, "prefer_not_to_say": refusal}


def _domains_of_asked_columns(agreement: Agreement) -> dict[str, Domain[Any]]:
    """The columns of a survey that a report may be about: no others are asked for."""
    assert agreement.survey is not None
    assert isinstance(agreement.family, RowTerms)
    views = [part["sees"] for part in agreement.survey.parts]
    columns = {name for view in views for name in view.get("columns", [view.get("column")])}
    return {name: domain for name, domain in agreement.family.columns.items() if name in columns}


def _parse_survey_wording(fields: Mapping[str, Any], columns: Mapping[str, Domain[Any]]) -> dict[str, Any]:
    """The questions of a survey: one for each column that it asks."""
    wording = _parse_title_and_text("questions", fields)
    questions = _require_table_of_fields("questions: columns", fields.get("columns"), set(columns))
    missing = [name for name in columns if name not in questions]
    if missing:
        raise DiscreetError(f"questions: columns has no question for {missing[0]!r}, which the survey asks")
    wording["columns"] = {}
    for name, domain in columns.items():
        label = f"questions: columns.{name}"
        question = wording["columns"][name] = _parse_question_wording(
            label, _require_table_of_fields(label, questions[name], _QUESTION), domain
        )
        if question["choice"] == "records":
            raise DiscreetError(
                f"{label}: choice = 'records' is for one question; the columns of a survey are single or multiple"
            )
    return wording


def _parse_option_wordings(label: str, table: Any, names: list[str]) -> dict[str, str]:
    options = _require_table_of_fields(label, table, None)
    for name, text in options.items():
        if name not in names:
            raise DiscreetError(f"{label}: {name!r} is not an outcome of the agreement")
        _require_text_within_length(f"{label}: {name!r}", text, _LONGEST_TITLE)
    return options


def _refuse_inexact_translation(
    label: str, translation: Any, question: Mapping[str, Any], field_names: set[str]
) -> None:
    """Raise an error for a translation that does not say exactly what the original says."""
    fields = _require_table_of_fields(label, translation, field_names)
    expected_names = question.keys() & field_names
    if fields.keys() != expected_names:
        raise DiscreetError(
            f"{label} has not the fields {', '.join(sorted(expected_names))} that are to be translated, and no others"
        )
    _parse_title_and_text(label, fields)
    if "options" in fields:
        options = _parse_option_wordings(f"{label}: options", fields["options"], list(question["options"]))
        if options.keys() != question["options"].keys():
            raise DiscreetError(
                f"{label}: options are not those that are to be translated: {', '.join(question['options'])}"
            )
    if "columns" in fields:
        _require_table_of_fields(f"{label}: columns", fields["columns"], set(question["columns"]))


MOST_TOKENS = 10_000_000
_SHORTEST = 16  # characters of a token, too many to guess
_LARGEST_TOKENS = 1 << 31  # bytes of a file of tokens


def refuse_tokens_in_both_lists(tokens: Iterable[str], gateways: Iterable[str]) -> None:
    """Raise an error for a token in both lists: its client could send samples for many."""
    refuse_nonzero_shared_tokens(len(set(tokens) & set(gateways)))


def add_tokens_to_store(store: Store, tokens: Iterable[str] = (), gateways: Iterable[str] = ()) -> int:
    """Add tokens of clients and of gateways to a store, and return how many are new. One that is in both lists is refused."""
    client_tokens = check_texts("tokens", tokens, "pass a token for each client")
    gateway_tokens = check_texts("gateways", gateways, "pass a token for each gateway")
    return store.enrol_token_digests(map(token_digest, client_tokens), map(token_digest, gateway_tokens))


def write_fresh_token_file(path: str | Path, number: int) -> None:
    """Write fresh tokens, one on each line, to a new file that only its owner may read."""
    check_count("number", number, most=MOST_TOKENS, fix="it is how many clients there are")
    with atomic_write(path, what="file of tokens", private=True) as file:
        for _ in range(number):
            file.write(secrets.token_urlsafe(24).encode() + b"\n")


def read_tokens(path: str | Path) -> list[str]:
    """The tokens in a file, one on each line; an error if others may read it, or if a token is short enough to guess."""
    content = read_private_file(path, what="file of tokens", most=_LARGEST_TOKENS, fix="make one with: discreet enrol")
    try:
        lines = content.decode("ascii").split()
    except UnicodeDecodeError:
        raise DiscreetError(f"file of tokens {path} is not ASCII text, one token on each line") from None
    for number, token in enumerate(lines, start=1):
        if len(token) < _SHORTEST or NAME_PATTERN.fullmatch(token) is None:
            raise DiscreetError(
                f"{path}, token {number} is not {NAME_RULE}, at least {_SHORTEST} of them; make them with: discreet enrol"
            )
    if not lines:
        raise DiscreetError(f"{path} holds no token; make some with: discreet enrol")
    if len(set(lines)) < len(lines):
        raise DiscreetError(f"{path} holds a token twice; each is for another client")
    return lines


_DIGITS = 16  # of the questions' digest in a link: too many to find other words for
_MOST_PRINTED = 2_000  # invitations with a picture
_SHEET = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 12pt/1.4 system-ui, sans-serif; margin: 1cm; color: #000; background: #fff; }}
ul {{ list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(8cm, 1fr)); gap: .6cm; }}
li {{ border: 1px dashed #777; padding: .5cm; break-inside: avoid; overflow-wrap: anywhere; }}
svg {{ display: block; width: 5cm; height: 5cm; }}
small {{ font-size: 8pt; }}
</style>
</head>
<body>
<h1>{title}</h1>
{left_out}<ul>
{cards}
</ul>
</body>
</html>
"""


def invitation_links(
    store: Store, address: str, tokens: Sequence[str] = (), *, agreement: str | None = None, more: str = ""
) -> list[str]:
    """A link for each token, in an order by chance; without tokens one link for everybody.

    Args:
        store: from `open_store`.
        address: where people reach the service, such as "https://example.org".
        tokens: of clients who are enrolled in the store.
        agreement: its id, or 12 or more of its first digits; by default the newest.
        more: further fields of the address, such as "lang=de" or "offline".

    Raises:
        DiscreetError: for a token that is not enrolled, and tokens that are missing where the store is enrolled.
    """
    stored_agreement = find_agreement_by_prefix(store.agreements(), agreement)
    (site,) = normalise_addresses([address])
    checked_tokens = check_texts("tokens", tokens, "pass a token for each client")
    digests = [token_digest(token) for token in checked_tokens]
    if len(store.unrevoked_client_tokens_among(digests)) < len(set(digests)):
        raise DiscreetError(
            "tokens holds some that are not enrolled in the store, or were revoked; add those that are new: discreet enrol --add, and "
            "leave out the revoked ones, which stay so"
        )
    # there each person types a token
    if store.read_enrolment().is_needed and not checked_tokens and "field" not in more.split("&"):
        raise DiscreetError("the store takes samples of enrolled clients only; name their tokens: --tokens FILE")
    secrets.SystemRandom().shuffle(checked_tokens)
    page = f"{site}{TAKE_PART}?agreement={stored_agreement.agreement.id}{f'&{more}' if more else ''}"
    question_fields = (
        []
        if stored_agreement.questions is None
        else [f"questions={hashlib.sha256(stored_agreement.questions.encode()).hexdigest()[:_DIGITS]}"]
    )
    fragments = ["&".join([*question_fields, f"token={quote(token, safe='')}"]) for token in checked_tokens] or [
        "&".join(question_fields)
    ]
    return [f"{page}#{fragment}" if fragment else page for fragment in fragments]


def write_invitation_folder(folder: str | Path, links: Sequence[str], title: str) -> None:
    """Write links as a table and as a sheet of QR codes to a new folder that only its owner may read; it appears whole or not at all."""
    try:
        import segno
    except ImportError as error:
        raise_missing_extra("collect", error)
    target = Path(folder)
    if target.exists():
        raise DiscreetError(f"folder = {str(folder)!r} exists; name a new one")
    with atomic_folder(target) as partial:
        with (partial / "links.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["link"])
            rows.writerows([link] for link in links)
        cards = []
        for link in links[:_MOST_PRINTED]:
            picture = segno.make(link, error="m", micro=False).svg_inline(scale=1, omitsize=True, border=4)
            cards.append(f"<li>{picture}<small>{html.escape(link)}</small></li>")
        heading = html.escape(spell_out_invisible(title) or "Take part")
        omitted_count = len(links) - len(cards)
        left_out = (
            f"<p>{pluralise(omitted_count, 'more link')} without a picture: see links.csv.</p>\n"
            if omitted_count
            else ""
        )
        sheet = _SHEET.format(title=heading, left_out=left_out, cards="\n".join(cards))
        (partial / "invitations.html").write_text(sheet, encoding="utf-8")
