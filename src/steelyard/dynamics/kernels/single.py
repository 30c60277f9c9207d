"""Dynamics of one state at a time, in the frames of `robot.joint_frames`: what a loop through time computes.

The batched kernels put eight samples into an instruction; a simulation has one. Here vectors stand in the frame of
their own joint, so that poses are never composed. Recursions: Featherstone, Rigid Body Dynamics Algorithms (2008),
5.3 and 6.2; the factor M = Lᵀ D L of 6.5 has the tree's zeros, and no square roots.
"""

import numpy as np

from ...compiled import kernel
from .lanes import LANES, sines
from .spatial import momentum, world_inertia
from .vector import add, cross, scale, symmetric_times, turn, turn_back

_ROTATION, _ORIGIN, _OMEGA, _ALPHA, _ACCELERATION, _FORCE, _MOMENT, _INERTIA = 0, 9, 12, 15, 18, 21, 24, 27
_BLOCK = 37
_ROW = np.uint64(0)


@kernel
def workspace(n):
    """Scratch for a robot of n joints: a block a joint, angles in lanes, one inertia, the mass matrix."""
    return np.zeros((n, _BLOCK)), np.zeros(2 * LANES), np.zeros(10), np.zeros((n, n))


@kernel
def _get(x, k, at):
    return (x[k, at], x[k, at + 1], x[k, at + 2])


@kernel
def _put(x, k, at, a):
    x[k, at] = a[0]
    x[k, at + 1] = a[1]
    x[k, at + 2] = a[2]


@kernel
def _rotation(x, k):
    return (x[k, 0], x[k, 1], x[k, 2], x[k, 3], x[k, 4], x[k, 5], x[k, 6], x[k, 7], x[k, 8])


@kernel
def place_joints(rotary, frames, q, work):
    """Pose of every joint's frame in its parent's."""
    x, angles = work[0], work[1]
    n = rotary.size
    for first in range(0, n, LANES):
        last = min(first + LANES, n)
        for k in range(first, last):
            angles[k - first] = q[k] - frames[k, 12]
        for s in range(last - first, LANES):
            angles[s] = 0.0
        # Sliding joints keep their displacement out of the sines.
        for k in range(first, last):
            for j in range(3):
                x[k, _ORIGIN + j] = frames[k, 9 + j]
                if rotary[k] == 0:
                    x[k, _ORIGIN + j] += frames[k, 3 * j + 2] * angles[k - first]
            if rotary[k] == 0:
                angles[k - first] = 0.0
        sines(angles, _ROW, LANES)
        for k in range(first, last):
            c, s = angles[k - first], angles[k - first + LANES]
            for j in range(3):
                x[k, 3 * j] = c * frames[k, 3 * j] + s * frames[k, 3 * j + 1]
                x[k, 3 * j + 1] = c * frames[k, 3 * j + 1] - s * frames[k, 3 * j]
                x[k, 3 * j + 2] = frames[k, 3 * j + 2]


@kernel
def wrenches(parents, rotary, inertias, gravity, qd, qdd, work):
    """Force and moment that move each body alone, in its own frame."""
    x = work[0]
    for k in range(rotary.size):
        P = parents[k]
        R, r = _rotation(x, k), _get(x, k, _ORIGIN)
        if P >= 0:
            w, al = _get(x, P, _OMEGA), _get(x, P, _ALPHA)
            a = add(_get(x, P, _ACCELERATION), add(cross(al, r), cross(w, cross(w, r))))
            w, al, a = turn_back(R, w), turn_back(R, al), turn_back(R, a)
        else:
            w = al = (0.0, 0.0, 0.0)
            a = turn_back(R, (-gravity[0], -gravity[1], -gravity[2]))
        rate, rate_rate = qd[k], qdd[k]
        # ω × z q̇ + z q̈, or 2 ω × z q̇ + z q̈.
        if rotary[k] == 1:
            al = (al[0] + w[1] * rate, al[1] - w[0] * rate, al[2] + rate_rate)
            w = (w[0], w[1], w[2] + rate)
        else:
            a = (a[0] + 2.0 * w[1] * rate, a[1] - 2.0 * w[0] * rate, a[2] + rate_rate)
        _put(x, k, _OMEGA, w)
        _put(x, k, _ALPHA, al)
        _put(x, k, _ACCELERATION, a)
        I = inertias[k]
        h, J = (I[1], I[2], I[3]), (I[4], I[5], I[6], I[7], I[8], I[9])
        _put(x, k, _FORCE, add(scale(a, I[0]), add(cross(al, h), cross(w, cross(w, h)))))
        moment = add(symmetric_times(J, al), cross(w, symmetric_times(J, w)))
        _put(x, k, _MOMENT, add(cross(h, a), moment))


