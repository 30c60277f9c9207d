"""`fit_friction`: Stribeck's law from points (q̇, τ), both directions together and each by itself.

    τ = offset + [Fc + (Fs − Fc) exp(−|q̇/q̇s|^δ)] sgn(q̇) + Bv q̇

Each direction alone cannot tell the offset from Fc: there both stand in `coulomb` and `static`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution
from scipy.stats import norm

from ...errors import DataError, OptionError
from .curve import FrictionCurve
from .intervals import Dip, Interval, alikeness, dip_test, straight_intervals, stribeck_intervals
from .outliers import ordinary
from .points import FrictionPoints, thinned
from .projection import SHAPES, Regression, search

Array = NDArray[np.float64]
# Weights of points keep within this factor of the middle one, so that one lucky average does not decide.
_LEAST_DEVIATION = 0.2
_SIGNS = {"forward": 1.0, "backward": -1.0}
_NO_OFFSET = Interval(0.0, 0.0, 0.0)
NO_DIP = "no Stribeck dip is visible: Coulomb and viscous friction describe the points as well"


@dataclass(frozen=True)
class StribeckFit:
    """How a fit is done; `shape` is δ, sought where None."""

    shape: float | None = 2.0
    robust: bool = False  # leave out what lies farther off than noise does
    confidence: float = 0.95
    significance: float = 0.01  # below which chance is not believed: of a dip, and of directions that differ
    starts: int = 32
    simulations: int = 1999  # of noise without a dip

    def __post_init__(self) -> None:
        if self.shape is not None and not SHAPES[0] <= self.shape <= SHAPES[1]:
            raise OptionError(f"the shape δ is {self.shape}; give {SHAPES[0]:g} to {SHAPES[1]:g}, or let it be fitted")
        for name, value in (("confidence", self.confidence), ("significance", self.significance)):
            if not 0 < value < 1:
                raise OptionError(f"the {name} is {value}; give a share between 0 and 1")
        if self.starts < 4 or self.simulations < 99:
            raise OptionError(f"{self.starts} starts and {self.simulations} simulations; give at least 4 and 99")


@dataclass(frozen=True, eq=False)
class CurveFit:
    """One law on some of the points."""

    direction: str  # "both", "forward" or "backward"
    values: Mapping[str, Interval]  # as reported: with the dip where it is warranted, else without
    stribeck: Mapping[str, Interval]
    straight: Mapping[str, Interval]  # Coulomb and viscous friction
    dip: Dip
    warranted: bool  # whether the points show a dip
    noise: float  # standard deviation of a point of usual weight
    points: int
    squares: tuple[float, float]  # without and with the dip
    starts: int
    agreeing: int  # of the searches that were followed down, those that ended here
    converged: bool
    alike: float  # by how much variances grew as residuals of neighbours are alike; 1 where they are not
    message: str

    @property
    def not_shown(self) -> tuple[str, ...]:
        """Parameters that the points do not bound."""
        return tuple(name for name, interval in self.values.items() if not interval.shown)


@dataclass(frozen=True)
class Symmetry:
    """Whether the directions share one law: p-values of laws that are the same, and that are but for an offset."""

    same: float
    but_offset: float
    verdict: str
    symmetric: bool  # but for an offset


@dataclass(frozen=True, eq=False)
class JointFriction:
    """What the points of one joint say."""

    joint: str
    linear: bool
    both: CurveFit | None  # None where the joint moves in one direction only
    forward: CurveFit | None
    backward: CurveFit | None
    symmetry: Symmetry | None
    standing: int
    static_at_least: tuple[float, float]  # that torques at standstill show, forward and backward; 0 where none
    left_out: int  # points that lie too far off
    points: FrictionPoints
    notes: tuple[str, ...]

    @property
    def chosen(self) -> tuple[CurveFit, ...]:
        """The law to use: one for both directions, or one each."""
        if self.both is not None and self.symmetry is not None and self.symmetry.symmetric:
            return (self.both,)
        return tuple(fit for fit in (self.forward, self.backward) if fit is not None)

    @property
    def converged(self) -> bool:
        return all(fit.converged for fit in self.chosen)

    @property
    def message(self) -> str:
        return "; ".join(dict.fromkeys(fit.message for fit in self.chosen))


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """Friction of all joints."""

    settings: StribeckFit
    joints: tuple[JointFriction, ...]

    @property
    def converged(self) -> bool:
        return all(joint.converged for joint in self.joints)

    @property
    def message(self) -> str:
        return "; ".join(f"{joint.joint}: {joint.message}" for joint in self.joints)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(joint.joint for joint in self.joints)

    def curve(self) -> FrictionCurve:
        """The laws to use, of all joints; a direction without points takes the other's."""
        rows = [[_plain(fit.values) for fit in (joint.chosen * 2)[:2]] for joint in self.joints]
        Fc, Fs, qs, Bv, delta = np.transpose(rows)  # each (2, n)
        offset = [joint.chosen[0].values.get("offset", _NO_OFFSET).value for joint in self.joints]
        return FrictionCurve(Fc, Fs, qs, Bv, delta, np.array(offset))


