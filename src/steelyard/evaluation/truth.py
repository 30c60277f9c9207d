"""What a simulation knew, against what was found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ..data.recording import Recording
from ..identification.estimate import Estimate

Array = NDArray[np.float64]
# Of the intervals that are looked at.
_CONFIDENCE = 0.95
_PROPERTIES = ("damping", "coulomb", "offset")


@dataclass(frozen=True)
class Truth:
    """How far an estimate is from the parameters that made a recording."""

    count: int
    inside: int  # base parameters whose 95 % interval has the truth
    relative_error: float  # ‖beta − truth‖/‖truth‖
    nominal_error: float
    largest_z: float
    base_truth: tuple[float, ...]

    @property
    def least_expected(self) -> int:
        """As many are inside at least, 99 times of 100, where intervals hold the truth as often as they say."""
        return int(binom.ppf(0.01, self.count, _CONFIDENCE))

    @property
    def honest(self) -> bool:
        return self.inside >= self.least_expected

    @property
    def verdict(self) -> str:
        """Whether the parameters found lie within their intervals of the truth, in words."""
        told = f"{self.inside} of {self.count} base parameters lie within their 95 % intervals of the truth"
        if self.honest:
            return f"{told}: the intervals hold what they promise ({self.least_expected} or more are expected)"
        return f"{told}, but {self.least_expected} or more are expected: the intervals are TOO NARROW here"


def true_parameters(estimate: Estimate, about: Mapping[str, Any]) -> Array | None:
    """All parameters as the simulation had them, in the order of the estimate's names; None where it does not say."""
    known = about.get("parameters")
    if not isinstance(known, Mapping) or estimate.model.loads or estimate.model.terms:
        return None
    values = dict(known)
    friction = about.get("friction")
    if isinstance(friction, Mapping):
        if friction.get("kind") not in ("NoFriction", "Viscous", "Coulomb", "CoulombViscous"):
            return None  # other laws have no place among these parameters
        n = estimate.model.robot.n
        for prop in _PROPERTIES:
            per_joint = np.broadcast_to(np.asarray(friction.get(prop, 0.0), dtype=float), (n,))
            for dof, value in zip(estimate.model.robot.dof_names, per_joint, strict=True):
                values[f"{dof}.{prop}"] = float(value)
    if any(name not in values for name in estimate.names):
        return None
    return np.array([float(values[name]) for name in estimate.names])


def compare_with_truth(estimate: Estimate, recording: Recording) -> Truth | None:
    """The estimate against what the recording's simulation knew; None where it was no simulation, or not comparable."""
    theta = true_parameters(estimate, recording.about)
    if theta is None:
        return None
    base = estimate.model.base
    truth, nominal = base.reduce(theta), base.reduce(estimate.nominal)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(estimate.base_parameters - truth) / estimate.base_deviation
    z = np.where(np.isfinite(z), z, 0.0)
    size = float(np.linalg.norm(truth)) or 1.0
    return Truth(
        count=base.rank,
        inside=int((z < 1.96).sum()),
        relative_error=float(np.linalg.norm(estimate.base_parameters - truth)) / size,
        nominal_error=float(np.linalg.norm(nominal - truth)) / size,
        largest_z=float(z.max(initial=0.0)),
        base_truth=tuple(truth.tolist()),
    )
