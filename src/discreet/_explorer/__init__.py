"""One page on which a person moves a client's bars and the budget, and sees what privacy costs: self-contained, without a network.

The page is a file of ours with a style and a script in it that `clients/js` builds (`make client`) and the bundled flights. It may load
nothing from anywhere: its own policy says so. Every number on it is that of the library (`tests/explorer`).
"""

import json
from importlib import resources

from discreet._explorer._serving import Explorer
from discreet.data import zone_logbooks

__all__ = ["Explorer", "page"]


def page() -> str:
    """The page, with everything it needs in it.

    Returns:
        HTML.
    """
    files = resources.files(__name__)
    text, style, script = (
        (files / name).read_text(encoding="utf-8").strip() for name in ("page.html", "explorer.css", "explorer.js")
    )
    return text.replace("/*STYLE*/", style).replace("/*FLIGHTS*/", _flights()).replace("/*SCRIPT*/", script)


def _flights() -> str:
    """Every aircraft's flights by time zone, as JSON that no tag can end."""
    books = zone_logbooks()
    rows = [
        f"{name}|" + ",".join(f"{place}:{count}" for place, count in enumerate(counts) if count)
        for name, counts in zip(books.clients, books.counts.tolist(), strict=True)
    ]
    text = json.dumps({"zones": books.outcomes, "aircraft": "\n".join(rows)}, separators=(",", ":"))
    return text.replace("<", "\\u003c")
