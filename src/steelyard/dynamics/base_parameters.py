"""Base parameters: the combinations of parameters that torque depends on, found from the structure of the robot.

    Y theta = Y_kept beta,    beta = theta_kept + K theta_regrouped

Columns of the regressor at random states are looked at in their natural order: one that is a combination of earlier
ones is regrouped into them, one that is zero has no effect. Gautier, Numerical calculation of the base inertial
parameters of robots, 1991.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from ..robot.robot import Robot
from ..robot.states import random_states
from .rigid_body import regressor

Array = NDArray[np.float64]

# A column counts as dependent when what earlier columns leave of it is below this share of its length. Rounding leaves
# 1e-14; the smallest real remainder of the library's robots is above 1e-4, and a lever of a micrometre leaves 1e-6.
DEPENDENT = 1e-9
# Between the smallest remainder that counts and the largest that does not there must be this ratio.
CLEAR_GAP = 1e3
# Coefficients below this share of the largest are rounding, of ours or of the angles in the model file: not printed.
NOT_PRINTED = 1e-6


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable combinations, and how to go to them and back."""

    parameter_names: tuple[str, ...]
    kept: NDArray[np.int64]  # columns that stand for a base parameter each
    regrouped: NDArray[np.int64]  # columns that only act through the kept ones
    without_effect: NDArray[np.int64]  # columns that no torque depends on
    K: Array  # (kept, regrouped)
    smallest_kept: float
    largest_dropped: float

    @property
    def rank(self) -> int:
        return len(self.kept)

    @property
    def has_clear_gap(self) -> bool:
        """Whether the rank is beyond doubt."""
        return self.smallest_kept > CLEAR_GAP * max(self.largest_dropped, 1e-15)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each base parameter as a sum of parameters; coefficients are rounded here and nowhere else."""
        regrouped = [self.parameter_names[k] for k in self.regrouped]
        return tuple(
            _combination(self.parameter_names[column], row, regrouped)
            for column, row in zip(self.kept, self.K, strict=True)
        )

    @cached_property
    def short_names(self) -> tuple[str, ...]:
        """The kept parameter's name, with a star where others are regrouped into it."""
        return tuple(
            self.parameter_names[column] + ("*" if np.abs(row).max(initial=0.0) > NOT_PRINTED else "")
            for column, row in zip(self.kept, self.K, strict=True)
        )

    @cached_property
    def projection(self) -> Array:
        """B with beta = B theta, (rank, parameters)."""
        B = np.zeros((self.rank, len(self.parameter_names)))
        B[np.arange(self.rank), self.kept] = 1.0
        B[:, self.regrouped] = self.K
        return B

    def reduce(self, theta: ArrayLike) -> Array:
        """beta of the full parameters theta; also row by row."""
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape[-1:] != (len(self.parameter_names),):
            raise DataError(f"theta has shape {theta.shape}; {len(self.parameter_names)} parameters are needed")
        return theta[..., self.kept] + theta[..., self.regrouped] @ self.K.T

    def expand(self, beta: ArrayLike, nominal: ArrayLike) -> Array:
        """Full parameters with this beta in which all that is not a base parameter keeps its nominal value.

        They give the same torques as any other choice, but need not be physical: `Physical` finds those that are.
        """
        beta = np.asarray(beta, dtype=np.float64)
        if beta.shape != (self.rank,):
            raise DataError(f"beta has shape {beta.shape}; there are {self.rank} base parameters")
        theta = np.array(nominal, dtype=np.float64)
        if theta.shape != (len(self.parameter_names),):
            raise DataError(f"nominal has shape {theta.shape}; {len(self.parameter_names)} parameters are needed")
        theta[self.kept] = beta - self.K @ theta[self.regrouped]
        return theta

    def columns(self, Y: Array) -> Array:
        """The base regressor: the kept columns of a full one."""
        return Y[..., self.kept]


def _number(x: float) -> str:
    # Through ten digits first: a tie like 0.050625 must not fall either way with the last bit.
    return f"{float(f'{x:.10g}'):.4g}"


def _combination(first: str, coefficients: Array, names: list[str]) -> str:
    """`a + b - 0.316·(c + d)`: terms with the same coefficient share it."""
    groups: dict[str, list[str]] = {}
    least = NOT_PRINTED * max(1.0, float(np.abs(coefficients).max(initial=0.0)))
    for coefficient, name in zip(coefficients, names, strict=True):
        if abs(coefficient) > least:
            groups.setdefault(_number(coefficient), []).append(name)
    text = first
    for number, members in groups.items():
        sign, size = (" - ", number[1:]) if number.startswith("-") else (" + ", number)
        if size == "1":
            text += sign + sign.join(members)
        else:
            text += f"{sign}{size}·" + (members[0] if len(members) == 1 else f"({' + '.join(members)})")
    return text


