"""The agreement that a file of samples was released under: one that is named, or the one that the file carries."""

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.agreement import Agreement
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet._tables._sources import Source


def agreement_of(records: "Source", agreement: Path | None) -> Agreement:
    """The agreement of a file of its own, or the one that the samples carry."""
    if agreement is not None:
        return Agreement.read(agreement)
    if records.agreement is None:
        raise DiscreetError(
            f"{records.name} does not carry the agreement that its samples were released under; give --agreement FILE (as `discreet agree` "
            "or `discreet sample --write-agreement` wrote it)"
        )
    return Agreement.from_json(records.agreement)
