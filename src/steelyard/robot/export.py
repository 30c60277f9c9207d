"""`export_model`: a robot's parameters back into a model file, MJCF or URDF, that reloads to the same dynamics.

The model is written under a temporary name, read back and compared with the robot; only then it takes its place.
"""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import yaml

from ..errors import ModelError
from .export_inertials import (
    OFFSET_PREFIX,
    lost_elements,
    lost_files,
    offsets,
    refuse_infeasible,
    settle,
    source_of,
)
from .export_mjcf import bodies_in_mjcf, write_mjcf
from .export_sidecar import has_one_axis, sidecar_of
from .export_urdf import generate_urdf
from .export_urdf_text import bodies_in_text, edit_urdf, is_editable
from .inertia import Array, mass_com_inertia
from .load import load_robot
from .parameters import FRICTION
from .reader import body_names, joint_names
from .robot import Robot
from .sidecar import SUFFIX
from .states import random_states

FORMATS: Mapping[str, str] = {".xml": "MJCF", ".mjcf": "MJCF", ".urdf": "URDF"}
_TRIALS = 3  # random positions at which the file is compared with the robot
# Relative to the size of each quantity: what is left by writing angles for rotations, and by subtracting m|com|²
_AGREE = 1e-9
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _format_of(path: Path) -> str:
    if path.suffix.lower() not in FORMATS:
        valid = ", ".join(f"{suffix} ({name})" for suffix, name in FORMATS.items())
        raise ModelError(f"{path}: the suffix '{path.suffix}' does not say which format to write; valid: {valid}")
    return FORMATS[path.suffix.lower()]


def _text(robot: Robot, path: Path, notes: list[str]) -> tuple[Robot, str]:
    """The robot as the file holds it, and the file."""
    constant = offsets(robot, notes)
    if _format_of(path) == "MJCF":
        robot = settle(robot, bodies_in_mjcf(robot), False, notes)
        if constant:
            notes.append(f'the offsets are kept as <numeric name="{OFFSET_PREFIX}…">, which MuJoCo does not act on')
        return robot, write_mjcf(robot, path, constant, notes)
    if is_editable(robot):
        robot = settle(robot, bodies_in_text(robot), True, notes)
        return robot, edit_urdf(robot, path)
    robot = settle(robot, frozenset(robot.model_bodies.tolist()), False, notes)
    source = source_of(robot)
    notes += lost_files(source, path) + lost_elements(source, path)
    return robot, generate_urdf(robot, notes)


def _bodies_in_world(robot: Robot, positions: Array) -> list[tuple[Array, Array, Array]]:
    """Mass, centre of mass and inertia of the bodies at each position, in the axes of the world."""
    model, found = source_of(robot).model, []
    data = mujoco.MjData(model)
    data.qpos[:] = robot.model_position
    mass, com, inertia = mass_com_inertia(robot.body_parameters)
    for q in positions:
        data.qpos[robot.model_coordinates] = q
        mujoco.mj_kinematics(model, data)
        R, p = data.xmat[robot.model_bodies].reshape(-1, 3, 3), data.xpos[robot.model_bodies]
        place = p + np.einsum("bij,bj->bi", R, com)
        found.append((mass, place * (mass > 0)[:, None], R @ inertia @ np.swapaxes(R, 1, 2)))
    return found


def _difference(robot: Robot, copy: Robot) -> str | None:
    """What is not the same in a robot that was written and read; nothing, or this module has a fault.

    Where every body has the same mass, place and inertia in the world at any position, the rigid dynamics are the same.
    """
    if robot.bodies != copy.bodies or [j.name for j in robot.joints] != [j.name for j in copy.joints]:
        return "bodies and joints"
    if not np.allclose(robot.joint_parameters, copy.joint_parameters, rtol=_AGREE, atol=0):
        return "joint parameters"
    q, _, _ = random_states(robot, np.random.default_rng(0), _TRIALS, within_limits=False)
    mass, com, inertia = mass_com_inertia(robot.body_parameters)
    spread = np.abs(inertia).max(axis=(1, 2)) + 1e-3 * mass * np.sum(com**2, axis=1) + np.finfo(float).tiny
    for (m, place, I), (m2, place2, I2) in zip(_bodies_in_world(robot, q), _bodies_in_world(copy, q), strict=True):
        errors = {
            "mass": np.abs(m2 - m) / np.maximum(m, np.finfo(float).tiny),
            "centre of mass": np.abs(place2 - place).max(axis=1) / (1 + np.abs(place).max(axis=1)),
            "inertia": np.abs(I2 - I).max(axis=(1, 2)) / spread,
        }
        for what, error in errors.items():
            if not error.max() < _AGREE:
                return f"{what} of body '{robot.bodies[int(error.argmax())]}' ({error.max():.2g})"
    return None


