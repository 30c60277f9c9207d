"""The command that finds contacts in a recording by the robot's momentum."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..control.momentum import MomentumObserver, Residuals, Tool, residuals
from ..control.motions import reference_motion
from ..control.touch import Contact, Thresholds, calibrate, find_contacts, smallest_force
from ..control.touch_demonstration import pushed_recording, usual_pushes
from ..data.load import load_recording
from ..data.recording import Recording, save_recording
from ..dynamics.frames import last_body
from ..errors import DataError, OptionError, unknown_name
from ..files import checked_output
from ..identification.estimate import Estimate
from ..identification.result_file import FORMAT, read_result, read_yaml
from ..report.control import touch_picture
from ..report.page import write_text
from ..robot.robot import Robot
from .options import AsJson, Gravity, Lock, MappingOption, Mounting, Repair, Seed, numbers, robot_from
from .output import add_row, console, number, plain, print_json, say, table
from .progress import reporting


def _believed(model: str, *options: Any) -> tuple[Robot | Estimate, tuple[str, ...]]:
    """A robot, or an estimate where the path is that of a result."""
    path = Path(model)
    if path.suffix.lower() in (".yaml", ".yml") and path.is_file() and read_yaml(path).get("format") == FORMAT:
        if any(option is not None for option in options):
            raise OptionError("--lock, --gravity and --mounting are of a model; a result has its own")
        saved = read_result(path)
        return saved.estimate, saved.notes
    lock, gravity, mounting = options
    return robot_from(model, lock, None, None, gravity, mounting), ()


def _tool(robot: Robot, text: str | None) -> Tool:
    """`hand` or `hand:0,0,0.1`; the last body where nothing is said."""
    body, colon, place = (text or last_body(robot)).partition(":")
    if body.strip() not in robot.bodies:
        raise OptionError(unknown_name("moving body for --tool", body.strip(), robot.bodies))
    x, y, z = numbers(place, 3, "--tool").tolist() if colon else (0.0, 0.0, 0.0)
    return Tool(body.strip(), (x, y, z))


def _window(text: str) -> tuple[float, float]:
    first, colon, last = text.partition(":")
    a, b = (float(numbers(part, 1, "--free")[0]) for part in (first, last)) if colon else (0.0, 0.0)
    if not b > a:
        raise OptionError(f"--free takes FROM:TO in seconds, like 0:5, not '{text}'")
    return a, b


def _quiet(
    observer: MomentumObserver, seen: Residuals, free: str | None, other: Residuals | None, per_hour: float
) -> Thresholds:
    """Thresholds from another recording, or from a stretch of this one."""
    if other is not None:
        return calibrate(observer, other.t, other.torque, other.qd, per_hour)
    assert free is not None
    a, b = _window(free)
    start = float(seen.t[0])
    rows = (seen.t - start >= a) & (seen.t - start <= b)
    if not rows.any():
        raise DataError(f"--free {free} is outside the recording, which lasts {seen.t[-1] - start:.3g} s")
    first = int(np.argmax(rows))
    some = slice(first, first + int(rows.sum()))
    return calibrate(observer, seen.t[some], seen.torque[some], seen.qd[some], per_hour)


def _contact_facts(one: Contact) -> dict[str, Any]:
    return {
        "begin": one.begin,
        "end": one.end,
        "strongest": one.strongest,
        "joints": one.joints,
        "torque": one.torque,
        "at_or_beyond": one.beyond,
        "force": one.force,
        "force_deviation": one.force_deviation,
        "direction": one.direction,
        "unexplained": one.unexplained,
    }


def _facts(
    robot: Robot, thresholds: Thresholds, contacts: tuple[Contact, ...], forces: NDArray[np.float64], seen: Residuals
) -> dict[str, Any]:
    rated = np.where(np.isfinite(robot.limits.torque), robot.limits.torque, np.nan)
    percent = 100 * np.sqrt(thresholds.deviation**2 + thresholds.mean**2) / rated
    faster = np.abs(seen.qd).max(axis=0) / np.maximum(thresholds.speed, 1e-9)
    return {
        "joints": robot.dof_names,
        "thresholds": thresholds.threshold,
        "bias": thresholds.mean,
        "deviation": thresholds.deviation,
        "memory": [joint.memory for joint in thresholds.joints],
        "peaks": [joint.peaks for joint in thresholds.joints],
        "heavy_tail": [joint.heavy for joint in thresholds.joints],
        "false_alarms_per_hour": thresholds.per_hour,
        "free_seconds": thresholds.seconds,
        "torque_error_percent_of_rated": percent,
        "smallest_force": {
            "median": float(np.median(forces)),
            "in_95_percent_of_directions_and_poses": float(np.quantile(forces, 0.95)),
        },
        "faster_than_the_free_motion": [
            name for name, ratio in zip(robot.dof_names, faster, strict=True) if ratio > 1.2
        ],
        "contacts": [_contact_facts(one) for one in contacts],
    }


def _print(facts: dict[str, Any], body: str) -> None:
    out = console()
    right = ("bias", "deviation", "threshold", "% of rated")
    listing = table(
        f"Torque from outside while nothing touched ({facts['free_seconds']:.3g} s), N·m (N)", "joint", *right,
        "peaks", right=right,
    )  # fmt: skip
    for k, joint in enumerate(facts["joints"]):
        heavy = ", heavy tail" if facts["heavy_tail"][k] else ""
        values = (facts["bias"][k], facts["deviation"][k], facts["thresholds"][k])
        percent = facts["torque_error_percent_of_rated"][k]
        add_row(listing, joint, *(number(x, 3) for x in values), number(percent, 2), f"{facts['peaks'][k]}{heavy}")
    out.print(listing)
    say(out, f"thresholds let one expect {facts['false_alarms_per_hour']:g} false alarms an hour")
    percent = facts["torque_error_percent_of_rated"]
    force = facts["smallest_force"]
    if np.isfinite(percent).any():
        say(out, f"torque error: {np.nanmax(percent):.2g} % of rated torque in the worst joint (KUKA iiwa: < 2 %)")
    say(
        out,
        f"smallest steady force at {body}: {number(force['median'], 3)} N in the middle of directions and poses, "
        f"{number(force['in_95_percent_of_directions_and_poses'], 3)} N in 95 % of them (KUKA iiwa: < 2 N)",
    )
    for joint in facts["faster_than_the_free_motion"]:
        say(out, f"caution: {joint} moves faster than while nothing touched; its threshold was not tried there")
    if not facts["contacts"]:
        say(out, "no contact")
        return
    cells = ("from, s", "to, s", "force, N", "deviation", "unexplained")
    found = table("Contacts", *cells[:2], "joints", "at or beyond", *cells[2:], right=(*cells[:2], cells[4]))
    for one in facts["contacts"]:
        force_text = "(" + ", ".join(number(x, 3) for x in one["force"]) + ")"
        spread = "(" + ", ".join(number(x, 2) for x in one["force_deviation"]) + ")"
        add_row(
            found, f"{one['begin']:.3f}", f"{one['end']:.3f}", ", ".join(one["joints"]), one["at_or_beyond"],
            force_text, spread, f"{100 * one['unexplained']:.0f} %",
        )  # fmt: skip
    out.print(found)


def _recorded(
    robot: Robot, path: Path | None, demo: bool, tool: Tool, seconds: float, seed: int, *reading: Any
) -> Recording:
    if not demo:
        assert path is not None
        mapping, repair = reading
        return load_recording(path, robot, mapping, repair=repair)
    reference = reference_motion(robot, "excite", seconds, seed=seed)
    return pushed_recording(robot, reference, tool, usual_pushes(seconds), rng=np.random.default_rng(seed))


def touch_command(
    model: Annotated[str, typer.Argument(help="What `steelyard identify --output` wrote, or a model.")],
    recording: Annotated[Path | None, typer.Argument(help="The recording in which contacts are sought.")] = None,
    quiet_recording: Annotated[
        Path | None, typer.Option("--quiet-recording", help="A recording of the same robot that nothing touched.")
    ] = None,
    free: Annotated[
        str | None, typer.Option(metavar="FROM:TO", help="Seconds of the recording itself in which nothing touched.")
    ] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="BODY[:X,Y,Z]", help="Where it is pushed; default: the last body's origin.")
    ] = None,
    per_hour: Annotated[float, typer.Option(help="False alarms an hour that are allowed.")] = 1.0,
    bandwidth: Annotated[float, typer.Option(metavar="HZ", help="Of the observer: faster is noisier.")] = 8.0,
    order: Annotated[int, typer.Option(help="Low-passes of the observer in a row, 1 to 3.")] = 2,
    held: Annotated[
        bool, typer.Option("--held", help="Torque is what was commanded at a sample and held until the next.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Simulate the robot, pushed with known forces, instead of a recording.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Length of the demonstration.", min=10.0, max=1200.0)] = 60.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The demonstration's recording, .npz or .csv.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Print a JSON object a contact, one a line.")] = False,
    figure: Annotated[Path | None, typer.Option("--figure", help="Residuals and contacts, .svg.")] = None,
    mapping: MappingOption = None,
    repair: Repair = False,
    seed: Seed = 0,
    lock: Lock = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Find contacts in a recording by the generalised momentum: when, which joints, which force at the tool.

    Example: `steelyard touch result.yaml run.csv --free 0:5 --tool hand`

    Thresholds come from motion that nothing touched: --quiet-recording, or --free.
    """
    if demo == (recording is not None):
        raise OptionError("give a recording, or --demo; one of them")
    if demo:
        free = free or (None if quiet_recording else f"0:{0.5 * seconds:g}")
    if (free is None) == (quiet_recording is None):
        raise OptionError("give one of --quiet-recording and --free: thresholds come from motion that nothing touched")
    if output is not None and not demo:
        raise OptionError("--output writes the recording of --demo; there is none here")
    for path, suffixes in ((output, (".npz", ".csv")), (figure, (".svg",))):
        if path is not None:
            checked_output(path, suffixes)
    believed, notes = _believed(model, lock, gravity, mounting)
    observer = MomentumObserver(believed, bandwidth, order, "held" if held or demo else "sampled")
    robot = observer.robot
    pushed = _tool(robot, tool)
    with reporting() as report:
        report("reading" if not demo else "simulating", 0.0)
        given = _recorded(robot, recording, demo, pushed, seconds, seed, mapping, repair)
        report("residuals", 0.5)
        seen = residuals(observer, given)
        other = None
        if quiet_recording is not None:
            other = residuals(observer, load_recording(quiet_recording, robot, mapping, repair=repair))
        thresholds = _quiet(observer, seen, free, other, per_hour)
        contacts = find_contacts(robot, seen.t, seen.q, seen.torque, thresholds, pushed)
        forces = smallest_force(robot, pushed, seen.q, thresholds)
    if output is not None:
        save_recording(given, output)
    if figure is not None:
        write_text(figure, touch_picture(robot, seen, thresholds, contacts))
    facts = {
        "robot": robot.name,
        "tool": [pushed.body, *pushed.offset],
        "lag": observer.lag,
        **_facts(robot, thresholds, contacts, forces, seen),
    }
    if demo:
        facts["true_pushes"] = [
            {"force": push.force, "begin": push.begin, "end": push.begin + push.seconds}
            for push in usual_pushes(seconds)
        ]
    written = [str(path) for path in (output, figure) if path is not None]
    if as_json:
        print_json({**facts, "notes": notes, "written": written})
        return
    if lines:
        for one in facts["contacts"]:
            print(json.dumps(plain(one), ensure_ascii=False))
        return
    for note in notes:
        say(console(), f"note: {note}")
    _print(facts, pushed.body)
    for push in facts.get("true_pushes", ()):
        say(console(), f"truly: {push['force']} N from {push['begin']:.3f} to {push['end']:.3f} s")
    for name in written:
        say(console(), f"wrote {name}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("touch")(touch_command)
