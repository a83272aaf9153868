"""Errors and warnings, and checks whose messages name the argument, the value, the allowed range and the fix.

A `Range` checks a number and prints itself in the message, so that NaN fails every check: `epsilon = nan is not in (0, inf)`.

Messages quote labels, file names and fields of documents that others wrote. `spell_out_invisible` spells out characters that would move a
cursor, change a colour or turn the direction of writing, so that no text can hide another. Every `DiscreetError` and every line that a
command prints passes through it.
"""

import functools
import inspect
import math
import numbers
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

__all__ = [
    "BudgetError",
    "ClientNameWarning",
    "CollectorError",
    "DiscreetError",
    "ImpossibleError",
    "LargeEpsilonWarning",
    "LedgerError",
    "MissingExtraError",
    "NotPrivateWarning",
    "OutsideBoxWarning",
    "OutsideFamilyError",
    "OutsideFamilyWarning",
    "StoreError",
    "UnresolvedWarning",
    "WideBracketWarning",
]


def spell_out_invisible(text: str, *, keep: str = "") -> str:
    """The text with every invisible character spelled out, as `repr` does: ESC is \\x1b, a line break \\n.

    These are controls, formats (bidirectional overrides among them), surrogates, unassigned characters and all separators but the space.
    `keep`: characters that stay, such as line breaks of our own.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else character.encode("unicode_escape").decode()
        for character in text
    )


class DiscreetError(ValueError):
    """Invalid input. Raised before anything is drawn, charged or written."""

    def __init__(self, message: str = "") -> None:
        super().__init__(spell_out_invisible(message))


class OutsideFamilyError(DiscreetError):
    """A client's distribution is not in the mechanism's family."""


class ImpossibleError(DiscreetError):
    """No epsilon-LDP sampler can meet the request."""


class BudgetError(DiscreetError):
    """The budget does not allow another release. Nothing was charged and no sample left."""


class CollectorError(DiscreetError):
    """A collector cannot be reached, rejects the request, or answers inconsistently. Send again: the ledger has the same sample."""


class StoreError(DiscreetError):
    """A collector's store cannot be reached or written.

    Nothing was changed, or, if the connection was lost at the end, all of it was. Send the same again, under the same keys, and it is counted
    once.
    """


class LedgerError(DiscreetError):
    """The ledger cannot be read or written. No sample left; a charge may stand, and then asking again returns its sample."""


class ClientNameWarning(UserWarning):
    """Clients may have other names than in earlier releases, or not be clients at all. A new name is a new client, with a new budget."""


class NotPrivateWarning(UserWarning):
    """The randomness is reproducible: suitable for experiments, never for a release."""


class OutsideFamilyWarning(UserWarning):
    """A client's distribution is not in the family: its privacy holds, but the bound on its utility does not."""


class OutsideBoxWarning(UserWarning):
    """A law of one's own left its box, or failed: the release keeps its privacy, but follows another law."""


class UnresolvedWarning(UserWarning):
    """Nodes missed some of the mass of a client or of the reference: what is stated about outputs may be off by as much. Privacy holds."""


class LargeEpsilonWarning(UserWarning):
    """epsilon is so large that a release hides almost nothing (perhaps a percentage was typed), or delta is too large."""


class WideBracketWarning(UserWarning):
    """A design was found, but the gap between its value and the certified lower bound is wider than usual."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called into the library, from any depth."""
    package = os.path.dirname(__file__)
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith((package, functools.__file__)):
        level, frame = level + 1, frame.f_back
    warnings.warn(spell_out_invisible(message), category, stacklevel=level)


def is_called_by_user(*through: str) -> bool:
    """Whether the user's own code is the caller, through frames of these rooms of the library only ("mechanisms", ...)."""
    package = os.path.dirname(__file__)
    parts = tuple(os.path.join(package, part) for part in ("errors", os.path.join("_base", "__init__"), *through))
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(parts):
        frame = frame.f_back
    return frame is None or not frame.f_code.co_filename.startswith(package)


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


def raise_missing_extra(extra: str, cause: ImportError) -> NoReturn:
    """Turn a failed optional import into the `pip install` command that fixes it, for a checkout, since the package is on no index."""
    raise MissingExtraError(
        f"{cause.name} is not installed. In a checkout of discreet, install it with: pip install '.[{extra}]'"
    ) from cause