def _read_back(robot: Robot, temporary: Path, path: Path, notes: list[str]) -> Robot:
    """The robot in the file that was written, with the same joints held and bodies identified."""
    model, free = source_of(robot).model, {joint.name for joint in robot.joints}
    lock: dict[str, Any] = {}
    for j, name in enumerate(joint_names(model)):
        if name not in free:
            lock[name] = float(robot.model_position[model.jnt_qposadr[j]]) if has_one_axis(model, j) else None
    try:
        copy = load_robot(temporary, bodies=robot.layout.bodies, lock=lock, friction=FRICTION)
    except ModelError as error:
        said = str(error).replace(str(temporary.resolve()), str(path)).replace(str(temporary), str(path))
        raise ModelError(f"the export cannot be read back, so nothing was written: {said}") from None
    wrong = _difference(robot, copy)
    if not np.allclose(robot.gravity, copy.gravity, rtol=_AGREE, atol=0):
        if path.suffix.lower() == ".urdf":
            g = ", ".join(f"{value:.12g}" for value in robot.gravity)
            notes.append(f"URDF has no gravity: load the export with gravity ({g})")
        else:
            wrong = "gravity"
    if wrong:
        raise ModelError(f"{path}: read back, the export differs in {wrong}, so nothing was written")
    return copy


def _refuse_names(robot: Robot) -> None:
    names = [*body_names(source_of(robot).model), *joint_names(source_of(robot).model)]
    bad = [repr(name) for name in names if _NOT_XML.search(name)]
    if bad:
        raise ModelError(f"XML has no way to write the names {', '.join(bad)}; rename them in the model")


def _refuse_target(target: Path, overwrite: bool) -> None:
    if not target.parent.is_dir():
        raise ModelError(f"no such folder: {target.parent}; create it first")
    if target.is_dir():
        raise ModelError(f"{target} is a folder; give the path of a file")
    if target.exists() and not overwrite:
        raise ModelError(f"{target} exists already; give another path, or let it be overwritten")


def _create(path: Path, text: str) -> Path:
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def export_model(robot: Robot, path: str | Path, *, overwrite: bool = True) -> tuple[str, ...]:
    """Write the robot's model file with its present parameters; returns notes on what the format cannot hold.

    The suffix says which: .xml and .mjcf are MJCF, .urdf is URDF. Beside it a sidecar is written where the robot needs
    one: held joints, bodies left out, limits. A robot that cannot exist is refused, and then nothing is written.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ModelError(
            f"the export goes to a file, not to {path!r}; give the path of a file, like arm.xml or arm.urdf"
        )
    path = Path(path)
    sidecar = path.with_name(path.stem + SUFFIX)
    if robot.source is None:
        raise ModelError(f"{robot.name} has no model file behind it; load it with load_robot")
    _format_of(path)
    _refuse_target(path, overwrite)
    refuse_infeasible(robot)
    _refuse_names(robot)
    notes: list[str] = []
    settled, text = _text(robot, path, notes)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    beside = temporary.with_name(temporary.stem + SUFFIX)
    try:
        copy = _read_back(settled, _create(temporary, text), path, notes)
        facts = sidecar_of(robot, copy, sidecar.exists(), notes)
        if facts is not None:
            _refuse_target(sidecar, overwrite)
            os.replace(_create(beside, facts), sidecar)
            notes.append(f"{sidecar.name} beside the model holds what it cannot: {', '.join(yaml.safe_load(facts))}")
        os.replace(temporary, path)
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        for left in (temporary, beside):
            left.unlink(missing_ok=True)
    return tuple(notes)
