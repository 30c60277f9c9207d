"""The command that identifies a robot from its recordings."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.gears import gear_of
from ..data.load import load_recording
from ..data.recording import Recording
from ..errors import OptionError
from ..evaluation.saved_study import KEY, inputs_of
from ..evaluation.study import Fold, Outcome, Plan, cross_validate, faults_of, run_study
from ..evaluation.truth import Truth, compare_with_truth
from ..files import checked_output
from ..identification.estimators import ESTIMATORS, ON_REQUEST
from ..identification.identify import terms_named
from ..identification.model import Experiment
from ..identification.physical.limits import REGIONS
from ..identification.physical.priors import PRIORS
from ..identification.result_file import plain, save_result
from ..identification.selection import Essential, essential_parameters
from ..identification.shapes import SHAPES
from ..identification.terms import TERMS, couplings
from ..robot.export import FORMATS, export_model
from .identify_options import (
    PhysicalTexts,
    carrying,
    coupled_motors,
    decimation_of,
    fixed_of,
    loads_by_file,
    methods_named,
    span,
    steps_of,
    with_noise,
    with_shapes,
)
from .identify_print import print_outcome, summary_of
from .loop_options import LoopTexts
from .options import (
    AsJson,
    Bodies,
    Gravity,
    Lock,
    MappingOption,
    ModelOption,
    Mounting,
    Repair,
    names,
    numbers,
    robot_from,
)
from .output import console, print_json, say
from .progress import reporting

_ALGORITHMS = f"One or several of {', '.join(ESTIMATORS)}; all: each but {', '.join(ON_REQUEST)}."
_JUDGING, _MODEL, _READING, _BODIES = "What is judged", "What is identified", "How it is read", "Bodies that can exist"
_LOOP = "How it is simulated again (IV, DIDIM, CLOE, CLIE)"


def _spans(given: str | None, option: str) -> tuple[float, float] | None:
    return None if given is None else span(option, given)


def _delay(text: str, nonlinear: list[str]) -> float | str:
    """Looked for by itself, unless ML seeks it, or drives have units in which no torque can be compared yet."""
    if text == "auto":
        return 0.0 if {"delay", "gains"} & set(nonlinear) else "auto"
    if "delay" in nonlinear:
        raise OptionError("--delay is given and --nonlinear delay seeks it; choose one")
    return float(numbers(text, 1, "--delay")[0])


def _friction(text: str, nonlinear: list[str]) -> tuple[str | None, bool]:
    """The friction columns, and whether the data choose among them."""
    if text.strip() != "auto":
        return text, False
    if "lugre" in nonlinear:
        return "offset", False  # bristles are Coulomb's friction already
    return ("coulomb,offset", False) if "gains" in nonlinear else (None, True)


def _report(outcome: Outcome, summary: dict[str, Any], written: list[str]) -> None:
    found = outcome.estimate
    sure = zip(found.base_parameters, found.base_deviation, strict=True)
    base = {
        name: {"value": value, "deviation": deviation}
        for name, (value, deviation) in zip(found.base_names, sure, strict=True)
    }
    data = found.data_set
    more = {
        "data": {**asdict(data), "blind": [str(direction) for direction in data.blind]},
        "base_parameters": base,
        "parameters": dict(zip(found.names, found.parameters, strict=True)),
        "nonlinear_parameters": [asdict(shape) for shape in found.shapes],
        "written": written,
    }
    print_json({**plain(summary), **more})


def _print(
    outcome: Outcome, truth: Truth | None, essential: Essential, pieces: tuple[Fold, ...], said: list[str], whole: bool
) -> None:
    out = console()
    print_outcome(out, outcome, truth, whole)
    rank = outcome.estimate.model.rank
    say(out, f"{len(essential.names)} of {rank} base parameters are essential: the residuals miss them")
    if pieces:
        each = ", ".join(f"{100 * piece.relative:.2f} %" for piece in pieces)
        say(out, f"cross-validation, {len(pieces)} pieces in time: {each}")
    for line in said:
        say(out, line)


def _truth(outcome: Outcome, given: list[Recording | Experiment]) -> Truth | None:
    """What a simulation knew of the robot; of one that carries something its parameters say that, too."""
    bare = [one for one in given if isinstance(one, Recording)]
    return compare_with_truth(outcome.estimate, bare[0]) if bare else None


def identify_command(
    recordings: Annotated[list[Path], typer.Argument(help="Recordings: CSV, NPZ, MAT, Parquet or ROS bags.")],
    model: ModelOption,
    mapping: MappingOption = None,
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help=_ALGORITHMS)] = "WLS",
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
        list[Path] | None,
        typer.Option(
            "--validate", rich_help_panel=_JUDGING, help="Judge on this recording; default: the end of the motion."
        ),
    ] = None,
    train_share: Annotated[
        float, typer.Option(rich_help_panel=_JUDGING, help="Share of the motion to learn from; the rest judges.")
    ] = 0.8,
    train: Annotated[
        str | None,
        typer.Option("--train", metavar="FROM:TO", rich_help_panel=_JUDGING, help="Learn from these seconds."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FROM:TO", rich_help_panel=_JUDGING, help="Judge on these seconds."),
    ] = None,
    every_row: Annotated[
        bool, typer.Option("--every-row", rich_help_panel=_JUDGING, help="Judge on standstill, too.")
    ] = False,
    folds: Annotated[
        int, typer.Option(help="Cross-validate on so many pieces in time, too.", rich_help_panel=_JUDGING, min=0)
    ] = 0,
    friction: Annotated[
        str,
        typer.Option(
            "--friction",
            metavar="TERMS",
            rich_help_panel=_MODEL,
            help="coulomb,offset or none; auto: what the data call for.",
        ),
    ] = "auto",
    terms: Annotated[
        str | None,
        typer.Option(
            "--terms",
            metavar="TERMS",
            rich_help_panel=_MODEL,
            help=f"Further columns: {', '.join(TERMS)}; none: not even those of motors that turn two joints.",
        ),
    ] = None,
    nonlinear: Annotated[
        str | None,
        typer.Option(
            "--nonlinear",
            metavar="WHAT",
            rich_help_panel=_MODEL,
            help=f"What ML seeks where torque is not linear: {', '.join(SHAPES)}.",
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", metavar="NAME=VALUE", rich_help_panel=_MODEL, help="A parameter whose value is known."),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            metavar="FILE=BODY:KG,X,Y,Z[,…]",
            rich_help_panel=_MODEL,
            help="A known load that the robot carried in a recording: mass, centre, moments about it.",
        ),
    ] = None,
    lock: Lock = None,
    bodies: Bodies = None,
    gravity: Gravity = None,
    mounting: Mounting = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=_READING,
            help="What WLS takes errors for: joint (a variance each), full (a covariance of joints), coloured.",
        ),
    ] = None,
    preprocessing: Annotated[
        str, typer.Option(rich_help_panel=_READING, help="auto, or none (the recording has good qd and qdd).")
    ] = "auto",
    cutoff: Annotated[
        float | None, typer.Option(rich_help_panel=_READING, help="Cut-off of the low-pass on positions, Hz.")
    ] = None,
    torque_cutoff: Annotated[
        float | None,
        typer.Option(rich_help_panel=_READING, help="Cut-off of a low-pass on positions and torque alike, Hz."),
    ] = None,
    decimate: Annotated[
        str,
        typer.Option(
            rich_help_panel=_READING,
            help="Keep every n-th row after a low-pass on regressor and torque: auto, none or n.",
        ),
    ] = "auto",
    decimation_cutoff: Annotated[
        float | None, typer.Option(rich_help_panel=_READING, help="Cut-off of that low-pass, Hz.")
    ] = None,
    delay: Annotated[
        str,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=_READING,
            help="How much later than the motion the torque is recorded; or auto.",
        ),
    ] = "auto",
    repair: Repair = False,
    prior: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_BODIES, help=f"What settles what the data do not show: {', '.join(PRIORS)} distance."
        ),
    ] = None,
    prior_weight: Annotated[
        float | None,
        typer.Option(rich_help_panel=_BODIES, help="2/s² trusts the model to a share s of itself; default 1."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(rich_help_panel=_BODIES, help="Least pseudo-inertia, as a part of the model's; default 1e-6."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_BODIES,
            help=f"What stays within each body's geoms: {', '.join(REGIONS)} (centre of mass; all mass in the latter).",
        ),
    ] = None,
    com: Annotated[
        list[str] | None,
        typer.Option(
            "--com",
            metavar="BODY=PLACE",
            rich_help_panel=_BODIES,
            help="A centre of mass in a box X0:X1,Y0:Y1,Z0:Z1 or a ball X,Y,Z,RADIUS, m.",
        ),
    ] = None,
    total_mass: Annotated[
        float | None, typer.Option(rich_help_panel=_BODIES, help="Mass of all identified bodies, kg.")
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option("--bound", metavar="NAME=LOW:HIGH", rich_help_panel=_BODIES, help="Limits of a parameter."),
    ] = None,
    symmetric: Annotated[
        list[str] | None,
        typer.Option(
            "--symmetric",
            metavar="BODY:AXIS",
            rich_help_panel=_BODIES,
            help="A rotor balanced about x, y or z, or a link mirrored in xy, xz or yz.",
        ),
    ] = None,
    loop: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_LOOP, help="YAML with the controller's kp, kd, ki, …; default: what the recording says."
        ),
    ] = None,
    seek: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=_LOOP,
            help="What CLOE and CLIE find with the rest: gains, delay (of the controller), start.",
        ),
    ] = None,
    rollout: Annotated[
        str,
        typer.Option(
            rich_help_panel=_LOOP, help="Who simulates for CLOE and CLIE: own, or mujoco (springs, contacts, tendons)."
        ),
    ] = "own",
    horizon: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=_LOOP,
            help="Let CLOE simulate stretches of this length under the measured torques, without a controller.",
        ),
    ] = None,
    signals: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=_LOOP,
            help="What CLOE and CLIE compare: q, qd, qdd, tau; default: q for CLOE, tau for CLIE.",
        ),
    ] = None,
    all_parameters: Annotated[
        bool, typer.Option("--all-parameters", help="Print all base parameters and all columns.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Identify a robot's dynamics from what it did, and say whether to trust the result.

    Example: `steelyard identify run.csv --model panda --algorithm WLS --physical --output result.yaml`
    """
    shapes = names(nonlinear) or []
    columns, choose = _friction(friction, shapes)
    robot = robot_from(model, lock, bodies, columns, gravity, mounting)
    bodily = PhysicalTexts(
        physical, prior, prior_weight, epsilon, within, tuple(com or ()), total_mass, tuple(bound or ()),
        tuple(symmetric or ()),
    )  # fmt: skip
    simulating = LoopTexts(loop, seek, rollout, horizon, signals)
    methods = bodily.around(simulating.into(with_noise(with_shapes(methods_named(algorithm), shapes), noise)))
    outputs = ((output, (".yaml", ".yml")), (export, tuple(FORMATS)), (report_to, (".html", ".htm")))
    for path, suffixes in outputs:
        if path is not None:
            checked_output(path, suffixes)
    plan = Plan(
        methods=methods,
        terms=terms_named(names(terms) or []),
        delay=_delay(delay, shapes),
        fixed=fixed_of(fix),
        preprocessing=steps_of(preprocessing, cutoff, torque_cutoff),
        decimation=decimation_of(decimate, decimation_cutoff),
        train_share=train_share,
        train_span=_spans(train, "--train"),
        test_span=_spans(test, "--test"),
        every_row=every_row,
        choose_friction=choose,
    )
    others = validate_on or []
    loads = loads_by_file(load or (), [*recordings, *others])
    with reporting() as report:
        given, judged = (
            [carrying(load_recording(path, robot, mapping, repair=repair), loads.get(path)) for path in paths]
            for paths in (recordings, others)
        )
        if coupled_motors(terms, given):
            plan = replace(plan, terms=(*plan.terms, *couplings(gear_of(robot, mapping))))
        outcome = run_study(robot, given, plan, judged, report)
        report("inspecting the recording", 0.0)
        outcome = replace(outcome, faults=faults_of(given, outcome.robot))
        pieces: tuple[Fold, ...] = ()
        if folds:
            best = next(method for method in methods if method.name == outcome.best)
            pieces = cross_validate(outcome.robot, given, best, folds, plan, report)
    truth = _truth(outcome, given)
    essential = essential_parameters(outcome.solved, outcome.estimate)
    folder = Path.cwd() if output is None else output.parent
    plain_cut = not loads and plan.train_span is None and plan.test_span is None and not every_row
    inputs = inputs_of(outcome, recordings, others, train_share, repair, folder) if plain_cut else None
    summary = {
        **summary_of(outcome, truth),
        **({KEY: inputs} if inputs else {}),
        "essential": asdict(essential),
        "cross_validation": [asdict(piece) for piece in pieces],
    }
    written: list[str] = []
    said: list[str] = []
    if output is not None:
        save_result(outcome.estimate, output, summary)
        written.append(str(output))
    if export is not None:
        said += export_model(outcome.estimate.robot, export)
        written.append(str(export))
    if report_to is not None:
        from ..report.identification import write_report

        write_report(outcome, report_to, truth=truth, command=str(summary["command"]))
        written.append(str(report_to))
    if as_json:
        _report(outcome, summary, written)
        return
    _print(outcome, truth, essential, pieces, [*said, *(f"wrote {name}" for name in written)], all_parameters)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("identify")(identify_command)
