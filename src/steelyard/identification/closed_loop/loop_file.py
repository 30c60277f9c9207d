"""A loop in a YAML file, for recordings that do not say how the robot was driven.

SI units; a gain is one number or one a joint, and every field may be left out:

    kp: [600, 600, 250]      # N·m/rad
    kd: [50, 50, 20]
    ki: 0
    model: none              # or gravity, or computed torque: what the controller knows of the robot
    feed_forward: false
    limit: [87, 87, 12]      # N·m; the model's limits where left out
    control_hz: 1000
    delay_ticks: 0           # control ticks from truth to measurement
    velocity: differentiated # what the controller sees; or measured

Without gains, those that the recording names are meant, and the rest says how they acted.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ...errors import OptionError
from ...simulation.controllers import Controller
from ...yamlfile import Fields, parse_fields
from .loops import Loop

MAX_CHARACTERS = 100_000
_EXAMPLES = {
    "kp": "kp: [600, 600, 250]",
    "kd": "kd: [50, 50, 20]",
    "ki": "ki: 0",
    "model": "model: gravity",
    "feed_forward": "feed_forward: true",
    "limit": "limit: [87, 87, 12]",
    "control_hz": "control_hz: 1000",
    "delay_ticks": "delay_ticks: 2",
    "velocity": "velocity: measured",
}


def _each(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,)


Gains = Annotated[tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...], BeforeValidator(_each)]
Limits = Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(_each)]


def _one_or_all(values: tuple[float, ...]) -> tuple[float, ...] | float:
    return values[0] if len(values) == 1 else values


class LoopFile(Fields):
    """The fields of such a file."""

    kp: Gains | None = None
    kd: Gains | None = None
    ki: Gains = (0.0,)
    model: Literal["none", "gravity", "computed torque"] = "none"
    feed_forward: bool = False
    limit: Limits | None = None
    control_hz: Annotated[float, Field(gt=0)] | None = None
    delay_ticks: Annotated[int, Field(ge=0)] | None = None
    velocity: Literal["differentiated", "measured"] | None = None

    @model_validator(mode="after")
    def _has_both_gains(self) -> "LoopFile":
        if (self.kp is None) != (self.kd is None):
            raise ValueError("kp and kd belong together; give both, or neither")
        if self.kp is None and self.model_fields_set & {"ki", "model", "feed_forward", "limit"}:
            raise ValueError("a controller has gains; give kp and kd, too")
        return self

    @property
    def loop(self) -> Loop:
        controller = None
        if self.kp is not None and self.kd is not None:
            controller = Controller(
                _one_or_all(self.kp), _one_or_all(self.kd), _one_or_all(self.ki),
                None if self.limit is None else _one_or_all(self.limit), self.model, self.feed_forward,
            )  # fmt: skip
        return Loop(controller, None, self.control_hz, self.delay_ticks, self.velocity)


def read_loop(path: Path) -> Loop:
    """The loop that a file describes."""
    try:
        text = path.read_bytes()[: 4 * MAX_CHARACTERS + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: byte {error.start} is not UTF-8; save it as plain UTF-8 text") from None
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_fields(LoopFile, text, str(path), OptionError, "a loop", _EXAMPLES, MAX_CHARACTERS).loop
