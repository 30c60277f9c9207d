"""The face of all preprocessing steps, and the marks of rows that are not to be used."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..robot.robot import Robot
from .recording import Recording

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A grid is even when no time is further than this share of a step from a straight line.
EVEN = 1e-3


@dataclass(frozen=True)
class Step(ABC):
    """One thing that is done to a recording; what was done is noted in `about["preprocessing"]`."""

    @abstractmethod
    def apply(self, recording: Recording, robot: Robot | None = None) -> Recording:
        """The recording after this step."""

    def noted(self, recording: Recording, **found: Any) -> Recording:
        """The recording with this step, its settings and what it found out, in its history."""
        entry = {"step": type(self).__name__, **asdict(self), **found}
        about = dict(recording.about)
        about["preprocessing"] = [*about.get("preprocessing", ()), entry]
        return replace(recording, about=about)


def in_use(recording: Recording) -> Mask:
    """Which rows are to be used, a mark a joint, (T, n); all of them where nothing is marked."""
    if "use" not in recording.more:
        return np.ones(recording.q.shape, dtype=bool)
    use = np.atleast_2d(recording.more["use"].T).T != 0
    if use.shape[1] not in (1, recording.n):
        raise DataError(f"the channel 'use' has shape {use.shape}; give a mark a joint, {recording.q.shape}")
    return np.array(np.broadcast_to(use, recording.q.shape))


def with_use(recording: Recording, use: Mask) -> Recording:
    """The recording with these marks; no channel where every row is to be used."""
    more = {name: value for name, value in recording.more.items() if name != "use"}
    if not use.all():
        more["use"] = use.astype(np.float64)
    return replace(recording, more=more)


def widened(unused: Mask, rows: int) -> Mask:
    """Marks that reach `rows` further in both directions."""
    if rows < 1 or not unused.any():
        return unused
    total = np.cumsum(np.pad(unused.astype(np.int64), ((rows + 1, rows), (0, 0))), axis=0)
    return (total[2 * rows + 1 :] - total[: -2 * rows - 1]) > 0


def is_even(t: Array) -> bool:
    """Whether times have equal steps, but for rounding."""
    if len(t) < 3:
        return len(t) == 2
    line = np.linspace(t[0], t[-1], len(t))
    return bool(np.abs(t - line).max() <= EVEN * (t[-1] - t[0]) / (len(t) - 1))


def even_rate(recording: Recording, what: str) -> float:
    """The sampling rate of an even grid; an error that names the remedy where it is not even."""
    if not is_even(recording.t):
        raise DataError(f"{what} needs an even time grid and the recording has none; put Resample() before it")
    return (len(recording) - 1) / recording.duration


def on_rows(recording: Recording, pick: Callable[[Array], Array], t: Array) -> Recording:
    """Every channel passed through `pick`, at new times."""
    changed = {name: None if (x := getattr(recording, name)) is None else pick(x) for name in ("q", "tau", "qd", "qdd")}
    more = {name: pick(value) for name, value in recording.more.items()}
    return replace(recording, t=t, more=more, **changed)  # type: ignore[arg-type]
