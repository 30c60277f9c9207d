"""`FrictionCurve`: friction as it was identified, with its own values for each direction."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import OptionError
from ...physics.friction import Asymmetric, CoulombViscous, FrictionLaw, LuGre, Stribeck
from ...robot.robot import frozen

Array = NDArray[np.float64]
PARAMETERS = ("coulomb", "static", "stribeck_velocity", "damping", "shape")


@dataclass(frozen=True, eq=False)
class FrictionCurve:
    """F = offset + [Fc + (Fs − Fc) exp(−|q̇/q̇s|^δ)] sgn(q̇) + Bv q̇ with values for each direction.

    Fields are (2, n), forward and backward; the offset is (n,). The sign is exact: at rest `torque` is the offset.
    """

    coulomb: Array
    static: Array
    stribeck_velocity: Array
    damping: Array
    shape: Array
    offset: Array

    def __post_init__(self) -> None:
        offset = frozen(np.atleast_1d(self.offset))
        object.__setattr__(self, "offset", offset)
        for name in PARAMETERS:
            value = frozen(np.broadcast_to(np.asarray(getattr(self, name), dtype=float), (2, len(offset))))
            object.__setattr__(self, name, value)
            least = 0.0 if name in ("coulomb", "static", "damping") else np.finfo(float).tiny
            if not (np.isfinite(value) & (value >= least)).all():
                raise OptionError(f"friction: {name} is {value.tolist()}; it must be finite and not negative")

    @property
    def n(self) -> int:
        return len(self.offset)

    def torque(self, qd: ArrayLike) -> Array:
        """Friction torque, (n,) or (T, n)."""
        qd = np.asarray(qd, dtype=float)
        if qd.shape[-1:] != (self.n,) or qd.ndim > 2:
            raise OptionError(f"this friction is of {self.n} joints, the velocities have shape {qd.shape}")
        side = np.where(qd < 0, 1, 0)
        Fc, Fs, qs, Bv, delta = (np.where(side, *getattr(self, name)[::-1]) for name in PARAMETERS)
        level = Fc + (Fs - Fc) * np.exp(-(np.abs(qd / qs) ** delta))
        return np.asarray(self.offset + level * np.sign(qd) + Bv * qd)

    def standstill(self) -> tuple[Array, Array]:
        """Level and centre of the torques at which the joint stands."""
        forward, backward = self.static
        return 0.5 * (forward + backward), self.offset + 0.5 * (forward - backward)

    def scaled(self, factor: float) -> "FrictionCurve":
        """All of it so many times as large."""
        if not (np.isfinite(factor) and factor >= 0):
            raise OptionError(f"friction cannot be multiplied by {factor}; give a factor of at least 0")
        names = ("coulomb", "static", "damping", "offset")
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    def without_peak(self) -> "FrictionCurve":
        """Coulomb and viscous friction alone, as large as the friction at its least."""
        return replace(self, static=self.coulomb)

    @property
    def symmetric(self) -> bool:
        """But for the offset."""
        return all(np.array_equal(*getattr(self, name)) for name in PARAMETERS)

    def law(self) -> tuple[FrictionLaw, Array]:
        """What directions have in common as a law for simulation, and the offset that it may lack."""
        Fc, Fs, qs, Bv, delta = (getattr(self, name).mean(axis=0) for name in PARAMETERS)
        if np.array_equal(Fc, Fs):
            return CoulombViscous(Fc, Bv, self.offset), np.zeros(self.n)
        return Stribeck(Fc, np.maximum(Fs, Fc), qs, Bv, delta), self.offset


def curve_of(law: FrictionLaw, n: int) -> FrictionCurve:
    """A law of `physics/` as a curve; of one with a state, its steady motion."""
    law = law.steady_state() if isinstance(law, LuGre) else law
    if law.joints not in (None, n):
        raise OptionError(f"{law.label} is set for {law.joints} joints, the robot has {n}; give one number a joint")

    def wide(value: ArrayLike) -> Array:
        return np.broadcast_to(np.asarray(value, dtype=float), (n,))

    if isinstance(law, Stribeck):
        return FrictionCurve(
            wide(law.coulomb), wide(law.static), wide(law.stribeck_velocity), wide(law.damping), wide(law.shape),
            np.zeros(n),
        )  # fmt: skip
    if isinstance(law, Asymmetric):
        dry = np.stack([wide(law.coulomb_forward), wide(law.coulomb_backward)])
        slope = np.stack([wide(law.damping_forward), wide(law.damping_backward)])
        return FrictionCurve(dry, dry, np.ones((2, n)), slope, np.full((2, n), 2.0), np.zeros(n))
    if isinstance(law, CoulombViscous):
        dry = wide(law.coulomb)
        return FrictionCurve(dry, dry, np.ones(n), wide(law.damping), np.full(n, 2.0), wide(law.offset))
    raise OptionError(f"{law.label} has no curve over the velocity alone; give the law without load or temperature")
