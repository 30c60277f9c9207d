"""URDF of a robot that comes from another format: links, joints, limits, inertials and simple shapes.

A URDF joint turns about the origin of its link and is at zero where the file draws it. So a link's frame is the body's
frame, shifted to the joint where that is elsewhere, and a reference position (MuJoCo's `ref`) is turned back.
"""

from collections import Counter
from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .export_inertials import joint_values, listed, model_body, number, numbers, source_of, stated
from .reader import body_names, joint_names, rotation
from .robot import Array, Joint, Robot
from .tree import SLIDE
from .xmledit import pretty
from .xmltree import Element

_HINGE, _SLIDE, _BALL, _FREE = (int(getattr(mujoco.mjtJoint, f"mjJNT_{k}")) for k in ("HINGE", "SLIDE", "BALL", "FREE"))
_GEOM = {int(getattr(mujoco.mjtGeom, f"mjGEOM_{k}")): k.lower() for k in ("SPHERE", "CAPSULE", "CYLINDER", "BOX")}
_NOT_HELD = (
    ("actuator", "nactuator"),
    ("sensor", "nsensor"),
    ("tendon", "ntendon"),
    ("equality constraint", "neq"),
    ("site", "nsite"),
    ("camera", "ncam"),
    ("keyframe", "nkey"),
)


