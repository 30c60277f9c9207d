"""Coordinates in which a nominal body is the identity, so that no unit, frame or size weighs more than another.

    J_b = U_b X_b U_bᵀ,   J0_b = U_b U_bᵀ,   θ = θ0 + D x

With x = svec(X − X0) the pull-back metric of the nominal model is the identity: ‖x‖² = ‖U⁻¹(J − J0)U⁻ᵀ‖²_F (Lee, Park,
RA-L 2018). Joint parameters are counted in units of their nominal values, those without any in what would matter.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...robot.inertia import PSEUDO_BASIS, from_pseudo_inertia, mass_com_inertia, pseudo_inertia
from ...robot.parameters import ParameterLayout
from .conic import smat, svec

Array = NDArray[np.float64]

# A nominal body is given at least this part of the heaviest body's mass, and of its own largest second moment as the
# smallest. One whose radius of gyration is less than a hundredth of a typical one is a point mass, or a frame: it says
# nothing of a size, and gets the typical one.
_LEAST_MASS, _LEAST_THICKNESS, _POINT = 1e-2, 1e-3, 1e-4
_DEFAULT_MASS, _DEFAULT_SIZE = 1.0, 0.1**2  # kg, m²: where no body says anything
# A joint value is counted in units of at least this part of the largest of its kind. One that is zero in the model is
# unknown rather than small: it is counted in what would make as much torque as the whole robot does.
_LEAST_JOINT = 0.1


@dataclass(frozen=True, eq=False)
class Metric:
    """The nominal body factors, the joints' units, and what had to be made thicker or heavier to have any."""

    factors: Array  # U, (nb, 4, 4)
    joint_scale: Array
    regularised: tuple[str, ...]

    def whiten(self, parameters: Array) -> Array:
        """X_b = U⁻¹ J U⁻ᵀ of body parameters (nb, 10)."""
        inverse = np.linalg.inv(self.factors)
        return inverse @ pseudo_inertia(parameters) @ np.swapaxes(inverse, -1, -2)

    @property
    def to_parameters(self) -> Array:
        """D with θ = θ0 + D x."""
        U = self.factors[:, None]
        blocks = from_pseudo_inertia(U @ smat(np.eye(10)) @ np.swapaxes(U, -1, -2))  # (nb, x, θ)
        nb, size = len(blocks), 10 * len(blocks) + len(self.joint_scale)
        D = np.zeros((size, size))
        for b in range(nb):
            D[10 * b : 10 * b + 10, 10 * b : 10 * b + 10] = blocks[b].T
        tail = np.arange(10 * nb, size)
        D[tail, tail] = self.joint_scale
        return D

    @property
    def whitening(self) -> Array:
        """svec(X_b) = whitening_b θ_b, (nb, 10, 10)."""
        inverse = np.linalg.inv(self.factors)[:, None]
        images = inverse @ PSEUDO_BASIS @ np.swapaxes(inverse, -1, -2)
        return np.swapaxes(svec(images), -1, -2)


def _factor(mass: float, com: Array, second: Array) -> Array:
    """U with U Uᵀ = J, from second moments about the centre of mass: about it J is diag(second, m)."""
    values, axes = np.linalg.eigh(second)
    U = np.zeros((4, 4))
    U[:3, :3] = axes * np.sqrt(values)
    U[:3, 3], U[3, 3] = np.sqrt(mass) * com, np.sqrt(mass)
    return U


def _body_factors(layout: ParameterLayout, parameters: Array) -> tuple[Array, list[str]]:
    mass, com, inertia = mass_com_inertia(np.where(parameters[:, :1] == 0, 0.0, parameters))
    second = 0.5 * np.trace(inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) - inertia
    size = np.trace(second, axis1=1, axis2=2) / 3
    weighty = (mass > 0) & (size > 0)
    typical = float(np.median(size[weighty] / mass[weighty])) if weighty.any() else _DEFAULT_SIZE
    least_mass = _LEAST_MASS * mass.max(initial=0.0) or _DEFAULT_MASS
    factors, changed = np.empty((len(mass), 4, 4)), []
    for b, name in enumerate(layout.bodies):
        m = max(mass[b], least_mass)
        values, axes = np.linalg.eigh(second[b])
        is_point = values[-1] <= _POINT * m * typical
        floored = np.maximum(values, m * typical if is_point else _LEAST_THICKNESS * values[-1])
        if m > mass[b]:
            changed.append(f"{name}: its nominal mass of {mass[b]:.4g} kg is taken as {m:.4g} kg")
        if np.any(floored > values):
            changed.append(
                f"{name}: nominal second moments of {values[0]:.3g} kg·m² are taken as {floored[0]:.3g} kg·m²"
            )
        factors[b] = _factor(m, com[b], axes @ np.diag(floored) @ axes.T)
    return factors, changed


def _joint_scale(layout: ParameterLayout, theta: Array, unknown: Array) -> Array:
    """In what unit the deviation of each joint value is counted."""
    scales, split = [], layout.inertial.stop
    for prop in layout.properties:
        nominal = np.abs(theta[layout.block(prop)])
        otherwise = unknown[layout.block(prop).start - split : layout.block(prop).stop - split]
        scales.append(np.where(nominal > 0, np.maximum(nominal, _LEAST_JOINT * nominal.max(initial=0.0)), otherwise))
    return np.concatenate(scales) if scales else np.empty(0)


def nominal_metric(layout: ParameterLayout, theta: Array, unknown: Array) -> Metric:
    """The metric of a nominal model; bodies without thickness or mass are given a little, and named.

    `unknown` are the units of joint values of which the model says nothing (see `joint_scales`).
    """
    bodies = theta[layout.inertial].reshape(-1, 10)
    factors, changed = _body_factors(layout, bodies)
    return Metric(factors, _joint_scale(layout, theta, unknown), tuple(changed))
