"""Recursive estimators: pure functions from a state and a sample to the next state."""

from .settings import CDKF, EKF, METHODS, PF, RLS, SRCDKF, SREKF, SRUKF, UKF
from .stream import Found, OnlineState, Sample, found, init, load_state, save_state, step

__all__ = [
    "CDKF",
    "EKF",
    "METHODS",
    "PF",
    "RLS",
    "SRCDKF",
    "SREKF",
    "SRUKF",
    "UKF",
    "Found",
    "OnlineState",
    "Sample",
    "found",
    "init",
    "load_state",
    "save_state",
    "step",
]
