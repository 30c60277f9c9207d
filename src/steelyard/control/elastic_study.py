"""Laws for flexible joints side by side: what their poles say, and what the simulated robot does."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError
from ..physics.transmission import FlexibleJoint
from ..robot.robot import Robot
from ..simulation.loop import SimulationError
from ..simulation.sensors import Sensors
from .elastic_loop import (
    ElasticLoop,
    Poles,
    by_damping,
    elastic_plant,
    root_locus,
    settling_time,
    stability_limit,
)
from .flexible import ElasticLaw, PrintedLaw, TwoTimeScale, closed_loop
from .loop import Plant, Run, run_controlled

Array = NDArray[np.float64]

_SMALL = 1e-5  # rad or m: so small that the robot is linear
_WATCHED = 0.5  # s
_STEP = 0.3  # rad that the fastest mode turns in a step of the integrator
_GAINS = 40


def smooth_step(
    start: ArrayLike, end: ArrayLike, begin: float, seconds: float, whole: float, control_hz: float
) -> Array:
    """A reference (3, ticks, n) that moves from rest to rest by a quintic: no jump of acceleration."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    t = np.arange(round(whole * control_hz), dtype=np.float64) / control_hz
    x = np.clip((t - begin) / seconds, 0.0, 1.0)[:, None]
    way = np.stack([x**3 * (10 - 15 * x + 6 * x**2), 30 * x**2 * (1 - x) ** 2, 60 * x * (1 - x) * (1 - 2 * x)])
    reference = way * (b - a) / np.array([1.0, seconds, seconds**2])[:, None, None]
    reference[0] += a
    return np.asarray(reference)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What a law did in simulation; not a number where it ran away."""

    offset: float  # largest distance from the aim at the end
    overshoot: float  # beyond the aim, as a part of the step
    settled: float  # s, until all joints stay within 2 % of the step
    swing: float  # peak to peak in the last second
    rms: float  # of the error over the run
    ran_away: str = ""


@dataclass(frozen=True, eq=False)
class LawStudy:
    """One law: its linear closed loop, and its step and its smooth motion in simulation."""

    loop: ElasticLoop
    sampled: Poles  # with the torque held over a tick
    disagreement: float  # of small simulated motions and the sampled linear loop
    settling: float
    step: Behaviour
    smooth: Behaviour

    @property
    def is_stable(self) -> bool:
        """At the rate of the controller."""
        return bool(self.loop.is_stable and self.sampled.real.max() < 0)

    @property
    def least_damping(self) -> float:
        """The smallest damping ratio of the sampled poles that swing; 1 where none does."""
        swing = self.sampled[np.abs(self.sampled.imag) > 1e-9 * np.abs(self.sampled)]
        return float(by_damping(swing).min()) if len(swing) else 1.0


@dataclass(frozen=True, eq=False)
class ElasticStudy:
    """What `study_flexible` found."""

    modes: Array  # rad/s of the free robot, undamped
    laws: Mapping[str, LawStudy]
    bandwidths: Array
    locus: Poles  # of the two-time-scale law over `bandwidths`
    limit: float  # rad/s from which on that law, held over ticks, is not stable


def _behaviour(run: Run, aim: Array, start: Array) -> Behaviour:
    reach = np.abs(aim - start)
    off = run.q - aim
    size = np.where(reach > 0, reach, 1.0)
    outside = np.flatnonzero((np.abs(off) > 0.02 * reach).any(axis=1))
    settled = float(run.t[outside[-1] + 1]) if len(outside) and outside[-1] + 1 < len(run.t) else float("nan")
    last = run.q[run.t >= run.t[-1] - 1.0]
    return Behaviour(
        offset=float(np.abs(last.mean(axis=0) - aim).max()),
        overshoot=float(np.max(np.maximum(off * np.sign(aim - start) / size, 0.0))),
        settled=settled if len(outside) else 0.0,
        swing=float(np.ptp(last, axis=0).max()),
        rms=float(run.rms_error().max()),
    )


def _moved(plant: Plant, law: ElasticLaw, reference: Array, start: Array, aim: Array) -> Behaviour:
    try:
        return _behaviour(run_controlled(plant, law, reference, start=start), aim, start)
    except SimulationError as error:
        nan = float("nan")
        return Behaviour(nan, nan, nan, nan, nan, str(error))


def disagreement(plant: Plant, law: ElasticLaw, loop: ElasticLoop, pose: Array) -> float:
    """How far small simulated motions leave those of the sampled linear loop, as a part of the largest of each joint.

    Not a number where the simulation runs away.
    """
    n = plant.robot.n
    still = np.zeros((3, round(_WATCHED / plant.dt), n))
    still[0] = pose
    away = _SMALL * np.where(np.arange(n) % 2, -1.0, 1.0)
    try:
        # The difference of two is free of where the loop stands.
        runs = [run_controlled(plant, law, still, start=pose + sign * away) for sign in (1.0, -1.0)]
    except SimulationError:
        return float("nan")
    seen = 0.5 * (runs[0].q - runs[1].q)
    x = 0.5 * np.hstack([runs[0].q[0] - runs[1].q[0], runs[0].theta[0] - runs[1].theta[0], np.zeros(2 * n)])
    moves, predicted = loop.over_a_tick(plant.dt), np.empty_like(seen)
    for k in range(len(seen)):
        predicted[k] = x[:n]
        x = moves @ x
    return float(np.max(np.abs(seen - predicted).max(axis=0) / np.abs(predicted).max(axis=0)))


def study_flexible(
    robot: Robot,
    flexible: FlexibleJoint,
    *,
    bandwidth: float = 5.0,
    zeta: float = 0.7,
    pose: ArrayLike | None = None,
    step: float = 1.0,
    seconds: float = 6.0,
    control_hz: float = 1000.0,
) -> ElasticStudy:
    """The laws of this room on one robot: poles about a pose, and a step and a smooth motion of all joints from it."""
    if robot.nq != robot.n:
        raise OptionError(f"{robot.name} has ball or free joints; flexible joints are hinges and slides")
    start = np.array(robot.home if pose is None else pose, dtype=np.float64)
    if start.shape != (robot.n,) or not np.isfinite(start).all():
        raise OptionError(f"the pose has shape {start.shape}; give {robot.n} finite numbers, one a joint")
    if not (np.isfinite(step) and step != 0 and np.isfinite(seconds) and seconds >= 2.0):
        raise OptionError(f"the step is {step} and lasts {seconds} s; give one that is not 0, and at least 2 s")
    aim = start + step
    outside = np.flatnonzero((aim < robot.limits.lower) | (aim > robot.limits.upper))
    if len(outside):
        raise OptionError(
            f"a step of {step:g} takes {robot.dof_names[outside[0]]} to {aim[outside[0]]:.3g}, beyond its range "
            f"{robot.limits.lower[outside[0]]:.3g} … {robot.limits.upper[outside[0]]:.3g}; give a smaller step"
        )
    linear = elastic_plant(robot, flexible, start)
    step_length = _STEP / float(np.abs(np.linalg.eigvals(linear.A)).max())
    sensors = Sensors(velocity="measured")
    plant = Plant(robot, flexible=flexible, control_hz=control_hz, step=step_length, sensors=sensors)
    ours = TwoTimeScale(robot, flexible, bandwidth, zeta)
    laws: dict[str, ElasticLaw] = {
        "two time scales": ours,
        "slow part alone": TwoTimeScale(robot, flexible, bandwidth, 0.0),
        "as exercise 7.5 prints it": PrintedLaw(robot, flexible, zeta),
        "printed, without k(q − θ)": PrintedLaw(robot, flexible, zeta, spring=False),
    }
    jump = np.zeros((3, round(seconds * control_hz), robot.n))
    jump[0] = aim
    way = smooth_step(start, aim, 0.1, min(1.0, seconds / 4), seconds, control_hz)
    studies = {}
    for name, law in laws.items():
        loop = closed_loop(linear, law)
        studies[name] = LawStudy(
            loop=loop,
            sampled=loop.sampled_poles(plant.dt),
            disagreement=disagreement(plant, law, loop, start),
            settling=settling_time(loop.sampled_poles(plant.dt)),
            step=_moved(plant, law, jump, start, aim),
            smooth=_moved(plant, law, way, start, aim),
        )

    def at(value: float) -> ElasticLoop:
        return closed_loop(linear, ours.at(value))

    def growth(value: float) -> float:
        return float(at(value).sampled_poles(plant.dt).real.max())

    bandwidths = bandwidth * np.geomspace(0.1, 10.0, _GAINS)
    free = np.linalg.eigvals(linear.A)
    modes = np.sort(np.abs(free[free.imag > 1e-9 * np.abs(free).max()].imag))
    return ElasticStudy(
        modes, studies, bandwidths, root_locus(at, bandwidths), stability_limit(growth, bandwidth * 0.1)
    )
