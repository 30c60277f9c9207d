"""What the numbers and the names of a trajectory have to be."""

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError, SteelyardError
from ..robot.robot import frozen

Array = NDArray[np.float64]
SHAPES = ("a number", "a list of numbers", "a table of numbers")


def finite(what: str, value: ArrayLike, ndim: int, error: type[SteelyardError] = OptionError) -> Array:
    """A frozen array of finite numbers with so many dimensions, none of them empty."""
    try:
        x = np.asarray(value)
    except ValueError:
        raise error(f"{what} has rows of different lengths; {SHAPES[ndim]} is needed") from None
    if x.dtype.kind not in "fiu":
        raise error(f"{what} is {x.dtype.name}, not numbers")
    if x.ndim != ndim or x.size == 0:
        raise error(f"{what} has shape {x.shape}; {SHAPES[ndim]} is needed")
    if not np.isfinite(x).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(x))[0])
        raise error(f"{what}{list(where) or ''} is {x[where]}; it must be finite")
    return frozen(x)


def positive(what: str, value: float) -> float:
    """A finite number above zero."""
    number = float(finite(what, value, 0))
    if number <= 0:
        raise OptionError(f"{what} is {number:g}; it must be above 0")
    return number


def count(what: str, value: int, least: int = 1) -> int:
    """A whole number, not below the least."""
    number = finite(what, value, 0)
    if number != np.floor(number) or number < least:
        raise OptionError(f"{what} is {float(number):g}; a whole number of at least {least} is needed")
    return int(number)


def increasing(what: str, value: ArrayLike, error: type[SteelyardError] = OptionError) -> Array:
    """Two times or more that only go up, counted from the first."""
    t = finite(what, value, 1, error)
    if t.size < 2:
        raise error(f"{what} has 1 entry; a trajectory takes at least 2")
    step = np.diff(t)
    if not step.min() > 0:
        k = int(np.argmin(step > 0))
        raise error(
            f"{what} does not advance at sample {k + 1}: {t[k]:.6g} -> {t[k + 1]:.6g} s; "
            "sort the rows or drop the duplicates"
        )
    t = frozen(t - t[0])
    if not (isfinite(t[-1]) and np.diff(t).min() > 0):
        raise error(f"{what} spans {t[-1]:g} s in steps down to {step.min():g} s, too much for a float")
    return t


def default_names(n: int) -> tuple[str, ...]:
    """j1, j2, …: joints that nobody named."""
    return tuple(f"j{k + 1}" for k in range(n))


def joint_names(names: Sequence[str], n: int) -> tuple[str, ...]:
    """So many different names; j1, j2, … where none is given."""
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names:
        return default_names(n)
    if len(names) != n:
        raise OptionError(f"{len(names)} joint names for {n} joints: {', '.join(map(str, names[:20]))}")
    for name in names:
        # Such a name could not be read back from a file.
        if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
            raise OptionError(f"joint name {name!r:.60}: a printable text without spaces around it is needed")
        if names.count(name) > 1:
            raise OptionError(f"joint name '{name}' stands {names.count(name)} times; joints are told apart by name")
    return names
