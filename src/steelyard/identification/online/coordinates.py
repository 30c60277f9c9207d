"""In which numbers a filter holds the parameters of a robot: free of conditions, though masses are positive.

A filter moves its state along straight lines. `Base` holds the base parameters themselves, in which torque is linear;
`Positive` keeps positive what has to be; `Physical` the log-Cholesky form of every body, with which
every point of the space is a body that can exist.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...dynamics import BaseParameters, base_parameters
from ...errors import ModelError, OptionError
from ...robot.feasibility import NOT_NEGATIVE
from ...robot.inertia import (
    extent,
    from_log_cholesky,
    from_mass_com_inertia,
    log_cholesky,
    log_cholesky_jacobian,
    mass_com_inertia,
)
from ...robot.robot import Robot
from ..scales import parameter_scales
from .kalman import Array

Choice = Literal["base", "positive", "physical"]
CHOICES: tuple[Choice, ...] = ("base", "positive", "physical")
# A parameter of which nothing is known is believed to within this share of what would double the torque.
UNKNOWN = 0.02


class Coordinates(Protocol):
    """A map from free numbers ξ to the parameters θ of a robot."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def start(self) -> Array:
        """ξ of the nominal robot, (k,)."""

    def theta(self, xi: Array) -> Array:
        """θ of ξ, also row by row."""

    def jacobian(self, xi: Array) -> Array:
        """∂θ/∂ξ, (p, k)."""

    def columns(self, Y: Array, xi: Array) -> Array:
        """Y ∂θ/∂ξ."""

    def deviation(self, relative: float) -> Array:
        """The prior's standard deviation of ξ for a relative one of the parameters."""


@dataclass(frozen=True, eq=False)
class Base:
    """ξ = β, the base parameters; what no torque depends on keeps its nominal value."""

    robot: Robot
    base: BaseParameters

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @cached_property
    def start(self) -> Array:
        return self.base.reduce(self.robot.parameters)

    @cached_property
    def _jacobian(self) -> Array:
        J = np.zeros((self.robot.layout.size, self.base.rank))
        J[self.base.kept, np.arange(self.base.rank)] = 1.0
        return J

    def theta(self, xi: Array) -> Array:
        theta = np.empty((*xi.shape[:-1], self.robot.layout.size))
        theta[...] = self.robot.parameters
        theta[..., self.base.kept] += xi - self.start
        return theta

    def jacobian(self, xi: Array) -> Array:
        return self._jacobian

    def columns(self, Y: Array, xi: Array) -> Array:
        return Y[..., self.base.kept]

    def deviation(self, relative: float) -> Array:
        floor = parameter_scales(self.robot)[self.base.kept]
        return relative * np.abs(self.start) + UNKNOWN * floor


def _positive(robot: Robot) -> NDArray[np.bool_]:
    """Which parameters must not be negative: masses, rotors and friction."""
    layout = robot.layout
    found = np.zeros(layout.size, dtype=bool)
    found[: layout.inertial.stop : 10] = True
    for prop in layout.properties:
        if prop in NOT_NEGATIVE:
            found[layout.block(prop)] = True
    return found


class _Softly(NamedTuple):
    """Positive numbers as θ = s log(1 + e^ξ), which far from zero is linear, so that no step of a filter overflows.

    s is the model's value; where that is zero, the number starts at a small floor and s is what is believed possible.
    """

    scale: Array
    start: Array  # ξ
    floored: NDArray[np.bool_]

    def value(self, xi: Array) -> Array:
        return self.scale * np.logaddexp(0.0, xi)

    def slope(self, xi: Array) -> Array:
        return self.scale * expit(xi)

    def deviation(self, relative: float) -> Array:
        """Of ξ, for a relative one of θ; a number that starts from the floor may be anything up to a few s."""
        near = relative * np.logaddexp(0.0, self.start) / expit(self.start)
        return np.where(self.floored, 2.0, near)


