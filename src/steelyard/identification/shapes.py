"""Shapes: the values in which torque is not linear, each with the terms that it gives shape to.

`ML` seeks them together with the linear parameters. A shape has one value a joint, or one for all; where value j acts
on the torque of joint j alone, one finite difference shows all slopes at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .model import sliced_torque
from .problem import Problem
from .readings import DelayReading, GainReading, StiffnessReading, TemperatureReading, temperatures
from .terms import LuGreTerm, StribeckTerm, Term

Array = NDArray[np.float64]
# Where the search for a velocity of Stribeck's begins, as shares of a joint's fastest: the deepest dip wins.
_VELOCITIES = (0.01, 0.03, 0.1, 0.3)
_DISPLACEMENTS = (3e-4, 3e-3, 3e-2)  # rad or m that bristles bend
# How far joints twist under their usual torque: where the search for a stiffness begins, and how far it goes.
_TWISTS = (1e-4, 1e-3, 1e-2)
_LEAST_TWIST, _MOST_TWIST = 1e-6, 0.3
_LONGEST_DELAY = 0.1  # s; more is no delay of a signal but a wrong recording


def recordings_of(problem: Problem) -> list[Recording]:
    found = [one.recording for one in problem.experiments if isinstance(one.recording, Recording)]
    if len(found) < len(problem.experiments):
        raise DataError("what is not linear is found in recordings in memory; this one is a stream of blocks")
    return found


def _fastest(problem: Problem) -> Array:
    speeds = [np.abs(one.qd).max(axis=0) for one in recordings_of(problem) if one.qd is not None]
    fastest: Array = np.max(speeds, axis=0)
    return np.where(fastest > 0, fastest, 1.0)


@dataclass(frozen=True)
class Shape:
    """The face of all shapes: values in their own units, and the coordinates (logarithms or not) that ML steps in."""

    word: ClassVar[str]
    unit: ClassVar[tuple[str, str]]  # of a rotary and of a linear joint
    logarithmic: ClassVar[bool] = True
    apart: ClassVar[bool] = True  # value j acts on joint j alone
    instead_of: ClassVar[tuple[str, ...]] = ()  # joint properties that it takes the place of

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{dof}.{self.word}" for dof in robot.dof_names)

    def units(self, robot: Robot) -> tuple[str, ...]:
        return tuple(self.unit[dof in robot.layout.linear_dofs] for dof in robot.dof_names)

    def starts(self, problem: Problem) -> list[Array]:
        """Values to begin at; of several, each joint takes the one that leaves it the smallest residual."""
        raise NotImplementedError

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        raise NotImplementedError

    def fixes(self, robot: Robot) -> Mapping[str, float]:
        """Parameters that have to be known beside it."""
        return {}

    def check(self, problem: Problem) -> None:
        """Refuse what cannot show these values."""
        taken = [prop for prop in problem.robot.layout.properties if prop in self.instead_of]
        if taken:
            raise OptionError(
                f"the column {taken[0]} of the robot says what {self.word} says too; identify without it "
                "(--friction offset)"
            )


@dataclass(frozen=True)
class StribeckVelocity(Shape):
    """The speed over which static friction falls to Coulomb's."""

    word: ClassVar[str] = "stribeck_velocity"
    unit: ClassVar[tuple[str, str]] = ("rad/s", "m/s")

    def starts(self, problem: Problem) -> list[Array]:
        return [share * _fastest(problem) for share in _VELOCITIES]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        fastest = _fastest(problem)
        return 1e-3 * fastest, 2.0 * fastest


@dataclass(frozen=True)
class StribeckExponent(Shape):
    """The exponent δ of the fall, exp(−|q̇/q̇s|^δ)."""

    word: ClassVar[str] = "stribeck_shape"
    unit: ClassVar[tuple[str, str]] = ("1", "1")

    def starts(self, problem: Problem) -> list[Array]:
        return [np.full(problem.robot.n, 2.0)]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        return np.full(problem.robot.n, 0.3), np.full(problem.robot.n, 6.0)


