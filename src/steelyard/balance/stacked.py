"""`Stacked`: the equations of several poses together, all at once or one after the other.

Each pose gives A φ = b with Cov(b) = V (drawn anew) + B Bᵀ (the same error in all poses). Weighted by
W = (V + B Bᵀ)⁻¹,

    φ = H⁻¹ g,    H = Σ AᵀWA,  g = ΣAᵀWb,    Cov φ = H⁻¹ (Σ AᵀWVWA + G Gᵀ) H⁻¹,  G = ΣAᵀWB

so that a bias of a sensor, which no number of poses averages away, stays in the interval.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from ..errors import OptionError
from .poses import Accuracy, Poses
from .stance import Stance
from .statics import DIRECT, Coupling, Equations, equations

Array = NDArray[np.float64]

# A direction is blind where its standard deviation is above this share of the upper body's mass, or of mass times leg
# length: a centre of mass that is known to some centimetres at best is not known.
BLIND = 0.1
# A figure is out of sight where this share of it lies in a blind direction.
_SEEN = 1e-3


@dataclass(frozen=True)
class Stacked:
    """Weighted least squares over poses. `mass` of the upper body, kg, where it is known; else it is found."""

    mass: float | None = None
    coupling: Coupling = DIRECT
    accuracy: Accuracy = field(default_factory=Accuracy)

    def __post_init__(self) -> None:
        if self.mass is not None and not 0 < self.mass < np.inf:
            raise OptionError(f"the mass of the upper body is {self.mass:g} kg; give a finite number above 0")


@dataclass(frozen=True, eq=False)
class State:
    """What the poses so far have said, as sums; `step` makes the next one."""

    names: tuple[str, ...]
    nominal: Array  # (p,) with a known mass in its place
    scale: Array  # (p,) of each unknown: mass, mass by leg length, one
    free: NDArray[np.bool_]  # what is to be found
    information: Array  # H, scaled
    right: Array  # g, of what is left of b at the nominal values
    noise: Array  # ΣAᵀWVWA
    shared: Array  # G, (p, sources)
    energy: float  # Σ bᵀWb
    rows: int
    gains: tuple[Array, ...] = ()  # H of every pose


@dataclass(frozen=True, eq=False)
class CentreOfMass:
    """Where the upper body's centre of mass is, in the trunk's frame, and what it weighs."""

    names: tuple[str, ...]
    parameters: Array  # m, m·x, m·y, m·z, and the coupling where it is estimated
    covariance: Array
    com: Array  # (3,) m
    com_covariance: Array  # (3, 3)
    deviation: dict[str, float]  # of mass, x, y, z and coupling; inf where the poses do not show it
    blind: tuple[str, ...]  # directions that the poses do not show; there the nominal values stand
    condition: float  # of the scaled equations
    misfit: float  # root mean square of the weighted residuals: 1 where errors are as assumed
    freedom: int  # equations less unknowns
    poses: int
    shares: Array  # (poses, 4): how much of what is known of mass, x, y, z came from each pose

    @property
    def mass(self) -> float:
        return float(self.parameters[0])

    @property
    def coupling(self) -> float | None:
        return float(self.parameters[4]) if len(self.parameters) > 4 else None

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """Of mass, x, y, z or coupling."""
        values = {"mass": self.mass, **dict(zip("xyz", self.com, strict=True))}
        if self.coupling is not None:
            values["coupling"] = self.coupling
        half = self.deviation[name] * quantile(self.freedom, confidence)
        return values[name] - half, values[name] + half

    @property
    def message(self) -> str:
        if self.blind:
            return "the poses do not show " + "; nor ".join(self.blind) + ": nominal values stand there"
        if self.misfit > 1.5:
            return (
                f"residuals are {self.misfit:.1f} times what the sensors' accuracy explains, and intervals are widened "
                "so; check signs and units, the model's legs, and whether the knee's drive is coupled to the hip's"
            )
        return f"{self.poses} poses agree with each other as well as the sensors' accuracy lets expect"


def quantile(freedom: int, confidence: float = 0.95) -> float:
    """How many standard deviations an interval is wide on each side: Student's, for the residuals' freedom."""
    return float(scipy.stats.t.ppf(0.5 + 0.5 * confidence, max(freedom, 1)))


def init(stance: Stance, settings: Stacked | None = None) -> State:
    """Nothing seen yet."""
    settings = settings or Stacked()
    unit = max(float(stance.nominal[0]), 1e-3)
    names = [f"{stance.trunk}.{part}" for part in ("m", "mx", "my", "mz")]
    nominal, scale = stance.nominal.copy(), np.array([unit, *[unit * stance.leg_length] * 3])
    if settings.mass is not None:
        nominal *= settings.mass / unit
    if settings.coupling.ratio is None:
        names.append("coupling")
        nominal, scale = np.append(nominal, 0.0), np.append(scale, 1.0)
    p = len(names)
    free = np.ones(p, dtype=bool)
    free[0] = settings.mass is None
    return State(
        tuple(names), nominal, scale, free, np.zeros((p, p)), np.zeros(p), np.zeros((p, p)), np.zeros((p, 0)), 0.0, 0
    )


def step(state: State, pose: Equations) -> State:
    """One more pose."""
    A = pose.A * state.scale
    left = pose.b - pose.A @ state.nominal
    W = np.linalg.inv(pose.random + pose.shared @ pose.shared.T)
    H = A.T @ W @ A
    shared = state.shared if state.shared.shape[1] else np.zeros((len(state.names), pose.shared.shape[1]))
    return State(
        state.names,
        state.nominal,
        state.scale,
        state.free,
        state.information + H,
        state.right + A.T @ W @ left,
        state.noise + A.T @ W @ pose.random @ W @ A,
        shared + A.T @ W @ pose.shared,
        state.energy + float(left @ W @ left),
        state.rows + len(left),
        (*state.gains, H),
    )


def _direction(names: tuple[str, ...], vector: Array) -> str:
    order = np.argsort(-np.abs(vector))
    terms = [f"{vector[k]:+.2f}·{names[k]}" for k in order if abs(vector[k]) > 0.05]
    return " ".join(terms).removeprefix("+")


def estimate(state: State) -> CentreOfMass:
    """What the poses so far say; directions that they do not show keep their nominal values."""
    free = np.flatnonzero(state.free)
    p = len(state.names)
    H = state.information[np.ix_(free, free)]
    eigenvalues, U = np.linalg.eigh(H)
    seen = eigenvalues > 1.0 / BLIND**2
    inverse = np.zeros((p, p))
    inverse[np.ix_(free, free)] = (U[:, seen] / eigenvalues[seen]) @ U[:, seen].T
    change = inverse @ state.right
    blind = np.zeros((p, int((~seen).sum())))
    blind[free] = U[:, ~seen]
    freedom = state.rows - int(seen.sum())
    left = max(state.energy - float(state.right @ change), 0.0)
    misfit = float(np.sqrt(left / freedom)) if freedom > 0 else 1.0
    error = state.noise + state.shared @ state.shared.T
    scaled = inverse @ error @ inverse * max(1.0, misfit) ** 2
    phi = state.nominal + state.scale * change
    covariance = scaled * np.outer(state.scale, state.scale)
    mass = phi[0] if phi[0] > 0 else np.nan
    com = phi[1:4] / mass
    slopes = np.zeros((5 if p > 4 else 4, p))  # of mass, x, y, z, coupling by the scaled unknowns
    slopes[0, 0] = state.scale[0]
    slopes[1:4, 0], slopes[1:4, 1:4] = -com / mass * state.scale[0], np.diag(state.scale[1:4]) / mass
    if p > 4:
        slopes[4, 4] = 1.0
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", slopes, scaled, slopes))
    hidden = np.abs(slopes @ blind).max(axis=1, initial=0.0) > _SEEN * np.linalg.norm(slopes, axis=1)
    deviations[hidden] = np.inf
    total = np.einsum("ij,jk,ik->i", slopes[:4], inverse, slopes[:4])
    from_each = [np.einsum("ij,jk,ik->i", slopes[:4], inverse @ gain @ inverse, slopes[:4]) for gain in state.gains]
    shares = np.divide(from_each, total, out=np.zeros((len(from_each), 4)), where=total > 0)
    return CentreOfMass(
        state.names,
        phi,
        covariance,
        com,
        slopes[1:4] @ scaled @ slopes[1:4].T,
        dict(zip(("mass", "x", "y", "z", "coupling"), deviations.tolist(), strict=False)),
        tuple(_direction(tuple(state.names[k] for k in free), U[:, k]) for k in np.flatnonzero(~seen)),
        float(np.sqrt(eigenvalues[-1] / max(eigenvalues[0], 1e-300))),
        misfit,
        freedom,
        len(state.gains),
        shares,
    )


def fold(state: State, made: Iterable[Equations]) -> State:
    for pose in made:
        state = step(state, pose)
    return state


def centre_of_mass(stance: Stance, poses: Poses, settings: Stacked | None = None) -> CentreOfMass:
    """Centre of mass and mass of the upper body from several poses."""
    settings = settings or Stacked()
    made = equations(stance, poses, settings.accuracy, settings.coupling)
    found = estimate(fold(init(stance, settings), made))
    if found.blind or not found.mass > 0:
        return found
    # What errors do depends on the upper body and the drive: once more, about what was found.
    about = found.parameters[:4]
    made = equations(stance, poses, settings.accuracy, settings.coupling, about, found.coupling)
    return estimate(fold(init(stance, settings), made))
