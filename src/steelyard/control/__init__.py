"""What parameters are for: control that knows friction, and what a tool touches."""

from .compensation import Adaptive, Compensated, Dither, FeedForward, Pulse
from .disturbance import DisturbanceObserver
from .following import Following
from .friction_trial import Trial, compare_compensations, moves_and_rests
from .loop import Plant, Run, run_controlled

__all__ = [
    "Adaptive",
    "Compensated",
    "DisturbanceObserver",
    "Dither",
    "FeedForward",
    "Following",
    "Plant",
    "Pulse",
    "Run",
    "Trial",
    "compare_compensations",
    "moves_and_rests",
    "run_controlled",
]