def roll_pitch_yaw(R: NDArray) -> Array:
    """Angles with Rz(yaw) Ry(pitch) Rx(roll) = R; to the last digit at a pitch of ±90° too, where yaw is arbitrary."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def origin(position: NDArray, R: NDArray) -> Element:
    return Element("origin", {"xyz": numbers(position), "rpy": numbers(roll_pitch_yaw(R))})


def inertial(mass: float, com: NDArray, inertia: NDArray) -> Element:
    """About the centre of mass in the axes of the link."""
    entries = {f"i{'xyz'[i]}{'xyz'[j]}": number(inertia[i, j]) for i in range(3) for j in range(i, 3)}
    place = Element("origin", {"xyz": numbers(com), "rpy": "0 0 0"})
    return Element("inertial", children=[place, Element("mass", {"value": number(mass)}), Element("inertia", entries)])


class _Writer:
    """A compiled model on its way to a URDF."""

    def __init__(self, robot: Robot):
        self.robot, self.model = robot, source_of(robot).model
        self.links, self.joints = body_names(self.model), joint_names(self.model)
        self.rows = {b: k for k, b in enumerate(robot.model_bodies.tolist())}
        self.moving = {joint.name: joint for joint in robot.joints}
        self.shift = np.zeros((self.model.nbody, 3))  # of the link's frame in the body's
        for b in range(1, self.model.nbody):
            j = self.joint_of(b)
            if j is not None and self.model.jnt_type[j] == _HINGE:
                self.shift[b] = self.model.jnt_pos[j]
        self.materials: dict[str, str] = {}
        self.no_place: Counter[str] = Counter()

    def joint_of(self, b: int) -> int | None:
        return int(self.model.body_jntadr[b]) if self.model.body_jntnum[b] else None

    def shapes(self, g: int) -> Iterator[tuple[Element, Array]]:
        """The elements of a geom's shape, and where each is along the z axis of the geom."""
        kind, size = _GEOM.get(int(self.model.geom_type[g])), self.model.geom_size[g]
        if kind == "box":
            yield Element("box", {"size": numbers(2 * size)}), np.zeros(3)
        elif kind == "sphere":
            yield Element("sphere", {"radius": number(size[0])}), np.zeros(3)
        elif kind in ("cylinder", "capsule"):
            attributes = {"radius": number(size[0]), "length": number(2 * size[1])}
            yield Element("cylinder", attributes), np.zeros(3)
            if kind == "capsule":  # which URDF lacks
                for end in (-size[1], size[1]):
                    yield Element("sphere", {"radius": number(size[0])}), np.array([0, 0, end])
        else:
            self.no_place[mujoco.mjtGeom(int(self.model.geom_type[g])).name.removeprefix("mjGEOM_").lower()] += 1

    def material(self, g: int) -> Element:
        material = int(self.model.geom_matid[g])
        rgba = self.model.geom_rgba[g] if material < 0 else self.model.mat_rgba[material]
        color = " ".join(f"{x:.6g}" for x in rgba)
        return Element("material", {"name": self.materials.setdefault(color, f"color{len(self.materials) + 1}")})

    def geoms(self, b: int) -> Iterator[Element]:
        model = self.model
        first = int(model.body_geomadr[b])
        for g in range(first, first + int(model.body_geomnum[b])):
            R = rotation(model.geom_quat[g])
            for shape, at in self.shapes(g):
                place = origin(model.geom_pos[g] + R @ at - self.shift[b], R)
                geometry = Element("geometry", children=[shape])
                yield Element("visual", children=[place, geometry, self.material(g)])
                if model.geom_contype[g] or model.geom_conaffinity[g]:
                    yield Element("collision", children=[place, geometry])

    def link(self, b: int) -> Element:
        weight = stated(self.robot.body_parameters[self.rows[b]]) if b in self.rows else model_body(self.model, b)
        mass, com, inertia = weight
        children = [inertial(mass, com - self.shift[b], inertia)] if mass > 0 else []
        return Element("link", {"name": self.links[b]}, children=children + list(self.geoms(b)))

    def limit(self, joint: Joint | None, j: int) -> list[Element]:
        model, limits = self.model, self.robot.limits
        lower, upper = model.jnt_range[j] if model.jnt_limited[j] else (-np.inf, np.inf)
        effort = velocity = np.inf
        if joint is not None:
            lower, upper = limits.lower[joint.dof], limits.upper[joint.dof]
            effort, velocity = limits.torque[joint.dof], limits.velocity[joint.dof]
        known = {"effort": effort, "velocity": velocity}
        attributes = {name: number(value if np.isfinite(value) else 0) for name, value in known.items()}
        if np.isfinite([lower, upper]).all():
            attributes |= {"lower": number(lower), "upper": number(upper)}
        return [Element("limit", attributes)]

    def bounded(self, joint: Joint | None, j: int) -> bool:
        if joint is None:
            return bool(self.model.jnt_limited[j])
        limits = self.robot.limits
        return bool(np.isfinite([limits.lower[joint.dof], limits.upper[joint.dof]]).all())

    def dynamics(self, joint: Joint | None, j: int) -> list[Element]:
        model, dof = self.model, int(self.model.jnt_dofadr[j])
        values = {
            "damping": model.dof_damping[dof],
            "friction": model.dof_frictionloss[dof],
            "armature": model.dof_armature[dof],
        }
        if joint is not None:
            own = joint_values(self.robot, joint)
            values = {"damping": own["damping"], "friction": own["coulomb"], "armature": own["armature"]}
        if not values["armature"]:
            del values["armature"]
        return [Element("dynamics", {name: number(v) for name, v in values.items()})] if any(values.values()) else []

    def joint(self, b: int) -> Element:
        model, parent = self.model, int(self.model.body_parentid[b])
        ends = [Element("parent", {"link": self.links[parent]}), Element("child", {"link": self.links[b]})]
        R, p = rotation(model.body_quat[b]), model.body_pos[b] - self.shift[parent]
        j = self.joint_of(b)
        if j is None:
            name = f"{self.links[b]}_fixed"
            while name in self.joints:
                name += "_"
            return Element("joint", {"name": name, "type": "fixed"}, children=[origin(p, R), *ends])
        known, name = self.moving.get(self.joints[j]), self.joints[j]
        if model.jnt_type[j] == _FREE:
            children = [origin(p, R), *ends, *self.dynamics(known, j)]
            return Element("joint", {"name": name, "type": "floating"}, children=children)
        axis, back = model.jnt_axis[j], -float(model.qpos0[model.jnt_qposadr[j]])
        if model.jnt_type[j] == _SLIDE:
            kind, p = "prismatic", p + back * (R @ axis)
        else:
            kind, p = "revolute" if self.bounded(known, j) else "continuous", p + R @ self.shift[b]
            if back:
                turned = np.empty(4)
                mujoco.mju_axisAngle2Quat(turned, axis, back)
                R = R @ rotation(turned)
        along = Element("axis", {"xyz": numbers(axis)})
        children = [origin(p, R), *ends, along, *self.limit(known, j), *self.dynamics(known, j)]
        return Element("joint", {"name": name, "type": kind}, children=children)

    def refuse(self) -> None:
        """Names what a link of a URDF cannot have."""
        wrong = []
        for b in range(1, self.model.nbody):
            count = int(self.model.body_jntnum[b])
            if count > 1:
                wrong.append(f"the {count} joints of body '{self.links[b]}'")
            elif count and self.model.jnt_type[self.model.body_jntadr[b]] == _BALL:
                wrong.append(f"the ball joint '{self.joints[self.model.body_jntadr[b]]}'")
        if wrong:
            raise ModelError(f"URDF cannot hold {listed(wrong)}; export to MJCF (.xml)")

    def notes(self) -> Iterator[str]:
        model = self.model
        shifted = [self.links[b] for b in np.flatnonzero(self.shift.any(axis=1))]
        if shifted:
            yield (
                f"the frames of {listed(shifted)} were moved to their joints, where URDF has them: the same bodies, "
                "but other numbers for their parameters"
            )
        present = [(int(getattr(model, field)), one) for one, field in _NOT_HELD if getattr(model, field)]
        counts = [f"{count} {one}{'s' * (count > 1)}" for count, one in present]
        counts += [f"{count} {kind} geom{'s' * (count > 1)}" for kind, count in self.no_place.items()]
        names = self.joints
        springs = [names[j] for j in range(model.njnt) if model.jnt_stiffness[j] or model.jnt_stiffnesspoly[j].any()]
        curved = [names[model.dof_jntid[k]] for k in np.flatnonzero(model.dof_dampingpoly.any(axis=1))]
        counts += [f"springs of {listed(springs)}"] if springs else []
        counts += [f"nonlinear damping of {listed(list(dict.fromkeys(curved)))}"] if curved else []
        counts += ["gravity compensation (gravcomp)"] if model.ngravcomp else []
        if counts:
            yield f"URDF has no place for what the model also has: {', '.join(counts)}"
        endless = [j.name for j in self.robot.joints if j.kind == SLIDE and not self.bounded(j, 0)]
        if endless:
            yield (
                f"URDF has no slide without limits: {listed(endless)}: free here and in MuJoCo, held at 0 by other "
                "programs; give limits"
            )
        unknown = [j.name for j in self.robot.joints if not np.isfinite(self.robot.limits.torque[j.dof])]
        if unknown:
            yield f"a limit of 0 in effort or velocity stands for one that is not known: {listed(unknown)}"


def generate_urdf(robot: Robot, notes: list[str]) -> str:
    """A URDF without meshes of a robot that `settle` has prepared."""
    writer = _Writer(robot)
    writer.refuse()
    links = [writer.link(b) for b in range(writer.model.nbody)]
    joints = [writer.joint(b) for b in range(1, writer.model.nbody)]
    colors = [
        Element("material", {"name": name}, children=[Element("color", {"rgba": rgba})])
        for rgba, name in writer.materials.items()
    ]
    # MuJoCo would fuse links that are welded and weigh shapes where a link has no inertial
    settings = Element("compiler", {"inertiafromgeom": "false", "fusestatic": "false"})
    children = [Element("mujoco", children=[settings]), *colors, *links, *joints]
    notes += writer.notes()
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + pretty(Element("robot", {"name": robot.name}, children=children))
