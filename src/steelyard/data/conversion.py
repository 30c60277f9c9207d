"""From the numbers of a file to SI on the joint's side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..physics.transmission import joint_positions, joint_torques, joint_velocities
from ..robot.sidecar import Gear
from . import units
from .blocks import Array
from .mapping import Signal

_THROUGH: dict[str, Callable[[Gear, Array], Array]] = {
    "q": joint_positions,
    "qd": joint_velocities,
    "qdd": joint_velocities,
    "tau": joint_torques,
}


@dataclass(frozen=True, eq=False)
class Conversion:
    """x = scale · number + offset, then through the gear where there is one."""

    quantity: str
    scale: Array  # (n,)
    offset: Array  # (n,)
    gear: Gear | None = None
    geared: NDArray | None = None  # where the gear's joints stand among the columns

    @cached_property
    def _as_written(self) -> bool:
        return self.gear is None and bool((self.scale == 1.0).all() and (self.offset == 0.0).all())

    def __call__(self, numbers: Array) -> Array:
        x = numbers if self._as_written else numbers * self.scale + self.offset
        if self.gear is not None:
            x[:, self.geared] = _THROUGH[self.quantity](self.gear, x[:, self.geared])
        return x


def _each(values: Sequence[float] | None, n: int, default: float, what: str) -> Array:
    """One number for all joints, or a number a joint."""
    if values is None:
        return np.full(n, default)
    if len(values) not in (1, n):
        raise DataError(f"mapping: {what} has {len(values)} values for {n} joints; give one for all, or one a joint")
    return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (n,)))


def conversion_for(
    quantity: str, signal: Signal | None, scale: Sequence[float], joints: Sequence[str], gear: Gear | None
) -> Conversion:
    """What a mapping says of one quantity, else the units in the names of its columns."""
    n = len(scale)
    if signal is None:
        return Conversion(quantity, np.array(scale), np.zeros(n))
    if signal.unit is not None:
        scale = [units.factor(quantity, unit) or 1.0 for unit in signal.unit]
    total = _each(scale, n, 1.0, f"{quantity}.unit")
    total = total * _each(signal.sign, n, 1.0, f"{quantity}.sign") * _each(signal.gain, n, 1.0, f"{quantity}.gain")
    offset = _each(signal.offset, n, 0.0, f"{quantity}.offset")
    if signal.side == "joint":
        return Conversion(quantity, total, offset)
    if gear is None:
        raise DataError(
            f"mapping: {quantity} is on the motor side, and neither the mapping nor the robot's sidecar has a gear; "
            "add gear: {joints: […], ratio: […]}"
        )
    if set(gear.joints) != set(joints):
        odd = sorted(set(gear.joints) ^ set(joints))
        raise DataError(
            f"mapping: {quantity} is on the motor side, and the gear's joints ({', '.join(gear.joints[:20])}) are not "
            f"those of the recording ({', '.join(joints[:20])}); '{odd[0]}' is in one list only"
        )
    return Conversion(quantity, total, offset, gear, np.array([joints.index(name) for name in gear.joints]))
