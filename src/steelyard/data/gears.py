"""The gear between motors and joints that comes with a recording, or with a robot."""

from pathlib import Path
from typing import Any

from ..robot.robot import Robot
from ..robot.sidecar import read_sidecar
from .mapping import read_mapping


def gear_of(robot: Robot, mapping: Path | None) -> dict[str, Any]:
    """The gear that a mapping states, else the one beside the model; empty where there is none."""
    gear = None if mapping is None else read_mapping(mapping).gear
    if gear is None and robot.source is not None and robot.source.path is not None:
        gear = read_sidecar(robot.source.path).gear
    return {} if gear is None else gear.model_dump(mode="json")
