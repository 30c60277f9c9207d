"""How simulated signals change with parameters, controller gains and starts.

By the variational equations of our own loops; by forward differences, runs side by side, where MuJoCo simulates.

Each start is felt by its own piece only; it is projected out of that piece's rows (Golub, Pereyra, "The differentiation
of pseudo-inverses and nonlinear least squares problems whose variables separate", SIAM J. Numer. Anal. 1973).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..factors import absorb
from .pieces import Piece, Trace
from .runs import side_by_side

Array = NDArray[np.float64]

# Of what counts as large: curvature adds this share to a derivative, rounding of the integrator much less.
STEP = 1e-5
_SEEN = {"q": "q_seen", "qd": "qd_seen"}


@dataclass(frozen=True, eq=False)
class Point:
    """Where a search stands."""

    theta: Array
    gains: Array | None  # (3, n), where they are sought
    starts: tuple[Array | None, ...]  # of each piece


@dataclass(frozen=True, eq=False)
class Slope:
    """∂signals/∂(beta, gains) and ∂signals/∂start of a piece, (T, m, …)."""

    shared: Array
    own: Array
    simulations: int  # that it took


def signals_of(trace: Trace, names: Sequence[str]) -> Array:
    """(T, n · signals), the columns of one signal side by side, as sensors say them."""
    return np.concatenate([getattr(trace, _SEEN.get(name, name)) for name in names], axis=1)


def _difference(names: Sequence[str], still: Array, rows: int, move: Callable[[float], Trace], h: float) -> Array:
    """Forward, or backward where forward cannot be simulated; zero where neither can."""
    for step in (h, -h):
        trace = move(step)
        if trace.reached >= rows:
            return (signals_of(trace, names)[:rows] - still[:rows]) / step
    return np.zeros_like(still[:rows])


def slope_of(
    piece: Piece,
    trace: Trace,
    rows: int,
    point: Point,
    start: Array | None,
    names: Sequence[str],
    moves: Sequence[tuple[Array, float]],
    gain_moves: Sequence[tuple[int, int]],
    start_step: Array,
) -> Slope:
    """Sensitivities of one piece: along `moves` of theta, relative ones of gains, and of its start."""
    count = len(moves) + len(gain_moves)
    exact = piece.tangent(trace, rows, point.theta, start, point.gains, [d for d, _ in moves], names, gain_moves)
    if exact is not None:
        return Slope(exact[:, :, :count], exact[:, :, count:], 1)
    still = signals_of(trace, names)
    theta, gains = point.theta, point.gains
    tasks: list[Callable[[], Array]] = []

    def task(move: Callable[[float], Trace], h: float) -> None:
        tasks.append(lambda: _difference(names, still, rows, move, h))

    for direction, h in moves:

        def turned(s: float, direction: Array = direction) -> Trace:
            return piece.run(theta + s * direction, start, gains)

        task(turned, h)
    for row, column in gain_moves:
        assert gains is not None

        def scaled(s: float, row: int = row, column: int = column) -> Trace:
            changed = gains.copy()
            changed[row, column] *= np.exp(s)
            return piece.run(theta, start, changed)

        task(scaled, STEP)
    shared = len(tasks)
    if start is not None:
        for k in range(start.size):

            def shifted(s: float, k: int = k) -> Trace:
                moved = start.copy()
                moved.flat[k] += s
                return piece.run(theta, moved, gains)

            task(shifted, float(start_step.flat[k]))
    columns = side_by_side(tasks)
    empty = np.zeros((rows, still.shape[1], 0))
    return Slope(
        np.stack(columns[:shared], axis=2) if shared else empty,
        np.stack(columns[shared:], axis=2) if len(columns) > shared else empty,
        len(columns),
    )


@dataclass(frozen=True, eq=False)
class Projected:
    """A piece's weighted rows with its own start taken out, and what gives that start its step."""

    rows: Array  # (k, shared + 1), the residual last
    back: tuple[Array, Array] | None  # δstart = back[0] − back[1] δshared


def project(slope: Slope, e: Array, weights: Array) -> Projected:
    """Rows sqrt(w) (∂/∂shared, e) without what a change of the start explains."""
    root = np.sqrt(weights)[:, None]
    flat = (np.concatenate([slope.shared, e[:, :, None]], axis=2) * root).reshape(-1, slope.shared.shape[2] + 1)
    if not slope.own.shape[2]:
        return Projected(flat, None)
    own = (slope.own * root).reshape(-1, slope.own.shape[2])
    Q, R = np.linalg.qr(own)
    along = Q.T @ flat
    inverse = np.linalg.pinv(R)
    return Projected(flat - Q @ along, (inverse @ along[:, -1], inverse @ along[:, :-1]))


def factor_of(parts: Sequence[Projected]) -> tuple[Array, Array]:
    """(R, c) with ‖R d − c‖² what is left of all pieces after a step d of what they share, but for a constant."""
    R = np.zeros((0, parts[0].rows.shape[1]))
    for part in parts:
        R = absorb(R, part.rows)
    return R[:, :-1], R[:, -1]
