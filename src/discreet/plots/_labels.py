"""Labels and file formats of pictures, available before matplotlib is loaded.

A wrong file name is therefore an error before anything is computed. The library's own names of divergences stay unchanged.
"""

from pathlib import Path

from discreet._base.files import check_output_path
from discreet.errors import DiscreetError
from discreet.privacy import Privacy, Pure

USUAL_DIVERGENCES = ("kl", "tv", "hellinger", "chi2")
USUAL_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_DIVERGENCES = {
    "kl": "KL",
    "reverse_kl": "reverse KL",
    "tv": "total variation",
    "hellinger": "squared Hellinger",
    "chi2": "chi-squared",
    "jensen_shannon": "Jensen-Shannon",
    "le_cam": "Le Cam",
}


def divergence_label(name: str) -> str:
    """A divergence's name in words; custom and parametric ones keep their own."""
    return _DIVERGENCES.get(name, name)


def promise_label(privacy: Privacy, epsilon: float) -> str:
    """The promise of the samples: an epsilon, or another notion by its name."""
    return f"at ε = {epsilon:g}" if isinstance(privacy, Pure) else f"under {privacy}"


def shorten_name(name: str, most: int = 32) -> str:
    """A name short enough for the picture."""
    return name if len(name) <= most else name[: most - 1] + "…"


FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Raise an error for a file name without a picture's ending."""
    if path.suffix.lower() not in FORMATS:
        raise DiscreetError(f"picture {str(path)!r} does not end in {', '.join(FORMATS)}; name one of these")
    check_output_path(path, what="picture", replace=True)
