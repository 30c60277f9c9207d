"""The command that moves a robot in MuJoCo as if it were a real one."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import numpy as np
import typer
import yaml
from rich.console import Console

from ..data.dds import Network
from ..data.live import TOPIC, JointStateWriter
from ..data.recording import SUFFIXES, save_recording
from ..errors import DataError, OptionError
from ..excitation.exchange import read_trajectory
from ..files import checked_output
from ..robot.robot import Robot
from ..simulation.rig import Noise, Publish, RigRun, run_rig
from ..simulation.rig_control import PUBLISH_RATE_HZ, pd_for
from ..simulation.rig_model import Difference, Payload
from .options import AsJson, Gravity, Lock, Model, Mounting, numbers, per_joint, robot_from
from .output import console, print_json, say
from .record import Domain, Interface, Topic, ended_by_signals

_RATE = "publish_rate_hz"
_LARGEST_CONFIG = 1_000_000


def _payload(text: str) -> Payload:
    """`hand=2` or `hand=2,0,0,0.1`."""
    body, equals, value = text.partition("=")
    if not (equals and body.strip()):
        raise OptionError(f"--payload takes BODY=MASS or BODY=MASS,X,Y,Z, like hand=2,0,0,0.1, not '{text}'")
    values = numbers(value, 4 if len(value.replace(",", " ").split()) > 1 else 1, f"--payload {body.strip()}")
    at = (float(values[1]), float(values[2]), float(values[3])) if values.size == 4 else (0.0, 0.0, 0.0)
    return Payload(body.strip(), float(values[0]), at)


def _each(text: str | None, robot: Robot, option: str) -> np.ndarray | None:
    """One number, or a number a joint."""
    if text is None:
        return None
    return per_joint(text, robot.n, option)


def _configured_rate(path: Path) -> tuple[float, list[str]]:
    """`publish_rate_hz` of a YAML file, plain or as ROS 2 parameters, and the keys beside it that are not used."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.stat().st_size > _LARGEST_CONFIG:
        raise DataError(f"{path}: {path.stat().st_size} bytes are no configuration")
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}") from None
    candidates: list[Any] = [tree]
    if isinstance(tree, dict):
        candidates += [node.get("ros__parameters") for node in tree.values() if isinstance(node, dict)]
    found = [node for node in candidates if isinstance(node, dict) and _RATE in node]
    if len(found) != 1:
        raise DataError(f"{path} has {_RATE} {len(found)} times; it is needed once, at the top or in ros__parameters")
    value = found[0][_RATE]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{path}: {_RATE} is {str(value)[:60]}; it must be a number")
    return float(value), [str(key) for key in found[0] if key != _RATE]


