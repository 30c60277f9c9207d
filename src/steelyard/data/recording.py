"""`Recording`: what a robot did, as measured, with what else was known when it was made."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, OptionError

Array = NDArray[np.float64]
_MATRICES = ("q", "tau", "qd", "qdd")
FORMAT = "steelyard recording 1"


def _frozen(name: str, x: Any, shape: tuple[int, ...] | None) -> Array:
    try:
        values: Array = np.array(x, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(f"{name} is not an array of numbers") from None
    if shape is not None and values.shape != shape:
        raise DataError(f"{name} has shape {values.shape}; {shape} is needed: a row a sample, a column a joint")
    values.setflags(write=False)
    return values


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
        joints = tuple(self.joints) or tuple(f"joint{k + 1}" for k in range(q.shape[1]))
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


def save_recording(recording: Recording, path: str | Path) -> Path:
    """Write a recording as NPZ, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise OptionError(f"{path}: recordings are written as .npz")
    if not path.parent.is_dir():
        raise OptionError(f"{path}: no folder {path.parent}; make it first")
    arrays = {"t": recording.t, "joints": np.array(recording.joints)}
    arrays |= {name: getattr(recording, name) for name in _MATRICES if getattr(recording, name) is not None}
    arrays |= {f"more.{name}": value for name, value in recording.more.items()}
    arrays |= {"format": np.array(FORMAT), "about": np.array(json.dumps(dict(recording.about), default=str))}
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}-", suffix=".npz", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


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
        about = json.loads(str(found.get("about", "{}")))
    except ValueError:
        raise DataError(f"{path}: what it says about itself is not JSON") from None
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
