"""The commands that identify a robot from its recordings and that predict torques by what was found."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from ..data.decimation import Decimation
from ..data.filters import Butterworth
from ..data.gears import gear_of
from ..data.load import load_recording
from ..data.preprocess import default_steps
from ..data.recording import Recording, save_recording
from ..errors import OptionError
from ..evaluation.saved_study import KEY, inputs_of
from ..evaluation.study import Fold, Outcome, Plan, cross_validate, run_study
from ..evaluation.truth import Truth, compare_with_truth
from ..evaluation.validation import Validation, validate
from ..files import checked_output
from ..identification.estimators import ESTIMATORS, ON_REQUEST, estimator_named
from ..identification.estimators.physical import Physical
from ..identification.fit import Estimator
from ..identification.identify import terms_named
from ..identification.result_file import SavedResult, plain, read_result, save_result
from ..identification.selection import essential_parameters
from ..identification.terms import TERMS, couplings
from ..robot.export import FORMATS, export_model
from ..robot.robot import Robot
from .options import AsJson, Bodies, Gravity, Lock, Mounting, names, numbers, robot_from
from .output import add_row, console, number, print_json, say, table
from .progress import reporting

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="A library robot (see `steelyard robots`), or an MJCF, URDF or DH file.")
]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="YAML that says what the columns of a foreign file are.")
]
Repair = Annotated[bool, typer.Option("--repair", help="Drop rows with faults and say so; they are errors otherwise.")]
_ALGORITHMS = f"One or several of {', '.join(ESTIMATORS)}; all: each but {', '.join(ON_REQUEST)}."
_SIDE_BY_SIDE = 3  # methods that fit beside each other
_SHOWN = 14  # rows of the parameter table on a screen


def _methods(text: str) -> tuple[Estimator, ...]:
    if text.strip().lower() == "all":
        return tuple(estimator_named(name) for name in ESTIMATORS if name not in ON_REQUEST)
    asked = names(text) or []
    if not asked:
        raise OptionError(f"no algorithm was named; valid: {', '.join(ESTIMATORS)}, or all")
    return tuple(estimator_named(name) for name in asked)


def _decimation(text: str, cutoff_hz: float | None) -> Decimation | str | None:
    if text == "auto" and cutoff_hz is None:
        return "auto"
    if text == "none":
        return None
    try:
        factor = 1 if text == "auto" else int(text)
    except ValueError:
        raise OptionError(f"--decimate takes auto, none or a whole number, not '{text}'") from None
    if cutoff_hz is None:
        raise OptionError("--decimate with a number needs the cut-off of its low-pass too: --decimation-cutoff HZ")
    return Decimation(cutoff_hz, factor)


def _fixed(texts: list[str] | None) -> dict[str, float]:
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        try:
            values[name.strip()] = float(value)
        except ValueError:
            raise OptionError(f"--fix takes NAME=VALUE as link7.m=0.73, not '{text}'") from None
        if not equals:
            raise OptionError(f"--fix takes NAME=VALUE as link7.m=0.73, not '{text}'")
    return values


def _steps(choice: str, cutoff_hz: float | None) -> Any:
    if choice == "none":
        if cutoff_hz is not None:
            raise OptionError("--cutoff filters, and --preprocessing none does not; choose one")
        return None
    if choice != "auto":
        raise OptionError(f"--preprocessing is auto or none, not '{choice}'")
    return "auto" if cutoff_hz is None else _Cut(cutoff_hz)


class _Cut:
    """The usual steps with a cut-off of the user's, made for each recording."""

    def __init__(self, cutoff_hz: float) -> None:
        self.cutoff_hz = cutoff_hz

    def __call__(self, recording: Recording, robot: Robot) -> tuple:
        usual = default_steps(recording, robot)
        return tuple(Butterworth(cutoff_hz=self.cutoff_hz) if isinstance(s, Butterworth) else s for s in usual)


def _print_scores(out: Console, title: str, scores: dict[str, Validation]) -> None:
    first = next(iter(scores.values()))
    say(out, f"{title}: RMSE (largest)")
    relative = {"nominal": first.nominal_relative, **{method: s.relative for method, s in scores.items()}}
    cells = {
        "nominal": [f"{number(j.nominal_rmse, 3)} ({number(j.nominal_largest, 3)})" for j in first.joints],
        **{m: [f"{number(j.rmse, 3)} ({number(j.largest, 3)})" for j in s.joints] for m, s in scores.items()},
    }
    joints = [joint.joint for joint in first.joints]
    if len(scores) <= _SIDE_BY_SIDE:
        made = table(None, "joint", *cells, right=tuple(cells))
        for k, joint in enumerate(joints):
            add_row(made, joint, *(column[k] for column in cells.values()))
        add_row(made, "all, relative", *(f"{100 * x:.2f} %" for x in relative.values()))
    else:
        made = table(None, "method", "relative", *joints, right=("relative", *joints))
        for method, row in cells.items():
            add_row(made, method, f"{100 * relative[method]:.2f} %", *row)
    out.print(made)


