"""An excitation against the robot's limits, and how the design got there."""

from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..dynamics import inverse_dynamics
from ..excitation.constraints import assumed_limits
from ..excitation.design import Excitation
from ..robot.robot import Robot
from .plots import colour, page, write_text

_PANELS = ("position", "velocity", "acceleration", "torque")


def _share_of_limits(robot: Robot, excitation: Excitation) -> tuple[np.ndarray, list[np.ndarray]]:
    """Position within its range (−1 … 1) and the rest as a share of the limit, so that all joints fit one axis."""
    t = np.linspace(0.0, excitation.duration, 1001)
    q, qd, qdd = excitation.sample(t)
    limits = robot.limits
    bounded = np.isfinite(limits.upper) & np.isfinite(limits.lower)
    lower, upper = np.where(bounded, limits.lower, -np.pi), np.where(bounded, limits.upper, np.pi)
    position = (q - 0.5 * (upper + lower)) / (0.5 * (upper - lower))
    tau = inverse_dynamics(robot, q, qd, qdd)
    rates = [(qd, limits.velocity), (qdd, limits.acceleration), (tau, limits.torque)]
    shares = [x / np.where(np.isfinite(limit), limit, np.abs(x).max(axis=0) + 1e-12) for x, limit in rates]
    return t, [position, *shares]


def _motion_figure(robot: Robot, excitation: Excitation) -> go.Figure:
    t, shares = _share_of_limits(assumed_limits(robot)[0], excitation)
    titles = [f"{panel}, share of its limit" for panel in _PANELS]
    figure = make_subplots(rows=2, cols=2, subplot_titles=titles, shared_xaxes=True, vertical_spacing=0.1)
    for k, name in enumerate(robot.dof_names):
        for panel, share in enumerate(shares):
            line = go.Scatter(
                x=t,
                y=share[:, k],
                name=name,
                legendgroup=name,
                showlegend=panel == 0,
                line={"color": colour(k), "width": 1.6},
            )
            figure.add_trace(line, row=panel // 2 + 1, col=panel % 2 + 1)
    for panel in range(4):
        for bound in (-1.0, 1.0):
            figure.add_hline(y=bound, line={"color": "#D55E00", "dash": "dash"}, row=panel // 2 + 1, col=panel % 2 + 1)
    figure.update_xaxes(title_text="time / s", row=2)
    figure.update_layout(height=720, margin={"l": 50, "r": 20, "t": 50, "b": 50}, legend={"orientation": "h"})
    return figure


def _history_figure(excitation: Excitation) -> go.Figure:
    steps = [step for step, _, _ in excitation.history]
    values = [value if np.isfinite(value) else None for _, value, _ in excitation.history]
    worst = [max(amount, 0.0) for _, _, amount in excitation.history]
    figure = make_subplots(specs=[[{"secondary_y": True}]])
    figure.add_trace(go.Scatter(x=steps, y=values, name=f"{excitation.criterion}, within limits", mode="lines+markers"))
    beyond = go.Scatter(x=steps, y=worst, name="worst violation before repair", mode="lines+markers")
    figure.add_trace(beyond, secondary_y=True)
    figure.update_xaxes(title_text="gradients")
    figure.update_yaxes(title_text=excitation.criterion, secondary_y=False)
    figure.update_yaxes(title_text="share beyond a limit", secondary_y=True)
    figure.update_layout(height=340, margin={"l": 60, "r": 60, "t": 30, "b": 50}, legend={"orientation": "h"})
    return figure


def write_excitation_plot(robot: Robot, excitation: Excitation, path: Path) -> None:
    """The joints against their limits and the course of the criterion, as one HTML page."""
    figures = "".join(f"<tr><th>{name}</th><td>{value:.4g}</td></tr>" for name, value in excitation.figures.items())
    worst = "".join(f"<li>{escape(str(violation))}</li>" for violation in excitation.violations)
    notes = "".join(f"<li>{escape(note)}</li>" for note in excitation.notes)
    title = f"Excitation of {escape(robot.name)}"
    head = (
        f"<h1>{title}</h1><p>{excitation.duration:g} s a period; {escape(excitation.message)}.</p>"
        f"<h2>Criteria</h2><table>{figures}</table><h2>Limits, at their tightest</h2><ul>{worst}</ul>"
        + (f"<h2>Notes</h2><ul>{notes}</ul>" if notes else "")
    )
    parts = [head, _motion_figure(robot, excitation), "<h2>Course of the design</h2>", _history_figure(excitation)]
    write_text(path, page(title, parts))
