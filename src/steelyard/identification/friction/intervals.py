"""How sure a fit of Stribeck's law is: intervals from the profile of its likelihood, and whether there is a dip at all.

Of a linear parameter b, given (q̇s, δ), the least sum of squares is a parabola, so that its interval is

    { b : S(b) ≤ T } = ∪ over (q̇s, δ) of b̂ ± sqrt((T − Ŝ) c),    T = S_min (1 + F_1,ν(confidence)/ν)

with c the variance factor of b̂ there and Ŝ ≤ S without the limits of parameters; (q̇s, δ) are as good as T within
them. It is unbounded where the points say nothing. Bates and Watts, Nonlinear Regression Analysis and Its
Applications, 1988, ch. 6.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import f as f_distribution

from .projection import SHAPES, Batch, Found, Regression

Array = NDArray[np.float64]
_FINE = 160  # steps from the best q̇s to each side, ever wider
_SHAPE_STEPS = 24
_CHANCE = 2.33  # standard errors of a correlation, which one in a hundred exceeds by chance


@dataclass(frozen=True)
class Interval:
    """A value with the ends of its confidence interval; infinite ends: the points do not show it."""

    value: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the points bound it on both sides, and not only the law."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


class Dip(NamedTuple):
    """Whether the points show a Stribeck dip."""

    p_value: float  # of a dip as deep or deeper where there is none
    f: float  # of the best dip
    bic_gain: float  # of the Bayesian information criterion; above 0: with the dip is better


def threshold(squares: float, freedom: int, confidence: float, alike: float) -> float:
    """T, with the variance of estimates multiplied by `alike`."""
    return squares * (1.0 + alike * float(f_distribution.ppf(confidence, 1, freedom)) / freedom)


def alikeness(problem: Regression, best: Found) -> float:
    """By how much points count for less as residuals of neighbouring speeds are alike: (1 + ρ)/(1 − ρ).

    It is 1 where their correlation ρ may be chance. Where it is not, the points do not err independently, or the law
    does not have their shape.
    """
    e = problem.residuals(best.velocity, best.shape)[np.argsort(problem.sign * problem.speed, kind="stable")]
    if float(e @ e) <= problem.rounding:
        return 1.0
    rho = float(e[1:] @ e[:-1]) / float(e @ e)
    return (1.0 + rho) / (1.0 - rho) if rho > _CHANCE / np.sqrt(len(e)) else 1.0


def _around(best: float, low: float, high: float) -> Array:
    """Velocities that lie ever denser about the best one, and evenly over the whole range."""
    first, last, centre = float(np.log(low)), float(np.log(high)), float(np.log(best))
    reach = np.geomspace(1e-9, max(last - first, 1e-6), _FINE)
    spread = np.concatenate([centre - reach, [centre], centre + reach, np.linspace(first, last, 80)])
    return np.exp(np.unique(np.clip(spread, first, last)))


def _best_velocity(problem: Regression, shape: float) -> float:
    grid = problem.grid(shape, 60)
    k = int(np.argmin(problem.batch(grid, np.full(60, shape)).free))
    ends = np.log(grid[max(k - 1, 0)]), np.log(grid[min(k + 1, 59)])
    found = minimize_scalar(
        lambda x: float(problem.batch(np.exp(x), shape).free[0]), bounds=ends, method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x))


def _shape_ladder(best: float) -> Array:
    """Shapes δ from one limit to the other, denser about the best one."""
    reach = np.geomspace(1e-4, np.log(SHAPES[1] / SHAPES[0]), _SHAPE_STEPS)
    steps = np.log(best) + np.concatenate([-reach, [0.0], reach])
    return np.exp(np.unique(np.clip(steps, *np.log(SHAPES))))


def _crossing(x: Array, left: Array, inside: int, outside: int, T: float) -> float:
    """Where the sum of squares reaches T between two neighbouring points."""
    rise = left[outside] - left[inside]
    share = (T - left[inside]) / rise if rise > 0 else 0.0
    return float(x[inside] + share * (x[outside] - x[inside]))


class _Region(NamedTuple):
    """Points (q̇s, δ) that are as good as T, with what stands at the ends of the range of q̇s."""

    batch: Batch
    velocity: tuple[float, float]
    low_end: bool
    high_end: bool
    shapes: tuple[float, float]


def _region(problem: Regression, best: Found, T: float) -> _Region:
    sought = problem.shape is None
    shapes = _shape_ladder(best.shape) if sought else np.array([best.shape])
    parts, ends, good = [], [], []
    low_end = high_end = False
    for shape in shapes:
        low, high = problem.limits(float(shape))
        found = np.isclose(shape, best.shape, rtol=1e-12, atol=0.0)  # a logarithm there and back
        centre = best.velocity if found else _best_velocity(problem, float(shape))
        x = _around(centre, low, high)
        batch = problem.batch(x, np.full(len(x), shape))
        inside = np.flatnonzero(batch.squares <= T)
        if not len(inside):
            continue
        good.append(float(shape))
        first, last = int(inside[0]), int(inside[-1])
        low_end, high_end = low_end or first == 0, high_end or last == len(x) - 1
        log = np.log(x)
        ends.append(
            (
                float(np.exp(log[0] if first == 0 else _crossing(log, batch.squares, first, first - 1, T))),
                float(np.exp(log[-1] if last == len(x) - 1 else _crossing(log, batch.squares, last, last + 1, T))),
            )
        )
        parts.append(Batch(*(values[inside] for values in batch)))
    joined = Batch(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    velocity = (0.0 if low_end else min(e[0] for e in ends), np.inf if high_end else max(e[1] for e in ends))
    reach = (
        0.0 if min(good) <= SHAPES[0] * 1.001 else min(good),
        np.inf if max(good) >= SHAPES[1] * 0.999 else max(good),
    )
    return _Region(joined, velocity, low_end, high_end, reach if sought else (best.shape, best.shape))


def stribeck_intervals(problem: Regression, best: Found, confidence: float, alike: float) -> dict[str, Interval]:
    """Of every parameter of the law with a dip; a lower end of 0 is the law's where a value cannot be negative."""
    here = float(problem.batch(best.velocity, best.shape).squares[0])  # equal to the best but for rounding
    T = threshold(max(best.squares, here, 4.0 * problem.rounding), problem.size - problem.unknowns, confidence, alike)
    region = _region(problem, best, T)
    beta, dip, _ = problem.at(best.velocity, best.shape)
    batch = region.batch
    slack = np.maximum(T - batch.free, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spare = np.where(batch.power > 0, 1.0 / batch.power, np.inf)
    found: dict[str, Interval] = {}

    def add(name: str, value: float, centre: Array, variance: Array, least: float) -> None:
        reach = np.sqrt(slack * variance)
        low, high = float(np.min(centre - reach)), float(np.max(centre + reach))
        found[name] = Interval(value, min(max(low, least), value), max(high, value))

    for k, name in enumerate(problem.names):
        variance = problem.base_variance[k] + batch.slope[:, k] ** 2 * spare
        add(name, float(beta[k]), batch.beta[:, k], variance, 0.0 if name != "offset" else -np.inf)
    c = problem.names.index("coulomb")
    variance = problem.base_variance[c] + (batch.slope[:, c] + 1.0) ** 2 * spare
    add("static", float(beta[c] + dip), batch.beta[:, c] + batch.dip, variance, 0.0)
    dry = found["coulomb"]
    found["coulomb"] = Interval(dry.value, dry.low, min(dry.high, found["static"].high))
    if region.low_end:  # a peak between standstill and the slowest point may be as high as it likes
        found["static"] = Interval(found["static"].value, found["coulomb"].low, np.inf)
    # Beyond a dip that never ends may lie anything; where only Fc ≥ 0 ends it, the points do not.
    endless = region.high_end or found["coulomb"].low <= 0.0
    if endless:
        found["coulomb"] = Interval(found["coulomb"].value, -np.inf, found["static"].high)
    found["stribeck_velocity"] = Interval(best.velocity, region.velocity[0], np.inf if endless else region.velocity[1])
    found["shape"] = Interval(best.shape, *region.shapes)
    return found


def straight_intervals(problem: Regression, confidence: float, alike: float) -> dict[str, Interval]:
    """Of Coulomb and viscous friction alone."""
    beta, squares = problem.straight
    centre, free = problem.straight_free()
    freedom = problem.size - len(problem.names)
    slack = max(threshold(squares, freedom, confidence, alike) - free, 0.0)
    found = {}
    for k, name in enumerate(problem.names):
        reach = float(np.sqrt(slack * problem.base_variance[k]))
        least = -np.inf if name == "offset" else 0.0
        found[name] = Interval(
            float(beta[k]), max(float(centre[k]) - reach, least), max(float(centre[k]) + reach, beta[k])
        )
    return found


def dip_test(problem: Regression, best: Found, simulations: int, rng: np.random.Generator, alike: float) -> Dip:
    """The F of the best dip of any width, against its distribution where there is none.

    Without a dip q̇s has no meaning, and F of the best of all q̇s is larger than F tables say (Davies, Biometrika 74,
    1987). So noise is drawn: exact in finite samples, as F does not depend on the noise's size.
    """
    rest, U = problem.off_the_line(), problem.own_dips()
    freedom = problem.size - len(problem.names)
    whole = float(rest @ rest)

    def statistic(gain: Array, total: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total > gain, gain / (total - gain), np.inf) * (freedom - 2)

    gain = float(np.max(np.maximum(U @ rest, 0.0), initial=0.0) ** 2)
    measured = statistic(np.array([gain]), np.array([whole]))[0] / alike if whole > problem.rounding else 0.0
    # All dips lie in a space of few dimensions; the noise in the others only counts by its length.
    _, s, V = np.linalg.svd(U, full_matrices=False)
    rank = min(int(np.count_nonzero(s > 1e-6 * s[0])), freedom)
    inside = U @ V[:rank].T
    z = rng.standard_normal((simulations, rank))
    length = np.sum(z**2, axis=1) + (rng.chisquare(freedom - rank, simulations) if freedom > rank else 0.0)
    drawn = statistic(np.max(np.maximum(z @ inside.T, 0.0), axis=1, initial=0.0) ** 2, length)
    p = (1 + int(np.count_nonzero(drawn >= measured))) / (simulations + 1)
    straight = problem.straight[1]
    extra = problem.unknowns - len(problem.names)
    tiny = np.finfo(float).tiny
    ratio = max(straight, tiny) / max(best.squares, tiny)
    return Dip(p, float(measured) / 2.0, float(problem.size * np.log(ratio) - extra * np.log(problem.size)))
