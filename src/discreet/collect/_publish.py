"""`close_collection` and `publish`: the end of a collection, and its result as a folder that does not change any more.

A closed collection counts nothing more, so its counts, and all that is computed from them, stay as they are. `publish` writes the estimate
as the service shows it (`estimate.json`), as a table (`estimate.csv`), as a picture (`picture.svg`) and as a page (`index.html`) without
scripts, beside the agreement. Each holds every number to its last digit, the one that `discreet estimate` prints. Publishing twice gives the
same bytes.

`estimate_counts` hides the estimates of fewer samples than the store says: from the service, from `export` and from here.
"""

import csv
import html
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import check_apart, error_reason
from discreet._base.showing import pluralise
from discreet.agreement import Agreement, ContinuousTerms
from discreet.collect._store import Store, StoredAgreement, check_store, choose_agreement, today
from discreet.errors import DiscreetError, Range, check_path, visible
from discreet.estimation import (
    Estimate,
    Population,
    ReportedPopulation,
    coding_and_sampler,
    notes,
    population,
    record,
    reported_population,
)
from discreet.mechanisms import AnyFamily, ReportCounts, ReportSampler, Sampler

AnySampler = Sampler[AnyFamily] | ReportSampler
_CONFIDENCE = Range(0.0, 1.0, low_open=True, high_open=True)
_LISTED = 100  # outcomes in the table of the page: the largest, or the first of those that have an order
_DRAWN = 30  # rows of a picture
_UNBROKEN = "\u00a0%"  # which stays in one line with its number
_READABLE = 20.0  # of epsilon
_SHARES = ("estimate", "low", "high", "all_low", "all_high")


@dataclass(frozen=True)
class PublishedResult:
    """What was published: how many samples, or reports, of a round under an agreement, and where."""

    agreement: Agreement
    round: int
    samples: int
    closed: str
    folder: Path
    what: str = "sample"


def close_collection(store: Store, *, agreement: str | None = None) -> tuple[StoredAgreement, str]:
    """Close a collection for good: nothing is counted in it any more.

    Args:
        store: from `open_store`.
        agreement: the id of any agreement of the collection, or 12 or more of its first digits; by default the only collection of the store.

    Returns:
        The agreement, and the day (UTC) on which its collection was closed: today, or the earlier day on which it was.

    Raises:
        DiscreetError: for an agreement that is not there, and a store of several collections of which none is named.
    """
    check_store(store)
    kept = store.agreements()
    found = choose_agreement(kept, agreement)
    several = {each.collection for each in kept}
    if agreement is None and len(several) > 1:
        raise DiscreetError(
            f"the store keeps {len(several)} collections, and closing is for good; name an agreement of one: --agreement ID"
        )
    return found, store.close_collection(found.agreement.id, today())


def publish(
    store: Store,
    folder: str | Path,
    *,
    agreement: str | None = None,
    round: int = 1,
    confidence: float = 0.95,
) -> PublishedResult:
    """Write the result of a closed collection to a new folder: page, table, picture, estimate and agreement.

    Args:
        store: from `open_store`.
        folder: a new folder; it appears whole or not at all.
        agreement: its id, or 12 or more of its first digits; by default the newest.
        round: the round to publish.
        confidence: of the intervals.

    Returns:
        What was published.

    Raises:
        DiscreetError: for a collection that is open or has too few samples, and a folder that exists or cannot be written.
    """
    check_store(store)
    check_path("folder", folder)
    _CONFIDENCE.check("confidence", confidence)
    kept = choose_agreement(store.agreements(), agreement)
    agreed = kept.agreement
    number = agreed.check_round(round)
    if kept.closed is None:
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is still collected, and a result that is published must not change; close it first: discreet close"
        )
    where = getattr(store, "path", None)
    check_apart(folder, {"store": where})
    if os.path.lexists(folder):
        raise DiscreetError(f"folder = {str(folder)!r} exists; name a new one")
    sampler: AnySampler = agreed.report_sampler() if agreed.blocks is not None else coding_and_sampler(agreed)[1]
    counts = store.counts(agreed.id, number)
    samples = count_samples(sampler, counts)
    check_enough(kept, number, samples)
    found = {
        **estimate_counts(kept, sampler, counts, confidence),
        "round": number,
        "days": store.by_day(agreed.id, number),
        "closed": kept.closed,
    }
    ordered = _has_order(agreed)
    files = {
        "index.html": _page(agreed, found, _question_notes(kept.questions), ordered=ordered),
        "estimate.csv": _table(found),
        "estimate.json": json.dumps(found, allow_nan=False, indent=1) + "\n",
        "picture.svg": _picture(agreed, found, ordered=ordered),
    }
    if kept.questions is not None:
        files["questions.json"] = kept.questions
    _write_folder(Path(folder), files, agreed)
    return PublishedResult(agreed, number, samples, kept.closed, Path(folder), _release_kind(found)[:-1])


