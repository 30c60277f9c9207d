"""A look at the numbers before they are used."""

import math

from ...compiled import kernel


@kernel
def first_not_finite(x):
    """Row of the first value that is NaN or infinite, or -1."""
    for t in range(x.shape[0]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[t, k] - x[t, k]
        if not math.isfinite(total) or total != 0.0:
            return t
    return -1
