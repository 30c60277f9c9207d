"""`solve_physical`: the parameters that fit the data best among those that bodies and joints can have.

    minimise ‖A B θ − y‖² + w P(θ)   subject to   J_b(θ) ⪰ ε J0_b,   armature, damping, coulomb >= 0,   what is known

All standard parameters are variables: directions that the data do not see are settled by the prior P, not left where
they are, which could not be made physical (Sousa, Cortesão, "Physical feasibility of robot base inertial parameter
identification: a linear matrix inequality approach", IJRR 2014; Wensing, Kim, Slotine, RA-L 2018).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import DataError, OptionError, unknown_name
from ...robot.feasibility import NOT_NEGATIVE, Ball, Box
from ...robot.inertia import from_mass_com_inertia, mass_com_inertia
from ...robot.parameters import ParameterLayout
from ...robot.robot import Robot, frozen
from ..scales import joint_scales
from .conic import Cone
from .limits import REGIONS, Equality, Linear, Region, com_balls, equalities, geom_boxes, inequalities
from .metric import nominal_metric
from .minimise import CONVERGED, is_possible, minimise
from .priors import PRIORS, Coordinates, Prior, coordinates
from .program import Directions, independent

Array = NDArray[np.float64]

# A body this near to the cone's boundary, relative to its nominal, or a limit this near, is reported as active.
_NEAR_CONE, _NEAR_LIMIT = 1e-2, 1e-6
# After solving, second moments are at least this part of their trace, so that MuJoCo's compiler takes every body.
_INSIDE, _LEAST_MOMENT = 1e-8, 1e-12
_EXACT = 1e-12  # the least noise, relative to what the nominal model's torques are made of
_NO_PRIOR = 1e-9  # a weight, where every direction is given
_MOVED, _ROUNDING = 1e-6, 1e-12  # by this part of itself and of ‖y‖² the cost may rise thereby


@dataclass(frozen=True)
class PhysicalSettings:
    """What parameters have to obey, and what settles those that the data do not see.

    `weight` is that of the prior, in units of the noise variance: 2/s² is a Gaussian prior of relative deviation s
    about the nominal model. None is 1 where the noise is known, else so small that no visible direction is biased.
    """

    prior: Prior = "entropic"
    weight: float | None = None
    smallest: float = 1e-6  # J_b ⪰ smallest·J0_b; the entropic prior itself keeps bodies inside
    nonnegative: tuple[str, ...] = NOT_NEGATIVE
    com: Mapping[str, Box | Ball] = field(default_factory=dict)
    region: Region | None = None  # of the geoms: where the centre of mass is, or all mass
    total_mass: float | None = None  # kg, of the identified bodies
    equalities: tuple[Equality, ...] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, float]:
        """Fixed values, and those whose bounds leave nothing else."""
        return {**{name: low for name, (low, high) in self.bounds.items() if low == high}, **self.fixed}

    def __post_init__(self) -> None:
        if self.prior not in PRIORS:
            raise OptionError(f"no prior '{self.prior}'; valid: {', '.join(PRIORS)}")
        if self.region is not None and self.region not in REGIONS:
            raise OptionError(f"no region '{self.region}'; valid: {', '.join(REGIONS)}")
        if self.weight is not None and not (np.isfinite(self.weight) and self.weight > 0):
            raise OptionError(f"the prior's weight must be greater than 0, not {self.weight}; None chooses a tiny one")
        if not 0 < self.smallest < 1:
            raise OptionError(f"the smallest pseudo-inertia is a part of the nominal, not {self.smallest}")
        if self.total_mass is not None and not 0 < self.total_mass < np.inf:
            raise OptionError(f"the total mass must be greater than 0 kg, not {self.total_mass}")
        for name, (lower, upper) in self.bounds.items():
            if not lower <= upper:
                raise OptionError(f"bounds of {name} need lower <= upper, not {lower}, {upper}")
        for name, value in self.fixed.items():
            if not np.isfinite(value):
                raise OptionError(f"{name} cannot be fixed at {value}; give a finite number")
        for name in self.nonnegative:
            if name not in NOT_NEGATIVE:
                raise OptionError(unknown_name("joint property with a sign", name, NOT_NEGATIVE))


@dataclass(frozen=True, eq=False)
class PhysicalFit:
    """Physical parameters, what they cost, and how the solver came to them."""

    parameters: Array
    objective: float  # ‖A B θ − y‖²
    prior: float  # P(θ), not weighted
    weight: float  # of P beside the objective, in the objective's unit
    status: str  # as the solver says it
    converged: bool
    message: str
    iterations: int
    seconds: float
    margins: Mapping[str, float]  # per body the smallest eigenvalue of J0⁻¹J: 0 is the boundary, 1 like the nominal
    active: tuple[str, ...]  # constraints that hold with equality
    regularised: tuple[str, ...]  # nominal bodies too thin or light to measure by, and what they were taken for


@dataclass(frozen=True, eq=False)
class _Wanted:
    """All that is asked for beside the bodies' cones, over the whitened coordinates x."""

    blocks: list[tuple[Array, Array, Cone]]
    names: tuple[str, ...]  # of the inequalities
    rows: Array  # theirs, of length one
    constant: Array

    def active(self, x: Array) -> tuple[str, ...]:
        slack = self.rows @ x + self.constant
        return tuple(name for name, s in zip(self.names, slack, strict=True) if s < _NEAR_LIMIT)


