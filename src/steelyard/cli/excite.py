"""The command that designs an excitation."""

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from ..data.recording import read_npz
from ..dynamics import inverse_dynamics
from ..errors import DataError, OptionError
from ..excitation.composition import repeat
from ..excitation.constraints import KeepWithin
from ..excitation.design import Excitation, Progress, design_excitation
from ..excitation.exchange import SUFFIXES, read_trajectory, samples_of, write_trajectory
from ..excitation.leads import lead_in_and_out
from ..report.excitation import write_excitation_plot
from ..robot.robot import Robot
from .options import (
    AsJson,
    Bodies,
    Friction,
    Gravity,
    Lock,
    Model,
    Mounting,
    is_quiet,
    is_verbose,
    names,
    numbers,
    robot_from,
)
from .output import console, number, print_json, say

Array = NDArray[np.float64]
_BOX = re.compile(r"^(?P<body>[^:]+):(?P<axis>[xyz])(?P<side>[<>])(?P<bound>[-+.\deE]+)$")


def _boxes(robot: Robot, given: list[str] | None) -> list[KeepWithin]:
    """`hand:z>0.3` as boxes, one a body."""
    bounds: dict[str, tuple[list[float], list[float]]] = {}
    for text in given or []:
        match = _BOX.match(text.replace(" ", ""))
        if match is None:
            raise OptionError(f"--keep takes BODY:AXIS>METRES or BODY:AXIS<METRES, like hand:z>0.3, not '{text}'")
        lower, upper = bounds.setdefault(match["body"], ([-np.inf] * 3, [np.inf] * 3))
        side = lower if match["side"] == ">" else upper
        side["xyz".index(match["axis"])] = float(numbers(match["bound"], 1, "--keep")[0])
    return [KeepWithin(robot, body, tuple(lower), tuple(upper)) for body, (lower, upper) in bounds.items()]  # type: ignore[arg-type]


@contextmanager
def _watched(quiet: bool):  # type: ignore[no-untyped-def]
    """A line on standard error that tells the present criterion and the worst constraint."""
    if quiet:
        yield None
        return
    err = Console(stderr=True, highlight=False)
    with err.status("designing …") as status:

        def report(name: str, value: float, worst: float) -> None:
            text = f"{name} {value:.5g} within limits; worst constraint before repair {worst:+.4f} (share, or metres)"
            status.update(text)
            if is_verbose() and not err.is_terminal:
                print(text, file=sys.stderr)

        yield report


def _check_outputs(output: Path, plot: Path | None) -> None:
    """Refuse what could not be written before the search, not after it."""
    if output.suffix and output.suffix.lower() not in SUFFIXES:
        raise OptionError(f"{output}: trajectories are written as {', '.join(SUFFIXES)}, or a folder for a rosbag2")
    if not output.suffix and output.exists():
        raise OptionError(f"{output} is there already; remove it or choose another name for the bag")
    for path in (output, plot):
        if path is not None and not path.parent.is_dir():
            raise OptionError(f"{path}: no folder {path.parent}; make it first")


def _motion_before(robot: Robot, path: Path, step: float) -> tuple[Array, Array, Array]:
    """What was asked of the robot before: from a trajectory file, or from what a recording says was desired."""
    try:
        recording = read_npz(path) if path.suffix.lower() == ".npz" else None
    except DataError:
        recording = None  # a trajectory in NPZ, or a file that the reader of trajectories explains better
    if recording is None:
        before = read_trajectory(path, robot.dof_names)
        return before.sample(np.arange(0.0, before.duration, step))
    if recording.joints != robot.dof_names or not {"q_d", "qd_d", "qdd_d"} <= recording.more.keys():
        raise OptionError(
            f"{path} does not say what motion was asked of these joints; give the trajectory that was run"
        )
    return recording.more["q_d"], recording.more["qd_d"], recording.more["qdd_d"]


def _chosen_parameters(robot: Robot, only: str | None) -> list[str] | None:
    """Names of parameters, of bodies (all ten) and of joint properties (all joints), separated by commas."""
    if only is None:
        return None
    chosen: list[str] = []
    layout = robot.layout
    for name in names(only) or []:
        if name in layout.bodies:
            chosen += layout.names[layout.body(name)]
        elif name in layout.properties:
            chosen += layout.names[layout.block(name)]
        else:
            chosen.append(layout.names[layout.index(name)])
    return chosen


def _summary(robot: Robot, excitation: Excitation, written: list[str]) -> dict[str, Any]:
    return {
        "robot": robot.name,
        "criterion": excitation.criterion,
        "value": excitation.value,
        "figures": excitation.figures,
        "feasible": excitation.feasible,
        "interrupted": excitation.interrupted,
        "message": excitation.message,
        "evaluations": excitation.evaluations,
        "limits": [{"where": v.where, "amount": v.amount, "time": v.time} for v in excitation.violations],
        "notes": excitation.notes,
        "written": written,
    }