def _softly(robot: Robot, which: NDArray[np.bool_], scales: Array) -> _Softly:
    values, believed = robot.parameters[which], UNKNOWN * scales[which]
    if (values < 0).any():
        name = robot.parameter_names[int(np.flatnonzero(which)[int((values < 0).argmax())])]
        raise ModelError(f"{name} is {values.min():.4g} in the model and cannot be negative; take coordinates='base'")
    floored = values < 0.1 * believed
    scale = np.where(floored, believed, values)
    share = np.where(floored, 0.1, 1.0)
    return _Softly(scale, share + np.log(-np.expm1(-share)), floored)


@dataclass(frozen=True, eq=False)
class Positive:
    """ξ is θ but for masses, armature and friction, which are positive whatever it is."""

    robot: Robot

    @property
    def names(self) -> tuple[str, ...]:
        return self.robot.parameter_names

    @cached_property
    def _which(self) -> NDArray[np.bool_]:
        return _positive(self.robot)

    @cached_property
    def _scales(self) -> Array:
        return parameter_scales(self.robot)

    @cached_property
    def _soft(self) -> _Softly:
        return _softly(self.robot, self._which, self._scales)

    @cached_property
    def start(self) -> Array:
        xi = self.robot.parameters.copy()
        xi[self._which] = self._soft.start
        return xi

    def theta(self, xi: Array) -> Array:
        theta = xi.copy()
        theta[..., self._which] = self._soft.value(xi[..., self._which])
        return theta

    def _slope(self, xi: Array) -> Array:
        slope = np.ones_like(xi)
        slope[self._which] = self._soft.slope(xi[self._which])
        return slope

    def jacobian(self, xi: Array) -> Array:
        return np.diag(self._slope(xi))

    def columns(self, Y: Array, xi: Array) -> Array:
        return Y * self._slope(xi)

    def deviation(self, relative: float) -> Array:
        found = relative * np.abs(self.robot.parameters) + UNKNOWN * self._scales
        found[self._which] = self._soft.deviation(relative)
        return found


def fattened(body: Array) -> Array:
    """A body that extends in all directions: what is thin gets a thousandth of its size, a point mass a millimetre."""
    if extent(body) == 3:
        return body
    mass, com, inertia_com = mass_com_inertia(body)
    second = 0.5 * np.trace(inertia_com) * np.eye(3) - inertia_com
    values, axes = np.linalg.eigh(second)
    size = max(float(values.max()), float(mass) * 1e-6)
    second = (axes * np.maximum(values, 1e-6 * size if values.max() > 0 else size)) @ axes.T
    return from_mass_com_inertia(mass, com, np.trace(second) * np.eye(3) - second)


def body_deviation(eta: Array, relative: float) -> Array:
    """Standard deviations of log-Cholesky numbers (…, 10) of bodies whose mass, place and shape are off by a share."""
    reach = np.exp(eta[..., 1:4])  # m, how far the mass spreads
    body = np.empty_like(eta)
    body[..., 0] = 0.5 * relative
    body[..., 1:4] = relative
    body[..., 4:7] = relative * reach.mean(axis=-1, keepdims=True)
    body[..., 7:] = relative * np.maximum(reach, np.abs(eta[..., 7:]))
    return body


