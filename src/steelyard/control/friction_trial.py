"""Every way to compensate friction on the same plant, along the same reference, with the same noise.

The reference is slow and rests now and then, for there friction rules. What is believed of friction is its steady
motion, of the right size or not; the plant may have more (bristles that bend), and its encoders are noisy.
"""

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dynamics import mass_matrix
from ..errors import OptionError, unknown_name
from ..identification.friction.curve import FrictionCurve
from ..identification.friction.recorded import without_friction
from ..robot.robot import Robot
from ..simulation.controllers import Controller, pid_for
from ..simulation.loop import SimulationError
from ..simulation.reference import tick_count
from .compensation import Adaptive, Compensated, Compensating, Dither, DitherWarning, FeedForward, Pulse, newness
from .disturbance import DisturbanceObserver
from .following import Following
from .loop import Plant, Run, run_controlled

Array = NDArray[np.float64]
NONE = "none"
# Turns of the error by more than this share of the largest without compensation count, and so many a second beyond
# those without are an oscillation.
_TURN, _OSCILLATES = 0.2, 3.0
# Standard deviations of noise below which nothing is learnt and a joint counts as still.
_SIGMAS = 3.0
# Measured velocities go through a straight line over this many deviations of their noise, at least.
_WIDTH_SIGMAS = 4.0
_LEAST_WIDTH = 0.02
# A joint that leaves out more than this share of the motion is held by its friction.
_HELD = 0.5
# Friction for want of better knowledge holds the controller off by no more than this, rad or m; it is 2 % of its scale.
_USUAL_ERROR, _USUAL_COULOMB = 0.01, 0.02
_MOST_STEPS = 20_000_000  # of integration a run: minutes


