"""Recordings from files: one verb, the format by what the file holds."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..robot.robot import Robot
from .arrays import open_parquet, read_hdf5, read_mat, read_npz, table_from
from .bags import SUFFIXES as BAG_SUFFIXES
from .bags import bag_files, open_bag
from .blocks import Log, RowMajor, Source, one_line
from .delimited import Delimited, TextTable
from .mapping import Mapping, read_mapping
from .plan import make_plan
from .recording import Recording, read_only
from .stream import RecordingStream

# How files of a kind begin
_MAGIC = (
    (b"PK\x03\x04", "npz"),
    (b"PAR1", "parquet"),
    (b"SQLite format 3\x00", "bag"),
    (b"\x89MCAP", "bag"),
    (b"#ROSBAG", "bag"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"MATLAB 7.3", "hdf5"),
    (b"MATLAB 5.0", "mat"),
)


def format_of(path: Path) -> str:
    """What kind of recording a file is: by how it begins, else by its suffix."""
    if path.is_dir():
        return "bag"
    with path.open("rb") as file:
        start = file.read(16)
    found = next((kind for magic, kind in _MAGIC if start.startswith(magic)), None)
    if found is not None:
        return found
    suffix = path.suffix.lower()
    known = {".npz": "npz", ".mat": "mat", ".parquet": "parquet", ".pq": "parquet", ".h5": "hdf5", ".hdf5": "hdf5"}
    return known.get(suffix, "bag" if suffix in BAG_SUFFIXES else "csv")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mapping_from(mapping: Mapping | str | Path | None) -> tuple[Mapping, dict[str, Any]]:
    """The mapping, and what `about` says of it."""
    if mapping is None:
        return Mapping(), {}
    if isinstance(mapping, Mapping):
        read, name = mapping, None
    else:
        path = Path(mapping)
        read, name = read_mapping(path), path.name
    return read, {"mapping": {"file": name, **read.model_dump(mode="json", exclude_defaults=True)}}


def _source(path: Path, kind: str, mapping: Mapping) -> Source:
    how = mapping.table
    if kind == "csv":
        return Delimited(path, TextTable(how.delimiter, how.decimal, how.header, how.skip_rows))
    if kind == "parquet":
        return open_parquet(path)
    readers = {"npz": read_npz, "mat": read_mat, "hdf5": read_hdf5}
    return table_from(readers[kind](path), kind)


def _checked_path(path: str | Path, what: str = "") -> Path:
    path = Path(path)
    try:
        there = path.is_file() or path.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise DataError(f"{what}{path}: no such file")
    return path


def _further(path: Path, mapping: Mapping) -> dict[str, Path]:
    """The files that a mapping names, in the folder that was given or beside the file that was given."""
    folder = path if path.is_dir() else path.parent
    signals = [signal for _, signal in mapping.signals()] + list(mapping.more.values())
    named = [signal.file for signal in signals] + [mapping.time.file if mapping.time else None]
    return {name: _checked_path(folder / name, "mapping: ") for name in dict.fromkeys(named) if name}


def _opened(
    path: Path, robot: Robot | None, mapping: Mapping, said: dict, topic: str | None, repair: bool
) -> RecordingStream:
    further = _further(path, mapping)
    kind = "files" if further and path.is_dir() else format_of(path)
    main: Source | None = None
    log = Log()
    if kind == "bag":
        wanted = mapping.joints or (robot.dof_names if robot is not None else ())
        main = open_bag(path, topic or mapping.topic, wanted, mapping.stamp, repair, log)
    elif kind != "files":
        main = _source(path, kind, mapping)
    widths = {signal.file: signal.row_major for _, signal in mapping.signals() if signal.file and signal.row_major}
    files: dict[str, Source] = {}
    for name, file in further.items():
        try:
            files[name] = _source(file, format_of(file), mapping)
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        if name in widths:
            files[name] = RowMajor(files[name], widths[name])
    plan = make_plan(main, files, mapping, robot)
    for text in plan.about.pop("notes", ()):
        log.note(text)
    hashed = [*(bag_files(path) if kind == "bag" else [path] if kind != "files" else []), *further.values()]
    digests = {file.name: _sha256(file) for file in hashed}
    about = {
        "source": path.name,
        "format": kind,
        "sha256": next(iter(digests.values())) if len(digests) == 1 else digests,
        **said,
        **{key: value for key, value in plan.about.items() if key != "files"},
    }
    earlier = main.about if main is not None else {}
    return RecordingStream(plan, with_earlier(earlier, about), repair, str(path), log.notes)


def with_earlier(earlier: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What a recording said of itself, and what its reading adds; what both say is kept under `earlier`."""
    both = {key: value for key, value in earlier.items() if key in (*now, "repairs", "notes")}
    return {**earlier, **now, **({"earlier": both} if both else {})}