@kernel
def felt(parents, rotary, work, tau):
    """What each joint feels of the wrenches of all that it carries."""
    x = work[0]
    for k in range(rotary.size - 1, -1, -1):
        f, m = _get(x, k, _FORCE), _get(x, k, _MOMENT)
        tau[k] = m[2] if rotary[k] == 1 else f[2]
        P = parents[k]
        if P >= 0:
            R = _rotation(x, k)
            f = turn(R, f)
            m = add(turn(R, m), cross(_get(x, k, _ORIGIN), f))
            _put(x, P, _FORCE, add(_get(x, P, _FORCE), f))
            _put(x, P, _MOMENT, add(_get(x, P, _MOMENT), m))


@kernel
def mass_of_tree(parents, rotary, inertias, rotors, work):
    """M_kj for every joint k and those that carry it (CRBA); other entries are not touched."""
    x, moved, M = work[0], work[2], work[3]
    n = rotary.size
    for k in range(n):
        for j in range(10):
            x[k, _INERTIA + j] = inertias[k, j]
    for k in range(n - 1, -1, -1):
        I = x[k, _INERTIA:]
        if rotary[k] == 1:
            f, m = momentum(I, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
            M[k, k] = m[2] + rotors[k]
        else:
            f, m = momentum(I, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
            M[k, k] = f[2] + rotors[k]
        i, j = k, parents[k]
        while j >= 0:
            R = _rotation(x, i)
            f = turn(R, f)
            m = add(turn(R, m), cross(_get(x, i, _ORIGIN), f))
            M[k, j] = m[2] if rotary[j] == 1 else f[2]
            i, j = j, parents[j]
        P = parents[k]
        if P >= 0:
            world_inertia(I, _rotation(x, k), _get(x, k, _ORIGIN), moved)
            for j in range(10):
                x[P, _INERTIA + j] += moved[j]


@kernel
def solve_tree(parents, M, b):
    """M x = b in place by M = Lᵀ D L; the joint whose pivot is not positive, or -1."""
    n = parents.size
    for k in range(n - 1, -1, -1):
        pivot = M[k, k]
        if not pivot > 0.0:
            return k
        inverse = 1.0 / pivot
        M[k, k] = inverse
        i = parents[k]
        while i >= 0:
            a = M[k, i] * inverse
            j = i
            while j >= 0:
                M[i, j] -= a * M[k, j]
                j = parents[j]
            M[k, i] = a
            b[i] -= a * b[k]
            i = parents[i]
    for k in range(n):
        value = b[k] * M[k, k]
        i = parents[k]
        while i >= 0:
            value -= M[k, i] * b[i]
            i = parents[i]
        b[k] = value
    return -1


@kernel
def inverse_of_tree(parents, M, out):
    """M⁻¹ from the factors that `solve_tree` has left in M."""
    n = parents.size
    for c in range(n):
        for k in range(n):
            out[c, k] = 0.0
        b = out[c]
        b[c] = 1.0
        k = c
        while k >= 0:
            i = parents[k]
            while i >= 0:
                b[i] -= M[k, i] * b[k]
                i = parents[i]
            k = parents[k]
        for k in range(n):
            value = b[k] * M[k, k]
            i = parents[k]
            while i >= 0:
                value -= M[k, i] * b[i]
                i = parents[i]
            b[k] = value


@kernel
def torque_of_state(tree, q, qd, qdd, work, tau):
    """M q̈ + C q̇ + g of one state; joints' own friction and rotors are not in it."""
    parents, rotary, frames, inertias, gravity = tree
    place_joints(rotary, frames, q, work)
    wrenches(parents, rotary, inertias, gravity, qd, qdd, work)
    felt(parents, rotary, work, tau)
