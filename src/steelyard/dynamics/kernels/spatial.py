"""Mass matrix, Coriolis matrix and energy from composite spatial inertias.

All spatial vectors are taken about one point, the origin of the first link, in world axes; there the velocity that
one degree of freedom gives to every link above it is one and the same six-vector (z, u), with u the velocity at that
point. Armature is part of the mass matrix: a rotor is a flywheel on its joint.
"""

import numpy as np

from ...compiled import kernel
from .joints import ARMATURE
from .kinematics import dof_rates, load_rates, place, velocities
from .lanes import (
    ANCHOR,
    ANCHOR_RATE,
    AXIS,
    AXIS_RATE,
    LANES,
    OMEGA,
    ORIGIN,
    RATE,
    ROTATION,
    VELOCITY,
    get,
    get_rotation,
    lanes_from,
    of_dof,
    of_link,
    put,
    scratch,
)
from .vector import add, cross, dot, scale, sub, symmetric_times, turn, vector


@kernel
def _direction(y, k, rotary, point, s):
    """The six-vector of a degree of freedom: turning z, and the velocity it gives to the common point."""
    axis = get(y, of_dof(k) + AXIS, s)
    if rotary == 1:
        return axis, cross(axis, sub(point, get(y, of_dof(k) + ANCHOR, s)))
    return (0.0, 0.0, 0.0), axis


@kernel
def world_inertia(p, R, r, out):
    """Mass, first moment and inertia of a body in world axes about a point from which its origin is at r."""
    m, h0 = p[0], turn(R, (p[1], p[2], p[3]))
    inertia = (p[4], p[5], p[6], p[7], p[8], p[9])
    rx, ry, rz = (R[0], R[1], R[2]), (R[3], R[4], R[5]), (R[6], R[7], R[8])
    ix, iy, iz = symmetric_times(inertia, rx), symmetric_times(inertia, ry), symmetric_times(inertia, rz)
    trace = 2.0 * dot(h0, r) + m * dot(r, r)
    out[0] = m
    out[1], out[2], out[3] = add(h0, scale(r, m))
    out[4] = dot(rx, ix) + trace - 2.0 * h0[0] * r[0] - m * r[0] * r[0]
    out[5] = dot(rx, iy) - h0[0] * r[1] - h0[1] * r[0] - m * r[0] * r[1]
    out[6] = dot(rx, iz) - h0[0] * r[2] - h0[2] * r[0] - m * r[0] * r[2]
    out[7] = dot(ry, iy) + trace - 2.0 * h0[1] * r[1] - m * r[1] * r[1]
    out[8] = dot(ry, iz) - h0[1] * r[2] - h0[2] * r[1] - m * r[1] * r[2]
    out[9] = dot(rz, iz) + trace - 2.0 * h0[2] * r[2] - m * r[2] * r[2]


@kernel
def momentum(p, w, u):
    """Linear and angular momentum of an inertia that turns with w and moves with u at the common point."""
    h = (p[1], p[2], p[3])
    inertia = (p[4], p[5], p[6], p[7], p[8], p[9])
    return add(scale(u, p[0]), cross(w, h)), add(symmetric_times(inertia, w), cross(h, u))


@kernel
def _composite(links, bodies, x, s, total):
    """The inertia of every link and all that it carries, about the origin of the first link, which is returned."""
    point = get(x, of_link(1) + ORIGIN, s)
    total[:, :] = 0.0
    for i in range(1, links.shape[0]):
        own = of_link(i)
        if links[i].body >= 0:
            r = sub(get(x, own + ORIGIN, s), point)
            world_inertia(bodies[links[i].body], get_rotation(x, own + ROTATION, s), r, total[i])
    for i in range(links.shape[0] - 1, 0, -1):
        P = links[i].parent
        if P > 0:
            for j in range(10):
                total[P, j] += total[i, j]
    return point


