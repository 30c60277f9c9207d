"""Whatever a file holds, it is read, repaired with a word, or refused in one sentence; and its size costs no memory."""

import subprocess
import sys
from contextlib import suppress

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

import steelyard as sy
from steelyard.errors import DataError, SteelyardError

STREAM = """
import resource, sys
import steelyard as sy
from pathlib import Path
path, mapping, small = sys.argv[1:]
for _ in sy.open_recording(small, mapping=mapping):  # what is imported on the way
    pass
sy.load_recording(small, mapping=mapping)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = 80 * 2**20
assert Path(path).stat().st_size > limit
resource.setrlimit(resource.RLIMIT_AS, (used + limit, resource.RLIM_INFINITY))
rows = sum(len(block) for block in sy.open_recording(path, mapping=mapping))
try:
    sy.load_recording(path, mapping=mapping)
except sy.DataError as error:
    print(rows, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_a_file_larger_than_the_memory_streams(tmp_path):
    line = ",".join(["1.5"] * 29) + "\n"
    rows = 84 * 2**20 // len(line)
    (tmp_path / "run.csv").write_text(line * rows)
    (tmp_path / "small.csv").write_text(line * 10)
    columns = {name: [1 + 7 * k + j for j in range(7)] for k, name in enumerate(("q", "qd", "qdd", "tau"))}
    text = "".join(f"{name}: {{columns: {places}}}\n" for name, places in columns.items())
    (tmp_path / "map.yaml").write_text("rate_hz: 1000\n" + text)
    arguments = [str(tmp_path / name) for name in ("run.csv", "map.yaml", "small.csv")]
    done = subprocess.run([sys.executable, "-c", STREAM, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{rows} {tmp_path}/run.csv: too large for this machine's memory\n"


def arrays_of(rng, n=3, rows=200):
    q, qd, tau = rng.standard_normal((3, rows, n))
    return {"t": np.arange(rows) * 0.01, "q": q, "qd": qd, "tau": tau}


def check(run, arrays):
    for name, value in arrays.items():
        assert np.array_equal(getattr(run, name), value), name


def test_foreign_npz_is_read_by_its_names_or_by_a_mapping(tmp_path, rng):
    arrays = arrays_of(rng)
    np.savez(tmp_path / "named.npz", time=arrays["t"], positions=arrays["q"], dq=arrays["qd"], torque=arrays["tau"])
    check(sy.load_recording(tmp_path / "named.npz"), arrays)
    odd = {"clock": arrays["t"] * 1e3, "A": np.degrees(arrays["q"]), "B": arrays["tau"]}
    np.savez(tmp_path / "odd.npz", **odd)
    (tmp_path / "map.yaml").write_text(
        "time: {column: clock, unit: ms}\nq: {columns: A, unit: deg}\ntau: {columns: ['B[0]', 'B[1]', 'B[2]']}\n"
    )
    run = sy.load_recording(tmp_path / "odd.npz", mapping=tmp_path / "map.yaml")
    assert np.allclose(run.q, arrays["q"])
    assert np.array_equal(run.tau, arrays["tau"])
    with pytest.raises(DataError, match="no positions"):
        sy.load_recording(tmp_path / "odd.npz")


@pytest.mark.parametrize("nested", [False, True])
def test_mat_5_is_read_with_its_structures(tmp_path, rng, nested):
    arrays = arrays_of(rng)
    savemat(tmp_path / "run.mat", {"data": arrays} if nested else arrays, oned_as="row")
    check(sy.load_recording(tmp_path / "run.mat"), arrays)


@pytest.mark.parametrize("nested", [False, True])
def test_mat_7_3_is_read_with_its_matrices_turned(tmp_path, rng, nested):
    arrays = arrays_of(rng)
    with h5py.File(tmp_path / "run.mat", "w", userblock_size=512) as file:
        for name, value in arrays.items():
            x = np.atleast_2d(value) if value.ndim == 1 else value.T
            file[f"data/{name}" if nested else name] = x
            file[f"data/{name}" if nested else name].attrs["MATLAB_class"] = np.bytes_("double")
    with (tmp_path / "run.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    check(sy.load_recording(tmp_path / "run.mat"), arrays)


def test_parquet_is_read_batch_by_batch(tmp_path, rng):
    arrays = arrays_of(rng, n=7, rows=100_000)
    columns = {f"{name}{j}": arrays[name][:, j] for name in ("q", "qd", "tau") for j in range(7)}
    pd.DataFrame({"time": arrays["t"], **columns}).to_parquet(tmp_path / "run.parquet")
    check(sy.load_recording(tmp_path / "run.parquet"), arrays)
    assert len(list(sy.open_recording(tmp_path / "run.parquet"))) > 3


def test_a_missing_package_is_told_with_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "run.parquet").write_bytes(b"PAR1" * 10)
    with pytest.raises(DataError, match=r"needs the package pyarrow: pip install 'steelyard\[formats\]'"):
        sy.load_recording(tmp_path / "run.parquet")


@pytest.mark.parametrize("suffix", ["csv", "npz", "mat", "parquet", "h5", "db3", "mcap", "bag", "xyz"])
@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=300), st.booleans())
@example(b"PK\x03\x04", False)
@example(b"PAR1", True)
@example(b"\x89HDF\r\n\x1a\n", False)
@example(b"MATLAB 5.0 MAT-file" + b" " * 105 + b"\x00\x01IM" + b"\x0e\x00\x00\x00\x01\x00\x00\x00", False)
@example(b"SQLite format 3\x00", True)
@example(b"\x89MCAP0\r\n", True)
@example(b"#ROSBAG V2.0\n", True)
@example(b"\x1f\x8b\x08\x00", True)
@example(b"\xff\xfe\x00", True)
@example(b"", True)
def test_noise_is_refused_in_a_sentence(tmp_path_factory, suffix, noise, repair):
    path = tmp_path_factory.getbasetemp() / f"noise.{suffix}"
    path.write_bytes(noise)
    with suppress(SteelyardError):
        sy.load_recording(path, repair=repair)


odd_cells = st.sampled_from(
    ["", "nan", "inf", "x", "1e999", "-", "1,5", "True", "0x10", "1_0", "\0", '"', "'", " ", "é", "1 2"]
)
cells = st.floats(-1e3, 1e3).map(repr) | st.sampled_from(["0", "1", "-2.5", "3e2", "1e300"])


@st.composite
def tables(draw):
    """A CSV of two joints with some faults, and the rows that are whole in it."""
    mark = draw(st.sampled_from([",", ";", "\t"]))
    rows = [[repr(0.1 * k), *(draw(cells) for _ in range(4))] for k in range(draw(st.integers(2, 8)))]
    good = [True] * len(rows)
    for _ in range(draw(st.integers(0, 3))):
        k = draw(st.integers(0, len(rows) - 1))
        kind = draw(st.sampled_from(["cell", "short", "long", "repeat", "back"]))
        if not good[k]:
            continue
        good[k] = kind == "repeat"
        if kind == "cell":
            rows[k][draw(st.integers(0, 4))] = draw(odd_cells)
        elif kind == "short":
            rows[k].pop()
        elif kind == "long":
            rows[k].append("1.0")
        elif kind == "back":
            rows[k][0] = "-1.0"
        else:
            rows.insert(k, list(rows[k]))
            good.insert(k, True)
    text = mark.join(["time", "q0", "q1", "tau0", "tau1"]) + "\n" + "".join(mark.join(row) + "\n" for row in rows)
    text = text[: len(text) - draw(st.integers(0, 12))]
    whole = {tuple(map(float, row)) for row, fine in zip(rows, good, strict=True) if fine}
    return text, whole


@settings(max_examples=150, deadline=None)
@given(tables(), st.booleans(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_a_damaged_table_is_never_silently_another_recording(tmp_path_factory, table, repair, encoding):
    text, whole = table
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_bytes(text.encode(encoding))
    run = None
    with suppress(SteelyardError):
        run = sy.load_recording(path, repair=repair)
    if run is None:
        return
    read = [tuple(row) for row in np.column_stack([run.t, run.q, run.tau]).tolist()]
    strangers = [k for k, row in enumerate(read) if row not in whole]
    # A time of -1 is no fault in the first row. The last number of a file that was cut off cannot be told from a
    # shorter one: the notes say so.
    assert all((k == 0 and read[k][0] == -1) or (k == len(read) - 1 and run.about["notes"]) for k in strangers)
    if len(read) < text.count("\n") - 1:
        assert run.about["repairs"]


def test_a_mat_file_that_would_crash_its_reader_is_refused(tmp_path, rng):
    savemat(tmp_path / "run.mat", {"data": arrays_of(rng)})
    raw = (tmp_path / "run.mat").read_bytes()
    for place in range(128, 400, 90):
        (tmp_path / "run.mat").write_bytes(raw[:place] + bytes(rng.integers(0, 256, 4, np.uint8)) + raw[place + 4 :])
        with suppress(SteelyardError):
            sy.load_recording(tmp_path / "run.mat")
