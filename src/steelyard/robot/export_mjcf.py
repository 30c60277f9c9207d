"""MJCF of a robot: the user's own model with its inertials, joint values and gravity replaced.

Written as the spec states it, not as it compiles: the notation of the user (degrees, Euler angles, classes of defaults)
stays, and every number with all its digits.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from .assets import Asset, assets_of, leave_out, root_folder
from .compiling import mujoco_speaks
from .export_inertials import (
    changed_bodies,
    joint_values,
    listed,
    numbers,
    offsets,
    source_of,
    source_values,
    stated,
)
from .robot import Robot

OFFSET_PREFIX = "steelyard_offset_"
_AUTO_INERTIA = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
_TRUE_INERTIA = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
_BY_QUATERNION = mujoco.mjtOrientation.mjORIENTATION_QUAT
_ALIGNED = mujoco.mjtAlignFree
_PROLOGUE = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)


def _compilers(spec: mujoco.MjSpec) -> list:
    """The settings of the model and of everything attached to it."""
    return [spec.compiler, *(body.compiler for body in spec.bodies)]


def rewrites_inertias(spec: mujoco.MjSpec) -> bool:
    """Whether the compiler would not leave a stated inertial as it is."""
    return any(
        c.inertiafromgeom == _TRUE_INERTIA
        or c.balanceinertia
        or c.fusestatic
        or max(c.settotalmass, c.boundmass, c.boundinertia) > 0
        for c in _compilers(spec)
    )


def _leave_inertias_alone(spec: mujoco.MjSpec) -> None:
    for compiler in _compilers(spec):
        if compiler.inertiafromgeom == _TRUE_INERTIA:
            compiler.inertiafromgeom = _AUTO_INERTIA
        for name, neutral in (("balanceinertia", False), ("settotalmass", -1.0), ("boundmass", 0), ("boundinertia", 0)):
            if getattr(compiler, name) != neutral:
                setattr(compiler, name, neutral)


def _weigh(body: mujoco.MjsBody, parameters: NDArray) -> None:
    mass, com, I = stated(parameters)
    body.explicitinertial, body.mass, body.ipos = True, mass, com
    body.inertia, body.iquat, body.ialt.type = [0, 0, 0], [1, 0, 0, 0], _BY_QUATERNION
    body.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def _unalign(body: mujoco.MjsBody, model: mujoco.MjModel) -> None:
    """Draw a body that MuJoCo aligned with its inertia where it ended up: other inertias would align it elsewhere."""
    b, R, turned = body.id, np.empty(4), np.empty(3)
    start, quaternion = np.array(body.pos), np.empty(4)
    # The old body frame seen from the new one: what the body carries hangs there
    mujoco.mju_negQuat(R, model.body_quat[b])
    if body.frame is not None or body.alt.type != _BY_QUATERNION:
        old = _drawn(body)
        start, quaternion = old[0], old[1]
    else:
        quaternion = np.array(body.quat)
    mujoco.mju_rotVecQuat(turned, start - model.body_pos[b], R)
    back = np.empty(4)
    mujoco.mju_mulQuat(back, R, quaternion)
    frame = body.add_frame(pos=turned, quat=back)
    for element in (*body.geoms, *body.sites, *body.cameras, *body.lights, *body.frames):
        if element.frame is None and element is not frame:
            element.set_frame(frame)
    body.pos, body.quat, body.alt.type = model.body_pos[b], model.body_quat[b], _BY_QUATERNION
