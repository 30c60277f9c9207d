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
    scratch,
)
from .vector import add, cross, dot, scale, sub, turn_back

_ZERO = (0.0, 0.0, 0.0)
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = (np.uint64(k * LANES) for k in range(1, 10))


@kernel
def _body_row(x, y, own, dof, rotary, out, count):
    """Ten entries of a row: jᵥᵀ f + j_ωᵀ n for each unit parameter, everything in the body's own axes.

    mass: jᵥ·b;  first moments: Kᵀ jᵥ + b×j_ω with K = [α]ₓ + [ω]ₓ²;  inertia: I α + ω×(I ω) term by term.
    """
    for s in range(count):
        R = get_rotation(x, own + ROTATION, s)
        b = turn_back(R, get(x, own + ACCELERATION, s))
        w = turn_back(R, get(x, own + OMEGA, s))
        al = turn_back(R, get(x, own + ALPHA, s))
        axis = get(y, dof + AXIS, s)
        if rotary == 1:
            jw = turn_back(R, axis)
            jv = turn_back(R, cross(axis, sub(get(x, own + ORIGIN, s), get(y, dof + ANCHOR, s))))
        else:
            jw = _ZERO
            jv = turn_back(R, axis)
        h = add(add(cross(jv, al), scale(w, dot(w, jv))), sub(cross(b, jw), scale(jv, dot(w, w))))
        xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
        xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
        u0, u1, u2 = jw
        out[s] = dot(jv, b)
        out[_C1 + s] = h[0]
        out[_C2 + s] = h[1]
        out[_C3 + s] = h[2]
        out[_C4 + s] = u0 * al[0] + u1 * xz - u2 * xy
        out[_C5 + s] = u0 * (al[1] - xz) + u1 * (al[0] + yz) + u2 * (xx - yy)
        out[_C6 + s] = u0 * (al[2] + xy) + u1 * (zz - xx) + u2 * (al[0] - yz)
        out[_C7 + s] = -u0 * yz + u1 * al[1] + u2 * xy
        out[_C8 + s] = u0 * (yy - zz) + u1 * (al[2] - xy) + u2 * (al[1] + xz)
        out[_C9 + s] = u0 * yz - u1 * xz + u2 * al[2]


@kernel
def fill(links, dofs, columns, properties, first, gravity, q, qd, qdd, t, count, x, y, p, entries, tile):
    """The regressor of samples t … t + count, into a tile that is small enough for the cache."""
    place(links, q, t, count, x, y, p)
    load_rates(dofs, qd, RATE, t, count, y)
    load_rates(dofs, qdd, RATE_RATE, t, count, y)
    accelerations(links, gravity, x, y, p, count)
    size = dofs.shape[0]
    for i in range(1, links.shape[0]):
        col = columns[i]
        if col < 0:
            continue
        k = links[i].last_dof
        while k >= 0:
            if dofs[k].rotary == 1:
                _body_row(x, y, of_link(i), of_dof(k), 1, entries, count)
            else:
                _body_row(x, y, of_link(i), of_dof(k), 0, entries, count)
            for s in range(count):
                for j in range(10):
                    tile[s, k, col + j] = entries[j * LANES + s]
            k = dofs[k].parent
    for j in range(properties.shape[0]):
        column = first + j * size
        for s in range(count):
            joint_basis(properties[j], qd, qdd, t + np.int64(s), tile, np.int64(s), column)


@kernel
def regressor(links, dofs, columns, properties, first, gravity, q, qd, qdd, Y):
    """Y of shape (samples, degrees of freedom, parameters)."""
    x, y, p = scratch(links, dofs)
    entries = np.empty(10 * LANES)
    # Writing Y in one sweep is limited by memory alone; scattering into it a few entries at a time is not. Entries
    # that the structure makes zero stay zero in the tile.
    tile = np.zeros((LANES, Y.shape[1], Y.shape[2]))
    width = Y.shape[1] * Y.shape[2]
    source, target = tile.reshape(-1), Y.reshape(-1)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        fill(links, dofs, columns, properties, first, gravity, q, qd, qdd, t, count, x, y, p, entries, tile)
        start = np.uint64(t * width)
        for j in range(count * np.uint64(width)):
            target[start + j] = source[j]
