"""Recordings of a standing robot from CSV: columns by name, a joint's by the joint's name.

    t, q_<joint> …, tau_<joint> …, acc_x, acc_y, acc_z[, pose]

Positions in rad, torques in N·m on the link's side (what the trunk's side does to the leg's), the accelerometer in
m/s² in the axes of the IMU: +9.81 upwards at rest. `pose` numbers the poses from 0; −1 is in between. A joint without
tau_ counts as not measured, a wheel needs no q_ either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..data import units
from ..data.load import format_of, load_recording
from ..data.recording import Recording
from ..errors import DataError, OptionError, unknown_name
from .poses import ACCELERATION, LABEL
from .stance import Stance

STANDARD_GRAVITY = 9.80665  # m/s², what an IMU calls g
_FORCE = {"m/s2": 1.0, "g": STANDARD_GRAVITY}


@dataclass(frozen=True)
class Columns:
    """What a foreign table calls its columns (ours → theirs), its units, and torques of the other sign."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    angle: str = "rad"
    acceleration: str = "m/s2"
    flipped: Sequence[str] = ()

    def __post_init__(self) -> None:
        if units.factor("q", self.angle) is None:
            raise OptionError(unknown_name("unit of angles", self.angle, ("rad", "deg", "mrad", "turn")))
        if self.acceleration not in _FORCE:
            raise OptionError(unknown_name("unit of acceleration", self.acceleration, _FORCE))


def _values(frame, name: str, path: Path) -> np.ndarray:  # type: ignore[no-untyped-def]
    import pandas

    numbers = pandas.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64)
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"{path}: '{frame[name].iloc[row]}' in column {name}, row {row + 2}, is no number; mend it")
    return numbers


def _from_csv(path: Path, stance: Stance, columns: Columns) -> Recording:
    import pandas

    try:
        frame = pandas.read_csv(path, skipinitialspace=True)
    except (ValueError, UnicodeError) as error:
        raise DataError(f"{path} cannot be read as CSV: {str(error)[:200]}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    for ours, theirs in columns.renamed.items():
        if theirs not in frame.columns:
            raise DataError(f"{path}: {unknown_name('column', theirs, frame.columns)} (for {ours})")
    named = {ours: columns.renamed.get(ours, ours) for ours in ("t", "acc_x", "acc_y", "acc_z", "pose")}
    for name in stance.joints:
        named |= {key: columns.renamed.get(key, key) for key in (f"q_{name}", f"tau_{name}")}
    for ours in columns.renamed:
        if ours not in named:
            raise OptionError(f"--column: {unknown_name('column of ours', ours, named)}")
    there = {ours for ours, name in named.items() if name in frame.columns}
    needed = ["t", "acc_x", "acc_y", "acc_z"]
    needed += [f"{kind}_{name}" for leg in stance.legs for name in (leg.hip, leg.knee) for kind in ("q", "tau")]
    missing = [name for name in needed if name not in there]
    if missing:
        raise DataError(
            f"{path} lacks {', '.join(missing)}; it has {', '.join(map(str, frame.columns[:40]))}: "
            "say which are meant by --column OURS=THEIRS"
        )
    if not len(frame):
        raise DataError(f"{path} has a header and no rows")
    x = {ours: _values(frame, named[ours], path) for ours in there}
    none = np.full(len(frame), np.nan)
    joints = tuple(name for name in stance.joints if {f"q_{name}", f"tau_{name}"} & there)
    angle = units.factor("q", columns.angle) or 1.0
    q = angle * np.column_stack([x.get(f"q_{name}", none) for name in joints])
    tau = np.column_stack([x.get(f"tau_{name}", none) for name in joints])
    more = {ACCELERATION: _FORCE[columns.acceleration] * np.column_stack([x[f"acc_{axis}"] for axis in "xyz"])}
    if "pose" in there:
        more[LABEL] = x["pose"]
    return Recording(x["t"], q, tau, joints=joints, more=more, about={"source": path.name})


def _flip(recording: Recording, flipped: Sequence[str]) -> Recording:
    tau = recording.tau.copy()
    for name in flipped:
        if name not in recording.joints:
            raise OptionError(f"--flip: {unknown_name('joint in the recording', name, recording.joints)}")
        tau[:, recording.joints.index(name)] *= -1.0
    return Recording(recording.t, recording.q, tau, joints=recording.joints, more=recording.more, about=recording.about)


def read_standing(path: str | Path, stance: Stance, columns: Columns | None = None) -> Recording:
    """A recording of a robot that stands: CSV as above, or whatever `load_recording` reads with the IMU's channel."""
    path, columns = Path(path), columns or Columns()
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        recording = _from_csv(path, stance, columns) if format_of(path) == "csv" else load_recording(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    return _flip(recording, columns.flipped) if columns.flipped else recording


def as_csv(recording: Recording) -> str:
    """A recording of a standing robot as the text of such a table."""
    names = ["t", *(f"{kind}_{name}" for kind in ("q", "tau") for name in recording.joints), "acc_x", "acc_y", "acc_z"]
    blocks = [recording.t[:, None], recording.q, recording.tau, recording.more[ACCELERATION]]
    if LABEL in recording.more:
        names.append("pose")
        blocks.append(recording.more[LABEL][:, None])
    rows = [",".join(f"{value:.7g}" for value in row) for row in np.hstack(blocks)]
    return "\n".join([",".join(names), *rows]) + "\n"
