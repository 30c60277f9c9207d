"""Inverse dynamics by the recursive Newton–Euler algorithm, O(n) a sample."""

from ...compiled import kernel
from .joints import joint_torque
from .kinematics import accelerations, load_rates, place
from .lanes import (
    ACCELERATION,
    ALPHA,
    ANCHOR,
    AXIS,
    AXIS_RATE,
    FORCE,
    LANES,
    MOMENT,
    OMEGA,
    ORIGIN,
    RATE,
    RATE_RATE,
    ROTATION,
    get,
    get_rotation,
    increase,
    lanes_from,
    of_dof,
    of_link,
    put,
    scratch,
)
from .vector import add, cross, dot, scale, sub, symmetric_times, turn, turn_back

_ZERO = (0.0, 0.0, 0.0)
# Inverse dynamics has no use for the rates of the axes; their row takes the generalised force.
_FELT = AXIS_RATE


@kernel
def _wrench(x, own, m, h, inertia, count):
    """The force and the moment about its origin that move a body so.

    f = m b + α×h + ω×(ω×h),   n = h×b + I α + ω×(I ω), with b the acceleration less gravity, all in the body's axes
    """
    for s in range(count):
        R = get_rotation(x, own + ROTATION, s)
        b = turn_back(R, get(x, own + ACCELERATION, s))
        w = turn_back(R, get(x, own + OMEGA, s))
        al = turn_back(R, get(x, own + ALPHA, s))
        f = add(scale(b, m), add(cross(al, h), cross(w, cross(w, h))))
        n = add(cross(h, b), add(symmetric_times(inertia, al), cross(w, symmetric_times(inertia, w))))
        put(x, own + FORCE, s, turn(R, f))
        put(x, own + MOMENT, s, turn(R, n))


@kernel
def _hand_down(x, own, parent, count):
    """What a link needs, its parent has to bring."""
    for s in range(count):
        f = get(x, own + FORCE, s)
        r = sub(get(x, own + ORIGIN, s), get(x, parent + ORIGIN, s))
        increase(x, parent + FORCE, s, f)
        increase(x, parent + MOMENT, s, add(get(x, own + MOMENT, s), cross(r, f)))


@kernel
def _onto_axis(x, y, own, dof, rotary, count):
    """The part of a link's wrench that its joint feels."""
    for s in range(count):
        axis, f = get(y, dof + AXIS, s), get(x, own + FORCE, s)
        if rotary == 1:
            lever = sub(get(x, own + ORIGIN, s), get(y, dof + ANCHOR, s))
            y[dof + _FELT + s] = dot(axis, add(get(x, own + MOMENT, s), cross(lever, f)))
        else:
            y[dof + _FELT + s] = dot(axis, f)


@kernel
def torques(links, dofs, bodies, joints, gravity, t, count, x, y, p, tau):
    """Inverse dynamics of samples whose positions are placed and whose rates are loaded."""
    accelerations(links, gravity, x, y, p, count)
    for i in range(1, links.shape[0]):
        b, own = links[i].body, of_link(i)
        if b >= 0:
            I = bodies[b]
            _wrench(x, own, I[0], (I[1], I[2], I[3]), (I[4], I[5], I[6], I[7], I[8], I[9]), count)
        else:
            for s in range(count):
                put(x, own + FORCE, s, _ZERO)
                put(x, own + MOMENT, s, _ZERO)
    for i in range(links.shape[0] - 1, 0, -1):
        if links[i].parent > 0:
            _hand_down(x, of_link(i), of_link(links[i].parent), count)
    for k in range(dofs.shape[0]):
        dof = of_dof(k)
        _onto_axis(x, y, of_link(dofs[k].link), dof, dofs[k].rotary, count)
        for s in range(count):
            friction = joint_torque(joints, k, y[dof + RATE + s], y[dof + RATE_RATE + s])
            tau[t + s, k] = y[dof + _FELT + s] + friction


@kernel
def inverse_dynamics(links, dofs, bodies, joints, gravity, q, qd, qdd, tau):
    """tau = M(q) q̈ + C(q, q̇) q̇ + g(q) + joint terms, sample by sample."""
    x, y, p = scratch(links, dofs)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        load_rates(dofs, qdd, RATE_RATE, t, count, y)
        torques(links, dofs, bodies, joints, gravity, t, count, x, y, p, tau)


@kernel
def one_sample(links, dofs, bodies, joints, gravity, q, qd, qdd, tau):
    """The same for one sample given as vectors; False, and nothing computed, where a number is not finite."""
    total = 0.0
    for k in range(q.size):
        total += q[k] - q[k]
    for k in range(qd.size):
        total += (qd[k] - qd[k]) + (qdd[k] - qdd[k])
    if total != 0.0:
        return False
    q1, qd1, qdd1 = q.reshape((1, q.size)), qd.reshape((1, qd.size)), qdd.reshape((1, qdd.size))
    inverse_dynamics(links, dofs, bodies, joints, gravity, q1, qd1, qdd1, tau.reshape((1, tau.size)))
    return True
