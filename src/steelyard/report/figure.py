"""A picture of an identification for a page of text: torques as measured, as the model had them, and as identified."""

from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError
from ..evaluation.study import Outcome
from ..files import whole_or_not
from ..identification.model import sliced_torque

Array = NDArray[np.float64]
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 150, 56, 44, 22  # of a panel, px
_POINTS = 380  # two pixels each
_JOINTS = 3
_STYLES = (
    ("measured", "#9aa0a6", 4.0, ""),
    ("model as it was", "#d9822b", 1.4, "5 3"),
    ("identified", "#1f5fbf", 1.4, ""),
)


def _shown(outcome: Outcome) -> tuple[Recording, tuple[Array, Array, Array]]:
    """The first recording that judged, with its torques measured, nominal and identified."""
    one = (outcome.testing or outcome.training)[0]
    if not isinstance(one.recording, Recording):
        raise DataError("a picture is made of a recording in memory")
    found = outcome.estimate
    old, new = (sliced_torque(found.model, x, one.recording, one.load) for x in (found.model.nominal, found.parameters))
    return one.recording, (one.recording.tau, old, new)


def _most_telling(torques: tuple[Array, Array, Array]) -> list[int]:
    """Joints whose torque the model had worst, in their own order."""
    tau, old, _ = torques
    wrong = np.sqrt(np.mean((tau - old) ** 2, axis=0))
    return sorted(np.argsort(-wrong)[:_JOINTS].tolist())


def _path(t: Array, y: Array, low: float, high: float, top: float) -> str:
    x = _LEFT + (_WIDTH - _LEFT - 10) * (t - t[0]) / (t[-1] - t[0])
    down = top + _HEIGHT * (high - y) / (high - low)
    return "M" + " L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, down, strict=True))


def _panel(t: Array, rows: list[Array], name: str, unit: str, top: float) -> list[str]:
    low, high = min(float(row.min()) for row in rows), max(float(row.max()) for row in rows)
    low, high = (low - 1, high + 1) if high == low else (low - 0.05 * (high - low), high + 0.05 * (high - low))
    parts = [
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - 10}" height="{_HEIGHT}" fill="none" stroke="#cccccc"/>',
        f'<text x="{_LEFT + 8}" y="{top + 16}" font-weight="bold">{escape(name)}</text>',
    ]
    for value in (low, high):
        y = top + (_HEIGHT if value == low else 12)
        parts.append(f'<text x="{_LEFT - 6}" y="{y:.0f}" text-anchor="end">{value:.3g}</text>')
    parts.append(f'<text x="{_LEFT - 6}" y="{top + _HEIGHT / 2:.0f}" text-anchor="end">{escape(unit)}</text>')
    for row, (_, colour, width, dash) in zip(rows, _STYLES, strict=True):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<path d="{_path(t, row, low, high, top)}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'
        )
    return parts


def write_figure(outcome: Outcome, path: Path) -> None:
    """An SVG of the joints that the model had worst, on what was held out."""
    recording, torques = _shown(outcome)
    pick = np.linspace(0, len(recording) - 1, min(_POINTS, len(recording))).astype(int)
    chosen, robot = _most_telling(torques), outcome.robot
    linear = robot.layout.linear_dofs
    found = outcome.estimate
    judged = outcome.validation
    said = f"{robot.name}: torque on {outcome.held_out}" if outcome.testing else f"{robot.name}: torque"
    if judged is not None:
        said += f"; error {100 * judged.nominal_relative:.1f} % before, {100 * judged.relative:.1f} % by {found.method}"
    height = _TOP + len(chosen) * (_HEIGHT + _GAP) + 14
    body = [f'<text x="{_LEFT}" y="16" font-size="14">{escape(said)}</text>']
    for k, (label, colour, width, dash) in enumerate(_STYLES):
        x, dashed = _LEFT + 150 * k, f' stroke-dasharray="{dash}"' if dash else ""
        body.append(f'<path d="M{x},31 h26" stroke="{colour}" stroke-width="{width}"{dashed}/>')
        body.append(f'<text x="{x + 32}" y="35">{label}</text>')
    for k, j in enumerate(chosen):
        top = _TOP + k * (_HEIGHT + _GAP)
        dof = robot.dof_names[j]
        rows = [tau[pick, j] for tau in torques]
        body += _panel(recording.t[pick], rows, dof, "N" if dof in linear else "N·m", top)
    seconds = recording.t[-1] - recording.t[0]
    body.append(f'<text x="{_WIDTH - 10}" y="{height - 8}" text-anchor="end">{seconds:.1f} s</text>')
    size = f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    background = f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    with whole_or_not(path) as temporary:
        temporary.write_text("\n".join([head, background, *body, "</svg>", ""]), encoding="utf-8")
