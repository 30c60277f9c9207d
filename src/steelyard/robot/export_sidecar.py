"""The sidecar of an exported model: what the robot knows and the model file by itself does not."""

from typing import Any

import mujoco
import numpy as np
import yaml

from .export_inertials import listed, source_of
from .reader import joint_names
from .robot import Robot
from .sidecar import Sidecar, parse_sidecar, read_sidecar
from .tree import HINGE, SLIDE

_KEYS = ("velocity", "acceleration", "torque", "torque_rate")


def has_one_axis(model: mujoco.MjModel, j: int) -> bool:
    return int(model.jnt_type[j]) in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


def _locks(robot: Robot, notes: list[str]) -> dict[str, float]:
    model, free = source_of(robot).model, {joint.name for joint in robot.joints}
    held = {name: j for j, name in enumerate(joint_names(model)) if name not in free}
    drawn = [name for name, j in held.items() if not has_one_axis(model, j)]
    if drawn:
        notes.append(f"a sidecar cannot hold ball and free joints: lock {listed(drawn)} anew when the export is loaded")
    return {name: float(robot.model_position[model.jnt_qposadr[j]]) for name, j in held.items() if name not in drawn}


def _limits(robot: Robot, bare: Robot) -> dict[str, dict[str, Any]]:
    """What of the limits the model file alone does not give."""
    found: dict[str, dict[str, Any]] = {}
    for joint, other in zip(robot.joints, bare.joints, strict=True):
        lower, upper = robot.limits.lower[joint.dof], robot.limits.upper[joint.dof]
        same = (lower, upper) == (bare.limits.lower[other.dof], bare.limits.upper[other.dof])
        if joint.kind in (HINGE, SLIDE) and np.isfinite([lower, upper]).all() and not same:
            found.setdefault(joint.name, {})["position"] = [float(lower), float(upper)]
        for key in _KEYS:
            value = float(getattr(robot.limits, key)[joint.dof])
            if np.isfinite(value) and value != getattr(bare.limits, key)[other.dof]:
                found.setdefault(joint.name, {})[key] = value
    return found


def _home(robot: Robot, bare: Robot) -> dict[str, float]:
    return {
        joint.name: float(robot.home[joint.coordinate])
        for joint, other in zip(robot.joints, bare.joints, strict=True)
        if joint.kind in (HINGE, SLIDE) and robot.home[joint.coordinate] != bare.home[other.coordinate]
    }


def sidecar_of(robot: Robot, bare: Robot, always: bool, notes: list[str]) -> str | None:
    """The text of the sidecar with which the exported model, `bare` without it, becomes the robot; None: not needed."""
    source = source_of(robot)
    given = read_sidecar(source.path) if source.path is not None else Sidecar()
    frames = {name for name, p in zip(robot.bodies, robot.body_parameters, strict=True) if not p.any()}
    left_out = [name for name in robot.bodies if name not in robot.layout.bodies and name not in frames]
    fields: dict[str, Any] = {
        "description": given.description or (robot.name if always else ""),
        "lock": _locks(robot, notes),
        "leave_out": left_out,
        "home": _home(robot, bare),
        "limits": _limits(robot, bare),
        "gear": given.gear.model_dump(mode="json", exclude_defaults=True) if given.gear else None,
    }
    fields = {name: value for name, value in fields.items() if value}
    if not fields:
        return None
    text = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    parse_sidecar(text, "the sidecar of the export")
    return text
