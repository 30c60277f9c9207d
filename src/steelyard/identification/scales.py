"""How large a parameter would have to be to matter, from the robot itself: where a model says nothing, this does."""

import numpy as np
from numpy.typing import NDArray

from ..dynamics import regressor
from ..robot.robot import Robot
from ..robot.states import random_states

Array = NDArray[np.float64]
# What rotors and friction usually are of all that makes torque; and of the largest of its kind none is much smaller.
_USUAL_JOINT, _LEAST_JOINT = 0.1, 0.1


def parameter_scales(robot: Robot, states: int = 200) -> Array:
    """For every parameter the change that would make as much torque as the whole robot does, from random states."""
    q, qd, qdd = random_states(robot, np.random.default_rng(0), states)
    Y = regressor(robot, q, qd, qdd)
    whole = np.sqrt(np.mean((Y @ robot.parameters) ** 2, axis=0))  # (n,)
    effect = np.sqrt(np.mean(Y**2, axis=0))  # (n, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.where(effect > 1e-12, whole[:, None] / effect, np.inf).min(axis=0)
    known = np.isfinite(scales) & (scales > 0)
    return np.where(known, scales, 1.0)


def joint_scales(robot: Robot) -> Array:
    """What would make a tenth of that torque, of the joints' own parameters: rotors, friction, offsets.

    Light joints at the end of an arm have rotors like those before them, so none counts as much smaller than the others
    of the same unit.
    """
    layout = robot.layout
    split = layout.inertial.stop
    scales, units = _USUAL_JOINT * parameter_scales(robot)[split:], np.array(layout.units[split:])
    for prop in layout.properties:
        own = np.arange(layout.block(prop).start, layout.block(prop).stop) - split
        for unit in set(units[own].tolist()):
            alike = own[units[own] == unit]
            scales[alike] = np.maximum(scales[alike], _LEAST_JOINT * scales[alike].max())
    return scales
