"""Linear complementarity problems: what pushes only where it touches.

    w = M z + q,    w >= 0,    z >= 0,    wᵀz = 0

`Lemke` is for any M and exact; `ProjectedGaussSeidel` needs a positive diagonal and is quick for a rough answer, above
all from a good start; `QuadraticProgram` is for monotone problems, that is M + Mᵀ positive semidefinite. Cottle, Pang
and Stone, The Linear Complementarity Problem (1992).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..errors import DataError, OptionError
from .kernels.complementarity import sweep
from .pivoting import RAY, SOLVED, lemke

Array = NDArray[np.float64]

# Of a problem scaled to rows of size 1: a solution that misses by more is not one.
_SOLVED_TO = 1e-8
_POLISHES = 10


@dataclass(frozen=True)
class Lemke:
    """Complementary pivoting; a start that names the right active rows costs no pivot."""

    pivots_a_row: int = 50  # usual are one to three


@dataclass(frozen=True)
class ProjectedGaussSeidel:
    """z_i ← max(0, z_i − ω (M z + q)_i / M_ii), until no z moves by more than a fraction of the largest.

    It converges for symmetric positive definite M and 0 < ω < 2; ω above 1 is often faster where few rows are active,
    ω below 1 helps where M is not symmetric.
    """

    relaxation: float = 1.0
    tolerance: float = 1e-13
    sweeps: int = 100_000

    def __post_init__(self) -> None:
        if not 0 < self.relaxation < 2:
            raise OptionError(f"the relaxation is {self.relaxation:g}; it has to lie between 0 and 2 (1 is usual)")
        if not (self.tolerance > 0 and self.sweeps > 0):
            raise OptionError(
                f"tolerance {self.tolerance:g} and {self.sweeps} sweeps: projected Gauss-Seidel needs both above 0"
            )


@dataclass(frozen=True)
class QuadraticProgram:
    """Clarabel: min ½ zᵀMz + qᵀz over z >= 0; where M is not symmetric, min zᵀ(Mz + q) over z, Mz + q >= 0."""

    iterations: int = 200


Method = Lemke | ProjectedGaussSeidel | QuadraticProgram


@dataclass(frozen=True, eq=False)
class Complementary:
    """z and w = M z + q; where not `converged`, the message says why, and z is the best that was found.

    `residual` is max |min(z, w)| of the problem scaled to rows of size 1. `infeasible` is a proof that no z >= 0 has
    w >= 0, where the method found one: u >= 0 with Mᵀu <= 0 and qᵀu < 0.
    """

    z: Array
    w: Array
    converged: bool
    message: str
    iterations: int
    residual: float
    infeasible: Array | None = None


def _checked(M: ArrayLike, q: ArrayLike, start: ArrayLike | None) -> tuple[Array, Array, Array | None]:
    M, q = np.array(M, dtype=np.float64), np.array(q, dtype=np.float64)
    if q.ndim != 1 or M.shape != (len(q), len(q)):
        raise DataError(f"a complementarity problem needs M (n, n) and q (n,), not {M.shape} and {q.shape}")
    if not (np.isfinite(M).all() and np.isfinite(q).all()):
        raise DataError("M or q of the complementarity problem has numbers that are not finite; repair them")
    if start is None:
        return M, q, None
    z = np.array(start, dtype=np.float64)
    if z.shape != q.shape or not np.isfinite(z).all():
        raise DataError(f"the start has shape {z.shape}; {len(q)} finite numbers are needed")
    return M, q, np.maximum(z, 0.0)


def _miss(M: Array, q: Array, z: Array) -> float:
    """max |min(z, M z + q)|, zero just at solutions."""
    return float(np.abs(np.minimum(z, M @ z + q)).max(initial=0.0))


def _with_active(M: Array, q: Array, active: NDArray[np.bool_]) -> Array:
    """z with w = 0 where active and z = 0 elsewhere."""
    z = np.zeros_like(q)
    z[active] = np.linalg.lstsq(M[np.ix_(active, active)], -q[active], rcond=None)[0]
    return np.maximum(z, 0.0)


def _polished(M: Array, q: Array, z: Array) -> Array:
    """The best that Newton's method on min(z, w) = 0 finds from where an interior point ended.

    Rows with z > w are made w = 0 by the least change of z: interior points stop at about the root of rounding where
    both are nought, or where M is ill-conditioned.
    """
    best, miss = z, _miss(M, q, z)
    for _ in range(_POLISHES):
        active = z > M @ z + q
        z = np.where(active, z, 0.0)
        left = M[active] @ z + q[active]
        z[active] -= np.linalg.lstsq(M[np.ix_(active, active)], left, rcond=None)[0]
        positive = np.maximum(z, 0.0)
        now = _miss(M, q, positive)
        if now < miss:
            best, miss = positive, now
        elif now == miss:
            break
    return best


def _seen_from(M: Array, q: Array, active: NDArray[np.bool_]) -> tuple[Array, Array] | None:
    """The same problem with w and z exchanged in the active rows (a principal pivot), if that can be done."""
    A, B, C, D = (M[np.ix_(a, b)] for a in (active, ~active) for b in (active, ~active))
    if active.any() and np.linalg.cond(A) > 1e12:
        return None
    inverse = np.linalg.inv(A)
    pivoted, constant = np.empty_like(M), np.empty_like(q)
    pivoted[np.ix_(active, active)], pivoted[np.ix_(active, ~active)] = inverse, -inverse @ B
    pivoted[np.ix_(~active, active)], pivoted[np.ix_(~active, ~active)] = C @ inverse, D - C @ inverse @ B
    constant[active], constant[~active] = -inverse @ q[active], q[~active] - C @ inverse @ q[active]
    return pivoted, constant


Answer = tuple[Array, str, int, Array | None]  # z, what went wrong, iterations, certificate


def _certificate(M: Array, q: Array, u: Array) -> Array | None:
    u = u / max(float(np.abs(u).max(initial=0.0)), 1e-300)
    return u if (M.T @ u).max(initial=0.0) <= 1e-9 and q @ u < -1e-9 * np.abs(q).max(initial=0.0) else None


def _by_pivots(M: Array, q: Array, start: Array | None, method: Lemke) -> Answer:
    most = method.pivots_a_row * max(1, len(q))
    spent = 0
    if start is not None and start.any():
        active = start > 0
        seen = _seen_from(M, q, active)
        if seen is not None:
            # Rounding of the exchange must not look like a violated row.
            near = np.where(np.abs(seen[1]) < 1e-13 * (1 + np.abs(seen[1]).max()), 0.0, seen[1])
            found = lemke(seen[0], near, most)
            spent = found.pivots
            if found.status == SOLVED:
                return _with_active(M, q, active ^ found.active), "", spent, None
    found = lemke(M, q, most)
    spent += found.pivots
    if found.status == SOLVED:
        return _with_active(M, q, found.active), "", spent, None
    if found.status == RAY and found.ray is not None:
        proof = _certificate(M, q, found.ray)
        proven = "it proves that no z >= 0 makes M z + q >= 0" if proof is not None else "there may be a solution still"
        return np.zeros_like(q), f"Lemke's path ended on a ray after {spent} pivots; {proven}", spent, proof
    return np.zeros_like(q), f"Lemke stopped after {spent} pivots; raise pivots_a_row", spent, None


def _by_sweeps(M: Array, q: Array, start: Array | None, method: ProjectedGaussSeidel) -> Answer:
    diagonal = np.diag(M)
    if len(q) and diagonal.min() <= 0:
        k = int(diagonal.argmin())
        raise OptionError(
            f"M[{k}, {k}] is {diagonal[k]:g}; projected Gauss-Seidel divides by the diagonal: regularise, or use Lemke"
        )
    z = np.zeros_like(q) if start is None else start.copy()
    sweeps, left = sweep(M, q, method.relaxation, method.tolerance, method.sweeps, z)
    z = np.nan_to_num(z, nan=0.0, posinf=0.0)
    message = "" if left == 0.0 else f"projected Gauss-Seidel still moved by {left:.3g} after {sweeps} sweeps"
    return z, message, int(sweeps), None


def _by_program(M: Array, q: Array, start: Array | None, method: QuadraticProgram) -> Answer:
    import clarabel

    n = len(q)
    lowest = float(np.linalg.eigvalsh(0.5 * (M + M.T)).min(initial=0.0))
    if lowest < -1e-9 * max(1.0, float(np.abs(M).max(initial=0.0))):
        raise OptionError(
            f"M + Mᵀ has the eigenvalue {2 * lowest:.3g}: the problem is not monotone, and not a convex QP; use Lemke"
        )
    if start is not None:
        held = _with_active(M, q, start > 0)
        if _miss(M, q, held) <= 1e-12:
            return held, "", 0, None
    symmetric = np.allclose(M, M.T, rtol=0, atol=1e-12)
    rows, bounds = (-np.eye(n), np.zeros(n)) if symmetric else (-np.vstack([np.eye(n), M]), np.r_[np.zeros(n), q])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter, settings.max_threads = False, method.iterations, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9  # polished below
    hessian = M if symmetric else M + M.T
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian)), q, sparse.csc_matrix(rows), bounds,
        [clarabel.NonnegativeConeT(len(bounds))], settings,
    )  # fmt: skip
    answer = solver.solve()
    status, z = str(answer.status), np.maximum(np.nan_to_num(np.array(answer.x)), 0.0)
    if "Infeasible" in status:
        # Clarabel's ray: of the variables where the objective falls for ever, of the multipliers where rows conflict.
        u = z if symmetric else np.maximum(np.array(answer.z)[n:], 0.0)
        message = f"the quadratic program has no solution ({status}): no z >= 0 makes M z + q >= 0"
        return np.zeros(n), message, int(answer.iterations), _certificate(M, q, u)
    z = _polished(M, q, z)
    miss = _miss(M, q, z)
    message = (
        "" if miss <= _SOLVED_TO else f"the interior point missed by {miss:.3g} ({status}); regularise, or use Lemke"
    )
    return z, message, int(answer.iterations), None


def solve_complementarity(
    M: ArrayLike,
    q: ArrayLike,
    method: Method | None = None,
    start: ArrayLike | None = None,
    regularisation: float = 0.0,
) -> Complementary:
    """Find z, from `start` where given; `regularisation` is added to the diagonal of M, and part of the problem.

    Rows and columns are scaled alike, M → S M S with S = diag(1/sqrt(size of row)), which changes no solution.
    """
    M, q, start = _checked(M, q, start)
    if not 0 <= regularisation < np.inf:
        raise OptionError(f"the regularisation is {regularisation:g}; give a finite number from 0")
    M = M + regularisation * np.eye(len(q))
    size = np.abs(M).max(axis=1, initial=0.0)
    scale = 1.0 / np.sqrt(np.where(size > 0, size, 1.0))
    scaled, constant = scale[:, None] * M * scale, scale * q
    largest = float(np.abs(constant).max(initial=0.0)) or 1.0
    constant = constant / largest
    begin = None if start is None else start / (scale * largest)
    solvers: dict[type, Any] = {Lemke: _by_pivots, ProjectedGaussSeidel: _by_sweeps, QuadraticProgram: _by_program}
    chosen = Lemke() if method is None else method
    if type(chosen) not in solvers:
        raise OptionError(f"no method {chosen!r}; valid: {', '.join(kind.__name__ + '()' for kind in solvers)}")
    z, problem, iterations, proof = solvers[type(chosen)](scaled, constant, begin, chosen)
    miss = _miss(scaled, constant, z)
    if not problem and miss > _SOLVED_TO:
        problem = f"the answer misses complementarity by {miss:.3g}: the problem is too ill-conditioned; regularise"
    z = scale * z * largest
    w = M @ z + q
    message = problem or f"{type(chosen).__name__} solved it in {iterations} iterations"
    certificate = None if proof is None else proof * scale
    return Complementary(z, w, not problem, message, iterations, miss, certificate)