def _plain(values: Mapping[str, Interval]) -> list[float]:
    """Fc, Fs, q̇s, Bv, δ; without a dip Fs is Fc."""
    Fc = values["coulomb"].value
    if "static" not in values:
        return [Fc, Fc, 1.0, values["damping"].value, 2.0]
    return [
        Fc,
        values["static"].value,
        values["stribeck_velocity"].value,
        values["damping"].value,
        values["shape"].value,
    ]


def _weights(points: FrictionPoints) -> Array:
    if points.deviation is None:
        return np.ones(len(points.velocity))
    middle = float(np.median(points.deviation))
    return middle / np.maximum(points.deviation, _LEAST_DEVIATION * middle)


def _regression(points: FrictionPoints, direction: str, shape: float | None, offset: bool = True) -> Regression:
    """Columns for both directions with an offset (or without), or for one of them."""
    v, y, w = points.velocity, points.torque, _weights(points)
    s = np.sign(v)
    if direction == "both":
        columns = {"coulomb": s, "damping": v} | ({"offset": np.ones_like(v)} if offset else {})
        return Regression(np.abs(v), s, y, w, np.column_stack(list(columns.values())), tuple(columns), shape)
    mine = s > 0 if direction == "forward" else s < 0
    speed = np.abs(v[mine])
    X = np.column_stack([np.ones_like(speed), speed])
    return Regression(speed, np.ones_like(speed), (s * y)[mine], w[mine], X, ("coulomb", "damping"), shape)


def enough(points: FrictionPoints, side: str, shape: float | None) -> bool:
    """Whether a direction has points at more speeds than its law has parameters, and one to spare."""
    speeds = points.velocity[points.moves & (points.velocity * _SIGNS[side] > 0)]
    return len(np.unique(speeds)) > (4 if shape is not None else 5)


def _told(values: Mapping[str, Interval], stribeck: Mapping[str, Interval], warranted: bool, side: str) -> str:
    if not warranted:
        return NO_DIP
    open_up, open_down = not stribeck["coulomb"].shown, not np.isfinite(stribeck["static"].high)
    if open_up:
        return (
            "the points do not show where the dip ends, so neither Coulomb's level nor the Stribeck velocity; "
            "measure faster"
        )
    if open_down:
        return "the points do not show how the dip begins, so not the static friction; measure slower"
    if side:
        return "the Stribeck velocity stands at the end of its range; measure slower and faster"
    wide = [name for name, value in values.items() if not value.shown]
    return f"solved, but not shown by the points: {', '.join(wide)}" if wide else "solved"


def _fit(problem: Regression, direction: str, settings: StribeckFit, rng: np.random.Generator) -> CurveFit:
    best = search(problem, settings.starts, rng)
    alike = alikeness(problem, best)
    dip = dip_test(problem, best, settings.simulations, rng, alike)
    shown = dip.p_value <= settings.significance
    stribeck = stribeck_intervals(problem, best, settings.confidence, alike)
    straight = straight_intervals(problem, settings.confidence, alike)
    values = stribeck if shown else straight
    none = problem.straight[1]
    unknowns = problem.unknowns if shown else len(problem.names)
    left = best.squares if shown else none
    message = _told(values, stribeck, shown, best.at_limit)
    if not best.converged:
        message = f"the search had not come to rest after its steps; {message}"
    if alike > 1.0:
        message += (
            f"; residuals of neighbouring speeds are alike, so that intervals are {np.sqrt(alike):.1f} times as wide: "
            "the points do not err independently, or friction has another shape"
        )
    return CurveFit(
        direction, values, stribeck, straight, dip, shown, float(np.sqrt(left / (problem.size - unknowns))),
        problem.size, (none, best.squares), best.starts, best.agreeing, best.converged, alike, message,
    )  # fmt: skip


def _probability(restricted: float, full: float, freed: int, freedom: int, rounding: float, alike: float) -> float:
    """Of an F as large if the restriction held."""
    if restricted <= full or restricted <= rounding:
        return 1.0
    if full <= rounding:
        return 0.0
    return float(f_distribution.sf((restricted - full) / freed / (full / freedom) / alike, freed, freedom))


