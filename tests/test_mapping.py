"""A mapping turns foreign tables into recordings in SI on the joints' side; its faults are told with their line."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter, filtfilt

import steelyard as sy
from steelyard.data.mapping import Mapping, Signal, Table, Time, parse_mapping
from steelyard.errors import DataError

EXAMPLES = Path(__file__).parents[1] / "examples"
REAL = {
    "tx40": ("tx40", "tx40.yaml"),
    "panda": ("panda-gaz2019", "panda_gaz2019.yaml"),
    "ur10": ("rosbags/ur10_exciting_trajectory/ur10_exciting_trajectory.db3", "ur10_bag.yaml"),
}


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def mapped(folder, mapping, path="", robot=None, **options):
    (folder / "map.yaml").write_text(mapping)
    return sy.load_recording(folder / path if path else folder, robot, folder / "map.yaml", **options)


def refusal(text):
    with pytest.raises(DataError) as caught:
        parse_mapping(text, "map.yaml")
    assert str(caught.value).startswith("map.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_columns_units_signs_and_offsets_are_applied(tmp_path):
    write(tmp_path, a__csv="stamp;A1;A2;V1;V2;I1;I2;T\n0;90;45;60;30;2000;1000;20\n5;180;90;60;30;1000;500;21\n")
    run = mapped(
        tmp_path,
        """
joints: [joint2, joint1]
time: {column: stamp, unit: ms}
q: {columns: [A1, A2], unit: deg, sign: [1, -1], offset: [0, 1.0]}
qd: {columns: [4, 5], unit: rpm, sign: [1, -1]}
tau: {columns: [I1, I2], unit: mA, gain: [0.5, 2], sign: [1, -1]}
more: {temperature: {columns: T}}
""",
        "a.csv",
        sy.load_robot("two_link"),
    )
    assert run.joints == ("joint1", "joint2")
    assert np.allclose(run.t, [0, 0.005])
    assert np.allclose(run.q, [[1 - np.pi / 4, np.pi / 2], [1 - np.pi / 2, np.pi]])
    assert np.allclose(run.qd, [[-np.pi, 2 * np.pi]] * 2)  # 30 and 60 turns a minute
    assert np.allclose(run.tau, [[-2, 1], [-1, 0.5]])
    assert run.more["temperature"].ravel().tolist() == [20, 21]
    assert run.about["mapping"]["file"] == "map.yaml"


def test_files_of_one_recording_lie_side_by_side_and_gears_lose_no_power(tmp_path, rng):
    ratio = np.array([[50.0, 0.0], [20.0, -30.0]])
    q, qd, tau = rng.standard_normal((3, 40, 2))
    motor_tau = np.linalg.solve(ratio.T, tau.T).T
    zero = np.array([0.1, -0.2])
    rows = {"q": (q - zero) @ ratio.T, "qd": qd @ ratio.T, "tau": motor_tau}
    for name, x in rows.items():
        np.savetxt(tmp_path / f"{name}.txt", x.reshape(-1) if name == "tau" else x, fmt="%.17g")
    run = mapped(
        tmp_path,
        """
