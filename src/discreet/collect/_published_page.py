"""The page, table and picture of a published result: plain files with every number to its last digit, and no script.

Page, table and picture show shares of outcomes. Those of a survey show the answers to all questions, each with its own table and a part of
the picture.
"""

import csv
import html
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from discreet._base.showing import confidence_text, pluralise, round_up_to_digits
from discreet.agreement import Agreement, ContinuousTerms
from discreet.errors import spell_out_invisible

_LISTED = 100  # outcomes in the table of the page: the largest, or the first of those that have an order
_DRAWN = 30  # rows of a picture
_UNBROKEN = "\u00a0%"  # which stays in one line with its number
_READABLE = 20.0  # of epsilon
_SHARES = ("estimate", "low", "high", "all_low", "all_high")


def _outcomes_have_order(agreement: Agreement) -> bool:
    """Whether outcomes lie in an order that a picture should keep: numbers, cells and bins do, labels do not."""
    return isinstance(agreement.family, ContinuousTerms) or agreement.domain.labels is None


def _noun_for_releases(estimate: Mapping[str, Any]) -> str:
    return "reports" if "reports" in estimate or "questions" in estimate else "samples"


def shares_as_csv(estimate: Mapping[str, Any]) -> str:
    """A row for each outcome, with all digits."""
    noun = _noun_for_releases(estimate)
    rows = [[share["outcome"], share[noun], *(share["law"][name] for name in _SHARES)] for share in estimate["shares"]]
    return _rows_as_csv_text(["outcome", noun, *_SHARES], rows)


def _rows_as_csv_text(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = []
    for row in (heads, *rows):
        line = io.StringIO()
        csv.writer(line).writerow(row)  # whose lines end in \r\n: it quotes fields that hold either of the two
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def _percent_text(share: float) -> str:
    return f"{100 * share:.3g} %".replace("-", "−")


def _escape_html(text: str) -> str:
    return html.escape(spell_out_invisible(text), quote=True)


def _outcome_text(outcome: Any) -> str:
    """An outcome as people read it: what would be invisible is spelt out."""
    return _escape_html(str(outcome)) or "(empty)"


def _share_html(value: float) -> str:
    """A share as people read it, and to all its digits for programs."""
    return f'<data value="{value!r}">{_percent_text(value)}</data>'.replace(" %", _UNBROKEN)


def _statistic_html(value: float) -> str:
    """A statistic as people read it, in the unit of the outcomes, and to all its digits for programs."""
    return f'<data value="{value!r}">{value:.4g}</data>'


def _indices_of_shown_outcomes(shares: Sequence[Any], most: int, *, has_order: bool) -> list[int]:
    """The places of the outcomes that are shown: in their order, or the largest first."""
    if has_order:
        return list(range(min(most, len(shares))))
    return sorted(range(len(shares)), key=lambda index: (-shares[index]["law"]["estimate"], index))[:most]


def _headings_and_sentences_on_questions(questions: str | None) -> list[tuple[str, str]]:
    """What was asked in words, and what answers count as: (heading, sentence)."""
    if questions is None:
        return []
    document = json.loads(questions)
    parts = [document, *document.get("columns", {}).values()]
    facts = [("Question", " ".join(part[name] for part in parts for name in ("title", "text") if name in part))]
    if any(part.get("choice") == "multiple" for part in parts):
        facts.append(("Several options", "A person who chose several options counts for each of them in equal parts."))
    if any(part.get("prefer_not_to_say") is True for part in parts):
        facts.append(
            (
                "Preferred not to say",
                "A person who preferred not to say counts for every option, in the proportions of the public reference (in equal parts, if "
                "none was agreed on). Nobody knows how many did.",
            )
        )
    return facts


def _selection_bias_note(is_selection: bool) -> str:
    """A note for a picture of the largest of many shares (`is_selection`): their own intervals miss more often."""
    if not is_selection:
        return ""
    return (
        " The picture has the largest of many shares, which are large partly by chance. For these use the intervals that hold for all at "
        "once, in the table."
    )


def share_page_html(agreement: Agreement, estimate: Mapping[str, Any], questions: str | None) -> str:
    """The page of shares. `questions`: what was asked in words, as a store keeps it."""
    noun, has_order = _noun_for_releases(estimate), _outcomes_have_order(agreement)
    shares, confidence = estimate["shares"], confidence_text(estimate["confidence"])
    is_selection = len(shares) > _DRAWN and not has_order
    indices = _indices_of_shown_outcomes(shares, _LISTED, has_order=has_order)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{_outcome_text(share["outcome"])}</bdi></th><td>{share[noun]:,}</td>'
        f"<td>{_share_html(share['law']['estimate'])}</td>"
        f"<td>{_share_html(share['law']['low'])} to {_share_html(share['law']['high'])}</td>"
        f"<td>{_share_html(share['law']['all_low'])} to {_share_html(share['law']['all_high'])}</td></tr>"
        for share in (shares[index] for index in indices)
    )
    omitted_count = len(shares) - len(indices)
    meaning = (
        "A share is that of the average person, corrected for the noise of privacy. The estimate is unbiased, so it may fall below 0 or "
        "above 100 % by chance."
        if estimate["identifiable"]
        else f"A share is that among the {noun}. They do not determine the average person's own share: an interval "
        "contains every share that could have given them."
    )
    liars = f"Each {noun[:-1]} that was not honest moved a share by at most"
    statistics = "".join(
        f"<dt>{_escape_html(statistic['name'].capitalize())}</dt><dd>{_statistic_html(statistic['estimate'])}; "
        f"from {_statistic_html(statistic['low'])} to {_statistic_html(statistic['high'])}, at {confidence} confidence</dd>\n"
        for statistic in estimate["statistics"]
    )
    column_name = "Reports that name it" if noun == "reports" else "Samples"
    tables = _html_table_of_rows(
        "Table of the numbers", ("Outcome", column_name, "Estimate", "Interval", "All intervals at once"), rows
    )
    if omitted_count:
        tables += f'\n<p>{omitted_count:,} more outcomes are in <a href="estimate.csv">estimate.csv</a>.</p>'
    return _fill_page_template(
        agreement,
        estimate,
        release_count=pluralise(estimate[noun], noun[:-1]),
        picture=_picture_description(estimate, has_order=has_order),
        meaning=f"{meaning} An interval contains the true share in {confidence} of cases.{_selection_bias_note(is_selection)}",
        tables=tables,
        statistics=f"<dl>\n{statistics}</dl>" if statistics else "",
        questions=questions,
        fact=("What dishonest participants can do", f"{liars} {_percent_text_rounded_up(estimate['liars']['one'])}."),
    )


