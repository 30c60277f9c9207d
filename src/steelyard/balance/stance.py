"""`Stance`: which part of a robot is the trunk, and how its legs stand on wheels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import jacobian, pose
from ..errors import ModelError, OptionError, unknown_name
from ..robot.inertia import mass_com_inertia
from ..robot.robot import Robot, frozen
from ..robot.tree import FREE, HINGE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Leg:
    """Hip, knee and wheel joint of one leg, and the tyre."""

    hip: str
    knee: str
    wheel: str
    wheel_body: str
    radius: float  # m
    half_width: float  # m, how far sideways of the wheel's middle the floor may push


@dataclass(frozen=True, eq=False)
class Stance:
    """A robot with a free trunk on wheeled legs. The trunk's frame is the frame of all that is found."""

    robot: Robot
    trunk: str
    upper: tuple[str, ...]  # the trunk and what is welded to it: what is weighed
    legs: tuple[Leg, ...]
    imu: Array  # (3, 3) from the axes of the IMU to those of the trunk

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Every joint but the trunk's own, in the order of the model."""
        return tuple(joint.name for joint in self.robot.joints if joint.kind != FREE)

    @cached_property
    def dofs(self) -> NDArray[np.int64]:
        return np.array([self.robot.joint(name).dof for name in self.joints])

    def column(self, joint: str) -> int:
        return self.joints.index(joint)

    @cached_property
    def _free(self) -> int:
        return next(joint.coordinate for joint in self.robot.joints if joint.kind == FREE)

    def positions(self, q: ArrayLike) -> Array:
        """Positions of the whole robot (samples, nq), its trunk at the origin of its own frame."""
        q = np.atleast_2d(np.asarray(q, dtype=np.float64))
        full = np.zeros((len(q), self.robot.nq))
        full[:, self._free + 3] = 1.0
        full[:, [self.robot.joint(name).coordinate for name in self.joints]] = q
        return full

    @cached_property
    def home(self) -> Array:
        """The joints' home positions."""
        return frozen([self.robot.home[self.robot.joint(name).coordinate] for name in self.joints])

    @cached_property
    def lateral(self) -> Array:
        """The hips' axis in the trunk's frame: across the sagittal plane, and so towards +y of the trunk or +x."""
        J = jacobian(self.robot, self.positions(self.home)[0], self.robot.joint(self.legs[0].hip).body)
        axis = J[3:, self.robot.joint(self.legs[0].hip).dof]
        return frozen(axis if axis[np.abs(axis).argmax()] > 0 else -axis)

    @property
    def forward(self) -> Array:
        """Across the hips' axis and the trunk's z."""
        ahead = np.cross(self.lateral, (0.0, 0.0, 1.0))
        return ahead / np.linalg.norm(ahead)

    @cached_property
    def leg_length(self) -> float:
        """From hip to axle at home, m, on the average: the scale of levers."""
        q = self.positions(self.home)
        spans = [self.point(q, leg.hip) - self.point(q, leg.wheel) for leg in self.legs]
        return float(np.mean([np.linalg.norm(span) for span in spans]))

    def point(self, positions: Array, joint: str) -> Array:
        """Where a joint's axis is, in the trunk's frame (samples, 3)."""
        body = self.robot.joint(joint).body
        anchor = self.robot.links[self.robot.link_of(body)]["anchor"]
        return pose(self.robot, positions, body, anchor)[0]

    def wheel(self, positions: Array, leg: Leg) -> tuple[Array, Array]:
        """The axle's direction (samples, 3) and the Jacobian of the wheel's middle (samples, 6, dofs)."""
        anchor = self.robot.links[self.robot.link_of(leg.wheel_body)]["anchor"]
        J = jacobian(self.robot, positions, leg.wheel_body, anchor)
        return J[:, 3:, self.robot.joint(leg.wheel).dof], J

    @cached_property
    def nominal(self) -> Array:
        """[m, mx, my, mz] of the upper body as the model has it, in the trunk's frame."""
        q = self.positions(self.home)
        total = np.zeros(4)
        for body in self.upper:
            m, com, _ = mass_com_inertia(self.robot.body_parameters[self.robot.bodies.index(body)])
            if m > 0:
                total += m * np.append(1.0, pose(self.robot, q, body, com)[0][0])
        return frozen(total)

    @cached_property
    def under_gravity(self) -> tuple[tuple[Robot, Robot], ...]:
        """For a specific force of 1 m/s² along each axis of the trunk: the trunk's columns, and the known rest.

        Statics are linear in the specific force s (an accelerometer's reading), so three robots make all poses:
        in a frame that accelerates with the trunk, gravity is −s.
        """
        weighed, rest = self.robot.body_parameters.copy(), self.robot.body_parameters.copy()
        rest[[self.robot.bodies.index(body) for body in self.upper]] = 0.0
        weighed[:] = 0.0
        still = np.zeros_like(self.robot.joint_parameters)
        columns = self.robot.with_layout((self.trunk,), ())

        def pulled(robot: Robot, bodies: Array, axis: int) -> Robot:
            gravity = frozen(-np.eye(3)[axis])
            return replace(robot, body_parameters=frozen(bodies), joint_parameters=frozen(still), gravity=gravity)

        return tuple((pulled(columns, weighed, k), pulled(self.robot, rest, k)) for k in range(3))


