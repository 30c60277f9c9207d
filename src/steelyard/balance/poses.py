"""`Poses`: a robot that stands, in numbers: one row of averages a pose, and how far to trust them."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError, OptionError
from .stance import Stance

Array = NDArray[np.float64]

ACCELERATION = "imu_acceleration"  # the channel of a recording with the accelerometer, (T, 3), m/s²
_BEYOND = 0.3  # rad outside its range that a real joint may be read
LABEL = "pose"  # a channel that numbers the poses; below 0: between poses


@dataclass(frozen=True)
class Accuracy:
    """What averaging does not take away, as standard deviations.

    `friction` is drawn anew in every pose and joint; the biases stay the same throughout.
    """

    friction: float = 0.1  # N·m
    torque_bias: float = 0.05  # N·m
    acceleration_bias: float = 0.02  # m/s²
    position_bias: float = 5e-4  # rad

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < np.inf:
                raise OptionError(f"{name.replace('_', ' ')} is {value:g}; give a finite number from 0")


@dataclass(frozen=True)
class Stillness:
    """What counts as standing: over windows of some seconds, joints and the direction of gravity hardly move."""

    window: float = 0.5  # s
    angle: float = 0.03  # rad, the largest spread of a joint and of the direction of gravity within a pose
    force: float = 0.3  # m/s², how far the mean reading may be from g
    least: float = 1.0  # s, the shortest pose

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < np.inf:
                raise OptionError(f"{name} of stillness is {value:g}; give a finite number above 0")


@dataclass(frozen=True, eq=False)
class Poses:
    """Averages over every pose (P rows), and the variance that is left in them."""

    q: Array  # (P, joints) rad, in the order of `Stance.joints`
    tau: Array  # (P, joints) N·m; nan where a joint's torque is not measured
    force: Array  # (P, 3) m/s², specific force in the axes of the trunk: up, g long, at rest
    variance_q: Array  # (P, joints)
    variance_tau: Array  # (P, joints)
    variance_force: Array  # (P, 3)
    seconds: Array  # (P,) how long each pose was held

    def __post_init__(self) -> None:
        if len(self.q) == 0:
            raise DataError("no pose was found in which the robot stands still; hold each for a second or more")
        for name in ("q", "force"):
            bad = ~np.isfinite(getattr(self, name)).all(axis=1)
            if bad.any():
                raise DataError(f"{name} of pose {int(bad.argmax()) + 1} is not finite; mend the recording")

    def __len__(self) -> int:
        return len(self.q)

    def chosen(self, rows: Array | list[int] | slice) -> "Poses":
        return Poses(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def pitch_and_roll(stance: Stance, force: Array) -> tuple[Array, Array]:
    """How the trunk leans, rad: nose down and to its right are positive; z of the trunk is upwards."""
    up = np.atleast_2d(force) / np.linalg.norm(np.atleast_2d(force), axis=1, keepdims=True)
    return np.arctan2(-up @ stance.forward, up[:, 2]), np.arcsin(np.clip(up @ stance.lateral, -1, 1))


def _columns(stance: Stance, recording: Recording) -> tuple[Array, Array]:
    """Positions and torques in the stance's order; a joint without a column stays at home, its torque unknown."""
    known = [name for name in recording.joints if name in stance.joints]
    wheels = {leg.wheel for leg in stance.legs}
    for leg in stance.legs:
        for name in (leg.hip, leg.knee):
            if name not in known:
                raise DataError(f"the recording has no joint '{name}'; it has: {', '.join(recording.joints)}")
    others = [name for name in stance.joints if name not in known and name not in wheels]
    if others:
        raise DataError(f"the recording has no position of {', '.join(others)}; record it, or lock it in the model")
    q = np.tile(stance.home, (len(recording), 1))
    tau = np.full_like(q, np.nan)
    for name in known:
        source, target = recording.joints.index(name), stance.column(name)
        q[:, target] = np.where(np.isnan(recording.q[:, source]), q[:, target], recording.q[:, source])
        tau[:, target] = recording.tau[:, source]
    for leg in stance.legs:
        for name in (leg.hip, leg.knee):
            bad = ~np.isfinite(tau[:, stance.column(name)])
            if bad.any():
                raise DataError(f"the torque of '{name}' is not a number at sample {int(bad.argmax())}; mend the file")
    return q, tau


def _is_still(stance: Stance, q: Array, force: Array, rule: Stillness) -> bool:
    resting = [k for k, name in enumerate(stance.joints) if name not in {leg.wheel for leg in stance.legs}]
    length = np.linalg.norm(force.mean(axis=0))
    return bool(np.ptp(_smooth(q[:, resting]), axis=0).max() < rule.angle and abs(length - 9.81) < rule.force)


def _smooth(x: Array) -> Array:
    """Means of tenths: what a window does but for its noise."""
    return np.array([part.mean(axis=0) for part in np.array_split(x, min(10, len(x)))])