def _html_table_of_rows(name: str, heads: Sequence[str], rows: str) -> str:
    columns = "".join(f'<th scope="col">{_escape_html(head)}</th>' for head in heads)
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="{_escape_html(name)}">\n<table><thead><tr>{columns}</tr></thead>\n<tbody>\n'
        f"{rows}\n</tbody></table>\n</div>"
    )


def _fill_page_template(
    agreement: Agreement,
    estimate: Mapping[str, Any],
    *,
    release_count: str,
    picture: str,
    meaning: str,
    tables: str,
    statistics: str,
    questions: str | None,
    fact: tuple[str, str],
) -> str:
    """The page with these parts: no script, nothing from elsewhere. `fact`: a heading and a sentence beside those of every page."""
    facts = [
        *_headings_and_sentences_on_questions(questions),
        ("How private", f"Each {_noun_for_releases(estimate)[:-1]} costs {_privacy_promise_text(agreement)}."),
        fact,
        *(("Note", f"{note[:1].upper()}{note[1:]}.") for note in estimate["notes"]),
        ("Agreement", f"{agreement.id}, round {estimate['round']}."),
    ]
    fact_list = "\n".join(f"<dt>{_escape_html(name)}</dt><dd>{_escape_html(text)}</dd>" for name, text in facts)
    template = Template((resources.files(__package__) / "pages" / "published.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=_page_title(agreement, estimate),
        many=release_count,
        closed=estimate["closed"],
        picture=picture,
        meaning=meaning.replace(" %", _UNBROKEN),
        tables=tables,
        statistics=statistics,
        listed=fact_list,
    )


def _page_title(agreement: Agreement, estimate: Mapping[str, Any]) -> str:
    return _escape_html(agreement.purpose or f"What these {_noun_for_releases(estimate)} show")


def _privacy_promise_text(agreement: Agreement) -> str:
    """What one release may reveal: odds are bounded by pure epsilon, and named where e^epsilon is a number that people read."""
    if agreement.privacy is not None:
        return f"{agreement.privacy} (pure epsilon = {agreement.epsilon:g})"
    if agreement.epsilon > _READABLE:
        return f"epsilon = {agreement.epsilon:g}, which is hardly any privacy"
    factor = round_up_to_digits(math.exp(agreement.epsilon), 3)
    return f"epsilon = {agreement.epsilon:g}: it moves odds about its person by a factor of at most {factor:.10g}"


def _percent_text_rounded_up(share: float) -> str:
    """A percentage in three digits, rounded up."""
    return f"{100 * min(1.0, round_up_to_digits(share, 3)):.10g} %"


def _picture_description(estimate: Mapping[str, Any], *, has_order: bool) -> str:
    shares = estimate["shares"]
    largest = max(shares, key=lambda share: share["law"]["estimate"])
    kind = "A histogram" if has_order else "Bars with intervals"
    return _escape_html(
        f"{kind} of {pluralise(len(shares), 'outcome')}; the largest is {largest['outcome']}, {_percent_text(largest['law']['estimate'])}."
    )


_WIDTH, _ROW, _RIGHT, _TOP = 900, 34, 240, 40
_LONGEST_NAME = 24  # characters
_COLUMNS_HEIGHT, _AXIS_LEFT, _BOTTOM = 380, 80, 60
_BAR, _EDGE, _INK, _GRID = "#8fb3d9", "#0b5ea8", "#1b2430", "#dfe3e8"


def _axis_end_and_step(shares: Sequence[Any]) -> tuple[float, float]:
    """The end of an axis that holds all intervals between 0 and 1, and a step in round numbers."""
    largest = max((max(share["law"]["high"], share["law"]["estimate"]) for share in shares), default=1.0)
    largest = min(max(largest, 1e-6), 1.0)  # an axis has a length, also if all shares are 0
    rough_step = largest / 5
    power = 10.0 ** math.floor(math.log10(rough_step))
    step = next(power * multiple for multiple in (1, 2, 2.5, 5, 10) if power * multiple >= rough_step)
    return min(1.0, step * math.ceil(largest / step - 1e-9)), step


def _grid_svg(top: float, step: float, tick_line_and_label: Callable[[float], tuple[str, str]]) -> list[str]:
    """The lines of an axis with their labels. `tick_line_and_label`: the path of a tick's line, and the attributes of its label."""
    parts = []
    for tick in np.arange(0.0, top + step / 2, step).tolist():
        line, label = tick_line_and_label(tick)
        parts.append(f'<path d="{line}" stroke="{_GRID}"/><text {label} font-size="13">{100 * tick:.6g} %</text>')
    return parts


def _clip_to_axis(share: float, top: float) -> float:
    return min(max(share, 0.0), top)


def _outcome_group_svg(share: Mapping[str, Any], noun: str, *parts: str) -> str:
    """One SVG group with the parts of an outcome, and its numbers to all their digits."""
    law = share["law"]
    numbers = "".join(f' data-{name.replace("_", "-")}="{law[name]!r}"' for name in _SHARES)
    title = f"{share['outcome']}: {_percent_text(law['estimate'])}, {_percent_text(law['low'])} to {_percent_text(law['high'])}"
    head = f'<g data-outcome="{_outcome_text(share["outcome"])}" data-{noun}="{share[noun]}"{numbers}>'
    return f"{head}<title>{_escape_html(title)}</title>{''.join(parts)}</g>"


def share_picture_svg(agreement: Agreement, estimate: Mapping[str, Any]) -> str:
    """Bars with intervals: a row for each of the largest outcomes, or a column for each of those that have an order."""
    shares, noun, has_order = estimate["shares"], _noun_for_releases(estimate), _outcomes_have_order(agreement)
    height, parts = (
        _height_and_svg_of_bar_columns(shares, noun) if has_order else _height_and_svg_of_bar_rows(shares, noun)
    )
    return _svg_document(
        _page_title(agreement, estimate), _picture_description(estimate, has_order=has_order), height, parts
    )


def _svg_document(title: str, description: str, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{description}" font-family="system-ui, sans-serif" font-size="15" fill="{_INK}">\n<title>{title}</title>\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _shorten_label(name: str, most: int = _LONGEST_NAME) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _height_and_svg_of_bar_rows(shares: Sequence[Any], noun: str, *, has_order: bool = False) -> tuple[int, list[str]]:
    shown_shares = [shares[index] for index in _indices_of_shown_outcomes(shares, _DRAWN, has_order=has_order)]
    top, step = _axis_end_and_step(shown_shares)
    names = [_shorten_label(str(share["outcome"])) for share in shown_shares]
    left = 30 + 9 * max(map(len, names))
    length = _WIDTH - left - _RIGHT
    end = _TOP + _ROW * len(shown_shares)

    def x_of_share(share: float) -> str:
        return f"{left + length * _clip_to_axis(share, top) / top:.2f}"

    def tick_line_and_label(tick: float) -> tuple[str, str]:
        x = x_of_share(tick)
        return f"M{x} {_TOP - 6}V{end}", f'x="{x}" y="{_TOP - 14}" text-anchor="middle"'

    parts = _grid_svg(top, step, tick_line_and_label)
    for index, (share, name) in enumerate(zip(shown_shares, names, strict=True)):
        law, y = share["law"], _TOP + _ROW * index
        middle = y + _ROW / 2
        label = f"{_percent_text(law['estimate'])}  ({_percent_text(law['low'])} to {_percent_text(law['high'])})"
        bar = float(x_of_share(law["estimate"])) - left
        parts.append(
            _outcome_group_svg(
                share,
                noun,
                f'<text x="{left - 12}" y="{middle + 5}" text-anchor="end">{_outcome_text(name)}</text>',
                f'<rect x="{left}" y="{y + 7}" width="{bar:.2f}" height="{_ROW - 14}" fill="{_BAR}"/>',
                f'<path d="M{x_of_share(law["estimate"])} {y + 7}v{_ROW - 14}" stroke="{_EDGE}" stroke-width="3"/>',
                _interval_line_svg(x_of_share(law["low"]), x_of_share(law["high"]), middle),
                f'<text x="{_WIDTH - _RIGHT + 14}" y="{middle + 5}" font-size="14">{label}</text>',
            )
        )
    omitted_count = len(shares) - len(shown_shares)
    if omitted_count:
        note = f"{omitted_count:,} {'later' if has_order else 'smaller'} ones are in estimate.csv."
        parts.append(f'<text x="{left}" y="{end + 24}" font-size="13">{note}</text>')
    return end + (40 if omitted_count else 14), parts


def _interval_line_svg(low: str, high: str, middle: float) -> str:
    """An interval in a row: a line with an end on either side."""
    ends = f"M{low} {middle - 6}v12M{high} {middle - 6}v12"
    return f'<path d="M{low} {middle}H{high}{ends}" stroke="{_INK}" stroke-width="2" fill="none"/>'


def _height_and_svg_of_bar_columns(shares: Sequence[Any], noun: str) -> tuple[int, list[str]]:
    top, step = _axis_end_and_step(shares)
    height, length = _COLUMNS_HEIGHT - _BOTTOM - _TOP, _WIDTH - _AXIS_LEFT - 20
    width = length / len(shares)

    def y_of_share(share: float) -> str:
        return f"{_TOP + height * (1 - _clip_to_axis(share, top) / top):.2f}"

    def tick_line_and_label(tick: float) -> tuple[str, str]:
        y = y_of_share(tick)
        return f"M{_AXIS_LEFT} {y}H{_WIDTH - 20}", f'x="{_AXIS_LEFT - 8}" y="{float(y) + 5:.2f}" text-anchor="end"'

    parts = _grid_svg(top, step, tick_line_and_label)
    label_step = max(1, math.ceil(len(shares) * 9 * max(len(str(share["outcome"])) for share in shares) / length))
    for index, share in enumerate(shares):
        law, x = share["law"], _AXIS_LEFT + width * index
        middle, cap = x + width / 2, min(width / 4, 6)
        column = [
            f'<rect x="{x + width / 10:.2f}" y="{y_of_share(law["estimate"])}" width="{width * 0.8:.2f}" '
            f'height="{float(y_of_share(0.0)) - float(y_of_share(law["estimate"])):.2f}" fill="{_BAR}"/>',
            f'<path d="M{middle:.2f} {y_of_share(law["low"])}V{y_of_share(law["high"])}'
            f'M{middle - cap:.2f} {y_of_share(law["low"])}h{2 * cap:.2f}M{middle - cap:.2f} {y_of_share(law["high"])}h{2 * cap:.2f}" '
            f'stroke="{_INK}" stroke-width="{min(2, width / 3):.2f}" fill="none"/>',
        ]
        if index % label_step == 0:
            column.append(
                f'<text x="{middle:.2f}" y="{_COLUMNS_HEIGHT - _BOTTOM + 24}" text-anchor="middle" font-size="13">'
                f"{_outcome_text(share['outcome'])}</text>"
            )
        parts.append(_outcome_group_svg(share, noun, *column))
    return _COLUMNS_HEIGHT - 20, parts


_SURVEY_MEANING = (
    "Each participant sent one report, which is about one part of the survey. A public random choice selected the part. Shares of tables "
    "with common columns agree, and those of a question add up to 100 %. An estimate may fall below 0 by chance; intervals are cut at 0 and "
    "100 %."
)
_PROOFS = (
    "Intervals of shares from the reports on one table are proved. Those from several tables, of means, sums and quantiles rest on Gaffke's "
    "bound, a conjecture to which no counterexample is known. Intervals cover chance, but no dishonest reports"
)
_QUESTION_GAP = 76  # of a picture, above the rows of a question


def _is_answered_by_shares(question: Mapping[str, Any]) -> bool:
    return question["kind"] in ("shares", "histogram")


def _answers_to_show(question: Mapping[str, Any], most: int) -> list[Mapping[str, Any]]:
    """The answers that are shown: the largest shares first, all others in their order."""
    answers = question["answers"]
    if question["kind"] != "shares":
        return list(answers[:most])
    return sorted(answers, key=lambda answer: -1.0 if answer["estimate"] is None else -answer["estimate"])[:most]


def survey_page_html(agreement: Agreement, estimate: Mapping[str, Any], questions: str | None) -> str:
    """The page of the answers to a survey: a table for each question. `questions`: what was asked in words."""
    confidence = confidence_text(estimate["confidence"])
    is_selection = any(
        question["kind"] == "shares" and len(question["answers"]) > _DRAWN for question in estimate["questions"]
    )
    return _fill_page_template(
        agreement,
        estimate,
        release_count=pluralise(estimate["clients"], "report"),
        picture=_survey_picture_description(estimate),
        meaning=f"{_SURVEY_MEANING} An interval contains the true number in {confidence} of cases.{_selection_bias_note(is_selection)}",
        tables="\n".join(map(_question_table_html, estimate["questions"])),
        statistics="",
        questions=questions,
        fact=("How sure", f"{_PROOFS}."),
    )


def _question_table_html(question: Mapping[str, Any]) -> str:
    title = _escape_html(question["question"])
    unit = f", in {_escape_html(question['unit'])}" if question["unit"] else ""
    participants = pluralise(question["clients"], "participant")
    head = f"<h3>{title}{unit}</h3>\n<p>{participants} {'was' if question['clients'] == 1 else 'were'} asked it.</p>\n"
    shown_answers = _answers_to_show(question, _LISTED)
    write = _share_html if _is_answered_by_shares(question) else _statistic_html
    # the largest were picked: only intervals of all at once are fair
    is_selection = len(shown_answers) < len(question["answers"])

    def interval_cell_html(answer: Mapping[str, Any], low: str, high: str) -> str:
        return (
            f"<td>{write(answer[low])} to {write(answer[high])}</td>" if answer["estimate"] is not None else "<td></td>"
        )

    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{_outcome_text(answer["name"])}</bdi></th>'
        f"<td>{'not known' if answer['estimate'] is None else write(answer['estimate'])}</td>"
        f"{'' if is_selection else interval_cell_html(answer, 'low', 'high')}{interval_cell_html(answer, 'all_low', 'all_high')}</tr>"
        for answer in shown_answers
    )
    heads = [
        "Outcome" if _is_answered_by_shares(question) else "Number",
        "Estimate",
        *([] if is_selection else ["Interval"]),
        "All intervals at once",
    ]
    note = (
        f'\n<p>{len(question["answers"]) - len(shown_answers):,} more are in <a href="estimate.csv">estimate.csv</a>.</p>'
        if is_selection
        else ""
    )
    return f"{head}{_html_table_of_rows(question['question'], heads, rows)}{note}"


def survey_as_csv(estimate: Mapping[str, Any]) -> str:
    """A row for each number of the survey, with all digits."""
    rows = [
        [
            question["question"],
            answer["name"],
            question["clients"],
            *("" if answer[name] is None else answer[name] for name in _SHARES),
        ]
        for question in estimate["questions"]
        for answer in question["answers"]
    ]
    return _rows_as_csv_text(["question", "outcome", "asked", *_SHARES], rows)


def _survey_picture_description(estimate: Mapping[str, Any]) -> str:
    return _escape_html(f"Answers with intervals to {pluralise(len(estimate['questions']), 'question')}.")


def survey_picture_svg(agreement: Agreement, estimate: Mapping[str, Any]) -> str:
    """One part for each question: bars with intervals for shares, points with intervals for other numbers."""
    parts, height = [], 0
    for question in estimate["questions"]:
        unit = f", in {question['unit']}" if question["unit"] else ""
        parts.append(
            f'<text x="12" y="{height + 30}" font-size="17" font-weight="600">{_escape_html(_shorten_label(question["question"], 80))}'
            f"{_escape_html(unit)}</text>"
        )
        height += _QUESTION_GAP - _TOP
        known_answers = [answer for answer in question["answers"] if answer["estimate"] is not None]
        if not known_answers:
            parts.append(f'<text x="12" y="{height + 40}">not known</text>')
            height += 60
            continue
        if _is_answered_by_shares(question):
            shares = [
                {"outcome": answer["name"], "reports": question["clients"], "law": answer} for answer in known_answers
            ]
            part_height, drawing = _height_and_svg_of_bar_rows(
                shares, "reports", has_order=question["kind"] != "shares"
            )
        else:
            part_height, drawing = _height_and_svg_of_point_rows(known_answers[:_DRAWN])
        parts.append(f'<g transform="translate(0 {height})">{"".join(drawing)}</g>')
        height += part_height
    return _svg_document(_page_title(agreement, estimate), _survey_picture_description(estimate), height, parts)


def _height_and_svg_of_point_rows(answers: Sequence[Mapping[str, Any]]) -> tuple[int, list[str]]:
    """A row for each number: a point in its interval, on a common scale."""
    low, high = min(answer["low"] for answer in answers), max(answer["high"] for answer in answers)
    span = (high - low) or 1.0
    left = 30 + 9 * max(len(_shorten_label(str(answer["name"]))) for answer in answers)
    length = _WIDTH - left - _RIGHT

    def x_of_value(value: float) -> str:
        return f"{left + length * (value - low) / span:.2f}"

    parts = []
    for index, answer in enumerate(answers):
        middle = _TOP + _ROW * index + _ROW / 2
        label = f"{answer['estimate']:.4g}  ({answer['low']:.4g} to {answer['high']:.4g})"
        numbers = "".join(f' data-{name.replace("_", "-")}="{answer[name]!r}"' for name in _SHARES)
        parts.append(
            f'<g data-outcome="{_outcome_text(answer["name"])}"{numbers}><title>{_escape_html(label)}</title>'
            f'<text x="{left - 12}" y="{middle + 5}" text-anchor="end">{_outcome_text(_shorten_label(str(answer["name"])))}</text>'
            f"{_interval_line_svg(x_of_value(answer['low']), x_of_value(answer['high']), middle)}"
            f'<circle cx="{x_of_value(answer["estimate"])}" cy="{middle}" r="6" fill="{_EDGE}"/>'
            f'<text x="{_WIDTH - _RIGHT + 14}" y="{middle + 5}" font-size="14">{_escape_html(label)}</text></g>'
        )
    return _TOP + _ROW * len(answers) + 14, parts