def _symmetry(
    points: FrictionPoints, sides: tuple[CurveFit, CurveFit], both: CurveFit, settings: StribeckFit,
    rng: np.random.Generator,
) -> Symmetry:  # fmt: skip
    """F of one law for both directions against one each, with dips where any fit shows one."""
    dips = both.warranted or any(side.warranted for side in sides)
    same = _regression(points, "both", settings.shape, offset=False)
    at = 1 if dips else 0
    without_offset = search(same, settings.starts, rng).squares if dips else same.straight[1]
    full = sides[0].squares[at] + sides[1].squares[at]
    each = 2 + (2 + (settings.shape is None) if dips else 0)
    # Of both laws together directions that differ would look alike; of each one only what its shape lacks does.
    rest = (same.size - 2 * each, same.rounding, max(side.alike for side in sides))
    p_same = _probability(without_offset, full, each, *rest)
    p_offset = _probability(both.squares[at], full, each - 1, *rest)
    if p_same >= settings.significance:
        return Symmetry(p_same, p_offset, f"the directions do not differ (p = {p_same:.2g})", True)
    if p_offset >= settings.significance:
        offset = both.values["offset"].value
        return Symmetry(
            p_same, p_offset, f"the directions differ by an offset of {offset:.3g} only (p = {p_offset:.2g})", True
        )
    return Symmetry(p_same, p_offset, f"the directions differ (p = {p_offset:.1g}): each has its own law", False)


def _standing(points: FrictionPoints, noise: float, offset: float) -> tuple[float, float]:
    """The static friction that torques at standstill show at least, in each direction, noise allowed for."""
    torque = points.torque[~points.moves] - offset
    if not len(torque):
        return 0.0, 0.0
    sure = noise * float(norm.isf(0.025 / len(torque)))
    return max(0.0, float(torque.max()) - sure), max(0.0, float(-torque.min()) - sure)


def _standing_notes(joint: str, chosen: Sequence[CurveFit], least: tuple[float, float]) -> list[str]:
    notes = []
    for k, side in enumerate(("forward", "backward")):
        fit = chosen[min(k, len(chosen) - 1)]
        held = fit.values.get("static", fit.values["coulomb"])
        if least[k] > held.high:
            notes.append(
                f"{joint} stood under {least[k]:.3g} {side}, more than the {held.high:.3g} at most that the moving "
                "points give its static friction: there is more of it at standstill than the law says"
            )
    return notes


def _without_gross_errors(moving: FrictionPoints, sides: Sequence[str], shape: float | None) -> FrictionPoints:
    kept = ordinary([_regression(moving, side, shape) for side in sides])
    mask = np.ones(len(moving.velocity), dtype=bool)
    for side, keep in zip(sides, kept, strict=True):
        mask[np.flatnonzero(moving.velocity * _SIGNS[side] > 0)] = keep
    return moving.picked(mask)


def _sides(points: FrictionPoints, shape: float | None) -> list[str]:
    """Directions that have points enough for a law."""
    sides = [side for side in _SIGNS if enough(points, side, shape)]
    if not sides:
        moving = int(points.moves.sum())
        raise DataError(
            f"{points.joint} has {moving} points that move (faster than {points.still:g}); Stribeck's law takes at "
            f"least {5 if shape is not None else 6} different speeds in one direction: measure more"
        )
    return sides


def fit_joint(points: FrictionPoints, settings: StribeckFit, rng: np.random.Generator) -> JointFriction:
    """Friction of one joint."""
    points = thinned(points)
    moving = points.picked(points.moves)
    used, sides = moving, _sides(moving, settings.shape)
    if settings.robust:
        used = _without_gross_errors(moving, sides, settings.shape)
        sides = _sides(used, settings.shape)
    problems = {side: _regression(used, side, settings.shape) for side in ["both"] * (len(sides) == 2) + sides}
    fits = {side: _fit(problem, side, settings, rng) for side, problem in problems.items()}
    symmetry, notes = None, []
    if len(sides) == 2:
        symmetry = _symmetry(used, (fits["forward"], fits["backward"]), fits["both"], settings, rng)
    else:
        notes = [
            f"{points.joint} has points enough of moving {sides[0]} only: the other direction is taken as its "
            "mirror image"
        ]
    if float(np.sum(np.sign(used.velocity) * used.torque)) < 0:
        notes.append(
            f"{points.joint}: most torques are against the velocity, and to overcome friction takes torques with it: "
            "is a sign wrong?"
        )
    offset = fits["both"].values["offset"].value if "both" in fits else 0.0
    least = _standing(points, max(fit.noise for fit in fits.values()), offset)
    joint = JointFriction(
        points.joint, points.linear, fits.get("both"), fits.get("forward"), fits.get("backward"), symmetry,
        int(np.count_nonzero(~points.moves)), least, len(moving.velocity) - len(used.velocity), points, (),
    )  # fmt: skip
    return replace(joint, notes=(*notes, *_standing_notes(points.joint, joint.chosen, least)))


def fit_friction(
    points: FrictionPoints | Sequence[FrictionPoints], settings: StribeckFit | None, rng: np.random.Generator
) -> FrictionFit:
    """Stribeck's law of every joint from its points; `rng` draws the starts of searches and the noise of tests."""
    settings = StribeckFit() if settings is None else settings
    given = [points] if isinstance(points, FrictionPoints) else list(points)
    if not given:
        raise DataError("there are no points of friction; give those of at least one joint")
    return FrictionFit(settings, tuple(fit_joint(one, settings, rng) for one in given))
