"""Even times: missing values and glitches mended, stamps that jitter, gaps."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .recording import Recording
from .steps import Array, Mask, Step, in_use, is_even, on_rows, widened, with_use

# Of a window of five rows the median; what stands out by so many robust deviations is a glitch.
GLITCH = 20.0
# No joint's position, velocity or torque is as large as this in SI units.
ABSURD = 1e9
# Derivatives feel a mended row so many rows away.
NEAR_MENDED = 3
# A spline through times that are nearer to each other than this share of the median step would swing.
TOO_NEAR = 0.2
# How much smoother positions must be on an even clock than on the stamps for the stamps to be the ones that jitter.
SMOOTHER = 1.5
# The even grid may have so many times the rows that were recorded before gaps are cut out instead of bridged.
SPARSE = 2.0


def off_median(x: Array) -> Array:
    """How far each row is from the median of the five around it."""
    padded = np.pad(x, ((2, 2), (0, 0)), mode="edge")
    a, b, c, d, e = (padded[k : k + len(x)] for k in range(5))
    # Of four the two in the middle, then the median of these and the fifth.
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.asarray(x - np.maximum(np.minimum(e, low), np.minimum(np.maximum(e, low), high)))


def _glitches(q: Array) -> Mask:
    """Rows whose position jumps away and back within two rows, further than joints ever move in three."""
    if len(q) < 8:
        return np.zeros(q.shape, dtype=bool)
    off = np.abs(off_median(q))
    step = np.quantile(np.abs(np.diff(q, axis=0)), 0.99, axis=0)
    return off > np.maximum(GLITCH * 1.4826 * np.median(off, axis=0), 3.0 * step) + 1e-9


def _bridged(name: str, x: Array, bad: Mask, recording: Recording) -> None:
    """Draw the bad values of x straight between good ones, in place."""
    for j in np.flatnonzero(bad.any(axis=0)):
        good = ~bad[:, j]
        if good.sum() < 2:
            raise DataError(
                f"{name} of {recording.joints[j]} has {int(good.sum())} of {len(x)} values that are finite numbers; "
                "at least 2 are needed"
            )
        x[:, j] = np.interp(recording.t, recording.t[good], x[good, j])


@dataclass(frozen=True)
class Repair(Step):
    """Values that are missing or glitch are drawn straight between their neighbours, and their rows not used.

    Measured velocities and accelerations of which a joint has none are dropped.
    """

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        use = in_use(recording)
        channels: dict[str, Array | None] = {}
        mended = {}
        for name in ("q", "tau", "qd", "qdd"):
            given = getattr(recording, name)
            if given is None:
                continue
            x = np.array(given)
            with np.errstate(invalid="ignore"):
                bad = ~(np.abs(x) < ABSURD)
            if name in ("qd", "qdd") and ((~bad).sum(axis=0) < 2).any():
                channels[name] = None
                mended[name] = len(x)
                continue
            _bridged(name, x, bad, recording)
            if name == "q":
                glitches = _glitches(x)
                _bridged(name, x, glitches, recording)
                bad |= glitches
            # A joint's motion acts on the torque of all the others.
            use &= ~(bad if name == "tau" else widened(bad.any(axis=1, keepdims=True), NEAR_MENDED))
            channels[name] = x
            if bad.any():
                mended[name] = int(bad.any(axis=1).sum())
        mended_recording = replace(recording, **channels)  # type: ignore[arg-type]
        return self.noted(with_use(mended_recording, use), rows_mended=mended)


@dataclass(frozen=True)
class Resample(Step):
    """All channels on even times, by cubic splines; where the log has a gap nothing is invented: its rows are not used.

    Stamps that only jitter about an even clock are replaced by that clock where positions are smoother on it. Where
    gaps are longer than all that was recorded, the longest piece between them is kept.
    """

    rate_hz: float | None = None  # that of the median step
    longest_gap_s: float = 0.02  # bridged and used; and always three steps

    def __post_init__(self) -> None:
        if self.rate_hz is not None and not (np.isfinite(self.rate_hz) and 0 < self.rate_hz <= 1e6):
            raise OptionError(f"rate_hz is {self.rate_hz}; give a rate above 0 and at most 1000000 Hz")
        if not (np.isfinite(self.longest_gap_s) and self.longest_gap_s >= 0):
            raise OptionError(f"longest_gap_s is {self.longest_gap_s}; give seconds, 0 or more")

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        if len(recording) < 3:
            raise DataError(f"the recording has {len(recording)} rows; at least 3 are needed to resample it")
        rate = _rate(recording.t) if self.rate_hz is None else float(self.rate_hz)
        wanted = self.rate_hz is None or abs(recording.rate_hz / rate - 1) < 1e-6
        if wanted and is_even(recording.t):
            return self.noted(recording, found_rate_hz=rate, even=True)
        if wanted and _clock_is_even(recording):
            line = np.linspace(recording.t[0], recording.t[-1], len(recording))
            return self.noted(replace(recording, t=line), found_rate_hz=rate, even=True, stamps="jitter about a clock")
        longest = max(self.longest_gap_s, 3.0 * float(np.median(np.diff(recording.t))))
        kept = recording
        if (recording.duration * rate) > SPARSE * len(recording) * max(1.0, rate / recording.rate_hz) + 1000:
            kept = _longest_piece(recording, longest)
        gaps = np.flatnonzero(np.diff(kept.t) > longest)
        grid = kept.t[0] + np.arange(int(np.floor(kept.duration * rate * (1 + 1e-12))) + 1) / rate
        if len(grid) < 3:
            raise DataError(f"{kept.duration:.3g} s between gaps are {len(grid)} rows of {rate:g} Hz; 3 are needed")
        spline = np.diff(kept.t).min() > TOO_NEAR * np.median(np.diff(kept.t))
        even = on_rows(kept, lambda x: _at(grid, kept.t, x, bool(spline)), grid)
        old = in_use(kept)
        before = np.clip(np.searchsorted(kept.t, grid, side="right") - 1, 0, len(kept) - 2)
        use = old[before] & old[before + 1]
        use[np.isin(before, gaps) & (grid > kept.t[before]) & (grid < kept.t[before + 1])] = False
        return self.noted(
            with_use(even, use),
            found_rate_hz=rate,
            even=False,
            gaps=[[float(kept.t[k]), float(kept.t[k + 1])] for k in gaps[:100]],
            rows_before=len(recording),
            rows_left_out=len(recording) - len(kept),
        )


def _rate(t: Array) -> float:
    """Samples a second by the median step, a whole number where it is one but for rounding."""
    rate = float(1.0 / np.median(np.diff(t)))
    if is_even(t):
        rate = (len(t) - 1) / float(t[-1] - t[0])
    return float(round(rate)) if rate > 10 and abs(rate - round(rate)) < 1e-4 * rate else rate


def _roughness(t: Array, q: Array) -> Array:
    """How far, typically, a position is from the straight line between its neighbours."""
    before, after = np.diff(t)[:-1, None], np.diff(t)[1:, None]
    middle = (q[:-2] * after + q[2:] * before) / (before + after)
    return np.sqrt(np.mean((q[1:-1] - middle) ** 2, axis=0))


def _clock_is_even(recording: Recording) -> bool:
    """Whether stamps stay within a step of an even clock, on which positions are smoother."""
    t, q = recording.t, recording.q
    if len(t) < 10:
        return False
    line = np.linspace(t[0], t[-1], len(t))
    if np.abs(t - line).max() > (t[-1] - t[0]) / (len(t) - 1):
        return False
    stamps, clock = _roughness(t, q), _roughness(line, q)
    return bool(np.median(stamps) > SMOOTHER * np.median(clock))


def _longest_piece(recording: Recording, longest_gap: float) -> Recording:
    """What lies between two gaps and has most rows."""
    ends = np.concatenate([[0], np.flatnonzero(np.diff(recording.t) > longest_gap) + 1, [len(recording)]])
    k = int(np.argmax(np.diff(ends)))
    if ends[k + 1] - ends[k] < 3:
        raise DataError(
            f"the recording has {len(ends) - 2} gaps over {longest_gap:.3g} s and no 3 rows without one between them"
        )
    return recording.between(int(ends[k]), int(ends[k + 1]))


def _at(grid: Array, t: Array, x: Array, spline: bool) -> Array:
    flat = x.reshape(len(x), -1)
    if spline and len(t) >= 4 and np.isfinite(flat).all():
        from scipy.interpolate import CubicSpline

        try:
            y = CubicSpline(t, flat)(grid)
        except ValueError:
            raise DataError(
                f"values up to {np.abs(flat).max():.3g} at rows {np.diff(t).min():.3g} s apart have no finite slopes; "
                "mend such rows, or the clock"
            ) from None
    else:
        y = np.stack([np.interp(grid, t, column) for column in flat.T], axis=1) if flat.shape[1] else flat[: len(grid)]
    return np.asarray(y.reshape(len(grid), *x.shape[1:]))


@dataclass(frozen=True)
class Crop(Step):
    """The part from `start_s` to `end_s`, in seconds from the first row."""

    start_s: float = 0.0
    end_s: float | None = None

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        since = recording.t - recording.t[:1]
        end = np.inf if self.end_s is None else self.end_s
        inside = np.flatnonzero((since >= self.start_s) & (since <= end))
        if not inside.size:
            raise DataError(
                f"no row lies between {self.start_s:g} and {end:g} s; the recording is {recording.duration:.3g} s long"
            )
        return self.noted(recording.between(int(inside[0]), int(inside[-1]) + 1), rows=int(inside.size))


@dataclass(frozen=True)
class AlignTorque(Step):
    """Torque that is stamped `shift_s` late is moved to where it belongs: tau(t) becomes tau(t + shift)."""

    shift_s: float

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        if not (np.isfinite(self.shift_s) and abs(self.shift_s) < max(recording.duration, 1e-12)):
            raise OptionError(f"shift_s is {self.shift_s}; give seconds, less than the recording is long")
        at = recording.t + self.shift_s
        tau = _at(np.clip(at, recording.t[0], recording.t[-1]), recording.t, recording.tau, False)
        old = in_use(recording)
        use = old & ((at >= recording.t[0]) & (at <= recording.t[-1]))[:, None]
        near = np.clip(np.searchsorted(recording.t, at), 0, len(at) - 1)
        moved = replace(recording, tau=tau)
        return self.noted(with_use(moved, use & ~widened(~old, 1)[near]))


@dataclass(frozen=True)
class AlignMotion(Step):
    """Motion is moved to where torque is: q(t) becomes q(t + shift), and its rates likewise, by cubic splines.

    A torque that is held from one control tick to the next acts, on the average, half a tick after its stamp; there
    the motion has to be read. Torque stays as it is, so that its noise stays independent from row to row.
    """

    shift_s: float

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        if not (np.isfinite(self.shift_s) and abs(self.shift_s) < max(recording.duration, 1e-12)):
            raise OptionError(f"shift_s is {self.shift_s}; give seconds, less than the recording is long")
        if len(recording) < 2:
            raise DataError(f"{len(recording)} rows are too few to be moved in time; record for longer")
        at = recording.t + self.shift_s
        inside = np.clip(at, recording.t[0], recording.t[-1])
        moved = {
            name: _at(inside, recording.t, x, True)
            for name in ("q", "qd", "qdd")
            if (x := getattr(recording, name)) is not None
        }
        # Where a joint stands still moves with the motion. As many rows count as before, or a search for a delay would
        # be drawn to where fewer do.
        near = np.clip(np.searchsorted(recording.t, at), 0, len(at) - 1)
        use = in_use(recording)[near] & ((at >= recording.t[0]) & (at <= recording.t[-1]))[:, None]
        return self.noted(with_use(replace(recording, **moved), use))  # type: ignore[arg-type]
