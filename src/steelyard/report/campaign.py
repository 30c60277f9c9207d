"""A campaign as one page: scores, spread of errors, error against time, honesty of intervals, convergence maps."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from ..evaluation.campaign.campaign import Campaign
from ..evaluation.campaign.summary import STATUSES, Score, groups_of
from ..evaluation.campaign.table import Table
from .markup import Html, fresh, heading, join, paragraph, plot, section
from .markup import table as as_table
from .page import page, write_text
from .plots import colour

Array = NDArray[np.float64]
Rows = dict[tuple[object, ...], NDArray[np.int64]]
_ERRORS = {
    "torque_error": "torque error on the validation trajectory",
    "position_error": "position error, simulated again",
    "parameter_error": "error of base parameters",
}
_STATUS_COLOURS = ("#009E73", "#E69F00", "#56B4E9", "#D55E00")
_MAPS_A_ROW = 4


def noise_of(score: Score) -> str:
    """A level of noise in the units of the field."""
    return f"σq {np.degrees(score.position_noise):.2g}°, στ {score.torque_noise:g}"


def _percent(x: float) -> str:
    return "–" if not np.isfinite(x) else f"{100 * x:.3g} %"


def _figure(x: float) -> str:
    return "–" if not np.isfinite(x) else f"{x:.3g}"


COLUMNS = {
    "estimator": lambda s: s.estimator,
    "runs": lambda s: str(s.runs),
    "converged": lambda s: _percent(s.converged),
    "wrong": lambda s: _percent(s.wrong),
    "failed": lambda s: _percent(s.failed),
    "torque error": lambda s: _percent(s.torque_error),
    "95 % below": lambda s: _percent(s.torque_error_worst),
    "position error": lambda s: _percent(s.position_error),
    "parameter error": lambda s: _percent(s.parameter_error),
    "bias": lambda s: _figure(s.bias),
    "efficiency": lambda s: _percent(s.efficiency),
    "coverage": lambda s: _percent(s.coverage),
    "feasible": lambda s: _percent(s.feasible),
    "ms": lambda s: _figure(1e3 * s.seconds),
    "iterations": lambda s: _figure(s.iterations),
    "simulations": lambda s: _figure(s.simulations),
}
_LEGEND = (
    "Converged: the estimator says so, its torque error on the validation trajectory is below the study's limit "
    "({limit:g} %) and below that of its initial guess. Wrong: it says so and does not. Errors are medians over runs, "
    "relative, against the truth without noise. Bias: of the median parameter, the mean error over the least standard "
    "deviation that the torque's noise allows (Cramér and Rao; the motion taken as known). Efficiency: of the median "
    "parameter, that bound's variance over the mean squared error; an estimator that simulates the controlled robot "
    "knows more than the torque and may go beyond 100 %. Coverage: base parameters inside their 95 % intervals. "
    "ms: of one estimate, without preprocessing and without its intervals."
)


def _heading(score: Score) -> str:
    return f"{score.robot}, friction {score.friction}, preprocessing {score.preprocessing}"


def _scores_table(scores: Sequence[Score]) -> Html:
    """A table a level of noise."""
    parts = []
    for level, group in groupby(scores, key=noise_of):
        rows = [tuple(cell(score) for cell in COLUMNS.values()) for score in group]
        parts.append(as_table(tuple(COLUMNS), rows, level))
    return join(*parts)


def _key(score: Score) -> tuple[object, ...]:
    return (
        score.robot, score.friction, score.position_noise, score.torque_noise, score.preprocessing, score.estimator,
    )  # fmt: skip


def _boxes(scores: Sequence[Score], table: Table, rows: Rows) -> go.Figure:
    """Quartiles and the middle 90 % of every error, a box an estimator and level."""
    levels = list(dict.fromkeys(noise_of(score) for score in scores))
    figure = make_subplots(rows=len(_ERRORS), cols=1, subplot_titles=list(_ERRORS.values()), vertical_spacing=0.07)
    for panel, name in enumerate(_ERRORS):
        for k, level in enumerate(levels):
            names, five = [], []
            for score in (s for s in scores if noise_of(s) == level):
                values = table[name][rows[_key(score)]]
                values = values[np.isfinite(values) & (values > 0)]
                if len(values):
                    names.append(score.estimator)
                    five.append(np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)))
            if not five:
                continue
            low, q1, middle, q3, high = np.array(five).T
            box = go.Box(
                x=names, lowerfence=low, q1=q1, median=middle, q3=q3, upperfence=high, name=level, legendgroup=level,
                showlegend=panel == 0, marker={"color": colour(k)}, line={"width": 1.2},
            )  # fmt: skip
            figure.add_trace(box, row=panel + 1, col=1)
    figure.update_yaxes(type="log", exponentformat="power")
    figure.update_layout(boxmode="group", height=1050, margin={"l": 60, "r": 20, "t": 50, "b": 50})
    figure.update_layout(legend={"orientation": "h", "y": -0.05})
    return figure


def _against_time(scores: Sequence[Score]) -> go.Figure:
    figure = go.Figure()
    levels = list(dict.fromkeys(noise_of(score) for score in scores))
    for k, level in enumerate(levels):
        some = [s for s in scores if noise_of(s) == level and np.isfinite(s.torque_error)]
        figure.add_trace(
            go.Scatter(
                x=[s.seconds for s in some],
                y=[s.torque_error for s in some],
                error_y={
                    "type": "data",
                    "array": [s.torque_error_worst - s.torque_error for s in some],
                    "arrayminus": [0.0 for _ in some],
                    "thickness": 1,
                },
                text=[s.estimator for s in some],
                name=level,
                mode="markers+text" if k == 0 else "markers",
                textposition="bottom center",
                hovertemplate="%{text}: %{x:.3g} s, %{y:.3g}<extra>" + level + "</extra>",
                marker={"color": colour(k), "size": 9},
            )
        )
    figure.update_xaxes(type="log", title_text="seconds an estimate", exponentformat="power")
    figure.update_yaxes(type="log", title_text="torque error, median (bar: 95 %)", exponentformat="power")
    figure.update_layout(
        height=480, margin={"l": 60, "r": 20, "t": 20, "b": 50}, legend={"orientation": "h", "y": -0.2}
    )
    return figure


def _honesty(scores: Sequence[Score]) -> go.Figure:
    """Coverage and efficiency, a bar an estimator and level."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=["coverage of 95 % intervals", "efficiency"])
    levels = list(dict.fromkeys(noise_of(score) for score in scores))
    for k, level in enumerate(levels):
        some = [s for s in scores if noise_of(s) == level]
        for column, values in enumerate(([s.coverage for s in some], [s.efficiency for s in some])):
            bar = go.Bar(
                x=[s.estimator for s in some], y=values, name=level, legendgroup=level, showlegend=column == 0,
                marker={"color": colour(k)},
            )  # fmt: skip
            figure.add_trace(bar, row=1, col=column + 1)
    figure.add_hline(y=0.95, line={"dash": "dash", "color": "#D55E00"}, row=1, col=1)
    figure.add_hline(y=1.0, line={"dash": "dash", "color": "#D55E00"}, row=1, col=2)
    figure.update_yaxes(type="log", row=1, col=2)
    figure.update_layout(
        height=420, margin={"l": 50, "r": 20, "t": 40, "b": 50}, legend={"orientation": "h", "y": -0.3}
    )
    return figure


