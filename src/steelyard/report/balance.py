"""The errors of ways to find a centre of mass, over the pitch at which the robot stood, as a picture in SVG."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from ..balance.comparison import Comparison
from .plots import colour

Array = NDArray[np.float64]
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _GAP = 460, 330, 62, 40, 52, 36
_LEAST, _MOST = 0.1, 300.0  # mm
_CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)],
    "diamond": [(0, -5), (5, 0), (0, 5), (-5, 0)],
    "triangle": [(0, -5), (4.6, 3.5), (-4.6, 3.5)],
}
_MARKS = ("circle", *_CORNERS)


def _mark(shape: str, x: float, y: float, fill: str) -> str:
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}"/>'
    corners = _CORNERS[shape]
    points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" fill="{fill}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _panel(comparison: Comparison, left: float, bound: float, first: bool) -> list[str]:
    degrees = np.degrees(comparison.pitch)
    low, high = 10 * np.floor(degrees.min() / 10), 10 * np.ceil(degrees.max() / 10)
    bottom, right = _TOP + _HEIGHT, left + _WIDTH

    def at(x: float, y: float) -> tuple[float, float]:
        share = np.log(np.clip(y, _LEAST, _MOST) / _LEAST) / np.log(_MOST / _LEAST)
        return float(left + (x - low) / (high - low) * _WIDTH), float(bottom - share * _HEIGHT)

    parts = [_text(left, _TOP - 14, f"The robot {comparison.title}", "start", 'font-weight="bold"')]
    for y in (0.1, 1, 10, 100):
        height = at(low, y)[1]
        parts.append(f'<line x1="{left}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}" stroke="#ddd"/>')
        if first:
            parts.append(_text(left - 8, height + 4, f"{y:g}", "end"))
    parts += [_text(at(x, 1)[0], bottom + 18, f"{x:g}°") for x in np.arange(20 * np.ceil(low / 20), high + 1, 20)]
    height = at(low, 1e3 * bound)[1]
    parts.append(
        f'<line x1="{left}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}" stroke="#555" stroke-dasharray="5 4"/>'
    )
    parts.append(_text(right - 4, height - 5, f"{1e3 * bound:g} mm", "end", 'fill="#555"'))
    parts.append(_text(left + _WIDTH / 2, bottom + 40, "pitch of the trunk, nose down is positive"))
    order = np.argsort(degrees)
    for k, errors in enumerate(comparison.errors.values()):
        where = [at(degrees[i], 1e3 * errors[i]) for i in order if np.isfinite(errors[i])]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour(k)}" stroke-width="1.8"/>')
        parts += [_mark(_MARKS[k % len(_MARKS)], x, y, colour(k)) for x, y in where]
    return parts


def comparison_picture(comparisons: Sequence[Comparison], bound: float = 2e-3) -> str:
    """A panel a robot: the error in the sagittal plane, mm, on a logarithmic scale, with a bound to compare with."""
    width = _LEFT + len(comparisons) * (_WIDTH + _GAP)
    height = _TOP + _HEIGHT + _BOTTOM + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(16, _TOP + _HEIGHT / 2, "error of the centre of mass, mm", "middle",
              f'transform="rotate(-90 16 {_TOP + _HEIGHT / 2})"'),
    ]  # fmt: skip
    for k, comparison in enumerate(comparisons):
        parts += _panel(comparison, _LEFT + k * (_WIDTH + _GAP), bound, k == 0)
    x = float(_LEFT)
    for k, name in enumerate(comparisons[0].errors):
        parts.append(_mark(_MARKS[k % len(_MARKS)], x + 5, height - 14, colour(k)))
        parts.append(_text(x + 15, height - 10, name, "start"))
        x += 40 + 7.5 * len(name)
    return "\n".join([*parts, "</svg>"]) + "\n"
