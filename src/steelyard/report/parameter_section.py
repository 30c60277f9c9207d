"""What was found: base parameters with intervals, all parameters, what cannot be told apart, correlations."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ..identification.estimate import Estimate
from .markup import Cell, Html, Named, Toned, html, listed, paragraph, plot, section, table, tabs
from .plots import label, styled
from .subject import Subject

Array = NDArray[np.float64]
# With more base parameters than this the matrix is drawn without names on its axes.
_NAMED = 60
# Pairs whose errors go together more than this are listed.
_CLOSE = 0.9
_MOST_PAIRS = 30


def correlation(covariance: Array) -> Array:
    """Covariance over the product of deviations; 0 where a parameter has no error."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(deviation > 0, deviation, 1.0)
    return np.asarray(np.clip(covariance / np.outer(scale, scale), -1.0, 1.0))


def _base_table(subject: Subject) -> Html:
    found = subject.estimate
    low, high = found.interval()
    nominal = found.model.base.reduce(found.nominal)
    truth = subject.truth
    units = [found.units[k] for k in found.model.base.kept]
    columns = ["parameter", "value", "95 % from", "to", "± %", "nominal", "unit"]
    columns += ["truth", "truth inside"] if truth is not None else []
    rows: list[tuple[Cell, ...]] = []
    for k, short in enumerate(found.model.base.short_names):
        seen = bool(np.isfinite(found.base_deviation[k]))
        row: list[Cell] = [
            Named(short, found.base_names[k]) if short != found.base_names[k] else short,
            float(found.base_parameters[k]),
            float(low[k]) if seen else None,
            float(high[k]) if seen else None,
            float(1.96 * found.base_relative[k]) if seen else None,
            float(nominal[k]),
            units[k],
        ]
        if truth is not None:
            value = truth.base_truth[k]
            inside = not seen or bool(low[k] <= value <= high[k])
            row += [value, Toned("yes" if inside else "no", "good" if inside else "bad")]
        rows.append(tuple(row))
    return table(columns, rows, f"{len(rows)} base parameters by {found.method}; a star: others act through it")


def _standing(found: Estimate) -> list[str]:
    """What the data say of each parameter, in words."""
    base = found.model.base
    words = ["only in combinations"] * len(found.names)
    for k in base.without_effect:
        words[k] = "no effect on any torque"
    for k, short, deviation in zip(base.kept, base.short_names, found.base_deviation, strict=True):
        words[k] = (
            "not shown by the data" if not np.isfinite(deviation) else "told with others" if "*" in short else "told"
        )
    for name in found.model.fixed:
        words[found.model.robot.layout.index(name)] = "given as known"
    return words


def _all_table(subject: Subject) -> Html:
    found, true = subject.estimate, subject.true_parameters
    columns = ["parameter", "value", "± deviation", "nominal", *(["truth"] if true is not None else []), "unit"]
    columns.append("what the data say of it")
    rows = []
    for k, (name, words) in enumerate(zip(found.names, _standing(found), strict=True)):
        deviation = float(found.deviation[k])
        row: list[Cell] = [name, float(found.parameters[k]), deviation if np.isfinite(deviation) else None]
        row += [float(found.nominal[k]), *([float(true[k])] if true is not None else []), found.units[k], words]
        rows.append(row)
    said = "what only acts in combinations keeps the model's share, so a single value may be far from the body's own"
    return table(columns, rows, f"{len(rows)} parameters; {said}")


def _untold(subject: Subject) -> Html:
    found, blind = subject.estimate, subject.blind
    base = found.model.base
    parts = []
    if blind:
        parts.append(
            paragraph(f"{len(blind)} combinations are not shown by these data; a richer motion would show them:")
        )
        parts.append(listed(blind))
    else:
        parts.append(paragraph("The data show every base parameter."))
    regrouped = [found.names[k] for k in base.regrouped]
    without = [found.names[k] for k in base.without_effect]
    parts.append(
        paragraph(
            f"{len(regrouped)} parameters act only through base parameters: no motion of this robot can tell them "
            "apart, and they keep the model's values (or what keeps bodies physical)."
        )
    )
    rows: list[tuple[Cell, ...]] = [(name, "only in combinations") for name in regrouped]
    rows += [(name, "no effect on any torque") for name in without]
    if rows:
        parts.append(table(("parameter", "why"), rows, f"{len(rows)} parameters that cannot be told apart"))
    return Html("".join(parts))


def _correlations(found: Estimate) -> Html:
    R = correlation(found.base_covariance)
    names = [label(name, 26) for name in found.model.base.short_names]
    ticks = len(names) <= _NAMED
    figure = go.Figure(
        go.Heatmap(
            z=np.round(R, 3), zmin=-1, zmax=1, colorscale="RdBu", reversescale=True, xgap=0.5, ygap=0.5,
            customdata=np.array([[f"{a} and {b}" for a in names] for b in names]),
            hovertemplate="%{customdata}: %{z:.2f}<extra></extra>",
            colorbar={"thickness": 12, "len": 0.8, "outlinewidth": 0, "title": {"text": "", "side": "right"}},
        )
    )  # fmt: skip
    styled(figure, 640 if ticks else 560, b=20, l=20)
    places = list(range(len(names)))
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(
            tickvals=places if ticks else [], ticktext=names, tickfont_size=9, showgrid=False, ticks="", automargin=True
        )
    figure.update_yaxes(autorange="reversed", zeroline=False)
    figure.update_xaxes(tickangle=-90)
    a, b = np.nonzero(np.triu(np.abs(R) > _CLOSE, 1))
    order = np.argsort(-np.abs(R[a, b]))[:_MOST_PAIRS]
    short = found.model.base.short_names
    rows = [(short[a[k]], short[b[k]], float(R[a[k], b[k]])) for k in order]
    caption = (
        f"{len(a)} pairs are correlated by more than {_CLOSE:g}: their errors go together, and their sum or difference "
        "is known better than either."
    )
    pairs = table(("parameter", "and", "correlation"), rows, f"the closest of {len(a)} pairs") if rows else ""
    return Html(f"{plot(figure, caption)}{html(pairs)}")


def parameter_section(subject: Subject) -> Html:
    """Tables of parameters, and how sure they are."""
    panels = {
        "Base parameters": _base_table(subject),
        "All parameters": _all_table(subject),
        "Not told apart": _untold(subject),
        "Correlations": _correlations(subject.estimate),
    }
    lead = (
        "Torque depends on base parameters alone: these are what the data decide. Intervals have the truth 19 times "
        "out of 20, the colour of the residuals taken into account."
    )
    return section("parameters", "Parameters", tabs(panels), lead=lead)
