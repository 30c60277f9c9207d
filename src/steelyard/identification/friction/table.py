"""Tables of friction points: velocity and torque by name, a pair of columns a joint, or a column that names the joint.

    velocity,torque          velocity1,torque1,velocity2,torque2          joint,velocity,torque

Two columns without a header are velocity and torque. Units in brackets are converted (`velocity [deg/s]`).
"""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...data.blocks import Log, one_line
from ...data.columns import title_of
from ...data.delimited import Delimited, cells_in
from ...data.load import format_of
from ...errors import DataError
from .points import FrictionPoints

Array = NDArray[np.float64]
_MOST_JOINTS = 200
_JOINT = {"joint", "joints", "dof", "axis", "joint_name", "name"}
_FRICTION = re.compile(r"friction", re.IGNORECASE)
_LONGEST_NAME = 60


def _renamed(name: str) -> str:
    """`friction`, `tau_friction` and `friction_torque` are torques."""
    rest = re.sub(r"[_\s]+", "_", _FRICTION.sub("", name)).strip("_ ")
    if not _FRICTION.search(name):
        return name
    return rest if title_of(rest) is not None and not rest.isdigit() else f"torque_{rest}".rstrip("_")


def _pairs(names: Sequence[str]) -> dict[str, tuple[tuple[int, float], tuple[int, float]]]:
    """Joint → (column, scale) of velocity and of torque."""
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for place, name in enumerate(names):
        title = title_of(_renamed(name))
        if title is None or title.quantity not in ("qd", "tau"):
            continue
        key = title.label or (str(title.number) if title.number is not None else "")
        mine = found.setdefault(key, {})
        if title.quantity in mine:
            other = names[mine[title.quantity][0]]
            raise DataError(f"columns '{other[:40]}' and '{name[:40]}' both look like the same; leave one out")
        mine[title.quantity] = (place, title.scale)
    if not found:
        listed = ", ".join(f"'{name[:30]}'" for name in names[:12])
        raise DataError(f"no columns of velocity and torque among {listed}; name them velocity and torque")
    for key, mine in found.items():
        for quantity, word in (("qd", "velocity"), ("tau", "torque")):
            if quantity not in mine:
                other = names[next(iter(mine.values()))[0]]
                raise DataError(f"beside column '{other[:40]}' there is no {word} of joint '{key[:40]}'; add it")
    return {key: (mine["qd"], mine["tau"]) for key, mine in found.items()}


def _numbers(source: Delimited, columns: Sequence[int]) -> Array:
    """The columns, (rows, columns); a fault is an error."""
    log, blocks = Log(), []
    for block in source.blocks(columns, log):
        if block.faults:
            raise DataError(f"{block.faults[0].what}; mend or delete the row")
        blocks.append(block.values)
    lost = log.repairs
    if lost:
        raise DataError(f"the table looks cut off ({lost[0]}); mend or delete its last row")
    if not blocks:
        raise DataError("the table has no rows")
    return np.concatenate(blocks)


def _labels(source: Delimited, column: int) -> list[str]:
    """What stands in a column of text."""
    text = source.path.read_bytes().decode("utf-8-sig", "replace")
    if source.delimiter is None:
        rows = [cells_in(line, None) for line in text.splitlines()]
    else:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), delimiter=source.delimiter)]
    kept = [row for row in rows if any(row) and not row[0].startswith("#")][1:]
    return [row[column] if column < len(row) else "" for row in kept]


def _named(key: str, only: bool) -> str:
    if key.isdigit():
        return "joint" if only and key == "0" else f"joint{key}"
    return key or "joint"


def _by_joint(source: Delimited, names: Sequence[str], column: int) -> dict[str, tuple[Array, Array]]:
    """A table with a row a point of any joint."""
    pairs = _pairs([name if k != column else "" for k, name in enumerate(names)])
    if len(pairs) != 1:
        raise DataError(f"beside the column '{names[column]}' there are {len(pairs)} pairs of velocity and torque")
    ((v, v_scale), (tau, tau_scale)) = next(iter(pairs.values()))
    values, labels = _numbers(source, (v, tau)), _labels(source, column)
    if len(labels) != len(values):
        raise DataError(f"{len(labels)} joints are named in {len(values)} rows; mend the table")
    if "" in labels:
        raise DataError(f"row {labels.index('') + 1} names no joint; mend or delete it")
    order = list(dict.fromkeys(labels))
    if len(order) > _MOST_JOINTS:
        raise DataError(f"column '{names[column]}' names {len(order)} joints; is it a column of numbers?")
    mine = np.array(labels)
    found = {}
    for label in order:
        rows = mine == label
        name = f"joint{label}" if label.isdigit() else label[:_LONGEST_NAME]
        found[name] = (v_scale * values[rows, 0], tau_scale * values[rows, 1])
    return found


def _joints(path: Path) -> dict[str, tuple[Array, Array]]:
    source = Delimited(path)
    if source.names is None:
        if source.width != 2:
            raise DataError(f"{source.width} columns without a header; give two, or name them velocity and torque")
        values = _numbers(source, (0, 1))
        return {"joint": (values[:, 0], values[:, 1])}
    names = [re.sub(r"[\x00-\x1f]", " ", name).strip() for name in source.names]
    joint = next((k for k, name in enumerate(names) if name.lower() in _JOINT), None)
    if joint is not None:
        return _by_joint(source, names, joint)
    quantities = {title.quantity for name in names if (title := title_of(_renamed(name))) is not None}
    if "q" in quantities and "qd" not in quantities:
        raise DataError("it has positions and no velocities: a recording? name its robot by --model or --result")
    pairs = _pairs(names)
    if len(pairs) > _MOST_JOINTS:
        raise DataError(f"{len(pairs)} pairs of columns; at most {_MOST_JOINTS} joints are read")
    columns = [place for pair in pairs.values() for place, _ in pair]
    values = _numbers(source, columns)
    found = {}
    for k, (key, ((_, v), (_, tau))) in enumerate(pairs.items()):
        found[_named(key, len(pairs) == 1)] = (v * values[:, 2 * k], tau * values[:, 2 * k + 1])
    return found


def read_points(path: str | Path, still: float = 0.0) -> list[FrictionPoints]:
    """The points of every joint in a table."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        kind = format_of(path)
        if kind != "csv":
            raise DataError(
                f"a {kind} file is a recording, not a table of points; name its robot by --model or --result"
            )
        joints = _joints(path)
    except DataError as error:
        raise DataError(f"{path}: {one_line(error)}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {one_line(error.strerror or error)}") from None
    return [FrictionPoints(name, v, tau, still=still) for name, (v, tau) in joints.items()]
