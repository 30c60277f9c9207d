"""Which robot a result speaks of: enough to load it again and to notice that its model file has changed."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .export_sidecar import has_one_axis
from .library import library_names, library_path
from .load import load_robot
from .parameters import FRICTION
from .reader import joint_names
from .robot import Robot


def _model_hash(robot: Robot) -> str | None:
    if robot.source is None or robot.source.text is None:
        return None
    return hashlib.sha256(robot.source.text.encode()).hexdigest()


def _where(robot: Robot, folder: Path | None) -> str:
    path = None if robot.source is None else robot.source.path
    if path is None:
        raise ModelError(f"{robot.name} has no model file behind it, so a result cannot say where to find it")
    for name in library_names():
        if path.resolve() == Path(library_path(name)).resolve():
            return name
    if folder is not None:
        try:
            return str(path.resolve().relative_to(folder.resolve()))
        except ValueError:
            pass
    return str(path)


def describe_robot(robot: Robot, folder: Path | None = None) -> dict[str, Any]:
    """What `robot_described` needs to load this robot again; paths relative to a folder where they lie below it."""
    source = robot.source
    free = {joint.name for joint in robot.joints}
    lock: dict[str, float | None] = {}
    if source is not None:
        for j, name in enumerate(joint_names(source.model)):
            if name not in free:
                one = has_one_axis(source.model, j)
                lock[name] = float(robot.model_position[source.model.jnt_qposadr[j]]) if one else None
    return {
        "model": _where(robot, folder),
        "name": robot.name,
        "sha256": _model_hash(robot),
        "lock": lock,
        "bodies": list(robot.layout.bodies),
        "friction": [name for name in robot.layout.properties if name in FRICTION],
        "armature": "armature" in robot.layout.properties,
        "damping": "damping" in robot.layout.properties,
        "gravity": robot.gravity.tolist(),
    }


def robot_described(spec: Mapping[str, Any], folder: Path | None = None) -> tuple[Robot, tuple[str, ...]]:
    """The robot of a description, and what has changed since."""
    model = spec.get("model")
    if not isinstance(model, str) or not model:
        raise ModelError("the description of the robot lacks its model")
    beside = None if folder is None else folder / model
    given = str(beside) if model not in library_names() and beside is not None and beside.is_file() else model
    try:
        robot = load_robot(
            given,
            bodies=spec.get("bodies"),
            lock=spec.get("lock") or None,
            friction=spec.get("friction") or (),
            armature=bool(spec.get("armature", True)),
            damping=bool(spec.get("damping", True)),
            gravity=spec.get("gravity"),
        )
    except (TypeError, ValueError) as error:
        raise ModelError(f"the description of the robot is not usable: {error}") from None
    notes: tuple[str, ...] = ()
    if spec.get("sha256") not in (None, _model_hash(robot)):
        notes = (f"the model file {model} has changed since",)
    return robot, notes
