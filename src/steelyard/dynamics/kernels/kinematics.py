"""Where the links are, how they turn and how they accelerate, for as many samples as there are lanes.

`x` holds the links and `y` the degrees of freedom, as laid out in `lanes`; `p` is a copy of the parent's block.
"""

import math

from ...compiled import kernel
from ...robot.tree import BALL, FREE, HINGE, SLIDE
from .lanes import (
    ACCELERATION,
    ALPHA,
    ANCHOR,
    ANCHOR_RATE,
    AXIS,
    AXIS_RATE,
    COSINE,
    FORCE,
    OMEGA,
    ORIGIN,
    RATE,
    RATE_RATE,
    ROTATION,
    SINE,
    VELOCITY,
    fetch,
    get,
    get_rotation,
    of_dof,
    of_link,
    put,
    put_rotation,
    sines,
)
from .vector import add, compose, cross, matrix, scale, sub, turn, vector

_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
_ZERO = (0.0, 0.0, 0.0)


@kernel
def _quaternion_rotation(q, t, k):
    """The rotation of a quaternion, normalised as MuJoCo does."""
    norm = math.sqrt(q[t, k] ** 2 + q[t, k + 1] ** 2 + q[t, k + 2] ** 2 + q[t, k + 3] ** 2)
    e0, e1, e2, e3 = q[t, k] / norm, q[t, k + 1] / norm, q[t, k + 2] / norm, q[t, k + 3] / norm
    return (
        1 - 2 * (e2 * e2 + e3 * e3),
        2 * (e1 * e2 - e0 * e3),
        2 * (e1 * e3 + e0 * e2),
        2 * (e1 * e2 + e0 * e3),
        1 - 2 * (e1 * e1 + e3 * e3),
        2 * (e2 * e3 - e0 * e1),
        2 * (e1 * e3 - e0 * e2),
        2 * (e2 * e3 + e0 * e1),
        1 - 2 * (e1 * e1 + e2 * e2),
    )


@kernel
def _place_hinge(x, y, p, own, dof, R0, Rc, Rs, axis, anchor_parent, anchor, count):
    for s in range(count):
        cosine, sine = y[dof + COSINE + s], y[dof + SINE + s]
        turned = (
            R0[0] + cosine * Rc[0] + sine * Rs[0],
            R0[1] + cosine * Rc[1] + sine * Rs[1],
            R0[2] + cosine * Rc[2] + sine * Rs[2],
            R0[3] + cosine * Rc[3] + sine * Rs[3],
            R0[4] + cosine * Rc[4] + sine * Rs[4],
            R0[5] + cosine * Rc[5] + sine * Rs[5],
            R0[6] + cosine * Rc[6] + sine * Rs[6],
            R0[7] + cosine * Rc[7] + sine * Rs[7],
            R0[8] + cosine * Rc[8] + sine * Rs[8],
        )
        RP = get_rotation(p, ROTATION, s)
        R = compose(RP, turned)
        c = add(get(p, ORIGIN, s), turn(RP, anchor_parent))
        put_rotation(x, own + ROTATION, s, R)
        put(x, own + ORIGIN, s, sub(c, turn(R, anchor)))
        put(y, dof + AXIS, s, turn(RP, axis))
        put(y, dof + ANCHOR, s, c)


@kernel
def _place_shifted(x, p, own, R0, pos, count):
    for s in range(count):
        RP = get_rotation(p, ROTATION, s)
        put_rotation(x, own + ROTATION, s, compose(RP, R0))
        put(x, own + ORIGIN, s, add(get(p, ORIGIN, s), turn(RP, pos)))


@kernel
def _slide_along(x, y, p, own, dof, axis, count):
    for s in range(count):
        direction = turn(get_rotation(p, ROTATION, s), axis)
        # The row of the cosine holds the distance for a slide.
        origin = add(get(x, own + ORIGIN, s), scale(direction, y[dof + COSINE + s]))
        put(x, own + ORIGIN, s, origin)
        put(y, dof + AXIS, s, direction)
        put(y, dof + ANCHOR, s, origin)


@kernel
def _place_turning(x, y, p, own, L, q, t, count):
    """A ball, or a free joint, whose turning axes are those of the link."""
    first = L.dof if L.kind == BALL else L.dof + 3
    for s in range(count):
        k = L.coordinate if L.kind == BALL else L.coordinate + 3
        RP = get_rotation(p, ROTATION, s)
        R = compose(RP, compose(matrix(L.R0), _quaternion_rotation(q, t + s, k)))
        put_rotation(x, own + ROTATION, s, R)
        if L.kind == BALL:
            anchor = add(get(p, ORIGIN, s), turn(RP, vector(L.anchor_parent)))
            put(x, own + ORIGIN, s, sub(anchor, turn(R, vector(L.anchor))))
        else:
            anchor = (q[t + s, L.coordinate], q[t + s, L.coordinate + 1], q[t + s, L.coordinate + 2])
            put(x, own + ORIGIN, s, anchor)
            for m in range(3):
                along = (1.0 if m == 0 else 0.0, 1.0 if m == 1 else 0.0, 1.0 if m == 2 else 0.0)
                put(y, of_dof(L.dof + m) + AXIS, s, along)
                put(y, of_dof(L.dof + m) + ANCHOR, s, anchor)
        for m in range(3):
            put(y, of_dof(first + m) + AXIS, s, (R[m], R[m + 3], R[m + 6]))
            put(y, of_dof(first + m) + ANCHOR, s, anchor)


