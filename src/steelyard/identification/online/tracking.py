"""What a step of a filter on a robot is made of: its first belief, its model at this instant, its arithmetic."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...dynamics import BaseParameters, base_parameters, known_torque, regressor
from ...errors import DataError, OptionError
from ...robot.robot import Robot
from ...robot.states import random_states
from . import kalman, particles, sigma_points, square_root
from .coordinates import Base, Coordinates, coordinates
from .joint_state import Drive, JointModel, measurement_matrix
from .kalman import Array, Gaussian, Model
from .particles import Cloud
from .settings import Filter
from .sigma_points import Derivatives
from .square_root import RootGaussian

Belief = Gaussian | RootGaussian | Cloud

TORQUE_NOISE = 0.01  # of the robot's usual torque, where nothing is known
POSITION_NOISE = 1e-4  # rad, a common encoder
# Slower than this a joint may stand, rad/s or m/s, and dry friction take any value.
STANDING = 0.02


def usual_torque(robot: Robot) -> Array:
    """Root mean square of the nominal torque of every joint over random states, with a floor for idle joints."""
    q, qd, qdd = random_states(robot, np.random.default_rng(0), 200)
    Y = regressor(robot, q, qd, qdd) @ robot.parameters + known_torque(robot, q, qd, qdd)
    size = np.sqrt(np.mean(Y**2, axis=0))
    return np.maximum(size, 1e-3 * size.max(initial=1e-3))


def per_joint(value: float | tuple[float, ...] | None, default: Array, what: str) -> Array:
    """One number or one a joint, as an array."""
    if value is None:
        return default
    array = np.asarray(value, dtype=np.float64)
    if array.ndim and array.shape != default.shape:
        raise OptionError(f"{what} has {array.size} numbers; give one, or {default.size}, one a joint")
    return np.array(np.broadcast_to(array, default.shape))


class Instant(NamedTuple):
    """What is known at a sample: states and torque, NaN where not measured."""

    q: Array
    tau: Array
    qd: Array
    qdd: Array


def first_belief(settings: Filter, mean: Array, deviation: Array, rng: np.random.Generator, parameters: int) -> Belief:
    """N(mean, diag(deviation²)) in the form that the filter works on."""
    if settings.arithmetic == "particles":
        count = settings.particles * parameters  # type: ignore[attr-defined]
        return particles.start(mean, np.diag(deviation), max(2, count), rng)
    if settings.arithmetic == "root":
        return RootGaussian(mean, np.diag(deviation))
    return Gaussian(mean, np.diag(deviation**2))


def shifted(belief: Belief, move: Array) -> Belief:
    """The same belief about another place."""
    if isinstance(belief, Cloud):
        return belief._replace(particles=belief.particles + move)
    return belief._replace(mean=belief.mean + move)


def predict_and_update(settings: Filter, model: Model, belief: Belief, z: Array | None, u: object) -> Belief:
    """One step of the filter; without a measurement only the prediction."""
    rule = settings.rule
    if isinstance(belief, Cloud):
        rng = particles.generator(belief)
        moved = particles.predict(model, belief, u, rng)
        moved = moved if z is None else particles.update(model, moved, z, u, rng)
        return moved._replace(steps=belief.steps + 1)
    if isinstance(belief, RootGaussian):
        root = square_root.predict(rule, model, belief, u)
        return root if z is None else square_root.update(rule, model, root, z, u)[0]
    if isinstance(rule, Derivatives):
        state = kalman.predict(model, belief, u)
        return state if z is None else kalman.update(model, state, z, u)[0]
    state = sigma_points.predict(rule, model, belief, u)
    return state if z is None else sigma_points.update(rule, model, state, z, u)[0]


@dataclass(frozen=True, eq=False)
class ParameterTracking:
    """The state is ξ; the torque is measured: z = W β(ξ) + noise. Rows without a number are left out."""

    robot: Robot
    settings: Filter
    coordinates: Coordinates
    rates_needed: bool = True

    @property
    def lead(self) -> int:
        """How many states stand before the parameters."""
        return 0

    @cached_property
    def noise(self) -> Array:
        return per_joint(self.settings.torque_noise, TORQUE_NOISE * usual_torque(self.robot), "torque_noise")

    @cached_property
    def deviation(self) -> Array:
        """The prior's, of the parameters."""
        prior = self.settings.prior
        if prior is not None:
            return np.full(self.coordinates.start.size, np.sqrt(prior))
        return self.coordinates.deviation(self.settings.relative)

    def begin(self, rng: np.random.Generator) -> Belief:
        """The belief before any sample."""
        return first_belief(self.settings, self.coordinates.start.copy(), self.deviation, rng, self.deviation.size)

    @cached_property
    def base(self) -> BaseParameters:
        """The combinations through which parameters show."""
        own = self.coordinates
        return own.base if isinstance(own, Base) else base_parameters(self.robot)

    def _model(self, W: Array, noise: Array, variance: Array) -> Model:
        straight = isinstance(self.coordinates, Base)

        def measure(x: Array, u: object) -> Array:
            return (x if straight else self.base.reduce(self.coordinates.theta(x))) @ W.T

        def slope(x: Array, u: object) -> Array:
            return W if straight else W @ (self.base.projection @ self.coordinates.jacobian(x))

        still = np.eye(self.deviation.size)
        return Model(
            lambda x, u: x, measure, np.diag(variance), np.diag(noise**2), lambda x, u: still, slope, many=True
        )

    def absorb(self, belief: Belief, W: Array, values: Array, step: float, age: float) -> Belief:
        """The belief after the rows W β = values of a sample; those without a number are left out."""
        seen = np.isfinite(values)
        variance = self.settings.share(age) * step * self.deviation**2
        model = self._model(W[seen], self.noise[seen], variance)
        return predict_and_update(self.settings, model, belief, values[seen] if seen.any() else None, None)

    def advance(self, belief: Belief, now: Instant, tau: Array, step: float, age: float) -> Belief:
        """The belief after a sample."""
        if not (np.isfinite(now.qd).all() and np.isfinite(now.qdd).all() and np.isfinite(now.q).all()):
            raise DataError(
                "a filter on parameters needs q, q̇ and q̈ of every sample; fill them in (see `CausalRates`), or take "
                "on='joint', which needs positions and torque only"
            )
        W = self.base.columns(regressor(self.robot, now.q, now.qd, now.qdd))
        return self.absorb(belief, W, now.tau - known_torque(self.robot, now.q, now.qd, now.qdd), step, age)


