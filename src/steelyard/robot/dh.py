"""Robots from a table of Denavit-Hartenberg parameters, in YAML or as a mapping:

    name: ur10
    convention: standard            # or modified
    unit: rad                       # or deg: of alpha, theta, rpy and, for revolute joints, range and velocity
    gravity: [0, 0, -9.81]
    base: {pos: [0, 0, 0], rpy: [0, 0, 0]}      # of frame 0 in the world
    tool: {pos: [0, 0, 0.1], rpy: [0, 0, 0]}    # of the site 'tool' in the last frame
    joints:
      - {name: j1, link: link1, type: revolute, a: 0, alpha: pi/2, d: 0.1273, theta: 0, range: [-pi, pi],
         velocity: 2.1, torque: 330, mass: 7.1, com: [0, 0, 0], inertia: {Ixx: 0.03, Iyy: 0.03, Izz: 0.02},
         armature: 0.1, damping: 2.0, coulomb: 5.0}

Standard: frame i is frame i-1 times Rz(theta) Tz(d) Tx(a) Rx(alpha), it sits at the far end of link i, and joint i
turns about the z axis of frame i-1. Modified (Craig): Rx(alpha) Tx(a) Rz(theta) Tz(d), a and alpha of the row being
those before the joint, and joint i turns about the z axis of frame i itself. Either way the body frame is the DH
frame, so that a link's parameters are in it. `theta` (prismatic: `d`) is the offset to which the joint's position
adds. `inertia` is about the centre of mass in the axes of the frame: three principal moments, or six numbers
[Ixx, Ixy, Ixz, Iyy, Iyz, Izz], or a mapping. SI units.
"""

import math
import re
from collections.abc import Hashable, Mapping
from typing import Any

import mujoco
import numpy as np
import yaml
from numpy.typing import NDArray

from ..errors import ModelError, unknown_name
from .inertials import nearest_physical
from .parameters import INERTIAL

# Without figures in the table a link is this sphere; identification needs only the kinematics
PLACEHOLDER_MASS = 1.0  # kg
PLACEHOLDER_RADIUS = 0.05  # m

MAX_CHARACTERS = 256 * 1024
MAX_JOINTS = 200
CONVENTIONS = ("standard", "modified")
_TOP = ("name", "convention", "unit", "gravity", "base", "tool", "joints")
_POSE = ("pos", "rpy")
_NUMBERS = ("a", "alpha", "d", "theta")
_PHYSICS = ("armature", "damping", "coulomb")
_LIMITS = ("velocity", "torque")
_JOINT = ("name", "link", "type", *_NUMBERS, "range", *_LIMITS, "mass", "com", "inertia", *_PHYSICS)
_MOMENTS = INERTIAL[4:]
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PI = re.compile(r"(?P<sign>[+-]?)\s*(?:(?P<factor>\d+\.?\d*|\.\d+)\s*\*?\s*)?pi(?:\s*/\s*(?P<divisor>\d+\.?\d*))?")


class _Loader(yaml.SafeLoader):
    """Safe YAML that does not let a second key of the same name win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"'{key.value[:60]}' is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _shown(value: object) -> str:
    """A value in an error: never long, never recursive."""
    if isinstance(value, str):
        return f"'{value[:60]}'"
    if isinstance(value, bool | float | None) or (isinstance(value, int) and value.bit_length() < 200):
        return "nothing" if value is None else str(value)
    return f"a {type(value).__name__}"


def _number(value: object, what: str, angle_in: str | None = None) -> float:
    """A finite number; text like '-pi/2' too, where it is an angle in radians."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    elif isinstance(value, str) and _PLAIN.fullmatch(value.strip()):
        number = float(value)  # YAML takes 1e-3 for text
    elif isinstance(value, str) and angle_in and (match := _PI.fullmatch(value.strip())):
        if angle_in == "deg":
            raise ModelError(f"{what} is '{value}', with pi, but unit is deg; write degrees, or leave unit out")
        sign, factor, divisor = match["sign"], float(match["factor"] or 1), float(match["divisor"] or 1)
        number = (-1 if sign == "-" else 1) * factor * math.pi / divisor if divisor else math.nan
    if not math.isfinite(number):
        also = ", or an angle like -pi/2" if angle_in == "rad" else ""
        raise ModelError(f"{what} is {_shown(value)}; give a finite number{also}")
    return math.radians(number) if angle_in == "deg" else number


