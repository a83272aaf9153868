"""`certificate`: the exact privacy of a finite mechanism, as a statement about the integers it draws with.

A mechanism on finitely many outcomes is a table of integer weights, a row for each input, all with the same sum. Its loss between these
inputs is the logarithm of one rational number,

    max over outcomes x and inputs i, j of  W_i(x) / W_j(x)

computed here in exact arithmetic and bracketed between two rationals. For a sampler the rows are extreme points of its family. If weights
are affine in the input, as for the linear mechanism, the largest ratio is attained at extreme points; for a projection they are the clients
that reach the box if any do. The integer box L <= W <= U bounds every possible input:

    realised  <=  true  <=  possible = log max U/L

For notions other than pure epsilon two corners of the box decide. All its distributions lie between L and ratio L, ratio = max U/L. At
every beta, no two of them are easier to distinguish than one pair on three points with the probabilities l and u of
`discreet.privacy.extreme_masses`. The notion is kept if its trade-off function lies below the corners (`discreet.privacy._notion`). Both
are rationals, so one comparison proves sum (W - e^beta W')_+ <= delta(beta) 2^62 for every beta at once.

Reports have one of two probabilities: N w for a block that does not hold the client's outcome, N w + (2^62 - N) K for one that does, in
units of 1/(2^62 b w) (`mechanisms/_reports/_sampler.py`). For two outcomes the blocks fall into four classes: they hold both, one or none
of them, and the sizes of the classes are the same for every pair. A certificate lists the classes as outcomes. In each class all blocks have
the same weights, so ratios are those of single reports. Its box bounds every client, since a report's probability is an average of the two.

A certificate is a JSON file that holds the integers; `discreet/audit/verify.py` re-verifies it with the standard library alone. One that is
for an agreement holds its id and the text that the id is the digest of, so that the script can check what was agreed on as well.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._base import OldName
from discreet._base.files import atomic_write, check_output_path
from discreet._base.labelled import refuse_masked_array
from discreet._base.numerics import log_bracket
from discreet._base.showing import with_short_repr
from discreet.agreement import Agreement
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.families import names_and_extreme_laws_of_band
from discreet.mechanisms import AnyFamily, JointSampler, Mechanism, ReportSampler, Sampler, refuse_non_sampler
from discreet.privacy import (
    Gaussian,
    Privacy,
    Pure,
    check_epsilon,
    extreme_masses,
    largest_ratio_for_epsilon,
    normal_quantile_below,
    privacy_document,
)
from discreet.release import TOTAL
from discreet.survey import SurveySampler

FORMAT = "discreet certificate"
VERSION = 1
WITH_PRIVACY = 2
MOST_INPUTS = 64
_LONGEST_TOTAL = 1 << 16  # bits


@with_short_repr
@dataclass(frozen=True)
class Certificate:
    """The integers of a mechanism, the claim, and what follows from them alone.

    Attributes:
        epsilon: the claim.
        mechanism: its name.
        inputs: a name for each row of weights.
        weights: positive integers, a row for each input and a column for each outcome.
        box: the lowest and the highest weight of each outcome, for any input; None where there are no such bounds.
        privacy: another notion that is claimed as well.
        agreement: the one that the certificate is for.
    """

    epsilon: float
    mechanism: str
    inputs: tuple[str, ...]
    weights: tuple[tuple[int, ...], ...]
    box: tuple[tuple[int, ...], tuple[int, ...]] | None
    privacy: Privacy | None = None
    agreement: Agreement | None = None

    @property
    def total(self) -> int:
        """The sum of every row."""
        return sum(self.weights[0])

    @property
    def worst(self) -> tuple[int, int, int]:
        """The outcome and the two inputs with the largest ratio of weights."""
        return max(
            (
                (x, column.index(max(column)), column.index(min(column)))
                for x, column in enumerate(zip(*self.weights, strict=True))
            ),
            key=lambda triple: self._weight_ratio_of_two_inputs(*triple),
        )

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of two inputs' weights on one outcome."""
        return self._weight_ratio_of_two_inputs(*self.worst)

    @property
    def realised_epsilon(self) -> tuple[Fraction, Fraction]:
        """Rationals that bracket the realised epsilon of these inputs."""
        return log_bracket(self.ratio)

    @property
    def largest_epsilon(self) -> tuple[Fraction, Fraction] | None:
        """Rationals that bracket the epsilon of any inputs, if the mechanism keeps to an integer box."""
        return None if self.box is None else log_bracket(_largest_ratio_in_box(self.box))

    possible = OldName("largest_epsilon")

    @property
    def holds(self) -> bool:
        """Whether the claim is certainly true: for all inputs if there is a box, else between the listed inputs."""
        bound = largest_ratio_for_epsilon(self.epsilon)
        pure = self.ratio <= bound and (self.box is None or _largest_ratio_in_box(self.box) <= bound)
        return pure and (self.privacy is None or (self.corners is not None and self.privacy.allows(*self.corners)))

    @property
    def corners(self) -> tuple[Fraction, Fraction] | None:
        """l and u, which decide whether all distributions in the box keep a notion other than pure epsilon; None without a box."""
        if self.box is None:
            return None
        return extreme_masses(Fraction(sum(self.box[0]), self.total), _largest_ratio_in_box(self.box))

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is certainly false."""
        return log_bracket(self.ratio)[0] > Fraction(self.epsilon)

    def _weight_ratio_of_two_inputs(self, outcome: int, first: int, second: int) -> Fraction:
        return Fraction(self.weights[first][outcome], self.weights[second][outcome])

    def to_json(self) -> str:
        """The certificate as text: rationals as "a/b", integers as they are."""
        outcome, first, second = self.worst
        record: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION if self.privacy is None else WITH_PRIVACY,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "inputs": list(self.inputs),
            "total": self.total,
            "weights": [list(row) for row in self.weights],
            "worst": {"outcome": outcome, "first_input": first, "second_input": second, "ratio": str(self.ratio)},
            "realised_epsilon": [str(bound) for bound in self.realised_epsilon],
            "holds": self.holds,
        }
        if self.box is not None:
            record["box"] = {"lower": list(self.box[0]), "upper": list(self.box[1])}
        if self.privacy is not None and self.corners is not None:
            record["privacy"] = privacy_document(self.privacy)
            record["corners"] = [str(corner) for corner in self.corners]
            quantile = normal_quantile_below(self.corners[0]) if isinstance(self.privacy, Gaussian) else None
            if quantile is not None:
                record["place"] = str(quantile)
        if self.agreement is not None:
            record["agreement"] = self.agreement.id
            record["agreement_text"] = self.agreement.canonical
        return json.dumps(record, indent=1) + "\n"

    def write(self, path: str | Path) -> None:
        """Write the JSON file that `verify.py` reads. It replaces only another certificate; missing folders are created."""
        with atomic_write(path, what="certificate", replace=_is_certificate_file(path), folders=True) as file:
            file.write(self.to_json().encode())

    refuted = OldName("is_refuted")
    realised = OldName("realised_epsilon")


def _largest_ratio_in_box(box: tuple[tuple[int, ...], tuple[int, ...]]) -> Fraction:
    """The largest ratio of an upper to a lower bound of the same outcome."""
    return max(map(Fraction, box[1], box[0]))


def _is_certificate_file(path: str | Path) -> bool:
    """Whether a plain file was written by `write`; only its beginning is read."""
    start = f'{{\n "format": {json.dumps(FORMAT)},'.encode()
    try:
        check_output_path(path, replace=True)
        with open(path, "rb") as file:
            return file.read(len(start)) == start
    except (OSError, ValueError):
        return False


def certificate_of(
    weights: ArrayLike, *, epsilon: float, mechanism: str = "", inputs: Sequence[str] = ()
) -> Certificate:
    """The certificate of any finite mechanism, from its table of weights.

    Args:
        weights: positive integers (inputs, outcomes); every row has the same total.
        epsilon: the claim.
        mechanism: its name.
        inputs: a name for each row.

    Returns:
        The certificate.

    Raises:
        DiscreetError: for weights that are no such table.
    """
    refuse_masked_array(weights, "weights")
    try:
        table = [list(row) for row in np.asarray(weights, dtype=object)]
    except (TypeError, ValueError):
        raise DiscreetError(f"weights = {weights!r} is not a table of whole numbers, a row for each input") from None
    rows = [[_parse_positive_whole_weight(weight, i, x) for x, weight in enumerate(row)] for i, row in enumerate(table)]
    check_kind("mechanism", mechanism, str, "pass a name for it")
    check_kind("inputs", inputs, Sequence, "pass a name for each row of weights")
    if len(rows) < 2 or not rows[0] or len({len(row) for row in rows}) != 1:
        raise DiscreetError("weights needs at least two rows (inputs) of equal length, with at least one outcome")
    totals = {sum(row) for row in rows}
    if len(totals) != 1:
        raise DiscreetError(f"rows of weights sum to {sorted(totals)[:3]}; every input has the same total")
    names = tuple(inputs) or tuple(f"input {number}" for number in range(len(rows)))
    if len(names) != len(rows):
        raise DiscreetError(f"inputs has {len(names)} names for {len(rows)} rows of weights")
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise DiscreetError("inputs is not a list of texts that differ; give every row of weights a name of its own")
    return Certificate(check_epsilon(epsilon), mechanism, names, tuple(map(tuple, rows)), None)


def certificate(
    sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler,
    *,
    epsilon: float | None = None,
    privacy: Privacy | None = None,
    most_inputs: int = MOST_INPUTS,
    agreement: Agreement | None = None,
) -> Certificate:
    """The certificate of a sampler: the weights of extreme clients of its family, and its integer box.

    On a continuous family the outcomes are the cells or points that it releases by, and the clients are laws on those. For a `JointSampler`
    the outcomes are the multisets, and the clients are the same as for one sample. For a `ReportSampler` they are the classes of blocks that
    contain both, one or none of two outcomes, and the clients hold one of these for certain. For a `SurveySampler` they are the same of each
    part, and the clients hold the first row, or the last one: every column at its first outcome, or at its last.

    Args:
        sampler: a `Sampler`, a `JointSampler`, a `ReportSampler` or a `SurveySampler`.
        epsilon: the claim, by default the sampler's own. For a sampler with another promise it is the pure budget of its box, and its own
            notion is claimed as well.
        privacy: a notion to claim in place of the sampler's own.
        most_inputs: how many rows there are at most, evenly spread over the outcomes.
        agreement: the one that the certificate is for, whose id it then carries. The sampler must be the one agreed on, and the claim is
            the agreement's.

    Returns:
        The certificate.

    Raises:
        DiscreetError: for what is not a sampler, another sampler than the one agreed on, and a notion that no file can state.
    """
    if agreement is not None:
        _refuse_claim_or_foreign_sampler(agreement, sampler, epsilon, privacy)
    if isinstance(sampler, SurveySampler):
        return _make_survey_certificate(sampler, epsilon, privacy, agreement)
    if isinstance(sampler, ReportSampler):
        return _make_report_certificate(sampler, epsilon, privacy, agreement)
    if not isinstance(sampler, JointSampler):
        if not isinstance(sampler, (Sampler, type)) and isinstance(sampler, Mechanism):
            raise DiscreetError(
                f"{sampler!r} states its law in floating point and has no integers to certify; make it an OwnSampler, or audit its samples: "
                "black_box_audit(mechanism)"
            )
        refuse_non_sampler(sampler)
    size, most = sampler.box.size, check_count("most_inputs", most_inputs)
    mu = np.broadcast_to(sampler.carrier.reference, sampler.carrier.size).astype(np.float64)
    names, laws = names_and_extreme_laws_of_band(mu, sampler.family.bounds, most)
    weights = sampler.weights(laws) if isinstance(sampler, JointSampler) else sampler.weights_on_atoms(laws)
    rows = weights.tolist()
    box = tuple(
        tuple(np.broadcast_to(bound, size).tolist()) for bound in (sampler.lattice.lower, sampler.lattice.upper)
    )
    claim = sampler.epsilon if epsilon is None else check_epsilon(epsilon)
    if privacy is not None:
        check_kind("privacy", privacy, Privacy, "pass Approximate(...), Gaussian(...) or Functional(...)")
    notion = sampler.privacy if privacy is None and epsilon is None else privacy
    if isinstance(notion, Pure):
        claim, notion = (claim if privacy is None else notion.epsilon), None
    elif notion is not None:
        privacy_document(notion)  # an error for a notion that no file can state
    return Certificate(claim, repr(sampler), names, tuple(map(tuple, rows)), (box[0], box[1]), notion, agreement)


def _make_report_certificate(
    sampler: ReportSampler, epsilon: float | None, privacy: Privacy | None, agreement: Agreement | None
) -> Certificate:
    """The certificate of two clients that hold different outcomes for certain; which ones does not matter."""
    claim = _claimed_pure_epsilon(sampler, epsilon, privacy)
    if sampler.family.size < 2:
        raise DiscreetError("a single outcome has a single report; there are no two clients to compare")
    blocks, uniform = sampler.blocks, sampler.uniform_weight
    low = uniform * blocks.width
    high = low + (TOTAL - uniform) * blocks.point_count
    pair_blocks = blocks.blocks_per_pair
    single_blocks = blocks.blocks_per_point - pair_blocks
    classes = [
        (pair_blocks, high, high),
        (single_blocks, high, low),
        (single_blocks, low, high),
        (blocks.block_count - pair_blocks - 2 * single_blocks, low, low),
    ]
    present_classes = [block_class for block_class in classes if block_class[0]]
    rows = tuple(
        tuple(block_class[0] * block_class[1 + client] for block_class in present_classes) for client in range(2)
    )
    box = (
        tuple(number * low for number, _, _ in present_classes),
        tuple(number * high for number, _, _ in present_classes),
    )
    names = ("one outcome for certain", "another outcome for certain")
    return Certificate(claim, repr(sampler), names, rows, box, None, agreement)


def _claimed_pure_epsilon(
    sampler: ReportSampler | SurveySampler, epsilon: float | None, privacy: Privacy | None
) -> float:
    """The epsilon that is claimed of reports."""
    if privacy is not None and not isinstance(privacy, Pure):
        raise DiscreetError(f"privacy = {privacy}: reports are certified for pure epsilon; pass epsilon=")
    if isinstance(privacy, Pure):
        return privacy.epsilon
    return sampler.epsilon if epsilon is None else check_epsilon(epsilon)


def _make_survey_certificate(
    sampler: SurveySampler, epsilon: float | None, privacy: Privacy | None, agreement: Agreement | None
) -> Certificate:
    """The certificate of two clients that hold the first and the last row for certain.

    The box is that of any two clients: it holds or misses each class.
    """
    claim, size = _claimed_pure_epsilon(sampler, epsilon, privacy), sampler.survey.columns.size
    classes = sampler.report_classes((0, size - 1))
    total = math.lcm(
        TOTAL,
        *(
            chance.denominator
            for report_class in classes
            for chance in (*report_class.chances, report_class.least, report_class.most)
        ),
    )
    if total.bit_length() > _LONGEST_TOTAL:
        raise DiscreetError(
            f"the probabilities of this survey have a common denominator of {total.bit_length():,} bits, too long for a certificate; "
            "sampler.probability(report, row) gives each as a rational"
        )
    rows = tuple(tuple(int(report_class.chances[client] * total) for report_class in classes) for client in range(2))
    box = (
        tuple(int(report_class.least * total) for report_class in classes),
        tuple(int(report_class.most * total) for report_class in classes),
    )
    return Certificate(
        claim, repr(sampler), ("the first row for certain", "the last row for certain"), rows, box, None, agreement
    )


def _refuse_claim_or_foreign_sampler(
    agreement: Agreement,
    sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler,
    epsilon: float | None,
    privacy: Privacy | None,
) -> None:
    check_kind("agreement", agreement, Agreement, "pass Agreement.read(path)")
    if epsilon is not None or privacy is not None:
        raise DiscreetError("agreement states the claim; leave out epsilon and privacy")
    agreement.check_sampler(sampler)


def _parse_positive_whole_weight(weight: Any, row: int, outcome: int) -> int:
    try:
        number = int(weight)
    except (TypeError, ValueError, OverflowError):
        number = 0
    if isinstance(weight, (bool, str, bytes)) or number != weight or number < 1:
        raise DiscreetError(
            f"weights[{row}][{outcome}] = {weight!r} is not a positive whole number; an outcome that one input can never give has "
            "infinite epsilon"
        )
    return number
