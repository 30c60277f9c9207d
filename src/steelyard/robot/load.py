"""`load_robot`: from whatever describes a robot to a `Robot`."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, unknown_name
from .library import library_names, library_path
from .parameters import ALWAYS, FRICTION, JOINT_PROPERTIES, ParameterLayout, select
from .reader import Reading, body_names, joint_names, read_tree
from .robot import Array, Joint, Limits, Robot, frozen
from .sidecar import Sidecar, read_sidecar
from .sources import Source, read_source, stated_limits
from .tree import FREE, HINGE, SLIDE
from .uncarried import uncarried

Lock = Iterable[str] | Mapping[str, float | None]
_ROUNDING = 1e-6  # rad or m beyond a range, for printed digits


def _resolve(model: object) -> object:
    """A library name becomes the path of its file; everything else is left alone."""
    if not isinstance(model, str):
        return model
    if model in library_names() and not os.path.isfile(model):  # a folder of that name does not hide it
        return library_path(model)
    if os.path.exists(model):
        return model
    if "/" in model or "\\" in model or Path(model).suffix:
        raise ModelError(f"no such file: {model}")
    unknown = unknown_name("library robot", model, library_names())
    raise ModelError(f"{unknown}; or give the path of an MJCF or URDF file")


def _names(what: str, given: object, kind: str = "a list of names") -> list[str]:
    """A list of names, and nothing that only looks like one."""
    if isinstance(given, str):
        raise ModelError(f"{what} is {kind}; give {what}=['{given}']")
    found = list(given) if isinstance(given, Iterable) else None
    if found is None or not all(isinstance(name, str) for name in found):
        raise ModelError(f"{what} is {kind}, not {str(given)[:60]}")
    return found


def _position(joint: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or np.ndim(value) != 0:  # type: ignore[arg-type]
        raise ModelError(f"joint '{joint}' cannot be locked at {str(value)[:60]}; give one number")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"joint '{joint}' cannot be locked at '{str(value)[:60]}'; give a number") from None


def _locks(lock: Lock | None, sidecar: Sidecar) -> dict[str, float | None]:
    if lock is None:
        return dict(sidecar.lock)
    named = _names("lock", lock, "a list of joints, or a mapping joint → position")
    given = {name: _position(name, lock[name]) if isinstance(lock, Mapping) else None for name in named}
    return {**sidecar.lock, **given} if given else {}


def _range(model: mujoco.MjModel, sidecar: Sidecar, joint: str) -> tuple[float, float]:
    """What a hinge or a slide may reach, by the sidecar or the model."""
    j = joint_names(model).index(joint)
    stated = sidecar.limits.get(joint)
    if stated is not None and stated.position is not None:
        return stated.position
    one_axis = int(model.jnt_type[j]) in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    if not (one_axis and model.jnt_limited[j]):
        return -np.inf, np.inf
    return float(model.jnt_range[j, 0]), float(model.jnt_range[j, 1])


def _is_outside(value: float, span: tuple[float, float]) -> bool:
    return not span[0] - _ROUNDING <= value <= span[1] + _ROUNDING


def _refuse_outside(model: mujoco.MjModel, sidecar: Sidecar, lock: Mapping[str, float | None]) -> None:
    """Locks where the joint cannot be; where the model draws it is allowed, for models are often drawn so."""
    names = joint_names(model)
    for name, value in lock.items():
        if value is None:
            continue
        span, drawn = _range(model, sidecar, name), float(model.qpos0[model.jnt_qposadr[names.index(name)]])
        if _is_outside(value, span) and abs(value - drawn) > _ROUNDING:
            whose = "the file of limits beside the model: " if sidecar.lock.get(name) == value else ""
            raise ModelError(
                f"{whose}joint '{name}' cannot be locked at {value:g}, outside its range "
                f"{span[0]:.4g} … {span[1]:.4g}; give a position inside, or correct the range"
            )


def _held_where(model: mujoco.MjModel, sidecar: Sidecar, joint: str, position: Array) -> str:
    """A locked joint and its position, for a note."""
    j = joint_names(model).index(joint)
    if int(model.jnt_type[j]) not in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)):
        return joint
    value, span = float(position[model.jnt_qposadr[j]]), _range(model, sidecar, joint)
    outside = f" (outside its range {span[0]:.4g} … {span[1]:.4g})" if _is_outside(value, span) else ""
    return f"{joint} at {value:.4g}{outside}"


def _floats(values: ArrayLike) -> Array:
    """The values as numbers; none at all where they are not."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _gravity(model: mujoco.MjModel, gravity: ArrayLike | None, mounting: ArrayLike | None) -> Array:
    """Gravity in the axes of the base: as given or the model's, turned by a tilted mounting."""
    g = _floats(model.opt.gravity if gravity is None else gravity)
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY and gravity is None:
        g = np.zeros(3)
    if g.shape != (3,) or not np.isfinite(g).all():
        raise ModelError(f"gravity must be three finite numbers in m/s², not {gravity!r}")
    if mounting is None:
        return g
    R = _floats(mounting)
    is_matrix = R.shape == (3, 3) and np.isfinite(R).all()
    if not is_matrix or not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0:
        raise ModelError("mounting must be a 3×3 rotation matrix, from the axes of the base to those of the world")
    return R.T @ g


