"""Least squares on a triangular factor, with what the data cannot see left where it was."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Singular values of W, columns of length one, below this share of the largest count as zero. Rounding leaves 1e-15;
# a direction a million times fainter than the brightest drowns in any sensor's noise.
BLIND = 1e-7


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer of a least-squares problem, and what is left of it for covariances."""

    beta: Array  # (r,)
    root: Array  # (r, k): root rootᵀ is the pseudo-inverse of AᵀA
    blind: Array  # (r, r − k): directions in which beta is what it was before

    @property
    def inverse(self) -> Array:
        return self.root @ self.root.T


def solve(A: Array, y: Array, before: Array, tolerance: float = BLIND) -> Solution:
    """min ‖A beta − y‖, and among equals the one nearest to `before`, in units of the columns' lengths."""
    norms = np.linalg.norm(A, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=True)
    k = int((s > tolerance * s.max(initial=0.0)).sum())
    V = Vt.T / scale[:, None]
    root = V[:, :k] / s[:k]
    beta = before + root @ (U[:, :k].T @ (y - A @ before))
    return Solution(beta, root, V[:, k:])
