"""Friction of joints: one immutable settings object a law, all with the same face.

A number holds for every joint, a sequence has one number a joint. Torques are positive against positive motion, as in
tau = M qdd + C qd + g + friction; `load` is the torque that the joint carries, N·m; temperatures are in °C.

`torque` has the smooth sign of forward simulation, whose width is `SIGN_WIDTH`; `columns` have the exact sign.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DataError, OptionError, unknown_name
from .kernels import friction as table
from .kernels.friction import COLUMNS, REFERENCE_TEMPERATURE, SIGN_WIDTH
from .settings import Finite, NotNegative, PerJoint, Positive

Array = np.ndarray
# From so many widths of the smooth sign on it is one, to rounding; the slopes of laws are looked at on so many speeds.
_AWAY, _SPEEDS = 20.0, 60


def _smooth_sign(qd: Array) -> Array:
    return np.tanh(qd / SIGN_WIDTH)


def _smooth_sign_slope(qd: Array) -> Array:
    return (1.0 - np.tanh(qd / SIGN_WIDTH) ** 2) / SIGN_WIDTH


class FrictionLaw(PerJoint):
    """The face of all laws. Before load and temperature, which `LoadDependent` and `Temperature` add, a law is

    torque = Σ level(q̇) sgn(q̇) + the rest,    at standstill anywhere in centre ± level.
    """

    state: ClassVar[bool] = False  # whether there is a z to integrate

    def torque(
        self,
        qd: ArrayLike,
        *,
        z: ArrayLike | None = None,
        load: ArrayLike = 0.0,
        temperature: ArrayLike = REFERENCE_TEMPERATURE,
    ) -> Array:
        """Friction torque, in the shape of qd; a law with a state takes z, and is in steady state without."""
        return self._warmth(temperature) * self._torque(self._velocities(qd), self._grip(load), z)

    def derivative(
        self, qd: ArrayLike, *, load: ArrayLike = 0.0, temperature: ArrayLike = REFERENCE_TEMPERATURE
    ) -> Array:
        """∂torque/∂q̇ of the (steady) torque; at 0 it is level/SIGN_WIDTH + damping, the steepest it gets."""
        return self._warmth(temperature) * self._derivative(self._velocities(qd), self._grip(load))

    def columns(
        self, qd: ArrayLike, *, load: ArrayLike = 0.0, temperature: ArrayLike = REFERENCE_TEMPERATURE
    ) -> dict[str, Array]:
        """What each of `parameters` multiplies, (T, n), with the exact sign."""
        basis = self._columns(self._velocities(qd), np.abs(np.asarray(load, dtype=float)))
        return {name: self._warmth(temperature) * column for name, column in basis.items()}

    def parameters(self) -> dict[str, Array]:
        """The parameters in which the law is linear, by the names of its columns."""
        raise OptionError(f"{self.label} has a state and is not linear in its parameters; take its steady_state()")

    def zdot(self, qd: ArrayLike, z: ArrayLike, *, load: ArrayLike = 0.0) -> Array:
        """The rate of the state, 0 where there is none."""
        return self._zdot(self._velocities(qd), np.asarray(z, dtype=float), self._grip(load))

    def standstill(
        self, *, load: ArrayLike = 0.0, temperature: ArrayLike = REFERENCE_TEMPERATURE
    ) -> tuple[Array, Array]:
        """Level and centre of the interval of torques at q̇ = 0, for `stiction`."""
        level, centre = self._standstill(self._grip(load))
        return self._warmth(temperature) * level, self._warmth(temperature) * centre

    def fastest_rate(self, inertia: ArrayLike, speed: ArrayLike) -> Array:
        """A bound on the law's rates, 1/s, up to a speed, unloaded: a step of RK4 stays below about 2.5/rate."""
        return self.derivative(np.zeros(self.joints or 1)) / np.asarray(inertia, dtype=float)

    def sliding_rate(self, inertia: ArrayLike, speed: ArrayLike) -> Array:
        """The same away from standstill, where the sign is ±1: what loops need that take the exact sign."""
        fastest = np.maximum(np.max(speed), 1.0)
        speeds = np.geomspace(_AWAY * SIGN_WIDTH, fastest, _SPEEDS)[:, None] * np.ones(self.joints or 1)
        steepest = np.abs(np.concatenate([self.derivative(speeds), self.derivative(-speeds)])).max(axis=0)
        return steepest / np.asarray(inertia, dtype=float)

    def packed(self, n: int) -> tuple[int, Array]:
        """Code and table (n, 8) for compiled loops; `kernels/friction.py` says what stands in the columns."""
        raise NotImplementedError

    def _velocities(self, qd: ArrayLike) -> Array:
        qd = np.atleast_1d(np.asarray(qd, dtype=float))
        if self.joints not in (None, qd.shape[-1]):
            raise DataError(f"{self.label} is set for {self.joints} joints, the velocities have {qd.shape[-1]} columns")
        return qd

    def _grip(self, load: ArrayLike) -> Any:
        """By how much the load multiplies Coulomb levels."""
        return 1.0

    def _warmth(self, temperature: ArrayLike) -> Any:
        """By how much the temperature multiplies all friction."""
        return 1.0

    def _torque(self, qd: Array, grip: Any, z: ArrayLike | None) -> Array:
        raise NotImplementedError

    def _zdot(self, qd: Array, z: Array, grip: Any) -> Array:
        return np.zeros_like(qd)

    def _derivative(self, qd: Array, grip: Any) -> Array:
        raise NotImplementedError

    def _columns(self, qd: Array, load: Array) -> dict[str, Array]:
        raise OptionError(f"{self.label} has a state and is not linear in its parameters; take its steady_state()")

    def _standstill(self, grip: Any) -> tuple[Array, Array]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class CoulombViscous(FrictionLaw):
    """Dry and viscous friction: F = Fc sgn(q̇) + Bv q̇ + offset."""

    label: ClassVar[str] = "Coulomb-viscous friction"
    coulomb: NotNegative
    damping: NotNegative
    offset: Finite = 0.0
    _linear: ClassVar[tuple[str, ...]] = ("damping", "coulomb", "offset")

    def parameters(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in self._linear}

    def packed(self, n: int) -> tuple[int, Array]:
        return table.STATIC, self.rows(n, self.damping, self.coulomb, 0.0, 0.0, 0.0, self.offset, 0.0, 0.0)

    def _torque(self, qd: Array, grip: Any, z: ArrayLike | None) -> Array:
        return grip * self.coulomb * _smooth_sign(qd) + self.damping * qd + self.offset

    def _derivative(self, qd: Array, grip: Any) -> Array:
        return grip * self.coulomb * _smooth_sign_slope(qd) + self.damping

    def _columns(self, qd: Array, load: Array) -> dict[str, Array]:
        basis = {"damping": qd, "coulomb": np.sign(qd), "offset": np.ones_like(qd)}
        return {name: basis[name] for name in self._linear}

    def _standstill(self, grip: Any) -> tuple[Array, Array]:
        return grip * self.coulomb, self.offset


