"""ROS bags of any kind give the joint states that were written into them, and damaged ones a sentence."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

import steelyard as sy
from steelyard.errors import DataError, SteelyardError

STATE = "sensor_msgs/msg/JointState"
JOINTS = ("joint1", "joint2")
START = 1_700_000_000_000_000_000  # ns


def states(rng, rows=300, joints=JOINTS, step=2_000_000):
    """Messages as (received, stamp, names, position, velocity, effort)."""
    q, qd, tau = rng.standard_normal((3, rows, len(joints)))
    stamps = START + step * np.arange(rows)
    return [(int(s) + 700_000, int(s), joints, q[k], qd[k], tau[k]) for k, s in enumerate(stamps)]


def write(path, messages, topics=("/joint_states",), kind="sqlite3"):
    """A bag with the messages on each of the topics."""
    one = kind == "ros1"
    store = get_typestore(Stores.ROS1_NOETIC if one else Stores.ROS2_HUMBLE)
    types = store.types
    plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
    with Writer1(path) if one else Writer2(path, version=9, storage_plugin=plugin) as writer:
        connections = [writer.add_connection(topic, STATE, typestore=store) for topic in topics]
        for k, (received, stamp, names, q, qd, tau) in enumerate(messages):
            time = types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
            seq = {"seq": k} if one else {}
            header = types["std_msgs/msg/Header"](**seq, stamp=time, frame_id="")
            arrays = [np.asarray(x, dtype=np.float64) for x in (q, qd, tau)]
            message = types[STATE](header, list(names), *arrays)
            raw = store.serialize_ros1(message, STATE) if one else store.serialize_cdr(message, STATE)
            for connection in connections:
                writer.write(connection, received, raw)
    return path


def bare(folder):
    return next(path for path in Path(folder).iterdir() if path.suffix in (".db3", ".mcap"))


@pytest.mark.parametrize("kind", ["sqlite3", "mcap", "ros1"])
def test_joint_states_come_back_from_every_kind_of_bag(tmp_path, rng, kind):
    messages = states(rng)
    path = write(tmp_path / ("run.bag" if kind == "ros1" else "run"), messages, kind=kind)
    inputs = [path]
    if kind != "ros1":
        alone = tmp_path / f"alone{bare(path).suffix}"
        alone.write_bytes(bare(path).read_bytes())
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / alone.name).write_bytes(alone.read_bytes())
        inputs += [alone, tmp_path / "folder"]
    for given_path in inputs:
        run = sy.load_recording(given_path)
        assert np.allclose(run.t, 0.002 * np.arange(300), atol=1e-12)
        for name, place in (("q", 3), ("qd", 4), ("tau", 5)):
            assert np.array_equal(getattr(run, name), np.array([m[place] for m in messages]))
        assert run.joints == JOINTS
        assert (run.about["topic"], run.about["stamp"], run.about["start_ns"]) == ("/joint_states", "header", START)


def test_joints_go_by_name_into_the_robots_order(tmp_path, rng):
    messages = states(rng, joints=("finger", "joint2", "joint1"))
    run = sy.load_recording(write(tmp_path / "run", messages), sy.load_robot("two_link"))
    assert run.joints == JOINTS
    assert np.array_equal(run.q, np.array([m[3][[2, 1]] for m in messages]))


def test_a_prefix_of_all_joints_does_not_hide_them(tmp_path, rng):
    names = ("panda_finger_joint1", "panda_finger_joint2", *(f"panda_joint{k}" for k in range(7, 0, -1)))
    messages = states(rng, joints=names)
    path = write(tmp_path / "run", messages)
    run = sy.load_recording(path, sy.load_robot("panda"))
    assert np.array_equal(run.q, np.array([m[3][:1:-1] for m in messages]))
    assert run.joints == tuple(f"joint{k}" for k in range(1, 8))
    two = [
        (*m[:2], ("left_joint1", "left_joint2", "right_joint1", "right_joint2"), *(x[:4] for x in m[3:]))
        for m in messages
    ]
    with pytest.raises(DataError, match="or they have several"):
        sy.load_recording(write(tmp_path / "two", two), sy.load_robot("two_link"))


def test_partial_messages_make_whole_rows_and_the_gap_is_said(tmp_path, rng):
    whole = states(rng, 100)
    parts = []
    for received, stamp, names, q, qd, tau in whole:
        parts.append((received, stamp, names[:1], q[:1], qd[:1], tau[:1]))
        parts.append((received, stamp + 500_000, names[1:], q[1:], qd[1:], tau[1:]))
        parts.append((received, stamp, ("gripper",), [0.0], [0.0], [0.0]))
    path = write(tmp_path / "run", parts)
    run = sy.load_recording(path, sy.load_robot("two_link"))
    assert np.array_equal(run.q, np.array([m[3] for m in whole]))
    assert any("100 messages name none of the joints" in note for note in run.about["notes"])
    assert any("up to 0.5 ms apart" in note for note in run.about["notes"])
    with pytest.raises(DataError, match="name different joints"):
        sy.load_recording(path)


def test_the_bags_clock_serves_where_messages_have_no_stamp(tmp_path, rng):
    messages = [(received, 0, *rest) for received, _, *rest in states(rng, 50)]
    run = sy.load_recording(write(tmp_path / "run", messages))
    assert np.allclose(np.diff(run.t), 0.002)
    assert run.about["stamp"] == "received"
    assert any("the time is the bag's own" in note for note in run.about["notes"])


def test_several_topics_have_to_be_chosen_from(tmp_path, rng):
    path = write(tmp_path / "run", states(rng, 20), topics=("/a/joint_states", "/b/joint_states"))
    with pytest.raises(DataError, match=r"2 topics have JointState: /a/joint_states \(20 messages\)"):
        sy.load_recording(path)
    assert sy.load_recording(path, topic="b/joint_states").about["topic"] == "/b/joint_states"
    with pytest.raises(DataError, match="no topic of joint states '/c'"):
        sy.load_recording(path, topic="/c")


def test_a_trajectory_in_a_bag_is_a_recording_where_it_has_efforts(tmp_path, rng):
    from steelyard.excitation.exchange import write_trajectory
    from steelyard.excitation.splines import Sampled

    q, qd, qdd, tau = rng.standard_normal((4, 30, 2))
    samples = Sampled(0.01 * np.arange(30), q, qd, qdd, tau, JOINTS)
    run = sy.load_recording(write_trajectory(tmp_path / "bag", samples))
    for name in ("q", "qd", "qdd", "tau"):
        assert np.array_equal(getattr(run, name), getattr(samples, name))
    bare_of_efforts = write_trajectory(tmp_path / "plain", Sampled(0.01 * np.arange(30), q, joints=JOINTS))
    with pytest.raises(DataError, match="no torques"):
        sy.load_recording(bare_of_efforts)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda m: (*m[:5], m[5][:1]), "message 6 has 1 numbers of effort for 2 joints"),
        (lambda m: (*m[:5], [1.0, float("nan")]), "message 6, tau1: nan is not a finite number"),
        (lambda m: (m[0], m[1] - 10**9, *m[2:]), "message 6: time goes back"),
    ],
)
def test_a_bad_message_is_told_or_dropped(tmp_path, rng, change, fault):
    messages = states(rng, 20)
    messages[5] = change(messages[5])
    path = write(tmp_path / "run", messages)
    with pytest.raises(DataError) as caught:
        sy.load_recording(path)
    assert fault in str(caught.value)
    run = sy.load_recording(path, repair=True)
    assert len(run) == 19
    assert len(run.about["repairs"]) == 1


def test_no_efforts_and_no_bag_are_told(tmp_path, rng):
    silent = [(*m[:5], []) for m in states(rng, 20)]
    with pytest.raises(DataError, match="without effort"):
        sy.load_recording(write(tmp_path / "run", silent))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="a folder without a bag"):
        sy.load_recording(tmp_path / "empty")


@pytest.fixture(scope="module")
def whole_bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    rng = np.random.default_rng(3)
    paths = [bare(write(folder / kind, states(rng, 200), kind=kind)) for kind in ("sqlite3", "mcap")]
    paths.append(write(folder / "run.bag", states(rng, 200), kind="ros1"))
    return folder, [(path.suffix, path.read_bytes()) for path in paths]


@settings(max_examples=45, deadline=None)
@given(st.data())
def test_a_damaged_bag_is_read_as_far_as_it_is_whole_or_refused(whole_bags, data):
    folder, bags = whole_bags
    suffix, raw = data.draw(st.sampled_from(bags))
    damaged = bytearray(raw[: data.draw(st.integers(0, len(raw)))])
    for _ in range(data.draw(st.integers(0, 6))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = folder / f"damaged{suffix}"
    path.write_bytes(bytes(damaged))
    for repair in (False, True):
        with suppress(SteelyardError):
            run = sy.load_recording(path, repair=repair)
            assert np.isfinite(run.q).all()
            assert len(run) <= 200
