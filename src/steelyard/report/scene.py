"""The robot in 3-D: its bodies as lines between frames, what was found of each as an ellipsoid of the same inertia."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ..dynamics import pose
from ..errors import ModelError
from ..robot.inertia import mass_com_inertia
from ..robot.robot import Robot
from .markup import Cell, Html, Toned, data, fresh, join, key, plot, section, table
from .plots import colour, label, packed
from .subject import Piece, Subject

Array = NDArray[np.float64]
_FRAMES = 240
_FRAMES_A_SECOND = 15
_RINGS, _SIDES = 9, 16
# An ellipsoid is drawn no thinner than this share of the robot, or it could not be seen.
_THINNEST = 0.004
_GAP, _WORLD = -2, -1


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The solid ellipsoid of even density that has a body's mass, centre and inertia; in the body's frame."""

    centre: Array
    axes: Array  # columns
    semi: Array


def ellipsoid(parameters: Array) -> Ellipsoid | None:
    """a_k² = 5 Σ_k / m with Σ the second moments about the centre; None where no body could have these parameters."""
    try:
        mass, centre, inertia = mass_com_inertia(parameters)
    except ModelError:
        return None
    if not (mass > 0 and np.isfinite(parameters).all()):
        return None
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    if moments.min() < -1e-9 * max(moments.max(), 0.0):
        return None
    return Ellipsoid(np.asarray(centre), axes, np.sqrt(5.0 * np.maximum(moments, 0.0) / mass))


def _sphere() -> tuple[Array, NDArray[np.int64]]:
    """Points and triangles of a unit sphere."""
    polar, around = np.linspace(0, np.pi, _RINGS), np.linspace(0, 2 * np.pi, _SIDES, endpoint=False)
    p, a = np.meshgrid(polar, around, indexing="ij")
    points = np.stack([np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)], axis=-1).reshape(-1, 3)
    faces = []
    for r in range(_RINGS - 1):
        for s in range(_SIDES):
            here, right = r * _SIDES + s, r * _SIDES + (s + 1) % _SIDES
            faces += [(here, right, here + _SIDES), (right, right + _SIDES, here + _SIDES)]
    return points, np.array(faces)


def _parents(robot: Robot) -> list[int]:
    """For each body the next one towards the world, -1 for none."""
    links, found = robot.links, []
    for body in robot.bodies:
        link = int(links["parent"][robot.link_of(body)])
        while link > 0 and links["body"][link] < 0:
            link = int(links["parent"][link])
        found.append(int(links["body"][link]) if link > 0 else -1)
    return found


def body_poses(robot: Robot, q: Array) -> Array:
    """Rotation and position of every body at every moment, (T, bodies, 12)."""
    out = np.empty((len(q), len(robot.bodies), 12))
    for b, body in enumerate(robot.bodies):
        position, rotation = pose(robot, q, body)
        out[:, b, :9], out[:, b, 9:] = rotation.reshape(len(q), 9), position
    return out


@dataclass(frozen=True, eq=False)
class _Part:
    """Points that move with bodies, and the trace that they are drawn by."""

    trace: Any
    points: Array
    body: NDArray[np.int64]


def _bones(robot: Robot) -> list[tuple[int, Array, int, Array]]:
    """Pairs of points, each in a body's frame: from the frame of the body before, and on to the centre of mass."""
    bones = [
        (parent if parent >= 0 else _WORLD, np.zeros(3), b, np.zeros(3)) for b, parent in enumerate(_parents(robot))
    ]
    shapes = enumerate(map(ellipsoid, robot.body_parameters))
    return bones + [(b, np.zeros(3), b, shape.centre) for b, shape in shapes if shape is not None]


def _skeleton(robot: Robot) -> _Part:
    points: list[Array] = []
    body: list[int] = []
    for a, start, b, end in _bones(robot):
        points += [start, end, np.zeros(3)]
        body += [a, b, _GAP]
    line = go.Scatter3d(mode="lines", line={"width": 11}, meta={"ink": "neutral"}, hoverinfo="skip", name="robot")
    return _Part(line, np.array(points), np.array(body))


