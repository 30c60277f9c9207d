"""What a tool touches: stiffness, damping and place of an environment, estimated while the contact lasts.

    F = k (x − x_e) + b ẋ = [x, ẋ, −1] [k, b, k x_e]ᵀ

Both estimators work on c = k x_e instead of x_e: the force is linear in it, so that a wrong first guess of k does not
make the filter sure of a wrong place. Below `least_force` the tool counts as free, and nothing is learnt.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, OptionError
from ..identification.online import kalman, recursive

Array = NDArray[np.float64]

NAMES = ("stiffness", "damping", "position")
# Stiffness and damping with a larger deviation are not called known; nor is anything where the tool moved by less than
# so many times the noise of its position, which biases k by the inverse of the square: 4 %.
_WELL_KNOWN = 0.2
_LEAST_MOTION = 5.0
# Mean squares of innovations above this, in the second half of a contact, say that the filter is wrong about itself.
_SURPRISED = 2.0


@dataclass(frozen=True)
class Guess:
    """Where an estimator begins, and by how much each may be wrong (standard deviation)."""

    stiffness: float = 1000.0  # N/m
    damping: float = 10.0  # N·s/m
    position: float = 0.0  # m
    stiffness_deviation: float = 5000.0
    damping_deviation: float = 100.0
    position_deviation: float = 0.1

    def __post_init__(self) -> None:
        for name in ("stiffness", "stiffness_deviation", "damping_deviation", "position_deviation"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise OptionError(f"the guess of the environment has {name} {value:g}; it must be above zero")

    def linear(self) -> tuple[Array, Array]:
        """Mean and covariance of [k, b, c]."""
        k, x, dk, dx = self.stiffness, self.position, self.stiffness_deviation, self.position_deviation
        covariance = np.diag([dk**2, self.damping_deviation**2, (x * dk) ** 2 + (k * dx) ** 2])
        covariance[0, 2] = covariance[2, 0] = x * dk**2
        return np.array([k, self.damping, k * x]), covariance


@dataclass(frozen=True)
class RecursiveLeastSquares:
    """RLS on measured positions and velocities; cheap, and biased where these are noisy."""

    position_noise: float = 1e-5  # m, standard deviation a sample
    force_noise: float = 0.1  # N
    forgetting: float = 1.0
    least_force: float = 0.5  # N


@dataclass(frozen=True)
class ExtendedKalman:
    """EKF of second order on [x, ẋ, k, b, c] of a mass that a command drives against it: m ẍ = F_cmd − F.

    The parameters may wander by `drift` (a fraction of the guess's deviation per √s) and the acceleration be wrong by
    `acceleration_noise`.
    """

    mass: float
    position_noise: float = 1e-5  # m
    force_noise: float = 0.1  # N
    acceleration_noise: float = 1e-3  # m/s² per √Hz
    drift: float = 1e-3
    least_force: float = 0.5  # N


@dataclass(frozen=True, eq=False)
class Environment:
    """Estimates and their standard deviations after every sample, columns as in `NAMES`."""

    t: Array
    values: Array  # (T, 3)
    deviations: Array  # (T, 3)
    message: str

    @property
    def found(self) -> dict[str, tuple[float, float]]:
        """The last values, each with its deviation."""
        return {
            name: (float(v), float(d))
            for name, v, d in zip(NAMES, self.values[-1], self.deviations[-1], strict=True)
        }  # fmt: skip


def _with_place(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """[k, b, x_e] and deviations from [k, b, c]: x_e = c/k, by its derivative."""
    k, b, c = mean
    slope = np.array([-c / k**2, 0.0, 1.0 / k])
    variance = np.array([covariance[0, 0], covariance[1, 1], slope @ covariance @ slope])
    return np.array([k, b, c / k]), np.sqrt(np.maximum(variance, 0.0))


def _columns(*given: ArrayLike) -> list[Array]:
    columns = [np.asarray(column, dtype=np.float64) for column in given]
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1 or len(columns[0]) < 2:
        raise DataError(f"the signals of a contact have shapes {[c.shape for c in columns]}; give rows of equal length")
    for column in columns:
        if not np.isfinite(column).all():
            raise DataError(f"sample {int(np.argmin(np.isfinite(column))) + 1} of the contact is not finite; repair it")
    if np.diff(columns[0]).min() <= 0:
        raise DataError("the times of the contact do not advance; sort the samples")
    return columns


def _concluded(
    t: Array, rows: list[tuple[Array, Array]], guess: Guess, indented: Array, noise: float, surprise: float = 1.0
) -> Environment:
    """Positions count as exact where they multiply k, so what moves no more than their noise shows nothing.

    `surprise` is how large the squares of innovations are against what the filter expects of them: 1 if it is right.
    """
    values, deviations = (np.array(column) for column in zip(*rows, strict=True))
    touched = len(indented)
    moved = touched > 1 and float(np.std(indented)) > _LEAST_MOTION * noise
    known = deviations[-1] < np.r_[_WELL_KNOWN * np.abs(values[-1, :2]), 0.5 * guess.position_deviation]
    blind = [name for name, is_known in zip(NAMES, known, strict=True) if not (moved and is_known)]
    if not touched:
        message = "the tool never touched anything: no sample has the least force"
    elif blind:
        message = f"the contact does not show {', '.join(blind)}: vary the force, in steps and in sines"
    elif surprise > _SURPRISED:
        message = (
            f"the contact is not as assumed: innovations are {np.sqrt(surprise):.1f} times what noise explains; widen "
            "the guess's deviations, or correct the mass and the noise"
        )
    else:
        message = f"estimated from {touched} samples in contact"
    return Environment(t, values, deviations, message)


def _by_rls(t: Array, x: Array, v: Array, force: Array, method: RecursiveLeastSquares, guess: Guess) -> Environment:
    mean, covariance = guess.linear()
    # The guess of x_e is one more equation, c = k x_e with its deviation; k and c have priors wide enough for it.
    widest = np.sqrt(np.diag(covariance))
    state = recursive.start(mean, widest)
    tie = np.array([guess.position, 0.0, -1.0])
    state = recursive.update(state, tie, 0.0, noise=guess.stiffness * guess.position_deviation)
    touching = np.abs(force) >= method.least_force
    rows = []
    for k in range(len(t)):
        if touching[k]:
            phi = np.array([x[k], v[k], -1.0])
            state = recursive.update(state, phi, force[k], method.force_noise, method.forgetting)
        rows.append(_with_place(state.estimate, state.covariance))
    return _concluded(t, rows, guess, x[touching], method.position_noise)


def _models(method: ExtendedKalman, guess: Guess, dt: float) -> tuple[kalman.Model, kalman.Model]:
    """The mass on its environment, measured by position and force; and free, measured by position."""
    m = method.mass

    def moved(state: Array, command: float, on: float) -> Array:
        x, v, k, b, c = state
        # Half-way acceleration: the step of second order keeps a stiff contact's damping right.
        a = (command - on * (k * x + b * v - c)) / m
        xh, vh = x + 0.5 * dt * v, v + 0.5 * dt * a
        ah = (command - on * (k * xh + b * vh - c)) / m
        return np.array([x + dt * vh, v + dt * ah, k, b, c])

    def measured(state: Array, _: float) -> Array:
        x, v, k, b, c = state
        return np.array([x, k * x + b * v - c])

    _, covariance = guess.linear()
    noise = np.zeros((5, 5))
    q = method.acceleration_noise**2
    noise[:2, :2] = q * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    touching, free = noise.copy(), noise
    touching[2:, 2:] = method.drift**2 * dt * covariance
    seen = np.diag([method.position_noise**2, method.force_noise**2])
    return (
        kalman.Model(lambda s, u: moved(s, u, 1.0), measured, touching, seen),
        kalman.Model(lambda s, u: moved(s, u, 0.0), lambda s, u: s[:1], free, seen[:1, :1]),
    )


def _curved(P: Array) -> tuple[float, float]:
    """Mean and variance of δk δx + δb δv, by which the force is not linear in [x, v, k, b, c].

    Without them the first samples, in which k is unknown, count for more than they say, and the filter locks in.
    """
    mean = P[0, 2] + P[1, 3]
    variance = P[2, 2] * P[0, 0] + P[0, 2] ** 2 + P[3, 3] * P[1, 1] + P[1, 3] ** 2
    variance += 2 * (P[2, 3] * P[0, 1] + P[1, 2] * P[0, 3])
    return float(mean), float(max(variance, 0.0))


def _predicted(model: kalman.Model, state: kalman.Gaussian, command: float, effect: Array) -> kalman.Gaussian:
    """A step of the filter to second order; `effect` is what a newton of contact does to the state."""
    mean, variance = _curved(state.covariance)
    noise = model.process_noise + variance * np.outer(effect, effect)
    after = kalman.predict(replace(model, process_noise=noise), state, command)
    return kalman.Gaussian(after.mean + mean * effect, after.covariance)


def _updated(
    model: kalman.Model, state: kalman.Gaussian, z: Array, command: float
) -> tuple[kalman.Gaussian, kalman.Innovation]:
    """A measurement of position and force, to second order."""
    mean, variance = _curved(state.covariance)
    noise = model.measurement_noise + np.diag([0.0, variance])
    return kalman.update(replace(model, measurement_noise=noise), state, z - np.array([0.0, mean]), command)


def _by_ekf(t: Array, x: Array, command: Array, force: Array, method: ExtendedKalman, guess: Guess) -> Environment:
    mean, covariance = guess.linear()
    dt = float(np.median(np.diff(t)))
    if np.abs(np.diff(t) - dt).max() > 1e-3 * dt:
        raise DataError("the samples of the contact are not evenly spaced; resample them")
    touching_model, free_model = _models(method, guess, dt)
    P = np.zeros((5, 5))
    P[0, 0], P[1, 1], P[2:, 2:] = method.position_noise**2, 1.0, covariance
    state = kalman.Gaussian(np.r_[x[0], 0.0, mean], P)
    touching = np.abs(force) >= method.least_force
    effect = np.array([-0.5 * dt**2, -dt, 0.0, 0.0, 0.0]) / method.mass
    rows, surprises = [], []
    for k in range(len(t)):
        if touching[k]:
            state = _predicted(touching_model, state, command[k - 1], effect) if k else state
            state, new = _updated(touching_model, state, np.array([x[k], force[k]]), command[k])
            surprises.append(new.distance / 2)
        else:
            state = kalman.predict(free_model, state, command[k - 1]) if k else state
            state, _ = kalman.update(free_model, state, x[k : k + 1], command[k])
        rows.append(_with_place(state.mean[2:], state.covariance[2:, 2:]))
    surprise = float(np.mean(surprises[len(surprises) // 2 :])) if surprises else 1.0
    return _concluded(t, rows, guess, x[touching], method.position_noise, surprise)


def estimate_environment(
    t: ArrayLike,
    x: ArrayLike,
    force: ArrayLike,
    method: RecursiveLeastSquares | ExtendedKalman,
    *,
    velocity: ArrayLike | None = None,
    command: ArrayLike | None = None,
    guess: Guess | None = None,
) -> Environment:
    """Follow a contact sample by sample: RLS takes the measured velocity, the EKF the commanded force."""
    guess = Guess() if guess is None else guess
    if isinstance(method, RecursiveLeastSquares):
        if velocity is None:
            raise OptionError("recursive least squares needs the tool's velocity; give velocity=")
        columns = _columns(t, x, velocity, force)
        return _by_rls(columns[0], columns[1], columns[2], columns[3], method, guess)
    if command is None:
        raise OptionError("the extended Kalman filter needs the force that drives the tool; give command=")
    columns = _columns(t, x, command, force)
    return _by_ekf(columns[0], columns[1], columns[2], columns[3], method, guess)
