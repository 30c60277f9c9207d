"""The sidecar: a small YAML file beside a model with what the model file cannot say.

Beside `arm.xml` or `arm.urdf` it is `arm.steelyard.yaml`. SI units; every field may be left out:

    description: what the robot is
    lock: {finger_joint1: 0.0}              # joints held at a value
    leave_out: [left_finger]                # moving bodies that are not identified
    home: {joint1: 0.0, joint2: -0.8}
    limits:
      joint1: {position: [-2.9, 2.9], velocity: 2.1, acceleration: 15, torque: 87, torque_rate: 1000}
    gear:                                   # how a recording of motors becomes one of joints
      joints: [joint5, joint6]
      ratio: [45, 32]
      coupling: [{motor_of: joint6, joint: joint5, ratio: 32}]
      at_motor_zero: [0.0, 0.0]
"""

from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ..errors import ModelError, unknown_name
from ..yamlfile import Fields, parse_fields, tuple_of_list, word

SUFFIX = ".steelyard.yaml"
MAX_CHARACTERS = 100_000  # a hundred joints take ten thousand; more is the wrong file
MAX_GEAR_JOINTS = 200  # the coupling matrix is dense
EXAMPLES = {  # the first stands for the file as a whole
    "home": "home: {joint1: 0.5}",
    "description": "description: a six-axis arm",
    "lock": "lock: {joint7: 0.0}",
    "leave_out": "leave_out: [left_finger]",
    "limits": "limits: {joint1: {position: [-2.9, 2.9], velocity: 2.1, torque: 87}}",
    "gear": "gear: {joints: [joint5, joint6], ratio: [45, 32]}",
}


def _rising(value: tuple[float, float]) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise ValueError(f"lower limit {value[0]:g} is not below upper limit {value[1]:g}; swap or correct them")
    return value


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"'{word(twice)}' is named twice; name it once")
    return names


def _usable_ratio(value: float) -> float:
    if not 0 < abs(value) <= 1e6:
        raise ValueError(f"{value:g} is not a gear ratio; give motor turns by joint turn, as 45 or -48")
    return value


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(tuple_of_list), AfterValidator(_once)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(allow_inf_nan=False, gt=0)]
Ratio = Annotated[float, AfterValidator(_usable_ratio)]
Range = Annotated[tuple[Finite, Finite], BeforeValidator(tuple_of_list), AfterValidator(_rising)]


class JointLimits(Fields):
    """What a joint may do, rad or m; `None` where nobody has said."""

    position: Range | None = None
    velocity: Positive | None = None
    acceleration: Positive | None = None
    torque: Positive | None = None  # N·m, or N for a slide
    torque_rate: Positive | None = None


class Coupling(Fields):
    """The motor of one joint turns `ratio` times as far as another joint, beside its own."""

    motor_of: Name
    joint: Name
    ratio: Ratio


class Gear(Fields):
    """The gear between motors and joints, one motor a joint: motor = P (joint − at_motor_zero)."""

    joints: Annotated[Names, Field(min_length=1, max_length=MAX_GEAR_JOINTS)]
    ratio: Annotated[tuple[Ratio, ...], BeforeValidator(tuple_of_list)]
    coupling: Annotated[tuple[Coupling, ...], BeforeValidator(tuple_of_list)] = ()
    at_motor_zero: Annotated[tuple[Finite, ...], BeforeValidator(tuple_of_list)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Gear":
        n = len(self.joints)
        for field, values in (("ratio", self.ratio), ("at_motor_zero", self.at_motor_zero)):
            if values is not None and len(values) != n:
                raise ValueError(f"{field} has {len(values)} numbers for {n} joints; give one a joint")
        for c in self.coupling:
            for name in (c.motor_of, c.joint):
                if name not in self.joints:
                    raise ValueError(unknown_name("joint in gear.joints", word(name), self.joints))
            if c.motor_of == c.joint:
                raise ValueError(f"'{word(c.joint)}' is coupled with itself; add that to its ratio")
        if np.linalg.matrix_rank(self.position_matrix) < n:
            raise ValueError(
                "ratio and coupling give a singular matrix; correct them until the motors determine the joints"
            )
        return self

    @property
    def position_matrix(self) -> np.ndarray:
        """P in motor = P (joint − at_motor_zero), rows motors, columns joints."""
        matrix = np.diag(np.array(self.ratio, dtype=float))
        for c in self.coupling:
            matrix[self.joints.index(c.motor_of), self.joints.index(c.joint)] += c.ratio
        return matrix

    @property
    def torque_matrix(self) -> np.ndarray:
        """Pᵀ in joint torque = Pᵀ motor torque: the power is the same on both sides of the gear."""
        return self.position_matrix.T

    @property
    def zero(self) -> np.ndarray:
        """Where the joints are when all motors read zero."""
        return np.zeros(len(self.joints)) if self.at_motor_zero is None else np.array(self.at_motor_zero)


class Sidecar(Fields):
    """What stands beside a model file: defaults, home pose, limits, gear. Names of joints are not checked here."""

    description: str = ""
    lock: dict[Name, Finite] = Field(default_factory=dict)
    leave_out: Names = ()
    home: dict[Name, Finite] = Field(default_factory=dict)
    limits: dict[Name, JointLimits] = Field(default_factory=dict)
    gear: Gear | None = None

    @model_validator(mode="after")
    def _home_within_limits(self) -> "Sidecar":
        for name, value in self.home.items():
            low, high = (self.limits[name].position if name in self.limits else None) or (-np.inf, np.inf)
            if not low <= value <= high:
                span = f"{low:g} … {high:g}"
                raise ValueError(f"home of '{word(name)}' is {value:g}, outside its limits {span}; move it inside")
        return self


def parse_sidecar(text: str, where: str) -> Sidecar:
    """The sidecar in a text; `where` names the file in errors."""
    return parse_fields(Sidecar, text, where, ModelError, "a sidecar", EXAMPLES, MAX_CHARACTERS)


def read_sidecar(model_path: str | Path) -> Sidecar:
    """The sidecar beside a model file, empty where there is none."""
    model = Path(model_path)
    path = model.parent / (model.stem + SUFFIX)
    try:
        with path.open("rb") as file:
            raw = file.read(4 * MAX_CHARACTERS + 1)  # UTF-8 takes at most four bytes a character
        return parse_sidecar(raw.decode("utf-8-sig"), str(path))
    except FileNotFoundError:
        return Sidecar()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: byte {error.start} is not UTF-8; save it as plain UTF-8 text") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}; mend it or move it away") from None
