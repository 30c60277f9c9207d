"""Scratch in lanes: eight samples side by side, so that one instruction serves several of them.

Every quantity of a link or degree of freedom is a few rows of `LANES` numbers, one number a sample. The loops over
samples stand innermost and take their length at run time: a constant would be unrolled before it is vectorised.
Indices are unsigned, because Numba wraps signed ones and a wrapped index cannot be vectorised.
"""

import math

import numpy as np

from ...compiled import kernel

LANES = 8

# Where in a link's block its rotation, origin, angular velocity, velocity, angular acceleration, acceleration, force
# and moment start.
ROTATION, ORIGIN, OMEGA, VELOCITY, ALPHA, ACCELERATION, FORCE, MOMENT = (
    np.uint64(row * LANES) for row in (0, 9, 12, 15, 18, 21, 24, 27)
)
LINK_BLOCK = 30 * LANES
# The same for a degree of freedom: axis, anchor, their rates, cosine and sine of the angle, velocity, acceleration.
AXIS, ANCHOR, AXIS_RATE, ANCHOR_RATE, COSINE, SINE, RATE, RATE_RATE = (
    np.uint64(row * LANES) for row in (0, 3, 6, 9, 12, 13, 14, 15)
)
DOF_BLOCK = 16 * LANES
_LINK, _DOF = np.uint64(LINK_BLOCK), np.uint64(DOF_BLOCK)

_1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(k * LANES) for k in range(1, 9))


@kernel
def of_link(i):
    """Where the block of link i starts."""
    return np.uint64(i) * _LINK


@kernel
def of_dof(k):
    """Where the block of degree of freedom k starts."""
    return np.uint64(k) * _DOF


@kernel
def get(x, at, s):
    return (x[at + s], x[at + _1 + s], x[at + _2 + s])


@kernel
def put(x, at, s, a):
    x[at + s] = a[0]
    x[at + _1 + s] = a[1]
    x[at + _2 + s] = a[2]


@kernel
def increase(x, at, s, a):
    x[at + s] += a[0]
    x[at + _1 + s] += a[1]
    x[at + _2 + s] += a[2]


@kernel
def get_rotation(x, at, s):
    return (
        x[at + s],
        x[at + _1 + s],
        x[at + _2 + s],
        x[at + _3 + s],
        x[at + _4 + s],
        x[at + _5 + s],
        x[at + _6 + s],
        x[at + _7 + s],
        x[at + _8 + s],
    )


@kernel
def put_rotation(x, at, s, R):
    x[at + s] = R[0]
    x[at + _1 + s] = R[1]
    x[at + _2 + s] = R[2]
    x[at + _3 + s] = R[3]
    x[at + _4 + s] = R[4]
    x[at + _5 + s] = R[5]
    x[at + _6 + s] = R[6]
    x[at + _7 + s] = R[7]
    x[at + _8 + s] = R[8]


# π/2 in three parts of which the first two have 33 bits, so that k·part is exact for |k| < 2²⁰, and the minimax
# polynomials of sine and cosine on |r| ≤ π/4: the constants of FreeBSD's msun (k_sin.c, k_cos.c, e_rem_pio2.c).
_PART1, _PART2, _PART3 = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
_LARGEST_ANGLE = 1e6
_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11


@kernel
def sines(x, at, count):
    """Cosine and sine of the angles that stand in the row at `at`, into that row and the next, without a branch."""
    largest = 0.0
    for s in range(count):
        largest = max(largest, abs(x[at + s]))
    if not largest < _LARGEST_ANGLE:
        for s in range(count):
            angle = x[at + s]
            x[at + s] = math.cos(angle)
            x[at + _1 + s] = math.sin(angle)
        return
    for s in range(count):
        angle = x[at + s]
        k = math.floor(angle * 0.6366197723675814 + 0.5)
        r = ((angle - k * _PART1) - k * _PART2) - k * _PART3
        z = r * r
        sine = r + r * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
        cosine = 1.0 - (0.5 * z - z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6))))))
        quadrant = k - 4.0 * math.floor(k * 0.25)
        odd = quadrant == 1.0 or quadrant == 3.0
        a = sine if odd else cosine
        b = cosine if odd else sine
        x[at + s] = -a if (quadrant == 1.0 or quadrant == 2.0) else a
        x[at + _1 + s] = -b if quadrant >= 2.0 else b


@kernel
def scratch(links, dofs):
    """Empty lanes for all links, for all degrees of freedom, and for one link that is a parent."""
    return np.empty(links.shape[0] * LINK_BLOCK), np.empty(dofs.shape[0] * DOF_BLOCK), np.empty(LINK_BLOCK)


@kernel
def fetch(x, i, first, last, p):
    """Copy rows of link i's block: a loop that reads and writes one array at unknown distances is not vectorised."""
    start = of_link(i)
    for k in range(first, last):
        p[k] = x[start + k]


@kernel
def lanes_from(t, total):
    """How many of the samples from t on fill the lanes."""
    return np.uint64(min(LANES, total - t))