def _numbers(value: object, count: int, what: str, angle_in: str | None = None) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        raise ModelError(f"{what} is {_shown(value)}; give {count} numbers in brackets")
    return [_number(item, f"{what}[{k}]", angle_in) for k, item in enumerate(value)]


def _mapping(value: object, valid: tuple[str, ...], what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{what} is {_shown(value)}; give a mapping of {', '.join(valid)}")
    for key in value:
        if key not in valid:
            name = key if isinstance(key, str) else _shown(key)
            raise ModelError(f"{what}: {unknown_name('key', name[:60], valid)}")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"{what} is {_shown(value)}; give a name (in quotes where YAML takes it for something else)")
    return value


def _rotation(axis: int, angle: float) -> NDArray:
    c, s = math.cos(angle), math.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(4)
    matrix[i, i], matrix[i, j], matrix[j, i], matrix[j, j] = c, -s, s, c
    return matrix


def _translation(x: float, y: float, z: float) -> NDArray:
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def _quaternion(matrix: NDArray) -> NDArray:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(matrix[:3, :3]).ravel())
    return quaternion


def _pose(table: Mapping, key: str, unit: str, where: str) -> NDArray:
    given = _mapping(table.get(key, {}), _POSE, f"{where}: {key}")
    x, y, z = _numbers(given.get("pos", [0, 0, 0]), 3, f"{where}: {key}.pos")
    roll, pitch, yaw = _numbers(given.get("rpy", [0, 0, 0]), 3, f"{where}: {key}.rpy", unit)
    return _translation(x, y, z) @ _rotation(2, yaw) @ _rotation(1, pitch) @ _rotation(0, roll)


def _inertia(value: object, what: str) -> NDArray:
    if isinstance(value, dict):
        given = _mapping(value, _MOMENTS, what)
        six = [_number(given.get(name, 0.0), f"{what}.{name}") for name in _MOMENTS]
        for name in ("Ixx", "Iyy", "Izz"):
            if name not in given:
                raise ModelError(f"{what} has no {name}; give Ixx, Iyy and Izz")
    elif isinstance(value, list) and len(value) == 3:
        return np.diag(_numbers(value, 3, what))
    else:
        six = _numbers(value, 6, what)
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _weigh(body: mujoco.MjsBody, row: Mapping, what: str, notes: list[str]) -> list[str]:
    """Give the body its inertial; the names of what had to be made up."""
    made_up = [key for key in ("mass", "com", "inertia") if key not in row]
    if "mass" in made_up and len(made_up) < 3:
        raise ModelError(f"{what} has {' and '.join({'com', 'inertia'} - set(made_up))} but no mass; give its mass")
    mass = _number(row.get("mass", PLACEHOLDER_MASS), f"{what}: mass")
    if mass < 0:
        raise ModelError(f"{what}: mass is {mass:g} kg; a mass is not negative")
    body.mass, body.explicitinertial = mass, True
    body.ipos = _numbers(row.get("com", [0, 0, 0]), 3, f"{what}: com")
    sphere = 0.4 * mass * PLACEHOLDER_RADIUS**2 * np.eye(3)
    inertia, wrong = nearest_physical(_inertia(row["inertia"], f"{what}: inertia") if "inertia" in row else sphere)
    if wrong and mass > 0:
        notes.append(f"{what}: its inertia {wrong}")
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    body.fullinertia = [xx, yy, zz, xy, xz, yz]
    return made_up


