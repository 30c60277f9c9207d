"""The bilinear regressor: M(q) a + C(q, q̇) v + g(q) + joint terms at v and a = Y(q, q̇, v, a) theta.

C is the matrix of `coriolis_matrix`, with Ṁ = C + Cᵀ. A body that turns with ω, while v would turn it with ω_v, needs

    f = m b + α×h + ½ (ω×(ω_v×h) + ω_v×(ω×h)),    n = h×b + I α + ½ (ω×(I ω_v) + ω_v×(I ω)),
    α = ω̇_v − ½ ω×ω_v,

where b is the rate of the velocity that v gives to its origin, less gravity, and ω̇_v that of ω_v, with the body moving
as it does: Echeandia and Wensing's ½ [(V×*) I + (I V)×̄* − I (V×)] written out about the body's origin. With v = q̇ and
a = q̈ it is the regressor.
"""

import numpy as np

from ...compiled import kernel
from ...robot.tree import BALL, FREE, HINGE, SLIDE
from .joints import joint_basis
from .kinematics import load_rates, place, velocities
from .lanes import (
    ACCELERATION,
    ALPHA,
    ANCHOR,
    AXIS,
    FORCE,
    LANES,
    OMEGA,
    ORIGIN,
    RATE,
    RATE_RATE,
    ROTATION,
    SINE,
    get,
    get_rotation,
    lanes_from,
    of_dof,
    of_link,
    put,
    scratch,
)
from .vector import add, cross, dot, scale, sub, turn_back, vector

_ZERO = (0.0, 0.0, 0.0)
# Rows that the regressor has no other use for: ω_v of a link, v of a degree of freedom.
_OMEGA_V, _RATE_V = FORCE, SINE


@kernel
def _turned(y, L, at, s):
    """Σ axis·rate over the turning velocities of a link's joint."""
    if L.kind == HINGE:
        return scale(get(y, of_dof(L.dof) + AXIS, s), y[of_dof(L.dof) + at + s])
    total = _ZERO
    if L.kind == BALL or L.kind == FREE:
        first = L.dof if L.kind == BALL else L.dof + 3
        for k in range(first, first + 3):
            total = add(total, scale(get(y, of_dof(k) + AXIS, s), y[of_dof(k) + at + s]))
    return total


@kernel
def _reference_motion(links, gravity, x, y, count):
    """ω_v of every link, its rate, and the rate of its origin's velocity, less gravity; velocities are there."""
    g = vector(gravity)
    for s in range(count):
        put(x, _OMEGA_V, s, _ZERO)
        put(x, ALPHA, s, _ZERO)
        put(x, ACCELERATION, s, sub(_ZERO, g))
    for i in range(1, links.shape[0]):
        L = links[i]
        own, parent, dof = of_link(i), of_link(L.parent), of_dof(L.dof)
        for s in range(count):
            w, wp = get(x, own + OMEGA, s), get(x, parent + OMEGA, s)
            wvp, alp, bp = get(x, parent + _OMEGA_V, s), get(x, parent + ALPHA, s), get(x, parent + ACCELERATION, s)
            u = _turned(y, L, _RATE_V, s)
            wv = add(wvp, u)
            al = add(add(alp, _turned(y, L, RATE_RATE, s)), cross(w, u))
            o, op = get(x, own + ORIGIN, s), get(x, parent + ORIGIN, s)
            if L.kind == FREE:
                b = sub((y[dof + RATE_RATE + s], y[of_dof(L.dof + 1) + RATE_RATE + s],
                         y[of_dof(L.dof + 2) + RATE_RATE + s]), g)  # fmt: skip
            elif L.kind == HINGE or L.kind == BALL:
                c = get(y, dof + ANCHOR, s)
                r, rc = sub(c, op), sub(o, c)
                b = add(add(bp, cross(alp, r)), cross(wvp, cross(wp, r)))
                b = add(add(b, cross(al, rc)), cross(wv, cross(w, rc)))
            else:
                r = sub(o, op)
                b = add(add(bp, cross(alp, r)), cross(wvp, cross(wp, r)))
                if L.kind == SLIDE:
                    axis = get(y, dof + AXIS, s)
                    b = add(b, scale(cross(wvp, axis), y[dof + RATE + s]))
                    b = add(b, scale(cross(wp, axis), y[dof + _RATE_V + s]))
                    b = add(b, scale(axis, y[dof + RATE_RATE + s]))
            put(x, own + _OMEGA_V, s, wv)
            put(x, own + ALPHA, s, al)
            put(x, own + ACCELERATION, s, b)


