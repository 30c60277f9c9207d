"""The command that predicts torques by what was identified."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..data.load import load_recording
from ..data.recording import Recording, save_recording
from ..evaluation.validation import validate
from ..files import checked_output
from ..identification.identify import prepare
from ..identification.result_file import SavedResult, plain, read_result
from .identify_options import load_of
from .identify_print import print_scores
from .options import AsJson, MappingOption, Repair
from .output import console, print_json, say


def _load_result(path: Path, out: Console | None) -> SavedResult:
    saved = read_result(path)
    for note in saved.notes:
        if out is not None:
            say(out, f"note: {note}")
    return saved


def predict_command(
    result: Annotated[Path, typer.Argument(help="What `steelyard identify --output` wrote.")],
    recording: Annotated[Path, typer.Argument(help="The recording whose torques are to be predicted.")],
    mapping: MappingOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Measured and predicted torques, .csv or .npz.")
    ] = None,
    load: Annotated[
        str | None, typer.Option("--load", metavar="BODY:KG,X,Y,Z[,…]", help="What the robot carried, if anything.")
    ] = None,
    repair: Repair = False,
    as_json: AsJson = False,
) -> None:
    """Predict the torques of a recording by an identified model, and compare them with what was measured.

    Example: `steelyard predict result.yaml other.csv --output predicted.csv`
    """
    out = console()
    saved = _load_result(result, None if as_json else out)
    found = saved.estimate
    robot = found.model.robot
    if output is not None:
        checked_output(output, (".csv", ".npz"))
    carried = None if load is None else load_of(load)
    given = load_recording(recording, robot, mapping, repair=repair)
    ready = prepare(given, robot)
    judged = validate(robot, found, ready, preprocessing=None, load=carried)
    if output is not None:
        predicted = found.torque(ready, carried)
        more = {"tau_predicted": predicted, "tau_residual": ready.tau - predicted}
        save_recording(Recording(ready.t, ready.q, ready.tau, ready.qd, ready.qdd, ready.joints, more), output)
    if as_json:
        print_json({**plain(asdict(judged)), "written": None if output is None else str(output)})
        return
    print_scores(out, f"torque of {recording.name}, N·m (N)", {found.method: judged})
    say(out, judged.verdict.replace("held-out data", "this recording"))
    if output is not None:
        say(out, f"wrote {output}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict_command)
