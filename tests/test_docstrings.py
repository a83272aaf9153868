"""help() of a public name reads well: Args name every parameter, Returns and Raises say the rest, signatures are short."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import discreet as dc
from discreet.design import Design
from discreet.families import BoundedDensity, HistogramFit, KernelFit, MixtureFit, Tabulated
from discreet.mechanisms import OutputLaw, nearest_member
from discreet.privacy.tradeoff import Constants, Risk

BELOW = (
    Design,
    OutputLaw,
    Risk,
    Constants,
    BoundedDensity,
    HistogramFit,
    KernelFit,
    MixtureFit,
    Tabulated,
    nearest_member,
)  # the top, and explained
RESULTS = {
    "Constants",
    "ContinuousFamily",
    "Design",
    "Domain",
    "OutputLaw",
    "Risk",
}  # made by the library: Attributes instead of Args


def public() -> Iterator[Any]:
    for name in dc.__all__:
        found = getattr(dc, name)
        if callable(found) and not (isinstance(found, type) and issubclass(found, (Exception, Warning))):
            yield pytest.param(found, id=name)
    for found in BELOW:
        yield pytest.param(found, id=found.__name__)


def methods() -> Iterator[Any]:
    kinds = (dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler, dc.Simplex, dc.Band)
    for kind in kinds:
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name not in {"to_samples", "numbers", "in_order", "as_rows"}:
                yield pytest.param(method, id=f"{kind.__name__}.{name}")


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("found", list(public()))
def test_every_parameter_is_named(found: Any) -> None:
    text = inspect.getdoc(found) or ""
    section = "Attributes:" if found.__name__ in RESULTS else "Args:"
    names = list(found.__annotations__) if found.__name__ == "ContinuousFamily" else parameters(found)
    assert section in text
    told = text.split(section)[1]
    assert [name for name in names if f"\n    {name}: " not in told] == []
    if found.__name__ not in RESULTS:
        assert "Raises:" in text
    if inspect.isfunction(found):
        assert "Returns:" in text


@pytest.mark.parametrize("method", list(methods()))
def test_methods_of_samplers_and_families_say_what_they_take_and_give(method: Any) -> None:
    text = inspect.getdoc(method) or ""
    told = text.split("Args:")[1]
    assert [name for name in parameters(method) if f"\n    {name}: " not in told] == []
    assert "Returns:" in text


@pytest.mark.parametrize(
    "kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler], ids=lambda kind: kind.__name__
)
def test_signatures_are_short(kind: Any) -> None:
    """Aliases are shown by their names, not spelled out."""
    for name in ("__init__", "output", "weights", "release", "risk"):
        assert len(str(inspect.signature(getattr(kind, name)))) <= 200
