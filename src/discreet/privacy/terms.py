"""A notion of privacy as a JSON document states it: its kind and its numbers."""

from __future__ import annotations

from typing import Any

from discreet.errors import DiscreetError
from discreet.privacy.approximate import Approximate
from discreet.privacy.gaussian import Gaussian
from discreet.privacy.notion import Privacy

_KINDS = {"approximate": ("epsilon", "delta"), "gaussian": ("nu",)}


def privacy_document(privacy: Privacy) -> dict[str, Any]:
    """The notion as JSON values; a pure one is an epsilon alone, and a function is no document."""
    match privacy:
        case Approximate(epsilon=epsilon, delta=delta) if delta > 0.0:
            return {"kind": "approximate", "epsilon": epsilon, "delta": delta}
        case Gaussian(nu=nu):
            return {"kind": "gaussian", "nu": nu}
    raise DiscreetError(
        f"privacy = {privacy!r} cannot be agreed on; agree on epsilon, Approximate(...) or Gaussian(...)"
    )


def read_privacy(fields: Any) -> Privacy:
    """The notion that such values state; an error names what is wrong."""
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise DiscreetError(f"privacy = {fields!r} is not an object whose kind is one of {', '.join(_KINDS)}")
    names = _KINDS[kind]
    if set(fields) != {"kind", *names}:
        raise DiscreetError(
            f"privacy of kind {kind!r} has the fields {', '.join(('kind', *names))}, not {', '.join(fields)}"
        )
    numbers = {name: fields[name] for name in names}
    found = Gaussian(**numbers) if kind == "gaussian" else Approximate(**numbers)
    if privacy_document(found) != fields:
        raise DiscreetError(
            f"privacy = {fields!r} does not state its numbers as floats do; write {privacy_document(found)!r}"
        )
    return found
