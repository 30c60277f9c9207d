"""The command that simulates an experiment."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data.recording import save_recording
from ..errors import OptionError
from ..excitation.exchange import read_trajectory
from ..physics.conditions import LoadDependent, Temperature
from ..physics.friction import FrictionLaw, friction_named
from ..physics.kernels.friction import REFERENCE_TEMPERATURE
from ..physics.transmission import FlexibleJoint, harmonic_drive
from ..robot.payload import with_payload
from ..robot.robot import Robot
from ..simulation.cautions import SaturationWarning, StepWarning
from ..simulation.closed_loop import simulate
from ..simulation.controllers import computed_torque, pid_for
from ..simulation.loop import SimulationError, own_friction
from ..simulation.reference import reference_of
from ..simulation.sensors import Sensors
from .options import AsJson, Bodies, Gravity, Lock, Model, Mounting, numbers, per_joint, robot_from
from .output import console, print_json, say

_CONTROLLERS = ("pid", "gravity", "computed-torque")


def _per_joint(text: str | None, robot: Robot, option: str) -> np.ndarray:
    """One number for all joints, or a number a joint."""
    if text is None:
        return np.zeros(robot.n)
    return per_joint(text, robot.n, option)


def _loaded(robot: Robot, payloads: list[str] | None) -> Robot:
    """The robot with what `hand=2.5` or `hand=2.5,0,0,0.1` say that it carries."""
    for text in payloads or []:
        body, equals, load = text.partition("=")
        values = load.replace(",", " ").split()
        if not equals or len(values) not in (1, 4):
            raise OptionError(f"--payload takes BODY=KG or BODY=KG,X,Y,Z, like hand=2.5,0,0,0.1, not '{text}'")
        mass, *centre = numbers(load, len(values), "--payload")
        robot = with_payload(robot, body.strip(), mass, centre or (0.0, 0.0, 0.0))
    return robot


def _friction(name: str | None, robot: Robot, warming: float | None, loading: float | None) -> FrictionLaw | None:
    """The law by its name, or the robot's own, under conditions where such are given."""
    torque = np.where(np.isfinite(robot.limits.torque), robot.limits.torque, 10.0)
    law: FrictionLaw | None = None if name is None else friction_named(name, torque)
    if warming is None and loading is None:
        return law
    law = own_friction(robot) if law is None else law
    if loading is not None:
        law = LoadDependent(law, loading)
    return law if warming is None else Temperature(law, warming)


def _springs(
    robot: Robot, stiffness: str | None, damping: str | None, hysteresis: str | None, backlash: str | None
) -> FlexibleJoint | None:
    """Flexible joints whose motors are the model's rotors."""
    if stiffness is None:
        for given, option in ((damping, "--joint-damping"), (hysteresis, "--hysteresis"), (backlash, "--backlash")):
            if given is not None:
                raise OptionError(f"{option} is of flexible joints; give their --stiffness too")
        return None
    rotor = robot.joint_parameters[:, 0]
    if (rotor <= 0).any():
        missing = robot.dof_names[int((rotor <= 0).argmax())]
        raise OptionError(f"flexible joints need rotors, and the armature of {missing} is 0; give the model one")
    K, memory = _per_joint(stiffness, robot, "--stiffness"), None
    if hysteresis is not None:
        drive = harmonic_drive(K, 2 * _per_joint(hysteresis, robot, "--hysteresis"), 1.0)
        memory = replace(drive, stiffness=0.0)  # the spring that it stands beside is the joint's
    gap = _per_joint(backlash, robot, "--backlash")
    return FlexibleJoint(rotor, K, _per_joint(damping, robot, "--joint-damping"), gap, memory)


def _told(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if issubclass(one.category, StepWarning | SaturationWarning)]


