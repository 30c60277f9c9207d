"""What a column of times counts, where its name does not say."""

import numpy as np

from ..errors import DataError
from .blocks import Array

# Since 1970: no other unit makes a date of this century of such numbers.
_SINCE_1970 = ((1e11, "ms", 1e-3), (1e14, "us", 1e-6), (1e17, "ns", 1e-9))
# Seconds from row to row that no recording of a moving robot has; in fewer rows than these anything may stand.
_STEPS = (1e-6, 0.5)
_ROWS = 100


def seconds_of(t: Array) -> tuple[float, str | None]:
    """The factor to seconds of times whose unit nothing states, and what is to be said of it."""
    first = float(t[0])
    for limit, unit, scale in reversed(_SINCE_1970):
        if np.isfinite(first) and limit <= first < 1e3 * limit:
            return scale, f"time is read as {unit} since 1970"
    step = float(np.median(np.diff(t))) if len(t) >= _ROWS else _STEPS[1] / 2
    if _STEPS[0] <= step < _STEPS[1] or not step > 0:
        return 1.0, None
    rate = f"time goes on by {step:.6g} a row, which in seconds would be {1 / step:.3g} rows a second"
    if step < _STEPS[0]:
        raise DataError(
            f"{rate}; write it in seconds, or say what it counts in a mapping, time: {{column: …, unit: …}}"
        )
    unit = "ms" if step < 200 else "us" if step < 2e5 else "ns"
    raise DataError(
        f"{rate}; if it counts {unit}, call it time_{unit} or say so in a mapping, time: {{column: …, unit: {unit}}}; "
        "if it counts rows, give rate_hz there; if it is right, unit: s"
    )
