"""When did a linear model change, and by how much: a generalised likelihood ratio over a sliding window.

Rows are y = Wβ + noise, and β may jump by E Δ at one of the blocks of the window, Δ ~ N(0, D). What is known of β from
before the window is the information Λ, η, so that a model which has not been learned yet raises no alarm: for a jump
at block k, with G, h the sums of WᵀR⁻¹W and WᵀR⁻¹y over the window and G_k, h_k those from block k on,

    [ Λ + G    G_k E             ] [β]   [ η + h   ]
    [ EᵀG_k    EᵀG_k E + D⁻¹     ] [Δ] = [ Eᵀ h_k  ],      gain_k = ½ sᵀ S⁻¹ s,

where S and s are what is left for Δ when β is eliminated. The largest gain tells the block. Willsky and Jones, "A
generalized likelihood ratio approach to the detection and estimation of jumps in linear systems", IEEE TAC 21, 1976.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...errors import DataError
from .kalman import Array


class Information(NamedTuple):
    """Σ WᵀR⁻¹W and Σ WᵀR⁻¹y, y about a fixed reference."""

    matrix: Array  # (p, p)
    vector: Array  # (p,)

    def __add__(self, other: object) -> "Information":
        if not isinstance(other, Information):
            return NotImplemented
        return Information(self.matrix + other.matrix, self.vector + other.vector)


def nothing(p: int) -> Information:
    """No information about p parameters."""
    return Information(np.zeros((p, p)), np.zeros(p))


def of_rows(W: Array, y: Array, deviation: Array) -> Information:
    """What rows (m, p) with this noise say."""
    white = W / deviation[:, None]
    return Information(white.T @ white, white.T @ (y / deviation))


def solved(information: Information) -> tuple[Array, Array]:
    """Mean and covariance of what information that has full rank says."""
    try:
        factor = cho_factor(information.matrix, lower=True)
    except np.linalg.LinAlgError:
        raise DataError("the information matrix is not positive definite; give every parameter a prior") from None
    return cho_solve(factor, information.vector), cho_solve(factor, np.eye(len(information.vector)))


class Block(NamedTuple):
    """A stretch of rows."""

    start: float  # s
    stop: float
    rows: Information


class Jump(NamedTuple):
    """The likeliest jump: from which block on, how much likelier than none, its size and covariance."""

    block: int
    start: float  # s
    gain: float  # log likelihood ratio
    size: Array  # (d,)
    covariance: Array  # (d, d)


@dataclass(frozen=True, eq=False)
class Jumps:
    """How β may jump: along the columns of E, by about D."""

    E: Array  # (p, d)
    D: Array  # (d, d)

    def estimate(self, before: Information, after: Information) -> tuple[Array, Array]:
        """Δ and its covariance where the time of the jump is known; `before` has the prior of β in it."""
        S, s = self._eliminated(before + after, after.matrix[None] @ self.E, after.vector[None])
        return np.linalg.solve(S[0], s[0]), np.linalg.inv(S[0])

    def _eliminated(self, whole: Information, GE: Array, h: Array) -> tuple[Array, Array]:
        """S and s of every candidate; GE = G_k E (k, p, d), h = h_k (k, p)."""
        factor = cho_factor(whole.matrix, lower=True)
        count, p, d = GE.shape
        side = cho_solve(factor, np.moveaxis(GE, 0, 1).reshape(p, count * d)).reshape(p, count, d)
        mean = cho_solve(factor, whole.vector)
        EGE = np.einsum("pd,kpe->kde", self.E, GE)
        S = EGE + np.linalg.inv(self.D) - np.einsum("kpd,pke->kde", GE, side)
        s = h @ self.E - np.einsum("kpd,p->kd", GE, mean)
        return 0.5 * (S + np.swapaxes(S, 1, 2)), s

    def likeliest(self, before: Information, blocks: tuple[Block, ...], shortest: int) -> Jump | None:
        """The likeliest first block of a jump that has lasted for at least `shortest` blocks."""
        if len(blocks) <= shortest:
            return None
        matrices = np.cumsum([block.rows.matrix for block in blocks[::-1]], axis=0)[::-1]
        vectors = np.cumsum([block.rows.vector for block in blocks[::-1]], axis=0)[::-1]
        whole = before + Information(matrices[0], vectors[0])
        last = len(blocks) - shortest + 1
        S, s = self._eliminated(whole, matrices[1:last] @ self.E, vectors[1:last])
        size = np.linalg.solve(S, s[..., None])[..., 0]
        gains = 0.5 * np.einsum("kd,kd->k", s, size)
        k = int(gains.argmax())
        return Jump(k + 1, blocks[k + 1].start, float(gains[k]), size[k], np.linalg.inv(S[k]))

    def widened(self, information: Information) -> Information:
        """What is known of β + E Δ when this was known of β: P + E D Eᵀ."""
        mean, P = solved(information)
        matrix = np.linalg.inv(P + self.E @ self.D @ self.E.T)
        matrix = 0.5 * (matrix + matrix.T)
        return Information(matrix, matrix @ mean)


def forgotten(information: Information, prior: Information, share: float) -> Information:
    """Information whose part beyond the prior has aged: Λ0 + f (Λ − Λ0)."""
    return Information(
        prior.matrix + share * (information.matrix - prior.matrix),
        prior.vector + share * (information.vector - prior.vector),
    )
