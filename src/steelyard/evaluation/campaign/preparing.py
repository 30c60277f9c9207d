"""How a recording becomes a regression in a campaign: ways of preprocessing, by name."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...data.differentiate import CentralDifferences
from ...data.filters import Butterworth
from ...data.preprocess import preprocess
from ...data.recording import Recording
from ...data.resample import AlignMotion
from ...data.rows import DropStandstill, standstill_speeds
from ...identification.model import Experiment
from ...identification.problem import Problem, build_problem
from ...identification.shared import with_torques
from ...robot.robot import Robot
from ..study import decimation_for

Preparation = Callable[[Recording, Robot], Recording]
# Of the fixed low-pass that the field's benchmarks use.
_LOW_PASS = Butterworth(order=4, cutoff_hz=50.0)
_SLOPES = CentralDifferences("differentiated", "differentiated")


def _usual(recording: Recording, robot: Robot) -> Recording:
    return preprocess(recording, None, robot)


def _differences(recording: Recording, robot: Robot) -> Recording:
    """Positions as they were measured, differentiated twice."""
    half = 0.5 / float(recording.about["control_hz"])
    return preprocess(recording, (_SLOPES, AlignMotion(half), DropStandstill()), robot)


def _butterworth(recording: Recording, robot: Robot) -> Recording:
    half = 0.5 / float(recording.about["control_hz"])
    return preprocess(recording, (_LOW_PASS, _SLOPES, AlignMotion(half), DropStandstill()), robot)


def _exact(recording: Recording, robot: Robot) -> Recording:
    """The motion as it was, which only a simulation knows: the torque's noise is then all there is."""
    more = recording.more
    exact = replace(recording, q=more["q_true"], qd=more["qd_true"], qdd=more["qdd_true"])
    return DropStandstill().apply(exact)


# With whether a parallel low-pass and decimation follow.
PREPARATIONS: dict[str, tuple[Preparation, bool]] = {
    "auto": (_usual, True),
    "auto, all rows": (_usual, False),
    "butterworth": (_butterworth, False),
    "none": (_differences, False),
    "exact": (_exact, False),
}


def _same_motion(one: Recording, other: Recording) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("t", "q", "qd", "qdd")]
    pairs.append((one.more.get("use", np.ones(1)), other.more.get("use", np.ones(1))))
    return all(np.array_equal(a, b) for a, b in pairs)


def _problem(robot: Robot, experiment: Experiment, decimated: bool) -> Problem:
    recording = experiment.recording
    assert isinstance(recording, Recording)
    assert recording.qd is not None
    dead_zone = standstill_speeds(recording.qd)
    structure = build_problem(robot, [experiment])
    decimation = decimation_for("auto", [experiment], structure.rank)[0] if decimated else None
    return build_problem(robot, [experiment], decimation=decimation, dead_zone=dead_zone)


def problems_of(robot: Robot, recordings: list[Recording], how: str) -> list[Problem]:
    """A regression a recording; those that differ in torque alone share one regressor and one factorisation."""
    prepare, decimated = PREPARATIONS[how]
    experiments = [_experiment(prepare(recording, robot), recording) for recording in recordings]
    prepared = [one.recording for one in experiments]
    first = prepared[0]
    assert isinstance(first, Recording)
    if len(prepared) > 1 and all(isinstance(one, Recording) and _same_motion(first, one) for one in prepared[1:]):
        return with_torques(_problem(robot, experiments[0], decimated), experiments)
    return [_problem(robot, experiment, decimated) for experiment in experiments]


def _experiment(prepared: Recording, measured: Recording) -> Experiment:
    return Experiment(prepared, measured=measured)
