"""The command that shows what compensations of friction do to tracking."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..control.friction_trial import NONE, Outcome, Trial, compare_compensations, moves_and_rests, usual_torque_scale
from ..control.loop import Plant
from ..errors import OptionError, unknown_name
from ..excitation.exchange import read_trajectory
from ..identification.friction.curve import FrictionCurve, curve_of
from ..identification.friction.saved import read_friction
from ..physics.friction import (
    FRICTION_NAMES,
    Asymmetric,
    Coulomb,
    CoulombViscous,
    FrictionLaw,
    LuGre,
    Stribeck,
    Viscous,
    friction_named,
)
from ..robot.robot import Robot
from ..simulation.reference import reference_of
from ..simulation.sensors import Sensors
from .options import AsJson, Gravity, Lock, Model, Mounting, Seed, robot_from
from .output import add_row, console, number, print_json, say, table
from .progress import reporting

_LAWS: dict[str, type[FrictionLaw]] = {
    "viscous": Viscous,
    "coulomb": Coulomb,
    "coulomb-viscous": CoulombViscous,
    "offset": CoulombViscous,
    "asymmetric": Asymmetric,
    "stribeck": Stribeck,
    "lugre": LuGre,
}
_CONTROLLERS = {"gravity": "gravity", "computed-torque": "computed torque"}
Array = NDArray[np.float64]


def _value(key: str, text: str) -> Array | float:
    try:
        values = [float(part) for part in text.split("/")]
    except ValueError:
        raise OptionError(f"--friction: {key} takes a number, or one a joint as 2/2/1, not '{text}'") from None
    return values[0] if len(values) == 1 else np.array(values)


def _law(text: str, scale: Array) -> FrictionLaw:
    """A law by name, or by name and values: `stribeck:coulomb=2,static=3,stribeck_velocity=0.05`."""
    name, colon, rest = text.partition(":")
    if not colon:
        return friction_named(name.strip(), scale)
    if name not in _LAWS:
        raise OptionError(unknown_name("friction law with values", name, _LAWS))
    kind, values = _LAWS[name], {}
    valid = [key for key in kind._rules if kind.__dataclass_fields__[key].init]  # type: ignore[attr-defined]
    for part in rest.split(","):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or key not in valid:
            raise OptionError(f"--friction {name}: {unknown_name('value', key, valid)}; write KEY=NUMBER,…")
        values[key] = _value(key, value)
    try:
        return kind(**values)
    except TypeError:
        missing = ", ".join(key for key in valid if key not in values)
        raise OptionError(
            f"--friction {name} lacks values; it takes {', '.join(valid)} (not given: {missing})"
        ) from None


def _share(text: str) -> float:
    """`20%` or `0.2`; `-20%` is too little."""
    bare = text.strip().removesuffix("%")
    try:
        value = float(bare) / (100.0 if text.strip().endswith("%") else 1.0)
    except ValueError:
        value = np.nan
    if not -1.0 <= value <= 10.0:
        raise OptionError(f"--wrong-by takes a share such as 20% or -20%, at least -100%, not '{text}'")
    return value


def _frictions(
    robot: Robot, friction: str | None, result: Path | None, scale: Array
) -> tuple[FrictionLaw, FrictionCurve, Array, list[str]]:
    """What acts, what is believed, the offset that acts beside the law, and what is to be said of it."""
    if result is None:
        law = _law("lugre" if friction is None else friction, scale)
        return law, curve_of(law, robot.n), np.zeros(robot.n), []
    believed = read_friction(result).for_joints(robot.dof_names)
    if friction is not None:
        return _law(friction, scale), believed, np.zeros(robot.n), []
    law, offset = believed.law()
    notes = [] if believed.symmetric else ["the plant's friction is the mean of the two directions found"]
    return law, believed, offset, notes


def _facts(robot: Robot, outcome: Outcome) -> dict[str, Any]:
    def by_joint(values: NDArray[Any]) -> dict[str, Any]:
        return dict(zip(robot.dof_names, values.tolist(), strict=True))

    return {
        "name": outcome.name,
        "overall_improvement": outcome.overall,
        "rms_error": by_joint(outcome.rms),
        "largest_error": by_joint(outcome.largest),
        "improvement": by_joint(outcome.improvement),
        "saturated_share": by_joint(outcome.saturated),
        "oscillates": by_joint(outcome.oscillates) if not outcome.failed else None,
        "turns_a_second_more": by_joint(outcome.turns),
        "torque_unrest": by_joint(outcome.unrest),
        "cautions": outcome.cautions,
        "failed": outcome.failed,
    }


def _print(robot: Robot, outcomes: list[Outcome]) -> None:
    out = console()
    numeric = ("rms error", "largest", "better by", "saturated", "torque unrest")
    rows = table("all joints (errors in mrad or mm)", "compensation", *numeric, "oscillates", right=numeric)
    for one in outcomes:
        if one.failed:
            add_row(rows, one.name, "–", "–", "–", "–", "–", "ran away")
            continue
        restless = [name for name, wild in zip(robot.dof_names, one.oscillates, strict=True) if wild]
        add_row(
            rows, one.name, number(1e3 * float(np.sqrt(np.mean(one.rms**2))), 3),
            number(1e3 * float(one.largest.max()), 3),
            "" if one.name == NONE else f"× {one.overall:.3g}", f"{100 * float(one.saturated.mean()):.1f} %",
            f"× {float(np.median(one.unrest)):.2g}", ", ".join(restless) or "no",
        )  # fmt: skip
    out.print(rows)
    names = [one.name for one in outcomes]
    for title, pick in (("rms error of each joint, mrad or mm", "rms"), ("largest error, mrad or mm", "largest")):
        each = table(title, "joint", *names, right=tuple(names))
        for j, joint in enumerate(robot.dof_names):
            add_row(each, joint, *(number(1e3 * float(getattr(one, pick)[j]), 3) for one in outcomes))
        out.print(each)
    for text in dict.fromkeys(text for one in outcomes for text in one.cautions):
        say(out, f"caution: {text}")
    for one in outcomes:
        if one.failed:
            say(out, f"{one.name}: {one.failed}")


def compensate_command(
    model: Model,
    friction: Annotated[
        str | None,
        typer.Option(
            "--friction",
            metavar="LAW[:KEY=VALUE,…]",
            help=f"What acts: {', '.join(FRICTION_NAMES)}; values a joint as 2/2/1. Default: lugre, or --result's.",
        ),
    ] = None,
    result: Annotated[
        Path | None, typer.Option("--result", help="What is compensated, as `steelyard friction --output` wrote it.")
    ] = None,
    wrong_by: Annotated[
        str, typer.Option("--wrong-by", metavar="SHARE", help="How much too large the friction is believed: 20%, -20%.")
    ] = "0%",
    gain: Annotated[float, typer.Option(help="Share of the believed friction that is fed forward.")] = 0.8,
    controller: Annotated[str, typer.Option(help="gravity (PD with gravity) or computed-torque.")] = "gravity",
    bandwidth: Annotated[float, typer.Option(help="Of the controller, Hz.")] = 4.0,
    observer: Annotated[float, typer.Option(help="Bandwidth of the disturbance observer, Hz.")] = 10.0,
    dither: Annotated[float, typer.Option(help="Frequency of the dither, Hz.")] = 200.0,
    dither_share: Annotated[float, typer.Option(help="Its size as a share of static friction.")] = 0.15,
    trajectory: Annotated[
        Path | None, typer.Option("--trajectory", "-t", help="What to follow; default: slow moves with rests.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Length of the default motion.")] = 8.0,
    noise: Annotated[float, typer.Option(metavar="RAD", help="Standard deviation of measured positions.")] = 1e-5,
    encoder: Annotated[float, typer.Option(metavar="RAD", help="Step of the encoders; 0: none.")] = 0.0,
    rate: Annotated[float, typer.Option(help="Control rate, Hz.")] = 1000.0,
    seed: Annotated[int, Seed.__metadata__[0]] = 0,
    lock: Lock = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Simulate tracking under friction without compensation and with each kind, and say what each is worth.

    Example: `steelyard compensate panda --friction lugre --wrong-by 20%`
    """
    robot = robot_from(model, lock, None, None, gravity, mounting)
    if controller not in _CONTROLLERS:
        raise OptionError(unknown_name("controller", controller, _CONTROLLERS))
    if trajectory is None:
        reference = moves_and_rests(robot, rate, seconds)
    else:
        reference = reference_of(read_trajectory(trajectory, robot.dof_names), rate)
    trial = Trial(_CONTROLLERS[controller], bandwidth, gain, observer, dither, dither_share)
    scale = usual_torque_scale(robot, trial.stiffness(robot, reference))
    law, known, offset, notes = _frictions(robot, friction, result, scale)
    believed = known.scaled(1.0 + _share(wrong_by))
    plant = Plant(robot, law, control_hz=rate, sensors=Sensors(position_noise=noise, position_step=encoder))
    with reporting() as report:
        outcomes = compare_compensations(
            plant, reference, believed, np.random.default_rng(seed), trial, offset, progress=report
        )
    if as_json:
        print_json(
            {"robot": robot.name, "seed": seed, "notes": notes, "ways": [_facts(robot, one) for one in outcomes]}
        )
        return
    for note in notes:
        say(console(), f"note: {note}")
    _print(robot, outcomes)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compensate")(compensate_command)
