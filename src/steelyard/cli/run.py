"""The commands that do a whole study: from a YAML file, or as a demonstration."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..errors import OptionError
from ..evaluation.job.settings import Job, built_in, parse_job, read_job
from ..evaluation.job.work import Finished, run_job
from ..evaluation.truth import Truth
from ..files import checked_output
from ..identification.estimate import Estimate
from ..identification.result_file import plain, save_result
from ..report.figure import write_figure
from ..report.identification import write_report
from ..robot.export import FORMATS, export_model
from ..robot.load import load_robot
from .identify import summary_of
from .options import AsJson
from .output import add_row, console, number, print_json, say, table
from .progress import reporting


def _feasible(done: Finished) -> Estimate | None:
    """The estimate for a model file: the best that bodies can have."""
    outcome = done.outcome
    assert outcome is not None
    can_be = {name: one for name, one in outcome.estimates.items() if not one.invalid and one.converged}
    if outcome.best in can_be:
        return can_be[outcome.best]

    def merit(name: str) -> float:
        judged = outcome.validations.get(name)
        return judged.relative if judged is not None else 0.0

    return can_be[min(can_be, key=merit)] if can_be else None


def _write_results(done: Finished, job: Job) -> list[str]:
    """Result, model and page; with what a reader should know of them."""
    outcome, folder, report, notes = done.outcome, done.folder, job.report, []
    assert outcome is not None
    truth = done.truths.get(outcome.best)
    real = _feasible(done) if report.model is not None else None
    if report.model is not None and real is None:
        notes.append(f"no model was written: no estimate's bodies can exist; add Physical {outcome.best}")
    written = [folder / "result.yaml"]
    if real is not None:
        written.append(folder / str(report.model))
        notes.append(f"{report.model} has the parameters of {real.method}, which bodies can have")
        if real.method in done.truths and real.method != outcome.best:
            notes.append(f"{real.method}: {done.truths[real.method].verdict}")
    if report.page:
        written.append(folder / "report.html")
    done.written = tuple(written)
    if done.ledger.holds("results", done.key):
        done.as_before.append("results")
        return notes
    save_result(outcome.estimate, folder / "result.yaml", summary_of(outcome, truth))
    if real is not None:
        notes += export_model(real.robot, folder / str(report.model))
    if report.page:
        write_report(outcome, folder / "report.html", truth=truth, command=" ".join(sys.argv[1:]))
    done.ledger.finish("results", done.key, written)
    return notes


def _print_methods(out: Console, done: Finished) -> None:
    outcome = done.outcome
    assert outcome is not None
    known = bool(done.truths)
    columns = ("torque error", *(("parameter error", "in their intervals") if known else ()), "possible", "s")
    made = table(None, "method", *columns, right=columns)
    first = next(iter(outcome.validations.values()), None)
    truths = done.truths
    if first is not None:
        error = next((f"{100 * t.nominal_error:.2f} %" for t in truths.values()), "–")
        add_row(
            made,
            "the model as it was",
            f"{100 * first.nominal_relative:.2f} %",
            *((error, "–") if known else ()),
            "–",
            "–",
        )
    for name, found in outcome.estimates.items():
        judged, truth = outcome.validations.get(name), truths.get(name)
        against = (f"{100 * truth.relative_error:.2f} %", f"{truth.inside} of {truth.count}") if truth else ("–", "–")
        add_row(
            made,
            name + ("" if found.converged else " (not converged)"),
            f"{100 * judged.relative:.2f} %" if judged else "–",
            *(against if known else ()),
            "yes" if not found.invalid else "no",
            number(found.seconds, 2),
        )
    say(
        out,
        f"torque error on {outcome.held_out}" + ("; parameters against the truth of the simulation" if known else ""),
    )
    out.print(made)
    for name, why in outcome.failures.items():
        say(out, f"{name} failed: {why}")
    for name, found in outcome.estimates.items():
        if not found.converged:
            say(out, f"{name} did not converge: {found.message}")


def _truth_in_words(truths: Mapping[str, Truth], best: str) -> list[str]:
    """What the comparison with the truth says of the best method, and of those that promised too much."""
    if best not in truths:
        return []
    narrow = [name for name, truth in truths.items() if not truth.honest and name != best]
    told = [f"{best}: {truths[best].verdict}"]
    return told + ([f"intervals that promise too much: {', '.join(narrow)}"] if narrow else [])


def _print(done: Finished, notes: list[str]) -> None:
    out, outcome = console(), done.outcome
    if done.as_before:
        say(out, f"as before, not done again: {', '.join(done.as_before)}")
    for text in done.warnings:
        say(out, f"warning: {text}")
    if outcome is None:
        say(out, "the motions are designed; run them on the robot, then give its recordings under data:")
        for path in done.motions:
            say(out, str(path.with_suffix(".csv")))
        return
    for note in outcome.notes:
        say(out, note)
    _print_methods(out, done)
    for line in (*_truth_in_words(done.truths, outcome.best), *notes):
        say(out, line)
    say(out, outcome.verdict, "[bold]verdict[/bold]: ")
    say(out, f"in {done.folder}: {', '.join(path.name for path in (*done.written, *_made(done)))}")


def _made(done: Finished) -> list[Path]:
    """Recordings that the study itself made."""
    return [path for path in done.recordings if path.parent == done.folder]


def _summary(done: Finished, notes: list[str]) -> dict[str, Any]:
    outcome = done.outcome
    told: dict[str, Any] = {
        "motions": [str(path) for path in done.motions],
        "recordings": [str(path) for path in done.recordings],
        "as_before": done.as_before,
        "warnings": list(done.warnings),
        "written": [str(path) for path in done.written],
        "notes": notes,
    }
    if outcome is not None:
        best = done.truths.get(outcome.best)
        told |= summary_of(outcome, best)
        told["truths"] = {
            name: {**asdict(truth), "honest": truth.honest, "least_expected": truth.least_expected}
            for name, truth in done.truths.items()
        }
    return told


def _check_output(output: Path, job: Job) -> None:
    if output.exists() and not output.is_dir():
        raise OptionError(f"{output} is a file; give a folder for the results")
    if not output.parent.is_dir():
        raise OptionError(f"{output}: no folder {output.parent}; make it first")
    name = job.report.model
    if name is not None and (Path(name).suffix.lower() not in FORMATS or Path(name).name != name):
        raise OptionError(f"report.model is '{name}'; give a file name that ends in {', '.join(FORMATS)}")


def _do(job: Job, folder: Path, output: Path, again: bool, as_json: bool) -> Finished:
    with reporting() as report:
        done = run_job(job, folder, output, again=again, progress=report)
        report("writing the results", 1.0)
        notes = _write_results(done, job) if done.outcome is not None else []
    if as_json:
        print_json(plain(_summary(done, notes)))
    else:
        _print(done, notes)
    return done


def run_command(
    study: Annotated[Path | None, typer.Argument(help="What is to be done, .yaml.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results; default: the study's name.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Do finished stages again, too.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a study with comments, to begin with.")] = False,
    as_json: AsJson = False,
) -> None:
    """Do a whole study from one YAML file: motions, simulation or data, every estimator, validation and report.

    A study that was stopped goes on where it was; stages whose inputs are unchanged are not done again.

    Example: `steelyard run --example > study.yaml`, then `steelyard run study.yaml --output results`
    """
    if example:
        sys.stdout.write(built_in("example"))
        return
    if study is None:
        raise OptionError("no study was given; `steelyard run --example > study.yaml` writes one to begin with")
    job = read_job(study)
    folder = study.with_suffix("") if output is None else output
    _check_output(folder, job)
    _do(job, study.parent, folder, again, as_json)


def demo_command(
    model: Annotated[
        str, typer.Argument(help="A library robot (see `steelyard robots`), or an MJCF, URDF or DH file.")
    ] = "panda",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path("demo"),
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Picture of measured, nominal and identified torque, .svg.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the true robot and of the noise.", min=0)] = 1,
    as_json: AsJson = False,
) -> None:
    """Show the whole of Steelyard on a robot whose truth is known: design, simulate, identify, validate, compare.

    The true robot differs from its model by 15 % here and there; it is found again from a noisy recording.

    Example: `steelyard demo`, `steelyard demo ur5e --output demo_ur5e`
    """
    if figure is not None:
        checked_output(figure, (".svg",))
    given = Path(model)
    name = str(given.resolve()) if given.is_file() else model
    load_robot(name)  # what cannot be loaded is said before anything is written
    text = built_in("demo").replace("{model}", _quoted(name)).replace("{seed}", str(seed))
    job = parse_job(text, "the demonstration")
    _check_output(output, job)
    output.mkdir(exist_ok=True)
    (output / "study.yaml").write_text(text, encoding="utf-8")
    done = _do(job, output, output, True, as_json)
    if figure is not None and done.outcome is not None:
        write_figure(done.outcome, figure)
    if not as_json:
        say(console(), f"Open {output / 'report.html'} in a browser; {output / 'study.yaml'} is yours to change.")


def _quoted(name: str) -> str:
    """A path as YAML reads it back."""
    return "'" + name.replace("'", "''") + "'"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("run")(run_command)
    app.command("demo")(demo_command)