def _per_dof(joints: tuple[Joint, ...], n: int, values: Mapping[str, float], otherwise: float) -> Array:
    out = np.full(n, otherwise)
    for joint in joints:
        if joint.name in values:
            out[joint.dofs] = values[joint.name]
    return out


def _actuator_torque(model: mujoco.MjModel) -> dict[str, float]:
    """The largest force of the motors on each joint, from `actuatorfrcrange` or the actuators' own force range."""
    names = joint_names(model)
    found: dict[str, float] = {}
    for k in range(model.nactuator):
        if model.actuator_trntype[k] == mujoco.mjtTrn.mjTRN_JOINT and np.any(model.actuator_forcerange[k]):
            j = int(model.actuator_trnid[k, 0])
            ratio = float(np.abs(model.actuator_gear[k]).max())
            found[names[j]] = found.get(names[j], 0.0) + ratio * float(np.abs(model.actuator_forcerange[k]).max())
    for j in range(model.njnt):
        if model.jnt_actfrclimited[j]:
            found[names[j]] = float(np.abs(model.jnt_actfrcrange[j]).max())
    return found


def _limits(source: Source, sidecar: Sidecar, reading: Reading) -> Limits:
    model, n = source.model, len(reading.dofs)
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    for joint in reading.joints:
        if joint.kind in (HINGE, SLIDE):
            lower[joint.dof], upper[joint.dof] = _range(model, sidecar, joint.name)
    in_file = stated_limits(source)

    def by_joint(key: str) -> dict[str, float]:
        out = {name: limits[key] for name, limits in in_file.items() if key in limits}
        if key == "torque":
            out |= _actuator_torque(model)
        return out | {
            name: value for name, limits in sidecar.limits.items() if (value := getattr(limits, key)) is not None
        }

    keys = ("velocity", "acceleration", "torque", "torque_rate")
    arrays = (frozen(_per_dof(reading.joints, n, by_joint(key), np.inf)) for key in keys)
    return Limits(frozen(lower), frozen(upper), *arrays)


def _home(model: mujoco.MjModel, sidecar: Sidecar, reading: Reading, limits: Limits) -> Array:
    """The resting pose: the sidecar's, else a keyframe, else the model's reference moved into the joint ranges."""
    if model.nkey:
        named = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, "home")
        full = np.array(model.key_qpos[max(named, 0)])
    else:
        full = np.array(model.qpos0)
    home = full[reading.model_coordinates]
    for joint in reading.joints:
        if joint.kind not in (HINGE, SLIDE):
            continue
        k = joint.coordinate
        if joint.name in sidecar.home:
            home[k] = sidecar.home[joint.name]
            span = float(limits.lower[joint.dof]), float(limits.upper[joint.dof])
            if _is_outside(home[k], span):
                raise ModelError(
                    f"the file of limits beside the model: home of '{joint.name}' is {home[k]:g}, outside its range "
                    f"{span[0]:.4g} … {span[1]:.4g}; move it inside"
                )
        elif not limits.lower[joint.dof] <= home[k] <= limits.upper[joint.dof]:
            home[k] = 0.5 * (limits.lower[joint.dof] + limits.upper[joint.dof])
    return frozen(home)


