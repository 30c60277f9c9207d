"""How long a CSV recording takes to load, beside `pandas.read_csv` of the same file.

    python benchmarks/loading.py [ROWS]

The file has 29 columns (time, q, qd, qdd, tau of seven joints) and ROWS rows, 1,000,000 by default (about 560 MB in the
folder for temporary files). Each is the best of three, turn about; what is printed last is the ratio.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import steelyard as sy


def write(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    names = ["time", *(f"{name}{j}" for name in ("q", "qd", "qdd", "tau") for j in range(7))]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for first in range(0, rows, 10_000):
            table = rng.standard_normal((min(10_000, rows - first), 29))
            table[:, 0] = (first + np.arange(len(table))) / 1000
            file.write("".join(",".join(map(repr, row)) + "\n" for row in table.tolist()))


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def streamed(path: Path) -> None:
    for _ in sy.open_recording(path):
        pass


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.csv"
        write(path, rows)
        peers: dict[str, Callable[[], object]] = {
            "pandas.read_csv": lambda: pd.read_csv(path),
            "load_recording": lambda: sy.load_recording(path),
            "open_recording": lambda: streamed(path),
        }
        best = dict.fromkeys(peers, np.inf)
        for _ in range(3):
            for name, run in peers.items():
                best[name] = min(best[name], seconds(run))
        print(f"{rows} rows, {path.stat().st_size / 1e6:.0f} MB")
        for name, taken in best.items():
            print(f"{name:16} {taken:6.2f} s   {taken / best['pandas.read_csv']:.2f} of pandas.read_csv")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