def _over_x(found: Linear, at: Coordinates) -> tuple[Array, Array]:
    """Rows over x, brought to length one."""
    rows, constant = found.rows @ at.D, found.constant + found.rows @ at.origin
    length = np.linalg.norm(rows, axis=1)
    return rows / length[:, None], constant / length


def _wanted(robot: Robot, layout: ParameterLayout, at: Coordinates, settings: PhysicalSettings) -> _Wanted:
    equal = equalities(layout, settings.equalities, settings.known, robot.layout.bodies, settings.total_mass)
    blocks: list[tuple[Array, Array, Cone]] = []
    if equal.names:
        rows, constant, contradiction = independent(*_over_x(equal, at))
        if contradiction > _NEAR_LIMIT:
            raise OptionError(f"the equalities contradict one another: {', '.join(equal.names)}; leave one out")
        blocks.append((rows, constant, "zero"))
    boxes = {} if settings.region is None else geom_boxes(robot)
    free = {name: bound for name, bound in settings.bounds.items() if name not in settings.known}
    unequal = inequalities(layout, settings.nonnegative, free, settings.com, settings.region, boxes)
    rows, constant = _over_x(unequal, at)
    blocks.append((rows, constant, "nonnegative"))
    for _, cone in com_balls(layout, settings.com):
        blocks.append((cone @ at.D, cone @ at.origin, "second order"))
    return _Wanted(blocks, unequal.names, rows, constant)


def _settled(layout: ParameterLayout, free: tuple[str, ...], theta: Array, settings: PhysicalSettings) -> Array:
    """The solver's answer without its rounding: fixed values and bounds exact, bodies on the boundary a little inside.

    Bodies are made thicker by as little as MuJoCo's compiler demands; mass and centre of mass stay.
    """
    theta = theta.copy()
    for prop in (prop for prop in layout.properties if prop in settings.nonnegative):
        theta[layout.block(prop)] = np.maximum(theta[layout.block(prop)], 0.0)
    for name, (lower, upper) in settings.bounds.items():
        theta[layout.index(name)] = np.clip(theta[layout.index(name)], lower, upper)
    for name, value in settings.known.items():
        theta[layout.index(name)] = value
    for row in (theta[layout.body(name)] for name in free):
        if not row[0] > 0:
            continue  # said by the status: the solver did not come near
        mass, com, inertia = mass_com_inertia(row)
        second = np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
        least = max(_INSIDE * float(second.sum()), _LEAST_MOMENT)
        if second[0] < least:
            row[:] = from_mass_com_inertia(mass, com, inertia + 2 * (least - second[0]) * np.eye(3))
    return theta


def _checked(A: ArrayLike, y: ArrayLike, projection: ArrayLike | None, p: int, name: str) -> tuple[Array, Array]:
    """A B and y, of fitting shapes and finite."""
    A, y = np.asarray(A, dtype=np.float64), np.asarray(y, dtype=np.float64)
    B = np.eye(p) if projection is None else np.asarray(projection, dtype=np.float64)
    if B.ndim != 2 or B.shape[1] != p:
        raise DataError(f"the projection has shape {B.shape}; {name} has {p} parameters")
    if A.ndim != 2 or A.shape[1] != len(B) or y.shape != A.shape[:1]:
        raise DataError(f"A and y have shapes {A.shape} and {y.shape}; {len(B)} columns and as many rows are needed")
    if not (np.isfinite(A).all() and np.isfinite(y).all()):
        raise DataError("the data have values that are not finite numbers; leave those samples out")
    return A @ B, y


