"""One style for every picture: quiet axes, colours for colour-blind readers, files without a display."""

import io
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import atomic_write
from discreet.errors import DiscreetError, check_kind, check_path, raise_missing_extra
from discreet.plots import refuse_wrong_picture_ending, shorten_name

try:
    import matplotlib
    from matplotlib import font_manager
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
except ImportError as missing:
    raise_missing_extra("cli", missing)

AxesLike = Axes | Sequence[Axes] | NDArray[np.object_]
INK = "#222222"
QUIET = "#767676"
COLOURS = {  # Okabe and Ito's palette
    "optimal": "#0072B2",
    "mollifier": "#D55E00",
    "linear": "#009E73",
    "held": "#999999",
}
OTHER_COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#F0E442", "#000000")  # the rest of it, for mechanisms of one's own


def mechanism_colours(names: Sequence[str]) -> dict[str, str]:
    """The colours of mechanisms; those that are not ours get the others in turn."""
    others = [name for name in names if name not in COLOURS]
    fallbacks = {name: OTHER_COLOURS[index % len(OTHER_COLOURS)] for index, name in enumerate(others)}
    return {name: COLOURS.get(name) or fallbacks[name] for name in names}


_SCRIPTS = (  # fonts for scripts that the default lacks, if installed
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "IPAexGothic", "PingFang SC", "Hiragino Sans",
    "Microsoft YaHei", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji",
    "Arial Unicode MS", "Unifont",
)  # fmt: skip

_CJK, _OTHERS = ("Noto Sans CJK", "fonts-noto-cjk"), "fonts-noto-core"
_FONTS = {  # (font, its package) by the first word of a letter's name in Unicode
    **dict.fromkeys(
        ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH", "HALFWIDTH"), _CJK
    ),
    "ARABIC": ("Noto Sans Arabic", _OTHERS),
    "HEBREW": ("Noto Sans Hebrew", _OTHERS),
    "DEVANAGARI": ("Noto Sans Devanagari", _OTHERS),
    "THAI": ("Noto Sans Thai", _OTHERS),
}
_ANY_FONT = ("Unifont", "fonts-unifont")

_STYLE: Any = {
    "font.size": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#BBBBBB",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#EBEBEB",
    "grid.linewidth": 0.8,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "xtick.major.size": 3.0,
    "xtick.minor.size": 0.0,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    "pdf.fonttype": 42,
}


@contextmanager
def using_library_style() -> Iterator[None]:
    """Use the library's style inside the block, and restore the caller's settings after it."""
    with matplotlib.rc_context({**_STYLE, "font.family": ["sans-serif", *_installed_fonts()]}):
        yield


@cache
def _installed_fonts() -> list[str]:
    installed_fonts = set(font_manager.get_font_names())
    return [name for name in _SCRIPTS if name in installed_fonts]


@cache
def _drawable_characters() -> frozenset[int]:
    """Every character that one of the fonts has."""
    paths = [
        font_manager.findfont(font_manager.FontProperties(family=[family]))
        for family in ("sans-serif", *_installed_fonts())
    ]
    return frozenset(code for path in paths for code in font_manager.get_font(path).get_charmap())


def drawable_text_or_fallback(text: str, instead: str) -> str:
    """The text, or `instead` if no installed font can write it."""
    return text if all(ord(letter) in _drawable_characters() for letter in text) else instead


def short_drawable_name(name: Any, instead: str, most: int = 32) -> str:
    """A name short enough for a picture, or `instead` if no installed font can write it."""
    return drawable_text_or_fallback(shorten_name(str(name), most), instead)


def write_row_names(axes: Axes, names: Sequence[str]) -> None:
    """Write names beside the rows of a panel, the first on top, without lines between them."""
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(np.arange(len(names)), names, color=INK, parse_math=False)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def fill_between_steps(
    axes: Axes, edges: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], colour: str
) -> None:
    """Fill the band between two heights in each cell."""
    ends = np.append(low, 0), np.append(high, 0)
    axes.fill_between(edges, *ends, step="post", color=colour, alpha=0.22, linewidth=0)


def estimate_colour(*, exact: bool) -> str:
    """The colour of an estimate: that of the linear mechanism if it is unbiased, else that of the optimal one."""
    return COLOURS["linear" if exact else "optimal"]


