"""Hostile comparisons, runs of the paper's experiments, and designs that are learned or bracketed."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.design import concentration_law, learn
from discreet.design.mixtures import minimax_bracket
from discreet.research import compare, data, reproduce
from tests.fuzz.chooser import WORDS, Chooser
from tests.fuzz.estimates import counts_of_outcomes, hostile_confidence


def comparisons(c: Chooser) -> Any:
    """Mechanisms beside each other on hostile clients, and experiments with hostile changes."""
    what = c.below(4)
    if what == 0:
        return len(data.logbooks(c.among([[1], [2, 2], [], [13], [c.number()], None, "1", c.number()])).counts)
    if what == 1:
        return _run(c)
    family = c.among([dc.Simplex(3), dc.Simplex(3), dc.Simplex(["a", "b", "c"]), c.family(), dc.GaussianMixtures(), 3])
    size = getattr(family, "size", 3)
    clients = np.eye(size) if c.below(2) else c.law(size)
    own: Any = c.among(
        [dc.LinearSampler, dc.OptimalSampler(dc.Simplex(3), epsilon=1.0), lambda family, epsilon: None, None, 3, "x"]
    )
    mechanisms = c.among([["optimal"], ["optimal", "linear"], ["mollifier", "mollifier"], [own], [], "optimal", own])
    epsilons = c.among([[1.0], [0.5, 2.0], [], [c.number()], c.number(), "1"])
    measures = c.among([["tv"], ["kl", "tv"], [c.among(WORDS)], [], "tv", [3]])
    found = compare(family, clients, mechanisms=mechanisms, epsilons=epsilons, divergences=measures)
    for record in found.records:
        assert record.mean <= record.largest * (1.0 + 1e-9) + 1e-12
    return [found.to_csv(), found.to_latex(), [(each.mean, each.largest) for each in found.records]]


def _run(c: Chooser) -> Any:
    """An experiment that is small, or refused."""
    changes: dict[str, Any] = {"epsilons": (1.0,), "outcomes": 3, "clients": 2}
    odd: dict[str, Any] = {
        "epsilons": [(), (c.number(),), c.number(), "12"], "outcomes": [1, c.number(), [3]], "clients": [0, c.number()],
        "seed": [7, c.number()],
        "divergences": [("tv",), (c.among(WORDS),), "kl", c.number()], "mechanisms": [("optimal",), ("x",), "optimal", c.number()], "x": [1],
        "is_quick": [False],
    }  # fmt: skip
    for _ in range(1 + c.below(2)):
        name = c.among(sorted(odd))
        changes[name] = c.among(odd[name])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / c.among(["runs", "runs", "nowhere/runs", "\x00", "file"])
        (Path(folder) / "file").write_text("x")
        named = c.among(["local_finite", "local_finite", "local_finite", "ordered", "fig9", "", None, 3])
        return len(
            reproduce(
                named, path if c.below(8) else c.among([3, None]), quick=c.among([True, True, None]), **changes
            ).rows
        )


def learned_designs(c: Chooser) -> Any:
    """Designs for clients behind private samples, and brackets of mixtures' minimax risk."""
    what = c.below(4)
    if what == 0:
        return concentration_law(c.among([np.eye(3), [[0.5, 0.5]], c.law(3), [c.law(3)], [], None]))
    if what == 1:
        family = c.among([dc.GaussianMixtures(), c.continuous_family, dc.Simplex(3), None])
        family = family() if callable(family) and family is not None else family
        found = minimax_bracket(family, epsilon=c.among([1.0, 3.0, c.number()]), cells=c.among([20, 60, c.number()]))
        assert found.lower <= found.upper
        return [found.lower, found.upper]
    family = c.among([dc.Simplex(3), dc.Simplex(3), dc.Simplex(2), c.family(), None, dc.Simplex(600)])
    size = getattr(family, "size", 3)
    sampler: Any = (
        dc.LinearSampler(dc.Simplex(min(size, 12)), epsilon=c.among([1.0, 4.0]))
        if c.below(8)
        else c.among([c.sampler(), None, 3])
    )
    rounds: Any = [(sampler, counts_of_outcomes(c, min(size, 12)))]
    if c.below(8) == 0:
        rounds = c.among([[], None, 3, [sampler], [(sampler,)], [(sampler, None)], rounds * 2])
    spread: Any = (
        None
        if c.below(4)
        else (dc.LinearSampler(dc.Simplex(2), epsilon=1.0), c.among([[50, 30], [1, 2, 3], c.law(2), None]))
    )
    learned = learn(
        family, epsilon=c.among([1.0, 1.0, c.number()]), rounds=rounds, spread=spread, divergence=c.among(["kl", "tv", *WORDS]),
        keep=c.among([0.01, 0.5, c.number()]), confidence=hostile_confidence(c),
    )  # fmt: skip
    return [learned.reason, learned.sampler.weights(np.full(size, 1.0 / size))]
