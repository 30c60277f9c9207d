"""The command that weighs what a robot carries."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from ..data.load import load_recording
from ..errors import OptionError
from ..evaluation.payload import Weighing, WeighingPlan, weigh
from ..files import checked_output
from ..identification.estimators import estimator_named
from ..identification.payload import Assumption
from ..identification.result_file import read_result, save_result
from ..robot.robot import Robot
from .options import AsJson, Bodies, Gravity, Lock, MappingOption, ModelOption, Mounting, Repair, numbers, robot_from
from .output import add_row, console, number, plain, print_json, say, table
from .progress import reporting

_AXES = "xyz"


def weighing_content(found: Weighing) -> dict[str, Any]:
    """A weighing as a mapping, for files and machines."""
    fit = found.fit
    return {
        "verdict": found.verdict,
        "body": fit.body,
        "assume": fit.assume,
        "jointly": fit.jointly,
        "mass": {"value": fit.mass, "deviation": fit.mass_deviation, "unit": "kg"},
        "centre_of_mass": {"value": fit.centre, "deviation": fit.centre_deviation, "unit": "m", "frame": fit.body},
        "inertia_about_centre": {"value": fit.inertia, "deviation": fit.inertia_deviation, "unit": "kg·m²"},
        "parameters": fit.parameters,
        "feasible": not fit.invalid,
        "why_not": [str(reason) for reason in fit.invalid],
        "held_out": found.held_out,
        "relative_torque_error": found.relative,
        "relative_torque_error_without": found.relative_empty,
        "rmse": dict(found.rmse),
        "rmse_without": dict(found.rmse_empty),
        "converged": fit.estimate.converged,
        "message": fit.message,
        "notes": list(found.notes),
        "command": " ".join(sys.argv[1:]),
    }


def _interval(value: float, deviation: float, unit: str) -> tuple[str, str, str]:
    if not np.isfinite(deviation):
        return number(value), "not shown by the data", unit
    return number(value), f"{value - 1.96 * deviation:.4g} … {value + 1.96 * deviation:.4g}", unit


def _print(out: Console, found: Weighing) -> None:
    fit = found.fit
    for note in found.notes:
        say(out, note)
    say(out, f"payload on {fit.body}, in the frame of {fit.body}")
    made = table(None, "", "value", "95 % interval", "", right=("value",))
    add_row(made, "mass", *_interval(fit.mass, fit.mass_deviation, "kg"))
    for k, axis in enumerate(_AXES):
        add_row(made, f"centre of mass {axis}", *_interval(fit.centre[k], fit.centre_deviation[k], "m"))
    if fit.assume == "body":
        for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            name = f"inertia about it I{_AXES[i]}{_AXES[j]}"
            add_row(made, name, *_interval(fit.inertia[i, j], fit.inertia_deviation[i, j], "kg·m²"))
    out.print(made)
    say(out, "a body can have these parameters" if not fit.invalid else f"impossible: {fit.invalid[0]}")
    rows = table(f"torque error (RMSE) on {found.held_out}", "joint", "with", "without", right=("with", "without"))
    for joint, value in found.rmse.items():
        add_row(rows, joint, number(value, 3), number(found.rmse_empty[joint], 3))
    out.print(rows)
    if fit.message not in ("", "solved"):
        say(out, fit.message)
    say(out, found.verdict, "[bold]verdict[/bold]: ")


def _robot(model: str | None, result: Path | None, *options: Any) -> tuple[Robot, Any, tuple[str, ...]]:
    if result is not None:
        saved = read_result(result)
        return saved.estimate.model.robot, saved.estimate, saved.notes
    if model is None:
        raise OptionError("name the robot by --model, or an identified one by --result")
    return robot_from(model, *options), None, ()


def payload_command(
    loaded: Annotated[list[Path], typer.Argument(help="Recordings made with the load.")],
    body: Annotated[str, typer.Option("--body", help="The body that carries it; results are in its frame.")],
    model: Annotated[str | None, ModelOption.__metadata__[0]] = None,
    unloaded: Annotated[
        list[Path] | None, typer.Option("--unloaded", help="A recording of the empty arm: both are found together.")
    ] = None,
    result: Annotated[
        Path | None, typer.Option("--result", help="The empty arm as `steelyard identify --output` wrote it.")
    ] = None,
    mass_com: Annotated[
        bool, typer.Option("--mass-com", help="Mass and centre of mass only, the load a point: for slow motion.")
    ] = False,
    mass_only: Annotated[bool, typer.Option("--mass-only", help="Mass only, at --centre.")] = False,
    centre: Annotated[
        str | None, typer.Option("--centre", metavar="X,Y,Z", help="Where the load is, m, for --mass-only.")
    ] = None,
    physical: Annotated[bool, typer.Option("--physical", help="Parameters that a body can have.")] = False,
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help="With --unloaded: OLS, WLS, IRLS, …")] = "WLS",
    friction: Annotated[
        str, typer.Option("--friction", metavar="TERMS", help="Friction columns of the arm beside damping.")
    ] = "coulomb,offset",
    mapping: MappingOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Result with arm and load, .yaml.")] = None,
    train_share: Annotated[float, typer.Option(help="Share of the loaded recordings to learn from.")] = 0.8,
    delay: Annotated[
        str, typer.Option(metavar="SECONDS", help="How much later than the motion the torque is recorded; or auto.")
    ] = "auto",
    repair: Repair = False,
    lock: Lock = None,
    bodies: Bodies = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Find the mass, the centre of mass and the inertia of what a robot carries.

    Example: `steelyard payload loaded.csv --unloaded empty.csv --model panda --body hand`
    """
    if mass_com and mass_only:
        raise OptionError("--mass-com and --mass-only exclude each other; choose one")
    if centre is not None and not mass_only:
        raise OptionError("--centre says where the load of --mass-only is; give both")
    assume: Assumption = "point" if mass_com else "mass" if mass_only else "body"
    if physical and assume != "body":
        raise OptionError("--physical is for a load of ten parameters; a point mass can always exist")
    if result is not None and unloaded:
        raise OptionError("--result and --unloaded both say what the empty arm is; choose one")
    robot, arm, notes = _robot(model, result, lock, bodies, friction, gravity, mounting)
    if output is not None:
        checked_output(output, (".yaml", ".yml"))
    where = (0.0, 0.0, 0.0) if centre is None else tuple(numbers(centre, 3, "--centre").tolist())
    plan = WeighingPlan(
        body=body, assume=assume, centre=where, physical=physical, method=estimator_named(algorithm),
        train_share=train_share, delay=delay if delay == "auto" else float(numbers(delay, 1, "--delay")[0]),
    )  # fmt: skip
    with reporting() as report:
        given = [load_recording(path, robot, mapping, repair=repair) for path in loaded]
        empty = [load_recording(path, robot, mapping, repair=repair) for path in unloaded or ()]
        found = weigh(robot, given, plan, empty, arm, report)
    content = weighing_content(found)
    if output is not None:
        save_result(found.fit.estimate, output, {"payload": content})
    if as_json:
        print_json({**plain(content), "notes": [*notes, *found.notes], "written": output and str(output)})
        return
    out = console()
    for note in notes:
        say(out, f"note: {note}")
    _print(out, found)
    if output is not None:
        say(out, f"wrote {output}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("payload")(payload_command)
