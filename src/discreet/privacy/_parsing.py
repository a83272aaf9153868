"""A notion of privacy to and from the JSON of an agreement.

A document states the kind of the notion and its numbers. A trade-off function is stated by the corners of its broken line, as rationals
"a/b". So the agreed function is exactly the one that is kept.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from discreet.errors import DiscreetError
from discreet.privacy._functional import Functional
from discreet.privacy._gaussian import Gaussian
from discreet.privacy._notion import Approximate, Privacy

_KINDS = {"approximate": ("epsilon", "delta"), "gaussian": ("nu",), "functional": ("points",)}
_RATIONAL = re.compile("[0-9]{1,400}(/[1-9][0-9]{0,399})?")
MOST_POINTS = 8192


def privacy_document(privacy: Privacy) -> dict[str, Any]:
    """The notion as JSON values; a pure one is an epsilon alone."""
    match privacy:
        case Approximate(epsilon=epsilon, delta=delta) if delta > 0.0:
            return {"kind": "approximate", "epsilon": epsilon, "delta": delta}
        case Gaussian(nu=nu):
            return {"kind": "gaussian", "nu": nu}
        case Functional(corners=corners) if len(corners) <= MOST_POINTS:
            return {"kind": "functional", "points": [[str(x), str(y)] for x, y in corners]}
        case Functional(corners=corners):
            raise DiscreetError(
                f"privacy = {privacy!r} has {len(corners):,} points, more than {MOST_POINTS:,}; state f by a table of fewer"
            )
    raise DiscreetError(
        f"privacy = {privacy!r} cannot be agreed on; agree on epsilon, Approximate(...), Gaussian(...) or Functional(...)"
    )


def read_privacy(fields: Any) -> Privacy:
    """The notion in such values; an error names the invalid part."""
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise DiscreetError(f"privacy = {fields!r} is not an object whose kind is one of {', '.join(_KINDS)}")
    names = _KINDS[kind]
    if set(fields) != {"kind", *names}:
        raise DiscreetError(
            f"privacy of kind {kind!r} has the fields {', '.join(('kind', *names))}, not {', '.join(fields)}"
        )
    numbers = {name: fields[name] for name in names}
    found: Privacy
    if kind == "functional":
        found = Functional(_read_corners(fields["points"]))
    else:
        found = Gaussian(**numbers) if kind == "gaussian" else Approximate(**numbers)
    if privacy_document(found) != fields:
        raise DiscreetError(
            f"privacy of kind {kind!r} does not state its numbers as discreet writes them; write {privacy_document(found)!r}"
        )
    return found


def _read_corners(listed: Any) -> list[tuple[Fraction, Fraction]]:
    """The corners in a document."""
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_POINTS:
        raise DiscreetError(f"privacy.points is not a list of 2 to {MOST_POINTS:,} pairs of rationals")
    for pair in listed:
        if not (
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(one, str) and _RATIONAL.fullmatch(one) for one in pair)
        ):
            raise DiscreetError(
                f'privacy.points holds {pair!r}, which is not a pair of rationals such as ["1/3", "1/2"]'
            )
    return [(Fraction(x), Fraction(y)) for x, y in listed]
