"""The command that watches a robot, or a recording of one, while it works."""

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..data.dds import Network
from ..data.live import TOPIC, JointStateReader
from ..data.load import load_recording
from ..errors import DataError, OptionError
from ..identification.online.watching import Event, Watch, WatchState, as_json, friction, load, observe, watch
from ..robot.robot import Robot
from .options import AsJson, Lock, Model, names, robot_from
from .output import add_row, console, number, plain, print_json, say, table
from .record import Domain, Interface, Topic, ended_by_signals

Array = NDArray[np.float64]
Instant = tuple[float, Array, Array]
_REDRAWN_S = 0.25


def _replayed(path: Path, mapping: Path | None, robot: Robot, speed: float, stopped: list[bool]) -> Iterator[Instant]:
    """The samples of a file, at `speed` times the pace they were recorded at; 0 is as fast as it goes."""
    recording = load_recording(path, robot, mapping)
    begun, first = time.monotonic(), float(recording.t[0])
    for t, q, tau in zip(recording.t, recording.q, recording.tau, strict=True):
        if stopped[0]:
            return
        if speed > 0:
            ahead = (float(t) - first) / speed - (time.monotonic() - begun)
            if ahead > 0.002:
                time.sleep(ahead)
        yield float(t), q, tau


def _live(reader: JointStateReader, seconds: float | None) -> Iterator[Instant]:
    for sample in reader.samples(seconds):
        if sample.tau is None:
            raise DataError("the robot sends no efforts; a load cannot be told from positions alone")
        yield sample.t, sample.q, sample.tau


_FIRST = 100  # samples that tell the rate