@dataclass(frozen=True, eq=False)
class JointTracking:
    """The state is [q, q̇, ξ]; the position (and the velocity) is measured, and the torque drives."""

    robot: Robot
    settings: Filter
    coordinates: Coordinates
    rates_needed: bool = False

    @cached_property
    def model(self) -> JointModel:
        return JointModel(self.robot, self.coordinates)

    @property
    def lead(self) -> int:
        return 2 * self.robot.n

    @cached_property
    def noise(self) -> Array:
        return per_joint(self.settings.torque_noise, TORQUE_NOISE * usual_torque(self.robot), "torque_noise")

    @cached_property
    def deviation(self) -> Array:
        prior = self.settings.prior
        if prior is not None:
            return np.full(self.coordinates.start.size, np.sqrt(prior))
        return self.coordinates.deviation(self.settings.relative)

    @cached_property
    def _position_noise(self) -> float:
        given = self.settings.position_noise
        return POSITION_NOISE if given is None else given

    @cached_property
    def _R(self) -> Array:
        n, rate = self.robot.n, self.settings.rate_noise
        variances = [np.full(n, self._position_noise**2)]
        if rate is not None:
            variances.append(np.full(n, rate**2))
        return np.diag(np.concatenate(variances))

    @cached_property
    def _H(self) -> Array:
        return measurement_matrix(self.model, self.settings.rate_noise is not None)

    def begin(self, rng: np.random.Generator) -> Belief:
        n, start = self.robot.n, self.coordinates.start
        motion = np.concatenate([np.full(n, self._position_noise), np.full(n, self.settings.first_rate)])
        mean = np.concatenate([np.zeros(2 * n), start])
        return first_belief(self.settings, mean, np.concatenate([motion, self.deviation]), rng, start.size)

    def placed(self, belief: Belief, now: Instant) -> Belief:
        """The belief where the first sample is."""
        if not np.isfinite(now.q).all():
            raise DataError("the first position is not a finite number; begin where all joints are measured")
        rates = np.where(np.isfinite(now.qd), now.qd, 0.0)
        return shifted(belief, np.concatenate([now.q, rates, np.zeros(self.coordinates.start.size)]))

    def _model(self, Q: Array, mean: Array, drive: Drive, linearised: tuple[Array, Array] | None, seen: Array) -> Model:
        rows, R = self._H[seen], self._R[np.ix_(seen, seen)]

        def transition(x: Array, u: object) -> Array:
            if linearised is not None and x is mean:
                return linearised[0]
            return self.model.transition(x, drive)

        def slope(x: Array, u: object) -> Array:
            if linearised is not None and x is mean:
                return linearised[1]
            return self.model.tangent(x, drive)[1]

        kept = np.flatnonzero(seen)
        return Model(transition, lambda x, u: x[..., kept], Q, R, slope, lambda x, u: rows, many=True)

    def advance(self, belief: Belief, now: Instant, tau: Array, step: float, age: float) -> Belief:
        """The belief after `step` seconds under the torque `tau` and a look at the joints."""
        n, mean = self.robot.n, belief.mean
        if not np.isfinite(tau).all():
            raise DataError("a torque is not a finite number; a filter on [q, q̇, ξ] is driven by all of them")
        sign = np.tanh(mean[n : 2 * n] / STANDING)
        drive = Drive(tau, sign, step)
        ahead, F, G, dry = self.model.tangent(mean, drive)
        # Dry friction that may be anything up to its level is noise of that size.
        torque_variance = self.noise**2 + (1.0 - sign**2) * np.maximum(dry, 0.0) ** 2
        Q = (G * torque_variance) @ G.T
        move = self.settings.share(age) * step * self.deviation**2
        Q[np.arange(2 * n, mean.size), np.arange(2 * n, mean.size)] += move
        linearised = (ahead, F) if isinstance(self.settings.rule, Derivatives) else None
        z = now.q if self.settings.rate_noise is None else np.concatenate([now.q, now.qd])
        seen = np.isfinite(z)
        model = self._model(Q, mean, drive, linearised, seen)
        return predict_and_update(self.settings, model, belief, z[seen] if seen.any() else None, None)


Tracking = ParameterTracking | JointTracking


def tracking(robot: Robot, settings: Filter) -> Tracking:
    """The filter of these settings on a robot."""
    made = coordinates(robot, settings.coordinates)
    return (JointTracking if settings.on == "joint" else ParameterTracking)(robot, settings, made)
