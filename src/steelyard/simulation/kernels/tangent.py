"""The variational equations of a closed loop: how its motion changes with parameters, gains and start.

A tick takes (δq, δq̇) by the trapezoidal rule, which is stable whatever friction and gains are,

    δq̇⁺ = E δq̇ + H δtau − P δq − W δbeta,    δq⁺ = δq + h/2 (δq̇ + δq̇⁺),

each δ with a column for each number that the motion may depend on; delay and differences of the sensors are carried on
as the loop itself does it.
"""

from ...compiled import kernel

# What may be kept of a tick.
SEEN, SEEN_RATE, ACCELERATION, TORQUE = range(4)


@kernel
def _clear(x):
    for j in range(x.shape[0]):
        for c in range(x.shape[1]):
            x[j, c] = 0.0


@kernel
def _add_product(A, x, sign, out):
    """out += sign · A x."""
    for j in range(A.shape[0]):
        for i in range(A.shape[1]):
            a = sign * A[j, i]
            if a != 0.0:
                for c in range(x.shape[1]):
                    out[j, c] += a * x[i, c]


@kernel
def carry(first, last, stride, dt, differenced, step, feedback, moved, delayed, state, channels, out):
    """Ticks `first` to `last`; `state` goes on where it was left, rows of `out` are filled at every stride-th tick.

    `step` has E, H, P (ticks, n, n) and W (ticks, n, r); `feedback` the gains (3, n), what couples them where a model
    does (ticks, 3, n, n), which joints pass torque and which integrate (ticks, n); `moved` what the torque changes
    with gains (ticks, n, g) and what the start holds (n, columns); `delayed` the ring of positions and velocities.
    """
    E, H, P, W = step
    gains, coupling, passes, integrates = feedback
    by_gain, held = moved
    dq, dqd, seen, before, rate, integral, tau, ahead = state
    n, columns = dq.shape
    r, slots = W.shape[2], delayed.shape[0]
    for tick in range(first, last):
        i = tick - first
        for j in range(n):
            for c in range(columns):
                before[j, c] = seen[j, c]
                seen[j, c], late = dq[j, c], dqd[j, c]
                if slots:
                    slot = tick % slots
                    seen[j, c], late = delayed[slot, 0, j, c], delayed[slot, 1, j, c]
                    delayed[slot, 0, j, c], delayed[slot, 1, j, c] = dq[j, c], dqd[j, c]
                rate[j, c] = (seen[j, c] - before[j, c]) / dt if differenced and tick else late
                tau[j, c] = held[j, c]
        if coupling.shape[0]:
            _add_product(coupling[i, 0], seen, -1.0, tau)
            _add_product(coupling[i, 2], rate, -1.0, tau)
            _add_product(coupling[i, 1], integral, 1.0, tau)
        else:
            for j in range(n):
                kp, ki, kd = gains[0, j] + gains[1, j] * dt, gains[1, j], gains[2, j]
                for c in range(columns):
                    tau[j, c] += ki * integral[j, c] - kp * seen[j, c] - kd * rate[j, c]
        for j in range(n):
            for c in range(by_gain.shape[2]):
                tau[j, r + c] += by_gain[i, j, c]
            if not passes[i, j]:
                for c in range(columns):
                    tau[j, c] = 0.0
            if integrates[i, j]:
                for c in range(columns):
                    integral[j, c] -= dt * seen[j, c]
        _clear(ahead)
        _add_product(E[i], dqd, 1.0, ahead)
        _add_product(H[i], tau, 1.0, ahead)
        _add_product(P[i], dq, -1.0, ahead)
        for j in range(n):
            for c in range(r):
                ahead[j, c] -= W[i, j, c]
        if tick % stride == 0:
            row = tick // stride
            for s in range(channels.size):
                for j in range(n):
                    for c in range(columns):
                        if channels[s] == SEEN:
                            value = seen[j, c]
                        elif channels[s] == SEEN_RATE:
                            value = rate[j, c]
                        elif channels[s] == ACCELERATION:
                            value = (ahead[j, c] - dqd[j, c]) / dt
                        else:
                            value = tau[j, c]
                        out[row, s * n + j, c] = value
        for j in range(n):
            for c in range(columns):
                dq[j, c] += 0.5 * dt * (dqd[j, c] + ahead[j, c])
                dqd[j, c] = ahead[j, c]
