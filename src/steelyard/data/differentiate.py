"""Velocities and accelerations from positions, or from measured velocities."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .filters import MOVES, motion_bands, moving
from .recording import Recording
from .spectrum import MIN_ROWS, bands, power_spectrum
from .steps import Array, Step, even_rate, in_use, is_even, with_use

SOURCES = ("auto", "measured", "differentiated")
# Measured velocities are taken where positions give this many times their noise in the acceleration ...
QUIETER = 2.0
# ... and where they are what positions do, in size to this share and in time to this share of a step.
SAME_SIZE = 0.02
MOST_LAG = 1.5
# Measured accelerations are taken where they are this near to those of positions.
SAME_ACCELERATION = 0.1


@dataclass(frozen=True)
class Agreement:
    """How measured velocities compare with the slope of positions: q̇_measured(t) ≈ scale · q̇(t − lag)."""

    scale: float
    lag_s: float
    correlation: float


def slopes(t: Array, x: Array) -> Array:
    """Central differences, ẋ_i = (x_{i+1} − x_{i−1}) / (t_{i+1} − t_{i−1}); first and last row as their neighbours."""
    if len(t) < 3:
        raise DataError(f"{len(t)} rows cannot be differentiated; at least 3 are needed")
    y = np.empty(x.shape)
    y[1:-1] = (x[2:] - x[:-2]) / (t[2:] - t[:-2])[:, None]
    y[0], y[-1] = y[1], y[-2]
    return y


def velocity_agreement(recording: Recording) -> list[Agreement | None]:
    """The agreement of every joint, None where it does not move, nothing is measured or times are not even.

    From the cross-spectrum of slope and measurement where the motion is, which noise outside it does not touch:
    scale = |Σ X̄ V| / Σ |X|², and the lag is the slope of the phase, − Σ ω φ |X̄V| / Σ ω² |X̄V|.
    """
    if recording.qd is None or len(recording) < MIN_ROWS or not is_even(recording.t):
        return [None] * recording.n
    rate = (len(recording) - 1) / recording.duration
    window = np.hanning(len(recording))[:, None]
    slope = slopes(recording.t, recording.q)
    f = np.fft.rfftfreq(len(recording), 1 / rate)
    X, V = np.fft.rfft(window * slope, axis=0), np.fft.rfft(window * recording.qd, axis=0)
    found: list[Agreement | None] = []
    for j, band in enumerate(bands(recording.q, rate)):
        here = (f > 0) & (f <= max(2.0 * band.motion_hz, 4 * f[1]))
        cross = np.conj(X[here, j]) * V[here, j]
        power, other = float((np.abs(X[here, j]) ** 2).sum()), float((np.abs(V[here, j]) ** 2).sum())
        if np.ptp(recording.q[:, j]) < MOVES or not (np.isfinite(power) and power > 0 and np.isfinite(other)):
            found.append(None)
            continue
        sign = 1.0 if cross.real.sum() >= 0 else -1.0
        omega, weight = 2 * np.pi * f[here], np.abs(cross)
        lag = -float((omega * np.angle(sign * cross) * weight).sum() / max((omega**2 * weight).sum(), 1e-300))
        aligned = cross * np.exp(1j * omega * lag)
        scale = float(aligned.real.sum()) / power
        correlation = float(aligned.real.sum()) / np.sqrt(power * other) if other > 0 else 0.0
        found.append(Agreement(scale, lag, correlation))
    return found


def velocity_source(recording: Recording) -> tuple[str, str]:
    """Whether to take measured velocities or the slope of positions, and why."""
    if recording.qd is None:
        return "differentiated", "no velocity was measured"
    agreements = [a for a in velocity_agreement(recording) if a is not None]
    if not agreements:
        return "differentiated", "there is too little motion to tell"
    rate = (len(recording) - 1) / recording.duration
    scale = float(np.median([a.scale for a in agreements]))
    lag = float(np.median([a.lag_s for a in agreements]))
    if abs(scale - 1) > SAME_SIZE or abs(lag) * rate > MOST_LAG:
        return "differentiated", f"measured velocities are {scale:.3g} times the slope of positions, {lag:.2g} s late"
    of_q, _ = motion_bands(recording, rate)
    joints = moving(recording.q)
    f, P = power_spectrum(recording.q[:, joints], rate)
    _, V = power_spectrum(recording.qd[:, joints], rate)
    ratio = []
    for k, band in enumerate(of_q):
        # From where noise shows to where a filter would cut.
        noisy = (f > band.cutoff_hz) & (f < 4 * band.cutoff_hz)
        if noisy.sum() > 3 and band.needs_filter:
            omega = (2 * np.pi * f[noisy]) ** 2
            ratio.append(np.sqrt((omega * P[noisy, k]).sum() / max(V[noisy, k].sum(), 1e-300)))
    if not ratio:
        return "differentiated", "positions are clean"
    times = float(np.median(ratio))
    if times > QUIETER:
        return "measured", f"the slope of positions has {times:.2g} times the noise of measured velocities"
    return "differentiated", f"measured velocities are not quieter than the slope of positions ({times:.2g} times)"


@dataclass(frozen=True)
class Differentiator(Step):
    """The face of all steps that fill in qd and qdd; each says how it differentiates once and twice."""

    velocity: str = "auto"
    acceleration: str = "auto"
    ends: ClassVar[int] = 0  # rows at either end whose derivatives are poor, and are not used

    def __post_init__(self) -> None:
        for name in ("velocity", "acceleration"):
            if getattr(self, name) not in SOURCES:
                raise OptionError(f"{name} is '{getattr(self, name)}'; valid: {', '.join(SOURCES)}")

    @abstractmethod
    def _derivatives(self, recording: Recording, x: Array, twice: bool) -> tuple[Array, Array]:
        """The first derivative of x, and the second if asked (else the first again)."""

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        if len(recording) < 3:
            raise DataError(f"the recording has {len(recording)} rows; at least 3 are needed to differentiate")
        source, why = (self.velocity, "as asked") if self.velocity != "auto" else velocity_source(recording)
        if source == "measured":
            if recording.qd is None:
                raise DataError("no velocity was measured; take velocity='differentiated'")
            qd = recording.qd
            qdd, _ = self._derivatives(recording, qd, False)
        else:
            qd, qdd = self._derivatives(recording, recording.q, True)
        taken = "differentiated"
        if recording.qdd is not None and self.acceleration != "differentiated":
            if self.acceleration == "measured" or _same_acceleration(recording.qdd, qdd):
                qdd, taken = recording.qdd, "measured"
        elif self.acceleration == "measured":
            raise DataError("no acceleration was measured; take acceleration='differentiated'")
        use = in_use(recording)
        end = min(self.ends, len(use) // 10) if taken == "differentiated" else 0
        use[:end] = False
        use[len(use) - end :] = False
        done = with_use(replace(recording, qd=qd, qdd=qdd), use)
        return self.noted(done, found_velocity=source, because=why, found_acceleration=taken)


def _same_acceleration(measured: Array, derived: Array) -> bool:
    """Whether measured accelerations are those of the motion, not noise."""
    inner = slice(len(derived) // 10, len(derived) - len(derived) // 10)
    size = np.sqrt(np.mean(derived[inner] ** 2, axis=0))
    moves = size > 1e-6
    if not moves.any():
        return bool(np.allclose(measured, 0.0, atol=1e-3))
    error = np.sqrt(np.mean((measured - derived)[inner] ** 2, axis=0))
    return bool(np.median(error[moves] / size[moves]) < SAME_ACCELERATION)


@dataclass(frozen=True)
class CentralDifferences(Differentiator):
    """ẋ_i = (x_{i+1} − x_{i−1}) / (t_{i+1} − t_{i−1}), at any times; first and last row as their neighbours."""

    def _derivatives(self, recording: Recording, x: Array, twice: bool) -> tuple[Array, Array]:
        once = slopes(recording.t, x)
        return once, slopes(recording.t, once) if twice else once


@dataclass(frozen=True)
class SplineDerivatives(Differentiator):
    """Derivatives of the quintic spline through all samples, whose error is of fourth order in the step and better.

    Where central differences are wrong by (2π f h)²/6, 0.7 % at 1 Hz and 31 Hz of sampling, it is wrong by less than
    (2π f h)⁴/100. De Boor, A practical guide to splines. Near the ends it is worse: eight rows there are not used.
    """

    ends = 8

    def _derivatives(self, recording: Recording, x: Array, twice: bool) -> tuple[Array, Array]:
        if len(recording) < 8:
            once = slopes(recording.t, x)
            return once, slopes(recording.t, once) if twice else once
        from scipy.interpolate import make_interp_spline

        try:
            spline = make_interp_spline(recording.t, x, k=5)
            once = spline.derivative(1)(recording.t)
            second = spline.derivative(2)(recording.t) if twice else once
        except (ValueError, np.linalg.LinAlgError):
            raise DataError("no spline goes through these times; put Resample() before it") from None
        return once, second


@dataclass(frozen=True)
class SmoothingSpline(Differentiator):
    """Derivatives of the cubic spline that minimises Σ (x_i − s(t_i))² + smoothing ∫ s̈² dt.

    Without a number, generalised cross-validation chooses one a joint. Craven and Wahba, 1979.
    """

    smoothing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothing is not None and not (np.isfinite(self.smoothing) and self.smoothing >= 0):
            raise OptionError(f"smoothing is {self.smoothing}; give a number, 0 or more")

    def _derivatives(self, recording: Recording, x: Array, twice: bool) -> tuple[Array, Array]:
        if len(recording) < 8:
            raise DataError(f"a smoothing spline needs at least 8 rows; there are {len(recording)}")
        from scipy.interpolate import make_smoothing_spline

        once, second = np.empty(x.shape), np.empty(x.shape)
        for j in range(x.shape[1]):
            try:
                spline = make_smoothing_spline(recording.t, x[:, j], lam=self.smoothing)
            except (ValueError, np.linalg.LinAlgError):
                raise DataError(
                    f"no smoothing was found for {recording.joints[j]}; give one, or take SplineDerivatives"
                ) from None
            once[:, j], second[:, j] = spline.derivative(1)(recording.t), spline.derivative(2)(recording.t)
        return once, second if twice else once


@dataclass(frozen=True)
class SavitzkyGolay(Differentiator):
    """Derivatives of the polynomial that fits a window of rows best.

    Without a window it passes what `Butterworth` would: window = ((order + 1) rate/cutoff + 4.6) / 3.2.
    Schafer, What is a Savitzky-Golay filter?, 2011.
    """

    window: int | None = None
    order: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if int(self.order) != self.order or not 2 <= self.order <= 12:
            raise OptionError(f"the order of the polynomial is {self.order}; give a whole number from 2 to 12")
        if self.window is not None and (int(self.window) != self.window or self.window <= self.order):
            raise OptionError(f"the window has {self.window} rows; give a whole number above the order, {self.order}")

    def _rows(self, recording: Recording, rate: float) -> int:
        from .filters import automatic_cutoffs

        window = self.window
        if window is None:
            cutoff = automatic_cutoffs(recording, rate, None)["q"] or 0.45 * rate
            window = int(((self.order + 1) * rate / cutoff + 4.6) / 3.2)
        window = max(int(window), self.order + 1) | 1
        if window > len(recording):
            raise DataError(
                f"a window of {window} rows does not fit into {len(recording)}; give a shorter one or a lower order"
            )
        return window

    def _derivatives(self, recording: Recording, x: Array, twice: bool) -> tuple[Array, Array]:
        from scipy.signal import savgol_filter

        rate = even_rate(recording, "SavitzkyGolay")
        window = self._rows(recording, rate)
        once = savgol_filter(x, window, self.order, deriv=1, delta=1 / rate, axis=0)
        second = savgol_filter(x, window, self.order, deriv=2, delta=1 / rate, axis=0) if twice else once
        return np.asarray(once), np.asarray(second)