@dataclass(frozen=True, eq=False)
class Coulomb(CoulombViscous):
    """Dry friction: F = Fc sgn(q̇)."""

    label: ClassVar[str] = "Coulomb friction"
    damping: NotNegative = field(default=0.0, init=False)
    offset: Finite = field(default=0.0, init=False)
    _linear: ClassVar[tuple[str, ...]] = ("coulomb",)


@dataclass(frozen=True, eq=False)
class Viscous(CoulombViscous):
    """Viscous friction: F = Bv q̇."""

    label: ClassVar[str] = "viscous friction"
    coulomb: NotNegative = field(default=0.0, init=False)
    offset: Finite = field(default=0.0, init=False)
    _linear: ClassVar[tuple[str, ...]] = ("damping",)


@dataclass(frozen=True, eq=False)
class NoFriction(Viscous):
    """No friction at all."""

    label: ClassVar[str] = "no friction"
    damping: NotNegative = field(default=0.0, init=False)
    _linear: ClassVar[tuple[str, ...]] = ()

    def packed(self, n: int) -> tuple[int, Array]:
        return table.NONE, np.zeros((n, COLUMNS))


@dataclass(frozen=True, eq=False)
class Asymmetric(FrictionLaw):
    """Dry and viscous friction with its own coefficients for each direction; at 0 the derivative is the steeper one."""

    label: ClassVar[str] = "asymmetric friction"
    coulomb_forward: NotNegative
    coulomb_backward: NotNegative
    damping_forward: NotNegative = 0.0
    damping_backward: NotNegative = 0.0

    def parameters(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in self._rules}

    def packed(self, n: int) -> tuple[int, Array]:
        forward, backward = (self.damping_forward, self.coulomb_forward), (self.coulomb_backward, self.damping_backward)
        return table.ASYMMETRIC, self.rows(n, *forward, *backward, 0.0, 0.0, 0.0, 0.0)

    def _torque(self, qd: Array, grip: Any, z: ArrayLike | None) -> Array:
        level = np.where(qd < 0, self.coulomb_backward, self.coulomb_forward)
        return grip * level * _smooth_sign(qd) + np.where(qd < 0, self.damping_backward, self.damping_forward) * qd

    def _derivative(self, qd: Array, grip: Any) -> Array:
        slope = grip * _smooth_sign_slope(qd)
        forward = slope * self.coulomb_forward + self.damping_forward
        backward = slope * self.coulomb_backward + self.damping_backward
        return np.where(qd > 0, forward, np.where(qd < 0, backward, np.maximum(forward, backward)))

    def _columns(self, qd: Array, load: Array) -> dict[str, Array]:
        forward, backward = (qd > 0).astype(float), (qd < 0).astype(float)
        dry = {"coulomb_forward": forward, "coulomb_backward": -backward}
        return dry | {"damping_forward": forward * qd, "damping_backward": backward * qd}

    def _standstill(self, grip: Any) -> tuple[Array, Array]:
        forward, backward = grip * self.coulomb_forward, grip * self.coulomb_backward
        return 0.5 * (forward + backward), 0.5 * (forward - backward)


