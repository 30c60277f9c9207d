"""The centre of mass from one pose alone, by solutions of least norm: right at one pitch, wrong elsewhere.

With τ the legs' summed torque on the trunk about hip (1) and knee (2), F = m s, and y across the sagittal plane,

    τ₁ + p₁×F = p×F,    (τ₁ + τ₂) + p₂×F = p×F

where τ₂ adds to τ₁ if the knee's drive is coupled with ratio 1. Each is one equation aᵀp = b for the two coordinates of
p in the plane, a = F × y; of all solutions these methods take the shortest, p = a b/(aᵀa), which has no part along
gravity. It is right where the centre of mass lies level with the trunk's origin, and is off by its height elsewhere.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError
from .poses import Poses
from .stance import Stance
from .statics import DIRECT, Coupling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MinNorm:
    """The moment about one joint, "hip" or "knee", with the upper body's mass known."""

    mass: float  # kg
    about: str = "hip"
    coupling: Coupling = DIRECT

    def __post_init__(self) -> None:
        if self.about not in ("hip", "knee"):
            raise OptionError(f"the moment is about '{self.about}'; valid: hip, knee")
        if not 0 < self.mass < np.inf:
            raise OptionError(f"the mass of the upper body is {self.mass:g} kg; give a finite number above 0")


@dataclass(frozen=True)
class MassFree:
    """Both moments, divided by each other so that the mass drops out; the coordinates may weigh differently.

    With k = T₁/T₂ of the moments: (1 − k) (s×y)ᵀp = k b₂₂ − b₁₂, b = (p_joint × s)·y with its sign turned.
    """

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)  # of x, y, z
    coupling: Coupling = DIRECT

    def __post_init__(self) -> None:
        if len(self.weights) != 3 or not all(0 < weight < np.inf for weight in self.weights):
            raise OptionError(f"the weights are {self.weights}; give three finite numbers above 0")


def _moments(stance: Stance, poses: Poses, coupling: Coupling) -> dict[str, tuple[Array, Array]]:
    """Of hip and knee: the legs' summed torque on the trunk, and the joint's mean place."""
    if coupling.ratio is None:
        raise OptionError("one pose cannot tell how the drives are coupled; give the ratio, or stack poses")
    found = {}
    torques = []
    for part in ("hip", "knee"):
        names = [getattr(leg, part) for leg in stance.legs]
        tau = poses.tau[:, [stance.column(name) for name in names]]
        torques.append(-tau.sum(axis=1))
        place = np.mean([stance.point(stance.positions(poses.q), name) for name in names], axis=0)
        found[part] = (torques[0] if part == "hip" else torques[1] + coupling.ratio * torques[0], place)
    return found


def _shortest(a: Array, b: Array, weights: ArrayLike = 1.0) -> Array:
    """The solution of least weighted norm; nan where an equation has no coefficients or no right side."""
    w = np.asarray(weights) ** 2
    length = (a * a * w).sum(axis=1)
    share = np.divide(b, length, out=np.full_like(b, np.nan), where=length > 0)
    return a * w * share[:, None]


def minimum_norm(stance: Stance, poses: Poses, settings: MinNorm | MassFree) -> Array:
    """The centre of mass by each pose alone, (poses, 3) in the trunk's frame, nought across the sagittal plane.

    A pose in which the equation does not exist (moments that are the same, or nought) has nan.
    """
    y, s = stance.lateral, poses.force
    moments = _moments(stance, poses, settings.coupling)
    a = np.cross(s, y)  # (p × s)·y = p·(s × y)
    if isinstance(settings, MinNorm):
        torque, place = moments[settings.about]
        return _shortest(a, torque / settings.mass + (place * a).sum(axis=1))
    (first, hip), (second, knee) = moments["hip"], moments["knee"]
    k = np.divide(first, second, out=np.full_like(first, np.nan), where=second != 0)
    b12, b22 = -(hip * a).sum(axis=1), -(knee * a).sum(axis=1)
    return _shortest((1.0 - k)[:, None] * a, k * b22 - b12, settings.weights)
