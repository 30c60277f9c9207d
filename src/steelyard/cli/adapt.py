"""The command that lets an adaptive controller carry an unknown load, and judges what it learnt."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..control.adaptation import Adaptation, adapt, errors_of, opponents
from ..control.adaptive import SlotineLi
from ..control.loop import Plant, Run
from ..control.motions import reference_motion
from ..control.unknowns import Unknown, UnknownLoad, UnknownRobot, fully_known
from ..dynamics.frames import last_body
from ..errors import OptionError
from ..files import checked_output
from ..identification.estimate import Estimate
from ..identification.result_file import read_result
from ..report.control import adaptation_picture
from ..report.page import write_text
from ..robot.payload import with_payload
from ..robot.robot import Robot
from ..simulation.sensors import Sensors
from .options import AsJson, Gravity, Lock, Model, Mounting, Seed, numbers, robot_from
from .output import add_row, console, number, print_json, say, table
from .progress import reporting

_FIND = ("mass", "point", "body", "robot")
_MOST_SHOWN = 14


def _unknown(find: str, body: str, centre: NDArray[np.float64], robot: Robot) -> Unknown:
    if find not in _FIND:
        raise OptionError(f"--find is '{find}'; valid: {', '.join(_FIND)}")
    if find == "robot":
        return UnknownRobot(robot)
    return UnknownLoad(body, find, tuple(centre.tolist()))  # type: ignore[arg-type]


def _truth(law: SlotineLi, loaded: Robot) -> NDArray[np.float64]:
    """The parameters that the controller seeks, as they are."""
    difference = loaded.parameters - law.unknown.rest(law.known)
    if isinstance(law.unknown, UnknownRobot):
        return np.asarray(difference[law.known.layout.indices(law.unknown.names(law.known))])
    ten = difference[law.known.layout.body(law.unknown.body)]  # type: ignore[attr-defined]
    return np.asarray(ten[: len(law.unknown.names(law.known))])


def _facts(
    made: Adaptation, others: dict[str, Run], truth: NDArray[np.float64], names: tuple[str, ...]
) -> dict[str, Any]:
    found = [
        {
            "name": one.name,
            "unit": one.unit,
            "start": one.start,
            "found": one.value,
            "deviation": one.deviation,
            "interval_95": one.interval() if one.shown else None,
            "drift": one.drift,
            "true": float(true),
            "error_percent": 100 * (one.value - true) / abs(true) if true else None,
            "shown": one.shown,
        }
        for one, true in zip(made.found, truth, strict=True)
    ]
    errors = {"adaptive": made.error, **{name: errors_of(run) for name, run in others.items()}}
    return {
        "joints": names,
        "seconds": made.duration,
        "dead_zone": made.dead_zone,
        "tracking_error": {name: {"begin": error[0], "end": error[1]} for name, error in errors.items()},
        "within_dead_zone": made.within_dead_zone,
        "saturated": made.run.saturated,
        "parameters": found,
        "excitation": {
            "rates": made.rates,
            "needed": made.needed_rate,
            "combinations_shown": made.combinations_shown,
            "is_excited": made.is_excited,
        },
        "verdict": made.verdict,
    }


def _print(facts: dict[str, Any]) -> None:
    out = console()
    errors = table("Tracking error, the worst joint (rms, rad or m)", "controller", "first tenth", "last quarter",
                   right=("first tenth", "last quarter"))  # fmt: skip
    for name, error in facts["tracking_error"].items():
        add_row(errors, name, number(max(error["begin"]), 3), number(max(error["end"]), 3))
    add_row(errors, "dead zone: what noise alone can make", "", number(max(facts["dead_zone"]), 3))
    out.print(errors)
    columns = ("true", "began at", "found", "off, %")
    listing = table("Parameters", "", *columns, "95 % interval", "", right=columns)
    for one in facts["parameters"][:_MOST_SHOWN]:
        interval = "not shown by the motion"
        if one["shown"]:
            low, high = one["interval_95"]
            interval = f"{low:.4g} … {high:.4g}"
        off = "–" if one["error_percent"] is None or not one["shown"] else f"{one['error_percent']:.2f}"
        add_row(listing, one["name"], *(number(one[key], 5) for key in ("true", "start", "found")), off, interval,
                one["unit"])  # fmt: skip
    out.print(listing)
    if len(facts["parameters"]) > _MOST_SHOWN:
        say(out, f"… {len(facts['parameters']) - _MOST_SHOWN} more: --json has them all")
    limited = [name for name, share in zip(facts["joints"], facts["saturated"], strict=True) if share > 0.01]
    if limited:
        say(out, f"warning: {', '.join(limited)} lacked torque for more than 1 % of the time and taught nothing then")
    tracking = "within" if facts["within_dead_zone"] else "not within"
    say(out, f"tracking is {tracking} twice the dead zone; {facts['verdict']}", "[bold]verdict[/bold]: ")


def adapt_command(
    model: Model,
    load: Annotated[float, typer.Option(metavar="KG", help="The load that the controller is not told of.")] = 2.0,
    body: Annotated[str | None, typer.Option(help="The body that carries it; default: the last one.")] = None,
    centre: Annotated[str, typer.Option(metavar="X,Y,Z", help="Where on that body it is, m.")] = "0,0,0",
    find: Annotated[
        str, typer.Option(help="What is learnt: mass, point (mass and centre), body (all ten), robot (everything).")
    ] = "mass",
    motion: Annotated[str, typer.Option(help="still, excite, or the file of a trajectory.")] = "excite",
    seconds: Annotated[float | None, typer.Option(help="How long; default 20, or the trajectory's length.")] = None,
    noise: Annotated[float, typer.Option(metavar="RAD", help="Standard deviation of encoder noise.")] = 1e-5,
    bandwidth: Annotated[float, typer.Option(metavar="HZ", help="Of the tracking loop.")] = 4.0,
    rate: Annotated[float, typer.Option(metavar="1/S", help="How fast what the motion shows is learnt.")] = 2.0,
    tracking_only: Annotated[
        bool, typer.Option("--tracking-only", help="Learn from tracking errors alone, without the momentum balance.")
    ] = False,
    model_error: Annotated[
        float, typer.Option(help="Part of the torque by which the arm's model may be wrong: intervals cover it.")
    ] = 1e-3,
    result: Annotated[
        Path | None, typer.Option("--result", help="Let controllers believe an identified arm, not the model itself.")
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="A picture of errors and parameters, .svg.")] = None,
    seed: Seed = 0,
    lock: Lock = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Simulate Slotine–Li adaptive control of an arm with an unknown load; does it track, and is what it learns right?

    Example: `steelyard adapt panda --load 2 --body hand --centre 0,0,0.1 --find point`
    """
    if figure is not None:
        checked_output(figure, (".svg",))
    if not (np.isfinite(noise) and noise >= 0):
        raise OptionError(f"--noise is {noise}; give a finite number from 0")
    real = fully_known(robot_from(model, lock, None, None, gravity, mounting))
    where = numbers(centre, 3, "--centre")
    carrier = last_body(real) if body is None else body
    believed: Estimate | None = None
    arm = real
    if result is not None:
        believed = read_result(result).estimate
        arm = believed.robot
        if arm.dof_names != real.dof_names:
            theirs, ours = (", ".join(one.dof_names) for one in (arm, real))
            raise OptionError(f"{result} is of the joints {theirs}; {model} has {ours}")
    unknown = _unknown(find, carrier, where, arm)
    loaded = with_payload(real, carrier, load, where)
    only = None if find == "robot" else [f"{carrier}.{name.rpartition('.')[2]}" for name in unknown.names(arm)]
    with reporting() as report:
        report("designing the motion", 0.0)
        reference = reference_motion(loaded, motion, seconds, only=only, seed=seed)
        law = SlotineLi(
            arm, unknown, reference, bandwidth, rate, noise, prediction=0.0 if tracking_only else 1.0,
            model_error=model_error,
        )  # fmt: skip
        plant = Plant(loaded, sensors=Sensors(position_noise=noise))
        report("adaptive control", 0.2)
        made = adapt(plant, law, rng=np.random.default_rng(seed))
        report("controllers that learn nothing", 0.5)
        others = dict(opponents(plant, law, np.random.default_rng(seed), believed))
    truth = _truth(law, loaded)
    facts = _facts(made, others, truth, real.dof_names)
    if figure is not None:
        write_text(figure, adaptation_picture(made, others, truth))
    about = {"robot": real.name, "load": load, "body": carrier, "centre": where, "find": find, "motion": motion}
    facts = {**about, "seed": seed, **facts, "written": figure and str(figure)}
    if as_json:
        print_json(facts)
        return
    _print(facts)
    if figure is not None:
        say(console(), f"wrote {figure}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("adapt")(adapt_command)
