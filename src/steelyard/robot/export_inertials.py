"""What is written of a robot's parameters into a model file: what changed, and what the file's format holds."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError
from .assets import named_left_out
from .feasibility import require_feasible
from .inertia import from_mass_com_inertia, mass_com_inertia
from .inertials import nearest_physical
from .parameters import JOINT_PROPERTIES
from .reader import read_tree
from .robot import Array, Joint, Robot, frozen
from .sources import Source
from .xmltree import parse_xml

HELD = ("armature", "damping", "coulomb")  # joint properties that model files have a place for
OFFSET_PREFIX = "steelyard_offset_"  # of <numeric> elements in MJCF
_PLANAR = ("_TX", "_TY", "_RZ")  # what MuJoCo makes of a planar joint of a URDF


def number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value) + 0.0).removesuffix(".0")


def numbers(values: ArrayLike) -> str:
    return " ".join(number(value) for value in np.ravel(values))


def listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def source_of(robot: Robot) -> Source:
    assert robot.source is not None
    return robot.source


def lost_files(source: Source, path: Path) -> list[str]:
    """A note on what a model that is written anew lacks; an error where the user's own file would lose it."""
    if not source.left_out:
        return []
    what = named_left_out(source.left_out)
    if source.path is not None and source.path.resolve() == path.resolve():
        raise ModelError(
            f"{path} is the source itself and would be rewritten without {what}, which could not be read; "
            "give another path, or supply the files"
        )
    return [f"written without what could not be read: {what}"]


def lost_elements(source: Source, path: Path) -> list[str]:
    """The same of elements of a URDF that are not read, and so not written."""
    if source.kind != "urdf" or source.text is None:
        return []
    root, known = parse_xml(source.text, "URDF"), ("link", "joint", "mujoco", "material")
    lost = Counter(element.tag for element in root.children if element.tag not in known)
    lost.update("visual" for link in root.all("link") for _ in link.all("visual"))
    inside = ("mimic", "safety_controller", "calibration")
    lost.update(child.tag for joint in root.all("joint") for child in joint.children if child.tag in inside)
    if not lost:
        return []
    what = listed([f"{n} <{tag}>" for tag, n in sorted(lost.items())])
    if source.path is not None and source.path.resolve() == path.resolve():
        raise ModelError(f"{path} is the source itself and would be rewritten without {what}; give another path")
    return [f"only the URDF has, and the export lacks: {what}"]


def stated(parameters: ArrayLike) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it, so that MuJoCo accepts them: it knows no tolerance at the boundary."""
    mass, com, inertia = mass_com_inertia(parameters)
    return float(mass), com, nearest_physical(inertia)[0] if mass > 0 else inertia


def model_body(model: mujoco.MjModel, b: int) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it of a body as the model has it."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[b])
    R = axes.reshape(3, 3)
    inertia = R @ np.diag(model.body_inertia[b]) @ R.T
    mass = float(model.body_mass[b])
    return mass, np.array(model.body_ipos[b]), nearest_physical(inertia)[0] if mass > 0 else inertia


def changed_bodies(robot: Robot) -> frozenset[int]:
    """Which of MuJoCo's bodies do not weigh what they weigh in the source."""
    reading = read_tree(source_of(robot).model, {})
    nominal = dict(zip(reading.model_bodies.tolist(), reading.body_parameters, strict=True))
    rows = zip(robot.model_bodies.tolist(), robot.body_parameters, strict=True)
    return frozenset(b for b, row in rows if not np.array_equal(row, nominal[b]))


def joint_values(robot: Robot, joint: Joint) -> dict[str, float]:
    """The values of a joint that a model file holds, one for all its axes."""
    row = robot.joint_parameters[joint.dof]
    return {prop: float(row[JOINT_PROPERTIES.index(prop)]) for prop in HELD}


def source_values(robot: Robot, joint: Joint) -> dict[str, float]:
    """The same as the source has them."""
    model, dof = source_of(robot).model, int(robot.model_dofs[joint.dof])
    fields = (model.dof_armature, model.dof_damping, model.dof_frictionloss)
    return {prop: float(values[dof]) for prop, values in zip(HELD, fields, strict=True)}


