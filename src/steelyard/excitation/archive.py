"""Trajectories as arrays by name: NPZ, which keeps the trajectory itself, and MAT with its samples.

Arrays of samples are called t, q_d, qd_d, qdd_d, tau_ff and joints. An NPZ says in `kind` what trajectory it holds and
has its fields by their names; a sequence has its parts' as part0.kind, part0.start, …
"""

import io
import zipfile
from dataclasses import MISSING, fields
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, unknown_name
from .checks import default_names
from .chirp import Chirp
from .composition import Sequence
from .splines import PointToPoint, Sampled, Spline
from .trajectory import Fourier, Trajectory

KINDS: dict[str, type[Trajectory]] = {
    "fourier": Fourier,
    "point_to_point": PointToPoint,
    "spline": Spline,
    "chirp": Chirp,
    "sampled": Sampled,
}
SAMPLES = {"t": "t", "q": "q_d", "qd": "qd_d", "qdd": "qdd_d", "tau": "tau_ff"}
MAX_BYTES = 512 * 2**20
MAT5 = (b"\x00\x01IM", b"\x01\x00MI")  # version and byte order of a MAT 5 file, at byte 124

Arrays = dict[str, NDArray]


def sample_arrays(samples: Sampled) -> dict[str, Any]:
    """The samples by the names that files use; unnamed joints stay unnamed."""
    arrays: dict[str, Any] = {
        stored: getattr(samples, name) for name, stored in SAMPLES.items() if getattr(samples, name) is not None
    }
    if samples.joints != default_names(samples.n):
        arrays["joints"] = np.array(samples.joints)
    return arrays


def _names(value: NDArray) -> tuple[str, ...]:
    """Joint names from an array of texts, or from MATLAB's cells and padded rows."""
    items = [np.ravel(item) for item in np.ravel(value)]
    if any(item.size != 1 or not isinstance(item[0], str) for item in items):
        raise DataError("joints is not a list of names")
    return tuple(str(item[0]).strip() for item in items)


def _samples_from(arrays: Arrays) -> Sampled:
    found: dict[str, Any] = {}
    for name, stored in SAMPLES.items():
        value = arrays.get(stored, arrays.get("time" if name == "t" else name))
        if value is not None:
            found[name] = value
    for name in ("t", "q"):
        if name not in found:
            raise DataError(f"no array '{SAMPLES[name]}'; a trajectory needs t and q_d, this holds {_listed(arrays)}")
    found["t"] = np.ravel(found["t"])
    for name, value in found.items():
        # MATLAB users often keep time along the columns.
        if name != "t" and value.ndim == 2 and len(value) != found["t"].size == value.shape[1]:
            found[name] = value.T
    return Sampled(**found, joints=_names(arrays["joints"]) if "joints" in arrays else ())


def _listed(arrays: Arrays) -> str:
    return ", ".join(f"'{name[:40]}'" for name in list(arrays)[:20]) or "nothing"


def _pack(trajectory: Trajectory, prefix: str = "") -> dict[str, Any]:
    if isinstance(trajectory, Sequence):
        arrays: dict[str, Any] = {"kind": "sequence", "parts": len(trajectory.parts)}
        for k, part in enumerate(trajectory.parts):
            arrays |= _pack(part, f"part{k}.")
        return arrays
    kind = next(name for name, cls in KINDS.items() if isinstance(trajectory, cls))
    values = {part.name: getattr(trajectory, part.name) for part in fields(trajectory)}  # type: ignore[arg-type]
    return {prefix + "kind": kind} | {prefix + name: value for name, value in values.items() if value is not None}


def _unpack(arrays: Arrays, prefix: str = "") -> Trajectory:
    kind = str(arrays[prefix + "kind"])[:40] if prefix + "kind" in arrays else "fourier"
    if kind not in KINDS:
        raise DataError(unknown_name("kind of trajectory", kind, [*KINDS, "sequence"]))
    values: dict[str, Any] = {}
    for part in fields(KINDS[kind]):  # type: ignore[arg-type]
        value = arrays.get(prefix + part.name)
        if value is None:
            if part.default is MISSING:
                raise DataError(f"no array '{prefix}{part.name}', which a {kind} trajectory needs")
        elif part.name == "joints":
            values["joints"] = _names(value)
        else:
            values[part.name] = value if value.ndim else value.item()
    return KINDS[kind](**values)


