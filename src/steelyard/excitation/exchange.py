"""Trajectories to files and back: one verb each way, the format by the suffix."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DataError, OptionError, SteelyardError, unknown_name
from .archive import MAX_BYTES, read_mat, read_npz, write_mat, write_npz
from .checks import finite
from .ros import from_yaml, read_bag, to_yaml, write_bag
from .splines import Sampled
from .table import from_csv, to_csv
from .trajectory import Trajectory

SUFFIXES = (".csv", ".mat", ".npz", ".yaml", ".yml", ".db3")


def _unknown_suffix(path: Path) -> OptionError:
    listed = unknown_name("trajectory format", path.suffix.lower(), SUFFIXES)
    return OptionError(f"{path}: {listed}, or no suffix for a rosbag2 folder")


def samples_of(trajectory: Trajectory, rate_hz: float | None = None, tau: ArrayLike | None = None) -> Sampled:
    """The trajectory at an even rate, with its feed-forward torque; a sampled one at its own times without a rate."""
    if rate_hz is not None:
        t = trajectory.grid(rate_hz)
    elif isinstance(trajectory, Sampled):
        t = trajectory.t
    else:
        raise OptionError("no sampling rate; give rate_hz")
    q, qd, qdd = trajectory.sample(t)
    torque = trajectory.torque(t) if tau is None and isinstance(trajectory, Sampled) else tau
    if torque is not None:
        torque = finite("tau", torque, 2)
        if torque.shape != q.shape:
            raise OptionError(
                f"tau has shape {torque.shape}, the trajectory's samples have {q.shape}; give one a sample"
            )
    return Sampled(t, q, qd, qdd, torque, trajectory.joints)


def _write(path: Path, trajectory: Trajectory, samples: Callable[[], Sampled], sampled: bool) -> None:
    """Write to a path where nothing is yet."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        path.write_text(to_csv(samples()), encoding="utf-8", newline="")
    elif suffix in (".yaml", ".yml"):
        path.write_text(to_yaml(samples()), encoding="utf-8", newline="")
    elif suffix == ".mat":
        with path.open("wb") as file:
            write_mat(file, samples())
    elif suffix == ".npz":
        with path.open("wb") as file:
            write_npz(file, trajectory, samples() if sampled else None)
    elif suffix == ".db3":
        bag = path.with_name("bag")
        write_bag(bag, samples())
        (bag / "bag.db3").rename(path)
    else:
        write_bag(path, samples())


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    return sum(file.stat().st_size for file in files)


def _read(path: Path, joints: Sequence[str] | None) -> Trajectory:
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".db3":
        return read_bag(path)
    if suffix in (".mat", ".npz"):
        with path.open("rb") as file:
            return read_mat(file) if suffix == ".mat" else read_npz(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not a text file: byte {error.start} is not UTF-8") from None
    return from_csv(text, joints) if suffix == ".csv" else from_yaml(text)


def write_trajectory(
    path: str | Path,
    trajectory: Trajectory,
    rate_hz: float | None = None,
    tau: ArrayLike | None = None,
    joints: Sequence[str] | None = None,
) -> Path:
    """Write a trajectory: .csv, .mat, .npz, ROS .yaml or .yml, rosbag2 .db3, or a rosbag2 folder without a suffix.

    `rate_hz` samples it (a `Sampled` one keeps its own samples without a rate); `tau` is the feed-forward torque at
    those samples; `joints` replaces its joint names. An .npz keeps the trajectory itself, and its samples beside it
    where a rate is given. What was at the path before stays until the new file is whole; a folder is never replaced.
    """
    path = Path(path)
    if path.suffix and path.suffix.lower() not in SUFFIXES:
        raise _unknown_suffix(path)
    if not path.suffix and path.exists():
        raise OptionError(f"{path} is there already; remove it or choose another name for the bag")
    if not path.parent.is_dir():
        raise OptionError(f"{path}: no folder {path.parent}; make it first")
    if joints is not None:
        trajectory = trajectory.renamed(joints)
    if tau is not None and isinstance(trajectory, Sampled) and rate_hz is None:
        trajectory = replace(trajectory, tau=np.asarray(tau))

    def samples() -> Sampled:
        return samples_of(trajectory, rate_hz, tau)

    try:
        with TemporaryDirectory(prefix=f".{path.name[:40]}-", dir=path.parent) as folder:
            whole = Path(folder) / path.name
            _write(whole, trajectory, samples, sampled=rate_hz is not None or tau is not None)
            os.replace(whole, path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def read_trajectory(path: str | Path, joints: Sequence[str] | None = None) -> Trajectory:
    """Read what `write_trajectory` writes, and the like from elsewhere; `joints` is the order wanted, by name.

    Joints of the file that are not asked for are left out. In a file without names, joints are taken in their order.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if not path.is_dir() and path.suffix.lower() not in SUFFIXES:
        raise _unknown_suffix(path)
    if not (path.is_dir() or path.is_file()):
        raise DataError(f"{path} is neither a file nor a folder")
    try:
        if _size(path) > MAX_BYTES:
            raise DataError(f"{_size(path)} bytes, at most {MAX_BYTES} are read; thin it out")
        trajectory = _read(path, joints)
        return trajectory if joints is None else trajectory.with_joints(joints)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise DataError(f"{path}: too large for this machine's memory") from None
    except SteelyardError as error:
        raise DataError(f"{path}: {error}") from None
