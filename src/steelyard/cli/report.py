"""The commands that show results: a page of one, two beside each other."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..evaluation.result_compare import ResultComparison, compare_results
from ..files import checked_output
from ..identification.result_file import read_result
from .options import AsJson, Seed
from .output import add_row, console, number, print_json, say, table
from .progress import reporting

_SUFFIXES = (".html", ".htm")
_SHOWN = 20  # parameters on a screen


def report_command(
    result: Annotated[Path, typer.Argument(help="What `steelyard identify --output` wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page, .html; default: beside the result.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a result as one HTML page: verdict, torques, parameters, residuals, the robot in 3-D; no network needed.

    The recordings that the result names are read again; where one is gone or has changed the page says so and leaves
    out what needs it.

    Example: `steelyard report result.yaml --output report.html`
    """
    from ..report.identification import write_saved_report

    page = checked_output(result.with_suffix(".html") if output is None else output, _SUFFIXES)
    saved = read_result(result)
    with reporting() as progress:
        progress("reading the recordings again and drawing", 0.0)
        missing = write_saved_report(saved, page)
    if as_json:
        print_json({"written": [str(page)], "notes": saved.notes, "left_out": missing})
        return
    out = console()
    for note in saved.notes:
        say(out, f"note: {note}")
    for what in missing:
        say(out, f"left out: {what}")
    say(out, f"wrote {page}")


def _print(found: ResultComparison) -> None:
    out = console()
    sides = table(
        None, "result", "method", "torque error", "judged on", "converged", "physical", right=("torque error",)
    )
    for side in found.sides:
        error = "–" if not np.isfinite(side.torque_error) else f"{100 * side.torque_error:.2f} %"
        words = ("yes" if side.converged else "no", "yes" if side.feasible else "no")
        add_row(sides, side.file, side.method, error, side.held_out, *words)
    out.print(sides)
    a, b = (side.file for side in found.sides)
    columns = (a, b) if a != b else (f"{a} (1)", f"{b} (2)")
    made = table(
        "\nbase parameters, furthest apart first", "parameter", *columns, "deviations", right=(*columns, "deviations")
    )
    pairs = sorted(found.parameters, key=lambda pair: -np.nan_to_num(pair.distance, nan=-1.0))
    for pair in pairs[:_SHOWN]:
        add_row(made, pair.short, *(number(value) for value in pair.values), number(pair.distance, 3))
    out.print(made)
    if len(pairs) > _SHOWN:
        say(out, f"… and {len(pairs) - _SHOWN} more (--json has all)")
    for side, names in zip(found.sides, found.alone, strict=True):
        if names:
            say(out, f"only in {side.file}: {', '.join(names)}")
    apart = zip(found.joints, found.torque_difference, strict=True)
    say(out, "torques part by " + ", ".join(f"{joint} {100 * share:.2g} %" for joint, share in apart))
    say(out, found.verdict, "[bold]verdict[/bold]: ")


def compare_results_command(
    first: Annotated[Path, typer.Argument(help="What `steelyard identify --output` wrote.")],
    second: Annotated[Path, typer.Argument(help="Another result, of the same robot.")],
    report: Annotated[Path | None, typer.Option("--report", help="The comparison as one HTML page.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare two results: which base parameters agree within their intervals, and how far the torques part.

    Example: `steelyard compare-results monday.yaml friday.yaml`
    """
    if report is not None:
        checked_output(report, _SUFFIXES)
    a, b = read_result(first), read_result(second)
    found = compare_results(a, b, np.random.default_rng(seed))
    if report is not None:
        from ..report.comparison import write_comparison

        write_comparison(found, report)
    if as_json:
        print_json({**asdict(found), "notes": [*a.notes, *b.notes], "written": None if report is None else str(report)})
        return
    out = console()
    for note in (*a.notes, *b.notes):
        say(out, f"note: {note}")
    _print(found)
    if report is not None:
        say(out, f"wrote {report}")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("report")(report_command)
    app.command("compare-results")(compare_results_command)
