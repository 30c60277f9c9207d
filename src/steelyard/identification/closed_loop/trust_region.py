"""A linear least-squares step inside a box: a trust region and bounds at once.

min ‖R d − c‖   subject to   lower ≤ d ≤ upper
"""

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Directions fainter than this share of the brightest are left where they are.
_BLIND = 1e-9


def box_step(R: Array, c: Array, size: Array, lower: Array, upper: Array) -> Array:
    """The step; what R does not see is not moved. `size` is what counts as large in each number."""
    U, s, Vt = np.linalg.svd(R * size, full_matrices=False)
    seen = s > _BLIND * s.max(initial=0.0)
    z = Vt[seen].T @ ((U[:, seen].T @ c) / s[seen])
    d = size * z
    if (d >= lower).all() and (d <= upper).all():
        return np.asarray(d)
    # Faint directions weigh a little, so that the box does not throw them about.
    floor = np.sqrt(_BLIND) * float(s.max(initial=1.0))
    A = np.vstack([R * size, floor * np.eye(len(size))])
    b = np.concatenate([c, np.zeros(len(size))])
    low, high = lower / size, upper / size
    narrow = high - low < 1e-14
    low, high = np.where(narrow, low - 1e-14, low), np.where(narrow, high + 1e-14, high)
    found = scipy.optimize.lsq_linear(A, b, bounds=(low, high), method="bvls")
    return np.clip(size * found.x, lower, upper)
