"""`ReportSampler`: reports of blocks of outcomes, which hold the client's own draw more often than other outcomes; for populations alone.

    Q(B) = beta/b + (1 - beta) P(B)/r,      beta = N/2^62,   N = ceil(2^62 b/(b + (E - 1) r)),   E a rational at most e^epsilon

There are b blocks, r of which hold a given outcome; P(B) is the client's mass on B. The draw takes three steps. A uniform word of 62 bits is
compared with N. If it is smaller, the report is a uniform block. Else x is drawn from P, and the report is a uniform block that holds x.

**Privacy, in rationals, for any draw of x.** Let p(B) in [0, 1] be the probability that x lies in B, *however* x is drawn, also in floating
point. Then Q(B) = beta/b + (1 - beta) p(B)/r, exactly: uniform integers are drawn by rejection (`discreet.release._randomness`), and
ranks are mapped to blocks one to one. So beta/b <= Q(B) <= beta/b + (1 - beta)/r, and for any two clients and any report the ratio is at
most 1 + (1 - beta) b/(beta r). By the choice of N, beta >= b/(b + (E - 1) r), that is (1 - beta) b <= beta (E - 1) r, so it is at most
1 + (E - 1) = E <= e^epsilon.   QED

x may also be padding. A client that holds padding keeps its privacy, and is refused because estimates would be wrong. The mechanism is linear
in P: it is the linear mechanism on blocks [paper, App. C.2.1].
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import release
from discreet._base import OldName
from discreet._base.kernels import read_only_view
from discreet._base.labelled import LawLike
from discreet._base.showing import html_table_for_notebook
from discreet.domain import Domain
from discreet.errors import PROBABILITY, DiscreetError, check_count, check_kind, check_list
from discreet.families import Simplex, refuse_bad_laws
from discreet.mechanisms._mechanism_names import REPORTS_MECHANISM
from discreet.mechanisms._reports._blocks import (
    AffineBlocks,
    BlockFamily,
    Integers,
    MaskedSubsets,
    RankedReports,
    RankedSubsets,
    Reports,
    SingleOutcomes,
)
from discreet.mechanisms._reports._choice import Chances, best_subset_width_and_variance, choose_blocks
from discreet.privacy import Privacy, Pure, chosen_privacy, largest_ratio_for_epsilon
from discreet.privacy.tradeoff import warn_of_weak_privacy
from discreet.release import (
    TOTAL,
    Randomness,
    RunKey,
    client_message,
    draw_integers_below,
    entropy_or_seeded_randomness,
    integer_law_of_counts,
    keyed_word_rows,
    keyed_word_stream,
    next_integer_below,
)

Floats = NDArray[np.float64]
LARGEST_OUTPUT = 1 << 20  # blocks whose probabilities are written down one by one
# of e^epsilon over 1: below it no number of clients tells anything, and N could be 2^62
_LEAST_GROWTH = Fraction(1, 10**12)
_TOGETHER = 1 << 16  # clients that are drawn at once: what they need stays in cache


@final
class ReportSampler:
    """The private report from which a population's shares are estimated with few clients: a block of outcomes, as one whole number.

    A report is not a sample of the client's records: it names many outcomes at once, and one of them may be the client's. Where epsilon is
    large for the number of outcomes, a block is a single outcome, and a report is its number.

    Args:
        family: which outcomes there are: `Simplex(...)`, or a `Domain`.
        epsilon: the privacy budget of one report, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        privacy: `Pure(epsilon)`; other notions have no blocks.
        blocks: those that were agreed on (`agreement.sampler()` passes them). By default those with the smallest variance.

    Raises:
        DiscreetError: for a family that is not a simplex, an epsilon out of range or so small that a report says nothing, another notion
            of privacy, and blocks on another number of outcomes.

    Example:
        >>> sampler = ReportSampler(Simplex(["red", "green", "blue"]), epsilon=1.0)
        >>> report = sampler.release([0.7, 0.2, 0.1])
    """

    name: ClassVar[str] = REPORTS_MECHANISM

    plan = OldName("draw_plan")

    def __init__(
        self,
        family: Simplex[Any] | Domain[Any],
        *,
        epsilon: float | None = None,
        privacy: Privacy | None = None,
        blocks: BlockFamily | None = None,
    ) -> None:
        if not isinstance(family, (Simplex, Domain)):
            raise DiscreetError(f"family = {family!r} is not a Simplex; reports are for every distribution on outcomes")
        self._family = family if isinstance(family, Simplex) else Simplex(family)
        promise = chosen_privacy(epsilon, privacy)
        if not isinstance(promise, Pure):
            raise DiscreetError(f"privacy = {promise!r}: reports are for pure privacy; pass epsilon= or Pure(...)")
        self._privacy = promise
        self._bound = fraction_below_exp_epsilon(promise)
        if blocks is not None and blocks.size != self._family.size:
            raise DiscreetError(f"blocks are on {blocks.size:,} outcomes, the family has {self._family.size:,}")
        self._blocks = choose_blocks(self._family.size, self._bound) if blocks is None else blocks
        self._uniform_weight = least_weight_of_uniform_report(self._blocks, self._bound)
        warn_of_weak_privacy(promise)

    @property
    def family(self) -> Simplex[Any]:
        """Which outcomes there are."""
        return self._family

    @property
    def privacy(self) -> Pure:
        """What one report promises."""
        return self._privacy

    @property
    def epsilon(self) -> float:
        """The budget of one report."""
        return self._privacy.epsilon

    @property
    def blocks(self) -> BlockFamily:
        """The blocks that a report can name."""
        return self._blocks

    @property
    def uniform_weight(self) -> int:
        """N: how many of the 2^62 words give a block that does not depend on the client."""
        return self._uniform_weight

    @cached_property
    def exact_chances(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities that a report holds an outcome: one that the client has for certain, and one that it does not have."""
        beta = Fraction(self._uniform_weight, TOTAL)
        uniform = beta * self._blocks.chance_of_holding_point
        return uniform + (1 - beta), uniform + (1 - beta) * self._blocks.chance_of_holding_second_point

    @cached_property
    def chances(self) -> Chances:
        """The probabilities that a report holds an outcome, in floating point, with the variance of a share."""
        return Chances(*map(float, self.exact_chances))

    def variance(self, share: float | None = None) -> float:
        """The variance of an estimated share times the number of clients.

        Args:
            share: the share of the outcome in the population that clients are drawn from; by default 1/k, where the sum over outcomes is
                largest.

        Returns:
            The variance of one client's contribution; the standard error of n clients is the square root of it over n.

        Raises:
            DiscreetError: for a share that is not in [0, 1].
        """
        return self.chances.share_estimate_variance(
            1.0 / self._family.size if share is None else PROBABILITY.check("share", share)
        )

    @cached_property
    def excess(self) -> float:
        """`variance()` over that of the best subset selection on the same outcomes: 1 where it is that."""
        return (
            1.0
            if self._family.size == 1
            else self.variance() / best_subset_width_and_variance(self._family.size, float(self._bound))[1]
        )

    @cached_property
    def draw_plan(self) -> release.ReportPlan:
        """The numbers that compiled code needs to draw reports, the same for all clients."""
        blocks, empty = self._blocks, np.zeros((1, 1), dtype=np.uint64)
        kind, prime, digits, window, binomials = release.SINGLE_BLOCKS, 2, 1, 1, empty
        match blocks:
            case MaskedSubsets():
                kind, binomials = release.MASKED_BLOCKS, blocks.binomials
            case RankedSubsets():
                kind, binomials = release.RANKED_BLOCKS, blocks.binomials.view(np.uint64)
            case AffineBlocks():
                kind, prime, digits, window = release.AFFINE_BLOCKS, blocks.prime, blocks.digits, blocks.window
        return release.ReportPlan(
            size=self._family.size,
            kind=kind,
            uniform_weight=self._uniform_weight,
            blocks=blocks.block_count,
            holding=blocks.blocks_per_point,
            width=blocks.width,
            prime=prime,
            digits=digits,
            window=window,
            binomials=read_only_view(binomials),
        )

    def by_values(self) -> ReportSampler:
        """This sampler with single outcomes for blocks: k-ary randomised response, the linear mechanism of a draw."""
        return ReportSampler(self._family, privacy=self._privacy, blocks=SingleOutcomes(self._family.size))

    def release(self, p: LawLike, *, rng: np.random.Generator | None = None) -> int | Reports:
        """One private report for each client, from the operating system's entropy. Each call spends epsilon anew.

        Args:
            p: the distribution of one client or of many: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
            rng: a seeded generator, for experiments; the release is then NOT private, and warns so.

        Returns:
            A whole number, or an array of uint64 with one for each client. `outcomes_of` says what it stands for.

        Raises:
            DiscreetError: if p is not a distribution, before anything is drawn.
        """
        laws = self._family.as_rows(p)
        refuse_bad_laws(laws)
        rows, randomness = laws.reshape(-1, self._family.size), entropy_or_seeded_randomness(rng)
        step = max(1, _TOGETHER // 8)
        parts = (rows[start : start + step] for start in range(0, len(rows), step))
        batches = [
            self._draw_reports_for_outcomes(draw_outcomes_from_laws(part, randomness), randomness) for part in parts
        ]
        reports = np.concatenate(batches) if batches else np.zeros(0, dtype=np.uint64)
        return reports.reshape(laws.shape[:-1]) if laws.ndim > 1 else int(reports[0])

    def release_number(self, p: LawLike) -> int:
        """One report of one client, by the same steps for every client and every block, so that its time reveals neither.

        A uniform block and one that holds the client's outcome are both drawn, and one of them is dropped. Devices draw like this, because
        their collector sees when a report arrives: to know which of the two was sent is to know more than epsilon allows.

        Args:
            p: the distribution of the client, as for `release`.

        Returns:
            The report.

        Raises:
            DiscreetError: if p is not the distribution of one client, before anything is drawn.
        """
        laws, randomness = self._family.as_rows(p), entropy_or_seeded_randomness(None)
        refuse_bad_laws(laws)
        if laws.ndim != 1:
            raise DiscreetError(f"p holds laws of shape {laws.shape[:-1]}; it is to be the law of one client")
        outcome = draw_outcomes_from_laws(laws[None, :], randomness)
        is_own = randomness.integers(1) >= self._uniform_weight
        uniform = self._blocks.reports_of_ranks(draw_integers_below(randomness, self._blocks.block_count, 1))
        holding = self._blocks.reports_of_ranks_holding_outcomes(
            outcome, draw_integers_below(randomness, self._blocks.blocks_per_point, 1)
        )
        return int(np.where(is_own, holding, uniform)[0])

    def release_records(self, records: Iterable[Any], *, rng: np.random.Generator | None = None) -> Reports:
        """One private report for each record, which a client drew from its own distribution: the fast way for millions of clients.

        Args:
            records: one record of each client, as labels or outcome numbers.
            rng: a seeded generator, for experiments; the release is then NOT private.

        Returns:
            An array (n,) of uint64.

        Raises:
            DiscreetError: for records outside the outcomes.
        """
        numbers, randomness = self._family.numbers(records), entropy_or_seeded_randomness(rng)
        reports = np.empty(len(numbers), dtype=np.uint64)
        for start in range(0, len(numbers), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            reports[part] = self._draw_reports_for_outcomes(numbers[part], randomness)
        return reports

    def release_keyed(self, key: RunKey, client: int | str, outcomes: Sequence[int], counts: Sequence[int]) -> int:
        """The report of one client as a function of a secret run key and its data: the same key and data give the same report.

        The words of `discreet.release._randomness` decide, in this order: whether the block is uniform (below N), which record is drawn
        (uniform below the sum of the counts, outcomes in increasing order), and which block (uniform below b or r).

        Args:
            key: of one question in one round of one agreement.
            client: who it is.
            outcomes: the numbers of the outcomes that it holds.
            counts: how often, at least 1.

        Returns:
            The report.

        Raises:
            DiscreetError: for outcomes or counts out of range, a client that is no name, and a key that is none.
        """
        check_kind("key", key, RunKey, "secret.run_key(...) makes one")
        outcome_numbers = check_list("outcomes", outcomes, "pass the numbers of the outcomes that the client holds")
        outcome_counts = check_list("counts", counts, "pass how often the client holds each outcome")
        for outcome in outcome_numbers:
            check_count("outcome", outcome, least=0, most=self._family.size - 1)
        for count in outcome_counts:
            check_count("count", count, least=0, most=TOTAL)
        if len(outcome_numbers) != len(outcome_counts):
            raise DiscreetError(
                f"there are {len(outcome_numbers)} outcomes and {len(outcome_counts)} counts; give one count for each outcome"
            )
        law = integer_law_of_counts(outcome_numbers, outcome_counts)
        if not require_drawable_record_total(sum(law.values())):
            raise DiscreetError("the client has no records; leave it out")
        return self._draw_keyed_report(
            key, client_message(client, outcome_numbers, outcome_counts), list(law), list(law.values())
        )

    def release_messages(
        self, key: RunKey, messages: list[bytes], laws: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint64]]]
    ) -> Reports:
        """The reports of many clients that `release_keyed` gives one by one, from their canonical inputs and laws in whole numbers.

        A client without records reports a uniform block: its first word decides nothing, the next ones which block.

        Args:
            key: of one question in one round of one agreement.
            messages: the canonical input of each client.
            laws: the outcomes of each in increasing order, and how often each counts.

        Returns:
            An array of uint64.
        """
        words = keyed_word_rows(key, messages)
        outcomes, totals = np.zeros(len(laws), dtype=np.int64), np.zeros(len(laws), dtype=np.int64)
        for row, (_, numbers) in enumerate(laws):
            totals[row] = require_drawable_record_total(int(numbers.sum(dtype=np.uint64)))
        is_own = (words[:, 0] >= self._uniform_weight) & (totals > 0)
        needs_redraw = np.zeros(len(laws), dtype=np.bool_)  # of which words of the first hash are drawn anew
        reports, own_rows, other_rows = (
            np.empty(len(laws), dtype=np.uint64),
            np.flatnonzero(is_own),
            np.flatnonzero(~is_own),
        )
        b, r = self._blocks.block_count, self._blocks.blocks_per_point
        needs_redraw[other_rows] = words[other_rows, 1] >= (TOTAL // b) * b
        needs_redraw[own_rows] = (words[own_rows, 1] >= (TOTAL // totals[own_rows]) * totals[own_rows]) | (
            words[own_rows, 2] >= (TOTAL // r) * r
        )
        reports[other_rows] = self._blocks.reports_of_ranks(words[other_rows, 1] % b)
        record_numbers = words[own_rows, 1] % totals[own_rows]
        for row, record_number in zip(own_rows.tolist(), record_numbers.tolist(), strict=True):
            client_outcomes, numbers = laws[row]
            outcomes[row] = (
                client_outcomes[np.searchsorted(np.cumsum(numbers), record_number, side="right")]
                if len(client_outcomes) > 1
                else client_outcomes[0]
            )
        reports[own_rows] = self._blocks.reports_of_ranks_holding_outcomes(outcomes[own_rows], words[own_rows, 2] % r)
        for row in np.flatnonzero(needs_redraw).tolist():
            client_outcomes, numbers = laws[row]
            reports[row] = self._draw_keyed_report(key, messages[row], client_outcomes.tolist(), numbers.tolist())
        return reports

    def _draw_keyed_report(self, key: RunKey, message: bytes, outcomes: list[int], counts: list[int]) -> int:
        """One report from the words of a client."""
        words, total = keyed_word_stream(key, message), require_drawable_record_total(sum(counts))
        if next(words) < self._uniform_weight or not total:
            return int(
                self._blocks.reports_of_ranks(
                    _as_one_element_array(next_integer_below(words, self._blocks.block_count))
                )[0]
            )
        outcome = outcomes[bisect_right(list(accumulate(counts)), next_integer_below(words, total))]
        rank = next_integer_below(words, self._blocks.blocks_per_point)
        return int(
            self._blocks.reports_of_ranks_holding_outcomes(_as_one_element_array(outcome), _as_one_element_array(rank))[
                0
            ]
        )

    def _draw_reports_for_outcomes(self, outcomes: Integers, randomness: Randomness) -> Reports:
        """A report for each drawn outcome."""
        return randomise_outcomes_into_reports(self._blocks, self._uniform_weight, outcomes, randomness)

    def probability(self, report: int, outcome: Any) -> Fraction:
        """The exact probability of a report from a client that has one outcome for certain.

        Args:
            report: a report.
            outcome: a label or an outcome number.

        Returns:
            A rational.

        Raises:
            DiscreetError: for numbers that are not reports, and for unknown outcomes.
        """
        beta = Fraction(self._uniform_weight, TOTAL)
        holds = self._blocks.holds(self._require_one_report(report), self._family.numbers([outcome]))[0]
        own_part = (1 - beta) / self._blocks.blocks_per_point if holds else Fraction(0)
        return beta / self._blocks.block_count + own_part

    def reports(self) -> Reports:
        """Every report there is, in order, if they are at most 2^20."""
        if self._blocks.block_count > LARGEST_OUTPUT:
            raise DiscreetError(
                f"there are {self._blocks.block_count:,} reports; they are listed up to {LARGEST_OUTPUT:,}"
            )
        return self._blocks.all_reports()

    def output(self, p: LawLike) -> Floats:
        """The law of a report, in the order of `reports()`.

        Args:
            p: the distribution of one client or of many, as for `release`.

        Returns:
            Probabilities (..., b).

        Raises:
            DiscreetError: if p is not a distribution, and for more than 2^20 reports.
        """
        laws, reports = self._family.as_rows(p), self.reports()
        refuse_bad_laws(laws)
        beta = self._uniform_weight / TOTAL
        masses = np.zeros((*laws.shape[:-1], len(reports)))
        for outcome in range(self._family.size):
            masses[..., self._blocks.holds(reports, np.array([outcome]))] += laws[..., outcome, None]
        return beta / self._blocks.block_count + (1.0 - beta) * masses / self._blocks.blocks_per_point

    def check_reports(self, reports: ArrayLike) -> Reports:
        """Reports as uint64, or an error that shows the first number that is not a report.

        Args:
            reports: whole numbers.

        Returns:
            The same as an array of uint64.

        Raises:
            DiscreetError: for numbers that name no block.
        """
        return self._blocks.check_reports(reports)

    def holds(self, reports: ArrayLike, outcomes: Iterable[Any]) -> NDArray[np.bool_]:
        """Whether each report's block holds the outcome beside it.

        Args:
            reports: reports (..., n).
            outcomes: n labels or outcome numbers, or one in a list. As arrays do, one in a list stands for n.

        Returns:
            An array of booleans; for reports (m, 1) and n outcomes a table (m, n).

        Raises:
            DiscreetError: for numbers that are not reports, and for unknown outcomes.
        """
        checked_reports, numbers = self.check_reports(reports), self._family.numbers(outcomes)
        if checked_reports.shape[-1:] not in ((), (1,)) and len(numbers) not in (1, checked_reports.shape[-1]):
            raise DiscreetError(
                f"there are {checked_reports.shape[-1]:,} reports and {len(numbers):,} outcomes; "
                "give one outcome for each report, or one in a list"
            )
        return self._blocks.holds(checked_reports, numbers)

    def _require_one_report(self, report: Any) -> Reports:
        """The report in an array of one."""
        checked_reports = self.check_reports([report])
        if checked_reports.shape != (1,):
            raise DiscreetError(f"report = {report!r} is not one report; pass one whole number")
        return checked_reports

    def outcomes_of(self, report: int) -> NDArray[Any]:
        """The outcomes that a report names, as labels where there are some; at most one is the client's own.

        Args:
            report: a report.

        Returns:
            An array of outcomes.

        Raises:
            DiscreetError: for a number that is not a report.
        """
        return np.asarray(self._family.to_samples(self._blocks.outcomes_of(int(self._require_one_report(report)[0]))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._family!r}, epsilon={self.epsilon:g})"

    def _repr_html_(self) -> str:
        promise = f"whatever two clients hold, no report is more than e^{self.epsilon:.6g} times as likely from one as from the other"
        rows = [("clients", repr(self._family)), ("epsilon", f"{self.epsilon:.6g}"), ("promise", promise)]
        rows.append(("report", self._blocks.report_description))
        return html_table_for_notebook(type(self).__name__, rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReportSampler) and self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash((ReportSampler, self._comparison_key()))

    def _comparison_key(self) -> tuple[Simplex[Any], Pure, BlockFamily]:
        return self._family, self._privacy, self._blocks


def draw_outcomes_from_laws(rows: Floats, randomness: Randomness) -> Integers:
    """One outcome of each row of probabilities, by the inverse of its distribution function. Privacy does not depend on it."""
    sums = np.cumsum(rows, axis=1)
    total = sums[:, -1]
    points = (randomness.integers(len(rows)) >> 9) * 2.0**-53 * total
    points = np.minimum(points, np.nextafter(total, 0.0))  # or rounding could pass the last outcome
    return np.asarray(np.argmax(sums > points[:, None], axis=1))


def fraction_below_exp_epsilon(promise: Pure) -> Fraction:
    """E, a rational at most e^epsilon; an error for an epsilon at which no report says anything."""
    bound = largest_ratio_for_epsilon(promise.epsilon)
    if bound - 1 < _LEAST_GROWTH:
        raise DiscreetError(f"epsilon = {promise.epsilon:g}: a report would say nothing; take a larger epsilon")
    return bound


def least_weight_of_uniform_report(blocks: RankedReports, bound: Fraction) -> int:
    """N: the least integer with N/2^62 >= b/(b + (E - 1) r)."""
    beta = Fraction(blocks.block_count) / (blocks.block_count + (bound - 1) * blocks.blocks_per_point)
    return -(-TOTAL * beta.numerator // beta.denominator)


def randomise_outcomes_into_reports(
    blocks: RankedReports, weight: int, outcomes: Integers, randomness: Randomness
) -> Reports:
    """A report for each drawn outcome: a uniform one where a word is below N = `weight`, else a uniform one that holds it."""
    is_own = randomness.integers(len(outcomes)) >= weight
    own_rows, other_rows = np.flatnonzero(is_own), np.flatnonzero(~is_own)
    reports = np.empty(len(outcomes), dtype=np.uint64)
    reports[other_rows] = blocks.reports_of_ranks(draw_integers_below(randomness, blocks.block_count, len(other_rows)))
    rank = draw_integers_below(randomness, blocks.blocks_per_point, len(own_rows))
    reports[own_rows] = blocks.reports_of_ranks_holding_outcomes(outcomes[own_rows], rank)
    return reports


def require_drawable_record_total(total: int) -> int:
    """How many records a client holds, if a word of 62 bits can choose among them."""
    if total > TOTAL:
        raise DiscreetError("the counts of a client add up to more than 2^62; divide them by a common number")
    return total


def _as_one_element_array(number: int) -> Integers:
    return np.array([number], dtype=np.int64)
