"""Samples are looked at once, here, before a kernel sees them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from ..robot.robot import Robot
from .kernels.checks import first_not_finite

Array = NDArray[np.float64]


def _wrong_shape(robot: Robot, name: str, x: NDArray, width: int) -> DataError:
    unit = "positions" if width == robot.nq and name == "q" else "degrees of freedom"
    return DataError(
        f"{name} has shape {x.shape}; {robot.name} has {width} {unit}, so give ({width},) or (samples, {width})"
    )


def _numbers(name: str, x: ArrayLike) -> Array:
    """The values as float64 in one block, in an array that may be written to."""
    try:
        given = x if isinstance(x, np.ndarray) else np.asarray(x)
        if isinstance(x, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in x):
            given = np.ma.stack(x)  # which numpy alone would strip of their masks
        if given.dtype.kind == "c":
            raise DataError(f"{name} has complex values; give real ones")
        if given.dtype.kind not in "biufO":
            raise DataError(f"{name} is not an array of numbers but of {given.dtype}")
        if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
            row = int(np.argwhere(np.ma.getmaskarray(given))[0, 0]) if given.ndim == 2 else 0
            raise DataError(f"{name} has a masked value at sample {row}; remove or fill such samples")
        values = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} is not an array of numbers") from None
    # Numba takes an array that is read-only or not aligned for another type and compiles every kernel once more for it
    return values if values.flags.carray else values.copy()


def _matrix(robot: Robot, name: str, x: ArrayLike, width: int) -> Array:
    values = _numbers(name, x)
    if np.ndim(x) == 1:
        values = values[None, :]
    if values.ndim != 2 or values.shape[1] != width or np.ndim(x) == 0:
        raise _wrong_shape(robot, name, np.asarray(x), width)
    bad = first_not_finite(values)
    if bad >= 0:
        column = int(np.flatnonzero(~np.isfinite(values[bad]))[0])
        raise DataError(
            f"{name} is {values[bad, column]} at sample {bad}, column {column}; "
            "remove or repair such samples before computing with them"
        )
    return values


def _check_quaternions(robot: Robot, q: Array) -> None:
    for joint in robot.joints:
        if joint.coordinates.stop - joint.coordinate in (4, 7):
            quaternion = q[:, joint.coordinates.stop - 4 : joint.coordinates.stop]
            norm = np.einsum("tk,tk->t", quaternion, quaternion)
            if norm.min(initial=1.0) < 1e-12:
                raise DataError(
                    f"the quaternion of joint '{joint.name}' is zero at sample {int(norm.argmin())}; "
                    "a rotation needs a quaternion of length one (w, x, y, z)"
                )


def positions(robot: Robot, q: ArrayLike) -> tuple[Array, bool]:
    """Positions as a matrix, and whether they were one sample."""
    values = _matrix(robot, "q", q, robot.nq)
    if robot.nq != robot.n:
        _check_quaternions(robot, values)
    return values, np.ndim(q) == 1


def rates(robot: Robot, name: str, x: ArrayLike, samples: int) -> Array:
    """Velocities, accelerations or torques as a matrix with as many rows as there are positions."""
    values = _matrix(robot, name, x, robot.n)
    if len(values) != samples:
        raise DataError(f"{name} has {len(values)} samples and q has {samples}; give as many of each")
    return values


_FLOAT = np.dtype(np.float64)


def _is_vector(x: object, shape: tuple[int]) -> bool:
    return type(x) is np.ndarray and x.dtype is _FLOAT and x.shape == shape and x.flags.carray


def is_one_sample(robot: Robot, q: object, qd: object, qdd: object) -> bool:
    """Whether these are vectors that a kernel takes as they are: the short way of control loops."""
    shape = (robot.n,)
    # A quaternion (nq > n) is looked at first, on the long way.
    return _is_vector(q, shape) and _is_vector(qd, shape) and _is_vector(qdd, shape) and robot.nq == robot.n