def _check_sidecar(sidecar: Sidecar, model: mujoco.MjModel) -> None:
    joints, bodies = joint_names(model), body_names(model)
    for name in (*sidecar.lock, *sidecar.home, *sidecar.limits):
        if name not in joints:
            raise ModelError(f"the file of limits beside the model: {unknown_name('joint', name, joints)}")
    for name in sidecar.leave_out:
        if name not in bodies:
            raise ModelError(f"the file of limits beside the model: {unknown_name('body', name, bodies)}")


def _default_bodies(reading: Reading, sidecar: Sidecar) -> tuple[list[str], list[str]]:
    """What is identified unless told otherwise, and the massless frames that are not."""
    frames = [name for name, p in zip(reading.bodies, reading.body_parameters, strict=True) if not np.any(p)]
    left_out = {*sidecar.leave_out, *frames}
    return [name for name in reading.bodies if name not in left_out], frames


def load_robot(
    model: str | Path | mujoco.MjSpec | mujoco.MjModel | Mapping,
    *,
    bodies: Iterable[str] | None = None,
    lock: Lock | None = None,
    friction: Iterable[str] = (),
    armature: bool = True,
    damping: bool = True,
    gravity: ArrayLike | None = None,
    mounting: ArrayLike | None = None,
    floating_base: bool = False,
) -> Robot:
    """Read a robot: a library name, an MJCF or URDF file, a DH table (YAML), an MjSpec or an MjModel.

    `bodies` are identified (default: all that move and have mass), joints in `lock` are held besides those that the
    sidecar holds (a list: where the model draws them; a mapping: at its values, None being where the model draws it;
    empty: none at all), `friction` adds
    columns ("coulomb", "offset"). `gravity` is in the axes of the base; `mounting` is the rotation of a tilted base,
    from its axes to those of the world.
    """
    source = read_source(_resolve(model), floating_base=floating_base)
    sidecar = read_sidecar(source.path) if source.path is not None else Sidecar()
    joints, locks = joint_names(source.model), _locks(lock, sidecar)
    reading = read_tree(source.model, locks)
    _check_sidecar(sidecar, source.model)
    _refuse_outside(source.model, sidecar, locks)

    default, frames = _default_bodies(reading, sidecar)
    chosen = select(_names("bodies", bodies), reading.bodies, "moving body") if bodies is not None else tuple(default)
    asked = (friction,) if isinstance(friction, str) else tuple(_names("friction", friction))
    for name in asked:
        if name not in FRICTION:
            hint = "armature and damping have switches of their own; " if name in ALWAYS else ""
            raise ModelError(hint + unknown_name("friction term", name, FRICTION))
    switches = {"armature": armature, "damping": damping}
    properties = tuple(p for p in JOINT_PROPERTIES if switches.get(p, p in asked))
    linear = frozenset(
        reading.dof_names[k]
        for joint in reading.joints
        for k in range(joint.dofs.start, joint.dofs.stop)
        if joint.kind == SLIDE or (joint.kind == FREE and k < joint.dof + 3)
    )
    layout = ParameterLayout(chosen, reading.dof_names, properties, linear)

    held = np.setdiff1d(np.arange(source.model.nv), reading.model_dofs)
    notes = [*source.notes, *uncarried(source.model, held, properties)]
    locked = [name for name in joints if name not in {joint.name for joint in reading.joints}]
    if locked:
        held_at = [_held_where(source.model, sidecar, name, reading.model_position) for name in locked]
        notes.append(f"locked: {', '.join(held_at)}")
    left_out = [name for name in reading.bodies if name not in chosen and name not in frames]
    if left_out:
        notes.append(f"not identified, their nominal weight acts as known: {', '.join(left_out)}")
    if frames and bodies is None:
        notes.append(f"massless frames, without parameters: {', '.join(frames)}")
    limits = _limits(source, sidecar, reading)
    return Robot(
        name=source.name,
        links=reading.links,
        dofs=reading.dofs,
        joints=reading.joints,
        bodies=reading.bodies,
        body_parameters=reading.body_parameters,
        joint_parameters=reading.joint_parameters,
        gravity=frozen(_gravity(source.model, gravity, mounting)),
        layout=layout,
        limits=limits,
        home=_home(source.model, sidecar, reading, limits),
        notes=tuple(notes),
        source=source,
        model_coordinates=reading.model_coordinates,
        model_dofs=reading.model_dofs,
        model_position=reading.model_position,
        model_bodies=reading.model_bodies,
    )