def _placement(convention: str, alpha: float, a: float, theta: float, d: float) -> tuple[NDArray, NDArray, NDArray]:
    """Pose of frame i in frame i-1; a point on the joint axis and its direction, both in frame i."""
    link, joint = _translation(a, 0, 0) @ _rotation(0, alpha), _rotation(2, theta) @ _translation(0, 0, d)
    if convention == "modified":
        return link @ joint, np.zeros(3), np.array([0.0, 0.0, 1.0])
    pose = joint @ link
    return pose, -pose[:3, :3].T @ pose[:3, 3], pose[2, :3].copy()


def _kind(row: Mapping, what: str) -> str:
    kind = row.get("type", "revolute")
    if kind not in ("revolute", "prismatic"):
        raise ModelError(
            f"{what}: {unknown_name('joint type', str(_shown(kind)).strip(chr(39)), ('revolute', 'prismatic'))}"
        )
    return kind


def _add_row(parent: mujoco.MjsBody, row: Mapping, name: str, convention: str, unit: str, what: str) -> mujoco.MjsBody:
    kind = _kind(row, what)
    for key in ("a", "alpha", "d" if kind == "revolute" else "theta"):
        if key not in row:
            raise ModelError(f"{what} has no {key}; give it, 0 where it is zero")
    a, d = (_number(row.get(key, 0), f"{what}: {key}") for key in ("a", "d"))
    alpha, theta = (_number(row.get(key, 0), f"{what}: {key}", unit) for key in ("alpha", "theta"))
    pose, point, axis = _placement(convention, alpha, a, theta, d)
    body = parent.add_body(name=row["link"], pos=pose[:3, 3], quat=_quaternion(pose))
    revolute = kind == "revolute"
    joint = body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_HINGE if revolute else mujoco.mjtJoint.mjJNT_SLIDE,
        pos=point,
        axis=axis,
    )
    if "range" in row:
        low, high = _numbers(row["range"], 2, f"{what}: range", unit if revolute else None)
        if not low < high:
            raise ModelError(f"{what}: range is from {low:g} to {high:g}; the lower limit comes first")
        joint.range, joint.limited = [low, high], mujoco.mjtLimited.mjLIMITED_TRUE
    physics = {key: _number(row.get(key, 0), f"{what}: {key}") for key in _PHYSICS}
    for key, value in physics.items():
        if value < 0:
            raise ModelError(f"{what}: {key} is {value:g}; it is not negative")
    joint.armature, joint.frictionloss = physics["armature"], physics["coulomb"]
    joint.damping = [physics["damping"], *joint.damping[1:]]
    torque = _limits(row, unit, what).get("torque")
    if torque is not None:
        joint.actfrcrange, joint.actfrclimited = [-torque, torque], mujoco.mjtLimited.mjLIMITED_TRUE
    return body


def _limits(row: Mapping, unit: str, what: str) -> dict[str, float]:
    angle = unit if _kind(row, what) == "revolute" else None
    found = {
        key: _number(row[key], f"{what}: {key}", angle if key == "velocity" else None) for key in _LIMITS if key in row
    }
    for key, value in found.items():
        if value <= 0:
            raise ModelError(f"{what}: {key} is {value:g}; a limit is above zero")
    return found


