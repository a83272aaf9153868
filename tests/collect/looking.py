"""Somebody who reads what a store leaves behind, to learn who said what: pages, dead rows and logs, at one moment or at many.

Each of these gives *versions* of a store: who had spoken, and how often each outcome had been said as far as that can be read. Two
versions between which one client spoke, and one outcome more was said, tell what that client said.
"""

import shutil
import sqlite3
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from discreet.collect._counting import Seal
from discreet.errors import StoreError

_WAL_HEAD, _FRAME_HEAD = 32, 24


@dataclass(frozen=True)
class Version:
    """A store at one moment."""

    spoken: frozenset[bytes]
    said: Counter[int]


def learnt(versions: Iterable[Version]) -> dict[bytes, int]:
    """What clients said, as differences between versions tell it."""
    found = {}
    for before, after in pairwise(versions):
        clients, outcomes = after.spoken - before.spoken, after.said - before.said
        if len(clients) == 1 and outcomes.total() == 1 and not before.said - after.said:
            (found[next(iter(clients))],) = outcomes
    return found


def smallest_change(versions: Iterable[Version]) -> int:
    """By how many outcomes two versions differ at least, of those that differ."""
    changes = [(after.said - before.said).total() for before, after in pairwise(versions) if before.said != after.said]
    return min(changes, default=0)


def waiting(content: bytes) -> Counter[int]:
    """The outcomes in a pool; none where it is sealed, since whoever looks does not hold the key."""
    try:
        return Counter(outcome for outcomes in Seal().decode_pool(content).values() for outcome in outcomes)
    except StoreError:
        return Counter()


def sqlite_version(path: Path) -> Version:
    """What the tables of a file say; a copy is read, so that nothing is changed by looking."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        for end in ("", "-wal"):
            if Path(f"{path}{end}").exists():
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        with closing(sqlite3.connect(copy)) as database:
            spoken = frozenset(client for (client,) in database.execute("SELECT client FROM spoken"))
            said = Counter(dict(database.execute("SELECT outcome, n FROM counted")))
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'pool'").fetchone():
                for (content,) in database.execute("SELECT content FROM pool"):
                    said += waiting(content)
    return Version(spoken, said)


def logged_versions(path: Path) -> list[Version]:
    """Every version that a file and its log hold at one moment: the file with the log up to each of its commits.

    Frames of an earlier turn of the log, whose content is in the file already, count too: the bytes are there.
    """
    log = Path(f"{path}-wal").read_bytes() if Path(f"{path}-wal").exists() else b""
    file = bytearray(path.read_bytes())
    size = struct.unpack(">H", file[16:18])[0] or 65536
    pages: dict[int, bytes] = {}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for at in range(_WAL_HEAD, len(log) - _FRAME_HEAD - size + 1, _FRAME_HEAD + size):
            number, commit = struct.unpack(">II", log[at : at + 8])
            pages[number] = log[at + _FRAME_HEAD : at + _FRAME_HEAD + size]
            if commit:
                content = bytearray(file)
                content.extend(bytes(max(0, commit * size - len(content))))
                for place, page in pages.items():
                    content[(place - 1) * size : place * size] = page
                content[18:20] = b"\x01\x01"  # as a file without a log
                content[28:32] = struct.pack(">I", max(commit, len(file) // size))
                copy = Path(folder) / "version.db"
                copy.write_bytes(content)
                found.append(sqlite_version(copy))
    return [*found, sqlite_version(path)]


def postgres_version(database: psycopg.Connection[Any]) -> Version:
    """What the tables say to whoever may select from them."""
    spoken = frozenset(client for (client,) in database.execute("SELECT client FROM discreet_spoken"))
    said: Counter[int] = Counter()
    for block, content in database.execute("SELECT block, counts FROM discreet_counted"):
        said += _block(block, content)
    for (content,) in database.execute("SELECT content FROM discreet_pool"):
        said += waiting(content)
    return Version(spoken, said)


def dead_versions(database: psycopg.Connection[Any]) -> list[Version]:
    """Every version that the pages of the tables hold at one moment, dead rows too, in the order of the transactions that wrote them."""
    rows = {name: _rows(database, f"discreet_{name}") for name in ("spoken", "counted", "pool")}
    order = sorted({transaction for found in rows.values() for transaction, _ in found})
    spoken: set[bytes] = set()
    blocks: dict[tuple[bytes, ...], Counter[int]] = {}
    pools: dict[bytes, Counter[int]] = {}
    found = []
    for now in order:
        spoken |= {_content(row[2]) for transaction, row in rows["spoken"] if transaction == now}
        for transaction, row in rows["counted"]:
            if transaction == now:
                blocks[tuple(row[:4])] = _block(int.from_bytes(row[2], "little"), _content(row[4]))
        for transaction, row in rows["pool"]:
            if transaction == now:
                pools[row[0]] = waiting(_content(row[1]))
        found.append(Version(frozenset(spoken), sum((*blocks.values(), *pools.values()), Counter[int]())))
    return found


def _rows(database: psycopg.Connection[Any], table: str) -> list[tuple[int, list[bytes]]]:
    """All versions of the rows of a table, with the transaction that wrote each."""
    pages = database.execute("SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int", (table,))
    (many,) = pages.fetchone() or (0,)
    found = []
    for number in range(many):
        items = database.execute(
            "SELECT t_xmin::text::bigint, public.tuple_data_split(%s::regclass, t_data, t_infomask, t_infomask2, t_bits) "
            "FROM public.heap_page_items(public.get_raw_page(%s, %s)) WHERE t_data IS NOT NULL",
            (table, table, number),
        )
        found += [(transaction, list(attributes)) for transaction, attributes in items]
    return found


def _content(value: bytes) -> bytes:
    """Bytes without the length that stands before them: in one byte or in four."""
    return value[1:] if value[0] & 1 else value[4:]


def _block(number: int, content: bytes) -> Counter[int]:
    counts = np.frombuffer(content, dtype="<i8")
    return Counter({128 * number + place: many for place, many in enumerate(counts.tolist()) if many})