@dataclass(frozen=True, eq=False)
class Stribeck(FrictionLaw):
    """Friction that dips as the joint gets going: F = [Fc + (Fs − Fc) exp(−|q̇/q̇s|^δ)] sgn(q̇) + Bv q̇.

    Linear in Fc, Fs − Fc and Bv where q̇s and δ are known. Armstrong-Hélouvry et al., Automatica 30 (1994).
    """

    label: ClassVar[str] = "Stribeck friction"
    coulomb: NotNegative
    static: NotNegative
    stribeck_velocity: Positive
    damping: NotNegative = 0.0
    shape: Positive = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.static >= self.coulomb, "static", self.static, "below its Coulomb level")

    def parameters(self) -> dict[str, Array]:
        return {"damping": self.damping, "coulomb": self.coulomb, "stribeck": self.static - self.coulomb}

    def packed(self, n: int) -> tuple[int, Array]:
        levels = (self.damping, self.coulomb, self.static)
        return table.STRIBECK, self.rows(n, *levels, self.stribeck_velocity, self.shape, 0.0, 0.0, 0.0)

    def level(self, qd: ArrayLike) -> Array:
        """g(q̇) = Fc + (Fs − Fc) exp(−|q̇/q̇s|^δ)."""
        return self.coulomb + (self.static - self.coulomb) * self._decay(self._velocities(qd))

    def _decay(self, qd: Array) -> Array:
        return np.exp(-(np.abs(qd / self.stribeck_velocity) ** self.shape))

    def _torque(self, qd: Array, grip: Any, z: ArrayLike | None) -> Array:
        return grip * self.level(qd) * _smooth_sign(qd) + self.damping * qd

    def _derivative(self, qd: Array, grip: Any) -> Array:
        x = np.abs(qd / self.stribeck_velocity)
        # x^(δ−1) is infinite at 0 for δ < 1, but the sign beside it vanishes faster.
        power = np.where(x > 0, np.where(x > 0, x, 1.0) ** (self.shape - 1.0), 0.0)
        fall = self.shape / self.stribeck_velocity * power * np.sign(qd) * self._decay(qd)
        slope = self.level(qd) * _smooth_sign_slope(qd) - (self.static - self.coulomb) * fall * _smooth_sign(qd)
        return grip * slope + self.damping

    def _columns(self, qd: Array, load: Array) -> dict[str, Array]:
        return {"damping": qd, "coulomb": np.sign(qd), "stribeck": np.sign(qd) * self._decay(qd)}

    def _standstill(self, grip: Any) -> tuple[Array, Array]:
        return grip * self.static, np.zeros(1)


