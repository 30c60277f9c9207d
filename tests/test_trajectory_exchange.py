"""Trajectories on disk: what is written comes back, and a bad file is one sentence."""

import io
import json
import zipfile

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from steelyard.errors import DataError, OptionError, SteelyardError
from steelyard.excitation.chirp import Chirp
from steelyard.excitation.composition import with_leads
from steelyard.excitation.exchange import SUFFIXES, read_trajectory, samples_of, write_trajectory
from steelyard.excitation.splines import PointToPoint, Sampled, Spline
from steelyard.excitation.trajectory import Fourier, rest_basis

NAMES = ["every." + suffix[1:] for suffix in SUFFIXES] + ["bag"]
JOINTS = ("shoulder pan", 'el"bow, left', "手腕")


@pytest.fixture
def trajectory(rng):
    rest = rest_basis(2.0, 4)
    return Fourier.from_coefficients(2.0, rest.coefficients(rng.normal(size=(3, rest.free))), JOINTS)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_brings_back_what_was_written(name, trajectory, tmp_path, rng):
    tau = rng.normal(size=(201, 3)) * 10.0 ** rng.integers(-12, 4, (201, 3))
    path = write_trajectory(tmp_path / name, trajectory, 100.0, tau)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    back = read_trajectory(path)
    assert back.joints == JOINTS
    t = trajectory.grid(100)
    for x, y in zip(back.sample(t), trajectory.sample(t), strict=True):
        assert np.allclose(x, y, rtol=0, atol=1e-12)
    if isinstance(back, Sampled):
        assert (back.t == t).all()
        assert (back.tau == tau).all()


