"""Hostile calls of every public entry point, made from bytes: hypothesis shrinks them, a fuzzer mutates them, a soak draws them.

The contract: a defined result (no NaN in it) or one of our errors; never a numpy warning, another exception, or a hang.
"""

import argparse
import json
import math
import os
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet import accounting, audit
from discreet.agreement import Agreement
from discreet.audit import verify
from discreet.ledger import Budget, Ledger
from tests.fuzz.chooser import NUMBERS, WORDS, Chooser
from tests.fuzz.collectors import collectors
from tests.fuzz.commands import commands
from tests.fuzz.continuous import continuous_families, continuous_samplers
from tests.fuzz.estimates import plans, populations
from tests.fuzz.exact import domains, exact_numbers, integer_draws, terms
from tests.fuzz.experiments import comparisons, learned_designs
from tests.fuzz.methods import methods
from tests.fuzz.notions import around, notions, several, transports
from tests.fuzz.reports import inverted_populations, reported_populations, reports
from tests.fuzz.stores import stores
from tests.fuzz.surveys import survey_answers, surveys
from tests.fuzz.tables import kernels, population_ledgers, table_files, tables

SECONDS = 120
FUNCTIONS: list[Any] = [  # convex with f(1) = 0, and others
    lambda x: (x - 1) ** 2, lambda x: (x - 1) ** 4, lambda x: np.abs(x - 1), lambda x: x, lambda x: x - 1, lambda x: -((x - 1) ** 2),
    lambda x: np.full(np.shape(x), math.nan), lambda x: np.full(np.shape(x), math.inf), lambda x: None, lambda x: "x", lambda: 0, 3,
]  # fmt: skip
SHARE = 20  # one in so many inputs of a soak goes to what is slow


def _families(c: Chooser) -> Any:
    family = c.family()
    what = c.below(4)
    if what == 0:
        return family.law(counts=c.law(family.size))
    if what == 1:
        return family.law(records=[c.among([0, 1, "label 0", None, math.nan, "x", True]) for _ in range(c.below(5))])
    return family.contains(c.law(family.size)) if what == 2 else family.decomposable


def _samplers(c: Chooser) -> Any:
    sampler = c.sampler()
    law = c.law(sampler.family.size)
    what = c.below(6)
    if what == 0:
        return sampler.output(law)
    if what == 1:
        return sampler.weights(law)
    if what == 2:
        return sampler.release(law)
    if what == 3:
        return sampler.risk(c.among(WORDS))
    if what == 4 and isinstance(sampler, dc.LinearSampler):
        return sampler.randomised_response([c.among([0, 1, "label 0", None, 99]) for _ in range(c.below(4))])
    if isinstance(sampler, dc.OptimalSampler):
        return [sampler.scale(law), sampler.sensitivity(law), sampler.estimation_cost(law, records=c.number())]
    return repr(sampler)


def _tradeoff(c: Chooser) -> Any:
    family, name = c.family(), c.among(WORDS)
    what = c.below(4)
    if what == 0:
        return dc.minimax_risk(family, epsilon=c.number(), divergence=name)
    if what == 1:
        return dc.epsilon_for(family, divergence=name, risk=c.number())
    if what == 2:
        own = dc.FDivergence(c.among(FUNCTIONS), name=c.among([*WORDS, None, 1]))
        return [own.at_zero, own.slope_at_infinity, own.maximum, own(c.law(4), c.law(4))]
    return dc.divergence(name)(c.law(4), c.law(4))


def _designs(c: Chooser) -> Any:
    family = c.among([dc.Simplex(2), dc.Simplex(5), c.family(), 4])
    size = getattr(family, "size", 4)
    clients: Any = [c.law(size) for _ in range(1 + c.below(4))]
    if c.below(3) == 0:
        clients = np.eye(size)[: 1 + c.below(size)]
    found = dc.design(
        family, epsilon=c.among([0.5, 2.0, c.number()]), clients=clients, divergence=c.among(["kl", "tv", *WORDS]),
        keep=c.among([0.0, 0.5, 1.0, c.number()]), over=c.among(["mean", "worst", "x"]),
    )  # fmt: skip
    assert found.bound <= found.value
    return [found.value, found.bound, found.worst("tv"), found.sampler.weights(np.full(size, 1.0 / size))]