def open_recording(
    path: str | Path,
    robot: Robot | None = None,
    mapping: Mapping | str | Path | None = None,
    *,
    topic: str | None = None,
    repair: bool = False,
) -> RecordingStream:
    """A recording as a stream of blocks of a few megabytes, each a `Recording`; see `load_recording`.

    CSV, Parquet and bags are read as the blocks are asked for; NPZ and MAT are in memory as a whole.
    """
    path = _checked_path(path)
    chosen, said = _mapping_from(mapping)
    try:
        return _opened(path, robot, chosen, said, topic, repair)
    except DataError as error:
        raise DataError(f"{path}: {one_line(error)}") from None
    except MemoryError:
        raise DataError(f"{path}: too large for this machine's memory") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {one_line(error.strerror or error)}") from None


class _Growing:
    """Rows laid one behind the other in memory that grows where it stands: what is long is never held twice."""

    def __init__(self, first: np.ndarray) -> None:
        self.rows, self.array = 0, np.empty_like(first)

    def add(self, block: np.ndarray) -> None:
        end = self.rows + len(block)
        if end > len(self.array):
            self.array.resize((end + end // 4, *block.shape[1:]), refcheck=False)
        self.array[self.rows : end] = block
        self.rows = end

    def all(self) -> np.ndarray:
        self.array.resize((self.rows, *self.array.shape[1:]), refcheck=False)
        return read_only(self.array)


def _channels(block: Recording) -> dict[str, np.ndarray]:
    main = {name: getattr(block, name) for name in ("t", "q", "tau", "qd", "qdd")}
    more = {f"more.{name}": x for name, x in block.more.items()}
    return {name: x for name, x in (main | more).items() if x is not None}


def _joined(stream: RecordingStream) -> Recording:
    grown: dict[str, _Growing] = {}
    for block in stream:
        for name, x in _channels(block).items():
            grown.setdefault(name, _Growing(x)).add(x)
    whole = {name: each.all() for name, each in grown.items()}
    more = {name.removeprefix("more."): whole.pop(name) for name in list(whole) if name.startswith("more.")}
    return Recording(**whole, joints=stream.joints, more=more, about=stream.about)


def load_recording(
    path: str | Path,
    robot: Robot | None = None,
    mapping: Mapping | str | Path | None = None,
    *,
    topic: str | None = None,
    repair: bool = False,
) -> Recording:
    """Read what a robot did, in SI on the joints' side and in the order of the robot's joints.

    CSV and its relatives (`time, q0, …, qd0, …, [qdd0, …], tau0, …`, with a header or without), NPZ, MAT, Parquet, and
    ROS bags; `mapping` says what a foreign file does not say of itself. Where the path is a folder, the mapping names
    the files in it. `topic` chooses among several of a bag. `repair` drops rows with faults, which are errors
    otherwise, and says so in `about["repairs"]`.
    """
    stream = open_recording(path, robot, mapping, topic=topic, repair=repair)
    try:
        return _joined(stream)
    except MemoryError:
        raise DataError(f"{path}: too large for this machine's memory") from None