def _print_summary(robot: Robot, excitation: Excitation, written: list[str]) -> None:
    out = console()
    summary = f"{excitation.criterion} {number(excitation.value, 6)}; {excitation.message}"
    say(out, f"{robot.name}: {summary}")
    listed = ", ".join(f"{name} {number(value, 5)}" for name, value in excitation.figures.items())
    say(out, f"criteria of the unweighted base regressor: {listed}")
    for violation in excitation.violations:
        say(out, f"  {violation}")
    for note in excitation.notes:
        say(out, f"note: {note}")
    for path in written:
        say(out, f"wrote {path}")


def excite(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="Trajectory: .csv .mat .npz .yaml .db3")] = Path(
        "trajectory.csv"
    ),
    period: Annotated[float, typer.Option(help="Period, s.")] = 10.0,
    harmonics: Annotated[int, typer.Option(help="Harmonics of the Fourier series.")] = 5,
    criterion: Annotated[str, typer.Option(help="logdet, cond, a, e, or birdy (cond + 100/smallest).")] = "logdet",
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Make only these visible: parameters, bodies, joint properties.")
    ] = None,
    starts: Annotated[int, typer.Option(help="Random starts of the optimiser.", min=1, max=1000)] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the starts.", min=0)] = 0,
    margin: Annotated[float, typer.Option(help="Share of every limit that is left free.")] = 0.05,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="BODY:z>0.3", help="Keep a body on one side of a plane, in axes of the base."),
    ] = None,
    clearance: Annotated[float, typer.Option(help="Distance between geoms that could collide, m.", min=0.0)] = 0.01,
    collisions: Annotated[bool, typer.Option(help="Look for collisions.")] = True,
    start: Annotated[
        str | None, typer.Option(metavar="Q1,Q2,…|home", help="Begin and end the period in this pose.")
    ] = None,
    lead_in: Annotated[
        str | None, typer.Option(metavar="Q1,Q2,…|home", help="Come from this pose, and go back to it.")
    ] = None,
    periods: Annotated[int, typer.Option(help="How often the period is run.", min=1, max=10_000)] = 1,
    rate: Annotated[float, typer.Option(help="Samples a second of the written trajectory, Hz.")] = 100.0,
    after: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A trajectory or recording of before; the design adds what it lacks."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that share the starts.", min=1, max=256)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Plot of the joints against their limits, HTML.")] = None,
    lock: Lock = None,
    bodies: Bodies = None,
    friction: Friction = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Design a trajectory that makes every parameter visible, within the robot's limits.

    Ctrl-C ends the search and keeps the best so far. Boxes (--keep), floors and walls are in the axes of the base: with
    --mounting they tilt with it.

    Example: `steelyard excite panda --period 10 --harmonics 5 --criterion logdet --output traj.csv`
    """
    robot = robot_from(model, lock, bodies, friction, gravity, mounting)
    _check_outputs(output, plot)
    if not 0 < rate <= 1e5:
        raise OptionError(f"--rate is {rate:g} Hz; give a number above 0 and at most 100000")
    already = [_motion_before(robot, path, period / max(100, 20 * harmonics)) for path in after or []]
    boxes, distance = _boxes(robot, keep), clearance if collisions else None
    pose = None if start is None else robot.home if start == "home" else numbers(start, robot.n, "--start")
    with _watched(as_json or is_quiet()) as report:
        progress: Progress | None = report
        excitation = design_excitation(
            robot,
            period=period,
            harmonics=harmonics,
            criterion=criterion,
            seed=seed,
            starts=starts,
            rate_hz=rate,
            margin=margin,
            start=pose,
            only=_chosen_parameters(robot, only),
            keep=boxes,
            clearance=distance,
            already=already,
            workers=workers,
            progress=progress,
        )
    if lead_in is None:
        trajectory = repeat(excitation.trajectory, periods)
    else:
        pose = robot.home if lead_in == "home" else numbers(lead_in, robot.n, "--lead-in")
        trajectory = lead_in_and_out(robot, excitation.trajectory, pose, margin, boxes, distance, periods)
    samples = samples_of(trajectory, rate)
    tau = inverse_dynamics(robot, samples.q, *samples.sample(samples.t)[1:])
    written = [str(write_trajectory(output, trajectory, rate_hz=rate, tau=tau))]
    if plot is not None:
        write_excitation_plot(robot, excitation, plot)
        written.append(str(plot))
    if as_json:
        print_json(_summary(robot, excitation, written))
    else:
        _print_summary(robot, excitation, written)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(excite)
