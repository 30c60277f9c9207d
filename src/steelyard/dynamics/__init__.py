"""Batched dynamics: the only room that knows how the equation of motion is computed."""

from .base_parameters import BaseParameters, BlindDirection, base_parameters, blind_directions
from .frames import jacobian, jacobian_rate, pose, velocity
from .gradients import torque_gradients
from .rigid_body import (
    coriolis_matrix,
    energy,
    forward_dynamics,
    gravity,
    inverse_dynamics,
    known_torque,
    mass_matrix,
    reference_regressor,
    regressor,
    regressor_gradient,
)

__all__ = [
    "BaseParameters",
    "BlindDirection",
    "base_parameters",
    "blind_directions",
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
    "reference_regressor",
    "regressor",
    "regressor_gradient",
    "torque_gradients",
    "velocity",
]
