"""Hostile collectors and hostile arguments for those who take part: one of our errors or a receipt, and never two samples."""

import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import discreet as dc
from discreet.agreement import Agreement
from discreet.client import Client, send_table
from discreet.tables import write_secret
from tests.client.hostile import COUNTED, Reply, hung_up, offering, raw, replies, said, serving
from tests.fuzz.chooser import Chooser

AGREED = Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=1.0))
ODD: list[Any] = [
    None,
    0,
    1,
    -1,
    True,
    "",
    "1",
    "0" * 64,
    AGREED.id,
    [],
    {},
    [1],
    10**30,
    0.5,
    "\x00",
    "\u202e",
    [[[]]],
]


def _mutated(c: Chooser, good: dict[str, Any]) -> bytes:
    """JSON that is nearly right, or bytes."""
    kind = c.below(6)
    if kind == 0:
        return bytes(c.below(256) for _ in range(c.below(20)))
    if kind == 1:
        return json.dumps(c.among(ODD)).encode()
    made = {**good, c.among([*good, "more"]): c.among(ODD)}
    if kind == 2:
        made.pop(c.among(list(made)))
    whole = json.dumps(made).encode()
    return whole[: c.below(len(whole) + 1)] if kind == 3 else whole


def _reply(c: Chooser, good: dict[str, Any]) -> Reply:
    kind = c.below(8)
    if kind == 0:
        return hung_up if c.below(2) else raw(b"HTTP/1.1 " + bytes(c.below(256) for _ in range(c.below(30))))
    if kind < 4:
        return said(200, good)
    return said(c.among([200, 200, 200, 204, 301, 400, 401, 409, 429, 500, 503]), _mutated(c, good))


def collectors(c: Chooser) -> Any:
    """A device or a gateway, and a server of random words."""
    behaviour = replies(
        AGREED,
        collection=_reply(c, offering(AGREED)),
        agreement=_reply(c, json.loads(AGREED.text)),
        samples=_reply(c, COUNTED),
    )
    with tempfile.TemporaryDirectory() as name, serving(behaviour) as server:
        folder = Path(name)
        where = c.text() if c.below(8) == 0 else server.address
        round_number = c.among([None, None, None, 1, 2, c.number()])
        try:
            if c.below(3) == 0:
                write_secret(folder / "secret")
                rows = pl.DataFrame({"who": [1, 1, 2], "what": [0, 1, c.below(4)]})
                return send_table(
                    where,
                    rows,
                    client="who",
                    value="what",
                    secret=folder / "secret",
                    budget=c.among([1.0, 1.0, 1.0, 0.1, None, c.number()]),
                    round=round_number,
                    timeout=60.0,
                    patience=0.0,
                )
            client = Client(
                where,
                ledger=folder / "ledger",
                budget=c.among([1.0, 1.0, 1.0, 0.1, c.number()]),
                token=c.among([None, None, "token", c.text()]),
                timeout=60.0,
                patience=c.among([0.0, 0.0, 0.0, 0.1, None, -1.0, float("nan"), "1"]),
            )
            return client.send(c.law(3), round=round_number).round
        finally:
            told = {each.body for each in server.asked if each.method == "POST"}
            assert len(told) <= 1, "two samples of one client"
