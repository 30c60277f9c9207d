"""The table of a campaign: a row a run, in Parquet where pyarrow is there, else in NPZ; parts of it on the way.

Base parameters and their deviations are vectors, of which each robot has its own length.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...files import whole_or_not

VECTORS = ("beta", "deviation")
# What the clock says: the only columns in which two runs of one study differ.
CLOCKS = ("seconds", "statistics_seconds")
Row = dict[str, Any]
Table = dict[str, NDArray[Any]]  # columns; vectors as arrays of objects, an array a row


def table_of(rows: Sequence[Row]) -> Table:
    """Columns of rows that all have the same fields."""
    made: Table = {}
    for name in rows[0]:
        if name in VECTORS:
            column = np.empty(len(rows), dtype=object)
            for k, row in enumerate(rows):
                column[k] = np.asarray(row[name], dtype=np.float64)
            made[name] = column
        else:
            made[name] = np.array([row[name] for row in rows])
    return made


def joined(tables: Sequence[Table]) -> Table:
    """Tables below each other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _write_npz(table: Table, path: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    for name, column in table.items():
        if name in VECTORS:
            arrays[name] = np.concatenate([np.zeros(0), *column])
            arrays[f"{name}_length"] = np.array([len(vector) for vector in column], dtype=np.int64)
        else:
            arrays[name] = column
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _read_npz(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    made: Table = {}
    for name, column in arrays.items():
        if name.endswith("_length"):
            continue
        if name in VECTORS:
            ends = np.cumsum(arrays[f"{name}_length"])
            split = np.empty(len(ends), dtype=object)
            for k, (end, length) in enumerate(zip(ends, arrays[f"{name}_length"], strict=True)):
                split[k] = column[end - length : end]
            made[name] = split
        else:
            made[name] = column
    return made


def _write_parquet(table: Table, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {name: list(column) if name in VECTORS else column for name, column in table.items()}
    parquet.write_table(pyarrow.table(columns), path)


def _read_parquet(path: Path) -> Table:
    from pyarrow import parquet

    found = parquet.read_table(path).to_pydict()
    return table_of([dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)])


def table_name() -> str:
    """The name of a whole table in a campaign's folder."""
    return "table.parquet" if find_spec("pyarrow") else "table.npz"


def write_table(table: Table, path: Path) -> None:
    """Write a table, whole or not at all."""
    with whole_or_not(path) as temporary:
        (_write_parquet if path.suffix == ".parquet" else _write_npz)(table, temporary)


def read_table(path: Path) -> Table:
    """Read what `write_table` wrote."""
    try:
        return _read_parquet(path) if path.suffix == ".parquet" else _read_npz(path)
    except Exception as error:  # damaged archives fail in many ways
        raise DataError(
            f"{path} cannot be read as a table of runs ({type(error).__name__}: {error}); delete it and run again"
        ) from None
