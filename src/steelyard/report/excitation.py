"""An excitation against the robot's limits, and how the design got there."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..dynamics import inverse_dynamics
from ..excitation.constraints import assumed_limits
from ..excitation.design import Excitation
from ..robot.robot import Robot
from .markup import Html, listed, paragraph, plot, section, table
from .motion_section import limits_figure, limits_table, shares_of_limits
from .page import page, write_text
from .plots import colour, label, styled


def _history_figure(excitation: Excitation) -> go.Figure:
    steps = [step for step, _, _ in excitation.history]
    values = [value if np.isfinite(value) else None for _, value, _ in excitation.history]
    worst = [max(amount, 0.0) for _, _, amount in excitation.history]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for row, (y, name) in enumerate(((values, "criterion"), (worst, "worst violation"))):
        style = {"line": {"color": colour(row), "width": 1.5}, "marker": {"size": 5}}
        figure.add_trace(go.Scatter(x=steps, y=y, name=name, mode="lines+markers", **style), row=row + 1, col=1)
    styled(figure, 420)
    figure.update_xaxes(title_text="gradients", row=2)
    figure.update_yaxes(title_text=label(excitation.criterion), row=1)
    figure.update_yaxes(title_text="share beyond a limit", rangemode="tozero", row=2)
    return figure


def excitation_page(robot: Robot, excitation: Excitation) -> Html:
    """The joints against their limits and the course of the criterion."""
    t = np.linspace(0.0, excitation.duration, 1001)
    q, qd, qdd = excitation.sample(t)
    limited = assumed_limits(robot)[0]
    motion = (q, qd, qdd, inverse_dynamics(robot, q, qd, qdd))
    times, figure = limits_figure(limited, t, shares_of_limits(limited, *motion))
    figures = [(name, float(value)) for name, value in excitation.figures.items()]
    notes = [section("notes", "Notes", listed(excitation.notes))] if excitation.notes else []
    body = [
        section(
            "criteria",
            "Criteria",
            paragraph(f"{excitation.duration:g} s a period; {excitation.message}."),
            table(("criterion", "value"), figures),
        ),
        section(
            "limits",
            "Limits",
            listed([str(violation) for violation in excitation.violations]),
            times,
            plot(figure, "Dashed: the limit; where none is known, half a turn, or the motion's own peak."),
            limits_table(limited, *motion),
        ),
        section("course", "Course of the design", plot(_history_figure(excitation))),
        *notes,
    ]
    contents = {"criteria": "Criteria", "limits": "Limits", "course": "Course"} | ({"notes": "Notes"} if notes else {})
    return page(f"Excitation of {robot.name}", body, contents=contents, joints=robot.dof_names)


def write_excitation_plot(robot: Robot, excitation: Excitation, path: Path) -> None:
    """The joints against their limits and the course of the criterion, as one HTML page."""
    write_text(path, excitation_page(robot, excitation))
