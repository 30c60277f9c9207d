"""An equiripple low-pass: the shortest linear-phase filter for its bands, applied without a shift in time.

Parks, McClellan, "Chebyshev approximation for nonrecursive digital filters with linear phase", 1972.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .recording import Recording
from .steps import Array, Step, even_rate, in_use, widened, with_use

_RIPPLE_DB = 60.0  # of the stop band
# The pass band ends and the stop band begins at these shares of the cut-off.
_PASS, _STOP = 0.8, 1.2
_MOST_TAPS = 4001  # beyond which Remez' exchange does not settle


@lru_cache(maxsize=8)
def equiripple_taps(cutoff_hz: float, rate_hz: float) -> Array:
    """A symmetric filter of gain 1 at 0 Hz, of as many taps as its bands ask for (Kaiser's estimate)."""
    from scipy.signal import remez

    width = (_STOP - _PASS) * cutoff_hz / rate_hz
    half = int(np.ceil((_RIPPLE_DB - 13.0) / (14.6 * width) / 2.0)) + 1
    if 2 * half + 1 > _MOST_TAPS:
        raise OptionError(
            f"an equiripple filter of {cutoff_hz:g} Hz at {rate_hz:g} Hz needs {2 * half + 1} taps; raise the cut-off, "
            "or take Butterworth()"
        )
    h = np.asarray(remez(2 * half + 1, [0.0, _PASS * cutoff_hz, _STOP * cutoff_hz, 0.5 * rate_hz], [1, 0], fs=rate_hz))
    h /= h.sum()
    h.setflags(write=False)
    return h


@dataclass(frozen=True)
class Equiripple(Step):
    """Zero-phase equiripple low-pass of positions and velocities; rows nearer to an end than its taps are not used."""

    cutoff_hz: float = 50.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0):
            raise OptionError(f"the cut-off of the equiripple filter is {self.cutoff_hz} Hz; give one above 0")

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        rate = even_rate(recording, "Equiripple")
        if _STOP * self.cutoff_hz >= 0.5 * rate:
            raise OptionError(
                f"the stop band of an equiripple filter of {self.cutoff_hz:g} Hz begins at {_STOP * self.cutoff_hz:g} "
                f"Hz, not below half the sampling rate, {rate:g} Hz; lower the cut-off"
            )
        h = equiripple_taps(float(self.cutoff_hz), round(rate, 6))
        half = len(h) // 2
        if len(recording) < 4 * half:
            raise DataError(
                f"{len(recording)} rows are too few for an equiripple filter of {len(h)} taps; raise its cut-off"
            )
        changed = {name: _convolved(x, h) for name in ("q", "qd", "qdd") if (x := getattr(recording, name)) is not None}
        use = ~widened(~in_use(recording), half)
        use[:half] = use[len(use) - half :] = False
        done = replace(recording, **changed)  # type: ignore[arg-type]
        return self.noted(with_use(done, use), taps=len(h))


def _convolved(x: Array, h: Array) -> Array:
    """Each column under the taps, the ends continued by point reflection."""
    from scipy.signal import oaconvolve

    half = len(h) // 2
    before, after = 2 * x[0] - x[half:0:-1], 2 * x[-1] - x[-2 : -half - 2 : -1]
    return np.ascontiguousarray(oaconvolve(np.concatenate([before, x, after]), h[:, None], mode="valid", axes=0))