def _maps(scores: Sequence[Score], table: Table, rows: Rows) -> go.Figure:
    """Noise runs by initial guesses at the highest level, coloured by how each run ended."""
    level = noise_of(scores[-1])
    some = [score for score in scores if noise_of(score) == level]
    lines = -(-len(some) // _MAPS_A_ROW)
    figure = make_subplots(
        rows=lines,
        cols=_MAPS_A_ROW,
        subplot_titles=[s.estimator for s in some],
        vertical_spacing=0.4 / max(lines, 1) / 2,
    )
    share = np.linspace(0.0, 1.0, len(STATUSES) + 1)
    scale = [[share[k + side], shade] for k, shade in enumerate(_STATUS_COLOURS) for side in (0, 1)]
    for k, score in enumerate(some):
        at = rows[_key(score)]
        seeds, guesses = table["seed"][at], table["guess"][at]
        ended = np.full((int(seeds.max()) + 1, int(guesses.max()) + 1), np.nan)
        ended[seeds, guesses] = [STATUSES.index(status) for status in table["status"][at]]
        error = np.full(ended.shape, np.nan)
        error[seeds, guesses] = table["torque_error"][at]
        figure.add_trace(
            go.Heatmap(
                z=ended, customdata=error, zmin=-0.5, zmax=len(STATUSES) - 0.5, colorscale=scale, xgap=1, ygap=1,
                showscale=k == 0,
                colorbar={"tickvals": list(range(len(STATUSES))), "ticktext": list(STATUSES)},
                hovertemplate="guess %{x}, noise run %{y}: torque error %{customdata:.3g}<extra></extra>",
            ),
            row=k // _MAPS_A_ROW + 1,
            col=k % _MAPS_A_ROW + 1,
        )  # fmt: skip
    figure.update_layout(height=80 + 230 * lines, margin={"l": 40, "r": 20, "t": 40, "b": 30})
    return figure


def _failures(table: Table) -> Html:
    """What failed estimators said, how often."""
    counts: dict[tuple[str, str], int] = {}
    for estimator, status, message in zip(table["estimator"], table["status"], table["message"], strict=True):
        if status == "failed":
            counts[str(estimator), str(message)] = counts.get((str(estimator), str(message)), 0) + 1
    if not counts:
        return paragraph("No run failed.")
    most = sorted(counts.items(), key=lambda item: -item[1])[:30]
    return as_table(("estimator", "runs", "what it said"), [(who, count, what) for (who, what), count in most])


def _group_section(name: str, title: str, scores: list[Score], table: Table, rows: Rows) -> Html:
    return section(
        name,
        title,
        _scores_table(scores),
        heading("Errors: quartiles, and the middle 90 %"),
        plot(_boxes(scores, table, rows)),
        heading("Error against time"),
        plot(_against_time(scores)),
        heading("How honest the intervals are, and how good the estimate could be"),
        plot(_honesty(scores)),
        heading(f"Convergence at {noise_of(scores[-1])}"),
        plot(_maps(scores, table, rows)),
    )


def campaign_page(campaign: Campaign) -> Html:
    """The page."""
    study, table = campaign.study, campaign.table
    rows = groups_of(table)
    body: list[str] = [paragraph(_LEGEND.format(limit=100 * study.converged.torque_error))]
    contents: dict[str, str] = {}
    for title, group in groupby(campaign.scores, key=_heading):
        name = fresh("group")
        contents[name] = title
        body.append(_group_section(name, title, list(group), table, rows))
    body.append(section("failures", "What failed runs said", _failures(table)))
    contents["failures"] = "Failures"
    subtitle = f"{len(table['status'])} runs"
    return page(f"Benchmark {study.name}", body, subtitle=subtitle, contents=contents)


def write_campaign_report(campaign: Campaign, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, campaign_page(campaign))