rate_hz: 100
joints: [a, b]
q: {file: q.txt, side: motor}
qd: {file: qd.txt, side: motor}
tau: {file: tau.txt, side: motor, row_major: 2}
gear: {joints: [a, b], ratio: [50, -30], coupling: [{motor_of: b, joint: a, ratio: 20}], at_motor_zero: [0.1, -0.2]}
""",
    )
    assert np.allclose(run.t, np.arange(40) / 100)
    for name, x in (("q", q), ("qd", qd), ("tau", tau)):
        assert np.allclose(getattr(run, name), x, atol=1e-12), name
    motor_power = np.sum(rows["tau"] * rows["qd"], axis=1)
    assert np.allclose(np.sum(run.tau * run.qd, axis=1), motor_power)
    assert set(run.about["sha256"]) == {"q.txt", "qd.txt", "tau.txt"}


def test_the_robots_own_gear_serves_where_the_mapping_has_none(tmp_path, rng):
    for name in ("q", "tau"):
        np.savetxt(tmp_path / f"{name}.csv", rng.standard_normal((5, 6)), delimiter=",")
    text = "rate_hz: 100\nq: {file: q.csv, side: motor}\ntau: {file: tau.csv, side: motor}\n"
    run = mapped(tmp_path, text, robot=sy.load_robot("tx40"))
    assert run.about["gear"] == "the robot's sidecar"
    raw = np.loadtxt(tmp_path / "q.csv", delimiter=",")
    assert np.allclose(run.q[:, 1], raw[:, 1] / 32 - np.pi / 2)
    with pytest.raises(DataError, match="neither the mapping nor the robot's sidecar has a gear"):
        mapped(tmp_path, text)


@pytest.mark.parametrize(
    ("files", "mapping", "fault"),
    [
        ({"a__csv": "1,2\n3,4\n"}, "rate_hz: 1\nq: {file: a.csv}\ntau: {file: b.csv}", "b.csv: no such file"),
        ({"a__csv": "1\n3\n", "b__csv": "1\n"}, "rate_hz: 1\nq: {file: a.csv}\ntau: {file: b.csv}", "fewer rows"),
        ({"a__csv": "1\n3\n", "b__csv": "1,2\n3,4\n"}, "rate_hz: 1\nq: {file: a.csv}\ntau: {file: b.csv}",
         "2 columns"),
        ({"a__csv": "1\n3\n", "b__csv": "1\n2\n"}, "q: {file: a.csv}\ntau: {file: b.csv}", "no time"),
        ({"a__csv": "1\n3\n"}, "rate_hz: 1\njoints: [x, y]\nq: {file: a.csv}\ntau: {file: a.csv}", "names 2"),
        ({"a__csv": "1\n3\n"}, "rate_hz: 1\nq: {file: a.csv, columns: [2]}\ntau: {file: a.csv}", "takes column 2"),
        ({"a__csv": "1\n3\n"}, "rate_hz: 1\nq: {file: a.csv, columns: [x]}\ntau: {file: a.csv}", "without a header"),
        ({"a__csv": "x\n1\n3\n"}, "rate_hz: 1\nq: {file: a.csv, columns: [y]}\ntau: {file: a.csv}", "no column 'y'"),
        ({"a__csv": "1\nx\n4\n"}, "rate_hz: 1\nq: {file: a.csv}\ntau: {file: a.csv}", "line 2, column 1: 'x'"),
        ({"a__csv": "1\n2\n"}, "rate_hz: 1\nq: {file: a.csv, sign: [1, 1]}\ntau: {file: a.csv}", "q.sign has 2 values"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(tmp_path, files, mapping, fault):
    write(tmp_path, **files)
    with pytest.raises(DataError) as caught:
        mapped(tmp_path, mapping)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("\nq: {colums: [a]}", 2, "no field 'colums'; did you mean 'columns'?"),
        ("q: {unit: furlong}", None, "no unit 'furlong' of q"),
        ("tau: {unit: A}", None, "a current without a gain"),
        ("tau: {gain: 3}", None, "has a gain but is no current"),
        ("q: {side: left}", 1, "q.side is 'left'; valid: 'joint' or 'motor'"),
        ("joints: [a]\nq:\n  sign: 2", 3, "a sign is not 1 or -1"),
        ("rate_hz: -1", 1, "not above zero"),
        ("rate_hz: 1\ntime: {column: t}", None, "both given"),
        ("time: {unit: h}", 1, "no unit 'h' of time"),
        ("q: {columns: [0]}", 1, "columns count from 1"),
        ("q: {columns: []}", 1, "no column is named"),
        ("more: {x: {unit: deg}}", None, "names no columns"),
        ("table: {skip_rows: -1}", 1, "below zero"),
        ("gear: {joints: [a], ratio: [0]}", 1, "0 is not a gear ratio"),
        ("joints: [b]\ngear: {joints: [a], ratio: [2]}", None, "not among joints"),
        ("a: !!python/object/apply:os.getcwd []", 1, "not YAML"),
        ("q: &x {side: joint}\ntau: *x", 1, "an alias"),
        ("[1]", None, "holds a list, not fields"),
    ],
)
def test_fault_of_a_mapping_is_told_with_its_line(text, line, fault):
    message = refusal(text)
    assert fault in message
    assert line is None or message.startswith(f"map.yaml, line {line}:")


words = st.sampled_from(
    [*Mapping.model_fields, *Signal.model_fields, *Table.model_fields, *Time.model_fields, "a", "deg"]
)
scalars = words | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.dates()
values = st.recursive(
    scalars, lambda x: st.lists(x, max_size=3) | st.dictionaries(words | st.integers(), x, max_size=4), max_leaves=10
)
fields = st.dictionaries(st.sampled_from(list(Mapping.model_fields)), values, max_size=4)


@settings(max_examples=150, deadline=None)
@given(fields.map(yaml.safe_dump) | st.text(max_size=40))
def test_any_mapping_is_read_or_refused(text):
    with suppress(DataError):
        assert isinstance(parse_mapping(text, "here"), Mapping)


@pytest.mark.parametrize(
    ("name", "samples", "seconds"), [("tx40", 45_000, 9.0), ("panda", 20_544, 21.0), ("ur10", 3441, 27.52)]
)
def test_real_recordings_fit_their_robots_in_sign_zero_and_order(real_data, name, samples, seconds):
    """τ = a·nominal + b·sgn(q̇) + c·q̇ + d·q̈ + e, joint by joint, on data below 5 Hz: friction must brake, and the
    nominal torque must count with about its own size where it carries weight (its share of the torque is over a fifth).
    """
    path, mapping = REAL[name]
    robot = sy.load_robot(name)
    run = sy.load_recording(real_data / path, robot, EXAMPLES / mapping)
    assert len(run) == samples
    assert run.duration == pytest.approx(seconds, abs=0.01)
    assert run.joints == robot.dof_names
    assert ((run.q >= robot.limits.lower) & (run.q <= robot.limits.upper)).all()
    rate = round(run.rate_hz)
    t = np.arange(run.t[0], run.t[-1], 1 / rate)
    low = butter(2, 5 / (rate / 2))
    q, tau = (filtfilt(*low, np.column_stack([np.interp(t, run.t, c) for c in x.T]), axis=0) for x in (run.q, run.tau))
    qd = np.gradient(q, t, axis=0)
    qdd = np.gradient(qd, t, axis=0)
    nominal = sy.inverse_dynamics(robot, q, qd, qdd)
    loaded = 0
    for j in range(robot.n):
        A = np.column_stack([nominal[:, j], np.tanh(qd[:, j] / 0.02), qd[:, j], qdd[:, j], np.ones(len(t))])
        x = np.linalg.lstsq(A, tau[:, j], rcond=None)[0]
        assert x[1] > 0, f"joint {j + 1}: friction drives"
        if nominal[:, j].std() > 0.2 * tau[:, j].std():
            loaded += 1
            # A hand that was off and rotors that the model lacks are in the spread.
            assert 0.5 < x[0] < 1.3, f"joint {j + 1}: nominal torque counts {x[0]:.2f} times"
            assert (tau[:, j] - A @ x).var() < 0.08 * tau[:, j].var()
    assert loaded >= 2