def _fast_enough(samples: Iterable[Instant], cutoff: float) -> Iterator[Instant]:
    """The samples, refused where they come too seldom for a filter of this cut-off."""
    steps: list[float] = []
    last: float | None = None
    for t, q, tau in samples:
        if last is not None and len(steps) < _FIRST:
            steps.append(t - last)
            if len(steps) == _FIRST and not cutoff * sorted(steps)[_FIRST // 2] < 0.5:
                rate = 1.0 / max(sorted(steps)[_FIRST // 2], 1e-9)
                raise OptionError(
                    f"--cutoff {cutoff:g} Hz is no filter of {rate:.4g} samples a second; give less than half of that"
                )
        last = t
        yield t, q, tau


def _interval(value: float, low: float, high: float) -> str:
    return f"{number(value)} ({number(low)} … {number(high)})"


def _screen(state: WatchState, t: float, events: list[Event], behind: float) -> Group:
    """What people see while a robot works."""
    now = load(state)
    left = state.plan.settings.learn - (t - state.begun)
    lead = Text(f"{t:9.2f} s   ")
    lead.append(
        f"learning, {left:.1f} s more" if left > 0 else f"load {_interval(now.mass, now.low, now.high)} kg", "bold"
    )
    if behind > 0.1:
        lead.append(f"   {behind:.1f} s behind", "red")
    value, deviation = friction(state)
    made: Table = table(None, "joint", "friction N·m", "±", "at the start", right=("friction N·m", "±", "at the start"))
    for j, name in enumerate(state.plan.robot.dof_names):
        first = math.nan if state.settled_friction is None else state.settled_friction[0][j]
        add_row(made, name, number(value[j], 3), number(2 * deviation[j], 2), number(first, 3))
    return Group(lead, made, *(Text(_line(event)) for event in events[-8:]))


def _line(event: Event) -> str:
    size = f"{event.what}, {_interval(event.mass, event.low, event.high)}"
    return f"{event.t:9.2f} s  {event.kind}: {size}" + ("" if event.kind == "friction" else " kg")


@contextmanager
def _shown(silent: bool) -> Iterator[Callable[[Group], None] | None]:
    """A picture that is redrawn on a terminal; nothing where nobody looks."""
    err = Console(stderr=True, highlight=False)
    if silent or not err.is_terminal:
        yield None
        return
    with Live(console=err, refresh_per_second=1 / _REDRAWN_S, transient=True) as picture:
        yield picture.update


def _write(file: IO[str] | None, line: dict[str, Any]) -> None:
    if file is not None:
        file.write(json.dumps(plain(line), ensure_ascii=False) + "\n")
        file.flush()


def _follow(
    state: WatchState,
    samples: Iterator[Instant],
    file: IO[str] | None,
    show: Callable[[Group], None] | None,
    tell: Callable[[str], None] | None,
    pace: float,
) -> tuple[WatchState, list[Event], dict[str, float]]:
    """Watch until the samples end; each event goes into the file as soon as it is found."""
    events: list[Event] = []
    begun, drawn, spent, worst, t, first = time.monotonic(), -math.inf, 0.0, 0.0, math.nan, math.nan
    for t, q, tau in samples:
        first = t if math.isnan(first) else first
        before = time.perf_counter()
        state, news = observe(state, t, q, tau)
        took = time.perf_counter() - before
        spent, worst = spent + took, max(worst, took)
        for event in news:
            _write(file, as_json(event))
            if tell is not None and show is None:
                tell(_line(event))
        events += news
        clock = time.monotonic()
        if show is not None and clock - drawn > _REDRAWN_S:
            behind = (clock - begun) - (t - first) / pace if pace > 0 else 0.0
            show(_screen(state, t, events, behind))
            drawn = clock
    figures = {"seconds": 0.0 if math.isnan(t) else t - first, "busy_s": spent, "longest_step_s": worst}
    return state, events, figures


def _summary(state: WatchState, events: list[Event], figures: dict[str, float]) -> dict[str, Any]:
    now = load(state)
    value, deviation = friction(state)
    joints = state.plan.robot.dof_names
    return {
        "robot": state.plan.robot.name,
        "samples": state.samples,
        **figures,
        "load": {"body": state.plan.body, "mass_kg": now.mass, "interval_kg": [now.low, now.high], "com_m": now.com},
        "friction": {name: {"value": value[j], "deviation": deviation[j]} for j, name in enumerate(joints)},
        "events": [as_json(event) for event in events],
    }


def watch_command(
    model: Model,
    recording: Annotated[
        Path | None, typer.Argument(help="A recording to replay; none: listen to the running robot.")
    ] = None,
    speed: Annotated[float, typer.Option(help="Pace of the replay; 0: as fast as it goes.", min=0.0)] = 0.0,
    mapping: Annotated[Path | None, typer.Option(help="YAML that says what the columns of a foreign file are.")] = None,
    events: Annotated[
        Path | None, typer.Option(help="Write events here, a line of JSON each, as they are found.")
    ] = None,
    body: Annotated[str | None, typer.Option(help="Body that carries the load; default: the last one.")] = None,
    heaviest: Annotated[float, typer.Option(help="Largest load that is thought of, kg.")] = 10.0,
    lightest: Annotated[float, typer.Option(help="Smallest change that is worth an event, kg.")] = 0.1,
    learn: Annotated[float, typer.Option(help="Seconds at the start in which the robot is learned as it is.")] = 3.0,
    cutoff: Annotated[float, typer.Option(help="Of the filter that positions and torques pass, Hz.")] = 8.0,
    joints: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Names as published, where the model has others.")
    ] = None,
    topic: Topic = TOPIC,
    domain: Domain = None,
    interface: Interface = None,
    seconds: Annotated[float | None, typer.Option(help="How long to listen; default: until ctrl-C.", min=0.001)] = None,
    best_effort: Annotated[bool, typer.Option("--best-effort", help="For a robot that sends best effort.")] = False,
    lock: Lock = None,
    as_json_: AsJson = False,
) -> None:
    """Watch a robot while it works: what it carries, loads picked up and put down, friction that drifts.

    The load is counted from how the robot begins. Example: `steelyard watch panda run.npz --events events.jsonl`
    """
    from ..identification.online.rates import CausalRates

    robot = robot_from(model, lock)
    settings = Watch(
        body=body, heaviest=heaviest, lightest=lightest, learn=learn, settle=max(10.0, learn), rates=CausalRates(cutoff)
    )
    state = watch(robot, settings)
    if events is not None and not events.parent.is_dir():
        raise OptionError(f"{events}: no folder {events.parent}; make it first")
    silent, out = as_json_ or os.environ.get("STEELYARD_QUIET") == "1", console()
    with ExitStack() as open_:
        stopped = [False]
        if recording is not None:
            open_.enter_context(ended_by_signals(lambda: stopped.__setitem__(0, True)))
            samples = _replayed(recording, mapping, robot, speed, stopped)
        else:
            asked = tuple(names(joints) or robot.dof_names)
            if len(asked) != robot.n:
                raise OptionError(f"--joints has {len(asked)} names, {model} has {robot.n} joints")
            network = Network(domain, interface)
            reader = open_.enter_context(JointStateReader(asked, topic, network, best_effort))
            open_.enter_context(ended_by_signals(reader.stop))
            samples = _live(reader, seconds)
        file = None if events is None else open_.enter_context(events.open("w", encoding="utf-8"))
        show = open_.enter_context(_shown(silent))
        tell = None if silent else (lambda line: say(out, line))
        state, found, figures = _follow(
            state, _fast_enough(samples, cutoff), file, show, tell, 1.0 if recording is None else speed
        )
    if as_json_:
        print_json(_summary(state, found, figures))
        return
    now = load(state)
    if show is not None:
        for event in found:
            say(out, _line(event))
    say(out, f"{state.samples} samples, {figures['seconds']:.2f} s; {figures['busy_s']:.2f} s of work")
    said = f"load on {state.plan.body}: {_interval(now.mass, now.low, now.high)} kg, counted from the start"
    if now.low == now.high:
        said = f"no load told on {state.plan.body}: it stayed below {lightest:g} kg, or below what the motion shows"
    say(out, said if figures["seconds"] > learn else f"too short to tell a load: {learn:g} s are needed to learn")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("watch")(watch_command)
