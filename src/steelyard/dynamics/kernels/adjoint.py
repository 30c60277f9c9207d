"""Gradient of any function of the regressor by the state, at the price of a few regressors.

With G = ∂f/∂Y, the number φ = Σ_kc G_kc Y_kc(q, q̇, q̈) has the gradient of f. Every step of the regressor is run
backwards on it (the adjoint method), for hinges and slides, in the order: rows of bodies, then links from the tips to
the base. `x̂` below is ∂φ/∂x; `tilt` is the derivative by a small rotation of a link about world axes, and

    ∂/∂ω of â·(ω×(ω×r)) = (ω·r) â + (â·ω) r − 2 (â·r) ω.
"""

import numpy as np

from ...compiled import kernel
from ...robot.tree import HINGE, SLIDE
from .joints import ARMATURE, DAMPING
from .kinematics import accelerations, load_rates, place
from .lanes import (
    ACCELERATION,
    ALPHA,
    ANCHOR,
    AXIS,
    COSINE,
    FORCE,
    LANES,
    OMEGA,
    ORIGIN,
    RATE,
    RATE_RATE,
    ROTATION,
    fetch,
    get,
    get_rotation,
    increase,
    lanes_from,
    of_dof,
    of_link,
    scratch,
)
from .vector import add, cross, dot, scale, sub, symmetric_times, turn, turn_back

# Where the derivatives by a link's quantities stand in its block of the adjoint; the rotation's has three numbers.
_TILT = ROTATION
# The row of a degree of freedom that holds the derivative by its position.
_POSITION = COSINE
_W1, _W2, _W3, _W4, _W5, _W6, _W7, _W8, _W9 = (np.uint64(row * LANES) for row in range(1, 10))


@kernel
def _by_omega(w, r, a):
    return sub(add(scale(a, dot(w, r)), scale(r, dot(a, w))), scale(w, 2.0 * dot(a, r)))


@kernel
def _by_lever(w, al, a):
    """∂/∂r of â·(α×r + ω×(ω×r))."""
    return add(cross(a, al), sub(scale(w, dot(w, a)), scale(a, dot(w, w))))


@kernel
def _load_weights(G, t, count, k, column, weights):
    for s in range(count):
        for j in range(10):
            weights[j * LANES + s] = G[t + np.int64(s), k, column + j]


@kernel
def _row_backwards(x, y, hat, dof_hat, weights, own, dof, rotary, count):
    """One body's row: φ = jᵥ·f + j_ω·n, where f and n are the wrench of a body with the weights as parameters."""
    for s in range(count):
        R = get_rotation(x, own + ROTATION, s)
        a, w, al = get(x, own + ACCELERATION, s), get(x, own + OMEGA, s), get(x, own + ALPHA, s)
        b, wl, all_ = turn_back(R, a), turn_back(R, w), turn_back(R, al)
        m = weights[s]
        h = (weights[_W1 + s], weights[_W2 + s], weights[_W3 + s])
        inertia = (
            weights[_W4 + s],
            weights[_W5 + s],
            weights[_W6 + s],
            weights[_W7 + s],
            weights[_W8 + s],
            weights[_W9 + s],
        )
        axis = get(y, dof + AXIS, s)
        lever = sub(get(x, own + ORIGIN, s), get(y, dof + ANCHOR, s))
        if rotary == 1:
            moving = cross(axis, lever)
            jw, jv = turn_back(R, axis), turn_back(R, moving)
        else:
            moving = axis
            jw, jv = (0.0, 0.0, 0.0), turn_back(R, axis)
        Iw, Ijw = symmetric_times(inertia, wl), symmetric_times(inertia, jw)
        force = add(scale(b, m), add(cross(all_, h), cross(wl, cross(wl, h))))
        moment = add(cross(h, b), add(symmetric_times(inertia, all_), cross(wl, Iw)))
        # By the motion of the body, and by the two Jacobian columns, all turned to world axes.
        b_hat = turn(R, add(scale(jv, m), cross(jw, h)))
        al_hat = turn(R, add(cross(h, jv), Ijw))
        spun = add(cross(Iw, jw), symmetric_times(inertia, cross(jw, wl)))
        w_hat = turn(R, add(_by_omega(wl, h, jv), spun))
        v_hat, jw_hat = turn(R, force), turn(R, moment)
        tilt = add(add(cross(b_hat, a), cross(w_hat, w)), add(cross(al_hat, al), cross(v_hat, moving)))
        increase(hat, own + ACCELERATION, s, b_hat)
        increase(hat, own + OMEGA, s, w_hat)
        increase(hat, own + ALPHA, s, al_hat)
        if rotary == 1:
            lever_hat = cross(v_hat, axis)
            increase(hat, own + ORIGIN, s, lever_hat)
            increase(dof_hat, dof + ANCHOR, s, sub((0.0, 0.0, 0.0), lever_hat))
            increase(dof_hat, dof + AXIS, s, add(jw_hat, cross(lever, v_hat)))
            increase(hat, own + _TILT, s, add(tilt, cross(jw_hat, axis)))
        else:
            increase(dof_hat, dof + AXIS, s, v_hat)
            increase(hat, own + _TILT, s, tilt)


