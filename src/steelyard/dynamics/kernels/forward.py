"""Forward dynamics q̈ = M⁻¹ (tau − C q̇ − g − friction)."""

import math

import numpy as np

from ...compiled import kernel
from .kinematics import load_rates, place
from .lanes import LANES, RATE, RATE_RATE, lanes_from, of_dof, scratch
from .newton_euler import torques
from .spatial import mass


@kernel
def cholesky_solve(A, b):
    """Solve A x = b in place for a small symmetric positive definite A; False where A is not."""
    n = A.shape[0]
    for j in range(n):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > 0.0:
            return False
        inverse = 1.0 / math.sqrt(pivot)
        A[j, j] = inverse
        for i in range(j + 1, n):
            value = A[i, j]
            for k in range(j):
                value -= A[i, k] * A[j, k]
            A[i, j] = value * inverse
    for i in range(n):
        value = b[i]
        for k in range(i):
            value -= A[i, k] * b[k]
        b[i] = value * A[i, i]
    for i in range(n - 1, -1, -1):
        value = b[i]
        for k in range(i + 1, n):
            value -= A[k, i] * b[k]
        b[i] = value * A[i, i]
    return True


@kernel
def forward_dynamics(links, dofs, bodies, joints, gravity, q, qd, tau, qdd):
    """Accelerations sample by sample; the first sample whose mass matrix is not positive definite, or -1."""
    x, y, p = scratch(links, dofs)
    size = dofs.shape[0]
    total, M = np.empty((links.shape[0], 10)), np.empty((size, size))
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        for k in range(size):
            row = of_dof(k) + RATE_RATE
            for s in range(count):
                y[row + s] = 0.0
        torques(links, dofs, bodies, joints, gravity, t, count, x, y, p, qdd)
        for s in range(count):
            mass(links, dofs, bodies, joints, x, y, s, total, M)
            for k in range(size):
                qdd[t + s, k] = tau[t + s, k] - qdd[t + s, k]
            if not cholesky_solve(M, qdd[t + s]):
                return t + np.int64(s)
    return -1
