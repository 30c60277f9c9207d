"""A periodic excitation, averaged over its periods, and the noise that their differences show.

    x̄_k = (1/P) Σ_p x_{p,k},    cov = 1/((P − 1) K) Σ_{p,k} (τ_{p,k} − τ̄_k)(τ_{p,k} − τ̄_k)ᵀ

Swevers, Ganseman, De Schutter and Van Brussel, Experimental robot identification using optimised periodic
trajectories, 1996.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .filters import moving
from .recording import Recording
from .steps import Array, Step, even_rate, in_use, with_use

# A lag is a period where positions differ from themselves by less than this share of their variance ...
REPEATS = 0.01
# ... and by no more than so many times what they do at the best lag.
AS_GOOD = 4.0


def find_period(recording: Recording) -> float | None:
    """The shortest time after which all joints repeat themselves, s; None where they do not."""
    rate = even_rate(recording, "the search for a period")
    q = recording.q[:, moving(recording.q)]
    T = len(q)
    if T < 16 or not q.shape[1]:
        return None
    q = (q - q.mean(axis=0)) / q.std(axis=0)
    size = 1 << int(2 * T - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(q, size, axis=0)) ** 2
    lags = np.arange(T // 2 + 1)
    both = np.fft.irfft(spectrum.sum(axis=1), size)[: len(lags)]
    total = np.concatenate([[0.0], np.cumsum((q**2).sum(axis=1))])
    # Σ_t (x_{t+lag} − x_t)² over what overlaps, relative to the power there.
    power = total[T - lags] + total[T] - total[lags]
    misfit = (power - 2 * both) / np.maximum(power, 1e-300)
    first = int(np.argmax(misfit > 0.2))  # away from lag 0, where everything is like itself
    if misfit[first] <= 0.2:
        return None
    inner = misfit[first:]
    best = float(inner.min())
    if not best < REPEATS:
        return None
    close = (inner <= max(AS_GOOD * best, 1e-9)) & (inner < REPEATS)
    k = int(np.argmax(close))
    while k + 1 < len(inner) and inner[k + 1] < inner[k]:
        k += 1
    return float((first + k) / rate)


@dataclass(frozen=True)
class AveragePeriods(Step):
    """The mean over all whole periods; `about["period_noise"]` has what the periods differ by.

    Without a period it is looked for. Rows are used where every period's row is. `skip` periods at the start are
    left out, in which the robot is not yet in step.
    """

    period_s: float | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        if self.period_s is not None and not (np.isfinite(self.period_s) and self.period_s > 0):
            raise OptionError(f"period_s is {self.period_s}; give seconds above 0, or None to look for it")
        if int(self.skip) != self.skip or self.skip < 0:
            raise OptionError(f"skip is {self.skip}; give a whole number of periods, 0 or more")

    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        rate = even_rate(recording, "AveragePeriods")
        period = find_period(recording) if self.period_s is None else self.period_s
        if period is None:
            raise DataError("no period was found in the positions; give period_s, or do without averaging")
        rows = round(period * rate)
        count = len(recording) // rows - int(self.skip) if rows >= 3 else 0
        if count < 2:
            raise DataError(
                f"{recording.duration:.3g} s hold {max(count, 0)} whole periods of {period:.4g} s after {self.skip} "
                "skipped; at least 2 are needed"
            )
        # A period that is no whole number of rows: every period is read where it really lies.
        at = recording.t[0] + (int(self.skip) + np.arange(count)[:, None]) * period + np.arange(rows) * (period / rows)
        at = np.minimum(at, recording.t[-1])

        def folded(x: Array) -> Array:
            flat = x.reshape(len(x), -1)
            y = np.stack([np.interp(at.ravel(), recording.t, column) for column in flat.T], axis=1)
            return np.asarray(y.reshape(count, rows, *x.shape[1:]))

        use = folded(in_use(recording).astype(np.float64)).min(axis=0) > 1 - 1e-9
        means, noise = {}, {}
        for name in ("q", "tau", "qd", "qdd"):
            x = getattr(recording, name)
            if x is not None:
                pieces = folded(x)
                means[name] = pieces.mean(axis=0)
                noise[name] = ((pieces - means[name]) ** 2).sum(axis=(0, 1)) / ((count - 1) * rows)
                if name == "tau":
                    off = (pieces - means[name]).reshape(-1, recording.n)
                    covariance = off.T @ off / ((count - 1) * rows)
        more = {name: folded(value).mean(axis=0) for name, value in recording.more.items() if name != "use"}
        about = dict(recording.about)
        about["period_noise"] = {
            "period_s": period,
            "periods": count,
            "torque_covariance": covariance.tolist(),  # of one period's row; of the mean it is 1/periods of this
            "variances": {name: value.tolist() for name, value in noise.items()},
        }
        mean = replace(recording, t=np.arange(rows) * (period / rows), more=more, about=about, **means)  # type: ignore[arg-type]
        return self.noted(with_use(mean, use), found_period_s=period, periods=count, rows=rows)