def count_samples(sampler: AnySampler, counts: NDArray[np.int64]) -> int:
    """How many samples, or reports, were counted."""
    if isinstance(sampler, ReportSampler):
        return ReportCounts.from_table(sampler, counts).reports if counts.any() else 0
    return int(counts.sum())


def check_enough(kept: StoredAgreement, round: int, samples: int) -> None:
    """Raise an error for a round without samples, or with fewer than are estimated from."""
    what = "sample" if kept.agreement.blocks is None else "report"
    of = f"agreement {kept.agreement.id} has"
    if not samples:
        raise DiscreetError(f"{of} no {what}s in round {round}; there is nothing to export")
    if samples < kept.least:
        raise DiscreetError(
            f"{of} {pluralise(samples, what)} in round {round}, and estimates of fewer than {kept.least:,} are hidden; "
            "wait for more, or choose another number: discreet collect --least N"
        )


def estimate_counts(
    kept: StoredAgreement, sampler: AnySampler, counts: NDArray[np.int64], confidence: float
) -> dict[str, Any]:
    """The estimate as `discreet estimate --json` prints it; without estimates where samples are missing, or too few to be shown."""
    agreed = kept.agreement
    samples = count_samples(sampler, counts)
    if samples and samples >= kept.least:
        found: Population | ReportedPopulation
        if isinstance(sampler, ReportSampler):
            counted = ReportCounts.from_table(sampler, counts)
            found = reported_population(sampler, counts=counted, confidence=confidence)
        else:
            found = population(sampler, counts=counts, confidence=confidence)
        return record(found, agreed, notes(found, agreed), statistics=_statistics(found))
    what = "reports" if isinstance(sampler, ReportSampler) else "samples"
    hidden = {"least": kept.least} if kept.least > 1 else {}
    said = f"estimates are shown from {kept.least:,} {what} on" if hidden else f"there are no {what} yet"
    return {
        what: samples,
        "agreement": agreed.id,
        "mechanism": agreed.mechanism,
        "epsilon": agreed.epsilon,
        "confidence": confidence,
        "shares": [],
        "statistics": [],
        "notes": [said],
        **hidden,
    }


def _statistics(found: Population | ReportedPopulation) -> list[Estimate]:
    """Mean and median, where outcomes are numbers and the average client is identifiable."""
    if found.domain.values is None or not found.exact:
        return []
    return [found.statistic(name) for name in ("mean", "median")]


def _has_order(agreed: Agreement) -> bool:
    """Whether outcomes lie in an order that a picture should keep: numbers, cells and bins do, labels do not."""
    return isinstance(agreed.family, ContinuousTerms) or agreed.domain.labels is None


