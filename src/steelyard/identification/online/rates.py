"""Velocities and accelerations from positions as they come, and the torque delayed alike.

Position and torque pass the same chain of four equal lags, ω/(s + ω) each; the stages of the chain are at once the
filtered value and its derivatives:

    y = y₄,    ẏ = ω (y₃ − y₄),    ÿ = ω² (y₂ − 2 y₃ + y₄).

A regression on what comes out is as right as one on the truth, but for how much the robot moves within 4/ω. Between
samples the input is a straight line, for which the chain has a closed form, so that stamps may jitter.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import OptionError
from .kalman import Array

STAGES = 4
_LAGS = np.arange(1.0, STAGES + 1)[:, None]


class ChainState(NamedTuple):
    """Stages of the chain for positions and torques, (4, 2 n), and what came last."""

    t: float
    stages: Array
    last: Array
    settled: float  # s, from when on the start is forgotten


class Smoothed(NamedTuple):
    """What the chain knows of an instant: `t` is when it was, already corrected for the delay."""

    t: float
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    settled: bool


@dataclass(frozen=True)
class CausalRates:
    """A chain of four lags of `cutoff_hz`; a gap longer than `gap` seconds starts it anew."""

    cutoff_hz: float = 8.0
    gap: float = 0.25

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0):
            raise OptionError(f"the cut-off is {self.cutoff_hz} Hz; give one above 0")
        if not self.gap > 0:
            raise OptionError(f"the longest gap is {self.gap} s; give one above 0")

    @property
    def omega(self) -> float:
        return 2 * np.pi * self.cutoff_hz

    @property
    def delay(self) -> float:
        """By how much what comes out is late, s."""
        return STAGES / self.omega

    def begin(self, t: float, q: Array, tau: Array) -> ChainState:
        """A chain that has seen one sample."""
        u = np.concatenate([q, tau])
        return ChainState(t, np.tile(u, (STAGES, 1)), u, t + 12.0 / self.omega)

    def push(self, state: ChainState | None, t: float, q: Array, tau: Array) -> tuple[ChainState, Smoothed]:
        """The chain after one more sample, and what it says."""
        if state is None or t - state.t > self.gap:
            state = self.begin(t, q, tau)
        else:
            state = self._moved(state, t, np.concatenate([q, tau]))
        n, w, y = q.size, self.omega, state.stages
        rate = w * (y[2, :n] - y[3, :n])
        curve = w * w * (y[1, :n] - 2 * y[2, :n] + y[3, :n])
        return state, Smoothed(t - self.delay, y[3, :n], rate, curve, y[3, n:], t >= state.settled)

    def _moved(self, state: ChainState, t: float, u: Array) -> ChainState:
        """x(h) = p(h) + Φ (x(0) − p(0)): p is the answer to the ramp, which stage k follows k/ω late."""
        h = t - state.t
        z = self.omega * h
        slope = (u - state.last) / z
        powers = [math.exp(-z) * z**k / math.factorial(k) for k in range(STAGES)]
        left = state.stages - (state.last - _LAGS * slope)
        moved = u - _LAGS * slope
        for k, power in enumerate(powers):
            moved[k:] += power * left[: STAGES - k]
        return ChainState(t, moved, u, state.settled)
