"""Tables in NPZ, MAT (5 and 7.3), HDF5 and Parquet files: every array with a row a sample gives its columns."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..excitation.archive import MAT5
from .blocks import CHUNK_BYTES, Array, Block, Held, Log, checked
from .recording import FORMAT, said_of_itself

_DEEPEST = 6  # of structures in structures
_TIME = ("time", "t")
Found = dict[str, Any]


def missing_package(package: str, what: str) -> DataError:
    return DataError(f"{what} needs the package {package}: pip install 'steelyard[formats]'")


def _numeric(value: Any) -> Array | None:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or not array.size:
        return None
    return array.astype(np.float64, copy=False)


def _texts(value: Any) -> tuple[str, ...]:
    """Names of joints from an array of texts, or from MATLAB's cells and padded rows."""
    texts = []
    for item in np.ravel(np.asarray(value, dtype=object)):
        inner = np.ravel(item)
        if inner.size != 1 or not isinstance(inner[0], str):
            return ()
        texts.append(str(inner[0]).strip())
    return tuple(texts)


def _rows(arrays: dict[str, Array]) -> int:
    """How many samples there are: the length that most arrays have along a side."""
    sides: dict[int, int] = {}
    for array in arrays.values():
        for side in {k for k in array.shape if k > 1}:
            sides[side] = sides.get(side, 0) + 1
    for name, array in arrays.items():
        if name.lower().rpartition(".")[2] in _TIME and max(array.shape) == array.size:
            return array.size
    return max(sides, key=lambda side: (sides[side], side), default=0)


def table_from(found: Found, format: str) -> Held:
    """The columns of all arrays that have a row a sample; the others are left aside."""
    arrays = {name: array for name, value in found.items() if (array := _numeric(value)) is not None}
    ours = str(found.get("format")) == FORMAT
    rows = len(np.atleast_1d(found["t"])) if ours and "t" in found else _rows(arrays)
    if rows < 2:
        listed = ", ".join(list(found)[:30]) or "nothing"
        raise DataError(f"no arrays with a row a sample; it holds {listed}")
    names: list[str] = []
    columns: list[Array] = []
    for name, array in arrays.items():
        if array.ndim == 2 and array.shape[0] != rows and array.shape[1] == rows:
            array = array.T  # MATLAB's row vectors, and HDF5's view of its matrices
        if array.shape[0] != rows:
            if ours:
                raise DataError(f"{name} has shape {array.shape}; {rows} samples are needed")
            continue
        if array.ndim == 1 or (array.shape[1] == 1 and not ours):
            names.append(name)
            columns.append(array.reshape(rows))
        else:
            names += [f"{name}[{k}]" for k in range(array.shape[1])]
            columns += list(array.T)
    joints = next((texts for name in ("joints", "joint_names") if (texts := _texts(found.get(name, ())))), ())
    return Held(format, tuple(names), tuple(columns), joints, said_of_itself(found) if ours else {})


def read_npz(path: Path) -> Found:
    """All arrays of an NPZ, ours or another's."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise DataError("a single array (.npy); save it with its name as .npz")
            return {name: arrays[name] for name in arrays.files}
    except DataError:
        raise
    except Exception as error:  # a hostile or truncated archive fails in many ways inside zipfile and NumPy
        raise DataError(f"it cannot be read as NPZ: {type(error).__name__}: {str(error)[:200]}") from None


def _structure(name: str, value: Any, into: Found, depth: int = 0) -> None:
    """Fields of MATLAB structures by their path, as data.q."""
    array = np.asarray(value)
    if array.dtype.names and depth < _DEEPEST:
        if array.size == 1:
            for part in array.dtype.names:
                _structure(f"{name}.{part}", array.ravel()[0][part], into, depth + 1)
        return
    into[name] = value


def _survives(path: Path) -> bool:
    """Whether SciPy's reader lives through a file: damaged bytes can bring down the process that reads them."""
    trial = "import sys; from scipy.io import loadmat; loadmat(sys.argv[1])"
    done = subprocess.run([sys.executable, "-P", "-c", trial, str(path)], check=False, capture_output=True)
    return done.returncode >= 0  # what it refuses by an exception is told better here


def read_mat(path: Path) -> Found:
    """All variables of a MAT file of version 5 to 7."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        if file.read(128)[124:] not in MAT5:
            raise DataError("not a MAT file of version 5, 7 or 7.3; save it in MATLAB with save(…, '-v7')")
    if not _survives(path):
        raise DataError("not a whole MAT file; save it again")
    try:
        variables = loadmat(path, struct_as_record=True)
    except Exception as error:  # a damaged file fails in many ways inside SciPy
        raise DataError(f"it cannot be read as MAT: {type(error).__name__}: {str(error)[:200]}") from None
    found: Found = {}
    for name, value in variables.items():
        if not name.startswith("__"):
            _structure(name, value, found)
    return found


def read_hdf5(path: Path) -> Found:
    """All datasets of an HDF5 file, and of MAT files of version 7.3, whose matrices lie transposed in it."""
    try:
        import h5py
    except ImportError:
        raise missing_package("h5py", "MAT 7.3 (HDF5)") from None
    found: Found = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#") and item.ndim in (1, 2):
            cells = item.attrs.get("MATLAB_class") == b"cell"
            if cells:
                found[name.replace("/", ".")] = [
                    "".join(map(chr, np.ravel(file[ref][()]))) for ref in np.ravel(item[()])
                ]
            elif item.dtype.kind in "fiub":
                found[name.replace("/", ".")] = item[()].T if "MATLAB_class" in item.attrs else item[()]

    try:
        with h5py.File(path, "r") as file:
            file.visititems(add)
    except Exception as error:  # a damaged file fails in many ways inside HDF5
        raise DataError(f"it cannot be read as HDF5: {type(error).__name__}: {str(error)[:200]}") from None
    return found


@dataclass(frozen=True, eq=False)
class Parquet:
    """A Parquet file, read batch by batch."""

    path: Path
    names: tuple[str, ...]
    joints: tuple[str, ...]
    about: dict
    format: str = "parquet"
    row_word: str = "row"

    @property
    def width(self) -> int:
        return len(self.names)

    def blocks(self, wanted: Sequence[int], log: Log) -> Iterator[Block]:
        import pyarrow.parquet

        titles = [f"'{self.names[k]}'" for k in wanted]
        step = max(1, CHUNK_BYTES // (8 * max(1, len(wanted))))
        row = 1
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(step, columns=[self.names[k] for k in wanted]):
                    columns = [batch.column(self.names[k]).to_numpy(zero_copy_only=False) for k in wanted]
                    try:
                        values = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
                    except (TypeError, ValueError) as error:
                        raise DataError(f"rows from {row} on: {str(error)[:100]}; numbers are needed") from None
                    yield checked(values, np.arange(row, row + len(values)), titles, self.row_word)
                    row += len(values)
        except (pyarrow.ArrowException, KeyError) as error:
            raise DataError(f"rows from {row} on cannot be read: {str(error)[:200]}") from None


def open_parquet(path: Path) -> Parquet:
    """A Parquet file with a column a quantity and joint."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing_package("pyarrow", "Parquet") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"it cannot be read as Parquet: {str(error)[:200]}") from None
    if len(set(names)) < len(names):
        raise DataError("two of its columns have the same name; rename one")
    return Parquet(path, names, (), {})
