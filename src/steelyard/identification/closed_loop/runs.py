"""Runs of pieces, side by side in threads, and the regression that simulated states make."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...compiled import threads
from ...data.recording import Recording
from ..model import Experiment
from ..problem import Problem
from .pieces import Piece, Trace

Array = NDArray[np.float64]
T = TypeVar("T")


def side_by_side(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Results of all tasks, in as many threads as there are processors; kernels do not hold the interpreter's lock."""
    workers = min(threads(), len(tasks))
    if workers <= 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(workers, thread_name_prefix="steelyard-run") as pool:
        return list(pool.map(lambda task: task(), tasks))


@dataclass(eq=False)
class Runs:
    """Pieces, and how often they were simulated: a run is one pass through all of them."""

    pieces: Sequence[Piece]
    count: int = field(default=0, init=False)

    def traces(
        self, theta: Array, starts: Sequence[Array | None] | None = None, gains: Array | None = None
    ) -> list[Trace]:
        """What every piece gives with these parameters."""
        self.count += 1
        begin = [None] * len(self.pieces) if starts is None else list(starts)
        pairs = zip(self.pieces, begin, strict=True)
        return side_by_side([partial(piece.run, theta, start, gains) for piece, start in pairs])


def whole(traces: Sequence[Trace]) -> bool:
    """Whether every simulation came to its end."""
    return all(trace.reached == len(trace.q) for trace in traces)


def simulated_problem(problem: Problem, recordings: Sequence[Recording], traces: Sequence[Trace]) -> Problem:
    """The regression of measured torques on simulated states; rows that no simulation reached do not count."""
    experiments = []
    for experiment, recording, trace in zip(problem.experiments, recordings, traces, strict=True):
        use = np.ones(recording.q.shape)
        for source in (recording, experiment.recording):
            if isinstance(source, Recording) and "use" in source.more and np.array_equal(source.t, recording.t):
                told = np.asarray(source.more["use"])
                use *= told[:, None] if told.ndim == 1 else told
        # Rows that were not reached need numbers, because filters look across; they do not count.
        use[trace.reached :] = 0.0
        last = max(trace.reached - 1, 0)
        q, qd, qdd = (np.where(np.isfinite(x), x, x[last]) for x in trace[:3])
        states = Recording(recording.t, q, recording.tau, qd, qdd, recording.joints, {"use": use}, recording.about)
        experiments.append(Experiment(states, experiment.load))
    return replace(problem, experiments=tuple(experiments), _kept={})
