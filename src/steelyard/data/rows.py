"""Rows that are not to be used: outliers, and joints that stand still."""

from dataclasses import dataclass

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .recording import Recording
from .resample import off_median
from .steps import Array, Step, in_use, with_use

# A spike counts only above this share of the torque's spread: clean torques have corners, too.
LEAST_SPIKE = 0.02
# What so many of the rows do is common.
COMMON = 0.95
# A joint at less than this share of its own brisk speed (95 % of rows are slower) is near standstill.
SLOW = 0.01
# A joint whose brisk speed is less than this (rad/s or m/s) never moves.
NEVER = 1e-4


def _positive(name: str, value: float | None) -> None:
    if value is not None and not (np.isfinite(value) and value > 0):
        raise OptionError(f"{name} is {value}; give a number above 0, or None")


@dataclass(frozen=True)
class DropOutliers(Step):
    """Rows with an acceleration out of reach are not used, nor are spikes of a joint's torque.

    A row is left out whole where max |q̈| >= `acceleration`. A joint's torque is a spike where it is off the median
    of the five rows around it by more than `deviations` robust standard deviations, 1.4826 · MAD, and by three times
    what is common (so that a coarse or restless torque is not mistaken for spikes).
    """

    acceleration: float | None = 10.0
    deviations: float | None = 8.0

    def __post_init__(self) -> None:
        _positive("acceleration", self.acceleration)
        _positive("deviations", self.deviations)

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        use = in_use(recording)
        before = use.copy()
        if self.acceleration is not None:
            if recording.qdd is None:
                raise DataError("outliers by acceleration need qdd; differentiate first, or give acceleration=None")
            use &= (np.abs(recording.qdd).max(axis=1, initial=0.0) < self.acceleration)[:, None]
        if self.deviations is not None and len(recording) >= 8:
            use &= ~spikes(recording.tau, self.deviations)
        dropped = (before & ~use).sum(axis=0)
        return self.noted(with_use(recording, use), rows_dropped=dropped.tolist())


def spikes(tau: Array, deviations: float) -> np.ndarray:
    """Where a torque is off the median of its neighbours, further than its noise."""
    off = np.abs(off_median(tau))
    noise = 1.4826 * np.median(off, axis=0)
    low, high = np.quantile(tau, [0.05, 0.95], axis=0)
    common = np.quantile(off, COMMON, axis=0)
    return np.asarray(off > np.maximum.reduce([deviations * noise, 3.0 * common, LEAST_SPIKE * (high - low)]) + 1e-12)


@dataclass(frozen=True)
class DropStandstill(Step):
    """Rows in which a joint is slower than `speed` are not used for that joint: dry friction there can be anything.

    Without a speed it is a hundredth of the joint's own brisk speed; a joint that never moves keeps all its rows.
    """

    speed: float | None = None

    def __post_init__(self) -> None:
        _positive("speed", self.speed)

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        if recording.qd is None:
            raise DataError("standstill is told by velocities; differentiate first")
        use = in_use(recording)
        before = use.copy()
        limits = standstill_speeds(recording.qd) if self.speed is None else np.full(recording.n, self.speed)
        use &= np.abs(recording.qd) >= limits
        return self.noted(
            with_use(recording, use), found_speed=limits.tolist(), rows_dropped=(before & ~use).sum(axis=0).tolist()
        )


def standstill_speeds(qd: Array) -> Array:
    """The speed below which each joint counts as standing still; 0 for a joint that never moves."""
    if not len(qd):
        return np.zeros(qd.shape[1])
    brisk = np.quantile(np.abs(qd), 0.95, axis=0)
    # A recording that mostly stands still has its brisk speed in the part that moves.
    fast = np.abs(qd).max(axis=0)
    brisk = np.where(brisk > 0.05 * fast, brisk, 0.3 * fast)
    return np.where(brisk > NEVER, SLOW * brisk, 0.0)
