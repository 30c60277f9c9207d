"""How fast the rig runs, and the PD that lets any robot follow at that pace."""

import math

import numpy as np

from ..dynamics import mass_matrix
from ..errors import DataError, OptionError
from ..excitation.trajectory import Trajectory
from ..robot.robot import Robot
from .controllers import Controller

PUBLISH_RATE_HZ = 100.0
_WAY = 100  # places of the trajectory at which the controller looks at the inertia


def timing(publish_rate_hz: float, model_step: float) -> tuple[float, int]:
    """Physics step and steps a sample: the model's own step, or the next shorter one that fits the rate."""
    if not (math.isfinite(publish_rate_hz) and 0 < publish_rate_hz <= 1e5):
        raise OptionError(f"publish_rate_hz is {publish_rate_hz}; give a rate above 0 and at most 100000 Hz")
    period = 1.0 / publish_rate_hz
    substeps = max(1, math.ceil(period / model_step - 1e-9))
    return period / substeps, substeps


def pd_for(
    robot: Robot,
    trajectory: Trajectory,
    bandwidth_hz: float = 4.0,
    gravity: bool = True,
    publish_rate_hz: float = PUBLISH_RATE_HZ,
) -> Controller:
    """A critically damped PD for the largest inertia that each joint has on the way, with the robot's gravity or not.

    Kp = J ω², Kd = 2 J ω, J = min(max_t M_jj, m_j / (4 ω h)) with m_j = min_t 1/(M⁻¹)_jj, the least inertia that the
    joint feels while the others give way: beyond it the damping of a step h would overshoot.
    """
    if not (math.isfinite(bandwidth_hz) and bandwidth_hz > 0):
        raise OptionError(f"the bandwidth is {bandwidth_hz} Hz; it must be above zero")
    if robot.source is None:
        raise DataError(f"{robot.name} has no model file behind it; load it with load_robot")
    omega = 2 * np.pi * bandwidth_hz
    step, _ = timing(publish_rate_hz, float(robot.source.model.opt.timestep))
    M = mass_matrix(robot, trajectory.sample(np.linspace(0.0, trajectory.duration, _WAY))[0])
    largest = np.diagonal(M, axis1=1, axis2=2).max(axis=0)
    least = 1.0 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2).max(axis=0)
    J = np.minimum(largest, least / (4 * omega * step))
    return Controller(J * omega**2, 2 * J * omega, model="gravity" if gravity else "none")
