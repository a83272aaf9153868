"""Short displays of objects: one line at a prompt, a small table in a notebook.

A line shows the first few entries of a list and the shape of an array. A table's texts are escaped, and invisible characters are spelled out,
since others write labels and purposes.
"""

import dataclasses
import html
import math
import reprlib
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, TypeVar

import numpy as np

from discreet.errors import spell_out_invisible

_FEW = 6  # entries that are shown
_LONGEST = 60  # characters of a text

_Class = TypeVar("_Class", bound=type)


class _ShortRepr(reprlib.Repr):
    """reprlib with arrays; reprlib itself cuts lists and texts."""

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, np.ndarray):
            return super().repr1(x.tolist(), level) if x.size <= _FEW else f"<array of shape {x.shape}>"
        if isinstance(x, (list, tuple)) and len(x) > _FEW and level < self.maxlevel:
            return f"<{len(x)} entries>"  # within a list that is shown
        return super().repr1(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        return repr(x)  # an own repr is short already


def _make_repr_shortener() -> _ShortRepr:
    cutter = _ShortRepr()
    cutter.maxlist = cutter.maxtuple = cutter.maxset = cutter.maxfrozenset = cutter.maxdict = _FEW
    cutter.maxstring = cutter.maxother = cutter.maxlong = _LONGEST
    return cutter


_CUTTER = _make_repr_shortener()


def short_repr(value: Any) -> str:
    """A value in one short line."""
    return _CUTTER.repr(value)


def with_short_repr(cls: _Class) -> _Class:
    """Give a dataclass a repr of the usual form that shows only the beginning of each field."""

    def one_line_repr(self: Any) -> str:
        fields = (field.name for field in dataclasses.fields(self) if field.repr)
        return f"{cls.__name__}({', '.join(f'{name}={short_repr(getattr(self, name))}' for name in fields)})"

    type.__setattr__(cls, "__repr__", one_line_repr)
    return cls


def pluralise(count: int, noun: str) -> str:
    """ "1 flight", "2 flights"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def confidence_text(confidence: float) -> str:
    """A confidence in percent, with all its digits: rounded, 0.9999999 would be 100 %."""
    percent = Decimal(repr(float(confidence))).scaleb(2).normalize()
    return f"{percent:f} %"


def round_up_to_digits(number: float, digits: int) -> float:
    """A number rounded up to so many significant digits, for what is said to be at most or enough; noise of floats does not count."""
    if not math.isfinite(number):
        return number
    return float(Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(f"{number:.12g}")))


def json_number_or_null(value: float) -> float | None:
    """The number itself, or None (null) if it is infinite: JSON has no infinity."""
    return float(value) if math.isfinite(value) else None


def html_table_for_notebook(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """A title and rows of a name and a value as HTML for a notebook."""
    cells = "".join(
        f'<tr><td style="text-align:left">{_escape_html(name)}</td><td style="text-align:left">{_escape_html(value)}</td></tr>'
        for name, value in rows
    )
    return f"<b>{_escape_html(title)}</b><table>{cells}</table>"


def _escape_html(text: Any) -> str:
    return html.escape(spell_out_invisible(str(text)))
