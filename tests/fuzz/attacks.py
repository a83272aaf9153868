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
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import discreet as dc
from discreet import accounting, audit
from discreet.agreement import Agreement
from discreet.cli.app import app
from discreet.ledger import Budget, Ledger
from discreet.mechanisms.sampler import FiniteSampler

SECONDS = 120
NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 10, 0.5, 1.0, -0.0, 1e-300, 5e-324, 1e-9, 0.999999, 1e9, 1e300, 1e308, math.inf, -math.inf, math.nan,
    10**400, True, None, "1", "", b"1", [], {}, (1,), 1j, Fraction(1, 3), np.float32(0.5), np.int8(3), np.array(1.0),
    np.array([1.0]),
]  # fmt: skip
WORDS = [
    "kl",
    "tv",
    "hellinger",
    "chi2",
    "alpha:0.5",
    "alpha:nan",
    "alpha:",
    "hockey_stick:2",
    "hockey_stick:-1",
    "x",
    "",
    "kl ",
    "\x00",
    "é",
]


class Chooser:
    """Choices read off bytes, one byte each; zeros after the end."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def below(self, count: int) -> int:
        return next(self._bytes, 0) % count

    def among(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def number(self) -> Any:
        """Mostly an ordinary number, otherwise anything."""
        kind = self.below(4)
        if kind == 0:
            return self.among(NUMBERS)
        if kind == 1:
            return self.below(20)
        return self.among([0.01, 0.1, 0.3, 1.0, 2.5, 8.0, 40.0, 700.0]) * (1 + self.below(3))

    def law(self, size: int) -> Any:
        """A law, or something that is nearly one."""
        kind = self.below(6)
        if kind == 0:
            return self.among(NUMBERS)
        if kind == 1:
            return [self.number() for _ in range(self.below(6))]
        masses = np.array([float(self.below(256)) for _ in range(size)]) + (0.0 if kind < 4 else 1e-9)
        if kind == 5:
            masses[self.below(size)] = self.among([math.nan, -1.0, math.inf, 5e-324, 1e308])
            return masses
        law = masses / masses.sum() if masses.sum() > 0 else np.eye(1, size)[0]
        return law if self.below(2) else np.stack([law, law[::-1]])

    def family(self) -> dc.Simplex | dc.Band:
        size = 1 + self.below(12)
        if self.below(2):
            return dc.Simplex(
                self.among([size, [f"label {x}" for x in range(size)], self.number(), ["a", "a"], "ab", [[]]])
            )
        weights = (
            [self.number() for _ in range(size)] if self.below(3) == 0 else [1.0 + self.below(5) for _ in range(size)]
        )
        return dc.Band(
            weights, lower=self.among([0.0, 0.25, 0.9, self.number()]), upper=self.among([1.1, 2.0, self.number()])
        )

    def sampler(self) -> FiniteSampler:
        kind = self.among([dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
        return kind(self.family(), epsilon=self.number())  # type: ignore[no-any-return]

    def profile(self) -> accounting.BoxProfile:
        return accounting.BoxProfile(epsilon=self.number(), alpha=self.among([0.01, 0.3, 0.5, 0.9, 1.0, self.number()]))

    def text(self) -> str:
        parts = [
            "0",
            "1",
            "-1",
            "nan",
            "inf",
            "1e400",
            "0.5",
            "1:2:3",
            "",
            "x",
            "--json",
            "\x00",
            "é",
            "10",
            "kl",
            "1" * 50,
        ]
        return str(self.among(parts))

    def json(self, depth: int = 0) -> Any:
        kind = self.below(5 if depth < 3 else 3)
        if kind == 3:
            return [self.json(depth + 1) for _ in range(self.below(4))]
        if kind == 4:
            return {
                self.among(["kind", "size", "epsilon", "x", "lower"]): self.json(depth + 1)
                for _ in range(self.below(4))
            }
        return self.among(
            [None, True, 0, 1, -1, 1.5, 1e400, "simplex", "band", "sha256:" + "0" * 64, "optimal", "", math.nan]
        )


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
    what = c.below(3)
    if what == 0:
        return dc.minimax_risk(family, epsilon=c.number(), divergence=name)
    if what == 1:
        return dc.epsilon_for(family, divergence=name, risk=c.number())
    return dc.divergence(name)(c.law(4), c.law(4))


def _accounting(c: Chooser) -> Any:
    profile = c.profile()
    what = c.below(6)
    if what == 0:
        return [profile.delta(c.number()), accounting.renyi(profile, order=c.number())]
    if what == 1:
        loss = accounting.composed([(profile, c.among([1, 5, 40, c.number()])), (c.profile(), 1 + c.below(3))])
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
    what = c.below(3)
    if what == 0:
        counts = (c.among([0, 5, 99, c.number()]), c.among([0, 5, 99, c.number()]))
        return audit.empirical_epsilon_lower_bound(
            *counts, draws=c.among([100, c.number()]), confidence=c.among([0.9, c.number()])
        )
    if what == 1:
        table = [[c.among([1, 2, 3, c.number()]) for _ in range(2)] for _ in range(2)]
        return audit.certificate_of(table, epsilon=c.number()).realised
    outputs = [c.among([*NUMBERS, "a", "bb", (1, 2), np.zeros(2)]) for _ in range(1 + c.below(3))]

    def mechanism(value: Any, n: int) -> list[Any]:
        return [outputs[place % len(outputs)] for place in range(n - value)]

    return audit.audited(mechanism, [0, c.below(2)], epsilon=c.number(), draws=200).empirical_epsilon_lower_bound


def _agreements(c: Chooser) -> Any:
    if c.below(2):
        return Agreement.from_json(json.dumps(c.json())).id
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


def _commands(c: Chooser) -> Any:
    options = [
        "--epsilon", "--outcomes", "--alpha", "--samples", "--delta", "--total", "--clients", "--risk", "--divergence", "--lower",
        "--upper", "--rounds", "--mechanism", "--purpose", "--input", "--draws", "--json", "--check", "--help",
    ]  # fmt: skip
    command = c.among(
        ["tradeoff", "account", "certify", "agree", "ledger show", "ledger create", "audit", "ledger", "nonsense", ""]
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*command.split()]
        if command in ("agree", "ledger show", "ledger create"):
            arguments.append(str(Path(folder) / "file"))
        if command == "audit":
            arguments.append(c.among(["os:listdir", "nowhere:f", "x", "json:loads", ":"]))
        if command == "certify":
            arguments += ["-o", str(Path(folder) / "out.json")]
        for _ in range(c.below(6)):
            option = c.among(options)
            arguments += [option] if option in ("--json", "--check", "--help") else [option, c.text()]
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 1, 2), (arguments, result.output)
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exception)
    assert "Traceback" not in result.output
    return None


ATTACKS: dict[str, Callable[[Chooser], Any]] = {
    "families": _families,
    "samplers": _samplers,
    "tradeoff": _tradeoff,
    "accounting": _accounting,
    "auditing": _auditing,
    "agreements": _agreements,
    "ledgers": _ledgers,
    "commands": _commands,
}


def attack(name: str, data: bytes) -> None:
    """Make the call that the bytes describe, and hold it to the contract."""
    with warnings.catch_warnings(), _alarm():
        warnings.simplefilter("error")
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


def soak(count: int, seed: int) -> None:
    """So many random attacks, spread over all entry points."""
    rng = np.random.default_rng(seed)
    names = [name for name in sorted(ATTACKS) if name not in ("ledgers", "commands")]
    for number in range(count):
        slow = number % 200 == 0  # files and commands cost a thousand times as much as a call
        name = ("ledgers", "commands")[number // 200 % 2] if slow else names[number % len(names)]
        data = rng.bytes(48)
        try:
            attack(name, data)
        except BaseException:
            os.write(2, f"attack({name!r}, {data!r})\n".encode())
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    soak(options.inputs, options.seed)
    print(f"{options.inputs:,} inputs: each a defined result or one of our errors")  # noqa: T201


if __name__ == "__main__":
    main()
