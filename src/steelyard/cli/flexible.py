"""The command on flexible joints: poles, damping and margin of control laws, and what they do in simulation."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..control.elastic_study import ElasticStudy, LawStudy, study_flexible
from ..control.flexible import pendulum
from ..dynamics import gravity as gravity_torque
from ..errors import OptionError
from ..files import checked_output
from ..physics.transmission import FlexibleJoint
from ..report.control import locus_picture
from ..report.page import write_text
from ..robot.robot import Robot
from .options import AsJson, Lock, per_joint, robot_from
from .output import add_row, console, number, print_json, say, table
from .progress import reporting


def _law_facts(study: LawStudy) -> dict[str, Any]:
    behaviour = {
        name: {
            "offset": one.offset,
            "overshoot": one.overshoot,
            "settled": one.settled,
            "swing": one.swing,
            "rms": one.rms,
            "ran_away": one.ran_away,
        }
        for name, one in (("step", study.step), ("smooth", study.smooth))
    }
    return {
        "stable": study.is_stable,
        "poles": [{"real": p.real, "imag": p.imag} for p in study.loop.poles],
        "sampled_poles": [{"real": p.real, "imag": p.imag} for p in study.sampled],
        "damping_ratios": study.loop.damping_ratios,
        "least_damping": study.least_damping,
        "settling": study.settling,
        "disagreement": study.disagreement,
        **behaviour,
    }


def _facts(robot: Robot, study: ElasticStudy) -> dict[str, Any]:
    return {
        "robot": robot.name,
        "modes": study.modes,
        "laws": {name: _law_facts(one) for name, one in study.laws.items()},
        "limit": study.limit,
        "locus": {
            "bandwidth": study.bandwidths,
            "real": study.locus.real,
            "imag": study.locus.imag,
        },
    }


def _swing(study: LawStudy) -> str:
    """The poles that swing or grow, the least damped first, in a few words."""
    poles = study.sampled[study.sampled.imag > 1e-6 * np.abs(study.sampled)]
    order = np.argsort(-poles.real / np.abs(poles))
    told = [f"{p.real:.3g} ± {p.imag:.3g}i" for p in poles[order][:2]]
    return ", ".join(told) or "none swings"


def _print(facts: dict[str, Any], study: ElasticStudy, bandwidth: float, rate: float) -> None:
    out = console()
    modes = ", ".join(f"{mode:.4g}" for mode in study.modes)
    say(out, f"{facts['robot']}: the free robot swings at {modes} rad/s")
    right = ("damping ratio", "step: offset", "overshoot", "last swing", "smooth motion: rms", "last swing ")
    listing = table(f"Laws, held at {rate:g} Hz", "law", "stable", "least damped poles, 1/s", *right, right=right)
    for name, one in study.laws.items():
        step, smooth = one.step, one.smooth
        cells = (
            [*(f"{x:.3g}" for x in (step.offset, step.overshoot, step.swing, smooth.rms, smooth.swing))]
            if not (step.ran_away or smooth.ran_away)
            else ["ran away", "", "", "ran away" if smooth.ran_away else "", ""]
        )
        add_row(listing, name, "yes" if one.is_stable else "no", _swing(one), f"{one.least_damping:.3f}", *cells)
    out.print(listing)
    ours = study.laws["two time scales"]
    limit = study.limit
    room = f"{limit:.4g} rad/s, {limit / bandwidth:.3g} times this one" if np.isfinite(limit) else "none that was tried"
    settled = f"2 % after {number(ours.settling, 3)} s by its poles"
    say(out, f"two time scales: not stable from a bandwidth of {room}; {settled}")
    say(out, "boundary layer: the twist obeys μ δ̈ + D_f δ̇ + K δ = 0 and is stable where D_f is positive definite")
    apart = [one.disagreement for one in study.laws.values() if one.is_stable]
    if apart:
        worst = number(max(apart), 2)
        say(out, f"small simulated motions leave those of the stable linear loops by at most {worst} of their size")
    if not ours.is_stable:
        fastest = float(study.modes.max()) if len(study.modes) else 0.0
        say(
            out,
            f"not stable: lower --bandwidth, raise --rate (the fastest mode turns {fastest / rate:.2g} rad a tick; "
            "0.3 is good), or give the joints' own damping (--joint-damping)",
        )


def flexible_command(
    model: Annotated[str | None, typer.Argument(help="A robot; without one, the single joint of exercise 7.5.")] = None,
    link_inertia: Annotated[float, typer.Option(metavar="KG·M²", help="Jl of the single joint.")] = 1.0,
    motor_inertia: Annotated[
        str, typer.Option(metavar="KG·M²", help="Jm by the gear ratio squared, one or one a joint.")
    ] = "0.1",
    stiffness: Annotated[str, typer.Option(metavar="N·M/RAD", help="Of the joints, one or one each.")] = "100",
    joint_damping: Annotated[str, typer.Option(metavar="N·M·S/RAD", help="Beside the springs, one or one each.")] = "0",
    gravity: Annotated[float, typer.Option(metavar="N·M", help="m g l of the single joint.")] = 10.0,
    zeta: Annotated[float, typer.Option(help="Damping ratio that the twist is to have.")] = 0.7,
    bandwidth: Annotated[float, typer.Option(metavar="RAD/S", help="Of the links.")] = 5.0,
    step: Annotated[float | None, typer.Option(help="Of all joints, rad or m; default: 1, of a robot 0.1.")] = None,
    seconds: Annotated[float, typer.Option(help="How long is simulated.")] = 6.0,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Of the controller.")] = 1000.0,
    figure: Annotated[Path | None, typer.Option("--figure", help="The root locus over the bandwidth, .svg.")] = None,
    lock: Lock = None,
    as_json: AsJson = False,
) -> None:
    """Control of flexible joints on two time scales: poles, damping, margin, root locus, and the simulated motion.

    Examples: `steelyard flexible`

    `steelyard flexible two_link --stiffness 2000,500 --motor-inertia 0.1`
    """
    if figure is not None:
        checked_output(figure, (".svg",))
    if model is None and lock:
        raise OptionError("--lock is for a robot; name one")
    robot = pendulum(link_inertia, gravity) if model is None else robot_from(model, lock)
    flexible = FlexibleJoint(
        per_joint(motor_inertia, robot.n, "--motor-inertia"),
        per_joint(stiffness, robot.n, "--stiffness"),
        per_joint(joint_damping, robot.n, "--joint-damping"),
    )
    reach = (1.0 if model is None else 0.1) if step is None else step
    with reporting() as report:
        report("poles and simulation", 0.0)
        study = study_flexible(
            robot, flexible, bandwidth=bandwidth, zeta=zeta, step=reach, seconds=seconds, control_hz=rate
        )
    facts = _facts(robot, study)
    if model is None:
        weight = float(gravity_torque(robot, np.array([reach]))[0])
        slope = gravity * float(np.cos(reach))
        facts["printed_law_offset_first_order"] = weight / (float(flexible.stiffness[0]) + 3 * slope)
    if figure is not None:
        write_text(figure, locus_picture(study, robot.name))
    if as_json:
        print_json({**facts, "written": figure and str(figure)})
        return
    _print(facts, study, bandwidth, rate)
    if figure is not None:
        say(console(), f"wrote {figure}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("flexible")(flexible_command)
