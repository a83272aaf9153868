"""Text files with one entry on each line: the labels of a domain, or clients."""

import re
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.tables.formats import READ


def read_labels(path: str | Path) -> tuple[str, ...]:
    """The labels in a text file, one on each line. A table is refused: it would publish what it holds as labels."""
    if Path(path).suffix.lower() in READ:
        raise DiscreetError(
            f"domain file {path} is called like a table; a domain is public, a text file with one label on each line"
        )
    return tuple(read_lines(path, "domain", each="a label"))


def read_lines(path: str | Path, what: str, *, each: str) -> list[str]:
    """The lines of a UTF-8 text file, none of them empty."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DiscreetError(f"{what} file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DiscreetError(f"{what} file {path} is not UTF-8 text") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        if not line:
            raise DiscreetError(f"{path}, line {number} is empty; each line is {each}")
    return lines


def is_whole(text: str) -> bool:
    """Whether a text is an integer of 64 bits, written the usual way (so that no two texts mean the same one)."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63