def _tell(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    out = console()
    say(out, f"{summary['samples']} samples of {summary['robot']}, {summary['seconds']:.2f} s")
    errors = ", ".join(f"{name} {value:.3g}" for name, value in summary["largest_tracking_error"].items())
    say(out, f"largest tracking error: {errors}")
    for warning in summary["warnings"]:
        say(out, f"warning: {warning}")
    say(out, f"wrote {summary['written']}")


def simulate_command(
    model: Model,
    trajectory: Annotated[Path, typer.Option("--trajectory", "-t", help="What `steelyard excite` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording, .npz.")] = Path("recording.npz"),
    friction: Annotated[
        str | None,
        typer.Option(
            help="none, viscous, coulomb, coulomb-viscous, offset, asymmetric, stribeck, lugre; default: the model's."
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(metavar="°C", help="Of the joints.")] = REFERENCE_TEMPERATURE,
    temperature_coefficient: Annotated[
        float | None, typer.Option(metavar="1/K", help="Change of all friction a kelvin from 20 °C, like -0.01.")
    ] = None,
    load_coefficient: Annotated[
        float | None, typer.Option(metavar="1/N·m", help="Growth of dry friction a newton metre of joint torque.")
    ] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(metavar="BODY=KG[,X,Y,Z]", help="Let a body carry a point mass; the controller does not know."),
    ] = None,
    controller: Annotated[str, typer.Option(help="pid, gravity (PD with gravity), computed-torque.")] = "pid",
    bandwidth: Annotated[float, typer.Option(help="Of the controller, Hz.")] = 4.0,
    noise: Annotated[
        str | None,
        typer.Option(metavar="RAD", help="Standard deviation of measured positions; one or a number a joint."),
    ] = None,
    torque_noise: Annotated[
        str | None, typer.Option(metavar="N·m", help="Standard deviation of measured torque; one or a number a joint.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(metavar="RAD", help="Step of the encoders.")] = None,
    bias: Annotated[str | None, typer.Option(metavar="RAD", help="Of measured positions.")] = None,
    torque_bias: Annotated[str | None, typer.Option(metavar="N·m", help="Of measured torque.")] = None,
    drift: Annotated[str | None, typer.Option(metavar="RAD/S", help="Of measured positions.")] = None,
    torque_drift: Annotated[str | None, typer.Option(metavar="N·m/S", help="Of measured torque.")] = None,
    outliers: Annotated[float, typer.Option(help="Share of torque samples with a spike.")] = 0.0,
    position_outliers: Annotated[float, typer.Option(help="Share of position samples with a spike.")] = 0.0,
    dropouts: Annotated[float, typer.Option(help="Share of position and torque samples lost.")] = 0.0,
    delay: Annotated[int, typer.Option(help="Control ticks from truth to measurement.")] = 0,
    stiffness: Annotated[
        str | None, typer.Option(metavar="N·m/RAD", help="Flexible joints: their stiffness; one or a number a joint.")
    ] = None,
    joint_damping: Annotated[
        str | None, typer.Option(metavar="N·m·S/RAD", help="Flexible joints: damping beside the spring.")
    ] = None,
    hysteresis: Annotated[
        str | None, typer.Option(metavar="N·m", help="Flexible joints: half the width of their hysteresis (Bouc–Wen).")
    ] = None,
    backlash: Annotated[
        str | None, typer.Option(metavar="RAD", help="Flexible joints: play of their gears, from contact to contact.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Control rate, Hz.")] = 1000.0,
    sampling: Annotated[float | None, typer.Option(help="Sampling rate, Hz; default: the control rate.")] = None,
    step: Annotated[
        float | None, typer.Option(help="Longest integration step, s; default: what friction and springs need.")
    ] = None,
    integrator: Annotated[str, typer.Option(help="rk1, rk2, rk4, semi-implicit, rk45, radau.")] = "rk4",
    seed: Annotated[int, typer.Option(help="Seed of the noise.", min=0)] = 0,
    lock: Lock = None,
    bodies: Bodies = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a robot that follows a trajectory under control, with friction, noise and flexible joints.

    Example: `steelyard simulate panda --trajectory traj.csv --friction stribeck --torque-noise 0.1 --output run.npz`
    """
    if temperature != REFERENCE_TEMPERATURE and temperature_coefficient is None:
        raise OptionError("--temperature changes nothing without --temperature-coefficient; give both")
    nominal = robot_from(model, lock, bodies, None, gravity, mounting)
    robot = _loaded(nominal, payload)
    path = read_trajectory(trajectory, robot.dof_names)
    if controller not in _CONTROLLERS:
        raise OptionError(f"no controller '{controller}'; valid: {', '.join(_CONTROLLERS)}")
    way = reference_of(path, rate)[0]
    law = _friction(friction, robot, temperature_coefficient, load_coefficient)
    dry = (own_friction(robot) if law is None else law).standstill()[0]
    tuned = {"poses": way[:: max(1, len(way) // 50)], "control_hz": rate, "dry": dry}
    chosen = {
        "pid": lambda: pid_for(nominal, bandwidth, **tuned),
        "gravity": lambda: pid_for(nominal, bandwidth, integral=0.0, model="gravity", **tuned),
        "computed-torque": lambda: computed_torque(bandwidth),
    }[controller]()
    sensors = Sensors(
        position_noise=_per_joint(noise, robot, "--noise"),
        position_step=_per_joint(encoder, robot, "--encoder"),
        position_bias=_per_joint(bias, robot, "--bias"),
        position_drift=_per_joint(drift, robot, "--drift"),
        position_outliers=position_outliers,
        torque_noise=_per_joint(torque_noise, robot, "--torque-noise"),
        torque_bias=_per_joint(torque_bias, robot, "--torque-bias"),
        torque_drift=_per_joint(torque_drift, robot, "--torque-drift"),
        outliers=outliers,
        dropouts=dropouts,
        torque_dropouts=dropouts,
        delay_ticks=delay,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StepWarning)
        warnings.simplefilter("always", SaturationWarning)
        try:
            recording = simulate(
                robot,
                path,
                controller=chosen,
                friction=law,
                flexible=_springs(robot, stiffness, joint_damping, hysteresis, backlash),
                sensors=sensors,
                rng=np.random.default_rng(seed),
                nominal=nominal,
                control_hz=rate,
                sample_hz=sampling,
                step=step,
                integrator=integrator,
                temperature=temperature,
                seed_note=seed,
            )
        except SimulationError as error:
            # What was warned of before is likely the reason.
            raise SimulationError("; ".join([str(error), *_told(caught)])) from None
    save_recording(recording, output)
    off = np.abs(recording.more["q_true"] - recording.more["q_d"]).max(axis=0)
    summary = {
        "robot": robot.name,
        "samples": len(recording),
        "seconds": recording.duration,
        "largest_tracking_error": dict(zip(robot.dof_names, off.tolist(), strict=True)),
        "warnings": _told(caught),
        "trajectory_sha256": recording.about["trajectory_sha256"],
        "written": str(output),
    }
    _tell(summary, as_json)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("simulate")(simulate_command)
