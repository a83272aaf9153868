"""Text tables with a header: commas, as RFC 4180 has it, or semicolons, tabs or bars in their place; UTF-8.

A column has no type of its own (`untyped`), so that no guess about the data decides what a client is called. Which character separates
is read off the header alone: a comma if it holds one outside of quotes, else the one of the others that it holds. A file named .tsv is
separated by tabs. A wrong guess cannot pass unseen: the columns that are asked for would not be there.

A spreadsheet runs a cell that begins with = + - @ (or with a tab or line break before one), and a client or a label can be called so. In the
tables that we write, such a text gets an apostrophe in front, which makes it a text there too; and so does one that has apostrophes before
such a character already, so that no two texts become one and `unguard_text` gives each back. A text that is a number, such as -1, stays as it
is: it runs nothing. Numbers are no texts, and the header is what the caller named the columns.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from discreet._files import translate_read_errors
from discreet._tables._formats import AGREEMENT_FILE
from discreet.errors import DiscreetError, check_columns

_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADER = 1 << 16  # bytes that a header may take
RUN = r"[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"  # the last four: = + - @ in full width
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')


def scan_delimited(name: str, files: Sequence[str], separator: str | None = None) -> pl.LazyFrame:
    """The rows of text tables that are separated alike. `separator`: what their names say it is."""
    separators = {_separator(file, name) if separator is None else separator for file in files}
    if len(separators) > 1:
        raise DiscreetError(f"{name}: its files are not separated by one character; name those that are alike")
    (found,) = separators
    for file in files:
        header = pl.scan_csv([file], has_header=False, infer_schema=False, n_rows=1, glob=False, separator=found)
        titles = header.collect()
        check_columns([title or "" for title in (titles.row(0) if titles.height else ())], name)
    return pl.scan_csv(list(files), infer_schema=False, glob=False, separator=found)


def guard_text(text: pl.Expr) -> pl.Expr:
    """Texts as they stand in a table for people, none of which a spreadsheet runs."""
    runs = text.str.contains(f"^'*{RUN}") & ~text.str.contains(NUMBER)
    return pl.when(runs).then(pl.lit("'") + text).otherwise(text)


def unguard_text(text: pl.Expr) -> pl.Expr:
    """Texts from such a table as they were."""
    return text.str.replace(f"^'('*{RUN})", "${1}")


def agreement_beside(name: str) -> str | None:
    """The agreement that lies in a folder of samples whose files cannot carry it."""
    beside = Path(name) / AGREEMENT_FILE
    if not (os.path.isdir(name) and beside.is_file()):
        return None
    with translate_read_errors(str(beside), "cannot be read"):
        return beside.read_text(encoding="utf-8")


def _separator(file: str, name: str) -> str:
    """The one character that separates the columns of a header; a comma if there is but one column."""
    with open(file, "rb") as opened:
        head = opened.read(_HEADER)
    header = re.split(rb"[\r\n]", _QUOTED.sub(b"", head), maxsplit=1)[0]
    if b"," in header:
        return ","
    found = [one for one in _OTHERS if one.encode() in header]
    if len(found) > 1:
        raise DiscreetError(
            f"{name}: its header holds {' and '.join(_OTHERS[one] for one in found)}, and no comma; it cannot be told what separates its "
            "columns: write it with commas, or put names that hold such characters into quotes"
        )
    return found[0] if found else ","
