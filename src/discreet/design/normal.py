"""The linear system of a Newton step: one unknown for each outcome that somebody holds, and y.

With o = |m| as a functional of (v, y), 1_j = m(held by j) and b_j = sum_e beta_e m_e, a client adds rank_j (alpha_j o - b_j)^2 +
rest_j (o - 1_j)^2 and a diagonal. The squares of 1_j and b_j are summed entry by entry, so that the work is the sum of squared
numbers of held outcomes.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.examples import Floats, Integers
from discreet.kernels import compiled_for

_DENSE = 0.2  # of entries held, from which a product of dense matrices is faster than one of sparse ones
_REGULAR = 1e-14
_PAIR_SECONDS = 4e-7  # over all steps, for a pair of outcomes of one client, without a compiler


class NormalMatrix:
    """The matrix in the unknowns (v, y), collected from blocks of clients, then factored once and used twice."""

    def __init__(self, size: int, seen: int) -> None:
        self.total = np.append(np.ones(seen), float(size))  # |m| as a functional of (v, y)
        self._free = threading.Lock()
        self._spare: list[Floats] = []  # sums of squares, as many as threads were at work at once
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
        beta: Floats,
    ) -> None:
        """One block of clients: `diagonal` and `beta` for each entry, the others for each client. Blocks may come from several threads."""
        seen = self._diagonal.size
        counts = np.diff(np.append(starts, outcome.size))
        on_outcomes = np.bincount(outcome, weights=diagonal, minlength=seen)
        crossed = np.repeat(rest, counts) + np.repeat(rank * alpha, counts) * beta
        cross = np.bincount(outcome, weights=crossed, minlength=seen)
        with self._free:
            squares = self._spare.pop() if self._spare else np.zeros((seen, seen))
        _add_squares(squares, starts, outcome, rest, rank, beta)
        with self._free:
            self._spare.append(squares)
            self._diagonal += on_outcomes
            self._both += float(np.sum(rest + rank * alpha**2))
            self._cross += cross

    def factored(self, stiffness: Floats, cap: Floats, cap_stiffness: float) -> "Factored":
        """With the stiffness of the bounds of (v, y), and of the bound on the functional `cap`."""
        seen = self._diagonal.size
        summed = self._spare[0]
        for more in self._spare[1:]:
            summed += more
        squares = np.tril(summed) + np.tril(summed, -1).T
        squares[np.arange(seen), np.arange(seen)] += self._diagonal
        whole = np.empty((seen + 1, seen + 1))
        whole[:seen, :seen] = squares
        whole[:seen, seen] = whole[seen, :seen] = squares.sum(axis=1)
        whole[seen, seen] = squares.sum()
        cross = np.append(self._cross, self._cross.sum())
        mixed = np.outer(self.total, cross)
        whole += self._both * np.outer(self.total, self.total) - mixed - mixed.T + cap_stiffness * np.outer(cap, cap)
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


def _add_squares(out: Floats, starts: Integers, outcome: Any, rest: Floats, rank: Floats, beta: Floats) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j', in the lower triangle at least."""
    pairs = float(np.square(np.diff(np.append(starts, outcome.size)), dtype=np.float64).sum())
    if compiled_for(_PAIR_SECONDS * pairs):
        from discreet.design.compiled import add_squares

        add_squares(out, starts, outcome, rest, rank, beta)
        return
    from scipy import sparse

    shape, ends = (starts.size, len(out)), np.append(starts, outcome.size)
    of_client = np.repeat(np.arange(starts.size), np.diff(ends))
    for root in (np.sqrt(rest)[of_client], np.sqrt(rank)[of_client] * beta):
        rows = sparse.csr_array((root, outcome, ends), shape=shape)
        if outcome.size > _DENSE * shape[0] * shape[1]:
            dense = rows.toarray()
            out += dense.T @ dense
        else:
            out += (rows.T @ rows).toarray()
