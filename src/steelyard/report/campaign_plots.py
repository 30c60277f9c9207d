"""Pictures of a campaign: spread of errors, error against time, honesty of intervals, convergence maps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from ..evaluation.campaign.summary import STATUSES, Score
from ..evaluation.campaign.table import Table
from .plots import colour, label, styled

Array = NDArray[np.float64]
ERRORS = {
    "torque_error": "torque error, validation (%)",
    "position_error": "position error, simulated again (%)",
    "parameter_error": "error of base parameters (%)",
}
_STATUS_COLOURS = {"wrong": "#E69F00", "not converged": "#56B4E9", "failed": "#D55E00"}
_STATUS_SYMBOLS = {"wrong": "x", "not converged": "circle", "failed": "square"}
_MAPS_A_ROW = 4
# A name on the picture of error against time needs so much of its width and height.
_ROOM = (0.05, 0.05)


@dataclass(frozen=True, eq=False)
class Entry:
    """An estimator at a level of noise: the name it has on the page, its score and its rows."""

    name: str
    level: str
    score: Score
    rows: Table

    @property
    def short(self) -> str:
        return label(self.name, 34)


def _levels(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.level for entry in entries))


def _names(entries: Sequence[Entry]) -> list[str]:
    """From top to bottom."""
    return list(dict.fromkeys(entry.short for entry in entries))


def _legend(figure: go.Figure) -> go.Figure:
    """A legend in a line at the top, below the buttons."""
    y = 1.0 - 26.0 / figure.layout.height
    legend = {"orientation": "h", "yanchor": "top", "y": y, "yref": "container", "x": 0.0}
    return figure.update_layout(showlegend=True, legend=legend)


def _ticks(values: Sequence[float] | Array) -> dict[str, object]:
    """A logarithmic axis with 1, 2, 5, 10 where these are readable, else decades, as many as are."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known) & (known > 0)]
    decades = float(np.ptp(np.log10(known))) if len(known) else 0.0
    return {"type": "log", "dtick": "D2" if decades < 1.7 else max(1, round(decades / 3)), "tickformat": "~g"}


def _lanes(names: Sequence[str], levels: int, least: int) -> int:
    """The height of a figure with a lane an estimator."""
    return 130 + max(least, len(names) * (10 + 8 * levels))


def boxes(entries: Sequence[Entry]) -> go.Figure:
    """Median, quartiles and the middle 90 % of every error: a lane an estimator, a box a level."""
    names, levels = _names(entries), _levels(entries)
    figure = make_subplots(
        rows=1, cols=len(ERRORS), shared_yaxes=True, horizontal_spacing=0.02, subplot_titles=list(ERRORS.values())
    )
    for panel, error in enumerate(ERRORS):
        seen: list[float] = []
        for k, level in enumerate(levels):
            lanes, five = [], []
            for entry in (one for one in entries if one.level == level):
                values = 100.0 * entry.rows[error]
                values = values[np.isfinite(values) & (values > 0)]
                if len(values):
                    lanes.append(entry.short)
                    five.append(np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)))
                    seen += five[-1].tolist()
            if not five:
                continue
            low, q1, middle, q3, high = np.array(five).T
            box = go.Box(
                y=lanes, lowerfence=low, q1=q1, median=middle, q3=q3, upperfence=high, name=level, legendgroup=level,
                offsetgroup=level, showlegend=panel == 0, marker={"color": colour(k)}, line={"width": 1.2},
                orientation="h",
            )  # fmt: skip
            figure.add_trace(box, row=1, col=panel + 1)
        figure.update_xaxes(**_ticks(seen), tickangle=0, row=1, col=panel + 1)
    styled(figure, _lanes(names, len(levels), 160), t=90, l=20)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1])
    figure.update_layout(boxmode="group", boxgap=0.25, boxgroupgap=0.15)
    return _legend(figure)


