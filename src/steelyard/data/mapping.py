"""The mapping: a small YAML file that says how a foreign recording becomes one of ours.

    joints: [joint_1, joint_2]              # whose columns these are, in their order
    rate_hz: 5000                           # where no column has the time
    time: {column: stamp, unit: ms}
    q:   {file: positions.csv, unit: deg, side: motor, sign: [1, -1], offset: [0, 1.5708]}
    qd:  {columns: [v1, v2], unit: rpm}     # names, or numbers from 1
    tau: {file: currents.csv, unit: A, gain: [0.5, 0.4], side: motor}
    more: {temperature: {columns: [T1, T2]}}
    gear: {joints: [joint_1, joint_2], ratio: [32, -48], coupling: [{motor_of: joint_2, joint: joint_1, ratio: 32}]}
    table: {delimiter: ";", decimal: ",", header: true, skip_rows: 2}
    topic: /joint_states
    stamp: header                           # or received: the bag's own clock

A number becomes  x = sign · gain · unit · number + offset,  and on the motor side it then goes through the gear:
q = P⁻¹ x + at_motor_zero, qd = P⁻¹ x, qdd = P⁻¹ x, tau = Pᵀ x.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ..errors import DataError
from ..robot.sidecar import Finite, Gear, Name, Names, Positive
from ..yamlfile import Fields, parse_fields, word
from . import units
from .columns import QUANTITIES

MAX_CHARACTERS = 100_000
EXAMPLES = {  # the first stands for the file as a whole
    "q": "q: {columns: [a1, a2], unit: deg}",
    "joints": "joints: [joint1, joint2]",
    "rate_hz": "rate_hz: 1000",
    "time": "time: {column: stamp, unit: ms}",
    "more": "more: {temperature: {columns: [T1, T2]}}",
    "gear": "gear: {joints: [joint5, joint6], ratio: [45, 32]}",
    "table": 'table: {delimiter: ";", decimal: ",", skip_rows: 2}',
    "topic": "topic: /joint_states",
    "stamp": "stamp: received",
    "description": "description: a run of the arm in the corner",
}


def _columns(value: Any) -> Any:
    """Names of columns, or their numbers from 1; one stands for a list of one."""
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ValueError("no column is named; name at least one")
    for item in items:
        if not (isinstance(item, str) and item) and not (isinstance(item, int) and not isinstance(item, bool)):
            raise ValueError(f"{word(item)} is not a column; give its name, or its number from 1")
        if isinstance(item, int) and not 0 < item < 100_000:
            raise ValueError(f"no column has the number {word(item)}; columns count from 1")
    return tuple(items)


def _one_or_each(value: Any) -> Any:
    """A number, or a list of one a joint."""
    return tuple(value) if isinstance(value, list) else (value,)


def _signs(value: tuple[float, ...]) -> tuple[float, ...]:
    if any(abs(sign) != 1 for sign in value):
        raise ValueError("a sign is not 1 or -1; put factors into unit, gain or the gear")
    return value


Columns = Annotated[Any, BeforeValidator(_columns)]
OneOrEach = Annotated[tuple[Finite, ...], BeforeValidator(_one_or_each)]
Units = Annotated[tuple[Name, ...], BeforeValidator(_one_or_each)]


class Time(Fields):
    """Where the time stands; the first column of a file of its own where no column is named."""

    file: Name | None = None
    column: Columns | None = None
    unit: Name | None = None  # of which the name or the numbers of the column tell, where they can

    @model_validator(mode="after")
    def _is_time(self) -> "Time":
        if self.unit is not None and units.factor("time", self.unit) is None:
            raise ValueError(f"no unit '{word(self.unit)}' of time; valid: {', '.join(units.TIME)}")
        if self.column is not None and len(self.column) != 1:
            raise ValueError(f"{len(self.column)} columns of time; name one")
        return self


class Signal(Fields):
    """Where a quantity stands and how its numbers become SI on the joint's side."""

    file: Name | None = None
    columns: Columns | None = None
    row_major: Annotated[int, Field(gt=0, le=10_000)] | None = None  # numbers a row, in a file of one a line
    unit: Units | None = None
    side: Literal["joint", "motor"] = "joint"
    gain: OneOrEach | None = None  # N·m/A
    sign: Annotated[OneOrEach, AfterValidator(_signs)] | None = None
    offset: OneOrEach | None = None


class Table(Fields):
    """How a table in text is written; what is left out is found out."""

    delimiter: Literal[",", ";", "\t", "|", " "] | None = None
    decimal: Literal[".", ","] | None = None
    header: bool | None = None
    skip_rows: Annotated[int, Field(ge=0, le=10_000)] = 0


class Mapping(Fields):
    """What a recording does not say of itself; every field may be left out."""

    description: str = ""
    joints: Names = ()
    rate_hz: Positive | None = None
    time: Time | None = None
    q: Signal | None = None
    qd: Signal | None = None
    qdd: Signal | None = None
    tau: Signal | None = None
    more: dict[Name, Signal] = Field(default_factory=dict)
    gear: Gear | None = None
    table: Table = Table()
    topic: Name | None = None
    stamp: Literal["header", "received"] | None = None

    def signals(self) -> Iterator[tuple[str, Signal]]:
        """The quantities that are described, by name."""
        for name in QUANTITIES:
            signal = getattr(self, name)
            if signal is not None:
                yield name, signal

    @model_validator(mode="after")
    def _fits(self) -> "Mapping":
        if self.rate_hz is not None and self.time is not None:
            raise ValueError("rate_hz and time are both given; keep rate_hz only where no column has the time")
        for name, signal in self.signals():
            for unit in signal.unit or ():
                if units.factor(name, unit) is None:
                    raise ValueError(f"{name}: no unit '{word(unit)}' of {name}; valid: {', '.join(units.OF[name])}")
            currents = [units.is_current(unit) for unit in signal.unit or ()] if name == "tau" else []
            if any(currents) and signal.gain is None:
                raise ValueError(f"{name} is a current without a gain; give gain in N·m/A, a number a joint")
            if signal.gain is not None and not all(currents or [False]):
                raise ValueError(f"{name} has a gain but is no current; leave gain out, or give unit: A")
        if self.joints and self.gear:
            for joint in self.gear.joints:
                if joint not in self.joints:
                    raise ValueError(f"the gear's joint '{word(joint)}' is not among joints; name it there")
        for name, signal in self.more.items():
            if signal.columns is None and signal.file is None:
                raise ValueError(f"more.{word(name)} names no columns; say which they are")
            if signal.unit or signal.gain or signal.side == "motor":
                raise ValueError(f"more.{word(name)} is kept as it is; leave unit, gain and side out")
        return self


def parse_mapping(text: str, where: str) -> Mapping:
    """The mapping in a text; `where` names the file in errors."""
    return parse_fields(Mapping, text, where, DataError, "a mapping", EXAMPLES, MAX_CHARACTERS)


def read_mapping(path: str | Path) -> Mapping:
    """The mapping in a file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(4 * MAX_CHARACTERS + 1)
        return parse_mapping(raw.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; save it as plain UTF-8 text") from None
    except OSError as error:
        raise DataError(f"{path}: the mapping cannot be read: {error.strerror}; give a YAML file") from None
    except ValueError as error:
        raise DataError(f"{word(str(path))}: the mapping cannot be read: {error}") from None
