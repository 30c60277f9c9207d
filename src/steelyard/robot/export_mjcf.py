"""MJCF of a robot: the user's own model with its inertials, joint values and gravity replaced.

Written as the spec states it, not as it compiles: the notation of the user (degrees, Euler angles, classes of defaults)
stays, and every number keeps all its digits.
"""

import os
import re
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .assets import Asset, assets_of, leave_out, named_left_out, root_folder
from .compiling import mujoco_speaks
from .export_inertials import (
    OFFSET_PREFIX,
    changed_bodies,
    joint_values,
    listed,
    lost_elements,
    lost_files,
    model_body,
    source_of,
    source_values,
    stated,
)
from .export_mjcf_text import edit_mjcf
from .robot import Robot
from .sources import Source
from .tree import FREE

_AUTO, _TRUE = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO, mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
_NEUTRAL = {"balanceinertia": False, "settotalmass": -1.0, "boundmass": 0.0, "boundinertia": 0.0}
_NO_GRAVITY = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
_PROLOGUE = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def _compilers(spec: mujoco.MjSpec) -> list[Any]:
    """The settings of the model and those of whatever is attached to it."""
    return [spec.compiler, *(body.compiler for body in spec.bodies)]


def _rewrites_inertias(spec: mujoco.MjSpec) -> bool:
    """Whether the compiler would not leave a stated inertial as it is."""
    return any(
        c.inertiafromgeom == _TRUE or c.fusestatic or any(getattr(c, name) > _NEUTRAL[name] for name in _NEUTRAL)
        for c in _compilers(spec)
    )


def leave_inertias_alone(spec: mujoco.MjSpec) -> None:
    """Make the compiler take stated inertials as they are."""
    for compiler in _compilers(spec):
        if compiler.inertiafromgeom == _TRUE:
            compiler.inertiafromgeom = _AUTO
        for name, neutral in _NEUTRAL.items():
            if getattr(compiler, name) != neutral:
                setattr(compiler, name, neutral)


def _weigh(body: mujoco.MjsBody, mass: float, com: NDArray, I: NDArray) -> None:
    body.explicitinertial, body.mass, body.ipos = True, mass, com
    body.inertia, body.iquat, body.ialt.type = [0, 0, 0], [1, 0, 0, 0], mujoco.mjtOrientation.mjORIENTATION_QUAT
    body.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def _refuse_alignment(body: mujoco.MjsBody) -> None:
    """MuJoCo may move the frame of a lone floating body into its inertia: another inertia would move it elsewhere."""
    aligned, auto = mujoco.mjtAlignFree.mjALIGNFREE_TRUE, mujoco.mjtAlignFree.mjALIGNFREE_AUTO
    free = [] if body.bodies else [joint for joint in body.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    if any(joint.align == aligned or (joint.align == auto and joint.compiler.alignfree) for joint in free):
        raise ModelError(
            f"body '{body.name}': MuJoCo aligns its free joint with its inertia, so that another inertia would move "
            'its frame; set align="false" in the model, and identify again'
        )


def set_bodies(robot: Robot, spec: mujoco.MjSpec, bodies: frozenset[int]) -> None:
    """Write the robot's inertials into a spec that has been compiled."""
    model = source_of(robot).model
    rows = {b: k for k, b in enumerate(robot.model_bodies.tolist())}
    for body in spec.bodies[1:]:
        row = rows.get(body.id)
        if row is not None:
            body.name = body.name or robot.bodies[row]
        if body.id in bodies:
            _refuse_alignment(body)
            _weigh(body, *(model_body(model, body.id) if row is None else stated(robot.body_parameters[row])))


def _set_joints(robot: Robot, spec: mujoco.MjSpec) -> None:
    model = source_of(robot).model
    by_id = {joint.id: joint for joint in spec.joints}
    for joint in robot.joints:
        j = int(model.dof_jntid[robot.model_dofs[joint.dof]])
        element, values = by_id[j], joint_values(robot, joint)
        element.name = element.name or joint.name
        never = joint.kind == FREE and element.align == mujoco.mjtAlignFree.mjALIGNFREE_FALSE
        if never and not element.compiler.alignfree:
            element.align = mujoco.mjtAlignFree.mjALIGNFREE_AUTO  # the same, and MJCF has no place for it and values
        if values == source_values(robot, joint) and not np.any(element.springdamper):
            continue
        if np.any(element.springdamper):  # would be turned into other numbers when the model is compiled
            element.stiffness = [model.jnt_stiffness[j], *model.jnt_stiffnesspoly[j]]
            element.springdamper = [0, 0]
        element.armature, element.frictionloss = values["armature"], values["coulomb"]
        element.damping = [values["damping"], *element.damping[1:]]


def _set_gravity(robot: Robot, spec: mujoco.MjSpec) -> None:
    off = int(spec.option.disableflags) & _NO_GRAVITY
    if np.array_equal(robot.gravity, np.zeros(3) if off else np.array(spec.option.gravity)):
        return
    spec.option.gravity = robot.gravity
    if off:
        spec.option.disableflags = int(spec.option.disableflags) & ~_NO_GRAVITY


def _keep_offsets(constant: dict[str, list[float]], spec: mujoco.MjSpec) -> None:
    for numeric in [n for n in spec.numerics if n.name.startswith(OFFSET_PREFIX)]:
        spec.delete(numeric)
    for name, values in constant.items():
        spec.add_numeric(name=f"{OFFSET_PREFIX}{name}", data=values, size=len(values))


def _path_of(asset: Asset, file: str, spec: mujoco.MjSpec) -> Path:
    compiler = asset.element.compiler
    directory = compiler.texturedir if asset.kind == "texture" else compiler.meshdir
    return Path(spec.modelfiledir or ".") / directory / (Path(file).name if spec.strippath else file)


def _set_files(spec: mujoco.MjSpec, folder: Path) -> None:
    """Let the files that the model refers to be found from the folder that it is written to."""
    assets = assets_of(spec)
    paths = [[_path_of(asset, file, spec).resolve() for file in asset.files] for asset in assets]
    own = {"texture": spec.texturedir}
    there = [
        [(folder / own.get(asset.kind, spec.meshdir) / file).resolve() for file in asset.files] for asset in assets
    ]
    spec.modelfiledir = str(folder)
    if there == paths:
        return

    def named(path: Path) -> str:
        near = path.is_relative_to(root_folder(folder / "model.xml"))
        return os.path.relpath(path, folder) if near else str(path)

    spec.strippath = False
    for compiler in [*_compilers(spec), *(asset.element.compiler for asset in assets)]:
        compiler.meshdir = compiler.texturedir = ""
    for asset, found in zip(assets, paths, strict=True):
        if asset.kind == "texture" and not asset.element.file:
            new = iter(found)
            asset.element.cubefiles = [named(next(new)) if file else "" for file in asset.element.cubefiles]
        else:
            asset.element.file = named(found[0])


def _leave_out_unsaved(spec: mujoco.MjSpec, notes: list[str], where: str) -> None:
    """Files that exist in memory only cannot be referred to."""
    unsaved = [a for a in assets_of(spec) if not all(_path_of(a, file, spec).is_file() for file in a.files)]
    for asset in unsaved:
        leave_out(spec, asset, "is in memory only", where)
    if unsaved:
        labels = listed([f"'{asset.label}'" for asset in unsaved])
        notes.append(f"files that are in memory only are left out: {labels}")


def _moved_references(source: Source, path: Path) -> list[str]:
    assert source.path is not None
    if not source.left_out or source.path.resolve().parent == path.resolve().parent:
        return []
    what = named_left_out(source.left_out)
    return [f"the names of files that could not be read stay as they are, for another folder than before: {what}"]


def _actuator_notes(model: mujoco.MjModel) -> list[str]:
    own = [k for k in range(model.nactuator) if model.actuator_armature[k] or np.any(model.actuator_damping[k])]
    if not own:
        return []
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, k) or f"actuator{k}" for k in own]
    return [
        f"actuators {listed(names)} keep their own armature and damping, which MuJoCo adds to the joints'; values "
        "identified from data contain them already: set them to 0 in the file"
    ]