@kernel
def _hinge_backwards(x, y, hat, dof_hat, p, own, parent, dof, count):
    for s in range(count):
        z, c, o, op = get(y, dof + AXIS, s), get(y, dof + ANCHOR, s), get(x, own + ORIGIN, s), get(p, ORIGIN, s)
        rate, rate_rate = y[dof + RATE + s], y[dof + RATE_RATE + s]
        wp, alp, w, al = get(p, OMEGA, s), get(p, ALPHA, s), get(x, own + OMEGA, s), get(x, own + ALPHA, s)
        tail, lever = sub(o, c), sub(c, op)
        u = scale(z, rate)
        # The acceleration was carried from the anchor to the origin …
        a_hat = get(hat, own + ACCELERATION, s)
        al_hat = add(get(hat, own + ALPHA, s), cross(tail, a_hat))
        w_hat = add(get(hat, own + OMEGA, s), _by_omega(w, tail, a_hat))
        tail_hat = _by_lever(w, al, a_hat)
        o_hat = add(get(hat, own + ORIGIN, s), tail_hat)
        tilt = add(get(hat, own + _TILT, s), cross(tail, o_hat))
        # … ω = ω_P + u, α = α_P + z q̈ + ω_P×u …
        u_hat = add(w_hat, cross(al_hat, wp))
        z_hat = add(get(dof_hat, dof + AXIS, s), add(scale(al_hat, rate_rate), scale(u_hat, rate)))
        wp_hat = add(w_hat, cross(u, al_hat))
        # … and from the parent's origin to the anchor.
        lever_hat = _by_lever(wp, alp, a_hat)
        c_hat = add(sub(get(dof_hat, dof + ANCHOR, s), tail_hat), add(lever_hat, o_hat))
        increase(hat, parent + ACCELERATION, s, a_hat)
        increase(hat, parent + ALPHA, s, add(al_hat, cross(lever, a_hat)))
        increase(hat, parent + OMEGA, s, add(wp_hat, _by_omega(wp, lever, a_hat)))
        increase(hat, parent + ORIGIN, s, sub(c_hat, lever_hat))
        increase(hat, parent + _TILT, s, add(add(tilt, cross(z, z_hat)), cross(lever, c_hat)))
        dof_hat[dof + _POSITION + s] = dot(z, tilt)
        dof_hat[dof + RATE + s] = dot(z, u_hat)
        dof_hat[dof + RATE_RATE + s] = dot(z, al_hat)


