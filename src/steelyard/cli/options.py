"""Options that several commands share, and how they become a robot."""

import os
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from ..errors import OptionError
from ..robot.load import load_robot
from ..robot.robot import Robot
from .sanity import check_sane

Model = Annotated[str, typer.Argument(help="A library robot (see `steelyard robots`), or an MJCF, URDF or DH file.")]
Lock = Annotated[
    list[str] | None,
    typer.Option("--lock", metavar="JOINT[=VALUE]", help="Hold a joint, where it is drawn or at VALUE (rad or m)."),
]
Bodies = Annotated[
    str | None, typer.Option("--bodies", metavar="A,B,…", help="Identify these bodies only; others act as known.")
]
Friction = Annotated[
    str | None, typer.Option("--friction", metavar="TERMS", help="Friction columns: coulomb,offset (or none).")
]
Gravity = Annotated[
    str | None, typer.Option("--gravity", metavar="X,Y,Z", help="Gravity in the axes of the base, m/s².")
]
Mounting = Annotated[
    str | None,
    typer.Option("--mounting", metavar="ROLL,PITCH,YAW", help="Tilt of the base in the world, degrees; R = Rz Ry Rx."),
]
FloatingBase = Annotated[bool, typer.Option("--floating-base", help="Let the model's root move freely.")]
ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="A library robot (see `steelyard robots`), or an MJCF, URDF or DH file.")
]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="YAML that says what the columns of a foreign file are.")
]
Repair = Annotated[bool, typer.Option("--repair", help="Drop rows with faults and say so; they are errors otherwise.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random states.", min=0)]
States = Annotated[int, typer.Option("--states", help="How many random states.", min=1, max=100_000)]


def is_quiet() -> bool:
    """Whether the user asked for nothing but the result."""
    return os.environ.get("STEELYARD_QUIET", "") not in ("", "0")


def is_verbose() -> bool:
    """Whether the user asked to be told every step."""
    return os.environ.get("STEELYARD_VERBOSE", "") not in ("", "0")


def names(text: str | None) -> list[str] | None:
    """`a,b` as a list; `none` and the empty text as no name."""
    if text is None:
        return None
    return [] if text.strip() in ("", "none") else [part.strip() for part in text.split(",")]


def numbers(text: str, count: int, option: str) -> NDArray[np.float64]:
    """`1,2,3` as numbers."""
    wanted = "a finite number" if count == 1 else f"{count} finite numbers separated by commas"
    try:
        values = np.array([float(part) for part in text.replace(",", " ").split()])
    except ValueError:
        raise OptionError(f"{option} takes {wanted}, not '{text}'") from None
    if values.shape != (count,) or not np.isfinite(values).all():
        raise OptionError(f"{option} takes {wanted}, not '{text}'")
    for value in values.tolist():
        check_sane(value, option)
    return values


def per_joint(text: str, n: int, option: str) -> NDArray[np.float64]:
    """One number for all joints, or a number a joint."""
    count = len(text.replace(",", " ").split())
    if count not in (1, n):
        raise OptionError(f"{option} takes one finite number, or {n}, one a joint; '{text}' has {count}")
    return np.array(np.broadcast_to(numbers(text, count, option), (n,)))


def locks_in(given: list[str] | None) -> dict[str, float | None] | None:
    """`joint1` and `joint2=0.5` as a mapping; None where the model draws the joint."""
    if not given:
        return None
    locks: dict[str, float | None] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if equals:
            locks[name.strip()] = float(numbers(value, 1, f"--lock {name}")[0])
        else:
            locks |= {part.strip(): None for part in name.split(",")}
    return locks


def rotation(roll_pitch_yaw_degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.radians(roll_pitch_yaw_degrees)), np.sin(np.radians(roll_pitch_yaw_degrees))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def robot_from(
    model: str,
    lock: list[str] | None = None,
    bodies: str | None = None,
    friction: str | None = None,
    gravity: str | None = None,
    mounting: str | None = None,
    floating_base: bool = False,
) -> Robot:
    """Load the robot that the options describe."""
    return load_robot(
        model,
        bodies=names(bodies),
        lock=locks_in(lock),
        friction=names(friction) or (),
        gravity=None if gravity is None else numbers(gravity, 3, "--gravity"),
        mounting=None if mounting is None else rotation(numbers(mounting, 3, "--mounting")),
        floating_base=floating_base,
    )
