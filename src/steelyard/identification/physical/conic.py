"""Convex cone programs, built block by block and solved by Clarabel.

minimise ½ vᵀPv + qᵀv   subject to   rows·v + constant ∈ cone, for every block
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Cone = Literal["zero", "nonnegative", "second order", "semidefinite", "exponential"]

# The prior is a small part of the objective where data fight the constraints, so the solver is asked for more than its
# default of 1e-8; what stops short of it but meets the second, it calls "AlmostSolved".
_TOLERANCE = 1e-9
_REDUCED = 1e-7
_MAX_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Block:
    """Some affine functions of the variables and the cone they have to lie in.

    "semidefinite" takes the `svec` of a matrix; "exponential" takes (x, y, z) with y exp(x/y) <= z.
    """

    rows: sparse.csr_array
    constant: Array
    cone: Cone


@dataclass(frozen=True, eq=False)
class Answer:
    """What the solver says; `variables` are its last iterate, whatever the status."""

    variables: Array
    status: str
    iterations: int
    seconds: float


@cache
def _triangle(n: int) -> tuple[NDArray, NDArray, Array]:
    """The upper triangle of an n×n matrix, column by column, and what keeps the inner product."""
    col, row = np.tril_indices(n)
    return row, col, np.where(row == col, 1.0, np.sqrt(2.0))


def svec(matrix: Array) -> Array:
    """Symmetric matrices (..., n, n) as vectors (..., n(n+1)/2) with the same inner product, ⟨a, b⟩ = tr(AB)."""
    row, col, scale = _triangle(matrix.shape[-1])
    return matrix[..., row, col] * scale


def smat(vector: Array) -> Array:
    """The symmetric matrices of `svec`."""
    n = int(np.sqrt(2 * vector.shape[-1]))
    row, col, scale = _triangle(n)
    matrix = np.zeros((*vector.shape[:-1], n, n))
    matrix[..., row, col] = matrix[..., col, row] = vector / scale
    return matrix


def solve(P: sparse.csc_array, q: Array, blocks: Sequence[Block]) -> Answer:
    """Solve the program; a status other than "Solved" is for the caller to judge."""
    import clarabel

    def cone(block: Block) -> object:
        size = len(block.constant)
        if block.cone == "semidefinite":
            return clarabel.PSDTriangleConeT(int(np.sqrt(2 * size)))
        if block.cone == "exponential":
            return clarabel.ExponentialConeT()
        kinds = {
            "zero": clarabel.ZeroConeT,
            "nonnegative": clarabel.NonnegativeConeT,
            "second order": clarabel.SecondOrderConeT,
        }
        return kinds[block.cone](size)

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = _MAX_ITERATIONS
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = _TOLERANCE
    settings.reduced_tol_gap_rel = settings.reduced_tol_gap_abs = settings.reduced_tol_feas = _REDUCED
    G = sparse.csc_matrix(-sparse.vstack([block.rows for block in blocks]))
    h = np.concatenate([block.constant for block in blocks])
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.triu(P)), q, G, h, [cone(block) for block in blocks], settings
    )
    found = solver.solve()
    return Answer(np.array(found.x), str(found.status), int(found.iterations), float(found.solve_time))