@dataclass(frozen=True)
class BristleDisplacement(Shape):
    """How far LuGre's bristles bend before they slip: Fc/σ0."""

    word: ClassVar[str] = "bristle_displacement"
    unit: ClassVar[tuple[str, str]] = ("rad", "m")
    instead_of: ClassVar[tuple[str, ...]] = ("coulomb",)

    def starts(self, problem: Problem) -> list[Array]:
        return [np.full(problem.robot.n, d) for d in _DISPLACEMENTS]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        return np.full(problem.robot.n, 1e-6), np.full(problem.robot.n, 0.3)


@dataclass(frozen=True)
class BristleRise(Shape):
    """By what part LuGre's static friction exceeds Coulomb's: Fs/Fc − 1."""

    word: ClassVar[str] = "bristle_rise"
    unit: ClassVar[tuple[str, str]] = ("1", "1")
    logarithmic: ClassVar[bool] = False

    def starts(self, problem: Problem) -> list[Array]:
        return [np.full(problem.robot.n, 0.3)]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        return np.zeros(problem.robot.n), np.full(problem.robot.n, 20.0)


@dataclass(frozen=True)
class BristleVelocity(StribeckVelocity):
    """The speed over which LuGre's static friction falls to Coulomb's."""

    word: ClassVar[str] = "bristle_velocity"


@dataclass(frozen=True)
class TemperatureCoefficient(Shape):
    """The share by which a joint's friction changes with a kelvin."""

    word: ClassVar[str] = "temperature_coefficient"
    unit: ClassVar[tuple[str, str]] = ("1/K", "1/K")
    logarithmic: ClassVar[bool] = False

    def starts(self, problem: Problem) -> list[Array]:
        return [np.zeros(problem.robot.n)]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        return np.full(problem.robot.n, -0.1), np.full(problem.robot.n, 0.1)

    def check(self, problem: Problem) -> None:
        warm = np.concatenate([temperatures(one, problem.robot.n) for one in recordings_of(problem)])
        if (np.ptp(warm, axis=0) == 0).all():
            raise DataError(
                f"the temperature is {warm[0, 0]:g} °C throughout; record cold and warm, or leave temperature out"
            )


@dataclass(frozen=True)
class Delay(Shape):
    """How much later than the motion the torque was recorded."""

    word: ClassVar[str] = "delay"
    logarithmic: ClassVar[bool] = False
    apart: ClassVar[bool] = False

    def names(self, robot: Robot) -> tuple[str, ...]:
        return ("delay",)

    def units(self, robot: Robot) -> tuple[str, ...]:
        return ("s",)

    def starts(self, problem: Problem) -> list[Array]:
        return [np.zeros(1)]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        return np.array([-_LONGEST_DELAY]), np.array([_LONGEST_DELAY])


@dataclass(frozen=True)
class DriveGain(Shape):
    """By what the recorded signal of a drive has to be multiplied to be a torque; a known load gives the scale."""

    word: ClassVar[str] = "drive_gain"
    unit: ClassVar[tuple[str, str]] = ("N·m per recorded unit", "N per recorded unit")

    def starts(self, problem: Problem) -> list[Array]:
        """What the model as it is would need; 1 where that says nothing."""
        across, size = np.zeros(problem.robot.n), np.zeros(problem.robot.n)
        for one, recording in zip(problem.experiments, recordings_of(problem), strict=True):
            signal = recording.tau
            size += (signal**2).sum(axis=0)
            across += (signal * sliced_torque(problem.model, problem.model.nominal, recording, one.load)).sum(axis=0)
        return [np.where(across > 0, across / np.where(size > 0, size, 1.0), 1.0)]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        start = self.starts(problem)[0]
        return 1e-3 * start, 1e3 * start

    def check(self, problem: Problem) -> None:
        carried = [one.load is not None and one.load.parameters is not None for one in problem.experiments]
        known = bool(problem.model.fixed) or any(bool(np.any(part)) for part in problem.robot.known)
        if not any(carried) and not known:
            raise DataError(
                "drive gains need something whose torque is known: a recording with a known load beside one without "
                "(--load FILE=BODY:KG,X,Y,Z), or bodies that are not identified"
            )