@kernel
def mass(links, dofs, bodies, joints, x, y, s, total, M):
    """M_ij = S_iᵀ I_j S_j with I_j the composite inertia of the outer of the two (CRBA)."""
    point = _composite(links, bodies, x, s, total)
    for j in range(dofs.shape[0]):
        # The mass matrix has no use for the rates of the axes; their row takes the velocity at the common point.
        z, u = _direction(y, j, dofs[j].rotary, point, s)
        put(y, of_dof(j) + AXIS_RATE, s, u)
        linear, angular = momentum(total[dofs[j].link], z, u)
        for i in range(j):
            M[i, j] = 0.0
            M[j, i] = 0.0
        i = j
        while i >= 0:
            dof = of_dof(i)
            value = dot(get(y, dof + AXIS_RATE, s), linear)
            if dofs[i].rotary == 1:
                value += dot(get(y, dof + AXIS, s), angular)
            M[i, j] = value
            M[j, i] = value
            i = dofs[i].parent
        M[j, j] += joints[j, ARMATURE]


@kernel
def mass_matrix(links, dofs, bodies, joints, q, M):
    """M(q), armature included, sample by sample."""
    x, y, p = scratch(links, dofs)
    total = np.empty((links.shape[0], 10))
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        for s in range(count):
            mass(links, dofs, bodies, joints, x, y, s, total, M[t + s])


@kernel
def _coriolis_of_body(p, w, u, B):
    """B = ½ [(v×*) I + (I v)×̄* − I (v×)], the part of the Coriolis matrix that one moving body brings.

    Written for a body about the common point: v = (w, u), (l, k) = I v its momentum. Rows and columns: turning, moving.
    Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols, 2021.
    """
    m = p[0]
    h = (p[1], p[2], p[3])
    inertia = (p[4], p[5], p[6], p[7], p[8], p[9])
    linear, angular = momentum(p, w, u)
    for k in range(3):
        e = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
        # Column of a unit turn e: I(e, 0) = (m 0 + e×h, I e).
        l_e = cross(e, h)
        k_e = symmetric_times(inertia, e)
        # v×* (force): moment w×k + u×l, force w×l.
        moment = add(cross(w, k_e), cross(u, l_e))
        force = cross(w, l_e)
        # (I v)×̄*: acting on a motion s gives s×* (I v): moment e×k + 0, force e×l.
        moment = add(moment, cross(e, angular))
        force = add(force, cross(e, linear))
        # I (v × s): v×(e, 0) = (w×e, u×e).
        turned, moved = cross(w, e), cross(u, e)
        moment = sub(moment, add(symmetric_times(inertia, turned), cross(h, moved)))
        force = sub(force, add(scale(moved, m), cross(turned, h)))
        B[0, k], B[1, k], B[2, k] = scale(moment, 0.5)
        B[3, k], B[4, k], B[5, k] = scale(force, 0.5)
        # Column of a unit velocity e: I(0, e) = (m e, h×e).
        l_e = scale(e, m)
        k_e = cross(h, e)
        moment = add(cross(w, k_e), cross(u, l_e))
        force = cross(w, l_e)
        moment = add(moment, cross(e, linear))
        moved = cross(w, e)
        moment = sub(moment, cross(h, moved))
        force = sub(force, scale(moved, m))
        B[0, k + 3], B[1, k + 3], B[2, k + 3] = scale(moment, 0.5)
        B[3, k + 3], B[4, k + 3], B[5, k + 3] = scale(force, 0.5)


@kernel
def _coriolis_force(inertia, B, z, u, turn_rate, move_rate):
    """I Ṡ + B S as force and moment."""
    force, moment = momentum(inertia, turn_rate, move_rate)
    s = (z[0], z[1], z[2], u[0], u[1], u[2])
    m0 = m1 = m2 = f0 = f1 = f2 = 0.0
    for k in range(6):
        m0 += B[0, k] * s[k]
        m1 += B[1, k] * s[k]
        m2 += B[2, k] * s[k]
        f0 += B[3, k] * s[k]
        f1 += B[4, k] * s[k]
        f2 += B[5, k] * s[k]
    return add(force, (f0, f1, f2)), add(moment, (m0, m1, m2))


@kernel
def _carries(dofs, j, i):
    """Whether degree of freedom j moves i."""
    while i > j:
        i = dofs[i].parent
    return i == j