@kernel
def place(links, q, t, count, x, y, p):
    """Rotation and origin of every link, axis and anchor of every degree of freedom, for samples t … t + count."""
    for s in range(count):
        put_rotation(x, ROTATION, s, _IDENTITY)
        put(x, ORIGIN, s, _ZERO)
    for i in range(1, links.shape[0]):
        L = links[i]
        own, dof = of_link(i), of_dof(L.dof)
        fetch(x, L.parent, ROTATION, OMEGA, p)
        if L.kind == HINGE or L.kind == SLIDE:
            for s in range(count):
                y[dof + COSINE + s] = q[t + s, L.coordinate] - L.reference
        if L.kind == HINGE:
            sines(y, dof + COSINE, count)
            _place_hinge(
                x,
                y,
                p,
                own,
                dof,
                matrix(L.R0),
                matrix(L.Rc),
                matrix(L.Rs),
                vector(L.axis),
                vector(L.anchor_parent),
                vector(L.anchor),
                count,
            )
        elif L.kind == BALL or L.kind == FREE:
            _place_turning(x, y, p, own, L, q, t, count)
        else:
            _place_shifted(x, p, own, matrix(L.R0), vector(L.pos), count)
            if L.kind == SLIDE:
                _slide_along(x, y, p, own, dof, vector(L.axis), count)


@kernel
def load_rates(dofs, rates, at, t, count, y):
    """Velocities or accelerations of samples t … t + count into their lanes."""
    for k in range(dofs.shape[0]):
        row = of_dof(k) + at
        for s in range(count):
            y[row + s] = rates[t + s, k]


@kernel
def _spin(y, first, at, s):
    """Σ axis·rate over the three turning velocities of a ball or free joint."""
    d0, d1, d2 = of_dof(first), of_dof(first + 1), of_dof(first + 2)
    total = add(scale(get(y, d0 + AXIS, s), y[d0 + at + s]), scale(get(y, d1 + AXIS, s), y[d1 + at + s]))
    return add(total, scale(get(y, d2 + AXIS, s), y[d2 + at + s]))


@kernel
def _carried(w, al, a, r):
    """Acceleration of a point at r from a point with acceleration a on a body: a + α×r + ω×(ω×r)."""
    return add(add(a, cross(al, r)), cross(w, cross(w, r)))


@kernel
def _accelerate_turned(x, y, p, own, dof, kind, first, count):
    """Hinge: ω = ω_P + z q̇, α = α_P + z q̈ + ω_P × z q̇, the acceleration carried from parent to anchor to origin."""
    for s in range(count):
        if kind == HINGE:
            axis = get(y, dof + AXIS, s)
            u, turning = scale(axis, y[dof + RATE + s]), scale(axis, y[dof + RATE_RATE + s])
        else:
            u, turning = _spin(y, first, RATE, s), _spin(y, first, RATE_RATE, s)
        wp, alp = get(p, OMEGA, s), get(p, ALPHA, s)
        w, al = add(wp, u), add(add(alp, turning), cross(wp, u))
        c = get(y, dof + ANCHOR, s)
        at_anchor = _carried(wp, alp, get(p, ACCELERATION, s), sub(c, get(p, ORIGIN, s)))
        put(x, own + OMEGA, s, w)
        put(x, own + ALPHA, s, al)
        put(x, own + ACCELERATION, s, _carried(w, al, at_anchor, sub(get(x, own + ORIGIN, s), c)))


@kernel
def _accelerate_carried(x, p, own, count):
    for s in range(count):
        w, al = get(p, OMEGA, s), get(p, ALPHA, s)
        r = sub(get(x, own + ORIGIN, s), get(p, ORIGIN, s))
        put(x, own + OMEGA, s, w)
        put(x, own + ALPHA, s, al)
        put(x, own + ACCELERATION, s, _carried(w, al, get(p, ACCELERATION, s), r))


@kernel
def _accelerate_along(x, y, own, dof, count):
    """Slide: 2 ω × z q̇ + z q̈ on top of what is carried."""
    for s in range(count):
        axis = get(y, dof + AXIS, s)
        w = scale(get(x, own + OMEGA, s), 2.0 * y[dof + RATE + s])
        more = add(cross(w, axis), scale(axis, y[dof + RATE_RATE + s]))
        put(x, own + ACCELERATION, s, add(get(x, own + ACCELERATION, s), more))


@kernel
def _accelerate_free(x, y, own, dof, first, gravity, count):
    for s in range(count):
        put(x, own + OMEGA, s, _spin(y, first + 3, RATE, s))
        put(x, own + ALPHA, s, _spin(y, first + 3, RATE_RATE, s))
        at = RATE_RATE + s
        along = (y[dof + at], y[of_dof(first + 1) + at], y[of_dof(first + 2) + at])
        put(x, own + ACCELERATION, s, sub(along, gravity))