@dataclass(frozen=True, eq=False)
class Physical:
    """ξ has ten log-Cholesky numbers a body, positive armature and friction as in `Positive`, and offsets as they are.

    Thin bodies, which have no such numbers, are made a thousandth as thick as they are long; bodies without mass stay
    what they are and have no part in ξ.
    """

    robot: Robot

    @cached_property
    def _bodies(self) -> tuple[int, ...]:
        """The first columns of bodies with mass."""
        starts = range(0, self._split, 10)
        return tuple(k for k in starts if self.robot.parameters[k] > 0)

    @cached_property
    def _split(self) -> int:
        return self.robot.layout.inertial.stop

    @cached_property
    def _columns(self) -> NDArray[np.int64]:
        """Where the numbers of ξ stand in θ, block by block."""
        bodies = [k + i for k in self._bodies for i in range(10)]
        return np.array([*bodies, *range(self._split, self.robot.layout.size)], dtype=np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        parts = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
        bodies = [f"{self.robot.layout.bodies[k // 10]}.{part}" for k in self._bodies for part in parts]
        return tuple(bodies) + self.robot.parameter_names[self._split :]

    @cached_property
    def _inertial(self) -> int:
        """How many numbers of ξ are of bodies."""
        return 10 * len(self._bodies)

    @cached_property
    def _which(self) -> NDArray[np.bool_]:
        """Which of the numbers after the bodies are positive."""
        return _positive(self.robot)[self._split :]

    @cached_property
    def _scales(self) -> Array:
        return parameter_scales(self.robot)

    @cached_property
    def _soft(self) -> _Softly:
        which = _positive(self.robot)
        which[: self._split] = False
        return _softly(self.robot, which, self._scales)

    @cached_property
    def _joint_start(self) -> Array:
        start = self.robot.parameters[self._split :].copy()
        start[self._which] = self._soft.start
        return start

    @cached_property
    def start(self) -> Array:
        bodies = []
        for k in self._bodies:
            body, name = self.robot.parameters[k : k + 10], self.robot.layout.bodies[k // 10]
            try:
                bodies.append(log_cholesky(fattened(body)))
            except ModelError as error:
                raise ModelError(f"{name}: {error}; mend the model, or take coordinates='base'") from None
        return np.concatenate([*bodies, self._joint_start])

    def theta(self, xi: Array) -> Array:
        theta = np.empty((*xi.shape[:-1], self.robot.layout.size))
        theta[...] = self.robot.parameters
        bodies = from_log_cholesky(xi[..., : self._inertial].reshape(*xi.shape[:-1], -1, 10))
        theta[..., self._columns[: self._inertial]] = bodies.reshape(*xi.shape[:-1], self._inertial)
        joint = xi[..., self._inertial :].copy()
        joint[..., self._which] = self._soft.value(joint[..., self._which])
        theta[..., self._split :] = joint
        return theta

    def _blocks(self, xi: Array) -> tuple[Array, Array]:
        """∂θ/∂ξ of every body, (b, 10, 10), and the diagonal of the rest."""
        joint = xi[self._inertial :]
        slope = np.ones_like(joint)
        slope[self._which] = self._soft.slope(joint[self._which])
        return log_cholesky_jacobian(xi[: self._inertial].reshape(-1, 10)), slope

    def jacobian(self, xi: Array) -> Array:
        blocks, slope = self._blocks(xi)
        J = np.zeros((self.robot.layout.size, xi.size))
        for k, (start, block) in enumerate(zip(self._bodies, blocks, strict=True)):
            J[start : start + 10, 10 * k : 10 * k + 10] = block
        J[np.arange(self._split, len(J)), np.arange(self._inertial, xi.size)] = slope
        return J

    def columns(self, Y: Array, xi: Array) -> Array:
        blocks, slope = self._blocks(xi)
        bodies = Y[..., self._columns[: self._inertial]].reshape(*Y.shape[:-1], -1, 10)
        turned = np.einsum("...bi,bij->...bj", bodies, blocks).reshape(*Y.shape[:-1], self._inertial)
        return np.concatenate([turned, Y[..., self._split :] * slope], axis=-1)

    def deviation(self, relative: float) -> Array:
        body = body_deviation(self.start[: self._inertial].reshape(-1, 10), relative)
        joint = relative * np.abs(self.robot.parameters[self._split :]) + UNKNOWN * self._scales[self._split :]
        joint[self._which] = self._soft.deviation(relative)
        return np.concatenate([body.ravel(), joint])


def coordinates(robot: Robot, choice: Choice) -> Coordinates:
    """The coordinates of this name."""
    if choice not in CHOICES:
        raise OptionError(f"no coordinates '{choice}'; valid: {', '.join(CHOICES)}")
    if choice == "base":
        return Base(robot, base_parameters(robot))
    return Positive(robot) if choice == "positive" else Physical(robot)
