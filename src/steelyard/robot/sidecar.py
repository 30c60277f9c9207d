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
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from ..errors import ModelError, unknown_name

SUFFIX = ".steelyard.yaml"
MAX_CHARACTERS = 100_000  # a hundred joints take ten thousand; more is the wrong file
MAX_GEAR_JOINTS = 200  # the coupling matrix is dense
EXAMPLES = {
    "description": "description: a six-axis arm",
    "lock": "lock: {joint7: 0.0}",
    "leave_out": "leave_out: [left_finger]",
    "home": "home: {joint1: 0.5}",
    "limits": "limits: {joint1: {position: [-2.9, 2.9], velocity: 2.1, torque: 87}}",
    "gear": "gear: {joints: [joint5, joint6], ratio: [45, 32]}",
}
# pydantic's kinds of error, in the words of a YAML file
PLAIN = {
    "dict_type": "not a mapping",
    "finite_number": "not a finite number",
    "float_type": "not a number",
    "greater_than": "not above zero",
    "missing": "missing",
    "model_type": "not a mapping",
    "string_too_short": "an empty name",
    "string_type": "not text",
    "too_long": "too many values",
    "too_short": "too few values",
    "tuple_type": "not a list",
}


def _tuple_of_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _rising(value: tuple[float, float]) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise ValueError(f"lower limit {value[0]:g} is not below upper limit {value[1]:g}; swap or correct them")
    return value


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"'{_word(twice)}' is named twice; name it once")
    return names


def _usable_ratio(value: float) -> float:
    if not 0 < abs(value) <= 1e6:
        raise ValueError(f"{value:g} is not a gear ratio; give motor turns by joint turn, as 45 or -48")
    return value


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_tuple_of_list), AfterValidator(_once)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(allow_inf_nan=False, gt=0)]
Ratio = Annotated[float, AfterValidator(_usable_ratio)]
Range = Annotated[tuple[Finite, Finite], BeforeValidator(_tuple_of_list), AfterValidator(_rising)]


class _Fields(BaseModel):
    """A value with checked fields that cannot be set again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class JointLimits(_Fields):
    """What a joint may do, rad or m; `None` where nobody has said."""

    position: Range | None = None
    velocity: Positive | None = None
    acceleration: Positive | None = None
    torque: Positive | None = None  # N·m, or N for a slide
    torque_rate: Positive | None = None


class Coupling(_Fields):
    """The motor of one joint turns `ratio` times as far as another joint, beside its own."""

    motor_of: Name
    joint: Name
    ratio: Ratio


class Gear(_Fields):
    """The gear between motors and joints, one motor a joint: motor = P (joint − at_motor_zero)."""

    joints: Annotated[Names, Field(min_length=1, max_length=MAX_GEAR_JOINTS)]
    ratio: Annotated[tuple[Ratio, ...], BeforeValidator(_tuple_of_list)]
    coupling: Annotated[tuple[Coupling, ...], BeforeValidator(_tuple_of_list)] = ()
    at_motor_zero: Annotated[tuple[Finite, ...], BeforeValidator(_tuple_of_list)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Gear":
        n = len(self.joints)
        for field, values in (("ratio", self.ratio), ("at_motor_zero", self.at_motor_zero)):
            if values is not None and len(values) != n:
                raise ValueError(f"{field} has {len(values)} numbers for {n} joints; give one a joint")
        for c in self.coupling:
            for name in (c.motor_of, c.joint):
                if name not in self.joints:
                    raise ValueError(unknown_name("joint in gear.joints", _word(name), self.joints))
            if c.motor_of == c.joint:
                raise ValueError(f"'{_word(c.joint)}' is coupled with itself; add that to its ratio")
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


class Sidecar(_Fields):
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
                raise ValueError(f"home of '{_word(name)}' is {value:g}, outside its limits {span}; move it inside")
        return self


def _word(value: object) -> str:
    """A name, or whatever stands in the place of one, on one line and cut where long."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text[:60])[1:-1] + ("…" if len(text) > 60 else "")


