"""From a compiled MuJoCo model to the arrays of a `Robot`."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, unknown_name
from .inertia import from_mass_com_inertia
from .parameters import JOINT_PROPERTIES
from .robot import Array, Joint, frozen
from .tree import BALL, COORDINATES, DOF, DOFS, FIXED, FREE, HINGE, LINK, SLIDE

_KINDS = {
    int(mujoco.mjtJoint.mjJNT_HINGE): HINGE,
    int(mujoco.mjtJoint.mjJNT_SLIDE): SLIDE,
    int(mujoco.mjtJoint.mjJNT_BALL): BALL,
    int(mujoco.mjtJoint.mjJNT_FREE): FREE,
}
_TURNS = ("wx", "wy", "wz")
_DOF_SUFFIX: dict[int, tuple[str, ...]] = {
    HINGE: ("",),
    SLIDE: ("",),
    BALL: tuple(f":{s}" for s in _TURNS),
    FREE: tuple(f":{s}" for s in ("vx", "vy", "vz", *_TURNS)),
}


@dataclass(frozen=True)
class Reading:
    """What `read_tree` finds; `load_robot` completes it to a robot."""

    links: NDArray
    dofs: NDArray
    joints: tuple[Joint, ...]
    bodies: tuple[str, ...]
    body_parameters: Array
    joint_parameters: Array
    dof_names: tuple[str, ...]
    model_coordinates: NDArray
    model_dofs: NDArray
    model_position: Array
    model_bodies: NDArray


def name_of(model: mujoco.MjModel, kind: mujoco.mjtObj, index: int, word: str) -> str:
    """An element's name, or its number where the model gives it none."""
    return mujoco.mj_id2name(model, kind, index) or f"{word}{index}"


def joint_names(model: mujoco.MjModel) -> list[str]:
    return [name_of(model, mujoco.mjtObj.mjOBJ_JOINT, j, "joint") for j in range(model.njnt)]


def body_names(model: mujoco.MjModel) -> list[str]:
    return [name_of(model, mujoco.mjtObj.mjOBJ_BODY, b, "body") for b in range(model.nbody)]


def rotation(quaternion: NDArray) -> Array:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quaternion, dtype=np.float64))
    return matrix.reshape(3, 3)


def _cross_matrix(a: NDArray) -> Array:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]], dtype=np.float64)


def _about(axis: NDArray, angle: float) -> Array:
    k = _cross_matrix(axis)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)


def held_position(model: mujoco.MjModel, lock: Mapping[str, float | None]) -> Array:
    """The model's reference position with every locked joint at its value (None: where the file draws it)."""
    position = np.array(model.qpos0)
    names = joint_names(model)
    for name, value in lock.items():
        if name not in names:
            raise ModelError(unknown_name("joint to lock", name, names))
        j = names.index(name)
        if value is None:
            continue
        if _KINDS[int(model.jnt_type[j])] not in (HINGE, SLIDE):
            raise ModelError(f"joint '{name}' is a ball or free joint and can only be locked where the model draws it")
        if not np.isfinite(value):
            raise ModelError(f"joint '{name}' cannot be locked at {value}; give a finite position")
        position[model.jnt_qposadr[j]] = value
    return position


def _after_locked_joint(model: mujoco.MjModel, j: int, position: Array, R: Array, p: Array) -> tuple[Array, Array]:
    kind, k = _KINDS[int(model.jnt_type[j])], model.jnt_qposadr[j]
    axis, anchor = model.jnt_axis[j], model.jnt_pos[j]
    if kind == FREE:
        return rotation(position[k + 3 : k + 7]), position[k : k + 3].copy()
    if kind == SLIDE:
        return R, p + R @ axis * (position[k] - model.qpos0[k])
    turned = R @ (rotation(position[k : k + 4]) if kind == BALL else _about(axis, position[k] - model.qpos0[k]))
    return turned, p + R @ anchor - turned @ anchor


def _joint_link(model: mujoco.MjModel, j: int, R: Array, p: Array) -> NDArray:
    """The record of a link that joint j moves, drawn at R, p in its parent."""
    kind, k = _KINDS[int(model.jnt_type[j])], model.jnt_qposadr[j]
    axis, anchor = np.array(model.jnt_axis[j]), np.array(model.jnt_pos[j])
    link = np.zeros((), LINK)
    link["kind"] = kind
    link["R0"] = np.eye(3) if kind == FREE else R
    link["pos"] = p
    if kind in (HINGE, SLIDE):
        link["axis"] = R @ axis
        link["reference"] = model.qpos0[k]
    if kind == HINGE:
        # Rodrigues: R(angle) = aaᵀ + cos (1 − aaᵀ) + sin [a]×
        along = np.outer(axis, axis)
        link["R0"], link["Rc"], link["Rs"] = R @ along, R @ (np.eye(3) - along), R @ _cross_matrix(axis)
    if kind in (HINGE, BALL):
        link["anchor"] = anchor
        link["anchor_parent"] = p + R @ anchor
    return link


