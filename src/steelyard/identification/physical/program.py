"""The cone program of the physically consistent fit, in whitened coordinates and in residual form.

    minimise ‖r‖² + (w/κ²) P(x)   over x, r
    subject to   (s/ŝ) vᵀx − (κ/ŝ) r = (uᵀy)/ŝ,   ŝ = max(s, κ),   for every singular triple (u, s, v) of A
                 X_b(x) ⪰ ε

This is (‖Ax − y‖² + w P(x))/κ², of which the rows are turned by the singular vectors of A and brought to length one;
κ² is a guess of the cost of the answer, so that the objective is of the order of one. The condition number of A is
then in the small coefficients of r, where it does no harm: normal equations square it, and solvers then call answers
"solved" that are per cents off. P is quadratic or the entropic divergence, whose log-determinant is

    log|X| = max Σ log Z_ii   subject to   [[X, Z], [Zᵀ, diag Z]] ⪰ 0,   Z lower triangular.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .conic import Block, Cone, svec

Array = NDArray[np.float64]

# Data directions this much weaker than the prior say nothing that the prior does not outweigh.
_SILENT = 1e-6
_DEPENDENT = 1e-10  # equalities, brought to length one

_LOWER = np.tril_indices(4)
_DIAGONAL = np.flatnonzero(_LOWER[0] == _LOWER[1])


@dataclass(frozen=True, eq=False)
class Directions:
    """The singular triples of the data in whitened coordinates: strength s, direction v, and uᵀy."""

    strength: Array
    directions: Array
    seen: Array

    @classmethod
    def of(cls, A: Array, y: Array) -> "Directions":
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        return cls(s, Vt, U.T @ y)

    def excess(self, x: Array) -> float:
        """‖Ax − y‖² above what is left at the unconstrained minimum."""
        clear = self.strength > 1e-13 * self.strength.max(initial=0.0)
        gap = self.strength * (self.directions @ x) - self.seen
        return float(np.sum(gap[clear] ** 2))


@dataclass(frozen=True, eq=False)
class Model:
    """The prior ½ xᵀ quadratic x and, where asked, tr X − log|X| of the bodies; and svec X = rows·x + constant ⪰ ε."""

    quadratic: Array
    entropic: bool
    rows: Array  # (nb, 10, p)
    constant: Array  # (nb, 10)
    smallest: float  # ε; the entropic prior itself keeps bodies inside


@dataclass(frozen=True, eq=False)
class Program:
    """Objective and blocks, ready for `solve`; x is the first `size` variables."""

    P: sparse.csc_array
    q: Array
    blocks: tuple[Block, ...]
    size: int


def block(rows: Array, constant: Array, cone: Cone, width: int) -> Block:
    """A block of rows over x, padded to all variables."""
    padded = sparse.csr_array(rows)
    padded.resize((rows.shape[0], width))
    return Block(padded, constant, cone)


def independent(rows: Array, constant: Array) -> tuple[Array, Array, float]:
    """Equalities rows·x + constant = 0 without repetition, and by how much they contradict one another."""
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    keep = s > _DEPENDENT * s.max(initial=0.0)
    turned = U.T @ constant
    contradiction = constant - U[:, keep] @ turned[keep]
    return Vt[keep], turned[keep] / s[keep], float(np.abs(contradiction).max(initial=0.0))


@cache
def _pattern() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Array]:
    """Where svec [[X, Z], [Zᵀ, diag Z]] has X; and the slot, the entry of Z and the factor of all else."""
    row, col = np.tril_indices(8)[::-1]
    scale = np.where(row == col, 1.0, np.sqrt(2.0))
    found = []
    for k, (i, j) in enumerate(zip(*_LOWER, strict=True)):
        at = int(np.flatnonzero((row == i) & (col == 4 + j))[0])
        found.append((at, k, float(scale[at])))
        if i == j:
            found.append((int(np.flatnonzero((row == 4 + i) & (col == 4 + i))[0]), k, 1.0))
    slots, entries, factors = (np.array(column) for column in zip(*found, strict=True))
    return np.flatnonzero(col < 4), slots, entries, factors


def _entropic_blocks(model: Model, start: int, width: int) -> list[Block]:
    """The log-determinants: for each body 10 entries of Z and 4 logarithms, from column `start` on."""
    of_X, slots, entries, factors = _pattern()
    blocks = []
    for first, rows, constant in zip(range(start, width, 14), model.rows, model.constant, strict=True):
        i, j = np.nonzero(rows)
        where = np.concatenate([of_X[i], slots]), np.concatenate([j, first + entries])
        whole = np.zeros(36)
        whole[of_X] = constant
        matrix = sparse.csr_array((np.concatenate([rows[i, j], factors]), where), shape=(36, width))
        blocks.append(Block(matrix, whole, "semidefinite"))
        for log, diagonal in enumerate(_DIAGONAL):
            at = np.array([0, 2]), np.array([first + 10 + log, first + diagonal])
            cone = sparse.csr_array((np.ones(2), at), shape=(3, width))
            blocks.append(Block(cone, np.array([0.0, 1.0, 0.0]), "exponential"))
    return blocks


def build(
    data: Directions, weight: float, unit: float, model: Model, linear: Sequence[tuple[Array, Array, Cone]]
) -> Program:
    """The program at a weight of the prior, with κ of `unit`; `linear` are rows over x, constants and their cones."""
    p, nb, part = model.rows.shape[2], len(model.rows), weight / unit**2
    heard = data.strength > _SILENT * np.sqrt(weight)
    s, V, c = data.strength[heard], data.directions[heard], data.seen[heard]
    scale, k = np.maximum(s, unit), int(heard.sum())
    logs = 14 * nb if model.entropic else 0
    width = p + k + logs

    rows = np.hstack([(s / scale)[:, None] * V, -np.diag(unit / scale)])
    blocks = [block(rows, -c / scale, "zero", width)]
    blocks += [block(one, constant, cone, width) for one, constant, cone in linear if len(one)]
    P = sparse.block_diag([part * model.quadratic, sparse.diags_array(np.repeat([2.0, 0.0], [k, logs]))])
    q, identity = np.zeros(width), svec(np.eye(4))
    if model.entropic:
        # tr X − Σ log Z: the trace is linear in x, the logarithms are variables.
        q[:p] = part * np.einsum("bkp,k->p", model.rows, identity)
        q[p + k :].reshape(nb, 14)[:, 10:] = -part
        blocks += _entropic_blocks(model, p + k, width)
    else:
        for body, constant in zip(model.rows, model.constant, strict=True):
            blocks.append(block(body, constant - model.smallest * identity, "semidefinite", width))
    return Program(sparse.csc_array(P), q, tuple(blocks), p)
