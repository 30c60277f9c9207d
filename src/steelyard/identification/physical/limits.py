"""What else is known of bodies and joints, as rows: g·θ + c >= 0, e·θ = d, and balls around centres of mass.

Conditions on where a body's mass is are linear in its pseudo-inertia: for a quadratic form x̃ᵀQx̃ (x̃ = (x, 1)) that is
>= 0 wherever there may be mass, tr(JQ) = ∫ x̃ᵀQx̃ dm >= 0 (Wensing, Kim, Slotine, RA-L 2018).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError, OptionError
from ...robot.feasibility import Ball, Box
from ...robot.inertia import PSEUDO_BASIS
from ...robot.parameters import ParameterLayout
from ...robot.robot import Robot

Array = NDArray[np.float64]
Region = Literal["com", "box", "ellipsoid"]
REGIONS = ("com", "box", "ellipsoid")

_THINNEST = 1e-3  # m, half the thickness of a flat geom's region


@dataclass(frozen=True)
class Equality:
    """Σ coefficient·parameter = value, by the parameters' names: `Equality({"a.Ixx": 1, "a.Iyy": -1})` is a rotor."""

    terms: Mapping[str, float]
    value: float = 0.0

    def __post_init__(self) -> None:
        if not self.terms or not np.isfinite([self.value, *self.terms.values()]).all():
            raise OptionError(
                f"an equality needs names with finite coefficients, not {dict(self.terms)} = {self.value}"
            )


def symmetric_about(body: str, axis: str) -> tuple[Equality, ...]:
    """A rotor that is balanced about an axis of its frame: centre of mass on it, two moments alike, no products."""
    if axis not in ("x", "y", "z"):
        raise OptionError(f"a body is symmetric about x, y or z, not '{axis}'")
    a, b = (other for other in "xyz" if other != axis)
    zeros = (f"m{a}", f"m{b}", "Ixy", "Ixz", "Iyz")
    alike = Equality({f"{body}.I{a}{a}": 1.0, f"{body}.I{b}{b}": -1.0})
    return (*(Equality({f"{body}.{part}": 1.0}) for part in zeros), alike)


def mirrored_in(body: str, plane: str) -> tuple[Equality, ...]:
    """A link whose halves on both sides of a plane of its frame are alike."""
    if plane not in ("xy", "xz", "yz"):
        raise OptionError(f"a body is mirrored in the plane xy, xz or yz, not '{plane}'")
    (normal,) = set("xyz") - set(plane)
    products = [name for name in ("xy", "xz", "yz") if normal in name]
    return tuple(Equality({f"{body}.{part}": 1.0}) for part in (f"m{normal}", *(f"I{pair}" for pair in products)))


@dataclass(frozen=True, eq=False)
class Linear:
    """rows·θ + constant, each with the name under which it is reported."""

    names: tuple[str, ...]
    rows: Array
    constant: Array


@dataclass(frozen=True)
class _Rows:
    """Rows while they are collected."""

    size: int
    names: list[str] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)
    constant: list[float] = field(default_factory=list)

    def add(self, name: str, columns: NDArray | slice | int, values: Array | float, constant: float = 0.0) -> None:
        row = np.zeros(self.size)
        row[columns] = values
        self.names.append(name)
        self.rows.append(row)
        self.constant.append(constant)

    def done(self) -> Linear:
        rows = np.array(self.rows).reshape(len(self.names), self.size)
        return Linear(tuple(self.names), rows, np.array(self.constant))


def _trace_row(Q: Array) -> Array:
    """The row of tr(JQ) in the ten parameters of a body."""
    return np.einsum("kij,ij->k", PSEUDO_BASIS, Q)


def _half_space(axis: int, sign: float, bound: float) -> Array:
    """sign·(x − bound) >= 0."""
    Q = np.zeros((4, 4))
    Q[axis, 3] = Q[3, axis] = 0.5 * sign
    Q[3, 3] = -sign * bound
    return Q


def _slab(axis: int, lower: float, upper: float) -> Array:
    """(x − lower)(upper − x) >= 0."""
    Q = np.zeros((4, 4))
    Q[axis, axis] = -1.0
    Q[axis, 3] = Q[3, axis] = 0.5 * (lower + upper)
    Q[3, 3] = -lower * upper
    return Q


def _ellipsoid(box: Box) -> Array:
    """1 − Σ (x − c)²/a² >= 0, the smallest ellipsoid around a box: a is √3 times half its edge."""
    lower, upper = np.array(box.lower), np.array(box.upper)
    centre, weight = 0.5 * (lower + upper), 1.0 / (3.0 * (0.5 * (upper - lower)) ** 2)
    Q = np.zeros((4, 4))
    Q[range(3), range(3)] = -weight
    Q[:3, 3] = Q[3, :3] = weight * centre
    Q[3, 3] = 1.0 - np.sum(weight * centre**2)
    return Q


