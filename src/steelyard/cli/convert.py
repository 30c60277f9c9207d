"""The command that turns a recording of any format into one of ours."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from ..data.load import load_recording
from ..data.recording import save_recording
from ..errors import OptionError
from ..robot.load import load_robot
from .options import AsJson
from .output import console, print_json, say

MappingFile = Annotated[
    Path | None, typer.Option("--mapping", metavar="FILE", help="What the recording does not say of itself, in YAML.")
]
Topic = Annotated[str | None, typer.Option("--topic", help="Topic of joint states, where a bag has several.")]
Repair = Annotated[bool, typer.Option("--repair", help="Drop rows with faults, and say so, instead of refusing them.")]


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A sign of life on a terminal's standard error while a recording is read."""
    err = Console(stderr=True, highlight=False)
    if not err.is_terminal or os.environ.get("STEELYARD_QUIET") == "1":
        yield
        return
    with err.status(escape(f"reading {path} …")):
        yield


def convert_command(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            help="CSV, NPZ, MAT, Parquet, a ROS bag, or a folder of the files that a mapping names.",
        ),
    ],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="What to write: .npz or .csv.")],
    mapping: MappingFile = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Robot whose joints these are, in its order.")
    ] = None,
    topic: Topic = None,
    repair: Repair = False,
    as_json: AsJson = False,
) -> None:
    """Read a recording, in SI on the joints' side, and write it as NPZ or CSV.

    Example: `steelyard convert run_folder run.npz --mapping tx40.yaml --model tx40`
    """
    if output.suffix.lower() not in (".npz", ".csv"):
        raise OptionError(f"{output}: recordings are written as .npz or .csv")
    robot = None if model is None else load_robot(model)
    with reading(recording):
        run = load_recording(recording, robot, mapping, topic=topic, repair=repair)
    save_recording(run, output)
    channels = [name for name in ("q", "qd", "qdd", "tau") if getattr(run, name) is not None] + list(run.more)
    summary = {
        "samples": len(run),
        "seconds": run.duration,
        "rate_hz": run.rate_hz,
        "joints": run.joints,
        "channels": channels,
        "about": dict(run.about),
        "written": str(output),
    }
    if as_json:
        print_json(summary)
        return
    out = console()
    say(out, f"{len(run)} samples at {run.rate_hz:.6g} Hz, {run.duration:.2f} s: {', '.join(channels)}")
    say(out, f"joints: {', '.join(run.joints)}")
    for kind in ("repairs", "notes"):
        for text in run.about.get(kind, ()):
            say(out, text)
    if unused := run.about.get("unused_columns"):
        say(out, f"columns not used: {', '.join(unused)}")
    say(out, f"wrote {output}")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("convert")(convert_command)
