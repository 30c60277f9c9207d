"""Measured, predicted and residual torque, joint by joint, over all recordings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from .markup import Html, data, fresh, heading, html, join, key, number, percent, plot, section
from .plots import colour, dash, envelope, envelope_edges, envelope_times, long_line, packed, styled
from .subject import Piece, Subject

Single = NDArray[np.float32]
# Bytes of the page that torques may take; base64 takes four bytes for three.
_BUDGET = 4.5e6
_MOST = 40_000


def points_for(joints: int) -> int:
    """Values a signal, so that all signals of all joints keep within the budget."""
    return int(min(_MOST, _BUDGET / (joints * 3 * 4 * 4 / 3)))


def _shares(pieces: Sequence[Piece], most: int) -> list[int]:
    rows = sum(len(piece.t) for piece in pieces)
    return [max(64, most * len(piece.t) // max(rows, 1)) if rows > most else len(piece.t) for piece in pieces]


def _times(pieces: Sequence[Piece], shares: Sequence[int]) -> np.ndarray:
    parts = [np.append(times := envelope_times(p.t, most), times[-1]) for p, most in zip(pieces, shares, strict=True)]
    return np.concatenate(parts)


def _drawn(values: Sequence[np.ndarray], shares: Sequence[int]) -> Single:
    """Envelopes end to end, with a gap after each."""
    parts = [np.append(envelope(x, most), np.float32(np.nan)) for x, most in zip(values, shares, strict=True)]
    return np.concatenate(parts)


def _held_out_spans(pieces: Sequence[Piece]) -> list[dict]:
    return [
        {
            "type": "rect", "x0": float(p.t[0]), "x1": float(p.t[-1]), "y0": 0, "y1": 1, "yref": "paper",
            "fillcolor": "rgba(230,159,0,0.13)", "line": {"width": 0}, "layer": "below",
        }
        for p in pieces
        if p.held_out
    ]  # fmt: skip


def _figure(subject: Subject, pieces: Sequence[Piece], j: int, x: str, shares: Sequence[int]) -> go.Figure:
    unit = "N" if subject.robot.dof_names[j] in subject.robot.layout.linear_dofs else "N·m"
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.62, 0.38], vertical_spacing=0.06)
    signals: tuple[tuple[str, list[np.ndarray], int, dict[str, Any]], ...] = (
        ("measured", [p.recording.tau[:, j] for p in pieces], 1, {"ink": "neutral", "width": 2.4}),
        ("predicted", [p.predicted[:, j] for p in pieces], 1, {"color": colour(j), "width": 1.3, "dash": dash(j)}),
        ("residual", [p.residual[:, j] for p in pieces], 2, {"color": colour(j), "width": 1.0, "dash": dash(j)}),
    )
    for name, values, row, style in signals:
        figure.add_trace(long_line(x, _drawn(values, shares), name, **style), row=row, col=1)
    styled(figure, 300, t=8, b=40)
    figure.update_layout(shapes=_held_out_spans(pieces), hovermode="x unified")
    figure.update_yaxes(title_text=unit, row=1)
    figure.update_yaxes(title_text="residual", row=2, nticks=4)
    figure.update_xaxes(title_text="time / s", row=2)
    figure.update_xaxes(range=[float(pieces[0].t[0]), float(pieces[-1].t[-1])])
    return figure


def torque_section(subject: Subject, pieces: Sequence[Piece]) -> Html:
    """A panel a joint; zooming into one shows more of what was recorded."""
    n = subject.robot.n
    shares = _shares(pieces, points_for(n))
    x = fresh("time")
    parts: list[str] = [data(packed(_times(pieces, shares)), x)]
    scores = {score.joint: score for score in subject.validation.joints} if subject.validation else {}
    for j, dof in enumerate(subject.robot.dof_names):
        said = ""
        if dof in scores:
            s = scores[dof]
            said = (
                f"RMSE on {subject.held_out}: {number(s.rmse, 3)} {s.unit} ({percent(s.relative)} of the torque); "
                f"nominal model {number(s.nominal_rmse, 3)} {s.unit}"
            )
        panel = join(heading(dof, said), plot(_figure(subject, pieces, j, x, shares)))
        parts.append(Html(f'<div class="joint" data-joint="{j}">{html(panel)}</div>'))
    items = [("line", "var(--neutral)", "measured"), ("line", "var(--accent)", "predicted, in the joint's colour")]
    if any(piece.held_out for piece in pieces):
        items.append(("box", "var(--test)", "held out: the model has not seen it"))
    size = max(envelope_edges(len(p.t), most)[0] for p, most in zip(pieces, shares, strict=True))
    thin = f" Drawn as envelopes: the lowest and the highest of every {size} rows." if size > 1 else ""
    lead = f"Drag in a plot to zoom, double-click to see all again.{thin}"
    return section("torque", "Torque: measured, predicted, residual", key(items), *parts, lead=lead)
