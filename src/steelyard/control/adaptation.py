"""A run of an adaptive controller, judged: how well it tracked, what it found, and whether the motion shows it.

A combination of parameters is shown where it is learnt within the run: λ T ≥ 4, with λ an eigenvalue of Γ½ G Γ½ and G
the excitation Gramian, the mean of Yᵀ K_D⁻¹ Y over what was really moved. Γ is made so that λ falls below `rate` where
noise and errors of the model drown what a parameter of its usual size does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from ..errors import DataError
from ..identification.estimate import Estimate
from .adaptive import Adapting, SlotineLi
from .loop import Controlling, Plant, Run, run_controlled
from .tracking import ComputedTorque, Feedback

Array = NDArray[np.float64]

# e⁻⁴ is 2 %: what is learnt more slowly was not learnt.
_TIME_CONSTANTS = 4.0
_LEANS = 0.1  # of a parameter, in units of what Γ takes for its size, on combinations that are not shown
_BATCHES = 8
# A controller that tracks within twice its dead zone has nothing left that it could tell from noise.
_WITHIN = 2.0


@dataclass(frozen=True)
class Found:
    """One parameter after a run."""

    name: str
    unit: str
    start: float
    value: float  # mean over the last quarter of the run
    deviation: float  # of that mean: its noise, its drift, and what the model may be wrong by; infinite where not shown
    drift: float  # from the third quarter to the last
    shown: bool

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        reach = float(student.ppf(0.5 + 0.5 * confidence, _BATCHES - 1)) * self.deviation
        return self.value - reach, self.value + reach


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What an adaptive run came to."""

    law: SlotineLi
    run: Run
    gramian: Array  # G, the mean over the run

    @cached_property
    def _last(self) -> slice:
        return slice(3 * len(self.run.t) // 4, None)

    @property
    def duration(self) -> float:
        return len(self.run.t) / self.law.control_hz

    @cached_property
    def _modes(self) -> tuple[Array, Array, Array]:
        """Eigenvalues and eigenvectors of Γ½ G Γ½, and Γ½."""
        gain, vectors = np.linalg.eigh(self.law.gain)
        root = (vectors * np.sqrt(np.maximum(gain, 0.0))) @ vectors.T
        rates, modes = np.linalg.eigh(root @ self.gramian @ root)
        return np.maximum(rates, 0.0), modes, root

    @property
    def rates(self) -> Array:
        """How fast each combination of parameters was learnt, 1/s, rising."""
        return self._modes[0]

    @property
    def needed_rate(self) -> float:
        return _TIME_CONSTANTS / self.duration

    @property
    def combinations_shown(self) -> int:
        return int(np.sum(self.rates >= self.needed_rate))

    @cached_property
    def found(self) -> tuple[Found, ...]:
        phi, robot = self.run.signals["phi"], self.law.known
        last = phi[self._last]
        value = last.mean(axis=0)
        third = phi[len(phi) // 2 : 3 * len(phi) // 4].mean(axis=0)
        batches = np.array([part.mean(axis=0) for part in np.array_split(last, _BATCHES)])
        noise = batches.std(axis=0, ddof=1) / np.sqrt(_BATCHES)
        rates, modes, root = self._modes
        # Each parameter in the coordinates of the modes: how much it leans on those that were not shown.
        lean = root @ modes
        hidden = rates < self.needed_rate
        weight = np.sum(lean[:, hidden] ** 2, axis=1) / np.maximum(np.sum(lean**2, axis=1), 1e-300)
        seen = np.maximum(rates, 1e-300)
        room = np.sum(lean[:, ~hidden] ** 2 / seen[~hidden], axis=1) * self._left
        shown = weight < _LEANS**2
        drift = value - third
        deviation = np.where(shown, np.sqrt(noise**2 + room + drift**2), np.inf)
        names, units, start = (
            self.law.unknown.names(robot),
            self.law.unknown.units(robot),
            self.law.unknown.start(robot),
        )
        return tuple(
            Found(name, unit, float(a), float(b), float(c), float(d), bool(e))
            for name, unit, a, b, c, d, e in zip(names, units, start, value, deviation, drift, shown, strict=True)
        )

    @cached_property
    def _left(self) -> float:
        """Mean of rᵀ K_D⁻¹ r, of what the model may be wrong by, and of the dead zone where nothing else learns."""
        dead = 0.0 if self.law.prediction else float(np.sum(self.law.damping * self.law.dead_zone**2))
        return self.law.unmodelled(self.run.tau) + dead

    @property
    def dead_zone(self) -> Array:
        """The error that noise alone could make, Δ/Λ, (n,)."""
        return self.law.dead_zone / self.law.stiffness

    @cached_property
    def error(self) -> tuple[Array, Array]:
        """Root mean square of the true error in the first tenth of the run, and in its last quarter, (n,) each."""
        return errors_of(self.run)

    @property
    def within_dead_zone(self) -> bool:
        return bool((self.error[1] <= _WITHIN * self.dead_zone).all())

    @property
    def is_excited(self) -> bool:
        return all(one.shown for one in self.found)

    @property
    def verdict(self) -> str:
        slowest, names = float(self.rates[0]), [one.name for one in self.found if not one.shown]
        if self.is_excited:
            return (
                f"the motion shows all {len(self.found)} parameters: the slowest combination is learnt at "
                f"{slowest:.2g}/s ({slowest * self.duration:.3g} time constants in {self.duration:.3g} s)"
            )
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        return (
            f"the motion does not show {listed} (smallest eigenvalue of the excitation Gramian, in units of the gain, "
            f"{slowest:.2g}/s; {self.needed_rate:.2g}/s is needed in {self.duration:.3g} s): "
            "what was found of them is not to be trusted; move more joints, farther, or longer"
        )


def errors_of(run: Run) -> tuple[Array, Array]:
    """Root mean square of a run's true error in its first tenth, and in its last quarter, (n,) each."""
    n = len(run.t)
    first, last = run.error[: max(1, n // 10)], run.error[3 * n // 4 :]
    return np.sqrt(np.mean(first**2, axis=0)), np.sqrt(np.mean(last**2, axis=0))


class _Kept:
    """A controller whose memory is still there after the run."""

    def __init__(self, law: SlotineLi) -> None:
        self.law = law

    def start(self, n: int, dt: float) -> Adapting:
        self.memory = self.law.start(n, dt)
        return self.memory


def adapt(plant: Plant, law: SlotineLi, *, push: ArrayLike | None = None, rng: np.random.Generator) -> Adaptation:
    """Let an adaptive controller move a plant along the reference that it was made for."""
    if np.shape(law.reference)[1] < 4 * _BATCHES:
        raise DataError(f"the reference has {np.shape(law.reference)[1]} ticks; at least {4 * _BATCHES} are needed")
    kept = _Kept(law)
    run = run_controlled(plant, kept, law.reference, push=push, rng=rng)
    return Adaptation(law, run, kept.memory.gramian)


def opponents(
    plant: Plant, law: SlotineLi, rng: np.random.Generator, believed: Estimate | None = None
) -> Mapping[str, Run]:
    """The same motion under controllers of the same bandwidth that learn nothing.

    `believed` is what the model of the unloaded robot was identified as, with all its terms.
    """
    smooth = law.velocity_cutoff_hz
    model = law.robot if believed is None else believed
    controllers: dict[str, Controlling] = {
        "PD alone": Feedback(law.damping, law.stiffness, smooth),
        "computed torque, load unknown": ComputedTorque(model, law.bandwidth_hz, velocity_cutoff_hz=smooth),
        "computed torque, load known": ComputedTorque(plant.robot, law.bandwidth_hz, velocity_cutoff_hz=smooth),
    }
    return {name: run_controlled(plant, one, law.reference, rng=rng) for name, one in controllers.items()}
