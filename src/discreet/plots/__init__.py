"""Pictures that users want. Each function draws on a new figure, or on one's own axes (`ax=`), and returns the figure.

They need matplotlib (`pip install '.[cli]'`), which is imported when the first of them is used, and no window system.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.plots._output import output
    from discreet.plots._planning import frontier, plan, tradeoff
    from discreet.plots._results import audit, population
    from discreet.plots._style import save

__all__ = ["audit", "frontier", "output", "plan", "population", "save", "tradeoff"]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    """The functions, from the modules that need matplotlib."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}._{'style' if name == 'save' else name}"), name)