def _write_names(figure: go.Figure, names: Sequence[str], x: Array, y: Array) -> None:
    """Names beside points of logarithmic axes, where there is room; the rest is told when it is pointed at."""
    room = [share * max(1e-9, float(np.ptp(values))) for share, values in zip(_ROOM, (x, y), strict=True)]
    written: list[tuple[float, float]] = []
    for name, a, b in zip(names, x.tolist(), y.tolist(), strict=True):
        if any(abs(a - c) < room[0] and abs(b - d) < room[1] for c, d in written):
            continue
        written.append((a, b))
        figure.add_annotation(
            x=a, y=b, text=name, textangle=-35, showarrow=False, xanchor="right", yanchor="top", xshift=3, yshift=-4
        )


def against_time(entries: Sequence[Entry]) -> go.Figure:
    """Median torque error over the milliseconds of an estimate; the bar goes to what 95 % of the runs are below."""
    figure = go.Figure()
    for k, level in enumerate(_levels(entries)):
        some = [one for one in entries if one.level == level and np.isfinite(one.score.torque_error)]
        x, y = ([1e3 * one.score.seconds for one in some], [100.0 * one.score.torque_error for one in some])
        worst = [100.0 * one.score.torque_error_worst for one in some]
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                error_y={
                    "type": "data",
                    "array": [b - a for a, b in zip(y, worst, strict=True)],
                    "arrayminus": [0.0] * len(y),
                    "thickness": 1,
                },
                text=[one.short for one in some],
                name=level,
                mode="markers",
                hovertemplate="%{text}: %{x:.3g} ms, %{y:.3g} %<extra>" + level + "</extra>",
                marker={"color": colour(k), "size": 9},
            )
        )
        if k == 0:
            _write_names(figure, [one.short for one in some], np.log10(np.maximum(x, 1e-9)), np.log10(y))
    styled(figure, 520, t=74, b=60)
    figure.update_annotations(font_size=10.5)
    figure.update_xaxes(title_text="milliseconds an estimate", **_ticks([1e3 * one.score.seconds for one in entries]))
    errors = [x for one in entries for x in (one.score.torque_error, one.score.torque_error_worst)]
    figure.update_yaxes(title_text="torque error, median (bar: 95 %), %", **_ticks(errors))
    return _legend(figure)


_HONEST: dict[str, Callable[[Score], float]] = {
    "coverage of 95 % intervals (%)": lambda score: 100.0 * score.coverage,
    "efficiency (%)": lambda score: 100.0 * score.efficiency,
    "bias, in least standard deviations": lambda score: score.bias,
}


def honesty(entries: Sequence[Entry]) -> go.Figure:
    """Coverage, efficiency and bias: a lane an estimator, a dot a level, a dashed line where each should be."""
    names, levels = _names(entries), _levels(entries)
    figure = make_subplots(
        rows=1, cols=len(_HONEST), shared_yaxes=True, horizontal_spacing=0.02, subplot_titles=list(_HONEST)
    )
    for panel, value in enumerate(_HONEST.values()):
        for k, level in enumerate(levels):
            some = [one for one in entries if one.level == level]
            dots = go.Scatter(
                x=[value(one.score) for one in some], y=[one.short for one in some], name=level, legendgroup=level,
                showlegend=panel == 0, mode="markers", marker={"color": colour(k), "size": 9},
                hovertemplate="%{y}: %{x:.3g}<extra>" + level + "</extra>",
            )  # fmt: skip
            figure.add_trace(dots, row=1, col=panel + 1)
    styled(figure, _lanes(names, 2, 160), t=90, l=20)
    for panel, where in enumerate((95.0, 100.0)):
        figure.add_vline(x=where, line={"dash": "dash", "color": "#D55E00", "width": 1}, row=1, col=panel + 1)
    for panel, value in enumerate(_HONEST.values()):
        if panel:
            figure.update_xaxes(**_ticks([value(one.score) for one in entries]), row=1, col=panel + 1)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], showgrid=True)
    return _legend(figure)


