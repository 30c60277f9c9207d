"""Friction on disk: a YAML file that people can read, and that gives the laws back."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ..result_file import plain, read_yaml, write_yaml
from .curve import PARAMETERS, FrictionCurve
from .fit import CurveFit, FrictionFit, JointFriction
from .intervals import Interval

FORMAT = "steelyard friction 1"


def unit_of(name: str, linear: bool) -> str:
    """The unit of a parameter of a law."""
    torque, speed = ("N", "m/s") if linear else ("N·m", "rad/s")
    slope = "N·s/m" if linear else "N·m·s/rad"
    return {"damping": slope, "stribeck_velocity": speed, "shape": "1"}.get(name, torque)


def _interval(name: str, interval: Interval, linear: bool) -> dict[str, Any]:
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "shown": interval.shown,
        "unit": unit_of(name, linear),
    }


def _intervals(values: Mapping[str, Interval], linear: bool) -> dict[str, Any]:
    return {name: _interval(name, interval, linear) for name, interval in values.items()}


def _side(fit: CurveFit | None, linear: bool) -> dict[str, Any] | None:
    if fit is None:
        return None
    return {
        "parameters": _intervals(fit.values, linear),
        "not_shown": list(fit.not_shown),
        "stribeck_warranted": fit.warranted,
        "dip": {"p_value": fit.dip.p_value, "f": fit.dip.f, "bic_gain": fit.dip.bic_gain},
        "with_dip": _intervals(fit.stribeck, linear),
        "without_dip": _intervals(fit.straight, linear),
        "noise": fit.noise,
        "points": fit.points,
        "starts": fit.starts,
        "agreeing": fit.agreeing,
        "widened": float(np.sqrt(fit.alike)),
        "converged": fit.converged,
        "message": fit.message,
    }


def _law(fit: FrictionFit) -> list[dict[str, Any]]:
    curve = fit.curve()
    return [
        {name: getattr(curve, name)[:, k].tolist() for name in PARAMETERS} | {"offset": float(curve.offset[k])}
        for k in range(curve.n)
    ]


def _joint(joint: JointFriction, law: dict[str, Any]) -> dict[str, Any]:
    symmetry = joint.symmetry
    return {
        "joint": joint.joint,
        "linear": joint.linear,
        "law": law,
        "uses": [fit.direction for fit in joint.chosen],
        "symmetry": None
        if symmetry is None
        else {
            "verdict": symmetry.verdict,
            "symmetric": symmetry.symmetric,
            "p_same": symmetry.same,
            "p_but_offset": symmetry.but_offset,
        },
        "both": _side(joint.both, joint.linear),
        "forward": _side(joint.forward, joint.linear),
        "backward": _side(joint.backward, joint.linear),
        "standing_points": joint.standing,
        "static_at_least": list(joint.static_at_least),
        "left_out": joint.left_out,
        "converged": joint.converged,
        "message": joint.message,
        "notes": list(joint.notes),
    }


def friction_content(fit: FrictionFit, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All that a friction file says."""
    content = {
        "format": FORMAT,
        "settings": {name: getattr(fit.settings, name) for name in ("shape", "robust", "confidence", "significance")},
        "converged": fit.converged,
        "joints": [_joint(joint, law) for joint, law in zip(fit.joints, _law(fit), strict=True)],
        **(more or {}),
    }
    return dict(plain(content))


def save_friction(fit: FrictionFit, path: str | Path, more: Mapping[str, Any] | None = None) -> Path:
    """Write laws and all that is known of them, whole or not at all."""
    return write_yaml(friction_content(fit, more), path)


@dataclass(frozen=True, eq=False)
class SavedFriction:
    """Laws as read back."""

    joints: tuple[str, ...]
    curve: FrictionCurve
    content: Mapping[str, Any]

    def for_joints(self, names: tuple[str, ...]) -> FrictionCurve:
        """The laws of these joints, by name; in their own order where as many joints have no names in common."""
        if not set(names) & set(self.joints) and len(names) == len(self.joints):
            return self.curve
        missing = [name for name in names if name not in self.joints]
        if missing:
            raise DataError(f"the friction file has no joint '{missing[0]}'; it has {', '.join(self.joints[:40])}")
        pick = [self.joints.index(name) for name in names]
        sides = {name: getattr(self.curve, name)[:, pick] for name in PARAMETERS}
        return FrictionCurve(**sides, offset=self.curve.offset[pick])


def read_friction(path: str | Path) -> SavedFriction:
    """Read the laws that `save_friction` wrote."""
    content = read_yaml(path)
    if content.get("format") != FORMAT:
        raise DataError(f"{path} is not written by `steelyard friction`: it lacks 'format: {FORMAT}'")
    try:
        joints = tuple(str(joint["joint"]) for joint in content["joints"])
        laws = [joint["law"] for joint in content["joints"]]
        sides = {
            name: np.array([law[name] for law in laws], dtype=float).T.reshape(2, len(laws)) for name in PARAMETERS
        }
        offset = np.array([law["offset"] for law in laws], dtype=float)
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path}: a joint's law is missing, or has not two numbers a parameter") from None
    if not joints:
        raise DataError(f"{path} has no joints")
    return SavedFriction(joints, FrictionCurve(**sides, offset=offset), content)
