"""`Loop`: what is known of how a robot was driven while it was recorded, and the closed loop that follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.recording import Recording
from ...errors import DataError, OptionError
from ...robot.robot import Robot
from ...simulation.controllers import Controller
from ...simulation.loop import ClosedLoop
from ...simulation.reference import reference_from_samples

Array = NDArray[np.float64]

# Sampling times may be off a tick by this share of it and still count as on it.
_ON_A_TICK = 1e-3
_START_S = 0.03  # s, that tell position and speed at the start


@dataclass(frozen=True, eq=False)
class Loop:
    """How the robot was driven; what is None is taken from what the recording says about itself.

    `nominal` is the model that the controller knows, where it uses one: by default the robot as it was loaded.
    """

    controller: Controller | None = None
    nominal: Robot | None = None
    control_hz: float | None = None
    delay_ticks: int | None = None  # control ticks from truth to measurement
    velocity: str | None = None  # what the controller sees: "differentiated" positions, or "measured"
    integrator: str | None = None
    step: float | None = None  # s, the longest inside a tick


class UnknownLoop(DataError):
    """The recording does not say how the robot was driven, and nobody else did."""


def measured_of(recording: Recording) -> str:
    """A recording's name in messages."""
    return str(recording.about.get("file", "the recording"))


def source_of(recording: Recording) -> str:
    """What made the recording; a file that it was read from stands before that."""
    earlier = recording.about.get("earlier")
    told = earlier.get("source") if isinstance(earlier, Mapping) else None
    return str(told or recording.about.get("source", ""))


def has_reference(recording: Recording) -> bool:
    return "q_d" in recording.more and recording.more["q_d"].shape == recording.q.shape


def _told(recording: Recording) -> Mapping[str, Any]:
    told = recording.about.get("controller")
    return told if isinstance(told, Mapping) else {}


def controller_of(recording: Recording, given: Loop) -> Controller:
    """The controller that was given, or the one that the recording names."""
    if given.controller is not None:
        return given.controller
    told = _told(recording)
    if "kp" not in told or "kd" not in told:
        raise UnknownLoop(
            f"{measured_of(recording)} does not say which controller drove the robot; give it, --loop FILE with kp, "
            "kd, ki (in Python loop=Loop(controller=Controller(kp, kd, ki), control_hz=…)), or let CLOE shoot from "
            "measured torques"
        )
    known = {f.name for f in fields(Controller)}
    try:
        return Controller(**{name: value for name, value in told.items() if name in known})
    except TypeError as error:
        raise DataError(f"the controller that {measured_of(recording)} names cannot be read: {error}") from None


def is_known(recording: Recording, given: Loop) -> bool:
    """Whether the loop can be simulated."""
    return has_reference(recording) and (given.controller is not None or "kp" in _told(recording))


def _nominal(robot: Robot, recording: Recording, given: Loop, controller: Controller) -> Robot | None:
    """The model that the controller knows."""
    if given.nominal is not None:
        return given.nominal
    uses_model = controller.model != "none" or controller.feed_forward
    if not uses_model or given.controller is not None or source_of(recording) != "simulation":
        return robot
    if recording.about.get("nominal_sha256") is not None:
        raise DataError(
            f"the controller of {measured_of(recording)} used a model of its own ({controller.model}), which the "
            "recording does not hold; give it: loop=Loop(nominal=robot)"
        )
    # It knew the simulated robot itself.
    told = recording.about.get("parameters")
    if not isinstance(told, Mapping) or not set(robot.parameter_names) <= set(told):
        raise DataError(
            f"{measured_of(recording)} lacks the parameters that its controller used; give loop=Loop(nominal=robot)"
        )
    return robot.with_parameters([float(told[name]) for name in robot.parameter_names])


def reference_of_recording(recording: Recording, control_hz: float) -> Array:
    more = recording.more
    if not has_reference(recording):
        raise UnknownLoop(
            f"{measured_of(recording)} lacks the desired motion, channel q_d (and qd_d, qdd_d) with a column a joint; "
            "without it the loop cannot be simulated again: record it, or let CLOE shoot from measured torques"
        )
    rate = more.get("qd_d")
    rate_rate = None if rate is None else more.get("qdd_d")
    return reference_from_samples(recording.t, more["q_d"], rate, rate_rate, control_hz)


