"""One step of a robot as a filter sees it: by points with parameters of their own, and with its derivatives.

The midpoint rule: a₀ = q̈(q, q̇), then q⁺ = q + h (q̇ + h/2 a₀), q̇⁺ = q̇ + h q̈(q + h/2 q̇, q̇ + h/2 a₀). Coulomb friction
pushes with a sign that is given, the same for all points: a sign of their own would shake every one of them at rest.
"""

import numpy as np

from ....compiled import kernel
from ....dynamics.kernels.forward import cholesky_solve, forward_dynamics
from ....dynamics.kernels.joints import COULOMB
from ....dynamics.kernels.newton_euler import inverse_dynamics
from ....dynamics.kernels.regressor import regressor
from ....dynamics.kernels.spatial import mass_matrix

# Inverse dynamics is smooth and of order one; central differences with this step are good to about 1e-10 of it.
STEP = 6e-6


@kernel
def _driven(joints, tau, sign, smooth, drive):
    """What is left of the torque for the smooth part of the dynamics, whose joints have no dry friction."""
    for k in range(tau.size):
        drive[0, k] = tau[k] - joints[k, COULOMB] * sign[k]
        for j in range(joints.shape[1]):
            smooth[k, j] = joints[k, j]
        smooth[k, COULOMB] = 0.0


@kernel
def advance(links, dofs, bodies, joints, gravity, tau, sign, h, q, qd):
    """Move points (k, n) by a step, in place, each with its own bodies (k, b, 10) and joints (k, n, properties).

    A point whose mass matrix is not positive definite becomes NaN.
    """
    n = q.shape[1]
    drive, smooth, a = np.empty((1, n)), np.empty((n, joints.shape[2])), np.empty((1, n))
    middle, middle_rate = np.empty((1, n)), np.empty((1, n))
    for i in range(q.shape[0]):
        _driven(joints[i], tau, sign, smooth, drive)
        row = slice(i, i + 1)
        if forward_dynamics(links, dofs, bodies[i], smooth, gravity, q[row], qd[row], drive, a) >= 0:
            a[:] = np.nan
        for k in range(n):
            middle[0, k] = q[i, k] + 0.5 * h * qd[i, k]
            middle_rate[0, k] = qd[i, k] + 0.5 * h * a[0, k]
            q[i, k] += h * middle_rate[0, k]
        if forward_dynamics(links, dofs, bodies[i], smooth, gravity, middle, middle_rate, drive, a) >= 0:
            a[:] = np.nan
        for k in range(n):
            qd[i, k] += h * a[0, k]


@kernel
def slopes(model, layout, bodies, joints, tau, sign, q, qd, qdd, inverse, by_q, by_qd, Y):
    """q̈ (1, n), M⁻¹, ∂q̈/∂q, ∂q̈/∂q̇ and the regressor (1, n, p) at one state; False where M is not positive definite.

    ∂q̈/∂x = −M⁻¹ ∂tau(q, q̇, q̈)/∂x with q̈ held, and ∂q̈/∂θ = −M⁻¹ Y.
    """
    links, dofs, gravity = model
    columns, properties, first, dry = layout
    n = q.shape[1]
    drive, smooth = np.empty((1, n)), np.empty((n, joints.shape[1]))
    _driven(joints, tau, sign, smooth, drive)
    if forward_dynamics(links, dofs, bodies, smooth, gravity, q, qd, drive, qdd) >= 0:
        return False
    M = np.empty((1, n, n))
    mass_matrix(links, dofs, bodies, smooth, q, M)
    factor = np.empty((n, n))
    for k in range(n):
        factor[:] = M[0]
        inverse[k, :] = 0.0
        inverse[k, k] = 1.0
        if not cholesky_solve(factor, inverse[k]):
            return False
    qs, qds, qdds, torque = np.empty((4 * n, n)), np.empty((4 * n, n)), np.empty((4 * n, n)), np.empty((4 * n, n))
    for i in range(4 * n):
        for k in range(n):
            qs[i, k], qds[i, k], qdds[i, k] = q[0, k], qd[0, k], qdd[0, k]
    for k in range(n):
        qs[2 * k, k] += STEP
        qs[2 * k + 1, k] -= STEP
        qds[2 * n + 2 * k, k] += STEP
        qds[2 * n + 2 * k + 1, k] -= STEP
    inverse_dynamics(links, dofs, bodies, smooth, gravity, qs, qds, qdds, torque)
    for k in range(n):
        for i in range(n):
            x, v = 0.0, 0.0
            for j in range(n):
                x -= inverse[i, j] * (torque[2 * k, j] - torque[2 * k + 1, j])
                v -= inverse[i, j] * (torque[2 * n + 2 * k, j] - torque[2 * n + 2 * k + 1, j])
            by_q[i, k] = x / (2.0 * STEP)
            by_qd[i, k] = v / (2.0 * STEP)
    regressor(links, dofs, columns, properties, first, gravity, q, qd, qdd, False, Y)
    if dry >= 0:
        for k in range(n):
            Y[0, k, dry + k] = sign[k]
    return True


@kernel
def midpoint(model, layout, bodies, joints, tau, sign, h, q, qd, start, middle):
    """The midpoint step of one state (1, n), in place, with `slopes` at its start and middle; False where one fails."""
    if not slopes(model, layout, bodies, joints, tau, sign, q, qd, *start):
        return False
    n = q.shape[1]
    qm, qdm = np.empty((1, n)), np.empty((1, n))
    for k in range(n):
        qm[0, k] = q[0, k] + 0.5 * h * qd[0, k]
        qdm[0, k] = qd[0, k] + 0.5 * h * start[0][0, k]
    if not slopes(model, layout, bodies, joints, tau, sign, qm, qdm, *middle):
        return False
    for k in range(n):
        q[0, k] += h * qdm[0, k]
        qd[0, k] += h * middle[0][0, k]
    return True
