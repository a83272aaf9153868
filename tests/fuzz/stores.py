"""Hostile arguments for the stores of collectors: opened, closed, exported, published and served. Requests: `tests.collect.fuzz`."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import discreet as dc
from discreet.agreement import Agreement
from discreet.client import create_collector_key_file
from discreet.collect import close_collection, export, open_store, publish, service
from discreet.collect._counting import Arrival, text_digest
from discreet.survey import Survey, SurveySampler, shares
from tests.fuzz.chooser import Chooser
from tests.fuzz.estimates import hostile_confidence

AGREED = [
    Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), rounds=2),
    Agreement.of(dc.ReportSampler(dc.Simplex(3), epsilon=1.0)),
    Agreement.of(SurveySampler(Survey({"a": 3}, [shares("a")]), epsilon=1.0)),
]
TEXTS: list[Any] = ["", "x", "token-of-a-client-0123456789abcdef", "\x00", "é", None, 3, b"x", []]


def _open(c: Chooser, folder: Path) -> Any:
    """A store of one or two agreements with a few samples, mostly."""
    name = "store.db" if c.below(8) else c.among(["nowhere/store.db", ".", "text", "\x00"])
    (folder / "text").write_text("no store")
    where = (
        str(folder / name)
        if c.below(16)
        else c.among([3, None, b"x", "", "postgresql://[", "mysql://x/y", folder / "store.db"])
    )
    create, seal = (
        (True, None)
        if c.below(4)
        else (c.among([True, False, None, 3]), c.among([None, None, folder / "text", 3, folder / "none"]))
    )
    store = open_store(where, create=create, seal=seal)
    agreed = c.among(AGREED)
    store.add(agreed)
    if c.below(4):
        arrivals = [Arrival(text_digest(str(n)), text_digest("key"), c.below(3)) for n in range(c.below(5))]
        with contextlib.suppress(dc.DiscreetError):  # 0 is no report on a survey
            store.count_arrivals(agreed.id, 1, arrivals, "2026-01-01")
    return store


def stores(c: Chooser) -> Any:
    """One store, and something that is asked of it or of what is none."""
    what = c.below(5)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as closing:
        folder = Path(name)
        opened = _open(c, folder)
        closing.callback(opened.close)
        held = opened.agreements()[0].agreement.id
        store: Any = opened if c.below(16) else c.among([None, 3, folder, "store.db"])
        agreement = c.among([None, None, held, held[:12], held[:3], "x" * 64, *TEXTS])
        number = c.among([1, 1, 2, 0, c.number()])
        if what == 0:
            kept, day = close_collection(store, agreement=agreement)
            assert close_collection(store, agreement=kept.agreement.id)[1] == kept.closed == day
            return day
        if what == 1:
            out = folder / c.among(
                ["out.csv", "out.parquet", "out.arrow", "out.x", "store.db", "text", "nowhere/out.csv", "\x00.csv"]
            )
            made = export(
                store,
                out if c.below(16) else c.among([None, 3, b"x", []]),
                agreement=agreement,
                round=number,
                replace=c.among([False, True, None]),
            )
            assert out.exists()
            return made.samples
        if what == 2:
            if c.below(8):
                close_collection(opened)
            out = folder / c.among(["result", "result", "result", "text", "nowhere/result", "\x00"])
            published = publish(
                store,
                out if c.below(16) else c.among([None, 3, b"x", []]),
                agreement=agreement,
                round=number,
                confidence=hostile_confidence(c),
            )
            assert (out / "index.html").exists()
            return published.samples
        if what == 3:
            create_collector_key_file(str(folder / "key"))
            rounds: Any = c.among([(1,), (1, 2), (), (0,), None, 3, ["1"], (c.number(),)])
            tokens: Any = c.among([None, None, ["a" * 40], [c.among(TEXTS)], "x", 3, ["a" * 40, "a" * 40]])
            gateways: Any = c.among([None, None, ["b" * 40], ["a" * 40], [c.among(TEXTS)], 3])
            origins = c.among([(), (), ["https://example.org"], ["*"], "x", 3, [c.among(TEXTS)]])
            hosts = c.among([None, None, ["localhost"], [], "x", 3, [c.among(TEXTS)]])
            key = c.among([None, None, folder / "key", folder / "none", *TEXTS])
            addresses = c.among([(), ["https://example.org"], ["x"], 3, "x", [c.among(TEXTS)]])
            patience = c.among([1.0, 1.0, c.number()])
            app = service(
                store, rounds=rounds, tokens=tokens, gateways=gateways, hosts=hosts, origins=origins, key=key, addresses=addresses,
                patience=patience, replace_key=c.among([False, True, None]),
            )  # fmt: skip
            assert callable(app)
            return None
        again = open_store(opened.file if hasattr(opened, "file") else folder / "store.db", create=False)
        closing.callback(again.close)
        return [each.agreement.id for each in again.agreements()]
