"""The command that says what a recording is worth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ..data.findings import Finding, QualityReport
from ..data.load import load_recording
from ..data.quality import inspect_recording
from ..data.recording import Recording
from .convert import MappingFile, Topic, reading
from .options import AsJson, Gravity, Lock, Mounting, robot_from
from .output import add_row, console, number, print_json, say, table

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
# A column of the table: its title, the measure, and what its numbers are multiplied by.
_COLUMNS = (
    ("motion up to, Hz", "motion_hz", 1.0),
    ("position noise, mrad", "position_noise", 1e3),
    ("torque noise, N·m", "torque_noise", 1.0),
    ("left by a rigid model, N·m", "torque_residual", 1.0),
    ("%", "torque_residual_share", 100.0),
    ("torque / model's", "torque_scale", 1.0),
)


def _line(finding: Finding) -> str:
    text = f"{finding.joint}: {finding.text}" if finding.joint else finding.text
    if finding.seconds is not None and finding.what != "standstill":
        a, b = finding.seconds
        text += f" (at {a:.4g} s)" if b - a < 1e-3 else f" (between {a:.4g} and {b:.4g} s)"
    return text


def _sums(measures: Mapping[str, Any]) -> list[str]:
    """The numbers that are one for the whole robot, a sentence each."""
    lines = []
    if measures.get("standstill_share"):
        lines.append(f"standstill: {100 * measures['standstill_share']:.3g} % of the time")
    if "condition" in measures:
        lines.append(
            f"excitation: condition number {measures['condition']:.3g} of {measures['base_parameters']:.0f} base "
            f"parameters, columns of length one; {measures['independent_rows']} independent rows"
        )
    if measures.get("gravity_angle_degrees") is not None:
        a, da = measures["gravity_angle_degrees"], measures["gravity_angle_deviation_degrees"]
        lines.append(f"gravity that fits best: {a:.2g} ± {da:.2g}° from the model's")
    if measures.get("torque_delay_s") is not None:
        late, sigma = 1e3 * measures["torque_delay_s"], 1e3 * measures["torque_delay_deviation_s"]
        lines.append(f"torque behind the motion: {late:.2g} ± {2 * sigma:.1g} ms")
    return lines


def _print(report: QualityReport, recording: Recording, name: str) -> None:
    out = console()
    style = _STYLES["error"] if not report.fit else ("green" if report.verdict == "good" else _STYLES["warning"])
    say(out, report.verdict, f"[{style}]{escape(name)}:[/] ")
    has = [label for label in ("q", "qd", "qdd", "tau") if getattr(recording, label) is not None]
    rate = f"{report.rate_hz:.6g} Hz" if report.samples > 1 else "no rate"
    say(out, f"{report.samples} rows, {report.seconds:.4g} s at {rate}, {len(report.joints)} joints, {', '.join(has)}")
    for finding in report.findings:
        say(out, _line(finding), f"[{_STYLES[finding.severity]}]{finding.severity:8}[/]")
        if finding.remedy:
            say(out, f"        → {finding.remedy}")
    for line in _sums(report.measures):
        say(out, line)
    columns = [(title, report.measures[key], by) for title, key, by in _COLUMNS if key in report.measures]
    if columns:
        made = table(None, "joint", *(title for title, *_ in columns), right=tuple(title for title, *_ in columns))
        for j, joint in enumerate(report.joints):
            cells = [number(float("nan") if x[j] is None else by * x[j], 3) for _, x, by in columns]
            add_row(made, joint, *cells)
        out.print(made)


def inspect_command(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            help="CSV, NPZ, MAT, Parquet, a ROS bag, or a folder of the files that a mapping names.",
        ),
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Robot that was recorded: a library robot, MJCF, URDF or DH.")
    ] = None,
    mapping: MappingFile = None,
    topic: Topic = None,
    lock: Lock = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Say what a recording is worth before anything is computed from it; faults are found, none is an error here.

    Example: `steelyard inspect run.csv --model panda`
    """
    robot = None if model is None else robot_from(model, lock, gravity=gravity, mounting=mounting)
    with reading(recording):
        run = load_recording(recording, robot, mapping, topic=topic, repair=True)
        report = inspect_recording(run, robot)
    if as_json:
        print_json(report.as_dict())
    else:
        _print(report, run, recording.name)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("inspect")(inspect_command)