def _windows(stance: Stance, t: Array, q: Array, force: Array, rule: Stillness) -> list[list[slice]]:
    """Runs of still windows that are the same pose."""
    resting = [k for k, name in enumerate(stance.joints) if name not in {leg.wheel for leg in stance.legs}]
    edges = np.searchsorted(t, np.arange(t[0], t[-1] + 1e-9, rule.window))
    runs: list[list[slice]] = []
    before: tuple[Array, Array] | None = None
    for a, b in itertools.pairwise(edges):
        part = slice(int(a), int(b))
        if b - a < 4 or not _is_still(stance, q[part], force[part], rule):
            before = None
            continue
        mean, up = q[part][:, resting].mean(axis=0), force[part].mean(axis=0) / 9.81
        if before is None or max(np.abs(mean - before[0]).max(), np.abs(up - before[1]).max()) > rule.angle:
            runs.append([])
            before = (mean, up)  # the first window's: a slow drift does not carry a pose along
        runs[-1].append(part)
    return [run for run in runs if t[run[-1].stop - 1] - t[run[0].start] >= 0.9 * rule.least]


def _labelled(t: Array, label: Array, rule: Stillness) -> list[list[slice]]:
    runs = []
    cuts = np.flatnonzero(np.diff(label)) + 1
    for a, b in zip(np.append(0, cuts), np.append(cuts, len(t)), strict=True):
        if label[a] < 0:
            continue
        count = int(np.clip((t[b - 1] - t[a]) / rule.window, 1, 50))
        edges = np.linspace(a, b, count + 1).astype(int)
        runs.append([slice(int(x), int(y)) for x, y in itertools.pairwise(edges) if y > x])
    return runs


def _scatter(values: Array, runs: list[list[slice]]) -> Array:
    """Variance of every pose's mean: from how the means of its windows scatter, pooled over poses.

    Windows are longer than the time a balancing robot remembers, so their means are nearly independent where samples
    are not. With a single window everywhere the samples' own scatter has to do, as if every tenth were independent.
    """
    squares, freedom = np.zeros(values.shape[1]), 0
    for run in runs:
        means = np.array([values[part].mean(axis=0) for part in run])
        squares += ((means - means.mean(axis=0)) ** 2).sum(axis=0)
        freedom += len(run) - 1
    if freedom >= 3:
        return np.array([squares / freedom / len(run) for run in runs])
    lengths = [sum(part.stop - part.start for part in run) for run in runs]
    return np.array(
        [
            values[run[0].start : run[-1].stop].var(axis=0) / max(1.0, n / 10)
            for run, n in zip(runs, lengths, strict=True)
        ]
    )


def _refuse_impossible(stance: Stance, q: Array, force: Array, rule: Stillness) -> None:
    """What wrong units or signs would show."""
    lengths = np.linalg.norm(force, axis=1)
    k = int(np.abs(lengths - 9.81).argmax())
    if abs(lengths[k] - 9.81) > rule.force:
        raise DataError(
            f"the IMU reads {lengths[k]:.4g} m/s² in pose {k + 1} and should read 9.81 ± {rule.force:g}; "
            "check its unit (--acceleration-unit), or whether the robot stood still"
        )
    limits = stance.robot.limits
    for leg in stance.legs:
        for name in (leg.hip, leg.knee):
            dof, values = stance.robot.joint(name).dof, q[:, stance.column(name)]
            outside = np.maximum(limits.lower[dof] - values, values - limits.upper[dof])
            if outside.max() > _BEYOND:
                raise DataError(
                    f"{name} stands at {values[outside.argmax()]:.4g} rad in pose {int(outside.argmax()) + 1}, and the "
                    f"model's range is {limits.lower[dof]:.3g} … {limits.upper[dof]:.3g}; check the unit of angles "
                    "(--angle-unit), their sign and zero"
                )


def poses_of(stance: Stance, recording: Recording, rule: Stillness | None = None) -> Poses:
    """Find the poses in a recording, by its channel `pose` or by stillness, and average each."""
    rule = rule or Stillness()
    if ACCELERATION not in recording.more or recording.more[ACCELERATION].shape[1:] != (3,):
        raise DataError(f"the recording has no channel '{ACCELERATION}' of three columns: the IMU's accelerometer")
    q, tau = _columns(stance, recording)
    force = recording.more[ACCELERATION] @ stance.imu.T
    if not np.isfinite(force).all():
        row = int((~np.isfinite(force)).any(axis=1).argmax())
        raise DataError(f"the accelerometer's reading is not a number at sample {row}; mend the recording")
    t = recording.t
    runs = _labelled(t, recording.more[LABEL], rule) if LABEL in recording.more else _windows(stance, t, q, force, rule)
    if not runs:
        g = float(np.median(np.linalg.norm(force, axis=1)))
        raise DataError(
            f"no pose of {rule.least:g} s was found in {recording.duration:.3g} s: joints must keep within "
            f"{rule.angle:g} rad and the IMU read 9.81 ± {rule.force:g} m/s² (it reads {g:.4g}); stand still, "
            "number the poses in a column 'pose', or check the units"
        )
    spans = [slice(run[0].start, run[-1].stop) for run in runs]
    mean = [np.array([x[span].mean(axis=0) for span in spans]) for x in (q, tau, force)]
    spread = [_scatter(x, runs) for x in (q, tau, force)]
    seconds = np.array([t[span.stop - 1] - t[span.start] for span in spans])
    _refuse_impossible(stance, mean[0], mean[2], rule)
    return Poses(mean[0], mean[1], mean[2], spread[0], spread[1], spread[2], seconds)
