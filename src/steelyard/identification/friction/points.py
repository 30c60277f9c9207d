"""Points of friction: a velocity and the torque that friction took there."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...robot.robot import frozen

Array = NDArray[np.float64]
# More points than this a direction are averaged into so many slices of velocity first.
MOST_POINTS = 1500
_LARGEST = 1e9  # rad/s or N·m


@dataclass(frozen=True, eq=False)
class FrictionPoints:
    """Points of one joint; `deviation` says how sure torques are relative to each other, where that differs.

    Points not faster than `still` count as standing: friction may then be anything up to its static level.
    """

    joint: str
    velocity: Array
    torque: Array
    deviation: Array | None = None
    still: float = 0.0
    linear: bool = False  # a slide: m/s and N

    def __post_init__(self) -> None:
        velocity, torque = frozen(self.velocity), frozen(self.torque)
        if velocity.ndim != 1 or velocity.shape != torque.shape:
            raise DataError(f"{self.joint}: velocities have shape {velocity.shape}, torques {torque.shape}; one each")
        if not (np.isfinite(velocity).all() and np.isfinite(torque).all()):
            raise DataError(f"{self.joint}: a point of friction is not finite; leave it out")
        for name, values in (("velocity", velocity), ("torque", torque)):
            if np.abs(values).max(initial=0.0) > _LARGEST:
                raise DataError(
                    f"{self.joint}: a {name} is {np.abs(values).max():.3g}; no joint has that: is it a unit?"
                )
        object.__setattr__(self, "velocity", velocity)
        object.__setattr__(self, "torque", torque)
        if self.deviation is not None:
            deviation = frozen(self.deviation)
            if deviation.shape != velocity.shape or not (np.isfinite(deviation) & (deviation > 0)).all():
                raise DataError(f"{self.joint}: deviations must be finite, above zero, and one a point")
            object.__setattr__(self, "deviation", deviation)
        if not (np.isfinite(self.still) and self.still >= 0):
            raise DataError(f"{self.joint}: a joint stands below {self.still}; give a speed of at least 0")

    @property
    def moves(self) -> NDArray[np.bool_]:
        return np.asarray(np.abs(self.velocity) > self.still)

    def picked(self, keep: NDArray[np.bool_]) -> "FrictionPoints":
        """The points where `keep` says so."""
        deviation = None if self.deviation is None else self.deviation[keep]
        return replace(self, velocity=self.velocity[keep], torque=self.torque[keep], deviation=deviation)


def _slices(velocity: Array, torque: Array, count: int) -> tuple[Array, Array, Array]:
    """Means over as many slices of sorted velocities, each with as many points, and what each is worth."""
    order = np.argsort(velocity, kind="stable")
    edges = np.linspace(0, len(order), count + 1).astype(int)
    size = np.diff(edges)
    sums = (np.add.reduceat(x[order], edges[:-1]) / size for x in (velocity, torque))
    mean_velocity, mean_torque = sums
    return mean_velocity, mean_torque, 1.0 / np.sqrt(size)


def thinned(points: FrictionPoints, most: int = MOST_POINTS) -> FrictionPoints:
    """Points averaged where there are more than a fit has use for; each direction by itself, standing ones kept."""
    moves = points.moves
    sides = [moves & (points.velocity > 0), moves & (points.velocity < 0)]
    if points.deviation is not None or max(int(side.sum()) for side in sides) <= most:
        return points
    parts = [(points.velocity[~moves], points.torque[~moves], np.ones(int((~moves).sum())))]
    for side in sides:
        count = int(side.sum())
        if count:
            parts.append(_slices(points.velocity[side], points.torque[side], min(most, count)))
    velocity, torque, deviation = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return replace(points, velocity=velocity, torque=torque, deviation=deviation)
