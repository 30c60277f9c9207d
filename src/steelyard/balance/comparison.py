"""One pose against many: errors of every method over the pitch range, where the truth is known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .balancing import Load
from .demonstration import Demonstration, StandingSensors, Target, demonstrate
from .minimum_norm import MassFree, MinNorm, minimum_norm
from .poses import Poses, pitch_and_roll, poses_of
from .posture import home_height, posture
from .stacked import CentreOfMass, Stacked, centre_of_mass
from .stance import Stance
from .statics import Coupling

Array = NDArray[np.float64]
SINGLE = ("hip alone", "knee alone", "mass-free")
STACKED = "stacked so far"
# Nose up to nose down, heights in turn: what most legs reach.
_PITCHES = tuple(range(-40, 51, 10))
_HEIGHTS = (1.0, 0.85)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors in the sagittal plane, m, a row a pose; nan where a method has no answer yet."""

    title: str
    demonstration: Demonstration
    poses: Poses
    pitch: Array  # (P,) rad
    errors: dict[str, Array]  # (P,) by method
    estimate: CentreOfMass  # of all poses
    final_error: float  # m, of that, in the sagittal plane
    right_at: float  # rad, the pitch at which methods of least norm are right


def default_targets(stance: Stance) -> list[Target]:
    """A range of pitches at two heights, of which those are left out that the legs do not reach."""
    height, targets = home_height(stance), []
    for k, degrees in enumerate(_PITCHES):
        for share in (_HEIGHTS[k % 2], _HEIGHTS[1 - k % 2]):
            pitch = float(np.radians(degrees))
            if posture(stance, share * height, pitch) is not None:
                targets.append(Target(share, pitch))
                break
    return targets


def _off(stance: Stance, found: Array, truth: Array) -> Array:
    """The length of the error across the hips' axis."""
    error = np.atleast_2d(found) - truth
    return np.linalg.norm(error - np.outer(error @ stance.lateral, stance.lateral), axis=1)


def compare(
    stance: Stance,
    targets: list[Target],
    rng: np.random.Generator,
    load: Load | None = None,
    settings: Stacked | None = None,
    sensors: StandingSensors | None = None,
    coupling: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Simulate, and let every method find the centre of mass; those that need a mass are told the nominal one."""
    settings = settings or Stacked()
    shown = demonstrate(stance, targets, rng, load, sensors, coupling=coupling, progress=progress)
    poses = poses_of(stance, shown.recording)
    told, drive = float(stance.nominal[0]), Coupling(coupling)
    singles: list[MinNorm | MassFree] = [
        MinNorm(told, "hip", drive),
        MinNorm(told, "knee", drive),
        MassFree(coupling=drive),
    ]
    errors = {
        name: _off(stance, minimum_norm(stance, poses, method), shown.com)
        for name, method in zip(SINGLE, singles, strict=True)
    }
    so_far = np.full(len(poses), np.nan)
    for k in range(len(poses)):
        final = centre_of_mass(stance, poses.chosen(slice(k + 1)), settings)
        if max(final.deviation[axis] for axis in "xz") < np.inf:
            so_far[k] = _off(stance, final.com, shown.com)[0]
    title = "as modelled" if load is None else f"with {load.mass:g} kg more"
    return Comparison(
        title,
        shown,
        poses,
        pitch_and_roll(stance, poses.force)[0],
        {**errors, STACKED: so_far},
        final,
        float(_off(stance, final.com, shown.com)[0]),
        float(np.arctan2(shown.com[2], shown.com @ stance.forward)),
    )
