"""Friction over velocity as a picture in SVG: the points of every joint, and the law found in them."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from ..identification.friction.curve import PARAMETERS, FrictionCurve
from ..identification.friction.fit import FrictionFit, JointFriction
from .plots import colour

Array = NDArray[np.float64]
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP_X, _GAP_Y, _ACROSS = 340, 220, 64, 46, 74, 74, 3
_MOST_MARKS = 400  # of a joint


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _range(values: Array) -> tuple[float, float]:
    low, high = float(min(values.min(), 0.0)), float(max(values.max(), 0.0))
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _panel(joint: JointFriction, curve: FrictionCurve, left: float, top: float) -> list[str]:
    points = joint.points
    x0, x1 = _range(points.velocity)
    reach = np.geomspace(1e-4, 1.0, 120)
    v = np.concatenate([x0 * reach[::-1], x1 * reach])
    law = curve.torque(v[:, None])[:, 0]
    y0, y1 = _range(np.concatenate([points.torque, law]))

    def at(x: Array | float, y: Array | float) -> tuple[Array, Array]:
        across = left + (np.asarray(x) - x0) / (x1 - x0) * _WIDTH
        return across, top + _HEIGHT - (np.asarray(y) - y0) / (y1 - y0) * _HEIGHT

    speed, torque = ("m/s", "N") if joint.linear else ("rad/s", "N·m")
    zero_x, zero_y = (float(z) for z in at(0.0, 0.0))
    bottom, right = top + _HEIGHT, left + _WIDTH
    parts = [
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#bbb"/>',
        f'<line x1="{left}" x2="{right}" y1="{zero_y:.1f}" y2="{zero_y:.1f}" stroke="#ddd"/>',
        f'<line x1="{zero_x:.1f}" x2="{zero_x:.1f}" y1="{top}" y2="{bottom}" stroke="#ddd"/>',
        _text(left, top - 10, joint.joint[:40], "start", 'font-weight="bold"'),
        _text(right, bottom + 32, speed, "end"),
        _text(
            left - 46, top + _HEIGHT / 2, torque, "middle", f'transform="rotate(-90 {left - 46} {top + _HEIGHT / 2})"'
        ),
    ]
    parts += [_text(float(at(x, 0)[0]), bottom + 16, f"{x:.2g}") for x in (x0, 0.0, x1)]
    parts += [_text(left - 6, float(at(0, y)[1]) + 4, f"{y:.2g}", "end") for y in (y0, 0.0, y1)]
    pick = np.unique(np.linspace(0, len(points.velocity) - 1, min(_MOST_MARKS, len(points.velocity))).astype(int))
    for x, y in zip(*at(points.velocity[pick], points.torque[pick]), strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour(7)}" fill-opacity="0.8"/>')
    for side in (v < 0, v > 0):
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(*at(v[side], law[side]), strict=True))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour(0)}" stroke-width="2"/>')
    return parts


def friction_picture(fit: FrictionFit) -> str:
    """A panel a joint: points in grey, the law in blue."""
    curve = fit.curve()
    count = len(fit.joints)
    across = min(_ACROSS, count)
    down = -(-count // across)
    width, height = _LEFT + across * (_WIDTH + _GAP_X), _TOP + down * (_HEIGHT + _GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for k, joint in enumerate(fit.joints):
        left, top = _LEFT + (k % across) * (_WIDTH + _GAP_X), _TOP + (k // across) * (_HEIGHT + _GAP_Y)
        alone = FrictionCurve(**{name: getattr(curve, name)[:, [k]] for name in PARAMETERS}, offset=curve.offset[[k]])
        parts += _panel(joint, alone, left, top)
    return "\n".join([*parts, "</svg>"]) + "\n"
