"""Trajectories as CSV: a time column, then positions, velocities, accelerations and torques, a column a joint.

    # joints: shoulder, elbow
    time,q0,q1,qd0,qd1,qdd0,qdd1,tau0,tau1

Rates and torques may be left out, and so may the header where the number of joints is known.
"""

import csv
import io
import re
from collections.abc import Sequence

import numpy as np

from ..errors import DataError
from .checks import Array, default_names
from .splines import Sampled

QUANTITIES = ("q", "qd", "qdd", "tau")
COLUMN = re.compile(r"(q|qd|qdd|tau)(?:_d|_ff)?_?(\d{1,4})")
TIME = ("time", "t")
JOINTS = "# joints:"

Line = tuple[int, str]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cells(line: str, delimiter: str | None) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _table(lines: list[Line], delimiter: str | None, width: int) -> Array:
    try:
        table = np.loadtxt([line for _, line in lines], delimiter=delimiter, ndmin=2, comments=None)
        if table.shape[1] == width:
            return table
        what = f"{table.shape[1]} numbers in a row"
    except ValueError as error:
        what = str(error)
    # The reader counts rows from where it began; a person counts lines of the file.
    for number, line in lines:
        cells = _cells(line, delimiter)
        if len(cells) != width:
            raise DataError(f"line {number} has {len(cells)} entries, {width} are needed")
        for cell in cells:
            if not _is_number(cell):
                raise DataError(f"line {number}: {cell!r:.40} is not a number")
    raise DataError(what)


def _columns_of(header: list[str]) -> dict[str, list[int]]:
    """Where each quantity's columns stand, in the order of the joints."""
    found: dict[str, dict[int, int]] = {}
    for place, title in enumerate(header):
        match = COLUMN.fullmatch(title)
        if title.lower() in TIME:
            quantity, number = "time", 0
        elif match:
            quantity, number = match[1], int(match[2])
        else:
            raise DataError(f"column {place + 1} is {title!r:.40}; valid: time, q0.., qd0.., qdd0.., tau0..")
        if number in found.setdefault(quantity, {}):
            raise DataError(f"column {title!r:.40} stands twice")
        found[quantity][number] = place
    for quantity in ("time", "q"):
        if quantity not in found:
            raise DataError(f"no column '{quantity if quantity == 'time' else 'q0'}'; a trajectory needs time and q0..")
    joints = sorted(found["q"])
    for quantity, columns in found.items():
        if quantity != "time" and sorted(columns) != list(range(joints[0], joints[0] + len(joints))):
            listed = ", ".join(f"{quantity}{k}" for k in sorted(columns)[:20])
            raise DataError(f"columns {listed} do not number the {len(joints)} joints of q one by one")
    return {quantity: [columns[k] for k in sorted(columns)] for quantity, columns in found.items()}


def _columns_without_header(width: int, joints: int | None) -> dict[str, list[int]]:
    """Time, then whole blocks of q, qd, qdd, tau; there has to be one way only to read the width so."""
    shares = [k for k in range(1, len(QUANTITIES) + 1) if (width - 1) % k == 0 and width > 1]
    if joints is not None:
        shares = [k for k in shares if k * joints == width - 1]
    if len(shares) != 1:
        known = "an unknown number of" if joints is None else joints
        raise DataError(
            f"{width} columns without a header for {known} joints can{'' if shares else 'not'} be read as time, q"
            f"{'.., qd.. in more than one way' if shares else '.., qd.., qdd.., tau..'}; "
            "add the header time,q0,… or name the joints"
        )
    n = (width - 1) // shares[0]
    blocks = {name: list(range(1 + k * n, 1 + (k + 1) * n)) for k, name in enumerate(QUANTITIES[: shares[0]])}
    return {"time": [0], **blocks}


def _names_in(comment: str) -> tuple[str, ...]:
    try:
        return tuple(next(csv.reader([comment], skipinitialspace=True), []))
    except csv.Error as error:
        raise DataError(f"the line '{JOINTS}' cannot be read: {error}") from None


def to_csv(samples: Sampled) -> str:
    """The samples as text, every number with all its digits."""
    out = io.StringIO()
    if samples.joints != default_names(samples.n):
        names = io.StringIO()
        csv.writer(names, lineterminator="\n").writerow(samples.joints)
        out.write(f"{JOINTS} {names.getvalue()}")
    blocks = {name: getattr(samples, name) for name in QUANTITIES if getattr(samples, name) is not None}
    out.write(",".join(["time", *(f"{name}{j}" for name in blocks for j in range(samples.n))]) + "\n")
    for row in np.column_stack([samples.t, *blocks.values()]).tolist():
        out.write(",".join(map(repr, row)) + "\n")
    return out.getvalue()


def from_csv(text: str, joints: Sequence[str] | None = None) -> Sampled:
    """The samples in a text; `joints` says how many there are where the text does not."""
    lines: list[Line] = []
    names: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith(JOINTS):
            names = _names_in(stripped[len(JOINTS) :].strip())
        elif stripped and not stripped.startswith("#"):
            lines.append((number, stripped))
    if not lines:
        raise DataError("no rows; a trajectory needs time and q0.. in at least 2 rows")
    delimiter = next((mark for mark in (",", ";", "\t") if mark in lines[0][1]), None)
    first = _cells(lines[0][1], delimiter)
    if any(not _is_number(cell) for cell in first):
        columns = _columns_of(first)
        lines = lines[1:]
        if not lines:
            raise DataError("a header and no rows; a trajectory has at least 2")
    else:
        columns = _columns_without_header(len(first), len(names or joints or ()) or None)
    table = _table(lines, delimiter, len(first))
    blocks = {name: table[:, places] for name, places in columns.items() if name != "time"}
    return Sampled(table[:, columns["time"][0]], **blocks, joints=names)
