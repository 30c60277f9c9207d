"""The command that simulates an experiment."""

import hashlib
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..data.recording import save_recording
from ..errors import OptionError
from ..excitation.exchange import read_trajectory
from ..physics.friction import friction_named
from ..physics.transmission import FlexibleJoint
from ..robot.robot import Robot
from ..simulation.cautions import SaturationWarning, StepWarning
from ..simulation.closed_loop import simulate
from ..simulation.controllers import computed_torque, pid_for
from ..simulation.sensors import Sensors
from .options import AsJson, Bodies, Gravity, Lock, Model, Mounting, robot_from
from .output import console, print_json, say

_CONTROLLERS = ("pid", "gravity", "computed-torque")


def _per_joint(text: str | None, robot: Robot, option: str) -> np.ndarray:
    """One number for all joints, or a number a joint."""
    if text is None:
        return np.zeros(robot.n)
    try:
        values = np.array([float(part) for part in text.replace(",", " ").split()])
    except ValueError:
        raise OptionError(f"{option} takes numbers, not '{text}'") from None
    if values.size not in (1, robot.n) or not np.isfinite(values).all():
        raise OptionError(f"{option} takes one finite number, or {robot.n}, one a joint; '{text}' has {values.size}")
    return np.array(np.broadcast_to(values, (robot.n,)))


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
    outliers: Annotated[float, typer.Option(help="Share of torque samples with a spike.")] = 0.0,
    delay: Annotated[int, typer.Option(help="Control ticks from truth to measurement.")] = 0,
    stiffness: Annotated[
        str | None, typer.Option(metavar="N·m/RAD", help="Flexible joints: their stiffness; one or a number a joint.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Control rate, Hz.")] = 1000.0,
    sampling: Annotated[float | None, typer.Option(help="Sampling rate, Hz; default: the control rate.")] = None,
    step: Annotated[float | None, typer.Option(help="Longest integration step, s.")] = None,
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
    robot = robot_from(model, lock, bodies, None, gravity, mounting)
    path = read_trajectory(trajectory, robot.dof_names)
    torque = np.where(np.isfinite(robot.limits.torque), robot.limits.torque, 10.0)
    law = None if friction is None else friction_named(friction, torque)
    if controller not in _CONTROLLERS:
        raise OptionError(f"no controller '{controller}'; valid: {', '.join(_CONTROLLERS)}")
    chosen = {
        "pid": lambda: pid_for(robot, bandwidth),
        "gravity": lambda: pid_for(robot, bandwidth, integral=0.0, model="gravity"),
        "computed-torque": lambda: computed_torque(bandwidth),
    }[controller]()
    springs = None
    if stiffness is not None:
        rotor = robot.joint_parameters[:, 0]
        if (rotor <= 0).any():
            missing = robot.dof_names[int((rotor <= 0).argmax())]
            raise OptionError(f"flexible joints need rotors, and the armature of {missing} is 0; give the model one")
        springs = FlexibleJoint(rotor, _per_joint(stiffness, robot, "--stiffness"))
    sensors = Sensors(
        position_noise=_per_joint(noise, robot, "--noise"),
        torque_noise=_per_joint(torque_noise, robot, "--torque-noise"),
        position_step=_per_joint(encoder, robot, "--encoder"),
        outliers=outliers,
        delay_ticks=delay,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StepWarning)
        warnings.simplefilter("always", SaturationWarning)
        recording = simulate(
            robot,
            path,
            controller=chosen,
            friction=law,
            flexible=springs,
            sensors=sensors,
            rng=np.random.default_rng(seed),
            control_hz=rate,
            sample_hz=sampling,
            step=step,
            integrator=integrator,
            seed_note=seed,
        )
    save_recording(recording, output)
    error = np.abs(recording.more["q_true"] - recording.more["q_d"]).max(axis=0)
    told = [str(w.message) for w in caught if issubclass(w.category, StepWarning | SaturationWarning)]
    summary = {
        "robot": robot.name,
        "samples": len(recording),
        "seconds": recording.duration,
        "largest_tracking_error": dict(zip(robot.dof_names, error.tolist(), strict=True)),
        "warnings": told,
        "trajectory_sha256": hashlib.sha256(trajectory.read_bytes()).hexdigest() if trajectory.is_file() else None,
        "written": str(output),
    }
    if as_json:
        print_json(summary)
        return
    out = console()
    say(out, f"{len(recording)} samples of {robot.name}, {recording.duration:.2f} s")
    errors = ", ".join(f"{name} {value:.3g}" for name, value in zip(robot.dof_names, error, strict=True))
    say(out, f"largest tracking error: {errors}")
    for warning in told:
        say(out, f"warning: {warning}")
    say(out, f"wrote {output}")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("simulate")(simulate_command)
