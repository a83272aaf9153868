"""Tables as files: which ending means which format, what the first bytes say, and the name that stands for standard input or output.

The first bytes decide between Parquet, Arrow and text, and do not lie; among texts the ending does. A text without one of these endings
is JSON lines if its first line is an object, else CSV.
"""

import json
from pathlib import Path

from discreet.errors import DiscreetError

STANDARD = "-"
WRITTEN = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
TEXTS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json lines", ".ndjson": "json lines", ".json": "json lines"}
READ = {**WRITTEN, ".arrows": "arrow stream", **TEXTS}
IN_FOLDERS = {*READ} - {".json"}  # which is as often a document beside a table
AGREEMENT_FILE = "_agreement.json"  # where a folder of samples holds their agreement, if its files cannot

_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")
_HEAD = 1 << 16  # bytes to look for a first line in


def magic(head: bytes) -> str | None:
    """The format that begins with these bytes; None if it is none of those that say so."""
    return _MAGIC.get(head[:4])


def format_read(path: str, name: str | None = None) -> str:
    """The format of a file that is there. `name`: what messages call it."""
    called = path if name is None else name
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DiscreetError(f"{called} cannot be read: {error.strerror}") from None
    if not head:
        raise DiscreetError(f"{called} is empty")
    if head.startswith(_PACKED):
        raise DiscreetError(f"{called} is packed; unpack it first (Parquet and Arrow files may be compressed inside)")
    suffix, found = Path(path).suffix.lower(), magic(head)
    if found is None:
        declared = READ.get(suffix, "text")
        if declared not in (*TEXTS.values(), "text"):
            raise DiscreetError(f"{called} is called {declared} but holds text")
        return TEXTS.get(suffix) or ("json lines" if _begins_with_an_object(head) else "csv")
    declared = READ.get(suffix, found)
    if declared != found and not {declared, found} <= {"arrow", "arrow stream"}:
        raise DiscreetError(f"{called} is called {declared} but holds {found}")
    return found


def _begins_with_an_object(head: bytes) -> bool:
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    if not line.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):  # ValueError: no JSON, or no UTF-8
        return False
