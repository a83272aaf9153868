"""Pictures for users. Each function draws on a new figure, or on the given axes (`ax=`), and returns the figure.

They need matplotlib (`pip install '.[cli]'`), which is imported on first use, and no window system. Labels and the check of a file name
are here, available before matplotlib is loaded: a wrong file name is an error before anything is computed.
"""

from pathlib import Path

from discreet._base import imports_on_first_use
from discreet._base.files import check_output_path
from discreet.errors import DiscreetError
from discreet.privacy import Privacy, Pure

with imports_on_first_use(globals(), extra="cli"):
    from discreet.plots._groups import change, groups, survey, survey_change, survey_groups
    from discreet.plots._output import output
    from discreet.plots._planning import frontier, plan, tradeoff
    from discreet.plots._results import audit, comparison, population
    from discreet.plots._style import (
        COLOURS as COLOURS,
        INK as INK,
        QUIET as QUIET,
        Axes as Axes,
        Figure as Figure,
        empty_figure as empty_figure,
        missing_fonts_note as missing_fonts_note,
        save,
        using_library_style as using_library_style,
        write_panel_title as write_panel_title,
    )


__all__ = [
    "audit",
    "change",
    "comparison",
    "frontier",
    "groups",
    "output",
    "plan",
    "population",
    "save",
    "survey",
    "survey_change",
    "survey_groups",
    "tradeoff",
]

USUAL_DIVERGENCES: tuple[str, ...] = ("kl", "tv", "hellinger", "chi2")
USUAL_EPSILONS: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
FORMATS = (".png", ".svg", ".pdf")
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


def privacy_label(privacy: Privacy, epsilon: float) -> str:
    """The promise of the samples: an epsilon, or another notion by its name."""
    return f"at ε = {epsilon:g}" if isinstance(privacy, Pure) else f"under {privacy}"


def shorten_name(name: str, most: int = 32) -> str:
    """A name short enough for the picture."""
    return name if len(name) <= most else name[: most - 1] + "…"


def refuse_wrong_picture_ending(path: Path) -> None:
    """Raise an error for a file name without a picture's ending."""
    if path.suffix.lower() not in FORMATS:
        raise DiscreetError(f"picture {str(path)!r} does not end in {', '.join(FORMATS)}; name one of these")
    check_output_path(path, what="picture", replace=True)
