"""The linear system of a Newton step: one unknown for each outcome that somebody holds, and y.

A client adds rank_j (alpha_j m(not held) + sum_e pull_e m_e)^2 + rest_j m(not held)^2 and a diagonal, with m(not held) = o - 1_j, o = |m|
and 1_j = m(held by j). Where clients hold few outcomes the squares of 1_j and of b_j = sum_e (alpha_j - pull_e) m_e are summed entry by
entry, so that the work is the sum of squared numbers of held outcomes. Where they hold many, o - 1_j may be next to nothing, which a
difference would lose: then the functionals are written out, which dense products make as fast.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.examples import Floats, Integers
from discreet.kernels import compiled_for

_DENSE = 0.2  # of entries held, from which rows are written out
_REGULAR = 1e-14
_PAIR_SECONDS = 4e-7  # over all steps, for a pair of outcomes of one client, without a compiler


class NormalMatrix:
    """The matrix in the unknowns (v, y), collected from blocks of clients, then factored once and used twice."""

    def __init__(self, size: int, seen: int) -> None:
        self.total = np.append(np.ones(seen), float(size))  # |m| as a functional of (v, y)
        self._free = threading.Lock()
        self._spare: list[Floats] = []  # sums of squares of entries, as many as threads were at work at once
        self._whole: list[Floats] = []  # the same of squares that are written out over all outcomes
        self._diagonal = np.zeros(seen)
        self._cross = np.zeros(seen)
        self._both = 0.0

    def add(
        self,
        starts: Integers,
        outcome: NDArray[np.int32],
        diagonal: Floats,
        rest: Floats,
        rank: Floats,
        alpha: Floats,
        pull: Floats,
    ) -> None:
        """One block of clients: `diagonal` and `pull` for each entry, the others for each client. Blocks may come from several threads."""
        seen = self._diagonal.size
        on_outcomes = np.bincount(outcome, weights=diagonal, minlength=seen)
        if outcome.size > _DENSE * starts.size * seen:
            with self._borrowed(self._whole, seen + 1) as whole:
                self._add_written_out(whole, starts, outcome, rest, rank, alpha, pull)
            with self._free:
                self._diagonal += on_outcomes
            return
        cross = np.zeros(seen)
        with self._borrowed(self._spare, seen) as squares:
            _add_squares(squares, cross, starts, outcome, rest, rank, alpha, pull)
        with self._free:
            self._diagonal += on_outcomes
            self._both += float(np.sum(rest + rank * alpha**2))
            self._cross += cross

    @contextmanager
    def _borrowed(self, spare: list[Floats], side: int) -> Iterator[Floats]:
        """A sum that no other thread is adding to."""
        with self._free:
            one = spare.pop() if spare else np.zeros((side, side))
        yield one
        with self._free:
            spare.append(one)

    def _add_written_out(
        self, out: Floats, starts: Integers, outcome: Any, rest: Floats, rank: Floats, alpha: Floats, pull: Floats
    ) -> None:
        """Each client's two functionals as rows over all outcomes and y, without a difference of large numbers."""
        seen, client = self._diagonal.size, np.repeat(np.arange(starts.size), np.diff(np.append(starts, outcome.size)))
        hidden = self.total[-1] - seen
        for scale, elsewhere, held in ((rank, alpha, pull), (rest, np.ones(starts.size), 0.0)):
            rows = np.empty((starts.size, seen + 1))
            rows[:, :seen] = elsewhere[:, None]
            rows[client, outcome] = held
            rows[:, seen] = rows[:, :seen].sum(axis=1) + hidden * elsewhere
            rows *= np.sqrt(scale)[:, None]
            out += rows.T @ rows

    def factored(self, stiffness: Floats, cap: Floats, cap_stiffness: float) -> "Factored":
        """With the stiffness of the bounds of (v, y), and of the bound on the functional `cap`."""
        seen = self._diagonal.size
        summed = np.zeros((seen, seen)) if not self._spare else self._spare[0]
        for more in self._spare[1:]:
            summed += more
        squares = np.tril(summed) + np.tril(summed, -1).T
        squares[np.arange(seen), np.arange(seen)] += self._diagonal
        whole = np.empty((seen + 1, seen + 1))
        whole[:seen, :seen] = squares
        whole[:seen, seen] = whole[seen, :seen] = squares.sum(axis=1)
        whole[seen, seen] = squares.sum()
        if self._both:
            cross = np.append(self._cross, self._cross.sum())
            mixed = np.outer(self.total, cross)
            whole += self._both * np.outer(self.total, self.total) - mixed - mixed.T
        whole += cap_stiffness * np.outer(cap, cap)
        for more in self._whole:
            whole += more
        whole[np.arange(seen + 1), np.arange(seen + 1)] += stiffness
        if not (whole.diagonal() > 0.0).all():
            raise np.linalg.LinAlgError("a pivot is lost in rounding")
        scale = 1.0 / np.sqrt(whole.diagonal())
        whole *= scale[:, None]
        whole *= scale
        return Factored(whole, scale)


class Factored:
    """A positive definite matrix, scaled to ones on its diagonal."""

    def __init__(self, scaled: Floats, scale: Floats) -> None:
        from scipy import linalg  # here, because importing it costs more than most commands do

        self._scale = scale
        regular = _REGULAR
        while True:
            scaled[np.diag_indices_from(scaled)] = 1.0 + regular
            try:
                self._factor = linalg.cho_factor(scaled, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                regular *= 100.0
                if regular > 1.0:
                    raise

    def solve(self, right: Floats) -> Floats:
        from scipy import linalg

        return np.asarray(linalg.cho_solve(self._factor, right * self._scale, check_finite=False)) * self._scale


def _add_squares(
    out: Floats, cross: Floats, starts: Integers, outcome: Any, rest: Floats, rank: Floats, alpha: Floats, pull: Floats
) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j' with b = alpha - pull, in the lower triangle at least.

    cross += sum_j (rest_j + rank_j alpha_j b_j) 1_j.
    """
    counts = np.diff(np.append(starts, outcome.size))
    if compiled_for(_PAIR_SECONDS * float(np.square(counts, dtype=np.float64).sum())):
        from discreet.design.squares import add_squares

        add_squares(out, cross, starts, outcome, rest, rank, alpha, pull)
        return
    from scipy import sparse

    beta = np.repeat(alpha, counts) - pull
    crossed = np.repeat(rest, counts) + np.repeat(rank * alpha, counts) * beta
    cross += np.bincount(outcome, weights=crossed, minlength=len(out))
    shape, ends = (starts.size, len(out)), np.append(starts, outcome.size)
    of_client = np.repeat(np.arange(starts.size), counts)
    for root in (np.sqrt(rest)[of_client], np.sqrt(rank)[of_client] * beta):
        rows = sparse.csr_array((root, outcome, ends), shape=shape)
        out += (rows.T @ rows).toarray()
