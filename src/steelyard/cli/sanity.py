"""Numbers that no robot has, refused before they overflow somewhere inside."""

import math

from ..errors import OptionError

SMALLEST, LARGEST = 1e-30, 1e15


def check_sane(number: float, option: str) -> None:
    """A number of an option; infinite ones are left to the command, which may mean something by them."""
    if math.isfinite(number) and number != 0.0 and not SMALLEST <= abs(number) <= LARGEST:
        raise OptionError(f"{option} is {number:g}; of any robot it is 0, or between {SMALLEST:g} and {LARGEST:g}")