def _accounting(c: Chooser) -> Any:
    profile = c.profile()
    what = c.below(8)
    if what == 6:
        return accounting.shuffled_delta(profile, clients=c.among([1, 2, 50, c.number()]), epsilon=c.number())
    if what == 7:
        return accounting.profile_of(c.sampler())
    if what == 0:
        return [profile.delta(c.number()), accounting.renyi(profile, order=c.number())]
    if what == 1:
        loss = accounting.compose([(profile, c.among([1, 5, 40, c.number()])), (c.profile(), 1 + c.below(3))])
        return [loss.epsilon(c.among([0.0, 1e-6, c.number()])), loss.delta(c.number())]
    if what == 2:
        return accounting.epsilon_from_renyi(profile, samples=c.number(), delta=c.among([1e-6, c.number()]))
    if what == 3:
        return accounting.shuffled_epsilon(
            profile, clients=c.among([1, 2, 50, c.number()]), delta=c.among([1e-6, c.number()])
        )
    if what == 4:
        samples = c.among([1, 3, c.number()])
        return accounting.epsilon_per_sample(
            alpha=profile.alpha, samples=samples, epsilon=c.number(), delta=c.among([0, 1e-6, c.number()])
        )
    budget = Budget(epsilon=c.number(), delta=c.among([0.0, 1e-6, c.number()]))
    return budget.spent([(profile, 1 + c.below(9))]).epsilon


def _auditing(c: Chooser) -> Any:
    what = c.below(4)
    if what == 3:
        found = audit.certificate(
            c.sampler(), epsilon=c.among([None, 1.0, c.number()]), most_inputs=c.among([2, 8, 64])
        )
        assert found.holds == (not verify.problems(verify.parse_certificate(found.to_json())))
        return _forged(c, json.loads(found.to_json()))
    if what == 0:
        counts = (c.among([0, 5, 99, c.number()]), c.among([0, 5, 99, c.number()]))
        return audit.empirical_epsilon_lower_bound(
            *counts, draws=c.among([100, c.number()]), confidence=c.among([0.9, c.number()])
        )
    if what == 1:
        table = [[c.among([1, 2, 3, c.number()]) for _ in range(2)] for _ in range(2)]
        return audit.certificate_of(table, epsilon=c.number()).realised_epsilon
    outputs = [c.among([*NUMBERS, "a", "bb", (1, 2), np.zeros(2)]) for _ in range(1 + c.below(3))]

    def mechanism(value: Any, n: int) -> list[Any]:
        return [outputs[place % len(outputs)] for place in range(n - value)]

    return audit.black_box_audit(
        mechanism, [0, c.below(2)], epsilon=c.number(), draws=200
    ).empirical_epsilon_lower_bound


def _forged(c: Chooser, record: Any) -> list[str]:
    """What the verifier says of a certificate with one value replaced, wherever it stands."""
    value = record
    while True:
        key = c.among(list(value)) if isinstance(value, dict) else c.below(len(value))
        if not isinstance(value[key], (dict, list)) or not value[key] or c.below(4) == 0:
            break
        value = value[key]
    value[key] = c.among([None, True, 0, 1, -1, 1.0, "1", "1e999999999", [], {}, 10**4000, c.json()])
    try:
        return verify.problems(verify.parse_certificate(json.dumps(record)))
    except ValueError as wrong:  # what the script answers with "not a certificate"
        raise dc.DiscreetError(str(wrong)) from None


def _agreements(c: Chooser) -> Any:
    what = c.below(4)
    if what == 0:
        return Agreement.from_json(json.dumps(c.json())).id
    if what == 1:
        sampler = c.sampler()
        made = Agreement.of(
            sampler,
            rounds=c.among([1, c.number()]),
            purpose=c.among(WORDS),
        )
        made.check_round(c.among([1, c.number()]))
        assert Agreement.from_json(made.text).sampler(sampler.family) == sampler
        return made.id
    if what == 2:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / c.among(["a.json", "nowhere/a.json", "\x00", "x" * 300, "."])
            if c.below(2):
                Agreement.of(c.sampler()).write(path)
            return Agreement.read(path).id
    document: dict[str, Any] = {
        "discreet": 1, "bits": 62, "mechanism": "optimal", "epsilon": 1.0, "family": {"kind": "simplex", "size": 3},
    }  # fmt: skip
    place = document["family"] if c.below(2) else document
    place[c.among(["kind", "size", "labels", "interval", "lower", "epsilon", "rounds", "purpose", "bits", "x"])] = (
        c.json()
    )
    return Agreement.from_json(json.dumps(document)).id


