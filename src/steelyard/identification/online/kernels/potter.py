"""Recursive least squares on a square root of the covariance, row by row.

With P = S Sᵀ, a = Sᵀφ and s = φᵀPφ = |a|², a row of unit noise makes

    θ ← θ + S a e/(1 + s),    S ← S − (1 − 1/√D)/s · (S a) aᵀ,    D = 1 + s without forgetting:

Potter's form (Bierman, Factorization Methods for Discrete Sequential Estimation, 1977, II.8). P is S Sᵀ whatever the
rounding, so that it never stops being symmetric and positive.
"""

import math

import numpy as np

from ....compiled import kernel

KEEP, FORGET_ALL, FORGET_SEEN = range(3)


@kernel
def _dot(x, y):
    """Four sums side by side, because one sum waits for itself at every addition."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = x.size
    k = 0
    while k + 4 <= n:
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
        k += 4
    while k < n:
        a += x[k] * y[k]
        k += 1
    return (a + b) + (c + d)


@kernel
def _remembered(s, prior, forgetting, room, spread):
    """D of a row whose own direction alone forgets; it is at most 1 + s, which is no forgetting.

    λ(1 + s) forgets the share 1 − λ of what is known along the row (Kulhavý, "Restricted exponential forgetting in
    real-time identification", Automatica 23, 1987). Two bounds keep P from growing where nothing is learned: along
    the row it never exceeds the prior, and its trace never exceeds the prior's.
    """
    D = max(forgetting * (1.0 + s), s / prior)
    if D < 1.0:
        D = max(D, 1.0 / (1.0 + max(room, 0.0) * s / spread))
    return min(D, 1.0 + s)


@kernel
def absorb(estimate, root, scale, squares, weights, rows, values, deviations, forgetting, memory):
    """Take in samples of rows (samples, outputs, parameters), in place; a row whose value is NaN is passed over.

    The root stands in units of the prior's deviations `scale`. `squares` and `weights` gather what the noise is.
    """
    p = estimate.size
    phi, a, g = np.empty(p), np.empty(p), np.empty(p)
    for t in range(rows.shape[0]):
        if memory == FORGET_ALL:
            grow = 1.0 / math.sqrt(forgetting)
            for k in range(p):
                for j in range(p):
                    root[k, j] *= grow
        trace = 0.0
        if memory == FORGET_SEEN:
            for k in range(p):
                trace += _dot(root[k], root[k])
        for i in range(rows.shape[1]):
            if values[t, i] - values[t, i] != 0.0:
                continue
            inverse = 1.0 / deviations[i]
            error, prior = values[t, i], 0.0
            a[:] = 0.0
            for k in range(p):
                error -= rows[t, i, k] * estimate[k]
                phi[k] = rows[t, i, k] * scale[k] * inverse
                if phi[k] != 0.0:
                    prior += phi[k] * phi[k]
                    for j in range(p):
                        a[j] += phi[k] * root[k, j]
            s = _dot(a, a)
            if not s > 0.0:
                continue
            spread = 0.0
            for k in range(p):
                g[k] = _dot(root[k], a)
                spread += g[k] * g[k]
            D = 1.0 + s
            if memory == FORGET_SEEN:
                D = _remembered(s, prior, forgetting, p - trace, spread)
                trace += spread * (1.0 / D - 1.0) / s
            gain = error * inverse / (1.0 + s)
            shrink = (1.0 - 1.0 / math.sqrt(D)) / s
            for k in range(p):
                estimate[k] += scale[k] * g[k] * gain
                step = shrink * g[k]
                for j in range(p):
                    root[k, j] -= step * a[j]
            squares[i] = forgetting * squares[i] + error * error / (1.0 + s)
            weights[i] = forgetting * weights[i] + 1.0