def refuse_infeasible(robot: Robot) -> None:
    """An error that lists every body and joint that cannot exist; frames that had no mass need none."""
    model = source_of(robot).model
    frames = [name for name, b in zip(robot.bodies, robot.model_bodies, strict=True) if not model.body_mass[b]]
    columns = zip(JOINT_PROPERTIES, robot.joint_parameters.T, strict=True)
    joint = {prop: dict(zip(robot.dof_names, column.tolist(), strict=True)) for prop, column in columns}
    linear = robot.layout.linear_dofs
    require_feasible(robot.bodies, robot.body_parameters, joint, linear_dofs=linear, massless=frames)


def _pushed_inside(robot: Robot, bodies: frozenset[int], notes: list[str]) -> Array:
    """Body parameters of which those on the boundary are moved inside as far as MuJoCo needs it."""
    parameters = robot.body_parameters.copy()
    for k, b in enumerate(robot.model_bodies.tolist()):
        if b not in bodies or not parameters[k, 0] > 0:
            continue
        mass, com, inertia = mass_com_inertia(parameters[k])
        inside = nearest_physical(inertia)[0]
        if not np.array_equal(inside, inertia):
            parameters[k] = from_mass_com_inertia(mass, com, inside)
            notes.append(
                f"body '{robot.bodies[k]}' lies on the boundary of what is possible, which MuJoCo refuses: its inertia "
                f"was moved by {np.abs(inside - inertia).max():.2g} kg·m²"
            )
    return parameters


def _groups(robot: Robot, planar: bool) -> list[list[Joint]]:
    """The joints that have one value of each property in the file."""
    groups: dict[tuple[str, str], list[Joint]] = {}
    for joint in robot.joints:
        stem = next((joint.name.removesuffix(end) for end in _PLANAR if planar and joint.name.endswith(end)), None)
        groups.setdefault((joint.body, joint.name if stem is None else f"{stem}\0"), []).append(joint)
    return list(groups.values())


def settle(robot: Robot, bodies: frozenset[int], planar: bool, notes: list[str]) -> Robot:
    """The robot as a file will hold it: `bodies` will be written, and `planar` joints are one joint of three axes."""
    joints = robot.joint_parameters.copy()
    joints[:, JOINT_PROPERTIES.index("offset")] = 0.0
    held = [JOINT_PROPERTIES.index(prop) for prop in HELD]
    if (joints < 0).any():  # not by more than a solver's tolerance, or the robot would have been refused
        joints[joints < 0] = 0.0
    for group in _groups(robot, planar):
        rows = np.concatenate([np.arange(joint.dofs.start, joint.dofs.stop) for joint in group])
        for column, prop in zip(held, HELD, strict=True):
            values = joints[rows, column]
            if np.ptp(values) > 0:
                joints[rows, column] = values.mean()
                names = listed([f"'{joint.name}'" for joint in group])
                notes.append(
                    f"joint {names} has one {prop} for all its axes: the mean {values.mean():.6g} of "
                    f"{', '.join(f'{value:.6g}' for value in values)} is written"
                )
    parameters = _pushed_inside(robot, bodies, notes)
    return replace(robot, body_parameters=frozen(parameters), joint_parameters=frozen(joints))


def offsets(robot: Robot, notes: list[str]) -> dict[str, list[float]]:
    """The constant torques of the joints that have any, one an axis; no format of models has them."""
    column = robot.joint_parameters[:, JOINT_PROPERTIES.index("offset")]
    found = {joint.name: column[joint.dofs].tolist() for joint in robot.joints if column[joint.dofs].any()}
    if found:
        shown = "; ".join(f"'{name}' {', '.join(f'{value:.6g}' for value in values)}" for name, values in found.items())
        notes.append(f"model files have no constant friction torque: the model lacks the offset of {shown}")
    return found