def _ancestors(robot: Robot, body: str) -> list[str]:
    """The bodies from this one down to the root, itself first."""
    found, link = [], robot.link_of(body)
    while link > 0:
        if robot.links[link]["body"] >= 0:
            found.append(robot.bodies[robot.links[link]["body"]])
        link = int(robot.links[link]["parent"])
    return found


def _welded(robot: Robot, trunk: str) -> tuple[str, ...]:
    """The trunk and all bodies between which and it no joint moves."""
    moved_last = robot.links[robot.link_of(trunk)]["last_dof"]
    return tuple(body for body in robot.bodies if robot.links[robot.link_of(body)]["last_dof"] == moved_last)


def _tyre(robot: Robot, body: str, joint: str) -> tuple[float, float]:
    """Radius and half the width of the largest shape on a wheel, m."""
    assert robot.source is not None
    model = robot.source.model
    b = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body)
    axis = model.jnt_axis[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)]
    best = (0.0, 0.0)
    for g in range(model.ngeom):
        if model.geom_bodyid[g] != b:
            continue
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, model.geom_quat[g])
        corners = np.abs(R.reshape(3, 3)) @ model.geom_aabb[g, 3:]
        along = float(np.abs(axis) @ corners)
        across = corners - np.abs(axis) * along
        best = max(best, (float(across.max()), 0.0 if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_SPHERE else along))
    return best


def _hinges(robot: Robot, given: Sequence[str] | None, what: str) -> list[str]:
    hinges = [joint.name for joint in robot.joints if joint.kind == HINGE]
    for name in given or ():
        if name not in hinges:
            raise OptionError(f"{what}: {unknown_name('hinge', name, hinges)}")
    return list(given or ())


def _chains(robot: Robot, trunk: str) -> list[list[str]]:
    """The hinges of every unbranched chain that hangs on the trunk, from hip to wheel."""
    by_body = {joint.body: joint.name for joint in robot.joints if joint.kind == HINGE}
    paths = {body: [by_body[b] for b in _ancestors(robot, body)[::-1] if b in by_body] for body in by_body}
    return [
        path
        for path in paths.values()
        if not any(len(p) > len(path) and p[: len(path)] == path for p in paths.values())
    ]


def _imu_axes(robot: Robot, trunk: str, site: str | None) -> Array:
    """The rotation of the IMU's site on the trunk; where none is named, of the model's one accelerometer."""
    if robot.source is None:
        return np.eye(3)
    model = robot.source.model
    sites = [model.site(k).name for k in range(model.nsite)]
    if site is None:
        is_meter = model.sensor_type == mujoco.mjtSensor.mjSENS_ACCELEROMETER
        found = {int(k) for k in model.sensor_objid[is_meter]}
        if len(found) != 1:
            return np.eye(3)
        k = found.pop()
    elif site in sites:
        k = sites.index(site)
    else:
        raise OptionError(unknown_name("site of the IMU", site, sites))
    if model.body(model.site_bodyid[k]).name != trunk:
        raise OptionError(f"the IMU's site '{sites[k]}' is not on the trunk '{trunk}'; name one that is")
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, model.site_quat[k])
    return R.reshape(3, 3)


def stance_of(
    robot: Robot,
    hips: Sequence[str] | None = None,
    knees: Sequence[str] | None = None,
    wheels: Sequence[str] | None = None,
    imu: str | None = None,
    radius: float | None = None,
    tyre_width: float | None = None,
) -> Stance:
    """Find trunk and legs: joints by the names given, else every chain of three hinges on the trunk is a leg."""
    free = [joint for joint in robot.joints if joint.kind == FREE]
    if len(free) != 1:
        raise ModelError(f"{robot.name} has {len(free)} free bodies; one trunk must be free (`floating_base=True`)")
    trunk = free[0].body
    names = [_hinges(robot, given, what) for given, what in ((hips, "hips"), (knees, "knees"), (wheels, "wheels"))]
    chains = [c for c in _chains(robot, trunk) if len(c) == 3 or any(set(c) & set(n) for n in names)]
    legs = []
    for chain in chains:
        parts = [
            next((name for name in given if name in chain), None) if given else chain[k]
            for given, k in zip(names, (0, 1, -1), strict=True)
        ]
        if None in parts:
            continue
        hip, knee, wheel = (str(part) for part in parts)
        if not chain.index(hip) < chain.index(knee) < chain.index(wheel):
            raise OptionError(f"{hip}, {knee}, {wheel} do not follow one another from the trunk; name hip, knee, wheel")
        body = robot.joint(wheel).body
        found = _tyre(robot, body, wheel)
        r, w = (radius or found[0], found[1] if tyre_width is None else 0.5 * tyre_width)
        if not (r > 0 and w >= 0):
            raise OptionError(f"the radius of '{wheel}' is {r:g} m: the model draws no wheel; give --radius")
        legs.append(Leg(hip, knee, wheel, body, r, w))
    told = {name for given in names for name in given}
    missing = told - {name for leg in legs for name in (leg.hip, leg.knee, leg.wheel)}
    if not legs or missing:
        all_hinges = ", ".join(joint.name for joint in robot.joints if joint.kind == HINGE)
        which = f"{', '.join(sorted(missing))} are on no complete leg" if missing else "no legs were found"
        raise OptionError(f"{robot.name}: {which}; name --hip, --knee and --wheel joints among: {all_hinges}")
    return Stance(robot, trunk, _welded(robot, trunk), tuple(legs), frozen(_imu_axes(robot, trunk, imu)))