def geom_boxes(robot: Robot) -> dict[str, Box]:
    """The bounding box, in the body frame, of the geoms of every identified body that has any."""
    if robot.source is None:
        raise ModelError(f"{robot.name} has no model file behind it, so no geoms; name boxes for its bodies instead")
    model, boxes = robot.source.model, {}
    corners = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    for name in robot.layout.bodies:
        body = robot.model_bodies[robot.bodies.index(name)]
        points = []
        for geom in np.flatnonzero(model.geom_bodyid == body):
            if model.geom_type[geom] in (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD):
                continue
            axes = np.empty(9)
            mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
            centre, half = model.geom_aabb[geom, :3], np.maximum(model.geom_aabb[geom, 3:], _THINNEST)
            points.append(model.geom_pos[geom] + (centre + corners * half) @ axes.reshape(3, 3).T)
        if points:
            cloud = np.concatenate(points)
            lower, upper = cloud.min(axis=0).tolist(), cloud.max(axis=0).tolist()
            boxes[name] = Box((lower[0], lower[1], lower[2]), (upper[0], upper[1], upper[2]))
    return boxes


def _com_in_box(rows: _Rows, columns: slice, name: str, box: Box) -> None:
    for axis, letter in enumerate("xyz"):
        if np.isfinite(box.lower[axis]):
            row = _trace_row(_half_space(axis, 1.0, box.lower[axis]))
            rows.add(f"{name}: centre of mass {letter} >= {box.lower[axis]:.4g} m", columns, row)
        if np.isfinite(box.upper[axis]):
            row = _trace_row(_half_space(axis, -1.0, box.upper[axis]))
            rows.add(f"{name}: centre of mass {letter} <= {box.upper[axis]:.4g} m", columns, row)


def _mass_in_region(rows: _Rows, columns: slice, name: str, region: Region, box: Box) -> None:
    if region == "com":
        _com_in_box(rows, columns, name, box)
    elif region == "ellipsoid":
        rows.add(f"{name}: mass within the ellipsoid of its geoms", columns, _trace_row(_ellipsoid(box)))
    else:
        for axis, letter in enumerate("xyz"):
            row = _trace_row(_slab(axis, box.lower[axis], box.upper[axis]))
            rows.add(f"{name}: mass within the box of its geoms along {letter}", columns, row)


def inequalities(
    layout: ParameterLayout,
    nonnegative: Sequence[str],
    bounds: Mapping[str, tuple[float, float]],
    com: Mapping[str, Box | Ball],
    region: Region | None,
    boxes: Mapping[str, Box],
) -> Linear:
    """g·θ + c >= 0 for signs, bounds, boxes of centres of mass, and the region of `boxes` in which mass is."""
    rows = _Rows(layout.size)
    for prop in (prop for prop in layout.properties if prop in nonnegative):
        block = layout.block(prop)
        for column in range(block.start, block.stop):
            rows.add(f"{layout.names[column]} >= 0", column, 1.0)
    for name, (lower, upper) in bounds.items():
        column = layout.index(name)
        if np.isfinite(lower):
            rows.add(f"{name} >= {lower:.6g}", column, 1.0, -lower)
        if np.isfinite(upper):
            rows.add(f"{name} <= {upper:.6g}", column, -1.0, upper)
    for name, bound in com.items():
        if isinstance(bound, Box):
            _com_in_box(rows, layout.body(name), name, bound)
    if region is not None:
        for name, box in boxes.items():
            if name not in com or region != "com":
                _mass_in_region(rows, layout.body(name), name, region, box)
    return rows.done()


def com_balls(layout: ParameterLayout, com: Mapping[str, Box | Ball]) -> Iterator[tuple[str, Array]]:
    """Rows (4, p) that lie in the second-order cone: ‖h − m·centre‖ <= radius·m."""
    for name, bound in com.items():
        columns = layout.body(name)
        if isinstance(bound, Ball):
            rows = np.zeros((4, layout.size))
            rows[0, columns.start] = bound.radius
            rows[1:, columns.start] = -np.array(bound.center)
            rows[1:, columns.start + 1 : columns.start + 4] = np.eye(3)
            yield f"{name}: centre of mass within {bound.radius:.4g} m of the ball's centre", rows


def equalities(
    layout: ParameterLayout,
    equal: Sequence[Equality],
    fixed: Mapping[str, float],
    total: Sequence[str],
    total_mass: float | None,
) -> Linear:
    """e·θ = d as rows·θ + constant = 0; the total mass is that of the bodies in `total`."""
    rows = _Rows(layout.size)
    for one in equal:
        coefficients = np.array(list(one.terms.values()))
        rows.add(" + ".join(one.terms), layout.indices(one.terms), coefficients, -one.value)
    for name, value in fixed.items():
        rows.add(name, layout.index(name), 1.0, -value)
    if total_mass is not None:
        masses = np.array([layout.body(name).start for name in total])
        rows.add("total mass", masses, np.ones(len(masses)), -total_mass)
    return rows.done()
