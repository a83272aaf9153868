"""Which files a picture can be written to: known without matplotlib, so that a wrong name is refused before anything is computed."""

from pathlib import Path

from discreet._files import check_target
from discreet.errors import DiscreetError

FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Refuse a name that no picture can be written under."""
    if path.suffix.lower() not in FORMATS:
        raise DiscreetError(f"picture {str(path)!r} does not end in {', '.join(FORMATS)}; name one of these")
    check_target(path, what="picture", replace=True)
