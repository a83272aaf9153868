"""Pictures for users. Each function draws on a new figure, or on the given axes (`ax=`), and returns the figure.

They need matplotlib (`pip install '.[cli]'`), which is imported on first use, and no window system.
"""

from discreet._base.doors import imports_on_first_use

with imports_on_first_use(globals(), extra="cli"):
    from discreet.plots._comparison import comparison
    from discreet.plots._groups import change, groups, survey, survey_change, survey_groups
    from discreet.plots._labels import (
        USUAL_DIVERGENCES as USUAL_DIVERGENCES,
        USUAL_EPSILONS as USUAL_EPSILONS,
        check_picture as check_picture,
        divergence_label as divergence_label,
        promise_label as promise_label,
        shorten_name as shorten_name,
    )
    from discreet.plots._output import output
    from discreet.plots._planning import frontier, plan, tradeoff
    from discreet.plots._results import audit, population
    from discreet.plots._style import (
        COLOURS as COLOURS,
        INK as INK,
        QUIET as QUIET,
        Axes as Axes,
        Figure as Figure,
        figure as figure,
        fonts_note as fonts_note,
        library_style as library_style,
        panel_title as panel_title,
        save,
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
