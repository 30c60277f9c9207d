"""The command that records a running robot."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..data.capture import Gaps, capture, gaps_in, read_part
from ..data.dds import Network
from ..data.live import TOPIC, JointStateReader
from ..data.recording import SUFFIXES, Recording, save_recording
from ..errors import OptionError
from ..files import checked_output
from .options import AsJson, Lock, names, robot_from
from .output import console, print_json, say

Topic = Annotated[str, typer.Option("--topic", help="ROS topic of the joint states.")]
Domain = Annotated[int | None, typer.Option("--domain", help="DDS domain; default: ROS_DOMAIN_ID, else 0.")]
Interface = Annotated[
    str | None, typer.Option("--interface", metavar="NAME", help="Use this network interface only, as lo or eth0.")
]


@contextmanager
def ended_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and a polite kill end the work instead of breaking it off."""
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _watched(silent: bool) -> Iterator[Callable[[int, float], None] | None]:
    """A line on standard error that counts; nothing where nobody looks."""
    err = Console(stderr=True, highlight=False)
    if silent or not err.is_terminal:
        yield None
        return
    with err.status("waiting for a robot …") as status:

        def report(count: int, t: float) -> None:
            if count % 200 == 0:
                status.update(f"{count} samples, {t:.1f} s; ctrl-C ends and saves")

        yield report


def _told(recording: Recording, gaps: Gaps, counts: dict[str, int], output: Path) -> list[str]:
    """What there is to say of a recording, a line each."""
    lines = [f"{len(recording)} samples of {recording.n} joints, {recording.duration:.3f} s at {gaps.rate_hz:.6g} Hz"]
    if gaps.count:
        lines.append(
            f"{gaps.count} gaps, {gaps.missing} samples missing by the stamps; the first at {gaps.first_at_s:.3f} s, "
            f"the largest {1e3 * gaps.largest_s:.1f} ms"
        )
    else:
        lines.append(f"no gaps; the largest step {1e3 * gaps.largest_s:.3g} ms")
    if counts:
        lines.append(f"{counts['lost']} samples lost on the way, {counts['received']} messages received")
    reasons = {
        "overflows": "times more samples waited than are kept: this computer was too slow",
        "other_joints": "messages with other joints only, left out",
        "incomplete": "messages with too few numbers, left out",
        "not_advancing": "samples with a stamp not after the last one, left out",
        "without_stamp": "samples without a stamp, taken at the sender's time",
    }
    lines += [f"{counts[key]} {why}" for key, why in reasons.items() if counts.get(key)]
    if counts.get("publishers", 1) > 1:
        lines.append(f"{counts['publishers']} publishers of these joints; is one robot running twice?")
    if recording.qd is None:
        lines.append("the robot sends no velocities")
    return [*lines, f"wrote {output}"]


def record_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording, .npz or .csv.")] = Path("recording.npz"),
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Robot whose joints are recorded, in its order; none: all.")
    ] = None,
    joints: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Names as published, in the robot's order, where the model has others."),
    ] = None,
    topic: Topic = TOPIC,
    domain: Domain = None,
    interface: Interface = None,
    seconds: Annotated[float | None, typer.Option(help="Length; default: until ctrl-C or silence.", min=0.001)] = None,
    patience: Annotated[float, typer.Option(help="Seconds of silence after which it ends.", min=0.1)] = 10.0,
    best_effort: Annotated[bool, typer.Option("--best-effort", help="For a robot that sends best effort.")] = False,
    recover: Annotated[
        Path | None, typer.Option(help="Save what an interrupted recording left in this .part file.")
    ] = None,
    lock: Lock = None,
    as_json: AsJson = False,
) -> None:
    """Record a running robot's joint states (ROS 2 over DDS, without ROS) until ctrl-C, which saves what is there.

    Example: `steelyard record --model panda --seconds 30 --output run.npz`
    """
    checked_output(output, SUFFIXES)
    counts: dict[str, int] = {}
    if recover is not None:
        recording = read_part(recover)
        save_recording(recording, output)
        gaps = gaps_in(recording.t)
    else:
        robot = None if model is None else robot_from(model, lock)
        own = () if robot is None else robot.dof_names
        published = tuple(names(joints) or own)
        if own and len(published) != len(own):
            raise OptionError(f"--joints has {len(published)} names, {model} has {len(own)} joints: {', '.join(own)}")
        silent = as_json or os.environ.get("STEELYARD_QUIET") == "1"
        with JointStateReader(published, topic, Network(domain, interface), best_effort) as reader:
            with ended_by_signals(reader.stop), _watched(silent) as progress:
                recording, gaps = capture(reader, output, own, seconds, patience, progress)
            counts = reader.counts.as_dict()
    if as_json:
        summary = {"samples": len(recording), "seconds": recording.duration, "joints": recording.joints}
        print_json({**summary, "gaps": gaps.__dict__, "received": counts, "written": str(output)})
        return
    for line in _told(recording, gaps, counts, output):
        say(console(), line)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("record")(record_command)
