"""The command that finds friction laws in points or in recordings."""

import hashlib
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from ..data.load import load_recording
from ..errors import DataError, OptionError
from ..files import checked_output
from ..identification.friction.fit import (
    NO_DIP,
    CurveFit,
    FrictionFit,
    JointFriction,
    StribeckFit,
    enough,
    fit_friction,
)
from ..identification.friction.intervals import Interval
from ..identification.friction.points import FrictionPoints
from ..identification.friction.recorded import Averaging, friction_points
from ..identification.friction.saved import friction_content, save_friction, unit_of
from ..identification.friction.table import read_points
from ..identification.result_file import read_result
from ..report.friction import friction_picture
from ..report.page import write_text
from .options import AsJson, Gravity, Lock, MappingOption, ModelOption, Mounting, Repair, Seed, numbers, robot_from
from .output import add_row, console, number, print_json, say, table
from .progress import reporting


def _shape(text: str) -> float | None:
    return None if text.strip() == "fit" else float(numbers(text, 1, "--delta")[0])


def _interval(interval: Interval) -> str:
    if interval.shown:
        return f"{number(interval.low)} … {number(interval.high)}"
    if np.isfinite(interval.high):
        return f"not shown (at most {number(interval.high)})"
    if np.isfinite(interval.low) and interval.low > 0:
        return f"not shown (at least {number(interval.low)})"
    return "not shown"


def _print_side(out: Console, joint: JointFriction, fit: CurveFit, confidence: float) -> None:
    title = f"{joint.joint}, {fit.direction}: {fit.points} points" if fit.direction != "both" else (
        f"{joint.joint}: {fit.points} points"
    )  # fmt: skip
    made = table(title, "", "value", f"{100 * confidence:g} % interval", "", right=("value",))
    for name, interval in fit.values.items():
        if name == "shape" and interval.low == interval.high:
            continue
        add_row(
            made, name.replace("_", " "), number(interval.value), _interval(interval),
            unit_of(name, joint.linear),
        )  # fmt: skip
    out.print(made)
    better = "better" if fit.dip.bic_gain > 0 else "worse"
    said = "a Stribeck dip is visible" if fit.warranted else "no Stribeck dip is visible"
    say(
        out,
        f"  {said} (chance makes one as deep with p = {fit.dip.p_value:.2g}; BIC {better} by "
        f"{abs(fit.dip.bic_gain):.3g} with it); "
        f"noise {number(fit.noise, 3)} {unit_of('coulomb', joint.linear)} a point",
    )
    if fit.message != NO_DIP:
        say(out, f"  {fit.message}")


def _print(out: Console, fit: FrictionFit) -> None:
    for joint in fit.joints:
        for side in joint.chosen:
            _print_side(out, joint, side, fit.settings.confidence)
        if joint.symmetry is not None:
            say(out, f"  symmetry: {joint.symmetry.verdict}")
        if joint.standing:
            forward, backward = joint.static_at_least
            say(
                out,
                f"  {joint.standing} points at standstill: static friction of at least {number(forward)} forward, "
                f"{number(backward)} backward",
            )
        if joint.left_out:
            say(out, f"  left out as gross errors: {joint.left_out} points")
        for note in joint.notes:
            say(out, f"  note: {note}")


def _points(
    files: list[Path], model: str | None, result: Path | None, mapping: Path | None, repair: bool, still: float,
    averaging: Averaging, shape: float | None, options: tuple[Any, ...],
) -> tuple[list[FrictionPoints], list[str]]:  # fmt: skip
    if model is not None and result is not None:
        raise OptionError("--model and --result both say what the robot is; give one")
    if model is None and result is None:
        if mapping is not None or averaging != Averaging():
            raise OptionError(
                "--mapping, --bins and --steady are for recordings; name the robot by --model or --result"
            )
        if len(files) != 1:
            raise OptionError(f"{len(files)} tables of points; give one, with a column 'joint' or a pair a joint")
        return read_points(files[0], still), []
    if still:
        raise OptionError("--still is for tables of points; in recordings it is found from their speeds")
    if result is not None:
        saved = read_result(result)
        known: Any = saved.estimate
        robot, notes = known.model.robot, list(saved.notes)
    else:
        known = robot = robot_from(str(model), *options)
        notes = []
    recordings = [load_recording(path, robot, mapping, repair=repair) for path in files]
    points = friction_points(known, recordings, averaging)
    points = [one for one in points if enough(one, "forward", shape) or enough(one, "backward", shape)]
    if not points:
        raise DataError("no joint moves at speeds enough to show friction; record longer, or raise --bins and --steady")
    resting = sorted(set(robot.dof_names) - {one.joint for one in points})
    if resting:
        notes.append(f"these joints do not move enough to show friction: {', '.join(resting)}")
    return points, notes


def friction_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="A table of points (velocity, torque), or recordings.")
    ],
    model: Annotated[str | None, ModelOption.__metadata__[0]] = None,
    result: Annotated[
        Path | None, typer.Option("--result", help="Recordings: the robot as `steelyard identify --output` wrote it.")
    ] = None,
    delta: Annotated[str, typer.Option("--delta", metavar="δ", help="Shape of the dip: a number, or fit.")] = "2",
    robust: Annotated[bool, typer.Option("--robust", help="Leave out points that lie farther off than noise.")] = False,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    significance: Annotated[
        float, typer.Option(help="p-value below which a dip, or a difference, is believed.")
    ] = 0.01,
    still: Annotated[float, typer.Option(help="Tables: speed up to which a point counts as standing.")] = 0.0,
    bins: Annotated[int, typer.Option(help="Recordings: bins of velocity a direction.")] = 40,
    steady: Annotated[
        float | None, typer.Option(metavar="RAD/S²", help="Recordings: use rows that accelerate less than this only.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The laws, .yaml.")] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Points and laws as a picture, .svg.")] = None,
    mapping: MappingOption = None,
    repair: Repair = False,
    lock: Lock = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    seed: Annotated[int, Seed.__metadata__[0]] = 0,
    as_json: AsJson = False,
) -> None:
    """Find each joint's friction law (Coulomb, viscous, Stribeck), how sure it is, and whether directions differ.

    Examples: `steelyard friction points.csv --output friction.yaml`, `steelyard friction run.npz --model panda`
    """
    settings = StribeckFit(_shape(delta), robust, confidence, significance)
    for path, suffixes in ((output, (".yaml", ".yml")), (figure, (".svg",))):
        if path is not None:
            checked_output(path, suffixes)
    averaging = Averaging(bins, steady=steady)
    with reporting() as report:
        report("reading", 0.1)
        points, notes = _points(
            files,
            model,
            result,
            mapping,
            repair,
            still,
            averaging,
            settings.shape,
            (lock, None, None, gravity, mounting),
        )
        report("fitting", 0.5)
        found = fit_friction(points, settings, np.random.default_rng(seed))
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}
    about = {"seed": seed, "data": digests, "command": " ".join(["steelyard", *sys.argv[1:]])}
    if output is not None:
        save_friction(found, output, about)
    if figure is not None:
        write_text(figure, friction_picture(found))
    written = [str(path) for path in (output, figure) if path is not None]
    if as_json:
        print_json({**friction_content(found, about), "notes": notes, "written": written})
        return
    out = console()
    for note in notes:
        say(out, f"note: {note}")
    _print(out, found)
    for name in written:
        say(out, f"wrote {name}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("friction")(friction_command)