@kernel
def _carried_backwards(x, y, hat, dof_hat, p, own, parent, dof, slides, count):
    for s in range(count):
        lever = sub(get(x, own + ORIGIN, s), get(p, ORIGIN, s))
        wp, alp = get(p, OMEGA, s), get(p, ALPHA, s)
        a_hat, w_hat = get(hat, own + ACCELERATION, s), get(hat, own + OMEGA, s)
        wp_hat = add(w_hat, _by_omega(wp, lever, a_hat))
        lever_hat = _by_lever(wp, alp, a_hat)
        o_hat = add(get(hat, own + ORIGIN, s), lever_hat)
        tilt = get(hat, own + _TILT, s)
        if slides:
            z, rate, rate_rate = get(y, dof + AXIS, s), y[dof + RATE + s], y[dof + RATE_RATE + s]
            # The axis' anchor is the link's origin; nothing depends on it for a joint that does not turn.
            spun = cross(a_hat, wp)
            z_hat = add(get(dof_hat, dof + AXIS, s), add(scale(spun, 2.0 * rate), scale(a_hat, rate_rate)))
            wp_hat = add(wp_hat, scale(cross(z, a_hat), 2.0 * rate))
            tilt = add(tilt, cross(z, z_hat))
            dof_hat[dof + _POSITION + s] = dot(z, o_hat)
            dof_hat[dof + RATE + s] = 2.0 * dot(z, spun)
            dof_hat[dof + RATE_RATE + s] = dot(z, a_hat)
        increase(hat, parent + ACCELERATION, s, a_hat)
        increase(hat, parent + ALPHA, s, add(get(hat, own + ALPHA, s), cross(lever, a_hat)))
        increase(hat, parent + OMEGA, s, wp_hat)
        increase(hat, parent + ORIGIN, s, sub(o_hat, lever_hat))
        increase(hat, parent + _TILT, s, add(tilt, cross(lever, o_hat)))


@kernel
def regressor_gradient(links, dofs, columns, properties, first, gravity, q, qd, qdd, G, q_hat, qd_hat, qdd_hat):
    """∂/∂q, ∂/∂q̇, ∂/∂q̈ of Σ G·Y, sample by sample."""
    x, y, p = scratch(links, dofs)
    hat, dof_hat, _ = scratch(links, dofs)
    weights = np.empty(10 * LANES)
    size = dofs.shape[0]
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        load_rates(dofs, qdd, RATE_RATE, t, count, y)
        accelerations(links, gravity, x, y, p, count)
        hat[:] = 0.0
        dof_hat[:] = 0.0
        for i in range(1, links.shape[0]):
            if columns[i] < 0:
                continue
            k = links[i].last_dof
            while k >= 0:
                _load_weights(G, t, count, k, columns[i], weights)
                if dofs[k].rotary == 1:
                    _row_backwards(x, y, hat, dof_hat, weights, of_link(i), of_dof(k), 1, count)
                else:
                    _row_backwards(x, y, hat, dof_hat, weights, of_link(i), of_dof(k), 0, count)
                k = dofs[k].parent
        for i in range(links.shape[0] - 1, 0, -1):
            own, parent, dof = of_link(i), of_link(links[i].parent), of_dof(links[i].dof)
            fetch(x, links[i].parent, ORIGIN, FORCE, p)
            if links[i].kind == HINGE:
                _hinge_backwards(x, y, hat, dof_hat, p, own, parent, dof, count)
            elif links[i].kind == SLIDE:
                _carried_backwards(x, y, hat, dof_hat, p, own, parent, dof, True, count)
            else:
                _carried_backwards(x, y, hat, dof_hat, p, own, parent, dof, False, count)
        for k in range(size):
            dof = of_dof(k)
            for s in range(count):
                r = t + np.int64(s)
                q_hat[r, k] = dof_hat[dof + _POSITION + s]
                qd_hat[r, k] = dof_hat[dof + RATE + s]
                qdd_hat[r, k] = dof_hat[dof + RATE_RATE + s]
                for j in range(properties.shape[0]):
                    weight = G[r, k, first + j * size + k]
                    if properties[j] == ARMATURE:
                        qdd_hat[r, k] += weight
                    elif properties[j] == DAMPING:
                        qd_hat[r, k] += weight