def _map(entry: Entry) -> tuple[Array, Array, NDArray[np.str_]]:
    """Guesses from the best to the worst, the torque error of each run in percent, and how each ended."""
    rows = entry.rows
    guesses, first = np.unique(rows["guess"], return_index=True)
    order = np.argsort(rows["guess_torque_error"][first], kind="stable")
    column = {guess: k for k, guess in enumerate(guesses[order].tolist())}
    at = (rows["seed"], np.array([column[guess] for guess in rows["guess"].tolist()]))
    error = np.full((int(rows["seed"].max()) + 1, len(guesses)), np.nan)
    ended = np.full(error.shape, "", dtype="U16")
    error[at], ended[at] = 100.0 * rows["torque_error"], rows["status"]
    return 100.0 * rows["guess_torque_error"][first][order], error, ended


def _marks(ended: NDArray[np.str_], cell: float, said: set[str]) -> list[go.Scatter]:
    """Marks on the runs that did not converge."""
    found = []
    for status in STATUSES[1:]:
        seed, guess = np.nonzero(ended == status)
        if len(seed):
            size = float(np.clip(0.5 * cell, 2.5, 6.0))
            mark = {"symbol": _STATUS_SYMBOLS[status], "size": size, "color": _STATUS_COLOURS[status]}
            found.append(
                go.Scatter(
                    x=guess, y=seed, mode="markers", marker=mark, name=status, legendgroup=status,
                    showlegend=status not in said, hovertemplate=f"{status}<extra></extra>",
                )
            )  # fmt: skip
            said.add(status)
    return found


def maps(entries: Sequence[Entry]) -> go.Figure:
    """Noise runs by initial guesses, from the best guess to the worst: the error of each run, and how it ended."""
    lines = -(-len(entries) // _MAPS_A_ROW)
    found = [_map(entry) for entry in entries]
    most = max((error.shape[0] for _, error, _ in found), default=1)
    high = float(np.clip(7.0 * most, 110.0, 360.0))  # pixels of a map
    whole = lines * (high + 60.0)
    figure = make_subplots(
        rows=lines,
        cols=_MAPS_A_ROW,
        subplot_titles=[f"{label(one.name, 26)}: {100 * one.score.converged:.3g} %" for one in entries],
        vertical_spacing=60.0 / whole,
        horizontal_spacing=0.04,
    )
    known = np.concatenate([error[np.isfinite(error) & (error > 0)] for _, error, _ in found] or [np.ones(1)])
    least, greatest = np.log10(np.quantile(known, (0.01, 0.95))) if len(known) else (0.0, 1.0)
    ticks = [x for x in 10.0 ** np.arange(-6, 5) for x in (x, 2 * x, 5 * x) if least <= np.log10(x) <= greatest]
    bar = {"title": {"text": "torque<br>error, %"}, "tickvals": np.log10(ticks), "ticktext": [f"{x:g}" for x in ticks]}
    bar |= {"lenmode": "pixels", "len": min(260.0, high + 20.0), "y": 1.0, "yanchor": "top"}
    said: set[str] = set()
    for k, (starts, error, ended) in enumerate(found):
        where = {"row": k // _MAPS_A_ROW + 1, "col": k % _MAPS_A_ROW + 1}
        heat = go.Heatmap(
            z=np.round(np.log10(np.where(error > 0, error, np.nan)), 3), zmin=least, zmax=greatest,
            colorscale="Viridis", showscale=k == 0, colorbar=bar, hoverongaps=False,
            text=np.round(np.broadcast_to(starts, error.shape), 1),
            hovertemplate="noise run %{y}, guess %{x} (its error: %{text} %)<br>10^%{z} %<extra></extra>",
        )  # fmt: skip
        figure.add_trace(heat, **where)
        for dots in _marks(ended, high / error.shape[0], said):
            figure.add_trace(dots, **where)
    styled(figure, int(whole) + 110, t=90)
    across = max((error.shape[1] for _, error, _ in found), default=1)
    figure.update_xaxes(showgrid=False, tick0=0, dtick=-(-across // 5))
    figure.update_yaxes(showgrid=False, zeroline=False, tick0=0, dtick=-(-most // 6))
    return _legend(figure)
