"""The command on the centre of mass of a wheel-legged robot."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from ..balance.minimum_norm import MassFree, MinNorm, minimum_norm
from ..balance.poses import Accuracy, Poses, Stillness, pitch_and_roll, poses_of
from ..balance.stacked import CentreOfMass, Stacked, centre_of_mass
from ..balance.stance import Stance, stance_of
from ..balance.statics import Coupling
from ..balance.table import Columns, read_standing
from ..errors import OptionError
from ..robot.load import load_robot
from ..robot.tree import FREE
from .com_demo import demonstration
from .options import AsJson, Lock, Seed, locks_in, names, numbers
from .output import add_row, console, number, print_json, say, table


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """A sign of life on standard error, where that is a terminal."""
    err = Console(stderr=True)
    if os.environ.get("STEELYARD_QUIET") or not err.is_terminal:
        yield
        return
    with err.status(what):
        yield


def _coupling(text: str) -> Coupling:
    if text == "estimate":
        return Coupling(None)
    return Coupling(float(numbers(text, 1, "--coupling")[0]))


def _renamed(given: list[str] | None) -> dict[str, str]:
    renamed = {}
    for text in given or []:
        ours, equals, theirs = text.partition("=")
        if not (equals and ours.strip() and theirs.strip()):
            raise OptionError(f"--column takes OURS=THEIRS, like acc_x=imu_ax, not '{text}'")
        renamed[ours.strip()] = theirs.strip()
    return renamed


def result_facts(found: CentreOfMass) -> dict[str, Any]:
    """What a machine wants to know of an estimate."""
    values = {"mass": found.mass, **dict(zip("xyz", found.com, strict=True))}
    if found.coupling is not None:
        values["coupling"] = found.coupling
    return {
        "mass": found.mass,
        "com": found.com,
        "coupling": found.coupling,
        "deviation": found.deviation,
        "interval_95": {name: found.interval(name) for name in values},
        "com_covariance": found.com_covariance,
        "parameters": dict(zip(found.names, found.parameters, strict=True)),
        "blind": found.blind,
        "condition": found.condition,
        "misfit": found.misfit,
        "poses": found.poses,
        "message": found.message,
    }


def _pose_facts(stance: Stance, poses: Poses, found: CentreOfMass, told: float, coupling: Coupling) -> list[dict]:
    pitch, roll = pitch_and_roll(stance, poses.force)
    rows: list[dict[str, Any]] = [
        {
            "pitch_deg": float(np.degrees(pitch[k])),
            "roll_deg": float(np.degrees(roll[k])),
            "seconds": float(poses.seconds[k]),
            "share": dict(zip(("mass", "x", "y", "z"), found.shares[k].tolist(), strict=True)),
        }
        for k in range(len(poses))
    ]
    drive = Coupling(found.coupling) if coupling.ratio is None else coupling
    methods: dict[str, MinNorm | MassFree] = {
        "hip": MinNorm(told, "hip", drive),
        "knee": MinNorm(told, "knee", drive),
        "mass_free": MassFree(coupling=drive),
    }
    for name, method in methods.items():
        for row, com in zip(rows, minimum_norm(stance, poses, method), strict=True):
            row.setdefault("minimum_norm", {})[name] = com.tolist()
    return rows


def print_estimate(found: CentreOfMass, trunk: str) -> None:
    """The centre of mass, for people."""
    out = console()
    listing = table(f"Upper body, in the frame of {trunk}", "", "value", "95 % interval", "unit", right=("value",))
    rows = [("mass", "mass", found.mass, 1.0, "kg")]
    rows += [(axis, f"centre of mass {axis}", found.com[k], 1e3, "mm") for k, axis in enumerate("xyz")]
    if found.coupling is not None:
        rows.append(("coupling", "coupling of knee to hip", found.coupling, 1.0, ""))
    for key, label, value, scale, unit in rows:
        low, high = found.interval(key)
        seen = np.isfinite(found.deviation[key])
        fixed = found.deviation[key] == 0
        span = (
            "given" if fixed else f"{number(scale * low)} … {number(scale * high)}" if seen else "not seen: the model's"
        )
        add_row(listing, label, number(scale * value), span, unit)
    out.print(listing)
    say(out, f"condition {found.condition:.3g}, residuals {found.misfit:.2g} of what the sensors' accuracy explains")
    say(out, found.message)


def _print_poses(rows: list[dict]) -> None:
    right = ("pitch °", "roll °", "s", "mass", "x", "y", "z", "hip alone", "knee alone", "mass-free")
    listing = table(
        "\nPoses: what each tells, % of all that is known; and the centre of mass x, z by one pose alone, mm",
        "pose",
        *right,
        right=("pose", *right),
    )
    for k, row in enumerate(rows):
        shares = [f"{100 * row['share'][name]:.0f}" for name in ("mass", "x", "y", "z")]
        alone = [f"{1e3 * com[0]:.0f}, {1e3 * com[2]:.0f}" for com in row["minimum_norm"].values()]
        lean = [f"{row['pitch_deg']:.1f}", f"{row['roll_deg']:.1f}", f"{row['seconds']:.1f}"]
        add_row(listing, str(k + 1), *lean, *shares, *alone)
    console().print(listing)


def _suggest(stance: Stance, count: int, settings: Stacked, criterion: str, as_json: bool) -> None:
    from ..balance.suggest import suggest_poses
    from ..excitation.criteria import criterion_named

    with _busy("looking for poses …"):
        found = suggest_poses(stance, count, settings, criterion_named(criterion))
    rows = [
        {
            "height": found.height[k],
            "pitch_deg": float(np.degrees(found.pitch[k])),
            "roll_deg": float(np.degrees(found.roll[k])),
            "joints": dict(zip(stance.joints, found.poses.q[k].tolist(), strict=True)),
        }
        for k in range(count)
    ]
    if as_json:
        print_json(
            {
                "criterion": found.criterion,
                "candidates": found.candidates,
                "poses": rows,
                "expected": result_facts(found.expected),
            }
        )
        return
    listing = table(
        "Poses to stand in, those that tell most first",
        "height m",
        "pitch °",
        "roll °",
        "joints, rad",
        right=("height m", "pitch °", "roll °"),
    )
    wheels = {leg.wheel for leg in stance.legs}
    for row in rows:
        joints = ", ".join(f"{name} {value:.3f}" for name, value in row["joints"].items() if name not in wheels)
        add_row(listing, f"{row['height']:.3f}", f"{row['pitch_deg']:.0f}", f"{row['roll_deg']:.1f}", joints)
    out = console()
    out.print(listing)
    deviation = found.expected.deviation
    parts = [f"mass {number(deviation['mass'], 2)} kg"]
    parts += [f"{axis} {number(1e3 * deviation[axis], 2)} mm" for axis in "xyz"]
    say(out, f"of {found.candidates} candidates; standard deviations to be expected: {', '.join(parts)}")


def com(
    recording: Annotated[
        Path | None, typer.Argument(help="CSV: t, q_JOINT, tau_JOINT, acc_x, acc_y, acc_z[, pose].")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A library robot, or an MJCF or URDF file.")
    ] = None,
    hip: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="The hip joints; default: the first hinge of each leg.")
    ] = None,
    knee: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="The knee joints; default: the second hinge of each leg.")
    ] = None,
    wheel: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="The wheel joints; default: the last hinge of each leg.")
    ] = None,
    imu: Annotated[
        str | None, typer.Option(metavar="SITE", help="The IMU's site; default: the model's accelerometer's.")
    ] = None,
    radius: Annotated[float | None, typer.Option(metavar="M", help="Of the wheels; default: as drawn.")] = None,
    tyre_width: Annotated[float | None, typer.Option(metavar="M", help="0 for round tyres; default: as drawn.")] = None,
    mass: Annotated[
        float | None, typer.Option(metavar="KG", help="Of the upper body, if known; default: found.")
    ] = None,
    coupling: Annotated[
        str,
        typer.Option(metavar="RATIO", help="Knee torque is τ₂ + RATIO·τ₁; or `estimate` (demo: of a drive with 1)."),
    ] = "0",
    column: Annotated[
        list[str] | None, typer.Option(metavar="OURS=THEIRS", help="acc_x=imu_ax: a column's name.")
    ] = None,
    flip: Annotated[str | None, typer.Option(metavar="A,B,…", help="Joints whose torque has the other sign.")] = None,
    angle_unit: Annotated[str, typer.Option(help="rad, deg, mrad, turn.")] = "rad",
    acceleration_unit: Annotated[str, typer.Option(help="m/s2 or g.")] = "m/s2",
    friction: Annotated[
        float, typer.Option(metavar="N·M", help="Torque error that differs in every pose (1 s.d.).")
    ] = 0.1,
    torque_bias: Annotated[float, typer.Option(metavar="N·M", help="Torque error that stays (1 s.d.).")] = 0.05,
    acceleration_bias: Annotated[float, typer.Option(metavar="M/S²", help="Of the accelerometer (1 s.d.).")] = 0.02,
    position_bias: Annotated[float, typer.Option(metavar="RAD", help="Of the joints' zeros (1 s.d.).")] = 5e-4,
    least: Annotated[float, typer.Option(metavar="S", help="The shortest pose; without a column pose.")] = 1.0,
    still: Annotated[float, typer.Option(metavar="RAD", help="How much may move within a pose.")] = 0.03,
    suggest: Annotated[int | None, typer.Option(metavar="N", help="Suggest N poses to stand in, and stop.")] = None,
    criterion: Annotated[str, typer.Option(help="For suggestions: a, cond, logdet, e, birdy.")] = "a",
    demo: Annotated[bool, typer.Option("--demo", help="Simulate the balancing robot and compare all methods.")] = False,
    load: Annotated[float, typer.Option(metavar="KG", help="Demo: what is added without being told.")] = 5.0,
    load_at: Annotated[str, typer.Option(metavar="X,Y,Z", help="Demo: where on the trunk, m.")] = "0.22,0.02,0",
    figure: Annotated[Path | None, typer.Option(help="Demo: write the comparison as a picture, .svg.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Demo: write the loaded recording, .csv.")
    ] = None,
    seed: Seed = 0,
    lock: Lock = None,
    as_json: AsJson = False,
) -> None:
    """Find mass and centre of mass of a wheel-legged robot's upper body from poses in which it stands.

    Examples: `steelyard com --demo --figure com.svg`

    `steelyard com run.csv --model robot.xml --hip hip_l,hip_r --knee knee_l,knee_r --wheel wheel_l,wheel_r`

    `steelyard com --model robot.xml --suggest 8`
    """
    asked = [recording is not None, demo, suggest is not None]
    if sum(asked) != 1:
        raise OptionError("give one of: a recording, --demo, --suggest N")
    if model is None and not demo:
        raise OptionError("--model is missing: the robot's MJCF or URDF file, or a library robot")
    chosen, locks = model or "wheel_legged", locks_in(lock)
    robot = load_robot(chosen, lock=locks)
    if not any(joint.kind == FREE for joint in robot.joints):
        robot = load_robot(chosen, lock=locks, floating_base=True)
    for name, value in {"--radius": radius, "--tyre-width": tyre_width}.items():
        if value is not None and not 0 <= value < np.inf:
            raise OptionError(f"{name} is {value:g}; give a finite number from 0")
    stance = stance_of(robot, names(hip), names(knee), names(wheel), imu, radius, tyre_width)
    accuracy = Accuracy(friction, torque_bias, acceleration_bias, position_bias)
    settings = Stacked(mass, _coupling(coupling), accuracy)
    if demo:
        demonstration(stance, settings, load, numbers(load_at, 3, "--load-at"), seed, figure, output, as_json)
        return
    if figure is not None or output is not None:
        raise OptionError("--figure and --output belong to --demo")
    if suggest is not None:
        _suggest(stance, suggest, settings, criterion, as_json)
        return
    assert recording is not None
    columns = Columns(_renamed(column), angle_unit, acceleration_unit, tuple(names(flip) or ()))
    poses = poses_of(stance, read_standing(recording, stance, columns), Stillness(angle=still, least=least))
    found = centre_of_mass(stance, poses, settings)
    told = mass or float(stance.nominal[0])
    rows = _pose_facts(stance, poses, found, told, settings.coupling)
    if as_json:
        print_json(
            {"robot": robot.name, "frame": stance.trunk, "notes": robot.notes, **result_facts(found), "each_pose": rows}
        )
        return
    print_estimate(found, stance.trunk)
    _print_poses(rows)
    for note in robot.notes:
        say(console(), f"note: {note}")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("com")(com)