@dataclass(frozen=True, eq=False)
class LuGre(FrictionLaw):
    """Bristles that bend, then slip; in steady motion it is Stribeck's law with δ = 2.

        ż = q̇ − σ0 |q̇|/g(q̇) z,    F = σ0 z + σ1 ż + σ2 q̇,    g = Fc + (Fs − Fc) exp(−|q̇/q̇s|²)

    It gives back no more energy than it took while σ1² |q̇| ≤ 4 g (σ1 + σ2), that is at least up to `passive_speed`.
    Canudas de Wit et al., IEEE TAC 40 (1995); passivity: Barahanov and Ortega, IEEE TAC 45 (2000).
    """

    label: ClassVar[str] = "LuGre friction"
    state: ClassVar[bool] = True
    coulomb: Positive
    static: Positive
    stribeck_velocity: Positive
    bristle_stiffness: Positive  # σ0
    bristle_damping: NotNegative = 0.0  # σ1
    damping: NotNegative = 0.0  # σ2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.static >= self.coulomb, "static", self.static, "below its Coulomb level")

    def steady_state(self) -> Stribeck:
        """The law in motion at constant speed, ż = 0."""
        return Stribeck(self.coulomb, self.static, self.stribeck_velocity, self.damping)

    @property
    def passive_speed(self) -> Array:
        """4 Fc (σ1 + σ2)/σ1²: up to here F q̇ − d/dt(σ0 z²/2) is never negative, whatever z."""
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = 4.0 * self.coulomb * (self.bristle_damping + self.damping) / self.bristle_damping**2
        return np.where(self.bristle_damping > 0, speed, np.inf)

    def fastest_rate(self, inertia: ArrayLike, speed: ArrayLike) -> Array:
        J = np.asarray(inertia, dtype=float)
        slip = self.bristle_stiffness * np.abs(speed) / self.coulomb
        return slip + np.sqrt(self.bristle_stiffness / J) + (self.bristle_damping + self.damping) / J

    def sliding_rate(self, inertia: ArrayLike, speed: ArrayLike) -> Array:
        return self.fastest_rate(inertia, speed)

    def packed(self, n: int) -> tuple[int, Array]:
        levels = (self.damping, self.coulomb, self.static, self.stribeck_velocity)
        return table.LUGRE, self.rows(n, *levels, self.bristle_stiffness, self.bristle_damping, 0.0, 0.0)

    def _zdot(self, qd: Array, z: Array, grip: Any) -> Array:
        return qd - self.bristle_stiffness * np.abs(qd) / (grip * self.steady_state().level(qd)) * z

    def _torque(self, qd: Array, grip: Any, z: ArrayLike | None) -> Array:
        if z is None:
            return self.steady_state()._torque(qd, grip, None)
        z = np.asarray(z, dtype=float)
        bristles = self.bristle_stiffness * z + self.bristle_damping * self._zdot(qd, z, grip)
        return bristles + self.damping * qd

    def _derivative(self, qd: Array, grip: Any) -> Array:
        return self.steady_state()._derivative(qd, grip)

    def _standstill(self, grip: Any) -> tuple[Array, Array]:
        return grip * self.static, np.zeros(1)


def stiction(applied: ArrayLike, level: ArrayLike, centre: ArrayLike = 0.0) -> Array:
    """The friction of a joint at standstill: what balances the applied torque, as far as centre ± level reaches.

    A time-stepping loop takes `applied + inertia·q̇/h`: a slow joint then stops within the step h, and stays, exactly.
    """
    applied, level, centre = (np.asarray(x, dtype=float) for x in (applied, level, centre))
    if np.any(level < 0):
        raise OptionError(f"the level of stiction is {level.min():g}; give at least 0")
    return np.clip(applied, centre - level, centre + level)


# Magnitudes for a joint of which only the torque limit is known, as fractions of it: a few percent is what joints of
# arms with harmonic drives show. σ0 bends the bristles by 2 mrad; σ1 keeps LuGre passive up to 40 rad/s and more.
_COULOMB, _STATIC, _DAMPING, _OFFSET, _STRIBECK_VELOCITY = 0.02, 0.03, 0.01, 0.002, 0.1
_BRISTLES = {"bristle_stiffness": 500.0 * _COULOMB, "bristle_damping": 0.1 * _COULOMB}
_NAMED: dict[str, Callable[[Array], FrictionLaw]] = {
    "none": lambda s: NoFriction(),
    "viscous": lambda s: Viscous(damping=_DAMPING * s),
    "coulomb": lambda s: Coulomb(coulomb=_COULOMB * s),
    "coulomb-viscous": lambda s: CoulombViscous(_COULOMB * s, _DAMPING * s),
    "offset": lambda s: CoulombViscous(_COULOMB * s, _DAMPING * s, _OFFSET * s),
    "asymmetric": lambda s: Asymmetric(1.1 * _COULOMB * s, 0.9 * _COULOMB * s, 1.1 * _DAMPING * s, 0.9 * _DAMPING * s),
    "stribeck": lambda s: Stribeck(_COULOMB * s, _STATIC * s, _STRIBECK_VELOCITY, _DAMPING * s),
    "lugre": lambda s: LuGre(
        _COULOMB * s, _STATIC * s, _STRIBECK_VELOCITY, **{k: v * s for k, v in _BRISTLES.items()}, damping=_DAMPING * s
    ),
}
FRICTION_NAMES = tuple(_NAMED)


def friction_named(name: str, torque_scale: ArrayLike = 1.0) -> FrictionLaw:
    """A law by its name, with magnitudes that suit joints of these torque limits (N·m, one or one a joint)."""
    if name not in _NAMED:
        raise OptionError(unknown_name("friction law", name, FRICTION_NAMES))
    return _NAMED[name](_TorqueScale(torque_scale).torque_scale)


@dataclass(frozen=True, eq=False)
class _TorqueScale(PerJoint):
    label: ClassVar[str] = "friction by name"
    torque_scale: Positive
