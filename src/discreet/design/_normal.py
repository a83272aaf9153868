"""The linear system of a Newton step: one unknown for each outcome that somebody holds, and y.

A client adds rank_j (alpha_j m(not held) + sum_e pull_e m_e)^2 + rest_j m(not held)^2 and a diagonal, with m(not held) = o - 1_j, o = |m|
and 1_j = m(held by j). Where clients hold few outcomes the squares of 1_j and of b_j = sum_e (alpha_j - pull_e) m_e are summed entry by
entry, so that the work is the sum of squared numbers of held outcomes. Where they hold many, o - 1_j may be next to nothing, which a
difference would lose: then the functionals are written out, which dense products make as fast.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._kernels import compiled_alone
from discreet.design._examples import Floats, Integers

_DENSE = 0.2  # of entries held, from which rows are written out
_REGULAR = 1e-14
_PAIR_SECONDS = 4e-7  # over all steps, for a pair of outcomes of one client, without a compiler


class MatrixShare:
    """What some of the clients add to the matrix. One thread fills it, in order, so that the sum is the same every time."""

    def __init__(self, size: int, seen: int) -> None:
        self._hidden = size - seen
        self.squares: Floats | None = None  # of entries, below the diagonal and on it
        self.whole: Floats | None = None  # of functionals that are written out over all outcomes
        self.diagonal = np.zeros(seen)
        self.cross = np.zeros(seen)
        self.both = 0.0

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
        """One block of clients: `diagonal` and `pull` for each entry, the others for each client."""
        seen = self.diagonal.size
        self.diagonal += np.bincount(outcome, weights=diagonal, minlength=seen)
        if outcome.size > _DENSE * starts.size * seen:
            if self.whole is None:
                self.whole = np.zeros((seen + 1, seen + 1))
            self._add_written_out(self.whole, starts, outcome, rest, rank, alpha, pull)
            return
        if self.squares is None:
            self.squares = np.zeros((seen, seen))
        _add_squares(self.squares, self.cross, starts, outcome, rest, rank, alpha, pull)
        self.both += float(np.sum(rest + rank * alpha**2))

    def _add_written_out(
        self, out: Floats, starts: Integers, outcome: Any, rest: Floats, rank: Floats, alpha: Floats, pull: Floats
    ) -> None:
        """Each client's two functionals as rows over all outcomes and y, without a difference of large numbers."""
        seen, client = self.diagonal.size, np.repeat(np.arange(starts.size), np.diff(np.append(starts, outcome.size)))
        for scale, elsewhere, held in ((rank, alpha, pull), (rest, np.ones(starts.size), 0.0)):
            rows = np.empty((starts.size, seen + 1))
            rows[:, :seen] = elsewhere[:, None]
            rows[client, outcome] = held
            rows[:, seen] = rows[:, :seen].sum(axis=1) + self._hidden * elsewhere
            rows *= np.sqrt(scale)[:, None]
            out += rows.T @ rows


class NormalMatrix:
    """The matrix in the unknowns (v, y), collected from shares of the clients, then factored once and used twice."""

    def __init__(self, size: int, seen: int, shares: int) -> None:
        self._total = np.append(np.ones(seen), float(size))  # |m| as a functional of (v, y)
        self.shares = [MatrixShare(size, seen) for _ in range(shares)]

    def factor(self, stiffness: Floats, cap: Floats, cap_stiffness: float) -> "FactoredMatrix":
        """With the stiffness of the bounds of (v, y), and of the bound on the functional `cap`."""
        seen = self._total.size - 1
        summed = np.zeros((seen, seen))
        for share in self.shares:
            if share.squares is not None:
                summed += share.squares
        squares = np.tril(summed) + np.tril(summed, -1).T
        squares[np.arange(seen), np.arange(seen)] += sum(share.diagonal for share in self.shares)
        whole = np.empty((seen + 1, seen + 1))
        whole[:seen, :seen] = squares
        whole[:seen, seen] = whole[seen, :seen] = squares.sum(axis=1)
        whole[seen, seen] = squares.sum()
        both = sum(share.both for share in self.shares)
        if both:
            crossed = np.sum([share.cross for share in self.shares], axis=0)
            mixed = np.outer(self._total, np.append(crossed, crossed.sum()))
            whole += both * np.outer(self._total, self._total) - mixed - mixed.T
        whole += cap_stiffness * np.outer(cap, cap)
        for share in self.shares:
            if share.whole is not None:
                whole += share.whole
        whole[np.arange(seen + 1), np.arange(seen + 1)] += stiffness
        if not (whole.diagonal() > 0.0).all():
            raise np.linalg.LinAlgError("a pivot is lost in rounding")
        scale = 1.0 / np.sqrt(whole.diagonal())
        whole *= scale[:, None]
        whole *= scale
        return FactoredMatrix(whole, scale)


class FactoredMatrix:
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
    if compiled_alone(_PAIR_SECONDS * float(np.square(counts, dtype=np.float64).sum())):
        from discreet.design._squares import add_squares

        ends = np.append(starts, outcome.size).astype(
            np.uintp
        )  # unsigned, so that no index is tested for being negative
        add_squares(out, cross, ends, outcome.view(np.uint32), rest, rank, alpha, pull)
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
