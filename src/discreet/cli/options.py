"""What options of several commands say together."""

from pathlib import Path

from discreet.domain import Domain, Interval, Labels, Numbers
from discreet.errors import DiscreetError

_ONCE = "give the public domain once: --domain FILE, --domain-size K, or --bounds LO HI --cells N"


def needed_domain(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None, *, instead: str = ""
) -> Domain:
    """The domain that options state, one way or another; `instead`: what else would do."""
    given = given_domain(file, size, bounds, cells)
    if given is None:
        raise DiscreetError(_ONCE + instead)
    return given


def given_domain(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None
) -> Domain | None:
    """The domain that options state; None where none does."""
    if [file is not None, size is not None, bounds is not None].count(True) > 1:
        raise DiscreetError(_ONCE)
    if (cells is None) != (bounds is None):
        raise DiscreetError("--bounds LO HI and --cells N go together")
    if file is not None:
        from discreet.tables.lines import read_labels

        return Labels(read_labels(file))
    if size is not None:
        return Numbers(size)
    if bounds is not None and cells is not None:
        return Interval(*bounds, cells=cells)
    return None