def _body_parameters(model: mujoco.MjModel, b: int) -> Array:
    axes = rotation(model.body_iquat[b])
    return from_mass_com_inertia(model.body_mass[b], model.body_ipos[b], axes @ np.diag(model.body_inertia[b]) @ axes.T)


def _moving_bodies(model: mujoco.MjModel, locked: set[int]) -> list[int]:
    moving = np.zeros(model.nbody, dtype=bool)
    for b in range(1, model.nbody):
        first = model.body_jntadr[b]
        own = set(range(first, first + model.body_jntnum[b])) - locked
        moving[b] = bool(own) or moving[model.body_parentid[b]]
    return [int(b) for b in np.flatnonzero(moving)]


def read_tree(model: mujoco.MjModel, lock: Mapping[str, float | None]) -> Reading:
    """Links, joints and nominal parameters of a compiled model whose locked joints are part of the structure."""
    names, bodies = joint_names(model), body_names(model)
    position = held_position(model, lock)
    locked = {names.index(name) for name in lock}
    moving = _moving_bodies(model, locked)
    if not moving:
        what = "has no joints" if model.njnt == 0 else "has only locked joints"
        raise ModelError(f"the model {what}; nothing in it can move, so nothing can be identified")

    links = [np.zeros((), LINK)]
    links[0]["R0"], links[0]["last_dof"], links[0]["body"] = np.eye(3), -1, -1
    dofs: list[tuple[int, int, int]] = []
    joints: list[Joint] = []
    joint_values: list[list[float]] = []
    model_dofs: list[int] = []
    model_coordinates: list[int] = []
    dof_names: list[str] = []
    # Where a body's frame is: the link that carries it and the constant pose in that link.
    frame: list[tuple[int, Array, Array]] = [(0, np.eye(3), np.zeros(3))] + [(0, np.eye(3), np.zeros(3))] * (
        model.nbody - 1
    )

    def append(link: NDArray, parent: int) -> int:
        index = len(links)
        kind = int(link["kind"])
        link["parent"], link["body"] = parent, -1
        link["dof"], link["coordinate"] = len(dofs), len(model_coordinates)
        for k in range(DOFS[kind]):
            before = int(links[parent]["last_dof"]) if k == 0 else len(dofs) - 1
            dofs.append((index, before, 1 if kind in (HINGE, BALL) or (kind == FREE and k >= 3) else 0))
        link["last_dof"] = len(dofs) - 1 if DOFS[kind] else links[parent]["last_dof"]
        links.append(link)
        return index

    for b in range(1, model.nbody):
        parent, R, p = frame[model.body_parentid[b]]
        R, p = R @ rotation(model.body_quat[b]), p + R @ model.body_pos[b]
        own = 0
        first = model.body_jntadr[b]
        for j in range(first, first + model.body_jntnum[b]):
            if j in locked:
                R, p = _after_locked_joint(model, j, position, R, p)
                continue
            kind = _KINDS[int(model.jnt_type[j])]
            dof, coordinate = model.jnt_dofadr[j], model.jnt_qposadr[j]
            joints.append(Joint(names[j], kind, bodies[b], len(dofs), len(model_coordinates)))
            parent = append(_joint_link(model, j, R, p), parent)
            own = parent
            R, p = np.eye(3), np.zeros(3)
            model_coordinates.extend(range(coordinate, coordinate + COORDINATES[kind]))
            for k in range(DOFS[kind]):
                model_dofs.append(dof + k)
                values = (model.dof_armature[dof + k], model.dof_damping[dof + k], model.dof_frictionloss[dof + k], 0)
                joint_values.append([float(value) for value in values])
                dof_names.append(names[j] + _DOF_SUFFIX[kind][k])
        if b in moving:
            if own == 0 or not (np.array_equal(R, np.eye(3)) and not p.any()):
                fixed = np.zeros((), LINK)
                fixed["kind"], fixed["R0"], fixed["pos"] = FIXED, R, p
                parent = append(fixed, parent)
                R, p = np.eye(3), np.zeros(3)
            links[parent]["body"] = moving.index(b)
        frame[b] = (parent, R, p)

    assert len(JOINT_PROPERTIES) == 4
    return Reading(
        links=frozen(np.array(links, LINK), LINK),
        dofs=frozen(np.array(dofs, DOF), DOF),
        joints=tuple(joints),
        bodies=tuple(bodies[b] for b in moving),
        body_parameters=frozen([_body_parameters(model, b) for b in moving]),
        joint_parameters=frozen(joint_values),
        dof_names=tuple(dof_names),
        model_coordinates=frozen(model_coordinates, np.int64),
        model_dofs=frozen(model_dofs, np.int64),
        model_position=frozen(position),
        model_bodies=frozen(moving, np.int64),
    )