def _shown(value: object) -> str:
    """A value as a message shows it: scalars as they stand, containers by their kind."""
    if value is None:
        return "empty"
    if isinstance(value, dict | list | tuple | set):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a huge number"  # Python refuses to print the longest ones
    return f"'{_word(value)}'" if isinstance(value, str) else _word(value)


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _nodes(text: str, where: str) -> yaml.Node | None:
    """The syntax tree, in which lines are known, after refusing what YAML reads without a word."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    seen: set[int] = set()
    stack = [root] if root else []
    while stack:
        node = stack.pop()
        if id(node) in seen:
            line = f"{where}, line {node.start_mark.line + 1}"
            raise ModelError(f"{line}: an alias (*) repeats this; write the value out where it is used")
        seen.add(id(node))
        keys: set[str] = set()
        for key, value in _pairs(node):
            stack.append(value)
            line = f"{where}, line {key.start_mark.line + 1}"
            if key.tag != "tag:yaml.org,2002:str":
                name = f"'{_word(key.value)}'" if isinstance(key, yaml.ScalarNode) else "a list or a mapping"
                raise ModelError(f"{line}: YAML does not read {name} as a name; put the name in quotes")
            if key.value in keys:
                raise ModelError(f"{line}: '{_word(key.value)}' is given twice; keep one of the two")
            keys.add(key.value)
        if isinstance(node, yaml.SequenceNode):
            stack += node.value
    return root


def _line(root: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """The line of the deepest part of `location` that stands in the file."""
    node, line = root, 0
    for part in location:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line if node else line
            continue
        found = [(key, value) for key, value in _pairs(node) if key.value == str(part)]
        if not found:
            break
        line, node = found[0][0].start_mark.line, found[0][1]
    return line + 1


def _valid_fields(location: tuple[int | str, ...]) -> tuple[str, ...]:
    inside: type[BaseModel] = Sidecar
    if len(location) > 1:
        inside = {"limits": JointLimits, "gear": Coupling if location[1] == "coupling" else Gear}[str(location[0])]
    return tuple(inside.model_fields)


def _sentence(error: ErrorDetails) -> str:
    """What is wrong with one field, and the remedy."""
    kind, location, value = error["type"], error["loc"], error["input"]
    field = ".".join(_word(part) for part in location if part != "[key]")
    if kind == "extra_forbidden":
        return unknown_name("field", _word(location[-1]), _valid_fields(location))
    if kind == "value_error":  # ours, with its own remedy
        return f"{field}: {error['ctx']['error']}" if field else f"{error['ctx']['error']}"
    problem = PLAIN.get(kind, error["msg"])
    problem = f"{field} is {problem}" if kind == "missing" else f"{field} is {_shown(value)}, {problem}"
    if kind == "float_type" and isinstance(value, str):
        return f"{problem}; write it without quotes, and an exponent as in 1.0e+3"
    return f"{problem}; write it like {EXAMPLES.get(str(location[0]) if location else 'home', EXAMPLES['limits'])}"


def parse_sidecar(text: str, where: str) -> Sidecar:
    """The sidecar in a text; `where` names the file in errors."""
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"{where}: {len(text)} characters, at most {MAX_CHARACTERS}; is this a sidecar at all?")
    try:
        root = _nodes(text, where)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ModelError(f"{where}{line}: not YAML: {what}; mend it and save it as plain UTF-8 text") from None
    except RecursionError:
        raise ModelError(f"{where}: nested too deeply; a sidecar has four levels") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML passes on what int(), datetime() and others say to an odd scalar
        raise ModelError(f"{where}: a value cannot be read ({error}); use plain names, numbers and lists") from None
    if data is None:
        return Sidecar()
    if not isinstance(data, dict):
        raise ModelError(f"{where}: holds {_shown(data)}, not fields; write for example {EXAMPLES['home']}")
    try:
        return Sidecar.model_validate(data)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        line = f", line {_line(root, first['loc'])}" if first["loc"] else ""
        raise ModelError(f"{where}{line}: {_sentence(first)}{more}") from None


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
