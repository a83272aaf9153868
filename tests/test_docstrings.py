"""help() of a public name reads well: Args name every parameter, Returns and Raises say the rest, signatures are short.

What is public is found by a walk over the package. Two kinds of class are told apart by a rule. A record, whose generated constructor
checks nothing, is made by the library: `Attributes:` may name its fields. An interface is implemented by others: it has no parameters of
its own. That `Raises:` names what is raised is tested where it is raised, in `test_wrong_kinds`.
"""

import inspect
import typing
from collections.abc import Iterator
from typing import Any

import pytest

import discreet as dc
from tests.public import is_interface, is_record, public_callables, public_modules

SLOW = ("collect", "plots", "tables", "torch")  # rooms whose imports take their time


def methods() -> Iterator[Any]:
    kinds = (dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler, dc.Simplex, dc.Band)
    for kind in kinds:
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name not in {"numbers", "values_in_outcome_order", "as_rows"}:
                yield pytest.param(method, id=f"{kind.__name__}.{name}")


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def unnamed(text: str, section: str, names: list[str]) -> list[str]:
    told = text.partition(section)[2]
    return [name for name in names if f"\n    {name}: " not in told]


def keywords_of(function: Any) -> list[str]:
    """The names of its parameters. A class that takes `**terms: Unpack[Terms]` names the terms one by one, a function as one."""
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        terms = typing.get_args(parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD and terms and inspect.isclass(function):
            found += list(terms[0].__annotations__)
        elif name != "self":
            found.append(name)
    return found


def problems_of(thing: Any) -> list[str]:
    text = inspect.getdoc(thing) or ""
    found = [] if text else ["no docstring"]
    if is_interface(thing):
        return found
    names = keywords_of(thing)
    sections = ("Args:", "Attributes:") if is_record(thing) else ("Args:",)
    missing = min((unnamed(text, section, names) for section in sections), key=len)
    if missing:
        found.append(f"{' or '.join(sections)} does not name {', '.join(missing)}")
    if not inspect.isclass(thing):
        returns = inspect.signature(thing).return_annotation not in (None, "None")
        if returns != ("Returns:" in text):
            found.append("no Returns:" if returns else "Returns: of a function that returns nothing")
    return found


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(module, marks=pytest.mark.slow)
        if module.split(".")[1:2] and module.split(".")[1] in SLOW
        else module
        for module in public_modules()
    ],
)
def test_every_public_name_says_what_it_takes_and_gives(module: str) -> None:
    problems = {name: problems_of(thing) for name, thing in public_callables(module).items()}
    assert {name: found for name, found in problems.items() if found} == {}


def test_the_walk_finds_what_is_public() -> None:
    assert {"discreet", "discreet.families", "discreet.privacy.tradeoff", "discreet.torch.transformers"} <= set(
        public_modules()
    )
    assert {"OptimalSampler", "design", "Simplex"} <= public_callables("discreet").keys()
    assert not any("._" in module for module in public_modules())


@pytest.mark.parametrize("method", list(methods()))
def test_methods_of_samplers_and_families_say_what_they_take_and_give(method: Any) -> None:
    text = inspect.getdoc(method) or ""
    assert unnamed(text, "Args:", parameters(method)) == []
    assert "Returns:" in text


@pytest.mark.parametrize(
    "kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler], ids=lambda kind: kind.__name__
)
def test_signatures_are_short(kind: Any) -> None:
    """Aliases are shown by their names, not spelled out."""
    for name in ("__init__", "output", "weights", "release", "risk"):
        assert len(str(inspect.signature(getattr(kind, name)))) <= 200
