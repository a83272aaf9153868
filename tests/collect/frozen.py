"""A published result as its readers find it: the numbers of its table, its page and its picture, as they are written there."""

import csv
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from discreet.errors import spell_out_invisible

SHARES = ("estimate", "low", "high", "all_low", "all_high")


class _PageNumbers(HTMLParser):
    """The rows of the page's table: an outcome, how many, and the values of its `data` elements."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[Any]] = []
        self.scripts: list[str] = []
        self.statistics: list[float] = []
        self._after = False
        self._in: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" or any(name.startswith("on") for name in given):
            self.scripts.append(tag)
        if tag == "th" and given.get("scope") == "row":
            self.rows.append([""])
        if tag == "data":
            (self.statistics if self._after else self.rows[-1]).append(float(given["value"] or ""))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = None
        self._after |= tag == "tbody"

    def handle_data(self, data: str) -> None:
        if self._in == "bdi" and self.rows:
            self.rows[-1][0] += data
        if self._in == "td" and self.rows and len(self.rows[-1]) == 1:
            self.rows[-1].append(int(data.replace(",", "")))


def expected_rows(estimate: Any) -> list[list[Any]]:
    """A row for each outcome of an estimate, as `discreet estimate --json` prints it."""
    released = "reports" if "reports" in estimate else "samples"
    return [
        [share["outcome"], share[released], *(share["law"][name] for name in SHARES)] for share in estimate["shares"]
    ]


def table_rows(folder: Path) -> list[list[Any]]:
    """The rows of estimate.csv."""
    with (folder / "estimate.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [[row[0], int(row[1]), *map(float, row[2:])] for row in rows]


def page_rows(folder: Path) -> list[list[Any]]:
    """The rows of the table in index.html, which has no scripts, and the statistics of estimate.json."""
    found = _PageNumbers()
    found.feed((folder / "index.html").read_text(encoding="utf-8"))
    assert found.scripts == []
    stated = json.loads((folder / "estimate.json").read_text(encoding="utf-8"))["statistics"]
    assert found.statistics == [each[name] for each in stated for name in SHARES[:3]]
    return found.rows


def _shown(rows: list[list[Any]]) -> list[list[Any]]:
    """The same with outcomes as people read them."""
    return [[spell_out_invisible(str(row[0])) or "(empty)", *row[1:]] for row in rows]


def picture_rows(folder: Path) -> list[list[Any]]:
    """The outcomes that picture.svg draws, with their numbers."""
    root = ElementTree.parse(folder / "picture.svg").getroot()
    rows = []
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        many = group.get("data-samples") or group.get("data-reports") or ""
        numbers = [float(group.get(f"data-{name.replace('_', '-')}") or "") for name in SHARES]
        rows.append([group.get("data-outcome"), int(many), *numbers])
    return rows


def check_published(folder: Path, estimate: Any, *, ordered: bool = False) -> None:
    """Page, table and picture hold the numbers of an estimate, to the last digit: the largest first, or in their order."""
    rows = expected_rows(estimate)
    assert rows
    assert table_rows(folder) == [[str(row[0]), *row[1:]] for row in rows]
    stated = json.loads((folder / "estimate.json").read_text(encoding="utf-8"))
    assert {name: stated[name] for name in estimate} == estimate
    largest = _shown(rows if ordered else sorted(rows, key=lambda row: -row[2]))
    assert page_rows(folder) == largest[:100]
    assert picture_rows(folder) == (largest if ordered else largest[:30])
    page = (folder / "index.html").read_bytes()
    assert len(page) < 100_000
    assert b"://" not in page
