"""Triangular factors: all that a regression of any length keeps of its rows.

[W_j, tau_j] = Q_j R_j for every joint j: ‖W_j beta − tau_j‖ = ‖R_j (beta, −1)‖ for any beta, in memory that does not
grow with the rows, and without the squared condition number of normal equations. Only the columns that a joint can
feel take part.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgeqrf

from ..compiled import one_blas_thread, threads
from .model import Rows

Array = NDArray[np.float64]
# Rows that are folded into a factor at once: enough for LAPACK's blocked code, few enough for the cache.
MOST_ROWS = 4096
# From here on a block is worth a second thread.
_WORTH_THREADS = 512


def triangle(A: Array) -> Array:
    """R of a QR factorisation; A may be overwritten."""
    if not len(A):
        return np.zeros((0, A.shape[1]))
    # LAPACK itself: scipy.linalg.qr would clear the reflections below R over the whole height.
    reduced, _, _, failed = dgeqrf(A, overwrite_a=True)
    if failed:
        raise FloatingPointError(f"the QR factorisation failed (info {failed})")
    return np.triu(reduced[: A.shape[1]])


def absorb(R: Array, rows: Array) -> Array:
    """The factor of what R stands for with more rows."""
    for k in range(0, len(rows), MOST_ROWS):
        part = rows[k : k + MOST_ROWS]
        stacked = np.empty((len(R) + len(part), R.shape[1]), order="F")
        stacked[: len(R)], stacked[len(R) :] = R, part
        R = triangle(stacked)
    return R


@dataclass(frozen=True, eq=False)
class Factor:
    """One triangle over some of the columns, the torque last."""

    columns: NDArray[np.int64]  # of beta
    R: Array  # (k, columns + 1), k ≤ columns + 1
    rows: int

    def squares(self, beta: Array) -> float:
        """‖W beta − tau‖² of the rows that it stands for."""
        e = self.R[:, :-1] @ beta[self.columns] - self.R[:, -1]
        return float(e @ e)


@dataclass(frozen=True, eq=False)
class Factors:
    """A factor a joint (or one for all, where rows of several joints were mixed)."""

    rank: int
    parts: tuple[Factor, ...]

    def stacked(self, weights: Array | None = None) -> tuple[Array, Array]:
        """(A, y) with ‖A beta − y‖² = Σ_j weights_j ‖W_j beta − tau_j‖², triangular; the last row is the remainder."""
        weights = np.ones(len(self.parts)) if weights is None else np.asarray(weights, dtype=float)
        A = np.zeros((sum(len(part.R) for part in self.parts), self.rank + 1), order="F")
        start = 0
        for part, weight in zip(self.parts, weights, strict=True):
            block = A[start : start + len(part.R)]
            block[:, part.columns] = np.sqrt(weight) * part.R[:, :-1]
            block[:, -1] = np.sqrt(weight) * part.R[:, -1]
            start += len(part.R)
        with one_blas_thread():
            R = triangle(A)
        return R[:, :-1], R[:, -1]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        return np.array([part.rows for part in self.parts], dtype=np.int64)

    def squares(self, beta: Array) -> Array:
        """Sum of squared residuals of each part."""
        return np.array([part.squares(beta) for part in self.parts])


Weigh = Callable[[Rows], Array]  # (T, n) factors of the rows of a block


def factorise(blocks: Iterable[Rows], active: tuple[NDArray[np.int64], ...], rank: int, weigh: Weigh | None) -> Factors:
    """Fold blocks of rows into a factor a joint, joints in parallel."""
    n = len(active)
    triangles = [np.zeros((0, len(columns) + 1)) for columns in active]
    counts = [0] * n
    # The largest first, so that the threads end together.
    order = sorted(range(n), key=lambda j: -len(active[j]))

    def fold(j: int, block: Rows, factors: Array | None) -> None:
        use = block.use[:, j]
        columns = active[j]
        picked = slice(None) if use.all() else use
        T = int(use.sum())
        rows = np.empty((T, len(columns) + 1), order="F")
        rows[:, :-1] = block.of_joint(j, columns, picked)
        rows[:, -1] = block.tau[picked, j]
        if factors is not None:
            rows *= factors[picked, j][:, None]
        triangles[j] = absorb(triangles[j], rows)
        counts[j] += T

    with one_blas_thread(), ExitStack() as stack:
        pool: ThreadPoolExecutor | None = None
        for block in blocks:
            factors = None if weigh is None else weigh(block)
            if len(block.tau) >= _WORTH_THREADS and pool is None and threads() > 1:
                pool = stack.enter_context(ThreadPoolExecutor(min(threads(), n)))
            if pool is None:
                for j in order:
                    fold(j, block, factors)
            else:
                for done in [pool.submit(fold, j, block, factors) for j in order]:
                    done.result()
    parts = [Factor(columns, R, count) for columns, R, count in zip(active, triangles, counts, strict=True)]
    return Factors(rank, tuple(parts))


def factorise_mixed(blocks: Iterable[Rows], rank: int, mix: Array) -> Factors:
    """One factor over samples whose n rows are mixed by an (n, n) matrix, as a full noise covariance asks for."""
    R, count = np.zeros((0, rank + 1)), 0
    for block in blocks:
        whole = block.use.all(axis=1)  # a sample counts only with all its joints
        W, tau = block.W[whole], block.tau[whole]
        rows = np.empty((tau.size, rank + 1), order="F")
        rows[:, :-1] = (mix @ W).reshape(-1, rank)
        rows[:, -1] = (tau @ mix.T).ravel()
        R = absorb(R, rows)
        count += tau.size
    return Factors(rank, (Factor(np.arange(rank), R, count),))
