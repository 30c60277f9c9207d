"""Projected Gauss–Seidel sweeps of a linear complementarity problem."""

from ...compiled import kernel


@kernel
def sweep(M, q, relaxation, tolerance, sweeps, z):
    """z_i ← max(0, z_i − ω (M z + q)_i / M_ii), in place; the number of sweeps and the last one's largest step."""
    n = len(q)
    largest = 0.0
    for k in range(sweeps):
        largest, size = 0.0, 0.0
        for i in range(n):
            w = q[i]
            for j in range(n):
                w += M[i, j] * z[j]
            moved = max(0.0, z[i] - relaxation * w / M[i, i])
            largest = max(largest, abs(moved - z[i]))
            z[i] = moved
            size = max(size, moved)
        if largest <= tolerance * size or largest == 0.0:
            return k + 1, 0.0
        if not size < 1e100:
            return k + 1, largest
    return sweeps, largest