def _print_parameters(out: Console, outcome: Outcome, whole: bool) -> None:
    found = outcome.estimate
    order = np.argsort(found.base_relative) if not whole else np.arange(len(found.base_names))
    nominal = found.model.base.reduce(found.nominal)
    say(out, f"base parameters by {found.method}" + ("" if whole else ", the surest first"))
    made = table(
        None,
        "parameter", "value", "± deviation", "%", "nominal",
        right=("value", "± deviation", "%", "nominal"),
    )  # fmt: skip
    short = found.model.base.short_names
    for k in order if whole else order[:_SHOWN]:
        add_row(
            made,
            short[k],
            number(found.base_parameters[k]),
            number(found.base_deviation[k], 2),
            number(found.base_relative[k], 2),
            number(nominal[k]),
        )
    out.print(made)
    if not whole and len(order) > _SHOWN:
        unsure = int((found.base_relative > 30).sum())
        say(out, f"… and {len(order) - _SHOWN} more (--all-parameters), {unsure} of them less sure than 30 %")


def _print_truth(out: Console, truth: Truth) -> None:
    say(
        out,
        f"against the truth that the simulation knew: {truth.inside} of {truth.count} base parameters within their "
        f"95 % intervals; error {100 * truth.relative_error:.2g} % (nominal model {100 * truth.nominal_error:.2g} %)",
    )


def _print_outcome(out: Console, outcome: Outcome, truth: Truth | None, whole: bool) -> None:
    data = outcome.problem.data_set
    for note in outcome.notes:
        say(out, note)
    nominal = outcome.nominal
    say(
        out,
        f"{data.rows} torques, {data.rank} of {data.base_rank} base parameters shown, condition {data.condition:.3g}; "
        f"the model as it is explains the recorded torque to {100 * nominal.nominal_relative:.1f} %",
    )
    norms = data.column_norms
    least, most = min(norms, key=norms.__getitem__), max(norms, key=norms.__getitem__)
    say(out, f"column norms from {number(norms[least], 3)} ({least}) to {number(norms[most], 3)} ({most})")
    for direction in data.blind[:5]:
        say(out, f"not shown by the data: {direction}")
    if outcome.validations:
        _print_scores(out, f"torque on {outcome.held_out}, N·m (N)", dict(outcome.validations))
    _print_parameters(out, outcome, whole)
    for method, why in outcome.failures.items():
        say(out, f"{method} failed: {why}")
    for method, found in outcome.estimates.items():
        if not found.converged:
            say(out, f"{method} did not converge: {found.message}")
    if truth is not None:
        _print_truth(out, truth)
    out.print()
    say(out, outcome.verdict, "[bold]verdict[/bold]: ")


def summary_of(outcome: Outcome, truth: Truth | None) -> dict[str, Any]:
    """An outcome as a mapping, for result files and machines."""
    return {
        "verdict": outcome.verdict,
        "best": outcome.best,
        "held_out": outcome.held_out,
        "notes": list(outcome.notes),
        "nominal_on_training_data": asdict(outcome.nominal),
        "validation": {name: asdict(score) for name, score in outcome.validations.items()},
        "methods": {
            name: {
                "converged": found.converged,
                "message": found.message,
                "iterations": found.iterations,
                "seconds": found.seconds,
                "feasible": not found.invalid,
            }
            for name, found in outcome.estimates.items()
        },
        "failures": dict(outcome.failures),
        "truth": None if truth is None else asdict(truth),
        "command": " ".join(sys.argv[1:]),
    }


