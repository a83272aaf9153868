"""Every picture alike: files it can be written to, the caller's settings untouched, no window system."""

import inspect
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

import discreet as dc
from discreet import DiscreetError, audit, estimation, plots, research
from discreet.audit import TestedEvent
from discreet.plots import _style, divergence_label
from discreet.plots._style import drawable_text_or_fallback, empty_figure, missing_fonts_note, save, using_library_style
from tests.soaking import wide


def test_a_file_name_without_a_known_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match=r"does not end in .png, .svg, .pdf"):
        save(empty_figure(4.0, 3.0), tmp_path / "picture.jpg")
    assert list(tmp_path.iterdir()) == []


def test_the_callers_settings_survive() -> None:
    before = dict(matplotlib.rcParams)
    with using_library_style():
        assert dict(matplotlib.rcParams) != before
    assert dict(matplotlib.rcParams) == before


def test_no_window_system_is_touched() -> None:
    """Figures are made without pyplot, which would pick a backend and keep every figure alive."""
    modules = [*Path(plots.__path__[0]).glob("*.py"), *Path(research.__path__[0]).rglob("*.py")]
    assert len(modules) >= 25
    assert not [module.name for module in modules if "pyplot" in module.read_text(encoding="utf-8")]


def test_labels() -> None:
    assert divergence_label("hellinger") == "squared Hellinger"
    assert divergence_label("alpha:0.5") == "alpha:0.5"


def test_the_public_functions_are_there_and_take_ax() -> None:
    for name in plots.__all__:
        function = getattr(plots, name)
        assert callable(function)
        assert name == "save" or inspect.signature(function).parameters["ax"].default is None
        assert "Args:" in (function.__doc__ or "")
    missing = "nothing"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(plots, missing)


@pytest.mark.slow
def test_matplotlib_is_imported_with_the_first_picture() -> None:
    program = """
import sys
import discreet.plots
from discreet.plots import divergence_label
assert "matplotlib" not in sys.modules
discreet.plots.save
assert "matplotlib" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_note_says_which_font_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with the default font alone; no note where every letter can be written."""
    monkeypatch.setattr(_style, "_installed_fonts", list)
    _style._drawable_characters.cache_clear()
    try:
        assert missing_fonts_note(["plain", "grün", "αβγ"]) is None
        told = missing_fonts_note(["plain", "東京", "ソウル", "서울", "हिन्दी"])
        assert told is not None
        assert "no installed font can write 4 labels" in told
        assert "Noto Sans CJK (on Debian and Ubuntu: apt install fonts-noto-cjk)" in told
        assert told.count("Noto Sans CJK") == 1
        assert "Noto Sans Devanagari" in told
        assert "Unifont" in str(missing_fonts_note(["\U00012000"]))
    finally:
        _style._drawable_characters.cache_clear()


SCRIPTS = ["東京", "العربية", "हिन्दी", "🦊", "a$b", "$\\bad{$", "x_{1}^2$"]


@pytest.mark.slow
@pytest.mark.parametrize("name", wide(SCRIPTS, SCRIPTS[1::2]))
def test_labels_in_any_script_are_written_or_numbered(name: str, tmp_path: Path) -> None:
    """Warnings are errors here: a letter that no font has would be one, and so would formulas that are none."""
    names = ["plain", name]
    sampler = dc.LinearSampler(dc.Simplex(names), epsilon=1.0)
    found = estimation.population(sampler, counts=[60, 40])
    event = TestedEvent(f"sample = {name!r}", 0, 1, 60, 40, 100, 0.1)
    checked = audit.BlackBoxAudit(1.0, 0.0, 0.99, tuple(names), (event,))
    for drawn in (
        plots.output(sampler, [0.6, 0.4], released=name),
        plots.population(found, title="plain"),
        plots.audit(checked),
    ):
        drawn.savefig(tmp_path / "picture.png")
        labels = [label.get_text() for axes in drawn.axes[:1] for label in axes.get_yticklabels()]
        if "plain" in labels:
            assert set(labels) == {"plain", drawable_text_or_fallback(name, "outcome 1")}
