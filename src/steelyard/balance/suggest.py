"""Which poses to take: those that show mass and centre of mass best, chosen by a criterion of excitation."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, OptionError
from ..excitation.criteria import AOptimal, Criterion
from .poses import Poses
from .posture import home_height, lean, posture, standing
from .stacked import CentreOfMass, Stacked, estimate, fold, init
from .stance import Stance
from .statics import Equations, equations

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PoseGrid:
    """Candidates: heights as shares of the home height, pitch and roll in rad."""

    heights: tuple[float, ...] = (0.8, 0.9, 1.0)
    pitches: tuple[float, ...] = tuple(float(x) for x in np.radians([-40, -30, -20, -10, 0, 10, 20, 30, 40]))
    rolls: tuple[float, ...] = (-0.1, 0.0, 0.1)


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Poses in the order in which they add most, and what they would tell."""

    height: Array  # (P,) m
    pitch: Array  # (P,) rad
    roll: Array  # (P,) rad
    poses: Poses
    expected: CentreOfMass  # deviations that the sensors' accuracy lets expect
    candidates: int
    criterion: str


@dataclass(frozen=True, eq=False)
class _Candidates:
    where: list[tuple[float, float, float]] = field(default_factory=list)
    q: list[Array] = field(default_factory=list)
    force: list[Array] = field(default_factory=list)


def _reachable(stance: Stance, grid: PoseGrid) -> _Candidates:
    found, home, phi = _Candidates(), home_height(stance), stance.nominal
    for share in grid.heights:
        for roll in grid.rolls:
            for pitch in grid.pitches:
                q = posture(stance, share * home, pitch, roll, phi)
                if q is None:
                    continue
                found.where.append((share * home, pitch, roll))
                found.q.append(q)
                found.force.append(9.81 * lean(stance, pitch, roll).T @ (0.0, 0.0, 1.0))
    return found


def _value(information: Array, criterion: Criterion) -> float:
    return criterion.value(np.maximum(np.linalg.eigvalsh(information), 1e-300))


def _exchange(gains: Sequence[Array], count: int, criterion: Criterion) -> list[int]:
    """Greedy choice, then swaps while one helps; a candidate is chosen once. Starts from a trace of prior knowledge."""
    prior = np.eye(len(gains[0])) * 1e-6 * np.mean([np.trace(gain) for gain in gains])
    chosen: list[int] = []
    for _ in range(count):
        total = prior + sum((gains[k] for k in chosen), np.zeros_like(prior))
        rest = [k for k in range(len(gains)) if k not in chosen]
        chosen.append(min(rest, key=lambda k: _value(total + gains[k], criterion)))
    for _ in range(20):
        total = prior + sum((gains[k] for k in chosen), np.zeros_like(prior))
        best, swap = _value(total, criterion) * (1 - 1e-9), None
        for place, old in enumerate(chosen):
            for new in set(range(len(gains))) - set(chosen):
                value = _value(total - gains[old] + gains[new], criterion)
                if value < best:
                    best, swap = value, (place, new)
        if swap is None:
            break
        chosen[swap[0]] = swap[1]
    return chosen


def suggest_poses(
    stance: Stance,
    count: int,
    settings: Stacked | None = None,
    criterion: Criterion | None = None,
    grid: PoseGrid | None = None,
) -> Suggestion:
    """Choose poses among all that the robot can stand in; one that its motors cannot hold is left out."""
    settings, criterion = settings or Stacked(), criterion or AOptimal()
    if count < 1:
        raise OptionError(f"{count} poses cannot be suggested; give a number from 1")
    found = _reachable(stance, grid or PoseGrid())
    if not found.q:
        raise ModelError(
            f"{stance.robot.name} can stand in no pose of the grid; widen heights, pitches or joint ranges"
        )
    poses = standing(stance, np.array(found.q), np.array(found.force))
    held = np.abs(poses.tau) <= stance.robot.limits.torque[stance.dofs]
    strong = np.flatnonzero(held.all(axis=1)).tolist()
    if not strong:
        raise ModelError(f"the motors of {stance.robot.name} can hold it in no pose of the grid; check their limits")
    where, poses = np.array(found.where)[strong], poses.chosen(strong)
    if len(where) < count:
        raise OptionError(
            f"{count} poses were asked for; {stance.robot.name} can stand in {len(where)} of the grid: ask for fewer"
        )
    made: list[Equations] = equations(stance, poses, settings.accuracy, settings.coupling)
    start = init(stance, settings)
    free = np.flatnonzero(start.free)
    gains = [fold(start, [pose]).information[np.ix_(free, free)] for pose in made]
    chosen = _exchange(gains, count, criterion)
    return Suggestion(
        where[chosen, 0],
        where[chosen, 1],
        where[chosen, 2],
        poses.chosen(chosen),
        estimate(fold(start, [made[k] for k in chosen])),
        len(where),
        criterion.name,
    )