def on_ticks(times: Array, control_hz: float) -> int | None:
    """Ticks a sample where every sample stands on a tick, in even steps; else None."""
    if len(times) < 2:
        return 1
    step = float(np.median(np.diff(times))) * control_hz
    ratio = round(step)
    if ratio < 1:
        return None
    off = np.abs((times - times[0]) * control_hz - ratio * np.arange(len(times))).max()
    return ratio if off < _ON_A_TICK * ratio else None


def starts_at_rest(recording: Recording) -> bool:
    """Whether the recording is known to begin at rest on its reference."""
    return source_of(recording) in ("simulation", "rig") and abs(float(recording.t[0])) < 1e-9


def _beginning(recording: Recording) -> tuple[Array, Array]:
    """Times of the first rows, and the parabola through their positions: rows 1, t, t²."""
    rows = min(len(recording), max(5, int(_START_S * recording.rate_hz)))
    t = recording.t[:rows] - recording.t[0]
    fit = np.zeros((3, recording.n))
    fit[: min(3, rows)] = np.polynomial.polynomial.polyfit(t, recording.q[:rows], min(2, rows - 1))
    return t, fit


def start_of(recording: Recording) -> Array:
    """Where the motion began: at rest on the reference where that is known, else a parabola through the first rows."""
    if starts_at_rest(recording) and has_reference(recording):
        wanted = recording.more["q_d"][0]
        return np.stack([wanted, np.zeros_like(wanted)])
    return _beginning(recording)[1][:2]


def _held(recording: Recording, controller: Controller) -> Array:
    """What the controller's integral may hold at the start: the torque that errors of the start do not explain."""
    gains = controller.gains(recording.n)
    if controller.mode() or controller.feed_forward:
        return np.zeros(recording.n)  # the model's part is not known from the torque alone
    t, fit = _beginning(recording)
    wanted = recording.more["q_d"]
    rate = recording.more.get("qd_d")
    rate = np.gradient(wanted, recording.t, axis=0) if rate is None else rate
    powers = np.vander(t, 3, increasing=True)
    error = wanted[: len(t)] - powers @ fit
    error_rate = rate[: len(t)] - powers[:, :2] @ (fit[1:] * [[1.0], [2.0]])
    summed = np.cumsum(error, axis=0) / recording.rate_hz
    held: Array = np.mean(
        recording.tau[: len(t)] - gains[0] * error - gains[1] * summed - gains[2] * error_rate, axis=0
    )
    return held


def loop_of(robot: Robot, recording: Recording, given: Loop) -> ClosedLoop:
    """The loop that made a recording, sampled at its times where they stand on ticks, else at every tick."""
    about, rig = recording.about, source_of(recording) == "rig"
    controller = controller_of(recording, given)
    rate = given.control_hz
    if rate is None:
        told = 1.0 / float(about["step"]) if rig and "step" in about else about.get("control_hz")
        rate = float(told) if told is not None else recording.rate_hz
    if recording.n != robot.n:
        raise OptionError(f"the recording has {recording.n} joints, {robot.name} has {robot.n}")
    ratio = on_ticks(recording.t, rate)
    sensors = about.get("sensors") if isinstance(about.get("sensors"), Mapping) else {}
    assert isinstance(sensors, Mapping)
    velocity = given.velocity or ("measured" if rig else sensors.get("velocity", "differentiated"))
    delay = given.delay_ticks if given.delay_ticks is not None else sensors.get("delay_ticks", 0)
    integrator = given.integrator or ("semi-implicit" if rig else about.get("integrator", "rk4"))
    step = given.step if given.step is not None else about.get("step")
    start = start_of(recording)
    if not starts_at_rest(recording) and controller.gains(robot.n)[1].any() and has_reference(recording):
        start = np.vstack([start, _held(recording, controller)])
    return ClosedLoop(
        robot,
        reference_of_recording(recording, rate),
        controller,
        rate,
        rate / ratio if ratio is not None else None,
        None if step is None else float(step),
        str(integrator),
        nominal=_nominal(robot, recording, given, controller),
        start=start,
        velocity=str(velocity),
        delay_ticks=int(delay),
    )