def _rows(table: Mapping, where: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, words for errors, and contents of every row, with unique names filled in."""
    joints = table.get("joints")
    if not isinstance(joints, list) or not joints or len(joints) > MAX_JOINTS:
        raise ModelError(f"{where}: joints must be a list of 1 to {MAX_JOINTS} rows of a DH table")
    rows = []
    for k, given in enumerate(joints, start=1):
        row = dict(_mapping(given, _JOINT, f"{where}: joint {k}"))
        name = _text(row.get("name", f"joint{k}"), f"{where}: joint {k}: name")
        row["link"] = _text(row.get("link", f"link{k}"), f"{where}: joint {k}: link")
        rows.append((name, f"{where}: joint {k} ('{name}')", row))
    for what, names in (
        ("joint", [name for name, _, _ in rows]),
        ("link", ["world", "base", *(r["link"] for *_, r in rows)]),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ModelError(f"{where}: the {what} name '{twice}' is taken; choose another")
    return rows


def _choice(table: Mapping, key: str, valid: tuple[str, ...], where: str, otherwise: str | None = None) -> str:
    value = table.get(key, otherwise)
    if value not in valid:
        raise ModelError(f"{where}: {key} is {_shown(value)}; give {' or '.join(valid)}")
    return str(value)


def _placeholder_notes(made_up: dict[str, list[str]]) -> list[str]:
    notes = []
    without = [link for link, keys in made_up.items() if "mass" in keys]
    size = f"{PLACEHOLDER_MASS:g} kg sphere of radius {PLACEHOLDER_RADIUS:g} m"
    if without:
        who = "all links" if len(without) == len(made_up) else ", ".join(f"'{link}'" for link in without)
        notes.append(
            f"no masses in the DH table for {who}: nominal figures are placeholders, a {size} at the frame origin"
        )
    for key, what in (
        ("com", "centre of mass: taken at the frame origin"),
        ("inertia", f"inertia: taken as that of a sphere of radius {PLACEHOLDER_RADIUS:g} m"),
    ):
        partly = [f"'{link}'" for link, keys in made_up.items() if key in keys and "mass" not in keys]
        if partly:
            notes.append(f"{', '.join(partly)} without {what}")
    return notes


def parse_dh(text: str, where: str) -> dict[str, Any]:
    """The table in a YAML text, its keys checked at the top only."""
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"{where}: {len(text)} characters, at most {MAX_CHARACTERS} in a DH table")
    try:
        table = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or " ".join(str(error).split())[:200]
        raise ModelError(f"{where}{line}: not YAML: {what}") from None
    except RecursionError:
        raise ModelError(f"{where}: nested too deeply for a DH table") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML passes on what int() or datetime() say to an odd scalar
        raise ModelError(f"{where}: a value cannot be read: {str(error)[:200]}") from None
    if not isinstance(table, dict) or "joints" not in table:
        raise ModelError(f"{where} is not a DH table: it has no 'joints'; for other models give an MJCF or URDF file")
    return _mapping(table, _TOP, where)


def plain(value: object, where: str, depth: int = 0) -> Any:
    """A mapping from Python as YAML would have given it."""
    if depth > 6:
        raise ModelError(f"{where}: nested too deeply for a DH table")
    if isinstance(value, Mapping):
        return {key: plain(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item, where, depth + 1) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ModelError(f"{where}: a {type(value).__name__} has no place in a DH table; give numbers, texts and lists")


def dh_limits(text: str) -> dict[str, dict[str, float]]:
    """The limits of velocity and torque that a DH table states for its joints."""
    table = parse_dh(text, "DH table")
    unit = _choice(table, "unit", ("rad", "deg"), "DH table", "rad")
    found = {name: _limits(row, unit, what) for name, what, row in _rows(table, "DH table")}
    return {name: limits for name, limits in found.items() if limits}


def read_dh(table: Mapping[str, Any], where: str, notes: list[str]) -> mujoco.MjSpec:
    """The spec of a DH table: a fixed body 'base', then one body a row, and the site 'tool' on the last."""
    convention = _choice(table, "convention", CONVENTIONS, where)
    unit = _choice(table, "unit", ("rad", "deg"), where, "rad")
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.modelname = _text(table.get("name", "robot"), f"{where}: name")
    spec.option.gravity = _numbers(table.get("gravity", [0, 0, -9.81]), 3, f"{where}: gravity")
    base = _pose(table, "base", unit, where)
    body = spec.worldbody.add_body(name="base", pos=base[:3, 3], quat=_quaternion(base))
    made_up = {}
    for name, what, row in _rows(table, where):
        body = _add_row(body, row, name, convention, unit, what)
        made_up[row["link"]] = _weigh(body, row, what, notes)
    tool = _pose(table, "tool", unit, where)
    body.add_site(name="tool", pos=tool[:3, 3], quat=_quaternion(tool))
    notes += _placeholder_notes(made_up)
    return spec
