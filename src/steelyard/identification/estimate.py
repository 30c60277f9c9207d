"""`Estimate`: what an identification found, how sure it is, and what it could not tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..data.recording import Recording
from ..robot.feasibility import Invalidity, invalidities
from ..robot.robot import Robot
from .model import LinearModel, Load, sliced_torque
from .problem import DataSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointResidual:
    """What was left of a joint's torque on the data that it was fitted to."""

    joint: str
    rows: int
    rmse: float
    relative: float  # of the root mean square of the torque
    largest: float
    noise: float  # standard deviation, degrees of freedom accounted for
    noise_order: int  # of the autoregression that describes it; 0 is white
    autocorrelation: float  # from one row to the next
    memory: float  # how many rows count as one


@dataclass(frozen=True)
class ShapeValue:
    """A value in which torque is not linear, as it was found; the terms of the model are made of these."""

    name: str
    value: float
    deviation: float
    unit: str
    at_limit: bool = False  # of the range that it was sought in: then its deviation says little


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with their uncertainty.

    `parameters` holds all of `names`; what the data cannot tell apart keeps the model's values, and its `deviation` is
    infinite. `base_parameters` are what the data do tell, with their covariance.
    """

    method: str
    settings: Mapping[str, Any]
    model: LinearModel = field(repr=False)
    parameters: Array
    deviation: Array
    base_parameters: Array
    base_covariance: Array = field(repr=False)
    blind: Array = field(repr=False)  # directions of the base parameters that these data do not show, as columns
    converged: bool
    message: str
    iterations: int
    seconds: float
    residuals: tuple[JointResidual, ...]
    data_set: DataSet = field(repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    shapes: tuple[ShapeValue, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.model.units

    @property
    def nominal(self) -> Array:
        return self.model.nominal

    @property
    def base_names(self) -> tuple[str, ...]:
        return self.model.base.names

    @cached_property
    def base_deviation(self) -> Array:
        """Standard deviation of every base parameter, infinite where the data say nothing of it."""
        deviation = np.sqrt(np.maximum(np.diag(self.base_covariance), 0.0))
        return np.where(unseen(self.blind), np.inf, deviation)

    @cached_property
    def base_relative(self) -> Array:
        """Standard deviation in percent of the value."""
        size = np.abs(self.base_parameters)
        return np.where(size > 0, 100.0 * self.base_deviation / np.where(size > 0, size, 1.0), np.inf)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the base parameters."""
        reach = ndtri(0.5 + 0.5 * confidence) * self.base_deviation
        return self.base_parameters - reach, self.base_parameters + reach

    @cached_property
    def robot(self) -> Robot:
        """The robot with the parameters found; terms and loads that a model file cannot hold stay in `parameters`."""
        return self.model.robot.with_parameters(self.parameters[: self.model.robot.layout.size])

    @cached_property
    def invalid(self) -> tuple[Invalidity, ...]:
        """Every reason why no real body could have these parameters; empty where one could."""
        layout, theta = self.robot.layout, self.parameters
        joint = {
            prop: dict(zip(layout.dofs, theta[layout.block(prop)].tolist(), strict=True)) for prop in layout.properties
        }
        bodies = theta[layout.inertial].reshape(-1, 10)
        return invalidities(layout.bodies, bodies, joint, linear_dofs=layout.linear_dofs)

    def torque(self, recording: Recording, load: Load | None = None) -> Array:
        """The torque that the parameters predict for a recording's states."""
        return sliced_torque(self.model, self.parameters, recording, load)


def unseen(blind: Array) -> NDArray[np.bool_]:
    """Which base parameters a set of blind directions touches."""
    if not blind.shape[1]:
        return np.zeros(len(blind), dtype=bool)
    # Relative to each direction's largest part; rounding leaves 1e-10.
    return np.asarray((np.abs(blind) > 1e-6 * np.abs(blind).max(axis=0)).any(axis=1))


def full_deviation(model: LinearModel, base_deviation: Array) -> Array:
    """Deviation of all parameters: those of base parameters that stand alone, 0 for known ones, else infinite."""
    deviation = np.full(len(model.names), np.inf)
    alone = np.abs(model.base.K).max(axis=1, initial=0.0) <= 1e-12
    deviation[model.base.kept[alone]] = base_deviation[alone]
    deviation[[model.robot.layout.index(name) for name in model.fixed]] = 0.0
    return deviation
