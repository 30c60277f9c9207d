"""How far the motion went, against what the joints may do."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from ..data.recording import Recording
from ..excitation.design import Excitation
from ..robot.robot import Robot
from .markup import Cell, Html, Toned, data, fresh, join, listed, paragraph, plot, section, table
from .plots import colour, dash, envelope, envelope_times, long_line, packed, styled
from .subject import Subject

Array = NDArray[np.float64]
PANELS = ("position", "velocity", "acceleration", "torque")
_BUDGET = 2.5e6
_MOST = 12_000


def shares_of_limits(robot: Robot, q: Array, qd: Array, qdd: Array, tau: Array) -> list[Array]:
    """Position within its range (−1 … 1) and the rest as a share of the limit, so that all joints fit one axis.

    Where no limit is known, a position is a share of half a turn, and a rate one of its own peak.
    """
    limits = robot.limits
    bounded = np.isfinite(limits.upper) & np.isfinite(limits.lower)
    lower, upper = np.where(bounded, limits.lower, -np.pi), np.where(bounded, limits.upper, np.pi)
    position = (q - 0.5 * (upper + lower)) / (0.5 * (upper - lower))
    rates = ((qd, limits.velocity), (qdd, limits.acceleration), (tau, limits.torque))
    return [position, *(_share(x, limit) for x, limit in rates)]


def _share(x: Array, limit: Array) -> Array:
    return np.asarray(x / np.where(np.isfinite(limit), limit, np.abs(x).max(axis=0, initial=0.0) + 1e-12))


def limits_figure(robot: Robot, t: Array, shares: Sequence[Array]) -> tuple[Html, go.Figure]:
    """Four panels with all joints, the limits at ±1; and the times as they stand in the page."""
    most = int(min(_MOST, _BUDGET / (4 * robot.n * 4 * 4 / 3)))
    x = fresh("time")
    figure = make_subplots(
        rows=4, cols=1, shared_xaxes=True, vertical_spacing=0.045, subplot_titles=[f"{p} / its limit" for p in PANELS]
    )
    for j, dof in enumerate(robot.dof_names):
        for panel, share in enumerate(shares):
            line = long_line(x, envelope(share[:, j], most), dof, j, color=colour(j), dash=dash(j), width=1.3)
            figure.add_trace(line, row=panel + 1, col=1)
    for panel in range(4):
        for bound in (-1.0, 1.0):
            figure.add_hline(y=bound, line={"color": "#D55E00", "dash": "dash", "width": 1}, row=panel + 1, col=1)
    figure.update_annotations(x=0.0, xanchor="left")
    styled(figure, 820, t=34)
    figure.update_xaxes(title_text="time / s", row=4)
    figure.update_xaxes(range=[float(t[0]), float(t[-1])])
    return data(packed(envelope_times(t, most)), x), figure


def _used(share: float) -> Cell:
    return Toned(f"{100 * share:.4g}", "bad", 100 * share) if share > 1.0 + 1e-9 else 100.0 * share


def limits_table(robot: Robot, q: Array, qd: Array, qdd: Array, tau: Array) -> Html:
    """Peaks of every joint, and which share of its limit each takes; nothing where no limit is known."""
    limits, rows = robot.limits, list[tuple[Cell, ...]]()
    for j, dof in enumerate(robot.dof_names):
        row: list[Cell] = [dof, float(q[:, j].min()), float(q[:, j].max())]
        lower, upper = limits.lower[j], limits.upper[j]
        both = np.isfinite(lower) and np.isfinite(upper)
        row.append(_used(float(np.ptp(q[:, j]) / (upper - lower))) if both else None)
        for x, limit in ((qd, limits.velocity), (qdd, limits.acceleration), (tau, limits.torque)):
            peak = float(np.abs(x[:, j]).max())
            row += [peak, _used(peak / limit[j]) if np.isfinite(limit[j]) else None]
        rows.append(tuple(row))
    columns = ["joint", "from", "to", "% of range"]
    columns += [word for kind in ("velocity", "acceleration", "torque") for word in (f"peak {kind}", "% of limit")]
    return table(columns, rows, "what the motion used, SI units", joints=True)


def designed(trajectory: Excitation) -> Html:
    """What the design of the trajectory says of itself."""
    rows = [(name, float(value)) for name, value in trajectory.figures.items()]
    return join(
        paragraph(f"The trajectory was designed: {trajectory.message}; period {trajectory.duration:g} s."),
        table(("criterion", "value"), rows, "criteria of the design"),
        listed([str(violation) for violation in trajectory.violations]),
    )


def motion_section(subject: Subject, trajectory: Excitation | None = None) -> Html:
    """The motion that was learnt from, and what it makes visible."""
    robot, found = subject.robot, subject.estimate.data_set
    given = [one.recording for one in subject.training if isinstance(one.recording, Recording)]
    longest = max(given, key=len)
    assert longest.qd is not None
    assert longest.qdd is not None
    motion = (longest.q, longest.qd, longest.qdd, longest.tau)
    t = longest.t - longest.t[0]
    times, figure = limits_figure(robot, t, shares_of_limits(robot, *motion))
    lead = (
        f"The data show {found.rank} of {found.base_rank} base parameters; condition number {found.condition:.4g} with "
        "columns of length one (below 100 is good, above 1000 says that some parameters are hardly told apart)."
    )
    norms = [(name, float(norm)) for name, norm in sorted(found.column_norms.items(), key=lambda item: item[1])]
    weakest = table(("base parameter", "column norm"), norms, "how much of each parameter the data hold, least first")
    return section(
        "excitation",
        "Excitation against limits",
        times,
        limits_table(robot, *motion),
        plot(figure, "Dashed: the limit; where none is known, half a turn, or the motion's own peak."),
        weakest,
        designed(trajectory) if trajectory is not None else "",
        lead=lead,
    )
