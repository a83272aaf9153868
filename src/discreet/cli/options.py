"""What options of several commands say together."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.tables.domains import Domain


def domain_of(
    file: Path | None,
    size: int | None,
    bounds: tuple[float, float] | None,
    cells: int | None,
    other: str | None,
    *,
    needed: bool,
) -> "Domain | None":
    """The domain that options state; None where none does and an agreement will."""
    from discreet.tables.domains import Cells, Labels, Numbers, read_labels

    given = [file is not None, size is not None, bounds is not None].count(True)
    if given > 1 or (given == 0 and needed):
        raise DiscreetError(
            "give the public domain once: --domain FILE, --domain-size K, or --bounds LO HI --cells N (or --agreement FILE)"
        )
    if (cells is None) != (bounds is None):
        raise DiscreetError("--bounds LO HI and --cells N go together")
    if not given:
        return None
    if file is not None:
        return Labels(read_labels(file), other)
    if size is not None:
        if other is not None and not re.fullmatch(r"[0-9]{1,18}", other):
            raise DiscreetError(f"--other {other} is not one of the outcomes 0 to {size - 1}")
        return Numbers(size, None if other is None else int(other))
    assert bounds is not None
    assert cells is not None
    return Cells(bounds[0], bounds[1], cells, other)
