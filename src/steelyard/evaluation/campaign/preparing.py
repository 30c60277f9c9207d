"""How a recording becomes a regression in a campaign: ways of preprocessing, by name."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...data.differentiate import CentralDifferences
from ...data.equiripple import Equiripple
from ...data.filters import Butterworth
from ...data.preprocess import preprocess
from ...data.recording import Recording
from ...data.resample import AlignMotion
from ...data.rows import DropStandstill, standstill_speeds
from ...data.steps import Step
from ...errors import OptionError, unknown_name
from ...identification.model import Experiment
from ...identification.problem import Problem, build_problem
from ...identification.shared import with_torques
from ...robot.robot import Robot
from ..study import decimation_for

Preparation = Callable[[Recording, Robot], Recording]
# Of the fixed low-pass that the field's benchmarks use.
_CUTOFF_HZ = 50.0
_WITH_CUTOFF = re.compile(r"(butterworth|equiripple)(?: +([0-9]+(?:\.[0-9]+)?) *Hz)?")
_SLOPES = CentralDifferences("differentiated", "differentiated")


def _usual(recording: Recording, robot: Robot) -> Recording:
    return preprocess(recording, None, robot)


def _differences(recording: Recording, robot: Robot, low_pass: Sequence[Step] = ()) -> Recording:
    """Positions as they were measured, or through a fixed low-pass, differentiated twice."""
    half = 0.5 / float(recording.about["control_hz"])
    return preprocess(recording, (*low_pass, _SLOPES, AlignMotion(half), DropStandstill()), robot)


def _exact(recording: Recording, robot: Robot) -> Recording:
    """The motion as it was, which only a simulation knows: the torque's noise is then all there is."""
    more = recording.more
    exact = replace(recording, q=more["q_true"], qd=more["qd_true"], qdd=more["qdd_true"])
    return DropStandstill().apply(exact)


# With whether a parallel low-pass and decimation follow.
_NAMED: dict[str, tuple[Preparation, bool]] = {
    "auto": (_usual, True),
    "auto, all rows": (_usual, False),
    "none": (_differences, False),
    "exact": (_exact, False),
}
PREPARATIONS = (*_NAMED, "butterworth", "equiripple", "butterworth 20 Hz")


def preparation(name: str) -> tuple[Preparation, bool]:
    """A way of preprocessing by name, and whether a parallel low-pass and decimation follow."""
    if name in _NAMED:
        return _NAMED[name]
    found = _WITH_CUTOFF.fullmatch(name)
    if found is None or float(found[2] or _CUTOFF_HZ) <= 0:
        raise OptionError(unknown_name("preprocessing", name, PREPARATIONS))
    cutoff = float(found[2] or _CUTOFF_HZ)
    low_pass = Butterworth(order=4, cutoff_hz=cutoff) if found[1] == "butterworth" else Equiripple(cutoff)
    return partial(_differences, low_pass=(low_pass,)), False


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
    prepare, decimated = preparation(how)
    experiments = [_experiment(prepare(recording, robot), recording) for recording in recordings]
    prepared = [one.recording for one in experiments]
    first = prepared[0]
    assert isinstance(first, Recording)
    if len(prepared) > 1 and all(isinstance(one, Recording) and _same_motion(first, one) for one in prepared[1:]):
        return with_torques(_problem(robot, experiments[0], decimated), experiments)
    return [_problem(robot, experiment, decimated) for experiment in experiments]


def _experiment(prepared: Recording, measured: Recording) -> Experiment:
    return Experiment(prepared, measured=measured)
