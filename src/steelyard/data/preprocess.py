"""`preprocess`: from what a robot's log holds to what identification takes, in steps that are on record."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .decimation import Decimation
from .differentiate import SplineDerivatives, velocity_source
from .filters import Butterworth, motion_bands
from .recording import Recording
from .resample import AlignMotion, Crop, Repair, Resample
from .rows import DropOutliers, DropStandstill
from .steps import Step, even_rate

# A parallel low-pass keeps this many times the band of the positions: products of rates, and corners of friction.
TIMES_THE_MOTION = 10.0
# Kept rows a second, relative to the cut-off: what white noise needs to be about white again afterwards.
ROWS_A_CYCLE = 2.0


def default_steps(recording: Recording, robot: Robot | None = None) -> tuple[Step, ...]:
    """Steps that suit a recording nobody has looked at: mend, even times, low-pass if noise asks for it, derivatives.

    Clean positions are differentiated as they are. Where it is known that torque was held over control ticks (our own
    simulation says so), motion is read half a tick later. Rows in which a joint stands still are left out for it.
    """
    clean = _on_even_times(recording)
    return (
        Repair(),
        Resample(),
        Butterworth(),
        SplineDerivatives(velocity=velocity_source(clean)[0]),
        *_half_a_tick(recording),
        DropOutliers(acceleration=None),
        DropStandstill(),
    )


def _half_a_tick(recording: Recording) -> tuple[Step, ...]:
    """What puts motion in the middle of the time over which torque was held; nothing where that is not known."""
    rate = recording.about.get("control_hz")
    if not isinstance(rate, int | float) or recording.qdd is not None or "preprocessing" in recording.about:
        return ()
    if not 1.0 <= rate <= 1e6 or recording.duration * rate < 3:
        return ()
    return (AlignMotion(0.5 / float(rate)),)


def _on_even_times(recording: Recording) -> Recording:
    return Resample().apply(Repair().apply(recording))


def preprocess(recording: Recording, steps: Sequence[Step] | None = None, robot: Robot | None = None) -> Recording:
    """The recording after these steps (default: `default_steps`), with qd and qdd.

    What was done and found is in `about["preprocessing"]`; rows that are not to be used are marked, a joint, by zeros
    in the channel "use".
    """
    if robot is not None and robot.n != recording.n:
        raise DataError(f"the recording has {recording.n} joints and {robot.name} has {robot.n}; map its columns")
    if len(recording) < 3:
        raise DataError(f"the recording has {len(recording)} rows; at least 3 are needed")
    steps = default_steps(recording, robot) if steps is None else tuple(steps)
    for step in steps:
        if not isinstance(step, Step):
            raise OptionError(f"{step!r} is not a step of preprocessing; give frozen steps such as Butterworth()")
        if not isinstance(step, Repair | Crop):
            _check_finite(recording, f"before {type(step).__name__}")
        recording = step.apply(recording, robot)
    if recording.qd is None or recording.qdd is None:
        raise DataError("the steps leave no qd and qdd; put a differentiator such as SplineDerivatives() among them")
    _check_finite(recording, "after all steps")
    return recording


def _check_finite(recording: Recording, when: str) -> None:
    for name in ("q", "tau", "qd", "qdd"):
        x = getattr(recording, name)
        if x is not None and not np.isfinite(x).all():
            row, joint = np.argwhere(~np.isfinite(x))[0]
            raise DataError(
                f"{name} of {recording.joints[joint]} is {x[row, joint]} in row {row} {when}; put Repair() first"
            )


def automatic_decimation(recording: Recording) -> Decimation | None:
    """A parallel low-pass above the motion and below most of the torque's noise; None where there is nothing to gain.

    The cut-off is ten times the band that has 99.9 % of the positions' power; the step keeps two rows a cycle, so
    that residuals of neighbouring rows are about independent.
    """
    if len(recording) < 64:
        return None
    rate = even_rate(recording, "automatic decimation")
    motion = [band.motion_hz for band in motion_bands(dataclasses.replace(recording, qd=None), rate)[0]]
    if not motion:
        return None
    cutoff = float(f"{TIMES_THE_MOTION * max(motion):.3g}")  # as it is told, before the step follows from it
    factor = int(rate / (ROWS_A_CYCLE * cutoff))
    if factor < 2:
        return None
    method = Decimation(cutoff, factor)
    # A recording so short that the filter would eat it is better used whole.
    return method if 2 * method.half(rate) < 0.2 * len(recording) else None
