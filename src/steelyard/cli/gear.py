"""The command on motor, gear and load."""

from typing import Annotated, Any

import numpy as np
import typer

from ..dynamics import mass_matrix
from ..errors import OptionError, unknown_name
from ..physics.transmission import (
    RATIO_RULES,
    antiresonance,
    inertia_ratio,
    load_acceleration,
    optimal_ratio,
    reflected_inertia,
    resonance,
)
from ..robot.load import load_robot
from ..robot.tree import HINGE, SLIDE
from .options import AsJson
from .output import add_row, console, number, print_json, say, table


def _positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < np.inf:
        raise OptionError(f"{name} is {value:g}; give a finite number above 0")


def _load_of(model: str, joint: str) -> tuple[float, bool]:
    """What a joint moves with all others held in the home pose, without its rotor, and whether it slides.

    That is M_jj(q_home) − armature: of a slide a mass, whose gear has rad/m.
    """
    robot = load_robot(model)
    geared = [each.name for each in robot.joints if each.kind in (HINGE, SLIDE)]
    if joint not in geared:
        raise OptionError(unknown_name("hinge or slide", joint, geared))
    k = robot.joint(joint).dof
    inertia = float(mass_matrix(robot, robot.home)[k, k] - robot.joint_parameters[k, 0])
    slides = robot.joint(joint).kind == SLIDE
    if inertia <= 0:
        unit = "kg" if slides else "kg·m²"
        raise OptionError(f"{joint} of {robot.name} moves an inertia of {inertia:g} {unit}; give --load instead")
    return inertia, slides


def _facts(
    load: float,
    motor: float,
    ratio: float | None,
    motor_torque: float | None,
    load_torque: float,
    stiffness: float | None,
    slides: bool,
) -> dict[str, Any]:
    share = 0.0 if motor_torque is None else load_torque / motor_torque
    best = float(optimal_ratio(load, motor, share))
    n = best if ratio is None else ratio
    rotor = motor * n**2
    facts: dict[str, Any] = {
        "load_inertia": load,
        "motor_inertia": motor,
        "ratio": n,
        "optimal_ratio": best,
        "reflected_load_inertia": float(reflected_inertia(load, n)),
        "rotor_inertia_at_joint": rotor,
        "inertia_ratio": float(inertia_ratio(load, motor, n)),
        "slides": slides,
        "usual_ratios": {
            name: [rule.low, rule.high]
            for name, rule in RATIO_RULES.items()
            if rule.low <= n <= rule.high and not slides
        },
    }
    if motor_torque is not None:
        reached = {
            at: float(load_acceleration(k, load, motor, motor_torque, load_torque))
            for at, k in (("", n), ("_at_optimal_ratio", best))
        }
        facts |= {f"load_acceleration{at}": value for at, value in reached.items()}
    if stiffness is not None:
        waves = {
            "resonance": float(resonance(load, rotor, stiffness)),
            "antiresonance": float(antiresonance(load, stiffness)),
        }
        for name, value in waves.items():
            facts |= {name: value, f"{name}_hz": value / (2 * np.pi)}
    return facts


_ROWS = (
    ("load_inertia", "load inertia J", "kg·m²"),
    ("motor_inertia", "motor inertia Jm", "kg·m²"),
    ("ratio", "gear ratio n", ""),
    ("optimal_ratio", "optimal ratio", ""),
    ("reflected_load_inertia", "load at the motor, J/n²", "kg·m²"),
    ("rotor_inertia_at_joint", "rotor at the joint, n² Jm", "kg·m²"),
    ("inertia_ratio", "inertia match J/(n² Jm), 1 is matched", ""),
    ("load_acceleration", "load acceleration", "rad/s²"),
    ("load_acceleration_at_optimal_ratio", "load acceleration at the optimal ratio", "rad/s²"),
    ("resonance", "resonance sqrt(K (1/J + 1/(n² Jm)))", "rad/s"),
    ("resonance_hz", "", "Hz"),
    ("antiresonance", "anti-resonance sqrt(K/J)", "rad/s"),
    ("antiresonance_hz", "", "Hz"),
)


# Of a slide: the load is a mass, the ratio has a length in it.
_SLIDING = {"kg·m²": "kg", "": "rad/m", "rad/s²": "m/s²"}


def _unit(key: str, unit: str, slides: bool) -> str:
    at_the_motor = ("motor_inertia", "reflected_load_inertia", "inertia_ratio", "resonance", "antiresonance")
    return _SLIDING.get(unit, unit) if slides and key not in at_the_motor else unit


def gear(
    load: Annotated[float | None, typer.Option(metavar="KG·M²", help="Inertia of the load about the joint.")] = None,
    motor: Annotated[float | None, typer.Option(metavar="KG·M²", help="Inertia of the motor's rotor.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Gear ratio, motor by joint; default: the optimal one.")] = None,
    motor_torque: Annotated[float | None, typer.Option(metavar="N·M", help="What the motor gives.")] = None,
    load_torque: Annotated[float, typer.Option(metavar="N·M", help="What holds the load back, at the joint.")] = 0.0,
    stiffness: Annotated[
        float | None, typer.Option(metavar="N·M/RAD", help="Of the transmission, at the joint: gives the resonances.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Take the load's inertia from a model, with --joint.")
    ] = None,
    joint: Annotated[str | None, typer.Option(help="A hinge or slide of that model, in its home pose.")] = None,
    as_json: AsJson = False,
) -> None:
    """Reflected inertia, optimal ratio, inertia match, resonance and anti-resonance of motor, gear and load.

    Examples: `steelyard gear --load 1 --motor 1e-4 --ratio 100 --stiffness 1e4`

    `steelyard gear --model panda --joint joint2 --motor 8e-5 --ratio 100 --motor-torque 0.8 --load-torque 40`
    """
    if (model is None) != (joint is None):
        raise OptionError("--model and --joint go together; give both, or --load")
    slides = False
    if model is not None and joint is not None:
        if load is not None:
            raise OptionError("--load and --model both say what the load is; give one of them")
        load, slides = _load_of(model, joint)
    if load is None or motor is None:
        raise OptionError(
            f"{'--load (or --model and --joint)' if load is None else '--motor'} is missing; give it in kg·m²"
        )
    given = {
        "--load": load,
        "--motor": motor,
        "--ratio": ratio,
        "--motor-torque": motor_torque,
        "--stiffness": stiffness,
    }
    for name, value in given.items():
        _positive(name, value)
    if not 0 <= load_torque < np.inf:
        raise OptionError(f"--load-torque is {load_torque:g}; give a finite number from 0")
    if load_torque and motor_torque is None:
        raise OptionError("--load-torque needs --motor-torque: the optimal ratio depends on both")
    facts = _facts(load, motor, ratio, motor_torque, load_torque, stiffness, slides)
    if as_json:
        print_json(facts)
        return
    out = console()
    listing = table(None, "", "value", "unit", right=("value",))
    for key, label, unit in _ROWS:
        if key in facts:
            add_row(listing, label, number(facts[key], 5), _unit(key, unit, slides))
    out.print(listing)
    if ratio is None:
        say(out, "No --ratio was given: the figures are those of the optimal one.")
    for name, (low, high) in facts["usual_ratios"].items():
        say(out, f"{name}: usual ratios are {low:g} … {high:g}; {RATIO_RULES[name].because}")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("gear")(gear)
