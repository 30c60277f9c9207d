"""Total least squares: errors in the regressor as well as in the torque."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Fit, Progress, rank_message, silent
from ..problem import Problem
from ..solving import Solution, solve
from .least_squares import weighted

Array = NDArray[np.float64]
_EXACT = (".offset",)


@dataclass(frozen=True)
class TLS:
    """min ‖[ΔW, Δtau] D‖_F with (W + ΔW) beta = tau + Δtau, from the SVD of the scaled triangle.

    `scaling` says how errors are spread over columns: "relative", in proportion to each column's length (no choice of
    units then decides); "none", all alike, the textbook's [W, tau]. Columns without error (offsets, and those whose
    names end as `exact` says) are fitted exactly first. Rows are weighted by joint as in WLS unless `weighted` is
    False. Golub and Van Loan, SIAM J. Numer. Anal. 17 (1980); Van Huffel and Vandewalle, 1991.
    """

    scaling: Literal["relative", "none"] = "relative"
    exact: tuple[str, ...] = _EXACT
    weighted: bool = True
    # The regressor's errors in units of the torque's, a number a column after scaling: 1 is the classical method.
    regressor_noise: float = 1.0
    name = "TLS"

    def __post_init__(self) -> None:
        if self.scaling not in ("relative", "none"):
            raise OptionError(f"TLS knows no scaling '{self.scaling}'; valid: relative, none")
        if not (np.isfinite(self.regressor_noise) and self.regressor_noise > 0):
            raise OptionError(f"the regressor noise of TLS is {self.regressor_noise}; give one above 0 (OLS has 0)")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        n = problem.robot.n
        weights = weighted(problem, 20, 1e-6)[1] if self.weighted else np.ones(n)
        A, y = problem.stacked(weights)
        least = solve(A, y, problem.nominal)
        lost = rank_message(problem, least)
        if lost:
            told = f"total least squares needs all base parameters to be visible, so this is least squares; {lost}"
            return Fit(least, weights, False, told, 1)
        names = problem.model.base.names
        exact = np.array([name.endswith(self.exact) for name in names])
        size = np.linalg.norm(A, axis=0) if self.scaling == "relative" else np.ones(problem.rank)
        D = np.where(exact, 1.0, self.regressor_noise * size)
        torque = np.linalg.norm(y) if self.scaling == "relative" else 1.0
        Z = np.column_stack([A[:, exact], A[:, ~exact] / D[~exact], y / torque])
        # Exact columns first: below their triangle is what they cannot explain.
        R: Array = np.asarray(np.linalg.qr(Z, mode="r"))
        m = int(exact.sum())
        _, s, Vt = np.linalg.svd(R[m:, m:])
        v = Vt[-1]
        if abs(v[-1]) < 1e-10:
            told = "the smallest singular vector has no torque in it: total least squares has no solution here"
            return Fit(least, weights, False, told, 1)
        beta = np.empty(problem.rank)
        rest = -v[:-1] / v[-1]
        beta[~exact] = rest * torque / D[~exact]
        if m:
            beta[exact] = np.linalg.solve(R[:m, :m], (R[:m, -1] - R[:m, m:-1] @ rest) * torque)
        gap = s[-1] / s[-2] if len(s) > 1 and s[-2] > 0 else 0.0
        message = "solved" if gap < 0.9 else (
            f"the two smallest singular values are alike (ratio {gap:.3f}): the answer hangs on noise"
        )  # fmt: skip
        return Fit(
            Solution(beta, least.root, least.blind),
            weights,
            bool(gap < 0.9),
            message,
            1,
            about={"singular_value_ratio": float(gap)},
        )
