"""`Recording`: what a robot did, as measured, with what else was known when it was made."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..files import checked_output, whole_or_not

Array = NDArray[np.float64]
_MATRICES = ("q", "tau", "qd", "qdd")
CSV_ORDER = ("q", "qd", "qdd", "tau")
FORMAT = "steelyard recording 1"


def _is_frozen(x: Array) -> bool:
    owner = x if x.base is None else x.base
    shut = isinstance(owner, np.ndarray) and owner.flags.owndata and not owner.flags.writeable
    return bool(x.flags.c_contiguous and not x.flags.writeable and shut)


def _frozen(name: str, x: Any, shape: tuple[int, ...] | None) -> Array:
    # What another recording has frozen already is shared, not copied.
    mine = type(x) is np.ndarray and x.dtype == np.float64 and _is_frozen(x)
    try:
        values: Array = x if mine else np.array(x, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(f"{name} is not an array of numbers") from None
    if shape is not None and values.shape != shape:
        raise DataError(f"{name} has shape {values.shape}; {shape} is needed: a row a sample, a column a joint")
    values.setflags(write=False)
    return values


def read_only(x: Array) -> Array:
    """An array that nobody writes to any more, so that recordings can share it."""
    x.setflags(write=False)
    return x


def default_joints(n: int) -> tuple[str, ...]:
    """Names for joints that have none."""
    return tuple(f"joint{k + 1}" for k in range(n))


@dataclass(frozen=True, eq=False)
class Recording:
    """What a robot did: times, positions and torques, and what else was measured or is known.

    `more` holds further channels (desired and true motion, commanded torque, motor side, …), one row a sample;
    `about` says where the recording comes from: configuration, seed, versions, hashes.
    """

    t: Array  # (T,) s, increasing
    q: Array  # (T, n) rad or m
    tau: Array  # (T, n) N·m or N
    qd: Array | None = None
    qdd: Array | None = None
    joints: tuple[str, ...] = ()
    more: Mapping[str, Array] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        t = _frozen("t", self.t, None)
        q = _frozen("q", self.q, None)
        if t.ndim != 1 or q.ndim != 2 or len(q) != len(t):
            raise DataError(f"t has shape {t.shape} and q {q.shape}; a time and a row of positions a sample are needed")
        put = object.__setattr__
        put(self, "t", t)
        put(self, "q", q)
        for name in _MATRICES[1:]:
            value = getattr(self, name)
            if value is not None:
                put(self, name, _frozen(name, value, q.shape))
        more = {name: _frozen(name, value, None) for name, value in self.more.items()}
        for name, value in more.items():
            if value.ndim == 0 or len(value) != len(t):
                raise DataError(f"channel '{name}' has shape {value.shape}; {len(t)} samples are needed")
        put(self, "more", more)
        joints = tuple(self.joints) or default_joints(q.shape[1])
        if len(joints) != q.shape[1]:
            raise DataError(f"{len(joints)} joint names for {q.shape[1]} columns of positions")
        put(self, "joints", joints)
        if not np.isfinite(t).all():
            raise DataError(f"the time of sample {int(np.flatnonzero(~np.isfinite(t))[0])} is not a finite number")
        step = np.diff(t)
        if step.size and step.min() <= 0:
            k = int(step.argmin())
            raise DataError(
                f"time does not advance at sample {k + 1}: {t[k]:.4f} -> {t[k + 1]:.4f} s; "
                "sort the rows or drop the duplicates"
            )

    @property
    def n(self) -> int:
        return self.q.shape[1]

    def __len__(self) -> int:
        return len(self.t)

    @property
    def duration(self) -> float:
        return float(self.t[-1] - self.t[0]) if len(self.t) else 0.0

    @property
    def rate_hz(self) -> float:
        """Samples a second, by the median step."""
        return float(1.0 / np.median(np.diff(self.t))) if len(self.t) > 1 else float("nan")

    def between(self, first: int, last: int) -> "Recording":
        """The samples first … last."""
        cut = slice(first, last)
        qd, qdd = (None if x is None else x[cut] for x in (self.qd, self.qdd))
        more = {name: value[cut] for name, value in self.more.items()}
        return Recording(self.t[cut], self.q[cut], self.tau[cut], qd, qdd, self.joints, more, self.about)


def _write_npz(file: BinaryIO, recording: Recording) -> None:
    arrays = {"t": recording.t, "joints": np.array(recording.joints)}
    arrays |= {name: getattr(recording, name) for name in _MATRICES if getattr(recording, name) is not None}
    arrays |= {f"more.{name}": value for name, value in recording.more.items()}
    arrays |= {"format": np.array(FORMAT), "about": np.array(json.dumps(dict(recording.about), default=str))}
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _write_csv(file: BinaryIO, recording: Recording) -> None:
    """A header and rows, every number with all its digits; names of joints and `about` in comments before them."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    if recording.joints != default_joints(recording.n):
        text.write("# joints: ")
        writer.writerow(recording.joints)
    if recording.about:
        text.write(f"# about: {json.dumps(dict(recording.about), default=str)}\n")
    blocks = {name: value for name in CSV_ORDER if (value := getattr(recording, name)) is not None}
    names = ["time", *(f"{name}{j}" for name in blocks for j in range(recording.n))]
    columns = [recording.t[:, None], *blocks.values()]
    for name, value in recording.more.items():
        flat = value.reshape(len(value), -1)
        names += [f"more.{name}"] if value.ndim == 1 else [f"more.{name}[{k}]" for k in range(flat.shape[1])]
        columns.append(flat)
    writer.writerow(names)
    for first in range(0, len(recording), 4096):
        table = np.hstack([column[first : first + 4096] for column in columns])
        text.write("".join(",".join(map(repr, row)) + "\n" for row in table.tolist()))
    text.detach()


_WRITERS = {".npz": _write_npz, ".csv": _write_csv}
SUFFIXES = tuple(_WRITERS)


def save_recording(recording: Recording, path: str | Path) -> Path:
    """Write a recording as NPZ or CSV, whole or not at all."""
    path = checked_output(path, SUFFIXES)
    with whole_or_not(path) as temporary, temporary.open("wb") as file:
        _WRITERS[path.suffix.lower()](file, recording)
    return path


def said_of_itself(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The `about` of a recording, from the arrays of its file."""
    try:
        about = json.loads(str(arrays.get("about", "{}")))
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise DataError("what it says about itself is not JSON")
    return about


def read_npz(path: str | Path) -> Recording:
    """Read what `save_recording` writes."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except Exception as error:  # a hostile or truncated archive fails in many ways inside zipfile and NumPy
        raise DataError(f"{path} cannot be read as NPZ: {type(error).__name__}: {error}") from None
    if str(found.get("format")) != FORMAT:
        raise DataError(f"{path} is not a recording of Steelyard's: it lacks format '{FORMAT}'")
    missing = [name for name in ("t", "q", "tau") if name not in found]
    if missing:
        raise DataError(f"{path} lacks {', '.join(missing)}")
    try:
        about = said_of_itself(found)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return Recording(
        found["t"],
        found["q"],
        found["tau"],
        found.get("qd"),
        found.get("qdd"),
        tuple(str(name) for name in found.get("joints", ())),
        {name.removeprefix("more."): value for name, value in found.items() if name.startswith("more.")},
        about,
    )