def _rings(shapes: Sequence[Ellipsoid | None]) -> _Part:
    """Three great circles of each ellipsoid."""
    around = np.linspace(0, 2 * np.pi, 2 * _SIDES + 1)
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(len(around))], axis=1)
    points: list[Array] = []
    body: list[int] = []
    for b, shape in enumerate(shapes):
        for turn in range(3) if shape is not None else ():
            assert shape is not None
            points += [*(shape.centre + (np.roll(circle, turn, axis=1) * shape.semi) @ shape.axes.T), np.zeros(3)]
            body += [b] * len(circle) + [_GAP]
    line = go.Scatter3d(mode="lines", line={"width": 2.5}, meta={"ink": "soft"}, hoverinfo="skip", name="nominal")
    return _Part(line, np.array(points).reshape(-1, 3), np.array(body, dtype=np.int64))


def _bodies(shapes: Sequence[Ellipsoid | None], name: str, thinnest: float, **style: Any) -> _Part | None:
    sphere, faces = _sphere()
    points: list[Array] = []
    body: list[NDArray[np.int64]] = []
    triangles: list[NDArray[np.int64]] = []
    shades: list[str] = []
    for b, shape in enumerate(shapes):
        if shape is None:
            continue
        start = len(points) * len(sphere)
        points.append(shape.centre + (sphere * np.maximum(shape.semi, thinnest)) @ shape.axes.T)
        body.append(np.full(len(sphere), b, dtype=np.int64))
        triangles.append(faces + start)
        shades += [colour(b)] * len(sphere)
    if not points:
        return None
    i, j, k = np.concatenate(triangles).T
    mesh = go.Mesh3d(
        i=i, j=j, k=k, name=name, hoverinfo="skip", flatshading=False, **style, vertexcolor=shades,
        lighting={"ambient": 0.65, "diffuse": 0.6, "specular": 0.15},
    )  # fmt: skip
    return _Part(mesh, np.concatenate(points), np.concatenate(body))


def _centres(robot: Robot, shapes: Sequence[Ellipsoid | None], words: str, symbol: str, **style: Any) -> _Part:
    have = [b for b, shape in enumerate(shapes) if shape is not None]
    text = [f"{label(robot.bodies[b])}, {words}" for b in have]
    marks = go.Scatter3d(
        mode="markers", text=text, name=words, marker={"symbol": symbol, **style},
        hovertemplate="%{text}<br>(%{x:.3f}, %{y:.3f}, %{z:.3f}) m<extra></extra>",
    )  # fmt: skip
    points = [shape.centre for shape in shapes if shape is not None]
    return _Part(marks, np.array(points).reshape(-1, 3), np.array(have, dtype=np.int64))


def _moments(pieces: Sequence[Piece], robot: Robot) -> tuple[Array, Array]:
    """Times and positions at which the robot is drawn: the first recording, or where the model is at home."""
    if not pieces:
        return np.zeros(1), np.asarray(robot.home)[None]
    run = pieces[0].recording
    count = int(np.clip(_FRAMES_A_SECOND * run.duration, 2, _FRAMES))
    pick = np.unique(np.linspace(0, len(run) - 1, count).astype(int))
    return run.t[pick] - run.t[0], run.q[pick]


def _placed(part: _Part, poses: Array) -> Array:
    """The points of a part at one moment."""
    out = np.where((part.body == _WORLD)[:, None], part.points, np.nan)
    on = part.body >= 0
    R, p = poses[part.body[on], :9].reshape(-1, 3, 3), poses[part.body[on], 9:]
    out[on] = np.einsum("kij,kj->ki", R, part.points[on]) + p
    return out


