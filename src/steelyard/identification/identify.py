"""`identify`: from a robot and its recordings to an estimate."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.decimation import Decimation
from ..data.preprocess import preprocess
from ..data.recording import Recording
from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .conclude import estimate
from .estimate import Estimate
from .estimators import estimator_named
from .fit import Estimator, Progress, silent
from .model import Experiment
from .problem import Problem, build_problem
from .terms import TERMS, Term

Array = NDArray[np.float64]
Recordings = Recording | Experiment | Sequence[Recording | Experiment]


def versions() -> dict[str, str]:
    """What computed a result."""
    import mujoco
    import scipy

    from .. import __version__

    return {
        "steelyard": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "mujoco": mujoco.__version__,
    }


def fingerprint(recording: Recording) -> str:
    """A hash of the numbers of a recording."""
    digest = hashlib.sha256()
    for values in (recording.t, recording.q, recording.tau, recording.qd, recording.qdd):
        if values is not None:
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def told_of(recording: Recording) -> dict[str, Any]:
    """What a result says of a recording that went into it."""
    keep = ("source", "file", "files", "sha256", "format", "mapping", "repairs", "preprocessing", "segment")
    about = {key: recording.about[key] for key in keep if key in recording.about}
    return {
        **about,
        "samples": len(recording),
        "seconds": recording.duration,
        "rate_hz": recording.rate_hz,
        "numbers_sha256": fingerprint(recording),
    }


def terms_named(names: Sequence[str]) -> tuple[Term, ...]:
    """Terms by name, as `TERMS` has them."""
    wrong = [name for name in names if name not in TERMS]
    if wrong:
        raise OptionError(f"no term '{wrong[0]}'; valid: {', '.join(TERMS)}")
    return tuple(TERMS[name] for name in names)


def prepare(recording: Recording, robot: Robot, steps: Any = "auto") -> Recording:
    """A recording with velocities and accelerations: by the usual steps ("auto"), given ones, or as it is (None)."""
    if steps is None:
        if recording.qd is None or recording.qdd is None:
            raise DataError("without preprocessing a recording needs its own qd and qdd; leave preprocessing on")
        return recording
    if callable(steps):  # a rule that makes steps for each recording
        steps = steps(recording, robot)
    return preprocess(recording, None if isinstance(steps, str) else steps, robot)


def problem_of(
    robot: Robot,
    recordings: Recordings,
    *,
    preprocessing: Any = "auto",
    terms: Sequence[Term] = (),
    fixed: Mapping[str, float] | None = None,
    decimation: Decimation | None = None,
    dead_zone: Array | None = None,
) -> Problem:
    """The regression of recordings as they were measured."""
    given = [recordings] if isinstance(recordings, Recording | Experiment) else list(recordings)
    experiments = [x if isinstance(x, Experiment) else Experiment(x) for x in given]
    ready = [
        Experiment(prepare(x.recording, robot, preprocessing), x.load, x.measured or x.recording)
        if isinstance(x.recording, Recording)
        else x
        for x in experiments
    ]
    return build_problem(robot, ready, terms=terms, fixed=fixed, decimation=decimation, dead_zone=dead_zone)


def identify(
    robot: Robot,
    recordings: Recordings,
    method: Estimator | str = "WLS",
    *,
    preprocessing: Any = "auto",
    terms: Sequence[Term] = (),
    fixed: Mapping[str, float] | None = None,
    decimation: Decimation | None = None,
    dead_zone: Array | None = None,
    progress: Progress = silent,
) -> Estimate:
    """Identify a robot's parameters from recordings by a method (`OLS()`, `WLS()`, … or its name).

    Parameters that the data cannot tell apart keep the values of the robot as it was loaded.
    """
    estimator = estimator_named(method) if isinstance(method, str) else method
    problem = problem_of(
        robot,
        recordings,
        preprocessing=preprocessing,
        terms=terms,
        fixed=fixed,
        decimation=decimation,
        dead_zone=dead_zone,
    )
    return identify_problem(problem, estimator, progress=progress)


def identify_problem(
    problem: Problem, estimator: Estimator, *, about: Mapping[str, Any] | None = None, progress: Progress = silent
) -> Estimate:
    """Solve a problem that stands, and note what it was made of."""
    told: dict[str, Any] = {
        **(about or {}),
        "versions": versions(),
        "recordings": [told_of(x.recording) for x in problem.experiments if isinstance(x.recording, Recording)],
    }
    if problem.decimation is not None:
        told["decimation"] = {"cutoff_hz": problem.decimation.cutoff_hz, "factor": problem.decimation.factor}
    return estimate(problem, estimator, told, progress)