@contextmanager
def _publisher(robot: Robot, on: bool, topic: str, network: Network, wait: float, stop: Event) -> Iterator[Any]:
    """What sends joint states out, stamped by the clock at the start and the rig's own time since."""
    if not on:
        yield None
        return
    with JointStateWriter(robot.dof_names, topic, network) as writer:
        if wait > 0 and not writer.wait_for_reader(wait, stop) and not stop.is_set():
            raise OptionError(
                f"nobody listened to {topic} in domain {network.domain} within {wait:g} s; start it first"
            )
        start: list[int] = []

        def publish(t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> None:
            if not start:
                start.append(time.time_ns())
            writer.write(start[0] + round(t * 1e9), q, qd, tau)

        yield publish


@contextmanager
def _watched(publish: Publish | None, silent: bool, seconds: float) -> Iterator[Publish | None]:
    """A line on standard error that tells how far the rig is; nothing where nobody looks."""
    err = Console(stderr=True, highlight=False)
    if silent or not err.is_terminal:
        yield publish
        return
    with err.status("moving …") as status:
        told = -1

        def report(t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> None:
            nonlocal told
            if publish is not None:
                publish(t, q, qd, tau)
            if int(t) > told:
                told = int(t)
                status.update(f"moving: {t:.0f} of {seconds:.0f} s; ctrl-C ends and saves")

        yield report


def _told(run: RigRun, error: np.ndarray, late: float | None) -> list[str]:
    recording = run.recording
    lines = [
        f"{len(recording)} samples, {recording.duration:.3f} s at {recording.about[_RATE]:g} Hz; "
        f"physics in steps of {1e3 * run.step:.4g} ms"
    ]
    pairs = zip(recording.joints, error, strict=True)
    lines.append("largest tracking error: " + ", ".join(f"{name} {value:.3g}" for name, value in pairs))
    for pair, count in sorted(run.contacts.items(), key=lambda item: -item[1])[:10]:
        lines.append(f"warning: {pair} in contact in {count} samples; their force is in the torque (--no-contacts)")
    if late is not None:
        lines.append(f"behind the clock by at most {1e3 * late:.1f} ms")
    if recording.about["ended_early"]:
        lines.append("ended early")
    return lines


def rig_command(
    model: Model,
    trajectory: Annotated[Path, typer.Option("--trajectory", "-t", help="What `steelyard excite` wrote.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Recording, .npz or .csv.")] = None,
    publish_rate: Annotated[
        float | None, typer.Option(metavar="HZ", help=f"Joint states a second; default {PUBLISH_RATE_HZ:g}.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML with publish_rate_hz, plain or ROS 2 parameters.")] = None,
    true_model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="What really moves, if other than the model believed in.")
    ] = None,
    payload: Annotated[
        list[str] | None, typer.Option(metavar="BODY=MASS[,X,Y,Z]", help="A load on a body, kg, at m in its frame.")
    ] = None,
    damping_scale: Annotated[float, typer.Option(help="Factor on the joints' damping.")] = 1.0,
    coulomb: Annotated[
        str | None, typer.Option(metavar="N·m", help="Dry friction in place of the model's; one or a number a joint.")
    ] = None,
    contacts: Annotated[bool, typer.Option(help="Whether bodies can collide.")] = True,
    bandwidth: Annotated[float, typer.Option(help="Of the PD controller, Hz.")] = 4.0,
    gravity_feed_forward: Annotated[bool, typer.Option(help="Add the believed model's gravity torque.")] = True,
    noise: Annotated[str | None, typer.Option(metavar="RAD", help="Noise of positions, standard deviation.")] = None,
    velocity_noise: Annotated[str | None, typer.Option(metavar="RAD/S", help="Noise of velocities.")] = None,
    torque_noise: Annotated[str | None, typer.Option(metavar="N·m", help="Noise of torques.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the noise.", min=0)] = 0,
    seconds: Annotated[
        float | None, typer.Option(help="How long, if other than the trajectory; its end is held.")
    ] = None,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="In step with the clock; implied by --publish.")
    ] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Send joint states as a ROS 2 robot does.")] = False,
    wait: Annotated[float, typer.Option(help="With --publish: wait so many seconds for a listener.", min=0)] = 0.0,
    topic: Topic = TOPIC,
    domain: Domain = None,
    interface: Interface = None,
    lock: Lock = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Let MuJoCo be the robot: execute a trajectory under PD control, record and publish what a robot would.

    Example: `steelyard rig panda --trajectory traj.csv --payload hand=1.5 --torque-noise 0.1 --output run.npz`
    """
    if output is None and not publish:
        raise OptionError("nothing would come of it; give --output, --publish or both")
    if output is not None:
        checked_output(output, SUFFIXES)
    unread: list[str] = []
    if config is not None:
        rate, unread = _configured_rate(config)
        if publish_rate is not None and publish_rate != rate:
            raise OptionError(f"--publish-rate is {publish_rate:g}, {config} says {rate:g}; give one of them")
        publish_rate = rate
    rate = PUBLISH_RATE_HZ if publish_rate is None else publish_rate
    robot = robot_from(model, lock, None, None, gravity, mounting)
    truth = robot if true_model is None else robot_from(true_model, lock, None, None, gravity, mounting)
    path = read_trajectory(trajectory, robot.dof_names)
    difference = Difference(
        tuple(_payload(text) for text in payload or ()), damping_scale, _each(coulomb, robot, "--coulomb"), contacts
    )
    spread = [
        0.0 if (each := _each(text, robot, option)) is None else each
        for text, option in (
            (noise, "--noise"), (velocity_noise, "--velocity-noise"), (torque_noise, "--torque-noise"),
        )
    ]  # fmt: skip
    controller = pd_for(robot, path, bandwidth, gravity_feed_forward, rate)
    stop = Event()
    silent = as_json or os.environ.get("STEELYARD_QUIET") == "1"
    length = path.duration if seconds is None else seconds
    with (
        ended_by_signals(stop.set),
        _publisher(robot, publish, topic, Network(domain, interface), wait, stop) as sender,
        _watched(sender, silent, length) as sent,
    ):
        run = run_rig(
            robot,
            path,
            truth=truth,
            difference=difference,
            controller=controller,
            publish_rate_hz=rate,
            seconds=seconds,
            noise=Noise(*spread),
            rng=np.random.default_rng(seed),
            publish=sent,
            real_time=real_time or publish,
            stop=stop,
        )
    recording = run.recording
    if not len(recording):
        raise DataError("stopped before the first sample; nothing was recorded")
    if output is not None:
        save_recording(recording, output)
    error = np.abs(recording.more["q_true"] - recording.more["q_d"]).max(axis=0)
    late = run.latest_s if real_time or publish else None
    if as_json:
        print_json(
            {
                "robot": truth.name,
                "samples": len(recording),
                "seconds": recording.duration,
                "publish_rate_hz": rate,
                "physics_step": run.step,
                "largest_tracking_error": dict(zip(robot.dof_names, error, strict=True)),
                "contacts": run.contacts,
                "behind_the_clock": late,
                "ended_early": recording.about["ended_early"],
                "unread_settings": unread,
                "written": None if output is None else str(output),
            }
        )
        return
    out = console()
    for line in _told(run, error, late):
        say(out, line)
    if unread:
        say(out, f"not read from {config}: {', '.join(unread)}")
    if output is not None:
        say(out, f"wrote {output}")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("rig")(rig_command)
