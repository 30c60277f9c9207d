"""Lemke's complementary pivoting, with the lexicographic rule that keeps it from cycling where rows tie.

    w − M z − d z0 = q,    w, z, z0 >= 0,    w_i z_i = 0

z0 enters first and makes everything non-negative; then the complement of what left enters, until z0 leaves (a solution)
or nothing blocks the way (a ray). Cottle, Pang and Stone, The Linear Complementarity Problem (1992), §4.4 and §4.9.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SOLVED, RAY, TOO_LONG = "solved", "ray", "too long"
# Of rows scaled to 1: below this an entry of the entering column is rounding, and ratios closer than this are tied.
_ZERO = 1e-11


class Pivoted(NamedTuple):
    """Where the path ended: which z are basic there, and along which z the ray goes."""

    status: str
    active: NDArray[np.bool_]  # (n,)
    ray: Array | None  # (n,)
    pivots: int


def _lexicographic_minimum(rows: Array, among: NDArray[np.intp]) -> int:
    """The row that is smallest in its first column, of those in the second, and so on."""
    for column in range(rows.shape[1]):
        if len(among) == 1:
            break
        values = rows[among, column]
        among = among[values <= values.min() + _ZERO * max(1.0, abs(float(values.min())))]
    return int(among[0])


def _pivot(table: Array, row: int, column: int) -> None:
    table[row] /= table[row, column]
    others = table[:, column].copy()
    others[row] = 0.0
    table -= np.outer(others, table[row])


def lemke(M: Array, q: Array, most_pivots: int) -> Pivoted:
    """Follow the path from z = 0 with d = 1."""
    n = len(q)
    if n == 0 or q.min() >= 0:
        return Pivoted(SOLVED, np.zeros(n, dtype=bool), None, 0)
    artificial, right = 2 * n, 2 * n + 1
    table = np.hstack([np.eye(n), -M, -np.ones((n, 1)), q[:, None]])
    # The columns of w hold the inverse of the basis, whose rows break ties.
    lexicographic = np.r_[right, 0:n]
    basis = np.arange(n)
    entering, row = artificial, _lexicographic_minimum(table[:, lexicographic], np.arange(n))
    for pivots in range(1, most_pivots + 1):
        _pivot(table, row, entering)
        leaving, basis[row] = int(basis[row]), entering
        if leaving == artificial:
            active = np.zeros(n, dtype=bool)
            active[basis[basis >= n] - n] = True
            return Pivoted(SOLVED, active, None, pivots)
        entering = leaving + n if leaving < n else leaving - n
        column = table[:, entering]
        blocking = np.flatnonzero(column > _ZERO)
        if not len(blocking):
            direction = np.zeros(2 * n + 1)
            direction[entering] = 1.0
            direction[basis] -= column
            ray = np.maximum(direction[n:artificial], 0.0)
            return Pivoted(RAY, np.zeros(n, dtype=bool), ray, pivots)
        ratios = table[np.ix_(blocking, lexicographic)] / column[blocking, None]
        row = int(blocking[_lexicographic_minimum(ratios, np.arange(len(blocking)))])
        # z0 may leave as soon as it is among the rows that tie: then the problem is solved.
        own = np.flatnonzero(basis[blocking] == artificial)
        if len(own) and ratios[own[0], 0] <= ratios[:, 0].min() + _ZERO:
            row = int(blocking[own[0]])
    return Pivoted(TOO_LONG, np.zeros(n, dtype=bool), None, most_pivots)
