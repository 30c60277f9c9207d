"""A robot that is pushed at its tool with known forces while it moves, as a recording: what `touch` is tried on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import OptionError
from ..robot.robot import Robot
from ..simulation.sensors import Sensors
from .loop import Plant, run_controlled
from .momentum import Tool
from .tracking import ComputedTorque

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Push:
    """A force at the tool, N in the axes of the base, from a time on for a while; it comes and goes in 10 ms."""

    force: tuple[float, float, float]
    begin: float
    seconds: float

    def at(self, t: Array) -> Array:
        """(T, 3)."""
        share = np.minimum(t - self.begin, self.begin + self.seconds - t) / 0.01
        return np.clip(share, 0.0, 1.0)[:, None] * np.array(self.force)


def usual_pushes(whole: float) -> tuple[Push, ...]:
    """10, 5, 3 and 2 N in turn, in the second half of a motion."""
    sizes = ((0.0, 0.0, -10.0), (5.0, 0.0, 0.0), (0.0, 3.0, 0.0), (0.0, 0.0, 2.0))
    return tuple(Push(force, whole * (0.55 + 0.1 * k), 0.5) for k, force in enumerate(sizes))


def pushed_recording(
    robot: Robot,
    reference: Array,
    tool: Tool,
    pushes: tuple[Push, ...],
    *,
    rng: np.random.Generator,
    position_noise: float = 1e-5,
    torque_noise: float = 0.05,
    control_hz: float = 1000.0,
) -> Recording:
    """What encoders and joint torque sensors said while a robot followed a reference and was pushed.

    Its channel `push` (T, 3) is the true force.
    """
    t = np.arange(reference.shape[1]) / control_hz
    force = np.zeros((len(t), 3))
    for push in pushes:
        if not (np.isfinite(push.force).all() and push.seconds > 0 and 0 <= push.begin < t[-1]):
            raise OptionError(f"a push of {push.force} N at {push.begin} s does not fit a motion of {t[-1]:g} s")
        force += push.at(t)
    torque = np.einsum("tdn,td->tn", tool.jacobian(robot, reference[0]), force)
    plant = Plant(robot, sensors=Sensors(position_noise=position_noise), control_hz=control_hz)
    run = run_controlled(plant, ComputedTorque(robot), reference, push=torque, rng=rng)
    tau = run.tau + torque_noise * rng.standard_normal(run.tau.shape)
    about = {"source": "steelyard touch --demo", "tool": [tool.body, *tool.offset], "torque_noise": torque_noise}
    return Recording(run.t, run.q_seen, tau, joints=robot.dof_names, more={"push": force}, about=about)
