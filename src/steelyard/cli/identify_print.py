"""What `steelyard identify` says of an outcome: tables for people, a mapping for files and machines."""

import sys
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console

from ..evaluation.study import Outcome
from ..evaluation.truth import Truth
from ..evaluation.validation import Validation
from ..identification.estimate import Estimate
from .output import add_row, number, say, table

_SIDE_BY_SIDE = 3  # methods that fit beside each other
_SHOWN = 14  # rows of the parameter table on a screen


def print_scores(out: Console, title: str, scores: dict[str, Validation]) -> None:
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


def _print_norms(out: Console, outcome: Outcome, whole: bool) -> None:
    """Lengths of the columns of W; where many methods are compared, of every column, and of the held-out W too."""
    norms = outcome.problem.data_set.column_norms
    least, most = min(norms, key=norms.__getitem__), max(norms, key=norms.__getitem__)
    say(out, f"column norms from {number(norms[least], 3)} ({least}) to {number(norms[most], 3)} ({most})")
    if not whole:
        return
    judged = outcome.held_out_data
    if judged is not None:
        say(out, f"on what is held out: {judged.rank} of {judged.base_rank} shown, condition {judged.condition:.3g}")
    made = table(None, "column of W", "norm", *(("held out",) if judged else ()), right=("norm", "held out"))
    for name, norm in norms.items():
        add_row(made, name, number(norm), *((number(judged.column_norms[name]),) if judged else ()))
    out.print(made)


def _print_shapes(out: Console, found: Estimate) -> None:
    say(out, "what torque is not linear in")
    made = table(None, "value of", "value", "± deviation", "unit", "", right=("value", "± deviation"))
    for shape in found.shapes:
        at = "at the end of its range" if shape.at_limit else ""
        add_row(made, shape.name, number(shape.value), number(shape.deviation, 2), shape.unit, at)
    out.print(made)


def _print_truth(out: Console, truth: Truth) -> None:
    say(
        out,
        f"against the truth that the simulation knew: {truth.inside} of {truth.count} base parameters within their "
        f"95 % intervals; error {100 * truth.relative_error:.2g} % (nominal model {100 * truth.nominal_error:.2g} %)",
    )


def print_outcome(out: Console, outcome: Outcome, truth: Truth | None, whole: bool) -> None:
    data = outcome.problem.data_set
    for note in outcome.notes:
        say(out, note)
    nominal = outcome.nominal
    say(
        out,
        f"{data.rows} torques, {data.rank} of {data.base_rank} base parameters shown, condition {data.condition:.3g}; "
        f"the model as it is explains the recorded torque to {100 * nominal.nominal_relative:.1f} %",
    )
    _print_norms(out, outcome, whole or len(outcome.estimates) > _SIDE_BY_SIDE)
    for direction in data.blind[:5]:
        say(out, f"not shown by the data: {direction}")
    if outcome.validations:
        print_scores(out, f"torque on {outcome.held_out}, N·m (N)", dict(outcome.validations))
    _print_parameters(out, outcome, whole)
    if outcome.estimate.shapes:
        _print_shapes(out, outcome.estimate)
    for method, why in outcome.failures.items():
        say(out, f"{method} failed: {why}")
    for method, found in outcome.estimates.items():
        if not found.converged:
            say(out, f"{method} did not converge: {found.message}")
        elif found.message != "solved":
            say(out, f"{method}: {found.message}")
    if truth is not None:
        _print_truth(out, truth)
    out.print()
    say(out, outcome.verdict, "[bold]verdict[/bold]: ")


def summary_of(outcome: Outcome, truth: Truth | None) -> dict[str, Any]:
    """An outcome as a mapping, for result files and machines."""
    judged = outcome.held_out_data if len(outcome.estimates) > _SIDE_BY_SIDE else None
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
                "fit": dict(found.about.get("fit", {})),
            }
            for name, found in outcome.estimates.items()
        },
        "failures": dict(outcome.failures),
        "held_out_data": None if judged is None else asdict(judged),
        "truth": None if truth is None else asdict(truth),
        "command": " ".join(sys.argv[1:]),
    }
