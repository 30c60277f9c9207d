"""Batched dynamics: the only room that knows how the equation of motion is computed."""

from .frames import jacobian, jacobian_rate, pose, velocity
from .rigid_body import (
    coriolis_matrix,
    energy,
    forward_dynamics,
    gravity,
    inverse_dynamics,
    known_torque,
    mass_matrix,
    regressor,
)

__all__ = [
    "coriolis_matrix",
    "energy",
    "forward_dynamics",
    "gravity",
    "inverse_dynamics",
    "jacobian",
    "jacobian_rate",
    "known_torque",
    "mass_matrix",
    "pose",
    "regressor",
    "velocity",
]