@pytest.mark.parametrize("name", NAMES)
def test_samples_keep_their_own_times_and_torques(name, tmp_path, rng):
    t = np.cumsum(rng.integers(1, 9, 20)) * 1e-3
    q, qd, qdd, tau = rng.normal(size=(4, 20, 2))
    back = read_trajectory(write_trajectory(tmp_path / name, Sampled(t, q, qd, qdd, tau)))
    assert back.joints == ("j1", "j2")
    for x, y in zip((back.t, back.q, back.qd, back.qdd, back.tau), (t - t[0], q, qd, qdd, tau), strict=True):
        assert np.allclose(x, y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_joints_come_in_the_order_of_the_robot(name, trajectory, tmp_path):
    path = write_trajectory(tmp_path / name, trajectory, 50.0, joints=["a", "b", "c"])
    straight, turned = read_trajectory(path), read_trajectory(path, joints=["c", "a", "b"])
    assert turned.joints == ("c", "a", "b")
    assert np.allclose(turned.sample(0.3)[0], straight.sample(0.3)[0][[2, 0, 1]], rtol=0, atol=1e-14)
    with pytest.raises(DataError, match=r"no joint 'd'.*valid: a, b, c"):
        read_trajectory(path, joints=["a", "d"])


def test_an_npz_keeps_every_kind_of_trajectory_itself(tmp_path, rng):
    middle = Fourier(2.0, [0.0], [[1.0, -1.0]], [[2.0, -1.0]], ("a",), periods=2)
    kinds = [
        middle,
        PointToPoint([0.0], [1.0], 0.5),
        Spline([0, 1, 3], [[0.0], [1.0], [0.5]], 3),
        Chirp(2.0, [0.0], [1.0], [0.5], [2.0], "exponential"),
        Sampled([0, 1], [[0.0], [1.0]]),
        with_leads(middle, [0.3], 1.0),
    ]
    for k, one in enumerate(kinds):
        back = read_trajectory(write_trajectory(tmp_path / f"{k}.npz", one))
        assert type(back) is type(one)
        assert back.duration == one.duration
        t = rng.uniform(0, one.duration, 20)
        for x, y in zip(back.sample(t), one.sample(t), strict=True):
            assert (x == y).all()


def test_an_npz_with_a_rate_has_the_samples_beside_the_coefficients(trajectory, tmp_path):
    path = write_trajectory(tmp_path / "t.npz", trajectory, 50.0, np.ones((101, 3)))
    with np.load(path) as arrays:
        assert np.allclose(arrays["q_d"], trajectory.sample(arrays["t"])[0], rtol=0, atol=1e-14)
        assert arrays["tau_ff"].shape == (101, 3)
        assert (arrays["a"] == trajectory.a).all()
        assert all(arrays[name].dtype.kind != "O" for name in arrays)


def test_an_npz_of_bare_coefficients_or_samples_is_understood(trajectory, tmp_path):
    np.savez(tmp_path / "f.npz", period=2.0, offset=trajectory.offset, a=trajectory.a, b=trajectory.b)
    assert (read_trajectory(tmp_path / "f.npz").sample(0.3)[0] == trajectory.sample(0.3)[0]).all()
    np.savez(tmp_path / "s.npz", t=[0, 1, 2], q=[[0.0], [1.0], [4.0]])
    assert read_trajectory(tmp_path / "s.npz").sample(1.5)[1] == pytest.approx([3.0])


def test_matlab_reads_columns_and_a_cell_of_names(trajectory, tmp_path):
    mat = loadmat(write_trajectory(tmp_path / "t.mat", trajectory, 50.0))
    assert mat["t"].shape == (101, 1)
    assert mat["q_d"].shape == mat["qd_d"].shape == mat["qdd_d"].shape == (101, 3)
    assert "tau_ff" not in mat
    assert [cell[0] for cell in mat["joints"].ravel()] == list(JOINTS)


def test_a_mat_with_time_along_the_columns_and_padded_names_is_understood(tmp_path):
    q = np.arange(8.0).reshape(2, 4)
    savemat(tmp_path / "t.mat", {"t": np.arange(4.0), "q": q, "joints": np.array(["elbow", "hip  "])})
    back = read_trajectory(tmp_path / "t.mat")
    assert back.joints == ("elbow", "hip")
    assert (back.q == q.T).all()


@pytest.mark.parametrize(
    ("text", "joints"),
    [
        ("0,1,2\n1,3,4\n", ("a", "b")),
        ("# joints: a, b\n0 1 2\n1 3 4", None),
        ("time,q0,q1\n0,1,2\n1,3,4\n", ("a", "b")),
        ("\ufefft;q_1;q_2\r\n0;1;2\r\n\r\n1;3;4\r\n", ("a", "b")),
        ("# by hand\n# joints: b, a\nq_d1,t,q_d0\n1,0,2\n3,1,4\n", ("a", "b")),
        ("t\tq2\tq1\n0\t2\t1\n1\t4\t3\n", ("a", "b")),
        ('"time","q0","q1"\n0,1,2\n1,3,4\n', ("a", "b")),
    ],
)
def test_a_csv_is_read_with_and_without_header_and_rates(text, joints, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    back = read_trajectory(tmp_path / "t.csv", joints=joints)
    assert back.joints == ("a", "b")
    assert back.q.tolist() == [[1, 2], [3, 4]]
    assert back.qd is None


def test_without_a_header_the_number_of_joints_says_which_rates_there_are(tmp_path):
    (tmp_path / "t.csv").write_text("0,1,2,3,4\n1,5,6,7,8\n")
    assert read_trajectory(tmp_path / "t.csv", joints=["a", "b"]).qd.tolist() == [[3, 4], [7, 8]]
    assert read_trajectory(tmp_path / "t.csv", joints=["a", "b", "c", "d"]).q.shape == (2, 4)
    with pytest.raises(DataError, match="more than one way; add the header"):
        read_trajectory(tmp_path / "t.csv")


def test_the_yaml_is_the_ros_message(trajectory, tmp_path):
    path = write_trajectory(tmp_path / "t.yaml", trajectory, 3.0, np.full((7, 3), 1e-05))
    message = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert list(message) == ["header", "joint_names", "points"]
    assert message["joint_names"] == list(JOINTS)
    point = message["points"][1]
    assert point["time_from_start"] == {"sec": 0, "nanosec": 333333333}
    assert np.allclose(point["positions"], trajectory.sample(1 / 3)[0], rtol=0, atol=1e-15)
    assert point["effort"] == [1e-05] * 3
    assert list(point) == ["positions", "velocities", "accelerations", "effort", "time_from_start"]


def test_a_document_echoed_by_ros_is_read(tmp_path):
    point = {"positions": [1, 2.5], "velocities": [], "time_from_start": {"sec": 0, "nanosec": 0}}
    later = {"positions": [2, 2.5], "velocities": [], "time_from_start": {"sec": 1, "nanosec": 500_000_000}}
    document = {"joint_names": ["a", "b"], "points": [point, later]}
    (tmp_path / "t.yml").write_text(f"{yaml.safe_dump(document)}---\n")
    back = read_trajectory(tmp_path / "t.yml")
    assert back.duration == 1.5
    assert back.q.tolist() == [[1, 2.5], [2, 2.5]]
    (tmp_path / "t.yml").write_text(json.dumps(document))  # JSON is YAML
    assert read_trajectory(tmp_path / "t.yml").duration == 1.5


def test_a_published_bag_is_read(real_data):
    path = real_data / "rosbags" / "ur10_validation_trajectory"
    if not path.is_dir():
        pytest.skip(f"no bag at {path}")
    back = read_trajectory(path)
    assert back.joints[:2] == ("shoulder_pan_joint", "shoulder_lift_joint")
    assert back.q.shape == back.tau.shape == (3441, 6)
    assert back.duration == pytest.approx(27.52)
    assert (read_trajectory(path / "ros2.db3").q == back.q).all()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(trajectory, tmp_path):
    path = write_trajectory(tmp_path / "t.csv", trajectory, 10.0)
    before = path.read_bytes()
    with pytest.raises(OptionError, match=r"tau has shape \(3, 3\), the trajectory's samples have \(41, 3\)"):
        write_trajectory(path, trajectory, 20.0, tau=np.zeros((3, 3)))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_said(trajectory, tmp_path):
    with pytest.raises(OptionError, match=r"no trajectory format '.xls'.*\.csv, \.mat.*rosbag2 folder"):
        write_trajectory(tmp_path / "t.xls", trajectory, 10.0)
    with pytest.raises(OptionError, match="no sampling rate; give rate_hz"):
        write_trajectory(tmp_path / "t.csv", trajectory)
    with pytest.raises(OptionError, match="no folder"):
        write_trajectory(tmp_path / "there" / "t.csv", trajectory, 10.0)
    folder = tmp_path / "bag"
    folder.mkdir()
    with pytest.raises(OptionError, match="is there already"):
        write_trajectory(folder, trajectory, 10.0)
    with pytest.raises(OptionError, match="2 joint names for 3 joints"):
        write_trajectory(tmp_path / "t.csv", trajectory, 10.0, joints=["a", "b"])
    with pytest.raises(DataError, match="within a nanosecond"):
        write_trajectory(tmp_path / "t.yaml", Sampled([0, 1e-12], [[0], [1]]))


BAD_CSV = {
    "no rows": "",
    "a header and no rows": "time,q0\n",
    "1 entry": "time,q0\n0,1\n",
    "line 3 has 1 entries, 2 are needed": "time,q0\n0,1\n1\n",
    "line 4: 'x' is not a number": "time,q0\n0,1\n# note\n1,x\n",
    r"q\[1, 0\] is nan": "time,q0\n0,1\n1,nan\n",
    "time does not advance at sample 2: 1 -> 0.5 s": "time,q0\n0,1\n1,1\n0.5,1\n",
    "no column 'time'": "q0,q1\n0,1\n1,1\n",
    "no column 'q0'": "time,qd0\n0,1\n1,1\n",
    "column 2 is 'speed'": "time,speed\n0,1\n1,1\n",
    "column 'q0' stands twice": "time,q0,q0\n0,1,1\n1,1,1\n",
    "columns qd1 do not number the 1 joints": "time,q0,qd1\n0,1,1\n1,1,1\n",
    "1 joint names for 2 joints": "# joints: a\ntime,q0,q1\n0,1,1\n1,1,1\n",
    "cannot be read as time": "0\n1\n",
}


@pytest.mark.parametrize("sentence", BAD_CSV)
def test_a_bad_csv_is_said_in_one_sentence(sentence, tmp_path):
    (tmp_path / "t.csv").write_text(BAD_CSV[sentence])
    with pytest.raises(DataError, match=sentence) as caught:
        read_trajectory(tmp_path / "t.csv")
    assert "\n" not in str(caught.value)


BAD_YAML = {
    "not YAML": "points: [",
    "nested too deeply": "[" * 100_000,
    "an alias": "points: &a []\njoint_names: *a",
    "the file is not a mapping": "- 1",
    "no points": "joint_names: [a]",
    "point 2 has 1 positions for 2 joints": "joint_names: [a, b]\npoints:\n"
    "- {positions: [1, 2], time_from_start: {sec: 0}}\n- {positions: [1], time_from_start: {sec: 1}}",
    "time_from_start of point 1 is not a mapping": "points: [{positions: [1]}]",
    "positions: could not convert": "points: [{positions: [x], time_from_start: {sec: 0}}]",
    "joint_names is not a list of names": "joint_names: [[]]\npoints: []",
}


@pytest.mark.parametrize("sentence", BAD_YAML)
def test_a_bad_yaml_is_said_in_one_sentence(sentence, tmp_path):
    (tmp_path / "t.yaml").write_text(BAD_YAML[sentence])
    with pytest.raises(DataError, match=sentence):
        read_trajectory(tmp_path / "t.yaml")


def _npz(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def _npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), **options)
    return file.getvalue()


def test_a_hostile_npz_is_data_and_never_runs(tmp_path):
    path = tmp_path / "t.npz"
    huge = _npy([0.0, 1.0]).replace(b"(2,), }" + b" " * 12, b"(9999999999999,), }")
    for members, sentence in (
        ({"t": _npy([0, 1]), "q": _npy(np.array([[0], [1]], dtype=object), allow_pickle=True)}, "q.npy holds object"),
        ({"t": huge}, "t.npy is not whole"),
        ({"t": _npy([0.0, 1.0])[:-4]}, "t.npy is not whole"),
        ({"t": b"nothing"}, "not a whole NPZ"),
        ({"t": _npy([0.0, 1.0])}, "no array 'q_d'"),
        ({"kind": _npy("os.system")}, "no kind of trajectory 'os.system'"),
        ({"kind": _npy("spline"), "times": _npy([0, 1])}, "no array 'points', which a spline"),
        ({"kind": _npy("sequence"), "parts": _npy(3)}, "0 parts are there, 3 are announced"),
        (
            {"kind": _npy("fourier"), "period": _npy("x"), "offset": _npy([0.0]), "a": _npy([[1]]), "b": _npy([[1]])},
            "pe",
        ),
    ):
        path.write_bytes(_npz(**members))
        with pytest.raises(DataError, match=sentence):
            read_trajectory(path)


def test_a_missing_or_unknown_file_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_trajectory(tmp_path / "t.csv")
    (tmp_path / "t.xyz").write_text("")
    with pytest.raises(OptionError, match=r"no trajectory format '\.xyz'"):
        read_trajectory(tmp_path / "t.xyz")
    with pytest.raises(DataError, match="not a whole rosbag2"):
        read_trajectory(tmp_path)
    (tmp_path / "t.mat").write_bytes(b"MATLAB 7.3".ljust(124) + b"\x00\x02IM" + bytes(500))
    with pytest.raises(DataError, match=r"it is version 7\.3"):
        read_trajectory(tmp_path / "t.mat")


def _only_our_errors(path):
    """Read and use whatever the file holds."""
    try:
        trajectory = read_trajectory(path)
        trajectory.sample([0.0, trajectory.duration / 3])
        samples_of(trajectory, 3 / trajectory.duration)
    except SteelyardError as error:
        assert len(str(error)) < 2000  # noqa: PT017 - whether it is raised is what varies


FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("suffix", SUFFIXES)
@FUZZ
@given(data=st.data())
def test_random_and_damaged_files_raise_only_our_errors(suffix, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    whole, path = folder / f"whole{suffix}", folder / f"fuzz{suffix}"
    if not whole.exists():
        write_trajectory(whole, Fourier(1.0, [0.0], [[1.0, 2.0]], [[0.5, 0.1]], ("a",)), 10.0)
    content = bytearray(whole.read_bytes())
    how = data.draw(st.sampled_from(["random", "cut", "changed"]))
    if how == "random":
        content = bytearray(data.draw(st.binary(max_size=400)))
    elif how == "cut":
        content = content[: data.draw(st.integers(0, len(content)))]
    else:
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    _only_our_errors(path)


CELL = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.sampled_from(
        ["0", "1", "2", "", "time", "t", "q0", "q1", "qd0", "tau0", "# joints: a", "nan", "1e999", "'", '"']
    ),
    st.text(max_size=4),
)


@FUZZ
@given(rows=st.lists(st.lists(CELL, max_size=5), max_size=6), mark=st.sampled_from([",", ";", "\t", " "]))
def test_odd_tables_raise_only_our_errors(rows, mark, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "table.csv"
    path.write_text("\n".join(mark.join(row) for row in rows), encoding="utf-8", errors="replace")
    _only_our_errors(path)


YAML_VALUE = st.recursive(
    st.one_of(st.none(), st.floats(), st.integers(-(2**70), 2**70), st.text(max_size=4)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["joint_names", "points", "positions", "velocities", "time_from_start", "sec", "nanosec"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@FUZZ
@given(points=YAML_VALUE, names=YAML_VALUE)
def test_odd_messages_raise_only_our_errors(points, names, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "message.yaml"
    path.write_text(yaml.safe_dump({"points": points, "joint_names": names}), encoding="utf-8", errors="replace")
    _only_our_errors(path)


ARRAY = st.one_of(
    st.floats(width=64).map(np.array),
    st.text(max_size=5).map(np.array),
    st.sampled_from(["spline", "chirp", "sampled", "sequence", "point_to_point", "fourier"]).map(np.array),
    st.lists(st.floats(-3, 3), min_size=0, max_size=4).map(np.array),
    st.lists(st.lists(st.floats(), min_size=2, max_size=2), max_size=4).map(np.array),
    st.just(np.array([0.0, 1.0])),
    st.just(np.array([[0.0], [1e300]])),
    st.just(np.array(["a"])),
)
FIELDS = ["kind", "t", "q", "q_d", "qd_d", "tau_ff", "joints", "period", "periods", "offset", "a", "b", "start", "goal"]
FIELDS += ["seconds", "times", "points", "degree", "part0.kind", "part0.start", "parts"]


@FUZZ
@given(arrays=st.dictionaries(st.sampled_from(FIELDS), ARRAY, max_size=9))
def test_odd_arrays_raise_only_our_errors(arrays, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    np.savez(folder / "arrays.npz", **arrays)
    _only_our_errors(folder / "arrays.npz")
    with (folder / "arrays.mat").open("wb") as file:
        savemat(file, {name: value for name, value in arrays.items() if "." not in name})
    _only_our_errors(folder / "arrays.mat")
