"""What is believed of a robot before its first sample: every body and every joint wrong by a share of itself.

    cov beta = B Σ Bᵀ,    Σ = J diag(d²) Jᵀ + floor²,    J = ∂θ/∂η of each body, η its log-Cholesky numbers

A base parameter is a sum in which masses of several bodies stand with other signs; its own size says nothing of how far
it may be off, and neighbours share what they are wrong by.
"""

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ...robot.inertia import log_cholesky, log_cholesky_jacobian
from ...robot.robot import Robot
from ..scales import parameter_scales
from .coordinates import UNKNOWN, body_deviation, fattened

Array = NDArray[np.float64]


def parameter_covariance(robot: Robot, relative: float) -> Array:
    """Of the robot's parameters, where its bodies and joints are wrong by a share; with a floor for what is zero.

    A body that cannot exist has no log-Cholesky numbers; its parameters are wrong by a share each.
    """
    theta, layout = robot.parameters, robot.layout
    covariance = np.diag((relative * theta) ** 2)
    for name in layout.bodies:
        own = layout.body(name)
        try:
            eta = log_cholesky(fattened(theta[own]))
        except ModelError:
            continue
        J = log_cholesky_jacobian(eta[None])[0] * body_deviation(eta, relative)
        covariance[own, own] = J @ J.T
    floor = relative * UNKNOWN * parameter_scales(robot)
    return covariance + np.diag(floor**2)
