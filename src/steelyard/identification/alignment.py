"""The delay between torque and motion, found from the residuals and taken out.

A torque that is recorded d seconds after the motion that it belongs to reads tau(t) = tau_true(t − d); to first order
the residual has the part −d dtau/dt in it. A controller that holds its torque for a period records it half a period
early; sensors and busses add delays of their own. Unmended, a delay passes for damping and inertia.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..compiled import one_blas_thread
from ..data.recording import Recording
from ..data.resample import AlignMotion
from ..robot.robot import Robot
from .conclude import estimate
from .estimators.least_squares import WLS
from .model import Experiment, sliced_torque
from .problem import Problem, build_problem
from .readings import torque_rate

Array = NDArray[np.float64]
_TURNS = 6
# A delay that is this many times its own standard deviation is believed.
_SURE = 4.0
# More than this is no delay of a signal but a wrong recording.
_MOST_SECONDS = 0.1
_CHANNEL, _PREFIX = "torque_rate", "delay of "


@dataclass(frozen=True)
class Delay:
    """How much later the torque was recorded than the motion, and how sure that is."""

    seconds: float
    deviation: float

    @property
    def believed(self) -> bool:
        return abs(self.seconds) > _SURE * self.deviation


@dataclass(frozen=True)
class _DelayTerm:
    """−dtau/dt of each joint, which multiplies its delay."""

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{_PREFIX}{dof}" for dof in robot.dof_names)

    def units(self, robot: Robot) -> tuple[str, ...]:
        return ("s",) * robot.n

    def nominal(self, robot: Robot) -> Array:
        return np.zeros(robot.n)

    def columns(self, robot: Robot, block: Recording) -> Array:
        rate = np.asarray(block.more.get(_CHANNEL, np.ones(block.tau.shape)))  # ones where only the structure counts
        out = np.zeros((*rate.shape, robot.n))
        every = np.arange(robot.n)
        out[:, every, every] = -rate
        return out


def shifted(recording: Recording, delay: float) -> Recording:
    """The recording with the motion read where its torque belongs, `delay` seconds earlier.

    The torque stays as it is, so that its noise stays independent from row to row.
    """
    if delay == 0.0 or len(recording) < 4:
        return recording
    return AlignMotion(-delay).apply(recording)


def _moved(experiments: Sequence[Experiment], delay: float) -> list[Experiment]:
    moved = []
    for one in experiments:
        assert isinstance(one.recording, Recording)
        moved.append(replace(one, recording=shifted(one.recording, delay)))
    return moved


def _again(problem: Problem, experiments: Sequence[Experiment], *extra: _DelayTerm) -> Problem:
    model = problem.model
    return build_problem(
        model.robot,
        experiments,
        terms=(*model.terms, *extra),
        fixed=model.fixed,
        decimation=problem.decimation,
        dead_zone=model.dead_zone,
    )


def aligned(problem: Problem, delay: float) -> Problem:
    """The problem with the motion of all its recordings moved to where their torque belongs."""
    return problem if delay == 0.0 else _again(problem, _moved(problem.experiments, delay))


def _step(problem: Problem) -> Delay:
    """One Gauss–Newton step: parameters and delay together."""
    with one_blas_thread():
        theta = problem.model.base.expand(WLS().fit(problem).beta, problem.model.nominal)
    experiments = []
    for one in problem.experiments:
        recording = one.recording
        assert isinstance(recording, Recording)
        rate = torque_rate(recording, sliced_torque(problem.model, theta, recording, one.load))
        experiments.append(replace(one, recording=replace(recording, more={**recording.more, _CHANNEL: rate})))
    both = estimate(_again(problem, experiments, _DelayTerm()), WLS())
    shown = np.isfinite(both.base_deviation)
    mine = [k for k, name in enumerate(both.base_names) if name.startswith(_PREFIX) and shown[k]]
    return _common(both.base_parameters[mine], both.base_covariance[np.ix_(mine, mine)])


def _common(delays: Array, covariance: Array) -> Delay:
    """The one delay behind those of the joints, and how sure that is.

    A signal's delay is that of all joints. Where theirs differ by more than their deviations, as when a controller
    turns the noise of one encoder into torque, there is more to it than a delay: the deviation grows with the misfit
    (Birge, Physical Review 40, 1932).
    """
    if not len(delays):
        return Delay(0.0, np.inf)
    precision = np.linalg.pinv(covariance, hermitian=True)
    weights = precision.sum(axis=1)
    if not weights.sum() > 0:
        return Delay(0.0, np.inf)
    seconds = float(weights @ delays / weights.sum())
    apart = delays - seconds
    misfit = float(apart @ precision @ apart) / max(len(delays) - 1, 1)
    return Delay(seconds, float(np.sqrt(max(misfit, 1.0) / weights.sum())))


def find_delay(problem: Problem) -> Delay:
    """The delay that all recordings of a problem share; no delay and no certainty where none can be found."""
    total, last = 0.0, Delay(0.0, np.inf)
    for _ in range(_TURNS):
        last = _step(aligned(problem, total))
        if not np.isfinite(last.deviation) or abs(total + last.seconds) > _MOST_SECONDS:
            return Delay(0.0, np.inf)
        total += last.seconds
        if abs(last.seconds) < 0.1 * last.deviation:
            break
    return Delay(total, last.deviation)
