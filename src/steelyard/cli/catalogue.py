"""All commands by stage, each with its module: `steelyard --help` needs none of them, a command only its own."""

import os
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from .sanity import check_sane


class Entry(NamedTuple):
    """A command, before its module is imported."""

    name: str
    module: str  # in this folder; its `register(app)` adds the command
    summary: str


STAGES: dict[str, tuple[Entry, ...]] = {
    "Start here": (
        Entry("demo", "run", "Show the whole of it on a robot whose truth is known."),
        Entry("run", "run", "Do a whole study from one YAML file."),
        Entry("robots", "models", "List the robots that come with Steelyard."),
        Entry("textbook", "textbook", "The exercises of a textbook chapter, and where it errs."),
    ),
    "Models": (
        Entry("info", "models", "Bodies, joints, limits, parameters and base parameters of a model."),
        Entry("check", "models", "Our dynamics of a model against MuJoCo's and the laws of mechanics."),
        Entry("compare", "models", "Two models joint by joint, and where they part."),
        Entry("export", "models", "Write a model as MJCF or URDF."),
        Entry("gear", "gear", "Reflected inertia, optimal ratio and resonance of motor, gear and load."),
    ),
    "Experiments": (
        Entry("excite", "excite", "Design the motion that makes every parameter visible."),
        Entry("simulate", "simulate", "Simulate the experiment: control, friction, noise, flexible joints."),
        Entry("rig", "rig", "Let MuJoCo be the robot, and publish what a robot would."),
        Entry("record", "record", "Record a running robot (ROS 2 over DDS, without ROS)."),
    ),
    "Recordings": (
        Entry("inspect", "inspect", "Say what a recording is worth before anything is computed from it."),
        Entry("convert", "convert", "Read a recording of any format and write it as NPZ or CSV."),
    ),
    "Identification": (
        Entry("identify", "identify", "Identify a robot's dynamics, and say whether to trust the result."),
        Entry("predict", "predict", "Predict the torques of another recording by an identified model."),
        Entry("report", "report", "One HTML page of a result: verdict, torques, parameters, residuals, 3-D."),
        Entry("compare-results", "report", "Two results: which parameters agree, and which predicts better."),
        Entry("payload", "payload", "Mass, centre of mass and inertia of what a robot carries."),
        Entry("watch", "watch", "Watch a robot while it works: loads, friction that drifts."),
        Entry("com", "com", "Mass and centre of mass of a wheel-legged robot from poses."),
        Entry("benchmark", "benchmark", "Set estimators against each other, thousands of runs in one table."),
    ),
    "Use": (
        Entry("friction", "friction", "Friction laws of joints from points or recordings, and how sure they are."),
        Entry("compensate", "compensate", "What each way to compensate friction does to tracking, simulated."),
        Entry("adapt", "adapt", "Adaptive control with an unknown load: does it track, and is what it learns right?"),
        Entry("flexible", "flexible", "Control of flexible joints: poles, damping, margin, and the simulated motion."),
        Entry("touch", "touch", "Find contacts in a recording by the robot's momentum, and the force at the tool."),
    ),
}  # fmt: skip
ENTRIES = {entry.name: entry for stage in STAGES.values() for entry in stage}


def _stub(entry: Entry, stage: str) -> TyperCommand:
    """What the list of commands shows of one."""
    return TyperCommand(entry.name, help=entry.summary, rich_help_panel=stage, rich_markup_mode="markdown")


_PANEL = "Any command"


def _note(variable: str) -> Callable[[bool], None]:
    """What a switch of any command does: it goes to the environment, for worker processes too."""

    def note(asked: bool) -> None:
        if asked:
            os.environ[variable] = "1"

    return note


def _any_command(
    quiet: bool = typer.Option(
        False, "--quiet", "-q", callback=_note("STEELYARD_QUIET"), rich_help_panel=_PANEL, help="Only the result."
    ),
    verbose: bool = typer.Option(
        False, "--verbose", "-v", callback=_note("STEELYARD_VERBOSE"), rich_help_panel=_PANEL,
        help="Say on standard error what is being done.",
    ),
) -> None: ...  # fmt: skip


def _switches() -> list[Any]:
    own = typer.Typer(add_completion=False)
    own.command()(_any_command)
    options = [param for param in typer.main.get_command(own).params if param.name in ("quiet", "verbose")]
    for option in options:
        option.expose_value = False
    return options


def _with_sane_numbers(command: Any) -> Callable[..., Any]:
    """The command's function, which no number reaches that is of no robot: it would overflow somewhere inside."""
    called = {param.name: max(param.opts, key=len) for param in command.params}
    act = command.callback

    @wraps(act)
    def run(**values: Any) -> Any:
        for name, value in values.items():
            for number in value if isinstance(value, list | tuple) else (value,):
                if isinstance(number, float):
                    check_sane(number, called.get(name, name))
        return act(**values)

    return run


def load(name: str) -> Any:
    """The command itself, with the switches that every command takes."""
    own = typer.Typer(rich_markup_mode="markdown", add_completion=False, callback=lambda: None)
    import_module(f".{ENTRIES[name].module}", __package__).register(own)
    command = typer.main.get_group(own).commands[name]
    command.callback = _with_sane_numbers(command)
    command.params += _switches()
    return command


class Catalogue(TyperGroup):
    """A group whose commands are imported when they are called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {entry.name: _stub(entry, stage) for stage, entries in STAGES.items() for entry in entries}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, None if stub is None or name is None else load(name), rest