@dataclass(frozen=True)
class JointStiffness(Shape):
    """The stiffness of joints between their rotors and links, by what it does to torque.

    Torque shows what a rotor has, and what its link, only through the spring itself; so the rotors are taken as known.
    """

    word: ClassVar[str] = "stiffness"
    unit: ClassVar[tuple[str, str]] = ("N·m/rad", "N/m")
    apart: ClassVar[bool] = False
    encoders: str = "motor"

    def starts(self, problem: Problem) -> list[Array]:
        return [self._torque(problem) / twist for twist in _TWISTS]

    def limits(self, problem: Problem) -> tuple[Array, Array]:
        torque = self._torque(problem)
        return torque / _MOST_TWIST, torque / _LEAST_TWIST

    def check(self, problem: Problem) -> None:
        if any(one.load is not None for one in problem.experiments):
            raise OptionError("stiffness is sought in recordings without a load; leave the loaded ones out")
        rotors = list(self.fixes(problem.robot).values())
        if self.encoders == "link" and min(rotors, default=0.0) <= 0:
            raise OptionError(
                "behind encoders on the links a stiffness shows by what it does to the rotors, and the model gives "
                "some joints none; state their armature in the model, or by --fix joint1.armature=0.1"
            )

    def fixes(self, robot: Robot) -> Mapping[str, float]:
        layout = robot.layout
        block = layout.block("armature") if "armature" in layout.properties else slice(0, 0)
        return dict(zip(layout.names[block], robot.parameters[block].tolist(), strict=True))

    def _torque(self, problem: Problem) -> Array:
        squares = np.mean([np.mean(one.tau**2, axis=0) for one in recordings_of(problem)], axis=0)
        return np.sqrt(np.maximum(squares, 1e-12))


# By the words of the command line: what is sought together.
SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "stribeck": (StribeckVelocity(),),
    "stribeck-shape": (StribeckVelocity(), StribeckExponent()),
    "lugre": (BristleDisplacement(), BristleRise(), BristleVelocity()),
    "temperature": (TemperatureCoefficient(),),
    "delay": (Delay(),),
    "gains": (DriveGain(),),
    "stiffness": (JointStiffness(),),
    "stiffness-link": (JointStiffness("link"),),
}


def terms_of(shapes: Sequence[Shape], values: Mapping[str, Array], parameters: Array) -> tuple[Term, ...]:
    """The terms that values of shapes, by their words, make, beside the robot's parameters as they are known so far."""
    given = {word: tuple(x.tolist()) for word, x in values.items()}
    terms: list[Any] = []
    if "stribeck_velocity" in given:
        terms.append(StribeckTerm(given["stribeck_velocity"], given.get("stribeck_shape", 2.0)))
    if "bristle_displacement" in given:
        terms.append(LuGreTerm(given["bristle_displacement"], given["bristle_rise"], given["bristle_velocity"]))
    if "temperature_coefficient" in given:
        terms.append(TemperatureReading(given["temperature_coefficient"]))
    if "delay" in given:
        terms.append(DelayReading(given["delay"][0]))
    if "drive_gain" in given:
        terms.append(GainReading(given["drive_gain"]))
    sides = [shape.encoders for shape in shapes if isinstance(shape, JointStiffness)]
    if sides:
        terms.append(StiffnessReading(given["stiffness"], sides[0], tuple(parameters.tolist())))
    return tuple(terms)


def shapes_named(names: Sequence[str]) -> tuple[Shape, ...]:
    """Shapes by the words of `SHAPES`, each once."""
    wrong = [name for name in names if name not in SHAPES]
    if wrong:
        raise OptionError(f"nothing that is not linear is called '{wrong[0]}'; valid: {', '.join(SHAPES)}")
    shapes = tuple(dict.fromkeys(shape for name in names for shape in SHAPES[name]))
    if len({shape.word for shape in shapes}) < len(shapes):
        raise OptionError("encoders are on the motors (stiffness) or on the links (stiffness-link); choose one")
    return shapes
