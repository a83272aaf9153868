"""The one private report that each client sends under a survey.

    Q(i, B) = (n_i/2^62) (beta_i/b_i + (1 - beta_i) P_i(B)/r_i)

Part i is asked with the public chance n_i/2^62; whole numbers n_i add up to 2^62. It has b_i reports, r_i of which hold a given outcome.
P_i(B) is the probability that the outcome which part i sees of a row of the client lies in B. beta_i = N_i/2^62 with N_i =
ceil(2^62 b_i/(b_i + (E - 1) r_i)), and E is a rational at most e^epsilon. A weighted block is t of the b_i reports, which nobody tells
apart: its Q is t times as large.

**Privacy, in rationals.** Which part is asked does not depend on the client. Given the part, the report is drawn as
`discreet.mechanisms._reports._sampler` draws: a uniform one, or a uniform one of those that hold an outcome x, however x is drawn.
So beta_i/b_i <= Q(B | i) <= beta_i/b_i + (1 - beta_i)/r_i, whose ratio is at most E by the choice of N_i. The common factor n_i/2^62 cancels:
for any two clients, whatever rows they hold, no report is more than E <= e^epsilon times as likely from one as from the other.   QED

The number of a report is that of its block plus the sum of the capacities of the parts before, so that one number tells both.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base import OldName
from discreet.errors import DiscreetError, check_count, check_kind, check_list
from discreet.mechanisms import (
    LARGEST_OUTPUT,
    Reports,
    fraction_below_exp_epsilon,
    least_weight_of_uniform_report,
    randomise_outcomes_into_reports,
    require_drawable_record_total,
    require_report_numbers,
)
from discreet.privacy import Privacy, Pure, chosen_privacy
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
from discreet.survey._columns import Integers, JointColumns
from discreet.survey._parts import (
    LARGEST_REPORT,
    NO_QUESTION,
    Marginals,
    asks_for_table,
    choose_best_parts,
    columns_in_survey_order,
    part_as_terms,
    require_parts_that_answer_questions,
)
from discreet.survey._questions import Survey
from discreet.survey._strategies import Part, ReportClass, Strategy, strategy_of_parts, variance_per_contrast

ROW_DRAWN, DRAW_ANEW = 1, 2  # states of a client whose words chose a row
_TOGETHER = 1 << 16  # clients that are drawn at once
_ROW_WORD = 2  # which word of a client chooses among its rows


@final
class SurveySampler:
    """One private report of each client, from which all questions of a survey are answered.

    Args:
        survey: what is asked.
        epsilon: the privacy budget of one report, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        privacy: `Pure(epsilon)`.
        parts: those that were agreed on (`agreement.sampler()` passes them). By default those with the smallest variance.

    Raises:
        DiscreetError: for what is no survey, an epsilon that is none, another notion of privacy, and questions with so many reports that
            their numbers do not fit into 64 bits.
    """

    name: ClassVar[str] = "survey"

    def __init__(
        self,
        survey: Survey,
        *,
        epsilon: float | None = None,
        privacy: Privacy | None = None,
        parts: Sequence[Part] | None = None,
    ) -> None:
        check_kind("survey", survey, Survey, "pass Survey(columns, questions)")
        promise = chosen_privacy(epsilon, privacy)
        if not isinstance(promise, Pure):
            raise DiscreetError(f"privacy = {promise!r}: surveys are for pure privacy; pass epsilon= or Pure(...)")
        self.survey, self.privacy = survey, promise
        self._bound = fraction_below_exp_epsilon(promise)
        self.parts = (
            choose_best_parts(survey.questions, survey.columns, self._bound)
            if parts is None
            else require_parts_that_answer_questions(parts, survey.questions, survey.columns)
        )
        self._offsets = [0, *accumulate(part.reserved_report_number_count for part in self.parts)]
        if self._offsets[-1] > LARGEST_REPORT:
            raise DiscreetError("the questions have more than 2^64 reports; ask fewer outcomes together")
        units = list(accumulate(part.share_in_whole_units for part in self.parts))
        self._share_ends = tuple(TOTAL * end // units[-1] for end in units)  # n_1, n_1 + n_2, ...
        self.uniform_weights = tuple(least_weight_of_uniform_report(part.blocks, self._bound) for part in self.parts)
        warn_of_weak_privacy(promise)

    @property
    def epsilon(self) -> float:
        """The budget of one report."""
        return self.privacy.epsilon

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """How each question is answered, with its variance."""
        return tuple(
            strategy_of_parts(question, [part for part in self.parts if part.question == index], self._bound)
            for index, question in enumerate(self.survey.questions)
        )

    @property
    def part_terms(self) -> list[dict[str, Any]]:
        """The parts as an agreement states them."""
        return [part_as_terms(part) for part in self.parts]

    part_as_terms = OldName("part_terms")

    def __repr__(self) -> str:
        return f"SurveySampler({self.survey!r}, epsilon={self.epsilon:g})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SurveySampler)
            and self._fields_compared_for_equality == other._fields_compared_for_equality
        )

    def __hash__(self) -> int:
        return hash(self._fields_compared_for_equality)

    @property
    def _fields_compared_for_equality(self) -> tuple[Survey, Pure, tuple[Part, ...]]:
        return self.survey, self.privacy, self.parts

    @cached_property
    def context(self) -> bytes:
        """A hash that tells the draws of this survey from those of another one under the same key."""
        return hashlib.sha256(f"{self.survey.digest} {self.epsilon!r} {json.dumps(self.part_terms)}".encode()).digest()

    @cached_property
    def exact_shares(self) -> tuple[Fraction, ...]:
        """The probability that each part is asked, as it is drawn."""
        starts = (0, *self._share_ends[:-1])
        return tuple(Fraction(end - start, TOTAL) for start, end in zip(starts, self._share_ends, strict=True))

    @cached_property
    def uniform_weight(self) -> int:
        """Of 2^62 words, how many give a report that has nothing to do with the client, on average over the parts."""
        pairs = zip(self.exact_shares, self.uniform_weights, strict=True)
        return int(sum((share * weight for share, weight in pairs), Fraction(0)))

    @property
    def largest(self) -> int:
        """An upper bound of all reports: the largest that can occur, or a number above it."""
        return self._offsets[-1] - 1

    def question_share(self, place: int) -> float:
        """The share of clients that are asked a question itself; tables with its columns may tell it too.

        Args:
            place: of the question.

        Returns:
            A probability.
        """
        pairs = zip(self.parts, self.exact_shares, strict=True)
        return float(sum(share for part, share in pairs if part.question == place))

    def variance(self, place: int) -> float:
        """n times the variance of a question's answer, with the shares of clients that are asked it, or a table that tells its shares.

        Args:
            place: of the question.

        Returns:
            That of a consistent share in the uniform population, of a mean in parts of its range in the worst one, or of a distribution
            function on average over its cells.
        """
        question = self.survey.questions[place]
        if not asks_for_table(question):
            return self.strategies[place].variance / self.question_share(place)
        shares = [float(self.exact_shares[number]) for number in self.tables]
        return self.marginals.cell_variance(columns_in_survey_order(self.survey.columns, question.columns), shares)

    @cached_property
    def tables(self) -> dict[int, tuple[str, ...]]:
        """The places of the parts that are tables of shares, and their columns in the order of the survey."""
        return {
            number: columns_in_survey_order(self.survey.columns, part.projection.columns)
            for number, part in enumerate(self.parts)
            if isinstance(part.projection, JointColumns)
            and (part.question == NO_QUESTION or asks_for_table(self.survey.questions[part.question]))
        }

    @cached_property
    def marginals(self) -> Marginals:
        """What these tables tell of each other."""
        noises = [variance_per_contrast(self.parts[number].blocks, float(self._bound)) for number in self.tables]
        return Marginals(self.survey.columns, list(self.tables.values()), noises)

    def release_table(self, table: Any, *, rng: np.random.Generator | None = None) -> Reports:
        """One private report for each row of a table, where each row is a client's own.

        Args:
            table: a dict of columns or a frame that has the columns of the survey.
            rng: a seeded generator, for experiments; then it is NOT private, and warns so.

        Returns:
            An array of uint64.

        Raises:
            DiscreetError: for columns that are missing and values outside their domains, before anything is drawn.
        """
        return self.release_rows(self.survey.columns.encode(table), rng=rng)

    def release_rows(self, rows: ArrayLike, *, rng: np.random.Generator | None = None) -> Reports:
        """One private report for each client, of one row that it drew from its own.

        Args:
            rows: the number of one row of each client, as `survey.columns.encode` gives them.
            rng: a seeded generator, for experiments; then it is NOT private.

        Returns:
            An array of uint64.

        Raises:
            DiscreetError: for numbers that are no rows.
        """
        numbers = self.survey.columns.require_row_numbers(rows)
        randomness = entropy_or_seeded_randomness(rng)
        reports = np.empty(len(numbers), dtype=np.uint64)
        for start in range(0, len(numbers), _TOGETHER):
            reports[start : start + _TOGETHER] = self._draw_reports(numbers[start : start + _TOGETHER], randomness)
        return reports

    def release(self, rows: ArrayLike, *, rng: np.random.Generator | None = None) -> int:
        """One private report of one client that holds one or more rows. Each call spends epsilon anew.

        Args:
            rows: the numbers of all its rows.
            rng: a seeded generator, for experiments; then it is NOT private.

        Returns:
            The report.

        Raises:
            DiscreetError: for a client without rows, and numbers that are no rows.
        """
        client_rows = self.survey.columns.require_row_numbers(rows)
        if not client_rows.size:
            raise DiscreetError("the client has no rows; leave it out")
        randomness = entropy_or_seeded_randomness(rng)
        return int(self._draw_reports(client_rows[draw_integers_below(randomness, len(client_rows), 1)], randomness)[0])

    def release_number(self, rows: ArrayLike) -> int:
        """One report of one client, by the same steps whatever it holds: the time it takes does not tell what they decided.

        A report that is uniform and one that holds the client's outcome are both drawn, and one of them is forgotten.

        Args:
            rows: the numbers of all its rows. Without any the report is uniform.

        Returns:
            The report.

        Raises:
            DiscreetError: for numbers that are no rows, before anything is drawn.
        """
        client_rows, randomness = self.survey.columns.require_row_numbers(rows), entropy_or_seeded_randomness(None)
        candidates = client_rows if client_rows.size else np.zeros(1, dtype=np.int64)
        index = bisect_right(self._share_ends, int(randomness.integers(1)[0]))
        part = self.parts[index]
        informative = int(randomness.integers(1)[0]) >= self.uniform_weights[index] and client_rows.size > 0
        draw_below = partial(draw_integers_below, randomness)
        row = candidates[draw_below(len(candidates), 1)]
        holding = part.blocks.reports_of_ranks_holding_outcomes(
            part.projection.draw_outcomes(self.survey.columns, row, draw_below),
            draw_below(part.blocks.blocks_per_point, 1),
        )
        uniform = part.blocks.reports_of_ranks(draw_below(part.blocks.block_count, 1))
        return self._offsets[index] + int(np.where(informative, holding, uniform)[0])

    def release_keyed(self, key: RunKey, client: int | str, rows: Sequence[int], counts: Sequence[int]) -> int:
        """The report of one client as a function of a secret run key and its data: the same key and data give the same report.

        The survey and epsilon are part of what is hashed, so another survey under the same key has other words. They decide, in this order:
        which part is asked, whether the report is uniform, which row is drawn, how a number is rounded (where the part sees points), and
        which report it is.

        Args:
            key: of one question in one round of one agreement.
            client: who it is.
            rows: the numbers of the rows that it holds.
            counts: how often, from 0 on.

        Returns:
            The report.

        Raises:
            DiscreetError: for numbers that are no rows and counts that are none.
        """
        check_kind("key", key, RunKey, "secret.run_key(...) makes one")
        row_list = check_list("rows", rows, "pass the numbers of the rows that the client holds")
        row_numbers = [check_count("row", row, least=0, most=self.survey.columns.size - 1) for row in row_list]
        row_counts = [
            check_count("count", count, least=0)
            for count in check_list("counts", counts, "pass how often it holds each")
        ]
        if len(row_numbers) != len(row_counts):
            raise DiscreetError(
                f"there are {len(row_numbers)} rows and {len(row_counts)} counts; give one count for each row"
            )
        law = integer_law_of_counts(row_numbers, row_counts)
        if not require_drawable_record_total(sum(law.values())):
            raise DiscreetError("the client has no rows; leave it out")
        return self._draw_keyed_report(
            key, client_message(client, row_numbers, row_counts), list(law), list(law.values())
        )

    def _draw_keyed_report(self, key: RunKey, message: bytes, rows: list[int], weights: list[int]) -> int:
        """One report from the words of a client; without rows a uniform one."""
        words, total = keyed_word_stream(key, self.context + message), require_drawable_record_total(sum(weights))
        index = bisect_right(self._share_ends, next(words))
        part = self.parts[index]
        if next(words) < self.uniform_weights[index] or not total:
            rank = np.array([next_integer_below(words, part.blocks.block_count)])
            return self._offsets[index] + int(part.blocks.reports_of_ranks(rank)[0])
        row = np.array([rows[bisect_right(list(accumulate(weights)), next_integer_below(words, total))]])

        def draw_keyed_integers_below(bound: int, count: int) -> Integers:
            return np.array([next_integer_below(words, bound) for _ in range(count)])

        outcome = part.projection.draw_outcomes(self.survey.columns, row, draw_keyed_integers_below)
        rank = draw_keyed_integers_below(part.blocks.blocks_per_point, 1)
        return self._offsets[index] + int(part.blocks.reports_of_ranks_holding_outcomes(outcome, rank)[0])

    def release_messages(
        self, key: RunKey, messages: list[bytes], laws: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint64]]]
    ) -> Reports:
        """The reports of many clients that `release_keyed` gives one by one, from their canonical inputs and laws in whole numbers.

        A client without rows sends a uniform report on the part that it is asked.

        Args:
            key: of one round of one agreement.
            messages: the canonical input of each client.
            laws: the rows of each in increasing order, and how often each counts.

        Returns:
            An array of uint64.
        """
        words = keyed_word_rows(key, [self.context + message for message in messages])
        rows, states = np.zeros(len(laws), dtype=np.int64), np.zeros(len(laws), dtype=np.int8)
        for client, (client_rows, weights) in enumerate(laws):
            total = require_drawable_record_total(int(weights.sum(dtype=np.uint64)))
            if total:
                word = int(words[client, _ROW_WORD])
                states[client] = ROW_DRAWN if word < (TOTAL // total) * total else DRAW_ANEW
                rows[client] = client_rows[np.searchsorted(np.cumsum(weights), word % total, side="right")]
        reports, is_undecided = self.release_words(words, rows, states)
        for client in np.flatnonzero(is_undecided).tolist():
            client_rows, weights = laws[client]
            reports[client] = self._draw_keyed_report(key, messages[client], client_rows.tolist(), weights.tolist())
        return reports

    def release_words(
        self, words: Integers, rows: Integers, states: NDArray[np.int8]
    ) -> tuple[Reports, NDArray[np.bool_]]:
        """The reports that the first eight words of many clients decide, as `release_keyed` does it one by one.

        Args:
            words: eight of 62 bits for each client: which part, whether uniform, which row, and then as the part needs them.
            rows: the row that the third word chose.
            states: 0 for a client without rows, 1 for one whose row was drawn, 2 where the third word has to be drawn anew.

        Returns:
            The reports, and for which clients the words do not suffice.
        """
        part_indices = np.searchsorted(np.array(self._share_ends[:-1], dtype=np.int64), words[:, 0], side="right")
        reports, is_undecided = np.empty(len(words), dtype=np.uint64), np.zeros(len(words), dtype=np.bool_)
        for index, part in enumerate(self.parts):
            clients = np.flatnonzero(part_indices == index)
            is_informative = (words[clients, 1] >= self.uniform_weights[index]) & (states[clients] > 0)
            informed_clients, uninformed_clients = clients[is_informative], clients[~is_informative]
            is_undecided[informed_clients] = states[informed_clients] == DRAW_ANEW
            uniform_words, informed_words = (
                _WordReader(words, uninformed_clients, is_undecided, _ROW_WORD),
                _WordReader(words, informed_clients, is_undecided, _ROW_WORD + 1),
            )
            block_reports = part.blocks.reports_of_ranks(
                uniform_words.draw_integers_below(part.blocks.block_count, len(uninformed_clients))
            )
            reports[uninformed_clients] = block_reports + np.uint64(self._offsets[index])
            outcomes = part.projection.draw_outcomes(
                self.survey.columns, rows[informed_clients], informed_words.draw_integers_below
            )
            block_reports = part.blocks.reports_of_ranks_holding_outcomes(
                outcomes, informed_words.draw_integers_below(part.blocks.blocks_per_point, len(informed_clients))
            )
            reports[informed_clients] = block_reports + np.uint64(self._offsets[index])
        return reports, is_undecided

    def _draw_reports(self, rows: Integers, randomness: Randomness) -> Reports:
        part_indices = np.searchsorted(
            np.array(self._share_ends[:-1], dtype=np.int64), randomness.integers(len(rows)), side="right"
        )
        reports = np.empty(len(rows), dtype=np.uint64)
        for index, part in enumerate(self.parts):
            clients = np.flatnonzero(part_indices == index)
            outcomes = part.projection.draw_outcomes(
                self.survey.columns, rows[clients], partial(draw_integers_below, randomness)
            )
            block_reports = randomise_outcomes_into_reports(
                part.blocks, self.uniform_weights[index], outcomes, randomness
            )
            reports[clients] = block_reports + np.uint64(self._offsets[index])
        return reports

    def split(self, reports: ArrayLike) -> list[Reports]:
        """The reports on each part, by the numbers of its own blocks.

        Args:
            reports: whole numbers.

        Returns:
            One array of uint64 for each part, in the order of the reports.

        Raises:
            DiscreetError: for numbers that are no reports of this survey.
        """
        numbers = self.check_reports(reports)
        part_indices = self._part_indices_of_reports(numbers)
        return [numbers[part_indices == index] - np.uint64(self._offsets[index]) for index in range(len(self.parts))]

    def are_reports(self, reports: Reports) -> NDArray[np.bool_]:
        """Whether each number is a report of this survey.

        Args:
            reports: an array of uint64.

        Returns:
            An array of truth values.
        """
        part_indices, valid = self._part_indices_of_reports(reports), np.zeros(len(reports), dtype=np.bool_)
        for index, part in enumerate(self.parts):
            members = part_indices == index
            valid[members] = part.blocks.are_valid_reports(reports[members] - np.uint64(self._offsets[index]))
        return valid

    def _part_indices_of_reports(self, reports: Reports) -> Integers:
        """The place of the part whose numbers each lies in; past the last part, how many there are."""
        limits = np.array([end - 1 for end in self._offsets[1:]], dtype=np.uint64)  # the last number of each part
        return np.searchsorted(limits, reports, side="left")

    def check_reports(self, reports: ArrayLike) -> Reports:
        """Reports as uint64, or an error that shows the first number that is none.

        Args:
            reports: whole numbers.

        Returns:
            The same as an array of uint64.

        Raises:
            DiscreetError: for numbers that are no reports of this survey.
        """
        numbers = require_report_numbers(reports, "a survey's report is a whole number")
        if numbers.ndim > 1:
            raise DiscreetError(f"reports has shape {numbers.shape}; pass one report of each client, in one dimension")
        flat = numbers.ravel()
        valid = self.are_reports(flat)
        if not valid.all():
            raise DiscreetError(f"{int(flat[~valid][0])} is no report of this survey")
        return flat

    def part_of(self, report: int) -> int:
        """The place of the part that a report is about.

        Args:
            report: a report.

        Returns:
            Its place in `parts`.

        Raises:
            DiscreetError: for what is no report.
        """
        return bisect_right(self._offsets, int(self.check_reports([report])[0])) - 1

    def reports(self) -> Reports:
        """Every report there is, in order, if they are at most 2^20."""
        count = sum(part.blocks.distinct_report_count for part in self.parts)
        if count > LARGEST_OUTPUT:
            raise DiscreetError(f"there are {count:,} reports; they are listed up to {LARGEST_OUTPUT:,}")
        report_arrays = (
            part.blocks.all_reports() + np.uint64(start) for part, start in zip(self.parts, self._offsets, strict=False)
        )
        return np.concatenate(list(report_arrays))

    def report_classes(self, rows: tuple[int, int]) -> list[ReportClass]:
        """All reports, in classes that two clients do not tell apart, with the exact chances of each class.

        Args:
            rows: the row that each of the two clients holds.

        Returns:
            The classes; the chances of each client add up to 1.
        """
        betas = (Fraction(weight, TOTAL) for weight in self.uniform_weights)
        return [
            report_class
            for part, share, beta in zip(self.parts, self.exact_shares, betas, strict=True)
            for report_class in part.report_classes(self.survey.columns, rows, share, beta)
        ]

    def probability(self, report: int, row: int) -> Fraction:
        """The probability of a report from a client that holds one row, as it is drawn.

        Args:
            report: a report.
            row: the number of a row.

        Returns:
            A rational.

        Raises:
            DiscreetError: for what is no report or no row.
        """
        index, number = self.part_of(report), int(self.survey.columns.require_row_numbers([row])[0])
        part, beta = self.parts[index], Fraction(self.uniform_weights[index], TOTAL)
        block_report = np.array([int(report) - self._offsets[index]], dtype=np.uint64)
        law = part.projection.outcome_probabilities(self.survey.columns, number)
        held_chance = part.chance_of_outcome_in_report(block_report, law)
        chance = beta / part.blocks.block_count + (1 - beta) * held_chance / part.blocks.blocks_per_point
        return self.exact_shares[index] * chance * int(part.blocks.rank_counts_of_reports(block_report)[0])


class _WordReader:
    """The words of some clients, one after the other; notes for which of them a word has to be drawn anew."""

    def __init__(self, words: Integers, clients: Integers, undecided: NDArray[np.bool_], first: int) -> None:
        self._words, self._clients, self._again, self._next = words, clients, undecided, first

    def draw_integers_below(self, bound: int, count: int) -> Integers:
        """The next word of each client, uniform below a bound."""
        assert count == len(self._clients)
        word = self._words[self._clients, self._next]
        self._next += 1
        self._again[self._clients[word >= (TOTAL // bound) * bound]] = True
        return np.asarray(word % bound)