@kernel
def _row(x, y, own, dof, rotary, s, out):
    """Ten entries: jᵥᵀ f + j_ωᵀ n for each unit parameter, everything in the body's own axes."""
    R = get_rotation(x, own + ROTATION, s)
    w, v = turn_back(R, get(x, own + OMEGA, s)), turn_back(R, get(x, own + _OMEGA_V, s))
    b = turn_back(R, get(x, own + ACCELERATION, s))
    al = sub(turn_back(R, get(x, own + ALPHA, s)), scale(cross(w, v), 0.5))
    axis = get(y, dof + AXIS, s)
    jv, jw = turn_back(R, axis), _ZERO
    if rotary == 1:
        jw = jv
        jv = turn_back(R, cross(axis, sub(get(x, own + ORIGIN, s), get(y, dof + ANCHOR, s))))
    xx, yy, zz = w[0] * v[0], w[1] * v[1], w[2] * v[2]
    xy, xz = 0.5 * (w[0] * v[1] + w[1] * v[0]), 0.5 * (w[0] * v[2] + w[2] * v[0])
    yz = 0.5 * (w[1] * v[2] + w[2] * v[1])
    # α×h and the centripetal terms as what h is multiplied with.
    h = add(cross(jv, al), scale(add(scale(w, dot(v, jv)), scale(v, dot(w, jv))), 0.5))
    h = add(sub(h, scale(jv, xx + yy + zz)), cross(b, jw))
    out[0] = dot(jv, b)
    out[1], out[2], out[3] = h
    out[4] = jw[0] * al[0] + jw[1] * xz - jw[2] * xy
    out[5] = jw[0] * (al[1] - xz) + jw[1] * (al[0] + yz) + jw[2] * (xx - yy)
    out[6] = jw[0] * (al[2] + xy) + jw[1] * (zz - xx) + jw[2] * (al[0] - yz)
    out[7] = jw[1] * al[1] + jw[2] * xy - jw[0] * yz
    out[8] = jw[0] * (yy - zz) + jw[1] * (al[2] - xy) + jw[2] * (al[1] + xz)
    out[9] = jw[0] * yz - jw[1] * xz + jw[2] * al[2]


@kernel
def reference_regressor(links, dofs, columns, properties, first, gravity, q, qd, v, a, Y):
    """Y(q, q̇, v, a) of shape (samples, degrees of freedom, parameters), zero where it is not filled."""
    x, y, p = scratch(links, dofs)
    entries = np.empty(10)
    size = dofs.shape[0]
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        load_rates(dofs, v, _RATE_V, t, count, y)
        load_rates(dofs, a, RATE_RATE, t, count, y)
        velocities(links, x, y, count)
        _reference_motion(links, gravity, x, y, count)
        for i in range(1, links.shape[0]):
            if columns[i] < 0:
                continue
            k = links[i].last_dof
            while k >= 0:
                for s in range(count):
                    _row(x, y, of_link(i), of_dof(k), dofs[k].rotary, s, entries)
                    for j in range(10):
                        Y[t + np.int64(s), k, columns[i] + j] = entries[j]
                k = dofs[k].parent
        for j in range(properties.shape[0]):
            for s in range(count):
                joint_basis(properties[j], v, a, t + np.int64(s), Y, first + j * size)