def missing_fonts_note(names: Iterable[Any]) -> str | None:
    """Which font to install for labels that no installed font can write, and that a picture numbers instead; None if there are none."""
    missing_names = [
        str(name) for name in names if any(ord(letter) not in _drawable_characters() for letter in str(name))
    ]
    if not missing_names:
        return None
    letters = sorted({letter for name in missing_names for letter in name if ord(letter) not in _drawable_characters()})
    scripts = [unicodedata.name(letter, "").split(" ")[0].split("-")[0] for letter in letters]
    needed_fonts = dict.fromkeys(_FONTS.get(script, _ANY_FONT) for script in scripts)
    fonts = ", ".join(f"{font} (on Debian and Ubuntu: apt install {package})" for font, package in needed_fonts)
    labels_text = "a label" if len(missing_names) == 1 else f"{len(missing_names):,} labels"
    return f"no installed font can write {labels_text}, which pictures show by the outcome's number; install {fonts}"


def empty_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches with automatic layout and without a window."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1, wspace=0.03))


def new_or_given_figure_and_panels(
    ax: AxesLike | None,
    title: str | None,
    *,
    size: tuple[float, float],
    panels: tuple[int, int] = (1, 1),
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels: the caller's own axes, or those of a new figure with the title.

    Args:
        ax: The caller's axes, one for each panel; None for a new figure.
        title: Above a new figure.
        size: Of a new figure, in inches.
        panels: Rows and columns.
        share: Whether the panels have one horizontal axis in common.

    Returns:
        The figure, and its panels row by row.

    Raises:
        DiscreetError: `ax` does not have that many axes, or a title is given too.
    """
    rows, columns = panels
    refuse_wrong_axes_or_title(ax, title, rows * columns)
    if ax is None:
        figure = empty_figure(*size)
        if title:
            figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", parse_math=False)
        return figure, list(figure.subplots(rows, columns, squeeze=False, sharex=share).ravel())
    axes = _axes_as_list(ax)
    parent = axes[0].figure
    return (parent if isinstance(parent, Figure) else parent.figure), axes


def refuse_wrong_axes_or_title(ax: AxesLike | None, title: str | None, panels: int) -> None:
    """Refuse axes and titles that no picture of so many panels takes, before anything is computed."""
    if title is not None:
        check_kind("title", title, str, "pass a text, or leave it out")
    if ax is None:
        return
    axes = _axes_as_list(ax)
    if len(axes) != panels:
        raise DiscreetError(f"ax holds {len(axes)} axes for {panels} panels; pass one for each, or leave it out")
    if title is not None:
        raise DiscreetError(f"title = {title!r} is for a new figure; set the titles of your own axes yourself")


def _axes_as_list(ax: AxesLike) -> list[Axes]:
    axes = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
    if not all(isinstance(item, Axes) for item in axes):
        raise DiscreetError(f"ax = {ax!r} is not matplotlib axes; pass what `figure.subplots()` gives, or leave it out")
    return axes


def write_panel_title(axes: Axes, title: str, subtitle: str = "") -> None:
    """Write a title in ink and, under it, what the panel shows in grey."""
    axes.set_title(title, fontweight="bold", pad=24.0 if subtitle else 10.0, parse_math=False)
    if subtitle:
        axes.annotate(
            subtitle,
            (0.0, 1.0),
            (0.0, 9.0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=QUIET,
            fontsize=9,
            parse_math=False,
        )


def save(drawn: Figure, path: str | Path) -> None:
    """Write a figure to a file; missing folders are created.

    Args:
        drawn: A figure of `discreet.plots`, or any figure of matplotlib.
        path: Ends in .png, .svg or .pdf, which sets the format.

    Raises:
        DiscreetError: The name has another ending, or cannot be written.
    """
    check_kind("drawn", drawn, Figure, "pass what a function of discreet.plots returned")
    path = check_path("path", path)
    refuse_wrong_picture_ending(path)
    with using_library_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # of a label: a box is drawn in its place
        content = io.BytesIO()
        drawn.savefig(content, format=path.suffix.lower().removeprefix("."), dpi=160, facecolor="white")
    with atomic_write(path, what="picture", replace=True, folders=True) as file:
        file.write(content.getvalue())