def _independent_columns(R: Array) -> tuple[list[int], list[float]]:
    """Columns that earlier ones do not span, and what is left of every column of length one."""
    basis = np.empty((R.shape[0], 0))
    kept: list[int] = []
    left: list[float] = []
    for k in range(R.shape[1]):
        rest = R[:, k].copy()
        for _ in range(2):  # once more, because the first sweep leaves rounding of the size of the projection
            rest -= basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        left.append(length)
        if length > DEPENDENT:
            kept.append(k)
            basis = np.column_stack([basis, rest / length])
    return kept, left


def base_parameters(
    robot: Robot,
    rng: np.random.Generator | None = None,
    states: int | None = None,
    only: Iterable[str] | None = None,
) -> BaseParameters:
    """The base parameters of a robot's identified parameters, or of a choice of them, from its structure alone.

    `rng` draws the random states; the answer does not depend on it, which `has_clear_gap` vouches for. Parameters
    that are not among `only` count as known.
    """
    rng = np.random.default_rng(20240) if rng is None else rng
    p = robot.layout.size
    count = max(60, 4 * p // robot.n) if states is None else states
    W = regressor(robot, *random_states(robot, rng, count, within_limits=False)).reshape(-1, p)
    norms = np.linalg.norm(W, axis=0)
    seen = norms > 1e-12 * norms.max(initial=1e-300)
    chosen = np.ones(p, dtype=bool)
    if only is not None:
        chosen[:] = False
        chosen[robot.layout.indices(only)] = True
    active = np.flatnonzero(seen & chosen)
    R: Array = np.linalg.qr(W[:, active] / norms[active], mode="r")  # type: ignore[assignment]
    kept, left = _independent_columns(R)
    dropped = [k for k in range(len(active)) if k not in set(kept)]
    if dropped:
        K = np.linalg.lstsq(R[:, kept], R[:, dropped], rcond=None)[0]
        K = K * norms[active[dropped]] / norms[active[kept]][:, None]
    else:
        K = np.zeros((len(kept), 0))
    K[np.abs(K) < 1e-13 * np.abs(K).max(initial=0.0)] = 0.0
    for array in (K, active):
        array.setflags(write=False)
    return BaseParameters(
        parameter_names=robot.parameter_names,
        kept=active[kept],
        regrouped=active[dropped],
        without_effect=np.flatnonzero(~seen & chosen),
        K=K,
        smallest_kept=min((left[k] for k in kept), default=np.inf),
        largest_dropped=max((left[k] for k in dropped), default=0.0),
    )


@dataclass(frozen=True)
class BlindDirection:
    """A combination of base parameters that a recording does not show."""

    weights: tuple[tuple[str, float], ...]  # largest first, of length one together
    visibility: float  # singular value, relative to the largest

    def __str__(self) -> str:
        terms = [f"{'-' if w < 0 else '+'} {abs(w):.2g}·{name}" for name, w in self.weights]
        return " ".join(terms).removeprefix("+ ")


def blind_directions(
    names: tuple[str, ...], W: ArrayLike, tolerance: float = 1e-6, most: int = 6
) -> tuple[BlindDirection, ...]:
    """What these rows of a base regressor (or its triangular factor) cannot tell apart.

    Columns are brought to length one first, so that units do not decide; a column of zeros is blind by itself.
    """
    W = np.asarray(W, dtype=np.float64)
    norms = np.linalg.norm(W, axis=0)
    if not norms.max(initial=0.0) > 0:
        return tuple(BlindDirection(((name, 1.0),), 0.0) for name in names)
    zero = norms <= 1e-12 * norms.max()
    found = [BlindDirection(((names[k], 1.0),), 0.0) for k in np.flatnonzero(zero)]
    seen = np.flatnonzero(~zero)
    R = np.linalg.qr(W[:, seen] / norms[seen], mode="r")
    _, s, vt = np.linalg.svd(R)
    s = np.concatenate([s, np.zeros(len(seen) - len(s))])
    for value, direction in zip(s[::-1], vt[::-1], strict=True):
        if value > tolerance * s[0]:
            break
        original = direction / norms[seen]
        original /= np.linalg.norm(original)
        order = np.argsort(-np.abs(original))[:most]
        terms = tuple((names[seen[k]], float(original[k])) for k in order if abs(original[k]) > 0.01)
        found.append(BlindDirection(terms, float(value / s[0])))
    return tuple(found)