def _prologue(text: str, notes: list[str]) -> str:
    """The comments before the root element, often a licence; those inside are lost, with the files included."""
    before = _PROLOGUE.match(text)
    comments = _COMMENT.findall(before[0]) if before else []
    if len(_COMMENT.findall(text)) > len(comments):
        notes.append("comments inside the model are not kept")
    if "<include" in text:
        notes.append("what the model included is written into the one file")
    return "".join(f"{comment}\n" for comment in comments)


def bodies_in_mjcf(robot: Robot) -> frozenset[int]:
    """MuJoCo's numbers of the bodies whose inertial will be written; the others stay as their author wrote them."""
    source = source_of(robot)
    model, spec = source.model, source.spec
    heavy = set(np.flatnonzero(model.body_mass).tolist())
    if not _rewrites_inertias(spec):
        names = [body.name for body in spec.bodies if body.explicitinertial and body.name]
        heavy &= set(robot.model_bodies.tolist())
        heavy -= {mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name) for name in names}
    return changed_bodies(robot) | heavy


def write_mjcf(robot: Robot, path: Path, constant: dict[str, list[float]], notes: list[str]) -> str:
    """The MJCF of a robot that `settle` has prepared, as it is to stand at `path`; `constant` are its offsets."""
    source, where = source_of(robot), f"the export to {path}"
    bodies = bodies_in_mjcf(robot)
    notes += _actuator_notes(source.model)
    plain = None if _rewrites_inertias(source.spec) else edit_mjcf(robot, path, bodies, constant)
    if plain is not None:
        notes += _moved_references(source, path)
        return plain
    notes += lost_files(source, path) + lost_elements(source, path)
    with mujoco_speaks(where, notes, lines=False):
        spec = source.spec.copy()
        discarded = spec.compiler.discardvisual
        spec.compiler.discardvisual = False  # or compiling takes the user's geoms out of the spec
        spec.compile()  # gives the elements the numbers they have in the model
        spec.compiler.discardvisual = discarded
        leave_inertias_alone(spec)
        set_bodies(robot, spec, bodies)
        _set_joints(robot, spec)
        _set_gravity(robot, spec)
        _keep_offsets(constant, spec)
        _leave_out_unsaved(spec, notes, where)
        _set_files(spec, path.resolve().parent)
        spec.compiler.savecompiled = spec.compiler.savecanonical = False
        text = spec.to_xml()
    return _prologue(source.text, notes) + text if source.kind == "mjcf" and source.text else text
