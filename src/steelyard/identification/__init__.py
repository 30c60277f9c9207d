"""From regressor and torque to parameters."""

from .base_parameters import BaseParameters, BlindDirection, base_parameters, blind_directions

__all__ = ["BaseParameters", "BlindDirection", "base_parameters", "blind_directions"]
