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
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .dh_table import mapping, number_of, numbers, parse_dh, shown, text_of
from .inertials import PLACEHOLDER_MASS, PLACEHOLDER_RADIUS, Mended, nearest_physical, negative_moment
from .parameters import INERTIAL

MAX_JOINTS = 200
_FULL_TURN = 2 * math.pi + 1e-3  # rad, with room for printed digits
CONVENTIONS = ("standard", "modified")
_POSE = ("pos", "rpy")
_NUMBERS = ("a", "alpha", "d", "theta")
_PHYSICS = ("armature", "damping", "coulomb")
_LIMITS = ("velocity", "torque")
_JOINT = ("name", "link", "type", *_NUMBERS, "range", *_LIMITS, "mass", "com", "inertia", *_PHYSICS)
_MOMENTS = INERTIAL[4:]
_ORDER = f"[{', '.join(_MOMENTS)}]"
# What other programs call a column, and what it is here
_ELSEWHERE = {"offset": "the offset of a revolute joint is its theta, that of a prismatic one its d"}


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
    given = mapping(table.get(key, {}), _POSE, f"{where}: {key}")
    x, y, z = numbers(given.get("pos", [0, 0, 0]), 3, f"{where}: {key}.pos")
    roll, pitch, yaw = numbers(given.get("rpy", [0, 0, 0]), 3, f"{where}: {key}.rpy", unit)
    return _translation(x, y, z) @ _rotation(2, yaw) @ _rotation(1, pitch) @ _rotation(0, roll)


def _inertia(value: object, what: str) -> NDArray:
    if isinstance(value, dict):
        given = mapping(value, _MOMENTS, what)
        six = [number_of(given.get(name, 0.0), f"{what}.{name}") for name in _MOMENTS]
        for name in ("Ixx", "Iyy", "Izz"):
            if name not in given:
                raise ModelError(f"{what} has no {name}; give Ixx, Iyy and Izz")
    elif isinstance(value, list) and len(value) == 3:
        return np.diag(numbers(value, 3, what))
    else:
        six = numbers(value, 6, what)
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _weigh(body: mujoco.MjsBody, row: Mapping, what: str, notes: list[str]) -> list[str]:
    """Give the body its inertial; the names of what had to be made up."""
    made_up = [key for key in ("mass", "com", "inertia") if key not in row]
    if "mass" in made_up and len(made_up) < 3:
        has = " and ".join(key for key in ("com", "inertia") if key in row)
        raise ModelError(f"{what} has {has} but no mass; give its mass")
    mass = number_of(row.get("mass", PLACEHOLDER_MASS), f"{what}: mass")
    if mass < 0:
        raise ModelError(f"{what}: mass is {mass:g} kg; a mass is not negative")
    if mass == 0:
        raise ModelError(f"{what}: mass is 0; a link that moves has one; give it, or leave out mass, com and inertia")
    body.mass, body.explicitinertial = mass, True
    body.ipos = numbers(row.get("com", [0, 0, 0]), 3, f"{what}: com")
    sphere = 0.4 * mass * PLACEHOLDER_RADIUS**2 * np.eye(3)
    given = _inertia(row["inertia"], f"{what}: inertia") if "inertia" in row else sphere
    if negative := negative_moment(given):
        raise ModelError(f"{what}: its inertia {negative} (six numbers are {_ORDER}, about the centre of mass)")
    inertia, wrong = nearest_physical(given)
    if wrong:
        order = (
            f" (six numbers are read as {_ORDER})"
            if isinstance(row.get("inertia"), list) and len(row["inertia"]) == 6
            else ""
        )
        notes.append(Mended(f"{what}: its inertia {wrong}{order}"))
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
        raise ModelError(f"{what}: type is {shown(kind)}; give revolute or prismatic")
    return kind


def _add_row(parent: mujoco.MjsBody, row: Mapping, name: str, convention: str, unit: str, what: str) -> mujoco.MjsBody:
    kind = _kind(row, what)
    for key in ("a", "alpha", "d" if kind == "revolute" else "theta"):
        if key not in row:
            raise ModelError(f"{what} has no {key}; give it, 0 where it is zero")
    a, d = (number_of(row.get(key, 0), f"{what}: {key}") for key in ("a", "d"))
    alpha, theta = (number_of(row.get(key, 0), f"{what}: {key}", unit) for key in ("alpha", "theta"))
    for key, angle in (("alpha", alpha), ("theta", theta)):
        if unit == "rad" and abs(angle) > _FULL_TURN:
            raise ModelError(f"{what}: {key} is {angle:g} rad, more than a full turn; for degrees write unit: deg")
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
        low, high = numbers(row["range"], 2, f"{what}: range", unit if revolute else None)
        if not low < high:
            raise ModelError(f"{what}: range is from {low:g} to {high:g}; the lower limit comes first")
        joint.range, joint.limited = [low, high], mujoco.mjtLimited.mjLIMITED_TRUE
    physics = {key: number_of(row.get(key, 0), f"{what}: {key}") for key in _PHYSICS}
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
        key: number_of(row[key], f"{what}: {key}", angle if key == "velocity" else None)
        for key in _LIMITS
        if key in row
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
        for key, meant in _ELSEWHERE.items():
            if isinstance(given, dict) and key in given:
                raise ModelError(f"{where}: joint {k}: no key '{key}'; {meant}")
        row = dict(mapping(given, _JOINT, f"{where}: joint {k}"))
        name = text_of(row.get("name", f"joint{k}"), f"{where}: joint {k}: name")
        row["link"] = text_of(row.get("link", f"link{k}"), f"{where}: joint {k}: link")
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
        raise ModelError(f"{where}: {key} is {shown(value)}; give {' or '.join(valid)}")
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
    spec.modelname = text_of(table.get("name", "robot"), f"{where}: name")
    spec.option.gravity = numbers(table.get("gravity", [0, 0, -9.81]), 3, f"{where}: gravity")
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
