"""Two results on one page, and as a section of a report."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from ..evaluation.result_compare import ResultComparison, Side
from .markup import Cell, Html, Named, Toned, join, paragraph, percent, plot, section, table
from .page import page, write_text
from .plots import colour, label, styled


def _words(ok: bool) -> Toned:
    return Toned("yes", "good") if ok else Toned("no", "care")


def _sides(sides: tuple[Side, Side]) -> Html:
    rows: list[tuple[Cell, ...]] = [
        (
            side.file, side.method, 100 * side.torque_error, side.held_out, _words(side.converged),
            _words(side.feasible), side.mass, side.verdict,
        )
        for side in sides
    ]  # fmt: skip
    columns = ("result", "method", "torque error %", "judged on", "converged", "physical", "moving mass kg", "verdict")
    return table(columns, rows, "each in its own words")


def _parameters(comparison: ResultComparison) -> Html:
    a, b = (side.file for side in comparison.sides)
    rows: list[tuple[Cell, ...]] = []
    for pair in sorted(comparison.parameters, key=lambda pair: -np.nan_to_num(pair.distance, nan=-1.0)):
        known = np.isfinite(pair.distance)
        agrees: Cell = ("yes" if pair.agrees else Toned("no", "bad")) if known else "not known"
        name: Cell = Named(pair.short, pair.name) if pair.short != pair.name else pair.short
        row = (name, *pair.values, pair.values[1] - pair.values[0], pair.distance, agrees, *pair.deviations)
        rows.append(row)
    columns = ("parameter", a, b, "difference", "in deviations", "agrees", f"± {a}", f"± {b}")
    return table(columns, rows, f"{len(rows)} base parameters that both have, furthest apart first")


def _distances(comparison: ResultComparison) -> go.Figure:
    pairs = [pair for pair in comparison.parameters if np.isfinite(pair.distance)]
    marks = go.Scatter(
        x=[label(pair.short) for pair in pairs],
        y=[(pair.values[1] - pair.values[0]) / max(float(np.hypot(*pair.deviations)), 1e-300) for pair in pairs],
        mode="markers",
        marker={"size": 7, "color": [colour(0) if pair.agrees else "#D55E00" for pair in pairs]},
        hovertemplate="%{x}: %{y:.3g} deviations<extra></extra>",
    )
    figure = go.Figure(marks)
    figure.add_hrect(y0=-1.96, y1=1.96, fillcolor="rgba(139,147,156,0.22)", line_width=0, layer="below")
    styled(figure, 420, b=110)
    figure.update_xaxes(type="category", tickangle=-90, tickfont_size=10)
    figure.update_yaxes(title_text="difference / deviations")
    return figure


def comparison_section(comparison: ResultComparison) -> Html:
    """Where two results agree and where they part."""
    torques = [
        (joint, 100 * share) for joint, share in zip(comparison.joints, comparison.torque_difference, strict=True)
    ]
    alone = [
        paragraph(f"Only in {side.file}: {', '.join(names)}.")
        for side, names in zip(comparison.sides, comparison.alone, strict=True)
        if names
    ]
    caption = "Inside the grey band two values agree 19 times out of 20, if they come from different data."
    return section(
        "comparison",
        "Two results",
        _sides(comparison.sides),
        plot(_distances(comparison), caption),
        _parameters(comparison),
        table(("joint", "torque apart %"), torques, "of the first's torque, root mean square over random states"),
        *alone,
        lead=f"{comparison.verdict}.",
    )


def write_comparison(comparison: ResultComparison, path: Path) -> None:
    """The comparison as one page."""
    a, b = comparison.sides
    errors = " and ".join(percent(side.torque_error) for side in (a, b))
    body = [join(comparison_section(comparison))]
    write_text(path, page(f"{a.file} and {b.file}", body, subtitle=f"torque errors {errors}"))