def _ledgers(c: Chooser) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        if c.below(3) == 0:
            path.write_bytes(bytes(c.below(256) for _ in range(c.below(200))))
            return Ledger(path).entries()
        ledger = Ledger.create(path, Budget(epsilon=c.number(), delta=c.among([0.0, 1e-6])))
        sampler = c.sampler()
        agreed = Agreement.of(sampler, rounds=c.among([1, 3, c.number()]))
        ledger.release(sampler, c.law(sampler.family.size), agreement=agreed, round=c.among([1, 2, c.number()]))
        return ledger.spent().epsilon


def _imported_first(module: str, name: str) -> Callable[[Chooser], Any]:
    """An attack whose module loads torch or matplotlib, which nobody waits for who does not use it."""
    return lambda c: getattr(import_module(f"tests.fuzz.{module}"), name)(c)


ATTACKS: dict[str, Callable[[Chooser], Any]] = {
    "families": _families,
    "samplers": _samplers,
    "tradeoff": _tradeoff,
    "designs": _designs,
    "accounting": _accounting,
    "auditing": _auditing,
    "agreements": _agreements,
    "ledgers": _ledgers,
    "population ledgers": population_ledgers,
    "commands": commands,
    "collectors": collectors,
    "continuous families": continuous_families,
    "continuous samplers": continuous_samplers,
    "tables": tables,
    "kernels": kernels,
    "plans": plans,
    "populations": populations,
    "table files": table_files,
    "notions": notions,
    "classes around a law": around,
    "several": several,
    "transports": transports,
    "reports": reports,
    "reported populations": reported_populations,
    "inverted populations": inverted_populations,
    "surveys": surveys,
    "survey answers": survey_answers,
    "domains": domains,
    "terms": terms,
    "exact numbers": exact_numbers,
    "integer draws": integer_draws,
    "stores": stores,
    "pictures": _imported_first("pictures", "pictures"),
    "tensors": _imported_first("tensors", "tensors"),
    "private texts": _imported_first("tensors", "private_texts"),
    "comparisons": comparisons,
    "learned designs": learned_designs,
    "methods": methods,
}
SLOW = (
    "accounting",
    "collectors",
    "commands",
    "continuous families",
    "continuous samplers",
    "designs",
    "ledgers",
    "population ledgers",
    "table files",
    "tables",
    "notions",
    "several",
    "transports",
    "surveys",
    "survey answers",
    "stores",
    "pictures",
    "private texts",
    "comparisons",
    "learned designs",
)


def attack(name: str, data: bytes) -> None:
    """Make the call that the bytes describe, and hold it to the contract."""
    with warnings.catch_warnings(), _alarm():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dc.OutsideFamilyWarning)
        warnings.simplefilter("ignore", dc.errors.UnresolvedWarning)
        warnings.simplefilter("ignore", dc.LargeEpsilonWarning)
        try:
            result = ATTACKS[name](Chooser(data))
        except dc.DiscreetError:
            return
        _assert_defined(result)


def attack_any(data: bytes) -> None:
    """The first byte chooses the entry point."""
    names = sorted(ATTACKS)
    attack(names[data[0] % len(names)] if data else names[0], data[1:])


def _assert_defined(result: Any) -> None:
    if isinstance(result, (list, tuple)):
        for part in result:
            _assert_defined(part)
    elif is_dataclass(result) and not isinstance(result, type):
        for field in fields(result):
            _assert_defined(getattr(result, field.name))
    elif isinstance(result, np.ndarray) and result.dtype.kind == "f":
        assert not np.isnan(result).any()
    elif isinstance(result, float):
        assert not math.isnan(result)


@contextmanager
def _alarm() -> Iterator[None]:
    """A call that takes longer than SECONDS is a hang."""

    def ring(*_: Any) -> None:
        raise TimeoutError(f"no result after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def soak(count: int, seed: int) -> int:
    """So many random attacks, spread over all entry points; returns how many broke the contract, and tells which."""
    rng = np.random.default_rng(seed)
    names = [name for name in sorted(ATTACKS) if name not in SLOW]
    broken = 0
    for number in range(count):
        slow = number % SHARE == 0  # files, commands and integrals cost a thousand times as much as a call
        name = SLOW[number // SHARE % len(SLOW)] if slow else names[number % len(names)]
        data = rng.bytes(48)
        try:
            attack(name, data)
        except Exception as problem:
            broken += 1
            told = f"attack({name!r}, {data!r}): {type(problem).__name__}: {problem}\n"
            os.write(2, told.encode(errors="replace"))
    return broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    broken = soak(options.inputs, options.seed)
    if broken:
        raise SystemExit(f"{broken:,} of {options.inputs:,} inputs broke the contract")
    print(f"{options.inputs:,} inputs: each a defined result or one of our errors")  # noqa: T201


if __name__ == "__main__":
    main()