def identify_command(
    recordings: Annotated[list[Path], typer.Argument(help="Recordings: CSV, NPZ, MAT, Parquet or ROS bags.")],
    model: ModelOption,
    mapping: MappingOption = None,
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            "-a",
            help=_ALGORITHMS,
        ),
    ] = "WLS",
    physical: Annotated[
        bool, typer.Option("--physical", help="Parameters that real bodies can have, on top of each algorithm.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Result, .yaml.")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="The model with these parameters: .xml, .mjcf or .urdf.")
    ] = None,
    report_to: Annotated[
        Path | None, typer.Option("--report", help="What was found, as one HTML page with plots and the robot in 3-D.")
    ] = None,
    validate_on: Annotated[
        list[Path] | None, typer.Option("--validate", help="Judge on this recording; default: the end of the motion.")
    ] = None,
    train_share: Annotated[float, typer.Option(help="Share of the motion to learn from; the rest judges.")] = 0.8,
    friction: Annotated[
        str, typer.Option("--friction", metavar="TERMS", help="coulomb,offset or none; auto: what the data call for.")
    ] = "auto",
    terms: Annotated[
        str | None, typer.Option("--terms", metavar="TERMS", help=f"Further columns: {', '.join(TERMS)}.")
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option("--fix", metavar="NAME=VALUE", help="A parameter whose value is known.")
    ] = None,
    preprocessing: Annotated[str, typer.Option(help="auto, or none (the recording has good qd and qdd).")] = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Cut-off of the low-pass on positions, Hz.")] = None,
    decimate: Annotated[
        str, typer.Option(help="Keep every n-th row after a low-pass on regressor and torque: auto, none or n.")
    ] = "auto",
    decimation_cutoff: Annotated[float | None, typer.Option(help="Cut-off of that low-pass, Hz.")] = None,
    delay: Annotated[
        str, typer.Option(metavar="SECONDS", help="How much later than the motion the torque is recorded; or auto.")
    ] = "auto",
    folds: Annotated[int, typer.Option(help="Cross-validate on so many pieces in time, too.", min=0)] = 0,
    repair: Repair = False,
    all_parameters: Annotated[bool, typer.Option("--all-parameters", help="Print all base parameters.")] = False,
    lock: Lock = None,
    bodies: Bodies = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    as_json: AsJson = False,
) -> None:
    """Identify a robot's dynamics from what it did, and say whether to trust the result.

    Example: `steelyard identify run.csv --model panda --algorithm WLS --physical --output result.yaml`
    """
    auto = friction.strip() == "auto"
    robot = robot_from(model, lock, bodies, None if auto else friction, gravity, mounting)
    methods = _methods(algorithm)
    if physical:
        methods = tuple(Physical(inner=method) for method in methods)
    outputs = ((output, (".yaml", ".yml")), (export, tuple(FORMATS)), (report_to, (".html", ".htm")))
    for path, suffixes in outputs:
        if path is not None:
            checked_output(path, suffixes)
    gear = gear_of(robot, mapping)
    plan = Plan(
        methods=methods,
        terms=(*terms_named(names(terms) or []), *couplings(gear)),
        delay=delay if delay == "auto" else float(numbers(delay, 1, "--delay")[0]),
        fixed=_fixed(fix),
        preprocessing=_steps(preprocessing, cutoff),
        decimation=_decimation(decimate, decimation_cutoff),
        train_share=train_share,
        choose_friction=auto,
    )
    with reporting() as report:
        given = [load_recording(path, robot, mapping, repair=repair) for path in recordings]
        judged = [load_recording(path, robot, mapping, repair=repair) for path in validate_on or ()]
        outcome = run_study(robot, given, plan, judged, report)
        pieces: tuple[Fold, ...] = ()
        if folds:
            best = next(method for method in methods if method.name == outcome.best)
            pieces = cross_validate(outcome.robot, given, best, folds, plan, report)
    truth = compare_with_truth(outcome.estimate, given[0])
    essential = essential_parameters(outcome.problem, outcome.estimate)
    folder = Path.cwd() if output is None else output.parent
    summary = {
        **summary_of(outcome, truth),
        KEY: inputs_of(outcome, recordings, validate_on or (), train_share, repair, folder),
        "essential": asdict(essential),
        "cross_validation": [asdict(piece) for piece in pieces],
    }
    written = []
    if output is not None:
        save_result(outcome.estimate, output, summary)
        written.append(str(output))
    notes: tuple[str, ...] = ()
    if export is not None:
        notes = export_model(outcome.estimate.robot, export)
        written.append(str(export))
    if report_to is not None:
        from ..report.identification import write_report

        write_report(outcome, report_to, truth=truth, command=str(summary["command"]))
        written.append(str(report_to))
    if as_json:
        found = outcome.estimate
        sure = zip(found.base_parameters, found.base_deviation, strict=True)
        base = {
            name: {"value": value, "deviation": deviation}
            for name, (value, deviation) in zip(found.base_names, sure, strict=True)
        }
        parameters = dict(zip(found.names, found.parameters, strict=True))
        print_json({**plain(summary), "base_parameters": base, "parameters": parameters, "written": written})
        return
    out = console()
    _print_outcome(out, outcome, truth, all_parameters)
    say(out, f"{len(essential.names)} of {outcome.problem.rank} base parameters are essential: the residuals miss them")
    if pieces:
        each = ", ".join(f"{100 * piece.relative:.2f} %" for piece in pieces)
        say(out, f"cross-validation, {len(pieces)} pieces in time: {each}")
    for note in notes:
        say(out, note)
    for name in written:
        say(out, f"wrote {name}")


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
    given = load_recording(recording, robot, mapping, repair=repair)
    from ..identification.identify import prepare

    ready = prepare(given, robot)
    judged = validate(robot, found, ready, preprocessing=None)
    if output is not None:
        predicted = found.torque(ready)
        more = {"tau_predicted": predicted, "tau_residual": ready.tau - predicted}
        save_recording(Recording(ready.t, ready.q, ready.tau, ready.qd, ready.qdd, ready.joints, more), output)
    if as_json:
        print_json({**plain(asdict(judged)), "written": None if output is None else str(output)})
        return
    _print_scores(out, f"torque of {recording.name}, N·m (N)", {found.method: judged})
    say(out, judged.verdict.replace("held-out data", "this recording"))
    if output is not None:
        say(out, f"wrote {output}")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("identify")(identify_command)
    app.command("predict")(predict_command)
