"""Readings: terms without columns, that say how a recording is to be read.

The torque of a model is a function of motion; a recording may have the two at different times, in the units of a drive,
or with friction that depends on the temperature. A reading is part of the model, so that predictions are made through
it too.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.filters import low_pass, motion_bands
from ..data.recording import Recording
from ..data.resample import AlignMotion
from ..dynamics import inverse_dynamics
from ..errors import DataError, OptionError
from ..physics.friction import REFERENCE_TEMPERATURE
from ..robot.robot import Robot

Array = NDArray[np.float64]
# Channels: by how much all friction columns of a row are multiplied; velocity and acceleration of the rotors.
FRICTION_SCALE, ROTOR_RATE, ROTOR_ACCELERATION = "friction_scale", "rotor_qd", "rotor_qdd"
# Joint torque is differentiated twice; what is this many times faster than the motion is noise.
_TIMES_THE_MOTION = 4.0
# The torque belongs to where the links are, which it says itself.
_TURNS = 3


@dataclass(frozen=True)
class Reading:
    """A term that has no parameters of its own."""

    whole: ClassVar[bool] = False  # whether a row depends on others, so that streams of blocks cannot be read

    def names(self, robot: Robot) -> tuple[str, ...]:
        return ()

    def units(self, robot: Robot) -> tuple[str, ...]:
        return ()

    def nominal(self, robot: Robot) -> Array:
        return np.zeros(0)

    def columns(self, robot: Robot, block: Recording) -> Array:
        return np.zeros((len(block), robot.n, 0))

    def prepared(self, robot: Robot, recording: Recording) -> Recording:
        """The recording with what its columns need."""
        return recording

    def gains(self, robot: Robot) -> Array:
        """By what the recorded torque of every joint has to be multiplied."""
        return np.ones(robot.n)


def temperatures(recording: Recording, n: int) -> Array:
    """The channel `temperature`, (T, n), or the constant that a simulation noted; °C."""
    found = recording.more.get("temperature", recording.about.get("temperature"))
    if found is None or (np.ndim(found) == 0 and not isinstance(found, int | float | np.ndarray)):
        raise DataError(
            "the recording has no temperature; name its columns in a mapping file, as "
            "`more: {temperature: {columns: [T1, T2]}}`"
        )
    values = np.asarray(found, dtype=float)
    if values.ndim == 1 and len(values) == len(recording):
        values = values[:, None]
    try:
        return np.array(np.broadcast_to(values, (len(recording), n)))
    except ValueError:
        raise DataError(
            f"the channel 'temperature' has shape {values.shape}; give one column, or one for each of {n} joints"
        ) from None


@dataclass(frozen=True)
class TemperatureReading(Reading):
    """All friction of a joint grows with its temperature: F(T) = F(T0) [1 + α (T − T0)]."""

    coefficient: tuple[float, ...]  # α of every joint, 1/K
    reference: float = REFERENCE_TEMPERATURE  # T0, °C

    def prepared(self, robot: Robot, recording: Recording) -> Recording:
        warm = temperatures(recording, robot.n) - self.reference
        scale = np.maximum(0.0, 1.0 + np.asarray(self.coefficient) * warm)
        return replace(recording, more={**recording.more, FRICTION_SCALE: scale})


def torque_rate(recording: Recording, tau: Array) -> Array:
    """dtau/dt of a predicted torque; 0 beside flips of dry friction, for no delay can be read from a jump."""
    slope = np.gradient(tau, recording.t, axis=0)
    assert recording.qd is not None
    flips = np.zeros(slope.shape, dtype=bool)
    flips[1:] = recording.qd[1:] * recording.qd[:-1] <= 0
    near = flips | np.roll(flips, 1, axis=0) | np.roll(flips, -1, axis=0)
    return np.where(near, 0.0, slope)


@dataclass(frozen=True)
class DelayReading(Reading):
    """The torque was recorded so much later than the motion it belongs to."""

    whole: ClassVar[bool] = True
    seconds: float = 0.0

    def prepared(self, robot: Robot, recording: Recording) -> Recording:
        if self.seconds == 0.0 or len(recording) < 4:
            return recording
        return AlignMotion(-self.seconds).apply(recording)


@dataclass(frozen=True)
class GainReading(Reading):
    """What was recorded is no torque but the signal of a drive: tau = gain · signal."""

    gain: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.gain or not np.isfinite(self.gain).all() or 0.0 in self.gain:
            raise OptionError(f"the drive gains are {self.gain}; give a finite number other than 0 for every joint")

    def gains(self, robot: Robot) -> Array:
        if len(self.gain) != robot.n:
            raise OptionError(f"{len(self.gain)} drive gains for {robot.n} joints of {robot.name}; give one a joint")
        return np.asarray(self.gain)


@dataclass(frozen=True)
class StiffnessReading(Reading):
    """Joints are springs: K (θ − q) = T, tau = B θ̈ + T + friction, T the torque of the link side by `parameters`.

    With encoders on the motors the links are at q = θ − T/K, and friction and rotor inertia go with θ; with encoders
    on the links the rotors are at θ = q + T/K. Spong, J. Dyn. Sys. Meas. Control 109, 1987.
    """

    whole: ClassVar[bool] = True
    stiffness: tuple[float, ...] = ()  # K of every joint
    encoders: str = "motor"  # or "link"
    parameters: tuple[float, ...] = ()  # of the robot

    def __post_init__(self) -> None:
        if not self.stiffness or min(self.stiffness) <= 0:
            raise OptionError(f"the stiffnesses are {self.stiffness}; give one above 0 for every joint")
        if self.encoders not in ("motor", "link"):
            raise OptionError(f"encoders are on the motor or on the link, not '{self.encoders}'")

    def prepared(self, robot: Robot, recording: Recording) -> Recording:
        q, qd, qdd = recording.q, recording.qd, recording.qdd
        assert qd is not None
        assert qdd is not None
        links = recording
        for _ in range(_TURNS if self.encoders == "motor" else 1):
            twist = self._torque(robot, links) / np.asarray(self.stiffness)
            rate = np.gradient(twist, recording.t, axis=0)
            acceleration = np.gradient(rate, recording.t, axis=0)
            if self.encoders == "link":
                return replace(recording, more={**recording.more, ROTOR_ACCELERATION: qdd + acceleration})
            links = replace(recording, q=q - twist, qd=qd - rate, qdd=qdd - acceleration)
        return replace(links, more={**recording.more, ROTOR_RATE: qd, ROTOR_ACCELERATION: qdd})

    def _torque(self, robot: Robot, recording: Recording) -> Array:
        """T along the measured motion, as smooth as the motion is."""
        theta = np.asarray(self.parameters, dtype=float).copy()
        layout = robot.layout
        if self.encoders == "motor":
            theta[layout.inertial.stop :] = 0.0
        elif "armature" in layout.properties:
            theta[layout.block("armature")] = 0.0
        assert recording.qd is not None
        assert recording.qdd is not None
        T = inverse_dynamics(robot.with_parameters(theta), recording.q, recording.qd, recording.qdd)
        bands = motion_bands(replace(recording, qd=None), recording.rate_hz)[0]
        cutoff = _TIMES_THE_MOTION * max((band.motion_hz for band in bands), default=np.inf)
        return T if cutoff > 0.4 * recording.rate_hz else low_pass(T, recording.rate_hz, cutoff, 4)
