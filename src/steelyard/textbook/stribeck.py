"""Exercise 7.3: Stribeck's law from points of velocity and friction, by the chapter's recipe and by a search."""

from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from .answer import Answer, Line

Array = NDArray[np.float64]

NAMES = ("coulomb", "static", "damping", "stribeck_velocity")
TRUTH = {"coulomb": 1.0, "static": 1.6, "damping": 3.0, "stribeck_velocity": 0.02}
_UNITS = ("N·m", "N·m", "N·m·s/rad", "rad/s")
_POINTS, _NOISE, _FASTEST = 200, 0.03, 0.1  # the chapter's range of ±0.1 rad/s
_STARTS = 12
_TRIALS = 20


def law(p: Array, qd: Array) -> Array:
    """[Fc + (Fs − Fc) exp(−(q̇/q̇s)²)] sgn q̇ + Bv q̇."""
    coulomb, static, damping, velocity = p
    return np.asarray((coulomb + (static - coulomb) * np.exp(-((qd / velocity) ** 2))) * np.sign(qd) + damping * qd)


def measured(rng: np.random.Generator) -> tuple[Array, Array]:
    """Points of both directions with noise: what a joint takes that moves at a constant speed."""
    qd = rng.uniform(-_FASTEST, _FASTEST, size=_POINTS)
    return qd, law(np.array([TRUTH[name] for name in NAMES]), qd) + _NOISE * rng.normal(size=_POINTS)


def recipe_start(qd: Array, tau: Array) -> Array:
    """The printed first guess, from the look of the curve: level and slope where fast, the level where slow."""
    speed, size = np.abs(qd), np.abs(tau)
    fast = speed > 0.7 * speed.max()
    slope, level = np.polyfit(speed[fast], size[fast], 1)
    return np.array([level, size[speed < 0.05 * speed.max()].mean(), slope, 0.5 * speed.max()])


def by_recipe(qd: Array, tau: Array, start: Array) -> Array:
    """The printed search: a general minimiser of the sum of squares over all four."""
    return np.asarray(scipy.optimize.minimize(lambda p: float(((tau - law(p, qd)) ** 2).sum()), start).x)


def _levels(velocity: float, qd: Array, tau: Array) -> tuple[Array, Array]:
    """For a Stribeck velocity the law is linear in the rest: (Fc, Fs − Fc, Bv) and what is left."""
    sign = np.sign(qd)
    A = np.column_stack([sign, sign * np.exp(-((qd / velocity) ** 2)), qd])
    found = np.linalg.lstsq(A, tau, rcond=None)[0]
    return found, tau - A @ found


def _from(velocity: float, qd: Array, tau: Array) -> Any:
    """SciPy's least squares over the logarithm of the Stribeck velocity, from one start."""
    return scipy.optimize.least_squares(lambda x: _levels(float(np.exp(x[0])), qd, tau)[1], [np.log(velocity)])


def by_search(qd: Array, tau: Array) -> tuple[Array, Array]:
    """Several starts over the one parameter that is not linear; and standard deviations of all four."""
    scale = np.abs(qd).max()
    starts = np.geomspace(1e-2, 3.0, _STARTS) * scale
    best = min((_from(start, qd, tau) for start in starts), key=lambda found: found.cost)
    velocity = float(np.exp(best.x[0]))
    coulomb, dip, damping = _levels(velocity, qd, tau)[0]
    p = np.array([coulomb, coulomb + dip, damping, velocity])
    whole = scipy.optimize.least_squares(lambda x: law(x, qd) - tau, p, x_scale=np.abs(p), xtol=1e-12)
    variance = 2 * whole.cost / (len(qd) - len(p))
    return whole.x, np.sqrt(variance * np.diag(np.linalg.inv(whole.jac.T @ whole.jac)))


def arrivals(qd: Array, tau: Array, best: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Of starts a tenth to ten times the first guess, the share that ends within 1 % of the least sum of squares: of
    the search from one start each, and of the recipe.
    """
    least = ((tau - law(best, qd)) ** 2).sum()
    starts = recipe_start(qd, tau) * 10 ** rng.uniform(-1, 1, size=(_TRIALS, len(best)))
    searched = [2 * _from(start[3], qd, tau).cost for start in starts]
    with np.errstate(all="ignore"):
        minimised = [((tau - law(by_recipe(qd, tau, start), qd)) ** 2).sum() for start in starts]
    ours, recipe = (float(np.mean(np.array(ends) < 1.01 * least)) for ends in (searched, minimised))
    return ours, recipe


def stribeck(rng: np.random.Generator) -> Answer:
    """200 points, both ways; and each direction by itself."""
    qd, tau = measured(rng)
    printed, (ours, deviation) = by_recipe(qd, tau, recipe_start(qd, tau)), by_search(qd, tau)
    sides = [by_search(qd[side], tau[side]) for side in (qd > 0, qd < 0)]
    lines = []
    for k, name in enumerate(NAMES):
        label = f"{name.replace('_', ' ')}, truly {TRUTH[name]:g} (1 s.d. {deviation[k]:.2g})"
        lines.append(Line(name, label, float(ours[k]), float(printed[k]), _UNITS[k]))
    apart = [
        float((sides[0][0][k] - sides[1][0][k]) / np.hypot(sides[0][1][k], sides[1][1][k])) for k in range(len(NAMES))
    ]
    lines += [
        Line(f"{name} apart", f"{name.replace('_', ' ')}: forward less backward, in their deviations", apart[k])
        for k, name in enumerate(NAMES)
    ]
    arrive = arrivals(qd, tau, ours, rng)
    lines.append(
        Line("arrive", "single starts, 0.1 … 10 times the first guess, that reach the best fit, share", *arrive)
    )
    return Answer(
        "7.3",
        "Stribeck's law from 200 points within ±0.1 rad/s",
        tuple(lines),
        (
            "The law is linear in F_c, F_s − F_c and B_v once q̇_s is given, so that only q̇_s has to be searched. Even "
            "so one start often ends elsewhere, as a general minimiser over all four does more often: we take twelve. "
            "Only q̇_s² enters, so that the recipe may end at the negative of q̇_s.",
            "Parameters of both directions 'should be near' each other: near is told by their deviations, and a "
            "difference of four of them is one.",
            "Within ±0.1 rad/s B_v rests on the part above q̇_s alone; at speeds at which a robot works it has to be "
            "measured there.",
        ),
        ("steelyard friction points.csv --output friction.yaml",),
    )