def _with_gaps(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _view(parts: Sequence[_Part], poses: Array) -> dict[str, Any]:
    """Axes that hold all of the motion, with one scale for all three."""
    some = poses[:: max(1, len(poses) // 40)]
    cloud = np.concatenate([_placed(part, moment) for part in parts for moment in some])
    low, high = np.nanmin(cloud, axis=0), np.nanmax(cloud, axis=0)
    middle, half = 0.5 * (low + high), 0.5 * float((high - low).max()) + 0.03
    axes = {
        f"{name}axis": {
            "range": [float(m - half), float(m + half)], "title": {"text": name}, "showbackground": False,
            "nticks": 5, "tickfont": {"size": 10},
        }
        for name, m in zip("xyz", middle, strict=True)
    }  # fmt: skip
    return {**axes, "aspectmode": "cube", "camera": {"eye": {"x": 1.0, "y": -1.0, "z": 0.45}}, "dragmode": "orbit"}


def _table(robot: Robot, nominal: Sequence[Ellipsoid | None], found: Sequence[Ellipsoid | None], after: Robot) -> Html:
    rows: list[tuple[Cell, ...]] = []
    for b, body in enumerate(robot.bodies):
        masses = (float(robot.body_parameters[b, 0]), float(after.body_parameters[b, 0]))
        row: list[Cell] = [body, *masses]
        for shape in (nominal[b], found[b]):
            row += [None] * 3 if shape is None else [float(x) for x in shape.centre]
        row.append(Toned("yes", "good") if found[b] is not None else Toned("no body could have it", "bad"))
        rows.append(tuple(row))
    columns = (
        "body",
        "mass nominal",
        "mass identified",
        "nominal CoM x",
        "y",
        "z",
        "identified CoM x",
        "y",
        "z",
        "drawn",
    )
    return table(columns, rows, "bodies, kg and m in the frame of each body")


def scene_section(subject: Subject, pieces: Sequence[Piece], beside: str | None = None) -> Html:
    """Nominal and identified inertia on the robot as it moves."""
    robot, after = subject.robot, subject.estimate.robot
    nominal = [ellipsoid(row) for row in robot.body_parameters]
    found = [ellipsoid(row) for row in after.body_parameters]
    t, q = _moments(pieces, robot)
    poses = body_poses(robot, q)
    reach = float(np.ptp(poses[0, :, 9:], axis=0).max()) or 1.0
    thinnest = _THINNEST * reach
    made = (
        _skeleton(robot),
        _rings(nominal),
        _bodies(found, "identified", thinnest, opacity=0.4),
        _centres(robot, nominal, "nominal centre of mass", "x", size=4, color="#8b939c"),
        _centres(robot, found, "identified centre of mass", "circle", size=5, color="#D55E00"),
    )
    parts = [part for part in made if part is not None]
    figure = go.Figure([part.trace for part in parts])
    for trace, part in zip(figure.data, parts, strict=True):
        trace.update({axis: _with_gaps(row) for axis, row in zip("xyz", _placed(part, poses[0]).T, strict=True)})
    figure.update_layout(template="none", height=560, margin={"l": 0, "r": 0, "t": 0, "b": 0}, showlegend=False)
    figure.update_layout(scene=_view(parts, poses), font={"size": 12})
    name = fresh("scene")
    script = {
        "bodies": len(robot.bodies),
        "poses": packed(poses.ravel()),
        "times": packed(t),
        "parts": [
            {"trace": k, "points": packed(p.points.ravel()), "body": p.body.tolist()} for k, p in enumerate(parts)
        ],
    }
    player = (
        '<div class="player"><button type="button">▶ Play</button>'
        '<input type="range" min="0" max="1" value="0" step="1" aria-label="Time"><output></output></div>'
    )
    items = [
        ("line", "var(--neutral)", "the robot"), ("line", "var(--soft)", "nominal inertia"),
        ("box", "var(--accent)", "identified inertia, a colour a body"),
        ("dot", "#D55E00", "identified centre of mass"),
    ]  # fmt: skip
    drawn = plot(figure, "", key=key(items), under=player, scene=name)
    lead = (
        "Each body as the solid ellipsoid of even density with its mass, centre of mass and inertia. Drag to turn, "
        "scroll or pinch to zoom."
    )
    if not all(shape is not None for shape in found):
        lead = join(
            f"{lead} Bodies that nothing real could be are not drawn: identify with ",
            Html("<code>--physical</code>"),
            " to have them all.",
        )
    link = ""
    if beside is not None:
        link = Html(f'<p>With the shapes of the model: <a href="{beside}">the robot in 3-D, a page of its own</a>.</p>')
    return section(
        "scene", "The robot", data(script, name), drawn, link, _table(robot, nominal, found, after), lead=lead
    )
