"""Reports under the black-box auditor: those that are released, and those of three samplers with a planted fault.

python -m tests.mechanisms.reports.audits          ten million draws of each client from the operating system's entropy, for the soak

An audit sees which of two outcomes a report's block holds, and on a line of at most 128 points the place of the first one relative to the
block: the events with the largest ratio are unions of these. Where there are few reports it sees the report itself.

The faults are off by one in the window c:

* `weight for c + 1`: N is worked out for a window that is one larger. A report has a ratio of 1 + (E - 1)(c + 1)/c: not private enough.
* `draw with c - 1`: own blocks are drawn with a window that is one smaller. Then it is 1 + (E - 1) c/(c - 1).
* `draw with c + 1`: with one that is larger. This is more private than promised, so no audit refutes it; estimates are biased.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import Simplex
from discreet.audit import BlackBoxAudit, black_box_audit
from discreet.mechanisms import AffineBlocks, ReportSampler
from discreet.release import Randomness, SystemEntropy, draw_integers_below

SETTINGS = ((8, 1.0), (64, 0.5), (104, 1.0), (104, 4.0), (1000, 2.0), (10, 4.0), (100_000, 1.0))
"""Outcomes and epsilon: masks, affine blocks on a line and in space, ranks, values."""
FAULTS = ((28, 1.0), (2, 4.0))
"""Windows c and epsilon of samplers on 104 outcomes that get a fault: it costs 0.02 to 0.04, or 0.4 to 0.7, of epsilon."""
UNDETECTED = "draw with c + 1"
_FEW_REPORTS, _SHORT_LINE = 1000, 128
_TOGETHER = 1 << 18

Draw = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class FaultySampler:
    """Affine blocks whose draw goes by a window or a weight of other blocks."""

    sampler: ReportSampler
    own: AffineBlocks
    weight: int

    def draw(self, outcome: int, count: int, randomness: Randomness) -> np.ndarray:
        """So many reports of a client that holds one outcome."""
        uniform = self.sampler.blocks.reports_of_ranks(
            draw_integers_below(randomness, self.sampler.blocks.block_count, count)
        )
        rank = draw_integers_below(randomness, self.own.blocks_per_point, count)
        own = self.own.reports_of_ranks_holding_outcomes(np.full(count, outcome), rank)
        return np.where(randomness.integers(count) >= self.weight, own, uniform)


def faulty_samplers(window: int, epsilon: float) -> dict[str, FaultySampler]:
    """The three by name, and one without a fault."""
    narrow, good, wide = (AffineBlocks(104, 107, 1, window + more) for more in (-1, 0, 1))
    sampler, other = (ReportSampler(Simplex(104), epsilon=epsilon, blocks=each) for each in (good, wide))
    return {
        "no fault": FaultySampler(sampler, good, sampler.uniform_weight),
        "weight for c + 1": FaultySampler(sampler, good, other.uniform_weight),
        "draw with c - 1": FaultySampler(sampler, narrow, sampler.uniform_weight),
        UNDETECTED: FaultySampler(sampler, wide, sampler.uniform_weight),
    }


def shown_reports(sampler: ReportSampler, reports: np.ndarray) -> np.ndarray:
    """What the auditor sees of reports: the number itself where there are few, else what they say of outcomes 0 and 1."""
    if sampler.blocks.block_count <= _FEW_REPORTS:
        return np.searchsorted(sampler.reports(), reports)
    blocks = sampler.blocks
    held = [blocks.holds(reports, np.array([x])).astype(np.int64) for x in (0, 1)]
    if isinstance(blocks, AffineBlocks) and blocks.point_count <= _SHORT_LINE:
        vectors, shifts = blocks.vectors_and_shifts_of_reports(reports)
        held[0] = (blocks.inner_product(vectors, np.array([0])) + shifts) % blocks.prime
    return held[0] * 2 + held[1]


def audit_sampler(sampler: ReportSampler, draw: Draw, draws: int, confidence: float = 0.9999) -> BlackBoxAudit:
    """An audit of two clients who hold outcome 0 and outcome 1."""

    def drawn(outcome: int, count: int) -> np.ndarray:
        parts = [min(_TOGETHER, count - start) for start in range(0, count, _TOGETHER)]
        return np.concatenate([shown_reports(sampler, draw(outcome, part)) for part in parts])

    return black_box_audit(drawn, [0, 1], epsilon=sampler.epsilon, draws=draws, confidence=confidence)


def support_error(faulty: FaultySampler, reports: np.ndarray, outcome: int) -> float:
    """How far the support of the outcome that every client holds is from what it should be, in standard deviations."""
    held, expected = faulty.sampler.holds(reports, [outcome]).mean(), faulty.sampler.chances.inside
    return float((held - expected) / np.sqrt(expected * (1.0 - expected) / len(reports)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10**7)
    options = parser.parse_args()
    entropy = SystemEntropy()
    wrong: list[str] = []

    def reported(name: str, sampler: ReportSampler, draw: Draw, refuted: bool) -> None:
        found: Any = audit_sampler(sampler, draw, options.draws)
        bound, said = found.empirical_epsilon_lower_bound, "refuted" if found.is_refuted else "not refuted"
        print(f"{name}, epsilon {sampler.epsilon:g}: at least {bound:.4f}, {said}", flush=True)  # noqa: T201
        if found.is_refuted != refuted:
            wrong.append(name)

    for size, epsilon in SETTINGS:
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)

        def draw(outcome: int, count: int, sampler: ReportSampler = sampler) -> np.ndarray:
            return sampler.release_records(np.full(count, outcome))

        reported(f"{size:,} outcomes, {sampler.blocks.name}", sampler, draw, refuted=False)
    for window, epsilon in FAULTS:
        for name, faulty in faulty_samplers(window, epsilon).items():

            def draw_faulty(outcome: int, count: int, faulty: FaultySampler = faulty) -> np.ndarray:
                return faulty.draw(outcome, count, entropy)

            reported(f"c = {window}, {name}", faulty.sampler, draw_faulty, refuted=name not in ("no fault", UNDETECTED))
    assert not wrong, wrong
    number = len(SETTINGS) + len(FAULTS) * len(faulty_samplers(*FAULTS[0]))
    print(f"{number} audits of {options.draws:,} draws of each client, all as they should be")  # noqa: T201


if __name__ == "__main__":
    main()
