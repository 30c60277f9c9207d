"""Stribeck's law as a regression: given q̇s and δ it is linear in all the rest, which is solved for at once.

    y = X β + D s exp(−|q̇/q̇s|^δ) + noise,    D = Fs − Fc ≥ 0

X has a column a linear parameter (s or 1 for Fc, q̇ for Bv, 1 for an offset); Fc and Bv are not below zero. Golub and
Pereyra, Separable nonlinear least squares, Inverse Problems 19, 2003.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

Array = NDArray[np.float64]

SHAPES = (0.3, 6.0)  # limits of δ where it is sought
# Where q̇s is sought: beyond these, the dip at the slowest point, or what is missing of it at the fastest, is as small.
_NO_DIP, _ALL_DIP = 30.0, 1e-3
_GRID = 120
_AT_ONCE = 2_000_000  # numbers in a block of a batch
# Minima whose sums of squares agree to this are one.
_ALIKE = 1e-6
_ROUNDING = 1e-12  # of the torque: less is no misfit
_AT_LIMIT = 1e-3  # of a logarithm


class Batch(NamedTuple):
    """What the best linear parameters leave, for many (q̇s, δ)."""

    squares: Array  # (G,) with the limits of the parameters
    free: Array  # (G,) without any limit
    beta: Array  # (G, k) without limits
    dip: Array  # (G,)
    slope: Array  # (G, k) ∂β/∂D
    power: Array  # (G,) of what the dip's column has of its own; 1/power is its variance


@dataclass(frozen=True, eq=False)
class Regression:
    """Points of one joint that moves, weighted, and the columns of the linear parameters."""

    speed: Array  # (n,) above zero
    sign: Array  # (n,) of the dip's column
    y: Array
    weight: Array  # (n,) 1 over relative deviation
    X: Array  # (n, k)
    names: tuple[str, ...]  # of the columns
    shape: float | None = 2.0  # δ, sought where None

    @property
    def size(self) -> int:
        return len(self.y)

    @property
    def unknowns(self) -> int:
        """With the dip."""
        return len(self.names) + 2 + (self.shape is None)

    @property
    def rounding(self) -> float:
        """A sum of squares that is only rounding."""
        return _ROUNDING**2 * float(self._wy @ self._wy)

    @cached_property
    def _wX(self) -> Array:
        return self.X * self.weight[:, None]

    @cached_property
    def _wy(self) -> Array:
        return self.y * self.weight

    @cached_property
    def _bases(self) -> list[tuple[list[int], Array, Array]]:
        """Columns, Q and R⁻¹ with every choice of Fc and Bv held at zero; the first one holds none."""
        held = [k for k, name in enumerate(self.names) if name in ("coulomb", "damping")]
        bases = []
        for count in range(len(held) + 1):
            for without in combinations(held, count):
                columns = [k for k in range(len(self.names)) if k not in without]
                Q, R = np.linalg.qr(self._wX[:, columns])
                bases.append((columns, Q, np.linalg.pinv(R)))
        return bases

    @cached_property
    def base_variance(self) -> Array:
        """Diagonal of (XᵀX)⁻¹."""
        inverse = self._bases[0][2]
        return np.asarray(np.sum(inverse**2, axis=1))

    def _dips(self, velocity: Array, shape: Array) -> Array:
        """(G, n)."""
        with np.errstate(over="ignore", under="ignore"):
            return self.weight * self.sign * np.exp(-((self.speed / velocity[:, None]) ** shape[:, None]))

    @cached_property
    def straight(self) -> tuple[Array, float]:
        """β and sum of squares without a dip, within the limits."""
        best, squares = np.zeros(len(self.names)), np.inf
        for columns, Q, inverse in self._bases:
            seen = Q.T @ self._wy
            beta = np.zeros(len(self.names))
            beta[columns] = inverse @ seen
            left = float(np.sum((self._wy - Q @ seen) ** 2))
            if left < squares and self._within(beta[None])[0]:
                best, squares = beta, left
        return best, squares

    def straight_free(self) -> tuple[Array, float]:
        """The same without limits."""
        _, Q, inverse = self._bases[0]
        seen = Q.T @ self._wy
        return inverse @ seen, float(np.sum((self._wy - Q @ seen) ** 2))

    def _within(self, beta: Array) -> NDArray[np.bool_]:
        ok = np.ones(len(beta), dtype=bool)
        for k, name in enumerate(self.names):
            if name in ("coulomb", "damping"):
                ok &= beta[:, k] >= 0.0
        return ok

    def _solved(self, E: Array, base: tuple[list[int], Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        """Squares, β, D, ∂β/∂D and power with one choice of columns, D not limited."""
        columns, Q, inverse = base
        seen = Q.T @ self._wy
        rest, mixed = self._wy - Q @ seen, E @ Q
        own = E - mixed @ Q.T
        power = np.einsum("gi,gi->g", own, own)
        with np.errstate(divide="ignore", invalid="ignore"):
            dip = np.where(power > 0, own @ rest / power, 0.0)
        squares = np.sum((rest - dip[:, None] * own) ** 2, axis=1)
        slope, beta = np.zeros((len(E), len(self.names))), np.zeros((len(E), len(self.names)))
        slope[:, columns] = -mixed @ inverse.T
        beta[:, columns] = inverse @ seen
        return squares, beta + dip[:, None] * slope, dip, slope, power

    def batch(self, velocity: ArrayLike, shape: ArrayLike) -> Batch:
        """The best linear parameters at many (q̇s, δ)."""
        velocity, shape = (np.atleast_1d(np.asarray(x, dtype=float)) for x in np.broadcast_arrays(velocity, shape))
        step = max(1, _AT_ONCE // self.size)
        parts = [self._block(velocity[k : k + step], shape[k : k + step]) for k in range(0, len(velocity), step)]
        return Batch(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _block(self, velocity: Array, shape: Array) -> Batch:
        E = self._dips(velocity, shape)
        none = self.straight[1]
        free, beta, dip, slope, power = self._solved(E, self._bases[0])
        ok = self._within(beta) & (dip >= 0)
        squares = np.where(ok, free, none)
        if not ok.all():
            for base in self._bases[1:]:
                left, b, d, _, _ = self._solved(E[~ok], base)
                squares[~ok] = np.minimum(squares[~ok], np.where(self._within(b) & (d >= 0), left, np.inf))
        return Batch(squares, free, beta, dip, slope, power)

    def at(self, velocity: float, shape: float) -> tuple[Array, float, float]:
        """β, D and the sum of squares within the limits."""
        E = self._dips(np.array([velocity]), np.array([shape]))
        beta, none = self.straight
        found: tuple[Array, float, float] = beta, 0.0, none
        for base in self._bases:
            left, b, d, _, _ = self._solved(E, base)
            if d[0] >= 0 and self._within(b)[0]:
                if left[0] < found[2]:
                    found = b[0], float(d[0]), float(left[0])
                if base is self._bases[0]:
                    break  # the best of all is within the limits
        return found

    def residuals(self, velocity: float, shape: float) -> Array:
        """Weighted, of the best linear parameters."""
        beta, dip, _ = self.at(velocity, shape)
        return np.asarray(self._wy - self._wX @ beta - dip * self._dips(np.array([velocity]), np.array([shape]))[0])

    def limits(self, shape: float) -> tuple[float, float]:
        """Of q̇s."""
        return (
            float(self.speed.min()) / _NO_DIP ** (1.0 / shape),
            float(self.speed.max()) / _ALL_DIP ** (1.0 / shape),
        )

    def grid(self, shape: float, count: int = _GRID) -> Array:
        """Velocities q̇s from one limit to the other."""
        return np.geomspace(*self.limits(shape), count)

    def own_dips(self) -> Array:
        """Unit vectors of what dips of all widths have that the linear columns have not, (G, n)."""
        shapes = [self.shape] if self.shape is not None else np.geomspace(0.5, 4.0, 4).tolist()
        _, Q, _ = self._bases[0]
        rows = []
        for shape in shapes:
            E = self._dips(self.grid(shape, 80), np.full(80, shape))
            own = E - (E @ Q) @ Q.T
            length, whole = np.linalg.norm(own, axis=1), np.linalg.norm(E, axis=1)
            keep = length > 1e-9 * np.maximum(whole, 1e-300)
            rows.append(own[keep] / length[keep, None])
        return np.concatenate(rows)

    def off_the_line(self) -> Array:
        """What the linear columns leave of the torque, weighted."""
        _, Q, _ = self._bases[0]
        return np.asarray(self._wy - Q @ (Q.T @ self._wy))


class Found(NamedTuple):
    """The best point of a search."""

    velocity: float
    shape: float
    squares: float
    starts: int
    agreeing: int  # searches that ended there
    converged: bool
    at_limit: str  # "", "low" or "high": where q̇s stands at the end of its range
    shape_at_limit: bool


def _starts(problem: Regression, count: int, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """From random velocities and shapes, evenly spread: one in each of `count` slices of the range."""
    shares = (rng.permutation(count) + rng.random(count)) / count
    drawn = SHAPES[0] * (SHAPES[1] / SHAPES[0]) ** rng.random(count)
    shapes = drawn if problem.shape is None else np.full(count, problem.shape)
    for share, shape in zip(shares, shapes, strict=True):
        low, high = np.log(problem.limits(float(shape)))
        yield float(np.exp(low + share * (high - low))), float(shape)


def search(problem: Regression, starts: int, rng: np.random.Generator, polished: int = 4) -> Found:
    """The least sum of squares over q̇s (and δ): random starts, the best of which are followed down."""
    seeds = np.array(list(_starts(problem, starts, rng)))
    grid = problem.grid(2.0 if problem.shape is None else problem.shape, 40)
    seeds = np.vstack([seeds, np.column_stack([grid, np.full(len(grid), problem.shape or 2.0)])])
    order = np.argsort(problem.batch(seeds[:, 0], seeds[:, 1]).squares)
    sought = problem.shape is None
    ends = [problem.limits(shape) for shape in (SHAPES if sought else (problem.shape or 2.0,))]
    low, high = np.log(min(e[0] for e in ends)), np.log(max(e[1] for e in ends))
    bounds = ([low, np.log(SHAPES[0])], [high, np.log(SHAPES[1])]) if sought else ([low], [high])
    scale = float(np.linalg.norm(problem.y * problem.weight)) or 1.0

    def residuals(x: Array) -> Array:
        shape = float(np.exp(x[1])) if sought else float(problem.shape or 2.0)
        return problem.residuals(float(np.exp(x[0])), shape) / scale

    ended = []
    for velocity, shape in seeds[order[:polished]]:
        x0 = np.log([velocity, shape]) if sought else np.log([velocity])
        x0 = np.clip(x0, np.add(bounds[0], 1e-9), np.subtract(bounds[1], 1e-9))
        done = least_squares(residuals, x0, "3-point", bounds, xtol=1e-14, ftol=1e-14, gtol=1e-15, max_nfev=200)
        ended.append((2.0 * float(done.cost) * scale**2, done.x, done.status > 0))
    squares, x, converged = min(ended, key=lambda end: end[0])
    near = [e for e in ended if e[0] <= squares * (1 + _ALIKE) + 1e-28 * scale**2]
    shape = float(np.exp(x[1])) if sought else float(problem.shape or 2.0)
    first, last = np.log(problem.limits(shape))
    side = "low" if x[0] < first + _AT_LIMIT else "high" if x[0] > last - _AT_LIMIT else ""
    edge = sought and bool(min(x[1] - bounds[0][1], bounds[1][1] - x[1]) < _AT_LIMIT)
    return Found(float(np.exp(x[0])), shape, squares, starts, len(near), bool(converged), side, edge)
