"""Two results beside each other: whether their parameters agree, and how far their torques part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dynamics import inverse_dynamics
from ..errors import DataError
from ..identification.estimate import Estimate
from ..identification.result_file import SavedResult
from ..robot.states import random_states

Array = NDArray[np.float64]
# Two independent values with a common truth differ by less than this many standard deviations 19 times out of 20.
_AGREE = 1.96
_STATES = 500


@dataclass(frozen=True)
class ParameterPair:
    """A base parameter in both results."""

    name: str
    short: str
    values: tuple[float, float]
    deviations: tuple[float, float]
    distance: float  # in standard deviations of the difference; NaN where neither says how sure it is

    @property
    def agrees(self) -> bool:
        return not self.distance > _AGREE


@dataclass(frozen=True)
class Side:
    """One of the two results, in its own words."""

    file: str
    method: str
    converged: bool
    feasible: bool
    held_out: str
    torque_error: float  # on what it held out; NaN where it was not judged
    mass: float  # of all bodies, kg
    verdict: str


@dataclass(frozen=True)
class ResultComparison:
    """What two results have in common and where they part."""

    sides: tuple[Side, Side]
    parameters: tuple[ParameterPair, ...]
    alone: tuple[tuple[str, ...], tuple[str, ...]]  # base parameters that only one of them has
    torque_difference: tuple[float, ...]  # a joint: root mean square over random states, relative to the first's
    joints: tuple[str, ...]
    same_data: bool
    verdict: str


def _error(saved: SavedResult) -> float:
    found = saved.content.get("validation")
    one = found.get(saved.estimate.method) if isinstance(found, Mapping) else None
    relative = one.get("relative") if isinstance(one, Mapping) else None
    return float(relative) if isinstance(relative, int | float) else float("nan")


def _side(saved: SavedResult) -> Side:
    found = saved.estimate
    return Side(
        file=saved.path.name,
        method=found.method,
        converged=found.converged,
        feasible=not found.invalid,
        held_out=str(saved.content.get("held_out") or "nothing"),
        torque_error=_error(saved),
        mass=float(found.robot.body_parameters[:, 0].sum()),
        verdict=str(saved.content.get("verdict") or ""),
    )


def _distance(values: tuple[float, float], deviations: tuple[float, float]) -> float:
    spread = float(np.hypot(*deviations))
    if not np.isfinite(spread):
        return float("nan")
    gap = abs(values[0] - values[1])
    return gap / spread if spread > 0 else (0.0 if gap == 0 else float("inf"))


def _pairs(a: Estimate, b: Estimate) -> tuple[ParameterPair, ...]:
    there = {name: k for k, name in enumerate(b.base_names)}
    made = []
    for k, name in enumerate(a.base_names):
        if name not in there:
            continue
        m = there[name]
        values = (float(a.base_parameters[k]), float(b.base_parameters[m]))
        deviations = (float(a.base_deviation[k]), float(b.base_deviation[m]))
        made.append(ParameterPair(name, a.model.base.short_names[k], values, deviations, _distance(values, deviations)))
    return tuple(made)


def _torque_difference(a: Estimate, b: Estimate, rng: np.random.Generator) -> tuple[float, ...]:
    states = random_states(a.robot, rng, _STATES)
    one, other = inverse_dynamics(a.robot, *states), inverse_dynamics(b.robot, *states)
    size = np.sqrt(np.mean(one**2, axis=0))
    gap = np.sqrt(np.mean((one - other) ** 2, axis=0))
    return tuple((gap / np.where(size > 0, size, 1.0)).tolist())


def _data(estimate: Estimate) -> set[Any]:
    told = estimate.about.get("recordings") or ()
    return {one.get("numbers_sha256") for one in told if isinstance(one, Mapping)} - {None}


def _percent(x: float) -> str:
    return "not judged" if not np.isfinite(x) else f"{100 * x:.2f} %"


def _verdict(sides: tuple[Side, Side], pairs: tuple[ParameterPair, ...], same_data: bool) -> str:
    known = [pair for pair in pairs if np.isfinite(pair.distance)]
    agree = sum(pair.agrees for pair in known)
    said = f"{agree} of {len(known)} base parameters that both know agree within what chance allows (95 %)"
    if known:
        worst = max(known, key=lambda pair: pair.distance)
        said += "" if worst.agrees else f"; furthest apart: {worst.short}, by {worst.distance:.3g} standard deviations"
    if same_data:
        said += "; both learnt from the same data, so that their errors go together and they should agree closer"
    errors = [side.torque_error for side in sides]
    if np.isfinite(errors).all():
        alike = sides[0].held_out == sides[1].held_out and same_data
        said += f"; torque error {_percent(errors[0])} and {_percent(errors[1])}"
        said += "" if alike else ", each on what it held out itself, which need not be the same"
    return said


def compare_results(a: SavedResult, b: SavedResult, rng: np.random.Generator) -> ResultComparison:
    """Base parameters by name, torques of both models at the same random states, and errors on held-out data."""
    first, second = a.estimate, b.estimate
    joints = first.robot.dof_names
    if joints != second.robot.dof_names:
        raise DataError(
            f"{a.path.name} is of a robot with the joints {', '.join(joints)}, {b.path.name} of one with "
            f"{', '.join(second.robot.dof_names)}; compare results of the same robot"
        )
    pairs = _pairs(first, second)
    if not pairs:
        raise DataError(f"{a.path.name} and {b.path.name} have no base parameter in common; are they of one robot?")
    shared = {pair.name for pair in pairs}
    sides = (_side(a), _side(b))
    same_data = bool(_data(first)) and _data(first) == _data(second)
    return ResultComparison(
        sides=sides,
        parameters=pairs,
        alone=tuple(tuple(n for n in one.base_names if n not in shared) for one in (first, second)),  # type: ignore[arg-type]
        torque_difference=_torque_difference(first, second, rng),
        joints=joints,
        same_data=same_data,
        verdict=_verdict(sides, pairs, same_data),
    )
