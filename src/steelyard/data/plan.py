"""The plan by which the columns of one file or several become a recording of one robot."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from ..errors import DataError, unknown_name
from ..robot.robot import Robot
from ..robot.sidecar import Gear, read_sidecar
from . import units
from .blocks import Array, Block, Fault, Log, Source
from .columns import QUANTITIES, Columns, by_name, by_width, numbered, places_of, says_its_unit, title_of, unit_in
from .conversion import Conversion, conversion_for
from .mapping import Mapping, Signal
from .recording import read_only


@dataclass(frozen=True, eq=False)
class Piece:
    """Columns of one file that go into a recording together."""

    source: Source
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Where every channel comes from. `slots` are the columns of the pieces laid side by side."""

    pieces: tuple[Piece, ...]
    slots: dict[str, slice]
    conversions: dict[str, Conversion]
    order: tuple[int, ...]  # the robot's joints among the columns
    joints: tuple[str, ...]
    time_scale: float | None  # None: nothing says what it counts
    rate_hz: float | None
    flat: tuple[str, ...] = ()
    about: dict = field(default_factory=dict)

    def blocks(self, log: Log) -> Iterator[Block]:
        """The rows of all pieces side by side."""
        if len(self.pieces) == 1:
            yield from self.pieces[0].source.blocks(self.pieces[0].columns, log)
            return
        readers = [piece.source.blocks(piece.columns, log) for piece in self.pieces]
        held: list[Block | None] = [None] * len(readers)
        while True:
            for k, reader in enumerate(readers):
                while held[k] is None or not len(held[k].values):  # type: ignore[union-attr]
                    held[k] = next(reader, None)
                    if held[k] is None:
                        break
            ready = [block for block in held if block is not None]
            if len(ready) < len(held):
                if ready:
                    self._refuse_lengths(held)
                return
            rows = min(len(block.values) for block in ready)
            parts = [_cut(block, 0, rows) for block in ready]
            faults = tuple(fault for part in parts for fault in part.faults)
            yield Block(np.hstack([part.values for part in parts]), parts[0].lines, faults)
            held = [_cut(block, rows, len(block.values)) for block in ready]

    def _refuse_lengths(self, held: Sequence[Block | None]) -> None:
        short = next(k for k, block in enumerate(held) if block is None)
        long = next(k for k, block in enumerate(held) if block is not None)
        names = [self.about["files"][k] for k in (short, long)]
        raise DataError(f"{names[0]} has fewer rows than {names[1]}; the files of one recording need the same number")


def _cut(block: Block, first: int, last: int) -> Block:
    faults = tuple(Fault(f.row - first, f.line, f.what) for f in block.faults if first <= f.row < last)
    return Block(block.values[first:last], block.lines[first:last], faults)


def _numbered(source: Source, named: Sequence[str | int], what: str) -> tuple[int, ...]:
    """Columns that a mapping names, or counts from 1; the name of an array stands for all its columns."""
    places: list[int] = []
    for item in named:
        if isinstance(item, int):
            if item > source.width:
                raise DataError(f"mapping: {what} takes column {item} of a table with {source.width} columns")
            places.append(item - 1)
            continue
        names = source.names
        if names is None:
            raise DataError(f"mapping: {what} takes column '{item[:60]}' of a table without a header; give its number")
        found = [k for k, name in enumerate(names) if name == item]
        found = found or [k for k, name in enumerate(names) if (bare := unit_in(name))[1] and bare[0].strip() == item]
        found = found or [k for k, name in enumerate(names) if name.startswith(f"{item}[")]
        if not found:
            raise DataError(f"mapping: {what}: {unknown_name('column', item[:60], names)}")
        if len(found) > 1 and names[found[0]] == item:
            raise DataError(f"mapping: {what}: {len(found)} columns are called '{item[:60]}'; give the number of one")
        places += found
    return tuple(places)


