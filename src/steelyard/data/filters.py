"""Low-pass filters without a shift in time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .recording import Recording
from .spectrum import Band, bands
from .steps import Array, Step, even_rate, in_use, widened, with_use

# The filter's own answer has died away after this many periods of its cut-off.
SETTLED = 1.0
# But no end loses more than this share of the recording.
MOST_OF_AN_END = 0.1
MOVES = 1e-6  # rad or m: less is no motion
FLICKERS = 1.0  # half of what white noise has


def moving(q: Array) -> list[int]:
    """The joints that move; a sample of one that stands and flickers says nothing about the next.

    Σ (x_{k+1} − x_k)² / Σ (x_k − x̄)² is 2 for white noise, and small for what is sampled often enough (von Neumann,
    Annals of Mathematical Statistics 12, 1941).
    """
    found = []
    for j in range(q.shape[1]):
        x = q[:, j]
        if len(q) and np.ptp(x) > MOVES and np.sum(np.diff(x) ** 2) < FLICKERS * np.sum((x - x.mean()) ** 2):
            found.append(j)
    return found


def common_cutoff(found: Sequence[Band]) -> float | None:
    """One cut-off for all joints, or None where none needs a filter.

    The middle one, so that one joint's resonance or one joint's silence does not decide, but above every motion.
    """
    needy = [band.cutoff_hz for band in found if band.needs_filter]
    if 2 * len(needy) < len(found) or not needy:
        return None
    return float(max(np.median(needy), *(2.0 * band.motion_hz for band in found)))


def motion_bands(recording: Recording, rate: float) -> tuple[list[Band], list[Band] | None]:
    """The bands of the joints that move: of positions, and of measured velocities."""
    joints = moving(recording.q)
    of_q = bands(recording.q[:, joints], rate)
    if recording.qd is None:
        return of_q, None
    return of_q, bands(recording.qd[:, joints], rate, 1, np.array([band.motion_hz for band in of_q]))


def automatic_cutoffs(recording: Recording, rate: float, highest_harmonic_hz: float | None) -> dict[str, float | None]:
    """The cut-off that positions and measured velocities ask for; None: no filter."""
    of_q, of_qd = motion_bands(recording, rate)
    wanted = {"q": common_cutoff(of_q), "qd": None if of_qd is None else common_cutoff(of_qd)}
    if wanted["qd"] is None and of_qd is not None:
        # Beyond where positions sink into their noise no motion is known; what velocities have there, as those do that
        # a drive makes of its encoder, would be differentiated.
        wanted["qd"] = wanted["q"]
    least = 0.0 if highest_harmonic_hz is None else 2.0 * highest_harmonic_hz
    return {name: None if fc is None or max(fc, least) > 0.45 * rate else max(fc, least) for name, fc in wanted.items()}


@dataclass(frozen=True)
class Butterworth(Step):
    """Zero-phase Butterworth low-pass, forwards and backwards: |H|² = 1 / (1 + (f/cutoff)^(2 order)).

    With "auto" the cut-off is where the spectrum of positions sinks into the noise (see `spectrum`), not below twice
    the highest harmonic of the trajectory if that is given; positions whose noise does not matter are left as they are.
    Torque is filtered only if asked: what a filter takes from the torque alone it does not take from the model's side;
    `Decimation` filters both alike. Rows near the ends, and near rows that are not used, are marked as not to be used.
    """

    order: int = 4
    cutoff_hz: float | str | None = "auto"
    torque: bool = False
    highest_harmonic_hz: float | None = None

    def __post_init__(self) -> None:
        if int(self.order) != self.order or not 1 <= self.order <= 10:
            raise OptionError(f"the order of the filter is {self.order}; give a whole number from 1 to 10")
        if isinstance(self.cutoff_hz, str):
            if self.cutoff_hz != "auto":
                raise OptionError(f"cutoff_hz is '{self.cutoff_hz}'; give Hz or 'auto'")
        elif self.cutoff_hz is not None and not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0):
            raise OptionError(f"cutoff_hz is {self.cutoff_hz}; give one above 0, or 'auto'")

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        rate = even_rate(recording, "Butterworth")
        if self.cutoff_hz is None or isinstance(self.cutoff_hz, str):
            cutoffs = automatic_cutoffs(recording, rate, self.highest_harmonic_hz)
        elif self.cutoff_hz >= 0.5 * rate:
            raise OptionError(
                f"the cut-off of {self.cutoff_hz:g} Hz is not below half the sampling rate, {rate:g} Hz; lower it"
            )
        else:
            cutoffs = dict.fromkeys(("q", "qd"), float(self.cutoff_hz))
        cutoffs["qdd"] = cutoffs["qd"]
        cutoffs["tau"] = cutoffs["q"] if self.torque else None
        changed = {
            name: low_pass(x, rate, fc, int(self.order))
            for name, fc in cutoffs.items()
            if fc is not None and (x := getattr(recording, name)) is not None
        }
        used = [fc for name, fc in cutoffs.items() if fc is not None and name in changed]
        edge = 0
        use = in_use(recording)
        if used:
            edge = min(int(np.ceil(SETTLED * rate / min(used))), int(MOST_OF_AN_END * len(recording)))
            use = ~widened(~use, edge)
            use[:edge] = False
            use[len(use) - edge :] = False
        done = replace(recording, **changed)  # type: ignore[arg-type]
        found = {name: cutoffs[name] for name in ("q", "qd", "tau") if getattr(recording, name) is not None}
        return self.noted(with_use(done, use), found_cutoff_hz=found, rows_at_each_end=edge)


def low_pass(x: Array, rate_hz: float, cutoff_hz: float, order: int) -> Array:
    """The columns of x filtered forwards and backwards, the ends continued by point reflection."""
    from scipy.signal import butter, sosfiltfilt

    if len(x) < 3:
        raise DataError(f"{len(x)} rows cannot be filtered; at least 3 are needed")
    sections = butter(order, cutoff_hz, fs=rate_hz, output="sos")
    reach = min(len(x) - 1, int(np.ceil(3.0 * rate_hz / cutoff_hz)))
    return np.ascontiguousarray(sosfiltfilt(sections, x, axis=0, padlen=reach))