def _write_folder(folder: Path, files: Mapping[str, str], agreed: Agreement) -> None:
    """The files in a new folder, all of them or none."""
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise DiscreetError(f"folder {str(folder)!r} cannot be made: {error_reason(error)}") from None
    try:
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        agreed.write(partial / "agreement.json")
        partial.chmod(0o755)
        partial.rename(folder)
    except OSError as error:
        raise DiscreetError(f"folder {str(folder)!r} cannot be written: {error_reason(error)}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _release_kind(found: Mapping[str, Any]) -> str:
    return "reports" if "reports" in found else "samples"


def _table(found: Mapping[str, Any]) -> str:
    """A row for each outcome, with all digits."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    released = _release_kind(found)
    rows.writerow(["outcome", released, *_SHARES])
    for share in found["shares"]:
        rows.writerow([share["outcome"], share[released], *(share["law"][name] for name in _SHARES)])
    return text.getvalue()


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %".replace("-", "−")


def _escape_text(text: str) -> str:
    return html.escape(visible(text), quote=True)


def _label(outcome: Any) -> str:
    """An outcome as people read it: what would be invisible is spelt out."""
    return _escape_text(str(outcome)) or "(empty)"


def _number(value: float) -> str:
    """A share as people read it, and to all its digits for programs."""
    return f'<data value="{value!r}">{_percent(value)}</data>'.replace(" %", _UNBROKEN)


def _value(value: float) -> str:
    """A statistic likewise, in the unit of the outcomes."""
    return f'<data value="{value!r}">{value:.4g}</data>'


def _shown_places(shares: Sequence[Any], most: int, *, ordered: bool) -> list[int]:
    """The outcomes that are shown: in their order, or the largest first."""
    if ordered:
        return list(range(min(most, len(shares))))
    return sorted(range(len(shares)), key=lambda place: (-shares[place]["law"]["estimate"], place))[:most]


def _question_notes(questions: str | None) -> list[tuple[str, str]]:
    """What was asked in words, and what answers count as: (heading, sentence)."""
    if questions is None:
        return []
    asked = json.loads(questions)
    told = [("Question", " ".join(asked[name] for name in ("title", "text") if name in asked))]
    if asked.get("choice") == "multiple":
        told.append(("Several options", "Whoever chose several options counts for each of them in equal parts."))
    if asked.get("prefer_not_to_say") is True:
        told.append(
            (
                "Preferred not to say",
                "Whoever preferred not to say counts for every option, in the proportions of the public reference (in equal parts, where "
                "none was agreed on). Nobody can tell how many did.",
            )
        )
    return told


def _page(agreed: Agreement, found: Mapping[str, Any], asked: list[tuple[str, str]], *, ordered: bool) -> str:
    """The page: no script, nothing from elsewhere. `asked`: what was asked in words."""
    released = _release_kind(found)
    shares, confidence = found["shares"], f"{100 * found['confidence']:g} %"
    title = _escape_text(agreed.purpose) if agreed.purpose else f"What these {released} tell"
    shown = _shown_places(shares, _LISTED, ordered=ordered)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{_label(share["outcome"])}</bdi></th><td>{share[released]:,}</td>'
        f"<td>{_number(share['law']['estimate'])}</td>"
        f"<td>{_number(share['law']['low'])} to {_number(share['law']['high'])}</td>"
        f"<td>{_number(share['law']['all_low'])} to {_number(share['law']['all_high'])}</td></tr>"
        for share in (shares[place] for place in shown)
    )
    rest = len(shares) - len(shown)
    meaning = (
        "A share is that of the average person, with the noise of privacy taken off again. It is not biased, and may so fall below 0 or "
        "above 100 % by chance."
        if found["identifiable"]
        else f"A share is that among the {released}. The average person's own share cannot be told exactly from them: an interval holds "
        "every share that could have given them."
    )
    told = [
        *asked,
        (
            "How private",
            f"Each {released[:-1]} costs {_promise(agreed)}.",
        ),
        (
            "What liars can do",
            f"Whoever sent something else than an honest {released[:-1]} moved a share by at most {_percent_up(found['liars']['one'])}.",
        ),
        *(("Note", f"{note[:1].upper()}{note[1:]}.") for note in found["notes"]),
        ("Agreement", f"{agreed.id}, round {found['round']}."),
    ]
    listed = "\n".join(f"<dt>{_escape_text(name)}</dt><dd>{_escape_text(said)}</dd>" for name, said in told)
    statistics = "".join(
        f"<dt>{_escape_text(each['name'].capitalize())}</dt><dd>{_value(each['estimate'])}; from {_value(each['low'])} to "
        f"{_value(each['high'])}, {confidence} sure</dd>\n"
        for each in found["statistics"]
    )
    template = Template((resources.files(__package__) / "pages" / "published.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=title,
        many=pluralise(found[released], released[:-1]),
        closed=found["closed"],
        picture=_picture_told(found, ordered=ordered),
        meaning=meaning.replace(" %", _UNBROKEN),
        confidence=confidence.replace(" %", _UNBROKEN),
        named="Reports that name it" if released == "reports" else "Samples",
        rows=rows,
        more=f'<p>{rest:,} more outcomes are in <a href="estimate.csv">estimate.csv</a>.</p>' if rest else "",
        statistics=f"<dl>\n{statistics}</dl>" if statistics else "",
        listed=listed,
    )


def _promise(agreed: Agreement) -> str:
    """What one release may reveal: odds are bounded by pure epsilon, and named where e^epsilon is a number that people read."""
    if agreed.privacy is not None:
        return f"{agreed.privacy} (pure epsilon = {agreed.epsilon:g})"
    if agreed.epsilon > _READABLE:
        return f"epsilon = {agreed.epsilon:g}, which is hardly any privacy"
    factor = math.exp(agreed.epsilon)
    scale = 10.0 ** (2 - math.floor(math.log10(factor)))
    most = f"{math.ceil(factor * scale) / scale:.10g}"  # three digits, rounded up
    return f"epsilon = {agreed.epsilon:g}: it moves odds about its person by a factor of at most {most}"


def _percent_up(share: float) -> str:
    """A percentage in three digits, rounded up."""
    scale = 10.0 ** (2 - math.floor(math.log10(100 * share))) if share > 0 else 1.0
    return f"{min(100.0, math.ceil(100 * share * scale) / scale):.10g} %"


def _picture_told(found: Mapping[str, Any], *, ordered: bool) -> str:
    shares = found["shares"]
    largest = max(shares, key=lambda share: share["law"]["estimate"])
    kind = "A histogram" if ordered else "Bars with intervals"
    return _escape_text(
        f"{kind} of {pluralise(len(shares), 'outcome')}; the largest is {largest['outcome']}, {_percent(largest['law']['estimate'])}."
    )


_WIDTH, _ROW, _RIGHT, _TOP = 900, 34, 240, 40
_LONGEST_NAME = 24  # characters
_COLUMNS_HEIGHT, _AXIS_LEFT, _BOTTOM = 380, 80, 60
_BAR, _EDGE, _INK, _GRID = "#8fb3d9", "#0b5ea8", "#1b2430", "#dfe3e8"


def _axis(shares: Sequence[Any]) -> tuple[float, float]:
    """The end of an axis that holds all intervals between 0 and 1, and a step in round numbers."""
    most = min(1.0, max((max(share["law"]["high"], share["law"]["estimate"]) for share in shares), default=1.0))
    rough = max(most, 1e-6) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough)
    return min(1.0, step * math.ceil(most / step - 1e-9)), step


def _within(share: float, top: float) -> float:
    return min(max(share, 0.0), top)


def _group(share: Mapping[str, Any], released: str, *parts: str) -> str:
    """The parts of an outcome, with its numbers to all their digits."""
    law = share["law"]
    numbers = "".join(f' data-{name.replace("_", "-")}="{law[name]!r}"' for name in _SHARES)
    said = f"{share['outcome']}: {_percent(law['estimate'])}, {_percent(law['low'])} to {_percent(law['high'])}"
    head = f'<g data-outcome="{_label(share["outcome"])}" data-{released}="{share[released]}"{numbers}>'
    return f"{head}<title>{_escape_text(said)}</title>{''.join(parts)}</g>"


def _picture(agreed: Agreement, found: Mapping[str, Any], *, ordered: bool) -> str:
    """Bars with intervals: a row for each of the largest outcomes, or a column for each of those that have an order."""
    shares, released = found["shares"], _release_kind(found)
    drawn = _columns(shares, released) if ordered else _rows(shares, released)
    height, parts = drawn
    told = _picture_told(found, ordered=ordered)
    title = _escape_text(agreed.purpose or f"What these {released} tell")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{told}" font-family="system-ui, sans-serif" font-size="15" fill="{_INK}">\n<title>{title}</title>\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _shorten_label(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _rows(shares: Sequence[Any], released: str) -> tuple[int, list[str]]:
    shown = [shares[place] for place in _shown_places(shares, _DRAWN, ordered=False)]
    top, step = _axis(shown)
    names = [_shorten_label(str(share["outcome"])) for share in shown]
    left = 30 + 9 * max(map(len, names))
    length = _WIDTH - left - _RIGHT
    end = _TOP + _ROW * len(shown)

    def x(share: float) -> str:
        return f"{left + length * _within(share, top) / top:.2f}"

    parts = [
        f'<path d="M{x(tick)} {_TOP - 6}V{end}" stroke="{_GRID}"/><text x="{x(tick)}" y="{_TOP - 14}" text-anchor="middle" font-size="13">'
        f"{100 * tick:.6g} %</text>"
        for tick in np.arange(0.0, top + step / 2, step).tolist()
    ]
    for place, (share, name) in enumerate(zip(shown, names, strict=True)):
        law, y = share["law"], _TOP + _ROW * place
        middle = y + _ROW / 2
        told = f"{_percent(law['estimate'])}  ({_percent(law['low'])} to {_percent(law['high'])})"
        bar = float(x(law["estimate"])) - left
        parts.append(
            _group(
                share,
                released,
                f'<text x="{left - 12}" y="{middle + 5}" text-anchor="end">{_label(name)}</text>',
                f'<rect x="{left}" y="{y + 7}" width="{bar:.2f}" height="{_ROW - 14}" fill="{_BAR}"/>',
                f'<path d="M{x(law["estimate"])} {y + 7}v{_ROW - 14}" stroke="{_EDGE}" stroke-width="3"/>',
                f'<path d="M{x(law["low"])} {middle}H{x(law["high"])}M{x(law["low"])} {middle - 6}v12M{x(law["high"])} {middle - 6}v12" '
                f'stroke="{_INK}" stroke-width="2" fill="none"/>',
                f'<text x="{_WIDTH - _RIGHT + 14}" y="{middle + 5}" font-size="14">{told}</text>',
            )
        )
    others = len(shares) - len(shown)
    if others:
        parts.append(
            f'<text x="{left}" y="{end + 24}" font-size="13">{others:,} smaller ones are in estimate.csv.</text>'
        )
    return end + (40 if others else 14), parts


def _columns(shares: Sequence[Any], released: str) -> tuple[int, list[str]]:
    top, step = _axis(shares)
    height, length = _COLUMNS_HEIGHT - _BOTTOM - _TOP, _WIDTH - _AXIS_LEFT - 20
    each = length / len(shares)

    def y(share: float) -> str:
        return f"{_TOP + height * (1 - _within(share, top) / top):.2f}"

    parts = [
        f'<path d="M{_AXIS_LEFT} {y(tick)}H{_WIDTH - 20}" stroke="{_GRID}"/><text x="{_AXIS_LEFT - 8}" y="{float(y(tick)) + 5:.2f}" '
        f'text-anchor="end" font-size="13">{100 * tick:.6g} %</text>'
        for tick in np.arange(0.0, top + step / 2, step).tolist()
    ]
    named = max(1, math.ceil(len(shares) * 9 * max(len(str(share["outcome"])) for share in shares) / length))
    for place, share in enumerate(shares):
        law, x = share["law"], _AXIS_LEFT + each * place
        middle, cap = x + each / 2, min(each / 4, 6)
        column = [
            f'<rect x="{x + each / 10:.2f}" y="{y(law["estimate"])}" width="{each * 0.8:.2f}" '
            f'height="{float(y(0.0)) - float(y(law["estimate"])):.2f}" fill="{_BAR}"/>',
            f'<path d="M{middle:.2f} {y(law["low"])}V{y(law["high"])}M{middle - cap:.2f} {y(law["low"])}h{2 * cap:.2f}'
            f'M{middle - cap:.2f} {y(law["high"])}h{2 * cap:.2f}" stroke="{_INK}" stroke-width="{min(2, each / 3):.2f}" fill="none"/>',
        ]
        if place % named == 0:
            column.append(
                f'<text x="{middle:.2f}" y="{_COLUMNS_HEIGHT - _BOTTOM + 24}" text-anchor="middle" font-size="13">'
                f"{_label(share['outcome'])}</text>"
            )
        parts.append(_group(share, released, *column))
    return _COLUMNS_HEIGHT - 20, parts