@dataclass(frozen=True)
class Range:
    """An interval of real numbers that checks a value and prints itself."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below  # NaN compares false

    def __str__(self) -> str:
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"

    def check(self, name: str, value: Any, fix: str = "") -> float:
        """Return the value as a float, or raise an error that names it, the range and the fix."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            is_single = hasattr(value, "__float__") and not isinstance(value, bool) and not getattr(value, "ndim", 0)
            plain = "; pass float(...) of it" if is_single else ""  # of a Decimal, a 0-d array, a tensor
            raise DiscreetError(f"{name} = {value!r} is not a number{plain}{_fix_clause(fix)}")
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond every float
            huge: Any = value
            number = math.inf if huge > 0 else -math.inf
        if number not in self:
            text = f"{number:g}"
            rounded = float(text)
            if rounded != number and (rounded in self or rounded in (self.low, self.high)):
                text = repr(number)  # six digits would not show what is wrong
            raise DiscreetError(f"{name} = {text} is not in {self}{_fix_clause(fix)}")
        return number


def _fix_clause(fix: str) -> str:
    return f"; {fix}" if fix else ""


POSITIVE = Range(0.0, math.inf, low_open=True, high_open=True)
NON_NEGATIVE = Range(0.0, math.inf, high_open=True)
LENGTH = Range(1e-100, 1e100)  # lengths whose squares and ratios neither overflow nor vanish
PROBABILITY = Range(0.0, 1.0)
OPEN_UNIT = Range(0.0, 1.0, low_open=True, high_open=True)


def check_kind(name: str, value: Any, kind: type, fix: str) -> None:
    """Raise unless the value is of that kind; the message names the argument, its value, and what to pass."""
    if not isinstance(value, kind):
        raise DiscreetError(f"{name} = {value!r} is not a {kind.__name__}; {fix}")


def check_count(name: str, value: Any, least: int = 1, most: int = 10**18, fix: str = "") -> int:
    """Return the value as an int between `least` and `most`, or raise."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise DiscreetError(f"{name} = {value!r} is not a whole number{_fix_clause(fix)}")
    if value < least:
        raise DiscreetError(f"{name} = {value} is less than {least}{_fix_clause(fix)}")
    if int(value) > most:
        raise DiscreetError(f"{name} is more than {most:,}{_fix_clause(fix)}")
    return int(value)


def check_rational(name: str, value: Any) -> Fraction:
    """Return the value as the fraction that it is exactly, or raise."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DiscreetError(f"{name} = {value!r} is not a number; pass a Fraction")
    try:
        if isinstance(value, numbers.Rational):
            return Fraction(int(value.numerator), int(value.denominator))  # integers of numpy overflow
        return Fraction(float(value))
    except (OverflowError, ValueError):
        raise DiscreetError(f"{name} = {value!r} is not a finite number; pass a Fraction") from None


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless the value is one of these words."""
    words = list(choices)
    if not isinstance(value, str) or value not in words:
        raise DiscreetError(f"{name} = {value!r} is not one of {', '.join(words)}")


def check_flag(name: str, value: Any) -> bool:
    """Return whether the value counts as true, or raise where Python cannot say."""
    try:
        return bool(value)
    except (TypeError, ValueError):  # an array
        raise DiscreetError(f"{name} = {value!r} is neither True nor False") from None


def check_path(name: str, value: Any) -> Path:
    """Return the value as a path; anything but a text or a path is refused."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise DiscreetError(f"{name} = {value!r} is not a path; pass the name of a file, as a text or a Path")
    return Path(value)


def check_list(name: str, value: Any, fix: str) -> list[Any]:
    """Return the members of the value as a list; a single text, and what has no members, is refused."""
    try:
        members = iter(() if isinstance(value, (str, bytes)) else value)
    except TypeError:
        members = None
    if members is None or isinstance(value, (str, bytes)):
        raise DiscreetError(f"{name} = {value!r} is not a list; {fix}")
    return list(members)


def check_texts(name: str, value: Any, fix: str) -> list[str]:
    """Return a list of texts, or raise."""
    members = check_list(name, value, fix)
    for member in members:
        if not isinstance(member, str):
            raise DiscreetError(f"{name} holds {member!r}, which is not a text; {fix}")
    return members


def check_callable(name: str, value: Any, fix: str) -> None:
    """Raise unless the value can be called."""
    if not callable(value):
        raise DiscreetError(f"{name} = {value!r} cannot be called; {fix}")


def refuse_repeated_column_names(names: Sequence[str], where: str, *, shown: bool = True) -> None:
    """Reject a table with two columns of one name, since the name would be ambiguous. `shown`: whether the message may show it."""
    position_by_name: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name and name in position_by_name:
            which = (
                f"column {name!r} comes twice in {where}"
                if shown
                else f"columns {position_by_name[name]} and {position} of {where} have one name"
            )
            raise DiscreetError(f"{which}; rename one of them")
        position_by_name[name] = position
