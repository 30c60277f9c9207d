"""Problems that share what they can: one regressor and one factorisation for many torques and many nominal models.

[W_j, tau_1 … tau_K] = Q_j R_j: the first columns of R_j are the triangle of W_j, each further one is a torque's.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError
from ..robot.robot import Robot
from .factors import Factor, Factors, absorb
from .model import Experiment, Rows
from .problem import Problem

Array = NDArray[np.float64]


def with_nominal(problem: Problem, robot: Robot) -> Problem:
    """The same data seen from another model of the same robot: only what is known beforehand differs."""
    model = problem.model
    same = (robot.bodies, robot.parameter_names) == (model.robot.bodies, model.robot.parameter_names)
    if not same or any(not np.array_equal(a, b) for a, b in zip(robot.known, model.robot.known, strict=True)):
        raise DataError(f"{robot.name} has other parameters, or knows others, than the robot of this problem")
    return replace(problem, model=model.with_nominal(robot), given=problem.factors)


def _torque_factor(whole: Array, columns: NDArray[np.int64], k: int, rows: int) -> Factor:
    """The triangle of W with the k-th torque, from the triangle of W with all of them."""
    r = len(columns)
    R = np.zeros((r + 1, r + 1))
    R[:r, :r], R[:r, r] = whole[:r, :r], whole[:r, r + k]
    R[r, r] = np.linalg.norm(whole[r : r + k + 1, r + k])
    return Factor(columns, R, rows)


def _filtered(problem: Problem, change: Array, rate_hz: float) -> Array:
    return change if problem.decimation is None else problem.decimation.apply(change, rate_hz)


def _prepared(experiments: Sequence[Experiment]) -> list[Recording]:
    found = [one.recording for one in experiments if isinstance(one.recording, Recording)]
    if len(found) != len(experiments):
        raise DataError("torques are exchanged between recordings in memory, not streams")
    return found


def with_torques(problem: Problem, experiments: Sequence[Experiment]) -> list[Problem]:
    """A problem for each of these prepared experiments, whose motion is that of the problem's own only one."""
    recordings = _prepared(experiments)
    (first,) = _prepared(problem.experiments)
    blocks = list(problem.blocks())
    edges = np.concatenate([[0], np.cumsum([len(block.tau) for block in blocks])])
    changes = [_filtered(problem, one.tau - first.tau, first.rate_hz) for one in recordings]
    torques = [
        [block.tau + change[a:b] for change in changes]
        for block, (a, b) in zip(blocks, pairwise(edges.tolist()), strict=True)
    ]
    wholes, counts = [], []
    for j, columns in enumerate(problem.model.active):
        R, count = np.zeros((0, len(columns) + len(recordings))), 0
        for block, taus in zip(blocks, torques, strict=True):
            use = block.use[:, j]
            rows = np.column_stack([block.W[use, j][:, columns], *(tau[use, j] for tau in taus)])
            R, count = absorb(R, rows), count + len(rows)
        missing = R.shape[1] - len(R)
        wholes.append(np.vstack([R, np.zeros((missing, R.shape[1]))]) if missing > 0 else R)
        counts.append(count)
    made = []
    for k, experiment in enumerate(experiments):
        parts = [
            _torque_factor(whole, columns, k, count)
            for whole, columns, count in zip(wholes, problem.model.active, counts, strict=True)
        ]
        kept = [Rows(block.W, taus[k], block.use) for block, taus in zip(blocks, torques, strict=True)]
        given = Factors(problem.rank, tuple(parts))
        made.append(replace(problem, experiments=(experiment,), given=given, _kept={"rows": kept}))
    return made
