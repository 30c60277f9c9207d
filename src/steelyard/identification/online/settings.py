"""Which recursive estimator, and with what: immutable settings, the same for a stream and for a whole recording."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np

from ...errors import OptionError
from ..fit import Fit, Progress, silent
from ..problem import Problem
from .coordinates import CHOICES, Choice
from .recursive import check_forgetting
from .sigma_points import CentralDifferences, Derivatives, Rule, Unscented

Noise = float | tuple[float, ...] | None
State = Literal["parameters", "joint"]
Arithmetic = Literal["covariance", "root", "particles"]


def _positive(settings: Any, *names: str, zero: bool = False) -> None:
    for name in names:
        value = getattr(settings, name)
        if value is None:
            continue
        array = np.asarray(value, dtype=np.float64)
        if array.ndim > 1 or not np.isfinite(array).all() or not ((array >= 0).all() if zero else (array > 0).all()):
            least = "at least" if zero else "above"
            raise OptionError(f"{name} of {type(settings).__name__} is {value}; give finite numbers {least} 0")


@dataclass(frozen=True)
class RLS:
    """Recursive least squares on the base parameters.

    `prior` is α of P0 = αI; where it is None every body and joint of the model may be wrong by `relative` of itself,
    and what is zero by a share of what would matter. `noise` is the torque's standard deviation, one number or one a
    joint.
    """

    forgetting: float = 1.0
    directional: bool = True
    prior: float | None = None
    relative: float = 1.0
    noise: Noise = None
    name: ClassVar[str] = "RLS"

    def __post_init__(self) -> None:
        check_forgetting(self.forgetting)
        _positive(self, "prior", "relative", "noise")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        """The estimate after all rows of a problem."""
        from .fitting import fit_rows  # which knows these settings

        return fit_rows(self, problem, progress)


@dataclass(frozen=True)
class Filter:
    """What all Bayesian filters share.

    `on` is "parameters" (the torque is measured, accelerations are given) or "joint" (x = [q, q̇, ξ], the position is
    measured, the torque drives). `relative` is the prior's standard deviation of the parameters. The parameters may
    move by `drift` prior variances a second, and at the beginning by `anneal` more, which dies out with `anneal_time`:
    without it a filter that starts wrong is sure of itself too early.
    """

    on: State = "parameters"
    coordinates: Choice = "physical"
    relative: float = 0.15
    prior: float | None = None  # P0 = prior·I of the parameters, instead of `relative`
    torque_noise: Noise = None  # N·m, standard deviation a sample
    position_noise: float | None = None  # rad
    rate_noise: float | None = None  # rad/s; where given, the filter measures q̇ too
    first_rate: float = 0.5  # rad/s, by how much the first velocity may be wrong
    torque: Literal["held", "interpolated"] = "interpolated"  # between samples
    drift: float = 0.0
    anneal: float = 0.1
    anneal_time: float = 0.5
    name: ClassVar[str] = ""
    arithmetic: ClassVar[Arithmetic] = "covariance"

    def __post_init__(self) -> None:
        if self.on not in ("parameters", "joint"):
            raise OptionError(f"{self.name} works on 'parameters' or 'joint', not on '{self.on}'")
        if self.coordinates not in CHOICES:
            raise OptionError(f"no coordinates '{self.coordinates}'; valid: {', '.join(CHOICES)}")
        if self.torque not in ("held", "interpolated"):
            raise OptionError(f"the torque between samples is 'held' or 'interpolated', not '{self.torque}'")
        _positive(self, "relative", "prior", "torque_noise", "position_noise", "rate_noise", "first_rate")
        _positive(self, "drift", "anneal", zero=True)
        _positive(self, "anneal_time")

    @property
    def rule(self) -> Rule:
        return Derivatives()

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        """The estimate after all samples of a problem's recordings."""
        from .fitting import fit_states  # which knows these settings

        return fit_states(self, problem, progress)

    def share(self, age: float) -> float:
        """Prior variances a second that the parameters may move by, so long after the start."""
        return self.drift + self.anneal * float(np.exp(-age / self.anneal_time))


@dataclass(frozen=True)
class EKF(Filter):
    """The extended Kalman filter: by derivatives."""

    name: ClassVar[str] = "EKF"


@dataclass(frozen=True)
class SREKF(Filter):
    """The extended Kalman filter on a root of the covariance."""

    name: ClassVar[str] = "SREKF"
    arithmetic: ClassVar[Arithmetic] = "root"


@dataclass(frozen=True)
class UKF(Filter):
    """The unscented Kalman filter."""

    alpha: float = 0.1
    beta: float = 2.0
    kappa: float = 0.0
    name: ClassVar[str] = "UKF"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.rule  # which says what is wrong with alpha, beta, kappa

    @property
    def rule(self) -> Rule:
        return Unscented(self.alpha, self.beta, self.kappa)


@dataclass(frozen=True)
class SRUKF(UKF):
    """The unscented Kalman filter on a root of the covariance."""

    name: ClassVar[str] = "SRUKF"
    arithmetic: ClassVar[Arithmetic] = "root"


@dataclass(frozen=True)
class CDKF(Filter):
    """The central-difference Kalman filter."""

    h: float = float(np.sqrt(3.0))
    name: ClassVar[str] = "CDKF"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.rule

    @property
    def rule(self) -> Rule:
        return CentralDifferences(self.h)


@dataclass(frozen=True)
class SRCDKF(CDKF):
    """The central-difference Kalman filter on a root of the covariance."""

    name: ClassVar[str] = "SRCDKF"
    arithmetic: ClassVar[Arithmetic] = "root"


@dataclass(frozen=True)
class PF(Filter):
    """The particle filter; `seed` fixes its random numbers."""

    particles: int = 25  # a parameter
    seed: int = 0
    name: ClassVar[str] = "PF"
    arithmetic: ClassVar[Arithmetic] = "particles"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.particles < 1:
            raise OptionError(f"{self.particles} particles a parameter; give at least 1 (25 is usual)")


Settings = RLS | Filter
METHODS: dict[str, type[RLS] | type[Filter]] = {
    cls.name: cls for cls in (RLS, EKF, UKF, CDKF, SREKF, SRUKF, SRCDKF, PF)
}


def as_dict(settings: Settings) -> dict[str, Any]:
    """The settings with the name of their class, for files."""
    return {"method": settings.name, **{f.name: getattr(settings, f.name) for f in fields(settings)}}


def from_dict(given: dict[str, Any]) -> Settings:
    """What `as_dict` wrote."""
    values = dict(given)
    cls: Any = METHODS[values.pop("method")]
    settings: Settings = cls(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    )
    return settings


__all__ = ["CDKF", "EKF", "METHODS", "PF", "RLS", "SRCDKF", "SREKF", "SRUKF", "UKF", "Filter", "Settings"]
