"""Recordings to files: NPZ with everything, or CSV as `time, q0.., qd0.., tau0..`."""

import os
import tempfile
from pathlib import Path

import numpy as np

from ..errors import OptionError
from .recording import Recording, save_recording

SUFFIXES = (".npz", ".csv")


def checked_output(path: str | Path) -> Path:
    """The path if a recording can be written there; said before the work, not after it."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"{path}: recordings are written as {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise OptionError(f"{path}: no folder {path.parent}; make it first")
    return path


def _write_csv(recording: Recording, path: Path) -> None:
    blocks = {name: x for name in ("q", "qd", "qdd", "tau") if (x := getattr(recording, name)) is not None}
    header = ",".join(["time", *(f"{name}{j}" for name in blocks for j in range(recording.n))])
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}-", suffix=".csv", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(header + "\n")
            for row in np.column_stack([recording.t, *blocks.values()]):
                file.write(",".join(map(repr, row.tolist())) + "\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None


def write_recording(recording: Recording, path: str | Path) -> Path:
    """Write a recording as the suffix says, whole or not at all; CSV has no room for `more` and `about`."""
    path = checked_output(path)
    if path.suffix.lower() == ".csv":
        _write_csv(recording, path)
        return path
    return save_recording(recording, path)