def _scales_by_name(source: Source, columns: Sequence[int], quantity: str) -> tuple[float, ...]:
    """The factors of the units that the names of columns state, where a mapping states none."""
    scales = []
    for name in ("" if source.names is None else source.names[k] for k in columns):
        unit = unit_in(name)[1] or units.rate_at_end(name)[1]
        scale = 1.0 if unit is None else units.factor(quantity, unit)
        if scale is None or (unit is not None and quantity == "tau" and units.is_current(unit)):
            more = ", and gain: […] if it is a current" if quantity == "tau" else ""
            raise DataError(
                f"mapping: {quantity} takes column '{name[:60]}', and there is no unit '{(unit or '')[:20]}' of "
                f"{quantity} that is read by name; add unit: …{more}"
            )
        scales.append(scale)
    return tuple(scales)


def _all_but_time(source: Source, quantity: str, joints: Sequence[str]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The columns of a file that a mapping gives to one quantity."""
    if source.names is not None:
        try:
            found = by_name(source.names, joints)
        except DataError:
            found = Columns({}, {})  # the mapping says what the file is; its names may say anything
        if quantity in found.places:
            return found.places[quantity], found.scales[quantity]
        timed = found.places.get("time", ())
        columns = tuple(k for k in range(source.width) if k not in timed)
        return columns, (1.0,) * len(columns)
    return tuple(range(source.width)), (1.0,) * source.width


def gear_of(mapping: Mapping, robot: Robot | None) -> Gear | None:
    """The mapping's gear, else the one in the sidecar beside the robot's model."""
    if mapping.gear is not None:
        return mapping.gear
    path = robot.source.path if robot is not None and robot.source is not None else None
    return read_sidecar(path).gear if path is not None else None


def _joint_names(
    mapping: Mapping, source: Source | None, found: Columns, robot: Robot | None, n: int
) -> tuple[tuple[str, ...], bool]:
    """Whose columns these are, and whether anything says so by name."""
    for names, who in ((mapping.joints, "mapping: joints"), (source.joints if source else (), "the line of joints")):
        if names and len(names) != n:
            raise DataError(f"{who} names {len(names)}, and the recording has {n} columns of q")
        if names:
            return tuple(names), True
    if found.joints:
        return found.joints, True
    if robot is not None:
        if robot.n != n:
            raise DataError(
                f"{n} columns of q, and {robot.name} has {robot.n} joints; name the columns by joints, "
                "in the header or in a mapping (joints: …)"
            )
        return tuple(robot.dof_names), False
    return tuple(f"joint{k + 1}" for k in range(n)), False


def _order(joints: Sequence[str], robot: Robot | None, in_header: bool) -> tuple[int, ...]:
    """Where the robot's joints stand among the columns; a header's A1, A2, … count them as 1, 2, … would."""
    if robot is None:
        return tuple(range(len(joints)))
    order = places_of(robot.dof_names, joints)
    if isinstance(order, str):
        if in_header and numbered(joints) and len(joints) == robot.n:
            return tuple(range(robot.n))
        raise DataError(
            f"the recording has no joint '{order}' of {robot.name}, or more than one; it has {', '.join(joints[:40])}; "
            "say in a mapping whose columns they are (joints: …)"
        )
    return order


def _recognised(source: Source, mapping: Mapping, robot: Robot | None) -> Columns:
    """What the table says by itself."""
    known = mapping.joints or (robot.dof_names if robot is not None else ()) or source.joints
    if source.names is not None:
        return by_name(source.names, known)
    n = len(mapping.joints) or len(source.joints) or (robot.n if robot is not None else None)
    timed = mapping.rate_hz is None and mapping.time is None
    return by_width(source.width, n, timed)


def _joints_with(names: Sequence[str], quantity: str, joints: Sequence[str]) -> set[str | None]:
    """Which of the joints have a column of a quantity."""
    with suppress(DataError):
        titles = [title_of(name, joints) for name in names]
        return {title.joint for title in titles if title is not None and title.quantity == quantity} - {None}
    return set()


def _missing(found: Columns, names: tuple[str, ...] | None, quantity: str, joints: Sequence[str] = ()) -> DataError:
    there = _joints_with(names or (), quantity, joints)
    if there:
        left = [joint for joint in joints if joint not in there]
        word = {"q": "positions", "tau": "torques"}[quantity]
        return DataError(
            f"no {word} of {', '.join(left[:10])}, which the robot has, beside those of {len(there)} other joints; "
            f"hold what was not recorded where it stood (--lock {left[0]}=…), or say in a mapping what is whose"
        )
    listed = "" if names is None else f"; its columns are {', '.join(name[:40] for name in names[:30])}"
    if quantity == "tau" and "current" in found.places:
        current = names[found.places["current"][0]] if names else "current"
        return DataError(
            f"no torques, but currents ('{current[:40]}', …): give the drive gains in a mapping, "
            "tau: {columns: [" + current[:40] + ", …], unit: A, gain: […]}"
        )
    what = {"time": "no time", "q": "no positions", "tau": "no torques"}[quantity]
    remedy = "a column time, or rate_hz in a mapping" if quantity == "time" else f"columns {quantity}0, …, or a mapping"
    return DataError(f"{what} in this table{listed}; it needs {remedy}")


class _Draft:
    """A plan in the making: columns are taken one quantity after the other."""

    def __init__(self, main: Source | None, files: dict[str, Source], mapping: Mapping, found: Columns) -> None:
        self.main, self.files, self.mapping, self.found = main, files, mapping, found
        self.pieces: list[Piece] = []
        self.slots: dict[str, slice] = {}
        self.file_names: list[str] = []

    def source_of(self, file: str | None, what: str) -> Source:
        source = self.main if file is None else self.files[file]
        if source is None:
            raise DataError(f"mapping: {what} names no file, and what was given is a folder; add file: …")
        return source

    def take(self, name: str, columns: Sequence[int], file: str | None = None) -> None:
        source = self.source_of(file, name)
        width = sum(len(piece.columns) for piece in self.pieces)
        self.slots[name] = slice(width, width + len(columns))
        if self.pieces and self.pieces[-1].source is source:
            self.pieces[-1] = Piece(source, (*self.pieces[-1].columns, *columns))
        else:
            self.pieces.append(Piece(source, tuple(columns)))
            self.file_names.append(file or "the table")

    def quantity(self, name: str, signal: Signal | None, joints: Sequence[str]) -> tuple[float, ...] | None:
        """Take the columns of a quantity; the factors that units in their names give, None where it is not there."""
        found = self.found
        if signal is not None and (signal.columns is not None or signal.file is not None):
            source = self.source_of(signal.file, name)
            if signal.columns is not None:
                columns = _numbered(source, signal.columns, name)
                scales = (1.0,) * len(columns) if signal.unit else _scales_by_name(source, columns, name)
            else:
                columns, scales = _all_but_time(source, name, joints)
            self.take(name, columns, signal.file)
            return scales
        if name in found.places:
            self.take(name, found.places[name])
            return found.scales[name]
        if name in ("q", "tau"):
            if signal is not None:
                self.source_of(None, name)
            raise _missing(found, None if self.main is None else self.main.names, name, joints)
        if signal is not None:
            raise DataError(f"mapping: {name} names no columns, and none is called so; add columns: […]")
        return None

    def time(self) -> float | None:
        """Take the time, where there is a column of it; what its numbers are multiplied with, if anything says so."""
        time = self.mapping.time
        if time is not None:
            source = self.source_of(time.file, "time")
            columns = _numbered(source, time.column or (1,), "time")
            self.take("time", columns, time.file)
            if time.unit is not None:
                return units.factor("time", time.unit)
            named = source.names is not None and says_its_unit(source.names[columns[0]])
            return _scales_by_name(source, columns, "time")[0] if named else None
        if self.mapping.rate_hz is not None:
            return 1.0
        if self.main is None or "time" not in self.found.places:
            raise _missing(self.found, None if self.main is None else self.main.names, "time")
        place, scale = self.found.places["time"], self.found.scales["time"][0]
        self.take("time", place)
        said = self.main.names is not None and says_its_unit(self.main.names[place[0]])
        return scale if said or scale != 1.0 or self.main.about else None

    def more(self) -> None:
        """Take the further channels: ours by their names, and those of the mapping."""
        for name, columns in self.found.more.items():
            if name not in self.mapping.more:
                self.take(f"more.{name}", columns)
        for name, signal in self.mapping.more.items():
            source = self.source_of(signal.file, f"more.{name}")
            columns = _numbered(source, signal.columns, name) if signal.columns else tuple(range(source.width))
            self.take(f"more.{name}", columns, signal.file)

    def unused(self) -> list[str]:
        """Names of columns of the table that nothing takes."""
        if self.main is None or self.main.names is None:
            return []
        used = {column for piece in self.pieces if piece.source is self.main for column in piece.columns}
        return [name for k, name in enumerate(self.main.names) if k not in used and name]


def _found_in(main: Source | None, mapping: Mapping, robot: Robot | None) -> Columns:
    """What the table says by itself, as far as the mapping leaves it to be asked."""
    complete = all(signal is not None and (signal.columns or signal.file) for signal in (mapping.q, mapping.tau))
    if main is None or (complete and (mapping.time or mapping.rate_hz)):
        return Columns({}, {})
    try:
        return _recognised(main, mapping, robot)
    except DataError:
        if not complete:
            raise
        return Columns({}, {})


def make_plan(main: Source | None, files: dict[str, Source], mapping: Mapping, robot: Robot | None) -> Plan:
    """Which column of which file becomes what.

    `main` is the table that the user gave, `files` the further ones that the mapping names, by that name.
    """
    described = dict(mapping.signals())
    found = _found_in(main, mapping, robot)
    draft = _Draft(main, files, mapping, found)
    known = mapping.joints or (robot.dof_names if robot is not None else ())
    scales = {
        name: scale for name in QUANTITIES if (scale := draft.quantity(name, described.get(name), known)) is not None
    }
    n = len(scales["q"])
    for name, scale in scales.items():
        if len(scale) != n:
            raise DataError(f"{len(scale)} columns of {name} and {n} of q; a column a joint is needed")
    time_scale = draft.time()
    draft.more()
    joints, named = _joint_names(mapping, main, found, robot, n)
    order = _order(joints, robot, joints == found.joints) if named else tuple(range(n))
    gear = gear_of(mapping, robot)
    gear_joints = joints if named or robot is not None or gear is None else gear.joints
    conversions = {
        name: conversion_for(name, described.get(name), scale, gear_joints, gear) for name, scale in scales.items()
    }
    about: dict = {"files": draft.file_names}
    if unused := draft.unused():
        about["unused_columns"] = unused
    in_order = robot is not None and order == tuple(range(robot.n)) and joints != robot.dof_names
    if robot is not None and in_order and joints == found.joints and numbered(joints):
        about["notes"] = [
            f"columns of {joints[0]} … {joints[-1]} are taken for the joints of {robot.name} in their order"
        ]
    if left := [joint for k, joint in enumerate(joints) if k not in order]:
        about["joints_left_out"] = left
    if any(c.gear is not None for c in conversions.values()):
        about["gear"] = "mapping" if mapping.gear is not None else "the robot's sidecar"
    return Plan(
        tuple(draft.pieces),
        draft.slots,
        conversions,
        order,
        tuple(robot.dof_names) if robot is not None else joints,
        time_scale,
        mapping.rate_hz,
        found.flat,
        about,
    )


def converted(plan: Plan, name: str, values: Array) -> Array:
    """One quantity of a block, in SI, in the order of the robot's joints."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = plan.conversions[name](np.ascontiguousarray(values[:, plan.slots[name]]))
    return read_only(x if plan.order == tuple(range(x.shape[1])) else x[:, list(plan.order)])
