"""The regressor Y with tau = Y(q, q̇, q̈) theta, from the local Jacobian of every body."""

import numpy as np

from ...compiled import kernel
from .joints import joint_basis
from .kinematics import accelerations, load_rates, place
from .lanes import (
    ACCELERATION,
    ALPHA,
    ANCHOR,
    AXIS,
    LANES,
    OMEGA,
    ORIGIN,
    RATE,
    RATE_RATE,
    ROTATION,
    get,
    get_rotation,
    lanes_from,
    of_dof,
    of_link,
    put,
    scratch,
)
from .vector import add, cross, dot, scale, sub, turn_back

_ZERO = (0.0, 0.0, 0.0)
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = (np.uint64(k * LANES) for k in range(1, 10))


# Rows of a body's motion in its own axes: acceleration less gravity, angular velocity and acceleration, and the
# entries that turn a moment direction into torque a unit of inertia.
_B, _W, _AL, _INERTIA = (np.uint64(row * LANES) for row in (0, 3, 6, 9))
_LOCAL = 20 * LANES


@kernel
def _local_motion(x, own, local, count):
    """How a body moves in its own axes, and what its inertias make of it: I α + ω×(I ω) for each unit inertia."""
    for s in range(count):
        R = get_rotation(x, own + ROTATION, s)
        w = turn_back(R, get(x, own + OMEGA, s))
        al = turn_back(R, get(x, own + ALPHA, s))
        put(local, _B, s, turn_back(R, get(x, own + ACCELERATION, s)))
        put(local, _W, s, w)
        put(local, _AL, s, al)
        xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
        xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
        at = _INERTIA + s
        local[at] = xz
        local[at + _C1] = xy
        local[at + _C2] = yz
        local[at + _C3] = xx - yy
        local[at + _C4] = zz - xx
        local[at + _C5] = yy - zz
        local[at + _C6] = xx + yy + zz


@kernel
def _body_row(x, y, local, own, dof, rotary, out, count):
    """Ten entries of a row: jᵥᵀ f + j_ωᵀ n for each unit parameter, everything in the body's own axes.

    mass: jᵥ·b;  first moments: Kᵀ jᵥ + b×j_ω with K = [α]ₓ + [ω]ₓ²;  inertia: I α + ω×(I ω) term by term.
    """
    for s in range(count):
        R = get_rotation(x, own + ROTATION, s)
        b, w, al = get(local, _B, s), get(local, _W, s), get(local, _AL, s)
        at = _INERTIA + s
        xz, xy, yz = local[at], local[at + _C1], local[at + _C2]
        axis = get(y, dof + AXIS, s)
        if rotary == 1:
            jw = turn_back(R, axis)
            jv = turn_back(R, cross(axis, sub(get(x, own + ORIGIN, s), get(y, dof + ANCHOR, s))))
        else:
            jw = _ZERO
            jv = turn_back(R, axis)
        h = add(add(cross(jv, al), scale(w, dot(w, jv))), sub(cross(b, jw), scale(jv, local[at + _C6])))
        u0, u1, u2 = jw
        out[s] = dot(jv, b)
        out[_C1 + s] = h[0]
        out[_C2 + s] = h[1]
        out[_C3 + s] = h[2]
        out[_C4 + s] = u0 * al[0] + u1 * xz - u2 * xy
        out[_C5 + s] = u0 * (al[1] - xz) + u1 * (al[0] + yz) + u2 * local[at + _C3]
        out[_C6 + s] = u0 * (al[2] + xy) + u1 * local[at + _C4] + u2 * (al[0] - yz)
        out[_C7 + s] = u1 * al[1] + u2 * xy - u0 * yz
        out[_C8 + s] = u0 * local[at + _C5] + u1 * (al[2] - xy) + u2 * (al[1] + xz)
        out[_C9 + s] = u0 * yz - u1 * xz + u2 * al[2]


@kernel
def fill(links, dofs, columns, properties, first, gravity, q, qd, qdd, t, count, x, y, p, local, entries, Y):
    """The entries of samples t … t + count that the structure does not make zero."""
    place(links, q, t, count, x, y, p)
    load_rates(dofs, qd, RATE, t, count, y)
    load_rates(dofs, qdd, RATE_RATE, t, count, y)
    accelerations(links, gravity, x, y, p, count)
    size = dofs.shape[0]
    for i in range(1, links.shape[0]):
        col = columns[i]
        if col < 0:
            continue
        _local_motion(x, of_link(i), local, count)
        k = links[i].last_dof
        while k >= 0:
            if dofs[k].rotary == 1:
                _body_row(x, y, local, of_link(i), of_dof(k), 1, entries, count)
            else:
                _body_row(x, y, local, of_link(i), of_dof(k), 0, entries, count)
            for s in range(count):
                for j in range(10):
                    Y[t + s, k, col + j] = entries[j * LANES + s]
            k = dofs[k].parent
    for j in range(properties.shape[0]):
        column = first + j * size
        for s in range(count):
            joint_basis(properties[j], qd, qdd, t + np.int64(s), Y, column)


@kernel
def regressor(links, dofs, columns, properties, first, gravity, q, qd, qdd, blank, Y):
    """Y of shape (samples, degrees of freedom, parameters), which may hold anything unless it is said to be blank."""
    x, y, p = scratch(links, dofs)
    local, entries = np.empty(_LOCAL), np.empty(10 * LANES)
    width = np.uint64(Y.shape[1] * Y.shape[2])
    flat = Y.reshape(-1)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        # One sweep brings the lines into the cache; entries scattered into memory that is not there cost far more.
        start = np.uint64(t) * width
        if not blank:
            for j in range(count * width):
                flat[start + j] = 0.0
        fill(links, dofs, columns, properties, first, gravity, q, qd, qdd, t, count, x, y, p, local, entries, Y)
