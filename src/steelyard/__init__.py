"""Steelyard: a robot arm weighs itself.

import steelyard as sy

robot = sy.load_robot("panda")
tau = sy.inverse_dynamics(robot, q, qd, qdd)
base = sy.base_parameters(robot)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """A public name, or a room: imported when it is asked for, so that `steelyard --help` waits for no compiler."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module 'steelyard' has no attribute '{name}'")
    public = import_module(".public", __name__)
    if name not in globals():  # a room is there now
        globals()[name] = getattr(public, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module(".public", __name__).__all__})
