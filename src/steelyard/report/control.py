"""Pictures of control: learning, poles over a gain, and contacts in residuals, as SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from ..control.adaptation import Adaptation
from ..control.elastic_study import ElasticStudy
from ..control.loop import Run
from ..control.momentum import Residuals
from ..control.touch import Contact, Thresholds
from ..robot.robot import Robot
from .plots import colour, envelope, envelope_times

Array = NDArray[np.float64]
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 150, 78, 44, 40  # of a panel, px
_POINTS = 1200
_PANELS = 8


@dataclass(frozen=True, eq=False)
class _Panel:
    """Lines (name, x, y, colour) over one axis; levels and stretches (from, to) behind them."""

    title: str
    lines: Sequence[tuple[str, Array, Array, str]]
    levels: Sequence[float] = ()
    stretches: Sequence[tuple[float, float]] = ()
    logarithmic: bool = False
    span: tuple[float, float] | None = None
    dots: bool = field(default=False)


def _axis(panel: _Panel) -> tuple[float, float]:
    if panel.span is not None:
        return panel.span
    values = np.concatenate([*(y[np.isfinite(y)] for _, _, y, _ in panel.lines), np.asarray(panel.levels, dtype=float)])
    if panel.logarithmic:
        values = np.log10(values[values > 0]) if (values > 0).any() else np.zeros(1)
        return float(np.floor(values.min())), float(np.ceil(values.max() + 1e-9))
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _drawn(panel: _Panel, top: float) -> list[str]:
    low, high = _axis(panel)
    xs = np.concatenate([x for _, x, _, _ in panel.lines])
    first, last = float(xs.min()), float(xs.max())
    wide = _WIDTH - _LEFT - 10

    def across(x: Array) -> Array:
        return _LEFT + wide * (np.asarray(x) - first) / (last - first or 1.0)

    def down(y: Array) -> Array:
        value = np.log10(np.maximum(y, 10.0 ** (low - 1))) if panel.logarithmic else np.asarray(y)
        return top + _HEIGHT * (high - np.clip(value, low, high)) / (high - low)

    parts = [f'<text x="{_LEFT}" y="{top - 6}" font-weight="bold">{escape(panel.title)}</text>']
    for a, b in panel.stretches:
        x0, x1 = across(np.array([a, b])).tolist()
        parts.append(
            f'<rect x="{x0:.1f}" y="{top}" width="{max(x1 - x0, 1):.1f}" height="{_HEIGHT}" fill="#D55E00" '
            'opacity="0.18"/>'
        )
    parts.append(f'<rect x="{_LEFT}" y="{top}" width="{wide}" height="{_HEIGHT}" fill="none" stroke="#bbbbbb"/>')
    for value, place in ((low, top + _HEIGHT), (high, top + 10)):
        text = f"1e{int(value)}" if panel.logarithmic else f"{value:.3g}"
        parts.append(f'<text x="{_LEFT - 6}" y="{place:.0f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="{_LEFT}" y="{top + _HEIGHT + 14}">{first:.3g}</text>')
    parts.append(f'<text x="{_WIDTH - 10}" y="{top + _HEIGHT + 14}" text-anchor="end">{last:.3g}</text>')
    for level in panel.levels:
        height = float(down(np.array(level)))
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{height:.1f}" y2="{height:.1f}" stroke="#555" '
            'stroke-dasharray="5 4"/>'
        )
    if panel.dots and first < 0 < last:
        zero = float(across(np.array(0.0)))
        parts.append(f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="{top}" y2="{top + _HEIGHT}" stroke="#555"/>')
    for _, x, y, ink in panel.lines:
        keep = np.isfinite(y)
        points = list(zip(across(x[keep]), down(y[keep]), strict=True))
        if panel.dots:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.8" fill="{ink}"/>' for a, b in points]
        elif points:
            path = "M" + " L".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="1.4"/>')
    return parts


def _picture(title: str, panels: Sequence[_Panel], legend: Mapping[str, str]) -> str:
    height = _TOP + len(panels) * (_HEIGHT + _GAP) + 24
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for k, panel in enumerate(panels):
        parts += _drawn(panel, _TOP + k * (_HEIGHT + _GAP))
    x = float(_LEFT)
    for name, ink in legend.items():
        parts.append(f'<path d="M{x:.0f},{height - 12} h20" stroke="{ink}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 25:.0f}" y="{height - 8}">{escape(name)}</text>')
        x += 50 + 6.3 * len(name)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _thin(t: Array, y: Array) -> tuple[Array, Array]:
    return envelope_times(t, _POINTS), envelope(y, _POINTS).astype(np.float64)


def _smooth_size(run: Run) -> Array:
    """The error of the worst joint, rms over a quarter of a second."""
    square = (run.error**2).max(axis=1)
    width = max(1, min(len(square), round(0.25 / (run.t[1] - run.t[0]))))
    return np.sqrt(np.convolve(square, np.full(width, 1.0 / width), mode="same"))


def adaptation_picture(made: Adaptation, others: Mapping[str, Run], truth: Array) -> str:
    """Tracking errors of all controllers, and the parameters as they were learnt, with the truth dashed."""
    t = made.run.t
    runs = {"adaptive": made.run, **others}
    inks = {name: colour(k) for k, name in enumerate(runs)}
    panels = [
        _Panel(
            "error of the worst joint (rad or m); dashed: the dead zone",
            [(name, *_thin(t, _smooth_size(run)), inks[name]) for name, run in runs.items()],
            levels=(float(made.dead_zone.max()),) if made.dead_zone.max() > 0 else (),
            logarithmic=True,
        )
    ]
    phi = made.run.signals["phi"]
    for k, one in enumerate(made.found[:_PANELS]):
        told = "" if one.shown else " (not shown by the motion)"
        line = (one.name, *_thin(t, phi[:, k]), inks["adaptive"])
        panels.append(_Panel(f"{one.name}, {one.unit}{told}", [line], levels=(float(truth[k]),)))
    return _picture(f"{made.law.robot.name}: adaptive control", panels, inks)


def locus_picture(study: ElasticStudy, name: str) -> str:
    """The poles of the two-time-scale law over its bandwidth, and their least damping."""
    poles = study.locus
    lines = [(str(k), poles[:, k].real, poles[:, k].imag, colour(k)) for k in range(poles.shape[1])]
    size = np.abs(poles)
    ratio = np.where(np.abs(poles.imag) > 1e-9 * size, -poles.real / np.maximum(size, 1e-300), 1.0).min(axis=1)
    panels = [
        _Panel("poles: imaginary over real part, 1/s", lines, levels=(0.0,), dots=True),
        _Panel("real part of the slowest pole, 1/s, over the bandwidth, rad/s",
               [("", study.bandwidths, poles.real.max(axis=1), colour(0))], levels=(0.0,)),
        _Panel("least damping ratio over the bandwidth, rad/s", [("", study.bandwidths, ratio, colour(0))],
               levels=(0.0,)),
    ]  # fmt: skip
    return _picture(f"{name}: root locus of the two-time-scale law", panels, {})


def touch_picture(robot: Robot, seen: Residuals, thresholds: Thresholds, contacts: Sequence[Contact]) -> str:
    """Residuals of the joints that felt most, with their thresholds, and contacts as stretches."""
    share = np.abs(seen.torque - thresholds.mean).max(axis=0) / np.maximum(thresholds.threshold, 1e-300)
    chosen = sorted(np.argsort(-share)[:_PANELS].tolist())
    begin = int(np.searchsorted(seen.t, seen.t[0] + thresholds.settling))
    stretches = [(one.begin, one.end) for one in contacts]
    panels = []
    for k in chosen:
        unit = "N" if robot.dof_names[k] in robot.layout.linear_dofs else "N·m"
        mean, level = float(thresholds.mean[k]), float(thresholds.threshold[k])
        line = ("", *_thin(seen.t[begin:], seen.torque[begin:, k]), colour(k))
        panels.append(_Panel(f"{robot.dof_names[k]}, {unit}", [line], (mean - level, mean + level), stretches))
    return _picture(f"{robot.name}: torque from outside, thresholds and contacts", panels, {})
