"""Estimators beside each other: how well each predicts what it has not seen, and what it took."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from ..evaluation.validation import Validation
from .markup import Cell, Html, Toned, html, join, paragraph, plot, section, table
from .plots import colour, label, styled
from .subject import Subject

_MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


def _relative(validations: Mapping[str, Validation]) -> go.Figure:
    """A bar a method, with the nominal model as a line."""
    names = sorted(validations, key=lambda name: -validations[name].relative)
    nominal = 100 * validations[names[0]].nominal_relative
    shares = [100 * validations[name].relative for name in names]
    bars = go.Bar(
        x=shares, y=[label(name) for name in names], orientation="h", marker={"color": colour(0)}, width=0.6,
        text=[f"{share:.3g} %" for share in shares], textposition="outside", cliponaxis=False,
        hovertemplate="%{y}: %{x:.4g} %<extra></extra>",
    )  # fmt: skip
    figure = go.Figure(bars)
    styled(figure, 90 + 34 * len(names), t=34, r=30)
    most = max([nominal, *shares])
    # A model far off would press the bars of all methods into one corner.
    near = nominal < 4 * max(shares)
    if near:
        figure.add_vline(
            x=nominal, line={"color": "#D55E00", "dash": "dash", "width": 1.5},
            annotation={"text": f"nominal {nominal:.3g} %", "yanchor": "bottom", "y": 1, "yref": "paper"},
        )  # fmt: skip
    figure.update_xaxes(title_text="torque error / %", range=[0, 1.18 * (most if near else max(shares))])
    figure.update_yaxes(ticks="", showgrid=False)
    return figure


def _by_joint(subject: Subject) -> go.Figure:
    """RMSE of each method at each joint, relative to the nominal model's."""
    figure = go.Figure()
    for k, (name, judged) in enumerate(subject.validations.items()):
        share = [s.rmse / s.nominal_rmse if s.nominal_rmse > 0 else None for s in judged.joints]
        marker = {"symbol": _MARKS[k % len(_MARKS)], "size": 9, "color": colour(k)}
        figure.add_trace(
            go.Scatter(
                x=[label(s.joint, 24) for s in judged.joints], y=share, mode="markers", name=label(name), marker=marker,
                hovertemplate="%{x}: %{y:.3g} of the nominal model",
            )
        )  # fmt: skip
    styled(figure, 380, b=90)
    figure.add_hline(y=1.0, line={"color": "#D55E00", "dash": "dash", "width": 1.5})
    figure.update_layout(
        scattermode="group", showlegend=True, legend={"orientation": "h", "y": -0.28, "yanchor": "top"}
    )
    figure.update_xaxes(type="category")
    figure.update_yaxes(title_text="RMSE / the nominal model's", rangemode="tozero")
    return figure


def _rows(subject: Subject) -> Html:
    rows: list[tuple[Cell, ...]] = []
    joints = [s.joint for s in next(iter(subject.validations.values())).joints] if subject.validations else []
    for method in subject.methods:
        judged = subject.validations.get(method.name)
        found = subject.others.get(method.name)
        inside: Cell = None
        if found is not None and subject.truth is not None and subject.true_parameters is not None:
            truth = found.model.base.reduce(subject.true_parameters)
            low, high = found.interval()
            inside = int(((truth >= low) & (truth <= high)).sum())
        rows.append(
            (
                method.name,
                None if judged is None else 100 * judged.relative,
                Toned("yes", "good") if method.converged else Toned(f"no: {method.message}", "bad"),
                Toned("yes", "good") if method.feasible else Toned("no", "care"),
                *((inside,) if subject.truth is not None else ()),
                float(method.seconds),
                method.iterations,
                *(float(s.rmse) for s in (judged.joints if judged is not None else ())),
                *(None for _ in (joints if judged is None else ())),
            )
        )
    if subject.validations:
        first = next(iter(subject.validations.values()))
        blank: tuple[Cell, ...] = (None,) if subject.truth is not None else ()
        rows.append(
            (
                "nominal model", 100 * first.nominal_relative, "", "", *blank, None, None,
                *(float(s.nominal_rmse) for s in first.joints),
            )
        )  # fmt: skip
    columns = ["method", "torque error %", "converged", "physical"]
    columns += ["truth within 95 %"] if subject.truth is not None else []
    columns += ["seconds", "iterations", *(f"RMSE {joint}" for joint in joints)]
    return table(columns, rows, f"judged on {subject.held_out}; RMSE in N·m (N where a joint slides)")


def method_section(subject: Subject) -> Html:
    """The comparison of estimators; with one method only its figures."""
    parts: list[str] = [_rows(subject)]
    parts += [paragraph(f"{name} failed: {why}") for name, why in subject.failures.items()]
    if len(subject.validations) > 1:
        parts.append(plot(_relative(subject.validations), f"Relative torque error on {subject.held_out}."))
    if subject.validations and any(
        np.isfinite(s.nominal_rmse) for s in next(iter(subject.validations.values())).joints
    ):
        parts.append(
            plot(_by_joint(subject), "Below the dashed line a joint is predicted better than by the nominal model.")
        )
    return section("methods", "Estimators", html(join(*parts)))