@dataclass(frozen=True)
class Trial:
    """The base controller, and how strongly friction is compensated."""

    controller: str = "gravity"  # PD with gravity, or "computed torque"
    bandwidth_hz: float = 4.0
    gain: float = 0.8  # of the feed-forward
    observer_hz: float = 10.0
    dither_hz: float = 200.0
    dither_share: float = 0.15
    settle: float = 0.5  # s at the beginning that do not count

    def __post_init__(self) -> None:
        if self.controller not in ("gravity", "computed torque"):
            raise OptionError(f"no controller '{self.controller}'; valid: gravity, computed torque")
        if not (np.isfinite(self.bandwidth_hz) and self.bandwidth_hz > 0):
            raise OptionError(f"the bandwidth is {self.bandwidth_hz} Hz; it must be above zero")

    def gains(self, robot: Robot, reference: Array, control_hz: float) -> Controller:
        """The base controller."""
        if self.controller == "computed torque":
            omega = 2 * np.pi * self.bandwidth_hz
            return Controller(omega**2, 2 * omega, model="computed torque")
        poses = reference[0, :: max(1, reference.shape[1] // 50)]
        return pid_for(robot, self.bandwidth_hz, integral=0.0, model="gravity", poses=poses, control_hz=control_hz)

    def stiffness(self, robot: Robot, reference: Array) -> Array:
        """J ω² of each joint, N·m/rad; J is the least that it feels while the others give way, on the way."""
        M = mass_matrix(robot, reference[0, :: max(1, reference.shape[1] // 50)])
        J = (1.0 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2)).min(axis=0)
        return np.asarray(J * (2 * np.pi * self.bandwidth_hz) ** 2)


def usual_torque_scale(robot: Robot, stiffness: Array) -> Array:
    """For `friction_named`: the torque limits, but no more than lets friction be followed against by this stiffness."""
    limit = np.where(np.isfinite(robot.limits.torque), robot.limits.torque, 10.0)
    return np.minimum(limit, _USUAL_ERROR / _USUAL_COULOMB * stiffness)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one way did; rows of joints."""

    name: str
    rms: Array  # of the true error
    largest: Array
    improvement: Array  # of the rms, against none; above 1 is better
    overall: float  # the same of the rms over all joints
    saturated: Array  # share of ticks
    turns: Array  # a second, of the error, beyond those without compensation
    unrest: Array  # of the torque from tick to tick, against none
    cautions: tuple[str, ...]
    failed: str = ""

    @property
    def oscillates(self) -> NDArray[np.bool_]:
        return np.asarray(self.turns > _OSCILLATES)


def moves_and_rests(
    robot: Robot,
    control_hz: float = 1000.0,
    seconds: float = 8.0,
    reach: float = 0.05,
    move: float = 1.5,
    rest: float = 1.0,
) -> Array:
    """Slow moves there and back with rests between, joints one after the other, from the home pose, (3, ticks, n).

    A move is the polynomial of least jerk. Joints go away from the limit that is nearer.
    """  # fmt: skip
    if not (0 < seconds <= 3600 and reach > 0 and move > 0 and rest >= 0):
        raise OptionError("the motion needs a length (at most an hour), a reach and moves above zero")
    if robot.nq != robot.n:
        raise OptionError(f"{robot.name} has ball or free joints; the moves are of hinges and slides")
    t = np.arange(tick_count(seconds, control_hz))[:, None] / control_hz
    n, period = robot.n, 2.0 * (move + rest)
    since = t - 0.5 * np.arange(n) / n
    phase = np.where(since > 0, since % period, 0.0)

    def moved(begin: float) -> Array:
        x = np.clip((phase - begin) / move, 0.0, 1.0)
        inside = (x > 0) & (x < 1)
        rate = np.where(inside, 30 * x**2 - 60 * x**3 + 30 * x**4, 0.0) / move
        acceleration = np.where(inside, 60 * x - 180 * x**2 + 120 * x**3, 0.0) / move**2
        return np.stack([10 * x**3 - 15 * x**4 + 6 * x**5, rate, acceleration])

    lower, upper, home = robot.limits.lower, robot.limits.upper, robot.home
    up, down = (np.where(np.isfinite(limit), np.abs(limit - home), np.inf) for limit in (upper, lower))
    way = np.where(up >= down, 1.0, -1.0) * np.minimum(reach, 0.9 * np.maximum(up, down))
    reference = way * (moved(0.0) - moved(move + rest))
    reference[0] += home
    return np.asarray(reference)


def noise_of_velocity(position_noise: Array, control_hz: float, smoothing: float) -> Array:
    """Standard deviation of differenced positions with white noise, smoothed by a first-order low-pass."""
    new = newness(smoothing, 1.0 / control_hz)
    return position_noise * control_hz * new * np.sqrt(2.0 / (2.0 - new))


def ways_to_compensate(
    plant: Plant, believed: FrictionCurve, trial: Trial, stiffness: Array
) -> Mapping[str, tuple[Compensating, ...]]:
    """One of each, with settings that suit the robot, its encoders and the bandwidth."""
    n, hz, sensors = plant.robot.n, plant.control_hz, plant.sensors
    model = without_friction(plant.robot)
    noise = np.hypot(sensors.per_joint("position_noise", n), sensors.per_joint("position_step", n) / np.sqrt(12.0))
    quiet = _SIGMAS * noise_of_velocity(noise, hz, Adaptive.smoothing)
    raw = noise_of_velocity(noise, hz, 0.0)
    width = max(_LEAST_WIDTH, _WIDTH_SIGMAS * float(raw.max(initial=0.0)))
    omega = 2 * np.pi * trial.bandwidth_hz
    return {
        NONE: (),
        "feed-forward": (FeedForward(believed, trial.gain),),
        "feed-forward, measured": (FeedForward(believed.without_peak(), trial.gain, "measured", width),),
        "adaptive": (Adaptive(stiffness, 0.5 * omega, quiet),),
        "observer": (DisturbanceObserver(model, trial.observer_hz),),
        "dither": (Dither(believed, trial.dither_share, trial.dither_hz, trial.bandwidth_hz),),
        "pulses": (Pulse(believed, threshold=np.maximum(quiet, 5e-3), deadband=np.maximum(5e-4, _SIGMAS * noise)),),
    }


def turns(x: Array, height: float) -> int:
    """How often a signal turns round after it went by more than a height."""
    if not len(x) or height <= 0:
        return 0
    count, way, top, bottom = 0, 0, float(x[0]), float(x[0])
    for value in x.tolist():
        top, bottom = max(top, value), min(bottom, value)
        if way >= 0 and value < top - height:
            count, way, top, bottom = count + (way > 0), -1, value, value
        elif way <= 0 and value > bottom + height:
            count, way, top, bottom = count + (way < 0), 1, value, value
    return count


def _turns_a_second(run: Run, after: float, heights: Array) -> Array:
    kept = run.t >= after
    seconds = max(float(run.t[-1] - after), 1e-9)
    return np.array([turns(run.error[kept, j], heights[j]) for j in range(run.q.shape[1])]) / seconds


def _unrest(run: Run, after: float) -> Array:
    change = np.diff(run.tau[run.t >= after], axis=0)
    return np.asarray(np.sqrt(np.mean(change**2, axis=0)))


def _held(run: Run, names: tuple[str, ...], after: float) -> tuple[str, ...]:
    """Joints that friction does not let go, by name."""
    asked = np.ptp(run.wanted[0], axis=0)
    held = [n for n, e, a in zip(names, run.rms_error(after), asked, strict=True) if a > 0 and e > _HELD * 0.5 * a]
    if not held:
        return ()
    return (f"friction hardly lets {', '.join(held)} move: raise the bandwidth, or compare under less friction",)


def _judged(name: str, run: Run, none: Run, after: float, told: tuple[str, ...]) -> Outcome:
    def largest(of: Run) -> Array:
        return np.asarray(np.abs(of.error[of.t >= after]).max(axis=0))

    heights = _TURN * largest(none)
    rms, before = run.rms_error(after), none.rms_error(after)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Outcome(
            name, rms, largest(run), before / rms, float(np.linalg.norm(before) / np.linalg.norm(rms)), run.saturated,
            _turns_a_second(run, after, heights) - _turns_a_second(none, after, heights),
            _unrest(run, after) / _unrest(none, after), told,
        )  # fmt: skip


def _failed(name: str, n: int, error: SimulationError, told: tuple[str, ...]) -> Outcome:
    nothing = np.full(n, np.nan)
    return Outcome(name, nothing, nothing, nothing, float("nan"), nothing, nothing, nothing, told, str(error))


def compare_compensations(
    plant: Plant,
    reference: Array,
    believed: FrictionCurve,
    rng: np.random.Generator,
    trial: Trial | None = None,
    offset: Array | None = None,
    only: Collection[str] = (),
    progress: Any = lambda what, share: None,
) -> list[Outcome]:
    """The tracking of a plant without compensation and with each; `believed` is the friction that they know.

    `only` names those that are tried, beside none; all where it is empty. `offset` is a constant torque of friction
    that the plant's law has not. A way under which the plant runs away says so in `failed`.
    """
    trial = Trial() if trial is None else trial
    robot, n = without_friction(plant.robot), plant.robot.n
    if believed.n != n:
        raise OptionError(f"the friction is of {believed.n} joints, {plant.robot.name} has {n}")
    base = Following(robot, trial.gains(robot, reference, plant.control_hz))
    steps = plant.substeps(reference) * reference.shape[1]
    if steps > _MOST_STEPS:
        raise OptionError(
            f"this friction asks for {steps:.1e} steps of integration a run, it is too stiff for joints so light; take "
            "the law lugre, less friction, or a shorter motion"
        )
    push = None if offset is None or not np.any(offset) else np.broadcast_to(-offset, (reference.shape[1], n))
    seconds = (reference.shape[1] - 1) * plant.dt
    if trial.settle >= seconds:
        raise OptionError(f"the motion of {seconds:g} s ends before {trial.settle:g} s, from which errors count")
    seed = int(rng.integers(2**62))
    outcomes: list[Outcome] = []
    none = None
    ways = ways_to_compensate(plant, believed, trial, trial.stiffness(robot, reference))
    unknown = [name for name in only if name not in ways]
    if unknown:
        raise OptionError(unknown_name("compensation", unknown[0], ways))
    ways = {name: parts for name, parts in ways.items() if not only or name in only or name == NONE}
    for k, (name, parts) in enumerate(ways.items()):
        progress(f"tracking: {name}", k / len(ways))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DitherWarning)
            try:
                run = run_controlled(
                    plant, Compensated(base, parts), reference, push=push, rng=np.random.default_rng(seed)
                )
            except SimulationError as error:
                if none is None:
                    raise
                told = tuple(str(one.message) for one in caught)
                outcomes.append(_failed(name, n, error, told))
                continue
        none = run if none is None else none
        told = tuple(str(one.message) for one in caught if issubclass(one.category, DitherWarning))
        told += _held(run, robot.dof_names, trial.settle) if name == NONE else ()
        outcomes.append(_judged(name, run, none, trial.settle, told))
    return outcomes
