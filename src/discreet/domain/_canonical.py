"""The canonical JSON text of a value, and its digest, in the form of a document's version.

Version 2 is RFC 8785, the JSON Canonicalization Scheme: UTF-8, no spaces, keys sorted by their UTF-16 code units, and every number the 64-bit
float it stands for, written as ECMAScript writes it. So any language can compute a digest: in a browser `JSON.stringify` writes the numbers
and texts. A whole number that is not a 64-bit float is an error, since it would read back as another there.

Version 1 wrote numbers as Python shows them ("1.0", "1e-05") and whole numbers of any size. Documents of that version are still read, and
keep their digest.
"""

import decimal
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from discreet.errors import DiscreetError

VERSION = 2  # of new documents
_PLAIN_FROM, _PLAIN_TO = -6, 21  # decimal exponents between which ECMAScript writes a number without one


def canonical(value: Any, version: int = VERSION) -> str:
    """The canonical JSON text of a value."""
    try:
        text = _FORMS[version](value)
        text.encode()
    except UnicodeEncodeError:
        raise DiscreetError("an agreement holds texts that can be written in UTF-8 only") from None
    except DiscreetError:
        raise
    except ValueError:
        raise DiscreetError("an agreement holds finite numbers only") from None
    return text


def check_version(version: Any) -> int:
    """Check that the version of a document can be read."""
    if isinstance(version, bool) or not isinstance(version, int) or version not in _FORMS:
        raise DiscreetError(
            f"discreet = {version!r} is not one of the versions {', '.join(map(str, _FORMS))}; upgrade discreet to read it"
        )
    return version


def read_number(digits: str) -> float:
    """A number of a document of version 2: the 64-bit float of its digits.

    It is read like its canonical form, for every spelling: 3.0 and 3e0 have the form 3, and are the whole number.
    """
    held = float(digits)
    if math.isinf(held):
        raise DiscreetError("the agreement holds a number that no 64-bit float does")
    return int(held) if held.is_integer() and abs(held) < 10**_PLAIN_TO else held


def refuse_repeated_fields(what: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """A hook for readers of JSON: objects, and an error for a repeated field, since readers would differ on which one counts."""

    def check_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise DiscreetError(f"{what} gives {repeated!r} twice")
        return found

    return check_fields


def digest(content: bytes) -> str:
    """'sha256:' and the 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _python_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _ecmascript_json(value: Any) -> str:
    return "".join(_json_pieces(value))


def _json_pieces(value: Any) -> Iterator[str]:
    match value:
        case dict():
            before = "{"
            for name in sorted(value, key=_utf16_key):
                yield before + _json_string(name) + ":"
                yield from _json_pieces(value[name])
                before = ","
            yield "}" if value else "{}"
        case list() | tuple():
            before = "["
            for each in value:
                yield before
                yield from _json_pieces(each)
                before = ","
            yield "]" if value else "[]"
        case str():
            yield _json_string(value)
        case bool() | None:
            yield json.dumps(value)
        case _:
            yield _number_text(value)


def _utf16_key(name: str) -> bytes:
    return name.encode("utf-16-be")


def _json_string(text: str) -> str:
    """A JSON string. RFC 8785 and `json` agree: only quotes, backslashes and controls are escaped."""
    return json.dumps(text, ensure_ascii=False)


def _number_text(number: float) -> str:
    """Number::toString of ECMAScript: the shortest digits that read back, plain from 1e-6 to below 1e21."""
    try:
        held = float(number)
    except OverflowError:
        held = float("nan")
    if held != number:
        if isinstance(number, int):
            raise DiscreetError(
                f"{number if abs(number) < 10**30 else 'a number of many digits'} is not a 64-bit float, so not every reader of an "
                "agreement could distinguish it from its neighbours; write it as a text"
            )
        raise ValueError
    sign, digits, exponent = decimal.Decimal(repr(held)).normalize(_DIGITS).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError  # an infinity
    shown = "".join(map(str, digits))
    if shown == "0":
        return "0"
    return ("-" if sign else "") + _decimal_text(shown, len(shown) + exponent)


def _decimal_text(digits: str, point: int) -> str:
    """0.digits times 10^point."""
    if len(digits) <= point <= _PLAIN_TO:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _PLAIN_TO:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_FROM < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


_DIGITS = decimal.Context(prec=40, traps=[])  # independent of the caller's decimal context
_FORMS: dict[int, Callable[[Any], str]] = {1: _python_json, 2: _ecmascript_json}