def _unpack_sequence(arrays: Arrays) -> Trajectory:
    parts: list[Trajectory] = []
    while f"part{len(parts)}.kind" in arrays:
        parts.append(_unpack(arrays, f"part{len(parts)}."))
    told = arrays.get("parts", np.array(-1))
    if told.size != 1 or told.dtype.kind not in "iu" or int(told.ravel()[0]) != len(parts):
        raise DataError(f"{len(parts)} parts are there, {told!s:.20} are announced; the file is not whole")
    return Sequence(tuple(parts))


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray:
    """One array, read only if its head announces what is there: a head can promise more than any memory holds."""
    data = archive.read(info)
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = head(stream)
    if dtype.kind not in "fiuU":
        raise ValueError(f"{info.filename} holds {dtype.name} entries, not numbers or names")
    promised = dtype.itemsize * int(np.prod([int(k) for k in shape], dtype=object))
    if promised != len(data) - stream.tell():
        raise ValueError(f"{info.filename} is not whole")
    stream.seek(0)
    return np.lib.format.read_array(stream)


def _arrays_in(file: BinaryIO) -> Arrays:
    # Whatever zipfile, zlib and NumPy make of damaged bytes, to the user it is one thing: a damaged file.
    try:
        with zipfile.ZipFile(file) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            size = sum(info.file_size for info in infos)
            if size > MAX_BYTES:
                raise ValueError(f"{size} bytes unpacked, at most {MAX_BYTES} are read")
            return {info.filename[:-4]: _member(archive, info) for info in infos}
    except Exception as error:
        raise DataError(f"not a whole NPZ file: {' '.join(str(error).split())[:200] or type(error).__name__}") from None


def write_npz(file: BinaryIO, trajectory: Trajectory, samples: Sampled | None = None) -> None:
    """The trajectory itself, and its samples for whoever cannot evaluate it."""
    if isinstance(trajectory, Sampled):
        trajectory, samples = samples or trajectory, None
    arrays: dict[str, Any] = _pack(trajectory) | (sample_arrays(samples) if samples else {})
    np.savez(file, **arrays)


def _refuse_recording(arrays: Arrays) -> None:
    """A recording is noisy: its differences would be taken for accelerations that nobody asked for."""
    if str(arrays.get("format", "")).startswith("steelyard recording"):
        raise DataError("this is a recording, not a trajectory; give the trajectory that was run")


def read_npz(file: BinaryIO) -> Trajectory:
    """The trajectory in an NPZ file; one with neither `kind` nor Fourier coefficients is samples."""
    arrays = _arrays_in(file)
    _refuse_recording(arrays)
    if str(arrays.get("kind")) == "sequence":
        return _unpack_sequence(arrays)
    if "kind" in arrays or {"period", "offset", "a", "b"} <= arrays.keys():
        return _unpack(arrays)
    return _samples_from(arrays)


def write_mat(file: BinaryIO, samples: Sampled) -> None:
    """The samples as MATLAB reads them: columns, and a cell of joint names."""
    from scipy.io import savemat

    arrays = sample_arrays(samples)
    arrays["joints"] = np.array(samples.joints, dtype=object)
    savemat(file, arrays, oned_as="column", do_compression=True)


def read_mat(file: BinaryIO) -> Sampled:
    """The samples in a MAT 5 file."""
    from scipy.io import loadmat

    head = file.read(128)
    if head[124:128] not in MAT5:
        newer = " (it is version 7.3)" if head[124:126] in (b"\x00\x02", b"\x02\x00") else ""
        raise DataError(f"not a MAT 5 file{newer}; save it in MATLAB with save(…, '-v7')")
    file.seek(0)
    names = [*SAMPLES, *SAMPLES.values(), "time", "joints"]
    try:
        arrays = {name: np.asarray(x) for name, x in loadmat(file, variable_names=names).items() if name in names}
    except Exception as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"not a whole MAT file: {what}") from None
    return _samples_from(arrays)