def _with_loads(layout: ParameterLayout, loads: Sequence[str]) -> tuple[ParameterLayout, NDArray[np.int64]]:
    """The layout with loads as bodies, and where each of its parameters is when loads come after everything else."""
    own, joints, ten = layout.inertial.stop, layout.size, 10 * len(loads)
    order = np.concatenate([np.arange(own), joints + np.arange(ten), np.arange(own, joints)])
    return replace(layout, bodies=(*layout.bodies, *loads)), order


def solve_physical(
    A: ArrayLike,
    y: ArrayLike,
    robot: Robot,
    settings: PhysicalSettings | None = None,
    projection: ArrayLike | None = None,
    nominal: ArrayLike | None = None,
    noise: float | None = None,
    loads: Sequence[str] = (),
) -> PhysicalFit:
    """Physical parameters θ with the least ‖A B θ − y‖² + w P(θ); `projection` is B, by default all parameters as such.

    `nominal` is where the prior has its minimum, by default the robot's parameters. `noise` is the standard deviation
    of a row, 1 where rows are weighted by it; the weight of the prior is in units of its square. `loads` names bodies
    that the robot carried: their ten parameters each come after the robot's.
    """
    settings = PhysicalSettings() if settings is None else settings
    if noise is not None and not (np.isfinite(noise) and noise >= 0):
        raise DataError(f"the standard deviation of the noise is {noise}; give 0 or more, or None if it is not known")
    layout, order = _with_loads(robot.layout, loads)
    AB, y = _checked(A, y, projection, layout.size, robot.name)
    given = np.concatenate([robot.parameters, np.zeros(10 * len(loads))]) if nominal is None else np.asarray(nominal)
    if given.shape != (layout.size,) or not np.isfinite(given).all():
        raise DataError(f"the nominal model has shape {given.shape}; {layout.size} finite parameters are needed")
    at = coordinates(layout, given[order].astype(np.float64), joint_scales(robot), settings.prior, settings.known)
    wanted = _wanted(robot, layout, at, settings)
    AB = AB[:, order]
    data = Directions.of(AB @ at.D, y - AB @ at.origin)
    if noise is not None:  # exact data still have rounding
        noise = max(noise, _EXACT * float(data.strength.max(initial=0.0))) or None
    weight = None if settings.weight is None else settings.weight * (1.0 if noise is None else noise**2)
    answer, weight = minimise(data, at, weight, noise, wanted.blocks, settings.smallest)
    if answer.status not in CONVERGED and not is_possible(at, wanted.blocks, settings.smallest):
        raise OptionError("no physical parameters meet all limits, equalities and fixed values at once; loosen some")

    raw = at.origin + at.D @ answer.variables
    theta = _settled(layout, at.names, raw, settings)
    x: Array = np.linalg.solve(at.D, theta - at.origin).astype(np.float64)
    before, objective = (float(np.sum((AB @ t - y) ** 2)) for t in (raw, theta))
    prior = at.prior(x)
    converged, message = answer.status in CONVERGED, f"Clarabel: {answer.status}"
    moved = objective - before
    if moved > _MOVED * (before + weight * prior) + _ROUNDING * float(y @ y):
        converged, message = False, f"{message}, but making the bodies possible cost {moved:.3g} more than {before:.6g}"
    margins = dict(zip(at.names, at.eigenvalues(x)[:, 0].tolist(), strict=True))
    near = (f"{name}: pseudo-inertia" for name, margin in margins.items() if margin < _NEAR_CONE)
    parameters = np.empty_like(theta)
    parameters[order] = theta
    return PhysicalFit(
        parameters=frozen(parameters),
        objective=objective,
        prior=prior,
        weight=weight,
        status=answer.status,
        converged=converged,
        message=message,
        iterations=answer.iterations,
        seconds=answer.seconds,
        margins=margins,
        active=(*near, *wanted.active(x)),
        regularised=at.regularised,
    )


def feasible_projection(theta: ArrayLike, robot: Robot, settings: PhysicalSettings | None = None) -> PhysicalFit:
    """The parameters that obey the settings and are nearest to theta in the pull-back metric of the robot's model.

    min ‖x(θ) − x(theta)‖²: without other settings, J = U X Uᵀ with the eigenvalues of X raised to what they must be.
    """
    whiten = np.linalg.inv(nominal_metric(robot.layout, robot.parameters, joint_scales(robot)).to_parameters)
    chosen = replace(PhysicalSettings() if settings is None else settings, prior="pullback", weight=_NO_PRIOR)
    return solve_physical(whiten, whiten @ np.asarray(theta, dtype=np.float64), robot, chosen)
