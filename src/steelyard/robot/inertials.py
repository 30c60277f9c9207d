"""Inertias in a model file that no rigid body has, and inertias that MuJoCo's compiler changes: named, with numbers."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError

_FLOOR = 1e-12  # kg·m²; MuJoCo wants more than 1e-15 of a moving body
_MARGIN = 1e-9  # relative, so that rounding in MuJoCo's own diagonalisation does not undo the repair
_SAID = 1e-6  # relative; smaller changes are the rounding of printed digits
_PRINTED = 1e-7  # kg·m²; models are printed to so many decimals, and a moment of a small part may come out below zero
_SHOWN = 5  # bodies named in a note

# What stands for a link of which only the geometry is known: a sphere at its origin; identification needs no more
PLACEHOLDER_MASS = 1.0  # kg
PLACEHOLDER_RADIUS = 0.05  # m
# What stands for a link that is meant to be massless, such as one between two joints that share a point
SPECK_MASS = 1e-3  # kg; the least that leaves mass matrices of arms well conditioned
SPECK_RADIUS = 0.01  # m


class Mended(str):
    """A note that says that an inertia is not the one in the file."""

    __slots__ = ()


def _moments(values: NDArray) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def nearest_physical(inertia: NDArray) -> tuple[NDArray, str | None]:
    """The nearest inertia about the centre of mass that a rigid body can have, and what was wrong, if anything.

    Principal moments must be positive with A + B >= C: to the nearest such (A, B, C), with the axes kept.
    """
    given, axes = np.linalg.eigh(inertia)
    largest = np.abs(given).max()
    moments = np.maximum(given, max(_FLOOR, _MARGIN * largest))
    excess = moments[2] - moments[0] - moments[1]
    if excess > -_MARGIN * moments[2]:
        moments += (excess + _MARGIN * moments[2]) / 3 * np.array([1.0, 1.0, -1.0])
    if np.array_equal(moments, given):
        return inertia, None
    if largest == 0:
        return _FLOOR * np.eye(3), f"is zero, that of a point mass; read as {_FLOOR:g} kg·m² about every axis"
    repaired = axes @ np.diag(moments) @ axes.T
    if np.abs(moments - given).max() <= _SAID * largest:
        return repaired, None
    return repaired, (
        f"is that of no rigid body: principal moments {_moments(given)} kg·m² (A + B < C); "
        f"read as the nearest possible, {_moments(moments)}"
    )


def negative_moment(inertia: NDArray) -> str | None:
    """What is wrong with an inertia whose least principal moment is negative by more than rounding, if it is."""
    moments = np.linalg.eigvalsh(inertia)
    if moments[0] >= -max(_PRINTED, _SAID * np.abs(moments).max()):
        return None
    return (
        f"has a principal moment of {moments[0]:.4g} kg·m² (of {_moments(moments)}), and no body has a negative one; "
        "correct it"
    )


def refuse_negative(body: mujoco.MjsBody, where: str) -> None:
    """An error for a stated mass or moment below zero, which MuJoCo takes for one that is missing."""
    if not body.explicitinertial:
        return
    name = f"'{body.name}'" if body.name else f"the unnamed body number {body.id}"
    if body.mass < 0:
        raise ModelError(f"{where}: {name} has mass {body.mass:g} kg; a mass is not negative")
    least = float(np.min(body.inertia))
    if least < 0:
        raise ModelError(f"{where}: {name} has a moment of {least:g} kg·m², and no body has a negative one; correct it")


def _full(body: mujoco.MjsBody) -> NDArray:
    """Principal moments that a spec states, ascending."""
    xx, yy, zz, xy, xz, yz = body.fullinertia
    if np.isnan(xx):
        return np.sort(body.inertia)
    return np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def changed_by_compiler(spec: mujoco.MjSpec, model: mujoco.MjModel) -> list[str]:
    """Notes on bodies whose stated mass or inertia is not that of the compiled model."""
    changed: list[str] = []
    if spec.compiler.fusestatic:  # a body that swallows its children has changed by intention
        return changed
    for body in spec.bodies[1:]:
        if not (body.explicitinertial and body.name):
            continue
        index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body.name)
        mass, moments = model.body_mass[index], np.sort(model.body_inertia[index])
        if abs(mass - body.mass) > _SAID * abs(body.mass):
            changed.append(f"'{body.name}' {mass:.4g} kg, not {body.mass:.4g}")
        elif np.abs(moments - _full(body)).max() > _SAID * np.abs(_full(body)).max():
            changed.append(f"'{body.name}' ({_moments(moments)}) kg·m², not ({_moments(_full(body))})")
    if not changed:
        return changed
    more = f" and {len(changed) - _SHOWN} more bodies" if len(changed) > _SHOWN else ""
    said = f"the model's own options change stated inertials on compiling: {'; '.join(changed[:_SHOWN])}{more}"
    return [Mended(said)]