@kernel
def _coriolis(links, dofs, bodies, x, y, s, total, B, C):
    point = _composite(links, bodies, x, s, total)
    single = np.empty(10)
    B[:, :, :] = 0.0
    for i in range(1, links.shape[0]):
        if links[i].body >= 0:
            own = of_link(i)
            r = sub(get(x, own + ORIGIN, s), point)
            w = get(x, own + OMEGA, s)
            world_inertia(bodies[links[i].body], get_rotation(x, own + ROTATION, s), r, single)
            _coriolis_of_body(single, w, sub(get(x, own + VELOCITY, s), cross(w, r)), B[i])
    for i in range(links.shape[0] - 1, 0, -1):
        if links[i].parent > 0:
            B[links[i].parent] += B[i]
    C[:, :] = 0.0
    for j in range(dofs.shape[0]):
        z, u = _direction(y, j, dofs[j].rotary, point, s)
        # Ṡ about a point that stands still.
        turn_rate, move_rate = (0.0, 0.0, 0.0), get(y, of_dof(j) + AXIS_RATE, s)
        if dofs[j].rotary == 1:
            turn_rate = move_rate
            lever = cross(turn_rate, sub(point, get(y, of_dof(j) + ANCHOR, s)))
            move_rate = sub(lever, cross(z, get(y, of_dof(j) + ANCHOR_RATE, s)))
        # Rows of j and of what moves it: j is the outer one.
        outer = dofs[j].link
        force, moment = _coriolis_force(total[outer], B[outer], z, u, turn_rate, move_rate)
        i = j
        while i >= 0:
            zi, ui = _direction(y, i, dofs[i].rotary, point, s)
            C[i, j] = dot(zi, moment) + dot(ui, force)
            i = dofs[i].parent
        # Rows of what j moves.
        for i in range(j + 1, dofs.shape[0]):
            if _carries(dofs, j, i):
                outer = dofs[i].link
                force, moment = _coriolis_force(total[outer], B[outer], z, u, turn_rate, move_rate)
                zi, ui = _direction(y, i, dofs[i].rotary, point, s)
                C[i, j] = dot(zi, moment) + dot(ui, force)


@kernel
def coriolis_matrix(links, dofs, bodies, q, qd, C):
    """C(q, q̇) in Christoffel form: C q̇ is the velocity torque and Ṁ = C + Cᵀ.

    C_ij = S_iᵀ (I_m Ṡ_j + B_m S_j), with m the outer of i and j, I_m and B_m summed over all that m carries.
    """
    x, y, p = scratch(links, dofs)
    total, B = np.empty((links.shape[0], 10)), np.empty((links.shape[0], 6, 6))
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        velocities(links, x, y, count)
        dof_rates(links, dofs, x, y, count)
        for s in range(count):
            _coriolis(links, dofs, bodies, x, y, s, total, B, C[t + s])


@kernel
def energy(links, dofs, bodies, joints, gravity, q, qd, kinetic, potential):
    """Kinetic energy ½ Σ vᵀ I v + ½ Σ armature q̇² and potential energy −Σ gᵀ(m o + R h), sample by sample."""
    x, y, p = scratch(links, dofs)
    inertia = np.empty(10)
    g = vector(gravity)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        velocities(links, x, y, count)
        for s in range(count):
            kinetic[t + s] = 0.0
            potential[t + s] = 0.0
            for k in range(dofs.shape[0]):
                kinetic[t + s] += 0.5 * joints[k, ARMATURE] * qd[t + s, k] ** 2
            for i in range(1, links.shape[0]):
                if links[i].body < 0:
                    continue
                own = of_link(i)
                w, v = get(x, own + OMEGA, s), get(x, own + VELOCITY, s)
                world_inertia(bodies[links[i].body], get_rotation(x, own + ROTATION, s), (0.0, 0.0, 0.0), inertia)
                linear, angular = momentum(inertia, w, v)
                kinetic[t + s] += 0.5 * (dot(linear, v) + dot(angular, w))
                h = (inertia[1], inertia[2], inertia[3])
                potential[t + s] -= dot(g, add(h, scale(get(x, own + ORIGIN, s), inertia[0])))
