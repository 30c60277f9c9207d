"""What a simulation should be warned of: steps too large for the physics, and joints that lack torque."""

import warnings

import numpy as np
from numpy.typing import NDArray

from .loop import ADAPTIVE, ClosedLoop
from .stiffness import STABLE

# Joints touch their limit for moments in hard motions; a loop that is unstable or too weak stays there.
SATURATED_TOO_OFTEN = 0.05


class StepWarning(UserWarning):
    """The integration step is too large for the stiffest part of the robot."""


class SaturationWarning(UserWarning):
    """A joint got less torque than its controller asked for, for a good part of the time."""


def warn_of_large_steps(loop: ClosedLoop) -> None:
    """Say which joint's friction or elasticity an explicit step is too large for."""
    if loop.integrator in ADAPTIVE:
        return
    fastest, cause = loop.rates
    k, h = int(fastest.argmax()), loop.dt / loop.substeps
    if h * fastest[k] > STABLE[loop.integrator]:
        enough = 0.5 * STABLE[loop.integrator] / fastest[k]
        warnings.warn(
            f"a step of {1e3 * h:.3g} ms is too large for the {cause} of {loop.robot.dof_names[k]}, which acts within "
            f"{1e3 / fastest[k]:.3g} ms; take step={enough:.2g} or an implicit integrator",
            StepWarning,
            stacklevel=3,
        )


def _turns(x: NDArray[np.float64]) -> int:
    """How often a signal changes its sign."""
    sign = np.sign(x[x != 0])
    return int(np.count_nonzero(sign[1:] != sign[:-1]))


def warn_of_saturation(loop: ClosedLoop, saturated: NDArray[np.int64], tau: NDArray[np.float64]) -> None:
    """Say which joint sat at its torque limit, and whether it was thrown from one limit to the other."""
    k = int(saturated.argmax())
    share = saturated[k] / loop.ticks
    if share <= SATURATED_TOO_OFTEN:
        return
    # A weak joint goes to a limit when the way asks for it; an unstable loop far more often than the way turns.
    jumps = _turns(tau[np.abs(tau[:, k]) >= loop.controller.limits(loop.robot)[k], k])
    thrown = jumps > 4 + 2 * _turns(loop.reference[1][:, k])
    why = (
        "it is thrown from one limit to the other, so the loop is unstable: take softer gains (a lower bandwidth), a "
        "higher control rate or less delay"
        if thrown
        else "it is too weak for what is asked: take a slower trajectory, softer gains or a larger limit"
    )
    warnings.warn(
        f"{loop.robot.dof_names[k]} had the torque at its limit of {loop.controller.limits(loop.robot)[k]:g} for "
        f"{100 * share:.0f} % of the time; {why}",
        SaturationWarning,
        stacklevel=3,
    )
