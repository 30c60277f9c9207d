"""Chirps: every joint swings through a band of frequencies under a smooth window."""

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError, unknown_name
from .checks import Array, finite, joint_names, positive
from .trajectory import ByRow, Motion, Trajectory

SWEEPS = ("linear", "exponential")


@dataclass(frozen=True, eq=False)
class Chirp(Trajectory):
    """A sweep a joint from `start_hz` to `stop_hz`, at rest at both ends: q = centre + amplitude w(t) sin φ(t).

    φ̇/2π runs linearly or exponentially between the frequencies; w rises as 10 s³ − 15 s⁴ + 6 s⁵ over the first
    `ramp` of the time, is 1, and falls likewise, so that velocity and acceleration begin and end at zero.
    """

    seconds: float
    centre: ByRow  # (n,) rad or m
    amplitude: ByRow  # (n,) rad or m
    start_hz: ByRow  # (n,)
    stop_hz: ByRow  # (n,)
    sweep: str = "linear"
    ramp: float = 0.1  # share of the time, at most 0.5
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        centre = finite("centre", self.centre, 1)
        shown = {"amplitude": self.amplitude, "start_hz": self.start_hz, "stop_hz": self.stop_hz}
        rows = {name: finite(name, value, 1) for name, value in shown.items()}
        for name, row in rows.items():
            if row.shape != centre.shape:
                raise OptionError(f"{name} has {row.size} entries for {centre.size} joints; give one a joint")
        if not isinstance(self.sweep, str) or self.sweep not in SWEEPS:
            raise OptionError(unknown_name("sweep", str(self.sweep), SWEEPS))
        least = min(rows["start_hz"].min(), rows["stop_hz"].min())
        if least < 0 or (least == 0 and self.sweep == "exponential"):
            raise OptionError(
                f"a frequency is {least:g} Hz; an exponential sweep takes them above 0, a linear one from 0"
            )
        ramp = positive("ramp", self.ramp)
        if ramp > 0.5:
            raise OptionError(f"ramp is {ramp:g} of the time; at most 0.5 leaves room for the other end")
        joints = joint_names(self.joints, centre.size)
        self._set(seconds=positive("duration", self.seconds), centre=centre, ramp=ramp, joints=joints, **rows)

    @property
    def duration(self) -> float:
        return self.seconds

    def _window(self, t: Array) -> Motion:
        """w and its derivatives, each (T, 1)."""
        rise = self.ramp * self.seconds
        falling = t > self.seconds / 2
        s = np.minimum(np.where(falling, self.seconds - t, t) / rise, 1.0)[:, None]
        sign = np.where(falling, -1.0, 1.0)[:, None]
        w = s**3 * (10 - 15 * s + 6 * s**2)
        return w, sign * 30 * s**2 * (1 - s) ** 2 / rise, 60 * s * (1 - s) * (1 - 2 * s) / rise**2

    def _phase(self, t: Array) -> Motion:
        """φ and its derivatives, each (T, n)."""
        f, slope = 2 * np.pi * self.start_hz, 2 * np.pi * (self.stop_hz - self.start_hz) / self.seconds
        t = t[:, None]
        if self.sweep == "linear":
            return f * t + slope * t**2 / 2, f + slope * t, slope + 0 * t
        growth = np.log(self.stop_hz / self.start_hz) / self.seconds
        # (e^{gt} − 1)/g is t where the frequency stays.
        still = growth == 0
        swept = np.where(still, t, np.expm1(growth * t) / np.where(still, 1.0, growth))
        return f * swept, f * np.exp(growth * t), f * growth * np.exp(growth * t)

    def _at(self, t: Array) -> Motion:
        w, dw, ddw = self._window(t)
        p, dp, ddp = self._phase(t)
        sine, cosine = np.sin(p), np.cos(p)
        return (
            self.centre + self.amplitude * w * sine,
            self.amplitude * (dw * sine + w * dp * cosine),
            self.amplitude * (ddw * sine + 2 * dw * dp * cosine + w * (ddp * cosine - dp**2 * sine)),
        )