@kernel
def accelerations(links, gravity, x, y, p, count):
    """Angular velocity and acceleration of every link, and the acceleration of its origin less gravity."""
    g = vector(gravity)
    for s in range(count):
        put(x, OMEGA, s, _ZERO)
        put(x, ALPHA, s, _ZERO)
        put(x, ACCELERATION, s, sub(_ZERO, g))
    for i in range(1, links.shape[0]):
        kind, first = links[i].kind, links[i].dof
        own, dof = of_link(i), of_dof(links[i].dof)
        fetch(x, links[i].parent, ORIGIN, FORCE, p)
        if kind == HINGE:
            _accelerate_turned(x, y, p, own, dof, HINGE, first, count)
        elif kind == BALL:
            _accelerate_turned(x, y, p, own, dof, BALL, first, count)
        elif kind == FREE:
            _accelerate_free(x, y, own, dof, first, g, count)
        else:
            _accelerate_carried(x, p, own, count)
            if kind == SLIDE:
                _accelerate_along(x, y, own, dof, count)


@kernel
def velocities(links, x, y, count):
    """Angular velocity of every link and velocity of its origin."""
    for s in range(count):
        put(x, OMEGA, s, _ZERO)
        put(x, VELOCITY, s, _ZERO)
        for i in range(1, links.shape[0]):
            kind, first = links[i].kind, links[i].dof
            own, parent, dof = of_link(i), of_link(links[i].parent), of_dof(links[i].dof)
            if kind == FREE:
                along = (y[dof + RATE + s], y[of_dof(first + 1) + RATE + s], y[of_dof(first + 2) + RATE + s])
                put(x, own + OMEGA, s, _spin(y, first + 3, RATE, s))
                put(x, own + VELOCITY, s, along)
                continue
            wp, vp = get(x, parent + OMEGA, s), get(x, parent + VELOCITY, s)
            o, op = get(x, own + ORIGIN, s), get(x, parent + ORIGIN, s)
            if kind == HINGE or kind == BALL:
                c = get(y, dof + ANCHOR, s)
                u = scale(get(y, dof + AXIS, s), y[dof + RATE + s]) if kind == HINGE else _spin(y, first, RATE, s)
                w = add(wp, u)
                v = add(add(vp, cross(wp, sub(c, op))), cross(w, sub(o, c)))
            else:
                w = wp
                v = add(vp, cross(wp, sub(o, op)))
                if kind == SLIDE:
                    v = add(v, scale(get(y, dof + AXIS, s), y[dof + RATE + s]))
            put(x, own + OMEGA, s, w)
            put(x, own + VELOCITY, s, v)


@kernel
def dof_rates(links, dofs, x, y, count):
    """Time derivatives of the axis and the anchor of every degree of freedom."""
    for k in range(dofs.shape[0]):
        dof, own = of_dof(k), of_link(dofs[k].link)
        # A hinge's or slide's axis is fixed in its parent, a ball's axes in the link itself; a free joint moves
        # along world axes.
        still = links[dofs[k].link].kind == FREE and dofs[k].rotary == 0
        for s in range(count):
            w = get(x, own + OMEGA, s)
            swept = cross(w, sub(get(y, dof + ANCHOR, s), get(x, own + ORIGIN, s)))
            put(y, dof + AXIS_RATE, s, _ZERO if still else cross(w, get(y, dof + AXIS, s)))
            put(y, dof + ANCHOR_RATE, s, add(get(x, own + VELOCITY, s), swept))


@kernel
def jacobian(dofs, last_dof, point, y, s, J):
    """Columns that turn joint velocities into the velocity of a point on a link and the link's angular velocity."""
    J[:, :] = 0.0
    k = last_dof
    while k >= 0:
        axis = get(y, of_dof(k) + AXIS, s)
        if dofs[k].rotary == 1:
            J[3, k], J[4, k], J[5, k] = axis
            J[0, k], J[1, k], J[2, k] = cross(axis, sub(point, get(y, of_dof(k) + ANCHOR, s)))
        else:
            J[0, k], J[1, k], J[2, k] = axis
        k = dofs[k].parent


@kernel
def jacobian_rate(dofs, last_dof, point, point_velocity, y, s, J):
    """d/dt of `jacobian`, exactly."""
    J[:, :] = 0.0
    k = last_dof
    while k >= 0:
        dof = of_dof(k)
        axis, rate = get(y, dof + AXIS, s), get(y, dof + AXIS_RATE, s)
        if dofs[k].rotary == 1:
            J[3, k], J[4, k], J[5, k] = rate
            lever = cross(rate, sub(point, get(y, dof + ANCHOR, s)))
            sweep = cross(axis, sub(point_velocity, get(y, dof + ANCHOR_RATE, s)))
            J[0, k], J[1, k], J[2, k] = add(lever, sweep)
        else:
            J[0, k], J[1, k], J[2, k] = rate
        k = dofs[k].parent
